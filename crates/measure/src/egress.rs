//! What left the bottleneck, and what it is compared with.

use std::sync::Arc;

use flowstart_units::{Bytes, Rate, Span};

use super::moments::Moments;

/// What the measures of one flow are relative to.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// C_f: the max-min fair share of the flow, counted on the wire.
    pub fair_share: Rate,
    /// RTT0: two-way propagation delay and the serialization of one packet.
    pub base_rtt: Span,
    /// H: how long after t = 0 measures look.
    pub horizon: Span,
    /// The fair share of every moment if the capacity changes, [`Self::fair_share`] its mean;
    /// `None` if it does not.
    pub moments: Option<Arc<Moments>>,
}

impl Reference {
    /// Round trips in the default horizon.
    pub const HORIZON_RTTS: u64 = 40;

    /// A reference with the default horizon of 40 RTT0.
    #[must_use]
    pub fn new(fair_share: Rate, base_rtt: Span) -> Self {
        Self { fair_share, base_rtt, horizon: base_rtt * Self::HORIZON_RTTS, moments: None }
    }

    /// B_f = C_f * RTT0 in bytes.
    #[must_use]
    pub fn bdp(&self) -> f64 {
        self.fair_share.as_bps() as f64 / 8.0 * self.base_rtt.as_secs_f64()
    }

    /// What the fair share carries in the RTT0 before `t`, in bytes: B_f, if the capacity does not
    /// change.
    #[must_use]
    pub fn possible_before(&self, t: Span) -> f64 {
        self.moments.as_ref().map_or_else(|| self.bdp(), |moments| moments.before(t, self.base_rtt))
    }

    /// What it carries between two times, over what its mean does; `None` if the capacity does not
    /// change.
    #[must_use]
    pub fn of_mean(&self, from: Span, to: Span) -> Option<f64> {
        let mean = self.fair_share.as_bps() as f64 / 8.0 * (to - from).as_secs_f64();
        self.moments.as_ref().map(|moments| moments.between(from, to) / mean)
    }

    /// H in round trips.
    #[must_use]
    pub fn horizon_rtts(&self) -> f64 {
        self.horizon.ratio(self.base_rtt)
    }
}

/// Bytes that passed a point, in bins of equal width from t = 0 on. Within a bin they are taken to
/// be spread evenly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Egress {
    bin: Span,
    bytes: Vec<u64>,
}

impl Egress {
    /// Empty bins of width `bin` (at least 1 ns) that reach at least up to `end`; `limit` bins at
    /// most.
    #[must_use]
    pub fn new(bin: Span, end: Span, limit: usize) -> Self {
        let bin = bin.max(Span::from_nanos(1));
        let bins = end.as_nanos().div_ceil(bin.as_nanos());
        let bins = usize::try_from(bins).unwrap_or(usize::MAX).min(limit);
        Self { bin, bytes: vec![0; bins] }
    }

    /// Width of a bin.
    #[must_use]
    pub fn bin(&self) -> Span {
        self.bin
    }

    /// Bytes in each bin.
    #[must_use]
    pub fn bytes(&self) -> &[u64] {
        &self.bytes
    }

    /// How far the bins reach.
    #[must_use]
    pub fn end(&self) -> Span {
        self.bin * self.bytes.len() as u64
    }

    /// `bytes` passed at `at` (after t = 0).
    #[inline]
    pub fn add(&mut self, at: Span, bytes: u64) {
        let index = (at.as_nanos() / self.bin.as_nanos()) as usize;
        if let Some(slot) = self.bytes.get_mut(index) {
            *slot += bytes;
        }
    }

    /// `bytes` passed bit by bit from `from` to `to`; each bin gets its share rounded down, the
    /// last one the rest.
    #[inline]
    pub fn spread(&mut self, from: Span, to: Span, bytes: u64) {
        let bin = self.bin.as_nanos();
        let (from, to) = (from.as_nanos(), to.as_nanos());
        let (first, last) = (from / bin, to.saturating_sub(1).max(from) / bin);
        if first == last {
            self.add(Span::from_nanos(from), bytes);
            return;
        }
        let whole = u128::from(to - from);
        let mut left = bytes;
        for index in first..last.min(self.bytes.len() as u64) {
            let part = ((index + 1) * bin).min(to) - (index * bin).max(from);
            let share = (u128::from(bytes) * u128::from(part) / whole) as u64;
            self.bytes[index as usize] += share;
            left -= share;
        }
        if let Some(slot) = self.bytes.get_mut(last as usize) {
            *slot += left;
        }
    }

