//! What is wrong is refused where it stands, in words.

use super::*;

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
