//! Tables and sentences of a scenario's runs, from its result tables.

use flowstart_measure::Estimate;
use flowstart_report::{Cell, Column, Table, Terminal, one_line};
use flowstart_results::{Provenance, Results, Table as Rows, Value};
use flowstart_scenario::Scenario;

use super::{About, number};

/// Words and tables of the report of a scenario, which has this name if it has no title.
#[must_use]
pub fn about(
    (scenario, name): (&Scenario, &str),
    command: String,
    results: &Results,
    provenance: &Provenance,
    remarks: Vec<String>,
) -> About {
    let pair = |key: &str, value: String| (key.to_owned(), value);
    let mut tables = Vec::new();
    let mut summary = Vec::new();
    if let Some(flows) = results.table("flows") {
        summary.extend(flow_sentences(flows));
        tables.push(flow_table(flows));
    }
    if let Some(pages) = results.table("pages").filter(|pages| pages.rows() > 0) {
        tables.push(page_table(pages));
    }
    if let Some(links) = results.table("links") {
        summary.extend(link_sentences(links));
        tables.push(link_table(links));
    }
    About {
        title: if scenario.title.is_empty() { name.to_owned() } else { scenario.title.clone() },
        command,
        provenance: vec![
            pair("seed", provenance.seed.to_string()),
            pair("runs", results.finished.to_string()),
            pair("flowstart", provenance.version.clone()),
            pair("scenario", provenance.scenario_hash.clone()),
            pair("results", provenance.results_hash.clone()),
        ],
        warnings: interrupted(results).into_iter().collect(),
        summary,
        tables,
        remarks,
        runs: results.finished,
    }
}

/// How many runs there are, if there are not all.
#[must_use]
pub fn interrupted(results: &Results) -> Option<String> {
    let Results { finished, asked, .. } = results;
    (finished < asked).then(|| format!("Interrupted: {finished} of {asked} runs were finished."))
}

/// Flows and links that are named in sentences; more are in the tables.
const NAMED: usize = 5;

/// What became of the flows.
fn flow_sentences(flows: &Rows) -> Vec<String> {
    let groups = groups(flows, "name");
    let sentence = |(name, members): &(String, Vec<usize>)| {
        let average = |column: &str, scale: f64, digits: u8| mean(flows, members, column, scale, digits).main();
        let rate = average("goodput_bps", 1e-6, 2)?;
        let lost = average("dropped", 1.0, 0).filter(|lost| lost != "0");
        let lost = lost.map_or(String::new(), |lost| format!(", {lost} of its packets dropped"));
        let exit = average("exit_s", 1e3, 0);
        let exit =
            exit.map_or(String::new(), |ms| format!("; its start ended after {ms} ms ({})", reasons(flows, members)));
        Some(format!("{name}: {rate} Mbit/s of goodput{lost}{exit}."))
    };
    groups.iter().take(NAMED).filter_map(sentence).collect()
}

/// What became of the links.
fn link_sentences(links: &Rows) -> Vec<String> {
    let sentence = |(name, members): &(String, Vec<usize>)| {
        let average = |column: &str, scale: f64, digits: u8| mean(links, members, column, scale, digits).main();
        Some(format!(
            "Link {name}: used to {} %, at most {} ms of waiting, {} packets dropped.",
            average("utilisation", 100.0, 1)?,
            average("sojourn_max_us", 1e-3, 2)?,
            average("dropped", 1.0, 0)?
        ))
    };
    groups(links, "link").iter().take(NAMED).filter_map(sentence).collect()
}

/// Whether chance plays a part.
#[must_use]
pub fn chance(provenance: &Provenance) -> &'static str {
    if provenance.random {
        "Means over flows and runs, ± 95 % interval over runs where there are several."
    } else {
        "No randomness in this scenario: one run is enough."
    }
}

