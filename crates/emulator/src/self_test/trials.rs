//! The trials that say whether this machine is good enough, and which rates it reaches.

use flowstart_units::{Bytes, Rate, Span};

use super::{Measured, Trial, try_out};
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
    /// Whether every trial of precision reached [`MEDIAN_BAR`] and [`P99_BAR`].
    pub precise: bool,
    /// Whether every trial at [`SUSTAINED`] kept the link full and its queue as configured.
    pub sustained: bool,
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
        precise: precision.iter().all(is_precise),
        sustained: full.iter().all(as_configured),
        deciding: precision.into_iter().chain(full).collect(),
        highest: highest.into_iter().collect::<Result<_, Error>>()?,
    })
}

fn trial(capacity: Rate, packet: u32, offered: Rate, lasting: Span) -> Trial {
    Trial { capacity, packet, offered, buffer: BUFFER, lasting }
}

fn is_precise(measured: &Measured) -> bool {
    measured.median <= MEDIAN_BAR && measured.p99 <= P99_BAR && measured.kept_up()
}

/// The link was full at its capacity, its queue was full and dropped the rest, and nothing else was
/// lost.
fn as_configured(measured: &Measured) -> bool {
    let trial = &measured.trial;
    let full = trial.capacity.transmission_time(Bytes::new(BUFFER * u64::from(trial.packet)));
    let rate = measured.rate.as_bps() as f64 / trial.capacity.as_bps() as f64;
    let wait = measured.longest_wait.ratio(full);
    measured.kept_up() && rate >= SUSTAINED_SHARE && measured.dropped > 0 && (0.98..=1.02).contains(&wait)
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
    fn each_bar_decides_by_itself() {
        let at = good(trial(SUSTAINED, 1500, SUSTAINED, Span::from_secs(2)), SUSTAINED);
        assert!(is_precise(&at) && as_configured(&at));
        let nano = Span::from_nanos(1);
        assert!(!is_precise(&Measured { median: MEDIAN_BAR + nano, ..at }));
        assert!(!is_precise(&Measured { p99: P99_BAR + nano, ..at }));
        assert!(!is_precise(&Measured { unseen: 1, ..at }));
        assert!(!as_configured(&Measured { rate: Rate::from_mbps(497), ..at }));
        assert!(!as_configured(&Measured { dropped: 0, ..at }));
        assert!(!as_configured(&Measured { longest_wait: at.longest_wait * 97 / 100, ..at }));
        assert!(!as_configured(&Measured { unseen: 1, ..at }));
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
