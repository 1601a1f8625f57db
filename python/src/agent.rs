//! An agent that acts once per round trip: as a flow start that sends chirps, or as a congestion
//! control that sets the window. What it is told and what it may do are the same in training and in
//! a race.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flowstart::congestion::{
    Ack, AfterAck, CongestionAvoidance, Departure, Exit, ExitReason, FlowStart, Next, Response, Sent, Signal, Window,
};
use flowstart::units::{Rate, Span, Time};

/// Numbers that an agent is told.
pub(crate) const OBSERVED: usize = 10;
/// Numbers that an agent answers.
pub(crate) const ACTIONS: usize = 3;
/// Fewest and most packets per interval.
const FEWEST: f64 = 2.0;
const MOST: f64 = 1e6;
/// ... and this many times what arrived in any interval so far, unless that is few: an agent that
/// quadruples what it sends every round trip has sent 16 times what it sees arrive.
const AHEAD: f64 = 16.0;
/// Packets of an interval that are few.
const FEW: f64 = 1024.0;
/// What a packet counts as beside its payload, in bytes, where an agent's window is paced: as much
/// as IPv4, TCP and timestamps take on the wire. Rates of pacing are of payload, so that with a
/// payload of 1448 bytes a window leaves in 0.804 of a smoothed round trip, and not in 1/1.2 of it.
const HEADER: f64 = 52.0;
/// So many such windows per smoothed round trip.
const HASTE: f64 = 1.2;

/// What an agent decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Action {
    /// Factor of the packets of the next interval, as a logarithm to base 2, in -2 to 2.
    pub(crate) growth: f64,
    /// How much the gaps shrink over the interval, 0 (even) to 1 (from twice the mean to none).
    pub(crate) shape: f64,
    /// Above 0: leave the start.
    pub(crate) leave: f64,
}

impl Action {
    pub(crate) fn of(values: &[f64]) -> Self {
        let value = |index: usize| values.get(index).copied().filter(|value| value.is_finite()).unwrap_or(0.0);
        Self { growth: value(0).clamp(-2.0, 2.0), shape: value(1).clamp(0.0, 1.0), leave: value(2) }
    }
}

/// What was seen since the last action.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) acked: f64,
    pub(crate) acked_bytes: f64,
    pub(crate) sent: f64,
    pub(crate) lost: f64,
    pub(crate) marked: f64,
    samples: f64,
    rtt_sum: f64,
    rtt_first: f64,
    rtt_last: f64,
    rtt_least: f64,
    rtt_most: f64,
}

impl Seen {
    fn on_ack(&mut self, ack: &Ack) {
        self.acked += f64::from(ack.acked);
        self.acked_bytes += ack.acked_bytes as f64;
        self.lost += f64::from(ack.newly_lost());
        self.marked += f64::from(ack.marked);
        if let Some(rtt) = ack.rtt.map(Span::as_secs_f64) {
            if self.samples == 0.0 {
                (self.rtt_first, self.rtt_least) = (rtt, rtt);
            }
            self.samples += 1.0;
            self.rtt_sum += rtt;
            self.rtt_last = rtt;
            self.rtt_least = self.rtt_least.min(rtt);
            self.rtt_most = self.rtt_most.max(rtt);
        }
    }

    /// Mean round-trip time in seconds, if there was any.
    pub(crate) fn mean_rtt(&self) -> Option<f64> {
        (self.samples > 0.0).then(|| self.rtt_sum / self.samples)
    }
}

/// The state that an agent's algorithm shares with whoever decides.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) seen: Seen,
    /// Packets of an interval.
    load: f64,
    /// Most packets that arrived in an interval.
    arrived: f64,
    shape: f64,
    pub(crate) leave: bool,
    /// The start is over.
    pub(crate) over: bool,
    /// When the next decision is due, never before the first interval; planned departures end here.
    pub(crate) due: Time,
    min_rtt: f64,
    plan: VecDeque<Time>,
    /// Departures are planned: the agent is a start.
    plans: bool,
    intervals: f64,
    in_flight: f64,
}

/// Shared by the simulation and whoever decides.
#[derive(Clone, Debug)]
pub(crate) struct Agent(Arc<Mutex<Shared>>);

