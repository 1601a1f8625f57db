//! The engine: takes frames from interfaces, carries them through links and delays, and gives them
//! to other interfaces on time.
//!
//! Time in the engine is the time of the model. A packet arrives when the kernel stamped it, queues
//! decide by those times, and a departure is worked out before it is due. So an engine that was
//! late to look at a packet is not late to send it, as long as it looks before the packet's delay
//! has passed; and after a pause it processes what happened meanwhile in the order in which it
//! happened.

mod due;
mod ending;
mod frames;
mod link;
mod pace;
mod plan;
mod requests;
mod waiting;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nix::sys::eventfd::EventFd;

use flowstart_network::QueueConfig;
use flowstart_random::Purpose;
use flowstart_units::{Span, Time};

use crate::clock::{self, Clock, Priority};
use crate::config::Timing;
use crate::fidelity::Lateness;
use crate::record::{Entry, Fate, Given, Recorder, Tcp};
use crate::wire::{self, ETHERNET, FlowKey};

use due::{Due, Schedule};
use frames::{Handle, Pool};
use link::{Link, PacketEvent};
use pace::{Budget, Looks};
use plan::{Counts, close};

pub use link::LinkOutcome;
pub(crate) use plan::{Choice, Delivery, Entrance, Plan, Report, Route};
#[cfg(test)]
pub(crate) use plan::{Fault, HANGS};

/// Frames taken from one ring at a time, so that what is due meanwhile is not kept waiting.
const AT_ONCE: usize = 64;
/// An arrival that must be counted this much later than it was is noted: below it is the order of
/// two packets at one moment.
const LATE_ARRIVAL: Span = Span::from_micros(20);
/// Longest sleep, for looking whether the world has ended and for sending records on.
const LONGEST_SLEEP: Span = Span::from_millis(50);

/// To sleep for less costs more of the processor than to watch the clock.
const WORTH_SLEEPING: Span = Span::from_micros(5);

/// What happens inside.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A link's transmitter wants the next packet.
    Wake(u16),
    /// A packet reaches its next link.
    Reach(Handle),
}

/// An engine in operation.
pub(crate) struct Engine {
    entrances: Vec<Entrance>,
    exits: Vec<Delivery>,
    routes: Vec<Route>,
    /// Some link thins acknowledgements.
    thins: bool,
    links: Vec<Link>,
    names: Vec<usize>,
    /// What connections are spread over several ways with.
    seed: u64,
    longest: usize,
    timing: Timing,
    /// Of all engines, the share that has a processor for itself.
    alone: f64,
    recorder: Option<Recorder>,
    clock: Clock,
    pool: Pool,
    flows: HashMap<(u16, FlowKey), (u32, Option<u16>)>,
    /// Packets that have arrived, by their stamps.
    arrivals: VecDeque<(Time, Handle)>,
    steps: Schedule<Step>,
    departures: Schedule<Handle>,
    order: u64,
    /// Time of the latest step taken.
    reached: Time,
    /// How late steps inside may be taken without making a departure late.
    leeway: Span,
    events: Vec<PacketEvent>,
    lateness: Lateness,
    /// Packets that hosts were given, if that is wanted.
    given: Vec<Given>,
    counts: Counts,
    looks: Looks,
    budget: Budget,
    /// When everything ends, in nanoseconds.
    end: Arc<AtomicU64>,
    /// It has: nothing more happens.
    ended: bool,
    #[cfg(test)]
    fault: Option<plan::Fault>,
}

