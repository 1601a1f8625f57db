//! Spacing packets at a rate derived from the window, as Linux does with `sk_pacing_rate`.

use flowstart_units::{Bytes, Rate, Span, Time};

use crate::{Departure, Next, Sent, Window};

/// Whether packets leave as the window opens or spaced in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// Packets leave as soon as the window allows (the ACK clock). What Linux does with CUBIC and Reno unless the fq queue or
    /// `SO_MAX_PACING_RATE` asks for pacing.
    #[default]
    Off,
    /// rate = percent * MSS * max(cwnd, packets out) / srtt (Linux `tcp_update_pacing_rate`).
    Window {
        /// Percentage below half the threshold; default 200 (`tcp_pacing_ss_ratio`).
        start_percent: u32,
        /// Percentage otherwise; default 120 (`tcp_pacing_ca_ratio`).
        avoidance_percent: u32,
        /// Packets at the start of a connection that are not paced; default 10 (`tcp_update_skb_after_send`).
        unpaced_packets: u64,
    },
}

impl Pacing {
    /// Pacing with Linux's constants.
    pub const LINUX: Self = Self::Window { start_percent: 200, avoidance_percent: 120, unpaced_packets: 10 };
}

/// Books departures one gap after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacer {
    pacing: Pacing,
    mss: u32,
    rate: Option<Rate>,
    /// Earliest departure of the next packet.
    next: Time,
}

impl Pacer {
    pub(super) fn new(pacing: Pacing, mss: u32) -> Self {
        Self { pacing, mss, rate: None, next: Time::ZERO }
    }

    pub(super) fn rate(&self) -> Option<Rate> {
        self.rate
    }

    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.rate = Some(rate);
    }

    #[inline]
    pub(super) fn departure(&mut self, now: Time, next: &Next, window: &Window, own: Option<Rate>) -> Departure {
        match (own, self.pacing) {
            (Some(rate), _) => self.rate = Some(rate),
            (None, Pacing::Off) => {
                self.rate = None;
                return Departure::Now;
            }
            (None, Pacing::Window { start_percent, avoidance_percent, unpaced_packets }) => {
                if next.number < unpaced_packets || next.srtt.is_zero() {
                    self.rate = None;
                } else {
                    let percent = if window.cwnd < window.ssthresh / 2 { start_percent } else { avoidance_percent };
                    let packets = u64::from(window.cwnd.max(next.packets_out));
                    let bytes = Bytes::new(u64::from(self.mss) * packets);
                    self.rate = Some(Rate::of(bytes, next.srtt).mul_ratio(u64::from(percent), 100));
                }
            }
        }
        if self.next <= now { Departure::Now } else { Departure::At(self.next) }
    }

    #[inline]
    pub(super) fn on_sent(&mut self, sent: &Sent) {
        let Some(rate) = self.rate else { return };
        let gap = rate.transmission_time(Bytes::new(u64::from(sent.bytes)));
        // A late packet gets back at most half a gap, so that lateness does not turn into bursts.
        let late = sent.now.since(self.next);
        let credit = if self.next == Time::ZERO { Span::ZERO } else { late.min(gap / 2) };
        self.next = sent.now + (gap - credit);
    }
}
