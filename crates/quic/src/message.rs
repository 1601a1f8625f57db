//! What both ends say to each other on the control stream: a length of four bytes and a JSON
//! document.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::judging::ReadingConfig;
use crate::learning::Observed;

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

/// What a detector of fair queuing found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Isolated {
    /// `isolated`, `shared` or `unknown`.
    pub isolation: String,
    /// Probability that this is right, if the detector reckons with one.
    pub confidence: Option<f64>,
    /// Rate that it found, in bit/s of IP packets.
    pub rate: u64,
    /// Nanoseconds after the first packet.
    pub after: u64,
}

/// A token bucket in front of the bottleneck, or what acts like one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Burst {
    /// Rate at which a burst arrives, in bit/s of IP packets.
    pub peak: u64,
    /// Bytes of IP packets that it has at most.
    pub bytes: u64,
}

/// What a lone packet was seen to take, which is not what others take at the bottleneck.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alone {
    /// The least and the most nanoseconds that a full packet takes longer than one of no length.
    pub takes: [u64; 2],
    /// Bytes of a token bucket that lets it pass, if it is one that holds a few packets.
    pub bucket: Option<u64>,
}

/// Why the median of the trains' rates is not said to be the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// Too few trains had a rate.
    Few,
    /// Packets arrived in clumps, or late, or in another order, for so long that it matters to a
    /// train: slots, jitter, other stations, other traffic.
    Uneven,
    /// Many packets of trains were lost: senders of before say that.
    Losses,
    /// One that a later version knows.
    #[serde(other)]
    Other,
}

/// What a look at a path saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looked {
    /// Rate at which each train arrived, in bit/s of IP packets, least first.
    pub rates: Vec<u64>,
    /// Trains arrived faster at their beginning.
    pub burst: Option<Burst>,
    /// Rate behind a token bucket that some trains did not empty, in bit/s of IP packets, if it was
    /// found out. Otherwise rates that differ much say a range only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<u64>,
    /// Bytes of the largest token bucket that would have been found, if what fills it is half of
    /// the capacity or less; 0 if the sender does not say. What holds more may hide a slower path.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tested: u64,
    /// Why no rate is said to be the capacity, although trains may agree on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<Doubt>,
    /// The least and the most that the capacity may be then, in bit/s of IP packets, if that is
    /// another range than that of the trains' rates. The greatest of all numbers: no most is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<[u64; 2]>,
    /// What a packet takes that is alone, if another time than those of trains; none if the sender
    /// does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Alone>,
    /// Smallest RTT of a large packet in nanoseconds; 0 if nothing came back.
    pub rtt: u64,
    /// Bytes of that packet, with headers.
    pub packet: u32,
    /// Median difference of successive RTTs of packets that met no queue of the look, in
    /// nanoseconds.
    pub jitter: u64,
    /// Longest queue that the look met or built, in nanoseconds.
    pub queue: u64,
    /// By how many nanoseconds RTTs differ of packets that met no queue of the look; 0 if the
    /// sender does not say.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub varied: u64,
    /// Packets of trains that were lost.
    pub lost: u64,
    /// They were lost where the queue was longest: that is the buffer.
    pub overflowed: bool,
    /// The longest time in nanoseconds in which the path was away, as far as can be told; 0 if it
    /// was not.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub away: u64,
    /// The ECN field reaches the other end as it was sent.
    pub ecn: bool,
}

