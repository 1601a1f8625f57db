//! What goes out: exit statuses, files that are whole or absent, standard output that may be
//! closed, progress.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How a command ended that did not end well.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A check failed: exit status 1.
    Check,
    /// The command line, a file or the environment is wrong: exit status 2 and this sentence.
    Usage(String),
    /// This machine or system cannot do it: exit status 3 and this sentence.
    NotPossible(String),
    /// A real run was less faithful than its limit asks for: exit status 4 and this sentence.
    Fidelity(String),
    /// A program that was run for the user ended with this status, which is handed on.
    Status(u8),
    /// Ctrl-C: exit status 130.
    Interrupted,
    /// Nobody reads standard output any more: silence, and exit status 0 as far as we are
    /// concerned.
    BrokenPipe,
}

/// Why real runs are not possible elsewhere.
#[cfg(not(target_os = "linux"))]
pub(crate) const NEEDS_LINUX: &str = "real runs need Linux; simulation does not";

/// What every command returns.
pub(crate) type Outcome = Result<(), Failure>;

impl Failure {
    /// A sentence about what is wrong and what would be right.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::Usage(message.to_string())
    }

    /// A file or folder that cannot be read or written.
    pub(crate) fn file(doing: &str, path: &Path, error: &io::Error) -> Self {
        let why = match error.kind() {
            io::ErrorKind::NotFound => "no such file or folder".to_owned(),
            io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            io::ErrorKind::NotADirectory => "a part of the path is a file, not a folder".to_owned(),
            io::ErrorKind::AlreadyExists => "a file of that name is in the way".to_owned(),
            io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
            io::ErrorKind::StorageFull => "no space is left".to_owned(),
            _ => error.to_string(),
        };
        Self::Usage(format!("cannot {doing} {}: {why}", path.display()))
    }

    /// Says it on standard error and gives the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::Check => ExitCode::from(1),
            Self::Usage(message) => {
                let _ = writeln!(io::stderr(), "error: {message}");
                ExitCode::from(2)
            }
            Self::NotPossible(message) => {
                let _ = writeln!(io::stderr(), "not possible here: {message}");
                ExitCode::from(3)
            }
            Self::Fidelity(message) => {
                let _ = writeln!(io::stderr(), "not faithful enough: {message}");
                ExitCode::from(4)
            }
            Self::Status(status) => ExitCode::from(*status),
            Self::Interrupted => {
                let _ = writeln!(io::stderr(), "interrupted; what was finished is kept");
                ExitCode::from(crate::interrupt::STATUS)
            }
            Self::BrokenPipe => ExitCode::SUCCESS,
        }
    }
}

/// Prints to standard output.
pub(crate) fn print(text: &str) -> Outcome {
    let mut out = io::stdout().lock();
    printed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Prints a JSON document piece by piece: it may be larger than the memory.
pub(crate) fn print_document(document: &impl serde::Serialize) -> Outcome {
    printed(flowstart_results::write_pretty(document, io::stdout().lock()))
}

fn printed(outcome: io::Result<()>) -> Outcome {
    match outcome {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::BrokenPipe),
        Err(error) => Err(Failure::Usage(format!("cannot write to standard output: {error}"))),
    }
}

/// Prints a JSON document.
pub(crate) fn print_json(value: &serde_json::Value) -> Outcome {
    print(&format!("{value:#}\n"))
}

/// Says something beside the data.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Makes sure that a folder exists and takes files, before anything costly is done.
pub(crate) fn prepare_folder(folder: &Path) -> Outcome {
    std::fs::create_dir_all(folder).map_err(|error| Failure::file("create", folder, &error))?;
    let trial = folder.join(format!(".flowstart-{}", std::process::id()));
    std::fs::write(&trial, b"").map_err(|error| Failure::file("write to", folder, &error))?;
    std::fs::remove_file(&trial).map_err(|error| Failure::file("write to", folder, &error))
}

/// Makes sure that a file can be written, before anything costly is done.
pub(crate) fn prepare_file(path: &Path) -> Outcome {
    if path.is_dir() {
        return Err(Failure::Usage(format!("cannot write {}: it is a folder", path.display())));
    }
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) if !parent.is_dir() => {
            Err(Failure::Usage(format!("cannot write {}: there is no folder {}", path.display(), parent.display())))
        }
        _ => Ok(()),
    }
}

/// Writes a file whole or not at all.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Outcome {
    flowstart_report::write_atomically(path, bytes).map_err(|error| Failure::file("write", path, &error))
}

/// How often progress is told where no bar can be drawn.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// How far something has come, on standard error: a bar on a terminal, elsewhere a line now and
/// then.
pub(crate) struct Progress {
    bar: ProgressBar,
    what: &'static str,
    began: Instant,
    /// When something was said last, if lines are written.
    told: Option<Mutex<Instant>>,
}

/// Progress of what is done here, for instance "racing".
pub(crate) fn progress(what: &'static str) -> Progress {
    let began = Instant::now();
    if !io::stderr().is_terminal() {
        return Progress { bar: ProgressBar::hidden(), what, began, told: Some(Mutex::new(began)) };
    }
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(10));
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} {eta}") {
        bar.set_style(style);
    }
    bar.set_message(what);
    Progress { bar, what, began, told: None }
}

impl Progress {
    /// How much there is to do.
    pub(crate) fn set_length(&self, length: u64) {
        self.bar.set_length(length);
    }

    /// How much is done.
    pub(crate) fn set_position(&self, done: u64) {
        self.bar.set_position(done);
        let Some(told) = &self.told else { return };
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.elapsed() >= TELL_EVERY {
            *told = Instant::now();
            note(&progress_line(self.what, done, self.bar.length().unwrap_or(0), self.began.elapsed()));
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish_and_clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// "racing: 30 of 120 after 10 s, about 30 s left".
fn progress_line(what: &str, done: u64, of: u64, elapsed: Duration) -> String {
    let line = format!("{what}: {done} of {of} after {:.0} s", elapsed.as_secs_f64());
    if done == 0 || done >= of {
        return line;
    }
    let left = elapsed.as_secs_f64() / done as f64 * (of - done) as f64;
    format!("{line}, about {left:.0} s left")
}

/// A length of time in words, as exact as an estimate is.
pub(crate) fn roughly(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_progress_says_how_much_is_left() {
        let ten = Duration::from_secs(10);
        assert_eq!(progress_line("racing", 30, 120, ten), "racing: 30 of 120 after 10 s, about 30 s left");
        assert_eq!(progress_line("racing", 0, 120, ten), "racing: 0 of 120 after 10 s");
        assert_eq!(progress_line("racing", 120, 120, ten), "racing: 120 of 120 after 10 s");
    }

    #[test]
    fn an_estimate_is_told_in_a_fitting_unit() {
        assert_eq!([8.4, 300.0, 9000.0].map(roughly), ["8 s", "5 min", "2.5 h"]);
    }
}
