//! Queues, buckets and buffers without room for a packet.

use super::*;

/// 5 Mbit/s carry 12 500 B in 20 ms: 240 ACKs, not the eight of as many full packets.
#[test]
fn a_bdp_of_the_way_back_is_of_bytes() {
    let text = "[path]\ncapacity = \"100 Mbit/s\"\nrtt = \"20 ms\"\nreverse_capacity = \"5 Mbit/s\"\n[[flow]]\n";
    let compiled = Scenario::parse("back", text).unwrap().simulation(0).unwrap();
    let [there, back] = compiled.simulation.links.as_slice() else { panic!() };
    let limits = [there, back].map(|link| match link.queue {
        flowstart_network::QueueConfig::DropTail(limit) => (limit.packets, limit.bytes),
        _ => panic!(),
    });
    assert_eq!(limits, [(Some(167), None), (None, Some(12_500))]);
}

#[test]
fn a_buffer_without_room_for_a_packet_is_refused_with_the_smallest_that_has() {
    let says = |from: &str, to: &str, part: &str| {
        let message = error(&with(from, to)).to_string();
        assert!(message.contains(part), "{to}: {message}");
    };
    let small = "a queue that holds 59 B has no room for a packet of 1500 B";
    says("buffer = \"1 BDP\"", "buffer = \"59 B\"", small);
    says("buffer = \"1 BDP\"", "buffer = \"59 B\"", "the smallest buffer is \"1 packet\"");
    says("buffer = \"1 BDP\"\nqueue = \"step_mark 1 ms\"", "queue = { kind = \"drop_tail\", bytes = 59 }", small);
    says("[[flow]]", "reverse_capacity = \"1 Mbit/s\"\nreverse_buffer = \"51 B\"\n[[flow]]", "a packet of 52 B");
    for buffer in ["1500 B", "1 packet"] {
        let text = with("buffer = \"1 BDP\"", &format!("buffer = \"{buffer}\""));
        assert!(Scenario::parse("test.toml", &text).is_ok(), "{buffer}");
    }
}

#[test]
fn a_buffer_beside_a_limit_of_the_queue_is_refused_and_taken_where_there_is_none() {
    let says = |from: &str, to: &str, part: &str| {
        let message = error(&with(from, to)).to_string();
        assert!(message.contains(part), "{to}: {message}");
    };
    let queue = "queue = \"step_mark 1 ms\"";
    for (name, own) in [("codel", "1000 packets"), ("fq_codel", "10240 packets"), ("sch_red", "400000 B")] {
        let part = format!("\"1 BDP\" would have no influence on {name}, which has a limit of its own ({own})");
        says(queue, &format!("queue = \"{name}\""), &part);
    }
    says(queue, "queue = { kind = \"drr\", limit = { packets = 9 } }", "a limit of its own (9 packets)");
    // What the sentence says to write is right.
    let own = [
        "{ kind = \"drop_tail\", bytes = 9000 }",
        "{ kind = \"drr\", limit = { packets = 9 } }",
        "\"host_fairness\"",
        "\"dual_pi2\"",
    ];
    for written in own.into_iter().chain(["\"codel\"", "\"fq_codel\"", "\"sch_red\"", "\"pie\""]) {
        let message = error(&with(queue, &format!("queue = {written}"))).to_string();
        let advice = message.split("give the limit there: ").nth(1).unwrap_or_else(|| panic!("{written}: {message}"));
        let advice = advice.lines().next().unwrap_or_default();
        let text = with(&format!("buffer = \"1 BDP\"\n{queue}"), advice);
        Scenario::parse("test.toml", &text).unwrap_or_else(|error| panic!("{written}: {advice}: {error}"));
    }
    says(queue, "reverse_buffer = \"20 ms\"", "path.reverse_buffer: needs a reverse_capacity");
    let back = "reverse_capacity = \"1 Mbit/s\"\nreverse_queue = \"pie\"\nreverse_buffer = \"20 ms\"";
    says(queue, back, "path.reverse_buffer: \"20 ms\" would have no influence on pie");
    let limit = |to: &str| {
        let scenario = Scenario::parse("test.toml", &with(&format!("buffer = \"1 BDP\"\n{queue}"), to)).unwrap();
        assert_eq!(Scenario::parse("effective.toml", &scenario.effective()).unwrap(), scenario);
        scenario.simulation(0).unwrap().simulation.links.remove(0).queue
    };
    let flowstart_network::QueueConfig::Drr(drr) = limit("queue = \"drr\"\nbuffer = \"7 packets\"") else { panic!() };
    assert_eq!((drr.limit.packets, drr.limit.bytes), (Some(7), None));
    let flowstart_network::QueueConfig::Codel(codel) = limit("queue = \"codel\"") else { panic!() };
    assert_eq!(codel.limit, 1000);
}

