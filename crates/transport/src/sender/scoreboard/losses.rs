//! What is lost and must be sent again.

use flowstart_units::{Span, Time};

use super::Scoreboard;
use super::record::{LINKED, LOST, RETRANSMITTED, SACKED};

/// What the search for losses found.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sender) struct Losses {
    /// Packets newly deemed lost.
    pub(in crate::sender) packets: u32,
    /// Longest time until a packet that is only late so far would be lost; `None` if there is none.
    pub(in crate::sender) wait: Option<Span>,
}

impl Scoreboard {
    /// Deems a record lost. Returns false if it was delivered, or lost before and not sent again.
    fn mark_lost(&mut self, id: u32) -> bool {
        let record = self.record_mut(id);
        if record.has(SACKED) || record.flags & (LOST | RETRANSMITTED) == LOST {
            return false;
        }
        let first_time = !record.has(LOST);
        let again = record.has(RETRANSMITTED);
        record.flags = (record.flags | LOST) & !RETRANSMITTED;
        self.lost += u32::from(first_time);
        self.retransmitted -= u32::from(again);
        self.lost_retransmission |= again;
        self.total_lost += 1;
        self.unlink(id);
        self.queue_repair(id);
        true
    }

    /// Puts a lost record into the queue of repairs, which is in stream order. Losses are found
    /// nearly in that order.
    fn queue_repair(&mut self, id: u32) {
        let first = self.first;
        let live = |queued: u32| queued.wrapping_sub(first);
        // Entries below the oldest record are done with; they must not confuse the order.
        while self.repairs.front().is_some_and(|front| live(*front) >= self.len) {
            self.repairs.pop_front();
        }
        match self.repairs.back() {
            Some(back) if live(*back) >= live(id) => {
                let at = self.repairs.partition_point(|queued| live(*queued) < live(id));
                if self.repairs.get(at) != Some(&id) {
                    self.repairs.insert(at, id);
                }
            }
            _ => self.repairs.push_back(id),
        }
    }

    /// RACK: every packet that left before the newest delivered one and is older than its round
    /// trip plus `window` is lost (RFC 8985 section 6.2 step 5).
    #[inline]
    pub(in crate::sender) fn detect(&mut self, now: Time, window: Span) -> Losses {
        self.newest.advanced = false;
        let mut losses = Losses::default();
        let limit = self.newest.rtt + window;
        while self.late.is_some() {
            let id = self.head;
            if now.since(self.record(id).sent_at) < limit {
                break;
            }
            losses.packets += u32::from(self.mark_lost(id));
        }
        self.recount();
        losses.wait = self.late.map(|id| limit - now.since(self.record(id).sent_at));
        losses
    }

    /// Deems the oldest outstanding segment lost if it is not yet (NewReno). Returns the packets
    /// newly lost.
    pub(in crate::sender) fn lose_first(&mut self) -> u32 {
        if self.len == 0 || self.record(self.first).has(LOST) {
            return 0;
        }
        let lost = u32::from(self.mark_lost(self.first));
        self.recount();
        lost
    }

    /// The retransmission timer expired: the oldest segment is lost, others if they are older than
    /// a round trip (Linux `tcp_timeout_mark_lost`). If the oldest had been selectively
    /// acknowledged the receiver threw it away, and all such acknowledgements are void (RFC 2018
    /// section 8).
    pub(in crate::sender) fn lose_on_timeout(&mut self, now: Time) -> u32 {
        if self.len == 0 {
            return 0;
        }
        let reneged = self.record(self.first).has(SACKED);
        if reneged {
            self.forget_sacks();
        }
        let mut packets = 0;
        for position in 0..self.len {
            let id = self.first.wrapping_add(position);
            if position == 0 || reneged || now.since(self.record(id).sent_at) >= self.newest.rtt {
                packets += u32::from(self.mark_lost(id));
            }
        }
        self.recount();
        packets
    }

    fn forget_sacks(&mut self) {
        for position in 0..self.len {
            let id = self.first.wrapping_add(position);
            self.record_mut(id).flags &= !SACKED;
        }
        self.sacked = 0;
        self.ranges.clear();
    }

    /// The losses were none: what is marked lost counts as in flight again.
    pub(in crate::sender) fn unmark_lost(&mut self) {
        if self.lost == 0 {
            return;
        }
        self.repairs.clear();
        self.lost = 0;
        let mut linked: Vec<u32> = Vec::with_capacity(self.len as usize);
        for position in 0..self.len {
            let id = self.first.wrapping_add(position);
            let record = self.record_mut(id);
            record.flags &= !(LOST | LINKED);
            if !record.has(SACKED) {
                linked.push(id);
            }
        }
        // Numbers count transmissions, so their order is the order of sending; relative to the
        // newest, wrapping does no harm.
        let newest = self.newest.after as u32;
        linked.sort_unstable_by_key(|id| self.record(*id).number.wrapping_sub(newest) as i32);
        self.linked = 0;
        self.late = None;
        for id in linked {
            self.link(id);
            if (self.record(id).number.wrapping_sub(newest) as i32) < -1 {
                self.late = Some(id);
            }
        }
        self.recount();
    }

    // --- counting duplicate ACKs instead of ranges (RFC 6582; Linux calls it emulated SACK) ---

    /// A duplicate ACK: some packet was delivered. Returns the packets counted as delivered.
    pub(in crate::sender) fn count_duplicate_ack(&mut self) -> u32 {
        let holes = self.lost.max(1).min(self.len);
        let room = self.len.saturating_sub(holes).saturating_sub(self.sacked);
        let counted = room.min(1);
        self.sacked += counted;
        self.recount();
        counted
    }

    /// A cumulative acknowledgement of `acked` packets takes back the duplicates counted for them.
    /// Returns the packets it newly delivered.
    pub(in crate::sender) fn uncount_duplicate_acks(&mut self, acked: u32) -> u32 {
        let delivered = acked.saturating_sub(self.sacked).max(1);
        self.sacked = self.sacked.saturating_sub(acked.saturating_sub(1)).min(self.len.saturating_sub(self.lost));
        self.recount();
        delivered
    }

    /// Forgets counted duplicates.
    pub(in crate::sender) fn reset_duplicate_acks(&mut self) {
        self.sacked = 0;
        self.recount();
    }
}
