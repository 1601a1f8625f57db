//! A table filled row by row and kept by columns, or made row by row when it is needed.

use std::fmt;
use std::sync::{Arc, OnceLock};

use flowstart_parallel::{Cancel, in_parallel};

use super::column::{Column, Value};
use super::portion::CsvPortion;
use super::schema::TableSpec;
use super::text;

/// Rows that are made when they are needed: most are only ever written.
pub(crate) trait MadeRows: fmt::Debug + Send + Sync {
    /// How many there are.
    fn count(&self) -> usize;

    /// Makes them one after the other: a value per column, in order.
    fn each(&self, take: &mut dyn FnMut(&[Value]));

    /// In how many portions their text is made.
    fn portions(&self) -> usize;

    /// One of them: what [`Table::write_csv`] would make of the values.
    fn csv(&self, portion: usize) -> Arc<CsvPortion>;
}

#[derive(Clone, Debug)]
enum Content {
    Kept(Vec<Column>),
    Made { parts: Vec<Arc<dyn MadeRows>>, columns: OnceLock<Vec<Column>> },
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    spec: &'static TableSpec,
    content: Content,
    rows: usize,
}

impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        self.spec == other.spec && self.rows == other.rows && self.columns() == other.columns()
    }
}

fn empty(spec: &TableSpec) -> Vec<Column> {
    spec.columns.iter().map(|column| Column::new(column.kind)).collect()
}

impl Table {
    /// An empty table.
    #[must_use]
    pub fn new(spec: &'static TableSpec) -> Self {
        Self { spec, content: Content::Kept(empty(spec)), rows: 0 }
    }

    /// A table with these rows.
    pub(crate) fn made(spec: &'static TableSpec, rows: Arc<dyn MadeRows>) -> Self {
        let count = rows.count();
        Self { spec, content: Content::Made { parts: vec![rows], columns: OnceLock::new() }, rows: count }
    }

