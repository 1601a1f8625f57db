//! The report of a race as one page.

use flowstart_report::{Page, Section};

use super::{Shown, figures, tables, verdict};

/// The page.
pub(super) fn page(shown: &Shown<'_>) -> Page {
    let result = shown.result;
    let race = &result.race;
    let pair = |key: &str, value: String| (key.to_owned(), value);
    let mut provenance = vec![
        pair("seed", race.seed.to_string()),
        pair(
            "runs",
            if race.is_random() { race.effective_runs().to_string() } else { "1 (nothing is random)".to_owned() },
        ),
        pair("flowstart", env!("CARGO_PKG_VERSION").to_owned()),
        pair("race", race.hash()),
        pair("capacity", race.capacity().to_string()),
        pair("base RTT", format!("{} (with one packet's transmission {})", race.path.rtt, race.base_rtt())),
        pair("buffer", race.buffer().to_string()),
        pair("newcomers", race.flows.to_string()),
        pair("horizon", format!("{} ({:.0} RTT)", race.horizon(), race.reference().horizon_rtts())),
    ];
    if !result.complete {
        let (done, of) = result.simulations;
        provenance.push(pair("interrupted", format!("{done} of {of} simulations finished")));
    }
    let ranking = Section { tables: vec![tables::ranking(result, &shown.colors)], ..Section::default() };
    let pictures = Section {
        heading: "Rates and windows".to_owned(),
        paragraphs: vec![
            "Drag over a picture to zoom, all of them together; shift and drag to move; click a name to hide it."
                .to_owned(),
        ],
        figures: figures::others(result, &shown.colors),
        ..Section::default()
    };
    let numbers = Section { heading: "More numbers".to_owned(), tables: shown.tables.clone(), ..Section::default() };
    let all = Section {
        heading: "All measures".to_owned(),
        tables: vec![shown.full.clone()],
        folded: true,
        ..Section::default()
    };
    Page {
        title: shown.title.clone(),
        lead: figures::lead(result, &shown.colors),
        command: shown.command.clone(),
        provenance,
        warnings: shown.warnings.clone(),
        answer: verdict::answer(result),
        summary: verdict::verdict(result),
        sections: vec![ranking, pictures, numbers, all],
        footnotes: shown.remarks(),
    }
}
