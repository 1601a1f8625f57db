use flowstart_units::Span;

use super::*;
use flowstart_parallel::Cancel;

const GOOD: &str = r#"
title = "A small figure"
shows = "Something."

[scenario]
duration = "1 s"

[scenario.path]
capacity = "20 Mbit/s"
rtt = "10 ms"

[[scenario.flow]]
name = "bulk"

[[scenario.arrivals]]
load = "20 %"
sizes = { kind = "fixed", size = "20 kB" }
flow = { name = "web", algorithm = "cubic" }

[vary.control.hystart]
title = "with HyStart"
flow.algorithm = "hystart+cubic"

[vary.control.plain]
title = "without"
flow.algorithm = "slow_start+cubic"

[vary.rtt.near]
path.rtt = "10 ms"

[vary.rtt.far]
path.rtt = "40 ms"

[[claim]]
id = "queue"
origin = "paper"
source = "Fig. 1"
says = "HyStart keeps the queue shorter."
measure = { kind = "queue_delay", until = "500 ms", statistic = "max" }
of = "hystart"
ratio_to = "plain"
expect = "< 1"

[[claim]]
id = "transfers"
origin = "paper"
source = "Fig. 2"
says = "Transfers take a while."
measure = { kind = "completion_time", flow = "web", statistic = "median" }
of = ["plain", "near"]
expect = ">= 10 ms"
assumed = "Which transfers."

[[claim]]
id = "never"
origin = "paper"
source = "Fig. 3"
says = "It is faster than the link."
measure = { kind = "time_to_rate", rate = "30 Mbit/s" }
of = ["plain", "near"]
expect = "<= 500 ms"
why = "It cannot be."

[[picture]]
kind = "throughput"
title = "Throughput"
apart = ["rtt"]
"#;

fn figure(text: &str) -> Figure {
    Figure::parse("small", text, None).unwrap_or_else(|error| panic!("{error}\n{}", error.snippet()))
}

/// GOOD with one piece of text replaced: the error's line, message and snippet.
fn error(from: &str, to: &str) -> (usize, String) {
    assert!(GOOD.contains(from), "{from}");
    let error = Figure::parse("small.toml", &GOOD.replacen(from, to, 1), None).unwrap_err();
    (error.line().unwrap_or(0), error.to_string())
}

#[test]
fn variants_are_all_combinations_of_levels_each_a_scenario_of_its_own() {
    let figure = figure(GOOD);
    let names: Vec<&str> = figure.variants.iter().map(|variant| variant.name.as_str()).collect();
    assert_eq!(names, ["hystart, near", "hystart, far", "plain, near", "plain, far"]);
    let Subject::Scenario(far) = &figure.variants[3].subject else { panic!() };
    assert_eq!(far.path.as_ref().unwrap().rtt, Span::from_millis(40));
    assert_eq!(far.flow[0].algorithm.as_deref(), Some("slow_start+cubic"));
    assert_eq!(far.arrivals[0].flow.algorithm.as_deref(), Some("cubic"));
    assert_eq!(far.title, "without, far");
    assert_eq!(figure.claims[0].cases, [(0, Some(2)), (1, Some(3))]);
    assert_eq!(figure.claims[1].cases, [(2, None)]);
}

