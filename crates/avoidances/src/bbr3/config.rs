//! Constants of BBR version 3.

use flowstart_control::{InRange, InvalidConfig, Ranges, above};
use flowstart_units::Span;

use crate::AvoidanceConstants;

/// Constants of BBR version 3. The defaults, and the names in parentheses, are those of
/// draft-ietf-ccwg-bbr-06.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct Bbr3Config {
    /// Pacing rate in STARTUP as a multiple of the bandwidth, 1 ..= 100; default 2.77
    /// (`StartupPacingGain`).
    pub startup_gain: f64,
    /// Pacing rate in DRAIN as a multiple of the bandwidth, above 0 and below 1; default 0.5
    /// (`DrainPacingGain`).
    pub startup_drain_gain: f64,
    /// Round trips after which DRAIN ends in any case, at least 1; default 3 (section 5.3.2).
    pub drain_rounds: u32,
    /// Growth of the delivery rate per round trip that counts as growth, 1 ..= 10; default 1.25
    /// (section 5.3.1.2).
    pub plateau_growth: f64,
    /// Round trips without such growth after which the path is full, at least 1; default 3 (section
    /// 5.3.1.2).
    pub plateau_rounds: u32,
    /// ACKs that report losses in a round trip before its losses end STARTUP, at least 1; default 6
    /// (`StartupFullLossCnt`, which counts ranges lost).
    pub loss_events: u32,
    /// Share of the packets in flight that may be lost while probing, above 0 and below 1; default
    /// 0.02 (`LossThresh`).
    pub loss_share: f64,
    /// What losses leave of the short-term bounds at least, above 0 and below 1; default 0.7
    /// (`Beta`).
    pub beta: f64,
    /// Share of the long-term bound that is left to others, 0 .. 1; default 0.15 (`Headroom`).
    pub headroom: f64,
    /// Window as a multiple of the bandwidth-delay product, 1 ..= 10; default 2
    /// (`DefaultCwndGain`).
    pub cwnd_gain: f64,
    /// Pacing rate in ProbeBW_UP as a multiple of the bandwidth, 1 ..= 4; default 1.25.
    pub up_gain: f64,
    /// Window in ProbeBW_UP as a multiple of the bandwidth-delay product, 1 ..= 10; default 2.25.
    pub up_cwnd_gain: f64,
    /// Pacing rate in ProbeBW_DOWN as a multiple of the bandwidth, above 0, at most 1; default 0.9.
    pub down_gain: f64,
    /// Shortest wall-clock time between two probes of the bandwidth; default 2 s (section
    /// 5.3.3.8).
    pub probe_wait: Span,
    /// How much longer, at random; default 1 s (section 5.3.3.8).
    pub probe_wait_random: Span,
    /// Most round trips between two probes of the bandwidth, at least 1; default 63 (section
    /// 5.3.3.8).
    pub probe_rounds: u32,
    /// Share by which packets are paced below the rate meant, 0 .. 1; default 0.01
    /// (`PacingMarginPercent`).
    pub margin: f64,
    /// How long a smallest RTT is remembered; default 10 s (`MinRTTFilterLen`).
    pub min_rtt_window: Span,
    /// How long after the last smallest RTT it is probed; default 5 s (`ProbeRTTInterval`).
    pub probe_rtt_interval: Span,
    /// How long it is probed at least; default 200 ms (`ProbeRTTDuration`).
    pub probe_rtt: Span,
    /// Window then as a multiple of the bandwidth-delay product, above 0, at most 1; default 0.5
    /// (`ProbeRTTCwndGain`).
    pub probe_rtt_gain: f64,
    /// Smallest window in packets, at least 1; default 4 (`MinPipeCwnd`).
    pub min_cwnd: u32,
    /// Bursts that the window has room for at least, at most 1000; default 3 (section 5.5.8.1).
    pub bursts: u32,
    /// A burst has as many packets as are paced in this time, at least two; default 1 ms (section
    /// 5.6.3).
    pub burst_time: Span,
    /// Packets beyond the window in ProbeBW_UP, at most 1000; default 2 (section 5.6.4.2).
    pub probe_packets: u32,
    /// Round trips that the excess of aggregated ACKs is remembered, at least 1; default 10
    /// (`ExtraAckedFilterLen`).
    pub aggregation_rounds: u32,
}

