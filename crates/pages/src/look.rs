//! A look at a path, in words and for programs.

mod document;
mod figures;

use serde_json::{Value, json};

use flowstart_quic::message::Doubt;
use flowstart_quic::{Capacity, FindingsConfig, Reading, Stack};

use crate::transfer;
use document::document;
use figures::{kilobytes, mbps, one, round_trip};

/// A range that is so small says less than it seems.
const LITTLE: f64 = 1.2;
/// Twice the rate in Mbit/s below which the shortest trains of a detector queue for too long: above
/// it that is not the reason why there were none.
const SLOW: f64 = 2.4;
/// A look queues no longer than this, in milliseconds, where two packets do not.
const QUEUE: f64 = 50.0;
/// What is said where packets that met no queue of the look took different times.
const WAITED: &str =
    "Packets waited in a queue that was there already, or were held up: without that a round trip may take less.";

/// What a look says to programs, downwards and upwards: it took so many seconds, with packets of so
/// many bytes; `punctual`: they left with real-time priority.
#[must_use]
pub fn json([down, up]: [&Reading; 2], seconds: f64, punctual: bool, stack: Stack, packet: u16) -> Value {
    json!({
        "down": document(down, up),
        "up": document(up, down),
        "seconds": seconds,
        "real_time_priority": punctual,
        "stack": stack.name(),
        "packet_bytes": packet,
    })
}

/// The capacity in words.
fn rate(way: &Reading, back: &Reading) -> String {
    match way.capacity(back) {
        Capacity::Between { least, middle, most } if most <= least * LITTLE => {
            format!("perhaps {} Mbit/s", mbps(middle))
        }
        Capacity::Between { least, most, .. } if most.is_infinite() => format!("{} Mbit/s or more", mbps(least)),
        Capacity::Between { least, most, .. } => format!("{} to {} Mbit/s", mbps(least), mbps(most)),
        Capacity::AtLeast(median) => format!("at least {} Mbit/s", mbps(median)),
        Capacity::Known(median) => format!("{} Mbit/s", mbps(median)),
        Capacity::Unknown => "not found out".to_owned(),
    }
}

/// The capacities of both directions, as a sentence begins.
fn rates(down: &Reading, up: &Reading) -> String {
    let said = |way: &Reading, back: &Reading| match way.capacity(back) {
        Capacity::Unknown => "an unknown rate".to_owned(),
        _ => rate(way, back),
    };
    let known = [(down, up), (up, down)].map(|(way, back)| matches!(way.capacity(back), Capacity::Known(_)));
    let first = if known[0] { "about " } else { "" };
    let second = if known[1] && !known[0] { "about " } else { "" };
    let text = format!("{first}{} down and {second}{} up", said(down, up), said(up, down));
    text[..1].to_uppercase() + &text[1..]
}

/// The least and the most of the round trip in milliseconds, if a full packet made one.
fn known(way: &Reading, back: &Reading) -> Option<[f64; 2]> {
    (way.looked().rtt > 0).then(|| way.rtt(back))
}

/// Whose queues they are.
fn queues(down: &str, up: &str) -> String {
    let words = |isolation: &str| match isolation {
        "isolated" => "has a queue of its own",
        "shared" => "shares its queue with others",
        _ => "may share its queue (not found out)",
    };
    match (down, up) {
        (down, up) if down == up && words(down) == words("unknown") => {
            "whether your flow shares its queues could not be found out".to_owned()
        }
        (down, up) if down == up => format!("in both directions your flow {}", words(down)),
        (down, up) => format!("downwards your flow {}, upwards it {}", words(down), words(up)),
    }
}

fn sentence(down: &Reading, up: &Reading) -> String {
    let queue = queues(down.isolation(up), up.isolation(down));
    let (down_way, up_way) = (down, up);
    let way = both_ways(down, up).map_or("an unknown time".to_owned(), |rtt| round_trip(Some(rtt), 1));
    let first = format!("{}, {way} there and back, and {queue}.", rates(down, up));
    let tested = down_way.looked().tested.min(up_way.looked().tested);
    let bursts = [(down_way, up_way), (up_way, down_way)]
        .iter()
        .all(|(way, back)| way.burst().is_some() || way.small_bucket(back).is_some());
    let first = match [down_way, up_way].into_iter().any(stood) {
        true => format!("{first}\n{WAITED}"),
        false => first,
    };
    match tested {
        0 => first,
        _ if bursts => first,
        tested => format!("{first}\nBehind a token bucket of more than {} kB a path may be slower.", tested / 1000),
    }
}

