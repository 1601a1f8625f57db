//! The generations of Paced Chirping against each other, over one FIFO.

use crate::common::{Loop, MSS, Path};
use flowstart_congestion::start::{
    AdaptiveChirpingConfig, ChirpingOrHystart, PacedChirping, PacedChirpingConfig, Start, TwoGapChirping,
    TwoGapChirpingConfig,
};
use flowstart_congestion::{
    Avoidance, AvoidanceConfig, Controller, ControllerConfig, ExitReason, FlowStart, StartConfig, StartExit,
};
use flowstart_units::{Span, Time};

fn controller(start: impl FlowStart + Clone + Send + Sync + 'static) -> Controller {
    let config = ControllerConfig::new(StartConfig::SlowStart, AvoidanceConfig::Reno);
    Controller::join(Start::External(Box::new(start)), Avoidance::new(&config), &config)
}

fn published() -> Controller {
    controller(PacedChirping::new(&PacedChirpingConfig::default(), MSS))
}

fn two_gap() -> Controller {
    controller(TwoGapChirping::new(&TwoGapChirpingConfig::default(), MSS))
}

fn adaptive() -> Controller {
    controller(ChirpingOrHystart::new(&AdaptiveChirpingConfig::default(), 10, false, MSS))
}

/// What came of a start.
#[derive(Debug)]
struct StartedFlow {
    exit: StartExit,
    round_trips: f64,
    of_bdp: f64,
    /// Longest queue of the start in packets.
    queued_packets: f64,
}

fn until_exit(path: Path, controller: Controller) -> Option<StartedFlow> {
    let mut flow = Loop::new(path, controller, u64::MAX);
    let mut queue = None;
    let mut rounds = 1..=60;
    while let Some(round) = rounds.next().filter(|_| flow.controller.is_starting()) {
        flow.run(Time::ZERO + path.rtt0() * round, |flow| {
            if !flow.controller.is_starting() {
                queue.get_or_insert(flow.max_queue);
            }
        });
    }
    let exit = *flow.controller.start_exit()?;
    let share = |packets: u32| f64::from(packets) * path.service().ratio(path.rtt0());
    Some(StartedFlow {
        exit,
        round_trips: exit.now.since(Time::ZERO).ratio(path.rtt0()),
        of_bdp: share(exit.cwnd),
        queued_packets: queue?.ratio(path.service()),
    })
}

fn on(mbps: u64, rtt_ms: u64, controller: Controller) -> StartedFlow {
    until_exit(Path::new(mbps, Span::from_millis(rtt_ms)), controller).expect("every start ends")
}

/// Paths whose BDP is at least three initial windows: 30 to 83 000 packets.
const PATHS: [(u64, u64); 9] =
    [(20, 50), (100, 5), (100, 20), (150, 15), (100, 100), (800, 100), (1000, 20), (10_000, 20), (10_000, 100)];

/// Where timers go off every 2 ms, gaps of 0.1 ms are not kept: chirps say nothing.
#[test]
fn on_a_host_that_keeps_no_gaps_the_adaptive_schedule_starts_as_slow_start_and_ends_as_hystart() {
    let path = Path::new(100, Span::from_millis(40));
    let mut flow = Loop::new(path, adaptive(), u64::MAX);
    flow.tick = Span::from_millis(2);
    let mut windows = Vec::new();
    for round in 1..=12 {
        flow.run(Time::ZERO + path.rtt0() * round, |_| {});
        windows.push(flow.controller.cwnd());
    }
    let exit = flow.controller.start_exit().expect("it ends");
    assert!([ExitReason::AckTrain, ExitReason::DelayIncrease].contains(&exit.reason), "{exit:?} {windows:?}");
    // The path holds 333 packets, and HyStart leaves when an eighth more are on it.
    assert!((300..=700).contains(&exit.cwnd), "{exit:?} {windows:?}");
    // Slow start from ten packets takes six round trips; the two in which it was tried are more.
    assert!(exit.now <= Time::ZERO + path.rtt0() * 9, "{exit:?} {windows:?}");
    // A host that is late now and then chirps on.
    let tolerant = AdaptiveChirpingConfig { late_share: 1.0, ..AdaptiveChirpingConfig::default() };
    let mut chirping = Loop::new(path, controller(ChirpingOrHystart::new(&tolerant, 10, false, MSS)), u64::MAX);
    chirping.tick = Span::from_millis(2);
    chirping.run(Time::ZERO + path.rtt0() * 9, |_| {});
    let reason = chirping.controller.start_exit().map(|exit| exit.reason);
    assert!(!matches!(reason, Some(ExitReason::AckTrain | ExitReason::DelayIncrease)), "{reason:?}");
}

