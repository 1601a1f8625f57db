use flowstart_units::Rate;

use super::*;

fn figure(text: &str) -> Figure {
    Figure::parse("small", text, None).unwrap_or_else(|error| panic!("{error}\n{}", error.snippet()))
}

fn run(figures: &[Figure], threads: usize, full: bool) -> Vec<FigureResult> {
    let options = ReproduceOptions { threads: Some(threads), pictures: true, full, ..ReproduceOptions::default() };
    reproduce(figures, &options).unwrap().unwrap()
}

/// A static window of 500 kbit at 10 Mbit/s and 100 ms, and one as large as the bandwidth-delay
/// product.
const WINDOWS: &str = r#"
title = "Windows"
shows = "Something."

[probe]
step = "1 Mbit/s"
up_to = "12 Mbit/s"
packet = "125 B"
epsilon = 0
warm_up = "1 s"
quick_samples = 50
quick_lasting = "20 s"

[probe.through]
kind = "static_window"
capacity = "10 Mbit/s"
latency = "50 ms"
round_trip = "100 ms"
window = "62625 B"

[vary.window.half]
probe.through.window = "62625 B"

[vary.window.whole]
probe.through.window = "125125 B"
"#;

fn claim(id: &str, of: &str, measure: &str, expect: &str) -> String {
    format!(
        "[[claim]]\nid = \"{id}\"\norigin = \"paper\"\nsource = \"\"\nsays = \"\"\nmeasure = {{ {measure} }}\nof = {of}\nexpect = \"{expect}\"\n"
    )
}

#[test]
fn a_static_window_has_the_attainable_rates_of_its_closed_form() {
    let claims = [
        claim("a", "'half'", "kind = 'long_term_rate'", "= 5 Mbit/s"),
        claim("b", "'half'", "kind = 'service_origin'", "50 ms ± 0.2 ms"),
        claim("c", "'half'", "kind = 'attainable_rate', over = '200 ms'", "3.75 Mbit/s ± 0.5 %"),
        claim("d", "'whole'", "kind = 'attainable_rate', over = '200 ms'", "7.5 Mbit/s ± 0.5 %"),
        claim("e", "'half'", "kind = 'time_to_share', share = 0.9", "500 ms ± 1 %"),
        claim("f", "'half'", "kind = 'message_delay', rate = '2 Mbit/s', statistic = 'max'", "50.1 ms ± 0.5 %"),
        claim("g", "'half'", "kind = 'delay_share', rate = '5 Mbit/s', above = '50 ms'", "= 100 %"),
    ];
    let text = format!("{WINDOWS}{}[[picture]]\nkind = 'service_curve'\ntitle = 'x'\n", claims.concat());
    let result = run(&[figure(&text)], 2, false).remove(0);
    for claim in &result.claims {
        assert_eq!(claim.holds, Some(true), "{}: {}", claim.claim.spec.id, claim.ours());
    }
    // The estimate and the closed form of each.
    assert_eq!(result.pictures[0].curves.len(), 4);
}

/// Six NewReno flows at 10 Mbit/s of which one is probed.
const SHARED: &str = r#"
title = "Shared"
shows = "Something."

[scenario.path]
capacity = "10 Mbit/s"
rtt = "20 ms"
jitter = "1 ms"

[[scenario.flow]]
name = "cross"
algorithm = "reno"

[[scenario.flow]]
name = "probe"
algorithm = "reno"
start = "1 s"

[probe]
flow = "probe"
step = "1 Mbit/s"
up_to = "9 Mbit/s"
samples = 60
quick_samples = 20
lasting = "60 s"
quick_lasting = "30 s"
epsilon = 0.05
least = "20 s"
warm_up = "2 s"

[[claim]]
id = "parts"
origin = "paper"
source = ""
says = ""
measure = { kind = "message_delay", rate = "3 Mbit/s", statistic = "mean" }
expect = ">= 10 ms"

[[claim]]
id = "beyond"
origin = "paper"
source = ""
says = ""
measure = { kind = "message_delay", rate = "9 Mbit/s", part = "sender", statistic = "median" }
expect = ">= 1 s"

[[claim]]
id = "memory"
origin = "paper"
source = ""
says = ""
measure = { kind = "window_correlation", rate = "3 Mbit/s", lag = "100 ms" }
expect = "0 .. 1"

