//! The frames of a packet before it is encrypted (RFC 9000 section 19): which bytes of which
//! streams it carries.

use std::ops::{Range, RangeInclusive};

/// Takes the frames of a packet apart.
struct Reader<'a> {
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.left.split_first()?;
        self.left = rest;
        Some(*first)
    }

    /// A number of variable length (section 16).
    fn number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        let mut number = u64::from(first & 0x3f);
        for _ in 1..1_u32 << (first >> 6) {
            number = number << 8 | u64::from(self.byte()?);
        }
        Some(number)
    }

    fn numbers(&mut self, count: u64) -> Option<()> {
        (0..count).try_for_each(|_| self.number().map(|_| ()))
    }

    fn bytes(&mut self, count: u64) -> Option<()> {
        self.left = self.left.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    /// As many bytes as a number before them says.
    fn counted(&mut self) -> Option<()> {
        let count = self.number()?;
        self.bytes(count)
    }

    /// The next frame, which is an ACK (section 19.3).
    fn acknowledged(&mut self, each: &mut dyn FnMut(RangeInclusive<u64>)) -> Option<()> {
        let kind = self.number()?;
        let mut most = self.number()?;
        self.numbers(1)?;
        for left in (0..=self.number()?).rev() {
            let least = most.checked_sub(self.number()?)?;
            each(least..=most);
            if left > 0 {
                most = least.checked_sub(self.number()?)?.checked_sub(2)?;
            }
        }
        self.numbers(3 * (kind - 2))
    }

    /// The next frame, if it is one that is known: the stream and its bytes if it carries some.
    fn frame(&mut self) -> Option<Option<(u64, Range<u64>)>> {
        match self.number()? {
            // PADDING, PING, HANDSHAKE_DONE; IMMEDIATE_ACK of the ACK frequency extension.
            0x00 | 0x01 | 0x1e | 0x1f => {}
            // ACK, and with ECN counts.
            kind @ (0x02 | 0x03) => {
                self.numbers(2)?;
                let ranges = self.number()?;
                self.numbers(1)?;
                self.numbers(ranges.checked_mul(2)?)?;
                self.numbers(3 * (kind - 2))?;
            }
            // RESET_STREAM; STOP_SENDING.
            0x04 => self.numbers(3)?,
            0x05 => self.numbers(2)?,
            // CRYPTO.
            0x06 => {
                self.numbers(1)?;
                self.counted()?;
            }
            // NEW_TOKEN.
            0x07 => self.counted()?,
            // STREAM: bits for an offset, a length, and the end.
            kind @ 0x08..=0x0f => {
                let stream = self.number()?;
                let from = if kind & 4 > 0 { self.number()? } else { 0 };
                let length = if kind & 2 > 0 { self.number()? } else { self.left.len() as u64 };
                self.bytes(length)?;
                return Some(Some((stream, from..from.checked_add(length)?)));
            }
            // MAX_DATA, MAX_STREAMS, DATA_BLOCKED, STREAMS_BLOCKED, RETIRE_CONNECTION_ID.
            0x10 | 0x12 | 0x13 | 0x14 | 0x16 | 0x17 | 0x19 => self.numbers(1)?,
            // MAX_STREAM_DATA, STREAM_DATA_BLOCKED.
            0x11 | 0x15 => self.numbers(2)?,
            // NEW_CONNECTION_ID: the identifier, and the token of a stateless reset.
            0x18 => {
                self.numbers(2)?;
                let length = self.byte()?;
                self.bytes(u64::from(length) + 16)?;
            }
            // PATH_CHALLENGE, PATH_RESPONSE.
            0x1a | 0x1b => self.bytes(8)?,
            // CONNECTION_CLOSE of the stack; of the application.
            0x1c => {
                self.numbers(2)?;
                self.counted()?;
            }
            0x1d => {
                self.numbers(1)?;
                self.counted()?;
            }
            // ACK_FREQUENCY (draft-ietf-quic-ack-frequency).
            0xaf => self.numbers(4)?,
            _ => return None,
        }
        Some(None)
    }
}

/// Tells `each` the ranges of packets that the ACK frames of a payload acknowledge. What stands
/// behind a frame that is not known remains unknown.
pub(crate) fn acknowledged(payload: &[u8], each: &mut dyn FnMut(RangeInclusive<u64>)) {
    let mut reader = Reader { left: payload };
    while let Some(first) = reader.left.first() {
        let known = match first {
            0x02 | 0x03 => reader.acknowledged(each),
            _ => reader.frame().map(|_| ()),
        };
        if known.is_none() {
            return;
        }
    }
}

