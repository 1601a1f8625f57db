//! What goes out: exit statuses, files that are whole or absent, standard output that may be
//! closed, progress.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use flowstart_files::{HeldFolder, heeding_inputs, input_at, why, why_unread};
use flowstart_report::Terminal;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::session;

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
    /// Ctrl-C where what was finished is shown and in no file, and the option that would have kept
    /// it: exit status 130.
    InterruptedUnkept(&'static str),
    /// Ctrl-C before there was anything to be kept: exit status 130.
    InterruptedEarly,
    /// Nobody reads standard output any more: silence, and exit status 0 as far as we are
    /// concerned.
    BrokenPipe,
}

/// Why real runs are not possible elsewhere.
#[cfg(not(target_os = "linux"))]
pub(crate) const NEEDS_LINUX: &str = "real runs need Linux; simulation does not";

/// What every command returns.
pub(crate) type Done = Result<(), Failure>;

impl Failure {
    /// A sentence about what is wrong and what would be right.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::Usage(message.to_string())
    }

    /// A file or folder that cannot be read or written.
    pub(crate) fn file(doing: &str, path: &Path, error: &io::Error) -> Self {
        // A kernel's own folders, such as /proc, say of what is new in them that it is not there.
        // Who creates a folder creates those around it, too.
        let refusing = || {
            let mut around = path.ancestors().skip(1).take(if doing == "create" { usize::MAX } else { 1 });
            let new = path.symlink_metadata().is_err();
            around.find(|folder| folder.is_dir()).filter(|_| new)
        };
        let not_there = || match refusing() {
            Some(folder) => format!("nothing can be created in {}", folder.display()),
            None => "no such file or folder".to_owned(),
        };
        let why = match error.kind() {
            _ if doing == "read" => why_unread(path, error),
            io::ErrorKind::NotFound => not_there(),
            _ => why(error),
        };
        Self::Usage(format!("cannot {doing} {}: {why}", path.display()))
    }

    /// Says it on standard error and gives the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        let (status, message) = self.told();
        let before = match self {
            Self::Usage(_) => "error: ",
            Self::NotPossible(_) => "not possible here: ",
            Self::Fidelity(_) => "not faithful enough: ",
            _ => "",
        };
        if !message.is_empty() {
            let _ = writeln!(io::stderr(), "{before}{message}");
        }
        ExitCode::from(status)
    }

    /// Exit status and sentence; empty if there is nothing to say.
    pub(crate) fn told(&self) -> (u8, String) {
        match self {
            Self::Check => (1, String::new()),
            Self::Usage(message) => (2, message.clone()),
            Self::NotPossible(message) => (3, message.clone()),
            Self::Fidelity(message) => (4, message.clone()),
            Self::Status(status) => (*status, String::new()),
            Self::Interrupted => (crate::interrupt::STATUS, "interrupted; what was finished is kept".to_owned()),
            Self::InterruptedUnkept(option) => {
                (crate::interrupt::STATUS, format!("interrupted; what was finished is shown, and {option} keeps it"))
            }
            Self::InterruptedEarly => (crate::interrupt::STATUS, "interrupted before anything was finished".to_owned()),
            Self::BrokenPipe => (0, String::new()),
        }
    }
}

/// What text is shown on: the terminal, or the program that this is a part of.
pub(crate) fn terminal() -> Terminal {
    if session::hooks().is_some() { Terminal::plain() } else { Terminal::of_stdout() }
}