#[test]
fn errors_point_at_line_and_column_and_say_what_would_be_right() {
    let line_of = |wanted: &str| GOOD[..GOOD.find(wanted).unwrap()].matches('\n').count() + 1;
    for (from, to, at, parts) in [
        ("shows = ", "show = ", "shows = ", vec!["unknown field `show`", "did you mean `shows`?"]),
        ("capacity = \"20 Mbit/s\"", "capacity = 20", "capacity", vec!["did you mean \"20 Mbit/s\"?"]),
        ("path.rtt = \"40 ms\"", "path.rtt = \"0 ms\"", "path.rtt = \"40 ms\"", vec!["above 0"]),
        ("path.rtt = \"40 ms\"", "path.rt = \"40 ms\"", "path.rtt = \"40 ms\"", vec!["did you mean `rtt`?"]),
        ("flow.algorithm = \"hystart+cubic\"", "flow.algorithm = \"hystart+cubid\"", "flow.algorithm", vec!["cubic"]),
        ("of = \"hystart\"", "of = \"histart\"", "of = \"hystart\"", vec!["did you mean \"hystart\"?"]),
        ("ratio_to = \"plain\"", "ratio_to = [\"plain\", \"hystart\"]", "ratio_to", vec!["two levels of \"control\""]),
        ("shows = ", "open = [\"rt\"]\nshows = ", "shows", vec!["no factor \"rt\"", "did you mean \"rtt\"?"]),
        ("ratio_to = \"plain\"", "ratio_to = \"hystart\"", "ratio_to", vec!["with itself"]),
        ("expect = \"< 1\"", "expect = \"< 1 ms\"", "expect = \"< 1\"", vec!["it looks like \"0.8\""]),
        ("expect = \"<= 500 ms\"", "expect = \"about\"", "expect = \"<= 500 ms\"", vec!["looks like"]),
        ("flow = \"web\"", "flow = \"wen\"", "measure = { kind = \"completion", vec!["did you mean \"web\"?"]),
        ("statistic = \"max\"", "statistic = \"most\"", "measure = { kind = \"queue", vec!["\"p99\""]),
        ("id = \"never\"", "id = \"queue\"", "id = \"never\"", vec!["two claims \"queue\""]),
        ("apart = [\"rtt\"]", "apart = [\"rt\"]", "apart", vec!["did you mean \"rtt\"?"]),
        ("load = \"20 %\"", "load = \"20 %\"\nmean_gap = \"5 ms\"", "load", vec!["either a mean_gap"]),
    ] {
        let (line, message) = error(from, to);
        assert!(line.abs_diff(line_of(at)) <= 1, "{to}: line {line}, not {}: {message}", line_of(at));
        for part in parts {
            assert!(message.contains(part), "{to}: {message}");
        }
    }
}

#[test]
fn two_levels_of_one_name_and_claims_without_expectation_are_refused() {
    assert!(error("[vary.rtt.far]", "[vary.rtt.plain]").1.contains("two levels \"plain\""));
    assert!(error("expect = \"< 1\"\n", "").1.contains("is missing"));
    let nothing = &GOOD[..GOOD.find("[[claim]]").unwrap()];
    assert!(Figure::parse("x", nothing, None).unwrap_err().to_string().contains("nothing is claimed"));
}

fn run(figure: &Figure, threads: usize) -> FigureResult {
    let options = ReproduceOptions { threads: Some(threads), pictures: true, ..ReproduceOptions::default() };
    reproduce(std::slice::from_ref(figure), &options).unwrap().unwrap().remove(0)
}

#[test]
fn verdicts_follow_from_the_measured_values() {
    let result = run(&figure(GOOD), 2);
    let [queue, transfers, never] = result.claims.as_slice() else { panic!() };
    assert_eq!(queue.cases.len(), 2);
    assert!(queue.cases.iter().all(|case| case.evidence.mean.is_some_and(|ratio| ratio > 0.0)));
    let as_the_mean = |case: &crate::Case| case.holds.is_none_or(|holds| holds == (case.evidence.mean.unwrap() < 1.0));
    assert!(
        queue.cases.iter().all(as_the_mean),
        "an interval that is clear of the bound has its mean on the same side"
    );
    assert_eq!(transfers.verdict, Verdict::UnderSpecified);
    assert_eq!(transfers.holds, Some(true));
    assert_eq!(never.verdict, Verdict::Differs);
    assert_eq!(never.cases[0].evidence.value().unwrap().bound, Bound::AtLeast);
    // Six or more of the same say "always"; the claim about the queue may have asked for more.
    assert!(never.ours().starts_with("> 1 s (n = ") && never.cases[0].evidence.runs >= 6, "{}", never.ours());
    assert_eq!(never.explanation(), [("cause", "not found. A guess: It cannot be.".to_owned())]);
    assert_eq!(never.conclusion(), "differs: 100 % above");
}

