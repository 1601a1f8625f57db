//! A constant-rate application on this project's QUIC, watched message by message: when each was
//! written, and when it was read at the other end.

use std::sync::mpsc::{Receiver, channel};

use flowstart_emulator::World;
use flowstart_emulator::traffic::RunConfig;
use flowstart_parallel::Cancel;
use flowstart_scenario::Scenario;
use flowstart_simulator::{Stop, Traffic, Workload};
use flowstart_units::{Span, Time};

use super::layout::Layout;
use super::perform::{LEAD, prepare_hosts};
use super::plan::Plan;
use super::probe::Probed;
use super::quic::{Heard, Listener};
use super::{Error, Transport};

/// Runs a scenario over QUIC whose flow of this number is [paced](Workload::Paced), until its end
/// or until `over`. `tell` hears the delay of each of its messages, in their order, from the time
/// at which the application has it until the other application has read it. What passes between
/// cannot be told apart from outside: packets are encrypted.
pub(super) fn probe(
    scenario: &Scenario,
    flow: usize,
    over: &(dyn Fn() -> bool + Sync),
    tell: &(dyn Fn(Span) + Sync),
    cancel: &Cancel,
) -> Result<Probed, Error> {
    let compiled = scenario.simulation(0)?;
    let mut layout = Layout::new(&compiled)?;
    layout.config.lead = LEAD;
    let (Stop::At(until) | Stop::WhenComplete(until)) = compiled.simulation.stop;
    let plan = Plan::new(&compiled, &layout, until, Transport::Quic)?;
    let probed = compiled.simulation.flows.get(flow).ok_or(Error::NothingToProbe)?;
    let Traffic::Tcp(tcp) = &probed.traffic else { return Err(Error::NothingToProbe) };
    let Workload::Paced { rate, message, .. } = tcp.workload else { return Err(Error::NothingToProbe) };
    let gap = rate.transmission_time(message);
    let world = World::start(layout.config.clone())?;
    prepare_hosts(&compiled, &layout, &world)?;
    let seed = compiled.simulation.seed.wrapping_add(compiled.simulation.run);
    let config = RunConfig { until, stop_when_complete: false, sample: Span::ZERO, seed, stamped: None };
    let (heard, hearing) = channel();
    let (ran, began) = std::thread::scope(|scope| {
        let ear = scope.spawn(move || listen(hearing, message.get(), gap, tell));
        let listener = Listener { flow, heard, enough: over };
        let ran = super::quic::run(&world, &compiled, &plan, config, cancel, Some(listener));
        (ran, ear.join())
    });
    let outcome = world.finish()?;
    if let Some(error) = ran?.into_iter().find_map(|ran| ran.outcome.error) {
        return Err(Error::Connection(error));
    }
    let start = began.map_err(|_| Error::Fault)?.unwrap_or(probed.start);
    Ok(Probed { start, passed: Vec::new(), stamps: None, fidelity: outcome.fidelity, faults: outcome.faults })
}

/// Tells the delays of messages as they are read; when the first was written.
fn listen(hearing: Receiver<Heard>, message: u64, gap: Span, tell: &(dyn Fn(Span) + Sync)) -> Option<Time> {
    let (mut began, mut done) = (None, 0);
    // Two threads speak here: what was read may be told first.
    let mut waiting = Vec::new();
    for heard in hearing {
        match heard {
            Heard::Began(at) => began = Some(at),
            Heard::Read(now, total) => waiting.push((now, total)),
        }
        let Some(began) = began else { continue };
        for (now, total) in waiting.drain(..) {
            for number in done..total / message {
                tell(now.since(began + gap * number));
            }
            done = done.max(total / message);
        }
    }
    began
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn delays_count_from_when_a_message_was_due_whoever_speaks_first() {
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let (heard, hearing) = channel();
        for said in [
            Heard::Read(at(130), 999),
            Heard::Read(at(140), 2000),
            Heard::Began(at(100)),
            Heard::Read(at(190), 2999),
            Heard::Read(at(195), 3000),
        ] {
            heard.send(said).unwrap();
        }
        drop(heard);
        let told = Mutex::new(Vec::new());
        let began = listen(hearing, 1000, Span::from_millis(10), &|delay| told.lock().unwrap().push(delay));
        assert_eq!(began, Some(at(100)));
        // The messages were due at 100, 110 and 120 ms.
        assert_eq!(*told.lock().unwrap(), [40, 30, 75].map(Span::from_millis));
    }
}
