//! What looks say of paths drawn at random, in virtual time, judged by what is true.

mod common;
#[path = "common/drawn.rs"]
mod drawn;
#[path = "common/link.rs"]
mod link;

use common::request;
use drawn::{Drawn, KINDS, Kind};
use flowstart_quic::message::{Direction, Report, Request};
use flowstart_quic::{Capacity, LookConfig, Node as _, Reading, ReadingConfig, Service};
use flowstart_units::{Span, Time};
use link::{Busy, Link, Pipe, world_with};

/// What became of what was said in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// A figure within 5 %.
    Right,
    /// A figure that is not, behind a bucket of which the look says that it may hide a slower path.
    Hidden,
    /// Another figure, or a bound that is above the capacity.
    Wrong,
    /// A bound below the capacity.
    AtLeast,
    /// A range that holds the capacity, of a factor of four at the most.
    Holds,
    /// ... and a wider one, of little use.
    Wide,
    /// A range that does not hold it.
    Misses,
    /// Nothing was said.
    Nothing,
}

const SAID: [Said; 8] =
    [Said::Right, Said::Hidden, Said::Wrong, Said::AtLeast, Said::Holds, Said::Wide, Said::Misses, Said::Nothing];

/// What is asked of a figure.
const WITHIN: f64 = 0.05;
/// A range that is wider is of little use.
const WIDE: f64 = 4.0;

fn judge(path: &Drawn, way: usize, reading: &Reading, back: &Reading) -> Said {
    let truth = path.capacity[way];
    let near = |said: f64| (said / truth - 1.0).abs() <= WITHIN;
    let hidden = path.bucket.is_some_and(|bucket| bucket > reading.looked().tested && reading.looked().burst.is_none());
    match reading.capacity(back) {
        Capacity::Known(said) if near(said) => Said::Right,
        Capacity::Known(said) if hidden && said > truth => Said::Hidden,
        Capacity::Known(_) => Said::Wrong,
        Capacity::AtLeast(said) if said <= truth * (1.0 + WITHIN) => Said::AtLeast,
        Capacity::AtLeast(_) if hidden => Said::Hidden,
        Capacity::AtLeast(_) => Said::Wrong,
        Capacity::Between { least, most, .. } => {
            match least <= truth * (1.0 + WITHIN) && most >= truth * (1.0 - WITHIN) {
                true if most <= least * WIDE => Said::Holds,
                true => Said::Wide,
                false if hidden && least > truth => Said::Hidden,
                false => Said::Misses,
            }
        }
        Capacity::Unknown => Said::Nothing,
    }
}

/// A look in one direction; what waited longest, and what was lost.
fn look(path: &Drawn, down: bool, config: LookConfig) -> Option<(Report, Span, u64)> {
    let direction = if down { Direction::Down } else { Direction::Up };
    let asked = request(direction, 430_000, ("fair_queuing_probe", "delay_or_cubic"));
    let asked = Request { look: true, nanos: Some(2_000_000_000), ..asked };
    let mut world = world_with(&Link::default(), asked, None, Service::default(), config);
    for (pipe, described) in world.pipes.iter_mut().zip(path.pipes(down)) {
        *pipe = Pipe::of(described);
    }
    if !path.stalls.is_zero() {
        world.hosts = [7, 8].map(|seed| Busy::new(path.stalls, true, seed));
    }
    let most = Span::from_secs(60);
    while world.now < Time::ZERO + most && !world.client.is_over(world.now) {
        world.step(Time::NEVER);
    }
    let described = world.pipes[usize::from(down)].described.as_ref().unwrap();
    let (longest, dropped) = (described.longest, described.dropped);
    world.client.outcome().ok().map(|outcome| (outcome.report, longest, dropped))
}

struct Judged {
    kind: Kind,
    said: Said,
    isolation: &'static str,
    /// Both directions, in milliseconds.
    took: f64,
    queue: f64,
}

