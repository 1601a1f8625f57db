//! BBR version 3 in a closed loop: what draft-ietf-ccwg-bbr-06 says of its states, in numbers.

use crate::common::{Loop, Path};
use flowstart_congestion::avoidance::{Bbr3, Bbr3Mode};
use flowstart_congestion::{
    Avoidance, AvoidanceConfig, CongestionAvoidance, Controller, ControllerConfig, ExitReason, Signal, Window, start_of,
};
use flowstart_units::{Span, Time};

/// 20 Mbit/s.
const MBPS: u64 = 20;

fn seconds(n: u64) -> Time {
    Time::ZERO + Span::from_secs(n)
}

fn path(rtt: u64, buffer: u64) -> Path {
    Path { buffer, ..Path::new(MBPS, Span::from_millis(rtt)) }
}

fn flow(path: Path, data: u64) -> Loop {
    let avoidance = AvoidanceConfig::from_name("bbr3").unwrap();
    Loop::new(path, Controller::new(&ControllerConfig::new(start_of(&avoidance), avoidance)), data)
}

fn state(flow: &Loop) -> &Bbr3 {
    match flow.controller.avoidance() {
        Avoidance::Bbr3(bbr) => bbr,
        other => panic!("{other:?}"),
    }
}

/// Runs and notes when every state began, with the window at its end.
fn states(flow: &mut Loop, until: Time) -> Vec<(Time, Bbr3Mode)> {
    let mut modes: Vec<(Time, Bbr3Mode)> = Vec::new();
    flow.run(until, |flow| {
        let mode = state(flow).mode();
        if modes.last().is_none_or(|(_, before)| *before != mode) {
            modes.push((flow.now, mode));
        }
    });
    modes
}

fn of(modes: &[(Time, Bbr3Mode)], mode: Bbr3Mode) -> Vec<Time> {
    modes.iter().filter(|(_, other)| *other == mode).map(|(at, _)| *at).collect()
}

/// Share of the link from one time to another.
fn share(flow: &mut Loop, from: u64, to: u64) -> f64 {
    flow.run(seconds(from), |_| {});
    let before = flow.delivered;
    flow.run(seconds(to), |_| {});
    (flow.delivered - before) as f64 / Span::from_secs(to - from).ratio(flow.path.service())
}

#[test]
fn startup_doubles_and_ends_three_round_trips_after_the_path_is_full() {
    let mut flow = flow(path(50, 1_000), u64::MAX);
    assert_eq!(state(&flow).mode(), Bbr3Mode::Startup, "it brings a start of its own");
    let modes = states(&mut flow, seconds(3));
    let exit = *flow.controller.start_exit().unwrap();
    assert_eq!(exit.reason, ExitReason::RatePlateau);
    // 83 packets fill the path: 10 doubled four times, counted from the first ACK; then three round
    // trips that do not grow. One may have begun, and with a window of twice what the path holds
    // each takes up to twice as long.
    let rounds = exit.now.since(Time::ZERO).ratio(Span::from_millis(50));
    assert!((7.0..14.0).contains(&rounds), "{rounds} round trips");
    assert_eq!(modes[1], (exit.now, Bbr3Mode::Drain));
    let (drained, next) = modes[2];
    assert!(matches!(next, Bbr3Mode::ProbeDown | Bbr3Mode::ProbeCruise), "{next:?}");
    assert!(drained.since(exit.now) <= Span::from_millis(300), "{drained}");
    let bandwidth = state(&flow).bandwidth().unwrap().as_bps() as f64;
    assert!((bandwidth / (MBPS as f64 * 1e6 * 1448.0 / 1500.0) - 1.0).abs() < 0.02, "{bandwidth}");
}

/// Section 5.3.3.8: from one probe to the next pass 2 to 3 s of wall-clock time, or as many round
/// trips as the path holds packets, at most 63; refilling and probing take some more.
#[test]
fn probes_come_every_two_to_three_seconds_or_after_as_many_round_trips_as_packets_fit() {
    // The path of 20 ms holds 33 packets; a round trip may be a quarter longer, and eight for the
    // rest are enough.
    for (rtt, least, most) in [(20, 0.66, 41.0 * 0.025), (40, 2.0, 3.0 + 8.0 * 0.05), (100, 2.0, 3.0 + 8.0 * 0.125)] {
        let mut flow = flow(path(rtt, 2_000), u64::MAX);
        let modes = states(&mut flow, seconds(100));
        let ups = of(&modes, Bbr3Mode::ProbeUp);
        assert!(ups.len() > 12, "{rtt} ms: {} probes", ups.len());
        // A probe of the RTT in between begins the waiting anew.
        let rests = of(&modes, Bbr3Mode::ProbeRtt);
        let undisturbed = |pair: &[Time]| !rests.iter().any(|at| (pair[0]..pair[1]).contains(at));
        let gaps: Vec<f64> =
            ups.windows(2).filter(|pair| undisturbed(pair)).map(|pair| pair[1].since(pair[0]).as_secs_f64()).collect();
        assert!(!gaps.is_empty(), "{rtt} ms");
        assert!(gaps.iter().all(|gap| (least..most).contains(gap)), "{rtt} ms: {gaps:?}");
    }
}

