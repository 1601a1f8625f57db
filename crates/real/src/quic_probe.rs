//! A constant-rate application on this project's QUIC, watched message by message: when each was
//! written, left the sending host, arrived at the other, and was read there.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};

use flowstart_emulator::traffic::RunConfig;
use flowstart_emulator::{PacketRecord, World};
use flowstart_parallel::Cancel;
use flowstart_quic::{Stack, datagram_sample};
use flowstart_scenario::Scenario;
use flowstart_simulator::{Stop, Traffic, Workload};
use flowstart_units::{Span, Time};

use super::layout::Layout;
use super::passing::Passing;
use super::perform::{LEAD, prepare_hosts};
use super::plan::Plan;
use super::probe::Probed;
use super::quic::{Heard, Listener, port_of};
use super::{Error, Transport};

/// Runs a scenario over QUIC whose flow of this number is [paced](Workload::Paced), until its end
/// or until `over`. `tell` hears the delay of each of its messages, in their order, from the time
/// at which the application has it until the other application has read it.
///
/// When a message left and arrived are times of the datagrams that end it, as of the kernel's
/// packets (see `probe`). Datagrams are encrypted, so the path cannot tell which these are; the
/// sender can, for it looks into them before, and both know a datagram by some of its bytes.
pub(super) fn probe(
    scenario: &Scenario,
    (flow, stack): (usize, Stack),
    over: &(dyn Fn() -> bool + Sync),
    tell: &(dyn Fn(Span) + Sync),
    cancel: &Cancel,
) -> Result<Probed, Error> {
    let compiled = scenario.simulation(0)?;
    let mut layout = Layout::new(&compiled)?;
    layout.config.lead = LEAD;
    let (Stop::At(until) | Stop::WhenComplete(until)) = compiled.simulation.stop;
    let plan = Plan::new(&compiled, &layout, until, Transport::Quic(stack))?;
    let probed = compiled.simulation.flows.get(flow).ok_or(Error::NothingToProbe)?;
    let Traffic::Tcp(tcp) = &probed.traffic else { return Err(Error::NothingToProbe) };
    let Workload::Paced { rate, message, .. } = tcp.workload else { return Err(Error::NothingToProbe) };
    let gap = rate.transmission_time(message);
    let ends = layout.ends(flow).ok_or(Error::NothingToProbe)?;
    let path: Arc<Mutex<Path>> = Arc::default();
    let sink = {
        let (path, port) = (Arc::clone(&path), port_of(flow));
        move |record: &PacketRecord<'_>| {
            if record.flow.destination_port != port {
                return;
            }
            let sample = record.datagram().and_then(datagram_sample);
            let (Some((left, arrived)), Some(sample)) = (ends.seen(record), sample) else { return };
            path.lock().unwrap_or_else(PoisonError::into_inner).datagram(sample, left, arrived);
        }
    };
    let world = World::start_with(layout.config.clone(), sink)?;
    prepare_hosts(&compiled, &layout, &world)?;
    let (seed, run) = (compiled.simulation.seed, compiled.simulation.run);
    let config =
        RunConfig { until, ends_world: false, stop_when_complete: false, sample: Span::ZERO, seed, run, stamped: None };
    let (heard, hearing) = channel();
    let (ran, listened) = std::thread::scope(|scope| {
        let ear = scope.spawn(move || listen(hearing, message.get(), gap, tell));
        let listener = Listener { flow, heard, enough: over };
        let ran = super::quic::run(&world, &compiled, &plan, (config, stack), cancel, Some(listener));
        (ran, ear.join())
    });
    let outcome = world.finish()?;
    let mut ran = ran?;
    if let Some(error) = ran.iter_mut().find_map(|ran| ran.outcome.error.take()) {
        return Err(Error::Connection(error));
    }
    let Listened { began, read } = listened.map_err(|_| Error::Fault)?;
    let start = began.unwrap_or(probed.start);
    let departures = ran.get(flow).and_then(|ran| Some(&ran.seen.as_ref()?.departures[..])).unwrap_or_default();
    let passing = path.lock().unwrap_or_else(PoisonError::into_inner).passing(departures);
    let passed = read.iter().zip(0..).map(|(read, number)| passing.passed(number, start + gap * number as u64, *read));
    let (passed, fidelity) = (passed.collect(), outcome.fidelity);
    Ok(Probed { start, passed, stamps: None, fidelity, faults: outcome.faults })
}

