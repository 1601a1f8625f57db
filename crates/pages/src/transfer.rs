//! Transfers over QUIC in words, tables and JSON.

use std::net::SocketAddr;

use serde_json::{Value, json};

use flowstart_quic::message::{Direction, Isolated, Received, Report, Request, harmless};
use flowstart_quic::{Lesson, News, SoFar, Stack, Transferred};
use flowstart_units::{Bytes, Rate, Span};

/// The rate at which all arrived: what came after the first packet, in the time since then. `None`
/// if all came at once, in one packet say: nothing lay between the first byte and the last.
fn arrival_rate(received: &Received) -> Option<Rate> {
    let after = received.bytes.saturating_sub(received.first);
    ((received.nanos > 0 && after > 0) || received.bytes == 0).then(|| rate(after, received.nanos))
}

/// A rate with three digits.
fn in_words(rate: Rate) -> String {
    let (value, unit) = match rate.as_bps() {
        bits @ ..999_500 => (bits as f64 / 1e3, "kbit/s"),
        bits => (bits as f64 / 1e6, "Mbit/s"),
    };
    let decimals = match value {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

/// A rate over a time.
#[must_use]
pub fn rate(bytes: u64, nanos: u64) -> Rate {
    Rate::of(Bytes::new(bytes), Span::from_nanos(nanos.max(1)))
}

fn ms(nanos: u64) -> String {
    format!("{:.2} ms", nanos as f64 / 1e6)
}

/// What a server says of a request.
fn asked(peer: SocketAddr, request: &Request) -> String {
    let way = match request.direction {
        Direction::Down => "is sent",
        Direction::Up => "sends",
    };
    let what = match (&request.file, request.size, request.nanos) {
        (Some(file), ..) => format!("the file {file:?}"),
        (None, Some(size), _) => format!("{size} bytes"),
        (None, None, Some(nanos)) => format!("data for {} s", nanos as f64 / 1e9),
        (None, None, None) => "data until it is stopped".to_owned(),
    };
    format!("{peer} {way} {what} with {}+{}", request.start, request.avoidance)
}

/// What a server tells whoever runs it, in a line. Clients choose words of it.
#[must_use]
pub fn news(news: &News) -> String {
    harmless(&match news {
        News::Asked(peer, request) => asked(*peer, request),
        News::Refused(peer, why) => format!("{peer} refused: {why}"),
        News::Complete(peer, all) => format!("{peer} {}", received(all)),
        News::BrokenOff(peer) => format!("{peer} broke off before all was there"),
        News::Learnt(peer, lesson) => format!("{peer} {}", learnt(lesson)),
    })
}

/// What was learnt, for people.
#[must_use]
pub fn learnt(lesson: &Lesson) -> String {
    match lesson {
        Lesson::Path(Some(seen)) | Lesson::AtLeast(seen) => {
            format!("the path carries {} kB per round trip of {:.1} ms", seen.bytes / 1000, seen.rtt as f64 / 1e6)
        }
        Lesson::Path(None) | Lesson::Nothing => "the path carries too little to jump: forgotten".to_owned(),
    }
}

/// What came of it.
#[must_use]
pub fn received(received: &Received) -> String {
    let intact = if received.intact { "" } else { ", NOT AS SENT" };
    let bytes = received.bytes;
    match arrival_rate(received) {
        Some(rate) => {
            format!("{bytes} bytes in {:.3} s, {}{intact}", received.nanos as f64 / 1e9, in_words(rate))
        }
        None => format!("{bytes} bytes at once{intact}"),
    }
}

/// Says it if data for a time ended long before, or if a number of bytes did not come: the other
/// end takes or gives so much and no more.
#[must_use]
pub fn cut_short(request: &Request, received: &Received) -> Option<String> {
    if let (Some(size), None) = (request.size, request.nanos) {
        return (received.bytes < size).then(|| {
            format!(
                "over after {} of {size} bytes: the server has a limit for the time of a transfer, or of a peer (`flowstart serve --most-time, --peer-time`)",
                received.bytes
            )
        });
    }
    if (request.size, request.nanos, &request.file) == (None, None, &None) {
        let limits =
            "a transfer, or of a peer (`flowstart serve --most-time, --most-bytes, --peer-time, --peer-bytes`)";
        return Some(format!("over after {:.3} s: the server has limits of {limits}", received.nanos as f64 / 1e9));
    }
    let asked = request.nanos.filter(|_| request.size.is_none() && request.file.is_none())?;
    // From the first byte to the last is less than the time asked for, by a round trip or two.
    (received.bytes > 0 && received.nanos < asked / 2).then(|| {
        format!(
            "over after {:.3} s of {:.3} s: the server has a limit for the bytes of a transfer, or of a peer (`flowstart serve --most-bytes, --peer-bytes`)",
            received.nanos as f64 / 1e9,
            asked as f64 / 1e9
        )
    })
}

/// A probability in per cent: nothing that is measured is quite certain.
fn per_cent(probability: f64) -> String {
    match format!("{:.1}", probability * 100.0) {
        all if all == "100.0" => "more than 99.9 %".to_owned(),
        part => format!("{part} %"),
    }
}

/// Whose queue it is, in words.
pub(crate) fn queue(queue: &Isolated) -> String {
    let (words, said) = match queue.isolation.as_str() {
        "isolated" => ("your flow has a queue of its own", true),
        "shared" => ("your flow shares its queue with others", true),
        _ => ("whether your flow shares its queue could not be found out", false),
    };
    // Nobody is certain of what was not found out.
    let certain = queue.confidence.filter(|_| said).map_or(String::new(), |p| format!(", {} certain", per_cent(p)));
    format!("{words}{certain} (after {})", ms(queue.after))
}

/// A transfer for people.
#[must_use]
pub fn text(request: &Request, outcome: &Transferred) -> String {
    let mut rows = vec![
        ("contestant", format!("{}+{}", request.start, request.avoidance)),
        ("transferred", received(&outcome.received)),
    ];
    rows.extend(of_sender(&outcome.report));
    table(&rows)
}

/// An interrupted transfer for people, as far as this end knows it.
#[must_use]
pub fn text_so_far(request: &Request, so_far: &SoFar) -> String {
    let mut rows = vec![("contestant", format!("{}+{}", request.start, request.avoidance))];
    rows.extend(so_far.received.iter().map(|all| ("transferred", format!("{}, then interrupted", received(all)))));
    if let Some(report) = &so_far.report {
        let rate = in_words(rate(report.bytes, report.nanos));
        let sent = format!("{} bytes in {:.3} s, {rate}", report.bytes, report.nanos as f64 / 1e9);
        rows.push(("transferred", format!("{sent}, then interrupted: so much was acknowledged by then")));
        rows.extend(of_sender(report));
    }
    table(&rows)
}

fn table(rows: &[(&str, String)]) -> String {
    rows.iter().map(|(name, value)| format!("{name:<16}{}\n", harmless(value))).collect()
}

/// What the sender knows.
fn of_sender(report: &Report) -> Vec<(&'static str, String)> {
    vec![
        (
            "RTT",
            match report.acks {
                0 => NOT_MEASURED.to_owned(),
                _ => format!("{} to {}, mean {}", ms(report.min_rtt), ms(report.max_rtt), ms(report.mean_rtt)),
            },
        ),
        ("jitter", if report.acks == 0 { NOT_MEASURED.to_owned() } else { ms(report.jitter) }),
        ("packets", format!("{}, {} lost, {} marked", report.packets, report.lost, report.marked)),
        (
            "start ended",
            match (&report.exit, report.exit_after) {
                (Some(reason), Some(after)) => format!("after {}: {reason}", ms(after)),
                _ => "not".to_owned(),
            },
        ),
        (
            "resumed",
            match &report.resumed {
                Some(seen) => format!("from {} kB per round trip of {}", seen.bytes / 1000, ms(seen.rtt)),
                None => "not".to_owned(),
            },
        ),
        (
            "departures late",
            format!(
                "median {:.1} us, 99 % {:.1} us{}",
                us(report.late[0]),
                us(report.late[1]),
                if report.real_time { "" } else { " (the sender had no real-time priority)" }
            ),
        ),
        ("queue", report.queue.as_ref().map_or("not looked at".to_owned(), queue)),
    ]
}

fn us(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

/// What is said of times that no ACK told.
const NOT_MEASURED: &str = "not measured";

/// A report for programs: what no ACK told is null.
fn measured(report: &Report) -> Value {
    let mut value = json!(report);
    if report.acks == 0 {
        ["min_rtt", "mean_rtt", "max_rtt", "jitter"].into_iter().for_each(|name| value[name] = Value::Null);
    }
    value
}

/// A transfer for programs.
#[must_use]
pub fn json(request: &Request, stack: Stack, outcome: &Transferred, real_time: bool) -> Value {
    json!({
        "contestant": format!("{}+{}", request.start, request.avoidance),
        "request": request,
        "report": measured(&outcome.report),
        "received": outcome.received,
        "rate_bps": arrival_rate(&outcome.received).map(Rate::as_bps),
        "handshake_rtt_ns": outcome.handshake.as_nanos(),
        "fingerprint": outcome.fingerprint.map(|fingerprint| fingerprint.to_string()),
        "real_time_priority": real_time,
        "stack": stack.name(),
        "interrupted": false,
    })
}

/// An interrupted transfer for programs: what this end does not know is null.
#[must_use]
pub fn json_so_far(request: &Request, stack: Stack, so_far: &SoFar, real_time: bool) -> Value {
    json!({
        "contestant": format!("{}+{}", request.start, request.avoidance),
        "request": request,
        "report": so_far.report.as_ref().map(measured),
        "received": so_far.received,
        "rate_bps": so_far.received.as_ref().and_then(arrival_rate).map(Rate::as_bps),
        "handshake_rtt_ns": so_far.handshake.as_nanos(),
        "fingerprint": so_far.fingerprint.map(|fingerprint| fingerprint.to_string()),
        "real_time_priority": real_time,
        "stack": stack.name(),
        "interrupted": true,
    })
}

/// How it goes, in a line.
#[must_use]
pub fn live(bytes: u64, rate: Rate, rtt: Option<Span>) -> String {
    let amount = match bytes {
        ..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    };
    let rtt = rtt.map_or(String::new(), |rtt| format!(", RTT {}", ms(rtt.as_nanos())));
    format!("{amount}, {}{rtt}", in_words(rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gigabits per second of six bytes.
    #[test]
    fn what_came_at_once_has_no_rate() {
        let all = |bytes, first, nanos| Received { bytes, nanos, intact: true, first };
        let said = |bytes, first, nanos| received(&all(bytes, first, nanos));
        assert_eq!(said(6, 6, 0), "6 bytes at once");
        assert_eq!(said(0, 0, 0), "0 bytes in 0.000 s, 0.00 kbit/s");
        assert_eq!(said(1_000_000, 0, 20_000_000), "1000000 bytes in 0.020 s, 400 Mbit/s");
        assert_eq!(arrival_rate(&all(6, 6, 0)), None);
        // As it was, from ends that do not say what the first packet had.
        assert_eq!(arrival_rate(&all(6, 0, 0)), None);
    }

    /// Those of the first packet took no time that was measured: 52.6 Mbit/s where 2 pass.
    #[test]
    fn the_bytes_of_the_first_packet_make_no_rate() {
        let all = |bytes, nanos| Received { bytes, nanos, intact: true, first: 1400 };
        assert_eq!(received(&all(1500, 400_000)), "1500 bytes in 0.000 s, 2.00 Mbit/s");
        assert_eq!(received(&all(1400, 400_000)), "1400 bytes at once", "the ends of streams came later");
        assert_eq!(arrival_rate(&all(3000, 6_400_000)), Some(Rate::from_mbps(2)));
    }

    #[test]
    fn rates_have_three_digits() {
        for (bits, said) in [
            (61_652, "61.7 kbit/s"),
            (999, "1.00 kbit/s"),
            (9_994, "9.99 kbit/s"),
            (999_499, "999 kbit/s"),
            (999_500, "1.00 Mbit/s"),
            (12_345_000, "12.3 Mbit/s"),
            (99_950_000, "100 Mbit/s"),
            (1_234_567_000, "1235 Mbit/s"),
        ] {
            assert_eq!(in_words(Rate::from_bps(bits)), said);
        }
    }

    /// Whoever only receives knows the RTT of the handshake alone for as long as it says nothing.
    #[test]
    fn the_line_has_no_rtt_where_none_is_measured() {
        let rate = Rate::from_mbps(20);
        assert_eq!(live(1_250_000, rate, Some(Span::from_micros(30_500))), "1.2 MB, 20.0 Mbit/s, RTT 30.50 ms");
        assert_eq!(live(32_000, rate, None), "32.0 kB, 20.0 Mbit/s");
    }

    #[test]
    fn what_was_not_found_out_is_not_certain() {
        let said = |isolation: &str| {
            let document = json!({ "isolation": isolation, "confidence": 0.9994, "after": 2_000_000, "rate": 1 });
            queue(&serde_json::from_value(document).unwrap())
        };
        assert_eq!(said("shared"), "your flow shares its queue with others, 99.9 % certain (after 2.00 ms)");
        assert_eq!(said("isolated"), "your flow has a queue of its own, 99.9 % certain (after 2.00 ms)");
        assert_eq!(said("unknown"), "whether your flow shares its queue could not be found out (after 2.00 ms)");
    }

    #[test]
    fn nothing_is_quite_certain() {
        for (probability, said) in
            [(1.0, "more than 99.9 %"), (0.9996, "more than 99.9 %"), (0.9994, "99.9 %"), (0.95, "95.0 %")]
        {
            assert_eq!(per_cent(probability), said);
        }
    }

    #[test]
    fn what_a_client_calls_itself_moves_no_cursor_of_whoever_serves() {
        let peer = SocketAddr::from(([192, 0, 2, 7], 9));
        let request = Request { start: "\u{1b}[2J\nserving".to_owned(), ..request(Some(1), None) };
        let said = news(&News::Asked(peer, Box::new(request)));
        assert_eq!(said, "192.0.2.7:9 is sent 1 bytes with \u{fffd}[2J\u{fffd}serving+cubic");
        assert_eq!(news(&News::Refused(peer, "a\rb".to_owned())), "192.0.2.7:9 refused: a\u{fffd}b");
        assert_eq!(news(&News::BrokenOff(peer)), "192.0.2.7:9 broke off before all was there");
    }

    fn request(size: Option<u64>, nanos: Option<u64>) -> Request {
        Request {
            version: 4,
            session: 1,
            connections: 1,
            direction: Direction::Down,
            size,
            nanos,
            streams: 1,
            start: "hystart".to_owned(),
            avoidance: "cubic".to_owned(),
            file: None,
            look: false,
            paced: None,
        }
    }

    #[test]
    fn data_for_a_time_that_ends_long_before_is_said_to_be_cut_short() {
        let short = |size, asked, nanos| {
            cut_short(&request(size, asked), &Received { bytes: 9, nanos, intact: true, first: 0 })
        };
        let said = short(None, Some(2_000_000_000), 90_000_000).unwrap();
        assert!(said.starts_with("over after 0.090 s of 2.000 s: "), "{said}");
        assert_eq!(short(None, Some(2_000_000_000), 1_900_000_000), None);
        assert_eq!(short(Some(9), Some(2_000_000_000), 5), None, "it is complete");
        assert_eq!(short(Some(9), None, 5), None);
        let said = short(Some(10), None, 5).unwrap();
        assert!(said.starts_with("over after 9 of 10 bytes: ") && said.contains("--most-time"), "{said}");
        assert_eq!(short(Some(10), Some(5), 5), None, "whichever comes first");
    }
}
