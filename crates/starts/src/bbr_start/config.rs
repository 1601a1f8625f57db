//! Constants of BBR's start.

use flowstart_control::{InRange, InvalidConfig, Ranges};

use crate::StartConstants;
use crate::spacing::MILLION;

/// Constants of BBR's start. The defaults are those of draft-ietf-ccwg-bbr; `BbrStartConfig::v1`
/// and `v3` give those of the kernel modules.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct BbrStartConfig {
    /// Pacing rate in start-up as a multiple of the bandwidth found, 1 ..= 100; default 2.77, 4 ln
    /// 2 (`StartupPacingGain`; v1: 739/256).
    pub pacing_gain: f64,
    /// Window as a multiple of the bandwidth-delay product found, 1 ..= 100; default 2
    /// (`DefaultCwndGain`; v1: 739/256).
    pub cwnd_gain: f64,
    /// Pacing rate while the queue drains as a multiple of the bandwidth found, above 0 and below
    /// 1; default 0.5 (`DrainPacingGain`; v1 and v3: 88/256).
    pub drain_gain: f64,
    /// Draining ends after this many round trips even if more than the bandwidth-delay product is
    /// in flight; default 3. At least 1. (v1 and v3 have no such limit.)
    pub drain_rounds: u32,
    /// Share by which packets are paced below the rate meant, 0 .. 1; default 0.01
    /// (`PacingMarginPercent`).
    pub margin: f64,
    /// Whether the rate before the first round-trip sample is cut by the margin too; default false
    /// (v1: true).
    pub initial_margin: bool,
    /// Growth of the bandwidth per round that counts as growth, 1 ..= 10; default 1.25
    /// (`FullBandwidthThreshold`).
    pub plateau_growth: f64,
    /// Rounds without such growth that end start-up; default 3. At least 1.
    pub plateau_rounds: u32,
    /// Whether the plateau is looked for in the largest bandwidth so far (v1) or in the sample at
    /// the beginning of a round (default).
    pub plateau_of_maximum: bool,
    /// Share of the packets of a round that must be lost to end start-up, 0 ..= 1; default 0.02
    /// (`LossThresh`). 1: losses never do (v1).
    pub loss_share: f64,
    /// ACKs that report losses a round must have besides; default 6 (`StartupFullLossCnt`).
    pub loss_events: u32,
    /// Whether a congestion mark ends start-up, as for other starts; default false (BBR ignores
    /// classic marks).
    pub obey_marks: bool,
    /// Smallest window in packets; default 4 (`MinPipeCwnd`).
    pub min_cwnd: u32,
    /// Packets that the window has beyond the multiple of the bandwidth-delay product; default 0
    /// (v1: three bursts, 3).
    pub extra_packets: u32,
}

impl Default for BbrStartConfig {
    fn default() -> Self {
        Self {
            pacing_gain: 2.77,
            cwnd_gain: 2.0,
            drain_gain: 0.5,
            drain_rounds: 3,
            margin: 0.01,
            initial_margin: false,
            plateau_growth: 1.25,
            plateau_rounds: 3,
            plateau_of_maximum: false,
            loss_share: 0.02,
            loss_events: 6,
            obey_marks: false,
            min_cwnd: 4,
            extra_packets: 0,
        }
    }
}

impl BbrStartConfig {
    /// The constants of Linux 6.1.192 `tcp_bbr`.
    #[must_use]
    pub fn v1() -> Self {
        Self {
            pacing_gain: 739.0 / 256.0,
            cwnd_gain: 739.0 / 256.0,
            drain_gain: 88.0 / 256.0,
            drain_rounds: u32::MAX,
            initial_margin: true,
            plateau_of_maximum: true,
            loss_share: 1.0,
            extra_packets: 3,
            ..Self::default()
        }
    }

    /// The constants of the kernel module of BBR version 3.
    #[must_use]
    pub fn v3() -> Self {
        Self {
            pacing_gain: 710.0 / 256.0,
            drain_gain: 88.0 / 256.0,
            drain_rounds: u32::MAX,
            initial_margin: true,
            loss_share: 5.0 / 256.0,
            ..Self::default()
        }
    }
}

impl StartConstants for BbrStartConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        self.check()
    }
}

impl InRange for BbrStartConfig {
    fn ranges(&mut self, ranges: &mut Ranges) {
        // What rounds to a millionth at least, and to less than a whole: else nothing would leave.
        let least = 0.5 / MILLION as f64;
        ranges.of("pacing_gain", &mut self.pacing_gain, 1.0..=100.0, "between 1 and 100");
        ranges.of("cwnd_gain", &mut self.cwnd_gain, 1.0..=100.0, "between 1 and 100");
        ranges.of("drain_gain", &mut self.drain_gain, least..1.0, "above 0 and below 1");
        ranges.of("drain_rounds", &mut self.drain_rounds, 1.., "at least 1");
        ranges.of("margin", &mut self.margin, 0.0..1.0 - least, "at least 0 and below 1");
        ranges.of("plateau_growth", &mut self.plateau_growth, 1.0..=10.0, "between 1 and 10");
        ranges.of("plateau_rounds", &mut self.plateau_rounds, 1.., "at least 1");
        ranges.of("loss_share", &mut self.loss_share, 0.0..=1.0, "between 0 and 1");
    }
}
