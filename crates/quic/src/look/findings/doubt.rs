//! Why what trains agree on may not be the capacity all the same.

use std::ops::Range;

use flowstart_units::{Bytes, Rate, Span, Time};

use super::{FindingsConfig, Packet, Part, Trains, median, of, rtt, skipped, slowed};
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
    let (rates, off) = (&trains.rates, off(look, trains));
    let share = |off: Span, took: Span| off.as_secs_f64() / took.as_secs_f64();
    let less = |hosts: Span| off.map_or(0.0, |(off, took)| share(off.checked_sub(hosts).unwrap_or(Span::ZERO), took));
    let (all, beyond) = (less(Span::ZERO), less(config.hosts));
    // What hosts are the reason for is of some packets, and not of each train's first and last.
    let most = beyond.max(all * config.ends);
    let doubted = |why, between| Some(Doubted { why, between });
    if config.reading.few(rates) && trains.small.is_some() {
        // What passes on tokens says nothing of the least.
        let least = tokens::seen(look) as f64 / look.config.slower;
        return doubted(Doubt::Few, Some([least as u64, u64::MAX]));
    }
    if config.reading.few(rates) {
        return doubted(Doubt::Few, least(look, trains, most).map(|least| [least, u64::MAX]));
    }
    let apart = rates[rates.len() - 1] as f64 > rates[0] as f64 * config.apart;
    if beyond > config.uneven || (all > config.uneven && apart) {
        let all = between(config, rates, most);
        // Without a most, and beside a queue of others, trains may have been pushed together.
        let open = all.filter(|[_, most]| *most == u64::MAX && varied(look) > config.standing);
        let held = open.and_then(|[low, most]| Some([least(look, trains, 1.0)?.min(low), most]));
        return doubted(Doubt::Uneven, held.or(all));
    }
    None
}

/// What the capacity may be where it is a range: down to the rate at which trains end if a token
/// bucket may have let their beginnings pass.
pub(super) fn slower(look: &Look, trains: &Trains, between: Option<[u64; 2]>) -> Option<[u64; 2]> {
    let config = &look.config.findings;
    let (rates, reading) = (&trains.rates, &config.reading);
    if trains.behind.is_some() {
        return between;
    }
    let firsts: Vec<Vec<Packet>> =
        trains.groups.iter().filter(|(first, _)| *first).map(|(_, train)| train.clone()).collect();
    let slowed = slowed(config, &firsts);
    let seen = || reading.unsteady(rates).then(|| [rates[0], rates[rates.len() - 1]]);
    let Some([least, most]) = between.or_else(seen) else { return between };
    Some([slowed.map_or(least, |slowed| least.min(slowed)), most])
}

/// The least and the most that the capacity may be if trains, but for a few at either end, took
/// this share of their time longer, or less long, for another reason. Those that took all of it for
/// that say nothing of the most.
fn between(config: &FindingsConfig, rates: &[u64], share: f64) -> Option<[u64; 2]> {
    let outside = rates.len() / config.outside.max(1);
    let (least, most) = (*rates.get(outside)? as f64, *rates.iter().rev().nth(outside)? as f64);
    Some([(least / (1.0 + share)) as u64, if share < 1.0 { (most / (1.0 - share)) as u64 } else { u64::MAX }])
}

/// By how much RTTs of packets differ that meet no queue of the look: the first of pairs and of
/// groups of trains, and lone ones. What waited for the path to come back does not count.
pub(super) fn varied(look: &Look) -> Span {
    let outages = look.outages();
    let mut group = None;
    let calm = |packet: &&Packet| {
        let first = match packet.part.train() {
            Some(train) => {
                let first = look.trains.get(train as usize).is_some_and(|(first, _)| *first);
                first && group.replace(train) != Some(train)
            }
            None => packet.part == Part::Calm || packet.number == 0,
        };
        first && packet.direct
    };
    let calm: Vec<&Packet> = look.packets.iter().filter(calm).collect();
    let met = calm.into_iter().filter_map(|packet| Some((packet.acked?, rtt(packet)?)));
    let rtts: Vec<Span> = met.filter(|(at, rtt)| !look.waited(&outages, *at, *rtt)).map(|(_, rtt)| rtt).collect();
    rtts.iter().max().zip(rtts.iter().min()).map_or(Span::ZERO, |(most, least)| *most - *least)
}