impl Engine {
    pub(crate) fn new(plan: Plan, clock: Clock) -> Self {
        let links = plan
            .links
            .iter()
            .map(|(number, config)| Link::new(config, |purpose| purpose.seed(plan.seed, plan.run, *number as u64)));
        let links: Vec<Link> = links.collect();
        let delay = |route: &Route| -> Span {
            let links: Span = route.links.iter().map(|link| plan.links[usize::from(*link)].1.delay).sum();
            route.before + links + route.after
        };
        // Delay after the last link: what is worked out this much late is still in time. Half of it
        // is kept in reserve.
        let last = |route: &Route| -> Span {
            route.links.last().map_or(delay(route), |link| plan.links[usize::from(*link)].1.delay + route.after)
        };
        let leeway = plan.routes.iter().map(|route| last(route).min(delay(route)) / 2).min().unwrap_or(Span::ZERO);
        let leeway = if leeway < plan.timing.settle * 4 { Span::ZERO } else { leeway.min(plan.timing.nap) };
        let longest = plan.mtu as usize + ETHERNET;
        Self {
            entrances: plan.entrances,
            exits: plan.exits,
            routes: plan.routes,
            thins: plan.links.iter().any(|(_, link)| matches!(link.queue, QueueConfig::AckFilter(_))),
            links,
            names: plan.links.iter().map(|(name, _)| *name).collect(),
            seed: Purpose::Way.seed(plan.seed, plan.run, 0),
            longest,
            timing: plan.timing,
            alone: processors() / plan.engines.max(1) as f64,
            recorder: plan.recorder,
            clock,
            pool: Pool::new(longest),
            flows: HashMap::new(),
            arrivals: VecDeque::with_capacity(AT_ONCE * 4),
            steps: BinaryHeap::with_capacity(1024),
            departures: BinaryHeap::with_capacity(1024),
            order: 0,
            reached: Time::ZERO,
            leeway,
            events: Vec::with_capacity(64),
            lateness: Lateness::new(),
            given: Vec::new(),
            counts: Counts::default(),
            looks: Looks::new(clock.now(), plan.timing.stall),
            budget: Budget::new(clock.now(), None, 0),
            end: plan.end,
            ended: false,
            #[cfg(test)]
            fault: plan.fault,
        }
    }

    /// Runs until `stop` is set (and `waker` written to, so that it is noticed at once), and tells
    /// what it did; also if it ends by a fault of its own. Its sockets are closed after that: each
    /// takes the kernel some milliseconds.
    pub(crate) fn run(mut self, stop: &AtomicBool, waker: &EventFd, tell: impl FnOnce(Report)) {
        let priority = clock::be_punctual();
        let limit = (priority == Priority::RealTime).then(clock::real_time_limit).flatten();
        let limit = limit.map(|(share, period)| (share * self.alone.min(1.0), period));
        self.budget = Budget::new(self.clock.now(), limit, clock::thread_time());
        let ended = catch_unwind(AssertUnwindSafe(|| self.work(stop, waker)));
        let fault = ended.err().map(|panic| message(&*panic));
        if !self.ended {
            self.count_full();
        }
        // Whoever reads the records gets the last ones, and hears that there are no more.
        self.recorder = None;
        (self.counts.stalls, self.counts.longest_stall) = (self.looks.stalls, self.looks.longest);
        tell(Report {
            links: self.names.iter().copied().zip(self.links.iter().map(Link::outcome)).collect(),
            lateness: self.lateness,
            given: self.given,
            counts: self.counts,
            priority,
            stored: self.pool.stored(),
            fault,
        });
        close(self.entrances, self.exits);
    }

    fn work(&mut self, stop: &AtomicBool, waker: &EventFd) {
        self.looks = Looks::new(self.clock.now(), self.timing.stall);
        while !stop.load(Ordering::Relaxed) {
            let now = self.clock.now();
            self.looks.at(now);
            #[cfg(test)]
            self.fail();
            if self.ended {
                self.sleep_unless_woken(now + LONGEST_SLEEP, waker);
                continue;
            }
            self.take_in();
            let end = self.end();
            self.proceed(now, end);
            // Until then packets of before the end may still become visible.
            if now - self.timing.settle > end {
                self.finish(now, end);
            } else {
                self.wait(now, waker);
            }
        }
        if !self.ended {
            let now = self.clock.now();
            self.finish(now, now.min(self.end()));
        }
    }

