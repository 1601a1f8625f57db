//! Chirping again after the start: when marks vanish, after idle times, after timeouts.

use crate::common::{Loop, Path};
use flowstart_congestion::{AvoidanceConfig, Controller, ControllerConfig, StartConfig};
use flowstart_units::{Rate, Span, Time};

fn controller(start: &str, avoidance: &str) -> Controller {
    let start = StartConfig::from_name(start).unwrap();
    let avoidance = AvoidanceConfig::from_name(avoidance).unwrap();
    Controller::new(&ControllerConfig::new(start, avoidance))
}

/// Times a start was in charge again after the first.
fn times_again(flow: &mut Loop, until: Time) -> Vec<f64> {
    let mut before = flow.controller.start_is_in_charge();
    let mut times = Vec::new();
    let rtt0 = flow.path.rtt0();
    flow.run(until, |flow| {
        let now = flow.controller.start_is_in_charge();
        if now && !before {
            times.push(flow.now.since(Time::ZERO).ratio(rtt0));
        }
        before = now;
    });
    times
}

/// A path of this many packets per round trip, which marks packets that wait longer than `mark_ms`,
/// and than two packets take.
fn step_marking(bdp: u64, rtt_ms: u64, mark_ms: u64) -> Path {
    let mut path = Path::new(1, Span::from_millis(rtt_ms));
    path.rate = Rate::from_bps(bdp * u64::from(crate::common::WIRE) * 8 * 1000 / rtt_ms);
    path.mark_above = Span::from_millis(mark_ms).max(path.service() * 2);
    path
}

/// One DCTCP flow at a step-marking queue is marked once per saw-tooth, every sqrt(BDP / 2) round
/// trips or so. Its first reductions, with an alpha still near one, free more capacity than chirps
/// need to have a point; once alpha has settled, which takes up to 13 saw-teeth, silence is normal.
#[test]
fn the_normal_silence_of_a_step_marking_queue_brings_no_chirps() {
    for bdp in [10, 50, 200, 1000, 5000] {
        for mark_ms in [1, 5] {
            let path = step_marking(bdp, 100, mark_ms);
            let mut flow = Loop::new(path, controller("adaptive_chirping", "dctcp"), u64::MAX);
            let rtts = |n: u64| Time::ZERO + path.rtt0() * n;
            let period = (bdp as f64 / 2.0).sqrt();
            let settling = times_again(&mut flow, rtts((15.0 * period).max(100.0) as u64));
            let settled = times_again(&mut flow, rtts((40.0 * period).max(400.0) as u64));
            assert!(settling.len() <= 4, "{bdp} packets, {mark_ms} ms: {settling:?}");
            assert!(settled.is_empty(), "{bdp} packets, {mark_ms} ms: {settled:?}");
        }
    }
}

/// Round trips from a change of capacity, `at` so many round trips, to a delivery of nine tenths of
/// the new capacity over one round trip, and the longest queue from one round trip after the change
/// on: what waited then has come through.
fn refill(start: &str, from: u64, to: u64, rtt_ms: u64, at: u64) -> (Option<f64>, Span) {
    let mut path = Path::new(from, Span::from_millis(rtt_ms));
    path.mark_above = Span::from_millis(1).max(path.service() * 2);
    let mut flow = Loop::new(path, controller(start, "dctcp"), u64::MAX);
    let rtts = |n: u64| Time::ZERO + path.rtt0() * n;
    flow.run(rtts(at), |_| {});
    flow.path.rate = Rate::from_mbps(to);
    let (mut since, mut delivered, mut full) = (flow.now, flow.delivered, None);
    flow.run(rtts(at + 1), |_| {});
    flow.max_queue = Span::ZERO;
    flow.run(rtts(at + 500), |flow| {
        let time = flow.now.since(since);
        if time > path.rtt0() {
            let share = (flow.delivered - delivered) as f64 * flow.path.service().ratio(time);
            if share >= 0.9 {
                full.get_or_insert(flow.now.since(rtts(at)).ratio(path.rtt0()));
            }
            (since, delivered) = (flow.now, flow.delivered);
        }
    });
    (full, flow.max_queue)
}

/// The capacity steps of "Rethinking TCP start-up" (netdev 0x13, Figures 4 and 5), and another.
#[test]
fn when_capacity_comes_free_chirps_fill_it_in_tens_of_round_trips_where_dctcp_alone_needs_hundreds() {
    for (from, to, rtt) in [(50, 100, 100), (50, 800, 100), (5, 50, 20)] {
        let (with, queue) = refill("adaptive_chirping", from, to, rtt, 200);
        let (without, _) = refill("paced_chirping", from, to, rtt, 200);
        let what = format!("{from} to {to} Mbit/s, {rtt} ms: {with:?}, alone {without:?}, queue {queue}");
        let with = with.expect(&what);
        assert!(with <= 50.0, "{what}");
        assert!(without.is_none_or(|without| without > 4.0 * with), "{what}");
        assert!(queue <= Span::from_millis(5), "{what}");
    }
}

