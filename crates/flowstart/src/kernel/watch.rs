//! `flowstart kernel watch`: what Paced Chirping does, while it does it.

use std::cell::RefCell;
use std::time::Duration;

use flowstart_kernel::{Ended, Said, Watch, WatchEvent, What};
use flowstart_report::Terminal;
use flowstart_units::Span;
use serde_json::json;

use super::failure;
use crate::interrupt;
use crate::output::{Done, print};

/// How often Ctrl-C is looked for.
const TICK: Duration = Duration::from_millis(100);

/// Prints events until Ctrl-C.
pub(super) fn watch(json: bool) -> Done {
    let layout = Layout::of(json, Terminal::of_stdout().width);
    let asked = interrupt::listen();
    let outcome = RefCell::new(Ok(()));
    let watch = Watch::new(|event| {
        if outcome.borrow().is_ok() {
            *outcome.borrow_mut() = print(&match layout {
                Layout::Json => object(&event),
                Layout::Wide => line(&event),
                Layout::Narrow => narrow(&event),
            });
        }
    })
    .map_err(|problem| failure(&problem))?;
    match layout {
        Layout::Json => {}
        Layout::Wide => print(&format!("{}\n{}\n", HEAD[0], HEAD[1]))?,
        Layout::Narrow => print(&format!("{NARROW_HEAD}\n"))?,
    }
    while !asked.is_cancelled() {
        watch.poll(TICK).map_err(|problem| failure(&problem))?;
        if outcome.borrow().is_err() {
            return outcome.replace(Ok(()));
        }
    }
    Ok(())
}

/// How events are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// An object per line.
    Json,
    /// Everything, in columns.
    Wide,
    /// What fits into sixty columns.
    Narrow,
}

impl Layout {
    fn of(json: bool, width: usize) -> Self {
        match json {
            true => Self::Json,
            false if width < HEAD[1].len() => Self::Narrow,
            false => Self::Wide,
        }
    }
}

/// In the columns of [`narrow`].
const NARROW_HEAD: &str = "     since  port   chirp says         gap  probe   load";

/// An event on a narrow terminal; gaps in microseconds.
fn narrow(event: &WatchEvent) -> String {
    let begin = format!("{:7.1} ms  {:<5}", event.since_begin.as_millis_f64(), event.local_port);
    let gap = |gap: Option<Span>| gap.map_or("-".to_owned(), |gap| format!("{:.1}", micros(gap)));
    match event.what {
        What::Begin => format!("{begin}  begins; RTT {:.1} ms\n", event.srtt.as_millis_f64()),
        What::Chirp { number, said: what, gap: shown, .. } => format!(
            "{begin}  {number:>5} {:<8} {:>7} {:>6.1} {:>6.1}\n",
            said(what),
            gap(shown),
            micros(event.probe),
            micros(event.load)
        ),
        What::End { reason: why, gap: found } => {
            format!("{begin}  ends: {}; gap {} µs\n", reason(why), gap(found))
        }
    }
}

/// Two lines, in the columns of [`line()`].
const HEAD: [&str; 2] = [
    "     since                                  chirp  packets               gap     noise     probe      load   packets",
    " beginning  connection                     number   / ACKs says           µs        µs        µs        µs in flight",
];

fn micros(span: Span) -> f64 {
    span.as_secs_f64() * 1e6
}

fn said(said: Said) -> &'static str {
    match said {
        Said::Unclear => "unclear",
        Said::Clear => "clear",
        Said::Knee => "knee",
        Said::Crowded => "crowded",
        Said::Void => "loss",
    }
}

fn reason(reason: Ended) -> &'static str {
    match reason {
        Ended::PipeFull => "pipe full",
        Ended::Delay => "delay",
        Ended::Marks => "marks",
        Ended::Loss => "loss",
        Ended::Timeout => "timeout",
        Ended::Limit => "limit",
        Ended::RateLimit => "rate limit",
        Ended::Unreadable => "unreadable",
    }
}

fn line(event: &WatchEvent) -> String {
    let connection = format!("{} > {}", event.local_port, event.remote);
    let begin = format!("{:7.1} ms  {connection:<30}", event.since_begin.as_millis_f64());
    let gap = |gap: Option<Span>| gap.map_or("-".to_owned(), |gap| format!("{:.1}", micros(gap)));
    let (probe, load) = (micros(event.probe), micros(event.load));
    match event.what {
        What::Begin => format!("{begin}  begins; RTT {:.1} ms\n", event.srtt.as_millis_f64()),
        What::Chirp { number, packets, points, said: what, gap: shown, noise, .. } => format!(
            "{begin}  {number:>5}  {packets:>4} / {points:<3} {:<8} {:>8}  {:>8.1}  {probe:>8.1}  {load:>8.1}  {:>6}\n",
            said(what),
            gap(shown),
            micros(noise),
            event.packets
        ),
        What::End { reason: why, gap: found } => {
            format!(
                "{begin}  ends: {}; a packet per {} µs, window {} packets\n",
                reason(why),
                gap(found),
                event.packets
            )
        }
    }
}

fn object(event: &WatchEvent) -> String {
    let mut object = json!({
        "time_ns": event.time.as_nanos(),
        "since_begin_ns": event.since_begin.as_nanos(),
        "connection": event.connection,
        "local_port": event.local_port,
        "remote": event.remote.to_string(),
        "probe_ns": event.probe.as_nanos(),
        "load_ns": event.load.as_nanos(),
        "srtt_ns": event.srtt.as_nanos(),
        "min_rtt_ns": event.min_rtt.as_nanos(),
    });
    let more = match event.what {
        What::Begin => json!({ "event": "begin", "in_flight": event.packets }),
        What::Chirp { number, packets, begin, first_gap, step, points, said: what, gap, noise } => json!({
            "event": "chirp",
            "number": number,
            "packets": packets,
            "sequence": begin,
            "first_gap_ns": first_gap.as_nanos(),
            "step_ns": step.as_nanos(),
            "acks": points,
            "says": said(what),
            "gap_ns": gap.map(Span::as_nanos),
            "noise_ns": noise.as_nanos(),
            "in_flight": event.packets,
        }),
        What::End { reason: why, gap } => json!({
            "event": "end",
            "reason": reason(why),
            "gap_ns": gap.map(Span::as_nanos),
            "window": event.packets,
        }),
    };
    if let (Some(object), Some(more)) = (object.as_object_mut(), more.as_object()) {
        object.extend(more.clone());
    }
    format!("{object}\n")
}
