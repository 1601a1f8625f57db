use super::*;
use flowstart_congestion::start::paced_chirping::reading::Reading;

/// The vectors of the published rule: gaps of a chirp of 16 around 200 µs with geometry 2, in µs.
fn gaps() -> Vec<u64> {
    (0..15).map(|k| 400 - 25 * k).collect()
}

/// A trace with these queueing delays in µs, from a time since 1970 on.
fn trace(delays: &[u64]) -> String {
    let mut text = String::from("# a chirp\nsent,acked\n");
    let mut sent = 1_763_712_000_000_000_u64;
    let seconds = |micros: u64| format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    for (k, delay) in delays.iter().enumerate() {
        sent += if k == 0 { 0 } else { gaps()[k - 1] };
        text.push_str(&format!("{},{}\n", seconds(sent), seconds(sent + 20_000 + delay)));
    }
    text
}

fn explained(delays: &[u64]) -> Explanation {
    Explanation::new(&parse_trace("trace.csv", &trace(delays)).unwrap())
}

const V1: [u64; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 45, 105, 190, 300, 435, 595];

#[test]
fn vector_1_from_a_file_gives_the_published_estimate_and_the_exact_reading() {
    let v1 = explained(&V1);
    assert_eq!(v1.estimate, Some(225_000));
    assert_eq!(v1.excursions, [Excursion { start: 8, packets: 8, terminated: false }]);
    assert_eq!(v1.judged.reading, Reading::Knee(210_000));
    // Packet 9 queued by so little of what the last one did that it might be noise.
    assert_eq!(v1.knee, Some(9));
    let parts: Vec<Part> = v1.packets.iter().map(|row| row.part).collect();
    assert_eq!(parts[..8], [Part::Quiet; 8]);
    assert_eq!(parts[8..], [Part::Open; 8]);
    // Behind the knee the path spaces the packets.
    assert!(v1.packets[9..].iter().all(|row| row.received == Some(210_000)), "{:?}", v1.packets);
    assert_eq!(v1.packets[5].received, v1.packets[5].gap);
}

#[test]
fn vector_2_from_a_file_labels_the_packets_that_the_paper_does() {
    let v2 = explained(&[0, 0, 5, 60, 90, 80, 70, 65, 20, 0, 5, 0, 30, 90, 180, 300]);
    assert_eq!(v2.estimate, Some(195_000));
    let labels: Vec<u64> = v2.packets[1..].iter().map(|row| row.label.unwrap() / 1000).collect();
    assert_eq!(labels[..4], [400, 375, 350, 150]);
    assert_eq!(labels.iter().sum::<u64>(), 15 * 195);
    assert_eq!(v2.packets[9].part, Part::Spike);
    assert_eq!(v2.packets[4].part, Part::Ended);
}

#[test]
fn packets_with_one_ack_share_the_newest_delay() {
    let text = "sent,acked\n0,1\n0.1,1.2\n0.2,1.2\n0.3,1.5\n0.4,1.5\n";
    let chirp = parse_trace("t", text).unwrap();
    assert_eq!(chirp.delays, [0, 0, 0, 100_000_000, 100_000_000]);
    let packets: Vec<u32> = chirp.points.iter().map(|point| point.packets).collect();
    assert_eq!(packets, [1, 2, 2]);
    let rows = Explanation::new(&chirp).packets;
    assert_eq!(rows.iter().map(|row| row.own).collect::<Vec<_>>(), [true, false, true, false, true]);
    assert_eq!(rows[4].received, Some(150_000_000));
}

