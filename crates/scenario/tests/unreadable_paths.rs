//! What adaptive chirping cannot read costs little: it becomes HyStart within two round trips.

use std::ops::RangeInclusive;

use flowstart_congestion::ExitReason;
use flowstart_congestion::start::Start;
use flowstart_scenario::Scenario;
use flowstart_simulator::{FlowId, FlowOutcome, Observer, Simulation};
use flowstart_transport::Sender;
use flowstart_units::{Span, Time};

/// When the first flow's start gave its chirps up.
#[derive(Default)]
struct Watch {
    gave_up: Option<Time>,
}

impl Observer for Watch {
    fn sender(&mut self, now: Time, flow: FlowId, sender: &Sender) {
        if flow == 0
            && let Start::AdaptiveChirping(start) = sender.controller().start()
            && start.gave_up()
        {
            self.gave_up.get_or_insert(now);
        }
    }
}

fn run(start: &str, size: &str, path: &str, receiver: &str) -> (FlowOutcome, Option<Time>) {
    run_seed(start, size, path, receiver, 1)
}

fn run_seed(start: &str, size: &str, path: &str, receiver: &str, seed: u64) -> (FlowOutcome, Option<Time>) {
    run_flow(start, path, &format!("size = \"{size}\"\nreceiver = {{ {receiver} }}\n"), seed)
}

/// The same of a flow with these keys.
fn run_flow(start: &str, path: &str, keys: &str, seed: u64) -> (FlowOutcome, Option<Time>) {
    let text = format!(
        "duration = \"60 s\"\nseed = {seed}\nstop_when_complete = true\n[path]\n{path}\n[[flow]]\nalgorithm = \"{start}+cubic\"\n\
         {keys}"
    );
    let compiled = Scenario::parse("test", &text).unwrap().simulation(0).unwrap();
    let (mut outcome, watch) = Simulation::new(&compiled.simulation, Watch::default()).unwrap().run();
    (outcome.flows.remove(0), watch.gave_up)
}

fn seconds(flow: &FlowOutcome) -> f64 {
    flow.completed.expect("completes").since(flow.started).as_secs_f64()
}

/// Completion times of this start over HyStart's, with each of these seeds.
fn ratios(size: &str, path: &str, receiver: &str, seeds: RangeInclusive<u64>) -> Vec<f64> {
    let time = |start, seed| seconds(&run_seed(start, size, path, receiver, seed).0);
    seeds.map(|seed| time("adaptive_chirping", seed) / time("hystart", seed)).collect()
}

fn path(mbps: u32, rtt_ms: u32) -> String {
    format!("capacity = \"{mbps} Mbit/s\"\nrtt = \"{rtt_ms} ms\"")
}

/// Capacity, RTT, and the time over which the receiver's ACKs are merged into one: a tenth of the
/// round trip or more.
const MERGED: [(u32, u32, u32); 5] = [(300, 20, 2), (80, 30, 5), (20, 40, 8), (150, 25, 3), (500, 10, 1)];

#[test]
fn merged_acks_never_cost_more_than_a_tenth_of_the_reference() {
    for (mbps, rtt, period) in MERGED {
        for size in ["100 kB", "1 MB", "10 MB"] {
            let receiver = format!("ack_aggregation = \"{period} ms\"");
            let time = |start| seconds(&run(start, size, &path(mbps, rtt), &receiver).0);
            let ratio = time("adaptive_chirping") / time("hystart");
            assert!(ratio <= 1.10, "{mbps} Mbit/s, {rtt} ms, merged over {period} ms, {size}: {ratio}");
        }
    }
}

#[test]
fn an_ack_for_many_packets_never_costs_more_than_a_tenth_of_the_reference() {
    for every in [8, 16] {
        for size in ["1 MB", "10 MB"] {
            let receiver = format!("ack_every = {every}, quick_acks = 0");
            let time = |start| seconds(&run(start, size, &path(80, 30), &receiver).0);
            let ratio = time("adaptive_chirping") / time("hystart");
            assert!(ratio <= 1.10, "an ACK per {every} packets, {size}: {ratio}");
        }
    }
}

