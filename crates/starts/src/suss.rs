//! SUSS (Arghavani et al., "SUSS: improving TCP performance by speeding up slow-start", SIGCOMM
//! 2024): slow start that quadruples the window in its first rounds if two more doublings look
//! safe, on top of HyStart.
//!
//! In every round the packets that are released by ACKs of packets so released themselves are
//! *blue*: they are an undisturbed ACK train. From how long the blue ACKs take, the length of the
//! whole train is extrapolated. If the train of the next round would still fit into a round trip,
//! and the delay does not grow, the window is quadrupled: the blue packets leave with the ACKs, the
//! others (*red*) evenly over the rest of the round.
//!
//! HyStart's train test looks at blue ACKs only, and takes an elapsed time 2^jumps times as long as
//! it is; its delay test is as ever. A sender that is paced otherwise cannot see trains and does
//! not accelerate. Not taken over from the published code: it widens the window that the receiver
//! advertised, and works on one port only.

use flowstart_control::InvalidConfig;
use flowstart_control::{
    Ack, AfterAck, Departure, Exit, ExitReason, FlowStart, NewMss, Next, Response, Sent, Signal, Window,
};
use flowstart_units::{Bytes, Rate, Span, Time};

use super::hystart::{Hystart, HystartConfig};
use super::spacing::Spacing;
use crate::StartConstants;

/// Constants of SUSS; the defaults are those of the authors' code for Linux 6.8.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct SussConfig {
    /// Rounds that may be accelerated, from the second on, 0 ..= 16; default 3 (`suss_max`).
    pub max_jumps: u32,
    /// No acceleration over paths with a smallest RTT up to this; default 10 ms.
    pub min_rtt: Span,
    /// In the second round the ACK train must be shorter than the smallest RTT divided by this, at
    /// least 1; default 4.
    pub train_divisor: u64,
    /// The extrapolated delay may be above the smallest RTT by this divided into it, at least 1;
    /// default 8.
    pub delay_divisor: u64,
    /// Constants of the HyStart below.
    pub hystart: HystartConfig,
}

impl Default for SussConfig {
    fn default() -> Self {
        let hystart = HystartConfig::default();
        Self { max_jumps: 3, min_rtt: Span::from_millis(10), train_divisor: 4, delay_divisor: 8, hystart }
    }
}

impl StartConstants for SussConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        InvalidConfig::unless(self.max_jumps <= 16, "max_jumps", "at most 16")?;
        InvalidConfig::unless(self.train_divisor >= 1, "train_divisor", "at least 1")?;
        InvalidConfig::unless(self.delay_divisor >= 1, "delay_divisor", "at least 1")?;
        self.hystart.validate()
    }
}

/// The red packets of an accelerated round.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Red {
    packets: u32,
    /// Window at the end of the round.
    limit: u32,
    /// The last blue packets leave with the ACK that decided, up to this many in flight.
    decided: Time,
    blue_limit: u32,
    /// Blue packets that have not left.
    blue_left: u32,
    first: Time,
    rate: Rate,
}

/// One round trip.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Counted from 1, the initial window.
    number: u32,
    start: Time,
    /// It ends when a byte beyond this one is acknowledged.
    head: u64,
    /// Blue ACKs end with this byte.
    blue_tail: u64,
    blue_acked: u32,
    last_ack: Time,
    min_rtt: Span,
    decided: bool,
}

/// SUSS in operation. [`SussConfig`] says where its rules come from.
#[derive(Clone, Debug)]
pub struct Suss {
    config: SussConfig,
    hystart: Hystart,
    mss: u64,
    initial_window: u32,
    min_rtt: Span,
    /// The round in which the smallest RTT was seen.
    min_rtt_round: u32,
    round: Round,
    /// How long the blue ACKs of the round before took.
    previous_train: Span,
    /// HyStart's train test is on.
    trains: bool,
    /// No failure so far.
    active: bool,
    jumps: u32,
    red: Option<Red>,
    spacing: Spacing,
    /// Slow start ends when the window is above this.
    cap: Option<u32>,
    in_flight: u32,
}

