//! The sender of a transfer: which bytes go over which stream of which connection, what a detector
//! of fair queuing says of it, and what there is to report in the end.

use std::ops::Range;

use flowstart_congestion::detection::{Decision, PairDetector};
use flowstart_congestion::{Controller, ControllerConfig};
use flowstart_units::{Span, Time};

use crate::connection::Connection;
use crate::data::Source;
use crate::departures::MessageEnds;
use crate::failed::Failed;
use crate::judging::header_bytes;
use crate::learning::{LearningConfig, Lesson, Observed, Rounds};
use crate::ledger::HEADER_BYTES;
use crate::look::{Look, LookConfig};
use crate::message::{Isolated, Paced, Received, Report, Request};
use crate::stack::{Dir, StreamId};

mod directing;
mod feeding;
mod giving_up;
mod lane;
mod report;

use lane::Lane;
use report::{Lateness, Rtts, words};

/// Streams at least that carry a transfer: with these the windows of all streams are that of the
/// connection, of 32 MiB.
const LEAST_STREAMS: u8 = 16;
/// Bytes of a piece outside of pairs.
const PIECE: usize = 32 << 10;

/// A transfer seen from its sender. Connections are numbered 0 and 1 here.
#[derive(Debug)]
pub struct Sending {
    source: Source,
    size: Option<u64>,
    lasts: Option<Span>,
    /// Somebody wants it to end at its time.
    timed: bool,
    next: u64,
    lanes: Vec<Lane>,
    config: ControllerConfig,
    streams: u8,
    paced: Option<Paced>,
    /// When there was last something to be written.
    fed: Time,
    detector: Option<PairDetector>,
    look: Option<Look>,
    /// Version of the protocol that the other end speaks.
    version: u32,
    /// The last packet said that ECN marks reach the other end.
    ecn: bool,
    told: Option<Time>,
    revoked: Option<Time>,
    confirmed: bool,
    crowded: bool,
    began: Option<Time>,
    ended: Option<Time>,
    over: bool,
    /// When a look was over, and whether what had not arrived by then was waited for in vain.
    look_over: Option<Time>,
    given_up: bool,
    rtts: Rtts,
    rounds: Rounds,
    resumed: Option<Observed>,
    late: Lateness,
    real_time: bool,
    isolated: Option<Isolated>,
    /// The path is another one than it was, and connections whose controllers do not know.
    moved: bool,
    stale: [bool; 2],
    totals: [crate::ledger::Counts; 2],
    /// Bytes of each connection that the other end has acknowledged.
    acknowledged: [u64; 2],
    exit: Option<(String, u64)>,
    fault: Option<Failed>,
}

impl Sending {
    /// The transfer that is asked for; a look at the path needs two connections. The look is made
    /// with these constants, and what the transfer teaches is found with those of `learning`.
    #[must_use]
    pub fn new(
        source: Source,
        request: &Request,
        config: ControllerConfig,
        look: LookConfig,
        learning: LearningConfig,
    ) -> Self {
        let (size, lasts) = (request.size, request.nanos.map(Span::from_nanos));
        let (connections, streams) = (usize::from(request.connections), request.streams);
        let detector = (connections > 1 && !request.look)
            .then(|| config.start.detector(config.mss, HEADER_BYTES, config.seed))
            .flatten();
        let look = request.look.then(|| Look::new(look, config.mss, config.seed, request.size));
        Self {
            source,
            size,
            lasts,
            timed: lasts.is_some(),
            next: 0,
            lanes: (0..connections.clamp(1, 2)).map(|_| Lane::default()).collect(),
            config,
            streams: streams.max(if look.is_some() { 1 } else { LEAST_STREAMS }),
            paced: request.paced.filter(|paced| paced.message > 0 && paced.gap > 0),
            fed: Time::ZERO,
            detector,
            look,
            version: request.version,
            ecn: false,
            told: None,
            revoked: None,
            confirmed: false,
            crowded: false,
            began: None,
            ended: None,
            over: false,
            look_over: None,
            given_up: false,
            rtts: Rtts::default(),
            rounds: Rounds::new(learning),
            resumed: None,
            late: Lateness { counts: vec![0; 61 * Lateness::STEPS as usize], total: 0 },
            real_time: false,
            isolated: None,
            moved: false,
            stale: [false; 2],
            totals: Default::default(),
            acknowledged: [0; 2],
            exit: None,
            fault: None,
        }
    }

    /// The start was told what an earlier transfer saw.
    pub fn resume(&mut self, seen: Option<Observed>) {
        self.resumed = seen;
    }

    /// Its time is what was asked for, or only a limit that it should not reach.
    pub(crate) fn timed(&mut self, timed: bool) {
        self.timed = timed;
    }

    /// The other end takes no more bytes than these.
    pub(crate) fn bound(&mut self, most: u64) {
        self.size = Some(self.size.map_or(most, |size| size.min(most)));
    }

    /// From now on it is remembered where messages of a paced application end.
    pub(crate) fn watch(&mut self) {
        if self.paced.is_some() {
            self.lanes.iter_mut().for_each(|lane| lane.ends = Some(MessageEnds::default()));
        }
    }

