//! Rates that were probed in real time, whatever carried them.

use flowstart_service_curve::{RateProbe, Record, estimate_records};
use flowstart_units::Rate;

use super::{Attained, Benchmark, Parts};
use flowstart_race::RaceError;

/// Whose rates are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptOf<'a> {
    /// What tables call the stack.
    pub label: &'a str,
    /// All that makes it another one if it changes: its command, its kernel's release. What was
    /// kept of one is of no use for another.
    pub identity: &'a str,
}

/// What is kept of a rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeptRate {
    /// Its messages.
    pub records: Vec<Record>,
    /// What else is to be known of how it was measured, in the words of whoever measured it.
    pub path: serde_json::Value,
}

/// Why rates cannot be kept, or what was kept cannot be used. Its `Display` is a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptError(String);

impl KeptError {
    /// With this sentence.
    #[must_use]
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl std::fmt::Display for KeptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for KeptError {}

impl From<String> for KeptError {
    fn from(sentence: String) -> Self {
        Self(sentence)
    }
}

/// Where rates that are finished are kept, so that a benchmark can go on later.
pub trait Kept {
    /// This rate of a stack, if it was finished before.
    ///
    /// # Errors
    /// A sentence about what cannot be read.
    fn known(&self, of: KeptOf<'_>, rate: Rate) -> Result<Option<KeptRate>, KeptError>;

    /// Keeps a rate that is finished: its messages and its path, as in [`KeptRate`].
    ///
    /// # Errors
    /// A sentence about what cannot be written.
    fn keep(&self, of: KeptOf<'_>, rate: Rate, records: &[Record], path: serde_json::Value) -> Result<(), KeptError>;
}

/// A rate of a real stack that was probed.
#[derive(Clone, Debug)]
pub struct ProbedRate {
    /// What it came to.
    pub probe: RateProbe,
    /// Its messages, in the order of sending.
    pub records: Vec<Record>,
    parts: Parts,
}

impl ProbedRate {
    /// What was probed and judged just now.
    #[must_use]
    pub fn new(benchmark: &Benchmark, probe: RateProbe, records: Vec<Record>) -> Self {
        let began = records.first().map(|record| record.sent).unwrap_or_default();
        let mut parts = Parts::new(probe.rate, began + benchmark.probe.warm_up);
        records.iter().for_each(|record| parts.record(record));
        Self { probe, records, parts }
    }

    /// What was kept of a rate, judged again.
    ///
    /// # Errors
    /// A sentence about what cannot be used.
    pub fn again(benchmark: &Benchmark, rate: Rate, records: Vec<Record>) -> Result<Self, KeptError> {
        let unusable = |error: &dyn std::fmt::Display| KeptError(format!("what was kept of {rate}: {error}"));
        let every = records.iter().copied().map(Ok);
        let estimate = estimate_records(every, Some(rate), &benchmark.procedure());
        let probe = estimate.map_err(|error| unusable(&error))?.probes.pop();
        let probe = probe.ok_or_else(|| unusable(&"nothing is in it"))?;
        Ok(Self::new(benchmark, probe, records))
    }
}

impl Benchmark {
    /// What follows from all rates of a stack that were probed.
    ///
    /// # Errors
    /// If no curve can be made of them.
    pub fn attained_by(
        &self,
        label: String,
        conditions: String,
        probed: Vec<ProbedRate>,
    ) -> Result<Attained, RaceError> {
        let (mut probes, mut records, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        for one in probed {
            records.push((one.probe.rate, one.records));
            probes.push(one.probe);
            parts.push(one.parts);
        }
        // All that was measured counts.
        let estimate = self.made_of(probes);
        let counts = |rate: Rate| estimate.probes.iter().any(|probe| probe.rate == rate);
        records.retain(|(rate, _)| counts(*rate));
        parts.retain(|parts| counts(parts.rate) && parts.count() > 0);
        let attained = self.attained(label, conditions, estimate, None)?;
        let records = records.into_iter().flat_map(|(_, records)| records).collect();
        Ok(Attained { records, parts, ..attained })
    }
}
