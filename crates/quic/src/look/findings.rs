//! What is made of the packets of a look.

use flowstart_units::{Bytes, Rate, Span, Time};

use super::bucket::{Passes, drained, emptied, lacking};
use super::outage::{self, Outage};
use super::{FindingsConfig, Look, Packet, Part};
use crate::message::{Alone, Burst, Looked};

mod doubt;

use doubt::tokens;

/// What trains say of the capacity.
struct Trains {
    /// Whether each is the first of its group, and its packets.
    groups: Vec<(bool, Vec<Packet>)>,
    /// Rates of those that count, least first; all if they do not agree.
    rates: Vec<u64>,
    burst: Option<Burst>,
    /// Rate behind a token bucket that only some emptied.
    behind: Option<u64>,
    /// Bytes of a small one, on whose tokens a lone packet passes.
    small: Option<u64>,
}

/// True if trains agree on what the path bears.
pub(super) fn agree(look: &Look) -> bool {
    let (trains, reading) = (trains(look), &look.config.findings.reading);
    trains.behind.is_some()
        || !(reading.few(&trains.rates) || reading.unsteady(&trains.rates) || doubt::of_look(look, &trains).is_some())
}

/// Rate of the second half of the last train from this one on.
pub(super) fn last_rate(look: &Look, from: usize) -> Option<u64> {
    let last = look.trains.len().checked_sub(1).filter(|last| *last >= from)?;
    let train = of_train(look, last as u32);
    rate(&train, leads(&train).max(train.len() / 2))
}

/// The rate that trains say so far, if a lone packet passes on tokens of a small bucket.
pub(super) fn behind_tokens(look: &Look) -> Option<u64> {
    let trains = trains(look);
    trains.small.and_then(|_| median(trains.rates))
}

fn trains(look: &Look) -> Trains {
    let config = &look.config.findings;
    let newest = look.packets.iter().rfind(|packet| packet.acked.is_some()).map(|packet| packet.number);
    let groups: Vec<(bool, Vec<Packet>)> = (0..)
        .zip(&look.trains)
        .map(|(number, (first, length))| (*first, *length, of_train(look, number)))
        // Data may be over in the middle of the last, or before all of it was acknowledged.
        .filter(|(_, length, train)| train.len() == *length as usize)
        .filter(|(.., train)| train.last().is_some_and(|last| newest >= Some(last.number)))
        .map(|(first, _, train)| (first, train))
        .collect();
    let firsts: Vec<Vec<Packet>> = groups.iter().filter(|(first, _)| *first).map(|(_, train)| train.clone()).collect();
    let burst = burst(config, &firsts);
    // Of some trains the burst is one packet longer, and what follows it waited for a part of its
    // tokens only.
    let skip = burst.as_ref().map_or(0, |(after, _)| *after + 2);
    let rates_from = |skip: usize| -> Vec<(u64, &Vec<Packet>)> {
        let mut rates: Vec<(u64, &Vec<Packet>)> = groups
            .iter()
            .filter_map(|(first, train)| {
                Some((rate(train, skipped(config, train, if *first { skip } else { 0 }))?, train))
            })
            .collect();
        rates.sort_unstable_by_key(|(rate, _)| *rate);
        rates
    };
    let only = |rates: &[(u64, &Vec<Packet>)]| rates.iter().map(|(rate, _)| *rate).collect::<Vec<u64>>();
    let mut rates = only(&rates_from(skip));
    let arrived = look.arrivals();
    // What arrives no slower after a burst, or lets more pass than the bucket has, is something
    // else.
    let mut burst = burst.map(|(_, burst)| burst).filter(|burst| is_borne(config, burst, &rates, &arrived));
    if burst.is_none() && skip > 0 {
        rates = only(&rates_from(0));
    }
    let mut behind = None;
    if config.reading.unsteady(&rates) || config.reading.few(&rates) {
        // Not each of the trains emptied it, or there is none.
        let all = rates_from(0);
        rates = only(&all);
        behind = behind_bucket(config, &groups, &arrived, &rates);
        // A bucket lets others pass faster.
        behind = behind.filter(|behind| rates.last().is_some_and(|peak| *peak as f64 > *behind as f64 * config.peak));
        burst =
            behind.map(|rate| Burst { peak: rates.last().copied().unwrap_or(rate), bytes: drained(&arrived, rate) });
        let borne = borne_out(config, &all, &arrived);
        if behind.is_none() && borne.len() >= config.agreeing && !config.reading.unsteady(&borne) {
            rates = borne;
        }
    }
    let mut small = None;
    if burst.is_none()
        && behind.is_none()
        && let Some(behind) = tokens::behind(look, &groups)
    {
        (rates, small) = (behind.rates, Some(behind.bucket));
    }
    Trains { groups, rates, burst, behind, small }
}

