//! What a measure of a scenario's run is.

use flowstart_units::Span;

use super::run::ScenarioRun;
use crate::quantity::{Dimension, Measured};

/// A measure of one run of a scenario. The type that has it holds the parameters and describes
/// them: its fields are the keys, and its first comment the words, that people read.
pub trait ScenarioMeasure {
    /// What its value is measured in.
    fn dimension(&self) -> Dimension;

    /// What a scenario must have for it.
    fn asks(&self) -> Asks<'_> {
        Asks::default()
    }

    /// True if its value is the share of answers, each yes or no, that a run gave.
    fn is_share_of_answers(&self) -> bool {
        false
    }

    /// Its value; `None` if there is nothing to measure, for instance no such transfer.
    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured>;
}

/// What a measure asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asks<'a> {
    /// A flow of this name.
    pub flow: Option<&'a str>,
    /// A link of this name; it is recorded. Without one the bottleneck is.
    pub link: Option<&'a str>,
    /// A time to begin at, if given, and the key that gives it.
    pub from: Option<(&'static str, Span)>,
    /// A time to end at, if given.
    pub until: Option<Span>,
    /// The base RTT, which only scenarios with a `[path]` have.
    pub rtt: bool,
}

impl<'a> Asks<'a> {
    /// A flow, if one is named.
    pub(super) fn flow(name: Option<&'a String>) -> Self {
        Self { flow: name.map(String::as_str), ..Self::default() }
    }

    /// The base RTT too, if so.
    pub(super) fn rtt(self, rtt: bool) -> Self {
        Self { rtt, ..self }
    }

    /// A link too, if one is named.
    pub(super) fn link(self, name: Option<&'a String>) -> Self {
        Self { link: name.map(String::as_str), ..self }
    }

    /// A window of time too, as far as given.
    pub(super) fn window(self, from: Option<Span>, until: Option<Span>) -> Self {
        Self { from: from.map(|from| ("from", from)), until, ..self }
    }
}