#[test]
fn a_claim_that_holds_in_some_readings_of_the_paper_only_is_under_specified() {
    let claim = |expect: &str| {
        format!(
            "[[claim]]\nid = \"exit\"\norigin = \"paper\"\nsource = \"\"\nsays = \"\"\nexpect = \"{expect}\"\nof = [\"hystart\", \"plain\"]\n\
             measure = {{ kind = \"throughput\", until = \"35 ms\" }}\n"
        )
    };
    let head = &GOOD[..GOOD.find("[[claim]]").unwrap()];
    let judged = |open: &str, expect: &str| {
        let result = run(&figure(&format!("{open}\n{head}{}", claim(expect))), 1);
        (result.claims[0].verdict, result.claims[0].conclusion())
    };
    // In 35 ms, the handshake included, packets pass at an RTT of 10 ms, and none do at 40 ms.
    let (verdict, conclusion) = judged("", "> 1 Mbit/s");
    assert_eq!(verdict, Verdict::Differs, "{conclusion}");
    let (verdict, conclusion) = judged("open = [\"rtt\"]", "> 1 Mbit/s");
    assert_eq!(verdict, Verdict::UnderSpecified);
    assert_eq!(conclusion, "under-specified: holds in 1 of 2 readings (not far)");
    let (verdict, conclusion) = judged("open = [\"control\", \"rtt\"]", "> 1 Mbit/s");
    assert_eq!(verdict, Verdict::UnderSpecified);
    assert_eq!(conclusion, "under-specified: holds in 2 of 4 readings (near: 2 of 2, far: 0 of 2)");
    // What the paper leaves open does not save a claim that fails in every reading, nor one that
    // fails for another reason.
    assert_eq!(judged("open = [\"rtt\"]", "> 30 Mbit/s").0, Verdict::Differs);
    assert_eq!(judged("open = [\"control\"]", "> 1 Mbit/s").0, Verdict::Differs);
    assert_eq!(judged("open = [\"rtt\"]", "<= 20 Mbit/s").0, Verdict::Reproduced);
}

#[test]
fn the_same_file_gives_the_same_results_for_any_number_of_threads() {
    let figure = figure(GOOD);
    let one = run(&figure, 1);
    assert_eq!(one, run(&figure, 3));
    let titles: Vec<&str> = one.pictures.iter().map(|picture| picture.title.as_str()).collect();
    assert_eq!(titles, ["Throughput, near", "Throughput, far"]);
    assert_eq!(titles, figure.picture_titles(), "known beforehand");
    let names: Vec<&str> = one.pictures[0].curves.iter().map(|curve| curve.name.as_str()).collect();
    assert_eq!(names, ["with HyStart", "without"]);
}

#[test]
fn a_cancelled_reproduction_has_no_verdicts() {
    let cancel = Cancel::default();
    cancel.cancel();
    let options = ReproduceOptions { cancel: Some(&cancel), ..ReproduceOptions::default() };
    assert_eq!(reproduce(&[figure(GOOD)], &options), Ok(None));
}

/// Hours of finished figures were lost with the one that was not.
#[test]
fn a_cancelled_reproduction_keeps_the_figures_that_were_finished() {
    let figures = [figure(GOOD), figure(GOOD)];
    let base = ReproduceOptions { threads: Some(1), pictures: true, runs: Some(1), ..ReproduceOptions::default() };
    let whole = reproduce(&figures[..1], &base).unwrap();
    let cancel = Cancel::default();
    let of_first = figures[0].simulations();
    let tell = |done: usize, _: usize| {
        if done > of_first {
            cancel.cancel();
        }
    };
    let options = ReproduceOptions { cancel: Some(&cancel), progress: Some(&tell), ..base };
    assert_eq!(reproduce(&figures, &options).unwrap(), whole);
}

/// "168 ms, reproduced": the one that never ended did not count.
#[test]
fn a_transfer_that_does_not_end_takes_at_least_until_the_run_does() {
    for (statistic, expect, holds, bound) in [
        ("max", "<= 1 s", Some(false), Bound::AtLeast),
        ("max", "<= 20 s", None, Bound::AtLeast),
        ("mean", "<= 0.5 s", Some(false), Bound::AtLeast),
        ("min", "<= 1 s", Some(true), Bound::Exact),
    ] {
        let text = format!(
            "title = 'x'\nshows = 'x'\n[scenario]\nduration = '2 s'\npath = {{ capacity = '10 Mbit/s', rtt = '40 ms' }}\n\
             flow = [{{ name = 'transfer', size = '100 kB' }}, {{ name = 'transfer', size = '500 MB' }}]\n\
             [[claim]]\nid = 'it'\norigin = 'ours'\nsource = ''\nsays = ''\nexpect = '{expect}'\n\
             measure = {{ kind = 'completion_time', flow = 'transfer', statistic = '{statistic}' }}"
        );
        let result = run(&figure(&text), 1);
        let (claim, value) = (&result.claims[0], result.claims[0].cases[0].evidence.value().unwrap());
        assert_eq!((claim.holds, value.bound), (holds, bound), "{statistic} {expect}: {}", claim.ours());
        assert!(statistic != "max" || (1.9..2.0).contains(&value.value), "{}", claim.ours());
    }
}

