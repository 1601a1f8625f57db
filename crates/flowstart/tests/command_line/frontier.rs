//! The frontier: plans, folders, what is refused.

use super::*;

/// A frontier that takes no time.
const SMALL_GRID: &[&str] = &[
    "frontier",
    "-C",
    "paced_chirping+cubic",
    "--capacity",
    "5Mbit/s",
    "--rtt",
    "20ms",
    "--buffer",
    "1BDP",
    "--path",
    "clean,jitter",
    "--load",
    "idle",
    "--runs",
    "2",
];

fn small_grid(more: &[&'static str]) -> Vec<&'static str> {
    SMALL_GRID.iter().chain(more).copied().collect()
}

#[test]
fn a_frontier_prints_medians_goals_and_the_cells_that_are_lost() {
    let folder = empty();
    let text = output(folder.path(), &small_grid(&["--all"]));
    for part in [
        "Medians over the grid",
        "hystart+cubic",
        "paced_chirping+cubic",
        "Goals",
        "Lost cells",
        "5 Mbit/s, 20 ms, 1 BDP, ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(files(folder.path()), [""; 0], "nothing is written unless asked for");
}

#[test]
fn profiles_as_they_are_have_a_column_each_and_pictures_of_all_side_by_side() {
    let folder = empty();
    let asked = &["frontier", "--as-is", "--profile", "dsl,cable", "-C", "oracle+cubic", "--out", "results"];
    let text = output(folder.path(), asked);
    let table = text.split("Completion time of 100 kB and more, by path").nth(1).expect("a table");
    assert!(table.contains("dsl") && table.contains("cable") && table.contains("1 is hystart+cubic"), "{text}");
    let written = files(&folder.path().join("results"));
    assert!(["paths.svg", "paths-delay.svg"].iter().all(|name| written.iter().any(|file| file == name)), "{written:?}");
    let svg = std::fs::read_to_string(folder.path().join("results/paths.svg")).expect("a picture");
    assert!(svg.contains("oracle+cubic") && svg.contains(">dsl<"), "{svg}");
    // A path of its own has nothing to cross with.
    let refused = refusal(folder.path(), &["frontier", "--as-is", "--capacity", "5Mbit/s"]);
    assert!(refused.contains("--as-is") && refused.contains("--capacity"), "{refused}");
}

#[test]
fn a_plan_says_what_every_cell_costs_and_simulates_nothing() {
    let folder = empty();
    let plan = output(folder.path(), &["frontier", "--plan", "--json"]);
    let plan: serde_json::Value = serde_json::from_str(&plan).expect("JSON");
    let cells = plan["cells"].as_array().expect("a list");
    let sum: f64 = cells.iter().filter_map(|cell| cell["packets"].as_f64()).sum();
    let all = plan["packets"].as_f64().expect("a number");
    assert!(all > 1e11 && (sum / all - 1.0).abs() < 1e-9, "{sum} of {all}");
    let text = output(folder.path(), &["frontier", "--plan"]);
    assert!(text.contains("10 Gbit/s, 300 ms") && text.contains("256"), "{text}");
    // It has no results to take in, to go on with, or to show.
    for more in [&["--merge", "there"][..], &["--resume"], &["--shard", "1/2"], &["-o", "page.html"]] {
        let said = refusal(folder.path(), &[&["frontier", "--plan"][..], more].concat());
        assert!(said.contains("--plan") && said.contains("cannot be used with"), "{more:?}: {said}");
    }
}

#[test]
fn a_profile_that_is_none_is_answered_with_those_that_are() {
    let folder = empty();
    let said = refusal(folder.path(), &["frontier", "--profile", "wify"]);
    assert!(said.contains("there are wifi, cable") && said.contains("files that end in .toml"), "{said}");
    assert!(said.contains("did you mean \"wifi\"?") && !said.contains("back_traffic"), "{said}");
    // A file's error is its own.
    let said = refusal(folder.path(), &["frontier", "--profile", "no-such.toml"]);
    assert!(said.contains("no-such.toml") && !said.contains("there are"), "{said}");
}

#[test]
fn a_frontier_as_json_is_the_same_with_any_number_of_threads() {
    let folder = empty();
    let one = output(folder.path(), &small_grid(&["--json", "--threads", "1"]));
    assert_eq!(one, output(folder.path(), &small_grid(&["--json", "--threads", "3"])));
    let document: serde_json::Value = serde_json::from_str(&one).expect("JSON");
    assert_eq!(document["complete"], true);
    assert_eq!(document["contestants"][1]["goals"].as_array().map(Vec::len), Some(6));
    assert_eq!(document["contestants"][1]["goals"][0]["verdict"], "undecided", "two cells have no interval");
    assert_eq!(document["parameters"]["seeds"], serde_json::json!([2, 4]));
}

#[test]
fn held_out_seeds_are_others() {
    let folder = empty();
    let text = output(folder.path(), &small_grid(&["--json", "--seeds", "held-out"]));
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["parameters"]["seeds"], serde_json::json!([1, 3]));
}

#[test]
fn a_frontiers_folder_is_gone_on_with_only_when_asked_and_then_does_not_change() {
    let folder = empty();
    output(folder.path(), &small_grid(&["--out", "results"]));
    let results = folder.path().join("results");
    let names = [
        "cells.csv",
        "front.svg",
        "lost.csv",
        "parameters.json",
        "paths-delay.svg",
        "paths.svg",
        "records.csv",
        "report.html",
        "result.json",
    ];
    assert_eq!(files(&results), names);
    let read = || names.map(|name| std::fs::read(results.join(name)).expect("readable"));
    let before = read();
    assert!(refusal(folder.path(), &small_grid(&["--out", "results"])).contains("--resume"));
    output(folder.path(), &small_grid(&["--out", "results", "--resume"]));
    assert!(before == read());
}

#[test]
fn a_wrong_word_for_a_frontier_is_answered_with_what_there_is() {
    let folder = empty();
    for (option, value, part) in [
        ("--path", "lossy", "clean, loss, jitter, delayed_acks"),
        ("--load", "idel", "did you mean \"idle\"?"),
        ("--seeds", "even", "development, held-out, all"),
        ("--subject", "bbr", "does not race"),
        ("--capacity", "0 Mbit/s", "capacity of 0"),
    ] {
        let said = refusal(folder.path(), &["frontier", option, value]);
        assert!(said.contains(part), "{option} {value}: {said}");
    }
}

#[test]
fn cells_that_are_asked_for_and_left_out_are_named() {
    let folder = empty();
    let plan =
        ["frontier", "--profile", "wifi,lte", "--capacity", "20Mbit/s", "--rtt", "10ms,30ms,50ms,70ms", "--plan"];
    let said = |more: &[&'static str]| {
        let done = flowstart(folder.path()).args([&plan[..], more].concat()).assert().success();
        String::from_utf8_lossy(&done.get_output().stderr).into_owned()
    };
    let some = said(&[]);
    assert!(some.contains("Of 8 cells ") && some.contains("of the held-out half (--half all has both)"), "{some}");
    assert!(!said(&["--half", "all"]).contains("left out"));
    // A grid of which nothing is left says why.
    let rtts = ["10ms", "20ms", "30ms", "40ms", "50ms", "60ms", "70ms", "80ms"];
    let none = rtts.iter().find_map(|rtt| {
        let one = ["frontier", "--profile", "wifi", "--capacity", "20Mbit/s", "--rtt", rtt, "--plan"];
        let done = flowstart(folder.path()).args(one).assert();
        (done.get_output().status.code() == Some(2))
            .then(|| String::from_utf8_lossy(&done.get_output().stderr).into_owned())
    });
    let none = none.expect("half of the cells are held out");
    assert!(none.contains("has no cells. Of 1 cells 0 are here; left out: 1 of the held-out half"), "{none}");
}

#[test]
fn a_part_of_the_work_has_neither_document_nor_page() {
    let folder = empty();
    for more in [&["--json"][..], &["-o", "page.html"]] {
        let said = refusal(folder.path(), &small_grid(&[&["--out", "part", "--shard", "1/2"], more].concat()));
        assert!(said.contains("cannot be used with"), "{said}");
    }
    assert_eq!(files(folder.path()), [""; 0]);
}

/// The folder was left with records of nothing, and refused to be used the next time.
#[test]
fn a_folder_that_cannot_be_taken_in_is_named_and_leaves_nothing() {
    let folder = empty();
    let said = refusal(folder.path(), &small_grid(&["--out", "results", "--merge", "missing"]));
    assert!(said.contains("--merge missing: there is no missing/records.csv; a folder is meant"), "{said}");
    assert_eq!(files(folder.path()), [""; 0]);
    std::fs::create_dir(folder.path().join("other")).expect("made");
    std::fs::write(folder.path().join("other/records.csv"), "what,is,this\n1,2,3\n").expect("written");
    let said = refusal(folder.path(), &small_grid(&["--out", "results", "--merge", "other"]));
    assert!(said.contains("other/records.csv"), "{said}");
    assert_eq!(files(folder.path()), ["other"]);
}

/// Whether there was such a figure was looked up when hours of work were done.
#[test]
fn a_figure_that_the_report_will_not_have_is_refused_before_anything_is_run() {
    let folder = empty();
    let said = refusal(folder.path(), &["frontier", "-o", "x.svg", "--figure", "colour"]);
    assert!(said.contains("there is no figure \"colour\"") && said.contains("by path"), "{said}");
    output(folder.path(), &small_grid(&["-o", "x.svg", "--figure", "queueing delay, P99, by path"]));
}

/// One packet takes longer than anything waits at such a rate: nobody adds a delay, and the
/// reference was said to add no part of its own.
#[test]
fn where_nobody_adds_a_delay_none_is_compared() {
    let folder = empty();
    let slow = ["frontier", "--capacity", "1kbit/s", "--rtt", "20ms", "--buffer", "1BDP", "--path", "clean"];
    let more = ["--load", "idle", "--runs", "1", "-C", "slow_start+cubic", "-o", "report.md"];
    output(folder.path(), &[&slow[..], &more[..]].concat());
    let text = std::fs::read_to_string(folder.path().join("report.md")).unwrap();
    let mut lines = text.split("**Medians over the grid**").nth(1).unwrap().trim().lines();
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let heads = cells(lines.next().unwrap());
    let place = heads.iter().position(|head| head.starts_with("delay / ref.")).unwrap();
    for row in lines.skip(1).take(2) {
        assert_eq!(cells(row)[place], "–", "{row}");
    }
}
