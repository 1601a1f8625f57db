//! The first packets of a look, and what any train says before its rate is read: how far packets
//! are apart, how many pass at once, and how long they wait.

use flowstart_congestion::Acked;
use flowstart_units::{Bytes, Rate, Span, Time};

use super::bucket::drained;
use super::outage::Outage;
use super::{Look, LookStage, PAIR, Packet};

impl Look {
    /// The longest RTT of a packet that was acknowledged at once; zero before the first.
    pub(super) fn largest(&self) -> Span {
        self.rtts.iter().flatten().map(|(_, rtt)| *rtt).max().unwrap_or(Span::ZERO)
    }

    /// The longest queue that a packet met while another of its connection met one nearly as long:
    /// of an ACK that was lost another may tell late, for one packet. What waited for the path to
    /// come back met none.
    pub(super) fn queue(&self, outages: &[Outage]) -> Span {
        let queue = |rtt: Span| rtt.checked_sub(self.smallest).unwrap_or(Span::ZERO);
        let seen = |all: &[(Time, Span)], place: usize| {
            let (at, rtt) = all[place];
            let alone = queue(rtt).checked_sub(self.service.mul_f64(self.config.met_packets)).unwrap_or(Span::ZERO);
            let least = alone.min(queue(rtt).mul_f64(self.config.met));
            let meets = |(other, (until, took)): (usize, &(Time, Span))| {
                other != place && *until + rtt > at && at + *took > *until && queue(*took) >= least
            };
            all.iter().enumerate().any(meets)
        };
        let longest = |all: &Vec<(Time, Span)>| {
            let all: Vec<(Time, Span)> =
                all.iter().copied().filter(|(at, rtt)| !self.waited(outages, *at, *rtt)).collect();
            (0..all.len()).filter(|place| seen(&all, *place)).map(|place| queue(all[place].1)).max()
        };
        self.rtts.iter().filter_map(longest).max().unwrap_or(Span::ZERO)
    }

    /// What was queued arrives before that is over.
    pub(super) fn patience(&self) -> Span {
        self.largest().mul_f64(self.config.patience)
    }

    /// A packet of a pair, or one sent in its place, was delivered.
    pub(super) fn on_pair(&mut self, acked: &Acked, count: u32, first: u64) {
        if acked.number + 1 < first + PAIR {
            return;
        }
        let arrived = |number: u64| self.packets.iter().find(|it| it.number == number).and_then(|it| it.acked);
        if let (Some(one), Some(other)) = (arrived(first), arrived(first + 1))
            && other > one
        {
            self.service = other.since(one);
        }
        self.pair_over(acked.now, count);
    }

    /// All of a pair arrived, or was waited for.
    pub(super) fn pair_over(&mut self, now: Time, count: u32) {
        if self.service.is_zero() {
            // The second of an earlier one may have come since.
            self.service = self.parted().unwrap_or(Span::ZERO);
        }
        let known = !self.service.is_zero() && self.service <= self.config.slow;
        if !known && count < self.config.pairs {
            self.stage = LookStage::Pairs(count + 1, self.next());
            return;
        }
        // Nothing of full size arrived in so many tries, but what was sent in its place: smaller.
        if self.smallest == Span::MAX {
            self.stage = LookStage::Over;
            return;
        }
        match known && self.settling() >= u64::from(self.config.least_settling) {
            true => self.stage = LookStage::Settling(self.next()),
            false => self.detect(now),
        }
    }

    /// True if the first packet of a pair arrived, and the second did not.
    fn half(&self, first: u64) -> bool {
        let came = |number: u64| self.packets.iter().any(|it| it.number == number && it.acked.is_some());
        came(first) && !came(first + 1)
    }

    /// How far the packets of a pair arrived apart at the most.
    fn parted(&self) -> Option<Span> {
        let full = |packet: &Packet| u64::from(packet.bytes) * 10 >= u64::from(self.packet) * 9;
        let apart = |pair: &[Packet]| Some(pair.get(1)?.acked?.since(pair.first()?.acked?));
        let pairs = self.packets.chunks(PAIR as usize).take(self.config.pairs as usize);
        pairs.filter(|pair| pair.iter().all(full)).filter_map(apart).max()
    }

    /// Packets of the train that follows a pair.
    pub(super) fn settling(&self) -> u64 {
        let fits = self.config.queue.as_nanos() / self.service.as_nanos().max(1);
        fits.min(u64::from(self.config.settling))
    }

