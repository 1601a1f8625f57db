//! How far apart packets of a train arrive: what the bottleneck has for this flow, whether it serves others in turn or mixes them.

use flowstart_units::{Span, Time};

/// Sums over the trains of all batches.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dispersion {
    /// The train of the last packet, and when its ACK came.
    last: Option<(u64, Time)>,
    lasting: Span,
    gaps: u32,
    trains: u32,
}

impl Dispersion {
    /// A batch begins: its trains are counted from 0 again.
    pub(super) fn begin_batch(&mut self) {
        self.last = None;
    }

    /// The packet at this place of the batch, whose trains have `length` packets each, was acknowledged.
    pub(super) fn add(&mut self, now: Time, place: u64, length: u64) {
        let train = place / length.max(1);
        if let Some((known, at)) = self.last
            && known == train
        {
            self.lasting += now.since(at);
            self.gaps += 1;
        }
        self.trains += u32::from((place + 1).is_multiple_of(length.max(1)));
        self.last = Some((train, now));
    }

    /// Time per packet; `None` if fewer gaps than `least` were seen. Of each train so many lone packets were served between its own.
    pub(super) fn per_packet(&self, least: u32, overtaking: u32) -> Option<Span> {
        let packets = self.gaps + self.trains * overtaking;
        (self.gaps >= least).then(|| self.lasting / u64::from(packets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_within_trains_count_and_those_between_them_do_not() {
        let mut dispersion = Dispersion::default();
        for place in 0..20 {
            let at = Time::ZERO + Span::from_millis(place + if place >= 10 { 100 } else { 0 });
            dispersion.add(at, place, 10);
        }
        assert_eq!(dispersion.per_packet(8, 0), Some(Span::from_millis(1)));
        assert_eq!(dispersion.per_packet(8, 2), Some(Span::from_millis(18) / 22));
    }

    #[test]
    fn a_few_gaps_tell_nothing() {
        let mut dispersion = Dispersion::default();
        (0..8).for_each(|place| dispersion.add(Time::ZERO + Span::from_millis(place), place, 10));
        assert_eq!(dispersion.per_packet(8, 0), None);
    }
}
