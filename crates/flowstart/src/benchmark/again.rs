//! The command that reads what was measured back to the same result.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use flowstart_benchmark::Benchmark;
use flowstart_race::Race;
use flowstart_service_curve::ProbeConfig;
use flowstart_service_curve::stats::{Level, Sides};

use super::args::BenchmarkArgs;
use crate::session::quoted;

/// The words of a command.
struct Words(Vec<String>);

impl Words {
    fn add(&mut self, option: &str, value: impl Display) {
        let value = value.to_string();
        // What looks like an option is one unless it is bound to its own.
        if value.starts_with('-') {
            self.0.push(quoted(&format!("{option}={value}")));
        } else {
            self.0.extend([option.to_owned(), quoted(&value)]);
        }
    }

    /// If somebody said it.
    fn given<T: Display>(&mut self, option: &str, value: Option<T>) {
        if let Some(value) = value {
            self.add(option, value);
        }
    }

    /// If it is not what it would be without.
    fn differing<T: PartialEq>(&mut self, option: &str, value: &T, usual: &T, shown: impl Display) {
        if value != usual {
            self.add(option, shown);
        }
    }

    fn file(&mut self, option: &str, path: &Path) {
        self.add(option, path.display());
    }
}

/// The command that judges these files as `benchmark` judged what is in them.
pub(super) fn command(args: &BenchmarkArgs, benchmark: &Benchmark, files: &[PathBuf]) -> String {
    let mut words = Words(vec!["flowstart benchmark".to_owned()]);
    files.iter().for_each(|file| words.file("--measured", file));
    path(&mut words, args, benchmark);
    procedure(&mut words, args, benchmark);
    words.0.join(" ")
}

/// The path and those who are there, on whom the fair share depends.
fn path(words: &mut Words, args: &BenchmarkArgs, benchmark: &Benchmark) {
    let path = &args.path.path;
    if let Some(file) = &args.scenario {
        words.file("--scenario", file);
    }
    words.given("--profile", path.profile.as_ref().map(|profile| &profile.name));
    let (race, usual) = (&benchmark.race, Race::default());
    // Real stacks have another path, across a real one it was looked for.
    let own = args.is_real() && args.scenario.is_none() && path.profile.is_none();
    let capacity = Some(race.capacity()).filter(|capacity| own && *capacity != usual.capacity());
    words.given("--capacity", path.capacity.or(capacity));
    words.given("--rtt", path.rtt.or(Some(race.path.rtt).filter(|rtt| own && *rtt != usual.path.rtt)));
    words.given("--buffer", path.buffer);
    words.given("--mark", args.path.mark);
    words.given("--ways", path.ways);
    path.with.iter().for_each(|part| words.add("--with", part));
    args.background.iter().for_each(|flow| words.add("--background", flow));
    let peers = if race.has_others() { 0 } else { Benchmark::new(usual).peers };
    words.differing("--peers", &benchmark.peers, &peers, benchmark.peers);
    words.given("--seed", args.seed);
}

/// How rates are judged, and what is bounded.
fn procedure(words: &mut Words, args: &BenchmarkArgs, benchmark: &Benchmark) {
    let usual = Benchmark::new(benchmark.race.clone());
    words.differing("--lasting", &benchmark.lasting, &usual.lasting, benchmark.lasting);
    words.given("--step", args.step);
    let (probe, mut usual) = (&benchmark.probe, usual.probe);
    if args.paper {
        words.0.push("--paper".to_owned());
        usual = ProbeConfig { packet: usual.packet, ..ProbeConfig::paper() };
    }
    words.differing("--samples", &probe.samples, &usual.samples, probe.samples);
    words.differing("--epsilon", &probe.epsilon, &usual.epsilon, probe.epsilon.get());
    words.differing("--warm-up", &probe.warm_up, &usual.warm_up, probe.warm_up);
    words.differing("--least", &probe.least_time, &usual.least_time, probe.least_time);
    words.differing("--overload-after", &probe.overload_after, &usual.overload_after, probe.overload_after);
    words.differing("--gap", &probe.sampling_gap, &usual.sampling_gap, probe.sampling_gap);
    words.differing("--growth", &probe.growth, &usual.growth, probe.growth);
    let sides = if probe.sides == Sides::Two { "two" } else { "few" };
    words.differing("--sides", &probe.sides, &usual.sides, sides);
    let level = (&probe.independence_level, &usual.independence_level);
    words.differing("--independence-level", level.0, level.1, probe.independence_level.get());
    let percent = match probe.stationarity_level {
        Level::One => "1%",
        Level::Five => "5%",
        Level::Ten => "10%",
    };
    words.differing("--stationarity-level", &probe.stationarity_level, &usual.stationarity_level, percent);
    words.differing("--growth-level", &probe.growth_level, &usual.growth_level, probe.growth_level.get());
    words.given("--video", args.video);
    if let Some(film) = &args.film {
        words.file("--film", film);
    }
    words.given("--film-fps", args.film_fps);
    words.given("--burst", args.burst);
}
