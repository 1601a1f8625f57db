//! Why something could not be done in the kernel, for people.

use std::fmt;

/// Why something could not be done: the cause, the remedy, and what the kernel said.
#[derive(Clone, Debug)]
pub struct Problem {
    /// What went wrong.
    pub cause: String,
    /// What would help; empty if nothing is known.
    pub remedy: String,
    /// The log of the loader and the kernel's verifier; may be empty.
    pub log: String,
    /// True if this user may not do or see it, which is another thing than that it is not there.
    pub is_denied: bool,
}

impl Problem {
    pub(crate) fn new(cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { cause: cause.into(), remedy: remedy.into(), log: String::new(), is_denied: false }
    }

    pub(crate) fn denied(cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { is_denied: true, ..Self::new(cause, remedy) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.remedy.is_empty() { f.write_str(&self.cause) } else { write!(f, "{}; {}", self.cause, self.remedy) }
    }
}

impl std::error::Error for Problem {}