    /// Takes packets from the rings, in the order of their stamps, and says how many.
    fn take_in(&mut self) -> usize {
        let (mut reading, mut frames) = (None, 0);
        let before = self.arrivals.len();
        for number in 0..self.entrances.len() {
            for _ in 0..AT_ONCE {
                let Self {
                    entrances, pool, flows, routes, links, recorder, counts, longest, clock, thins, seed, ..
                } = self;
                let entrance = &mut entrances[number];
                let destinations = &entrance.routes;
                let taken = entrance.ring.receive(|frame| {
                    if frame.length > *longest {
                        counts.above_mtu += 1;
                        return None;
                    }
                    let parsed = wire::parse(frame.bytes)?;
                    let next = flows.len() as u32;
                    let (flow, route) = *flows.entry((number as u16, parsed.key)).or_insert_with(|| {
                        if let Some(recorder) = recorder {
                            recorder.flow(parsed.key);
                        }
                        let choice = destinations.get(&parsed.key.destination);
                        let route = choice.map(|choice| choice.of(&parsed.key, *seed));
                        let on_the_way = route.iter().flat_map(|route| &routes[usize::from(*route)].links);
                        for link in on_the_way {
                            links[usize::from(*link)].introduce(next, &parsed.key);
                        }
                        (next, route)
                    });
                    let Some(route) = route else {
                        counts.astray += 1;
                        return None;
                    };
                    counts.arrived += 1;
                    if routes[usize::from(route)].links.is_empty() {
                        counts.unlimited_bytes += u64::from(parsed.bytes);
                    }
                    let Some(place) = pool.put(frame.bytes) else {
                        counts.no_room += 1;
                        return None;
                    };
                    let reading = *reading.get_or_insert_with(|| clock.read_wall());
                    let stamp = clock.of_stamp(frame.stamp, reading);
                    let before = routes[usize::from(route)].before;
                    let handle = Handle {
                        place,
                        bytes: parsed.bytes,
                        flow,
                        route,
                        step: 0,
                        ecn: parsed.ecn,
                        ack: if *thins { wire::pure_ack(frame.bytes, &parsed) } else { None },
                        marked_here: false,
                        arrived: stamp,
                    };
                    Some((stamp + before, handle, !before.is_zero()))
                });
                frames += usize::from(taken.is_some());
                match taken {
                    None => break,
                    Some(None) => {}
                    Some(Some((time, handle, true))) => self.schedule(time, Step::Reach(handle)),
                    Some(Some((time, handle, false))) => self.arrivals.push_back((time, handle)),
                }
            }
        }
        // One interface delivers in order; several, or different delays, do not.
        if self.arrivals.len() > before && !self.arrivals.iter().is_sorted_by_key(|(time, _)| *time) {
            self.arrivals.make_contiguous().sort_by_key(|(time, _)| *time);
        }
        frames
    }

    /// Does everything that is due at `now`, in order of time, but nothing that is after the end.
    fn proceed(&mut self, now: Time, end: Time) {
        // Packets stamped in the last moments may not be visible yet; steps wait for them if they
        // can.
        let settled = if self.leeway.is_zero() { now } else { now - self.timing.settle };
        let (now, settled) = (now.min(end), settled.min(end));
        loop {
            let departure = self.departures.peek().map_or(Time::NEVER, |Reverse(due)| due.time);
            if departure <= now {
                if let Some(Reverse(due)) = self.departures.pop() {
                    self.depart(due.time, due.what);
                }
                continue;
            }
            let arrival = self.arrivals.front().map_or(Time::NEVER, |(time, _)| *time);
            let step = self.steps.peek().map_or(Time::NEVER, |Reverse(due)| due.time);
            if arrival.min(step) > settled {
                return;
            }
            if arrival <= step {
                if let Some((time, handle)) = self.arrivals.pop_front() {
                    if self.reached.since(time) > LATE_ARRIVAL {
                        self.counts.late_arrivals += 1;
                    }
                    self.reached = self.reached.max(time);
                    self.reach(self.reached, handle);
                }
            } else if let Some(Reverse(due)) = self.steps.pop() {
                self.reached = self.reached.max(due.time);
                match due.what {
                    Step::Reach(handle) => self.reach(due.time, handle),
                    Step::Wake(link) => {
                        if self.links[usize::from(link)].wake == due.time {
                            self.operate(link, |engine, events| {
                                engine.links[usize::from(link)].transmit(due.time, events);
                            });
                        }
                    }
                }
            }
        }
    }

