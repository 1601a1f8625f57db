//! Careful Resume (RFC 9959): a flow to a place known from before jumps to half of what the path
//! carried then, and takes it back if the path has changed.
//!
//! - *Reconnaissance*: slow start until the initial window is acknowledged. The round-trip time
//!   must fit the saved one.
//! - *Unvalidated*: the window jumps to half of the saved one; packets leave evenly spaced until
//!   the window is full, one of them is acknowledged, or a round trip is over.
//! - *Validating*: slow start from what is in flight, until the last packet of the jump is
//!   acknowledged. Then the start is standard slow start.
//! - *Safe retreat*, after a loss or a mark in the two phases before: half of what is known to fit
//!   into the pipe, no growth until the last packet of the jump is acknowledged, then the avoidance
//!   from there.
//!
//! With [`CarefulResumeConfig::request`] the flow also asks the routers for a rate (Quick-Start,
//! RFC 4782). A grant allows the jump at once, with the first data, and bounds it: what was saved
//! proposes, what was granted disposes. Without an answer nothing changes.
//!
//! What was saved is part of the configuration; saving it (the observing phase) is up to whoever
//! runs flows. Without it this is slow start.

use alloc::boxed::Box;

use flowstart_control::InvalidConfig;
use flowstart_control::{
    Ack, AfterAck, Answer, Departure, Exit, ExitReason, FlowStart, NewMss, Next, Occasion, Response, RouterClient,
    Sent, Signal, Window,
};
use flowstart_quick_start::Carried;
use flowstart_quick_start::sender::Change;
use flowstart_units::{Bytes, Rate, Span, Time};

use super::quick_start::{QuickStart, QuickStartConfig};
use super::spacing::{MILLION, Spacing, millionths};
use crate::StartConstants;

/// What was saved of an earlier flow, and the constants of Careful Resume; the defaults are those
/// of RFC 9959 with nothing saved.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct CarefulResumeConfig {
    /// Payload bytes that an earlier flow had delivered per round trip (`saved_cwnd`); default
    /// none.
    pub saved_cwnd: Option<Bytes>,
    /// The smallest round-trip time it had (`saved_rtt`); default none: any fits.
    pub saved_rtt: Option<Span>,
    /// Most payload bytes to jump to (`max_jump`); default none.
    pub max_jump: Option<Bytes>,
    /// Share of the saved window that is jumped to, above 0 up to 1; default 0.5.
    pub jump_share: f64,
    /// Initial windows that the saved window must have at least for a jump; default 4.
    pub min_saved_windows: u32,
    /// The path is another one if its RTT is at most this share of the saved one, 0 ..= 1; default
    /// 0.5.
    pub rtt_share: f64,
    /// The path is another one if its RTT is more than this many times the saved one; default 10.
    /// At least 1.
    pub rtt_multiple: u32,
    /// Window in the safe retreat as a share of what is known to fit, 0 ..= 1; default 0.5.
    pub retreat_share: f64,
    /// Threshold after the safe retreat as a share of what is known to fit, 0 ..= 1; default 0.5
    /// (RFC 9959 allows up to 1).
    pub threshold_share: f64,
    /// The most that the routers are asked for as the connection opens (Quick-Start, RFC 4782), in
    /// bits of IP packets per second; default none: they are not asked. At least 80 kbit/s. (own
    /// combination)
    pub request: Option<Rate>,
}

impl Default for CarefulResumeConfig {
    fn default() -> Self {
        Self {
            saved_cwnd: None,
            saved_rtt: None,
            max_jump: None,
            jump_share: 0.5,
            min_saved_windows: 4,
            rtt_share: 0.5,
            rtt_multiple: 10,
            retreat_share: 0.5,
            threshold_share: 0.5,
            request: None,
        }
    }
}

impl CarefulResumeConfig {
    /// How the routers are asked, if they are.
    fn asking(&self) -> Option<QuickStartConfig> {
        self.request.map(|request| QuickStartConfig { request, after_idle: false, ..QuickStartConfig::default() })
    }

    /// Window to jump to in payload bytes, if what was saved is enough for a jump from this initial
    /// window.
    fn jump(&self, initial_bytes: u64) -> Option<u64> {
        let saved = self.saved_cwnd?.get();
        let enough = saved >= initial_bytes.saturating_mul(u64::from(self.min_saved_windows));
        let jump = part(saved, self.jump_share).min(self.max_jump.map_or(u64::MAX, Bytes::get));
        enough.then_some(jump)
    }

    fn fits(&self, min_rtt: Span) -> bool {
        self.saved_rtt.is_none_or(|saved| {
            min_rtt > saved.mul_ratio(millionths(self.rtt_share.clamp(0.0, 1.0)), MILLION)
                && min_rtt <= saved * u64::from(self.rtt_multiple.max(1))
        })
    }
}

