use super::*;
use crate::Ecn;
use crate::queue::testing::Box1;

/// Runs a link of one packet per 1.2 ms under arrivals every millisecond (120 % load) and tells
/// when packets are dropped.
fn overload(config: CodelConfig, packet: Box1, lasting_ms: u64) -> (Vec<u64>, u64) {
    let mut queue = Codel::new(config);
    let mut drops = Vec::new();
    for tick in 0..lasting_ms * 5 {
        let now = Time::from_nanos(tick * 200_000);
        if tick % 5 == 0 {
            queue.enqueue(now, packet, &mut |_, _| panic!("limit"));
        }
        if tick % 6 == 0 {
            queue.dequeue(now, &mut |_, reason| {
                assert_eq!(reason, DropReason::Early);
                drops.push(now.as_nanos());
            });
        }
    }
    (drops, queue.marked())
}

#[test]
fn under_120_percent_load_the_drops_follow_the_law_to_the_next_dequeue() {
    let config = CodelConfig { limit: 100_000, arithmetic: CodelArithmetic::Rfc8289, ..CodelConfig::default() };
    let (drops, _) = overload(config, Box1::new(0, 1500), 600);
    let expected_ms = [100.0, 170.71, 228.45, 278.45, 323.17, 363.99, 401.79];
    for (drop, expected) in drops[1..].iter().zip(expected_ms) {
        let after = (drop - drops[0]) as f64 / 1e6;
        assert!(after >= expected && after < expected + 1.2, "{after} {expected}");
    }
}

#[test]
fn capable_packets_are_marked_when_others_would_be_dropped() {
    let config = CodelConfig { limit: 100_000, ecn: true, ..CodelConfig::default() };
    let (drops, marks) = overload(config, Box1::ect(0, 1500), 600);
    let (drops_of_others, no_marks) = overload(config, Box1::new(0, 1500), 600);
    assert_eq!((drops.len(), no_marks), (0, 0));
    assert!(marks >= drops_of_others.len() as u64 && marks > 5);
}

#[test]
fn a_burst_shorter_than_an_interval_is_never_dropped() {
    let mut queue = Codel::new(CodelConfig::default());
    for _ in 0..90 {
        queue.enqueue(Time::ZERO, Box1::new(0, 1500), &mut |_, _| panic!());
    }
    for tick in 0..90 {
        let next = queue.dequeue(Time::from_nanos(tick * 1_000_000), &mut |_, _| panic!());
        assert!(matches!(next, Dequeue::Packet(..)));
    }
}

#[test]
fn a_queue_of_one_packet_is_never_dropped_however_long_it_waits() {
    let mut queue = Codel::new(CodelConfig::default());
    for second in 0..100 {
        let now = |n| Time::ZERO + Span::from_secs(n);
        queue.enqueue(now(second), Box1::new(0, 1500), &mut |_, _| panic!());
        assert!(matches!(queue.dequeue(now(second + 1), &mut |_, _| panic!()), Dequeue::Packet(..)));
    }
}

#[test]
fn the_mark_threshold_marks_what_waited_strictly_longer_in_ticks() {
    let config = CodelConfig { mark_threshold: Some(Span::from_nanos(1024 * 1000)), ..CodelConfig::default() };
    for (ticks, ecn) in [(1000, Ecn::Ect0), (1001, Ecn::Ce)] {
        let mut queue = Codel::new(config);
        queue.enqueue(Time::ZERO, Box1::ect(0, 1500), &mut |_, _| panic!());
        let next = queue.dequeue(Time::from_nanos(ticks * 1024), &mut |_, _| panic!());
        assert!(matches!(next, Dequeue::Packet(packet, _) if packet.ecn() == ecn));
    }
}

/// CoDel as RFC 8289 section 5 has it in pseudo-code, with reals for roots, over a copy of the
/// queue.
struct Reference {
    fifo: std::collections::VecDeque<(u64, u64)>,
    first_above: u64,
    drop_next: u64,
    count: u64,
    last_count: u64,
    dropping: bool,
    /// How often a dropping state began at 1, went on, and could have gone on but was too late.
    begun: [u32; 3],
}

