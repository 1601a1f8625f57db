//! Captures of a simulation's links, as files for Wireshark.

use std::path::Path;

use flowstart_capture::{Capture, Captures, file_name};
use flowstart_scenario::Scenario;
use flowstart_simulator::Simulation;

use crate::interrupt;
use crate::output::{Done, Failure};

/// Every link of the first run, a file each: `NAME-LINK.pcapng`. Ctrl-C gives it up, and there are
/// no files.
pub(crate) fn capture(scenario: &Scenario, folder: &Path, name: &str) -> Done {
    let compiled = scenario.simulation(0).map_err(Failure::usage)?;
    let captures = compiled
        .links
        .iter()
        .enumerate()
        .map(|(number, link)| Capture::new(number, link, &folder.join(format!("{name}-{}.pcapng", file_name(link)))))
        .collect::<Result<Vec<_>, _>>()
        .map_err(Failure::usage)?;
    let simulation = Simulation::new(&compiled.simulation, Captures(captures)).map_err(Failure::usage)?;
    let cancel = interrupt::listen();
    let captured = simulation.run_unless(|| cancel.is_cancelled());
    let Some((_, Captures(captures))) = captured else { return Err(Failure::Interrupted) };
    for capture in captures {
        capture.finish().map_err(Failure::usage)?;
    }
    Ok(())
}
