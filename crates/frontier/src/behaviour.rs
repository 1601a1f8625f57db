//! What a contestant does, in a few digits: so that records of other code are not taken for those
//! of this one.

use flowstart_units::{Rate, Span};

use flowstart_parallel::Cancel;
use flowstart_race::{Baselines, Contestant, RaceError};
use flowstart_scenario::Buffer;

use super::{Cell, LoadKind, PathKind, digest};

/// The seed of the cells that are looked at: neither for development nor held out.
const SEED: u64 = 0;

/// Cells that are quick to simulate and that together have every path, every load, and rates of two
/// magnitudes.
fn cells() -> [Cell; 5] {
    let cell = |mbps, rtt, buffer, path, load| Cell {
        capacity: Rate::from_mbps(mbps),
        rtt: Span::from_millis(rtt),
        buffer: Buffer::Bdp(buffer),
        queue: None,
        path,
        load,
        as_is: false,
        with: &[],
    };
    [
        cell(100, 50, 1.0, PathKind::Clean, LoadKind::Idle),
        cell(20, 20, 0.25, PathKind::Loss, LoadKind::Idle),
        cell(20, 20, 1.0, PathKind::Jitter, LoadKind::Udp),
        cell(20, 20, 1.0, PathKind::DelayedAcks, LoadKind::Idle),
        cell(5, 50, 1.0, PathKind::Clean, LoadKind::Greedy),
    ]
}

/// 16 hexadecimal digits of the BLAKE3 hash of everything that is measured of a contestant in five
/// cells of this program. A change of the code that changes nothing in any of them goes unnoticed.
///
/// # Errors
/// If it cannot be simulated.
pub fn behaviour(contestant: &Contestant) -> Result<String, RaceError> {
    let mut text = String::new();
    for cell in cells() {
        let race = cell.race(contestant, SEED);
        if let Some((exit, values)) = race.measure_first(&mut Baselines::default(), &Cancel::default())? {
            text.push_str(&format!("{exit:?} {values:?}\n"));
        }
    }
    Ok(digest(&text))
}