    /// The messages that end in these bytes of a stream of a connection, if that is remembered.
    pub(crate) fn within(&self, number: usize, stream: u64, bytes: &Range<u64>) -> impl Iterator<Item = u64> {
        let ends = self.lanes.get(number).and_then(|lane| lane.ends.as_ref());
        ends.into_iter().flat_map(move |ends| ends.within(stream, bytes))
    }

    /// It is sent with real-time priority, or is not.
    pub fn driven(&mut self, real_time: bool) {
        self.real_time = real_time;
    }

    /// What it teaches later transfers over this path.
    #[must_use]
    pub fn lesson(&self) -> Lesson {
        if self.look.is_some() || self.moved {
            return Lesson::Nothing;
        }
        self.rounds.lesson(u64::from(self.config.initial_window) * u64::from(self.config.mss))
    }

    /// A connection is there and the transfer is agreed upon: data may be sent over it.
    pub fn begin(&mut self, now: Time, number: usize, connection: &mut Connection) {
        let title = format!("{}+{}", self.config.start.name(), self.config.avoidance.name());
        connection.begin(now, Controller::new(&self.config), &title);
        self.began.get_or_insert(now);
        if let (Some(look), Some(ledger)) = (&mut self.look, connection.ledger()) {
            look.sized(ledger.mtu(), header_bytes(connection.whereabouts().0.ip()));
            if number > 0 {
                // The end of its handshake does not wait until the look has something to send here.
                connection.speak();
            }
        }
        let Some(lane) = self.lanes.get_mut(number) else { return };
        for _ in 0..self.streams {
            if let Some(stream) = connection.open(Dir::Uni) {
                lane.streams.push(stream);
                lane.left.push(Vec::new());
                lane.carried.push(0);
            }
        }
        lane.unfinished = lane.streams.len();
        if lane.streams.is_empty() {
            self.fault = Some(Failed::protocol("the other end allows no streams"));
        }
    }

    /// What keeps it from going on.
    #[must_use]
    pub fn fault(&self) -> Option<&str> {
        self.failed().map(Failed::words)
    }

    /// The same with its kind.
    pub(crate) fn failed(&self) -> Option<&Failed> {
        self.fault.as_ref()
    }

    /// Bytes given out so far.
    #[must_use]
    pub fn offered(&self) -> u64 {
        self.next
    }

    /// Bytes that the other end has acknowledged so far, but for the little that packets vary in.
    #[must_use]
    pub fn arrived(&self) -> u64 {
        if self.is_complete() { self.next } else { self.acknowledged.iter().sum::<u64>().min(self.next) }
    }

    /// Packets that the other end has acknowledged so far.
    pub(crate) fn delivered(&self) -> u64 {
        self.totals.iter().map(|counts| counts.delivered).sum()
    }

    /// When data could be sent for the first time.
    #[must_use]
    pub fn began(&self) -> Option<Time> {
        self.began
    }

    /// What the detector of fair queuing decided last, if there is one and it did.
    #[must_use]
    pub fn decision(&self) -> Option<&Decision> {
        self.detector.as_ref()?.decision()
    }

    /// When [`feed`](Self::feed) must be called at the latest, because the time is over.
    #[must_use]
    pub fn deadline(&self) -> Time {
        let look = match (&self.look, self.gives_up()) {
            (Some(_), Some(at)) => at,
            (Some(look), None) if !self.over => look.deadline(),
            _ => Time::NEVER,
        };
        let Some(began) = self.began.filter(|_| !self.over && !self.is_over(Time::ZERO)) else { return look };
        let end = self.lasts.and_then(|lasts| began.checked_add(lasts)).unwrap_or(Time::NEVER);
        // What is late already waits for the window.
        let message = self.next_message(began).filter(|at| *at > self.fed).unwrap_or(Time::NEVER);
        end.min(look).min(message)
    }

    /// True if no more will be given out.
    fn is_over(&self, now: Time) -> bool {
        self.size.is_some_and(|size| self.next >= size)
            || matches!((self.began, self.lasts), (Some(began), Some(lasts)) if now.since(began) >= lasts)
            || self.lanes.iter().all(|lane| lane.closed)
    }

    /// Does everything that is due at a connection before it is asked for a packet. `exhausted` if
    /// it had nothing to send. True if there is something new to send.
    pub fn feed(&mut self, now: Time, number: usize, connection: &mut Connection, exhausted: bool) -> bool {
        if connection.ledger().is_none() || connection.speaks() || self.began.is_none() || number >= self.lanes.len() {
            return false;
        }
        // Where the other end allows no streams there are none to write to.
        if self.fault.is_some() {
            return false;
        }
        if connection.take_renewal() {
            self.moved(now, number);
        }
        if std::mem::take(&mut self.stale[number]) {
            connection.renew(now, Controller::new(&self.config));
        }
        self.steer(number, connection);
        self.observe(now, number, connection);
        if let Some(look) = &mut self.look {
            look.account(number, connection.carried(), self.totals[number], self.next);
            self.over |= look.is_spent() || look.is_over(now);
        }
        self.over |= self.is_over(now);
        let over = self.over;
        if over && self.look.is_some() {
            self.look_over.get_or_insert(now);
        }
        if self.given_up {
            let lane = &mut self.lanes[number];
            lane.closed = true;
            lane.left.iter_mut().for_each(Vec::clear);
            lane.streams.drain(..).for_each(|stream| connection.abandon(stream));
        }
        let wrote = self.refill(now, over, number, connection, exhausted);
        self.direct(now, over, number, connection);
        if self.told.is_none() && self.detector.as_ref().is_some_and(|detector| detector.decision().is_some()) {
            // It was asked for a packet too late for another one.
            self.steer(number, connection);
        }
        wrote
    }

