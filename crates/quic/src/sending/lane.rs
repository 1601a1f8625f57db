//! Streams of one connection, and the pieces that go over them.

use crate::connection::Connection;
use crate::data::SHORT_PIECE;
use crate::departures::MessageEnds;
use crate::ledger::ForGood;
use crate::stack::{Dir, StreamId};

/// Bytes of a full packet that are not data, at most: short header with a number of three bytes
/// (12), tag (16), a stream frame with an offset below 2^30 (7), and the end of another one now and
/// then. With less, a little more would wait after every packet, as long as the connection never
/// runs dry; with much more it does so often, and each time a packet leaves that is not full.
const FRAMING: u64 = 36;

/// Bytes that all streams together carry before others take their places. A stack keeps what a
/// stream has carried from the first byte on that is not acknowledged, whatever of it arrived
/// behind that: of a stream that never ends whoever does not acknowledge one packet would have all
/// that follows kept. As many as a receiver takes without reading them, so that nobody waits for
/// streams to end.
const TURNOVER: u64 = 32 << 20;

/// What a stream has carried that is over, and in whose place is no other yet.
const OVER: u64 = u64::MAX;

/// What one connection of the transfer has.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) streams: Vec<StreamId>,
    /// What a stream did not take yet, by its place in `streams`.
    pub(super) left: Vec<Vec<u8>>,
    /// Bytes that were written to each.
    pub(super) carried: Vec<u64>,
    /// Streams in whose places others are, and of which not all was acknowledged.
    pub(super) retired: Vec<StreamId>,
    pub(super) turn: usize,
    /// Where messages end, if somebody wants to know when they left.
    pub(super) ends: Option<MessageEnds>,
    /// Bytes written, and what was sent when all of them had left last.
    pub(super) written: u64,
    pub(super) emptied: (u64, ForGood),
    pub(super) unfinished: usize,
    pub(super) closed: bool,
}

impl Lane {
    /// The place of the stream that has its turn next, with a new one there if the one before has
    /// carried its share; `None` if that has to wait.
    pub(super) fn next(&mut self, connection: &mut Connection) -> Option<usize> {
        let count = self.streams.len();
        let turn = (self.turn + 1) % count.max(1);
        let carried = self.carried.get_mut(turn)?;
        if *carried >= TURNOVER / count as u64 {
            if *carried < OVER {
                if self.retired.len() >= count {
                    return None;
                }
                // Where no more are allowed at a time its end lets the next one begin.
                connection.finish(self.streams[turn]);
                self.retired.push(self.streams[turn]);
                *carried = OVER;
            }
            self.streams[turn] = connection.open(Dir::Uni)?;
            *carried = 0;
            self.unfinished += 1;
        }
        Some(turn)
    }

    /// A stream that was retired is over; false if it is none.
    pub(super) fn forget(&mut self, stream: StreamId) -> bool {
        let before = self.retired.len();
        self.retired.retain(|retired| *retired != stream);
        self.retired.len() < before
    }

    /// Bytes that were acknowledged, if those of so many bytes of packets were; the beginnings of
    /// pieces count.
    pub(super) fn acknowledged(&self, sent: ForGood, delivered: u64) -> u64 {
        sent.acknowledged(self.written.saturating_sub(self.ready(sent)), delivered)
    }

    /// Bytes that wait to be sent, or to be sent again: what is lost waits anew.
    pub(super) fn ready(&self, sent: ForGood) -> u64 {
        let (written, before) = self.emptied;
        (self.written - written + before.data(FRAMING)).saturating_sub(sent.data(FRAMING))
    }
}

/// Bytes of the next piece, of what is left: receivers allow few short ones, and an application
/// that writes now and then would have one after every write that does not fit.
pub(super) fn piece_of(most: usize, left: u64) -> usize {
    let left = usize::try_from(left).unwrap_or(usize::MAX);
    let rest = left.saturating_sub(most);
    if (1..SHORT_PIECE as usize).contains(&rest) { left / 2 } else { most.min(left) }
}

#[cfg(test)]
mod tests {
    use super::super::PIECE;
    use super::*;

    #[test]
    fn no_piece_is_short_if_the_data_can_be_cut_otherwise() {
        for most in [1384, PIECE] {
            for whole in 1..3 * most as u64 {
                let (mut left, mut short) = (whole, 0);
                while left > 0 {
                    let piece = piece_of(most, left);
                    assert!((1..=most).contains(&piece), "{whole}: {piece}");
                    short += u32::from(piece < SHORT_PIECE as usize);
                    left -= piece as u64;
                }
                assert_eq!(short > 0, whole < u64::from(SHORT_PIECE), "{whole}");
            }
        }
    }
}