[[picture]]
kind = "delay_ccdf"
title = "Delays"
rates = ["3 Mbit/s"]
parts = ["total", "sender", "network", "receiver"]

[[picture]]
kind = "attainable_rate"
title = "Attained"
"#;

#[test]
fn a_flow_of_a_scenario_is_probed_and_its_delay_is_the_sum_of_the_parts() {
    let part = |part: &str| {
        claim(
            "mean",
            "[]",
            &format!("kind = 'message_delay', rate = '3 Mbit/s', part = '{part}', statistic = 'mean'"),
            "<= 10 s",
        )
    };
    let text = |claim: &str| format!("{}{claim}", &SHARED[..SHARED.find("[[claim]]").unwrap()]);
    let figures: Vec<Figure> = ["total", "sender", "network", "receiver"].map(|name| figure(&text(&part(name)))).into();
    let results = run(&figures, 2, false);
    let mean = |number: usize| results[number].claims[0].cases[0].evidence.mean.unwrap();
    assert!(mean(2) > 0.01, "propagation takes 10 ms");
    // Histograms are 1 % fine.
    assert!((mean(0) / (mean(1) + mean(2) + mean(3)) - 1.0).abs() < 0.02);
    // All four share the probes: only the first one made them.
    assert!(results[0].data_packets > 0);
    assert!(results[1..].iter().all(|result| result.data_packets == 0));
}

#[test]
fn the_decay_of_a_tail_is_the_rise_of_the_delay_per_decade_between_two_percentiles() {
    let at = "kind = 'message_delay', rate = '3 Mbit/s', statistic =";
    let decay = "kind = 'delay_decay', rate = '3 Mbit/s', from = 'median', until = 'p95'";
    let claims = [
        claim("low", "[]", &format!("{at} 'median'"), ">= 0 s"),
        claim("high", "[]", &format!("{at} 'p95'"), ">= 0 s"),
        claim("decay", "[]", decay, ">= 0 s"),
        claim("itself", "[]", &format!("{decay}, than = 'total'"), "= 1"),
    ];
    let text = format!("{}{}", &SHARED[..SHARED.find("[[claim]]").unwrap()], claims.concat());
    let options = ReproduceOptions { threads: Some(2), runs: Some(1), ..ReproduceOptions::default() };
    let result = reproduce(&[figure(&text)], &options).unwrap().unwrap().remove(0);
    let [low, high, decay, itself] = [0, 1, 2, 3].map(|number| result.claims[number].cases[0].evidence.mean.unwrap());
    assert!(decay > 0.0, "{decay}");
    assert!((decay * 10.0_f64.log10() - (high - low)).abs() < 1e-9, "{decay} {low} {high}");
    assert_eq!(itself, 1.0);
}

#[test]
fn rates_that_a_claim_names_are_probed_although_a_lower_one_was_refused() {
    let result = run(&[figure(SHARED)], 2, false).remove(0);
    let beyond = result.claims.iter().find(|claim| claim.claim.spec.id == "beyond").unwrap();
    assert_eq!(beyond.holds, Some(true), "{}", beyond.ours());
    let names: Vec<&str> = result.pictures[0].curves.iter().map(|curve| curve.name.as_str()).collect();
    assert_eq!(names, ["total", "sender's stack", "network", "receiver's stack"]);
    assert_eq!(result.pictures[1].curves.len(), 1);
}

#[test]
fn probing_gives_the_same_for_any_number_of_threads_and_more_samples_if_asked_for() {
    let figures = [figure(SHARED), figure(SHARED)];
    let one = run(&figures, 1, false);
    assert!(one == run(&figures, 3, false));
    assert!(one[0].claims == one[1].claims);
    assert!(run(&figures[..1], 2, true)[0].simulated_seconds > one[0].simulated_seconds);
}

