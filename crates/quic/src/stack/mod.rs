//! The QUIC stacks that can be driven, in words of this project's own.
//!
//! What is above speaks of [`Endpoint`] and [`Connection`] alone. The two stacks are one's fork and
//! have most of their words in common: what they share is written once (`adapter`, `tapped`), and
//! what differs stands in `noq` and `quinn`, above all how each tells a [gate](crate::gate::Gate)
//! what became of packets.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::failed::ConnectError;
use crate::gate::Gates;
use crate::tls::{ClientHandshake, Identity};

#[macro_use]
mod adapter;
#[macro_use]
mod tapped;
mod noq;
mod quinn;

/// A QUIC stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stack {
    /// `noq-proto`, which says what became of each packet by its number.
    #[default]
    Noq,
    /// `quinn-proto`, which says less.
    Quinn,
}

impl Stack {
    /// All there are.
    pub const ALL: [Self; 2] = [Self::Noq, Self::Quinn];

    /// Its name, as options take it and results give it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Noq => "noq",
            Self::Quinn => "quinn",
        }
    }
}

/// Bytes of a stream that may arrive without having been read. Both stacks end a connection of
/// which a stream has more than 1024 gaps (their `MAX_CHUNKS`); with this every second packet of a
/// stream's window may be lost, whatever became of other streams.
const STREAM_WINDOW: u32 = 2 << 20;

/// Bytes that a server's client may send before it has asked to: a client that only asks needs few,
/// and what nobody reads takes memory. Eight times what a look sends, for the stack tells the other
/// end of every eighth that was read, and a look has packets of its own alone.
pub(crate) const UNASKED: u32 = 4 << 20;

/// What a stack may do, beyond what congestion control decides.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// UDP payload of a full packet in bytes.
    pub(crate) mtu: u16,
    /// Bytes that may arrive without having been read.
    pub(crate) receive_window: u32,
    /// Time after which a silent connection is over.
    pub(crate) idle: Duration,
    /// Silence after which a client's connection gives a sign of life.
    pub(crate) keep_alive: Duration,
    /// Shortest time from one stateless reset to the next.
    pub(crate) resets: Duration,
    /// Where a server listens.
    pub(crate) place: String,
    /// The seed of connection identifiers; `None` for unpredictable ones.
    pub(crate) seed: Option<[u8; 32]>,
}

/// The ECN field of a datagram (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EcnCodepoint {
    /// ECT(0).
    Ect0 = 0b10,
    /// ECT(1).
    Ect1 = 0b01,
    /// Congestion experienced.
    Ce = 0b11,
}

impl EcnCodepoint {
    /// That of the two lowest bits; `None` if they are zero.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits & 0b11 {
            0b10 => Some(Self::Ect0),
            0b01 => Some(Self::Ect1),
            0b11 => Some(Self::Ce),
            _ => None,
        }
    }
}

/// Whether a stream goes both ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dir {
    /// Both ways.
    Bi,
    /// From who opened it to the other end.
    Uni,
}

/// A stream of a connection, by its number (RFC 9000 section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamId(u64);

impl StreamId {
    /// Whether it goes both ways.
    #[must_use]
    pub const fn dir(self) -> Dir {
        if self.0 & 0b10 == 0 { Dir::Bi } else { Dir::Uni }
    }
}

impl From<u64> for StreamId {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl From<StreamId> for u64 {
    fn from(stream: StreamId) -> Self {
        stream.0
    }
}

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionError {
    /// The other end's stack closed it, in the stack's words.
    ConnectionClosed(String),
    /// This end's stack found a fault, in its words.
    TransportError(String),
    /// The other end's application closed it.
    ApplicationClosed {
        /// Its number for that.
        code: u64,
        /// Its reason, which may be empty or no text.
        reason: Bytes,
    },
    /// The other end does not know the connection any more.
    Reset,
    /// It was silent for too long.
    TimedOut,
    /// Anything else, in the stack's words.
    Other(String),
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConnectionClosed(words) | Self::TransportError(words) | Self::Other(words) => f.write_str(words),
            Self::ApplicationClosed { code, reason } if reason.is_empty() => write!(f, "closed by peer: {code}"),
            Self::ApplicationClosed { code, reason } => {
                write!(f, "closed by peer: {} (code {code})", String::from_utf8_lossy(reason))
            }
            Self::Reset => f.write_str("reset by peer"),
            Self::TimedOut => f.write_str("timed out"),
        }
    }
}

