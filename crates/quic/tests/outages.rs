//! Looks at paths that are away for a time, in virtual time.

mod common;
#[path = "common/link.rs"]
mod link;

use common::request;
use flowstart_quic::message::{Direction, Report, Request};
use flowstart_quic::{Capacity, Node as _, Reading, ReadingConfig, Service};
use flowstart_units::{Rate, Span, Time};
use link::{Link, world};

/// A path is away for so many milliseconds from a time on: what comes is lost, or waits.
struct Away {
    from: u64,
    lasts: u64,
    held: bool,
}

/// A look over a path of so many Mbit/s and milliseconds.
fn look(mbps: u64, rtt: u64, away: &Away, direction: Direction) -> Report {
    let delay = Span::from_micros(rtt * 500);
    let link = Link { rate: Rate::from_mbps(mbps), delay, buffer: 4000, ..Link::default() };
    let asked = request(direction, 430_000, ("fair_queuing_probe", "delay_or_cubic"));
    let asked = Request { look: true, nanos: Some(2_000_000_000), ..asked };
    let mut world = world(&link, asked, None, Service::default());
    let [begins, ends] = [0, away.lasts].map(|after| Time::ZERO + Span::from_millis(away.from + after));
    for until in [begins, ends, Time::ZERO + Span::from_secs(60)] {
        while world.now < until && !world.client.is_over(world.now) {
            world.step(until);
        }
        match away.held {
            true if until == begins => world.pipes.iter_mut().for_each(|pipe| pipe.hold(ends)),
            true => {}
            false => world.cut(until == begins),
        }
    }
    world.client.outcome().unwrap().report
}

/// What waited for the path to come back was a queue as long as that, and jitter of up to 956 ms.
/// What is over before the look has seen anything pass, or shorter than what it was silent before,
/// cannot be told from a queue.
#[test]
fn an_outage_is_no_queue() {
    let (mut looks, mut untold, mut buffers, mut wrong) = (0, Vec::new(), Vec::new(), Vec::new());
    for (mbps, rtt) in [(5, 30), (20, 30), (20, 100), (100, 15)] {
        for (from, lasts, held) in [100, 150, 250, 350, 450, 600, 800]
            .into_iter()
            .flat_map(|from| [300, 1000].map(|lasts| (from + 2 * rtt, lasts)))
            .flat_map(|(from, lasts)| [false, true].map(|held| (from, lasts, held)))
        {
            for direction in [Direction::Down, Direction::Up] {
                let report = look(mbps, rtt, &Away { from, lasts, held }, direction);
                let reading = Reading::new(&report, ReadingConfig::USUAL).unwrap();
                let looked = reading.looked();
                let what = format!(
                    "{mbps} Mbit/s, {rtt} ms, away from {from} for {lasts} ms, held {held}, {direction:?}: {looked:?}"
                );
                let [away, queue, jitter] = [looked.away, looked.queue, looked.jitter].map(|it| it as f64 / 1e6);
                looks += 1;
                if queue > 60.0 || jitter > 60.0 {
                    untold.push(what.clone());
                }
                let figure = match reading.capacity(&reading) {
                    Capacity::Known(said) => (said / mbps as f64 - 1.0).abs() <= 0.05,
                    Capacity::Between { least, most, .. } => least <= mbps as f64 && most >= mbps as f64,
                    Capacity::AtLeast(_) | Capacity::Unknown => false,
                };
                if looked.overflowed {
                    buffers.push(what.clone());
                }
                // What is sent again comes later still.
                let most = lasts as f64 + if held { 50.0 } else { 500.0 };
                if !figure || away > most {
                    wrong.push(what);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(buffers.len() * 20 <= looks, "{} of {looks}: {}", buffers.len(), buffers.join("\n"));
    assert!(untold.len() * 20 <= looks, "{} of {looks}: {}", untold.len(), untold.join("\n"));
}
