//! What a look in one direction says in the end, beside the look in the other.

use crate::judging::ReadingConfig;
use crate::message::{Burst, Doubt, Looked, Report};

/// What is said of the capacity, in Mbit/s of IP packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    /// This.
    Known(f64),
    /// This, or more: the way back may carry no more ACKs than came.
    AtLeast(f64),
    /// Undecided between these; the middle of what was seen.
    Between {
        /// The least.
        least: f64,
        /// The middle of the trains.
        middle: f64,
        /// The most.
        most: f64,
    },
    /// Nothing.
    Unknown,
}

/// A look in one direction, read.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    report: &'a Report,
    looked: &'a Looked,
    config: ReadingConfig,
    /// Median, least and most of the trains.
    trains: Option<[f64; 3]>,
}

impl<'a> Reading<'a> {
    /// Reads what a sender reports; `None` if that was no look.
    #[must_use]
    pub fn new(report: &'a Report, config: ReadingConfig) -> Option<Self> {
        let looked = report.look.as_ref()?;
        // Those that found the bucket empty, if there is one.
        let bears = |rate: &&u64| looked.behind.is_none_or(|behind| **rate as f64 <= behind as f64 * config.bears);
        let rates: Vec<f64> = looked.rates.iter().filter(bears).map(|rate| *rate as f64 / 1e6).collect();
        let trains = rates.first().zip(rates.last()).map(|(least, most)| {
            let (half, even) = (rates.len() / 2, rates.len().is_multiple_of(2));
            let median = if even { f64::midpoint(rates[half - 1], rates[half]) } else { rates[half] };
            [looked.behind.map_or(median, |behind| behind as f64 / 1e6), *least, *most]
        });
        Some(Self { report, looked, config, trains })
    }

