//! `flowstart reproduce quick-start --real`: Quick-Start's testbed on this machine's kernel.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use flowstart_real::testbed::{CLAIMS, Case, Record, Row, cases};

use super::records::{self, Forms, Origin};
use crate::args::{RECORD as SIMULATED_RECORD, ReproduceArgs};
use crate::output::{Done, Failure};
use crate::pages;
use flowstart_pages::testbed as table;

/// Where what the documentation shows is kept.
const RECORD: &str = "docs/quick-start-real.json";

/// How often every transfer is run unless it is said.
const USUAL_RUNS: u64 = 3;

/// Runs the transfers, or reads them, and shows them.
pub(crate) fn testbed(runs: u64, args: &ReproduceArgs) -> Done {
    // With --simulate it is written again, as is said of it.
    if let Some(file) = args.recorded.as_deref().filter(|_| !args.simulate) {
        flowstart_files::reads(&place(file));
    }
    pages::prepare(&args.page)?;
    if let Some(file) = &args.recorded {
        if runs != USUAL_RUNS {
            return Err(Failure::Usage(format!(
                "--real={runs} says how often every transfer is run, and --recorded runs none; leave out \"={runs}\""
            )));
        }
        let file = place(file);
        let mut record = read(&file)?;
        if args.simulate {
            simulate(&mut record)?;
            records::write(&file, &record)?;
        }
        return show(&record, args, true);
    }
    measured(&cases(args.quick), runs, args)
}

/// The file that is meant: without a name this command's own.
fn place(file: &Path) -> PathBuf {
    if file == Path::new(SIMULATED_RECORD) { PathBuf::from(RECORD) } else { file.to_owned() }
}

#[cfg(not(feature = "kernel"))]
fn measured(_: &[Case], _: u64, _: &ReproduceArgs) -> Done {
    crate::kernel::without_support()
}

/// Runs in which it is measured what a router costs; twenty seconds.
#[cfg(feature = "kernel")]
const ROUTER_RUNS: u32 = 100;

/// Quick-Start in the kernel, as the paper's hosts have it; taken away again in the end.
#[cfg(feature = "kernel")]
struct Loaded;

#[cfg(feature = "kernel")]
impl Loaded {
    fn new() -> Result<Self, Failure> {
        use flowstart_kernel::{Algorithm, Settings, load};
        let settings = Settings::with(Algorithm::QuickStart, &["max_ssthresh=0".to_owned()]).map_err(Failure::usage)?;
        load(&settings).map_err(|problem| crate::kernel::failure(&problem))?;
        Ok(Self)
    }
}

#[cfg(feature = "kernel")]
impl Drop for Loaded {
    fn drop(&mut self) {
        if let Err(problem) = flowstart_kernel::unload(flowstart_kernel::Algorithm::QuickStart) {
            crate::output::note(&problem.to_string());
        }
    }
}

#[cfg(feature = "kernel")]
fn measured(list: &[Case], runs: u64, args: &ReproduceArgs) -> Done {
    use crate::output::prepare_file;

    super::become_able()?;
    let file = args.record.as_deref().map(place);
    if let Some(file) = &file {
        prepare_file(file)?;
    }
    let before = match file.as_deref().filter(|file| args.add && file.exists()) {
        Some(file) => Some(fits(read(file)?, file)?),
        None => None,
    };
    let loaded = Loaded::new()?;
    let (mut record, is_whole, failed) = run(list, runs, before)?;
    drop(loaded);
    if is_whole {
        record.router = Some(crate::router::measured_cost(ROUTER_RUNS)?);
    }
    if record.rows.is_empty() {
        return Err(failed.unwrap_or(Failure::InterruptedEarly));
    }
    if let Some(file) = &file {
        records::write(file, &record)?;
    }
    show(&record, args, false)?;
    // What failed is told after what was finished.
    failed.map_or(Ok(()), Err)?;
    if !is_whole {
        return Err(if file.is_some() { Failure::Interrupted } else { Failure::InterruptedUnkept("--record") });
    }
    if record.rows.iter().all(|row| row.kernel.is_empty()) {
        return Err(Failure::Fidelity("no run was punctual: 1 % of the packets were more than 1 ms late".to_owned()));
    }
    Ok(())
}