impl std::error::Error for ConnectionError {}

/// A datagram to be sent, without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transmit {
    pub(crate) to: SocketAddr,
    pub(crate) ecn: Option<EcnCodepoint>,
    pub(crate) size: usize,
}

/// What happened to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Streams may be opened.
    Connected,
    /// Both ends know that the handshake is complete (RFC 9001 section 4.1.2).
    Confirmed,
    /// A stream has data, or a new one may.
    Readable,
    /// All data of a stream was acknowledged.
    Finished(StreamId),
    /// It is over.
    Lost(ConnectionError),
}

/// What an endpoint has for one of its connections.
pub(crate) enum ForConnection {
    Noq(noq_proto::ConnectionEvent),
    Quinn(quinn_proto::ConnectionEvent),
}

/// What a connection has for its endpoint.
pub(crate) enum ForEndpoint {
    Noq(noq_proto::EndpointEvent),
    Quinn(quinn_proto::EndpointEvent),
}

/// What became of a datagram that an endpoint got.
pub(crate) enum Handled {
    /// It is for the connection of this number.
    For(usize, ForConnection),
    /// A client wants a connection: one of [`refuse`](Endpoint::refuse), [`retry`](Endpoint::retry)
    /// and [`accept`](Endpoint::accept) is to follow. `proven` if it has shown that it receives at
    /// its address, or cannot be asked to.
    New { proven: bool },
    /// An answer is to be sent.
    Answer(Transmit),
}

/// A connection that was made, and its number.
pub(crate) type Made = (usize, Box<dyn Connection>);

/// The endpoint of a stack.
pub(crate) trait Endpoint: fmt::Debug + Send {
    /// Opens a connection.
    fn connect(&mut self, now: Instant, handshake: ClientHandshake, to: SocketAddr) -> Result<Made, ConnectError>;

    /// Takes a datagram in; an answer is written to `answer`.
    fn handle(
        &mut self,
        now: Instant,
        from: SocketAddr,
        ecn: Option<EcnCodepoint>,
        data: &[u8],
        answer: &mut Vec<u8>,
    ) -> Option<Handled>;

    /// How many connections there are.
    fn open_connections(&self) -> usize;

    /// Says no to who wants a connection.
    fn refuse(&mut self, answer: &mut Vec<u8>) -> Option<Transmit>;

    /// Asks who wants a connection to show that it receives.
    fn retry(&mut self, answer: &mut Vec<u8>) -> Option<Transmit>;

    /// Gives who wants a connection one. If that fails there may be an answer.
    fn accept(&mut self, now: Instant, answer: &mut Vec<u8>) -> Result<Made, Option<Transmit>>;

    /// A connection is gone without a word to the other end.
    fn forget(&mut self, number: usize);

    /// Passes on what a connection has for it; what it has for the connection.
    fn handle_event(&mut self, number: usize, event: ForEndpoint) -> Option<ForConnection>;
}

