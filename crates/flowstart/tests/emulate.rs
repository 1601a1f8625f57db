//! `flowstart emulate` from outside: exit statuses, ends of every kind, and nothing left behind.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use flowstart_emulator::{Privilege, privilege};

#[path = "emulate/benchmark.rs"]
mod benchmark;
#[path = "support/computing.rs"]
mod computing;
#[path = "emulate/ends.rs"]
mod ends;
#[path = "emulate/fidelity.rs"]
mod fidelity;
#[path = "emulate/scenarios.rs"]
mod scenarios;

fn flowstart(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowstart"));
    command.args(arguments).env("COLUMNS", "200").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn emulate(arguments: &[&str]) -> Output {
    flowstart(&[&["emulate"], arguments].concat()).output().unwrap()
}

/// One line past the test harness, and false, where emulation is not possible.
fn possible() -> bool {
    match privilege() {
        Ok(_) => true,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "skipped: {error}");
            false
        }
    }
}

/// Fetches 2 MB from the server with these arguments: the document, standard error, the report.
fn download(arguments: &[&str]) -> Option<(serde_json::Value, String, String)> {
    if !possible() || Command::new("python3").arg("--version").output().is_err() {
        let _ = writeln!(std::io::stderr(), "skipped: no python3 to serve and fetch with");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("page"), vec![b'x'; 2_000_000]).unwrap();
    let serve = format!("exec python3 -m http.server -d {} 8000", folder.path().display());
    let fetch = "import urllib.request; print(len(urllib.request.urlopen('http://server:8000/page').read()))";
    let page = folder.path().join("page.html");
    let files = ["-o", page.to_str().unwrap(), "--fidelity", "10s", "--json", "--server", &serve];
    let output = emulate(&[arguments, &files[..], &["--", "python3", "-c", fetch]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document = serde_json::from_slice(&output.stdout).unwrap();
    Some((document, text(&output.stderr), fs::read_to_string(page).unwrap()))
}

/// Bytes that links carried, by their names.
fn link_bytes(document: &serde_json::Value) -> Vec<(String, u64)> {
    let links = document["links"].as_array().unwrap().iter();
    links.map(|link| (link["link"].as_str().unwrap().to_owned(), link["bytes"].as_u64().unwrap())).collect()
}

#[test]
fn downloads_are_limited_as_uploads_are_and_stand_in_the_table() {
    let Some((document, said, page)) = download(&["--capacity", "20Mbit/s"]) else { return };
    let links = link_bytes(&document);
    assert_eq!(links.len(), 2, "{links:?}");
    assert!(links[1].1 > 2_000_000, "the way back carried it: {links:?}");
    assert!(!said.contains("warning"), "{said}");
    assert!(page.contains("<h2>Queueing delay") && page.contains("python3"), "a report with pictures");
}

#[test]
fn a_way_back_without_limit_that_carried_much_is_warned_of() {
    let unlimited = ["--capacity", "20Mbit/s", "--reverse-capacity", "unlimited"];
    let Some((document, said, page)) = download(&unlimited) else { return };
    assert_eq!(link_bytes(&document).len(), 1);
    assert!(said.contains("came back where nothing limits them"), "{said}");
    assert!(page.contains("came back where nothing limits them"), "the report says it too");
}

#[test]
fn the_doctor_finds_emulation_possible_wherever_path_leads() {
    if !possible() {
        return;
    }
    let output = flowstart(&["doctor", "--json"]).env("PATH", "/empty").output().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = document["findings"].as_array().unwrap();
    let emulation = findings.iter().find(|finding| finding["what"] == "emulation").unwrap();
    assert_eq!(emulation["good"], true, "{emulation}");
}

/// Names of namespaces that a process made.
fn names_of(pid: u32) -> Vec<String> {
    let prefix = format!("fs-{pid}-");
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|n| n.starts_with(&prefix)).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn send(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

/// Waits until a file is there.
fn wait_for(path: &Path) {
    let until = Instant::now() + Duration::from_secs(20);
    while !path.exists() {
        assert!(Instant::now() < until, "{} does not appear", path.display());
        sleep(Duration::from_millis(5));
    }
}

fn running(pid: &str) -> bool {
    // A zombie that nobody has waited for does not run.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn the_exit_status_is_that_of_the_command_and_its_output_is_untouched() {
    if !possible() {
        return;
    }
    let output = emulate(&["--fidelity", "10s", "--", "sh", "-c", "echo $FLOWSTART_SERVER; exit 7"]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(7), "10.77.0.2\n"));
    assert!(text(&output.stderr).contains("the command ended with status 7"), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("fidelity: "));
    let missing = emulate(&["--", "/no/such/program"]);
    let said = text(&missing.stderr);
    assert_eq!(missing.status.code(), Some(127), "{said}");
    assert!(said.contains("error: cannot start the command \"/no/such/program\": there is no such program"), "{said}");
    // A folder cannot be executed.
    let folder = emulate(&["--", "/etc"]);
    assert_eq!(folder.status.code(), Some(126), "{}", text(&folder.stderr));
    assert!(text(&folder.stderr).contains("\"/etc\": it may not be executed"), "{}", text(&folder.stderr));
}

#[test]
fn a_server_is_waited_for_and_reached_by_name() {
    if !possible() {
        return;
    }
    if Command::new("python3").arg("--version").output().is_err() {
        let _ = writeln!(std::io::stderr(), "skipped: no python3 to serve and fetch with");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("page"), vec![b'x'; 300_000]).unwrap();
    let serve = format!("exec python3 -m http.server -d {} 8000", folder.path().display());
    let fetch = "import urllib.request; print(len(urllib.request.urlopen('http://server:8000/page').read()))";
    let out = folder.path().join("out");
    let captured = folder.path().join("pcap");
    let output = emulate(&[
        "--fidelity",
        "10s",
        "--server",
        &serve,
        "--out",
        out.to_str().unwrap(),
        "--pcap",
        captured.to_str().unwrap(),
        "--json",
        "--reverse-capacity",
        "20Mbit/s",
        "--",
        "python3",
        "-c",
        fetch,
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("300000"), "with --json the command's output goes to standard error");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["fidelity"]["unasked_drops"], 0);
    assert_eq!(document["fidelity"]["above_mtu"], 0);
    assert_eq!(document["ended"], "the command ended");
    let links = fs::read_to_string(out.join("links.csv")).unwrap();
    assert!(links.lines().any(|line| line.starts_with("0,reverse,")), "{links}");
    for link in ["bottleneck", "reverse"] {
        assert!(fs::metadata(captured.join(format!("{link}.pcapng"))).unwrap().len() > 500);
    }
    let flows = fs::read_to_string(out.join("flows.csv")).unwrap();
    assert!(
        flows.contains("tcp 10.77.0.2:8000 > 10.77.0.1:") || flows.contains("tcp [fd77::2]:8000 > [fd77::1]:"),
        "{flows}"
    );
}

/// A server that answers connections, and a client that says of its own server and of the first how
/// long connecting took, in nanoseconds; each line in one write, for all clients write into one
/// pipe.
const ANSWER: &str = "exec python3 -c \"import socket, time; s = socket.create_server(('', 8000)); time.sleep(1000)\"";
const KNOCK: &str = "import os, socket, time
for name in ('server', 'server1'):
    began = time.monotonic_ns()
    peer = socket.create_connection((name, 8000)).getpeername()[0]
    line = '%s %s %d' % (os.environ['FLOWSTART_PAIR'], peer, time.monotonic_ns() - began)
    os.write(1, line.encode() + bytes([10]))
";

/// Starts [`ANSWER`] and [`KNOCK`] on all pairs: pair, peer, and how long it took. `None` without
/// python3.
fn knock(arguments: &[&str]) -> Option<Vec<(u32, String, u64)>> {
    if Command::new("python3").arg("--version").output().is_err() {
        let _ = writeln!(std::io::stderr(), "skipped: no python3 to serve and connect with");
        return None;
    }
    let run = ["--fidelity", "10s", "--ready-within", "60s", "--server", ANSWER];
    let output = emulate(&[&run, arguments, &["--", "python3", "-c", KNOCK]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let lines = said.lines().map(|line| {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap();
        (word().parse().unwrap(), word().to_owned(), word().parse().unwrap())
    });
    let mut all: Vec<(u32, String, u64)> = lines.collect();
    all.sort();
    Some(all)
}

#[test]
fn every_pair_of_hosts_runs_the_command_with_a_delay_of_its_own_and_clients_reach_all_servers() {
    if !possible() {
        return;
    }
    let Some(all) = knock(&["--capacity", "50Mbit/s", "--host-rtt", "10ms,60ms,30ms"]) else { return };
    let peers: Vec<(u32, &str)> = all.iter().map(|(pair, peer, _)| (*pair, peer.as_str())).collect();
    let (first, second, third) = ("10.77.0.2", "10.77.0.4", "10.77.0.6");
    assert_eq!(peers, [(1, first), (1, first), (2, first), (2, second), (3, first), (3, third)]);
    for (pair, peer, nanos) in &all {
        let rtt = [10, 60, 30][*pair as usize - 1];
        assert!(*nanos >= rtt * 1_000_000, "no packet is early: {pair} to {peer} in {nanos} ns of {rtt} ms");
    }
}

#[test]
fn a_scenario_with_delays_of_senders_makes_their_hosts() {
    if !possible() {
        return;
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/nine-delays.toml");
    let Some(all) = knock(&["--scenario", file]) else { return };
    // Two flows each have 24, 22, 18 and 16 ms, one has 20 ms: five different ways.
    assert_eq!(all.len(), 10);
    for (pair, _, nanos) in all {
        assert!(nanos >= [24, 22, 18, 16, 20][pair as usize - 1] * 1_000_000);
    }
}

#[test]
fn hosts_that_do_not_fit_together_are_refused_and_the_first_command_that_fails_gives_the_status() {
    if !possible() {
        return;
    }
    let refused = emulate(&["--hosts", "3", "--host-rtt", "1ms,2ms", "--", "true"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--hosts says 3 pairs"), "{}", text(&refused.stderr));
    let links = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/two-bottlenecks.toml");
    let refused = emulate(&["--scenario", links, "--hosts", "2", "--", "true"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("need a scenario with a [path]"), "{}", text(&refused.stderr));
    // Its three ways have three pairs of hosts.
    let output = emulate(&["--fidelity", "10s", "--scenario", links, "--", "sh", "-c", "exit $((FLOWSTART_PAIR - 1))"]);
    assert!(matches!(output.status.code(), Some(1 | 2)), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("the command on client"), "{}", text(&output.stderr));
}

#[test]
fn the_kernels_view_of_the_connections_of_programs_is_in_the_tables() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let send =
        "import socket, time; s = socket.create_connection(('server', 8000)); s.sendall(b'x' * 50000); time.sleep(6)";
    let run = ["--fidelity", "10s", "--ready-within", "60s", "--server", ANSWER, "--sample", "20ms", "--out"];
    let output = emulate(&[&run, &[folder.path().to_str().unwrap(), "--", "python3", "-c", send][..]].concat());
    if text(&output.stderr).contains("cannot start the command") || output.status.code() == Some(2) {
        let _ = writeln!(std::io::stderr(), "skipped: no python3 to send with");
        return;
    }
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows = |file: &str, name: &str| -> Vec<f64> {
        let table = fs::read_to_string(folder.path().join(file)).unwrap();
        let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let place = lines.next().unwrap().iter().position(|column| *column == name).unwrap();
        lines
            .filter(|row| row.iter().any(|cell| cell.contains(":8000")))
            .filter_map(|row| row[place].parse().ok())
            .collect()
    };
    assert!(rows("samples.csv", "snd_cwnd_pkts").iter().any(|cwnd| *cwnd >= 10.0));
    assert!(rows("flows.csv", "min_rtt_us").iter().any(|micros| *micros >= 20_000.0), "no packet is early");
}

#[test]
fn a_trace_gives_the_capacity_and_a_wrong_one_is_refused() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace");
    fs::write(&file, "1\n1\n3\n5\n").unwrap();
    let run = || emulate(&["--fidelity", "10s", "--trace", file.to_str().unwrap(), "--", "true"]);
    assert!(run().status.success());
    fs::write(&file, "1\nsoon\n").unwrap();
    let refused = run();
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("trace: "), "{}", text(&refused.stderr));
}

#[test]
fn every_link_of_a_scenario_is_captured_the_senders_own_too() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.toml");
    let path =
        "[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"10 ms\"\naccess = \"20 Mbit/s\"\nreverse_capacity = \"5 Mbit/s\"\n";
    let flow = "[[flow]]\nalgorithm = \"slow_start+reno\"\nsize = \"20 kB\"\n";
    fs::write(&file, format!("duration = \"5 s\"\nstop_when_complete = true\n{path}{flow}")).unwrap();
    let captured = folder.path().join("pcap");
    let run =
        flowstart(&["run", "--real", "--fidelity", "10s", "--pcap", captured.to_str().unwrap()]).arg(&file).output();
    let output = run.unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    for link in ["bottleneck", "reverse", "access1"] {
        let bytes = fs::metadata(captured.join("access").join(format!("{link}.pcapng"))).unwrap().len();
        assert!(bytes > 500, "{link}: {bytes}");
    }
}

#[test]
fn a_run_that_is_less_faithful_than_asked_fails_with_a_status_of_its_own() {
    if !possible() {
        return;
    }
    // No machine is punctual to the nanosecond. Nobody listens there, which is said once a packet
    // has arrived.
    let say = r"
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(('server', 9))
try:
    while True:
        s.send(b'x')
except ConnectionRefusedError:
    pass
";
    let output = emulate(&["--fidelity", "1ns", "--", "python3", "-c", say]);
    if text(&output.stderr).contains("cannot start the command") {
        let _ = writeln!(std::io::stderr(), "skipped: no python3 to send with");
        return;
    }
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("not faithful enough: 1 % of the packets were more than"));
}

/// The report said 304 Mbit/s of a link of 1 Mbit/s, and knew a part of the packets.
#[test]
fn no_flow_is_faster_than_its_link_and_what_still_waits_has_been_sent() {
    if !possible() || Command::new("python3").arg("--version").output().is_err() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.md");
    // Nobody listens there: the answers tell that packets have arrived, however late the machine
    // is. All of them would take 12 s.
    let say = r"
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(('server', 9))
arrived = 0
def try_to(act):
    global arrived
    try:
        act()
        return True
    except ConnectionRefusedError:
        arrived += 1
        return False
for _ in range(100):
    while not try_to(lambda: s.send(b'x' * 1472)):
        pass
while arrived < 3:
    try_to(lambda: s.recv(1))
";
    let path = ["--capacity", "100kbit/s", "--buffer", "1MB", "--fidelity", "10s", "--json"];
    let report = ["-o", page.to_str().unwrap(), "--", "python3", "-c", say];
    let output = emulate(&[&path[..], &report].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let flow =
        &document["flows"].as_array().unwrap().iter().find(|flow| flow["name"].as_str().unwrap().starts_with("udp"));
    assert_eq!(flow.unwrap()["data_segs_out"], 100, "{document:#}");
    let stayed = document["on_the_way"].as_u64().unwrap();
    assert!((1..=97).contains(&stayed), "{stayed}");
    let page = fs::read_to_string(page).unwrap();
    let sentence = page.lines().find(|line| line.contains("udp ") && line.contains(" Mbit/s")).unwrap();
    let rate: f64 = sentence.split(" Mbit/s").next().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    assert!(rate > 0.0 && rate <= 0.1, "{sentence}");
}

#[test]
fn what_hosts_need_is_asked_for_in_a_sentence() {
    let none = emulate(&["--host-rtt", "10ms,0s", "--", "true"]);
    let said = text(&none.stderr);
    assert!(none.status.code() == Some(2) && said.contains("--host-rtt: every pair of hosts has"), "{said}");
    if !possible() {
        return;
    }
    let nowhere = flowstart(&["emulate", "--", "true"]).env("TMPDIR", "/nowhere").output().unwrap();
    let said = text(&nowhere.stderr);
    assert!(nowhere.status.code() == Some(2) && said.contains("hosts file into /nowhere (TMPDIR"), "{said}");
    assert!(!said.contains("os error"), "{said}");
}

/// Two flows with delays of their own, the second over a slow way back as well as everybody.
const DUMBBELL: &str = r#"
duration = "60 s"
stop_when_complete = true
[path]
capacity = "50 Mbit/s"
rtt = "10 ms"
reverse_capacity = "5 Mbit/s"
[output]
sample = "10 ms"
[[flow]]
name = "near"
algorithm = "slow_start+reno"
size = "500 kB"
[[flow]]
name = "far"
algorithm = "slow_start+reno"
rtt = "30 ms"
start = "100 ms"
size = "200 kB"
[[udp]]
rate = "1 Mbit/s"
packet = "500 B"
"#;
