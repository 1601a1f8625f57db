//! Whether a record could have been measured.

use flowstart_race::MAX_PACKETS;

use super::tick::POSSIBLE;
use super::{Case, Disturbance, MOST_EXCESS_US, Record, Row, Values};
use crate::ImpossibleRecord;

/// Most runs of a case that a record holds, as of the command.
pub const MOST_RUNS: u64 = 1_000;
/// Bits of a full packet.
const PACKET_BITS: f64 = 12_000.0;

impl Record {
    /// Checks a record that somebody may have written by hand: that its cases could have been run,
    /// and that its rows hold what runs of them bring.
    ///
    /// # Errors
    /// One sentence about the first that could not.
    pub fn check(&self) -> Result<(), ImpossibleRecord> {
        if !(1..=MOST_RUNS).contains(&self.runs) {
            return Err(format!("runs: {} is not between 1 and {MOST_RUNS}", self.runs).into());
        }
        if !POSSIBLE.contains(&self.hz) {
            let (least, most) = POSSIBLE.into_inner();
            return Err(format!("hz: {} ticks per second are no kernel's, which has {least} to {most}", self.hz).into());
        }
        for (number, row) in self.rows.iter().enumerate() {
            let of_row = |error: String| format!("rows[{number}].{error}");
            row.case.check(self.hz).map_err(of_row)?;
            row.check(self.runs).map_err(of_row)?;
            if let Some(twin) = self.rows[..number].iter().position(|other| other.case == row.case) {
                return Err(format!("rows[{number}].case is that of rows[{twin}], too").into());
            }
        }
        Ok(())
    }
}

impl Case {
    fn check(&self, hz: u32) -> Result<(), String> {
        let numbers = [
            ("capacity_mbps", self.capacity_mbps > 0.0 && self.capacity_mbps.is_finite()),
            ("duration_s", (1.0..=600.0).contains(&self.duration_s)),
            ("rtt_ms", self.rtt_ms > 0.0 && self.rtt_ms < self.duration_s * 1e3),
            ("settle_s", (0.0..self.duration_s).contains(&self.settle_s)),
        ];
        if let Some((name, _)) = numbers.iter().find(|(_, right)| !right) {
            return Err(format!(
                "case.{name} is out of range: capacity and RTT are above 0, the duration is 1 s to 600 s and more than an RTT, and it settles before \
                 its end"
            ));
        }
        let packets = self.capacity_mbps * 1e6 * self.duration_s / PACKET_BITS;
        if packets > MAX_PACKETS {
            return Err(format!("case would carry {packets:.0} packets; at most {MAX_PACKETS:.0} can be simulated"));
        }
        self.scenario(hz).map(|_| ()).map_err(|error| format!("case: {error}"))
    }
}

