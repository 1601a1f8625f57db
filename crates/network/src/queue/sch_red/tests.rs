use super::*;
use crate::queue::testing::Box1;

fn red(config: SchRedConfig) -> SchRed<Box1> {
    SchRed::new(config, 1)
}

#[test]
fn the_average_of_a_constant_backlog_of_15000_bytes_follows_the_shift() {
    let mut queue = red(SchRedConfig { overhead: 0, ..SchRedConfig::default() });
    for _ in 0..10 {
        queue.fifo.push(Box1::new(0, 1500), Time::ZERO);
    }
    let mut arrivals = 0;
    for (after, average) in [(1, 29), (100, 2663), (355, 7506), (500, 9356), (1000, 12_877)] {
        while arrivals < after {
            queue.average_in(Time::ZERO);
            arrivals += 1;
        }
        assert_eq!(queue.average >> 9, average, "{after}");
    }
}

#[test]
fn gaps_between_hits_are_uniform_and_half_as_long_as_independent_ones() {
    let mut queue = red(SchRedConfig::default());
    queue.average = 60_000 << 9;
    let mut gaps = Vec::new();
    let mut gap = 0_u32;
    while gaps.len() < 20_001 {
        gap += 1;
        match queue.judge() {
            Decision::Hit => gaps.push(std::mem::take(&mut gap)),
            Decision::Spare => {}
            Decision::HitForCertain => panic!(),
        }
    }
    let gaps = &gaps[1..];
    let mut bins = [0_u32; 10];
    for gap in gaps {
        assert!((1..=100).contains(gap), "{gap}");
        bins[(*gap as usize - 1) / 10] += 1;
    }
    let expected = gaps.len() as f64 / 10.0;
    let chi_square: f64 = bins.iter().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum();
    // 9 degrees of freedom, 0.1 %.
    assert!(chi_square < 27.9, "{chi_square} {bins:?}");
}

#[test]
fn above_max_capable_packets_are_marked_others_dropped_unless_configured_otherwise() {
    let base = SchRedConfig { ecn: true, ..SchRedConfig::default() };
    let outcome = |config, packet| {
        let mut queue = red(config);
        queue.average = 200_000 << 9;
        let mut drops = 0;
        queue.enqueue(Time::ZERO, packet, &mut |_, _| drops += 1);
        (drops, queue.marked())
    };
    let (capable, other) = (Box1::ect(0, 1500), Box1::new(0, 1500));
    assert_eq!((outcome(base, capable), outcome(base, other)), ((0, 1), (1, 0)));
    let hard = SchRedConfig { hard_drop: true, ..base };
    assert_eq!((outcome(hard, capable), outcome(hard, other)), ((1, 0), (1, 0)));
    let kind = SchRedConfig { no_drop: true, ..base };
    assert_eq!((outcome(kind, capable), outcome(kind, other)), ((0, 1), (0, 0)));
}

#[test]
fn the_average_falls_while_the_queue_is_idle() {
    let mut queue = red(SchRedConfig::default());
    queue.average = 50_000 << 9;
    queue.dequeue(Time::ZERO, &mut |_, _| {});
    // 512 packet times: by a factor of e.
    queue.average_in(Time::ZERO + Span::from_micros(800) * 512);
    let factor = 50_000.0 / (queue.average >> 9) as f64;
    assert!((factor - std::f64::consts::E).abs() < 0.01, "{factor}");
}

#[test]
fn adaption_moves_the_probability_towards_the_band() {
    let mut queue = red(SchRedConfig { adaptive: true, ..SchRedConfig::default() });
    queue.average = 80_000 << 9;
    queue.adapt(Time::ZERO + Span::from_secs(1));
    assert!((queue.probability as f64 / ONE as f64 - 0.031_25).abs() < 1e-6);
    queue.average = 40_000 << 9;
    queue.adapt(Time::ZERO + Span::from_millis(1500));
    assert!((queue.probability as f64 / ONE as f64 - 0.028_125).abs() < 1e-6);
    queue.adapt(Time::NEVER);
    assert!(queue.probability < ADAPT_LOWEST);
}

