//! The event loop.

use flowstart_congestion::{Controller, ControllerConfig};
use flowstart_network::{
    Discipline, Ecn, Packet, Queue,
    packet::{Body, Datagram},
};
use flowstart_quick_start::Carried;
use flowstart_transport::Outgoing;
use flowstart_units::{Bytes, Span, Time};

use crate::arrivals::Transfers;
use crate::flow::{AccessLink, Endpoints, Flow, Tcp};
use crate::lane::Target;
use crate::ledger::Ledger;
use crate::network::Network;
use crate::pair::Pair;
use crate::route::Routes;
use crate::session::Session;
use crate::tournament::Tournament;
use crate::{
    ArrivalConfig, ConfigError, FlowConfig, FlowId, LinkId, Observer, Outcome, SessionConfig, SimulationConfig, Stop,
    Traffic, Workload,
};

/// Makes the controller of a flow from its number and configuration; see
/// [`Simulation::with_controllers`].
pub type MakeController = Box<dyn Fn(FlowId, &ControllerConfig) -> Controller + Send>;

/// A simulation in progress, watched by an [`Observer`].
pub struct Simulation<O> {
    pub(crate) now: Time,
    pub(crate) network: Network,
    pub(crate) ledger: Ledger,
    /// Running and waiting flows; free slots are reused.
    pub(crate) flows: Vec<Option<Flow>>,
    /// Flows of two connections.
    pub(crate) pairs: Vec<Pair>,
    free_slots: Vec<u32>,
    /// When each flow wants to act of itself, at the latest known time or earlier.
    timers: Tournament,
    timer_slot: usize,
    arrivals: Vec<Arrivals>,
    sessions: Vec<Session>,
    /// Sized transfers that are not complete, and arrival processes and sessions that are not over.
    outstanding: u64,
    stop: Stop,
    pub(crate) seed: u64,
    pub(crate) run: u64,
    events: u64,
    pub(crate) data_packets: u64,
    make_controller: MakeController,
    pub(crate) observer: O,
}

