use std::collections::HashSet;

use flowstart_units::{Rate, Span};
use proptest::prelude::*;

use flowstart_parallel::Cancel;
use flowstart_race::Measure;
use flowstart_race::measures::{COMPLETION, DEFICIT, START_LOST, START_OTHERS_DELAY, START_OWN_DELAY};
use flowstart_scenario::Buffer;

use super::*;

/// One small path with jitter and one without anything, idle.
fn small(contestants: &[&str], seeds: Vec<u64>) -> Frontier {
    let grid = Grid {
        capacities: vec![Rate::from_mbps(5)],
        rtts: vec![Span::from_millis(20)],
        buffers: vec![Buffer::Bdp(1.0)],
        paths: vec![PathKind::Clean, PathKind::Jitter],
        loads: vec![LoadKind::Idle],
        sampled: None,
        as_is: false,
        with: &[],
    };
    let contestants = contestants.iter().map(|name| name.parse().expect("a contestant")).collect();
    Frontier::new(grid, contestants, seeds)
}

#[test]
fn the_reference_always_races_and_nobody_twice() {
    let frontier = small(&["slow_start+cubic", "slow_start+cubic"], vec![2]);
    let names: Vec<String> = frontier.contestants().iter().map(ToString::to_string).collect();
    assert_eq!((names, frontier.reference()), (vec![REFERENCE.to_owned(), "slow_start+cubic".to_owned()], 0));
    let frontier = small(&["slow_start+cubic", REFERENCE], vec![2]);
    assert_eq!((frontier.contestants().len(), frontier.reference()), (2, 1));
}

#[test]
fn every_known_start_races_in_front_of_cubic_over_a_queue_that_drops() {
    let contestants = Frontier::default_contestants();
    // The omniscient start is a bound, and races when it is asked to; CUBIC brings no start.
    for start in StartConfig::NAMES.iter().filter(|start| !["oracle", "built_in"].contains(start)) {
        assert!(contestants.iter().any(|c| c.start.name() == *start && c.avoidance.name() == "cubic"), "{start}");
    }
    Frontier::new(Grid::full(), contestants, vec![2]).validate().unwrap();
}

#[test]
fn cells_without_randomness_run_with_one_seed() {
    let works = small(&[], vec![2, 4, 6]).works();
    let seeds: Vec<(PathKind, u64)> = works.iter().map(|work| (work.cell.path, work.seed)).collect();
    let jitter = PathKind::Jitter;
    assert_eq!(seeds, [(PathKind::Clean, 2), (jitter, 2), (jitter, 4), (jitter, 6)]);
}

proptest! {
    #[test]
    fn no_seed_is_in_both_halves(count in 0_u32..500) {
        let development: HashSet<u64> = Seeds::Development.first(count).into_iter().collect();
        let held_out: HashSet<u64> = Seeds::HeldOut.first(count).into_iter().collect();
        prop_assert!(development.is_disjoint(&held_out));
        let both: HashSet<u64> = development.union(&held_out).copied().collect();
        let all: HashSet<u64> = Seeds::All.first(2 * count).into_iter().collect();
        prop_assert_eq!(all, both);
    }
}

#[test]
fn halves_of_the_seeds_read_as_they_are_printed() {
    for half in Seeds::ALL {
        assert_eq!(half.name().parse(), Ok(half));
    }
    assert!("odd".parse::<Seeds>().unwrap_err().to_string().contains("held-out"));
}

#[test]
fn a_key_names_the_seed_the_cell_every_constant_and_the_behaviour() {
    let work = &small(&["paced_chirping+cubic"], vec![2]).works()[1];
    let key = work.key("a");
    assert_eq!(key, work.clone().key("a"));
    let mut others = vec![work.key("b"), Work { seed: 4, ..work.clone() }.key("a")];
    others.push(Work { cell: Cell { buffer: Buffer::Bdp(2.0), ..work.cell }, ..work.clone() }.key("a"));
    others.push(Work { contestant: "paced_chirping+cubic/paced".parse().unwrap(), ..work.clone() }.key("a"));
    let mut constant = work.clone();
    if let StartConfig::PacedChirping(config) = &mut constant.contestant.start {
        config.gain += 0.25;
    }
    assert_ne!(constant.contestant, work.contestant);
    others.push(constant.key("a"));
    assert!(!others.contains(&key));
    let distinct: HashSet<&String> = others.iter().collect();
    assert_eq!(distinct.len(), others.len());
}

