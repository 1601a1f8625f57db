//! Scenarios and races run for real.

use std::collections::BTreeSet;

use super::*;

#[test]
fn a_scenario_runs_for_real_with_the_tables_of_the_simulator() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("dumbbell.toml"), folder.path().join("out"));
    fs::write(&file, DUMBBELL).unwrap();
    let run = |real: &[&str]| {
        let output = flowstart(&[&["run", file.to_str().unwrap(), "--json"], real].concat()).output().unwrap();
        printed(&output)
    };
    let real = run(&["--real", "--fidelity", "10s", "--out", out.to_str().unwrap()]);
    let simulated = run(&[]);
    assert_eq!(real["not_real"], serde_json::json!([]));
    assert_eq!(real["fidelity"][0]["unasked_drops"], 0);
    assert_eq!(real["fidelity"][0]["above_mtu"], 0);
    // The same columns, however many rows.
    for table in ["flows", "links", "samples"] {
        let columns = |document: &serde_json::Value| -> Vec<String> {
            document[table][0].as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!(columns(&real), columns(&simulated));
    }
    let flows = fs::read_to_string(out.join("flows.csv")).unwrap();
    let mut lines = flows.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| header.iter().position(|column| *column == name).unwrap();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    // What does not depend on luck: everything sized has arrived, whoever waits 30 ms waits at
    // least that.
    for (row, name, size, rtt_us) in [(0, "near", "500000", 10_000.0), (1, "far", "200000", 30_000.0)] {
        assert_eq!((rows[row][column("name")], rows[row][column("bytes_delivered")]), (name, size));
        assert!(!rows[row][column("completed_s")].is_empty());
        let least: f64 = rows[row][column("min_rtt_us")].parse().unwrap();
        assert!(least >= rtt_us, "no packet is early: {least}");
    }
    assert!(out.join("samples.csv").exists());
}

/// Two connections of CUBIC in one host, with classic ECN.
const ECHOING: &str = r#"
duration = "4 s"
[path]
capacity = "30 Mbit/s"
rtt = "20 ms"
queue = "fq_codel"
[[flow]]
algorithm = "hystart+cubic"
ecn = "classic"
count = 2
"#;

#[test]
fn of_kernels_connections_marks_are_those_of_links_and_no_start_of_cubic_fills_a_pipe() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("echoing.toml");
    fs::write(&file, ECHOING).unwrap();
    let output = flowstart(&["run", file.to_str().unwrap(), "--json", "--real", "--fidelity", "10s"]).output().unwrap();
    let real = printed(&output);
    let flows = real["flows"].as_array().unwrap();
    // With classic ECN every ACK echoes a mark until the sender has answered it: the kernel counts
    // hundreds.
    let marked: u64 = flows.iter().map(|flow| flow["delivered_ce"].as_u64().unwrap()).sum();
    assert_eq!(marked, real["links"][0]["marked"].as_u64().unwrap());
    for flow in flows {
        assert_ne!(flow["exit_reason"], "pipe_full", "that is of starts that know what fits");
    }
}

/// Transfers that arrive at random, users who fetch pages, and an initial window.
const MIXED: &str = r#"
duration = "12 s"
stop_when_complete = true
[path]
capacity = "50 Mbit/s"
rtt = "20 ms"
[[flow]]
name = "first"
algorithm = "slow_start+reno"
initial_window = 4
size = "200 kB"
[[arrivals]]
mean_gap = "40 ms"
most = 20
sizes = { kind = "truncated_pareto", shape = 0.5, min = "1 kB", max = "100 kB" }
flow = { name = "arriving", algorithm = "hystart+cubic" }
[[web]]
users = 3
flow = { name = "web", algorithm = "slow_start+reno" }
"#;

#[test]
fn arrivals_and_users_run_for_real_with_the_transfers_and_pages_of_the_simulator() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mixed.toml");
    fs::write(&file, MIXED).unwrap();
    let run = |real: &[&str]| {
        let output = flowstart(&[&["run", file.to_str().unwrap(), "--json"], real].concat()).output().unwrap();
        printed(&output)
    };
    let real = run(&["--real", "--fidelity", "10s"]);
    let simulated = run(&[]);
    assert_eq!(real["not_real"], serde_json::json!([]));
    let rows = |document: &serde_json::Value, table: &str, name: &str| -> Vec<serde_json::Value> {
        let all = document[table].as_array().unwrap().iter();
        all.filter(|row| row["name"] == name || row["series"] == name).cloned().collect()
    };
    for name in ["first", "arriving"] {
        let (real, simulated) = (rows(&real, "flows", name), rows(&simulated, "flows", name));
        assert_eq!(real.len(), simulated.len());
        for (real, simulated) in real.iter().zip(&simulated) {
            assert_eq!(real["size_bytes"], simulated["size_bytes"]);
            assert_eq!(real["bytes_delivered"], real["size_bytes"], "{real}");
            let start = |row: &serde_json::Value| row["start_s"].as_f64().unwrap();
            assert!(start(real) >= start(simulated) - 1e-9, "nothing starts early: {real}");
        }
    }
    let (real, simulated) = (&real["pages"].as_array().unwrap(), &simulated["pages"].as_array().unwrap());
    assert!(!real.is_empty() && !simulated.is_empty());
    for page in real.iter() {
        let same = |other: &&serde_json::Value| other["user"] == page["user"] && other["page"] == page["page"];
        if let Some(other) = simulated.iter().find(same) {
            assert_eq!((&page["bytes"], &page["files"]), (&other["bytes"], &other["files"]));
        }
        // Request and reply; for the first on the connection that all share, a handshake.
        let least = if page["page"] == 0 { 0.04 } else { 0.02 };
        assert!(page["page_time_s"].as_f64().unwrap() >= least, "nothing is early: {page}");
    }
}

