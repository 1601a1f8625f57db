//! Chirps that were sent and wait for their ACKs. Packets are found by transmission number, never
//! by counting ACKs.

use alloc::vec::Vec;

use alloc::collections::VecDeque;

use flowstart_control::NewMss;
use flowstart_units::{Span, Time};

use super::reading::Point;

/// Most packets of a chirp.
pub(super) const MAX_CHIRP: usize = 256;

/// One packet of a chirp.
#[derive(Clone, Copy, Debug)]
struct Sample {
    sent_at: Time,
    /// [`Span::MAX`] until acknowledged.
    rtt: Span,
    /// True if an ACK told of this packet as its newest: the RTT is the packet's own.
    newest: bool,
}

/// One chirp. Its packets have consecutive transmission numbers.
#[derive(Clone, Copy, Debug)]
struct Chirp {
    /// Counted from 0.
    number: u32,
    /// Transmission number of its first packet.
    first: u64,
    /// Place of its first packet among all samples since the start.
    first_sample: u64,
    /// Packets it is to have; what was sent so far if it was cut short.
    packets: u32,
    sent: u32,
    acked: u32,
    valid: bool,
    /// The load it was sent with, as the schedule gave it.
    load: u64,
    /// How the payload of a full packet has changed since it left.
    change: Option<NewMss>,
}

impl Chirp {
    fn is_complete(&self) -> bool {
        self.acked == self.packets
    }
}

/// A chirp all of whose packets were acknowledged, ready for analysis.
#[derive(Clone, Debug)]
pub struct Measured {
    number: u32,
    sent_at: Time,
    gaps: Vec<u64>,
    delays: Vec<u64>,
    own: Vec<Point>,
    min_rtt: Span,
    load: u64,
}

impl Measured {
    /// Number of the chirp, counted from 0 over all chirps of the flow.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// When its first packet left.
    #[must_use]
    pub fn sent_at(&self) -> Time {
        self.sent_at
    }

    /// Smallest RTT of the chirp.
    #[must_use]
    pub fn min_rtt(&self) -> Span {
        self.min_rtt
    }

    /// Time per packet in ns of the load it was sent with.
    #[must_use]
    pub fn load(&self) -> u64 {
        self.load
    }

    /// Gaps in ns as the packets left; entry 0 is not used.
    #[must_use]
    pub fn gaps(&self) -> &[u64] {
        &self.gaps
    }

    /// Queueing delays in ns above the smallest of the chirp.
    #[must_use]
    pub fn delays(&self) -> &[u64] {
        &self.delays
    }

    /// The packets whose RTT is their own, because an ACK told of them as its newest.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.own
    }

    fn fill<'a>(&mut self, chirp: &Chirp, samples: impl Iterator<Item = &'a Sample> + Clone) {
        // Only differences of delays within the chirp matter, so the chirp's own minimum serves as
        // well as the connection's.
        let base = samples.clone().map(|sample| sample.rtt).min().unwrap_or(Span::ZERO);
        (self.number, self.min_rtt, self.load) = (chirp.number, base, chirp.load);
        // At the same rate in bytes the gaps of larger packets are longer, and so is the queue.
        let scaled = |time: Span| chirp.change.map_or(time.as_nanos(), |change| change.gap(time.as_nanos()));
        let mut before = None;
        self.gaps.clear();
        self.delays.clear();
        self.own.clear();
        let (mut gaps, mut packets) = (0_u64, 0);
        for sample in samples {
            if before.is_none() {
                self.sent_at = sample.sent_at;
            }
            let gap = before.map_or(0, |before| scaled(sample.sent_at.since(before)));
            let delay = scaled(sample.rtt - base);
            self.gaps.push(gap);
            self.delays.push(delay);
            before = Some(sample.sent_at);
            gaps = gaps.saturating_add(gap);
            packets += 1;
            if sample.newest {
                self.own.push(Point { gaps, packets, delay });
                (gaps, packets) = (0, 0);
            }
        }
        // The last packets waited for company that did not come if their ACK is for fewer than
        // others were: their delay is the receiver's timer's.
        let most = self.own.iter().map(|point| point.packets).max();
        if self.own.last().map(|point| point.packets) < most {
            self.own.pop();
        }
    }
}

