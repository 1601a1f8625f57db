//! The connections of one UDP socket, without the socket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use flowstart_units::{Span, Time};

use crate::clock::Clock;
use crate::connection::{Connection, Idle};
use crate::failed::ConnectError;
use crate::gate::Gates;
use crate::learning::LearningConfig;
use crate::look::LookConfig;
use crate::qlog::Qlog;
use crate::scopes::{Scopes, bare};
use crate::stack::{self, EcnCodepoint, Handled, Made, Settings, Stack, Transmit};
use crate::tls::{ClientHandshake, Identity};

/// Time after which a server that was never heard of counts as out of reach, unless there is
/// [another](Limits::silence).
pub const SILENCE: Span = Span::from_secs(3);

/// Signs of life that a silent connection gives in the time after which it would be over: two may
/// be lost.
const KEEP_ALIVES: u32 = 3;

/// What the stack may do, beyond what congestion control decides.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The stack; default `noq-proto`.
    pub stack: Stack,
    /// UDP payload of a full packet in bytes, 1200 ..= 9000; default 1452, which fits 1500-byte
    /// links with IPv6 too. Where the path takes less the stack falls back to 1200.
    pub mtu: u16,
    /// Connections at the same time; default 64.
    pub connections: usize,
    /// Bytes that may arrive without having been read; default 32 MiB.
    pub receive_window: u32,
    /// Time after which a silent connection is over; default 10 s.
    pub idle: Duration,
    /// Time after which a server of which nothing was heard counts as out of reach, and a handshake
    /// in which nothing new arrives as stuck; default [`SILENCE`](crate::SILENCE). Nothing else is
    /// given up before either.
    pub silence: Span,
    /// A client that hears nothing for so long, or for two round trips if that is longer, asks
    /// whether the server is still there, and again after as long; default 1 s, which is the
    /// initial RTO of RFC 6298. A server that was started anew answers with a reset.
    pub asks: Span,
    /// How often a client begins a handshake that gets [stuck](Self::silence), at least once;
    /// default 5.
    pub attempts: u8,
    /// Shortest time from one stateless reset to the next; default 1 ms. Each is shorter than what
    /// it answers (RFC 9000 section 10.3), so this limits work only; with the stack's 20 ms some of
    /// 64 clients would wait for seconds.
    pub resets: Duration,
    /// Where a server listens, which tells servers of one identity apart; default none. What resets
    /// connections is derived from both: the same for a server that is started anew, and another
    /// for every other (RFC 9000 section 21.11).
    pub place: String,
    /// The seed of connection identifiers; `None` for unpredictable ones, as any real network
    /// needs.
    pub seed: Option<[u8; 32]>,
    /// Where each connection writes what it sends. Default none.
    pub qlog: Option<Qlog>,
    /// A client looks into its packets before they are encrypted, so that
    /// [`Client::take_departures`](crate::Client::take_departures) says when the messages of a
    /// paced application left. That changes nothing of what is sent. Default false.
    pub departures: bool,
    /// How this end looks at a path, if it is asked to.
    pub look: LookConfig,
    /// What a transfer teaches this end about its path, if it sends; checked as an end is made.
    pub learning: LearningConfig,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            stack: Stack::default(),
            mtu: 1452,
            connections: 64,
            receive_window: 32 << 20,
            idle: Duration::from_secs(10),
            silence: SILENCE,
            asks: Span::from_secs(1),
            attempts: 5,
            resets: Duration::from_millis(1),
            place: String::new(),
            seed: None,
            qlog: None,
            departures: false,
            look: LookConfig::default(),
            learning: LearningConfig::default(),
        }
    }
}

impl Limits {
    fn settings(&self) -> Settings {
        Settings {
            mtu: self.mtu,
            receive_window: self.receive_window,
            idle: self.idle,
            keep_alive: self.idle / KEEP_ALIVES,
            resets: self.resets,
            place: self.place.clone(),
            seed: self.seed,
        }
    }
}

/// How a datagram arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When the system took it in: it may have waited until it was read.
    pub at: Time,
    /// Who sent it.
    pub from: SocketAddr,
    /// Its ECN field, if that is known.
    pub ecn: Option<EcnCodepoint>,
}

/// Who may come in.
pub(crate) struct Doors<'a> {
    /// Whether a client's connection may move to where a datagram comes from.
    pub(crate) moves: &'a mut dyn FnMut(usize) -> bool,
    /// Whether a client there may have another connection.
    pub(crate) enters: &'a mut dyn FnMut() -> bool,
}

/// A datagram to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Where to.
    pub to: SocketAddr,
    /// Its ECN field.
    pub ecn: Option<EcnCodepoint>,
    /// Which connection it is of; `None` for one that the endpoint itself sends.
    pub connection: Option<usize>,
}

impl Outgoing {
    fn new(transmit: &Transmit, connection: Option<usize>) -> Self {
        Self { to: transmit.to, ecn: transmit.ecn, connection }
    }
}

/// Closed connections that may linger at a server that has room for few: one transfer after
/// another has more of them than it ever had at a time.
const LINGERING: usize = 16;

