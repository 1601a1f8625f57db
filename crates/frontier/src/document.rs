//! Results as documents: JSON and CSV.

use serde_json::{Map, Value as Json, json};

use flowstart_race::Measure;

use super::journal::csv;
use super::{Cell, CellScore, FrontierResult, Goal, REFERENCE, Scores, goals, measures};

/// Version of the documents; it changes when a name or a meaning does.
pub const FRONTIER_SCHEMA_VERSION: u32 = 2;

/// A result with its scores, ready to be shown.
#[derive(Clone, Debug)]
pub struct Shown<'a> {
    /// The result.
    pub result: &'a FrontierResult,
    /// Its scores.
    pub scores: Scores,
    /// Numbers of the contestants that the goals are for.
    pub subjects: Vec<usize>,
}

/// A finite number; infinity is said in words.
fn number(value: Option<f64>) -> Json {
    match value {
        Some(value) if value.is_infinite() => json!("infinite"),
        value => json!(value),
    }
}

fn cell_json(cell: &Cell) -> Map<String, Json> {
    let mut fields = Map::new();
    fields.insert("capacity".to_owned(), json!(cell.capacity));
    fields.insert("rtt".to_owned(), json!(cell.rtt));
    fields.insert("buffer".to_owned(), json!(cell.room()));
    fields.insert("path".to_owned(), json!(cell.path.name()));
    fields.insert("load".to_owned(), json!(cell.load.name()));
    fields
}

impl<'a> Shown<'a> {
    /// Scores of this result, with goals for the contestants whose label or flow start is
    /// `subject`.
    #[must_use]
    pub fn new(result: &'a FrontierResult, subject: &str) -> Self {
        let scores = Scores::new(result);
        let wanted = subject.trim().to_lowercase().replace('-', "_");
        let is_subject = |number: &usize| {
            let contestant = &scores.contestants[*number];
            contestant.label == subject || contestant.start == wanted
        };
        let subjects = (0..scores.contestants.len()).filter(is_subject).collect();
        Self { result, scores, subjects }
    }

    /// The goals of a contestant.
    #[must_use]
    pub fn goals(&self, contestant: usize) -> Vec<Goal> {
        goals(&self.scores, &self.scores.contestants[contestant])
    }

    /// What was run, defaults filled in: the cells, the seeds and every contestant's constants.
    #[must_use]
    pub fn parameters(&self) -> Json {
        let frontier = &self.result.frontier;
        let grid = &frontier.grid;
        let contestants: Vec<Json> = frontier
            .contestants()
            .iter()
            .map(|contestant| {
                json!({
                    "contestant": contestant.to_string(),
                    "start": contestant.start,
                    "avoidance": contestant.avoidance,
                    "pacing": contestant.pacing,
                })
            })
            .collect();
        let mut parameters = json!({
            "schema_version": FRONTIER_SCHEMA_VERSION,
            "capacities": grid.capacities,
            "rtts": grid.rtts,
            "buffers": grid.buffers,
            "paths": grid.paths.iter().map(|path| path.name()).collect::<Vec<_>>(),
            "loads": grid.loads.iter().map(|load| load.name()).collect::<Vec<_>>(),
            "seeds": frontier.seeds,
            "sizes": super::SIZES,
            "reference": REFERENCE,
            "contestants": contestants,
        });
        if grid.as_is {
            parameters["profiles_as_they_are"] = json!(true);
        }
        if !grid.with.is_empty() {
            parameters["with"] = json!(grid.with.iter().map(ToString::to_string).collect::<Vec<_>>());
        }
        parameters
    }

    /// The first 16 hexadecimal digits of the BLAKE3 hash of the parameters.
    #[must_use]
    pub fn hash(&self) -> String {
        blake3::hash(self.parameters().to_string().as_bytes()).to_hex()[..16].to_owned()
    }