/// Prints to standard output.
pub(crate) fn print(text: &str) -> Done {
    if session::take(text.as_bytes()) {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    printed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Prints a JSON document piece by piece: it may be larger than the memory.
pub(crate) fn print_document(document: &impl serde::Serialize) -> Done {
    if session::hooks().is_some() {
        let mut bytes = Vec::new();
        let written = flowstart_results::write_pretty(document, &mut bytes);
        session::take(&bytes);
        return printed(written);
    }
    printed(flowstart_results::write_pretty(document, io::stdout().lock()))
}

/// What came of writing to standard output.
pub(crate) fn printed(outcome: io::Result<()>) -> Done {
    match outcome {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::BrokenPipe),
        Err(error) => Err(Failure::Usage(format!("cannot write to standard output: {}", why(&error)))),
    }
}

/// Prints a JSON document.
pub(crate) fn print_json(value: &serde_json::Value) -> Done {
    print(&format!("{value:#}\n"))
}

/// Says something beside the data.
pub(crate) fn note(text: &str) {
    if !session::take_note(text) {
        let _ = writeln!(io::stderr(), "{text}");
    }
}

thread_local! {
    /// Folders that the command on this thread made, those around others first.
    static MADE: RefCell<Vec<PathBuf>> = const { RefCell::new(Vec::new()) };
    /// Folders that it holds.
    static HELD: RefCell<Vec<HeldFolder>> = const { RefCell::new(Vec::new()) };
}

/// Does a command; if it fails, folders that it made and put nothing into are gone again. Those
/// that it holds are let go of. What it reads is not overwritten.
pub(crate) fn leaving_nothing(work: impl FnOnce() -> Done) -> Done {
    let before = (MADE.take(), HELD.take());
    let outcome = heeding_inputs(work);
    HELD.replace(before.1);
    let made = MADE.replace(before.0);
    if outcome.is_err() {
        // What holds something stays: only empty folders can be removed so.
        made.iter().rev().for_each(|folder| drop(std::fs::remove_dir(folder)));
    }
    outcome
}

/// Refuses the name by which other programs call standard output: here it would be a file, or a
/// folder.
fn not_standard_output(path: &Path) -> Done {
    if path != Path::new("-") {
        return Ok(());
    }
    Err(Failure::usage(
        "\"-\" would be a file or folder of that name, not standard output: --json prints the document there, and ./- \
         names a file",
    ))
}

/// Makes sure that a folder exists and takes files, before anything costly is done.
pub(crate) fn prepare_folder(folder: &Path) -> Done {
    not_standard_output(folder)?;
    let missing: Vec<PathBuf> = folder
        .ancestors()
        .take_while(|part| !part.as_os_str().is_empty() && !part.exists())
        .map(Path::to_owned)
        .collect();
    let created = std::fs::create_dir_all(folder);
    MADE.with_borrow_mut(|made| made.extend(missing.into_iter().rev()));
    created.map_err(|error| Failure::file("create", folder, &error))?;
    try_file_in(folder).map_err(|error| Failure::file("write to", folder, &error))
}

/// Makes a file in a folder, and removes it. What is there already stays: in a folder that is
/// everybody's somebody may have made a link of that name, to a file of whoever runs this.
fn try_file_in(folder: &Path) -> io::Result<()> {
    let trial = folder.join(format!(".flowstart-{}", std::process::id()));
    match std::fs::File::create_new(&trial) {
        Ok(_) => std::fs::remove_file(&trial),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// [Prepares](prepare_folder) a folder for results that belong together, and holds it until the
/// command is over: two at once would leave the files of either there.
pub(crate) fn take_folder(folder: &Path) -> Done {
    prepare_folder(folder)?;
    let held = hold_within(folder, HELD_ON)?;
    HELD.with_borrow_mut(|all| all.push(held));
    Ok(())
}

/// How long a folder is waited for: hosts of a run that was killed end a moment after it, and hold
/// what it held until then.
const HELD_ON: Duration = Duration::from_secs(1);

/// Holds a folder that is there, unless another command does.
fn hold_within(folder: &Path, patience: Duration) -> Result<HeldFolder, Failure> {
    HeldFolder::take(folder, patience).ok_or_else(|| {
        Failure::Usage(format!(
            "another run is writing into {}: wait for its end, or name another folder with --out",
            folder.display()
        ))
    })
}

/// The ending of a file, which must be one of the known ones: it says in what format to write.
pub(crate) fn ending(file: &Path, known: &[&'static str]) -> Result<&'static str, Failure> {
    not_standard_output(file)?;
    let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase();
    known.iter().copied().find(|known| *known == ending).ok_or_else(|| {
        Failure::Usage(format!(
            "cannot tell the format of {} by its ending; known are .{}",
            file.display(),
            known.join(", .")
        ))
    })
}

/// Refuses to write files of which one is read, before anything is made or done.
pub(crate) fn spare_inputs(files: impl IntoIterator<Item = PathBuf>) -> Done {
    match files.into_iter().find_map(|file| Some((input_at(&file)?, file))) {
        None => Ok(()),
        Some((input, file)) if input == file => {
            Err(Failure::Usage(format!("{} would be overwritten, which is read: name another place", input.display())))
        }
        Some((input, file)) => Err(Failure::Usage(format!(
            "{} would be overwritten, which is read, by {}: name another place",
            input.display(),
            file.display()
        ))),
    }
}

/// Makes sure that a file can be written and is none that is read, before anything costly is done.
pub(crate) fn prepare_file(path: &Path) -> Done {
    not_standard_output(path)?;
    spare_inputs([path.to_owned()])?;
    // A name that ends so is that of a folder, though none is there yet.
    if path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(Failure::Usage(format!("cannot write {}: it is a folder", path.display())));
    }
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) if !parent.is_dir() => {
            Err(Failure::Usage(format!("cannot write {}: there is no folder {}", path.display(), parent.display())))
        }
        // A device takes what it is given; a file is written beside its place first.
        _ if path.exists() && !path.is_file() => Ok(()),
        parent => try_file_in(parent.unwrap_or(Path::new("."))).map_err(|error| Failure::file("write", path, &error)),
    }
}

/// Writes a file whole or not at all.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Done {
    flowstart_files::write_atomically(path, bytes).map_err(|error| Failure::file("write", path, &error))
}

/// Writes a result that says whether it is complete, and what else is in its folder: until all of
/// that is written it says that it is not. If something cannot be written, nobody takes files of
/// two results for one.
pub(crate) fn write_around(path: &Path, result: &serde_json::Value, others: impl FnOnce() -> Done) -> Done {
    let bytes = |value: &serde_json::Value| format!("{value:#}\n").into_bytes();
    let mut unfinished = result.clone();
    unfinished["complete"] = false.into();
    write_file(path, &bytes(&unfinished))?;
    others()?;
    if unfinished == *result { Ok(()) } else { write_file(path, &bytes(result)) }
}

/// How often progress is told where no bar can be drawn.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// How far a command is: a bar on standard error if that is a terminal, told to the program that
/// this is a part of, elsewhere a line now and then.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Whether it is drawn once it has a length.
    drawn: bool,
    what: &'static str,
    began: Instant,
    /// When something was said last, if lines are written.
    said: Option<Mutex<Instant>>,
    told: Option<session::Progress>,
    of: AtomicU64,
    /// Per cent that must be done before it is said how much time is left.
    enough: u64,
}

