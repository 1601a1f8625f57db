//! A constant-rate application on the kernel's TCP, watched message by message: when each was
//! written, left the sending host, arrived at the other, and was read there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use flowstart_emulator::traffic::{RunConfig, port_of, run_watched};
use flowstart_emulator::{Fidelity, PacketRecord, World};
use flowstart_scenario::Scenario;
use flowstart_service_curve::Passed;
use flowstart_simulator::{Stop, Traffic, Workload};
use flowstart_units::{Span, Time};

use super::layout::Layout;
use super::passing::Passing;
use super::perform::{LEAD, prepare_hosts};
use super::plan::Plan;
use super::quick_start::{carry, is_used};
use super::stamps::StampCheck;
use super::{Error, Transport};

/// The flags of a TCP header that matter here.
const SYN: u8 = 2;

/// What a probe brought beside the delays that were told meanwhile.
pub(super) struct Probed {
    /// When the first message was written.
    pub(super) start: Time,
    /// When each message passed the ends of the network, from the first on; none where a packet
    /// was not seen.
    pub(super) passed: Vec<Option<Passed>>,
    /// How the socket's stamps agree with that; none where it was not asked.
    pub(super) stamps: Option<StampCheck>,
    /// How faithful the path was.
    pub(super) fidelity: Fidelity,
    /// Parts of the emulator that failed.
    pub(super) faults: Vec<String>,
}

/// Runs a scenario whose flow of this number is [paced](Workload::Paced), until its end or until
/// `over`. `tell` hears the delay of each of its messages, in their order, from the time at which
/// the application has it until the other application has read it; a message that cannot be written
/// yet, because the socket is full, counts from its own time on.
///
/// When a message left and arrived are times of the packet that ends it: the kernel's stamp at
/// which the host hands it to its interface, and the time at which the path gives it to the other
/// host, as the paper took them with libpcap. The socket is asked, too, when it was sent: TCP joins
/// writes and keeps one stamp of them, so not every message has one, but where it has one it must
/// agree. That changes nothing of what is sent.
pub(super) fn probe(
    scenario: &Scenario,
    flow: usize,
    over: &(dyn Fn() -> bool + Sync),
    tell: &(dyn Fn(Span) + Sync),
) -> Result<Probed, Error> {
    let compiled = scenario.simulation(0)?;
    let mut layout = Layout::new(&compiled)?;
    layout.config.lead = LEAD;
    let (Stop::At(until) | Stop::WhenComplete(until)) = compiled.simulation.stop;
    let plan = Plan::new(&compiled, &layout, until, Transport::Kernel)?;
    let probed = compiled.simulation.flows.get(flow).ok_or(Error::NothingToProbe)?;
    let Traffic::Tcp(tcp) = &probed.traffic else { return Err(Error::NothingToProbe) };
    let Workload::Paced { rate, message, .. } = tcp.workload else { return Err(Error::NothingToProbe) };
    let (start, gap) = (probed.start, rate.transmission_time(message));
    let ends = layout.ends(flow).ok_or(Error::NothingToProbe)?;
    let seen = Arc::new(Mutex::new(Seen { message: message.get(), ..Seen::default() }));
    let sink = {
        let (seen, port) = (Arc::clone(&seen), port_of(flow));
        move |record: &PacketRecord<'_>| {
            if record.flow.destination_port != port {
                return;
            }
            let (Some((left, arrived)), Some(tcp)) = (ends.seen(record), record.tcp()) else { return };
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.packet(tcp.sequence, tcp.payload, tcp.flags & SYN != 0, left, arrived);
        }
    };
    let world = World::start_with(layout.config.clone(), sink)?;
    let _carried = carry(&world, is_used(&plan.flows, &plan.sessions), &|_| ())?;
    prepare_hosts(&compiled, &layout, &world)?;
    let (seed, run, sample) = (compiled.simulation.seed, compiled.simulation.run, Span::ZERO);
    let config =
        RunConfig { until, ends_world: false, stop_when_complete: false, sample, seed, run, stamped: Some(flow) };
    let (done, read) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let hear = |number: usize, now: Time, total: u64| {
        if number != flow {
            return;
        }
        // Only the flow's own receiver comes here.
        let before = done.swap(total / message.get(), Ordering::Relaxed);
        for message in before..total / message.get() {
            // The thread that writes may be a little early, as far as clocks and sleeping allow.
            tell(now.since(start + gap * message));
            read.lock().unwrap_or_else(PoisonError::into_inner).push(now);
        }
    };
    let mut outcomes =
        run_watched(&world, &plan.flows, &plan.sessions, config, &|| over() || world.has_failed(), &hear)?;
    let outcome = world.finish()?;
    if let Some(error) = outcomes.flows.iter().find_map(|flow| flow.error.as_ref()) {
        return Err(Error::Connection(error.clone()));
    }
    let read = read.into_inner().unwrap_or_else(PoisonError::into_inner);
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let passing = &seen.passing;
    let passed = read.iter().zip(0..).map(|(read, number)| passing.passed(number, start + gap * number as u64, *read));
    let said = outcomes.flows.get_mut(flow).map(std::mem::take).unwrap_or_default();
    let stamps = Some(StampCheck::new(message.get(), passing.left(), &said.stamps, said.unstamped));
    Ok(Probed { start, passed: passed.collect(), stamps, fidelity: outcome.fidelity, faults: outcome.faults })
}