/// Flows by name and links, for the terminal; it took so many seconds.
#[must_use]
pub fn summary(
    (scenario, name): (&Scenario, &str),
    results: &Results,
    provenance: &Provenance,
    took: f64,
    terminal: Terminal,
) -> String {
    let title = if scenario.title.is_empty() { name } else { &scenario.title };
    let mut text = format!("{}\n\n", one_line(title));
    if let Some(flows) = results.table("flows") {
        text.push_str(&flow_table(flows).to_terminal(terminal));
        text.push('\n');
    }
    if let Some(pages) = results.table("pages").filter(|pages| pages.rows() > 0) {
        text.push_str(&page_table(pages).to_terminal(terminal));
        text.push('\n');
    }
    if let Some(links) = results.table("links") {
        text.push_str(&link_table(links).to_terminal(terminal));
        text.push('\n');
    }
    if let Some(sentence) = interrupted(results) {
        text.push_str(&format!("{sentence}\n"));
    }
    text.push_str(&format!("{}\n", chance(provenance)));
    let packets = results.data_packets as f64;
    text.push_str(&format!(
        "{packets:.0} data packets in {took:.2} s ({:.1} million packets/s)\nseed {}, scenario {}, results {}\n",
        packets / took.max(1e-9) / 1e6,
        provenance.seed,
        provenance.scenario_hash,
        provenance.results_hash
    ));
    text
}

fn text(rows: &Rows, row: usize, column: &str) -> String {
    match rows.get(row, column) {
        Value::Text(text) => text.into_owned(),
        _ => String::new(),
    }
}

/// Rows of the same name together, in order of appearance.
fn groups(rows: &Rows, column: &str) -> Vec<(String, Vec<usize>)> {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for row in 0..rows.rows() {
        let name = text(rows, row, column);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, members)) => members.push(row),
            None => groups.push((name, vec![row])),
        }
    }
    groups
}

/// The mean of a column over the rows of each run, then over runs with an interval.
fn mean(rows: &Rows, members: &[usize], column: &str, scale: f64, digits: u8) -> Cell {
    let mut runs: Vec<(f64, f64, f64)> = Vec::new();
    for row in members {
        let Some(value) = number(rows, *row, column).filter(|value| value.is_finite()) else { continue };
        let run = number(rows, *row, "run").unwrap_or(0.0);
        match runs.last_mut().filter(|(known, ..)| *known == run) {
            Some((_, sum, count)) => {
                *sum += value * scale;
                *count += 1.0;
            }
            None => runs.push((run, value * scale, 1.0)),
        }
    }
    let means: Vec<f64> = runs.iter().map(|(_, sum, count)| sum / count).collect();
    match Estimate::of(&means) {
        None => Cell::Missing,
        Some(Estimate { mean, half_width: Some(half), .. }) => Cell::quantity(mean, mean - half, mean + half, digits),
        Some(Estimate { mean, .. }) => Cell::number(mean, digits),
    }
}

