//! `flowstart compare --real`: a race of the kernel's congestion controls.

use flowstart_experiment::race::{Purpose, Race, RaceResult};
use flowstart_experiment::run::Cancel;
use flowstart_units::Span;

use super::perform::not_real;
use super::stage::Real;
use super::{become_able, fidelity_limit, judge};
use crate::output::{Failure, note};

/// Runs the race, and says how faithful it was. `listen` is called when namespaces have been entered: it starts a thread.
pub(crate) fn race(
    race: &Race,
    fidelity: Option<Span>,
    listen: impl FnOnce() -> Cancel,
    progress: impl Fn(usize, usize),
) -> Result<(RaceResult, Result<(), Failure>), Failure> {
    become_able()?;
    for contestant in &race.contestants {
        let scenario = race.scenario(contestant, Purpose::Start, 0);
        let compiled = scenario.simulation(0).map_err(Failure::usage)?;
        // A contestant's constants are always written out; only another start is worth a word.
        for line in not_real(&scenario, &compiled).iter().filter(|line| line.contains("begins with")) {
            note(&format!("not as in the simulator: {line}"));
        }
    }
    let cancel = listen();
    let stage = Real { cancel: &cancel, fidelities: Default::default(), failure: Default::default() };
    let result = race.run_on(&stage, &cancel, progress);
    if let Some(failure) = stage.failure.take() {
        return Err(failure);
    }
    let result = result.map_err(Failure::usage)?;
    let fidelities = stage.fidelities.take();
    let limit = fidelity_limit(fidelity);
    let mut verdict = Ok(());
    for one in &fidelities {
        verdict = verdict.and(judge(&limit, one));
    }
    if let Some(worst) = fidelities.iter().max_by_key(|fidelity| fidelity.p99) {
        note(&format!("{} real runs; the least faithful: {worst}", fidelities.len()));
    }
    Ok((result, verdict))
}
