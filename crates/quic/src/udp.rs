//! The loop over real sockets.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
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
    /// Which of them are of IPv6, whose addresses of IPv4 hosts are mapped ones (RFC 4291 section
    /// 2.5.5.2).
    mapped: Vec<bool>,
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
        Ok(Self { driver: Driver::new(Real::new(sockets, clock)), real_time })
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

/// An address of IPv4 as such, however a socket of IPv6 names it.
pub(crate) fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

impl Real {
    fn new(sockets: Vec<UdpSocket>, clock: Clock) -> Self {
        let mapped = |socket: &UdpSocket| socket.local_addr().is_ok_and(|address| address.is_ipv6());
        Self { mapped: sockets.iter().map(mapped).collect(), sockets, clock, awake: None }
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
        let datagram = system::receive(&self.sockets[socket], packet)?;
        Ok(Datagram { from: plain(datagram.from), ..datagram })
    }

    fn send(&mut self, socket: usize, outgoing: &Outgoing, data: &[u8]) -> io::Result<()> {
        let to = match outgoing.to {
            SocketAddr::V4(to) if self.mapped[socket] => SocketAddr::new(to.ip().to_ipv6_mapped().into(), to.port()),
            to => to,
        };
        system::send(&self.sockets[socket], to, outgoing.ecn, data)
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use crate::stack::EcnCodepoint;

    use super::*;

    #[test]
    fn a_socket_of_both_families_speaks_with_ecn_to_hosts_of_ipv4_and_calls_them_so() {
        // Not every machine has IPv6.
        let Ok(both) = UdpSocket::bind("[::]:0") else { return };
        let four = UdpSocket::bind("127.0.0.1:0").unwrap();
        let [to_both, to_four] =
            [&both, &four].map(|socket| SocketAddr::from(([127, 0, 0, 1], socket.local_addr().unwrap().port())));
        system::prepare(&both, BUFFER);
        system::prepare(&four, BUFFER);
        let mut host = Real::new(vec![both, four], Clock::start());
        for (socket, to, from) in [(0, to_four, to_both), (1, to_both, to_four)] {
            let outgoing = Outgoing { to, ecn: Some(EcnCodepoint::Ect0), connection: None };
            host.send(socket, &outgoing, b"word").unwrap();
            let heard = host.receive(1 - socket, &mut [0; 100]).unwrap();
            assert_eq!((heard.ecn, heard.from, heard.length), (Some(EcnCodepoint::Ect0), from, 4), "{socket}");
        }
    }
}
