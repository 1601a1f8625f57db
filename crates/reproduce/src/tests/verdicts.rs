//! What runs measure, and what follows for claims.

use super::*;

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
