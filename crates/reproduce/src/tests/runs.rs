//! How many runs there are, and that nothing else decides what they give.

use super::*;

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

#[test]
fn a_figure_of_a_paper_runs_and_has_a_value_and_a_curve_for_every_variant() {
    let result = run(&figures("paced-chirping/abstract").unwrap()[0], 2);
    assert!(result.claims.iter().all(|claim| claim.cases.iter().all(|case| case.evidence.mean.is_some())));
    let curves = &result.pictures[0].curves;
    assert_eq!(curves.len(), result.figure.variants.len());
    assert!(curves.iter().all(|curve| curve.points.len() > 10));
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
fn the_first_run_alone_measures_what_it_measured_among_all() {
    let figure = figure(GOOD);
    let first = run(&figure, 2).first;
    assert!(first.values.iter().any(|(_, value)| value.is_some()));
    let again = |variant: &str| {
        first_runs(&[(&figure, variant)], &ReproduceOptions::default()).map(|runs| runs.unwrap().remove(0))
    };
    let alone = again(&first.variant).unwrap();
    assert_eq!((&alone, first.differences("x", &alone)), (&first, vec![]));
    assert!(again("nobody").unwrap_err().to_string().contains("no variant \"nobody\""));
    let mut other = first.clone();
    other.values[0].1 = None;
    assert_eq!(first.differences("x", &other).len(), 1);
    other.values.pop();
    assert_eq!(first.differences("x", &other).len(), 1);
}
