//! What is kept of a run, judged again.

use super::*;

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
    assert!(changed("3 s", "4 s").unwrap_err().to_string().contains("its parameters have changed"));
    assert!(
        changed("from = \"1 s\"", "from = \"2 s\"")
            .unwrap_err()
            .to_string()
            .contains("what the claim \"some\" measures")
    );
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
        record.judge(&result.figure).unwrap_err().to_string()
    };
    let evidence = |record: &mut FigureRecord, change: &dyn Fn(&mut Evidence)| {
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
        (|evidence| evidence.bound = "at_lest".to_owned()) as fn(&mut Evidence),
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
        record.tables.push(ShareTable { title, by: "way".to_owned(), unit, rows: vec![], columns: vec![] });
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
