//! Do the tests of a crate notice when its code is changed?
//!
//! ```text
//! cargo run --release --manifest-path mutants/Cargo.toml -- network --sample 60 --seed 1
//! ```
//!
//! A mutant is the crate with one small change: another operator, a function that returns a default
//! value, a condition turned round. Tests that still pass have missed it. A build for each mutant
//! would take days, so all mutants of a sample go into one build: each change stands beside the
//! code it replaces, behind a switch that a variable of the environment turns on.
//!
//! 1. Copy the tree into a temporary folder (`tree`); the sources themselves are never touched.
//! 2. Find every place that can be changed (`sites`, `values`) and draw a sample (`sample`).
//! 3. Write the copy with the changes of the sample in it (`rewrite`) and build its tests. A change
//!    that does not compile is found by the place of the error, dropped, and the build repeated
//!    (`build`).
//! 4. Run the tests without any change: they must pass, and their time sets the limit. Then run
//!    them once for each mutant, until the first test fails (`run`).
//!
//! What is changed: bodies of functions, binary operators, comparisons, `!` and `-`, guards and
//! arms of `match`; with `--constants` also numbers. What is not: code under `cfg(test)`, constants
//! and `const fn`, patterns, types, the insides of macros, and how `Debug` prints. Run are the unit
//! and integration tests of the crates that are changed and of those that `--with` adds, with all
//! of their features.

mod build;
mod rewrite;
mod run;
mod sample;
mod sites;
#[cfg(test)]
mod tests;
mod tree;
mod values;

use clap::Parser;
use run::{Outcome, Programs};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// What went wrong, for people.
type Result<T> = std::result::Result<T, String>;

/// Change a crate in small ways and see whether its tests notice.
#[derive(Parser)]
struct Arguments {
    /// The crates to change: the names of their folders in `crates`. The sample is drawn from all.
    #[arg(required = true)]
    names: Vec<String>,
    /// Run the tests of this crate too; may be repeated.
    #[arg(long, value_name = "CRATE")]
    with: Vec<String>,
    /// How many mutants to try, drawn at random.
    #[arg(long, default_value_t = 60)]
    sample: usize,
    /// Another seed draws another sample.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also add one to numbers.
    #[arg(long)]
    constants: bool,
    /// Instead of a sample, all mutants of this line (`network/queue/red.rs:283`), file or folder;
    /// may be repeated.
    #[arg(long, value_name = "PLACE", conflicts_with_all = ["sample", "seed"])]
    at: Vec<String>,
    /// Leave out test programs whose name begins with this; may be repeated.
    #[arg(long)]
    skip: Vec<String>,
    /// Begin no mutant after so many minutes of running tests; report on those tried until then.
    #[arg(long, default_value_t = 600)]
    minutes: u64,
    /// Where the copy and what is built from it are kept between runs [default: in the system's
    /// temporary folder].
    #[arg(long)]
    folder: Option<PathBuf>,
}

fn main() -> ExitCode {
    match examine(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn examine(arguments: &Arguments) -> Result<()> {
    let folder = arguments.folder.clone().unwrap_or_else(|| std::env::temp_dir().join("flowstart-mutants"));
    let tree = tree::Tree::open(&folder, &arguments.names, &arguments.with)?;
    let mut sources = tree.sources(arguments.constants)?;
    let total = sample::number(&mut sources);
    let (chosen, how) = if arguments.at.is_empty() {
        (sample::draw(total, arguments.sample, arguments.seed), format!("seed {}", arguments.seed))
    } else {
        (sample::at(&sources, &arguments.at)?, arguments.at.join(" "))
    };
    println!("{}: {} of {total} mutants, {how}", arguments.names.join(" "), chosen.len());

    let built = build::build(&tree, &sources, &chosen)?;
    let programs = Programs::measured(built.programs, &arguments.skip)?;
    let mut tally = sample::Tally { dropped: built.dropped.len(), ..Default::default() };
    let all: Vec<sample::Listed> = sample::listed(&sources).collect();
    let start = std::time::Instant::now();
    // In the order they were drawn: what is tried in time is a sample whenever time is up.
    let drawn = |among: &BTreeSet<u32>| {
        let ids: Vec<u32> = chosen.iter().copied().filter(|id| among.contains(id)).collect();
        ids.into_iter().filter_map(|id| all.iter().find(|m| m.id == id))
    };
    for mutant in drawn(&built.alive) {
        if start.elapsed() > Duration::from_secs(60 * arguments.minutes) {
            tally.left += 1;
            continue;
        }
        let outcome = programs.run(mutant.id);
        let place = format!("{}:{} in {}: {}", mutant.file, mutant.line, mutant.function, mutant.change);
        match &outcome {
            Outcome::Caught(test) => println!("caught     {place}   [{test}]"),
            Outcome::TimedOut => println!("timed out  {place}"),
            Outcome::Missed => println!("MISSED     {place}   | {}", mutant.text),
        }
        tally.add(&outcome);
    }
    for mutant in drawn(&built.dropped) {
        println!("no build   {}:{}: {}", mutant.file, mutant.line, mutant.change);
    }
    println!("{tally}");
    Ok(())
}
