//! `flowstart benchmark`: attainable rates.

mod args;
mod delays;
mod figures;
mod page;
mod real;
mod seeds;
mod tables;

use std::path::{Path, PathBuf};

use flowstart_benchmark::{Benchmark, BenchmarkResult, MeasuredError, measured};
use flowstart_race::{Contestant, Race, RunOptions};
use flowstart_report::{Color, Palette, Table};
use flowstart_service_curve::{End, ProbeConfig, Video};
use flowstart_units::Bytes;

use crate::compare::{lay_over, once_each};
use crate::formats::PARQUET_READER;
use crate::output::{Failure, Outcome, prepare_folder, print, print_json, progress, write_file};
use crate::pages;
use crate::scenario::load;
use crate::session::command_line;

pub(crate) use args::BenchmarkArgs;

/// Where results go unless something else is said.
const DEFAULT_FOLDER: &str = "flowstart-benchmark";
/// Frames per second of a film unless something else is said, as in cinemas.
const FILM_FPS: u64 = 24;
/// Names of the files in it.
const REPORT: &str = "report.html";
const PARAMETERS: &str = "parameters.json";
const RESULT: &str = "result.json";
const SUMMARY: &str = "summary.csv";
const PROBES: &str = "probes.csv";
const PARTS: &str = "parts.csv";
/// Whose rate is measured if nobody is named.
const DEFAULT_CONTESTANT: &str = "cubic";

/// Runs the benchmark.
pub(crate) fn benchmark(args: &BenchmarkArgs) -> Outcome {
    let benchmark = planned(args)?;
    let simulated = !benchmark.race.contestants.is_empty();
    if simulated || !benchmark.real.is_empty() {
        benchmark.validate().map_err(Failure::usage)?;
    }
    meant_for_real(args, simulated)?;
    pages::prepare(&args.page)?;
    let elsewhere = args.json || args.markdown || args.no_report || !args.page.pages.is_empty();
    let folder = match (&args.out, elsewhere) {
        (Some(folder), _) => Some(folder.clone()),
        (None, true) => None,
        (None, false) => Some(PathBuf::from(DEFAULT_FOLDER)),
    };
    if let Some(folder) = &folder {
        prepare_folder(folder)?;
    }
    if let Some(file) = &args.delays {
        delays::prepare(file)?;
    }
    // Files first: they may be refused.
    let mut from_outside = Vec::new();
    for file in &args.measured {
        let refuse = |error| match error {
            MeasuredError::Io(error) => Failure::file("read", file, &error),
            other => Failure::Usage(format!("{} {other}", file.display())),
        };
        from_outside.push(measured(&benchmark, file, args.measured_rate, PARQUET_READER).map_err(refuse)?);
    }
    let began = std::time::Instant::now();
    let (cancel, mut really) = real::measure(&benchmark, args)?;
    let bar = progress("probing");
    let runs = u64::from(args.runs.unwrap_or(1));
    // That of the first seed gets what was measured elsewhere.
    let mut result =
        BenchmarkResult { benchmark: benchmark.clone(), attained: Vec::new(), complete: true, simulated_seconds: 0.0 };
    let mut others = Vec::new();
    for run in (0..runs).take_while(|_| simulated) {
        let tell = |done: usize, of: usize| {
            bar.set_length(of as u64 * runs);
            bar.set_position(done as u64 + of as u64 * run);
        };
        let options =
            RunOptions { threads: args.threads, cancel: Some(&cancel), progress: Some(&tell), ..RunOptions::default() };
        let mut with_seed = benchmark.clone();
        with_seed.race.seed = benchmark.race.seed.wrapping_add(run);
        let of_seed = with_seed.run(&options).map_err(Failure::usage)?;
        let complete = of_seed.complete;
        if run == 0 {
            result = of_seed;
        } else if complete {
            others.push(of_seed);
        }
        // Seeds that were not finished do not count, but for the first.
        result.complete &= complete;
        if !complete {
            break;
        }
    }
    let took = began.elapsed().as_secs_f64();
    bar.finish_and_clear();
    result.complete &= really.complete;
    result.attained.append(&mut really.attained);
    // What cannot be written is told after what was measured.
    let messages = args.delays.as_ref().map_or(Ok(()), |file| delays::write(file, &mut result.attained));
    result.attained.append(&mut from_outside);
    let results: Vec<BenchmarkResult> = std::iter::once(result).chain(others).collect();
    let complete = results.iter().all(|result| result.complete);
    if !complete && results.iter().flat_map(|result| &result.attained).all(|one| one.estimate.probes.is_empty()) {
        return Err(really.verdict.err().unwrap_or(Failure::InterruptedEarly));
    }
    let shown = Shown::new(&results, usize::try_from(runs).unwrap_or(usize::MAX), really.paths)?;
    let files = folder.as_ref().map_or(Ok(()), |folder| write(&shown, folder));
    let pages = pages::write(&page::page(&shown), &args.page);
    if args.json {
        print_json(&shown.json())?;
    } else if args.markdown {
        print(&shown.markdown())?;
    } else {
        print(&shown.text(folder.as_deref(), took))?;
    }
    messages.and(files).and(pages)?;
    if complete || really.verdict.is_err() { really.verdict } else { Err(Failure::Interrupted) }
}

