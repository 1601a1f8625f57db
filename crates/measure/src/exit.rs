//! Where and why the start ended: M5 and M6.

use flowstart_units::Span;

/// M5: packets lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Own packets dropped that left before the start ended. neqo and quicly call all of these
    /// losses of slow start.
    pub before_exit: u64,
    /// Own packets dropped that left later.
    pub after_exit: u64,
    /// Packets of other flows dropped within the horizon.
    pub others: u64,
    /// Own retransmissions.
    pub retransmitted: u64,
    /// Own retransmission timeouts.
    pub timeouts: u64,
}

impl Losses {
    /// All own packets lost.
    #[must_use]
    pub fn own(&self) -> u64 {
        self.before_exit + self.after_exit
    }
}

/// M6: how the start ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exit {
    /// When, after t = 0.
    pub after: Span,
    /// The same in RTT0.
    pub after_rtts: f64,
    /// Congestion window when the start ended, before the reduction a loss or a mark brings, over
    /// the BDP, both in wire bytes. neqo: `slow_start_exit_detection_cwnd` is the numerator.
    pub window_per_bdp: f64,
    /// Packets in flight over that window. neqo: `slow_start_exit_bytes_in_flight` /
    /// `slow_start_exit_detection_cwnd`.
    pub in_flight_per_window: f64,
    /// E = log2(window / B_f): 0 is exact, −1 half of it, 1 twice.
    pub quality: f64,
    /// True if neither a loss nor a timeout ended it. neqo: `slow_start_exit_reason` is `Heuristic`
    /// rather than `CongestionEvent` (which includes marks; here marks are no loss).
    pub without_loss: bool,
}

/// What M6 calls an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitJudgement {
    /// By a heuristic or a mark below half the BDP (E < −1).
    Early,
    /// Neither early nor late.
    Good,
    /// By loss or a timeout, or above twice the BDP (E > 1).
    Late,
}

impl Exit {
    /// `window` and `in_flight` in packets of `packet` wire bytes, `bdp` in bytes.
    #[must_use]
    pub fn new(
        after: Span,
        base_rtt: Span,
        window: u32,
        in_flight: u32,
        packet: u32,
        bdp: f64,
        without_loss: bool,
    ) -> Self {
        let window_per_bdp = f64::from(window) * f64::from(packet) / bdp;
        Self {
            after,
            after_rtts: after.ratio(base_rtt),
            window_per_bdp,
            in_flight_per_window: f64::from(in_flight) / f64::from(window.max(1)),
            quality: libm::log2(window_per_bdp),
            without_loss,
        }
    }

    /// Early, good or late.
    #[must_use]
    pub fn judgement(&self) -> ExitJudgement {
        if !self.without_loss || self.quality > 1.0 {
            ExitJudgement::Late
        } else if self.quality < -1.0 {
            ExitJudgement::Early
        } else {
            ExitJudgement::Good
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(window: u32, without_loss: bool) -> Exit {
        Exit::new(Span::from_millis(100), Span::from_millis(20), window, window, 1500, 160.0 * 1500.0, without_loss)
    }

    #[test]
    fn exit_quality_is_the_binary_logarithm_of_window_over_bdp() {
        assert_eq!(exit(160, true).quality, 0.0);
        assert_eq!(exit(40, true).quality, -2.0);
        assert_eq!(exit(320, false).quality, 1.0);
        assert_eq!(exit(160, true).after_rtts, 5.0);
    }

    #[test]
    fn an_exit_is_early_below_half_the_bdp_and_late_by_loss_or_above_twice_the_bdp() {
        assert_eq!(exit(79, true).judgement(), ExitJudgement::Early);
        assert_eq!(exit(80, true).judgement(), ExitJudgement::Good);
        assert_eq!(exit(320, true).judgement(), ExitJudgement::Good);
        assert_eq!(exit(321, true).judgement(), ExitJudgement::Late);
        assert_eq!(exit(160, false).judgement(), ExitJudgement::Late);
        assert_eq!(exit(40, false).judgement(), ExitJudgement::Late);
    }
}
