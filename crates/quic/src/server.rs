//! The server: takes part in transfers within its limits.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::ops::Range;

use flowstart_congestion::ControllerConfig;
use flowstart_units::{Span, Time};
use session::Session;

use crate::allowance::Allowances;
use crate::clock::Clock;
use crate::connection::{Connection, Happening};
use crate::data::Receiving;
use crate::endpoint::{Endpoint, Limits};
use crate::failed::ControllerError;
use crate::learning::{LearningConfig, Lesson};
use crate::look::LookConfig;
use crate::memory::Memory;
use crate::message::{Decoder, Message, NOT_UNDERSTOOD, Received, Request, UNWANTED};
use crate::service::Service;
use crate::stack::{Dir, StreamId};
use crate::telling::Telling;
use crate::tls::Identity;

mod admission;
mod node;
mod opening;
mod session;
#[cfg(test)]
mod tests;

/// Makes the controller of a start and an avoidance by their names, or says what is wrong, which
/// the client is told.
pub type Controllers = Box<dyn Fn(&str, &str, u16) -> Result<ControllerConfig, ControllerError>>;

/// The time of day in seconds of Unix time.
pub type Today = Box<dyn Fn() -> u64>;

/// A connection's part in a transfer.
#[derive(Debug)]
struct Line {
    /// Where it is known to be, and where it seems to be.
    peer: SocketAddr,
    seen: SocketAddr,
    since: Time,
    control: Option<StreamId>,
    decoder: Decoder,
    inbound: Vec<StreamId>,
    session: Option<(u64, usize)>,
    /// The session it wants to join, whose first connection has not spoken yet.
    joining: Option<u64>,
    /// It was refused, and nothing that it says is read any more.
    deaf: bool,
}

/// A connection that is one too many. It is told why when the handshake is complete: before, a
/// stack tells no reason (RFC 9000 section 10.2.3).
#[derive(Debug)]
struct Unwanted {
    peer: SocketAddr,
    since: Time,
    why: String,
}

/// Connections of one peer that are told why they are too many, at the same time: a transfer has
/// two. Others are refused without a reason, for each takes a place until its handshake is over.
const MOST_UNWANTED: usize = 2;
/// How long such a handshake may take.
const UNWANTED_MOST: Span = Span::from_secs(10);

/// Something the server says to whoever runs it.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A client asked for this.
    Asked(SocketAddr, Box<Request>),
    /// A client was refused, and why.
    Refused(SocketAddr, String),
    /// A transfer is complete.
    Complete(SocketAddr, Received),
    /// A transfer was over before it was complete, and nobody was refused anything.
    BrokenOff(SocketAddr),
    /// What was sent to this address taught this about its path.
    Learnt(SocketAddr, Lesson),
}

/// The server.
pub struct Server {
    endpoint: Endpoint,
    service: Service,
    allowances: Allowances,
    controllers: Controllers,
    mtu: u16,
    /// Bytes that may arrive on a connection without having been read, if its client sends.
    window: u32,
    look: LookConfig,
    learning: LearningConfig,
    lines: HashMap<usize, Line>,
    unwanted: HashMap<usize, Unwanted>,
    sessions: HashMap<u64, Session>,
    news: Vec<News>,
    changed: HashSet<usize>,
    once: bool,
    real_time: bool,
    served: usize,
    memory: Option<(Memory, Today)>,
    /// Why nobody is served any more.
    ends: Option<String>,
    /// When the system took in the datagram that is handled, or was last.
    arrived: Time,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server({} sessions)", self.sessions.len())
    }
}

impl Server {
    /// A server. With `once` it is over after the first transfer, be it that it broke off, and
    /// those that go on beside it.
    ///
    /// # Errors
    /// If the identity does not fit the stack, or the limits make no sense.
    pub fn new(
        clock: Clock,
        limits: &Limits,
        identity: &Identity,
        service: Service,
        controllers: Controllers,
        once: bool,
    ) -> Result<Self, rustls::Error> {
        limits.learning.validate().map_err(|invalid| rustls::Error::General(invalid.to_string()))?;
        Ok(Self {
            endpoint: Endpoint::new(clock, limits, Some(identity))?,
            service,
            allowances: Allowances::default(),
            controllers,
            mtu: limits.mtu,
            window: limits.receive_window,
            look: limits.look,
            learning: limits.learning,
            lines: HashMap::new(),
            unwanted: HashMap::new(),
            sessions: HashMap::new(),
            news: Vec::new(),
            changed: HashSet::new(),
            once,
            real_time: false,
            served: 0,
            memory: None,
            ends: None,
            arrived: Time::ZERO,
        })
    }

