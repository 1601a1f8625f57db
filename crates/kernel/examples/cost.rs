//! What a gigabyte costs in the kernel with each congestion control, once started, side by side:
//! short slices in turn, medians of them.
//!
//! `cargo run --release -p flowstart-kernel --features ebpf --example cost -- --rate
//! 100Mbit/s,500Mbit/s --slices 9 --seconds 2`
//!
//! All are paced by the kernel at the same rate (SO_MAX_PACING_RATE), far below the link's, so that
//! all send alike. Counted is the machine's time in the kernel (system, interrupts) less that of
//! the emulator's threads. What else the machine does is in it, too: that is why slices alternate,
//! and why the spread is printed.

mod support;

use std::fs;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flowstart_emulator::{World, WorldConfig};
use flowstart_kernel::{Algorithm, Settings, load, unload};
use flowstart_network::{DropTailConfig, LinkConfig, QueueConfig, RateSchedule};
use flowstart_units::{Rate, Span};
use nix::libc;
use support::{Tried, only, option};

const CONTROLS: [&str; 4] = ["cubic", "bbr", "fs_chirp", "fs_reno"];
/// Time for a start before a slice begins.
const START: Duration = Duration::from_millis(1000);

fn main() -> Tried<()> {
    only(&["--rate", "--slices", "--seconds"], &[])?;
    let rates: Vec<Rate> = option("--rate", "100Mbit/s,500Mbit/s")?;
    let slices = option::<usize>("--slices", "9")?[0].max(1);
    let seconds = option::<u64>("--seconds", "2")?[0].max(1);
    let mut settings = Settings::new(Algorithm::PacedChirping);
    settings.set("ecn=off")?;
    load(&settings)?;
    load(&Settings::new(Algorithm::SlowStartReno))?;
    let result = measure(&rates, slices, Duration::from_secs(seconds));
    unload(Algorithm::PacedChirping)?;
    unload(Algorithm::SlowStartReno)?;
    result
}

fn measure(rates: &[Rate], slices: usize, length: Duration) -> Tried<()> {
    println!("| rate | control | CPU s per GB (median) | quartiles | of cubic | achieved Mbit/s |");
    println!("|---|---|---|---|---|---|");
    for rate in rates {
        let mut costs = CONTROLS.map(|_| Vec::new());
        let mut speeds = CONTROLS.map(|_| Vec::new());
        for _ in 0..slices {
            for (place, control) in CONTROLS.iter().enumerate() {
                let (cost, speed) = slice(*rate, control, length)?;
                costs[place].push(cost);
                speeds[place].push(speed);
            }
        }
        let sorted = |values: &[f64]| {
            let mut values = values.to_vec();
            values.sort_unstable_by(f64::total_cmp);
            values
        };
        let base = sorted(&costs[0])[slices / 2];
        for (place, control) in CONTROLS.iter().enumerate() {
            let (cost, speed) = (sorted(&costs[place]), sorted(&speeds[place]));
            println!(
                "| {rate} | {control} | {:.2} | {:.2} to {:.2} | {:.2} | {:.0} |",
                cost[slices / 2],
                cost[slices / 4],
                cost[slices * 3 / 4],
                cost[slices / 2] / base,
                speed[slices / 2]
            );
        }
    }
    Ok(())
}

/// CPU seconds per gigabyte, and the rate that was achieved.
fn slice(rate: Rate, control: &'static str, length: Duration) -> Tried<(f64, f64)> {
    let half = Span::from_millis(10);
    let queue = QueueConfig::DropTail(DropTailConfig { packets: Some(10_000), bytes: None });
    let link = LinkConfig::new(RateSchedule::Constant(Rate::from_mbps(2000)), half, queue);
    let world = World::start(WorldConfig::pair(link, half))?;
    let server = world.hosts()[1].address();
    let listener = world.hosts()[1].run(move || TcpListener::bind((server, 0)))??;
    let to = listener.local_addr()?;
    let over = Arc::new(AtomicBool::new(false));
    let stop = over.clone();
    let sender = world.hosts()[0].spawn(move || support::pour(to, control, rate.as_bps() / 8, &stop))?;
    let (stream, _) = listener.accept()?;
    let bytes = Arc::new(AtomicU64::new(0));
    let counted = bytes.clone();
    let reader = std::thread::spawn(move || support::drain(stream, &counted));
    std::thread::sleep(START);
    let (ticks, before, began) = (kernel_ticks()?, bytes.load(Ordering::Relaxed), Instant::now());
    std::thread::sleep(length);
    let (ticks, carried, took) = (kernel_ticks()? - ticks, bytes.load(Ordering::Relaxed) - before, began.elapsed());
    over.store(true, Ordering::Relaxed);
    sender.join().map_err(|_| "the sender failed")???;
    reader.join().map_err(|_| "the receiver failed")??;
    world.finish()?;
    // SAFETY: a system call without arguments that matter beyond the constant.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    let gigabytes = carried as f64 / 1e9;
    Ok((ticks as f64 / per_second / gigabytes.max(1e-9), carried as f64 * 8e-6 / took.as_secs_f64()))
}

/// Ticks of the machine in the kernel, less those of the emulator's threads.
fn kernel_ticks() -> Tried<i64> {
    let stat = fs::read_to_string("/proc/stat")?;
    let fields: Vec<i64> =
        stat.lines().next().unwrap_or_default().split_whitespace().skip(1).flat_map(str::parse).collect();
    // user nice system idle iowait irq softirq
    let machine = [2, 5, 6].iter().filter_map(|place| fields.get(*place)).sum::<i64>();
    let mut emulator = 0;
    for task in fs::read_dir("/proc/self/task")?.flatten() {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        // After the name in parentheses; stime is the 15th field of all.
        let Some((name, rest)) = stat.rsplit_once(')') else { continue };
        if name.contains("fs-engine") {
            emulator += rest.split_whitespace().nth(12).and_then(|ticks| ticks.parse::<i64>().ok()).unwrap_or(0);
        }
    }
    Ok(machine - emulator)
}
