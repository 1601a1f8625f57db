use super::*;

fn read(flow: &str) -> Result<Scenario, String> {
    let text = format!("[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\n{flow}\n");
    Scenario::parse("test.toml", &text).map_err(|error| error.to_string())
}

/// It is refused at this line, with these words, in one sentence.
#[track_caller]
fn refused(flow: &str, line: usize, parts: &[&str]) {
    let message = read(flow).err().unwrap_or_else(|| panic!("accepted: {flow}"));
    assert!(message.starts_with(&format!("test.toml:{line}:")), "{flow}: {message}");
    assert!(parts.iter().all(|part| message.contains(part)), "{flow}: {message}");
    assert!(!message.contains('\n'), "{message}");
}

/// It is read, and so is what it prints with all defaults.
#[track_caller]
fn taken(flow: &str) {
    let scenario = read(flow).unwrap_or_else(|error| panic!("{flow}: {error}"));
    let again = Scenario::parse("effective.toml", &scenario.effective()).unwrap_or_else(|e| panic!("{flow}: {e}"));
    assert_eq!(again, scenario, "{flow}");
}

#[test]
fn ends_that_do_not_use_marks_alike_are_refused_at_the_one_that_was_written() {
    let half = "both ends must be set alike; write ecn = \"classic\" in the flow, which sets both";
    refused("sender = { ecn = \"classic\" }", 5, &["flow[0].sender.ecn: the sender's is \"classic\"", half]);
    refused("\nreceiver.ecn = \"classic\"", 6, &["flow[0].receiver.ecn: ", "the receiver's \"classic\"", half]);
    let both = "sender.ecn = \"classic\"\nreceiver.ecn = \"accurate\"";
    refused(both, 6, &["the sender's is \"classic\" and the receiver's \"accurate\"", "ecn = \"accurate\""]);
    for mode in ["off", "classic", "dctcp", "accurate"] {
        taken(&format!("sender.ecn = \"{mode}\"\nreceiver.ecn = \"{mode}\""));
        taken(&format!("ecn = \"{mode}\"\nsender.ecn = \"{mode}\"\nreceiver.ecn = \"{mode}\""));
        taken(&format!("ecn = \"{mode}\"\nsender.ecn = \"off\"\nreceiver.ecn = \"off\""));
    }
    taken("algorithm = \"slow_start+dctcp\"\nsender.ecn = \"dctcp\"");
}

#[test]
fn marks_of_an_end_beside_other_ones_of_the_flow_are_refused() {
    refused("ecn = \"off\"\nsender.ecn = \"classic\"", 6, &["the flow's `ecn` says \"off\"", "leave one of them"]);
    refused("ecn = \"dctcp\"\nreceiver.ecn = \"classic\"", 6, &["the flow's `ecn` says \"dctcp\""]);
    let dctcp = "algorithm = \"slow_start+dctcp\"\nsender.ecn = \"accurate\"\nreceiver.ecn = \"accurate\"";
    refused(dctcp, 6, &["dctcp sets \"dctcp\" at both ends", "write ecn = \"accurate\" in the flow"]);
    refused("sender.ect1 = true", 5, &["flow[0].sender.ect1: ", "no ECN"]);
    refused("algorithm = \"dctcp\"\necn = \"off\"\nsender.ect1 = true", 7, &["no ECN"]);
    taken("sender.ect1 = false");
    for marks in ["algorithm = \"dctcp\"", "ecn = \"accurate\"", "receiver.ecn = \"classic\"\nsender.ecn = \"classic\""]
    {
        taken(&format!("{marks}\nsender.ect1 = true"));
    }
}

#[test]
fn keys_that_need_another_are_refused_without_it() {
    refused("sender.handshake_rtt = \"50 ms\"", 5, &["\"50 ms\" would have no influence", "`handshake = false`"]);
    taken("sender = { handshake = false, handshake_rtt = \"50 ms\" }");
    let most = "receiver = { ack_aggregation_most = 2 }";
    refused(most, 5, &["2 would have no influence without `receiver.ack_aggregation`"]);
    taken("receiver = { ack_aggregation = \"1 ms\", ack_aggregation_most = 2 }");
    for flow in ["every = \"1 s\"", "every = \"1 s\"\ncount = 1"] {
        refused(flow, 5, &["flow[0].every: one flow has no other to start after it"]);
    }
    taken("every = \"1 s\"\ncount = 2");
    taken("every = \"0 s\"\ncount = 1");
}