/// What both directions say of the round trip, which is the same: the more certain of them.
fn both_ways(down: &Reading, up: &Reading) -> Option<[f64; 2]> {
    let (Some(there), Some(back)) = (known(down, up), known(up, down)) else {
        return known(down, up).or(known(up, down));
    };
    Some(match (one(there), one(back)) {
        (Some(_), None) => there,
        (None, Some(_)) => back,
        (Some(_), Some(_)) if there[0] <= back[0] => there,
        (Some(_), Some(_)) => back,
        (None, None) if there[1] - there[0] <= back[1] - back[0] => there,
        (None, None) => back,
    })
}

/// True if packets waited in a queue of others, or for something else, for different times.
fn stood(way: &Reading) -> bool {
    way.looked().varied > FindingsConfig::default().standing.as_nanos()
}

/// Why nobody looked whose queue it is: the trains of a detector need time, room and packets.
fn not_looked(way: &Reading) -> &'static str {
    match way.trains() {
        Some([median, ..]) if median > SLOW => "not looked at: too little room in the buffer, or too long a round trip",
        _ => "too slow a path to look",
    }
}

/// What a look says to people; it took so many seconds.
#[must_use]
pub fn text(down: &Reading, up: &Reading, took: f64) -> String {
    let mut text = format!("{}\n\n{:<18}{:>34}{:>34}\n", sentence(down, up), "", "down", "up");
    let ms = |nanos: u64| format!("{:.2} ms", nanos as f64 / 1e6);
    let mut row = |name: &str, value: &dyn Fn(&Reading, &Reading) -> String| {
        let (down, up) = (value(down, up), value(up, down));
        text.push_str(&format!("{name:<18}{down:>34}{up:>34}\n"));
    };
    row("capacity", &|way, back| match (way.doubt(back), way.trains()) {
        (None, Some([median, least, most])) => {
            format!("{} Mbit/s ({} to {})", mbps(median), mbps(least), mbps(most))
        }
        _ => rate(way, back),
    });
    row("RTT without queue", &|way, back| round_trip(known(way, back), 2));
    row("jitter", &|way, _| ms(way.looked().jitter));
    row("packets per ACK", &|way, _| format!("{:.2}", way.merged()));
    row("burst", &|way, back| match way.burst() {
        Some(burst) => format!("{} kB at {} Mbit/s", burst.bytes / 1000, mbps(burst.peak as f64 / 1e6)),
        None if way.unsteady().is_some() => "unknown".to_owned(),
        None if way.small_bucket(back).is_some() => format!("about {} kB", kilobytes(way.small_bucket(back))),
        None if way.looked().tested > 0 => format!("none of up to {} kB", way.looked().tested / 1000),
        None => "none seen".to_owned(),
    });
    row("buffer", &|way, _| match way.looked().overflowed {
        _ if way.looked().doubt == Some(Doubt::Uneven) => format!("unknown, waits of {}", ms(way.looked().queue)),
        true => format!("about {}", ms(way.looked().queue)),
        false => format!("more than {}", ms(way.looked().queue)),
    });
    if [down, up].iter().any(|way| stood(way)) {
        row("RTTs differ by", &|way, _| ms(way.looked().varied));
    }
    if [down, up].iter().any(|way| way.looked().away > 0) {
        row("nothing passed for", &|way, _| match way.looked().away {
            0 => "no time".to_owned(),
            away => format!("{:.2} s", away as f64 / 1e9),
        });
    }
    row("ECN", &|way, _| if way.looked().ecn { "passes" } else { "does not pass" }.to_owned());
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
            way.report().queue.as_ref().map_or_else(|| not_looked(way).to_owned(), transfer::queue)
        };
        text.push_str(&format!("{name:<18}{words}\n"));
    }
    for (way, name) in [(down, "own queue down"), (up, "own queue up")] {
        if let Some(takes) = two_packets(way) {
            text.push_str(&format!("{name:<18}two packets alone take {takes:.0} ms here, longer than {QUEUE:.0}\n"));
        }
    }
    text.push_str(&format!("{:<18}{took:.2} s\n", "took"));
    text
}

