//! Which trains there are, and when.

use flowstart_units::{Bytes, Rate, Span, Time};

use super::bucket::{Passes, drained, lacking};
use super::{Look, LookStage, Packet, Part, findings};

impl Look {
    /// Trains that tell the capacity, in groups, each with a lone packet behind it that meets no
    /// queue: the first group.
    pub(super) fn plan_trains(&mut self, now: Time) {
        if let Some(decision) = &self.decision
            && decision.rate > Rate::ZERO
        {
            let service = decision.rate.transmission_time(Bytes::new(u64::from(self.packet)));
            self.service = self.service.max(service);
        }
        self.tried = now;
        // Where no packet passes right behind another there are no trains.
        if self.room.is_some_and(|room| room < 2) || self.alone() {
            self.stage = LookStage::Over;
            return;
        }
        self.stage = LookStage::Trains;
        self.plan_group(now);
    }

    /// ... and more of them, when it is known how fast the last arrived.
    pub(super) fn plan_next(&mut self, now: Time) {
        self.lone = None;
        self.ends = Time::NEVER;
        let group = self.trains.iter().rposition(|(first, _)| *first).unwrap_or(0);
        let had = self.room.is_some();
        for train in group..self.trains.len() {
            let numbers = self.packets.iter().filter(|packet| packet.part.train() == Some(train as u32));
            let numbers: Vec<u64> = numbers.map(|packet| packet.number).collect();
            if let (Some(first), Some(last)) = (numbers.first(), numbers.last()) {
                self.settle(*first, last + 1);
            }
        }
        if let Some(rate) = findings::behind_tokens(self) {
            let service = Rate::from_bps(rate).transmission_time(Bytes::new(u64::from(self.packet)));
            self.service = self.service.max(service);
        }
        self.saved = self.saved.max(self.passes_at_once());
        self.confirmed = findings::last_rate(self, group).is_some_and(|rate| {
            let service = Rate::of(Bytes::new(u64::from(self.packet)), self.service).as_bps();
            rate.abs_diff(service) as f64 <= service as f64 * self.config.confirms
        });
        match self.is_enough(now) || (had && self.lost_most(group)) {
            true => self.stage = LookStage::Over,
            false => self.plan_group(now),
        }
    }

    /// True if more than half of the trains from this one on were lost.
    fn lost_most(&self, group: usize) -> bool {
        let of = |packet: &&Packet| packet.part.train().is_some_and(|train| train as usize >= group);
        let (all, lost) = self
            .packets
            .iter()
            .filter(of)
            .fold((0, 0), |(all, lost), packet| (all + 1, lost + usize::from(packet.acked.is_none())));
        lost * 2 > all
    }

    /// True if the first of each pair arrived, and no second.
    pub(super) fn alone(&self) -> bool {
        let pairs = self.config.pairs as usize;
        let alone = |pair: &[Packet]| pair[0].acked.is_some() && pair.last().is_some_and(|last| last.acked.is_none());
        self.service.is_zero() && self.packets.len() >= 2 * pairs && self.packets.chunks(2).take(pairs).all(alone)
    }

    /// True if trains of separate groups agree, or if it takes too long.
    fn is_enough(&self, now: Time) -> bool {
        let took = now.since(self.tried);
        let groups = self.trains.iter().filter(|(first, _)| *first).count();
        took >= self.config.time
            && self.trains.len() >= self.config.least_trains as usize
            && groups >= self.config.least_groups as usize
            && (took >= self.config.longest_time || findings::agree(self))
    }

    /// Packets that may leave at once although the path may be much slower than it seems: what was
    /// seen to pass, as far as a bucket filled at that slower rate has been filled since, and what
    /// queues there for no longer than it may.
    fn fits(&self, now: Time) -> u32 {
        if self.service.is_zero() {
            // All that was sent arrived at once, or nothing did.
            return self.config.settling;
        }
        let full = u64::from(self.packet);
        let peak = Rate::of(Bytes::new(full), self.fast.unwrap_or(self.service)).as_bps();
        let slow = (peak as f64 / self.config.slowdown.max(1.0)) as u64;
        let passed = self.filled(now, slow);
        let queue = (self.config.flight_queue.as_nanos() / 1000).saturating_mul(slow) / 8_000_000;
        // Of what may still arrive nobody knows whether it passes.
        u32::try_from(((passed + queue) / full).saturating_sub(self.flying(now))).unwrap_or(u32::MAX)
    }

    /// Packets that may still arrive.
    fn flying(&self, now: Time) -> u64 {
        let patience = self.patience();
        let flies = |packet: &&Packet| packet.acked.is_none() && now.since(packet.at) < patience;
        self.packets.iter().filter(flies).count() as u64
    }

    /// ... of either connection.
    fn all_flying(&self, now: Time) -> u64 {
        let other = &self.spending.counts[1];
        self.flying(now) + other.sent.saturating_sub(other.delivered + other.lost)
    }

