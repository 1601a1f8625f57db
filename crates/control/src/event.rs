//! What a controller is told and what it answers.

use flowstart_quick_start::wire::TcpResponse;
use flowstart_units::{Rate, Span, Time};

/// A packet that has just left the sender.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When it left.
    pub now: Time,
    /// Transmission number: counts every packet sent, retransmissions included, from 0.
    pub number: u64,
    /// First byte of the stream in the packet.
    pub seq: u64,
    /// Payload bytes.
    pub bytes: u32,
    /// Packets in flight, this one included.
    pub in_flight: u32,
    /// True if the packet was sent before.
    pub retransmission: bool,
}

/// A packet that has just been delivered for the first time, as the ACK says.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// When the ACK came.
    pub now: Time,
    /// Transmission number of the (last) transmission of this packet.
    pub number: u64,
    /// Payload bytes.
    pub bytes: u32,
    /// When that transmission left.
    pub sent_at: Time,
    /// Round-trip time of the *newest* packet this ACK covers: all packets of one ACK share it, so
    /// that a delayed ACK does not make the older packets look slower than they were. `None` if
    /// that packet was retransmitted.
    pub rtt: Option<Span>,
    /// True if this packet was retransmitted.
    pub retransmitted: bool,
}

/// How fast data was delivered over about the last round trip
/// (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryRate {
    /// Packets delivered over the interval.
    pub delivered: u32,
    /// The longer of the send and the ACK interval; never zero.
    pub interval: Span,
    /// The connection's count of delivered packets when the newest packet of this sample was sent.
    pub prior_delivered: u64,
    /// True if the application, not the network, limited the sample.
    pub app_limited: bool,
}

impl DeliveryRate {
    /// Time per packet delivered.
    #[must_use]
    pub fn gap(&self) -> Span {
        self.interval / u64::from(self.delivered.max(1))
    }
}

/// One ACK, after the scoreboard took it in and before windows change.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it came.
    pub now: Time,
    /// Packets newly delivered: cumulatively or selectively acknowledged for the first time.
    pub acked: u32,
    /// Payload bytes newly delivered.
    pub acked_bytes: u64,
    /// How many of `acked` met a congestion mark (all of them if the ACK carried ECE without a
    /// count; 0 without ECN).
    pub marked: u32,
    /// Packets declared lost by this ACK (Linux `rate_sample.losses`); over QUIC also those that a
    /// timer found since the ACK before.
    pub lost: u32,
    /// Packets declared lost between the ACK before and this one, because they were late (RFC 8985
    /// section 6.2 step 5). Those of a retransmission timeout are not among them.
    pub lost_meanwhile: u32,
    /// RTT of the newest packet delivered that was never retransmitted, if any.
    pub rtt: Option<Span>,
    /// Smoothed RTT (RFC 6298), this sample included; zero before the first sample.
    pub srtt: Span,
    /// Smallest RTT of the connection, this sample included; [`Span::MAX`] before the first sample.
    pub min_rtt: Span,
    /// First byte of the stream not yet cumulatively acknowledged (after this ACK).
    pub una: u64,
    /// Next new byte of the stream to be sent.
    pub next: u64,
    /// True if this ACK moved `una`.
    pub advanced: bool,
    /// Packets in flight after this ACK: sent, not delivered, not deemed lost.
    pub in_flight: u32,
    /// Packets sent and not cumulatively acknowledged after this ACK, lost or delivered out of
    /// order included.
    pub packets_out: u32,
    /// True if the flow used its window up in the last window (Linux `is_cwnd_limited`).
    pub cwnd_limited: bool,
    /// Largest `packets_out` of the last window, for the slow-start rule cwnd < 2 *
    /// `max_packets_out`.
    pub max_packets_out: u32,
    /// True if the sender has nothing more to send now.
    pub app_limited: bool,
    /// Packets delivered on this connection so far, this ACK's included.
    pub delivered: u64,
    /// Delivery rate sample, if one could be taken.
    pub rate: Option<DeliveryRate>,
    /// Packets declared lost on this connection so far: by ACKs and by timers, and as often as each
    /// was lost (Linux `tp->lost`).
    pub total_lost: u64,
    /// What is being repaired once this ACK was answered. Only told where a window grows for it, to
    /// avoidances that control recovery; [`Repair::Nothing`] elsewhere.
    pub repair: Repair,
}

