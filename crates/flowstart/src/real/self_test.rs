//! `flowstart emulate --self-test`: how precise and how fast the emulator is here.

use flowstart_emulator::self_test::{Measured, Trial, try_out};
use flowstart_report::{Cell, Column, Table};
use flowstart_units::{Rate, Span};
use serde_json::json;

use crate::output::{Done, Failure, print, print_json};

/// What an otherwise idle machine of two cores must reach at 100 Mbit/s: half of the packets this
/// precise, 99 % this precise.
const MEDIAN_BAR: Span = Span::from_micros(20);
const P99_BAR: Span = Span::from_micros(200);
/// And this rate with packets of 1500 bytes, to this share.
const SUSTAINED: Rate = Rate::from_mbps(500);
const SUSTAINED_SHARE: f64 = 0.995;
/// How often the trials that decide are repeated; the worst counts, since every run must be right.
const REPEATED: usize = 3;
/// Buffer of the trials in packets.
const BUFFER: u64 = 100;
/// Rates at which the search for the highest one begins, for large and small packets.
const SEARCH: [(u32, u64); 2] = [(1500, 250), (64, 10)];
/// Factor between the rates of the search, in hundredths.
const SEARCH_STEP: u64 = 125;
/// Where the search ends at the latest.
const SEARCH_END: u64 = 20_000;

fn trial(capacity: Rate, packet: u32, offered: Rate, lasting: Span) -> Trial {
    Trial { capacity, packet, offered, buffer: BUFFER, lasting }
}

/// Runs the trials and judges them. Exit status 1 if a bar is missed.
pub(super) fn self_test(as_json: bool) -> Done {
    let run = |trial: Trial| try_out(trial).map_err(|error| Failure::from(&error));
    let repeat = |trial: Trial| (0..REPEATED).map(|_| run(trial)).collect::<Result<Vec<_>, Failure>>();
    let lasting = Span::from_secs(2);
    let precise = repeat(trial(Rate::from_mbps(100), 1500, Rate::from_mbps(90), lasting))?;
    let full = repeat(trial(SUSTAINED, 1500, SUSTAINED.mul_ratio(11, 10), lasting))?;
    let precision = precise.iter().all(|m| m.median <= MEDIAN_BAR && m.p99 <= P99_BAR && m.kept_up());
    let sustained = full.iter().all(as_configured);
    let mut highest = Vec::new();
    for (packet, first) in SEARCH {
        highest.push(search(packet, first, &run)?);
    }
    let rows = precise.iter().chain(&full).chain(highest.iter().flatten());
    let mut table = Table::new(
        "Trials: datagrams through one link, error against the ideal link, by stamps of the receiving kernel",
        columns(),
    );
    rows.for_each(|m| table.push(row(m)));
    let verdict = |good| if good { "reached" } else { "MISSED" };
    let highest: Vec<(u32, Option<f64>)> = SEARCH
        .iter()
        .zip(&highest)
        .map(|((packet, _), best)| (*packet, best.as_ref().map(Measured::packets_per_second)))
        .collect();
    if as_json {
        let trials: Vec<_> = precise.iter().chain(&full).map(document).collect();
        print_json(&json!({
            "trials": trials,
            "precision_reached": precision,
            "sustained_reached": sustained,
            "highest_packets_per_second": highest.iter().map(|(packet, rate)| json!({ "packet": packet, "rate": rate })).collect::<Vec<_>>(),
        }))?;
    } else {
        let mut text = table.to_terminal(crate::output::terminal());
        text.push_str(&format!(
            "\nat 100 Mbit/s within {MEDIAN_BAR} (median) and {P99_BAR} (99 %), worst of {REPEATED}: {}\n\
             {SUSTAINED} of 1500-byte packets sustained, queue as configured, worst of {REPEATED}: {}\n",
            verdict(precision),
            verdict(sustained)
        ));
        for (packet, rate) in &highest {
            match rate {
                Some(rate) => text.push_str(&format!(
                    "highest rate without falling behind, {packet}-byte packets: {rate:.0} packets/s ({:.0} Mbit/s)\n",
                    rate * f64::from(*packet) * 8.0 / 1e6
                )),
                None => text.push_str(&format!("{packet}-byte packets: it fell behind at the lowest rate tried\n")),
            }
        }
        print(&text)?;
    }
    if precision && sustained { Ok(()) } else { Err(Failure::Check) }
}