/// Every measure on a run whose numbers can be worked out by hand: 250 packets of 1500 bytes at 20
/// Mbit/s and 10 ms.
#[test]
fn measures_of_a_simple_transfer_are_those_worked_out_by_hand() {
    let measured = |measure: &str, expect: &str| {
        let text = format!(
            "title = 'x'\nshows = 'x'\n[scenario]\nduration = '2 s'\npath = {{ capacity = '20 Mbit/s', rtt = '10 ms', buffer = 'unlimited' }}\n\
             flow = [{{ name = 'bulk', algorithm = 'reno', size = '362 kB', initial_window = 300, sender.handshake = false }}]\n\
             [[claim]]\nid = 'it'\norigin = 'ours'\nsource = ''\nsays = ''\nmeasure = {{ {measure} }}\nexpect = '{expect}'"
        );
        let result = run(&figure(&text), 1);
        assert_eq!(result.claims[0].holds, Some(true), "{measure}: {} is not {expect}", result.claims[0].ours());
    };
    // 250 packets of 0.6 ms and 5 ms of propagation; the last waits for 249 others.
    measured("kind = 'completion_time', statistic = 'max'", "155 ms ± 0.1 ms");
    measured("kind = 'completion_time', smallest = '300 kB', largest = '1 MB', statistic = 'mean'", "155 ms ± 0.1 ms");
    measured("kind = 'completed'", "= 1");
    measured("kind = 'queue_delay', statistic = 'max'", "149.4 ms ± 0.01 ms");
    measured("kind = 'queue_delay', statistic = 'mean', flow = 'bulk'", "74.7 ms ± 0.01 ms");
    measured("kind = 'queue_delay', statistic = 'min'", "= 0 ms");
    measured("kind = 'throughput', until = '150 ms'", "20 Mbit/s ± 1 %");
    measured("kind = 'throughput', flow = 'bulk', from = '160 ms', until = '1 s'", "= 0 Mbit/s");
    measured("kind = 'time_to_rate', rate = '19 Mbit/s', since = '0 ms'", "10 ms ± 1 ms");
    measured("kind = 'time_to_rate', rate = '19 Mbit/s', flow = 'bulk', rtts = true", "1 RTT ± 0.1 RTT");
    measured("kind = 'window', statistic = 'min'", ">= 300 packets");
    measured("kind = 'drops'", "= 0");
    measured("kind = 'marks', from = '0 s', until = '1 s'", "= 0");
    measured("kind = 'retransmissions'", "= 0");
    measured("kind = 'timeouts', flow = 'bulk'", "= 0");
}

#[test]
fn every_paper_that_comes_with_the_program_reads_and_its_measures_exist() {
    let papers = papers().unwrap();
    assert!(!papers.is_empty());
    for paper in &papers {
        for name in &paper.figures {
            let found = figures(name).unwrap_or_else(|error| panic!("{error}\n{}", error.snippet()));
            let own = name.split('/').next_back().unwrap();
            let continued = paper.about.continued.get(own).into_iter().flatten();
            let expected: Vec<String> = std::iter::once(name.clone())
                .chain(continued.map(|figure| format!("{}/{figure}", paper.name)))
                .collect();
            let names: Vec<&String> = found.iter().map(|figure| &figure.name).collect();
            assert_eq!(names, expected.iter().collect::<Vec<_>>());
            assert!(!found[0].pictures.is_empty(), "{name} has no picture");
        }
    }
    let all = figures("").unwrap().len();
    assert_eq!(all, papers.iter().map(|paper| paper.figures.len()).sum::<usize>());
    assert_eq!(figures("fair-queuing/trains-mistakes").unwrap().len(), 4);
    let error = figures("paced-chriping").unwrap_err().to_string();
    assert!(error.contains("did you mean \"paced-chirping\"?"), "{error}");
    assert!(error.contains("a file of your own ends in .toml"), "{error}");
}