/// Gaps of 200 us made the first window of ten take a good part of a short round trip, which
/// HyStart saves: with 10 Gbit/s and 2 ms 1 MB took 1.35 of its time. Sizes differ, since what is
/// lost last waits.
#[test]
fn short_ways_never_cost_more_than_a_tenth_of_the_reference() {
    for mbps in [100, 500, 1000, 2500, 10_000] {
        for rtt_us in [500, 1000, 2000, 4000, 6000] {
            for size in [300, 1000, 10_000] {
                let path = format!("capacity = \"{mbps} Mbit/s\"\nrtt = \"{rtt_us} us\"");
                let time = |start| {
                    let sizes = [0, 3, 6].map(|more| format!("{} kB", size + more));
                    sizes.map(|size| seconds(&run(start, &size, &path, "ack_every = 2").0)).iter().sum::<f64>()
                };
                let ratio = time("adaptive_chirping") / time("hystart");
                assert!(ratio <= 1.10, "{mbps} Mbit/s, {rtt_us} us, {size} kB: {ratio}");
            }
        }
    }
}

/// Paths that hold 6.6 and 13 packets. The window that chirps found left out what a receiver keeps
/// back, and a packet of the start that was lost cut it once more: 150 kB over 10 Mbit/s and 8 ms
/// took 1.33 of HyStart's time. Sizes differ, since what is lost last waits for a timer.
#[test]
fn paths_that_hold_few_packets_never_cost_more_than_a_sixth_of_the_reference() {
    for (mbps, rtt) in [(20, 4), (10, 8), (5, 16), (40, 4), (20, 8), (10, 16)] {
        for (buffer, every) in [("1 BDP", 2), ("1 BDP", 1), ("2 BDP", 2), ("100 packets", 2)] {
            let path = format!("{}\nbuffer = \"{buffer}\"", path(mbps, rtt));
            let time = |start| {
                let sizes = (0..6).map(|n| format!("{} B", 150_000 + 3000 * n));
                sizes.map(|size| seconds(&run(start, &size, &path, &format!("ack_every = {every}")).0)).sum::<f64>()
            };
            let ratio = time("adaptive_chirping") / time("hystart");
            assert!(ratio <= 1.17, "{mbps} Mbit/s, {rtt} ms, {buffer}, an ACK per {every}: {ratio}");
        }
    }
}

/// Among reordering no chirp could be read, and for another round trip the load doubled: these 12
/// flows lost 331 packets in the start, without that 183, and HyStart loses 91.
#[test]
fn reordering_on_a_short_way_fills_no_buffer() {
    let lost = |start| {
        let path = format!("{}\njitter = {{ spread = \"100 us\", reorder = true }}\nbuffer = \"1 BDP\"", path(100, 1));
        (1..=12).map(|seed| run_seed(start, "150 kB", &path, "ack_every = 2", seed).0.dropped_in_start).sum::<u64>()
    };
    let (ours, hystart) = (lost("adaptive_chirping"), lost("hystart"));
    assert!(ours <= 240, "{ours} packets lost, by HyStart {hystart}");
}

/// ACKs that come in batches are unreadable. HyStart's rounds, when it took over, began in the
/// middle of a burst and found no pause to begin anew: all of a round trip was one train of ACKs,
/// which ended the start at 23 packets, and 10 MB took up to 5.9 times as long.
#[test]
fn bunches_on_a_short_way_never_cost_more_than_a_quarter_of_the_reference() {
    for (mbps, rtt_us, every) in
        [(10_000, 4007, 400), (2500, 4007, 400), (1000, 4007, 400), (10_000, 2007, 660), (2500, 1007, 330)]
    {
        let slots = format!("medium = {{ slots = {{ every = \"{every} us\", errors = 0, again_after = \"8 ms\" }} }}");
        let path = format!("capacity = \"{mbps} Mbit/s\"\nrtt = \"{rtt_us} us\"");
        for (path, receiver) in [
            (format!("{path}\n{slots}"), "ack_every = 2".to_owned()),
            (path, format!("ack_every = 2, ack_aggregation = \"{every} us\"")),
        ] {
            for size in ["1 MB", "10 MB"] {
                let time = |start| seconds(&run(start, size, &path, &receiver).0);
                let ratio = time("adaptive_chirping") / time("hystart");
                assert!(ratio <= 1.25, "{path}, {receiver}, {size}: {ratio}");
            }
        }
    }
}

