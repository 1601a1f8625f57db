//! The trials that say whether this machine is good enough, and which rates it reaches.

use std::fmt;

use flowstart_units::{Bytes, Rate, Span};

use super::{KEPT_UP, Measured, Trial, try_out};
use crate::Error;

/// What an otherwise idle machine of two cores must reach at 100 Mbit/s: half of the packets this
/// precise.
pub const MEDIAN_BAR: Span = Span::from_micros(20);
/// And 99 % this precise.
pub const P99_BAR: Span = Span::from_micros(200);
/// It must sustain this rate with packets of 1500 bytes.
pub const SUSTAINED: Rate = Rate::from_mbps(500);
/// How often the trials that decide are repeated; the worst counts, since every run must be right.
pub const REPEATED: usize = 3;

/// To this share.
const SUSTAINED_SHARE: f64 = 0.995;
/// The longest wait in the queue is that of a full one up to this share.
const WAIT_SHARE: f64 = 0.02;
/// Buffer of the trials in packets.
const BUFFER: u64 = 100;
/// Rates in Mbit/s at which the search for the highest one begins, for large and small packets.
const SEARCH: [(u32, u64); 2] = [(1500, 250), (64, 10)];
/// Factor between the rates of the search, in hundredths.
const SEARCH_STEP: u64 = 125;
/// Where the search ends at the latest.
const SEARCH_END: u64 = 20_000;

/// What all trials gave.
#[derive(Clone, Debug)]
pub struct Trials {
    /// The trials that decide: first those of precision, then those of the sustained rate.
    pub deciding: Vec<Measured>,
    /// The highest rates that it kept up with, for packets of so many bytes; `None` if it fell
    /// behind at the lowest.
    pub highest: Vec<(u32, Option<Measured>)>,
    /// What kept trials of precision from [`MEDIAN_BAR`] and [`P99_BAR`], and by how much; empty if
    /// every one of them reached both.
    pub imprecise: Vec<Miss>,
    /// What kept trials at [`SUSTAINED`] from a full link and a queue as configured, and by how
    /// much; empty if every one of them had both.
    pub unsustained: Vec<Miss>,
}

/// Something that a trial missed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// Which of the trials of its kind, from 1.
    pub trial: usize,
    /// What it was, and by how much.
    pub what: String,
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "trial {}: {}", self.trial, self.what)
    }
}

/// Does all trials: some seconds for the deciding ones, and as many as the search takes.
///
/// # Errors
/// If no world can be made here.
pub fn trials() -> Result<Trials, Error> {
    let repeat = |trial: Trial| (0..REPEATED).map(|_| try_out(trial)).collect::<Result<Vec<_>, Error>>();
    let lasting = Span::from_secs(2);
    let precision = repeat(trial(Rate::from_mbps(100), 1500, Rate::from_mbps(90), lasting))?;
    let full = repeat(trial(SUSTAINED, 1500, SUSTAINED.mul_ratio(11, 10), lasting))?;
    let highest = SEARCH.map(|(packet, first)| Ok((packet, search(packet, first, try_out)?)));
    Ok(Trials {
        imprecise: all_missed(&precision, missed_precision),
        unsustained: all_missed(&full, missed_rate),
        deciding: precision.into_iter().chain(full).collect(),
        highest: highest.into_iter().collect::<Result<_, Error>>()?,
    })
}

fn trial(capacity: Rate, packet: u32, offered: Rate, lasting: Span) -> Trial {
    Trial { capacity, packet, offered, buffer: BUFFER, lasting }
}

/// What trials of one kind missed.
fn all_missed(trials: &[Measured], missed: fn(&Measured) -> Vec<String>) -> Vec<Miss> {
    let of_one = |(index, trial)| missed(trial).into_iter().map(move |what| Miss { trial: index + 1, what });
    trials.iter().enumerate().flat_map(of_one).collect()
}

/// A percentile that is later than its bar.
fn late(share: &str, reached: Span, bar: Span) -> Option<String> {
    let by = reached.checked_sub(bar).filter(|by| !by.is_zero())?;
    Some(format!("{share} within {reached}, {by} above the bar of {bar}"))
}

/// What kept the trial from being as precise as it must be.
fn missed_precision(measured: &Measured) -> Vec<String> {
    let mut missed: Vec<String> = late("median", measured.median, MEDIAN_BAR).into_iter().collect();
    missed.extend(late("99 %", measured.p99, P99_BAR));
    missed.extend(measured.lost());
    missed
}

/// What was not as configured: the link full at its capacity, its queue full and dropping the rest,
/// and nothing else lost or late.
fn missed_rate(measured: &Measured) -> Vec<String> {
    let trial = &measured.trial;
    let mut missed = Vec::new();
    let share = measured.rate.as_bps() as f64 / trial.capacity.as_bps() as f64;
    if share < SUSTAINED_SHARE {
        missed.push(format!(
            "rate {:.1} Mbit/s, {:.2} % below {}, at most {:.1} % allowed",
            measured.rate.as_mbps_f64(),
            (1.0 - share) * 100.0,
            trial.capacity,
            (1.0 - SUSTAINED_SHARE) * 100.0
        ));
    }
    missed.extend(late("99 %", measured.p99, KEPT_UP));
    missed.extend(measured.lost());
    if measured.dropped == 0 {
        missed.push("the queue dropped nothing of what was too much".to_owned());
    }
    let full = trial.capacity.transmission_time(Bytes::new(BUFFER * u64::from(trial.packet)));
    let wait = measured.longest_wait.ratio(full);
    if (wait - 1.0).abs() > WAIT_SHARE {
        missed.push(format!(
            "longest wait in the queue {}, {:.1} % {} the {full} of a full one, at most {:.0} % allowed",
            measured.longest_wait,
            (wait - 1.0).abs() * 100.0,
            if wait < 1.0 { "below" } else { "above" },
            WAIT_SHARE * 100.0
        ));
    }
    missed
}

