//! Capacities that change.

use super::*;

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
