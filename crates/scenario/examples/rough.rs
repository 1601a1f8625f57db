//! A start against the reference on rough paths, in a minute or two: development cells by default,
//! held-out ones with `--held-out`. For work on a start; the judgement is `flowstart frontier`.
//!
//! `cargo run --profile everyday -p flowstart-scenario --example rough -- [--held-out] [--seeds N]
//! [--cells SUBSTRING] [--set 'growth = 4.0, ...'] [START...]`

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use flowstart_network::Packet;
use flowstart_scenario::Scenario;
use flowstart_simulator::{LinkId, Observer, Simulation};
use flowstart_units::{Span, Time};

const SIZES: [&str; 4] = ["30 kB", "100 kB", "1 MB", "10 MB"];
const REFERENCE: &str = "hystart";

/// A path with its load.
#[derive(Clone)]
struct Cell {
    name: String,
    path: String,
    receiver: String,
    background: String,
    avoidance: &'static str,
    /// When the newcomer comes with seed 1 and how much later with each seed more, in ms.
    start: (u64, u64),
    /// Base RTT in ms.
    rtt: f64,
    /// Whether seeds make a difference.
    random: bool,
}

/// Waits of one flow's packets at the first link.
struct Waits {
    flow: u32,
    waits: Vec<(Time, Span)>,
}

