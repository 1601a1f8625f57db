//! The data of transfers: test data that every receiver can check, files, and pieces with their
//! offsets, which may travel in any order over several streams and connections.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;

use flowstart_random::SplitMix64;
use flowstart_transport::Joining;
use flowstart_units::Time;

use crate::connection::Connection;
use crate::failed::Failed;
use crate::message::Received;
use crate::stack::StreamId;

/// Bytes before every piece: its offset (eight) and its length (four).
pub(crate) const PIECE_HEADER: usize = 12;
/// Longest piece in bytes.
const MOST_PIECE: u32 = 1 << 20;
/// First offset that no piece reaches.
const MOST_OFFSET: u64 = 1 << 62;
/// Bytes that a piece may be ahead of what has arrived without a gap: what a sender may have under
/// way. Each of 64 streams has a window of 2 MiB, over each of two connections.
const MOST_AHEAD: u64 = 1 << 28;
/// Shorter pieces are rare, for only the last of a transfer is short: every gap between pieces
/// takes memory.
pub(crate) const SHORT_PIECE: u32 = 512;
/// Short pieces that a transfer may have.
const MOST_SHORT: u32 = 64;

/// Byte `offset` of the test data (SplitMix64 of its place): no two places are alike.
fn word(index: u64) -> [u8; 8] {
    SplitMix64::nth(0, index.wrapping_add(1)).to_le_bytes()
}

/// Calls `each` for every stretch of test data from `offset` on, with the place in `length` bytes.
fn stretches(offset: u64, length: usize, mut each: impl FnMut(usize, &[u8])) {
    let mut done = 0;
    while done < length {
        let at = offset + done as u64;
        let word = word(at / 8);
        let from = (at % 8) as usize;
        let take = (8 - from).min(length - done);
        each(done, &word[from..from + take]);
        done += take;
    }
}

/// Where data comes from.
#[derive(Debug)]
pub enum Source {
    /// Test data.
    Test,
    /// A file.
    File(Opened),
}

/// A file, and what it was when it was opened.
#[derive(Debug)]
pub struct Opened {
    file: File,
    before: Metadata,
}

impl Opened {
    /// A file as it is now.
    ///
    /// # Errors
    /// If the system does not say how large it is.
    pub fn new(file: File) -> io::Result<Self> {
        Ok(Self { before: file.metadata()?, file })
    }

    /// Its bytes when it was opened.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.before.len()
    }

    /// How it has changed since, as far as its size and the time of its last change say: that time
    /// goes in steps of some milliseconds.
    fn change(&self) -> io::Result<Option<&'static str>> {
        let now = self.file.metadata()?;
        let is_other = now.len() != self.before.len() || now.modified().ok() != self.before.modified().ok();
        Ok(match now.len() < self.before.len() {
            true => Some(SHORTER),
            false => is_other.then_some(CHANGED),
        })
    }
}

/// What is said of files that change.
const SHORTER: &str = "the file has become shorter while it was sent";
const CHANGED: &str = "the file has changed while it was sent";

impl Source {
    /// What is wrong with what was read, now that all is.
    pub(crate) fn fault(&self) -> Option<String> {
        match self {
            Self::Test => None,
            Self::File(opened) => {
                opened.change().map_or_else(|error| Some(unreadable(&error)), |change| change.map(str::to_owned))
            }
        }
    }
    /// Appends `length` bytes from `offset` on.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn read(&self, offset: u64, length: usize, to: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Test => stretches(offset, length, |_, bytes| to.extend_from_slice(bytes)),
            Self::File(opened) => {
                let before = to.len();
                to.resize(before + length, 0);
                read_at(&opened.file, &mut to[before..], offset)?;
            }
        }
        Ok(())
    }
}

/// Why a file cannot be read.
pub(crate) fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => SHORTER.to_owned(),
        _ => format!("cannot read the file: {error}"),
    }
}

#[cfg(unix)]
fn read_at(file: &File, to: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, to, offset)
}

#[cfg(unix)]
fn write_at(file: &File, from: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, from, offset)
}

