//! An imagined network in virtual time: links, and hosts that may be busy with something else.

// Not every test needs all of it.
#![allow(dead_code)]

#[path = "described.rs"]
pub(crate) mod described;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;

use described::Described;
use flowstart_quic::message::Request;
use flowstart_quic::tls::{Fingerprint, Identity};
use flowstart_quic::{
    Arrival, Client, Clock, EcnCodepoint, Failed, Limits, LookConfig, Node, Server, Service, Sink, Stack, Transferred,
    controller, datagram_sample,
};
use flowstart_units::{Bytes, Rate, Span, Time};

/// A link in both directions; the queue is that of data in the direction of `Direction`.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) rate: Rate,
    pub(crate) delay: Span,
    /// Packets that wait at most.
    pub(crate) buffer: usize,
    /// One in so many packets is lost (0: none).
    pub(crate) loss: u64,
    /// ... and one in so many behind the queue, where it took its time (0: none).
    pub(crate) lost_behind: u64,
    /// Additional delay of up to this much, which lets packets overtake each other.
    pub(crate) jitter: Span,
    /// Connections take turns, each with a queue of its own.
    pub(crate) fair: bool,
    /// Packets that find this many waiting are marked.
    pub(crate) mark: usize,
    /// A token bucket lets so many bytes leave at this rate; then `rate` is what fills it.
    pub(crate) bucket: Option<(u64, Rate)>,
    /// Bytes of the largest packet that passes, with headers; larger ones are lost.
    pub(crate) largest: usize,
    /// What left arrives when a slot of this length ends, one packet shortly behind the other; zero
    /// if there are none.
    pub(crate) slots: Span,
    /// Packets are of IPv6, with headers of 48 bytes instead of 28.
    pub(crate) six: bool,
}

impl Link {
    fn headers(&self) -> usize {
        if self.six { 48 } else { 28 }
    }
}

impl Default for Link {
    fn default() -> Self {
        Self {
            rate: Rate::from_mbps(20),
            delay: Span::from_millis(10),
            buffer: 100,
            loss: 0,
            lost_behind: 0,
            jitter: Span::ZERO,
            fair: false,
            mark: usize::MAX,
            bucket: None,
            largest: usize::MAX,
            slots: Span::ZERO,
            six: false,
        }
    }
}

/// Within a slot packets are so far apart.
const IN_SLOT: Span = Span::from_micros(10);

#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// To the server, or to a socket of the client.
    pub(crate) to: Option<usize>,
    pub(crate) flow: usize,
    pub(crate) ecn: Option<EcnCodepoint>,
    pub(crate) data: Vec<u8>,
}

/// One direction.
pub(crate) struct Pipe {
    pub(crate) link: Link,
    queues: [std::collections::VecDeque<Packet>; 2],
    turn: usize,
    free: Time,
    draws: u64,
    /// Nanoseconds of the rate that are left in the bucket, and when that was so.
    tokens: (Span, Time),
    /// When the last packet of a slot was through.
    through: Time,
    /// In place of all that: a link of the crate `network`.
    pub(crate) described: Option<Described>,
}

impl Pipe {
    pub(crate) fn new(link: &Link, seed: u64) -> Self {
        Self {
            link: link.clone(),
            queues: Default::default(),
            turn: 0,
            free: Time::ZERO,
            draws: seed,
            tokens: (Span::from_secs(1000), Time::ZERO),
            through: Time::ZERO,
            described: None,
        }
    }

