//! The network in operation: links with their queues, lanes between them, and the tournament of who
//! acts next.

use flowstart_network::packet::Body;
use flowstart_network::{Dequeue, Frame, Hosts, Packet, Passage, Queue, Sending, Served};
use flowstart_units::{Span, Time};

use crate::lane::{Lane, Target};
use crate::ledger::Ledger;
use crate::link::{Extras, Link};
use crate::route::{Direction, First, Hop, LaneId, Route, Routes};
use crate::slots::{Slot, Slots};
use crate::tournament::Tournament;
use crate::{ConfigError, FlowId, LinkId, LinkOutcome, Observer, Place, SimulationConfig};

/// What the network needs to remember of each flow.
#[derive(Debug)]
pub(crate) struct Network {
    links: Vec<Link>,
    lanes: Vec<Lane>,
    routes: Vec<Route>,
    /// Route of each flow ever started, by flow number.
    route_of: Vec<u32>,
    /// Everybody's next time, at the places that `slots` says.
    pub(crate) schedule: Tournament,
    slots: Slots,
    /// Whether anybody may ask routers for a rate.
    asks: bool,
    /// Links whose queues ask to which hosts flows belong.
    hosting: Vec<LinkId>,
}

/// Numbers of hosts that are told from those of flows without any.
const OWN_HOST: u64 = 1 << 32;

/// The direction in which a packet travels.
#[inline]
fn direction(packet: &Packet) -> Direction {
    if matches!(packet.body, Body::Ack(_)) { Direction::Reverse } else { Direction::Forward }
}

impl Network {
    /// Builds the links. The schedule has room for everybody in `slots` and for the lanes of
    /// `routes`.
    pub(crate) fn new(config: &SimulationConfig, routes: Routes, slots: Slots) -> Self {
        let Routes { routes, lanes, hops, .. } = routes;
        let asks = config.asks_routers();
        let links: Vec<Link> = config
            .links
            .iter()
            .zip(hops)
            .enumerate()
            .map(|(index, (link, hops))| Link::new(link, (config.seed, config.run, index as u64), hops, asks))
            .collect();
        let schedule = Tournament::new(slots.count(lanes.len()));
        let hosting = |link: &LinkId| config.links[*link].queue.asks_for_hosts();
        let hosting = (0..links.len()).filter(hosting).collect();
        Self { links, lanes, routes, route_of: Vec::new(), schedule, slots, asks, hosting }
    }

    /// Replaces the queue of a link at which nothing has arrived yet.
    pub(crate) fn set_queue(&mut self, link: LinkId, queue: Queue<Packet>) -> Result<(), ConfigError> {
        let wrong = |message: String| Err(ConfigError { place: format!("links[{link}].queue"), message });
        let count = self.links.len();
        match self.links.get_mut(link) {
            None => wrong(format!("there is no link {link}; there are {count}")),
            Some(link) if link.queue.stats().enqueued > 0 => {
                wrong("packets have arrived at this queue; replace it before the simulation runs".to_owned())
            }
            Some(link) => {
                link.queue = queue;
                Ok(())
            }
        }
    }

    /// Who owns which slot of the schedule.
    #[inline(always)]
    pub(crate) fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Notes when the owner of a slot wants to act.
    #[inline(always)]
    pub(crate) fn schedule_slot(&mut self, slot: Slot, time: Time) {
        self.schedule.set(self.slots.place(slot), time);
    }

    /// Flow number `route_of.len()` uses this route; `first` is the first connection of what it
    /// belongs to.
    pub(crate) fn add_flow(&mut self, route: u32, first: FlowId, place: &Place) {
        let flow = self.route_of.len() as u64;
        self.route_of.push(route);
        let own = OWN_HOST | u64::from(first);
        let [from, to] = [place.source, place.destination].map(|host| host.map_or(own, u64::from));
        for link in &self.hosting {
            let link = &mut self.links[*link];
            let on_the_way_back = link.hops[2 * route as usize].is_nowhere();
            let (source, destination) = if on_the_way_back { (to, from) } else { (from, to) };
            link.queue.introduce(flow, Hosts { source, destination });
        }
    }

    /// True if links look at Quick-Start requests. If they do not, nobody was thought to make any.
    pub(crate) fn looks_at_requests(&self) -> bool {
        self.asks
    }

    /// A packet leaves an endpoint; data is through the access link at `done`.
    #[inline(always)]
    pub(crate) fn send(
        &mut self,
        now: Time,
        done: Time,
        route: u32,
        packet: &Packet,
        ledger: &mut Ledger,
        observer: &mut impl Observer,
    ) {
        let route = &self.routes[route as usize];
        let first = match direction(packet) {
            Direction::Forward => route.forward,
            Direction::Reverse => route.reverse,
        };
        match first {
            First::Link(link) => self.arrive_at_once(now, link, packet, ledger, observer),
            First::Lane(lane, delay) => self.push(lane, done + delay, packet),
        }
    }

    #[inline(always)]
    fn push(&mut self, lane: LaneId, time: Time, packet: &Packet) {
        if self.lanes[lane as usize].push(time, packet) {
            self.schedule_slot(Slot::Lane(lane as usize), time);
        }
    }