    fn observe(&mut self, now: Time, number: usize, connection: &Connection) {
        let Some(ledger) = connection.ledger() else { return };
        let counts = ledger.counts();
        if counts.acks > self.totals[number].acks {
            self.rtts.add(ledger.latest_rtt().as_nanos());
            self.acknowledged[number] = self.lanes[number].acknowledged(ledger.sent_for_good(), counts.delivered_bytes);
            if number == 0 {
                self.rounds.look(now, self.over, ledger);
            }
        }
        self.totals[number] = counts;
        if self.exit.is_none()
            && number == 0
            && let Some(exit) = ledger.controller().start_exit()
        {
            let after = exit.now.since(self.began.unwrap_or_default()).as_nanos();
            self.exit = Some((words(exit.reason), after));
        }
    }

    /// A packet of a connection left, so late ([`Connection::departed`]). `ecn` if it says that ECN
    /// is understood.
    pub fn departed(&mut self, number: usize, connection: &mut Connection, ecn: bool, late: Option<Span>) {
        self.ecn = ecn;
        if let Some(late) = late {
            self.late.add(late.as_nanos());
        }
        if let Some(look) = &mut self.look
            && let Some(ledger) = connection.ledger_mut()
            && let Some(sent) = ledger.controller_mut().steering().directed().and_then(|directed| directed.take_sent())
        {
            look.on_sent(number, &sent);
        }
        if let Some(detector) = &mut self.detector
            && let Some(ledger) = connection.ledger_mut()
            && let Some(sent) = ledger.controller_mut().steering().directed().and_then(|directed| directed.take_sent())
        {
            detector.on_sent(number, &sent);
        }
    }

    /// All data of a stream of this connection was acknowledged.
    pub fn finished(&mut self, now: Time, number: usize, stream: StreamId, connection: &Connection) {
        // It may not be fed any more, and its last ACK may say that a jump failed.
        if let Some(ledger) = connection.ledger().filter(|_| number == 0) {
            self.rounds.look(now, self.over, ledger);
        }
        if let Some(lane) = self.lanes.get_mut(number)
            && (lane.forget(stream) || lane.streams.contains(&stream))
        {
            lane.unfinished = lane.unfinished.saturating_sub(1);
        }
        if self.lanes.iter().all(|lane| lane.closed && lane.unfinished == 0) {
            self.ended.get_or_insert(now);
        }
    }

    /// True when all was acknowledged.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.ended.is_some()
    }

    /// What there is to report now: of bytes that were given out.
    #[must_use]
    pub fn report(&self, now: Time) -> Report {
        let total = |count: fn(&crate::ledger::Counts) -> u64| self.totals.iter().map(count).sum();
        let began = self.began.unwrap_or_default();
        Report {
            bytes: if self.given_up { 0 } else { self.next },
            nanos: self.ended.unwrap_or(now).since(began).as_nanos(),
            packets: total(|counts| counts.sent),
            lost: total(|counts| counts.lost),
            marked: total(|counts| counts.marked),
            acks: total(|counts| counts.acks),
            min_rtt: self.rtts.least,
            mean_rtt: self.rtts.sum / self.rtts.count.max(1),
            max_rtt: self.rtts.most,
            jitter: self.rtts.moved / self.rtts.count.saturating_sub(1).max(1),
            exit: self.exit.as_ref().map(|(reason, _)| reason.clone()),
            exit_after: self.exit.as_ref().map(|(_, after)| *after),
            late: [self.late.percentile(50), self.late.percentile(99)],
            real_time: self.real_time,
            queue: self.isolated.clone(),
            resumed: self.resumed,
            look: self.look.as_ref().map(|look| look.findings(self.ecn).in_version(self.version)),
        }
    }

    /// What the other end has by this report, of when all was acknowledged: a round trip later than
    /// it arrived, the first packet as the last. That one has no more than a full packet.
    pub(crate) fn acknowledged(&self, report: &Report) -> Received {
        let first = u64::from(self.config.mss).min(report.bytes);
        Received { bytes: report.bytes, nanos: report.nanos.saturating_sub(report.min_rtt), intact: true, first }
    }

    /// The smallest RTT; zero before the first.
    #[must_use]
    pub fn min_rtt(&self) -> Span {
        Span::from_nanos(self.rtts.least)
    }

    /// The latest RTT, for a live line; zero before the first.
    #[must_use]
    pub fn last_rtt(&self) -> Span {
        Span::from_nanos(self.rtts.last)
    }
}
