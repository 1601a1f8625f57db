//! Tables: columns that explain themselves, rows of typed cells.

use crate::color::Color;
use crate::text;

/// On which side the cells of a column stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Align {
    /// Text.
    #[default]
    Left,
    /// Numbers: with the same digits in every row the decimal points stand below each other.
    Right,
}

/// Which value of a column is the best one; it is set off in terminal and page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Best {
    /// The column does not rank.
    #[default]
    None,
    /// The smallest number wins (delays, losses, completion times).
    Lowest,
    /// The largest number wins (bytes delivered, utilisation).
    Highest,
}

/// One column: what it is called, in which unit, and what it means.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Column {
    /// Heading for people, without the unit.
    pub heading: String,
    /// Unit of every number of the column, e.g. `ms`; empty when there is none.
    pub unit: String,
    /// Name for machines (CSV header), with its unit, e.g. `exit_time_ms`.
    pub name: String,
    /// What is measured, where, and what it includes: one sentence.
    pub help: String,
    /// On which side cells stand.
    pub align: Align,
    /// Which value wins.
    pub best: Best,
    /// Whether a value wins only if its interval is clear of all others, so that none does where
    /// they have no intervals or the best ones are alike.
    pub apart: bool,
    /// Whether the column says what its row is about. Key columns come first and are repeated when
    /// a narrow terminal splits the table into several blocks.
    pub key: bool,
}

impl Column {
    /// A column of text, left-aligned.
    #[must_use]
    pub fn text(heading: impl Into<String>) -> Self {
        let heading = heading.into();
        Self { name: machine_name(&heading, ""), heading, ..Self::default() }
    }

    /// A text column that names the row: repeated in every block of a split table.
    #[must_use]
    pub fn key(heading: impl Into<String>) -> Self {
        Self { key: true, ..Self::text(heading) }
    }

    /// A column of numbers, right-aligned, in `unit` (empty: none).
    #[must_use]
    pub fn number(heading: impl Into<String>, unit: impl Into<String>) -> Self {
        let (heading, unit) = (heading.into(), unit.into());
        Self { name: machine_name(&heading, &unit), heading, unit, align: Align::Right, ..Self::default() }
    }

    /// The same column with another name for machines.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The same column with an explanation.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }

    /// The same column with a winner.
    #[must_use]
    pub fn best(mut self, best: Best) -> Self {
        self.best = best;
        self
    }

    /// Lets a value win only if its interval is clear of all others: where they have no intervals,
    /// or the best ones are alike, none does.
    #[must_use]
    pub fn apart(mut self) -> Self {
        self.apart = true;
        self
    }
}

/// Letters and digits in lower case joined by `_`, the unit last: `Exit time`, `ms` becomes
/// `exit_time_ms`.
pub(crate) fn machine_name(heading: &str, unit: &str) -> String {
    let mut name = String::new();
    for part in [heading, unit] {
        for word in part.replace('%', " percent ").split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()) {
            if !name.is_empty() {
                name.push('_');
            }
            name.push_str(&word.to_lowercase());
        }
    }
    name
}

/// One value of a table.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Cell {
    /// Nothing was measured here, printed as a dash (empty in CSV).
    #[default]
    Missing,
    /// Words.
    Text(String),
    /// A number printed with `digits` digits after the point. Not finite prints as missing.
    Number {
        /// The value in the unit of the column.
        value: f64,
        /// Digits after the decimal point.
        digits: u8,
    },
    /// A number with its 95 % interval.
    Quantity {
        /// The estimate in the unit of the column.
        value: f64,
        /// Lower end of the 95 % interval.
        low: f64,
        /// Upper end of the 95 % interval.
        high: f64,
        /// Digits after the decimal point, for all three.
        digits: u8,
    },
    /// Only that a number lies between these is known. It is no best one, and none that it may be
    /// better than is. In CSV the number is empty, and its interval is there.
    Between {
        /// It is this at least, in the unit of the column.
        low: f64,
        /// It is this at most, if anything is known of that.
        high: Option<f64>,
        /// Digits after the decimal point, for both.
        digits: u8,
    },
}

impl Cell {
    /// Words.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A number with `digits` digits after the point.
    #[must_use]
    pub const fn number(value: f64, digits: u8) -> Self {
        Self::Number { value, digits }
    }

    /// A count (exact up to 2^53).
    #[must_use]
    pub fn count(value: u64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "documented; counts of packets and bytes stay below 2^53")]
        Self::Number { value: value as f64, digits: 0 }
    }

    /// A number with its 95 % interval.
    #[must_use]
    pub const fn quantity(value: f64, low: f64, high: f64, digits: u8) -> Self {
        Self::Quantity { value, low, high, digits }
    }

    /// A number of which only bounds are known.
    #[must_use]
    pub const fn between(low: f64, high: Option<f64>, digits: u8) -> Self {
        Self::Between { low, high, digits }
    }

    /// A number, or missing.
    #[must_use]
    pub fn number_or_missing(value: Option<f64>, digits: u8) -> Self {
        value.map_or(Self::Missing, |value| Self::number(value, digits))
    }

    /// The number in the cell, if there is a finite one.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Number { value, .. } | Self::Quantity { value, .. } if value.is_finite() => Some(*value),
            _ => None,
        }
    }
}

/// One row: its cells, one per column, and the colour of its contestant.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Row {
    /// The contestant's colour, shown as a dot before the first cell.
    pub color: Option<Color>,
    /// The cells in the order of the columns; missing ones at the end count as [`Cell::Missing`],
    /// surplus ones are ignored.
    pub cells: Vec<Cell>,
}

