//! What transfers to a place taught about the path, for later ones (Careful Resume, RFC 9959).

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::net::IpAddr;

use flowstart_congestion::{ControllerConfig, StartConfig};
use flowstart_units::{Bytes, Span};
use serde::{Deserialize, Serialize};

use crate::learning::{Lesson, Observed};

/// Version of the document that a memory is kept as.
const VERSION: u32 = 1;
/// What is known of a place, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    bytes: u64,
    rtt_ns: u64,
    /// Seconds of Unix time.
    seen: u64,
}

/// Bytes that no path carries in a round trip.
const MOST_BYTES: u64 = 1 << 40;
/// Nanoseconds that no round trip takes: an hour.
const MOST_RTT: u64 = 3_600_000_000_000;

/// A memory as a document.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    places: BTreeMap<IpAddr, Entry>,
}

/// Why a text is no document of a [`Memory`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryError {
    /// It is something else from this place on.
    NoDocument {
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
    },
    /// It is of a version that is not known here.
    Version(u32),
    /// No path is as this one is said to be.
    NoPath {
        /// The other end.
        place: IpAddr,
        /// What it is said to carry in a round trip.
        bytes: u64,
        /// How long that is said to be, in nanoseconds.
        rtt: u64,
    },
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDocument { line, column } => {
                write!(f, "from line {line}, column {column} on it is not what is written into one")
            }
            Self::Version(version) => write!(f, "version {version} is not known here, only {VERSION}"),
            Self::NoPath { place, bytes, rtt } => {
                write!(f, "no path, such as that to {place}, carries {bytes} bytes in {rtt} ns")
            }
        }
    }
}

impl std::error::Error for MemoryError {}

/// What transfers to other hosts taught, by their addresses. It is off, and forgets, as long as
/// nobody keeps what [`to_json`](Self::to_json) says.
#[derive(Clone, Debug)]
pub struct Memory {
    lifetime: Span,
    most: usize,
    places: BTreeMap<IpAddr, Entry>,
    /// Places to which a transfer resumes just now.
    resuming: HashSet<IpAddr>,
    /// Places of which something else is known than the document says.
    changed: HashSet<IpAddr>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            lifetime: Self::LIFETIME,
            most: Self::PLACES,
            places: BTreeMap::new(),
            resuming: HashSet::new(),
            changed: HashSet::new(),
        }
    }
}

impl Memory {
    /// Time for which it knows something, unless another one is chosen: an hour. Paths change by
    /// the hour of the day.
    pub const LIFETIME: Span = Span::from_secs(3600);
    /// Places that it knows at most; the oldest is forgotten first.
    pub const PLACES: usize = 10_000;

    /// An empty memory that knows things for this long, above zero.
    #[must_use]
    pub fn new(lifetime: Span) -> Self {
        Self { lifetime, ..Self::default() }
    }

    /// Learns what a document of [`to_json`](Self::to_json) says, except of places that were learnt
    /// about since the last one was written: so several programs may share a file.
    ///
    /// # Errors
    /// If it is no such document.
    pub fn merge(&mut self, json: &str) -> Result<(), MemoryError> {
        let document: Document = serde_json::from_str(json)
            .map_err(|error| MemoryError::NoDocument { line: error.line(), column: error.column() })?;
        if document.version != VERSION {
            return Err(MemoryError::Version(document.version));
        }
        let possible =
            |entry: &Entry| (1..=MOST_BYTES).contains(&entry.bytes) && (1..=MOST_RTT).contains(&entry.rtt_ns);
        if let Some((place, entry)) = document.places.iter().find(|(_, entry)| !possible(entry)) {
            let Entry { bytes, rtt_ns: rtt, .. } = *entry;
            return Err(MemoryError::NoPath { place: *place, bytes, rtt });
        }
        for (place, entry) in document.places {
            if !self.changed.contains(&place) {
                self.places.insert(place, entry);
            }
        }
        Ok(())
    }

    /// The whole of it at `now`, in seconds of Unix time, without what is too old.
    #[must_use]
    pub fn to_json(&mut self, now: u64) -> String {
        let lifetime = self.lifetime;
        self.places.retain(|_, entry| fresh(entry, now, lifetime));
        while self.places.len() > self.most {
            let oldest = self.places.iter().min_by_key(|(_, entry)| entry.seen).map(|(place, _)| *place);
            oldest.and_then(|place| self.places.remove(&place));
        }
        self.changed.clear();
        let document = Document { version: VERSION, places: self.places.clone() };
        // Numbers and addresses always become JSON.
        serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
    }

