//! `flowstart reproduce`: claims and verdicts in tables, pictures and sentences.

pub mod chapters;
mod page;
pub mod tables;

use flowstart_reproduce::{Figure, FigureResult, Paper, Record};

pub use page::{figures, page, rows};

/// The verdicts on what the file holds, and the figures that it does not hold.
pub struct Judged {
    /// A result for each figure of the record.
    pub results: Vec<FigureResult>,
    /// What the file holds.
    pub record: Record,
    /// Names of figures that it does not hold.
    pub missing: Vec<String>,
}

/// The paper that a figure is of, and those without one last.
#[must_use]
pub fn paper_of<'a>(papers: &'a [Paper], figure: &Figure) -> Option<&'a Paper> {
    papers.iter().find(|paper| paper.figures.contains(&figure.name))
}
