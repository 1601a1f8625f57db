//! A report page: what was run, what came out, how to run it again.

use crate::figure::Figure;
use crate::table::Table;

/// A part of a page under its own heading: paragraphs, then tables, then figures.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Section {
    /// Heading; empty for none.
    pub heading: String,
    /// Plain-text paragraphs.
    pub paragraphs: Vec<String>,
    /// Tables.
    pub tables: Vec<Table>,
    /// Figures, in a grid of two columns on wide screens.
    pub figures: Vec<Figure>,
    /// Whether it is folded at first.
    pub folded: bool,
}

/// A page of results that stands on its own.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Page {
    /// Title.
    pub title: String,
    /// What the page is about: figures below each other, over the same axis, before all else.
    pub lead: Vec<Figure>,
    /// The exact command that makes this page, shown first with a button that copies it.
    pub command: String,
    /// Where the numbers come from, the most important first: seed, runs, version, hash, …
    pub provenance: Vec<(String, String)>,
    /// The result in one short line that stands above the first picture; empty for none.
    pub answer: String,
    /// The result in plain-text paragraphs.
    pub summary: Vec<String>,
    /// What a reader must know beforehand: what does not mean what it seems to.
    pub warnings: Vec<String>,
    /// Tables and figures.
    pub sections: Vec<Section>,
    /// Definitions and remarks at the end, folded.
    pub footnotes: Vec<String>,
}