impl Looked {
    /// False if trains arrived at rates so different that no one of them is the capacity, or if
    /// there is another doubt.
    pub fn decided(&self) -> bool {
        self.doubt.is_none()
            && (self.behind.is_some()
                || !(ReadingConfig::USUAL.few(&self.rates) || ReadingConfig::USUAL.unsteady(&self.rates)))
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Looked {
    /// In the words of a version: those of before 5 take the median of all rates for the capacity.
    pub(crate) fn in_version(self, version: u32) -> Self {
        if version >= 5 {
            return self;
        }
        let mut rates = self.rates;
        rates
            .retain(|rate| self.behind.is_none_or(|behind| *rate as f64 <= behind as f64 * ReadingConfig::USUAL.bears));
        Self { rates, behind: None, tested: 0, doubt: None, between: None, alone: None, varied: 0, away: 0, ..self }
    }
}

/// What the sender knows when all has arrived.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Bytes of the application.
    pub bytes: u64,
    /// Nanoseconds from the first packet until all was acknowledged.
    pub nanos: u64,
    /// Packets sent that ask for an ACK, repairs included.
    pub packets: u64,
    /// Packets deemed lost.
    pub lost: u64,
    /// Packets acknowledged with a congestion mark.
    pub marked: u64,
    /// ACKs that told of something new.
    pub acks: u64,
    /// Smallest RTT in nanoseconds.
    pub min_rtt: u64,
    /// Mean RTT in nanoseconds.
    pub mean_rtt: u64,
    /// Largest RTT in nanoseconds.
    pub max_rtt: u64,
    /// Mean difference of successive RTTs in nanoseconds.
    pub jitter: u64,
    /// Why the flow start ended, once it did.
    pub exit: Option<String>,
    /// Nanoseconds after the first packet at which it ended.
    pub exit_after: Option<u64>,
    /// Lateness of departures in nanoseconds: median and 99 %.
    pub late: [u64; 2],
    /// The sender had real-time priority. Without it departures are late when its machine is busy.
    pub real_time: bool,
    /// What a detector found, if there was one.
    pub queue: Option<Isolated>,
    /// What the start was told of an earlier transfer.
    #[serde(default)]
    pub resumed: Option<Observed>,
    /// What a look saw, if it was one.
    #[serde(default)]
    pub look: Option<Looked>,
}

impl Looked {
    /// False of what no look sees.
    fn is_possible(&self) -> bool {
        self.rates.is_sorted()
            && self.between.is_none_or(|[least, most]| least <= most)
            && self.alone.as_ref().is_none_or(|Alone { takes: [least, most], .. }| least <= most)
    }
}

impl Report {
    /// What the other end reports, which may be anything, as it may be shown; `None` if that cannot
    /// be.
    pub(crate) fn possible(mut self) -> Option<Self> {
        self.exit = self.exit.as_deref().map(harmless);
        if let Some(queue) = &mut self.queue {
            queue.isolation = harmless(&queue.isolation);
        }
        let looked = self.look.as_ref().is_none_or(Looked::is_possible);
        let certain = self.queue.as_ref().and_then(|queue| queue.confidence).unwrap_or_default();
        (looked && (0.0..=1.0).contains(&certain)).then_some(self)
    }
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
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_whole_however_they_are_cut() {
        let messages = [
            Message::Join(7),
            Message::Refused("too many".into()),
            Message::Received(Received { bytes: 1, nanos: 2, intact: true, first: 1 }),
            Message::Readings(Readings { first: 3, told: u64::MAX, ages: vec![9, 0], waits: vec![1, 2] }),
        ];
        let wire: Vec<u8> = messages.iter().flat_map(Message::encode).collect();
        let mut decoder = Decoder::default();
        let mut read = Vec::new();
        for byte in wire {
            decoder.push(&[byte]);
            while let Some(message) = decoder.message().unwrap() {
                read.push(message);
            }
        }
        assert_eq!(read, messages);
    }

    #[test]
    fn of_many_messages_at_once_each_is_read_once() {
        let wire = Message::Join(7).encode().repeat(100);
        let mut decoder = Decoder::default();
        decoder.push(&wire[..20]);
        let mut read = usize::from(decoder.message().unwrap().is_some());
        decoder.push(&wire[20..]);
        read += std::iter::from_fn(|| decoder.message().unwrap()).count();
        assert_eq!(read, 100);
        decoder.push(b"");
        assert!(decoder.buffer.is_empty());
    }

    #[test]
    fn what_the_other_end_says_is_short_and_turns_nothing_around() {
        assert_eq!(
            harmless("a\u{1b}[2J\r\n\u{9b}\u{202e}\u{2028}é"),
            "a\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}é"
        );
        assert_eq!(harmless(&"x".repeat(500)), "x".repeat(500));
        assert_eq!(harmless(&"x".repeat(9000)), "x".repeat(500) + "…");
    }

