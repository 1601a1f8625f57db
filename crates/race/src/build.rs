//! From a race to scenarios and simulations.

use std::ops::Range;

use flowstart_congestion::avoidance::cubic::CubicConfig;
use flowstart_congestion::start::oracle::{OracleBucket, OracleConfig, OracleStep};
use flowstart_congestion::{AvoidanceConfig, ControllerConfig, Pacing, StartConfig};
use flowstart_network::{RateSchedule, Transmitter};
use flowstart_random::{Purpose as Stream, below};
use flowstart_simulator::{FlowId, SimulationConfig};
use flowstart_units::{Bytes, Rate, Span, Time};

use super::sharing::companions_of_others;
use super::{Background, Contestant, HEADER_BYTES, MSS, Race, RaceError};
use flowstart_measure::{Asked, LinkAsked, Origin, wire_bytes};
use flowstart_scenario::{Dialect, FlowSpec, OutputSpec, QueueSpec, Scenario};

/// How many RTT0 past the horizon are simulated and recorded: the utilisation after the exit is
/// watched for 10, M2 needs 2.
const AFTER_HORIZON_RTTS: u64 = 12;
/// Background flows start one after the other, so that they do not lose in step.
const STAGGER: Span = Span::from_millis(100);
/// With others there, newcomers come at a random moment within this many RTT0, at least within
/// [`MIN_PHASE`]: about one saw-tooth of CUBIC at 100 Mbit/s and 20 ms.
pub(super) const PHASE_RTTS: u64 = 250;
pub(super) const MIN_PHASE: Span = Span::from_secs(5);
/// A transfer is given up after this many times its ideal completion time and [`PATIENCE`].
const PATIENCE_FACTOR: u64 = 100;
const PATIENCE: Span = Span::from_secs(600);
/// Initial window in packets (RFC 6928 section 2).
const INITIAL_WINDOW: u32 = 10;

/// What one simulation of a race is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Greedy newcomers.
    Start,
    /// The same without the newcomers.
    Without,
    /// One newcomer with this much to send.
    Transfer(Bytes),
}

/// Bytes of a full packet.
const FULL_PACKET: u64 = (MSS + HEADER_BYTES) as u64;

/// Bytes of the last packet of a transfer.
fn last_packet(size: Bytes) -> Bytes {
    let packets = wire_bytes(size, MSS, HEADER_BYTES).get();
    Bytes::new(packets - packets.saturating_sub(1) / FULL_PACKET * FULL_PACKET)
}

/// What of so many bytes does not pass at once.
fn beyond(bytes: Bytes, burst: Bytes) -> Bytes {
    Bytes::new(bytes.get().saturating_sub(burst.get()))
}

impl Background {
    /// As flows of a scenario; `before` others stand before them.
    #[must_use]
    pub fn spec(&self, before: u32) -> FlowSpec {
        FlowSpec {
            name: Some(format!("background {}", self.flow.name())),
            count: self.count,
            start: STAGGER * u64::from(before),
            every: if self.count == 1 { Span::ZERO } else { STAGGER },
            ..self.flow.spec()
        }
    }
}

impl Contestant {
    /// True if the avoidance starts the flow, too, and says from the first packet on at which rate
    /// packets leave.
    fn paces_itself(&self) -> bool {
        self.start == StartConfig::BuiltIn && self.avoidance.brings_start()
    }

    /// The avoidance; on Linux's hosts CUBIC goes by ticks of the kernel's clock.
    fn ticking(&self) -> AvoidanceConfig {
        match &self.avoidance {
            AvoidanceConfig::Cubic(config) if self.dialect == Some(Dialect::Linux) => {
                AvoidanceConfig::Cubic(CubicConfig { hz: config.hz.or(Some(CubicConfig::LINUX_HZ)), ..*config })
            }
            other => other.clone(),
        }
    }

    /// The start; its dialect's constants take the place of the default ones, and of no others.
    fn starting(&self, habits: Option<&FlowSpec>) -> StartConfig {
        let is_usual = StartConfig::from_name(self.start.name()).is_ok_and(|usual| usual == self.start);
        let theirs = habits.and_then(|habits| habits.flow_start.clone()).filter(|_| is_usual);
        theirs.unwrap_or_else(|| self.start.clone())
    }

