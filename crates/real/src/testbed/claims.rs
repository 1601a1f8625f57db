//! What the paper says of its testbed, as far as a stock kernel can be asked, and whether it is so.

use flowstart_measure::Estimate;

use super::{Case, Control, Part, Record, RouterCost, Row};

/// A statement of the paper, in numbers. Readings are those of `experiments/quick-start`.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// The figure.
    pub figure: &'static str,
    /// What it says.
    pub says: &'static str,
    /// What is measured, in words.
    pub of: &'static str,
    /// What it is read as: at least and at most.
    pub within: (f64, f64),
    /// Seconds; otherwise it is a ratio.
    pub is_time: bool,
    measured: Measured,
}

/// What a statement is about.
#[derive(Clone, Copy, Debug)]
enum Measured {
    /// A transfer.
    Transfer(Subject),
    /// A transfer's time by that of another.
    Ratio(Subject, Subject),
    /// What a packet costs a router by what it costs without requests.
    Router(fn(&RouterCost) -> &[f64]),
}

type Subject = (Part, Control, u64, Option<u64>);

const fn time(
    figure: &'static str,
    says: &'static str,
    of: &'static str,
    within: (f64, f64),
    control: Control,
    rtt_ms: u64,
) -> Claim {
    Claim { figure, says, of, within, is_time: true, measured: Measured::Transfer((Part::Rate, control, rtt_ms, None)) }
}

const fn gain(says: &'static str, of: &'static str, within: (f64, f64), control: Control, at: (u64, u64)) -> Claim {
    let above = (Part::Gain, control, at.0, Some(at.1));
    let below = (Part::Gain, Control::QuickStart, at.0, Some(at.1));
    Claim { figure: "11", says, of, within, is_time: false, measured: Measured::Ratio(above, below) }
}

const fn router(says: &'static str, of: &'static str, within: (f64, f64), packets: fn(&RouterCost) -> &[f64]) -> Claim {
    Claim { figure: "6", says, of, within, is_time: false, measured: Measured::Router(packets) }
}

const FEW: &str = "One request in a hundred packets costs a router a few percent.";
const MANY: &str = "A high share of requests costs it considerably, for the nonces.";
const SECOND: &str = "Slow start needs about one second to fill the link.";
const AT_ONCE: &str = "With Quick-Start the link is full almost at once.";
const HUNDREDS: &str = "Above 50 ms several hundred percent, most between 10 kB and 1 MB.";
const NOTHING: &str = "For very short and very long transfers it makes little difference.";
/// Half of the time or less.
const TWICE: (f64, f64) = (2.0, f64::INFINITY);
const SAME: (f64, f64) = (0.9, 1.1);

/// The statements that a stock kernel can be asked about.
pub const CLAIMS: [Claim; 18] = [
    router(FEW, "a router's program: 1 % requests / none", (0.0, 1.05), |cost| &cost.one_percent),
    router(MANY, "a router's program: 100 % requests / none", TWICE, |cost| &cost.requests),
    time("9", SECOND, "s, Reno, 100 ms", (0.7, 1.3), Control::Reno, 100),
    time("9", SECOND, "s, CUBIC, 100 ms", (0.7, 1.3), Control::Cubic, 100),
    time("9", AT_ONCE, "s, 100 ms", (0.0, 0.4), Control::QuickStart, 100),
    Claim {
        figure: "10",
        says: "Quick-Start fills the link much earlier than slow start.",
        of: "slow start, Reno / Quick-Start, 200 ms",
        within: TWICE,
        is_time: false,
        measured: Measured::Ratio((Part::Rate, Control::Reno, 200, None), (Part::Rate, Control::QuickStart, 200, None)),
    },
    gain(HUNDREDS, "Reno, 30 kB, 100 ms", TWICE, Control::Reno, (100, 30_000)),
    gain(HUNDREDS, "Reno, 30 kB, 200 ms", TWICE, Control::Reno, (200, 30_000)),
    gain(HUNDREDS, "Reno, 30 kB, 500 ms", TWICE, Control::Reno, (500, 30_000)),
    gain(HUNDREDS, "Reno, 100 kB, 100 ms", TWICE, Control::Reno, (100, 100_000)),
    gain(HUNDREDS, "Reno, 100 kB, 200 ms", TWICE, Control::Reno, (200, 100_000)),
    gain(HUNDREDS, "Reno, 100 kB, 500 ms", TWICE, Control::Reno, (500, 100_000)),
    gain(HUNDREDS, "Reno, 300 kB, 100 ms", TWICE, Control::Reno, (100, 300_000)),
    gain(HUNDREDS, "Reno, 300 kB, 200 ms", TWICE, Control::Reno, (200, 300_000)),
    gain(HUNDREDS, "Reno, 300 kB, 500 ms", TWICE, Control::Reno, (500, 300_000)),
    gain(NOTHING, "Reno, 3 kB, 100 ms", SAME, Control::Reno, (100, 3_000)),
    gain(NOTHING, "Reno, 10 MB, 100 ms", SAME, Control::Reno, (100, 10_000_000)),
    gain(NOTHING, "CUBIC, 10 MB, 100 ms", SAME, Control::Cubic, (100, 10_000_000)),
];

/// A statement beside what came out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// Simulated as the paper's kernel; what a router's program costs is not simulated.
    pub paper: Option<f64>,
    /// Simulated as today's.
    pub simulated: Option<f64>,
    /// Measured.
    pub kernel: Estimate,
    /// Whether what was measured is as the paper says: all of its interval within, or all outside.
    pub agrees: Option<bool>,
}

