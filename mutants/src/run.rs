//! Runs the test programs, with one change on or none.

use crate::Result;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// No test program needs so much; a change that asks for memory for ever ends here.
const MEMORY_KIB: u64 = 6 << 20;
/// A program has this long even if it usually takes moments.
const LEAST: Duration = Duration::from_secs(20);
/// Otherwise, as many times as long as without a change.
const PATIENCE: u32 = 5;

/// What became of a mutant.
pub(crate) enum Outcome {
    /// A test failed: the first to.
    Caught(String),
    /// A program did not end in time.
    TimedOut,
    /// All tests passed.
    Missed,
}

/// A test program and the folder of its crate, in which it runs.
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) folder: PathBuf,
}

/// The test programs with the time each takes, the quickest first.
pub(crate) struct Programs(Vec<(Program, Duration)>);

impl Programs {
    /// Runs all programs without a change; an error if a test fails.
    pub(crate) fn measured(programs: Vec<Program>, skip: &[String]) -> Result<Programs> {
        let mut all = vec![];
        for program in programs {
            let name = program.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if skip.iter().any(|s| name.starts_with(s)) {
                continue;
            }
            let start = Instant::now();
            match one(&program, 0, Duration::from_secs(3600)) {
                Outcome::Missed => all.push((program, start.elapsed())),
                Outcome::Caught(test) => return Err(format!("{name} fails without any change: {test}")),
                Outcome::TimedOut => return Err(format!("{name} does not end within an hour")),
            }
        }
        all.sort_by_key(|(_, time)| *time);
        let seconds: f64 = all.iter().map(|(_, time)| time.as_secs_f64()).sum();
        println!("{} test programs, {seconds:.1} s without a change", all.len());
        Ok(Programs(all))
    }

    /// Runs the programs with a change on until a test fails.
    pub(crate) fn run(&self, id: u32) -> Outcome {
        let mut outcomes = self.0.iter().map(|(program, time)| one(program, id, LEAST.max(*time * PATIENCE)));
        outcomes.find(|o| !matches!(o, Outcome::Missed)).unwrap_or(Outcome::Missed)
    }
}

/// Runs one program with one change on.
fn one(program: &Program, id: u32, limit: Duration) -> Outcome {
    let started = Command::new("sh")
        .args(["-c", &format!("ulimit -v {MEMORY_KIB}; exec \"$0\"")])
        .arg(&program.path)
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env("FLOWSTART_MUTANT", id.to_string())
        // Random tests draw the same for every mutant and keep nothing.
        .envs([("PROPTEST_RNG_SEED", "1"), ("PROPTEST_MAX_SHRINK_ITERS", "0")])
        .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1")
        .env("INSTA_UPDATE", "no")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    match started {
        Ok(child) => watch(child, limit),
        Err(error) => Outcome::Caught(format!("it does not start: {error}")),
    }
}

/// Waits for the first failed test, the end of the program or of its time.
fn watch(mut child: Child, limit: Duration) -> Outcome {
    let (sender, lines) = mpsc::channel();
    if let Some(output) = child.stdout.take() {
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(std::io::Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
    }
    let end = Instant::now() + limit;
    let outcome = loop {
        match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                if let Some(test) = line.strip_prefix("test ").and_then(|l| l.strip_suffix(" ... FAILED")) {
                    break Some(Outcome::Caught(test.to_string()));
                }
            }
            Err(mpsc::RecvTimeoutError::Timeout) => break Some(Outcome::TimedOut),
            // It said all it had to say.
            Err(mpsc::RecvTimeoutError::Disconnected) => break None,
        }
    };
    // It may have ended already, which is as good.
    if outcome.is_some() {
        let _ = child.kill();
    }
    let passed = child.wait().is_ok_and(|status| status.success());
    outcome.unwrap_or(if passed { Outcome::Missed } else { Outcome::Caught("the program ended badly".into()) })
}
