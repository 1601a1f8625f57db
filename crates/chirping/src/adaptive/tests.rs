//! Rules of the adaptive schedule one by one.

use alloc::vec::Vec;

use super::super::reading::Point;
use super::*;
use flowstart_control::HystartConfig;
use flowstart_control::testing::ack;

const MIN_RTT: Span = Span::from_millis(20);

fn adaptive() -> Adaptive {
    let mut schedule = Adaptive::new(&AdaptiveChirpingConfig::default(), 1448);
    (schedule.min_rtt, schedule.load) = (MIN_RTT, 1_000_000);
    schedule
}

/// Two round trips of ten ACKs whose RTTs have risen by half, after a chirp that could not be read.
fn risen(schedule: &mut Adaptive) -> Option<Exit> {
    risen_after(schedule, 1)
}

/// The same after so many chirps in a row that could not be read.
fn risen_after(schedule: &mut Adaptive, unclear: u32) -> Option<Exit> {
    schedule.unclear = unclear;
    (1..=21).find_map(|n: u64| {
        let (now, rtt) = (Time::ZERO + MIN_RTT * n / 10, Some(MIN_RTT * 3 / 2));
        let ack = Ack { now, rtt, min_rtt: MIN_RTT, una: n, next: n + 10, in_flight: 10, ..ack(1) };
        schedule.verdict(&ack, false)
    })
}

/// RTTs that rose while nothing could be read leave a new flow to HyStart for good.
#[test]
fn a_new_flow_whose_rtts_rose_unread_gives_up() {
    let mut schedule = adaptive();
    assert_eq!(risen(&mut schedule), None);
    assert!(schedule.gave_up());
}

/// 20 ms hold 16 packets of 1.25 ms: HyStart's least window. A link that was silent makes all RTTs
/// of a few packets longer.
#[test]
fn delays_that_rose_end_a_new_flow_from_sixteen_packets_on_or_where_they_are_marked() {
    let ends = |load: u64, marked| {
        let mut schedule = adaptive();
        (schedule.load, schedule.marked) = (load, marked);
        schedule.room = Some(Room { least: load, best: load, most: load, crowded: false });
        let exit = risen_after(&mut schedule, 0);
        (exit.map(|exit| (exit.reason, exit.cwnd)), schedule.gave_up())
    };
    let ended = |cwnd| (Some((ExitReason::DelayIncrease, cwnd)), false);
    assert_eq!(ends(1_250_000, false), ended(16));
    assert_eq!(ends(1_260_000, false), (None, true));
    assert_eq!(ends(1_260_000, true), ended(15));
}

/// A flow that fills a window goes on with it and may try again.
#[test]
fn a_running_flow_whose_rtts_rose_unread_keeps_its_window_and_may_chirp_again() {
    let mut schedule = adaptive();
    assert!(schedule.resume(7, Known { gap: 2_000_000, load: 2_000_000, window: Some(50) }));
    let exit = risen(&mut schedule).expect("the attempt ends");
    assert_eq!((exit.reason, exit.cwnd), (ExitReason::DelayIncrease, 50));
    assert!(!schedule.gave_up());
    assert!(schedule.resume(8, Known { gap: 2_000_000, load: 2_000_000, window: Some(50) }));
}

/// 10 packets and one that was delivered, in the RTT of now.
#[test]
fn the_load_follows_slow_start_by_the_rtt_of_now_not_by_one_from_before() {
    // One of less than half is no jitter.
    for (rtt, srtt) in [(22, 22), (11, 22), (22, 45), (22, 3000), (44, 22)] {
        let mut schedule = adaptive();
        (schedule.initial, schedule.unclear, schedule.load) = (10, 1, u64::MAX);
        let (rtt, srtt) = (Some(Span::from_millis(rtt)), Span::from_millis(srtt));
        schedule.follow(&Ack { rtt, srtt, min_rtt: MIN_RTT, delivered: 1, ..ack(1) });
        assert_eq!(schedule.load, 2_000_000, "{rtt:?} {srtt}");
    }
}