/// A single DCTCP flow of 1667 packets is not marked for 49 round trips after each of its
/// reductions. Silence is too long after the mean, four first deviations of half of it (RFC 6298)
/// and two round trips; ten more are left for the chirps.
#[test]
fn with_a_long_saw_tooth_capacity_that_comes_free_is_noticed_within_three_of_its_periods_whenever_it_comes() {
    for at in (200..250).step_by(10) {
        let (with, queue) = refill("adaptive_chirping", 1000, 2000, 20, at);
        let what = format!("at {at}: {with:?}, queue {queue}");
        assert!(with.expect(&what) <= 3.0 * 49.0 + 2.0 + 10.0, "{what}");
        assert!(queue <= Span::from_millis(5), "{what}");
    }
    assert_eq!(refill("paced_chirping", 1000, 2000, 20, 200).0, None, "DCTCP alone");
}

#[test]
fn a_control_that_is_not_scalable_brings_no_chirps() {
    for avoidance in ["cubic", "reno"] {
        let mut path = step_marking(200, 100, 1);
        let mut flow = Loop::new(path, controller("adaptive_chirping", avoidance), u64::MAX);
        path.rate = Rate::from_mbps(100);
        flow.path = path;
        assert!(times_again(&mut flow, Time::ZERO + path.rtt0() * 300).is_empty(), "{avoidance}");
    }
}

#[test]
fn after_an_idle_time_chirps_find_the_capacity_again_without_a_burst() {
    let mut path = Path::new(100, Span::from_millis(50));
    path.buffer = 500;
    let mut flow = Loop::new(path, controller("adaptive_chirping", "cubic"), u64::MAX);
    let rtts = |n: u64| Time::ZERO + path.rtt0() * n;
    flow.run(rtts(10), |_| {});
    assert!(!flow.controller.is_starting());
    // The application pauses for five seconds, longer than any timeout.
    flow.data = 0;
    flow.run(rtts(20), |_| {});
    let idle = Span::from_secs(5);
    flow.pause(idle);
    assert!(flow.controller.start_is_in_charge(), "the start is in charge again");
    let at = flow.now;
    flow.max_queue = Span::ZERO;
    flow.data = u64::MAX;
    let (before, mut back) = (flow.delivered, None);
    flow.run(at + path.rtt0() * 8, |flow| {
        if !flow.controller.start_is_in_charge() {
            back.get_or_insert((flow.now.since(at).ratio(path.rtt0()), flow.controller.cwnd(), flow.max_queue));
        }
    });
    let (round_trips, cwnd, queue) = back.expect("it ends");
    let bdp = path.rtt0().ratio(path.service());
    assert!(round_trips <= 5.0, "{round_trips}");
    assert!((0.9..=1.1).contains(&(f64::from(cwnd) / bdp)), "{cwnd} of {bdp}");
    assert!(queue <= path.service() * 4, "{queue}");
    assert!((flow.delivered - before) as f64 > 2.0 * bdp, "{}", flow.delivered - before);
}

/// A timeout halves the window twice over (threshold and repair); Reno needs a round trip per
/// packet to get it back, chirps a few in all.
#[test]
fn after_a_timeout_what_was_lost_is_repaired_and_chirps_find_the_capacity_again() {
    let mut path = Path::new(100, Span::from_millis(50));
    path.buffer = 500;
    let rtts = |n: u64| Time::ZERO + path.rtt0() * n;
    let bdp = path.rtt0().ratio(path.service());
    let recovered = |start: &str| {
        let mut flow = Loop::new(path, controller(start, "reno"), u64::MAX);
        flow.run(rtts(12), |_| {});
        // Everything is lost for a while.
        flow.path.buffer = 0;
        flow.run(rtts(20), |_| {});
        flow.path.buffer = path.buffer;
        let mut repaired = None;
        let mut full = None;
        flow.run(rtts(150), |flow| {
            let delivered = flow.delivered;
            if flow.now > rtts(21) {
                repaired.get_or_insert(delivered);
            }
            if flow.controller.cwnd() >= (0.9 * bdp) as u32 && !flow.controller.start_is_in_charge() {
                full.get_or_insert(flow.now.since(Time::ZERO).ratio(path.rtt0()));
            }
        });
        assert!(flow.timeouts >= 1, "{start}");
        assert!(!flow.controller.start_is_in_charge(), "{start}: chirps end");
        (full, flow.controller.cwnd())
    };
    let (full, cwnd) = recovered("adaptive_chirping");
    let (without, _) = recovered("slow_start");
    let full = full.expect("the window comes back");
    assert!(without.is_none_or(|without| without > full + 40.0), "{full} {without:?}");
    assert!(f64::from(cwnd) <= 1.5 * bdp + 200.0, "{cwnd} of {bdp}");
}
