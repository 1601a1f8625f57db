//! The network in operation: links with their queues, lanes between them, and the tournament of who acts next.

use flowstart_network::{Dequeue, Frame, Jitter, LinkConfig, Loss, Packet, Queue, Transmitter, packet::Body};
use flowstart_quick_start::RateCode;
use flowstart_quick_start::router::{Admission, FlowKey};
use flowstart_units::{Bytes, Span, Time};

use crate::lane::{Lane, Target};
use crate::ledger::Ledger;
use crate::random::{self, Purpose};
use crate::route::{Direction, First, Hop, LaneId, Route, Routes};
use crate::tournament::Tournament;
use crate::{LinkId, LinkOutcome, Observer, SimulationConfig};

/// A link in operation.
#[derive(Debug)]
struct Link {
    queue: Queue<Packet>,
    transmitter: Transmitter,
    loss: Loss,
    marking: Loss,
    /// What only some links have; one question per packet for all of it.
    extras: Option<Box<Extras>>,
    overhead: u32,
    /// When the transmitter is free again.
    free: Time,
    /// `2 * route + direction` to lane.
    hops: Vec<Hop>,
    packets: u64,
    bytes: u64,
    dropped: u64,
    lost: u64,
    marked: u64,
    max_sojourn: Span,
    total_sojourn: Span,
    busy: Span,
}

/// What only some links have.
#[derive(Debug)]
struct Extras {
    jitter: Option<Jitter>,
    /// Quick-Start admission of the router that sends on this link.
    router: Option<Admission>,
}

impl Extras {
    fn new(config: &LinkConfig, seed: u64) -> Option<Box<Self>> {
        let jitter = config.jitter.as_ref().map(|jitter| Jitter::new(jitter, seed));
        let router = config.quick_start.as_ref().map(Admission::new);
        (jitter.is_some() || router.is_some()).then(|| Box::new(Self { jitter, router }))
    }

    /// A packet leaves the router: it is metered, and its request decided on. Returns the rate it asks for from here on.
    fn look(&mut self, now: Time, packet: &Packet) -> RateCode {
        let asked = match &packet.body {
            Body::Segment(segment) => segment.rate_request,
            _ => RateCode::ZERO,
        };
        let Some(router) = &mut self.router else { return asked };
        // Every sender is a host of its own.
        let flow = u64::from(packet.flow);
        let key = FlowKey { flow, source: flow };
        let data = asked.is_zero() && !matches!(packet.body, Body::Ack(_));
        router.forwarded_of(now, u32::from(packet.bytes), &key, data);
        if asked.is_zero() { asked } else { router.admit(now, asked, &key) }
    }
}

/// What the network needs to remember of each flow.
#[derive(Debug)]
pub(crate) struct Network {
    links: Vec<Link>,
    lanes: Vec<Lane>,
    routes: Vec<Route>,
    /// Route of each flow ever started, by flow number.
    route_of: Vec<u32>,
    /// Everybody's next time: links, then `others` slots of the simulation, then lanes.
    pub(crate) schedule: Tournament,
    first_lane: usize,
}

/// The direction in which a packet travels.
#[inline]
fn direction(packet: &Packet) -> Direction {
    if matches!(packet.body, Body::Ack(_)) { Direction::Reverse } else { Direction::Forward }
}

