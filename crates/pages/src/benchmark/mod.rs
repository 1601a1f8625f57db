//! `flowstart benchmark`: attainable rates in tables, pictures and sentences.

mod figures;
mod matrix;
mod page;
mod seeds;
mod tables;

use flowstart_benchmark::{Benchmark, BenchmarkResult};
use flowstart_report::{Color, Page, Palette, Table, Terminal};
use flowstart_service_curve::{ProbeVerdict, RateProbe};
use flowstart_units::Span;

use crate::compare::others;

/// The titles of the pictures that a page will have if all is measured that is asked for: of so
/// many runs, and of those whom the tables call like this.
#[must_use]
pub fn titles(benchmark: &Benchmark, runs: u64, labels: &[String]) -> Vec<String> {
    let simulated = !benchmark.race.contestants.is_empty();
    let there = [
        (figures::ATTAINABLE, true),
        (figures::SUSTAINED, runs > 1),
        (figures::VIDEO, true),
        (figures::STARTUP, simulated && benchmark.connections > 0),
        (figures::BURSTS, simulated && benchmark.bursts > 0),
    ];
    let there = there.into_iter().filter(|(_, there)| *there).map(|(title, _)| title.to_owned());
    there.chain(labels.iter().map(|label| figures::delays_of(label))).collect()
}

/// A result in the forms in which it is shown.
pub struct Shown<'a> {
    /// That of the first seed.
    pub result: &'a BenchmarkResult,
    /// Those of all seeds, if several were asked for.
    seeds: Option<&'a [BenchmarkResult]>,
    /// How faithful real paths were.
    paths: Option<serde_json::Value>,
    command: String,
    colors: Vec<Color>,
    /// The rates.
    pub summary: Table,
    /// Every rate that was tried.
    pub probes: Table,
    /// Where delays arise, if that was asked for.
    pub parts: Option<Table>,
}

impl<'a> Shown<'a> {
    /// Results of so many runs, a seed each, with what is to be said of real paths and the command
    /// that made them; `None` if there is no result.
    #[must_use]
    pub fn new(
        results: &'a [BenchmarkResult],
        runs: usize,
        paths: Option<serde_json::Value>,
        command: String,
    ) -> Option<Self> {
        let result = results.first()?;
        let seeds = (runs > 1).then_some(results);
        let mut palette = Palette::new();
        let colors: Vec<Color> = result.attained.iter().map(|one| palette.color(&one.label)).collect();
        let (summary, probes) = match seeds {
            Some(results) => (seeds::summary(results, &colors), seeds::probes(results, &colors)),
            None => (tables::summary(result, &colors), tables::probes(result, &colors)),
        };
        let parts = tables::parts(result, &colors);
        Some(Self { result, seeds, paths, command, colors, summary, probes, parts })
    }