#[test]
fn a_file_that_is_no_chirp_is_refused_with_its_line() {
    let refused = |text: &str| parse_trace("trace.csv", text).unwrap_err().to_string();
    let line = |line: &str| refused(&format!("sent,acked\n0,1\n{line}\n0.2,1.2\n0.3,1.3\n0.4,1.4\n"));
    assert_eq!(
        refused("time,acked\n0,1\n"),
        "trace.csv: line 1: there is no column \"sent\" (found: time, acked); a chirp has the columns sent,acked"
    );
    assert_eq!(line("x,1"), "trace.csv: line 3: sent: \"x\" is not a time in seconds such as 0.0125");
    assert!(line("0.1,-1").contains("line 3: acked: \"-1\" is not a time"));
    assert!(line("0.1,1e300").contains("not a time"));
    assert!(line("0.1,99999999999999999999").contains("not a time"));
    assert!(line("0.1,1.2.3").contains("not a time"));
    assert!(line("0.1,").contains("line 3: acked is empty"));
    assert!(line("0.1").contains("line 3: acked is empty"));
    assert_eq!(line("0.1,0.05"), "trace.csv: line 3: acked before it was sent");
    assert!(line("0.25,1.3").contains("line 4: sent before the packet of the line before"));
    assert_eq!(refused("sent,acked\n0,1\n1,2\n"), "trace.csv: 2 packets; a chirp has at least 5");
    assert!(refused("").contains("no column"));
    let long = format!("sent,acked\n{}", "0,1\n".repeat(MOST_PACKETS + 1));
    assert!(refused(&long).contains("are not one chirp"));
}

fn path(start: &str) -> Simulated {
    Simulated {
        capacity: Rate::from_mbps(50),
        rtt: Span::from_millis(40),
        buffer: "1 BDP".parse().unwrap(),
        start: start.parse().unwrap(),
        udp: 0.0,
        jitter: Span::ZERO,
        background: Vec::new(),
        seed: 1,
    }
}

#[test]
fn a_simulated_chirp_on_an_idle_path_with_an_ack_for_every_packet_reads_the_capacity_exactly() {
    for start in ["paced_chirping/ack1", "two_gap_chirping/ack1", "adaptive_chirping/ack1"] {
        let sent = path(start).run().unwrap();
        let observed = sent.choose(None).unwrap();
        let Reading::Knee(gap) = observed.explanation.judged.reading else { panic!("{start}: {observed:?}") };
        // 1500 B at 50 Mbit/s, within the nanosecond that each of the times may be rounded by.
        assert!(gap.abs_diff(240_000) <= 1, "{start}: {gap}");
        assert!(rate(sent.packet, gap).as_bps().abs_diff(50_000_000) < 1000);
        assert!(sent.exit.is_some(), "{start} ended");
        assert!(sent.chirps.is_sorted_by(|one, other| one.number < other.number && one.at < other.at));
    }
}

#[test]
fn the_chirp_that_ended_the_start_is_among_those_observed() {
    let sent = path("adaptive_chirping").run().unwrap();
    let knees = sent.chirps.iter().filter(|chirp| matches!(chirp.explanation.judged.reading, Reading::Knee(_)));
    assert!(knees.count() >= 2, "two that agree end the start");
}

#[test]
fn random_load_is_the_same_for_the_same_seed_and_makes_noise() {
    let noise = |seed| {
        let busy = Simulated { udp: 0.2, seed, ..path("paced_chirping") };
        let sent = busy.run().unwrap();
        sent.chirps.iter().map(|chirp| chirp.explanation.judged.noise.unwrap_or(0)).collect::<Vec<_>>()
    };
    assert_eq!(noise(1), noise(1));
    assert_ne!(noise(1), noise(2));
    assert!(noise(1).iter().any(|noise| *noise > 100_000));
}

#[test]
fn a_greedy_flow_makes_a_path_crowded() {
    let busy = Simulated { background: vec!["cubic".parse().unwrap()], ..path("adaptive_chirping") };
    let sent = busy.run().unwrap();
    assert!(sent.chirps.iter().any(|chirp| chirp.explanation.judged.reading == Reading::Crowded), "{sent:?}");
}

#[test]
fn what_cannot_be_explained_is_one_sentence() {
    let start = |text: &str| text.parse::<ChirpingStart>().unwrap_err().to_string();
    assert!(start("hystart").contains("sends no chirps; choose one of paced_chirping"));
    assert!(start("paced_chrping").contains("paced_chirping"));
    let sent = path("paced_chirping").run().unwrap();
    assert!(sent.choose(Some(9999)).unwrap_err().to_string().contains("there is no chirp 9999"));
    let long = Simulated { rtt: Span::from_secs(4000), ..path("paced_chirping") };
    assert!(long.run().unwrap_err().to_string().contains("RTT"));
}
