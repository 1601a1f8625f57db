//! A memory of paths that lives in a file.

use std::io::{ErrorKind, Read as _};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use flowstart_quic::{Lesson, Memory};

use super::args::MemoryArgs;
use super::wrong;
use crate::output::{Done, Failure, prepare_file, write_file};

/// Bytes of a file that are read at most: more than its places ever take.
const LARGEST: u64 = 16 << 20;

/// Seconds of Unix time.
pub(super) fn today() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
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

    /// Learns what the file says; false if there is none.
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
        let merged = memory.merge(&text).map(|()| true);
        merged.map_err(|why| self.no_memory(&why))
    }

    fn no_memory(&self, why: &str) -> Failure {
        wrong(format!("{} is no memory of flowstart's: {why}", self.path.display()))
    }

    /// Writes what is known here, and what others have learnt in the meantime.
    pub(super) fn write(&self, memory: &mut Memory) -> Done {
        self.read_into(memory)?;
        write_file(&self.path, memory.to_json(today()).as_bytes())
    }
}

/// What was learnt, for people.
pub(super) fn learnt(lesson: &Lesson) -> String {
    match lesson {
        Lesson::Path(Some(seen)) | Lesson::AtLeast(seen) => {
            format!("the path carries {} kB per round trip of {:.1} ms", seen.bytes / 1000, seen.rtt as f64 / 1e6)
        }
        Lesson::Path(None) | Lesson::Nothing => "the path carries too little to jump: forgotten".to_owned(),
    }
}
