//! The loop that drives a node: receives, waits precisely, and sends. A packet whose time comes
//! while something that arrived would be handled leaves before that is looked at.

use std::io;
use std::time::Duration;

use flowstart_units::{Span, Time};

use crate::endpoint::{Arrival, Outgoing};
use crate::node::Node;
use crate::system::{self, Datagram};
use crate::watching::Watching;

/// Longest sleep, so that whoever watches the loop is asked often enough.
const NAP: Span = Span::from_millis(100);
/// Datagrams taken from a socket before packets may leave again.
const BATCH: usize = 32;
/// The machine's cores may sleep again when no packet had a time of departure for so long.
const AWAKE: Span = Span::from_secs(1);
/// What arrived waits for departures only where the socket was empty so recently. A node that has
/// fallen behind takes in what there is.
const FRESH: Span = Span::from_millis(1);

/// What the loop runs on: sockets and a clock.
pub(crate) trait Host {
    /// How many sockets there are.
    fn sockets(&self) -> usize;

    fn now(&self) -> Time;

    /// The next datagram of a socket; [`io::ErrorKind::WouldBlock`] if there is none.
    fn receive(&mut self, socket: usize, packet: &mut [u8]) -> io::Result<Datagram>;

    fn send(&mut self, socket: usize, outgoing: &Outgoing, data: &[u8]) -> io::Result<()>;

    /// Sleeps until a datagram is there or the time is over; true if one is.
    fn wait(&mut self, time: Span) -> bool;

    /// The cores must answer at once from now on, or may sleep again.
    fn keep_awake(&mut self, awake: bool);
}

/// The loop and what it has learnt.
#[derive(Debug)]
pub(crate) struct Driver<H> {
    host: H,
    watching: Watching,
    /// When a packet had a time of departure last.
    timed: Time,
    /// When a packet left last.
    left: Time,
    /// When each socket was last seen to be empty.
    emptied: Vec<Time>,
    /// Until when it was, as far as is known: a sleep ends because something arrives.
    fresh: Vec<Time>,
    /// What arrived, and what departs.
    packet: Vec<u8>,
    buffer: Vec<u8>,
}

impl<H: Host> Driver<H> {
    pub(crate) fn new(host: H) -> Self {
        Self {
            emptied: vec![Time::ZERO; host.sockets()],
            fresh: vec![Time::ZERO; host.sockets()],
            host,
            watching: Watching::new(),
            timed: Time::ZERO,
            left: Time::ZERO,
            packet: vec![0; 65_536],
            buffer: Vec::with_capacity(2048),
        }
    }

    pub(crate) fn host(&self) -> &H {
        &self.host
    }

    pub(crate) fn host_mut(&mut self) -> &mut H {
        &mut self.host
    }

    /// Drives a node until it is over, or `watch` returns false.
    pub(crate) fn run<N: Node>(&mut self, node: &mut N, watch: &mut dyn FnMut(&mut N, Time) -> bool) -> io::Result<()> {
        let ended = self.drive(node, watch);
        self.host.keep_awake(false);
        ended
    }

    fn drive<N: Node>(&mut self, node: &mut N, watch: &mut dyn FnMut(&mut N, Time) -> bool) -> io::Result<()> {
        let mut watched = Time::ZERO;
        self.emptied.fill(Time::ZERO);
        loop {
            let now = self.host.now();
            if now.since(watched) >= NAP || watched == Time::ZERO {
                watched = now.max(Time::from_nanos(1));
                if !watch(node, now) {
                    return Ok(());
                }
                if now.since(self.timed) > AWAKE {
                    self.host.keep_awake(false);
                }
            }
            if node.deadline() <= now {
                node.handle_timeout(now);
            }
            let mut busy = self.send(node);
            for socket in 0..self.host.sockets() {
                for _ in 0..BATCH {
                    if !self.take(node, socket)? {
                        break;
                    }
                    busy = true;
                }
            }
            if node.is_over(self.host.now()) {
                self.send(node);
                return Ok(());
            }
            if !busy {
                self.wait(node)?;
            }
        }
    }

