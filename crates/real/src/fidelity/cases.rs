//! Which cases are compared. No rate, round-trip time or buffer of them was used when a constant
//! was chosen or a test written; only those of the references are older.

use serde::{Deserialize, Serialize};

use flowstart_congestion::AvoidanceConfig;
use flowstart_scenario::Scenario;

use super::Values;
use crate::Error;

/// Numbers of the links of a [simulated path](Case::longer).
pub(super) const FORWARD: usize = 0;
pub(super) const BACK: usize = 1;

/// A congestion control over a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// What it is called: cubic, reno, bbr, dctcp.
    pub control: String,
    /// START+AVOIDANCE of the simulator.
    pub algorithm: String,
    /// Rate of the bottleneck in Mbit/s.
    pub capacity_mbps: f64,
    /// Base round-trip time in ms.
    pub rtt_ms: f64,
    /// Its buffer, as scenario files have it; empty where that is the queue's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub buffer: String,
    /// Its queue, if it is not drop-tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Length of a run in s.
    pub duration_s: f64,
    /// From when on rates and waits count, in s: after the start.
    pub settle_s: f64,
    /// The row of docs/validation.md that has this path measured with other tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

/// The controls, with the simulator's names for how they begin.
pub const CONTROLS: [(&str, &str); 4] =
    [("cubic", "hystart+cubic"), ("reno", "slow_start+reno"), ("bbr", "bbr"), ("dctcp", "slow_start+dctcp")];

/// Mbit/s, round-trip time in ms, buffer. The quick form has the first two.
const PATHS: [(f64, f64, &str); 3] = [(35.0, 30.0, "1 BDP"), (140.0, 12.0, "1.5 BDP"), (70.0, 50.0, "0.7 BDP")];
const QUICK_PATHS: usize = 2;
/// The step of DCTCP's queue: above any burst, below the base round-trip times.
const STEP: &str = "step_mark 2 ms";
/// What every control meets besides: queues that do not wait until they are full.
pub const QUEUES: [&str; 4] = ["codel", "fq_codel", "pie", "dual_pi2"];
/// Mbit/s and round-trip time in ms of the path to them; how much they hold is theirs to say.
const TO_QUEUES: (f64, f64) = (55.0, 25.0);
/// Length of runs in s.
const LONG: f64 = 20.0;
const QUICK: f64 = 8.0;
/// Share of a run that is left out of rates and waits, for the start.
const SETTLE: f64 = 0.25;

