//! Constants of HyStart, which several starts fall back on. The algorithm is a start like others.

use flowstart_units::{Bytes, Span};

use crate::InvalidConfig;

/// Constants of HyStart; the defaults are those of Linux 6.1.192 (`tcp_cubic.c`).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct HystartConfig {
    /// The ACK train ends slow start. Default true (`hystart_detect`, bit 1).
    pub train_detector: bool,
    /// An increase of delay ends slow start. Default true (`hystart_detect`, bit 2).
    pub delay_detector: bool,
    /// No detection below this window, in packets; default 16 (`hystart_low_window`).
    pub low_window: u32,
    /// ACKs at most this far apart belong to a train; default 2 ms (`hystart_ack_delta_us`).
    pub ack_delta: Span,
    /// Upper bound of what a train may last longer than the smallest RTT, for aggregation; default
    /// 1 ms (`hystart_ack_delay`).
    pub max_cushion: Span,
    /// Bytes the sender may release at once: the cushion is the time of `cushion_bursts` of them at
    /// the pacing rate; default 65 536 bytes (`GSO_MAX_SIZE`).
    pub gso_max: Bytes,
    /// How many such bursts; default 4 (`hystart_ack_delay`).
    pub cushion_bursts: u64,
    /// RTT samples of a round before its delay is judged; the next sample is the first to be
    /// judged. Default 8 (`HYSTART_MIN_SAMPLES`).
    pub min_samples: u32,
    /// The delay threshold is the smallest RTT divided by this; default 8, at least 1
    /// (`HYSTART_DELAY_THRESH`).
    pub delay_divisor: u64,
    /// Lower bound of the delay threshold; default 4 ms (`HYSTART_DELAY_MIN`).
    pub min_delay_threshold: Span,
    /// Upper bound of the delay threshold; default 16 ms (`HYSTART_DELAY_MAX`).
    pub max_delay_threshold: Span,
    /// Whether the socket counts as paced, which doubles the allowed length of a train. Default: as
    /// the controller's pacing says.
    pub paced: Option<bool>,
    /// What RTTs are measured in; default 0, exactly (Linux: microseconds). ns-3 has timestamps in
    /// milliseconds.
    pub rtt_tick: Span,
    /// The ACK that ends a round is judged in it. Default false, in the next one (Linux). ns-3
    /// begins the next round after it has judged the ACK.
    pub round_ends_late: bool,
}

impl Default for HystartConfig {
    fn default() -> Self {
        Self {
            train_detector: true,
            delay_detector: true,
            low_window: 16,
            ack_delta: Span::from_millis(2),
            max_cushion: Span::from_millis(1),
            gso_max: Bytes::new(65_536),
            cushion_bursts: 4,
            min_samples: 8,
            delay_divisor: 8,
            min_delay_threshold: Span::from_millis(4),
            max_delay_threshold: Span::from_millis(16),
            paced: None,
            rtt_tick: Span::ZERO,
            round_ends_late: false,
        }
    }
}

impl HystartConfig {
    /// HyStart as ns-3 has it (`TcpCubic`, 2026): a train must last for the whole smallest RTT, the
    /// RTT must rise to twice the smallest, RTTs are in milliseconds, and the ACK that ends a round
    /// belongs to it.
    #[must_use]
    pub fn ns3() -> Self {
        Self {
            max_cushion: Span::ZERO,
            delay_divisor: 1,
            max_delay_threshold: Span::from_secs(1),
            paced: Some(true),
            rtt_tick: Span::from_millis(1),
            round_ends_late: true,
            ..Self::default()
        }
    }

    /// Checks that every constant is in its range.
    ///
    /// # Errors
    /// Names the first field that is not, and what it must be.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        InvalidConfig::unless(self.delay_divisor >= 1, "delay_divisor", "at least 1")?;
        InvalidConfig::unless(
            self.min_delay_threshold <= self.max_delay_threshold,
            "min_delay_threshold",
            "at most max_delay_threshold",
        )
    }
}
