//! A look at a path: a short one each way, and what it says.

use std::net::IpAddr;
use std::time::Instant;

use serde_json::json;

use flowstart_parallel::Cancel;
use flowstart_quic::message::{Direction, Doubt, Request, VERSION};
use flowstart_quic::{Capacity, FindingsConfig, LookConfig, Reading, ReadingConfig, Sink, Transferred, header_bytes};
use flowstart_units::{Rate, Span};

use document::document;
use figures::{kilobytes, mbps, one, round_trip};

use super::target::{Ended, Target, session};
use super::{PathArgs, show, wrong};
use crate::interrupt;
use crate::output::{Done, Failure, note, print, print_json};

mod document;
mod figures;

/// Bytes of data each way at the most.
const BYTES: u64 = 430_000;
/// Bytes that both ways may take, with all that both ends send for them, and with a look before
/// whose packets did not arrive.
const MOST: u64 = 1_000_000;
/// Time each way at most, without what is lost at its end.
const LONGEST: Span = Span::from_secs(2);
/// A range that is so small says less than it seems.
const LITTLE: f64 = 1.2;
/// Twice the rate in Mbit/s below which the shortest trains of a detector queue for too long: above
/// it that is not the reason why there were none.
const SLOW: f64 = 2.4;
/// UDP payload that every path of QUIC passes (RFC 9000 section 14).
const SMALL: u16 = 1200;
/// A look queues no longer than this, in milliseconds, where two packets do not.
const QUEUE: f64 = 50.0;
/// What is said where packets that met no queue of the look took different times.
const WAITED: &str =
    "Packets waited in a queue that was there already, or were held up: without that a round trip may take less.";
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

/// Bytes of data for a look, of so many that are still to come, where so many bytes were spent.
fn size(spent: u64, looks: usize) -> u64 {
    let left = MOST.saturating_sub(spent) as f64 / looks.max(1) as f64;
    BYTES.min((left / LookConfig::default().costs) as u64)
}

/// What a look has cost both ends: what this one sent and received, and what it did not receive.
fn cost(outcome: &Transferred, direction: Direction, packet: u64) -> u64 {
    // The sender says how many were lost, which may be anything.
    let lost = if direction == Direction::Down { outcome.report.lost.saturating_mul(packet) } else { 0 };
    outcome.carried.saturating_add(lost)
}

/// Looks at a path in one direction; what was seen, and whether packets left on time.
fn one_way(target: &Target, direction: Direction, size: u64, cancel: &Cancel) -> Result<(Transferred, bool), Failure> {
    let request = Request {
        version: VERSION,
        session: session(),
        connections: 2,
        direction,
        size: Some(size),
        nanos: Some(LONGEST.as_nanos()),
        streams: 1,
        start: "fair_queuing_probe".to_owned(),
        avoidance: "delay_or_cubic".to_owned(),
        file: None,
        look: true,
        paced: None,
    };
    match target.transfer(request, Sink::Check, None, &mut |_, _, _| !cancel.is_cancelled())? {
        (Ended::Whole(outcome), real_time) => Ok((*outcome, real_time)),
        (Ended::Stopped(_), _) => Err(Failure::InterruptedEarly),
    }
}

/// What was seen of the path to an address.
fn read(outcome: &Transferred, to: IpAddr) -> Option<Reading<'_>> {
    Reading::new(&outcome.report, ReadingConfig::over(to))
}

/// A rate in Mbit/s to three digits: more are not known.
fn rounded(mbps: f64) -> Rate {
    let rounded: f64 = format!("{mbps:.2e}").parse().unwrap_or(mbps);
    Rate::from_bps((rounded * 1e6).round() as u64)
}

/// What a direction is taken to carry, in Mbit/s: the least where there is no most, for trains that
/// arrive in clumps are any number of times faster.
fn carries(way: &Reading) -> Option<f64> {
    match (way.unsteady(), way.trains()) {
        (Some([least, most]), trains) => {
            trains.map(|[middle, ..]| if most.is_finite() { middle.clamp(least, most) } else { least })
        }
        (None, trains) => trains.map(|[median, ..]| median),
    }
}