const NO_MEASURE: Measured = Measured {
    number: 0,
    sent_at: Time::ZERO,
    gaps: Vec::new(),
    delays: Vec::new(),
    own: Vec::new(),
    min_rtt: Span::ZERO,
    load: 0,
};

/// What an acknowledged packet was.
#[derive(Clone, Copy, Debug)]
pub(super) enum Delivered {
    /// Not a packet of a chirp in flight.
    Other,
    /// A packet of this chirp, which is not complete yet.
    Member(u32),
    /// The packet that completed this chirp. If `valid`, [`Flight::measured`] has what it says.
    Completed {
        /// The chirp's number, counted from 0.
        chirp: u32,
        /// False if the chirp says nothing.
        valid: bool,
    },
}

/// All chirps in flight.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    chirps: VecDeque<Chirp>,
    /// The packets of all chirps in `chirps`, one after the other.
    samples: VecDeque<Sample>,
    /// Samples of chirps that are no longer in flight.
    retired: u64,
    /// The last chirp that was completed and valid.
    measured: Measured,
}

impl Flight {
    pub(super) fn new() -> Self {
        Self { chirps: VecDeque::new(), samples: VecDeque::new(), retired: 0, measured: NO_MEASURE }
    }

    /// The last chirp that was completed and valid.
    pub(super) fn measured(&self) -> &Measured {
        &self.measured
    }

    /// Nothing is in flight any more; what was measured last stays known.
    pub(super) fn clear(&mut self) {
        (self.chirps, self.samples, self.retired) = (VecDeque::new(), VecDeque::new(), 0);
    }

    /// A chirp begins with this packet.
    pub(super) fn begin(&mut self, number: u32, packets: u32, first: u64, load: u64) {
        let first_sample = self.retired + self.samples.len() as u64;
        let (sent, acked, valid, change) = (0, 0, true, None);
        self.chirps.push_back(Chirp { number, first, first_sample, packets, sent, acked, valid, load, change });
    }

    /// A full packet has another payload from now on. What chirps in flight say is read as chirps
    /// of such packets, at the same rates in bytes, would have said it. A chirp whose packets have
    /// not all left is of both sizes and says nothing.
    pub(super) fn on_mss(&mut self, change: NewMss) {
        for chirp in &mut self.chirps {
            chirp.valid &= chirp.sent == chirp.packets;
            chirp.load = change.gap(chirp.load);
            chirp.change = Some(chirp.change.map_or(change, |before| before.then(change)));
        }
    }

    /// The next packet of the newest chirp left.
    pub(super) fn sent(&mut self, sent_at: Time) {
        if let Some(chirp) = self.chirps.back_mut() {
            chirp.sent += 1;
            self.samples.push_back(Sample { sent_at, rtt: Span::MAX, newest: false });
        }
    }

    /// The newest chirp says nothing.
    pub(super) fn void(&mut self) {
        if let Some(chirp) = self.chirps.back_mut() {
            chirp.valid = false;
        }
    }

    /// The newest chirp ends with what was sent of it, and says nothing.
    pub(super) fn cut_short(&mut self) {
        if let Some(chirp) = self.chirps.back_mut() {
            chirp.packets = chirp.sent;
            chirp.valid = false;
        }
    }

