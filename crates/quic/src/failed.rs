//! What goes wrong: with a transfer, and before there is one.

use std::fmt;

use flowstart_congestion::{InvalidConfig, UnknownName};

use crate::message::{NoMessage, harmless};

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailedKind {
    /// What was asked for, or a limit, makes no sense.
    Invalid,
    /// No connection can be made: this machine has no way there, or nobody listens there.
    Unreachable,
    /// Nothing came back, or nothing new any more.
    TimedOut,
    /// The server has another certificate than the one expected.
    WrongFingerprint,
    /// The server takes no part.
    Refused,
    /// The other end closed the connection, or does not know it any more.
    Closed,
    /// What the other end sent is nothing that it may send, or it does not understand what it was
    /// sent.
    Protocol,
    /// It ended before all was there.
    Incomplete,
    /// This end stopped it.
    Stopped,
    /// A file of this end cannot be read or written.
    File,
    /// Anything else.
    Other,
}

/// What went wrong with a transfer. Its `Display` is one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    kind: FailedKind,
    words: String,
}

impl Failed {
    pub(crate) fn new(kind: FailedKind, words: impl Into<String>) -> Self {
        Self { kind, words: words.into() }
    }

    pub(crate) fn protocol(words: impl Into<String>) -> Self {
        Self::new(FailedKind::Protocol, words)
    }

    pub(crate) fn file(words: impl Into<String>) -> Self {
        Self::new(FailedKind::File, words)
    }

    /// What kind of thing it was.
    #[must_use]
    pub fn kind(&self) -> FailedKind {
        self.kind
    }

    /// The sentence.
    pub(crate) fn words(&self) -> &str {
        &self.words
    }

    /// The same where its words may be those of the other end.
    pub(crate) fn harmless(self) -> Self {
        Self { words: harmless(&self.words), ..self }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl std::error::Error for Failed {}

impl From<NoMessage> for Failed {
    fn from(error: NoMessage) -> Self {
        Self::protocol(error.to_string())
    }
}

/// Why there is no controller of a start and an avoidance.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControllerError {
    /// No algorithm has that name.
    Unknown(UnknownName),
    /// A value of its configuration makes no sense.
    Invalid(InvalidConfig),
    /// A server does not offer it, for this reason: what its client is told.
    NotOffered(String),
}

impl fmt::Display for ControllerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(error) => error.fmt(f),
            Self::Invalid(error) => error.fmt(f),
            Self::NotOffered(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ControllerError {}

impl From<UnknownName> for ControllerError {
    fn from(error: UnknownName) -> Self {
        Self::Unknown(error)
    }
}

impl From<InvalidConfig> for ControllerError {
    fn from(error: InvalidConfig) -> Self {
        Self::Invalid(error)
    }
}

/// Why a connection cannot be begun. Its `Display` is one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectError {
    message: String,
}

impl ConnectError {
    pub(crate) fn new(error: impl fmt::Display) -> Self {
        Self { message: error.to_string() }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConnectError {}
