//! What a race writes and leaves alone.

use super::*;

#[test]
fn a_race_writes_its_folder_and_names_seed_parameters_and_report_last() {
    let folder = empty();
    let text = output(folder.path(), &short(&[]));
    let last: Vec<&str> = text.trim_end().lines().rev().take(3).collect();
    assert_eq!(last[0], "report: flowstart-report/report.html");
    assert_eq!(last[1], "parameters: flowstart-report/parameters.json");
    assert!(last[2].starts_with("seed 1, race "), "{}", last[2]);
    assert!(text.contains("No randomness in this scenario: one run is enough."), "{text}");
    assert_eq!(files(folder.path()), ["flowstart-report"]);
    let report = folder.path().join("flowstart-report");
    assert_eq!(
        files(&report),
        ["parameters.json", "report.html", "result.json", "runs.csv", "scenarios", "series.csv", "summary.csv"]
    );
    let page = std::fs::read_to_string(report.join("report.html")).expect("the report");
    assert!(page.contains("flowstart compare -C cubic,paced_chirping"), "the command stands in the report");
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    // What was raced can be run again by hand.
    let scenario = report.join("scenarios/hystart+cubic.toml");
    let rerun = output(folder.path(), &["run", &scenario.to_string_lossy()]);
    assert!(rerun.contains("hystart+cubic") && rerun.contains("ack train"), "{rerun}");
}

#[test]
fn the_same_race_writes_the_same_bytes_with_any_number_of_threads() {
    let folder = empty();
    let results: Vec<Vec<u8>> = ["1", "3"]
        .iter()
        .map(|threads| {
            let mut arguments = short(&["--background", "cubic", "--runs", "2", "-o", "result.json"]);
            arguments.extend(["--threads", threads]);
            output(folder.path(), &arguments);
            std::fs::read(folder.path().join("result.json")).expect("the result")
        })
        .collect();
    assert!(results[0] == results[1]);
}

#[test]
fn captures_of_a_race_open_as_pcapng() {
    let folder = empty();
    output(folder.path(), &short(&["--no-report", "--pcap", "packets"]));
    let packets = folder.path().join("packets");
    assert_eq!(files(&packets), ["hystart+cubic-bottleneck.pcapng", "paced_chirping+dctcp-bottleneck.pcapng"]);
    let bytes = std::fs::read(packets.join("hystart+cubic-bottleneck.pcapng")).expect("the capture");
    assert_eq!(bytes[..4], [0x0a, 0x0d, 0x0d, 0x0a], "a section header block begins it");
}

#[test]
fn a_second_race_leaves_no_scenario_of_the_first() {
    let folder = empty();
    output(folder.path(), &["compare", "-C", "reno", "-n", "100kB", "--out", "r"]);
    output(folder.path(), &["compare", "-C", "cubic", "-n", "100kB", "--out", "r"]);
    assert_eq!(files(&folder.path().join("r/scenarios")), ["hystart+cubic.toml"]);
}

#[test]
fn a_race_removes_nothing_that_no_race_wrote() {
    let folder = empty();
    let scenarios = folder.path().join("scenarios");
    std::fs::create_dir(&scenarios).unwrap();
    std::fs::write(scenarios.join("mine.toml"), "title = 'mine'").unwrap();
    output(folder.path(), &["compare", "-C", "reno", "-n", "100kB", "--out", "."]);
    output(folder.path(), &["compare", "-C", "cubic", "-n", "100kB", "--out", "."]);
    assert_eq!(files(&scenarios), ["hystart+cubic.toml", "mine.toml"]);
    assert_eq!(std::fs::read_to_string(scenarios.join("mine.toml")).unwrap(), "title = 'mine'");
}

#[cfg(unix)]
#[test]
fn a_race_removes_nothing_through_a_link() {
    let folder = empty();
    let (other, results) = (folder.path().join("other"), folder.path().join("r"));
    output(folder.path(), &["compare", "-C", "reno", "-n", "100kB", "--out", "r"]);
    std::fs::rename(results.join("scenarios"), &other).unwrap();
    std::os::unix::fs::symlink(&other, results.join("scenarios")).unwrap();
    output(folder.path(), &["compare", "-C", "cubic", "-n", "100kB", "--out", "r"]);
    assert_eq!(files(&other), ["hystart+cubic.toml", "slow_start+reno.toml"]);
}

#[test]
fn beside_flows_that_answer_no_marks_nobody_starves_behind_marks() {
    let folder = empty();
    let arguments = ["-C", "paced_chirping", "--background", "cubic", "--runs", "1", "-n", "100kB", "--no-report"];
    let all: Vec<&str> = std::iter::once("compare").chain(arguments).collect();
    let assert = flowstart(folder.path()).args(&all).assert().success();
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(said.contains("paced_chirping+dctcp over drop_tail"), "{said}");
    let text = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    assert!(text.contains("drop_tail 1 BDP") && !text.contains("step_mark 1 ms"), "{text}");
}

