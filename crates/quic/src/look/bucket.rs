//! What arrived, as a token bucket sees it; and small packets that meet no queue: how much longer a
//! full one takes alone, which is its time at the bottleneck, or nothing where a token bucket has
//! saved enough for it.

use flowstart_congestion::Departure;
use flowstart_units::{Span, Time};

use super::{Look, LookStage, Part};

/// The largest token bucket, in bytes, that arrivals would have emptied if it was filled at this
/// rate in bit/s: what came at most within any time, less what the rate brings in it.
pub(super) fn drained(arrivals: &[(Time, u64)], rate: u64) -> u64 {
    levels(arrivals, rate).map(|(_, level)| level).max().unwrap_or(0)
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
    levels(arrivals, rate).last().map_or(0, |(_, level)| level)
}

/// ... and after each, with when it arrived.
pub(super) fn levels(arrivals: &[(Time, u64)], rate: u64) -> impl Iterator<Item = (Time, u64)> {
    let mut sorted = arrivals.to_vec();
    sorted.sort_unstable();
    sorted.into_iter().scan((0.0_f64, Time::ZERO), move |(level, before), (at, bytes)| {
        let filled = at.since(*before).as_nanos() as f64 * rate as f64 / 8e9;
        *level = (*level - filled).max(0.0) + bytes as f64;
        *before = at;
        Some((at, *level as u64))
    })
}

/// A small packet of the second connection, which has nothing else to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Light {
    number: u64,
    bytes: u32,
    rtt: Option<Span>,
}

/// Small packets of a look.
#[derive(Clone, Debug, Default)]
pub(super) struct Lights {
    /// When the next leaves.
    due: Option<Time>,
    /// It was asked for.
    asked: bool,
    sent: Vec<Light>,
}

/// How much longer a full packet takes than none, alone, in nanoseconds; and by how much that is
/// uncertain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Alone {
    pub(super) takes: f64,
    pub(super) noise: f64,
}

/// What a full packet passes on when it is alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passes {
    /// It takes as long as others do.
    Evenly,
    /// It takes less than half of that, and hosts are not the reason: a bucket had saved enough for
    /// it.
    OnTokens,
    /// That was not seen, or is not certain.
    Unknown,
}

impl Alone {
    /// Where others take so long. It is on tokens from so much on only: below hosts that hold up
    /// small packets may be the reason.
    pub(super) fn passes(&self, others: Span, least: Span) -> Passes {
        let half = others.as_nanos() as f64 / 2.0;
        match self.takes {
            takes if takes >= half => Passes::Evenly,
            takes if takes + self.noise < half && others >= least => Passes::OnTokens,
            _ => Passes::Unknown,
        }
    }
}

impl Look {
    /// A small packet is to leave then, if there is a second connection.
    pub(super) fn light_at(&mut self, at: Time) {
        (self.lights.due, self.lights.asked) = (Some(at).filter(|_| self.spending.carried[1] > 0), false);
    }

    /// One whose time is over, and which nobody was asked for, does not leave.
    pub(super) fn light_misses(&mut self, now: Time) {
        if self.light_due().is_some_and(|due| now >= due + self.config.aside) {
            self.lights.due = None;
        }
    }

    /// When a small packet leaves, if there is to be one and it was not asked for.
    pub(super) fn light_due(&self) -> Option<Time> {
        self.lights.due.filter(|_| matches!(self.stage, LookStage::Trains) && !self.lights.asked)
    }

    /// When the second connection sends.
    pub(super) fn light_leaves(&self) -> Departure {
        self.lights.due.map_or(Departure::Hold, Departure::At)
    }

    /// True, once, if a small packet that will be acknowledged is to leave the second connection
    /// now: stacks do not hold it back. What is left there of the detector, if it is not `empty`,
    /// leaves instead, and the lone packet behind it later.
    pub(crate) fn asks(&mut self, now: Time, empty: bool) -> bool {
        if self.light_due().is_none_or(|due| due > now) {
            return false;
        }
        self.lights.asked = true;
        if let Some((at, _, Part::Calm)) = self.plan.back_mut()
            && !empty
        {
            *at += self.service.mul_f64(self.config.apart);
        }
        empty
    }

    /// A packet of the second connection left.
    pub(super) fn second_left(&mut self, number: u64, bytes: u32) {
        if self.lights.asked && self.lights.due.take().is_some() && bytes * 4 < self.packet {
            self.lights.sent.push(Light { number, bytes, rtt: None });
        }
    }

    /// ... and arrived.
    pub(super) fn light_arrived(&mut self, number: u64, rtt: Span) {
        if let Some(light) = self.lights.sent.iter_mut().find(|light| light.number == number) {
            light.rtt.get_or_insert(rtt);
        }
    }

    /// What a full packet takes alone, if it is known.
    pub(super) fn takes_alone(&self) -> Option<Alone> {
        let mut rtts: Vec<(Span, u32)> =
            self.lights.sent.iter().filter_map(|light| Some((light.rtt?, light.bytes))).collect();
        rtts.sort_unstable();
        let (quickest, bytes) = *rtts.first()?;
        if self.smallest == Span::MAX || self.quickest <= bytes {
            return None;
        }
        let nanos = |span: Span| span.as_nanos() as f64;
        let full = f64::from(self.packet) / f64::from(self.quickest - bytes);
        // Of one nobody knows; the quickest full packet is one of many.
        let noise = match rtts.len() {
            1 => nanos(self.config.findings.hosts),
            count => nanos(rtts[count / 2].0) - nanos(quickest),
        };
        Some(Alone { takes: (nanos(self.smallest) - nanos(quickest)) * full, noise })
    }

    /// Whether a lone packet passes faster than those of trains, as far as they are known, by more
    /// than hosts may be the reason for.
    pub(super) fn passes(&self) -> Passes {
        let least = self.config.findings.hosts.mul_f64(self.config.serial);
        self.takes_alone().map_or(Passes::Unknown, |alone| alone.passes(self.service, least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::FindingsConfig;

    /// Of 84 looks over the emulator, 3 to 400 Mbit/s without a bucket, eight directions of 100 and
    /// 150 Mbit/s had one of 3 to 4 kB, where packets take 80 and 120 us, as hosts hold up packets.
    #[test]
    fn a_packet_passes_on_tokens_where_hosts_cannot_be_the_reason() {
        let alone = Alone { takes: 10_000.0, noise: 20_000.0 };
        let passes = |micros| alone.passes(Span::from_micros(micros), FindingsConfig::default().hosts);
        assert_eq!([80, 120, 299].map(passes), [Passes::Unknown; 3]);
        assert_eq!([300, 12_000].map(passes), [Passes::OnTokens; 2]);
        assert_eq!([20, 19].map(passes), [Passes::Evenly; 2]);
        // As noise hides it.
        let noisy = Alone { noise: 500_000.0, ..alone };
        assert_eq!(noisy.passes(Span::from_millis(1), Span::ZERO), Passes::Unknown);
    }

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
