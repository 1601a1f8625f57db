//! `serve`, `fetch` and `path` over loopback, and what they say when something is wrong.
#![cfg(feature = "quic")]

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStderr, Command, Stdio};

#[cfg(unix)]
#[path = "support/computing.rs"]
mod computing;

fn flowstart() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("flowstart"))
}

/// A server that ends with the test.
struct Server {
    child: Child,
    port: String,
    fingerprint: String,
    /// What it says of its clients.
    news: Lines<BufReader<ChildStderr>>,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let mut command = flowstart();
        let port: &[&str] = if arguments.contains(&"--port") { &[] } else { &["--port", "0"] };
        command.arg("serve").args(port).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.next().unwrap().unwrap().rsplit(':').next().unwrap().to_owned();
        let fingerprint = lines.next().unwrap().unwrap().rsplit(' ').next().unwrap().to_owned();
        let news = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, port, fingerprint, news }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Status, standard output and standard error.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = flowstart().args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn transfers_both_ways_are_whole_and_a_file_arrives() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), b"what a file has").unwrap();
    let server = Server::start(&["--root", folder.path().to_str().unwrap()]);
    let port = server.port.as_str();
    for more in [&["-R"][..], &[], &["-P", "4"], &["-C", "fair_queuing_probe+delay_or_cubic"]] {
        let mut arguments = vec!["fetch", "127.0.0.1", "-p", port, "-n", "3MB", "--json"];
        arguments.extend_from_slice(more);
        let (status, out, error) = run(&arguments);
        assert_eq!(status, Some(0), "{more:?}: {error}");
        let document: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(document["received"]["bytes"], 3_000_000, "{more:?}");
        assert_eq!(document["received"]["intact"], true, "{more:?}");
        assert_eq!(document["fingerprint"], server.fingerprint.as_str());
    }
    let out = folder.path().join("b.txt");
    let out = out.to_str().unwrap();
    let (status, _, error) = run(&["fetch", "127.0.0.1", "-p", port, "--file", "a.txt", "-o", out]);
    assert_eq!(status, Some(0), "{error}");
    assert_eq!(std::fs::read(out).unwrap(), b"what a file has");
    let (status, _, error) = run(&["fetch", "127.0.0.1", "-p", port, "--file", "../a.txt", "-o", out]);
    assert_eq!((status, error.lines().count()), (Some(2), 1), "{error}");
    let (status, text, error) = run(&["path", "127.0.0.1", "-p", port]);
    assert_eq!(status, Some(0), "{error}");
    // A busy machine may leave it undecided, and that is said.
    let first = text.lines().next().unwrap();
    assert!(first.contains(" Mbit/s") && first.contains(" down and ") && first.contains(" up, "), "{text}");
}

/// A name that is an address of each family, of which the server is at the second alone.
#[test]
#[cfg(target_os = "linux")]
fn of_a_name_with_several_addresses_that_is_taken_which_answers() {
    let folder = tempfile::tempdir().unwrap();
    let hosts = folder.path().join("hosts");
    std::fs::write(&hosts, "127.0.0.1 two.invalid\n::1 two.invalid\n").unwrap();
    let with_hosts = |program: &str, arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", "mount --bind \"$0\" /etc/hosts && exec \"$@\""]);
        command.arg(&hosts).arg(program).args(arguments);
        command.output().map(|output| (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned()))
    };
    let found = with_hosts("getent", &["ahosts", "two.invalid"]);
    if !found.is_ok_and(|(status, _)| status == Some(0)) || std::net::UdpSocket::bind("[::1]:0").is_err() {
        eprintln!("skipped: needs namespaces and IPv6");
        return;
    }
    let run = |arguments: &[&str]| {
        with_hosts(assert_cmd::cargo::cargo_bin!("flowstart").to_str().unwrap(), arguments).unwrap()
    };
    let server = Server::start(&["--bind", "::1"]);
    let port = server.port.as_str();
    for command in [&["fetch", "-n", "1kB"][..], &["path"]] {
        let said = run(&[command, &["two.invalid", "-p", port]].concat());
        assert_eq!(said.0, Some(0), "{command:?}: {}", said.1);
    }
    // Whoever answers is known by the fingerprint, and nobody else is asked then.
    for (fingerprint, status) in [(server.fingerprint.clone(), 0), ("00".repeat(32), 2)] {
        let said = run(&["fetch", "two.invalid", "-p", port, "-n", "1kB", "--fingerprint", &fingerprint]);
        assert_eq!(said.0, Some(status), "{}", said.1);
        assert_eq!(said.1.contains(&format!("[::1]:{port} is not the server expected")), status > 0, "{}", said.1);
    }
    let (status, error) = run(&["fetch", "two.invalid", "-p", "9", "-n", "1kB"]);
    let says = "none of the addresses of two.invalid answers: 127.0.0.1:9 (nobody listens), [::1]:9 (nobody listens)";
    assert!(status == Some(2) && error.contains(says), "{error}");
}

