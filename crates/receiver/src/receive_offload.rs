//! Receive offload as Linux uses it: configuration.

use flowstart_control::InvalidConfig;
use flowstart_units::{Bytes, Span};
#[cfg(feature = "serde")]
use {
    schemars::JsonSchema,
    serde::{Deserialize, Serialize},
};

/// IP and TCP header of a merged packet, timestamps included.
const HEADERS: u64 = 52;

/// Segments that arrive close together reach the connection as one (GRO): one ACK for all of them.
/// The defaults are those of Linux 6.18 with a network card of the `ice` driver.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(default, deny_unknown_fields))]
pub struct ReceiveOffload {
    /// The host looks at what arrived so long after the first packet; default 50 us (interrupt
    /// moderation, `ethtool -c`: `rx-usecs`; `ICE_DFLT_RX_ITR`). Where `gro_flush_timeout` is set
    /// and longer, that. Zero: packets of one instant only.
    pub interval: Span,
    /// Largest merged packet, headers included; default 64 KiB (`gro_max_size`).
    pub largest: Bytes,
    /// Packets that are looked at at once, even before their time is over; default 64 (the weight
    /// of NAPI, `NAPI_POLL_WEIGHT`).
    pub most: u32,
}

impl Default for ReceiveOffload {
    fn default() -> Self {
        Self { interval: Span::from_micros(50), largest: Bytes::new(65_536), most: 64 }
    }
}

impl ReceiveOffload {
    /// Checks that every value is in its range.
    ///
    /// # Errors
    /// Names the first field that is not, and what it must be.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let unless = |holds, field, must| if holds { Ok(()) } else { Err(InvalidConfig { field, must }) };
        unless(self.interval <= Span::from_secs(1), "offload.interval", "at most 1 s")?;
        unless((1..=1 << 20).contains(&self.largest.get()), "offload.largest", "between 1 byte and 1 MiB")?;
        unless((1..=10_000).contains(&self.most), "offload.most", "between 1 and 10 000 packets")
    }

    /// Most payload of a merged packet, which is shorter than `largest` (`skb_gro_receive`).
    pub(crate) fn payload(&self) -> u64 {
        self.largest.get().saturating_sub(HEADERS + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_out_of_range_are_named() {
        assert_eq!(ReceiveOffload::default().validate(), Ok(()));
        let field = |offload: ReceiveOffload| offload.validate().unwrap_err().field;
        let offload = ReceiveOffload::default;
        assert_eq!(field(ReceiveOffload { interval: Span::from_secs(2), ..offload() }), "offload.interval");
        assert_eq!(field(ReceiveOffload { largest: Bytes::ZERO, ..offload() }), "offload.largest");
        assert_eq!(field(ReceiveOffload { most: 0, ..offload() }), "offload.most");
    }
}
