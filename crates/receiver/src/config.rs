//! How the receiver behaves. Every constant of an algorithm is a field here; the defaults are those
//! of Linux 6.1.

use flowstart_control::InvalidConfig;
use flowstart_units::{Bytes, Span};
#[cfg(feature = "serde")]
use {
    schemars::JsonSchema,
    serde::{Deserialize, Serialize},
};

use crate::{ReceiveOffload, ReceiveWindow};

/// How the endpoints use explicit congestion notification. Both ends must be set alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum EcnMode {
    /// No ECN: every packet is Not-ECT.
    #[default]
    Off,
    /// RFC 3168: new data is ECT(0), retransmissions and ACKs are Not-ECT; the receiver repeats ECE
    /// until it sees CWR.
    Classic,
    /// RFC 8257: every packet is ECT(0); ECE tells the mark of the last segment and an ACK leaves
    /// at every change.
    Dctcp,
    /// Accurate ECN (RFC 9768): new data and retransmissions are ECT; ACKs carry the count of
    /// marked packets.
    Accurate,
}

/// What the receiver counts before it sends an ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum AckCounting {
    /// Bytes: more than `ack_every` - 1 of the largest segments seen (Linux `__tcp_ack_snd_check`).
    #[default]
    Bytes,
    /// Segments of any size (ns-3 `DelAckCount`).
    Packets,
}

/// The receiving endpoint. The defaults are those of Linux 6.1 without receive offload.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(default, deny_unknown_fields))]
pub struct ReceiverConfig {
    /// Bytes of IP and TCP header on an ACK without SACK option; default 52.
    pub header_bytes: u16,
    /// Bytes of a SYN/ACK's IP packet; default 60.
    pub syn_bytes: u16,
    /// Congestion marks; as at the sender.
    pub ecn: EcnMode,
    /// In-order segments per ACK, at least 1; default 2 (RFC 5681 section 4.2). 1 turns delayed
    /// ACKs off.
    pub ack_every: u32,
    /// What `ack_every` counts.
    pub ack_counting: AckCounting,
    /// Delay of an ACK for fewer segments; default 40 ms (`TCP_ATO_MIN`).
    pub ack_delay: Span,
    /// True (default): the delay follows the gaps between segments (Linux `tcp_event_data_recv`).
    /// False: it is always `ack_delay`.
    pub adaptive_delay: bool,
    /// Largest delay of an ACK, at least `ack_delay`; default 200 ms (`TCP_DELACK_MAX`). Needs
    /// `adaptive_delay`; without it it only has to be as long as `ack_delay`.
    pub ack_delay_max: Span,
    /// Most ACKs sent at once at the beginning and after trouble, whatever `ack_every` says; 0 for
    /// none, default 16 (`TCP_MAX_QUICKACKS`).
    pub quick_acks: u32,
    /// What is pushed, and what is shorter than a full segment, is acknowledged as soon as the
    /// application has read all that there is (Linux 6.6 and later, `tcp_measure_rcv_mss`,
    /// `tcp_cleanup_rbuf`). Default false; true where the sender has an offload, whose bursts are
    /// pushed.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub ack_pushed: Option<bool>,
    /// Segment size assumed before one was seen; default 536 (`TCP_MSS_DEFAULT`).
    pub initial_mss: u32,
    /// After three immediate ones, ACKs of out-of-order data wait up to this long for more; zero
    /// turns it off; default 1 ms (`tcp_comp_sack_delay_ns`).
    pub compressed_sack_delay: Span,
    /// ... but no longer than this share of the RTT in percent, 0 ..= 100; default 5
    /// (`tcp_ack_snd_check`). Needs a `compressed_sack_delay`; 0 turns it off, too.
    pub compressed_sack_rtt_percent: u32,
    /// ... and at most this many ACKs are saved; default 44 (`tcp_comp_sack_nr`). Needs a
    /// `compressed_sack_delay` and a share of the RTT.
    pub compressed_sack_count: u32,
    /// ACKs are held back for this long and merged into one, as links that aggregate frames do;
    /// default none.
    pub ack_aggregation: Option<Span>,
    /// ... but at most this many, at least 1; default any number. With receive offload one ACK is
    /// for at most 64 kB.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub ack_aggregation_most: Option<u32>,
    /// Receive buffer: bytes in order that the application has not read are taken off the window;
    /// default none (the window never limits).
    pub receive_buffer: Option<Bytes>,
    /// A receive window that grows as Linux's does, instead of `receive_buffer`; default none.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub window: Option<ReceiveWindow>,
    /// Segments that arrive close together are merged and acknowledged as one (GRO); default none.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub offload: Option<ReceiveOffload>,
    /// True (default): the application reads at once.
    pub auto_read: bool,
    /// Smallest variance term of the receiver's own timeout estimate, which bounds ACK delays and
    /// ends quick ACKs; default 200 ms.
    pub min_rto: Span,
    /// That timeout before an RTT is known; default 1 s.
    pub initial_rto: Span,
}