/// A path that was measured with other tools on Linux 6.1 (docs/validation.md).
struct Reference {
    /// The file of `scenarios`.
    name: &'static str,
    control: &'static str,
    path: (f64, f64, &'static str),
    queue: Option<&'static str>,
    duration_s: f64,
    /// In the order of [`QUANTITIES`](super::QUANTITIES); waits end with the transmission.
    values: Values,
}

const REFERENCES: [Reference; 3] = [
    Reference {
        name: "linux-cubic-100m",
        control: "cubic",
        path: (100.0, 20.0, "248500 B"),
        queue: None,
        duration_s: 30.0,
        values: [Some(96.27), Some(16.045), Some(16.958), Some(19.718), Some(23.0), None, None],
    },
    Reference {
        name: "linux-cubic-10m",
        control: "cubic",
        path: (10.0, 20.0, "99 packets"),
        queue: None,
        duration_s: 60.0,
        values: [Some(9.65), Some(100.4), Some(98.8), Some(118.0), Some(27.0), None, None],
    },
    Reference {
        name: "linux-dctcp-100m",
        control: "dctcp",
        path: (100.0, 15.0, "1000 packets"),
        queue: Some("step_mark 1 ms"),
        duration_s: 30.0,
        // Its goodput was taken with the start.
        values: [None, Some(0.68), Some(0.72), Some(1.20), Some(0.0), None, None],
    },
];
/// What was left out of them, in s.
const REFERENCE_SETTLE: f64 = 5.0;

/// What was measured with other tools, in the order of [`QUANTITIES`](super::QUANTITIES); waits end
/// with the transmission.
#[must_use]
pub fn reference(name: &str) -> Option<Values> {
    REFERENCES.iter().find(|reference| reference.name == name).map(|reference| reference.values)
}

/// The cases of these controls; `quick`: fewer and shorter ones, no references. `duration_s` for
/// runs of another length.
#[must_use]
pub fn cases(controls: &[&str], quick: bool, duration_s: Option<f64>) -> Vec<Case> {
    let paths = &PATHS[..if quick { QUICK_PATHS } else { PATHS.len() }];
    let mut list = Vec::new();
    let duration = duration_s.unwrap_or(if quick { QUICK } else { LONG });
    for (control, algorithm) in CONTROLS.iter().filter(|(name, _)| controls.contains(name)) {
        for (capacity_mbps, rtt_ms, buffer) in paths {
            list.push(Case {
                control: (*control).to_owned(),
                algorithm: (*algorithm).to_owned(),
                capacity_mbps: *capacity_mbps,
                rtt_ms: *rtt_ms,
                buffer: (*buffer).to_owned(),
                queue: (*control == "dctcp").then(|| STEP.to_owned()),
                duration_s: duration,
                settle_s: duration * SETTLE,
                reference: None,
            });
        }
    }
    for known in REFERENCES.iter().filter(|known| !quick && controls.contains(&known.control)) {
        let algorithm = CONTROLS.iter().find(|(name, _)| *name == known.control).map_or("", |(_, algorithm)| algorithm);
        let (capacity_mbps, rtt_ms, buffer) = known.path;
        list.push(Case {
            control: known.control.to_owned(),
            algorithm: algorithm.to_owned(),
            capacity_mbps,
            rtt_ms,
            buffer: buffer.to_owned(),
            queue: known.queue.map(str::to_owned),
            duration_s: duration_s.unwrap_or(known.duration_s),
            settle_s: duration_s.map_or(REFERENCE_SETTLE, |duration| duration * SETTLE),
            reference: Some(known.name.to_owned()),
        });
    }
    list
}

/// The cases of these controls over one path with each of these queues, in the words of scenario
/// files; `quick`: shorter ones. `duration_s` for runs of another length.
#[must_use]
pub fn queue_cases(controls: &[&str], queues: &[&str], quick: bool, duration_s: Option<f64>) -> Vec<Case> {
    let (capacity_mbps, rtt_ms) = TO_QUEUES;
    let duration_s = duration_s.unwrap_or(if quick { QUICK } else { LONG });
    let of = |(control, algorithm): &(&str, &str)| {
        let case = |queue: &str| Case {
            control: (*control).to_owned(),
            algorithm: (*algorithm).to_owned(),
            capacity_mbps,
            rtt_ms,
            buffer: String::new(),
            queue: Some(queue.to_owned()),
            duration_s,
            settle_s: duration_s * SETTLE,
            reference: None,
        };
        queues.iter().copied().map(case).collect::<Vec<_>>()
    };
    CONTROLS.iter().filter(|(name, _)| controls.contains(name)).flat_map(of).collect()
}

impl Case {
    /// The scenario: one flow that does as Linux does, bursts and receive window included, on a
    /// kernel with `hz` ticks per second, sampled as often as the kernel can be asked.
    ///
    /// # Errors
    /// If it is none.
    pub fn scenario(&self, hz: u32) -> Result<Scenario, Error> {
        self.written(hz, 0.0, "")
    }

    /// The scenario with a round-trip time that is longer by this much, the buffer as it is, and a
    /// [link](BACK) for the way back, on which an ACK takes less than a nanosecond.
    pub(super) fn longer(&self, hz: u32, excess_us: f64) -> Result<Scenario, Error> {
        self.written(hz, excess_us, "reverse_capacity = \"1 Tbit/s\"\n")
    }

    /// True if its packets leave by a timer: without the queue `fq` at the host Linux paces BBR
    /// only.
    pub(super) fn is_paced(&self) -> bool {
        self.control == "bbr"
    }

    fn written(&self, hz: u32, excess_us: f64, way_back: &str) -> Result<Scenario, Error> {
        let rtt = if excess_us > 0.0 {
            format!("rtt = \"{:.3} us\"\n", self.rtt_ms * 1e3 + excess_us)
        } else {
            String::new()
        };
        let line = |key: &str, value: &str| match value {
            "" => String::new(),
            value => format!("{key} = \"{value}\"\n"),
        };
        let buffer = line("buffer", &self.buffer);
        let queue = line("queue", self.queue.as_deref().unwrap_or_default());
        let text = format!(
            "duration = \"{} s\"\ndialect = \"linux\"\n[path]\ncapacity = \"{} Mbit/s\"\nrtt = \"{} ms\"\n{buffer}{queue}\
             {way_back}[output]\nsample = \"1 ms\"\n\
             [[flow]]\nalgorithm = \"{}\"\n{rtt}",
            self.duration_s, self.capacity_mbps, self.rtt_ms, self.algorithm
        );
        let mut scenario = Scenario::parse("fidelity", &text)?;
        for flow in &mut scenario.flow {
            // The dialect's ticks are those of many kernels, not of all.
            if let Some(AvoidanceConfig::Cubic(config)) = &mut flow.avoidance {
                config.hz = Some(hz);
            }
        }
        Ok(scenario)
    }

