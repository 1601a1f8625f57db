//! The main job: flow starts race over one path.
//!
//! Every contestant runs alone on its own copy of the path (or against the same background flows),
//! with the same random numbers. A greedy newcomer shows how the start goes; sized transfers in
//! runs of their own give the completion times.
//!
//! The path is a dumbbell with one bottleneck: senders reach its queue at once, it propagates half
//! of the RTT, ACKs return undisturbed over the other half.
//!
//! ```
//! use flowstart_race::measures::LOST_BEFORE;
//! use flowstart_race::{Race, RunOptions};
//! use flowstart_units::Rate;
//!
//! let mut race = Race::default();
//! race.set_capacity(Rate::from_mbps(20));
//! race.contestants = vec!["hystart+cubic".parse()?, "slow_start+cubic".parse()?];
//! // Only the start itself, no transfers of given sizes.
//! race.sizes.clear();
//! let result = race.run(&RunOptions::default())?;
//! let lost = |contestant: usize| {
//!     let estimate = result.contestants[contestant].estimate(LOST_BEFORE.measure());
//!     estimate.map(|estimate| estimate.mean)
//! };
//! // HyStart ends before the queue overflows, slow start when it has.
//! assert_eq!(lost(0), Some(0.0));
//! assert!(lost(1) > Some(0.0));
//! # Ok::<(), flowstart_race::RaceError>(())
//! ```

mod alone;
mod background;
mod build;
mod carrier;
mod contestant;
pub mod contract;
mod cost;
mod docs;
mod document;
mod fitting;
mod jobs;
mod others;
mod part;
mod path;
mod record;
mod series;
mod sharing;
mod stage;
mod validate;
mod world;

use std::fmt;

use flowstart_units::{Bytes, Rate, Span};

use flowstart_measure::Reference;
use flowstart_scenario::{Buffer, PathSpec, RateSpec, Scenario};

pub use alone::{Baselines, Measured};
pub use background::Background;
pub use build::Purpose;
pub use carrier::Carrier;
pub use contestant::{ALIASES, Acks, Asked, Contestant, DEFAULT, MODIFIERS};
pub use cost::RunPackets;
pub use docs::measures_page;
pub use document::RACE_SCHEMA_VERSION;
pub use fitting::fit_to_marks;
pub use flowstart_measure::measures::{self, Better, Measure};
pub use jobs::RunOptions;
pub use others::Others;
pub use path::{MarkThreshold, QueueChoice};
pub use record::labels;
pub use record::{ContestantResult, RaceResult, RunRecord, exit_name};
pub use series::{Series, Spread};
pub use stage::Stage;
pub use world::World;

/// Why a race cannot be run. Its `Display` is one sentence that also says what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaceError(String);

impl RaceError {
    /// With this sentence.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for RaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RaceError {}

/// Most newcomers, and most background flows.
pub const MAX_FLOWS: u32 = 1000;
/// Most packets that one simulation may have to carry: about a minute of one core.
pub const MAX_PACKETS: f64 = 4e8;
/// Most packets in one bandwidth-delay product.
const MAX_BDP_PACKETS: f64 = 1e7;
/// Most repetitions.
const MAX_RUNS: u32 = 100_000;
/// Repetitions if there is randomness and nothing else is said.
const DEFAULT_RUNS: u32 = 10;
/// The same for races that take their time.
const DEFAULT_REAL_RUNS: u32 = 3;
/// Longest base RTT.
const MAX_RTT: Span = Span::from_secs(3600);
/// Payload bytes of a full packet, as the sender's default.
pub const MSS: u32 = 1448;
/// Bytes of its IP and TCP headers (IPv4, TCP, timestamps).
const HEADER_BYTES: u32 = 52;

/// A race: the path, who runs on it, and what is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Race {
    /// The path. Its queue is for contestants that name none, if it is more than plain drop-tail;
    /// its buffer for drop-tail queues without one.
    pub path: PathSpec,
    /// Threshold of marking queues that do not name their own; default 1 ms.
    pub mark: MarkThreshold,
    /// Newcomers that start together; default 1.
    pub flows: u32,
    /// In every run all newcomers but the first start later, each by a random part of this: for
    /// results that depend on phases. More than zero, with two newcomers or more; `None` for all at
    /// once.
    pub phases: Option<Span>,
    /// Who is there before.
    pub others: Others,
    /// Sizes of the transfers whose completion is timed; default 100 kB, 1 MB, 10 MB.
    pub sizes: Vec<Bytes>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Independent repetitions; `None` for 10 if there is randomness, else 1.
    pub runs: Option<u32>,
    /// Who races.
    pub contestants: Vec<Contestant>,
    /// Where it is run; default in the simulator.
    pub world: World,
    /// H, how long after t = 0 measures look; `None` for 40 RTT0.
    pub horizon: Option<Span>,
    /// How long the others run before the newcomers come; `None` for 500 RTT, at least 10 s, at
    /// most 60 s. Zero if there are no others.
    pub warm_up: Option<Span>,
    /// With others there, newcomers come at a random moment within this time after the warm-up;
    /// `None` for 250 RTT0, at least 5 s.
    pub phase: Option<Span>,
}