/// The least that the capacity may be, whatever holds up packets: trains have arrived, in the
/// middle of them, in so much time from when they left, and for so long hosts may have held up the
/// quickest packet. Where all of each arrived at once, it may have waited, too.
fn least(look: &Look, trains: &Trains, share: f64) -> Option<u64> {
    // Others' queue may have become shorter meanwhile: then ACKs come back closer together.
    let stood = varied(look) > look.config.findings.standing;
    let base = if trains.rates.is_empty() || stood { Span::ZERO } else { look.smallest };
    let since = |train: &Vec<Packet>| -> Option<u64> {
        let arrived = train.iter().filter(|packet| packet.acked.is_some());
        let took = arrived.clone().filter_map(|packet| packet.acked).max()?.since(train.first()?.at + base);
        let bytes: u64 = arrived.skip(1).map(|packet| u64::from(packet.bytes)).sum();
        (bytes > 0).then(|| Rate::of(Bytes::new(bytes), took + look.config.findings.hosts).as_bps())
    };
    let whole: Vec<Vec<Packet>> = match trains.groups.is_empty() {
        true => first(look),
        false => trains.groups.iter().map(|(_, train)| train.clone()).collect(),
    };
    let since = median(whole.iter().filter_map(since).collect());
    since.into_iter().chain(between(&look.config.findings, &trains.rates, share).map(|[least, _]| least)).min()
}

/// Where there is no train for the capacity: the one behind the first pair, or the pairs.
fn first(look: &Look) -> Vec<Vec<Packet>> {
    let of = |numbers: Range<u64>| -> Vec<Packet> {
        look.packets.iter().filter(|packet| numbers.contains(&packet.number)).copied().collect()
    };
    match &look.settled {
        Some(numbers) => vec![of(numbers.clone())],
        None => look.packets.chunks(2).take(look.config.pairs as usize).map(<[Packet]>::to_vec).collect(),
    }
}

/// By how much packets of a train are early or late, and how long the train takes.
fn off(look: &Look, trains: &Trains) -> Option<(Span, Span)> {
    // Behind a token bucket packets are early on purpose.
    if trains.burst.is_some() || trains.behind.is_some() {
        return None;
    }
    let capacity = median(trains.rates.clone()).filter(|rate| *rate > 0)?;
    let off = match trains.small {
        Some(bucket) => tokens::unevenness(look, bucket, capacity)?,
        None => unevenness(look, trains, capacity)?,
    };
    let took = trains.groups.iter().filter_map(|(_, train)| took(&look.config.findings, train)).collect();
    Some((off, Span::from_nanos(median(took)?)))
}

/// Nanoseconds that the part of a train took that counts.
fn took(config: &FindingsConfig, train: &[Packet]) -> Option<u64> {
    let mut arrived: Vec<Time> = train.iter().filter_map(|packet| packet.acked).collect();
    arrived.sort_unstable();
    let first = *arrived.get(skipped(config, train, 0))?;
    Some(arrived.last()?.since(first).as_nanos()).filter(|took| *took > 0)
}

/// If a group of trains, whose packets are late by so much, arrived as behind a bucket of a few
/// packets that was full: what was saved there, and by how much packets that count are differently
/// late. Those that it let pass came too soon for the rate, as did all behind them by as much.
fn behind_little(config: &FindingsConfig, group: &[(bool, Vec<Packet>)], lates: &[i64]) -> Option<(u64, u64)> {
    let (mut counts, mut rest) = (Vec::new(), lates);
    for (_, train) in group {
        let (these, others) = rest.split_at_checked(train.len())?;
        counts.extend(these.get(skipped(config, train, 0)..)?);
        rest = others;
    }
    counts.sort_unstable();
    let outside = counts.len() / config.outside.max(1);
    let (least, most) = (counts.get(outside)?, counts.iter().rev().nth(outside)?);
    let saved = u64::try_from(lates.first()? - most).ok().filter(|saved| *saved > 0)?;
    rest.is_empty().then_some((saved, most.abs_diff(*least)))
}

