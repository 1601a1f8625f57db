//! A race for real, of the kernel's congestion controls or over this project's QUIC: the emulator
//! as its stage.

use std::path::PathBuf;

use flowstart_emulator::Fidelity;
use flowstart_parallel::Cancel;
use flowstart_race::{Contestant, Purpose, Race, RaceResult, Stage};
use flowstart_scenario::{FlowSpec, Scenario};
use flowstart_simulator::{Observer, Outcome};

#[cfg(feature = "quic")]
use super::controls::not_over_quic;
use super::controls::{control, not_real, other_start};
use super::perform::{Wanted, perform};
use super::replay::play_back;
use super::runs::check;
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
    /// Whether the captures were written: all else is known without them.
    pub captured: Result<(), Error>,
    /// Why it ended early, if not because it was cancelled; what was finished is there.
    pub failed: Option<Error>,
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
    captured: Result<(), Error>,
    /// Nothing runs any more after that.
    failed: Option<Error>,
}

impl Stage for ForReal<'_> {
    type Error = Error;

    fn run(&mut self, scenario: &Scenario, run: u64, observer: &mut dyn Observer) -> Result<Option<Outcome>, Error> {
        if self.failed.is_some() {
            return Ok(None);
        }
        let compiled = scenario.simulation(run)?;
        let captures = if run == 0 && !self.captures.is_empty() {
            let text = scenario.effective();
            self.captures.iter().find(|(wanted, _)| *wanted == text).map(|(_, folder)| folder.clone())
        } else {
            None
        };
        let wanted = Wanted { log: true, transport: self.transport, given: false, captures };
        let mut performed = match perform(scenario, &compiled, &wanted, self.cancel) {
            Ok(performed) => performed,
            Err(error) => {
                self.failed = Some(error);
                return Ok(None);
            }
        };
        let captured = std::mem::replace(&mut performed.captured, Ok(()));
        if self.captured.is_ok() {
            self.captured = captured;
        }
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
    let mut list: Vec<String> = Vec::new();
    for contestant in &race.contestants {
        let scenario = race.scenario(contestant, Purpose::Start, 0);
        let compiled = scenario.simulation(0)?;
        let lines = match transport {
            Transport::Kernel => {
                if let Some(other) = compiled.groups.iter().find_map(|label| other_start(&label.algorithm)) {
                    return Err(Error::OtherStart(other));
                }
                not_real(&scenario, &compiled)
            }
            #[cfg(feature = "quic")]
            Transport::Quic(_) => {
                super::quic::check(&compiled)?;
                not_over_quic(&scenario)
            }
        };
        let others = race.others.flow.len();
        let is_of_file = |(number, flow): (usize, &FlowSpec)| number < others && !is_contestant(flow);
        let of_file: Vec<bool> = scenario.flow.iter().enumerate().map(is_of_file).collect();
        let is_worth_a_word = |line: &String| match line.strip_prefix("flow[").and_then(|line| line.split_once(']')) {
            Some((number, _)) => {
                number.parse().ok().and_then(|number: usize| of_file.get(number).copied()) == Some(true)
            }
            None => true,
        };
        for line in lines.into_iter().filter(is_worth_a_word) {
            if !list.contains(&line) {
                list.push(line);
            }
        }
    }
    Ok(list)
}

/// Why a race with this contestant alone cannot be carried here, in a sentence; `None` if it can.
#[must_use]
pub fn refused(race: &Race, contestant: &Contestant, transport: Transport) -> Option<String> {
    let alone = Race { contestants: vec![contestant.clone()], ..race.clone() };
    let checked = left_out(&alone, transport).and_then(|_| match transport {
        Transport::Kernel => {
            let compiled = alone.scenario(contestant, Purpose::Start, 0).simulation(0)?;
            let missing = compiled.groups.iter().map(|label| control(&label.algorithm, None).map(|_| ()));
            missing.collect::<Result<(), Error>>()
        }
        #[cfg(feature = "quic")]
        Transport::Quic(_) => Ok(()),
    });
    checked.err().map(|error| error.to_string())
}

/// A contestant, or one as a background flow: everything is written out, which is not worth a word;
/// what is not done is refused.
fn is_contestant(flow: &FlowSpec) -> bool {
    flow.algorithm.is_some() && flow.flow_start.is_some() && flow.avoidance.is_some()
}

/// Runs the race; [privileges](flowstart_emulator::privilege) must be there. The first run of each
/// contestant's start is captured into its folder of `captures`, which must exist; none are
/// captured if there are no folders.
///
/// # Errors
/// If the race cannot be run here, or failed before anything was finished.
pub fn race(
    race: &Race,
    transport: Transport,
    captures: &[PathBuf],
    cancel: &Cancel,
    progress: impl Fn(usize, usize),
) -> Result<RealRace, Error> {
    let text = |contestant| race.scenario(contestant, Purpose::Start, 0).effective();
    let captures = race.contestants.iter().map(text).zip(captures.iter().cloned()).collect();
    if transport == Transport::Kernel {
        // Whoever cannot run is told before the others have run.
        let first = |contestant| check(&race.scenario(contestant, Purpose::Start, 0));
        race.contestants.iter().try_for_each(first)?;
    }
    let (fidelities, faults) = (Vec::new(), Vec::new());
    let mut stage = ForReal { cancel, transport, captures, fidelities, faults, captured: Ok(()), failed: None };
    let result = race.run_on(&mut stage, cancel, progress)?;
    let ForReal { fidelities, faults, captured, failed, .. } = stage;
    match failed {
        Some(error) if result.simulations.0 == 0 => Err(error),
        failed => Ok(RealRace { result, fidelities, faults, captured, failed }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "[path]\ncapacity = \"20 Mbit/s\"\nrtt = \"40 ms\"\n[[flow]]\nalgorithm = \"hystart+cubic\"\n[[flow]]\n\
                        algorithm = \"hystart+cubic\"\nsender = { mss = 500 }\nreceiver = { receive_buffer = \"30 kB\" }\n";

    fn said(transport: Transport) -> Vec<String> {
        let mut race = Race::from_scenario(&Scenario::parse("others", FILE).unwrap()).unwrap();
        let background: flowstart_race::Background = "cubic/ecn".parse().unwrap();
        race.others.flow.push(background.spec(2));
        race.contestants = ["cubic", "cubic/ecn"].iter().map(|name| name.parse().unwrap()).collect();
        left_out(&race, transport).unwrap()
    }

    /// They were left out without a word.
    #[test]
    fn what_flows_of_the_file_ask_for_and_do_not_get_is_said_once() {
        let expected =
            ["flow[1].sender: the kernel's sender is as it is", "flow[1].receiver: the kernel's receiver is as it is"];
        assert_eq!(said(Transport::Kernel), expected);
    }

    #[test]
    fn who_cannot_be_carried_is_told_with_the_reason() {
        let race = Race::default();
        let why = |name: &str| refused(&race, &name.parse().unwrap(), Transport::Kernel);
        assert_eq!(why("hystart+cubic"), None);
        assert_eq!(why("rapid_start+cubic").unwrap(), "rapid_start+cubic: the kernel's cubic begins with hystart");
        assert!(why("slow_start+delay_target").unwrap().contains("no congestion control \"delay_target\""));
    }

    #[cfg(feature = "quic")]
    #[test]
    fn over_quic_too() {
        let said = said(Transport::Quic(flowstart_quic::Stack::default()));
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].starts_with("flow[1].sender: ") && said[1].starts_with("flow[1].receiver: "), "{said:?}");
    }
}