#[test]
fn a_profile_in_steps_has_the_capacity_that_is_asked_for_in_the_mean() {
    let folder = empty();
    // 100 ms in each second carry everything, as on recorded links.
    let text = "about = \"mostly silent\"\n[path]\nrtt = \"20 ms\"\nbuffer = \"100 packets\"\ncapacity = { period = \"1 s\", \
                steps = [{ at = \"0 s\", rate = \"0 bit/s\" }, { at = \"900 ms\", rate = \"40 Mbit/s\" }] }\n";
    std::fs::write(folder.path().join("steps.toml"), text).expect("a file");
    let asked = ["compare", "--profile", "steps.toml", "--capacity", "20Mbit/s", "--rtt", "40ms"];
    let text = output(folder.path(), &[&asked[..], &["-C", "oracle+cubic", "-n", "30kB", "--json"]].concat());
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["parameters"]["fair_share"], "20 Mbit/s");
    assert_eq!(document["parameters"]["path"]["capacity"]["steps"][1]["rate"], "200 Mbit/s");
    assert_eq!(document["parameters"]["path"]["rtt"], "40 ms");
}

/// A path alone was "nobody sends anything".
#[test]
fn a_race_over_a_file_with_a_path_alone_is_one_over_that_path() {
    let folder = empty();
    std::fs::write(folder.path().join("path.toml"), "[path]\ncapacity = \"30 Mbit/s\"\nrtt = \"10 ms\"\n").unwrap();
    let race = ["-C", "cubic", "-n", "100kB", "--json"];
    let of = |path: &[&str]| {
        let text = output(folder.path(), &[&["compare"], path, &race].concat());
        let mut document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        document["contestants"].take()
    };
    assert_eq!(of(&["path.toml"]), of(&["--capacity", "30Mbit/s", "--rtt", "10ms"]));
    // Who has no flows of his own still needs some.
    assert!(refusal(folder.path(), &["run", "path.toml"]).contains("nobody sends anything"));
    std::fs::write(folder.path().join("path.toml"), "[path]\ncapacity = \"0 Mbit/s\"\nrtt = \"10 ms\"\n").unwrap();
    assert!(refusal(folder.path(), &["compare", "path.toml"]).contains("path.capacity"));
}

#[test]
fn keys_of_the_path_one_by_one_are_as_in_the_file_of_a_profile_and_go_before_options() {
    let folder = empty();
    let text = "about = \"own\"\n[path]\ncapacity = \"30 Mbit/s\"\nrtt = \"10 ms\"\nbuffer = \"1 BDP\"\njitter = \"1 ms\"\n\
                merged_acks = { within = \"2 ms\", most = 44 }\nmedium = { shaper = { burst = \"32 kB\" } }\n";
    std::fs::write(folder.path().join("own.toml"), text).unwrap();
    let of = |path: &[&str]| {
        let text = output(
            folder.path(),
            &[&["compare", "-C", "cubic", "-n", "100kB", "--runs", "2", "--json"], path].concat(),
        );
        let mut document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        document["parameters"]["path"].take()
    };
    let keys = [
        ["--with", "merged_acks = { within = \"2 ms\", most = 44 }"],
        ["--with", "jitter = \"1 ms\""],
        ["--with", "medium.shaper.burst = \"32 kB\""],
    ]
    .concat();
    assert_eq!(of(&[&["--capacity", "30Mbit/s", "--rtt", "10ms"], &keys[..]].concat()), of(&["--profile", "own.toml"]));
    let twice = ["compare", "--no-report", "-C", "cubic", "-n", "100kB", "--rtt", "30ms", "--with", "rtt = \"50 ms\""];
    let ran = flowstart(folder.path()).args(twice).assert().success();
    let ran = ran.get_output();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(said.trim(), "--with rtt counts, and not --rtt");
    assert!(String::from_utf8_lossy(&ran.stdout).starts_with("Flow starts over 100 Mbit/s and 50 ms"));
}

#[test]
fn a_wrong_key_of_the_path_is_one_sentence_with_the_nearest_wherever_it_is_given() {
    let folder = empty();
    for command in [&["compare"][..], &["benchmark"], &["frontier", "--quick"]] {
        let refused = refusal(folder.path(), &[command, &["--with", "jiter = \"2 ms\""]].concat());
        assert!(refused.contains("--with jiter") && refused.contains("did you mean `jitter`?"), "{refused}");
        assert_eq!(refused.trim().lines().count(), 1, "{refused}");
        let second = refusal(folder.path(), &[command, &["--with", "link = []"]].concat());
        assert!(second.contains("link is no key of a path"), "{second}");
    }
}

/// BBR begins its cycles at random.
#[test]
fn what_draws_random_numbers_is_repeated_as_often_as_was_asked() {
    let folder = empty();
    let race = output(folder.path(), &["compare", "-C", "bbr", "-n", "100kB", "--runs", "2", "--json", "--no-report"]);
    let race: serde_json::Value = serde_json::from_str(&race).expect("JSON");
    assert_eq!(race["contestants"][0]["runs"].as_array().map(Vec::len), Some(2));
    let scenario =
        "duration = \"1 s\"\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\nalgorithm = \"bbr\"\n";
    std::fs::write(folder.path().join("bbr.toml"), scenario).expect("written");
    let text = output(folder.path(), &["run", "bbr.toml", "--runs", "3"]);
    assert!(!text.contains("No randomness"), "{text}");
    let json = output(folder.path(), &["run", "bbr.toml", "--runs", "3", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["provenance"]["runs_finished"], 3);
}
