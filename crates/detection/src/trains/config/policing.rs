//! Constants of the rule for policers.

use flowstart_control::{InRange, Ranges, above};

/// How losses of a train that is to prove a rate are told apart from those of a policer. All
/// constants are this project's own.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct PolicingConfig {
    /// Losses begin within a train, or are even, and are not spread over it at random, if that has
    /// at most this probability of error, above 0 and below 1; default 0.001. Then they are a
    /// policer's ...
    pub error: f64,
    /// ... if holes in the arrivals and the fates of lone packets make it so many times likelier
    /// than a full buffer, at least 1; default 3.
    pub odds: f64,
    /// "Isolated" waits for more of the train, or for a longer one, as long as losses at random
    /// would look like this with at most this probability, at least `error` and below 1, and a full
    /// buffer is not `odds` times likelier; default 0.05.
    pub doubt: f64,
    /// The time in which packets arrive behind the first loss is uncertain by the jitter and by
    /// this share, above 0; default 0.08, as `meeting.bulk_width`.
    pub width: f64,
    /// No such time is less likely than this, above 0 and below 1; default 0.003, as
    /// `meeting.bulk_outlier`.
    pub outlier: f64,
    /// Packets before the first loss that tell the pace, if the train is not longer behind it, 1
    /// ..= 1000; default 32: as many as two groups of lone packets are apart.
    pub pace: u32,
}

impl Default for PolicingConfig {
    fn default() -> Self {
        Self { error: 1e-3, odds: 3.0, doubt: 0.05, width: 0.08, outlier: 3e-3, pace: 32 }
    }
}

impl InRange for PolicingConfig {
    fn ranges(&mut self, ranges: &mut Ranges) {
        ranges.of("error", &mut self.error, above(0.0).below(1.0), "above 0 and below 1");
        ranges.of("doubt", &mut self.doubt, self.error..1.0, "at least error and below 1");
        ranges.of("odds", &mut self.odds, 1.0.., "at least 1");
        ranges.of("width", &mut self.width, above(0.0), "above 0");
        ranges.of("outlier", &mut self.outlier, above(0.0).below(1.0), "above 0 and below 1");
        ranges.of("pace", &mut self.pace, 1..=1000, "between 1 and 1000");
    }
}