#[cfg(not(unix))]
fn read_at(mut file: &File, to: &mut [u8], offset: u64) -> io::Result<()> {
    use std::io::{Read as _, Seek as _};
    file.seek(io::SeekFrom::Start(offset))?;
    file.read_exact(to)
}

#[cfg(not(unix))]
fn write_at(mut file: &File, from: &[u8], offset: u64) -> io::Result<()> {
    use std::io::{Seek as _, Write as _};
    file.seek(io::SeekFrom::Start(offset))?;
    file.write_all(from)
}

/// Where data goes.
#[derive(Debug)]
pub enum Sink {
    /// It is compared with the test data.
    Check,
    /// A file.
    File(File),
}

#[derive(Debug, Default)]
struct Piece {
    header: Vec<u8>,
    offset: u64,
    left: u32,
}

/// Data that arrives.
#[derive(Debug)]
pub struct Receiving {
    sink: Sink,
    joining: Joining,
    pieces: HashMap<(usize, StreamId), Piece>,
    first: Option<Time>,
    last: Time,
    /// Bytes that came when the first did.
    with_first: u64,
    wrong: Option<u64>,
    fault: Option<Failed>,
    /// Bytes that may still arrive.
    allowed: u64,
    /// Bytes that the whole has, if that is known.
    whole: Option<u64>,
    /// Where the last of all pieces ends.
    reached: u64,
    /// Bytes of the application that have arrived, those twice that came twice.
    taken: u64,
    short: u32,
}

impl Receiving {
    /// Nothing has arrived, and at most so many bytes may, headers and repetitions included.
    #[must_use]
    pub fn new(sink: Sink, allowed: u64) -> Self {
        Self {
            allowed,
            whole: None,
            reached: 0,
            taken: 0,
            short: 0,
            sink,
            joining: Joining::default(),
            pieces: HashMap::new(),
            first: None,
            last: Time::ZERO,
            with_first: 0,
            wrong: None,
            fault: None,
        }
    }

    /// The whole has so many bytes, and nothing lies behind them.
    pub(crate) fn bound(&mut self, whole: u64) {
        self.whole = Some(whole);
        self.stays_within();
    }

    /// Notes it if a piece reaches behind the end.
    fn stays_within(&mut self) {
        if self.whole.is_some_and(|whole| self.reached > whole) {
            self.fault.get_or_insert_with(|| Failed::protocol("the other end sent more than was asked for"));
        }
    }

