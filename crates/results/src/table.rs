//! A table filled row by row and kept by columns.

use super::schema::{Kind, TableSpec};

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing to say.
    Missing,
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// True or false.
    Flag(bool),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
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
    Text(Vec<Option<String>>),
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

    pub(super) fn get(&self, row: usize) -> Value {
        match self {
            Self::Text(column) => column[row].as_deref().into(),
            Self::Integer(column) => column[row].map_or(Value::Missing, Value::Integer),
            Self::Float(column) => column[row].map_or(Value::Missing, Value::Float),
            Self::Flag(column) => column[row].into(),
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
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(self.spec.columns.iter().map(|column| column.name))?;
        for row in 0..self.rows {
            writer.write_record(self.columns.iter().map(|column| match column.get(row) {
                Value::Missing => String::new(),
                Value::Text(text) => text,
                Value::Integer(n) => n.to_string(),
                Value::Float(n) => n.to_string(),
                Value::Flag(flag) => flag.to_string(),
            }))?;
        }
        writer.flush()
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