#[test]
fn keys_of_the_path_that_every_cell_has_are_raced_over_and_are_another_key_and_parameters() {
    let plain = small(&["paced_chirping+cubic"], vec![2]);
    let mut with = plain.clone();
    let part = |text: &str| text.parse::<flowstart_scenario::PathPart>().unwrap();
    with.grid.with = Box::leak(Box::new([part("merged_acks = { within = \"2 ms\" }")]));
    assert_eq!(with.validate(), Ok(()));
    assert!(with.works().iter().all(|work| work.race().path.merged_acks.is_some()));
    assert_ne!(plain.works()[1].key("a"), with.works()[1].key("a"));
    let parameters = |frontier: &Frontier| {
        let result = frontier.run(&RunOptions::default()).unwrap();
        Shown::new(&result, "paced_chirping").parameters()
    };
    assert_eq!(parameters(&with)["with"][0], "merged_acks = { within = \"2 ms\" }");
    assert!(parameters(&plain).get("with").is_none());
    // What cells differ in, and what is wrong, is refused.
    for (text, expected) in [("capacity = \"1 Mbit/s\"", "--capacity"), ("merged = 1", "did you mean `merged_acks`?")] {
        with.grid.with = Box::leak(Box::new([part(text)]));
        assert!(with.validate().unwrap_err().to_string().contains(expected), "{text}");
    }
}

#[test]
fn profiles_as_they_are_may_have_another_capacity() {
    let part = "capacity = \"50 Mbit/s\"".parse().unwrap();
    let grid = Grid { with: Box::leak(Box::new([part])), ..Grid::profiles() };
    for cell in grid.cells() {
        let race = cell.race(&"cubic".parse().unwrap(), 1);
        assert_eq!((cell.capacity, race.capacity()), (Rate::from_mbps(50), Rate::from_mbps(50)), "{cell}");
    }
}

#[test]
fn contestants_that_act_differently_have_another_behaviour() {
    let of = |name: &str| behaviour(&name.parse().unwrap()).unwrap();
    assert_eq!(of("hystart+cubic"), of("hystart+cubic"));
    assert_ne!(of("hystart+cubic"), of("hystart+cubic/paced"));
}

#[test]
fn the_result_does_not_depend_on_threads() {
    let frontier = small(&["paced_chirping+cubic"], vec![2, 4]);
    let run = |threads| frontier.run(&RunOptions { threads: Some(threads), ..RunOptions::default() }).unwrap();
    let one = run(1);
    assert!(one.complete());
    assert_eq!(one, run(3));
}

/// Runs into a folder, stopping after this many records.
fn into(folder: &std::path::Path, frontier: &Frontier, stop_after: usize) -> FrontierResult {
    let journal = Journal::open(folder).unwrap();
    let cancel = Cancel::default();
    let count = std::sync::atomic::AtomicUsize::new(0);
    let append = |work: &Work, record: &Record| {
        journal.append(work, record);
        if count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1 >= stop_after {
            cancel.cancel();
        }
    };
    let options = RunOptions {
        threads: Some(1),
        cancel: Some(&cancel),
        finished: Some(&append),
        known: journal.known().clone(),
        ..RunOptions::default()
    };
    let result = frontier.run(&options).unwrap();
    journal.close(&result).unwrap();
    result
}

#[test]
fn shards_that_are_merged_are_the_same_bytes_as_one_run() {
    let frontier = small(&["paced_chirping+cubic"], vec![2, 4]);
    let whole = tempfile::tempdir().unwrap();
    let expected = into(whole.path(), &frontier, usize::MAX);
    let shards: Vec<_> = (1..=3)
        .map(|number| {
            let folder = tempfile::tempdir().unwrap();
            let journal = Journal::open(folder.path()).unwrap();
            let append = |work: &Work, record: &Record| journal.append(work, record);
            let shard = Some(format!("{number}/3").parse().unwrap());
            let options = RunOptions { finished: Some(&append), shard, ..RunOptions::default() };
            let result = frontier.run(&options).unwrap();
            assert!(result.finished().0 < expected.finished().0, "a part of the work");
            journal.close(&result).unwrap();
            folder
        })
        .collect();
    let merged = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(merged.path()).unwrap();
    let taken: usize = shards.iter().map(|shard| journal.take_in(shard.path()).unwrap()).sum();
    assert_eq!(taken, expected.finished().0, "no work is done twice, none is left out");
    assert_eq!(journal.take_in(shards[0].path()).unwrap(), 0);
    // Nothing is left to run.
    let options = RunOptions { known: journal.known().clone(), ..RunOptions::default() };
    let result = frontier.run(&options).unwrap();
    journal.close(&result).unwrap();
    assert_eq!(result, expected);
    assert_eq!(content(merged.path()), content(whole.path()));
}

