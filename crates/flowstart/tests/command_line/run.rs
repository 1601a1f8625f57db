//! What `flowstart run` shows of a scenario.

use std::fs;

use super::*;

const BESIDE: &str = r#"
duration = "1 s"
[path]
capacity = "10 Mbit/s"
rtt = "20 ms"
[[flow]]
algorithm = "hystart_plus_plus+cubic"
[[udp]]
rate = "1 Mbit/s"
packet = "500 B"
"#;

#[test]
fn a_page_is_named_beside_the_tables_and_its_names_may_be_broken() {
    let folder = empty();
    fs::write(folder.path().join("u.toml"), BESIDE).unwrap();
    let run = flowstart(folder.path()).args(["run", "u.toml", "-o", "u.html"]).assert().success();
    let (out, err) = (&run.get_output().stdout, &run.get_output().stderr);
    assert_eq!(String::from_utf8_lossy(err), "report: u.html\n", "tables can be piped on");
    let out = String::from_utf8_lossy(out);
    let row = |name: &str| out.lines().find(|line| line.starts_with(name)).unwrap().split_whitespace().nth(2).unwrap();
    assert_eq!(row("udp"), "–", "datagrams have no start that could end");
    assert_ne!(row("hystart"), "–");
    let page = fs::read_to_string(folder.path().join("u.html")).unwrap();
    assert!(page.contains("hystart_<wbr>plus_<wbr>plus+<wbr>cubic"), "a name fits a phone's column");
}

#[test]
fn run_prints_a_summary_and_writes_tables() {
    let folder = empty();
    let scenario =
        "runs = 3\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\nloss = \"1 %\"\n[[flow]]\nsize = \"1 MB\"\n";
    std::fs::write(folder.path().join("lossy.toml"), scenario).expect("written");
    let text = output(folder.path(), &["run", "lossy.toml", "--out", "results", "--pcap", "packets"]);
    assert!(text.contains("hystart+cubic") && text.contains("±"), "{text}");
    let written = files(&folder.path().join("results"));
    for name in ["effective.toml", "flows.csv", "provenance.json", "results.json", "runs.csv"] {
        assert!(written.iter().any(|file| file == name), "{name} is missing: {written:?}");
    }
    assert_eq!(files(&folder.path().join("packets")), ["lossy-bottleneck.pcapng"]);
    let twice = [1, 2]
        .map(|threads| output(folder.path(), &["run", "lossy.toml", "--json", "--threads", &threads.to_string()]));
    assert_eq!(twice[0], twice[1]);
}

#[test]
fn a_report_may_lie_in_the_folder_of_the_results_and_a_refused_one_leaves_none() {
    let folder = empty();
    fs::write(folder.path().join("u.toml"), BESIDE).unwrap();
    let commands: [&[&str]; 3] = [
        &["run", "u.toml"],
        &["benchmark", "--samples", "100", "--lasting", "5s", "--peers", "0", "--step", "50Mbit/s"],
        &["frontier", "--quick", "--capacity", "10Mbit/s", "--rtt", "10ms", "--load", "idle", "--runs", "1"],
    ];
    for command in commands {
        let written = |report| [command, &["--out", "new", "-o", report]].concat();
        flowstart(folder.path()).args(written("elsewhere/report.md")).assert().code(2);
        assert!(!folder.path().join("new").exists(), "{command:?}");
        flowstart(folder.path()).args(written("new/report.md")).assert().success();
        assert!(folder.path().join("new/report.md").is_file(), "{command:?}");
        fs::remove_dir_all(folder.path().join("new")).unwrap();
    }
}

#[test]
fn a_run_with_users_of_the_web_has_a_table_of_their_pages() {
    let folder = empty();
    let scenario = "duration = \"60 s\"\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[web]]\nusers = 3\nflow = { name = \"user\" }\n";
    std::fs::write(folder.path().join("web.toml"), scenario).expect("written");
    let text = output(folder.path(), &["run", "web.toml", "--out", "results"]);
    assert!(text.contains("Pages"), "{text}");
    let pages = std::fs::read_to_string(folder.path().join("results/pages.csv")).expect("pages");
    let mut lines = pages.lines().skip_while(|line| line.starts_with('#'));
    assert_eq!(lines.next(), Some("run,name,user,page,wished_s,page_time_s,files,bytes"));
    let users: std::collections::BTreeSet<&str> = lines.filter_map(|line| line.split(',').nth(2)).collect();
    assert_eq!(users.into_iter().collect::<Vec<_>>(), ["0", "1", "2"]);
}