    /// What the sender reports.
    #[must_use]
    pub fn report(&self) -> &'a Report {
        self.report
    }

    /// What it saw.
    #[must_use]
    pub fn looked(&self) -> &'a Looked {
        self.looked
    }

    /// The median, the least and the most of the trains in Mbit/s, whether it is the capacity or
    /// not; `None` if there was none.
    #[must_use]
    pub fn trains(&self) -> Option<[f64; 3]> {
        self.trains
    }

    /// What is said of the capacity.
    #[must_use]
    pub fn capacity(&self, back: &Self) -> Capacity {
        let fills = self.acks_fill(back);
        match (self.unsteady(), self.trains) {
            (Some([least, most]), trains) => Capacity::Between {
                least,
                middle: trains.map_or(least, |[middle, ..]| middle),
                most: if fills { f64::INFINITY } else { most },
            },
            (None, Some([median, ..])) if fills => Capacity::AtLeast(median),
            (None, Some([median, ..])) => Capacity::Known(median),
            (None, None) => Capacity::Unknown,
        }
    }

    /// The least and the most in Mbit/s, if no number between them is the capacity; infinite where
    /// there is no most.
    #[must_use]
    pub fn unsteady(&self) -> Option<[f64; 2]> {
        let mbps = |rate: u64| if rate == u64::MAX { f64::INFINITY } else { rate as f64 / 1e6 };
        let between = self.looked.between.map(|both| both.map(mbps));
        // Of so few nobody knows how much more it is.
        let few = self.config.few(&self.looked.rates);
        let trains = self.trains.map(|[_, least, most]| [least, if few { f64::INFINITY } else { most }]);
        between.or(trains).filter(|_| !self.looked.decided())
    }

    /// What a direction is taken to carry, in Mbit/s: the least where there is no most, for trains
    /// that arrive in clumps are any number of times faster.
    #[must_use]
    pub fn carries(&self) -> Option<f64> {
        match (self.unsteady(), self.trains()) {
            (Some([least, most]), trains) => {
                trains.map(|[middle, ..]| if most.is_finite() { middle.clamp(least, most) } else { least })
            }
            (None, trains) => trains.map(|[median, ..]| median),
        }
    }

    /// The token bucket that was emptied, if one was. Where the capacity is undecided what looks
    /// like one may be what holds up packets.
    #[must_use]
    pub fn burst(&self) -> Option<&'a Burst> {
        self.looked.burst.as_ref().filter(|_| self.looked.decided())
    }

    /// Bytes of a token bucket that holds no more than a few packets, and lets a lone one pass.
    /// Where ACKs fill the way back trains are slower than a lone packet for want of these.
    #[must_use]
    pub fn small_bucket(&self, back: &Self) -> Option<u64> {
        let certain = self.looked.decided() && !self.acks_fill(back);
        self.looked.alone.as_ref().and_then(|alone| alone.bucket).filter(|_| certain)
    }

    /// True if the way back may carry no more ACKs than came: then packets may have arrived faster.
    #[must_use]
    pub fn acks_fill(&self, back: &Self) -> bool {
        let (Some([median, ..]), Some([bears, ..])) = (self.trains, back.trains) else { return false };
        // A figure has to be sure of the way back.
        let least = back.unsteady().filter(|_| self.looked.decided());
        let bears = least.map_or(bears, |[least, _]| least.min(bears));
        // Those that were lost on the way, or merged, say nothing of the ones in trains.
        let link = self.config.link_bytes;
        let share = (self.config.ack_bytes + link) / (f64::from(self.looked.packet.max(1)) + link);
        median * share >= bears * self.config.acks_fill
    }

    /// Packets that one ACK brought news of, on average: 1 where nothing merges ACKs.
    #[must_use]
    pub fn merged(&self) -> f64 {
        let report = self.report;
        (report.packets - report.lost.min(report.packets)) as f64 / report.acks.max(1) as f64
    }

    /// Whose queue it is, in one word.
    #[must_use]
    pub fn isolation(&self, back: &Self) -> &'a str {
        match &self.report.queue {
            Some(queue) if !self.acks_fill(back) => queue.isolation.as_str(),
            _ => "unknown",
        }
    }

    /// The probability that this is right; `None` of what is unknown.
    #[must_use]
    pub fn confidence(&self, back: &Self) -> Option<f64> {
        self.report.queue.as_ref().and_then(|queue| queue.confidence).filter(|_| self.isolation(back) != "unknown")
    }

    /// Why the capacity is not one number, if it is not.
    #[must_use]
    pub fn doubt(&self, back: &Self) -> Option<&'static str> {
        match self.looked.doubt {
            Some(Doubt::Few) => Some("too few trains had a rate"),
            Some(Doubt::Uneven) => Some("packets arrive in clumps, or are held up now and then"),
            Some(Doubt::Losses) => Some("many packets were lost"),
            Some(Doubt::Other) => Some("the server is not certain"),
            None if !self.looked.decided() => Some("trains do not agree"),
            None if self.acks_fill(back) => Some("the way back carries no more ACKs"),
            None => None,
        }
    }

    /// The least and the most milliseconds that a lone packet of so many bytes takes at the
    /// bottleneck. `faster` if the path may be faster than it seems. A token bucket that was
    /// emptied is full again for the fastest of them, which passes at least as fast as bursts do.
    fn transmission(&self, bytes: f64, faster: bool) -> [f64; 2] {
        let at = |mbps: f64| if mbps > 0.0 { bytes * 8.0 / mbps / 1e3 } else { 0.0 };
        if let Some(alone) = &self.looked.alone {
            let share = bytes / f64::from(self.looked.packet.max(1));
            return alone.takes.map(|nanos| nanos as f64 / 1e6 * share);
        }
        let burst = self.looked.burst.as_ref().map(|burst| burst.peak);
        let full = burst.or(self.looked.behind.and(self.looked.rates.last().copied()));
        let [least, most] = match (full, self.unsteady(), self.trains) {
            (Some(peak), between, _) => {
                let peak = peak as f64 / 1e6;
                [between.map_or(peak, |[least, _]| least.min(peak)), f64::INFINITY]
            }
            (None, Some(between), _) => between,
            (None, None, Some([median, ..])) => [median; 2],
            (None, None, None) => return [0.0; 2],
        };
        [if faster { 0.0 } else { at(most) }, at(least)]
    }

    /// The least and the most milliseconds of the RTT of a packet of no length, without any queue.
    #[must_use]
    pub fn rtt(&self, back: &Self) -> [f64; 2] {
        let whole = self.looked.rtt as f64 / 1e6;
        let packet = self.transmission(f64::from(self.looked.packet), self.acks_fill(back));
        let ack = back.transmission(self.config.ack_bytes, back.acks_fill(self));
        [whole - packet[1] - ack[1], whole - packet[0] - ack[0]].map(|rtt| rtt.max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::Alone;

    fn report(rates: &[u64]) -> Report {
        let document = json!({
            "bytes": 1, "nanos": 1, "packets": 30, "lost": 0, "marked": 0, "acks": 15, "min_rtt": 1,
            "mean_rtt": 1, "max_rtt": 1, "jitter": 1, "exit": null, "exit_after": null, "late": [0, 0],
            "real_time": true, "queue": null,
            "look": { "rates": rates, "burst": null, "rtt": 1, "packet": 1480, "jitter": 0,
                      "queue": 1, "lost": 0, "overflowed": false, "ecn": true },
        });
        serde_json::from_value(document).unwrap()
    }

    fn capacity(way: &[u64], back: &[u64]) -> Capacity {
        let (way, back) = (report(way), report(back));
        let [way, back] = [&way, &back].map(|report| Reading::new(report, ReadingConfig::USUAL).unwrap());
        way.capacity(&back)
    }

    /// Behind a shaper of 1 Mbit/s that counts Ethernet headers ACKs of 18.6 Mbit/s take 0.95.
    #[test]
    fn acks_take_what_the_link_adds_to_each_too() {
        assert_eq!(capacity(&[18_600_000; 3], &[990_000; 3]), Capacity::AtLeast(18.6));
        assert_eq!(capacity(&[13_000_000; 3], &[990_000; 3]), Capacity::Known(13.0));
        // Of a way back that may be as slow as that, too.
        assert_eq!(capacity(&[18_600_000; 3], &[400_000, 9_000_000, 20_000_000]), Capacity::AtLeast(18.6));
        assert_eq!(capacity(&[18_600_000; 3], &[4_000_000, 9_000_000, 20_000_000]), Capacity::Known(18.6));
    }

    /// 66 Mbit/s with a way back of 1 Mbit/s: trains of 24.9 Mbit/s, and "a bucket of 2 kB".
    #[test]
    fn no_small_bucket_is_said_where_acks_fill_the_way_back() {
        let mut fast = report(&[24_900_000; 3]);
        fast.look.as_mut().unwrap().alone = Some(Alone { takes: [1000; 2], bucket: Some(2060) });
        let bucket = |back: u64| {
            let back = report(&[back; 3]);
            let [fast, back] = [&fast, &back].map(|report| Reading::new(report, ReadingConfig::USUAL).unwrap());
            fast.small_bucket(&back)
        };
        assert_eq!((bucket(1_070_000), bucket(20_000_000)), (None, Some(2060)));
    }

    /// As a plain path of 20 Mbit/s and 2 s gave "perhaps 27 Mbit/s".
    #[test]
    fn one_train_says_no_most() {
        for rates in [&[27_000_000][..], &[27_000_000, 30_000_000]] {
            let most = f64::INFINITY;
            let Capacity::Between { least: 27.0, most: said, .. } = capacity(rates, &[20_000_000; 3]) else {
                panic!("{rates:?}: {:?}", capacity(rates, &[20_000_000; 3]))
            };
            assert_eq!(said, most);
        }
    }
}
