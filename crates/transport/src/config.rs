//! How the two endpoints behave. Every constant of an algorithm is a field here; the defaults are those of Linux 6.1.

use flowstart_units::{Bytes, Span};
#[cfg(feature = "serde")]
use {
    schemars::JsonSchema,
    serde::{Deserialize, Serialize},
};

/// How the endpoints use explicit congestion notification. Both ends must be set alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum EcnMode {
    /// No ECN: every packet is Not-ECT.
    #[default]
    Off,
    /// RFC 3168: new data is ECT(0), retransmissions and ACKs are Not-ECT; the receiver repeats ECE until it sees CWR.
    Classic,
    /// RFC 8257: every packet is ECT(0); ECE tells the mark of the last segment and an ACK leaves at every change.
    Dctcp,
    /// Accurate ECN (RFC 9768): new data and retransmissions are ECT; ACKs carry the count of marked packets.
    Accurate,
}

/// How lost packets are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum LossDetection {
    /// Selective acknowledgements and RACK (RFC 2018, RFC 8985).
    #[default]
    Rack,
    /// Three duplicate ACKs and partial ACKs (RFC 6582); selective acknowledgements are ignored.
    NewReno,
}

/// How the window walks down to the threshold during a reduction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum Reduction {
    /// Proportional rate reduction dividing by the window before the reduction (Linux `tcp_cwnd_reduction`).
    #[default]
    Proportional,
    /// Proportional rate reduction dividing by the data in flight when recovery began (RFC 9937, RecoverFS).
    ProportionalRfc9937,
    /// The window is the threshold at once.
    Immediate,
}

/// How the retransmission timeout follows from round-trip times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum RtoRule {
    /// SRTT + the windowed maximum of 4 mean deviations, the latter at least `rto_min` (Linux `tcp_rtt_estimator`).
    #[default]
    Linux,
    /// max(`rto_min`, SRTT + max(tick, 4 RTTVAR)) (RFC 6298 section 2).
    Rfc6298,
}

/// The sending endpoint. The defaults are those of Linux 6.1 with an exact clock.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(default, deny_unknown_fields))]
pub struct SenderConfig {
    /// Most payload bytes per segment, 1 ..= 65 000; default 1448 (1500 minus IPv4, TCP and timestamps).
    pub mss: u32,
    /// Bytes of IP and TCP header on a data segment; default 52 (IPv4 20, TCP 20, timestamps 12).
    pub header_bytes: u16,
    /// Bytes of a SYN's IP packet; default 60 (IPv4 20, TCP 20, options 20).
    pub syn_bytes: u16,
    /// True (default): the connection opens with a SYN, which gives the first RTT sample. False: it is established from the beginning.
    pub handshake: bool,
    /// Without a handshake: the RTT sample the handshake would have given, if any.
    pub handshake_rtt: Option<Span>,
    /// Timeout of the first SYN, doubled for each retry; default 1 s (RFC 6298 section 2.1).
    pub syn_timeout: Span,
    /// Congestion marks.
    pub ecn: EcnMode,
    /// True: ECN-capable packets carry ECT(1) instead of ECT(0) (RFC 9331); default false.
    pub ect1: bool,
    /// Most bytes written and not yet acknowledged; default none.
    pub send_buffer: Option<Bytes>,
    /// Receive window assumed until the first ACK or SYN/ACK says otherwise; default none.
    pub peer_window: Option<Bytes>,
    /// How lost packets are found.
    pub loss_detection: LossDetection,
    /// Packets delivered out of order that make loss certain as long as no reordering was seen; default 3 (`tcp_reordering`).
    pub reordering: u32,
    /// Largest degree of reordering in packets that is remembered; default 300 (`tcp_max_reordering`).
    pub max_reordering: u32,
    /// RACK waits min RTT / this for reordered packets; default 4 (RFC 8985 section 6.2).
    pub reorder_window_divisor: u32,
    /// The wait grows by steps when D-SACKs tell of needless retransmissions, up to this many; default 255 (`tcp_rack_update_reo_wnd`).
    pub reorder_steps_max: u32,
    /// Recoveries without D-SACK after which the wait returns to one step; default 16 (`TCP_RACK_RECOVERY_THRESH`).
    pub reorder_persist: u32,
    /// Added to the RACK reordering timer and to the tail loss probe's timeout; default 2 ms (`TCP_TIMEOUT_MIN`).
    pub timer_slack: Span,
    /// How long a smallest RTT is remembered; default 300 s (`tcp_min_rtt_wlen`).
    pub min_rtt_window: Span,
    /// Tail loss probes (RFC 8985 section 7); default true.
    pub tail_loss_probe: bool,
    /// How the window shrinks; default proportional.
    pub reduction: Reduction,
    /// The timeout's rule.
    pub rto_rule: RtoRule,
    /// Timeout before the first RTT sample; default 1 s (RFC 6298 section 2.1).
    pub rto_initial: Span,
    /// Smallest variance term (rule `linux`) or smallest timeout (rule `rfc6298`); default 200 ms (`TCP_RTO_MIN`).
    pub rto_min: Span,
    /// Largest timeout; default 120 s (`TCP_RTO_MAX`).
    pub rto_max: Span,
    /// Clock tick to which timeouts are rounded up; zero (default) for an exact clock. Linux: 4 ms at HZ 250.
    pub tick: Span,
    /// Detect spurious timeouts by forward acknowledgements (F-RTO, RFC 5682); default true.
    pub f_rto: bool,
    /// Take reductions back that D-SACKs or timestamps prove to be needless (Eifel, RFC 3522, RFC 4015); default true.
    pub undo: bool,
    /// A window that was not used for an RTO shrinks towards what was used (RFC 7661 in spirit, Linux `tcp_cwnd_application_limited`); default true.
    pub cwnd_validation: bool,
    /// After an idle RTO the window decays to the initial one (RFC 5681 section 4.1, Linux `tcp_cwnd_restart`); default true.
    pub idle_restart: bool,
    /// Hold back short segments while data is unacknowledged (RFC 896); default false (TCP_NODELAY).
    pub nagle: bool,
}

