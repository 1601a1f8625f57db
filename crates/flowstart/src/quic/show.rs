//! Transfers in words, tables and JSON.

use std::io::Write as _;
use std::net::SocketAddr;

use serde_json::{Value, json};

use flowstart_quic::Transferred;
use flowstart_quic::message::{Direction, Isolated, Received, Request};
use flowstart_units::{Bytes, Rate, Span, Time};

/// A rate over a time.
pub(super) fn rate(bytes: u64, nanos: u64) -> Rate {
    Rate::of(Bytes::new(bytes), Span::from_nanos(nanos.max(1)))
}

fn ms(nanos: u64) -> String {
    format!("{:.2} ms", nanos as f64 / 1e6)
}

/// What a server says of a request.
pub(super) fn asked(peer: SocketAddr, request: &Request) -> String {
    let way = match request.direction {
        Direction::Down => "is sent",
        Direction::Up => "sends",
    };
    let what = match (&request.file, request.size, request.nanos) {
        (Some(file), ..) => format!("the file {file:?}"),
        (None, Some(size), _) => format!("{size} bytes"),
        (None, None, nanos) => format!("data for {} s", nanos.unwrap_or(0) as f64 / 1e9),
    };
    format!("{peer} {way} {what} with {}+{}", request.start, request.avoidance)
}

/// What came of it.
pub(super) fn received(received: &Received) -> String {
    let intact = if received.intact { "" } else { ", NOT AS SENT" };
    let rate = rate(received.bytes, received.nanos).as_mbps_f64();
    format!("{} bytes in {:.3} s, {rate:.1} Mbit/s{intact}", received.bytes, received.nanos as f64 / 1e9)
}

/// Whose queue it is, in words.
pub(super) fn queue(queue: &Isolated) -> String {
    let certain = queue.confidence.map_or(String::new(), |p| format!(", {:.1} % certain", p * 100.0));
    let words = match queue.isolation.as_str() {
        "isolated" => "your flow has a queue of its own",
        "shared" => "your flow shares its queue with others",
        _ => "whether your flow shares its queue could not be found out",
    };
    format!("{words}{certain} (after {})", ms(queue.after))
}

/// A transfer for people.
pub(super) fn text(request: &Request, outcome: &Transferred) -> String {
    let report = &outcome.report;
    let rows = [
        ("contestant", format!("{}+{}", request.start, request.avoidance)),
        ("transferred", received(&outcome.received)),
        ("RTT", format!("{} to {}, mean {}", ms(report.min_rtt), ms(report.max_rtt), ms(report.mean_rtt))),
        ("jitter", ms(report.jitter)),
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
    ];
    rows.iter().map(|(name, value)| format!("{name:<16}{value}\n")).collect()
}

fn us(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

/// A transfer for programs.
pub(super) fn json(request: &Request, outcome: &Transferred, real_time: bool) -> Value {
    json!({
        "contestant": format!("{}+{}", request.start, request.avoidance),
        "request": request,
        "report": outcome.report,
        "received": outcome.received,
        "rate_bps": rate(outcome.received.bytes, outcome.received.nanos).as_bps(),
        "handshake_rtt_ns": outcome.handshake.as_nanos(),
        "fingerprint": outcome.fingerprint.map(|fingerprint| fingerprint.to_string()),
        "real_time_priority": real_time,
    })
}

/// A line that tells how it goes, on a terminal.
pub(super) struct Live {
    shown: bool,
    last: (Time, u64),
}

impl Live {
    pub(super) fn new(shown: bool) -> Self {
        Self { shown, last: (Time::ZERO, 0) }
    }

    /// Twice a second: bytes, rate since the last time, RTT.
    pub(super) fn show(&mut self, now: Time, bytes: u64, rtt: Span) {
        let since = now.since(self.last.0);
        if !self.shown || since < Span::from_millis(500) {
            return;
        }
        let rate = rate(bytes - self.last.1.min(bytes), since.as_nanos()).as_mbps_f64();
        self.last = (now, bytes);
        let line = format!("{:.1} MB, {rate:.1} Mbit/s, RTT {}", bytes as f64 / 1e6, ms(rtt.as_nanos()));
        let _ = write!(std::io::stderr(), "\r{line:<60}");
    }

    /// Leaves no trace.
    pub(super) fn clear(&self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r{:<60}\r", "");
        }
    }
}
