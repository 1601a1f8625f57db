//! Phases and probes of the RTT.

use super::*;

fn probing(bbr: &Bbr) -> bool {
    matches!(bbr.mode(), BbrMode::ProbeRtt { .. })
}

/// With an RTT of 50 ms at this time, 40 of its packets after the last.
fn queued(ms: u64, in_flight: u32) -> Ack {
    Ack { rtt: Some(Span::from_millis(50)), in_flight, ..full(ms, ms, ms - 40) }
}

/// `bbr_is_next_cycle_phase`: what was in flight before the ACK counts, and with a gain above one a
/// burst; `bbr_inflight` of 41.3 packets is 48 with three bursts of two, and 50 in this phase.
#[test]
fn probing_ends_when_exactly_its_queue_is_there_and_draining_when_it_is_gone() {
    let after = |phase_before, ms, in_flight, lost| {
        let mut bbr = in_phase(phase_before);
        feed(&mut bbr, &Ack { in_flight, lost, ..full(ms, 2, 1) }, 74);
        phase(&bbr)
    };
    // One acknowledged, a burst of two.
    assert_eq!([46, 47].map(|in_flight| after(0, 41, in_flight, 0)), [0, 1]);
    assert_eq!(after(0, 40, 60, 0), 0, "it lasts for a round trip");
    // 40 are a BDP with room for three bursts.
    assert_eq!([37, 36].map(|in_flight| after(1, 1, in_flight, 3)), [1, 2]);
}

#[test]
fn cycles_begin_with_any_phase_but_the_draining_one() {
    let mut begun: Vec<u32> = (0..200).map(|seed| phase(&bbr(seed))).collect();
    begun.sort_unstable();
    begun.dedup();
    assert_eq!(begun, [0, 2, 3, 4, 5, 6, 7]);
}

/// `bbr_packets_in_net_at_edt`.
#[test]
fn what_is_delivered_until_the_next_departure_is_not_in_flight_then_and_a_burst_is() {
    let mut bbr = in_phase(3);
    bbr.on_booked(at(10));
    // 10 ms at 10 Mbit/s are 8.26 packets; a burst has two.
    assert_eq!([0.75, 1.0, 1.25].map(|gain| bbr.at_departure(50, gain)), [42, 42, 44]);
}

/// `bbr_tso_segs_goal`: what the pacing rate carries in 0.977 ms, at least one or two, and at most
/// what 64 KiB or 127 packets hold.
#[test]
fn a_burst_is_a_millisecond_of_the_rate_between_one_and_127_packets() {
    let bursts = |mss, kbps: u64| {
        let mut bbr = Bbr::new(&BbrConfig::default(), mss, 0);
        bbr.pacing_rate = Some(Rate::from_bps(kbps * 1_000));
        bbr.burst()
    };
    assert_eq!([1_199, 1_200, 100_000, 10_000_000].map(|kbps| bursts(MSS, kbps)), [1, 2, 8, 45]);
    assert_eq!(bursts(100, 10_000_000), 127);
}

/// `bbr_min_tso_segs`: what the transport is told, whatever it would do by itself.
#[test]
fn below_1200_kbits_a_burst_may_be_a_single_packet() {
    let mut bbr = Bbr::new(&BbrConfig::default(), MSS, 0);
    assert_eq!(bbr.least_burst(), None, "no rate yet");
    let mut least = |kbps: u64| {
        bbr.pacing_rate = Some(Rate::from_bps(kbps * 1_000));
        bbr.least_burst()
    };
    assert_eq!([1, 1_199, 1_200, 10_000_000].map(&mut least), [Some(1), Some(1), Some(2), Some(2)]);
}

/// `bbr_update_min_rtt`: no probe of the RTT while `idle_restart`, which ends with a delivery.
#[test]
fn a_flow_that_sends_again_after_an_idle_time_does_not_probe_the_rtt() {
    let after = |idle: bool, rate: bool| {
        let mut bbr = in_phase(3);
        if idle {
            bbr.on_idle(Span::from_secs(1), &mut Window::new(74));
        }
        let first = queued(5_000, 60);
        feed(&mut bbr, &if rate { first } else { Ack { rate: None, ..first } }, 74);
        feed(&mut bbr, &queued(10_001, 60), 74);
        probing(&bbr)
    };
    assert!(after(false, true));
    assert!(!after(true, false));
    assert!(after(true, true), "something was delivered before");
}

/// `bbr_check_probe_rtt_done` needs a round trip that began with the four packets
/// (`next_rtt_delivered = delivered`), and 200 ms.
#[test]
fn a_probe_of_the_rtt_lasts_for_a_round_trip_of_its_own() {
    let mut bbr = in_phase(3);
    feed(&mut bbr, &queued(10_001, 60), 74);
    let sent_at =
        |prior_delivered, ack: Ack| Ack { rate: ack.rate.map(|rate| DeliveryRate { prior_delivered, ..rate }), ..ack };
    // Not the ACK of a packet that left since the last round ended.
    feed(&mut bbr, &sent_at(10_000, queued(10_100, 4)), 74);
    feed(&mut bbr, &sent_at(10_099, queued(10_301, 4)), 74);
    assert!(probing(&bbr), "that packet left before");
    feed(&mut bbr, &sent_at(10_100, queued(10_302, 4)), 74);
    assert!(!probing(&bbr));
}

/// `bbr_update_min_rtt`: `app_limited = delivered + in_flight` with each of its ACKs.
#[test]
fn packets_that_a_probe_of_the_rtt_held_back_say_nothing_about_the_path() {
    let mut bbr = in_phase(3);
    feed(&mut bbr, &queued(10_001, 60), 74);
    feed(&mut bbr, &queued(10_040, 30), 74);
    let limited = |prior_delivered| {
        let ack = full(10_050, 10_050, prior_delivered);
        bbr.model.clone().on_ack(&ack, 74, false, &bbr.config).app_limited
    };
    assert_eq!([10_000, 10_001, 10_070, 10_071].map(limited), [false, true, true, false]);
}

/// `bbr_cwnd_event`: `bbr_check_probe_rtt_done` when the flow sends again.
#[test]
fn an_idle_time_ends_a_probe_of_the_rtt_that_was_long_enough() {
    let idle = |ms| {
        let mut bbr = in_phase(3);
        feed(&mut bbr, &queued(10_001, 60), 74);
        feed(&mut bbr, &queued(10_100, 4), 74);
        assert_eq!(bbr.window_gain(), 1.0);
        let mut window = Window::new(4);
        bbr.on_idle(Span::from_millis(ms), &mut window);
        (probing(&bbr), window.cwnd)
    };
    // And the window is what it was before the probe.
    assert_eq!([200, 201].map(idle), [(true, 4), (false, 74)]);
}

/// The kernel counts microseconds: a nanosecond less is the same RTT, which does not put the probe
/// off.
#[test]
fn an_rtt_that_is_smaller_by_less_than_a_microsecond_is_the_same() {
    let mut bbr = Bbr::new(&BbrConfig::default(), MSS, 0);
    let window = Window::new(34);
    let of = |nanos, ack: Ack| Ack { rtt: Some(Span::from_nanos(nanos)), min_rtt: Span::from_nanos(nanos), ..ack };
    bbr.on_ack(&of(40_000_900, full(0, 1, 0)), &window);
    bbr.on_takeover(at(0), &window, None);
    feed(&mut bbr, &of(40_000_100, full(5_000, 5_000, 4_960)), 74);
    feed(&mut bbr, &queued(10_001, 60), 74);
    assert!(probing(&bbr));
}
