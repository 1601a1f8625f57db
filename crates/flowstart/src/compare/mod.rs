//! `flowstart compare`: the race.

mod worlds;

use std::path::{Path, PathBuf};

use flowstart_pages::compare::{Shown, TITLES};
use flowstart_race::{
    Background, Contestant, ContestantResult, MarkThreshold, Others, Purpose, Race, RaceResult, RunOptions, World,
    labels,
};
use flowstart_report::Terminal;
use flowstart_scenario::{Buffer, Dialect, Scenario};

use crate::args::{CompareArgs, RacePathArgs};
use crate::captures::capture;
use crate::interrupt;
use crate::output::{
    Done, Failure, ending, note, prepare_file, prepare_folder, print, print_json, progress, roughly, spare_inputs,
    take_folder, terminal, write_around, write_file,
};
use crate::pages;
use crate::scenario::load_surroundings;
use crate::session::command_line;

/// Where results go unless something else is said.
const DEFAULT_FOLDER: &str = "flowstart-report";

/// Formats of single files, by their endings.
const ENDINGS: [&str; 6] = ["html", "json", "csv", "md", "svg", "txt"];

/// Runs the race.
pub(crate) fn compare(args: &CompareArgs) -> Done {
    if args.worlds {
        return worlds::compare(args);
    }
    let (race, warnings) = race(args)?;
    warnings.iter().for_each(|warning| note(warning));
    let folder = folder(args);
    if let Some(folder) = &folder {
        spare_inputs([REPORT, PARAMETERS, RESULT, SUMMARY, RUNS, SERIES].map(|name| folder.join(name)))?;
        spare_inputs(scenario_files(folder, labels(&race.contestants)))?;
        spare_inputs(earlier_scenarios(folder))?;
        take_folder(folder)?;
    }
    if let Some(folder) = &args.pcap {
        prepare_folder(folder)?;
    }
    pages::figure_is_shown(args.output.figure.as_deref(), &args.output.files)?;
    if let Some(figure) = &args.output.figure {
        pages::chosen(&TITLES, figure)?;
    }
    for file in &args.output.files {
        ending(file, &ENDINGS)?;
        prepare_file(file)?;
    }
    tell_estimate(&race, args.threads);
    let began = std::time::Instant::now();
    let (result, verdict) = raced(&race, args)?;
    let took = began.elapsed().as_secs_f64();
    if !result.complete && result.simulations.0 == 0 {
        // Nothing would take the place of an earlier race's results.
        return Err(Failure::InterruptedEarly);
    }
    let command = command_line();
    let shown = Shown::new(&result, args.title.clone(), command, warnings);
    // What cannot be written is told after what was found.
    let written = write(&shown, folder.as_deref(), args);
    let captured = match args.pcap.as_ref().filter(|_| !race.world.is_real() && result.complete) {
        Some(folder) => result.contestants.iter().try_for_each(|contestant| {
            let scenario = result.race.scenario(&contestant.contestant, Purpose::Start, 0);
            capture(&scenario, folder, &file_name(&contestant.label))
        }),
        None => Ok(()),
    };
    if args.output.json {
        print_json(&result.to_json())?;
    } else {
        let mut text = shown.text(terminal(), args.all, took);
        if let Some(folder) = folder.as_ref().filter(|_| written.is_ok()) {
            text.push_str(&format!("parameters: {}\n", folder.join(PARAMETERS).display()));
            text.push_str(&format!("report: {}\n", folder.join(REPORT).display()));
        }
        print(&text)?;
    }
    written.and(captured)?;
    // A real race that failed says why it is not complete.
    verdict?;
    if result.complete { Ok(()) } else { Err(Failure::Interrupted) }
}

/// Packets that one core simulates in a second, carefully: 5 to 7 million on a shared virtual AMD
/// EPYC machine.
const PACKETS_PER_SECOND: f64 = 5e6;
/// Estimates below are not told.
const TOLD_FROM_SECONDS: f64 = 5.0;

/// Says before a long race how long it will take.
fn tell_estimate(race: &Race, threads: Option<usize>) {
    let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let packets = race.packets();
    let seconds = packets / PACKETS_PER_SECOND / threads as f64;
    if !race.world.is_real() && seconds >= TOLD_FROM_SECONDS {
        note(&format!(
            "{} contestants, runs: {}, about {:.0} million packets: about {} on {threads} threads",
            race.contestants.len(),
            race.effective_runs(),
            packets / 1e6,
            roughly(seconds)
        ));
    }
}

