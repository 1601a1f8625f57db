//! What was known when each packet left: how much was in flight, and how much had been lost.

use alloc::collections::VecDeque;

/// A packet that left.
#[derive(Clone, Copy, Debug, Default)]
struct Packet {
    /// Packets in flight, this one included (`P.tx_in_flight`).
    in_flight: u32,
    /// Packets lost until then (`P.lost`).
    lost: u64,
    /// It was delivered, or counts as lost.
    gone: bool,
}

/// What a delivered or a lost packet tells (`RS.tx_in_flight`, `RS.lost`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// Packets in flight when it left.
    pub(super) in_flight: u32,
    /// Packets lost since then.
    pub(super) lost: u64,
}

/// Packets that have not been delivered, by number of transmission. The transport says how many
/// were lost, not which: the oldest, which is right unless packets were reordered.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    first: u64,
    packets: VecDeque<Packet>,
    /// Packets lost so far (`C.lost`).
    lost: u64,
    /// The newest packet of the ACK that is being taken in.
    newest: Option<(u64, Packet)>,
}

impl Flight {
    /// A packet left.
    pub(super) fn on_sent(&mut self, number: u64, in_flight: u32) {
        // Transmissions are numbered one after the other. If some are not told of, a start was in
        // charge meanwhile: what became of those before them was not told either.
        if number.checked_sub(self.first) != Some(self.packets.len() as u64) {
            self.packets.clear();
            self.first = number;
        }
        self.packets.push_back(Packet { in_flight, lost: self.lost, gone: false });
    }

    /// A packet was delivered.
    pub(super) fn on_acked(&mut self, number: u64) {
        let Some(place) = number.checked_sub(self.first).and_then(|place| usize::try_from(place).ok()) else { return };
        let Some(packet) = self.packets.get_mut(place) else { return };
        packet.gone = true;
        if self.newest.is_none_or(|(newest, _)| number >= newest) {
            self.newest = Some((number, *packet));
        }
        self.forget_gone();
    }

    fn forget_gone(&mut self) {
        while self.packets.front().is_some_and(|packet| packet.gone) {
            self.packets.pop_front();
            self.first = self.first.saturating_add(1);
        }
    }

    /// What the newest packet of this ACK tells, once.
    pub(super) fn take_newest(&mut self) -> Option<Told> {
        let (_, packet) = self.newest.take()?;
        Some(self.told(packet))
    }

    fn told(&self, packet: Packet) -> Told {
        Told { in_flight: packet.in_flight, lost: self.lost.saturating_sub(packet.lost) }
    }

    /// One more packet is lost: the oldest. What it tells, with itself among the lost; `None` if
    /// nothing is known of it.
    pub(super) fn lose_one(&mut self) -> Option<Told> {
        self.lost += 1;
        let packet = self.packets.front_mut()?;
        packet.gone = true;
        let packet = *packet;
        self.forget_gone();
        Some(self.told(packet))
    }

    /// A timeout: everything that was in flight is given up.
    pub(super) fn forget(&mut self) {
        self.lost += self.packets.iter().filter(|packet| !packet.gone).count() as u64;
        self.packets.clear();
        self.newest = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_packet_that_was_not_delivered_is_the_lost_one() {
        let mut flight = Flight::default();
        for number in 7..12 {
            flight.on_sent(number, (number - 6) as u32);
        }
        // 7 and 9 arrive, then 8 and 10 are lost.
        flight.on_acked(7);
        flight.on_acked(9);
        assert_eq!(flight.take_newest(), Some(Told { in_flight: 3, lost: 0 }));
        assert_eq!(flight.take_newest(), None);
        assert_eq!(flight.lose_one(), Some(Told { in_flight: 2, lost: 1 }));
        assert_eq!(flight.lose_one(), Some(Told { in_flight: 4, lost: 2 }));
        flight.on_acked(11);
        assert_eq!(flight.take_newest(), Some(Told { in_flight: 5, lost: 2 }), "lost since it left");
        assert_eq!(flight.lose_one(), None, "and one that nobody knows");
    }

    #[test]
    fn after_a_timeout_nothing_of_before_counts() {
        let mut flight = Flight::default();
        flight.on_sent(0, 1);
        flight.on_sent(1, 2);
        flight.forget();
        flight.on_acked(1);
        assert_eq!(flight.take_newest(), None);
        flight.on_sent(2, 1);
        flight.on_acked(2);
        assert_eq!(flight.take_newest(), Some(Told { in_flight: 1, lost: 0 }));
    }

    #[test]
    fn after_packets_that_were_not_told_of_new_ones_are() {
        let mut flight = Flight::default();
        flight.on_sent(0, 1);
        flight.on_sent(1, 2);
        // A start was in charge from 2 to 8, and heard alone what was delivered.
        flight.on_sent(9, 4);
        flight.on_acked(9);
        assert_eq!(flight.take_newest(), Some(Told { in_flight: 4, lost: 0 }));
        assert_eq!(flight.lose_one(), None);
    }
}