    /// What arrived over both connections, in the order of its ACKs: when, and bytes on the wire.
    pub(super) fn arrivals(&self) -> Vec<(Time, u64)> {
        self.ways.iter().map(|(_, arrived, bytes)| (*arrived, *bytes)).collect()
    }

    /// Bytes of the largest bucket that was emptied, filled at this rate, that have come into it
    /// when a packet gets there that leaves now.
    fn filled(&self, now: Time, rate: u64) -> u64 {
        let arrivals = self.arrivals();
        let arrived = arrivals.iter().map(|(at, _)| *at).max().unwrap_or(now);
        // From when the last to arrive left the bucket: there and back.
        let since = now.since(arrived) + self.smallest;
        let lacks = lacking(&arrivals, rate);
        let came = (since.as_nanos() as f64 * rate as f64 / 8e9) as u64;
        drained(&arrivals, rate) - lacks + lacks.min(came)
    }

    /// Packets that the token bucket holds then, as far as it is known.
    fn tokens(&self, now: Time) -> u32 {
        let full = u64::from(self.packet);
        let rate = Rate::of(Bytes::new(full), self.service).as_bps();
        u32::try_from(self.filled(now, rate) / full).unwrap_or(u32::MAX)
    }

    /// Packets that a train has at most. Behind an empty bucket up to two of them wait.
    fn longest(&self) -> u32 {
        let share = if self.fast.is_some() { 2 } else { 1 };
        let count = |time: Span| u32::try_from(time.as_nanos() / self.service.as_nanos().max(1)).unwrap_or(u32::MAX);
        let longest = self.config.longest.max(count(self.config.long).min(self.config.most)).max(2);
        let least = if self.fast.is_some() { self.config.least_settling } else { 2 };
        count(self.config.queue / share).max(least).min(longest).min(self.room.map_or(longest, |room| room.max(2)))
    }

    /// Packets ahead of a train of so many that take what a small bucket has saved, and do not
    /// count. The first of more than two does not count anyway.
    fn leads(&self, length: u32) -> u32 {
        let bucket = self.fast.is_none() && (self.slower || self.passes() == Passes::OnTokens);
        let small = bucket && self.room.is_none() && self.saved > 1;
        match length == 2 || small {
            true if self.service <= self.config.leading => {
                if small {
                    self.saved
                } else {
                    1
                }
            }
            _ => 0,
        }
    }

    /// Plans trains, one behind the other, and a lone packet.
    fn plan_group(&mut self, now: Time) {
        let (fits, longest, most) = (self.fits(now), self.longest(), self.config.trains.max(1));
        let least = longest.min(self.config.least_settling);
        let (trains, length, tokens) = match self.fast {
            // The train behind what is in the bucket is partly let through, the next is not.
            Some(_) => {
                let tokens = self.tokens(now);
                let trains = tokens.div_ceil(longest).min(most) + 2;
                match self.confirmed {
                    true => (trains, longest, tokens),
                    false => (trains.min(fits / longest).max(1), fits.clamp(least, longest), tokens),
                }
            }
            None => {
                let ceil = fits.div_ceil(longest).max(1);
                let trains = if fits / ceil >= self.config.settling { ceil } else { (fits / longest).max(1) };
                (trains.min(most), (fits / trains).clamp(least, longest), 0)
            }
        };
        let gone = (self.service * u64::from(length + 1)).mul_f64(self.config.apart / 2.0);
        // What the detector or the trains before sent is gone by then.
        let queued = (self.service * self.all_flying(now)).checked_sub(self.smallest).unwrap_or(Span::ZERO);
        // A bucket of a packet is full again, as it is for the lone one.
        let full = if length == 2 { now + self.service.mul_f64(self.config.repairs) } else { now };
        let first = (now + queued).max(self.last + gone).max(full);
        let mut at = first;
        for place in 0..trains {
            let number = self.trains.len() as u32;
            let leads = self.leads(length);
            if leads > 0 {
                self.plan.push_back((at, leads, Part::Lead(number)));
                at += self.service.mul_f64(self.config.leads);
            }
            self.plan.push_back((at, length, Part::Train(number)));
            self.trains.push((place == 0, length + leads));
            // When the queue of those before is gone, before the bucket fills.
            let sent = (place + 1) * (length + leads);
            let passes = self.fast.unwrap_or(Span::ZERO) * u64::from(sent);
            // A buffer that has room for no more than a train is empty again before the next.
            let takes = if self.room.is_some() { self.service * 2 } else { self.service };
            at = first + passes.max(takes * u64::from(sent.saturating_sub(tokens)));
        }
        // Where a packet takes microseconds, processors do not.
        let alone = at + gone + gone / 2 + self.config.aside;
        self.light_at(alone);
        let alone = alone + self.service.mul_f64(self.config.light) + self.config.aside;
        self.plan.push_back((alone, 1, Part::Calm));
    }
}