/// The race, run; and the outcome of what a real one was checked for.
pub(crate) fn raced(race: &Race, args: &CompareArgs) -> Result<(RaceResult, Done), Failure> {
    let bar = progress("racing");
    let tell = |done: usize, of: usize| {
        bar.set_length(of as u64);
        bar.set_position(done as u64);
    };
    let outcome = if race.world.is_real() {
        really(race, args, tell)?
    } else {
        let cancel = interrupt::listen();
        let options =
            RunOptions { threads: args.threads, cancel: Some(&cancel), progress: Some(&tell), ..RunOptions::default() };
        (race.run(&options).map_err(Failure::usage)?, Ok(()))
    };
    bar.finish_and_clear();
    if outcome.0.complete {
        without_transfers(&outcome.0).iter().for_each(|remark| note(remark));
    }
    Ok(outcome)
}

/// Who completed no transfer in any run: cells without a number do not say that it may be stuck.
fn without_transfers(result: &RaceResult) -> Vec<String> {
    let transfers: Vec<_> =
        result.race.measures().into_iter().filter(|measure| measure.name().starts_with("completion")).collect();
    if transfers.is_empty() {
        return Vec::new();
    }
    let none = |contestant: &&ContestantResult| {
        contestant.runs.iter().all(|run| transfers.iter().all(|measure| run.get(*measure).is_none()))
    };
    let stuck = result.contestants.iter().filter(none);
    stuck.map(|contestant| format!("{} completed no transfer in any run", contestant.label)).collect()
}

/// The race on this machine, over the kernel's TCP or our QUIC.
#[cfg(target_os = "linux")]
fn really(race: &Race, args: &CompareArgs, progress: impl Fn(usize, usize)) -> Result<(RaceResult, Done), Failure> {
    crate::real::race(race, args.fidelity, (args.pcap.as_deref(), file_name), interrupt::listen, progress)
}

#[cfg(not(target_os = "linux"))]
fn really(_: &Race, _: &CompareArgs, _: impl Fn(usize, usize)) -> Result<(RaceResult, Done), Failure> {
    Err(Failure::NotPossible(crate::output::NEEDS_LINUX.to_owned()))
}

/// The race that the options describe, which can be run.
pub(crate) fn race(args: &CompareArgs) -> Result<(Race, Vec<String>), Failure> {
    args.path.path.one_path(args.scenario.as_deref())?;
    let scenario = match &args.scenario {
        Some(path) => Some((load_surroundings(path)?, path)),
        None => None,
    };
    let mut race = match &scenario {
        Some((scenario, path)) => {
            Race::from_scenario(scenario).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?
        }
        None => Race::default(),
    };
    lay_over(&mut race, &args.path, &args.background)?;
    if let Some(flows) = args.flows {
        race.flows = flows;
    }
    if !args.sizes.is_empty() {
        race.sizes.clone_from(&args.sizes);
    }
    if !args.contestants.is_empty() {
        race.contestants.clone_from(&args.contestants);
    }
    race.horizon = args.horizon.or(race.horizon);
    race.seed = args.seed.unwrap_or(race.seed);
    race.runs = args.runs.or(args.phases).or(race.runs);
    if args.phases.is_some() {
        if args.real || args.quic || args.worlds {
            let why = "--phases is for simulated races, real ones differ from run to run anyway; say --runs instead";
            return Err(Failure::usage(why));
        }
        let said = scenario.as_ref().and_then(|(scenario, _)| scenario.phases);
        race.phases = Some(said.unwrap_or(race.path.rtt));
    }
    if args.fidelity.is_some() && !(args.real || args.quic || args.worlds) {
        let why = "--fidelity is about races with --real, --quic or --worlds; name one of them";
        return Err(Failure::Usage(why.to_owned()));
    }
    if args.stack.is_some() && !(args.quic || args.worlds) {
        return Err(Failure::usage("--stack is about races with --quic or --worlds; name one of them"));
    }
    race.world = match (args.real, args.quic) {
        (_, true) => quic(args),
        (true, false) => World::Kernel,
        (false, false) => World::Simulated,
    };
    if args.real && args.contestants.is_empty() {
        // What every kernel has, unless it was built without.
        race.contestants = ["cubic", "reno"].iter().filter_map(|name| name.parse().ok()).collect();
    }
    once_each(&race.contestants)?;
    let dialect = scenario.as_ref().and_then(|(scenario, _)| scenario.dialect);
    if let Some(dialect) = dialect.filter(|_| !race.world.is_real() && !args.worlds) {
        for contestant in &mut race.contestants {
            contestant.dialect.get_or_insert(dialect);
        }
        let name = dialect.name();
        once_each(&race.contestants).map_err(|error| match error {
            Failure::Usage(twice) => {
                let all = format!("with `dialect = \"{name}\"` all have /{name} that name no other");
                Failure::Usage(format!("{twice} ({all})"))
            }
            other => other,
        })?;
    }
    if let Some(carrier) = race.world.carrier() {
        let all = race.contestants.iter().chain(args.background.iter().map(|background| &background.flow));
        carrier.check(all).map_err(Failure::usage)?;
    }
    race.validate().map_err(Failure::usage)?;
    let mut warnings = flowstart_race::fit_to_marks(&mut race).map_err(Failure::usage)?;
    if let Some((_, file)) = &scenario {
        warnings.extend(race.too_late().into_iter().map(|sentence| format!("{}: {sentence}", file.display())));
    }
    warnings.extend(scenario.and_then(|(scenario, file)| not_heeded(&scenario, file, &race, "race")));
    warnings.extend(queues_heed(&race, args));
    Ok((race, warnings))
}

