//! Looks after the answer.

use flowstart_control::{InRange, Ranges};
use flowstart_units::Span;

/// Looks after the answer: while the connection has a queue, a lone packet on the other one now and
/// then. All constants are this project's own.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct WatchConfig {
    /// Least time between looks in a queue that is shared, or may be; default 500 ms, 0 for no
    /// looks at all. A look is the `lone` packets of the detector.
    pub interval: Span,
    /// The same in a queue of one's own; default 0, so that there is always one on the way while
    /// there is a queue to look at: that queue is kept short, so something has changed.
    pub interval_isolated: Span,
    /// After so many looks evidence counts half, at least 1; default 20.
    pub memory: f64,
    /// The smallest RTT is forgotten after this time, so that a longer path is noticed, at least 1
    /// ms; default 10 s (as `delay_target`).
    pub min_rtt_window: Span,
    /// A look of which an ACK is still missing after so many round trips is given up, at least 1;
    /// default 2.
    pub patience_rtts: f64,
    /// Packets whose ACKs tell the time that the bottleneck takes for one, at least 2; default 32.
    pub service_packets: u32,
}

impl Default for WatchConfig {
    fn default() -> Self {
        Self {
            interval: Span::from_millis(500),
            interval_isolated: Span::ZERO,
            memory: 20.0,
            min_rtt_window: Span::from_secs(10),
            patience_rtts: 2.0,
            service_packets: 32,
        }
    }
}

impl InRange for WatchConfig {
    fn ranges(&mut self, ranges: &mut Ranges) {
        ranges.of("memory", &mut self.memory, 1.0.., "at least 1");
        ranges.of("min_rtt_window", &mut self.min_rtt_window, Span::from_millis(1).., "at least 1 ms");
        ranges.of("patience_rtts", &mut self.patience_rtts, 1.0..=1000.0, "between 1 and 1000");
        ranges.of("service_packets", &mut self.service_packets, 2..=100_000, "between 2 and 100 000");
    }
}
