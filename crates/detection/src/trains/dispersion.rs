//! How far apart packets of a train arrive: what the bottleneck has for this flow, whether it
//! serves others in turn or mixes them.

use flowstart_units::{Span, Time};

/// Sums over the trains of all batches.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dispersion {
    /// The train of the last packet, and when its ACK came.
    last: Option<(u64, Time)>,
    /// Time between packets of that train, and how often.
    current: (Span, u32),
    /// The same of trains whose last packet arrived: in turns of several packets a part of one
    /// would tell too much or too little.
    lasting: Span,
    gaps: u32,
    trains: u32,
}

impl Dispersion {
    /// A batch begins: its trains are counted from 0 again.
    pub(super) fn begin_batch(&mut self) {
        self.last = None;
    }

    /// A packet of this train was acknowledged, perhaps its `last` one.
    pub(super) fn add(&mut self, now: Time, train: u64, last: bool) {
        match self.last {
            Some((known, at)) if known == train => {
                self.current.0 += now.since(at);
                self.current.1 += 1;
            }
            _ => self.current = (Span::ZERO, 0),
        }
        if last {
            self.lasting += self.current.0;
            self.gaps += self.current.1;
            self.trains += 1;
            self.current = (Span::ZERO, 0);
        }
        self.last = Some((train, now));
    }

    /// Time per packet of all trains, whether they arrived whole or not; `None` as long as none has
    /// two packets that arrived.
    pub(super) fn of_all(&self) -> Option<Span> {
        let gaps = self.gaps + self.current.1;
        (gaps > 0).then(|| (self.lasting + self.current.0) / u64::from(gaps))
    }

    /// Time per packet; `None` if fewer gaps than `least` were seen. Of each train lone packets
    /// that took so long were served between its own: without them it would have been over earlier
    /// by that.
    pub(super) fn per_packet(&self, least: u32, overtaking: Span) -> Option<Span> {
        let own = self.lasting - overtaking * u64::from(self.trains);
        (self.gaps >= least.max(1)).then(|| own / u64::from(self.gaps))
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
            dispersion.add(at, place / 10, place % 10 == 9);
        }
        assert_eq!(dispersion.per_packet(8, Span::ZERO), Some(Span::from_millis(1)));
        assert_eq!(dispersion.per_packet(8, Span::from_micros(900)), Some(Span::from_micros(900)));
    }

    #[test]
    fn a_few_gaps_and_a_train_that_is_not_over_tell_nothing() {
        let mut dispersion = Dispersion::default();
        let mut add = |place: u64| {
            dispersion.add(Time::ZERO + Span::from_millis(place), 0, place == 8);
            (dispersion.per_packet(8, Span::ZERO), dispersion.per_packet(9, Span::ZERO))
        };
        assert!((0..8).all(|place| add(place) == (None, None)));
        assert_eq!(add(8), (Some(Span::from_millis(1)), None));
    }
}