#[test]
fn captures_stay_in_their_folder_whatever_links_are_called() {
    let folder = empty();
    let link = |name: &str| format!("[[link]]\nname = \"{name}\"\ncapacity = \"10 Mbit/s\"\ndelay = \"10 ms\"\n");
    let names = ["/../../../victim", "a/b", "a%2Fb"];
    let scenario = format!(
        "duration = \"1 s\"\n{}[[flow]]\nforward = [\"a/b\", \"/../../../victim\"]\nreverse = [\"a%2Fb\"]\n",
        names.map(link).concat()
    );
    fs::write(folder.path().join("x.toml"), scenario).unwrap();
    fs::write(folder.path().join("victim.pcapng"), "whole").unwrap();
    output(folder.path(), &["run", "x.toml", "--pcap", "in/pc"]);
    assert_eq!(fs::read_to_string(folder.path().join("victim.pcapng")).unwrap(), "whole");
    assert_eq!(
        files(&folder.path().join("in/pc")),
        ["x-%2F..%2F..%2F..%2Fvictim.pcapng", "x-a%252Fb.pcapng", "x-a%2Fb.pcapng"]
    );
}

#[test]
fn a_second_run_leaves_no_table_of_the_first() {
    let folder = empty();
    let path = "duration = \"1 s\"\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\n";
    fs::write(folder.path().join("first.toml"), format!("{path}[output]\npackets = true\n")).unwrap();
    fs::write(folder.path().join("second.toml"), path).unwrap();
    let packets = || fs::read_to_string(folder.path().join("r/packets.csv")).unwrap().lines().count();
    output(folder.path(), &["run", "first.toml", "--out", "r"]);
    assert!(packets() > 100);
    output(folder.path(), &["run", "second.toml", "--out", "r"]);
    assert_eq!(packets(), 1, "a header alone");
    // Compressed or not, there is one table of packets.
    output(folder.path(), &["run", "first.toml", "--out", "r", "--gzip"]);
    assert!(folder.path().join("r/packets.csv.gz").exists() && !folder.path().join("r/packets.csv").exists());
    output(folder.path(), &["run", "second.toml", "--out", "r"]);
    assert_eq!((packets(), folder.path().join("r/packets.csv.gz").exists()), (1, false));
}

#[test]
fn tables_without_rows_have_their_header() {
    let folder = empty();
    let scenario = "duration = \"2 s\"\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\naccess = \"1 bit/s\"\n\
                    [[flow]]\n[output]\npackets = true\n";
    fs::write(folder.path().join("slow.toml"), scenario).unwrap();
    output(folder.path(), &["run", "slow.toml", "--out", "r"]);
    let packets = fs::read_to_string(folder.path().join("r/packets.csv")).unwrap();
    assert!(packets.starts_with("run,flow,number,") && packets.lines().count() == 1, "{packets}");
}

#[test]
fn a_start_that_knows_nothing_outside_races_is_said_to() {
    let folder = empty();
    let scenario = |flow: &str| {
        let text = format!("duration = \"1 s\"\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\n{flow}\n");
        fs::write(folder.path().join("x.toml"), text).unwrap();
        let run = flowstart(folder.path()).args(["run", "x.toml"]).assert().success();
        String::from_utf8_lossy(&run.get_output().stderr).into_owned()
    };
    let said = scenario("algorithm = \"oracle+cubic\"");
    assert!(said.contains("the start oracle knows nothing but its steps"), "{said}");
    let steps = "start = { name = \"oracle\", steps = [{ at = \"0 s\", rate = \"10 Mbit/s\" }] }\navoidance = { name = \"cubic\" }";
    assert_eq!(scenario(&steps.replace("start = {", "flow_start = {")), "");
}

