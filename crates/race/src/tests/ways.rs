//! Newcomers over one of several ways.

use super::*;

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
