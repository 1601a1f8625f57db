//! How precisely chirps leave: the gaps on the wire, as the kernel stamped them, against those that
//! the program asked for.
//!
//! `cargo run --release -p flowstart-kernel --features ebpf --example gaps -- --rate
//! 10Mbit/s,100Mbit/s,500Mbit/s`

mod support;

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use flowstart_kernel::{Algorithm, Settings, Watch, What, load, unload};
use flowstart_units::{Rate, Span, Time};
use support::{Path, Tried, only, option, transfer};

fn main() -> Tried<()> {
    only(&["--rate", "--rtt"], &[])?;
    let rates: Vec<Rate> = option("--rate", "10Mbit/s,100Mbit/s,500Mbit/s")?;
    let rtt = option::<Span>("--rtt", "20ms")?[0];
    let bytes = support::sizes("4MB")?[0].get();
    let mut settings = Settings::new(Algorithm::PacedChirping);
    // Chirps do not end when they agree, so that there are many.
    for parameter in ["agreeing=100", "ecn=off", "max_rounds=10000"] {
        settings.set(parameter)?;
    }
    load(&settings)?;
    let result = measure(&rates, rtt, bytes);
    unload(Algorithm::PacedChirping)?;
    result
}

fn measure(rates: &[Rate], rtt: Span, bytes: u64) -> Tried<()> {
    println!("| rate | chirps | gaps | asked for (median) | off by: median | 90 % | 99 % | largest |");
    println!("|---|---|---|---|---|---|---|---|");
    for rate in rates {
        let path = Path { rate: *rate, rtt, mark: None };
        let chirps = Mutex::new(Vec::new());
        let watch = Watch::new(|event| {
            if let What::Chirp { begin, first_gap, step, packets, .. } = event.what
                && !first_gap.is_zero()
            {
                chirps
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner)
                    .push((begin, packets, first_gap, step));
            }
        })?;
        let transfer = transfer(&path, "fs_chirp", bytes)?;
        watch.poll(Duration::from_millis(200))?;
        drop(watch);
        let chirps = chirps.into_inner().unwrap_or_default();
        let arrived: HashMap<u32, Time> = transfer.packets.iter().map(|seen| (seen.sequence, seen.arrived)).collect();
        let mss = segment(&transfer.packets);
        let (mut asked, mut off) = (Vec::new(), Vec::new());
        for (begin, packets, first_gap, step) in &chirps {
            for k in 1..*packets {
                let at = |k: u32| arrived.get(&begin.wrapping_add(mss.wrapping_mul(k)));
                let (Some(before), Some(now)) = (at(k - 1), at(k)) else { continue };
                let gap = *first_gap - *step * u64::from(k - 1);
                asked.push(gap);
                off.push(now.since(*before).as_nanos().abs_diff(gap.as_nanos()));
            }
        }
        asked.sort_unstable();
        off.sort_unstable();
        let at = |share: usize| {
            off.get((off.len() * share / 100).min(off.len().saturating_sub(1))).map_or(0.0, |ns| *ns as f64 / 1e3)
        };
        let median = asked.get(asked.len() / 2).copied().unwrap_or_default();
        println!(
            "| {rate} | {} | {} | {:.1} µs | {:.1} µs | {:.1} µs | {:.1} µs | {:.1} µs |",
            chirps.len(),
            off.len(),
            median.as_secs_f64() * 1e6,
            at(50),
            at(90),
            at(99),
            at(100)
        );
    }
    Ok(())
}

/// The usual distance between sequence numbers.
fn segment(packets: &[support::Seen]) -> u32 {
    let mut distances = HashMap::new();
    for pair in packets.windows(2) {
        *distances.entry(pair[1].sequence.wrapping_sub(pair[0].sequence)).or_insert(0) += 1;
    }
    distances.into_iter().max_by_key(|(_, count)| *count).map_or(1448, |(distance, _)| distance)
}
