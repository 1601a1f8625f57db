//! How much a comparison of trains says.

use flowstart_control::{InRange, Ranges, above};

/// What delays and losses mean, as probabilities with a queue of one's own and without. All are
/// this project's own: what its detector meets on the paper's grid (`flowstart reproduce
/// fair-queuing/trains-accuracy`; the means are those of `isolation_ratio`).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct EvidenceConfig {
    /// Delay of a lone packet over that of its neighbour in a shared queue, above 0; default 1.12:
    /// it waits a little longer.
    pub shared_ratio: f64,
    /// Standard deviation of that, above 0; default 0.15.
    pub shared_width: f64,
    /// The same ratio in a queue of its own, at least 0 and below `shared_ratio`; default 0.35: it
    /// waits for the packet in transmission and at most a turn of the other connection.
    pub isolated_ratio: f64,
    /// Standard deviation of that, above 0; default 0.2.
    pub isolated_width: f64,
    /// Nothing is less likely than this by either model, so that what neither foresees does not
    /// decide alone; above 0 and below 1; default 0.001.
    pub outlier: f64,
    /// Probability that a lone packet behind a full train is lost in a shared queue, above 0 and
    /// below 1; default 0.5.
    pub lone_lost_shared: f64,
    /// The same in a queue of its own; default 0.05.
    pub lone_lost_isolated: f64,
}

impl Default for EvidenceConfig {
    fn default() -> Self {
        Self {
            shared_ratio: 1.12,
            shared_width: 0.15,
            isolated_ratio: 0.35,
            isolated_width: 0.2,
            outlier: 1e-3,
            lone_lost_shared: 0.5,
            lone_lost_isolated: 0.05,
        }
    }
}

impl InRange for EvidenceConfig {
    fn ranges(&mut self, ranges: &mut Ranges) {
        let share = above(0.0).below(1.0);
        ranges.of("shared_ratio", &mut self.shared_ratio, above(0.0), "above 0");
        let below = 0.0..self.shared_ratio;
        ranges.of("isolated_ratio", &mut self.isolated_ratio, below, "at least 0 and below shared_ratio");
        ranges.of("shared_width", &mut self.shared_width, above(0.0), "above 0");
        ranges.of("isolated_width", &mut self.isolated_width, above(0.0), "above 0");
        ranges.of("outlier", &mut self.outlier, share, "above 0 and below 1");
        ranges.of("lone_lost_shared", &mut self.lone_lost_shared, share, "above 0 and below 1");
        ranges.of("lone_lost_isolated", &mut self.lone_lost_isolated, share, "above 0 and below 1");
    }
}