    /// A packet was acknowledged at `now`.
    pub(super) fn acked(&mut self, now: Time, number: u64, rtt: Option<Span>) -> Delivered {
        let after = self.chirps.partition_point(|chirp| chirp.first <= number);
        let Some(index) = after.checked_sub(1) else { return Delivered::Other };
        let chirp = &mut self.chirps[index];
        let place = number - chirp.first;
        if place >= u64::from(chirp.sent) {
            return Delivered::Other;
        }
        let start = (chirp.first_sample - self.retired) as usize;
        let end = start + chirp.sent as usize;
        let sample = &mut self.samples[start + place as usize];
        if sample.rtt == Span::MAX {
            chirp.acked += 1;
            // Without an RTT the chirp says nothing; the packet counts as delivered all the same.
            chirp.valid &= rtt.is_some();
            sample.rtt = rtt.unwrap_or(Span::ZERO);
            // All packets of an ACK come with the RTT of the newest; only for that one it leads
            // back to when it left.
            sample.newest = now.since(sample.sent_at) <= sample.rtt;
        }
        if !chirp.is_complete() {
            return Delivered::Member(chirp.number);
        }
        let completed = Delivered::Completed { chirp: chirp.number, valid: chirp.valid };
        if chirp.valid {
            self.measured.fill(chirp, self.samples.range(start..end));
        }
        // Older chirps that are still incomplete lost a packet: they say nothing.
        self.chirps.drain(..=index);
        self.samples.drain(..end);
        self.retired += end as u64;
        completed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A receiver that acknowledges every second packet waits with the ninth until its timer fires.
    #[test]
    fn a_last_packet_whose_ack_waited_for_another_tells_nothing_of_the_queue() {
        let sent_at = |k: u64| Time::ZERO + Span::from_millis(k);
        let mut flight = Flight::new();
        flight.begin(0, 9, 0, 1);
        (0..9).for_each(|k| flight.sent(sent_at(k)));
        for pair in 0..4 {
            let newest = 2 * pair + 1;
            let now = sent_at(newest) + Span::from_millis(20);
            for number in [newest - 1, newest] {
                assert!(matches!(flight.acked(now, number, Some(Span::from_millis(20))), Delivered::Member(0)));
            }
        }
        let timer = Span::from_millis(60);
        assert!(matches!(flight.acked(sent_at(8) + timer, 8, Some(timer)), Delivered::Completed { valid: true, .. }));
        let points = flight.measured().points();
        assert_eq!(points.len(), 4);
        assert!(points.iter().all(|point| point.packets == 2 && point.delay == 0), "{points:?}");
    }

    /// Packets of 1200 bytes with gaps of 1 ms that meet a link of a packet per 1.2 ms say of
    /// packets of 1800, had they left with gaps of 1.5 ms, that it takes 1.8 ms for one.
    #[test]
    fn a_chirp_that_left_before_packets_became_larger_is_read_at_the_same_rate_in_bytes() {
        let mut flight = Flight::new();
        let sent_at = |k: u64| Time::ZERO + Span::from_millis(k);
        flight.begin(0, 5, 0, 3_000_000);
        (0..5).for_each(|k| flight.sent(sent_at(k)));
        // In two steps, as a search of the MTU takes them.
        flight.on_mss(NewMss::new(1200, 1500));
        flight.on_mss(NewMss::new(1500, 1800));
        for k in 0..5 {
            let rtt = Span::from_millis(20) + Span::from_micros(200) * k;
            flight.acked(sent_at(k) + rtt, k, Some(rtt));
        }
        let measured = flight.measured();
        assert_eq!(measured.gaps(), [0, 1_500_000, 1_500_000, 1_500_000, 1_500_000]);
        assert_eq!(measured.delays(), [0, 300_000, 600_000, 900_000, 1_200_000]);
        assert_eq!((measured.load(), measured.min_rtt()), (4_500_000, Span::from_millis(20)));
    }

    #[test]
    fn a_chirp_of_packets_of_both_sizes_says_nothing_and_the_next_one_is_read_as_it_left() {
        let sent_at = |k: u64| Time::ZERO + Span::from_millis(k);
        let rtt = Span::from_millis(20);
        let mut flight = Flight::new();
        flight.begin(0, 3, 0, 1);
        (0..2).for_each(|k| flight.sent(sent_at(k)));
        flight.on_mss(NewMss::new(1200, 1800));
        flight.sent(sent_at(2));
        flight.begin(1, 3, 3, 7);
        (3..6).for_each(|k| flight.sent(sent_at(k)));
        let mut completed = |k| flight.acked(sent_at(k) + rtt, k, Some(rtt));
        (0..2).for_each(|k| assert!(matches!(completed(k), Delivered::Member(0))));
        assert!(matches!(completed(2), Delivered::Completed { chirp: 0, valid: false }));
        (3..5).for_each(|k| assert!(matches!(completed(k), Delivered::Member(1))));
        assert!(matches!(completed(5), Delivered::Completed { chirp: 1, valid: true }));
        assert_eq!((flight.measured().gaps(), flight.measured().load()), (&[0, 1_000_000, 1_000_000][..], 7));
    }
}