impl StartConstants for CarefulResumeConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        let check = InvalidConfig::unless;
        let share = 0.0..=1.0;
        check(self.jump_share > 0.0 && self.jump_share <= 1.0, "jump_share", "above 0 and at most 1")?;
        check(share.contains(&self.rtt_share), "rtt_share", "between 0 and 1")?;
        check(self.rtt_multiple >= 1, "rtt_multiple", "at least 1")?;
        check(share.contains(&self.retreat_share), "retreat_share", "between 0 and 1")?;
        check(share.contains(&self.threshold_share), "threshold_share", "between 0 and 1")?;
        self.asking().map_or(Ok(()), |asking| asking.validate())
    }

    fn asks_routers(&self) -> bool {
        self.request.is_some()
    }
}

fn part(whole: u64, share: f64) -> u64 {
    let product = u128::from(whole) * u128::from(millionths(share.clamp(0.0, 1.0))) / u128::from(MILLION);
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// The phase of a flow that resumes. Sequence numbers are bytes of the stream, counts are packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumePhase {
    /// Slow start until the initial window is acknowledged.
    Reconnaissance,
    /// The jump leaves.
    Unvalidated {
        /// First byte of the jump.
        first: u64,
        /// When a round trip of it is over.
        until: Time,
    },
    /// The jump's packets are outstanding up to this byte.
    Validating(u64),
    /// As before, after congestion.
    SafeRetreat(u64),
    /// Slow start: there was no jump, or it is validated.
    Normal,
}

/// Careful Resume in operation. [`CarefulResumeConfig`] says where its rules come from.
#[derive(Clone, Debug)]
pub struct CarefulResume {
    config: CarefulResumeConfig,
    mss: u64,
    initial_window: u32,
    phase: ResumePhase,
    /// Packets known to fit into the pipe (`PipeSize`), and how many of them arrived only when sent
    /// again.
    pipe: u32,
    lost: u32,
    /// The jump: its window in packets, its pace, and whether the window has been full.
    jump: u32,
    rate: Rate,
    filled: bool,
    spacing: Spacing,
    reason: ExitReason,
    next_byte: u64,
    newly_lost: u32,
    /// Asks the routers and checks the answer, nothing else.
    asking: Option<Box<QuickStart>>,
}

impl CarefulResume {
    /// Careful Resume for a flow with segments of `mss` payload bytes that begins with
    /// `initial_window` packets. What protects its requests comes from `seed`.
    #[must_use]
    pub fn new(config: &CarefulResumeConfig, initial_window: u32, mss: u32, seed: u64) -> Self {
        Self {
            config: *config,
            mss: u64::from(mss.max(1)),
            initial_window: initial_window.max(1),
            phase: ResumePhase::Reconnaissance,
            pipe: 0,
            lost: 0,
            jump: 0,
            rate: Rate::UNLIMITED,
            filled: false,
            spacing: Spacing::new(),
            reason: ExitReason::Loss,
            next_byte: 0,
            newly_lost: 0,
            asking: config.asking().map(|asking| Box::new(QuickStart::new(&asking, initial_window, mss, seed))),
        }
    }

    /// What it does now.
    #[must_use]
    pub fn phase(&self) -> ResumePhase {
        self.phase
    }

    /// Packets known to fit into the pipe: delivered since the jump, without those that had to be
    /// sent again.
    #[must_use]
    pub fn pipe_size(&self) -> u32 {
        self.pipe.saturating_sub(self.lost)
    }

    fn share_of_pipe(&self, share: f64) -> u32 {
        u32::try_from(part(u64::from(self.pipe_size()), share)).unwrap_or(u32::MAX).max(2)
    }

    fn reconnoitre(&mut self, ack: &Ack, window: &mut Window) {
        let initial_bytes = u64::from(self.initial_window) * self.mss;
        let Some(jump) = self.config.jump(initial_bytes).filter(|_| self.config.fits(ack.min_rtt)) else {
            self.phase = ResumePhase::Normal;
            return;
        };
        // A flow with nothing to send cannot jump yet. Counted in packets, as the window is: one
        // that carries an option of IP has a few bytes less.
        if ack.delivered < u64::from(self.initial_window) || ack.app_limited {
            return;
        }
        self.pipe = ack.in_flight;
        self.leap(jump, (ack.now, ack.srtt, ack.next), window);
    }

    /// Jumps to a window of `jump` payload bytes if that is more than there is, at `now` with new
    /// byte `next`, over `rtt`.
    fn leap(&mut self, jump: u64, (now, rtt, next): (Time, Span, u64), window: &mut Window) {
        self.jump = u32::try_from(jump / self.mss).unwrap_or(u32::MAX).min(window.ssthresh);
        if self.jump <= window.cwnd {
            self.phase = ResumePhase::Normal;
            return;
        }
        self.rate = Rate::of(Bytes::new(jump), rtt);
        window.cwnd = self.jump;
        self.phase = ResumePhase::Unvalidated { first: next, until: now + rtt };
    }
}

