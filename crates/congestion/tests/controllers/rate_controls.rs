//! Rate-based controls in a closed loop: one flow with a queue of its own.

use crate::common::{Loop, Path};
use flowstart_congestion::{AvoidanceConfig, Controller, ControllerConfig, StartConfig};
use flowstart_units::{Span, Time};

/// The section 5.4 grid of Bachl, Fabini and Zseby (2020), every second value of each, without the
/// buffer of one packet: Mbit/s, RTT in ms, buffer in packets.
const RATES: [u64; 3] = [5, 28, 50];
const DELAYS: [u64; 3] = [10, 56, 100];
const BUFFERS: [u64; 2] = [50, 100];

fn seconds(n: u64) -> Time {
    Time::ZERO + Span::from_secs(n)
}

/// A flow that leaves slow start with `windows` bandwidth-delay products.
fn flow(path: Path, windows: f64, avoidance: &str) -> Loop {
    let mut config = ControllerConfig::new(StartConfig::SlowStart, AvoidanceConfig::from_name(avoidance).unwrap());
    config.initial_ssthresh = Some((path.rtt0().ratio(path.service()) * windows) as u32);
    Loop::new(path, Controller::new(&config), u64::MAX)
}

/// Share of the link, and mean queueing delay in ms, from `from` to `to` seconds.
fn measure(flow: &mut Loop, from: u64, to: u64) -> (f64, f64) {
    flow.run(seconds(from), |_| {});
    let before = flow.delivered;
    let mut counted = before;
    let (mut sum, mut count) = (0.0, 0.0);
    flow.run(seconds(to), |flow| {
        if flow.delivered > counted {
            counted = flow.delivered;
            sum += flow.rtt.as_millis_f64() - flow.path.rtt0().as_millis_f64();
            count += 1.0;
        }
    });
    let capacity = Span::from_secs(to - from).ratio(flow.path.service());
    ((flow.delivered - before) as f64 / capacity, sum / count)
}

/// Mean throughput in Mbit/s and mean queueing delay in ms over the grid, the first 20 s of every
/// flow.
fn grid(avoidance: &str) -> (f64, f64) {
    let (mut throughput, mut delay, mut count) = (0.0, 0.0, 0.0);
    for rate in RATES {
        for rtt in DELAYS {
            for buffer in BUFFERS {
                let path = Path { buffer, ..Path::new(rate, Span::from_millis(rtt)) };
                let (share, queue) = measure(&mut flow(path, 1.0, avoidance), 0, 20);
                throughput += share * rate as f64;
                delay += queue;
                count += 1.0;
            }
        }
    }
    (throughput / count, delay / count)
}

/// Without the buffer of one packet, where the published rule takes no notice of its losses and its
/// rate grows for ever. Most of the published rule's mean delay comes from the two cells of 5
/// Mbit/s and 10 ms, whose start fills the buffer: it takes seconds to drain it. In the others it
/// has about 2 ms, the target control 1 ms at 28 and 50 Mbit/s and a packet's time, 2.4 ms, at 5
/// Mbit/s.
#[test]
fn over_the_grid_the_delay_target_carries_more_than_the_published_rule_with_less_than_half_its_delay() {
    let (published, target) = (grid("vegas_like"), grid("delay_target"));
    assert!(target.0 >= published.0, "{} against {} Mbit/s", target.0, published.0);
    assert!(target.1 < published.1 / 2.0, "{} against {} ms", target.1, published.1);
}

#[test]
fn in_a_buffer_of_one_packet_the_delay_target_uses_more_than_80_percent() {
    for rate in RATES {
        for rtt in DELAYS {
            let path = Path { buffer: 2, ..Path::new(rate, Span::from_millis(rtt)) };
            let (share, _) = measure(&mut flow(path, 1.0, "delay_target"), 0, 30);
            assert!(share > 0.8, "{rate} Mbit/s, {rtt} ms: {share}");
        }
    }
}

/// Time from the end of the start until its queue is below 2 ms, in round trips of the longest
/// queue in between; mean queue after that in ms.
fn drain(windows: f64) -> (f64, f64) {
    let mut flow = flow(Path::new(50, Span::from_millis(50)), windows, "delay_target");
    let (mut drained, mut longest) = (None, Span::ZERO);
    let (mut sum, mut count) = (0.0, 0.0);
    flow.run(seconds(10), |flow| {
        let Some(exit) = flow.controller.start_exit() else { return };
        let queue = flow.rtt.as_millis_f64() - flow.path.rtt0().as_millis_f64();
        // What left before the end of the start arrives for another round trip.
        if queue < 2.0 && flow.now.since(exit.now) > flow.path.rtt0() {
            drained.get_or_insert(flow.now);
        }
        if drained.is_none() {
            longest = longest.max(flow.rtt);
        } else {
            sum += queue;
            count += 1.0;
        }
    });
    let exit = flow.controller.start_exit().unwrap();
    (drained.unwrap().since(exit.now).ratio(longest), sum / count)
}

/// A third too much is what a flow starts with that takes the sum of two flows' shares beside one
/// other flow.
#[test]
fn a_start_above_the_fair_share_is_drained_within_five_round_trips() {
    for windows in [1.33, 2.0, 3.0] {
        let (rounds, afterwards) = drain(windows);
        assert!(rounds < 5.0, "{rounds} round trips from {windows} BDP");
        assert!(afterwards < 2.0, "{afterwards} ms from {windows} BDP");
    }
}

/// Share of the link in the last seconds, after the path became 30 ms longer.
fn after_a_longer_route(avoidance: &str) -> f64 {
    let mut flow = flow(Path::new(20, Span::from_millis(30)), 1.0, avoidance);
    measure(&mut flow, 0, 5);
    flow.path.base_rtt = Span::from_millis(60);
    measure(&mut flow, 20, 30).0
}

#[test]
fn after_a_longer_route_the_delay_target_recovers_and_the_published_rule_starves() {
    let (target, published) = (after_a_longer_route("delay_target"), after_a_longer_route("vegas_like"));
    assert!(target > 0.9, "{target}");
    assert!(published < 0.1, "{published}");
}

#[test]
fn vivace_and_allegro_keep_the_link_busy_and_only_the_utility_with_latency_keeps_the_queue_short() {
    let path = Path { buffer: 200, ..Path::new(50, Span::from_millis(30)) };
    for (avoidance, least_queue, most_queue) in
        [("vivace_loss", 20.0, 50.0), ("allegro", 20.0, 50.0), ("vivace", 0.0, 10.0)]
    {
        let (share, queue) = measure(&mut flow(path, 1.0, avoidance), 10, 30);
        assert!(share > 0.9, "{avoidance}: {share}");
        assert!((least_queue..most_queue).contains(&queue), "{avoidance}: {queue} ms");
    }
}

#[test]
fn vivace_without_latency_tolerates_two_percent_of_random_loss() {
    for avoidance in ["vivace_loss", "vivace", "allegro"] {
        let path = Path { lose_every: 50, ..Path::new(50, Span::from_millis(30)) };
        let (share, _) = measure(&mut flow(path, 1.0, avoidance), 10, 30);
        assert!(share > 0.8, "{avoidance}: {share}");
    }
}
