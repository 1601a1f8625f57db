use super::*;
use crate::queue::testing::Box1;

fn dual(config: DualPi2Config) -> DualPi2<Box1> {
    DualPi2::new(config, 1)
}

fn l4s(flow: u64, bytes: u32) -> Box1 {
    Box1::with_ecn(flow, bytes, Ecn::Ect1)
}

#[test]
fn the_base_probability_over_ten_updates_to_the_last_unit() {
    let mut controller = Controller { probability: 0, last_delay: Span::ZERO };
    let delays = [20, 20, 20, 20, 20, 15, 15, 10, 10, 10];
    let expected =
        [0.064_756, 0.065_556, 0.066_357, 0.067_157, 0.067_957, 0.051_969, 0.051_969, 0.035_179, 0.034_379, 0.033_579];
    for (index, (delay, expected)) in delays.into_iter().zip(expected).enumerate() {
        controller.update(&DualPi2Config::default(), Span::from_millis(delay));
        let probability = controller.probability as f64 / ONE as f64;
        assert!((probability - expected).abs() < 6e-7, "{index}: {probability}");
        if index == 0 {
            assert_eq!(controller.probability, 278_125_000);
        }
        if index == 1 {
            assert_eq!(controller.probability, 281_562_500);
        }
    }
}

/// Without drops on overload no L4S packet can be marked more often than always: the base
/// probability times the coupling ends at 1 (RFC 9332 section 4.1).
#[test]
fn the_base_probability_ends_at_one_or_where_all_l4s_packets_are_marked() {
    for (drop_on_overload, times) in [(true, 1), (false, 2)] {
        let config = DualPi2Config { drop_on_overload, coupling: 2, ..DualPi2Config::default() };
        let mut controller = Controller { probability: 0, last_delay: Span::ZERO };
        for second in 1..100 {
            controller.update(&config, Span::from_secs(second));
        }
        assert!((ONE - times..=ONE).contains(&(controller.probability * times)), "{}", controller.probability);
    }
}

#[test]
fn gains_are_scaled_as_linux_does() {
    assert_eq!((DualPi2Config::gain(41), DualPi2Config::gain(819)), (44, 879));
}

#[test]
fn nine_low_latency_packets_leave_for_one_classic_while_both_wait() {
    let mut queue = dual(DualPi2Config::default());
    for _ in 0..60 {
        queue.enqueue(Time::ZERO, l4s(1, 1500), &mut |_, _| panic!());
        queue.enqueue(Time::ZERO, Box1::new(0, 1500), &mut |_, _| panic!());
    }
    let mut order = Vec::new();
    for _ in 0..60 {
        let Dequeue::Packet(packet, _) = queue.dequeue(Time::ZERO, &mut |_, _| panic!()) else { panic!() };
        order.push(packet.flow());
    }
    for round in order.chunks(10) {
        assert_eq!(round, [1, 1, 1, 1, 1, 1, 1, 1, 1, 0]);
    }
}

/// Shares of classic packets hit and low-latency packets marked at a base probability; a backlog
/// stands behind.
fn shares(probability: u64, classic: Box1) -> (f64, f64, f64) {
    let count = 200_000;
    let mut queue = dual(DualPi2Config::default());
    for _ in 0..10 {
        queue.classic.push(Box1::new(0, 1500), Time::ZERO);
    }
    queue.controller.probability = probability;
    let (mut dropped, mut marked, mut l_marked) = (0, 0, 0);
    for _ in 0..count {
        let mut packet = classic;
        dropped += u32::from(queue.drops_classic(&mut packet));
        marked += u32::from(packet.ecn() == Ecn::Ce);
        let mut packet = l4s(1, 1500);
        queue.drops_low_latency(&mut packet);
        l_marked += u32::from(packet.ecn() == Ecn::Ce);
    }
    let share = |n| f64::from(n) / f64::from(count);
    (share(dropped), share(marked), share(l_marked))
}

#[test]
fn classic_packets_are_hit_with_the_square_and_l4s_packets_with_twice_the_base_probability() {
    let base = 0.2;
    let probability = (base * ONE as f64) as u64;
    let (dropped, marked, l_marked) = shares(probability, Box1::new(0, 1500));
    assert!((dropped - base * base).abs() < 0.002 && marked == 0.0, "{dropped}");
    assert!((l_marked - 2.0 * base).abs() < 0.005, "{l_marked}");
    let (dropped, marked, _) = shares(probability, Box1::ect(0, 1500));
    assert!((marked - base * base).abs() < 0.002 && dropped == 0.0, "{marked}");
}

#[test]
fn in_overload_classic_packets_are_dropped_capable_or_not_and_all_l4s_packets_marked_or_dropped() {
    let base = 0.6;
    let (dropped, marked, l_marked) = shares((base * ONE as f64) as u64, Box1::ect(0, 1500));
    assert!((dropped - base * base).abs() < 0.005 && marked == 0.0, "{dropped}");
    assert!((l_marked - (1.0 - base * base)).abs() < 0.005, "{l_marked}");
}

