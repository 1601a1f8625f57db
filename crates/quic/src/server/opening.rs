//! What a client asks for is refused or becomes a session.

use std::net::SocketAddr;

use flowstart_congestion::ControllerConfig;
use flowstart_units::{Span, Time};

use super::{Line, News, Server, Session};
use crate::allowance::Share;
use crate::data::{Opened, Receiving, Sink, Source};
use crate::message::{Direction, Message, OLDEST, Paced, Request, VERSION, WAITS};
use crate::sending::Sending;
use crate::service::below;
use crate::telling::Telling;

impl Server {
    /// A connection asks for a transfer.
    ///
    /// # Errors
    /// Why it is refused.
    pub(super) fn open(&mut self, now: Time, number: usize, request: Request) -> Result<(), String> {
        let Some(peer) = self.lines.get(&number).map(|line| line.peer) else { return Ok(()) };
        self.check(&request)?;
        let (source, size) = self.source(&request)?;
        let lasts = self.amount(&request, size)?;
        let config = match request.direction {
            Direction::Down => {
                let made = (self.controllers)(&request.start, &request.avoidance, self.mtu);
                Some(made.map_err(|error| error.to_string())?)
            }
            Direction::Up => None,
        };
        // Last, for nothing that is refused is to cost its peer anything.
        let share = self.allowances.take(&self.service, now, peer.ip(), (size, lasts))?;
        let session = self.session(now, (number, peer), &request, share, source, config);
        self.answer(number, &request, &session, size.or(endless(&request).then_some(share.bytes)));
        let joined = request.session;
        self.sessions.insert(joined, session);
        self.news.push(News::Asked(peer, Box::new(request)));
        // Packets of different connections overtake each other.
        self.join(joined);
        Ok(())
    }

    /// Whether it is understood and makes sense.
    fn check(&self, request: &Request) -> Result<(), String> {
        if !(OLDEST..=VERSION).contains(&request.version) {
            return Err(format!("this is version {VERSION} of the protocol, not {}", request.version));
        }
        if !(1..=2).contains(&request.connections) || !(1..=64).contains(&request.streams) {
            return Err("a transfer has 1 or 2 connections with 1 to 64 streams".to_owned());
        }
        if request.look && (request.connections < 2 || !request.start.ends_with("_probe")) {
            return Err("a look has two connections and a start that is directed".to_owned());
        }
        request.paced.map_or(Ok(()), Paced::validate).map_err(|error| error.to_string())?;
        if request.paced.is_some_and(|paced| paced.tell) && request.direction == Direction::Down {
            return Err("what is told is when messages were read here".to_owned());
        }
        if self.sessions.contains_key(&request.session) {
            return Err("there is such a session".to_owned());
        }
        Ok(())
    }

    /// What is sent, and how many bytes are asked for.
    fn source(&self, request: &Request) -> Result<(Source, Option<u64>), String> {
        let Some(name) = &request.file else { return Ok((Source::Test, request.size)) };
        let root = self.service.root.as_deref().ok_or("no files are served here")?;
        let opened = Opened::new(below(root, name)?).map_err(|error| error.to_string())?;
        let length = opened.length();
        Ok((Source::File(opened), Some(length)))
    }

    /// Whether it is no more than anybody gets here; how long it lasts, if that is said.
    fn amount(&self, request: &Request, size: Option<u64>) -> Result<Option<Span>, String> {
        if size.is_some_and(|size| size > self.service.most_bytes) {
            return Err(format!("a transfer has at most {} bytes here", self.service.most_bytes));
        }
        let most = self.service.most_time;
        let lasts = request.nanos.map(Span::from_nanos);
        if lasts.is_some_and(|lasts| lasts > most) {
            return Err(format!("a transfer takes at most {} s here", most.as_secs_f64()));
        }
        Ok(lasts)
    }