/// A table for the terminal, Markdown, CSV and the page.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Table {
    /// Title; empty for none.
    pub title: String,
    /// The columns, key columns first.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Row>,
    /// Remarks below the table.
    pub notes: Vec<String>,
}

impl Table {
    /// An empty table with these columns.
    #[must_use]
    pub fn new(title: impl Into<String>, columns: Vec<Column>) -> Self {
        Self { title: title.into(), columns, ..Self::default() }
    }

    /// Appends a row.
    pub fn push(&mut self, cells: Vec<Cell>) {
        self.rows.push(Row { color: None, cells });
    }

    /// Appends a row of a contestant.
    pub fn push_colored(&mut self, color: Color, cells: Vec<Cell>) {
        self.rows.push(Row { color: Some(color), cells });
    }
}

impl Table {
    /// The cell of a row and a column, [`Cell::Missing`] when the row is too short.
    pub(crate) fn cell(&self, row: usize, column: usize) -> &Cell {
        self.rows.get(row).and_then(|row| row.cells.get(column)).unwrap_or(&Cell::Missing)
    }

    /// For every row, whether its cell of this column is a best one.
    ///
    /// Numbers that print alike are equally good; when all are, none is set off. Where the column
    /// asks for intervals that are apart, it is one at most: its interval, as it prints, meets that
    /// of no other, and all have one.
    pub(crate) fn winners(&self, column: usize) -> Vec<bool> {
        let cells = (0..self.rows.len()).map(|row| self.cell(row, column));
        let better: fn(f64, f64) -> bool = match self.columns.get(column).map(|column| column.best) {
            Some(Best::Lowest) => |a, b| a < b,
            Some(Best::Highest) => |a, b| a > b,
            Some(Best::None) | None => return vec![false; self.rows.len()],
        };
        let best = cells.clone().filter(|cell| cell.value().is_some()).reduce(|best, cell| {
            if cell.value().zip(best.value()).is_some_and(|(a, b)| better(a, b)) { cell } else { best }
        });
        if self.columns.get(column).is_some_and(|column| column.apart) {
            let numbers = || cells.clone().filter(|cell| cell.ends().is_some());
            let known = numbers().all(|cell| matches!(cell, Cell::Quantity { .. } | Cell::Between { .. }));
            // The best one meets itself.
            let alone = best.filter(|best| known && numbers().filter(|cell| cell.meets(best)).count() == 1);
            // What is only known to be beyond it is better.
            let alone = alone.filter(|best| {
                let outdoes = |[low, high]: [f64; 2], [from, to]: [f64; 2]| better(low, from) || better(high, to);
                !numbers().any(|cell| cell.ends().zip(best.ends()).is_some_and(|(one, best)| outdoes(one, best)))
            });
            let several = numbers().count() > 1;
            return cells.map(|cell| several && alone.is_some_and(|alone| std::ptr::eq(alone, cell))).collect();
        }
        let best = best.and_then(Cell::main);
        let wins: Vec<Option<bool>> =
            cells.map(|cell| cell.value().map(|_| cell.main().as_deref() == best.as_deref())).collect();
        let differ = wins.contains(&Some(false));
        wins.into_iter().map(|win| differ && win == Some(true)).collect()
    }

    /// Whether any cell of the column has an interval.
    pub(crate) fn has_intervals(&self, column: usize) -> bool {
        (0..self.rows.len()).any(|row| matches!(self.cell(row, column), Cell::Quantity { .. } | Cell::Between { .. }))
    }
}

impl Cell {
    /// The words or the number, without interval; `None` when missing.
    #[must_use]
    pub fn main(&self) -> Option<String> {
        match self {
            Self::Missing => None,
            Self::Text(text) => Some(text.clone()),
            Self::Number { value, digits } | Self::Quantity { value, digits, .. } => text::number(*value, *digits),
            Self::Between { low, high: None, digits } => Some(format!("\u{2265} {}", text::number(*low, *digits)?)),
            Self::Between { low, high: Some(high), digits } => {
                Some(format!("{} to {}", text::number(*low, *digits)?, text::number(*high, *digits)?))
            }
        }
    }

    /// The ends of the interval as they print, or the number twice.
    fn ends(&self) -> Option<[f64; 2]> {
        let (ends, digits) = match *self {
            Self::Number { value, digits } => ([value; 2], digits),
            Self::Quantity { low, high, digits, .. } => ([low, high], digits),
            Self::Between { low, high, digits } => ([low, high.unwrap_or(f64::INFINITY)], digits),
            Self::Missing | Self::Text(_) => return None,
        };
        Some(ends.map(|end| text::number(end, digits).and_then(|text| text.parse().ok()).unwrap_or(end)))
    }

    /// Whether the intervals of the two have a point in common.
    fn meets(&self, other: &Self) -> bool {
        self.ends().zip(other.ends()).is_some_and(|([low, high], [from, to])| low <= to && from <= high)
    }

    /// The interval, ` ± 0.3` or, when it is lopsided, ` [1.2, 1.9]`; empty when there is none.
    pub(crate) fn interval(&self) -> String {
        let Self::Quantity { value, low, high, digits } = *self else { return String::new() };
        let (below, above) = (text::number(value - low, digits), text::number(high - value, digits));
        match (below, above, text::number(low, digits), text::number(high, digits)) {
            (Some(below), Some(above), _, _) if below == above => format!(" ± {above}"),
            (_, _, Some(low), Some(high)) => format!(" [{low}, {high}]"),
            _ => String::new(),
        }
    }
}
