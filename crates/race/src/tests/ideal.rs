//! What no sender can beat, and what the path's parts make of it.

use super::*;

#[test]
fn no_transfer_is_faster_than_the_best_one_at_the_capacity_of_its_moments() {
    let text = "duration = \"1 s\"\n[path]\ncapacity = { period = \"1 s\", steps = [{ at = \"0 s\", rate = \"10 Mbit/s\" }, \
                { at = \"0.5 s\", rate = \"30 Mbit/s\" }] }\nrtt = \"40 ms\"\nbuffer = \"100 packets\"\n\
                [[udp]]\nrate = \"1 kbit/s\"\n";
    let mut race = Race::from_scenario(&Scenario::parse("test", text).unwrap()).unwrap();
    race.contestants = vec!["oracle+cubic".parse().unwrap(), "hystart+cubic".parse().unwrap()];
    race.sizes = [30_000, 100_000, 1_000_000].map(Bytes::new).to_vec();
    race.runs = Some(30);
    let result = race.run(&RunOptions::default()).unwrap();
    for contestant in &result.contestants {
        for run in &contestant.runs {
            for size in &race.sizes {
                let slowdown = run.get(SLOWDOWN.of(*size));
                // The ideal has half a packet's transmission too much: at most 0.6 ms of 30 and
                // more.
                assert!(slowdown.unwrap() > 0.975, "{} {size}: {slowdown:?}", contestant.label);
            }
        }
    }
}

/// The ideal was that of the capacity alone: the oracle had 0.15 of it.
#[test]
fn no_transfer_is_faster_than_the_best_one_through_a_full_bucket() {
    for shaper in [
        "{ burst = \"1 MB\", line = \"1 Gbit/s\" }",
        "{ burst = \"300 kB\", peak = \"30 Mbit/s\", line = \"1 Gbit/s\" }",
    ] {
        let text = format!(
            "duration = \"1 s\"\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"40 ms\"\nbuffer = \"100 packets\"\n\
             medium = {{ shaper = {shaper} }}\n[[udp]]\nrate = \"1 kbit/s\"\n"
        );
        let mut race = Race::from_scenario(&Scenario::parse("test", &text).unwrap()).unwrap();
        race.contestants = vec!["oracle+cubic".parse().unwrap(), "hystart+cubic".parse().unwrap()];
        race.sizes = [100_000, 1_000_000, 3_000_000].map(Bytes::new).to_vec();
        let result = race.run(&RunOptions::default()).unwrap();
        for contestant in &result.contestants {
            for size in &race.sizes {
                let slowdown = contestant.estimate(SLOWDOWN.of(*size)).unwrap().mean;
                assert!(slowdown > 0.97, "{} {size} {shaper}: {slowdown}", contestant.label);
                // The omniscient start is near it.
                let near = contestant.label == "hystart+cubic" || slowdown < 1.6;
                assert!(near, "{} {size} {shaper}: {slowdown}", contestant.label);
            }
        }
    }
}

/// With four newcomers it had a quarter of the capacity in transfers, too, which are timed alone.
#[test]
fn the_oracle_knows_that_a_transfer_has_no_other_newcomers_beside_it() {
    let times = |flows: u32| {
        let contestants = ["oracle+cubic", "slow_start+cubic"].map(|name| name.parse().unwrap()).to_vec();
        let race = Race { contestants, flows, sizes: vec![Bytes::new(1_000_000)], ..race_of(Rate::from_mbps(20)) };
        let result = race.run(&RunOptions::default()).unwrap();
        let time = |place: usize| result.contestants[place].estimate(COMPLETION.of(race.sizes[0])).unwrap().mean;
        [time(0), time(1)]
    };
    let (one, four) = (times(1), times(4));
    assert_eq!(one, four);
    assert!(four[0] <= four[1], "{four:?}");
}

#[test]
fn a_contestant_is_not_blamed_for_the_path() {
    let path = toml::from_str("capacity = \"5 Gbit/s\"\nrtt = \"15 ms\"\nmedium = { wifi = {} }\n").unwrap();
    let error = Race::new(path).validate().unwrap_err().to_string();
    assert!(error.starts_with("path.medium: wifi: aggregates"), "{error}");
}

