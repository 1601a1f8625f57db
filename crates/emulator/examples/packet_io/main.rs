//! Ways to get packets of a host into this process and out again, measured: AF_PACKET rings as the
//! emulator uses them, AF_XDP, TUN.
//!
//! ```sh
//! cargo run --release -p flowstart-emulator --example packet_io
//! ```
//!
//! A host sends numbered datagrams, a forwarder takes each and gives it to another host. Sender and
//! forwarder have real-time priority, as the emulator's have. *Arrival known*: from before the
//! datagram is sent until the time that the forwarder has for its arrival, a stamp of the kernel or
//! of an XDP program, or else of the return of `read`. Needs root. docs/emulator.md has a result
//! and says what follows from it. Compare numbers of one run with each other: those of different
//! machines, or of the same machine on another day, differ by more than the ways do.

#[cfg(target_os = "linux")]
mod measure;
#[cfg(target_os = "linux")]
mod ways;
#[cfg(target_os = "linux")]
mod xdp;

// The emulator's own parts, as they are, without making them public for this.
#[cfg(target_os = "linux")]
#[allow(dead_code, unreachable_pub)]
#[path = "../../src/error.rs"]
mod error;
#[cfg(target_os = "linux")]
#[allow(dead_code, unreachable_pub)]
#[path = "../../src/ethtool.rs"]
mod ethtool;
#[cfg(target_os = "linux")]
#[allow(dead_code, unreachable_pub)]
#[path = "../../src/namespace.rs"]
mod namespace;
#[cfg(target_os = "linux")]
#[allow(dead_code, unreachable_pub)]
#[path = "../../src/netlink.rs"]
mod netlink;
#[cfg(target_os = "linux")]
#[allow(dead_code, unreachable_pub)]
#[path = "../../src/ring.rs"]
mod ring;
#[cfg(target_os = "linux")]
use error::Error;

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("Linux only");
}

#[cfg(target_os = "linux")]
fn main() {
    use measure::{Load, Measured, measure};
    use ways::Way;

    /// What is sent: as fast as it is taken, and at two distances in time (100 and 200 Mbit/s).
    const LOADS: [Load; 3] = [
        Load { packets: 60_000, gap: None },
        Load { packets: 10_000, gap: Some(120_000) },
        Load { packets: 15_000, gap: Some(60_000) },
    ];
    /// Each is measured this often, in turns; the median of every number is shown.
    const ROUNDS: usize = 3;
    println!(
        "Datagrams of 1500 bytes, the median of {ROUNDS} rounds. Instructions and processor time are per packet.\n"
    );
    println!(
        "| way | gap | packets/s | lost | forwarder | sender, forwarder and receiver | arrival known: median, 99 %, 99.9 % | at the receiver: median, 99 % |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for load in LOADS {
        let rounds: Vec<_> = (0..ROUNDS).map(|_| Way::ALL.map(|way| measure(way, load))).collect();
        let mut results: [Vec<Measured>; Way::ALL.len()] = std::array::from_fn(|_| Vec::new());
        for round in rounds {
            for ((way, result), all) in Way::ALL.iter().zip(round).zip(&mut results) {
                match result {
                    Ok(measured) => all.push(measured),
                    Err(error) => eprintln!("{way} is not possible here: {error}"),
                }
            }
        }
        for (way, all) in Way::ALL.iter().zip(&results).filter(|(_, all)| !all.is_empty()) {
            println!("| {way} | {} | {} |", load.gap_text(), Measured::median(all));
        }
    }
}
