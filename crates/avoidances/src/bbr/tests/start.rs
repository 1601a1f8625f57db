//! The start and its end.

use super::*;

/// A flow in its start, with a window of ten packets.
fn starting() -> (Bbr, Window) {
    let mut bbr = Bbr::new(&BbrConfig::default(), MSS, 1);
    let window = Window::new(10);
    assert!(bbr.begin_flow(&window));
    (bbr, window)
}

/// The ACK that ends a round trip of 40 ms, all at 10 Mbit/s.
fn round_trip(round: u64) -> Ack {
    full(40 * (round + 1), 100 * (round + 1), 100 * round)
}

fn after_rounds(rounds: core::ops::Range<u64>) -> (Bbr, Window) {
    let (mut bbr, mut window) = starting();
    for round in rounds {
        bbr.grow(&round_trip(round), 1, &mut window);
        assert_eq!(bbr.mode(), BbrMode::Startup, "round {round}");
    }
    (bbr, window)
}

/// `bbr_check_full_bw_reached`: three round trips that grow by less than a quarter each end the
/// start; a quarter exactly is growth.
#[test]
fn three_round_trips_without_a_quarter_of_growth_end_the_start_and_a_quarter_is_growth() {
    let ended_after = |percent: u32| {
        let mut bbr = Bbr::new(&BbrConfig::default(), MSS, 1);
        let mut window = Window::new(10);
        assert!(bbr.begin_flow(&window));
        let mut packets = 100_000 * 4_u32.pow(5);
        for round in 0..10_u64 {
            let ack = full(40 * (round + 1), 100 * (round + 1), 100 * round);
            let rate = ack.rate.map(|rate| DeliveryRate { delivered: packets, interval: Span::from_secs(100), ..rate });
            let ack = Ack { rate, in_flight: 1_000_000, ..ack };
            bbr.on_ack(&ack, &window);
            bbr.grow(&ack, 1, &mut window);
            if bbr.own_exit().is_some() {
                assert_eq!((bbr.own_exit(), bbr.mode()), (Some(ExitReason::RatePlateau), BbrMode::Drain));
                return Some(round);
            }
            assert_eq!(bbr.mode(), BbrMode::Startup);
            packets = packets / 100 * percent;
        }
        None
    };
    assert_eq!(ended_after(100), Some(3));
    assert_eq!(ended_after(105), Some(3), "even together they are less");
    assert_eq!(ended_after(124), None, "two of them are more than a quarter");
    assert_eq!(ended_after(125), None);
}

#[test]
fn round_trips_that_the_application_limits_do_not_end_the_start() {
    let (mut bbr, mut window) = starting();
    for round in 0..10 {
        let ack = round_trip(round);
        let rate = ack.rate.map(|rate| DeliveryRate { app_limited: true, ..rate });
        bbr.grow(&Ack { rate, ..ack }, 1, &mut window);
    }
    assert_eq!(bbr.mode(), BbrMode::Startup);
}

/// `bbr_check_drain`: the gain of packets in flight is still that of the start with the ACK that
/// ends it, so that a burst counts; `bbr_inflight` of 33 packets is 40 with three bursts of two.
#[test]
fn draining_lasts_until_a_bdp_is_in_flight_and_with_the_ack_that_begins_it_a_burst_counts() {
    let (bbr, window) = after_rounds(0..3);
    let ended = |in_flight| {
        let (mut bbr, mut window) = (bbr.clone(), window);
        bbr.grow(&Ack { in_flight, ..round_trip(3) }, 1, &mut window);
        (bbr, window)
    };
    assert_eq!(ended(39).0.mode(), BbrMode::Drain, "39 and a burst of two");
    assert!(matches!(ended(38).0.mode(), BbrMode::ProbeBandwidth { .. }));
    let (draining, window) = ended(39);
    assert_eq!(window.ssthresh, 40);
    assert_eq!((draining.gain(), draining.window_gain()), (88.0 / 256.0, 739.0 / 256.0), "bbr_update_gains");
    let next = |in_flight| {
        let (mut bbr, mut window) = (draining.clone(), window);
        bbr.grow(&Ack { in_flight, ..full(161, 401, 380) }, 1, &mut window);
        bbr.mode()
    };
    assert_eq!(next(41), BbrMode::Drain);
    assert!(matches!(next(40), BbrMode::ProbeBandwidth { .. }));
}