#[test]
fn kernels_race_with_the_measures_of_the_simulator() {
    if !possible() {
        return;
    }
    let arguments = [
        "compare",
        "--real",
        "-C",
        "reno",
        "--fidelity",
        "10s",
        "--runs",
        "1",
        "-n",
        "100 kB",
        "--json",
        "--no-report",
        "--pcap",
    ];
    let folder = tempfile::tempdir().unwrap();
    let output = flowstart(&arguments).arg(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let capture = folder.path().join("slow_start+reno").join("bottleneck.pcapng");
    assert!(fs::metadata(&capture).unwrap().len() > 100_000, "a transfer of 100 kB and a start");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["parameters"]["real"], true, "{document:#}");
    let said = text(&output.stderr);
    assert!(said.contains("2 real runs"), "{said}");
    // What the kernel would run instead is not raced under another's name.
    for (contestant, sentence) in [
        ("slow_start+vegas_like", "no congestion control \"vegas_like\"; it has"),
        ("jump_start+cubic", "the kernel's cubic begins with hystart"),
    ] {
        let none = flowstart(&["compare", "--real", "-C", contestant, "--no-report"]).output().unwrap();
        assert_eq!(none.status.code(), Some(3));
        assert!(text(&none.stderr).contains(sentence), "{}", text(&none.stderr));
    }
}

/// A second of a greedy connection whose kernel has much more to send, and 125 datagrams beside it.
const FULL: &str = r#"
duration = "1 s"
[path]
capacity = "20 Mbit/s"
rtt = "100 ms"
buffer = "500 kB"
[[flow]]
algorithm = "hystart+cubic"
[[udp]]
rate = "0.5 Mbit/s"
packet = "500 B"
"#;

