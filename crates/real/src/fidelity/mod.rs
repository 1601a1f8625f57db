//! The same cases in the simulator and on this machine's kernel: how far are they apart?
//!
//! One [`Case`] is one flow over one path. The simulator runs it with bursts and receive window of
//! Linux, and CUBIC with the [ticks](kernel_hz) of this machine's kernel; the kernel runs it over
//! the emulator with its own defaults; one observer watches both. The
//! simulated path has what each run of the kernel had ([`Disturbance`]): it is longer by what hosts
//! and emulator add to a round trip (some 10 us), of which the smallest round-trip time says how
//! much, and its ACKs are as late as those of that run ([`Lateness`]). The bounds are fixed
//! ([`QUANTITIES`]), and a goal counts as met or missed only if the 95 % interval over the runs
//! lies on one side of the bound.

mod acks;
mod cases;
mod check;
mod judge;
mod lateness;
mod row;
mod sends;
mod tick;
#[cfg(test)]
mod truth;
mod watch;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use flowstart_emulator::{Fidelity, FidelityLimit};
use flowstart_parallel::Cancel;
use flowstart_race::RaceError;
use flowstart_scenario::Compiled;
use flowstart_simulator::{Outcome, Simulation};
use flowstart_units::{Rate, Span, Time};

use crate::controls::control;
use crate::perform::{Performed, Wanted, perform};
use crate::replay::play_back;
use crate::{Error, Transport};

use acks::{Hosts, late_acks};
use cases::{BACK, FORWARD};
pub use cases::{CONTROLS, Case, QUEUES, cases, queue_cases, reference};
pub use check::MOST_RUNS;
pub use judge::{Deviation, Goal, QUANTITIES, Quantity, Reached, Values};
pub use lateness::{Disturbance, Waits};
pub use row::Lateness;
use sends::late_sends;
pub use tick::{UnknownTick, kernel_hz};
use watch::Watch;

/// Most that a smallest round-trip time may be longer than the simulator's, in us: above it the
/// path was another.
const MOST_EXCESS_US: f64 = 1_000.0;

/// What came out of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The case.
    pub case: Case,
    /// The simulator's values, a list for each run; one run where there is no chance.
    pub simulated: Vec<Values>,
    /// The kernel's, of the runs that count.
    pub kernel: Vec<Values>,
    /// What each of them had that the path does not have; the simulated runs have the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbances: Vec<Disturbance>,
    /// The simulator's values over the path as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undisturbed: Vec<Values>,
    /// Why runs of the kernel do not count, a sentence for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// How late 99 % of the packets of the worst run that counts were at most, in us.
    pub late_p99_us: f64,
    /// Why the kernel cannot run it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

/// All that came out, as it is kept in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of flowstart.
    pub flowstart_version: String,
    /// Version of the kernel.
    pub kernel: String,
    /// Ticks per second of the kernel's clock, which the simulator's CUBIC goes by, too; 250 in
    /// records that do not say.
    #[serde(default = "usual_hz")]
    pub hz: u32,
    /// Cores of the machine.
    pub cores: usize,
    /// Runs of each case.
    pub runs: u64,
    /// Cases that were asked for and not run, because somebody interrupted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: usize,
    /// What came out.
    pub rows: Vec<Row>,
}

fn usual_hz() -> u32 {
    tick::USUAL
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The version of the kernel that runs here, without what its builder added.
#[must_use]
pub fn kernel_version() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let version = text.trim().split('-').next().unwrap_or_default();
    if version.is_empty() { "unknown".to_owned() } else { version.to_owned() }
}

