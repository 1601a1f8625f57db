//! The loop over real sockets: receives, waits precisely, and sends.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use flowstart_units::{Span, Time};

use crate::clock::Clock;
use crate::endpoint::{Arrival, Outgoing};
use crate::node::Node;
use crate::system::{self, Datagram};

/// The thread sleeps until this long before a departure and watches the clock from then on.
/// Waking takes 5 to 12 µs on an idle core at real-time priority.
const WATCHED: Span = Span::from_micros(60);
/// Longest sleep, so that whoever watches the loop is asked often enough.
const NAP: Span = Span::from_millis(100);
/// Datagrams taken from a socket before packets may leave again.
const BATCH: usize = 32;
/// Bytes that sockets are asked to buffer.
const BUFFER: usize = 4 << 20;

/// What the loop runs on.
#[derive(Debug)]
pub struct Sockets {
    sockets: Vec<UdpSocket>,
    clock: Clock,
    /// The thread has real-time priority.
    real_time: bool,
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
        Ok(Self { sockets, clock, real_time: system::be_punctual(receiver) })
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
        self.sockets[socket].local_addr()
    }

    /// Drives a node until it is over, or `watch`, which is called ten times a second or more
    /// often, returns false.
    ///
    /// # Errors
    /// If a socket fails for good.
    pub fn run<N: Node>(&mut self, node: &mut N, watch: &mut dyn FnMut(&mut N, Time) -> bool) -> io::Result<()> {
        node.driven(self.real_time);
        let mut packet = vec![0; 65_536];
        let mut buffer = Vec::with_capacity(2048);
        let mut watched = Time::ZERO;
        let mut emptied = vec![Time::ZERO; self.sockets.len()];
        loop {
            let mut now = self.clock.now();
            if now.since(watched) >= NAP || watched == Time::ZERO {
                watched = now.max(Time::from_nanos(1));
                if !watch(node, now) {
                    return Ok(());
                }
            }
            if node.deadline() <= now {
                node.handle_timeout(now);
            }
            let mut busy = self.send(node, &mut buffer)?;
            for (socket, emptied) in emptied.iter_mut().enumerate() {
                for _ in 0..BATCH {
                    let asked = now;
                    let datagram = system::receive(&self.sockets[socket], &mut packet);
                    now = self.clock.now();
                    match datagram {
                        Ok(Datagram { length, from, ecn, waited }) => {
                            let arrival = Arrival { at: arrived(now, waited, *emptied), from, ecn };
                            node.handle(now, socket, &arrival, &packet[..length]);
                            busy = true;
                            // Departures stay punctual.
                            if !node.only_acknowledges() {
                                self.send(node, &mut buffer)?;
                            }
                        }
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                            *emptied = asked;
                            break;
                        }
                        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => node.refused(now),
                        // A firewall on the way says that it takes none of this: nothing comes.
                        Err(error) if system::is_passing(&error) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
            if node.is_over(now) {
                self.send(node, &mut buffer)?;
                return Ok(());
            }
            if !busy {
                self.wait(node, &mut buffer)?;
            }
        }
    }

    /// Sends everything that may leave now.
    fn send<N: Node>(&self, node: &mut N, buffer: &mut Vec<u8>) -> io::Result<bool> {
        let mut sent = false;
        for number in 0..self.sockets.len() {
            loop {
                let now = self.clock.now();
                if node.deadline() <= now {
                    node.handle_timeout(now);
                }
                let Some(outgoing) = node.poll_transmit(now, number, buffer) else { break };
                self.depart(node, number, &outgoing, buffer)?;
                sent = true;
            }
        }
        Ok(sent)
    }

    /// A datagram leaves.
    fn depart<N: Node>(&self, node: &mut N, number: usize, outgoing: &Outgoing, data: &[u8]) -> io::Result<()> {
        let at = self.clock.now();
        match system::send(&self.sockets[number], outgoing.to, outgoing.ecn, data) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => node.refused(at),
            // As if the network had lost it.
            Err(error) if system::is_passing(&error) => {}
            Err(error) => return Err(error),
        }
        node.departed(number, outgoing, at);
        Ok(())
    }

    /// Waits for a datagram or the next deadline. What departs then is made and encrypted before.
    fn wait<N: Node>(&self, node: &mut N, buffer: &mut Vec<u8>) -> io::Result<()> {
        let now = self.clock.now();
        let departs = node.departs();
        let until = node.deadline().min(departs).min(now + NAP);
        if until <= now {
            return Ok(());
        }
        let watched = departs <= until;
        let sleep = until.since(now).as_nanos().saturating_sub(if watched { WATCHED.as_nanos() } else { 0 });
        let arrived = sleep > 0 && system::wait(&self.sockets, Duration::from_nanos(sleep));
        if !watched || arrived {
            return Ok(());
        }
        let ready =
            (0..self.sockets.len()).find_map(|number| Some((number, node.poll_transmit(until, number, buffer)?)));
        // Datagrams that arrive meanwhile wait for at most this long.
        while self.clock.now() < until {
            std::hint::spin_loop();
        }
        node.waited(until);
        match ready {
            Some((number, outgoing)) => self.depart(node, number, &outgoing, buffer),
            None => Ok(()),
        }
    }
}

/// When a datagram that was read now arrived, by what the system says. That is by the time of day,
/// which may be set meanwhile; but it did not arrive before the socket was empty.
fn arrived(now: Time, waited: Duration, emptied: Time) -> Time {
    let waited = Span::from_nanos(u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX));
    (now - waited).max(emptied).min(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_arrived_before_its_socket_was_empty_whatever_the_time_of_day_says() {
        let at = |micros| Time::ZERO + Span::from_micros(micros);
        let waited = Duration::from_micros;
        assert_eq!(arrived(at(900), waited(30), at(500)), at(870));
        // Set by half a second while the datagram waited.
        assert_eq!(arrived(at(900), waited(500_030), at(500)), at(500));
        assert_eq!(arrived(at(900), Duration::ZERO, at(500)), at(900));
        assert_eq!(arrived(at(900), Duration::MAX, Time::ZERO), Time::ZERO);
    }
}