/// The seed that is used unless another is given.
pub const DEFAULT_SEED: u64 = 1;

/// The path of the default race: 100 Mbit/s, 20 ms, a buffer of 1 BDP.
const DEFAULT_PATH: &str = "capacity = \"100 Mbit/s\"\nrtt = \"20 ms\"\nbuffer = \"1 BDP\"\n";

impl Race {
    /// The [default contestants](DEFAULT) on this path, nobody else there.
    #[must_use]
    pub fn new(path: PathSpec) -> Self {
        Self {
            path,
            mark: MarkThreshold::Sojourn(Span::from_millis(1)),
            flows: 1,
            phases: None,
            others: Others::default(),
            sizes: [100_000, 1_000_000, 10_000_000].map(Bytes::new).to_vec(),
            seed: DEFAULT_SEED,
            runs: None,
            contestants: Contestant::defaults(),
            world: World::Simulated,
            horizon: None,
            warm_up: None,
            phase: None,
        }
    }

    /// A race over the path of a scenario, against the flows it has; its seed and number of runs
    /// count too.
    ///
    /// # Errors
    /// If the scenario has several links instead of one path: it is not clear then which way
    /// newcomers go.
    pub fn from_scenario(scenario: &Scenario) -> Result<Self, RaceError> {
        let Some(path) = scenario.path.clone() else {
            return Err(RaceError::new(
                "a race needs a scenario with one [path]; in one with [[link]] tables the newcomers' way is open",
            ));
        };
        Ok(Self {
            others: Others {
                flow: scenario.flow.clone(),
                udp: scenario.udp.clone(),
                arrivals: scenario.arrivals.clone(),
            },
            seed: scenario.seed,
            runs: (scenario.runs > 1).then(|| u32::try_from(scenario.runs).unwrap_or(u32::MAX)),
            ..Self::new(path)
        })
    }

    /// Rate of the bottleneck; of one that varies, the mean: over a period if it repeats, else over
    /// the time in which newcomers may be watched.
    #[must_use]
    pub fn capacity(&self) -> Rate {
        self.mean(&self.path.capacity)
    }

    fn mean(&self, capacity: &RateSpec) -> Rate {
        // How long a packet takes is not known before the capacity is.
        let rtt = self.path.rtt;
        let from = self.warm_up_at(rtt);
        let horizon = self.horizon.unwrap_or(rtt * Reference::HORIZON_RTTS);
        capacity.mean(from, from + self.phase_at(rtt) + horizon)
    }

    /// Sets the rate of the bottleneck.
    pub fn set_capacity(&mut self, capacity: Rate) {
        self.path.capacity = RateSpec::Constant(capacity);
    }

    /// Sets the buffer of drop-tail queues that do not name their own.
    pub fn set_buffer(&mut self, buffer: Buffer) {
        self.path.buffer = Some(buffer);
    }

    /// Buffer of drop-tail queues that do not name their own.
    #[must_use]
    pub fn buffer(&self) -> Buffer {
        self.path.buffer.unwrap_or(PathSpec::USUAL_BUFFER)
    }

    /// Bytes of a full packet on the bottleneck's wire.
    #[must_use]
    pub fn packet(&self) -> u32 {
        MSS + HEADER_BYTES + self.path.overhead
    }

    /// RTT0: propagation and the serialization of one full packet.
    #[must_use]
    pub fn base_rtt(&self) -> Span {
        self.path.rtt + self.service()
    }