/// Whether a datagram is of a connection whose handshake is over (RFC 9000 section 17.3).
fn is_short(data: &[u8]) -> bool {
    data.first().is_some_and(|first| first & 0x80 == 0)
}

/// An endpoint: the stack's, with driven connections.
#[derive(Debug)]
pub struct Endpoint {
    inner: Box<dyn stack::Endpoint>,
    clock: Clock,
    gates: Arc<Gates>,
    limits: Limits,
    connections: Vec<Option<Connection>>,
    /// What the endpoint itself has to send.
    answers: Vec<(Outgoing, Vec<u8>)>,
    turn: usize,
    server: bool,
    /// A connection that went for another attempt of its client.
    displaced: Option<usize>,
    scopes: Scopes,
}

impl Endpoint {
    /// An endpoint that serves if it has an identity.
    ///
    /// # Errors
    /// If the identity does not fit the stack.
    pub fn new(clock: Clock, limits: &Limits, identity: Option<&Identity>) -> Result<Self, rustls::Error> {
        let gates = Arc::new(Gates::default());
        Ok(Self {
            server: identity.is_some(),
            inner: stack::endpoint(limits.stack, limits.settings(), identity, &gates)?,
            clock,
            gates,
            limits: limits.clone(),
            connections: Vec::new(),
            answers: Vec::new(),
            turn: 0,
            displaced: None,
            scopes: Scopes::default(),
        })
    }

    /// Opens a connection; its number.
    ///
    /// # Errors
    /// If the address or the name cannot be connected to.
    pub fn connect(&mut self, now: Time, handshake: ClientHandshake, to: SocketAddr) -> Result<usize, ConnectError> {
        let to = self.scopes.leave(to);
        let made = self.inner.connect(self.clock.instant(now), handshake, to)?;
        let number = self.keep(made);
        let asks = self.limits.asks;
        if let Some(connection) = self.connection(number) {
            connection.ask_after(asks);
        }
        Ok(number)
    }

    fn keep(&mut self, (number, connection): Made) -> usize {
        let log = self.limits.qlog.clone().map(|qlog| (qlog, self.server));
        let connection = Connection::new(connection, number, self.clock, self.gates.last().1, self.server, log);
        if self.connections.len() <= number {
            self.connections.resize_with(number + 1, || None);
        }
        self.connections[number] = Some(connection);
        number
    }

    /// A connection by its number.
    pub fn connection(&mut self, number: usize) -> Option<&mut Connection> {
        self.connections.get_mut(number)?.as_mut()
    }

    /// Numbers of the connections there are.
    #[must_use]
    pub fn numbers(&self) -> Vec<usize> {
        (0..self.connections.len()).filter(|number| self.connections[*number].is_some()).collect()
    }

    /// A datagram is there to be read. Returns the number of a new connection if it opened one.
    pub(crate) fn handle(&mut self, now: Time, arrival: &Arrival, data: &[u8], doors: &mut Doors<'_>) -> Option<usize> {
        let mut buffer = Vec::new();
        let from = self.scopes.leave(arrival.from);
        // The stack counts from the arrival too, so its ACK says how long a packet waited here.
        let arrived = arrival.at.min(now);
        let mut connections = self.connections.iter().flatten();
        let counted = connections.find_map(|connection| connection.counts(now, from)).unwrap_or(arrived);
        let instant = self.clock.instant(counted);
        let detours = self.server && self.limits.stack == Stack::Noq && is_short(data);
        let mut connections = self.connections.iter_mut().flatten().filter(|_| detours);
        let seems = connections.find_map(|connection| connection.detour(now, from)).unwrap_or(from);
        match self.inner.handle(instant, seems, arrival.ecn, data, &mut buffer)? {
            Handled::For(number, event) => {
                let connection = self.connections.get_mut(number).and_then(Option::as_mut)?;
                if connection.may_come_from(from, &mut || (doors.moves)(number)) {
                    connection.handle_datagram((arrived, counted), event, data.len(), &self.gates);
                }
                None
            }
            Handled::New { proven } => self.incoming(now, from, proven, doors),
            Handled::Answer(transmit) => {
                self.answer(Some(Transmit { to: from, ..transmit }), buffer);
                None
            }
        }
    }

    fn answer(&mut self, transmit: Option<Transmit>, mut buffer: Vec<u8>) {
        if let Some(transmit) = transmit {
            buffer.truncate(transmit.size);
            self.answers.push((Outgoing::new(&transmit, None), buffer));
        }
    }

    /// A connection from this address whose handshake is not over: an attempt that whoever is there
    /// has given up, if it begins another.
    #[must_use]
    pub fn unfinished(&self, from: SocketAddr) -> Option<usize> {
        let from = bare(from);
        let of = |connection: &Connection| connection.whereabouts().0 == from && connection.is_in_handshake();
        self.connections.iter().position(|slot| slot.as_ref().is_some_and(of))
    }

    /// A connection is gone at once, without a word to the other end.
    pub fn forget(&mut self, number: usize) {
        if let Some(slot) = self.connections.get_mut(number)
            && slot.take().is_some()
        {
            self.inner.forget(number);
        }
    }