fn content(folder: &std::path::Path) -> String {
    std::fs::read_to_string(folder.join("records.csv")).unwrap()
}

#[test]
fn an_interrupted_run_that_is_resumed_leaves_the_same_bytes_as_one_that_was_not() {
    let frontier = small(&["paced_chirping+cubic"], vec![2, 4]);
    let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let expected = into(whole.path(), &frontier, usize::MAX);
    assert_eq!(expected.finished(), (6, 6));
    let mut last = 0;
    for attempt in 0.. {
        assert!(attempt < 10, "never finished");
        // Half of a line, as if the machine had lost power.
        if attempt > 0 {
            let cut = content(parts.path()) + "5,20,1 BDP,jit";
            std::fs::write(parts.path().join("records.csv"), cut).unwrap();
        }
        let result = into(parts.path(), &frontier, 1);
        let (finished, _) = result.finished();
        assert!(finished > last, "what is known is not run again");
        last = finished;
        if result.complete() {
            assert_eq!(result, expected);
            break;
        }
    }
    assert_eq!(content(parts.path()), content(whole.path()));
    assert_eq!(Shown::new(&expected, "paced_chirping").to_json()["complete"], true);
}

#[test]
fn records_of_other_columns_are_refused_and_those_of_other_work_kept() {
    let folder = tempfile::tempdir().unwrap();
    into(folder.path(), &small(&["slow_start+cubic"], vec![2]), usize::MAX);
    let before = content(folder.path());
    into(folder.path(), &small(&["paced_chirping+cubic"], vec![2]), usize::MAX);
    let after = content(folder.path());
    assert!(before.lines().all(|line| after.lines().any(|other| other == line)));
    assert_eq!((before.lines().count(), after.lines().count()), (5, 7));
    std::fs::write(folder.path().join("records.csv"), "a,b\n1,2\n").unwrap();
    assert!(Journal::open(folder.path()).unwrap_err().to_string().contains("other columns"));
}

/// Resumes a finished run after its file was altered, and gives the numbers of the damaged lines
/// and how many records were still known.
fn altered(alter: impl Fn(&str) -> String) -> (Vec<usize>, usize) {
    let frontier = small(&["paced_chirping+cubic"], vec![2, 4]);
    let folder = tempfile::tempdir().unwrap();
    into(folder.path(), &frontier, usize::MAX);
    let whole = content(folder.path());
    let spoilt = alter(&whole);
    std::fs::write(folder.path().join("records.csv"), &spoilt).unwrap();
    let journal = Journal::open(folder.path()).unwrap();
    let damaged: Vec<usize> = journal.damaged().iter().map(|damage| damage.line).collect();
    let known = journal.known().len();
    drop(journal);
    // What could not be read is kept twice, and measured again.
    let kept = std::fs::read_to_string(folder.path().join("records.damaged.csv")).unwrap();
    let lines: Vec<&str> = spoilt.lines().collect();
    assert_eq!(kept.lines().collect::<Vec<_>>(), damaged.iter().map(|line| lines[line - 1]).collect::<Vec<_>>());
    assert_eq!(std::fs::read_to_string(folder.path().join("records.csv.backup")).unwrap(), spoilt);
    into(folder.path(), &frontier, usize::MAX);
    assert_eq!(content(folder.path()), whole);
    (damaged, known)
}

#[test]
fn a_stray_quote_costs_the_line_it_is_in_and_no_other() {
    let quoted = |text: &str| {
        let lines = text.lines().enumerate();
        lines.map(|(index, line)| format!("{}{line}\n", if index == 2 { "\"" } else { "" })).collect()
    };
    assert_eq!(altered(quoted), (vec![3], 5));
}

#[test]
fn an_altered_number_is_found_by_the_checksum_of_its_line() {
    let changed = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut fields: Vec<String> = lines[4].split(',').map(str::to_owned).collect();
        let place = fields.len() - 2;
        fields[place] = "-5".to_owned();
        lines[4] = fields.join(",");
        lines.join("\n") + "\n"
    };
    assert_eq!(altered(changed), (vec![5], 5));
}

