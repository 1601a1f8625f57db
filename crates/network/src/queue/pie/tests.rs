use super::*;
use crate::queue::testing::Box1;

fn pie(config: PieConfig) -> Pie<Box1> {
    Pie::new(config, 1)
}

#[test]
fn at_a_constant_delay_of_30_ms_the_probability_rises_through_all_gains() {
    let mut state = pie(PieConfig::default()).state;
    let expected = [
        (1, "1.923e-5"),
        (2, "3.387e-5"),
        (3, "4.852e-5"),
        (10, "2.829e-4"),
        (50, "7.373e-3"),
        (100, "4.581e-2"),
        (200, "1.789e-1"),
        (400, "5.539e-1"),
    ];
    let mut updates = 0;
    for (after, probability) in expected {
        while updates < after {
            state.update(&PieConfig::default(), Span::from_millis(30), false);
            updates += 1;
        }
        assert_eq!(format!("{:.3e}", state.probability), probability, "{after}");
    }
}

#[test]
fn at_the_target_the_probability_stays_where_the_first_update_put_it() {
    let mut state = pie(PieConfig::default()).state;
    state.update(&PieConfig::default(), Span::from_millis(15), false);
    assert!((state.probability / 9.155e-6 - 1.0).abs() < 2e-4);
    let first = state.probability;
    for _ in 0..10 {
        state.update(&PieConfig::default(), Span::from_millis(15), false);
    }
    assert!((state.probability - first).abs() < 1e-15);
}

/// Distances between hits at a constant probability and a long delay.
fn gaps(probability: f64, count: usize) -> Vec<u32> {
    let mut queue = pie(PieConfig::default());
    for _ in 0..10 {
        queue.fifo.push(Box1::new(0, 1500), Time::ZERO);
    }
    queue.state.probability = probability;
    queue.state.burst_allowance = Span::ZERO;
    queue.delay = Span::from_millis(20);
    let mut gaps = Vec::new();
    let mut gap = 0;
    while gaps.len() < count {
        gap += 1;
        if queue.hits() {
            gaps.push(std::mem::take(&mut gap));
        }
    }
    gaps
}

#[test]
fn hits_keep_their_distance_and_come_about_half_as_often_as_the_probability_says() {
    for (probability, mean) in [(0.01, 183.95), (0.1, 18.0)] {
        let gaps = gaps(probability, 20_000);
        let least = (0.85_f64 / probability - 1e-9).ceil() as u32;
        let most = (8.5_f64 / probability + 1e-9).ceil() as u32 + 1;
        assert!(gaps.iter().all(|gap| (least..=most).contains(gap)), "{probability}");
        let measured = f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64;
        assert!((measured / mean - 1.0).abs() < 0.02, "{probability}: {measured}");
    }
}

#[test]
fn a_burst_after_idle_time_passes_until_the_allowance_is_used_up() {
    let mut queue = pie(PieConfig::default());
    queue.state.probability = 1.0;
    queue.delay = Span::from_millis(30);
    let mut first_drop = None;
    for tick in 0..400 {
        let now = Time::from_nanos(tick * 1_000_000);
        for _ in 0..2 {
            queue.enqueue(now, Box1::new(0, 1500), &mut |_, _| first_drop = first_drop.or(Some(tick)));
        }
        queue.dequeue(now, &mut |_, _| panic!());
    }
    assert_eq!(first_drop, Some(151));
}

/// RFC 8033 section 4.4: the allowance comes back when the probability is 0 and both delays are
/// below half of the target.
#[test]
fn the_burst_allowance_comes_back_only_below_half_of_the_target() {
    let config = PieConfig::default();
    let half = config.target / 2;
    let less = Span::from_nanos(half.as_nanos() - 1);
    for (before, now, back) in [(less, less, true), (half, less, false), (less, half, false)] {
        let mut state = pie(config).state;
        (state.burst_allowance, state.old_delay) = (Span::ZERO, before);
        state.update(&config, now, false);
        assert_eq!(state.probability, 0.0);
        assert_eq!(state.burst_allowance == config.burst_allowance, back, "{before} {now}");
    }
}

/// RFC 8033 section 5.2: 2 % more at every update while the delay is longer than 250 ms.
#[test]
fn a_delay_of_more_than_250_ms_adds_2_per_cent() {
    let risen = |delay: Span| {
        let mut state = pie(PieConfig::default()).state;
        (state.probability, state.old_delay) = (0.05, delay);
        state.update(&PieConfig::default(), delay, false);
        state.probability
    };
    let more = risen(Span::from_nanos(250_000_001)) - risen(Span::from_millis(250));
    assert!((more - 0.02).abs() < 1e-6, "{more}");
}

