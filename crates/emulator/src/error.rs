//! What can go wrong.

use std::fmt;

/// Why a world could not be made or kept running. Its `Display` is one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// This machine does not allow it; the sentence says what is missing and what would help.
    NotPossible(String),
    /// The configuration makes no sense.
    Config(String),
    /// The system refused something that should have worked.
    Failed(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPossible(message) | Self::Config(message) | Self::Failed(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    /// What was being done, and what the system said.
    pub(crate) fn doing(what: impl fmt::Display, error: impl fmt::Display) -> Self {
        Self::Failed(format!("cannot {what}: {error}"))
    }
}
