//! A packet for tests, and invariants that every queue must keep.

mod any;

use any::any_queue;

use proptest::prelude::*;

use flowstart_units::{Span, Time};

use super::{
    CodelArithmetic, CodelConfig, Dequeue, Discipline, DropReason, DropTailConfig, DrrConfig, DualPi2Config,
    FairQueuingConfig, FqCodelConfig, L4sClassifier, Limit, PieConfig, Queue, QueueConfig, QueueStats, RedAdaption,
    RedConfig, SchRedConfig, StepMarkConfig, Tally, Threshold,
};
use crate::{Ecn, Frame};

/// A packet with a flow, a length and a serial number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Box1 {
    flow: u64,
    bytes: u32,
    ecn: Ecn,
    serial: u64,
}

impl Box1 {
    pub(crate) fn new(flow: u64, bytes: u32) -> Self {
        Self { flow, bytes, ecn: Ecn::NotEct, serial: 0 }
    }

    pub(crate) fn ect(flow: u64, bytes: u32) -> Self {
        Self::with_ecn(flow, bytes, Ecn::Ect0)
    }

    pub(crate) fn with_ecn(flow: u64, bytes: u32, ecn: Ecn) -> Self {
        Self { ecn, ..Self::new(flow, bytes) }
    }
}

impl Frame for Box1 {
    fn bytes(&self) -> u32 {
        self.bytes
    }

    fn flow(&self) -> u64 {
        self.flow
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ce(&mut self) -> bool {
        if self.ecn.is_capable() {
            self.ecn = Ecn::Ce;
        }
        self.ecn.is_capable()
    }
}

/// Which packets of these sizes are accepted.
pub(crate) fn accepted(sizes: &[u32], config: QueueConfig) -> Vec<bool> {
    let mut queue = Queue::new(&config, 0);
    sizes
        .iter()
        .map(|bytes| {
            let mut stored = true;
            queue.enqueue(Time::ZERO, Box1::new(0, *bytes), &mut |_, _| stored = false);
            stored
        })
        .collect()
}

/// A queue of each kind that holds 5 packets of 1486 bytes (1500 with the header that Linux
/// counts).
fn with_room_for_five() -> impl Iterator<Item = QueueConfig> {
    QueueConfig::NAMES.into_iter().filter_map(QueueConfig::from_name).map(|mut config| {
        match config.limit() {
            Limit::Packets(packets) => *packets = 5,
            Limit::Bytes(bytes) => *bytes = 5 * 1500,
            Limit::Either(limit) => limit.packets = Some(5),
        }
        config
    })
}

/// A queue from outside: the newest packet first, every tenth marked, at most three.
#[derive(Default)]
struct Stack {
    stored: Vec<(Box1, Time)>,
    arrived: u64,
    marked: u64,
}

impl Discipline<Box1> for Stack {
    fn enqueue(&mut self, now: Time, mut packet: Box1, dropped: &mut dyn FnMut(Box1, DropReason)) {
        self.arrived += 1;
        if self.stored.len() == 3 {
            return dropped(packet, DropReason::Full);
        }
        if self.arrived.is_multiple_of(10) {
            self.marked += u64::from(packet.set_ce());
        }
        self.stored.push((packet, now));
    }

    fn dequeue(&mut self, _now: Time, _dropped: &mut dyn FnMut(Box1, DropReason)) -> Dequeue<Box1> {
        self.stored.pop().into()
    }