impl Network {
    /// Builds the links; `others` slots of the schedule are left to the simulation.
    pub(crate) fn new(config: &SimulationConfig, routes: Routes, others: usize) -> Self {
        let Routes { routes, lanes, hops, .. } = routes;
        let links: Vec<Link> = config
            .links
            .iter()
            .zip(hops)
            .enumerate()
            .map(|(index, (link, hops))| {
                let seed = |purpose| random::seed_of(config.seed, config.run, purpose, index as u64);
                Link {
                    queue: Queue::new(&link.queue, seed(Purpose::Queue)),
                    transmitter: Transmitter::new(&link.rate),
                    loss: Loss::new(&link.loss, seed(Purpose::Loss)),
                    marking: Loss::new(&link.marking, seed(Purpose::Marking)),
                    extras: Extras::new(link, seed(Purpose::Jitter)),
                    overhead: link.overhead,
                    free: Time::ZERO,
                    hops,
                    packets: 0,
                    bytes: 0,
                    dropped: 0,
                    lost: 0,
                    marked: 0,
                    max_sojourn: Span::ZERO,
                    total_sojourn: Span::ZERO,
                    busy: Span::ZERO,
                }
            })
            .collect();
        let first_lane = links.len() + others;
        let schedule = Tournament::new(first_lane + lanes.len());
        Self { links, lanes, routes, route_of: Vec::new(), schedule, first_lane }
    }

    /// How many links there are; their slots of the schedule come first.
    pub(crate) fn links(&self) -> usize {
        self.links.len()
    }

    /// The slot of the first lane.
    pub(crate) fn first_lane(&self) -> usize {
        self.first_lane
    }

    /// Flow number `route_of.len()` uses this route.
    pub(crate) fn add_flow(&mut self, route: u32) {
        self.route_of.push(route);
    }

    /// True if every router on the way of this flow's data knows Quick-Start; a request on any other is denied by its TTL difference.
    pub(crate) fn decides_on_rates(&self, forward: &[LinkId]) -> bool {
        let knows = |link: &LinkId| self.links[*link].extras.as_ref().is_some_and(|extras| extras.router.is_some());
        !forward.is_empty() && forward.iter().all(knows)
    }

    /// A packet leaves an endpoint; data is through the access link at `done`.
    #[inline(always)]
    pub(crate) fn send(
        &mut self,
        now: Time,
        done: Time,
        route: u32,
        packet: Packet,
        ledger: &mut Ledger,
        observer: &mut impl Observer,
    ) {
        let route = &self.routes[route as usize];
        let first = match direction(&packet) {
            Direction::Forward => route.forward,
            Direction::Reverse => route.reverse,
        };
        match first {
            First::Link(link) => self.arrive(now, link, packet, ledger, observer),
            First::Lane(lane, delay) => self.push(lane, done + delay, packet),
        }
    }

    #[inline(always)]
    fn push(&mut self, lane: LaneId, time: Time, packet: Packet) {
        if self.lanes[lane as usize].push(time, packet) {
            self.schedule.set(self.first_lane + lane as usize, time);
        }
    }

    /// Takes the head of the lane in this slot of the schedule.
    #[inline(always)]
    pub(crate) fn pop(&mut self, slot: usize) -> Option<(Target, Packet)> {
        let lane = &mut self.lanes[slot - self.first_lane];
        // Copied by reference: an `Option` of the packet itself would move it once more.
        let packet = *lane.head()?;
        let target = lane.target;
        let next = lane.advance();
        self.schedule.set(slot, next);
        Some((target, packet))
    }

