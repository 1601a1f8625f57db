//! Chirps of a simulated start.

use std::fmt;
use std::str::FromStr;

use flowstart_congestion::start::paced_chirping::belief::Room;
use flowstart_congestion::{StartConfig, StartExit};
use flowstart_network::JitterConfig;
use flowstart_simulator::{FlowId, Observer, Simulation};
use flowstart_transport::Sender;
use flowstart_units::{Bytes, Rate, Span, Time};

use super::{Chirp, ExplainError, Explanation};
use flowstart_race::{Background, Contestant, Purpose, Race};
use flowstart_scenario::{Buffer, JitterSpec, UdpSpec};

/// Congestion avoidance of a start that names none; it takes over when there are no more chirps to
/// explain.
const AVOIDANCE: &str = "cubic";
/// Round trips that datagrams run alone: enough to reach every queue.
const DATAGRAM_RTTS: u64 = 4;

/// A contestant whose start sends chirps.
#[derive(Clone, Debug, PartialEq)]
pub struct ChirpingStart(Contestant);

impl FromStr for ChirpingStart {
    type Err = ExplainError;

    /// Reads `START` with the modifiers of contestants ("adaptive_chirping/ack2"), or a whole
    /// contestant.
    fn from_str(text: &str) -> Result<Self, ExplainError> {
        let (start, modifiers) = text.split_at(text.find('/').unwrap_or(text.len()));
        let whole = if start.contains('+') { text.to_owned() } else { format!("{start}+{AVOIDANCE}{modifiers}") };
        let contestant: Contestant = whole.parse().map_err(ExplainError::new)?;
        if contestant.start.chirps() {
            return Ok(Self(contestant));
        }
        let sends = |name: &&&str| StartConfig::from_name(name).is_ok_and(|start| start.chirps());
        let known: Vec<&str> = StartConfig::NAMES.iter().filter(sends).copied().collect();
        let start = contestant.start.name();
        Err(ExplainError::new(format!("\"{start}\" sends no chirps; choose one of {}", known.join(", "))))
    }
}

impl fmt::Display for ChirpingStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.name())
    }
}

/// A start over a path, to be simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// Rate of the bottleneck.
    pub capacity: Rate,
    /// Base round-trip time.
    pub rtt: Span,
    /// Buffer of the bottleneck.
    pub buffer: Buffer,
    /// Who chirps.
    pub start: ChirpingStart,
    /// Share of the capacity that datagrams of 1500 B at random moments (Poisson) take, 0 ..= 1.
    pub udp: f64,
    /// Each packet is delayed by up to this behind the bottleneck, without overtaking.
    pub jitter: Span,
    /// Greedy flows that are there before.
    pub background: Vec<Background>,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// A chirp of a simulated start.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Counted from 1 over all chirps of the flow; those that said nothing (a packet lost, or late)
    /// are left out.
    pub number: u32,
    /// When its first packet left, since the flow began.
    pub at: Span,
    /// Time per packet of the load it was sent with.
    pub load: Span,
    /// The chirp.
    pub chirp: Chirp,
    /// What it says.
    pub explanation: Explanation,
    /// What it says together with all chirps before, if the start asks them all.
    pub room: Option<Room>,
}

/// What a simulated start sent until it ended.
#[derive(Clone, Debug)]
pub struct SimulatedStart {
    /// Chirps that could be read, in order.
    pub chirps: Vec<Observed>,
    /// How the start ended; `None` if it had not within 40 round trips.
    pub exit: Option<StartExit>,
    /// Bytes of a packet on the wire.
    pub packet: Bytes,
}