#[test]
fn in_a_pause_the_probability_falls_as_the_average_does() {
    let full = || {
        let mut queue = red(SchRedConfig { adaptive: true, ..SchRedConfig::default() });
        queue.average = 80_000 << 9;
        queue.dequeue(Time::ZERO, &mut |_, _| {});
        queue
    };
    let (mut often, mut once) = (full(), full());
    for n in 1..=100 {
        often.adapt(Time::ZERO + Span::from_millis(200 * n));
    }
    once.adapt(Time::ZERO + Span::from_secs(20));
    assert_eq!((often.probability, often.adapt_next), (once.probability, once.adapt_next));
    assert!(once.probability < ADAPT_LOWEST);
    once.adapt(Time::NEVER);
}

/// Linux's average in words: an arrival takes a 2^-Wlog share of the backlog in bytes that it
/// finds. A dequeue that finds nothing begins an idle time, and later ones do not begin it anew;
/// the arrival that ends it lets the average decay once per packet time instead of taking the
/// backlog in.
#[test]
fn idle_time_counts_from_the_first_dequeue_that_finds_nothing_and_replaces_the_average() {
    let config = SchRedConfig { weight_log: 4, packet_time: Span::from_micros(300), ..SchRedConfig::default() };
    let mut queue = red(config);
    let random = &mut flowstart_random::stream(5);
    let (mut average, mut lengths, mut idle_since) = (0_u64, std::collections::VecDeque::new(), None);
    let (mut now, mut idle_times) = (0_u64, 0);
    for _ in 0..20_000 {
        now += flowstart_random::below(random, 1_000_000) * flowstart_random::below(random, 3);
        if flowstart_random::below(random, 100) < 51 {
            let bytes = 40 + flowstart_random::below(random, 1460) as u32;
            if let Some(since) = idle_since.take() {
                let decay = (15.0_f64 / 16.0).powf(((now - since) / 300_000) as f64);
                let expected = average as f64 * decay;
                queue.enqueue(Time::from_nanos(now), Box1::new(0, bytes), &mut |_, _| panic!());
                assert!(
                    (queue.average as f64 - expected).abs() < 1.0 + 1e-9 * expected,
                    "{} {expected}",
                    queue.average
                );
                average = queue.average;
                idle_times += 1;
            } else {
                let backlog: u64 = lengths.iter().sum();
                average = average - average / 16 + backlog;
                queue.enqueue(Time::from_nanos(now), Box1::new(0, bytes), &mut |_, _| panic!());
            }
            lengths.push_back(u64::from(bytes) + 14);
        } else {
            let left = matches!(queue.dequeue(Time::from_nanos(now), &mut |_, _| panic!()), Dequeue::Packet(..));
            assert_eq!(left, lengths.pop_front().is_some());
            if !left {
                idle_since = idle_since.or(Some(now));
            }
        }
        assert_eq!(queue.average, average);
        if lengths.len() > 12 {
            lengths.clear();
            while queue.dequeue(Time::from_nanos(now), &mut |_, _| panic!()) != Dequeue::Empty {}
            idle_since = Some(now);
        }
    }
    assert!(idle_times > 100, "{idle_times}");
}

#[test]
fn the_limit_is_in_bytes_with_headers_and_exact() {
    let sizes = [1486, 1486, 1000];
    let accepts = |limit| {
        let config = SchRedConfig { limit, min: 1, max: 1_000_000, ..SchRedConfig::default() };
        crate::queue::testing::accepted(&sizes, crate::QueueConfig::SchRed(config))
    };
    assert_eq!(accepts(3000), [true, true, false]);
    assert_eq!(accepts(2999), [true, false, true]);
    assert_eq!(accepts(4014), [true, true, true]);
    assert_eq!(accepts(4013), [true, true, false]);
}