/// True if trains are slower than a burst, and what arrived was no more than its bucket and what
/// fills it.
fn is_borne(config: &FindingsConfig, burst: &Burst, rates: &[u64], arrivals: &[(Time, u64)]) -> bool {
    let full = arrivals.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
    median(rates.to_vec()).is_some_and(|rate| {
        burst.peak as f64 > rate as f64 * config.peak
            && drained(arrivals, rate) as f64 <= burst.bytes as f64 * config.larger + full as f64 * config.side as f64
    })
}

/// Rates of trains without those that were held up or pushed together by something else than a
/// bucket: fewer than a quarter, the slow ones less far into a bucket than one that was fast.
fn borne_out(config: &FindingsConfig, rates: &[(u64, &Vec<Packet>)], arrivals: &[(Time, u64)]) -> Vec<u64> {
    let Some((middle, _)) = rates.get(rates.len() / 2) else { return Vec::new() };
    let near = |rate: u64| rate.abs_diff(*middle) as f64 <= *middle as f64 * config.near;
    let held = rates.iter().map(|(rate, _)| *rate).find(|rate| !near(*rate)).unwrap_or(0).min(*middle);
    let depth = |train: &Vec<Packet>| {
        let end = train.iter().filter_map(|packet| packet.acked).max();
        let before: Vec<(Time, u64)> = arrivals.iter().copied().filter(|(at, _)| Some(*at) <= end).collect();
        lacking(&before, held)
    };
    let deepest = rates.iter().filter(|(rate, _)| near(*rate)).map(|(_, train)| depth(train)).max().unwrap_or(0);
    let explained = |(rate, train): &(u64, &Vec<Packet>)| {
        near(*rate) || (if rate > middle { is_even_near(config, rates, near) } else { depth(train) < deepest })
    };
    let kept: Vec<u64> = rates.iter().map(|(rate, _)| *rate).filter(|rate| near(*rate)).collect();
    match kept.len() as f64 >= rates.len() as f64 * config.most && rates.iter().all(explained) {
        true => kept,
        false => Vec::new(),
    }
}

/// True if trains near the middle arrived evenly: all of each waited for the same thing.
fn is_even_near(config: &FindingsConfig, rates: &[(u64, &Vec<Packet>)], near: impl Fn(u64) -> bool) -> bool {
    rates.iter().filter(|(rate, _)| near(*rate)).all(|(_, train)| is_even(config, train))
}

