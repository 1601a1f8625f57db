//! Segments that are looked at together and merged (Linux NAPI and GRO: `tcp_gro_receive`,
//! `inet_gro_receive`, `skb_gro_receive`).

use std::collections::VecDeque;

use flowstart_network::Ecn;
use flowstart_network::packet::Segment;
use flowstart_units::Time;

use crate::ReceiveOffload;

/// One segment, or several that were merged: then `segment` is the first of them with the payload
/// of all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Merged {
    pub(crate) segment: Segment,
    pub(crate) ecn: Ecn,
    /// Segments in it.
    pub(crate) count: u32,
    /// Payload of the first one: the segment size of the merged packet.
    pub(crate) size: u32,
}

impl Merged {
    #[inline]
    pub(crate) fn single(segment: Segment, ecn: Ecn) -> Self {
        Self { segment, ecn, count: 1, size: segment.payload }
    }

    /// Whether the next segment belongs to it: it continues it with the same marks and the same
    /// timestamp, and nothing asked to end it.
    fn takes(&self, next: &Segment, ecn: Ecn, most: u64) -> bool {
        let first = &self.segment;
        let ended = first.push || first.fin || u64::from(first.payload) < u64::from(self.count) * u64::from(self.size);
        let plain = !next.syn && !next.cwr && next.quick_start.is_none() && first.quick_start.is_none();
        !ended
            && plain
            && (1..=self.size).contains(&next.payload)
            && next.seq == first.seq + u64::from(first.payload)
            && ecn == self.ecn
            && stamp(next.sent_at) == stamp(first.sent_at)
            && u64::from(first.payload) + u64::from(next.payload) <= most
    }

    fn take(&mut self, next: &Segment) {
        self.segment.payload += next.payload;
        self.segment.push = next.push;
        self.segment.fin = next.fin;
        self.segment.retransmission |= next.retransmission;
        self.count += 1;
    }
}

/// The timestamp option's clock (RFC 7323): milliseconds.
fn stamp(at: Time) -> u64 {
    at.as_nanos() / 1_000_000
}

/// Packets that have arrived and were not looked at.
#[derive(Debug)]
pub(crate) struct Arrivals {
    config: ReceiveOffload,
    waiting: Vec<Merged>,
    packets: u32,
    /// When they are looked at; [`Time::NEVER`] if there are none.
    due: Time,
    /// What is being looked at, since when.
    looked_at: VecDeque<Merged>,
    since: Time,
}

impl Arrivals {
    pub(crate) fn new(config: &ReceiveOffload) -> Self {
        Self {
            config: config.clone(),
            waiting: Vec::new(),
            packets: 0,
            due: Time::NEVER,
            looked_at: VecDeque::new(),
            since: Time::ZERO,
        }
    }

    /// A packet arrived. Returns true if so many wait that they are looked at now.
    pub(crate) fn push(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> bool {
        match self.waiting.last_mut() {
            Some(last) if last.takes(segment, ecn, self.config.payload()) => last.take(segment),
            _ => self.waiting.push(Merged::single(*segment, ecn)),
        }
        self.packets += 1;
        self.due = self.due.min(now + self.config.interval);
        self.packets >= self.config.most
    }

    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// The host looks at what there is.
    pub(crate) fn look(&mut self, now: Time) {
        self.packets = 0;
        self.due = Time::NEVER;
        self.since = now;
        self.looked_at.extend(self.waiting.drain(..));
    }

    /// True while some that is looked at was not taken.
    pub(crate) fn is_looked_at(&self) -> bool {
        !self.looked_at.is_empty()
    }

    /// What is looked at next, in the order it came, and since when.
    pub(crate) fn next(&mut self) -> Option<(Time, Merged)> {
        self.looked_at.pop_front().map(|merged| (self.since, merged))
    }
}

#[cfg(test)]
mod tests {
    use flowstart_network::packet::Acknowledgement;
    use flowstart_units::{Bytes, Span};
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{MSS, segment};
    use crate::{EcnMode, Receiver, ReceiverConfig};