/// Over QUIC, with the stack that was asked for.
fn quic(args: &CompareArgs) -> World {
    World::Quic { stack: args.stack.unwrap_or_default().name().to_owned() }
}

/// What the command line says of queues, and no contestant's queue heeds.
fn queues_heed(race: &Race, args: &CompareArgs) -> Vec<String> {
    let queues = |race: &Race| -> Vec<_> {
        let of = |contestant| Some(race.simulation(contestant, Purpose::Start, 0).ok()?.links.first()?.queue);
        race.contestants.iter().map(of).collect()
    };
    let changed = |change: &dyn Fn(&mut Race)| {
        let mut other = race.clone();
        change(&mut other);
        queues(&other) != queues(race)
    };
    let mut said = Vec::new();
    if args.path.mark.is_some() && ![1, 2].into_iter().any(|n| changed(&|race| race.mark = MarkThreshold::Packets(n))) {
        said.push(
            "--mark counts for nothing: no contestant's queue marks above a threshold that it leaves open; name one, \
             such as -C dctcp@step_mark"
                .to_owned(),
        );
    }
    let packets = |n| move |race: &mut Race| race.path.buffer = Some(Buffer::Packets(n));
    if args.path.path.buffer.is_some() && ![1, 2].into_iter().any(|n| changed(&packets(n))) {
        said.push("--buffer counts for nothing: all contestants' queues have limits of their own".to_owned());
    }
    said
}

/// Which keys of a scenario file count for nothing in this race or `what` else has contestants and
/// a horizon of its own.
pub(crate) fn not_heeded(scenario: &Scenario, file: &Path, race: &Race, what: &str) -> Option<String> {
    let mut keys = unheeded(scenario, race);
    if what != "race" && scenario.runs > 1 {
        keys.push("runs");
    }
    let (are, them) = if keys.len() == 1 { ("is", "it") } else { ("are", "them") };
    let said =
        || format!("{}: {} {are} for `flowstart run`, and no {what} heeds {them}", file.display(), keys.join(", "));
    (!keys.is_empty()).then(said)
}

/// Keys of a scenario that say something and that this race does not heed.
fn unheeded(scenario: &Scenario, race: &Race) -> Vec<&'static str> {
    const USUAL: &str = "[path]\ncapacity = \"1 Mbit/s\"\nrtt = \"1 ms\"\n[[flow]]\n";
    let Ok(usual) = Scenario::parse("usual", USUAL) else { return Vec::new() };
    // Kernels are Linux's, and simulated racers can be anybody's. The queues of a path have the
    // dialect.
    let some_without = || race.contestants.iter().any(|one| one.dialect.is_none());
    let dialect = match scenario.dialect {
        None => false,
        Some(Dialect::Linux) => !race.world.is_real() && some_without() || race.world.stack().is_some(),
        Some(Dialect::Ns3) => race.world.is_real() || race.contestants.is_empty() || some_without(),
    };
    let said = [
        ("duration", scenario.duration != usual.duration),
        ("stop_when_complete", scenario.stop_when_complete),
        ("phases", scenario.phases.is_some() && race.phases.is_none()),
        ("dialect (of the racers)", dialect),
        ("[output]", scenario.output != usual.output),
        ("[[web]]", !scenario.web.is_empty()),
    ];
    said.into_iter().filter(|(_, said)| *said).map(|(key, _)| key).collect()
}

/// What the command line says of the path (capacity, RTT, buffer, marking threshold) and of those
/// who are there before, over what the race has.
pub(crate) fn lay_over(race: &mut Race, RacePathArgs { path, mark }: &RacePathArgs, background: &[Background]) -> Done {
    path.tell_overridden(&[]);
    path.lay_over(&mut race.path)?;
    path.check_keys(&race.path)?;
    race.mark = mark.unwrap_or(race.mark);
    if !background.is_empty() {
        race.others = Others::default();
        for flow in background {
            let before = race.others.tcp_flows();
            race.others.flow.push(flow.spec(before));
        }
    }
    Ok(())
}

