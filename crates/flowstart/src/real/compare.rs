//! `flowstart compare --real`: a race of the kernel's congestion controls.

use std::path::Path;

use flowstart_parallel::Cancel;
use flowstart_race::{Purpose, Race, RaceResult, labels};
use flowstart_units::Span;

use super::controls::{not_real, other_start};
use super::stage::Real;
use super::{become_able, fidelity_limit, judge};
use crate::output::{Failure, note};

/// Runs the race, and says how faithful it was. The first run of each contestant's start is captured into a folder of `pcap` named by `file_name`.
/// `listen` is called when namespaces have been entered: it starts a thread.
pub(crate) fn race(
    race: &Race,
    fidelity: Option<Span>,
    (pcap, file_name): (Option<&Path>, impl Fn(&str) -> String),
    listen: impl FnOnce() -> Cancel,
    progress: impl Fn(usize, usize),
) -> Result<(RaceResult, Result<(), Failure>), Failure> {
    become_able()?;
    let mut wanted = Vec::new();
    for (contestant, label) in race.contestants.iter().zip(labels(&race.contestants)) {
        let scenario = race.scenario(contestant, Purpose::Start, 0);
        let compiled = scenario.simulation(0).map_err(Failure::usage)?;
        // Another start under this one's name would be a wrong result.
        if let Some(other) = compiled.groups.iter().find_map(|label| other_start(&label.algorithm)) {
            return Err(Failure::NotPossible(other));
        }
        // A contestant's constants are always written out; they are not worth a word.
        for line in not_real(&scenario, &compiled).iter().filter(|line| !line.starts_with("flow[")) {
            note(&format!("not as in the simulator: {line}"));
        }
        if let Some(folder) = pcap {
            wanted.push((scenario.effective(), folder.join(file_name(&label))));
        }
    }
    let cancel = listen();
    let stage = Real { cancel: &cancel, pcap: wanted, fidelities: Default::default(), failure: Default::default() };
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
