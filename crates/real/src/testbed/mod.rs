//! Quick-Start's testbed again (Scharf and Strotbek, figures 6 and 9 to 11): the same transfers in
//! the simulator with the paper's kernel, in the simulator with today's, and on this machine's
//! kernel over the emulator, whose link is a Quick-Start router.
//!
//! The client sends here; in the paper the server does. The hosts' programs must be loaded, without
//! limited slow start (`max_ssthresh=0`), as the paper's.

mod cases;
mod claims;

use serde::{Deserialize, Serialize};

use flowstart_emulator::{Fidelity, FidelityLimit};
use flowstart_network::Packet;
use flowstart_parallel::Cancel;
use flowstart_race::RaceError;
use flowstart_simulator::{LinkId, Observer, Outcome, Simulation};
use flowstart_units::{Rate, Span, Time};

use crate::controls::control;
use crate::perform::{Wanted, perform};
use crate::replay::play_back;
use crate::{Error, ImpossibleRecord, Transport};

pub use cases::{Case, Control, GAIN_BYTES, GAIN_RTTS_MS, Part, RATE_RTTS_MS, Stack, cases, size};
pub use claims::{CLAIMS, Claim, Judged};

/// A link counts as full at this share of its rate (0.95, as in experiments/quick-start/fig9).
const FULL: (u64, u64) = (95, 100);
/// How finely the rate over time is looked at.
const BIN: Span = Span::from_millis(1);

/// What came out of a transfer: seconds from its first data packet on, until the link is full
/// ([`Part::Rate`]) or all has arrived.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The transfer.
    pub case: Case,
    /// Simulated, as the paper's kernel does it; Quick-Start's then with Reno and with CUBIC.
    pub paper: Vec<f64>,
    /// Simulated, as today's kernel and the programs do it.
    pub simulated: f64,
    /// Measured, of the runs that count.
    pub kernel: Vec<f64>,
    /// Why runs of the kernel do not count, a sentence for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// How late 99 % of the packets of the worst run that counts were at most, in us.
    pub late_p99_us: f64,
}

/// What a packet of each kind costs a router's program (figure 6), ns, in each run; a run has all
/// kinds in turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RouterCost {
    /// A program that does nothing.
    pub empty: Vec<f64>,
    /// Packets without options, which are metered only.
    pub metering: Vec<f64>,
    /// One in a hundred is a request that is granted.
    pub one_percent: Vec<f64>,
    /// All are requests that are granted.
    pub requests: Vec<f64>,
}

impl RouterCost {
    /// What packets of a kind cost by what they cost without requests, of each run.
    #[must_use]
    pub fn by_metering(&self, packets: impl Fn(&Self) -> &[f64]) -> Option<flowstart_measure::Estimate> {
        let ratios: Vec<f64> =
            packets(self).iter().zip(&self.metering).map(|(cost, metering)| cost / metering).collect();
        flowstart_measure::Estimate::of(&ratios)
    }
}

/// All that came out, as it is kept in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of flowstart.
    pub flowstart_version: String,
    /// Version of the kernel.
    pub kernel: String,
    /// Cores of the machine.
    pub cores: usize,
    /// Runs of each transfer, of those that were run most often.
    pub runs: u64,
    /// What a router costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router: Option<RouterCost>,
    /// What came out.
    pub rows: Vec<Row>,
}

impl Record {
    /// How often a transfer has been run, runs left out included.
    #[must_use]
    pub fn runs_of(&self, case: &Case) -> usize {
        self.of(case).map_or(0, Row::runs)
    }

    fn of(&self, case: &Case) -> Option<&Row> {
        self.rows.iter().find(|row| row.case == *case)
    }

    /// Adds runs of a transfer to those that are there.
    ///
    /// # Errors
    /// One sentence if what is simulated is not what was simulated for those: something has changed
    /// since.
    pub fn add(&mut self, row: Row) -> Result<(), ImpossibleRecord> {
        let most = (self.runs).max(row.runs() as u64);
        let Some(known) = self.rows.iter_mut().find(|known| known.case == row.case) else {
            self.rows.push(row);
            self.runs = most;
            return Ok(());
        };
        if (&known.paper, known.simulated) != (&row.paper, row.simulated) {
            let (name, path) = (row.case.control.name(), row.case.path());
            return Err(
                format!("{name}, {path}: the simulator says something else than for the runs that are kept").into()
            );
        }
        known.kernel.extend(row.kernel);
        known.left_out.extend(row.left_out);
        known.late_p99_us = known.late_p99_us.max(row.late_p99_us);
        self.runs = most.max(known.runs() as u64);
        Ok(())
    }

