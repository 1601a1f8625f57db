//! Simulating a scenario and checking what must hold.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

use flowstart_parallel::Cancel;
use flowstart_results::{Provenance, run_scenario, to_json};
use flowstart_scenario::{RateSpec, Scenario};
use flowstart_simulator::{Outcome, Simulation, SimulationConfig};
use flowstart_units::{Span, Time};
use toml::Table;

use crate::checker::{Checker, Enough};

/// How much of a scenario is simulated.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A scenario is cut off when about this many packets have left endpoints.
    pub packets: u64,
    /// A simulation in which more than this happens is given up: too large to be judged.
    pub happenings: u64,
}

impl Limits {
    /// Cut off after about this many packets.
    #[must_use]
    pub const fn packets(packets: u64) -> Self {
        Self { packets, happenings: packets * 60 }
    }
}

/// What was simulated of a scenario that passed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passed {
    /// Packets that left endpoints, in all simulations whose every packet was checked.
    pub packets: u64,
    /// True if it was cut off before its end.
    pub cut: bool,
}

/// What became of a scenario.
#[derive(Clone, Debug)]
pub enum Judgement {
    /// Everything held.
    Passed(Passed),
    /// More happens at once than the limits allow.
    TooLarge,
    /// It is no valid scenario.
    Refused(String),
    /// Something did not hold, or the program panicked.
    Violated {
        /// What it was.
        what: String,
        /// The same for violations of the same kind: where it was noticed, and the message without
        /// numbers.
        kind: String,
    },
}

thread_local! {
    /// Where this thread panicked last, while it judges.
    static PANICKED_AT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Panics of a thread that judges are caught and judged: nothing is printed about them. Others are
/// what they were.
fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            let judging = PANICKED_AT.with(|at| {
                let mut at = at.borrow_mut();
                if let Some(place) = &mut *at {
                    *place = info.location().map(|at| format!("{}:{}", at.file(), at.line())).unwrap_or_default();
                }
                at.is_some()
            });
            if !judging {
                others(info);
            }
        }));
    });
}

/// Why a simulation did not come to its end.
enum Stopped {
    TooLarge,
    Violated { what: String, kind: String },
}

/// Runs `work`, which may panic.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, Stopped> {
    quiet_panics();
    let outer = PANICKED_AT.with(|at| at.replace(Some(String::new())));
    let outcome = catch_unwind(AssertUnwindSafe(work));
    let place = PANICKED_AT.with(|at| at.replace(outer)).unwrap_or_default();
    outcome.map_err(|payload| {
        if payload.is::<Enough>() {
            return Stopped::TooLarge;
        }
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let message = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without words");
        let words: String = message.chars().filter(|c| !c.is_ascii_digit()).take(80).collect();
        Stopped::Violated { what: format!("{message} ({place})"), kind: format!("{place} {words}") }
    })
}

/// Simulates the scenario in this table, cut off at the limits, and checks it.
#[must_use]
pub fn judge(table: &Table, limits: Limits) -> Judgement {
    match guarded(|| judged(table, limits)) {
        Ok(Ok(verdict)) => verdict,
        Ok(Err(stopped)) | Err(stopped) => match stopped {
            Stopped::TooLarge => Judgement::TooLarge,
            Stopped::Violated { what, kind } => Judgement::Violated { what, kind },
        },
    }
}