#[test]
fn an_l4s_packet_is_marked_when_it_waited_strictly_longer_than_the_step_even_alone() {
    for (waited, ecn) in [(1_000_000, Ecn::Ect1), (1_000_001, Ecn::Ce)] {
        let mut queue = dual(DualPi2Config::default());
        queue.enqueue(Time::ZERO, l4s(0, 1500), &mut |_, _| panic!());
        let next = queue.dequeue(Time::from_nanos(waited), &mut |_, _| panic!());
        assert!(matches!(next, Dequeue::Packet(packet, _) if packet.ecn() == ecn));
    }
}

#[test]
fn whether_the_step_applies_is_settled_on_arrival() {
    let mut queue = dual(DualPi2Config { step_from_packets: 1, ..DualPi2Config::default() });
    queue.enqueue(Time::ZERO, l4s(0, 1500), &mut |_, _| panic!());
    queue.enqueue(Time::ZERO, l4s(0, 1500), &mut |_, _| panic!());
    let mut next = || match queue.dequeue(Time::from_nanos(2_000_000), &mut |_, _| panic!()) {
        Dequeue::Packet(packet, _) => packet.ecn(),
        _ => panic!(),
    };
    assert_eq!([next(), next()], [Ecn::Ect1, Ecn::Ce]);
}

#[test]
fn updates_that_nobody_watched_are_caught_up_with() {
    let (mut often, mut once) = (dual(DualPi2Config::default()), dual(DualPi2Config::default()));
    for queue in [&mut often, &mut once] {
        queue.enqueue(Time::ZERO, Box1::new(0, 1500), &mut |_, _| panic!());
    }
    for n in 0..100 {
        often.update(Time::ZERO + Span::from_millis(n));
    }
    once.update(Time::ZERO + Span::from_millis(99));
    assert_eq!(often.controller, once.controller);
    assert!(once.controller.probability > 0);
}

/// The order in which `count` packets leave: true for low-latency ones.
fn order(queue: &mut DualPi2<Box1>, count: usize) -> Vec<bool> {
    let next = || match queue.dequeue(Time::ZERO, &mut |_, _| panic!()) {
        Dequeue::Packet(packet, _) => packet.flow() == 1,
        _ => panic!(),
    };
    std::iter::repeat_with(next).take(count).collect()
}

#[test]
fn who_was_alone_at_the_link_owes_nothing_for_it() {
    for alone in [l4s(1, 1500), Box1::new(0, 1500)] {
        let mut queue = dual(DualPi2Config::default());
        for _ in 0..90 {
            queue.enqueue(Time::ZERO, alone, &mut |_, _| panic!());
        }
        order(&mut queue, 30);
        let other = if alone.flow() == 1 { Box1::new(0, 1500) } else { l4s(1, 1500) };
        for _ in 0..60 {
            queue.enqueue(Time::ZERO, other, &mut |_, _| panic!());
        }
        for round in order(&mut queue, 40).chunks(10) {
            assert_eq!(round.iter().filter(|low_latency| !**low_latency).count(), 1, "{alone:?} {round:?}");
        }
    }
}

#[test]
fn a_share_of_two_fifths_is_kept_from_the_first_packet_on() {
    let config = DualPi2Config { classic_protection: 40, packet: 1500, overhead: 0, ..DualPi2Config::default() };
    let mut queue = dual(config);
    for _ in 0..10 {
        queue.enqueue(Time::ZERO, l4s(1, 1500), &mut |_, _| panic!());
        queue.enqueue(Time::ZERO, Box1::new(0, 1500), &mut |_, _| panic!());
    }
    // 1500 B * (2 * 40 - 100) = -30 000 at first; a low-latency packet is 60 000, a classic one
    // less 90 000.
    assert_eq!(order(&mut queue, 5), [true, false, true, true, false]);
}

#[test]
fn the_share_of_classic_traffic_is_kept_in_bytes_whatever_the_packets() {
    let config = DualPi2Config { classic_protection: 25, overhead: 0, ..DualPi2Config::default() };
    let mut queue = dual(config);
    for _ in 0..400 {
        queue.enqueue(Time::ZERO, l4s(1, 500), &mut |_, _| panic!());
        queue.enqueue(Time::ZERO, Box1::new(0, 1500), &mut |_, _| panic!());
    }
    let low_latency = order(&mut queue, 300).iter().filter(|low_latency| **low_latency).count();
    // 9 packets of 500 bytes for one of 1500: three quarters of the bytes.
    assert!(low_latency.abs_diff(270) <= 9, "{low_latency}");
}

/// RFC 9332 appendix A.1, in floating point, over a copy of both queues: what the controller should
/// see and do.
#[derive(Default)]
struct Model {
    queues: [std::collections::VecDeque<Time>; 2],
    probability: f64,
    last_delay: f64,
    updates: u64,
}

