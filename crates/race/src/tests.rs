use super::measures::{COMPLETION, SLOWDOWN};
use super::*;
use flowstart_congestion::{AvoidanceConfig, StartConfig};
use flowstart_parallel::Cancel;

fn race_of(capacity: Rate) -> Race {
    let mut race = Race::default();
    race.set_capacity(capacity);
    race
}

fn with_background(text: &str) -> Race {
    let background: Background = text.parse().unwrap();
    Race { others: Others { flow: vec![background.spec(0)], ..Others::default() }, ..Race::default() }
}

#[test]
fn conditions_say_who_spaces_the_packets() {
    for (contestant, spacing) in [
        ("cubic", "unpaced"),
        ("cubic/paced", "paced (Linux)"),
        ("bbr", "paced at its own rate"),
        ("slow_start+bbr3", "unpaced, paced at its own rate after the start"),
        ("paced_chirping", "departures set by the chirps, unpaced after the start"),
        ("adaptive_chirping+delay_target", "departures set by the chirps, paced at its own rate after the start"),
    ] {
        let conditions = contestant.parse::<Contestant>().unwrap().conditions();
        assert_eq!(conditions.split(", ").skip(1).collect::<Vec<_>>().join(", ").rsplit_once(", ").unwrap().0, spacing);
    }
}

#[test]
fn the_default_race_is_valid_and_has_no_randomness() {
    let race = Race::default();
    race.validate().unwrap();
    assert_eq!((race.contestants.len(), race.effective_runs()), (8, 1));
    assert_eq!(race.base_rtt(), Span::from_micros(20_120));
    assert_eq!(Race { runs: Some(30), ..race }.effective_runs(), 1, "repeating what cannot differ is a waste");
}

/// When the flows of a race start in a run.
fn starts(race: &Race, purpose: Purpose, run: u64) -> Vec<u64> {
    let simulation = race.simulation(&race.contestants[0], purpose, run).unwrap();
    simulation.flows.iter().map(|flow| flow.start.as_nanos()).collect()
}

#[test]
fn phases_move_all_newcomers_but_the_first_by_the_same_times_as_in_scenarios() {
    let contestants = vec!["cubic".parse().unwrap()];
    let race = Race { contestants, flows: 3, phases: Some(Span::from_millis(20)), ..Race::default() };
    race.validate().unwrap();
    assert_eq!(race.effective_runs(), 10, "runs differ");
    let path = "[path]\ncapacity = \"100 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\ncount = 3\n";
    let scenario = Scenario::parse("test", &format!("phases = \"20 ms\"\n{path}")).unwrap();
    for run in 0..4 {
        let moved = starts(&race, Purpose::Start, run);
        let same = scenario.simulation(run).unwrap().simulation;
        assert_eq!(moved, same.flows.iter().map(|flow| flow.start.as_nanos()).collect::<Vec<_>>());
        assert!(moved[0] == 0 && moved[1..].iter().all(|start| (1..20_000_000).contains(start)), "{moved:?}");
        assert_ne!(moved, starts(&race, Purpose::Start, run + 1));
        assert_eq!(starts(&race, Purpose::Transfer(Bytes::new(9_000)), run), [0], "a transfer is alone");
    }
    let at_once = Race { phases: None, ..race };
    assert_eq!((starts(&at_once, Purpose::Start, 1), at_once.effective_runs()), (vec![0; 3], 1));
}

#[test]
fn phases_leave_those_where_they_are_who_were_there_before() {
    let race = Race { flows: 2, ..with_background("2 cubic") };
    let phases = Race { phases: Some(Span::from_millis(20)), ..race.clone() };
    for purpose in [Purpose::Start, Purpose::Without] {
        let (moved, at_once) = (starts(&phases, purpose, 3), starts(&race, purpose, 3));
        assert_eq!(moved[..3], at_once[..3]);
        assert!((1..20_000_000).contains(&(moved[3] - at_once[3])), "{moved:?}");
    }
}

#[test]
fn over_phases_rows_of_several_flows_are_intervals() {
    let contestants = vec!["cubic".parse().unwrap()];
    let (phases, sizes) = (Some(Span::from_millis(20)), Vec::new());
    let race = Race { contestants, flows: 2, sizes, runs: Some(4), phases, ..Race::default() };
    let result = race.run(&RunOptions::default()).unwrap();
    let lost = result.contestants[0].estimate(measures::LOST_BEFORE.measure()).unwrap();
    assert_eq!(lost.runs, 4);
    let deficit = result.contestants[0].estimate(measures::DEFICIT.measure()).unwrap();
    assert!(deficit.min < deficit.max && deficit.half_width.is_some(), "{deficit:?}");
}