    /// One greedy flow, started at once, as a flow of a scenario.
    #[must_use]
    pub fn spec(&self) -> FlowSpec {
        let habits = self.habits();
        FlowSpec {
            name: Some(self.name()),
            algorithm: Some(format!("{}+{}", self.start.name(), self.avoidance.name())),
            dialect: None,
            kernel: None,
            flow_start: Some(self.starting(habits.as_ref())),
            avoidance: Some(self.ticking()),
            // A control that starts by itself paces at its own rate, and a file may not say
            // otherwise.
            pacing: if self.paces_itself() { Pacing::Off } else { self.pacing },
            ecn: Some(self.ecn),
            sender: self.sender(),
            receiver: self.receiver(),
            start: Span::ZERO,
            count: 1,
            every: Span::ZERO,
            size: None,
            paced: None,
            writes: Vec::new(),
            list: None,
            rtt: None,
            forward: Vec::new(),
            reverse: Vec::new(),
            ways: Vec::new(),
            from: None,
            to: None,
            initial_window: INITIAL_WINDOW,
            initial_ssthresh: None,
            left_behind_rtts: ControllerConfig::LEFT_BEHIND_RTTS,
            receive_window: habits.as_ref().and_then(|habits| habits.receive_window),
            offload: habits.as_ref().and_then(|habits| habits.offload),
            receive_offload: None,
        }
    }
}

impl Race {
    /// When the newcomers of this run come.
    #[must_use]
    pub fn newcomers_at(&self, run: u64) -> Span {
        if !self.has_others() {
            return Span::ZERO;
        }
        let range = self.effective_phase().as_nanos();
        let random = &mut Stream::Newcomers.stream(self.seed, run, 0);
        self.effective_warm_up() + Span::from_nanos(below(random, range))
    }

    /// How long a run goes on once newcomers are there.
    pub(crate) fn run_length(&self) -> Span {
        // One RTT for the handshake, one for the SYN's wait in a full queue.
        self.horizon() + self.base_rtt() * (AFTER_HORIZON_RTTS + 2)
    }

    /// The scenario of a contestant: what `flowstart run` would have to be given to see the same
    /// (as its run number `run`).
    #[must_use]
    pub fn scenario(&self, contestant: &Contestant, purpose: Purpose, run: u64) -> Scenario {
        let arrival = self.newcomers_at(run);
        let mut path = self.path.clone();
        path.queue = self.queue(contestant);
        if contestant.queue.is_some() || self.path.queue == QueueSpec::default() {
            // Its size is in the queue's own limit.
            path.buffer = path.queue.0.takes_buffer().then(|| self.buffer());
        }
        if let Some(percent) = contestant.aware_percent {
            path.quick_start.aware_percent = percent;
        }
        let mut flow = self.others.flow.clone();
        let newcomer = FlowSpec { start: arrival, ..contestant.spec() };
        let (duration, stop_when_complete) = match purpose {
            Purpose::Start | Purpose::Without => (self.run_length(), false),
            Purpose::Transfer(size) => (self.ideal(size) * PATIENCE_FACTOR + PATIENCE, true),
        };
        match purpose {
            Purpose::Start => flow.extend(self.newcomers(newcomer, run)),
            // After the end: every flow keeps its number, and with it its random numbers.
            Purpose::Without => {
                flow.extend(self.newcomers(FlowSpec { start: arrival + duration * 2, ..newcomer }, run));
            }
            // Of several newcomers a transfer is timed alone, and has their shares, too.
            Purpose::Transfer(size) => {
                let alone = Self { flows: 1, phases: None, ..self.clone() };
                flow.extend(alone.newcomers(FlowSpec { size: Some(size), ..newcomer }, run));
            }
        }
        let mut scenario = Scenario {
            title: format!("{contestant}, one contestant of a race"),
            duration: arrival + duration,
            stop_when_complete,
            seed: self.seed,
            runs: run + 1,
            phases: None,
            dialect: None,
            path: Some(path),
            flow,
            output: OutputSpec::default(),
            link: Vec::new(),
            udp: self.others.udp.clone(),
            arrivals: self.others.arrivals.clone(),
            web: Vec::new(),
        };
        scenario.settle();
        scenario
    }

