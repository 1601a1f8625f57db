//! How large a receive window Linux offers: configuration.

use flowstart_control::InvalidConfig;
use flowstart_units::Bytes;
#[cfg(feature = "serde")]
use {
    schemars::JsonSchema,
    serde::{Deserialize, Serialize},
};

/// Share of a buffer that is offered as window before anything is known of segments, in 256ths
/// (`TCP_DEFAULT_SCALING_RATIO`; `tcp_adv_win_scale` = 1).
pub(crate) const HALF: u64 = 128;
/// Largest window without scaling (RFC 9293 section 3.1).
const LARGEST_UNSCALED: u64 = 65_535;
/// Largest shift of the window scale option (RFC 7323 section 2.3).
const LARGEST_SCALE: u32 = 14;

/// Whose rules decide how the receive window grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub enum WindowRules {
    /// Linux 6.1 (2022): half of the buffer is window; the buffer holds twice what was read in a
    /// round trip, 16 segments and four times the growth since the last one; at most 6 MiB.
    #[cfg_attr(feature = "serde", serde(rename = "6.1"))]
    Linux6_1,
    /// Linux 6.18 (2025): the share of the buffer that is window follows from the memory that a
    /// segment takes; the buffer holds twice what was read in a round trip, four times its growth
    /// and what lies behind a gap; at most 32 MiB.
    #[default]
    #[cfg_attr(feature = "serde", serde(rename = "6.18"))]
    Linux6_18,
}

/// A receive window that grows as Linux's does. Segments with which it grows are acknowledged at
/// once.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(default, deny_unknown_fields))]
pub struct ReceiveWindow {
    /// Whose rules; default "6.18".
    pub rules: WindowRules,
    /// Receive buffer at first; default 128 KiB (`net.ipv4.tcp_rmem`, second number).
    pub initial: Bytes,
    /// Largest receive buffer, at least `initial`; default 32 MiB with the rules of 6.18, 6 MiB
    /// with those of 6.1 (`net.ipv4.tcp_rmem`, third number).
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub max: Option<Bytes>,
    /// Memory that a segment takes beside its payload; default 856 B: a full segment lies in 2 KiB
    /// and has a descriptor of 256 B (`skb->truesize`; depends on the network card).
    pub overhead: Bytes,
    /// Largest segment announced, bytes; default: the sender's.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub mss: Option<u32>,
}

impl Default for ReceiveWindow {
    fn default() -> Self {
        Self {
            rules: WindowRules::Linux6_18,
            initial: Bytes::new(131_072),
            max: None,
            overhead: Bytes::new(856),
            mss: None,
        }
    }
}

impl ReceiveWindow {
    /// The window of a kernel by its default settings.
    #[must_use]
    pub fn of(rules: WindowRules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Checks that every value is in its range.
    ///
    /// # Errors
    /// Names the first field that is not, and what it must be.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let unless = InvalidConfig::unless;
        let sizes = 2048..=1 << 30;
        unless(sizes.contains(&self.initial.get()), "window.initial", "between 2 KiB and 1 GiB")?;
        unless(self.max.is_none_or(|max| sizes.contains(&max.get())), "window.max", "between 2 KiB and 1 GiB")?;
        unless(
            self.max.is_none_or(|max| max >= self.initial),
            "window.max",
            "at least window.initial (128 KiB if it is not given)",
        )?;
        unless(self.overhead.get() <= 65_536, "window.overhead", "at most 64 KiB")?;
        unless(self.mss.is_none_or(|mss| (1..=65_000).contains(&mss)), "window.mss", "between 1 and 65 000 bytes")
    }

    /// Largest receive buffer.
    pub(crate) fn most(&self) -> u64 {
        let most = match (self.max, self.rules) {
            (Some(max), _) => max.get(),
            (None, WindowRules::Linux6_1) => 6 << 20,
            (None, WindowRules::Linux6_18) => 32 << 20,
        };
        most.clamp(2048, 1 << 30).max(self.buffer())
    }

    /// Receive buffer at first.
    pub(crate) fn buffer(&self) -> u64 {
        self.initial.get().clamp(2048, 1 << 30)
    }

    /// Largest segment announced.
    pub(crate) fn announced(&self) -> u64 {
        u64::from(self.mss.unwrap_or(1448).clamp(1, 65_000))
    }

    /// The window that a SYN/ACK offers, in bytes (`tcp_select_initial_window`).
    #[must_use]
    pub fn first(&self) -> u64 {
        let (space, mss) = ((self.buffer() * HALF) >> 8, self.announced());
        let whole = if space > mss { space - space % mss } else { space };
        whole.min(LARGEST_UNSCALED)
    }

    /// How many bits the window is shifted, so that the largest buffer can be told.
    pub(crate) fn scale(&self) -> u32 {
        /// Largest buffer that an application may ask for (`net.core.rmem_max`).
        const ON_REQUEST: [u64; 2] = [212_992, 4 << 20];
        let on_request = ON_REQUEST[usize::from(self.rules == WindowRules::Linux6_18)];
        self.most().max(on_request).ilog2().saturating_sub(15).min(LARGEST_SCALE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_window_is_45_segments_and_the_scale_tells_the_largest_buffer() {
        let now = ReceiveWindow::default();
        assert_eq!((now.first(), now.scale(), now.most()), (65_160, 10, 33_554_432));
        let before = ReceiveWindow::of(WindowRules::Linux6_1);
        assert_eq!((before.first(), before.scale(), before.most()), (65_160, 7, 6_291_456));
        let small = ReceiveWindow { initial: Bytes::new(16_384), mss: Some(9000), ..now.clone() };
        assert_eq!(small.first(), 8192);
        let jumbo = ReceiveWindow { initial: Bytes::new(1 << 20), mss: Some(8948), ..now };
        assert_eq!(jumbo.first(), 65_535);
    }

    #[test]
    fn figures_out_of_range_are_named() {
        assert_eq!(ReceiveWindow::default().validate(), Ok(()));
        let field = |window: ReceiveWindow| window.validate().unwrap_err().field;
        let good = ReceiveWindow::default();
        assert_eq!(field(ReceiveWindow { initial: Bytes::new(2047), ..good.clone() }), "window.initial");
        assert_eq!(field(ReceiveWindow { max: Some(Bytes::new(2 << 30)), ..good.clone() }), "window.max");
        let with =
            |initial, max| ReceiveWindow { initial: Bytes::new(initial), max: Some(Bytes::new(max)), ..good.clone() };
        assert_eq!(field(with(10_000, 9_999)), "window.max");
        assert_eq!(with(10_000, 10_000).validate(), Ok(()));
        assert_eq!(field(ReceiveWindow { overhead: Bytes::new(1 << 20), ..good.clone() }), "window.overhead");
        assert_eq!(field(ReceiveWindow { mss: Some(0), ..good }), "window.mss");
    }
}