impl Observer for Waits {
    fn transmitted(&mut self, now: Time, link: LinkId, packet: &Packet, arrived: Time, _done: Time) {
        if link == 0 && packet.flow == self.flow {
            self.waits.push((arrived, now.since(arrived)));
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Record {
    /// Seconds; infinite if not complete.
    time: f64,
    lost: f64,
    lost_in_start: f64,
    /// 99th percentile of the wait until a round trip after the start's end, in ms.
    delay: f64,
    exit: String,
}

fn cell(name: &str, mbps: f64, rtt: f64, extra: &str) -> Cell {
    Cell {
        name: format!("{name} {mbps}M {rtt}ms"),
        path: format!("capacity = \"{mbps} Mbit/s\"\nrtt = \"{rtt} ms\"\n{extra}"),
        receiver: "ack_every = 1".into(),
        background: String::new(),
        avoidance: "cubic",
        start: (0, 0),
        rtt,
        random: false,
    }
}

impl Cell {
    fn receiver(mut self, receiver: &str) -> Self {
        self.receiver = receiver.into();
        self
    }
    fn random(mut self) -> Self {
        self.random = true;
        self
    }
    fn behind(mut self, algorithm: &str, count: u32) -> Self {
        self.background = format!(
            "[[flow]]\nalgorithm = \"{algorithm}\"\ncount = {count}\nevery = \"111 ms\"\nreceiver = {{ ack_every = 1 }}\n"
        );
        self.start = (3000, 173);
        self.random = true;
        self
    }
    fn udp(mut self, load: f64, mbps: f64) -> Self {
        self.background = format!("[[udp]]\nrate = \"{} Mbit/s\"\nspacing = \"poisson\"\n", load * mbps);
        self.start = (50, 37);
        self.random = true;
        self
    }
    fn with(mut self, avoidance: &'static str) -> Self {
        self.avoidance = avoidance;
        self
    }
    fn at(mut self, first: u64, every: u64) -> Self {
        self.start = (first, every);
        self.random = true;
        self
    }
}

/// A link that serves in bunches: for a part of every period at a high rate, else hardly.
fn bunched(mbps: f64, rtt: f64, period: f64, share: f64) -> Cell {
    let on = period * share;
    let mut cell = cell(
        &format!("bunched {period}ms"),
        mbps,
        rtt,
        &format!("buffer = \"{} kB\"", (mbps * f64::max(rtt, period) / 8.0).max(60.0) as u64),
    );
    cell.path = format!(
        "capacity = {{ period = \"{period} ms\", steps = [{{ at = \"0 ms\", rate = \"{} Mbit/s\" }}, {{ at = \"{on} ms\", rate = \"10 kbit/s\" }}] }}\nrtt = \"{rtt} ms\"\nbuffer = \"{} kB\"",
        mbps / share,
        (mbps * f64::max(rtt, period) / 8.0).max(60.0) as u64
    );
    cell.at(3, 7)
}

fn merged(mbps: f64, rtt: f64, period: f64) -> Cell {
    let mut cell = cell(&format!("merged {period}ms"), mbps, rtt, "");
    cell.receiver = format!("ack_aggregation = \"{period} ms\"");
    cell.at(3, 7)
}

fn trace(file: &str, rtt: f64, first: u64, every: u64) -> Cell {
    let mut cell = cell(file, 0.0, rtt, "");
    cell.name = format!("trace {file} {rtt}ms +{first}");
    let folder = std::env::var("FLOWSTART_TRACES").unwrap_or_default();
    cell.path = format!("capacity = {{ trace = \"{folder}/{file}\" }}\nrtt = \"{rtt} ms\"\nbuffer = \"600 kB\"");
    cell.at(first, every)
}

fn stepped(mbps: f64, rtt: f64, flows: u32) -> Cell {
    let mut cell = cell(&format!("dctcp x{flows}"), mbps, rtt, "queue = \"step_mark 1 ms\"\n");
    cell = cell.behind("slow_start+dctcp", flows).with("dctcp");
    cell
}

fn queue(name: &str, mbps: f64, rtt: f64, flows: u32, algorithm: &str) -> Cell {
    let mut cell = cell(&format!("{name} beside {flows} {algorithm}"), mbps, rtt, &format!("queue = \"{name}\"\n"));
    if flows > 0 {
        cell = cell.behind(algorithm, flows);
    }
    cell
}

fn deep(bdp: f64, mbps: f64, rtt: f64, flows: u32, algorithm: &str) -> Cell {
    let cell = cell(&format!("{bdp} BDP beside {flows} {algorithm}"), mbps, rtt, &format!("buffer = \"{bdp} BDP\"\n"));
    if flows > 0 { cell.behind(algorithm, flows) } else { cell }
}

fn jitter(ms: f64, order: bool, mbps: f64, rtt: f64) -> Cell {
    let extra = if order {
        format!("jitter = \"{ms} ms\"\n")
    } else {
        format!("jitter = {{ spread = \"{ms} ms\", reorder = true }}\n")
    };
    cell(&format!("jitter {ms}ms{}", if order { "" } else { " reordering" }), mbps, rtt, &extra).random()
}

fn development() -> Vec<Cell> {
    let mut cells = vec![
        merged(300.0, 20.0, 2.0),
        merged(80.0, 30.0, 5.0),
        merged(50.0, 60.0, 1.0),
        merged(20.0, 40.0, 8.0),
        merged(500.0, 15.0, 0.5),
        merged(100.0, 100.0, 4.0),
        bunched(80.0, 30.0, 4.0, 0.25),
        bunched(80.0, 30.0, 20.0, 0.25),
        bunched(40.0, 50.0, 10.0, 0.4),
        bunched(200.0, 20.0, 2.0, 0.3),
        bunched(25.0, 80.0, 5.0, 0.5),
        jitter(2.0, true, 80.0, 30.0),
        jitter(10.0, true, 80.0, 100.0),
        jitter(5.0, true, 30.0, 50.0),
        jitter(1.0, true, 200.0, 20.0),
        jitter(4.0, false, 60.0, 30.0),
        jitter(1.0, false, 100.0, 40.0),
        cell("ack8", 80.0, 30.0, "").receiver("ack_every = 8, quick_acks = 0"),
        cell("ack4", 200.0, 40.0, "").receiver("ack_every = 4, quick_acks = 0"),
        cell("ack2", 60.0, 25.0, "").receiver("ack_every = 2"),
        cell("slow way back", 200.0, 30.0, "reverse_capacity = \"4 Mbit/s\"\n"),
        queue("pie", 60.0, 20.0, 1, "cubic"),
        queue("codel", 60.0, 20.0, 1, "cubic"),
        queue("fq_codel", 60.0, 20.0, 1, "cubic"),
        queue("pie", 100.0, 40.0, 0, ""),
        queue("codel", 100.0, 40.0, 0, ""),
        queue("pie", 200.0, 20.0, 3, "cubic"),
        deep(8.0, 60.0, 20.0, 4, "cubic"),
        deep(1.0, 60.0, 20.0, 1, "cubic"),
        deep(0.5, 100.0, 40.0, 1, "cubic"),
        deep(2.0, 40.0, 25.0, 1, "bbr"),
        deep(4.0, 200.0, 30.0, 1, "bbr"),
        cell("loss 1%", 50.0, 40.0, "loss = \"1 %\"\n").random(),
        cell("udp 20%", 50.0, 30.0, "").udp(0.2, 50.0),
        cell("udp 60%", 100.0, 40.0, "").udp(0.6, 100.0),
        stepped(150.0, 15.0, 1),
        stepped(150.0, 15.0, 3),
        stepped(40.0, 40.0, 1),
    ];
    for (mbps, rtt) in
        [(20.0, 20.0), (100.0, 20.0), (500.0, 20.0), (20.0, 100.0), (100.0, 100.0), (5.0, 50.0), (1200.0, 40.0)]
    {
        for buffer in [0.25, 1.0] {
            cells.push(deep(buffer, mbps, rtt, 0, ""));
        }
    }
    if std::env::var("FLOWSTART_TRACES").is_ok() {
        for first in [0, 20_000, 41_000, 65_000] {
            cells.push(trace("Verizon-LTE-short.down", 50.0, first, 3701));
            cells.push(trace("ATT-LTE-driving-2016.down", 40.0, first, 4307));
        }
    }
    cells
}

fn held_out() -> Vec<Cell> {
    let mut cells = vec![
        merged(150.0, 25.0, 3.0),
        merged(40.0, 35.0, 6.0),
        merged(250.0, 70.0, 1.5),
        merged(30.0, 120.0, 10.0),
        merged(800.0, 12.0, 0.25),
        bunched(60.0, 40.0, 6.0, 0.3),
        bunched(120.0, 25.0, 14.0, 0.2),
        bunched(300.0, 35.0, 3.0, 0.4),
        bunched(15.0, 60.0, 8.0, 0.5),
        jitter(3.0, true, 60.0, 45.0),
        jitter(7.0, true, 120.0, 80.0),
        jitter(0.5, true, 400.0, 15.0),
        jitter(3.0, false, 150.0, 35.0),
        cell("ack8", 150.0, 45.0, "").receiver("ack_every = 8, quick_acks = 0"),
        cell("ack6", 30.0, 60.0, "").receiver("ack_every = 6, quick_acks = 0"),
        cell("ack16", 400.0, 25.0, "").receiver("ack_every = 16, quick_acks = 0"),
        cell("slow way back", 100.0, 50.0, "reverse_capacity = \"2.5 Mbit/s\"\n"),
        queue("pie", 90.0, 35.0, 1, "cubic"),
        queue("codel", 150.0, 15.0, 1, "cubic"),
        queue("fq_codel", 40.0, 45.0, 2, "cubic"),
        queue("codel", 40.0, 30.0, 3, "cubic"),
        deep(6.0, 80.0, 30.0, 2, "cubic"),
        deep(2.0, 120.0, 15.0, 1, "cubic"),
        deep(1.0, 70.0, 40.0, 1, "bbr"),
        cell("loss 2%", 80.0, 30.0, "loss = \"2 %\"\n").random(),
        cell("udp 40%", 70.0, 25.0, "").udp(0.4, 70.0),
        stepped(100.0, 20.0, 1),
        stepped(80.0, 25.0, 2),
    ];
    for (mbps, rtt) in [(30.0, 30.0), (70.0, 15.0), (250.0, 60.0), (900.0, 25.0), (10.0, 80.0)] {
        for buffer in [0.5, 2.0] {
            cells.push(deep(buffer, mbps, rtt, 0, ""));
        }
    }
    if std::env::var("FLOWSTART_TRACES").is_ok() {
        for first in [9_000, 31_000, 52_000, 83_000] {
            cells.push(trace("Verizon-LTE-short.up", 60.0, first, 3307));
            cells.push(trace("ATT-LTE-driving-2016.up", 45.0, first, 4703));
        }
    }
    cells
}

fn run(cell: &Cell, start: &str, set: &str, size: &str, seed: u64) -> Record {
    let at = cell.start.0 + cell.start.1 * (seed % 1000);
    let config = if start == REFERENCE || set.is_empty() {
        format!("algorithm = \"{start}+{}\"", cell.avoidance)
    } else {
        format!("algorithm = \"{start}+{}\"\nflow_start = {{ name = \"{start}\", {set} }}", cell.avoidance)
    };
    let start_line = if start == "hystart" && cell.avoidance == "dctcp" {
        "algorithm = \"slow_start+dctcp\"".to_string()
    } else {
        config
    };
    let text = format!(
        "duration = \"120 s\"\nseed = {seed}\nstop_when_complete = true\n[path]\n{}\n[[flow]]\n{start_line}\nsize = \"{size}\"\nstart = \"{at} ms\"\nreceiver = {{ {} }}\n{}",
        cell.path, cell.receiver, cell.background
    );
    let scenario = if cell.path.contains("trace =") {
        let name = format!("rough-{}-{:?}.toml", std::process::id(), std::thread::current().id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, &text).expect("temporary file");
        let scenario = Scenario::load(&path);
        let _ = std::fs::remove_file(&path);
        scenario
    } else {
        Scenario::parse("rough", &text)
    }
    .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let compiled = scenario.simulation(0).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let (outcome, watched) =
        Simulation::new(&compiled.simulation, Waits { flow: 0, waits: Vec::new() }).expect("a simulation").run();
    let flow = &outcome.flows[0];
    let until = flow.start_exit.map_or(Time::NEVER, |exit| exit.now + Span::from_nanos((cell.rtt * 1e6) as u64));
    let mut waits: Vec<u64> =
        watched.waits.iter().filter(|(at, _)| *at <= until).map(|(_, wait)| wait.as_nanos()).collect();
    waits.sort_unstable();
    let delay = waits.get((waits.len() * 99 / 100).min(waits.len().saturating_sub(1))).copied().unwrap_or(0);
    Record {
        time: flow.completed.map_or(f64::INFINITY, |end| end.since(flow.started).as_nanos() as f64 / 1e9),
        lost: flow.dropped as f64,
        lost_in_start: flow.dropped_in_start as f64,
        delay: delay as f64 / 1e6,
        exit: flow.start_exit.map_or("-".into(), |exit| {
            format!(
                "{:?} {:.1}R w{}",
                exit.reason,
                exit.now.since(flow.first_data).as_nanos() as f64 / 1e6 / cell.rtt,
                exit.cwnd
            )
        }),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (mut held, mut seeds, mut only, mut set, mut starts) = (false, 3, String::new(), String::new(), Vec::new());
    let (mut all_exits, mut threads) = (false, 2);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().expect("a value");
        match argument.as_str() {
            "--held-out" => held = true,
            "--exits" => all_exits = true,
            "--seeds" => seeds = value().parse().expect("a number"),
            "--threads" => threads = value().parse().expect("a number"),
            "--cells" => only = value(),
            "--set" => set = value(),
            start => starts.push(start.to_string()),
        }
    }
    if starts.is_empty() {
        starts.push("adaptive_chirping".into());
    }
    let first_seed = if held { 1001 } else { 1 };
    let cells: Vec<Cell> =
        if held { held_out() } else { development() }.into_iter().filter(|cell| cell.name.contains(&only)).collect();
    let names: Vec<&str> = std::iter::once(REFERENCE).chain(starts.iter().map(String::as_str)).collect();
    let mut jobs = Vec::new();
    for (c, cell) in cells.iter().enumerate() {
        for seed in 0..if cell.random { seeds } else { 1 } {
            for size in 0..SIZES.len() {
                for name in 0..names.len() {
                    jobs.push((c, first_seed + seed, size, name));
                }
            }
        }
    }
    let next = AtomicUsize::new(0);
    let records: Mutex<BTreeMap<(usize, u64, usize, usize), Record>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(&(c, seed, size, name)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let record = run(&cells[c], names[name], &set, SIZES[size], seed);
                    records.lock().unwrap_or_else(PoisonError::into_inner).insert((c, seed, size, name), record);
                }
            });
        }
    });
    let records = records.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (name, start) in names.iter().enumerate().skip(1) {
        println!("== {start}: time over the reference's; delay ms, packets lost (10 MB) of both; exits (10 MB)");
        let (mut larges, mut smalls, mut delays) = (Vec::new(), Vec::new(), Vec::new());
        for (c, cell) in cells.iter().enumerate() {
            let of = |size: usize, name: usize| -> Vec<&Record> {
                records.iter().filter(|((a, _, b, d), _)| *a == c && *b == size && *d == name).map(|(_, r)| r).collect()
            };
            let ratios: Vec<f64> = (0..SIZES.len())
                .map(|size| {
                    median(of(size, name).iter().zip(of(size, 0)).map(|(one, other)| one.time / other.time).collect())
                })
                .collect();
            let large = (ratios[1..].iter().map(|ratio| ratio.ln()).sum::<f64>() / (ratios.len() - 1) as f64).exp();
            let all = |name: usize, value: fn(&Record) -> f64| {
                mean(&of(3, name).iter().map(|record| value(record)).collect::<Vec<_>>())
            };
            let middle = |name: usize| median(of(3, name).iter().map(|record| record.delay).collect());
            let (delay, delay0) = (middle(name), middle(0));
            let ratio = if delay <= 0.0 { 0.0 } else { delay / delay0 };
            let mut line = format!("{:34} {large:5.2} |", cell.name);
            for ratio in &ratios {
                let _ = write!(line, " {ratio:5.2}");
            }
            let _ = write!(
                line,
                " | {delay:6.1} {delay0:6.1} | {:5.0} {:5.0} in start {:4.0} {:4.0} | ",
                all(name, |r| r.lost),
                all(0, |r| r.lost),
                all(name, |r| r.lost_in_start),
                all(0, |r| r.lost_in_start)
            );
            let shown = if all_exits { usize::MAX } else { 1 };
            for record in of(3, name).iter().take(shown) {
                let _ = write!(line, "{}; ", record.exit);
            }
            let _ = write!(line, "({})", of(3, 0)[0].exit);
            println!("{line}");
            larges.push(large);
            smalls.push(ratios[0]);
            delays.push(ratio);
        }
        let worst = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let above = |limit: f64| larges.iter().filter(|ratio| **ratio > limit).count();
        println!(
            "-- {} cells: 100 kB and more: median {:.3}, mean of logs {:.3}, worst {:.2}, above 1.15: {}, above 1.05: {}; 30 kB: median {:.3}, worst {:.2}; delay ratio: median {:.3}",
            cells.len(),
            median(larges.clone()),
            mean(&larges.iter().map(|x| x.ln()).collect::<Vec<_>>()).exp(),
            worst(&larges),
            above(1.15),
            above(1.05),
            median(smalls.clone()),
            worst(&smalls),
            median(delays),
        );
    }
}
