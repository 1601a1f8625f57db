//! `flowstart compare`: the race.

mod figures;
mod fitting;
mod page;
mod tables;
mod verdict;

use std::path::{Path, PathBuf};

use flowstart_race::{Background, Contestant, ContestantResult, Others, Purpose, Race, RaceResult, RunOptions};
use flowstart_report::{Palette, Table, Terminal};

use crate::args::{CompareArgs, RacePathArgs};
use crate::captures::capture;
use crate::interrupt;
use crate::output::{
    Failure, Outcome, ending, note, prepare_file, prepare_folder, print, print_json, progress, roughly, write_file,
};
use crate::pages;
use crate::scenario::load;
use crate::session::command_line;

/// Where results go unless something else is said.
const DEFAULT_FOLDER: &str = "flowstart-report";

/// Formats of single files, by their endings.
const ENDINGS: [&str; 6] = ["html", "json", "csv", "md", "svg", "txt"];

/// Runs the race.
pub(crate) fn compare(args: &CompareArgs) -> Outcome {
    let (race, warnings) = race(args)?;
    warnings.iter().for_each(|warning| note(warning));
    let folder = folder(args);
    if let Some(folder) = &folder {
        prepare_folder(folder)?;
    }
    if let Some(folder) = &args.pcap {
        prepare_folder(folder)?;
    }
    if let Some(figure) = &args.output.figure {
        pages::chosen(&figures::TITLES, figure)?;
    }
    for file in &args.output.files {
        ending(file, &ENDINGS)?;
        prepare_file(file)?;
    }
    tell_estimate(&race, args.threads);
    let began = std::time::Instant::now();
    let (result, verdict) = raced(&race, args)?;
    let took = began.elapsed().as_secs_f64();
    let command = command_line();
    let shown = Shown::new(&result, args, command, warnings);
    write(&shown, folder.as_deref(), args)?;
    if let Some(folder) = args.pcap.as_ref().filter(|_| !race.real) {
        for contestant in &result.contestants {
            let scenario = result.race.scenario(&contestant.contestant, Purpose::Start, 0);
            capture(&scenario, folder, &file_name(&contestant.label))?;
        }
    }
    if args.output.json {
        print_json(&result.to_json())?;
    } else {
        print(&shown.text(args.all, folder.as_deref(), took))?;
    }
    if result.complete { verdict } else { Err(Failure::Interrupted) }
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
    if !race.real && seconds >= TOLD_FROM_SECONDS {
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
pub(crate) fn raced(race: &Race, args: &CompareArgs) -> Result<(RaceResult, Outcome), Failure> {
    let bar = progress("racing");
    let tell = |done: usize, of: usize| {
        bar.set_length(of as u64);
        bar.set_position(done as u64);
    };
    let outcome = if race.real {
        really(race, args, tell)?
    } else {
        let cancel = interrupt::listen();
        let options =
            RunOptions { threads: args.threads, cancel: Some(&cancel), progress: Some(&tell), ..RunOptions::default() };
        (race.run(&options).map_err(Failure::usage)?, Ok(()))
    };
    bar.finish_and_clear();
    Ok(outcome)
}

/// The race on this machine, over the kernel's TCP or our QUIC.
#[cfg(target_os = "linux")]
fn really(race: &Race, args: &CompareArgs, progress: impl Fn(usize, usize)) -> Result<(RaceResult, Outcome), Failure> {
    crate::real::race(race, args.fidelity, (args.pcap.as_deref(), file_name), interrupt::listen, progress)
}

#[cfg(not(target_os = "linux"))]
fn really(_: &Race, _: &CompareArgs, _: impl Fn(usize, usize)) -> Result<(RaceResult, Outcome), Failure> {
    Err(Failure::NotPossible(crate::output::NEEDS_LINUX.to_owned()))
}

/// The race that the options describe, which can be run.
pub(crate) fn race(args: &CompareArgs) -> Result<(Race, Vec<String>), Failure> {
    let mut race = match &args.scenario {
        Some(path) => {
            let scenario = load(path)?;
            Race::from_scenario(&scenario).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?
        }
        None => Race::default(),
    };
    lay_over(&mut race, &args.path, &args.background);
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
    race.runs = args.runs.or(race.runs);
    if args.fidelity.is_some() && !(args.real || args.quic) {
        return Err(Failure::Usage("--fidelity is about races with --real or --quic; name one of them".to_owned()));
    }
    race.real = args.real || args.quic;
    race.quic = args.quic;
    if args.real && args.contestants.is_empty() {
        // What every kernel has, unless it was built without.
        race.contestants = ["cubic", "reno"].iter().filter_map(|name| name.parse().ok()).collect();
    }
    once_each(&race.contestants)?;
    race.validate().map_err(Failure::usage)?;
    let warnings = fitting::fit(&mut race).map_err(Failure::usage)?;
    Ok((race, warnings))
}

/// What the command line says of the path (capacity, RTT, buffer, marking threshold) and of those
/// who are there before, over what the race has.
pub(crate) fn lay_over(race: &mut Race, RacePathArgs { path, mark }: &RacePathArgs, background: &[Background]) {
    path.lay_over(&mut race.path);
    race.mark = mark.unwrap_or(race.mark);
    if !background.is_empty() {
        race.others = Others::default();
        for flow in background {
            let before = race.others.tcp_flows();
            race.others.flow.push(flow.spec(before));
        }
    }
}

/// Who is there before, in words.
fn others(others: &Others) -> Vec<String> {
    let tcp = |flow: &flowstart_scenario::FlowSpec| {
        flow.name.clone().or_else(|| flow.algorithm.clone()).unwrap_or_else(|| "TCP".to_owned())
    };
    let flows = others.flow.iter().map(|flow| format!("{} {}", flow.count, tcp(flow)));
    let datagrams = others.udp.iter().map(|udp| match &udp.name {
        Some(name) => format!("{name} (datagrams at {})", udp.rate),
        None => format!("datagrams at {}", udp.rate),
    });
    let arrivals = others.arrivals.iter().map(|arrival| {
        let how_often = match (&arrival.mean_gap, &arrival.load) {
            (Some(gap), _) => format!("one every {gap} on average"),
            (None, Some(load)) => format!("a load of {load}"),
            (None, None) => "at random".to_owned(),
        };
        format!("transfers of {} that arrive ({how_often})", tcp(&arrival.flow))
    });
    flows.chain(datagrams).chain(arrivals).collect()
}

/// Refuses who is named twice: columns would be the same, under two names.
pub(crate) fn once_each(contestants: &[Contestant]) -> Outcome {
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

/// A result in the forms in which it is shown.
struct Shown<'a> {
    result: &'a RaceResult,
    title: String,
    command: String,
    tables: Vec<Table>,
    full: Table,
    colors: Vec<flowstart_report::Color>,
    warnings: Vec<String>,
}

impl<'a> Shown<'a> {
    fn new(result: &'a RaceResult, args: &CompareArgs, command: String, warnings: Vec<String>) -> Self {
        let colors = tables::colors(result, &mut Palette::new());
        let race = &result.race;
        let title = args
            .title
            .clone()
            .unwrap_or_else(|| format!("Flow starts over {} and {} of base RTT", race.capacity(), race.path.rtt));
        let tables = tables::main_tables(result, &colors);
        let full = tables::full_table(result, &colors);
        Self { result, title, command, tables, full, colors, warnings }
    }

    /// What stands under the tables: how contestants were run, chance, and where the numbers come
    /// from.
    fn remarks(&self) -> Vec<String> {
        let race = &self.result.race;
        let mut remarks = self.warnings.clone();
        remarks.extend(tables::conditions(self.result));
        if race.has_others() {
            remarks.push(format!("Others there before: {}.", others(&race.others).join(", ")));
        }
        remarks.push(if race.is_random() {
            format!("Means of {}, ± 95 % interval.", self.runs())
        } else {
            "No randomness in this scenario: one run is enough.".to_owned()
        });
        if !self.result.complete {
            let (done, of) = self.result.simulations;
            remarks.push(format!(
                "Interrupted: {done} of {of} {} were finished.",
                if self.result.race.real || self.result.race.quic { "races" } else { "simulations" }
            ));
        }
        remarks
    }

    /// "30 runs"; after an interruption how many of them were finished.
    fn runs(&self) -> String {
        let asked = self.result.race.effective_runs();
        if self.result.complete {
            return if asked == 1 { "1 run".to_owned() } else { format!("{asked} runs") };
        }
        let whole = || self.result.contestants.iter().map(ContestantResult::whole_runs);
        match (whole().min().unwrap_or(0), whole().max().unwrap_or(0)) {
            (_, 0) => format!("the finished parts of the first of {asked} runs"),
            (least, most) if least == most => format!("{most} of {asked} runs"),
            (least, most) => format!("{least} or, of some contestants, {most} of {asked} runs"),
        }
    }

    /// For the terminal.
    fn text(&self, all: bool, folder: Option<&Path>, took: f64) -> String {
        let terminal = crate::output::terminal();
        let tables: Vec<&Table> = if all { vec![&self.full] } else { self.tables.iter().collect() };
        let mut text = format!("{}\n\n", self.title);
        for table in tables {
            text.push_str(&table.to_terminal(terminal));
            text.push('\n');
        }
        for sentence in verdict::verdict(self.result) {
            text.push_str(&sentence);
            text.push('\n');
        }
        text.push('\n');
        for remark in self.remarks() {
            text.push_str(&remark);
            text.push('\n');
        }
        let race = &self.result.race;
        let packets = self.result.data_packets as f64;
        text.push_str(&format!(
            "\n{:.1} {} seconds and {:.0} data packets in {took:.2} s{}\n",
            self.result.simulated_seconds,
            if race.real { "real" } else { "simulated" },
            packets,
            // How fast the simulator is says nothing of a kernel.
            if race.real {
                String::new()
            } else {
                format!(" ({:.1} million packets/s)", packets / took.max(1e-9) / 1e6)
            }
        ));
        text.push_str(&format!("seed {}, race {}\n", race.seed, race.hash()));
        if let Some(folder) = folder {
            text.push_str(&format!("parameters: {}\n", folder.join(PARAMETERS).display()));
            text.push_str(&format!("report: {}\n", folder.join(REPORT).display()));
        }
        text
    }

    fn markdown(&self) -> String {
        let mut text = format!("# {}\n\n    {}\n\n", self.title, self.command);
        for sentence in verdict::verdict(self.result) {
            text.push_str(&format!("{sentence}\n\n"));
        }
        for table in &self.tables {
            text.push_str(&table.to_markdown());
            text.push('\n');
        }
        for remark in self.remarks() {
            text.push_str(&format!("- {remark}\n"));
        }
        text
    }
}

/// Names of the files in the results' folder.
const REPORT: &str = "report.html";
const PARAMETERS: &str = "parameters.json";
const RESULT: &str = "result.json";
const SUMMARY: &str = "summary.csv";
const RUNS: &str = "runs.csv";
const SERIES: &str = "series.csv";
const SCENARIOS: &str = "scenarios";

/// Removes the scenarios of an earlier race with other contestants: they would pass for this one's.
fn remove_others(folder: &Path, result: &RaceResult) {
    let ours: Vec<String> =
        result.contestants.iter().map(|contestant| format!("{}.toml", file_name(&contestant.label))).collect();
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".toml") && !ours.contains(&name) {
            // What cannot be removed stays.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Writes the files.
fn write(shown: &Shown<'_>, folder: Option<&Path>, args: &CompareArgs) -> Outcome {
    let json = |value: &serde_json::Value| format!("{value:#}\n").into_bytes();
    if let Some(folder) = folder {
        let race = &shown.result.race;
        write_file(&folder.join(PARAMETERS), &json(&race.parameters()))?;
        write_file(&folder.join(RESULT), &json(&shown.result.to_json()))?;
        write_file(&folder.join(SUMMARY), shown.full.to_csv().as_bytes())?;
        write_file(&folder.join(RUNS), shown.result.runs_csv().as_bytes())?;
        write_file(&folder.join(SERIES), shown.result.series_csv().as_bytes())?;
        prepare_folder(&folder.join(SCENARIOS))?;
        remove_others(&folder.join(SCENARIOS), shown.result);
        for contestant in &shown.result.contestants {
            let name = file_name(&contestant.label);
            let scenario = race.scenario(&contestant.contestant, Purpose::Start, 0).effective();
            write_file(&folder.join(SCENARIOS).join(format!("{name}.toml")), scenario.as_bytes())?;
        }
        write_file(&folder.join(REPORT), page::page(shown).to_html().as_bytes())?;
    }
    for file in &args.output.files {
        let bytes = match ending(file, &ENDINGS)? {
            "html" => page::page(shown).to_html().into_bytes(),
            "json" => json(&shown.result.to_json()),
            "csv" => shown.full.to_csv().into_bytes(),
            "md" => shown.markdown().into_bytes(),
            "svg" => pages::alone(&page::page(shown), args.output.figure.as_deref())?.to_svg().into_bytes(),
            _ => shown.tables.iter().map(|table| table.to_terminal(Terminal::plain())).collect::<String>().into_bytes(),
        };
        write_file(file, &bytes)?;
    }
    Ok(())
}