/// A gap of 200 us leaves no doubt with noise of less than 50 us.
#[test]
fn with_noise_the_load_grows_as_slow_starts_beyond_64_packets_per_round_trip() {
    let mut schedule = adaptive();
    for (noise, many) in [(49_900.0, 8.0), (50_100.0, 2.0)] {
        schedule.hidden = noise * noise;
        let growth = |packets: u64| schedule.growth(MIN_RTT.as_nanos() / packets);
        assert_eq!([growth(64), growth(100)], [8.0, many], "{noise}");
    }
    schedule.hidden = 1e10;
    let growth = |packets: u64| schedule.growth(MIN_RTT.as_nanos() / packets);
    assert_eq!([growth(64), growth(65)], [8.0, 2.0]);
}

/// Behind a token bucket every chirp shows the wire.
#[test]
fn beyond_512_packets_per_round_trip_the_load_grows_as_slow_starts_without_noise_too() {
    let schedule = adaptive();
    let growth = |packets: u64| schedule.growth(MIN_RTT.as_nanos() / packets);
    assert_eq!([growth(500), growth(530)], [8.0, 2.0]);
}

/// A gap of 200 us is clear of noise below 50 us.
#[test]
fn with_noise_six_chirps_must_agree_over_three_round_trips_without_it_two_over_one() {
    let mut schedule = adaptive();
    schedule.room = Some(Room { least: 200_000, best: 200_000, most: 200_000, crowded: false });
    for (noise, chirps, rounds) in [(49_900.0, 2, 1), (50_100.0, 6, 3)] {
        schedule.hidden = noise * noise;
        let mut stays = |agreed, now| {
            schedule.agreed = agreed;
            schedule.has_stayed(&Ack { now, min_rtt: MIN_RTT, ..ack(1) })
        };
        // The first of those that agree left at time zero, and is complete a round trip later.
        let complete = Time::ZERO + MIN_RTT * rounds;
        assert!(stays(chirps, complete), "{noise}");
        assert!(!stays(chirps - 1, complete), "{noise}");
        assert_eq!(stays(chirps, complete - Span::from_nanos(1)), rounds == 1, "{noise}");
    }
    schedule.hidden = 0.0;
    schedule.marked = true;
    schedule.agreed = 5;
    let complete = Ack { now: Time::ZERO + MIN_RTT * 3, min_rtt: MIN_RTT, ..ack(1) };
    assert!(!schedule.has_stayed(&complete), "where packets are marked as many as with noise");
    schedule.agreed = 6;
    assert!(schedule.has_stayed(&complete));
    // A flow that was running has its share of what others leave.
    assert!(schedule.resume(7, Known { gap: 200_000, load: 200_000, window: Some(50) }));
    schedule.room = Some(Room { least: 200_000, best: 200_000, most: 200_000, crowded: false });
    schedule.agreed = 2;
    assert!(schedule.has_stayed(&complete));
}

/// An ACK at a round trip of 20 ms that tells of so many packets delivered so far.
fn delivered(packets: u64) -> Ack {
    Ack { srtt: MIN_RTT, min_rtt: MIN_RTT, delivered: packets, in_flight: 10, ..ack(1) }
}

/// Of ten packets one of which arrived a window of 11 is left, of a gap of 20 ms / 11.
#[test]
fn the_load_follows_slow_starts_window_from_ack_to_ack_up_to_64_packets() {
    let mut schedule = adaptive();
    (schedule.initial, schedule.unclear, schedule.load) = (10, 1, 20_000_000);
    for (packets, window) in [(1, 11), (40, 50), (54, 64), (500, 64)] {
        schedule.verdict(&delivered(packets), false);
        assert_eq!(schedule.load, MIN_RTT.as_nanos() / window, "{packets}");
    }
}

#[test]
fn the_load_does_not_follow_where_packets_are_marked_or_less_is_to_be_had_before_chirps_are_read_or_after_a_timeout() {
    let at = |room: Option<u64>, unclear, known, marked| {
        let mut schedule = adaptive();
        (schedule.initial, schedule.unclear, schedule.known, schedule.marked) = (10, unclear, known, marked);
        schedule.room = room.map(|least| Room { least, best: least, most: least, crowded: false });
        // The first says where the flow began.
        schedule.verdict(&delivered(1), false);
        schedule.verdict(&delivered(40), false);
        schedule.load
    };
    assert_eq!(at(None, 1, None, false), 400_000, "the window's");
    assert_eq!(at(Some(500_000), 1, None, false), 500_000, "the smallest that is plausible");
    assert_eq!(at(None, 1, None, true), 1_000_000, "slow start would have ended");
    assert_eq!(at(None, 0, None, false), 1_000_000, "nothing was read");
    assert_eq!(at(None, 1, Some(Known { gap: 1, load: 1, window: None }), false), 1_000_000, "a timeout was repaired");
}

