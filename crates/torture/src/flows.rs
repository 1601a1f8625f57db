//! Random flows, arrivals and users.

use flowstart_congestion::{AvoidanceConfig, StartConfig};
use flowstart_transport::{ReceiverConfig, SenderConfig};
use toml::{Table, Value};

use crate::chance::{Chance, Wildness};
use crate::paths::{Way, size};
use crate::tables::{append, bits, bytes, nanos, put, table_of};
use crate::vary::vary;

/// Adds flows of one kind.
pub(crate) fn add_tcp(chance: &mut Chance, scenario: &mut Table, way: &Way) {
    let mut flow = connection(chance, way);
    if chance.percent(30) {
        put(&mut flow, "start", nanos(way.rtt.saturating_mul(chance.below(20))));
    }
    if chance.percent(25) {
        put(&mut flow, "count", 1 + chance.below(8) as i64);
        let step = way.rtt / chance.between(1, 20);
        put(&mut flow, "every", nanos(step));
    }
    match chance.below(10) {
        0..5 => put(&mut flow, "size", size(chance)),
        5 => put(&mut flow, "paced", paced(chance, way)),
        6 => put(&mut flow, "writes", writes(chance, way)),
        _ => {}
    }
    append(scenario, "flow", flow);
}

/// Adds datagrams.
pub(crate) fn add_udp(chance: &mut Chance, scenario: &mut Table, way: &Way) {
    let mut udp = Table::new();
    let factor = chance.between(1, 30);
    put(&mut udp, "rate", bits((way.rate.saturating_mul(2) / factor).max(1)));
    if chance.percent(50) {
        put(
            &mut udp,
            "packet",
            bytes(chance.between(28, if chance.wild == Wildness::Extreme { 65_535 } else { 1500 })),
        );
    }
    put(&mut udp, "spacing", chance.pick(&["constant", "poisson"]));
    if chance.percent(40) {
        put(&mut udp, "start", nanos(way.rtt.saturating_mul(chance.below(10))));
        put(&mut udp, "lasting", nanos(way.rtt.saturating_mul(chance.between(1, 100))));
    }
    put(&mut udp, "ecn", chance.percent(30));
    if way.ways > 0 && chance.percent(40) {
        put(&mut udp, "way", chance.between(1, way.ways) as i64);
    }
    hosts(chance, &mut udp);
    if !way.links.is_empty() {
        put(&mut udp, "forward", way.some(chance, 1));
    }
    append(scenario, "udp", udp);
}

/// Now and then the hosts that it runs between.
fn hosts(chance: &mut Chance, flow: &mut Table) {
    for key in ["from", "to"] {
        if chance.percent(25) {
            put(flow, key, chance.pick(&["laptop", "phone", "server"]));
        }
    }
}

/// Adds transfers that arrive at random.
pub(crate) fn add_arrivals(chance: &mut Chance, scenario: &mut Table, way: &Way) {
    let mut arrivals = Table::new();
    if way.links.is_empty() && chance.percent(50) {
        put(&mut arrivals, "load", format!("{} %", 1 + chance.below(100)));
    } else {
        put(&mut arrivals, "mean_gap", nanos((way.rtt / 4).saturating_mul(chance.between(1, 40)).max(1)));
    }
    put(&mut arrivals, "spacing", chance.pick(&["constant", "poisson"]));
    let mut sizes = Table::new();
    let (min, spread) = (chance.between(1, 10_000), chance.between(1, 1000));
    let max = min.saturating_mul(spread);
    match chance.below(4) {
        0 => {
            put(&mut sizes, "kind", "fixed");
            put(&mut sizes, "size", bytes(max));
        }
        1 => {
            put(&mut sizes, "kind", "pareto");
            put(&mut sizes, "shape", 0.3 + 2.0 * chance.share());
            put(&mut sizes, "scale", bytes(min));
        }
        2 => {
            put(&mut sizes, "kind", "truncated_pareto");
            put(&mut sizes, "shape", 0.3 + 2.0 * chance.share());
        }
        _ => {
            put(&mut sizes, "kind", "log_normal");
            put(&mut sizes, "median", bytes(min));
            put(&mut sizes, "sigma", 3.0 * chance.share());
        }
    }
    if !sizes.contains_key("size") {
        put(&mut sizes, "min", bytes(min));
        put(&mut sizes, "max", bytes(max));
    }
    put(&mut arrivals, "sizes", sizes);
    if chance.percent(50) {
        put(&mut arrivals, "most", 1 + chance.below(20) as i64);
    }
    if chance.percent(30) {
        put(&mut arrivals, "until", nanos(way.rtt.saturating_mul(chance.between(1, 50))));
    }
    put(&mut arrivals, "flow", connection(chance, way));
    append(scenario, "arrivals", arrivals);
}