/// Raises the rate until the emulator falls behind or the sender cannot offer more; the best that
/// was kept up with.
fn search(
    packet: u32,
    first: u64,
    try_out: impl Fn(Trial) -> Result<Measured, Error>,
) -> Result<Option<Measured>, Error> {
    let (mut best, mut rate) = (None::<Measured>, first);
    while rate <= SEARCH_END {
        let rate_now = Rate::from_mbps(rate);
        let measured = try_out(trial(rate_now.mul_ratio(11, 10), packet, rate_now, Span::from_secs(1)))?;
        let faster = best.as_ref().is_none_or(|best| measured.rate.as_bps() > best.rate.as_bps());
        if !measured.kept_up() || !faster {
            break;
        }
        // The sender did not reach what was asked for: more cannot be tried.
        let exhausted = measured.rate.as_bps() < rate_now.mul_ratio(9, 10).as_bps();
        best = Some(measured);
        if exhausted {
            break;
        }
        rate = rate * SEARCH_STEP / 100 + 1;
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fidelity;

    /// A trial that went as it should, at this rate.
    fn good(trial: Trial, rate: Rate) -> Measured {
        let full = trial.capacity.transmission_time(Bytes::new(BUFFER * u64::from(trial.packet)));
        Measured {
            trial,
            sent: 1100,
            received: 1000,
            unseen: 0,
            dropped: 100,
            rate,
            median: MEDIAN_BAR,
            p99: P99_BAR,
            worst: Span::from_millis(2),
            longest_wait: full,
            fidelity: Fidelity::default(),
        }
    }

    #[test]
    fn each_bar_decides_by_itself_and_says_by_how_much_it_was_missed() {
        let at = good(trial(SUSTAINED, 1500, SUSTAINED, Span::from_secs(2)), SUSTAINED);
        assert!(missed_precision(&at).is_empty() && missed_rate(&at).is_empty());
        let precision = |trial: Measured| missed_precision(&trial).join("; ");
        let by = Span::from_nanos(1500);
        let median = precision(Measured { median: MEDIAN_BAR + by, ..at });
        assert_eq!(median, "median within 21.5 us, 1.5 us above the bar of 20 us");
        let p99 = precision(Measured { p99: P99_BAR + by, ..at });
        assert_eq!(p99, "99 % within 201.5 us, 1.5 us above the bar of 200 us");
        assert_eq!(precision(Measured { unseen: 1, ..at }), "1 packet left the link and was not seen");
        let rate = |trial: Measured| missed_rate(&trial).join("; ");
        let slow = rate(Measured { rate: Rate::from_mbps(490), ..at });
        assert_eq!(slow, "rate 490.0 Mbit/s, 2.00 % below 500 Mbit/s, at most 0.5 % allowed");
        let late = rate(Measured { p99: KEPT_UP + by, ..at });
        assert_eq!(late, "99 % within 1.0015 ms, 1.5 us above the bar of 1 ms");
        assert_eq!(rate(Measured { dropped: 0, ..at }), "the queue dropped nothing of what was too much");
        let short = rate(Measured { longest_wait: at.longest_wait * 97 / 100, ..at });
        let wait = "longest wait in the queue 2.328 ms, 3.0 % below the 2.4 ms of a full one, at most 2 % allowed";
        assert_eq!(short, wait);
        assert!(rate(Measured { longest_wait: at.longest_wait * 103 / 100, ..at }).contains("3.0 % above"));
        let fidelity = Fidelity { unasked_drops: 2, faults: 1, ..Fidelity::default() };
        let lost = rate(Measured { fidelity, unseen: 3, ..at });
        let all = "2 packets were lost that the queue did not drop; 3 packets left the link and were not seen; a part \
                   of the emulator failed";
        assert_eq!(lost, all);
        assert_eq!(rate(Measured { received: 0, ..at }), "no packet arrived");
        let missed = all_missed(&[at, Measured { dropped: 0, unseen: 1, ..at }], missed_rate);
        let said: Vec<String> = missed.iter().map(Miss::to_string).collect();
        assert!(said.len() == 2 && said.iter().all(|line| line.starts_with("trial 2: ")), "{said:?}");
    }

    /// What is said to have been missed is what was missed: the words follow the verdict.
    #[test]
    fn who_kept_up_has_lost_nothing() {
        let at = good(trial(SUSTAINED, 1500, SUSTAINED, Span::from_secs(2)), SUSTAINED);
        assert!(at.kept_up() && at.lost().is_empty());
        for one in [Measured { unseen: 1, ..at }, Measured { received: 0, ..at }] {
            assert!(!one.kept_up() && one.lost().len() == 1, "{:?}", one.lost());
        }
    }

    #[test]
    fn the_search_ends_where_it_falls_behind_or_where_no_more_is_offered() {
        let up_to = |most: u64| {
            move |trial: Trial| {
                let behind = u64::from(trial.offered > Rate::from_mbps(most));
                Ok(Measured { unseen: behind, ..good(trial, trial.offered) })
            }
        };
        let best = search(1500, 250, up_to(400)).unwrap().map(|best| best.rate);
        assert_eq!(best, Some(Rate::from_mbps(392)), "250, 313, 392, 491");
        assert!(search(1500, 250, up_to(200)).unwrap().is_none());
        let slow = |trial: Trial| Ok(good(trial, Rate::from_mbps(300)));
        assert_eq!(search(1500, 250, slow).unwrap().map(|best| best.trial.offered), Some(Rate::from_mbps(250)));
    }
}
