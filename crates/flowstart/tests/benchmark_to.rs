//! `flowstart benchmark --to` against `flowstart serve` on this machine. A busy machine may be
//! late, so nothing is asserted of how long anything takes.
#![cfg(feature = "quic")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn flowstart(folder: &Path) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("flowstart"));
    command.current_dir(folder).env("COLUMNS", "200").env("LANG", "C.UTF-8");
    command
}

/// A server that ends with the test.
struct Server {
    child: Child,
    to: String,
}

impl Server {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = flowstart(folder);
        command.args(["serve", "--port", "0"]).args(arguments).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program is built");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let first = lines.next().expect("a line").expect("UTF-8");
        let to = first.rsplit(' ').next().expect("an address").to_owned();
        Self { child, to }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two rates for some seconds.
const SHORT: &[&str] = &[
    "benchmark",
    "--capacity",
    "3Mbit/s",
    "--step",
    "1500kbit/s",
    "--samples",
    "20",
    "--epsilon",
    "5 %",
    "--warm-up",
    "500ms",
    "--lasting",
    "4s",
    "--least",
    "4s",
    // Too little time to call anything too high, whatever the machine does.
    "--overload-after",
    "60s",
];

/// Status, standard output and standard error.
fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = flowstart(folder).args(arguments).output().expect("the program is built");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn rates_are_probed_across_a_path_and_their_delays_give_the_same_when_they_are_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), &[]);
    let more = ["bbr", "--to", &server.to, "--delays", "delays.csv", "--json"];
    let (status, out, error) = run(folder.path(), &[SHORT, &more].concat());
    assert_eq!(status, Some(0), "{error}");
    let document = json(&out);
    assert_eq!(document["parameters"]["path"]["to"], server.to.as_str());
    assert_eq!(document["real_paths"]["to"], server.to.as_str());
    let results = document["results"].as_array().expect("results");
    assert_eq!(results.len(), 1);
    assert_eq!(results[0]["label"], "bbr (QUIC)");
    let conditions = results[0]["conditions"].as_str().expect("conditions");
    assert!(conditions.contains("messages waited at the sender, by its clock"), "{conditions}");
    let probes = results[0]["probes"].as_array().expect("probes");
    let heard = document["real_paths"]["probes"].as_array().expect("probes");
    assert_eq!((probes.len(), heard.len()), (2, 2), "{out}");
    let mut messages = 0;
    for (probe, heard) in probes.iter().zip(heard) {
        let rate = probe["rate_bps"].as_u64().expect("a rate");
        assert_eq!(heard["rate_bps"], rate);
        assert!(heard["min_rtt_s"].as_f64().is_some_and(|rtt| rtt > 0.0), "{heard}");
        // What one clock says: a message is not written before it is due, and none has left before.
        let [mean, most] = ["mean_s", "quantile_s"].map(|key| heard["sender"][key].as_f64().expect("of the sender"));
        assert!(mean > 0.0 && most > 0.0, "{heard}");
        // The three parts, of which the server's clock knows the last alone.
        let part = |part: &str| probe["parts"][part]["mean_s"].as_f64().unwrap_or_else(|| panic!("{part}: {probe}"));
        let [sender, network, receiver] = ["sender", "network", "receiver"].map(part);
        assert!((sender / mean - 1.0).abs() < 0.2 && network > 0.0 && receiver > 0.0, "{probe}");
        assert!(sender + network + receiver < 1.0, "{probe}");
        let packets = probe["packets"].as_u64().expect("packets");
        // No more than what 4.5 s have; how many less is the machine's business.
        assert!(packets > 0 && packets <= rate * 9 / 2 / (1448 * 8) + 1, "{probe}");
        messages += packets;
    }
    let rows = std::fs::read_to_string(folder.path().join("delays.csv")).expect("written");
    assert!(rows.lines().count() as u64 > messages, "{} rows, {messages} messages", rows.lines().count());
    let again = ["--measured", "delays.csv", "--json"];
    let keep = |option: &&&str| !["--capacity", "--step", "3Mbit/s", "1500kbit/s"].contains(*option);
    let procedure: Vec<&str> = SHORT.iter().filter(keep).copied().collect();
    let (status, out, error) = run(folder.path(), &[&procedure[..], &again].concat());
    assert_eq!(status, Some(0), "{error}");
    for (probe, read) in probes.iter().zip(json(&out)["results"][0]["probes"].as_array().expect("probes")) {
        for same in ["rate_bps", "verdict", "quantile_s", "parts"] {
            assert_eq!(probe[same], read[same], "{same}");
        }
    }
}