impl Default for SenderConfig {
    fn default() -> Self {
        Self {
            mss: 1448,
            header_bytes: 52,
            syn_bytes: 60,
            handshake: true,
            handshake_rtt: None,
            syn_timeout: Span::from_secs(1),
            ecn: EcnMode::Off,
            ect1: false,
            send_buffer: None,
            peer_window: None,
            loss_detection: LossDetection::Rack,
            reordering: 3,
            max_reordering: 300,
            reorder_window_divisor: 4,
            reorder_steps_max: 255,
            reorder_persist: 16,
            timer_slack: Span::from_millis(2),
            min_rtt_window: Span::from_secs(300),
            tail_loss_probe: true,
            reduction: Reduction::Proportional,
            rto_rule: RtoRule::Linux,
            rto_initial: Span::from_secs(1),
            rto_min: Span::from_millis(200),
            rto_max: Span::from_secs(120),
            tick: Span::ZERO,
            f_rto: true,
            undo: true,
            cwnd_validation: true,
            idle_restart: true,
            nagle: false,
        }
    }
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
    /// In-order segments per ACK, at least 1; default 2 (RFC 5681 section 4.2). 1 turns delayed ACKs off.
    pub ack_every: u32,
    /// What `ack_every` counts.
    pub ack_counting: AckCounting,
    /// Delay of an ACK for fewer segments; default 40 ms (`TCP_ATO_MIN`).
    pub ack_delay: Span,
    /// True (default): the delay follows the gaps between segments (Linux `tcp_event_data_recv`). False: it is always `ack_delay`.
    pub adaptive_delay: bool,
    /// Largest delay of an ACK; default 200 ms (`TCP_DELACK_MAX`).
    pub ack_delay_max: Span,
    /// Most ACKs sent at once at the beginning and after trouble, whatever `ack_every` says; 0 for none, default 16 (`TCP_MAX_QUICKACKS`).
    pub quick_acks: u32,
    /// Segment size assumed before one was seen; default 536 (`TCP_MSS_DEFAULT`).
    pub initial_mss: u32,
    /// After three immediate ones, ACKs of out-of-order data wait up to this long for more; zero turns it off; default 1 ms (`tcp_comp_sack_delay_ns`).
    pub compressed_sack_delay: Span,
    /// ... but no longer than this share of the RTT in percent; default 5 (`tcp_ack_snd_check`).
    pub compressed_sack_rtt_percent: u32,
    /// ... and at most this many ACKs are saved; default 44 (`tcp_comp_sack_nr`).
    pub compressed_sack_count: u32,
    /// ACKs are held back for this long and merged into one, as links that aggregate frames do; default none.
    pub ack_aggregation: Option<Span>,
    /// Receive buffer: bytes in order that the application has not read are taken off the window; default none (the window never limits).
    pub receive_buffer: Option<Bytes>,
    /// True (default): the application reads at once.
    pub auto_read: bool,
    /// Smallest variance term of the receiver's own timeout estimate, which bounds ACK delays and ends quick ACKs; default 200 ms.
    pub rto_min: Span,
    /// That timeout before an RTT is known; default 1 s.
    pub rto_initial: Span,
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
            initial_mss: 536,
            compressed_sack_delay: Span::from_millis(1),
            compressed_sack_rtt_percent: 5,
            compressed_sack_count: 44,
            ack_aggregation: None,
            receive_buffer: None,
            auto_read: true,
            rto_min: Span::from_millis(200),
            rto_initial: Span::from_secs(1),
        }
    }
}

impl ReceiverConfig {
    /// An ACK for every segment, at once.
    #[must_use]
    pub fn every_segment() -> Self {
        Self { ack_every: 1, quick_acks: 0, compressed_sack_delay: Span::ZERO, ..Self::default() }
    }

    /// An ACK for every second segment or after 40 ms, from the first segment on: no quick ACKs, no compressed SACKs (RFC 5681 section 4.2;
    /// what ns-3 does).
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