    /// A packet arrives at a link.
    #[inline]
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        id: LinkId,
        mut packet: Packet,
        ledger: &mut Ledger,
        observer: &mut impl Observer,
    ) {
        let link = &mut self.links[id];
        observer.arrived(now, id, &packet, link.queue.packets(), link.queue.bytes());
        if link.loss.hits() {
            link.lost += 1;
            ledger.dropped(&packet);
            observer.dropped(now, id, &packet, None);
            return;
        }
        if link.marking.hits() {
            packet.set_ce();
        }
        let dropped = &mut link.dropped;
        link.queue.enqueue(now, packet, &mut |packet, reason| {
            *dropped += 1;
            ledger.dropped(&packet);
            observer.dropped(now, id, &packet, Some(reason));
        });
        if link.free <= now {
            self.transmit(now, id, ledger, observer);
        } else if self.schedule.time(id) == Time::NEVER {
            // The transmitter was left alone because nothing waited.
            let free = link.free;
            self.schedule.set(id, free);
        }
    }

    /// The transmitter of a link is free: begins the next transmission, if any.
    #[inline]
    pub(crate) fn transmit(&mut self, now: Time, id: LinkId, ledger: &mut Ledger, observer: &mut impl Observer) {
        let link = &mut self.links[id];
        let dropped = &mut link.dropped;
        let next = link.queue.dequeue(now, &mut |packet, reason| {
            *dropped += 1;
            ledger.dropped(&packet);
            observer.dropped(now, id, &packet, Some(reason));
        });
        match next {
            Dequeue::Packet(packet, arrived) => self.forward(now, id, &packet, arrived, observer),
            Dequeue::Empty => self.schedule.set(id, Time::NEVER),
            Dequeue::NotBefore(time) => self.schedule.set(id, time.max(now + Span::from_nanos(1))),
        }
    }

    /// Transmits a packet that waited at a link since `arrived`.
    // Not inlined, and by reference: otherwise the compiler takes the packet apart, and putting it together again stalls (see `TagWord`).
    #[inline(never)]
    fn forward(&mut self, now: Time, id: LinkId, packet: &Packet, arrived: Time, observer: &mut impl Observer) {
        let link = &mut self.links[id];
        let bytes = packet.bytes() + link.overhead;
        let done = link.transmitter.transmit(now, bytes);
        let sojourn = now.since(arrived);
        link.packets += 1;
        link.bytes += u64::from(bytes);
        link.marked += u64::from(packet.ecn == flowstart_network::Ecn::Ce);
        link.max_sojourn = link.max_sojourn.max(sojourn);
        link.total_sojourn += sojourn;
        link.busy += done.since(now);
        link.free = done;
        let wake = if link.queue.packets() > 0 { done } else { Time::NEVER };
        let hop = link.hops[2 * self.route_of[packet.flow as usize] as usize + direction(packet) as usize];
        let arrival = done + hop.delay;
        if link.extras.is_some() {
            return self.forward_specially(now, id, packet, (arrived, done, arrival), wake, hop.lane, observer);
        }
        observer.transmitted(now, id, packet, arrived, done);
        self.schedule.set(id, wake);
        self.push(hop.lane, arrival, *packet);
    }

    /// The end of [`forward`](Self::forward) on a link that has jitter or a router that knows Quick-Start.
    #[expect(clippy::too_many_arguments, reason = "one function in two parts, so that the usual one stays small")]
    #[inline(never)]
    fn forward_specially(
        &mut self,
        now: Time,
        id: LinkId,
        packet: &Packet,
        (arrived, done, arrival): (Time, Time, Time),
        wake: Time,
        lane: LaneId,
        observer: &mut impl Observer,
    ) {
        let (mut packet, mut arrival) = (*packet, arrival);
        if let Some(extras) = &mut self.links[id].extras {
            if let Some(jitter) = &mut extras.jitter {
                arrival = jitter.delay(arrival);
            }
            let left = extras.look(now, &packet);
            if let Body::Segment(segment) = &mut packet.body {
                segment.rate_request = left;
            }
        }
        observer.transmitted(now, id, &packet, arrived, done);
        self.schedule.set(id, wake);
        self.push(lane, arrival, packet);
    }

    /// Packets in lanes and queues.
    pub(crate) fn stored(&self) -> u64 {
        let lanes: usize = self.lanes.iter().map(Lane::len).sum();
        lanes as u64 + self.links.iter().map(|link| link.queue.packets()).sum::<u64>()
    }

    /// What the links did.
    pub(crate) fn outcome(&self) -> Vec<LinkOutcome> {
        self.links
            .iter()
            .map(|link| LinkOutcome {
                packets: link.packets,
                bytes: Bytes::new(link.bytes),
                dropped: link.dropped,
                lost: link.lost,
                marked: link.marked,
                max_sojourn: link.max_sojourn,
                total_sojourn: link.total_sojourn,
                busy: link.busy,
                stored: link.queue.packets(),
            })
            .collect()
    }
}