#[test]
fn the_capacity_is_the_mean_of_the_time_in_which_newcomers_are_watched() {
    let mbps = |race: &Race| race.capacity().as_mbps_f64();
    let over = |text: &str, race: Race| {
        let path = format!("duration = \"1 s\"\n[path]\ncapacity = {text}\nrtt = \"25 ms\"\n[[flow]]\n");
        Race { path: Scenario::parse("test", &path).unwrap().path.unwrap(), ..race }
    };
    // Horizon: 40 RTT, one second.
    let early = "[{ at = \"0 s\", rate = \"400 Mbit/s\" }, { at = \"0.1 s\", rate = \"40 Mbit/s\" }]";
    assert_eq!(mbps(&over(early, Race::default())), 76.0);
    assert_eq!(mbps(&over(early, Race { horizon: Some(Span::from_millis(200)), ..Race::default() })), 220.0);
    // They come after ten seconds and more when somebody is there.
    assert_eq!(mbps(&over(early, with_background("cubic"))), 40.0);
    let late = "[{ at = \"0 s\", rate = \"10 Mbit/s\" }, { at = \"5 s\", rate = \"100 Mbit/s\" }]";
    assert_eq!(mbps(&over(late, Race::default())), 10.0);
    let again = "{ period = \"10 s\", steps = [{ at = \"0 s\", rate = \"10 Mbit/s\" }, { at = \"5 s\", rate = \"30 Mbit/s\" }] }";
    assert_eq!(mbps(&over(again, Race::default())), 20.0);
}

/// The first contestant's values over a path with this capacity.
fn values_over(capacity: &str, contestant: &str) -> Vec<(Measure, f64)> {
    let text = format!("[path]\ncapacity = {capacity}\nrtt = \"20 ms\"\nbuffer = \"80 packets\"\n[[flow]]\n");
    let path = Scenario::parse("test", &text).unwrap().path.unwrap();
    let race =
        Race { contestants: vec![contestant.parse().unwrap()], sizes: vec![Bytes::new(100_000)], ..Race::new(path) };
    race.run(&RunOptions::default()).unwrap().contestants[0].runs[0].values.clone()
}

#[test]
fn steps_that_are_all_the_same_give_what_a_constant_capacity_gives_to_the_last_bit() {
    let steps = "{ period = \"300 ms\", steps = [{ at = \"0 s\", rate = \"20 Mbit/s\" }, { at = \"70 ms\", rate = \"20 Mbit/s\" }] }";
    assert_eq!(values_over(steps, "hystart+cubic"), values_over("\"20 Mbit/s\"", "hystart+cubic"));
}

#[test]
fn who_sends_at_the_capacity_of_every_moment_is_there_at_once_and_misses_nothing() {
    let steps = "{ period = \"400 ms\", steps = [{ at = \"0 s\", rate = \"40 Mbit/s\" }, { at = \"100 ms\", rate = \"8 Mbit/s\" }] }";
    let of = |values: &[(Measure, f64)], measure: Measure| values.iter().find(|(m, _)| *m == measure).unwrap().1;
    let oracle = values_over(steps, "oracle+cubic");
    assert!(of(&oracle, measures::TIME_TO.at(90)) < 1.5, "{oracle:?}");
    assert!(of(&oracle, measures::DEFICIT.measure()) < 0.2, "{oracle:?}");
    let slow = values_over(steps, "slow_start+cubic");
    assert!(of(&slow, measures::TIME_TO.at(90)) > 2.0 && of(&slow, measures::DEFICIT.measure()) > 0.5, "{slow:?}");
}

#[test]
fn the_window_at_the_exit_is_set_against_the_capacity_of_that_moment() {
    // Ten times less, after the exit: the mean is about half.
    let steps = "[{ at = \"0 s\", rate = \"40 Mbit/s\" }, { at = \"400 ms\", rate = \"4 Mbit/s\" }]";
    let of = |capacity: &str| {
        let values = values_over(capacity, "slow_start+cubic");
        let one = |measure: Measure| values.iter().find(|(m, _)| *m == measure).unwrap().1;
        assert!(one(measures::EXIT_MS.measure()) < 400.0, "{values:?}");
        one(measures::EXIT_WINDOW.measure())
    };
    let (changing, constant) = (of(steps), of("\"40 Mbit/s\""));
    // RTT0 has the transmission of a packet in the mean.
    assert!((changing / constant - 1.0).abs() < 0.03, "{changing}, {constant}");
}

