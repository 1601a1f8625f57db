mod changing;
mod contestants;
mod ideal;
mod phases;
mod shares;
mod ways;

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
    says(Race { phases: phases(20), flows, world: World::Kernel, ..race() }, "real ones differ from run to run anyway");
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
    race.world = World::Kernel;
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
