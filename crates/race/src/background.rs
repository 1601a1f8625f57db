//! Flows that are there before.

use std::fmt;
use std::str::FromStr;

use super::{Contestant, MAX_FLOWS, RaceError};

/// Greedy flows that are there, and up to speed, before the newcomers come.
#[derive(Clone, Debug, PartialEq)]
pub struct Background {
    /// How many.
    pub count: u32,
    /// What they run; its queue does not matter.
    pub flow: Contestant,
}

impl FromStr for Background {
    type Err = RaceError;

    /// Reads "cubic", "3 cubic", "2 slow_start+reno".
    fn from_str(text: &str) -> Result<Self, RaceError> {
        let trimmed = text.trim();
        if trimmed.contains('@') {
            return Err(RaceError::new(format!(
                "background \"{trimmed}\" names a queue, but it shares the contestant's; write it without the @"
            )));
        }
        let (count, name) = match trimmed.split_once(char::is_whitespace) {
            Some((count, name)) if count.starts_with(|c: char| c.is_ascii_digit() || c == '-') => (count, name),
            _ => ("1", trimmed),
        };
        let count = count.parse().ok().filter(|n| (1..=MAX_FLOWS).contains(n)).ok_or_else(|| {
            RaceError::new(format!("\"{count}\" is not a number of background flows between 1 and {MAX_FLOWS}"))
        })?;
        Ok(Self { count, flow: name.trim().parse()? })
    }
}

impl fmt::Display for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.count, self.flow.name())
    }
}
