//! Constants of BBR's start.

use flowstart_control::{InvalidConfig, nearest_within};

use crate::StartConstants;

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

    /// The constants, those out of range moved to the nearest value in range.
    pub(super) fn in_range(&self) -> Self {
        Self {
            pacing_gain: nearest_within(self.pacing_gain, 1.0, 100.0),
            cwnd_gain: nearest_within(self.cwnd_gain, 1.0, 100.0),
            drain_gain: nearest_within(self.drain_gain, 0.01, 0.99),
            drain_rounds: self.drain_rounds.max(1),
            margin: nearest_within(self.margin, 0.0, 0.99),
            plateau_growth: nearest_within(self.plateau_growth, 1.0, 10.0),
            plateau_rounds: self.plateau_rounds.max(1),
            loss_share: nearest_within(self.loss_share, 0.0, 1.0),
            ..*self
        }
    }
}

impl StartConstants for BbrStartConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        let check = InvalidConfig::unless;
        let gain = 1.0..=100.0;
        check(gain.contains(&self.pacing_gain), "pacing_gain", "between 1 and 100")?;
        check(gain.contains(&self.cwnd_gain), "cwnd_gain", "between 1 and 100")?;
        check(self.drain_gain > 0.0 && self.drain_gain < 1.0, "drain_gain", "above 0 and below 1")?;
        check(self.drain_rounds >= 1, "drain_rounds", "at least 1")?;
        check((0.0..1.0).contains(&self.margin), "margin", "at least 0 and below 1")?;
        check((1.0..=10.0).contains(&self.plateau_growth), "plateau_growth", "between 1 and 10")?;
        check(self.plateau_rounds >= 1, "plateau_rounds", "at least 1")?;
        check((0.0..=1.0).contains(&self.loss_share), "loss_share", "between 0 and 1")
    }
}
