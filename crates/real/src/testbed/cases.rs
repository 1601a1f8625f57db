//! The transfers of Quick-Start's testbed, and of the comparison of completion times.

use serde::{Deserialize, Serialize};

use flowstart_scenario::Scenario;

use crate::Error;

/// What a transfer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Figures 9 and 10: how long until the link is full.
    Rate,
    /// Figure 11: how long a transfer takes.
    Gain,
    /// Simulated and real completion times of Quick-Start.
    Times,
}

/// How a sender begins, and what it goes on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Slow start, then Reno.
    Reno,
    /// Slow start, then CUBIC; the kernel's with HyStart.
    Cubic,
    /// Quick-Start, then CUBIC.
    QuickStart,
}

impl Control {
    /// What tables call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Reno => "slow start, Reno",
            Self::Cubic => "slow start, CUBIC",
            Self::QuickStart => "Quick-Start, CUBIC",
        }
    }

    /// START+AVOIDANCE, by which the kernel's congestion control is found.
    pub(super) fn algorithm(self) -> &'static str {
        match self {
            Self::Reno => "slow_start+reno",
            Self::Cubic => "hystart+cubic",
            Self::QuickStart => "quick_start+cubic",
        }
    }
}

/// Whose behaviour is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// The paper's, Linux 2.6.20, as `experiments/quick-start` has it; with Quick-Start it goes on
    /// with Reno or, if true, with CUBIC.
    Paper(bool),
    /// That of today's kernel and of the programs of `flowstart kernel load quick_start`.
    Today,
}

/// A transfer over a path that nothing else uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// What it is for.
    pub part: Part,
    /// How it begins.
    pub control: Control,
    /// Rate of the link in Mbit/s, all of which its router may grant.
    pub capacity_mbps: u64,
    /// Base round-trip time in ms.
    pub rtt_ms: u64,
    /// Its size in bytes; `None` for one without end.
    pub bytes: Option<u64>,
}

/// The testbed of Scharf and Strotbek, in Mbit/s.
const TESTBED_MBPS: u64 = 10;
/// Round-trip times of figures 9 and 10, in ms.
pub const RATE_RTTS_MS: [u64; 2] = [100, 200];
/// Round-trip times of figure 11, in ms.
pub const GAIN_RTTS_MS: [u64; 6] = [10, 20, 50, 100, 200, 500];
/// Sizes of figure 11, in bytes; the largest, which takes long, at one round-trip time only.
pub const GAIN_BYTES: [u64; 7] = [3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, LARGEST_BYTES];
/// The largest size of figure 11, and its round-trip time.
pub(super) const LARGEST_BYTES: u64 = 10_000_000;
pub(super) const LARGEST_RTT_MS: u64 = 100;
/// Paths of the completion times: Mbit/s and ms. In six of them more is granted than the receiver
/// allows a client in its first round trip, 45 packets.
const TIMES_PATHS: [(u64, u64); 10] =
    [(10, 25), (10, 60), (10, 120), (10, 210), (20, 25), (20, 60), (20, 120), (40, 25), (40, 60), (40, 120)];
/// Sizes of the completion times, in bytes.
const TIMES_BYTES: [u64; 3] = [40_000, 150_000, 800_000];

/// All transfers; those of figure 11 with `quick` only where the paper's claims are.
#[must_use]
pub fn cases(quick: bool) -> Vec<Case> {
    let all = [Control::Reno, Control::Cubic, Control::QuickStart];
    let mut list = Vec::new();
    let mut add = |part, control, capacity_mbps, rtt_ms, bytes| {
        list.push(Case { part, control, capacity_mbps, rtt_ms, bytes });
    };
    for rtt_ms in RATE_RTTS_MS {
        all.into_iter().for_each(|control| add(Part::Rate, control, TESTBED_MBPS, rtt_ms, None));
    }
    for rtt_ms in GAIN_RTTS_MS {
        for bytes in GAIN_BYTES {
            let is_claimed = rtt_ms >= 100 && (30_000..=300_000).contains(&bytes) || bytes == 3_000 && rtt_ms == 100;
            if bytes == LARGEST_BYTES && (quick || rtt_ms != LARGEST_RTT_MS) || quick && !is_claimed {
                continue;
            }
            all.into_iter().for_each(|control| add(Part::Gain, control, TESTBED_MBPS, rtt_ms, Some(bytes)));
        }
    }
    for (capacity_mbps, rtt_ms) in TIMES_PATHS {
        for bytes in TIMES_BYTES {
            add(Part::Times, Control::QuickStart, capacity_mbps, rtt_ms, Some(bytes));
        }
    }
    list
}