#[test]
fn every_name_to_complete_is_read_and_there_once() {
    let names = Contestant::names();
    let unique: std::collections::BTreeSet<&String> = names.iter().collect();
    assert_eq!(unique.len(), names.len());
    for name in &names {
        assert!(name.parse::<Contestant>().is_ok(), "{name}");
    }
    for text in DEFAULT {
        assert!(names.iter().any(|name| name == text.split('@').next().unwrap()), "{text}");
    }
}

#[test]
fn background_flows_bring_randomness_and_take_their_share() {
    let race = with_background("3 cubic");
    race.validate().unwrap();
    assert_eq!((race.effective_runs(), race.others.tcp_flows()), (10, 3));
    assert_eq!(race.reference().fair_share, Rate::from_mbps(25));
    let background: Background = "2 dctcp".parse().unwrap();
    assert_eq!(background.to_string().parse(), Ok(background));
}

#[test]
fn bad_values_are_refused_in_a_sentence() {
    let says = |race: Race, part: &str| {
        let message = race.validate().unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    };
    let race = Race::default;
    says(race_of(Rate::ZERO), "capacity of 0");
    says(Race { sizes: vec![Bytes::new(1_000_000_000_000_000_000)], ..race() }, "at most 400000000");
    says(Race { sizes: vec![Bytes::ZERO], ..race() }, "0 bytes");
    let twice = [1_000_000, 100_000, 1_000_000].map(Bytes::new).to_vec();
    says(Race { sizes: twice, ..race() }, "1 MB is among the sizes twice; name each once");
    says(Race { flows: 0, ..race() }, "between 1 and 1000");
    says(Race { runs: Some(0), ..race() }, "between 1 and 100000");
    says(Race { contestants: vec![], ..race() }, "nobody races");
    let (phases, flows) = (|ms| Some(Span::from_millis(ms)), 2);
    says(Race { phases: phases(20), ..race() }, "there is one; give --flows 2 or more");
    says(Race { phases: phases(0), flows, ..race() }, "phases of 0 move no start; give a time above 0");
    says(
        Race { phases: phases(900), flows, ..race() },
        "phases of 900 ms are longer than newcomers are watched, 804.8 ms",
    );
    says(Race { phases: phases(20), flows, real: true, ..race() }, "real ones differ from run to run anyway");
    says(race_of(Rate::from_mbps(u64::MAX / 2_000_000)), "bandwidth-delay product");
    says(Race { horizon: Some(Span::from_secs(1_000_000)), ..race() }, "shorter horizon");
    says(Race { horizon: Some(Span::from_millis(1)), ..race() }, "shorter than one round trip");
    let mut far = race();
    far.path.rtt = Span::MAX;
    says(far, "longer than 3600 s");
    assert!("0 cubic".parse::<Background>().unwrap_err().to_string().contains("between 1 and 1000"));
    assert!("-3 cubic".parse::<Background>().is_err());
    assert!("cubic@drop_tail".parse::<Background>().unwrap_err().to_string().contains("without the @"));
}

#[test]
fn the_scenario_of_a_contestant_reads_back_to_the_same_simulation() {
    let race = with_background("2 cubic");
    for contestant in &race.contestants {
        let scenario = race.scenario(contestant, build::Purpose::Start, 3);
        let read = Scenario::parse("effective", &scenario.effective()).unwrap();
        assert_eq!(read.hash(), scenario.hash(), "{contestant}");
    }
}

/// A file may not have keys that have no influence; `flowstart compare --out` writes one for every
/// contestant.
#[test]
fn the_scenarios_of_contestants_with_modifiers_and_of_a_single_other_read_back() {
    for background in ["1 cubic", "1 bbr/paced", "2 dctcp"] {
        let mut race = with_background(background);
        for text in ["bbr/paced", "bbr3/paced", "hystart+bbr/paced", "dctcp", "dctcp/noecn", "cubic/ecn", "bbr/ecn"] {
            race.contestants = vec![text.parse().unwrap()];
            let scenario = race.scenario(&race.contestants[0], build::Purpose::Start, 0);
            let read = Scenario::parse("effective", &scenario.effective());
            let read = read.unwrap_or_else(|error| panic!("{text}, {background}: {error}"));
            assert_eq!(read.hash(), scenario.hash(), "{text}, {background}");
        }
    }
}

