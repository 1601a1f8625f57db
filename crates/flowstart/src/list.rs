//! `flowstart list`: what there is to choose from.

use serde_json::json;

use flowstart_congestion::{AvoidanceConfig, StartConfig};
use flowstart_network::QueueConfig;
use flowstart_race::{ALIASES, Contestant, DEFAULT, MODIFIERS};
use flowstart_scenario::Profile;

use crate::args::ListArgs;
use crate::output::{Outcome, print, print_json};

/// Names with their lines, by kind.
pub(crate) fn catalogue() -> Vec<(&'static str, Vec<(String, String)>)> {
    let pair = |name: &str, line: &str| (name.to_owned(), line.to_owned());
    let lines = |about: &[(&str, &str)]| about.iter().map(|(name, line)| pair(name, line)).collect();
    let queues =
        QueueConfig::NAMES.iter().filter_map(|name| QueueConfig::from_name(name).map(|queue| pair(name, queue.help())));
    let profiles = Profile::all().into_iter().map(|profile| (profile.name, profile.about));
    let aliases = ALIASES.iter().map(|(alias, meaning)| {
        let conditions = meaning.parse::<Contestant>().map_or(String::new(), |c| format!("; {}", c.conditions()));
        (alias.to_string(), format!("{meaning}{conditions}"))
    });
    let modifiers = MODIFIERS.iter().map(|(word, meaning)| (format!("/{word}"), meaning.to_string()));
    let defaults = DEFAULT.iter().map(|text| (text.to_string(), String::new()));
    vec![
        ("flow starts", lines(&[StartConfig::ABOUT, &StartConfig::registered()].concat())),
        ("congestion avoidances", lines(&[AvoidanceConfig::ABOUT, &AvoidanceConfig::registered()].concat())),
        ("queues", queues.collect()),
        ("profiles of paths", profiles.collect()),
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
    fn every_start_and_every_avoidance_is_listed() {
        let catalogue = catalogue();
        let listed = |n: usize| catalogue[n].1.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>();
        // Other tests of this program register starts of their own, which stand behind.
        assert!(listed(0).starts_with(StartConfig::NAMES));
        assert!(listed(1).starts_with(AvoidanceConfig::NAMES));
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