/// Section 5.3.4: the smallest RTT is probed when it was not seen for 5 s, for 200 ms and a round
/// trip, with half of what the path holds; afterwards the window is what it was.
#[test]
fn the_rtt_is_probed_every_five_seconds_with_half_of_what_the_path_holds() {
    let mut flow = flow(path(50, 1_000), u64::MAX);
    let (mut modes, mut least, mut before, mut after) = (Vec::new(), u32::MAX, 0, Vec::new());
    flow.run(seconds(30), |flow| {
        let (mode, cwnd) = (state(flow).mode(), flow.controller.cwnd());
        if modes.last().is_none_or(|(_, last)| *last != mode) {
            if modes.last().is_some_and(|(_, last)| *last == Bbr3Mode::ProbeRtt) {
                after.push((before, cwnd));
            }
            modes.push((flow.now, mode));
        }
        if mode == Bbr3Mode::ProbeRtt { least = least.min(cwnd) } else { before = cwnd }
    });
    let begun = of(&modes, Bbr3Mode::ProbeRtt);
    assert!((4..=6).contains(&begun.len()), "{begun:?}");
    for pair in begun.windows(2) {
        let gap = pair[1].since(pair[0]);
        assert!((Span::from_secs(5)..Span::from_millis(5_600)).contains(&gap), "{gap}");
    }
    for pair in modes.windows(2).filter(|pair| pair[0].1 == Bbr3Mode::ProbeRtt) {
        let lasted = pair[1].0.since(pair[0].0);
        assert!((Span::from_millis(200)..Span::from_millis(400)).contains(&lasted), "{lasted}");
        assert_eq!(pair[1].1, Bbr3Mode::ProbeCruise);
    }
    // 83 packets at 50 ms.
    assert!((40..=44).contains(&least), "{least}");
    for (before, after) in after {
        assert!(after >= before, "{before} packets before, {after} after");
    }
}

/// Section 5.5.10.2: more than 2 % lost while it probes are too many, and what was in flight then
/// is the bound; while it cruises 15 % of that are left to others.
#[test]
fn a_probe_that_loses_too_much_bounds_what_is_in_flight_and_leaves_headroom() {
    let mut flow = flow(path(50, 30), u64::MAX);
    flow.run(seconds(10), |_| {});
    let mut cruising = Vec::new();
    flow.run(seconds(40), |flow| {
        let bbr = state(flow);
        if let (Bbr3Mode::ProbeCruise, Some(bound)) = (bbr.mode(), bbr.longterm_bound()) {
            cruising.push((flow.controller.cwnd(), bound));
        }
    });
    assert!(cruising.len() > 1_000, "{}", cruising.len());
    for (cwnd, bound) in cruising {
        // The path holds 83 packets and the buffer 30.
        assert!((70..=130).contains(&bound), "{bound}");
        assert!(f64::from(cwnd) <= 0.85 * f64::from(bound) + 1.0, "{cwnd} of {bound}");
    }
    let lost = flow.lost as f64 / flow.delivered as f64;
    assert!(lost < 0.02, "{lost}");
    assert!(share(&mut flow, 40, 60) > 0.85);
}

#[test]
fn one_packet_of_two_hundred_lost_costs_little_and_a_deep_buffer_stays_nearly_empty() {
    let lossy = Path { lose_every: 200, ..path(50, 1_000) };
    assert!(share(&mut flow(lossy, u64::MAX), 5, 30) > 0.85);
    let mut flow = flow(path(50, 1_000), u64::MAX);
    flow.run(seconds(5), |_| {});
    flow.max_queue = Span::ZERO;
    assert!(share(&mut flow, 5, 30) > 0.93);
    // A probe adds a quarter of a round trip's packets, and 2.25 of what the path holds are the
    // most.
    assert!(flow.max_queue < Span::from_millis(70), "{}", flow.max_queue);
}

#[test]
fn a_longer_way_is_believed_after_ten_seconds() {
    let mut flow = flow(path(30, 2_000), u64::MAX);
    flow.run(seconds(12), |_| {});
    flow.path.base_rtt = Span::from_millis(90);
    // Twice the smallest RTT's worth of packets no longer fill the path, until that is forgotten.
    assert!(share(&mut flow, 13, 16) < 0.8);
    assert!(share(&mut flow, 30, 45) > 0.9);
}

/// Section 5.4.1: after an idle time packets leave at the bandwidth, not faster; and no probe of
/// the RTT follows, for which the silence was as good.
#[test]
fn after_a_pause_it_goes_on_at_the_bandwidth_it_knew_without_probing_the_rtt() {
    let mut flow = flow(path(50, 1_000), 6_000);
    flow.run(seconds(60), |_| {});
    let known = state(&flow).bandwidth().unwrap();
    flow.pause(Span::from_secs(8));
    let rate = flow.controller.avoidance().pacing_rate().unwrap();
    assert!((rate.as_bps() as f64 / known.as_bps() as f64 - 0.99).abs() < 0.01, "{rate} of {known}");
    (flow.data, flow.max_queue) = (800, Span::ZERO);
    let first_ack = flow.now + Span::from_millis(49);
    flow.run(first_ack, |_| {});
    assert!(flow.max_queue < Span::from_millis(5), "{}", flow.max_queue);
    let modes = states(&mut flow, seconds(100));
    assert!(of(&modes, Bbr3Mode::ProbeRtt).is_empty(), "{modes:?}");
}

#[test]
fn a_loss_leaves_the_window_where_it_is_and_a_needless_one_restores_it() {
    let mut flow = flow(path(50, 1_000), u64::MAX);
    flow.run(seconds(4), |_| {});
    let mut bbr = state(&flow).clone();
    for signal in [Signal::Loss, Signal::Marks, Signal::Timeout] {
        assert_eq!(bbr.reduce(flow.now, signal, &Window::new(123)), 123);
    }
    assert_eq!(bbr.undo(123, &Window::new(50)), 123, "what the window was before the losses");
}