    /// The connection that went for the newest, if one did.
    pub fn take_displaced(&mut self) -> Option<usize> {
        self.displaced.take()
    }

    /// Whether there are as many connections as there may be. One that is closed counts no more,
    /// though the stack still answers what arrives of it for a while.
    fn is_full(&self) -> bool {
        let open = self.connections.iter().flatten().filter(|connection| !connection.is_closed());
        open.count() >= self.limits.connections
    }

    /// Of closed connections there are no more than as many again, or [`LINGERING`]. Those go first
    /// that would be there longest: for how long that is their clients say, in three times the
    /// longest time that they may wait before they acknowledge (RFC 9000 section 10.2).
    fn make_room(&mut self) {
        let most = self.limits.connections;
        while self.inner.open_connections() >= most.saturating_add(most.max(LINGERING)) {
            let closed = self.connections.iter().flatten().filter(|each| each.is_closed() && each.is_told());
            let Some(longest) = closed.max_by_key(|each| each.deadline()).map(Connection::number) else { return };
            self.forget(longest);
        }
    }

    fn incoming(&mut self, now: Time, from: SocketAddr, proven: bool, doors: &mut Doors<'_>) -> Option<usize> {
        let mut buffer = Vec::new();
        let transmit = if !self.server {
            self.inner.refuse(&mut buffer)
        } else if !proven {
            // Nothing is sent to an address that has not shown that it receives (RFC 9000 section
            // 8.1.2), but for the datagram that asks it to.
            self.inner.retry(&mut buffer)
        } else if !self.has_place(from, doors) {
            self.inner.refuse(&mut buffer)
        } else {
            match self.inner.accept(self.clock.instant(now), &mut buffer) {
                Ok(made) => return Some(self.keep(made)),
                Err(transmit) => transmit,
            }
        };
        self.answer(transmit, buffer);
        None
    }

    /// Whether there is a place for a client that is where it seems to be. Who begins a handshake
    /// anew takes that of his own first one.
    fn has_place(&mut self, from: SocketAddr, doors: &mut Doors<'_>) -> bool {
        let has = match self.unfinished(from) {
            Some(own) if self.is_full() => {
                self.forget(own);
                self.displaced = Some(own);
                true
            }
            Some(_) => true,
            None => !self.is_full() && (doors.enters)(),
        };
        if has {
            self.make_room();
        }
        has
    }

    /// The next datagram of the endpoint itself or of a connection. If it is of a connection, its
    /// [`departed`](Connection::departed) must be called. Asks connections in turn, and `feed`
    /// before each of them, once more and with `true` if the connection had nothing to send; it
    /// returns true if it wrote something.
    pub fn poll_transmit(
        &mut self,
        now: Time,
        buffer: &mut Vec<u8>,
        feed: &mut dyn FnMut(usize, &mut Connection, bool) -> bool,
    ) -> Option<Outgoing> {
        if let Some((outgoing, data)) = self.answers.pop() {
            buffer.clear();
            buffer.extend_from_slice(&data);
            return Some(Outgoing { to: self.scopes.enter(outgoing.to), ..outgoing });
        }
        let count = self.connections.len();
        for step in 0..count {
            let number = (self.turn + step) % count;
            let Some(connection) = &mut self.connections[number] else { continue };
            loop {
                buffer.clear();
                feed(number, connection, false);
                match connection.poll_transmit(now, buffer) {
                    Ok(transmit) => {
                        self.turn = (number + 1) % count;
                        let to = self.scopes.enter(transmit.to);
                        return Some(Outgoing { to, ..Outgoing::new(&transmit, Some(number)) });
                    }
                    Err(Idle::Exhausted) if feed(number, connection, true) => {}
                    Err(Idle::Exhausted) => {
                        connection.ran_dry(now);
                        break;
                    }
                    Err(_) => break,
                }
            }
        }
        self.turn = if count > 0 { (self.turn + 1) % count } else { 0 };
        None
    }

    /// When something is to be done without a packet coming in.
    #[must_use]
    pub fn deadline(&self) -> Time {
        self.connections.iter().flatten().map(Connection::deadline).min().unwrap_or(Time::NEVER)
    }

    /// When the next packet that is only held back by its departure time may leave.
    #[must_use]
    pub fn departs(&self) -> Time {
        self.connections.iter().flatten().map(Connection::departs).min().unwrap_or(Time::NEVER)
    }

    /// Does what is due, and forgets connections of which nothing more will come.
    pub fn handle_timeout(&mut self, now: Time) {
        for connection in self.connections.iter_mut().flatten() {
            connection.handle_timeout(now, &self.gates);
        }
        self.exchange(now);
    }

    /// Passes on what endpoint and connections have to tell each other. To be called after
    /// datagrams were handled.
    pub fn exchange(&mut self, now: Time) {
        for slot in &mut self.connections {
            let Some(connection) = slot else { continue };
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = self.inner.handle_event(connection.number(), event) {
                    connection.handle_event(now, event);
                }
            }
            // Not before whoever drives it has heard why.
            if connection.is_drained() && connection.is_told() {
                *slot = None;
            }
        }
    }
}