    /// All that passed before `t`, the whole of the bin that `t` lies in included.
    #[must_use]
    pub fn by(&self, t: Span) -> u64 {
        let bins = usize::try_from(t.as_nanos().div_ceil(self.bin.as_nanos())).unwrap_or(usize::MAX);
        self.bytes.iter().take(bins).sum()
    }

    /// All bytes by the end of each bin: element i is the total at time i * bin, element 0 is zero.
    #[must_use]
    pub fn cumulative(&self) -> Cumulative {
        let mut total = 0_u64;
        let mut totals = Vec::with_capacity(self.bytes.len() + 1);
        totals.push(0);
        totals.extend(self.bytes.iter().map(|bytes| {
            total += bytes;
            total
        }));
        Cumulative { bin: self.bin, totals }
    }
}

/// egress(t) as a function of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cumulative {
    bin: Span,
    totals: Vec<u64>,
}

impl Cumulative {
    /// Bytes by time `t`; what lies past the bins counts as at their end.
    #[must_use]
    pub fn at(&self, t: Span) -> f64 {
        let bin = self.bin.as_nanos();
        let index = (t.as_nanos() / bin) as usize;
        let last = self.totals.len() - 1;
        if index >= last {
            return self.totals[last] as f64;
        }
        let (low, high) = (self.totals[index] as f64, self.totals[index + 1] as f64);
        low + (high - low) * (t.as_nanos() % bin) as f64 / bin as f64
    }

    /// Bytes between two times.
    #[must_use]
    pub fn between(&self, from: Span, to: Span) -> f64 {
        self.at(to) - self.at(from)
    }

    /// First time by which `bytes` have passed, or `None` if they have not.
    #[must_use]
    pub fn time_of(&self, bytes: Bytes) -> Option<Span> {
        let wanted = bytes.get();
        let index = self.totals.partition_point(|total| *total < wanted);
        let high = *self.totals.get(index)?;
        if index == 0 {
            return Some(Span::ZERO);
        }
        let low = self.totals[index - 1];
        let part = self.bin.mul_ratio(wanted - low, high - low);
        Some(self.bin * (index as u64 - 1) + part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_spreads_over_the_bins_it_is_sent_in_and_no_byte_is_lost() {
        let mut egress = Egress::new(Span::from_nanos(100), Span::from_nanos(1000), 1000);
        egress.spread(Span::from_nanos(250), Span::from_nanos(450), 1000);
        assert_eq!(egress.bytes()[2..5], [250, 500, 250]);
        egress.spread(Span::from_nanos(300), Span::from_nanos(400), 7);
        assert_eq!(egress.bytes()[2..5], [250, 507, 250]);
        egress.spread(Span::from_nanos(950), Span::from_nanos(1050), 10);
        assert_eq!(egress.bytes()[9], 5, "what leaves after the last bin is not counted");
        egress.spread(Span::from_nanos(500), Span::from_nanos(500), 3);
        assert_eq!(egress.bytes()[5], 3);
    }

    #[test]
    fn the_total_is_interpolated_within_a_bin() {
        let mut egress = Egress::new(Span::from_nanos(10), Span::from_nanos(30), 100);
        egress.add(Span::from_nanos(15), 100);
        let total = egress.cumulative();
        assert_eq!(total.at(Span::from_nanos(10)), 0.0);
        assert_eq!(total.at(Span::from_nanos(15)), 50.0);
        assert_eq!(total.at(Span::from_secs(1)), 100.0);
        assert_eq!(total.time_of(Bytes::new(25)), Some(Span::from_nanos(12)));
        assert_eq!(total.time_of(Bytes::new(101)), None);
        assert_eq!(total.time_of(Bytes::ZERO), Some(Span::ZERO));
    }

    #[test]
    fn the_number_of_bins_is_limited() {
        assert_eq!(Egress::new(Span::ZERO, Span::MAX, 8).bytes().len(), 8);
    }

    proptest::proptest! {
        #[test]
        fn bytes_are_conserved_however_packets_fall_on_bins(
            packets in proptest::collection::vec((0_u64..900, 0_u64..300, 1_u64..70_000), 0..50), bin in 1_u64..200,
        ) {
            let mut egress = Egress::new(Span::from_nanos(bin), Span::from_nanos(1400), 10_000);
            let mut sum = 0;
            for (from, lasting, bytes) in packets {
                egress.spread(Span::from_nanos(from), Span::from_nanos(from + lasting), bytes);
                sum += bytes;
            }
            proptest::prop_assert_eq!(egress.bytes().iter().sum::<u64>(), sum);
        }
    }
}