/// The round trip, of ten ACKs, in which a flow with this load gives up, on a path with jitter or
/// without.
fn rounds_until_given_up(load: impl Fn(u64) -> u64, jittery: bool) -> Option<u64> {
    rounds_in_room(Room { least: 0, best: 1_000_000, most: 1_000_000, crowded: false }, load, jittery)
}

/// The same with this room.
fn rounds_in_room(room: Room, load: impl Fn(u64) -> u64, jittery: bool) -> Option<u64> {
    let mut schedule = adaptive();
    schedule.config.follow_packets = 0;
    schedule.room = Some(room);
    let mut belief = Belief::new(schedule.config.belief);
    // Delays that have nothing to do with those of the packet before are jitter.
    let mut random = 12_345_u64;
    for _ in (0..8).filter(|_| jittery) {
        let mut delay = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            random >> 46
        };
        let points: Vec<_> = (0..16).map(|_| Point { gaps: 1_000_000, packets: 1, delay: delay() }).collect();
        belief.take(&points, 1.0, 1.0);
    }
    assert_eq!(belief.is_jittery(), jittery);
    schedule.belief = Some(belief);
    (1..=300_u64).find_map(|n: u64| {
        schedule.load = load(n / 10);
        let ack = Ack { now: Time::ZERO + MIN_RTT * n / 10, una: n, next: n + 10, ..delivered(n) };
        schedule.verdict(&ack, false);
        schedule.gave_up().then_some(n / 10)
    })
}

/// Of 20 and 200 packets per round trip. Chirps that say that this is all there is are believed for
/// as long with many packets, those that say nothing do not count there.
#[test]
fn chirps_that_hold_few_packets_back_are_believed_for_three_rounds_with_jitter_for_five() {
    let [few, many] = [1_000_000, 100_000].map(|gap| move |_| gap);
    assert_eq!([false, true].map(|jittery| rounds_until_given_up(few, jittery)), [Some(3), Some(5)]);
    assert_eq!(rounds_until_given_up(many, false), None);
    let full = Room { least: 100_000, best: 100_000, most: 100_000, crowded: false };
    // There is no more to be had, which is known from the first round on.
    assert_eq!(rounds_in_room(full, many, false), Some(4));
}

/// Rounds in which it grows more do not make those forgotten in which it did not.
#[test]
fn a_load_that_grows_by_half_in_a_round_trip_is_not_held_back() {
    let grown = |by: f64| move |round: u64| (1e9 / by.powi(round as i32)) as u64;
    assert_eq!(rounds_until_given_up(grown(1.51), false), None);
    let slow = rounds_until_given_up(grown(1.49), false).unwrap();
    let now_and_then = |round: u64| (1e9 / 1.6_f64.powi(round as i32 / 2)) as u64;
    let alternating = rounds_until_given_up(now_and_then, false).unwrap();
    assert!(slow < alternating && alternating <= 2 * slow + 1, "{slow} {alternating}");
}