/// Runs a case on the kernel, so often as there are numbers of runs, which chance goes by, and,
/// where chance plays a part, in the simulator, with so many ticks per second.
/// [Privileges](flowstart_emulator::privilege) must be there. A run in which the emulator was less
/// faithful than `limit` does not count. `done` hears of each run of the kernel. `None` if it was
/// cancelled.
///
/// # Errors
/// If the case cannot be run here; a control that the kernel lacks is no error.
pub fn compare(
    case: &Case,
    hz: u32,
    runs: Range<u64>,
    limit: &FidelityLimit,
    cancel: &Cancel,
    mut done: impl FnMut(&Fidelity),
) -> Result<Option<Row>, Error> {
    let scenario = case.scenario(hz)?;
    let mut row = Row::of(case.clone());
    if let Err(error) = control(&case.algorithm, None) {
        row.skipped = Some(error.to_string());
        row.simulate(runs.end, hz)?;
        return Ok(Some(row));
    }
    let (_, nominal) = simulate(case, hz, 0, &Disturbance::default())?;
    let wanted = Wanted { log: true, transport: Transport::Kernel, given: true, captures: None };
    for run in runs.clone() {
        let compiled = scenario.simulation(run)?;
        let performed = perform(&scenario, &compiled, &wanted, cancel)?;
        if cancel.is_cancelled() {
            return Ok(None);
        }
        let mut watch = watch(case);
        let outcome = play_back(&performed, &mut watch);
        let fidelity = &performed.outcome.fidelity;
        done(fidelity);
        match limit.broken_by(fidelity) {
            Some(why) => row.left_out.push(why),
            None => {
                row.late_p99_us = row.late_p99_us.max(fidelity.p99.as_nanos() as f64 / 1e3);
                let acks = late_acks(&performed.outcome.given, hosts(&performed, nominal));
                row.disturbances.push(Disturbance {
                    run: Some(run),
                    excess_us: (acks.fastest.as_nanos() as f64 / 1e3).min(MOST_EXCESS_US),
                    acks: Lateness::new(&acks.late),
                    timers: match case.is_paced() {
                        true => Lateness::new(&late_sends(&sent(&performed), &performed.flows[0].outcome.samples)),
                        false => Lateness::default(),
                    },
                    ..Disturbance::default()
                });
                row.kernel.push(watch.values(&outcome, rtt(case)));
            }
        }
    }
    row.simulate(runs.end, hz)?;
    Ok(Some(row))
}

/// The data that left the sender's host: when, and how many bytes.
fn sent(performed: &Performed) -> Vec<(Time, u32)> {
    let mut list: Vec<(Time, u32)> = (performed.log.iter())
        .filter_map(|logged| Some((logged.arrived, logged.tcp?.1)))
        .filter(|(_, payload)| *payload > 0)
        .collect();
    list.sort_by_key(|(at, _)| *at);
    list
}

/// The ends of the way of ACKs, and how much longer the handshake took than the simulator's, whose
/// smallest round-trip time it is; a case has one flow, and no link on its way back.
fn hosts(performed: &Performed, simulator: Option<Span>) -> Hosts {
    let layout = &performed.layout;
    let (sender, receiver) = layout.ways[0];
    let way = layout.config.routes.iter().find(|route| (route.from, route.to) == (receiver, sender));
    // When the connection has only just opened nothing else has been measured.
    let handshake = performed.flows[0].outcome.samples.first().map(|sample| sample.info.min_rtt);
    Hosts {
        sender,
        receiver,
        back: way.map_or(Span::ZERO, |way| way.before + way.after),
        handshake: handshake.zip(simulator).and_then(|(kernel, simulator)| kernel.checked_sub(simulator)),
    }
}

fn min_rtt(outcome: &Outcome) -> Option<Span> {
    outcome.flows.first().map(|flow| flow.min_rtt).filter(|rtt| *rtt != Span::MAX)
}

impl Row {
    /// How many runs of the kernel there were, those that do not count among them.
    #[must_use]
    pub fn runs(&self) -> u64 {
        (self.kernel.len() + self.left_out.len()) as u64
    }

