//! A look at a path: a short one each way.

use std::net::IpAddr;
use std::time::Instant;

use flowstart_pages::look::{json, text};
use flowstart_parallel::Cancel;
use flowstart_quic::message::{Direction, Request, VERSION};
use flowstart_quic::{LookConfig, Reading, ReadingConfig, Sink, Transferred, header_bytes};
use flowstart_units::{Rate, Span};

use super::target::{Ended, Target, session};
use super::{PathArgs, wrong};
use crate::interrupt;
use crate::output::{Done, Failure, note, print, print_json};

/// Bytes of data each way at the most.
const BYTES: u64 = 430_000;
/// Bytes that both ways may take, with all that both ends send for them, and with a look before
/// whose packets did not arrive.
const MOST: u64 = 1_000_000;
/// Time each way at most, without what is lost at its end.
const LONGEST: Span = Span::from_secs(2);
/// UDP payload that every path of QUIC passes (RFC 9000 section 14).
const SMALL: u16 = 1200;

/// Bytes of data for a look, of so many that are still to come, where so many bytes were spent.
fn size(spent: u64, looks: usize) -> u64 {
    let left = MOST.saturating_sub(spent) as f64 / looks.max(1) as f64;
    BYTES.min((left / LookConfig::default().costs) as u64)
}

/// What a look has cost both ends: what this one sent and received, and what it did not receive.
fn cost(carried: u64, lost: u64, direction: Direction, packet: u64) -> u64 {
    // The sender says how many were lost, which may be anything.
    let lost = if direction == Direction::Down { lost.saturating_mul(packet) } else { 0 };
    carried.saturating_add(lost)
}

/// Looks at a path in one direction; what was seen, and whether packets left on time.
fn one_way(target: &Target, direction: Direction, size: u64, cancel: &Cancel) -> Result<(Transferred, bool), Failure> {
    let request = Request {
        version: VERSION,
        session: session(),
        connections: 2,
        direction,
        size: Some(size),
        nanos: Some(LONGEST.as_nanos()),
        streams: 1,
        start: "fair_queuing_probe".to_owned(),
        avoidance: "delay_or_cubic".to_owned(),
        file: None,
        look: true,
        paced: None,
    };
    match target.transfer(request, Sink::Check, None, &mut |_, _, _| !cancel.is_cancelled())? {
        (Ended::Whole(outcome), real_time) => Ok((*outcome, real_time)),
        (Ended::Stopped(_), _) => Err(Failure::InterruptedEarly),
    }
}

/// What was seen of the path to an address.
fn read(outcome: &Transferred, to: IpAddr) -> Option<Reading<'_>> {
    Reading::new(&outcome.report, ReadingConfig::over(to))
}

/// A rate in Mbit/s to three digits: more are not known.
fn rounded(mbps: f64) -> Rate {
    let rounded: f64 = format!("{mbps:.2e}").parse().unwrap_or(mbps);
    Rate::from_bps((rounded * 1e6).round() as u64)
}

/// The capacity of a path from here to a server, of IP packets.
pub(crate) fn capacity_up(target: &Target, cancel: &Cancel) -> Result<Rate, Failure> {
    let (outcome, _) = one_way(target, Direction::Up, BYTES, cancel)?;
    let mbps = read(&outcome, target.to.ip()).and_then(|way| way.carries());
    Ok(rounded(mbps.ok_or_else(|| wrong(format!("the capacity to {} could not be found out", target.to)))?))
}

/// Looks at a path.
pub(crate) fn look(args: &PathArgs) -> Done {
    let mut target = Target::of(&args.server)?;
    target.settle()?;
    let to = target.to.ip();
    let cancel = interrupt::listen();
    let began = Instant::now();
    let mut outcomes = Vec::new();
    let (mut punctual, mut spent) = (true, 0);
    while let Some(direction) = [Direction::Down, Direction::Up].get(outcomes.len()) {
        let (outcome, real_time) = one_way(&target, *direction, size(spent, 2 - outcomes.len()), &cancel)?;
        let packet = u64::from(target.mtu) + u64::from(header_bytes(to));
        spent = cost(outcome.carried, outcome.report.lost, *direction, packet).saturating_add(spent);
        punctual &= real_time;
        if target.mtu > SMALL && read(&outcome, to).is_some_and(|way| are_too_large(&way, target.mtu, to)) {
            // Both ways, so that they are alike.
            note(&format!("packets of {} bytes seem not to arrive: a look with packets of {SMALL}", target.mtu));
            target.mtu = SMALL;
            outcomes.clear();
            continue;
        }
        outcomes.push(outcome);
    }
    let took = began.elapsed().as_secs_f64();
    let Ok([down, up]) =
        <[Reading; 2]>::try_from(outcomes.iter().filter_map(|outcome| read(outcome, to)).collect::<Vec<_>>())
    else {
        return Err(wrong(format!("{} has not looked at the path", target.to)));
    };
    if args.json {
        return print_json(&json([&down, &up], took, punctual, target.stack, target.mtu));
    }
    if !punctual {
        note("without real-time priority: what this says is less certain when the machine is busy");
    }
    print(&text(&down, &up, took))
}

/// Whether packets of this payload do not arrive: there is no rate, packets were lost, and none of
/// that size made a round trip.
fn are_too_large(way: &Reading, mtu: u16, to: IpAddr) -> bool {
    let full = u64::from(mtu) + u64::from(header_bytes(to));
    let arrived = way.looked().rtt > 0 && u64::from(way.looked().packet) >= full;
    way.trains().is_none() && way.report().lost > 0 && !arrived
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_looks_together_cost_a_megabyte_at_most() {
        let both = [Direction::Down, Direction::Up].map(|direction| cost(400_000, 50, direction, 1480));
        assert_eq!(both, [474_000, 400_000]);
        // Two of half a megabyte, the second after a dear first, and two after one with packets
        // that did not arrive.
        assert_eq!(
            [size(0, 2), size(480_000, 1), size(570_000, 1), size(72_000, 2)],
            [430_000, 430_000, 369_800, 399_040]
        );
        assert_eq!(size(1_100_000, 1), 0);
    }

    #[test]
    fn a_capacity_has_three_digits() {
        for (mbps, bps) in [(10.399_663, 10_400_000), (0.123_456, 123_000), (721.5, 722_000_000), (0.0, 0)] {
            assert_eq!(rounded(mbps).as_bps(), bps);
        }
    }
}
