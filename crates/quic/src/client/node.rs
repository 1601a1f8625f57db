//! What a driver asks of a client, and tells it.

use flowstart_units::Time;

use super::failures::unreachable;
use super::{Client, Failed, FailedKind, LOOK_MOST};
use crate::departures::{MessageDeparture, datagram_sample};
use crate::endpoint::{Arrival, Doors, Endpoint, Outgoing};
use crate::node::Node;
use crate::sending::Sending;
use crate::tap::Tap;

impl Node for Client {
    fn driven(&mut self, real_time: bool) {
        if let Some(sending) = &mut self.sending {
            sending.driven(real_time);
        }
    }

    fn sockets(&self) -> usize {
        self.endpoints.len()
    }

    fn handle(&mut self, now: Time, socket: usize, arrival: &Arrival, data: &[u8]) {
        self.arrived = arrival.at;
        self.carries(data.len());
        let heard = self.attempts.heard(now, socket, data);
        (self.heard, self.senseless) = (self.heard | heard, self.senseless | !heard);
        if let Some(endpoint) = self.endpoints.get_mut(socket) {
            let mut doors = Doors { moves: &mut |_| false, enters: &mut || false };
            endpoint.handle(now, arrival, data, &mut doors);
        }
        self.listen(now);
    }

    fn refused(&mut self, now: Time) {
        if !self.heard {
            let words = format!("nobody listens at {}: is `flowstart serve` running there?", self.to);
            self.end(now, Err(Failed::new(FailedKind::Unreachable, words)));
        }
        self.attempts.refused();
    }

    fn poll_transmit(&mut self, now: Time, socket: usize, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        let Self { endpoints, sending, .. } = self;
        let outgoing = endpoints.get_mut(socket)?.poll_transmit(now, buffer, &mut |_, connection, exhausted| {
            sending.as_mut().is_some_and(|sending| sending.feed(now, socket, connection, exhausted))
        });
        if outgoing.is_some() {
            self.carries(buffer.len());
            self.attempts.leaves(socket, buffer);
        }
        if !self.taps.is_empty() {
            self.sample = outgoing.and_then(|_| datagram_sample(buffer));
        }
        outgoing
    }

    fn departed(&mut self, socket: usize, outgoing: &Outgoing, at: Time) {
        let Some(number) = outgoing.connection else { return };
        let Some(connection) = self.endpoints.get_mut(socket).and_then(|it| it.connection(number)) else { return };
        let late = connection.departed(at);
        if let Some(sending) = &mut self.sending {
            sending.departed(socket, connection, outgoing.ecn.is_some(), late);
            for (stream, bytes) in self.taps.get(socket).map(Tap::take).unwrap_or_default() {
                let sample = self.sample;
                let ended = sending.within(socket, stream, &bytes);
                self.departures.extend(ended.map(|message| MessageDeparture { message, at, sample }));
            }
        }
    }

    fn departs(&self) -> Time {
        self.endpoints.iter().map(Endpoint::departs).min().unwrap_or(Time::NEVER)
    }

    fn only_acknowledges(&self) -> bool {
        self.sending.is_none() && !self.request.look
    }

    fn handle_timeout(&mut self, now: Time) {
        for endpoint in &mut self.endpoints {
            endpoint.handle_timeout(now);
        }
        let silence = self.attempts.silence();
        if !self.heard && now.since(self.began) >= silence {
            let words = unreachable(self.to, silence, self.senseless);
            self.end(now, Err(Failed::new(FailedKind::TimedOut, words)));
        }
        if self.ended.is_none() && self.look_ends().is_some_and(|at| now >= at) {
            let (to, seconds) = (self.to, LOOK_MOST.as_secs_f64());
            let why = format!("the look at the path to {to} was not over after {seconds} s: hardly anything arrives");
            self.end(now, Err(Failed::new(FailedKind::TimedOut, why)));
        }
        self.try_anew(now);
        self.listen(now);
        if self.ended.is_none() && self.stalls() <= now {
            let (to, seconds) = (self.to, self.patience().as_secs_f64());
            let why = match now.since(self.news.0) >= self.patience() {
                true => format!("{to} is there, but for {seconds} s the transfer has gone no further"),
                false => format!("{to} goes on with the transfer long after its time"),
            };
            self.end(now, Err(Failed::new(FailedKind::TimedOut, why)));
        }
    }

    fn deadline(&self) -> Time {
        let mut deadline = self.endpoints.iter().map(Endpoint::deadline).min().unwrap_or(Time::NEVER);
        if !self.heard {
            deadline = deadline.min(self.began + self.attempts.silence());
        } else if self.ended.is_none() {
            deadline = deadline.min(self.attempts.deadline());
        }
        let look = self.look_ends().filter(|_| self.ended.is_none()).unwrap_or(Time::NEVER);
        if self.ended.is_none() {
            deadline = deadline.min(self.stalls());
        }
        let leaves = self.sending.as_ref().and_then(Sending::leaves).filter(|_| self.ended.is_none());
        let sending = self.sending.as_ref().map_or(Time::NEVER, Sending::deadline);
        deadline.min(sending).min(look).min(leaves.unwrap_or(Time::NEVER))
    }

    fn is_over(&self, now: Time) -> bool {
        // The word of farewell leaves at once; nobody needs to wait for its echo.
        self.ended.as_ref().is_some_and(|(ended, _)| now >= *ended)
    }
}
