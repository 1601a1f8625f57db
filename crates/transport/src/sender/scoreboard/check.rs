//! The scoreboard's invariants, for tests.

use super::Scoreboard;
use super::record::{EVER_RETRANSMITTED, LINKED, LOST, RETRANSMITTED, Record, SACKED};

impl Scoreboard {
    /// Recounts everything from the records. `una` and `next` delimit the stream outstanding,
    /// `sent` counts transmissions.
    pub(in crate::sender) fn check(&self, una: u64, next: u64, sent: u64, with_sacks: bool) {
        let ids: Vec<u32> = (0..self.len).map(|position| self.first.wrapping_add(position)).collect();
        let count = |test: &dyn Fn(&Record) -> bool| ids.iter().filter(|id| test(self.record(**id))).count() as u32;
        assert_eq!(self.lost, count(&|r| r.has(LOST)), "lost");
        assert_eq!(self.retransmitted, count(&|r| r.has(RETRANSMITTED)), "retransmitted");
        assert_eq!(self.repeated, count(&|r| r.has(EVER_RETRANSMITTED)), "repeated");
        assert_eq!(self.in_flight + self.sacked + self.lost, self.len + self.retransmitted, "in flight");
        // Segments join up without gap or overlap, from una (which may lie inside the first one) to
        // next.
        let mut at = ids.first().map_or(una, |id| self.record(*id).seq);
        assert!(at <= una, "una");
        for id in &ids {
            assert_eq!(self.record(*id).seq, at);
            at = self.record(*id).end();
        }
        assert_eq!(at, next, "next");
        if with_sacks {
            assert_eq!(self.sacked, count(&|r| r.has(SACKED)), "sacked");
            let mut ranges: Vec<(u64, u64)> = Vec::new();
            for id in &ids {
                let record = self.record(*id);
                if record.has(SACKED) {
                    match ranges.last_mut() {
                        Some(last) if last.1 == record.seq => last.1 = record.end(),
                        _ => ranges.push((record.seq, record.end())),
                    }
                }
            }
            if let Some(first) = ranges.first_mut() {
                first.0 = first.0.max(una);
            }
            assert_eq!(Vec::from(self.ranges.clone()), ranges, "ranges");
        }
        // In flight once or twice: neither delivered nor lost, or sent again. Those are linked, in
        // the order they left.
        let linked = |r: &Record| !r.has(SACKED) && (!r.has(LOST) || r.has(RETRANSMITTED));
        assert_eq!(self.linked, count(&linked), "linked");
        let mut id = self.head;
        let mut before = None;
        let mut late = None;
        for step in 0..self.linked {
            let record = self.record(id);
            assert!(record.has(LINKED) && linked(record));
            let number = Self::number(record, sent);
            assert!(before.is_none_or(|b| b < number), "order of sending");
            if number + 1 < self.newest.after {
                late = Some(id);
            }
            before = Some(number);
            if step + 1 < self.linked {
                id = record.next;
            }
        }
        if self.linked > 0 {
            assert_eq!(id, self.tail);
        }
        assert_eq!(self.late, late, "latest of those sent before RACK's point");
        // Everything that waits for its repair is queued, once and in stream order.
        let waiting: Vec<u32> =
            ids.iter().copied().filter(|id| self.record(*id).flags & (LOST | RETRANSMITTED) == LOST).collect();
        let queued: Vec<u32> = self
            .repairs
            .iter()
            .copied()
            .filter(|id| self.position(*id) < self.len && self.record(*id).flags & (LOST | RETRANSMITTED) == LOST)
            .collect();
        assert_eq!(queued, waiting, "repairs");
    }
}
