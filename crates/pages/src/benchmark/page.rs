//! The report of a benchmark as one page.

use flowstart_benchmark::Attained;
use flowstart_report::{Page, Section};
use flowstart_units::Span;

use super::{Shown, figures, seeds};

/// The page.
pub(super) fn page(shown: &Shown<'_>) -> Page {
    let result = shown.result;
    let benchmark = &result.benchmark;
    let pair = |key: &str, value: String| (key.to_owned(), value);
    let mut provenance = vec![
        pair("flowstart", env!("CARGO_PKG_VERSION").to_owned()),
        pair("seed", shown.seed().trim_start_matches(|c: char| !c.is_ascii_digit()).to_owned()),
        pair("benchmark", benchmark.hash()),
    ];
    if let Some(to) = &benchmark.to {
        provenance.extend([pair("path to", to.clone()), pair("capacity", benchmark.capacity().to_string())]);
    } else if shown.has_path() {
        provenance.extend([
            pair("capacity", benchmark.capacity().to_string()),
            pair("base RTT", benchmark.race.path.rtt.to_string()),
            pair("buffer", benchmark.race.buffer().to_string()),
            pair("simulated", format!("{:.0} s", result.simulated_seconds)),
        ]);
    }
    let (colors, command) = (&shown.colors, &shown.command);
    let lead = match shown.seeds {
        Some(results) => vec![seeds::attainable(results, colors, command), seeds::verdicts(results, colors, command)],
        None => vec![figures::attainable(result, colors, command)],
    };
    let mut pictures = vec![figures::video(result, colors, command)];
    if result.attained.iter().any(|one| one.startup.is_some()) {
        pictures.push(figures::startup(result, colors, command));
    }
    if result.attained.iter().any(|one| one.bursts.is_some()) {
        pictures.push(figures::bursts(result, colors, command));
    }
    pictures.extend(result.attained.iter().map(|one| figures::delays(one, command)));
    let section = |heading: &str| Section { heading: heading.to_owned(), ..Section::default() };
    Page {
        lead,
        warnings: Vec::new(),
        answer: String::new(),
        title: shown.title(),
        command: shown.command.clone(),
        provenance,
        summary: summary(shown),
        sections: vec![
            Section { tables: vec![shown.summary.clone()], ..section("Results") },
            Section { figures: pictures, ..section("Pictures") },
            Section { tables: shown.details().cloned().collect(), ..section("Probes") },
        ],
        footnotes: shown.notes(),
    }
}

/// What came out, in sentences that need no table.
fn summary(shown: &Shown<'_>) -> Vec<String> {
    let result = shown.result;
    let results = shown.seeds.unwrap_or(std::slice::from_ref(result));
    let sentence = |(number, one): (usize, &Attained)| {
        let rate = |seconds: u64| {
            let rate = |one: &Attained| one.estimate.curve.attainable_rate(Span::from_secs(seconds)) / 1e6;
            seeds::median(results, number, rate)
        };
        format!(
            "{}: {:.2} Mbit/s are sustained; at least {:.2} Mbit/s in a second, {:.2} Mbit/s in ten seconds.",
            one.label,
            seeds::median(results, number, |one| one.estimate.curve.long_term_rate().as_mbps_f64()),
            rate(1),
            rate(10)
        )
    };
    result.attained.iter().enumerate().map(sentence).collect()
}