#[test]
fn keys_whose_work_others_leave_undone_are_refused() {
    refused("sender.wake_divisor = 5", 5, &["flow[0].sender.wake_divisor: would have no influence", "`send_buffer`"]);
    taken("sender = { wake_divisor = 5, send_buffer = \"100 kB\" }");
    // As ns-3 has it; a race's scenario does not say whose it is.
    taken("sender.wake_divisor = 0");
    taken("dialect = \"ns3\"");
    let new_reno = "sender.loss_detection = \"new_reno\"";
    let slack = "sender.timer_slack = \"5 ms\"";
    refused(&format!("{new_reno}\n{slack}"), 6, &["flow[0].sender.timer_slack: ", "new_reno"]);
    taken(slack);
    taken("sender = { timer_slack = \"5 ms\", tail_loss_probe = false }");
    // It says what is so.
    taken(&format!("{new_reno}\nsender.tail_loss_probe = false"));
    let (count, percent) = ("receiver.compressed_sack_count = 9", "receiver.compressed_sack_rtt_percent = 9");
    let (never, longer) = ("receiver.compressed_sack_delay = \"0 s\"", "receiver.compressed_sack_delay = \"3 ms\"");
    for key in [count, percent] {
        let name = key.split_once(" =").unwrap().0;
        refused(&format!("{never}\n{key}"), 6, &[name, "`compressed_sack_delay = \"0 s\"` holds no ACK back"]);
        refused(&format!("dialect = \"ns3\"\n{key}"), 6, &[name, "holds no ACK back"]);
        taken(key);
    }
    let no_share = "receiver.compressed_sack_rtt_percent = 0";
    for key in [count, longer] {
        let name = key.split_once(" =").unwrap().0;
        refused(&format!("{no_share}\n{key}"), 6, &[name, "`compressed_sack_rtt_percent = 0` holds no ACK back"]);
        taken(key);
    }
    taken(never);
    taken(no_share);
    let (fixed, most) = ("receiver.adaptive_delay = false", "receiver.ack_delay_max = \"100 ms\"");
    refused(&format!("{fixed}\n{most}"), 6, &["flow[0].receiver.ack_delay_max: ", "waits for `ack_delay`"]);
    taken(most);
    taken(fixed);
    // Without it the delay would be out of its range.
    taken(&format!("{fixed}\nreceiver.ack_delay = \"500 ms\"\nreceiver.ack_delay_max = \"500 ms\""));
}

#[test]
fn how_a_window_shrinks_is_refused_where_the_avoidance_sets_it_from_the_first_packet_on() {
    for reduction in ["immediate", "proportional_rfc9937"] {
        let key = format!("sender.reduction = \"{reduction}\"");
        for name in ["bbr", "bbr3"] {
            let own = format!("since {name} sets the window in recoveries itself");
            refused(&format!("algorithm = \"{name}\"\n{key}"), 6, &["flow[0].sender.reduction: ", &own]);
            // Its start is one whose window shrinks so.
            taken(&format!("algorithm = \"hystart+{name}\"\n{key}"));
        }
        taken(&key);
        taken(&format!("algorithm = \"built_in+cubic\"\n{key}"));
    }
}