/// HyStart that took over among jitter had no train to go by and waited for RTTs that rise by 4 ms,
/// most of the buffer: without a rule for short ways these 24 flows lost 2520 packets and took 1.06
/// of its time, with it 1301 and 1.016.
#[test]
fn jitter_on_a_short_way_fills_no_buffer() {
    let (mut lost, mut ratio) = (0, 0.0);
    for (mbps, rtt, jitter) in [(500, 5, 300), (900, 5, 250), (300, 7, 350)] {
        let path = format!("{}\njitter = \"{jitter} us\"", path(mbps, rtt));
        for seed in 101..=108 {
            let [ours, hystart] =
                ["adaptive_chirping", "hystart"].map(|start| run_seed(start, "10 MB", &path, "", seed).0);
            lost += ours.dropped_in_start;
            ratio += seconds(&ours) / seconds(&hystart) / 24.0;
        }
    }
    assert!(lost <= 1800 && ratio <= 1.03, "{lost} packets lost, {ratio} of the time");
}

/// Chirps that doubted grew more slowly for longer than HyStart took for all: 1 MB took 1.3, 1.25
/// and 1.2 of its time.
#[test]
fn jitter_on_a_short_way_costs_no_time() {
    for (mbps, rtt, jitter) in [(900, 5, 300), (900, 6, 250), (500, 6, 300)] {
        let path = format!("{}\njitter = \"{jitter} us\"", path(mbps, rtt));
        let ratios = ratios("1 MB", &path, "", 1..=16);
        let mean = ratios.iter().sum::<f64>() / 16.0;
        assert!(mean <= 1.06, "{mbps} Mbit/s, {rtt} ms, {jitter} us: {mean}");
    }
}

/// What took over paced until its window was full, at the gap that it had at first. Where packets
/// leave in bursts and their ACKs are merged it never was: the window grew, the load did not, and
/// 20 MB took 9 times as long as with HyStart.
#[test]
fn offloads_at_both_ends_of_a_short_way_hold_nothing_back() {
    for (mbps, rtt_us, buffer, size) in [
        (25_000, 500, 1.0, "20 MB"),
        (25_000, 500, 1.0, "8 MB"),
        (10_000, 500, 0.25, "1 MB"),
        (10_000, 1000, 0.25, "3 MB"),
    ] {
        let path = format!("capacity = \"{mbps} Mbit/s\"\nrtt = \"{rtt_us} us\"\nbuffer = \"{buffer} BDP\"");
        let keys = format!("size = \"{size}\"\noffload = \"linux\"\nreceive_offload = \"linux\"\n");
        let time = |start| seconds(&run_flow(start, &path, &keys, 1).0);
        let ratio = time("adaptive_chirping") / time("hystart");
        assert!(ratio <= 1.05, "{mbps} Mbit/s, {rtt_us} us, {buffer} BDP, {size}: {ratio}");
    }
}

/// A long way, and grants for the way back: what leaves at once comes back with one grant, what
/// missed that with the next. HyStart's rounds began in the middle of what had left at once, where
/// all RTTs are longer than at its beginning, and the start ended at a fifth of the capacity: it
/// took 1.8 times as long.
#[test]
fn grants_on_a_long_way_never_cost_more_than_a_tenth_of_the_reference() {
    for (mbps, rtt, every) in [(50, 600, 26), (50, 700, 26), (200, 600, 10), (20, 400, 40)] {
        let back = format!("reverse_capacity = \"{} Mbit/s\"", mbps / 10);
        let grants = format!("reverse_medium.grants.every = \"{every} ms\"");
        let path = format!("{}\nbuffer = \"1 BDP\"\n{back}\n{grants}", path(mbps, rtt));
        for size in ["3 MB", "10 MB", "30 MB"] {
            let time = |start| seconds(&run(start, size, &path, "ack_every = 2").0);
            let ratio = time("adaptive_chirping") / time("hystart");
            assert!(ratio <= 1.10, "{mbps} Mbit/s, {rtt} ms, a grant per {every} ms, {size}: {ratio}");
        }
    }
}

