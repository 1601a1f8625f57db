//! A race for real, of the kernel's congestion controls or over this project's QUIC: the emulator
//! as its stage.

use std::path::PathBuf;

use flowstart_emulator::Fidelity;
use flowstart_parallel::Cancel;
use flowstart_race::{Purpose, Race, RaceResult, Stage};
use flowstart_scenario::Scenario;
use flowstart_simulator::{Observer, Outcome};

use super::controls::{not_real, other_start};
use super::perform::{Wanted, perform};
use super::replay::play_back;
use super::{Error, Transport};

/// What a race brought.
#[derive(Debug)]
pub struct RealRace {
    /// The measures.
    pub result: RaceResult,
    /// How faithful each run was.
    pub fidelities: Vec<Fidelity>,
    /// Parts of the emulator that failed, each with its reason.
    pub faults: Vec<String>,
}

/// Runs parts of a race for real.
struct ForReal<'a> {
    cancel: &'a Cancel,
    transport: Transport,
    /// Scenarios (as text) whose first run is captured, and the folders for it.
    captures: Vec<(String, PathBuf)>,
    /// How faithful the runs were.
    fidelities: Vec<Fidelity>,
    faults: Vec<String>,
}

impl Stage for ForReal<'_> {
    type Error = Error;

    fn run(&mut self, scenario: &Scenario, run: u64, observer: &mut dyn Observer) -> Result<Option<Outcome>, Error> {
        let compiled = scenario.simulation(run)?;
        let captures = if run == 0 && !self.captures.is_empty() {
            let text = scenario.effective();
            self.captures.iter().find(|(wanted, _)| *wanted == text).map(|(_, folder)| folder.clone())
        } else {
            None
        };
        let performed = perform(
            scenario,
            &compiled,
            &Wanted { log: true, transport: self.transport, tell_late: None, captures },
            self.cancel,
        )?;
        self.fidelities.push(performed.outcome.fidelity);
        self.faults.extend_from_slice(&performed.outcome.faults);
        if self.cancel.is_cancelled() {
            return Ok(None);
        }
        Ok(Some(play_back(&performed, observer)))
    }
}

/// What the stack does otherwise than a contestant or the path asks for, in words.
///
/// # Errors
/// If the kernel begins in another way than a contestant: its result would stand under the wrong
/// name. If QUIC cannot carry one.
pub fn left_out(race: &Race, transport: Transport) -> Result<Vec<String>, Error> {
    let mut list = Vec::new();
    for contestant in &race.contestants {
        let scenario = race.scenario(contestant, Purpose::Start, 0);
        let compiled = scenario.simulation(0)?;
        match transport {
            Transport::Kernel => {}
            #[cfg(feature = "quic")]
            Transport::Quic => {
                super::quic::check(&compiled)?;
                super::quic::check_path(race.path.rtt, race.capacity())?;
                continue;
            }
        }
        if let Some(other) = compiled.groups.iter().find_map(|label| other_start(&label.algorithm)) {
            return Err(Error::OtherStart(other));
        }
        // A contestant's constants are always written out; they are not worth a word.
        list.extend(not_real(&scenario, &compiled).into_iter().filter(|line| !line.starts_with("flow[")));
    }
    Ok(list)
}

/// Runs the race; [privileges](flowstart_emulator::privilege) must be there. The first run of each
/// contestant's start is captured into its folder of `captures`, which must exist; none are
/// captured if there are no folders.
///
/// # Errors
/// If the race cannot be run here.
pub fn race(
    race: &Race,
    transport: Transport,
    captures: &[PathBuf],
    cancel: &Cancel,
    progress: impl Fn(usize, usize),
) -> Result<RealRace, Error> {
    let text = |contestant| race.scenario(contestant, Purpose::Start, 0).effective();
    let captures = race.contestants.iter().map(text).zip(captures.iter().cloned()).collect();
    let mut stage = ForReal { cancel, transport, captures, fidelities: Vec::new(), faults: Vec::new() };
    let result = race.run_on(&mut stage, cancel, progress)?;
    Ok(RealRace { result, fidelities: stage.fidelities, faults: stage.faults })
}
