//! `flowstart router cost`: figure 6 of Scharf and Strotbek on this machine.

use flowstart_kernel::{RouterSettings, router_cost};
use flowstart_measure::Estimate;
use flowstart_pages::testbed::router as table;
use flowstart_quick_start::wire::{IpOption, Ipv4, checksum};
use flowstart_quick_start::{Nonce, RateCode};
use flowstart_real::testbed::RouterCost;
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

/// What an empty program does not take, over runs.
fn own(cost: &RouterCost) -> Option<Estimate> {
    Estimate::of(&cost.one_percent.iter().zip(&cost.empty).map(|(all, empty)| all - empty).collect::<Vec<f64>>())
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

/// Measures so many runs. Everything is granted, and every request is looked at.
pub(crate) fn measured(runs: u32) -> Result<RouterCost, Failure> {
    let settings = RouterSettings {
        requests_per_second: u32::MAX,
        burst: u32::MAX,
        ..RouterSettings::new(Rate::from_bps(1 << 62))
    };
    let option = IpOption::Request { rate: RateCode::MIN, ttl: 9, nonce: Nonce::new(1) };
    let request = Ipv4::with_option(&plain(), option).ok_or_else(|| Failure::Usage("no room".to_owned()))?;
    let cost = router_cost(&settings, &plain(), &request, runs, PACKETS).map_err(|problem| failure(&problem))?;
    let flowstart_kernel::RouterCost { empty, metering, one_percent, requests } = cost;
    Ok(RouterCost { empty, metering, one_percent, requests })
}

/// Measures and shows.
pub(super) fn cost(runs: u32, json: bool) -> Done {
    let cost = measured(runs)?;
    let ratio = cost.by_metering(|cost| &cost.one_percent);
    let own = own(&cost);
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
}