#[test]
fn what_has_no_influence_on_a_run_is_told_by_it_and_by_lint() {
    let folder = empty();
    let path = "duration = \"1 s\"\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n";
    fs::write(folder.path().join("x.toml"), format!("{path}mark = \"1 %\"\n[[flow]]\n[[flow]]\nstart = \"2 s\"\n"))
        .unwrap();
    for command in [&["run", "x.toml"][..], &["scenario", "lint", "x.toml"]] {
        let ran = flowstart(folder.path()).args(command).assert().success();
        let said = String::from_utf8_lossy(&ran.get_output().stderr).into_owned();
        let lines = [
            "x.toml: flow[1].start: nobody starts at 2 s, since the run is over after 1 s",
            "x.toml: path.mark: nothing is marked, since no flow has ECN",
        ];
        assert_eq!(said.lines().collect::<Vec<_>>(), lines, "{command:?}");
    }
}

/// The system ended it.
#[test]
fn a_run_that_does_not_fit_into_memory_is_refused_in_one_sentence() {
    let folder = empty();
    let path = "[path]\ncapacity = \"1000000 Gbit/s\"\nrtt = \"200 ms\"\n[[flow]]\n";
    fs::write(folder.path().join("x.toml"), path).unwrap();
    let said = refusal(folder.path(), &["run", "x.toml"]);
    let sentence = said.lines().next().unwrap_or_default();
    assert!(sentence.contains("x.toml:2:12: path.capacity: needs about "), "{said}");
    assert!(sentence.contains("packets on their way take most of it: less capacity"), "{said}");
}

#[test]
fn a_title_cannot_move_the_cursor_of_a_terminal() {
    let folder = empty();
    let text = "title = \"a\\u001b]0;b\\u0007c\"\nduration = \"100 ms\"\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"10 ms\"\n\
                [[flow]]\nname = \"d\\u001b[31me\"\nalgorithm = \"cubic\"\n";
    std::fs::write(folder.path().join("odd.toml"), text).expect("written");
    let printed = output(folder.path(), &["run", "odd.toml"]);
    assert!(printed.starts_with("a]0;bc\n"), "{printed:?}");
    assert!(printed.contains("d[31me") && printed.chars().all(|c| c == '\n' || !c.is_control()), "{printed:?}");
}

/// A run of hours gave nothing then but this sentence.
#[test]
fn a_figure_that_a_run_does_not_have_is_refused_before_it_is_run() {
    let folder = empty();
    fs::write(folder.path().join("u.toml"), BESIDE.replace("1 s", "100000 s")).unwrap();
    let said = refusal(folder.path(), &["run", "u.toml", "--out", "tables", "-o", "x.svg", "--figure", "colour"]);
    assert!(said.contains("there is no figure \"colour\"") && said.contains("Queueing delay"), "{said}");
    assert!(!folder.path().join("tables").exists());
    fs::write(folder.path().join("u.toml"), BESIDE).unwrap();
    output(folder.path(), &["run", "u.toml", "-o", "x.svg", "--figure", "delay"]);
}

/// The mean was of the fastest, and nothing said so.
#[test]
fn transfers_that_were_not_complete_are_told() {
    let folder = empty();
    let text = "duration = \"0.26 s\"\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\nname = \"many\"\ncount = 10\n\
                size = \"100 kB\"\n[[flow]]\nname = \"greedy\"\n";
    std::fs::write(folder.path().join("x.toml"), text).expect("a scenario");
    let said = output(folder.path(), &["run", "x.toml"]);
    let note = said.lines().find(|line| line.starts_with("Completion times are of the transfers")).expect("a note");
    assert!(note.contains(": many ") && note.contains(" of 10.") && !note.contains("greedy"), "{note}");
    std::fs::write(folder.path().join("y.toml"), text.replace("0.26 s", "20 s")).expect("a scenario");
    assert!(!output(folder.path(), &["run", "y.toml"]).contains("Completion times are of"));
}
