use super::*;
use crate::Ecn;
use crate::queue::testing::Box1;

fn drain(queue: &mut FairQueuing<Box1>) -> Vec<u64> {
    std::iter::from_fn(|| match queue.dequeue(Time::ZERO, &mut |_, _| panic!()) {
        Dequeue::Packet(packet, _) => Some(packet.flow()),
        _ => None,
    })
    .collect()
}

/// IP packets that count as 1514 bytes.
fn fill(queue: &mut FairQueuing<Box1>, flow: u64, count: usize) {
    for _ in 0..count {
        queue.enqueue(Time::ZERO, Box1::new(flow, 1500), &mut |_, _| panic!());
    }
}

#[test]
fn twelve_packets_of_a_and_three_of_b_leave_ten_of_a_then_b_then_the_rest() {
    let mut queue = FairQueuing::new(FairQueuingConfig::default(), 0);
    fill(&mut queue, 1, 12);
    fill(&mut queue, 2, 3);
    let order = drain(&mut queue);
    assert_eq!(order, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1]);
    let credit = |key| queue.flows[queue.known[&key] as usize].credit;
    assert_eq!((credit(1), credit(2)), (3028, 10_598));
}

#[test]
fn backlogged_equal_flows_differ_by_less_than_a_quantum_and_a_packet() {
    let mut queue = FairQueuing::new(FairQueuingConfig::default(), 0);
    let mut sent = [0_i64; 3];
    for flow in 0..3 {
        fill(&mut queue, flow, 100);
    }
    for _ in 0..240 {
        let Dequeue::Packet(packet, _) = queue.dequeue(Time::ZERO, &mut |_, _| panic!()) else { panic!() };
        sent[packet.flow() as usize] += 1514;
    }
    let spread = sent.iter().max().unwrap() - sent.iter().min().unwrap();
    assert!(spread < 3028 + 1514, "{sent:?}");
}

#[test]
fn the_first_ten_packets_of_a_new_flow_pass_ahead_of_old_ones() {
    let mut queue = FairQueuing::new(FairQueuingConfig::default(), 0);
    fill(&mut queue, 1, 90);
    for _ in 0..20 {
        assert!(matches!(queue.dequeue(Time::ZERO, &mut |_, _| panic!()), Dequeue::Packet(..)));
    }
    fill(&mut queue, 2, 15);
    let order = drain(&mut queue);
    assert_eq!(order[..10], [2; 10]);
    assert!(order[10..14].contains(&1));
}

#[test]
fn a_flow_holds_at_most_its_limit_and_others_still_get_in() {
    let mut queue = FairQueuing::new(FairQueuingConfig::default(), 0);
    fill(&mut queue, 1, 100);
    let mut reasons = Vec::new();
    queue.enqueue(Time::ZERO, Box1::new(1, 1500), &mut |_, reason| reasons.push(reason));
    queue.enqueue(Time::ZERO, Box1::new(2, 1500), &mut |_, reason| reasons.push(reason));
    assert_eq!(reasons, [DropReason::FlowFull]);
}

#[test]
fn idle_flows_are_forgotten_and_memory_stays_bounded() {
    let config = FairQueuingConfig::default();
    let mut queue = FairQueuing::new(config, 0);
    for flow in 0..100_000 {
        let now = Time::ZERO + Span::from_millis(10 * flow);
        queue.enqueue(now, Box1::new(flow, 1500), &mut |_, _| panic!());
        assert!(matches!(queue.dequeue(now, &mut |_, _| panic!()), Dequeue::Packet(..)));
        assert_eq!(queue.dequeue(now, &mut |_, _| panic!()), Dequeue::Empty);
    }
    assert!(queue.flows.len() <= config.forget_above as usize);
}

#[test]
fn a_flow_that_pauses_briefly_keeps_its_credit_and_after_40_ms_gets_a_quantum() {
    for (pause, credit) in [(40_000_000, 1_i64), (40_000_001, 3028)] {
        let mut queue = FairQueuing::new(FairQueuingConfig { initial_quantum: 1515, ..Default::default() }, 0);
        fill(&mut queue, 1, 1);
        assert_eq!(drain(&mut queue), [1]);
        queue.enqueue(Time::from_nanos(pause), Box1::new(1, 1500), &mut |_, _| panic!());
        assert_eq!(queue.flows[0].credit, credit);
    }
}

