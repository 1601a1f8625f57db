use super::*;
use crate::queue::testing::Box1;

fn red(config: RedConfig) -> Red<Box1> {
    Red::new(config, 1)
}

/// A queue of that many packets, however they got there.
fn standing(config: RedConfig, packets: usize) -> Red<Box1> {
    let mut queue = red(config);
    for _ in 0..packets {
        queue.fifo.push(Box1::new(0, 1000), Time::ZERO);
    }
    queue.empty_since = None;
    queue
}

#[test]
fn the_average_of_a_constant_queue_of_10_follows_the_exponential() {
    let mut queue = standing(RedConfig::default(), 10);
    let expected = [(1, 0.0200), (100, 1.8143), (346, 4.9977), (500, 6.3249), (1000, 8.6494)];
    let mut arrivals = 0;
    for (after, average) in expected {
        while arrivals < after {
            queue.average_in(Time::ZERO);
            arrivals += 1;
        }
        assert!((queue.average - average).abs() < 5e-5, "{after}: {}", queue.average);
    }
}

#[test]
fn while_the_queue_is_empty_the_average_falls_as_if_small_packets_came() {
    let config = RedConfig { packet_time: Span::from_millis(1), ..RedConfig::default() };
    let mut queue = red(config);
    queue.average = 8.0;
    queue.empty_since = Some(Time::ZERO);
    queue.average_in(Time::ZERO + Span::from_millis(100));
    let mut expected = 8.0;
    for _ in 0..=100 {
        expected *= 0.998;
    }
    assert!((queue.average - expected).abs() < 1e-12);
}

/// Distances between hits at a constant average of 10, half-way between the thresholds.
fn gaps(count: usize) -> Vec<u64> {
    let mut queue = red(RedConfig::default());
    queue.average = 10.0;
    let mut gaps = Vec::new();
    let mut gap = 0;
    while gaps.len() < count {
        gap += 1;
        if queue.hits(1000) {
            gaps.push(gap);
            gap = 0;
        }
    }
    gaps
}

/// The published pseudocode counts from 1 after a hit, so that gaps are 1 ..= 1/p - 1, with a mean
/// of 50 (the uniform distribution on 1 ..= 1/p that the text derives has 50.5).
#[test]
fn gaps_between_hits_are_uniform_and_half_as_long_as_independent_ones() {
    let gaps = gaps(20_001);
    // The first gap begins in the middle of nothing.
    let gaps = &gaps[1..];
    let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
    assert!((mean - 50.0).abs() < 0.8, "{mean}");
    let mut bins = [0_u32; 9];
    for gap in gaps {
        assert!((1..=99).contains(gap));
        bins[(*gap as usize - 1) / 11] += 1;
    }
    let expected = gaps.len() as f64 / 9.0;
    let chi_square: f64 = bins.iter().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum();
    // 8 degrees of freedom, 0.1 %.
    assert!(chi_square < 26.1, "{chi_square} {bins:?}");
}

#[test]
fn the_probability_half_way_is_half_of_the_largest_and_gentle_red_rises_to_1_at_twice_max() {
    let mut queue = red(RedConfig::default());
    queue.average = 10.0;
    assert!((queue.base_probability() - 0.01).abs() < 1e-15);
    queue.average = 20.0;
    assert!((queue.base_probability() - 1.0).abs() < 1e-15);
    queue.config.gentle = true;
    assert!((queue.base_probability() - 0.3467).abs() < 5e-5);
    queue.average = 30.0;
    assert!((queue.base_probability() - 1.0).abs() < 1e-15);
}

/// Floyd and Jacobson 1993, figure 2: from an average of `max` on every arrival is hit.
#[test]
fn from_max_on_every_arrival_is_hit_unless_red_is_gentle() {
    for (average, gentle, all) in [(15.0, false, true), (14.9, false, false), (15.0, true, false)] {
        let mut queue = red(RedConfig { gentle, ..RedConfig::default() });
        queue.average = average;
        assert_eq!((0..100).all(|_| queue.hits(1000)), all, "{average} {gentle}");
    }
}

#[test]
fn in_byte_mode_a_small_packet_is_hit_as_rarely_as_it_is_small() {
    let share = |bytes| {
        let mut queue = red(RedConfig { byte_mode: Some(1000), ..RedConfig::default() });
        queue.average = 10.0;
        (0..100_000).filter(|_| queue.hits(bytes)).count()
    };
    let (large, small) = (share(1000), share(100));
    assert!((9..12).contains(&(large / small)), "{large} {small}");
}

#[test]
fn adaption_steps_up_from_002_and_down_from_01() {
    let adaptive = RedConfig { adaptive: Some(RedAdaption::default()), ..RedConfig::default() };
    let steps = |average: f64, from: f64, count: u64| -> Vec<f64> {
        let mut queue = red(RedConfig { max_probability: from, ..adaptive });
        (queue.average, queue.empty_since) = (average, None);
        let step = |n| {
            queue.adapt(Time::ZERO + Span::from_millis(500 * n));
            (queue.max_probability * 1e5).round() / 1e5
        };
        (1..=count).map(step).collect()
    };
    assert_eq!(steps(12.0, 0.02, 5), [0.025, 0.03125, 0.03906, 0.04883, 0.05883]);
    assert_eq!(steps(8.0, 0.1, 3), [0.09, 0.081, 0.0729]);
    assert_eq!(steps(10.0, 0.1, 3), [0.1; 3], "inside the band");
}