#[test]
fn how_long_a_rate_holds_that_no_start_leaves_is_refused() {
    let key = "left_behind_rtts = 5";
    for start in ["hystart", "slow_start", "built_in", "rapid_start"] {
        let wanted = format!("flow[0].left_behind_rtts: would have no influence, since {start} leaves no rate");
        refused(&format!("algorithm = \"{start}+cubic\"\n{key}"), 6, &[&wanted]);
    }
    for start in ["paced_chirping", "two_gap_chirping", "adaptive_chirping", "bbr_start", "fair_queuing_probe"] {
        let flow = format!("algorithm = \"{start}+cubic\"\n{key}");
        taken(&flow);
        refused(&format!("{flow}\npacing = \"on\""), 6, &["`pacing` has a rate of its own"]);
    }
    taken("left_behind_rtts = 2");
    let heard = |flow: &str| {
        let flows = read(flow).unwrap().simulation(0).unwrap().simulation.flows;
        let flowstart_simulator::Traffic::Tcp(tcp) = &flows[0].traffic else { panic!() };
        tcp.controller.left_behind_rtts
    };
    let chirps = "algorithm = \"adaptive_chirping+cubic\"";
    assert_eq!([chirps.to_owned(), format!("{chirps}\n{key}")].map(|flow| heard(&flow)), [2, 5]);
}

#[test]
fn what_concerns_an_opening_is_refused_where_there_is_none() {
    for key in ["sender.syn_timeout = \"2 s\"", "sender.syn_bytes = 40", "receiver.syn_bytes = 40"] {
        let name = key.split_once(" =").unwrap().0;
        let place = format!("flow[0].{name}: would have no influence, since no handshake");
        refused(&format!("sender.handshake = false\n{key}"), 6, &[&place, "remove `handshake = false`"]);
        taken(key);
    }
    taken("dialect = \"ns3\"\nsender.handshake = false");
}

#[test]
fn keys_of_what_a_flow_does_not_do_are_refused() {
    let window = "sender.peer_window = \"20 kB\"";
    refused(window, 5, &["flow[0].sender.peer_window: would have no influence", "`handshake = false`"]);
    taken(&format!("sender.handshake = false\n{window}"));
    let timeout = "sender.request_timeout = \"1 s\"";
    refused(timeout, 5, &["flow[0].sender.request_timeout: would have no influence", "\"quick_start\""]);
    let asks = "algorithm = \"quick_start+cubic\"";
    taken(&format!("{asks}\n{timeout}"));
    refused(&format!("{asks}\nsender.handshake = false\n{timeout}"), 7, &["no SYN asks"]);
    for key in ["reorder_window_divisor", "reorder_steps_max", "reorder_persist"] {
        let key = format!("sender.{key} = 2");
        refused(&format!("sender.loss_detection = \"new_reno\"\n{key}"), 6, &["does not wait", "new_reno"]);
        taken(&key);
    }
}

#[test]
fn starts_after_the_end_and_marks_that_nobody_can_have_are_told() {
    let told = |flow: &str| read(flow).unwrap().without_influence();
    assert!(told("").is_empty());
    let late = told("start = \"9 s\"\n[[flow]]\nstart = \"10 s\"\n[[udp]]\nrate = \"1 Mbit/s\"\nstart = \"20 s\"");
    assert_eq!(
        late,
        [
            "flow[1].start: who starts at 10 s sends at that moment alone, since the run is over then",
            "udp[0].start: nobody starts at 20 s, since the run is over after 10 s"
        ]
    );
    let marked = |flow: &str| {
        let text = format!("[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\nmark = \"1 %\"\n[[flow]]\n{flow}\n");
        Scenario::parse("test.toml", &text).unwrap().without_influence()
    };
    assert_eq!(marked(""), ["path.mark: nothing is marked, since no flow has ECN"]);
    for flow in ["ecn = \"classic\"", "algorithm = \"dctcp\"", "[[udp]]\nrate = \"1 Mbit/s\"\necn = true"] {
        assert!(marked(flow).is_empty(), "{flow}");
    }
}

#[test]
fn a_limit_of_one_flow_above_that_of_all_is_refused() {
    let read = |path: &str| {
        let path = format!("[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n{path}\n[[flow]]\n");
        Scenario::parse("test.toml", &path).map_err(|error| error.to_string())
    };
    let queue = |most: u64| format!("queue = {{ kind = \"drr\", flow_limit = {most}, limit = {{ packets = 50 }} }}");
    let message = read(&queue(51)).unwrap_err();
    assert!(message.starts_with("test.toml:4:") && message.contains("path.queue: a flow_limit of 51"), "{message}");
    assert!(read(&queue(50)).is_ok() && read("queue = \"drr\"").is_ok());
    let buffer = "queue = { kind = \"drr\", flow_limit = 51 }\nbuffer = \"50 packets\"";
    assert!(read(buffer).unwrap_err().contains("of all flows the queue holds 50 packets"));
    assert!(read(&buffer.replace("50 packets", "60 kB")).is_ok());
}

