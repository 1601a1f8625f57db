//! What runs gave, kept in a file: the page is made from it, and a part of it is made again to see
//! that the program still gives the same.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::ReproduceError;
use super::evidence::{Evidence, Looks, is_close};
use super::figure::{Claim, Figure, short_hash};
use super::first_run::FirstRun;
use super::picture::Picture;
use super::replication::By;
use super::stability::Stability;
use super::verdict::{ClaimResult, FigureResult};

/// The file of what runs gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// By name of the figure.
    pub figures: BTreeMap<String, FigureRecord>,
    /// Whether other seeds give the same verdicts, if that was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stability: Option<Stability>,
}

/// What the runs of a figure gave. Words and bounds are not in it: they are those of its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureRecord {
    /// Day of the run, YYYY-MM-DD.
    pub date: String,
    /// Version of the program.
    pub version: String,
    /// With the whole budget (`--full`).
    #[serde(default)]
    pub full: bool,
    /// Thread time, seconds: what it took by the clock, all threads together.
    pub seconds: f64,
    /// Hash of what stands in the figure's file about the runs.
    pub hash: String,
    /// How often results were looked at.
    pub looks: Looks,
    /// Runs made, of all variants.
    pub simulations: usize,
    /// Data packets simulated.
    pub data_packets: u64,
    /// Virtual seconds simulated.
    pub simulated_seconds: f64,
    /// What one of its runs measured, alone.
    #[serde(default)]
    pub first: FirstRun,
    /// By id of the claim.
    pub claims: BTreeMap<String, ClaimRecord>,
    /// Shares of answers, if the figure has such a table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<ShareTable>,
}

/// What the runs of a claim gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimRecord {
    /// Hash of what was measured in which variants.
    pub measured: String,
    /// Name and evidence of every case.
    pub cases: Vec<(String, Evidence)>,
}

/// Shares in percent, by row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShareTable {
    /// Its heading.
    pub title: String,
    /// What the rows are.
    pub by: String,
    /// Unit of the shares.
    pub unit: String,
    /// Names of the rows.
    pub rows: Vec<String>,
    /// Name and values of every column.
    pub columns: Vec<(String, Vec<f64>)>,
}

impl ShareTable {
    /// A picture that is a table as well.
    pub(super) fn of(picture: &Picture) -> Option<Self> {
        let values = |points: &[[f64; 2]]| points.iter().map(|point| point[1]).collect();
        (!picture.places.is_empty()).then(|| Self {
            title: picture.title.clone(),
            by: picture.x.label.to_owned(),
            unit: picture.y.unit.to_owned(),
            rows: picture.places.clone(),
            columns: picture.curves.iter().map(|curve| (curve.name.clone(), values(&curve.points))).collect(),
        })
    }

    /// True if it is the same but for the last digits, which a text file may lose.
    fn is_same(&self, other: &Self) -> bool {
        let names = |table: &Self| {
            let columns: Vec<String> = table.columns.iter().map(|(name, _)| name.clone()).collect();
            (table.title.clone(), table.by.clone(), table.unit.clone(), table.rows.clone(), columns)
        };
        let same = |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_close(*a, *b));
        let columns = || self.columns.iter().zip(&other.columns);
        names(self) == names(other) && columns().all(|((_, ours), (_, theirs))| same(ours, theirs))
    }
}

/// Hash of what a claim measures in which variants.
fn measured(claim: &Claim) -> String {
    let spec = &claim.spec;
    let all = (&spec.measure, spec.over_variants, spec.ratio_to.is_some(), &claim.cases, claim.missing);
    short_hash(blake3::hash(format!("{all:?}").as_bytes()))
}

impl FigureRecord {
    /// From what the runs gave, perhaps with the whole budget; `seconds` of processor time on a day
    /// (YYYY-MM-DD).
    #[must_use]
    pub fn new(result: &FigureResult, date: &str, version: &str, full: bool, seconds: f64) -> Self {
        let of_claim = |result: &ClaimResult| {
            let cases = result.cases.iter().map(|case| (case.variant.clone(), case.evidence.clone())).collect();
            (result.claim.spec.id.clone(), ClaimRecord { measured: measured(&result.claim), cases })
        };
        Self {
            date: date.to_owned(),
            version: version.to_owned(),
            full,
            seconds: (seconds * 10.0).round() / 10.0,
            hash: result.figure.run_hash.clone(),
            looks: result.looks,
            simulations: result.simulations,
            data_packets: result.data_packets,
            simulated_seconds: result.simulated_seconds,
            first: result.first.clone(),
            claims: result.claims.iter().map(of_claim).collect(),
            tables: result.tables.clone(),
        }
    }

