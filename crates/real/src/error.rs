//! Why something cannot be done for real.

use std::fmt;
use std::process::ExitStatus;

use flowstart_benchmark::{KeptError, Unjudged};
use flowstart_emulator::traffic::MOST_CONNECTIONS;
use flowstart_race::RaceError;
use flowstart_scenario::ScenarioError;
use flowstart_service_curve::RecordError;
use flowstart_units::{Bytes, Rate, Span};

use super::MOST_PAIRS;

/// Why something cannot be done on this machine's kernel. Its `Display` is a sentence for the user.
#[derive(Debug)]
pub enum Error {
    /// The emulator refuses.
    Emulator(flowstart_emulator::Error),
    /// The scenario cannot be simulated either.
    Scenario(ScenarioError),
    /// The race cannot be run anywhere.
    Race(RaceError),
    /// The kernel has no congestion control for an algorithm.
    NoControl {
        /// What is missing.
        avoidance: String,
        /// What there is.
        known: Vec<String>,
        /// True if `flowstart kernel load` has it.
        loadable: bool,
    },
    /// The kernel would begin in another way than this contestant; the sentence says how.
    OtherStart(String),
    /// QUIC cannot carry this; the sentence says why.
    NotOverQuic(String),
    /// What was finished cannot be kept, or what was kept is not to be used.
    Kept(KeptError),
    /// The flows have so many different ways, more than [`MOST_PAIRS`].
    TooManyPairs(usize),
    /// More transfers than can be started.
    TooManyTransfers,
    /// Replies without a user who asks for them.
    RepliesWithoutUser,
    /// ECN cannot be switched on in a host.
    Ecn(std::io::Error),
    /// The hosts' packets cannot carry Quick-Start's options; the sentence says why.
    QuickStart(String),
    /// A connection failed; the sentence says how.
    Connection(String),
    /// A program cannot be started.
    Start {
        /// Whether it is the command or the server.
        what: &'static str,
        /// What was to be started.
        program: String,
        /// Why it cannot be.
        error: std::io::Error,
    },
    /// A program cannot be waited for.
    Wait(std::io::Error),
    /// The server on this host ended before it was ready.
    ServerEnded(String, ExitStatus),
    /// The server on this host was not ready within this time.
    ServerNotReady(String, Span),
    /// A scenario without a connection that writes at a rate, through a link.
    NothingToProbe,
    /// Congestion controls that this kernel does not have.
    UnknownControl {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The command of a program does not say where this goes.
    CommandLacks(&'static str),
    /// It did not end well.
    CommandEnded(ExitStatus),
    /// It did not end within this time.
    CommandTooLong(std::time::Duration),
    /// It wrote more than so many bytes.
    CommandTooMuch(u64),
    /// Its record covers so much time, and it ran only so long.
    CommandRecordTooLong(Span, std::time::Duration),
    /// A message of its record was there after so much time, sooner than the path lets anything be.
    CommandTooSoon(Span, Span),
    /// Its record says this rate in place of the one that it was to send at.
    CommandRate(Rate, Rate),
    /// Its record has so many messages in so much time, too few for the rate and the time that it
    /// was to send for.
    CommandOffered(usize, Span, Rate, Span),
    /// Its record has so many messages of this size, and only so much left its host.
    CommandNotSent(usize, Bytes, Bytes),
    /// What it wrote is no record of a train.
    CommandRecord(RecordError),
    /// It wrote a record without messages.
    NoMessages,
    /// What went wrong at one rate.
    AtRate(Rate, Box<Error>),
    /// What was measured cannot be judged.
    Judgement(flowstart_service_curve::Error),
    /// A part of flowstart ended by a fault.
    Fault,
    /// It was cancelled before anything had happened.
    Cancelled,
}

impl Error {
    /// Whether nothing is wrong but that somebody asked for the end.
    pub(crate) fn is_cancelled(&self) -> bool {
        match self {
            Self::Cancelled => true,
            Self::AtRate(_, error) => error.is_cancelled(),
            _ => false,
        }
    }

    /// The exit status that a shell has when it cannot start its command: 127 if there is none of
    /// that name, 126 if it cannot be executed (POSIX.1-2024, section 2.8.2 of the shell command
    /// language). `None` of other errors.
    #[must_use]
    pub fn shell_status(&self) -> Option<u8> {
        match self {
            Self::Start { error, .. } if error.kind() == std::io::ErrorKind::NotFound => Some(127),
            Self::Start { .. } => Some(126),
            _ => None,
        }
    }

    /// True if it is this machine that does not allow it; otherwise what was asked for is wrong.
    #[must_use]
    pub fn is_of_machine(&self) -> bool {
        if let Self::AtRate(_, error) = self {
            return error.is_of_machine();
        }
        matches!(
            self,
            Self::Emulator(flowstart_emulator::Error::NotPossible(_))
                | Self::NoControl { .. }
                | Self::OtherStart(_)
                | Self::QuickStart(_)
        )
    }
}

/// Which server is meant, behind those words: nobody asks where there is one.
struct Which<'a>(&'a str);

impl fmt::Display for Which<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == "server" { Ok(()) } else { write!(f, " on {}", self.0) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Emulator(error) => error.fmt(f),
            Self::Scenario(error) => error.fmt(f),
            Self::Race(error) => error.fmt(f),
            Self::NoControl { avoidance, known, loadable } => {
                let remedy =
                    if *loadable { format!("; `flowstart kernel load {avoidance}` brings one") } else { String::new() };
                write!(
                    f,
                    "this kernel has no congestion control \"{avoidance}\"; it has {}{remedy} \
                     (in scenario files the key `kernel` of a flow names another)",
                    known.join(", ")
                )
            }
            Self::OtherStart(sentence)
            | Self::QuickStart(sentence)
            | Self::Connection(sentence)
            | Self::NotOverQuic(sentence) => f.write_str(sentence),
            Self::Kept(error) => error.fmt(f),
            Self::TooManyPairs(pairs) => write!(
                f,
                "the flows have {pairs} different ways or access links; at most {MOST_PAIRS} pairs of hosts are made"
            ),
            Self::TooManyTransfers => write!(
                f,
                "the scenario starts more than {MOST_CONNECTIONS} transfers, which is the most of a real run; \
                 a shorter duration has fewer"
            ),
            Self::RepliesWithoutUser => f.write_str("replies need a user who asks for them"),
            Self::Ecn(error) => write!(f, "cannot switch ECN on: {error}"),
            Self::Start { what, program, error } => {
                let why = match error.kind() {
                    std::io::ErrorKind::NotFound => {
                        "there is no such program, or not what its first line names".to_owned()
                    }
                    std::io::ErrorKind::PermissionDenied => "it may not be executed".to_owned(),
                    _ => error.to_string(),
                };
                write!(f, "cannot start {what} \"{program}\": {why}")
            }
            Self::Wait(error) => write!(f, "cannot wait for a program: {error}"),
            Self::ServerEnded(host, status) => {
                write!(f, "the server{} ended before it was ready ({status})", Which(host))
            }
            Self::ServerNotReady(host, within) => {
                write!(f, "the server{} listens on no port after {within}", Which(host))
            }
            Self::NothingToProbe => f.write_str("a probe writes at a rate into a connection through a link"),
            Self::UnknownControl { name, known } => write!(
                f,
                "this kernel has no congestion control \"{name}\"; known are {} ({})",
                known.join(", "),
                brought_by(name)
            ),
            Self::Judgement(error) => error.fmt(f),
            Self::CommandLacks(word) => write!(f, "the command does not say where {word} goes"),
            Self::CommandEnded(status) => write!(f, "the command failed ({status})"),
            Self::CommandTooLong(within) => write!(f, "the command did not end within {} s", within.as_secs()),
            Self::CommandTooMuch(most) => {
                write!(f, "the command wrote more than {most} bytes; a record has a line per message")
            }
            Self::CommandRecordTooLong(covers, ran) => write!(
                f,
                "the record that the command wrote covers {covers}, but the command ran for {} s only",
                ran.as_secs()
            ),
            Self::CommandTooSoon(delay, least) => write!(
                f,
                "the record that the command wrote has a message that was there after {delay}; over this path nothing is before {least} have passed"
            ),
            Self::CommandRate(said, asked) => {
                write!(f, "the record that the command wrote is one of {said}, not of {asked}")
            }
            Self::CommandOffered(messages, within, rate, time) => write!(
                f,
                "the record that the command wrote has {messages} messages, sent within {within}; {rate} for {time} are more, and a rate can \
                 be accepted only if it was offered"
            ),
            Self::CommandNotSent(messages, size, sent) => write!(
                f,
                "the record that the command wrote has {messages} messages of {} bytes, and {sent} left its host while it ran: a record tells \
                 of messages that went over the path, to FLOWSTART_SERVER",
                size.get()
            ),
            Self::CommandRecord(error) => write!(f, "the record that the command wrote {}", said(error)),
            Self::NoMessages => f.write_str("the command wrote no record: one line of names, and a line per message"),
            Self::AtRate(rate, error) => write!(f, "at {rate}: {error}"),
            Self::Fault => f.write_str("a part of flowstart ended by a fault"),
            Self::Cancelled => f.write_str("cancelled"),
        }
    }
}