#[test]
fn the_same_race_gives_the_same_result_with_any_number_of_threads() {
    let mut race = with_background("cubic");
    race.runs = Some(2);
    race.sizes = vec![Bytes::new(100_000)];
    race.warm_up = Some(Span::from_millis(500));
    race.contestants.truncate(3);
    let one = race.run(&RunOptions { threads: Some(1), ..RunOptions::default() }).unwrap();
    let four = race.run(&RunOptions { threads: Some(4), ..RunOptions::default() }).unwrap();
    assert_eq!(one, four);
    assert!(one.complete);
}

#[test]
fn a_cancelled_race_keeps_what_was_finished() {
    let cancel = Cancel::default();
    let race = Race { sizes: vec![Bytes::new(1000)], ..Race::default() };
    let stop_after_two = |done: usize, _: usize| {
        if done >= 2 {
            cancel.cancel();
        }
    };
    let options = RunOptions {
        threads: Some(1),
        cancel: Some(&cancel),
        progress: Some(&stop_after_two),
        ..RunOptions::default()
    };
    let result = race.run(&options).unwrap();
    assert!(!result.complete);
    assert_eq!(result.simulations, (2, 16));
    let measured: usize = result.contestants.iter().flat_map(|c| &c.runs).map(|run| run.values.len()).sum();
    assert_eq!(measured, 8, "a completion time, its ratio, the mean over the one size, and a queueing delay");
}

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

#[test]
fn on_hosts_like_linuxs_cubic_goes_by_ticks_and_elsewhere_by_an_exact_clock() {
    let hz = |name: &str| match name.parse::<Contestant>().unwrap().spec().avoidance {
        Some(AvoidanceConfig::Cubic(config)) => config.hz,
        other => panic!("{other:?}"),
    };
    assert_eq!([hz("cubic/linux"), hz("cubic")], [Some(250), None]);
}