#[test]
fn bytes_that_are_no_text_are_damage_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let frontier = small(&["paced_chirping+cubic"], vec![2]);
    into(folder.path(), &frontier, usize::MAX);
    let mut bytes = content(folder.path()).into_bytes();
    bytes.extend([0xff, 0xfe, b',', b'1', b'\n', b'\n']);
    std::fs::write(folder.path().join("records.csv"), &bytes).unwrap();
    let journal = Journal::open(folder.path()).unwrap();
    assert_eq!((journal.damaged().len(), journal.known().len()), (2, 4));
}

#[cfg(unix)]
#[test]
fn a_second_run_is_kept_out_of_the_folder_until_the_first_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let first = Journal::open(folder.path()).unwrap();
    let refused = Journal::open(folder.path()).unwrap_err().to_string();
    assert!(refused.contains("another run is writing here"), "{refused}");
    drop(first);
    assert!(Journal::open(folder.path()).is_ok());
}

#[test]
fn a_record_is_read_back_bit_by_bit() {
    let works = small(&[], vec![2]).works();
    let values = vec![(DEFICIT.measure(), 0.1 + 0.2), (START_LOST.measure(), 3.0)];
    let record = Record::new("k".to_owned(), None, &values);
    let fields = record.fields(&works[0]);
    assert_eq!(fields.len(), Record::header().len());
    assert_eq!(Record::from_fields(fields.iter().map(String::as_str)), Some(record));
    assert_eq!(Record::from_fields(fields[1..].iter().map(String::as_str)), None);
}

/// Records of the reference and one contestant in the clean cell and the one with jitter.
fn scored(reference: &[(Measure, f64)], contestant: &[(Measure, f64)]) -> Scores {
    let frontier = small(&["slow_start+cubic"], vec![2]);
    let works = frontier.works();
    let records = works
        .into_iter()
        .map(|work| {
            let values = if work.contestant_number == 0 { reference } else { contestant };
            let record = Record::new(work.key(""), None, values);
            (work, Some(record))
        })
        .collect();
    Scores::new(&FrontierResult { frontier, records })
}

#[test]
fn ratios_are_geometric_means_over_transfers_of_100_kb_and_more() {
    let times = |small: f64, medium: f64, large: f64| {
        [30_000, 100_000, 1_000_000]
            .map(flowstart_units::Bytes::new)
            .into_iter()
            .zip([small, medium, large])
            .map(|(size, time)| (COMPLETION.of(size), time))
            .collect::<Vec<_>>()
    };
    let scores = scored(&times(1.0, 100.0, 1000.0), &times(9.0, 200.0, 2000.0));
    let cell = &scores.contestants[1].cells[0];
    assert_eq!(cell.ratios.len(), 3);
    assert!((cell.completion_ratio.unwrap() - 2.0).abs() < 1e-12);
    let never = scored(&times(1.0, 100.0, 1000.0), &times(1.0, 100.0, 1000.0)[..2]);
    assert_eq!(never.contestants[1].cells[0].completion_ratio, Some(f64::INFINITY), "one transfer did not finish");
    assert_eq!(never.contestants[0].cells[0].completion_ratio, Some(1.0));
}

#[test]
fn added_delay_is_the_larger_of_own_and_others_and_one_packets_time_is_none() {
    let delays = |own, others| [(START_OWN_DELAY.at(99), own), (START_OTHERS_DELAY.at(99), others)];
    let cell = |reference, contestant: [(Measure, f64); 2]| {
        let scores = scored(&delays(reference, 0.0), &contestant);
        let cell = &scores.contestants[1].cells[0];
        (cell.added_delay.unwrap(), cell.delay_ratio.unwrap())
    };
    assert_eq!(cell(10.0, delays(5.0, 6.0)), (6.0, 0.6));
    // A packet takes 2.4 ms at 5 Mbit/s.
    assert_eq!(cell(10.0, delays(2.4, -1.0)), (0.0, 0.0));
    assert_eq!(cell(0.0, delays(0.0, 0.0)), (0.0, 0.0));
    assert_eq!(cell(2.0, delays(5.0, 0.0)), (5.0, f64::INFINITY), "the reference adds none");
}

