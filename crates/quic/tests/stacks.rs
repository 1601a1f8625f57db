//! The driver over either stack, and over one at each end, in virtual time.

mod common;
#[path = "common/link.rs"]
mod link;

use common::request;
use flowstart_network::{LinkConfig, QueueConfig, RateSchedule};
use flowstart_quic::message::{Direction, Report};
use flowstart_quic::{Node as _, Stack};
use flowstart_units::{Rate, Span, Time};
use link::described::{Described, Others};
use link::{Link, Pipe, world_over};

const BOTH_WAYS: [Direction; 2] = [Direction::Down, Direction::Up];
/// IP packet of a full datagram.
const FULL: u64 = 1480;

/// Every stack at the client with every stack at the server.
fn pairs() -> impl Iterator<Item = [Stack; 2]> {
    Stack::ALL.into_iter().flat_map(|client| Stack::ALL.map(|server| [client, server]))
}

#[test]
fn any_stack_speaks_to_any_other_both_ways() {
    for stacks in pairs() {
        for direction in BOTH_WAYS {
            let asked = request(direction, 500_000, ("adaptive_chirping", "cubic"));
            let (outcome, _) = world_over(&Link::default(), asked, stacks).run(Span::from_secs(20));
            let outcome = outcome.unwrap();
            assert!(outcome.received.intact && outcome.received.bytes == 500_000, "{stacks:?} {outcome:?}");
            let report = outcome.report;
            // 0.2 s at the link's rate, and what the start takes. Nothing is lost, and all but the
            // ACKs around the moment the request for it arrives tell of one packet.
            assert!((200..400).contains(&(report.nanos / 1_000_000)), "{stacks:?} {report:?}");
            assert_eq!(report.lost, 0, "{stacks:?} {report:?}");
            assert!(report.acks * 20 >= report.packets * 19, "{stacks:?} {report:?}");
            assert!((20_000_000..22_000_000).contains(&report.min_rtt), "{stacks:?} {report:?}");
        }
    }
}

#[test]
fn over_quinn_loss_and_reordering_leave_every_byte_as_it_was() {
    for (loss, jitter) in [(20, 0), (0, 5), (20, 5)] {
        let link = Link { loss, jitter: Span::from_millis(jitter), ..Link::default() };
        for contestant in [("slow_start", "cubic"), ("built_in", "bbr"), ("fair_queuing_probe", "delay_or_cubic")] {
            for direction in BOTH_WAYS {
                let asked = request(direction, 500_000, contestant);
                let (outcome, _) = world_over(&link, asked, [Stack::Quinn; 2]).run(Span::from_secs(60));
                let outcome = outcome.unwrap();
                assert!(outcome.received.intact && outcome.received.bytes == 500_000, "{contestant:?} {outcome:?}");
                assert!(loss == 0 || outcome.report.lost > 5, "{contestant:?} {outcome:?}");
            }
        }
    }
}

/// A link of so many Mbit/s and this round trip, with a drop-tail queue of so many times what it
/// holds.
#[derive(Clone, Copy, Debug)]
struct Path {
    mbps: u64,
    rtt: u64,
    queue: f64,
}

/// What became of an upload over a path.
#[derive(Debug)]
struct Seen {
    report: Report,
    /// Packets that the link lost from when data began.
    dropped: u64,
    /// Until the server had all, in ms from then on.
    complete: f64,
    /// When full packets came to the link, in ns from then on.
    came: Vec<u64>,
}

fn upload(path: Path, contestant: (&str, &str), size: u64, stack: Stack) -> Seen {
    let mut world = world_over(&Link::default(), request(Direction::Up, size, contestant), [stack; 2]);
    let rtt = Span::from_millis(path.rtt);
    let pipe = |mbps, packets| {
        let rate = Rate::from_mbps(mbps);
        let config = LinkConfig::new(RateSchedule::Constant(rate), rtt / 2, QueueConfig::drop_tail(packets));
        Pipe::of(Described::new(&config, Others::Nobody, rtt, 1))
    };
    let holds = path.mbps * 1000 * path.rtt / 8 / FULL;
    world.pipes = [pipe(path.mbps, (holds as f64 * path.queue).round() as u64), pipe(10_000, 10_000)];
    let mut complete = None;
    while !world.client.is_over(world.now) && world.now < Time::ZERO + Span::from_secs(60) {
        world.step(Time::NEVER);
        if complete.is_none() && world.server.received() >= size {
            complete = Some(world.now);
        }
    }
    let began = world.client.sending().unwrap().began().unwrap();
    let link = world.pipes[0].described.as_ref().unwrap();
    let takes = Rate::from_mbps(path.mbps).transmission_time(flowstart_units::Bytes::new(FULL));
    let came = link.waits.iter().filter(|(left, _)| *left > began + takes);
    let came = came.map(|(left, waited)| (*left - takes - *waited).since(began).as_nanos()).collect();
    let dropped = link.dropped;
    let outcome = world.client.outcome().unwrap();
    assert!(outcome.received.intact && outcome.received.bytes == size, "{outcome:?}");
    Seen { report: outcome.report, dropped, complete: complete.unwrap().since(began).as_secs_f64() * 1e3, came }
}