#[test]
fn a_figure_of_a_paper_runs_and_has_a_value_and_a_curve_for_every_variant() {
    let result = run(&figures("paced-chirping/abstract").unwrap()[0], 2);
    assert!(result.claims.iter().all(|claim| claim.cases.iter().all(|case| case.evidence.mean.is_some())));
    let curves = &result.pictures[0].curves;
    assert_eq!(curves.len(), result.figure.variants.len());
    assert!(curves.iter().all(|curve| curve.points.len() > 10));
}

#[test]
fn every_file_of_the_folder_is_listed_in_its_paper() {
    let root = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("experiments");
    let listed: Vec<String> = papers().unwrap().into_iter().flat_map(|paper| paper.figures).collect();
    for folder in std::fs::read_dir(root).unwrap() {
        let folder = folder.unwrap().path();
        for file in std::fs::read_dir(&folder).unwrap() {
            let file = file.unwrap().path();
            let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
            let name = format!("{}/{stem}", folder.file_name().unwrap().to_string_lossy());
            assert!(stem == "paper" || listed.contains(&name), "{name} is not listed in paper.toml");
        }
    }
}

/// A grid of a few capacities over which a claim and a picture are taken together.
const GRID: &str = r#"
title = "A grid"
shows = "Something."

[scenario]
duration = "1 s"

[scenario.path]
rtt = "10 ms"

[[scenario.flow]]
name = "bulk"
algorithm = "cubic"

[vary.capacity.slow]
title = "10 Mbit/s"
path.capacity = "10 Mbit/s"

[vary.capacity.fast]
title = "30 Mbit/s"
path.capacity = "30 Mbit/s"

[vary.start.plain]
flow.flow_start = "slow_start"

[vary.start.hystart]
flow.flow_start = "hystart"

[[claim]]
id = "mean"
origin = "paper"
source = "Fig. 1"
says = "The links are used."
measure = { kind = "throughput", flow = "bulk", from = "500 ms" }
over_variants = "mean"
expect = "18 Mbit/s .. 20.1 Mbit/s"

[[claim]]
id = "largest"
origin = "paper"
source = "Fig. 1"
says = "Both starts end up alike."
measure = { kind = "throughput", flow = "bulk", from = "500 ms" }
of = "hystart"
ratio_to = "plain"
over_variants = "max"
expect = "0.9 .. 1.1"

[[picture]]
kind = "by_level"
title = "Throughput"
measure = { kind = "throughput", flow = "bulk", from = "500 ms" }
by = "capacity"
"#;

#[test]
fn a_claim_over_variants_is_one_case_and_a_picture_by_level_has_a_point_per_level() {
    let options = ReproduceOptions { pictures: true, ..ReproduceOptions::default() };
    let results = reproduce(&[figure(GRID)], &options).unwrap().unwrap();
    let [mean, largest] = results[0].claims.as_slice() else { panic!() };
    assert_eq!((mean.cases.len(), largest.cases.len()), (1, 1));
    assert_eq!((mean.verdict, largest.verdict), (Verdict::Reproduced, Verdict::Reproduced));
    let points = &results[0].pictures[0].curves[0].points;
    assert_eq!(points.iter().map(|[at, _]| *at).collect::<Vec<_>>(), [10.0, 30.0]);
    assert!((points[1][1] - 30.0).abs() < 2.0 && (points[0][1] - 10.0).abs() < 1.0, "{points:?}");
}

#[test]
fn a_picture_by_level_needs_levels_with_numbers() {
    let text = GRID.replace("by = \"capacity\"", "by = \"start\"");
    let error = Figure::parse("grid", &text, None).unwrap_err().to_string();
    assert!(error.contains("no number"), "{error}");
}

/// A detector of fair queuing in front of either kind of queue; more runs if as many as possible
/// are wanted.
const DETECTOR: &str = r#"
title = "Answers"
shows = "Something."

