//! A look at a path: a short one each way, and what it says.

use std::time::Instant;

use serde_json::{Value, json};

use flowstart_parallel::Cancel;
use flowstart_quic::message::{AGREE, Direction, Doubt, Looked, Report, Request, VERSION};
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
/// The ACKs of a way that take this share of the capacity of the way back may be all that it bears.
const ACKS_FILL: f64 = 0.8;
/// A range that is so small says less than it seems.
const LITTLE: f64 = 1.2;
/// RTTs that differ by no more than this are one number, in milliseconds.
const ONE_RTT: f64 = 0.2;

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
        let between = self.looked.between.map(|both| both.map(|rate| rate as f64 / 1e6));
        let between = between.map_or([least, most], |[low, high]| [low.min(least), high.max(most)]);
        (!self.looked.decided()).then_some(between)
    }

    /// True if the way back may carry no more ACKs than came: then packets may have arrived faster.
    fn acks_fill(&self, back: &Way) -> bool {
        let (Some([median, ..]), Some([.., most])) = (self.capacity, back.capacity) else { return false };
        let most = back.unsteady().map_or(most, |[_, most]| most);
        let packets = f64::from(self.looked.packet.max(1)) * self.merged().max(1.0);
        median * ACK_BYTES / packets >= most * ACKS_FILL
    }

    /// The least and the most milliseconds that a packet of so many bytes takes at the bottleneck.
    /// `faster` if the path may be faster than it seems.
    fn transmission(&self, bytes: f64, faster: bool) -> [f64; 2] {
        let at = |mbps: f64| if mbps > 0.0 { bytes * 8.0 / mbps / 1e3 } else { 0.0 };
        let [least, most] = match (self.unsteady(), self.capacity) {
            (Some(between), _) => between,
            (None, Some([median, ..])) => [median; 2],
            (None, None) => return [0.0; 2],
        };
        [if faster { 0.0 } else { at(most) }, at(least)]
    }

    /// The least and the most milliseconds of the RTT of a packet of no length, without any queue.
    fn rtt(&self, back: &Way) -> [f64; 2] {
        let whole = self.looked.rtt as f64 / 1e6;
        let packet = self.transmission(f64::from(self.looked.packet), self.acks_fill(back));
        let ack = back.transmission(ACK_BYTES, back.acks_fill(self));
        [whole - packet[1] - ack[1], whole - packet[0] - ack[0]].map(|rtt| rtt.max(0.0))
    }

    fn isolation(&self, back: &Way) -> &'a str {
        match &self.report().queue {
            Some(queue) if !self.acks_fill(back) => queue.isolation.as_str(),
            _ => "unknown",
        }
    }

    /// Why the capacity is not one number, if it is not.
    fn doubt(&self, back: &Way) -> Option<&'static str> {
        match self.looked.doubt {
            Some(Doubt::Few) => Some("too few trains had a rate"),
            Some(Doubt::Uneven) => Some("packets arrive in clumps, or are held up now and then"),
            Some(Doubt::Losses) => Some("many packets were lost"),
            Some(Doubt::Other) => Some("the server is not certain"),
            None if !self.looked.decided() => Some("trains do not agree"),
            None if self.acks_fill(back) => Some("the way back carries no more ACKs"),
            None => None,
        }
    }

    /// The capacity in words, in Mbit/s.
    fn rate(&self, back: &Way) -> String {
        match (self.unsteady(), self.capacity) {
            (Some([least, most]), Some([median, ..])) if most <= least * LITTLE => {
                format!("perhaps {} (undecided)", mbps(median))
            }
            (Some([least, most]), _) => format!("{} to {} (undecided)", mbps(least), mbps(most)),
            (None, Some([median, ..])) if self.acks_fill(back) => format!("at least {}", mbps(median)),
            (None, Some([median, ..])) => mbps(median),
            (None, None) => "?".to_owned(),
        }
    }

    /// Packets that one ACK brought news of, on average: 1 where nothing merges ACKs.
    fn merged(&self) -> f64 {
        let report = self.report();
        (report.packets - report.lost.min(report.packets)) as f64 / report.acks.max(1) as f64
    }

    fn json(&self, back: &Way) -> Value {
        let ms = |nanos: u64| nanos as f64 / 1e6;
        let [capacity, least, most] = self.capacity.map_or([None; 3], |all| all.map(Some));
        let [least, most] = self.unsteady().map_or([least, most], |both| both.map(Some));
        let held = self.looked.doubt == Some(Doubt::Uneven);
        json!({
            "capacity_mbps": capacity,
            "capacity_least_mbps": least,
            "capacity_most_mbps": most,
            "capacity_steady": self.capacity.map(|_| self.unsteady().is_none() && !self.acks_fill(back)),
            "capacity_at_least": self.capacity.map(|_| self.unsteady().is_none() && self.acks_fill(back)),
            "capacity_doubt": self.doubt(back),
            "rtt_ms": one(self.rtt(back)),
            "rtt_least_ms": self.rtt(back)[0],
            "rtt_most_ms": self.rtt(back)[1],
            "jitter_ms": ms(self.looked.jitter),
            "packets_per_ack": self.merged(),
            "burst_bytes": self.looked.burst.as_ref().map(|burst| burst.bytes),
            "burst_mbps": self.looked.burst.as_ref().map(|burst| burst.peak as f64 / 1e6),
            "burst_tested_bytes": (self.looked.tested > 0).then_some(self.looked.tested),
            "longest_queue_ms": ms(self.looked.queue),
            "buffer_ms": (self.looked.overflowed && !held).then(|| ms(self.looked.queue)),
            "ecn": self.looked.ecn,
            "isolation": self.isolation(back),
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

/// One number of two, if they are hardly apart.
fn one([least, most]: [f64; 2]) -> Option<f64> {
    (most - least <= ONE_RTT).then_some(f64::midpoint(least, most))
}

/// A round trip in words.
fn round_trip(rtt: [f64; 2], digits: usize) -> String {
    match one(rtt) {
        Some(rtt) => format!("{rtt:.digits$} ms"),
        None => format!("{:.digits$} to {:.digits$} ms", rtt[0], rtt[1]),
    }
}

fn sentence(down: &Way, up: &Way) -> String {
    let queue = match down.isolation(up) {
        "isolated" => "downwards your flow has a queue of its own",
        "shared" => "downwards your flow shares its queue with others",
        _ => "whether the queue downwards is shared could not be found out",
    };
    let (down_way, up_way) = (down, up);
    let rates = format!("{} Mbit/s down and {} Mbit/s up", down.rate(up), up.rate(down));
    let (about, rates) = match rates.strip_prefix("at least ") {
        Some(rest) => ("At least", rest),
        None => ("About", rates.as_str()),
    };
    let first = format!("{about} {rates}, {} there and back, and {queue}.", round_trip(both_ways(down, up), 1));
    let tested = down_way.looked.tested.min(up_way.looked.tested);
    let bursts = [down_way, up_way].iter().all(|way| way.looked.burst.is_some());
    match tested {
        0 => first,
        _ if bursts => first,
        tested => format!("{first}\nBehind a token bucket of more than {} kB a path may be slower.", tested / 1000),
    }
}

/// What both directions say of the round trip, which is the same: the more certain of them.
fn both_ways(down: &Way, up: &Way) -> [f64; 2] {
    let (there, back) = (down.rtt(up), up.rtt(down));
    match (one(there), one(back)) {
        (Some(_), None) => there,
        (None, Some(_)) => back,
        (Some(_), Some(_)) if there[0] <= back[0] => there,
        (Some(_), Some(_)) => back,
        (None, None) if there[1] - there[0] <= back[1] - back[0] => there,
        (None, None) => back,
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
    row("capacity", &|way, back| match (way.doubt(back), way.capacity) {
        (None, Some([median, least, most])) => {
            format!("{} Mbit/s ({} to {})", mbps(median), mbps(least), mbps(most))
        }
        (Some(_), Some(_)) => format!("{} Mbit/s", way.rate(back).trim_end_matches(" (undecided)")),
        (_, None) => "not found out".to_owned(),
    });
    row("RTT without queue", &|way, back| round_trip(way.rtt(back), 2));
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
        _ if way.looked.doubt == Some(Doubt::Uneven) => format!("unknown, waits of {}", ms(way.looked.queue)),
        true => format!("about {}", ms(way.looked.queue)),
        false => format!("more than {}", ms(way.looked.queue)),
    });
    row("ECN", &|way, _| if way.looked.ecn { "passes" } else { "does not pass" }.to_owned());
    row("packets lost", &|way, _| format!("{} of {}", way.report().lost, way.report().packets));
    for (way, back, name) in [(down, up, "down"), (up, down, "up")] {
        if let Some(doubt) = way.doubt(back) {
            text.push_str(&format!("{:<18}{doubt}\n", format!("undecided {name}")));
        }
    }
    for (way, back, name) in [(down, up, "queue down"), (up, down, "queue up")] {
        let words = if way.acks_fill(back) {
            "unknown: the way back carries no more ACKs".to_owned()
        } else {
            way.report().queue.as_ref().map_or("too slow a path to look".to_owned(), show::queue)
        };
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
            (outcome(&[9_600_000, 9_900_000, 10_100_000, 10_500_000], 21_099_400), outcome(&[5_000_000, 5_000_000], 0));
        let [down, up] = [&down, &up].map(|outcome| Way::new(outcome, outcome.report.look.as_ref().unwrap()));
        assert_eq!(down.capacity, Some([10.0, 9.6, 10.5]));
        assert!((one(down.rtt(&up)).unwrap() - 20.0002).abs() < 1e-9, "{:?}", down.rtt(&up));
        assert_eq!(up.rtt(&down), [0.0; 2]);
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

    /// ACKs of 62 bytes for two packets of 1250: 1 Mbit/s bears those of 40.3 Mbit/s.
    #[test]
    fn a_way_back_that_bears_no_more_acks_makes_the_capacity_a_lower_bound() {
        let (down, up) = (outcome(&[40_000_000; 3], 30_000_000), outcome(&[1_000_000; 3], 41_000_000));
        let [down, up] = [&down, &up].map(|outcome| Way::new(outcome, outcome.report.look.as_ref().unwrap()));
        assert!(down.acks_fill(&up) && !up.acks_fill(&down));
        let said = down.json(&up);
        assert_eq!((&said["capacity_steady"], &said["capacity_at_least"]), (&json!(false), &json!(true)));
        assert_eq!((&said["rtt_ms"], &up.json(&down)["capacity_steady"]), (&Value::Null, &json!(true)));
        // Up a packet takes 10 ms, and its ACK at most 25 us down: that is certain.
        let text = text(&down, &up, 0.5);
        assert!(text.starts_with("At least 40.0 Mbit/s down and 1.00 Mbit/s up, 31.0 ms there"), "{text}");
        assert!(text.contains("unknown: the way back carries no more ACKs"), "{text}");
        // At half of that rate nothing waits.
        let (down, up) = (outcome(&[20_000_000; 3], 30_000_000), outcome(&[1_000_000; 3], 41_000_000));
        let [down, up] = [&down, &up].map(|outcome| Way::new(outcome, outcome.report.look.as_ref().unwrap()));
        assert!(!down.acks_fill(&up) && down.doubt(&up).is_none());
    }

    #[test]
    fn one_train_that_agrees_with_itself_is_no_capacity_and_no_rtt() {
        let (down, up) = (outcome(&[130_000], 30_600_000), outcome(&[20_000_000; 3], 30_600_000));
        let [down, up] = [&down, &up].map(|outcome| Way::new(outcome, outcome.report.look.as_ref().unwrap()));
        assert_eq!(down.json(&up)["capacity_steady"], json!(false));
        let text = text(&down, &up, 0.5);
        // And with so slow a way back what came up may be what its ACKs allow.
        assert!(text.starts_with("About perhaps 0.13 (undecided) Mbit/s down and at least 20.0 Mbit/s up"), "{text}");
        assert!(text.contains("trains do not agree"), "{text}");
    }
}
