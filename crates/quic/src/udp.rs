//! The loop over real sockets.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use flowstart_units::{Span, Time};

use crate::clock::Clock;
use crate::driving::{Driver, Host};
use crate::endpoint::Outgoing;
use crate::node::Node;
use crate::owns::Owns;
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
    /// Of each that answers from the address that was asked, which that is.
    owns: Vec<Option<Owns>>,
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

    /// The same as [`Self::new`] for a server: sockets that are bound to no address of their own
    /// answer each client from the address that it asked, if the system says which that is (Linux).
    ///
    /// # Errors
    /// If a socket cannot be prepared.
    pub fn of_server(sockets: Vec<UdpSocket>, clock: Clock) -> io::Result<Self> {
        let mut prepared = Self::with_priority(sockets, clock, false)?;
        prepared.driver.host_mut().answer_from_where_asked();
        Ok(prepared)
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
    /// If there is no such socket, or the system does not know it.
    pub fn address(&self, socket: usize) -> io::Result<SocketAddr> {
        let none = || io::Error::new(io::ErrorKind::NotFound, format!("there is no socket {socket}"));
        self.driver.host().sockets.get(socket).ok_or_else(none)?.local_addr()
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
        let owns = sockets.iter().map(|_| None).collect();
        Self { mapped: sockets.iter().map(mapped).collect(), owns, sockets, clock, awake: None }
    }

    fn answer_from_where_asked(&mut self) {
        for (socket, owns) in self.sockets.iter().zip(&mut self.owns) {
            if socket.local_addr().is_ok_and(|address| address.ip().is_unspecified()) {
                system::heed_own(socket);
                *owns = Some(Owns::default());
            }
        }
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
        if let (Some(owns), Some(own)) = (&mut self.owns[socket], datagram.to) {
            owns.note(datagram.from, own);
        }
        Ok(Datagram { from: plain(datagram.from), ..datagram })
    }

    fn send(&mut self, socket: usize, outgoing: &Outgoing, data: &[u8]) -> io::Result<()> {
        let to = match outgoing.to {
            SocketAddr::V4(to) if self.mapped[socket] => SocketAddr::new(to.ip().to_ipv6_mapped().into(), to.port()),
            to => to,
        };
        let own = self.owns[socket].as_ref().and_then(|owns| owns.of(to));
        let sent = system::send(&self.sockets[socket], own, to, outgoing.ecn, data);
        // The host may have lost the address, or may not send from it (one of a group).
        let refused = [io::ErrorKind::InvalidInput, io::ErrorKind::AddrNotAvailable, io::ErrorKind::NetworkUnreachable];
        match (sent, &mut self.owns[socket]) {
            (Err(error), Some(owns)) if own.is_some() && refused.contains(&error.kind()) => {
                owns.forget(to);
                system::send(&self.sockets[socket], None, to, outgoing.ecn, data)
            }
            (sent, _) => sent,
        }
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

    #[test]
    fn a_socket_that_there_is_not_has_no_address() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let sockets = Sockets::new(vec![socket], Clock::start()).unwrap();
        assert_eq!(sockets.address(0).unwrap(), address);
        assert_eq!(sockets.address(1).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    /// A client that is connected to what it asked, as `fetch` is, hears nobody else.
    #[test]
    fn a_server_bound_to_no_address_answers_from_the_one_that_was_asked() {
        for (at, asked) in [("0.0.0.0:0", "127.0.0.2"), ("[::]:0", "127.0.0.2"), ("[::]:0", "::1")] {
            // Not every machine has IPv6.
            let Ok(server) = UdpSocket::bind(at) else { continue };
            let port = server.local_addr().unwrap().port();
            let asked = SocketAddr::new(asked.parse().unwrap(), port);
            let client = UdpSocket::bind(if asked.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" }).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            system::prepare(&server, BUFFER);
            let mut host = Real::new(vec![server], Clock::start());
            host.answer_from_where_asked();
            for ecn in [None, Some(EcnCodepoint::Ect0)] {
                client.send_to(b"who", asked).unwrap();
                let heard = host.receive(0, &mut [0; 100]).unwrap();
                host.send(0, &Outgoing { to: heard.from, ecn, connection: None }, b"I").unwrap();
                let (length, from) = client.recv_from(&mut [0; 100]).unwrap();
                assert_eq!((length, from), (1, asked), "{at}");
            }
        }
    }

    #[test]
    fn an_address_that_the_host_has_lost_is_not_sent_from() {
        let server = UdpSocket::bind("0.0.0.0:0").unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let to = client.local_addr().unwrap();
        let mut host = Real::new(vec![server], Clock::start());
        host.answer_from_where_asked();
        // For documentation alone (RFC 5737): no host has it.
        host.owns[0].as_mut().unwrap().note(to, IpAddr::from([192, 0, 2, 1]));
        host.send(0, &Outgoing { to, ecn: None, connection: None }, b"I").unwrap();
        assert_eq!(client.recv_from(&mut [0; 100]).unwrap().0, 1);
        assert_eq!(host.owns[0].as_ref().unwrap().of(to), None);
    }
}
