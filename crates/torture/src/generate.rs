//! Valid scenarios from a seed.

use flowstart_scenario::{Scenario, ScenarioError};
use toml::Table;

use crate::chance::{Chance, Wildness};
use crate::flows::{add_arrivals, add_tcp, add_udp, add_web};
use crate::paths::Way;
use crate::tables::{nanos, put};

/// How often an invalid draw is replaced by another before the seed is given up.
const DRAWS: u64 = 200;

/// The scenario of a seed, as the table of its file. Draws that do not fit together are replaced by
/// others until one does; `Err` if none of 200 did.
///
/// # Errors
/// The complaint about the last draw.
pub fn scenario_of(seed: u64) -> Result<Table, ScenarioError> {
    let mut draw = 0;
    loop {
        let table = draw_of(seed.wrapping_mul(DRAWS).wrapping_add(draw));
        draw += 1;
        match Scenario::parse("random.toml", &table.to_string()) {
            Ok(_) => return Ok(table),
            Err(error) if draw == DRAWS => return Err(error),
            Err(_) => {}
        }
    }
}

fn draw_of(number: u64) -> Table {
    let mut chance = Chance::new(number);
    let chance = &mut chance;
    let mut scenario = Table::new();
    put(&mut scenario, "seed", (chance.any() >> 1) as i64);
    let way = Way::draw(chance, &mut scenario);
    // Long enough for a few round trips, or for timeouts.
    let duration = match chance.below(4) {
        0 => way.rtt.saturating_mul(chance.between(1, 100)),
        1 => chance.between(1_000_000_000, 20_000_000_000),
        _ => way.rtt.saturating_mul(chance.between(5, 50)).saturating_add(chance.between(1, 4_000_000_000)),
    };
    let duration = if chance.extreme(10) { u64::MAX / 2 } else { duration.max(1) };
    put(&mut scenario, "duration", nanos(duration));
    if chance.percent(30) {
        put(&mut scenario, "stop_when_complete", true);
    }
    if chance.percent(30) {
        let mut output = Table::new();
        put(&mut output, "sample", nanos(0));
        put(&mut output, "packets", chance.percent(50));
        put(&mut scenario, "output", output);
    }
    let parts = if chance.wild == Wildness::Usual { 2 } else { 4 };
    for _ in 0..=chance.below(parts) {
        match chance.below(10) {
            0 => add_udp(chance, &mut scenario, &way),
            1 => add_arrivals(chance, &mut scenario, &way),
            2 => add_web(chance, &mut scenario, &way),
            _ => add_tcp(chance, &mut scenario, &way),
        }
    }
    scenario
}