    fn tally(&self) -> Tally {
        let bytes = self.stored.iter().map(|(packet, _)| u64::from(packet.bytes)).sum();
        Tally { packets: self.stored.len() as u64, bytes, marked: self.marked }
    }
}

#[test]
fn a_queue_from_outside_is_asked_like_any_other_and_its_counts_are_seen() {
    let mut queue = Queue::external(Box::new(Stack::default()));
    for n in 0..4_u64 {
        queue.enqueue(Time::from_nanos(n), Box1::ect(n, 100), &mut |packet, _| assert_eq!(packet.flow, 3));
    }
    assert_eq!((queue.packets(), queue.bytes()), (3, 300));
    let next = queue.dequeue(Time::from_nanos(9), &mut |_, _| panic!());
    assert!(matches!(next, Dequeue::Packet(packet, arrived) if packet.flow == 2 && arrived == Time::from_nanos(2)));
    assert_eq!((queue.packets(), queue.bytes()), (2, 200));
    for n in 4..10 {
        queue.enqueue(Time::from_nanos(n), Box1::ect(n, 100), &mut |_, _| {});
        if n < 9 {
            queue.dequeue(Time::from_nanos(n), &mut |_, _| panic!());
        }
    }
    let expected = QueueStats { enqueued: 10, dequeued: 6, dropped: 1, marked: 1 };
    assert_eq!((queue.stats(), queue.packets()), (expected, 3));
    assert!(format!("{queue:?}").contains("External"));
}

#[test]
fn every_name_makes_a_valid_queue_of_that_name_and_no_other_does() {
    for name in QueueConfig::NAMES {
        let config = QueueConfig::from_name(name).unwrap();
        assert_eq!(config.name(), name);
        assert_eq!(config.validate(), Ok(()), "{name}");
    }
    assert_eq!(QueueConfig::from_name("droptail"), None);
}

#[test]
fn every_kind_of_queue_holds_exactly_its_limit() {
    for config in with_room_for_five() {
        let mut queue = Queue::new(&config, 1);
        for n in 1..=5 {
            queue.enqueue(Time::ZERO, Box1::new(0, 1486), &mut |_, _| panic!("{}", config.name()));
            assert_eq!((queue.packets(), queue.bytes()), (n, 1486 * n), "{}", config.name());
        }
        let mut reasons = Vec::new();
        queue.enqueue(Time::ZERO, Box1::new(0, 1486), &mut |_, reason| reasons.push(reason));
        let expected = match config {
            // Half of the longest queue's bytes at least.
            QueueConfig::FqCodel(_) => vec![DropReason::Full; 3],
            _ => vec![DropReason::Full],
        };
        assert_eq!(reasons, expected, "{}", config.name());
        assert_eq!(queue.stats().dropped, reasons.len() as u64);
        assert_eq!(queue.packets(), 6 - reasons.len() as u64);
    }
}

#[test]
fn the_largest_packet_of_an_empty_queue_is_taken_and_a_longer_one_dropped() {
    let memory = 2_000;
    let limits = [
        QueueConfig::DropTail(DropTailConfig { packets: None, bytes: Some(memory) }),
        QueueConfig::StepMark(StepMarkConfig {
            limit: DropTailConfig { packets: Some(9), bytes: Some(memory) },
            ..StepMarkConfig::default()
        }),
        QueueConfig::SchRed(SchRedConfig { limit: memory, ..SchRedConfig::default() }),
        QueueConfig::FqCodel(FqCodelConfig { memory, ..FqCodelConfig::default() }),
        QueueConfig::DualPi2(DualPi2Config { memory: Some(memory), ..DualPi2Config::default() }),
    ];
    for config in limits {
        let largest = u32::try_from(config.largest_packet()).unwrap();
        let mut drops = 0;
        let mut keeps = |bytes| {
            let mut queue = Queue::new(&config, 1);
            queue.enqueue(Time::ZERO, Box1::new(0, bytes), &mut |_, _| drops += 1);
            queue.packets() == 1
        };
        assert!(keeps(largest) && !keeps(largest + 1), "{} {largest}", config.name());
        assert_eq!(drops, 1);
    }
    assert_eq!(QueueConfig::drop_tail(1).largest_packet(), u64::MAX);
}

#[test]
fn a_limit_is_set_in_the_unit_that_the_queue_has() {
    let limit = |name: &str, packets, bytes| {
        let mut config = QueueConfig::from_name(name).unwrap().with_limit(packets, bytes, 1500);
        match config.limit() {
            Limit::Packets(n) | Limit::Bytes(n) => (Some(*n), None),
            Limit::Either(limit) => (limit.packets, limit.bytes),
        }
    };
    assert_eq!(limit("drop_tail", Some(3), Some(4000)), (Some(3), Some(4000)));
    assert_eq!(limit("codel", Some(3), None), (Some(3), None));
    assert_eq!(limit("codel", None, Some(4000)), (Some(2), None));
    assert_eq!(limit("codel", None, Some(40)), (Some(1), None));
    assert_eq!(limit("codel", None, None), (Some(1000), None));
    assert_eq!(limit("sch_red", Some(3), None), (Some(4500), None));
    assert_eq!(limit("sch_red", Some(3), Some(4000)), (Some(4000), None));
}

#[test]
fn whether_a_queue_isolates_or_draws_is_seen_in_what_it_does() {
    let named = |wanted: fn(&QueueConfig) -> bool| -> Vec<&str> {
        let all = QueueConfig::NAMES.into_iter();
        all.filter(|name| QueueConfig::from_name(name).is_some_and(|config| wanted(&config))).collect()
    };
    // A short flow overtakes a long one only where flows wait apart.
    let isolating = named(|config| {
        let mut queue = Queue::new(config, 1);
        for flow in std::iter::repeat_n(0, 40).chain([1]) {
            queue.enqueue(Time::ZERO, Box1::new(flow, 1486), &mut |_, _| {});
        }
        let leave = std::iter::from_fn(|| match queue.dequeue(Time::ZERO, &mut |_, _| {}) {
            Dequeue::Packet(packet, _) => Some(packet.flow),
            _ => None,
        });
        leave.take(40).any(|flow| flow == 1)
    });
    assert_eq!(named(QueueConfig::isolates), isolating);
    let random = named(QueueConfig::is_random);
    assert!(["fq_codel", "red", "sch_red", "pie", "dual_pi2"].iter().all(|name| random.contains(name)));
    assert!(["drop_tail", "step_mark", "codel", "drr"].iter().all(|name| !random.contains(name)));
    let hashed = FairQueuingConfig { buckets: 8, ..FairQueuingConfig::default() };
    assert!(QueueConfig::FairQueuing(hashed).is_random());
}

/// Counts packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    packets: u64,
    bytes: u64,
}

impl Count {
    fn add(&mut self, packet: &Box1) {
        self.packets += 1;
        self.bytes += u64::from(packet.bytes);
    }
}

