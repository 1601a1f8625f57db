mod links;
mod refused;
mod room;

use super::*;
use proptest::prelude::*;

const GOOD: &str = r#"
title = "two flows"
duration = "5 s"

[path]
capacity = "100 Mbit/s"
rtt = "20 ms"
buffer = "1 BDP"
queue = "step_mark 1 ms"

[[flow]]
algorithm = "hystart++ + cubic"

[[flow]]
algorithm = "slow_start+dctcp"
start = "1 s"
size = "1 MB"
count = 3
every = "10 ms"

[[udp]]
rate = "10 Mbit/s"
spacing = "poisson"
"#;

fn error(text: &str) -> ScenarioError {
    Scenario::parse("test.toml", text).unwrap_err()
}

/// GOOD with one piece of text replaced.
fn with(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    GOOD.replacen(from, to, 1)
}

#[test]
fn a_scenario_becomes_a_simulation() {
    let compiled = Scenario::parse("test.toml", GOOD).unwrap().simulation(3).unwrap();
    assert_eq!(compiled.simulation.flows.len(), 5);
    assert_eq!(compiled.simulation.run, 3);
    let names: Vec<_> = compiled.groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(names, ["hystart_plus_plus+cubic", "slow_start+dctcp", "udp"]);
    let start = compiled.simulation.flows[3].start.as_nanos();
    assert_eq!(start, 1_020_000_000);
    let flowstart_network::QueueConfig::StepMark(queue) = compiled.simulation.links[0].queue else { panic!() };
    assert_eq!(queue.limit.packets, Some(167));
}

#[test]
fn phases_move_the_starts_of_all_but_the_first_flow_in_each_run() {
    let scenario = Scenario::parse("test.toml", &with("duration = \"5 s\"", "phases = \"20 ms\"")).unwrap();
    assert!(scenario.is_random());
    let plain = Scenario::parse("test.toml", GOOD).unwrap().simulation(0).unwrap().simulation;
    let mut seen = std::collections::HashSet::new();
    for run in 0..5 {
        let moved = scenario.simulation(run).unwrap().simulation;
        for (number, (flow, before)) in moved.flows.iter().zip(&plain.flows).enumerate() {
            let later = flow.start.since(before.start);
            assert!(if number == 0 { later.is_zero() } else { later < flowstart_units::Span::from_millis(20) });
            assert!(number == 0 || seen.insert(later), "{later}");
        }
    }
    let one = "phases = \"20 ms\"\n[path]\ncapacity = \"1 Mbit/s\"\nrtt = \"1 ms\"\n[[flow]]\n";
    assert!(error(one).to_string().contains("there is no second flow"));
}

#[test]
fn effective_parameters_read_back_to_the_same_scenario_and_hash() {
    let scenario = Scenario::parse("test.toml", GOOD).unwrap();
    let again = Scenario::parse("effective.toml", &scenario.effective()).unwrap();
    assert_eq!(scenario, again);
    assert_eq!(scenario.hash(), again.hash());
}

#[test]
fn the_hash_follows_the_parameters_and_not_the_title() {
    let scenario = Scenario::parse("test.toml", GOOD).unwrap();
    let titled = Scenario { title: "other".to_owned(), ..scenario.clone() };
    let seeded = Scenario { seed: 2, ..scenario.clone() };
    assert_eq!(scenario.hash(), titled.hash());
    assert_ne!(scenario.hash(), seeded.hash());
}

#[test]
fn a_scenario_knows_whether_chance_plays_a_part() {
    assert!(Scenario::parse("t", GOOD).unwrap().is_random());
    assert!(!Scenario::parse("t", &with("poisson", "constant")).unwrap().is_random());
    let lossy = with("poisson", "constant").replace("rtt = \"20 ms\"", "rtt = \"20 ms\"\nloss = \"0.1 %\"");
    assert!(Scenario::parse("t", &lossy).unwrap().is_random());
}

proptest! {
    #[test]
    fn reading_is_total_on_arbitrary_text(text in "\\PC{0,200}") {
        let _ = Scenario::parse("t", &text);
    }

    #[test]
    fn reading_is_total_on_mutilated_scenarios(at in 0..GOOD.len(), gone in 0_usize..30, new in "\\PC{0,8}") {
        let mut text = GOOD.to_owned();
        let start = (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let end = (start + gone).min(text.len());
        text.replace_range(start..end, &new);
        match Scenario::parse("t", &text) {
            Ok(scenario) => {
                prop_assert_eq!(&Scenario::parse("t", &scenario.effective()).unwrap(), &scenario);
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

/// What the simulator runs is what its tables say, whatever a kernel would run in its place.
#[test]
fn the_kernels_control_does_not_give_its_name_to_a_flow() {
    let names = |flow: &str| {
        let text = format!("[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\nkernel = \"bbr\"\n{flow}\n");
        let label = Scenario::parse("test.toml", &text).unwrap().simulation(0).unwrap().groups.remove(0);
        [label.real_name().to_owned(), label.name, label.algorithm]
    };
    assert_eq!(names(""), ["bbr", "hystart+cubic", "hystart+cubic"]);
    assert_eq!(names("algorithm = \"reno\""), ["bbr", "slow_start+reno", "slow_start+reno"]);
    assert_eq!(names("name = \"mine\""), ["mine", "mine", "hystart+cubic"]);
}

/// One meaning of "bbr": named alone, or with constants of its own.
#[test]
fn a_control_with_a_start_of_its_own_has_it_however_it_is_named() {
    let name = |flow: &str| {
        let text = format!("[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\n{flow}\n");
        Scenario::parse("test.toml", &text).unwrap().simulation(0).unwrap().groups[0].name.clone()
    };
    let alone = name("algorithm = \"bbr\"");
    assert_eq!(name("avoidance = { name = \"bbr\" }"), alone);
    assert_ne!(name("algorithm = \"hystart+bbr\""), alone);
    assert_eq!(name("avoidance = { name = \"reno\" }"), name("algorithm = \"hystart+reno\""));
}