/// A silent link loses all that is in flight: seven tenths of the 40 packets that arrived in the
/// round trip before are left, not of the one that was sent to find out.
#[test]
fn a_loss_of_all_in_flight_leaves_what_arrived_in_the_round_trip_before() {
    let mut schedule = adaptive();
    (schedule.initial, schedule.unclear) = (10, 1);
    assert_eq!(schedule.on_loss(Time::ZERO, 1), Some((10, 7)), "the initial window");
    // Before anything is read every ACK widens it, as in slow start, as far as it was sent.
    for (acked, window) in [(6, (16, 11)), (10, (20, 14)), (11, (20, 14))] {
        let mut schedule = Adaptive { unclear: 0, ..schedule.clone() };
        schedule.verdict(&Ack { acked: 1, ..delivered(0) }, false);
        schedule.verdict(&Ack { acked: 1, ..delivered(acked) }, false);
        assert_eq!(schedule.on_loss(Time::ZERO, 1), Some(window), "{acked}");
    }
    for n in 1..=41 {
        let round = if n == 1 { 0 } else { 40 };
        let ack = Ack { una: n, next: 41 * (1 + round), ..delivered(n) };
        schedule.verdict(&ack, false);
    }
    assert_eq!(schedule.watch.rounds(), 2);
    assert_eq!(schedule.on_loss(Time::ZERO, 1), Some((40, 28)));
    assert_eq!(schedule.on_loss(Time::ZERO, 100), Some((100, 70)), "more was in flight");
    // The round trip that is not over yet has brought more.
    schedule.verdict(&Ack { acked: 50, una: 42, next: 41 * 41, ..delivered(91) }, false);
    assert_eq!(schedule.on_loss(Time::ZERO, 1), Some((50, 35)));
    // Nothing is in flight any more: slow start's window, the initial one and all that arrived, was
    // lost, or what was sent of it.
    for (lost, window) in [(30, (50, 35)), (60, (60, 42)), (200, (101, 70))] {
        let mut schedule = schedule.clone();
        schedule.verdict(&Ack { acked: 0, una: 42, next: 41 * 41, total_lost: lost, ..delivered(91) }, false);
        assert_eq!(schedule.on_loss(Time::ZERO, 0), Some(window), "{lost}");
        assert_eq!(schedule.on_loss(Time::ZERO, 1), Some((50, 35)), "some is left");
    }
    // Chirps that agree on 5 packets per round trip know better than the initial window.
    let mut schedule = adaptive();
    (schedule.initial, schedule.agreed, schedule.losses) = (10, 1, schedule.config.pardoned_losses);
    schedule.room = Some(Room { least: 4_000_000, best: 4_000_000, most: 4_000_000, crowded: false });
    assert_eq!(schedule.on_loss(Time::ZERO, 1), Some((5, 3)));
}

/// After a chirp that could not be read: a window of 10 and 8 that were delivered.
#[test]
fn what_is_not_read_waits_for_acks_beyond_slow_starts_window() {
    let pulled = |in_flight: u32, room: Option<Room>| {
        let mut schedule = adaptive();
        (schedule.initial, schedule.unclear, schedule.probe, schedule.room) = (10, 1, 1000, room);
        schedule.verdict(&Ack { acked: 8, ..delivered(8) }, false);
        let next = Next { queued: 1000, in_flight, ..flowstart_control::testing::next(0) };
        matches!(schedule.pull(Time::ZERO, 2, &next, &Window::new(100), None), Pull::Hold)
    };
    assert_eq!([17, 18].map(|in_flight| pulled(in_flight, None)), [false, true]);
    assert!(!pulled(18, Some(Room { least: 0, best: 1000, most: 1000, crowded: false })));
}

/// Marks end slow start, but an initial window per round trip is no more than it sent.
#[test]
fn where_packets_are_marked_the_load_of_a_silence_gives_way_to_the_initial_window() {
    let mut schedule = adaptive();
    (schedule.initial, schedule.unclear, schedule.marked, schedule.load) = (10, 1, true, 300_000_000);
    schedule.follow(&Ack { rtt: Some(MIN_RTT), srtt: Span::from_secs(3), ..delivered(40) });
    assert_eq!(schedule.load, 2_000_000);
}

/// Chirps have shown four times the load: 80 packets per round trip. Of 40 packets that were
/// delivered or lost, four are a tenth.
fn far_below_what_was_shown() -> Adaptive {
    let mut schedule = adaptive();
    (schedule.initial, schedule.agreed, schedule.config.follow_packets) = (10, 1, 0);
    schedule.room = Some(Room { least: 250_000, best: 250_000, most: 250_000, crowded: false });
    schedule
}

/// Takes in an ACK of so many packets after which `lost` are lost in all.
fn losing(schedule: &mut Adaptive, acked: u32, lost: u64) -> Option<Exit> {
    schedule.verdict(&Ack { acked, acked_bytes: 0, next: 1000, total_lost: lost, ..delivered(40) }, false)
}

