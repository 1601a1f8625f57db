//! Races congestion controls of the kernel over emulated paths: completion times and queueing delay.
//!
//! `cargo run --release -p flowstart-kernel --features ebpf --example race -- --rate 100Mbit/s --rtt 20ms --runs 3`

mod support;

use flowstart_kernel::{Algorithm, Settings, Watch, load, loaded, unload};
use flowstart_units::{Rate, Span};
use support::{Outcome, Path, option, sizes, transfer};

fn main() -> Outcome<()> {
    let controls: Vec<String> = option("--control", "cubic,bbr,fs_dctcp,fs_chirp")?;
    let (rates, rtts) =
        (option::<Rate>("--rate", "20Mbit/s,100Mbit/s,200Mbit/s")?, option::<Span>("--rtt", "10ms,20ms,50ms,100ms")?);
    let marks: Vec<Span> = option("--mark", "0ms,1ms")?;
    let runs = option::<usize>("--runs", "1")?[0].max(1);
    let sizes = sizes("100kB,1MB,10MB")?;
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
    let result = race(&controls, &rates, &rtts, &marks, &sizes.iter().map(|size| size.get()).collect::<Vec<_>>(), runs);
    for algorithm in ours {
        unload(algorithm)?;
    }
    result
}

fn race(controls: &[String], rates: &[Rate], rtts: &[Span], marks: &[Span], sizes: &[u64], runs: usize) -> Outcome<()> {
    print!("| rate | RTT | queue | control |");
    for size in sizes {
        print!(" {} kB ms | longest wait ms |", size / 1000);
    }
    println!(" dropped | marked |");
    println!("|{}", "---|".repeat(6 + 2 * sizes.len()));
    let watching = std::env::args().any(|argument| argument == "--watch");
    for (rate, rtt, mark) in rates
        .iter()
        .flat_map(|rate| rtts.iter().flat_map(move |rtt| marks.iter().map(move |mark| (*rate, *rtt, *mark))))
    {
        let path = Path { rate, rtt, mark: Some(mark).filter(|mark| !mark.is_zero()) };
        for control in controls {
            let watch =
                (watching && control == "fs_chirp").then(|| Watch::new(|event| eprintln!("{event:?}"))).transpose()?;
            let queue = path.mark.map_or("drop tail".to_owned(), |mark| format!("marks {mark}"));
            print!("| {rate} | {rtt} | {queue} | {control} |");
            let (mut dropped, mut marked) = (0, 0);
            for size in sizes {
                let (mut took, mut waits) = (Vec::new(), Vec::new());
                for _ in 0..runs {
                    let transfer = transfer(&path, control, *size)?;
                    waits.push(transfer.longest_wait());
                    dropped += transfer.packets.iter().filter(|seen| seen.waited.is_none()).count();
                    marked += transfer.packets.iter().filter(|seen| seen.marked).count();
                    took.push(transfer.took);
                }
                took.sort_unstable();
                waits.sort_unstable();
                print!(" {:.0} | {:.1} |", took[runs / 2].as_secs_f64() * 1e3, waits[runs / 2].as_secs_f64() * 1e3);
            }
            println!(" {dropped} | {marked} |");
            if let Some(watch) = watch {
                watch.poll(std::time::Duration::from_millis(100))?;
            }
        }
    }
    Ok(())
}
