//! Attainable rates of the kernel.

use std::collections::BTreeSet;

use super::*;

/// A probe of some seconds, alone on a path of 5 Mbit/s.
const SHORT: &[&str] = &[
    "benchmark",
    "--capacity",
    "5Mbit/s",
    "--rtt",
    "20ms",
    "--peers",
    "0",
    "--step",
    "2Mbit/s",
    "--samples",
    "20",
    "--epsilon",
    "5 %",
    "--warm-up",
    "500ms",
    "--least",
    "1s",
    "--lasting",
    "3s",
    "--json",
];

fn document(arguments: &[&str]) -> serde_json::Value {
    let output = flowstart(&[SHORT, arguments].concat()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_kernel_is_probed_and_its_delays_read_back_are_judged_the_same() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("delays.csv");
    let file = file.to_str().unwrap();
    let arguments = [SHORT, &["--real", "reno", "--fidelity", "10s", "--delays", file]].concat();
    let ran = flowstart(&arguments).output().unwrap();
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let real: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    let result = &real["results"][0];
    assert_eq!((&real["complete"], &real["parameters"]["real"][0]), (&true.into(), &"reno".into()));
    assert_eq!(result["label"], "reno (kernel)");
    let probes = result["probes"].as_array().unwrap();
    assert_eq!(probes.len(), 2, "2 and 4 Mbit/s");
    // By the command that was printed.
    let said = text(&ran.stderr);
    let command = said.split("read back with: flowstart ").nth(1).and_then(|rest| rest.lines().next());
    let words = shlex::split(command.unwrap_or_else(|| panic!("{said}"))).unwrap();
    let words: Vec<&str> = words.iter().map(String::as_str).chain(["--json"]).collect();
    let again: serde_json::Value = serde_json::from_slice(&flowstart(&words).output().unwrap().stdout).unwrap();
    for (probe, again) in probes.iter().zip(again["results"][0]["probes"].as_array().unwrap()) {
        // Half of the base RTT, and the transmission of a full packet.
        assert!(probe["parts"]["network"]["mean_s"].as_f64().unwrap() >= 0.010 + 1500.0 * 8.0 / 5e6, "{probe}");
        for key in ["verdict", "packets", "quantile_s", "dfgls", "runs_z", "parts"] {
            assert_eq!(probe[key], again[key], "{key}");
        }
    }
    // The socket's own stamps are a second witness of when messages left, where there are any.
    let stamps = &real["real_paths"]["socket_stamps"];
    if stamps["refused"].is_null() {
        let [messages, stamped] = ["messages", "stamped"].map(|key| stamps[key].as_u64().unwrap());
        // Those that wait together have one stamp, and where the machine stands still many wait.
        assert!((1..=messages).contains(&stamped) && stamped * 20 > messages, "{stamps}");
        // A processor that is taken away between the two moves one message in many.
        assert!(stamps["apart_p50_s"].as_f64().unwrap() < 0.001, "{stamps}");
    }
    let rows = fs::read_to_string(file).unwrap();
    assert!(rows.starts_with("rate_bps,sent_ns,left_ns,arrived_ns,received_ns\n2000000,"), "{}", &rows[..90]);
}

#[test]
fn a_control_that_the_kernel_lacks_is_refused_with_those_it_has() {
    let output = flowstart(&[SHORT, &["--real", "cubic,no_such"]].concat()).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no congestion control \"no_such\"; known are ") && said.lines().count() == 1, "{said}");
    let output = flowstart(&[SHORT, &["--at-once", "2"]].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "only with --real");
}

#[test]
fn ctrl_c_ends_a_benchmark_and_leaves_no_namespace() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut child = flowstart(&["benchmark", "--real", "cubic", "--no-report"]).current_dir(&folder).spawn().unwrap();
    let pid = child.id();
    // Its worlds have names only with root.
    let named = matches!(privilege(), Ok(Privilege::Full));
    let until = Instant::now() + Duration::from_secs(20);
    while named && names_of(pid).len() < 12 && Instant::now() < until {
        sleep(Duration::from_millis(20));
    }
    computing::wait_until_computed(&child, 0.0);
    send("-INT", pid);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(names_of(pid), Vec::<String>::new());
}

