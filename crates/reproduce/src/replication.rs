//! How often a figure's variants are run, and what differs from run to run.

use schemars::JsonSchema;
use serde::Deserialize;

use flowstart_random::{Purpose, Rng};
use flowstart_scenario::{Problem, Scenario, UdpSpec};
use flowstart_simulator::SimulationConfig;
use flowstart_units::{Bytes, Rate, Span, Time};

/// What differs from run to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The random numbers of the scenario: arrivals, losses, jitter, a start's own draws.
    #[default]
    Seed,
    /// The moment at which each flow but the first starts, later by a random part of `spread`:
    /// nothing else is random, but the outcome depends on phases.
    Starts,
    /// Poisson datagrams of `rate` beside the flows: nothing else is random, but the outcome
    /// depends on phases.
    Trickle,
    /// Nothing: every run would be the same, and one says all. `because` says why no phase matters.
    Nothing,
}

/// `[replications]`: how often every variant is run. Runs are added, twice as many each time, until
/// the interval of every case is clear of its bound or the budget is spent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Replications {
    /// What differs from run to run.
    pub by: By,
    /// Why that, in a sentence.
    pub because: Option<String>,
    /// How much later a flow starts at most, with `by = "starts"`; default: the base RTT of the
    /// path.
    pub spread: Option<Span>,
    /// Rate of the datagrams, with `by = "trickle"`; default: a thousandth of the path's capacity.
    pub rate: Option<Rate>,
    /// Runs of every variant at the first look, 3 or more.
    pub least: u64,
    /// Runs at most; no fewer than `least`.
    pub most: u64,
    /// Runs at most with `--full`; no fewer than `most`.
    pub full: u64,
}

/// Most runs of a variant.
pub(super) const MOST_RUNS: u64 = 100_000;
/// Fewest runs that an interval is made of.
const LEAST_RUNS: u64 = 3;
/// Bytes of a datagram of a trickle: as small as an ACK on the wire.
const TRICKLE_PACKET: Bytes = Bytes::new(100);
/// The trickle's default share of the capacity: 1 of this.
const TRICKLE_PART: u64 = 1000;

impl Default for Replications {
    fn default() -> Self {
        Self { by: By::Seed, because: None, spread: None, rate: None, least: LEAST_RUNS, most: 12, full: 24 }
    }
}

impl Replications {
    /// Checks what can be checked without the scenario.
    pub(super) fn check(&self) -> Result<(), Problem> {
        if self.by == By::Nothing {
            return match &self.because {
                Some(_) => Ok(()),
                None => Err(Problem::at("because", "is missing; say why no phase matters in any variant")),
            };
        }
        if self.least < LEAST_RUNS {
            return Err(Problem::at(
                "least",
                format!("is at least {LEAST_RUNS}: fewer runs have no interval to speak of"),
            ));
        }
        if self.most < self.least {
            return Err(Problem::at("most", format!("is at least {}, the runs of the first look", self.least)));
        }
        if self.full < self.most || self.full > MOST_RUNS {
            return Err(Problem::at(
                "full",
                format!("is between {} (the runs without --full) and {MOST_RUNS}", self.most),
            ));
        }
        if self.spread.is_some() && self.by != By::Starts {
            return Err(Problem::at("spread", "belongs to by = \"starts\""));
        }
        if self.rate.is_some() && self.by != By::Trickle {
            return Err(Problem::at("rate", "belongs to by = \"trickle\""));
        }
        Ok(())
    }

    /// The numbers of runs at which results are looked at, increasing.
    pub(super) fn looks(&self, full: bool) -> Vec<u64> {
        if self.by == By::Nothing {
            return vec![1];
        }
        let most = if full { self.full } else { self.most };
        let mut looks = vec![self.least];
        while let Some(last) = looks.last().copied().filter(|last| *last < most) {
            looks.push(last.saturating_mul(2).min(most));
        }
        looks
    }

    /// What differs from run to run and why, in a sentence.
    #[must_use]
    pub fn words(&self) -> String {
        let what = match self.by {
            By::Seed => "Runs differ in their random numbers".to_owned(),
            By::Starts => {
                let spread = self.spread.map_or("the base RTT".to_owned(), |spread| spread.to_string());
                format!("Runs differ in when flows start, later by up to {spread} at random")
            }
            By::Trickle => {
                let rate = self.rate.map_or("a thousandth of the capacity".to_owned(), |rate| rate.to_string());
                format!("Runs differ in Poisson datagrams of {rate} beside the flows")
            }
            By::Nothing => "One run says all".to_owned(),
        };
        match &self.because {
            Some(because) => format!("{what}: {because}"),
            None => format!("{what}."),
        }
    }

    /// Puts the datagrams of a trickle into a scenario.
    pub(super) fn prepare(&self, scenario: &mut Scenario) -> Result<(), Problem> {
        if self.by != By::Trickle {
            return Ok(());
        }
        let Some(path) = &scenario.path else {
            return Err(Problem::at(
                "replications.by",
                "a trickle needs a [path]; with [[link]] tables move the starts",
            ));
        };
        let peak = path.capacity.schedule(scenario.seed).map_err(|error| Problem::at("path.capacity", error))?.peak();
        let rate = self.rate.unwrap_or(Rate::from_bps((peak.as_bps() / TRICKLE_PART).max(1)));
        let datagrams = UdpSpec::poisson(rate, TRICKLE_PACKET);
        scenario.udp.push(UdpSpec { name: Some("trickle".to_owned()), ..datagrams });
        Ok(())
    }

    /// Moves the starts of a run.
    pub(super) fn disturb(&self, simulation: &mut SimulationConfig, rtt: Option<Span>) {
        if self.by != By::Starts {
            return;
        }
        let spread = self.spread.or(rtt).unwrap_or(Span::from_millis(10)).as_nanos();
        let (seed, run) = (simulation.seed, simulation.run);
        for (number, flow) in simulation.flows.iter_mut().enumerate().skip(1) {
            let mut random = Purpose::Phase.stream(seed, run, number as u64);
            let later = (u128::from(random.next_u64()) * u128::from(spread)) >> 64;
            flow.start = Time::ZERO + flow.start.since(Time::ZERO) + Span::from_nanos(later as u64);
        }
    }
}
