//! What a driver asks of a server, and tells it.

use flowstart_units::Time;

use super::Server;
use super::session::Session;
use crate::endpoint::{Arrival, Doors, Outgoing};
use crate::node::Node;
use crate::sending::Sending;
use crate::telling::Telling;

impl Node for Server {
    fn driven(&mut self, real_time: bool) {
        self.real_time = real_time;
    }

    fn sockets(&self) -> usize {
        1
    }

    fn handle(&mut self, now: Time, _socket: usize, arrival: &Arrival, data: &[u8]) {
        self.arrived = arrival.at;
        let Self { endpoint, service, lines, unwanted, .. } = self;
        let mut doors = Doors {
            moves: &mut |number| Self::admits(service, lines, number, arrival.from),
            enters: &mut || Self::greets(service, lines, unwanted, arrival.from),
        };
        if let Some(number) = endpoint.handle(now, arrival, data, &mut doors) {
            self.accept(now, number, arrival.from);
        }
        self.listen(now);
    }

    fn refused(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, now: Time, _socket: usize, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        let Self { endpoint, lines, sessions, .. } = self;
        endpoint.poll_transmit(now, buffer, &mut |number, connection, exhausted| {
            let Some((session, member)) = lines.get(&number).and_then(|line| line.session) else { return false };
            let sending = sessions.get_mut(&session).filter(|it| it.begun).and_then(|it| it.sending.as_mut());
            sending.is_some_and(|sending| sending.feed(now, member, connection, exhausted))
        })
    }

    fn departed(&mut self, _socket: usize, outgoing: &Outgoing, at: Time) {
        let Some(number) = outgoing.connection else { return };
        let Some(connection) = self.endpoint.connection(number) else { return };
        let late = connection.departed(at);
        if let Some((session, member)) = self.lines.get(&number).and_then(|line| line.session)
            && let Some(sending) = self.sessions.get_mut(&session).and_then(|it| it.sending.as_mut())
        {
            sending.departed(member, connection, outgoing.ecn.is_some(), late);
        }
    }

    fn departs(&self) -> Time {
        self.endpoint.departs()
    }

    fn only_acknowledges(&self) -> bool {
        self.sessions.values().all(|session| session.sending.is_none() && !session.look)
    }

    fn handle_timeout(&mut self, now: Time) {
        self.endpoint.handle_timeout(now);
        self.expire(now);
        self.listen(now);
    }

    fn deadline(&self) -> Time {
        if self.sessions.values().any(Session::is_to_be_refused) {
            return Time::ZERO;
        }
        let ends = self.sessions.values().filter_map(|session| session.sending.as_ref()).map(Sending::deadline);
        let tellings = self.sessions.values().filter(|session| !session.told).filter_map(|it| it.telling.as_ref());
        let told = tellings.map(Telling::due).min().unwrap_or(Time::NEVER);
        // Nothing else need be due where somebody only says now and then that he is there.
        let late = self.ends().map(|(_, at)| at).min().unwrap_or(Time::NEVER);
        ends.min().unwrap_or(Time::NEVER).min(told).min(late).min(self.endpoint.deadline())
    }

    fn is_over(&self, _now: Time) -> bool {
        self.once && self.served > 0 && self.sessions.values().all(|session| session.told)
    }
}