impl Agent {
    /// One that sends `initial` packets in its first interval; with `plans` it says when each
    /// leaves.
    pub(crate) fn new(initial: u32, plans: bool) -> Self {
        Self(Arc::new(Mutex::new(Shared {
            seen: Seen::default(),
            load: f64::from(initial),
            arrived: 0.0,
            shape: 0.0,
            leave: false,
            over: false,
            due: Time::NEVER,
            min_rtt: 0.0,
            plan: VecDeque::new(),
            plans,
            intervals: 0.0,
            in_flight: 0.0,
        })))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Takes an ACK in.
    pub(crate) fn hear(&mut self, ack: &Ack) {
        self.seen.on_ack(ack);
        self.in_flight = f64::from(ack.in_flight);
        if ack.min_rtt != Span::MAX && ack.min_rtt > Span::ZERO {
            self.min_rtt = ack.min_rtt.as_secs_f64();
        }
    }

    /// The round-trip time is known.
    fn heard(&self) -> bool {
        self.min_rtt > 0.0
    }

    /// Length of an interval in seconds: the smallest round-trip time.
    pub(crate) fn base(&self) -> f64 {
        if self.min_rtt > 0.0 { self.min_rtt } else { 1e-3 }
    }

    /// Asks `policy` what was due before `now`, for every interval, as an environment does: an ACK
    /// that comes after the end of an interval belongs to the next one.
    fn ask_until(&mut self, now: Time, policy: &Policy) {
        // Only a start can be left.
        while self.due < now && self.min_rtt > 0.0 && !(self.plans && self.leave) {
            let answer = policy(&self.observe());
            self.decide(Action::of(&answer), self.due, self.min_rtt);
        }
    }

    /// A new interval without a decision.
    pub(crate) fn forget(&mut self) {
        self.seen = Seen::default();
    }

    /// What the agent is told: see `OBSERVATION` of the Python package.
    pub(crate) fn observe(&self) -> [f64; OBSERVED] {
        let seen = &self.seen;
        let base = if self.min_rtt > 0.0 { self.min_rtt } else { 1.0 };
        let over = |rtt: f64| if rtt > 0.0 { (rtt / base - 1.0).clamp(0.0, 10.0) } else { 0.0 };
        let share = |part: f64, whole: f64| if whole > 0.0 { (part / whole).clamp(0.0, 4.0) } else { 0.0 };
        [
            libm::log2(self.load) / 10.0,
            over(seen.mean_rtt().unwrap_or(0.0)),
            over(seen.rtt_least),
            over(seen.rtt_most),
            ((seen.rtt_last - seen.rtt_first) / base).clamp(-10.0, 10.0),
            share(seen.acked, self.load),
            share(seen.lost, seen.acked + seen.lost),
            share(seen.marked, seen.acked),
            share(self.in_flight, self.load),
            (self.intervals / 20.0).min(5.0),
        ]
    }

    /// Takes a decision for the interval from `now` to `now + interval` seconds.
    pub(crate) fn decide(&mut self, action: Action, now: Time, interval: f64) {
        self.arrived = self.arrived.max(self.seen.acked);
        let most = (self.arrived * AHEAD).clamp(FEW, MOST);
        self.load = (self.load * libm::exp2(action.growth)).clamp(FEWEST, most);
        self.shape = action.shape;
        self.leave |= action.leave > 0.0;
        self.seen = Seen::default();
        self.intervals += 1.0;
        self.due = now + Span::from_secs_f64(interval);
        self.plan.clear();
        if self.plans && !self.leave && !self.over {
            self.chirp(now, interval);
        }
    }

    /// Departures of the interval: gaps shrink evenly from `1 + shape` to `1 - shape` of the mean.
    fn chirp(&mut self, now: Time, interval: f64) {
        let packets = self.load.round().max(FEWEST);
        let mean = interval / packets;
        let mut at = 0.0;
        for index in 0..packets as u64 {
            self.plan.push_back(now + Span::from_secs_f64(at));
            let along = if packets > 1.0 { index as f64 / (packets - 1.0) } else { 0.0 };
            at += mean * (1.0 + self.shape * (1.0 - 2.0 * along));
        }
    }
}

/// Decides for an agent in a race: from what it is told to what it does.
pub(crate) type Policy = Arc<dyn Fn(&[f64; OBSERVED]) -> [f64; ACTIONS] + Send + Sync>;

/// The agent as a flow start. In training `policy` is absent: the environment decides.
#[derive(Clone)]
pub(crate) struct AgentStart {
    pub(crate) agent: Agent,
    pub(crate) policy: Option<Policy>,
}

impl AgentStart {
    /// Asks the policy for what was due before `now`.
    fn decide_until(&self, shared: &mut Shared, now: Time) {
        if let Some(policy) = &self.policy
            && !shared.over
        {
            shared.ask_until(now, policy);
        }
    }
}

impl FlowStart for AgentStart {
    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> AfterAck {
        let mut shared = self.agent.lock();
        self.decide_until(&mut shared, ack.now);
        shared.hear(ack);
        if !shared.leave {
            return AfterAck::Continue;
        }
        shared.over = true;
        // What the last interval carried fits into the path; more would stand in its queue.
        let cwnd = (shared.load.round() as u32).max(2);
        window.cwnd = cwnd;
        AfterAck::Done(Exit { reason: ExitReason::PipeFull, cwnd, ssthresh: cwnd, rate: None })
    }

    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        // The plan decides, not the window.
        let shared = self.agent.lock();
        let room = ack.in_flight.saturating_add(shared.plan.len() as u32).saturating_add(ack.acked);
        window.cwnd = room.max(window.cwnd).max(4);
        0
    }