/// A program that sends what nobody takes and writes an invented record: messages at {rate} bit/s
/// for {seconds} s, each of which takes 31 ms.
const PROGRAM: &str = "bash -c 'exec 2>/dev/null; exec 3>/dev/udp/$FLOWSTART_SERVER/9; \
                       for ((n = {seconds} * {rate} / 11584; n > 0; n--)); do printf %1448s >&3; done'; \
                       echo sent_us,left_us,arrived_us,received_us; gap=$((1448 * 8000000 / {rate})); n=0; \
                       while [ $n -lt $(({seconds} * 1000000 / gap)) ]; do at=$((n * gap)); \
                       echo $at,$((at + 1000)),$((at + 21000)),$((at + 31000)); n=$((n + 1)); done; \
                       sleep {seconds}; sleep 0.2";

#[test]
fn a_program_is_judged_by_the_record_that_it_writes() {
    if !possible() {
        return;
    }
    let real = document(&["--command", PROGRAM, "--fidelity", "10s"]);
    for probe in real["results"][0]["probes"].as_array().unwrap() {
        assert_eq!(probe["verdict"], "accepted: constant delays");
        assert_eq!(probe["quantile_s"], 0.031);
        let mean = |part: &str| probe["parts"][part]["mean_s"].as_f64().unwrap();
        for (part, seconds) in [("sender", 0.001), ("network", 0.020), ("receiver", 0.010)] {
            assert!((mean(part) / seconds - 1.0).abs() < 0.02, "{part}: {}", mean(part));
        }
    }
    // Nobody can see in its times that it sent nothing, or not all, but nothing left its host.
    let invented = PROGRAM.replace("n > 0; n--", "n > 0; n = 0");
    let output = flowstart(&[SHORT, &["--command", &invented, "--fidelity", "10s"]].concat()).output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(2) && output.stdout.is_empty(), "{said}");
    assert!(said.contains("at 2 Mbit/s: the record that the command wrote has 690 messages"), "{said}");
    assert!(said.contains("of 1448 bytes, and ") && said.contains(" left its host"), "{said}");
    let refused = |line: &str| {
        let output = flowstart(&[SHORT, &["--command", line]].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    // It is told at once, not after the others on the path have run for as long as they should.
    let others = |word| match word {
        "0" => "2",
        "500ms" => "300s",
        "2Mbit/s" => "1Mbit/s",
        word => word,
    };
    let beside: Vec<&str> = SHORT.iter().copied().map(others).collect();
    for (line, part) in [
        ("false {rate} {seconds}", "at 1 Mbit/s: the command failed (exit status: 1)"),
        ("echo nothing {rate} {seconds}", "the record that the command wrote has no column sent_ns"),
        (": {rate} {seconds}; yes", "a record has a line per message"),
        (": {rate} {seconds}; echo sent_ns,received_ns", "the command wrote no record"),
    ] {
        let began = Instant::now();
        let output = flowstart(&[&beside[..], &["--command", line]].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(part), "{}", text(&output.stderr));
        assert!(began.elapsed() < Duration::from_secs(100), "{line}: {:?}", began.elapsed());
    }
    assert!(refused("probe {rate}").contains("the command does not say where {seconds} goes"));
    // Records of what cannot have been.
    let early = PROGRAM.replace("sleep {seconds}; sleep 0.2", "true");
    let said = refused(&early);
    assert!(said.contains("s, but the command ran for ") && said.contains(" s only"), "{said}");
    let slow = PROGRAM.replace("gap=$((1448 *", "gap=$((3 * 1448 *");
    assert!(
        refused(&slow).contains("are more, and a rate can be accepted only if it was offered"),
        "{}",
        refused(&slow)
    );
    let soon = PROGRAM.replace("at + 21000", "at + 2000").replace("at + 31000", "at + 3000");
    let said = refused(&soon);
    assert!(said.contains("there after 3 ms; over this path nothing is before 10 ms have passed"), "{said}");
    let back = "sleep {seconds}; echo sent_s,received_s; echo 0,0.1; echo 0.2,0.1; : {rate}";
    assert!(refused(back).contains("in row 2: received before it was sent"), "{}", refused(back));
    let other = "echo rate_bps,sent_s,received_s; echo 1000000,0,0.1; : {rate} {seconds}";
    assert!(refused(other).contains("is one of 1 Mbit/s, not of 2 Mbit/s"), "{}", refused(other));
}

#[test]
fn a_benchmark_that_fails_before_anything_is_finished_leaves_no_folder_behind() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new").join("results");
    let failing = ["--command", "false {rate} {seconds}", "--out", out.to_str().unwrap()];
    let output = flowstart(&[SHORT, &failing].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(!folder.path().join("new").exists(), "{:?}", fs::read_dir(folder.path().join("new")));
    // What was there before stays.
    fs::create_dir_all(&out).unwrap();
    fs::write(out.join("notes.txt"), "mine").unwrap();
    assert_eq!(flowstart(&[SHORT, &failing].concat()).output().unwrap().status.code(), Some(2));
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
}

#[test]
fn ctrl_c_is_no_failure_of_a_server_that_is_waited_for() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let started = folder.path().join("started");
    let server = format!("touch '{}'; sleep 1000", started.display());
    let mut command =
        flowstart(&[SHORT, &["--command", "sleep 1000; : {rate} {seconds}", "--server", &server]].concat());
    let child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    wait_for(&started);
    send("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(130) && said.contains("interrupted before anything was finished"), "{said}");
    assert!(!said.contains("error"), "{said}");
}

#[test]
fn rates_that_were_finished_are_kept_when_a_higher_one_fails_and_nothing_is_called_accepted_that_was_not_probed() {
    if !possible() {
        return;
    }
    let line = format!("if [ {{rate}} -gt 3000000 ]; then exit 7; fi; {PROGRAM}");
    let output = flowstart(&[SHORT, &["--command", &line, "--fidelity", "10s", "--at-once", "1"]].concat()).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("at 4 Mbit/s: the command failed (exit status: 7)"));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let result = &document["results"][0];
    assert_eq!((&document["complete"], &result["long_term_rate_bps"]), (&false.into(), &2_000_000.into()));
    assert_eq!(result["end"], serde_json::json!({ "reason": "undecided", "rate_bps": 4_000_000 }));
    assert!(document["real_paths"]["late_p99_s"].is_number());
}

