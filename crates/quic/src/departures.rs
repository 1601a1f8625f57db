//! With which datagrams the messages of a paced application leave.

use std::collections::HashMap;
use std::ops::Range;

use flowstart_units::Time;

use crate::data::PIECE_HEADER;

/// The bytes of a datagram by which others know it again: behind the header (whose identifier of
/// the connection has 8 bytes here) all is encrypted, and no two datagrams are alike.
const SAMPLE: Range<usize> = 16..32;

/// A datagram left with the last byte of a message. If it is lost, the message ends in another one
/// later, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageDeparture {
    /// The number of the message; the first is 0.
    pub message: u64,
    /// When the datagram left.
    pub at: Time,
    /// What others know it by, see [`datagram_sample`].
    pub sample: Option<u128>,
}

/// Bytes of a datagram by which it can be known again elsewhere; `None` if it is too short: with an
/// end of a message, no more than one byte of it is in such.
#[must_use]
pub fn datagram_sample(datagram: &[u8]) -> Option<u128> {
    Some(u128::from_be_bytes(datagram.get(SAMPLE)?.try_into().ok()?))
}

/// Where messages end on the streams of one connection.
#[derive(Debug, Default)]
pub(crate) struct MessageEnds {
    streams: HashMap<u64, Ends>,
}

#[derive(Debug, Default)]
struct Ends {
    /// Bytes written to the stream.
    written: u64,
    /// Place of a message's last byte on the stream, and the message's number; both increase.
    lasts: Vec<(u64, u64)>,
}

impl MessageEnds {
    /// A piece of these bytes of the application, whose messages are so long, goes to a stream.
    pub(crate) fn wrote(&mut self, stream: u64, piece: Range<u64>, message: u64) {
        let ends = self.streams.entry(stream).or_default();
        let from = ends.written + PIECE_HEADER as u64;
        for number in piece.start / message..piece.end / message {
            ends.lasts.push((from + (number + 1) * message - 1 - piece.start, number));
        }
        ends.written = from + (piece.end - piece.start);
    }

    /// The messages that end in these bytes of a stream.
    pub(crate) fn within(&self, stream: u64, bytes: &Range<u64>) -> impl Iterator<Item = u64> {
        let lasts = self.streams.get(&stream).map_or(&[][..], |ends| &ends.lasts);
        let until = |place: u64| lasts.partition_point(|(last, _)| *last < place);
        lasts[until(bytes.start)..until(bytes.end.max(bytes.start))].iter().map(|(_, number)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_end_where_their_last_byte_is_behind_the_headers_of_pieces() {
        let mut ends = MessageEnds::default();
        ends.wrote(2, 0..1000, 1000);
        // The next two are one piece, and half of the fourth.
        ends.wrote(6, 1000..3500, 1000);
        ends.wrote(2, 3500..4000, 1000);
        let within = |stream, bytes: Range<u64>| ends.within(stream, &bytes).collect::<Vec<_>>();
        assert_eq!(within(2, 0..1011), [0_u64; 0]);
        assert_eq!(within(2, 0..1012), [0]);
        assert_eq!(within(2, 1011..1012), [0]);
        assert_eq!(within(2, 1012..5000), [3]);
        assert_eq!(within(2, 0..5000), [0, 3]);
        assert_eq!(within(6, 12..1012), [1]);
        assert_eq!(within(6, 1012..2012), [2]);
        assert_eq!(within(6, 2012..2512), [0_u64; 0]);
        assert_eq!(within(10, 0..5000), [0_u64; 0]);
        assert_eq!(within(2, Range { start: 9, end: 3 }), [0_u64; 0]);
    }

    #[test]
    fn a_datagram_has_a_sample_if_anything_can_be_in_it() {
        let datagram: Vec<u8> = (0..40).collect();
        assert_eq!(datagram_sample(&datagram), Some(0x101112131415161718191a1b1c1d1e1f));
        assert_eq!(datagram_sample(&datagram[..32]), datagram_sample(&datagram));
        assert_eq!(datagram_sample(&datagram[..31]), None);
    }
}
