//! A look at a path: a short one each way, and what it says.

use std::time::Instant;

use serde_json::{Value, json};

use flowstart_parallel::Cancel;
use flowstart_quic::message::{AGREE, Direction, Looked, Report, Request, VERSION};
use flowstart_quic::{Sink, Transferred};
use flowstart_units::{Rate, Span};

use super::target::{Target, session};
use super::{PathArgs, show, wrong};
use crate::interrupt;
use crate::output::{Done, Failure, note, print, print_json};

/// Bytes each way: half a megabyte with headers and repairs.
const BYTES: u64 = 430_000;
/// Time each way at most, without what is lost at its end.
const LONGEST: Span = Span::from_secs(2);
/// Bytes of an IP packet that has nothing but an ACK, as a rule.
const ACK_BYTES: f64 = 62.0;

/// What one direction is like.
struct Way<'a> {
    outcome: &'a Transferred,
    looked: &'a Looked,
    /// Capacity in Mbit/s of IP packets: median, least and most of the trains.
    capacity: Option<[f64; 3]>,
}

impl<'a> Way<'a> {
    fn new(outcome: &'a Transferred, looked: &'a Looked) -> Self {
        // Those that found the bucket empty, if there is one.
        let bears = |rate: &&u64| looked.behind.is_none_or(|behind| **rate as f64 <= behind as f64 * AGREE);
        let rates: Vec<u64> = looked.rates.iter().filter(bears).copied().collect();
        let mbps = |at: usize| rates.get(at).map(|rate| *rate as f64 / 1e6);
        let count = rates.len();
        let capacity = mbps(count / 2).and_then(|median| Some([median, mbps(0)?, mbps(count.checked_sub(1)?)?])).map(
            |[median, least, most]| match (count.is_multiple_of(2), mbps((count / 2).saturating_sub(1))) {
                (true, Some(before)) => [f64::midpoint(before, median), least, most],
                _ => [median, least, most],
            },
        );
        let capacity = match looked.behind {
            Some(behind) => capacity.map(|[_, least, most]| [behind as f64 / 1e6, least, most]),
            None => capacity,
        };
        Self { outcome, looked, capacity }
    }

    fn report(&self) -> &'a Report {
        &self.outcome.report
    }

    /// The least and the most in Mbit/s, if they are too far apart for their median to say much.
    fn unsteady(&self) -> Option<[f64; 2]> {
        let [_, least, most] = self.capacity?;
        (!self.looked.decided()).then_some([least, most])
    }

    /// Milliseconds that a packet of so many bytes takes at the bottleneck.
    fn transmission(&self, bytes: f64) -> f64 {
        self.capacity.map_or(0.0, |[median, ..]| bytes * 8.0 / median / 1e3)
    }

    /// RTT of a packet of no length, without any queue, in milliseconds.
    fn rtt(&self, back: &Way) -> f64 {
        let whole = self.looked.rtt as f64 / 1e6;
        (whole - self.transmission(f64::from(self.looked.packet)) - back.transmission(ACK_BYTES)).max(0.0)
    }

    fn isolation(&self) -> &'a str {
        self.report().queue.as_ref().map_or("unknown", |queue| queue.isolation.as_str())
    }

    /// Packets that one ACK brought news of, on average: 1 where nothing merges ACKs.
    fn merged(&self) -> f64 {
        let report = self.report();
        (report.packets - report.lost.min(report.packets)) as f64 / report.acks.max(1) as f64
    }

    fn json(&self, back: &Way) -> Value {
        let ms = |nanos: u64| nanos as f64 / 1e6;
        let [capacity, least, most] = self.capacity.map_or([None; 3], |all| all.map(Some));
        json!({
            "capacity_mbps": capacity,
            "capacity_least_mbps": least,
            "capacity_most_mbps": most,
            "capacity_steady": self.capacity.map(|_| self.unsteady().is_none()),
            "rtt_ms": self.rtt(back),
            "jitter_ms": ms(self.looked.jitter),
            "packets_per_ack": self.merged(),
            "burst_bytes": self.looked.burst.as_ref().map(|burst| burst.bytes),
            "burst_mbps": self.looked.burst.as_ref().map(|burst| burst.peak as f64 / 1e6),
            "burst_tested_bytes": (self.looked.tested > 0).then_some(self.looked.tested),
            "longest_queue_ms": ms(self.looked.queue),
            "buffer_ms": self.looked.overflowed.then(|| ms(self.looked.queue)),
            "ecn": self.looked.ecn,
            "isolation": self.isolation(),
            "confidence": self.report().queue.as_ref().and_then(|queue| queue.confidence),
            "report": self.report(),
        })
    }
}

