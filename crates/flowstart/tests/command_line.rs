//! The command line from outside: help, errors, files, exit statuses.

use std::path::Path;

use assert_cmd::Command;
use flowstart_congestion::{AvoidanceConfig, StartConfig};
use tempfile::TempDir;

#[path = "command_line/explain.rs"]
mod explain;
#[path = "command_line/frontier.rs"]
mod frontier;
#[path = "command_line/inputs.rs"]
mod inputs;
#[path = "command_line/kernel.rs"]
mod kernel;
#[path = "command_line/race.rs"]
mod race;
#[path = "command_line/run.rs"]
mod run;
#[cfg(unix)]
#[path = "command_line/unix.rs"]
mod unix;

/// The program in a folder of its own, so that it may write there.
fn flowstart(folder: &Path) -> Command {
    let mut command = Command::cargo_bin("flowstart").expect("the program is built");
    command.current_dir(folder).env("COLUMNS", "100").env_remove("NO_COLOR").env("LANG", "C.UTF-8");
    command
}

fn empty() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Standard output of a command that must succeed.
fn output(folder: &Path, arguments: &[&str]) -> String {
    let assert = flowstart(folder).args(arguments).assert().success();
    String::from_utf8(assert.get_output().stdout.clone()).expect("UTF-8")
}