impl Model {
    const INTERVAL: u64 = 16_000_000;

    /// Makes the updates that are due; each looks at the older of the two heads.
    fn update(&mut self, now: Time) {
        while (self.updates + 1) * Self::INTERVAL <= now.as_nanos() {
            self.updates += 1;
            let tick = self.updates as f64 * 0.016;
            let waited = |queue: &std::collections::VecDeque<Time>| queue.front().map(|at| tick - at.as_secs_f64());
            let delay = self.queues.iter().filter_map(waited).fold(0.0, f64::max);
            // alpha 0.16 Hz and beta 3.2 Hz as Linux rounds them: 44 and 879 in 64ths of 2^-32 per
            // ns.
            let unit = 1e9 / (64.0 * ONE as f64);
            let change = 44.0 * unit * (delay - 0.015) + 879.0 * unit * (delay - self.last_delay);
            self.probability = (self.probability + change).clamp(0.0, 1.0);
            self.last_delay = delay;
        }
    }

    fn leave(&mut self, packet: &Box1) {
        self.queues[usize::from(packet.ecn() == Ecn::Ect1 || packet.flow() == 1)].pop_front();
    }
}

proptest::proptest! {
    #[test]
    fn the_base_probability_follows_the_longer_of_the_two_delays(
        steps in proptest::collection::vec((0_u64..6_000_000, 0_u8..4), 1..300),
        seed: u64,
    ) {
        let mut queue = DualPi2::<Box1>::new(DualPi2Config::default(), seed);
        let mut model = Model::default();
        let mut now = Time::ZERO;
        for (gap, action) in steps {
            now += Span::from_nanos(gap);
            model.update(now);
            if action < 3 {
                // Two classic arrivals for one that is not.
                let low_latency = action == 2;
                let packet = if low_latency { l4s(1, 1500) } else { Box1::new(0, 1500) };
                model.queues[usize::from(low_latency)].push_back(now);
                queue.enqueue(now, packet, &mut |_, _| panic!("room for 10 000"));
            } else {
                let mut gone = Vec::new();
                if let Dequeue::Packet(packet, _) = queue.dequeue(now, &mut |packet, _| gone.push(packet)) {
                    gone.push(packet);
                }
                gone.iter().for_each(|packet| model.leave(packet));
            }
            let probability = queue.controller.probability as f64 / ONE as f64;
            proptest::prop_assert!((probability - model.probability).abs() < 1e-6 , "{} {}", probability, model.probability);
        }
    }
}

/// A link of one packet per millisecond, offered twice as much by loads that yield within some 500
/// packets: to the root of their share of hits if they are classic, to the share itself if they are
/// L4S. The mean delay of classic packets and of L4S packets in ms, after a minute.
fn delays_under_yielding_load(share_of_l4s: f64) -> (f64, f64) {
    const MEMORY: f64 = 0.002;
    let mut queue = dual(DualPi2Config::default());
    let (mut hits, mut budget) = ([0.0_f64; 2], [0.0_f64; 2]);
    let (mut sums, mut counts) = ([0.0; 2], [0.0; 2]);
    for tick in 0..180_000_u64 {
        let now = Time::from_nanos(tick * 1_000_000);
        let loads = [1.0 - share_of_l4s, share_of_l4s];
        let pressures = [2.0 * hits[0].sqrt(), hits[1]];
        for kind in 0..2 {
            budget[kind] += loads[kind] * 2.0 / (1.0 + 10.0 * pressures[kind]);
            while budget[kind] >= 1.0 {
                budget[kind] -= 1.0;
                let packet = if kind == 1 { l4s(1, 1500) } else { Box1::new(0, 1500) };
                queue.enqueue(now, packet, &mut |_, _| panic!("room for 10 000"));
            }
        }
        let next = queue.dequeue(now, &mut |packet, _| hits[packet.flow() as usize] += MEMORY);
        if let Dequeue::Packet(packet, arrived) = next {
            let kind = packet.flow() as usize;
            let marked = f64::from(u8::from(packet.ecn() == Ecn::Ce));
            hits[kind] += MEMORY * (marked - hits[kind]);
            if tick > 60_000 {
                sums[kind] += now.since(arrived).as_millis_f64();
                counts[kind] += 1.0;
            }
        }
    }
    (sums[0] / counts[0], sums[1] / counts[1])
}

#[test]
fn against_yielding_loads_the_classic_delay_stays_near_the_target_and_that_of_l4s_far_below() {
    // Near is within a half: the loads here are slower than the round trips that the gains are for.
    let near = 7.5..22.5;
    let (classic, _) = delays_under_yielding_load(0.0);
    assert!(near.contains(&classic), "{classic}");
    let (classic, l4s) = delays_under_yielding_load(0.5);
    assert!(near.contains(&classic) && l4s < classic / 3.0, "{classic} {l4s}");
}