/// As with curl's option of that name.
#[test]
fn a_transfer_that_is_not_over_in_its_most_time_is_given_up() {
    let server = Server::start(&[]);
    let fetch = |more: &[&str]| {
        let began = std::time::Instant::now();
        let said = run(&[&["fetch", "127.0.0.1", "-p", &server.port], more].concat());
        (said, began.elapsed().as_secs_f64())
    };
    for option in ["--most-time", "--max-time", "-m"] {
        // On a busy machine there may be no connection by then, and nothing to tell of.
        let document = [0.5, 2.0, 10.0].iter().find_map(|seconds| {
            let ((status, out, error), took) = fetch(&["-t", "60", option, &seconds.to_string(), "--json"]);
            assert!(
                status == Some(2) && error.contains(&format!("was not over after {seconds} s (--most-time)")),
                "{error}"
            );
            assert!(took >= *seconds, "{took}");
            let document = serde_json::from_str::<serde_json::Value>(&out).ok();
            document.filter(|document| document["received"]["bytes"].as_u64() > Some(0))
        });
        let document = document.unwrap();
        assert_eq!(document["interrupted"], true, "{document}");
    }
    let ((status, _, error), _) = fetch(&["-n", "1MB", "-m", "30"]);
    assert_eq!(status, Some(0), "{error}");
    let ((status, _, error), _) = fetch(&["-m", "0"]);
    assert!(status == Some(2) && error.contains("--most-time is above zero"), "{error}");
}

#[test]
fn either_stack_serves_and_fetches_over_loopback() {
    for server_of in ["noq", "quinn"] {
        let server = Server::start(&["--stack", server_of]);
        for client_of in ["noq", "quinn"] {
            for more in [&[][..], &["-R"], &["-C", "fair_queuing_probe+delay_or_cubic"]] {
                let mut arguments = vec!["fetch", "127.0.0.1", "-p", &server.port, "-n", "1MB", "--json"];
                arguments.extend_from_slice(&["--stack", client_of, "--fingerprint", &server.fingerprint]);
                arguments.extend_from_slice(more);
                let (status, out, error) = run(&arguments);
                assert_eq!(status, Some(0), "{server_of}, {arguments:?}: {error}");
                let document: serde_json::Value = serde_json::from_str(&out).unwrap();
                assert_eq!(document["received"]["bytes"], 1_000_000, "{server_of}, {arguments:?}");
                assert_eq!(document["stack"], client_of, "that of this end");
            }
        }
    }
}

/// The events of the only qlog of one side in a folder.
fn logged(folder: &std::path::Path, side: &str) -> Vec<serde_json::Value> {
    let ours = |path: &std::path::PathBuf| path.to_string_lossy().ends_with(&format!("-{side}.qlog"));
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(ours).collect();
    assert_eq!(files.len(), 1, "{side}: {files:?}");
    let text = std::fs::read_to_string(files.remove(0)).unwrap();
    // JSON text sequences (RFC 7464).
    text.split('\u{1e}').skip(1).map(|record| serde_json::from_str(record).unwrap()).collect()
}

