//! Signals, pipes and limits, as only Unix has them.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::*;

#[path = "../support/computing.rs"]
mod computing;
use computing::wait_until_computed;

fn program() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("flowstart"))
}

#[test]
fn a_page_of_an_interrupted_run_says_how_many_runs_it_has() {
    let folder = empty();
    let scenario = "duration = \"1 s\"\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\nloss = \"1 %\"\n[[flow]]\n";
    std::fs::write(folder.path().join("x.toml"), scenario).expect("written");
    let arguments = ["run", "x.toml", "--runs", "20000", "--threads", "1", "-o", "x.html"];
    let mut child =
        program().current_dir(folder.path()).args(arguments).stdout(Stdio::null()).spawn().expect("started");
    wait_until_computed(&child, 1.0);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill").success());
    assert_eq!(child.wait().expect("ended").code(), Some(130));
    let page = std::fs::read_to_string(folder.path().join("x.html")).expect("the page");
    assert!(page.contains(" of 20000 runs were finished."), "{page}");
}

#[test]
fn after_ctrl_c_what_was_finished_is_kept_and_readable_and_the_status_is_130() {
    let folder = empty();
    let mut child = program()
        .current_dir(folder.path())
        .args([
            "compare",
            "-C",
            "cubic",
            "--background",
            "cubic",
            "--size",
            "100kB",
            "--runs",
            "100000",
            "--threads",
            "2",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    wait_until_computed(&child, 2.0);
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(killed.success());
    let asked = Instant::now();
    let (mut text, mut complaint) = (String::new(), String::new());
    child.stdout.take().expect("piped").read_to_string(&mut text).expect("UTF-8");
    child.stderr.take().expect("piped").read_to_string(&mut complaint).expect("UTF-8");
    let status = child.wait().expect("ended");
    assert_eq!(status.code(), Some(130), "{status} {:?} {complaint}", status.signal());
    // All of the runs take minutes.
    assert!(asked.elapsed() < Duration::from_secs(60), "{:?}", asked.elapsed());
    assert!(text.contains("Interrupted: "), "{text}");
    let said: Vec<&str> = complaint.lines().collect();
    assert!(said[0].contains("runs: 100000") && said[0].contains(" on 2 threads"), "an estimate: {complaint}");
    assert_eq!(said.last(), Some(&"interrupted; what was finished is kept"));
    let report = folder.path().join("flowstart-report");
    assert!(files(&report).iter().all(|name| !name.starts_with('.')), "nothing half-written");
    let result = std::fs::read_to_string(report.join("result.json")).expect("the result");
    let document: serde_json::Value = serde_json::from_str(&result).expect("JSON");
    assert_eq!(document["complete"], false);
    let runs = document["contestants"][0]["runs"].as_array().expect("runs").len();
    assert!(runs >= 1, "something was finished in two seconds of a processor");
}

/// It was said that what was finished was kept, and nothing was.
#[test]
fn an_interrupted_reproduction_keeps_the_figures_that_were_finished() {
    let folder = empty();
    let figure = |name: &str, duration: &str| {
        let text = format!(
            "title = \"{name}\"\nshows = \"It.\"\nreplications = {{ by = \"nothing\", because = \"alone.\" }}\n\
             [scenario]\nduration = \"{duration}\"\npath = {{ capacity = \"1 Gbit/s\", rtt = \"10 ms\" }}\n\
             flow = [{{ name = \"bulk\" }}]\n[[claim]]\nid = \"full\"\norigin = \"paper\"\nsource = \"Fig. 1\"\n\
             says = \"It is full.\"\nmeasure = {{ kind = \"time_to_rate\", rate = \"500 Mbit/s\" }}\n\
             expect = \"<= 1 s\"\n"
        );
        std::fs::write(folder.path().join(format!("{name}.toml")), text).expect("written");
    };
    figure("short", "500 ms");
    figure("long", "10000 s");
    let run_with = |what: &[&str], kept: &[&str]| {
        let mut command = program();
        command.current_dir(folder.path()).arg("reproduce").args(what).args(["--threads", "1"]);
        let child = command.args(kept);
        let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
        wait_until_computed(&child, 2.0);
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill").success());
        let ended = child.wait_with_output().expect("ended");
        assert_eq!(ended.status.code(), Some(130));
        [ended.stdout, ended.stderr].map(|text| String::from_utf8(text).expect("UTF-8"))
    };
    let run = |what: &[&str]| run_with(what, &["--record=kept.json", "-o", "x.md"]);
    let [shown, said] = run(&["long.toml"]);
    // Where it takes long it is told how far it is.
    let said: Vec<&str> = said.lines().filter(|line| !line.starts_with("reproducing: ")).collect();
    assert_eq!((shown.as_str(), said), ("", vec!["interrupted before anything was finished"]));
    assert!(!folder.path().join("kept.json").exists(), "an empty record is left behind");
    let [shown, said] = run(&["short.toml", "long.toml"]);
    assert!(shown.contains("short.toml: short") && !shown.contains("long.toml"), "{shown}");
    assert!(
        said.contains("Interrupted: 1 of 2 figures were finished.\ninterrupted; what was finished is kept"),
        "{said}"
    );
    let page = std::fs::read_to_string(folder.path().join("x.md")).expect("the page");
    assert!(page.contains("Interrupted: 1 of 2 figures were finished."), "{page}");
    let again = program().current_dir(folder.path()).args(["reproduce", "--recorded=kept.json", "short.toml"]).output();
    assert!(again.expect("run").status.success());
    // Where nothing is kept that is not said, nor a speed that counts what was not finished.
    let [shown, said] = run_with(&["short.toml", "long.toml"], &[]);
    assert!(shown.contains("short.toml: short") && !shown.contains("packets/s"), "{shown}");
    assert!(said.ends_with("\ninterrupted; what was finished is shown, and --record keeps it\n"), "{said}");
}

/// Without a folder nothing was kept, though it was said; a part was shown as the whole.
#[test]
fn an_interrupted_frontier_says_what_is_kept_and_shows_no_part_as_the_whole() {
    let run = |more: &[&str]| {
        let folder = empty();
        let mut command = program();
        command.current_dir(folder.path()).args(["frontier", "-C", "cubic", "--path", "clean", "--threads", "1"]);
        let child = command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
        wait_until_computed(&child, 2.0);
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill").success());
        let ended = child.wait_with_output().expect("ended");
        assert_eq!(ended.status.code(), Some(130));
        let [shown, said] = [ended.stdout, ended.stderr].map(|text| String::from_utf8(text).expect("UTF-8"));
        let said = said.lines().last().unwrap_or_default().to_owned();
        (shown, said, folder.path().join("results/report.html").exists())
    };
    let (shown, said, _) = run(&[]);
    assert!(shown.contains("Medians over the grid"), "{shown}");
    assert_eq!(said, "interrupted; what was finished is shown, and --out DIR keeps it");
    let (shown, said, page) = run(&["--out", "results", "--shard", "1/2"]);
    assert!(shown.starts_with("shard 1/2: ") && shown.lines().count() == 1, "{shown}");
    assert_eq!((said.as_str(), page), ("interrupted; what was finished is kept", false));
}

/// The handler of Ctrl-C took the place of what `nohup` had said, and a closed terminal ended the
/// program.
#[cfg(target_os = "linux")]
#[test]
fn who_ignores_hangups_goes_on_when_the_terminal_is_closed() {
    let folder = empty();
    let scenario = "duration = \"1 s\"\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\nloss = \"1 %\"\n[[flow]]\n";
    std::fs::write(folder.path().join("x.toml"), scenario).expect("written");
    let run = |before: &str, more: &str| {
        let line = format!("{before} exec env {more} \"$0\" run x.toml --runs 20000 --threads 1");
        let mut command = Command::new("sh");
        command.current_dir(folder.path()).args(["-c", &line]).arg(program().get_program());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started")
    };
    let send = |signal: &str, pid: u32| {
        assert!(Command::new("kill").args([signal, &pid.to_string()]).status().expect("kill").success());
    };
    // Whoever runs the tests may ignore hangups, too, which no shell takes back.
    let (mut ignoring, mut other) = (run("trap '' HUP;", ""), run("", "--default-signal=HUP"));
    wait_until_computed(&other, 0.1);
    wait_until_computed(&ignoring, 0.1);
    send("-HUP", other.id());
    send("-HUP", ignoring.id());
    assert_eq!(other.wait().expect("ended").code(), Some(130));
    wait_until_computed(&ignoring, 0.5);
    assert_eq!(ignoring.try_wait().expect("looked at"), None, "it goes on");
    send("-INT", ignoring.id());
    assert_eq!(ignoring.wait().expect("ended").code(), Some(130));
}

/// What was found was lost with the disk's space.
#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_written_does_not_hide_what_was_found() {
    let folder = empty();
    let scenario = "duration = \"1 s\"\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\n";
    std::fs::write(folder.path().join("x.toml"), scenario).expect("written");
    std::os::unix::fs::symlink("/dev/full", folder.path().join("full.html")).expect("linked");
    let run = |more: &[&str]| {
        let mut command = program();
        command.current_dir(folder.path()).args(["run", "x.toml", "-o", "full.html"]).args(more);
        let output = command.output().expect("run");
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("cannot write full.html: no space is left"), "{said}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let tables = run(&["--out", "tables"]);
    assert!(tables.contains("hystart+cubic") && !tables.contains("results:"), "{tables}");
    let document: serde_json::Value = serde_json::from_str(&run(&["--json"])).expect("JSON");
    assert_eq!(document["flows"][0]["name"], "hystart+cubic");
    // A table of a folder, and the page of a race.
    let tables = folder.path().join("others");
    std::fs::create_dir(&tables).expect("made");
    std::os::unix::fs::symlink("/dev/full", tables.join("flows.csv")).expect("linked");
    let full = |arguments: &[&str], wanted: &str| {
        let output = program().current_dir(folder.path()).args(arguments).output().expect("run");
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(wanted), "{said}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let tables = full(&["run", "x.toml", "--out", "others"], "others/flows.csv cannot be written: no space is left\n");
    assert!(tables.contains("hystart+cubic"), "{tables}");
    let race = ["compare", "-C", "cubic", "-n", "100kB", "-t", "200ms", "-o", "full.html"];
    let tables = full(&race, "cannot write full.html: no space is left");
    assert!(tables.contains("The start") && tables.contains("hystart+cubic"), "{tables}");
}

/// The signal ended the program, with half a file left.
#[test]
#[cfg(target_os = "linux")]
fn a_file_that_becomes_longer_than_files_may_be_is_a_sentence_after_what_was_found() {
    let folder = empty();
    std::fs::write(folder.path().join("x.toml"), "[path]\ncapacity = \"9 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\n")
        .unwrap();
    let limited = |arguments: &str, wanted: &str| {
        let mut shell = Command::new("sh");
        let line = format!("ulimit -f 8; exec \"$0\" {arguments}");
        shell.current_dir(folder.path()).args(["-c", &line]).arg(program().get_program());
        let output = shell.output().expect("run");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(said.contains(wanted), "{arguments}: {said}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("hystart+cubic"), "{arguments}");
    };
    limited("compare -C cubic -n 9kB", "it is longer than files may be here (ulimit -f)");
    limited(
        "run x.toml --out tables",
        "samples.csv cannot be written: it is longer than files may be here (ulimit -f)",
    );
    let hidden = |path: &std::path::Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    for made in [folder.path().to_owned(), folder.path().join("tables")] {
        let left: Vec<_> = std::fs::read_dir(made).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(!left.iter().any(|file| hidden(file)), "{left:?}");
    }
}

/// "report: ..." stood above "cannot write ...".
#[test]
#[cfg(target_os = "linux")]
fn a_report_that_was_not_written_is_not_announced() {
    let folder = empty();
    std::fs::create_dir_all(folder.path().join("there")).unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("there/report.html")).expect("linked");
    std::os::unix::fs::symlink("/dev/full", folder.path().join("there/index.html")).expect("linked");
    let frontier =
        "frontier -C cubic --capacity 10Mbit/s --rtt 20ms --buffer 1BDP --path clean --load idle --runs 1 --out";
    let benchmark = "benchmark cubic --capacity 1Mbit/s --lasting 20s --least 5s --overload-after 5s --warm-up 1s \
                     --samples 100 --bursts 0 --connections 0 --peers 0 --out";
    for (line, announced) in [
        (frontier, "report: "),
        (benchmark, "report: "),
        ("reproduce paced-chirping/abstract --runs 1 --plot", "figures: "),
    ] {
        let told = |into: &str| {
            let mut command = program();
            command.current_dir(folder.path()).args(line.split_whitespace()).arg(into);
            let output = command.output().expect("run");
            let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            (output.status.code(), out.contains(announced), said.into_owned())
        };
        let (status, announced, said) = told("there");
        assert_eq!((status, announced), (Some(2), false), "{line}: {said}");
        assert!(said.contains("no space is left"), "{line}: {said}");
        let (status, announced, said) = told("well");
        assert_eq!((status, announced), (Some(0), true), "{line}: {said}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn help_that_cannot_be_written_is_no_success() {
    for asked in [&["--help"][..], &["--version"], &["compare", "-h"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("there");
        let output = program().args(asked).stdout(full).output().expect("run");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{asked:?}: {said}");
        assert!(said.starts_with("error: cannot write to standard output: "), "{asked:?}: {said}");
    }
}

/// Empty tables took the place of an earlier race's.
#[test]
fn ctrl_c_before_anything_was_finished_leaves_earlier_results_as_they_are() {
    let folder = empty();
    let race = |arguments: &[&str]| {
        let mut command = program();
        command.current_dir(folder.path()).args(["compare", "-C", "cubic", "--threads", "1"]).args(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command
    };
    assert!(race(&["-n", "10kB"]).status().expect("run").success());
    let result = || std::fs::read(folder.path().join("flowstart-report/result.json")).expect("the result");
    let earlier = result();
    // Minutes of one core each.
    let long = ["--capacity", "10Gbit/s", "--rtt", "100ms", "-n", "100GB", "-t", "20s"];
    let mut child = race(&long).spawn().expect("started");
    wait_until_computed(&child, 0.3);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill").success());
    let mut complaint = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut complaint).expect("UTF-8");
    assert_eq!(child.wait().expect("ended").code(), Some(130), "{complaint}");
    assert_eq!(complaint.lines().last(), Some("interrupted before anything was finished"), "{complaint}");
    assert_eq!(result(), earlier);
}

/// The whole run was waited for, and then empty tables took the place of earlier ones.
#[test]
fn ctrl_c_ends_a_run_before_it_is_over_and_leaves_earlier_tables_as_they_are() {
    let folder = empty();
    let scenario = |name: &str, duration: &str| {
        let text = format!(
            "duration = \"{duration}\"\noutput = {{ sample = \"0 s\" }}\n[path]\ncapacity = \"1 Gbit/s\"\n\
             rtt = \"20 ms\"\n[[flow]]\n"
        );
        std::fs::write(folder.path().join(name), text).expect("written");
    };
    scenario("short.toml", "1 s");
    // Minutes of a core.
    scenario("long.toml", "20000 s");
    output(folder.path(), &["run", "short.toml", "--out", "tables"]);
    let table = || std::fs::read(folder.path().join("tables/flows.csv")).expect("a table");
    let earlier = table();
    for more in [&["--out", "tables"][..], &["--pcap", "captures"]] {
        let arguments = [&["run", "long.toml"], more].concat();
        let mut child = program();
        child.current_dir(folder.path()).args(arguments).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = child.spawn().expect("started");
        wait_until_computed(&child, 0.3);
        let asked = Instant::now();
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill").success());
        let mut complaint = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut complaint).expect("UTF-8");
        assert_eq!(child.wait().expect("ended").code(), Some(130), "{complaint}");
        assert!(asked.elapsed() < Duration::from_secs(60), "{:?}", asked.elapsed());
        assert_eq!(complaint.lines().last(), Some("interrupted before anything was finished"), "{complaint}");
    }
    assert_eq!(table(), earlier);
    assert!(!folder.path().join("captures").exists(), "no half of a capture, and no folder for it");
}

#[test]
fn a_closed_pipe_ends_the_program_quietly() {
    let folder = empty();
    let mut child = program()
        .current_dir(folder.path())
        .args(["scenario", "schema"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut line = String::new();
    {
        let mut reader = BufReader::with_capacity(16, child.stdout.take().expect("piped"));
        reader.read_line(&mut line).expect("a line");
    }
    let mut complaint = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut complaint).expect("UTF-8");
    assert!(child.wait().expect("ended").success());
    assert_eq!(complaint, "");
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_before_the_race() {
    let folder = empty();
    let message = refusal(folder.path(), &["compare", "--out", "/proc/flowstart"]);
    assert!(message.starts_with("error: cannot create /proc/flowstart"), "{message}");
    assert_eq!(message.trim_end().lines().count(), 1);
}
