//! The report of a race as one page.

use flowstart_race::measures::{ADDED_DELAY, DEFICIT, DELAY_P99, LOST_AFTER, LOST_BEFORE, TIME_TO};
use flowstart_race::{ContestantResult, Measure};
use flowstart_report::{Page, Section};

use super::{Shown, figures};

/// The page.
pub(super) fn page(shown: &Shown<'_>) -> Page {
    let result = shown.result;
    let race = &result.race;
    let pair = |key: &str, value: String| (key.to_owned(), value);
    let mut provenance = vec![
        pair("flowstart", env!("CARGO_PKG_VERSION").to_owned()),
        pair("seed", race.seed.to_string()),
        pair(
            "runs",
            if race.is_random() { race.effective_runs().to_string() } else { "1 (nothing is random)".to_owned() },
        ),
        pair("race", race.hash()),
        pair("capacity", race.capacity().to_string()),
        pair("base RTT", format!("{} (with one packet's transmission {})", race.path.rtt, race.base_rtt())),
        pair("buffer", race.path.buffer.to_string()),
        pair("newcomers", race.flows.to_string()),
        pair("horizon", format!("{} ({:.0} RTT)", race.horizon(), race.reference().horizon_rtts())),
    ];
    if !result.complete {
        let (done, of) = result.simulations;
        provenance.push(pair("interrupted", format!("{done} of {of} simulations finished")));
    }
    let pictures = Section {
        heading: "Over time".to_owned(),
        paragraphs: vec![
            "The first newcomer of the first run. Time counts in base round trips from the moment its first data bit reaches the bottleneck's queue."
                .to_owned(),
        ],
        figures: figures::figures(result, &shown.colors, &shown.command),
        ..Section::default()
    };
    let numbers = Section { heading: "Results".to_owned(), tables: shown.tables.clone(), ..Section::default() };
    let all = Section { heading: "All measures".to_owned(), tables: vec![shown.full.clone()], ..Section::default() };
    let mut footnotes = shown.remarks();
    footnotes.extend(definitions(shown));
    Page {
        title: shown.title.clone(),
        command: shown.command.clone(),
        provenance,
        summary: summary(shown),
        sections: vec![numbers, pictures, all],
        footnotes,
    }
}

/// Most queueing delay (99th percentile) that the headline allows, in ms.
const HEADLINE_DELAY_MS: f64 = 5.0;

/// What came out, in sentences that need no table.
fn summary(shown: &Shown<'_>) -> Vec<String> {
    let result = shown.result;
    let mean = |c: &ContestantResult, measure: Measure| c.estimate(measure).map(|estimate| estimate.mean);
    let labels = |best: &[&ContestantResult]| best.iter().map(|c| c.label.as_str()).collect::<Vec<_>>().join(", ");
    let mut sentences = Vec::new();
    let horizon = result.race.reference().horizon_rtts();
    let (fastest, time) = lowest(&result.contestants.iter().collect::<Vec<_>>(), |c| mean(c, TIME_TO.at(90)));
    if let Some(time) = time.filter(|time| *time < horizon) {
        sentences.push(format!("First at 90 % of the share: {}, after {time:.1} RTT.", labels(&fastest)));
    }
    let (delay, whose) = if result.race.has_others() {
        (ADDED_DELAY.at(99), "add at most")
    } else {
        (DELAY_P99.measure(), "keep the 99th percentile of the queueing delay within")
    };
    let harmless: Vec<&ContestantResult> = result
        .contestants
        .iter()
        .filter(|c| mean(c, delay).is_some_and(|delay| delay <= HEADLINE_DELAY_MS))
        .filter(|c| [LOST_BEFORE.measure(), LOST_AFTER.measure()].iter().all(|lost| mean(c, *lost) == Some(0.0)))
        .collect();
    let unit = if result.race.has_others() { " to the 99th percentile of the others' delay" } else { "" };
    match lowest(&harmless, |c| mean(c, DEFICIT.measure())) {
        (best, Some(deficit)) => sentences.push(format!(
            "Of those that lose no packet and {whose} {HEADLINE_DELAY_MS:.0} ms{unit}, {} has the smallest start-up deficit: {deficit:.2} BDP.",
            labels(&best)
        )),
        (_, None) => sentences.push(format!("None loses no packet and would {whose} {HEADLINE_DELAY_MS:.0} ms{unit}.")),
    }
    sentences
}

/// Those with the smallest value, and the value.
fn lowest<'a>(
    contestants: &[&'a ContestantResult],
    value: impl Fn(&ContestantResult) -> Option<f64>,
) -> (Vec<&'a ContestantResult>, Option<f64>) {
    let least = contestants.iter().filter_map(|c| value(c)).min_by(f64::total_cmp);
    (contestants.iter().filter(|c| least.is_some() && value(c) == least).copied().collect(), least)
}

/// The measures' definitions.
fn definitions(shown: &Shown<'_>) -> Vec<String> {
    shown
        .result
        .race
        .measures()
        .into_iter()
        .map(|measure| {
            let unit = if measure.unit().is_empty() { String::new() } else { format!(" ({})", measure.unit()) };
            format!("{}, {}{unit}: {}", measure.name(), measure.heading(), measure.help())
        })
        .collect()
}