impl Default for ReceiverConfig {
    fn default() -> Self {
        Self {
            header_bytes: 52,
            syn_bytes: 60,
            ecn: EcnMode::Off,
            ack_every: 2,
            ack_counting: AckCounting::Bytes,
            ack_delay: Span::from_millis(40),
            adaptive_delay: true,
            ack_delay_max: Span::from_millis(200),
            quick_acks: 16,
            ack_pushed: None,
            initial_mss: 536,
            compressed_sack_delay: Span::from_millis(1),
            compressed_sack_rtt_percent: 5,
            compressed_sack_count: 44,
            ack_aggregation: None,
            ack_aggregation_most: None,
            receive_buffer: None,
            window: None,
            offload: None,
            auto_read: true,
            min_rto: Span::from_millis(200),
            initial_rto: Span::from_secs(1),
        }
    }
}

impl ReceiverConfig {
    /// Checks that every value is in its range. A receiver made from values out of range works,
    /// with the nearest value in range.
    ///
    /// # Errors
    /// Names the first field that is not, and what it must be.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let unless = InvalidConfig::unless;
        unless(self.header_bytes <= 500, "header_bytes", "at most 500 bytes")?;
        unless(self.ack_every >= 1, "ack_every", "at least 1 segment")?;
        unless(self.ack_delay <= self.ack_delay_max, "ack_delay", "at most `ack_delay_max`")?;
        unless(self.initial_mss >= 1, "initial_mss", "at least 1 byte")?;
        unless(self.compressed_sack_rtt_percent <= 100, "compressed_sack_rtt_percent", "between 0 and 100")?;
        unless(self.ack_aggregation_most.is_none_or(|most| most > 0), "ack_aggregation_most", "at least 1 ACK")?;
        unless(self.receive_buffer.is_none_or(|b| b.get() > 0), "receive_buffer", "at least 1 byte")?;
        self.window.as_ref().map_or(Ok(()), ReceiveWindow::validate)?;
        self.offload.as_ref().map_or(Ok(()), ReceiveOffload::validate)?;
        unless(
            self.window.is_none() || self.receive_buffer.is_none(),
            "receive_buffer",
            "left out if `window` is given: its `max` bounds the buffer",
        )?;
        unless(!self.initial_rto.is_zero(), "initial_rto", "more than zero")
    }

    /// An ACK for every segment, at once.
    #[must_use]
    pub fn every_segment() -> Self {
        Self { ack_every: 1, quick_acks: 0, compressed_sack_delay: Span::ZERO, ..Self::default() }
    }

    /// An ACK for every second segment or after 40 ms, from the first segment on: no quick ACKs, no
    /// compressed SACKs (RFC 5681 section 4.2; what ns-3 does).
    #[must_use]
    pub fn every_second_segment() -> Self {
        Self {
            ack_counting: AckCounting::Packets,
            adaptive_delay: false,
            quick_acks: 0,
            compressed_sack_delay: Span::ZERO,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_nonsense_is_named() {
        for receiver in
            [ReceiverConfig::default(), ReceiverConfig::every_segment(), ReceiverConfig::every_second_segment()]
        {
            assert_eq!(receiver.validate(), Ok(()));
        }
        let field = |config: ReceiverConfig| config.validate().unwrap_err().field;
        assert_eq!(field(ReceiverConfig { ack_every: 0, ..ReceiverConfig::default() }), "ack_every");
        let late = ReceiverConfig { ack_delay: Span::from_millis(201), ..ReceiverConfig::default() };
        assert_eq!(field(late), "ack_delay");
        let receiver = |bytes| ReceiverConfig { receive_buffer: Some(Bytes::new(bytes)), ..ReceiverConfig::default() };
        assert_eq!(field(receiver(0)), "receive_buffer");
        assert_eq!(receiver(1).validate(), Ok(()));
    }

    #[cfg(feature = "serde")]
    #[test]
    fn a_scenario_sets_single_fields_with_units_and_misspelt_ones_are_refused() {
        let receiver: ReceiverConfig =
            serde_json::from_str(r#"{ "ack_every": 4, "ack_delay": "25 ms", "receive_buffer": "64 KiB" }"#).unwrap();
        assert_eq!((receiver.ack_every, receiver.ack_delay), (4, Span::from_millis(25)));
        assert_eq!(receiver.receive_buffer, Some(Bytes::new(65_536)));
        assert!(serde_json::from_str::<ReceiverConfig>(r#"{ "ack_evry": 4 }"#).is_err());
    }
}