/// The same where `acked` packets came, and then one ACK for every count of all that are lost.
fn losing_at(schedule: &mut Adaptive, acked: u32, counts: impl IntoIterator<Item = u64>) -> Option<Exit> {
    losing(schedule, acked, 0);
    counts.into_iter().map(|lost| losing(schedule, 0, lost)).last().flatten()
}

#[test]
fn losses_are_pardoned_far_below_what_chirps_show_unless_a_tenth_is_lost_at_several_times() {
    for (acked, counts, pardoned) in
        [(1, [1, 2, 40, 40], true), (36, [1, 2, 3, 4], true), (35, [1, 2, 3, 4], false), (1, [10, 20, 30, 40], false)]
    {
        let mut schedule = far_below_what_was_shown();
        assert_eq!(losing_at(&mut schedule, acked, counts), None);
        let answer = schedule.on_loss(Time::ZERO, 40);
        // Many losses refute the 80 packets that chirps have shown.
        assert_eq!(answer, (!pardoned).then_some((40, 28)), "{counts:?} of {acked}");
    }
    let mut schedule = far_below_what_was_shown();
    schedule.load = 400_000;
    assert_eq!(schedule.on_loss(Time::ZERO, 20), Some((80, 56)), "load and path are nearly the same");
}

#[test]
fn a_pardon_ends_the_start_once_a_tenth_is_lost_at_several_times() {
    let mut schedule = far_below_what_was_shown();
    assert_eq!(losing_at(&mut schedule, 20, [1]), None);
    assert_eq!(schedule.on_loss(Time::ZERO, 20), None);
    assert_eq!([2, 30].map(|lost| losing(&mut schedule, 1, lost)).map(|exit| exit.is_some()), [false; 2]);
    let exit = losing(&mut schedule, 1, 31).map(|exit| (exit.reason, exit.cwnd, exit.ssthresh));
    assert_eq!(exit, Some((ExitReason::Loss, 20, 20)), "that arrived in the round trip before");
}

/// What was lost before two round trips is no news.
#[test]
fn losses_are_forgotten_after_two_round_trips() {
    let many = |rounds: u64| {
        let mut schedule = far_below_what_was_shown();
        for (una, total_lost) in
            [(0, 0), (50, 3), (51, 6), (52, 9), (53, 12)].into_iter().chain((1..=rounds).map(|round| (100 * round, 12)))
        {
            let next = una / 100 * 100 + 100;
            schedule.verdict(&Ack { acked: 10, una, next, total_lost, ..delivered(40) }, false);
        }
        schedule.watch.has_lost_many(&schedule.config)
    };
    assert_eq!([0, 1, 2, 3].map(many), [true, true, false, false]);
}

/// Packets of the first chirp, packets and gap of what follows, in a round trip of 48 ms, and
/// whether more may leave then.
fn first_window(initial: u32) -> (u32, (u32, u64), bool) {
    let mut schedule = Adaptive::new(&AdaptiveChirpingConfig::default(), 1448);
    let window = Window::new(initial);
    let next = Next { queued: 1000, srtt: Span::from_millis(48), ..flowstart_control::testing::next(0) };
    let [chirp, rest] = [0, 1].map(|number| match schedule.pull(Time::ZERO, number, &next, &window, None) {
        Pull::Chirp(plan) => plan.geometry,
        other => panic!("{other:?}"),
    });
    let next = Next { in_flight: chirp.packets + rest.packets, ..next };
    let more = matches!(schedule.pull(Time::ZERO, 2, &next, &window, None), Pull::Unchirped);
    (chirp.packets, (rest.packets, rest.gap(1)), more)
}

/// At most a gap of two milliseconds, twice that of the chirp. Beyond 48 packets, which take a
/// round trip at a millisecond each, a chirp of 16 and a quarter of the round trip. 284 packets are
/// too many for one plan.
#[test]
fn a_large_initial_window_leaves_within_a_chirp_and_a_quarter_of_a_round_trip() {
    assert_eq!(first_window(10), (8, (2, 2_000_000), false));
    assert_eq!(first_window(48), (38, (10, 1_000_000), false));
    assert_eq!(first_window(49), (16, (33, 363_636), false));
    assert_eq!(first_window(300), (16, (256, 46_875), true));
}