/// A column of a summary: heading, unit, column of the rows, factor to the unit, digits.
type Summed = (&'static str, &'static str, &'static str, f64, u8);

const FLOW_COLUMNS: &[Summed] = &[
    ("goodput", "Mbit/s", "goodput_bps", 1e-6, 2),
    ("completion", "ms", "completion_time_s", 1e3, 1),
    ("with handshake", "ms", "completion_with_handshake_s", 1e3, 1),
    ("exit", "ms", "exit_s", 1e3, 1),
    ("window at exit", "packets", "exit_cwnd_pkts", 1.0, 0),
    ("sent", "packets", "data_segs_out", 1.0, 0),
    ("retransmitted", "packets", "total_retrans", 1.0, 0),
    ("dropped", "packets", "dropped", 1.0, 0),
    ("marked", "packets", "delivered_ce", 1.0, 0),
    ("srtt", "ms", "srtt_us", 1e-3, 2),
];

const LINK_COLUMNS: &[Summed] = &[
    ("utilisation", "%", "utilisation", 100.0, 2),
    ("mean wait", "ms", "sojourn_mean_us", 1e-3, 3),
    ("longest wait", "ms", "sojourn_max_us", 1e-3, 3),
    ("dropped", "packets", "dropped", 1.0, 0),
    ("lost", "packets", "lost", 1.0, 0),
    ("marked", "packets", "marked", 1.0, 0),
];

const PAGE_COLUMNS: &[Summed] =
    &[("page time", "ms", "page_time_s", 1e3, 1), ("files", "", "files", 1.0, 2), ("size", "kB", "bytes", 1e-3, 1)];

/// Pages by the name of their users' flows.
fn page_table(pages: &Rows) -> Table {
    let mut columns = vec![Column::key("pages of"), Column::number("count", "")];
    columns.extend(PAGE_COLUMNS.iter().map(|(heading, unit, ..)| Column::number(*heading, *unit)));
    let mut table = Table::new("Pages", columns);
    for (name, members) in groups(pages, "name") {
        let mut cells = vec![Cell::text(name), Cell::count(members.len() as u64)];
        cells.extend(
            PAGE_COLUMNS.iter().map(|(_, _, column, scale, digits)| mean(pages, &members, column, *scale, *digits)),
        );
        table.push(cells);
    }
    table
}

/// Flows by name.
#[must_use]
pub fn flow_table(flows: &Rows) -> Table {
    let mut columns = vec![Column::key("flow"), Column::number("count", ""), Column::text("exit reason")];
    columns.extend(FLOW_COLUMNS.iter().map(|(heading, unit, ..)| Column::number(*heading, *unit)));
    let mut table = Table::new("Flows", columns);
    for (name, members) in groups(flows, "name") {
        // Datagrams have no start that could end.
        let datagrams = members.iter().all(|row| text(flows, *row, "algorithm") == "udp");
        let reasons = if datagrams { Cell::Missing } else { Cell::text(reasons(flows, &members)) };
        let mut cells = vec![Cell::text(name), Cell::count(members.len() as u64), reasons];
        cells.extend(
            FLOW_COLUMNS.iter().map(|(_, _, column, scale, digits)| mean(flows, &members, column, *scale, *digits)),
        );
        table.push(cells);
    }
    table.notes.extend(unfinished(flows));
    table
}

/// Which transfers had not all of their bytes at the end: means of completion times leave them out.
fn unfinished(flows: &Rows) -> Option<String> {
    let mut parts = Vec::new();
    for (name, members) in groups(flows, "name") {
        let sized = || members.iter().filter(|row| number(flows, **row, "size_bytes").is_some());
        let complete = sized().filter(|row| number(flows, **row, "completed_s").is_some()).count();
        let all = sized().count();
        if complete < all {
            parts.push(format!("{name} {complete} of {all}"));
        }
    }
    let more = parts.len().saturating_sub(NAMED);
    parts.truncate(NAMED);
    if more > 0 {
        parts.push(format!("{more} more"));
    }
    (!parts.is_empty())
        .then(|| format!("Completion times are of the transfers that were complete at the end: {}.", parts.join(", ")))
}

/// Why starts ended, with counts if they differ.
fn reasons(flows: &Rows, members: &[usize]) -> String {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for row in members {
        let reason = text(flows, *row, "exit_reason");
        match counts.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => counts.push((reason, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let named = |reason: &str| if reason.is_empty() { "not yet".to_owned() } else { reason.replace('_', " ") };
    match counts.as_slice() {
        [(one, _)] => named(one),
        several => {
            several.iter().map(|(reason, count)| format!("{count} {}", named(reason))).collect::<Vec<_>>().join(", ")
        }
    }
}

/// Links by name.
#[must_use]
pub fn link_table(links: &Rows) -> Table {
    let mut columns = vec![Column::key("link")];
    columns.extend(LINK_COLUMNS.iter().map(|(heading, unit, ..)| Column::number(*heading, *unit)));
    let mut table = Table::new("Links", columns);
    for (name, members) in groups(links, "link") {
        let mut cells = vec![Cell::text(name)];
        cells.extend(
            LINK_COLUMNS.iter().map(|(_, _, column, scale, digits)| mean(links, &members, column, *scale, *digits)),
        );
        table.push(cells);
    }
    table
}