/// What the path saw of datagrams, by what they are known by.
#[derive(Debug, Default)]
struct Path {
    datagrams: HashMap<u128, (Option<Time>, Option<Time>)>,
}

impl Path {
    /// A datagram left, if this is where that is seen, and arrives, if it does.
    fn datagram(&mut self, sample: u128, left: Option<Time>, arrived: Option<Time>) {
        let seen = self.datagrams.entry(sample).or_default();
        *seen = (seen.0.or(left), seen.1.or(arrived));
    }

    /// When messages passed that ended in these datagrams, in the order in which they left.
    fn passing(&self, departures: &[(u64, u128)]) -> Passing {
        let mut passing = Passing::default();
        for (message, sample) in departures {
            let Ok(message) = usize::try_from(*message) else { continue };
            let (left, arrived) = self.datagrams.get(sample).copied().unwrap_or_default();
            passing.note(message, left, arrived);
        }
        passing
    }
}

/// What was heard of a flow.
#[derive(Debug, Default, PartialEq)]
struct Listened {
    /// When the first message was written.
    began: Option<Time>,
    /// When each was read.
    read: Vec<Time>,
}

/// Tells the delays of messages as they are read.
fn listen(hearing: Receiver<Heard>, message: u64, gap: Span, tell: &(dyn Fn(Span) + Sync)) -> Listened {
    let mut listened = Listened::default();
    // Two threads speak here: what was read may be told first.
    let mut waiting = Vec::new();
    for heard in hearing {
        match heard {
            Heard::Began(at) => listened.began = Some(at),
            Heard::Read(now, total) => waiting.push((now, total)),
        }
        let Some(began) = listened.began else { continue };
        for (now, total) in waiting.drain(..) {
            for number in listened.read.len() as u64..total / message {
                tell(now.since(began + gap * number));
                listened.read.push(now);
            }
        }
    }
    listened
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn delays_count_from_when_a_message_was_due_whoever_speaks_first() {
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
        let listened = listen(hearing, 1000, Span::from_millis(10), &|delay| told.lock().unwrap().push(delay));
        assert_eq!(listened, Listened { began: Some(at(100)), read: vec![at(140), at(140), at(195)] });
        // The messages were due at 100, 110 and 120 ms.
        assert_eq!(*told.lock().unwrap(), [40, 30, 75].map(Span::from_millis));
    }

    #[test]
    fn a_message_leaves_first_and_arrives_with_the_first_datagram_that_gets_through() {
        let mut path = Path::default();
        // Two links: it is seen to leave at one, and to arrive at the other.
        path.datagram(7, Some(at(10)), None);
        path.datagram(7, None, Some(at(30)));
        // Lost, and what ends in it is sent again.
        path.datagram(8, Some(at(11)), None);
        path.datagram(9, Some(at(51)), None);
        path.datagram(9, None, Some(at(71)));
        // A datagram that no message ends in.
        path.datagram(10, Some(at(52)), Some(at(72)));
        // Two messages end in one, and what the path did not see of one is not known.
        let passing = path.passing(&[(0, 7), (1, 8), (2, 8), (1, 9), (2, 9), (3, 99)]);
        let passed = |number| passing.passed(number, at(9), at(80)).map(|passed| (passed.left, passed.arrived));
        assert_eq!(passed(0), Some((at(10), at(30))));
        assert_eq!((passed(1), passed(2)), (Some((at(11), at(71))), Some((at(11), at(71)))));
        assert_eq!((passed(3), passed(4)), (None, None));
    }
}
