//! `flowstart benchmark`: attainable rates.

mod again;
mod args;
mod asked;
mod delays;
#[cfg(any(target_os = "linux", feature = "quic"))]
mod kept;
pub(crate) mod place;
mod real;
#[cfg(feature = "quic")]
mod to;

use std::path::{Path, PathBuf};

use flowstart_benchmark::{Attained, Benchmark, BenchmarkResult, MeasuredError, measured, rates_measured, tells_rates};
use flowstart_pages::benchmark::Shown;
use flowstart_parallel::Cancel;
use flowstart_race::{Contestant, Race, RunOptions, labels};
use flowstart_scenario::MOST_SEED;
use flowstart_service_curve::{ProbeConfig, ProbeVerdict, RecordError, Undecided, Video};
use flowstart_units::{Bytes, Rate, Span};

use crate::compare::{lay_over, not_heeded, once_each};
use crate::formats::PARQUET_READER;
use crate::output::{
    Done, Failure, note, print, print_json, progress, roughly, spare_inputs, take_folder, terminal, write_around,
    write_file,
};
use crate::pages;
use crate::quic::StackName;
use crate::scenario::{load_surroundings, tell_ignorant};
use crate::session::command_line;

pub(crate) use self::args::BenchmarkArgs;
use self::args::DEFAULT_CONTESTANT;

/// Where results go unless something else is said.
const DEFAULT_FOLDER: &str = "flowstart-benchmark";
/// Where what is simulated takes longest stands first, and what follows may turn out not to be
/// wanted: how long it takes is said when so many per cent of what is expected are done.
const ENOUGH: u64 = 20;
/// Delays that grow for less than this are no evidence beside others: a connection recovers from
/// losses.
const RECOVERY: Span = Span::from_secs(60);
/// Frames per second of a film unless something else is said, as in cinemas.
const FILM_FPS: u64 = 24;
/// Names of the files in it.
const REPORT: &str = "report.html";
const PARAMETERS: &str = "parameters.json";
const RESULT: &str = "result.json";
const SUMMARY: &str = "summary.csv";
const PROBES: &str = "probes.csv";
const PARTS: &str = "parts.csv";

/// Runs the benchmark.
pub(crate) fn benchmark(args: &BenchmarkArgs) -> Done {
    let folder = results(args);
    if args.to.is_some() {
        asked::meant_for_path(args)?;
    } else {
        asked::meant_for_hosts(args)?;
    }
    #[cfg(feature = "quic")]
    let way = args.to.as_ref().map(|place| to::Way::find(args, place, folder.as_deref())).transpose()?;
    #[cfg(feature = "quic")]
    let found = way.as_ref().map(|way| way.capacity);
    #[cfg(not(feature = "quic"))]
    let found = args.to.as_ref().map_or(Ok(None), |_| Err(crate::quic::without()))?;
    let benchmark = planned(args, found)?;
    let simulated = !benchmark.race.contestants.is_empty();
    check(args, &benchmark, simulated)?;
    args.measured.iter().for_each(|file| flowstart_files::reads(file));
    if let Some(folder) = &folder {
        spare_inputs([REPORT, PARAMETERS, RESULT, SUMMARY, PROBES, PARTS].map(|name| folder.join(name)))?;
        take_folder(folder)?;
    }
    pages::prepare(&args.page)?;
    figure_is_there(args, &benchmark)?;
    if let Some(file) = &args.delays {
        delays::prepare(file, &labels_here(args, &benchmark)?)?;
    }
    // Files first: they may be refused.
    let mut from_outside = read_back(args, &benchmark)?;
    let began = std::time::Instant::now();
    if args.resume && folder.is_none() {
        return Err(Failure::usage("--resume goes on with what a folder has: name it with --out"));
    }
    #[cfg(feature = "quic")]
    let (cancel, mut really) = match way {
        Some(way) => way.measure(&benchmark, args, folder.as_deref())?,
        None => real::measure(&benchmark, args, folder.as_deref())?,
    };
    #[cfg(not(feature = "quic"))]
    let (cancel, mut really) = real::measure(&benchmark, args, folder.as_deref())?;
    let mut results = simulate(args, &benchmark, &cancel)?;
    let took = began.elapsed().as_secs_f64();
    // That of the first seed gets what was measured elsewhere.
    let result = &mut results[0];
    result.complete &= really.complete;
    result.attained.append(&mut really.attained);
    // What cannot be written is told after what was measured.
    let messages = args.delays.as_ref().map_or(Ok(()), |file| {
        let files = delays::write(file, &mut result.attained)?;
        if !files.is_empty() {
            note(&format!("read back with: {}", again::command(args, &benchmark, &files)));
        }
        Ok(())
    });
    result.attained.append(&mut from_outside);
    let complete = results.iter().all(|result| result.complete);
    if !complete && results.iter().flat_map(|result| &result.attained).all(|one| one.estimate.probes.is_empty()) {
        return Err(really.verdict.err().unwrap_or(Failure::InterruptedEarly));
    }
    let runs = args.runs.unwrap_or(1) as usize;
    let shown = Shown::new(&results, runs, really.paths, command_line())
        .ok_or_else(|| Failure::usage("nothing was measured"))?;
    let files = folder.as_ref().map_or(Ok(()), |folder| write(&shown, folder));
    let pages = pages::write(&shown.page(), &args.page);
    tell(&shown, args, folder.as_deref().filter(|_| files.is_ok()), took)?;
    messages.and(files).and(pages)?;
    if complete || really.verdict.is_err() { really.verdict } else { Err(Failure::Interrupted) }
}

