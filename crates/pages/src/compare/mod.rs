//! `flowstart compare`: a race in tables, pictures and sentences.

mod figures;
mod page;
mod tables;
mod verdict;
pub mod worlds;

use flowstart_race::{ContestantResult, Others, RaceResult};
use flowstart_report::{Color, Page, Palette, Section, Table, Terminal};

pub use figures::TITLES;

/// A result in the forms in which it is shown.
pub struct Shown<'a> {
    /// What came out.
    pub result: &'a RaceResult,
    title: String,
    command: String,
    /// What most readers want.
    pub tables: Vec<Table>,
    /// All measures.
    pub full: Table,
    colors: Vec<Color>,
    warnings: Vec<String>,
}

impl<'a> Shown<'a> {
    /// A result with its title (the path's, if nothing was said), the command that made it, and
    /// what its reader is to be warned of.
    #[must_use]
    pub fn new(result: &'a RaceResult, title: Option<String>, command: String, warnings: Vec<String>) -> Self {
        let colors = tables::colors(result, &mut Palette::new());
        let race = &result.race;
        let title =
            title.unwrap_or_else(|| format!("Flow starts over {} and {} of base RTT", race.capacity(), race.path.rtt));
        let tables = tables::main_tables(result, &colors);
        let full = tables::full_table(result, &colors);
        Self { result, title, command, tables, full, colors, warnings }
    }

    /// What stands under the tables: how contestants were run, chance, and where the numbers come
    /// from.
    fn remarks(&self) -> Vec<String> {
        let race = &self.result.race;
        let mut remarks = self.warnings.clone();
        remarks.extend(tables::conditions(self.result));
        if race.has_others() {
            remarks.push(format!("Others there before: {}.", others(&race.others).join(", ")));
        }
        let means = if verdict::by_chance(self.result) {
            format!("From {}, without interval: chance may have decided", self.runs())
        } else {
            format!("Means of {}, ± 95 % interval", self.runs())
        };
        remarks.push(if let Some(phases) = race.phases {
            format!("{means}; all newcomers but the first start later, by a random part of {phases}.")
        } else if race.is_random() {
            format!("{means}.")
        } else if race.flows > 1 {
            "Nothing is random here, but what several flows get depends on the phases of their starts: --phases 20 has \
             means over them."
                .to_owned()
        } else {
            "No randomness in this scenario: one run is enough.".to_owned()
        });
        remarks.extend(tables::over_fewer_runs(self.result));
        if !self.result.complete {
            let (done, of) = self.result.simulations;
            remarks.push(format!(
                "Interrupted: {done} of {of} {} were finished.",
                if self.result.race.world.is_real() { "races" } else { "simulations" }
            ));
        }
        remarks
    }

    /// "30 runs"; after an interruption how many of them were finished.
    fn runs(&self) -> String {
        let asked = self.result.race.effective_runs();
        if self.result.complete {
            return if asked == 1 { "1 run".to_owned() } else { format!("{asked} runs") };
        }
        let whole = || self.result.contestants.iter().map(ContestantResult::whole_runs);
        match (whole().min().unwrap_or(0), whole().max().unwrap_or(0)) {
            (_, 0) => format!("the finished parts of the first of {asked} runs"),
            (least, most) if least == most => format!("{most} of {asked} runs"),
            (least, most) => format!("{least} or, of some contestants, {most} of {asked} runs"),
        }
    }

    /// As a page with pictures.
    #[must_use]
    pub fn page(&self) -> Page {
        page::page(self)
    }

    /// For the terminal: the usual tables or the full one. The race took so many seconds.
    #[must_use]
    pub fn text(&self, terminal: Terminal, all: bool, took: f64) -> String {
        let tables: Vec<&Table> = if all { vec![&self.full] } else { self.tables.iter().collect() };
        let mut text = format!("{}\n\n", self.title);
        for table in tables {
            text.push_str(&table.to_terminal(terminal));
            text.push('\n');
        }
        for sentence in verdict::verdict(self.result) {
            text.push_str(&sentence);
            text.push('\n');
        }
        text.push('\n');
        for remark in self.remarks() {
            text.push_str(&remark);
            text.push('\n');
        }
        let race = &self.result.race;
        let packets = self.result.data_packets as f64;
        text.push_str(&format!(
            "\n{:.1} {} seconds and {:.0} data packets in {took:.2} s{}\n",
            self.result.simulated_seconds,
            if race.world.is_real() { "real" } else { "simulated" },
            packets,
            // How fast the simulator is says nothing of a kernel.
            if race.world.is_real() {
                String::new()
            } else {
                format!(" ({:.1} million packets/s)", packets / took.max(1e-9) / 1e6)
            }
        ));
        text.push_str(&format!("seed {}, race {}\n", race.seed, race.hash()));
        text
    }

    /// As Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let tables = Section { tables: self.tables.clone(), ..Section::default() };
        let page = Page {
            title: self.title.clone(),
            command: self.command.clone(),
            summary: verdict::verdict(self.result),
            sections: vec![tables],
            footnotes: self.remarks(),
            ..Page::default()
        };
        page.to_markdown()
    }
}

/// Who is there before, in words.
pub(crate) fn others(others: &Others) -> Vec<String> {
    let tcp = |flow: &flowstart_scenario::FlowSpec| {
        flow.name.clone().or_else(|| flow.algorithm.clone()).unwrap_or_else(|| "TCP".to_owned())
    };
    let flows = others.flow.iter().map(|flow| format!("{} {}", flow.count, tcp(flow)));
    let datagrams = others.udp.iter().map(|udp| match &udp.name {
        Some(name) => format!("{name} (datagrams at {})", udp.rate),
        None => format!("datagrams at {}", udp.rate),
    });
    let arrivals = others.arrivals.iter().map(|arrival| {
        let how_often = match (&arrival.mean_gap, &arrival.load) {
            (Some(gap), _) => format!("one every {gap} on average"),
            (None, Some(load)) => format!("a load of {load}"),
            (None, None) => "at random".to_owned(),
        };
        format!("transfers of {} that arrive ({how_often})", tcp(&arrival.flow))
    });
    flows.chain(datagrams).chain(arrivals).collect()
}
