//! `flowstart scenario`: looking at scenario files.

use std::path::Path;

use flowstart_congestion::StartConfig;
use flowstart_scenario::{FlowSpec, Scenario, ScenarioError};

use crate::args::ScenarioCommand;
use crate::output::{Done, Failure, note, print};
use crate::session;

/// Checks, shows, or describes.
pub(crate) fn scenario(command: &ScenarioCommand) -> Done {
    match command {
        ScenarioCommand::Lint { files } => {
            let mut wrong = false;
            for file in files {
                match Scenario::load(file) {
                    Ok(scenario) => {
                        print(&format!("{}: ok, scenario {}\n", file.display(), scenario.hash()))?;
                        for sentence in scenario.without_influence() {
                            note(&format!("{}: {sentence}", file.display()));
                        }
                        if has_bare_cubic(&scenario) {
                            note(&format!(
                                "{}: algorithm = \"cubic\" is slow_start+cubic; \"cubic\" of `compare -C` is \
                                 hystart+cubic; write which of the two is meant",
                                file.display()
                            ));
                        }
                    }
                    Err(error) => {
                        note(&describe(&error));
                        wrong = true;
                    }
                }
            }
            if wrong { Err(Failure::Check) } else { Ok(()) }
        }
        ScenarioCommand::Show { file } => print(&load(file)?.effective()),
        ScenarioCommand::Schema => {
            let schema = schemars::schema_for!(Scenario);
            print(&format!("{:#}\n", schema.as_value()))
        }
    }
}

/// Whether a flow has the one name that is another contestant in races.
fn has_bare_cubic(scenario: &Scenario) -> bool {
    let arriving = scenario.arrivals.iter().map(|arrival| &arrival.flow);
    let named =
        |flow: &FlowSpec| flow.flow_start.is_none() && flow.algorithm.as_deref().map(str::trim) == Some("cubic");
    scenario.flow.iter().chain(arriving).any(named)
}

/// Says of starts that know nothing here that they do not.
pub(crate) fn tell_ignorant<'a>(starts: impl IntoIterator<Item = &'a StartConfig>) {
    if starts.into_iter().any(|start| matches!(start, StartConfig::Oracle(config) if config.steps.is_empty())) {
        note("outside races the start oracle knows nothing but its steps; without any it is slow start");
    }
}

/// Reads a scenario file, or the text that the program that this is a part of gave for it.
pub(crate) fn load(file: &Path) -> Result<Scenario, Failure> {
    read(file, Scenario::read)
}

/// The same of one that may be a path alone, for who brings flows of its own.
pub(crate) fn load_surroundings(file: &Path) -> Result<Scenario, Failure> {
    read(file, Scenario::read_surroundings)
}

fn read(
    file: &Path,
    understand: fn(&str, &str, &Path) -> Result<Scenario, ScenarioError>,
) -> Result<Scenario, Failure> {
    let name = file.display().to_string();
    let understood = match session::text(file) {
        Some(text) => understand(&name, &text, Path::new("")),
        None => flowstart_scenario::read(file)
            .and_then(|text| understand(&name, &text, file.parent().unwrap_or(Path::new(".")))),
    };
    understood.map_err(|error| Failure::Usage(describe(&error)))
}

/// The error with the place it means.
pub(crate) fn describe(error: &ScenarioError) -> String {
    let snippet = error.snippet();
    if snippet.is_empty() { error.to_string() } else { format!("{error}\n{}", snippet.trim_end()) }
}
