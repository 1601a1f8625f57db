//! `flowstart list`: what there is to choose from.

use serde_json::json;

use flowstart_congestion::{AvoidanceConfig, StartConfig};
use flowstart_measure::measures;
use flowstart_network::QueueConfig;
use flowstart_race::{ALIASES, Contestant, DEFAULT, MODIFIERS};
use flowstart_reproduce::claim_measures;
use flowstart_scenario::Profile;

use crate::args::ListArgs;
use crate::output::{Done, print, print_json};

/// Names with their lines, by kind.
pub(crate) fn catalogue() -> Vec<(&'static str, Vec<(String, String)>)> {
    let pair = |name: &str, line: &str| (name.to_owned(), line.to_owned());
    let lines = |about: &[(&str, &str)]| about.iter().map(|(name, line)| pair(name, line)).collect();
    let queues =
        QueueConfig::NAMES.iter().filter_map(|name| QueueConfig::from_name(name).map(|queue| pair(name, queue.help())));
    let profiles = Profile::all().into_iter().map(|profile| (profile.name, profile.about));
    let aliases = ALIASES.iter().map(|(alias, meaning)| {
        let conditions = meaning.parse::<Contestant>().map_or(String::new(), |c| format!("; {}", c.conditions()));
        let elsewhere = if *alias == "cubic" { "; in scenario files slow_start+cubic" } else { "" };
        (alias.to_string(), format!("{meaning}{conditions}{elsewhere}"))
    });
    let modifiers = MODIFIERS.iter().map(|(word, meaning)| (format!("/{word}"), meaning.to_string()));
    let defaults = DEFAULT.iter().map(|text| (text.to_string(), String::new()));
    vec![
        ("flow starts", lines(&[StartConfig::ABOUT, &StartConfig::registered()].concat())),
        ("congestion avoidances", lines(&[AvoidanceConfig::ABOUT, &AvoidanceConfig::registered()].concat())),
        ("queues", queues.collect()),
        ("profiles of paths", profiles.collect()),
        ("measures of a race", measures::REGISTRY.iter().map(|item| pair(item.name, item.heading)).collect()),
        ("measures of claims", claim_measures()),
        ("contestants by short name", aliases.collect()),
        ("changes to a contestant, behind its name", modifiers.collect()),
        ("the race without arguments", defaults.collect()),
    ]
}

/// Prints the lists.
pub(crate) fn list(args: &ListArgs) -> Done {
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

    fn listed(kind: &str) -> Vec<String> {
        let (_, entries) = catalogue().into_iter().find(|(name, _)| *name == kind).unwrap();
        entries.into_iter().map(|(name, _)| name).collect()
    }

    fn root(path: &str) -> std::path::PathBuf {
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
    }

    /// Sources in a folder that implement a trait, by the name of their file or folder.
    fn sources_with(folder: &str, marks: &str) -> Vec<String> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(root(folder)).unwrap() {
            let path = entry.unwrap().path();
            let file = if path.is_dir() { path.join("mod.rs") } else { path.clone() };
            if std::fs::read_to_string(file)
                .is_ok_and(|text| text.lines().any(|line| line.starts_with("impl") && line.contains(marks)))
            {
                found.push(path.file_stem().unwrap().to_string_lossy().into_owned());
            }
        }
        found
    }

    /// What is written is listed: the sources are searched, not the registry that the list is made
    /// of. Those named here put others together.
    #[test]
    fn every_start_avoidance_and_queue_that_is_written_is_listed() {
        for (folder, marks, kind, together) in [
            (
                "crates/starts/src",
                " FlowStart for ",
                "flow starts",
                &["dispatch", "directed", "chirping_or_hystart"][..],
            ),
            (
                "crates/avoidances/src",
                " CongestionAvoidance for ",
                "congestion avoidances",
                &["dispatch", "by_isolation"],
            ),
            ("crates/network/src/queue", " Discipline<P> for ", "queues", &["registry"]),
        ] {
            let listed = listed(kind);
            let written = sources_with(folder, marks);
            assert!(written.len() > 8, "{folder}: {written:?}");
            for name in written.iter().filter(|name| !together.contains(&name.as_str()) && *name != "trials") {
                assert!(listed.contains(name), "{folder}: {name} is not among {listed:?}");
            }
        }
    }

    #[test]
    fn every_profile_of_the_repository_is_listed() {
        let files = std::fs::read_dir(root("profiles")).unwrap().map(|entry| entry.unwrap().path());
        let names = files.map(|file| file.file_stem().unwrap().to_string_lossy().into_owned());
        let names: Vec<String> = names.collect();
        let listed = listed("profiles of paths");
        assert!(names.len() > 5 && names.len() == listed.len(), "{names:?}, listed {listed:?}");
        assert!(names.iter().all(|name| listed.contains(name)), "{names:?}, listed {listed:?}");
    }

    #[test]
    fn every_column_of_a_race_and_every_measure_of_a_claim_is_listed() {
        let names = |file: &str, begin: &str, end: &str| -> Vec<String> {
            let page = std::fs::read_to_string(root(file)).unwrap();
            let name = |line: &str| Some(line.strip_prefix(begin)?.split_once(end)?.0.to_owned());
            page.lines().filter_map(name).collect()
        };
        let columns = names("docs/measures.md", "| `", "`");
        let races = listed("measures of a race");
        // Some have a row for each size or share.
        let of = |column: &str, item: &str| {
            column == item || item.split('{').next().is_some_and(|stem| column.starts_with(stem))
        };
        assert!(columns.len() > 30);
        for column in columns {
            assert!(races.iter().any(|item| of(&column, item)), "{column}: {races:?}");
        }
        assert_eq!(listed("measures of claims").len(), 36);
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