    /// Takes a datagram from a socket, and sends what may leave before and after it; false if there
    /// is none and nothing left: else the node is to be asked anew when its next packet departs.
    fn take<N: Node>(&mut self, node: &mut N, socket: usize) -> io::Result<bool> {
        let mut asked = self.host.now();
        let mut departed = false;
        let departs = node.departs();
        let ahead = self.watching.ahead();
        let near = departs <= node.deadline() && departs < asked + ahead;
        // Packets that follow one another faster would leave no time for what arrives.
        let apart = departs.since(self.left) > ahead;
        if near && apart && asked.since(self.fresh[socket]) <= FRESH {
            self.depart_at(node, departs);
            self.watching.watched(departs, departs.since(asked));
            asked = self.host.now();
            departed = true;
        }
        let datagram = self.host.receive(socket, &mut self.packet);
        let now = self.host.now();
        match datagram {
            Ok(Datagram { length, from, ecn, waited, .. }) => {
                let arrival = Arrival { at: arrived(now, waited, self.emptied[socket]), from, ecn };
                node.handle(now, socket, &arrival, &self.packet[..length]);
                // Departures stay punctual.
                if !node.only_acknowledges() {
                    self.watching.took(self.host.now().since(asked));
                    self.send(node);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                (self.emptied[socket], self.fresh[socket]) = (asked, asked);
                return Ok(departed);
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => node.refused(now),
            // A firewall on the way says that it takes none of this: nothing comes.
            Err(error) if system::is_passing(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Sends everything that may leave now.
    fn send<N: Node>(&mut self, node: &mut N) -> bool {
        let mut sent = false;
        for number in 0..self.host.sockets() {
            loop {
                let now = self.host.now();
                if node.deadline() <= now {
                    node.handle_timeout(now);
                }
                let Some(outgoing) = node.poll_transmit(now, number, &mut self.buffer) else { break };
                self.depart(node, number, &outgoing);
                sent = true;
            }
        }
        sent
    }

    /// A datagram leaves.
    fn depart<N: Node>(&mut self, node: &mut N, number: usize, outgoing: &Outgoing) {
        let at = self.host.now();
        self.left = at;
        match self.host.send(number, outgoing, &self.buffer) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => node.refused(at),
            // As if the network had lost it. Strangers say where answers go, and to some places,
            // such as port 0, nothing can be sent: that is no reason to leave all others alone.
            Ok(()) | Err(_) => {}
        }
        node.departed(number, outgoing, at);
    }

    /// Has the packet that departs at that time made and encrypted, and sends it then. One whose
    /// time has come leaves at once.
    fn depart_at<N: Node>(&mut self, node: &mut N, until: Time) {
        let began = self.host.now();
        if until <= began {
            self.send(node);
            return;
        }
        let ready = (0..self.host.sockets())
            .find_map(|number| Some((number, node.poll_transmit(until, number, &mut self.buffer)?)));
        self.watching.made(self.host.now().since(began));
        // Datagrams that arrive meanwhile wait for at most this long.
        while self.host.now() < until {
            std::hint::spin_loop();
        }
        if let Some((number, outgoing)) = ready {
            self.depart(node, number, &outgoing);
        }
    }

    /// Waits for a datagram or the next deadline. What departs then is made and encrypted before.
    fn wait<N: Node>(&mut self, node: &mut N) -> io::Result<()> {
        let now = self.host.now();
        let departs = node.departs();
        let until = node.deadline().min(departs).min(now + NAP);
        if until <= now {
            return Ok(());
        }
        if departs > until {
            self.host.wait(until.since(now));
            self.fresh.fill(self.host.now());
            return Ok(());
        }
        self.timed = now;
        self.host.keep_awake(true);
        let watch = until - self.watching.span();
        let mut woke = now;
        if watch > now {
            let arrived = self.host.wait(watch.since(now));
            woke = self.host.now();
            self.fresh.fill(woke);
            if arrived {
                return Ok(());
            }
            self.watching.woke(woke.since(watch));
        }
        // What arrives later waits until the packet has left.
        let (look, make) = (until - self.watching.ahead(), until - self.watching.making());
        let mut arrived = false;
        while !arrived && self.host.now() < look {
            arrived = self.host.wait(Span::ZERO);
        }
        if arrived {
            let now = self.host.now();
            self.fresh.fill(now);
            self.watching.watched(now, now.since(woke));
            return Ok(());
        }
        while self.host.now() < make {
            std::hint::spin_loop();
        }
        self.depart_at(node, until);
        self.watching.watched(until, until.since(woke));
        Ok(())
    }
}

/// When a datagram that was read now arrived, by what the system says. That is by the time of day,
/// which may be set meanwhile; but it did not arrive before the socket was empty.
fn arrived(now: Time, waited: Duration, emptied: Time) -> Time {
    let waited = Span::from_nanos(u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX));
    (now - waited).max(emptied).min(now)
}

#[cfg(test)]
mod tests;
