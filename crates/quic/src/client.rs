//! The client's side of a transfer: one or two connections, each over a socket of its own, so that
//! they are two flows for whatever stands between.

use std::net::SocketAddr;

use attempts::Attempts;
pub(crate) use attempts::{is_to, source};
pub(crate) use failures::PASSES;
use flowstart_congestion::ControllerConfig;
use flowstart_units::{Span, Time};

use crate::clock::Clock;
use crate::connection::{Connection, Happening};
use crate::data::{Receiving, Sink, Source};
use crate::departures::MessageDeparture;
use crate::endpoint::{Endpoint, Limits};
use crate::failed::{Failed, FailedKind};
use crate::judging::header_bytes;
use crate::learning::{Lesson, Observed};
use crate::ledger::Ledger;
use crate::message::{Decoder, Direction, Message, Paced, Readings, Received, Report, Request};
use crate::sending::Sending;
use crate::stack::{Dir, StreamId};
use crate::tap::Tap;
use crate::tls::Fingerprint;
use crate::udp::plain;

mod attempts;
mod ending;
mod failures;
mod node;
#[cfg(test)]
mod tests;

/// A look in one direction is over after so long, with its handshakes: at 40 kbit/s with a round
/// trip of 1.8 s it takes less than 20 s.
const LOOK_MOST: Span = Span::from_secs(40);

/// A transfer is over if nothing new is heard or given out for so long, however alive the server's
/// stack is: six times what a silent connection takes to be over. (own choice)
const STALLED: Span = Span::from_secs(60);

/// ... or for so long, if packets of data are on their way: before a slow link much of it may wait.
/// (own choice: more than 10 MB take at 128 kbit/s)
const DRAINING: Span = Span::from_secs(700);
/// Who only receives knows of the path what was acknowledged so recently. (own choice)
const RTT_LASTS: Span = Span::from_secs(2);
/// Packets on their way that need not be data: each asks whether the server is there.
const ASKING: u32 = 4;

/// Data for a time is over this long after twice that time: what waits in queues has arrived by
/// then, for a start that doubles has no more waiting than it has delivered. (own choice)
const LATE: Span = Span::from_secs(120);

/// How a transfer went.
#[derive(Clone, Debug, PartialEq)]
pub struct Transferred {
    /// From the sender.
    pub report: Report,
    /// From the receiver.
    pub received: Received,
    /// The server's certificate.
    pub fingerprint: Option<Fingerprint>,
    /// RTT of the handshake.
    pub handshake: Span,
    /// What this end learnt of the path, if it sent.
    pub lesson: Lesson,
    /// Bytes that this end has sent and received for it, with headers of IP and UDP.
    pub carried: u64,
}

/// What one end knows of a transfer that goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct SoFar {
    /// From the sender, if this is it: of the bytes that were acknowledged.
    pub report: Option<Report>,
    /// From the receiver, if this is it: of the bytes that have arrived without a gap.
    pub received: Option<Received>,
    /// RTT of the handshake.
    pub handshake: Span,
    /// The server's certificate.
    pub fingerprint: Option<Fingerprint>,
}

/// One connection with its control stream.
#[derive(Debug, Default)]
struct Line {
    control: Option<StreamId>,
    decoder: Decoder,
    inbound: Vec<StreamId>,
    begun: bool,
}

