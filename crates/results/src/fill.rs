//! From a scenario to its tables.

use std::num::NonZero;

use flowstart_congestion::ExitReason;
use flowstart_measure::{Asked, Recording, SamplesAndPackets};
use flowstart_simulator::{Outcome, SessionOutcome, Simulation, SimulationConfig, Traffic};
use flowstart_units::{Bytes, Rate, Span, Time};

use super::column::Value;
use super::packets::{Early, packet_table};
use super::samples::sample_table;
use super::schema::{FLOWS, LINKS, PACKETS, PAGES, RUNS, SAMPLES};
use super::table::Table;
use super::write::Format;
use flowstart_network::LinkConfig;
use flowstart_parallel::{Cancel, in_parallel};
use flowstart_scenario::{Compiled, RateSpec, Scenario, ScenarioError};

/// The tables of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// Runs, flows, links, samples, packets, pages.
    pub tables: [Table; 6],
    /// How many runs were asked for.
    pub asked: u64,
    /// How many are in the tables; fewer if the work was cancelled.
    pub finished: u64,
    /// Data packets simulated in all runs.
    pub data_packets: u64,
}

impl Results {
    fn empty(asked: u64) -> Self {
        Self {
            tables: [&RUNS, &FLOWS, &LINKS, &SAMPLES, &PACKETS, &PAGES].map(Table::new),
            asked,
            finished: 0,
            data_packets: 0,
        }
    }

    /// The results of a whole number of runs that are in these tables.
    #[must_use]
    pub fn of(tables: [Table; 6], runs: u64, data_packets: u64) -> Self {
        Self { tables, asked: runs, finished: runs, data_packets }
    }

    /// A table by its name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.spec().name == name)
    }

    /// A hash over all tables, equal exactly if all values are: BLAKE3 of their CSV form, 16
    /// hexadecimal digits.
    #[must_use]
    pub fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for table in &self.tables {
            hasher.update(table.spec().name.as_bytes());
            if table.spec().name == PACKETS.name {
                for portion in table.csv_portions() {
                    hasher.update(portion.text());
                }
            } else {
                let _ = table.write_csv(&mut hasher);
            }
        }
        hasher.finalize().to_hex()[..16].to_owned()
    }
}

/// Runs a scenario, its runs on `threads` threads (`None`: all cores), and fills the tables in
/// order of the runs. `progress` is told how many runs are finished. After a cancellation those
/// that are not over are given up.
///
/// # Errors
/// A scenario that cannot be simulated.
pub fn run_scenario(
    scenario: &Scenario,
    threads: Option<usize>,
    cancel: &Cancel,
    progress: impl Fn(usize) + Sync,
) -> Result<Results, ScenarioError> {
    run_to_write(scenario, &[], threads, cancel, progress)
}

/// The same, for results that will be [written](crate::write_results) in these formats: what takes
/// long of that is done meanwhile, if there are more threads than runs.
///
/// # Errors
/// As [`run_scenario`].
pub fn run_to_write(
    scenario: &Scenario,
    formats: &[Format],
    threads: Option<usize>,
    cancel: &Cancel,
    progress: impl Fn(usize) + Sync,
) -> Result<Results, ScenarioError> {
    scenario.fits_memory()?;
    scenario.simulation(0)?;
    let runs = usize::try_from(scenario.runs).unwrap_or(usize::MAX);
    let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
    let beside = Beside {
        thread: threads.unwrap_or_else(cores) > runs,
        pack: formats.iter().any(|format| matches!(format, Format::CsvWithGzip)),
    };
    let tables = in_parallel(runs, threads, cancel, progress, |run| one_run(scenario, run as u64, beside, cancel))
        .map_err(|message| ScenarioError::file("scenario", message))?;
    let mut results = Results::empty(scenario.runs);
    for run in tables.into_iter().flatten() {
        // What was given up has no part in it.
        let Some((tables, packets)) = run? else { continue };
        for (all, one) in results.tables.iter_mut().zip(tables) {
            all.append(one);
        }
        results.finished += 1;
        results.data_packets += packets;
    }
    Ok(results)
}

/// What is done of the packets' text while a run goes on.
#[derive(Clone, Copy)]
struct Beside {
    /// There is a thread for it.
    thread: bool,
    /// It will be compressed.
    pack: bool,
}

/// The tables of a run and its data packets; `None` if it was given up.
fn one_run(
    scenario: &Scenario,
    run: u64,
    beside: Beside,
    cancel: &Cancel,
) -> Result<Option<([Table; 6], u64)>, ScenarioError> {
    let compiled = scenario.simulation(run)?;
    let unread = unread(&compiled);
    let mut recording =
        Recording::<SamplesAndPackets>::new(Asked::tables(scenario.output.sample, scenario.output.packets));
    // What nobody reads is known of flows, and those that arrive by chance only when all is over.
    if !beside.thread || !scenario.output.packets || unread.contains(&true) {
        return filled(scenario, run, &compiled, &unread, recording, None, cancel);
    }
    std::thread::scope(|scope| {
        let early = Early::start(scope, run, &compiled.links, beside.pack).map(|(early, to)| {
            recording.hand_on_packets(to);
            early
        });
        filled(scenario, run, &compiled, &unread, recording, early, cancel)
    })
}

