//! `flowstart list`: what there is to choose from.

use serde_json::json;

use flowstart_congestion::{AvoidanceConfig, StartConfig};
use flowstart_network::QueueConfig;
use flowstart_race::{ALIASES, Contestant, DEFAULT, MODIFIERS};

use crate::args::ListArgs;
use crate::output::{Outcome, print, print_json};

/// One line about a flow start.
fn start_line(start: &StartConfig) -> &'static str {
    match start {
        StartConfig::SlowStart => "doubles the window every round trip until loss, mark or threshold (RFC 5681)",
        StartConfig::Hystart(_) => {
            "slow start that leaves on long ACK trains or rising delay, as in Linux CUBIC (Ha and Rhee 2008)"
        }
        StartConfig::HystartPlusPlus(_) => "slow start that slows down when the delay rises, then leaves (RFC 9406)",
        StartConfig::PacedChirping(_) => {
            "sends trains of packets with shrinking gaps and reads the capacity off their delays (Misund and Briscoe 2019)"
        }
        StartConfig::TwoGapChirping(_) => {
            "chirps that probe with one gap and load with another, which approaches it (the later code of the same authors)"
        }
        StartConfig::AdaptiveChirping(_) => {
            "chirps whose load grows as fast as they show that there is room, and that cope with what they cannot read"
        }
        StartConfig::Search(_) => {
            "slow start that leaves when delivery falls behind what was sent an RTT before (draft-chung-ccwg-search)"
        }
        StartConfig::LimitedSlowStart(_) => {
            "slow start up to 100 packets, then 50 packets more per round trip (RFC 3742)"
        }
        StartConfig::QuickStart(_) => {
            "asks the routers for a rate with the first packet and sends at what they grant for one round trip (RFC 4782)"
        }
        StartConfig::BbrStart(_) => {
            "paces at 2.77 times the delivery rate until that no longer grows, then drains its queue (BBR's STARTUP and DRAIN)"
        }
        StartConfig::RapidStart(_) => {
            "triples the window while no queue shows; after losses keeps 0.7 of what got through (draft-kazuho-ccwg-rapid-start)"
        }
        StartConfig::JumpStart(_) => {
            "sends all that waits evenly over the first round trip, at most 1 MiB (Liu et al. 2007)"
        }
        StartConfig::CarefulResume(_) => {
            "slow start that jumps to half of what an earlier flow reached, and retreats if that was too much (RFC 9959)"
        }
        StartConfig::Suss(_) => {
            "HyStart that quadruples the window in its first rounds where ACK trains are short (Arghavani et al. 2024)"
        }
        StartConfig::FairQueuingProbe(_) => {
            "short trains of packets with a lone packet of a second connection behind each, whose delay tells fair queuing from a shared queue"
        }
        StartConfig::TwoFlowProbe(_) => {
            "two connections at 1:2 double until both lose, which tells fair queuing from a shared queue (Bachl, Fabini and Zseby 2020)"
        }
    }
}

/// One line about a congestion avoidance.
fn avoidance_line(avoidance: &AvoidanceConfig) -> &'static str {
    match avoidance {
        AvoidanceConfig::Reno => "one packet more per round trip, half after a loss (RFC 5681, RFC 6582)",
        AvoidanceConfig::Cubic(_) => "a cubic function of the time since the last loss; Linux's default (RFC 9438)",
        AvoidanceConfig::Dctcp(_) => "reduces in proportion to the share of marked packets (RFC 8257)",
        AvoidanceConfig::Scalable(_) => "grows and shrinks in proportion to the window (Kelly 2003)",
        AvoidanceConfig::Bic(_) => {
            "searches for its old maximum in halving steps, Linux's default before CUBIC (Xu et al. 2004)"
        }
        AvoidanceConfig::Vivace(_) => {
            "climbs a measured utility of rate, latency and loss (PCC Vivace, Dong et al. 2018)"
        }
        AvoidanceConfig::VivaceLoss(_) => {
            "climbs a measured utility of rate and loss (Vivace as in Bachl, Fabini and Zseby 2020)"
        }
        AvoidanceConfig::Allegro(_) => "steps towards the better of two rates it tries (PCC Allegro, Dong et al. 2015)",
        AvoidanceConfig::VegasLike(_) => {
            "1 % faster or 5 % slower by 5 ms of queue, for flows with a queue of their own (Bachl, Fabini and Zseby 2020)"
        }
        AvoidanceConfig::DelayTarget(_) => {
            "keeps its queueing delay at half a millisecond, for flows with a queue of their own"
        }
        AvoidanceConfig::Bbr(_) => {
            "paces at the bandwidth it measures, not answering losses (BBR v1, Cardwell et al. 2016)"
        }
        AvoidanceConfig::VegasOrVivace(_) => {
            "vegas_like where fair queuing was detected, else vivace_loss (Bachl, Fabini and Zseby 2020)"
        }
        AvoidanceConfig::DelayOrCubic(_) => "delay_target where fair queuing was detected, else cubic",
    }
}

