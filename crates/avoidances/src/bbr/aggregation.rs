//! ACKs that came sooner than the bandwidth explains.

use flowstart_control::NewMss;
use flowstart_units::{Rate, Time};

/// Packets after which an epoch begins anew (`bbr_ack_epoch_acked_reset_thresh`).
const LONGEST_EPOCH: u64 = 1 << 20;

/// How many packets more than the bandwidth explains were acknowledged at once, the largest of the
/// last rounds (`bbr_update_ack_aggregation`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    /// Since when ACKs are counted; `None` before the first.
    epoch: Option<Time>,
    acked: u64,
    /// The largest excess of this and of the last slot of rounds, packets.
    extra: [u32; 2],
    slot: usize,
    rounds: u32,
}

impl Aggregation {
    /// Packets have another size.
    pub(super) fn on_mss(&mut self, mss: NewMss) {
        self.epoch = None;
        self.extra = self.extra.map(|extra| mss.packets(extra));
    }

    /// The flow was idle: an epoch of ACKs ends.
    pub(super) fn forget_epoch(&mut self) {
        self.epoch = None;
    }

    /// Packets.
    pub(super) fn largest(&self) -> u32 {
        self.extra[0].max(self.extra[1])
    }

    /// A round began; a slot has `rounds` of them.
    pub(super) fn on_round(&mut self, rounds: u32) {
        self.rounds += 1;
        if self.rounds >= rounds {
            self.rounds = 0;
            self.slot = 1 - self.slot;
            self.extra[self.slot] = 0;
        }
    }

    /// `acked` packets were delivered now, with this bandwidth, segments and window.
    pub(super) fn on_ack(&mut self, now: Time, acked: u32, bandwidth: Rate, mss: u64, cwnd: u32) {
        let expected = |since: Time| bandwidth.bytes_in(now.since(since)).get() / mss;
        let more = self.acked.saturating_add(u64::from(acked));
        let explained = match self.epoch.map(expected) {
            Some(explained) if self.acked > explained && more < LONGEST_EPOCH => explained,
            _ => {
                (self.acked, self.epoch) = (0, Some(now));
                expected(now)
            }
        };
        self.acked += u64::from(acked);
        let extra = self.acked.saturating_sub(explained).min(u64::from(cwnd)) as u32;
        let largest = &mut self.extra[self.slot];
        *largest = extra.max(*largest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of 1000 bytes per millisecond.
    const RATE: Rate = Rate::from_mbps(8);

    fn bunch(packets: u32, cwnd: u32) -> Aggregation {
        let mut acks = Aggregation::default();
        acks.on_ack(Time::ZERO, packets, RATE, 1_000, cwnd);
        acks
    }

    /// `bbr_update_ack_aggregation`: two slots of five round trips.
    #[test]
    fn an_excess_is_forgotten_after_five_to_ten_round_trips_and_is_a_window_at_most() {
        let mut acks = bunch(30, 100);
        for round in 1..=10 {
            assert_eq!(acks.largest(), 30, "round {round}");
            acks.on_round(5);
        }
        assert_eq!(acks.largest(), 0);
        assert_eq!(bunch(30, 20).largest(), 20);
    }

    /// `bbr_ack_epoch_acked_reset_thresh`.
    #[test]
    fn an_epoch_has_less_than_a_million_packets() {
        let mut acks = bunch((1 << 20) - 1, u32::MAX);
        acks.on_ack(Time::ZERO, 1, RATE, 1_000, u32::MAX);
        assert_eq!(acks.largest(), (1 << 20) - 1);
    }
}