/// Simulates a run and fills the tables.
fn filled(
    scenario: &Scenario,
    run: u64,
    compiled: &Compiled,
    unread: &[bool],
    recording: Recording<SamplesAndPackets>,
    early: Option<Early<'_>>,
    cancel: &Cancel,
) -> Result<Option<([Table; 6], u64)>, ScenarioError> {
    let impossible = |error: &dyn std::fmt::Display| ScenarioError::file("scenario", error.to_string());
    let given_up = || cancel.is_cancelled();
    let done = if scenario.output.sample.is_zero() && !scenario.output.packets {
        let simulation = Simulation::new(&compiled.simulation, ()).map_err(|error| impossible(&error))?;
        simulation.run_unless(given_up).map(|(outcome, ())| (outcome, recording))
    } else {
        let simulation = Simulation::new(&compiled.simulation, recording).map_err(|error| impossible(&error))?;
        simulation.run_unless(given_up)
    };
    let Some((mut outcome, recording)) = done else { return Ok(None) };
    for flow in outcome.flows.iter_mut().filter(|flow| unread[flow.group as usize]) {
        flow.delivered = Bytes::ZERO;
    }
    let group = |flow: u32| outcome.flows[flow as usize].group as usize;
    let name = |flow: u32| compiled.groups[group(flow)].name.clone();
    let reads = |flow: u32| !unread[group(flow)];
    let samples = sample_table(run, recording.samples(), name, reads, compiled);
    let packets = packet_table(run, recording.into_packets(), early, reads, &compiled.links);
    let simulated = outcome.data_packets;
    Ok(Some((
        [
            run_table(scenario, run, &outcome),
            flow_table(run, &outcome, compiled),
            link_table(run, &outcome, compiled),
            samples,
            packets,
            page_table(run, &outcome.sessions, compiled),
        ],
        simulated,
    )))
}

/// Which groups have receivers that nobody reads from: what reaches them is not delivered.
fn unread(compiled: &Compiled) -> Vec<bool> {
    let mut unread = vec![false; compiled.groups.len()];
    let SimulationConfig { flows, arrivals, sessions, .. } = &compiled.simulation;
    let arriving = arrivals.iter().map(|arrivals| &arrivals.flow);
    for flow in flows.iter().chain(arriving).chain(sessions.iter().map(|session| &session.flow)) {
        if let Traffic::Tcp(tcp) = &flow.traffic {
            unread[flow.group as usize] = !tcp.receiver.auto_read;
        }
    }
    unread
}

fn run_table(scenario: &Scenario, run: u64, outcome: &Outcome) -> Table {
    let mut table = Table::new(&RUNS);
    table.push([
        run.into(),
        scenario.seed.into(),
        outcome.ended.as_secs_f64().into(),
        outcome.events.into(),
        outcome.data_packets.into(),
        outcome.flows.iter().map(|flow| flow.delivered.get()).sum::<u64>().into(),
        outcome.links.iter().map(|link| link.dropped + link.lost).sum::<u64>().into(),
        outcome.links.iter().map(|link| link.marked).sum::<u64>().into(),
    ]);
    table
}

/// The table of pages that users got.
#[must_use]
pub fn page_table(run: u64, sessions: &[SessionOutcome], compiled: &Compiled) -> Table {
    let mut table = Table::new(&PAGES);
    for (user, session) in sessions.iter().enumerate() {
        let name = &compiled.groups[session.group as usize].name;
        for (number, page) in session.pages.iter().enumerate() {
            table.push([
                run.into(),
                name.as_str().into(),
                (user as u64).into(),
                (number as u64).into(),
                page.began.as_secs_f64().into(),
                page.done.since(page.began).as_secs_f64().into(),
                u64::from(page.replies).into(),
                page.bytes.get().into(),
            ]);
        }
    }
    table
}