#[test]
fn what_was_finished_is_not_probed_again() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let arguments = ["--real", "reno", "--fidelity", "10s", "--out", out.to_str().unwrap()];
    let first = document(&arguments);
    let again = |more: &[&str]| {
        let output = flowstart(&[SHORT, &arguments, &["--resume"], more].concat()).output().unwrap();
        (output.status.code(), output.stdout, text(&output.stderr))
    };
    let (status, printed, said) = again(&[]);
    assert!(status == Some(0) && said.contains("rates that were finished before: 2"), "{said}");
    let second: serde_json::Value = serde_json::from_slice(&printed).unwrap();
    for key in ["probes", "attainable_rate", "label"] {
        assert_eq!(first["results"][0][key], second["results"][0][key], "{key}");
    }
    let files = || {
        let files = fs::read_dir(out.join("finished")).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|file| file.extension().is_some_and(|ending| ending == "csv")).collect::<Vec<_>>()
    };
    fs::remove_file(&files()[0]).unwrap();
    let (status, _, said) = again(&[]);
    assert!(status == Some(0) && said.contains("rates that were finished before: 1"), "{said}");
    assert_eq!(files().len(), 2);
    let (status, _, said) = again(&["--seed", "7"]);
    assert!(status == Some(2) && said.contains("with other options"), "{said}");
    // One rate's file in the place of another's.
    let slow = files().into_iter().find(|file| file.to_string_lossy().contains("-2000000bps")).unwrap();
    let kept = fs::read(&slow).unwrap();
    fs::copy(slow.to_string_lossy().replace("-2000000bps", "-4000000bps"), &slow).unwrap();
    let (status, _, said) = again(&[]);
    assert!(status == Some(2) && said.contains("-2000000bps.csv: it was measured at 4 Mbit/s"), "{said}");
    // A file that was cut where a line ends, and one that somebody wrote into.
    let text_of = String::from_utf8(kept.clone()).unwrap();
    let rows = text_of.lines().count() - 1;
    let cut: String = text_of.lines().take(101).map(|line| format!("{line}\n")).collect();
    fs::write(&slow, cut).unwrap();
    let (status, _, said) = again(&[]);
    assert!(status == Some(2) && said.contains(&format!("bps.csv: it has 100 of the {rows} rows")), "{said}");
    assert!(said.contains("remove it to have the rate probed again"), "{said}");
    let last = text_of.trim_end().rsplit(',').next().unwrap();
    fs::write(&slow, text_of.replace(last, &(last.parse::<u64>().unwrap() + 1).to_string())).unwrap();
    let (status, _, said) = again(&[]);
    assert!(status == Some(2) && said.contains("bps.csv: it is not as it was written"), "{said}");
    // Of one that nobody vouches for nothing is known.
    fs::write(&slow, &kept).unwrap();
    let seal = slow.with_extension("json");
    let sealed = fs::read(&seal).unwrap();
    fs::remove_file(&seal).unwrap();
    let (status, _, said) = again(&[]);
    assert!(status == Some(0) && said.contains("rates that were finished before: 1"), "{said}");
    fs::write(&slow, kept).unwrap();
    fs::write(&seal, sealed).unwrap();
    fs::write(&files()[0], "nothing\n").unwrap();
    let (status, _, said) = again(&[]);
    assert!(status == Some(2) && said.contains("leave --resume out to begin anew"), "{said}");
    // Without --resume it begins anew, and takes away nothing but its own.
    fs::write(out.join("finished/notes.txt"), "mine").unwrap();
    let output = flowstart(&[SHORT, &arguments].concat()).output().unwrap();
    assert!(output.status.code() == Some(2) && text(&output.stderr).contains("notes.txt is in the way"));
    fs::remove_file(out.join("finished/notes.txt")).unwrap();
    assert_eq!(document(&arguments)["complete"], true);
    let output = flowstart(&[SHORT, &["--real", "reno", "--resume"]].concat()).output().unwrap();
    assert!(output.status.code() == Some(2) && text(&output.stderr).contains("name it with --out"));
}