#[test]
fn a_policer_without_tokens_for_a_packet_is_refused_with_the_smallest_burst_that_has_them() {
    let policer = |overhead: u32, burst: u32| {
        let text = with(
            "rtt = \"20 ms\"",
            &format!(
                "rtt = \"20 ms\"\noverhead = {overhead}\nmedium = {{ policer = {{ rate = \"90 Mbit/s\", burst = \"{burst} B\" }} }}"
            ),
        );
        Scenario::parse("test.toml", &text).map_err(|error| error.to_string())
    };
    assert!(policer(14, 1514).is_ok());
    assert!(policer(22, 1522).is_ok());
    let message = policer(22, 1521).unwrap_err();
    assert!(message.starts_with("test.toml:9:") && message.contains("burst here is \"1522 B\""), "{message}");
}

/// As Linux, which drops it. Acknowledgements fit.
#[test]
fn a_shaper_without_room_for_a_packet_is_refused_with_the_smallest_burst_that_has_it() {
    let shaper = |table: &str, shaper: &str, flow: &str| {
        let medium = format!("medium = {{ shaper = {{ {shaper} }} }}");
        let path = match table {
            "path" => format!("[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n{medium}\n"),
            way => format!(
                "[[link]]\nname = \"A\"\ncapacity = \"10 Mbit/s\"\ndelay = \"5 ms\"\n{}\n[[link]]\nname = \"B\"\n\
                 capacity = \"10 Mbit/s\"\ndelay = \"5 ms\"\noverhead = 14\n{}\n",
                if way == "way" { format!("ways = [{{ {medium} }}]") } else { String::new() },
                if way == "back" { &medium } else { "" },
            ),
        };
        Scenario::parse("test.toml", &format!("{path}{flow}")).map_err(|error| error.to_string())
    };
    let large = "[[flow]]\n[[flow]]\nsender.mss = 8948\n";
    let message = shaper("path", "burst = \"2 kB\"", large).unwrap_err();
    assert!(message.starts_with("test.toml:4:") && message.contains("smallest burst here is \"9000 B\""), "{message}");
    assert!(shaper("path", "burst = \"9 kB\"", large).is_ok());
    let message = shaper("path", "burst = \"9 kB\", peak = \"12 Mbit/s\"", large).unwrap_err();
    assert!(message.contains("path.medium: a shaper with a peak_burst of 1.6 kB"), "{message}");
    assert!(shaper("path", "burst = \"2 kB\"", "[[udp]]\nrate = \"1 Mbit/s\"\npacket = \"2001 B\"\n").is_err());
    let there = format!("{large}forward = [\"A\"]\nreverse = [\"B\"]\n").replacen("[[flow]]\n", "", 1);
    assert!(shaper("back", "burst = \"1500 B\"", &there).is_ok());
    let message = shaper("way", "burst = \"2 kB\"", &there).unwrap_err();
    assert!(message.contains("link[0].ways[0].medium: ") && message.contains("\"9000 B\""), "{message}");
    let both = there.replace("[\"A\"]", "[\"A\", \"B\"]").replace("[\"B\"]\n", "[]\n");
    let message = shaper("back", "burst = \"2 kB\"", &both).unwrap_err();
    assert!(message.contains("link[1].medium: ") && message.contains("\"9014 B\""), "{message}");
}

/// Buckets count what the link carries, which is IP packets unless it has an overhead.
#[test]
fn a_bucket_with_room_for_a_full_packet_is_deep_enough() {
    let medium = |medium: &str| {
        let text = with("rtt = \"20 ms\"", &format!("rtt = \"20 ms\"\nmedium = {{ {medium} }}"));
        Scenario::parse("test.toml", &text).map_err(|error| error.to_string())
    };
    let burst = |bytes: u32| {
        [
            format!("shaper = {{ burst = \"{bytes} B\" }}"),
            format!("policer = {{ rate = \"5 Mbit/s\", burst = \"{bytes} B\" }}"),
        ]
    };
    for written in burst(1_500) {
        assert!(medium(&written).is_ok(), "{written}");
    }
    for written in burst(1_499) {
        let message = medium(&written).unwrap_err();
        assert!(message.contains("at least one packet, 1500 B"), "{message}");
    }
}

/// A full segment would never be let through: the sender sent by its timer alone, which doubles.
#[test]
fn a_receive_buffer_without_room_for_a_segment_is_refused() {
    let flow = |keys: &str| Scenario::parse("test.toml", &with("[[flow]]\n", &format!("[[flow]]\n{keys}\n")));
    let message = flow("receiver.receive_buffer = \"1447 B\"").unwrap_err().to_string();
    assert!(message.contains("flow[0].receiver.receive_buffer: "), "{message}");
    assert!(message.contains("no room for one segment of 1448 B"), "{message}");
    assert!(flow("receiver.receive_buffer = \"1448 B\"").is_ok());
    assert!(flow("receiver.receive_buffer = \"500 B\"\nsender.mss = 500").is_ok());
}