fn flow_table(run: u64, outcome: &Outcome, compiled: &Compiled) -> Table {
    let mut table = Table::new(&FLOWS);
    for (number, flow) in outcome.flows.iter().enumerate() {
        let label = &compiled.groups[flow.group as usize];
        // What was to start after the run had ended did not start.
        let started = (flow.started <= outcome.ended).then_some(flow.started);
        let began = (flow.first_data < Time::NEVER).then_some(flow.first_data);
        let until = flow.completed.unwrap_or(outcome.ended);
        // No rate over no time: a flow whose first packet left at the very end.
        let goodput = began
            .filter(|began| *began < until)
            .map(|began| Rate::of(flow.delivered, until.since(began)).as_bps() as f64);
        let exit = flow.start_exit;
        table.push([
            run.into(),
            (number as u64).into(),
            label.name.as_str().into(),
            label.algorithm.as_str().into(),
            started.map(Time::as_secs_f64).into(),
            began.map(Time::as_secs_f64).into(),
            flow.completed.map(Time::as_secs_f64).into(),
            flow.completed.zip(began).map(|(done, began)| done.since(began).as_secs_f64()).into(),
            flow.completed.map(|done| done.since(flow.started).as_secs_f64()).into(),
            flow.size.map(Bytes::get).into(),
            flow.delivered.get().into(),
            goodput.into(),
            flow.packets_sent.into(),
            flow.retransmitted.into(),
            flow.dropped.into(),
            flow.dropped_in_start.into(),
            flow.marked.into(),
            flow.timeouts.into(),
            flow.recoveries.into(),
            exit.map(|exit| exit_name(exit.reason)).into(),
            exit.zip(began).map(|(exit, began)| exit.now.since(began).as_secs_f64()).into(),
            exit.map(|exit| exit.cwnd).into(),
            exit.map(|exit| exit.ssthresh).into(),
            exit.map(|exit| exit.in_flight).into(),
            micros(flow.srtt, Span::ZERO),
            micros(flow.min_rtt, Span::MAX),
            (flow.cwnd > 0).then_some(flow.cwnd).into(),
            flow.companion_of.into(),
            flow.decision.map(|decision| decision.isolation.name()).into(),
            flow.decision.zip(began).map(|(decision, began)| decision.now.since(began).as_secs_f64()).into(),
            flow.decision.map(|decision| decision.ratio).into(),
            flow.isolation_revoked.zip(began).map(|(revoked, began)| revoked.since(began).as_secs_f64()).into(),
            flow.revised.map(|decision| decision.isolation.name()).into(),
            flow.revised.zip(began).map(|(decision, began)| decision.now.since(began).as_secs_f64()).into(),
        ]);
    }
    table
}

/// The share of a run of this length that a link used, which was `busy` for so long and sent so
/// many bytes: behind a shaper or policer of what their rate lets through, as the wire there is
/// faster.
#[must_use]
pub fn utilisation(config: &LinkConfig, busy: Span, bytes: Bytes, lasted: Span) -> f64 {
    let medium = &config.medium;
    if medium.shaper.is_none() && medium.policer.is_none() {
        return busy.ratio(lasted).min(1.0);
    }
    let rate = RateSpec::from_schedule(&config.rate).mean(Span::ZERO, lasted);
    let rate = medium.policer.map_or(rate, |policer| policer.rate.min(rate));
    let most = rate.as_bps() as f64 * lasted.as_secs_f64();
    // What nothing can pass is not used.
    if most > 0.0 { (bytes.get() as f64 * 8.0 / most).min(1.0) } else { 0.0 }
}

fn link_table(run: u64, outcome: &Outcome, compiled: &Compiled) -> Table {
    let mut table = Table::new(&LINKS);
    let links = compiled.links.iter().zip(&outcome.links).zip(&compiled.simulation.links);
    for ((name, link), config) in links {
        let mean = link.total_sojourn.as_nanos() as f64 / 1e3 / link.packets as f64;
        table.push([
            run.into(),
            name.as_str().into(),
            link.packets.into(),
            link.bytes.get().into(),
            utilisation(config, link.busy, link.bytes, outcome.ended.since(Time::ZERO)).into(),
            link.dropped.into(),
            link.lost.into(),
            link.marked.into(),
            mean.into(),
            (link.max_sojourn.as_nanos() as f64 / 1e3).into(),
            link.quick_start.approved.into(),
            link.quick_start.denied.into(),
            link.quick_start.reports.into(),
            link.quick_start.faults.into(),
        ]);
    }
    table
}

fn micros(span: Span, unknown: Span) -> Value {
    (span != unknown).then(|| span.as_nanos() as f64 / 1e3).into()
}

/// The reason for a start's exit as it stands in tables.
#[must_use]
pub fn exit_name(reason: ExitReason) -> &'static str {
    match reason {
        ExitReason::AckTrain => "ack_train",
        ExitReason::DelayIncrease => "delay_increase",
        ExitReason::PipeFull => "pipe_full",
        ExitReason::DeliveryLag => "delivery_lag",
        ExitReason::RatePlateau => "rate_plateau",
        ExitReason::Loss => "loss",
        ExitReason::Marks => "marks",
        ExitReason::Timeout => "timeout",
        ExitReason::Threshold => "threshold",
        ExitReason::Limit => "limit",
        ExitReason::Isolation => "isolation",
        ExitReason::Unseen => "unseen",
    }
}
