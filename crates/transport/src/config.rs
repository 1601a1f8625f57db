//! How the sender behaves. Every constant of an algorithm is a field here; the defaults are those
//! of Linux 6.1.

use flowstart_congestion::InvalidConfig;
use flowstart_receiver::EcnMode;
use flowstart_units::{Bytes, Span};

use crate::Offload;
#[cfg(feature = "serde")]
use {
    schemars::JsonSchema,
    serde::{Deserialize, Serialize},
};

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
    /// Proportional rate reduction dividing by the window before the reduction (Linux
    /// `tcp_cwnd_reduction`).
    #[default]
    Proportional,
    /// Proportional rate reduction dividing by the data in flight when recovery began (RFC 9937,
    /// RecoverFS).
    ProportionalRfc9937,
    /// The window is the threshold at once.
    Immediate,
}

/// How the retransmission timeout follows from round-trip times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum RtoRule {
    /// SRTT + the windowed maximum of 4 mean deviations, the latter at least `min_rto` (Linux
    /// `tcp_rtt_estimator`).
    #[default]
    Linux,
    /// max(`min_rto`, SRTT + max(tick, 4 RTTVAR)) (RFC 6298 section 2, whose rule 2.4 has 1 s for
    /// `min_rto`; the default here is Linux's 200 ms).
    Rfc6298,
}

/// Whose rules decide how a window grows: those of a kernel of its time. Loss detection and the
/// initial window have keys of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub enum Kernel {
    /// Linux 2.6.20 (2007): an ACK counts as one packet, however many it acknowledges
    /// (`net.ipv4.tcp_abc` = 0); what CUBIC makes of ACKs in congestion avoidance evens that out. A
    /// window may grow if, before the ACK, less than a third of it was unused.
    #[cfg_attr(feature = "serde", serde(rename = "2.6.20"))]
    Linux2_6_20,
    /// Linux 3.5 (2012): ACKs count as in 2.6.20. A window may also grow if no more than three
    /// packets of it were unused, and a third of it only as long as that is less than 64 KiB.
    #[cfg_attr(feature = "serde", serde(rename = "3.5"))]
    Linux3_5,
    /// Linux 6.x: packets count; a window may grow if it was used up once within the last window,
    /// in slow start also up to twice of what was used (RFC 7661 in spirit).
    #[default]
    #[cfg_attr(feature = "serde", serde(rename = "6.x"))]
    Linux6,
}

impl Kernel {
    /// True if an ACK counts as one packet.
    #[inline]
    pub(crate) fn counts_acks(self) -> bool {
        self != Self::Linux6
    }

    /// Whether a window with so many packets in flight before the ACK may grow; `None` if what was
    /// used over a window decides.
    pub(crate) fn may_grow(self, cwnd: u32, in_flight: u32, mss: u32) -> Option<bool> {
        /// A burst waits until it is this part of the window (`tcp_tso_win_divisor`).
        const BURST_PART: u32 = 3;
        /// Largest burst, bytes (`sk_gso_max_size`).
        const LARGEST_BURST: u32 = 65_536;
        /// Unused packets that do not matter (`tcp_max_burst`).
        const FEW: u32 = 3;
        let unused = cwnd.saturating_sub(in_flight);
        let waits = unused.saturating_mul(BURST_PART) < cwnd;
        match self {
            Self::Linux2_6_20 => Some(unused == 0 || waits),
            Self::Linux3_5 => Some(unused <= FEW || (waits && unused.saturating_mul(mss) < LARGEST_BURST)),
            Self::Linux6 => None,
        }
    }
}