/// Time until the next step, and an arrival (flow, bytes) or a departure.
type Step = (u64, Option<(u64, u32)>);

/// The codepoint of a flow's packets: all alike, for a flow of two kinds would be in two queues of
/// DualPI2, out of order.
const ECN: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::NotEct];

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let arrival = (0_u64..4, 40_u32..1_500);
    let gap = prop_oneof![9 => 0_u64..400_000, 1 => 0_u64..300_000_000];
    proptest::collection::vec((gap, proptest::option::weighted(0.6, arrival)), 1..400)
}

proptest! {
    /// Conservation of packets and bytes, order within a flow, work conservation, no mark on a
    /// packet that cannot carry one, no negative sojourn time, counters that agree.
    #[test]
    fn every_queue_keeps_its_packets_and_their_order(config in any_queue(), steps in any_steps(), seed: u64) {
        prop_assert_eq!(config.validate(), Ok(()));
        let mut queue = Queue::new(&config, seed);
        let mut now = Time::ZERO;
        let (mut arrived, mut left, mut dropped) = (Count::default(), Count::default(), Count::default());
        let mut last_serial = [None; 4];
        for (serial, (gap, arrival)) in (0_u64..).zip(steps) {
            now += Span::from_nanos(gap);
            if let Some((flow, bytes)) = arrival {
                let packet = Box1 { flow, bytes, ecn: ECN[flow as usize], serial };
                arrived.add(&packet);
                queue.enqueue(now, packet, &mut |packet, _| dropped.add(&packet));
            } else {
                match queue.dequeue(now, &mut |packet, _| dropped.add(&packet)) {
                    Dequeue::Packet(packet, since) => {
                        prop_assert!(since <= now);
                        left.add(&packet);
                        let last = &mut last_serial[packet.flow as usize];
                        prop_assert!(last.is_none_or(|last| last < packet.serial), "order within a flow");
                        *last = Some(packet.serial);
                    }
                    Dequeue::Empty => prop_assert_eq!(queue.packets(), 0, "work conservation"),
                    Dequeue::NotBefore(_) => prop_assert!(false, "none of these paces"),
                }
            }
            let stats = queue.stats();
            prop_assert_eq!(queue.packets(), queue.discipline.packets());
            prop_assert_eq!(arrived.packets, left.packets + dropped.packets + queue.packets());
            prop_assert_eq!(arrived.bytes, left.bytes + dropped.bytes + queue.bytes());
            prop_assert_eq!(
                (stats.enqueued, stats.dequeued, stats.dropped),
                (arrived.packets, left.packets, dropped.packets)
            );
        }
        while let Dequeue::Packet(packet, _) = queue.dequeue(now, &mut |packet, _| dropped.add(&packet)) {
            left.add(&packet);
        }
        prop_assert_eq!((queue.packets(), queue.bytes()), (0, 0));
        prop_assert_eq!((arrived.packets, arrived.bytes), (left.packets + dropped.packets, left.bytes + dropped.bytes));
    }

    #[test]
    fn marks_are_counted_and_only_ecn_capable_packets_carry_them(
        config in any_queue(),
        steps in any_steps(),
        seed: u64,
    ) {
        let mut queue = Queue::new(&config, seed);
        let mut now = Time::ZERO;
        let (mut marks, mut marked_and_lost) = (0, 0);
        for (gap, arrival) in steps {
            now += Span::from_nanos(gap);
            let mut lose = |packet: Box1, _| marked_and_lost += u64::from(packet.ecn == Ecn::Ce);
            if let Some((flow, bytes)) = arrival {
                queue.enqueue(now, Box1::with_ecn(flow, bytes, ECN[flow as usize]), &mut lose);
            } else if let Dequeue::Packet(packet, _) = queue.dequeue(now, &mut lose) {
                prop_assert_eq!(packet.ecn.is_capable(), ECN[packet.flow as usize].is_capable());
                marks += u64::from(packet.ecn == Ecn::Ce);
            }
        }
        while let Dequeue::Packet(packet, _) =
            queue.dequeue(now, &mut |packet, _| marked_and_lost += u64::from(packet.ecn == Ecn::Ce))
        {
            prop_assert_eq!(packet.ecn.is_capable(), ECN[packet.flow as usize].is_capable());
            marks += u64::from(packet.ecn == Ecn::Ce);
        }
        // A queue may mark a packet twice, but not forget one.
        prop_assert!(queue.stats().marked >= marks + marked_and_lost);
    }

    #[test]
    fn no_time_is_too_far_away(config in any_queue(), sizes in proptest::collection::vec(40_u32..1_500, 1..60)) {
        let mut queue = Queue::new(&config, 1);
        for bytes in sizes {
            queue.enqueue(Time::ZERO, Box1::new(0, bytes), &mut |_, _| {});
        }
        while let Dequeue::Packet(..) = queue.dequeue(Time::NEVER, &mut |_, _| {}) {}
        prop_assert_eq!(queue.packets(), 0);
        queue.enqueue(Time::NEVER, Box1::new(0, 40), &mut |_, _| {});
    }
}
