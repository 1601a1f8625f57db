//! Other ends that do not keep to the protocol, in virtual time.

use std::net::SocketAddr;

use flowstart_units::{Span, Time};

use crate::client::Client;
use crate::clock::Clock;
use crate::connection::Connection;
use crate::data::{Sink, Source};
use crate::endpoint::{Arrival, Doors, Endpoint, Limits, SILENCE};
use crate::message::{Direction, Isolated, Looked, Message, Paced, Received, Report, Request, VERSION};
use crate::node::Node;
use crate::sending::Sending;
use crate::server::{News, Server};
use crate::service::Service;
use crate::stack::{Dir, StreamId};
use crate::tls::{self, Identity};

const TICK: Span = Span::from_millis(1);

/// A request of one connection for session 7.
pub(crate) fn request(direction: Direction, size: Option<u64>) -> Request {
    Request {
        version: VERSION,
        session: 7,
        connections: 1,
        direction,
        size,
        nanos: None,
        streams: 1,
        start: "slow_start".to_owned(),
        avoidance: "cubic".to_owned(),
        file: None,
        look: false,
        paced: None,
    }
}

fn report(bytes: u64) -> Report {
    Report {
        bytes,
        nanos: 1,
        packets: 1,
        lost: 0,
        marked: 0,
        acks: 1,
        min_rtt: 1,
        mean_rtt: 1,
        max_rtt: 1,
        jitter: 1,
        exit: None,
        exit_after: None,
        late: [0; 2],
        real_time: true,
        queue: None,
        resumed: None,
        look: None,
    }
}

fn looked(rates: &[u64], between: Option<[u64; 2]>) -> Looked {
    Looked {
        rates: rates.to_vec(),
        burst: None,
        behind: None,
        tested: 0,
        doubt: None,
        alone: None,
        between,
        rtt: 1,
        packet: 1480,
        jitter: 0,
        queue: 0,
        varied: 0,
        lost: 0,
        overflowed: false,
        away: 0,
        ecn: false,
    }
}

/// An end whose connections do what a test says.
struct Raw {
    endpoint: Endpoint,
    address: SocketAddr,
    /// It reads nothing but the datagrams before this one.
    reads: usize,
}

impl Raw {
    fn new(clock: Clock, address: &str, identity: Option<&Identity>) -> Self {
        let seed = Some([address.len() as u8; 32]);
        let limits = Limits { seed, receive_window: 1 << 20, ..Limits::default() };
        let endpoint = Endpoint::new(clock, &limits, identity).unwrap();
        Self { endpoint, address: address.parse().unwrap(), reads: usize::MAX }
    }

    fn connect(&mut self, now: Time, to: SocketAddr) {
        self.endpoint.connect(now, tls::client(None, None).unwrap(), to).unwrap();
    }

    fn connection(&mut self) -> &mut Connection {
        self.endpoint.connection(0).unwrap()
    }

    fn take(&mut self, now: Time, from: SocketAddr, data: &[u8]) {
        let Some(reads) = self.reads.checked_sub(1) else { return };
        self.reads = reads;
        let mut doors = Doors { moves: &mut |_| true, enters: &mut || true };
        self.endpoint.handle(now, &Arrival { at: now, from, ecn: None }, data, &mut doors);
        self.endpoint.exchange(now);
    }
}

/// Both ends do what is due now, over links that take no time.
fn exchange(now: Time, node: &mut dyn Node, there: SocketAddr, raw: &mut Raw) {
    let mut buffer = Vec::new();
    loop {
        if node.deadline() <= now {
            node.handle_timeout(now);
        }
        if raw.endpoint.deadline() <= now {
            raw.endpoint.handle_timeout(now);
        }
        if let Some(outgoing) = raw.endpoint.poll_transmit(now, &mut buffer, &mut |_, _, _| false) {
            if let Some(connection) = outgoing.connection.and_then(|number| raw.endpoint.connection(number)) {
                connection.departed(now);
            }
            node.handle(now, 0, &Arrival { at: now, from: raw.address, ecn: None }, &buffer);
        } else if let Some(outgoing) = node.poll_transmit(now, 0, &mut buffer) {
            node.departed(0, &outgoing, now);
            if outgoing.to == raw.address {
                raw.take(now, there, &buffer);
            }
        } else {
            return;
        }
    }
}

fn address() -> SocketAddr {
    "192.0.2.1:4433".parse().unwrap()
}

