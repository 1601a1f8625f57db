use proptest::prelude::*;

use super::*;

const GOOD: &str = r#"
title = "two flows"
duration = "5 s"

[path]
capacity = "100 Mbit/s"
rtt = "20 ms"
buffer = "1 BDP"
queue = "step_mark 1 ms"

[[flow]]
algorithm = "hystart++ + cubic"

[[flow]]
algorithm = "slow_start+dctcp"
start = "1 s"
size = "1 MB"
count = 3
every = "10 ms"

[[udp]]
rate = "10 Mbit/s"
spacing = "poisson"
"#;

fn error(text: &str) -> ScenarioError {
    Scenario::parse("test.toml", text).unwrap_err()
}

/// GOOD with one piece of text replaced.
fn with(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    GOOD.replacen(from, to, 1)
}

#[test]
fn a_scenario_becomes_a_simulation() {
    let compiled = Scenario::parse("test.toml", GOOD).unwrap().simulation(3).unwrap();
    assert_eq!(compiled.simulation.flows.len(), 5);
    assert_eq!(compiled.simulation.run, 3);
    let names: Vec<_> = compiled.groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(names, ["hystart_plus_plus+cubic", "slow_start+dctcp", "udp"]);
    let start = compiled.simulation.flows[3].start.as_nanos();
    assert_eq!(start, 1_020_000_000);
    let flowstart_network::QueueConfig::StepMark(queue) = compiled.simulation.links[0].queue else { panic!() };
    assert_eq!(queue.limit.packets, Some(167));
}

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
fn a_wrong_capacity_is_told_which_key_is_wrong_or_missing() {
    for (capacity, part) in [
        ("{ foo = 1 }", "unknown field `foo`, expected one of `steps`, `period`, `trace`, `mean`"),
        ("{ maen = \"3 Mbit/s\" }", "did you mean `mean`?"),
        ("{ mean = \"3 Mbit/s\" }", "needs `spread` and `correlation` too: { mean ="),
        ("{ spread = 0.5, correlation = \"1 s\" }", "needs `mean` too"),
        ("{ mean = \"3 bananas\", spread = 1, correlation = \"1 s\" }", "\"bananas\" is not a unit of rate"),
        ("{ steps = [{ at = \"0 s\", rate = \"1 Mbit/s\" }] }", "needs a `period` after which they repeat"),
        ("{ steps = [], period = \"1 s\", spread = 1 }", "no other keys"),
        ("{ period = \"1 s\" }", "needs the `steps`"),
        ("{ trace = \"a\", period = \"1 s\" }", "has no other keys"),
        ("{}", "a table without keys is no capacity; it is a rate such as"),
        ("[{ at = \"0 s\" }]", "missing field `rate`"),
        ("[3]", "expected a table of keys"),
        ("true", "expected a rate such as \"100 Mbit/s\", a list of { at, rate }"),
    ] {
        let message = error(&with("\"100 Mbit/s\"", capacity)).to_string();
        assert!(message.starts_with("test.toml:6:") && message.contains(part), "{capacity}: {message}");
        assert!(!message.contains("untagged"), "{message}");
    }
}

#[test]
fn where_a_name_or_one_key_must_stand_the_possible_ones_are_told() {
    let dialect = error(&format!("dialect = true\n{GOOD}")).to_string();
    assert!(dialect.ends_with("a name in quotes stands here, expected `linux` or `ns3`"), "{dialect}");
    let inner = error(&with("spacing = \"poisson\"", "spacing = 3")).to_string();
    assert!(inner.starts_with("test.toml:23:11: a name in quotes stands here, expected "), "{inner}");
    for threshold in ["5", "{}", "{ packets = 1, bytes = 2 }", "\"x\"", "true"] {
        let queue = format!("{{ kind = \"step_mark\", threshold = {threshold} }}");
        let message = error(&with("\"step_mark 1 ms\"", &queue)).to_string();
        assert!(message.contains("one key") && message.contains("{ packets = 20 }"), "{threshold}: {message}");
    }
    for threshold in ["{ sojourn = \"2 ms\" }", "{ packets = 20 }", "{ bytes = 12500 }"] {
        let queue = format!("{{ kind = \"step_mark\", threshold = {threshold} }}");
        Scenario::parse("test.toml", &with("\"step_mark 1 ms\"", &queue)).unwrap();
    }
}

