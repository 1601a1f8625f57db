//! Rates that change over time.

use std::fmt;

use flowstart_units::{Bytes, Rate, Span, Time};

/// From this time on, this rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct RateStep {
    /// Since the start of the run (of the period, if the schedule repeats).
    pub at: Time,
    /// The rate from then on; zero is an outage.
    pub rate: Rate,
}

/// How fast a link sends over time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(untagged))]
pub enum RateSchedule {
    /// Always the same.
    Constant(Rate),
    /// Steps in order of time, the first at time 0; after `period` (if any) they start again.
    Steps {
        /// The steps.
        steps: Vec<RateStep>,
        /// Length of one repetition; `None` to keep the last rate for ever.
        period: Option<Span>,
    },
}

/// Why a schedule or a trace cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateError(String);

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RateError {}

fn wrong<T>(message: impl Into<String>) -> Result<T, RateError> {
    Err(RateError(message.into()))
}

impl RateSchedule {
    /// Checks that a packet always gets through sooner or later.
    ///
    /// # Errors
    /// A constant rate of zero, steps out of order or not starting at zero, a last or only rate of
    /// zero, a period that ends before the last step.
    pub fn validate(&self) -> Result<(), RateError> {
        match self {
            Self::Constant(rate) if rate.as_bps() == 0 => {
                wrong("a link of rate 0 lets nothing through; give it a capacity such as \"100 Mbit/s\"")
            }
            Self::Constant(_) => Ok(()),
            Self::Steps { steps, period } => {
                let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
                    return wrong("a rate schedule needs at least one step");
                };
                if first.at != Time::ZERO {
                    return wrong("the first step of a rate schedule must be at time 0");
                }
                if !steps.is_sorted_by(|a, b| a.at < b.at) {
                    return wrong("the steps of a rate schedule must be in order of time");
                }
                match period {
                    None if last.rate.as_bps() == 0 => {
                        wrong("the last step of a rate schedule is an outage that never ends; add a step after it")
                    }
                    Some(period) if last.at.as_nanos() >= period.as_nanos() => {
                        wrong("the period of a rate schedule must be longer than its last step")
                    }
                    Some(_) if steps.iter().all(|step| step.rate.as_bps() == 0) => {
                        wrong("all steps of the rate schedule are outages")
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    /// The largest rate of the schedule.
    #[must_use]
    pub fn peak(&self) -> Rate {
        match self {
            Self::Constant(rate) => *rate,
            Self::Steps { steps, .. } => steps.iter().map(|step| step.rate).max().unwrap_or(Rate::ZERO),
        }
    }

    /// True if there are times when nothing is sent.
    #[must_use]
    pub fn has_outages(&self) -> bool {
        match self {
            Self::Constant(_) => false,
            Self::Steps { steps, .. } => steps.iter().any(|step| step.rate.as_bps() == 0),
        }
    }

    /// The rate at the start.
    #[must_use]
    pub fn initial(&self) -> Rate {
        match self {
            Self::Constant(rate) => *rate,
            Self::Steps { steps, .. } => steps.first().map_or(Rate::ZERO, |step| step.rate),
        }
    }
}

/// Bytes that one line of a Mahimahi trace lets through.
const OPPORTUNITY: Bytes = Bytes::new(1500);

/// Characters of a wrong line that are shown.
const MOST_SHOWN: usize = 60;

/// Reads a Mahimahi trace: one integer per line, the millisecond at which 1500 bytes may pass;
/// stamps may repeat, and after the last one the trace starts again. The opportunities of one
/// millisecond become a constant rate over that millisecond, so unlike in Mahimahi an unused
/// opportunity does not let a later packet wait for the next one; the mean rate is the same.
///
/// # Errors
/// A line that is not a whole number, stamps that go back, an empty trace, or one that lasts no
/// time; the message names the line.
pub fn parse_mahimahi(text: &str) -> Result<RateSchedule, RateError> {
    let mut counts: Vec<(u64, u64)> = Vec::new();
    let mut lasts = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let Ok(stamp) = line.parse::<u64>() else {
            // Of another file a line may be long.
            let (begins, more) = match line.char_indices().nth(MOST_SHOWN) {
                Some((end, _)) => (&line[..end], "..."),
                None => (line, ""),
            };
            return wrong(format!("line {}: \"{begins}{more}\" is not a whole number of milliseconds", index + 1));
        };
        lasts |= stamp > 0;
        // Stamp n is the end of the millisecond n-1 .. n; a stamp of 0 counts to the first
        // millisecond.
        let stamp = stamp.max(1);
        match counts.last_mut() {
            Some((last, count)) if *last == stamp => *count += 1,
            Some((last, _)) if *last > stamp => {
                return wrong(format!("line {}: {stamp} ms comes after {last} ms; stamps must not go back", index + 1));
            }
            _ => counts.push((stamp, 1)),
        }
    }
    let Some((end, _)) = counts.last().copied() else {
        return wrong("the trace has no lines");
    };
    if !lasts {
        return wrong("the trace lasts no time; its last line is a time above 0 ms, after which it starts again");
    }
    let millisecond = Span::from_millis(1);
    let mut steps = Vec::new();
    let mut push = |millis: u64, rate: Rate| {
        let at = Time::ZERO + millisecond * millis;
        if steps.last().is_none_or(|last: &RateStep| last.rate != rate) {
            steps.push(RateStep { at, rate });
        }
    };
    let mut covered = 0;
    for (stamp, count) in counts {
        let begins = stamp - 1;
        if begins > covered {
            push(covered, Rate::ZERO);
        }
        push(begins, Rate::of(OPPORTUNITY * count, millisecond));
        covered = begins + 1;
    }
    let period = millisecond * end;
    Ok(RateSchedule::Steps { steps, period: Some(period) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_the_largest_rate_and_the_initial_one_the_first() {
        let step = |at, mbps| RateStep { at: Time::ZERO + Span::from_millis(at), rate: Rate::from_mbps(mbps) };
        let steps = vec![step(0, 5), step(10, 20), step(20, 1)];
        let schedule = RateSchedule::Steps { steps, period: None };
        assert_eq!((schedule.initial(), schedule.peak()), (Rate::from_mbps(5), Rate::from_mbps(20)));
        let constant = RateSchedule::Constant(Rate::from_mbps(7));
        assert_eq!((constant.initial(), constant.peak()), (Rate::from_mbps(7), Rate::from_mbps(7)));
    }

    #[test]
    fn a_mahimahi_trace_of_one_line_with_1_is_12_mbit_per_second() {
        let schedule = parse_mahimahi("1\n").unwrap();
        assert_eq!(schedule.validate(), Ok(()));
        assert_eq!(schedule.initial(), Rate::from_mbps(12));
        assert!(matches!(schedule, RateSchedule::Steps { period: Some(p), .. } if p == Span::from_millis(1)));
    }

    #[test]
    fn a_mahimahi_trace_keeps_gaps_and_repeated_stamps() {
        let RateSchedule::Steps { steps, period } = parse_mahimahi("1\n1\n5\n").unwrap() else { panic!() };
        assert_eq!(period, Some(Span::from_millis(5)));
        let rates: Vec<_> = steps.iter().map(|s| (s.at.as_nanos() / 1_000_000, s.rate.as_bps() / 1_000_000)).collect();
        assert_eq!(rates, [(0, 24), (1, 0), (4, 12)]);
    }

    #[test]
    fn bad_traces_and_schedules_are_refused_with_the_line() {
        assert!(parse_mahimahi("").is_err());
        for nothing in ["0", "0\n0\n\n"] {
            assert!(parse_mahimahi(nothing).unwrap_err().to_string().contains("lasts no time"));
        }
        assert_eq!(parse_mahimahi("0\n1\n").unwrap().initial(), Rate::from_mbps(24));
        assert!(parse_mahimahi("3\nx\n").unwrap_err().to_string().starts_with("line 2"));
        assert!(parse_mahimahi("3\n2\n").unwrap_err().to_string().contains("go back"));
        assert!(RateSchedule::Constant(Rate::ZERO).validate().is_err());
    }

    proptest::proptest! {
        #[test]
        fn reading_a_trace_never_panics_and_gives_a_valid_schedule(lines in proptest::collection::vec(0_u64..50, 1..40)) {
            let mut lines = lines;
            lines.sort_unstable();
            let text: String = lines.iter().map(|n| format!("{n}\n")).collect();
            let read = parse_mahimahi(&text);
            proptest::prop_assert_eq!(read.is_ok(), lines.iter().any(|stamp| *stamp > 0));
            proptest::prop_assert!(read.is_err() || read.unwrap().validate() == Ok(()));
        }
    }
}