/// A transfer in progress.
#[derive(Debug)]
pub struct Client {
    endpoints: Vec<Endpoint>,
    lines: Vec<Line>,
    request: Request,
    to: SocketAddr,
    began: Time,
    /// Something for a connection of this transfer has come back.
    heard: bool,
    /// ... or something that was for none.
    senseless: bool,
    /// When the system took in the datagram that is handled, or was last.
    arrived: Time,
    /// When there was something new last, and what there was then.
    news: (Time, u64),
    /// Packets of data are on their way.
    draining: bool,
    /// Messages that were read.
    messages: u64,
    attempts: Attempts,
    accepted: bool,
    sending: Option<Sending>,
    receiving: Option<Receiving>,
    report: Option<Report>,
    received: Option<Received>,
    readings: Vec<(Time, Readings)>,
    /// One of each endpoint, if departures are watched, and what leaves next.
    taps: Vec<Tap>,
    sample: Option<u128>,
    departures: Vec<MessageDeparture>,
    /// Messages whose reading was told.
    read: u64,
    fingerprint: Option<Fingerprint>,
    handshake: Span,
    /// What the stack measured of what this end sends, smoothed, and when that changed last.
    stack_rtt: (Span, Time),
    /// Bytes sent and received, with headers.
    carried: u64,
    ended: Option<(Time, Result<(), Failed>)>,
}

impl Client {
    /// A client that asks the server at `to`. `sender` is the controller of what it sends itself.
    ///
    /// # Errors
    /// If the address cannot be connected to, or the limits or what is asked for make no sense.
    pub fn new(
        clock: Clock,
        now: Time,
        limits: &Limits,
        to: SocketAddr,
        pinned: Option<Fingerprint>,
        request: Request,
        ends: (ControllerConfig, Sink),
    ) -> Result<Self, Failed> {
        let invalid = |why: &dyn std::fmt::Display| Failed::new(FailedKind::Invalid, why.to_string());
        limits.learning.validate().map_err(|why| invalid(&why))?;
        request.paced.map_or(Ok(()), Paced::validate).map_err(|why| invalid(&why))?;
        let to = plain(to);
        let mut attempts = Attempts::new(clock, limits, to, pinned);
        let (mut endpoints, mut taps) = (Vec::new(), Vec::new());
        for _ in 0..request.connections.clamp(1, 2) {
            let (endpoint, tap) = attempts.first(now)?;
            endpoints.push(endpoint);
            taps.extend(tap);
        }
        let (config, sink) = ends;
        let (mut sending, mut receiving) = (None, None);
        match request.direction {
            Direction::Up => {
                let sending =
                    sending.insert(Sending::new(Source::Test, &request, config, limits.look, limits.learning));
                if limits.departures {
                    sending.watch();
                }
            }
            Direction::Down => {
                let receiving = receiving.insert(Receiving::new(sink, u64::MAX));
                if let Some(size) = request.size {
                    receiving.bound(size);
                }
            }
        }
        Ok(Self {
            lines: endpoints.iter().map(|_| Line::default()).collect(),
            endpoints,
            request,
            to,
            began: now,
            heard: false,
            senseless: false,
            arrived: Time::ZERO,
            news: (now, 0),
            draining: false,
            messages: 0,
            attempts,
            accepted: false,
            sending,
            receiving,
            report: None,
            received: None,
            readings: Vec::new(),
            taps,
            sample: None,
            departures: Vec::new(),
            read: 0,
            fingerprint: None,
            handshake: Span::ZERO,
            stack_rtt: (Span::ZERO, now),
            carried: 0,
            ended: None,
        })
    }

    /// Bytes that went from application to application so far, as far as this end knows.
    #[must_use]
    pub fn progress(&self) -> u64 {
        match (&self.receiving, &self.sending) {
            (Some(receiving), _) => receiving.delivered(),
            (None, Some(sending)) => sending.arrived(),
            (None, None) => 0,
        }
    }

    /// What this end knows of the transfer by now.
    #[must_use]
    pub fn so_far(&self, now: Time) -> SoFar {
        let received = self.receiving.as_ref().map(Receiving::received);
        let sending = self.sending.as_ref().filter(|sending| sending.began().is_some());
        let report = sending.map(|it| Report { bytes: it.arrived(), ..it.report(now) });
        SoFar { report, received, handshake: self.handshake, fingerprint: self.fingerprint }
    }

    /// The start of what this end sends was told what an earlier transfer saw.
    pub fn resume(&mut self, seen: Option<Observed>) {
        if let Some(sending) = &mut self.sending {
            sending.resume(seen);
        }
    }

