//! Constants of the published detector.

use flowstart_control::{InRange, Ranges, above};
use flowstart_units::{Rate, Span};

use flowstart_control::HystartConfig;

use crate::names::InvalidConfig;

/// How the gaps between packets are jittered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "snake_case")
)]
pub enum Jitter {
    /// Not at all: two flows at 1:2 then lock in phase, and one of them may get nothing through.
    None,
    /// The gap is multiplied by a number between 0.5 and 1.5 (paper).
    Gap,
    /// The rate is multiplied by a number between 0.5 and 2 (implementation); the mean rate is 8 %
    /// above the one meant.
    Rate,
}

/// The slowest beginning: until its second packet leaves a flow hears nothing that could end its
/// wait, and at 1 bit/s that took hours.
const SLOWEST: Rate = Rate::from_bps(1000);

/// The fastest beginning: at 1 Tbit/s memory ended before the first ACK could tell that it was too
/// much.
const FASTEST: Rate = Rate::from_mbps(10_000);

/// Constants of the detector; the defaults are those of the implementation, with the paper's in
/// brackets where they differ.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct DetectorConfig {
    /// Rate of the first flow at the beginning, 1 kbit/s to 10 Gbit/s; default 1 Mbit/s. The second
    /// sends at twice the rate.
    pub first_rate: Rate,
    /// Length of a monitor interval in average RTTs, above 0 up to 100; default 1.5 (1).
    pub interval_rtts: f64,
    /// Jitter of the gaps; default by rate (by gap).
    pub jitter: Jitter,
    /// Whether a flow's first loss makes both measure again at the same rate; default true (false).
    pub restart_on_first_loss: bool,
    /// A ratio above this means fair queuing, at least 1; default 1.5.
    pub threshold: f64,
    /// Rates of both flows together are not doubled beyond this; default 10 Gbit/s (implementation:
    /// as fast as the processor is).
    pub max_rate: Rate,
    /// After this time without a verdict the answer is "unknown"; default 10 s, when the paper's
    /// runs end (the implementation goes on for ever).
    pub give_up: Span,
    /// After "unknown" losses and RTTs of packets that left before do not count for so many round
    /// trips at most, 0 to 100; default 2 (not of the paper, where nothing follows: what left is
    /// acknowledged within one, or within two if some of it is sent again).
    pub released_rtts: f64,
    /// Window, in times of what it is, once more is lost of what left after "unknown" while the
    /// losses of before are still repaired, above 0 up to 1; default 0.5 (RFC 5681 section 3.1).
    pub late_loss_factor: f64,
    /// One flow alone, which only looks for its rate, as for the paper's Figure 3; default false.
    pub single: bool,
    /// Constants of the HyStart that goes on where the detector found nothing to go by.
    pub hystart: HystartConfig,
}

impl Default for DetectorConfig {
    fn default() -> Self {
        Self {
            first_rate: Rate::from_mbps(1),
            interval_rtts: 1.5,
            jitter: Jitter::Rate,
            restart_on_first_loss: true,
            threshold: 1.5,
            max_rate: Rate::from_mbps(10_000),
            give_up: Span::from_secs(10),
            released_rtts: 2.0,
            late_loss_factor: 0.5,
            single: false,
            hystart: HystartConfig::default(),
        }
    }
}

impl DetectorConfig {
    /// The detector as the paper's text describes it.
    #[must_use]
    pub fn paper() -> Self {
        Self { interval_rtts: 1.0, jitter: Jitter::Gap, restart_on_first_loss: false, ..Self::default() }
    }

    /// Checks that every constant is in its range.
    ///
    /// # Errors
    /// Names the first field that is not, and what it must be.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        self.check()?;
        self.hystart.validate()
    }
}

impl InRange for DetectorConfig {
    fn ranges(&mut self, ranges: &mut Ranges) {
        ranges.of("first_rate", &mut self.first_rate, SLOWEST..=FASTEST, "between 1 kbit/s and 10 Gbit/s");
        ranges.of("interval_rtts", &mut self.interval_rtts, above(0.0).up_to(100.0), "above 0 and at most 100");
        ranges.of("max_rate", &mut self.max_rate, above(Rate::ZERO), "above 0");
        ranges.of("released_rtts", &mut self.released_rtts, 0.0..=100.0, "between 0 and 100");
        ranges.of("late_loss_factor", &mut self.late_loss_factor, above(0.0).up_to(1.0), "above 0 and at most 1");
        ranges.of("threshold", &mut self.threshold, 1.0.., "at least 1");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_of_constants_are_as_documented() {
        let base = DetectorConfig::default();
        let refused = |config: DetectorConfig| config.validate().err().map(|error| error.field);
        assert_eq!(refused(base), None);
        let first_rate = |bps| refused(DetectorConfig { first_rate: Rate::from_bps(bps), ..base });
        assert_eq!([0, 1, 999].map(first_rate), [Some("first_rate"); 3]);
        assert_eq!([10_000_000_001, 1_000_000_000_000, u64::MAX].map(first_rate), [Some("first_rate"); 3]);
        assert_eq!([1000, 10_000_000_000].map(first_rate), [None; 2]);
        assert_eq!(refused(DetectorConfig { max_rate: Rate::ZERO, ..base }), Some("max_rate"));
        let interval = |interval_rtts| refused(DetectorConfig { interval_rtts, ..base });
        assert_eq!([0.0, 100.1, f64::NAN].map(interval), [Some("interval_rtts"); 3]);
        assert_eq!([0.1, 100.0].map(interval), [None; 2]);
        let released = |released_rtts| refused(DetectorConfig { released_rtts, ..base });
        assert_eq!([-0.1, 100.1, f64::NAN].map(released), [Some("released_rtts"); 3]);
        assert_eq!([0.0, 100.0].map(released), [None; 2]);
        let threshold = |threshold| refused(DetectorConfig { threshold, ..base });
        assert_eq!([0.9, f64::INFINITY, f64::NAN].map(threshold), [Some("threshold"); 3]);
        assert_eq!([1.0, 2.0].map(threshold), [None; 2]);
    }

    #[test]
    fn the_text_of_the_paper_differs_from_its_implementation_in_three_constants() {
        let paper = DetectorConfig::paper();
        assert_eq!((paper.interval_rtts, paper.jitter, paper.restart_on_first_loss), (1.0, Jitter::Gap, false));
        let DetectorConfig { interval_rtts, jitter, restart_on_first_loss, .. } = DetectorConfig::default();
        assert_eq!((interval_rtts, jitter, restart_on_first_loss), (1.5, Jitter::Rate, true));
    }
}