/// A file of this text.
fn scenario(folder: &Path, name: &str, text: &str) -> String {
    let file = folder.join(name);
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// A folder in which `full.toml` has this text, and that file; none where nothing can be run.
fn full(text: &str) -> Option<(tempfile::TempDir, String)> {
    let folder = possible().then(|| tempfile::tempdir().unwrap())?;
    let file = scenario(folder.path(), "full.toml", text);
    Some((folder, file))
}

/// The document that a command printed which ended well.
fn printed(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// It lasted until everything had arrived that was on its way, and rates were of that.
#[test]
fn a_real_run_lasts_as_long_as_it_is_to() {
    // Long enough for a machine that stands still for some of it.
    let Some((_folder, file)) = full(&FULL.replace("\"1 s\"", "\"5 s\"")) else { return };
    let document = printed(&flowstart(&["run", &file, "--real", "--fidelity", "10s", "--json"]).output().unwrap());
    let run = &document["runs"][0];
    assert_eq!(run["duration_s"], 5.0, "{run}");
    let [tcp, udp] = [0, 1].map(|flow| document["flows"][flow].clone());
    assert!(tcp["bytes_delivered"].as_u64().unwrap() * 8 <= 5 * 20_000_000, "{tcp}");
    let number = |column: &str| udp[column].as_f64().unwrap();
    let goodput = number("bytes_delivered") * 8.0 / (5.0 - number("first_data_s"));
    assert!((number("goodput_bps") / goodput - 1.0).abs() < 0.01, "{udp}");
    assert!((1..=5 * 125 + 1).contains(&udp["data_segs_out"].as_u64().unwrap()), "{udp}");
    assert!(document["links"][0]["utilisation"].as_f64().unwrap() <= 1.0, "{}", document["links"][0]);
}

/// All that had been run was lost.
#[test]
fn a_run_that_fails_takes_none_of_those_before_along() {
    if Command::new("prlimit").arg("--version").output().is_err() {
        return;
    }
    let Some((_folder, file)) = full(FULL) else { return };
    let race = ["compare", "--real", "-C", "reno", "-n", "100kB", "--capacity", "20Mbit/s", "--no-report"];
    for arguments in [&["run", &file, "--real"][..], &race] {
        let more = ["--runs", "40", "--fidelity", "10s", "--json"];
        let child = flowstart(&[arguments, &more].concat()).spawn().unwrap();
        a_run_is_over(child.id());
        // From now on no world can be made.
        let limit = ["--pid", &child.id().to_string(), "--nofile=12:12"];
        assert!(Command::new("prlimit").args(limit).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(2 | 3)) && said.contains("Too many open files"), "{said}");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("what was finished");
        let runs = document["runs"].as_array().or_else(|| document["contestants"][0]["runs"].as_array());
        assert!(runs.is_some_and(|runs| (1..40).contains(&runs.len())), "{document:#}");
    }
}

/// Waits until a process has made the world of a later run than the first.
fn a_run_is_over(pid: u32) {
    if !matches!(privilege(), Ok(Privilege::Full)) {
        // Its worlds have no names.
        return sleep(Duration::from_secs(6));
    }
    let (mut worlds, until) = (BTreeSet::new(), Instant::now() + Duration::from_secs(200));
    while worlds.len() < 4 {
        assert!(Instant::now() < until, "{worlds:?}");
        // fs-PROCESS-START-SPACE-WORLD-HOST
        worlds.extend(names_of(pid).iter().filter_map(|name| name.split('-').nth(4).map(str::to_owned)));
        sleep(Duration::from_millis(20));
    }
}

/// Then there was no result either.
#[test]
fn captures_that_cannot_be_written_do_not_hide_what_was_measured() {
    let Some((folder, file)) = full(&FULL.replace("\"1 s\"", "\"6 s\"")) else { return };
    let captures = folder.path().join("captures");
    let arguments = ["run", &file, "--real", "--fidelity", "10s", "--json", "--pcap", captures.to_str().unwrap()];
    let child = flowstart(&arguments).spawn().unwrap();
    let inside = captures.join("full");
    wait_for(&inside);
    // Files are written without a name; it is at the end that they get one.
    let fds = format!("/proc/{}/fd", child.id());
    let writes = |file: fs::DirEntry| fs::read_link(file.path()).is_ok_and(|named| named.starts_with(&inside));
    let until = Instant::now() + Duration::from_secs(20);
    while !fs::read_dir(&fds).unwrap().flatten().any(writes) {
        assert!(Instant::now() < until, "nothing is written");
        sleep(Duration::from_millis(5));
    }
    fs::remove_dir_all(&captures).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("cannot write"), "{}", text(&output.stderr));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("what was measured");
    assert_eq!(document["flows"].as_array().unwrap().len(), 2);
}