    /// The path in words: "35 Mbit/s, 30 ms, 1 BDP".
    #[must_use]
    pub fn path(&self) -> String {
        let more = |what: &str| if what.is_empty() { String::new() } else { format!(", {what}") };
        let (buffer, queue) = (more(&self.buffer), more(self.queue.as_deref().unwrap_or_default()));
        format!("{} Mbit/s, {} ms{buffer}{queue}", self.capacity_mbps, self.rtt_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fidelity::tick::USUAL;

    #[test]
    fn every_case_is_a_scenario_and_the_references_are_those_of_the_files() {
        let names = CONTROLS.map(|(name, _)| name);
        let all = cases(&names, false, None);
        assert_eq!(all.len(), 15);
        for case in &all {
            let scenario = case.scenario(USUAL).unwrap_or_else(|error| panic!("{}: {error}", case.path()));
            scenario.simulation(0).unwrap();
            let effective = scenario.effective();
            let habits = ["receive_window = \"linux\"", "offload = \"linux\""];
            assert!(habits.iter().all(|key| effective.contains(key)), "{effective}");
            assert_eq!(effective.contains("hz = 250"), case.control == "cubic", "{effective}");
            if let Some(name) = &case.reference {
                let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
                let file = Scenario::load(&folder.join(format!("{name}.toml"))).unwrap();
                assert_eq!(scenario.path, file.path, "{name}");
                assert_eq!(scenario.flow[0].algorithm, file.flow[0].algorithm, "{name}");
                assert!(reference(name).is_some(), "{name}");
                assert_eq!(scenario.duration, file.duration, "{name}");
            }
        }
        let quick = cases(&names, true, None);
        assert_eq!(quick.len(), 8);
        assert!(quick.iter().all(|case| case.reference.is_none() && case.duration_s == QUICK));
        assert_eq!(cases(&["reno"], true, Some(2.0)).iter().map(|case| case.duration_s).collect::<Vec<_>>(), [2.0; 2]);
    }

    #[test]
    fn cubic_goes_by_as_many_ticks_as_are_said_and_nobody_else_by_any() {
        for case in cases(&CONTROLS.map(|(name, _)| name), true, None) {
            for hz in [100, 250, 300, 1000] {
                for scenario in [case.scenario(hz).unwrap(), case.longer(hz, 10.0).unwrap()] {
                    let effective = scenario.effective();
                    assert_eq!(effective.contains(&format!("hz = {hz}\n")), case.control == "cubic", "{effective}");
                    assert_eq!(effective.matches("hz = ").count(), usize::from(case.control == "cubic"));
                }
            }
        }
    }

    #[test]
    fn every_control_meets_every_queue() {
        let names = CONTROLS.map(|(name, _)| name);
        let all = queue_cases(&names, &QUEUES, false, None);
        assert_eq!(all.len(), names.len() * QUEUES.len());
        for (number, case) in all.iter().enumerate() {
            let scenario = case.scenario(USUAL).unwrap_or_else(|error| panic!("{}: {error}", case.path()));
            scenario.simulation(0).unwrap();
            let queue = QUEUES[number % QUEUES.len()];
            assert!(scenario.effective().contains(&format!("\"{queue}\"")), "{}", scenario.effective());
            assert_eq!(case.control, names[number / QUEUES.len()]);
        }
        assert_eq!(queue_cases(&["bbr"], &["red"], true, None)[0].settle_s, 2.0);
    }

    #[test]
    fn a_longer_round_trip_is_the_flows_and_leaves_the_buffer_as_it_is() {
        let case = &cases(&["bbr"], true, None)[1];
        let (plain, longer) = (case.longer(USUAL, 0.0).unwrap(), case.longer(USUAL, 45.5).unwrap());
        assert_eq!(plain.path, longer.path);
        assert_eq!(plain.flow[0].rtt, None);
        assert_eq!(longer.flow[0].rtt, Some(flowstart_units::Span::from_nanos(12_045_500)));
    }
}
