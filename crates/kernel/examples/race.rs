//! Races congestion controls of the kernel over emulated paths: completion times and queueing
//! delay, medians and quartiles of several runs, as the tables of docs/kernel-measured.md.
//!
//! `cargo run --release -p flowstart-kernel --features ebpf --example race -- --control
//! cubic,bbr,fs_chirp --mark 0ms --runs 5`

mod support;

use flowstart_emulator::{Fidelity, FidelityLimit};
use flowstart_kernel::{Algorithm, Settings, Watch, load, loaded, unload};
use flowstart_units::{Rate, Span};
use support::{Path, Tried, only, option, sizes, transfer};

/// A run that was not faithful is made again, at most so often in all.
const MOST_REPEATED: usize = 1000;

fn main() -> Tried<()> {
    only(&["--control", "--rate", "--rtt", "--mark", "--runs", "--size", "--param"], &["--watch"])?;
    let controls: Vec<String> = option("--control", "cubic,bbr,fs_dctcp,fs_chirp")?;
    let (rates, rtts) =
        (option::<Rate>("--rate", "20Mbit/s,100Mbit/s,200Mbit/s")?, option::<Span>("--rtt", "10ms,20ms,50ms,100ms")?);
    let marks: Vec<Span> = option("--mark", "0ms,1ms")?;
    let runs = option::<usize>("--runs", "5")?[0].max(1);
    let sizes: Vec<u64> = sizes("100kB,1MB,10MB")?.iter().map(|size| size.get()).collect();
    let mut ours = Vec::new();
    for algorithm in Algorithm::ALL {
        let wanted = controls.iter().any(|control| control == algorithm.kernel_name());
        if wanted && loaded().iter().all(|loaded| loaded.algorithm != algorithm) {
            let mut settings = Settings::new(algorithm);
            if algorithm == Algorithm::PacedChirping {
                option::<String>("--param", "")?
                    .iter()
                    .filter(|text| !text.is_empty())
                    .try_for_each(|text| settings.set(text))?;
            }
            load(&settings)?;
            ours.push(algorithm);
        }
    }
    let mut result = Ok(());
    for mark in marks {
        let paths: Vec<Path> = rates
            .iter()
            .flat_map(|rate| {
                rtts.iter().map(|rtt| Path { rate: *rate, rtt: *rtt, mark: Some(mark).filter(|m| !m.is_zero()) })
            })
            .collect();
        result = result.and_then(|()| race(&controls, &paths, &sizes, runs));
    }
    for algorithm in ours {
        unload(algorithm)?;
    }
    result
}

/// Median and quartiles of numbers, to be shown with so many digits.
fn spread(mut values: Vec<f64>, digits: usize) -> String {
    values.sort_unstable_by(f64::total_cmp);
    let at = |share: usize| values[(values.len() - 1) * share / 4];
    format!("{:.digits$} ({:.digits$}–{:.digits$})", at(2), at(1), at(3))
}

/// What is known of the transfers of one size with one control.
#[derive(Default)]
struct Cell {
    took: Vec<f64>,
    waits: Vec<f64>,
    dropped: usize,
    marked: usize,
}

fn race(controls: &[String], paths: &[Path], sizes: &[u64], runs: usize) -> Tried<()> {
    let Some(mark) = paths.first().map(|path| path.mark) else { return Ok(()) };
    let queue = mark.map_or("drop tail, one BDP".to_owned(), |mark| format!("marks what waited for {mark}"));
    println!("Queue: {queue}; {runs} runs each, median (quartiles)\n");
    print!("| path | control |");
    sizes.iter().for_each(|size| print!(" {} kB, ms | its longest wait, ms |", size / 1000));
    println!(" dropped | marked |\n|{}", "---|".repeat(4 + 2 * sizes.len()));
    let watching = std::env::args().any(|argument| argument == "--watch");
    let (limit, mut worst, mut repeated) = (FidelityLimit::default(), Fidelity::default(), 0);
    for path in paths {
        // Run by run, so that what else the machine does meets all alike.
        let mut cells: Vec<Vec<Cell>> =
            controls.iter().map(|_| sizes.iter().map(|_| Cell::default()).collect()).collect();
        for _ in 0..runs {
            for (control, cells) in controls.iter().zip(&mut cells) {
                let watch = (watching && control == "fs_chirp")
                    .then(|| Watch::new(|event| eprintln!("{event:?}")))
                    .transpose()?;
                for (size, cell) in sizes.iter().zip(cells) {
                    let transfer = loop {
                        let transfer = transfer(path, control, *size)?;
                        match limit.broken_by(&transfer.fidelity) {
                            None => break transfer,
                            Some(why) if repeated >= MOST_REPEATED => return Err(why.into()),
                            Some(_) => repeated += 1,
                        }
                    };
                    if transfer.fidelity.p99 > worst.p99 {
                        worst = transfer.fidelity;
                    }
                    cell.took.push(transfer.took.as_secs_f64() * 1e3);
                    cell.waits.push(transfer.longest_wait().as_secs_f64() * 1e3);
                    cell.dropped += transfer.packets.iter().filter(|seen| seen.waited.is_none()).count();
                    cell.marked += transfer.packets.iter().filter(|seen| seen.marked).count();
                }
                if let Some(watch) = watch {
                    watch.poll(std::time::Duration::from_millis(100))?;
                }
            }
        }
        for (control, cells) in controls.iter().zip(cells) {
            let mean = |count: fn(&Cell) -> usize| cells.iter().map(count).sum::<usize>() as f64 / runs as f64;
            let (dropped, marked) = (mean(|cell| cell.dropped), mean(|cell| cell.marked));
            print!("| {}, {} | {control} |", path.rate, path.rtt);
            for cell in cells {
                print!(" {} | {} |", spread(cell.took, 0), spread(cell.waits, 1));
            }
            println!(" {dropped:.0} | {marked:.0} |");
        }
    }
    println!("\n{repeated} runs were not faithful and made again; of the others the least faithful: {worst}\n");
    Ok(())
}
