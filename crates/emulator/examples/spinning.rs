//! Sleeping against watching the clock: how long before a departure an engine should stop sleeping,
//! measured.
//!
//! ```sh
//! cargo run --release -p flowstart-emulator --example spinning
//! ```
//!
//! Needs root. docs/emulator.md has a result. Compare numbers of one run with each other.

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("Linux only");
}

#[cfg(target_os = "linux")]
fn main() -> Result<(), flowstart_emulator::Error> {
    use std::time::Duration;

    use flowstart_emulator::Timing;
    use flowstart_emulator::self_test::{Measured, Trial, try_out_with};
    use flowstart_units::{Rate, Span};
    use nix::time::{ClockId, clock_gettime};

    /// Microseconds before a departure; the last is longer than the time between two packets at 100
    /// Mbit/s, so that the clock is watched all the time.
    const SPINS: [u64; 5] = [0, 6, 12, 50, 150];
    /// Each is measured this often, in turns; the median of every number is shown.
    const ROUNDS: usize = 3;
    let trial = |mbps, offered| Trial {
        capacity: Rate::from_mbps(mbps),
        packet: 1500,
        offered: Rate::from_mbps(offered),
        buffer: 100,
        lasting: Span::from_millis(1500),
    };
    let processor = || {
        let now = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(Duration::from);
        now.unwrap_or_default().as_secs_f64() * 1e6
    };
    println!(
        "| watching the clock from | 100 Mbit/s, 90 % load: median, 99 % | CPU per packet | 300 Mbit/s, 90 % load: median, 99 % | CPU per packet |"
    );
    println!("|---|---|---|---|---|");
    let mut rows: Vec<Vec<[f64; 3]>> = vec![Vec::new(); SPINS.len() * 2];
    for _ in 0..ROUNDS {
        for (number, spin) in SPINS.iter().enumerate() {
            for (load, (mbps, offered)) in [(100, 90), (300, 270)].into_iter().enumerate() {
                let timing = Timing { spin: Span::from_micros(*spin), ..Timing::default() };
                let before = processor();
                let measured: Measured = try_out_with(trial(mbps, offered), timing)?;
                let each = (processor() - before) / measured.sent.max(1) as f64;
                let micros = |span: Span| span.as_nanos() as f64 / 1e3;
                rows[2 * number + load].push([micros(measured.median), micros(measured.p99), each]);
            }
        }
    }
    let median = |several: &[[f64; 3]], field: usize| {
        let mut values: Vec<f64> = several.iter().map(|row| row[field]).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    for (number, spin) in SPINS.iter().enumerate() {
        print!("| {spin} us before |");
        for row in &rows[2 * number..2 * number + 2] {
            let [middle, late, each] = [0, 1, 2].map(|field| median(row, field));
            print!(" {middle:.1}, {late:.1} us | {each:.1} us |");
        }
        println!();
    }
    Ok(())
}