impl Progress {
    /// Says how much time is left only when so many per cent are done: where pieces of work are
    /// unlike, the first ones say little of the others.
    pub(crate) fn estimated_from(self, enough: u64) -> Self {
        Self { enough, ..self }
    }

    /// There is this much to do.
    pub(crate) fn set_length(&self, of: u64) {
        // Without a length it would be drawn as full.
        if self.drawn && self.of.load(Ordering::Relaxed) == 0 && of > 0 {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        }
        self.of.store(of, Ordering::Relaxed);
        self.bar.set_length(of);
    }

    /// This much is done.
    pub(crate) fn set_position(&self, done: u64) {
        self.bar.set_position(done);
        let of = self.of.load(Ordering::Relaxed);
        if let Some(told) = &self.told {
            told(done, of);
        }
        let Some(said) = &self.said else { return };
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.elapsed() >= TELL_EVERY {
            *said = Instant::now();
            note(&progress_line(self.what, (done, of), self.began.elapsed(), self.enough));
        }
    }

    /// All is done.
    pub(crate) fn finish_and_clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Shows how far `what` is.
pub(crate) fn progress(what: &'static str) -> Progress {
    let hooks = session::hooks();
    let drawn = hooks.is_none() && io::stderr().is_terminal();
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} {eta}") {
        bar.set_style(style);
    }
    bar.set_message(what);
    let began = Instant::now();
    // A program that this is a part of says what it wants to say.
    let lines = hooks.is_none() && !io::stderr().is_terminal();
    Progress {
        bar,
        drawn,
        what,
        began,
        said: lines.then(|| Mutex::new(began)),
        told: hooks.and_then(|hooks| hooks.progress),
        of: AtomicU64::new(0),
        enough: 0,
    }
}