    /// In the order of [`cases`].
    pub fn sort(&mut self) {
        let order = cases(false);
        let place = |row: &Row| order.iter().position(|case| *case == row.case).unwrap_or(order.len());
        self.rows.sort_by_key(place);
    }

    /// Checks that it can have been measured.
    ///
    /// # Errors
    /// One sentence about the first number that no run gives.
    pub fn check(&self) -> Result<(), ImpossibleRecord> {
        for (number, row) in self.rows.iter().enumerate() {
            let case = &row.case;
            let path = case.capacity_mbps > 0 && case.rtt_ms > 0 && case.bytes != Some(0);
            if !path {
                return Err(format!("rows[{number}].case: capacity, RTT and size are above 0").into());
            }
            let mut times = row.paper.iter().chain(&row.kernel).chain([&row.simulated]);
            if let Some(wrong) = times.find(|time| !(time.is_finite() && **time >= 0.0)) {
                return Err(format!("rows[{number}]: {wrong} is no time of a transfer").into());
            }
        }
        let costs =
            self.router.iter().flat_map(|cost| [&cost.empty, &cost.metering, &cost.one_percent, &cost.requests]);
        if let Some(wrong) = costs.flatten().find(|cost| !(cost.is_finite() && **cost > 0.0)) {
            return Err(format!("router: {wrong} ns is nothing that a packet costs").into());
        }
        Ok(())
    }
}

/// Looks at one flow over one link.
struct Watch {
    /// Bytes that left it, in each bin.
    bins: Vec<u64>,
}

impl Observer for Watch {
    fn transmitted(&mut self, _: Time, link: LinkId, packet: &Packet, _: Time, done: Time) {
        if link == 0 {
            let bin = (done.since(Time::ZERO).as_nanos() / BIN.as_nanos()) as usize;
            if bin >= self.bins.len() {
                self.bins.resize(bin + 1, 0);
            }
            self.bins[bin] += u64::from(packet.bytes);
        }
    }
}

impl Watch {
    fn seconds(&self, case: &Case, outcome: &Outcome) -> Option<f64> {
        let flow = outcome.flows.first()?;
        if flow.first_data == Time::NEVER {
            return None;
        }
        match case.part {
            Part::Rate => self.full(case, flow.first_data),
            Part::Gain | Part::Times => Some(flow.completed?.since(flow.first_data).as_secs_f64()),
        }
    }

    /// When the rate over one round trip is that of a full link, and stays so for two.
    fn full(&self, case: &Case, first: Time) -> Option<f64> {
        let rtt = case.rtt_ms as usize;
        let rate = Rate::from_mbps(case.capacity_mbps).mul_ratio(FULL.0, FULL.1);
        let needed = rate.as_bps() / 8 * case.rtt_ms / 1000;
        let begin = first.since(Time::ZERO).as_nanos().div_ceil(BIN.as_nanos()) as usize;
        let mut kept = 0;
        for end in begin + rtt..=self.bins.len() {
            let bytes: u64 = self.bins[end - rtt..end].iter().sum();
            kept = if bytes >= needed { kept + 1 } else { 0 };
            if kept > 2 * rtt {
                return Some((end - 2 * rtt) as f64 / 1e3 - first.since(Time::ZERO).as_secs_f64());
            }
        }
        None
    }
}

/// What the simulator says of a transfer.
///
/// # Errors
/// If it is no scenario, or never comes to its end.
pub fn simulated(case: &Case, stack: Stack) -> Result<f64, Error> {
    let compiled = case.scenario(stack)?.simulation(0)?;
    let simulation = Simulation::new(&compiled.simulation, Watch { bins: Vec::new() })
        .map_err(|error| RaceError::new(error.to_string()))?;
    let (outcome, watch) = simulation.run();
    let never = || RaceError::new(format!("{}, {}: no end in the simulation", case.control.name(), case.path()));
    Ok(watch.seconds(case, &outcome).ok_or_else(never)?)
}

