//! `flowstart fidelity`: simulator and kernel side by side.

use std::path::Path;

use serde_json::{Value, json};

use flowstart_congestion::avoidance::cubic::CubicConfig;
use flowstart_parallel::Cancel;
use flowstart_real::fidelity::{
    Case, MOST_RUNS, QUANTITIES, QUEUES, Record, Row, cases, compare, kernel_hz, kernel_version, queue_cases,
};
use flowstart_units::Span;

use super::records::{self, Forms, Origin};
use super::{become_able, fidelity_limit};
use crate::args::FidelityArgs;
use crate::interrupt;
use crate::output::{Done, Failure, note, prepare_file, progress};
use crate::pages;
use flowstart_pages::fidelity::{self as table, tally};

/// Shortest run: starts must be over.
const SHORTEST: Span = Span::from_secs(1);
/// Longest: every packet is kept in memory.
const LONGEST: Span = Span::from_secs(600);

/// Runs the cases, or reads them, and shows them.
pub(crate) fn fidelity(args: &FidelityArgs) -> Done {
    if let Some(file) = args.page.pages.iter().find(|file| file.extension().is_some_and(|ending| ending == "svg")) {
        return Err(Failure::Usage(format!(
            "cannot write {}: the report of fidelity has tables and no figure; known are .html and .md",
            file.display()
        )));
    }
    if let Some(file) = &args.recorded {
        // With --simulate it is written again, as is said of it.
        if !args.simulate {
            flowstart_files::reads(file);
        }
        pages::prepare(&args.page)?;
        let mut record = read(file)?;
        if args.simulate {
            for (number, row) in record.rows.iter_mut().enumerate() {
                let refuse = |error| Failure::Usage(format!("{}: rows[{number}]: {error}", file.display()));
                row.simulate(record.runs, record.hz).map_err(refuse)?;
            }
            records::write(file, &record)?;
        }
        return show(&record, args, true);
    }
    let list = wanted(args)?;
    become_able()?;
    pages::prepare(&args.page)?;
    let hz = kernel_hz().unwrap_or_else(|why| {
        note(&why.to_string());
        CubicConfig::LINUX_HZ
    });
    let before = match args.record.as_ref().filter(|_| args.keep || args.add) {
        Some(file) => rows_of(read(file)?, file, hz, args)?,
        None => Vec::new(),
    };
    if let Some(file) = &args.record {
        prepare_file(file)?;
    }
    let (mut record, whole, failed) = run(&list, hz, if args.add { &before } else { &[] }, args)?;
    if record.rows.is_empty() {
        return Err(failed.unwrap_or(Failure::InterruptedEarly));
    }
    // A record without a run of the kernel is none, and takes no other's place.
    let measured = record.rows.iter().any(has_run);
    let skipped: Vec<_> = record.rows.iter().map(|row| row.skipped.clone()).collect();
    record.rows = match args.add {
        true => added(before, record.rows, hz)?,
        false => beside(before, record.rows),
    };
    record.runs = record.rows.iter().map(Row::runs).max().unwrap_or_default().max(args.runs);
    let kept = args.record.as_ref().filter(|_| measured).map_or(Ok(()), |file| records::write(file, &record));
    show(&record, args, false)?;
    kept?;
    // What failed is told after what was finished.
    failed.map_or(Ok(()), Err)?;
    if !whole {
        let unkept = args.record.is_none() || !measured;
        return Err(if unkept { Failure::InterruptedUnkept("--record") } else { Failure::Interrupted });
    }
    if skipped.iter().all(Option::is_some) {
        let why = skipped.into_iter().flatten().next().unwrap_or_default();
        return Err(Failure::NotPossible(format!("no case could be run: {why}")));
    }
    if !measured {
        return Err(Failure::Fidelity("no run of the kernel was as punctual as --fidelity asks for".to_owned()));
    }
    Ok(())
}

/// The rows of a record that more are to be put into, of a kernel with so many ticks per second.
fn rows_of(record: Record, file: &Path, hz: u32, args: &FidelityArgs) -> Result<Vec<Row>, Failure> {
    let option = if args.add { "--add" } else { "--keep" };
    let refuse = |why: String| Err(Failure::Usage(format!("{option}: {}: {why}", file.display())));
    if args.add {
        // Without what each run had the runs could not stand beside others that have it.
        if let Some(row) = record.rows.iter().position(|row| row.disturbances.len() != row.kernel.len()) {
            return refuse(format!("rows[{row}] does not say how late its runs were; make the record again"));
        }
        let runs = record.runs + args.runs;
        if runs > MOST_RUNS {
            return refuse(format!("a case would have {runs} runs; at most {MOST_RUNS} are kept"));
        }
    }
    if record.kernel != kernel_version() {
        return refuse(format!("it is of Linux {}, this is {}", record.kernel, kernel_version()));
    }
    if record.hz != hz {
        return refuse(format!("it is of a kernel with {} ticks per second, this one has {hz}", record.hz));
    }
    Ok(record.rows)
}

