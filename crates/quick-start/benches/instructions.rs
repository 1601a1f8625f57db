//! Processing cost of a router in instructions per packet, which do not depend on who else uses the
//! machine; counted by Valgrind's Callgrind.
//! `cargo bench -p flowstart-quick-start --bench instructions` prints a table; with a number after
//! `--run`, one case is run for as many batches.

mod cases;

use std::process::{Command, ExitCode};

use cases::{BATCH, Bench, Case};

/// Batches of the shorter and the longer of two runs; what both do besides falls out of the
/// difference.
const SHORT: u64 = 1;
const LONG: u64 = 3;

/// Instructions of this program when it runs case `number` for so many batches.
fn count(number: usize, batches: u64) -> Option<u64> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["--run", &number.to_string(), &batches.to_string()])
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&output.stderr);
    said.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
}

fn per_packet(number: usize) -> Option<f64> {
    let more = count(number, LONG)?.checked_sub(count(number, SHORT)?)?;
    Some(more as f64 / ((LONG - SHORT) * BATCH as u64) as f64)
}

fn main() -> ExitCode {
    let cases = cases::all();
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--run") {
        let number = |at: usize| arguments.get(at).and_then(|argument| argument.parse::<usize>().ok());
        let Some((case, batches)) = number(at + 1).and_then(|case| cases.get(case)).zip(number(at + 2)) else {
            eprintln!("--run CASE BATCHES, with CASE below {}", cases.len());
            return ExitCode::FAILURE;
        };
        let mut bench = Bench::new(case);
        (0..batches).for_each(|_| bench.run());
        return ExitCode::SUCCESS;
    }
    let counts: Option<Vec<f64>> = (0..cases.len()).map(per_packet).collect();
    let Some(counts) = counts else {
        println!("skipped: valgrind is not installed or does not say what it counted");
        return ExitCode::SUCCESS;
    };
    // What the copy takes is subtracted: it is not the router's.
    let copy = |case: &Case| counts[cases.iter().position(|other| other.six == case.six).unwrap_or_default()];
    println!("| instructions per packet | IPv4 | IPv6 |\n|---|---|---|");
    let of = |six| cases.iter().zip(&counts).filter(move |(case, _)| case.six == six);
    for ((case, four), (other, six)) in of(false).zip(of(true)).skip(1) {
        println!("| {} | {:.0} | {:.0} |", case.name, four - copy(case), six - copy(other));
    }
    ExitCode::SUCCESS
}
