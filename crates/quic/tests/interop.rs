//! A plain quinn client and a plain quinn server, without anything of this project but the words on
//! the control stream, with the ends of this project in virtual time.

mod common;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::request;
use flowstart_quic::message::{Decoder, Direction, Message, Received, Report, Request};
use flowstart_quic::tls::Identity;
use flowstart_quic::{
    Arrival, Client, Clock, EcnCodepoint, Limits, Node, Receiving, Server, Service, Sink, Transferred, controller,
};
use flowstart_random::SplitMix64;
use flowstart_units::Time;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event, ServerConfig,
    StreamEvent, StreamId,
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

const SIZE: u64 = 400_000;
/// One way.
const DELAY: Duration = Duration::from_millis(10);
const PROTOCOL: &[u8] = b"flowstart/1";

fn plain_address() -> SocketAddr {
    "10.0.0.1:5001".parse().unwrap()
}

fn our_address() -> SocketAddr {
    "10.0.0.2:4433".parse().unwrap()
}

/// Certificate and key of an identity.
fn parts(identity: &Identity) -> (CertificateDer<'static>, PrivatePkcs8KeyDer<'static>) {
    let bytes = identity.to_bytes();
    let (length, rest) = bytes.split_first_chunk::<4>().unwrap();
    let (certificate, key) = rest.split_at(u32::from_be_bytes(*length) as usize);
    (CertificateDer::from(certificate.to_vec()), PrivatePkcs8KeyDer::from(key.to_vec()))
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// An end that is quinn's alone.
struct Plain {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    ready: bool,
    control: Option<StreamId>,
    decoder: Decoder,
    heard: Vec<Message>,
    inbound: Vec<StreamId>,
    receiving: Receiving,
}

impl Plain {
    fn new(server: Option<ServerConfig>) -> Self {
        let mut config = EndpointConfig::default();
        config.rng_seed(Some([3; 32]));
        Self {
            endpoint: Endpoint::new(Arc::new(config), server.map(Arc::new), true, None),
            connection: None,
            ready: false,
            control: None,
            decoder: Decoder::default(),
            heard: Vec::new(),
            inbound: Vec::new(),
            receiving: Receiving::new(Sink::Check, u64::MAX),
        }
    }

    fn client(now: Instant, identity: &Identity) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(parts(identity).0).unwrap();
        let mut config = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(config).unwrap()));
        let mut plain = Self::new(None);
        plain.connection = Some(plain.endpoint.connect(now, config, our_address(), "flowstart").unwrap());
        plain
    }

    fn server(identity: &Identity) -> Self {
        let (certificate, key) = parts(identity);
        let mut config = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key.into())
            .unwrap();
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Self::new(Some(ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(config).unwrap()))))
    }

    fn connection(&mut self) -> &mut Connection {
        &mut self.connection.as_mut().unwrap().1
    }

    /// Datagrams that it answers with, without a connection.
    fn hear(&mut self, now: Instant, ecn: Option<EcnCodepoint>, data: &[u8]) {
        let mut answer = Vec::new();
        let ecn = ecn.and_then(|ecn| quinn_proto::EcnCodepoint::from_bits(ecn as u8));
        match self.endpoint.handle(now, our_address(), None, ecn, data.into(), &mut answer) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, now, &mut answer, None);
                self.connection = Some(accepted.map_err(|error| error.cause).unwrap());
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => self.connection().handle_event(event),
            Some(DatagramEvent::Response(_)) | None => {}
        }
        self.listen();
    }

    fn listen(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.ready = true,
                Event::Stream(StreamEvent::Opened { .. } | StreamEvent::Readable { .. }) => {}
                Event::ConnectionLost { reason } => assert!(reason.to_string().contains("closed by peer"), "{reason}"),
                _ => {}
            }
        }
        if self.control.is_none() {
            self.control = connection.streams().accept(Dir::Bi);
        }
        while let Some(stream) = connection.streams().accept(Dir::Uni) {
            self.inbound.push(stream);
        }
        if let Some(control) = self.control {
            read(connection, control, &mut |bytes| self.decoder.push(bytes));
        }
        for stream in &self.inbound {
            let ours = flowstart_quic::StreamId::from(u64::from(*stream));
            read(connection, *stream, &mut |bytes| self.receiving.take(Time::ZERO, 0, ours, bytes, &mut |_| {}));
        }
        while let Some(message) = self.decoder.message().unwrap() {
            self.heard.push(message);
        }
    }

    fn say(&mut self, message: &Message) {
        let control = self.control.unwrap();
        let bytes = message.encode();
        assert_eq!(self.connection().send_stream(control).write(&bytes), Ok(bytes.len()));
    }

    fn transmit(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        let Some((_, connection)) = &mut self.connection else { return all };
        let mut buffer = Vec::new();
        while let Some(transmit) = connection.poll_transmit(now, 1, &mut buffer) {
            all.push(buffer[..transmit.size].to_vec());
            buffer.clear();
        }
        all
    }
}

