//! Delays and deliveries of a connection in the simulator.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use flowstart_simulator::{FlowId, Observer, Simulation, SimulationConfig};
use flowstart_units::{Bytes, Rate, Span, Time};

use super::MESSAGE;
use crate::race::RaceError;

/// Virtual time between looks at whether the train is still wanted.
const SLICE: Span = Span::from_millis(500);

/// What is seen of the probing application.
struct Messages {
    flow: FlowId,
    start: Time,
    gap: Span,
    read: u64,
    /// Delays of messages not taken yet.
    delays: Rc<RefCell<VecDeque<Span>>>,
}

impl Observer for Messages {
    fn delivered(&mut self, now: Time, flow: FlowId, total: u64) {
        if flow != self.flow {
            return;
        }
        let mut delays = self.delays.borrow_mut();
        while total / MESSAGE > self.read {
            // The application hands over message n at its time, whether the socket has room or not.
            delays.push_back(now.since(self.start + self.gap * self.read));
            self.read += 1;
        }
    }
}

/// A constant-rate train through the full transport: an iterator over the delays of its messages, simulated as they are asked for.
pub(super) struct Train<'a> {
    simulation: Simulation<Messages>,
    delays: Rc<RefCell<VecDeque<Span>>>,
    until: Time,
    over: bool,
    unwanted: &'a dyn Fn() -> bool,
}

impl<'a> Train<'a> {
    /// The messages of `flow`, a paced application of `rate` that starts at `start`; ends early once it is `unwanted`.
    pub(super) fn new(
        config: &SimulationConfig,
        flow: FlowId,
        start: Time,
        rate: Rate,
        unwanted: &'a dyn Fn() -> bool,
    ) -> Result<Self, RaceError> {
        let delays = Rc::new(RefCell::new(VecDeque::new()));
        let gap = rate.transmission_time(Bytes::new(MESSAGE)).max(Span::from_nanos(1));
        let messages = Messages { flow, start, gap, read: 0, delays: Rc::clone(&delays) };
        let simulation = Simulation::new(config, messages).map_err(|error| RaceError::new(error.to_string()))?;
        Ok(Self { simulation, delays, until: start, over: false, unwanted })
    }

    /// The virtual time up to now.
    pub(super) fn now(&self) -> Time {
        self.simulation.now()
    }
}

impl Iterator for Train<'_> {
    type Item = Span;
    fn next(&mut self) -> Option<Span> {
        loop {
            if let Some(delay) = self.delays.borrow_mut().pop_front() {
                return Some(delay);
            }
            if self.over || (self.unwanted)() {
                return None;
            }
            self.until += SLICE;
            self.over = self.simulation.run_until(self.until);
        }
    }
}

/// What a new connection delivers by given times after its start.
pub(super) struct Deliveries {
    flow: FlowId,
    start: Time,
    times: Vec<Span>,
    /// Bits at each of the times that have passed.
    pub(super) bits: Vec<u64>,
    total: u64,
}

impl Deliveries {
    pub(super) fn new(flow: FlowId, start: Time, times: Vec<Span>) -> Self {
        Self { flow, start, times, bits: Vec::new(), total: 0 }
    }

    /// Notes the total at all times before `now`.
    fn pass(&mut self, now: Time) {
        while self.times.get(self.bits.len()).is_some_and(|time| self.start + *time < now) {
            self.bits.push(self.total);
        }
    }

    /// The bits at every time; after the last delivery nothing came.
    pub(super) fn finish(mut self) -> Vec<u64> {
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
