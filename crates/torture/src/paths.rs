//! Random paths and links.

use flowstart_network::QueueConfig;
use flowstart_scenario::QueueSpec;
use toml::{Table, Value};

use crate::chance::{Chance, Wildness};
use crate::tables::{append, bits, bytes, nanos, put, table_of};
use crate::vary::vary;

/// What flows need to know of the path.
#[derive(Debug)]
pub(crate) struct Way {
    /// Capacity of the narrowest link in bit/s.
    pub(crate) rate: u64,
    /// Base round-trip time in nanoseconds.
    pub(crate) rtt: u64,
    /// Names of links; none if there is a single bottleneck.
    pub(crate) links: Vec<String>,
    /// How many ways in parallel a flow may be told to take; 0 for none.
    pub(crate) ways: u64,
}

impl Way {
    /// Draws a path or links into the scenario.
    pub(crate) fn draw(chance: &mut Chance, scenario: &mut Table) -> Self {
        let rate = match chance.wild {
            Wildness::Usual => chance.between(1_000_000, 1_000_000_000),
            Wildness::Varied => chance.between(10_000, 10_000_000_000),
            Wildness::Extreme => chance.between(1, u64::MAX),
        };
        let rtt = match chance.wild {
            Wildness::Usual => chance.between(1_000_000, 200_000_000),
            Wildness::Varied => chance.between(10_000, 2_000_000_000),
            Wildness::Extreme => chance.between(1, 1_000_000_000_000),
        };
        if chance.percent(60) {
            let mut path = path(chance, rate, rtt);
            let ways = add_ways(chance, &mut path, rate, rtt);
            put(scenario, "path", path);
            return Self { rate, rtt, links: Vec::new(), ways };
        }
        let count = 1 + chance.below(4);
        let mut names = Vec::new();
        for number in 0..count {
            let name = format!("l{number}");
            let factor = chance.between(1, 20);
            let mut link = Table::new();
            put(&mut link, "name", name.as_str());
            let rate = if chance.percent(50) { rate } else { rate.saturating_mul(factor) };
            put(&mut link, "delay", nanos(rtt / (2 * count) / chance.between(1, 4)));
            put(&mut link, "rtt", nanos(rtt));
            common(chance, &mut link, rate, rtt);
            add_ways(chance, &mut link, rate, rtt);
            append(scenario, "link", link);
            names.push(name);
        }
        // A flow may miss those that have others in parallel.
        Self { rate, rtt, links: names, ways: 0 }
    }

    /// Names of links in a random order, at least `least` of them.
    pub(crate) fn some(&self, chance: &mut Chance, least: usize) -> Vec<Value> {
        let mut left = self.links.clone();
        let most = left.len().saturating_sub(least) as u64;
        let count = least + chance.below(most + 1) as usize;
        let mut chosen = Vec::new();
        while chosen.len() < count && !left.is_empty() {
            let place = chance.below(left.len() as u64) as usize;
            chosen.push(Value::String(left.swap_remove(place)));
        }
        chosen
    }
}

fn path(chance: &mut Chance, rate: u64, rtt: u64) -> Table {
    let mut path = Table::new();
    put(&mut path, "rtt", nanos(rtt));
    common(chance, &mut path, rate, rtt);
    if chance.percent(30) {
        put(&mut path, "delay", nanos(rtt / chance.between(1, 8)));
    }
    if chance.percent(30) {
        let factor = chance.between(1, 50);
        put(&mut path, "reverse_capacity", capacity(chance, (rate / factor).max(1), rtt));
        if chance.percent(50) {
            put(&mut path, "reverse_buffer", buffer(chance, rate, rtt));
        }
        if chance.percent(30) {
            put(&mut path, "reverse_loss", process(chance, 20));
        }
    }
    if chance.percent(20) {
        let factor = chance.between(1, 20);
        put(&mut path, "access", bits(rate.saturating_mul(factor)));
    }
    path
}

/// What paths and links have in common.
fn common(chance: &mut Chance, link: &mut Table, rate: u64, rtt: u64) {
    put(link, "capacity", capacity(chance, rate, rtt));
    if chance.percent(85) {
        put(link, "buffer", buffer(chance, rate, rtt));
    }
    if chance.percent(70) {
        put(link, "queue", queue(chance));
        heed(link, "buffer", "queue");
    }
    if chance.percent(30) {
        let most = if chance.wild == Wildness::Extreme { 100_000 } else { 60 };
        put(link, "overhead", chance.between(1, most) as i64);
    }
    if chance.percent(25) {
        put(link, "loss", process(chance, 10));
    }
    if chance.percent(15) {
        put(link, "mark", process(chance, 30));
    }
    if chance.percent(20) {
        let mut jitter = Table::new();
        put(&mut jitter, "spread", nanos(rtt / chance.between(1, 100)));
        put(&mut jitter, "reorder", chance.percent(50));
        put(link, "jitter", jitter);
    }
    if chance.percent(30) {
        put(link, "quick_start", router(chance, rate));
    }
}