/// A connection of a stack.
pub(crate) trait Connection: fmt::Debug + Send {
    fn handle_event(&mut self, event: ForConnection);
    fn poll_endpoint_events(&mut self) -> Option<ForEndpoint>;
    fn handle_timeout(&mut self, now: Instant);
    fn poll_timeout(&self) -> Option<Instant>;
    /// The next datagram, if there is one that the gate lets pass.
    fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit>;
    fn poll(&mut self) -> Option<Event>;
    fn open(&mut self, dir: Dir) -> Option<StreamId>;
    fn accept(&mut self, dir: Dir) -> Option<StreamId>;
    /// What the stream has goes before what others have.
    fn prefer(&mut self, stream: StreamId);
    /// How many bytes the stream took.
    fn write(&mut self, stream: StreamId, data: &[u8]) -> usize;
    fn finish(&mut self, stream: StreamId);
    /// Ends a stream, and what of it has not arrived is not sent again.
    fn abandon(&mut self, stream: StreamId);
    /// Reads what has arrived in order: whether the stream is over, and whether that gives the
    /// stack something to say.
    fn read(&mut self, stream: StreamId, take: &mut dyn FnMut(Bytes)) -> (bool, bool);
    /// So many bytes may arrive from now on without having been read.
    fn widen(&mut self, window: u32);
    /// Asks whether the other end is there.
    fn ping(&mut self);
    fn close(&mut self, now: Instant, code: u32, reason: Bytes);
    fn is_closed(&self) -> bool;
    fn is_drained(&self) -> bool;
    /// The smoothed RTT.
    fn rtt(&self) -> Duration;
    /// Bytes of a full datagram.
    fn mtu(&self) -> u16;
    /// Where the other end is.
    fn remote(&self) -> Option<SocketAddr>;
    /// How often the other end has challenged this one.
    fn challenges(&mut self) -> u64;
    /// The certificates that the other end showed.
    fn peer_identity(&self) -> Option<Box<dyn std::any::Any>>;
}

/// An endpoint of a stack; it serves if it has an identity.
///
/// # Errors
/// If the identity does not fit the stack.
pub(crate) fn endpoint(
    stack: Stack,
    settings: Settings,
    identity: Option<&Identity>,
    gates: &Arc<Gates>,
) -> Result<Box<dyn Endpoint>, rustls::Error> {
    Ok(match stack {
        Stack::Noq => Box::new(noq::Endpoint::new(settings, identity, gates)?),
        Stack::Quinn => Box::new(quinn::Endpoint::new(settings, identity, gates)?),
    })
}

/// An address without what may differ between two datagrams from one place: the flow label, and the
/// zone where there is only one.
pub(crate) fn place(mut address: SocketAddr) -> SocketAddr {
    if let SocketAddr::V6(six) = &mut address {
        six.set_flowinfo(0);
        let ip = *six.ip();
        if !ip.is_unicast_link_local() && !ip.is_multicast() {
            six.set_scope_id(0);
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_of_a_stream_has_room_for_no_more_gaps_than_stacks_keep() {
        // The smallest full packets, of whose payload header, number, tag and frame take some, and
        // one that is not full at the end of each piece of 32 kB.
        let (payload, piece) = (1200 - 56, 32 << 10);
        let packets = STREAM_WINDOW / payload + STREAM_WINDOW / piece;
        assert!(packets / 2 < 1024, "{packets}");
    }

    #[test]
    fn numbers_of_streams_and_ecn_fields_are_those_of_both_stacks() {
        for number in 0..8_u64 {
            let ours = StreamId::from(number);
            let noq = noq_proto::StreamId::from(ours);
            let quinn = quinn_proto::StreamId::from(ours);
            assert_eq!((u64::from(noq), u64::from(quinn)), (number, number));
            assert_eq!((StreamId::from(noq), StreamId::from(quinn)), (ours, ours));
            assert_eq!(noq.dir() == noq_proto::Dir::Bi, ours.dir() == Dir::Bi);
        }
        for bits in 0..4 {
            let noq = noq_proto::EcnCodepoint::from_bits(bits).map(EcnCodepoint::from);
            let quinn = quinn_proto::EcnCodepoint::from_bits(bits).map(EcnCodepoint::from);
            assert_eq!((noq, quinn), (EcnCodepoint::from_bits(bits), EcnCodepoint::from_bits(bits)));
        }
    }

    #[test]
    fn an_address_is_the_place_that_noq_takes_it_for() {
        for text in ["192.0.2.7:5", "[2001:db8::1]:5", "[fe80::1%3]:5", "[ff02::1%2]:5"] {
            let mut address: SocketAddr = text.parse().unwrap();
            if let SocketAddr::V6(six) = &mut address {
                six.set_flowinfo(9);
            }
            assert_eq!(place(address), noq_proto::FourTuple::from_remote(address).remote(), "{text}");
        }
    }
}