#[test]
fn capable_packets_are_marked_up_to_a_tenth_and_dropped_above() {
    for (probability, marks) in [(0.1, true), (0.2, false)] {
        let mut queue = pie(PieConfig { ecn: true, ..PieConfig::default() });
        for _ in 0..10 {
            queue.fifo.push(Box1::new(0, 1500), Time::ZERO);
        }
        (queue.state.probability, queue.delay) = (probability, Span::from_millis(20));
        (queue.state.burst_allowance, queue.state.accumulated) = (Span::ZERO, 9.0);
        let mut drops = 0;
        queue.enqueue(Time::ZERO, Box1::ect(0, 1500), &mut |_, _| drops += 1);
        assert_eq!((queue.marked() == 1, drops == 0), (marks, marks));
    }
}

#[test]
fn arrivals_are_spared_only_while_both_the_delay_and_the_probability_are_small() {
    for (delay, probability, spared) in [(5, 0.1, true), (5, 0.3, false), (20, 0.1, false), (20, 0.3, false)] {
        let mut queue = pie(PieConfig::default());
        for _ in 0..10 {
            queue.fifo.push(Box1::new(0, 1500), Time::ZERO);
        }
        (queue.state.probability, queue.delay) = (probability, Span::from_millis(delay));
        (queue.state.burst_allowance, queue.state.accumulated) = (Span::ZERO, 9.0);
        assert_eq!(queue.hits(), !spared, "{delay} ms, {probability}");
    }
}

#[test]
fn updates_that_nobody_watched_are_caught_up_with() {
    let (mut often, mut once) = (pie(PieConfig::default()), pie(PieConfig::default()));
    for queue in [&mut often, &mut once] {
        queue.state.probability = 0.5;
        queue.state.burst_allowance = Span::ZERO;
    }
    for n in 0..20_000 {
        often.update(Time::ZERO + Span::from_millis(5 * n));
    }
    once.update(Time::ZERO + Span::from_millis(5 * 19_999));
    assert_eq!(often.state, once.state);
    assert_eq!(once.state.burst_allowance, Span::from_millis(150), "restored after a long rest");
}

/// RFC 8033's aim: against a load that yields to losses the delay settles at the target. The load
/// here sends 1 packet per millisecond divided by 1 + 100 times its recent share of losses.
#[test]
fn against_a_yielding_load_the_delay_settles_at_the_target() {
    let mut queue = pie(PieConfig::default());
    let (mut share, mut budget) = (0.0_f64, 0.0_f64);
    let (mut sum, mut count) = (Span::ZERO, 0_u64);
    for tick in 0..600_000_u64 {
        let now = Time::from_nanos(tick * 1_000_000);
        budget += 4.0 / (1.0 + 100.0 * share);
        while budget >= 1.0 {
            budget -= 1.0;
            let mut lost = 0.0;
            queue.enqueue(now, Box1::new(0, 1500), &mut |_, _| lost = 1.0);
            share += 0.01 * (lost - share);
        }
        if let Dequeue::Packet(_, arrived) = queue.dequeue(now, &mut |_, _| panic!())
            && tick > 100_000
        {
            sum += now.since(arrived);
            count += 1;
        }
    }
    let mean = (sum / count).as_millis_f64();
    assert!((mean - 15.0).abs() < 3.0, "{mean}");
}

/// Linux `pie_calculate_probability`: a delay of 0 with something stored says little.
#[test]
fn the_probability_decays_only_while_nothing_is_stored() {
    let decayed = |empty| {
        let mut state = Controlled { probability: 0.5, ..pie(PieConfig { alpha: 0.0, ..PieConfig::default() }).state };
        state.update(&PieConfig { alpha: 0.0, ..PieConfig::default() }, Span::ZERO, empty);
        state.probability
    };
    assert_eq!([true, false].map(decayed), [0.5 * 63.0 / 64.0, 0.5]);
}

/// Linux `pie_qdisc_enqueue`: whoever found no room was hit as well.
#[test]
fn a_packet_dropped_for_want_of_room_counts_as_a_hit() {
    let mut queue = pie(PieConfig { limit: 10, ..PieConfig::default() });
    for _ in 0..10 {
        queue.fifo.push(Box1::new(0, 1500), Time::ZERO);
    }
    (queue.state.probability, queue.delay) = (0.5, Span::from_millis(20));
    (queue.state.burst_allowance, queue.state.accumulated) = (Span::ZERO, 8.4);
    queue.enqueue(Time::ZERO, Box1::new(0, 1500), &mut |_, reason| assert_eq!(reason, DropReason::Full));
    assert!(!queue.hits(), "the probabilities add up from zero again");
}