#[test]
fn a_start_that_cannot_read_its_path_is_the_reference_within_two_round_trips_and_leaves_as_that_does_or_before() {
    for (mbps, rtt, period) in MERGED {
        let receiver = format!("ack_aggregation = \"{period} ms\"");
        let (flow, gave_up) = run("adaptive_chirping", "10 MB", &path(mbps, rtt), &receiver);
        let after = gave_up.expect("it gives up").since(flow.first_data);
        // A merged ACK comes up to a period later.
        let limit = Span::from_millis(u64::from(2 * (rtt + period)));
        assert!(after <= limit, "{mbps} Mbit/s, {rtt} ms, merged over {period} ms: {after}");
        let reason = flow.start_exit.expect("it ends").reason;
        let known = [ExitReason::AckTrain, ExitReason::DelayIncrease, ExitReason::Loss, ExitReason::RatePlateau];
        assert!(known.contains(&reason), "{mbps} Mbit/s, {rtt} ms, merged over {period} ms: {reason:?}");
    }
}

#[test]
fn on_a_path_that_can_be_read_it_ends_by_its_own_reason_with_a_window_that_fills_it() {
    for (mbps, rtt) in [(20, 20), (100, 20), (500, 20), (100, 100)] {
        let (flow, gave_up) = run("adaptive_chirping", "30 MB", &path(mbps, rtt), "ack_every = 1");
        let exit = flow.start_exit.expect("it ends");
        let bdp = f64::from(mbps) * 1e6 * f64::from(rtt) * 1e-3 / 12_000.0;
        let share = f64::from(exit.cwnd) / bdp;
        assert_eq!((exit.reason, gave_up), (ExitReason::PipeFull, None), "{mbps} Mbit/s, {rtt} ms");
        assert!((0.9..=1.1).contains(&share), "{mbps} Mbit/s, {rtt} ms: {share}");
    }
}

/// What the first chirp tells comes too late for a transfer that slow start sends in three round
/// trips.
#[test]
fn a_short_transfer_is_sent_exactly_as_by_the_reference() {
    for (mbps, rtt) in [(5, 50), (20, 20), (1000, 100)] {
        for receiver in ["ack_every = 1", "ack_every = 2", "ack_aggregation = \"4 ms\""] {
            let one = run("adaptive_chirping", "30 kB", &path(mbps, rtt), receiver).0;
            let other = run("hystart", "30 kB", &path(mbps, rtt), receiver).0;
            assert_eq!(one.completed, other.completed, "{mbps} Mbit/s, {rtt} ms, {receiver}");
        }
    }
}

/// Where packets overtake each other the rest of the initial window may arrive before the first
/// chirp is complete, of which nothing comes any more then: the load stood for 40 round trips.
#[test]
fn a_first_chirp_that_is_overtaken_holds_nothing_up() {
    let path = format!("{}\nbuffer = \"1 BDP\"\njitter = {{ spread = \"5 ms\", reorder = true }}", path(50, 40));
    let all = ratios("1 MB", &path, "ack_every = 1", 1..=24);
    assert!(all.iter().all(|ratio| *ratio < 2.5), "{all:?}");
}

/// A route that is longer for a quarter of a second: chirps that it catches in the middle say
/// nothing of the capacity. They made a load of five times the path's.
#[test]
fn a_route_that_changes_in_mid_chirp_makes_no_queue() {
    const MEDIUM: &str =
        "medium = { detours = [{ at = \"150 ms\", extra = \"15 ms\" }, { at = \"400 ms\", extra = \"0 ms\" }] }";
    for (mbps, rtt) in [(80, 70), (20, 30), (80, 30), (200, 100)] {
        let path = format!("{}\nbuffer = \"150 ms\"\n{MEDIUM}", path(mbps, rtt));
        let (flow, _) = run("adaptive_chirping", "10 MB", &path, "ack_every = 2");
        assert_eq!(flow.dropped, 0, "{mbps} Mbit/s, {rtt} ms: {:?}", flow.start_exit);
    }
    // Read whole, the chirp that the change meets costs a round trip: 0.55.
    let path = format!("{}\nbuffer = \"1 BDP\"\n{MEDIUM}", path(80, 70));
    let ratio = ratios("1 MB", &path, "ack_every = 2", 1..=1)[0];
    assert!(ratio < 0.52, "{ratio}");
}