/// Refuses what cannot be measured, and says what might go wrong.
fn check(args: &BenchmarkArgs, benchmark: &Benchmark, simulated: bool) -> Done {
    tell_ignorant(benchmark.race.contestants.iter().map(|contestant| &contestant.start));
    if simulated || !benchmark.real.is_empty() {
        benchmark.validate().map_err(Failure::usage)?;
    } else {
        benchmark.validate_procedure().map_err(Failure::usage)?;
    }
    meant_for_real(args, simulated)?;
    if let Some(after) = args.overload_after.filter(|after| *after < RECOVERY)
        && (benchmark.peers > 0 || benchmark.race.has_others())
    {
        note(&format!(
            "--overload-after {after}: a connection beside others recovers from losses for a minute and more, and its \
             delays grow meanwhile; rates may be called too high that are not"
        ));
    }
    let last = benchmark.race.seed.saturating_add(u64::from(args.runs.unwrap_or(1)) - 1);
    if last > MOST_SEED {
        return Err(Failure::usage(format!(
            "--runs {} with the seed {} ends with {last}, and the largest seed is {MOST_SEED}: name a smaller one",
            args.runs.unwrap_or(1),
            benchmark.race.seed
        )));
    }
    if args.delays.is_some() && !simulated && !args.is_real() && args.to.is_none() {
        return Err(Failure::usage(
            "--delays writes what is measured here, and the files of --measured are all there is: name a contestant, or \
             leave it out",
        ));
    }
    Ok(())
}

/// What the files of `--measured` say.
fn read_back(args: &BenchmarkArgs, benchmark: &Benchmark) -> Result<Vec<Attained>, Failure> {
    let mut all = Vec::new();
    let mut untold = false;
    for file in &args.measured {
        let refuse = |error| match error {
            MeasuredError::Io(error) => Failure::file("read", file, &error),
            MeasuredError::Records(RecordError::NoRate) => Failure::Usage(format!(
                "{} has no column rate_bps: name the rate at which it was measured with --measured-rate",
                file.display()
            )),
            other => Failure::Usage(format!("{} {other}", file.display())),
        };
        let mut one = measured(benchmark, file, args.measured_rate, PARQUET_READER).map_err(refuse)?;
        untold |= !tells_rates(file, PARQUET_READER).map_err(refuse)?;
        one.label = label(args, file);
        for probe in &one.estimate.probes {
            if let ProbeVerdict::Undecided(Undecided::Missing { percent }) = probe.verdict {
                let missing = RecordError::Missing(probe.rate, percent);
                note(&format!("{} {missing}; until then it is undecided", file.display()));
            }
        }
        all.push(one);
    }
    if args.measured_rate.is_some() && !untold {
        return Err(Failure::usage(
            "--measured-rate would have no influence: every file of --measured has the column rate_bps; leave it out",
        ));
    }
    Ok(all)
}