/// A server with these limits and whoever wants to be its client.
struct Served {
    clock: Clock,
    server: Server,
    now: Time,
}

impl Served {
    fn new(service: Service) -> Self {
        Self::limited(service, &Limits::default())
    }

    fn limited(service: Service, limits: &Limits) -> Self {
        let identity = Identity::generate().unwrap();
        let make = Box::new(|start: &str, avoidance: &str, mtu| crate::controller(start, avoidance, mtu));
        let clock = Clock::start();
        let server = Server::new(clock, limits, &identity, service, make, false).unwrap();
        Self { clock, server, now: Time::ZERO + TICK }
    }

    fn client(&mut self, from: &str) -> Raw {
        let mut raw = Raw::new(self.clock, from, None);
        raw.connect(self.now, address());
        raw
    }

    fn run(&mut self, raw: &mut Raw, span: Span) {
        let until = self.now + span;
        while self.now < until {
            exchange(self.now, &mut self.server, address(), raw);
            self.now += TICK;
        }
    }

    /// A client whose handshake is over, and its control stream.
    fn greeted(&mut self, from: &str) -> (Raw, StreamId) {
        let mut raw = self.client(from);
        self.run(&mut raw, TICK + TICK);
        while raw.connection().poll().is_some() {}
        assert!(raw.connection().is_ready());
        let control = raw.connection().open(Dir::Bi).unwrap();
        (raw, control)
    }
}

/// What a client says of a server that answers its request so.
fn answered(request: Request, answer: &[u8], data: &[u8]) -> Result<Received, String> {
    let clock = Clock::start();
    let mut raw = Raw::new(clock, "192.0.2.1:4433", Some(&Identity::generate().unwrap()));
    let mut now = Time::ZERO + TICK;
    let config = crate::controller("slow_start", "cubic", 1452).unwrap();
    let mut client =
        Client::new(clock, now, &Limits::default(), address(), None, request, (config, Sink::Check)).unwrap();
    let here = "192.0.2.7:5000".parse().unwrap();
    let mut said = false;
    for _ in 0..200 {
        exchange(now, &mut client, here, &mut raw);
        if let Some(connection) = raw.endpoint.connection(0) {
            while connection.poll().is_some() {}
            if let Some(control) = (!said).then(|| connection.accept(Dir::Bi)).flatten() {
                said = true;
                connection.write(control, answer);
                if let Some(stream) = (!data.is_empty()).then(|| connection.open(Dir::Uni)).flatten() {
                    connection.write(stream, data);
                }
            }
        }
        now += TICK;
        if client.is_over(now) {
            break;
        }
    }
    assert!(said && client.is_over(now), "it goes on after {}", String::from_utf8_lossy(answer));
    client.outcome().map(|outcome| outcome.received).map_err(|failed| failed.to_string())
}

fn all(messages: &[Message]) -> Vec<u8> {
    messages.iter().flat_map(Message::encode).collect()
}

fn framed(document: &[u8]) -> Vec<u8> {
    [&(document.len() as u32).to_be_bytes()[..], document].concat()
}