impl Row {
    /// Of so many runs on the kernel.
    fn check(&self, runs: u64) -> Result<(), String> {
        let (kernel, simulated) = (self.kernel.len(), self.simulated.len());
        if (kernel + self.left_out.len()) as u64 > runs {
            return Err(format!("kernel has {kernel} runs and left_out {}, of {runs} in all", self.left_out.len()));
        }
        if self.skipped.is_some() && kernel > 0 {
            return Err("skipped says that the kernel cannot run it, but there are runs of it".to_owned());
        }
        if !self.disturbances.is_empty() && self.disturbances.len() != kernel {
            return Err(format!(
                "disturbances are of {} runs of the kernel, and there are {kernel}",
                self.disturbances.len()
            ));
        }
        // One stands for all where there is no chance.
        if kernel > 0 && simulated != 1 && (simulated < kernel || !self.disturbances.is_empty() && simulated > kernel) {
            return Err(format!("simulated has {simulated} runs for {kernel} of the kernel"));
        }
        let excess = |disturbance: &Disturbance| (0.0..=MOST_EXCESS_US).contains(&disturbance.excess_us);
        if let Some(run) = self.disturbances.iter().position(|disturbance| !excess(disturbance)) {
            return Err(format!("disturbances[{run}].excess_us is not between 0 and {MOST_EXCESS_US}"));
        }
        let right = |values: &Values| values.iter().flatten().all(|value| *value >= 0.0);
        for (name, list) in
            [("simulated", &self.simulated), ("kernel", &self.kernel), ("undisturbed", &self.undisturbed)]
        {
            if let Some(run) = list.iter().position(|values| !right(values)) {
                return Err(format!("{name}[{run}] has a value below 0"));
            }
        }
        if self.late_p99_us < 0.0 { Err("late_p99_us is below 0".to_owned()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fidelity::{QUANTITIES, cases};

    const ONE: Values = [Some(1.0); QUANTITIES.len()];

    fn record() -> Record {
        let row = |case: Case| Row {
            case,
            simulated: vec![ONE; 2],
            kernel: vec![ONE; 2],
            disturbances: vec![Disturbance::default(); 2],
            undisturbed: vec![ONE],
            left_out: vec!["late".to_owned()],
            late_p99_us: 1.0,
            skipped: None,
        };
        Record {
            flowstart_version: "0.1.0".to_owned(),
            kernel: "6.18".to_owned(),
            hz: 1000,
            cores: 2,
            runs: 3,
            missing: 0,
            rows: cases(&["reno"], true, Some(2.0)).into_iter().map(row).collect(),
        }
    }

    /// What is said of the record after this change of its second row.
    fn said(change: impl FnOnce(&mut Row)) -> Result<(), String> {
        let mut record = record();
        change(&mut record.rows[1]);
        record.check().map_err(|error| error.to_string())
    }

    #[test]
    fn what_runs_bring_is_taken() {
        assert_eq!(record().check(), Ok(()));
        let records: [fn(&mut Row); 6] = [
            |row| row.simulated.truncate(1),
            |row| row.disturbances.clear(),
            // Without disturbances there may be more simulated runs: those of runs that were late.
            |row| {
                row.disturbances.clear();
                row.simulated.push(ONE);
            },
            |row| row.kernel[0][5] = None,
            |row| {
                row.kernel.clear();
                row.disturbances.clear();
                row.simulated.clear();
            },
            |row| row.left_out.clear(),
        ];
        for (number, change) in records.into_iter().enumerate() {
            assert_eq!(said(change), Ok(()), "{number}");
        }
    }

    /// A change, and what is said of it.
    type Wrong = (fn(&mut Row), &'static str);

    #[test]
    fn what_no_runs_bring_is_refused_with_its_place() {
        let wrong: [Wrong; 15] = [
            (|row| row.kernel.push(ONE), "kernel has 3 runs and left_out 1, of 3 in all"),
            (
                |row| {
                    row.left_out.clear();
                    row.kernel.push(ONE);
                },
                "disturbances are of 2 runs of the kernel, and there are 3",
            ),
            (|row| row.disturbances.truncate(1), "disturbances are of 1 runs of the kernel, and there are 2"),
            (|row| row.disturbances.push(Disturbance::default()), "disturbances are of 3"),
            (|row| row.simulated.clear(), "simulated has 0 runs for 2"),
            (|row| row.simulated.push(ONE), "simulated has 3 runs for 2"),
            (
                |row| {
                    row.disturbances.clear();
                    row.left_out.clear();
                    row.kernel.push(ONE);
                },
                "simulated has 2 runs for 3",
            ),
            (|row| row.skipped = Some("no".to_owned()), "skipped says"),
            (|row| row.disturbances[1].excess_us = 1_001.0, "disturbances[1].excess_us"),
            (|row| row.kernel[1][0] = Some(-1.0), "kernel[1] has a value below 0"),
            (|row| row.late_p99_us = -1.0, "late_p99_us"),
            (|row| row.case.rtt_ms = 2_000.0, "case.rtt_ms"),
            (|row| row.case.settle_s = 2.0, "case.settle_s"),
            (|row| row.case.capacity_mbps = 2.5e6, "case would carry 416666667 packets"),
            (|row| row.case.buffer = "0 packets".to_owned(), "case: "),
        ];
        for (change, sentence) in wrong {
            let error = said(change).unwrap_err();
            assert!(error.starts_with(&format!("rows[1].{sentence}")), "{error}");
        }
        let mut twice = record();
        twice.rows[1] = twice.rows[0].clone();
        assert_eq!(twice.check().unwrap_err().to_string(), "rows[1].case is that of rows[0], too");
        for hz in [0, 99, 10_001] {
            assert!(Record { hz, ..record() }.check().unwrap_err().to_string().starts_with(&format!("hz: {hz} ticks")));
        }
        for runs in [0, 1_001] {
            assert!(Record { runs, ..record() }.check().unwrap_err().to_string().starts_with("runs: "));
        }
    }
}
