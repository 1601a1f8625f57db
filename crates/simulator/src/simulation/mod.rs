//! The event loop: whose turn is next, and who takes it.

mod demand;
mod packets;
mod pair;
mod timers;

use flowstart_congestion::Controller;
use flowstart_network::{Discipline, LateArrivals, Packet, Queue};
use flowstart_units::{Span, Time};

use crate::flow::{Flow, MakeController};
use crate::lane::Target;
use crate::ledger::Ledger;
use crate::network::Network;
use crate::route::Routes;
use crate::session::Session;
use crate::slots::{Slot, Slots};
use crate::tournament::Tournament;
use crate::ways::Ways;
use crate::{ConfigError, FlowId, LinkId, Observer, Outcome, SimulationConfig, Stop};
use demand::Arrivals;
pub(crate) use packets::leave;
use pair::Pair;

/// How far a part of a simulation went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// To the end.
    Over,
    /// To the time asked for.
    Reached,
    /// Not so far: as many events happened as were allowed.
    Spent,
    /// Not so far, and no further: a flow would have sent more packets at one moment than it may.
    Flooded,
}

/// A simulation in progress, watched by an [`Observer`].
pub struct Simulation<O> {
    pub(crate) now: Time,
    pub(crate) network: Network,
    ways: Ways,
    pub(crate) ledger: Ledger,
    /// Running and waiting flows; free slots are reused.
    pub(crate) flows: Vec<Option<Flow>>,
    /// Flows of two connections.
    pub(crate) pairs: Vec<Pair>,
    free_slots: Vec<u32>,
    /// Flows so far that have no number of their own to draw by.
    unnumbered: u64,
    /// When each flow wants to act of itself, at the latest known time or earlier.
    timers: Tournament,
    arrivals: Vec<Arrivals>,
    sessions: Vec<Session>,
    /// Sized transfers that are not complete, and arrival processes and sessions that are not over.
    outstanding: u64,
    stop: Stop,
    pub(crate) seed: u64,
    pub(crate) run: u64,
    events: u64,
    pub(crate) data_packets: u64,
    /// Packets that a flow may send at one moment.
    most_at_once: u64,
    /// A flow would have sent more.
    flooded: bool,
    make_controller: MakeController,
    /// Flows whose senders' timers are late.
    late_timers: Vec<(FlowId, LateArrivals)>,
    pub(crate) observer: O,
}

impl<O: std::fmt::Debug> std::fmt::Debug for Simulation<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulation")
            .field("now", &self.now)
            .field("events", &self.events)
            .field("observer", &self.observer)
            .finish_non_exhaustive()
    }
}

impl<O: Observer> Simulation<O> {
    /// Builds a simulation.
    ///
    /// # Errors
    /// If the configuration names links that do not exist or holds values that cannot be simulated.
    pub fn new(config: &SimulationConfig, observer: O) -> Result<Self, ConfigError> {
        Self::with_controllers(config, observer, Box::new(|_, config| Controller::new(config)))
    }

    /// Builds a simulation in which `make` builds the controllers, so that flows can run algorithms
    /// from outside this project ([`Controller::join`] with `External` parts). The seed in the
    /// configuration it gets is the flow's own.
    ///
    /// # Errors
    /// As [`Simulation::new`].
    pub fn with_controllers(config: &SimulationConfig, observer: O, make: MakeController) -> Result<Self, ConfigError> {
        config.validate()?;
        let delays: Vec<Span> = config.links.iter().map(|link| link.delay).collect();
        let mut routes = Routes::new(config.links.len());
        let flow_routes: Vec<u32> = config.flows.iter().map(|flow| routes.add(flow, &delays)).collect();
        let arrival_routes: Vec<u32> = config.arrivals.iter().map(|a| routes.add(&a.flow, &delays)).collect();
        let session_routes: Vec<u32> = config.sessions.iter().map(|s| routes.add(&s.flow, &delays)).collect();
        let ways = Ways::new(config, &mut routes, &delays);
        let slots = Slots::new(config.links.len(), config.arrivals.len(), config.sessions.len());
        let network = Network::new(config, routes, slots);
        let mut simulation = Self {
            now: Time::ZERO,
            network,
            ways,
            ledger: Ledger::default(),
            flows: Vec::new(),
            pairs: Vec::new(),
            free_slots: Vec::new(),
            unnumbered: 0,
            timers: Tournament::new(config.flows.len()),
            arrivals: Vec::new(),
            sessions: Vec::new(),
            outstanding: 0,
            stop: config.stop,
            seed: config.seed,
            run: config.run,
            events: 0,
            data_packets: 0,
            most_at_once: u64::MAX,
            flooded: false,
            make_controller: make,
            late_timers: Vec::new(),
            observer,
        };
        let places: Vec<(usize, u64)> = (config.flows.iter().zip(&flow_routes))
            .map(|(flow, route)| simulation.add_connection(flow, flow.start, *route, None))
            .collect();
        // After all of them, so that the number of a flow is its place in the configuration.
        for ((flow, route), place) in config.flows.iter().zip(flow_routes).zip(places) {
            simulation.add_companion(flow, route, place);
        }
        for (index, (arrival, route)) in config.arrivals.iter().zip(arrival_routes).enumerate() {
            simulation.add_arrivals(index, arrival, route);
        }
        for (session, route) in config.sessions.iter().zip(session_routes) {
            simulation.add_session(session, route);
        }
        Ok(simulation)
    }