/// True if a run of the kernel counts.
fn has_run(row: &Row) -> bool {
    !row.kernel.is_empty()
}

/// Rows of before and of now: those of a case that was run again are the new ones, unless no run of
/// the kernel counts in them and some did before.
fn beside(before: Vec<Row>, mut now: Vec<Row>) -> Vec<Row> {
    let mut rows: Vec<Row> = before
        .into_iter()
        .map(|row| match now.iter().position(|new| new.case == row.case) {
            Some(at) => {
                let new = now.remove(at);
                if has_run(&row) && !has_run(&new) { row } else { new }
            }
            None => row,
        })
        .collect();
    rows.append(&mut now);
    rows
}

/// Rows of before with the runs of now, then those of cases that are new; with so many ticks per
/// second.
fn added(mut before: Vec<Row>, now: Vec<Row>, hz: u32) -> Result<Vec<Row>, Failure> {
    for row in now {
        match before.iter_mut().find(|old| old.case == row.case) {
            Some(old) => old.add(row, hz)?,
            None => before.push(row),
        }
    }
    Ok(before)
}

/// The cases that the options ask for.
fn wanted(args: &FidelityArgs) -> Result<Vec<Case>, Failure> {
    if let Some(duration) = args.duration.filter(|duration| !(SHORTEST..=LONGEST).contains(duration)) {
        return Err(Failure::Usage(format!("--duration: {duration} is not between {SHORTEST} and {LONGEST}")));
    }
    if args.fidelity == Some(Span::ZERO) {
        return Err(Failure::usage(
            "--fidelity: no packet is 0 s late, so every run would be left out; the default is 1 ms",
        ));
    }
    let controls: Vec<&str> = args.controls.iter().map(String::as_str).collect();
    let duration = args.duration.map(Span::as_secs_f64);
    if !args.queues.is_empty() {
        let queues: Vec<&str> = args.queues.iter().map(String::as_str).collect();
        return Ok(queue_cases(&controls, &queues, args.quick, duration));
    }
    let mut list = cases(&controls, args.quick, duration);
    if !args.quick {
        list.extend(queue_cases(&controls, &QUEUES, false, duration));
    }
    Ok(list)
}

/// Runs the cases on a kernel with `hz` ticks per second, each after the runs that rows of `before`
/// have; also whether all were run, and what failed. Of a case amid which it is interrupted, or
/// fails, nothing is kept.
fn run(
    list: &[Case],
    hz: u32,
    before: &[Row],
    args: &FidelityArgs,
) -> Result<(Record, bool, Option<Failure>), Failure> {
    let cancel: Cancel = interrupt::listen();
    let limit = fidelity_limit(args.fidelity);
    let bar = progress("comparing");
    bar.set_length(list.len() as u64 * args.runs);
    let (mut rows, mut failed) = (Vec::new(), None);
    for (number, case) in list.iter().enumerate() {
        let mut runs = 0;
        let done = |_: &_| {
            runs += 1;
            bar.set_position(number as u64 * args.runs + runs);
        };
        let first = before.iter().find(|row| row.case == *case).map_or(0, Row::runs);
        let row = match compare(case, hz, first..first + args.runs, &limit, &cancel, done) {
            Ok(Some(row)) => row,
            Ok(None) => break,
            Err(error) => {
                failed = Some(error.into());
                break;
            }
        };
        for why in row.left_out.iter().chain(&row.skipped) {
            note(&format!("{}, {}: left out: {why}", case.control, case.path()));
        }
        rows.push(row);
    }
    bar.finish_and_clear();
    let whole = rows.len() == list.len();
    let record = Record {
        flowstart_version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: kernel_version(),
        hz,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        runs: args.runs,
        missing: list.len() - rows.len(),
        rows,
    };
    Ok((record, whole, failed))
}

fn read(file: &Path) -> Result<Record, Failure> {
    records::read(file, "flowstart fidelity", Record::check)
}

fn show(record: &Record, args: &FidelityArgs, kept: bool) -> Done {
    let (flowstart, kernel) = (&record.flowstart_version, &table::kernel(record));
    let origin = Origin { flowstart, kernel, cores: record.cores, runs: record.runs, kept };
    let forms = Forms {
        title: "Simulator and kernel side by side",
        document: document(record)?,
        markdown: table::markdown(record),
        tables: table::tables(record),
        sentences: table::sentences(record),
    };
    forms.show(&origin, &args.page, args.json, args.markdown)?;
    if args.strict && tally(record).missed > 0 { Err(Failure::Check) } else { Ok(()) }
}