/// The three paths of the table in docs/quic-stack.md.
const PATHS: [Path; 3] = [
    Path { mbps: 10, rtt: 20, queue: 1.0 },
    Path { mbps: 20, rtt: 40, queue: 0.5 },
    Path { mbps: 100, rtt: 20, queue: 1.0 },
];
const CONTESTANTS: [(&str, &str); 3] = [("slow_start", "cubic"), ("built_in", "bbr"), ("adaptive_chirping", "cubic")];

/// Nothing overtakes on these links, so nothing is deemed lost that is not. With `--nocapture` this
/// prints the table in docs/quic-stack.md.
#[test]
fn quinn_loses_what_the_link_drops_and_takes_as_long_as_noq() {
    for contestant in CONTESTANTS {
        for path in PATHS {
            let [noq, quinn] = Stack::ALL.map(|stack| upload(path, contestant, 2_000_000, stack));
            let Path { mbps, rtt, queue } = path;
            println!(
                "| `{}+{}` | {mbps}, {rtt}, {queue} | {:.0}, {:.0} | {}, {} | {}, {} |",
                contestant.0,
                contestant.1,
                noq.complete,
                quinn.complete,
                noq.report.lost,
                quinn.report.lost,
                noq.dropped,
                quinn.dropped,
            );
            for seen in [&noq, &quinn] {
                assert_eq!(seen.report.lost, seen.dropped, "{contestant:?} {path:?}");
            }
            let ratio = quinn.complete / noq.complete;
            assert!((0.95..1.05).contains(&ratio), "{contestant:?} {path:?}: {ratio}");
        }
    }
}

#[test]
fn chirps_have_the_gaps_over_quinn_that_they_have_over_noq() {
    let path = Path { mbps: 50, rtt: 40, queue: 2.0 };
    let [noq, quinn] = Stack::ALL.map(|stack| upload(path, ("adaptive_chirping", "cubic"), 1_000_000, stack));
    let gaps = |seen: &Seen| seen.came.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>();
    let [noq, quinn] = [gaps(&noq), gaps(&quinn)];
    for (number, (noq, quinn)) in noq.iter().zip(&quinn).take(100).enumerate() {
        assert!(noq.abs_diff(*quinn) <= 2_000, "gap {number}: {noq} and {quinn} ns");
    }
}

/// Most of what is deemed lost here arrives after all, and its reduction is taken back. Without
/// that CUBIC took up to six times as long.
#[test]
fn where_packets_overtake_each_other_quinn_takes_as_long_as_noq() {
    for jitter in [1, 2, 5] {
        for contestant in CONTESTANTS {
            let [noq, quinn] = Stack::ALL.map(|stack| {
                let jitter = Span::from_millis(jitter);
                let link = Link { rate: Rate::from_mbps(50), buffer: 1000, jitter, ..Link::default() };
                let asked = request(Direction::Down, 2_000_000, contestant);
                world_over(&link, asked, [stack; 2]).run(Span::from_secs(60)).0.unwrap().report
            });
            assert!(noq.lost > 20, "{jitter} ms, {contestant:?}: {noq:?}");
            let ratio = quinn.nanos as f64 / noq.nanos as f64;
            assert!((0.9..1.1).contains(&ratio), "{jitter} ms, {contestant:?}: {ratio}");
            assert!(quinn.lost.abs_diff(noq.lost) <= 4 + noq.lost / 10, "{jitter} ms, {contestant:?}: {quinn:?}");
        }
    }
}