impl Default for Bbr3Config {
    fn default() -> Self {
        Self {
            startup_gain: 2.77,
            startup_drain_gain: 0.5,
            drain_rounds: 3,
            plateau_growth: 1.25,
            plateau_rounds: 3,
            loss_events: 6,
            loss_share: 0.02,
            beta: 0.7,
            headroom: 0.15,
            cwnd_gain: 2.0,
            up_gain: 1.25,
            up_cwnd_gain: 2.25,
            down_gain: 0.9,
            probe_wait: Span::from_secs(2),
            probe_wait_random: Span::from_secs(1),
            probe_rounds: 63,
            margin: 0.01,
            min_rtt_window: Span::from_secs(10),
            probe_rtt_interval: Span::from_secs(5),
            probe_rtt: Span::from_millis(200),
            probe_rtt_gain: 0.5,
            min_cwnd: 4,
            bursts: 3,
            burst_time: Span::from_millis(1),
            probe_packets: 2,
            aggregation_rounds: 10,
        }
    }
}

/// Most bursts, or packets.
const MOST_PACKETS: u32 = 1_000;

impl AvoidanceConstants for Bbr3Config {
    fn draws(&self) -> bool {
        true
    }

    fn spaces(&self) -> Option<&'static str> {
        Some("paced at its own rate")
    }

    fn brings_start(&self) -> bool {
        true
    }

    fn validate(&self) -> Result<(), InvalidConfig> {
        self.check()
    }
}

impl InRange for Bbr3Config {
    fn ranges(&mut self, ranges: &mut Ranges) {
        let (share, part) = (above(0.0).below(1.0), above(0.0).up_to(1.0));
        ranges.of("startup_gain", &mut self.startup_gain, 1.0..=100.0, "between 1 and 100");
        ranges.of("startup_drain_gain", &mut self.startup_drain_gain, share, "above 0 and below 1");
        ranges.of("drain_rounds", &mut self.drain_rounds, 1.., "at least 1");
        ranges.of("plateau_growth", &mut self.plateau_growth, 1.0..=10.0, "between 1 and 10");
        ranges.of("plateau_rounds", &mut self.plateau_rounds, 1.., "at least 1");
        ranges.of("loss_events", &mut self.loss_events, 1.., "at least 1");
        ranges.of("loss_share", &mut self.loss_share, share, "above 0 and below 1");
        ranges.of("beta", &mut self.beta, share, "above 0 and below 1");
        ranges.of("headroom", &mut self.headroom, 0.0..1.0, "at least 0 and below 1");
        ranges.of("cwnd_gain", &mut self.cwnd_gain, 1.0..=10.0, "between 1 and 10");
        ranges.of("up_gain", &mut self.up_gain, 1.0..=4.0, "between 1 and 4");
        ranges.of("up_cwnd_gain", &mut self.up_cwnd_gain, 1.0..=10.0, "between 1 and 10");
        ranges.of("down_gain", &mut self.down_gain, part, "above 0 and at most 1");
        ranges.of("probe_rounds", &mut self.probe_rounds, 1.., "at least 1");
        ranges.of("margin", &mut self.margin, 0.0..1.0, "at least 0 and below 1");
        ranges.of("probe_rtt_gain", &mut self.probe_rtt_gain, part, "above 0 and at most 1");
        ranges.of("min_cwnd", &mut self.min_cwnd, 1.., "at least 1 packet");
        ranges.of("bursts", &mut self.bursts, ..=MOST_PACKETS, "at most 1000");
        ranges.of("probe_packets", &mut self.probe_packets, ..=MOST_PACKETS, "at most 1000");
        ranges.of("aggregation_rounds", &mut self.aggregation_rounds, 1.., "at least 1");
    }
}
