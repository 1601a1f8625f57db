//! A table filled row by row and kept by columns.

use std::borrow::Cow;
use std::io::Write as _;

use super::schema::{Kind, TableSpec};

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing to say.
    Missing,
    /// Text.
    Text(Cow<'static, str>),
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// True or false.
    Flag(bool),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(Cow::Owned(text.to_owned()))
    }
}

impl Value {
    /// A word of the program's own, which is not copied.
    #[must_use]
    pub const fn word(word: &'static str) -> Self {
        Self::Text(Cow::Borrowed(word))
    }
}

impl From<u64> for Value {
    fn from(n: u64) -> Self {
        Self::Integer(i64::try_from(n).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value {
    fn from(n: u32) -> Self {
        Self::Integer(i64::from(n))
    }
}

impl From<f64> for Value {
    fn from(n: f64) -> Self {
        if n.is_finite() { Self::Float(n) } else { Self::Missing }
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}

/// One column's values, `None` where one is missing.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Texts.
    Text(Vec<Option<Cow<'static, str>>>),
    /// Whole numbers.
    Integer(Vec<Option<i64>>),
    /// Numbers.
    Float(Vec<Option<f64>>),
    /// True or false.
    Flag(Vec<Option<bool>>),
}

impl Column {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Text(Vec::new()),
            Kind::Integer => Self::Integer(Vec::new()),
            Kind::Float => Self::Float(Vec::new()),
            Kind::Flag => Self::Flag(Vec::new()),
        }
    }

    /// Appends a value; one of another kind than the column's becomes missing.
    #[inline]
    fn push(&mut self, value: Value) {
        match (self, value) {
            (Self::Text(column), Value::Text(text)) => column.push(Some(text)),
            (Self::Integer(column), Value::Integer(n)) => column.push(Some(n)),
            (Self::Float(column), Value::Float(n)) => column.push(Some(n)),
            (Self::Flag(column), Value::Flag(flag)) => column.push(Some(flag)),
            (Self::Text(column), _) => column.push(None),
            (Self::Integer(column), _) => column.push(None),
            (Self::Float(column), _) => column.push(None),
            (Self::Flag(column), _) => column.push(None),
        }
    }

    fn append(&mut self, other: Self) {
        match (self, other) {
            (Self::Text(a), Self::Text(mut b)) => a.append(&mut b),
            (Self::Integer(a), Self::Integer(mut b)) => a.append(&mut b),
            (Self::Float(a), Self::Float(mut b)) => a.append(&mut b),
            (Self::Flag(a), Self::Flag(mut b)) => a.append(&mut b),
            _ => {}
        }
    }

    /// Appends the text of a cell. False if it needs quotes.
    #[inline]
    fn write_cell(&self, row: usize, out: &mut Vec<u8>) -> bool {
        match self {
            Self::Text(column) => {
                let Some(text) = column[row].as_deref().map(str::as_bytes) else { return true };
                out.extend_from_slice(text);
                return !text.iter().any(|byte| matches!(byte, b'"' | b',' | b'\r' | b'\n'));
            }
            Self::Integer(column) => column[row].map_or((), |n| write_whole(n, out)),
            Self::Float(column) => column[row].map_or((), |n| write_number(n, out)),
            Self::Flag(column) => match column[row] {
                Some(true) => out.extend_from_slice(b"true"),
                Some(false) => out.extend_from_slice(b"false"),
                None => {}
            },
        }
        true
    }

    pub(super) fn get(&self, row: usize) -> Value {
        match self {
            Self::Text(column) => column[row].clone().map_or(Value::Missing, Value::Text),
            Self::Integer(column) => column[row].map_or(Value::Missing, Value::Integer),
            Self::Float(column) => column[row].map_or(Value::Missing, Value::Float),
            Self::Flag(column) => column[row].into(),
        }
    }
}

/// Many are numbers of runs, flows and links, of a digit each.
fn write_whole(n: i64, out: &mut Vec<u8>) {
    if (0..10).contains(&n) {
        return out.push(b'0' + n as u8);
    }
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
}

/// A number as `Display` writes it: the shortest decimal that reads back to it. Most are times in
/// whole nanoseconds, for which an integer division finds the same text faster: decimals of at most
/// 15 digits are distinct numbers, so none that is shorter could read back to the same. Zero is in
/// every row: what an application that reads at once waits.
fn write_number(n: f64, out: &mut Vec<u8>) {
    const BILLION: u64 = 1_000_000_000;
    if n.to_bits() == 0 {
        return out.push(b'0');
    }
    let scaled = n * BILLION as f64;
    let billionths = (scaled + 0.5) as u64;
    let exact = (billionths as f64 / BILLION as f64).to_bits() == n.to_bits();
    if !(1.0..1e15).contains(&scaled) || !exact {
        // Writing into memory does not fail.
        let _ = write!(out, "{n}");
        return;
    }
    let rest = billionths % BILLION;
    write_whole((billionths / BILLION) as i64, out);
    if rest > 0 {
        // A one before the nine digits, where the point comes, keeps their zeros.
        let point = out.len();
        write_whole((BILLION + rest) as i64, out);
        out[point] = b'.';
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub(super) spec: &'static TableSpec,
    pub(super) columns: Vec<Column>,
    rows: usize,
}

impl Table {
    /// An empty table.
    #[must_use]
    pub fn new(spec: &'static TableSpec) -> Self {
        Self { spec, columns: spec.columns.iter().map(|column| Column::new(column.kind)).collect(), rows: 0 }
    }

    /// Its declaration.
    #[must_use]
    pub fn spec(&self) -> &'static TableSpec {
        self.spec
    }

    /// Its values, in the order in which the [declaration](Self::spec) has the columns.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// How many rows it has.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends a row: a value per column, in order; columns without a value are missing.
    pub fn push(&mut self, row: impl IntoIterator<Item = Value>) {
        let mut values = row.into_iter();
        for column in &mut self.columns {
            column.push(values.next().unwrap_or(Value::Missing));
        }
        debug_assert!(values.next().is_none(), "more values than columns in {}", self.spec.name);
        self.rows += 1;
    }

    /// Appends all rows of another table of the same kind.
    pub fn append(&mut self, other: Self) {
        debug_assert_eq!(self.spec.name, other.spec.name);
        if self.rows == 0 {
            *self = other;
            return;
        }
        self.rows += other.rows;
        for (column, more) in self.columns.iter_mut().zip(other.columns) {
            column.append(more);
        }
    }

    /// As CSV: a header line, then the rows; what is missing is empty.
    #[must_use]
    pub fn to_csv(&self) -> Vec<u8> {
        let mut content = Vec::new();
        // Writing into memory does not fail.
        let _ = self.write_csv(&mut content);
        content
    }

    /// The same, written row by row.
    ///
    /// # Errors
    /// If `out` cannot be written to.
    pub fn write_csv(&self, out: impl std::io::Write) -> std::io::Result<()> {
        /// Bytes that are written at once.
        const BLOCK: usize = 1 << 16;
        let mut out = out;
        let mut block = Vec::with_capacity(BLOCK + BLOCK / 4);
        csv::Writer::from_writer(&mut block).write_record(self.spec.columns.iter().map(|column| column.name))?;
        for row in 0..self.rows {
            self.write_row(row, &mut block)?;
            if block.len() >= BLOCK {
                out.write_all(&block)?;
                block.clear();
            }
        }
        out.write_all(&block)
    }

    /// Appends a row. Only texts may need quotes, and few do: those rows are the library's.
    fn write_row(&self, row: usize, out: &mut Vec<u8>) -> std::io::Result<()> {
        /// Bytes that are expected of a cell.
        const CELL: usize = 16;
        let began = out.len();
        let mut plain = self.columns.len() > 1;
        out.reserve(self.columns.len() * CELL);
        for column in &self.columns {
            plain &= column.write_cell(row, out);
            out.push(b',');
        }
        if plain {
            if let Some(comma) = out.last_mut() {
                *comma = b'\n';
            }
            return Ok(());
        }
        out.truncate(began);
        let mut record = csv::ByteRecord::new();
        let mut cell = Vec::new();
        for column in &self.columns {
            cell.clear();
            column.write_cell(row, &mut cell);
            record.push_field(&cell);
        }
        csv::Writer::from_writer(out).write_byte_record(&record).map_err(std::io::Error::from)
    }

    /// The value of a column in a row; missing if there is no such column.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn get(&self, row: usize, column: &str) -> Value {
        match self.spec.columns.iter().position(|spec| spec.name == column) {
            Some(index) => self.columns[index].get(row),
            None => Value::Missing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema::ColumnSpec;
    use super::*;
    use proptest::prelude::*;

    fn written(n: f64) -> String {
        let mut out = Vec::new();
        write_number(n, &mut out);
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #[test]
        fn numbers_are_written_as_display_writes_them(nanos in 0_u64..2_000_000_000_000_000, any: f64, some in -1e7..1e7) {
            for n in [nanos as f64 / 1e9, nanos as f64 / 1e3, nanos as f64, any, some, -(nanos as f64 / 1e9)] {
                prop_assert_eq!(written(n), n.to_string());
            }
        }
    }

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

    #[test]
    fn zero_and_the_ends_of_the_fast_way_are_right() {
        for n in [0.0, -0.0, 1e-9, 1e-10, 0.1, 0.3, 1.0, 999_999.999_999_999, 1e6, 1e21, f64::MAX, f64::MIN_POSITIVE] {
            assert_eq!(written(n), n.to_string());
        }
    }
}
