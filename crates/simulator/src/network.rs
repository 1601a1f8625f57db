//! The network in operation: links with their queues, lanes between them, and the tournament of who
//! acts next.

use flowstart_network::packet::Body;
use flowstart_network::{Dequeue, Frame, Jitter, LinkConfig, Loss, Packet, Queue, QuickStartHop, Transmitter};
use flowstart_quick_start::Carried;
use flowstart_quick_start::router::{Admission, FlowKey, RouterCounts};
use flowstart_quick_start::wire::{IPV4_LENGTH, IpOption};
use flowstart_random::{Purpose, Rng, Stream};
use flowstart_units::{Bytes, Span, Time};

use crate::lane::{Lane, Target};
use crate::ledger::Ledger;
use crate::route::{Direction, First, Hop, LaneId, Route, Routes};
use crate::tournament::Tournament;
use crate::{ConfigError, LinkId, LinkOutcome, Observer, SimulationConfig};

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
    /// A middlebox drops packets with options.
    drops_options: bool,
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

impl Link {
    fn requests(&self) -> Option<&Requests> {
        self.extras.as_ref()?.requests.as_ref()
    }
}

/// What only some links have.
#[derive(Debug)]
struct Extras {
    jitter: Option<Jitter>,
    /// What becomes of Quick-Start options, if anybody sends any.
    requests: Option<Requests>,
}

/// What becomes of Quick-Start requests on the way to a link (see [`QuickStartHop`]).
#[derive(Debug)]
enum Requests {
    Unaware,
    /// The router's admission, and what it makes nonces from.
    Aware(Box<(Admission, Stream)>),
    Tunnel,
    AwareTunnel,
    Stripped,
}

impl Requests {
    fn new(config: &QuickStartHop, random: impl FnOnce() -> Stream) -> Self {
        match config {
            // What drops options lets nothing pass that could be looked at.
            QuickStartHop::Unaware | QuickStartHop::DropsOptions => Self::Unaware,
            QuickStartHop::Aware(admission) => Self::Aware(Box::new((Admission::new(admission), random()))),
            QuickStartHop::Tunnel => Self::Tunnel,
            QuickStartHop::AwareTunnel => Self::AwareTunnel,
            QuickStartHop::StripsOptions => Self::Stripped,
        }
    }

    /// A packet leaves: it is metered, and what it asks for is decided on.
    fn look(&mut self, now: Time, packet: &mut Packet) {
        let (bytes, flow) = (u32::from(packet.bytes), u64::from(packet.flow));
        // Every sender is a host of its own.
        let key = FlowKey { flow, source: flow };
        let mut none = Carried::NONE;
        let (option, data) = match &mut packet.body {
            Body::Segment(segment) => (&mut segment.quick_start, segment.payload > 0),
            Body::Datagram(_) => (&mut none, true),
            Body::Ack(_) => (&mut none, false),
        };
        match self {
            Self::Aware(router) => {
                let (admission, random) = &mut **router;
                let asked = option.asked();
                // What asks is not sent at what it is granted.
                admission.forwarded_of(now, bytes, &key, data && asked.is_zero());
                match option.option() {
                    None => {}
                    Some(IpOption::Request { nonce, .. }) => {
                        let granted = admission.admit(now, asked, nonce, &key);
                        option.pass_aware(granted, random.next_u32());
                    }
                    Some(IpOption::Report { rate, nonce }) => {
                        admission.reported(now, rate, nonce, &key);
                        option.pass_unaware();
                    }
                }
            }
            Self::Unaware => option.pass_unaware(),
            Self::Tunnel => {}
            Self::AwareTunnel => option.deny(),
            Self::Stripped if !option.is_none() => {
                *option = Carried::NONE;
                packet.bytes = packet.bytes.saturating_sub(IPV4_LENGTH as u16);
            }
            Self::Stripped => {}
        }
    }

    fn counts(&self) -> RouterCounts {
        match self {
            Self::Aware(router) => router.0.counts(),
            Self::Unaware | Self::Tunnel | Self::AwareTunnel | Self::Stripped => RouterCounts::default(),
        }
    }
}

impl Extras {
    fn new(config: &LinkConfig, seed: u64, requests: Option<Requests>) -> Option<Box<Self>> {
        let jitter = config.jitter.as_ref().map(|jitter| Jitter::new(jitter, seed));
        (jitter.is_some() || requests.is_some()).then(|| Box::new(Self { jitter, requests }))
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
    /// Whether anybody may ask routers for a rate.
    asks: bool,
}

/// The direction in which a packet travels.
#[inline]
fn direction(packet: &Packet) -> Direction {
    if matches!(packet.body, Body::Ack(_)) { Direction::Reverse } else { Direction::Forward }
}

/// True if a packet carries a Quick-Start option of IP.
fn carries_option(packet: &Packet) -> bool {
    matches!(&packet.body, Body::Segment(segment) if !segment.quick_start.is_none())
}

impl Network {
    /// Builds the links; `others` slots of the schedule are left to the simulation.
    pub(crate) fn new(config: &SimulationConfig, routes: Routes, others: usize) -> Self {
        let Routes { routes, lanes, hops, .. } = routes;
        let asks = config.asks_routers();
        let links: Vec<Link> = config
            .links
            .iter()
            .zip(hops)
            .enumerate()
            .map(|(index, (link, hops))| {
                let seed = |purpose: Purpose| purpose.seed(config.seed, config.run, index as u64);
                Link {
                    queue: Queue::new(&link.queue, seed(Purpose::Queue)),
                    transmitter: Transmitter::new(&link.rate),
                    loss: Loss::new(&link.loss, seed(Purpose::Loss)),
                    marking: Loss::new(&link.marking, seed(Purpose::Marking)),
                    extras: Extras::new(
                        link,
                        seed(Purpose::Jitter),
                        asks.then(|| {
                            let nonces = || Purpose::Nonce.stream(config.seed, config.run, index as u64);
                            Requests::new(&link.quick_start, nonces)
                        }),
                    ),
                    overhead: link.overhead,
                    drops_options: link.quick_start == QuickStartHop::DropsOptions,
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
        Self { links, lanes, routes, route_of: Vec::new(), schedule, first_lane, asks }
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
        if link.loss.hits() || (link.drops_options && carries_option(&packet)) {
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
    // Not inlined, and by reference: otherwise the compiler takes the packet apart, and putting it
    // together again stalls (see `TagWord`).
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

    /// The end of [`forward`](Self::forward) on a link that has jitter, or that looks at
    /// Quick-Start requests.
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
            if let Some(requests) = &mut extras.requests {
                requests.look(now, &mut packet);
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
                quick_start: link.requests().map_or_else(RouterCounts::default, Requests::counts),
                stored: link.queue.packets(),
            })
            .collect()
    }
}