    /// All of the train that follows a pair arrived, or was waited for. What was sent in place of
    /// its packets is not of it.
    pub(super) fn settled(&mut self, first: u64, now: Time) {
        let end = first + self.settling();
        self.settled = Some(first..end);
        self.settle(first, end);
        self.saved = self.passes_at_once();
        self.detect(now);
    }

    /// How many packets passed before others waited for what fills a bucket: as many as are enough
    /// to empty it, as far as it was seen to. Of one that is large (`fast`) this is not asked.
    pub(super) fn passes_at_once(&self) -> u32 {
        if self.service.is_zero() {
            return 1;
        }
        let full = u64::from(self.packet);
        let bucket = drained(&self.arrivals(), Rate::of(Bytes::new(full), self.service).as_bps());
        // What is left behind them, and comes until the next, is less than a packet.
        let left = (1.0 - self.config.leads).max(0.0) / 2.0;
        ((bucket as f64 / full as f64 - left).ceil() as u32).clamp(1, self.config.most_leads.max(1))
    }

    /// Whether a buffer was full behind the first packets of a train. Losses by chance are not all
    /// at its end.
    pub(super) fn fill(&mut self, first: u64, end: u64) {
        let train = self.packets.iter().filter(|packet| (first..end).contains(&packet.number));
        let train: Vec<bool> = train.map(|packet| packet.acked.is_some()).collect();
        // What others overtake is not lost, and may be the last.
        if self.overtaken || train.last().is_none_or(|arrived| *arrived) {
            return;
        }
        let Some(passed) = train.iter().position(|arrived| !arrived) else { return };
        let lost = train[passed..].iter().filter(|arrived| !**arrived).count() as u32;
        let rest = train.len() - passed;
        let passed = passed as u32;
        if lost < self.config.least_full || f64::from(lost) < rest as f64 * self.config.full_share {
            return;
        }
        // Few may be chance, but not twice at the same place.
        let again = self.ends_lost.iter().any(|other| other.abs_diff(passed) <= 1);
        self.ends_lost.push(passed);
        if lost >= self.config.full || again {
            self.room = Some(self.room.map_or(passed, |room| room.min(passed)));
        }
    }

    /// Packets of a train, from one number to another, may have arrived slower at its end than the
    /// path was taken for. The middle one of their distances says how much: some hosts stand still
    /// for a moment, and some merge ACKs.
    pub(super) fn settle(&mut self, first: u64, end: u64) {
        self.fill(first, end);
        let packets = self.packets.iter().filter(|packet| (first..end).contains(&packet.number));
        let mut arrived: Vec<Time> = packets.filter_map(|packet| packet.acked).collect();
        arrived.sort_unstable();
        let (early, late) = arrived.split_at(arrived.len() / 2);
        let middle = |times: &[Time]| {
            let mut apart: Vec<Span> = times.windows(2).map(|two| two[1].since(two[0])).collect();
            apart.sort_unstable();
            apart.get(apart.len() / 2).copied()
        };
        if let Some(late) = middle(late)
            && late > self.service.mul_f64(self.config.slower)
        {
            // A pair alone is no evidence of a bucket: its ACKs may have come closer together.
            let before = middle(early).filter(|early| late > early.mul_f64(self.config.slower));
            let before = before.or((!self.trains.is_empty()).then_some(self.service));
            self.fast = self.fast.or(before);
            (self.service, self.slower) = (late, true);
        }
    }

    /// When those of the first packets that have not arrived are taken for lost.
    pub(super) fn missing(&self) -> Time {
        if self.smallest == Span::MAX {
            return Time::NEVER;
        }
        let arrived = self.ways.iter().map(|(_, arrived, _)| *arrived).max().unwrap_or(Time::ZERO);
        let patience = match self.stage {
            LookStage::Pairs(_, first) if self.half(first) => self.patience().max(self.config.unheard),
            _ => self.patience(),
        };
        self.last.max(arrived) + patience + self.service * self.config.later
    }

    /// Whether all of them have left.
    pub(super) fn all_left(&self) -> bool {
        match &self.stage {
            LookStage::Pairs(_, first) => self.next() >= first + PAIR,
            LookStage::Settling(first) => self.next() >= first + self.settling(),
            _ => true,
        }
    }
}