impl Reference {
    const TARGET: u64 = 500_000;
    const INTERVAL: u64 = 10_000_000;

    fn law(&self, from: u64) -> u64 {
        from + (Self::INTERVAL as f64 / (self.count as f64).sqrt()) as u64
    }

    /// The next packet, and whether it may be dropped.
    fn pop(&mut self, now: u64) -> (Option<u64>, bool) {
        let Some((serial, arrived)) = self.fifo.pop_front() else {
            self.first_above = 0;
            return (None, false);
        };
        if now - arrived < Self::TARGET || self.fifo.len() * 1500 <= 1514 {
            self.first_above = 0;
            return (Some(serial), false);
        }
        if self.first_above == 0 {
            self.first_above = now + Self::INTERVAL;
            return (Some(serial), false);
        }
        (Some(serial), now >= self.first_above)
    }

    fn dequeue(&mut self, now: u64, drops: &mut Vec<u64>) -> Option<u64> {
        let (mut packet, mut may_drop) = self.pop(now);
        if self.dropping {
            self.dropping = may_drop;
            while self.dropping && now >= self.drop_next {
                drops.extend(packet);
                self.count += 1;
                (packet, may_drop) = self.pop(now);
                if may_drop {
                    self.drop_next = self.law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if may_drop {
            drops.extend(packet);
            (packet, _) = self.pop(now);
            self.dropping = true;
            let delta = self.count - self.last_count;
            let recent = now < self.drop_next + 16 * Self::INTERVAL;
            self.begun[if delta <= 1 {
                0
            } else if recent {
                1
            } else {
                2
            }] += 1;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = self.law(now);
            self.last_count = self.count;
        }
        packet
    }
}

/// Bursts of overload with pauses of all lengths, so that the dropping state is left and entered
/// again sooner and later than 16 intervals after the last drop that was planned.
#[test]
fn packet_by_packet_the_drops_are_those_of_the_pseudo_code() {
    let (target, interval) = (Span::from_nanos(Reference::TARGET), Span::from_nanos(Reference::INTERVAL));
    let config = CodelConfig {
        target,
        interval,
        limit: 1_000_000,
        overhead: 0,
        arithmetic: CodelArithmetic::Rfc8289,
        ..CodelConfig::default()
    };
    let mut queue = Codel::new(config);
    let mut reference = Reference {
        fifo: std::collections::VecDeque::new(),
        first_above: 0,
        drop_next: 0,
        count: 0,
        last_count: 0,
        dropping: false,
        begun: [0; 3],
    };
    let random = &mut flowstart_random::stream(1);
    // A packet takes 0.1 ms; not at multiples of what roots come to.
    let mut now = 1_000_000_007_u64;
    let mut serial = 0;
    for _ in 0..400 {
        let burst = 50 + flowstart_random::below(random, 400);
        let share = 100 + flowstart_random::below(random, 80);
        let pause = flowstart_random::below(random, 3_000);
        let mut credit = 0;
        for step in 0..burst + pause {
            now += 100_000;
            if step < burst {
                credit += share;
                while credit >= 100 {
                    credit -= 100;
                    serial += 1;
                    queue.enqueue(Time::from_nanos(now), Box1::new(serial, 1500), &mut |_, _| panic!("limit"));
                    reference.fifo.push_back((serial, now));
                }
            }
            let (mut drops, mut expected) = (Vec::new(), Vec::new());
            let next = match queue.dequeue(Time::from_nanos(now), &mut |packet, _| drops.push(packet.flow())) {
                Dequeue::Packet(packet, _) => Some(packet.flow()),
                _ => None,
            };
            assert_eq!(next, reference.dequeue(now, &mut expected), "at {now}");
            assert_eq!(drops, expected, "at {now}");
        }
    }
    assert!(reference.begun.iter().all(|times| *times > 10), "{:?}", reference.begun);
}
