use super::*;

fn scenario(text: &str) -> Scenario {
    let text = format!("{text}\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"10 ms\"\n");
    toml::from_str(&text).unwrap()
}

/// The complaint on a machine with 4 GB free and two cores.
fn complaint(text: &str) -> Option<String> {
    let problem = scenario(text).check_memory_of(|| 4_000_000_000, 2).err()?;
    Some(problem.locate("test.toml", "").to_string())
}

#[test]
fn a_million_flows_are_refused_with_what_they_need_and_what_there_is() {
    let complaint = complaint("flow = [{ count = 1000000, size = \"1 B\" }]").unwrap();
    assert!(complaint.contains("needs about 7900 MB of memory, and this machine has 4000 MB free"), "{complaint}");
    assert!(complaint.contains("fewer flows (count)"), "{complaint}");
}

#[test]
fn a_hundred_thousand_flows_are_not_refused_but_many_runs_of_them_are() {
    let flows = "flow = [{ count = 100000, size = \"1 B\" }]";
    assert_eq!(complaint(flows), None);
    assert!(complaint(&format!("runs = 100\n{flows}")).is_some());
}

/// A flow was counted at the rate of the fastest link of the file.
#[test]
fn the_slowest_link_on_a_flows_way_says_how_many_packets_it_has() {
    let of = |link: &str, flows: &str| {
        let text = format!(
            "duration = \"3600 s\"\noutput = {{ packets = true, sample = \"0 s\" }}\n{flows}\n\
             [[link]]\nname = \"slow\"\ncapacity = \"10 Mbit/s\"\ndelay = \"5 ms\"\n\
             [[link]]\nname = \"fast\"\ncapacity = \"{link}\"\ndelay = \"5 ms\"\n"
        );
        let scenario: Scenario = toml::from_str(&text).unwrap();
        scenario.check_memory_of(|| 4_000_000_000, 2).err().map(|problem| problem.locate("test.toml", "").to_string())
    };
    for flows in [
        "flow = [{ forward = [\"fast\", \"slow\"] }]",
        "flow = [{ forward = [\"slow\"], reverse = [\"fast\"] }]",
        "udp = [{ forward = [\"fast\", \"slow\"], rate = \"10 Mbit/s\" }]",
    ] {
        assert_eq!(of("100 Gbit/s", flows), None, "{flows}");
    }
    assert!(of("100 Gbit/s", "flow = [{ forward = [\"fast\"] }]").is_some());
    // Two bottlenecks carry as much as both.
    let both = "flow = [{ forward = [\"slow\"] }, { forward = [\"fast\"] }]";
    assert_eq!(of("10 Mbit/s", both), None);
    assert!(of("240 Mbit/s", both).is_some());
}

/// Half a million of them took 12 GB.
#[test]
fn so_many_runs_that_their_tables_do_not_fit_are_refused() {
    let text = |runs: u32| format!("runs = {runs}\noutput = {{ sample = \"0 s\" }}\nflow = [{{}}]");
    assert_eq!(complaint(&text(150_000)), None);
    let refused = complaint(&text(500_000)).unwrap();
    assert!(refused.contains("runs") && refused.contains("fewer runs would do"), "{refused}");
}

#[test]
fn a_table_of_more_packets_than_fit_is_refused_and_of_fewer_is_not() {
    let output = "output = { packets = true, sample = \"0 s\" }";
    // 10 Mbit/s for an hour are 3.1 million packets, and for a day 75 million.
    let greedy = |hours: u64, more: &str| complaint(&format!("duration = \"{} s\"\n{more}", hours * 3600));
    assert_eq!(greedy(1, &format!("{output}\nflow = [{{}}, {{}}]")), None);
    let refused = greedy(24, &format!("{output}\nflow = [{{}}]")).unwrap();
    assert!(refused.contains("output.packets") && refused.contains("no table of packets"), "{refused}");
    assert_eq!(greedy(24, "flow = [{}]"), None, "nobody asked for it");
    // Two hours of all that arrives of a flood.
    assert_eq!(greedy(2, &format!("{output}\nudp = [{{ rate = \"10 Gbit/s\" }}]")), None);
    for (few, many) in [
        ("flow = [{ size = \"1 GB\" }]", "flow = [{ size = \"100 GB\" }]"),
        ("udp = [{ rate = \"1 Mbit/s\" }]", "udp = [{ rate = \"10 Mbit/s\" }]"),
        (
            "flow = [{ paced = { rate = \"1 Mbit/s\", message = \"1 kB\" } }]",
            "flow = [{ count = 20, paced = { rate = \"1 Mbit/s\", message = \"1 kB\" } }]",
        ),
    ] {
        assert_eq!(greedy(24, &format!("{output}\n{few}")), None, "{few}");
        assert!(greedy(24, &format!("{output}\n{many}")).is_some(), "{many}");
    }
}

