//! Chirps from files and simulated ones.

use super::*;

/// A chirp of 16 around 200 µs at a path that needs 210 µs per packet: vector 1 of the published
/// rule.
fn trace(folder: &Path) {
    let (mut sent, mut text) = (0, String::from("sent,acked\n"));
    for (k, delay) in [0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 45, 105, 190, 300, 435, 595].into_iter().enumerate() {
        sent += if k == 0 { 0 } else { 425 - 25 * k };
        text.push_str(&format!("{:.6},{:.6}\n", sent as f64 / 1e6, (sent + 20_000 + delay) as f64 / 1e6));
    }
    std::fs::write(folder.join("trace.csv"), text).expect("written");
}

#[test]
fn a_chirp_from_a_file_is_explained_by_both_rules_and_drawn() {
    let folder = empty();
    trace(folder.path());
    let text = output(folder.path(), &["explain-chirp", "trace.csv", "--out", "pictures"]);
    assert!(text.contains("The estimate is the mean of all labels: 225.0 µs per packet, 53.33 Mbit/s."), "{text}");
    // Packet 9 queued by so little of what the last one did that it might be noise.
    assert!(text.contains("knee: behind packet 9"), "{text}");
    assert!(text.contains("210.0 µs per packet, 57.14 Mbit/s."), "{text}");
    assert!(!text.contains("Truth"), "{text}");
    assert_eq!(files(&folder.path().join("pictures")), ["delays.svg", "departures.svg", "gaps.svg"]);
    output(folder.path(), &["explain-chirp", "trace.csv", "--packet", "750B", "--out", "one.svg"]);
    let picture = std::fs::read_to_string(folder.path().join("one.svg")).expect("written");
    assert!(picture.contains("Queueing delay of each packet") && picture.contains("knee"));
}

#[test]
fn a_simulated_chirp_is_the_same_json_every_time_and_reads_the_capacity() {
    let folder = empty();
    let arguments = ["explain-chirp", "--start", "paced_chirping", "--capacity", "50Mbit/s", "--json"];
    let text = output(folder.path(), &arguments);
    assert_eq!(text, output(folder.path(), &arguments));
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["own"]["reading"], "knee");
    assert_eq!(document["own"]["rate_bps"], 50_000_000);
    assert_eq!(document["simulation"]["capacity_bps"], 50_000_000);
    assert_eq!(document["packets"][0]["gap_ns"], serde_json::Value::Null);
    let list = output(folder.path(), &["explain-chirp", "--list", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!(list["exit"], "pipe full");
    assert!(output(folder.path(), &["explain-chirp", "--list"]).contains("The start ended: pipe full"));
    assert!(files(folder.path()).is_empty());
}

#[test]
fn what_cannot_be_explained_is_refused_in_one_sentence_with_status_2() {
    let folder = empty();
    trace(folder.path());
    std::fs::write(folder.path().join("short.csv"), "sent,acked\n0,1\n").expect("written");
    for (arguments, reason) in [
        (&["no-such.csv"][..], "no-such.csv"),
        (&["short.csv"], "a chirp has at least 5"),
        (&["trace.csv", "--packet", "0 B"], "--packet: a packet of 0 bytes has no rate"),
        (&["trace.csv", "--packet", "1 TB"], "--packet: no IP packet has 1000 GB, but 65.535 kB at most"),
        (&["--start", "hystart"], "--start: \"hystart\" sends no chirps; choose one of paced_chirping"),
        (&["--start", "paced_chriping"], "paced_chirping"),
        (&["--udp", "100%"], "leaves nothing to the chirps"),
        (&["--udp", "-1%"], "is not a share"),
        (&["--chirp", "999"], "there is no chirp 999"),
        (&["--capacity", "0 Mbit/s"], "capacity"),
        (&["--rtt", "0 ms"], "RTT"),
        (&["--out", "nowhere/delays.svg"], "there is no folder nowhere"),
    ] {
        let all: Vec<&str> = std::iter::once("explain-chirp").chain(arguments.iter().copied()).collect();
        let message = refusal(folder.path(), &all);
        assert!(message.contains(reason), "{arguments:?}: {message}");
        assert_eq!(message.trim_end().lines().count(), 1, "{arguments:?}: {message}");
    }
    let both = refusal(folder.path(), &["explain-chirp", "trace.csv", "--rtt", "20ms"]);
    assert!(both.contains("cannot be used with"), "{both}");
}

/// A folder named x.png was made.
#[test]
fn a_picture_in_another_format_is_refused_and_a_folder_with_a_dot_is_not() {
    let folder = empty();
    trace(folder.path());
    let said = refusal(folder.path(), &["explain-chirp", "trace.csv", "--out", "x.PNG"]);
    assert!(said.contains("cannot write x.PNG: a single picture is an .svg file"), "{said}");
    output(folder.path(), &["explain-chirp", "trace.csv", "--out", "pictures.2"]);
    assert_eq!(files(folder.path()), ["pictures.2", "trace.csv"]);
}

/// The last packet, of which no ACK of the chirp told, had a delay of 0.
#[test]
fn packets_without_an_ack_of_their_own_have_no_delay_and_the_last_known_one_counts() {
    let folder = empty();
    let text = output(folder.path(), &["explain-chirp"]);
    let row = |packet: &str| {
        let row = text.lines().find(|line| line.split_whitespace().next() == Some(packet)).expect("a row");
        row.split_whitespace().nth(4).expect("a delay").to_owned()
    };
    assert_eq!([row("13"), row("14"), row("15")], ["–", "21.7", "–"], "{text}");
    assert!(text.contains("behind packet 12 the delays rise by 21.7 µs"), "{text}");
    assert!(text.contains("Without a delay: no ACK told of the packet as its newest"), "{text}");
    let each = output(folder.path(), &["explain-chirp", "--start", "adaptive_chirping/ack1"]);
    assert!(!each.contains("Without a delay"), "{each}");
}
