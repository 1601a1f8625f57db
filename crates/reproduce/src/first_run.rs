//! The first run of one variant of a figure: what it measured is kept, so that a figure that takes
//! long can be held against the program without making all of its runs again.

use serde::{Deserialize, Serialize};

use super::evidence::is_close;

/// What the first run of a variant measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstRun {
    /// Name of the variant; empty if nothing is varied.
    pub variant: String,
    /// Id of every claim about it, and what was measured for it in the base unit of its dimension;
    /// `None` if there was nothing to measure.
    pub values: Vec<(String, Option<f64>)>,
}

impl FirstRun {
    /// True if nothing was measured, or an older program kept the file.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Where a new run measured something else, in words; empty if it measured the same.
    #[must_use]
    pub fn differences(&self, figure: &str, new: &Self) -> Vec<String> {
        let of = if self.variant.is_empty() { String::new() } else { format!(" ({})", self.variant) };
        let ids = |run: &Self| run.values.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
        if ids(self) != ids(new) || self.variant != new.variant {
            return vec![format!("{figure}{of}: other claims are recorded")];
        }
        let told = |value: Option<f64>| value.map_or_else(|| "nothing".to_owned(), |value| value.to_string());
        let same = |now: Option<f64>, then: Option<f64>| match (now, then) {
            (Some(now), Some(then)) => is_close(now, then),
            (now, then) => now.is_none() && then.is_none(),
        };
        let pairs = new.values.iter().zip(&self.values);
        pairs
            .filter(|((_, now), (_, then))| !same(*now, *then))
            .map(|((id, now), (_, then))| {
                format!("{figure}#{id}{of}, first run: {} now, {} recorded", told(*now), told(*then))
            })
            .collect()
    }
}