impl SimulatedStart {
    /// The chirp with this number, or the first that shows a knee, or else the last.
    ///
    /// # Errors
    /// If there is none, with those that there are.
    pub fn choose(&self, number: Option<u32>) -> Result<&Observed, ExplainError> {
        let (Some(first), Some(last)) = (self.chirps.first(), self.chirps.last()) else {
            return Err(ExplainError::new(
                "this start sent no chirp that could be read; a larger buffer, a longer RTT or fewer others may help",
            ));
        };
        match number {
            Some(number) => self.chirps.iter().find(|chirp| chirp.number == number).ok_or_else(|| {
                ExplainError::new(format!(
                    "there is no chirp {number} that could be read; the first is {}, the last {}",
                    first.number, last.number
                ))
            }),
            None => Ok(self.chirps.iter().find(|chirp| chirp.explanation.knee.is_some()).unwrap_or(last)),
        }
    }
}

impl Simulated {
    /// Runs the simulation until the start ends.
    ///
    /// # Errors
    /// What cannot be simulated.
    pub fn run(&self) -> Result<SimulatedStart, ExplainError> {
        let race = self.race()?;
        let config = race.simulation(&self.start.0, Purpose::Start, 0).map_err(ExplainError::new)?;
        let watch = Watch { flow: race.others.tcp_flows(), last: None, chirps: Vec::new(), exit: None };
        let mut simulation = Simulation::new(&config, watch).map_err(ExplainError::new)?;
        let begin = Time::ZERO + race.newcomers_at(0);
        let mut until = begin;
        while !simulation.run_until(until) && simulation.observer().exit.is_none() {
            until += race.base_rtt();
        }
        let (_, watch) = simulation.finish();
        let chirps = watch.chirps.into_iter().map(|Seen { number, sent_at, load, chirp, room }| {
            let explanation = Explanation::new(&chirp);
            Observed { number, at: sent_at.since(begin), load: Span::from_nanos(load), chirp, explanation, room }
        });
        Ok(SimulatedStart { chirps: chirps.collect(), exit: watch.exit, packet: Bytes::new(u64::from(race.packet())) })
    }

    fn race(&self) -> Result<Race, ExplainError> {
        let mut race = Race::default();
        race.set_capacity(self.capacity);
        race.path.rtt = self.rtt;
        race.set_buffer(self.buffer);
        if !self.jitter.is_zero() {
            race.path.jitter = Some(JitterSpec(JitterConfig { spread: self.jitter, reorder: false }));
        }
        race.seed = self.seed;
        race.runs = Some(1);
        race.sizes = Vec::new();
        race.contestants = vec![self.start.0.clone()];
        for background in &self.background {
            race.others.flow.push(background.spec(race.others.tcp_flows()));
        }
        if self.udp > 0.0 {
            race.others.udp.push(UdpSpec::poisson(self.capacity.mul_f64(self.udp), Bytes::new(1500)));
        }
        if race.others.flow.is_empty() {
            // Datagrams are as they are at once; there is nothing to wait for.
            (race.warm_up, race.phase) = (Some(self.rtt * DATAGRAM_RTTS), Some(self.rtt * DATAGRAM_RTTS));
        }
        race.validate().map_err(ExplainError::new)?;
        Ok(race)
    }
}

/// Copies each chirp of one flow as soon as it has been read.
struct Watch {
    flow: FlowId,
    /// Number of the chirp that was copied last.
    last: Option<u32>,
    chirps: Vec<Seen>,
    exit: Option<StartExit>,
}

/// A chirp as it was copied; `load` in ns per packet.
struct Seen {
    number: u32,
    sent_at: Time,
    load: u64,
    chirp: Chirp,
    room: Option<Room>,
}

impl Observer for Watch {
    fn sender(&mut self, _now: Time, flow: FlowId, sender: &Sender) {
        if flow != self.flow || self.exit.is_some() {
            return;
        }
        let controller = sender.controller();
        if let Some(chirp) = controller.start().last_chirp()
            && self.last != Some(chirp.number())
        {
            self.last = Some(chirp.number());
            let number = chirp.number().saturating_add(1);
            let room = controller.start().room();
            let (sent_at, load) = (chirp.sent_at(), chirp.load());
            self.chirps.push(Seen { number, sent_at, load, chirp: Chirp::from(chirp), room });
        }
        self.exit = controller.start_exit().copied();
    }
}
