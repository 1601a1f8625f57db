//! Tables as CSV (RFC 4180): one header line, full precision, decimal points.

use crate::table::{Cell, Table};
use crate::text::exact;

impl Table {
    /// The table as CSV: the machine names of the columns as header, numbers as short as they read
    /// back exactly, missing values empty. A column with 95 % intervals becomes three: `name`,
    /// `name_low`, `name_high`.
    #[must_use]
    pub fn to_csv(&self) -> String {
        if self.columns.is_empty() {
            // A record without fields; `csv` would make it one empty field.
            return "\n".repeat(1 + self.rows.len());
        }
        let intervals: Vec<bool> = (0..self.columns.len()).map(|column| self.has_intervals(column)).collect();
        let mut header = Vec::new();
        for (column, &interval) in self.columns.iter().zip(&intervals) {
            header.push(column.name.clone());
            if interval {
                header.extend([format!("{}_low", column.name), format!("{}_high", column.name)]);
            }
        }
        // Writing into memory does not fail.
        let mut writer = csv::Writer::from_writer(Vec::new());
        let _ = writer.write_record(&header);
        for row in 0..self.rows.len() {
            let mut fields = Vec::with_capacity(header.len());
            for (column, &interval) in intervals.iter().enumerate() {
                let (main, low, high) = match self.cell(row, column) {
                    Cell::Missing => (String::new(), String::new(), String::new()),
                    Cell::Text(text) => (text.clone(), String::new(), String::new()),
                    Cell::Number { value, .. } => (exact(*value), String::new(), String::new()),
                    Cell::Quantity { value, low, high, .. } => (exact(*value), exact(*low), exact(*high)),
                    Cell::Between { low, high, .. } => {
                        (String::new(), exact(*low), high.map_or_else(String::new, exact))
                    }
                };
                fields.push(main);
                if interval {
                    fields.extend([low, high]);
                }
            }
            let _ = writer.write_record(&fields);
        }
        String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
    }
}
