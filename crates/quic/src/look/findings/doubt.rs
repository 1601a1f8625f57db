//! Why what trains agree on may not be the capacity all the same.

use flowstart_units::{Bytes, Rate, Span, Time};

use super::{FindingsConfig, Packet, Part, Trains, median, of, skipped};
use crate::ledger::HEADER_BYTES;
use crate::look::Look;
use crate::message::Doubt;

/// A doubt, and the least and the most that the capacity may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubted {
    pub(super) why: Doubt,
    pub(super) between: Option<[u64; 2]>,
}

pub(super) fn of_look(look: &Look, trains: &Trains) -> Option<Doubted> {
    let config = &look.config.findings;
    // Of those that had no room the end was lost, which is known.
    let fits = |train: &&Vec<Packet>| look.room.is_none_or(|room| train.len() <= room.max(2) as usize);
    let fitting = || trains.groups.iter().map(|(_, train)| train).filter(fits);
    let packets = || fitting().flatten();
    let lost = packets().filter(|packet| packet.acked.is_none()).count();
    let share = share(look, trains).unwrap_or(0.0);
    let between = (share > config.uneven).then(|| between(config, &trains.rates, share)).flatten();
    let only = |why: Doubt| Some(Doubted { why, between });
    if config.reading.few(&trains.rates) || (trains.rates.len() as f64) < fitting().count() as f64 * config.rated - 1.0
    {
        return only(Doubt::Few);
    }
    if lost as f64 > packets().count() as f64 * config.lost {
        return only(Doubt::Losses);
    }
    match share > config.uneven {
        true => only(Doubt::Uneven),
        false => None,
    }
}

/// The least and the most that the capacity may be if trains took this share of their time longer,
/// or less long, for another reason.
fn between(config: &FindingsConfig, rates: &[u64], share: f64) -> Option<[u64; 2]> {
    let (least, most) =
        (*rates.first()? as f64 / (1.0 + share), *rates.last()? as f64 * (1.0 + share.min(config.faster)));
    Some([least as u64, most as u64])
}

/// By how much of the time that a train takes its packets are early or late.
fn share(look: &Look, trains: &Trains) -> Option<f64> {
    // Behind a token bucket packets are early on purpose.
    if trains.burst.is_some() || trains.behind.is_some() {
        return None;
    }
    let capacity = median(trains.rates.clone()).filter(|rate| *rate > 0)?;
    let off = unevenness(look, trains, capacity)?;
    let took = median(trains.groups.iter().filter_map(|(_, train)| took(&look.config.findings, train)).collect())?;
    Some((off.checked_sub(look.config.findings.hosts)?).as_nanos() as f64 / took.max(1) as f64)
}

/// Nanoseconds that the part of a train took that counts.
fn took(config: &FindingsConfig, train: &[Packet]) -> Option<u64> {
    let mut arrived: Vec<Time> = train.iter().filter_map(|packet| packet.acked).collect();
    arrived.sort_unstable();
    let first = *arrived.get(skipped(config, train, 0))?;
    Some(arrived.last()?.since(first).as_nanos()).filter(|took| *took > 0)
}

/// By how much packets of a group of trains and the lone one behind them are differently late, in
/// the middle of the groups, had they met nothing but a bottleneck of this capacity.
fn unevenness(look: &Look, trains: &Trains, capacity: u64) -> Option<Span> {
    let rate = Rate::from_bps(capacity);
    let calm = of(look, Part::Calm);
    let firsts: Vec<usize> = (0..trains.groups.len()).filter(|place| trains.groups[*place].0).collect();
    let mut off = Vec::new();
    for (nth, begin) in firsts.iter().enumerate() {
        let end = firsts.get(nth + 1).copied().unwrap_or(trains.groups.len());
        let group = &trains.groups[*begin..end];
        let last = group.last().and_then(|(_, train)| train.last())?.number;
        let next = trains.groups.get(end).and_then(|(_, train)| train.first()).map_or(u64::MAX, |packet| packet.number);
        let mut free = Time::ZERO;
        // What was lost took the bottleneck no time.
        let mut late = |packet: &Packet| -> Option<i64> {
            let acked = packet.acked?;
            let bytes = Bytes::new(u64::from(packet.bytes + HEADER_BYTES));
            // The quickest took its own transmission, too.
            let begins = packet.at + look.smallest;
            let takes = rate.transmission_time(bytes);
            free = begins.max(free + takes);
            packet.direct.then_some(acked.as_nanos() as i64 - free.as_nanos() as i64)
        };
        let mut lates: Vec<i64> = group.iter().flat_map(|(_, train)| train).filter_map(&mut late).collect();
        let lone = calm.iter().find(|packet| packet.number > last && packet.number < next).and_then(&mut late);
        lates.sort_unstable();
        let outside = lates.len() / look.config.findings.outside.max(1);
        let (Some(early), Some(middle), Some(after)) =
            (lates.get(outside), lates.get(lates.len() / 2), lates.iter().rev().nth(outside))
        else {
            continue;
        };
        let apart = after.abs_diff(*early).max(lone.map_or(0, |lone| lone.abs_diff(*middle)));
        off.push((lone.is_some(), apart));
    }
    // What arrives in one clump is even but for the lone packet.
    let any = off.iter().any(|(lone, _)| *lone);
    let mut off: Vec<u64> = off.into_iter().filter(|(lone, _)| *lone || !any).map(|(_, apart)| apart).collect();
    off.sort_unstable();
    // Of two the smaller.
    off.get(off.len().checked_sub(1)? / 2).map(|off| Span::from_nanos(*off))
}