    /// All newcomers of this run, of which this is the first.
    fn newcomers(&self, first: FlowSpec, run: u64) -> Vec<FlowSpec> {
        let start = |number: u32| match &first.flow_start {
            Some(StartConfig::Oracle(config)) => {
                let way = self.way_of_newcomer(number, run);
                Some(StartConfig::Oracle(Box::new(self.omniscience(config, way, run))))
            }
            other => other.clone(),
        };
        if self.phases.is_none() && self.path.ways.is_empty() {
            return vec![FlowSpec { count: self.flows, flow_start: start(0), ..first }];
        }
        let one = |number: u32| {
            // As the key `phases` of a scenario does it.
            let place = u64::from(self.others.tcp_flows() + number);
            let random = &mut Stream::Phase.stream(self.seed, run, place);
            let later = match self.phases {
                Some(phases) if number > 0 => Span::from_nanos(below(random, phases.as_nanos())),
                _ => Span::ZERO,
            };
            // What measures of the queue refer to is the first way: the first newcomer takes it.
            // Its further connections and all others are drawn.
            let ways = if self.path.ways.is_empty() || number > 0 { Vec::new() } else { vec![1] };
            FlowSpec { start: first.start + later, ways, flow_start: start(number), ..first.clone() }
        };
        (0..self.flows).map(one).collect()
    }

    /// What an omniscient start on a way knows of this path, unless it was told something else.
    fn omniscience(&self, config: &OracleConfig, way: u32, run: u64) -> OracleConfig {
        let seed = Stream::Fading.seed(self.seed, run, 0);
        let (true, Ok(schedule)) = (config.steps.is_empty(), self.capacity_of(way).schedule(seed)) else {
            return config.clone();
        };
        // Its share of the capacity of every moment.
        let share = self.part_of(way, run);
        let step = |at, rate: Rate| OracleStep { at, rate: rate.mul_f64(share) };
        let (mut steps, period) = match &schedule {
            RateSchedule::Constant(rate) => (vec![step(Span::ZERO, *rate)], None),
            RateSchedule::Steps { steps, period } => {
                (steps.iter().map(|s| step(s.at.since(Time::ZERO), s.rate)).collect(), *period)
            }
        };
        let buckets = self.buckets(&schedule, share);
        let medium = &self.path.medium;
        if medium.shaper.is_some() || medium.wifi.is_some() {
            // The bucket has the rate; while there are tokens the wire behind a shaper is faster.
            let line = medium.shaper.and_then(|shaper| shaper.line).unwrap_or(Rate::UNLIMITED);
            steps = vec![OracleStep { at: Span::ZERO, rate: line }];
        }
        // What two round trips hold, at most: bunches and handovers make them longer.
        let span = self.base_rtt() * 2 + Span::from_millis(20);
        let fastest = steps.iter().map(|step| step.rate).max().unwrap_or(Rate::ZERO);
        let passing = buckets.iter().map(|bucket| bucket.depth + bucket.rate.bytes_in(span));
        let flight = passing.fold(fastest.bytes_in(span), Bytes::min);
        // ACKs that queue on a slow way back come ever later.
        let acks = fastest.mul_f64(f64::from(HEADER_BYTES) / f64::from(self.packet()));
        let back = self.path.reverse_capacity.as_ref().map(|rate| rate.mean(Span::ZERO, self.horizon()));
        let flight = if back.is_some_and(|back| back < acks) { Bytes::new(u64::MAX) } else { flight };
        let window = u32::try_from(flight.get() / u64::from(self.packet())).unwrap_or(u32::MAX).clamp(10, 1 << 24);
        OracleConfig { steps, period, buckets, window, overhead: HEADER_BYTES + self.path.overhead }
    }