#[test]
fn the_adaptive_schedule_finds_the_capacity_of_an_idle_path_within_ten_round_trips_and_three_packets_of_queue() {
    for (mbps, rtt) in PATHS {
        let outcome = on(mbps, rtt, adaptive());
        let what = format!("{mbps} Mbit/s, {rtt} ms: {outcome:?}");
        assert_eq!(outcome.exit.reason, ExitReason::PipeFull, "{what}");
        assert!((0.95..=1.02).contains(&outcome.of_bdp), "{what}");
        // Beyond 512 packets the load at most doubles: token buckets let more pass than they keep
        // up.
        let most = if mbps * rtt < 1_000_000 { 9.0 } else { 10.0 };
        assert!(outcome.round_trips <= most, "{what}");
        assert!(outcome.queued_packets <= 3.0, "{what}");
    }
}

#[test]
fn the_adaptive_schedule_needs_fewer_round_trips_than_the_others_and_comes_closer_to_the_capacity() {
    for (mbps, rtt) in PATHS {
        let [adaptive, published, two_gap] = [adaptive(), published(), two_gap()].map(|start| on(mbps, rtt, start));
        let error = |outcome: &StartedFlow| (outcome.of_bdp - 1.0).abs();
        // One that ends far from the capacity, as the published on 10 Gbit/s, has found nothing.
        for other in [published, two_gap].iter().filter(|other| error(other) < 0.5) {
            assert!(adaptive.round_trips < other.round_trips, "{mbps} {rtt}: {adaptive:?} {other:?}");
            assert!(error(&adaptive) <= error(other), "{mbps} {rtt}: {adaptive:?} {other:?}");
        }
    }
}

/// The shortest gap of a first chirp is 200 µs, twice this round-trip time.
#[test]
fn a_first_chirp_takes_no_longer_than_a_round_trip() {
    let outcome = until_exit(Path::new(10_000, Span::from_micros(100)), adaptive()).expect("every start ends");
    assert!(outcome.round_trips <= 8.0, "{outcome:?}");
    assert!((0.9..=1.05).contains(&outcome.of_bdp), "{outcome:?}");
}

/// Where the initial window nearly fills the path, or overfills it, the queue it leaves is drained
/// by the window that follows. Eight packets of it are the first chirp; where they do not show the
/// knee a second one does, a round trip later.
#[test]
fn on_paths_of_less_than_two_initial_windows_the_adaptive_window_still_fits() {
    for (mbps, rtt) in [(5, 20), (10, 20), (20, 5)] {
        let outcome = on(mbps, rtt, adaptive());
        // What fits whole and one more.
        let cwnd = f64::from(outcome.exit.cwnd);
        let bdp = cwnd / outcome.of_bdp;
        assert!((bdp..=bdp + 1.0).contains(&cwnd), "{mbps} {rtt}: {outcome:?}");
        // Two round trips must agree.
        assert!(outcome.round_trips <= 5.0, "{mbps} {rtt}: {outcome:?}");
    }
}

/// Until the first chirp is read a packet leaves only for one that arrived.
#[test]
fn a_path_that_holds_the_initial_window_and_little_more_loses_nothing_of_an_adaptive_start() {
    for (mbps, rtt) in [(2, 20), (5, 20), (20, 5), (50, 10)] {
        let mut path = Path::new(mbps, Span::from_millis(rtt));
        path.buffer = 10;
        let mut flow = Loop::new(path, adaptive(), u64::MAX);
        while flow.controller.is_starting() {
            flow.run(flow.now + path.rtt0(), |_| {});
        }
        assert_eq!(flow.lost, 0, "{mbps} Mbit/s, {rtt} ms");
    }
}

/// The load approaches the probe gap by an eighth of the difference per chirp. A model of that
/// schedule alone needs 13.7 round trips on the first path and 13.9 on the second; here its first
/// chirp is the initial window and the exit waits for what is in flight, so that it takes up to two
/// more.
#[test]
fn the_two_gap_schedule_is_slow_and_keeps_the_queue_at_a_few_packets() {
    for (mbps, rtt) in [(100, 20), (150, 15)] {
        let outcome = on(mbps, rtt, two_gap());
        assert_eq!(outcome.exit.reason, ExitReason::PipeFull);
        assert!((13.0..=16.0).contains(&outcome.round_trips), "{mbps} {rtt}: {outcome:?}");
        assert!((0.95..=1.0).contains(&outcome.of_bdp), "{mbps} {rtt}: {outcome:?}");
        assert!(outcome.queued_packets <= 4.0, "{mbps} {rtt}: {outcome:?}");
    }
}

/// The authors' code gives up after 200 chirps, which is less than a large pipe needs.
#[test]
fn the_two_gap_schedule_ends_by_its_limit_where_the_pipe_is_large() {
    for (mbps, rtt) in [(100, 100), (10_000, 100)] {
        assert_eq!(on(mbps, rtt, two_gap()).exit.reason, ExitReason::Limit, "{mbps} {rtt}");
    }
}