/// Simulates with every seed: the first result is that of the first seed, without any attained rate
/// if nobody is to be simulated.
fn simulate(args: &BenchmarkArgs, benchmark: &Benchmark, cancel: &Cancel) -> Result<Vec<BenchmarkResult>, Failure> {
    let bar = progress("simulated seconds").estimated_from(ENOUGH);
    let runs = u64::from(args.runs.unwrap_or(1));
    let mut result =
        BenchmarkResult { benchmark: benchmark.clone(), attained: Vec::new(), complete: true, simulated_seconds: 0.0 };
    let mut others = Vec::new();
    for run in (0..runs).take_while(|_| !benchmark.race.contestants.is_empty()) {
        let tell = |done: usize, of: usize| {
            bar.set_length(of as u64 * runs);
            bar.set_position(done as u64 + of as u64 * run);
        };
        let options =
            RunOptions { threads: args.threads, cancel: Some(cancel), progress: Some(&tell), ..RunOptions::default() };
        let mut with_seed = benchmark.clone();
        with_seed.race.seed = benchmark.race.seed.saturating_add(run);
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
    bar.finish_and_clear();
    Ok(std::iter::once(result).chain(others).collect())
}

/// Prints what was found; `folder` is where files about it are.
fn tell(shown: &Shown<'_>, args: &BenchmarkArgs, folder: Option<&Path>, took: f64) -> Done {
    if args.json {
        return print_json(&shown.json());
    }
    if args.markdown {
        return print(&shown.markdown());
    }
    let mut text = shown.text(terminal(), took, &roughly(took));
    if let Some(folder) = folder {
        text.push_str(&format!("report: {}\n", folder.join(REPORT).display()));
    }
    print(&text)
}

/// What tables call a file of measurements: its name, with the folder where others have the same.
fn label(args: &BenchmarkArgs, file: &Path) -> String {
    if args.measured.iter().filter(|other| other.file_stem() == file.file_stem()).count() > 1 {
        return file.with_extension("").display().to_string();
    }
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// What tables call those who are measured here.
fn labels_here(args: &BenchmarkArgs, benchmark: &Benchmark) -> Result<Vec<String>, Failure> {
    let mut labels = labels(&benchmark.race.contestants);
    #[cfg(feature = "quic")]
    if args.to.is_some() {
        labels.extend(asked::contestants(args)?.iter().map(to::label));
    }
    if args.to.is_none() {
        labels.extend(real::labels(args)?);
    }
    Ok(labels)
}

/// Refuses the name of a figure that the page will not have, before anything is measured.
fn figure_is_there(args: &BenchmarkArgs, benchmark: &Benchmark) -> Done {
    let Some(name) = &args.page.figure else { return Ok(()) };
    let mut labels = labels_here(args, benchmark)?;
    labels.extend(args.measured.iter().map(|file| label(args, file)));
    let titles = flowstart_pages::benchmark::titles(benchmark, u64::from(args.runs.unwrap_or(1)), &labels);
    pages::chosen(&titles.iter().map(String::as_str).collect::<Vec<_>>(), name).map(drop)
}

/// The folder of the results: as asked, else the default one unless results go elsewhere.
fn results(args: &BenchmarkArgs) -> Option<PathBuf> {
    let elsewhere = args.json || args.markdown || args.no_report || !args.page.pages.is_empty();
    args.out.clone().or_else(|| (!elsewhere).then(|| PathBuf::from(DEFAULT_FOLDER)))
}

/// Refuses options of simulations where nothing is simulated.
fn meant_for_real(args: &BenchmarkArgs, simulated: bool) -> Done {
    if simulated {
        return Ok(());
    }
    let only_files = !args.is_real() && args.to.is_none();
    let given = [
        ("--on", !args.on.is_empty()),
        ("--bursts", args.bursts.is_some_and(|bursts| bursts > 0)),
        ("--connections", args.connections.is_some_and(|connections| connections > 0)),
        ("--joint", args.joint.is_some_and(|joint| joint > 0)),
        ("--to-the-end", only_files && args.to_the_end),
        ("--threads", only_files && args.threads.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) if only_files => Err(Failure::Usage(format!(
            "{option} is for simulated contestants, and the files of --measured are all there is: name a contestant to be \
             simulated beside them, or leave it out"
        ))),
        Some((option, _)) => Err(Failure::Usage(format!(
            "{option} is for simulated contestants, and --real, --quic and --command measure without; name a contestant to \
             be simulated beside them, or leave it out{}",
            if *option == "--on" { " (another queue is one of --scenario)" } else { "" }
        ))),
        None => Ok(()),
    }
}

/// What the options ask for, across a real path of this capacity if there is one.
fn planned(args: &BenchmarkArgs, found: Option<Rate>) -> Result<Benchmark, Failure> {
    args.path.path.one_path(args.scenario.as_deref())?;
    let scenario =
        args.scenario.as_ref().map(|file| load_surroundings(file).map(|scenario| (scenario, file))).transpose()?;
    let mut race = match &scenario {
        Some((scenario, file)) => {
            Race::from_scenario(scenario).map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))?
        }
        None => Race::default(),
    };
    race.sizes = Vec::<Bytes>::new();
    // Across a real path nobody is simulated.
    let simulated = args.contestant.iter().chain(&args.against).filter(|_| args.to.is_none());
    race.contestants = simulated.cloned().collect();
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
    if let Some(unheeded) = scenario.and_then(|(scenario, file)| not_heeded(&scenario, file, &race, "benchmark")) {
        note(&unheeded);
    }
    if args.is_real() && args.scenario.is_none() {
        real::path(&mut race);
    }
    lay_over(&mut race, &args.path, &args.background)?;
    if let Some(capacity) = found {
        race.set_capacity(capacity);
    }
    race.seed = args.seed.unwrap_or(race.seed);
    let mut benchmark = Benchmark::new(race);
    if args.to.is_some() {
        real::defaults_across(&mut benchmark, args.lasting);
    } else if args.is_real() {
        real::defaults(&mut benchmark);
    }
    // Who names the others means these.
    let peers = if benchmark.race.has_others() { 0 } else { benchmark.peers };
    benchmark.peers = args.peers.unwrap_or(peers);
    let over =
        if args.stack == StackName::default() { "QUIC".to_owned() } else { format!("QUIC ({})", args.stack.name()) };
    let quic = args.quic.iter().map(|contestant| format!("{contestant} over {over}"));
    benchmark.real = args.real.iter().cloned().chain(quic).chain(args.command.clone()).collect();
    if let Some(to) = &args.to {
        benchmark.real = asked::contestants(args)?.iter().map(|one| format!("{one} over QUIC")).collect();
        benchmark.to = Some(to.to_string());
    }
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
    benchmark.to_the_end = args.to_the_end;
    benchmark.connections = args.connections.unwrap_or(benchmark.connections);
    benchmark.replicas = args.joint.unwrap_or(benchmark.replicas);
    benchmark.burst = args.burst;
    benchmark.keep_messages = args.delays.is_some();
    benchmark.probe = procedure(args, &benchmark);
    if let Some(least) = args.least.filter(|least| *least > benchmark.lasting)
        && (!benchmark.race.contestants.is_empty() || !benchmark.real.is_empty())
    {
        return Err(Failure::Usage(format!(
            "--least {least} is longer than each rate is measured at most, {} (--lasting): nothing would be accepted \
             before its end",
            benchmark.lasting
        )));
    }
    Ok(benchmark)
}

