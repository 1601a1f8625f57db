//! Constants of BBR.

use flowstart_control::{InRange, InvalidConfig, Ranges, above};
use flowstart_units::{Rate, Span};

use crate::AvoidanceConstants;

/// Constants of BBR version 1. The defaults are those of Linux 6.x `tcp_bbr`, which are those of
/// Cardwell et al., "BBR: congestion-based congestion control" (ACM Queue 14(5), 2016), where that
/// gives them.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct BbrConfig {
    /// Pacing rate and window in the start as a multiple of the bandwidth and of the
    /// bandwidth-delay product found, 1 ..= 100; default 739/256 = 2.89, 2/ln 2 rounded
    /// (`bbr_high_gain`). Where another start comes first it does not count, nor do the next three.
    pub startup_gain: f64,
    /// Pacing rate while the queue of the start drains as a multiple of the bandwidth found, above
    /// 0 and below 1; default 88/256 (`bbr_drain_gain`).
    pub startup_drain_gain: f64,
    /// Growth of the bandwidth per round trip that counts as growth, 1 ..= 10; default 1.25
    /// (`bbr_full_bw_thresh`).
    pub plateau_growth: f64,
    /// Round trips without such growth that end the start; default 3 (`bbr_full_bw_cnt`). At least
    /// 1.
    pub plateau_rounds: u32,
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
    /// Round trips that a bandwidth is remembered, 1 ..= 64; default 10 (`bbr_bw_rtts`).
    pub bandwidth_rounds: u32,
    /// How long a smallest RTT is remembered; default 10 s (`bbr_min_rtt_win_sec`).
    pub min_rtt_window: Span,
    /// How long the window is kept at `min_cwnd` to measure the RTT of an empty path; default 200
    /// ms (`bbr_probe_rtt_mode_ms`). Zero for never.
    pub probe_rtt: Span,
    /// Smallest window in packets, at least 1; default 4 (`bbr_cwnd_min_target`).
    pub min_cwnd: u32,
    /// Bursts that the window has room for beyond the multiple of the bandwidth-delay product, at
    /// most 1000; default 3 (`bbr_quantization_budget`).
    pub bursts: u32,
    /// A burst has as many packets as are paced in this time, at least two; default 1 s / 1024
    /// (`bbr_tso_segs_goal`, `sk_pacing_shift` 10).
    pub burst_time: Span,
    /// Below this pacing rate a burst may be a single packet; default 1.2 Mbit/s
    /// (`bbr_min_tso_rate`).
    pub single_packets_below: Rate,
    /// Packets beyond that in the phase that looks for more, at most 1000; default 2
    /// (`bbr_quantization_budget`).
    pub probe_packets: u32,
    /// Round trips that the excess of aggregated ACKs is remembered, in two slots; default 5
    /// (`bbr_extra_acked_win_rtts`). At least 1.
    pub aggregation_rounds: u32,
    /// The window holds packets for this much time of aggregated ACKs at most; default 100 ms
    /// (`bbr_extra_acked_max_us`), zero for none.
    pub aggregation_most: Span,
    /// Round trips that a stretch has at least whose throughput may be a policer's; default 4
    /// (`bbr_lt_intvl_min_rtts`).
    pub policer_rounds: u32,
    /// A stretch lasts at most this many times as many, at least 1; default 4
    /// (`bbr_lt_bw_sampling`).
    pub policer_stretch: u32,
    /// Packets lost per packet delivered in such a stretch, at least 0; default 50/256
    /// (`bbr_lt_loss_thresh`).
    pub policer_loss_share: f64,
    /// Throughputs of two stretches that differ by this share, at least 0, are the same; default
    /// 1/8 (`bbr_lt_bw_ratio`).
    pub policer_ratio: f64,
    /// So are those that differ by no more than this; default 4 kbit/s (`bbr_lt_bw_diff`).
    pub policer_difference: Rate,
    /// Round trips for which the throughput found is the bandwidth; default 48
    /// (`bbr_lt_bw_max_rtts`). 0: policers are not looked for.
    pub policer_use_rounds: u32,
}

impl Default for BbrConfig {
    fn default() -> Self {
        Self {
            startup_gain: 739.0 / 256.0,
            startup_drain_gain: 88.0 / 256.0,
            plateau_growth: 1.25,
            plateau_rounds: 3,
            probe_gain: 1.25,
            drain_gain: 0.75,
            cycle_phases: 8,
            cwnd_gain: 2.0,
            margin: 0.01,
            bandwidth_rounds: 10,
            min_rtt_window: Span::from_secs(10),
            probe_rtt: Span::from_millis(200),
            min_cwnd: 4,
            bursts: 3,
            burst_time: Span::from_nanos(976_563),
            single_packets_below: Rate::from_bps(1_200_000),
            probe_packets: 2,
            aggregation_rounds: 5,
            aggregation_most: Span::from_millis(100),
            policer_rounds: 4,
            policer_stretch: 4,
            policer_loss_share: 50.0 / 256.0,
            policer_ratio: 0.125,
            policer_difference: Rate::from_bps(4_000),
            policer_use_rounds: 48,
        }
    }
}

/// Most rounds that a bandwidth can be remembered.
const MOST_ROUNDS: u32 = 64;
/// Most bursts, or packets.
const MOST_PACKETS: u32 = 1_000;

impl AvoidanceConstants for BbrConfig {
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

impl InRange for BbrConfig {
    fn ranges(&mut self, ranges: &mut Ranges) {
        let from_0 = 0.0..=f64::INFINITY;
        ranges.of("startup_gain", &mut self.startup_gain, 1.0..=100.0, "between 1 and 100");
        ranges.of("startup_drain_gain", &mut self.startup_drain_gain, above(0.0).below(1.0), "above 0 and below 1");
        ranges.of("plateau_growth", &mut self.plateau_growth, 1.0..=10.0, "between 1 and 10");
        ranges.of("plateau_rounds", &mut self.plateau_rounds, 1.., "at least 1");
        ranges.of("probe_gain", &mut self.probe_gain, 1.0..=4.0, "between 1 and 4");
        ranges.of("drain_gain", &mut self.drain_gain, above(0.0).up_to(1.0), "above 0 and at most 1");
        ranges.of("cycle_phases", &mut self.cycle_phases, 3..=64, "between 3 and 64");
        ranges.of("cwnd_gain", &mut self.cwnd_gain, 1.0..=10.0, "between 1 and 10");
        ranges.of("margin", &mut self.margin, 0.0..1.0, "at least 0 and below 1");
        ranges.of("bandwidth_rounds", &mut self.bandwidth_rounds, 1..=MOST_ROUNDS, "between 1 and 64");
        ranges.of("min_cwnd", &mut self.min_cwnd, 1.., "at least 1 packet");
        ranges.of("bursts", &mut self.bursts, ..=MOST_PACKETS, "at most 1000");
        ranges.of("probe_packets", &mut self.probe_packets, ..=MOST_PACKETS, "at most 1000");
        ranges.of("aggregation_rounds", &mut self.aggregation_rounds, 1.., "at least 1");
        ranges.of("policer_stretch", &mut self.policer_stretch, 1.., "at least 1");
        ranges.of("policer_loss_share", &mut self.policer_loss_share, from_0.clone(), "at least 0");
        ranges.of("policer_ratio", &mut self.policer_ratio, from_0, "at least 0");
    }
}
