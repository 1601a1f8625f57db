//! `flowstart compare --real` and `--quic`: a race of the kernel's congestion controls, or over
//! this project's QUIC.

use std::path::{Path, PathBuf};

use flowstart_parallel::Cancel;
use flowstart_race::{Race, RaceResult, labels};
use flowstart_real::{RealRace, Transport, left_out};
use flowstart_units::Span;

use super::{become_able, fidelity_limit, judge_all};
use crate::output::{Failure, note, prepare_folder};

/// Runs the race, and says how faithful it was. The first run of each contestant's start is
/// captured into a folder of `pcap` named by `file_name`. `listen` is called when namespaces have
/// been entered: it starts a thread.
pub(crate) fn race(
    race: &Race,
    fidelity: Option<Span>,
    (pcap, file_name): (Option<&Path>, impl Fn(&str) -> String),
    listen: impl FnOnce() -> Cancel,
    progress: impl Fn(usize, usize),
) -> Result<(RaceResult, Result<(), Failure>), Failure> {
    let transport = transport(race)?;
    let left_out = left_out(race, transport);
    if race.world.stack().is_some() {
        // What cannot be carried is said before what this machine does not allow.
        left_out.as_ref().map_err(|error| Failure::usage(error.to_string()))?;
    }
    become_able()?;
    for line in left_out? {
        note(&format!("not as in the simulator: {line}"));
    }
    let folder = |pcap: &Path| labels(&race.contestants).iter().map(|label| pcap.join(file_name(label))).collect();
    let folders: Vec<PathBuf> = pcap.map(folder).unwrap_or_default();
    for folder in &folders {
        prepare_folder(folder)?;
    }
    let cancel = listen();
    let RealRace { result, fidelities, faults, captured, failed } =
        flowstart_real::race(race, transport, &folders, &cancel, progress)?;
    faults.iter().for_each(|fault| note(fault));
    let limit = fidelity_limit(fidelity);
    // What failed is told after what was finished.
    let verdict = match failed {
        Some(error) => Err(error.into()),
        None if !result.complete => Err(Failure::Interrupted),
        None => captured.map_err(Failure::from).and_then(|()| judge_all(&limit, &fidelities)),
    };
    if let Some(worst) = fidelities.iter().max_by_key(|fidelity| fidelity.p99) {
        note(&format!("{} real runs; the least faithful: {worst}", fidelities.len()));
    }
    Ok((result, verdict))
}

/// What carries the race.
#[cfg(feature = "quic")]
pub(crate) fn transport(race: &Race) -> Result<Transport, Failure> {
    let Some(name) = race.world.stack() else { return Ok(Transport::Kernel) };
    let found = flowstart_quic::Stack::ALL.into_iter().find(|stack| stack.name() == name);
    found.map(Transport::Quic).ok_or_else(|| Failure::Usage(format!("there is no QUIC stack {name:?}")))
}

/// What carries the race.
#[cfg(not(feature = "quic"))]
pub(crate) fn transport(race: &Race) -> Result<Transport, Failure> {
    if race.world.stack().is_some() { Err(crate::quic::without()) } else { Ok(Transport::Kernel) }
}
