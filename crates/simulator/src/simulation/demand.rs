//! Where flows come from: the configuration, arrival processes and sessions.

use flowstart_units::{Bytes, Time};

use super::Simulation;
use crate::app::App;
use crate::arrivals::Transfers;
use crate::flow::{Endpoints, Flow};
use crate::session::Session;
use crate::slots::Slot;
use crate::{ArrivalConfig, FlowConfig, FlowId, Observer, SessionConfig, Traffic, Workload};

/// An arrival process in operation.
#[derive(Debug)]
pub(super) struct Arrivals {
    flow: FlowConfig,
    route: u32,
    transfers: Transfers,
    /// Size of the transfer that is scheduled.
    next: Bytes,
}

/// What the number of a flow has beside, for its second connection.
const COMPANION: u64 = 1 << 63;

impl<O: Observer> Simulation<O> {
    /// Adds a flow, with its second connection if its start needs one.
    fn add_flow(&mut self, config: &FlowConfig, start: Time, route: u32) -> usize {
        let place = self.add_connection(config, start, route, None);
        self.add_companion(config, route, place);
        place.0
    }

    /// Adds a connection of a flow that begins with `first`, which draws by a number, or the first
    /// one itself. `route` is that over the first links where there are several. Returns its place,
    /// and what it draws by.
    pub(crate) fn add_connection(
        &mut self,
        config: &FlowConfig,
        start: Time,
        route: u32,
        first: Option<(FlowId, u64)>,
    ) -> (usize, u64) {
        let slot = match self.free_slots.pop() {
            Some(slot) => slot as usize,
            None => {
                self.flows.push(None);
                self.flows.len() - 1
            }
        };
        let size = match &config.traffic {
            Traffic::Tcp(tcp) => App::size(&tcp.workload),
            Traffic::Udp(_) => None,
        };
        let id = self.ledger.open(slot as u32, config.group, start, size);
        let connection = usize::from(first.is_some());
        let number = match (config.place.number, first) {
            (Some(number), None) => number,
            (Some(_), Some((_, number))) => number | COMPANION,
            (None, _) => {
                self.unnumbered += 1;
                self.unnumbered - 1
            }
        };
        let (first, of_first) = first.unwrap_or((id, number));
        let route = self.ways.route(route, &config.place.ways, of_first, connection);
        self.network.add_flow(route, first, &config.place);
        self.outstanding += u64::from(size.is_some());
        let seeds = (self.seed, self.run);
        self.flows[slot] = Some(Flow::new((id, number), config, start, route, seeds, &self.make_controller));
        self.timers.grow(slot + 1);
        self.set_timer(slot);
        (slot, number)
    }

    pub(super) fn add_arrivals(&mut self, index: usize, config: &ArrivalConfig, route: u32) {
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
        self.network.schedule_slot(Slot::Arrivals(index), time);
    }

    /// An arrival process starts a transfer.
    pub(super) fn arrive(&mut self, index: usize) {
        let now = self.now;
        let arrivals = &mut self.arrivals[index];
        if let Traffic::Tcp(tcp) = &mut arrivals.flow.traffic {
            tcp.workload = Workload::Sized(arrivals.next);
        }
        let (flow, route) = (arrivals.flow.clone(), arrivals.route);
        if let Some(number) = &mut arrivals.flow.place.number {
            *number = number.wrapping_add(1);
        }
        self.add_flow(&flow, now, route);
        self.schedule_arrival(index);
    }
    pub(super) fn add_session(&mut self, config: &SessionConfig, route: u32) {
        let session = Session::new(config, route);
        self.network.schedule_slot(Slot::Session(self.sessions.len()), session.first());
        self.outstanding += 1;
        self.sessions.push(session);
    }

    /// A request of a session is acted on.
    pub(super) fn serve(&mut self, index: usize) {
        let now = self.now;
        self.network.schedule_slot(Slot::Session(index), Time::NEVER);
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
        self.network.schedule_slot(Slot::Session(index as usize), next.unwrap_or(Time::NEVER));
    }
}