/// Mean gap in us of the first chirp where the round trip takes so long, also in us.
fn first_gap(rtt: u64) -> u64 {
    let mut schedule = Adaptive::new(&AdaptiveChirpingConfig::default(), 1448);
    let next = Next { queued: 1000, srtt: Span::from_micros(rtt), ..flowstart_control::testing::next(0) };
    schedule.pull(Time::ZERO, 0, &next, &Window::new(10), None);
    schedule.probe_gap().as_nanos() / 1000
}

/// A 48th of it, or a window of ten over a fifth of it if that is more, a millisecond at most.
#[test]
fn the_first_chirp_takes_a_fifth_of_a_round_trip_however_short_that_is() {
    assert_eq!([96, 480, 960, 4800, 9600, 48_000, 96_000].map(first_gap), [2, 10, 20, 100, 200, 1000, 1000]);
    let config = AdaptiveChirpingConfig { first_spread: 1.0, ..Default::default() };
    let mut schedule = Adaptive::new(&config, 1448);
    schedule.begin(Span::from_micros(960), 10);
    assert_eq!(schedule.probe_gap(), Span::from_micros(96));
    schedule.begin(Span::from_micros(4800), 10);
    assert_eq!(schedule.probe_gap(), Span::from_micros(200));
}

/// 20 ms hold 6.6 packets of 3 ms. A receiver that keeps one of two back until the other comes has
/// a path carry five of six.
#[test]
fn the_window_at_the_end_is_one_more_than_the_path_holds_whole_and_what_the_receiver_keeps_back() {
    let filling = |acked: &[u32], gap| {
        let mut schedule = adaptive();
        for &acked in acked {
            schedule.verdict(&Ack { min_rtt: MIN_RTT, in_flight: 10, ..ack(acked) }, false);
        }
        let (held, kept_back) = schedule.fits(MIN_RTT, gap);
        filling(held, kept_back)
    };
    assert_eq!(filling(&[1, 1, 1], 3_000_000), 7);
    assert_eq!(filling(&[1, 2, 1], 3_000_000), 8);
    assert_eq!(filling(&[2, 16, 2], 200_000), 116);
    assert_eq!(filling(&[64], 3_000_000), 13, "at most what the path holds once more");
}

/// A path that noise hides gets another round trip where that is long.
#[test]
fn a_first_chirp_that_noise_hides_ends_chirping_on_a_short_way_at_once() {
    let gives_up = |rtt| {
        let mut schedule = adaptive();
        (schedule.noisy, schedule.vain, schedule.unclear) = (true, true, 1);
        schedule.verdict(&Ack { min_rtt: Span::from_micros(rtt), in_flight: 10, ..ack(1) }, true);
        schedule.gave_up()
    };
    assert_eq!([500, 7999, 8000, 20_000].map(gives_up), [true, true, false, false]);
}

#[test]
fn noise_of_a_fiftieth_of_the_round_trip_drowns_chirps_and_of_a_hundredth_on_a_short_way() {
    let drowns = |rtt_us: u64, noise_us: f64, running| {
        let mut schedule = adaptive();
        if running {
            schedule.resume(7, Known { gap: 200_000, load: 200_000, window: Some(50) });
        }
        schedule.min_rtt = Span::from_micros(rtt_us);
        schedule.hidden = noise_us * noise_us * 1e6;
        schedule.is_drowned()
    };
    assert_eq!([158.0, 162.0].map(|noise| drowns(8000, noise, false)), [false, true]);
    assert_eq!([78.0, 82.0].map(|noise| drowns(7999, noise, false)), [false, true]);
    assert_eq!([158.0, 162.0].map(|noise| drowns(7999, noise, true)), [false, true], "what runs has its window");
}

/// Sixteen packets around a gap of 100 us; the smallest centre is a quarter of it.
#[test]
fn chirps_are_faster_with_noise_and_as_fast_as_may_be_where_jitter_leaves_doubt() {
    let centre = |noise_us: f64, jitter_us: f64| {
        AdaptiveChirpingConfig::default().centre_of(100_000, 16, noise_us * 1000.0, jitter_us * 1000.0)
    };
    assert_eq!([0.0, 29.0].map(|noise| centre(noise, 0.0)), [125_000; 2], "their queue is four times the noise");
    assert!((27_000..125_000).contains(&centre(60.0, 39.0)), "{}", centre(60.0, 39.0));
    assert!(centre(60.0, 41.0) < 27_000, "{}", centre(60.0, 41.0));
    assert_eq!(centre(60.0, 41.0), centre(1000.0, 1000.0));
}