/// The sentence of a command that must be refused with status 2 and without a word on standard
/// output.
fn refusal(folder: &Path, arguments: &[&str]) -> String {
    let assert = flowstart(folder).args(arguments).assert().code(2).stdout("");
    String::from_utf8(assert.get_output().stderr.clone()).expect("UTF-8")
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("readable")
        .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// A race that takes no time.
const SHORT: &[&str] = &["compare", "-C", "cubic,paced_chirping", "--size", "100kB", "--horizon", "300ms"];

fn short(more: &[&'static str]) -> Vec<&'static str> {
    SHORT.iter().chain(more).copied().collect()
}

#[test]
fn help_says_what_there_is_with_an_example() {
    let folder = empty();
    for command in [&["--help"][..], &["compare", "--help"], &["run", "--help"], &["scenario", "--help"]] {
        let name = command.join(" ").replace("--help", "help").replace(' ', "_");
        insta::assert_snapshot!(name, output(folder.path(), command));
    }
    for command in [
        "compare",
        "frontier",
        "benchmark",
        "run",
        "reproduce",
        "explain-chirp",
        "explain-quick-start",
        "serve",
        "fetch",
        "path",
        "list",
        "doctor",
        "docs",
        "completions",
    ] {
        let help = output(folder.path(), &[command, "--help"]);
        assert!(help.contains("Example"), "{command}: {help}");
    }
}

#[test]
fn a_command_that_fails_leaves_no_empty_folder_behind() {
    let folder = empty();
    std::fs::create_dir(folder.path().join("there")).expect("made");
    for out in ["new", "new/below/it", "there", "there/below"] {
        refusal(folder.path(), &["benchmark", "cubic", "--measured", "no-such-file.csv", "--out", out]);
        refusal(folder.path(), &["explain-chirp", "no-such-file.csv", "--out", out]);
        assert_eq!(files(folder.path()), ["there"], "{out}");
        assert!(files(&folder.path().join("there")).is_empty(), "{out}");
    }
    flowstart(folder.path()).args(["compare", "--quic", "-C", "quick_start+cubic"]).assert().failure();
    assert_eq!(files(folder.path()), ["there"]);
    // One that ends well keeps its folder.
    output(folder.path(), &short(&["--out", "new/below"]));
    assert!(files(&folder.path().join("new/below")).contains(&"report.html".to_owned()));
}

#[test]
fn who_is_there_before_is_named_be_it_flows_datagrams_or_arrivals() {
    let folder = empty();
    let text = r#"duration = "1 s"
[path]
capacity = "20 Mbit/s"
rtt = "20 ms"
buffer = "1 BDP"
[[flow]]
algorithm = "reno"
count = 2
[[udp]]
name = "call"
rate = "1 Mbit/s"
[[arrivals]]
load = "10 %"
sizes = { kind = "fixed", size = "30 kB" }
flow = { algorithm = "cubic" }
"#;
    std::fs::write(folder.path().join("others.toml"), text).expect("written");
    let said = output(folder.path(), &short(&["others.toml", "--runs", "1", "--no-report"]));
    let others =
        said.lines().find(|line| line.starts_with("Others there before: ")).unwrap_or_else(|| panic!("{said}"));
    for name in ["2 reno", "call (datagrams at 1 Mbit/s)", "transfers of cubic that arrive (a load of 0.1)"] {
        assert!(others.contains(name), "{others}");
    }
}

#[test]
fn bad_input_is_refused_in_one_sentence_with_status_2() {
    let folder = empty();
    let file = folder.path().join("plain");
    std::fs::write(&file, "").expect("written");
    let refused: Vec<String> = [
        &["--capacity", "-5 Mbit/s"][..],
        &["--capacity", "0 Mbit/s"],
        &["--capacity", "100"],
        &["--rtt", "0 ms"],
        &["--rtt", "-1 ms"],
        &["--rtt", "20 parsec"],
        &["--buffer", "0 packets"],
        &["--buffer", "0"],
        &["--buffer", "-1 BDP"],
        &["--mark", "1"],
        &["--size", "1e18 B"],
        &["--size", "1e18 GB"],
        &["--size", "0 B"],
        &["--flows", "0"],
        &["--flows", "-3"],
        &["--runs", "0"],
        &["--seed", "-1"],
        &["--threads", "0"],
        &["--runs", "three"],
        &["--phases", "5"],
        &["--flows", "2", "--phases", "1"],
        &["--flows", "2", "--phases", "three"],
        &["--flows", "2", "--phases", "5", "--real"],
        &["--flows", "2", "--phases", "5", "--worlds"],
        &["--runs", "99999999999999999999999"],
        &["--horizon", "1 ms"],
        &["--horizon", "1000000 h"],
        &["-C", "cubik"],
        &["-C", "paced_chriping+dctcp"],
        &["-C", "hystart+cubbic"],
        &["-C", "cubic/pacd"],
        &["-C", "cubic@drop_tail 0 packets"],
        &["-C", ""],
        &["-C", "cubic,cubic"],
        &["-C", "cubic,bbr,hystart"],
        &["-C", "cubic/linux", "--real"],
        &["-C", "cubic/ns3", "--real"],
        &["-C", "cubic/linux/ns3"],
        &["-C", "cubic,reno/paced", "--real"],
        &["-C", "cubic/ack1", "--real"],
        &["-C", "cubic/ack1", "--quic"],
        &["-C", "cubic/ecn", "--quic"],
        &["-C", "cubic", "--fidelity", "1ms"],
        &["-C", "cubic", "--worlds", "-o", "lead.svg"],
        &["-C", "cubic/linux", "--quic"],
        &["-C", "cubic/ns3", "--quic"],
        &["-C", "cubic/aware0", "--quic"],
        &["-C", "cubic", "--stack", "quinn"],
        &["-C", "cubic", "--background", "2 reno/linux", "--real"],
        &["-C", "cubic", "--background", "2 reno/ns3", "--real"],
        &["--background", "cubbic"],
        &["--background", "0 cubic"],
        &["--background", "cubic@drop_tail"],
        &["-o", "table.pdf"],
        &["-o", "nowhere/table.csv"],
        &["--out", "plain"],
        &["--out", "plain/below"],
        &["no-such-scenario.toml"],
    ]
    .into_iter()
    .map(|arguments| {
        let all: Vec<&str> = std::iter::once("compare").chain(arguments.iter().copied()).collect();
        let message = refusal(folder.path(), &all);
        assert_eq!(message.trim_end().lines().count(), 1, "{arguments:?}: {message}");
        // The lists of names grow; the sentence stays.
        let message = message
            .replace(&StartConfig::NAMES.join(", "), "ALL STARTS")
            .replace(&AvoidanceConfig::NAMES.join(", "), "ALL AVOIDANCES");
        format!("{}\n  {}", arguments.join(" "), message.trim_end())
    })
    .collect();
    insta::assert_snapshot!("refusals", refused.join("\n"));
    let queue = refusal(folder.path(), &["compare", "-C", "cubic@droptial"]);
    assert!(queue.contains("did you mean \"drop_tail\"?"), "{queue}");
    assert_eq!(files(folder.path()), ["plain"], "nothing is written");
}

#[test]
fn json_on_standard_output_is_one_document_and_nothing_else() {
    let folder = empty();
    let document: serde_json::Value = serde_json::from_str(&output(folder.path(), &short(&["--json"]))).expect("JSON");
    assert_eq!(document["complete"], true);
    assert_eq!(document["contestants"][1]["label"], "paced_chirping+dctcp");
    assert_eq!(document["contestants"][1]["exits"][0]["reason"], "pipe full");
    assert!(document["contestants"][0]["summary"]["completion_100kb_ms"]["mean"].as_f64().expect("a number") > 10.0);
    assert_eq!(files(folder.path()), Vec::<String>::new(), "no folder unless asked for");
}

#[test]
fn files_are_written_in_the_format_of_their_ending_and_nowhere_else() {
    let folder = empty();
    output(
        folder.path(),
        &short(&["-o", "a.csv", "-o", "a.md", "-o", "a.html", "-o", "a.json", "-o", "a.svg", "-o", "a.txt"]),
    );
    assert_eq!(files(folder.path()), ["a.csv", "a.html", "a.json", "a.md", "a.svg", "a.txt"]);
    let csv = std::fs::read_to_string(folder.path().join("a.csv")).expect("CSV");
    assert!(csv.starts_with("contestant,queue,exit_reason,exit_ms,"), "{csv}");
    assert_eq!(csv.lines().count(), 3);
}

#[test]
fn a_scenario_file_gives_the_path_and_the_flows_that_are_there() {
    let folder = empty();
    let scenario = folder.path().join("path.toml");
    std::fs::write(
        &scenario,
        "seed = 7\n[path]\ncapacity = \"20 Mbit/s\"\nrtt = \"30 ms\"\nqueue = \"fair_queuing\"\n[[flow]]\nalgorithm = \"hystart+cubic\"\n",
    )
    .expect("written");
    let text =
        output(folder.path(), &["compare", "path.toml", "-C", "reno", "--runs", "2", "--size", "100kB", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["seed"], 7);
    assert_eq!(document["parameters"]["path"]["capacity"], "20 Mbit/s");
    assert_eq!(document["parameters"]["fair_share"], "10 Mbit/s");
    assert!(document["contestants"][0]["summary"]["harm_percent"]["mean"].is_number(), "{document:#}");
    let overridden =
        output(folder.path(), &["compare", "path.toml", "-C", "reno", "--rtt", "10ms", "--runs", "1", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&overridden).expect("JSON");
    assert_eq!(document["parameters"]["path"]["rtt"], "10 ms");
}

#[test]
fn scenarios_are_checked_shown_and_described() {
    let folder = empty();
    let good = "[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\nsize = \"100 kB\"\n";
    std::fs::write(folder.path().join("good.toml"), good).expect("written");
    std::fs::write(folder.path().join("bad.toml"), good.replace("rtt", "rrt")).expect("written");
    assert!(output(folder.path(), &["scenario", "lint", "good.toml"]).contains("good.toml: ok"));
    let lint = flowstart(folder.path()).args(["scenario", "lint", "good.toml", "bad.toml"]).assert().code(1);
    let complaint = String::from_utf8_lossy(&lint.get_output().stderr).into_owned();
    assert!(complaint.contains("bad.toml:3:1") && complaint.contains("did you mean `rtt`?"), "{complaint}");
    // The one name that means another thing in a race.
    let bare = good.replace("size", "algorithm = \"cubic\"\nsize");
    std::fs::write(folder.path().join("bare.toml"), bare).expect("written");
    let lint = flowstart(folder.path()).args(["scenario", "lint", "bare.toml"]).assert().success();
    let told = String::from_utf8_lossy(&lint.get_output().stderr).into_owned();
    assert!(told.contains("slow_start+cubic") && told.contains("hystart+cubic"), "{told}");
    let shown = output(folder.path(), &["scenario", "show", "good.toml"]);
    std::fs::write(folder.path().join("shown.toml"), &shown).expect("written");
    assert_eq!(output(folder.path(), &["scenario", "show", "shown.toml"]), shown);
    let schema: serde_json::Value =
        serde_json::from_str(&output(folder.path(), &["scenario", "schema"])).expect("JSON");
    assert!(schema["properties"]["path"].is_object());
}

#[test]
fn parquet_is_written_if_the_program_was_built_with_it_and_else_refused_with_the_way_to_get_it() {
    let folder = empty();
    let scenario = "duration = \"1 s\"\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\n";
    std::fs::write(folder.path().join("short.toml"), scenario).expect("written");
    let arguments = ["run", "short.toml", "--out", "results", "--parquet"];
    if cfg!(feature = "parquet") {
        output(folder.path(), &arguments);
        let written = files(&folder.path().join("results"));
        assert!(written.iter().any(|file| file == "flows.parquet"), "{written:?}");
    } else {
        let said = refusal(folder.path(), &arguments);
        assert!(said.contains("--features parquet"), "{said}");
        std::fs::write(folder.path().join("delays.parquet"), "").expect("written");
        let said = refusal(folder.path(), &["benchmark", "--measured", "delays.parquet"]);
        assert!(said.contains("--features parquet"), "{said}");
    }
}

#[test]
fn the_model_of_quick_start_is_a_table_a_picture_and_a_document() {
    let folder = empty();
    let page = ["explain-quick-start", "--initial-window", "3", "--rtt", "200ms", "--size", "100kB,1MB"];
    let text = output(folder.path(), &[&page[..], &["--markdown", "--out", "gain.svg"]].concat());
    assert!(text.contains("2.87") && text.contains("1.79"), "{text}");
    assert!(std::fs::read_to_string(folder.path().join("gain.svg")).expect("a picture").contains("RTT 200 ms"));
    let document: serde_json::Value =
        serde_json::from_str(&output(folder.path(), &[&page[..], &["--json"]].concat())).expect("JSON");
    assert_eq!(document["rows"].as_array().map(Vec::len), Some(2));
    // 68 full packets at the grant, and one of 760 bytes at the capacity.
    assert!(document["rows"][0]["quick_start_s"].as_f64().is_some_and(|seconds| (seconds - 0.359_983).abs() < 1e-6));
    let refused = refusal(folder.path(), &["explain-quick-start", "--grant", "0"]);
    assert!(refused.contains("--grant"), "{refused}");
    // Transfers would be faster than the link.
    let picture = refusal(folder.path(), &["explain-quick-start", "-o", "gain.png"]);
    assert!(picture.contains("--output: the picture is an .svg file"), "{picture}");
    let more = ["explain-quick-start", "--capacity", "10Mbit/s", "--grant", "10.01Mbit/s"];
    assert!(refusal(folder.path(), &more).contains("cannot grant more"));
    output(folder.path(), &["explain-quick-start", "--capacity", "10Mbit/s", "--grant", "10Mbit/s"]);
}

#[test]
fn generated_pages_are_up_to_date_after_docs_and_stale_after_a_change() {
    let folder = empty();
    output(folder.path(), &["docs", "pages"]);
    output(folder.path(), &["docs", "pages", "--check"]);
    std::fs::write(folder.path().join("pages/measures.md"), "changed").expect("written");
    let check = flowstart(folder.path()).args(["docs", "pages", "--check"]).assert().code(1);
    assert!(String::from_utf8_lossy(&check.get_output().stderr).contains("measures.md not up to date"));
}

#[test]
fn docs_replaces_no_page_that_it_did_not_write() {
    let folder = empty();
    let pages = folder.path().join("docs");
    std::fs::create_dir(&pages).expect("made");
    // The last that is written, and the first picture.
    for (name, text) in
        [("command-line.md", "# How to call my program\n"), ("pictures/chirp-departures.svg", "<svg/>\n")]
    {
        std::fs::create_dir_all(pages.join(name).parent().expect("a folder")).expect("made");
        std::fs::write(pages.join(name), text).expect("written");
        let said = refusal(folder.path(), &["docs"]);
        assert!(said.starts_with(&format!("error: docs/{name} was not written by `flowstart docs`")), "{said}");
        assert_eq!(std::fs::read_to_string(pages.join(name)).expect("there"), text);
        assert!(!pages.join("names.md").exists(), "nothing is half written");
        std::fs::remove_file(pages.join(name)).expect("removed");
    }
}

/// Run `flowstart docs` in the repository's root if this fails.
#[test]
fn the_repositorys_generated_pages_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    output(&root, &["docs", "--check"]);
}

#[test]
fn lists_and_the_doctor_speak_json() {
    let folder = empty();
    let list: serde_json::Value = serde_json::from_str(&output(folder.path(), &["list", "--json"])).expect("JSON");
    assert!(list["flow_starts"].as_array().expect("a list").len() >= 4);
    let doctor: serde_json::Value = serde_json::from_str(&output(folder.path(), &["doctor", "--json"])).expect("JSON");
    assert_eq!(doctor["findings"][0]["what"], "cores");
    assert!(output(folder.path(), &["completions", "bash"]).contains("complete"));
}

#[test]
fn every_command_with_results_writes_a_page_a_text_and_a_named_figure() {
    let folder = empty();
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/fair-queuing.toml");
    let scenario = scenario.to_string_lossy().into_owned();
    let run = ["run", &scenario, "-o", "x.html", "-o", "x.md", "-o", "delay.svg", "--figure", "delay"];
    output(folder.path(), &run);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("written");
    let page = read("x.html");
    for figure in ["<h2>Delivered", "<h2>Queueing delay", "<h3>Congestion window"] {
        assert!(page.contains(figure), "{figure}");
    }
    assert!(page.contains("its start ended after"), "what came out, in words");
    assert!(read("x.md").contains("| flow |"), "{}", read("x.md"));
    // The sentence that stands above the first picture of the page is not lost without pictures.
    let sentences = |page: &str| page.matches(" of goodput").count();
    assert!(sentences(&read("x.md")) >= 1, "{}", read("x.md"));
    assert_eq!(sentences(&read("x.md")), sentences(&read("x.html")), "{}", read("x.md"));
    assert!(read("delay.svg").contains("Queueing delay"));
    let race = short(&["-o", "race.svg", "--figure", "window", "-o", "race.md"]);
    output(folder.path(), &race);
    assert!(read("race.svg").contains("Congestion window"));
    assert!(read("race.md").contains("Fastest: "), "{}", read("race.md"));
    for nothing in [&["--figure", "window"][..], &["--figure", "window", "-o", "race.md"]] {
        let wrong = refusal(folder.path(), &short(nothing));
        assert!(wrong.contains("--figure window says what .svg files show"), "{wrong}");
    }
    let wrong = refusal(folder.path(), &short(&["-o", "race.svg", "--figure", "colour"]));
    assert!(wrong.contains("there is no figure \"colour\"; there are: Delivered"), "{wrong}");
    let two = refusal(folder.path(), &["run", &scenario, &scenario, "-o", "x.html"]);
    assert!(two.contains("give one file"), "{two}");
    let unknown = refusal(folder.path(), &["run", &scenario, "-o", "x.pdf"]);
    assert!(unknown.contains("known are .html, .md, .svg"), "{unknown}");
}

#[test]
fn a_run_without_samples_has_a_page_without_pictures() {
    let folder = empty();
    let path = "duration = \"1 s\"\n[path]\ncapacity = \"5 Mbit/s\"\nrtt = \"20 ms\"\n";
    for rest in ["[output]\nsample = \"0 s\"\n[[flow]]\n", "[[flow]]\nstart = \"5 s\"\n"] {
        std::fs::write(folder.path().join("mine.toml"), format!("{path}{rest}")).expect("written");
        output(folder.path(), &["run", "mine.toml", "-o", "x.html", "-o", "x.md"]);
        let page = std::fs::read_to_string(folder.path().join("x.html")).expect("written");
        assert!(page.contains("utilisation") && !page.contains("<h2>Delivered"), "{rest}");
        for figure in [&[][..], &["--figure", "delay"]] {
            let arguments = [&["run", "mine.toml", "-o", "x.svg"], figure].concat();
            let assert = flowstart(folder.path()).args(arguments).assert().code(2);
            let said = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
            let (told, none) = (said(&assert.get_output().stdout), said(&assert.get_output().stderr));
            assert!(none.contains("there is no figure in this report"), "{none}");
            assert!(told.contains("hystart+cubic"), "what was found is told all the same: {told}");
        }
    }
}

#[test]
fn series_count_time_in_round_trips_and_in_seconds() {
    let folder = empty();
    output(folder.path(), &short(&[]));
    let series = std::fs::read_to_string(folder.path().join("flowstart-report/series.csv")).expect("written");
    let mut lines = series.lines();
    assert_eq!(lines.next(), Some("contestant,series,time_rtts,time_s,value,low,high"));
    let line = lines.find(|line| line.starts_with("hystart+cubic,delivered_mb,1,")).expect("a point at one RTT");
    assert_eq!(line.split(',').nth(3), Some("0.020120000"), "{line}");
}

#[test]
fn contestants_and_profiles_are_completed() {
    let script = output(empty().path(), &["completions", "bash"]);
    let word = |name: &str| script.split([' ', '"']).any(|word| word == name);
    for name in ["hystart++", "paced_chirping+dctcp", "bbr", "starlink"] {
        assert!(word(name), "{name}");
    }
    for name in StartConfig::NAMES.iter().map(|start| format!("{start}+cubic")) {
        assert!(word(&name), "{name}");
    }
    for name in AvoidanceConfig::NAMES.iter().map(|avoidance| format!("slow_start+{avoidance}")) {
        assert!(word(&name), "{name}");
    }
}

#[test]
fn there_is_a_manual_page_for_every_command() {
    let folder = empty();
    assert!(output(folder.path(), &["man"]).contains(".TH flowstart 1"));
    output(folder.path(), &["man", "--dir", "man"]);
    let pages = files(&folder.path().join("man"));
    for page in ["flowstart.1", "flowstart-compare.1", "flowstart-kernel-load.1"] {
        assert!(pages.contains(&page.to_owned()), "{pages:?}");
    }
}

#[test]
fn what_is_printed_for_a_new_algorithm_can_be_typed_and_a_long_name_is_told_from_a_wrong_one() {
    let folder = empty();
    let text = output(folder.path(), &["new-algorithm", "mine", "--into", "my starts"]);
    assert!(text.contains("\ncd 'my starts/mine' && cargo run "), "{text}");
    let said = refusal(folder.path(), &["new-algorithm", &"a".repeat(65)]);
    assert!(said.contains("has 65 letters; the name of a crate and a start has at most 64"), "{said}");
}

/// It ran for most of an hour, to leave every run out.
#[cfg(target_os = "linux")]
#[test]
fn a_comparison_that_would_leave_every_run_out_is_refused() {
    let said = refusal(empty().path(), &["fidelity", "--fidelity", "0"]);
    assert!(said.contains("--fidelity: no packet is 0 s late"), "{said}");
}
