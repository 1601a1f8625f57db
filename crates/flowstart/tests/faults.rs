//! What a machine does to a program: full and read-only disks, signals, a power cut in the middle.
//! What needs root says `skipped: …` without.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_flowstart");

/// Two flows for two seconds: a capture of some megabytes.
const SCENARIO: &str = "duration = \"2 s\"\n[path]\ncapacity = \"50 Mbit/s\"\nrtt = \"10 ms\"\n[[flow]]\ncount = 2\n";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command of a shell in which `disk` in this folder is a file system of its own, which goes
/// with the command. `None`, and a line past the test harness, where that is not possible.
fn with_disk(folder: &Path, options: &str, command: &str) -> Option<Output> {
    fs::create_dir_all(folder.join("disk")).unwrap();
    let script = format!("mount -t tmpfs -o {options} flowstart disk && {command}");
    let trial = |script: &str| {
        Command::new("unshare").args(["--mount", "sh", "-c", script]).current_dir(folder).env("F", PROGRAM).output()
    };
    if !trial("mount -t tmpfs flowstart disk").is_ok_and(|output| output.status.success()) {
        let _ = writeln!(std::io::stderr(), "skipped: no file system can be mounted here, which needs root");
        return None;
    }
    Some(trial(&script).unwrap())
}

#[test]
fn a_full_disk_is_named_and_no_file_is_left_that_is_not_whole() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("flows.toml"), SCENARIO).unwrap();
    // Tables fit, captures do not.
    let command =
        "\"$F\" run flows.toml --out disk/tables --pcap disk/pcap; status=$?; find disk -type f; exit $status";
    let Some(output) = with_disk(folder.path(), "size=400k", command) else { return };
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no space is left") && said.contains("pcap"), "{said}");
    let left = text(&output.stdout);
    assert!(!left.contains("pcapng") && !left.contains("/."), "{left}");
    // Nothing fits.
    let command =
        "\"$F\" compare -C cubic --capacity 5Mbit/s --out disk/race; status=$?; find disk -type f; exit $status";
    let Some(output) = with_disk(folder.path(), "size=4k", command) else { return };
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no space is left"), "{said}");
}

#[test]
fn a_read_only_disk_is_named_before_anything_is_simulated() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("flows.toml"), SCENARIO).unwrap();
    for command in [
        "\"$F\" run flows.toml --out disk/tables",
        "\"$F\" compare -C cubic --out disk/race",
        "\"$F\" frontier -C hystart --out disk/frontier",
    ] {
        let Some(output) = with_disk(folder.path(), "ro", command) else { return };
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command}: {said}");
        assert!(said.contains("the file system is read-only") && said.contains("disk/"), "{command}: {said}");
    }
}

/// Many short races, one after the other.
const GRID: &str = "frontier -C paced_chirping+cubic --capacity 5Mbit/s,10Mbit/s --rtt 20ms,40ms --buffer 1BDP \
                    --path clean,jitter --load idle --runs 2 --threads 1";

fn grid(folder: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.current_dir(folder).args(GRID.split_whitespace()).args(more);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Starts the grid and waits until two of its results are on the disk.
fn begun(folder: &Path) -> Child {
    let mut child = grid(folder, &["--out", "cut"]).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    let lines = || fs::read_to_string(folder.join("cut/records.csv")).map_or(0, |text| text.lines().count());
    while lines() < 3 && child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "nothing is recorded");
        sleep(Duration::from_millis(2));
    }
    child
}

/// All files but pages and pictures, which name the command that made them.
fn results(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let names = ["cells.csv", "lost.csv", "parameters.json", "records.csv", "result.json"];
    names.map(|name| (name.to_owned(), fs::read(folder.join(name)).unwrap())).into()
}

#[test]
fn what_was_killed_or_terminated_goes_on_to_the_same_results() {
    let folder = tempfile::tempdir().unwrap();
    let whole = grid(folder.path(), &["--out", "whole"]).output().unwrap();
    assert!(whole.status.success(), "{}", text(&whole.stderr));
    for signal in ["KILL", "TERM"] {
        let child = begun(folder.path());
        let sent = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
        let ended = child.wait_with_output().unwrap();
        // It may have been done before the signal came.
        if sent.success() && signal == "TERM" && !ended.status.success() {
            assert_eq!(ended.status.code(), Some(130), "{}", text(&ended.stderr));
            assert!(text(&ended.stderr).contains("interrupted; what was finished is kept"));
        }
        let resumed = grid(folder.path(), &["--out", "cut", "--resume"]).output().unwrap();
        assert!(resumed.status.success(), "{signal}: {}", text(&resumed.stderr));
        assert!(results(&folder.path().join("cut")) == results(&folder.path().join("whole")), "after {signal}");
        fs::remove_dir_all(folder.path().join("cut")).unwrap();
    }
}