/// What packets of one connection say of its messages.
#[derive(Debug, Default)]
struct Seen {
    /// Bytes of a message.
    message: u64,
    /// Sequence number of the first byte, and the highest byte seen so far.
    first: Option<(u32, u64)>,
    passing: Passing,
}

impl Seen {
    /// Takes in a packet of the sender's: when it left, if it is seen there, and when it arrives,
    /// if it does.
    fn packet(&mut self, sequence: u32, payload: u32, syn: bool, left: Option<Time>, arrived: Option<Time>) {
        if syn {
            self.first.get_or_insert((sequence.wrapping_add(1), 0));
            return;
        }
        let (Some((first, highest)), 1..) = (&mut self.first, payload) else { return };
        // Sequence numbers begin again after 4 GiB; no packet is half as far from the highest.
        let ahead = sequence.wrapping_sub(first.wrapping_add(*highest as u32)) as i32;
        let Some(begin) = highest.checked_add_signed(i64::from(ahead)) else { return };
        let end = begin + u64::from(payload);
        *highest = end.max(*highest);
        for message in (begin / self.message) as usize..(end / self.message) as usize {
            self.passing.note(message, left, arrived);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn seen(first: u32) -> Seen {
        let mut seen = Seen { message: 1_000, ..Seen::default() };
        seen.packet(first.wrapping_sub(1), 0, true, Some(at(0)), Some(at(5)));
        seen
    }

    #[test]
    fn a_message_leaves_with_its_last_byte_and_arrives_with_the_first_copy_that_gets_through() {
        let mut seen = seen(7);
        seen.packet(7, 1_400, false, Some(at(10)), Some(at(20)));
        // The second message ends in a packet that is lost, and sent again.
        seen.packet(1_407, 1_400, false, Some(at(11)), None);
        seen.packet(1_407, 1_400, false, Some(at(51)), Some(at(61)));
        seen.packet(1_407, 1_400, false, Some(at(90)), Some(at(99)));
        let passed = |number| seen.passing.passed(number, at(9), at(70));
        assert_eq!(passed(0), Some(Passed { left: at(10), arrived: at(20) }));
        assert_eq!(passed(1), Some(Passed { left: at(11), arrived: at(61) }));
        assert_eq!(passed(2), None, "its end was not sent");
        // A stamp that is off by the precision of clocks stays between the others.
        assert_eq!(seen.passing.passed(0, at(12), at(15)), Some(Passed { left: at(12), arrived: at(15) }));
    }

    #[test]
    fn sequence_numbers_begin_again() {
        let mut seen = seen(u32::MAX - 1_499);
        seen.packet(u32::MAX - 1_499, 1_000, false, Some(at(1)), Some(at(2)));
        seen.packet(u32::MAX - 499, 1_000, false, Some(at(3)), Some(at(4)));
        seen.packet(500, 1_000, false, Some(at(5)), Some(at(6)));
        // One from before, again.
        seen.packet(u32::MAX - 1_499, 1_000, false, Some(at(7)), Some(at(8)));
        let lefts: Vec<_> = (0..4).map(|n| seen.passing.passed(n, at(0), at(9)).map(|passed| passed.left)).collect();
        assert_eq!(lefts, [Some(at(1)), Some(at(3)), Some(at(5)), None]);
        assert_eq!(seen.passing.left().count(), 3);
    }
}