fn read(connection: &mut Connection, stream: StreamId, take: &mut dyn FnMut(&[u8])) {
    let mut receive = connection.recv_stream(stream);
    let Ok(mut chunks) = receive.read(true) else { return };
    while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
        take(&chunk.bytes);
    }
    let _ = chunks.finalize();
}

/// All test data in pieces, as they travel over a stream (docs/quic-stack.md).
fn pieces() -> Vec<u8> {
    let data: Vec<u8> = (0..SIZE.div_ceil(8)).flat_map(|word| SplitMix64::nth(0, word + 1).to_le_bytes()).collect();
    let mut bytes = Vec::new();
    for (number, piece) in data[..SIZE as usize].chunks(20_000).enumerate() {
        bytes.extend((number as u64 * 20_000).to_be_bytes());
        bytes.extend((piece.len() as u32).to_be_bytes());
        bytes.extend(piece);
    }
    bytes
}

/// What a plain sender says when it has sent all.
fn report() -> Message {
    let zero = ["nanos", "packets", "lost", "marked", "acks", "min_rtt", "mean_rtt", "max_rtt", "jitter"];
    let mut document: HashMap<&str, serde_json::Value> = zero.into_iter().map(|name| (name, 0.into())).collect();
    document.extend([("bytes", SIZE.into()), ("late", serde_json::json!([0, 0])), ("real_time", false.into())]);
    document.extend(["exit", "exit_after", "queue"].map(|name| (name, serde_json::Value::Null)));
    let report: Report = serde_json::from_value(serde_json::to_value(document).unwrap()).unwrap();
    Message::Report(Box::new(report))
}

/// Whether one of this project's ends sent it, with its ECN field.
type Datagram = (bool, Option<EcnCodepoint>, Vec<u8>);

/// Drives one of this project's ends and a plain one until `step` is done with the latter.
fn drive<N: Node>(clock: Clock, ours: &mut N, plain: &mut Plain, step: &mut dyn FnMut(&mut N, &mut Plain) -> bool) {
    let instant = |now: Duration| clock.instant(Time::from_nanos(now.as_nanos() as u64));
    let mut now = Duration::ZERO;
    let mut flying: BTreeMap<(Duration, u64), Datagram> = BTreeMap::new();
    let (mut count, mut buffer) = (0, Vec::new());
    while !step(ours, plain) {
        let time = Time::from_nanos(now.as_nanos() as u64);
        while let Some(outgoing) = ours.poll_transmit(time, 0, &mut buffer) {
            ours.departed(0, &outgoing, time);
            flying.insert((now + DELAY, count), (true, outgoing.ecn, buffer.clone()));
            count += 1;
        }
        for data in plain.transmit(instant(now)) {
            flying.insert((now + DELAY, count), (false, None, data));
            count += 1;
        }
        let since = |at: Instant| at.saturating_duration_since(instant(Duration::ZERO));
        let timers = plain.connection.as_mut().and_then(|(_, it)| it.poll_timeout()).map(since);
        let timers = timers.into_iter().chain([Duration::from_nanos(ours.deadline().as_nanos())]);
        let next = flying.keys().next().map(|(at, _)| *at).into_iter().chain(timers).min().unwrap();
        now = next.max(now + Duration::from_nanos(1));
        assert!(now < Duration::from_secs(20), "it never ends");
        let time = Time::from_nanos(now.as_nanos() as u64);
        while let Some(first) = flying.first_entry().filter(|first| first.key().0 <= now) {
            match first.remove() {
                (true, ecn, data) => plain.hear(instant(now), ecn, &data),
                (false, ecn, data) => {
                    ours.handle(time, 0, &Arrival { at: time, from: plain_address(), ecn }, &data);
                }
            }
        }
        if ours.deadline() <= time {
            ours.handle_timeout(time);
        }
        if let Some((_, connection)) = &mut plain.connection
            && connection.poll_timeout().is_some_and(|at| at <= instant(now))
        {
            connection.handle_timeout(instant(now));
            plain.listen();
        }
    }
}

