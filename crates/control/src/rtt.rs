//! The smoothed round-trip time of RFC 6298, for transports that have no estimator of their own.

use flowstart_units::Span;

/// Shortest time after which a flow counts as idle; as Linux's smallest timeout.
const LEAST_PATIENCE: Span = Span::from_millis(200);

/// A smoothed round-trip time and its variation (RFC 6298 section 2), without a clock's ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmoothedRtt {
    smoothed: Span,
    variation: Span,
}

impl SmoothedRtt {
    /// After one sample, or none if it is zero.
    #[must_use]
    pub fn new(sample: Span) -> Self {
        Self { smoothed: sample, variation: sample / 2 }
    }

    /// One more sample.
    pub fn take(&mut self, sample: Span) {
        if self.smoothed.is_zero() {
            *self = Self::new(sample);
            return;
        }
        let apart = Span::from_nanos(self.smoothed.as_nanos().abs_diff(sample.as_nanos()));
        self.variation = (self.variation * 3 + apart) / 4;
        self.smoothed = (self.smoothed * 7 + sample) / 8;
    }

    /// The smoothed round-trip time; zero before the first sample.
    #[must_use]
    pub fn smoothed(&self) -> Span {
        self.smoothed
    }

    /// How much it varies; zero before the first sample.
    #[must_use]
    pub fn variation(&self) -> Span {
        self.variation
    }

    /// How long a flow may be silent before it counts as idle: the timeout of RFC 6298, at least
    /// 200 ms.
    #[must_use]
    pub fn patience(&self) -> Span {
        (self.smoothed + self.variation * 4).max(LEAST_PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Span {
        Span::from_millis(n)
    }

    #[test]
    fn the_first_sample_is_taken_whole_and_later_ones_by_an_eighth() {
        let mut rtt = SmoothedRtt::default();
        assert_eq!((rtt.smoothed(), rtt.patience()), (Span::ZERO, ms(200)));
        rtt.take(ms(80));
        assert_eq!((rtt.smoothed(), rtt.variation(), rtt.patience()), (ms(80), ms(40), ms(240)));
        // 3/4 of 40 and 1/4 of 80; 7/8 of 80 and 1/8 of 160.
        rtt.take(ms(160));
        assert_eq!((rtt.smoothed(), rtt.variation()), (ms(90), ms(50)));
        // A shorter one widens the variation too.
        rtt.take(ms(10));
        assert_eq!((rtt.smoothed(), rtt.variation()), (ms(80), Span::from_micros(57_500)));
    }
}