pub(super) fn findings(look: &Look, ecn: bool) -> Looked {
    let config = &look.config.findings;
    let trains = trains(look);
    let doubt = doubt::of_look(look, &trains);
    let between = doubt.and_then(|doubt| doubt.between);
    let doubt = doubt.map(|doubt| doubt.why);
    let between = doubt::slower(look, &trains, between);
    let Trains { groups, mut rates, burst, behind, small } = trains;
    if rates.is_empty() {
        rates.extend(roughly(look));
    }
    let capacity = behind.or_else(|| median(rates.clone())).unwrap_or(0);
    let mut alone = alone(look, capacity, doubt.is_none());
    if burst.is_none()
        && behind.is_none()
        && let Some((alone, true)) = &mut alone
    {
        alone.bucket = small.or_else(|| Some(tokens::counted(look, &groups, capacity).bucket));
    }
    let filled = (capacity as f64 * config.filled) as u64;
    // Below a range is nothing that no larger bucket hides.
    let filled = between.map_or(filled, |[least, _]| least);
    let tested = emptied(&look.ways, look.smallest, filled);
    let outages = look.outages();
    let trains: Vec<Vec<Packet>> = groups.into_iter().map(|(_, train)| train).collect();
    let lost = trains.iter().flatten().filter(|packet| packet.acked.is_none()).count();
    let queue = look.queue(&outages);
    let gone = outage::lost(config, &look.packets);
    let went = |at: Time| gone.iter().any(|[first, last]| (*first..=*last).contains(&at));
    let full = look.room.is_some() && look.packets.iter().any(|packet| packet.acked.is_none());
    let trains: Vec<Vec<Packet>> =
        trains.into_iter().filter(|train| !train.iter().any(|packet| went(packet.at))).collect();
    let away = outages.iter().map(Outage::lasts).chain(gone.iter().map(|[first, last]| last.since(*first)));
    let away = away.max().unwrap_or(Span::ZERO);
    Looked {
        rates,
        burst,
        behind,
        tested,
        doubt,
        between,
        alone: alone.map(|(alone, _)| alone),
        packet: look.quickest,
        rtt: if look.smallest == Span::MAX { 0 } else { look.smallest.as_nanos() },
        jitter: jitter(look, &outages).unwrap_or(0),
        queue: queue.as_nanos(),
        varied: doubt::varied(look).as_nanos(),
        lost: lost as u64,
        // What came after all did not find the buffer full, nor what a path took along that was
        // away.
        overflowed: (full && away.is_zero()) || overflowed(config, &trains, look.smallest, queue),
        away: away.as_nanos(),
        ecn,
    }
}

/// Nanoseconds by which RTTs of successive lone packets differ, in the middle: what was lost may
/// make one of them late.
fn jitter(look: &Look, outages: &[Outage]) -> Option<u64> {
    let stayed = |packet: &&Packet| {
        packet.direct && !packet.acked.zip(rtt(packet)).is_some_and(|(at, rtt)| look.waited(outages, at, rtt))
    };
    let calm: Vec<Span> = of(look, Part::Calm).iter().filter(stayed).filter_map(rtt).collect();
    median(calm.windows(2).map(|two| two[0].as_nanos().abs_diff(two[1].as_nanos())).collect())
}

/// What a lone packet takes, where that is not what others take at this rate, and whether it passes
/// on tokens; `known` if it is the capacity.
fn alone(look: &Look, capacity: u64, known: bool) -> Option<(Alone, bool)> {
    let (seen, hosts) = (look.takes_alone()?, look.config.findings.hosts);
    let others = Rate::from_bps(capacity.max(1)).transmission_time(Bytes::new(u64::from(look.packet)));
    let passes = seen.passes(others, hosts);
    let takes = match passes {
        // Where nobody knows what others take.
        passes if !known => (seen.noise <= hosts.as_nanos() as f64 || passes == Passes::OnTokens)
            .then_some([seen.takes - seen.noise, seen.takes + seen.noise]),
        Passes::OnTokens => Some([seen.takes; 2]),
        Passes::Unknown if others > hosts => Some([0.0, others.as_nanos() as f64]),
        Passes::Evenly | Passes::Unknown => None,
    }?;
    let takes = takes.map(|nanos| nanos.max(0.0) as u64);
    Some((Alone { takes, bucket: None }, known && passes == Passes::OnTokens))
}

/// The capacity where no train told it: what the detector saw, or the first packets.
fn roughly(look: &Look) -> Option<u64> {
    let told = look.decision.map(|decision| decision.rate.as_bps()).filter(|rate| *rate > 0);
    let service = Some(look.service).filter(|service| !service.is_zero());
    told.or_else(|| Some(Rate::of(Bytes::new(u64::from(look.packet)), service?).as_bps()))
}

fn of(look: &Look, part: Part) -> Vec<Packet> {
    look.packets.iter().filter(|packet| packet.part == part).copied().collect()
}

/// A train with what leads it.
fn of_train(look: &Look, number: u32) -> Vec<Packet> {
    look.packets.iter().filter(|packet| packet.part.train() == Some(number)).copied().collect()
}

/// How many packets lead a train.
fn leads(train: &[Packet]) -> usize {
    train.iter().filter(|packet| matches!(packet.part, Part::Lead(_))).count()
}

fn rtt(packet: &Packet) -> Option<Span> {
    Some(packet.acked?.since(packet.at))
}

