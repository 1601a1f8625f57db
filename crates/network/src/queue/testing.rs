//! A packet for tests, and invariants that every queue must keep.

use proptest::prelude::*;

use flowstart_units::{Span, Time};

use super::{Dequeue, FairQueuingConfig, Queue, QueueConfig, StepMarkConfig, Threshold};
use crate::queue::DropTailConfig;
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
        Self { ecn: Ecn::Ect0, ..Self::new(flow, bytes) }
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

fn any_queue() -> impl Strategy<Value = QueueConfig> {
    let limit = (1_u64..30, proptest::option::of(1_500_u64..40_000))
        .prop_map(|(packets, bytes)| DropTailConfig { packets: Some(packets), bytes });
    let threshold = prop_oneof![
        (0_u64..5_000_000).prop_map(|nanos| Threshold::Sojourn(Span::from_nanos(nanos))),
        (1_u64..20).prop_map(Threshold::Packets),
        (1_u64..20_000).prop_map(Threshold::Bytes),
    ];
    prop_oneof![
        limit.clone().prop_map(QueueConfig::DropTail),
        (threshold, limit, any::<bool>()).prop_map(|(threshold, limit, drop_not_ect)| {
            QueueConfig::StepMark(StepMarkConfig { threshold, limit, drop_not_ect })
        }),
        (1_u64..40, 1_u64..20, 100_u32..4_000, 0_u32..3).prop_map(|(limit, flow_limit, quantum, buckets)| {
            QueueConfig::FairQueuing(FairQueuingConfig {
                limit,
                flow_limit,
                quantum,
                buckets,
                ..FairQueuingConfig::default()
            })
        }),
    ]
}

proptest! {
    /// Conservation, order within a flow, work conservation, no mark on a packet that cannot carry one, no negative sojourn.
    #[test]
    fn every_queue_keeps_its_packets_and_their_order(
        config in any_queue(),
        steps in proptest::collection::vec((0_u64..400_000, proptest::option::of((0_u64..4, 40_u32..1_500, any::<bool>()))), 1..300),
    ) {
        prop_assert_eq!(config.validate(), Ok(()));
        let mut queue = Queue::new(&config, 1);
        let mut now = Time::ZERO;
        let (mut packets_in, mut packets_out, mut packets_dropped) = (0_u64, 0_u64, 0_u64);
        let (mut bytes_in, mut bytes_out, mut bytes_dropped) = (0_u64, 0_u64, 0_u64);
        let mut last_serial = [None; 4];
        for (serial, (gap, arrival)) in (0_u64..).zip(steps) {
            now += Span::from_nanos(gap);
            if let Some((flow, bytes, capable)) = arrival {
                let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
                packets_in += 1;
                bytes_in += u64::from(bytes);
                queue.enqueue(now, Box1 { flow, bytes, ecn, serial }, &mut |packet, _| {
                    packets_dropped += 1;
                    bytes_dropped += u64::from(packet.bytes);
                });
            } else {
                let stored = queue.packets();
                match queue.dequeue(now, &mut |_, _| packets_dropped += 1) {
                    Dequeue::Packet(packet, arrived) => {
                        prop_assert!(arrived <= now);
                        packets_out += 1;
                        bytes_out += u64::from(packet.bytes);
                        let last = &mut last_serial[packet.flow as usize];
                        prop_assert!(last.is_none_or(|last| last < packet.serial), "order within a flow");
                        *last = Some(packet.serial);
                    }
                    Dequeue::Empty => prop_assert_eq!(stored, 0, "work conservation"),
                    Dequeue::NotBefore(_) => prop_assert!(false, "none of these paces"),
                }
            }
            prop_assert_eq!(packets_in, packets_out + packets_dropped + queue.packets());
            prop_assert_eq!(bytes_in, bytes_out + bytes_dropped + queue.bytes());
        }
        while let Dequeue::Packet(packet, _) = queue.dequeue(now, &mut |_, _| {}) {
            packets_out += 1;
            bytes_out += u64::from(packet.bytes);
        }
        prop_assert_eq!((queue.packets(), queue.bytes()), (0, 0));
        prop_assert_eq!((packets_in, bytes_in), (packets_out + packets_dropped, bytes_out + bytes_dropped));
    }

    #[test]
    fn a_packet_that_is_not_ecn_capable_never_leaves_with_a_mark(config in any_queue(), sizes in proptest::collection::vec(40_u32..1_500, 1..60)) {
        let mut queue = Queue::new(&config, 1);
        for bytes in sizes {
            queue.enqueue(Time::ZERO, Box1::new(0, bytes), &mut |_, _| {});
        }
        while let Dequeue::Packet(packet, _) = queue.dequeue(Time::from_nanos(u64::MAX), &mut |_, _| {}) {
            prop_assert_eq!(packet.ecn, Ecn::NotEct);
        }
    }
}
