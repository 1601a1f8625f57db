//! One connection of the stack, driven so that every packet leaves at a time of its own.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use flowstart_congestion::Controller;
use flowstart_units::{Span, Time};

use crate::clock::Clock;
use crate::gate::{Gate, Gates, Told};
use crate::ledger::Ledger;
use crate::moving::{Credit, Unproven};
use crate::qlog::{Log, Qlog};
use crate::stack::{self, ConnectionError, Dir, Event, ForConnection, ForEndpoint, StreamId, place};
use crate::waits;

mod departures;
mod moves;

/// Longest time back that the stack is told for an ACK that takes no time.
const NOT_QUICK: Span = Span::from_secs(1);

/// Why nothing leaves now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// There is nothing to send: more data may be written. If there is none,
    /// [`ran_dry`](Connection::ran_dry) is to follow.
    Exhausted,
    /// The controller says when.
    Until(Time),
    /// The controller waits for ACKs.
    Held,
}

/// What happened to a connection, for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// Streams may be opened.
    Ready,
    /// A stream has data, or a new one may.
    Readable,
    /// A stream's data was all acknowledged.
    Finished(StreamId),
    /// The connection is over.
    Lost(ConnectionError),
}

/// A connection with its gate, and once data is to be sent, its ledger.
#[derive(Debug)]
pub struct Connection {
    inner: Box<dyn stack::Connection>,
    /// The endpoint's number for it.
    number: usize,
    clock: Clock,
    gate: Gate,
    ledger: Option<Ledger>,
    /// What it has to say before data leaves without being counted or held back.
    speaks: bool,
    /// Where its log goes, and whether it is a server's.
    log: Option<(Qlog, bool)>,
    notes: Vec<Told>,
    wake: Option<Time>,
    /// When the next packet was to leave, and the one that was polled last, as long as nothing but
    /// their time held them back.
    planned: [Option<Time>; 2],
    /// The stack had something to send behind the shut gate when it was last asked.
    waiting: bool,
    ready: bool,
    /// Whoever drives it knows that it is over.
    told: bool,
    /// When the stack was last listened to: what congestion control hears never goes back in time.
    heard: Time,
    quickest: Quickest,
    /// It asks whether the other end is there, if that was silent for so long.
    asks: Option<Span>,
    /// When something of it arrived, or it was asked, last.
    quiet: Time,
    /// A packet that asks, or answers a challenge, is due.
    asking: bool,
    /// How often the other end has challenged this one.
    challenges: u64,
    /// It is a server's, whose client may move.
    server: bool,
    /// Where the other end is.
    remote: SocketAddr,
    /// ... if it has not shown that it is there.
    unproven: Option<Unproven>,
    /// ... when the stack was to find it there by a [detour](Self::detour), if it does not before.
    detour: Option<Time>,
    credit: Credit,
    /// What is known of the path is of another one.
    renewal: bool,
    /// Bytes that it has sent and received, with headers of IP and UDP.
    carried: u64,
}

/// Whether the stack has seen an RTT of nothing (see `waits`).
#[derive(Clone, Copy, Debug)]
enum Quickest {
    /// There was no data to send.
    Before,
    /// All data is sent after this, and nothing of it was acknowledged.
    Since(Time),
    Seen,
}

impl Connection {
    pub(crate) fn new(
        inner: Box<dyn stack::Connection>,
        number: usize,
        clock: Clock,
        gate: Gate,
        server: bool,
        log: Option<(Qlog, bool)>,
    ) -> Self {
        gate.set(true);
        Self {
            server,
            remote: inner.remote().unwrap_or(SocketAddr::from(([0; 4], 0))),
            unproven: None,
            detour: None,
            credit: Credit::default(),
            renewal: false,
            carried: 0,
            inner,
            number,
            clock,
            gate,
            ledger: None,
            speaks: false,
            log,
            notes: Vec::new(),
            wake: None,
            planned: [None; 2],
            waiting: false,
            ready: false,
            told: false,
            heard: Time::ZERO,
            quickest: Quickest::Before,
            asks: None,
            quiet: Time::ZERO,
            asking: false,
            challenges: 0,
        }
    }

    /// From now on it asks whether the other end is there when that was silent for so long, or for
    /// two round trips if that is longer.
    pub(crate) fn ask_after(&mut self, silence: Span) {
        self.asks = Some(silence);
    }

