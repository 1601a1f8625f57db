//! Client and server over an imagined link in virtual time: the same every time, whatever the
//! machine does.

// Not every test needs everything.
#![allow(dead_code)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;

use flowstart_quic::message::Request;
use flowstart_quic::tls::{Fingerprint, Identity};
use flowstart_quic::{
    Client, Clock, EcnCodepoint, Failed, Limits, Node, Server, Service, Sink, Transferred, controller,
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
    /// Additional delay of up to this much, which lets packets overtake each other.
    pub(crate) jitter: Span,
    /// Connections take turns, each with a queue of its own.
    pub(crate) fair: bool,
    /// Packets that find this many waiting are marked.
    pub(crate) mark: usize,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            rate: Rate::from_mbps(20),
            delay: Span::from_millis(10),
            buffer: 100,
            loss: 0,
            jitter: Span::ZERO,
            fair: false,
            mark: usize::MAX,
        }
    }
}

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
    pub(crate) queues: [std::collections::VecDeque<Packet>; 2],
    pub(crate) turn: usize,
    pub(crate) free: Time,
    pub(crate) draws: u64,
}

impl Pipe {
    pub(crate) fn new(link: &Link, seed: u64) -> Self {
        Self { link: link.clone(), queues: Default::default(), turn: 0, free: Time::ZERO, draws: seed }
    }

    pub(crate) fn draw(&mut self) -> u64 {
        self.draws = self.draws.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.draws ^ (self.draws >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn arrive(&mut self, mut packet: Packet) {
        if self.link.loss > 0 && self.draw().is_multiple_of(self.link.loss) {
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
        if now < self.free {
            return None;
        }
        self.turn = 1 - self.turn;
        let turn = if self.queues[self.turn].is_empty() { 1 - self.turn } else { self.turn };
        let packet = self.queues[turn].pop_front()?;
        let bytes = Bytes::new(packet.data.len() as u64 + 28);
        self.free = now + self.link.rate.transmission_time(bytes);
        let jitter = match self.link.jitter.as_nanos() {
            0 => 0,
            most => self.draw() % most,
        };
        Some((self.free + self.link.delay + Span::from_nanos(jitter), packet))
    }
}

pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) server: Server,
    /// To the server, to the client.
    pub(crate) pipes: [Pipe; 2],
    /// On the way, by arrival and order.
    pub(crate) flying: BinaryHeap<Reverse<(Time, u64)>>,
    pub(crate) packets: std::collections::HashMap<u64, Packet>,
    pub(crate) count: u64,
    pub(crate) now: Time,
    pub(crate) ports: [SocketAddr; 2],
    pub(crate) carried: [u64; 2],
}

impl World {
    pub(crate) fn flush(&mut self) {
        let mut buffer = Vec::new();
        for socket in 0..self.client.sockets() {
            while let Some(outgoing) = self.client.poll_transmit(self.now, socket, &mut buffer) {
                self.client.departed(socket, &outgoing, self.now);
                self.carried[0] += buffer.len() as u64;
                self.pipes[0].arrive(Packet { to: None, flow: socket, ecn: outgoing.ecn, data: buffer.clone() });
            }
        }
        while let Some(outgoing) = self.server.poll_transmit(self.now, 0, &mut buffer) {
            self.server.departed(0, &outgoing, self.now);
            let socket = usize::from(outgoing.to == self.ports[1]);
            self.carried[1] += buffer.len() as u64;
            self.pipes[1].arrive(Packet { to: Some(socket), flow: socket, ecn: outgoing.ecn, data: buffer.clone() });
        }
        for pipe in &mut self.pipes {
            while let Some((at, packet)) = pipe.leave(self.now) {
                self.flying.push(Reverse((at, self.count)));
                self.packets.insert(self.count, packet);
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
            let waits = |pipe: &Pipe| pipe.queues.iter().any(|queue| !queue.is_empty());
            let free = self.pipes.iter().filter(|pipe| waits(pipe)).map(|pipe| pipe.free).min();
            let next = arrives.min(free.unwrap_or(Time::NEVER)).min(self.client.deadline()).min(self.server.deadline());
            let next = next.min(until);
            assert!(next < Time::NEVER, "nothing will ever happen");
            self.now = next.max(self.now + Span::from_nanos(1));
            while let Some(Reverse((at, number))) = self.flying.peek().copied()
                && at <= self.now
            {
                self.flying.pop();
                let packet = self.packets.remove(&number).unwrap();
                match packet.to {
                    None => self.server.handle(self.now, 0, self.ports[packet.flow], packet.ecn, &packet.data),
                    Some(socket) => self.client.handle(self.now, socket, server_address(), packet.ecn, &packet.data),
                }
                self.flush();
            }
            if self.client.deadline() <= self.now {
                self.client.handle_timeout(self.now);
            }
            if self.server.deadline() <= self.now {
                self.server.handle_timeout(self.now);
            }
        }
    }
}

pub(crate) fn server_address() -> SocketAddr {
    "10.0.0.2:4433".parse().unwrap()
}

pub(crate) fn world(link: &Link, request: Request, pinned: Option<Fingerprint>, service: Service) -> World {
    let clock = Clock::start();
    let identity = Identity::generate().unwrap();
    let limits = |seed| Limits { seed: Some([seed; 32]), ..Limits::default() };
    let make = Box::new(|start: &str, avoidance: &str, mtu| controller(start, avoidance, mtu));
    let server = Server::new(clock, &limits(1), &identity, service, make, false).unwrap();
    let config = controller(&request.start, &request.avoidance, 1452).unwrap();
    let ends = (config, Sink::Check);
    let client = Client::new(clock, Time::ZERO, &limits(9), server_address(), pinned, request, ends).unwrap();
    World {
        client,
        server,
        pipes: [Pipe::new(link, 1), Pipe::new(link, 2)],
        flying: BinaryHeap::new(),
        packets: std::collections::HashMap::new(),
        count: 0,
        now: Time::ZERO,
        ports: ["10.0.0.1:5001".parse().unwrap(), "10.0.0.1:5002".parse().unwrap()],
        carried: [0, 0],
    }
}

pub(crate) fn transfer(link: &Link, request: Request) -> Transferred {
    let (outcome, _) = world(link, request, None, Service::default()).run(Span::from_secs(60));
    outcome.unwrap()
}
