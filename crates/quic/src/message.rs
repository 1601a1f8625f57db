//! What both ends say to each other on the control stream: a length of four bytes and a JSON
//! document.

mod report;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use report::{Alone, Burst, Doubt, Isolated, Looked, Report};

/// The version of this protocol. A client says the least that has what it asks for.
pub const VERSION: u32 = 5;
/// Servers take part from this one on. Clients of it read no words in reports that it did not have;
/// later ones do.
pub const OLDEST: u32 = 4;
/// From this version on [`Readings`] say how long messages waited to be read.
pub const WAITS: u32 = 5;
/// Code with which a server ends a connection whose first words it does not understand.
pub const NOT_UNDERSTOOD: u32 = 2;
/// The code with which a connection is closed that is not wanted; the reason says why.
pub const UNWANTED: u32 = 1;
/// Bytes at least of a message of a paced application: of shorter ones more would be told than they
/// are worth.
pub(crate) const LEAST_MESSAGE: u64 = 512;
/// Longest document in bytes.
pub const MOST_BYTES: usize = 16 << 10;

/// Characters of what the other end says that are shown: more would push away what else is.
const MOST_SHOWN: usize = 500;

/// True of what moves a terminal's cursor, begins new lines, or turns the direction of writing
/// around (Unicode Standard Annex 9).
fn is_harmful(each: char) -> bool {
    let turns = '\u{202a}'..='\u{202e}';
    let isolates = '\u{2066}'..='\u{2069}';
    each.is_control()
        || turns.contains(&each)
        || isolates.contains(&each)
        || matches!(each, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}')
}

/// What the other end says, as people may be shown it: no longer than a few lines, and what moves a
/// terminal's cursor, begins new lines or turns the writing around becomes U+FFFD.
#[must_use]
pub fn harmless(text: &str) -> String {
    let mut characters = text.chars();
    let shown = characters.by_ref().take(MOST_SHOWN);
    let mut shown: String =
        shown.map(|each| if is_harmful(each) { char::REPLACEMENT_CHARACTER } else { each }).collect();
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}

/// Who sends the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The server.
    Down,
    /// The client.
    Up,
}

/// An application that writes a message now and then instead of all it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paced {
    /// Bytes of a message, at least 512: each is a piece of its own, and receivers take only few
    /// pieces that are shorter.
    pub message: u64,
    /// Nanoseconds from one to the next, above 0.
    pub gap: u64,
    /// The receiver tells when it has read each of them ([`Message::Readings`]). Not said if false:
    /// servers from before there was this word take part as long as nobody asks for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tell: bool,
}

/// Messages of a [`Paced`] application that are too short, or have no time between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidPaced;

impl fmt::Display for InvalidPaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a paced application has messages of {LEAST_MESSAGE} bytes at least, and time between them")
    }
}

impl std::error::Error for InvalidPaced {}

impl Paced {
    /// Checks that it makes sense.
    ///
    /// # Errors
    /// If messages are too short, or there is no time between them.
    pub fn validate(self) -> Result<(), InvalidPaced> {
        if self.message >= LEAST_MESSAGE && self.gap > 0 {
            return Ok(());
        }
        Err(InvalidPaced)
    }
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// [`OLDEST`] ..= [`VERSION`].
    pub version: u32,
    /// A number that both connections of one transfer share.
    pub session: u64,
    /// Connections that carry the transfer: 1 or 2.
    pub connections: u8,
    /// Who sends.
    pub direction: Direction,
    /// Bytes to transfer; as many as the time allows if there is none.
    pub size: Option<u64>,
    /// Nanoseconds after which the sender stops.
    pub nanos: Option<u64>,
    /// Streams that carry the data, 1 ..= 64.
    pub streams: u8,
    /// Flow start of the sender.
    pub start: String,
    /// Congestion avoidance of the sender.
    pub avoidance: String,
    /// File to send instead of test data, relative to the server's root.
    pub file: Option<String>,
    /// The sender looks at the path instead of transferring as much as it can.
    #[serde(default)]
    pub look: bool,
    /// The sender has no more than an application gave it that writes at a constant rate.
    #[serde(default)]
    pub paced: Option<Paced>,
}

/// What the receiver has when all has arrived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// Bytes of the application.
    pub bytes: u64,
    /// Nanoseconds from the first byte to the last.
    pub nanos: u64,
    /// Every byte of test data was the right one.
    pub intact: bool,
    /// Bytes that came with the first packet, and so before that time began; 0 from ends of before
    /// there was this word.
    #[serde(default)]
    pub first: u64,
}

/// When messages of a [`Paced`] application were read at the other end, by the clock there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readings {
    /// Number of the first of them; the application's first is 0.
    pub first: u64,
    /// Nanoseconds of the receiver's clock, from whenever it began, at which this leaves it.
    pub told: u64,
    /// Nanoseconds before that at which each was read, in their order.
    pub ages: Vec<u64>,
    /// Nanoseconds before it was read at which the last byte of each arrived there, as the system
    /// has stamped its datagram; none if the receiver does not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<u64>,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// The first on the first connection.
    Request(Request),
    /// The first on the second connection: the session it belongs to.
    Join(u64),
    /// The server takes part; with the size of the file if one was asked for, or the bytes that a
    /// client may send which named no size.
    Accepted(Option<u64>),
    /// It does not, and why.
    Refused(String),
    /// From the sender.
    Report(Box<Report>),
    /// From the receiver.
    Received(Received),
    /// From the receiver now and then, if it was [asked](Paced::tell).
    Readings(Readings),
}

/// Bytes that are no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoMessage(String);

impl fmt::Display for NoMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the other end does not speak flowstart's protocol: {}", self.0)
    }
}

impl std::error::Error for NoMessage {}

impl Message {
    /// The message as it goes over the wire.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        // Plain values always have a document.
        let document = serde_json::to_vec(self).unwrap_or_default();
        let length = u32::try_from(document.len()).unwrap_or(u32::MAX);
        [&length.to_be_bytes()[..], &document].concat()
    }
}

/// Puts messages together from what arrives.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// Bytes of it that were messages.
    read: usize,
}

impl Decoder {
    /// More bytes arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        // Not after each message: what follows a short one may be long.
        self.buffer.drain(..std::mem::take(&mut self.read));
        self.buffer.extend_from_slice(bytes);
    }

    /// The next message, if it is complete.
    ///
    /// # Errors
    /// If what arrived is no message, or a longer one than [`MOST_BYTES`].
    pub fn message(&mut self) -> Result<Option<Message>, NoMessage> {
        let Some((length, rest)) = self.buffer[self.read..].split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > MOST_BYTES {
            return Err(NoMessage(format!("a message of {length} bytes (at most {MOST_BYTES})")));
        }
        let Some(document) = rest.get(..length) else { return Ok(None) };
        let message = serde_json::from_slice(document).map_err(|error| NoMessage(error.to_string()))?;
        self.read += 4 + length;
        Ok(Some(message))
    }
}

/// For fuzzing: what arrives on a control stream, in two pieces. What is read is written and read
/// again the same.
pub fn read_control(bytes: &[u8]) {
    let mut decoder = Decoder::default();
    let (first, second) = bytes.split_at(bytes.len() / 2);
    for piece in [first, second] {
        decoder.push(piece);
        while let Ok(Some(message)) = decoder.message() {
            let mut again = Decoder::default();
            again.push(&message.encode());
            assert_eq!(again.message(), Ok(Some(message)));
        }
    }
}

#[cfg(test)]
mod tests;