fn piece(offset: u64, length: usize) -> Vec<u8> {
    let mut bytes = offset.to_be_bytes().to_vec();
    bytes.extend_from_slice(&(length as u32).to_be_bytes());
    Source::Test.read(offset, length, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_client_ends_with_a_sentence_whatever_a_server_says() {
    let accepted = Message::Accepted(None);
    let received = |bytes| Message::Received(Received { bytes, nanos: 1, intact: true, first: 0 });
    let reports = |report: Report| Message::Report(Box::new(report));
    let look = |rates: &[u64], between| reports(Report { look: Some(looked(rates, between)), ..report(600) });
    let protocol = "does not speak flowstart's protocol";
    let (down, up) = (request(Direction::Down, Some(600)), request(Direction::Up, Some(600)));
    let file = Request { size: None, file: Some("a".to_owned()), ..down.clone() };
    for (request, answer, data, says) in [
        (&down, vec![0xff; 9], vec![], protocol),
        (&down, framed(b"hello"), vec![], protocol),
        (&down, framed(b"{\"\\u001b[2J\":1}"), vec![], protocol),
        (&up, framed(&[0; 100]), vec![], protocol),
        // What the other role says.
        (&down, all(&[accepted.clone(), received(600), reports(report(600))]), vec![], protocol),
        (&up, all(&[accepted.clone(), reports(report(600)), received(600)]), vec![], protocol),
        (&down, all(&[Message::Join(1)]), vec![], protocol),
        // More than was asked for, or than there is.
        (&down, accepted.encode(), piece(0, 601), "more than was asked for"),
        (&down, accepted.encode(), piece(1 << 20, 600), "more than was asked for"),
        (&file, all(&[Message::Accepted(Some(600))]), piece(0, 601), "more than was asked for"),
        // What does not fit together.
        (&down, all(&[accepted.clone(), reports(report(599))]), piece(0, 600), "599 bytes were sent, and 600 arrived"),
        (&up, all(&[accepted.clone(), received(601)]), vec![], "600 bytes were sent, and 601 arrived"),
        (&down, all(&[accepted.clone(), look(&[2, 1], None)]), vec![], "reports what cannot be"),
        (&down, all(&[accepted.clone(), look(&[1], Some([2, 1]))]), vec![], "reports what cannot be"),
    ] {
        let said = answered(request.clone(), &answer, &data).unwrap_err();
        assert!(said.contains(says), "{said}");
        assert!(!said.chars().any(char::is_control) && said.chars().count() < 600, "{said}");
    }
    let right = answered(down.clone(), &all(&[accepted.clone(), reports(report(600))]), &piece(0, 600));
    assert_eq!(right.map(|received| received.bytes), Ok(600));
    let right = answered(up, &all(&[accepted, received(600)]), &[]);
    assert_eq!(right.map(|received| received.bytes), Ok(600));
}

#[test]
fn words_of_a_report_are_shown_as_they_may_be() {
    let queue = Isolated { isolation: "\u{9b}2J".to_owned(), confidence: None, rate: 1, after: 1 };
    let words = Report { exit: Some("a\u{202e}b\r".to_owned()), queue: Some(queue), ..report(1) };
    let words = words.possible().unwrap();
    assert_eq!(words.exit.as_deref(), Some("a\u{fffd}b\u{fffd}"));
    assert_eq!(words.queue.unwrap().isolation, "\u{fffd}2J");
}

#[test]
fn who_was_refused_is_not_listened_to_any_more() {
    let mut served = Served::new(Service::default());
    let (mut raw, control) = served.greeted("192.0.2.7:5000");
    let wrong = Message::Request(Request { version: 99, ..request(Direction::Down, Some(1)) }).encode();
    let mut sent = 0;
    for _ in 0..2000 {
        sent += raw.connection().write(control, &wrong.repeat(100));
        served.run(&mut raw, TICK);
    }
    assert!(sent >= 1 << 20, "{sent}");
    let news = served.server.take_news();
    assert!(matches!(news[..], [News::Refused(..)]), "{} news", news.len());
    assert!(sent <= 3 << 20, "{sent} bytes were taken");
}

#[test]
fn handshakes_that_are_not_completed_take_a_few_places_of_their_peer_and_no_others() {
    let mut served = Served::new(Service { per_peer: 4, ..Service::default() });
    let mut many: Vec<Raw> = (0..70).map(|port| served.client(&format!("192.0.2.7:{}", 5000 + port))).collect();
    for _ in 0..9 {
        for raw in &mut many {
            // The Retry, and nothing after it.
            raw.reads = raw.reads.min(1);
            served.run(raw, TICK);
        }
        let (mut good, _) = served.greeted("198.51.100.1:6000");
        good.connection().close(served.now, 0, "");
        served.run(&mut good, TICK);
    }
    let news = served.server.take_news();
    let refused = news.iter().filter(|news| matches!(news, News::Refused(..))).count();
    assert_eq!(refused, 2, "{news:?}");
    // They have the places for as long as a handshake may take.
    let mut one = many.pop().unwrap();
    for _ in 0..200 {
        served.run(&mut one, TICK);
        served.now += Span::from_millis(100);
    }
    let (mut good, _) = served.greeted("192.0.2.7:7000");
    served.run(&mut good, TICK);
    assert!(!good.connection().is_closed());
}

/// Nothing is due at a server whose client only gives a sign of life now and then.
#[test]
fn who_says_nothing_but_that_he_is_there_is_gone_when_his_time_is_over() {
    let mut served = Served::new(Service { most_time: Span::from_secs(30), ..Service::default() });
    let (mut raw, control) = served.greeted("192.0.2.7:5000");
    raw.connection().write(control, &Message::Request(request(Direction::Up, None)).encode());
    served.run(&mut raw, TICK);
    let began = served.now;
    assert!(matches!(served.server.take_news()[..], [News::Asked(..)]));
    while served.now.since(began) < Span::from_secs(45) {
        // A client's own keep-alive, every 3.3 s.
        served.run(&mut raw, TICK);
        served.now += Span::from_millis(200);
    }
    assert!(raw.connection().is_closed());
    assert!(matches!(served.server.take_news()[..], [News::BrokenOff(..)]));
}

#[test]
fn what_is_sent_behind_a_gap_counts_for_who_sent_it() {
    let mut served = Served::new(Service { peer_bytes: 100_000, ..Service::default() });
    let mut had = Vec::new();
    for port in 5000..5003 {
        let (mut raw, control) = served.greeted(&format!("192.0.2.7:{port}"));
        let asked = Request { session: port, ..request(Direction::Up, Some(60_000)) };
        raw.connection().write(control, &Message::Request(asked).encode());
        served.run(&mut raw, TICK);
        let stream = raw.connection().open(Dir::Uni).unwrap();
        for offset in [1000, 21_000] {
            raw.connection().write(stream, &piece(offset, 20_000));
            served.run(&mut raw, TICK);
        }
        raw.connection().close(served.now, 0, "");
        served.run(&mut raw, TICK);
        had.extend(served.server.take_news().into_iter().filter_map(|news| match news {
            News::Refused(_, why) => Some(why),
            _ => None,
        }));
    }
    assert!(matches!(&had[..], [why] if why.contains("of which 20 kB are left")), "{had:?}");
}

/// Whatever is asked for is refused or sent; arithmetic that overflows would end a test.
#[test]
fn no_request_is_too_strange() {
    let numbers = [None, Some(0), Some(1), Some(u64::MAX)];
    let pacing = |message, gap, tell| Some(Paced { message, gap, tell });
    let paced = [
        None,
        pacing(512, 1, false),
        pacing(512, 1, true),
        pacing(u64::MAX, 1, false),
        pacing(u64::MAX, u64::MAX, true),
        pacing(1000, 1 << 62, false),
    ];
    let most = u64::MAX;
    let (most_time, peer_time) = (Span::from_nanos(most), Span::from_nanos(most));
    let mut session = 0;
    for size in numbers {
        for nanos in numbers {
            for (paced, look) in paced.map(|paced| (paced, false)).into_iter().chain([(None, true)]) {
                for direction in [Direction::Down, Direction::Up] {
                    let service =
                        Service { most_bytes: most, peer_bytes: most, most_time, peer_time, ..Service::default() };
                    let mut served = Served::new(service);
                    let (mut raw, control) = served.greeted("192.0.2.7:5000");
                    session += 1;
                    let (start, avoidance) =
                        if look { ("fair_queuing_probe", "delay_or_cubic") } else { ("slow_start", "cubic") };
                    let asked = Request {
                        session,
                        nanos,
                        paced,
                        look,
                        connections: 1 + u8::from(look),
                        start: start.to_owned(),
                        avoidance: avoidance.to_owned(),
                        ..request(direction, size)
                    };
                    raw.connection().write(control, &Message::Request(asked).encode());
                    if look {
                        raw.connect(served.now, address());
                        served.run(&mut raw, TICK + TICK);
                        let second = raw.endpoint.connection(1).unwrap();
                        while second.poll().is_some() {}
                        let control = second.open(Dir::Bi).unwrap();
                        second.write(control, &Message::Join(session).encode());
                    }
                    served.run(&mut raw, Span::from_millis(3));
                    if let Some(stream) = raw.connection().open(Dir::Uni) {
                        raw.connection().write(stream, &piece(0, 600));
                    }
                    let strange = Report { nanos: most, max_rtt: most, lost: most, ..report(most) };
                    raw.connection().write(control, &Message::Report(Box::new(strange)).encode());
                    served.run(&mut raw, Span::from_millis(3));
                    served.now += Span::from_secs(4000);
                    served.run(&mut raw, TICK);
                }
            }
        }
    }
}

/// A server whose stack is alive, and that says this first, and the same every five seconds.
fn drips(request: Request, first: &[u8], drop: &[u8]) -> (Span, String) {
    let clock = Clock::start();
    let mut raw = Raw::new(clock, "192.0.2.1:4433", Some(&Identity::generate().unwrap()));
    let began = Time::ZERO + TICK;
    let mut now = began;
    let config = crate::controller("slow_start", "cubic", 1452).unwrap();
    let ends = (config, Sink::Check);
    let mut client = Client::new(clock, now, &Limits::default(), address(), None, request, ends).unwrap();
    let here = "192.0.2.7:5000".parse().unwrap();
    let (mut control, mut stream, mut last) = (None, None, now);
    while !client.is_over(now) {
        exchange(now, &mut client, here, &mut raw);
        if let Some(connection) = raw.endpoint.connection(0) {
            while connection.poll().is_some() {}
            if control.is_none() {
                control = connection.accept(Dir::Bi);
                control.map(|control| connection.write(control, first));
            } else if now.since(last) >= Span::from_secs(5) {
                last = now;
                stream = stream.or_else(|| connection.open(Dir::Uni));
                stream.map(|stream| connection.write(stream, drop));
            }
            exchange(now, &mut client, here, &mut raw);
        }
        now += Span::from_millis(100);
        assert!(now.since(began) < Span::from_secs(1000), "it goes on");
    }
    (now.since(began), client.outcome().unwrap_err().to_string())
}

#[test]
fn a_transfer_that_goes_no_further_is_over_after_a_minute() {
    let accepted = Message::Accepted(None).encode();
    for direction in [Direction::Down, Direction::Up] {
        for first in [&[][..], &accepted] {
            let (took, said) = drips(request(direction, Some(100_000_000)), first, &[]);
            assert!(said.contains("for 60 s the transfer has gone no further"), "{said}");
            assert!(took >= Span::from_secs(60) && took < Span::from_secs(70), "{took}: {said}");
        }
    }
    // Something new now and then, for much longer than the time that was asked for.
    let timed = Request { nanos: Some(5_000_000_000), ..request(Direction::Down, None) };
    let (took, said) = drips(timed, &accepted, &piece(0, 512));
    assert!(said.contains("goes on with the transfer long after its time"), "{said}");
    assert!(took < Span::from_secs(131), "{took}: {said}");
}

/// The stack keeps what follows a packet that is not acknowledged for as long as its stream lasts.
#[test]
fn no_stream_carries_so_much_that_all_of_it_could_not_be_kept() {
    let mut served = Served::new(Service::default());
    let (mut raw, control) = served.greeted("192.0.2.7:5000");
    let size = 100_000_000;
    let began = served.now;
    raw.connection().write(control, &Message::Request(request(Direction::Down, Some(size))).encode());
    let (mut streams, mut carried) = (Vec::new(), std::collections::HashMap::new());
    for _ in 0..60_000 {
        served.run(&mut raw, TICK);
        let connection = raw.connection();
        while connection.poll().is_some() {}
        streams.extend(std::iter::from_fn(|| connection.accept(Dir::Uni)));
        streams.retain(|stream| {
            let over = connection.read(*stream, &mut |bytes| *carried.entry(*stream).or_insert(0) += bytes.len());
            !over
        });
        if served.server.take_news().iter().any(|news| matches!(news, News::Complete(..))) {
            break;
        }
    }
    let whole: usize = carried.values().sum();
    assert!(whole as u64 > size, "{whole}");
    assert!(served.now.since(began) < Span::from_secs(20), "{}", served.now.since(began));
    assert!(carried.values().all(|bytes| *bytes < (2 << 20) + (64 << 10)), "{carried:?}");
}

/// As long as the handshake is not over no streams are allowed, either.
#[test]
fn who_allows_no_streams_is_a_fault_and_ends_nothing() {
    let mut raw = Raw::new(Clock::start(), "192.0.2.7:5000", None);
    let now = Time::ZERO + TICK;
    raw.connect(now, address());
    let config = crate::controller("slow_start", "cubic", 1452).unwrap();
    let look = crate::LookConfig::default();
    let learning = crate::LearningConfig::default();
    let mut sending = Sending::new(Source::Test, &request(Direction::Down, Some(100_000)), config, look, learning);
    sending.begin(now, 0, raw.connection());
    assert_eq!(sending.fault(), Some("the other end allows no streams"));
    assert!(!sending.feed(now, 0, raw.connection(), false) && !sending.feed(now, 0, raw.connection(), true));
}

/// How long the stack answers what arrives of a closed connection its client says.
#[test]
fn connections_that_were_closed_take_no_places() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let mut served = Served::limited(Service::default(), &limits);
    for port in 5000..5100 {
        let (mut raw, _) = served.greeted(&format!("192.0.2.7:{port}"));
        raw.connection().close(served.now, 0, "");
        served.run(&mut raw, TICK);
    }
}

/// Bytes that a client whose request is this could send, of which nobody reads any.
fn unread(asked: Option<Request>) -> usize {
    let mut served = Served::new(Service::default());
    let (mut raw, control) = served.greeted("192.0.2.7:5000");
    if let Some(asked) = asked {
        raw.connection().write(control, &Message::Request(asked).encode());
        served.run(&mut raw, TICK);
    }
    let mut sent = 0;
    for _ in 0..40 {
        let Some(stream) = raw.connection().open(Dir::Uni) else { break };
        // No piece is so long: nothing of it is read.
        sent += raw.connection().write(stream, &vec![0xff; 1 << 20]);
        served.run(&mut raw, TICK);
    }
    sent
}

#[test]
fn who_has_not_asked_to_send_can_send_little() {
    let most = crate::stack::UNASKED as usize;
    for asked in [None, Some(request(Direction::Down, Some(1)))] {
        let sent = unread(asked);
        assert!(sent > 0 && sent <= most, "{sent}");
    }
    assert!(unread(Some(request(Direction::Up, None))) > 5 * most);
}

/// What comes back to whoever has sent this last.
type Comes<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;

/// How long a client tries to connect where this comes back at those milliseconds of each period of
/// so many, made of what it has sent last, and what it says then.
fn tries(look: bool, (at, period): (&[u64], u64), comes: Comes<'_>) -> (Span, String) {
    let began = Time::ZERO + TICK;
    let config = crate::controller("slow_start", "cubic", 1452).unwrap();
    let asked = Request { look, ..request(Direction::Down, Some(600)) };
    let ends = (config, Sink::Check);
    let mut client = Client::new(Clock::start(), began, &Limits::default(), address(), None, asked, ends).unwrap();
    let (mut now, mut buffer, mut last) = (began, Vec::new(), Vec::new());
    while !client.is_over(now) && now.since(began) < Span::from_secs(200) {
        if client.deadline() <= now {
            client.handle_timeout(now);
        }
        while let Some(outgoing) = client.poll_transmit(now, 0, &mut buffer) {
            client.departed(0, &outgoing, now);
            last.clone_from(&buffer);
        }
        if at.contains(&(now.since(began).as_nanos() / 1_000_000 % period)) {
            client.handle(now, 0, &Arrival { at: now, from: address(), ecn: None }, &comes(&last));
        }
        now += TICK;
    }
    (now.since(began), client.outcome().unwrap_err().to_string())
}

/// A datagram to whoever sent this one, with a long header of that first byte and version.
fn to_sender(sent: &[u8], first: u8, version: u32) -> Vec<u8> {
    let to = usize::from(sent[5]);
    let from = usize::from(sent[6 + to]);
    let name = &sent[7 + to..7 + to + from];
    let mut packet = vec![first];
    packet.extend_from_slice(&version.to_be_bytes());
    packet.push(name.len() as u8);
    packet.extend_from_slice(name);
    packet.extend_from_slice(&[8; 9]);
    // No token, 100 bytes.
    packet.extend_from_slice(&[0, 0x40, 100]);
    packet.resize(packet.len() + 100, 7);
    packet
}

/// What made an attempt go on was whatever arrived.
#[test]
fn garbage_does_not_keep_a_handshake_going() {
    for look in [false, true] {
        let strange: [Comes<'_>; 6] =
            [&|_| vec![0xff; 50], &|_| vec![0xc0; 1200], &|_| vec![0x40; 50], &|_| vec![7], &|_| Vec::new(), &|sent| {
                sent.to_vec()
            }];
        for comes in strange {
            let (took, said) = tries(look, (&[500], 1000), comes);
            assert!(took <= SILENCE + TICK, "{took:?} {said}");
            assert!(said.starts_with("what came back from 192.0.2.1:4433 within 3 s is no handshake"), "{said}");
        }
        // A server, or who sees its packets, may have the name in them, and send them so that no
        // attempt is over before the stack gives it up after 10 s.
        for (first, version) in [(0xc0, 1), (0xe0, 1), (0xf0, 1), (0xc0, 0)] {
            for times in [(&[500][..], 1000), (&[2500, 5000, 6900], 9900)] {
                let (took, said) = tries(look, times, &|sent| to_sender(sent, first, version));
                assert!(took <= Span::from_secs(50), "{took:?} {said}");
            }
        }
    }
}