    /// A packet reaches its next link, or the end of the way.
    fn reach(&mut self, now: Time, handle: Handle) {
        let route = &self.routes[usize::from(handle.route)];
        match route.links.get(usize::from(handle.step)) {
            None => {
                let time = now + route.after;
                self.schedule_departure(time, handle);
            }
            Some(link) => {
                let number = *link;
                self.operate(number, |engine, events| {
                    let Self { links, pool, .. } = engine;
                    let link = &mut links[usize::from(number)];
                    let packet = |pool: &mut Pool| link.requests.arrives(&mut pool.get_mut(handle.place)[ETHERNET..]);
                    if link.requests.drops() && !packet(pool) {
                        return link.lose(Handle { arrived: now, ..handle }, events);
                    }
                    pool.comes(number, Handle { arrived: now, marked_here: false, ..handle });
                    link.arrive(now, handle, events);
                });
            }
        }
    }

    fn schedule_departure(&mut self, time: Time, handle: Handle) {
        self.order += 1;
        self.departures.push(Reverse(Due { time, order: self.order, what: handle }));
    }

    fn schedule(&mut self, time: Time, what: Step) {
        self.order += 1;
        self.steps.push(Reverse(Due { time, order: self.order, what }));
    }

    /// Does something with a link and deals with what comes of it.
    fn operate(&mut self, link: u16, act: impl FnOnce(&mut Self, &mut Vec<PacketEvent>)) {
        let mut events = std::mem::take(&mut self.events);
        let asleep = self.links[usize::from(link)].wake;
        act(self, &mut events);
        let wake = self.links[usize::from(link)].wake;
        if wake != asleep && wake != Time::NEVER {
            self.schedule(wake, Step::Wake(link));
        }
        for event in events.drain(..) {
            match event {
                PacketEvent::Lost(handle) => {
                    self.note(link, &handle, Fate::Lost, Time::NEVER);
                    self.pool.release(handle.place);
                }
                PacketEvent::Dropped(handle, reason) => {
                    let at = self.reached;
                    self.note(link, &handle, Fate::Dropped { at, reason }, Time::NEVER);
                    self.pool.release(handle.place);
                }
                PacketEvent::Sent { mut frame, done, arrival } => {
                    self.pool.goes(frame.place);
                    let route = &self.routes[usize::from(frame.route)];
                    let last = usize::from(frame.step) + 1 >= route.links.len();
                    let after = route.after;
                    let delivery = if last { arrival + after } else { Time::NEVER };
                    let began = self.reached;
                    let packet = &mut self.pool.get_mut(frame.place)[ETHERNET..];
                    self.links[usize::from(link)].requests.leaves(began, packet);
                    self.note(link, &frame, Fate::Sent { began, done }, delivery);
                    frame.step += 1;
                    if last {
                        self.schedule_departure(delivery, frame);
                    } else {
                        self.schedule(arrival, Step::Reach(frame));
                    }
                }
            }
        }
        self.events = events;
    }

    /// Writes down what became of a packet.
    #[inline]
    fn note(&mut self, link: u16, handle: &Handle, fate: Fate, delivery: Time) {
        let Some(recorder) = &mut self.recorder else { return };
        let entry = Entry {
            link: self.names[usize::from(link)] as u32,
            flow: handle.flow,
            arrived: handle.arrived,
            fate,
            delivery,
            bytes: handle.bytes,
            ecn: handle.ecn,
            marked_here: handle.marked_here,
            snapped: 0,
        };
        recorder.record(entry, self.pool.get(handle.place));
    }

    /// Gives a packet to its host, which was due at `due`.
    fn depart(&mut self, due: Time, handle: Handle) {
        let delivery = &self.exits[usize::from(self.routes[usize::from(handle.route)].exit)];
        let frame = self.pool.get_mut(handle.place);
        frame[..6].copy_from_slice(&delivery.to);
        frame[6..12].copy_from_slice(&delivery.from);
        if handle.ecn == flowstart_network::Ecn::Ce {
            wire::set_ce(frame);
        }
        let now = self.clock.now();
        // Between two packets, too, an engine can lose the processor.
        self.looks.at(now);
        self.lateness.record(now.since(due));
        if self.timing.tell_given {
            let tcp = Tcp::read(frame, handle.bytes);
            self.given.push(Given { host: delivery.host, due, at: now, tcp });
        }
        if delivery.exit.send(self.pool.get(handle.place)) {
            self.counts.delivered += 1;
        } else {
            self.counts.refused += 1;
        }
        self.pool.release(handle.place);
    }
}

fn processors() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |processors| processors.get() as f64)
}

/// What a fault of the program said.
pub(crate) fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no reason was given".to_owned())
}