/// Refuses options of simulations where nothing is simulated.
fn meant_for_real(args: &BenchmarkArgs, simulated: bool) -> Outcome {
    if simulated || !args.is_real() {
        return Ok(());
    }
    let given = [
        ("--on", !args.on.is_empty()),
        ("--bursts", args.bursts.is_some_and(|bursts| bursts > 0)),
        ("--connections", args.connections.is_some_and(|connections| connections > 0)),
        ("--joint", args.joint.is_some_and(|joint| joint > 0)),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Failure::Usage(format!(
            "{option} is for simulated contestants, and --real and --command measure without; name a contestant to \
             be simulated beside them, or leave it out{}",
            if *option == "--on" { " (another queue is one of --scenario)" } else { "" }
        ))),
        None => Ok(()),
    }
}

/// What the options ask for.
fn planned(args: &BenchmarkArgs) -> Result<Benchmark, Failure> {
    let mut race = match &args.scenario {
        Some(path) => {
            Race::from_scenario(&load(path)?).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?
        }
        None => Race::default(),
    };
    race.sizes = Vec::<Bytes>::new();
    race.contestants = args.contestant.iter().chain(&args.against).cloned().collect();
    if race.contestants.is_empty() && args.measured.is_empty() && !args.is_real() {
        race.contestants = vec![DEFAULT_CONTESTANT.parse::<Contestant>().map_err(Failure::usage)?];
    }
    if !args.on.is_empty() {
        let on = |contestant: Contestant| {
            let each = args.on.iter().map(move |queue| Contestant { queue: Some(*queue), ..contestant.clone() });
            each.collect::<Vec<_>>()
        };
        race.contestants = race.contestants.into_iter().flat_map(on).collect();
    }
    once_each(&race.contestants)?;
    if args.is_real() && args.scenario.is_none() {
        real::path(&mut race);
    }
    lay_over(&mut race, &args.path, &args.background);
    race.seed = args.seed.unwrap_or(race.seed);
    let mut benchmark = Benchmark::new(race);
    if args.is_real() {
        real::defaults(&mut benchmark);
    }
    // Who names the others means these.
    let peers = if benchmark.race.has_others() { 0 } else { benchmark.peers };
    benchmark.peers = args.peers.unwrap_or(peers);
    benchmark.real = args.real.iter().chain(&args.command).cloned().collect();
    benchmark.step = args.step.or_else(|| args.is_real().then(|| real::step(&benchmark)));
    benchmark.video = args.video;
    if let Some(path) = &args.film {
        let fps = args.film_fps.map_or(FILM_FPS, u64::from);
        let refuse = |error: &dyn std::fmt::Display| Failure::Usage(format!("{}: {error}", path.display()));
        let text = flowstart_scenario::read(path).map_err(Failure::usage)?;
        benchmark.film = Some(film(&text, fps).map_err(|error| refuse(&error))?);
    }
    benchmark.bursts = args.bursts.unwrap_or(benchmark.bursts);
    benchmark.lasting = args.lasting.unwrap_or(benchmark.lasting);
    benchmark.connections = args.connections.unwrap_or(benchmark.connections);
    benchmark.replicas = args.joint.unwrap_or(benchmark.replicas);
    benchmark.burst = args.burst;
    benchmark.keep_messages = args.delays.is_some();
    benchmark.probe = procedure(args, &benchmark);
    Ok(benchmark)
}