/// The second had the first one's figures, for both are called `bash`.
#[test]
fn another_program_of_the_same_name_is_probed_anew() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let run = |command: &str, more: &[&str]| {
        let arguments = ["--command", command, "--fidelity", "10s", "--out", out.to_str().unwrap()];
        let output = flowstart(&[SHORT, &arguments, more].concat()).output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    let (status, said) = run(PROGRAM, &[]);
    assert_eq!(status, Some(0), "{said}");
    let (status, said) = run("bash -c 'exit 7' # {rate} {seconds}", &["--resume"]);
    assert!(status == Some(2) && said.contains("the command failed"), "{said}");
    let (status, said) = run(PROGRAM, &["--resume"]);
    assert!(status == Some(0) && said.contains("rates that were finished before: 2"), "{said}");
}

/// It was one when it was taken from what was kept.
#[test]
fn a_path_that_was_not_faithful_is_none_when_it_is_resumed() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let arguments = ["--real", "reno", "--fidelity", "1ns", "--out", out.to_str().unwrap()];
    let run = |more: &[&str]| {
        let output = flowstart(&[SHORT, &arguments, more].concat()).output().unwrap();
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), document["real_paths"].clone(), text(&output.stderr))
    };
    let (status, paths, said) = run(&[]);
    assert!(status == Some(4) && paths["count"] == 2, "{paths}: {said}");
    let (status, again, said) = run(&["--resume"]);
    assert!(said.contains("rates that were finished before: 2"), "{said}");
    assert_eq!((status, again), (Some(4), paths), "{said}");
}

