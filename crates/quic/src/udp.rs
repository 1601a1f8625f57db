//! The loop over real sockets: receives, waits precisely, and sends.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use flowstart_units::{Span, Time};

use crate::clock::Clock;
use crate::endpoint::{Arrival, Outgoing};
use crate::node::Node;
use crate::system::{self, Awake, Datagram};
use crate::watching::Watching;

/// Longest sleep, so that whoever watches the loop is asked often enough.
const NAP: Span = Span::from_millis(100);
/// Datagrams taken from a socket before packets may leave again.
const BATCH: usize = 32;
/// The machine's cores may sleep again when no packet had a time of departure for so long.
const AWAKE: Span = Span::from_secs(1);
/// Bytes that sockets are asked to buffer.
const BUFFER: usize = 4 << 20;

/// What the loop runs on.
#[derive(Debug)]
pub struct Sockets {
    sockets: Vec<UdpSocket>,
    clock: Clock,
    /// The thread has real-time priority.
    real_time: bool,
    watching: Watching,
    /// Keeps the cores awake, and when a packet had a time of departure last.
    awake: Option<Awake>,
    timed: Time,
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
        Ok(Self { sockets, clock, real_time, watching: Watching::new(), awake: None, timed: Time::ZERO })
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
        let ended = self.drive(node, watch);
        self.awake = None;
        ended
    }

    fn drive<N: Node>(&mut self, node: &mut N, watch: &mut dyn FnMut(&mut N, Time) -> bool) -> io::Result<()> {
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
                if now.since(self.timed) > AWAKE {
                    self.awake = None;
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
    fn wait<N: Node>(&mut self, node: &mut N, buffer: &mut Vec<u8>) -> io::Result<()> {
        let now = self.clock.now();
        let departs = node.departs();
        let until = node.deadline().min(departs).min(now + NAP);
        if until <= now {
            return Ok(());
        }
        if departs > until {
            system::wait(&self.sockets, Duration::from_nanos(until.since(now).as_nanos()));
            return Ok(());
        }
        self.timed = now;
        if self.awake.is_none() {
            self.awake = Some(Awake::keep());
        }
        let watch = until - self.watching.span();
        let mut woke = now;
        if watch > now {
            if system::wait(&self.sockets, Duration::from_nanos(watch.since(now).as_nanos())) {
                return Ok(());
            }
            woke = self.clock.now();
            self.watching.woke(woke.since(watch));
        }
        let mut arrived = false;
        let make = until - self.watching.making();
        while !arrived && self.clock.now() < make {
            arrived = system::wait(&self.sockets, Duration::ZERO);
        }
        if arrived {
            let now = self.clock.now();
            self.watching.watched(now, now.since(woke));
            return Ok(());
        }
        let began = self.clock.now();
        let ready =
            (0..self.sockets.len()).find_map(|number| Some((number, node.poll_transmit(until, number, buffer)?)));
        self.watching.made(self.clock.now().since(began));
        // Datagrams that arrive meanwhile wait for at most this long.
        while self.clock.now() < until {
            std::hint::spin_loop();
        }
        let departed = match ready {
            Some((number, outgoing)) => self.depart(node, number, &outgoing, buffer),
            None => Ok(()),
        };
        self.watching.watched(until, until.since(woke));
        departed
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
