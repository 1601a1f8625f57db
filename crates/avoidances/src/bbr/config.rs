//! Constants of BBR.

use flowstart_control::InvalidConfig;
use flowstart_units::Span;

use crate::AvoidanceConstants;

/// Constants of BBR after its start. The defaults are those of Linux 6.1 `tcp_bbr`, which are those
/// of Cardwell et al., "BBR: congestion-based congestion control" (ACM Queue 14(5), 2016), where
/// that gives them.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct BbrConfig {
    /// Pacing rate in the phase that looks for more bandwidth, as a multiple of the bandwidth, 1
    /// ..= 4; default 1.25 (`bbr_pacing_gain[0]`).
    pub probe_gain: f64,
    /// Pacing rate in the phase after it, which drains what the first one queued, above 0, at most
    /// 1; default 0.75 (`bbr_pacing_gain[1]`).
    pub drain_gain: f64,
    /// Phases of a cycle, the rest of which go at the bandwidth itself, 3 ..= 64; default 8
    /// (`CYCLE_LEN`).
    pub cycle_phases: u32,
    /// Window as a multiple of the bandwidth-delay product, 1 ..= 10; default 2 (`bbr_cwnd_gain`).
    pub cwnd_gain: f64,
    /// Share by which packets are paced below the rate meant, 0 .. 1; default 0.01
    /// (`bbr_pacing_margin_percent`).
    pub margin: f64,
    /// Round trips that a bandwidth is remembered, 1 ..= 16; default 10 (`bbr_bw_rtts`).
    pub bandwidth_rounds: u32,
    /// How long a smallest RTT is remembered; default 10 s (`bbr_min_rtt_win_sec`).
    pub min_rtt_window: Span,
    /// How long the window is kept at `min_cwnd` to measure the RTT of an empty path; default 200
    /// ms (`bbr_probe_rtt_mode_ms`).
    pub probe_rtt: Span,
    /// Smallest window in packets, at least 1; default 4 (`bbr_cwnd_min_target`).
    pub min_cwnd: u32,
    /// Packets beyond the multiple of the bandwidth-delay product, for three bursts of two packets,
    /// at most 1000; default 6 (`bbr_quantization_budget`, with the two segments of
    /// `bbr_min_tso_segs` from 1.2 Mbit/s on).
    pub burst_packets: u32,
    /// Packets beyond that in the phase that looks for more, at most 1000; default 2
    /// (`bbr_quantization_budget`).
    pub probe_packets: u32,
    /// Round trips that the excess of aggregated ACKs is remembered, in two slots; default 5
    /// (`bbr_extra_acked_win_rtts`). At least 1.
    pub aggregation_rounds: u32,
    /// The window holds packets for this much time of aggregated ACKs at most; default 100 ms
    /// (`bbr_extra_acked_max_us`), zero for none.
    pub aggregation_most: Span,
}

impl Default for BbrConfig {
    fn default() -> Self {
        Self {
            probe_gain: 1.25,
            drain_gain: 0.75,
            cycle_phases: 8,
            cwnd_gain: 2.0,
            margin: 0.01,
            bandwidth_rounds: 10,
            min_rtt_window: Span::from_secs(10),
            probe_rtt: Span::from_millis(200),
            min_cwnd: 4,
            burst_packets: 6,
            probe_packets: 2,
            aggregation_rounds: 5,
            aggregation_most: Span::from_millis(100),
        }
    }
}

/// Most rounds that a bandwidth can be remembered.
pub(super) const MOST_ROUNDS: u32 = 16;
/// Most packets for bursts.
const MOST_PACKETS: u32 = 1_000;

impl BbrConfig {
    /// The constants, those out of range moved to the nearest value in range.
    pub(super) fn in_range(&self) -> Self {
        let within = |value: f64, low: f64, high: f64| if value >= low { value.min(high) } else { low };
        Self {
            probe_gain: within(self.probe_gain, 1.0, 4.0),
            drain_gain: within(self.drain_gain, 0.01, 1.0),
            cycle_phases: self.cycle_phases.clamp(3, 64),
            cwnd_gain: within(self.cwnd_gain, 1.0, 10.0),
            margin: within(self.margin, 0.0, 0.99),
            bandwidth_rounds: self.bandwidth_rounds.clamp(1, MOST_ROUNDS),
            min_cwnd: self.min_cwnd.max(1),
            burst_packets: self.burst_packets.min(MOST_PACKETS),
            probe_packets: self.probe_packets.min(MOST_PACKETS),
            aggregation_rounds: self.aggregation_rounds.max(1),
            ..*self
        }
    }
}

impl AvoidanceConstants for BbrConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        let check = InvalidConfig::unless;
        check((1.0..=4.0).contains(&self.probe_gain), "probe_gain", "between 1 and 4")?;
        check(self.drain_gain > 0.0 && self.drain_gain <= 1.0, "drain_gain", "above 0 and at most 1")?;
        check((3..=64).contains(&self.cycle_phases), "cycle_phases", "between 3 and 64")?;
        check((1.0..=10.0).contains(&self.cwnd_gain), "cwnd_gain", "between 1 and 10")?;
        check((0.0..1.0).contains(&self.margin), "margin", "at least 0 and below 1")?;
        check((1..=MOST_ROUNDS).contains(&self.bandwidth_rounds), "bandwidth_rounds", "between 1 and 16")?;
        check(self.min_cwnd >= 1, "min_cwnd", "at least 1 packet")?;
        check(self.burst_packets <= MOST_PACKETS, "burst_packets", "at most 1000")?;
        check(self.probe_packets <= MOST_PACKETS, "probe_packets", "at most 1000")?;
        check(self.aggregation_rounds >= 1, "aggregation_rounds", "at least 1")
    }
}