    /// Puts a discipline from outside this project in front of a link, in place of the configured
    /// one.
    ///
    /// # Errors
    /// If there is no such link, or if packets have already arrived at it.
    pub fn with_queue(
        mut self,
        link: LinkId,
        discipline: Box<dyn Discipline<Packet> + Send>,
    ) -> Result<Self, ConfigError> {
        self.network.set_queue(link, Queue::external(discipline))?;
        Ok(self)
    }

    /// The timers of a flow's host are late: what it would do by itself at a time it does when that
    /// is there. What it is sent does not wait for them.
    #[must_use]
    pub fn with_late_timers(mut self, flow: FlowId, late: LateArrivals) -> Self {
        if !late.is_empty() {
            self.late_timers.push((flow, late));
        }
        self
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// How many events happened so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Packets that are stored in queues or on their way, for checks of conservation.
    #[must_use]
    pub fn packets_in_network(&self) -> u64 {
        self.network.stored()
    }

    /// What has happened so far watched by the observer.
    #[must_use]
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// Runs to the end.
    #[must_use]
    pub fn run(mut self) -> (Outcome, O) {
        self.run_until(Time::NEVER);
        self.finish()
    }

    /// The same, unless it is given up, which is asked for now and then: several times a second,
    /// and at the latest after a thousandth of the time that is simulated.
    #[must_use]
    pub fn run_unless(mut self, given_up: impl Fn() -> bool) -> Option<(Outcome, O)> {
        /// Events between two questions: about a hundredth of a second.
        const USUAL: std::ops::Range<u64> = 30_000..120_000;
        const FIRST: Span = Span::from_millis(1);
        const PARTS: u64 = 1000;
        let (Stop::At(end) | Stop::WhenComplete(end)) = self.stop;
        let most = (end.since(self.now) / PARTS).max(FIRST);
        let (mut slice, mut until, mut events) = (FIRST, self.now + FIRST, self.events);
        while !self.run_until(until) {
            if given_up() {
                return None;
            }
            let happened = self.events - events;
            events = self.events;
            if happened < USUAL.start {
                slice = (slice * 2).min(most);
            } else if happened > USUAL.end {
                slice = (slice / 2).max(Span::from_nanos(1));
            }
            until += slice;
        }
        Some(self.finish())
    }

    /// Runs until `time`, or to the end if that comes first. Returns true if the simulation is
    /// over.
    pub fn run_until(&mut self, time: Time) -> bool {
        self.advance::<false>(time, u64::MAX) == Progress::Over
    }

    /// The same, but after `most` more events at the latest: an algorithm that somebody wrote may
    /// ask again and again without ever letting time pass.
    pub fn run_within(&mut self, time: Time, most: u64) -> Progress {
        self.advance::<true>(time, self.events.saturating_add(most))
    }

    /// A flow may send fewer packets than this at one moment: an algorithm that somebody wrote may
    /// have a window without end. One that would send more ends [`run_within`](Self::run_within).
    pub fn limit_packets_at_once(&mut self, most: u64) {
        self.most_at_once = most;
    }

    /// Without `COUNTED` what is the last event costs nothing.
    fn advance<const COUNTED: bool>(&mut self, time: Time, last_event: u64) -> Progress {
        let (latest, when_complete) = match self.stop {
            Stop::At(time) => (time, false),
            Stop::WhenComplete(time) => (time, true),
        };
        // One comparison per event; nothing ever happens at the end of time.
        let limit = latest.min(time).min(Time::from_nanos(Time::NEVER.as_nanos() - 1));
        loop {
            let (next, place) = self.network.schedule.first();
            if next > limit || (when_complete && self.outstanding == 0) {
                let complete = when_complete && self.outstanding == 0;
                if complete || next > latest || next == Time::NEVER {
                    if !complete && latest < Time::NEVER {
                        self.now = latest.min(time).max(self.now);
                    }
                    return if complete || latest <= time { Progress::Over } else { Progress::Reached };
                }
                self.now = time.max(self.now);
                return Progress::Reached;
            }
            if COUNTED && self.flooded {
                return Progress::Flooded;
            }
            if COUNTED && self.events >= last_event {
                return Progress::Spent;
            }
            self.now = next;
            self.events += 1;
            self.step(place);
        }
    }

    /// Ends the simulation here.
    #[must_use]
    pub fn finish(mut self) -> (Outcome, O) {
        for flow in self.flows.iter().flatten() {
            self.ledger.settle(flow, false);
        }
        let outcome = Outcome {
            ended: self.now,
            events: self.events,
            data_packets: self.data_packets,
            links: self.network.outcome(),
            flows: self.ledger.into_outcomes(),
            sessions: self.sessions.into_iter().map(Session::outcome).collect(),
        };
        (outcome, self.observer)
    }

    #[inline]
    fn step(&mut self, place: usize) {
        match self.network.slots().at(place) {
            Slot::Lane(lane) => {
                let Some(packet) = self.network.head(lane).copied() else { return };
                match self.network.pop(lane) {
                    Target::Link(link) => {
                        self.network.arrive(self.now, link, &packet, &mut self.ledger, &mut self.observer);
                    }
                    Target::Endpoint => self.receive(&packet),
                }
            }
            Slot::Link(link) => self.network.transmit(self.now, link, &mut self.ledger, &mut self.observer),
            Slot::Timers => self.fire(),
            Slot::Arrivals(process) => self.arrive(process),
            Slot::Session(session) => self.serve(session),
        }
    }
}
