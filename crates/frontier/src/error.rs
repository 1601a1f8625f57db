//! What can go wrong.

use std::fmt;

use flowstart_race::RaceError;
use flowstart_scenario::SpecError;

/// Why a text is none of a frontier's parts, or a frontier cannot be run. Its `Display` is one
/// sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontierError {
    message: String,
}

impl FrontierError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl fmt::Display for FrontierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for FrontierError {}

impl From<SpecError> for FrontierError {
    fn from(error: SpecError) -> Self {
        Self::new(error)
    }
}

impl From<RaceError> for FrontierError {
    fn from(error: RaceError) -> Self {
        Self::new(error.to_string())
    }
}