impl Suss {
    /// SUSS for a flow with segments of `mss` payload bytes that begins with `initial_window`
    /// packets.
    #[must_use]
    pub fn new(config: &SussConfig, initial_window: u32, paced: bool, mss: u32) -> Self {
        let mut hystart = config.hystart;
        let trains = hystart.train_detector;
        hystart.train_detector = false;
        let round = Round {
            number: 1,
            start: Time::ZERO,
            head: 0,
            blue_tail: 0,
            blue_acked: 0,
            last_ack: Time::ZERO,
            min_rtt: Span::MAX,
            decided: true,
        };
        Self {
            hystart: Hystart::new(&hystart, paced, mss),
            mss: u64::from(mss.max(1)),
            initial_window: initial_window.max(1),
            min_rtt: Span::MAX,
            min_rtt_round: 1,
            round,
            previous_train: Span::ZERO,
            trains,
            active: !paced,
            jumps: 0,
            red: None,
            spacing: Spacing::new(),
            cap: None,
            in_flight: 0,
            config: SussConfig { hystart, max_jumps: config.max_jumps.min(16), ..*config },
        }
    }

    /// How often the window has been quadrupled.
    #[must_use]
    pub fn jumps(&self) -> u32 {
        self.jumps
    }

    /// Packets of the initial window times 2^n.
    fn initial_times(&self, n: u32) -> u32 {
        self.initial_window.saturating_mul(1_u32.checked_shl(n).unwrap_or(u32::MAX))
    }

    fn begin_round(&mut self, ack: &Ack, una_before: u64) {
        let number = self.round.number.saturating_add(1);
        let blue = u64::from(self.initial_times(number.saturating_sub(2)));
        self.red = None;
        self.round = Round {
            number,
            start: ack.now,
            head: ack.next,
            blue_tail: una_before.saturating_add(blue.saturating_mul(self.mss)),
            blue_acked: 0,
            last_ack: ack.now,
            min_rtt: Span::MAX,
            decided: false,
        };
    }

    /// Whether the next two doublings look safe, given how long the blue ACKs of this round took.
    fn is_safe(&self, train: Span) -> bool {
        let i = self.round.number;
        if self.jumps >= self.config.max_jumps || i > self.config.max_jumps.saturating_add(1) {
            return false;
        }
        if i == 2 {
            return self.min_rtt > self.config.min_rtt && train < self.min_rtt / self.config.train_divisor.max(1);
        }
        let (whole, before) = (train.as_secs_f64() * exp2(i - 2), self.previous_train.as_secs_f64() * exp2(i - 3));
        let growth = whole / (2.0 * before.max(1e-9));
        let predicted = 2.0 * growth * whole;
        predicted <= self.min_rtt.as_secs_f64() && self.delay_is_low()
    }

    /// Linear extrapolation: (k+1) roundMin <= (k+1) min + k min/8, k rounds after the smallest RTT
    /// was seen.
    fn delay_is_low(&self) -> bool {
        let k = f64::from(self.round.number.saturating_sub(self.min_rtt_round));
        let (round, least) = (self.round.min_rtt.as_secs_f64(), self.min_rtt.as_secs_f64());
        let allowed = (k + 1.0) * least + k * least / self.config.delay_divisor.max(1) as f64;
        (k + 1.0) * round <= allowed + 1e-12
    }

    /// The red packets of this round, if there is time for any.
    fn plan_red(&self, now: Time, window: &Window, acked: u32, train: Span) -> Option<Red> {
        let i = self.round.number;
        let blue = self.initial_times(i - 1);
        // All of them in 64 bits: cut at 32 more ACKs than packets might be reckoned.
        let doubled = |packets: u32, times: u32| Some(u64::from(packets) * u64::from(1_u32.checked_shl(times)? - 1));
        let packets = doubled(blue, i - 1)?;
        let red_acks = doubled(blue / 2, i - 2)?;
        let slot = self.min_rtt.mul_f64(1.0 / exp2(i - 1));
        if slot <= train {
            return None;
        }
        let guard = (slot - train) / 2;
        let span = self.min_rtt - slot;
        let rate = Rate::of(Bytes::new(packets.saturating_mul(self.mss)), span);
        let blue_limit = window.cwnd.saturating_add(acked);
        let limit = u64::from(blue_limit) + packets - red_acks;
        let [packets, limit] = [packets, limit].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        let limit = limit.min(window.ssthresh);
        let blue_left = blue_limit.saturating_sub(self.in_flight);
        Some(Red { packets, limit, decided: now, blue_limit, blue_left, first: now + guard, rate })
    }