/// How many flows are known when one more comes after a pause, of which `active` still have
/// packets.
fn known_after(flows: u64, active: u64, pause: Span) -> usize {
    let mut queue = FairQueuing::new(FairQueuingConfig { forget_above: 4, ..FairQueuingConfig::default() }, 0);
    for flow in 0..flows {
        fill(&mut queue, flow, 1);
    }
    drain(&mut queue);
    for flow in 0..active {
        fill(&mut queue, flow, 2);
    }
    queue.enqueue(Time::ZERO + pause, Box1::new(99, 1500), &mut |_, _| panic!());
    let left = drain(&mut queue);
    assert_eq!(left.len() as u64, 2 * active + 1);
    assert_eq!(left.iter().filter(|flow| **flow == 99).count(), 1);
    queue.flows.len()
}

#[test]
fn flows_are_forgotten_when_four_are_known_and_more_than_half_idle_for_more_than_3_s() {
    let (long, short) = (Span::from_nanos(3_000_000_001), Span::from_secs(3));
    assert_eq!(known_after(3, 0, long), 4, "too few to look");
    assert_eq!(known_after(4, 0, long), 1);
    assert_eq!(known_after(4, 0, short), 5, "not idle for long enough");
    assert_eq!(known_after(4, 1, long), 2, "who has packets stays");
    assert_eq!(known_after(4, 2, long), 5, "too many active to look");
    assert_eq!(known_after(7, 2, long), 3);
}

/// When the packets of one flow leave that are all there at time 0.
fn departures(config: FairQueuingConfig, count: usize) -> Vec<u64> {
    let mut queue = FairQueuing::new(config, 0);
    fill(&mut queue, 1, count);
    let mut now = Time::ZERO;
    let mut times = Vec::new();
    loop {
        match queue.dequeue(now, &mut |_, _| panic!()) {
            Dequeue::Packet(..) => times.push(now.as_nanos()),
            Dequeue::NotBefore(time) => now = time,
            Dequeue::Empty => return times,
        }
    }
}

#[test]
fn a_paced_flow_sends_ten_packets_at_once_and_then_two_per_quantum_time() {
    let config = FairQueuingConfig { max_rate: Some(Rate::from_mbps(10)), ..Default::default() };
    let times = departures(config, 20);
    assert_eq!(times[..10], [0; 10]);
    let quantum_time = 2_422_400;
    let expected: Vec<u64> = (0..10).map(|n| quantum_time * (1 + n / 2)).collect();
    assert_eq!(times[10..], expected);
}

#[test]
fn below_the_low_rate_threshold_every_packet_waits_for_its_own_length() {
    let config = FairQueuingConfig { max_rate: Some(Rate::from_bps(500_000)), ..Default::default() };
    // 1514 B at 500 kbit/s take 24.224 ms.
    assert_eq!(departures(config, 4), [0, 24_224_000, 48_448_000, 72_672_000]);
}

#[test]
fn a_packet_that_leaves_late_is_marked_if_it_can_be() {
    let config = FairQueuingConfig { mark_threshold: Some(Span::from_millis(1)), ..Default::default() };
    let mut queue = FairQueuing::new(config, 0);
    queue.enqueue(Time::ZERO, Box1::ect(1, 1500), &mut |_, _| panic!());
    queue.enqueue(Time::ZERO, Box1::ect(1, 1500), &mut |_, _| panic!());
    queue.enqueue(Time::ZERO, Box1::new(1, 1500), &mut |_, _| panic!());
    let mut next = |nanos| match queue.dequeue(Time::from_nanos(nanos), &mut |_, _| panic!()) {
        Dequeue::Packet(packet, _) => packet.ecn(),
        _ => panic!(),
    };
    assert_eq!([next(1_000_000), next(1_000_001), next(1_000_002)], [Ecn::Ect0, Ecn::Ce, Ecn::NotEct]);
    assert_eq!(queue.marked(), 1);
}

proptest::proptest! {
    /// A paced flow sends at most rate times time and a quantum more after its first credit,
    /// whoever else is there.
    #[test]
    fn a_paced_flow_never_exceeds_its_rate_by_more_than_a_quantum(
        mbps in 1_u64..100, count in 1_usize..100,
    ) {
        let rate = Rate::from_mbps(mbps);
        let config = FairQueuingConfig { max_rate: Some(rate), ..Default::default() };
        for (sent, time) in (1_u64..).zip(departures(config, count)) {
            let bytes = sent * 1514;
            let allowed = rate.bytes_in(Span::from_nanos(time)).get() + 3028 + 15_140;
            proptest::prop_assert!(bytes <= allowed + 1, "{bytes} {allowed}");
        }
    }
}

#[test]
fn flows_share_a_queue_when_their_hashes_collide() {
    let mut queue = FairQueuing::new(FairQueuingConfig { buckets: 1, ..FairQueuingConfig::default() }, 0);
    fill(&mut queue, 1, 12);
    fill(&mut queue, 2, 3);
    assert_eq!(drain(&mut queue), [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2]);
}
