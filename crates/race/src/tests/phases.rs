//! Newcomers that do not come at the same time.

use super::*;

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