/// The first was run, and lost.
#[test]
fn a_file_that_cannot_be_run_is_told_before_the_others_are() {
    let Some((folder, good)) = full(FULL) else { return };
    let bad = scenario(folder.path(), "bad.toml", &format!("{FULL}[[flow]]\nkernel = \"nothing\"\n"));
    let out = folder.path().join("out");
    let output = flowstart(&["run", &good, &bad, "--real", "--out", out.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(output.stdout.is_empty() && !out.exists(), "{}", text(&output.stdout));
}

/// The same algorithms over QUIC, one of them with two connections that carry one stream.
#[test]
#[cfg(feature = "quic")]
fn a_race_over_quic_has_the_measures_of_a_simulated_one() {
    if !possible() {
        return;
    }
    let contestants = "slow_start+cubic,adaptive_chirping+cubic,fair_queuing_probe+delay_or_cubic";
    let path = ["--capacity", "20Mbit/s", "--rtt", "20ms", "-n", "100kB", "--runs", "1", "--fidelity", "10s"];
    let output = flowstart(&["compare", "--quic", "-C", contestants, "--json"]).args(path).output().unwrap();
    let document = printed(&output);
    assert_eq!(document["parameters"]["quic"], true, "{document:#}");
    let simulated = flowstart(&["compare", "-C", contestants, "--json"]).args(&path[..6]).output().unwrap();
    let simulated: serde_json::Value = serde_json::from_slice(&simulated.stdout).unwrap();
    let both = [&document, &simulated].map(|one| one["contestants"].as_array().unwrap().clone());
    assert_eq!([both[0].len(), both[1].len()], [3, 3]);
    for (quic, simulated) in both[0].iter().zip(&both[1]) {
        let mean = |one: &serde_json::Value, measure: &str| one["summary"][measure]["mean"].as_f64();
        // Packets are encrypted: which of them repeat others nobody sees.
        for measure in ["retransmitted", "overhead_percent"] {
            assert_eq!((mean(quic, measure), mean(simulated, measure).is_some()), (None, true), "{measure}");
        }
        for measure in ["completion_100kb_ms", "delivered_20_rtts_mb", "delay_max_ms"] {
            let values = [mean(quic, measure), mean(simulated, measure)];
            assert!(values.iter().all(|value| value.is_some_and(|value| value > 0.0)), "{measure}: {values:?}");
        }
    }
    // ... and over the other stack.
    let output =
        flowstart(&["compare", "--quic", "--stack", "quinn", "-C", "cubic", "--json"]).args(path).output().unwrap();
    let other = printed(&output);
    assert_eq!([&document, &other].map(|one| one["parameters"]["stack"].as_str().unwrap()), ["noq", "quinn"]);
    let completion = &other["contestants"][0]["summary"]["completion_100kb_ms"]["mean"];
    assert!(completion.as_f64().is_some_and(|completion| completion > 0.0), "{other:#}");
}

/// Where large packets do not pass it says so and takes smaller ones; there was an RTT of zero.
#[test]
#[cfg(feature = "quic")]
fn a_look_through_a_tunnel_is_one_with_smaller_packets() {
    if !possible() || std::process::Command::new("ip").arg("-V").output().is_err() {
        let _ = writeln!(std::io::stderr(), "skipped: no `ip` to make a path narrow with");
        return;
    }
    let program = env!("CARGO_BIN_EXE_flowstart");
    let serve = format!("exec {program} serve --bind 0.0.0.0");
    let device = "$(ip route get $FLOWSTART_SERVER | sed -n 's/.* dev \\([^ ]*\\).*/\\1/p')";
    let look = format!("ip link set \"{device}\" mtu 1420 && exec {program} path server --insecure --json");
    let path = ["--capacity", "20Mbit/s", "--reverse-capacity", "20Mbit/s", "--rtt", "20ms", "--fidelity", "10s"];
    let output = emulate(&[&path[..], &["--server", &serve, "--", "sh", "-c", &look]].concat());
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(error.contains("packets of 1452 bytes seem not to arrive: a look with packets of 1200"), "{error}");
    let document = out.find("\n{").or_else(|| out.find('{')).map(|begins| &out[begins..]).unwrap_or_default();
    let read = serde_json::Deserializer::from_str(document).into_iter::<serde_json::Value>().next();
    let document = read.unwrap_or_else(|| panic!("{out}")).unwrap();
    assert_eq!(document["packet_bytes"], 1200);
    for way in ["down", "up"] {
        // A busy machine can be late by any time.
        let least = document[way]["rtt_least_ms"].as_f64();
        assert!(least.is_none_or(|least| least > 19.9), "{document:#}");
    }
}

/// Who does not run in a world is left out there with a word, and the other worlds have it.
#[test]
#[cfg(feature = "quic")]
fn one_race_in_three_worlds_is_one_table() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let rows = folder.path().join("rows.csv");
    let race = ["compare", "--worlds", "-C", "reno,jump_start+cubic", "--capacity", "20Mbit/s", "--rtt", "20ms"];
    let output = flowstart(&[&race[..], &["-n", "100kB", "--runs", "1", "--fidelity", "10s", "--json", "-o"]].concat())
        .arg(&rows)
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("kernel: left out: jump_start+cubic: the kernel's cubic begins with hystart"), "{said}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let labels = |world: &str| {
        let contestants = document["worlds"][world]["contestants"].as_array().unwrap().iter();
        contestants.map(|contestant| contestant["label"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(labels("kernel"), ["slow_start+reno"]);
    for world in ["simulator", "QUIC"] {
        assert_eq!(labels(world), ["slow_start+reno", "jump_start+cubic"]);
    }
    let rows = fs::read_to_string(&rows).unwrap();
    let rows: Vec<&str> = rows.lines().filter(|line| line.contains("+reno,") || line.contains("+cubic,")).collect();
    assert_eq!(rows.len(), 5, "{rows:?}");
}

#[test]
fn what_the_kernel_does_not_do_is_said_or_refused() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("short.toml");
    let path = "duration = \"200 ms\"\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"10 ms\"\n";
    fs::write(&file, format!("{path}[[flow]]\nalgorithm = \"hystart_plus_plus+reno\"\ninitial_window = 60\n")).unwrap();
    let real =
        |file: &Path| flowstart(&["run", "--real", "--fidelity", "10s", file.to_str().unwrap()]).output().unwrap();
    let said = text(&real(&file).stderr);
    assert!(
        said.contains("the kernel's reno begins with slow_start") && said.contains("flow[0].initial_window"),
        "{said}"
    );
    let arrivals =
        "[[arrivals]]\nmean_gap = \"1 us\"\nsizes = { kind = \"fixed\", size = \"10 kB\" }\n[arrivals.flow]\n";
    fs::write(&file, format!("{path}{arrivals}")).unwrap();
    let refused = real(&file);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("more than 20000 transfers"), "{}", text(&refused.stderr));
}
