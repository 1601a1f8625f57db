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
fn a_key_said_twice_and_a_second_path_are_refused_and_values_are_told_with_their_option() {
    let folder = empty();
    std::fs::write(folder.path().join("a.toml"), "[path]\ncapacity = \"30 Mbit/s\"\nrtt = \"10 ms\"\n").unwrap();
    for (command, file) in [("compare", &["a.toml"][..]), ("benchmark", &["--scenario", "a.toml"])] {
        let said = |more: &[&str]| refusal(folder.path(), &[&[command], more].concat());
        let twice = said(&["--with", "jitter = \"1 ms\"", "--with", "jitter = \"2 ms\""]);
        assert!(twice.contains("--with jitter = \"2 ms\" would take the place of jitter = \"1 ms\""), "{twice}");
        let paths = said(&[file, &["--profile", "wifi"]].concat());
        assert!(paths.contains("--profile wifi and a.toml each bring a path; leave one of them out"), "{paths}");
        let steps = said(&["--with", "capacity = [{ at = \"1 s\", rate = \"3 Mbit/s\" }]"]);
        assert!(steps.contains("--with capacity = [{") && steps.contains("must be at time 0"), "{steps}");
        let outage =
            said(&["--with", "medium.handover = { every = \"10 ms\", spread = \"1 ms\", outage = \"50 ms\" }"]);
        assert!(outage.starts_with("error: --with medium.handover = {") && !outage.contains("cubic"), "{outage}");
    }
    let twice = ["frontier", "--quick", "--with", "jitter = \"1 ms\"", "--with", "jitter = \"1 ms\""];
    assert!(refusal(folder.path(), &twice).contains("--with jitter = "), "of cells, too");
}

/// It said "complete" beside tables of two races.
#[test]
fn a_race_whose_files_could_not_all_be_written_is_not_said_to_be_complete() {
    let folder = empty();
    let out = folder.path().join("race");
    let race = |who: &'static str| short(&["--out", "race", "-C", who])[3..].to_vec();
    let race = |who| [&["compare"][..], &race(who)].concat();
    let complete = || {
        let result = std::fs::read(out.join("result.json")).expect("the result");
        serde_json::from_slice::<serde_json::Value>(&result).expect("JSON")["complete"].as_bool()
    };
    output(folder.path(), &race("cubic"));
    assert_eq!(complete(), Some(true));
    std::fs::remove_file(out.join("runs.csv")).unwrap();
    std::fs::create_dir(out.join("runs.csv")).unwrap();
    let assert = flowstart(folder.path()).args(race("reno")).assert().code(2);
    let said = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let (told, wrong) = (said(&assert.get_output().stdout), said(&assert.get_output().stderr));
    assert!(wrong.contains("runs.csv"), "{wrong}");
    assert!(told.contains("slow_start+reno") && !told.contains("report: "), "what was found is told: {told}");
    assert_eq!(complete(), Some(false));
    std::fs::remove_dir(out.join("runs.csv")).unwrap();
    output(folder.path(), &race("reno"));
    assert_eq!(complete(), Some(true));
    assert_eq!(files(&out.join("scenarios")), ["slow_start+reno.toml"]);
}

#[test]
fn keys_of_a_file_that_a_race_does_not_heed_are_told() {
    let folder = empty();
    let path = "[path]\ncapacity = \"30 Mbit/s\"\nrtt = \"10 ms\"\n";
    let flows = "[[flow]]\nsize = \"9 kB\"\n[[flow]]\nsize = \"9 kB\"\n";
    let own = "duration = \"5 s\"\nphases = \"1 ms\"\nstop_when_complete = true\noutput = { sample = \"7 ms\" }\n";
    std::fs::write(folder.path().join("plain.toml"), format!("seed = 3\n{path}{flows}")).unwrap();
    std::fs::write(folder.path().join("own.toml"), format!("{own}{path}{flows}")).unwrap();
    let told = |file: &str| {
        let race = ["compare", file, "-C", "cubic", "-n", "9kB", "--runs", "1", "--no-report"];
        let ran = flowstart(folder.path()).args(race).assert().success();
        String::from_utf8_lossy(&ran.get_output().stderr).into_owned()
    };
    assert_eq!(told("plain.toml"), "");
    let said = told("own.toml");
    assert_eq!(
        said.trim_end(),
        "own.toml: duration, stop_when_complete, phases, [output] are for `flowstart run`, and no race heeds them"
    );
    std::fs::write(folder.path().join("runs.toml"), format!("runs = 3\n{own}{path}{flows}")).unwrap();
    let few = ["--samples", "100", "--lasting", "5s", "--peers", "0", "--step", "10Mbit/s", "--no-report"];
    let ran = flowstart(folder.path()).args(["benchmark", "cubic", "--scenario", "runs.toml"]).args(few).assert();
    let said = String::from_utf8_lossy(&ran.success().get_output().stderr).into_owned();
    let keys = "runs.toml: duration, stop_when_complete, phases, [output], runs are for `flowstart run`";
    assert_eq!(said.lines().next(), Some(&*format!("{keys}, and no benchmark heeds them")), "{said}");
    // Who is not simulated as ns-3 has it is not said to be.
    std::fs::write(folder.path().join("ns3.toml"), format!("dialect = \"ns3\"\n{path}{flows}")).unwrap();
    let benchmark = |who: &str| {
        let ran = flowstart(folder.path()).args(["benchmark", who, "--scenario", "ns3.toml"]).args(few).assert();
        String::from_utf8_lossy(&ran.success().get_output().stderr).into_owned()
    };
    let said = benchmark("cubic");
    assert!(said.starts_with("ns3.toml: dialect (of the racers) is for `flowstart run`"), "{said}");
    let said = benchmark("cubic/ns3");
    assert!(!said.contains("dialect"), "{said}");
}

