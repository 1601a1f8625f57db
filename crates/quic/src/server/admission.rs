//! Who may have a connection, and for how long.

use std::collections::HashMap;
use std::net::SocketAddr;

use flowstart_units::Time;

use super::session::LATER;
use super::{Line, MOST_UNWANTED, News, Server, UNWANTED_MOST, Unwanted};
use crate::message::{Decoder, Message};
use crate::sending::Sending;
use crate::service::Service;

impl Server {
    pub(super) fn accept(&mut self, now: Time, number: usize, peer: SocketAddr) {
        // An earlier attempt in whose place it is, or may be.
        if let Some(other) = self.endpoint.take_displaced() {
            self.forget(now, other);
        }
        let mut same = self.of_peer(peer);
        if same >= self.service.per_peer
            && let Some(own) = self.endpoint.unfinished(peer).filter(|own| *own != number)
        {
            self.endpoint.forget(own);
            self.forget(now, own);
            same = self.of_peer(peer);
        }
        // Numbers are given again.
        self.unwanted.remove(&number);
        let many = (same >= self.service.per_peer).then(|| self.service.enough(peer.ip(), same));
        let done = (self.once && self.served > 0).then(|| "it ends after one transfer".to_owned());
        if let Some(why) = self.ends.clone().or(done).or(many) {
            self.unwanted.insert(number, Unwanted { peer, since: now, why: why.clone() });
            self.news.push(News::Refused(peer, why));
            return;
        }
        let line = Line {
            peer,
            seen: peer,
            since: now,
            control: None,
            decoder: Decoder::default(),
            inbound: Vec::new(),
            session: None,
            joining: None,
            deaf: false,
        };
        self.lines.insert(number, line);
    }

    /// How many connections one peer has.
    fn of_peer(&self, peer: SocketAddr) -> usize {
        Self::theirs(&self.service, self.lines.values().map(|line| line.peer), peer)
    }

    /// How many of these addresses are those of one peer.
    fn theirs(service: &Service, all: impl Iterator<Item = SocketAddr>, peer: SocketAddr) -> usize {
        all.filter(|other| service.is_one_peer(other.ip(), peer.ip())).count()
    }

    /// Whether another connection of a peer may complete its handshake, if only to be told why it
    /// is one too many.
    pub(super) fn greets(
        service: &Service,
        lines: &HashMap<usize, Line>,
        unwanted: &HashMap<usize, Unwanted>,
        peer: SocketAddr,
    ) -> bool {
        Self::theirs(service, unwanted.values().map(|each| each.peer), peer) < MOST_UNWANTED
            || Self::theirs(service, lines.values().map(|line| line.peer), peer) < service.per_peer
    }

    /// Bytes that senders have given to the stack, of all transfers that go on.
    #[must_use]
    pub fn offered(&self) -> u64 {
        self.sessions.values().filter_map(|session| session.sending.as_ref()).map(Sending::offered).sum()
    }

    /// Whether a client's connection may move to an address: not if its peer there has as many as
    /// it may have. One that is not known to be there keeps others from moving there, but nobody
    /// from opening a connection: whoever forges addresses would.
    pub(super) fn admits(service: &Service, lines: &HashMap<usize, Line>, number: usize, from: SocketAddr) -> bool {
        let Some(line) = lines.get(&number) else { return false };
        let there = |address: SocketAddr| service.is_one_peer(address.ip(), from.ip());
        let others = lines.iter().filter(|(other, line)| **other != number && (there(line.peer) || there(line.seen)));
        there(line.peer) || others.count() < service.per_peer
    }

    pub(super) fn refuse(&mut self, number: usize, why: &str) {
        let Some(line) = self.lines.get_mut(&number) else { return };
        let (peer, control) = (line.peer, line.control);
        (line.deaf, line.decoder) = (true, Decoder::default());
        if let (Some(control), Some(connection)) = (control, self.endpoint.connection(number)) {
            connection.write(control, &Message::Refused(why.to_owned()).encode());
            connection.finish(control);
        }
        self.news.push(News::Refused(peer, why.to_owned()));
    }

    /// When each connection takes too long.
    pub(super) fn ends(&self) -> impl Iterator<Item = (usize, Time)> {
        let most = self.service.most_time;
        let of_lines = self.lines.iter().map(move |(number, line)| {
            let session = line.session.and_then(|(session, _)| self.sessions.get(&session));
            (*number, session.map_or(line.since + most + LATER, |session| session.due(most)))
        });
        of_lines.chain(self.unwanted.iter().map(|(number, each)| (*number, each.since + UNWANTED_MOST)))
    }

    /// Ends what takes too long.
    pub(super) fn expire(&mut self, now: Time) {
        let most = self.service.most_time;
        for session in self.sessions.values_mut() {
            while session.due(most) <= now && session.goes_on(most) {}
        }
        let late: Vec<usize> = self.ends().filter(|(_, at)| *at <= now).map(|(number, _)| number).collect();
        for number in late {
            if let Some(connection) = self.endpoint.connection(number) {
                connection.close(now, 3, "that takes too long");
            }
            self.forget(now, number);
        }
    }
}