/// What stood there were names of Rust's types.
#[test]
fn where_a_number_or_a_list_must_stand_it_is_told_in_words() {
    for (old, new, part) in [
        ("rtt = \"20 ms\"", "rtt = \"20 ms\"\noverhead = -1", "`-1`, expected a whole number from 0 to 4294967295"),
        ("rtt = \"20 ms\"", "rtt = \"20 ms\"\nways = 3", "`3`, expected a list: [ ... ]"),
        (
            "rtt = \"20 ms\"",
            "rtt = \"20 ms\"\nmedium.slots = { every = \"1 ms\", errors = \"5 %\" }",
            "\"5 %\", expected a number such as 0.05, without quotes",
        ),
        ("duration = \"5 s\"", "duration = \"5 s\"\nruns = -1", "`-1`, expected a whole number, 0 or more"),
        ("duration = \"5 s\"", "duration = \"5 s\"\nstop_when_complete = 1", "expected true or false, without quotes"),
        ("title = \"two flows\"", "title = 1", "`1`, expected text in quotes"),
        (
            "start = \"1 s\"",
            "start = 1.0",
            "\"1\" has no unit; did you mean \"1 s\"?; a time looks like \"1.5 s\", \"200 ms\" or \"30 s\"",
        ),
    ] {
        let message = error(&with(old, new)).to_string();
        assert!(message.ends_with(part), "{new}: {message}");
    }
}

/// Both were without effect, and nobody said so.
#[test]
fn what_becomes_of_damaged_slots_is_refused_where_none_are_damaged() {
    let read = |slots: &str| {
        let slots = format!("rtt = \"20 ms\"\nmedium.slots = {{ every = \"1 ms\"{slots} }}");
        Scenario::parse("test.toml", &with("rtt = \"20 ms\"", &slots)).map(|_| ())
    };
    for (given, named) in [(", again_after = \"8 ms\"", "again_after"), (", repetitions = 3", "repetitions")] {
        let message = read(given).unwrap_err().to_string();
        let says = format!("slots: {named} is about slots that arrive damaged, and none do without errors");
        assert!(message.starts_with("test.toml:8:") && message.contains(&says), "{message}");
        for errors in [", errors = 0.1", ", errors = 0"] {
            assert!(read(&format!("{given}{errors}")).is_ok(), "{given}{errors}");
        }
    }
    assert!(read("").is_ok());
}

#[test]
fn users_are_counted_by_users_alone() {
    for flow in ["count = 5", "every = \"3 s\", count = 2", "every = \"3 s\""] {
        let text = format!("[path]\ncapacity = \"1 Mbit/s\"\nrtt = \"20 ms\"\n[[web]]\nflow = {{ {flow} }}\n");
        let message = error(&text).to_string();
        assert!(message.starts_with("test.toml:5:") && message.contains("web[0].flow"), "{flow}: {message}");
        assert!(message.ends_with("how many users there are is said by users, not by count or every"), "{message}");
    }
}

