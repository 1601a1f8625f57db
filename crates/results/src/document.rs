//! Results as one JSON document, written row by row: it is never in memory as a whole.

use std::io::{self, Write};

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::column::Value;
use super::schema::PACKETS;
use super::table::Table;
use super::{Provenance, Results};

/// All tables and the provenance as one document; tables are lists of objects. Keys are in
/// alphabetical order.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// The tables.
    pub results: &'a Results,
    /// What they say about themselves.
    pub provenance: &'a Provenance,
    /// Whether the table `packets` is in it. As a list of objects it is many times as long as all
    /// the others together.
    pub packets: bool,
}

impl Document<'_> {
    /// Writes it as text, with a line break at the end.
    ///
    /// # Errors
    /// If `out` cannot be written to.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        write_pretty(self, out)
    }
}

/// Writes anything that can be written as JSON as indented text with a line break at the end.
///
/// # Errors
/// If `out` cannot be written to.
pub fn write_pretty(value: &impl Serialize, out: impl Write) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 16, out);
    serde_json::to_writer_pretty(&mut out, value)?;
    out.write_all(b"\n")?;
    out.flush()
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const PROVENANCE: &str = "provenance";
        let mut names: Vec<(&str, Option<&Table>)> =
            self.results.tables.iter().map(|table| (table.spec().name, Some(table))).collect();
        names.retain(|(name, _)| self.packets || *name != PACKETS.name);
        names.push((PROVENANCE, None));
        names.sort_by_key(|(name, _)| *name);
        let mut map = serializer.serialize_map(Some(names.len()))?;
        for (name, table) in names {
            match table {
                Some(table) => map.serialize_entry(name, &Rows::new(table))?,
                None => map.serialize_entry(name, &self.provenance.to_json())?,
            }
        }
        map.end()
    }
}

/// A table as a list of objects.
struct Rows<'a> {
    table: &'a Table,
    /// Places of the columns in order of their names.
    order: Vec<usize>,
}

impl<'a> Rows<'a> {
    fn new(table: &'a Table) -> Self {
        let mut order: Vec<usize> = (0..table.spec().columns.len()).collect();
        order.sort_by_key(|place| table.spec().columns[*place].name);
        Self { table, order }
    }
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(Some(self.table.rows()))?;
        for row in 0..self.table.rows() {
            rows.serialize_element(&Row { rows: self, row })?;
        }
        rows.end()
    }
}

struct Row<'a> {
    rows: &'a Rows<'a>,
    row: usize,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Rows { table, order } = self.rows;
        let mut map = serializer.serialize_map(Some(order.len()))?;
        for place in order {
            map.serialize_entry(table.spec().columns[*place].name, &table.columns()[*place].get(self.row))?;
        }
        map.end()
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Missing => serializer.serialize_unit(),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Integer(n) => serializer.serialize_i64(*n),
            Self::Float(n) => serializer.serialize_f64(*n),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
        }
    }
}