    /// Serialization of one full packet.
    #[must_use]
    pub fn service(&self) -> Span {
        self.capacity().transmission_time(Bytes::new(u64::from(self.packet())))
    }

    /// H.
    #[must_use]
    pub fn horizon(&self) -> Span {
        self.horizon.unwrap_or(self.base_rtt() * Reference::HORIZON_RTTS)
    }

    /// What a newcomer's measures are relative to: an [equal share](Others::share) of what the
    /// others leave, of no more than a policer lets through, and no more than the sender's own link
    /// carries; of a capacity that changes, in the mean. Over ways in parallel it is the share if
    /// all are spread evenly, and each run has those of its own.
    #[must_use]
    pub fn reference(&self) -> Reference {
        Reference { horizon: self.horizon(), ..Reference::new(self.fair_share(), self.base_rtt()) }
    }

    /// True if runs differ. With others there, newcomers come at a random moment.
    #[must_use]
    pub fn is_random(&self) -> bool {
        self.world.is_real()
            || self.phases.is_some()
            || self.has_others()
            || self.contestants.iter().any(|contestant| {
                let mut scenario = self.scenario(contestant, Purpose::Start, 0);
                if self.flows == 1
                    && contestant.start.connections() == 1
                    && let Some(path) = &mut scenario.path
                {
                    // A single newcomer always takes the first way.
                    path.ways.clear();
                }
                scenario.is_random()
            })
    }

    /// True if somebody is there before the newcomers.
    #[must_use]
    pub fn has_others(&self) -> bool {
        !self.others.is_empty()
    }

    /// How many runs are made: without randomness always one.
    #[must_use]
    pub fn effective_runs(&self) -> u32 {
        if !self.is_random() {
            return 1;
        }
        self.runs.unwrap_or(if self.world.is_real() { DEFAULT_REAL_RUNS } else { DEFAULT_RUNS })
    }

    /// The measures of this race.
    #[must_use]
    pub fn measures(&self) -> Vec<Measure> {
        Measure::all(&self.sizes, self.has_others())
    }

    /// How long the others run before the newcomers come.
    #[must_use]
    pub fn effective_warm_up(&self) -> Span {
        self.warm_up_at(self.base_rtt())
    }

    fn warm_up_at(&self, rtt: Span) -> Span {
        if !self.has_others() {
            return Span::ZERO;
        }
        self.warm_up.unwrap_or_else(|| (rtt * 500).clamp(Span::from_secs(10), Span::from_secs(60)))
    }

    /// How long after the warm-up newcomers come at the latest.
    #[must_use]
    pub fn effective_phase(&self) -> Span {
        self.phase_at(self.base_rtt())
    }

    fn phase_at(&self, rtt: Span) -> Span {
        if !self.has_others() {
            return Span::ZERO;
        }
        self.phase.unwrap_or_else(|| (rtt * build::PHASE_RTTS).max(build::MIN_PHASE))
    }

    /// Whoever starts when newcomers are watched no more, in sentences.
    #[must_use]
    pub fn too_late(&self) -> Vec<String> {
        let end = self.effective_warm_up() + self.effective_phase() + self.run_length();
        let flows = self.others.flow.iter().map(|flow| flow.start).enumerate();
        let datagrams = self.others.udp.iter().map(|udp| udp.start).enumerate();
        let arrivals = self.others.arrivals.iter().map(|arrivals| arrivals.flow.start).enumerate();
        let flows = flows.map(|(index, start)| (format!("flow[{index}].start"), start));
        let datagrams = datagrams.map(|(index, start)| (format!("udp[{index}].start"), start));
        let arrivals = arrivals.map(|(index, start)| (format!("arrivals[{index}].flow.start"), start));
        let late = flows.chain(datagrams).chain(arrivals).filter(|(_, start)| *start >= end);
        let sentence = |(key, start): (String, Span)| {
            format!("{key}: nobody meets who starts at {start}, since newcomers are watched until {end} at most")
        };
        late.map(sentence).collect()
    }
}

impl Default for Race {
    /// 100 Mbit/s, 20 ms, drop-tail buffers of 1 BDP, the [default contestants](DEFAULT).
    #[expect(clippy::expect_used, reason = "a constant that a test reads")]
    fn default() -> Self {
        Self::new(toml::from_str(DEFAULT_PATH).expect("the default path reads"))
    }
}

#[cfg(test)]
mod tests;