impl Case {
    /// The scenario: its one flow does what this stack does.
    ///
    /// # Errors
    /// If it is none.
    pub fn scenario(&self, stack: Stack) -> Result<Scenario, Error> {
        let end = match self.bytes {
            None => "duration = \"8 s\"\n".to_owned(),
            Some(_) => "duration = \"60 s\"\nstop_when_complete = true\n".to_owned(),
        };
        let size = self.bytes.map_or(String::new(), |bytes| format!("size = \"{bytes} B\"\n"));
        // The completion times are those of a kernel as it is.
        let window = if self.part == Part::Times { "" } else { "initial_window = 3\n" };
        let flow = match (self.control, stack) {
            (Control::QuickStart, Stack::Today) => {
                "flow_start = { name = \"quick_start\", as_needed = false, at_once = true, max_ssthresh = 0 }\n\
                 avoidance = \"cubic\"\n"
                    .to_owned()
            }
            (control, Stack::Today) => format!("algorithm = \"{}\"\n", control.algorithm()),
            (control, Stack::Paper(cubic)) => {
                let start = match control {
                    Control::QuickStart => {
                        "{ name = \"quick_start\", request = \"5.12 Mbit/s\", as_needed = false, timers = true, \
                         max_ssthresh = 0 }"
                    }
                    _ => "\"slow_start\"",
                };
                let cubic = control == Control::Cubic || control == Control::QuickStart && cubic;
                // CUBIC's threshold of the time, where the paper shows that it had one.
                let threshold = self.part == Part::Gain || self.rtt_ms > RATE_RTTS_MS[0];
                let avoidance = match (cubic, threshold) {
                    (false, _) => "avoidance = \"reno\"",
                    (true, false) => "avoidance = \"cubic\"",
                    (true, true) => "avoidance = \"cubic\"\ninitial_ssthresh = 100",
                };
                format!("flow_start = {start}\n{avoidance}\nsender.kernel = \"2.6.20\"\n")
            }
        };
        let habits = match stack {
            Stack::Paper(_) => "",
            Stack::Today => "receive_window = \"linux\"\noffload = \"linux\"\n",
        };
        let text = format!(
            "{end}[path]\ncapacity = \"{} Mbit/s\"\nrtt = \"{} ms\"\nbuffer = \"4 BDP\"\n\
             [output]\nsample = \"1 ms\"\n[[flow]]\n{size}{window}{flow}{habits}",
            self.capacity_mbps, self.rtt_ms
        );
        Ok(Scenario::parse("testbed", &text)?)
    }

    /// Its path and size in words: "10 Mbit/s, 100 ms, 30 kB".
    #[must_use]
    pub fn path(&self) -> String {
        let size = self.bytes.map_or(String::new(), |bytes| format!(", {}", size(bytes)));
        format!("{} Mbit/s, {} ms{size}", self.capacity_mbps, self.rtt_ms)
    }
}

/// A size in words: "30 kB".
#[must_use]
pub fn size(bytes: u64) -> String {
    if bytes >= 1_000_000 { format!("{} MB", bytes / 1_000_000) } else { format!("{} kB", bytes / 1000) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_transfer_is_a_scenario_of_both_stacks_and_there_are_30_completion_times() {
        let all = cases(false);
        for case in &all {
            for stack in [Stack::Paper(false), Stack::Paper(true), Stack::Today] {
                let scenario = case.scenario(stack).unwrap_or_else(|error| panic!("{case:?}: {error}"));
                scenario.simulation(0).unwrap();
            }
        }
        let of = |part, list: &[Case]| list.iter().filter(|case| case.part == part).count();
        assert_eq!([Part::Rate, Part::Gain, Part::Times].map(|part| of(part, &all)), [6, 3 * 37, 30]);
        assert_eq!(of(Part::Gain, &cases(true)), 3 * 10);
        assert_eq!(all[0].path(), "10 Mbit/s, 100 ms");
        assert_eq!(all[6].path(), "10 Mbit/s, 10 ms, 3 kB");
    }
}
