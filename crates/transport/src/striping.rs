//! One stream over several connections to the same place: which bytes each of them carries. At the
//! other end `Joining` puts them together again.
//!
//! Every connection has a stream of its own, with its own sequence numbers, acknowledgements and
//! repairs. Pieces of the common stream are given to a connection when it can send, and each piece
//! is known by its offset in the common stream, as in the data sequence mapping of Multipath TCP
//! (RFC 8684 section 3.3) or the offset of a STREAM frame. When a connection is closed, what it has
//! not had acknowledged is given to the others, so nothing is lost; what arrives twice counts once.

use std::collections::VecDeque;
use std::ops::Range;

/// A piece of the common stream that a connection carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// First byte in the connection's stream.
    seq: u64,
    /// First byte in the common stream.
    offset: u64,
    len: u64,
}

/// Gives pieces of a common stream to connections, and remembers which.
#[derive(Clone, Debug)]
pub struct Striping {
    /// Bytes of the common stream written; [`u64::MAX`] for an endless one.
    written: u64,
    /// First byte not given out yet.
    next: u64,
    /// Given to a connection that closed, in no particular order.
    returned: Vec<Range<u64>>,
    pieces: Vec<VecDeque<Piece>>,
    /// Bytes given to each connection.
    given: Vec<u64>,
}

impl Striping {
    /// For so many connections.
    #[must_use]
    pub fn new(connections: usize) -> Self {
        Self {
            written: 0,
            next: 0,
            returned: Vec::new(),
            pieces: vec![VecDeque::new(); connections],
            given: vec![0; connections],
        }
    }

    /// The application writes `bytes` bytes; [`u64::MAX`] for an endless stream.
    pub fn write(&mut self, bytes: u64) {
        self.written = self.written.saturating_add(bytes);
    }