/// An arrival process in operation.
#[derive(Debug)]
struct Arrivals {
    flow: FlowConfig,
    route: u32,
    transfers: Transfers,
    /// Size of the transfer that is scheduled.
    next: Bytes,
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
        let network = Network::new(config, routes, 1 + config.arrivals.len() + config.sessions.len());
        let timer_slot = network.links();
        let mut simulation = Self {
            now: Time::ZERO,
            network,
            ledger: Ledger::default(),
            flows: Vec::new(),
            pairs: Vec::new(),
            free_slots: Vec::new(),
            timers: Tournament::new(config.flows.len()),
            timer_slot,
            arrivals: Vec::new(),
            sessions: Vec::new(),
            outstanding: 0,
            stop: config.stop,
            seed: config.seed,
            run: config.run,
            events: 0,
            data_packets: 0,
            make_controller: make,
            observer,
        };
        let slots: Vec<usize> = (config.flows.iter().zip(&flow_routes))
            .map(|(flow, route)| simulation.add_connection(flow, flow.start, *route))
            .collect();
        // After all of them, so that the number of a flow is its place in the configuration.
        for ((flow, route), slot) in config.flows.iter().zip(flow_routes).zip(slots) {
            simulation.add_companion(flow, route, slot);
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

    /// The current time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
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

    /// Runs until `time`, or to the end if that comes first. Returns true if the simulation is
    /// over.
    pub fn run_until(&mut self, time: Time) -> bool {
        let (latest, when_complete) = match self.stop {
            Stop::At(time) => (time, false),
            Stop::WhenComplete(time) => (time, true),
        };
        // One comparison per event; nothing ever happens at the end of time.
        let limit = latest.min(time).min(Time::from_nanos(Time::NEVER.as_nanos() - 1));
        loop {
            let (next, slot) = self.network.schedule.first();
            if next > limit || (when_complete && self.outstanding == 0) {
                let complete = when_complete && self.outstanding == 0;
                if complete || next > latest || next == Time::NEVER {
                    if !complete && latest < Time::NEVER {
                        self.now = latest.min(time).max(self.now);
                    }
                    return complete || latest <= time;
                }
                self.now = time.max(self.now);
                return false;
            }
            self.now = next;
            self.events += 1;
            self.step(slot);
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
    fn step(&mut self, slot: usize) {
        if slot >= self.network.first_lane() {
            let Some((target, packet)) = self.network.pop(slot) else { return };
            match target {
                Target::Link(link) => {
                    self.network.arrive(self.now, link, packet, &mut self.ledger, &mut self.observer);
                }
                Target::Endpoint => self.receive(packet),
            }
        } else if slot < self.timer_slot {
            self.network.transmit(self.now, slot, &mut self.ledger, &mut self.observer);
        } else if slot == self.timer_slot {
            self.fire();
        } else {
            let index = slot - self.timer_slot - 1;
            match index.checked_sub(self.arrivals.len()) {
                None => self.arrive(index),
                Some(session) => self.serve(session),
            }
        }
    }

    /// A packet reaches its endpoint.
    #[inline]
    fn receive(&mut self, packet: Packet) {
        let now = self.now;
        self.observer.received(now, &packet);
        let Some(slot) = self.ledger.slot(packet.flow) else { return };
        let Some(flow) = &mut self.flows[slot] else { return };
        match (&packet.body, &mut flow.endpoints) {
            (Body::Segment(segment), Endpoints::Tcp(tcp)) => {
                if packet.ecn == Ecn::Ce {
                    self.ledger.entry(packet.flow).marked += 1;
                }
                tcp.receiver.on_segment(now, segment, packet.ecn);
                if let Some((pair, connection)) = flow.pair {
                    self.pairs[pair as usize].arrived(connection, segment);
                }
                self.answer(slot);
            }
            (Body::Ack(ack), Endpoints::Tcp(tcp)) => {
                tcp.sender.on_ack(now, ack);
                self.pump(slot);
            }
            (Body::Datagram(_), Endpoints::Udp(udp)) => {
                udp.received += Bytes::new(u64::from(packet.bytes));
                if packet.ecn == Ecn::Ce {
                    self.ledger.entry(packet.flow).marked += 1;
                }
            }
            _ => {}
        }
    }

    /// Lets a receiver send its ACKs and its application read.
    #[inline]
    fn answer(&mut self, slot: usize) {
        let now = self.now;
        let Some(flow) = &mut self.flows[slot] else { return };
        let Endpoints::Tcp(tcp) = &mut flow.endpoints else { return };
        while let Some(out) = tcp.receiver.poll_ack() {
            let packet = Packet { flow: flow.id, bytes: out.bytes, ecn: out.ecn, body: Body::Ack(out.ack) };
            self.observer.sent(now, &packet);
            self.network.send(now, now, flow.route, packet, &mut self.ledger, &mut self.observer);
        }
        // Nothing else of the flow changes here.
        let deadline = tcp.receiver.deadline();
        if let Some((pair, _)) = flow.pair {
            self.deliver_pair(pair);
        } else if tcp.receiver.delivered() > tcp.delivered {
            let delivered = tcp.receiver.delivered();
            tcp.delivered = delivered;
            self.observer.delivered(now, flow.id, delivered);
            if delivered >= tcp.awaited {
                self.complete(slot);
            }
        }
        if deadline < self.timers.time(slot) {
            self.bring_forward(slot, deadline);
        }
    }

    /// The receiver has all that was waited for: a sized transfer, or a reply.
    #[cold]
    pub(crate) fn complete(&mut self, slot: usize) {
        let now = self.now;
        let Some(flow) = &mut self.flows[slot] else { return };
        let Endpoints::Tcp(tcp) = &mut flow.endpoints else { return };
        tcp.awaited = u64::MAX;
        let entry = self.ledger.entry(flow.id);
        if entry.size.is_some() {
            entry.completed = Some(now);
            self.outstanding -= 1;
            self.observer.completed(now, flow.id);
        }
        let Some(index) = flow.session else { return };
        let next = self.sessions[index as usize].got(now);
        self.outstanding -= u64::from(next.is_none());
        let slot = self.timer_slot + 1 + self.arrivals.len() + index as usize;
        self.network.schedule.set(slot, next.unwrap_or(Time::NEVER));
    }

    fn add_session(&mut self, config: &SessionConfig, route: u32) {
        let session = Session::new(config, route);
        let slot = self.timer_slot + 1 + self.arrivals.len() + self.sessions.len();
        self.network.schedule.set(slot, session.first());
        self.outstanding += 1;
        self.sessions.push(session);
    }

    /// A request of a session is acted on.
    fn serve(&mut self, index: usize) {
        let now = self.now;
        self.network.schedule.set(self.timer_slot + 1 + self.arrivals.len() + index, Time::NEVER);
        let session = &mut self.sessions[index];
        let Some((reply, last)) = session.reply() else { return };
        if let Some(slot) = session.connection {
            let Some(flow) = &mut self.flows[slot] else { return };
            let Endpoints::Tcp(tcp) = &mut flow.endpoints else { return };
            tcp.awaited = tcp.delivered.saturating_add(reply.bytes.get());
            tcp.app.backlog = tcp.app.backlog.saturating_add(reply.bytes.get());
            tcp.app.ended = last;
            return self.pump(slot);
        }
        let persistent = session.config.persistent;
        let mut config = session.config.flow.clone();
        let route = session.route;
        if let Traffic::Tcp(tcp) = &mut config.traffic {
            // A connection with a single reply is a transfer like any other.
            let whole = !persistent || last;
            tcp.workload = if whole { Workload::Sized(reply.bytes) } else { Workload::Replies(reply.bytes) };
        }
        let slot = self.add_flow(&config, now, route);
        if let Some(flow) = &mut self.flows[slot] {
            flow.session = Some(index as u32);
        }
        self.sessions[index].connection = persistent.then_some(slot);
    }

    /// Lets the application write and the sender send all it may, and retires a connection that is
    /// done.
    #[inline]
    fn pump(&mut self, slot: usize) {
        let now = self.now;
        let Some(flow) = &mut self.flows[slot] else { return };
        if let Some((pair, _)) = flow.pair {
            return self.pump_pair(pair, slot);
        }
        let Endpoints::Tcp(tcp) = &mut flow.endpoints else { return };
        if tcp.app.backlog > 0 {
            write(now, flow.id, tcp, &mut self.observer);
        }
        while let Some(out) = tcp.sender.transmit_ordinary(now) {
            leave(
                now,
                flow.id,
                flow.route,
                &mut flow.access,
                out,
                (&mut self.network, &mut self.ledger, &mut self.observer),
            );
            self.data_packets += 1;
        }
        while let Some(mut out) = tcp.sender.transmit_other(now) {
            if !self.network.looks_at_requests() {
                out.segment.quick_start = Carried::NONE;
            }
            self.data_packets += u64::from(out.segment.payload > 0);
            leave(
                now,
                flow.id,
                flow.route,
                &mut flow.access,
                out,
                (&mut self.network, &mut self.ledger, &mut self.observer),
            );
        }
        self.observer.sender(now, flow.id, &tcp.sender);
        // Kept current for the count of drops before and after the exit.
        if let Some(exit) = tcp.sender.controller().start_exit() {
            let entry = self.ledger.entry(flow.id);
            if entry.start_exit.is_none() {
                entry.start_exit = Some(*exit);
            }
        }
        if tcp.sender.is_complete() {
            return self.retire(slot);
        }
        self.set_timer(slot);
    }

    /// A connection is over.
    pub(crate) fn retire(&mut self, slot: usize) {
        let Some(flow) = self.flows[slot].take() else { return };
        self.ledger.settle(&flow, true);
        self.free_slots.push(slot as u32);
        self.timers.set(slot, Time::NEVER);
        self.network.schedule.set(self.timer_slot, self.timers.first().0);
    }

    /// Brings a flow's timer forward if it wants to act earlier. A later wish is noticed when the
    /// old time comes.
    #[inline]
    pub(crate) fn set_timer(&mut self, slot: usize) {
        let Some(flow) = &self.flows[slot] else { return };
        let deadline = flow.deadline();
        if deadline < self.timers.time(slot) {
            self.bring_forward(slot, deadline);
        }
    }

    fn bring_forward(&mut self, slot: usize, deadline: Time) {
        // Never in the past: what is overdue acts now.
        self.timers.set(slot, deadline.max(self.now));
        self.network.schedule.set(self.timer_slot, self.timers.first().0);
    }

    /// The earliest timer has come.
    fn fire(&mut self) {
        let now = self.now;
        let (_, slot) = self.timers.first();
        self.timers.set(slot, Time::NEVER);
        self.network.schedule.set(self.timer_slot, self.timers.first().0);
        let Some(flow) = &mut self.flows[slot] else { return };
        if flow.deadline() > now {
            return self.set_timer(slot);
        }
        match &mut flow.endpoints {
            Endpoints::Tcp(tcp) => {
                if !tcp.opened {
                    tcp.opened = true;
                    self.observer.started(now, flow.id);
                    tcp.sender.open(now);
                }
                let receiver_due = tcp.receiver.deadline() <= now;
                if tcp.app.deadline <= now {
                    tcp.app.advance();
                }
                if tcp.sender.deadline() <= now {
                    tcp.sender.on_timer(now);
                }
                if receiver_due {
                    tcp.receiver.on_timer(now);
                    self.answer(slot);
                }
                self.pump(slot);
            }
            Endpoints::Udp(udp) => {
                if udp.sent == 0 {
                    self.observer.started(now, flow.id);
                    self.ledger.entry(flow.id).first_data = now;
                }
                let packet = Packet {
                    flow: flow.id,
                    bytes: udp.packet,
                    ecn: if udp.ecn { Ecn::Ect0 } else { Ecn::NotEct },
                    body: Body::Datagram(Datagram { number: udp.sent, sent_at: now }),
                };
                udp.advance();
                self.data_packets += 1;
                let done = flow.access.transmit(now, packet.bytes);
                self.observer.sent(now, &packet);
                self.network.send(now, done, flow.route, packet, &mut self.ledger, &mut self.observer);
                self.set_timer(slot);
            }
        }
    }

    /// Adds a flow, with its second connection if its start needs one.
    fn add_flow(&mut self, config: &FlowConfig, start: Time, route: u32) -> usize {
        let slot = self.add_connection(config, start, route);
        self.add_companion(config, route, slot);
        slot
    }

    pub(crate) fn add_connection(&mut self, config: &FlowConfig, start: Time, route: u32) -> usize {
        let slot = match self.free_slots.pop() {
            Some(slot) => slot as usize,
            None => {
                self.flows.push(None);
                self.flows.len() - 1
            }
        };
        let size = match &config.traffic {
            Traffic::Tcp(tcp) => crate::app::App::size(&tcp.workload),
            Traffic::Udp(_) => None,
        };
        let id = self.ledger.open(slot as u32, config.group, start, size);
        self.network.add_flow(route);
        self.outstanding += u64::from(size.is_some());
        let seeds = (self.seed, self.run);
        self.flows[slot] = Some(Flow::new(id, config, start, route, seeds, &self.make_controller));
        self.timers.grow(slot + 1);
        self.set_timer(slot);
        slot
    }

    fn add_arrivals(&mut self, index: usize, config: &ArrivalConfig, route: u32) {
        let transfers = Transfers::new(config, (self.seed, self.run), index);
        self.outstanding += 1;
        self.arrivals.push(Arrivals { flow: config.flow.clone(), route, transfers, next: Bytes::ZERO });
        self.schedule_arrival(index);
    }

    /// Schedules the next arrival of a process, unless the process is over.
    fn schedule_arrival(&mut self, index: usize) {
        let arrivals = &mut self.arrivals[index];
        let time = match arrivals.transfers.next() {
            Some((time, bytes)) => {
                arrivals.next = bytes;
                time
            }
            None => {
                self.outstanding -= 1;
                Time::NEVER
            }
        };
        self.network.schedule.set(self.timer_slot + 1 + index, time);
    }

    /// An arrival process starts a transfer.
    fn arrive(&mut self, index: usize) {
        let now = self.now;
        let arrivals = &mut self.arrivals[index];
        if let Traffic::Tcp(tcp) = &mut arrivals.flow.traffic {
            tcp.workload = Workload::Sized(arrivals.next);
        }
        let (flow, route) = (arrivals.flow.clone(), arrivals.route);
        self.add_flow(&flow, now, route);
        self.schedule_arrival(index);
    }
}

/// A packet leaves its sender through the access link.
#[inline(always)]
pub(crate) fn leave<O: Observer>(
    now: Time,
    flow: FlowId,
    route: u32,
    access: &mut AccessLink,
    out: Outgoing,
    (network, ledger, observer): (&mut Network, &mut Ledger, &mut O),
) {
    let packet = Packet { flow, bytes: out.bytes, ecn: out.ecn, body: Body::Segment(out.segment) };
    if out.segment.payload > 0 && (out.segment.number == 0 || out.segment.seq == 0) {
        let entry = ledger.entry(flow);
        entry.first_data = entry.first_data.min(now);
    }
    let done = access.transmit(now, out.bytes);
    observer.sent(now, &packet);
    network.send(now, done, route, packet, ledger, observer);
}

/// Moves what the application has due into the socket, as far as the socket takes it.
fn write(now: Time, flow: u32, tcp: &mut Tcp, observer: &mut impl Observer) {
    let accepted = tcp.sender.write(now, tcp.app.backlog);
    if tcp.app.backlog == crate::app::ENDLESS {
        tcp.app.backlog = 0;
        return;
    }
    tcp.app.backlog -= accepted.min(tcp.app.backlog);
    tcp.written += accepted;
    if accepted > 0 {
        observer.written(now, flow, tcp.written);
    }
    if tcp.app.backlog == 0 && tcp.app.ended {
        tcp.sender.finish();
    }
}