/// Adds users who fetch pages.
pub(crate) fn add_web(chance: &mut Chance, scenario: &mut Table, way: &Way) {
    let mut web = Table::new();
    put(&mut web, "users", 1 + chance.below(4) as i64);
    put(&mut web, "files", chance.pick(&["surge", "large"]));
    put(&mut web, "http", chance.pick(&["single", "persistent", "pipelined"]));
    put(&mut web, "flow", connection(chance, way));
    append(scenario, "web", web);
}

fn paced(chance: &mut Chance, way: &Way) -> Table {
    let mut paced = Table::new();
    let factor = chance.between(1, 30);
    put(&mut paced, "rate", bits((way.rate / factor).max(1)));
    put(&mut paced, "message", bytes(chance.between(1, 20_000)));
    put(&mut paced, "spacing", chance.pick(&["constant", "poisson"]));
    if chance.percent(40) {
        put(&mut paced, "lasting", nanos(way.rtt.saturating_mul(chance.between(1, 50))));
    }
    paced
}

fn writes(chance: &mut Chance, way: &Way) -> Value {
    let mut after = 0_u64;
    let writes = (0..=chance.below(6)).map(|_| {
        let mut write = Table::new();
        put(&mut write, "after", nanos(after));
        put(&mut write, "bytes", bytes(chance.between(1, 200_000)));
        after = after.saturating_add(way.rtt.saturating_mul(chance.below(30)));
        Value::Table(write)
    });
    Value::Array(writes.collect())
}

/// A connection: its way, algorithms and endpoints.
fn connection(chance: &mut Chance, way: &Way) -> Table {
    let mut flow = Table::new();
    let start = chance.pick(StartConfig::NAMES);
    let avoidance = chance.pick(AvoidanceConfig::NAMES);
    let percent = if chance.wild == Wildness::Usual || chance.percent(50) { 0 } else { 15 };
    if let (Ok(start), Ok(avoidance)) = (StartConfig::from_name(start), AvoidanceConfig::from_name(avoidance)) {
        let (mut start, mut avoidance) = (table_of(&start), table_of(&avoidance));
        vary(chance, &mut start, percent);
        vary(chance, &mut avoidance, percent);
        put(&mut flow, "flow_start", start);
        put(&mut flow, "avoidance", avoidance);
    }
    if !way.links.is_empty() {
        put(&mut flow, "forward", way.some(chance, 1));
        put(&mut flow, "reverse", way.some(chance, 0));
        if chance.percent(80) {
            put(&mut flow, "rtt", nanos(way.rtt));
        }
    } else if chance.percent(20) {
        let factor = chance.between(1, 4);
        put(&mut flow, "rtt", nanos(way.rtt.saturating_mul(factor)));
    }
    if way.ways > 0 && chance.percent(40) {
        let count = chance.between(1, 3);
        let ways: Vec<Value> = (0..count).map(|_| Value::Integer(chance.between(1, way.ways) as i64)).collect();
        put(&mut flow, "ways", ways);
    }
    hosts(chance, &mut flow);
    if chance.percent(30) {
        let most = if chance.wild == Wildness::Extreme { 1_000_000 } else { 100 };
        put(&mut flow, "initial_window", chance.between(1, most) as i64);
    }
    if chance.percent(15) {
        put(&mut flow, "initial_ssthresh", chance.between(2, 1000) as i64);
    }
    if chance.percent(20) {
        put(&mut flow, "ecn", chance.pick(&["off", "classic", "dctcp", "accurate"]));
    }
    if chance.percent(20) {
        put(&mut flow, "pacing", pacing(chance));
    }
    put(&mut flow, "sender", sender(chance));
    put(&mut flow, "receiver", receiver(chance));
    flow
}

fn pacing(chance: &mut Chance) -> Value {
    let mut window = Table::new();
    put(&mut window, "start_percent", chance.between(1, 500) as i64);
    put(&mut window, "avoidance_percent", chance.between(1, 500) as i64);
    put(&mut window, "unpaced_packets", chance.below(50) as i64);
    let mut pacing = Table::new();
    put(&mut pacing, "window", window);
    Value::Table(pacing)
}