/// Milliseconds that two packets take, where the look cannot but queue for too long.
fn two_packets(way: &Reading) -> Option<f64> {
    let takes = 2.0 * f64::from(way.looked().packet) * 8.0 / way.carries().filter(|mbps| *mbps > 0.0)? / 1e3;
    (takes > QUEUE && way.unsteady().is_none()).then_some(takes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_quic::message::Received;
    use flowstart_quic::{Lesson, ReadingConfig, Transferred};
    use flowstart_units::Span;

    fn read(outcome: &Transferred) -> Option<Reading<'_>> {
        Reading::new(&outcome.report, ReadingConfig::over("192.0.2.7".parse().unwrap()))
    }

    pub(super) fn outcome(rates: &[u64], rtt: u64) -> Transferred {
        let document = json!({
            "bytes": 1, "nanos": 1, "packets": 30, "lost": 0, "marked": 0, "acks": 15, "min_rtt": 1,
            "mean_rtt": 1, "max_rtt": 1, "jitter": 1, "exit": null, "exit_after": null, "late": [0, 0],
            "real_time": true,
            "queue": null,
            "look": { "rates": rates, "burst": null, "rtt": rtt, "packet": 1250, "jitter": 0,
                      "queue": 2_500_000, "lost": 0, "overflowed": false, "ecn": true },
        });
        let report = serde_json::from_value(document).unwrap();
        let received = Received { bytes: 1, nanos: 1, intact: true, first: 0 };
        Transferred { report, received, fingerprint: None, handshake: Span::ZERO, lesson: Lesson::Nothing, carried: 0 }
    }

    #[test]
    fn what_is_said_is_the_median_and_the_rtt_without_what_packets_take_themselves() {
        // 1250 bytes at 10 Mbit/s take 1 ms, an ACK of 62 at 5 Mbit/s 0.099 ms.
        let (down, up) =
            (outcome(&[9_600_000, 9_900_000, 10_100_000, 10_500_000], 21_099_400), outcome(&[5_000_000, 5_000_000], 0));
        let [down, up] = [&down, &up].map(|outcome| read(outcome).unwrap());
        assert_eq!(down.trains(), Some([10.0, 9.6, 10.5]));
        assert!((one(down.rtt(&up)).unwrap() - 20.0002).abs() < 1e-9, "{:?}", down.rtt(&up));
        assert_eq!(up.rtt(&down), [0.0; 2]);
        assert_eq!(down.merged(), 2.0);
        let text = text(&down, &up, 0.5);
        // No full packet made a round trip upwards: nobody knows that one.
        assert!(text.starts_with("About 10.0 Mbit/s down and 5.00 Mbit/s up, 20.0 ms there and back, and whether"));
        let row = text.lines().find(|line| line.starts_with("RTT")).unwrap();
        assert!(row.contains("20.00 ms") && row.ends_with("not found out"), "{row}");
        assert_eq!(
            (&document(&up, &down)["rtt_ms"], &document(&up, &down)["rtt_least_ms"]),
            (&Value::Null, &Value::Null)
        );
        assert!(text.contains("10.0 Mbit/s (9.60 to 10.5)") && text.contains("more than 2.50 ms"), "{text}");
        // Of clumps a program that needs one number takes the least.
        let mut clumps = outcome(&[6_000_000, 7_863_000_000, 9_000_000_000], 0);
        let look = clumps.report.look.as_mut().unwrap();
        (look.doubt, look.between) = (Some(Doubt::Uneven), Some([6_980_000, u64::MAX]));
        assert_eq!((read(&clumps).unwrap().carries(), up.carries()), (Some(6.98), Some(5.0)));
        // Some trains did not empty a token bucket: no rate is the capacity.
        let bucket = outcome(&[5_000_000, 49_000_000, 50_000_000, 51_000_000], 0);
        let bucket = read(&bucket).unwrap();
        assert_eq!((bucket.unsteady(), up.unsteady()), (Some([5.0, 51.0]), None));
        assert_eq!(
            (&document(&bucket, &up)["capacity_steady"], &document(&up, &bucket)["capacity_steady"]),
            (&json!(false), &json!(true))
        );
        // Behind a way back that carries no more ACKs nobody knows how much it is.
        let (slow, most) = (outcome(&[500_000; 3], 0), |said: Value| said["capacity_most_mbps"].clone());
        let slow = read(&slow).unwrap();
        assert_eq!((most(document(&bucket, &up)), most(document(&bucket, &slow))), (json!(51.0), Value::Null));
        let text = super::text(&bucket, &up, 0.5);
        assert!(text.starts_with("5.00 to 51.0 Mbit/s down and about 5.00 Mbit/s up, "), "{text}");
        let row = text.lines().find(|line| line.starts_with("burst")).unwrap();
        assert!(row.contains(" unknown ") && row.ends_with("none seen"), "{row}");
        let nothing = outcome(&[], 0);
        let nothing = read(&nothing).unwrap();
        assert_eq!(nothing.trains(), None);
        assert_eq!(document(&nothing, &up)["capacity_mbps"], Value::Null);
        // Of clumps there is no most.
        let clumps = read(&clumps).unwrap();
        assert_eq!(rates(&clumps, &clumps), "6.98 Mbit/s or more down and 6.98 Mbit/s or more up");
        assert_eq!(rates(&up, &clumps), "About 5.00 Mbit/s down and 6.98 Mbit/s or more up");
        assert_eq!(rates(&nothing, &up), "An unknown rate down and about 5.00 Mbit/s up");
        assert!(super::text(&clumps, &nothing, 0.5).contains("  6.98 Mbit/s or more  "));
    }

    #[test]
    fn where_two_packets_queue_for_too_long_it_is_said() {
        let row = |rate: u64| {
            let outcome = outcome(&[rate; 3], 20_000_000);
            let text = text(&read(&outcome).unwrap(), &read(&outcome).unwrap(), 0.5);
            text.lines().find(|line| line.starts_with("own queue up")).map(str::to_owned)
        };
        // 1250 bytes, twice.
        assert_eq!(row(401_000), None);
        assert_eq!(row(200_000).unwrap(), "own queue up      two packets alone take 100 ms here, longer than 50");
    }

    #[test]
    fn that_a_path_was_away_is_said_where_it_was() {
        let (down, mut up) = (outcome(&[5_000_000; 3], 20_000_000), outcome(&[5_000_000; 3], 20_000_000));
        let row = |up: &Transferred| {
            let text = text(&read(&down).unwrap(), &read(up).unwrap(), 0.5);
            text.lines().find(|line| line.starts_with("nothing passed for")).map(str::to_owned)
        };
        assert_eq!(row(&up), None);
        up.report.look.as_mut().unwrap().away = 1_002_000_000;
        assert!(row(&up).is_some_and(|row| row.contains(" no time ") && row.ends_with(" 1.00 s")), "{:?}", row(&up));
    }

    #[test]
    fn the_sentence_says_of_both_directions_whose_queue_it_is() {
        for (down, up, says) in [
            ("shared", "shared", "in both directions your flow shares its queue with others"),
            ("isolated", "isolated", "in both directions your flow has a queue of its own"),
            (
                "shared",
                "isolated",
                "downwards your flow shares its queue with others, upwards it has a queue of its own",
            ),
            (
                "isolated",
                "unknown",
                "downwards your flow has a queue of its own, upwards it may share its queue (not found out)",
            ),
            ("unknown", "unknown", "whether your flow shares its queues could not be found out"),
        ] {
            assert_eq!(queues(down, up), says);
        }
    }

    #[test]
    fn a_fast_path_is_not_called_slow() {
        let (down, up) = (outcome(&[5_000_000; 3], 41_000_000), outcome(&[1_000_000; 3], 41_000_000));
        let [down, up] = [&down, &up].map(|outcome| read(outcome).unwrap());
        let text = text(&down, &up, 0.5);
        assert!(text.contains("queue down        not looked at: too little room in the buffer"), "{text}");
        assert!(text.contains("queue up          too slow a path to look"), "{text}");
    }

    /// ACKs of 62 bytes for packets of 1250: 1 Mbit/s bears those of 20.2 Mbit/s.
    #[test]
    fn a_way_back_that_bears_no_more_acks_makes_the_capacity_a_lower_bound() {
        let (down, up) = (outcome(&[20_000_000; 3], 30_000_000), outcome(&[1_000_000; 3], 41_000_000));
        let [down, up] = [&down, &up].map(|outcome| read(outcome).unwrap());
        assert!(down.acks_fill(&up) && !up.acks_fill(&down));
        let said = document(&down, &up);
        assert_eq!((&said["capacity_steady"], &said["capacity_at_least"]), (&json!(false), &json!(true)));
        assert_eq!((&said["rtt_ms"], &document(&up, &down)["capacity_steady"]), (&Value::Null, &json!(true)));
        // Up a packet takes 10 ms, and its ACK at most 25 us down: that is certain.
        let text = text(&down, &up, 0.5);
        assert!(text.starts_with("At least 20.0 Mbit/s down and about 1.00 Mbit/s up, 31.0 ms there"), "{text}");
        assert!(text.contains("unknown: the way back carries no more ACKs"), "{text}");
        // At half of that rate nothing waits.
        let (down, up) = (outcome(&[10_000_000; 3], 30_000_000), outcome(&[1_000_000; 3], 41_000_000));
        let [down, up] = [&down, &up].map(|outcome| read(outcome).unwrap());
        assert!(!down.acks_fill(&up) && down.doubt(&up).is_none());
    }

    #[test]
    fn one_train_that_agrees_with_itself_is_no_capacity_and_no_rtt() {
        let (down, up) = (outcome(&[130_000], 30_600_000), outcome(&[20_000_000; 3], 30_600_000));
        let [down, up] = [&down, &up].map(|outcome| read(outcome).unwrap());
        assert_eq!(document(&down, &up)["capacity_steady"], json!(false));
        let text = text(&down, &up, 0.5);
        // And with so slow a way back what came up may be what its ACKs allow.
        assert!(text.starts_with("0.13 Mbit/s or more down and at least 20.0 Mbit/s up, "), "{text}");
        assert!(text.contains("trains do not agree"), "{text}");
    }
}