impl Row {
    /// What the simulator says of a transfer; the kernel has not been asked.
    ///
    /// # Errors
    /// As [`simulated`].
    pub fn simulated(case: &Case) -> Result<Self, Error> {
        let mut paper = vec![simulated(case, Stack::Paper(false))?];
        if case.control == Control::QuickStart {
            paper.push(simulated(case, Stack::Paper(true))?);
        }
        Ok(Self {
            case: case.clone(),
            paper,
            simulated: simulated(case, Stack::Today)?,
            kernel: Vec::new(),
            left_out: Vec::new(),
            late_p99_us: 0.0,
        })
    }

    /// Runs, those that do not count included.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.kernel.len() + self.left_out.len()
    }

    /// Mean of the simulation's difference to the kernel's runs, as a share of their mean; `None`
    /// without runs.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        let mean = flowstart_measure::Estimate::of(&self.kernel)?.mean;
        (mean > 0.0).then(|| self.simulated / mean - 1.0)
    }
}

/// Simulates a transfer and runs it so often on the kernel.
/// [Privileges](flowstart_emulator::privilege) must be there, and the programs. A run in which the
/// emulator was less faithful than `limit` does not count. `done` hears of each run of the kernel.
/// `None` if it was cancelled.
///
/// # Errors
/// If the transfer cannot be run here.
pub fn compare(
    case: &Case,
    runs: u64,
    limit: &FidelityLimit,
    cancel: &Cancel,
    mut done: impl FnMut(&Fidelity),
) -> Result<Option<Row>, Error> {
    let mut row = Row::simulated(case)?;
    control(case.control.algorithm(), None)?;
    let scenario = case.scenario(Stack::Today)?;
    let wanted = Wanted { log: true, transport: Transport::Kernel, given: false, captures: None };
    for run in 0..runs {
        let compiled = scenario.simulation(run)?;
        let performed = perform(&scenario, &compiled, &wanted, cancel)?;
        if cancel.is_cancelled() {
            return Ok(None);
        }
        let mut watch = Watch { bins: Vec::new() };
        let outcome = play_back(&performed, &mut watch);
        let fidelity = &performed.outcome.fidelity;
        done(fidelity);
        match (limit.broken_by(fidelity), watch.seconds(case, &outcome)) {
            (Some(why), _) => row.left_out.push(why),
            (None, None) => row.left_out.push("the link was never full, or something never arrived".to_owned()),
            (None, Some(seconds)) => {
                row.late_p99_us = row.late_p99_us.max(fidelity.p99.as_nanos() as f64 / 1e3);
                row.kernel.push(seconds);
            }
        }
    }
    Ok(Some(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(bytes: u64, kernel: &[f64], left_out: usize) -> Row {
        let case =
            Case { part: Part::Times, control: Control::QuickStart, capacity_mbps: 10, rtt_ms: 25, bytes: Some(bytes) };
        let left_out = vec!["late".to_owned(); left_out];
        Row { case, paper: vec![1.0], simulated: 1.0, kernel: kernel.to_vec(), left_out, late_p99_us: 5.0 }
    }

    #[test]
    fn runs_are_added_to_those_of_the_same_transfer_and_not_to_what_was_simulated_otherwise() {
        let mut record = Record {
            flowstart_version: String::new(),
            kernel: String::new(),
            cores: 2,
            runs: 1,
            router: None,
            rows: Vec::new(),
        };
        record.add(row(800_000, &[1.0], 0)).unwrap();
        record.add(row(40_000, &[2.0], 1)).unwrap();
        record.add(Row { late_p99_us: 9.0, ..row(40_000, &[3.0], 0) }).unwrap();
        record.sort();
        assert_eq!(record.rows.iter().map(|row| row.case.bytes.unwrap()).collect::<Vec<_>>(), [40_000, 800_000]);
        assert_eq!((&record.rows[0].kernel, record.rows[0].late_p99_us), (&vec![2.0, 3.0], 9.0));
        assert_eq!((record.runs, record.runs_of(&record.rows[0].case)), (3, 3));
        let refused = record.add(Row { simulated: 1.1, ..row(40_000, &[3.0], 0) }).unwrap_err().to_string();
        assert!(refused.contains("10 Mbit/s, 25 ms, 40 kB"), "{refused}");
    }
}