#[test]
fn what_is_wrong_with_a_part_of_a_link_is_shown_at_the_key_of_that_part() {
    let never = "{ kind = \"bernoulli\", probability = 2 }";
    for (key, value, part) in [
        ("path.loss", never, "2 is not a probability"),
        ("path.mark", never, "2 is not a probability"),
        ("path.reverse_loss", never, "2 is not a probability"),
        ("path.reverse_queue", "{ kind = \"drr\", limit = { packets = 0 } }", "a buffer of 0"),
        ("path.merged_acks.most", "0", "at least one ACK is merged"),
        ("path.medium", "{ shaper = { burst = \"1 B\" } }", "shaper: a bucket"),
        ("path.reverse_medium", "{ shaper = { burst = \"1 B\" } }", "shaper: a bucket"),
    ] {
        let said = key
            .trim_start_matches("path.")
            .replace("merged_acks.most", "merged_acks.within = \"1 ms\"\nmerged_acks.most");
        let text =
            with("rtt = \"20 ms\"", &format!("rtt = \"20 ms\"\nreverse_capacity = \"1 Mbit/s\"\n{said} = {value}"));
        let line = if key.ends_with("most") { 10 } else { 9 };
        let message = error(&text).to_string();
        assert!(message.starts_with(&format!("test.toml:{line}:")), "{message}");
        assert!(message.contains(&format!(" {key}: {part}")), "{message}");
    }
    let queue =
        with("buffer = \"1 BDP\"\nqueue = \"step_mark 1 ms\"", "queue = { kind = \"drr\", limit = { packets = 0 } }");
    let message = error(&queue).to_string();
    assert!(message.starts_with("test.toml:8:9: path.queue: a buffer of 0"), "{message}");
}

/// "drop_tail 1 BDP" is how a race names a contestant's queue.
#[test]
fn a_size_behind_the_name_of_a_queue_is_refused_with_the_keys_that_files_have_for_it() {
    let old = "buffer = \"1 BDP\"\nqueue = \"step_mark 1 ms\"";
    for name in flowstart_network::QueueConfig::NAMES {
        if name == "step_mark" {
            continue;
        }
        let message = error(&with(old, &format!("queue = \"{name} 2 BDP\""))).to_string();
        assert!(message.starts_with("test.toml:8:9: "), "{message}");
        assert!(message.contains(&format!("{name} takes no \"2 BDP\" behind its name; its ")), "{message}");
        assert!(!message.contains('\n'), "{message}");
        // What the sentence says to write is right.
        let advice = message.split(": queue = ").nth(1).unwrap_or_else(|| panic!("{message}"));
        let advice = format!("queue = {}", advice.replace(", buffer", "\nbuffer"));
        let text = with(old, &advice);
        Scenario::parse("test.toml", &text).unwrap_or_else(|error| panic!("{message}: {error}"));
    }
    let message = error(&with(old, "queue = \"drop_tail 1 BDP\"")).to_string();
    assert!(message.contains("queue = \"drop_tail\", buffer = \"1 BDP\""), "{message}");
    let message = error(&with(old, "queue = \"drop_tail often\"")).to_string();
    assert!(message.contains("takes no \"often\" behind its name") && !message.contains("buffer ="), "{message}");
}

#[test]
fn what_arrivals_would_not_heed_in_their_flow_is_refused() {
    for key in ["size = \"1 MB\"", "count = 2", "every = \"1 s\"", "writes = [{ after = \"0 s\", bytes = \"1 B\" }]"] {
        let sizes = "sizes = { kind = \"fixed\", size = \"1 kB\" }";
        let arrivals = format!("[[arrivals]]\nmean_gap = \"1 s\"\n{sizes}\nflow = {{ {key} }}\n\n[[udp]]");
        let message = error(&with("[[udp]]", &arrivals)).to_string();
        assert!(message.contains("arrivals[0].flow: what arrives and when is said by sizes"), "{message}");
    }
}