#[cfg(unix)]
#[test]
fn what_was_finished_before_ctrl_c_is_kept_and_not_probed_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), &[]);
    let arguments = [SHORT, &["--to", &server.to, "--out", "out"]].concat();
    let earlier = folder.path().join("out/finished/other-1bps.csv");
    std::fs::create_dir_all(folder.path().join("out/finished")).expect("a folder");
    std::fs::write(&earlier, "").expect("written");
    let mut command = flowstart(folder.path());
    command.args(&arguments).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program is built");
    let first = folder.path().join("out/finished/hystart+cubic_QUIC-1500000bps.csv");
    while !first.is_file() {
        assert!(child.try_wait().expect("a child").is_none(), "it ended before the first rate was finished");
        std::thread::sleep(Duration::from_millis(20));
    }
    // A second one would take away what the first has finished.
    let (status, _, error) = run(folder.path(), &arguments);
    assert!(status == Some(2) && error.contains("another run is writing into out: wait for its end"), "{error}");
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(killed.success());
    assert_eq!(child.wait().expect("a child").code(), Some(130));
    let kept = std::fs::read(&first).expect("kept");
    assert!(!earlier.exists(), "what was finished earlier makes way for what is finished now");
    let read = |name: &str| json(&std::fs::read_to_string(folder.path().join("out").join(name)).expect("written"));
    assert_eq!(read("result.json")["complete"], false);
    // Without --capacity it is that of before.
    let resumed: Vec<&str> =
        arguments.iter().filter(|one| !["--capacity", "3Mbit/s"].contains(*one)).copied().collect();
    let (status, _, error) = run(folder.path(), &[&resumed[..], &["--resume"]].concat());
    assert_eq!(status, Some(0), "{error}");
    assert!(error.contains("rates that were finished before: 1"), "{error}");
    assert_eq!(std::fs::read(&first).expect("kept"), kept);
    assert_eq!(read("result.json")["results"][0]["probes"].as_array().map(Vec::len), Some(2));
    let (status, _, error) = run(folder.path(), &[&arguments[..], &["--resume", "--seed", "2"]].concat());
    assert!(status == Some(2) && error.contains("measured with other options"), "{error}");
    // A device in the place of a file may never end.
    std::fs::remove_file(&first).expect("removed");
    std::os::unix::fs::symlink("/dev/null", &first).expect("linked");
    let (status, _, error) = run(folder.path(), &[&arguments[..], &["--resume"]].concat());
    assert!(status == Some(2) && error.contains("1500000bps.csv: it is no file"), "{error}");
}

#[test]
fn who_finishes_nothing_does_not_lose_what_was_finished_earlier() {
    let folder = tempfile::tempdir().expect("a folder");
    let free = std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port");
    let finished = folder.path().join("out/finished");
    std::fs::create_dir_all(&finished).expect("a folder");
    let names = ["parameters.json", "hystart+cubic_QUIC-1500000bps.csv"];
    names.iter().for_each(|name| std::fs::write(finished.join(name), *name).expect("written"));
    let to = free.to_string();
    let arguments = [SHORT, &["--to", &to, "--out", "out"]].concat();
    let (status, _, error) = run(folder.path(), &arguments);
    assert!(status == Some(2) && error.contains("nobody listens"), "{error}");
    for name in names {
        assert_eq!(std::fs::read_to_string(finished.join(name)).expect("still there"), name);
    }
    // What is no finished rate is in the way from the beginning.
    std::fs::write(finished.join("letter.txt"), "").expect("written");
    let (status, _, error) = run(folder.path(), &arguments);
    assert!(status == Some(2) && error.contains("letter.txt is in the way"), "{error}");
}