    /// Bytes the application has written.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// True if everything written was given to a connection that still has it.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.next >= self.written && self.returned.is_empty()
    }

    /// Bytes given to a connection so far: the length of its stream.
    #[must_use]
    pub fn given(&self, connection: usize) -> u64 {
        self.given.get(connection).copied().unwrap_or(0)
    }

    /// Gives up to `most` bytes to a connection, those of a closed one first. Returns how many it
    /// got; 0 if there are none.
    pub fn give(&mut self, connection: usize, most: u64) -> u64 {
        let Some(pieces) = self.pieces.get_mut(connection) else { return 0 };
        let range = match self.returned.last_mut() {
            Some(range) => {
                let piece = range.start..range.end.min(range.start.saturating_add(most));
                range.start = piece.end;
                if range.is_empty() {
                    self.returned.pop();
                }
                piece
            }
            None => {
                let piece = self.next..self.written.min(self.next.saturating_add(most));
                self.next = piece.end;
                piece
            }
        };
        let len = range.end.saturating_sub(range.start);
        if len == 0 {
            return 0;
        }
        let seq = self.given[connection];
        self.given[connection] = seq.saturating_add(len);
        match pieces.back_mut() {
            Some(last) if last.seq + last.len == seq && last.offset + last.len == range.start => {
                last.len = last.len.saturating_add(len);
            }
            _ => pieces.push_back(Piece { seq, offset: range.start, len }),
        }
        len
    }

    /// A connection has everything below `una` of its stream acknowledged.
    pub fn acknowledged(&mut self, connection: usize, una: u64) {
        let Some(pieces) = self.pieces.get_mut(connection) else { return };
        while pieces.front().is_some_and(|piece| piece.seq.saturating_add(piece.len) <= una) {
            pieces.pop_front();
        }
    }

    /// A connection is closed: what is not acknowledged goes to the others.
    pub fn close(&mut self, connection: usize, una: u64) {
        self.double(connection, una);
        if let Some(pieces) = self.pieces.get_mut(connection) {
            pieces.clear();
        }
    }

    /// What a connection has not had acknowledged goes to the others, too; whichever copy comes
    /// first counts.
    pub fn double(&mut self, connection: usize, una: u64) {
        let Some(pieces) = self.pieces.get(connection) else { return };
        // The earliest piece is given out first, so it comes last.
        for piece in pieces.iter().rev() {
            let done = una.saturating_sub(piece.seq).min(piece.len);
            if done < piece.len {
                self.returned.push(piece.offset + done..piece.offset.saturating_add(piece.len));
            }
        }
    }

    /// Where the bytes `seq..seq + len` of a connection's stream lie in the common one; those
    /// acknowledged before are left out.
    pub fn offsets(&self, connection: usize, seq: u64, len: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let end = seq.saturating_add(len);
        let pieces = self.pieces.get(connection).into_iter().flatten();
        pieces.filter_map(move |piece| {
            let from = seq.max(piece.seq);
            let until = end.min(piece.seq.saturating_add(piece.len));
            (from < until).then(|| piece.offset + (from - piece.seq)..piece.offset + (until - piece.seq))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Joining;

    #[test]
    fn pieces_go_to_whoever_asks_and_offsets_find_them_again() {
        let mut striping = Striping::new(2);
        striping.write(1000);
        assert_eq!(striping.give(0, 300), 300);
        assert_eq!(striping.give(1, 300), 300);
        assert_eq!(striping.give(0, 900), 400);
        assert_eq!(striping.give(1, 1), 0);
        assert!(striping.is_exhausted());
        let offsets: Vec<_> = striping.offsets(0, 200, 200).collect();
        assert_eq!(offsets, [200..300, 600..700]);
    }

    #[test]
    fn a_closed_connection_returns_what_was_not_acknowledged() {
        let mut striping = Striping::new(2);
        striping.write(u64::MAX);
        striping.give(1, 100);
        striping.give(0, 100);
        striping.give(1, 100);
        striping.close(1, 50);
        let taken: Vec<u64> = (0..3).map(|_| striping.give(0, 80)).collect();
        assert_eq!(taken, [50, 80, 20]);
        let offsets: Vec<_> = striping.offsets(0, 100, 150).collect();
        assert_eq!(offsets, [50..100, 200..300]);
    }

    #[test]
    fn of_what_is_doubled_either_copy_tells_where_it_lies() {
        let mut striping = Striping::new(2);
        striping.write(300);
        striping.give(1, 100);
        striping.give(0, 200);
        striping.double(1, 60);
        assert!(!striping.is_exhausted());
        assert_eq!([100, 100].map(|most| striping.give(0, most)), [40, 0]);
        let offsets: Vec<_> = striping.offsets(0, 200, 40).chain(striping.offsets(1, 60, 40)).collect();
        assert_eq!(offsets, [60..100, 60..100]);
    }

    #[test]
    fn a_connection_that_had_all_acknowledged_returns_nothing() {
        let mut striping = Striping::new(2);
        striping.write(300);
        assert_eq!(striping.written(), 300);
        striping.give(1, 100);
        striping.close(1, 100);
        assert!(striping.returned.is_empty());
        assert_eq!([200, 200].map(|most| striping.give(0, most)), [200, 0]);
        assert!(striping.is_exhausted());
    }

    #[test]
    fn a_connection_alone_carries_one_piece() {
        let mut striping = Striping::new(1);
        striping.write(u64::MAX);
        for _ in 0..100 {
            striping.give(0, 1448);
        }
        assert_eq!(striping.pieces[0].len(), 1);
    }

    proptest! {
        // Whatever is given, delivered, lost and closed: once the remaining connection delivers all
        // it was given, the stream is whole.
        #[test]
        fn nothing_is_lost_and_nothing_comes_twice(
            total in 1u64..5000,
            steps in prop::collection::vec((0usize..2, 1u64..400, any::<bool>()), 1..60),
            close_after in 0usize..60,
        ) {
            let mut striping = Striping::new(2);
            let mut joining = Joining::default();
            striping.write(total);
            let mut una = 0;
            for (index, (connection, most, arrives)) in steps.iter().enumerate() {
                if index == close_after {
                    break;
                }
                let seq = striping.given(*connection);
                let len = striping.give(*connection, *most);
                if *connection == 0 || *arrives {
                    let ranges: Vec<_> = striping.offsets(*connection, seq, len).collect();
                    prop_assert_eq!(ranges.iter().map(|r| r.end - r.start).sum::<u64>(), len);
                    ranges.into_iter().for_each(|range| joining.arrived(range));
                    if *connection == 1 && seq == una {
                        una = seq + len;
                        striping.acknowledged(1, una);
                    }
                }
            }
            striping.close(1, una);
            while !striping.is_exhausted() {
                let seq = striping.given(0);
                let len = striping.give(0, 100);
                let ranges: Vec<_> = striping.offsets(0, seq, len).collect();
                ranges.into_iter().for_each(|range| joining.arrived(range));
            }
            prop_assert_eq!(joining.delivered(), total);
        }
    }
}
