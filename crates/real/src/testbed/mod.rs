//! Quick-Start's testbed again (Scharf and Strotbek, figures 9 to 11): the same transfers in the
//! simulator with the paper's kernel, in the simulator with today's, and on this machine's kernel
//! over the emulator, whose link is a Quick-Start router.
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
use crate::{Error, Transport};

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

/// All that came out, as it is kept in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of flowstart.
    pub flowstart_version: String,
    /// Version of the kernel.
    pub kernel: String,
    /// Cores of the machine.
    pub cores: usize,
    /// Runs of each transfer.
    pub runs: u64,
    /// What came out.
    pub rows: Vec<Row>,
}

impl Record {
    /// Checks that it can have been measured.
    ///
    /// # Errors
    /// One sentence about the first number that no run gives.
    pub fn check(&self) -> Result<(), String> {
        for (number, row) in self.rows.iter().enumerate() {
            let case = &row.case;
            let path = case.capacity_mbps > 0 && case.rtt_ms > 0 && case.bytes != Some(0);
            if !path {
                return Err(format!("rows[{number}].case: capacity, RTT and size are above 0"));
            }
            let mut times = row.paper.iter().chain(&row.kernel).chain([&row.simulated]);
            if let Some(wrong) = times.find(|time| !(time.is_finite() && **time >= 0.0)) {
                return Err(format!("rows[{number}]: {wrong} is no time of a transfer"));
            }
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
    let wanted = Wanted { log: true, transport: Transport::Kernel, captures: None };
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
