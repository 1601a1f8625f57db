//! Receive offload in the whole loop: how many packets an ACK is for.

use flowstart_scenario::Scenario;
use flowstart_simulator::{Observer, Outcome, Simulation};
use flowstart_units::Time;

#[derive(Default)]
struct Watch {
    acks: u64,
    segments: u64,
}

impl Observer for Watch {
    fn received(&mut self, _: Time, packet: &flowstart_network::Packet) {
        match &packet.body {
            flowstart_network::packet::Body::Ack(_) => self.acks += 1,
            flowstart_network::packet::Body::Segment(_) => self.segments += 1,
            _ => {}
        }
    }
}

fn text(mbps: u32, flow: &str) -> String {
    format!(
        "duration = \"3 s\"\n[path]\ncapacity = \"{mbps} Mbit/s\"\nrtt = \"10 ms\"\nbuffer = \"1 BDP\"\n[[flow]]\n\
         algorithm = \"hystart+cubic\"\nreceive_window = \"none\"\n{flow}\n"
    )
}

/// The outcome, and segments per ACK.
fn run(mbps: u32, flow: &str) -> (Outcome, f64) {
    let scenario = Scenario::parse("merging", &text(mbps, flow)).unwrap();
    let simulation = scenario.simulation(0).unwrap().simulation;
    let (outcome, watch) = Simulation::new(&simulation, Watch::default()).unwrap().run();
    (outcome, watch.segments as f64 / watch.acks as f64)
}

/// Packets take 12 us at 1 Gbit/s and 120 us at 100 Mbit/s: within 50 us four more arrive, or none.
/// Each millisecond, of 84 packets, the timestamp changes, which may part one group in two: five to
/// 84 / (84 / 5 + 1) segments per ACK.
#[test]
fn at_1_gbit_five_segments_share_an_ack_and_at_100_mbit_two_as_ever() {
    let (plain, alone) = run(1000, "");
    let (outcome, merged) = run(1000, "receive_offload = \"linux\"");
    assert!((1.9..2.1).contains(&alone) && (4.7..=5.0).contains(&merged), "{alone}, {merged}");
    let [plain, outcome] = [plain, outcome].map(|outcome| outcome.flows[0].delivered.get() as f64);
    assert!((outcome / plain - 1.0).abs() < 0.02, "{outcome} beside {plain}");
    let (_, slow) = run(100, "receive_offload = \"linux\"");
    assert!((1.9..2.1).contains(&slow), "{slow}");
}

/// Twice the interval (the first and eight that follow it: nine to 84 / (84 / 9 + 1)), and the
/// kernel's own longest burst: 64 KiB.
#[test]
fn a_longer_interval_merges_more_and_64_kib_at_most() {
    let every = |interval: &str| run(1000, &format!("receiver = {{ offload = {{ interval = \"{interval}\" }} }}")).1;
    assert!((8.1..=9.0).contains(&every("100 us")), "{}", every("100 us"));
    let capped = run(1000, "receiver = { offload = { interval = \"2 ms\", most = 1000 } }").1;
    assert!((35.0..45.1).contains(&capped), "{capped}");
}

#[test]
fn off_is_the_default_and_saying_it_twice_is_refused() {
    let delivered = |flow| run(1000, flow).0.flows[0].clone();
    let (off, default) = (delivered("receive_offload = \"none\""), delivered(""));
    assert_eq!((off.delivered, off.packets_sent), (default.delivered, default.packets_sent));
    let both = text(10, "receive_offload = \"linux\"\nreceiver = { offload = { most = 3 } }");
    let error = Scenario::parse("merging", &both).and_then(|scenario| scenario.simulation(0).map(|_| ())).unwrap_err();
    assert!(error.to_string().contains("`receiver.offload` says it already"), "{error}");
    let none = text(10, "receiver = { offload = { most = 0 } }");
    let error = Scenario::parse("merging", &none).and_then(|scenario| scenario.simulation(0).map(|_| ())).unwrap_err();
    assert!(error.to_string().contains("offload.most must be between 1 and 10 000 packets"), "{error}");
}