    fn draw(&mut self) -> u64 {
        self.draws = self.draws.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.draws ^ (self.draws >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn arrive(&mut self, now: Time, mut packet: Packet) {
        if let Some(described) = &mut self.described {
            return described.arrive(now, packet);
        }
        let lost = self.link.loss > 0 && self.draw().is_multiple_of(self.link.loss);
        if lost || packet.data.len() + self.link.headers() > self.link.largest {
            return;
        }
        let queue = if self.link.fair { packet.flow } else { 0 };
        let waiting = self.queues[queue].len();
        if waiting >= self.link.mark && packet.ecn.is_some() {
            packet.ecn = Some(EcnCodepoint::Ce);
        }
        if waiting < self.link.buffer {
            self.queues[queue].push_back(packet);
        }
    }

    /// The next packet if the link is free, and when it is at the other end.
    pub(crate) fn leave(&mut self, now: Time) -> Option<(Time, Packet)> {
        if let Some(described) = &mut self.described {
            return described.leave(now);
        }
        if now < self.free {
            return None;
        }
        self.turn = 1 - self.turn;
        let turn = if self.queues[self.turn].is_empty() { 1 - self.turn } else { self.turn };
        let bytes = Bytes::new((self.queues[turn].front()?.data.len() + self.link.headers()) as u64);
        let mut takes = self.link.rate.transmission_time(bytes);
        if let Some((bucket, peak)) = self.link.bucket {
            let full = self.link.rate.transmission_time(Bytes::new(bucket));
            let tokens = full.min(self.tokens.0 + now.since(self.tokens.1));
            if tokens < takes {
                self.free = now + (takes - tokens);
                return None;
            }
            self.tokens = (tokens - takes, now);
            takes = peak.transmission_time(bytes);
        }
        let packet = self.queues[turn].pop_front()?;
        self.free = now + takes;
        if self.link.lost_behind > 0 && self.draw().is_multiple_of(self.link.lost_behind) {
            return None;
        }
        let jitter = match self.link.jitter.as_nanos() {
            0 => 0,
            most => self.draw() % most,
        };
        self.through = match self.link.slots.as_nanos() {
            0 => self.free,
            slot => Time::from_nanos(self.free.as_nanos().next_multiple_of(slot)).max(self.through + IN_SLOT),
        };
        Some((self.through + self.link.delay + Span::from_nanos(jitter), packet))
    }
}

impl Pipe {
    /// A link of the crate `network`.
    pub(crate) fn of(described: Described) -> Self {
        Self { described: Some(described), ..Self::new(&Link::default(), 0) }
    }

    /// Nothing leaves until then: it waits.
    pub(crate) fn hold(&mut self, until: Time) {
        self.free = self.free.max(until);
    }

    /// When it has something to do; [`Time::NEVER`] if nothing waits.
    fn wake(&self) -> Time {
        let waits = self.queues.iter().any(|queue| !queue.is_empty());
        self.described.as_ref().map_or(if waits { self.free } else { Time::NEVER }, Described::wake)
    }
}

/// How a host is busy with something else, again and again: 0.1 ms and more, up to 6 ms, half of
/// the time less than 0.2 ms. Meanwhile nothing is read or sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Busy {
    /// From the end of one stall to the beginning of the next, on average; zero if there are none.
    pub(crate) every: Span,
    /// What is read late is known to have arrived before.
    pub(crate) stamps: bool,
    pub(crate) draws: u64,
    /// A stall lasts no longer than this.
    pub(crate) most: Span,
    stalls: Vec<(Time, Time)>,
}

impl Busy {
    pub(crate) fn new(every: Span, stamps: bool, seed: u64) -> Self {
        Self { every, stamps, draws: seed, most: Span::from_millis(6), stalls: Vec::new() }
    }

    /// Uniform on 0 .. 1, without 0.
    fn draw(&mut self) -> f64 {
        self.draws = self.draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.draws >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// The first time from this one on at which the host does something.
    pub(crate) fn awake(&mut self, at: Time) -> Time {
        if self.every.is_zero() || at == Time::NEVER {
            return at;
        }
        while self.stalls.last().is_none_or(|(_, end)| *end <= at) {
            let before = self.stalls.last().map_or(Time::ZERO, |(_, end)| *end);
            let begin = before + self.every.mul_f64(-self.draw().ln());
            let length = Span::from_micros(100).mul_f64(self.draw().powf(-0.8)).min(self.most);
            self.stalls.push((begin, begin + length));
        }
        let place = self.stalls.partition_point(|(_, end)| *end <= at);
        let (begin, end) = self.stalls[place];
        if begin <= at { end } else { at }
    }
}

pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) server: Server,
    /// To the server, to the client.
    pub(crate) pipes: [Pipe; 2],
    /// On the way, by arrival and order.
    pub(crate) flying: BinaryHeap<Reverse<(Time, u64)>>,
    /// With the time that is taken for that of their arrival.
    pub(crate) packets: std::collections::HashMap<u64, (Time, Packet)>,
    pub(crate) count: u64,
    pub(crate) now: Time,
    /// Bytes that the server sent to where the client is.
    pub(crate) to_client: u64,
    pub(crate) ports: [SocketAddr; 2],
    /// Where the server is.
    at: SocketAddr,
    pub(crate) carried: [u64; 2],
    /// How many datagrams that were.
    pub(crate) datagrams: u64,
    /// The sample of every datagram that arrived at the server, and when.
    pub(crate) arrived: Vec<(u128, Time)>,
    /// The client's host, and the server's.
    pub(crate) hosts: [Busy; 2],
    /// The client is not where its packets come from.
    pub(crate) forged: bool,
    /// Bytes that the server sent to where nobody is.
    pub(crate) stray: u64,
    /// Who the server is, and what its clock counts from.
    pub(crate) identity: Identity,
    pub(crate) clock: Clock,
}