    /// When it asks, if nothing arrives before.
    fn asks_at(&self) -> Time {
        let Some(asks) = self.asks.filter(|_| self.ready && !self.told && !self.inner.is_closed()) else {
            return Time::NEVER;
        };
        self.quiet + asks.max(self.handshake_rtt() + self.handshake_rtt())
    }

    /// Hands all further packets to a controller. To be called when the handshake is complete. The
    /// log, if there is one, has this title.
    pub fn begin(&mut self, now: Time, controller: Controller, title: &str) {
        self.gate.take(&mut self.notes);
        self.notes.clear();
        let mtu = u32::from(self.inner.mtu());
        let mut ledger = Ledger::new(controller, mtu, self.handshake_rtt());
        if let Some((qlog, server)) = self.log.take() {
            ledger.keep(now, Log::create(qlog, now, self.number, server, title));
        }
        self.ledger = Some(ledger);
        self.gate.newest();
        self.quickest = Quickest::Since(now);
    }

    /// The stack's RTT, which is the handshake's as long as nothing else was sent.
    #[must_use]
    pub fn handshake_rtt(&self) -> Span {
        let rtt = self.smoothed();
        Span::from_nanos(u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The packets and their controller, once it was [begun](Self::begin).
    #[must_use]
    pub fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }

    /// The same, for detectors.
    pub fn ledger_mut(&mut self) -> Option<&mut Ledger> {
        self.ledger.as_mut()
    }

    /// What it has to say now leaves before any data, whatever the controller says.
    pub(crate) fn speak(&mut self) {
        self.speaks = true;
    }

    /// True as long as it has something to say before any data.
    pub(crate) fn speaks(&self) -> bool {
        self.speaks
    }

    /// True once the handshake is complete on both sides.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// True as long as the handshake goes on.
    #[must_use]
    pub fn is_in_handshake(&self) -> bool {
        !self.ready && !self.inner.is_closed()
    }

    /// True once either end has closed it.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }

    /// True when nothing more will come of it.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.inner.is_drained()
    }

    /// True once [`poll`](Self::poll) has said that it is over, or it was [closed](Self::close).
    #[must_use]
    pub fn is_told(&self) -> bool {
        self.told
    }

    /// The fingerprint of the certificate that the other end showed, if it did.
    #[must_use]
    pub fn peer_certificate(&self) -> Option<Vec<u8>> {
        let identity = self.inner.peer_identity()?;
        let chain = identity.downcast::<Vec<rustls::pki_types::CertificateDer<'static>>>().ok()?;
        chain.first().map(|certificate| certificate.to_vec())
    }

    /// What a datagram of so many bytes says counts from when it arrived, so that an RTT has no
    /// part of the time that it waited to be read, nor of the time that the other end waited before
    /// it sent it. `counted` is the time that the stack was told.
    pub(crate) fn handle_datagram(
        &mut self,
        (arrived, counted): (Time, Time),
        event: ForConnection,
        bytes: usize,
        gates: &Gates,
    ) {
        let (made, _) = gates.last();
        self.carries(bytes);
        let before = self.smoothed();
        self.quiet = self.quiet.max(arrived);
        self.inner.handle_event(event);
        if self.ledger.is_some() {
            let challenges = self.inner.challenges();
            // A full window does not hold the answer back: what would empty it waits for that.
            self.asking |= challenges > self.challenges;
            self.challenges = challenges;
        }
        let mut waited = Span::ZERO;
        if let Some(newest) = self.gate.newest().filter(|_| self.ledger.is_some()) {
            let rtt = self.clock.instant(counted).saturating_duration_since(newest.sent);
            if rtt.is_zero() {
                self.quickest = Quickest::Seen;
            } else if newest.least.is_zero() {
                waited = waits::waited(rtt, before, self.smoothed());
            }
        }
        let heard = arrived.max(self.heard);
        self.listen_after(heard, waited);
        self.look_where(heard, gates, made);
        self.credit.received(bytes);
        if let Some(unproven) = &mut self.unproven {
            unproven.received(bytes);
        }
    }

    /// What the endpoint says to its connection.
    pub(crate) fn handle_event(&mut self, now: Time, event: ForConnection) {
        self.inner.handle_event(event);
        self.listen(now);
    }

    /// The time that the stack is to be told for a datagram of this other end that arrived now, if
    /// another than that.
    pub(crate) fn counts(&self, now: Time, from: SocketAddr) -> Option<Time> {
        let Quickest::Since(began) = self.quickest else { return None };
        let ours = self.inner.remote() == Some(place(from));
        // Not where that would be long ago for the stack's other timers.
        (ours && now.since(began) < NOT_QUICK).then_some(began)
    }

