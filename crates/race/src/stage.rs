//! Who runs the simulations of a race: the simulator, or somebody else.

use std::cell::RefCell;

use flowstart_parallel::Cancel;
use flowstart_scenario::Scenario;
use flowstart_simulator::{Observer, Outcome, Progress, Simulation, SimulationConfig};
use flowstart_units::{Span, Time};

use super::{Contestant, Purpose, Race, RaceError};

/// What one simulation of a race is: whose, for what, and in which run.
pub(crate) type Part<'a> = (&'a Contestant, Purpose, u64);

/// Who runs the simulations of a race.
pub(crate) trait Runner {
    /// Why it cannot.
    type Error: From<RaceError>;

    /// Runs one. `None` if it was given up.
    fn run<O: Observer>(
        &self,
        race: &Race,
        part: Part<'_>,
        config: &SimulationConfig,
        observer: O,
        slice: Span,
    ) -> Result<Option<(Outcome, O)>, Self::Error>;
}

/// The simulator, looking up now and then whether it should give up.
pub(crate) struct Simulator<'a> {
    pub(crate) cancel: &'a Cancel,
    /// Events of one simulation in which an own algorithm takes part.
    pub(crate) most_events: Option<u64>,
}

/// Events of an own algorithm between which cancellation is looked for: it may ask for departures a
/// nanosecond apart, and then never gets to the end of a slice of time.
const EVENTS: u64 = 100_000;

/// Packets that an own algorithm may send at one moment unless fewer events are allowed: twice what
/// fits into 10 Gbit/s and a second.
const MOST_AT_ONCE: u64 = 2_000_000;

impl Runner for Simulator<'_> {
    type Error = RaceError;

    fn run<O: Observer>(
        &self,
        _race: &Race,
        (contestant, _, _): Part<'_>,
        config: &SimulationConfig,
        observer: O,
        slice: Span,
    ) -> Result<Option<(Outcome, O)>, RaceError> {
        let mut simulation = Simulation::new(config, observer)
            .map_err(|error| RaceError::new(format!("cannot be simulated: {error}")))?;
        let mut until = Time::ZERO + slice;
        if !contestant.is_own() {
            while !simulation.run_until(until) {
                if self.cancel.is_cancelled() {
                    return Ok(None);
                }
                until += slice;
            }
            return Ok(Some(simulation.finish()));
        }
        let most = self.most_events.unwrap_or(u64::MAX);
        let most_at_once = self.most_events.unwrap_or(MOST_AT_ONCE);
        simulation.limit_packets_at_once(most_at_once);
        let mut events = 0;
        loop {
            match simulation.run_within(until, EVENTS.min(most - events)) {
                Progress::Over => return Ok(Some(simulation.finish())),
                Progress::Reached => until += slice,
                Progress::Spent => {}
                Progress::Flooded => {
                    let at = simulation.now().as_secs_f64();
                    let message = format!(
                        "{contestant} sends {most_at_once} packets at one moment, after {at:.3} s of simulated time: {}",
                        "its window has no end"
                    );
                    return Err(RaceError::new(message));
                }
            }
            events = simulation.events();
            if events >= most {
                let at = simulation.now().as_secs_f64();
                let message = format!("{contestant} is still at {at:.3} s of simulated time after {most} events");
                return Err(RaceError::new(message));
            }
            if self.cancel.is_cancelled() {
                return Ok(None);
            }
        }
    }
}

/// A place to run scenarios that is not the simulator: the emulator, with a kernel's TCP.
pub trait Stage {
    /// Why something cannot be run there.
    type Error: From<RaceError>;

    /// Runs the scenario of one part of a race (its run number `run`) and shows the observer what
    /// happened, in order of time. `None` if it was given up.
    ///
    /// # Errors
    /// Why it cannot be run there.
    fn run(
        &mut self,
        scenario: &Scenario,
        run: u64,
        observer: &mut dyn Observer,
    ) -> Result<Option<Outcome>, Self::Error>;
}

/// A stage as a runner; its parts are run one after the other.
pub(crate) struct OnStage<'a, S>(RefCell<&'a mut S>);

impl<'a, S> OnStage<'a, S> {
    pub(crate) fn new(stage: &'a mut S) -> Self {
        Self(RefCell::new(stage))
    }
}

impl<S: Stage> Runner for OnStage<'_, S> {
    type Error = S::Error;

    fn run<O: Observer>(
        &self,
        race: &Race,
        (contestant, purpose, run): Part<'_>,
        _config: &SimulationConfig,
        mut observer: O,
        _slice: Span,
    ) -> Result<Option<(Outcome, O)>, S::Error> {
        let scenario = race.scenario(contestant, purpose, run);
        let outcome = self.0.borrow_mut().run(&scenario, run, &mut observer)?;
        Ok(outcome.map(|outcome| (outcome, observer)))
    }
}