/// Not told apart there: what the network takes, for packets are encrypted.
#[test]
#[cfg(feature = "quic")]
fn contestants_are_probed_over_quic() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("delays.csv");
    let delays = ["--delays", file.to_str().unwrap()];
    let real = document(&[&["--quic", "cubic,slow_start+reno", "--fidelity", "10s"][..], &delays].concat());
    let mut written: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    written.sort();
    assert_eq!(written.len(), 2, "{written:?}");
    for file in written {
        // What has been read has left and arrived, all of it.
        let text = fs::read_to_string(file).unwrap();
        assert!(text.starts_with("rate_bps,sent_ns,left_ns,arrived_ns,received_ns\n"), "{text}");
        assert!(!text.contains(",,"), "{text}");
        // None before it was due and on its way for half of the base RTT, so there are no more than
        // were due, however long the machine took for the handshake.
        for line in text.lines().skip(1) {
            let times: Vec<u64> = line.split(',').skip(1).map(|time| time.parse().unwrap()).collect();
            assert!(times[3] >= times[0] + 10_000_000, "{line}");
        }
        let sent = text.lines().skip(1).map(|line| line.split(',').take(2).collect::<Vec<_>>());
        assert_eq!(sent.clone().collect::<BTreeSet<_>>().len(), sent.count(), "each is there once");
    }
    for (result, label) in
        real["results"].as_array().unwrap().iter().zip(["hystart+cubic (QUIC)", "slow_start+reno (QUIC)"])
    {
        assert_eq!(result["label"], label);
        let probes = result["probes"].as_array().unwrap();
        assert_eq!(probes.len(), 2, "2 and 4 Mbit/s");
        for probe in probes {
            // A machine that is busy otherwise can be late by any time, so nothing is an upper
            // bound of a delay, and few of the messages may have left. No delay is below half of
            // the base RTT and the transmission of a full packet.
            if let Some(delay) = probe["quantile_s"].as_f64() {
                assert!(delay >= 0.010 + 1500.0 * 8.0 / 5e6, "{label}: {probe}");
            }
            assert!(probe["verdict"].is_string(), "{label}: {probe}");
            // The path knows the datagrams again that the sender says messages ended in.
            if let Some(network) = probe["parts"]["network"]["mean_s"].as_f64() {
                assert!(network >= 0.010 + 300.0 * 8.0 / 5e6, "{label}: {probe}");
            } else {
                assert_eq!(probe["parts"], serde_json::Value::Null, "{label}: {probe}");
                assert_eq!(
                    probe["samples"].as_u64().unwrap_or(0),
                    0,
                    "{label}: nothing tells where delays arise: {probe}"
                );
            }
        }
    }
    let other = document(&["--quic", "cubic", "--stack", "quinn", "--fidelity", "10s"]);
    assert_eq!(other["results"][0]["label"], "hystart+cubic (QUIC, quinn)");
    assert_ne!(other["results"][0]["probes"][0]["packets"], 0, "{other:#}");
    let output = flowstart(&[SHORT, &["--quic", "quick_start+cubic"]].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no room for a request to the routers"), "{}", text(&output.stderr));
}

#[test]
fn what_only_simulations_do_and_what_the_kernel_cannot_is_refused() {
    for (arguments, part) in [
        (vec!["--real", "reno", "--on", "codel"], "--on is for simulated contestants"),
        (vec!["--real", "reno", "--joint", "20"], "--joint is for simulated contestants"),
        (vec!["--real", "reno,reno"], "reno (kernel) is to be measured twice"),
        (vec!["--real", "reno", "--background", "search+cubic"], "the kernel's cubic begins with hystart"),
        (vec!["--real", "reno", "--capacity", "1Mbit/s"], "the highest is 1.2 fair shares, 1 Mbit/s"),
        (
            vec!["--real", "reno", "--figure", "nosuch", "-o", "no.svg"],
            "there is no figure \"nosuch\"; there are: Attainable rate, Delay bound of a video, Delays, reno (kernel)",
        ),
    ] {
        let mut all: Vec<&str> = SHORT.to_vec();
        if arguments.contains(&"--capacity") {
            all.drain(1..3);
        }
        let output = flowstart(&[all, arguments].concat()).output().unwrap();
        let said = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(2 | 3)) && said.lines().count() == 1, "{said}");
        assert!(said.contains(part), "{part}: {said}");
    }
}