/// As it follows the name of what is wrong.
fn said(error: &RecordError) -> String {
    let text = error.to_string();
    if text.starts_with("row ") { format!("is wrong in {text}") } else { text }
}

/// What brings this congestion control into the kernel. (`flowstart-kernel`, which knows, is not a
/// part of every build.)
fn brought_by(name: &str) -> String {
    let ours = match name {
        "fs_chirp" => "paced_chirping",
        "fs_dctcp" => "dctcp",
        "fs_quick_start" => "quick_start",
        "fs_scalable" => "scalable",
        "fs_reno" => "slow_start_reno",
        _ => return "`flowstart kernel load` brings more".to_owned(),
    };
    format!("`flowstart kernel load {ours}` brings {name}")
}

impl std::error::Error for Error {}

/// Why a record is none of what was measured. Its `Display` is a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImpossibleRecord(String);

impl fmt::Display for ImpossibleRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ImpossibleRecord {}

impl From<String> for ImpossibleRecord {
    fn from(sentence: String) -> Self {
        Self(sentence)
    }
}

impl From<flowstart_emulator::Error> for Error {
    fn from(error: flowstart_emulator::Error) -> Self {
        Self::Emulator(error)
    }
}

impl From<ScenarioError> for Error {
    fn from(error: ScenarioError) -> Self {
        Self::Scenario(error)
    }
}

impl From<Unjudged> for Error {
    fn from(error: Unjudged) -> Self {
        match error {
            Unjudged::Judgement(error) => Self::Judgement(error),
            _ => Self::Fault,
        }
    }
}

impl From<RaceError> for Error {
    fn from(error: RaceError) -> Self {
        Self::Race(error)
    }
}