fn judged(table: &Table, limits: Limits) -> Result<Judgement, Stopped> {
    let mut scenario = match Scenario::parse("random.toml", &table.to_string()) {
        Ok(scenario) => scenario,
        Err(error) => return Ok(Judgement::Refused(error.to_string())),
    };
    // How far it can be simulated, in slices of time.
    let config = compiled(&scenario, 0);
    let (sliced, mut packets, over) = in_slices(&config, limits)?;
    // Again as far as that, at once: a scenario of its own.
    if !over {
        scenario.duration = sliced.ended.since(Time::ZERO).max(Span::from_nanos(1));
    }
    let config = compiled(&scenario, 0);
    let (whole, more) = at_once(&config, limits)?;
    packets += more;
    // What users ask for depends on how long they have, and what a load is of a capacity that
    // changes on its mean until the end.
    let changes = scenario.path.as_ref().is_some_and(|path| !matches!(path.capacity, RateSpec::Constant(_)));
    let loads = scenario.arrivals.iter().any(|arrivals| arrivals.load.is_some());
    let depends = !scenario.web.is_empty() || changes && loads;
    if !depends {
        assert_eq!(whole, sliced, "in slices and at once are not the same");
    }
    let (again, more) = at_once(&config, limits)?;
    packets += more;
    assert_eq!(whole, again, "twice the same is not the same");
    // A second run differs in what chance has a part in, and may be too large where the first is
    // not.
    scenario.runs = 1;
    if scenario.is_random() {
        match at_once(&compiled(&scenario, 1), limits) {
            Ok((_, more)) => {
                packets += more;
                scenario.runs = 2;
            }
            Err(Stopped::TooLarge) => {}
            Err(violated) => return Err(violated),
        }
    }
    same_bytes(&mut scenario)?;
    Ok(Judgement::Passed(Passed { packets, cut: !over }))
}

fn compiled(scenario: &Scenario, run: u64) -> SimulationConfig {
    match scenario.simulation(run) {
        Ok(compiled) => compiled.simulation,
        Err(error) => panic!("a scenario that was read cannot be simulated: {error}"),
    }
}

fn simulation(config: &SimulationConfig, limits: Limits) -> Simulation<Checker> {
    match Simulation::new(config, Checker::new(config, limits.happenings)) {
        Ok(simulation) => simulation,
        Err(error) => panic!("a scenario that was read cannot be simulated: {error}"),
    }
}

fn finished(simulation: Simulation<Checker>) -> (Outcome, u64) {
    let stored = simulation.packets_in_network();
    let (outcome, mut checker) = simulation.finish();
    checker.ended(&outcome, stored);
    (outcome, checker.packets())
}

/// Slices of time, as long as little happens in them, until it is over (true) or enough packets
/// were sent.
fn in_slices(config: &SimulationConfig, limits: Limits) -> Result<(Outcome, u64, bool), Stopped> {
    guarded(|| {
        let mut simulation = simulation(config, limits);
        let (mut slice, mut over) = (Span::from_micros(1), false);
        while !over && simulation.observer().packets() < limits.packets {
            let before = simulation.observer().seen();
            let until = simulation.now() + slice;
            over = simulation.run_until(until);
            let happened = simulation.observer().seen() - before;
            slice = if happened < limits.packets / 20 { slice + slice } else { slice / 2 };
            slice = slice.max(Span::from_nanos(1));
            if !over && until >= Time::from_nanos(Time::NEVER.as_nanos() - 1) {
                break;
            }
        }
        let (outcome, packets) = finished(simulation);
        (outcome, packets, over)
    })
}

fn at_once(config: &SimulationConfig, limits: Limits) -> Result<(Outcome, u64), Stopped> {
    guarded(|| {
        let mut simulation = simulation(config, limits);
        simulation.run_until(Time::NEVER);
        finished(simulation)
    })
}

/// One thread, two threads, and read back: the same tables and the same document.
fn same_bytes(scenario: &mut Scenario) -> Result<(), Stopped> {
    let bins = 20;
    if !scenario.output.sample.is_zero() {
        scenario.output.sample = (scenario.duration / bins).max(Span::from_nanos(1));
    }
    let document =
        |scenario: &Scenario, threads: usize| match run_scenario(scenario, Some(threads), &Cancel::default(), |_| {}) {
            Ok(results) => to_json(&results, &Provenance::new(scenario, &results)).to_string(),
            Err(error) => panic!("a scenario that was read cannot be run: {error}"),
        };
    guarded(|| {
        let one = document(scenario, 1);
        if scenario.runs > 1 {
            assert!(one == document(scenario, 2), "one thread and two do not give the same bytes");
        }
        let effective = scenario.effective();
        match Scenario::parse("effective.toml", &effective) {
            Ok(read) => {
                assert!(read == *scenario, "effective parameters read back to another scenario");
                assert!(one == document(&read, 1), "effective parameters do not give the same bytes");
            }
            Err(error) => panic!("effective parameters do not read back: {error}"),
        }
    })
}
