//! Segmentation offload as Linux uses it: configuration, and the size of a burst.

use flowstart_congestion::InvalidConfig;
use flowstart_units::{Bytes, Rate, Span};
#[cfg(feature = "serde")]
use {
    schemars::JsonSchema,
    serde::{Deserialize, Serialize},
};

/// What the network layer takes off the largest burst for its headers (`MAX_TCP_HEADER` + 1).
const HEADROOM: u64 = 321;
/// From this many halvings on, a short round trip adds nothing to a burst (bits of
/// `sk_gso_max_size`).
const HALVINGS: u64 = 32;

/// New data leaves in bursts of several segments at one instant (TSO, GSO), sized by the pacing
/// rate and held back until they are worth it. The defaults are those of Linux 6.18.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(default, deny_unknown_fields))]
pub struct Offload {
    /// Largest burst; default 64 KiB (`gso_max_size`).
    pub largest: Bytes,
    /// Smallest burst in segments, where there is as much to send, of avoidances that do not say
    /// so themselves as BBR does; default 2 (`net.ipv4.tcp_min_tso_segs`).
    pub least: u32,
    /// A burst is what the pacing rate carries in 1 s / 2^this; default 10, that is 0.98 ms
    /// (`sk_pacing_shift`).
    pub pacing_shift: u32,
    /// A burst is larger by `largest` / 2^(smallest RTT in us / 2^this); default 9
    /// (`net.ipv4.tcp_tso_rtt_log`).
    pub rtt_log: u32,
    /// A burst waits for more room only while less than 1 / this of the window is free; default 3
    /// (`net.ipv4.tcp_tso_win_divisor`), 0 for never.
    pub window_divisor: u32,
}

impl Default for Offload {
    fn default() -> Self {
        Self { largest: Bytes::new(65_536), least: 2, pacing_shift: 10, rtt_log: 9, window_divisor: 3 }
    }
}

impl Offload {
    /// Checks that every value is in its range.
    ///
    /// # Errors
    /// Names the first field that is not, and what it must be.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let unless = InvalidConfig::unless;
        unless((1..=1 << 20).contains(&self.largest.get()), "offload.largest", "between 1 byte and 1 MiB")?;
        unless((1..=1000).contains(&self.least), "offload.least", "between 1 and 1000 segments")?;
        unless(self.pacing_shift <= 40, "offload.pacing_shift", "at most 40")?;
        unless(self.rtt_log <= 40, "offload.rtt_log", "at most 40")
    }

    /// Segments of a full burst (`tcp_tso_autosize`). `rate` is what the window amounts to, or what
    /// packets are paced at, `least` what the avoidance says of the smallest burst
    /// (`tcp_tso_segs`).
    pub(crate) fn segments(&self, mss: u32, rate: Option<Rate>, min_rtt: Span, least: Option<u32>) -> u32 {
        let (mss, largest) = (u64::from(mss.max(1)), self.largest.get());
        let paced = rate.map_or(u64::MAX, |rate| rate.as_bps() / 8) >> self.pacing_shift.min(63);
        let halvings = min_rtt.as_micros() >> self.rtt_log.min(63);
        let short = if halvings < HALVINGS { largest >> halvings } else { 0 };
        let bytes = paced.saturating_add(short).min(largest);
        let least = u64::from(least.unwrap_or(self.least));
        u32::try_from((bytes / mss).max(least).min(self.most(mss)).max(1)).unwrap_or(u32::MAX)
    }

    /// Segments that fit into the largest burst.
    fn most(&self, mss: u64) -> u64 {
        (self.largest.get().saturating_sub(HEADROOM) / mss).max(1)
    }

    /// Bytes from this one of the stream to the end of the buffer it is in. What is written is kept
    /// in buffers of as many whole segments as the largest burst has (`tcp_xmit_size_goal`); here
    /// the first of them begins with the stream.
    pub(crate) fn left_of_buffer(&self, mss: u32, seq: u64) -> u64 {
        let buffer = self.buffer(mss);
        buffer - seq % buffer
    }

    /// Payload bytes of a buffer.
    pub(crate) fn buffer(&self, mss: u32) -> u64 {
        let mss = u64::from(mss.max(1));
        self.most(mss) * mss
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's arithmetic by hand: 20 ms >> 9 = 39 halvings leave nothing, 2 ms 8192 bytes.
    #[test]
    fn a_burst_is_a_millisecond_of_the_rate_and_more_over_short_paths() {
        let segments =
            |mbps: u64, rtt: Span| Offload::default().segments(1448, Some(Rate::from_bps(mbps * 1_000_000)), rtt, None);
        let far = Span::from_millis(20);
        assert_eq!([1, 12, 58, 116, 232, 400, 10_000].map(|mbps| segments(mbps, far)), [2, 2, 4, 9, 19, 33, 45]);
        // 2000 us >> 9 = 3: 65 536 >> 3 = 8192 B more.
        assert_eq!([1, 12, 116].map(|mbps| segments(mbps, Span::from_millis(2))), [5, 6, 15]);
        assert_eq!(Offload::default().segments(1448, None, far, None), 45);
        let single = Offload { largest: Bytes::new(1), ..Offload::default() };
        assert_eq!(single.segments(1448, None, far, None), 1);
    }

    #[test]
    fn figures_out_of_range_are_named() {
        assert_eq!(Offload::default().validate(), Ok(()));
        let field = |offload: Offload| offload.validate().unwrap_err().field;
        assert_eq!(field(Offload { largest: Bytes::ZERO, ..Offload::default() }), "offload.largest");
        assert_eq!(field(Offload { least: 0, ..Offload::default() }), "offload.least");
        assert_eq!(field(Offload { pacing_shift: 41, ..Offload::default() }), "offload.pacing_shift");
        assert_eq!(field(Offload { rtt_log: 41, ..Offload::default() }), "offload.rtt_log");
    }
}
