//! What a new flow is guaranteed from its first moment on.

use flowstart_units::{Rate, Span};

use crate::stats::lower_rank;
use crate::{Error, Probability};

/// The start-up service curve S0(t): of independent connections that always have data, all but a
/// fraction epsilon have delivered at least S0(t) bits after t, for every t by itself.
///
/// No stationarity is needed, nor is it assumed that the flow control is linear; in return nothing
/// is said about several times together.
#[derive(Clone, Debug, PartialEq)]
pub struct StartupCurve {
    times: Vec<Span>,
    bits: Vec<u64>,
    median: Vec<u64>,
    connections: usize,
}

impl StartupCurve {
    /// The curve at `times` (increasing) from what each connection had delivered by each of them,
    /// in bits.
    ///
    /// # Errors
    /// [`Error::TooFew`] without connections, [`Error::UnequalReplicas`] if one does not have a
    /// value for every time, [`Error::OutOfOrder`] if the times do not increase.
    pub fn new(times: &[Span], delivered: &[Vec<u64>], epsilon: Probability) -> Result<Self, Error> {
        if let Some(index) = times.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(Error::OutOfOrder(index + 1));
        }
        if let Some((which, wrong)) = delivered.iter().enumerate().find(|(_, one)| one.len() != times.len()) {
            return Err(Error::UnequalReplicas(which, wrong.len(), times.len()));
        }
        let half = Probability::HALF;
        let (Some(rank), Some(middle)) = (lower_rank(delivered.len(), epsilon), lower_rank(delivered.len(), half))
        else {
            return Err(Error::TooFew(0, 1));
        };
        let at = |index: usize| {
            let mut all: Vec<u64> = delivered.iter().map(|one| one[index]).collect();
            all.sort_unstable();
            (all[rank - 1], all[middle - 1])
        };
        let (bits, median) = (0..times.len()).map(at).unzip();
        Ok(Self { times: times.to_vec(), bits, median, connections: delivered.len() })
    }

    /// The times and S0 at them, bits.
    pub fn points(&self) -> impl Iterator<Item = (Span, u64)> + '_ {
        self.times.iter().copied().zip(self.bits.iter().copied())
    }

    /// The same for half of the connections instead of all but epsilon: what is usual, beside what
    /// is guaranteed.
    pub fn median_points(&self) -> impl Iterator<Item = (Span, u64)> + '_ {
        self.times.iter().copied().zip(self.median.iter().copied())
    }

    /// How many connections the curve was made from.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections
    }

    /// S0(t), bits: that of the last time that is not later.
    #[must_use]
    pub fn service(&self, t: Span) -> u64 {
        self.times.partition_point(|time| *time <= t).checked_sub(1).map_or(0, |index| self.bits[index])
    }

    /// S0(t) / t: the mean rate that a new flow has at least in its first t.
    #[must_use]
    pub fn attainable_rate(&self, t: Span) -> Rate {
        if t.is_zero() {
            return Rate::ZERO;
        }
        Rate::from_bps((self.service(t) as f64 / t.as_secs_f64()) as u64)
    }

    /// The delay bound of a job of so many bits handed over at once at the start: the first of the
    /// times at which S0 is as much. `None` if the curve ends before.
    #[must_use]
    pub fn inverse(&self, bits: u64) -> Option<Span> {
        self.points().find(|(_, served)| *served >= bits).map(|(time, _)| time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(epsilon: f64) -> StartupCurve {
        let times: Vec<Span> = [10, 20, 40].map(Span::from_millis).to_vec();
        // Connection n of ten delivers n, 10 n and 100 n bits.
        let delivered: Vec<Vec<u64>> = (1..=10).rev().map(|n| vec![n, 10 * n, 100 * n]).collect();
        StartupCurve::new(&times, &delivered, Probability::new(epsilon).unwrap()).unwrap()
    }

    #[test]
    fn all_but_a_fraction_epsilon_deliver_at_least_the_curve() {
        assert_eq!(curve(0.0).points().map(|(_, bits)| bits).collect::<Vec<_>>(), vec![1, 10, 100]);
        assert_eq!(curve(0.1).points().map(|(_, bits)| bits).collect::<Vec<_>>(), vec![2, 20, 200]);
        assert_eq!(curve(0.0).median_points().map(|(_, bits)| bits).collect::<Vec<_>>(), vec![6, 60, 600]);
        assert_eq!(curve(0.0).connections(), 10);
    }

    #[test]
    fn between_two_times_the_earlier_holds() {
        let curve = curve(0.0);
        let ms = Span::from_millis;
        assert_eq!([0, 9, 10, 39, 40, 99].map(|t| curve.service(ms(t))), [0, 0, 1, 10, 100, 100]);
        assert_eq!(curve.attainable_rate(ms(20)).as_bps(), 500);
        assert_eq!(curve.attainable_rate(Span::ZERO), Rate::ZERO);
        assert_eq!(curve.inverse(11), Some(ms(40)));
        assert_eq!(curve.inverse(101), None);
    }

    #[test]
    fn unequal_or_absent_connections_are_refused() {
        let times = [Span::ZERO, Span::from_secs(1)];
        let new = |times: &[Span], delivered: &[Vec<u64>]| StartupCurve::new(times, delivered, Probability::ZERO);
        assert_eq!(new(&times, &[]), Err(Error::TooFew(0, 1)));
        assert_eq!(new(&[times[1], times[0]], &[vec![0, 1]]), Err(Error::OutOfOrder(1)));
        assert!(new(&[times[1]; 2], &[vec![0, 1]]).is_ok(), "the same time twice");
        assert_eq!(new(&times, &[vec![0, 1], vec![0]]), Err(Error::UnequalReplicas(1, 1, 2)));
        assert_eq!(new(&[times[1], times[0]], &[vec![0, 1]]), Err(Error::OutOfOrder(1)));
    }
}