    /// The head of a lane. Not taken at once: an `Option` of the packet would move it once more.
    #[inline(always)]
    pub(crate) fn head(&self, index: usize) -> Option<&Packet> {
        self.lanes[index].head()
    }

    /// Drops the head of a lane, and says where it arrives.
    #[inline(always)]
    pub(crate) fn pop(&mut self, index: usize) -> Target {
        let lane = &mut self.lanes[index];
        let target = lane.target;
        let next = lane.advance();
        self.schedule_slot(Slot::Lane(index), next);
        target
    }

    /// [`arrive`](Self::arrive) for those who do it less often than the event loop.
    #[inline(never)]
    fn arrive_at_once(
        &mut self,
        now: Time,
        id: LinkId,
        packet: &Packet,
        ledger: &mut Ledger,
        observer: &mut impl Observer,
    ) {
        self.arrive(now, id, packet, ledger, observer);
    }

    /// A packet arrives at a link.
    #[inline(always)]
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        id: LinkId,
        packet: &Packet,
        ledger: &mut Ledger,
        observer: &mut impl Observer,
    ) {
        let link = &mut self.links[id];
        observer.arrived(now, id, packet, link.queue.packets(), link.queue.bytes());
        if link.loss.hits() || (link.guarded && !link.admits(now, packet)) {
            link.lost += 1;
            ledger.dropped(packet);
            observer.dropped(now, id, packet, None);
            return;
        }
        let mut marked;
        let packet = if link.marking.hits() {
            marked = *packet;
            marked.set_ce();
            &marked
        } else {
            packet
        };
        let dropped = &mut link.dropped;
        link.queue.enqueue(now, *packet, &mut |packet, reason| {
            *dropped += 1;
            ledger.dropped(&packet);
            observer.dropped(now, id, &packet, Some(reason));
        });
        if link.free <= now {
            self.transmit_at_once(now, id, ledger, observer);
        } else if self.schedule.time(self.slots.place(Slot::Link(id))) == Time::NEVER {
            // The transmitter was left alone because nothing waited.
            let free = link.free;
            if free == Time::NEVER {
                self.serve(now, id, ledger, observer);
            } else {
                self.schedule_slot(Slot::Link(id), free);
            }
        }
    }

    /// Lets a medium that serves the queue itself do so.
    #[inline(never)]
    fn serve(&mut self, now: Time, id: LinkId, ledger: &mut Ledger, observer: &mut impl Observer) {
        let link = &mut self.links[id];
        let Some(extras) = &mut link.extras else { return };
        let Extras { medium: Some(medium), variation, requests, .. } = &mut **extras else { return };
        let Some(mut wifi) = medium.wifi.take() else { return };
        let (busy, overhead) = (wifi.busy(), link.overhead);
        let (lanes, routes, hops) = (&mut self.lanes, &self.route_of, &link.hops);
        let (schedule, slots) = (&mut self.schedule, &self.slots);
        let wake = wifi.serve(now, &mut link.queue, overhead, &mut |served| match served {
            Served::Sent { mut packet, arrived, begun, done } => {
                let Some(there) = medium.beyond(done) else {
                    link.lost += 1;
                    ledger.dropped(&packet);
                    return observer.dropped(now, id, &packet, None);
                };
                let sojourn = begun.since(arrived);
                link.packets += 1;
                link.bytes += u64::from(packet.bytes() + overhead);
                link.marked += u64::from(packet.ecn == flowstart_network::Ecn::Ce);
                link.max_sojourn = link.max_sojourn.max(sojourn);
                link.total_sojourn += sojourn;
                if let Some(requests) = requests.as_mut() {
                    requests.look(now, &mut packet);
                }
                observer.transmitted(now, id, &packet, arrived, done);
                let hop = hops[2 * routes[packet.flow as usize] as usize + direction(&packet) as usize];
                let arrival = there + hop.delay;
                let arrival = variation.as_mut().map_or(arrival, |variation| variation.delay(arrival));
                if lanes[hop.lane as usize].push(arrival, &packet) {
                    schedule.set(slots.place(Slot::Lane(hop.lane as usize)), arrival);
                }
            }
            Served::Dropped(packet, reason) => {
                link.dropped += 1;
                ledger.dropped(&packet);
                observer.dropped(now, id, &packet, Some(reason));
            }
            Served::Lost(packet) => {
                link.lost += 1;
                ledger.dropped(&packet);
                observer.dropped(now, id, &packet, None);
            }
        });
        link.busy += wifi.busy() - busy;
        medium.wifi = Some(wifi);
        self.schedule_slot(Slot::Link(id), wake);
    }

    /// The transmitter of a link is free: begins the next transmission, if any.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, now: Time, id: LinkId, ledger: &mut Ledger, observer: &mut impl Observer) {
        let link = &mut self.links[id];
        if link.free == Time::NEVER {
            return self.serve(now, id, ledger, observer);
        }
        let dropped = &mut link.dropped;
        let next = link.queue.dequeue(now, &mut |packet, reason| {
            *dropped += 1;
            ledger.dropped(&packet);
            observer.dropped(now, id, &packet, Some(reason));
        });
        match next {
            // Asked here: a call from one of them to the other costs a dozen instructions.
            Dequeue::Packet(packet, arrived) if link.extras.is_some() => {
                self.forward_specially(now, id, &packet, arrived, ledger, observer);
            }
            Dequeue::Packet(packet, arrived) => self.forward(now, id, &packet, arrived, observer),
            Dequeue::Empty => self.schedule_slot(Slot::Link(id), Time::NEVER),
            Dequeue::NotBefore(time) => self.schedule_slot(Slot::Link(id), time.max(now + Span::from_nanos(1))),
        }
    }

    /// [`transmit`](Self::transmit) for those who do it less often than the event loop.
    #[inline(never)]
    fn transmit_at_once(&mut self, now: Time, id: LinkId, ledger: &mut Ledger, observer: &mut impl Observer) {
        self.transmit(now, id, ledger, observer);
    }

    /// Transmits a packet that waited at a plain link since `arrived`.
    // Not inlined, and by reference: otherwise the compiler takes the packet apart, and putting it
    // together again stalls (see `TagWord`).
    #[inline(never)]
    fn forward(&mut self, now: Time, id: LinkId, packet: &Packet, arrived: Time, observer: &mut impl Observer) {
        let link = &mut self.links[id];
        let bytes = packet.bytes() + link.overhead;
        let done = link.transmitter.transmit(now, bytes);
        let (wake, hop) = Self::account(link, &self.route_of, packet, [now, arrived, done]);
        observer.transmitted(now, id, packet, arrived, done);
        self.schedule_slot(Slot::Link(id), wake);
        self.push(hop.lane, done + hop.delay, packet);
    }

    /// Counts a packet whose transmission begins at `begun`; says when the link is to be woken, and
    /// where the packet goes.
    #[inline(always)]
    fn account(link: &mut Link, route_of: &[u32], packet: &Packet, [begun, arrived, done]: [Time; 3]) -> (Time, Hop) {
        let bytes = packet.bytes() + link.overhead;
        let sojourn = begun.since(arrived);
        link.packets += 1;
        link.bytes += u64::from(bytes);
        link.marked += u64::from(packet.ecn == flowstart_network::Ecn::Ce);
        link.max_sojourn = link.max_sojourn.max(sojourn);
        link.total_sojourn += sojourn;
        link.busy += done.since(begun);
        link.free = done;
        let wake = if link.queue.waits_for_link() { done } else { Time::NEVER };
        (wake, link.hops[2 * route_of[packet.flow as usize] as usize + direction(packet) as usize])
    }

    /// [`forward`](Self::forward) on a link that is not plain, that has outages, or that looks at
    /// Quick-Start requests.
    #[inline(never)]
    fn forward_specially(
        &mut self,
        now: Time,
        id: LinkId,
        packet: &Packet,
        arrived: Time,
        ledger: &mut Ledger,
        observer: &mut impl Observer,
    ) {
        let link = &mut self.links[id];
        let Some(extras) = &mut link.extras else { return };
        let bytes = packet.bytes() + link.overhead;
        let Passage { begun, busy, done, there } = match &mut extras.medium {
            None => {
                let Sending { begun, busy, done } = link.transmitter.send(now, bytes);
                Passage { begun, busy, done, there: Some(done) }
            }
            Some(medium) => medium.pass(&mut link.transmitter, now, arrived, bytes),
        };
        let Some(there) = there else {
            // It had its time on the air, and nobody heard it: an outage is no sending.
            link.lost += 1;
            link.free = done;
            let wake = if link.queue.waits_for_link() { done } else { Time::NEVER };
            ledger.dropped(packet);
            observer.dropped(now, id, packet, None);
            return self.schedule_slot(Slot::Link(id), wake);
        };
        let busy = link.busy + busy;
        let (wake, hop) = Self::account(link, &self.route_of, packet, [begun, arrived, done]);
        // Without outages in the middle.
        link.busy = busy;
        let Some(extras) = &mut link.extras else { return };
        let arrival = there + hop.delay;
        let arrival = extras.variation.as_mut().map_or(arrival, |variation| variation.delay(arrival));
        // A packet is copied only if it may be changed (see `forward`).
        let mut changed;
        let packet = match &extras.requests {
            None => packet,
            Some(_) => {
                changed = *packet;
                extras.look(now, &mut changed, link.queue.bytes());
                &changed
            }
        };
        observer.transmitted_later(now, id, packet, begun, arrived, done);
        self.schedule_slot(Slot::Link(id), wake);
        self.push(hop.lane, arrival, packet);
    }

    /// Packets in lanes and queues.
    pub(crate) fn stored(&self) -> u64 {
        let lanes: usize = self.lanes.iter().map(Lane::len).sum();
        lanes as u64 + self.links.iter().map(Link::stored).sum::<u64>()
    }

    /// What the links did.
    pub(crate) fn outcome(&self) -> Vec<LinkOutcome> {
        self.links.iter().map(Link::outcome).collect()
    }
}
