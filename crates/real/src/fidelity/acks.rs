//! How late ACKs were in a run of the kernel, ACK by ACK, for the simulated path.

use std::collections::{HashMap, VecDeque};

use flowstart_emulator::{Given, HostId, Tcp};
use flowstart_units::{Span, Time};

/// A receiver that waits for a second segment waits at least this long (Linux `TCP_DELACK_MIN`): an
/// ACK that comes so late is late by design.
const DELAYED: Span = Span::from_millis(40);
/// Stamps of packets and times of deliveries are of clocks that are read at moments that are this
/// far apart at most.
const CLOCKS: Span = Span::from_micros(1);
/// Flags of TCP.
const SYN: u8 = 2;
const FIN_OR_RST: u8 = 1 | 4;

/// Between two hosts, the way of ACKs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hosts {
    pub(super) sender: HostId,
    pub(super) receiver: HostId,
    /// How long an ACK takes from the receiver to the sender by the model.
    pub(super) back: Span,
    /// How much longer the handshake took than by the model, as the sender measured it; `None`: as
    /// it was seen from outside.
    pub(super) handshake: Option<Span>,
}

/// ACKs of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// How long the fastest took on top of the model's time.
    pub(super) fastest: Span,
    /// When the data that called for each ACK was due at the receiver, and how much later than that
    /// and than the fastest the sender was given it.
    pub(super) late: Vec<(Time, Span)>,
}

/// Data that the receiver was given.
#[derive(Clone, Copy)]
struct Data {
    due: Time,
    at: Time,
}

/// How late ACKs were: the emulator is late, with the data and with the ACK, and the receiver's
/// host takes its time. The SYN is data, too.
///
/// Which data called for an ACK: the packet whose end it acknowledges for the first time; if it
/// acknowledges none's, or if something was sent again since, the last one before it. ACKs that a
/// timer sent are left out.
///
/// A receiver that is held up acknowledges what waited with one ACK. Each second packet of that
/// would have called for an ACK of its own, which was as late as the one that came.
pub(super) fn late_acks(given: &[Given], hosts: Hosts) -> Seen {
    let mut data = given.iter().filter_map(|given| match given.tcp {
        Some(tcp) if given.host == hosts.receiver && (tcp.payload > 0 || tcp.flags & SYN > 0) => {
            Some((tcp, Data { due: given.due, at: given.at }))
        }
        _ => None,
    });
    let (mut next, mut last) = (data.next(), None);
    let (mut ends, mut highest) = (HashMap::new(), None::<u32>);
    // What arrived in order and is not acknowledged.
    let mut waiting = VecDeque::new();
    let (mut list, mut fastest) = (Vec::new(), None::<Span>);
    for ack in given {
        let Some(tcp) = ack.tcp.filter(|tcp| ack.host == hosts.sender && is_ack(tcp)) else { continue };
        let [left, there] = [ack.due, ack.at].map(|at| at - hosts.back);
        while let Some((tcp, packet)) = next.filter(|(_, packet)| packet.at <= left + CLOCKS) {
            let end = tcp.sequence.wrapping_add(tcp.payload + u32::from(tcp.flags & SYN > 0));
            if highest.is_some_and(|highest| (tcp.sequence.wrapping_sub(highest) as i32) < 0) {
                // What came before may be acknowledged by the ACK that this one calls for.
                ends.clear();
            } else {
                highest = Some(end);
            }
            ends.insert(end, packet);
            waiting.push_back((end, packet));
            last = Some(packet);
            next = data.next();
        }
        let exact = ends.remove(&tcp.acknowledgement);
        let reached = |end: u32| (tcp.acknowledgement.wrapping_sub(end) as i32) >= 0;
        let all = waiting.iter().take_while(|(end, _)| reached(*end)).count();
        let merged: Vec<Data> = waiting.drain(..all).map(|(_, packet)| packet).collect();
        let Some(called) = exact.or(last).filter(|called| left.since(called.at) < DELAYED) else { continue };
        let mut took = there.since(called.due);
        if tcp.flags & SYN > 0 {
            took = hosts.handshake.unwrap_or(took);
        } else if exact.is_some() {
            fastest = Some(fastest.map_or(took, |fastest| fastest.min(took)));
        }
        if exact.is_some() {
            let seconds = merged.iter().skip(1).step_by(2).filter(|packet| packet.due < called.due);
            list.extend(seconds.map(|packet| (packet.due, there.since(packet.due))));
        }
        list.push((called.due, took));
    }
    let fastest = fastest.unwrap_or(Span::ZERO);
    for (_, took) in &mut list {
        *took = took.checked_sub(fastest).unwrap_or(Span::ZERO);
    }
    Seen { fastest, late: list }
}

