//! `flowstart router cost`: figure 6 of Scharf and Strotbek on this machine.

use flowstart_kernel::{RouterCost, RouterSettings, router_cost};
use flowstart_measure::Estimate;
use flowstart_quick_start::wire::{IpOption, Ipv4, checksum};
use flowstart_quick_start::{Nonce, RateCode};
use flowstart_report::{Cell, Column, Table};
use flowstart_units::Rate;
use serde_json::json;

use crate::kernel::failure;
use crate::output::{Done, Failure, print, print_json};

/// Packets of each kind in a run.
const PACKETS: u32 = 100_000;
/// Length of a packet in bytes, as in the paper.
const BYTES: u16 = 50;
/// One request in a hundred packets costs at most this many times what metering does.
const GOAL: f64 = 1.05;
/// What a packet costs of its own at most with 1 % of requests, in ns.
const OWN_GOAL_NS: f64 = 150.0;

/// A segment of TCP with ten bytes of payload.
fn plain() -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend(BYTES.to_be_bytes());
    packet.extend([0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 10, 0, 1, 2, 10, 0, 2, 2]);
    packet.resize(usize::from(BYTES), 0);
    packet[32] = 0x50;
    let check = checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&check.to_be_bytes());
    packet
}

/// Means over runs of the differences or quotients of two kinds.
fn both(a: &[f64], b: &[f64], join: impl Fn(f64, f64) -> f64) -> Option<Estimate> {
    Estimate::of(&a.iter().zip(b).map(|(a, b)| join(*a, *b)).collect::<Vec<f64>>())
}

/// Whether all of an interval is below a goal, or all above.
fn verdict(estimate: Option<Estimate>, goal: f64) -> &'static str {
    match estimate.and_then(|estimate| Some((estimate.mean, estimate.half_width?))) {
        Some((mean, half)) if mean + half <= goal => "met",
        Some((mean, half)) if mean - half > goal => "MISSED",
        _ => "undecided",
    }
}

fn written(estimate: Option<Estimate>, digits: usize) -> String {
    estimate.map_or("–".to_owned(), |estimate| {
        let half = estimate.half_width.map_or(String::new(), |half| format!(" ± {half:.digits$}"));
        format!("{:.digits$}{half}", estimate.mean)
    })
}

/// Measures and shows.
pub(super) fn cost(runs: u32, json: bool) -> Done {
    // So much capacity that everything is granted; every request is looked at.
    let settings = RouterSettings {
        requests_per_second: u32::MAX,
        burst: u32::MAX,
        ..RouterSettings::new(Rate::from_bps(1 << 62))
    };
    let option = IpOption::Request { rate: RateCode::MIN, ttl: 9, nonce: Nonce::new(1) };
    let request = Ipv4::with_option(&plain(), option).ok_or_else(|| Failure::Usage("no room".to_owned()))?;
    let cost = router_cost(&settings, &plain(), &request, runs, PACKETS).map_err(|problem| failure(&problem))?;
    let ratio = both(&cost.one_percent, &cost.metering, |a, b| a / b);
    let own = both(&cost.one_percent, &cost.empty, |a, b| a - b);
    if json {
        return print_json(&json!({
            "packets": PACKETS, "bytes": BYTES, "empty_ns": cost.empty, "metering_ns": cost.metering,
            "one_percent_ns": cost.one_percent, "requests_ns": cost.requests,
            "one_percent_to_metering": ratio.map(|ratio| ratio.mean), "own_ns": own.map(|own| own.mean),
            "goals": { "ratio": verdict(ratio, GOAL), "own": verdict(own, OWN_GOAL_NS) },
        }));
    }
    let text = format!(
        "{}\nWith 1 % of requests the program takes {} times what it takes without (goal: at most {GOAL}; {}), and {} ns \
         of its own (goal: at most {OWN_GOAL_NS:.0}; {}). Mean ± 95 % interval over {runs} runs of {PACKETS} packets of \
         {BYTES} bytes of each kind, in turn, as the kernel's statistics of programs say.\n",
        table(&cost).to_terminal(crate::output::terminal()),
        written(ratio, 3),
        verdict(ratio, GOAL),
        written(own, 0),
        verdict(own, OWN_GOAL_NS),
    );
    print(&text)
}

fn table(cost: &RouterCost) -> Table {
    let columns = vec![Column::key("packets"), Column::text("ns, all"), Column::text("ns, of its own")];
    let mut table = Table::new("A Quick-Start router's program, per packet", columns);
    for (name, values) in [
        ("none: an empty program", &cost.empty),
        ("no requests: metering", &cost.metering),
        ("1 % requests", &cost.one_percent),
        ("100 % requests", &cost.requests),
    ] {
        let own = both(values, &cost.empty, |a, b| a - b);
        table.push(vec![Cell::text(name), Cell::text(written(Estimate::of(values), 1)), Cell::text(written(own, 1))]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_or_missed_only_if_the_whole_interval_says_so() {
        let of = |values: &[f64]| verdict(Estimate::of(values), GOAL);
        assert_eq!(of(&[1.02, 1.03, 1.02]), "met");
        assert_eq!(of(&[1.2, 1.21, 1.2]), "MISSED");
        assert_eq!((of(&[1.0, 1.1, 1.05]), of(&[1.0])), ("undecided", "undecided"));
    }

    #[test]
    fn each_kind_of_packets_is_shown_without_what_an_empty_program_takes() {
        let of = |value: f64| vec![value; 3];
        let cost = RouterCost { empty: of(30.0), metering: of(75.0), one_percent: of(77.0), requests: of(300.0) };
        let text = table(&cost).to_markdown();
        assert!(text.contains("| 1 % requests | 77.0 ± 0.0 | 47.0 ± 0.0 |"), "{text}");
    }
}