    /// Of a case of which nothing has run.
    fn of(case: Case) -> Self {
        Self {
            case,
            simulated: Vec::new(),
            kernel: Vec::new(),
            disturbances: Vec::new(),
            undisturbed: Vec::new(),
            left_out: Vec::new(),
            late_p99_us: 0.0,
            skipped: None,
        }
    }

    /// Takes in the runs of another row of the same case, and simulates what both measured, with so
    /// many ticks per second.
    ///
    /// # Errors
    /// If the case is no scenario.
    pub fn add(&mut self, other: Self, hz: u32) -> Result<(), Error> {
        self.kernel.extend(other.kernel);
        self.disturbances.extend(other.disturbances);
        self.left_out.extend(other.left_out);
        self.late_p99_us = self.late_p99_us.max(other.late_p99_us);
        self.skipped = self.skipped.take().filter(|_| self.kernel.is_empty()).and(other.skipped);
        self.simulate(self.runs().max(1), hz)
    }

    /// Simulates what was measured, and so many runs over the path as it is, with `hz` ticks per
    /// second.
    ///
    /// # Errors
    /// If the case is no scenario.
    pub fn simulate(&mut self, runs: u64, hz: u32) -> Result<(), Error> {
        self.undisturbed = simulated(&self.case, hz, &vec![Disturbance::default(); runs as usize])?;
        self.simulated = match self.disturbances.is_empty() {
            true => self.undisturbed.clone(),
            false => simulated(&self.case, hz, &self.disturbances)?,
        };
        Ok(())
    }
}

/// The simulator's values with `hz` ticks per second, a run for each of these disturbances; only
/// one if all runs are alike.
///
/// # Errors
/// If the case is no scenario.
pub fn simulated(case: &Case, hz: u32, disturbances: &[Disturbance]) -> Result<Vec<Values>, Error> {
    let one = |(place, disturbance): (u64, &Disturbance)| {
        Ok(simulate(case, hz, disturbance.run.unwrap_or(place), disturbance)?.0)
    };
    let mut all = (0..).zip(disturbances).map(one).collect::<Result<Vec<Values>, Error>>()?;
    if all.iter().all(|values| *values == all[0]) {
        all.truncate(1);
    }
    Ok(all)
}

/// The path of a run, with what hosts and emulator added in it.
fn disturbed(case: &Case, hz: u32, run: u64, disturbance: &Disturbance) -> Result<Compiled, Error> {
    let mut compiled = case.longer(hz, disturbance.excess_us)?.simulation(run)?;
    let waits = [(FORWARD, &disturbance.receiver), (BACK, &disturbance.sender)];
    for (link, waits) in waits {
        compiled.simulation.links[link].standstills = waits.standstills();
    }
    // They are of ACKs by when their data was due at the receiver. What a link's packets are late
    // by counts from when they are due at the end of their way.
    let back = compiled.simulation.flows[0].return_delay;
    compiled.simulation.links[BACK].late = disturbance.acks.arrivals(back);
    Ok(compiled)
}

/// A run of the simulator, and its smallest round-trip time.
fn simulate(case: &Case, hz: u32, run: u64, disturbance: &Disturbance) -> Result<(Values, Option<Span>), Error> {
    let compiled = disturbed(case, hz, run, disturbance)?;
    let simulation =
        Simulation::new(&compiled.simulation, watch(case)).map_err(|error| RaceError::new(error.to_string()))?;
    let simulation = simulation.with_late_timers(0, disturbance.timers.arrivals(Span::ZERO));
    let (outcome, watch) = simulation.run();
    Ok((watch.values(&outcome, rtt(case)), min_rtt(&outcome)))
}

fn watch(case: &Case) -> Watch {
    Watch::new(Span::from_secs_f64(case.settle_s), Span::from_secs_f64(case.duration_s))
}

fn rtt(case: &Case) -> Span {
    Span::from_secs_f64(case.rtt_ms / 1e3)
}