    /// What it sends; `None` if the server sends.
    #[must_use]
    pub fn sending(&self) -> Option<&Sending> {
        self.sending.as_ref()
    }

    /// What the receiver told of its reading since the last time, if it was
    /// [asked](crate::message::Paced::tell), and when that was heard.
    pub fn take_readings(&mut self) -> Vec<(Time, Readings)> {
        std::mem::take(&mut self.readings)
    }

    /// The datagrams with which messages left since the last time, oldest first; none unless
    /// [`Limits::departures`] asks for them.
    pub fn take_departures(&mut self) -> Vec<MessageDeparture> {
        std::mem::take(&mut self.departures)
    }

    /// Takes in what the receiver tells, which may be anything.
    fn hear(&mut self, now: Time, readings: Readings) -> Result<(), Failed> {
        let paced = self.request.paced.filter(|paced| paced.tell);
        let written = self.sending.as_ref().map_or(0, Sending::offered) / paced.map_or(u64::MAX, |paced| paced.message);
        let Readings { first, told, ages, waits } = &readings;
        let right = *first == self.read
            && first.checked_add(ages.len() as u64).is_some_and(|end| end <= written)
            && ages.iter().all(|age| age <= told)
            && ages.is_sorted_by(|one, next| one >= next)
            && (waits.is_empty() || waits.len() == ages.len())
            && ages.iter().zip(waits).all(|(age, wait)| age.checked_add(*wait).is_some_and(|age| age <= *told));
        if !right {
            return Err(Failed::protocol(format!("{} tells times of reading that make no sense", self.to)));
        }
        self.read += ages.len() as u64;
        self.readings.push((now, readings));
        Ok(())
    }

    /// The packets of a connection (0 or 1) and their controller, once data may be sent over it.
    pub fn ledger(&mut self, connection: usize) -> Option<&Ledger> {
        self.endpoints.get_mut(connection)?.connection(0)?.ledger()
    }

    /// The latest RTT that this end measured of its data. Where it only receives it is that of what
    /// it says now and then of what it has read, smoothed. `None` if nothing was acknowledged yet,
    /// or for long.
    #[must_use]
    pub fn last_rtt(&self, now: Time) -> Option<Span> {
        let (rtt, changed) = self.stack_rtt;
        let received = || if now.since(changed) < RTT_LASTS { rtt } else { Span::ZERO };
        Some(self.sending.as_ref().map_or_else(received, Sending::last_rtt)).filter(|rtt| !rtt.is_zero())
    }

    fn carries(&mut self, bytes: usize) {
        self.carried += bytes as u64 + u64::from(header_bytes(self.to.ip()));
    }

    /// Ends it from this side.
    pub fn stop(&mut self, now: Time, why: &str) {
        self.end(now, Err(Failed::new(FailedKind::Stopped, why)));
    }

    /// What happened at the connections.
    fn listen(&mut self, now: Time) {
        for number in 0..self.endpoints.len() {
            self.endpoints[number].exchange(now);
            loop {
                let Some(happening) = self.endpoints[number].connection(0).and_then(Connection::poll) else { break };
                match happening {
                    Happening::Ready => self.ready(number),
                    Happening::Readable => self.read(now, number),
                    Happening::Finished(stream) => {
                        if let (Some(sending), Some(connection)) =
                            (&mut self.sending, self.endpoints[number].connection(0))
                        {
                            sending.finished(now, number, stream, connection);
                        }
                    }
                    Happening::Lost(reason) => {
                        let failed = self.lost(&reason);
                        self.end(now, Err(failed));
                    }
                }
            }
        }
        self.begin(now);
        self.note_news(now);
        self.conclude(now);
    }