/// How rates are probed.
fn procedure(args: &BenchmarkArgs, benchmark: &Benchmark) -> ProbeConfig {
    let mut probe = benchmark.probe.clone();
    if args.paper {
        probe = ProbeConfig { packet: probe.packet, ..ProbeConfig::paper() };
    }
    // The union bound gives every rate an equal share.
    let share = args.curve_epsilon.map(|whole| whole.divided_by(rates(args, benchmark)));
    ProbeConfig {
        samples: args.samples.map_or(probe.samples, |samples| samples as usize),
        epsilon: share.or(args.epsilon).unwrap_or(probe.epsilon),
        warm_up: args.warm_up.unwrap_or(probe.warm_up),
        least_time: args.least.unwrap_or(probe.least_time),
        overload_after: args.overload_after.unwrap_or(probe.overload_after),
        sampling_gap: args.gap.unwrap_or(probe.sampling_gap),
        growth: args.growth.map_or(probe.growth, u64::from),
        sides: args.sides.unwrap_or(probe.sides),
        independence_level: args.independence_level.unwrap_or(probe.independence_level),
        stationarity_level: args.stationarity_level.unwrap_or(probe.stationarity_level),
        growth_level: args.growth_level.unwrap_or(probe.growth_level),
        ..probe
    }
}