#[test]
fn both_ends_log_the_packets_of_a_transfer() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    let logs = logs.to_str().unwrap();
    let server = Server::start(&["--qlog", logs]);
    let (status, _, error) = run(&["fetch", "127.0.0.1", "-p", &server.port, "-n", "300kB", "-R", "--qlog", logs]);
    assert_eq!(status, Some(0), "{error}");
    let small = folder.path().join("small");
    let most = ["--qlog", small.to_str().unwrap(), "--qlog-most", "50kB"];
    let (status, _, error) =
        run(&[&["fetch", "127.0.0.1", "-p", &server.port, "-n", "300kB", "-R"], &most[..]].concat());
    assert_eq!((status, error.matches("logs end at 50 kB in all").count()), (Some(0), 1), "{error}");
    let ended = logged(&small, "client");
    assert_eq!(ended.last().unwrap()["name"], "loglevel:warning");
    drop(server);
    let named = |events: &[serde_json::Value], name: &str| {
        events.iter().filter(|event| event["name"].as_str().is_some_and(|given| given.ends_with(name))).count()
    };
    let client = logged(folder.path().join("logs").as_path(), "client");
    // 300 kB are 207 packets of 1452 bytes at least.
    let sent = named(&client, "packet_sent");
    assert!(sent >= 207, "{sent} packets sent");
    assert!(named(&client, "packets_acked") >= 207);
    let windows: Vec<u64> = client.iter().filter_map(|event| event["data"]["congestion_window"].as_u64()).collect();
    assert!(windows.iter().max() > windows.first(), "{windows:?}");

    let taken = folder.path().join("taken");
    std::fs::write(&taken, b"").unwrap();
    let (status, _, error) = run(&["fetch", "127.0.0.1", "-n", "1kB", "--qlog", taken.to_str().unwrap()]);
    assert_eq!((status, error.lines().count()), (Some(2), 1), "{error}");
}