/// They named the place in the simulation, which is none in the file.
#[test]
fn what_a_simulation_refuses_is_told_at_the_key_of_the_file() {
    let path = "[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n";
    for (text, wanted) in [
        (format!("{path}[[udp]]\nrate = \"0 bit/s\"\n"), "test.toml:5:8: udp[0].rate: datagrams need"),
        (
            format!("{path}[[flow]]\ncount = 3\n[[udp]]\nrate = \"1 Mbit/s\"\npacket = \"9 B\"\n"),
            "test.toml:8:10: udp[0].packet: a",
        ),
        (format!("{path}access = \"0 bit/s\"\n[[flow]]\n"), "test.toml:4:10: path.access: an access link"),
        (
            format!("{path}[[flow]]\n[[flow]]\npaced = {{ rate = \"0 bit/s\", message = \"1 kB\" }}\n"),
            "test.toml:6:9: flow[1].paced: paced writes",
        ),
        // They came once per nanosecond, whatever was asked for.
        (
            format!("{path}[[flow]]\n[[flow]]\npaced = {{ rate = \"8100 Gbit/s\", message = \"1 kB\" }}\n"),
            "test.toml:6:9: flow[1].paced: 8100 Gbit/s would be more than 1 kB in a nanosecond",
        ),
        (
            format!("{path}[[udp]]\nrate = \"20000 Gbit/s\"\n"),
            "test.toml:5:8: udp[0].rate: 20000 Gbit/s would be more than 1.5 kB in a nanosecond",
        ),
        (
            format!(
                "{path}[[flow]]\nwrites = [{{ after = \"1 s\", bytes = \"1 B\" }}, {{ after = \"0 s\", bytes = \"1 B\" }}]\n"
            ),
            "test.toml:5:10: flow[0].writes: the writes",
        ),
    ] {
        let message = Scenario::parse("test.toml", &text).unwrap_err().to_string();
        assert!(message.starts_with(wanted), "{message}");
    }
}

#[test]
fn what_a_flow_list_says_is_not_said_beside_it() {
    let folder = std::env::temp_dir();
    for key in
        ["size = \"1 kB\"", "start = \"1 s\"", "count = 2", "paced = { rate = \"1 Mbit/s\", message = \"1 kB\" }"]
    {
        let text = format!("[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\nlist = \"none.csv\"\n{key}\n");
        let message = Scenario::read("test.toml", &text, &folder).unwrap_err().to_string();
        let name = key.split_once(" =").unwrap().0;
        assert!(message.starts_with("test.toml:6:"), "{message}");
        assert!(message.contains(&format!("flow[0].{name}: would have no influence, since `list`")), "{message}");
    }
}

#[test]
fn seeds_that_tables_cannot_hold_and_phases_that_move_nothing_are_refused() {
    let path = "[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\n[[flow]]\n";
    let read = |key: &str| Scenario::parse("test.toml", &format!("{key}\n{path}")).map_err(|e| e.to_string());
    assert!(read("seed = 9223372036854775807").is_ok());
    let message = read("seed = 9223372036854775808").unwrap_err();
    assert!(message.contains("seed") && message.contains("between 0 and 9223372036854775807"), "{message}");
    let message = read("phases = \"0 ms\"").unwrap_err();
    assert!(message.starts_with("test.toml:1:") && message.contains("phases: 0 moves no start"), "{message}");
}