    fn smoothed(&self) -> Duration {
        self.inner.rtt()
    }

    pub(crate) fn poll_endpoint_events(&mut self) -> Option<ForEndpoint> {
        self.inner.poll_endpoint_events()
    }

    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// A time that [`deadline`](Self::deadline) named has come.
    pub(crate) fn handle_timeout(&mut self, now: Time, gates: &Gates) {
        if self.inner.poll_timeout().is_some_and(|at| self.clock.time(at) <= now) {
            let (made, _) = gates.last();
            self.inner.handle_timeout(self.clock.instant(now));
            self.listen(now);
            // A client that does not answer where it seems to be is where it was before.
            self.look_where(now, gates, made);
        }
        if self.asks_at() <= now {
            // One packet that the window does not hold back: the stack's own probes after a timeout
            // are further and further apart.
            self.inner.ping();
            (self.quiet, self.asking) = (now, true);
        }
    }

    /// Takes in what the stack said about packets.
    fn listen(&mut self, now: Time) {
        self.listen_after(now, Span::ZERO);
    }

    /// The same, where the other end waited before it acknowledged.
    fn listen_after(&mut self, now: Time, waited: Span) {
        self.heard = now;
        self.waiting = false;
        self.gate.take(&mut self.notes);
        match &mut self.ledger {
            Some(ledger) => {
                for told in self.notes.drain(..) {
                    ledger.note(now, told);
                }
                ledger.settle(now, waited);
            }
            None => self.notes.clear(),
        }
    }

    /// A packet with nothing that anybody waits for is to leave when the controller lets it, and
    /// will be acknowledged.
    pub(crate) fn ping(&mut self) {
        self.waiting = false;
        self.inner.ping();
    }

    /// What happened, oldest first.
    pub fn poll(&mut self) -> Option<Happening> {
        while let Some(event) = self.inner.poll() {
            return Some(match event {
                Event::Connected => Happening::Ready,
                Event::Confirmed => {
                    self.ready = true;
                    continue;
                }
                Event::Lost(reason) => {
                    self.told = true;
                    Happening::Lost(reason)
                }
                Event::Readable => Happening::Readable,
                Event::Finished(stream) => Happening::Finished(stream),
            });
        }
        None
    }

    /// Opens a stream; `None` if the other end allows no more now.
    pub fn open(&mut self, dir: Dir) -> Option<StreamId> {
        let stream = self.inner.open(dir)?;
        self.prefer(stream);
        Some(stream)
    }

    /// A stream that the other end opened, if there is a new one.
    pub fn accept(&mut self, dir: Dir) -> Option<StreamId> {
        let stream = self.inner.accept(dir)?;
        self.prefer(stream);
        Some(stream)
    }

    /// What is said does not wait for data, which goes one way only, but for the rest of the piece
    /// that is on its way: the stack goes on with a stream until it has all of it.
    fn prefer(&mut self, stream: StreamId) {
        if stream.dir() == Dir::Bi {
            self.inner.prefer(stream);
        }
    }

    /// Writes to a stream; how many bytes it took (0 if it takes none now, or no more).
    pub fn write(&mut self, stream: StreamId, data: &[u8]) -> usize {
        self.waiting = false;
        self.speaks &= stream.dir() == Dir::Bi;
        self.inner.write(stream, data)
    }

    /// So many bytes may arrive from now on without having been read.
    pub(crate) fn widen(&mut self, window: u32) {
        self.waiting = false;
        self.inner.widen(window);
    }

    /// Ends a stream.
    pub fn finish(&mut self, stream: StreamId) {
        self.waiting = false;
        self.inner.finish(stream);
    }

    /// Ends a stream, and what of it has not arrived is not sent again.
    pub fn abandon(&mut self, stream: StreamId) {
        self.waiting = false;
        self.inner.abandon(stream);
    }

    /// Reads what has arrived of a stream, in order. True if the stream is over.
    pub fn read(&mut self, stream: StreamId, take: &mut dyn FnMut(Bytes)) -> bool {
        let (over, says) = self.inner.read(stream, take);
        if says {
            self.waiting = false;
        }
        over
    }

    /// Ends the connection with a word for the other end.
    pub fn close(&mut self, now: Time, code: u32, reason: &str) {
        self.waiting = false;
        self.told = true;
        let reason = Bytes::copy_from_slice(reason.as_bytes());
        self.inner.close(self.clock.instant(now), code, reason);
    }
}

#[cfg(test)]
mod tests;