/// How rates are probed.
fn procedure(args: &BenchmarkArgs, benchmark: &Benchmark) -> ProbeConfig {
    let mut probe = benchmark.probe.clone();
    if args.paper {
        probe = ProbeConfig { packet: probe.packet, ..ProbeConfig::paper() };
    }
    // The union bound gives every rate an equal share.
    let share = args.curve_epsilon.map(|whole| whole.divided_by(benchmark.rates().len()));
    ProbeConfig {
        samples: args.samples.map_or(probe.samples, |samples| samples as usize),
        epsilon: share.or(args.epsilon).unwrap_or(probe.epsilon),
        warm_up: args.warm_up.unwrap_or(probe.warm_up),
        least_time: args.least.unwrap_or(probe.least_time),
        overload_after: args.overload_after.unwrap_or(probe.overload_after),
        sampling_gap: args.gap.unwrap_or(probe.sampling_gap),
        growth: args.growth.unwrap_or(probe.growth),
        sides: args.sides.unwrap_or(probe.sides),
        independence_level: args.independence_level.unwrap_or(probe.independence_level),
        stationarity_level: args.stationarity_level.unwrap_or(probe.stationarity_level),
        growth_level: args.growth_level.unwrap_or(probe.growth_level),
        ..probe
    }
}

/// A fraction in per cent, to three digits.
fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    let rounded: f64 = format!("{percent:.2e}").parse().unwrap_or(percent);
    format!("{rounded} %")
}

/// The film of a file with the bytes of a frame on every line.
fn film(text: &str, frames_per_second: u64) -> Result<Video, String> {
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    let frame = |(number, line): (usize, &str)| {
        let bytes = line.parse().map_err(|_| format!("line {number}: \"{line}\" is no number of bytes"))?;
        Ok(Bytes::new(bytes))
    };
    let frames = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).map(frame);
    Video::new(frames.collect::<Result<_, String>>()?, frames_per_second).map_err(|error| error.to_string())
}

/// A result in the forms in which it is shown.
struct Shown<'a> {
    /// That of the first seed.
    result: &'a BenchmarkResult,
    /// Those of all seeds, if several were asked for.
    seeds: Option<&'a [BenchmarkResult]>,
    /// How faithful real paths were.
    paths: Option<serde_json::Value>,
    command: String,
    colors: Vec<Color>,
    summary: Table,
    probes: Table,
    parts: Option<Table>,
}

impl<'a> Shown<'a> {
    fn new(results: &'a [BenchmarkResult], runs: usize, paths: Option<serde_json::Value>) -> Result<Self, Failure> {
        let result = results.first().ok_or_else(|| Failure::usage("nothing was measured"))?;
        let seeds = (runs > 1).then_some(results);
        let mut palette = Palette::new();
        let colors: Vec<Color> = result.attained.iter().map(|one| palette.color(&one.label)).collect();
        let (summary, probes) = match seeds {
            Some(results) => (seeds::summary(results, &colors), seeds::probes(results, &colors)),
            None => (tables::summary(result, &colors), tables::probes(result, &colors)),
        };
        let parts = tables::parts(result, &colors);
        Ok(Self { result, seeds, paths, command: command_line(), colors, summary, probes, parts })
    }

    /// As one document: that of the first seed, and with several seeds all of them.
    fn json(&self) -> serde_json::Value {
        let mut document = self.result.to_json();
        if let Some(results) = self.seeds {
            document["runs"] = results.iter().map(BenchmarkResult::to_json).collect();
        }
        if let Some(paths) = &self.paths {
            document["real_paths"] = paths.clone();
        }
        document
    }

    /// Which seeds, in words.
    fn seed(&self) -> String {
        let first = self.result.benchmark.race.seed;
        match self.seeds.and_then(<[_]>::last) {
            Some(last) if last.benchmark.race.seed != first => format!("seeds {first} to {}", last.benchmark.race.seed),
            _ => format!("seed {first}"),
        }
    }

    /// True if there was a path, emulated or simulated.
    fn has_path(&self) -> bool {
        let benchmark = &self.result.benchmark;
        !benchmark.race.contestants.is_empty() || !benchmark.real.is_empty()
    }

    /// The tables beside the summary.
    fn details(&self) -> impl Iterator<Item = &Table> {
        std::iter::once(&self.probes).chain(&self.parts)
    }

    fn title(&self) -> String {
        let race = &self.result.benchmark.race;
        if !self.has_path() {
            return "Attainable rates, measured".to_owned();
        }
        format!("Attainable rates over {} and {} of base RTT", race.capacity(), race.path.rtt)
    }