#[test]
fn what_is_known_of_a_path_is_told_to_a_start_that_resumes_and_to_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let [known, results] = ["paths.json", "result.json"].map(|name| folder.path().join(name));
    let seen = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let entry = serde_json::json!({ "bytes": 200_000, "rtt_ns": 50_000, "seen": seen });
    let document = serde_json::json!({ "version": 1, "places": { "127.0.0.1": entry, "192.0.2.7": entry } });
    std::fs::write(&known, document.to_string()).unwrap();
    let file = known.to_str().unwrap();
    let told = serde_json::json!({ "bytes": 200_000, "rtt": 50_000 });
    for (start, down, resumed) in [
        ("careful_resume+cubic", true, &told),
        ("careful_resume+cubic", false, &told),
        ("slow_start+cubic", true, &serde_json::Value::Null),
    ] {
        // The server knows what it read; this end reads the file each time.
        std::fs::write(&known, document.to_string()).unwrap();
        let server = if down { Server::start(&["--memory", file]) } else { Server::start(&[]) };
        let size = ["fetch", "127.0.0.1", "-p", &server.port, "-n", "60kB", "-C", start];
        let up = ["-R", "--memory", file, "-o", results.to_str().unwrap()];
        let arguments = if down { [&size[..], &up[3..]].concat() } else { [&size[..], &up[..]].concat() };
        let (status, out, error) = run(&arguments);
        assert_eq!(status, Some(0), "{error}");
        let document: serde_json::Value = serde_json::from_slice(&std::fs::read(&results).unwrap()).unwrap();
        assert_eq!(document["report"]["resumed"], *resumed, "{start} {down}: {out}");
        assert!(out.contains(if resumed.is_null() { "resumed         not" } else { "from 200 kB" }), "{out}");
    }
    // What another place taught stays, whatever was learnt here.
    let kept: serde_json::Value = serde_json::from_slice(&std::fs::read(&known).unwrap()).unwrap();
    assert_eq!(kept["places"]["192.0.2.7"], entry, "{kept}");
    // A file that somebody made for it is one in which nothing is known yet.
    std::fs::write(&known, "").unwrap();
    let server = Server::start(&[]);
    let (status, _, error) = run(&["fetch", "127.0.0.1", "-p", &server.port, "-n", "60kB", "-R", "--memory", file]);
    assert_eq!(status, Some(0), "{error}");
    std::fs::write(&known, "[]").unwrap();
    for (arguments, word) in [
        (&["fetch", "127.0.0.1", "--memory", file][..], "at `serve`"),
        (
            &["fetch", "127.0.0.1", "-R", "--memory", file],
            "paths.json is no memory of flowstart's: from line 1, column 2 on it is not what is written into one; name",
        ),
        (&["fetch", "127.0.0.1", "-R", "--memory", file, "--memory-lifetime", "0s"], "above zero"),
        (&["serve", "--port", "0", "--memory", "/nowhere/paths.json"], "there is no folder /nowhere"),
        (&["fetch", "127.0.0.1", "-R", "--memory", "/dev/zero"], "no memory of flowstart's"),
        (&["serve", "--port", "0", "--memory-lifetime", "1s"], "--memory <FILE>"),
        (&["serve", "--port", "0", "--memory-growth", "2"], "--memory <FILE>"),
        (&["fetch", "127.0.0.1", "-R", "--memory", file, "--memory-standing", "1"], "1 is not in 2..=16"),
        (&["fetch", "127.0.0.1", "-R", "--memory", file, "--memory-standing", "17"], "17 is not in 2..=16"),
        (
            &["fetch", "127.0.0.1", "-R", "--memory", file, "--memory-growth", "0.5"],
            "--memory-growth: \"0.5\" is no number between 1 and 1000",
        ),
        (
            &["serve", "--port", "0", "--memory", file, "--memory-growth", "nan"],
            "\"nan\" is no number between 1 and 1000",
        ),
        (&["fetch", "127.0.0.1", "-o", "result.html"], "known are .json"),
    ] {
        let (status, _, error) = run(arguments);
        assert!(status == Some(2) && error.contains(word), "{arguments:?}: {error}");
    }
}

