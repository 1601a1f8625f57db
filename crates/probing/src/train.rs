//! Delays and deliveries of a connection in the simulator.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use flowstart_network::Packet;
use flowstart_network::packet::Body;
use flowstart_simulator::{FlowId, Observer, Simulation, SimulationConfig};
use flowstart_transport::Sender;
use flowstart_units::{Bytes, Rate, Span, Time};

use super::passage::{Passage, PassageSample};

/// Virtual time between looks at whether the train is still wanted.
const SLICE: Span = Span::from_millis(500);

/// The connection that a train runs on.
#[derive(Clone, Copy, Debug)]
pub struct TrainConfig {
    /// Its number in the simulation.
    pub flow: FlowId,
    /// When its application starts to write.
    pub start: Time,
    /// The application's rate.
    pub rate: Rate,
    /// Bytes per write, at least 1.
    pub message: u64,
}

/// What is shared with the simulation's observer.
struct Seen {
    /// Delays of messages not taken yet.
    delays: VecDeque<Span>,
    /// Where they spent them, if that is asked for.
    passage: Option<Passage>,
}

/// When the last byte of a message first left and first arrived.
#[derive(Clone, Copy, Default)]
struct Stamp {
    sent: Option<Time>,
    received: Option<Time>,
}

/// What is seen of the probing application.
struct Messages {
    config: TrainConfig,
    gap: Span,
    read: u64,
    /// From message `read` on; none if nobody asks where messages spend their time.
    stamps: VecDeque<Stamp>,
    stamped: bool,
    /// Data packets of all flows.
    packets: u64,
    seen: Rc<RefCell<Seen>>,
}

impl Messages {
    /// Sets a stamp of every message that ends in a segment, unless it is set.
    fn stamp(&mut self, packet: &Packet, which: impl Fn(&mut Stamp)) {
        let Body::Segment(segment) = &packet.body else { return };
        let ended = |bytes: u64| bytes / self.config.message;
        for message in ended(segment.seq)..ended(segment.seq + u64::from(segment.payload)) {
            let Some(place) = message.checked_sub(self.read) else { continue };
            let place = place as usize;
            if self.stamps.len() <= place {
                self.stamps.resize(place + 1, Stamp::default());
            }
            which(&mut self.stamps[place]);
        }
    }
}

impl Observer for Messages {
    #[inline]
    fn sent(&mut self, now: Time, packet: &Packet) {
        if matches!(packet.body, Body::Segment(_)) {
            self.packets += 1;
            if self.stamped && packet.flow == self.config.flow {
                self.stamp(packet, |stamp| stamp.sent = stamp.sent.or(Some(now)));
            }
        }
    }

    #[inline]
    fn received(&mut self, now: Time, packet: &Packet) {
        if self.stamped && packet.flow == self.config.flow {
            self.stamp(packet, |stamp| stamp.received = stamp.received.or(Some(now)));
        }
    }

    #[inline]
    fn delivered(&mut self, now: Time, flow: FlowId, total: u64) {
        if flow == self.config.flow {
            self.read(now, total);
        }
    }

    #[inline]
    fn sender(&mut self, now: Time, flow: FlowId, sender: &Sender) {
        if self.stamped && flow == self.config.flow {
            self.look(now, sender);
        }
    }
}

impl Messages {
    /// The probe's messages were read up to the byte `total`.
    fn read(&mut self, now: Time, total: u64) {
        let mut seen = self.seen.borrow_mut();
        while total / self.config.message > self.read {
            // The application hands over message n at its time, whether the socket has room or not.
            let written = self.config.start + self.gap * self.read;
            seen.delays.push_back(now.since(written));
            let stamp = self.stamps.pop_front().unwrap_or_default();
            if let (Some(passage), Some(sent), Some(received)) = (&mut seen.passage, stamp.sent, stamp.received) {
                passage.record(PassageSample { written, sent, received, read: now });
            }
            self.read += 1;
        }
    }

    /// The probe's sender has sent what it could.
    fn look(&mut self, now: Time, sender: &Sender) {
        if let Some(passage) = &mut self.seen.borrow_mut().passage {
            passage.window(now, f64::from(sender.controller().cwnd()));
        }
    }
}

