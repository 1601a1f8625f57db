//! `flowstart emulate --self-test`: how precise and how fast the emulator is here.

use flowstart_emulator::self_test::{MEDIAN_BAR, Measured, Miss, P99_BAR, REPEATED, SUSTAINED, Trials, trials};
use flowstart_report::{Cell, Column, Table};
use flowstart_units::Span;
use serde_json::json;

use crate::output::{Done, Failure, print, print_json};

/// Runs the trials and shows how they were judged. Exit status 1 if a bar is missed.
pub(super) fn self_test(as_json: bool) -> Done {
    let Trials { deciding, highest, imprecise, unsustained } = trials().map_err(|error| Failure::from(&error))?;
    let per_second = |best: &Option<Measured>| best.as_ref().map(Measured::packets_per_second);
    if as_json {
        print_json(&json!({
            "trials": deciding.iter().map(document).collect::<Vec<_>>(),
            "precision_reached": imprecise.is_empty(),
            "precision_missed": words(&imprecise),
            "sustained_reached": unsustained.is_empty(),
            "sustained_missed": words(&unsustained),
            "highest_packets_per_second": highest
                .iter()
                .map(|(packet, best)| json!({ "packet": packet, "rate": per_second(best) }))
                .collect::<Vec<_>>(),
        }))?;
    } else {
        let title =
            "Trials: datagrams through one link, error against the ideal link, by stamps of the receiving kernel";
        let mut table = Table::new(title, columns());
        deciding.iter().chain(highest.iter().filter_map(|(_, best)| best.as_ref())).for_each(|m| table.push(row(m)));
        let mut text = table.to_terminal(crate::output::terminal());
        text.push_str(&format!(
            "\nat 100 Mbit/s within {MEDIAN_BAR} (median) and {P99_BAR} (99 %), worst of {REPEATED}: {}\n\
             {SUSTAINED} of 1500-byte packets sustained, queue as configured, worst of {REPEATED}: {}\n",
            verdict(&imprecise),
            verdict(&unsustained)
        ));
        for (packet, best) in &highest {
            match per_second(best) {
                Some(rate) => text.push_str(&format!(
                    "highest rate without falling behind, {packet}-byte packets: {rate:.0} packets/s ({:.0} Mbit/s)\n",
                    rate * f64::from(*packet) * 8.0 / 1e6
                )),
                None => text.push_str(&format!("{packet}-byte packets: it fell behind at the lowest rate tried\n")),
            }
        }
        print(&text)?;
    }
    if imprecise.is_empty() && unsustained.is_empty() { Ok(()) } else { Err(Failure::Check) }
}

fn words(missed: &[Miss]) -> Vec<String> {
    missed.iter().map(Miss::to_string).collect()
}

/// Whether a bar was reached, and if not, what was missed and by how much.
fn verdict(missed: &[Miss]) -> String {
    match missed {
        [] => "reached".to_owned(),
        missed => format!("MISSED\n  {}", words(missed).join("\n  ")),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_that_was_missed_is_followed_by_what_was_missed() {
        assert_eq!(verdict(&[]), "reached");
        let miss = |trial, what: &str| Miss { trial, what: what.to_owned() };
        let missed = [miss(1, "rate 490.0 Mbit/s"), miss(3, "no packet arrived")];
        assert_eq!(verdict(&missed), "MISSED\n  trial 1: rate 490.0 Mbit/s\n  trial 3: no packet arrived");
    }
}