#[test]
fn phases_move_the_starts_of_all_but_the_first_flow_in_each_run() {
    let scenario = Scenario::parse("test.toml", &with("duration = \"5 s\"", "phases = \"20 ms\"")).unwrap();
    assert!(scenario.is_random());
    let plain = Scenario::parse("test.toml", GOOD).unwrap().simulation(0).unwrap().simulation;
    let mut seen = std::collections::HashSet::new();
    for run in 0..5 {
        let moved = scenario.simulation(run).unwrap().simulation;
        for (number, (flow, before)) in moved.flows.iter().zip(&plain.flows).enumerate() {
            let later = flow.start.since(before.start);
            assert!(if number == 0 { later.is_zero() } else { later < flowstart_units::Span::from_millis(20) });
            assert!(number == 0 || seen.insert(later), "{later}");
        }
    }
    let one = "phases = \"20 ms\"\n[path]\ncapacity = \"1 Mbit/s\"\nrtt = \"1 ms\"\n[[flow]]\n";
    assert!(error(one).to_string().contains("there is no second flow"));
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

/// They sent one datagram, or one message.
#[test]
fn traffic_that_lasts_no_time_is_refused() {
    for (text, key) in [
        (with("[[udp]]\n", "[[udp]]\nlasting = \"0 s\"\n"), "udp[0].lasting: "),
        (
            with(
                "[[udp]]",
                "[[flow]]\npaced = { rate = \"1 Mbit/s\", message = \"1 kB\", lasting = \"0 s\" }\n[[udp]]",
            ),
            "flow[2].paced.lasting: ",
        ),
    ] {
        let message = error(&text).to_string();
        assert!(message.contains(key) && message.contains("nothing is sent in no time"), "{message}");
        assert!(Scenario::parse("test.toml", &text.replace("\"0 s\"", "\"1 ns\"")).is_ok());
    }
}

/// It was the path's bottleneck.
#[test]
fn an_empty_list_of_links_is_refused() {
    for text in [with("[[udp]]\n", "[[udp]]\nforward = []\n"), with("[[flow]]\n", "[[flow]]\nforward = []\n")] {
        assert!(error(&text).to_string().contains("an empty list names no link"), "{}", error(&text));
    }
}

const TWO_LINKS: &str = "[[link]]\nname = \"A\"\ncapacity = \"50 Mbit/s\"\ndelay = \"5 ms\"\n[[link]]\nname = \"B\"\n\
                         capacity = \"50 Mbit/s\"\ndelay = \"20 ms\"\n[[link]]\nname = \"R\"\ncapacity = \"50 Mbit/s\"\n\
                         delay = \"8 ms\"\n";

/// Nothing comes back from datagrams: the half that the links do not have of it was halved again.
#[test]
fn half_of_the_round_trip_is_the_way_of_datagrams_over_links() {
    let read = |flow: &str| Scenario::parse("test.toml", &format!("{TWO_LINKS}{flow}\nforward = [\"A\", \"B\"]\n"));
    let there = |flow: &str| {
        let flow = read(flow).unwrap().simulation(0).unwrap().simulation.flows.remove(0);
        (flow.access.delay.as_nanos() / 1_000, flow.return_delay.as_nanos() / 1_000)
    };
    let udp = |rtt: &str| format!("[[udp]]\nrate = \"1 Mbit/s\"\nrtt = \"{rtt}\"");
    assert_eq!(there(&udp("100 ms")), (25_000, 50_000));
    assert_eq!(there(&udp("50 ms")).0, 0);
    let message = read(&udp("49 ms")).unwrap_err().to_string();
    assert!(message.contains("udp[0].rtt: half of it is shorter"), "{message}");
    // What the links leave is on either side.
    assert_eq!(there("[[flow]]\nrtt = \"100 ms\"\nreverse = [\"R\"]"), (33_500, 33_500));
}

#[test]
fn who_has_no_way_back_over_links_is_told_so() {
    let told = |text: &str| Scenario::parse("test.toml", &format!("{TWO_LINKS}{text}")).unwrap().without_influence();
    let plain = told("[[flow]]\nforward = [\"A\"]\n[[udp]]\nrate = \"1 Mbit/s\"\nforward = [\"A\"]\n");
    assert!(plain.len() == 1 && plain[0].starts_with("flow[0]: its ACKs are back at once"), "{plain:?}");
    for given in ["rtt = \"20 ms\"", "reverse = [\"R\"]"] {
        assert!(told(&format!("[[flow]]\nforward = [\"A\"]\n{given}\n")).is_empty(), "{given}");
    }
    assert!(Scenario::parse("test.toml", GOOD).unwrap().without_influence().is_empty());
}

#[test]
fn transfers_that_never_arrive_are_told() {
    let told = |keys: &str| {
        let text = "[[arrivals]]\nmean_gap = \"10 ms\"\nsizes = { kind = \"fixed\", size = \"1 kB\" }\n";
        let text = with("[[udp]]", &format!("{text}{keys}\n[[udp]]"));
        Scenario::parse("test.toml", &text).unwrap().without_influence()
    };
    let start = "flow.start = \"2 s\"";
    assert!(told(&format!("{start}\nuntil = \"3 s\"\nmost = 1")).is_empty());
    let until = told(&format!("{start}\nuntil = \"1 s\""));
    assert!(until.len() == 1 && until[0].starts_with("arrivals[0].until: nobody arrives until 1 s"), "{until:?}");
    let most = told(&format!("{start}\nmost = 0"));
    assert!(most.len() == 1 && most[0].starts_with("arrivals[0].most: nobody arrives"), "{most:?}");
    let late = told("flow.start = \"6 s\"");
    assert_eq!(late, ["arrivals[0].flow.start: nobody starts at 6 s, since the run is over after 5 s"]);
}

/// It said that a [[flow]] was to be added, of a file that has one.
#[test]
fn flows_that_are_none_are_refused_where_they_say_so() {
    let text = "[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\ncount = 0\n[[flow]]\ncount = 0\n";
    let error = Scenario::parse("none.toml", text).unwrap_err().to_string();
    assert!(error.starts_with("none.toml:5:9: flow[0].count: "), "{error}");
    assert!(error.contains("0 flows send nothing, and nobody else does; the least is 1"), "{error}");
    // Beside others a flow may be switched off.
    assert!(Scenario::parse("one.toml", &format!("{text}[[flow]]\n")).is_ok());
}

#[test]
fn an_overhead_that_no_link_has_is_refused_where_it_stands() {
    let message = error(&with("rtt = \"20 ms\"", "rtt = \"20 ms\"\noverhead = 4294967295")).to_string();
    assert!(message.starts_with("test.toml:8:") && message.contains("at most 65535 bytes"), "{message}");
}

#[test]
fn effective_parameters_read_back_to_the_same_scenario_and_hash() {
    let scenario = Scenario::parse("test.toml", GOOD).unwrap();
    let again = Scenario::parse("effective.toml", &scenario.effective()).unwrap();
    assert_eq!(scenario, again);
    assert_eq!(scenario.hash(), again.hash());
}

#[test]
fn the_hash_follows_the_parameters_and_not_the_title() {
    let scenario = Scenario::parse("test.toml", GOOD).unwrap();
    let titled = Scenario { title: "other".to_owned(), ..scenario.clone() };
    let seeded = Scenario { seed: 2, ..scenario.clone() };
    assert_eq!(scenario.hash(), titled.hash());
    assert_ne!(scenario.hash(), seeded.hash());
}

#[test]
fn errors_point_at_line_and_column_and_say_what_would_be_right() {
    for (text, line, parts) in [
        (with("capacity = ", "capcity = "), 6, vec!["unknown field `capcity`", "did you mean `capacity`?"]),
        (with("\"100 Mbit/s\"", "100"), 6, vec!["did you mean \"100 Mbit/s\"?"]),
        (with("\"100 Mbit/s\"", "\"-3 Mbit/s\""), 6, vec!["negative"]),
        (with("\"100 Mbit/s\"", "\"0 Mbit/s\""), 6, vec!["rate 0"]),
        (with("rtt = \"20 ms\"", "rtt = \"0 ms\""), 7, vec!["above 0"]),
        (with("buffer = \"1 BDP\"", "buffer = 0"), 8, vec!["smallest is \"1 packet\""]),
        (with("step_mark 1 ms", "stepmark 1 ms"), 9, vec!["did you mean \"step_mark\"?"]),
        (with("hystart++ + cubic", "hystrat+cubic"), 12, vec!["hystart"]),
        (with("size = \"1 MB\"", "size = \"1e18 GB\""), 17, vec!["larger than any size"]),
        (with("size = \"1 MB\"", "size = \"0 B\""), 17, vec!["at least 1 byte"]),
        (with("spacing = \"poisson\"", "spacing = \"poison\""), 23, vec!["did you mean `poisson`?"]),
        (with("duration = \"5 s\"", "duration = \"0 s\""), 3, vec!["longer than 0"]),
        (with("\"step_mark 1 ms\"", "{ kind = \"drr\", limit = 10 }"), 9, vec!["expected a table of keys"]),
        (with("[path]", "[path"), 5, vec![]),
    ] {
        let error = error(&text);
        let message = error.to_string();
        assert_eq!(error.line(), Some(line), "{message}\n{}", error.snippet());
        assert!(message.starts_with(&format!("test.toml:{line}:")), "{message}");
        for part in parts {
            assert!(message.contains(part), "{message}");
        }
        assert!(!message.contains('\n'), "one sentence: {message}");
    }
}

#[test]
fn links_with_names_make_a_way_and_unknown_names_are_refused() {
    let text = r#"
[[link]]
name = "first"
capacity = "100 Mbit/s"
delay = "5 ms"
buffer = "100 packets"
[[link]]
name = "second"
capacity = [{ at = "0 s", rate = "50 Mbit/s" }, { at = "1 s", rate = "20 Mbit/s" }]
delay = "5 ms"
[[flow]]
algorithm = "reno"
forward = ["first", "second"]
rtt = "30 ms"
"#;
    let compiled = Scenario::parse("test.toml", text).unwrap().simulation(0).unwrap();
    assert_eq!(compiled.simulation.flows[0].forward, [0, 1]);
    assert_eq!(compiled.simulation.flows[0].return_delay, Span::from_millis(10));
    let error = error(&text.replace("\"second\"]", "\"secnd\"]"));
    assert!(error.to_string().contains("did you mean \"second\"?"), "{error}");
    assert_eq!(error.line(), Some(13));
}

#[test]
fn what_is_sent_over_the_way_back_has_the_paths_delay_the_other_way_round() {
    /// Milliseconds of the path's bottleneck, of all delays from sender to receiver, and of all
    /// back, of the first flow.
    fn delays(bottleneck: &str, flow: &str) -> (u64, u64, Vec<usize>) {
        let path = format!("capacity = \"50 Mbit/s\"\nrtt = \"40 ms\"\nreverse_capacity = \"5 Mbit/s\"\n{bottleneck}");
        let text = format!("duration = \"1 s\"\n[path]\n{path}\n{flow}");
        let simulation = Scenario::parse("t", &text).unwrap().simulation(0).unwrap().simulation;
        let flow = &simulation.flows[0];
        let links = |links: &[usize]| links.iter().map(|link| simulation.links[*link].delay).sum::<Span>();
        let there = flow.access.delay + links(&flow.forward) + flow.tail_delay;
        let back = links(&flow.reverse) + flow.return_delay;
        (there.as_nanos() / 1_000_000, back.as_nanos() / 1_000_000, flow.reverse.clone())
    }
    let back = "forward = [\"reverse\"]\n";
    for (bottleneck, flow, expected) in [
        ("", "[[flow]]\n".to_owned(), (20, 20, vec![1])),
        ("", format!("[[flow]]\n{back}"), (20, 20, vec![0])),
        ("", format!("[[flow]]\n{back}reverse = [\"bottleneck\"]"), (20, 20, vec![0])),
        ("", format!("[[flow]]\n{back}reverse = [\"reverse\"]"), (20, 20, vec![1])),
        ("", format!("[[flow]]\n{back}rtt = \"60 ms\""), (30, 30, vec![0])),
        ("", format!("[[udp]]\nrate = \"1 Mbit/s\"\n{back}"), (20, 20, vec![0])),
        ("", format!("[[udp]]\nrate = \"1 Mbit/s\"\n{back}rtt = \"60 ms\""), (30, 30, vec![0])),
        // What a bottleneck that is longer than the half leaves for the way back.
        ("delay = \"30 ms\"", "[[flow]]\n".to_owned(), (30, 10, vec![1])),
        ("delay = \"30 ms\"", format!("[[flow]]\n{back}"), (10, 30, vec![0])),
        ("delay = \"0 s\"", format!("[[flow]]\n{back}"), (20, 20, vec![0])),
        ("delay = \"5 ms\"", format!("[[flow]]\n{back}reverse = [\"reverse\"]"), (20, 20, vec![1])),
    ] {
        assert_eq!(delays(bottleneck, &flow), expected, "{bottleneck} {flow}");
    }
}

#[test]
fn a_scenario_knows_whether_chance_plays_a_part() {
    assert!(Scenario::parse("t", GOOD).unwrap().is_random());
    assert!(!Scenario::parse("t", &with("poisson", "constant")).unwrap().is_random());
    let lossy = with("poisson", "constant").replace("rtt = \"20 ms\"", "rtt = \"20 ms\"\nloss = \"0.1 %\"");
    assert!(Scenario::parse("t", &lossy).unwrap().is_random());
}

proptest! {
    #[test]
    fn reading_is_total_on_arbitrary_text(text in "\\PC{0,200}") {
        let _ = Scenario::parse("t", &text);
    }

    #[test]
    fn reading_is_total_on_mutilated_scenarios(at in 0..GOOD.len(), gone in 0_usize..30, new in "\\PC{0,8}") {
        let mut text = GOOD.to_owned();
        let start = (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let end = (start + gone).min(text.len());
        text.replace_range(start..end, &new);
        match Scenario::parse("t", &text) {
            Ok(scenario) => {
                prop_assert_eq!(&Scenario::parse("t", &scenario.effective()).unwrap(), &scenario);
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

/// What the simulator runs is what its tables say, whatever a kernel would run in its place.
#[test]
fn the_kernels_control_does_not_give_its_name_to_a_flow() {
    let names = |flow: &str| {
        let text = format!("[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\nkernel = \"bbr\"\n{flow}\n");
        let label = Scenario::parse("test.toml", &text).unwrap().simulation(0).unwrap().groups.remove(0);
        [label.real_name().to_owned(), label.name, label.algorithm]
    };
    assert_eq!(names(""), ["bbr", "hystart+cubic", "hystart+cubic"]);
    assert_eq!(names("algorithm = \"reno\""), ["bbr", "slow_start+reno", "slow_start+reno"]);
    assert_eq!(names("name = \"mine\""), ["mine", "mine", "hystart+cubic"]);
}

/// One meaning of "bbr": named alone, or with constants of its own.
#[test]
fn a_control_with_a_start_of_its_own_has_it_however_it_is_named() {
    let name = |flow: &str| {
        let text = format!("[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\n{flow}\n");
        Scenario::parse("test.toml", &text).unwrap().simulation(0).unwrap().groups[0].name.clone()
    };
    let alone = name("algorithm = \"bbr\"");
    assert_eq!(name("avoidance = { name = \"bbr\" }"), alone);
    assert_ne!(name("algorithm = \"hystart+bbr\""), alone);
    assert_eq!(name("avoidance = { name = \"reno\" }"), name("algorithm = \"hystart+reno\""));
}

/// It was twice the longest delay of a link, however many a flow crosses.
#[test]
fn starts_are_moved_by_the_round_trip_of_flows_on_links() {
    let links = "[[link]]\nname = \"a\"\ncapacity = \"10 Mbit/s\"\ndelay = \"5 ms\"\n\
                 [[link]]\nname = \"b\"\ncapacity = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
                 [[link]]\nname = \"back\"\ncapacity = \"10 Mbit/s\"\ndelay = \"7 ms\"\n";
    let flow = "[[flow]]\nforward = [\"a\", \"b\"]\nreverse = [\"back\"]\n";
    let phases =
        |flows: &str| Scenario::parse("test", &format!("{links}{flows}")).unwrap().usual_phases().as_secs_f64() * 1e3;
    assert_eq!(phases(flow), 22.0);
    assert_eq!(phases(&format!("{flow}{flow}rtt = \"60 ms\"\n")), 60.0);
    assert_eq!(phases("[[udp]]\nrate = \"1 Mbit/s\"\nforward = [\"a\"]\n"), 10.0, "nobody has a round trip");
    let path = "[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"30 ms\"\n[[flow]]\n";
    assert_eq!(Scenario::parse("test", path).unwrap().usual_phases(), Span::from_millis(30));
}