    fn on_sent(&mut self, sent: &Sent) {
        let mut shared = self.agent.lock();
        shared.seen.sent += 1.0;
        shared.in_flight = f64::from(sent.in_flight);
        if !sent.retransmission {
            shared.plan.pop_front();
        }
    }

    fn departure(&mut self, now: Time, next: &Next, _window: &Window) -> Option<Departure> {
        let mut shared = self.agent.lock();
        if shared.intervals == 0.0 {
            // The first question comes right after the handshake: its round trip is the interval.
            let srtt = next.srtt.as_secs_f64().max(1e-4);
            shared.min_rtt = srtt;
            shared.intervals = 1.0;
            shared.due = now + Span::from_secs_f64(srtt);
            shared.chirp(now, srtt);
        }
        self.decide_until(&mut shared, now);
        Some(match shared.plan.front() {
            Some(at) if *at > now => Departure::At(*at),
            Some(_) => Departure::Now,
            // Right after the next decision.
            None if shared.due >= now => Departure::At(shared.due + Span::from_nanos(1)),
            None => Departure::Hold,
        })
    }

    fn on_signal(&mut self, _now: Time, _signal: Signal, _window: &mut Window) -> Response {
        self.agent.lock().over = true;
        Response::Leave
    }

    fn owns_window(&self) -> bool {
        true
    }
}

/// A start that is over with the first ACK: the agent is an avoidance.
#[derive(Clone)]
pub(crate) struct NoStart;

impl FlowStart for NoStart {
    fn on_ack(&mut self, _ack: &Ack, window: &mut Window) -> AfterAck {
        let cwnd = window.cwnd;
        AfterAck::Done(Exit { reason: ExitReason::Limit, cwnd, ssthresh: cwnd, rate: None })
    }

    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        window.slow_start(ack.acked)
    }
}

/// The agent as a congestion control: the load is the window, paced over most of a smoothed round
/// trip ([`HASTE`], [`HEADER`]).
#[derive(Clone)]
pub(crate) struct AgentControl {
    pub(crate) agent: Agent,
    pub(crate) policy: Option<Policy>,
    pub(crate) mss: u32,
    pub(crate) srtt: f64,
    /// The window is the agent's: in a race once the start before it is over.
    pub(crate) in_charge: bool,
}

impl AgentControl {
    /// Takes the window over as the start left it, and what its last ACK said: what was seen
    /// before is not the agent's doing.
    fn take_over(&mut self, window: &Window) {
        if !self.in_charge {
            self.in_charge = true;
            self.agent.lock().load = f64::from(window.cwnd).clamp(FEWEST, MOST);
        }
    }
}

impl CongestionAvoidance for AgentControl {
    fn begin_flow(&mut self, window: &Window) -> bool {
        self.take_over(window);
        true
    }

    fn own_exit(&self) -> Option<ExitReason> {
        self.agent.lock().heard().then_some(ExitReason::Limit)
    }

    fn on_takeover(&mut self, _now: Time, window: &Window, _rate: Option<Rate>) {
        self.take_over(window);
    }

    fn on_ack(&mut self, ack: &Ack, _window: &Window) {
        self.srtt = ack.srtt.as_secs_f64();
        let mut shared = self.agent.lock();
        if !self.in_charge {
            shared.forget();
            shared.hear(ack);
            return;
        }
        if let Some(policy) = &self.policy {
            shared.ask_until(ack.now, policy);
        }
        shared.hear(ack);
        if shared.due == Time::NEVER && shared.min_rtt > 0.0 {
            // The first decision is due after an interval that is the agent's.
            shared.due = ack.now + Span::from_secs_f64(shared.min_rtt);
        }
    }

    fn grow(&mut self, _ack: &Ack, _acked: u32, window: &mut Window) {
        self.take_over(window);
        window.cwnd = self.agent.lock().load.round() as u32;
    }

    fn reduce(&mut self, _now: Time, signal: Signal, window: &Window) -> u32 {
        self.take_over(window);
        // A timeout is beyond what an agent can learn from: the flow begins again from little.
        if signal == Signal::Timeout {
            self.agent.lock().load = 4.0;
        }
        window.cwnd.max(2)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let bytes = self.agent.lock().load * (f64::from(self.mss) + HEADER);
        (self.in_charge && self.srtt > 0.0)
            .then(|| Rate::from_bps((HASTE * bytes * 8.0 / self.srtt).max(1000.0) as u64))
    }

    fn controls_recovery(&self) -> bool {
        true
    }
}