/// By how much packets of a group of trains and the lone one behind them are differently late, in
/// the middle of the groups, had they met nothing but a bottleneck of this capacity.
fn unevenness(look: &Look, trains: &Trains, capacity: u64) -> Option<Span> {
    let config = &look.config.findings;
    let rate = Rate::from_bps(capacity);
    let calm = of(look, Part::Calm);
    let firsts: Vec<usize> = (0..trains.groups.len()).filter(|place| trains.groups[*place].0).collect();
    let (mut off, mut emptied) = (Vec::new(), Vec::new());
    for (nth, begin) in firsts.iter().enumerate() {
        let end = firsts.get(nth + 1).copied().unwrap_or(trains.groups.len());
        let group = &trains.groups[*begin..end];
        let last = group.last().and_then(|(_, train)| train.last())?.number;
        let next = trains.groups.get(end).and_then(|(_, train)| train.first()).map_or(u64::MAX, |packet| packet.number);
        let mut free = Time::ZERO;
        // What was lost took the bottleneck no time.
        let mut late = |packet: &Packet| -> Option<i64> {
            let acked = packet.acked?;
            let bytes = Bytes::new(u64::from(packet.bytes));
            // The quickest took its own transmission, too.
            let begins = packet.at + look.smallest;
            let takes = rate.transmission_time(bytes);
            free = begins.max(free + takes);
            Some(acked.as_nanos() as i64 - free.as_nanos() as i64)
        };
        let mut lates: Vec<i64> = group.iter().flat_map(|(_, train)| train).filter_map(&mut late).collect();
        let lone = calm.iter().find(|packet| packet.number > last && packet.number < next).and_then(&mut late);
        if let (Some(lone), [first, ..]) = (lone, &lates[..]) {
            emptied.extend(
                behind_little(config, group, &lates).map(|(saved, apart)| (saved, apart.max(lone.abs_diff(*first)))),
            );
        }
        lates.sort_unstable();
        let outside = lates.len() / config.outside.max(1);
        let (Some(early), Some(middle), Some(after)) =
            (lates.get(outside), lates.get(lates.len() / 2), lates.iter().rev().nth(outside))
        else {
            continue;
        };
        let apart = after.abs_diff(*early).max(lone.map_or(0, |lone| lone.abs_diff(*middle)));
        off.push((lone.is_some(), apart));
    }
    // But for a few groups, which found it less than full, a bucket had saved as much each time,
    // and the lone packet passed like the first of a train.
    let middle = median(emptied.iter().map(|(saved, _)| *saved).collect()).unwrap_or(0);
    let groups = off.len() as f64;
    emptied.retain(|(saved, _)| saved.abs_diff(middle) <= config.hosts.as_nanos());
    if emptied.len() as f64 >= groups * config.most && emptied.len() >= config.whole {
        off = emptied.into_iter().map(|(_, apart)| (true, apart)).collect();
    }
    // What arrives in one clump is even but for the lone packet.
    let any = off.iter().any(|(lone, _)| *lone);
    let mut off: Vec<u64> = off.into_iter().filter(|(lone, _)| *lone || !any).map(|(_, apart)| apart).collect();
    off.sort_unstable();
    // Of two the smaller.
    off.get(off.len().checked_sub(1)? / 2).map(|off| Span::from_nanos(*off))
}

/// What trains say behind a small token bucket, on whose tokens a lone packet passes.
pub(super) mod tokens {
    use flowstart_units::{Bytes, Rate, Span, Time};

    use super::super::{FindingsConfig, Packet, arrivals, median, rate, rtt, skipped};
    use crate::look::Look;
    use crate::look::bucket::{Passes, Way, levels};

    /// Rates of trains behind a bucket, least first, and the bytes of the largest that was emptied.
    pub(in crate::look) struct Behind {
        pub(in crate::look) rates: Vec<u64>,
        pub(in crate::look) bucket: u64,
    }

    /// The rate that gaps between packets say, of which the first may have passed on tokens.
    pub(in crate::look) fn seen(look: &Look) -> u64 {
        Rate::of(Bytes::new(u64::from(look.packet)), look.service).as_bps()
    }

    /// What trains say if a lone packet passes on tokens: of each counts what follows the packet
    /// with which the bucket was empty. Where nothing does a train says nothing.
    pub(in crate::look) fn behind(look: &Look, groups: &[(bool, Vec<Packet>)]) -> Option<Behind> {
        // What is said of large ones is said by others.
        if look.fast.is_some() || look.passes() != Passes::OnTokens {
            return None;
        }
        let first = counted(look, groups, seen(look));
        // Gaps that were seen before may have been of tokens, too.
        Some(match median(first.rates.clone()) {
            Some(rate) => counted(look, groups, rate),
            None => first,
        })
    }