/// The bound is one where tokens decide how much may leave, too.
#[test]
fn nobody_is_faster_than_the_oracle_behind_policers_and_shapers() {
    let path = |medium: &str| {
        let text = format!("capacity = \"40 Mbit/s\"\nrtt = \"30 ms\"\nmedium = {{ {medium} }}\n");
        toml::from_str::<PathSpec>(&text).unwrap()
    };
    let profile = |name: &str| name.parse::<flowstart_scenario::Profile>().unwrap().path;
    for path in [
        path("policer = { rate = \"10 Mbit/s\", burst = \"32 kB\" }"),
        path("policer = { rate = \"20 Mbit/s\", burst = \"1 MB\" }"),
        path("shaper = { burst = \"64 kB\" }"),
        path("shaper = { burst = \"256 kB\", line = \"200 Mbit/s\" }"),
        path("shaper = { burst = \"1 MB\", peak = \"80 Mbit/s\", line = \"1 Gbit/s\" }"),
        profile("cable"),
        profile("fibre"),
    ] {
        let names = ["oracle+cubic", "jump_start+cubic", "hystart+cubic", "rapid_start+cubic", "bbr"];
        let contestants = names.map(|name| name.parse().unwrap()).to_vec();
        let medium = format!("{:?}", path.medium);
        let race = Race { contestants, runs: Some(1), ..Race::new(path) };
        let result = race.run(&RunOptions::default()).unwrap();
        for size in &race.sizes {
            let times: Vec<f64> = result
                .contestants
                .iter()
                .filter_map(|contestant| Some(contestant.estimate(COMPLETION.of(*size))?.mean))
                .collect();
            let best = times.iter().copied().fold(f64::INFINITY, f64::min);
            assert!(times.len() == names.len() && times[0] <= best, "{medium}, {size}: {times:?}");
        }
    }
}

/// Vectors worked out by hand against the simulator: an ACK per packet, unpaced, unlimited buffer,
/// no exit; 2x growth.
#[test]
fn slow_start_with_an_unlimited_buffer_has_the_completion_times_that_arithmetic_gives() {
    for (mbps, rtt_ms, size, time_ms, ratio) in [
        (100, 50, 14_480, 26.2, 1.00),
        (100, 50, 100_000, 130.0, 3.89),
        (100, 50, 1_000_000, 333.0, 3.09),
        (50, 100, 5_000_000, 1329.0, 1.51),
    ] {
        let mut race = race_of(Rate::from_mbps(mbps));
        race.path.rtt = Span::from_millis(rtt_ms);
        race.contestants = vec!["slow_start+reno/ack1@drop_tail unlimited".parse().unwrap()];
        race.sizes = vec![Bytes::new(size)];
        let result = race.run(&RunOptions::default()).unwrap();
        let contestant = &result.contestants[0];
        let time = contestant.estimate(COMPLETION.of(Bytes::new(size))).unwrap().mean;
        let slowdown = contestant.estimate(SLOWDOWN.of(Bytes::new(size))).unwrap().mean;
        // The last segment of a transfer is short, which the vectors round up: less than one
        // packet's time.
        assert!((time - time_ms).abs() < race.service().as_millis_f64() + 0.5, "{size}: {time} ms");
        assert!((slowdown - ratio).abs() < 0.015, "{size}: {slowdown}");
    }
}

/// They had up to 0.59 of the ideal, by half a full packet.
#[test]
fn over_slow_links_short_transfers_are_no_faster_than_the_ideal() {
    for (capacity, sizes) in [("1 Mbit/s", vec![1_000, 3_000]), ("10 kbit/s", vec![1, 1_000, 3_000])] {
        let path = format!("capacity = \"{capacity}\"\nrtt = \"20 ms\"\nbuffer = \"100 packets\"");
        let mut race = race_against(&path, "", "oracle+cubic");
        race.sizes = sizes.into_iter().map(Bytes::new).collect();
        for size in &race.sizes {
            let slowdown = mean(&race, SLOWDOWN.of(*size));
            // Over 10 kbit/s a packet lasts longer than the first timeout, and 3 kB are sent twice.
            let near = slowdown < 1.03 || capacity == "10 kbit/s" && size.get() == 3_000;
            assert!(slowdown >= 0.975 && near, "{capacity}, {size}: {slowdown}");
            let exact = race.ideal(*size) == Span::from_millis(10) + race.capacity().transmission_time(wire_of(*size));
            assert!(exact, "{capacity}, {size}");
        }
    }
    // Where it makes a difference of less than a fortieth RTT0 is what it was.
    let race = race_of(Rate::from_mbps(100));
    let size = Bytes::new(100_000);
    assert_eq!(race.ideal(size), race.base_rtt() / 2 + race.capacity().transmission_time(wire_of(size)));
}

