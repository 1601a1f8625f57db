//! One command inside another program: what that gives, and what the command printed.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flowstart_parallel::Cancel;

/// Told how much is done, of how much.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// What the other program gives.
#[derive(Clone, Default)]
pub struct Hooks {
    /// Asks to stop; what is finished is kept.
    pub cancel: Cancel,
    /// Told now and then how far a command is, from any thread.
    pub progress: Option<Progress>,
    /// Scenarios that are no files: what is read where this name is given. Files that they name
    /// are looked for in the working folder.
    pub texts: Vec<(PathBuf, String)>,
}

/// What a command did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Called {
    /// Exit status, as the program `flowstart` would have it.
    pub status: u8,
    /// What went to standard output.
    pub output: Vec<u8>,
    /// What is wrong, in a sentence; empty if nothing is.
    pub message: String,
    /// What was said beside the data.
    pub notes: Vec<String>,
}

struct Session {
    arguments: Vec<OsString>,
    hooks: Hooks,
    called: Called,
}

thread_local! {
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// Runs `work` on this thread as a part of another program; gives what it said and what was
/// printed.
pub(crate) fn within<T>(arguments: &[OsString], hooks: Hooks, work: impl FnOnce() -> T) -> (T, Called) {
    let session = Session { arguments: arguments.to_vec(), hooks, called: Called::default() };
    let before = SESSION.replace(Some(session));
    let outcome = flowstart_files::heeding_inputs(work);
    let session = SESSION.replace(before);
    (outcome, session.map_or_else(Called::default, |session| session.called))
}

/// The hooks, if a command runs on this thread inside another program.
pub(crate) fn hooks() -> Option<Hooks> {
    SESSION.with_borrow(|session| session.as_ref().map(|session| session.hooks.clone()))
}

/// The arguments of the command, if it runs on this thread inside another program, whose own are
/// others.
pub(crate) fn arguments() -> Option<Vec<OsString>> {
    SESSION.with_borrow(|session| session.as_ref().map(|session| session.arguments.clone()))
}

/// A word as a shell reads it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+,=:@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// The command as it was typed, fit for typing again.
pub(crate) fn command_line() -> String {
    let arguments = arguments().unwrap_or_else(|| std::env::args_os().skip(1).collect());
    let words = arguments.iter().map(|word| quoted(&word.to_string_lossy()));
    std::iter::once("flowstart".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// The text that was given for a file.
pub(crate) fn text(file: &Path) -> Option<String> {
    SESSION.with_borrow(|session| {
        let texts = &session.as_ref()?.hooks.texts;
        texts.iter().find(|(name, _)| name == file).map(|(_, text)| text.clone())
    })
}

/// Takes what would be printed; false if this is the program `flowstart` itself.
pub(crate) fn take(bytes: &[u8]) -> bool {
    SESSION.with_borrow_mut(|session| {
        session.as_mut().map(|session| session.called.output.extend_from_slice(bytes)).is_some()
    })
}

/// Takes a remark; false if this is the program `flowstart` itself.
pub(crate) fn take_note(text: &str) -> bool {
    SESSION
        .with_borrow_mut(|session| session.as_mut().map(|session| session.called.notes.push(text.to_owned())).is_some())
}