    /// True if something was learnt or forgotten since [`to_json`](Self::to_json).
    #[must_use]
    pub fn is_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Tells a start that resumes what is known of a place at `now`, in seconds of Unix time. One
    /// transfer at a time resumes; every call is followed by one of [`learn`](Self::learn).
    pub fn propose(&mut self, place: IpAddr, now: u64, config: &mut ControllerConfig) -> Option<Observed> {
        let StartConfig::CarefulResume(resume) = &mut config.start else { return None };
        let place = place.to_canonical();
        let entry = self.places.get(&place).filter(|entry| fresh(entry, now, self.lifetime))?;
        if !self.resuming.insert(place) {
            return None;
        }
        resume.saved_cwnd = Some(Bytes::new(entry.bytes));
        resume.saved_rtt = Some(Span::from_nanos(entry.rtt_ns));
        Some(Observed { bytes: entry.bytes, rtt: entry.rtt_ns })
    }

    /// A transfer to a place is over, to which this was `proposed`: what it taught counts from now
    /// on. True if something else is known now than before.
    pub fn learn(&mut self, place: IpAddr, now: u64, proposed: Option<Observed>, lesson: Lesson) -> bool {
        let place = place.to_canonical();
        if proposed.is_some() {
            self.resuming.remove(&place);
        }
        let known = self.places.get(&place).filter(|entry| fresh(entry, now, self.lifetime));
        let learnt = match lesson {
            Lesson::Path(observed) => observed,
            Lesson::AtLeast(observed) if known.is_none_or(|entry| entry.bytes < observed.bytes) => Some(observed),
            Lesson::AtLeast(_) | Lesson::Nothing => return false,
        };
        let forgotten = self.places.remove(&place);
        if let Some(Observed { bytes, rtt }) = learnt {
            self.places.insert(place, Entry { bytes, rtt_ns: rtt, seen: now });
        }
        let new = learnt.is_some() || forgotten.is_some();
        if new {
            self.changed.insert(place);
        }
        new
    }
}

