//! Other ends that do not keep to the protocol, in virtual time.

mod places;
mod requests;
mod words;

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

fn all(messages: &[Message]) -> Vec<u8> {
    messages.iter().flat_map(Message::encode).collect()
}

fn piece(offset: u64, length: usize) -> Vec<u8> {
    let mut bytes = offset.to_be_bytes().to_vec();
    bytes.extend_from_slice(&(length as u32).to_be_bytes());
    Source::Test.read(offset, length, &mut bytes).unwrap();
    bytes
}
