//! How faithful a run was: what every run reports about itself.

use std::fmt;

use hdrhistogram::Histogram;

use flowstart_units::Span;

/// Longest lateness told apart from longer ones.
const LONGEST: u64 = 60_000_000_000;
/// Significant decimal digits of the histogram.
const DIGITS: u8 = 3;

/// Lateness of departures, collected without allocation.
#[derive(Clone, Debug)]
pub(crate) struct Lateness {
    histogram: Histogram<u64>,
    /// The longest, which the histogram knows to three digits.
    worst: Span,
}

impl Lateness {
    #[expect(clippy::expect_used, reason = "the bounds are constants that the library accepts")]
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST, DIGITS).expect("valid bounds");
        Self { histogram, worst: Span::ZERO }
    }

    #[inline]
    pub(crate) fn record(&mut self, late: Span) {
        self.histogram.saturating_record(late.as_nanos().max(1));
        self.worst = self.worst.max(late);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        // Same bounds: cannot fail.
        let _ = self.histogram.add(&other.histogram);
        self.worst = self.worst.max(other.worst);
    }

    /// How late a packet was at most, of this share of them; zero if there were none.
    pub(crate) fn quantile(&self, share: f64) -> Span {
        Span::from_nanos(self.histogram.value_at_quantile(share)).min(self.worst)
    }

    pub(crate) fn worst(&self) -> Span {
        self.worst
    }
}

/// What a run says about its own precision. Its `Display` is the fidelity line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fidelity {
    /// Packets given to receiving hosts.
    pub packets: u64,
    /// Half of them were at most this late, against the departure that queue, link and delay say.
    pub median: Span,
    /// 99 % of them were at most this late.
    pub p99: Span,
    /// The latest one.
    pub worst: Span,
    /// Times an engine did not look at the clock for more than [`crate::Timing::stall`] longer than
    /// it had asked for, wherever in its work that was.
    pub stalls: u64,
    /// The longest of them.
    pub longest_stall: Span,
    /// Packets lost though no link's queue or loss process asked for it: rings that overflowed,
    /// packets the kernel did not take.
    pub unasked_drops: u64,
    /// Packets longer than the MTU (an offload that could not be switched off); they are dropped,
    /// and counted here only.
    pub above_mtu: u64,
    /// Packets seen so late that the link had to count them as arrived later than they did.
    pub late_arrivals: u64,
    /// True if all engines ran with real-time priority.
    pub real_time: bool,
    /// Parts of the emulator that failed: [`crate::WorldOutcome::faults`] says which.
    pub faults: u32,
}

impl fmt::Display for Fidelity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = |span: Span| span.as_nanos() as f64 / 1e3;
        write!(
            f,
            "fidelity: {} packets, late by {:.1} us (median), {:.1} us (99 %), {:.0} us (worst); {} stalls",
            self.packets,
            micros(self.median),
            micros(self.p99),
            micros(self.worst),
            self.stalls
        )?;
        if self.stalls > 0 {
            write!(f, " (longest {:.1} ms)", self.longest_stall.as_millis_f64())?;
        }
        write!(f, ", {} drops not asked for, {} packets above the MTU", self.unasked_drops, self.above_mtu)?;
        if !self.real_time {
            f.write_str("; without real-time priority")?;
        }
        if self.faults > 0 {
            f.write_str("; a part of the emulator failed")?;
        }
        Ok(())
    }
}

/// What a run must keep to, or it counts as failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FidelityLimit {
    /// Most lateness at the 99th percentile. Default 1 ms: a twentieth of a usual round trip.
    pub p99: Span,
    /// Most lateness of the latest packet; [`Span::MAX`] for any. Default any: one stall need not
    /// spoil a long run.
    pub worst: Span,
    /// Most packets lost that no link asked for, and packets above the MTU. Default 0.
    pub drops: u64,
}

impl Default for FidelityLimit {
    fn default() -> Self {
        Self { p99: Span::from_millis(1), worst: Span::MAX, drops: 0 }
    }
}

impl FidelityLimit {
    /// What was not kept, in words; `None` if all was.
    #[must_use]
    pub fn broken_by(&self, fidelity: &Fidelity) -> Option<String> {
        let mut wrong = Vec::new();
        if fidelity.faults > 0 {
            wrong.push("a part of the emulator failed".to_owned());
        }
        if fidelity.p99 > self.p99 {
            wrong.push(format!("1 % of the packets were more than {} late, {} are allowed", fidelity.p99, self.p99));
        }
        if fidelity.worst > self.worst {
            wrong.push(format!("a packet was {} late, {} are allowed", fidelity.worst, self.worst));
        }
        if fidelity.unasked_drops > self.drops {
            wrong.push(format!("{} packets were lost that no link dropped", fidelity.unasked_drops));
        }
        if fidelity.above_mtu > self.drops {
            wrong.push(format!("{} packets were longer than the MTU", fidelity.above_mtu));
        }
        (!wrong.is_empty()).then(|| wrong.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact_to_three_digits_and_nothing_is_no_lateness() {
        let mut lateness = Lateness::new();
        assert_eq!((lateness.quantile(0.5), lateness.worst()), (Span::ZERO, Span::ZERO));
        for n in 1..=1000 {
            lateness.record(Span::from_micros(n));
        }
        let near = |span: Span, micros: f64| (span.as_nanos() as f64 / 1e3 / micros - 1.0).abs() < 2e-3;
        assert!(
            near(lateness.quantile(0.5), 500.0)
                && near(lateness.quantile(0.99), 990.0)
                && near(lateness.worst(), 1000.0)
        );
    }

    #[test]
    fn no_quantile_is_above_the_longest() {
        let (mut lateness, mut other) = (Lateness::new(), Lateness::new());
        lateness.record(Span::from_nanos(5_913_001));
        other.record(Span::from_nanos(5_914_001));
        assert_eq!(lateness.quantile(0.99), Span::from_nanos(5_913_001));
        lateness.add(&other);
        assert_eq!((lateness.quantile(1.0), lateness.worst()), (other.worst(), Span::from_nanos(5_914_001)));
    }

    #[test]
    fn a_limit_says_everything_that_was_not_kept() {
        let limit = FidelityLimit::default();
        let good =
            Fidelity { packets: 10, p99: Span::from_micros(999), worst: Span::from_secs(1), ..Fidelity::default() };
        assert_eq!(limit.broken_by(&good), None);
        let bad = Fidelity { p99: Span::from_millis(2), unasked_drops: 1, above_mtu: 3, ..good };
        let said = limit.broken_by(&bad).unwrap();
        assert!(
            said.contains("2 ms late, 1 ms")
                && said.contains("1 packets were lost")
                && said.contains("3 packets were longer"),
            "{said}"
        );
    }
}