/// Arrivals of a train in their order, with bytes on the wire.
fn arrivals(train: &[Packet]) -> Vec<(Time, u64)> {
    // What waited for an ACK that told of later ones had arrived before.
    let last = train.iter().filter(|packet| packet.direct).filter_map(|packet| packet.acked).max();
    let mut arrivals: Vec<(Time, u64)> = train
        .iter()
        .filter_map(|packet| Some((packet.acked?, u64::from(packet.bytes))))
        .filter(|(at, _)| Some(*at) <= last)
        .collect();
    arrivals.sort_unstable();
    arrivals
}

/// Rate at which a train arrived, without so many packets of its beginning.
fn rate(train: &[Packet], skip: usize) -> Option<u64> {
    let arrivals = arrivals(train);
    let arrivals = arrivals.get(skip..).filter(|rest| rest.len() >= 2)?;
    let (first, last) = (arrivals[0].0, arrivals[arrivals.len() - 1].0);
    // Packets of one ACK arrived by then; when the first of them did nobody knows.
    let bytes: u64 = arrivals.iter().filter(|(at, _)| *at > first).map(|(_, bytes)| bytes).sum();
    let whole = arrivals.len() * 2 > train.len().saturating_sub(skip);
    (last > first && whole).then(|| Rate::of(Bytes::new(bytes), last.since(first)).as_bps())
}

/// A median; `None` of nothing.
fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// How much of a train does not count.
fn skipped(config: &FindingsConfig, train: &[Packet], burst: usize) -> usize {
    burst.max(train.len() / config.waking.max(1)).max(usize::from(train.len() > 2)).max(leads(train))
}

/// The rate behind a token bucket that some trains did not empty: that on which the slowest trains
/// agree, if a bucket which it fills would have been empty whenever they arrived. Others' traffic
/// keeps to no such thing.
fn behind_bucket(
    config: &FindingsConfig,
    trains: &[(bool, Vec<Packet>)],
    arrivals: &[(Time, u64)],
    rates: &[u64],
) -> Option<u64> {
    let even: Vec<(u64, &Vec<Packet>)> = trains
        .iter()
        .map(|(_, train)| train)
        .filter(|train| is_even(config, train))
        .filter_map(|train| Some((rate(train, skipped(config, train, 0))?, train)))
        .collect();
    let agree = |least: u64| -> Vec<(u64, &Vec<Packet>)> {
        let most = (least as f64 * (1.0 + config.agree)) as u64;
        even.iter().copied().filter(|(rate, _)| (least..=most).contains(rate)).collect()
    };
    // What is slower was held up by something else, if that is little.
    let slow = rates
        .iter()
        .enumerate()
        .map(|(slower, least)| (slower, agree(*least)))
        .find(|(slower, slow)| slow.len() >= config.agreeing && slower * config.held_up <= slow.len())
        .map(|(_, slow)| slow)?;
    let behind = median(slow.iter().map(|(rate, _)| *rate).collect())?;
    let bucket = drained(arrivals, behind) as f64;
    let emptied = |(_, train): &(u64, &Vec<Packet>)| {
        let end = train.iter().filter_map(|packet| packet.acked).max();
        let before: Vec<(Time, u64)> = arrivals.iter().copied().filter(|(at, _)| Some(*at) <= end).collect();
        lacking(&before, behind) as f64 >= bucket * (1.0 - config.empty)
    };
    slow.iter().all(emptied).then_some(behind)
}

/// True if what counts of a train arrives as fast in its first half as in its second.
fn is_even(config: &FindingsConfig, train: &[Packet]) -> bool {
    let skip = skipped(config, train, 0);
    let middle = skip + (train.len() - skip) / 2;
    let halves = (train.get(..=middle).and_then(|half| rate(half, skip)), rate(train, middle));
    matches!(halves, (Some(one), Some(other)) if one.abs_diff(other) as f64 <= one.min(other) as f64 * config.even)
}

/// How trains arrive at the median: so far apart, in nanoseconds, up to a place, and so far behind.
struct Profile {
    /// Those that arrived whole.
    whole: Vec<Vec<(Time, u64)>>,
    length: usize,
    change: usize,
    early: f64,
    late: f64,
}