fn judged(seed: u64, count: u64, config: LookConfig, tell: bool) -> Vec<Judged> {
    let mut all = Vec::new();
    for number in 0..count {
        let path = Drawn::new(seed, number);
        let (Some(down), Some(up)) = (look(&path, true, config), look(&path, false, config)) else {
            println!("{number}: {path}: no look");
            continue;
        };
        let [one, other] = [&down, &up].map(|(report, ..)| Reading::new(report, ReadingConfig::USUAL).unwrap());
        for (way, (reading, back, (report, longest, dropped))) in
            [(one, other, &down), (other, one, &up)].into_iter().enumerate()
        {
            // What goes up over a slow way back is another path.
            let said = judge(&path, way, &reading, &back);
            let isolation = match (reading.isolation(&back), path.own) {
                ("isolated", true) | ("shared", false) => "right",
                ("isolated" | "shared", _) => "wrong",
                _ => "unknown",
            };
            let queue = longest.as_secs_f64() * 1e3;
            if tell {
                let looked = reading.looked();
                let (rates, truth) = (&looked.rates, path.capacity[way]);
                println!(
                    "{number} {} {said:?} {truth:.2}: {:?} {:?}, own {} {}, {path}; tested {} burst {:?} behind {:?} rates {:?}.. lost {} of {} dropped {dropped} queue {queue:.1} took {:.0}",
                    ["down", "up"][way],
                    reading.capacity(&back),
                    looked.doubt,
                    path.own,
                    reading.isolation(&back),
                    looked.tested,
                    looked.burst.as_ref().map(|burst| burst.bytes),
                    looked.behind,
                    rates.iter().map(|rate| rate / 10_000).collect::<Vec<_>>(),
                    report.lost,
                    report.packets,
                    report.nanos as f64 / 1e6,
                );
            }
            all.push(Judged {
                kind: path.kind,
                said,
                isolation,
                took: (down.0.nanos + up.0.nanos) as f64 / 1e6,
                queue,
            });
        }
    }
    all
}

/// A middle, and the most.
fn spread(mut values: Vec<f64>) -> [f64; 2] {
    values.sort_by(f64::total_cmp);
    [values.get(values.len() / 2), values.last()].map(|value| value.copied().unwrap_or(0.0))
}

fn print(all: &[Judged]) {
    println!(
        "| kind | {} | isolation right, wrong, unknown | time, s | queue, ms |",
        SAID.map(|said| format!("{said:?}")).join(" | ")
    );
    let row = |name: String, some: Vec<&Judged>| {
        let said = SAID.map(|said| some.iter().filter(|it| it.said == said).count().to_string());
        let own =
            ["right", "wrong", "unknown"].map(|word| some.iter().filter(|it| it.isolation == word).count().to_string());
        let took = spread(some.iter().map(|it| it.took / 1e3).collect());
        let queue = spread(some.iter().map(|it| it.queue).collect());
        println!(
            "| {name} ({}) | {} | {} | {:.1}, {:.1} | {:.0}, {:.0} |",
            some.len(),
            said.join(" | "),
            own.join(", "),
            took[0],
            took[1],
            queue[0],
            queue[1]
        );
    };
    for kind in KINDS {
        row(format!("{kind:?}"), all.iter().filter(|it| it.kind == kind).collect());
    }
    row("all".to_owned(), all.iter().collect());
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The table of `docs/quic.md`: `FLOWSTART_LOOKS=SEED cargo test -p flowstart-quic --test looks --
/// --ignored --nocapture`.
#[test]
#[ignore = "a table of many looks, for the page"]
fn table_of_looks_at_paths_drawn_at_random() {
    let (seed, count) = (number("FLOWSTART_LOOKS", 1), number("FLOWSTART_LOOKS_COUNT", 150));
    print(&judged(seed, count, LookConfig::default(), number("FLOWSTART_LOOKS_TELL", 0) > 0));
}
