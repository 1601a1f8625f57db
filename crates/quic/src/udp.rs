//! The loop over real sockets.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use flowstart_units::{Span, Time};

use crate::clock::Clock;
use crate::driving::{Driver, Host};
use crate::endpoint::Outgoing;
use crate::node::Node;
use crate::system::{self, Awake, Datagram};

/// Bytes that sockets are asked to buffer.
const BUFFER: usize = 4 << 20;

/// What the loop runs on.
#[derive(Debug)]
pub struct Sockets {
    driver: Driver<Real>,
    /// The thread has real-time priority.
    real_time: bool,
}

/// Sockets of this machine, and its clock.
#[derive(Debug)]
struct Real {
    sockets: Vec<UdpSocket>,
    clock: Clock,
    /// Keeps the cores awake.
    awake: Option<Awake>,
}

impl Sockets {
    /// Prepares sockets, and the calling thread: exact timers, and real-time priority if that is
    /// permitted.
    ///
    /// # Errors
    /// If a socket cannot be prepared.
    pub fn new(sockets: Vec<UdpSocket>, clock: Clock) -> io::Result<Self> {
        Self::with_priority(sockets, clock, false)
    }

    /// The same for a node that only receives, beside senders on the same machine: it comes before
    /// them, for what it does per packet is short, and they watch the clock.
    ///
    /// # Errors
    /// If a socket cannot be prepared.
    pub fn of_receiver(sockets: Vec<UdpSocket>, clock: Clock) -> io::Result<Self> {
        Self::with_priority(sockets, clock, true)
    }

    fn with_priority(sockets: Vec<UdpSocket>, clock: Clock, receiver: bool) -> io::Result<Self> {
        for socket in &sockets {
            socket.set_nonblocking(true)?;
            system::prepare(socket, BUFFER);
        }
        let real_time = system::be_punctual(receiver);
        Ok(Self { driver: Driver::new(Real { sockets, clock, awake: None }), real_time })
    }

    /// True if the thread has real-time priority. Otherwise departures are late by milliseconds
    /// whenever the machine is busy.
    #[must_use]
    pub fn is_real_time(&self) -> bool {
        self.real_time
    }

    /// The address of a socket.
    ///
    /// # Errors
    /// If the system does not know it.
    pub fn address(&self, socket: usize) -> io::Result<SocketAddr> {
        self.driver.host().sockets[socket].local_addr()
    }

    /// Drives a node until it is over, or `watch`, which is called ten times a second or more
    /// often, returns false.
    ///
    /// # Errors
    /// If a socket fails for good.
    pub fn run<N: Node>(&mut self, node: &mut N, watch: &mut dyn FnMut(&mut N, Time) -> bool) -> io::Result<()> {
        node.driven(self.real_time);
        self.driver.run(node, watch)
    }
}

impl Host for Real {
    fn sockets(&self) -> usize {
        self.sockets.len()
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn receive(&mut self, socket: usize, packet: &mut [u8]) -> io::Result<Datagram> {
        system::receive(&self.sockets[socket], packet)
    }

    fn send(&mut self, socket: usize, outgoing: &Outgoing, data: &[u8]) -> io::Result<()> {
        system::send(&self.sockets[socket], outgoing.to, outgoing.ecn, data)
    }

    fn wait(&mut self, time: Span) -> bool {
        system::wait(&self.sockets, Duration::from_nanos(time.as_nanos()))
    }

    fn keep_awake(&mut self, awake: bool) {
        match awake {
            true if self.awake.is_none() => self.awake = Some(Awake::keep()),
            true => {}
            false => self.awake = None,
        }
    }
}