#[test]
fn what_is_wrong_is_one_sentence() {
    let server = Server::start(&[]);
    let port = server.port.as_str();
    let other = "00".repeat(32);
    for (arguments, says) in [
        (vec!["fetch", "no.such.host.invalid"], "no host"),
        (vec!["fetch", "192.0.2.1"], "--fingerprint"),
        (vec!["fetch", "localhost:4433", "-p", "4434"], "the port is named twice, 4433 in localhost:4433 and 4434"),
        (vec!["path", "127.0.0.1:9"], "nobody listens"),
        (vec!["fetch", "[127.0.0.1]:9"], "is not HOST or HOST:PORT"),
        (vec!["fetch", "127.0.0.1", "-p", "0"], "0 is not in 1..=65535"),
        (vec!["path", "127.0.0.1", "-p", "65536"], "65536 is not in 1..=65535"),
        (vec!["serve", "--most-bytes", "0B"], "nobody could be served"),
        (vec!["serve", "--peer-time", "0s"], "nobody could be served"),
        (vec!["serve", "--connections", "0"], "0 is less than 1"),
        (vec!["fetch", "127.0.0.1", "-C", "cubic/linux"], "leave out \"/linux\""),
        (vec!["fetch", "127.0.0.1", "-C", "cubic/ns3"], "leave out \"/ns3\""),
        (vec!["fetch", "127.0.0.1", "-C", "quick_start+cubic"], "no room for a request"),
        (vec!["fetch", "127.0.0.1", "--file", "x", "-t", "1s", "-o", "x"], "cannot be used with"),
        (vec!["fetch", "127.0.0.1", "-C", "cubic@codel"], "leave out what follows @"),
        (vec!["fetch", "127.0.0.1", "-p", port, "--fingerprint", "12"], "not a fingerprint"),
        (vec!["fetch", "127.0.0.1", "-p", port, "--fingerprint", &other], "not the server expected"),
        (vec!["fetch", "127.0.0.1", "-p", "9", "-n", "1kB"], "nobody listens"),
        (vec!["path", "127.0.0.1", "-p", "9"], "nobody listens"),
        (vec!["fetch", "127.0.0.1", "-p", port, "--file", "x", "-o", "/nonexistent/x"], "there is no folder"),
        (vec!["fetch", "127.0.0.1", "-p", port, "--file", "x", "-o", "-"], "standard output has the result"),
        (vec!["fetch", "127.0.0.1", "-p", port, "-n", "-5"], "--size: \"-5\" is negative"),
        (vec!["fetch", "127.0.0.1", "-p", "-1"], "--port: "),
        (vec!["fetch", "127.0.0.1", "-p", port, "-t", "5000s"], "at most 60 s"),
        (vec!["serve", "--port", port], "something listens there already"),
        (vec!["serve", "--stack", "quiche"], "invalid value 'quiche' for '--stack <STACK>'"),
        (vec!["fetch", "127.0.0.1", "-p", port, "--stack", "Quinn"], "invalid value 'Quinn' for '--stack <STACK>'"),
        (vec!["path", "127.0.0.1", "-p", port, "--stack", ""], "a value is required for '--stack <STACK>'"),
    ] {
        let (status, _, error) = run(&arguments);
        let sentences: Vec<&str> = error.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!((status, sentences.len()), (Some(2), 1), "{arguments:?}: {error}");
        assert!(sentences[0].contains(says), "{arguments:?}: {error}");
    }
}

/// Also without root and namespaces: what cannot be carried is said first.
#[test]
#[cfg(target_os = "linux")]
fn a_race_over_quic_refuses_what_quic_cannot_carry_in_one_sentence() {
    for (arguments, said) in [
        (&["-C", "quick_start+cubic"][..], "no room for a request to the routers"),
        (&["-C", "cubic", "--real"], "cannot be used with"),
        (&["-C", "cubic,reno/ack1"], "reno/ack1: over QUIC every packet is acknowledged at once"),
    ] {
        let (status, output, error) = run(&[&["compare", "--quic", "--no-report"], arguments].concat());
        assert_eq!((status, output.as_str()), (Some(2), ""), "{error}");
        assert!(error.contains(said), "{error}");
    }
    let (status, _, error) = run(&["compare", "-C", "cubic", "--fidelity", "1ms", "--no-report"]);
    assert_eq!((status, error.lines().count()), (Some(2), 1), "{error}");
}