fn is_ack(tcp: &Tcp) -> bool {
    tcp.payload == 0 && tcp.flags & FIN_OR_RST == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENDER: HostId = 0;
    const RECEIVER: HostId = 1;
    const ACK: u8 = 16;
    const HOSTS: Hosts = Hosts { sender: SENDER, receiver: RECEIVER, back: Span::from_millis(10), handshake: None };

    fn us(us: u64) -> Time {
        Time::ZERO + Span::from_micros(us)
    }

    /// Given to a host at these times, in us.
    fn given(host: HostId, due: u64, at: u64, tcp: (u32, u32, u32, u8)) -> Given {
        let (sequence, payload, acknowledgement, flags) = tcp;
        Given { host, due: us(due), at: us(at), tcp: Some(Tcp { sequence, acknowledgement, flags, payload }) }
    }

    /// The packet with these bytes, due and there.
    fn data(sequence: u32, due: u64, at: u64) -> Given {
        given(RECEIVER, due, at, (sequence, 1000, 1, ACK))
    }

    /// The ACK that left the receiver at this time, and was with the sender 10 ms and so much
    /// later.
    fn ack(acknowledgement: u32, left: u64, late: u64) -> Given {
        given(SENDER, left + 10_000, left + 10_000 + late, (1, 0, acknowledgement, ACK))
    }

    fn late(list: &[Given]) -> Vec<(u64, u64)> {
        let mut list = list.to_vec();
        list.sort_by_key(|given| given.at);
        late_acks(&list, HOSTS).late.iter().map(|(due, late)| (due.as_nanos() / 1_000, late.as_micros())).collect()
    }

    #[test]
    fn an_ack_is_late_by_what_emulator_and_receiver_took_beyond_the_fastest() {
        let list = [
            data(0, 1_000, 1_003),
            // Its ACK takes 3 us of the emulator, 7 of the host and 2 of the emulator: the fastest.
            ack(1_000, 1_010, 2),
            // 5, 20 and 30 us.
            data(1_000, 2_000, 2_005),
            ack(2_000, 2_025, 30),
            // Two packets and one ACK, which the second calls for: 100, 9 and 3 us.
            data(2_000, 3_000, 3_000),
            data(3_000, 3_100, 3_200),
            ack(4_000, 3_209, 3),
        ];
        assert_eq!(late(&list), [(1_000, 0), (2_000, 55 - 12), (3_100, 112 - 12)]);
    }

    #[test]
    fn a_receiver_that_acknowledges_at_once_what_waited_is_late_for_all_of_it() {
        let sequences = [1_000, 2_000, 3_000, 4_000, 5_000];
        let waited = sequences.map(|sequence| data(sequence, 1_000 + u64::from(sequence), 1_000 + u64::from(sequence)));
        let first = [data(0, 1_000, 1_000), ack(1_000, 1_010, 0)];
        // One ACK for five packets: the second and the fourth would have called for one each.
        let list = [&first[..], &waited, &[ack(6_000, 6_510, 0)]].concat();
        assert_eq!(late(&list), [(1_000, 0), (3_000, 3_500), (5_000, 1_500), (6_000, 500)]);
        // For four: the last has its own.
        let list = [&first[..], &waited[..4], &[ack(5_000, 6_510, 0)]].concat();
        assert_eq!(late(&list), [(1_000, 0), (3_000, 3_500), (5_000, 1_500)]);
        // Behind one that was lost none is merged: each was acknowledged, and now it is there.
        let list = [&first[..], &waited[1..], &[data(1_000, 7_000, 7_000), ack(6_000, 7_010, 0)]].concat();
        assert_eq!(late(&list), [(1_000, 0), (7_000, 0)]);
    }

    #[test]
    fn an_ack_that_comes_after_the_next_packet_belongs_to_its_own() {
        let list = [
            data(0, 1_000, 1_000),
            ack(1_000, 1_010, 0),
            data(1_000, 2_000, 2_000),
            data(2_000, 2_100, 2_100),
            ack(2_000, 2_110, 0),
            ack(3_000, 2_115, 0),
        ];
        assert_eq!(late(&list), [(1_000, 0), (2_000, 100), (2_100, 5)]);
    }

    #[test]
    fn what_acknowledges_no_packets_end_was_called_for_by_the_last_one() {
        let list = [
            data(0, 1_000, 1_000),
            ack(1_000, 1_010, 0),
            // 1000 to 2000 is missing: the same number again.
            data(2_000, 2_000, 2_000),
            ack(1_000, 2_030, 0),
            // It comes, and the ACK is beyond.
            data(1_000, 3_000, 3_000),
            ack(3_000, 3_012, 0),
            // The end of a packet that came before, for the second time.
            data(9_000, 4_000, 4_000),
            ack(3_000, 4_011, 0),
            // Faster than any that is known to belong: late by nothing.
            data(10_000, 5_000, 5_000),
            ack(3_000, 5_004, 0),
        ];
        assert_eq!(late(&list), [(1_000, 0), (2_000, 20), (3_000, 2), (4_000, 1), (5_000, 0)]);
    }

    #[test]
    fn acks_of_a_timer_and_other_packets_are_not_late() {
        let fin = given(SENDER, 500, 900, (0, 0, 1, ACK | 1));
        let none = Given { tcp: None, ..fin };
        let reply = given(SENDER, 900, 990, (1, 10, 1, ACK));
        let list = [
            fin,
            none,
            reply,
            data(0, 11_000, 11_000),
            ack(1_000, 11_010, 0),
            data(1_000, 12_000, 12_000),
            ack(2_000, 52_000, 0),
            data(2_000, 62_000, 62_000),
            ack(3_000, 101_999, 0),
        ];
        assert_eq!(late(&list), [(11_000, 0), (62_000, 39_989)]);
        assert_eq!(late(&[ack(1_000, 5, 5)]), []);
    }

    /// Its first packets are slow, and what BBR takes for the round-trip time goes by them.
    #[test]
    fn a_handshake_is_as_late_as_the_sender_measured() {
        let list = [
            given(RECEIVER, 1_000, 1_010, (99, 0, 0, SYN)),
            given(SENDER, 11_050, 11_080, (500, 0, 100, ACK | SYN)),
            data(100, 21_000, 21_003),
            ack(1_100, 21_010, 2),
        ];
        assert_eq!(late(&list), [(1_000, 80 - 12), (21_000, 0)]);
        let measured = late_acks(&list, Hosts { handshake: Some(Span::from_micros(130)), ..HOSTS });
        assert_eq!(measured.late[0], (us(1_000), Span::from_micros(130 - 12)));
        assert_eq!(measured.fastest, Span::from_micros(12));
    }
}