/// A bucket of 256 kB lets the beginning pass at the rate of the wire. When it is spent two chirps
/// that contradict all before them are enough.
#[test]
fn a_bucket_that_is_spent_is_noticed_by_two_chirps() {
    let shaper = "medium = { shaper = { burst = \"256 kB\", line = \"1 Gbit/s\" } }";
    for (mbps, rtt) in [(20, 70), (20, 30), (50, 50)] {
        let path = format!("{}\nbuffer = \"300 ms\"\n{shaper}", path(mbps, rtt));
        for every in [1, 2] {
            let (flow, _) = run("adaptive_chirping", "10 MB", &path, &format!("ack_every = {every}"));
            let what = format!("{mbps} Mbit/s, {rtt} ms, ACKs per {every}: {:?}", flow.start_exit);
            // HyStart loses up to 31; chirps that took a round trip to believe it lost up to 4000.
            assert!(flow.dropped <= 400, "{what}: {}", flow.dropped);
        }
    }
}

/// Jitter of a millisecond is many times the gap of a fast path: chirps see a queue that is none,
/// and HyStart takes over. Alone it loses nothing here until two round trips after its end; after
/// chirps 3, 2, none and none of 64 flows do (before chirps were made for jitter 10, 1, 3, none).
#[test]
fn what_takes_over_on_a_path_with_jitter_loses_hardly_anything() {
    for (mbps, rtt) in [(100, 20), (500, 20), (100, 100), (500, 100)] {
        let path = format!("{}\nbuffer = \"1 BDP\"\njitter = \"1 ms\"", path(mbps, rtt));
        let losing = |start| {
            let lost = |seed| run_seed(start, "10 MB", &path, "ack_every = 2", seed).0.dropped_in_start;
            (1..=64).filter(|seed| lost(*seed) > 0).count()
        };
        assert_eq!(losing("hystart"), 0, "{mbps} Mbit/s, {rtt} ms");
        let flows = losing("adaptive_chirping");
        assert!(flows <= 5, "{mbps} Mbit/s, {rtt} ms: {flows} of 64");
    }
}

/// Jitter of 4 to 6 % of the round trip. One late packet holds up all behind it, as a queue would:
/// chirps took what was the jitter's for the path's, and held the load at it for five round trips.
/// Six transfers of two BDP over each of these paths took 1.11 to 1.17 of HyStart's time, with gaps
/// that make a queue of many times the jitter 1.02 to 1.06.
#[test]
fn a_load_is_not_held_at_what_jitter_shows() {
    for (mbps, rtt, jitter) in [(1000, 20, 900), (1000, 40, 2400), (300, 20, 1200), (1000, 12, 540)] {
        let path = format!("{}\nbuffer = \"1 BDP\"\njitter = \"{jitter} us\"", path(mbps, rtt));
        let size = format!("{} kB", mbps * rtt / 4);
        let ratios = ratios(&size, &path, "ack_every = 2", 1..=6);
        let mean = ratios.iter().sum::<f64>() / 6.0;
        assert!(mean <= 1.08, "{mbps} Mbit/s, {rtt} ms, {jitter} us: {mean}");
    }
}

/// A round trip that delivers less than chirps meant to send, but without a queue, is no sign of a
/// full pipe: it was, and flows ended with 33 of 833 packets. (Three rounds of jitter can still
/// look like a queue, as with one seed of the next eight.)
#[test]
fn a_start_ends_for_want_of_deliveries_only_where_packets_queue_or_are_marked() {
    let path = format!("{}\nbuffer = \"1 BDP\"\njitter = \"2 ms\"", path(500, 20));
    let all = ratios("10 MB", &path, "ack_every = 2", 1..=16);
    assert!(all.iter().all(|ratio| *ratio < 2.0), "{all:?}");
}

