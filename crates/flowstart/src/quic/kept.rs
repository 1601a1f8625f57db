//! A memory of paths that lives in a file.

use std::io::{ErrorKind, Read as _};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use flowstart_quic::{LearningConfig, Memory};
use flowstart_units::{Span, Time};

use super::args::MemoryArgs;
use super::wrong;
use crate::output::{Done, Failure, prepare_file, write_file};

/// Bytes of a file that are read at most: more than its places ever take.
const LARGEST: u64 = 16 << 20;

/// Seconds of Unix time.
pub(super) fn today() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// How a transfer teaches what is kept.
pub(super) fn learning(args: &MemoryArgs) -> Result<LearningConfig, Failure> {
    let (standing, growth) = (args.memory_standing, args.memory_growth);
    let config = LearningConfig { standing, growth, ..LearningConfig::default() };
    config.validate().map_err(wrong)?;
    Ok(config)
}

/// The file.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    path: PathBuf,
}

impl Kept {
    /// The memory that is asked for, and where it is kept.
    pub(super) fn open(args: &MemoryArgs) -> Result<Option<(Self, Memory)>, Failure> {
        let Some(path) = &args.memory else { return Ok(None) };
        if args.memory_lifetime.is_zero() {
            return Err(wrong("--memory-lifetime is above zero"));
        }
        let kept = Self { path: path.clone() };
        let mut memory = Memory::new(args.memory_lifetime);
        if !kept.read_into(&mut memory)? {
            // What cannot be written is said before there is something to remember.
            prepare_file(path)?;
        }
        Ok(Some((kept, memory)))
    }

    /// Learns what the file says; false if there is none, or nothing in it.
    fn read_into(&self, memory: &mut Memory) -> Result<bool, Failure> {
        let failed = |error: std::io::Error| Failure::file("read", &self.path, &error);
        match std::fs::metadata(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            // To open a pipe that nobody writes into would take for ever.
            Ok(there) if !there.is_file() => return Err(self.no_memory("it is no file")),
            other => other.map_err(failed)?,
        };
        let file = std::fs::File::open(&self.path).map_err(failed)?;
        let mut text = String::new();
        file.take(LARGEST).read_to_string(&mut text).map_err(failed)?;
        if text.is_empty() {
            // Somebody made the file before there was anything to remember.
            return Ok(false);
        }
        let merged = memory.merge(&text).map(|()| true);
        merged.map_err(|why| self.no_memory(&why.to_string()))
    }

    fn no_memory(&self, why: &str) -> Failure {
        let file = self.path.display();
        wrong(format!("{file} is no memory of flowstart's: {why}; name another file, or remove this one"))
    }

    /// Writes what is known here, and what others have learnt in the meantime.
    pub(super) fn write(&self, memory: &mut Memory) -> Done {
        self.read_into(memory)?;
        write_file(&self.path, memory.to_json(today()).as_bytes())
    }
}

/// How long a file that could not be written is left alone, unless more is learnt.
const AGAIN: Span = Span::from_secs(10);

/// A file that what a server learns is written to.
#[derive(Debug)]
pub(super) struct Keeping {
    kept: Kept,
    /// When that failed last, and why.
    failed: Option<(Time, String)>,
}

impl Keeping {
    pub(super) fn new(kept: Kept) -> Self {
        Self { kept, failed: None }
    }

    /// Writes what is known and not written; `new` if it was learnt just now. Why that failed, if
    /// it did, once for all that was learnt: it is tried again in silence.
    pub(super) fn keep(&mut self, now: Time, new: bool, memory: &mut Memory) -> Option<String> {
        let waits = |(tried, _): &(Time, String)| now >= *tried && now.since(*tried) < AGAIN;
        if !new && self.failed.as_ref().is_some_and(waits) {
            return None;
        }
        let before = self.failed.take();
        let Err(failure) = self.kept.write(memory) else { return None };
        let (_, why) = failure.told();
        let told = !new && before.is_some_and(|(_, before)| before == why);
        self.failed = Some((now, why.clone()));
        (!told).then_some(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_is_said_once_for_what_was_learnt_and_tried_again() {
        use flowstart_quic::{Lesson, Observed};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("paths.json");
        let mut memory = Memory::default();
        let learn = |memory: &mut Memory, last: u8| {
            let seen = Observed { bytes: 100_000, rtt: 20_000_000 };
            memory.learn([192, 0, 2, last].into(), today(), None, Lesson::AtLeast(seen));
        };
        let mut keeping = Keeping::new(Kept { path: path.clone() });
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        learn(&mut memory, 1);
        assert_eq!(keeping.keep(at(0), true, &mut memory), None);
        std::fs::write(&path, "garbage").unwrap();
        learn(&mut memory, 2);
        let said = keeping.keep(at(100), true, &mut memory).unwrap();
        assert!(said.contains("is no memory of flowstart's"), "{said}");
        for tenth in 2..400 {
            assert_eq!(keeping.keep(at(100 * tenth), false, &mut memory), None, "{tenth}");
        }
        learn(&mut memory, 3);
        assert_eq!(keeping.keep(at(40_000), true, &mut memory), Some(said), "something else is not kept");
        // Somebody mends it.
        std::fs::remove_file(&path).unwrap();
        assert_eq!(keeping.keep(at(49_900), false, &mut memory), None);
        assert!(!path.exists(), "not yet");
        assert_eq!(keeping.keep(at(50_000), false, &mut memory), None);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(["192.0.2.1", "192.0.2.2", "192.0.2.3"].iter().all(|place| text.contains(place)), "{text}");
        // At the very end time is not known.
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        learn(&mut memory, 4);
        assert!(keeping.keep(at(60_000), true, &mut memory).is_some());
        std::fs::remove_dir(&path).unwrap();
        assert_eq!(keeping.keep(Time::ZERO, false, &mut memory), None);
        assert!(path.exists());
    }
}