/// Tells `each` which bytes of which streams a packet with this payload carries. What stands behind
/// a frame that is not known remains unknown.
pub(crate) fn streams(payload: &[u8], each: &mut dyn FnMut(u64, Range<u64>)) {
    let mut reader = Reader { left: payload };
    while !reader.left.is_empty() {
        match reader.frame() {
            Some(Some((stream, range))) => each(stream, range),
            Some(None) => {}
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(payload: &[u8]) -> Vec<(u64, Range<u64>)> {
        let mut found = Vec::new();
        streams(payload, &mut |stream, range| found.push((stream, range)));
        found
    }

    /// A number of variable length in as many bytes as asked for (1, 2, 4 or 8).
    fn number(value: u64, length: usize) -> Vec<u8> {
        let mut bytes = value.to_be_bytes()[8 - length..].to_vec();
        bytes[0] |= (length.trailing_zeros() as u8) << 6;
        bytes
    }

    #[test]
    fn ranges_of_an_ack_are_those_of_the_rfc_and_rubbish_has_none() {
        let found = |payload: &[u8]| {
            let mut found = Vec::new();
            acknowledged(payload, &mut |range| found.push(range));
            found
        };
        // PING; up to 20 and 3 before, one is missing, 2 arrived; with ECN counts; another ACK.
        let ack = [1, 3, 20, 9, 1, 3, 0, 1, 5, 6, 7, 2, 4, 0, 0, 4];
        assert_eq!(found(&ack), [17..=20, 14..=15, 0..=4]);
        // More than there is, and below zero.
        assert_eq!(found(&[2, 4, 0, 0, 5]), []);
        assert_eq!(found(&[2, 4, 0, 1, 0, 3, 0]), [4..=4]);
        assert_eq!(found(&[2, 4, 0, 9, 1]), [3..=4]);
        assert_eq!(found(&[0x21, 2, 4, 0, 0, 4]), [], "behind a frame that is not known");
    }

    #[test]
    fn numbers_are_those_of_the_rfc() {
        // RFC 9000, appendix A.1.
        for (bytes, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ] {
            let mut reader = Reader { left: bytes };
            assert_eq!((reader.number(), reader.left.len()), (Some(value), 0));
            assert_eq!(number(value, bytes.len()), bytes);
        }
    }

    #[test]
    fn stream_frames_are_found_behind_frames_of_every_other_kind() {
        let ack = |ecn: bool| {
            let mut frame = [&[2 + u8::from(ecn)][..], &number(1_000_000, 4), &[5, 2, 7, 1, 2, 3, 4]].concat();
            frame.extend(if ecn { &[9, 9, 9][..] } else { &[] });
            frame
        };
        let before: [Vec<u8>; 17] = [
            vec![0x00],
            vec![0x01],
            ack(false),
            ack(true),
            vec![0x04, 1, 2, 3],
            vec![0x05, 1, 2],
            vec![0x06, 0, 3, 0x08, 0x08, 0x08],
            vec![0x07, 2, 0x08, 0x08],
            vec![0x10, 1],
            vec![0x11, 1, 2],
            vec![0x15, 1, 2],
            [&[0x18, 1, 0, 4][..], &[8; 20]].concat(),
            vec![0x19, 1],
            vec![0x1a, 8, 8, 8, 8, 8, 8, 8, 8],
            vec![0x1e],
            [&number(0xaf, 2)[..], &[1, 0], &number(25_000, 4), &[1]].concat(),
            vec![0x1f],
        ];
        let stream = [&[0x0e][..], &number(7, 1), &number(70_000, 4), &[2, 0xff, 0xff]].concat();
        for other in &before {
            assert_eq!(found(&[&other[..], &stream].concat()), [(7, 70_000..70_002)], "{other:?}");
        }
        let all = before.concat();
        // One from the beginning of its stream, and one that takes the rest of the packet.
        let payload = [&all[..], &[0x0a, 3, 1, 0xff], &stream, &[0x0d, 11, 5, 1, 2, 3]].concat();
        assert_eq!(found(&payload), [(3, 0..1), (7, 70_000..70_002), (11, 5..8)]);
    }

    #[test]
    fn what_is_cut_or_unknown_ends_the_search_and_never_panics() {
        let stream = [0x0e, 7, 5, 2, 0xff, 0xff];
        assert_eq!(found(&[&stream[..], &[0x21], &stream].concat()), [(7, 5..7)]);
        for length in 0..stream.len() {
            assert!(found(&stream[..length]).is_empty(), "{length}");
        }
        let mut random = flowstart_random::SplitMix64::new(1);
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..random.next_u64() % 64).map(|_| random.next_u64() as u8).collect();
            streams(&bytes, &mut |_, range| assert!(range.start <= range.end));
        }
    }
}