fn wire_of(size: Bytes) -> Bytes {
    flowstart_measure::wire_bytes(size, MSS, HEADER_BYTES)
}

/// The oracle had 8.60, 2.34 and 1.107 times the ideal, and never 90 % of what no sender can have.
#[test]
fn policers_own_links_and_far_bottlenecks_count_in_the_ideal_and_in_the_share() {
    for (path, share) in [
        (
            "capacity = \"100 Mbit/s\"\nrtt = \"20 ms\"\nmedium.policer = { rate = \"10 Mbit/s\", burst = \"50 kB\" }",
            10,
        ),
        ("capacity = \"100 Mbit/s\"\nrtt = \"20 ms\"\naccess = \"20 Mbit/s\"", 20),
        ("capacity = \"20 Mbit/s\"\nrtt = \"20 ms\"\naccess = \"100 Mbit/s\"", 20),
        ("capacity = \"50 Mbit/s\"\nrtt = \"40 ms\"\ndelay = \"40 ms\"", 50),
    ] {
        let mut race = race_against(path, "", "oracle+cubic");
        race.sizes = [1_000, 100_000, 1_000_000].map(Bytes::new).to_vec();
        let result = race.run(&RunOptions::default()).unwrap();
        let value = |measure: Measure| result.contestants[0].estimate(measure).unwrap().mean;
        for size in &race.sizes {
            let slowdown = value(SLOWDOWN.of(*size));
            assert!((0.975..1.15).contains(&slowdown), "{path}, {size}: {slowdown}");
        }
        assert_eq!(race.reference().fair_share, Rate::from_mbps(share), "{path}");
        let (to_90, deficit) = (value(measures::TIME_TO.at(90)), value(measures::DEFICIT.measure()));
        assert!(to_90 < 3.0 && deficit < 3.0, "{path}: {to_90} RTT, {deficit} BDP");
    }
}

/// The ideal had a packet at the rate of the tokens, and transfers were twice as fast as it.
#[test]
fn behind_ones_own_link_and_a_shaper_the_last_packet_passes_on_tokens() {
    let path = "capacity = \"1 Mbit/s\"\nrtt = \"20 ms\"\nbuffer = \"1000 packets\"\naccess = \"15 Mbit/s\"\n\
                medium.shaper = { burst = \"50 kB\", line = \"1 Gbit/s\" }";
    let mut race = race_against(path, "", "oracle+cubic");
    race.sizes = [1_000, 30_000].map(Bytes::new).to_vec();
    for size in &race.sizes {
        let slowdown = mean(&race, SLOWDOWN.of(*size));
        assert!((0.975..1.15).contains(&slowdown), "{size}: {slowdown}");
    }
}

/// It answered losses, which tell nothing to who knows the capacity, as CUBIC does, and was slower
/// than CUBIC.
#[test]
fn where_packets_are_lost_at_random_nobody_is_faster_than_the_oracle_by_more_than_what_is_lost() {
    for loss in [0.001, 0.01, 0.03] {
        let path = format!("capacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\nbuffer = \"100 packets\"\nloss = {loss}");
        let mut race = race_against(&path, "", "oracle+cubic");
        race.contestants.extend(["hystart+cubic", "jump_start+cubic", "bbr"].map(|name| name.parse().unwrap()));
        race.sizes = vec![Bytes::new(2_000_000)];
        race.runs = Some(6);
        let result = race.run(&RunOptions::default()).unwrap();
        let time = |contestant: &ContestantResult| contestant.estimate(SLOWDOWN.of(race.sizes[0])).unwrap().mean;
        let times: Vec<f64> = result.contestants.iter().map(time).collect();
        // A packet is lost in front of the link, whose turn nobody has then: the oracle keeps no
        // queue, BBR does.
        assert!(times[1..].iter().all(|time| times[0] <= (1.0 + loss) * time), "{loss}: {times:?}");
        assert!(times[0] < 1.15, "{loss}: {times:?}");
    }
}

/// Its window left out how long ACKs queue: it took half as long again as others.
#[test]
fn a_slow_way_back_does_not_hold_the_oracle_up() {
    let path = "capacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\nbuffer = \"4 BDP\"\nreverse_capacity = \"100 kbit/s\"";
    let mut race = race_against(path, "", "oracle+cubic");
    race.sizes = vec![Bytes::new(500_000)];
    let slowdown = mean(&race, SLOWDOWN.of(race.sizes[0]));
    assert!((0.975..1.15).contains(&slowdown), "{slowdown}");
}
