//! All runs of a scenario, one after the other.

use std::path::Path;

use flowstart_emulator::Fidelity;
use flowstart_emulator::traffic::{Traffic, has_congestion_control};
use flowstart_parallel::Cancel;
use flowstart_results::Results;
use flowstart_scenario::Scenario;
use flowstart_simulator::Stop;

use super::layout::Layout;
use super::perform::{Wanted, perform};
use super::plan::Plan;
use super::rows::tables;
use super::{Error, Transport};

/// What the runs of a scenario brought.
#[derive(Debug)]
pub struct Runs {
    /// The tables of all runs.
    pub results: Results,
    /// How faithful each run was.
    pub fidelities: Vec<Fidelity>,
    /// Whether the captures were written: all else is known without them.
    pub captured: Result<(), Error>,
    /// Why it ended early, if not because it was cancelled; what was finished is there.
    pub failed: Option<Error>,
}

/// Checks that all runs of a scenario can be begun here.
///
/// # Errors
/// What the kernel lacks, or what nobody can run.
pub fn check(scenario: &Scenario) -> Result<(), Error> {
    let compiled = scenario.simulation(0)?;
    let (Stop::At(until) | Stop::WhenComplete(until)) = compiled.simulation.stop;
    let plan = Plan::new(&compiled, &Layout::new(&compiled)?, until, Transport::Kernel)?;
    let flows = plan.flows.iter().filter_map(|flow| match &flow.traffic {
        Traffic::Tcp { congestion, .. } => congestion.as_deref(),
        Traffic::Udp { .. } => None,
    });
    let mut controls: Vec<&str> =
        flows.chain(plan.sessions.iter().filter_map(|session| session.congestion.as_deref())).collect();
    controls.sort_unstable();
    controls.dedup();
    Ok(controls.into_iter().try_for_each(has_congestion_control)?)
}

/// Runs a scenario as often as it says; [privileges](flowstart_emulator::privilege) must be there.
/// Every link of the first run is captured into a file of the folder `captures`, which must exist.
/// `done` hears of each run, how faithful it was, and which parts of the emulator failed in it.
/// `None` if it was cancelled before the first run had ended.
///
/// # Errors
/// If not even the first run came about.
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
        let performed = match (perform(scenario, &compiled, &wanted, cancel), &mut all) {
            (Ok(performed), _) => performed,
            (Err(error), None) => return Err(error),
            (Err(error), Some(all)) => {
                all.failed = Some(error);
                break;
            }
        };
        let fidelity = performed.outcome.fidelity;
        let one = tables(scenario, &compiled, &performed, run);
        done(run, &fidelity, &performed.outcome.faults);
        match &mut all {
            None => {
                let captured = performed.captured;
                all = Some(Runs { results: one, fidelities: vec![fidelity], captured, failed: None });
            }
            Some(Runs { results, fidelities, .. }) => {
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