impl Ack {
    /// All packets declared lost since the ACK before, however they were found.
    #[must_use]
    pub fn newly_lost(&self) -> u32 {
        self.lost.saturating_add(self.lost_meanwhile)
    }
}

/// What a sender repairs (Linux `icsk_ca_state`, from `TCP_CA_Recovery` on).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Repair {
    /// Nothing.
    #[default]
    Nothing,
    /// Losses that were found by ACKs, or because packets were late (`TCP_CA_Recovery`).
    Losses,
    /// What was outstanding when the retransmission timer expired (`TCP_CA_Loss`).
    Timeout,
}

/// A reason to reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Loss found by RACK or duplicate ACKs; at most one per window.
    Loss,
    /// Congestion marks (ECE); at most one per window.
    Marks,
    /// The retransmission timer expired.
    Timeout,
}

/// Where in the life of a connection the path may be asked for a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// It opens.
    Opening,
    /// It sends again after nothing was in flight for this long.
    AfterIdle(Span),
    /// It was not idle, all that the application wrote had been sent, and now more waits than the
    /// window has room for.
    Middle,
}

/// A moment at which the path may be asked for a rate (Quick-Start, RFC 4782 section 4.1).
#[derive(Clone, Copy, Debug)]
pub struct Occasion {
    /// When.
    pub now: Time,
    /// Which moment this is for the connection.
    pub moment: Moment,
    /// Retransmission timeout.
    pub rto: Span,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Span,
    /// Bytes of a full packet on the wire.
    pub packet: u32,
    /// Bytes waiting to be sent, headers not counted; `u64::MAX` for an endless stream.
    pub backlog: u64,
    /// First byte of the stream not yet cumulatively acknowledged.
    pub una: u64,
    /// Next new byte of the stream: the request leaves with it.
    pub next: u64,
    /// Congestion window in packets.
    pub cwnd: u32,
    /// Largest congestion window in packets since congestion reduced it last; `None` if that never
    /// happened.
    pub largest_window: Option<u32>,
}

/// What came back of what was asked for with [`Occasion`].
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// When the ACK came that covers the request.
    pub now: Time,
    /// What the receiver says on it, not checked yet; `None` if it says nothing, which is a denial
    /// (RFC 4782 section 4.2).
    pub response: Option<TcpResponse>,
    /// The rate that all routers on the path have for this flow, as the receiver tells (RCP);
    /// `None` if one of them does not know RCP, or none was asked.
    pub share: Option<Rate>,
    /// The packet that asked may have been lost: something was sent again before the ACK came.
    pub lost: bool,
    /// Measured RTT.
    pub rtt: Span,
    /// First byte of the stream not yet cumulatively acknowledged.
    pub una: u64,
    /// Next new byte of the stream to be sent.
    pub next: u64,
}

/// The packet about to leave, when the transport asks for its earliest departure.
#[derive(Clone, Copy, Debug)]
pub struct Next {
    /// Transmission number it will get.
    pub number: u64,
    /// Payload bytes.
    pub bytes: u32,
    /// Bytes on the wire (payload and headers), for starts whose rate is one of the wire (RCP).
    /// Pacing goes by the payload.
    pub wire_bytes: u32,
    /// Packets in flight without it.
    pub in_flight: u32,
    /// Packets sent and not cumulatively acknowledged, without it.
    pub packets_out: u32,
    /// Full packets the application has queued and not sent, this one included.
    pub queued: u64,
    /// True if it was sent before.
    pub retransmission: bool,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Span,
    /// Smallest RTT of the connection; [`Span::MAX`] before the first sample.
    pub min_rtt: Span,
}

/// When the next packet may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// At once; the window alone decides.
    Now,
    /// Not before this time (which lies in the future).
    At(Time),
    /// Not before something happens (an ACK, a timer); ask again then.
    Hold,
}