fn sender(chance: &mut Chance) -> Table {
    let mut sender = Table::new();
    let percent = match chance.wild {
        Wildness::Usual => 3,
        Wildness::Varied => 10,
        Wildness::Extreme => 20,
    };
    vary_defaults(chance, &SenderConfig::default(), &mut sender, percent);
    if chance.percent(30) {
        let most = if chance.wild == Wildness::Extreme { 65_000 } else { 9000 };
        put(&mut sender, "mss", chance.between(if most > 9000 { 1 } else { 100 }, most) as i64);
    }
    if chance.percent(15) {
        put(&mut sender, "send_buffer", bytes(chance.between(1, 10_000_000)));
    } else {
        // Without one it is refused.
        sender.remove("wake_divisor");
    }
    if sender.get("loss_detection").and_then(Value::as_str) == Some("new_reno") {
        sender.remove("timer_slack");
    }
    if chance.percent(20) {
        put(&mut sender, "offload", offload(chance));
    }
    let peer_window = chance.percent(10).then(|| chance.between(1, 1_000_000));
    if chance.percent(20) {
        put(&mut sender, "handshake", false);
        // With one it is refused.
        if let Some(window) = peer_window {
            put(&mut sender, "peer_window", bytes(window));
        }
        if chance.percent(50) {
            put(&mut sender, "handshake_rtt", nanos(chance.between(1, 1_000_000_000)));
        }
    }
    sender
}

fn receiver(chance: &mut Chance) -> Table {
    let mut receiver = Table::new();
    let percent = match chance.wild {
        Wildness::Usual => 5,
        Wildness::Varied => 15,
        Wildness::Extreme => 25,
    };
    vary_defaults(chance, &ReceiverConfig::default(), &mut receiver, percent);
    // Beside these the others are refused.
    if receiver.get("adaptive_delay") == Some(&Value::Boolean(false)) {
        receiver.remove("ack_delay_max");
    }
    if receiver.get("compressed_sack_delay").and_then(Value::as_str) == Some("0 ns") {
        receiver.remove("compressed_sack_rtt_percent");
        receiver.remove("compressed_sack_count");
    }
    if chance.percent(15) {
        put(&mut receiver, "receive_buffer", bytes(chance.between(1, 10_000_000)));
    } else if chance.percent(20) {
        put(&mut receiver, "window", receive_window(chance));
    }
    if chance.percent(10) {
        put(&mut receiver, "ack_aggregation", nanos(chance.between(1, 50_000_000)));
    }
    if chance.percent(10) {
        put(&mut receiver, "ack_pushed", true);
    }
    if chance.percent(15) {
        put(&mut receiver, "offload", receive_offload(chance));
    }
    receiver
}

/// Merged packets.
fn receive_offload(chance: &mut Chance) -> Table {
    let mut offload = Table::new();
    if chance.percent(50) {
        put(&mut offload, "interval", nanos(chance.below(2_000_000)));
        put(&mut offload, "largest", bytes(chance.between(1, 1 << 20)));
        put(&mut offload, "most", chance.between(1, 1000) as i64);
    }
    offload
}

/// Bursts.
fn offload(chance: &mut Chance) -> Table {
    let mut offload = Table::new();
    if chance.percent(50) {
        put(&mut offload, "largest", bytes(chance.between(1, 1 << 20)));
        put(&mut offload, "least", chance.between(1, 1000) as i64);
        put(&mut offload, "pacing_shift", chance.below(41) as i64);
        put(&mut offload, "rtt_log", chance.below(41) as i64);
        put(&mut offload, "window_divisor", chance.below(10) as i64);
    }
    offload
}

/// A receive window that grows.
fn receive_window(chance: &mut Chance) -> Table {
    let mut window = Table::new();
    put(&mut window, "rules", chance.pick(&["6.1", "6.18"]));
    if chance.percent(40) {
        let largest = chance.pick(&[10_000, 1_000_000, 1 << 30]);
        let max = chance.between(2048, largest);
        put(&mut window, "initial", bytes(chance.between(2048, max)));
        put(&mut window, "max", bytes(max));
        put(&mut window, "overhead", bytes(chance.between(1, 65_536)));
    }
    window
}

/// Of the default values, those that come out otherwise.
fn vary_defaults(chance: &mut Chance, config: &impl serde::Serialize, into: &mut Table, percent: u64) {
    let defaults = table_of(config);
    let mut varied = defaults.clone();
    vary(chance, &mut varied, percent);
    for (key, value) in varied {
        // Without a reader at the end nothing is delivered.
        if defaults.get(&key) != Some(&value) && key != "auto_read" {
            into.insert(key, value);
        }
    }
}