/// The record with how far apart each row is.
fn document(record: &Record) -> Result<Value, Failure> {
    let mut document = serde_json::to_value(record).map_err(Failure::usage)?;
    for (value, row) in document["rows"].as_array_mut().into_iter().flatten().zip(&record.rows) {
        let deviations = row.deviations();
        let named = QUANTITIES.iter().zip(&deviations).map(|(quantity, deviation)| {
            (quantity.name.replace(' ', "_"), serde_json::to_value(deviation).unwrap_or(Value::Null))
        });
        value["deviations"] = Value::Object(named.collect());
    }
    let tally = tally(record);
    document["goals"] = json!({ "met": tally.met, "missed": tally.missed, "undecided": tally.undecided });
    document["quantities"] = QUANTITIES.iter().map(|quantity| json!([quantity.name, quantity.unit])).collect();
    Ok(document)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(case: &Case, late_p99_us: f64) -> Row {
        Row {
            case: case.clone(),
            simulated: Vec::new(),
            kernel: Vec::new(),
            disturbances: Vec::new(),
            undisturbed: Vec::new(),
            left_out: Vec::new(),
            late_p99_us,
            skipped: None,
        }
    }

    #[test]
    fn runs_that_are_added_stand_beside_those_of_before_and_all_are_simulated() {
        use flowstart_real::fidelity::Disturbance;
        let list = cases(&["reno"], true, Some(1.0));
        let with = |late, excess: &[f64], left_out: &[&str]| Row {
            kernel: excess.iter().map(|excess| [Some(*excess); 7]).collect(),
            disturbances: excess
                .iter()
                .map(|excess| Disturbance { excess_us: *excess, ..Disturbance::default() })
                .collect(),
            left_out: left_out.iter().map(|&why| why.to_owned()).collect(),
            ..row(&list[0], late)
        };
        let before = vec![with(20.0, &[0.0, 600.0], &["late"]), row(&list[1], 5.0)];
        let rows = added(before, vec![with(10.0, &[900.0], &["later", "too late"])], 250).unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].kernel.iter().map(|values| values[0]).collect::<Vec<_>>(), [0.0, 600.0, 900.0].map(Some));
        assert_eq!(rows[0].left_out, ["late", "later", "too late"]);
        assert_eq!((rows[0].runs(), rows[1].runs(), rows[0].late_p99_us), (6, 0, 20.0));
        let excess: Vec<f64> = rows[0].disturbances.iter().map(|disturbance| disturbance.excess_us).collect();
        assert_eq!(excess, [0.0, 600.0, 900.0]);
        // The path of each run is another, and so is what the simulator has over it.
        assert_eq!(rows[0].simulated.len(), 3);
        assert_ne!(rows[0].simulated[1], rows[0].simulated[2]);
    }

    #[test]
    fn a_record_of_a_kernel_with_other_ticks_gets_no_runs_of_this_one() {
        use crate::cli::{Cli, Command};
        use clap::Parser;
        let record = |hz| Record {
            flowstart_version: "0.0.0".to_owned(),
            kernel: kernel_version(),
            hz,
            cores: 1,
            runs: 1,
            missing: 0,
            rows: vec![row(&cases(&["reno"], true, None)[0], 1.0)],
        };
        for option in ["--add", "--keep"] {
            let Ok(Cli { command: Command::Fidelity(args) }) =
                Cli::try_parse_from(["flowstart", "fidelity", "--record=r.json", option])
            else {
                panic!("{option}")
            };
            let rows = |hz| rows_of(record(hz), Path::new("r.json"), 1000, &args);
            assert_eq!(rows(1000).unwrap().len(), 1);
            let Err(Failure::Usage(why)) = rows(250) else { panic!("{option}") };
            let ticks = "it is of a kernel with 250 ticks per second, this one has 1000";
            assert_eq!(why, format!("{option}: r.json: {ticks}"));
        }
    }

    #[test]
    fn rows_that_are_run_again_take_the_place_of_the_old_ones_and_the_others_stay() {
        let list = cases(&["reno", "bbr"], false, None);
        let before = list[..4].iter().map(|case| row(case, 1.0)).collect();
        let now = list[3..].iter().map(|case| row(case, 2.0)).collect();
        let rows: Vec<Row> = beside(before, now);
        let late: Vec<f64> = rows.iter().map(|row| row.late_p99_us).collect();
        assert_eq!(rows.into_iter().map(|row| row.case).collect::<Vec<_>>(), list);
        assert_eq!(late, [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]);
    }

    #[test]
    fn a_row_without_a_run_of_the_kernel_takes_no_measured_ones_place() {
        let case = cases(&["reno"], true, None).remove(0);
        let row = |runs, late_p99_us| Row { kernel: vec![[None; QUANTITIES.len()]; runs], ..row(&case, late_p99_us) };
        for (before, now, stays) in [(2, 0, 1.0), (2, 1, 2.0), (0, 0, 2.0), (0, 1, 2.0)] {
            let rows = beside(vec![row(before, 1.0)], vec![row(now, 2.0)]);
            assert_eq!(rows.len(), 1);
            assert_eq!(rows[0].late_p99_us, stays, "{before} runs before, {now} now");
        }
    }
}