/// Over how many rates one probability is divided: those of the file that has most, or those that
/// are measured here, if they are more. A file that cannot be read is refused later.
fn rates(args: &BenchmarkArgs, benchmark: &Benchmark) -> usize {
    let here = !benchmark.race.contestants.is_empty() || !benchmark.real.is_empty();
    let in_files = args.measured.iter().filter_map(|file| rates_measured(file, PARQUET_READER).ok());
    in_files.chain(here.then(|| benchmark.rates().len())).max().unwrap_or(1).max(1)
}

/// The film of a file with the bytes of a frame on every line.
fn film(text: &str, frames_per_second: u64) -> Result<Video, String> {
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    let frame = |(number, line): (usize, &str)| {
        let bytes = line.parse().map_err(|_| format!("line {number}: \"{line:.60}\" is no number of bytes"))?;
        Ok(Bytes::new(bytes))
    };
    let frames = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).map(frame);
    Video::new(frames.collect::<Result<_, String>>()?, frames_per_second).map_err(|error| error.to_string())
}

/// Writes the files.
fn write(shown: &Shown<'_>, folder: &Path) -> Done {
    let json = |value: &serde_json::Value| format!("{value:#}\n").into_bytes();
    write_around(&folder.join(RESULT), &shown.json(), || {
        write_file(&folder.join(PARAMETERS), &json(&shown.result.benchmark.parameters()))?;
        write_file(&folder.join(SUMMARY), shown.summary.to_csv().as_bytes())?;
        write_file(&folder.join(PROBES), shown.probes.to_csv().as_bytes())?;
        if let Some(parts) = &shown.parts {
            write_file(&folder.join(PARTS), parts.to_csv().as_bytes())?;
        }
        write_file(&folder.join(REPORT), shown.page().to_html().as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    /// Numbers of a page that takes minutes to make go stale in silence otherwise. If this fails
    /// run `.ci/todays-stack`, and read what is written above its tables.
    #[test]
    fn the_page_of_todays_stacks_was_measured_with_todays_settings() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/todays-stack.md");
        // The crate by itself has no pages.
        let Ok(page) = std::fs::read_to_string(page) else { return };
        let mut tables = 0;
        for table in page.split("<!-- Made by `").skip(1) {
            let (command, rest) = table.split_once('`').unwrap();
            let Command::Benchmark(args) = Cli::try_parse_from(shlex::split(command).unwrap()).unwrap().command else {
                panic!("{command}")
            };
            let hash = planned(&args, None).unwrap().hash();
            assert!(rest.contains(&format!("benchmark {hash}.")), "{command}: {hash}");
            tables += 1;
        }
        assert_eq!(tables, 13);
    }
}