    /// The whole result with its provenance: medians, goals with the cells that are lost, and every
    /// cell. It depends on nothing but the version and the parameters.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let (finished, all) = self.result.finished();
        let columns: Vec<Json> = measures()
            .iter()
            .map(|measure| json!({ "name": measure.name(), "unit": measure.unit(), "meaning": measure.help() }))
            .collect();
        let contestants: Vec<Json> = (0..self.scores.contestants.len()).map(|number| self.contestant(number)).collect();
        json!({
            "flowstart_version": env!("CARGO_PKG_VERSION"),
            "schema_version": FRONTIER_SCHEMA_VERSION,
            "frontier_hash": self.hash(),
            "complete": finished == all,
            "simulated": finished,
            "asked": all,
            "parameters": self.parameters(),
            "measures": columns,
            "contestants": contestants,
        })
    }

    fn contestant(&self, place: usize) -> Json {
        let scores = &self.scores.contestants[place];
        let mut medians: Map<String, Json> =
            measures().iter().map(|measure| (measure.name(), number(scores.median_of(*measure)))).collect();
        medians.insert("slowdown_geometric_mean".to_owned(), number(scores.median(|cell| cell.slowdown)));
        medians.insert("completion_ratio".to_owned(), number(scores.median(|cell| cell.completion_ratio)));
        medians.insert("added_delay_ms".to_owned(), number(scores.median(|cell| cell.added_delay)));
        medians.insert("delay_ratio".to_owned(), number(scores.median(|cell| cell.delay_ratio)));
        medians.insert("harm_ratio".to_owned(), number(scores.median(|cell| cell.harm_ratio)));
        let goals: Vec<Json> = if self.subjects.contains(&place) {
            self.goals(place).iter().map(|goal| self.goal(goal)).collect()
        } else {
            Vec::new()
        };
        let mut document = json!({
            "contestant": scores.label,
            "medians": medians,
            "on_the_front": self.scores.on_the_front()[place],
            "lost_caused": number(self.scores.losses(scores)),
            "lost_caused_idle": number(self.scores.idle_losses(scores)),
            "cells": scores.cells.iter().map(|cell| self.cell(cell)).collect::<Vec<_>>(),
        });
        if let (false, Json::Object(fields)) = (goals.is_empty(), &mut document) {
            fields.insert("goals".to_owned(), goals.into());
        }
        document
    }

    fn goal(&self, goal: &Goal) -> Json {
        let lost: Vec<Json> = goal
            .lost
            .iter()
            .map(|(cell, value)| {
                let mut fields = cell_json(&self.scores.cells[*cell]);
                fields.insert("value".to_owned(), number(Some(*value)));
                fields.into()
            })
            .collect();
        json!({
            "goal": goal.name,
            "value": number(goal.value),
            "interval": goal.interval.map(|ends| ends.map(|end| number(Some(end)))),
            "unit": goal.unit,
            "limit": goal.limit,
            "verdict": goal.verdict.name(),
            "cells": goal.cells,
            "lost": lost,
        })
    }

    fn cell(&self, score: &CellScore) -> Json {
        let mut fields = cell_json(&self.scores.cells[score.cell]);
        fields.insert("runs".to_owned(), json!(score.runs));
        fields.insert("exits".to_owned(), json!(score.exits));
        for (name, value) in derived(score) {
            fields.insert(name.to_owned(), number(value));
        }
        for (name, interval) in [
            ("completion_ratio_interval", score.completion_interval),
            ("added_delay_ms_interval", score.added_delay_interval),
        ] {
            fields.insert(name.to_owned(), json!(interval.map(|ends| ends.map(|end| number(Some(end))))));
        }
        for measure in measures() {
            fields.insert(measure.name(), number(score.get(*measure)));
        }
        fields.into()
    }

    /// One line per cell and contestant, means over seeds, as CSV.
    #[must_use]
    pub fn cells_csv(&self) -> Vec<u8> {
        let mut lines = Vec::new();
        for contestant in &self.scores.contestants {
            for score in &contestant.cells {
                let cell = &self.scores.cells[score.cell];
                let text = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
                let mut line = vec![
                    cell.capacity.as_mbps_f64().to_string(),
                    cell.rtt.as_millis_f64().to_string(),
                    cell.room(),
                    cell.path.to_string(),
                    cell.load.to_string(),
                    contestant.label.clone(),
                    score.runs.to_string(),
                    score.exits.clone(),
                ];
                line.extend(derived(score).map(|(_, value)| text(value)));
                line.extend(measures().iter().map(|measure: &Measure| text(score.get(*measure))));
                if lines.is_empty() {
                    let keys = ["capacity_mbit_s", "rtt_ms", "buffer", "path", "load", "contestant", "runs", "exits"];
                    let names = keys.into_iter().chain(derived(score).map(|(name, _)| name));
                    let measured = measures().iter().map(Measure::name);
                    lines.push(names.map(str::to_owned).chain(measured).collect());
                }
                lines.push(line);
            }
        }
        csv(&lines)
    }
}

/// What is derived from the measures of a cell.
fn derived(score: &CellScore) -> [(&'static str, Option<f64>); 5] {
    [
        ("slowdown_geometric_mean", score.slowdown),
        ("completion_ratio", score.completion_ratio),
        ("added_delay_ms", score.added_delay),
        ("delay_ratio", score.delay_ratio),
        ("harm_ratio", score.harm_ratio),
    ]
}
