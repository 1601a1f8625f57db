//! One of the two connections: what leaves when, and what became of it.

use std::collections::VecDeque;

use flowstart_units::{Span, Time};

use crate::{Acked, Departure, Sent};

/// A packet that left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flying {
    pub(super) number: u64,
    pub(super) sent: Time,
    /// For a lone packet, the train packet that left last before it.
    pub(super) neighbour: u64,
    pub(super) rtt: Option<Span>,
    pub(super) lost: bool,
}

impl Flying {
    /// True once its fate is known.
    pub(super) fn is_settled(&self) -> bool {
        self.rtt.is_some() || self.lost
    }
}

/// One of the two connections.
#[derive(Clone, Debug, Default)]
pub(super) struct Side {
    /// Departures to come: when, and how many packets.
    pub(super) plan: VecDeque<(Time, u32)>,
    /// Packets whose fate still matters, by number.
    pub(super) flying: VecDeque<Flying>,
    pub(super) sent: u64,
    pub(super) open: bool,
    pub(super) smallest: Option<Span>,
}

/// Packets whose fate is remembered; more than a batch of the longest trains.
const REMEMBERED: usize = 512;

/// The RTT of the newest packet of an ACK counts for all of them, so that a delayed ACK does not
/// look like a queue.
pub(super) fn round_trip(acked: &Acked) -> Span {
    acked.rtt.unwrap_or(acked.now.since(acked.sent_at))
}

impl Side {
    pub(super) fn departure(&self) -> Departure {
        self.plan.front().map_or(Departure::Hold, |(at, _)| Departure::At(*at))
    }

    /// True if a packet is planned to leave by now.
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.plan.front().is_some_and(|(at, _)| *at <= now)
    }

    pub(super) fn leave(&mut self, sent: &Sent, neighbour: u64) {
        if let Some((_, count)) = self.plan.front_mut() {
            *count -= 1;
            if *count == 0 {
                self.plan.pop_front();
            }
        }
        if self.flying.len() >= REMEMBERED {
            self.flying.pop_front();
        }
        self.flying.push_back(Flying { number: sent.number, sent: sent.now, neighbour, rtt: None, lost: false });
        self.sent = sent.number + 1;
    }

    /// Packets that left earlier by at least `patience` and whose ACK did not come are lost.
    pub(super) fn arrive(&mut self, acked: &Acked, patience: Span) {
        let rtt = round_trip(acked);
        if !acked.retransmitted {
            self.smallest = Some(self.smallest.map_or(rtt, |smallest| smallest.min(rtt)));
        }
        for packet in &mut self.flying {
            if packet.number > acked.number || packet.rtt.is_some() {
                continue;
            }
            if packet.number == acked.number {
                // If it was thought lost, it was only late.
                (packet.rtt, packet.lost) = (Some(rtt), false);
            } else if acked.sent_at.since(packet.sent) >= patience {
                packet.lost = true;
            }
        }
    }

    /// True if packets that are remembered were lost.
    pub(super) fn has_losses(&self) -> bool {
        self.flying.iter().any(|packet| packet.lost)
    }

    pub(super) fn find(&self, number: u64) -> Option<&Flying> {
        let first = self.flying.front()?.number;
        self.flying.get(usize::try_from(number.checked_sub(first)?).ok()?)
    }

    /// The RTT of the last packet up to `number`, within a train of this length, that arrived. If
    /// its ACK was held back, that of an earlier packet and the time that the bottleneck took for
    /// those between them.
    pub(super) fn delay_before(&self, number: u64, length: u32, service: Span) -> Option<Span> {
        let train = (0..u64::from(length)).filter_map(|back| self.find(number.checked_sub(back)?));
        let mut arrived = train.filter_map(|packet| Some((packet.number, packet.rtt?)));
        let (last, rtt) = arrived.next()?;
        let earlier = arrived.find(|(_, other)| *other != rtt);
        Some(earlier.map_or(rtt, |(number, before)| rtt.min(before + service * (last - number))))
    }
}