/// The two straight lines that are nearest to how these trains arrived.
fn profile(config: &FindingsConfig, trains: &[Vec<Packet>]) -> Option<Profile> {
    let whole: Vec<Vec<(Time, u64)>> =
        trains.iter().filter(|train| train.iter().all(|it| it.acked.is_some())).map(|it| arrivals(it)).collect();
    let length = whole.iter().map(Vec::len).min().filter(|length| *length >= 2 * config.side.max(1))?;
    // When the packet at this place arrives in the middle of the trains, from the first one on.
    let at = |place: usize| median(whole.iter().map(|train| train[place].0.since(train[0].0).as_nanos()).collect());
    let at: Vec<u64> = (0..length).filter_map(at).collect();
    if whole.len() < config.whole {
        return None;
    }
    let slope = |from: usize, to: usize| (at[to] - at[from]) as f64 / (to - from) as f64;
    // The place from which two straight lines are nearest.
    let off = |change: usize| {
        let (early, late) = (slope(0, change), slope(change, length - 1));
        let line = |place: usize| match place <= change {
            true => early * place as f64,
            false => at[change] as f64 + late * (place - change) as f64,
        };
        let square = |off: f64| off * off;
        (0..length).map(|place| square(at[place] as f64 - line(place))).sum::<f64>()
    };
    let change =
        (config.side.max(1) - 1..=length - config.side).min_by(|one, other| off(*one).total_cmp(&off(*other)))?;
    Some(Profile { early: slope(0, change), late: slope(change, length - 1), whole, length, change })
}

/// If trains arrive faster at first than later: after how many packets that ends, and the bucket.
fn burst(config: &FindingsConfig, trains: &[Vec<Packet>]) -> Option<(usize, Burst)> {
    let Profile { whole, length, change, early, late } = profile(config, trains)?;
    if early <= 0.0 || early > config.burst * late || (late - early) * (change as f64) < config.ahead.as_nanos() as f64
    {
        return None;
    }
    // What one of them alone shows was something else.
    let slows = |train: &&Vec<(Time, u64)>| {
        let took = |from: usize, to: usize| train[to].0.since(train[from].0).as_nanos() as f64;
        let (early, late) = (took(0, change) / change as f64, took(change, length - 1) / (length - 1 - change) as f64);
        early <= config.burst.sqrt() * late
    };
    if (whole.iter().filter(slows).count() as f64) < whole.len() as f64 * config.most {
        return None;
    }
    let bytes = whole[0][change].1;
    let peak = Rate::of(Bytes::new(bytes), Span::from_nanos(early as u64)).as_bps();
    // What was not covered by tokens that came meanwhile.
    let depth = (change + 1) as f64 * bytes as f64 * (1.0 - early / late);
    Some((change, Burst { peak, bytes: depth as u64 }))
}

/// The rate at which trains end that may have begun with what a token bucket let pass, although
/// that is not certain.
fn slowed(config: &FindingsConfig, trains: &[Vec<Packet>]) -> Option<u64> {
    let longest = trains.iter().map(Vec::len).max()?;
    let long: Vec<Vec<Packet>> = trains.iter().filter(|train| 4 * train.len() >= 3 * longest).cloned().collect();
    let Profile { whole, early, late, .. } = profile(config, &long)?;
    let bytes = whole[0].last()?.1;
    (late > 0.0 && early <= config.suspected * late)
        .then(|| Rate::of(Bytes::new(bytes), Span::from_nanos(late as u64)).as_bps())
}

/// True if packets were lost that met a queue about as long as it ever was.
fn overflowed(config: &FindingsConfig, trains: &[Vec<Packet>], smallest: Span, queue: Span) -> bool {
    let mut met = Vec::new();
    for train in trains {
        let mut waited = None;
        for packet in train {
            match rtt(packet) {
                Some(rtt) if packet.direct => waited = Some((rtt - smallest).as_nanos()),
                Some(_) => {}
                None => met.extend(waited),
            }
        }
    }
    met.len() >= config.overflow
        && median(met).is_some_and(|met| met as f64 >= config.overflow_queue * queue.as_nanos() as f64)
}

#[cfg(test)]
mod tests;