/// Nothing measured here.
#[cfg(feature = "kernel")]
fn empty(runs: u64) -> Record {
    Record {
        flowstart_version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: flowstart_real::fidelity::kernel_version(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        runs,
        router: None,
        rows: Vec::new(),
    }
}

/// A record that this machine's runs can be added to.
#[cfg(feature = "kernel")]
fn fits(record: Record, file: &Path) -> Result<Record, Failure> {
    let of = |record: &Record| (record.flowstart_version.clone(), record.kernel.clone(), record.cores);
    let here = of(&empty(0));
    if of(&record) == here {
        return Ok(record);
    }
    let file = file.display();
    let (version, kernel, cores) = here;
    Err(Failure::Usage(format!(
        "--add: {file} was measured with flowstart {}, Linux {}, {} cores, not with flowstart {version}, Linux {kernel}, \
         {cores} cores; without --add it is measured anew",
        record.flowstart_version, record.kernel, record.cores
    )))
}

/// Runs the transfers; of one amid which it is interrupted, or fails, nothing is kept. With those
/// that were measured before, of which fewest have been; whether all were run, and what failed.
#[cfg(feature = "kernel")]
fn run(list: &[Case], runs: u64, before: Option<Record>) -> Result<(Record, bool, Option<Failure>), Failure> {
    use crate::output::{note, progress};

    let cancel = crate::interrupt::listen();
    let limit = super::fidelity_limit(None);
    let bar = progress("transferring");
    bar.set_length(list.len() as u64 * runs);
    let mut record = before.unwrap_or_else(|| empty(runs));
    let mut order: Vec<_> = list.iter().collect();
    order.sort_by_key(|case| record.runs_of(case));
    let mut runs_done = 0;
    let (mut is_whole, mut failed) = (true, None);
    for case in order {
        let done = |_: &_| {
            runs_done += 1;
            bar.set_position(runs_done);
        };
        let row = match flowstart_real::testbed::compare(case, runs, &limit, &cancel, done) {
            Ok(Some(row)) => row,
            unfinished => {
                failed = unfinished.err().map(Failure::from);
                is_whole = false;
                break;
            }
        };
        for why in &row.left_out {
            note(&format!("{}, {}: left out: {why}", case.control.name(), case.path()));
        }
        record.add(row).map_err(Failure::usage)?;
    }
    bar.finish_and_clear();
    record.sort();
    Ok((record, is_whole, failed))
}

/// What the simulator says now, beside what the kernel did.
fn simulate(record: &mut Record) -> Done {
    for row in &mut record.rows {
        let Row { paper, simulated, .. } = Row::simulated(&row.case)?;
        (row.paper, row.simulated) = (paper, simulated);
    }
    Ok(())
}

fn read(file: &Path) -> Result<Record, Failure> {
    records::read(file, "flowstart reproduce quick-start --real", Record::check)
}

fn show(record: &Record, args: &ReproduceArgs, kept: bool) -> Done {
    let (flowstart, kernel) = (&record.flowstart_version, &record.kernel);
    let origin = Origin { flowstart, kernel, cores: record.cores, runs: record.runs, kept };
    let forms = Forms {
        title: "Quick-Start's testbed on a stock kernel",
        document: document(record)?,
        markdown: table::markdown(record),
        tables: table::tables(record),
        sentences: table::sentences(record),
    };
    forms.show(&origin, &args.page, args.json, args.markdown)?;
    let differs =
        |claim: &flowstart_real::testbed::Claim| claim.judge(record).is_some_and(|judged| judged.agrees == Some(false));
    if args.strict && CLAIMS.iter().any(differs) { Err(Failure::Check) } else { Ok(()) }
}

/// The record with the claims and how far apart simulated and real times are.
fn document(record: &Record) -> Result<Value, Failure> {
    let mut document = serde_json::to_value(record).map_err(Failure::usage)?;
    let deviations = record.rows.iter().map(Row::deviation);
    for (value, deviation) in document["rows"].as_array_mut().into_iter().flatten().zip(deviations) {
        value["deviation"] = json!(deviation);
    }
    let claims = CLAIMS.iter().filter_map(|claim| {
        let judged = claim.judge(record)?;
        Some(json!({
            "figure": claim.figure, "says": claim.says, "of": claim.of, "paper_kernel": judged.paper,
            "simulated": judged.simulated, "kernel": judged.kernel.mean, "half_width": judged.kernel.half_width,
            "agrees": judged.agrees,
        }))
    });
    document["claims"] = claims.collect();
    Ok(document)
}