impl World {
    /// The server is killed, and started anew by this identity and these limits: it knows of
    /// nothing.
    pub(crate) fn restart(&mut self, identity: &Identity, limits: &Limits) {
        self.restart_with(identity, limits, Service::default());
    }

    /// ... and serves within these.
    pub(crate) fn restart_with(&mut self, identity: &Identity, limits: &Limits, service: Service) {
        let make = Box::new(|start: &str, avoidance: &str, mtu| controller(start, avoidance, mtu));
        self.server = Server::new(self.clock, limits, identity, service, make, false).unwrap();
    }

    /// Nothing passes any more in either direction, or all does again.
    pub(crate) fn cut(&mut self, cut: bool) {
        self.pipes.iter_mut().for_each(|pipe| pipe.link.loss = u64::from(cut));
    }

    pub(crate) fn flush(&mut self) {
        let mut buffer = Vec::new();
        let now = self.now;
        let awake = self.hosts.each_mut().map(|host| host.awake(now) <= now);
        for socket in 0..if awake[0] { self.client.sockets() } else { 0 } {
            while let Some(outgoing) = self.client.poll_transmit(self.now, socket, &mut buffer) {
                self.client.departed(socket, &outgoing, self.now);
                self.carried[0] += buffer.len() as u64;
                self.datagrams += 1;
                self.pipes[0].arrive(now, Packet { to: None, flow: socket, ecn: outgoing.ecn, data: buffer.clone() });
            }
        }
        while awake[1]
            && let Some(outgoing) = self.server.poll_transmit(self.now, 0, &mut buffer)
        {
            self.server.departed(0, &outgoing, self.now);
            self.carried[1] += buffer.len() as u64;
            self.datagrams += 1;
            // What is sent to an address that nobody has any more is lost.
            assert_ne!(outgoing.to.port(), 0, "no datagram leaves for where nobody is");
            let Some(socket) = self.ports.iter().position(|port| *port == outgoing.to && !self.forged) else {
                self.stray += buffer.len() as u64;
                continue;
            };
            self.to_client += buffer.len() as u64;
            self.pipes[1]
                .arrive(now, Packet { to: Some(socket), flow: socket, ecn: outgoing.ecn, data: buffer.clone() });
        }
        for pipe in &mut self.pipes {
            while let Some((at, packet)) = pipe.leave(self.now) {
                let host = &mut self.hosts[usize::from(packet.to.is_none())];
                let read = host.awake(at);
                let known = if host.stamps { at } else { read };
                self.flying.push(Reverse((read, self.count)));
                self.packets.insert(self.count, (known, packet));
                self.count += 1;
            }
        }
    }

    pub(crate) fn run(mut self, most: Span) -> (Result<Transferred, Failed>, [u64; 2]) {
        while self.now < Time::ZERO + most && !self.client.is_over(self.now) {
            self.step(Time::NEVER);
        }
        (self.client.outcome(), self.carried)
    }

    /// Goes on until this time, whatever the client thinks of it.
    pub(crate) fn run_until(&mut self, until: Time) {
        while self.now < until {
            self.step(until);
        }
    }

    pub(crate) fn step(&mut self, until: Time) {
        {
            self.flush();
            let arrives = self.flying.peek().map_or(Time::NEVER, |Reverse((at, _))| *at);
            let free = self.pipes[0].wake().min(self.pipes[1].wake());
            let deadlines = [self.client.deadline(), self.server.deadline()];
            let now = self.now;
            let ready = self.hosts.each_mut().map(|host| match host.awake(now) {
                awake if awake > now => awake,
                _ => Time::NEVER,
            });
            let hosts = self.hosts.iter_mut().zip(deadlines).map(|(host, deadline)| host.awake(deadline));
            let next = hosts.chain(ready).fold(arrives.min(free), Time::min);
            let next = next.min(until);
            assert!(next < Time::NEVER, "nothing will ever happen");
            self.now = next.max(self.now + Span::from_nanos(1));
            while let Some(Reverse((at, number))) = self.flying.peek().copied()
                && at <= self.now
            {
                self.flying.pop();
                let (known, packet) = self.packets.remove(&number).unwrap();
                let from = if packet.to.is_none() { self.ports[packet.flow] } else { self.at };
                let arrival = Arrival { at: known, from, ecn: packet.ecn };
                let acknowledges = match packet.to {
                    None => {
                        self.arrived.extend(datagram_sample(&packet.data).map(|sample| (sample, self.now)));
                        self.server.handle(self.now, 0, &arrival, &packet.data);
                        self.server.only_acknowledges()
                    }
                    Some(socket) => {
                        self.client.handle(self.now, socket, &arrival, &packet.data);
                        self.client.only_acknowledges()
                    }
                };
                if !acknowledges {
                    self.flush();
                }
            }
            self.flush();
            let now = self.now;
            let awake = self.hosts.each_mut().map(|host| host.awake(now) <= now);
            if awake[0] && self.client.deadline() <= self.now {
                self.client.handle_timeout(self.now);
            }
            if awake[1] && self.server.deadline() <= self.now {
                self.server.handle_timeout(self.now);
            }
        }
    }
}

