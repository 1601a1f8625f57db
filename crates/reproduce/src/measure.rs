//! What a claim measures in one run: the registry of measures, those of runs of scenarios and those
//! by probing.

use schemars::JsonSchema;
use serde::Deserialize;

use flowstart_measure::claims::{self, Asks, ScenarioMeasure, ScenarioRun};
use flowstart_measure::{Dimension, Measured, scenario_measures};
use flowstart_units::Rate;

use super::attained::Attained;
use super::probing_measures::{self as probing, ProbingMeasure};

/// How a measure is computed.
enum Kind<'a> {
    /// From one run of a scenario.
    Scenario(&'a dyn ScenarioMeasure),
    /// From probes at several rates.
    Probing(&'a dyn ProbingMeasure),
}

macro_rules! registry {
    (scenarios { $($Scenario:ident,)* } probing { $($Probing:ident,)* }) => {
        /// A measure with its parameters. Times without another word count from the start of the
        /// run; `flow` is the name of a flow (or of arrivals) and means all of that name; a missing
        /// `flow` means everybody; a missing `link` means the bottleneck (the first link).
        #[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        #[expect(missing_docs, reason = "each is described where it is declared")]
        pub enum Measure {
            $($Scenario(claims::$Scenario),)*
            $($Probing(probing::$Probing),)*
        }

        impl Measure {
            fn kind(&self) -> Kind<'_> {
                match self {
                    $(Self::$Scenario(measure) => Kind::Scenario(measure),)*
                    $(Self::$Probing(measure) => Kind::Probing(measure),)*
                }
            }
        }
    };
}

scenario_measures! {
    registry! {
        probing {
            AttainableRate,
            LongTermRate,
            ServiceOrigin,
            TimeToShare,
            MessageDelay,
            DelayDecay,
            DelayShare,
            WindowCorrelation,
            CorrelationPeak,
            FilmViolations,
            FilmLooseness,
            FilmBound,
        }
    }
}

/// Names of all measures of claims, each with the first sentence of what it means.
#[must_use]
pub fn claim_measures() -> Vec<(String, String)> {
    let schema = schemars::schema_for!(Measure);
    let kinds = schema.get("oneOf").and_then(serde_json::Value::as_array).into_iter().flatten();
    kinds
        .filter_map(|kind| {
            let name = kind.pointer("/properties/kind/const")?.as_str()?;
            let words = kind.get("description").and_then(serde_json::Value::as_str).unwrap_or_default();
            let first = words.split_once(". ").map_or(words, |(first, _)| first);
            Some((name.to_owned(), first.trim_end_matches('.').replace('\n', " ")))
        })
        .collect()
}

impl Measure {
    /// What its value is measured in.
    #[must_use]
    pub fn dimension(&self) -> Dimension {
        match self.kind() {
            Kind::Scenario(measure) => measure.dimension(),
            Kind::Probing(measure) => measure.dimension(),
        }
    }

    /// What a scenario must have for it.
    pub(super) fn asks(&self) -> Asks<'_> {
        match self.kind() {
            Kind::Scenario(measure) => measure.asks(),
            Kind::Probing(_) => Asks::default(),
        }
    }

    /// True if it is about probes at several rates instead of a simulation.
    pub(super) fn is_probing(&self) -> bool {
        matches!(self.kind(), Kind::Probing(_))
    }

    /// True if a run's value is the share of answers, each yes or no.
    pub(super) fn is_share_of_answers(&self) -> bool {
        matches!(self.kind(), Kind::Scenario(measure) if measure.is_share_of_answers())
    }

    /// True if a film must be sent through a loop many times.
    pub(super) fn replays(&self) -> bool {
        matches!(self.kind(), Kind::Probing(measure) if measure.replays())
    }

    /// The probing rate it names.
    pub(super) fn probing_rate(&self) -> Option<Rate> {
        match self.kind() {
            Kind::Scenario(_) => None,
            Kind::Probing(measure) => measure.rate(),
        }
    }

    /// The value in a run; `None` if there is nothing to measure, for instance no such transfer.
    pub(super) fn of_run(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        match self.kind() {
            Kind::Scenario(measure) => measure.value(run),
            Kind::Probing(_) => None,
        }
    }

    /// The value by probing; `None` if there is nothing to measure, for instance at a rate above
    /// the attainable ones.
    pub(super) fn of_probes(&self, attained: &Attained) -> Option<Measured> {
        match self.kind() {
            Kind::Scenario(_) => None,
            Kind::Probing(measure) => measure.value(attained),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_measure_has_a_name_of_its_own_and_words_on_the_page() {
        let page = crate::figures_page();
        let schema = schemars::schema_for!(Measure);
        let kinds = schema.get("oneOf").and_then(serde_json::Value::as_array).unwrap();
        let mut names = BTreeSet::new();
        for kind in kinds {
            let name = kind["properties"]["kind"]["const"].as_str().unwrap();
            assert!(names.insert(name), "{name}");
            let words = kind["description"].as_str().unwrap_or_default();
            assert!(words.len() > 10, "{name}: {words}");
            assert!(page.contains(&format!("`kind = \"{name}\"`: ")), "{name}");
        }
        assert_eq!(names.len(), 36);
    }
}