    /// A report as clients and servers of version 4 wrote it, and were able to read.
    const OLD: &str = r#"{"bytes":430000,"nanos":5,"packets":300,"lost":0,"marked":0,"acks":290,
        "min_rtt":1,"mean_rtt":2,"max_rtt":3,"jitter":4,"exit":null,"exit_after":null,"late":[1,2],
        "real_time":true,"queue":{"isolation":"shared","confidence":0.99,"rate":5,"after":6},
        "resumed":null,"look":{"rates":[1,2,3],"burst":{"peak":7,"bytes":8},"rtt":1,"packet":1480,
        "jitter":9,"queue":10,"lost":0,"overflowed":false,"ecn":true}}"#;

    fn keys(value: &serde_json::Value, before: &str, all: &mut Vec<String>) {
        for (key, value) in value.as_object().into_iter().flatten() {
            all.push(format!("{before}{key}"));
            keys(value, &format!("{before}{key}."), all);
        }
    }

    #[test]
    fn reports_of_other_versions_are_read_and_old_ends_are_told_nothing_that_they_do_not_know() {
        let old: Report = serde_json::from_str(OLD).unwrap();
        let look = old.look.clone().unwrap();
        assert_eq!((look.behind, look.tested, look.decided()), (None, 0, false));
        // Those of a later version have words that nobody knows yet.
        let mut newer: serde_json::Value = serde_json::from_str(OLD).unwrap();
        for place in ["", "/look", "/look/burst", "/queue"] {
            newer.pointer_mut(place).unwrap()["of_a_later_version"] = serde_json::json!([1]);
        }
        for message in [
            serde_json::json!({ "report": newer }),
            serde_json::json!({ "received": { "bytes": 1, "nanos": 2, "intact": true, "later": 3 } }),
            serde_json::json!({ "readings": { "first": 0, "told": 2, "ages": [1], "later": {} } }),
        ] {
            let document = serde_json::to_vec(&message).unwrap();
            let mut decoder = Decoder::default();
            decoder.push(&[&(document.len() as u32).to_be_bytes()[..], &document].concat());
            let read = decoder.message().unwrap().unwrap();
            assert!(!matches!(&read, Message::Report(report) if **report != old), "{read:?}");
        }
        // What a sender of this version says to an end of the old one.
        let rates = vec![100, 101, 900];
        let now = Looked {
            rates,
            behind: Some(100),
            tested: 40_000,
            burst: None,
            doubt: Some(Doubt::Few),
            between: Some([1, 2]),
            ..look
        };
        let said = Report { look: Some(now.clone().in_version(4)), ..old.clone() };
        assert_eq!(said.look.as_ref().unwrap().rates, [100, 101]);
        let (mut before, mut words) = (Vec::new(), Vec::new());
        keys(&serde_json::from_str(OLD).unwrap(), "", &mut before);
        keys(&serde_json::to_value(&said).unwrap(), "", &mut words);
        assert!(words.iter().all(|word| before.contains(word)), "{words:?}");
        assert_eq!(now.clone().in_version(5), now);
    }

    #[test]
    fn what_is_no_message_is_an_error_and_lengths_are_bounded() {
        for wrong in
            [&b"\0\0\0\x02{}"[..], b"\xff\xff\xff\xff", b"\0\0\0\x0f{\"join\":\"seven\"}", b"GET / HTTP/1.1\r\n"]
        {
            let mut decoder = Decoder::default();
            decoder.push(wrong);
            assert!(decoder.message().is_err(), "{wrong:?}");
            read_control(wrong);
        }
    }
    #[test]
    fn who_does_not_ask_for_readings_says_what_was_said_before_there_were_any() {
        let quiet = Paced { message: 1448, gap: 5, tell: false };
        assert_eq!(serde_json::to_string(&quiet).unwrap(), r#"{"message":1448,"gap":5}"#);
        let asks = Paced { tell: true, ..quiet };
        for paced in [quiet, asks] {
            assert_eq!(serde_json::from_str::<Paced>(&serde_json::to_string(&paced).unwrap()).unwrap(), paced);
        }
    }
}
