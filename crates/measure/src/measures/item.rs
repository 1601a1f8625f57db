//! What a measure is: its words and its function in one item.

use std::fmt;

use flowstart_units::Bytes;

use super::run::{Newcomer, StartRun, TransferRun};

/// A measure of a race, declared in one place: what people read about it, and how it is computed.
///
/// In `name`, `heading` and `help` the parameter stands for `{}`.
#[derive(Debug)]
pub struct Item {
    /// Name in files, with its unit.
    pub name: &'static str,
    /// Heading in tables, without the unit.
    pub heading: &'static str,
    /// Unit, empty for plain numbers.
    pub unit: &'static str,
    /// Digits after the point in tables.
    pub digits: u8,
    /// Which value is better.
    pub better: Better,
    /// What must be there for it to be measured.
    pub needs: Needs,
    /// What is measured, where, and the formula.
    pub help: &'static str,
    /// How it is computed, and from what.
    pub function: Function,
}

/// Which value of a measure is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Small values.
    Lower,
    /// Large values.
    Higher,
    /// Neither as such.
    Neither,
}

/// What a measure needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Newcomers.
    Newcomers,
    /// Flows that were there before.
    Others,
}

/// How a measure is computed, and from what. `None` is a value that could not be measured.
#[derive(Clone, Copy, Debug)]
pub enum Function {
    /// From each newcomer; the mean over those that have a value.
    Newcomer(fn(&Newcomer<'_>) -> Option<f64>),
    /// The same with a number (percent, RTT0); with these numbers it is reported.
    NewcomerAt(&'static [u8], fn(&Newcomer<'_>, u8) -> Option<f64>),
    /// From the whole run with all its flows.
    Run(fn(&StartRun<'_>) -> Option<f64>),
    /// The same with a number (a percentile); with these numbers it is reported.
    RunAt(&'static [u8], fn(&StartRun<'_>, u8) -> Option<f64>),
    /// From the transfer of one size in a run of its own.
    Transfer(fn(&TransferRun<'_>) -> Option<f64>),
    /// From another measure's values of all transfer sizes, when all have been measured.
    OverSizes(&'static Item, fn(&[f64]) -> Option<f64>),
    /// From another measure's value and that of the reference contestant in the same run.
    ToReference(&'static Item, fn(f64, f64) -> Option<f64>),
}

impl Item {
    /// The measure, which has no parameter.
    #[must_use]
    pub const fn measure(&'static self) -> Measure {
        Measure { item: self, parameter: Parameter::None }
    }

    /// The measure at a number: percent, a percentile, or RTT0.
    #[must_use]
    pub const fn at(&'static self, number: u8) -> Measure {
        Measure { item: self, parameter: Parameter::Number(number) }
    }

    /// The measure of the transfer of a size.
    #[must_use]
    pub const fn of(&'static self, size: Bytes) -> Measure {
        Measure { item: self, parameter: Parameter::Size(size) }
    }

    /// True if it is of transfers of one size each.
    #[must_use]
    pub fn is_of_transfers(&self) -> bool {
        matches!(self.function, Function::Transfer(_))
    }

    /// The measures that it stands for in a race with transfers of `sizes`.
    pub(super) fn measures(&'static self, sizes: &[Bytes]) -> Vec<Measure> {
        match self.function {
            Function::NewcomerAt(numbers, _) | Function::RunAt(numbers, _) => {
                numbers.iter().map(|number| self.at(*number)).collect()
            }
            Function::Transfer(_) => sizes.iter().map(|size| self.of(*size)).collect(),
            Function::OverSizes(..) if sizes.is_empty() => Vec::new(),
            _ => vec![self.measure()],
        }
    }
}

/// What a measure is taken at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parameter {
    None,
    Number(u8),
    Size(Bytes),
}

/// A number measured in every run of a race: an [`Item`] with its parameter.
#[derive(Clone, Copy)]
pub struct Measure {
    item: &'static Item,
    pub(super) parameter: Parameter,
}

impl PartialEq for Measure {
    fn eq(&self, other: &Self) -> bool {
        self.is(other.item) && self.parameter == other.parameter
    }
}

impl Eq for Measure {}

impl fmt::Debug for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl Measure {
    /// True if it is this measure, with whatever parameter.
    #[must_use]
    pub fn is(&self, item: &Item) -> bool {
        self.item.name == item.name
    }

    /// Its declaration.
    #[must_use]
    pub fn item(&self) -> &'static Item {
        self.item
    }

    /// Name in files, with its unit: `completion_100kb_ms`.
    #[must_use]
    pub fn name(&self) -> String {
        self.item.name.replace("{}", &self.parameter.in_names())
    }

    /// Heading in tables, without the unit.
    #[must_use]
    pub fn heading(&self) -> String {
        self.item.heading.replace("{}", &self.parameter.in_text())
    }

    /// What is measured, where, and the formula.
    #[must_use]
    pub fn help(&self) -> String {
        self.item.help.replace("{}", &self.parameter.in_text())
    }

    /// Unit, empty for plain numbers.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        self.item.unit
    }

    /// True if it is computed from values of other measures instead of from a run.
    #[must_use]
    pub fn is_derived(&self) -> bool {
        matches!(self.item.function, Function::OverSizes(..) | Function::ToReference(..))
    }

    /// Its value in a run; `None` for measures of transfers and derived ones too.
    #[must_use]
    pub fn of_start(&self, run: &StartRun<'_>) -> Option<f64> {
        match (self.item.function, self.parameter) {
            (Function::Newcomer(value), Parameter::None) => mean(run.newcomers().iter().map(value)),
            (Function::NewcomerAt(_, value), Parameter::Number(number)) => {
                mean(run.newcomers().iter().map(|newcomer| value(newcomer, number)))
            }
            (Function::Run(value), Parameter::None) => value(run),
            (Function::RunAt(_, value), Parameter::Number(number)) => value(run, number),
            _ => None,
        }
    }

    /// Its value for the transfer of its size; `None` for all other measures.
    #[must_use]
    pub fn of_transfer(&self, run: &TransferRun<'_>) -> Option<f64> {
        match (self.item.function, self.parameter) {
            (Function::Transfer(value), Parameter::Size(size)) if size == run.size => value(run),
            _ => None,
        }
    }
}

/// The mean of the values there are.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let found: Vec<f64> = values.flatten().collect();
    let sum = found.iter().copied().reduce(|sum, value| sum + value)?;
    Some(sum / found.len() as f64)
}

impl Parameter {
    /// As a part of a column's name: "100 kB" becomes "100kb".
    fn in_names(self) -> String {
        self.in_text().to_lowercase().replace(' ', "").replace('.', "_")
    }

    fn in_text(self) -> String {
        match self {
            Self::None => String::new(),
            Self::Number(number) => number.to_string(),
            Self::Size(size) => size.to_string(),
        }
    }
}