/// Not too old, and not of the future: a clock that was set back makes nothing young.
fn fresh(entry: &Entry, now: u64, lifetime: Span) -> bool {
    entry.seen <= now && now - entry.seen <= lifetime.as_nanos() / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller;

    const HOUR: u64 = 3600;
    const SEEN: Observed = Observed { bytes: 500_000, rtt: 40_000_000 };

    fn place(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn proposed(memory: &mut Memory, to: &str, now: u64) -> Option<Observed> {
        let mut config = controller("careful_resume", "cubic", 1452).unwrap();
        let proposed = memory.propose(place(to), now, &mut config);
        let StartConfig::CarefulResume(resume) = config.start else { panic!("{config:?}") };
        assert_eq!(resume.saved_cwnd, proposed.map(|seen| Bytes::new(seen.bytes)));
        assert_eq!(resume.saved_rtt, proposed.map(|seen| Span::from_nanos(seen.rtt)));
        proposed
    }

    fn path(observed: Observed) -> Lesson {
        Lesson::Path(Some(observed))
    }

    #[test]
    fn what_was_seen_of_a_place_is_proposed_to_one_transfer_at_a_time_until_it_is_too_old() {
        let mut memory = Memory::default();
        assert_eq!(proposed(&mut memory, "192.0.2.7", 100), None);
        assert!(memory.learn(place("192.0.2.7"), 100, None, path(SEEN)));
        assert_eq!(proposed(&mut memory, "192.0.2.8", 100), None, "another place");
        assert_eq!(proposed(&mut memory, "192.0.2.7", 99), None, "the clock was set back");
        assert_eq!(proposed(&mut memory, "192.0.2.7", 101 + HOUR), None, "too old");
        assert_eq!(proposed(&mut memory, "::ffff:192.0.2.7", 100 + HOUR), Some(SEEN), "an IPv4 address all the same");
        assert_eq!(proposed(&mut memory, "192.0.2.7", 100 + HOUR), None, "somebody resumes already");
        let fewer = Observed { bytes: 100_000, ..SEEN };
        assert!(memory.learn(place("192.0.2.7"), 200, Some(SEEN), path(fewer)));
        assert_eq!(proposed(&mut memory, "192.0.2.7", 300), Some(fewer));
        assert!(memory.learn(place("192.0.2.7"), 300, Some(fewer), Lesson::Path(None)));
        assert_eq!(proposed(&mut memory, "192.0.2.7", 300), None, "it did not hold");
        assert!(!memory.learn(place("192.0.2.7"), 300, None, Lesson::Path(None)), "nothing new");
    }

    #[test]
    fn a_transfer_too_small_to_fill_the_path_takes_nothing_away() {
        let mut memory = Memory::default();
        let (fewer, more) = (Observed { bytes: 90_000, ..SEEN }, Observed { bytes: 900_000, ..SEEN });
        assert!(memory.learn(place("192.0.2.7"), 100, None, Lesson::AtLeast(SEEN)), "better than nothing");
        assert!(!memory.learn(place("192.0.2.7"), 200, None, Lesson::AtLeast(fewer)));
        assert!(!memory.learn(place("192.0.2.7"), 200, None, Lesson::Nothing));
        assert_eq!(proposed(&mut memory, "192.0.2.7", 100 + HOUR), Some(SEEN));
        assert_eq!(proposed(&mut memory, "192.0.2.7", 101 + HOUR), None, "nor does it keep it young");
        assert!(memory.learn(place("192.0.2.7"), 101 + HOUR, Some(SEEN), Lesson::AtLeast(fewer)), "that was too old");
        assert!(memory.learn(place("192.0.2.7"), 102 + HOUR, None, Lesson::AtLeast(more)));
        assert_eq!(proposed(&mut memory, "192.0.2.7", 102 + HOUR), Some(more));
    }

    #[test]
    fn other_starts_are_told_nothing() {
        let mut memory = Memory::default();
        memory.learn(place("::1"), 1, None, path(SEEN));
        let mut config = controller("slow_start", "cubic", 1452).unwrap();
        let before = config.clone();
        assert_eq!(memory.propose(place("::1"), 1, &mut config), None);
        assert_eq!(config, before);
    }

    #[test]
    fn two_programs_share_a_document() {
        let (mut one, mut other) = (Memory::default(), Memory::default());
        one.learn(place("192.0.2.1"), 10, None, path(SEEN));
        assert!(one.is_changed());
        let text = one.to_json(10);
        assert!(!one.is_changed());
        other.learn(place("192.0.2.2"), 11, None, path(SEEN));
        other.merge(&text).unwrap();
        let text = other.to_json(11);
        // What the first has learnt in between is newer than the document.
        let fewer = Observed { bytes: 60_000, ..SEEN };
        one.learn(place("192.0.2.2"), 12, None, path(fewer));
        one.learn(place("192.0.2.1"), 12, Some(SEEN), Lesson::Path(None));
        one.merge(&text).unwrap();
        assert_eq!(proposed(&mut one, "192.0.2.2", 12), Some(fewer));
        assert_eq!(proposed(&mut one, "192.0.2.1", 12), None, "forgotten, and not learnt again");
    }

    #[test]
    fn a_document_has_no_more_than_is_allowed_and_the_newest() {
        let mut memory = Memory { most: 2, ..Memory::default() };
        for (seen, last) in [(5, 1), (3, 2), (4, 3)] {
            memory.learn(place(&format!("192.0.2.{last}")), seen, None, path(SEEN));
        }
        let text = memory.to_json(5);
        assert!(text.contains("192.0.2.1") && text.contains("192.0.2.3") && !text.contains("192.0.2.2"), "{text}");
        assert!(!memory.to_json(6 + HOUR).contains("192.0.2"), "nothing is fresh");
    }

    #[test]
    fn other_documents_are_refused() {
        for text in ["", "{}", "[]", r#"{"version":2,"places":{}}"#, r#"{"version":1,"places":{"here":{}}}"#] {
            assert!(Memory::default().merge(text).is_err(), "{text}");
        }
        // What no path carries, and a jump to it would be.
        let path = |bytes: u64, rtt: u64| {
            let text =
                format!(r#"{{"version":1,"places":{{"192.0.2.7":{{"bytes":{bytes},"rtt_ns":{rtt},"seen":1}}}}}}"#);
            Memory::default().merge(&text)
        };
        assert_eq!(path(500_000, 30_000_000), Ok(()));
        for (bytes, rtt) in [(u64::MAX, 30_000_000), (0, 30_000_000), (500_000, 0), (500_000, u64::MAX)] {
            let said = format!("no path, such as that to 192.0.2.7, carries {bytes} bytes in {rtt} ns");
            assert_eq!(path(bytes, rtt).unwrap_err().to_string(), said);
        }
    }
}