/// Looks at a path in one direction; what was seen, and whether packets left on time.
fn one_way(target: &Target, direction: Direction, cancel: &Cancel) -> Result<(Transferred, bool), Failure> {
    let request = Request {
        version: VERSION,
        session: session(),
        connections: 2,
        direction,
        size: Some(BYTES),
        nanos: Some(LONGEST.as_nanos()),
        streams: 1,
        start: "fair_queuing_probe".to_owned(),
        avoidance: "delay_or_cubic".to_owned(),
        file: None,
        look: true,
        paced: None,
    };
    target.transfer(request, Sink::Check, None, &mut |_, _, _| !cancel.is_cancelled())
}

/// A rate in Mbit/s to three digits: more are not known.
fn rounded(mbps: f64) -> Rate {
    let rounded: f64 = format!("{mbps:.2e}").parse().unwrap_or(mbps);
    Rate::from_bps((rounded * 1e6).round() as u64)
}

/// The capacity of a path from here to a server, of IP packets.
pub(crate) fn capacity_up(target: &Target, cancel: &Cancel) -> Result<Rate, Failure> {
    let (outcome, _) = one_way(target, Direction::Up, cancel)?;
    let way = outcome.report.look.as_ref().and_then(|looked| Way::new(&outcome, looked).capacity);
    let [median, ..] = way.ok_or_else(|| wrong(format!("the capacity to {} could not be found out", target.to)))?;
    Ok(rounded(median))
}

/// Looks at a path.
pub(crate) fn look(args: &PathArgs) -> Done {
    let target = Target::of(&args.server)?;
    let cancel = interrupt::listen();
    let began = Instant::now();
    let mut outcomes = Vec::new();
    let mut punctual = true;
    for direction in [Direction::Down, Direction::Up] {
        let (outcome, real_time) = one_way(&target, direction, &cancel)?;
        punctual &= real_time;
        outcomes.push(outcome);
    }
    let took = began.elapsed().as_secs_f64();
    let looked = outcomes.iter().filter_map(|outcome| Some(Way::new(outcome, outcome.report.look.as_ref()?)));
    let Ok([down, up]) = <[Way; 2]>::try_from(looked.collect::<Vec<_>>()) else {
        return Err(wrong(format!("{} has not looked at the path", target.to)));
    };
    if args.json {
        return print_json(&json!({
            "down": down.json(&up),
            "up": up.json(&down),
            "seconds": took,
            "real_time_priority": punctual,
        }));
    }
    if !punctual {
        note("without real-time priority: what this says is less certain when the machine is busy");
    }
    print(&text(&down, &up, took))
}

fn sentence(down: &Way, up: &Way) -> String {
    let rate = |way: &Way| match (way.unsteady(), way.capacity) {
        (Some([least, most]), _) => format!("{} to {} (undecided)", mbps(least), mbps(most)),
        (None, Some([median, ..])) => mbps(median),
        (None, None) => "?".to_owned(),
    };
    let queue = match down.isolation() {
        "isolated" => "downwards your flow has a queue of its own",
        "shared" => "downwards your flow shares its queue with others",
        _ => "whether the queue downwards is shared could not be found out",
    };
    let (rtt, down_way, up_way) = (down.rtt(up).min(up.rtt(down)), down, up);
    let rates = format!("{} Mbit/s down and {} Mbit/s up", rate(down), rate(up));
    let first = format!("About {rates}, {rtt:.1} ms there and back, and {queue}.");
    let tested = down_way.looked.tested.min(up_way.looked.tested);
    let bursts = [down_way, up_way].iter().all(|way| way.looked.burst.is_some());
    match tested {
        0 => first,
        _ if bursts => first,
        tested => format!("{first}\nBehind a token bucket of more than {} kB a path may be slower.", tested / 1000),
    }
}

/// Three digits.
fn mbps(rate: f64) -> String {
    match rate {
        rate if rate < 10.0 => format!("{rate:.2}"),
        rate if rate < 100.0 => format!("{rate:.1}"),
        rate => format!("{rate:.0}"),
    }
}