/// A race of a contestant with this modifier, and the scenario file with the same path and this
/// flow in this dialect: their simulations and what comes out of them.
fn in_dialect(dialect: &str, contestant: &str, flow: &str) -> [(String, String); 2] {
    let mut race = race_of(Rate::from_mbps(20));
    race.horizon = Some(Span::from_secs(4));
    let contestant: Contestant = format!("{contestant}/{dialect}").parse().unwrap();
    let raced = race.scenario(&contestant, Purpose::Start, 0);
    let around = Scenario { flow: Vec::new(), ..raced.clone() }.effective();
    let text = format!("dialect = \"{dialect}\"\n{around}\n[[flow]]\n{flow}\n");
    let file = Scenario::parse("file", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    [raced, file].map(|scenario| {
        let simulation = scenario.simulation(0).unwrap().simulation;
        let (outcome, ()) = flowstart_simulator::Simulation::new(&simulation, ()).unwrap().run();
        (format!("{simulation:?}"), format!("{outcome:?}"))
    })
}

#[test]
fn a_contestant_on_hosts_of_a_dialect_runs_as_a_file_in_that_dialect() {
    let every_segment = "receiver = { ack_every = 1, quick_acks = 0, compressed_sack_delay = \"0 s\" }";
    for (contestant, flow) in [
        ("cubic", "algorithm = \"hystart+cubic\"".to_owned()),
        ("reno", "algorithm = \"slow_start+reno\"".to_owned()),
        ("hystart++", "algorithm = \"hystart_plus_plus+cubic\"".to_owned()),
        ("hystart+reno/paced", "algorithm = \"hystart+reno\"\npacing = \"on\"".to_owned()),
        ("dctcp", "algorithm = \"slow_start+dctcp\"".to_owned()),
        ("bbr", "algorithm = \"bbr\"".to_owned()),
        ("paced_chirping", format!("algorithm = \"paced_chirping+dctcp\"\n{every_segment}")),
        ("reno/ack1", format!("algorithm = \"slow_start+reno\"\n{every_segment}")),
    ] {
        for dialect in ["linux", "ns3"] {
            let [raced, file] = in_dialect(dialect, contestant, &flow);
            assert_eq!(raced.0, file.0, "{contestant}/{dialect}");
            assert_eq!(raced.1, file.1, "{contestant}/{dialect}");
        }
        let [linux, ns3] = ["linux", "ns3"].map(|dialect| in_dialect(dialect, contestant, &flow)[0].1.clone());
        assert_ne!(linux, ns3, "{contestant}");
    }
}

#[test]
fn on_hosts_of_ns3_hystart_is_ns3s_unless_it_has_constants_of_its_own() {
    use flowstart_congestion::start::hystart::HystartConfig;
    let hystart = |contestant: &Contestant| match contestant.spec().flow_start {
        Some(StartConfig::Hystart(config)) => config,
        other => panic!("{other:?}"),
    };
    let mut contestant: Contestant = "hystart+cubic/ns3".parse().unwrap();
    assert_eq!(hystart(&contestant), HystartConfig::ns3());
    assert_eq!(hystart(&"hystart+cubic/linux".parse().unwrap()), HystartConfig::default());
    let own = HystartConfig { low_window: 40, ..HystartConfig::default() };
    contestant.start = StartConfig::Hystart(own);
    assert_eq!(hystart(&contestant), own);
}

/// What a dialect says of queues is for the whole path, on which there are others, too.
#[test]
fn the_queue_of_the_path_is_no_part_of_a_contestants_dialect() {
    let race = Race::default();
    let queue = |contestant: &str| {
        let contestant: Contestant = contestant.parse().unwrap();
        format!("{:?}", race.simulation(&contestant, Purpose::Start, 0).unwrap().links[0].queue)
    };
    assert_eq!(queue("cubic/ns3@red"), queue("cubic@red"));
}

#[test]
fn conditions_say_whose_delayed_acks_there_are() {
    let conditions = |contestant: &str| contestant.parse::<Contestant>().unwrap().conditions();
    assert_eq!(conditions("cubic/ns3"), "delayed ACKs (ns-3), unpaced, no ECN");
    assert_eq!(conditions("cubic/ns3/ack1"), "an ACK for every segment, unpaced, no ECN");
    assert_eq!(conditions("cubic/linux"), "quick then delayed ACKs (Linux), unpaced, in bursts (Linux), no ECN");
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

/// The system ended it.
#[test]
fn a_race_that_does_not_fit_into_memory_is_refused() {
    let text = "[path]\ncapacity = \"1 Gbit/s\"\nrtt = \"20 ms\"\n[[arrivals]]\nmean_gap = \"1 s\"\n\
                sizes = { kind = \"fixed\", size = \"1 B\" }\nflow = {}\n";
    let mut race = Race::from_scenario(&Scenario::parse("test", text).unwrap()).unwrap();
    assert_eq!(race.validate(), Ok(()));
    // More than ten thousand million in the ten seconds before newcomers come.
    race.others.arrivals[0].mean_gap = Some(Span::from_nanos(1));
    let message = race.validate().unwrap_err().to_string();
    assert!(message.contains("arrivals: needs about ") && message.contains("of memory"), "{message}");
    race.real = true;
    assert_eq!(race.validate(), Ok(()), "the kernel has its own");
}

/// A race over this path against these others.
fn race_against(path: &str, others: &str, contestant: &str) -> Race {
    let text = format!("duration = \"1 s\"\n[path]\n{path}\n{others}\n");
    let scenario = Scenario::read_surroundings("test", &text, std::path::Path::new("")).unwrap();
    let contestants = vec![contestant.parse().unwrap()];
    Race { contestants, sizes: Vec::new(), ..Race::from_scenario(&scenario).unwrap() }
}

fn mean(race: &Race, measure: Measure) -> f64 {
    race.run(&RunOptions::default()).unwrap().contestants[0].estimate(measure).unwrap().mean
}

/// Which link carries the data of each flow.
struct Carriers(std::collections::BTreeMap<u32, std::collections::BTreeSet<usize>>);

impl flowstart_simulator::Observer for Carriers {
    fn transmitted(
        &mut self,
        _: flowstart_units::Time,
        link: usize,
        packet: &flowstart_network::Packet,
        _: flowstart_units::Time,
        _: flowstart_units::Time,
    ) {
        self.0.entry(packet.flow).or_default().insert(link);
    }
}

/// All newcomers went over the first of four ways.
#[test]
fn newcomers_are_spread_over_ways_as_the_simulator_draws_them() {
    let path = "capacity = \"20 Mbit/s\"\nrtt = \"20 ms\"\nways = [{}, {}, {}]";
    let race = Race { flows: 6, ..race_against(path, "[[flow]]\ncount = 3\n", "hystart+cubic") };
    let race = Race { warm_up: Some(Span::from_millis(100)), phase: Some(Span::from_millis(100)), ..race };
    let mut taken = std::collections::BTreeSet::new();
    for run in 0..4 {
        let simulation = race.simulation(&race.contestants[0], Purpose::Start, run).unwrap();
        let seen = flowstart_simulator::Simulation::new(&simulation, Carriers(Default::default())).unwrap().run().1;
        let setting = race.setting(&simulation, run, flowstart_units::Time::ZERO);
        let link = |flow: u32| *seen.0[&flow].iter().next().unwrap();
        for number in 0..race.flows {
            let way = race.way_of_newcomer(number, run) as usize;
            assert_eq!(link(3 + number), simulation.ways[0][way], "newcomer {number} in run {run}");
            taken.insert(way);
            // Its fair share is of those on its way.
            let beside = (0..9).filter(|flow| link(*flow) == link(3 + number)).count() as u64;
            assert_eq!(setting.own[number as usize].fair_share, Rate::from_bps(20_000_000 / beside));
        }
        assert_eq!(link(3), 0, "the first one goes where the queue is measured");
        let sharing: Vec<u32> = (0..9).filter(|flow| link(*flow) == 0).collect();
        assert_eq!(setting.sharing.iter().map(|flow| flow.connections[0] as u32).collect::<Vec<_>>(), sharing);
    }
    assert_eq!(taken.len(), 4);
}

#[test]
fn several_newcomers_over_several_ways_carry_more_than_over_one_and_a_single_one_the_same() {
    let over = |ways: &str, flows| {
        let path = format!("capacity = \"50 Mbit/s\"\nrtt = \"40 ms\"\n{ways}");
        Race { flows, ..race_against(&path, "", "hystart+cubic") }
    };
    let (one, four) = (over("", 4), over("ways = [{}, {}, {}]", 4));
    assert_eq!((one.effective_runs(), four.effective_runs()), (1, 10));
    let after_20 = measures::DELIVERED.at(20);
    assert!(mean(&four, after_20) > 1.5 * mean(&one, after_20));
    let result = four.run(&RunOptions::default()).unwrap();
    assert!(result.contestants[0].estimate(after_20).unwrap().half_width > Some(0.0), "runs differ");
    let (alone, single) = (over("", 1), over("ways = [{}, {}, {}]", 1));
    assert_eq!(single.effective_runs(), 1);
    let values = |race: &Race| race.run(&RunOptions::default()).unwrap().contestants[0].runs[0].values.clone();
    assert_eq!(values(&alone), values(&single));
}

/// A run in which the others took other ways had an index of a quarter, and C/4 as the share.
#[test]
fn beside_others_a_newcomers_share_is_of_its_way() {
    let path = "capacity = \"50 Mbit/s\"\nrtt = \"20 ms\"\nways = [{}, {}, {}]";
    let race = race_against(path, "[[flow]]\nalgorithm = \"hystart+cubic\"\ncount = 3\n", "hystart+cubic");
    let race = Race { warm_up: Some(Span::from_secs(2)), phase: Some(Span::from_secs(1)), ..race };
    let result = race.run(&RunOptions::default()).unwrap();
    let mut alone = 0;
    for record in &result.contestants[0].runs {
        let simulation = race.simulation(&race.contestants[0], Purpose::Start, record.run).unwrap();
        let setting = race.setting(&simulation, record.run, flowstart_units::Time::ZERO);
        if setting.sharing.len() == 1 {
            alone += 1;
            assert_eq!(setting.reference.fair_share, Rate::from_mbps(50));
            assert_eq!(record.get(measures::JAIN.measure()), Some(1.0));
            assert!(record.get(measures::TIME_TO.at(90)) < Some(40.0), "{:?}", record.values);
        }
    }
    assert!(alone > 0, "three draws of four ways miss the first one in 42 of 100 runs");
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

/// Each of them made it a half or less, with the newcomer alone.
#[test]
fn jains_index_is_of_those_that_the_fair_share_counts() {
    let path = "capacity = \"20 Mbit/s\"\nrtt = \"20 ms\"\nreverse_capacity = \"10 Mbit/s\"";
    for (others, index) in [
        ("[[flow]]\nsize = \"10 kB\"", 1.0..=1.0),
        ("[[udp]]\nrate = \"1 Mbit/s\"\nlasting = \"100 ms\"", 1.0..=1.0),
        ("[[flow]]\nstart = \"40 s\"", 1.0..=1.0),
        ("[[flow]]\nforward = [\"reverse\"]\nreverse = [\"bottleneck\"]", 1.0..=1.0),
        ("[[arrivals]]\nload = \"5 %\"\nsizes = { kind = \"fixed\", size = \"10 kB\" }\nflow = {}", 1.0..=1.0),
        // Two of them share.
        ("[[flow]]\n[[flow]]\nsize = \"10 kB\"", 0.5..=0.999_999),
        ("[[udp]]\nrate = \"19 Mbit/s\"", 0.5..=0.7),
    ] {
        let race = race_against(path, others, "reno");
        let race = Race { warm_up: Some(Span::from_secs(2)), phase: Some(Span::from_secs(1)), runs: Some(1), ..race };
        let jain = mean(&race, measures::JAIN.measure());
        assert!(index.contains(&jain), "{others}: {jain}");
    }
}

/// They made it 78 % of 38, and 29 of 0.
#[test]
fn harm_is_the_same_whoever_was_there_and_is_over() {
    let path = "capacity = \"20 Mbit/s\"\nrtt = \"40 ms\"";
    let cubic = "[[flow]]\nalgorithm = \"cubic\"\n";
    let over = "[[flow]]\nalgorithm = \"cubic\"\nsize = \"10 kB\"\ncount = 8\n";
    for contestant in ["bbr", "cubic"] {
        let harm = |others: &str| {
            let race =
                Race { runs: Some(10), horizon: Some(Span::from_secs(20)), ..race_against(path, others, contestant) };
            mean(&race, measures::HARM.measure())
        };
        let (alone, after) = (harm(cubic), harm(&format!("{cubic}{over}")));
        assert!((alone - after).abs() < 1.0, "{contestant}: {alone} %, {after} %");
    }
}

/// 33, 11 and 37 % of harm where everybody had what is fair, and an index of 0.81 beside a paced
/// flow.
#[test]
fn who_leaves_everybody_the_max_min_share_does_no_harm_whatever_others_want() {
    // A queue in which senders keep what is left for them: with CoDel's a bursty rate loses some.
    let path = "capacity = \"20 Mbit/s\"\nrtt = \"40 ms\"\nbuffer = \"2 BDP\"\nqueue = { kind = \"drr\" }";
    let cubic = "[[flow]]\nalgorithm = \"cubic\"\n";
    for others in [
        "",
        "[[udp]]\nrate = \"5 Mbit/s\"\n",
        "[[udp]]\nrate = \"10 Mbit/s\"\n",
        "[[flow]]\nalgorithm = \"cubic\"\npaced = { rate = \"2 Mbit/s\", message = \"1448 B\" }\n",
        "[[arrivals]]\nload = \"40 %\"\nsizes = { kind = \"fixed\", size = \"50 kB\" }\nflow = {}\n",
        // More of them than have records.
        "[[arrivals]]\nload = \"40 %\"\nsizes = { kind = \"fixed\", size = \"3 kB\" }\nflow = {}\n",
    ] {
        let race = race_against(path, &format!("{cubic}{others}"), "cubic");
        let race = Race { runs: Some(2), horizon: Some(Span::from_secs(8)), ..race };
        let result = race.run(&RunOptions::default()).unwrap();
        let value = |measure: Measure| result.contestants[0].estimate(measure).unwrap().mean;
        let (harm, jain) = (value(measures::HARM.measure()), value(measures::JAIN.measure()));
        assert!(harm < 1.0, "{others}: {harm} %");
        assert!(jain > 0.99, "{others}: {jain}");
    }
}

/// The others' loss of what is theirs is harm beside datagrams, too.
#[test]
fn who_takes_more_than_the_max_min_share_does_harm_whatever_others_want() {
    let path = "capacity = \"20 Mbit/s\"\nrtt = \"40 ms\"";
    for others in ["", "[[udp]]\nrate = \"5 Mbit/s\"\n", "[[flow]]\nalgorithm = \"cubic\"\nsize = \"10 kB\"\n"] {
        let race = race_against(path, &format!("[[flow]]\nalgorithm = \"cubic\"\n{others}"), "bbr");
        let race = Race { runs: Some(5), horizon: Some(Span::from_secs(15)), ..race };
        let harm = mean(&race, measures::HARM.measure());
        assert!(harm > 15.0, "{others}: {harm} %");
    }
}

/// They were left out of every mean, and only starts with a handshake can be among them.
#[test]
fn newcomers_whose_data_never_come_count_as_the_worst() {
    let path = "capacity = \"20 Mbit/s\"\nrtt = \"20 ms\"\nloss = 0.9";
    for flows in [1, 2] {
        let race = Race { flows, runs: Some(20), ..race_against(path, "", "quick_start+cubic") };
        let result = race.run(&RunOptions::default()).unwrap();
        let contestant = &result.contestants[0];
        let mut never = 0;
        for run in &contestant.runs {
            let deficit = run.get(measures::DEFICIT.measure()).unwrap();
            assert_eq!(run.exits.len(), flows as usize);
            if deficit > 39.999 {
                never += 1;
                assert!((deficit - 40.0).abs() < 1e-3, "{deficit}");
                assert_eq!(run.get(measures::TIME_TO.at(90)), Some(race.reference().horizon_rtts()));
                assert_eq!(run.get(measures::DELIVERED.at(20)), Some(0.0));
            }
        }
        assert!(never > 0 && contestant.estimate(measures::DEFICIT.measure()).unwrap().runs == 20, "{never}");
    }
}

/// Mean of the one run of ten in which the reference did any: 15.9 times.
#[test]
fn harm_is_related_only_to_a_reference_that_does_some_in_every_run() {
    let path = "capacity = \"20 Mbit/s\"\nrtt = \"40 ms\"";
    let race = race_against(path, "[[flow]]\nalgorithm = \"cubic\"\n", "bbr");
    let race = Race { runs: Some(5), horizon: Some(Span::from_secs(10)), ..race };
    let contestants = ["bbr", "hystart+cubic"].map(|name| name.parse().unwrap()).to_vec();
    let result = Race { contestants, ..race }.run(&RunOptions::default()).unwrap();
    let theirs = result.contestants[1].values(measures::HARM.measure());
    let always = theirs.iter().all(|harm| *harm > 0.0);
    let expected = if always { 5 } else { 0 };
    assert_eq!(result.contestants[0].values(measures::HARM_RATIO.measure()).len(), expected, "{theirs:?}");
    assert!(!always, "else this says nothing: {theirs:?}");
}

/// What a later newcomer waited before it came was a part of it.
#[test]
fn the_time_of_an_exit_is_since_the_flows_own_first_bit() {
    let path = "capacity = \"100 Mbit/s\"\nrtt = \"200 ms\"";
    let race = race_against(path, "", "hystart+cubic");
    let race = Race { flows: 2, phases: Some(Span::from_millis(200)), runs: Some(1), ..race };
    let simulation = race.simulation(&race.contestants[0], Purpose::Start, 0).unwrap();
    let (outcome, ()) = flowstart_simulator::Simulation::new(&simulation, ()).unwrap().run();
    let after = |flow: &flowstart_simulator::FlowOutcome| {
        flow.start_exit.map(|exit| exit.now.since(flow.first_data).as_millis_f64()).unwrap()
    };
    let own = outcome.flows.iter().map(after).sum::<f64>() / 2.0;
    assert!(outcome.flows[1].first_data.since(outcome.flows[0].first_data) > Span::from_millis(1));
    assert!((mean(&race, measures::EXIT_MS.measure()) - own).abs() < 1e-3);
    let rtts = own / race.base_rtt().as_millis_f64();
    assert!((mean(&race, measures::EXIT_RTTS.measure()) - rtts).abs() < 1e-5);
}

#[test]
fn who_starts_when_the_race_is_over_is_named() {
    let path = "capacity = \"20 Mbit/s\"\nrtt = \"20 ms\"";
    let others = "[[flow]]\n[[flow]]\nstart = \"40 s\"\n[[udp]]\nrate = \"1 Mbit/s\"\nstart = \"50 s\"\n";
    let said = race_against(path, others, "reno").too_late();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("flow[1].start: nobody meets who starts at 40 s, since newcomers are watched until"));
    assert!(said[1].starts_with("udp[0].start: "), "{said:?}");
}