/// "racing: 30 of 120 after 10 s, about 30 s left", of which the last part only if enough is done.
fn progress_line(what: &str, (done, of): (u64, u64), elapsed: Duration, enough: u64) -> String {
    let line = format!("{what}: {done} of {of} after {:.0} s", elapsed.as_secs_f64());
    if done == 0 || done >= of || done.saturating_mul(100) < of.saturating_mul(enough) {
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
        let line = |done, of, enough| progress_line("racing", (done, of), ten, enough);
        assert_eq!(line(30, 120, 0), "racing: 30 of 120 after 10 s, about 30 s left");
        assert_eq!(line(0, 120, 0), "racing: 0 of 120 after 10 s");
        assert_eq!(line(120, 120, 0), "racing: 120 of 120 after 10 s");
        assert_eq!(line(1, 33, 20), "racing: 1 of 33 after 10 s", "too little to tell");
        assert_eq!(line(24, 120, 20), "racing: 24 of 120 after 10 s, about 40 s left");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_somebody_made_where_files_are_tried_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let (mine, link) = (folder.path().join("mine"), format!(".flowstart-{}", std::process::id()));
        std::fs::write(&mine, "all that I have").unwrap();
        std::os::unix::fs::symlink(&mine, folder.path().join(link)).unwrap();
        prepare_folder(folder.path()).unwrap();
        prepare_file(&folder.path().join("new")).unwrap();
        assert_eq!(std::fs::read_to_string(&mine).unwrap(), "all that I have");
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_is_let_go_of_in_a_moment_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let held = hold_within(folder.path(), Duration::MAX).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| hold_within(folder.path(), Duration::MAX).map(drop));
            std::thread::sleep(Duration::from_millis(100));
            drop(held);
            assert!(waiting.join().unwrap().is_ok());
        });
        let _held = hold_within(folder.path(), Duration::MAX).unwrap();
        let refused = hold_within(folder.path(), Duration::ZERO).unwrap_err();
        assert!(matches!(&refused, Failure::Usage(said) if said.contains("another run is writing")), "{refused:?}");
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_is_held_as_long_as_the_command() {
        let folder = tempfile::tempdir().unwrap();
        let other = |folder: &Path| hold_within(folder, Duration::ZERO).map(drop);
        let during = leaving_nothing(|| {
            take_folder(folder.path())?;
            other(folder.path())
        });
        assert!(during.is_err());
        assert!(other(folder.path()).is_ok());
    }

    #[test]
    fn a_file_cannot_have_the_name_of_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        assert!(prepare_file(&folder.path().join("new.json/")).is_err());
        prepare_file(&folder.path().join("new.json")).unwrap();
    }

    #[test]
    fn an_estimate_is_told_in_a_fitting_unit() {
        assert_eq!([8.4, 300.0, 9000.0].map(roughly), ["8 s", "5 min", "2.5 h"]);
    }
}
