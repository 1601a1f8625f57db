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
}

/// A page of results that stands on its own.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Page {
    /// Title.
    pub title: String,
    /// The exact command that makes this page, shown first with a button that copies it.
    pub command: String,
    /// Where the numbers come from, in this order: seed, version, scenario hash, runs, …
    pub provenance: Vec<(String, String)>,
    /// The result in plain-text paragraphs.
    pub summary: Vec<String>,
    /// Tables and figures.
    pub sections: Vec<Section>,
    /// Definitions and remarks at the end.
    pub footnotes: Vec<String>,
}