/// A constant-rate train through the full transport: an iterator over the delays of its messages,
/// simulated as they are asked for.
pub struct Train<'a> {
    simulation: Simulation<Messages>,
    seen: Rc<RefCell<Seen>>,
    until: Time,
    over: bool,
    unwanted: &'a dyn Fn() -> bool,
}

impl<'a> Train<'a> {
    /// The messages of a paced application; ends early once it is `unwanted`. With a `passage` more
    /// is recorded than delays.
    ///
    /// # Errors
    /// What is wrong with the simulation, or that a message has no bytes.
    pub fn new(
        simulation: &SimulationConfig,
        config: TrainConfig,
        passage: Option<Passage>,
        unwanted: &'a dyn Fn() -> bool,
    ) -> Result<Self, String> {
        if config.message == 0 {
            return Err("a message has at least one byte".to_owned());
        }
        let stamped = passage.is_some();
        let seen = Rc::new(RefCell::new(Seen { delays: VecDeque::new(), passage }));
        let gap = config.rate.transmission_time(Bytes::new(config.message)).max(Span::from_nanos(1));
        let seen_too = Rc::clone(&seen);
        let messages = Messages { config, gap, read: 0, stamps: VecDeque::new(), stamped, packets: 0, seen: seen_too };
        let simulation = Simulation::new(simulation, messages).map_err(|error| error.to_string())?;
        Ok(Self { simulation, seen, until: config.start, over: false, unwanted })
    }

    /// The virtual time up to now.
    pub fn now(&self) -> Time {
        self.simulation.now()
    }

    /// Data packets that all flows have sent.
    pub fn packets(&self) -> u64 {
        self.simulation.observer().packets
    }

    /// Goes on to `time` without giving delays out.
    pub fn skip_to(&mut self, time: Time) {
        while self.until < time && !self.over && !(self.unwanted)() {
            self.step();
            self.seen.borrow_mut().delays.clear();
        }
    }

    /// What was recorded beside the delays, once.
    pub fn take_passage(&mut self) -> Option<Passage> {
        self.seen.borrow_mut().passage.take()
    }

    fn step(&mut self) {
        self.until += SLICE;
        self.over = self.simulation.run_until(self.until);
    }
}

impl Iterator for Train<'_> {
    type Item = Span;
    fn next(&mut self) -> Option<Span> {
        loop {
            if let Some(delay) = self.seen.borrow_mut().delays.pop_front() {
                return Some(delay);
            }
            if self.over || (self.unwanted)() {
                return None;
            }
            self.step();
        }
    }
}

/// What a new connection delivers by given times after its start.
pub struct Deliveries {
    flow: FlowId,
    start: Time,
    times: Vec<Span>,
    /// Bits at each of the times that have passed.
    pub bits: Vec<u64>,
    total: u64,
}

impl Deliveries {
    /// Of connection `flow` since `start`, at these times after it.
    #[must_use]
    pub fn new(flow: FlowId, start: Time, times: Vec<Span>) -> Self {
        Self { flow, start, times, bits: Vec::new(), total: 0 }
    }

    /// Notes the total at all times before `now`.
    fn pass(&mut self, now: Time) {
        while self.times.get(self.bits.len()).is_some_and(|time| self.start + *time < now) {
            self.bits.push(self.total);
        }
    }

    /// The bits at every time; after the last delivery nothing came.
    pub fn finish(mut self) -> Vec<u64> {
        self.bits.resize(self.times.len(), self.total);
        self.bits
    }
}

impl Observer for Deliveries {
    fn delivered(&mut self, now: Time, flow: FlowId, total: u64) {
        if flow == self.flow {
            self.pass(now);
            self.total = Bytes::new(total).bits();
        }
    }
}

#[cfg(test)]
mod tests {
    use flowstart_simulator::Stop;

    use super::*;

    #[test]
    fn a_train_of_messages_without_bytes_is_refused() {
        let simulation = SimulationConfig {
            links: Vec::new(),
            ways: Vec::new(),
            flows: Vec::new(),
            arrivals: Vec::new(),
            sessions: Vec::new(),
            stop: Stop::At(Time::ZERO),
            seed: 0,
            run: 0,
        };
        let config = |message| TrainConfig { flow: 0, start: Time::ZERO, rate: Rate::from_bps(8000), message };
        let refused = |message| Train::new(&simulation, config(message), None, &|| false).err();
        assert_eq!(refused(0).as_deref(), Some("a message has at least one byte"));
        assert_eq!(refused(1), None);
    }
}