/// How long a full packet takes over the bottleneck of a case, in ms: what lies between a wait that
/// ends when transmission begins and one that ends with it.
#[must_use]
pub fn packet_ms(case: &Case) -> f64 {
    Rate::from_bps((case.capacity_mbps * 1e6) as u64)
        .transmission_time(flowstart_units::Bytes::new(1500))
        .as_millis_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_is_simulated_over_the_path_that_the_kernels_run_had() {
        let case = &cases(&["reno"], true, Some(2.0))[0];
        let excess = |excess_us| Disturbance { excess_us, ..Disturbance::default() };
        let plain = simulated(case, tick::USUAL, &vec![excess(0.0); 3]).unwrap();
        let longer = simulated(case, tick::USUAL, &[excess(0.0), excess(900.0)]).unwrap();
        assert_eq!((plain.len(), longer.len()), (1, 2));
        assert_eq!(plain[0], longer[0]);
        assert!(longer[1][1] < longer[0][1], "a longer path holds more of the window: {longer:?}");
    }

    /// CUBIC over a short path, on which ticks matter (docs/validation.md).
    #[test]
    fn cubic_is_simulated_with_the_ticks_that_are_asked_for() {
        let case = |control: &str| Case { rtt_ms: 3.0, ..cases(&[control], true, Some(4.0)).remove(0) };
        let of = |case: &Case, hz| simulated(case, hz, &[Disturbance::default()]).unwrap();
        assert_ne!(of(&case("cubic"), 1000), of(&case("cubic"), 250));
        assert_eq!(of(&case("reno"), 1000), of(&case("reno"), 250), "who does not go by ticks");
        let mut row = Row::of(case("cubic"));
        row.simulate(1, 1000).unwrap();
        assert_eq!(row.simulated, of(&case("cubic"), 1000));
    }

    /// Runs were taken for those at their places: after one that was left out, and where runs were
    /// added to those of before, the simulation drew other numbers.
    #[test]
    fn the_simulation_of_a_run_draws_what_the_run_drew() {
        let case = &queue_cases(&["reno"], &["pie"], true, Some(2.0))[0];
        let of = |runs: &[Option<u64>]| {
            let list: Vec<_> = runs.iter().map(|run| Disturbance { run: *run, ..Disturbance::default() }).collect();
            simulated(case, tick::USUAL, &list).unwrap()
        };
        let places = of(&[None; 3]);
        assert_eq!(places.len(), 3, "chance plays a part");
        assert_eq!(of(&[Some(2), Some(0)]), [places[2], places[0]]);
    }

    #[test]
    fn what_the_emulator_delivered_late_is_late_in_the_simulator_too() {
        let case = &cases(&["cubic"], true, Some(4.0))[0];
        // Every 200 ms nothing arrives for 20 ms, in either direction.
        let late: Waits = "200000+20000 ".repeat(20).parse().unwrap();
        let of = |receiver: &Waits, sender: &Waits| {
            let disturbance =
                Disturbance { receiver: receiver.clone(), sender: sender.clone(), ..Disturbance::default() };
            simulated(case, tick::USUAL, &[disturbance]).unwrap()[0]
        };
        let none = Waits::default();
        let [plain, data, acks] = [of(&none, &none), of(&late, &none), of(&none, &late)];
        for disturbed in [data, acks] {
            assert!(disturbed[0] < plain[0], "less gets through: {disturbed:?} {plain:?}");
        }
        assert_ne!(data, acks);
    }

    #[test]
    fn a_paced_sender_whose_timers_are_late_carries_less() {
        let case = &cases(&["bbr"], true, Some(4.0))[0];
        let of = |timers: &str| {
            let disturbance = Disturbance { timers: timers.parse().unwrap(), ..Disturbance::default() };
            simulated(case, tick::USUAL, &[disturbance]).unwrap()[0]
        };
        let (plain, late) = (of(""), of(&"(4000) ".repeat(400)));
        assert!(late[0] < plain[0], "{late:?} {plain:?}");
    }
}