/// Refuses who is named twice: columns would be the same, under two names.
pub(crate) fn once_each(contestants: &[Contestant]) -> Done {
    let twice = contestants.iter().enumerate().find(|(place, one)| contestants[..*place].contains(one));
    match twice {
        Some((_, one)) => Err(Failure::Usage(format!("{one} is among the contestants twice; name each once"))),
        None => Ok(()),
    }
}

/// The results' folder: as asked, else the default one unless results go elsewhere.
fn folder(args: &CompareArgs) -> Option<PathBuf> {
    let output = &args.output;
    let elsewhere = output.no_report || output.json || !output.files.is_empty();
    output.out.clone().or_else(|| (!elsewhere).then(|| PathBuf::from(DEFAULT_FOLDER)))
}

/// A label as the name of a file.
pub(crate) fn file_name(label: &str) -> String {
    label.chars().map(|c| if c.is_ascii_alphanumeric() || "+_-.".contains(c) { c } else { '_' }).collect()
}

/// Names of the files in the results' folder.
const REPORT: &str = "report.html";
const PARAMETERS: &str = "parameters.json";
const RESULT: &str = "result.json";
const SUMMARY: &str = "summary.csv";
const RUNS: &str = "runs.csv";
const SERIES: &str = "series.csv";
const SCENARIOS: &str = "scenarios";

/// Where the scenarios of contestants are written.
fn scenario_files(folder: &Path, labels: impl IntoIterator<Item = String>) -> Vec<PathBuf> {
    let file = |label: String| folder.join(SCENARIOS).join(format!("{}.toml", file_name(&label)));
    labels.into_iter().map(file).collect()
}

/// The scenarios that an earlier race wrote, going by its results. What nobody wrote here is not
/// among them, nor what a link leads to.
fn earlier_scenarios(folder: &Path) -> Vec<PathBuf> {
    let Ok(bytes) = std::fs::read(folder.join(RESULT)) else { return Vec::new() };
    let earlier: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
    if folder.join(SCENARIOS).is_symlink() {
        return Vec::new();
    }
    let labels = earlier["contestants"].as_array().into_iter().flatten().filter_map(|one| one["label"].as_str());
    scenario_files(folder, labels.map(str::to_owned))
}

/// Removes them: of other contestants they would pass for this race's.
fn remove_earlier(scenarios: &[PathBuf]) {
    for file in scenarios {
        if file.symlink_metadata().is_ok_and(|file| file.is_file()) {
            // What cannot be removed stays.
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Writes the files.
fn write(shown: &Shown<'_>, folder: Option<&Path>, args: &CompareArgs) -> Done {
    let json = |value: &serde_json::Value| format!("{value:#}\n").into_bytes();
    if let Some(folder) = folder {
        let race = &shown.result.race;
        let earlier = earlier_scenarios(folder);
        write_around(&folder.join(RESULT), &shown.result.to_json(), || {
            remove_earlier(&earlier);
            write_file(&folder.join(PARAMETERS), &json(&race.parameters()))?;
            write_file(&folder.join(SUMMARY), shown.full.to_csv().as_bytes())?;
            write_file(&folder.join(RUNS), shown.result.runs_csv().as_bytes())?;
            write_file(&folder.join(SERIES), shown.result.series_csv().as_bytes())?;
            prepare_folder(&folder.join(SCENARIOS))?;
            for contestant in &shown.result.contestants {
                let name = file_name(&contestant.label);
                let scenario = race.scenario(&contestant.contestant, Purpose::Start, 0).effective();
                write_file(&folder.join(SCENARIOS).join(format!("{name}.toml")), scenario.as_bytes())?;
            }
            write_file(&folder.join(REPORT), shown.page().to_html().as_bytes())
        })?;
    }
    for file in &args.output.files {
        let bytes = match ending(file, &ENDINGS)? {
            "html" => shown.page().to_html().into_bytes(),
            "json" => json(&shown.result.to_json()),
            "csv" => shown.full.to_csv().into_bytes(),
            "md" => shown.markdown().into_bytes(),
            "svg" => pages::alone(&shown.page(), args.output.figure.as_deref())?.to_svg().into_bytes(),
            _ => shown.tables.iter().map(|table| table.to_terminal(Terminal::plain())).collect::<String>().into_bytes(),
        };
        write_file(file, &bytes)?;
    }
    Ok(())
}