/// Now and then ways in parallel; how many there are then with the first.
fn add_ways(chance: &mut Chance, link: &mut Table, rate: u64, rtt: u64) -> u64 {
    if !chance.percent(15) {
        return 0;
    }
    let count = chance.between(1, 3);
    let mut ways = Vec::new();
    for _ in 0..count {
        let mut way = Table::new();
        if chance.percent(50) {
            let factor = chance.between(1, 10);
            put(&mut way, "capacity", capacity(chance, (rate / factor).max(1), rtt));
        }
        if chance.percent(50) {
            put(&mut way, "delay", nanos(rtt / chance.between(1, 8)));
        }
        if chance.percent(40) {
            put(&mut way, "queue", queue(chance));
        }
        let own = way.get("queue").or(link.get("queue")).and_then(|queue| queue.clone().try_into::<QueueSpec>().ok());
        if chance.percent(40) && own.is_none_or(|spec| spec.0.takes_buffer()) {
            put(&mut way, "buffer", buffer(chance, rate, rtt));
        }
        if chance.percent(20) {
            put(&mut way, "loss", process(chance, 10));
        }
        ways.push(Value::Table(way));
    }
    put(link, "ways", ways);
    count + 1
}

fn capacity(chance: &mut Chance, rate: u64, rtt: u64) -> Value {
    if chance.percent(75) {
        return bits(rate);
    }
    let mut at = 0_u64;
    let mut steps = Vec::new();
    for number in 0..=1 + chance.below(5) {
        let mut step = Table::new();
        put(&mut step, "at", nanos(at));
        // An outage now and then, but not at the beginning.
        let now = if number > 0 && chance.percent(15) { 0 } else { (rate / chance.between(1, 10)).max(1) };
        put(&mut step, "rate", bits(now));
        at = at.saturating_add(rtt.saturating_mul(chance.between(1, 20))).saturating_add(1);
        steps.push(Value::Table(step));
    }
    if chance.percent(50) {
        return Value::Array(steps);
    }
    let mut schedule = Table::new();
    put(&mut schedule, "steps", steps);
    put(&mut schedule, "period", nanos(at));
    Value::Table(schedule)
}

fn buffer(chance: &mut Chance, rate: u64, rtt: u64) -> Value {
    let text = match chance.below(6) {
        0 => format!("{} packets", chance.between(1, 2000)),
        1 => format!("{} packets", chance.between(1, 20)),
        2 => format!("{} B", chance.between(1600, 10_000_000)),
        3 => format!("{} ns", (rtt / chance.between(1, 50)).max(1)),
        4 => "unlimited".to_owned(),
        _ => format!("{:.3} BDP", 0.05 + 4.0 * chance.share()),
    };
    if chance.extreme(20) {
        let most =
            [rate.to_string() + " B", "1 packets".to_owned(), u64::MAX.to_string() + " packets", "1 B".to_owned()];
        return Value::String(most[chance.below(4) as usize].clone());
    }
    Value::String(text)
}

/// Leaves the buffer out beside a queue that has a limit of its own.
fn heed(link: &mut Table, buffer: &str, queue: &str) {
    let spec = link.get(queue).and_then(|queue| queue.clone().try_into::<QueueSpec>().ok());
    if spec.is_some_and(|spec| !spec.0.takes_buffer()) {
        link.remove(buffer);
    }
}

fn queue(chance: &mut Chance) -> Value {
    let name = chance.pick(&QueueConfig::NAMES);
    if chance.percent(40) {
        return Value::String(name.to_owned());
    }
    let Some(config) = QueueConfig::from_name(name) else { return Value::String(name.to_owned()) };
    let mut table = table_of(&config);
    let percent = if chance.wild == Wildness::Usual { 0 } else { 25 };
    vary(chance, &mut table, percent);
    Value::Table(table)
}

/// A process that hits packets, at most about this share in percent unless everything is extreme.
fn process(chance: &mut Chance, most_percent: u64) -> Value {
    let most = if chance.extreme(20) { 1.0 } else { most_percent as f64 / 100.0 };
    match chance.below(3) {
        0 => Value::String(format!("{:.4} %", 100.0 * most * chance.share())),
        1 => Value::String(format!("every {}", chance.between(1 + u64::from(most < 1.0), 500))),
        _ => {
            let mut table = Table::new();
            put(&mut table, "kind", "gilbert_elliott");
            put(&mut table, "to_bad", most * chance.share());
            put(&mut table, "to_good", chance.share());
            put(&mut table, "hit_in_bad", chance.share());
            put(&mut table, "hit_in_good", most * 0.1 * chance.share());
            Value::Table(table)
        }
    }
}

fn router(chance: &mut Chance, rate: u64) -> Table {
    let mut router = Table::new();
    put(&mut router, "aware_percent", chance.pick(&[0_i64, 50, 100, 100, 100]));
    let kinds = ["mean", "peak", "flows", "flows_twice", "fair", "share"];
    put(&mut router, "admission", chance.pick(&kinds));
    if chance.percent(30) {
        let factor = chance.between(1, 10);
        put(&mut router, "capacity", bits(rate.saturating_mul(factor)));
    }
    if chance.percent(30) {
        put(&mut router, "threshold_percent", chance.below(101) as i64);
    }
    match chance.below(8) {
        0 => put(&mut router, "tunnel", chance.pick(&["hidden", "denying"])),
        1 => put(&mut router, "middlebox", chance.pick(&["drops", "strips"])),
        _ => {}
    }
    router
}

/// A size of a transfer.
pub(crate) fn size(chance: &mut Chance) -> Value {
    if chance.extreme(15) {
        return bytes(chance.pick(&[1, 2, u64::MAX, u64::MAX - 1, 1 << 62]));
    }
    bytes(chance.between(1, 5_000_000))
}