/// The capacity of a path from here to a server, of IP packets.
pub(crate) fn capacity_up(target: &Target, cancel: &Cancel) -> Result<Rate, Failure> {
    let (outcome, _) = one_way(target, Direction::Up, BYTES, cancel)?;
    let mbps = read(&outcome, target.to.ip()).and_then(|way| carries(&way));
    Ok(rounded(mbps.ok_or_else(|| wrong(format!("the capacity to {} could not be found out", target.to)))?))
}

/// Looks at a path.
pub(crate) fn look(args: &PathArgs) -> Done {
    let mut target = Target::of(&args.server)?;
    target.settle()?;
    let to = target.to.ip();
    let cancel = interrupt::listen();
    let began = Instant::now();
    let mut outcomes = Vec::new();
    let (mut punctual, mut spent) = (true, 0);
    while let Some(direction) = [Direction::Down, Direction::Up].get(outcomes.len()) {
        let (outcome, real_time) = one_way(&target, *direction, size(spent, 2 - outcomes.len()), &cancel)?;
        let cost = cost(&outcome, *direction, u64::from(target.mtu) + u64::from(header_bytes(to)));
        spent = cost.saturating_add(spent);
        punctual &= real_time;
        if target.mtu > SMALL && read(&outcome, to).is_some_and(|way| are_too_large(&way, target.mtu, to)) {
            // Both ways, so that they are alike.
            note(&format!("packets of {} bytes seem not to arrive: a look with packets of {SMALL}", target.mtu));
            target.mtu = SMALL;
            outcomes.clear();
            continue;
        }
        outcomes.push(outcome);
    }
    let took = began.elapsed().as_secs_f64();
    let Ok([down, up]) =
        <[Reading; 2]>::try_from(outcomes.iter().filter_map(|outcome| read(outcome, to)).collect::<Vec<_>>())
    else {
        return Err(wrong(format!("{} has not looked at the path", target.to)));
    };
    if args.json {
        return print_json(&json!({
            "down": document(&down, &up),
            "up": document(&up, &down),
            "seconds": took,
            "real_time_priority": punctual,
            "stack": target.stack.name(),
            "packet_bytes": target.mtu,
        }));
    }
    if !punctual {
        note("without real-time priority: what this says is less certain when the machine is busy");
    }
    print(&text(&down, &up, took))
}

/// Whether packets of this payload do not arrive: there is no rate, packets were lost, and none of
/// that size made a round trip.
fn are_too_large(way: &Reading, mtu: u16, to: IpAddr) -> bool {
    let full = u64::from(mtu) + u64::from(header_bytes(to));
    let arrived = way.looked().rtt > 0 && u64::from(way.looked().packet) >= full;
    way.trains().is_none() && way.report().lost > 0 && !arrived
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

fn text(down: &Reading, up: &Reading, took: f64) -> String {
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
            way.report().queue.as_ref().map_or_else(|| not_looked(way).to_owned(), show::queue)
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
    let takes = 2.0 * f64::from(way.looked().packet) * 8.0 / carries(way).filter(|mbps| *mbps > 0.0)? / 1e3;
    (takes > QUEUE && way.unsteady().is_none()).then_some(takes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_quic::Lesson;
    use flowstart_quic::message::Received;
    use serde_json::Value;

    fn read(outcome: &Transferred) -> Option<Reading<'_>> {
        super::read(outcome, "192.0.2.7".parse().unwrap())
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
        assert_eq!((carries(&read(&clumps).unwrap()), carries(&up)), (Some(6.98), Some(5.0)));
        for (mbps, bps) in [(10.399_663, 10_400_000), (0.123_456, 123_000), (721.5, 722_000_000), (0.0, 0)] {
            assert_eq!(rounded(mbps).as_bps(), bps);
        }
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
    fn all_looks_together_cost_a_megabyte_at_most() {
        let mut lossy = outcome(&[5_000_000; 3], 0);
        (lossy.carried, lossy.report.lost) = (400_000, 50);
        assert_eq!([Direction::Down, Direction::Up].map(|direction| cost(&lossy, direction, 1480)), [474_000, 400_000]);
        // Two of half a megabyte, the second after a dear first, and two after one with packets
        // that did not arrive.
        assert_eq!(
            [size(0, 2), size(480_000, 1), size(570_000, 1), size(72_000, 2)],
            [430_000, 430_000, 369_800, 399_040]
        );
        assert_eq!(size(1_100_000, 1), 0);
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