    /// What they say, if this is about the rate.
    pub(in crate::look) fn counted(look: &Look, groups: &[(bool, Vec<Packet>)], seen: u64) -> Behind {
        let (arrived, config) = (look.arrivals(), &look.config.findings);
        // Who finds the bucket empty waits.
        let takes = Rate::from_bps(seen).transmission_time(Bytes::new(u64::from(look.packet)));
        let waits = look.smallest + takes.mul_f64(config.waits);
        let mut levels: Vec<(Time, u64)> = levels(&arrived, seen).collect();
        // Of one ACK the last.
        levels.dedup_by(|later, earlier| later.0 == earlier.0 && std::mem::replace(earlier, *later) != *later);
        let level = |at: Time| {
            let place = levels.partition_point(|(before, _)| *before < at);
            levels.get(place).map_or(0, |(_, level)| *level)
        };
        let trains: Vec<(&Vec<Packet>, Vec<u64>)> = groups
            .iter()
            .map(|(_, train)| (train, arrivals(train).into_iter().map(|(at, _)| level(at)).collect()))
            .collect();
        let waited = |train: &[Packet], place: usize| {
            let arrived = arrivals(train).get(place).map(|(at, _)| *at);
            train.iter().any(|packet| packet.acked == arrived && rtt(packet).is_some_and(|rtt| rtt >= waits))
        };
        // Not each of them emptied it, and of one a host may have read its last packets too soon.
        let mut most: Vec<u64> = trains.iter().filter_map(|(_, levels)| levels.iter().max().copied()).collect();
        most.sort_unstable();
        let bucket = most.get(most.len() * 3 / 4).copied().unwrap_or(0);
        let empty = bucket.saturating_sub(slack(config, look.packet, seen));
        let of = |(train, levels): &(&Vec<Packet>, Vec<u64>)| {
            let first = levels.iter().position(|level| *level >= empty)?.max(skipped(config, train, 0));
            rate(train, (first..levels.len()).find(|place| waited(train, *place))?)
        };
        let mut rates: Vec<u64> = trains.iter().filter_map(of).collect();
        rates.sort_unstable();
        Behind { rates, bucket }
    }

    /// Bytes by which a level may be off: hosts stand still, and rates are not quite those.
    fn slack(config: &FindingsConfig, packet: u32, rate: u64) -> u64 {
        let hosts = config.hosts.as_nanos() as f64 * rate as f64 / 8e9;
        (hosts + f64::from(packet) * config.near) as u64
    }

    /// By how much packets are differently late behind such a bucket, but for some at either end.
    pub(in crate::look) fn unevenness(look: &Look, bucket: u64, capacity: u64) -> Option<Span> {
        let mut ways = look.ways.clone();
        ways.sort_unstable();
        let tried = ways.partition_point(|(left, ..)| *left < look.tried);
        let mut lates = lates(&ways, look.smallest, bucket.max(u64::from(look.packet)), capacity).split_off(tried);
        lates.sort_unstable();
        let outside = lates.len() / look.config.findings.outside.max(1);
        let (early, late) = (lates.get(outside)?, lates.iter().rev().nth(outside)?);
        Some(Span::from_nanos(late.abs_diff(*early)))
    }

    /// How late packets are, in nanoseconds, had they met nothing but a bucket that was full at
    /// first.
    fn lates(ways: &[Way], fastest: Span, bucket: u64, capacity: u64) -> Vec<i64> {
        let per_nano = capacity as f64 / 8e9;
        let (mut free, mut tokens) = (Time::ZERO, bucket as f64);
        let mut late = |&(left, arrived, bytes): &Way| {
            let begins = (left + fastest).max(free);
            let full = (tokens + begins.since(free).as_nanos() as f64 * per_nano).min(bucket as f64);
            let waits = ((bytes as f64 - full).max(0.0) / per_nano.max(1e-12)) as u64;
            free = begins + Span::from_nanos(waits);
            tokens = (full - bytes as f64).max(0.0);
            arrived.as_nanos() as i64 - free.as_nanos() as i64
        };
        ways.iter().map(&mut late).collect()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn nothing_is_late_that_waits_for_tokens() {
            // 8 Mbit/s are a byte each microsecond; a bucket of 2500 bytes, packets of 1000.
            let way = |left: u64, arrived: u64| {
                (Time::ZERO + Span::from_micros(left), Time::ZERO + Span::from_micros(10_000 + arrived), 1000)
            };
            let ways = [way(0, 0), way(0, 0), way(0, 500), way(0, 1500), way(9_000, 9_000), way(9_000, 9_700)];
            let late = lates(&ways, Span::from_millis(10), 2_500, 8_000_000);
            assert_eq!(late, [0, 0, 0, 0, 0, 700_000]);
        }
    }
}