    /// A transfer of so much, which this end sends with a controller, or receives without.
    fn session(
        &mut self,
        now: Time,
        (number, peer): (usize, SocketAddr),
        request: &Request,
        share: Share,
        source: Source,
        config: Option<ControllerConfig>,
    ) -> Session {
        let (mut sending, mut receiving, mut resumed) = (None, None, None);
        match config {
            Some(mut config) => {
                let within = Request { size: Some(share.bytes), nanos: Some(share.time.as_nanos()), ..request.clone() };
                if let Some((memory, today)) = &mut self.memory {
                    resumed = memory.propose(peer.ip(), today(), &mut config);
                }
                let sending = sending.insert(Sending::new(source, &within, config, self.look, self.learning));
                sending.timed(request.nanos.is_some());
                sending.driven(self.real_time);
                sending.resume(resumed);
            }
            None => {
                // With the headers of pieces.
                let allowed = share.bytes.saturating_add(share.bytes / 64 + (1 << 20));
                receiving = Some(Receiving::new(Sink::Check, allowed));
            }
        }
        let tell = request.paced.filter(|paced| paced.tell);
        Session {
            members: [Some(number), None],
            wanted: usize::from(request.connections),
            peer,
            began: now,
            sending,
            receiving,
            look: request.look,
            telling: tell.map(|paced| Telling::new(paced.message, request.version >= WAITS)),
            peer_report: None,
            told: false,
            begun: false,
            resumed,
            share: Some(share),
            // A client that said how long it sends has nothing new either.
            drains: request.direction == Direction::Down || request.nanos.is_some(),
            checked: None,
        }
    }

    /// Tells a connection that its transfer begins, and how many bytes it has if that is known.
    fn answer(&mut self, number: usize, request: &Request, session: &Session, bytes: Option<u64>) {
        let Some(line) = self.lines.get_mut(&number) else { return };
        line.session = Some((request.session, 0));
        let (Some(control), Some(connection)) = (line.control, self.endpoint.connection(number)) else { return };
        if session.receiving.is_some() && !session.look {
            connection.widen(self.window);
        }
        connection.write(control, &Message::Accepted(bytes).encode());
    }

    /// Brings a session and the connection that wants to join it together, if both are there.
    /// Sessions are numbers that only their client knows, from one peer. Connections that want to
    /// join it beyond those that it has are refused; those that it has go on.
    pub(super) fn join(&mut self, number: u64) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        let wants = |line: &Line| line.joining == Some(number) && line.session.is_none() && !line.deaf;
        let same = |line: &Line| self.service.is_one_peer(line.peer.ip(), session.peer.ip());
        let of_it = self.lines.iter().filter(|(_, line)| wants(line) && same(line));
        let mut joining: Vec<usize> = of_it.map(|(connection, _)| *connection).collect();
        // Not in the order of the table, which is another one in every run.
        joining.sort_unstable();
        let free = session.wanted > 1 && session.members[1].is_none();
        let surplus = joining.split_off(joining.len().min(usize::from(free)));
        for connection in joining {
            session.members[1] = Some(connection);
            if let Some(line) = self.lines.get_mut(&connection) {
                line.session = Some((number, 1));
            }
            if let (Some(_), false) = (&session.receiving, session.look)
                && let Some(connection) = self.endpoint.connection(connection)
            {
                connection.widen(self.window);
            }
            self.changed.insert(connection);
        }
        for connection in surplus {
            self.refuse(connection, "this session has all its connections");
            self.changed.insert(connection);
        }
    }

    /// When all connections of a transfer are there, data may flow.
    pub(super) fn begin(&mut self, now: Time, session: u64) {
        let Some(session) = self.sessions.get_mut(&session) else { return };
        if session.begun || session.members.iter().flatten().count() < session.wanted {
            return;
        }
        session.begun = true;
        if let Some(sending) = &mut session.sending {
            for (member, number) in session.members.iter().enumerate() {
                if let Some(connection) = number.and_then(|number| self.endpoint.connection(number)) {
                    sending.begin(now, member, connection);
                }
            }
        }
    }
}

/// Who sends without an end of its own stops where what it may send is over. An application that
/// writes at a rate of its own is refused there: what it measures would be cut.
fn endless(request: &Request) -> bool {
    request.direction == Direction::Up && request.paced.is_none()
}