fn text(down: &Way, up: &Way, took: f64) -> String {
    let mut text = format!("{}\n\n{:<18}{:>32}{:>32}\n", sentence(down, up), "", "down", "up");
    let ms = |nanos: u64| format!("{:.2} ms", nanos as f64 / 1e6);
    let mut row = |name: &str, value: &dyn Fn(&Way, &Way) -> String| {
        let (down, up) = (value(down, up), value(up, down));
        text.push_str(&format!("{name:<18}{down:>32}{up:>32}\n"));
    };
    row("capacity", &|way, _| match way.capacity {
        Some([median, least, most]) => format!("{} Mbit/s ({} to {})", mbps(median), mbps(least), mbps(most)),
        None => "not found out".to_owned(),
    });
    row("RTT without queue", &|way, back| format!("{:.2} ms", way.rtt(back)));
    row("jitter", &|way, _| ms(way.looked.jitter));
    row("packets per ACK", &|way, _| format!("{:.2}", way.merged()));
    row("burst", &|way, _| match &way.looked.burst {
        Some(burst) => format!("{} kB at {} Mbit/s", burst.bytes / 1000, mbps(burst.peak as f64 / 1e6)),
        None if way.unsteady().is_some() => {
            format!("{} kB or more, not empty at last", way.looked.tested.max(1000) / 1000)
        }
        None if way.looked.tested > 0 => format!("none of up to {} kB", way.looked.tested / 1000),
        None => "none seen".to_owned(),
    });
    row("buffer", &|way, _| match way.looked.overflowed {
        true => format!("about {}", ms(way.looked.queue)),
        false => format!("more than {}", ms(way.looked.queue)),
    });
    row("ECN", &|way, _| if way.looked.ecn { "passes" } else { "does not pass" }.to_owned());
    row("packets lost", &|way, _| format!("{} of {}", way.report().lost, way.report().packets));
    for (way, name) in [(down, "queue down"), (up, "queue up")] {
        let words = way.report().queue.as_ref().map_or("too slow a path to look".to_owned(), show::queue);
        text.push_str(&format!("{name:<18}{words}\n"));
    }
    text.push_str(&format!("{:<18}{took:.2} s\n", "took"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_quic::Lesson;
    use flowstart_quic::message::Received;

    fn outcome(rates: &[u64], rtt: u64) -> Transferred {
        let document = json!({
            "bytes": 1, "nanos": 1, "packets": 30, "lost": 0, "marked": 0, "acks": 15, "min_rtt": 1,
            "mean_rtt": 1, "max_rtt": 1, "jitter": 1, "exit": null, "exit_after": null, "late": [0, 0],
            "real_time": true,
            "queue": null,
            "look": { "rates": rates, "burst": null, "rtt": rtt, "packet": 1250, "jitter": 0,
                      "queue": 2_500_000, "lost": 0, "overflowed": false, "ecn": true },
        });
        let report = serde_json::from_value(document).unwrap();
        let received = Received { bytes: 1, nanos: 1, intact: true };
        Transferred { report, received, fingerprint: None, handshake: Span::ZERO, lesson: Lesson::Nothing }
    }

    #[test]
    fn what_is_said_is_the_median_and_the_rtt_without_what_packets_take_themselves() {
        // 1250 bytes at 10 Mbit/s take 1 ms, an ACK of 62 at 5 Mbit/s 0.099 ms.
        let (down, up) =
            (outcome(&[9_600_000, 9_900_000, 10_100_000, 10_500_000], 21_099_400), outcome(&[5_000_000], 0));
        let [down, up] = [&down, &up].map(|outcome| Way::new(outcome, outcome.report.look.as_ref().unwrap()));
        assert_eq!(down.capacity, Some([10.0, 9.6, 10.5]));
        assert!((down.rtt(&up) - 20.0002).abs() < 1e-9, "{}", down.rtt(&up));
        assert_eq!(up.rtt(&down), 0.0);
        assert_eq!(down.merged(), 2.0);
        let text = text(&down, &up, 0.5);
        assert!(text.starts_with("About 10.0 Mbit/s down and 5.00 Mbit/s up, 0.0 ms there and back, and whether"));
        assert!(text.contains("10.0 Mbit/s (9.60 to 10.5)") && text.contains("more than 2.50 ms"), "{text}");
        for (mbps, bps) in [(10.399_663, 10_400_000), (0.123_456, 123_000), (721.5, 722_000_000), (0.0, 0)] {
            assert_eq!(rounded(mbps).as_bps(), bps);
        }
        // Some trains did not empty a token bucket: no rate is the capacity.
        let bucket = outcome(&[5_000_000, 49_000_000, 50_000_000, 51_000_000], 0);
        let bucket = Way::new(&bucket, bucket.report.look.as_ref().unwrap());
        assert_eq!((bucket.unsteady(), up.unsteady()), (Some([5.0, 51.0]), None));
        assert_eq!(
            (&bucket.json(&up)["capacity_steady"], &up.json(&bucket)["capacity_steady"]),
            (&json!(false), &json!(true))
        );
        let text = super::text(&bucket, &up, 0.5);
        assert!(text.starts_with("About 5.00 to 51.0 (undecided) Mbit/s down and 5.00 Mbit/s up"), "{text}");
        assert!(text.contains("kB or more, not empty at last") && text.contains("none seen"), "{text}");
        let nothing = outcome(&[], 0);
        let nothing = Way::new(&nothing, nothing.report.look.as_ref().unwrap());
        assert_eq!(nothing.capacity, None);
        assert_eq!(nothing.json(&up)["capacity_mbps"], Value::Null);
    }
}