#[test]
fn a_plain_quinn_client_is_served_both_ways() {
    for direction in [Direction::Down, Direction::Up] {
        let clock = Clock::start();
        let identity = Identity::generate().unwrap();
        let make = Box::new(|start: &str, avoidance: &str, mtu| controller(start, avoidance, mtu));
        let limits = Limits { seed: Some([1; 32]), ..Limits::default() };
        let mut server = Server::new(clock, &limits, &identity, Service::default(), make, false).unwrap();
        let mut plain = Plain::client(clock.instant(Time::ZERO), &identity);
        let (pieces, mut stream, mut written) = (pieces(), None, 0);
        let asked = request(direction, SIZE, ("adaptive_chirping", "cubic"));
        drive(clock, &mut server, &mut plain, &mut |_, plain| {
            if plain.ready && plain.control.is_none() {
                plain.control = plain.connection().streams().open(Dir::Bi);
                plain.say(&Message::Request(asked.clone()));
            }
            let accepted = plain.heard.iter().any(|message| matches!(message, Message::Accepted(_)));
            if accepted && direction == Direction::Up {
                let id = *stream.get_or_insert_with(|| plain.connection().streams().open(Dir::Uni).unwrap());
                if written < pieces.len() {
                    written += plain.connection().send_stream(id).write(&pieces[written..]).unwrap_or(0);
                    if written == pieces.len() {
                        plain.connection().send_stream(id).finish().unwrap();
                        plain.say(&report());
                    }
                }
            }
            plain.heard.iter().any(|message| match message {
                Message::Received(received) => {
                    assert!(received.intact && received.bytes == SIZE, "{received:?}");
                    true
                }
                Message::Report(report) => {
                    assert!(report.bytes == SIZE && report.min_rtt >= 20_000_000, "{report:?}");
                    plain.receiving.is_intact() && plain.receiving.delivered() == SIZE
                }
                _ => false,
            })
        });
    }
}

/// A transfer of our client with a plain server.
fn with_plain_server(direction: Direction) -> Transferred {
    let clock = Clock::start();
    let identity = Identity::generate().unwrap();
    let asked = request(direction, SIZE, ("adaptive_chirping", "cubic"));
    let config = controller(&asked.start, &asked.avoidance, 1452).unwrap();
    let limits = Limits { seed: Some([9; 32]), ..Limits::default() };
    let (pinned, ends) = (Some(identity.fingerprint()), (config, Sink::Check));
    let mut client = Client::new(clock, Time::ZERO, &limits, plain_address(), pinned, asked, ends).unwrap();
    let mut plain = Plain::server(&identity);
    let (pieces, mut stream, mut written, mut said) = (pieces(), None, 0, 0);
    drive(clock, &mut client, &mut plain, &mut |client, plain| {
        let wanted =
            |message: &Message| matches!(message, Message::Request(Request { direction: d, .. }) if *d == direction);
        if said == 0 && plain.heard.iter().any(wanted) {
            plain.say(&Message::Accepted(None));
            said = 1;
        }
        if said == 1 && direction == Direction::Down && written < pieces.len() {
            let id = *stream.get_or_insert_with(|| plain.connection().streams().open(Dir::Uni).unwrap());
            written += plain.connection().send_stream(id).write(&pieces[written..]).unwrap_or(0);
            if written == pieces.len() {
                plain.connection().send_stream(id).finish().unwrap();
                plain.say(&report());
            }
        }
        let told = plain.heard.iter().any(|message| matches!(message, Message::Report(_)));
        let (bytes, intact) = (plain.receiving.delivered(), plain.receiving.is_intact());
        if said == 1 && told && bytes == SIZE {
            plain.say(&Message::Received(Received { bytes, nanos: 1, intact, first: 0 }));
            said = 2;
        }
        client.is_over(Time::NEVER)
    });
    client.outcome().unwrap()
}

#[test]
fn a_plain_quinn_server_serves_our_client_both_ways() {
    for direction in [Direction::Down, Direction::Up] {
        let outcome = with_plain_server(direction);
        assert!(outcome.received.intact && outcome.received.bytes == SIZE, "{direction:?}: {outcome:?}");
        if direction == Direction::Up {
            // quinn acknowledges packets one by one as well, if it is asked to.
            assert!(outcome.report.min_rtt >= 20_000_000 && outcome.report.lost == 0, "{outcome:?}");
        }
    }
}
