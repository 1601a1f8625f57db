//! DCTCP (RFC 8257) with the integer arithmetic of Linux `tcp_dctcp.c`.
//!
//! The integers matter: fewer marks than one packet in 64 vanish, a constant tenth of marked
//! packets reads as 0.108, and an alpha below 16/1024 falls to 0 in every window, so that it cannot
//! rise from 0 unless more than a quarter of a window is marked.

use flowstart_control::InvalidConfig;
use flowstart_control::{Ack, CongestionAvoidance, NewMss, Signal, Window};
use flowstart_units::Time;

use super::reno::{Counter, half};
use crate::AvoidanceConstants;

/// Alpha and its parts are counted in units of 1/1024, 10 bits.
const ALPHA_BITS: u32 = 10;
/// Alpha if every packet is marked.
const ALPHA_ONE: u32 = 1 << ALPHA_BITS;

/// Constants of DCTCP; the defaults are those of RFC 8257 section 4.2 and Linux 6.1.192.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct DctcpConfig {
    /// The weight g of a window in alpha is 1/2^n; default 4, g = 1/16 (`dctcp_shift_g`). 1 ..= 10.
    pub gain_shift: u32,
    /// Alpha at the beginning in units of 1/1024, 0 ..= 1024; default 1024 (`dctcp_alpha_on_init`).
    /// Paced Chirping was published with 0, as it ignores marks until congestion avoidance.
    pub initial_alpha: u32,
}

impl Default for DctcpConfig {
    fn default() -> Self {
        Self { gain_shift: 4, initial_alpha: ALPHA_ONE }
    }
}

impl AvoidanceConstants for DctcpConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        InvalidConfig::unless((1..=ALPHA_BITS).contains(&self.gain_shift), "gain_shift", "between 1 and 10")?;
        InvalidConfig::unless(self.initial_alpha <= ALPHA_ONE, "initial_alpha", "at most 1024")
    }

    fn wants_ecn(&self) -> bool {
        true
    }
}

/// DCTCP in operation.
#[derive(Clone, Copy, Debug)]
pub struct Dctcp {
    gain_shift: u32,
    /// In units of 1/1024.
    alpha: u32,
    /// The observation window ends when everything before this byte is acknowledged.
    window_end: u64,
    delivered: u64,
    marked: u64,
    /// Window when the last reduction began.
    prior_cwnd: u32,
    counter: Counter,
}

impl Dctcp {
    /// DCTCP with these constants.
    #[must_use]
    pub fn new(config: &DctcpConfig) -> Self {
        Self {
            gain_shift: config.gain_shift.clamp(1, ALPHA_BITS),
            alpha: config.initial_alpha.min(ALPHA_ONE),
            window_end: 0,
            delivered: 0,
            marked: 0,
            prior_cwnd: 0,
            counter: Counter::default(),
        }
    }

    /// The moving average of the share of marked packets, 0 ..= 1024 for 0 ..= 1.
    #[must_use]
    pub fn alpha(&self) -> u32 {
        self.alpha
    }

    fn update_alpha(&mut self) {
        let decay = self.alpha >> self.gain_shift;
        // A share too small to be counted takes the rest with it, or alpha would never reach zero.
        self.alpha -= if decay == 0 { self.alpha } else { decay };
        let share = (self.marked << (ALPHA_BITS - self.gain_shift)) / self.delivered.max(1);
        self.alpha = self.alpha.saturating_add(u32::try_from(share).unwrap_or(ALPHA_ONE)).min(ALPHA_ONE);
    }
}

impl CongestionAvoidance for Dctcp {
    /// Counts marks, also during a start and in recovery. The transport calls this before the
    /// reduction of the same ACK.
    #[inline]
    fn on_ack(&mut self, ack: &Ack, _window: &Window) {
        self.delivered += u64::from(ack.acked);
        self.marked += u64::from(ack.marked);
        if ack.una >= self.window_end {
            self.update_alpha();
            self.window_end = ack.next;
            self.delivered = 0;
            self.marked = 0;
        }
    }

    #[inline]
    fn grow(&mut self, _ack: &Ack, acked: u32, window: &mut Window) {
        self.counter.grow(window, window.cwnd, acked);
    }