    /// The handshake is complete: says what is wanted.
    fn ready(&mut self, number: usize) {
        let Some(connection) = self.endpoints[number].connection(0) else { return };
        if number == 0 {
            self.fingerprint = connection.peer_certificate().map(|bytes| Fingerprint::of(&bytes));
            self.handshake = connection.handshake_rtt();
        }
        let Some(stream) = connection.open(Dir::Bi) else { return };
        self.lines[number].control = Some(stream);
        let message = match number {
            0 => Message::Request(self.request.clone()),
            _ => Message::Join(self.request.session),
        };
        connection.write(stream, &message.encode());
    }

    fn read(&mut self, now: Time, number: usize) {
        let Some(connection) = self.endpoints[number].connection(0) else { return };
        let line = &mut self.lines[number];
        if let Some(control) = line.control {
            connection.read(control, &mut |bytes| line.decoder.push(&bytes));
        }
        while let Some(stream) = connection.accept(Dir::Uni) {
            line.inbound.push(stream);
        }
        if let Some(receiving) = &mut self.receiving {
            let at = self.arrived;
            line.inbound.retain(|stream| receiving.goes_on(at, number, *stream, connection, &mut |_| {}));
        }
        // What it cannot read it would find again and again.
        while self.ended.is_none() {
            match self.lines[number].decoder.message() {
                Ok(None) => break,
                Ok(Some(message)) => {
                    self.messages += 1;
                    if let Err(failed) = self.message(now, message) {
                        self.end(now, Err(failed));
                    }
                }
                Err(error) => self.end(now, Err(error.into())),
            }
        }
    }

    /// What the server says has to have a place in this transfer: who sends is not told of sending,
    /// and who receives not of what it has.
    fn message(&mut self, now: Time, message: Message) -> Result<(), Failed> {
        match message {
            Message::Accepted(size) => {
                self.accepted = true;
                if let (Some(sending), Some(most)) = (&mut self.sending, size) {
                    sending.bound(most);
                }
                self.request.size = self.request.size.or(size);
                if let (Some(receiving), Some(size)) = (&mut self.receiving, self.request.size) {
                    receiving.bound(size);
                }
                Ok(())
            }
            Message::Refused(why) => Err(Failed::new(FailedKind::Refused, format!("{} refuses: {why}", self.to))),
            Message::Report(report) if self.receiving.is_some() => {
                let senseless = || Failed::protocol(format!("{} reports what cannot be", self.to));
                self.report = Some(report.possible().ok_or_else(senseless)?);
                Ok(())
            }
            Message::Received(received) if self.sending.is_some() => {
                self.received = Some(received);
                Ok(())
            }
            Message::Readings(readings) => self.hear(now, readings),
            Message::Request(_) | Message::Join(_) | Message::Report(_) | Message::Received(_) => {
                Err(Failed::protocol(format!("{} does not speak flowstart's protocol", self.to)))
            }
        }
    }

    /// Once all connections are there and the server takes part, data may flow.
    fn begin(&mut self, now: Time) {
        let Some(sending) = &mut self.sending else { return };
        if !self.accepted || self.ended.is_some() {
            return;
        }
        for (number, (endpoint, line)) in self.endpoints.iter_mut().zip(&mut self.lines).enumerate() {
            if let Some(connection) = endpoint.connection(0)
                && connection.is_ready()
                && !std::mem::replace(&mut line.begun, true)
            {
                sending.begin(now, number, connection);
            }
        }
    }

    /// Looks whether there is something new: data that arrived or was given out, or a message.
    fn note_news(&mut self, now: Time) {
        let data = self.receiving.as_ref().map_or(0, Receiving::taken);
        let news = data + self.sending.as_ref().map_or(0, Sending::offered) + self.messages;
        if news != self.news.1 {
            self.news = (now, news);
        }
        if let Some(connection) = self.endpoints[0].connection(0) {
            let rtt = connection.handshake_rtt();
            if !self.handshake.is_zero() && rtt != self.stack_rtt.0 {
                self.stack_rtt = (rtt, now);
            }
        }
        let mut connections = self.endpoints.iter_mut().filter_map(|endpoint| endpoint.connection(0)?.ledger());
        self.draining = connections.any(|ledger| ledger.in_flight() > ASKING);
    }
}