    /// The token buckets on the way of an omniscient start, and on Wi-Fi one that keeps an
    /// aggregate queued: smaller ones carry less than the capacity.
    fn buckets(&self, schedule: &RateSchedule, share: f64) -> Vec<OracleBucket> {
        let (medium, rate) = (&self.path.medium, schedule.peak().mul_f64(share));
        // What greedy flows and transfers leave of a bucket is not known: room for one packet.
        let alone = self.others.flow.is_empty() && self.others.arrivals.is_empty();
        let packet = u64::from(self.packet());
        let depth = |bytes: Bytes| {
            let most = if alone { bytes.get() / u64::from(self.flows.max(1)) } else { packet };
            Bytes::new(most.max(packet))
        };
        let mut buckets = Vec::new();
        if let Some(policer) = &medium.policer {
            buckets.push(OracleBucket { rate: policer.rate.mul_f64(share), depth: depth(policer.burst) });
        }
        if let Some(shaper) = &medium.shaper {
            buckets.push(OracleBucket { rate, depth: depth(shaper.burst) });
            buckets.extend(shaper.peak.map(|peak| OracleBucket { rate: peak, depth: shaper.peak_burst }));
        }
        if let Some(wifi) = &medium.wifi {
            let air = wifi.air_rate(schedule.peak()).unwrap_or(rate);
            let aggregate = wifi.bytes.min(air.bytes_in(wifi.airtime)).get().min(u64::from(wifi.frames) * packet);
            // Half of the buffer is left for what the air delays.
            let room = match self.buffer().limits(schedule.peak(), self.path.rtt, packet) {
                (Some(packets), _) => packets.saturating_mul(packet),
                (None, bytes) => bytes.unwrap_or(u64::MAX),
            };
            buckets.push(OracleBucket { rate, depth: depth(Bytes::new(aggregate.min(room / 2))) });
        }
        buckets
    }

    /// The queue a contestant meets: the one it names, else the path's if that is more than plain
    /// drop-tail, else its usual one.
    fn queue(&self, contestant: &Contestant) -> QueueSpec {
        let path = &self.path;
        let choice = match contestant.queue {
            None if path.queue != QueueSpec::default() => return path.queue,
            named => named.unwrap_or(contestant.usual_queue()),
        };
        let packet = u64::from(self.packet());
        QueueSpec(choice.config(self.buffer(), self.mark, self.capacity(), path.rtt, packet))
    }

    /// That queue in words, with its size or threshold.
    #[must_use]
    pub fn queue_name(&self, contestant: &Contestant) -> String {
        let path = &self.path;
        match contestant.queue {
            None if path.queue != QueueSpec::default() => path.queue.0.name().to_owned(),
            named => named.unwrap_or(contestant.usual_queue()).resolved(self.buffer(), self.mark).to_string(),
        }
    }

    /// The simulation of a contestant.
    ///
    /// # Errors
    /// If its scenario cannot be simulated.
    pub fn simulation(
        &self,
        contestant: &Contestant,
        purpose: Purpose,
        run: u64,
    ) -> Result<SimulationConfig, RaceError> {
        let scenario = self.scenario(contestant, purpose, run);
        let compiled = scenario.simulation(run).map_err(|error| {
            let said = error.to_string();
            // Queue and buffer may be a contestant's own; the rest of the path is nobody's fault.
            let of_path = said.strip_prefix("scenario: ").filter(|key| {
                key.starts_with("path.") && !key.starts_with("path.queue") && !key.starts_with("path.buffer")
            });
            RaceError::new(of_path.map_or_else(|| format!("{contestant}: {said}"), str::to_owned))
        })?;
        Ok(compiled.simulation)
    }

    /// The ideal completion time of a transfer (M7). A shaper lets its burst pass at the line's or
    /// the peak's rate: its bucket is full when the transfer begins.
    #[must_use]
    pub fn ideal(&self, size: Bytes) -> Span {
        let wire = wire_bytes(size, MSS, HEADER_BYTES + self.path.overhead);
        let Some(shaper) = &self.path.medium.shaper else {
            let time = |bytes| self.capacity().transmission_time(bytes);
            return self.ideal_after(size, time(wire), self.service(), time(last_packet(size)));
        };
        let line = |bytes| shaper.line.map_or(Span::ZERO, |line| line.transmission_time(bytes));
        // A single packet passes on tokens.
        let service = line(Bytes::new(u64::from(self.packet())));
        let peak = shaper.peak.map_or(Span::ZERO, |peak| peak.transmission_time(beyond(wire, shaper.peak_burst)));
        let bucket = self.capacity().transmission_time(beyond(wire, shaper.burst));
        self.ideal_after(size, line(wire).max(peak).max(bucket), service, line(last_packet(size)))
    }

