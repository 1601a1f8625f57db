//! Who races: names, conditions, the hosts of a dialect, and what is written of a contestant.

use super::*;

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