    /// As one document: that of the first seed, and with several seeds all of them.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let mut document = self.result.to_json();
        if let Some(results) = self.seeds {
            document["runs"] = results.iter().map(BenchmarkResult::to_json).collect();
        }
        if let Some(paths) = &self.paths {
            document["real_paths"] = paths.clone();
        }
        document
    }

    /// Which seeds, in words.
    fn seed(&self) -> String {
        let first = self.result.benchmark.race.seed;
        match self.seeds.and_then(<[_]>::last) {
            Some(last) if last.benchmark.race.seed != first => format!("seeds {first} to {}", last.benchmark.race.seed),
            _ => format!("seed {first}"),
        }
    }

    /// True if there was a path, emulated or simulated.
    fn has_path(&self) -> bool {
        let benchmark = &self.result.benchmark;
        !benchmark.race.contestants.is_empty() || !benchmark.real.is_empty()
    }

    /// What was probed, with all seeds.
    fn all_probes(&self) -> impl Iterator<Item = &RateProbe> {
        let results = self.seeds.unwrap_or(std::slice::from_ref(self.result));
        results.iter().flat_map(|result| &result.attained).flat_map(|one| &one.estimate.probes)
    }

    /// For how long rates were watched, the shortest and the longest. What is measured here is
    /// watched as long as was asked for, unless it ended before; a file is as long as it is.
    fn watched(&self) -> (Span, Span) {
        let benchmark = &self.result.benchmark;
        let tenths = |span: Span| Span::from_millis(100) * (span + Span::from_millis(50)).whole(Span::from_millis(100));
        let measured = || self.all_probes().map(|probe| tenths(probe.measured));
        let asked = self.has_path().then_some((benchmark.probe.least_time, benchmark.lasting));
        let (least, most) = asked.unzip();
        let shortest = measured().chain(least).min().unwrap_or_default();
        (shortest, measured().chain(most).max().unwrap_or_default())
    }

    /// The tables beside the summary.
    fn details(&self) -> impl Iterator<Item = &Table> {
        std::iter::once(&self.probes).chain(&self.parts)
    }

    fn title(&self) -> String {
        let benchmark = &self.result.benchmark;
        if !self.has_path() {
            return "Attainable rates, measured".to_owned();
        }
        if let Some(to) = &benchmark.to {
            return format!("Attainable rates from here to {to}");
        }
        format!("Attainable rates over {} and {} of base RTT", benchmark.capacity(), benchmark.race.path.rtt)
    }

    /// How every contestant was run, then the [remarks](Self::remarks).
    fn notes(&self) -> Vec<String> {
        self.conditions().chain(self.remarks()).collect()
    }

    /// How every contestant was run.
    fn conditions(&self) -> impl Iterator<Item = String> + '_ {
        self.result.attained.iter().map(|one| format!("{}: {}.", one.label, one.conditions))
    }

    /// How it was run, and what is uncertain.
    fn remarks(&self) -> Vec<String> {
        let benchmark = &self.result.benchmark;
        let probe = &benchmark.probe;
        let mut remarks = Vec::new();
        if benchmark.to.is_some() {
            let text = "Delays from the time at which a message is due to be written until the server has read it, each way being \
                        taken for half of the smallest RTT.";
            remarks.push(text.to_owned());
        } else if self.has_path() {
            let there: Vec<String> =
                std::iter::once(format!("{} greedy flows of the contestant's own kind", benchmark.peers))
                    .filter(|_| benchmark.peers > 0)
                    .chain(others(&benchmark.race.others))
                    .collect();
            let there = if there.is_empty() { "nobody".to_owned() } else { there.join(", ") };
            remarks.push(format!("There before: {there}. Fair share: {} (gross).", benchmark.fair_share()));
            if benchmark.peers > 0 && benchmark.race.path.jitter.is_none() {
                let note = "Every packet is delayed at random by up to one transmission time, against phase effects of equal flows.";
                remarks.push(note.to_owned());
            }
        }
        let (shortest, longest) = self.watched();
        remarks.push(format!(
            "{} samples per rate, {} apart in the mean and thinned until independent{}, {} each violated at most; warm-up {}, {} of \
             measurement per rate; too high is what grows for {}.",
            probe.samples,
            probe.sampling_gap,
            if probe.dependent { ", or dependent ones worth as many" } else { "" },
            percent(probe.epsilon.get()),
            probe.warm_up,
            if shortest < longest { format!("{shortest} to {longest}") } else { longest.to_string() },
            probe.overload_after
        ));
        let is_too_high = self.all_probes().any(|probe| matches!(probe.verdict, ProbeVerdict::NonStationary));
        if longest < probe.overload_after && !is_too_high {
            remarks.push(format!(
                "No rate is too high: {longest} of measurement are less than the {} for which delays must grow; a longer {}, or a shorter \
                 --overload-after, would say so.",
                probe.overload_after,
                if self.has_path() { "--lasting" } else { "measurement" },
            ));
        }
        if self.result.attained.iter().any(|one| !one.estimate.next_is_too_high()) {
            let text = "Where the next rate is undecided, or all were accepted, the long-term rate may be higher; a longer --lasting may tell.";
            remarks.push(text.to_owned());
        }
        if self.result.attained.iter().any(|one| one.estimate.curve.epsilon().get() >= 1.0) {
            let text = "Where epsilon is 1, nothing is said of a curve as a whole, only of each rate by itself; a smaller --epsilon, or \
                        --curve-epsilon, says more.";
            remarks.push(text.to_owned());
        }
        if let Some(results) = self.seeds {
            remarks.push(seeds::decided(results));
        }
        if !self.result.complete {
            remarks.push("Ended early: what was not measured counts as undecided.".to_owned());
        }
        remarks
    }

    /// As a page with pictures.
    #[must_use]
    pub fn page(&self) -> Page {
        page::page(self)
    }

    /// As a page of documentation.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut page = format!("<!-- Made by `{}`; do not edit. -->\n\n# {}\n\n", self.command, self.title());
        let matrices = matrix::matrices(self.seeds.unwrap_or(std::slice::from_ref(self.result)));
        for table in &matrices {
            page.push_str(&table.to_markdown());
            page.push('\n');
        }
        if !matrices.is_empty() {
            page.push_str("<details><summary>Every row with all its numbers</summary>\n\n");
        }
        page.push_str(&self.summary.to_markdown());
        page.push('\n');
        if let Some(parts) = &self.parts {
            page.push_str(&parts.to_markdown());
            page.push('\n');
        }
        for column in self.summary.columns.iter().filter(|column| !column.help.is_empty()) {
            page.push_str(&format!("- {}: {}\n", column.heading, column.help));
        }
        page.push('\n');
        for conditions in self.conditions() {
            page.push_str(&format!("- {conditions}\n"));
        }
        if !matrices.is_empty() {
            page.push_str("\n</details>\n\n");
        }
        for remark in self.remarks() {
            page.push_str(&format!("- {remark}\n"));
        }
        let mut seed = self.seed();
        seed[..1].make_ascii_uppercase();
        page.push_str(&format!("\n{seed}, benchmark {}.\n", self.result.benchmark.hash()));
        page
    }

    /// For the terminal. Simulating took so many seconds; `measured` says how long measuring did.
    #[must_use]
    pub fn text(&self, terminal: Terminal, took: f64, measured: &str) -> String {
        let mut text = format!("{}\n\n", self.title());
        for table in std::iter::once(&self.summary).chain(self.details()) {
            text.push_str(&table.to_terminal(terminal));
            text.push('\n');
        }
        for remark in self.notes() {
            text.push_str(&remark);
            text.push('\n');
        }
        let result = self.result;
        if result.benchmark.real.is_empty() {
            let simulated: f64 =
                self.seeds.unwrap_or(std::slice::from_ref(result)).iter().map(|r| r.simulated_seconds).sum();
            text.push_str(&format!("\n{simulated:.0} simulated seconds in {took:.1} s\n"));
        } else {
            text.push_str(&format!("\nmeasured in {measured}\n"));
        }
        text.push_str(&format!("{}, benchmark {}\n", self.seed(), result.benchmark.hash()));
        text
    }
}

/// A fraction in per cent, to three digits.
fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    let rounded: f64 = format!("{percent:.2e}").parse().unwrap_or(percent);
    format!("{rounded} %")
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn fractions_are_said_in_per_cent_with_three_digits() {
        let said: Vec<String> = [0.01, 0.1 / 12.0, 0.05, 1e-6 / 3.0, 1.0, 0.999, 0.0].map(percent).into();
        assert_eq!(said, ["1 %", "0.833 %", "5 %", "0.0000333 %", "100 %", "99.9 %", "0 %"]);
    }
}