[replications]
by = "nothing"
because = "It is alone."

[scenario]
duration = "1 s"

[scenario.path]
capacity = "20 Mbit/s"
rtt = "10 ms"

[[scenario.flow]]
name = "probe"
algorithm = "fair_queuing_probe+delay_or_cubic"

[vary.queue.fifo]
title = "shared"
path.queue = "drop_tail"

[vary.queue.fq]
title = "fair"
path.queue = "fair_queuing"

[[claim]]
id = "right"
origin = "paper"
source = "Table 1"
says = "All answers are right."
measure = { kind = "isolation", flow = "probe", is = "right" }
over_variants = "mean"
expect = "= 100 %"

[[claim]]
id = "rate"
origin = "paper"
source = "Table 1"
says = "The capacity is known."
measure = { kind = "isolation_rate", flow = "probe" }
over_variants = "mean"
expect = "0.95 .. 1.05"

[[picture]]
kind = "confusion"
title = "Answers"
by = "queue"
"#;

#[test]
fn a_confusion_has_the_shares_of_answers_per_level_without_being_asked_for_pictures() {
    let results = reproduce(&[figure(DETECTOR)], &ReproduceOptions::default()).unwrap().unwrap();
    assert!(results[0].claims.iter().all(|claim| claim.verdict == Verdict::Reproduced));
    let [picture] = results[0].pictures.as_slice() else { panic!() };
    assert_eq!(picture.places, ["shared", "fair"]);
    let shares = |name: &str| {
        let curve = picture.curves.iter().find(|curve| curve.name == name).unwrap();
        curve.points.iter().map(|point| point[1]).collect::<Vec<_>>()
    };
    assert_eq!((shares("shared"), shares("isolated")), (vec![100.0, 0.0], vec![0.0, 100.0]));
    assert_eq!((shares("unknown"), shares("no answer")), (vec![0.0; 2], vec![0.0; 2]));
}

#[test]
fn replications_that_make_no_sense_are_refused() {
    for (keys, part) in [
        ("least = 2", "at least 3"),
        ("least = 8\nmost = 4\nfull = 8", "at least 8"),
        ("most = 12\nfull = 4", "between 12"),
        ("by = \"nothing\"", "say why no phase matters"),
        ("spread = \"10 ms\"", "belongs to by = \"starts\""),
        ("rate = \"1 Mbit/s\"", "belongs to by = \"trickle\""),
    ] {
        let text = GRID.replace("[scenario]\n", &format!("[replications]\n{keys}\n\n[scenario]\n"));
        let error = Figure::parse("x", &text, None).unwrap_err().to_string();
        assert!(error.contains(part), "{keys}: {error}");
    }
    let error = error("origin = \"paper\"\n", "").1;
    assert!(error.contains("origin") && error.contains("say whose claim it is"), "{error}");
}

/// Two flows that share a queue: nothing is random, and what comes out depends on their phases.
const PHASES: &str = r#"
title = "Phases"
shows = "Something."

[replications]
by = "starts"
spread = "20 ms"
least = 4
most = 8
full = 8

[scenario]
duration = "3 s"
path = { capacity = "20 Mbit/s", rtt = "20 ms", buffer = "20 packets" }

[[scenario.flow]]
name = "first"
algorithm = "reno"

[[scenario.flow]]
name = "second"
algorithm = "reno"
start = "500 ms"

[[claim]]
id = "some"
origin = "paper"
source = "Fig. 1"
says = "The second gets something."
measure = { kind = "throughput", flow = "second", from = "1 s" }
expect = "> 10 kbit/s"

[[claim]]
id = "so-much"
origin = "ours"
source = "Fig. 1"
says = "It gets so much."
measure = { kind = "throughput", flow = "second", from = "1 s" }
expect = "< 10 Mbit/s"
"#;

/// The second flow's throughput over the runs of PHASES, and the result.
fn phases(by: &str) -> FigureResult {
    let text = PHASES.replace("by = \"starts\"\nspread = \"20 ms\"", by);
    run(&figure(&text), 1)
}

