//! Rules of the adaptive schedule one by one.

use super::*;
use flowstart_control::testing::ack;

const MIN_RTT: Span = Span::from_millis(20);

fn adaptive() -> Adaptive {
    let mut schedule = Adaptive::new(&AdaptiveChirpingConfig::default(), 1448);
    (schedule.min_rtt, schedule.load) = (MIN_RTT, 1_000_000);
    schedule
}

/// Two round trips of ten ACKs whose RTTs have risen by half, after a chirp that could not be read.
fn risen(schedule: &mut Adaptive) -> Option<Exit> {
    schedule.unclear = 1;
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

/// A flow that fills a window goes on with it and may try again.
#[test]
fn a_running_flow_whose_rtts_rose_unread_keeps_its_window_and_may_chirp_again() {
    let mut schedule = adaptive();
    assert!(schedule.resume(7, Known { gap: 1_000_000, load: 1_000_000, window: Some(50) }));
    let exit = risen(&mut schedule).expect("the attempt ends");
    assert_eq!((exit.reason, exit.cwnd), (ExitReason::DelayIncrease, 50));
    assert!(!schedule.gave_up());
    assert!(schedule.resume(8, Known { gap: 1_000_000, load: 1_000_000, window: Some(50) }));
}

/// A gap of 200 us leaves no doubt with noise of less than 25 us.
#[test]
fn with_noise_the_load_grows_as_slow_starts_beyond_64_packets_per_round_trip() {
    let mut schedule = adaptive();
    for (noise, many) in [(24_900.0, 8.0), (25_100.0, 2.0)] {
        schedule.hidden = noise * noise;
        let growth = |packets: u64| schedule.growth(MIN_RTT.as_nanos() / packets);
        assert_eq!([growth(64), growth(100)], [8.0, many], "{noise}");
    }
    schedule.hidden = 1e10;
    let growth = |packets: u64| schedule.growth(MIN_RTT.as_nanos() / packets);
    assert_eq!([growth(64), growth(65)], [8.0, 2.0]);
}

/// A gap of 200 us is clear of noise below 25 us.
#[test]
fn with_noise_six_chirps_must_agree_over_three_round_trips_without_it_two_over_one() {
    let mut schedule = adaptive();
    schedule.room = Some(Room { least: 200_000, best: 200_000, most: 200_000, crowded: false });
    for (noise, chirps, rounds) in [(24_900.0, 2, 1), (25_100.0, 6, 3)] {
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
}