#[test]
fn a_rate_that_repeats_counts_with_its_mean() {
    let day = |capacity: &str, size: &str| {
        let text = format!(
            "duration = \"86400 s\"\noutput = {{ packets = true }}\nflow = [{{ size = \"{size}\" }}]\n\
             [path]\ncapacity = {capacity}\nrtt = \"10 ms\"\n"
        );
        toml::from_str::<Scenario>(&text).unwrap().check_memory_of(|| 4_000_000_000, 2)
    };
    let steps = "[{ at = \"0 s\", rate = \"20 Mbit/s\" }, { at = \"1 s\", rate = \"0 bit/s\" }]";
    for capacity in [
        "{ mean = \"10 Mbit/s\", spread = 0.5, correlation = \"1 s\" }".to_owned(),
        format!("{{ period = \"2 s\", steps = {steps} }}"),
    ] {
        assert!(day(&capacity, "1 GB").is_ok(), "{capacity}");
        assert!(day(&capacity, "100 GB").is_err(), "{capacity}");
    }
    // It may be over after a second.
    assert!(day(steps, "100 GB").is_ok());
}

#[test]
fn users_who_surf_for_centuries_are_refused_before_their_pages_are_drawn() {
    let users = "web = [{ users = 100, flow = {} }]";
    assert_eq!(complaint(&format!("duration = \"3600 s\"\n{users}")), None);
    let complaint = complaint(&format!("duration = \"9000000000 s\"\n{users}")).unwrap();
    assert!(complaint.contains("fewer users or a shorter duration"), "{complaint}");
    // Reading it must not draw them either.
    let whole = format!("duration = \"9000000000 s\"\n{users}\n[path]\ncapacity = \"1 Mbit/s\"\nrtt = \"10 ms\"\n");
    assert!(Scenario::parse("test.toml", &whole).is_err());
}

/// The system ended them.
#[test]
fn packets_on_their_way_that_do_not_fit_are_refused_before_the_run() {
    let complaint = |path: &str, flows: &str| {
        let text = format!("duration = \"10 s\"\n[path]\nrtt = \"20 ms\"\n{path}\n{flows}\n");
        let scenario: Scenario = toml::from_str(&text).unwrap();
        let simulation = scenario.compile(0).unwrap().simulation;
        let problem = scenario.check_flight_of(&simulation, || 4_000_000_000, 2).err()?;
        Some(problem.locate("test.toml", &text).to_string())
    };
    let greedy = "[[flow]]";
    let refused = complaint("capacity = \"1000000 Gbit/s\"", greedy).unwrap();
    assert!(refused.starts_with("test.toml:4:") && refused.contains("path.capacity: needs about "), "{refused}");
    assert!(refused.contains("this machine has 4000 MB free; packets on their way take most of it"), "{refused}");
    assert_eq!(complaint("capacity = \"100 Gbit/s\"", greedy), None);
    // Not more than flows send.
    assert_eq!(complaint("capacity = \"1000000 Gbit/s\"", "[[flow]]\nsize = \"1 GB\""), None);
    assert_eq!(complaint("capacity = \"1000000 Gbit/s\"", "[[flow]]\nreceiver.receive_buffer = \"1 GB\""), None);
    assert!(complaint("capacity = \"1000000 Gbit/s\"", "[[flow]]\nsize = \"100 GB\"").is_some());
    // A buffer that fills, and one that cannot in this time.
    assert!(complaint("capacity = \"100 Gbit/s\"\nbuffer = \"1 s\"", "[[flow]]\ncount = 2").is_none());
    assert!(complaint("capacity = \"100 Gbit/s\"\nbuffer = \"9 s\"", greedy).is_some());
    assert_eq!(complaint("capacity = \"10 Mbit/s\"\nbuffer = \"1000000000 packets\"", greedy), None);
    assert_eq!(complaint("capacity = \"100 Gbit/s\"\nbuffer = \"unlimited\"", greedy), None);
    // Datagrams before a link that is slower.
    let datagrams = "[[udp]]\nrate = \"10000 Gbit/s\"\nrtt = \"1 s\"";
    assert!(complaint("capacity = \"10 Mbit/s\"\ndelay = \"0 s\"", datagrams).is_some());
}