/// The sending endpoint. The defaults are those of Linux 6.1 with an exact clock.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(default, deny_unknown_fields))]
pub struct SenderConfig {
    /// Most payload bytes per segment, 1 ..= 65 000; default 1448 (1500 minus IPv4, TCP and
    /// timestamps).
    pub mss: u32,
    /// Bytes of IP and TCP header on a data segment; default 52 (IPv4 20, TCP 20, timestamps 12).
    pub header_bytes: u16,
    /// Bytes of a SYN's IP packet; default 60 (IPv4 20, TCP 20, options 20).
    pub syn_bytes: u16,
    /// True (default): the connection opens with a SYN, which gives the first RTT sample. False: it
    /// is established from the beginning.
    pub handshake: bool,
    /// Without a handshake: the RTT sample the handshake would have given, if any.
    pub handshake_rtt: Option<Span>,
    /// Timeout of the first SYN, doubled for each retry; default 1 s (RFC 6298 section 2.1).
    pub syn_timeout: Span,
    /// Timeout of a SYN that asks the routers for a rate, if that is longer; default 3 s (RFC 4782
    /// section 4.7.2). Sent again, it asks for nothing.
    pub request_timeout: Span,
    /// Congestion marks.
    pub ecn: EcnMode,
    /// True: ECN-capable packets carry ECT(1) instead of ECT(0) (RFC 9331); default false.
    pub ect1: bool,
    /// Most bytes written and not yet acknowledged; default none. Linux has 4 MiB
    /// (`net.ipv4.tcp_wmem`), of which 1.4 % and more are its own.
    pub send_buffer: Option<Bytes>,
    /// A writer who found the send buffer full goes on when 1 / this of it is free; default 3
    /// (Linux `sk_stream_write_space`), 0 for as soon as anything is. Needs a `send_buffer`.
    pub wake_divisor: u32,
    /// Receive window assumed until the first ACK or SYN/ACK says otherwise; default none.
    pub peer_window: Option<Bytes>,
    /// Whose rules decide how a window grows; default "6.x".
    pub kernel: Kernel,
    /// How lost packets are found.
    pub loss_detection: LossDetection,
    /// Packets delivered out of order that make loss certain as long as no reordering was seen;
    /// default 3 (`tcp_reordering`).
    pub reordering: u32,
    /// Largest degree of reordering in packets that is remembered; default 300
    /// (`tcp_max_reordering`).
    pub max_reordering: u32,
    /// RACK waits min RTT / this for reordered packets; default 4 (RFC 8985 section 6.2).
    pub reorder_window_divisor: u32,
    /// The wait grows by steps when D-SACKs tell of needless retransmissions, up to this many;
    /// default 255 (`tcp_rack_update_reo_wnd`).
    pub reorder_steps_max: u32,
    /// Recoveries without D-SACK after which the wait returns to one step; default 16
    /// (`TCP_RACK_RECOVERY_THRESH`).
    pub reorder_persist: u32,
    /// Added to the RACK reordering timer and to the tail loss probe's timeout; default 2 ms
    /// (`TCP_TIMEOUT_MIN`). Needs `loss_detection` by RACK.
    pub timer_slack: Span,
    /// How long a smallest RTT is remembered; default 300 s (`tcp_min_rtt_wlen`).
    pub min_rtt_window: Span,
    /// Tail loss probes (RFC 8985 section 7); default true. There are none unless
    /// `loss_detection` is RACK.
    pub tail_loss_probe: bool,
    /// How the window shrinks; default proportional. Without influence while an avoidance is in
    /// charge that sets the window in recoveries itself (BBR, PCC).
    pub reduction: Reduction,
    /// The timeout's rule.
    pub rto_rule: RtoRule,
    /// Timeout before the first RTT sample; default 1 s (RFC 6298 section 2.1).
    pub initial_rto: Span,
    /// Smallest variance term (rule `linux`) or smallest timeout (rule `rfc6298`); default 200 ms
    /// (`TCP_RTO_MIN`).
    pub min_rto: Span,
    /// Largest timeout; default 120 s (`TCP_RTO_MAX`).
    pub max_rto: Span,
    /// Clock tick to which timeouts are rounded up, and what RACK and a tail loss probe wait for;
    /// zero (default) for an exact clock. Linux: 4 ms at HZ 250.
    pub tick: Span,
    /// Detect spurious timeouts by forward acknowledgements (F-RTO, RFC 5682); default true.
    pub f_rto: bool,
    /// Take reductions back that D-SACKs or timestamps prove to be needless (Eifel, RFC 3522, RFC
    /// 4015); default true.
    pub undo: bool,
    /// A window that was not used for an RTO shrinks towards what was used (RFC 7661 in spirit,
    /// Linux `tcp_cwnd_application_limited`); default true.
    pub cwnd_validation: bool,
    /// The window grows on every ACK, whether it is used up or not (RFC 5681 to the letter);
    /// default false (RFC 7661 section 4.2, Linux `tcp_is_cwnd_limited`).
    pub grow_unused: bool,
    /// After an idle RTO the window decays to the initial one (RFC 5681 section 4.1, Linux
    /// `tcp_cwnd_restart`); default true.
    pub idle_restart: bool,
    /// Hold back short segments while data is unacknowledged (RFC 896); default false
    /// (TCP_NODELAY).
    pub nagle: bool,
    /// New data leaves in bursts, as with segmentation offload; default none: segment by segment.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub offload: Option<Offload>,
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
            request_timeout: Span::from_secs(3),
            ecn: EcnMode::Off,
            ect1: false,
            send_buffer: None,
            wake_divisor: 3,
            peer_window: None,
            kernel: Kernel::Linux6,
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
            initial_rto: Span::from_secs(1),
            min_rto: Span::from_millis(200),
            max_rto: Span::from_secs(120),
            tick: Span::ZERO,
            f_rto: true,
            undo: true,
            cwnd_validation: true,
            grow_unused: false,
            idle_restart: true,
            nagle: false,
            offload: None,
        }
    }
}