#[test]
fn losses_count_as_means_over_the_seeds_and_everything_else_as_medians() {
    let frontier = small(&[], vec![2, 4, 6]);
    let works = frontier.works();
    let records = works
        .into_iter()
        .map(|work| {
            let one = if work.seed == 6 { 9.0 } else { 0.0 };
            let values = [(START_LOST.measure(), one), (DEFICIT.measure(), one + work.seed as f64)];
            let record = Record::new(String::new(), None, &values);
            (work, Some(record))
        })
        .collect();
    let scores = Scores::new(&FrontierResult { frontier, records });
    let jitter = &scores.contestants[0].cells[1];
    assert_eq!(
        (jitter.runs, jitter.get(START_LOST.measure()), jitter.get(DEFICIT.measure())),
        (3, Some(3.0), Some(4.0))
    );
}

/// "lost_caused" was -0.0: the sum of no floats.
#[test]
fn of_cells_that_nobody_simulated_nothing_is_known_to_be_lost() {
    let frontier = small(&["paced_chirping+cubic"], vec![2]);
    let records = frontier.works().into_iter().map(|work| (work, None)).collect();
    let document = Shown::new(&FrontierResult { frontier, records }, "paced_chirping").to_json();
    assert_eq!(document["simulated"], 0);
    for contestant in document["contestants"].as_array().unwrap() {
        assert!(contestant["medians"]["deficit_bdp"].is_null(), "{contestant}");
        for name in ["lost_caused", "lost_caused_idle"] {
            assert!(contestant[name].is_null(), "{name}: {contestant}");
        }
    }
}

#[test]
fn losses_of_cells_that_lost_nothing_are_zero() {
    let scores = scored(&[(START_LOST.measure(), 0.0)], &[(START_LOST.measure(), 2.5)]);
    let [reference, contestant] = &scores.contestants[..] else { panic!("two race") };
    let losses = |scores: &Scores, one| (scores.losses(one), scores.idle_losses(one));
    assert_eq!(losses(&scores, reference), (Some(0.0), Some(0.0)));
    assert_eq!(losses(&scores, contestant), (Some(5.0), Some(5.0)));
}

proptest! {
    #[test]
    fn a_median_lies_in_the_middle(values in prop::collection::vec(-1e6..1e6_f64, 1..40)) {
        let middle = median(values.clone()).unwrap();
        let below = values.iter().filter(|value| **value < middle).count();
        let above = values.iter().filter(|value| **value > middle).count();
        prop_assert!(below <= values.len() / 2 && above <= values.len() / 2);
    }
}

#[test]
fn the_interval_of_a_median_holds_as_often_as_it_says() {
    let ends = |count: u32| median_interval((1..=count).rev().map(f64::from).collect());
    assert_eq!(ends(5), None);
    // 2 of 2^6 times all six lie on one side.
    assert_eq!(ends(6), Some([1.0, 6.0]));
    // Tables of order statistics (David and Nagaraja 2003): ranks 2 and 9, 6 and 15, 10 and 21.
    assert_eq!([10, 20, 30].map(ends), [Some([2.0, 9.0]), Some([6.0, 15.0]), Some([10.0, 21.0])]);
    let infinite = median_interval(vec![1.0, 2.0, f64::INFINITY, 3.0, 4.0, 5.0]);
    assert_eq!(infinite, Some([1.0, f64::INFINITY]));
}

#[test]
fn the_cost_of_a_piece_of_work_is_what_it_simulates_within_a_factor_of_two() {
    let cell = |mbps, load| Cell {
        capacity: Rate::from_mbps(mbps),
        rtt: Span::from_millis(20),
        buffer: Buffer::Bdp(1.0),
        queue: None,
        path: PathKind::Clean,
        load,
        as_is: false,
        with: &[],
    };
    for (mbps, load) in [(20, LoadKind::Idle), (20, LoadKind::Greedy), (100, LoadKind::Udp)] {
        let contestant: Contestant = REFERENCE.parse().unwrap();
        let work = Work { cell_number: 0, cell: cell(mbps, load), contestant_number: 0, contestant, seed: 2 };
        let race = work.race();
        let result = race.run(&flowstart_race::RunOptions { threads: Some(1), ..Default::default() }).unwrap();
        let grid = Grid {
            capacities: vec![work.cell.capacity],
            rtts: vec![work.cell.rtt],
            buffers: vec![work.cell.buffer],
            paths: vec![work.cell.path],
            loads: vec![work.cell.load],
            sampled: None,
            as_is: false,
            with: &[],
        };
        let estimate = Frontier::packets(&Frontier::new(grid, Vec::new(), vec![2]).works());
        let ratio = estimate / result.data_packets as f64;
        assert!((0.5..2.0).contains(&ratio), "{mbps} {load}: {estimate} of {}", result.data_packets);
    }
}