#[test]
fn steps_that_nobody_watched_are_caught_up_with() {
    let adaptive = RedConfig { adaptive: Some(RedAdaption::default()), ..RedConfig::default() };
    let (mut often, mut once) = (red(adaptive), red(adaptive));
    for (empty_since, packet_time) in [(None, 1), (Some(Time::ZERO), 1), (Some(Time::ZERO), 5_000)] {
        for queue in [&mut often, &mut once] {
            *queue = red(RedConfig { packet_time: Span::from_millis(packet_time), ..adaptive });
            (queue.average, queue.empty_since) = (13.0, empty_since);
        }
        for n in 1..=100 {
            often.adapt(Time::ZERO + Span::from_millis(500 * n));
        }
        once.adapt(Time::ZERO + Span::from_secs(50));
        assert_eq!((often.max_probability, often.adapt_next), (once.max_probability, once.adapt_next));
        once.adapt(Time::NEVER);
    }
}

#[test]
fn in_a_pause_the_probability_falls_as_the_average_does() {
    let config = RedConfig { adaptive: Some(RedAdaption::default()), max_probability: 0.1, ..RedConfig::default() };
    let mut queue = red(config);
    queue.average = 100.0;
    queue.adapt(Time::ZERO + Span::from_secs(20));
    assert!(queue.max_probability <= 0.01, "{}", queue.max_probability);
}

#[test]
fn adaptive_red_chooses_its_constants_for_10_mbit() {
    let config = RedConfig::adaptive(Rate::from_mbps(10), Bytes::new(1000), Span::from_millis(5));
    assert!((config.weight - 0.000_799_68).abs() < 5e-9, "{}", config.weight);
    assert_eq!((config.min, config.max, config.gentle), (5.0, 15.0, true));
    assert_eq!(config.validate(), Ok(()));
}

#[test]
fn adaptive_red_at_100_mbit_keeps_half_of_what_makes_up_the_delay() {
    let config = RedConfig::adaptive(Rate::from_mbps(100), Bytes::new(1500), Span::from_millis(5));
    // 5 ms are 41.67 packets of 120 us.
    assert!((config.min - 125.0 / 6.0).abs() < 1e-9, "{}", config.min);
    assert!((config.max - 62.5).abs() < 1e-9, "{}", config.max);
}

#[test]
fn a_capable_packet_that_is_hit_is_marked_with_ecn_and_dropped_without() {
    for (ecn, expected) in [(true, (1, vec![])), (false, (0, vec![DropReason::Early]))] {
        let mut queue = standing(RedConfig { ecn, ..RedConfig::default() }, 10);
        queue.average = 100.0;
        let mut drops = vec![];
        queue.enqueue(Time::ZERO, Box1::ect(0, 1000), &mut |_, reason| drops.push(reason));
        assert_eq!((queue.marked(), drops), expected);
    }
}

/// The average as the paper defines it, over a copy of the queue's length: an arrival averages the
/// length it finds, after as many lengths of 0 as small packets could have been sent since the
/// queue became empty.
#[test]
fn the_average_is_that_of_the_lengths_that_arrivals_and_absent_small_packets_find() {
    let config = RedConfig { weight: 0.05, limit: 7, packet_time: Span::from_micros(300), ..RedConfig::default() };
    let mut queue = red(config);
    let random = &mut flowstart_random::stream(5);
    let (mut average, mut length, mut empty_since) = (0.0_f64, 0_u64, Some(0_u64));
    let (mut now, mut full) = (0_u64, 0);
    for _ in 0..20_000 {
        now += flowstart_random::below(random, 1_000_000) * flowstart_random::below(random, 3);
        if flowstart_random::below(random, 100) < 53 {
            if let Some(since) = empty_since.take() {
                for _ in 0..(now - since) / 300_000 {
                    average *= 0.95;
                }
            }
            average = 0.95 * average + 0.05 * length as f64;
            let mut reason = None;
            queue.enqueue(Time::from_nanos(now), Box1::new(0, 1000), &mut |_, why| reason = Some(why));
            if length == 7 && reason != Some(DropReason::Early) {
                assert_eq!(reason, Some(DropReason::Full));
                full += 1;
            }
            length += u64::from(reason.is_none());
        } else {
            let left = matches!(queue.dequeue(Time::from_nanos(now), &mut |_, _| panic!()), Dequeue::Packet(..));
            assert_eq!(left, length > 0);
            length -= u64::from(left);
            if !left {
                empty_since = empty_since.or(Some(now));
            }
        }
        assert_eq!((queue.packets(), queue.heeds_emptiness()), (length, empty_since.is_none()));
        assert!((queue.average - average).abs() < 1e-9, "{} {average}", queue.average);
    }
    assert!(full > 100, "{full}");
}
