//! `cargo run --profile night -p flowstart-torture -- --count 10000`: random scenarios by the
//! thousand, against invariants.

#![forbid(unsafe_code)]

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use flowstart_parallel::{Cancel, in_parallel};
use flowstart_torture::{Judgement, Limits, judge, scenario_of, shrink};

const USAGE: &str = "flowstart-torture [--count N] [--seed N] [--packets N] [--threads N] [--print]
  --count N    scenarios, default 1000
  --seed N     the first one's seed, default 1; scenario k has seed N + k
  --packets N  a scenario is cut off after about so many packets, default 5000
  --threads N  default: all cores
  --print      only print the scenarios, with --count 1 as a file for `flowstart run`";

/// So many times as much may happen in a scenario that was too large at first.
const PATIENCE: u64 = 100;

/// Tries to make a failing scenario smaller.
const ATTEMPTS: usize = 3000;

struct Options {
    count: u64,
    seed: u64,
    packets: u64,
    threads: Option<usize>,
    print: bool,
}

fn options() -> Result<Options, String> {
    let mut options = Options { count: 1000, seed: 1, packets: 5000, threads: None, print: false };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || {
            let text = words.next().ok_or_else(|| format!("{word} needs a number\n{USAGE}"))?;
            text.parse::<u64>().map_err(|_| format!("{word} needs a number and not \"{text}\"\n{USAGE}"))
        };
        match word.as_str() {
            "--count" => options.count = number()?,
            "--seed" => options.seed = number()?,
            "--packets" => options.packets = number()?.max(1),
            "--threads" => options.threads = usize::try_from(number()?.max(1)).ok(),
            "--print" => options.print = true,
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(options)
}

fn say(text: &str) {
    // Who does not listen misses it.
    let _ = writeln!(std::io::stdout(), "{text}");
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "{message}");
            return ExitCode::from(2);
        }
    };
    if options.print {
        for number in 0..options.count {
            let seed = options.seed.wrapping_add(number);
            match scenario_of(seed) {
                Ok(table) => say(&format!("# seed {seed}\n{table}")),
                Err(error) => say(&format!("# seed {seed}: no scenario: {error}")),
            }
        }
        return ExitCode::SUCCESS;
    }
    let limits = Limits::packets(options.packets);
    let [passed, cut, large, refused, packets, violated] = [const { AtomicU64::new(0) }; 6];
    let add = |counter: &AtomicU64, n| counter.fetch_add(n, Ordering::Relaxed);
    let count = usize::try_from(options.count).unwrap_or(usize::MAX);
    let done = |done: usize| {
        if done.is_multiple_of(500) {
            let [packets, violated] = [&packets, &violated].map(|counter| counter.load(Ordering::Relaxed));
            say(&format!("{done} scenarios, {packets} packets, {violated} violations"));
        }
    };
    let outcome = in_parallel(count, options.threads, &Cancel::default(), done, |number| {
        let seed = options.seed.wrapping_add(number as u64);
        let Ok(table) = scenario_of(seed) else {
            add(&refused, 1);
            return;
        };
        // Little is too large if one has patience: many happenings for few packets (an application
        // that writes byte by byte), or many packets in the smallest slice of time.
        let verdict = match judge(&table, limits) {
            Judgement::TooLarge => judge(&table, Limits { happenings: limits.happenings * PATIENCE, ..limits }),
            other => other,
        };
        match verdict {
            Judgement::Passed(what) => {
                add(&passed, 1);
                add(&packets, what.packets);
                add(&cut, u64::from(what.cut));
            }
            Judgement::TooLarge => {
                add(&large, 1);
                say(&format!("seed {seed} is too large"));
            }
            Judgement::Refused(why) => {
                add(&refused, 1);
                say(&format!("seed {seed} was refused: {why}"));
            }
            Judgement::Violated { what, kind } => {
                add(&violated, 1);
                let small = shrink(&table, &kind, limits, ATTEMPTS);
                say(&format!("\n== seed {seed}: {what}\n{small}"));
            }
        }
    });
    if let Err(message) = outcome {
        let _ = writeln!(std::io::stderr(), "{message}");
        return ExitCode::FAILURE;
    }
    let [passed, cut, large, refused, packets, violated] =
        [passed, cut, large, refused, packets, violated].map(AtomicU64::into_inner);
    say(&format!(
        "{} scenarios: {passed} passed ({cut} of them cut off), {large} too large, {refused} not drawn, {violated} violations; {packets} \
         packets checked",
        options.count
    ));
    if violated == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