    fn micros(us: u64) -> Time {
        Time::ZERO + Span::from_micros(us)
    }

    fn merging() -> ReceiverConfig {
        ReceiverConfig { quick_acks: 0, offload: Some(ReceiveOffload::default()), ..ReceiverConfig::default() }
    }

    fn acks(receiver: &mut Receiver) -> Vec<Acknowledgement> {
        std::iter::from_fn(|| receiver.poll_ack()).map(|out| out.ack).collect()
    }

    /// Hands these in at one instant and looks at them; the segments that each ACK is for.
    fn acked(config: &ReceiverConfig, arrived: &[(Segment, Ecn)]) -> Vec<u64> {
        let mut receiver = Receiver::new(config);
        for (segment, ecn) in arrived {
            receiver.on_segment(micros(0), segment, *ecn);
        }
        receiver.on_timer(receiver.deadline());
        let told: Vec<u64> = acks(&mut receiver).iter().map(|ack| ack.ack / MSS).collect();
        std::iter::once(0).chain(told.iter().copied()).zip(&told).map(|(before, told)| told - before).collect()
    }

    fn in_a_row(count: u64) -> Vec<(Segment, Ecn)> {
        (0..count).map(|index| (segment(index, micros(0)), Ecn::Ect0)).collect()
    }

    #[test]
    fn what_arrives_within_the_interval_is_acknowledged_once_and_when_it_is_over() {
        let mut receiver = Receiver::new(&merging());
        for index in 0..4 {
            receiver.on_segment(micros(10 * index), &segment(index, micros(index)), Ecn::NotEct);
            assert!(acks(&mut receiver).is_empty());
            assert_eq!((receiver.deadline(), receiver.delivered()), (micros(50), 0));
        }
        receiver.on_timer(micros(50));
        assert_eq!(acks(&mut receiver).iter().map(|ack| ack.ack).collect::<Vec<_>>(), [4 * MSS]);
        assert_eq!((receiver.delivered(), receiver.stats().packets, receiver.stats().acks), (4 * MSS, 4, 1));
        assert_eq!(receiver.deadline(), Time::NEVER);
        // The next one begins another interval.
        receiver.on_segment(micros(70), &segment(4, micros(5)), Ecn::NotEct);
        assert_eq!(receiver.deadline(), micros(120));
    }

    /// 64 KiB hold 45 segments of 1448 B and headers of 52 B; NAPI looks at 64 packets at once.
    #[test]
    fn a_merged_packet_has_at_most_64_kib_and_64_packets_are_looked_at_at_once() {
        assert_eq!(acked(&merging(), &in_a_row(63)), [45, 18]);
        let mut receiver = Receiver::new(&merging());
        for (segment, ecn) in in_a_row(64) {
            receiver.on_segment(micros(1), &segment, ecn);
        }
        assert_eq!((acks(&mut receiver).len(), receiver.delivered(), receiver.deadline()), (2, 64 * MSS, Time::NEVER));
        let narrow = ReceiveOffload { largest: Bytes::new(4 * MSS), ..ReceiveOffload::default() };
        assert_eq!(acked(&ReceiverConfig { offload: Some(narrow), ..merging() }, &in_a_row(6)), [3, 3]);
    }

    #[test]
    fn a_push_a_short_segment_another_mark_another_timestamp_and_a_gap_end_a_merged_packet() {
        let with = |change: fn(&mut (Segment, Ecn))| {
            let mut arrived = in_a_row(6);
            change(&mut arrived[2]);
            acked(&merging(), &arrived)
        };
        assert_eq!(with(|_| ()), [6]);
        assert_eq!(with(|(segment, _)| segment.push = true), [3, 3]);
        assert_eq!(with(|(_, ecn)| *ecn = Ecn::Ce), [2, 4], "the marked one is on its own and waits for the next");
        assert_eq!(with(|(segment, _)| segment.cwr = true), [2, 4], "the one with CWR begins a packet");
        assert_eq!(with(|(segment, _)| segment.sent_at = micros(1_000)), [2, 4]);
        let mut short = in_a_row(6);
        for (segment, _) in &mut short[2..] {
            segment.seq -= 48;
        }
        short[1].0.payload -= 48;
        // Two, and four.
        assert_eq!(acked(&merging(), &short), [1, 4]);
        let mut gap = in_a_row(6);
        gap.remove(2);
        assert_eq!(acked(&merging(), &gap), [2, 0], "one duplicate ACK for three segments behind the gap");
    }