/// Largest MSS: what an IP packet of 65 535 bytes holds beside its headers.
const LARGEST_MSS: u32 = 65_000;

impl SenderConfig {
    /// How long a timer runs that is to run for `wait`: whole ticks.
    #[inline]
    pub(crate) fn in_ticks(&self, wait: Span) -> Span {
        let tick = self.tick.as_nanos();
        if tick == 0 {
            return wait;
        }
        Span::from_nanos(wait.as_nanos().checked_next_multiple_of(tick).unwrap_or(u64::MAX))
    }

    /// Checks that every value is in its range. A sender made from values out of range works, with
    /// the nearest value in range.
    ///
    /// # Errors
    /// Names the first field that is not, and what it must be.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let unless = InvalidConfig::unless;
        let positive = |span: Span| !span.is_zero();
        unless((1..=LARGEST_MSS).contains(&self.mss), "mss", "between 1 and 65 000 bytes")?;
        unless(self.header_bytes <= 500, "header_bytes", "at most 500 bytes")?;
        unless(positive(self.syn_timeout), "syn_timeout", "more than zero")?;
        unless(self.send_buffer.is_none_or(|b| b.get() > 0), "send_buffer", "at least 1 byte")?;
        unless(self.reordering >= 1, "reordering", "at least 1 packet")?;
        unless(self.max_reordering >= self.reordering, "max_reordering", "at least `reordering`")?;
        unless(self.reorder_window_divisor >= 1, "reorder_window_divisor", "at least 1")?;
        unless(self.reorder_steps_max >= 1, "reorder_steps_max", "at least 1")?;
        unless(positive(self.min_rtt_window), "min_rtt_window", "more than zero")?;
        unless(positive(self.initial_rto), "initial_rto", "more than zero")?;
        unless(positive(self.max_rto), "max_rto", "more than zero")?;
        self.offload.as_ref().map_or(Ok(()), Offload::validate)?;
        unless(positive(self.min_rto), "min_rto", "more than zero")?;
        unless(self.min_rto <= self.max_rto, "min_rto", "at most `max_rto`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_nonsense_is_named() {
        assert_eq!(SenderConfig::default().validate(), Ok(()));
        let field = |config: SenderConfig| config.validate().unwrap_err().field;
        assert_eq!(field(SenderConfig { mss: 0, ..SenderConfig::default() }), "mss");
        assert_eq!(field(SenderConfig { send_buffer: Some(Bytes::ZERO), ..SenderConfig::default() }), "send_buffer");
        assert_eq!(field(SenderConfig { min_rto: Span::from_secs(200), ..SenderConfig::default() }), "min_rto");
        assert_eq!(field(SenderConfig { min_rto: Span::ZERO, ..SenderConfig::default() }), "min_rto");
        let sender = |bytes| SenderConfig { send_buffer: Some(Bytes::new(bytes)), ..SenderConfig::default() };
        assert_eq!(sender(1).validate(), Ok(()));
    }

    #[cfg(feature = "serde")]
    #[test]
    fn a_scenario_sets_single_fields_with_units_and_misspelt_ones_are_refused() {
        let sender: SenderConfig =
            serde_json::from_str(r#"{ "min_rto": "250 ms", "ecn": "dctcp", "loss_detection": "new_reno" }"#).unwrap();
        let expected = SenderConfig {
            min_rto: Span::from_millis(250),
            ecn: EcnMode::Dctcp,
            loss_detection: LossDetection::NewReno,
            ..SenderConfig::default()
        };
        assert_eq!(sender, expected);
        let text = serde_json::to_string(&sender).unwrap();
        assert_eq!(serde_json::from_str::<SenderConfig>(&text).unwrap(), sender);
        assert!(schemars::schema_for!(SenderConfig).to_value().to_string().contains("min_rto"));
    }
}