/// The reason of a connection that is closed within the handshake is not told (RFC 9000 section
/// 10.2.3), and of a server that ended its clients heard nothing for ten seconds.
#[test]
fn who_is_one_too_many_and_who_is_left_behind_are_told_why() {
    let server = Server::start(&["--per-peer", "1"]);
    let ask = || {
        let mut command = flowstart();
        command.args(["fetch", "127.0.0.1", "-p", &server.port, "-t", "30s", "--json"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    // Whichever of two comes second is refused.
    let mut two = [ask(), ask()];
    let second = loop {
        if let Some(ended) = two.iter_mut().position(|one| one.try_wait().unwrap().is_some()) {
            break ended;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    let [one, other] = two;
    let [first, second] = if second == 0 { [other, one] } else { [one, other] };
    let said = |child: Child| String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    let refused = said(second);
    assert!(refused.contains("refuses: 1 at a time from one address are enough"), "{refused}");
    let status = Command::new("kill").args(["-TERM", &server.child.id().to_string()]).status().unwrap();
    assert!(status.success());
    let left = said(first);
    assert!(left.contains("refuses: the server ends"), "{left}");
}

/// As in iperf3: with status 130 as everywhere else, and only once there is something to say.
#[cfg(unix)]
#[test]
fn who_is_interrupted_says_what_was_transferred() {
    let folder = tempfile::tempdir().unwrap();
    let root = tempfile::tempdir().unwrap();
    std::fs::File::create(root.path().join("large")).unwrap().set_len(9_000_000_000).unwrap();
    let server = Server::start(&["--root", root.path().to_str().unwrap()]);
    let place = format!("127.0.0.1:{}", server.port);
    let [kept, copy] = ["kept.json", "copy"].map(|name| folder.path().join(name));
    for (options, word) in [
        (&["-t", "0", "--json"][..], "\"interrupted\": true"),
        (&["-t", "40", "-R"], "then interrupted: so much was acknowledged by then"),
        (&["-t", "40", "-o", kept.to_str().unwrap()], ", then interrupted"),
        (&["--file", "large", "--json", "-o", copy.to_str().unwrap()], "\"interrupted\": true"),
    ] {
        let mut command = flowstart();
        command.args(["fetch", &place]).args(options).args(["-C", "slow_start+cubic"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A handshake takes some hundredths of that, and the rest is data.
        computing::wait_until_computed(&child, 0.5);
        let asked = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(asked.success());
        let output = child.wait_with_output().unwrap();
        let [said, error] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(output.status.code(), Some(130), "{options:?}: {said}{error}");
        assert!(said.contains(word) && error.contains("interrupted"), "{options:?}: {said}{error}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing of the file");
    let document: serde_json::Value = serde_json::from_slice(&std::fs::read(&kept).unwrap()).unwrap();
    assert!(document["received"]["bytes"].as_u64().unwrap() > 0 && document["report"].is_null(), "{document}");
}

#[test]
fn sizes_as_in_iperf3_and_a_log_of_nothing_is_said_to_be_one() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    let server = Server::start(&[]);
    let port = server.port.as_str();
    for (size, bytes) in [("10K", 10_240), ("300", 300)] {
        let (status, out, error) = run(&["fetch", "127.0.0.1", "-p", port, "-n", size, "--json"]);
        assert_eq!(status, Some(0), "{error}");
        let document: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(document["received"]["bytes"], bytes, "{size}");
    }
    let logs = logs.to_str().unwrap();
    let (status, _, error) = run(&["fetch", "127.0.0.1", "-p", port, "-n", "10K", "--qlog", logs]);
    assert!(status == Some(0) && error.contains("name --qlog at `serve`"), "{error}");
    let (status, _, error) = run(&["fetch", "127.0.0.1", "-p", port, "-n", "10K", "-R", "--qlog", logs]);
    assert!(status == Some(0) && !error.contains("--qlog"), "{error}");
}

#[test]
fn a_file_that_the_server_gives_no_time_for_is_an_error_and_leaves_none() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::File::create(folder.path().join("large")).unwrap();
    whole.set_len(4_000_000_000).unwrap();
    let server = Server::start(&["--root", folder.path().to_str().unwrap(), "--most-time", "200ms"]);
    let port = server.port.as_str();
    let out = folder.path().join("part");
    let (status, text, error) =
        run(&["fetch", "127.0.0.1", "-p", port, "--file", "large", "-o", out.to_str().unwrap(), "--json"]);
    assert_eq!((status, text.as_str(), error.lines().count()), (Some(2), "", 1), "{error}");
    assert!(error.contains("of 4000000000 bytes of the file") && error.contains("--most-time"), "{error}");
    assert!(!out.exists() && std::fs::read_dir(folder.path()).unwrap().count() == 1);
    let (status, _, error) = run(&["fetch", "127.0.0.1", "-p", port, "-n", "4GB"]);
    assert!(status == Some(0) && error.contains("of 4000000000 bytes: the server has a limit"), "{error}");
}

/// A server that is killed says nothing. One that is started anew with the same identity does, and
/// not silence is what clients report then. (How soon they hear of it is told in virtual time:
/// `crates/quic/tests/restarts.rs`.)
#[cfg(unix)]
#[test]
fn clients_of_a_server_that_was_killed_and_started_anew_hear_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
    let started = |identity: &std::path::Path, port: &str| {
        Server::start(&["--identity", identity.to_str().unwrap(), "--per-peer", "32", "--port", port])
    };
    for direction in [&[][..], &["-R"]] {
        let mut server = started(&one, "0");
        let (port, fingerprint) = (server.port.clone(), server.fingerprint.clone());
        let ask = |_| {
            let mut command = flowstart();
            command.args(["fetch", "127.0.0.1", "-p", &port, "-t", "60s", "--json", "-C", "cubic"]).args(direction);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let clients: Vec<Child> = (0..2).map(ask).collect();
        let begun = |line: &std::io::Result<String>| line.as_ref().is_ok_and(|line| line.contains("data for 60 s"));
        assert_eq!(server.news.by_ref().filter(begun).take(2).count(), 2);
        drop(server);
        let server = started(&one, &port);
        assert_eq!(server.fingerprint, fingerprint);
        for client in clients {
            let ended = client.wait_with_output().unwrap();
            let said = String::from_utf8(ended.stderr).unwrap();
            assert!(said.contains("has reset the connection"), "{direction:?}: {said}");
            assert_eq!(
                (ended.status.code(), said.lines().filter(|line| line.contains("127.0.0.1")).count()),
                (Some(2), 1)
            );
        }
        let known = ["fetch", "127.0.0.1", "-p", &port, "-n", "10kB", "--fingerprint", &fingerprint];
        assert_eq!(run(&known).0, Some(0));
        drop(server);
        let server = started(&other, &port);
        let (status, _, error) = run(&known);
        assert_eq!(status, Some(2), "{error}");
        assert!(error.contains("is not the server expected") && error.contains(&server.fingerprint), "{error}");
    }
}

/// Bytes of what this process writes into this folder, be it with a name or without.
fn arrived(folder: &std::path::Path, process: u32) -> u64 {
    let files = |folder: &std::path::Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let open = files(std::path::Path::new(&format!("/proc/{process}/fd")));
    let open = open
        .map(|file| file.path())
        .filter(|file| std::fs::read_link(file).is_ok_and(|named| named.starts_with(folder)));
    let all = files(folder).map(|file| file.path()).chain(open);
    all.filter_map(|file| Some(file.metadata().ok()?.len())).max().unwrap_or(0)
}

#[test]
fn a_file_that_changes_while_it_is_fetched_is_an_error_and_leaves_none() {
    use std::io::Write as _;
    let root = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    let server = Server::start(&["--root", root.path().to_str().unwrap()]);
    let path = root.path().join("file");
    for (shrinks, words) in [(true, "the file has become shorter"), (false, "the file has changed")] {
        // Half a minute of data.
        std::fs::File::create(&path).unwrap().set_len(4_000_000_000).unwrap();
        let out = here.path().join("copy");
        let mut command = flowstart();
        command.args(["fetch", "127.0.0.1", "-p", &server.port, "--file", "file", "-o", out.to_str().unwrap()]);
        let client = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // It arrives.
        while arrived(here.path(), client.id()) == 0 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let mut file = std::fs::File::options().write(true).open(&path).unwrap();
        if shrinks {
            file.set_len(1_000_000).unwrap()
        } else {
            file.write_all(b"other").unwrap()
        }
        let ended = client.wait_with_output().unwrap();
        let [said, error] = [ended.stdout, ended.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(ended.status.code() == Some(2) && said.is_empty(), "{said} {error}");
        assert!(error.contains(words) && error.lines().filter(|line| line.contains("file")).count() == 1, "{error}");
        assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 0);
    }
}