    /// RFC 8257 section 3.2: what was not marked is acknowledged before what was.
    #[test]
    fn marks_and_what_came_before_them_are_told_apart() {
        let config = ReceiverConfig { ecn: EcnMode::Dctcp, ..merging() };
        let mut receiver = Receiver::new(&config);
        for index in 0..7 {
            let ecn = if (3..6).contains(&index) { Ecn::Ce } else { Ecn::Ect0 };
            receiver.on_segment(micros(index), &segment(index, micros(0)), ecn);
        }
        receiver.on_timer(micros(50));
        let told: Vec<(u64, bool)> = acks(&mut receiver).iter().map(|ack| (ack.ack / MSS, ack.ece)).collect();
        assert_eq!(told, [(3, false), (6, true), (7, false)]);
        assert_eq!(receiver.stats().marked, 3);
    }

    /// `tcp_grow_window`: by twice the payload of the packet, however many segments that is.
    #[test]
    fn the_window_grows_for_a_merged_packet_as_for_its_segments() {
        let offered = |offload: Option<ReceiveOffload>| {
            let window = Some(crate::ReceiveWindow::default());
            let mut receiver = Receiver::new(&ReceiverConfig { window, offload, ..merging() });
            let mut told = Vec::new();
            for index in 0..2 {
                receiver.on_segment(micros(index), &segment(index, micros(0)), Ecn::NotEct);
                told.extend(acks(&mut receiver));
            }
            receiver.on_timer(micros(51));
            told.extend(acks(&mut receiver));
            (told.len(), told.last().map(|ack| ack.ack + u64::from(ack.window)))
        };
        let (single, merged) = (offered(None), offered(Some(ReceiveOffload::default())));
        assert_eq!((single.0, merged.0), (2, 1));
        assert_eq!(single.1, merged.1);
    }

    proptest! {
        /// Whatever comes in whatever order, all of it is taken in, and with an interval of zero
        /// and no two packets at one instant nothing differs from a host that does not merge.
        #[test]
        fn nothing_is_lost_and_without_an_interval_nothing_changes(
            order in proptest::collection::vec((0_u64..40, 0_u8..8, 0_u64..200, proptest::bool::ANY), 1..120)
        ) {
            let plain = ReceiverConfig { ecn: EcnMode::Dctcp, ..ReceiverConfig::default() };
            let at_once = ReceiveOffload { interval: Span::ZERO, ..ReceiveOffload::default() };
            let mut receivers = [None, Some(at_once), Some(ReceiveOffload::default())]
                .map(|offload| Receiver::new(&ReceiverConfig { offload, ..plain.clone() }));
            let mut now = micros(0);
            for (index, kind, gap, push) in order {
                now += Span::from_micros(gap + 1);
                let packet = Segment { push, ..segment(index, now) };
                let ecn = if kind == 0 { Ecn::Ce } else { Ecn::Ect0 };
                let mut told = Vec::new();
                for receiver in &mut receivers {
                    if receiver.deadline() <= now {
                        receiver.on_timer(now);
                        let _ = acks(receiver);
                    }
                    receiver.on_segment(now, &packet, ecn);
                    let mut out = acks(receiver);
                    if receiver.deadline() <= now {
                        receiver.on_timer(now);
                        out.extend(acks(receiver));
                    }
                    told.push(out);
                }
                prop_assert_eq!(&told[0], &told[1]);
            }
            let [plain, _, merging] = &mut receivers;
            merging.on_timer(now + Span::from_secs(1));
            let _ = acks(merging);
            prop_assert_eq!(plain.delivered(), merging.delivered());
            prop_assert_eq!(plain.stats().packets, merging.stats().packets);
        }
    }
}
