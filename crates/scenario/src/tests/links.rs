//! Ways over several links, and where round trips are those of a way.

use super::*;

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