/// Names with their lines, by kind.
pub(crate) fn catalogue() -> Vec<(&'static str, Vec<(String, String)>)> {
    let pair = |name: &str, line: &str| (name.to_owned(), line.to_owned());
    let starts = StartConfig::NAMES
        .iter()
        .filter_map(|name| StartConfig::from_name(name).ok().map(|start| pair(name, start_line(&start))));
    let avoidances = AvoidanceConfig::NAMES.iter().filter_map(|name| {
        AvoidanceConfig::from_name(name).ok().map(|avoidance| pair(name, avoidance_line(&avoidance)))
    });
    let queues =
        QueueConfig::NAMES.iter().filter_map(|name| QueueConfig::from_name(name).map(|queue| pair(name, queue.help())));
    let aliases = ALIASES.iter().map(|(alias, meaning)| {
        let conditions = meaning.parse::<Contestant>().map_or(String::new(), |c| format!("; {}", c.conditions()));
        (alias.to_string(), format!("{meaning}{conditions}"))
    });
    let modifiers = MODIFIERS.iter().map(|(word, meaning)| (format!("/{word}"), meaning.to_string()));
    let defaults = DEFAULT.iter().map(|text| (text.to_string(), String::new()));
    vec![
        ("flow starts", starts.collect()),
        ("congestion avoidances", avoidances.collect()),
        ("queues", queues.collect()),
        ("contestants by short name", aliases.collect()),
        ("changes to a contestant, behind its name", modifiers.collect()),
        ("the race without arguments", defaults.collect()),
    ]
}

/// Prints the lists.
pub(crate) fn list(args: &ListArgs) -> Outcome {
    let catalogue = catalogue();
    if args.json {
        let document: serde_json::Map<String, serde_json::Value> = catalogue
            .into_iter()
            .map(|(kind, entries)| {
                let entries: Vec<_> =
                    entries.into_iter().map(|(name, about)| json!({ "name": name, "about": about })).collect();
                (kind.replace([' ', ','], "_").replace("__", "_"), json!(entries))
            })
            .collect();
        return print_json(&document.into());
    }
    let mut text = String::new();
    for (kind, entries) in catalogue {
        text.push_str(&format!("{kind}\n"));
        let width = entries.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, about) in entries {
            text.push_str(format!("  {name:width$}  {about}").trim_end());
            text.push('\n');
        }
        text.push('\n');
    }
    text.push_str(
        "A contestant is START+AVOIDANCE@QUEUE, for instance \"paced_chirping+cubic/paced@drop_tail 1 BDP\".\n",
    );
    print(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_queue_that_a_scenario_or_a_contestant_can_name_is_listed() {
        let (_, queues) = catalogue().into_iter().find(|(kind, _)| *kind == "queues").unwrap();
        let listed: Vec<String> = queues.into_iter().map(|(name, _)| name).collect();
        assert_eq!(listed, QueueConfig::NAMES);
        for name in listed {
            assert!(format!("cubic@{name}").parse::<Contestant>().is_ok(), "{name}");
        }
    }

    #[test]
    fn every_name_has_its_line() {
        for (kind, entries) in catalogue() {
            assert!(!entries.is_empty(), "{kind}");
            if kind != "the race without arguments" {
                assert!(entries.iter().all(|(_, line)| !line.is_empty()), "{kind}: {entries:?}");
            }
        }
    }
}