#[test]
fn a_server_that_goes_away_is_told_after_what_was_finished() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), &[]);
    let arguments = [SHORT, &["--to", &server.to, "--out", "out", "--json"]].concat();
    let mut command = flowstart(folder.path());
    let mut child = command.args(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("built");
    let first = folder.path().join("out/finished/hystart+cubic_QUIC-1500000bps.csv");
    while !first.is_file() {
        assert!(child.try_wait().expect("a child").is_none(), "it ended before the first rate was finished");
        std::thread::sleep(Duration::from_millis(20));
    }
    let to = server.to.clone();
    drop(server);
    let output = child.wait_with_output().expect("a child");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    // Or it went before the second rate had met it.
    let silent = error.ends_with(&format!("error: 3 Mbit/s: {to} went silent\n"));
    let gone = [format!("nobody listens at {to}"), format!("{to} answered, but nobody listens there any more")];
    assert!(silent || gone.iter().any(|gone| error.contains(gone)), "{error}");
    let document = json(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(document["complete"], false);
    assert_eq!(document["results"][0]["probes"].as_array().map(Vec::len), Some(1));
}

#[test]
fn what_makes_no_sense_across_a_real_path_is_refused_in_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    for (option, value) in [
        ("--real", "cubic"),
        ("--command", "true {rate} {seconds}"),
        ("--on", "codel"),
        ("--scenario", "none.toml"),
        ("--profile", "wifi"),
        ("--rtt", "20ms"),
        ("--buffer", "1 BDP"),
        ("--mark", "1ms"),
        ("--ways", "2"),
        ("--peers", "2"),
        ("--background", "cubic"),
        ("--bursts", "1"),
        ("--connections", "1"),
        ("--joint", "1"),
        ("--at-once", "2"),
        ("--fidelity", "1ms"),
        ("--threads", "1"),
    ] {
        let (status, _, error) = run(folder.path(), &["benchmark", "--to", "127.0.0.1:9", option, value]);
        assert_eq!((status, error.lines().count()), (Some(2), 1), "{option}: {error}");
        assert!(error.contains(&format!("error: {option} is for paths that are simulated or emulated")), "{error}");
    }
    for (contestant, word) in [
        ("cubic@codel", "leave out what follows @"),
        ("cubic/paced", "leave out \"/paced\""),
        ("dctcp/noecn", "leave out \"/noecn\""),
        ("fair_queuing_probe+cubic", "this start has two"),
        ("quick_start+cubic", "no room for a request to the routers"),
    ] {
        let (status, _, error) = run(folder.path(), &["benchmark", contestant, "--to", "127.0.0.1:9"]);
        assert!(status == Some(2) && error.lines().count() == 1 && error.contains(word), "{error}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 0, "nothing is left behind");
}

#[test]
fn who_is_not_there_and_what_is_not_served_is_said_as_fetch_says_it() {
    let folder = tempfile::tempdir().expect("a folder");
    // A port that nobody has: it was this socket's a moment ago.
    let free = std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port");
    let capacity = ["--capacity", "2Mbit/s"];
    let said = |to: &str, more: &[&str]| {
        let (status, out, error) = run(folder.path(), &[&["benchmark", "--to", to, "--no-report"], more].concat());
        assert_eq!((status, out.as_str()), (Some(2), ""), "{error}");
        let last = error.lines().last().unwrap_or_default().to_owned();
        assert_eq!(error.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{error}");
        last
    };
    for more in [&[][..], &capacity] {
        let nobody = said(&free.to_string(), more);
        assert_eq!(nobody, format!("error: nobody listens at {free}: is `flowstart serve` running there?"));
    }
    let unknown = said("nowhere.invalid", &capacity);
    assert_eq!(unknown, "error: there is no host \"nowhere.invalid\"");
    let stranger = said("192.0.2.7", &capacity);
    assert!(stranger.contains("who answers at 192.0.2.7:4433 must be known"), "{stranger}");
    let server = Server::start(folder.path(), &["--most-time", "5s"]);
    let too_long = said(&server.to, &capacity);
    assert!(too_long.contains("a transfer takes at most 5 s here; a rate takes 55 s: name a shorter"), "{too_long}");
    let other = ["--fingerprint", &"5e".repeat(32)];
    let other = said(&server.to, &[&capacity[..], &other].concat());
    assert!(other.contains("is not the server expected"), "{other}");
    let server = Server::start(folder.path(), &["--most-bytes", "1kB"]);
    // A MiB is always taken.
    let too_much = ["--capacity", "50Mbit/s", "--step", "50Mbit/s", "--lasting", "4s", "--warm-up", "1s"];
    let too_much = said(&server.to, &too_much);
    assert!(too_much.contains("more data came than a transfer may have; name more --most-bytes"), "{too_much}");
}
