//! Real stacks: this machine's kernel, probed in real time.

use std::path::Path;

use flowstart_benchmark::{Attained, Benchmark};
use flowstart_parallel::Cancel;
use flowstart_race::Race;
use flowstart_service_curve::Probability;
use flowstart_units::{Rate, Span};

use super::args::BenchmarkArgs;
use crate::interrupt;
use crate::output::{Done, Failure};

/// What differs from a simulated benchmark unless something else is said, so that a curve takes
/// less than five minutes and, all rates at once, less than one core: the capacity and the RTT.
const CAPACITY: Rate = Rate::from_mbps(10);
const RTT: Span = Span::from_millis(40);
/// Greedy flows of the same kind that are there before.
const PEERS: u32 = 4;
/// Steps in a fair share.
const STEPS: u64 = 5;
/// How long each rate is measured at most.
const LASTING: Span = Span::from_secs(240);
/// Samples per rate, and the fraction of messages that may exceed their quantile: what four minutes
/// decide. Delays that one message in a hundred exceeds take ten times as long.
const SAMPLES: usize = 150;
const EPSILON: Probability = Probability::FIVE_PERCENT;
/// How long delays must have grown before a rate is too high.
const OVERLOAD_AFTER: Span = Span::from_secs(120);

/// How long each rate is measured at most across a real path, where rates follow one another: with
/// the warm-up less than the minute that `flowstart serve` allows, and five minutes in all.
const LASTING_ACROSS: Span = Span::from_secs(45);
/// There delays must have grown for this percentage of it before a rate is too high.
const OVERLOAD_PERCENT: u64 = 66;

/// What was measured.
pub(super) struct Really {
    pub(super) attained: Vec<Attained>,
    pub(super) complete: bool,
    /// Whether the paths were faithful enough.
    pub(super) verdict: Done,
    /// How late packets were, as a document.
    pub(super) paths: Option<serde_json::Value>,
}

/// Sets the default path.
pub(super) fn path(race: &mut Race) {
    race.set_capacity(CAPACITY);
    race.path.rtt = RTT;
}

/// Sets the other defaults.
pub(super) fn defaults(benchmark: &mut Benchmark) {
    (benchmark.peers, benchmark.lasting) = (PEERS, LASTING);
    (benchmark.connections, benchmark.bursts) = (0, 0);
    benchmark.probe.overload_after = OVERLOAD_AFTER;
    // Two minutes are not long against what delays remember near saturation.
    benchmark.probe.growth_level = Probability::ONE_PERMILLE;
    (benchmark.probe.samples, benchmark.probe.epsilon) = (SAMPLES, EPSILON);
}

/// The same across a real path, where nobody is beside the probe but who is there anyway.
pub(super) fn defaults_across(benchmark: &mut Benchmark, lasting: Option<Span>) {
    defaults(benchmark);
    (benchmark.peers, benchmark.lasting) = (0, lasting.unwrap_or(LASTING_ACROSS));
    let part = benchmark.lasting.mul_ratio(OVERLOAD_PERCENT, 100);
    benchmark.probe.overload_after = OVERLOAD_AFTER.min(part);
}

/// The step between probing rates.
pub(super) fn step(benchmark: &Benchmark) -> Rate {
    Rate::from_bps((benchmark.fair_share().as_bps() / STEPS).max(1))
}

/// The stacks that are asked for.
#[cfg(target_os = "linux")]
fn stacks(args: &BenchmarkArgs) -> Result<Vec<flowstart_real::Stack>, Failure> {
    use flowstart_real::{Program, Stack};
    let controls = args.real.iter().map(|name| flowstart_real::control_named(name.trim()).map(Stack::Control));
    let program = args.command.as_ref().map(|line| Program::new(line, args.server.as_deref()).map(Stack::Program));
    Ok(controls.chain(quic(args)?.into_iter().map(Ok)).chain(program).collect::<Result<_, _>>()?)
}

/// What tables call them.
#[cfg(target_os = "linux")]
pub(super) fn labels(args: &BenchmarkArgs) -> Result<Vec<String>, Failure> {
    Ok(stacks(args)?.iter().map(flowstart_real::Stack::label).collect())
}

/// Elsewhere there are none.
#[cfg(not(target_os = "linux"))]
pub(super) fn labels(_: &BenchmarkArgs) -> Result<Vec<String>, Failure> {
    Ok(Vec::new())
}