#[test]
fn a_trajectory_without_randomness_is_replicated_by_phase_and_stops_when_it_is_decided() {
    for by in ["by = \"starts\"", "by = \"trickle\"\nrate = \"100 kbit/s\""] {
        let result = phases(by);
        let evidence = &result.claims[0].cases[0].evidence;
        assert!(evidence.deviation.is_some_and(|deviation| deviation > 0.0), "{by}: {evidence:?}");
        assert_eq!(result.claims[0].verdict, Verdict::Reproduced);
        // The first claim was decided by four runs; whether more were made depends on the second.
        assert!(matches!(evidence.runs, 4 | 8), "{evidence:?}");
    }
    // Without it every run is the same: that is certain only once it is said or seen often.
    let same = phases("");
    assert_eq!(same.claims[0].cases[0].evidence.deviation, Some(0.0));
    assert_eq!(same.claims[0].cases[0].evidence.runs, 8, "four equal runs of something random say too little");
    let once = phases("by = \"nothing\"\nbecause = \"so\"");
    assert_eq!((once.claims[0].cases[0].evidence.runs, once.claims[0].verdict), (1, Verdict::Reproduced));
}

#[test]
fn another_seed_gives_other_runs_and_runs_can_be_counted_out() {
    let figure = figure(PHASES);
    let with = |seed: u64, runs: u64| {
        let mut figure = figure.clone();
        figure.seed(seed);
        let options = ReproduceOptions { runs: Some(runs), threads: Some(1), ..ReproduceOptions::default() };
        reproduce(&[figure], &options).unwrap().unwrap().remove(0).claims[0].cases[0].evidence.clone()
    };
    assert_eq!(with(1, 3).runs, 3);
    assert_eq!(with(1, 3), with(1, 3));
    assert_ne!(with(1, 3).mean, with(2, 3).mean);
    // One run has no interval, so that it decides nothing.
    let options = ReproduceOptions { runs: Some(1), ..ReproduceOptions::default() };
    let result = reproduce(std::slice::from_ref(&figure), &options).unwrap().unwrap().remove(0);
    assert_eq!(result.claims[0].verdict, Verdict::Undecided);
}

#[test]
fn what_is_recorded_gives_the_same_verdicts_until_the_figure_changes() {
    let result = phases("by = \"starts\"");
    let record = FigureRecord::new(&result, "2026-01-31", "0.1.0", false, 1.0);
    let text = serde_json::to_string(&record).unwrap();
    let read: FigureRecord = serde_json::from_str(&text).unwrap();
    let again = read.judge(&result.figure).unwrap();
    let words = |result: &FigureResult| result.claims.iter().map(ClaimResult::conclusion).collect::<Vec<_>>();
    assert_eq!(words(&again), words(&result));
    assert_eq!(read.differences(&result), Vec::<String>::new());
    // Words and bounds are the file's; parameters and measures are not.
    let changed =
        |from: &str, to: &str| read.judge(&figure(&PHASES.replace("\nspread = \"20 ms\"", "").replace(from, to)));
    assert_eq!(changed("> 10 kbit/s", "> 19 Mbit/s").unwrap().claims[0].verdict, Verdict::Differs);
    assert!(changed("3 s", "4 s").unwrap_err().contains("its parameters have changed"));
    assert!(changed("from = \"1 s\"", "from = \"2 s\"").unwrap_err().contains("what the claim \"some\" measures"));
    let mut other = read.clone();
    other.claims.values_mut().for_each(|claim| claim.cases[0].1.runs += 1);
    assert_eq!(other.differences(&result).len(), 2);
}