/// Racers had other hosts than those who were there before.
#[test]
fn racers_have_the_dialect_of_a_file_unless_they_name_another() {
    let folder = empty();
    let path = "[path]\ncapacity = \"30 Mbit/s\"\nrtt = \"10 ms\"\n[[flow]]\nsize = \"9 kB\"\n";
    for (dialect, other) in [("linux", "ns3"), ("ns3", "linux")] {
        let file = format!("{dialect}.toml");
        std::fs::write(folder.path().join(&file), format!("dialect = \"{dialect}\"\n{path}")).unwrap();
        let race =
            |racers: &str| ["compare", &file, "-C", racers, "-n", "9kB", "--runs", "1", "--json"].map(str::to_owned);
        let ran =
            flowstart(folder.path()).args(race(&format!("cubic,reno/{dialect},cubic/{other}"))).assert().success();
        let ran = ran.get_output();
        assert_eq!(String::from_utf8_lossy(&ran.stderr), "");
        let document: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("JSON");
        let label = |place: usize| document["contestants"][place]["label"].as_str().unwrap_or_default().to_owned();
        let named = ["hystart+cubic", "slow_start+reno"].map(|name| format!("{name}/{dialect}"));
        assert_eq!([label(0), label(1)], named);
        assert_eq!(label(2), format!("hystart+cubic/{other}"));
        let twice = race(&format!("cubic,cubic/{dialect}"));
        let twice = refusal(folder.path(), &twice.each_ref().map(String::as_str));
        let all = format!("dialect = \"{dialect}\"` all have /{dialect}");
        assert!(twice.contains("is among the contestants twice") && twice.contains(&all), "{twice}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn where_nothing_can_be_created_it_is_said_so() {
    let folder = empty();
    std::fs::write(folder.path().join("a.toml"), "[path]\ncapacity = \"3 Mbit/s\"\nrtt = \"9 ms\"\n[[flow]]\n")
        .unwrap();
    for command in [&["compare", "-C", "cubic"][..], &["run", "a.toml"], &["benchmark"], &["frontier", "--quick"]] {
        let said = |more: &[&str]| refusal(folder.path(), &[command, more].concat());
        let out = said(&["--out", "/proc/x/y"]);
        assert!(out.contains("cannot create /proc/x/y: nothing can be created in /proc"), "{command:?}: {out}");
        let report = said(&["-o", "/proc/report.html"]);
        assert!(report.contains("cannot write /proc/report.html: nothing can be created in /proc"), "{report}");
        let report = said(&["-o", "/proc/x/report.html"]);
        assert!(report.contains("cannot write /proc/x/report.html: there is no folder /proc/x"), "{report}");
        for message in [out, report] {
            assert_eq!(message.trim_end().lines().count(), 1, "{message}");
        }
    }
    for command in [&["compare", "-C", "cubic"][..], &["run", "a.toml"]] {
        let said = refusal(folder.path(), &[command, &["--pcap", "/proc/x"]].concat());
        assert!(said.contains("cannot create /proc/x: nothing can be created in /proc"), "{said}");
    }
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

/// It was said that one run is enough, of flows that are chaotic.
#[test]
fn several_newcomers_race_over_phases_of_the_later_starts() {
    let folder = empty();
    let race = |more: &[&'static str]| [&["compare", "-C", "cubic", "-n", "9kB", "--no-report"], more].concat();
    let once = output(folder.path(), &race(&["--flows", "2", "--runs", "5"]));
    assert!(once.contains("depends on the phases of their starts: --phases 20 has means over them."), "{once}");
    let text = output(folder.path(), &race(&["--flows", "2", "--phases", "5"]));
    let means = "Means of 5 runs, ± 95 % interval; all newcomers but the first start later, by a random part of 20 ms.";
    assert!(text.contains(means), "{text}");
    // The file's own flows have phases, too.
    let udp = "[[udp]]\nrate = \"1 Mbit/s\"\n".repeat(2);
    let scenario = |key: &str| format!("{key}[path]\ncapacity = \"30 Mbit/s\"\nrtt = \"10 ms\"\n{udp}");
    std::fs::write(folder.path().join("said.toml"), scenario("phases = \"7 ms\"\n")).unwrap();
    std::fs::write(folder.path().join("open.toml"), scenario("")).unwrap();
    for (file, phases) in [("said.toml", "7 ms"), ("open.toml", "10 ms")] {
        let document = output(folder.path(), &race(&[file, "--flows", "2", "--phases", "2", "--json"]));
        let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
        assert_eq!(document["parameters"]["phases"], phases);
        assert_eq!(document["contestants"][0]["runs"].as_array().map(Vec::len), Some(2));
    }
}

/// They were taken without a word.
#[test]
fn what_no_queue_of_a_race_heeds_is_told() {
    let folder = empty();
    let said = |more: &[&'static str]| {
        let arguments = [&["compare", "--no-report", "-n", "100kB", "-t", "200ms"], more].concat();
        let assert = flowstart(folder.path()).args(arguments).assert().success();
        String::from_utf8(assert.get_output().stderr.clone()).expect("UTF-8")
    };
    let mark = "--mark counts for nothing: no contestant's queue marks above a threshold that it leaves open";
    assert!(said(&["--mark", "1ms", "-C", "cubic"]).contains(mark));
    assert!(said(&["--mark", "1ms", "-C", "dctcp@step_mark 2ms"]).contains(mark));
    assert_eq!(said(&["--mark", "1ms", "-C", "dctcp@step_mark,cubic"]), "");
    assert_eq!(said(&["--mark", "1packet", "-C", "dctcp@step_mark"]), "");
    let buffer = "--buffer counts for nothing: all contestants' queues have limits of their own";
    assert!(said(&["--buffer", "3packets", "-C", "cubic@fq_codel"]).contains(buffer));
    assert!(said(&["--buffer", "3packets", "-C", "cubic@drop_tail 1BDP"]).contains(buffer));
    assert_eq!(said(&["--buffer", "3packets", "-C", "cubic@fq_codel,cubic"]), "");
    assert_eq!(said(&["--buffer", "1packet", "-C", "cubic"]), "");
}

/// A title was put into Markdown as it was: its first line ended the heading, and tags were tags.
#[test]
fn a_title_is_one_line_of_plain_text_in_markdown() {
    let folder = empty();
    let title = "a <script>alert(1)</script>\n# b | c";
    output(folder.path(), &short(&["-o", "a.md", "--title", title]));
    let text = std::fs::read_to_string(folder.path().join("a.md")).expect("Markdown");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "# a \\<script\\>alert(1)\\</script\\> # b \\| c");
    assert!(lines[2].starts_with("    flowstart compare ") && lines[3].is_empty(), "{text}");
}

#[test]
fn a_figure_may_be_chosen_for_a_file_with_a_capital_ending() {
    let folder = empty();
    output(folder.path(), &short(&["-o", "a.SVG", "--figure", "delay"]));
    let text = std::fs::read_to_string(folder.path().join("a.SVG")).expect("a picture");
    assert!(text.contains("<title>Queueing delay</title>"), "{text}");
}

#[test]
fn a_flow_that_starts_after_the_race_is_told_and_short_times_are_not_nothing() {
    let folder = empty();
    let text = "duration = \"60 s\"\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\nstart = \"40 s\"\n";
    std::fs::write(folder.path().join("late.toml"), text).expect("a scenario");
    let arguments =
        ["compare", "late.toml", "-C", "reno", "-n", "10kB", "--runs", "1", "--horizon", "300ms", "--no-report"];
    let assert = flowstart(folder.path()).args(arguments).assert().success();
    let told = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(told.contains("late.toml: flow[0].start: nobody meets who starts at 40 s"), "{told}");
    let arguments = ["compare", "-C", "cubic", "--profile", "datacentre", "-n", "10kB,100kB", "--no-report"];
    let text = output(folder.path(), &arguments);
    let takes = text.lines().find(|line| line.starts_with("Fastest: ")).expect("an answer");
    assert!(takes.contains(" µs") && !takes.contains(" 0 ms"), "{takes}");
}