    /// The verdicts of a figure on what is recorded of it.
    ///
    /// # Errors
    /// What was changed in the figure's file since, or what is recorded although no runs give it,
    /// so that it must be run again.
    pub fn judge(&self, figure: &Figure) -> Result<FigureResult, ReproduceError> {
        let full = if self.full { " --full" } else { "" };
        let damaged = |what: &str| {
            ReproduceError::new(format!("{0}: {what}; run `flowstart reproduce {0}{full} --record`", figure.name))
        };
        let again = |what: &str| damaged(&format!("{what} since it was recorded"));
        if figure.run_hash != self.hash {
            return Err(again("its parameters have changed"));
        }
        if self.looks.certain != (figure.replications.by == By::Nothing) {
            return Err(damaged("the record has it otherwise whether runs differ"));
        }
        if self.looks.most == 0 {
            return Err(damaged("the record says that results were never looked at"));
        }
        let mut claims = Vec::new();
        for claim in &figure.claims {
            let id = &claim.spec.id;
            let Some(record) = self.claims.get(id) else { return Err(again(&format!("the claim \"{id}\" is new"))) };
            if record.measured != measured(claim) {
                return Err(again(&format!("what the claim \"{id}\" measures has changed")));
            }
            let names = record.cases.iter().map(|(name, _)| name);
            if !figure.names_of_cases(claim).iter().eq(names) {
                return Err(damaged(&format!("the record of the claim \"{id}\" has other cases than the claim")));
            }
            if let Some((name, _)) = record.cases.iter().find(|(_, evidence)| !evidence.is_possible()) {
                let of = if name.is_empty() { String::new() } else { format!(" ({name})") };
                return Err(damaged(&format!("the record of the claim \"{id}\"{of} has what no runs give")));
            }
            claims.push(ClaimResult::new(claim.clone(), self.looks, record.cases.clone()));
        }
        Ok(FigureResult {
            figure: figure.clone(),
            claims,
            pictures: Vec::new(),
            tables: self.tables.clone(),
            first: self.first.clone(),
            looks: self.looks,
            simulations: self.simulations,
            data_packets: self.data_packets,
            simulated_seconds: self.simulated_seconds,
        })
    }

    /// Where a new run gave something else, in words; empty if it gave the same.
    #[must_use]
    pub fn differences(&self, new: &FigureResult) -> Vec<String> {
        let name = &new.figure.name;
        let mut lines = Vec::new();
        // Not packets and seconds: figures that probe alike and run together share them.
        let mut counted = |what: &str, now: String, then: String| {
            if now != then {
                lines.push(format!("{name}: {now} {what} now, {then} recorded"));
            }
        };
        counted("simulations", new.simulations.to_string(), self.simulations.to_string());
        counted("times that results are looked at", new.looks.most.to_string(), self.looks.most.to_string());
        if new.tables.len() != self.tables.len() || new.tables.iter().zip(&self.tables).any(|(a, b)| !a.is_same(b)) {
            lines.push(format!("{name}: the table of shares is another one"));
        }
        for result in &new.claims {
            let id = &result.claim.spec.id;
            let Some(record) = self.claims.get(id) else {
                lines.push(format!("{name}#{id} is not recorded"));
                continue;
            };
            let names = record.cases.iter().map(|(name, _)| name);
            if !result.cases.iter().map(|case| &case.variant).eq(names) {
                lines.push(format!("{name}#{id}: other cases are recorded"));
                continue;
            }
            for (case, (_, evidence)) in result.cases.iter().zip(&record.cases) {
                if !case.evidence.is_same(evidence) {
                    let (now, then) = (case.evidence.words(), evidence.words());
                    lines.push(format!("{name}#{id} ({}): {now} now, {then} recorded", case.variant));
                }
            }
        }
        lines
    }
}