impl FlowStart for CarefulResume {
    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> AfterAck {
        self.next_byte = ack.next;
        match self.phase {
            ResumePhase::Normal => return AfterAck::Continue,
            ResumePhase::Reconnaissance => {
                self.reconnoitre(ack, window);
                return AfterAck::Continue;
            }
            ResumePhase::SafeRetreat(_) => {
                self.pipe = self.pipe.saturating_add(ack.acked);
                self.lost = self.lost.saturating_add(ack.newly_lost());
            }
            _ => self.pipe = self.pipe.saturating_add(ack.acked),
        }
        self.newly_lost = ack.newly_lost();
        match self.phase {
            ResumePhase::Unvalidated { first, until } if self.filled || ack.una > first || ack.now >= until => {
                let flight = if self.filled { self.jump } else { ack.in_flight };
                if flight < self.initial_window || flight <= self.pipe {
                    window.cwnd = self.pipe.max(self.initial_window);
                    self.phase = ResumePhase::Normal;
                } else {
                    window.cwnd = flight;
                    self.phase = ResumePhase::Validating(ack.next);
                }
            }
            ResumePhase::Validating(end) if ack.una >= end => self.phase = ResumePhase::Normal,
            ResumePhase::SafeRetreat(end) if ack.una >= end => {
                let ssthresh = self.share_of_pipe(self.config.threshold_share);
                return AfterAck::Done(Exit { reason: self.reason, cwnd: window.cwnd, ssthresh, rate: None });
            }
            _ => {}
        }
        AfterAck::Continue
    }

    #[inline]
    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        match self.phase {
            ResumePhase::Unvalidated { .. } | ResumePhase::SafeRetreat(_) => 0,
            _ => window.slow_start(ack.acked),
        }
    }

    fn on_signal(&mut self, _now: Time, signal: Signal, window: &mut Window) -> Response {
        let end = match self.phase {
            ResumePhase::Reconnaissance | ResumePhase::Normal => {
                self.phase = ResumePhase::Normal;
                return Response::Leave;
            }
            _ if signal == Signal::Timeout => {
                window.cwnd = window.cwnd.min(self.pipe.max(2));
                return Response::Leave;
            }
            ResumePhase::SafeRetreat(_) => return Response::Ignore,
            ResumePhase::Unvalidated { .. } => self.next_byte,
            ResumePhase::Validating(end) => end,
        };
        self.reason = if signal == Signal::Marks { ExitReason::Marks } else { ExitReason::Loss };
        window.cwnd = window.cwnd.min(self.share_of_pipe(self.config.retreat_share));
        // Nothing lost has arrived yet, but it will be counted when it does.
        self.lost = self.newly_lost;
        self.phase = ResumePhase::SafeRetreat(end);
        Response::Ignore
    }

    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        if let ResumePhase::Unvalidated { .. } = self.phase {
            self.filled |= sent.in_flight >= self.jump;
            self.spacing.book(sent, self.rate);
        }
    }

    fn departure(&mut self, now: Time, _next: &Next, _window: &Window) -> Option<Departure> {
        matches!(self.phase, ResumePhase::Unvalidated { .. }).then(|| self.spacing.departure(now))
    }

    fn router_client(&mut self) -> Option<&mut dyn RouterClient> {
        Some(self)
    }

    fn owns_window(&self) -> bool {
        matches!(self.phase, ResumePhase::Unvalidated { .. } | ResumePhase::SafeRetreat(_))
    }

    fn departure_rate(&self) -> Option<Rate> {
        matches!(self.phase, ResumePhase::Unvalidated { .. }).then_some(self.rate)
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.mss = u64::from(mss.bytes());
        for packets in [&mut self.initial_window, &mut self.pipe, &mut self.lost, &mut self.jump] {
            *packets = mss.packets(*packets);
        }
        if let Some(asking) = &mut self.asking {
            asking.on_mss(mss);
        }
    }
}

impl RouterClient for CarefulResume {
    fn rate_request(&mut self, occasion: &Occasion) -> Carried {
        self.asking.as_mut().map_or(Carried::NONE, |asking| asking.rate_request(occasion))
    }

    fn on_answer(&mut self, answer: &Answer, window: &mut Window) -> bool {
        let Some(asking) = &mut self.asking else { return false };
        // What the grant alone would make of the window.
        let mut granted = *window;
        let change = asking.hear(answer, &mut granted);
        if self.phase != ResumePhase::Reconnaissance {
            return false;
        }
        match change {
            // The routers allow no more than there is.
            Change::TooSmall(_) => self.phase = ResumePhase::Normal,
            Change::Granted(..) => {
                let initial_bytes = u64::from(self.initial_window) * self.mss;
                if let Some(saved) = self.config.jump(initial_bytes).filter(|_| self.config.fits(answer.rtt)) {
                    let jump = saved.min(u64::from(granted.cwnd).saturating_mul(self.mss));
                    self.leap(jump, (answer.now, answer.rtt, answer.next), window);
                }
            }
            // Nothing is known: what was saved decides alone.
            _ => {}
        }
        false
    }

    fn take_report(&mut self) -> Carried {
        self.asking.as_mut().map_or(Carried::NONE, |asking| asking.take_report())
    }
}

#[cfg(test)]
mod tests;
