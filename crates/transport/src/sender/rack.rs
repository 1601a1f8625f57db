//! How long RACK waits for reordered packets (RFC 8985 section 6.2 step 4; Linux
//! `tcp_rack_reo_wnd`, `tcp_rack_update_reo_wnd`).

use flowstart_units::Span;

use crate::{SenderConfig, SenderState};

/// What is known of reordering on the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reordering {
    /// Reordering was seen.
    seen: bool,
    /// Its degree in packets.
    degree: u32,
    /// The wait in steps of the smallest RTT over `reorder_window_divisor`.
    steps: u32,
    /// Recoveries until the steps return to one.
    persist: u32,
    /// A D-SACK came that was not yet answered.
    duplicate_seen: bool,
    /// Packets delivered when the steps last grew.
    last_delivered: u64,
}

impl Reordering {
    pub(super) fn new(config: &SenderConfig) -> Self {
        Self { seen: false, degree: config.reordering, steps: 1, persist: 0, duplicate_seen: false, last_delivered: 0 }
    }

    /// True once the path was seen to reorder by more than the configured degree.
    #[inline]
    pub(super) fn is_beyond(&self, config: &SenderConfig) -> bool {
        self.degree > config.reordering
    }

    /// A packet that began at byte `low` arrived after one that ended at `high`.
    pub(super) fn on_reordered(&mut self, config: &SenderConfig, low: u64, high: u64) {
        if low >= high {
            return;
        }
        let packets = u32::try_from((high - low) / u64::from(config.mss.max(1))).unwrap_or(u32::MAX);
        if packets > self.degree {
            self.degree = packets.min(config.max_reordering);
        }
        self.seen = true;
    }

    /// The receiver told of a needless retransmission.
    pub(super) fn on_duplicate(&mut self) {
        self.duplicate_seen = true;
    }

    /// A recovery ended without being undone.
    pub(super) fn on_recovery_end(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }

    /// The retransmission timer expired with so many packets acknowledged selectively, which led to
    /// no recovery: the degree of reordering was taken for more than it is (Linux
    /// `tcp_enter_loss`).
    pub(super) fn on_timeout(&mut self, config: &SenderConfig, sacked: u32) {
        if sacked >= config.reordering {
            self.degree = self.degree.min(config.reordering);
        }
    }

    /// Adapts the steps, at most once per round trip. `prior_delivered` is what was delivered when
    /// the newest packet of this ACK left.
    #[inline]
    pub(super) fn update(&mut self, config: &SenderConfig, prior_delivered: u64, delivered: u64) {
        if prior_delivered < self.last_delivered {
            self.duplicate_seen = false;
        }
        if self.duplicate_seen {
            self.steps = self.steps.saturating_add(1).min(config.reorder_steps_max.max(1));
            self.duplicate_seen = false;
            self.last_delivered = delivered;
            self.persist = config.reorder_persist;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// How long a packet may be late before it is lost.
    #[inline]
    pub(super) fn window(
        &self,
        config: &SenderConfig,
        state: SenderState,
        sacked: u32,
        min_rtt: Span,
        srtt: Span,
    ) -> Span {
        let certain = state >= SenderState::Recovery || sacked >= self.degree;
        if (!self.seen && certain) || min_rtt == Span::MAX {
            return Span::ZERO;
        }
        let step = min_rtt / u64::from(config.reorder_window_divisor.max(1));
        (step * u64::from(self.steps)).min(srtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN_RTT: Span = Span::from_millis(40);
    const SRTT: Span = Span::from_millis(60);

    /// Linux `tcp_enter_loss`.
    #[test]
    fn a_timeout_after_three_sacks_without_a_recovery_takes_the_degree_back() {
        let config = SenderConfig::default();
        for (sacked, beyond) in [(2, true), (3, false)] {
            let mut r = Reordering::new(&config);
            r.on_reordered(&config, 0, 10 * u64::from(config.mss));
            assert!(r.is_beyond(&config));
            r.on_timeout(&config, sacked);
            assert_eq!(r.is_beyond(&config), beyond, "{sacked}");
        }
    }

    #[test]
    fn without_reordering_three_sacks_are_proof_and_nothing_is_waited_for() {
        let config = SenderConfig::default();
        let r = Reordering::new(&config);
        assert_eq!(r.window(&config, SenderState::Open, 2, MIN_RTT, SRTT), Span::from_millis(10));
        assert_eq!(r.window(&config, SenderState::Open, 3, MIN_RTT, SRTT), Span::ZERO);
        assert_eq!(r.window(&config, SenderState::Recovery, 1, MIN_RTT, SRTT), Span::ZERO);
    }

    #[test]
    fn once_reordering_was_seen_a_quarter_of_the_smallest_rtt_is_waited() {
        let config = SenderConfig::default();
        let mut r = Reordering::new(&config);
        r.on_reordered(&config, 1448, 3 * 1448);
        assert_eq!(r.window(&config, SenderState::Recovery, 9, MIN_RTT, SRTT), Span::from_millis(10));
        assert!(!r.is_beyond(&config));
        r.on_reordered(&config, 0, 1000 * 1448);
        assert_eq!(r.degree, 300);
        assert!(r.is_beyond(&config));
        // Nothing is reordered that arrives in order.
        let mut r = Reordering::new(&config);
        r.on_reordered(&config, 1448, 1448);
        assert_eq!(r.window(&config, SenderState::Recovery, 9, MIN_RTT, SRTT), Span::ZERO);
        // Three packets are what is tolerated anyway.
        r.on_reordered(&config, 0, 4 * 1448 - 1);
        assert!(!r.is_beyond(&config));
        r.on_reordered(&config, 0, 4 * 1448);
        assert!(r.is_beyond(&config));
    }

    #[test]
    fn duplicates_widen_the_wait_once_per_round_trip_up_to_srtt_and_it_recovers_after_16_recoveries() {
        let config = SenderConfig::default();
        let mut r = Reordering::new(&config);
        r.on_reordered(&config, 0, 5);
        r.on_duplicate();
        r.update(&config, 0, 100);
        assert_eq!(r.window(&config, SenderState::Open, 0, MIN_RTT, SRTT), Span::from_millis(20));
        // Sent before the last change: belongs to the same round.
        r.on_duplicate();
        r.update(&config, 99, 120);
        assert_eq!(r.steps, 2);
        for round in 1..300 {
            r.on_duplicate();
            r.update(&config, 100 * (round + 1), 100 * (round + 1));
        }
        assert_eq!(r.steps, 255);
        assert_eq!(r.window(&config, SenderState::Open, 0, MIN_RTT, SRTT), SRTT);
        for _ in 0..16 {
            r.update(&config, 1 << 40, 1 << 40);
            assert_eq!(r.steps, 255);
            r.on_recovery_end();
        }
        r.update(&config, 1 << 40, 1 << 40);
        assert_eq!(r.steps, 1);
    }
}