#[test]
fn a_film_on_a_constant_rate_is_delayed_as_worked_out_from_its_frames() {
    let text = format!(
        "{}{}",
        WINDOWS
            .replace("epsilon = 0\nwarm_up = \"1 s\"", "epsilon = 0.02\nwarm_up = \"0 s\"")
            .replace("\"1 Mbit/s\"", "\"0.94 Mbit/s\"")
            .replace("\"10 Mbit/s\"", "\"9.4 Mbit/s\"")
            .replace("50 ms", "0 ms")
            .replace("100 ms", "1 ms")
            .replace("62625 B", "1 MB")
            .replace("125125 B", "2 MB"),
        claim("a", "[]", "kind = 'film_bound', statistic = 'max'", "1.2855 s ± 0.2 %")
    );
    let result = run(&[figure(&text)], 1, false).remove(0);
    assert_eq!(result.claims[0].holds, Some(true), "{}", result.claims[0].ours());
}

#[test]
fn a_film_through_a_loop_keeps_its_bounds() {
    let text = format!(
        "{}{}{}{}",
        WINDOWS
            .replace("[probe.through]\nkind = \"static_window\"\ncapacity = \"10 Mbit/s\"\nlatency = \"50 ms\"\nround_trip = \"100 ms\"\nwindow = \"62625 B\"\n", "[probe.through]\nkind = \"adaptive_window\"\nlatency = \"5 ms\"\nround_trip = \"10 ms\"\nmark = \"0.1 %\"\n")
            .replace("\"12 Mbit/s\"", "\"6 Mbit/s\"")
            .replace("packet = \"125 B\"\nepsilon = 0", "packet = \"250 B\"\nepsilon = 0.01\nquick_replays = 100")
            .replace("quick_samples = 50\nquick_lasting = \"20 s\"", "quick_samples = 750\nquick_lasting = \"4000 s\"")
            .split("[vary")
            .next()
            .unwrap(),
        claim("a", "[]", "kind = 'film_violations'", "<= 2 %"),
        claim("b", "[]", "kind = 'film_looseness'", "1 .. 3"),
        "\n[[picture]]\nkind = \"film_replay\"\ntitle = \"packets\"\n"
    );
    let result = run(&[figure(&text)], 1, false).remove(0);
    let [bound, met] = result.pictures[0].curves.as_slice() else { panic!("two curves") };
    assert!(bound.name.contains("bound") && met.name.contains("met"));
    assert_eq!(bound.points.len(), met.points.len());
    let below = bound.points.iter().zip(&met.points).filter(|(bound, met)| bound[1] < met[1]).count();
    assert!(below * 50 <= bound.points.len() && bound.points.len() > 1_000, "{below} of {}", bound.points.len());
    for claim in &result.claims {
        assert_eq!(claim.holds, Some(true), "{}: {}", claim.claim.spec.id, claim.ours());
    }
}

#[test]
fn errors_say_what_a_probing_needs() {
    let error = |from: &str, to: &str| {
        assert!(SHARED.contains(from), "{from}");
        Figure::parse("small.toml", &SHARED.replacen(from, to, 1), None).unwrap_err().to_string()
    };
    for (from, to, part) in [
        ("flow = \"probe\"", "flow = \"prob\"", "there are cross, probe"),
        ("step = \"1 Mbit/s\"", "step = \"10 Mbit/s\"", "no probing rate"),
        ("step = \"1 Mbit/s\"", "step = \"1 kbit/s\"", "more than 1000"),
        ("samples = 60", "samples = 2", "at least 10"),
        ("epsilon = 0.05", "epsilon = 2", "epsilon"),
        ("rate = \"3 Mbit/s\", statistic", "rate = \"3.5 Mbit/s\", statistic", "is not a probing rate"),
        ("kind = \"message_delay\", rate = \"3 Mbit/s\",", "kind = \"queue_delay\",", "is not measured by probing"),
        ("kind = \"delay_ccdf\"", "kind = \"throughput\"", "is not made by probing"),
        ("least = \"20 s\"", "least = \"20 s\"\nthrough = { kind = \"static\" }", "static_window"),
    ] {
        let message = error(from, to);
        assert!(message.contains(part), "{to}: {message}");
    }
    let plain = SHARED.replace("flow = \"probe\"\n", "");
    let plain = format!("{}{}", &plain[..plain.find("[probe]").unwrap()], &plain[plain.find("[[claim]]").unwrap()..]);
    let message = Figure::parse("small.toml", &plain, None).unwrap_err().to_string();
    assert!(message.contains("add a [probe]"), "{message}");
    assert_eq!(Rate::from_mbps(1).to_string(), "1 Mbit/s");
}
