//! One contestant in one cell with one seed: a line of a file.

use std::sync::LazyLock;

use flowstart_race::{Measure, exit_name};

use super::{SIZES, Work};

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Names cell, contestant, seed and every constant: see [`Work::key`].
    pub key: String,
    /// Why the start ended, if it did.
    pub exit: String,
    /// One value per measure of [`measures`]; what could not be measured is missing.
    pub values: Vec<Option<f64>>,
}

/// The measures of a record, in order.
#[must_use]
pub fn measures() -> &'static [Measure] {
    static MEASURES: LazyLock<Vec<Measure>> =
        LazyLock::new(|| Measure::all(&SIZES, true).into_iter().filter(|measure| !measure.is_derived()).collect());
    &MEASURES
}

/// Columns before the measures.
const KEYS: [&str; 10] =
    ["capacity_mbit_s", "rtt_ms", "buffer", "path", "load", "contestant", "queue", "seed", "key", "exit_reason"];

impl Record {
    pub(super) fn new(key: String, exit: Option<flowstart_congestion::ExitReason>, found: &[(Measure, f64)]) -> Self {
        let value = |measure: &Measure| found.iter().find(|(m, _)| m == measure).map(|(_, value)| *value);
        Self { key, exit: exit_name(exit).to_owned(), values: measures().iter().map(value).collect() }
    }

    /// The value of a measure.
    #[must_use]
    pub fn get(&self, measure: Measure) -> Option<f64> {
        let index = measures().iter().position(|known| *known == measure)?;
        self.values.get(index).copied().flatten()
    }

    /// The header of the file.
    #[must_use]
    pub fn header() -> Vec<String> {
        KEYS.iter().map(|key| (*key).to_owned()).chain(measures().iter().map(Measure::name)).collect()
    }

    /// As fields of a line. Numbers are printed so that reading gives the same bits.
    #[must_use]
    pub fn fields(&self, work: &Work) -> Vec<String> {
        let cell = &work.cell;
        let mut fields = vec![
            cell.capacity.as_mbps_f64().to_string(),
            cell.rtt.as_millis_f64().to_string(),
            cell.room(),
            cell.path.to_string(),
            cell.load.to_string(),
            work.contestant.to_string(),
            work.queue(),
            work.seed.to_string(),
            self.key.clone(),
            self.exit.clone(),
        ];
        fields.extend(self.values.iter().map(|value| value.map_or(String::new(), |value| value.to_string())));
        fields
    }

    /// From the fields of a line; `None` if it is damaged.
    #[must_use]
    pub fn from_fields<'a>(fields: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut fields = fields.into_iter().skip(KEYS.len() - 2);
        let (key, exit) = (fields.next()?.to_owned(), fields.next()?.to_owned());
        let value = |text: &str| match text {
            "" => Some(None),
            number => number.parse().ok().filter(|number: &f64| number.is_finite()).map(Some),
        };
        let values: Vec<Option<f64>> = fields.map(value).collect::<Option<_>>()?;
        (values.len() == measures().len() && !key.is_empty()).then_some(Self { key, exit, values })
    }
}