#[test]
fn what_a_centre_is_searched_by_is_constants() {
    let centre = |config: AdaptiveChirpingConfig| config.centre_of(100_000, 16, 60_000.0, 39_000.0);
    let default = AdaptiveChirpingConfig::default;
    let usual = centre(default());
    assert_ne!(centre(AdaptiveChirpingConfig { centre_step: 0.5, ..default() }), usual);
    // Steeper chirps make a longer queue around the same gap.
    assert!(centre(AdaptiveChirpingConfig { fastest_gap: 0.0, ..default() }) > usual);
    assert!(centre(AdaptiveChirpingConfig { slowest_gap: 1.0, ..default() }) > usual, "all of it queues");
    let refused = |config: AdaptiveChirpingConfig| config.validate().err().map(|error| error.field);
    for centre_step in [0.0, 1.0, f64::NAN] {
        assert_eq!(refused(AdaptiveChirpingConfig { centre_step, ..default() }), Some("centre_step"));
    }
    for slowest_gap in [0.9, 4.1, f64::NAN] {
        assert_eq!(refused(AdaptiveChirpingConfig { slowest_gap, ..default() }), Some("slowest_gap"));
    }
    for fastest_gap in [-0.1, 1.0, f64::NAN] {
        assert_eq!(refused(AdaptiveChirpingConfig { fastest_gap, ..default() }), Some("fastest_gap"));
    }
    let hystart = HystartConfig { delay_divisor: 0, ..HystartConfig::default() };
    assert_eq!(refused(AdaptiveChirpingConfig { hystart, ..default() }), Some("delay_divisor"));
}

/// Each packet is late by a time of its own; for a flow that was running that is no reason to try
/// more than it has.
#[test]
fn what_a_running_flow_meets_is_no_jitter() {
    let jitter = |running| {
        let mut schedule = adaptive();
        if running {
            schedule.resume(7, Known { gap: 200_000, load: 200_000, window: Some(50) });
        }
        let points: Vec<Point> =
            (0..16).map(|n| Point { gaps: 200_000, packets: 1, delay: n * 7919 % 97 * 1000 }).collect();
        schedule.learn(&points);
        (schedule.jitter(), schedule.noise())
    };
    let (own, noise) = jitter(false);
    assert!(own > 0.0 && own <= noise, "{own} of {noise}");
    assert_eq!(jitter(true), (0.0, noise));
}

/// QUIC finds a larger MTU a few round trips after its first packet (RFC 9000 section 14.3).
#[test]
fn larger_packets_neither_stop_a_new_flow_nor_change_its_rate_in_bytes() {
    let mut schedule = adaptive();
    (schedule.mss, schedule.initial, schedule.delivered, schedule.agreed) = (1200, 10, 60, 1);
    (schedule.probe, schedule.min_rtt) = (500_000, MIN_RTT);
    schedule.room = Some(Room { least: 100_000, best: 200_000, most: 400_000, crowded: false });
    let next = Next { queued: 1000, in_flight: 30, srtt: MIN_RTT, ..flowstart_control::testing::next(0) };
    let chirps = |schedule: &mut Adaptive| {
        matches!(schedule.pull(Time::ZERO, 5, &next, &Window::new(100), None), Pull::Chirp(_))
    };
    assert!(chirps(&mut schedule));
    schedule.on_mss(NewMss::new(1200, 1500));
    assert_eq!(schedule.room, Some(Room { least: 125_000, best: 250_000, most: 500_000, crowded: false }));
    assert_eq!((schedule.load, schedule.probe, schedule.agreed), (1_250_000, 625_000, 0));
    assert!(chirps(&mut schedule), "more than the initial window is in flight");
    // What fills a window already waits for nothing, and takes no more on the word of one chirp.
    assert!(schedule.resume(7, Known { gap: 200_000, load: 200_000, window: Some(50) }));
    schedule.room = Some(Room { least: 100_000, best: 200_000, most: 400_000, crowded: false });
    schedule.on_mss(NewMss::new(1500, 1200));
    assert_eq!(schedule.room, None);
}
