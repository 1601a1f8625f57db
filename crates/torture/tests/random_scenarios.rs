//! Some hundreds of random scenarios in every test run; `cargo run --profile night -p
//! flowstart-torture` does as many as one likes.

use flowstart_torture::{Judgement, Limits, judge, scenario_of};

const SCENARIOS: u64 = 300;

#[test]
fn in_some_hundred_random_scenarios_every_invariant_holds() {
    let (mut judged, mut packets) = (0, 0);
    for seed in 1..=SCENARIOS {
        let table = scenario_of(seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        match judge(&table, Limits::packets(1000)) {
            Judgement::Passed(passed) => (judged, packets) = (judged + 1, packets + passed.packets),
            Judgement::TooLarge => {}
            Judgement::Refused(why) => panic!("seed {seed}: {why}"),
            Judgement::Violated { what, .. } => panic!("seed {seed}: {what}\n{table}"),
        }
    }
    assert!(judged * 10 >= SCENARIOS * 8 && packets > 100_000, "only {judged} scenarios, {packets} packets");
}