    /// Bytes of the application that have arrived: those behind a gap, too, and those twice that
    /// came twice.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Bytes that have arrived without a gap.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.joining.delivered()
    }

    /// True once a stream has brought anything.
    pub(crate) fn has_begun(&self) -> bool {
        self.first.is_some() || !self.pieces.is_empty()
    }

    /// When the first and the last byte arrived; `None` before the first.
    #[must_use]
    pub fn times(&self) -> Option<(Time, Time)> {
        self.first.map(|first| (first, self.last))
    }

    /// What there is by now.
    #[must_use]
    pub fn received(&self) -> Received {
        let bytes = self.delivered();
        Received {
            bytes,
            nanos: self.times().map_or(0, |(first, last)| last.since(first).as_nanos()),
            intact: self.is_intact(),
            first: self.with_first.min(bytes),
        }
    }

    /// True if all test data was right.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.wrong.is_none()
    }

    /// What is wrong with what arrived, or with the file it goes to.
    #[must_use]
    pub fn fault(&self) -> Option<&str> {
        self.failed().map(Failed::words)
    }

    /// The same with its kind.
    pub(crate) fn failed(&self) -> Option<&Failed> {
        self.fault.as_ref()
    }

    /// Takes what has arrived of a stream of the connection with this number, and tells `hear`
    /// which bytes of the application that was; false once the stream is over.
    pub(crate) fn goes_on(
        &mut self,
        now: Time,
        number: usize,
        stream: StreamId,
        connection: &mut Connection,
        hear: &mut dyn FnMut(Range<u64>),
    ) -> bool {
        let over = connection.read(stream, &mut |bytes| self.take(now, number, stream, &bytes, hear));
        if over {
            self.ended(number, stream);
        }
        !over
    }

    /// A stream of a connection is over.
    fn ended(&mut self, connection: usize, stream: StreamId) {
        self.pieces.remove(&(connection, stream));
    }

    /// Bytes of a stream of a connection arrived, in order; `hear` is told which bytes of the
    /// application they are.
    pub fn take(
        &mut self,
        now: Time,
        connection: usize,
        stream: StreamId,
        mut bytes: &[u8],
        hear: &mut dyn FnMut(Range<u64>),
    ) {
        match self.allowed.checked_sub(bytes.len() as u64) {
            Some(left) => self.allowed = left,
            None => self.fault = Some(Failed::protocol("more data came than a transfer may have")),
        }
        let piece = self.pieces.entry((connection, stream)).or_default();
        while !bytes.is_empty() && self.fault.is_none() {
            if piece.left == 0 {
                let missing = PIECE_HEADER - piece.header.len();
                let (header, rest) = bytes.split_at(missing.min(bytes.len()));
                piece.header.extend_from_slice(header);
                bytes = rest;
                if let Some((offset, length)) = piece.header.split_first_chunk::<8>()
                    && let Ok(length) = <[u8; 4]>::try_from(length)
                {
                    piece.offset = u64::from_be_bytes(*offset);
                    piece.left = u32::from_be_bytes(length);
                    piece.header.clear();
                    self.short += u32::from(piece.left < SHORT_PIECE);
                    let far = piece.offset >= MOST_OFFSET || piece.offset > self.joining.delivered() + MOST_AHEAD;
                    if piece.left == 0 || piece.left > MOST_PIECE || far || self.short > MOST_SHORT {
                        self.fault = Some(Failed::protocol("the other end sent data that makes no sense"));
                        return;
                    }
                    self.reached = self.reached.max(piece.offset + u64::from(piece.left));
                    if self.whole.is_some_and(|whole| self.reached > whole) {
                        return self.stays_within();
                    }
                }
                continue;
            }
            let (part, rest) = bytes.split_at(bytes.len().min(piece.left as usize));
            bytes = rest;
            match &self.sink {
                Sink::Check => stretches(piece.offset, part.len(), |at, right| {
                    if part[at..at + right.len()] != *right {
                        self.wrong.get_or_insert(piece.offset + at as u64);
                    }
                }),
                Sink::File(file) => {
                    if let Err(error) = write_at(file, part, piece.offset) {
                        self.fault = Some(Failed::file(match error.kind() {
                            std::io::ErrorKind::StorageFull => "cannot write what arrives: no space is left".to_owned(),
                            std::io::ErrorKind::NotSeekable => {
                                "cannot write what arrives: pieces come in any order, and this is a pipe".to_owned()
                            }
                            _ => format!("cannot write what arrives: {error}"),
                        }));
                        return;
                    }
                }
            }
            let end = piece.offset + part.len() as u64;
            self.taken = self.taken.saturating_add(part.len() as u64);
            self.joining.arrived(piece.offset..end);
            hear(piece.offset..end);
            piece.offset = end;
            piece.left -= part.len() as u32;
            if now <= *self.first.get_or_insert(now) {
                self.with_first += part.len() as u64;
            }
            self.last = self.last.max(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(offset: u64, length: usize) -> Vec<u8> {
        let mut bytes = offset.to_be_bytes().to_vec();
        bytes.extend_from_slice(&(length as u32).to_be_bytes());
        Source::Test.read(offset, length, &mut bytes).unwrap();
        bytes
    }

    fn stream(number: u64) -> StreamId {
        StreamId::from(4 * number + 2)
    }

    #[test]
    fn pieces_in_any_order_cut_anywhere_are_put_together_and_checked() {
        let mut receiving = Receiving::new(Sink::Check, 10_000);
        let late = piece(1003, 500);
        for byte in &late {
            receiving.take(Time::ZERO, 0, stream(0), &[*byte], &mut |_| {});
        }
        assert_eq!(receiving.delivered(), 0);
        receiving.take(Time::from_nanos(5), 1, stream(0), &piece(0, 1003), &mut |_| {});
        assert_eq!((receiving.delivered(), receiving.is_intact()), (1503, true));
        let mut wrong = piece(1503, 20);
        wrong[PIECE_HEADER + 9] ^= 1;
        receiving.take(Time::from_nanos(9), 0, stream(4), &wrong, &mut |_| {});
        assert_eq!((receiving.delivered(), receiving.is_intact()), (1523, false));
        assert_eq!(receiving.times(), Some((Time::ZERO, Time::from_nanos(9))));
        assert_eq!(receiving.received(), Received { bytes: 1523, nanos: 9, intact: false, first: 500 });
    }

    #[test]
    fn more_than_is_allowed_is_a_fault() {
        let mut receiving = Receiving::new(Sink::Check, 600);
        receiving.take(Time::ZERO, 0, stream(0), &piece(0, 500), &mut |_| {});
        assert!(receiving.fault().is_none());
        receiving.take(Time::ZERO, 0, stream(0), &piece(500, 100), &mut |_| {});
        assert!(receiving.fault().is_some());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_cannot_be_written_is_said_in_words() {
        let file = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut receiving = Receiving::new(Sink::File(file), 600);
        receiving.take(Time::ZERO, 0, stream(0), &piece(0, 500), &mut |_| {});
        assert_eq!(receiving.fault(), Some("cannot write what arrives: no space is left"));
        let (_reader, pipe) = std::io::pipe().unwrap();
        let pipe = std::fs::File::from(std::os::fd::OwnedFd::from(pipe));
        let mut receiving = Receiving::new(Sink::File(pipe), 600);
        receiving.take(Time::ZERO, 0, stream(0), &piece(0, 500), &mut |_| {});
        assert!(receiving.fault().unwrap().ends_with("this is a pipe"), "{:?}", receiving.fault());
    }

    #[test]
    fn gaps_without_number_are_a_fault() {
        let mut receiving = Receiving::new(Sink::Check, u64::MAX);
        for number in 0..=u64::from(MOST_SHORT) {
            assert!(receiving.fault().is_none(), "{number}");
            receiving.take(Time::ZERO, 0, stream(0), &piece(number * 1000, 1), &mut |_| {});
        }
        assert!(receiving.fault().is_some());
        for (offset, right) in [(MOST_AHEAD + 10, true), (MOST_AHEAD + 11, false)] {
            let mut receiving = Receiving::new(Sink::Check, u64::MAX);
            receiving.take(Time::ZERO, 0, stream(0), &piece(0, 10), &mut |_| {});
            receiving.take(Time::ZERO, 0, stream(0), &piece(offset, 1000), &mut |_| {});
            assert_eq!(receiving.fault().is_none(), right, "{offset}");
        }
    }

    #[test]
    fn of_a_stream_that_is_over_nothing_is_kept() {
        let mut receiving = Receiving::new(Sink::Check, 10_000);
        receiving.take(Time::ZERO, 1, stream(0), &piece(0, 100)[..50], &mut |_| {});
        assert_eq!(receiving.pieces.len(), 1);
        receiving.ended(1, stream(0));
        assert!(receiving.pieces.is_empty());
    }

    #[test]
    fn lengths_and_offsets_that_make_no_sense_are_a_fault() {
        for (offset, length) in [(u64::MAX, 10), (0, 0), (0, u32::MAX)] {
            let mut receiving = Receiving::new(Sink::Check, 10_000);
            let header: Vec<u8> = [&u64::to_be_bytes(offset)[..], &u32::to_be_bytes(length)].concat();
            receiving.take(Time::ZERO, 0, stream(0), &[&header[..], b"abc"].concat(), &mut |_| {});
            assert!(receiving.fault().is_some(), "{offset} {length}");
        }
    }
}