    /// The blue ACKs of this round are complete.
    fn decide(&mut self, ack: &Ack, window: &mut Window) {
        self.round.decided = true;
        let expected = u64::from(self.initial_times(self.round.number - 2));
        let train = ack.now.since(self.round.start).mul_ratio(expected, u64::from(self.round.blue_acked.max(1)));
        if self.active {
            self.active = self.is_safe(train);
            if self.active
                && let Some(red) = self.plan_red(ack.now, window, ack.acked, train)
            {
                self.jumps += 1;
                self.spacing = Spacing::from(red.first);
                window.cwnd = red.limit;
                self.red = Some(red);
            }
        }
        self.previous_train = train;
    }

    /// HyStart's train test on blue ACKs.
    fn test_train(&mut self, ack: &Ack, window: &Window) {
        if window.cwnd < self.config.hystart.low_window || self.cap.is_some() {
            return;
        }
        if ack.now.since(self.round.last_ack) > self.config.hystart.ack_delta {
            return;
        }
        self.round.last_ack = ack.now;
        let factor = 1_u64 << self.jumps;
        if ack.now.since(self.round.start) * factor > self.hystart.train_limit(window) {
            let more = self.round.blue_acked.saturating_mul(u32::try_from(factor - 1).unwrap_or(u32::MAX));
            self.cap = Some(window.cwnd.saturating_add(more));
            self.active = false;
        }
    }

    fn leave(&self, reason: ExitReason, window: &Window) -> AfterAck {
        let cwnd = if self.jumps > 1 { self.in_flight.max(2) } else { window.cwnd };
        AfterAck::Done(Exit { reason, cwnd, ssthresh: cwnd, rate: None })
    }
}

fn exp2(n: u32) -> f64 {
    (1_u128 << n.min(64)) as f64
}

impl FlowStart for Suss {
    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> AfterAck {
        self.in_flight = ack.in_flight;
        if let AfterAck::Done(exit) = self.hystart.on_ack(ack, window) {
            return self.leave(exit.reason, window);
        }
        if ack.una > self.round.head && ack.advanced {
            let before = self.round.head;
            self.begin_round(ack, before);
        }
        if let Some(rtt) = ack.rtt {
            self.round.min_rtt = self.round.min_rtt.min(rtt);
            if rtt < self.min_rtt {
                (self.min_rtt, self.min_rtt_round) = (rtt, self.round.number);
            }
        }
        if !self.round.decided {
            self.round.blue_acked = self.round.blue_acked.saturating_add(ack.acked);
            if self.trains {
                self.test_train(ack, window);
            }
            if ack.una >= self.round.blue_tail {
                self.decide(ack, window);
            }
        }
        match self.cap {
            Some(cap) if window.cwnd > cap || self.jumps == 0 => self.leave(ExitReason::AckTrain, window),
            _ => AfterAck::Continue,
        }
    }

    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        // The window of a round with red packets was set for all of it.
        if self.red.is_some() { 0 } else { window.slow_start(ack.acked) }
    }

    fn on_signal(&mut self, _now: Time, _signal: Signal, window: &mut Window) -> Response {
        if self.jumps > 0 {
            window.cwnd = window.cwnd.min(self.in_flight.max(2));
        }
        Response::Leave
    }

    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        if let Some(red) = &mut self.red {
            red.blue_left = red.blue_left.saturating_sub(1);
        }
        if let Some(red) = self.red.filter(|red| sent.now > red.decided) {
            self.spacing.book(sent, red.rate);
        }
    }

    fn departure(&mut self, now: Time, next: &Next, _window: &Window) -> Option<Departure> {
        self.red.map(|red| {
            let blue = now == red.decided && next.in_flight < red.blue_limit;
            if blue { Departure::Now } else { self.spacing.departure(now) }
        })
    }

    fn departure_rate(&self) -> Option<Rate> {
        self.red.filter(|red| red.blue_left == 0).map(|red| red.rate)
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.hystart.on_mss(mss);
        self.mss = u64::from(mss.bytes());
        self.initial_window = mss.packets(self.initial_window);
        self.round.blue_acked = mss.packets(self.round.blue_acked);
        self.cap = self.cap.map(|cap| mss.packets(cap));
        if let Some(red) = &mut self.red {
            for packets in [&mut red.packets, &mut red.limit, &mut red.blue_limit, &mut red.blue_left] {
                *packets = mss.packets(*packets);
            }
        }
    }
}

#[cfg(test)]
mod tests;
