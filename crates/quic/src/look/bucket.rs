//! What arrived, as a token bucket sees it.

use flowstart_units::{Span, Time};

/// The largest token bucket, in bytes, that arrivals would have emptied if it was filled at this
/// rate in bit/s: what came at most within any time, less what the rate brings in it.
pub(super) fn drained(arrivals: &[(Time, u64)], rate: u64) -> u64 {
    levels(arrivals, rate).max().unwrap_or(0)
}

/// A packet's way: when it left, when it had arrived at the latest, and its bytes.
pub(super) type Way = (Time, Time, u64);

/// The largest bucket that packets emptied for certain if it was filled at this rate in bit/s,
/// whenever they arrived before that was known: none is faster than the fastest. What a host reads
/// late, and all at once, came one after another.
pub(super) fn emptied(ways: &[Way], fastest: Span, rate: u64) -> u64 {
    let mut sorted = ways.to_vec();
    sorted.sort_unstable();
    let from = |place: usize| {
        let begins = sorted[place].0 + fastest;
        let mut until = Time::ZERO;
        let levels = sorted[place..].iter().scan(0, move |bytes, way| {
            *bytes += way.2;
            until = until.max(way.1);
            Some(*bytes as f64 - until.since(begins).as_nanos() as f64 * rate as f64 / 8e9)
        });
        levels.fold(0.0, f64::max)
    };
    (0..sorted.len()).map(from).fold(0.0, f64::max) as u64
}

/// What such a bucket lacked after the last of the arrivals.
pub(super) fn lacking(arrivals: &[(Time, u64)], rate: u64) -> u64 {
    levels(arrivals, rate).last().unwrap_or(0)
}

/// ... and after each.
fn levels(arrivals: &[(Time, u64)], rate: u64) -> impl Iterator<Item = u64> {
    let mut sorted = arrivals.to_vec();
    sorted.sort_unstable();
    sorted.into_iter().scan((0.0_f64, Time::ZERO), move |(level, before), (at, bytes)| {
        let filled = at.since(*before).as_nanos() as f64 * rate as f64 / 8e9;
        *level = (*level - filled).max(0.0) + bytes as f64;
        *before = at;
        Some(*level as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_as_large_as_what_came_beyond_what_filled_it() {
        // 8 Mbit/s are a byte each microsecond; ten packets of 1000 bytes 100 us apart, twice.
        let at = |micros: u64| (Time::ZERO + Span::from_micros(micros), 1000);
        let train = |from: u64| (0..10).map(move |n| at(from + n * 100));
        let one: Vec<(Time, u64)> = train(0).collect();
        assert_eq!((drained(&one, 8_000_000), lacking(&one, 8_000_000)), (9_100, 9_100));
        // Between two trains it fills, or it does not.
        let far: Vec<(Time, u64)> = train(50_000).chain(train(0)).collect();
        assert_eq!((drained(&far, 8_000_000), lacking(&far, 8_000_000)), (9_100, 9_100));
        let near: Vec<(Time, u64)> = train(0).chain(train(2_000)).collect();
        assert_eq!((drained(&near, 8_000_000), lacking(&near, 8_000_000)), (17_100, 17_100));
        let then: Vec<(Time, u64)> = one.iter().copied().chain([at(5_900)]).collect();
        assert_eq!((drained(&then, 8_000_000), lacking(&then, 8_000_000)), (9_100, 5_100));
        assert_eq!((drained(&[], 8_000_000), lacking(&[], 0)), (0, 0));
    }
}
