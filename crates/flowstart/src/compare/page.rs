//! The report of a race as one page.

use flowstart_report::{Page, Section};

use super::{Shown, figures, tables};

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

/// What came out, in sentences that need no table.
fn summary(shown: &Shown<'_>) -> Vec<String> {
    use flowstart_experiment::race::Measure;
    let sentence = |contestant: &flowstart_experiment::race::ContestantResult| {
        let get = |measure: Measure| contestant.estimate(measure).map(|estimate| estimate.mean);
        let (Some(time), Some(delay)) = (get(Measure::TimeTo(90)), get(Measure::DelayP99)) else {
            return format!("{}: nothing was measured.", contestant.label);
        };
        let lost = get(Measure::LostBefore).unwrap_or(0.0) + get(Measure::LostAfter).unwrap_or(0.0);
        let horizon = shown.result.race.reference().horizon_rtts();
        let speed = if time >= horizon {
            format!("is not at 90 % of its share within {horizon:.0} RTT")
        } else {
            format!("is at 90 % of its share after {time:.1} RTT")
        };
        format!(
            "{} ends its start by {}, {speed}; 99 % of packets wait at most {delay:.2} ms; {lost:.0} packets lost.",
            contestant.label,
            tables::exits(contestant)
        )
    };
    shown.result.contestants.iter().map(sentence).collect()
}

/// The measures' definitions.
fn definitions(shown: &Shown<'_>) -> Vec<String> {
    shown
        .result
        .race
        .measures()
        .into_iter()
        .map(|measure| {
            let info = measure.info();
            let unit = if info.unit.is_empty() { String::new() } else { format!(" ({})", info.unit) };
            format!("{}, {}{unit}: {}", info.name, info.heading, info.help)
        })
        .collect()
}
