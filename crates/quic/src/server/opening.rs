//! What a client asks for is refused or becomes a session.

use flowstart_units::{Span, Time};

use super::{News, Server, Session};
use crate::data::{Opened, Receiving, Sink, Source};
use crate::message::{Direction, Message, OLDEST, Request, VERSION, WAITS};
use crate::sending::Sending;
use crate::service::below;
use crate::telling::{LEAST_MESSAGE, Telling};

impl Server {
    pub(super) fn open(&mut self, now: Time, number: usize, request: Request) -> Result<(), String> {
        let Some(line) = self.lines.get_mut(&number) else { return Ok(()) };
        let peer = line.peer;
        if !(OLDEST..=VERSION).contains(&request.version) {
            return Err(format!("this is version {VERSION} of the protocol, not {}", request.version));
        }
        if !(1..=2).contains(&request.connections) || !(1..=64).contains(&request.streams) {
            return Err("a transfer has 1 or 2 connections with 1 to 64 streams".to_owned());
        }
        if request.look && (request.connections < 2 || !request.start.ends_with("_probe")) {
            return Err("a look has two connections and a start that is directed".to_owned());
        }
        if request.paced.is_some_and(|paced| paced.message < LEAST_MESSAGE || paced.gap == 0) {
            let text = format!("a paced application has messages of {LEAST_MESSAGE} bytes at least");
            return Err(format!("{text}, and time between them"));
        }
        let tell = request.paced.filter(|paced| paced.tell);
        if tell.is_some() && request.direction == Direction::Down {
            return Err("what is told is when messages were read here".to_owned());
        }
        if self.sessions.contains_key(&request.session) {
            return Err("there is such a session".to_owned());
        }
        let mut size = request.size;
        let mut source = Source::Test;
        if let Some(name) = &request.file {
            let root = self.service.root.as_deref().ok_or("no files are served here")?;
            let opened = Opened::new(below(root, name)?).map_err(|error| error.to_string())?;
            size = Some(opened.length());
            source = Source::File(opened);
        }
        if size.is_some_and(|size| size > self.service.most_bytes) {
            return Err(format!("a transfer has at most {} bytes here", self.service.most_bytes));
        }
        let most = self.service.most_time;
        let lasts = request.nanos.map(Span::from_nanos);
        if lasts.is_some_and(|lasts| lasts > most) {
            return Err(format!("a transfer takes at most {} s here", most.as_secs_f64()));
        }
        let (mut sending, mut receiving, mut resumed) = (None, None, None);
        let config = match request.direction {
            Direction::Down => Some((self.controllers)(&request.start, &request.avoidance, self.mtu)?),
            Direction::Up => None,
        };
        let share = self.allowances.take(&self.service, now, peer.ip(), (size, lasts))?;
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
        let session = Session {
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
        };
        line.session = Some((request.session, 0));
        if let (Some(control), Some(connection)) = (line.control, self.endpoint.connection(number)) {
            if session.receiving.is_some() && !session.look {
                connection.widen(self.window);
            }
            // Who sends without an end of its own stops where what it may send is over. An
            // application that writes at a rate of its own is refused there: what it measures would
            // be cut.
            let endless = request.direction == Direction::Up && request.paced.is_none();
            let told = size.or(endless.then_some(share.bytes));
            connection.write(control, &Message::Accepted(told).encode());
        }
        self.sessions.insert(request.session, session);
        // Packets of different connections overtake each other.
        let joined = self.join(request.session);
        self.news.push(News::Asked(peer, Box::new(request)));
        joined
    }

    /// Brings a session and the connection that wants to join it together, if both are there.
    /// Sessions are numbers that only their client knows, from one peer.
    pub(super) fn join(&mut self, number: u64) -> Result<(), String> {
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        let (wanted, free) = (session.wanted > 1, session.members[1].is_none());
        for (connection, line) in &mut self.lines {
            let same = self.service.is_one_peer(line.peer.ip(), session.peer.ip());
            if line.joining == Some(number) && line.session.is_none() && same {
                if !wanted || !free {
                    return Err("this session has all its connections".to_owned());
                }
                session.members[1] = Some(*connection);
                line.session = Some((number, 1));
                if let (Some(_), false) = (&session.receiving, session.look)
                    && let Some(connection) = self.endpoint.connection(*connection)
                {
                    connection.widen(self.window);
                }
                self.changed.insert(*connection);
                return Ok(());
            }
        }
        Ok(())
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
