//! Tables as CSV (RFC 4180): one header line, full precision, decimal points.

use crate::table::{Cell, Table};
use crate::text::exact;

impl Table {
    /// The table as CSV: the machine names of the columns as header, numbers as short as they read back exactly, missing
    /// values empty. A column with 95 % intervals becomes three: `name`, `name_low`, `name_high`.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut out = String::new();
        let intervals: Vec<bool> = (0..self.columns.len()).map(|column| self.has_intervals(column)).collect();
        let mut header = Vec::new();
        for (column, &interval) in self.columns.iter().zip(&intervals) {
            header.push(field(&column.name));
            if interval {
                header.extend([field(&format!("{}_low", column.name)), field(&format!("{}_high", column.name))]);
            }
        }
        line(&mut out, &header);
        for row in 0..self.rows.len() {
            let mut fields = Vec::with_capacity(header.len());
            for (column, &interval) in intervals.iter().enumerate() {
                let (main, low, high) = match self.cell(row, column) {
                    Cell::Missing => (String::new(), String::new(), String::new()),
                    Cell::Text(text) => (field(text), String::new(), String::new()),
                    Cell::Number { value, .. } => (exact(*value), String::new(), String::new()),
                    Cell::Quantity { value, low, high, .. } => (exact(*value), exact(*low), exact(*high)),
                };
                fields.push(main);
                if interval {
                    fields.extend([low, high]);
                }
            }
            line(&mut out, &fields);
        }
        out
    }
}

/// One record.
fn line(out: &mut String, fields: &[String]) {
    out.push_str(&fields.join(","));
    out.push('\n');
}

/// A field, quoted when it has to be.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
