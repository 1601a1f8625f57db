//! Which bytes have arrived: everything below `next`, and ranges above it.

use std::collections::VecDeque;

use flowstart_network::packet::{MAX_SACK_BLOCKS, SackBlock};

/// A range of stream bytes, `start < end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    start: u64,
    end: u64,
}

/// Ranges remembered for SACK blocks: one more than an ACK carries, so that the next one moves up
/// when the newest is filled.
const RECENT: usize = MAX_SACK_BLOCKS + 1;

/// What a segment meant for the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// All of it had arrived before.
    Duplicate,
    /// It continues the stream.
    InOrder {
        /// True if it closed the last gap.
        filled: bool,
    },
    /// It lies behind a gap.
    OutOfOrder {
        /// How many ranges changed later than the one it joins; all that are remembered if it is a
        /// range of its own.
        depth: usize,
    },
}

/// The received ranges of a stream.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    /// Next byte expected.
    next: u64,
    /// What arrived above `next`: sorted, disjoint, not adjacent.
    ranges: VecDeque<Range>,
    /// The ranges that changed last, newest first (RFC 2018 section 4).
    recent: [Range; RECENT],
    recent_len: usize,
}

impl Reassembly {
    /// Next byte expected.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// True if something lies behind a gap.
    #[inline]
    pub(crate) fn has_gaps(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Bytes that lie behind a gap.
    pub(crate) fn behind(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    /// The byte after the last one that arrived.
    pub(crate) fn end(&self) -> u64 {
        self.ranges.back().map_or(self.next, |range| range.end)
    }

    /// Takes in the bytes `start..end`.
    #[inline]
    pub(crate) fn insert(&mut self, start: u64, end: u64) -> Arrival {
        if end <= self.next {
            return Arrival::Duplicate;
        }
        if start <= self.next {
            self.next = end;
            let filled = !self.ranges.is_empty() && self.absorb();
            return Arrival::InOrder { filled };
        }
        self.insert_behind_gap(Range { start, end })
    }

    /// Moves ranges that `next` has reached into the stream. Returns true if no gap is left.
    fn absorb(&mut self) -> bool {
        while let Some(range) = self.ranges.front()
            && range.start <= self.next
        {
            self.next = self.next.max(range.end);
            self.ranges.pop_front();
        }
        let next = self.next;
        self.forget_recent(|range| range.start <= next);
        self.ranges.is_empty()
    }

    fn insert_behind_gap(&mut self, new: Range) -> Arrival {
        // Nearly always the segment continues the last range or opens one behind it.
        let at = match self.ranges.back() {
            Some(last) if new.start > last.end => self.ranges.len(),
            Some(last) if new.start >= last.start => self.ranges.len() - 1,
            _ => self.ranges.partition_point(|range| range.end < new.start),
        };
        let mut merged = new;
        match self.ranges.get(at) {
            Some(range) if range.start <= new.end => {
                if range.start <= new.start && new.end <= range.end {
                    return Arrival::Duplicate;
                }
                merged.start = merged.start.min(range.start);
                let mut after = at;
                while let Some(range) = self.ranges.get(after)
                    && range.start <= merged.end
                {
                    merged.end = merged.end.max(range.end);
                    after += 1;
                }
                self.ranges[at] = merged;
                match after - at {
                    0 | 1 => {}
                    2 => {
                        self.ranges.remove(at + 1);
                    }
                    _ => {
                        self.ranges.drain(at + 1..after);
                    }
                }
            }
            _ => self.ranges.insert(at, merged),
        }
        let joins = |range: &Range| merged.start <= range.start && range.end <= merged.end;
        let known = &self.recent[..self.recent_len];
        let depth = known.iter().position(joins).unwrap_or(known.len());
        self.forget_recent(joins);
        self.recent_len = (self.recent_len + 1).min(RECENT);
        self.recent[..self.recent_len].rotate_right(1);
        self.recent[0] = merged;
        Arrival::OutOfOrder { depth }
    }

    fn forget_recent(&mut self, gone: impl Fn(&Range) -> bool) {
        let mut kept = 0;
        for i in 0..self.recent_len {
            if !gone(&self.recent[i]) {
                self.recent[kept] = self.recent[i];
                kept += 1;
            }
        }
        self.recent_len = kept;
    }

    /// The SACK blocks to report with a cumulative acknowledgement of `ack` (at most `next`),
    /// newest first, and how many they are.
    #[inline]
    pub(crate) fn blocks(&self, ack: u64) -> ([SackBlock; MAX_SACK_BLOCKS], u8) {
        let mut blocks = [SackBlock::default(); MAX_SACK_BLOCKS];
        let mut len = 0;
        for range in self.recent[..self.recent_len].iter().take(MAX_SACK_BLOCKS) {
            let offset = |at: u64| u32::try_from(at.saturating_sub(ack));
            // A range 4 GiB above the acknowledgement cannot be told; it is told once the gap is
            // closed.
            if let (Ok(start), Ok(end)) = (offset(range.start), offset(range.end)) {
                blocks[usize::from(len)] = SackBlock { start, end };
                len += 1;
            }
        }
        (blocks, len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(reassembly: &Reassembly) -> Vec<(u64, u64)> {
        let (blocks, len) = reassembly.blocks(reassembly.next());
        blocks[..usize::from(len)]
            .iter()
            .map(|b| (reassembly.next() + u64::from(b.start), reassembly.next() + u64::from(b.end)))
            .collect()
    }

    #[test]
    fn the_newest_range_is_told_first_and_older_ones_follow() {
        let mut r = Reassembly::default();
        assert_eq!(r.insert(0, 10), Arrival::InOrder { filled: false });
        for (start, depth) in [(20, 0), (40, 1), (60, 2), (80, 3)] {
            assert_eq!(r.insert(start, start + 10), Arrival::OutOfOrder { depth });
        }
        assert_eq!(told(&r), [(80, 90), (60, 70), (40, 50)]);
        // A range that grows moves to the front.
        assert_eq!(r.insert(50, 60), Arrival::OutOfOrder { depth: 1 });
        assert_eq!(told(&r), [(40, 70), (80, 90), (20, 30)]);
        assert_eq!(r.insert(10, 20), Arrival::InOrder { filled: false });
        assert_eq!(r.next(), 30);
        assert_eq!(told(&r), [(40, 70), (80, 90)]);
        assert_eq!(r.insert(30, 40), Arrival::InOrder { filled: false });
        assert_eq!(r.insert(70, 80), Arrival::InOrder { filled: true });
        assert_eq!(r.next(), 90);
        assert!(!r.has_gaps());
        assert!(told(&r).is_empty());
    }

    #[test]
    fn what_arrived_before_is_a_duplicate_wherever_it_lies() {
        let mut r = Reassembly::default();
        r.insert(0, 10);
        r.insert(20, 40);
        assert_eq!(r.insert(0, 10), Arrival::Duplicate);
        assert_eq!(r.insert(20, 30), Arrival::Duplicate);
        assert_eq!(r.insert(30, 40), Arrival::Duplicate);
        assert_eq!(r.insert(30, 50), Arrival::OutOfOrder { depth: 0 });
    }

    proptest::proptest! {
        #[test]
        fn the_ranges_are_what_a_bitmap_says(segments in proptest::collection::vec((0_u64..60, 1_u64..6), 1..80)) {
            let mut r = Reassembly::default();
            let mut seen = [false; 80];
            for (start, length) in segments {
                let end = start + length;
                let known = (start..end).all(|b| seen[b as usize]);
                let arrival = r.insert(start, end);
                proptest::prop_assert_eq!(arrival == Arrival::Duplicate, known);
                (start..end).for_each(|b| seen[b as usize] = true);
                let next = seen.iter().position(|b| !b).unwrap() as u64;
                proptest::prop_assert_eq!(r.next(), next);
                let mut ranges = Vec::new();
                let mut at = next as usize;
                while let Some(first) = seen[at..].iter().position(|b| *b) {
                    let first = at + first;
                    let last = first + seen[first..].iter().position(|b| !b).unwrap();
                    ranges.push(Range { start: first as u64, end: last as u64 });
                    at = last;
                }
                proptest::prop_assert_eq!(&Vec::from(r.ranges.clone()), &ranges);
                let above = seen[next as usize..].iter().filter(|b| **b).count() as u64;
                proptest::prop_assert_eq!(r.behind(), above);
                proptest::prop_assert_eq!(r.end(), ranges.last().map_or(next, |range| range.end));
                proptest::prop_assert!(r.recent[..r.recent_len].iter().all(|b| ranges.contains(b)));
                if matches!(arrival, Arrival::OutOfOrder { .. }) {
                    proptest::prop_assert!(r.recent[0].start <= start && end <= r.recent[0].end);
                }
            }
        }
    }
}
