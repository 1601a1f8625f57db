//! A cell, and a column of them.

use std::borrow::Cow;

use super::schema::Kind;
use super::text::{write_flag, write_number, write_text, write_whole};

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

    /// Appends its text, as [`Column::write_cell`] does.
    #[inline]
    pub(super) fn write_cell(&self, out: &mut Vec<u8>) -> bool {
        match self {
            Self::Missing => {}
            Self::Text(text) => return write_text(text, out),
            Self::Integer(n) => write_whole(*n, out),
            Self::Float(n) => write_number(*n, out),
            Self::Flag(flag) => write_flag(*flag, out),
        }
        true
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
    pub(super) fn new(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Text(Vec::new()),
            Kind::Integer => Self::Integer(Vec::new()),
            Kind::Float => Self::Float(Vec::new()),
            Kind::Flag => Self::Flag(Vec::new()),
        }
    }

    /// Appends a value; one of another kind than the column's becomes missing.
    #[inline]
    pub(super) fn push(&mut self, value: Value) {
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

    pub(super) fn append(&mut self, other: Self) {
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
    pub(super) fn write_cell(&self, row: usize, out: &mut Vec<u8>) -> bool {
        match self {
            Self::Text(column) => return column[row].as_deref().is_none_or(|text| write_text(text, out)),
            Self::Integer(column) => column[row].map_or((), |n| write_whole(n, out)),
            Self::Float(column) => column[row].map_or((), |n| write_number(n, out)),
            Self::Flag(column) => column[row].map_or((), |flag| write_flag(flag, out)),
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