/// Measures the stacks that are asked for, and from then on Ctrl-C asks for an orderly end.
#[cfg(target_os = "linux")]
pub(super) fn measure(
    benchmark: &Benchmark,
    args: &BenchmarkArgs,
    folder: Option<&Path>,
) -> Result<(Cancel, Really), Failure> {
    use flowstart_benchmark::Kept;
    use flowstart_real::RealBenchmark;

    use super::kept::Finished;
    use crate::output::{note, progress, roughly};
    use crate::real::{become_able, fidelity_limit, judge_all};

    if !args.is_real() {
        return Ok((
            interrupt::listen(),
            Really { attained: Vec::new(), complete: true, verdict: Ok(()), paths: None },
        ));
    }
    let stacks = stacks(args)?;
    if let Some(twice) = (1..stacks.len()).find(|number| stacks[..*number].contains(&stacks[*number])) {
        return Err(Failure::Usage(format!("{} is to be measured twice", stacks[twice].label())));
    }
    flowstart_real::check_benchmark(benchmark, &stacks)?;
    let finished = folder.map(|folder| Finished::open(folder, benchmark, args.resume)).transpose()?;
    let finished = finished.as_ref().map(|finished| finished as &dyn Kept);
    let mut left_out: Vec<String> = stacks.iter().filter_map(|stack| stack.leaves_out(&benchmark.race.path)).collect();
    left_out.sort_unstable();
    left_out.dedup();
    for line in left_out {
        note(&format!("not as in the simulator: {line}"));
    }
    // Before threads are started.
    become_able()?;
    let cancel = interrupt::listen();
    let at_once = args.at_once.map_or_else(|| flowstart_real::at_once(benchmark), usize::from);
    let rounds = benchmark.rates().len().div_ceil(at_once) * stacks.len();
    let longest = flowstart_real::longest(benchmark).as_secs_f64() * rounds as f64;
    note(&format!("{} rates, {at_once} at once, in real time: {} at most", benchmark.rates().len(), roughly(longest)));
    let bar = progress("seconds of probing");
    let tell = |done: f64, of: f64| {
        bar.set_length(of as u64);
        bar.set_position(done as u64);
    };
    let RealBenchmark { attained, fidelities, stamps, faults, failed, not_reached, known, complete } =
        flowstart_real::benchmark(benchmark, &stacks, at_once, finished, &cancel, &tell)?;
    bar.finish_and_clear();
    if known > 0 {
        note(&format!("rates that were finished before: {known}"));
    }
    faults.iter().for_each(|fault| note(fault));
    let limit = fidelity_limit(args.fidelity);
    if !not_reached.is_empty() && !attained.is_empty() {
        note(&format!("not measured: {}", not_reached.join(", ")));
    }
    let verdict = judge_all(&limit, &fidelities);
    // What failed is told after what was finished.
    let verdict = failed.map_or(verdict, |error| Err(error.into()));
    if let Some(worst) = fidelities.iter().max_by_key(|fidelity| fidelity.p99) {
        note(&format!("{} paths; the least faithful: {worst}", fidelities.len()));
    }
    if let Some(stamps) = &stamps {
        note(&stamps.to_string());
    }
    let seconds =
        |of: fn(&flowstart_emulator::Fidelity) -> Span| fidelities.iter().map(of).max().map(Span::as_secs_f64);
    let paths = serde_json::json!({
        "count": fidelities.len(),
        "late_p99_s": seconds(|fidelity| fidelity.p99),
        "allowed_late_p99_s": limit.p99.as_secs_f64(),
        "faults": faults,
        "socket_stamps": stamps.as_ref().map(|stamps| serde_json::json!({
            "messages": stamps.messages,
            "stamped": stamps.stamped,
            "apart_p50_s": stamps.apart(0.5).map(Span::as_secs_f64),
            "apart_p99_s": stamps.apart(0.99).map(Span::as_secs_f64),
            "queued_p99_s": stamps.queued(0.99).map(Span::as_secs_f64),
            "refused": stamps.refused,
        })),
    });
    Ok((cancel, Really { attained, complete, verdict, paths: Some(paths) }))
}

/// What is asked for over QUIC.
#[cfg(all(target_os = "linux", feature = "quic"))]
fn quic(args: &BenchmarkArgs) -> Result<Vec<flowstart_real::Stack>, Failure> {
    let over = |contestant| flowstart_real::Stack::Quic(Box::new(contestant), args.stack.into());
    Ok(args.quic.iter().cloned().map(over).collect())
}

/// What is asked for over QUIC, which this program does not have.
#[cfg(all(target_os = "linux", not(feature = "quic")))]
fn quic(args: &BenchmarkArgs) -> Result<Vec<flowstart_real::Stack>, Failure> {
    if args.quic.is_empty() { Ok(Vec::new()) } else { Err(crate::quic::without()) }
}

/// Elsewhere nothing can be measured.
#[cfg(not(target_os = "linux"))]
pub(super) fn measure(_: &Benchmark, args: &BenchmarkArgs, _: Option<&Path>) -> Result<(Cancel, Really), Failure> {
    if args.is_real() {
        return Err(Failure::NotPossible(crate::output::NEEDS_LINUX.to_owned()));
    }
    Ok((interrupt::listen(), Really { attained: Vec::new(), complete: true, verdict: Ok(()), paths: None }))
}
