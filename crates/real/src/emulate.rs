//! Programs on hosts with a described path between them.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use flowstart_emulator::{PacketRecord, Recording, World, WorldOutcome};
use flowstart_parallel::Cancel;
use flowstart_results::Results;
use flowstart_scenario::Scenario;
use flowstart_units::Span;

use super::Error;
use super::captures::Captures;
use super::layout::Layout;
use super::programs::{Ended, Programs, run_programs};
use super::quick_start::carry;
use super::tables::{FlowFacts, FlowRow, SenderSample, flow_name, results};
use super::watch::watch;

/// What happened.
#[derive(Debug)]
pub struct Emulated {
    /// How the programs ended.
    pub ended: Ended,
    /// Names of the links.
    pub links: Vec<String>,
    /// What links and flows did.
    pub recording: Recording,
    /// Sums, and how faithful it was.
    pub outcome: WorldOutcome,
    /// The same as tables.
    pub results: Results,
    /// Whether the captures were written: all else is known without them.
    pub captured: Result<(), Error>,
}

/// Runs programs on a pair of hosts for every flow of the scenario (for every way of flows, if
/// `shared`); [privileges](flowstart_emulator::privilege) must be there, and this must be the
/// thread that waits for the end, because programs end with the thread that starts them. Every link
/// is captured into a file of the folder `captures`, which must exist. `say` hears what the user
/// should know meanwhile.
///
/// # Errors
/// If it cannot be done here, or a program does not start.
pub fn emulate(
    (scenario, shared): (&Scenario, bool),
    programs: &Programs,
    captures: Option<&Path>,
    cancel: &Cancel,
    say: &(dyn Fn(&str) + Sync),
) -> Result<Emulated, Error> {
    let layout = Layout::for_programs(&scenario.simulation(0)?, shared)?;
    let sample = scenario.output.sample;
    // Without samples nobody sees the bins.
    let bin = if sample.is_zero() { Span::from_secs(1) } else { sample };
    let recording = Arc::new(Mutex::new(Recording::new(&layout.config.links, bin)));
    let captures = Captures::new(captures, &layout.links)?;
    let sink = {
        let (recording, captures) = (recording.clone(), captures.clone());
        move |record: &PacketRecord<'_>| {
            recording.lock().unwrap_or_else(PoisonError::into_inner).add(record);
            captures.add(record);
        }
    };
    let world = World::start_with(layout.config.clone(), sink)?;
    let _carried = carry(&world, false, say)?;
    let (going_on, over) = mpsc::channel();
    let (ended, mut states) = std::thread::scope(|scope| {
        let world = &world;
        let watching = scope.spawn(move || watch(world, sample, &over, say));
        let ended = run_programs(programs, world, cancel, say);
        drop(going_on);
        (ended, watching.join().unwrap_or_default())
    });
    let outcome = world.finish()?;
    let captured = captures.finish();
    let ended = ended?;
    let recording = recording.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let flows: Vec<FlowRow> = recording
        .flows()
        .iter()
        .map(|flow| {
            let states = states.remove(&flow.key).unwrap_or_default();
            let mut facts = FlowFacts::of_packets(flow);
            if let Some((_, last)) = states.last() {
                facts.add_state(last);
            }
            let samples = states.iter().map(|(at, info)| SenderSample::of(*at, info, info.bytes_acked));
            let (name, samples) = (flow_name(&flow.key), samples.collect());
            FlowRow { name, algorithm: String::new(), facts, key: Some(flow.key), samples }
        })
        .collect();
    let results = results((0, scenario.seed), &layout, &recording, &outcome, &flows, !sample.is_zero());
    Ok(Emulated { ended, links: layout.links, recording, outcome, results, captured })
}