    /// From now on what is sent teaches about paths, and starts that resume are told.
    pub fn remember(&mut self, memory: Memory, today: Today) {
        self.memory = Some((memory, today));
    }

    /// The memory, if it has learnt or forgotten something that nobody kept.
    pub fn changed_memory(&mut self) -> Option<&mut Memory> {
        self.memory.as_mut().map(|(memory, _)| memory).filter(|memory| memory.is_changed())
    }

    /// Closes all connections, and those that come from now on, with this reason: it must be driven
    /// for a moment more.
    pub fn stop(&mut self, now: Time, why: &str) {
        self.ends = Some(why.to_owned());
        for number in self.endpoint.numbers() {
            if let Some(connection) = self.endpoint.connection(number) {
                connection.close(now, UNWANTED, why);
            }
        }
    }

    /// What happened since the last time.
    pub fn take_news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    /// Bytes that have arrived without a gap, of all transfers that go on.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.sessions.values().filter_map(|session| session.receiving.as_ref()).map(Receiving::delivered).sum()
    }

    fn listen(&mut self, now: Time) {
        self.endpoint.exchange(now);
        for number in self.endpoint.numbers() {
            if let (Some(connection), Some(line)) = (self.endpoint.connection(number), self.lines.get_mut(&number)) {
                (line.seen, line.peer) = connection.whereabouts();
            }
            loop {
                let Some(happening) = self.endpoint.connection(number).and_then(Connection::poll) else { break };
                match happening {
                    Happening::Ready => {
                        if let Some(unwanted) = self.unwanted.remove(&number)
                            && let Some(connection) = self.endpoint.connection(number)
                        {
                            connection.close(now, UNWANTED, &unwanted.why);
                        }
                    }
                    Happening::Readable => self.read(now, number),
                    Happening::Finished(stream) => {
                        if let Some((session, member)) = self.session_of(number)
                            && let Some(sending) = self.sessions.get_mut(&session).and_then(|it| it.sending.as_mut())
                            && let Some(connection) = self.endpoint.connection(number)
                        {
                            sending.finished(now, member, stream, connection);
                        }
                        self.changed.insert(number);
                    }
                    Happening::Lost(_) => {
                        self.forget(now, number);
                    }
                }
            }
        }
        self.tell(now);
        let due = |session: &mut Session| {
            let gave_up = session.sending.as_mut().is_some_and(|sending| sending.give_up(now));
            session.is_to_be_refused() || (gave_up && !session.told)
        };
        let due: Vec<u64> =
            self.sessions.iter_mut().filter_map(|(number, session)| due(session).then_some(*number)).collect();
        due.into_iter().for_each(|session| self.conclude(now, session));
        for number in std::mem::take(&mut self.changed) {
            if let Some((session, _)) = self.session_of(number) {
                self.begin(now, session);
                self.conclude(now, session);
            }
        }
    }

    fn session_of(&self, number: usize) -> Option<(u64, usize)> {
        self.lines.get(&number)?.session
    }

    /// A connection is over: so is what it took part in.
    fn forget(&mut self, now: Time, number: usize) {
        self.unwanted.remove(&number);
        let Some(line) = self.lines.remove(&number) else { return };
        if let Some((session, _)) = line.session
            && let Some(mut session) = self.sessions.remove(&session)
        {
            session.reckon(now, &self.service, &mut self.allowances);
            self.served += 1;
            if !session.told {
                self.news.push(News::BrokenOff(session.peer));
            }
            if let (Some(sending), Some((memory, today))) = (&session.sending, &mut self.memory) {
                let lesson = sending.lesson();
                if memory.learn(session.peer.ip(), today(), session.resumed, lesson) {
                    self.news.push(News::Learnt(session.peer, lesson));
                }
            }
            for other in session.members.into_iter().flatten().filter(|other| *other != number) {
                if let Some(connection) = self.endpoint.connection(other) {
                    connection.close(now, 0, "");
                }
                self.lines.remove(&other);
            }
        }
    }

    fn read(&mut self, now: Time, number: usize) {
        let (Some(connection), Some(line)) = (self.endpoint.connection(number), self.lines.get_mut(&number)) else {
            return;
        };
        if line.deaf {
            return;
        }
        self.changed.insert(number);
        if line.control.is_none() {
            line.control = connection.accept(Dir::Bi);
        }
        if let Some(control) = line.control {
            connection.read(control, &mut |bytes| line.decoder.push(&bytes));
        }
        while let Some(stream) = connection.accept(Dir::Uni) {
            line.inbound.push(stream);
        }
        if let Some((session, member)) = line.session
            && let Some(Session { receiving: Some(receiving), telling, .. }) = self.sessions.get_mut(&session)
            && receiving.fault().is_none()
        {
            let at = self.arrived;
            line.inbound.retain(|stream| {
                let mut hear = |bytes: Range<u64>| {
                    if let Some(telling) = telling {
                        telling.arrived(at, &bytes);
                    }
                };
                receiving.goes_on(at, member, *stream, connection, &mut hear)
            });
            if let Some(telling) = telling {
                telling.note(now, receiving.delivered());
            }
        }
        loop {
            let Some(line) = self.lines.get_mut(&number) else { return };
            match line.decoder.message() {
                Ok(None) => return,
                Ok(Some(message)) => {
                    if let Err(why) = self.message(now, number, message) {
                        return self.refuse(number, &why);
                    }
                }
                Err(error) => {
                    if let Some(connection) = self.endpoint.connection(number) {
                        connection.close(now, NOT_UNDERSTOOD, &error.to_string());
                    }
                    return self.forget(now, number);
                }
            }
        }
    }

    fn message(&mut self, now: Time, number: usize, message: Message) -> Result<(), String> {
        let Some(line) = self.lines.get_mut(&number) else { return Ok(()) };
        match (message, line.session) {
            (Message::Request(request), None) => self.open(now, number, request),
            (Message::Join(session), None) if line.joining.is_none() => {
                line.joining = Some(session);
                self.join(session);
                Ok(())
            }
            (Message::Report(report), Some((session, _))) => {
                if let Some(session) = self.sessions.get_mut(&session) {
                    session.peer_report = Some(report);
                }
                Ok(())
            }
            _ => Err("that message has no place here".to_owned()),
        }
    }

    /// Tells senders that want to know when their messages were read.
    fn tell(&mut self, now: Time) {
        for session in self.sessions.values_mut().filter(|session| !session.told) {
            if let (Some(telling), Some(first)) = (&mut session.telling, session.members[0])
                && let Some(control) = self.lines.get(&first).and_then(|line| line.control)
                && let Some(connection) = self.endpoint.connection(first)
            {
                // The sender is done: it waits for the rest.
                let all = session.peer_report.is_some();
                telling.tell(now, all, &mut |bytes| connection.write(control, bytes));
            }
        }
    }

    fn conclude(&mut self, now: Time, number: u64) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        if session.told {
            return;
        }
        let mut message = None;
        let mut fault = None;
        if let Some(sending) = &session.sending {
            fault = sending.fault().map(str::to_owned);
            if sending.is_complete() {
                let report = sending.report(now);
                self.news.push(News::Complete(session.peer, sending.acknowledged(&report)));
                message = Some(Message::Report(Box::new(report)));
            }
        }
        if let Some(receiving) = &session.receiving {
            fault = fault.or_else(|| receiving.fault().map(str::to_owned));
        }
        let behind = session.telling.as_ref().is_some_and(Telling::is_behind);
        if session.telling.as_ref().is_some_and(Telling::is_too_much) {
            fault = Some("what was asked for is not taken".to_owned());
        }
        if let (Some(receiving), Some(report), false) = (&session.receiving, &session.peer_report, behind) {
            let bytes = receiving.delivered();
            if bytes >= report.bytes {
                let received = receiving.received();
                self.news.push(News::Complete(session.peer, received.clone()));
                message = Some(Message::Received(received));
            }
        }
        let first = session.members[0];
        if let Some(fault) = fault
            && let Some(first) = first
        {
            session.told = true;
            session.reckon(now, &self.service, &mut self.allowances);
            return self.refuse(first, &fault);
        }
        if let Some(message) = message
            && let Some(first) = first
            && let Some(control) = self.lines.get(&first).and_then(|line| line.control)
            && let Some(connection) = self.endpoint.connection(first)
        {
            session.told = true;
            session.reckon(now, &self.service, &mut self.allowances);
            connection.write(control, &message.encode());
        }
    }
}