    /// Its declaration.
    #[must_use]
    pub fn spec(&self) -> &'static TableSpec {
        self.spec
    }

    /// Its values, in the order in which the [declaration](Self::spec) has the columns.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        match &self.content {
            Content::Kept(columns) => columns,
            Content::Made { parts, columns } => columns.get_or_init(|| {
                let mut columns = empty(self.spec);
                for part in parts {
                    part.each(&mut |row| {
                        for (column, value) in columns.iter_mut().zip(row) {
                            column.push(value.clone());
                        }
                    });
                }
                columns
            }),
        }
    }

    /// Its columns, to be changed.
    fn kept(&mut self) -> &mut Vec<Column> {
        if let Content::Made { .. } = self.content {
            self.content = Content::Kept(self.columns().to_vec());
        }
        match &mut self.content {
            Content::Kept(columns) => columns,
            Content::Made { .. } => unreachable!("they were just put there"),
        }
    }

    /// How many rows it has.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends a row: a value per column, in order; columns without a value are missing.
    pub fn push(&mut self, row: impl IntoIterator<Item = Value>) {
        let name = self.spec.name;
        let mut values = row.into_iter();
        for column in self.kept() {
            column.push(values.next().unwrap_or(Value::Missing));
        }
        debug_assert!(values.next().is_none(), "more values than columns in {name}");
        self.rows += 1;
    }

    /// Appends all rows of another table of the same kind.
    pub fn append(&mut self, mut other: Self) {
        debug_assert_eq!(self.spec.name, other.spec.name);
        if self.rows == 0 {
            *self = other;
            return;
        }
        if other.rows == 0 {
            return;
        }
        self.rows += other.rows;
        if let (Content::Made { parts, columns }, Content::Made { parts: more, .. }) =
            (&mut self.content, &mut other.content)
        {
            parts.append(more);
            *columns = OnceLock::new();
            return;
        }
        let more = std::mem::take(other.kept());
        for (column, more) in self.kept().iter_mut().zip(more) {
            column.append(more);
        }
    }

    /// As CSV: a header line, then the rows; what is missing is empty.
    #[must_use]
    pub fn to_csv(&self) -> Vec<u8> {
        self.csv_portions().iter().flat_map(|portion| portion.text()).copied().collect()
    }

    /// The same in portions that follow one another: those of rows that are made are made on all
    /// cores, and stay apart, for together they are as much memory again.
    pub(super) fn csv_portions(&self) -> Vec<Arc<CsvPortion>> {
        let mut text = Vec::new();
        let Some(portions) = self.portions() else {
            // Writing into memory does not fail.
            let _ = self.write_csv(&mut text);
            return vec![Arc::new(CsvPortion::new(text))];
        };
        let make = |number: usize| {
            let (part, portion) = portions[number];
            part.csv(portion)
        };
        self.write_header(&mut text);
        let mut content = vec![Arc::new(CsvPortion::new(text))];
        match in_parallel(portions.len(), None, &Cancel::default(), |_| {}, make) {
            Ok(made) => content.extend(made.into_iter().flatten()),
            // One thread will do.
            Err(_) => content.extend((0..portions.len()).map(make)),
        }
        content
    }

    /// The portions of parts that are still to be made.
    fn portions(&self) -> Option<Vec<(&dyn MadeRows, usize)>> {
        match &self.content {
            Content::Made { parts, columns } if columns.get().is_none() => {
                let of_part = |part: &Arc<dyn MadeRows>| 0..part.portions();
                Some(parts.iter().flat_map(|part| of_part(part).map(move |portion| (&**part, portion))).collect())
            }
            _ => None,
        }
    }

    fn write_header(&self, out: &mut Vec<u8>) {
        let names = self.spec.columns.iter().map(|column| column.name);
        // Writing into memory does not fail.
        let _ = csv::Writer::from_writer(out).write_record(names);
    }

    /// The same, written piece by piece.
    ///
    /// # Errors
    /// If `out` cannot be written to.
    pub fn write_csv(&self, mut out: impl std::io::Write) -> std::io::Result<()> {
        /// Bytes that are written at once.
        const BLOCK: usize = 1 << 16;
        let mut block = Vec::with_capacity(BLOCK + BLOCK / 4);
        self.write_header(&mut block);
        if let Some(portions) = self.portions() {
            out.write_all(&block)?;
            return portions.into_iter().try_for_each(|(part, portion)| out.write_all(part.csv(portion).text()));
        }
        let columns = self.columns();
        for row in 0..self.rows {
            text::write_row(columns.len(), |cell, out| columns[cell].write_cell(row, out), &mut block)?;
            if block.len() >= BLOCK {
                out.write_all(&block)?;
                block.clear();
            }
        }
        out.write_all(&block)
    }

    /// The value of a column in a row; missing if there is no such column.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn get(&self, row: usize, column: &str) -> Value {
        match self.spec.columns.iter().position(|spec| spec.name == column) {
            Some(index) => self.columns()[index].get(row),
            None => Value::Missing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema::{ColumnSpec, Kind};
    use super::*;
    use proptest::prelude::*;

    const TEXTS: TableSpec = TableSpec {
        name: "texts",
        meaning: "",
        columns: &[
            ColumnSpec { name: "a", kind: Kind::Text, unit: "", place: "", meaning: "" },
            ColumnSpec { name: "b, c", kind: Kind::Float, unit: "", place: "", meaning: "" },
            ColumnSpec { name: "d", kind: Kind::Text, unit: "", place: "", meaning: "" },
        ],
    };

    proptest! {
        #[test]
        fn tables_are_written_as_the_library_writes_them_whatever_their_texts_hold(
            rows in proptest::collection::vec(("[a,\"\r\n]{0,3}", any::<f64>(), "[a,\"\r\n;é]{0,3}"), 0..20)
        ) {
            let mut table = Table::new(&TEXTS);
            let mut csv = csv::Writer::from_writer(Vec::new());
            csv.write_record(["a", "b, c", "d"]).unwrap();
            for (a, b, d) in rows {
                table.push([a.as_str().into(), b.into(), d.as_str().into()]);
                csv.write_record([&a, &Some(b).filter(|b| b.is_finite()).map_or(String::new(), |b| b.to_string()), &d])
                    .unwrap();
            }
            prop_assert_eq!(table.to_csv(), csv.into_inner().unwrap());
        }
    }

    /// Rows of a portion.
    const ROWS: usize = 2;

    /// Rows of texts, made.
    #[derive(Debug)]
    struct Made(Vec<(String, f64, bool)>);

    impl MadeRows for Made {
        fn count(&self) -> usize {
            self.0.len()
        }

        fn each(&self, take: &mut dyn FnMut(&[Value])) {
            for (a, b, d) in &self.0 {
                take(&[a.as_str().into(), (*b).into(), d.then(|| a.as_str()).into()]);
            }
        }

        fn portions(&self) -> usize {
            self.0.chunks(ROWS).len()
        }

        fn csv(&self, portion: usize) -> Arc<CsvPortion> {
            let mut out = Vec::new();
            Self(self.0.chunks(ROWS).nth(portion).unwrap().to_vec()).each(&mut |row| {
                text::write_row(row.len(), |cell, out| row[cell].write_cell(out), &mut out).unwrap();
            });
            Arc::new(CsvPortion::new(out))
        }
    }

    proptest! {
        #[test]
        fn rows_that_are_made_are_those_that_are_pushed(
            parts in proptest::collection::vec(
                proptest::collection::vec(("[a,\"\r\n]{0,3}", any::<f64>(), any::<bool>()), 0..4), 1..4),
            kept in any::<usize>(),
        ) {
            let mut pushed = Table::new(&TEXTS);
            let mut made = Table::new(&TEXTS);
            for (number, part) in parts.iter().enumerate() {
                let mut table = Table::new(&TEXTS);
                for (a, b, d) in part {
                    table.push([a.as_str().into(), (*b).into(), d.then(|| a.as_str()).into()]);
                }
                pushed.append(table.clone());
                // One of the parts is no made one.
                let rows = Arc::new(Made(part.clone()));
                made.append(if number == kept % 4 { table } else { Table::made(&TEXTS, rows) });
            }
            prop_assert_eq!(made.rows(), pushed.rows());
            prop_assert_eq!(made.to_csv(), pushed.to_csv());
            let mut streamed = Vec::new();
            made.write_csv(&mut streamed).unwrap();
            prop_assert_eq!(streamed, pushed.to_csv());
            prop_assert_eq!(&made, &pushed);
            // Also when its columns are there, and with a row more.
            prop_assert_eq!(made.to_csv(), pushed.to_csv());
            for table in [&mut made, &mut pushed] {
                table.push([Value::word("b"), 1.0.into(), Value::Missing]);
            }
            prop_assert_eq!(made.to_csv(), pushed.to_csv());
        }
    }

    #[test]
    fn rows_of_more_than_one_portion_come_in_their_order() {
        let rows: Vec<_> = (0..101).map(|n| (n.to_string(), f64::from(n), n % 3 == 0)).collect();
        let made = Table::made(&TEXTS, Arc::new(Made(rows)));
        let text = String::from_utf8(made.to_csv()).unwrap();
        for (n, line) in text.lines().skip(1).enumerate() {
            assert!(line.starts_with(&format!("{n},{n},")), "{line}");
        }
        assert_eq!(text.lines().count(), 102);
    }
}
