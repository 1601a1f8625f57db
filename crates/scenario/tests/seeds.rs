//! Algorithms that draw random numbers say so: with every other one all seeds give the same
//! packets.

use flowstart_congestion::{AvoidanceConfig, StartConfig};
use flowstart_network::Packet;
use flowstart_scenario::Scenario;
use flowstart_simulator::{LinkId, Observer, Simulation};
use flowstart_units::Time;

/// When the packets of the first link left.
#[derive(Default)]
struct Departures(Vec<u64>);

impl Observer for Departures {
    fn transmitted(&mut self, now: Time, link: LinkId, _: &Packet, _: Time, _: Time) {
        if link == 0 {
            self.0.push(now.as_nanos());
        }
    }
}

/// Whether the program says that such a flow depends on chance, and whether its packets do.
fn said_and_true(flow: &str) -> (bool, bool) {
    let text = |seed: u64| {
        format!(
            "duration = \"20 s\"\nseed = {seed}\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\nbuffer = \"1 BDP\"\n\
             [[flow]]\n{flow}\n"
        )
    };
    let run = |seed: u64| {
        let scenario = Scenario::parse("seeds", &text(seed)).unwrap();
        let compiled = scenario.simulation(0).unwrap();
        let (_, departures) = Simulation::new(&compiled.simulation, Departures::default()).unwrap().run();
        (scenario.is_random(), departures.0)
    };
    let (said, first) = run(1);
    (said, (2..5).any(|seed| run(seed).1 != first))
}

#[test]
fn who_draws_says_so() {
    let starts = StartConfig::NAMES.iter().filter(|name| **name != "built_in");
    let names = starts.map(|start| format!("{start}+cubic"));
    let names: Vec<String> = names.chain(AvoidanceConfig::NAMES.iter().map(|name| (*name).to_owned())).collect();
    let mut drawing = Vec::new();
    for name in &names {
        let (said, differs) = said_and_true(&format!("algorithm = \"{name}\""));
        assert!(said || !differs, "{name} draws and does not say so");
        if said {
            drawing.push(name.as_str());
        }
    }
    // Not all of them draw on this path.
    let known = [
        "two_flow_probe+cubic",
        "fair_queuing_probe+cubic",
        "vivace",
        "vivace_loss",
        "allegro",
        "vegas_or_vivace",
        "vegas_or_bbr",
        "bbr",
        "bbr3",
    ];
    assert_eq!(drawing, known);
}