/// Jitter of a fifth of the round trip, on a path that keeps the order. A late packet holds those
/// behind it up, and their ACKs come together; read as one they hid the noise, and five of these
/// flows ended their start with at most 23 of 833 packets: 5.0 times HyStart's time. (With seed 42
/// the first chirp says nothing, so that the jitter is not known, and a train of ACKs ends what
/// took over with 339: 1.55. Where trains ended starts that had been given up for jitter, too, the
/// mean was 1.017.)
#[test]
fn noise_that_drowns_chirps_ends_them() {
    let path = format!("{}\nbuffer = \"1 BDP\"\njitter = \"4 ms\"", path(500, 20));
    let all = ratios("10 MB", &path, "ack_every = 2", 1..=64);
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let slow = all.iter().filter(|ratio| **ratio >= 1.5).count();
    assert!(mean < 1.01 && slow <= 1 && all.iter().all(|ratio| *ratio < 1.7), "{mean}: {all:?}");
}

/// HyStart knows when a window is too small to tell a queue from a late packet that holds others up
/// (below 16 packets). With jitter of two fifths of the round trip chirps left with six.
#[test]
fn rtts_that_rise_while_nothing_can_be_read_leave_the_end_to_hystart() {
    for (mbps, rtt, jitter) in [(500, 20, 8), (500, 50, 20)] {
        let path = format!("{}\nbuffer = \"1 BDP\"\njitter = \"{jitter} ms\"", path(mbps, rtt));
        for seed in 1..=48 {
            let (flow, _) = run_seed("adaptive_chirping", "10 MB", &path, "ack_every = 2", seed);
            let exit = flow.start_exit;
            assert!(exit.as_ref().is_none_or(|exit| exit.cwnd >= 16), "seed {seed}: {exit:?}");
        }
    }
}

/// On a link that serves in bunches a packet waits as long as it happens to leave before the next
/// one. Those that fill the window HyStart takes over with leave spread and wait less than bursts
/// do; one of them that was forgotten made every burst look like a queue: up to 3.2 times HyStart's
/// time, at all round trips but the grid's.
#[test]
fn on_a_link_that_serves_in_bunches_what_takes_over_is_not_misled_by_packets_that_left_spread() {
    for (mbps, period) in [(80, 20), (200, 20), (80, 10)] {
        for rtt in [24, 27, 30, 33, 36, 39, 42, 45, 50, 60] {
            let path = format!(
                "{}\nbuffer = \"4 BDP\"\nmedium = {{ slots = {{ every = \"{period} ms\" }} }}",
                path(mbps, rtt)
            );
            for every in [1, 2] {
                let ratio = ratios("4 MB", &path, &format!("ack_every = {every}"), 1..=1)[0];
                assert!(ratio < 1.3, "{mbps} Mbit/s, bunches of {period} ms, {rtt} ms, ACKs per {every}: {ratio}");
            }
        }
    }
}

/// Mean time of a transfer beside a greedy flow that is there for three seconds or a little more.
fn mean_beside(start: &str, others: &str, size: &str, path: &str) -> f64 {
    let times = (0..8).map(|number| {
        let begin = 3000 + 37 * number;
        let text = format!(
            "duration = \"20 s\"\nseed = {}\n[path]\n{path}\n[[flow]]\nalgorithm = \"{others}\"\n\
             [[flow]]\nalgorithm = \"{start}\"\nsize = \"{size}\"\nstart = \"{begin} ms\"\n",
            number + 1,
        );
        let compiled = Scenario::parse("test", &text).unwrap().simulation(0).unwrap();
        let (mut outcome, _) = Simulation::new(&compiled.simulation, Watch::default()).unwrap().run();
        seconds(&outcome.flows.remove(1))
    });
    times.sum::<f64>() / 8.0
}