#[test]
fn a_record_that_cannot_be_what_runs_gave_is_refused() {
    let result = phases("by = \"starts\"");
    let record = FigureRecord::new(&result, "2026-01-31", "0.1.0", false, 1.0);
    let refused = |change: &dyn Fn(&mut FigureRecord)| {
        let mut record = record.clone();
        change(&mut record);
        record.judge(&result.figure).unwrap_err()
    };
    let evidence = |record: &mut FigureRecord, change: &dyn Fn(&mut super::Evidence)| {
        change(&mut record.claims.get_mut("some").unwrap().cases[0].1);
    };
    // Without its cases a claim would hold in all of them.
    let cases = refused(&|record| record.claims.get_mut("some").unwrap().cases.clear());
    assert!(cases.contains("the claim \"some\" has other cases"), "{cases}");
    let twice = refused(&|record| {
        let cases = &mut record.claims.get_mut("some").unwrap().cases;
        cases.extend(cases.clone());
    });
    assert!(twice.contains("other cases"), "{twice}");
    let renamed = refused(&|record| record.claims.get_mut("some").unwrap().cases[0].0 = "another".to_owned());
    assert!(renamed.contains("other cases"), "{renamed}");
    let certain = refused(&|record| record.looks.certain = true);
    assert!(certain.contains("whether runs differ"), "{certain}");
    assert!(refused(&|record| record.looks.most = 0).contains("looked at"));
    for change in [
        (|evidence| evidence.bound = "at_lest".to_owned()) as fn(&mut super::Evidence),
        |evidence| evidence.deviation = Some(-1.0),
        |evidence| evidence.runs = 1_000_000_000,
        |evidence| evidence.mean = None,
    ] {
        let error = refused(&|record| evidence(record, &change));
        assert!(error.contains("the claim \"some\"") && error.contains("no runs give"), "{error}");
    }
    // What a verdict or the page depends on is compared, not the numbers alone.
    let found = |change: &dyn Fn(&mut FigureRecord)| {
        let mut record = record.clone();
        change(&mut record);
        record.differences(&result).join("\n")
    };
    assert_eq!(found(&|_| ()), "");
    assert!(found(&|record| record.looks.most += 1).contains("looked at"));
    assert!(found(&|record| record.simulations += 1).contains("simulations"));
    assert!(found(&|record| record.claims.get_mut("some").unwrap().cases.clear()).contains("#some"));
    let bound = found(&|record| evidence(record, &|evidence| evidence.bound = "at_least".to_owned()));
    assert!(bound.contains("at_least"), "what differs is shown: {bound}");
    let table = |record: &mut FigureRecord| {
        let (title, unit) = ("Shares".to_owned(), "%".to_owned());
        record.tables.push(super::ShareTable { title, by: "way".to_owned(), unit, rows: vec![], columns: vec![] });
    };
    assert!(found(&table).contains("table"));
}

#[test]
fn what_is_not_decided_says_what_it_would_take() {
    let result = phases("by = \"starts\"");
    let mut record = FigureRecord::new(&result, "2026-01-31", "0.1.0", false, 1.0);
    let mut conclusion = |mean: f64, deviation: f64, bound: &str| {
        let evidence = &mut record.claims.get_mut("so-much").unwrap().cases[0].1;
        (evidence.mean, evidence.deviation, evidence.runs) = (Some(mean), Some(deviation), 8);
        evidence.bound = bound.to_owned();
        let judged = record.judge(&result.figure).unwrap();
        judged.claims.iter().find(|claim| claim.claim.spec.id == "so-much").unwrap().conclusion()
    };
    // The bound is 10 Mbit/s. Half of the interval is about one deviation with eight runs.
    let text = conclusion(9e6, 2e6, "exact");
    let runs: f64 = text.split_whitespace().find_map(|word| word.parse().ok()).unwrap();
    assert!((22.0..70.0).contains(&runs), "{text}");
    assert!(conclusion(9.999e6, 2e6, "exact").contains("more than 10000 runs"));
    assert!(conclusion(9e6, 2e6, "at_least").ends_with("it is known from one side only"));
    assert_eq!(conclusion(9e6, 1e5, "exact"), "reproduced");
}

#[test]
fn the_first_run_alone_measures_what_it_measured_among_all() {
    let figure = figure(GOOD);
    let first = run(&figure, 2).first;
    assert!(first.values.iter().any(|(_, value)| value.is_some()));
    let again = |variant: &str| {
        first_runs(&[(&figure, variant)], &ReproduceOptions::default()).map(|runs| runs.unwrap().remove(0))
    };
    let alone = again(&first.variant).unwrap();
    assert_eq!((&alone, first.differences("x", &alone)), (&first, vec![]));
    assert!(again("nobody").unwrap_err().contains("no variant \"nobody\""));
    let mut other = first.clone();
    other.values[0].1 = None;
    assert_eq!(first.differences("x", &other).len(), 1);
    other.values.pop();
    assert_eq!(first.differences("x", &other).len(), 1);
}