/// At 1 Tbit/s they ended the memory; such a rate is refused now, and on long paths less is too
/// much.
#[test]
fn what_a_start_sends_before_the_first_ack_is_on_its_way_too() {
    let text = |rate: &str, rtt: &str, more: &str| {
        format!(
            "duration = \"10 s\"\n[path]\nrtt = \"{rtt}\"\ncapacity = \"10 Mbit/s\"\n[[flow]]\n{more}\
             flow_start = {{ name = \"two_flow_probe\", first_rate = \"{rate}\" }}\n"
        )
    };
    let complaint = |rate: &str, rtt: &str, more: &str| {
        let text = text(rate, rtt, more);
        let scenario: Scenario = toml::from_str(&text).unwrap();
        let simulation = scenario.compile(0).unwrap().simulation;
        let problem = scenario.check_flight_of(&simulation, || 1_000_000_000, 2).err()?;
        Some(problem.locate("test.toml", &text).to_string())
    };
    assert_eq!(complaint("10 Gbit/s", "20 ms", ""), None);
    let refused = complaint("10 Gbit/s", "2 s", "").unwrap();
    assert!(refused.contains("flow: needs about ") && refused.contains("a lower first_rate"), "{refused}");
    assert_eq!(complaint("1 Mbit/s", "2 s", ""), None);
    assert_eq!(complaint("10 Gbit/s", "2 s", "size = \"1 MB\"\n"), None, "not more than flows send");
    let refused = Scenario::parse("test.toml", &text("1 Tbit/s", "20 ms", "")).unwrap_err().to_string();
    assert!(refused.contains("first_rate must be between 1 kbit/s and 10 Gbit/s"), "{refused}");
}

#[test]
fn more_samples_than_fit_are_refused() {
    let path = |more: &str| format!("duration = \"3600 s\"\noutput = {{ sample = \"{more}\" }}\nflow = [{{}}, {{}}]");
    // Three million packets in an hour at 10 Mbit/s.
    assert_eq!(complaint(&path("10 ms")), None);
    assert!(complaint(&path("1 ms")).is_some());
    assert_eq!(complaint(&path("1 ms").replace("[{}, {}]", "[{ count = 9, size = \"1 MB\" }]")), None);
    let refused = complaint(&path("1 us")).unwrap();
    assert!(refused.contains("output.sample") && refused.contains("wider bins"), "{refused}");
    assert_eq!(complaint(&path("0 s")), None);
}

#[test]
fn arrivals_count_as_far_as_they_are_limited() {
    let arrivals = |more: &str| {
        format!(
            "duration = \"1000 s\"\narrivals = [{{ mean_gap = \"10 ns\", {more}sizes = {{ kind = \"fixed\", size = \"1 B\" }}, flow = {{}} }}]"
        )
    };
    assert!(complaint(&arrivals("")).is_some());
    assert_eq!(complaint(&arrivals("most = 1000, ")), None);
    assert_eq!(complaint(&arrivals("until = \"1 ms\", ")), None);
}

#[test]
fn arrivals_that_the_path_cannot_carry_stay_and_count_as_flows() {
    // 80 Gbit/s are offered to 10 Mbit/s: nearly all stay, 5.5 kB each and their rows.
    let arrivals = |size: &str, most: u32| {
        complaint(&format!(
            "duration = \"400 s\"\narrivals = [{{ mean_gap = \"1 ms\", most = {most}, \
             sizes = {{ kind = \"fixed\", size = \"{size}\" }}, flow = {{}} }}]"
        ))
    };
    assert_eq!(arrivals("1 kB", 1_000_000), None, "8 Mbit/s of 10");
    assert!(arrivals("10 MB", 1_000_000).is_none(), "400 000 of 6.7 kB are less than 3 GB");
    let complaint = complaint(
        "duration = \"600 s\"\narrivals = [{ mean_gap = \"1 ms\", \
         sizes = { kind = \"fixed\", size = \"10 MB\" }, flow = {} }]",
    )
    .unwrap();
    assert!(complaint.contains("arrivals") && complaint.contains("4020 MB"), "{complaint}");
}

#[test]
fn limits_of_the_process_and_of_its_container_are_read() {
    let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                  Max resident set          unlimited            unlimited            bytes\n\
                  Max address space         4096000000           unlimited            bytes\n";
    assert_eq!(address_space(limits), Some(4_096_000_000));
    assert_eq!(address_space(&limits.replace("4096000000", "unlimited ")), None);
    assert_eq!(kib("Name: x\nVmSize:\t    2048 kB\n", "VmSize:"), Some(2_097_152));
    assert_eq!(group("0::/user.slice/a\n"), Some(PathBuf::from("/sys/fs/cgroup/user.slice/a")));
    assert_eq!(group("4:memory:/a\n"), None);
    assert_eq!((left("1000\n", "400\n"), left("max\n", "400\n"), left("100\n", "400\n")), (Some(600), None, Some(0)));
}
