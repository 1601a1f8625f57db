//! All runs of a scenario, one after the other.

use std::path::Path;

use flowstart_emulator::Fidelity;
use flowstart_parallel::Cancel;
use flowstart_results::Results;
use flowstart_scenario::Scenario;

use super::perform::{Wanted, perform};
use super::rows::tables;
use super::{Error, Transport};

/// What the runs of a scenario brought.
#[derive(Clone, Debug)]
pub struct Runs {
    /// The tables of all runs.
    pub results: Results,
    /// How faithful each run was.
    pub fidelities: Vec<Fidelity>,
}

/// Runs a scenario as often as it says; [privileges](flowstart_emulator::privilege) must be there.
/// Every link of the first run is captured into a file of the folder `captures`, which must exist.
/// `done` hears of each run, how faithful it was, and which parts of the emulator failed in it.
/// `None` if it was cancelled before the first run had ended.
///
/// # Errors
/// If the scenario cannot be run here.
pub fn run(
    scenario: &Scenario,
    captures: Option<&Path>,
    cancel: &Cancel,
    mut done: impl FnMut(u64, &Fidelity, &[String]),
) -> Result<Option<Runs>, Error> {
    let mut all = None::<Runs>;
    for run in 0..scenario.runs {
        if cancel.is_cancelled() {
            break;
        }
        let compiled = scenario.simulation(run)?;
        let wanted = Wanted {
            log: false,
            transport: Transport::Kernel,
            given: false,
            captures: captures.filter(|_| run == 0).map(Path::to_path_buf),
        };
        let performed = perform(scenario, &compiled, &wanted, cancel)?;
        let fidelity = performed.outcome.fidelity;
        let one = tables(scenario, &compiled, &performed, run);
        done(run, &fidelity, &performed.outcome.faults);
        match &mut all {
            None => all = Some(Runs { results: one, fidelities: vec![fidelity] }),
            Some(Runs { results, fidelities }) => {
                fidelities.push(fidelity);
                for (all, one) in results.tables.iter_mut().zip(one.tables) {
                    all.append(one);
                }
                results.finished += 1;
                results.data_packets += one.data_packets;
            }
        }
    }
    if let Some(runs) = &mut all {
        runs.results.asked = scenario.runs;
    }
    Ok(all)
}