    /// How it was run, and what is uncertain.
    fn remarks(&self) -> Vec<String> {
        let benchmark = &self.result.benchmark;
        let probe = &benchmark.probe;
        let mut remarks: Vec<String> =
            self.result.attained.iter().map(|one| format!("{}: {}.", one.label, one.conditions)).collect();
        if self.has_path() {
            let others = benchmark.race.others.flow.iter().map(|flow| {
                format!("{} {}", flow.count, flow.name.as_deref().or(flow.algorithm.as_deref()).unwrap_or("TCP"))
            });
            let there: Vec<String> =
                std::iter::once(format!("{} greedy flows of the contestant's own kind", benchmark.peers))
                    .filter(|_| benchmark.peers > 0)
                    .chain(others)
                    .collect();
            let there = if there.is_empty() { "nobody".to_owned() } else { there.join(", ") };
            remarks.push(format!("There before: {there}. Fair share: {} (gross).", benchmark.fair_share()));
            if benchmark.peers > 0 && benchmark.race.path.jitter.is_none() {
                let note = "Every packet is delayed at random by up to one transmission time, against phase effects of equal flows.";
                remarks.push(note.to_owned());
            }
        }
        remarks.push(format!(
            "{} samples per rate, {} apart in the mean and thinned until independent{}, {} each violated at most; warm-up {}, {} to {} of \
             measurement per rate; too high is what grows for {}.",
            probe.samples,
            probe.sampling_gap,
            if probe.dependent { ", or dependent ones worth as many" } else { "" },
            percent(probe.epsilon.get()),
            probe.warm_up,
            probe.least_time,
            benchmark.lasting,
            probe.overload_after
        ));
        if self.result.attained.iter().any(|one| !matches!(one.estimate.end, End::NonStationary(_))) {
            let text = "Where the next rate is undecided, or all were accepted, the long-term rate may be higher; a longer --lasting may tell.";
            remarks.push(text.to_owned());
        }
        if let Some(results) = self.seeds {
            remarks.push(seeds::decided(results));
        }
        if !self.result.complete {
            remarks.push("Ended early: what was not measured counts as undecided.".to_owned());
        }
        remarks
    }

    /// As a page of documentation.
    fn markdown(&self) -> String {
        let mut page = format!("<!-- Made by `{}`; do not edit. -->\n\n# {}\n\n", self.command, self.title());
        page.push_str(&self.summary.to_markdown());
        page.push('\n');
        if let Some(parts) = &self.parts {
            page.push_str(&parts.to_markdown());
            page.push('\n');
        }
        for column in self.summary.columns.iter().filter(|column| !column.help.is_empty()) {
            page.push_str(&format!("- {}: {}\n", column.heading, column.help));
        }
        page.push('\n');
        for remark in self.remarks() {
            page.push_str(&format!("- {remark}\n"));
        }
        let mut seed = self.seed();
        seed[..1].make_ascii_uppercase();
        page.push_str(&format!("\n{seed}, benchmark {}.\n", self.result.benchmark.hash()));
        page
    }

    /// For the terminal.
    fn text(&self, folder: Option<&Path>, took: f64) -> String {
        let terminal = crate::output::terminal();
        let mut text = format!("{}\n\n", self.title());
        for table in std::iter::once(&self.summary).chain(self.details()) {
            text.push_str(&table.to_terminal(terminal));
            text.push('\n');
        }
        for remark in self.remarks() {
            text.push_str(&remark);
            text.push('\n');
        }
        let result = self.result;
        if result.benchmark.real.is_empty() {
            let simulated: f64 =
                self.seeds.unwrap_or(std::slice::from_ref(result)).iter().map(|r| r.simulated_seconds).sum();
            text.push_str(&format!("\n{simulated:.0} simulated seconds in {took:.1} s\n"));
        } else {
            text.push_str(&format!("\nmeasured in {}\n", crate::output::roughly(took)));
        }
        text.push_str(&format!("{}, benchmark {}\n", self.seed(), result.benchmark.hash()));
        if let Some(folder) = folder {
            text.push_str(&format!("report: {}\n", folder.join(REPORT).display()));
        }
        text
    }
}

/// Writes the files.
fn write(shown: &Shown<'_>, folder: &Path) -> Outcome {
    let json = |value: &serde_json::Value| format!("{value:#}\n").into_bytes();
    write_file(&folder.join(PARAMETERS), &json(&shown.result.benchmark.parameters()))?;
    write_file(&folder.join(RESULT), &json(&shown.json()))?;
    write_file(&folder.join(SUMMARY), shown.summary.to_csv().as_bytes())?;
    write_file(&folder.join(PROBES), shown.probes.to_csv().as_bytes())?;
    if let Some(parts) = &shown.parts {
        write_file(&folder.join(PARTS), parts.to_csv().as_bytes())?;
    }
    write_file(&folder.join(REPORT), page::page(shown).to_html().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn fractions_are_said_in_per_cent_with_three_digits() {
        let said: Vec<String> = [0.01, 0.1 / 12.0, 0.05, 1e-6 / 3.0, 1.0, 0.999, 0.0].map(percent).into();
        assert_eq!(said, ["1 %", "0.833 %", "5 %", "0.0000333 %", "100 %", "99.9 %", "0 %"]);
    }
}