#[test]
fn keys_of_ends_out_of_their_range_are_refused_by_name() {
    for (end, key, must) in [
        ("sender", "max_rto = \"0 s\"", "more than zero"),
        ("sender", "min_rto = \"0 s\"", "more than zero"),
        ("sender", "min_rto = \"121 s\"", "at most `max_rto`"),
        ("sender", "syn_timeout = \"0 s\"", "more than zero"),
        ("sender", "reorder_window_divisor = 0", "at least 1"),
        ("sender", "send_buffer = \"0 B\"", "at least 1 byte"),
        ("receiver", "initial_mss = 0", "at least 1 byte"),
        ("receiver", "ack_every = 0", "at least 1 segment"),
        ("receiver", "ack_delay = \"201 ms\"", "at most `ack_delay_max`"),
        ("receiver", "receive_buffer = \"0 B\"", "at least 1 byte"),
    ] {
        let field = key.split_once(" =").unwrap().0;
        refused(&format!("{end}.{key}"), 5, &[&format!("flow[0].{end}.{field}: {field} must be {must}")]);
    }
}

#[test]
fn what_is_pushed_is_acknowledged_at_once_with_bursts_unless_the_file_says_otherwise() {
    let acknowledged = |flow: &str| {
        let scenario = read(flow).unwrap();
        let again = Scenario::parse("effective.toml", &scenario.effective()).unwrap();
        assert_eq!(again, scenario);
        let flows = again.simulation(0).unwrap().simulation.flows;
        let flowstart_simulator::Traffic::Tcp(tcp) = &flows[0].traffic else { panic!() };
        tcp.receiver.ack_pushed
    };
    assert_eq!(acknowledged(""), None);
    for bursts in ["offload = \"linux\"", "dialect = \"linux\"", "sender.offload = {}"] {
        assert_eq!(acknowledged(bursts), Some(true), "{bursts}");
        assert_eq!(acknowledged(&format!("{bursts}\nreceiver.ack_pushed = false")), Some(false), "{bursts}");
    }
}

#[test]
fn what_a_control_with_a_start_of_its_own_does_not_heed_is_refused() {
    for name in ["bbr", "bbr3"] {
        for algorithm in [format!("algorithm = \"{name}\""), format!("avoidance = {{ name = \"{name}\" }}")] {
            let own = format!("since {name} paces at its own rate");
            refused(&format!("{algorithm}\npacing = \"on\""), 6, &[&own, "flow[0].pacing"]);
            let pacing = "pacing = { start_percent = 300, catch_up_percent = 50 }";
            refused(&format!("{algorithm}\n{pacing}"), 6, &[&own]);
            let least = format!("since {name} starts without a threshold");
            refused(&format!("{algorithm}\ninitial_ssthresh = 30"), 6, &[&least, "flow[0].initial_ssthresh: 30"]);
            taken(&format!("{algorithm}\npacing = \"off\""));
            taken(&format!("{algorithm}\npacing = {{ catch_up_percent = 0 }}"));
            taken(&format!("{algorithm}\npacing = \"on\"\ninitial_window = 40"));
            taken(&format!("{algorithm}\npacing = {{ unpaced_packets = 0 }}"));
        }
        taken(&format!("algorithm = \"hystart+{name}\"\npacing = \"on\"\ninitial_ssthresh = 30"));
        taken(&format!("algorithm = \"bbr_start+{name}\"\npacing = \"on\"\ninitial_ssthresh = 30"));
    }
    taken("algorithm = \"hystart+cubic\"\npacing = \"on\"\ninitial_ssthresh = 30");
}

#[test]
fn flows_of_arrivals_and_of_users_are_looked_at_too() {
    let path = "[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n";
    let sizes = "mean_gap = \"1 s\"\nsizes = { kind = \"fixed\", size = \"1 kB\" }";
    let flow = "flow = { sender = { ecn = \"classic\" } }";
    for (text, key) in [
        (format!("{path}[[arrivals]]\n{sizes}\n{flow}\n"), "test.toml:7:27: arrivals[0].flow.sender.ecn: "),
        (format!("{path}[[web]]\nusers = 1\n{flow}\n"), "test.toml:6:27: web[0].flow.sender.ecn: "),
    ] {
        let message = Scenario::parse("test.toml", &text).unwrap_err().to_string();
        assert!(message.starts_with(key) && message.contains("set alike"), "{message}");
    }
}
