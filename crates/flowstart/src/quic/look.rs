//! A look at a path: a short transfer each way by the detector of fair queuing, and what it says.

use serde_json::{Value, json};

use flowstart_quic::message::{Direction, Report, Request, VERSION};
use flowstart_quic::{Outcome as Transferred, Sink};
use flowstart_units::Rate;

use super::transfer::{Target, session};
use super::{PathArgs, show};
use crate::interrupt;
use crate::output::{Outcome, note, print, print_json};

/// Bytes each way: half a megabyte with headers and repairs.
const BYTES: u64 = 440_000;

/// Looks at a path.
pub(crate) fn look(args: &PathArgs) -> Outcome {
    let target = Target::find(&args.host, args.port, args.fingerprint.as_deref(), args.insecure)?;
    let cancel = interrupt::listen();
    let mut ways = Vec::new();
    let mut punctual = true;
    for direction in [Direction::Down, Direction::Up] {
        let request = Request {
            version: VERSION,
            session: session(),
            connections: 2,
            direction,
            size: Some(BYTES),
            nanos: None,
            streams: 1,
            start: "fair_queuing_probe".to_owned(),
            avoidance: "delay_or_cubic".to_owned(),
            file: None,
        };
        let (outcome, real_time) = target.transfer(request, Sink::Check, &mut |_, _, _| !cancel.is_cancelled())?;
        punctual &= real_time;
        ways.push(outcome);
    }
    if args.json {
        let [down, up] = [0, 1].map(|way| way_json(&ways[way]));
        return print_json(&json!({ "down": down, "up": up, "real_time_priority": punctual }));
    }
    if !punctual {
        note("without real-time priority: what this says is less certain when the machine is busy");
    }
    print(&text(&ways))
}

/// Capacity that the detector read from its trains, in Mbit/s of IP packets.
fn capacity(report: &Report) -> Option<f64> {
    report.queue.as_ref().map(|queue| Rate::from_bps(queue.rate).as_mbps_f64())
}

fn sentence(ways: &[Transferred]) -> String {
    let [down, up] = [0, 1].map(|way| capacity(&ways[way].report).map_or("?".to_owned(), |rate| format!("{rate:.1}")));
    let rtt = ways.iter().map(|way| way.report.min_rtt).min().unwrap_or(0) as f64 / 1e6;
    let queue = ways[0].report.queue.as_ref().map_or("unknown", |queue| queue.isolation.as_str());
    let queue = match queue {
        "isolated" => "downwards your flow has a queue of its own",
        "shared" => "downwards your flow shares its queue with others",
        _ => "whether the queue downwards is shared could not be found out",
    };
    format!("About {down} Mbit/s down and {up} Mbit/s up, {rtt:.2} ms there and back, and {queue}.")
}

fn text(ways: &[Transferred]) -> String {
    let mut text = format!("{}\n\n{:<18}{:>24}{:>24}\n", sentence(ways), "", "down", "up");
    let ms = |nanos: u64| format!("{:.2} ms", nanos as f64 / 1e6);
    let mut row = |name: &str, value: &dyn Fn(&Report) -> String| {
        let [down, up] = [0, 1].map(|way| value(&ways[way].report));
        text.push_str(&format!("{name:<18}{down:>24}{up:>24}\n"));
    };
    row("capacity", &|report| capacity(report).map_or("?".to_owned(), |rate| format!("{rate:.1} Mbit/s")));
    row("smallest RTT", &|report| ms(report.min_rtt));
    row("largest RTT", &|report| ms(report.max_rtt));
    row("jitter", &|report| ms(report.jitter));
    row("packets per ACK", &|report| format!("{:.2}", merged(report)));
    row("packets lost", &|report| format!("{} of {}", report.lost, report.packets));
    for (way, name) in ways.iter().zip(["queue down", "queue up"]) {
        let words = way.report.queue.as_ref().map_or("not found out".to_owned(), show::queue);
        text.push_str(&format!("{name:<18}{words}\n"));
    }
    text
}

/// Packets that one ACK brought news of, on average: 1 where nothing merges ACKs.
fn merged(report: &Report) -> f64 {
    (report.packets - report.lost.min(report.packets)) as f64 / report.acks.max(1) as f64
}

fn way_json(way: &Transferred) -> Value {
    json!({
        "capacity_mbps": capacity(&way.report),
        "min_rtt_ms": way.report.min_rtt as f64 / 1e6,
        "max_rtt_ms": way.report.max_rtt as f64 / 1e6,
        "jitter_ms": way.report.jitter as f64 / 1e6,
        "packets_per_ack": merged(&way.report),
        "report": way.report,
    })
}