/// `bbr_set_state`: `full_bw = 0` on `TCP_CA_Loss`, so that the next round trip counts as growth.
#[test]
fn after_a_timeout_the_start_needs_three_flat_round_trips_anew() {
    let (mut bbr, mut window) = after_rounds(0..3);
    bbr.on_expiry(at(130), 5);
    for round in 3..6 {
        bbr.grow(&round_trip(round), 1, &mut window);
        assert_eq!(bbr.mode(), BbrMode::Startup, "round {round}");
    }
    bbr.grow(&Ack { in_flight: 1_000, ..round_trip(6) }, 1, &mut window);
    assert_eq!(bbr.mode(), BbrMode::Drain);
}

/// `bbr_undo_cwnd`: `full_bw = 0`, `full_bw_cnt = 0`.
#[test]
fn after_a_needless_reduction_the_start_needs_three_flat_round_trips_anew() {
    let (mut bbr, mut window) = after_rounds(0..3);
    assert_eq!(bbr.undo(20, &window), window.cwnd);
    for round in 3..6 {
        bbr.grow(&round_trip(round), 1, &mut window);
        assert_eq!(bbr.mode(), BbrMode::Startup, "round {round}");
    }
}

/// `bbr_init_pacing_rate_from_rtt`, `bbr_set_pacing_rate`: `bbr_full_bw_reached(sk) || rate >
/// sk_pacing_rate`.
#[test]
fn the_first_rate_is_the_first_windows_and_a_start_never_slows_down() {
    let (mut bbr, mut window) = starting();
    bbr.grow(&Ack { rate: None, ..full(40, 1, 0) }, 1, &mut window);
    // Ten packets in 40 ms, the gain of the start, the margin.
    let first = 10.0 * 1448.0 * 8.0 / 0.04 * (739.0 / 256.0) * 0.99;
    let rate = |bbr: &Bbr| bbr.pacing_rate().unwrap().as_bps() as f64;
    assert!((rate(&bbr) / first - 1.0).abs() < 1e-4, "{}", rate(&bbr));
    let slow = full(41, 2, 1);
    let slow = Ack { rate: slow.rate.map(|rate| DeliveryRate { delivered: PACKETS / 10, ..rate }), ..slow };
    bbr.grow(&slow, 1, &mut window);
    assert!((rate(&bbr) / first - 1.0).abs() < 1e-4, "{}", rate(&bbr));
    bbr.grow(&full(42, 3, 2), 1, &mut window);
    assert!(rate(&bbr) > 2.0 * first);
}

/// `bbr_set_cwnd`: `cwnd < target_cwnd || delivered < TCP_INIT_CWND`; ACKs that come in bunches add
/// to the target only once the path is full.
#[test]
fn in_the_start_the_window_grows_below_its_target_and_with_the_first_ten_packets() {
    // 33.03 packets times 2.887, and three bursts of two.
    const TARGET: u32 = 102;
    let grown = |cwnd, delivered, acked| {
        let (mut bbr, _) = starting();
        let mut window = Window::new(cwnd);
        bbr.grow(&Ack { acked, ..full(40, delivered, 0) }, acked, &mut window);
        window.cwnd
    };
    assert_eq!(grown(TARGET - 1, 200, 60), TARGET - 1 + 60);
    assert_eq!(grown(TARGET, 200, 60), TARGET);
    assert_eq!([9, 10].map(|delivered| grown(TARGET, delivered, 1)), [TARGET + 1, TARGET]);
}

/// `bbr_check_probe_rtt_done`, `bbr_reset_mode`: back to the start if the path was not full.
#[test]
fn a_probe_of_the_rtt_in_the_start_goes_back_to_it() {
    let (mut bbr, mut window) = after_rounds(0..1);
    let queued = |ms: u64, in_flight| Ack { rtt: Some(Span::from_millis(50)), in_flight, ..full(ms, ms, ms - 40) };
    for (ms, in_flight, probes) in [(10_041, 60, true), (10_100, 4, true), (10_301, 4, false)] {
        bbr.grow(&queued(ms, in_flight), 1, &mut window);
        assert_eq!(matches!(bbr.mode(), BbrMode::ProbeRtt { .. }), probes, "{ms} ms");
    }
    assert_eq!(bbr.mode(), BbrMode::Startup);
}