pub(crate) fn server_address() -> SocketAddr {
    "10.0.0.2:4433".parse().unwrap()
}

/// A client that begins now.
pub(crate) fn client(clock: Clock, now: Time, request: Request) -> Client {
    let limits = Limits { seed: Some([request.session as u8; 32]), ..Limits::default() };
    let ends = (controller(&request.start, &request.avoidance, 1452).unwrap(), Sink::Check);
    Client::new(clock, now, &limits, server_address(), None, request, ends).unwrap()
}

pub(crate) fn world(link: &Link, request: Request, pinned: Option<Fingerprint>, service: Service) -> World {
    world_with(link, request, pinned, service, LookConfig::default())
}

/// ... whose client and server have these stacks.
pub(crate) fn world_over(link: &Link, request: Request, stacks: [Stack; 2]) -> World {
    world_of(link, request, None, Service::default(), LookConfig::default(), stacks)
}

/// ... whose ends look at paths in this way.
pub(crate) fn world_with(
    link: &Link,
    request: Request,
    pinned: Option<Fingerprint>,
    service: Service,
    look: LookConfig,
) -> World {
    world_of(link, request, pinned, service, look, [stack(); 2])
}

/// The stack of both ends where a test names none: `FLOWSTART_STACK=quinn cargo test -p
/// flowstart-quic` judges the other one by the same tests.
pub(crate) fn stack() -> Stack {
    let named = std::env::var("FLOWSTART_STACK").ok();
    let known = |name: &str| Stack::ALL.into_iter().find(|stack| stack.name() == name);
    named.map_or(Stack::default(), |name| known(&name).expect("FLOWSTART_STACK is noq or quinn"))
}

fn world_of(
    link: &Link,
    request: Request,
    pinned: Option<Fingerprint>,
    service: Service,
    look: LookConfig,
    stacks: [Stack; 2],
) -> World {
    let clock = Clock::start();
    let identity = Identity::generate().unwrap();
    let departures = request.paced.is_some();
    let limits = |seed, stack| Limits { seed: Some([seed; 32]), departures, look, stack, ..Limits::default() };
    let make = Box::new(|start: &str, avoidance: &str, mtu| controller(start, avoidance, mtu));
    let server = Server::new(clock, &limits(1, stacks[1]), &identity, service, make, false).unwrap();
    let config = controller(&request.start, &request.avoidance, 1452).unwrap();
    let ends = (config, Sink::Check);
    let ports =
        if link.six { ["[2001:db8::1]:5001", "[2001:db8::1]:5002"] } else { ["10.0.0.1:5001", "10.0.0.1:5002"] };
    let at = if link.six { "[2001:db8::2]:4433".parse().unwrap() } else { server_address() };
    let client = Client::new(clock, Time::ZERO, &limits(9, stacks[0]), at, pinned, request, ends).unwrap();
    World {
        client,
        server,
        pipes: [Pipe::new(link, 1), Pipe::new(link, 2)],
        flying: BinaryHeap::new(),
        packets: std::collections::HashMap::new(),
        count: 0,
        now: Time::ZERO,
        ports: ports.map(|port| port.parse().unwrap()),
        at,
        carried: [0, 0],
        datagrams: 0,
        to_client: 0,
        arrived: Vec::new(),
        hosts: [Busy::default(), Busy::default()],
        forged: false,
        stray: 0,
        identity,
        clock,
    }
}

pub(crate) fn transfer(link: &Link, request: Request) -> Transferred {
    let (outcome, _) = world(link, request, None, Service::default()).run(Span::from_secs(60));
    outcome.unwrap()
}