/// The first mark ends HyStart, after which DCTCP grows by a packet per round trip; nobody knows
/// yet what it means.
#[test]
fn short_transfers_beside_dctcp_take_less_than_half_of_hystarts_time() {
    for (mbps, rtt) in [(20, 20), (40, 40), (150, 15)] {
        let path = format!("{}\nqueue = \"step_mark 1 ms\"", path(mbps, rtt));
        let time = |start| mean_beside(start, "slow_start+dctcp", "100 kB", &path);
        let ratio = time("adaptive_chirping+dctcp") / time("hystart+dctcp");
        assert!(ratio < 0.5, "{mbps} Mbit/s, {rtt} ms: {ratio}");
    }
}

/// Chirps show the peak, 4 Gbit/s, until the bucket is empty. Without the trial and without a limit
/// of the growth 26 891 packets were lost.
#[test]
fn behind_a_token_bucket_a_window_that_is_the_wires_is_corrected() {
    let path = "capacity = \"1 Gbit/s\"\nrtt = \"150 ms\"\nbuffer = \"0.5 BDP\"\n\
                medium = { shaper = { burst = \"1 MB\", peak = \"4 Gbit/s\", line = \"10 Gbit/s\" } }";
    let (ours, _) = run("adaptive_chirping", "100 MB", path, "");
    let (hystart, _) = run("hystart", "100 MB", path, "");
    assert!(ours.dropped < 15_000, "{} packets lost", ours.dropped);
    assert!(seconds(&ours) < seconds(&hystart));
}

/// Every real path has microseconds of noise. Two rules needed none at all: with 5 us of jitter the
/// same transfers took up to 1.12 of the time without.
#[test]
fn microseconds_of_jitter_change_nothing() {
    for (mbps, rtt) in [(14, 62), (35, 25), (50, 40), (100, 20)] {
        let mean = |jitter: &str| {
            let path = format!("{}\njitter = \"{jitter}\"", path(mbps, rtt));
            let times =
                (1..=8).map(|seed| seconds(&run_seed("adaptive_chirping", "1 MB", &path, "ack_every = 1", seed).0));
            times.sum::<f64>() / 8.0
        };
        let ratio = mean("5 us") / mean("0 us");
        assert!(ratio < 1.015, "{mbps} Mbit/s, {rtt} ms: {ratio}");
    }
}

/// A way back that carries an ACK in the time of eight packets and thins those that wait (as cable
/// modems do) looks like the capacity to chirps. ACKs of one and of two packets came equally far
/// apart: with that for the capacity 1 MB took up to 1.43 of the time.
#[test]
fn acks_that_queue_on_a_way_back_are_no_capacity() {
    for (mbps, rtt) in [(100, 40), (200, 16), (300, 20), (400, 16)] {
        let back = format!(
            "{}\nreverse_capacity = \"{} kbit/s\"\nreverse_queue = \"ack_filter\"\nreverse_buffer = \"200 ms\"",
            path(mbps, rtt),
            mbps * 5
        );
        let ratio = ratios("1 MB", &back, "", 1..=1)[0];
        assert!(ratio <= 1.10, "{mbps} Mbit/s, {rtt} ms: {ratio}");
    }
}

/// Six to eight packets fit, and receivers acknowledge the first packets of a connection one by
/// one: a window without what they keep back later waits for their timer of 40 ms, 8 times as long
/// as with HyStart. Two of those timers tell of it.
#[test]
fn what_receivers_keep_back_only_later_is_waited_for_twice_at_most() {
    for (mbps, rtt, size) in [(40, 2, 150), (20, 4, 150), (10, 8, 150), (40, 2, 300), (20, 4, 300)] {
        for every in [4, 8, 16] {
            let path = format!("{}\nbuffer = \"100 packets\"", path(mbps, rtt));
            let time = |start| seconds(&run(start, &format!("{size} kB"), &path, &format!("ack_every = {every}")).0);
            let (time, usual) = (time("adaptive_chirping"), time("hystart"));
            assert!(time <= 1.05 * usual + 0.08, "{mbps} Mbit/s, {rtt} ms, {size} kB, {every}: {time} s for {usual}");
        }
    }
}