    fn reduce(&mut self, _now: Time, signal: Signal, window: &Window) -> u32 {
        self.counter.reset();
        self.prior_cwnd = window.cwnd;
        match signal {
            Signal::Loss | Signal::Timeout => half(window),
            Signal::Marks => {
                let taken = (u64::from(window.cwnd) * u64::from(self.alpha)) >> (ALPHA_BITS + 1);
                // At most half the window, so it fits.
                (window.cwnd - taken as u32).max(2)
            }
        }
    }

    /// The window at the last reduction (Linux `dctcp_cwnd_undo`).
    fn undo(&mut self, _prior_cwnd: u32, window: &Window) -> u32 {
        self.prior_cwnd.max(window.cwnd)
    }

    fn is_scalable(&self) -> bool {
        true
    }

    #[inline(always)]
    fn paces(&self) -> bool {
        false
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.prior_cwnd = mss.packets(self.prior_cwnd);
        self.counter.on_mss(mss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_control::testing::ack;

    fn dctcp(alpha: u32) -> Dctcp {
        Dctcp::new(&DctcpConfig { initial_alpha: alpha, ..DctcpConfig::default() })
    }

    /// One observation window of `packets` packets of which `marked` were marked.
    fn observe(dctcp: &mut Dctcp, packets: u32, marked: u32) -> u32 {
        let end = dctcp.window_end;
        let ack = Ack { marked, una: end, next: end + 1000, ..ack(packets) };
        dctcp.on_ack(&ack, &Window::new(10));
        dctcp.alpha()
    }

    #[test]
    fn without_marks_alpha_is_gone_after_75_windows() {
        let mut avoidance = dctcp(1024);
        let alphas: Vec<u32> = (0..75).map(|_| observe(&mut avoidance, 100, 0)).collect();
        assert_eq!(alphas[..8], [960, 900, 844, 792, 743, 697, 654, 614]);
        assert_eq!(alphas[71..], [17, 16, 15, 0]);
    }

    #[test]
    fn constant_shares_of_marks_settle_where_the_integers_let_them() {
        let settled = |from: u32, packets: u32, marked: u32| {
            let mut avoidance = dctcp(from);
            (0..500).map(|_| observe(&mut avoidance, packets, marked)).last().unwrap()
        };
        assert_eq!(settled(1024, 100, 10), 111, "a tenth, from above (ideal 102)");
        assert_eq!(settled(16, 100, 10), 96, "a tenth, from below (ideal 102)");
        assert_eq!(settled(0, 100, 10), 6, "a tenth, from below 16: every window starts from zero again");
        assert_eq!(settled(1024, 100, 1), 0, "a hundredth");
        assert_eq!(settled(1024, 64, 1), 31, "one in 64 (ideal 16)");
        assert_eq!(settled(0, 10, 10), 1024, "all");
    }

    #[test]
    fn the_threshold_is_the_window_less_half_of_alpha() {
        for (cwnd, alpha, ssthresh) in [(100, 102, 96), (10, 102, 10), (100, 1024, 50), (100, 0, 100), (2, 1024, 2)] {
            assert_eq!(dctcp(alpha).reduce(Time::ZERO, Signal::Marks, &Window::new(cwnd)), ssthresh);
        }
    }

    #[test]
    fn a_loss_halves_whatever_alpha_says() {
        for signal in [Signal::Loss, Signal::Timeout] {
            assert_eq!(dctcp(0).reduce(Time::ZERO, signal, &Window::new(100)), 50);
        }
    }

    #[test]
    fn undo_restores_the_window_of_the_last_reduction() {
        let mut avoidance = dctcp(1024);
        avoidance.reduce(Time::ZERO, Signal::Loss, &Window::new(100));
        assert_eq!(avoidance.undo(30, &Window::new(50)), 100);
    }

    #[test]
    fn alpha_changes_once_per_window_of_data() {
        let mut avoidance = dctcp(0);
        let on = |avoidance: &mut Dctcp, una: u64, next: u64| {
            avoidance.on_ack(&Ack { marked: 1, una, next, ..ack(1) }, &Window::new(10));
            avoidance.alpha()
        };
        assert_eq!(on(&mut avoidance, 1000, 10_000), 64);
        assert_eq!(on(&mut avoidance, 9_999, 20_000), 64);
        assert_eq!(on(&mut avoidance, 10_000, 20_000), 124, "64 - 4 + 64");
    }
}
