//! The measures of races. Each is one [`Item`] with its words and its function, in the file of its
//! subject, and one line of [`REGISTRY`], from which tables, files and documentation are made.

mod exit;
mod item;
mod losses;
mod nothing;
mod others;
mod queue;
mod run;
mod speed;
mod transfers;

use flowstart_units::Bytes;

pub use exit::*;
pub use item::{Better, Function, Item, Measure, Needs};
pub use losses::*;
pub use others::*;
pub use queue::*;
pub use run::{AddedWaits, Newcomer, Setting, Sharing, StartRun, TransferRun};
pub use speed::*;
pub use transfers::*;

/// All measures in the order of tables and files.
pub static REGISTRY: &[&Item] = &[
    &EXIT_MS,
    &EXIT_RTTS,
    &EXIT_WINDOW,
    &EXIT_QUALITY,
    &EXIT_IN_FLIGHT,
    &UNDERSHOOT,
    &TIME_TO,
    &DEFICIT,
    &DUPLICATES,
    &DELIVERED,
    &COMPLETION,
    &SLOWDOWN,
    &SLOWDOWN_MEAN,
    &TRANSFER_DELAY,
    &DELAY_MAX,
    &DELAY_P99,
    &DELAY_MEAN,
    &OVERSHOOT_PEAK,
    &OVERSHOOT_AREA,
    &START_OWN_DELAY,
    &LOST_BEFORE,
    &LOST_AFTER,
    &LOST_OTHERS,
    &START_LOST,
    &RETRANSMITTED,
    &TIMEOUTS,
    &MARKED,
    &OVERHEAD,
    &START_OTHERS_DELAY,
    &ADDED_DELAY,
    &BUSY_TIME,
    &HARM,
    &HARM_RATIO,
    &CONVERGENCE,
    &JAIN,
];

impl Measure {
    /// All measures of a race with transfers of `sizes`; those that need flows that were there
    /// before only if there are any. Measures of transfers that follow each other are told size by
    /// size.
    #[must_use]
    pub fn all(sizes: &[Bytes], background: bool) -> Vec<Self> {
        let wanted: Vec<&'static Item> =
            REGISTRY.iter().copied().filter(|item| background || item.needs != Needs::Others).collect();
        let together = |a: &&'static Item, b: &&'static Item| a.is_of_transfers() && b.is_of_transfers();
        let mut all = Vec::new();
        for items in wanted.chunk_by(together) {
            match items {
                [one] => all.extend(one.measures(sizes)),
                several => all.extend(sizes.iter().flat_map(|size| several.iter().map(|item| item.of(*size)))),
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_say_their_unit() {
        let all = Measure::all(&[Bytes::new(100_000), Bytes::new(1_500_000)], true);
        let mut names: Vec<String> = all.iter().map(Measure::name).collect();
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.contains(&"completion_100kb_ms".to_owned()) && names.contains(&"slowdown_1_5mb".to_owned()));
        for measure in all {
            let name = measure.name();
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'), "{name}");
            let unit = match measure.unit() {
                "%" => "percent".to_owned(),
                "RTT" => "rtts".to_owned(),
                unit => unit.to_lowercase().replace('^', ""),
            };
            assert!(name.ends_with(&unit) || name.contains(&unit), "{name} {unit}");
            assert!(!measure.help().is_empty() && !measure.help().contains("{}"), "{name}");
        }
    }

    #[test]
    fn every_registered_measure_is_one_of_a_race_with_transfers_and_others() {
        let all = Measure::all(&[Bytes::new(100_000)], true);
        for item in REGISTRY {
            assert!(all.iter().any(|measure| measure.is(item)), "{}", item.name);
        }
    }

    #[test]
    fn measures_of_harm_need_somebody_to_harm() {
        assert!(!Measure::all(&[], false).contains(&HARM.measure()));
        assert!(Measure::all(&[], true).contains(&HARM.measure()));
    }

    #[test]
    fn measures_of_transfers_are_told_size_by_size() {
        let names: Vec<String> =
            Measure::all(&[Bytes::new(1000), Bytes::new(2000)], false).iter().map(Measure::name).collect();
        let first = names.iter().position(|name| name == "completion_1kb_ms").unwrap();
        let expected = ["completion_1kb_ms", "slowdown_1kb", "completion_2kb_ms", "slowdown_2kb"];
        assert_eq!(names[first..first + 4], expected);
        assert_eq!(names[first + 4..first + 6], ["slowdown_geometric_mean", "queue_delay_p99_1kb_ms"]);
    }
}