/// The link was full at its capacity, its queue was full and dropped the rest, and nothing else was
/// lost.
fn as_configured(measured: &Measured) -> bool {
    let trial = &measured.trial;
    let full = trial.capacity.transmission_time(flowstart_units::Bytes::new(BUFFER * u64::from(trial.packet)));
    let rate = measured.rate.as_bps() as f64 / trial.capacity.as_bps() as f64;
    let wait = measured.longest_wait.ratio(full);
    measured.kept_up() && rate >= SUSTAINED_SHARE && measured.dropped > 0 && (0.98..=1.02).contains(&wait)
}

/// Raises the rate until the emulator falls behind or the sender cannot offer more; the best that
/// was kept up with.
fn search(
    packet: u32,
    first: u64,
    run: &impl Fn(Trial) -> Result<Measured, Failure>,
) -> Result<Option<Measured>, Failure> {
    let (mut best, mut rate) = (None::<Measured>, first);
    while rate <= SEARCH_END {
        let rate_now = Rate::from_mbps(rate);
        let measured = run(trial(rate_now.mul_ratio(11, 10), packet, rate_now, Span::from_secs(1)))?;
        let faster = best.as_ref().is_none_or(|best| measured.rate.as_bps() > best.rate.as_bps());
        if !measured.kept_up() || !faster {
            break;
        }
        // The sender did not reach what was asked for: more cannot be tried.
        let exhausted = measured.rate.as_bps() < rate_now.mul_ratio(9, 10).as_bps();
        best = Some(measured);
        if exhausted {
            break;
        }
        rate = rate * SEARCH_STEP / 100 + 1;
    }
    Ok(best)
}

fn columns() -> Vec<Column> {
    vec![
        Column::number("link", "Mbit/s"),
        Column::number("packet", "B"),
        Column::number("offered", "Mbit/s"),
        Column::number("rate", "Mbit/s"),
        Column::number("median", "us"),
        Column::number("99 %", "us"),
        Column::number("worst", "us"),
        Column::number("longest wait", "ms"),
        Column::number("dropped", "packets"),
        Column::number("not asked for", "packets"),
        Column::number("unseen", "packets"),
        Column::number("stalls", ""),
        Column::number("longest stall", "ms"),
    ]
}

fn micros(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e3
}

fn row(m: &Measured) -> Vec<Cell> {
    vec![
        Cell::number(m.trial.capacity.as_mbps_f64(), 0),
        Cell::count(u64::from(m.trial.packet)),
        Cell::number(m.trial.offered.as_mbps_f64(), 0),
        Cell::number(m.rate.as_mbps_f64(), 1),
        Cell::number(micros(m.median), 1),
        Cell::number(micros(m.p99), 1),
        Cell::number(micros(m.worst), 0),
        Cell::number(m.longest_wait.as_millis_f64(), 3),
        Cell::count(m.dropped),
        Cell::count(m.fidelity.unasked_drops),
        Cell::count(m.unseen),
        Cell::count(m.fidelity.stalls),
        Cell::number(m.fidelity.longest_stall.as_millis_f64(), 1),
    ]
}

fn document(m: &Measured) -> serde_json::Value {
    json!({
        "capacity_bps": m.trial.capacity.as_bps(),
        "packet": m.trial.packet,
        "offered_bps": m.trial.offered.as_bps(),
        "rate_bps": m.rate.as_bps(),
        "sent": m.sent,
        "received": m.received,
        "dropped": m.dropped,
        "error_median_us": micros(m.median),
        "error_p99_us": micros(m.p99),
        "error_worst_us": micros(m.worst),
        "longest_wait_us": micros(m.longest_wait),
        "unasked_drops": m.fidelity.unasked_drops,
        "unseen": m.unseen,
        "stalls": m.fidelity.stalls,
        "longest_stall_us": micros(m.fidelity.longest_stall),
    })
}