impl Record {
    /// What came of a transfer.
    #[must_use]
    pub fn row(&self, part: Part, control: Control, rtt_ms: u64, bytes: Option<u64>) -> Option<&Row> {
        let is_it = |case: &Case| (case.part, case.control, case.rtt_ms, case.bytes) == (part, control, rtt_ms, bytes);
        self.rows.iter().find(|row| is_it(&row.case))
    }

    /// How many times longer the one takes than Quick-Start, in three columns: simulated as the
    /// paper's kernel (Quick-Start with the same avoidance), simulated as today's, measured.
    #[must_use]
    pub fn gain(above: &Row, quick_start: &Row) -> (f64, f64, Option<Estimate>) {
        let cubic = usize::from(above.case.control == Control::Cubic);
        let of = |row: &Row| row.paper.get(cubic).or(row.paper.first()).copied().unwrap_or(f64::NAN);
        let ratios: Vec<f64> = above.kernel.iter().zip(&quick_start.kernel).map(|(a, b)| a / b).collect();
        (of(above) / of(quick_start), above.simulated / quick_start.simulated, Estimate::of(&ratios))
    }
}

impl Claim {
    /// What came out; `None` where it was not run.
    #[must_use]
    pub fn judge(&self, record: &Record) -> Option<Judged> {
        let row = |(part, control, rtt_ms, bytes): Subject| record.row(part, control, rtt_ms, bytes);
        let (paper, simulated, kernel) = match self.measured {
            Measured::Transfer(transfer) => {
                let row = row(transfer)?;
                (row.paper.last().copied(), Some(row.simulated), Estimate::of(&row.kernel))
            }
            Measured::Ratio(above, below) => {
                let (paper, simulated, kernel) = Record::gain(row(above)?, row(below)?);
                (Some(paper), Some(simulated), kernel)
            }
            Measured::Router(packets) => (None, None, record.router.as_ref()?.by_metering(packets)),
        };
        let kernel = kernel?;
        let half = kernel.half_width?;
        let (least, most) = (kernel.mean - half, kernel.mean + half);
        let agrees = if least >= self.within.0 && most <= self.within.1 {
            Some(true)
        } else if most < self.within.0 || least > self.within.1 {
            Some(false)
        } else {
            None
        };
        Some(Judged { paper, simulated, kernel, agrees })
    }
}

#[cfg(test)]
mod tests {
    use super::super::cases;
    use super::*;

    fn record(kernel: impl Fn(&Case) -> Vec<f64>) -> Record {
        let row = |case: Case| Row {
            kernel: kernel(&case),
            paper: vec![1.0; 2],
            simulated: 1.0,
            left_out: Vec::new(),
            late_p99_us: 0.0,
            case,
        };
        let rows = cases(false).into_iter().map(row).collect();
        Record { flowstart_version: String::new(), kernel: String::new(), cores: 1, runs: 3, router: None, rows }
    }

    #[test]
    fn every_statement_has_its_transfers_and_is_judged_by_the_whole_interval() {
        let slow = |case: &Case| case.control != Control::QuickStart;
        let equal = record(|_| vec![1.0, 1.0, 1.0]);
        let claims = &CLAIMS[2..];
        let judged: Vec<Judged> = claims.iter().map(|claim| claim.judge(&equal).expect("it was run")).collect();
        let agreeing: Vec<usize> = (0..16).filter(|place| judged[*place].agrees == Some(true)).collect();
        // A second each: as the paper says of slow start and of what makes no difference.
        assert_eq!(agreeing, [0, 1, 13, 14, 15]);
        let thrice = record(|case| vec![if slow(case) { 3.0 } else { 1.0 }; 3]);
        assert!(claims[3..13].iter().all(|claim| claim.judge(&thrice).unwrap().agrees == Some(true)));
        let wide = record(|case| vec![if slow(case) { 3.0 } else { 1.0 }, 1.0, 1.0]);
        let is_ratio = |claim: &&Claim| matches!(claim.measured, Measured::Ratio(..));
        assert!(claims.iter().filter(is_ratio).all(|claim| claim.judge(&wide).unwrap().agrees.is_none()));
        let none = record(|_| Vec::new());
        assert!(CLAIMS.iter().all(|claim| claim.judge(&none).is_none()));
    }

    #[test]
    fn what_requests_cost_a_router_is_judged_run_by_run_beside_metering() {
        let mut record = record(|_| Vec::new());
        assert!(CLAIMS[..2].iter().all(|claim| claim.judge(&record).is_none()));
        // Slower and slower, as on a machine that gets busy: the ratio stays.
        let times = |factor: f64| [40.0, 60.0, 80.0].map(|time| time * factor).to_vec();
        let cost = |one: f64, all: f64| RouterCost {
            empty: times(0.5),
            metering: times(1.0),
            one_percent: times(one),
            requests: times(all),
        };
        let mut of = |cost| {
            record.router = Some(cost);
            [0, 1].map(|place: usize| CLAIMS[place].judge(&record).expect("it was measured").agrees)
        };
        assert_eq!(of(cost(1.03, 3.0)), [Some(true), Some(true)]);
        assert_eq!(of(cost(1.06, 1.9)), [Some(false), Some(false)]);
        let uneven = RouterCost { one_percent: vec![40.0, 66.0, 84.0], ..cost(1.0, 3.0) };
        assert_eq!(of(uneven), [None, Some(true)]);
    }
}