    /// The same at the capacity of the moments from `at` on.
    pub(crate) fn ideal_at(&self, simulation: &SimulationConfig, size: Bytes, at: Time) -> Span {
        let rate = match simulation.links.first().map(|link| &link.rate) {
            Some(rate @ RateSchedule::Steps { .. }) => rate,
            _ => return self.ideal(size),
        };
        let mut transmitter = Transmitter::new(rate);
        let last = last_packet(size).get();
        let (mut left, mut done) = (wire_bytes(size, MSS, HEADER_BYTES + self.path.overhead).get(), at);
        let mut before_last = at;
        while left > 0 {
            if left == last {
                before_last = done;
            }
            let part = u32::try_from(left - if left > last { last } else { 0 }).unwrap_or(u32::MAX);
            done = transmitter.transmit(done, part);
            left -= u64::from(part);
        }
        self.ideal_after(size, done.since(at), self.service(), done.since(before_last))
    }

    /// The ideal of a transfer that the bottleneck lets pass within this time, a full packet within
    /// `service`, the last one within `after`: not less than a policer and the sender's own link
    /// let it take.
    fn ideal_after(&self, size: Bytes, passing: Span, service: Span, after: Span) -> Span {
        let packets = wire_bytes(size, MSS, HEADER_BYTES);
        let policer = self.path.medium.policer;
        let policed =
            policer.map_or(Span::ZERO, |policer| policer.rate.transmission_time(beyond(packets, policer.burst)));
        let passing = passing.max(policed);
        // Of the two links in a row one sends all of it, the other the first packet before or the
        // last one after.
        let passing = self.path.access.map_or(passing, |access| {
            let first = Bytes::new(packets.get().min(FULL_PACKET));
            (access.transmission_time(packets) + after).max(access.transmission_time(first) + passing)
        });
        // A bottleneck may be further away than half of the RTT.
        let twice = self.path.delay.map_or(self.path.rtt, |delay| self.path.rtt.max(delay * 2));
        // Of RTT0 half counts, and with it half a packet's time that no transfer needs: not where
        // that is more than a fortieth of the whole.
        let usual = (twice + service) / 2 + passing;
        if service / 2 > usual / 40 { twice / 2 + passing } else { usual }
    }

    /// The numbers of the second connections of `newcomers` flows of a contestant: they stand
    /// behind all flows and the second connections of others.
    pub(crate) fn companions(
        &self,
        contestant: &Contestant,
        simulation: &SimulationConfig,
        newcomers: u32,
    ) -> Range<FlowId> {
        if contestant.start.connections() < 2 {
            return 0..0;
        }
        let others = companions_of_others(simulation, self.others.tcp_flows());
        let begin = simulation.flows.len() as FlowId + others.len() as FlowId;
        begin..begin + newcomers
    }

    /// What is recorded. TCP flows that are there before come first, then the newcomers, then
    /// datagrams and arriving transfers.
    pub(crate) fn asked(&self, simulation: &SimulationConfig, run: u64, origin: Origin) -> Asked {
        let base_rtt = self.base_rtt();
        let first_new = self.others.tcp_flows();
        let links = self.links_of_newcomers(simulation, run);
        Asked {
            origin,
            links: links.into_iter().map(|link| LinkAsked { link, overhead: self.path.overhead }).collect(),
            flow_limit: 2 * super::MAX_FLOWS as usize,
            ..Asked::newcomers(
                LinkAsked { link: 0, overhead: self.path.overhead },
                first_new..first_new + self.flows,
                Time::ZERO + self.newcomers_at(run),
                base_rtt,
                self.horizon(),
                base_rtt * AFTER_HORIZON_RTTS,
            )
        }
    }
}
