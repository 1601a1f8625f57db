//! Why a figure cannot be reproduced.

use std::fmt;

use flowstart_parallel::NoThreads;

/// Why a figure cannot be reproduced, or what is recorded of it cannot be judged. Its `Display` is
/// a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReproduceError(String);

impl ReproduceError {
    /// With this sentence.
    #[must_use]
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl fmt::Display for ReproduceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ReproduceError {}

impl From<String> for ReproduceError {
    fn from(sentence: String) -> Self {
        Self(sentence)
    }
}

impl From<NoThreads> for ReproduceError {
    fn from(error: NoThreads) -> Self {
        Self(error.to_string())
    }
}
