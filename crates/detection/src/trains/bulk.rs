//! Whether the two connections meet, where noise hides it packet by packet: a train alone, and one
//! like it while connection 1 sends one, too. One link serves both in turn, so that the second
//! takes longer; on ways of their own it takes as long as the first.

use flowstart_units::{Span, Time};

use super::config::MeetingConfig;

/// The arrivals of a train.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage {
    first: Time,
    /// The last ACK, and packets behind the first one up to it.
    last: (Time, u32),
    /// The same of the ACK before.
    before: (Time, u32),
}

impl Passage {
    /// A packet arrived, the first one or another.
    pub(super) fn add(passage: Option<Self>, now: Time) -> Self {
        let Some(Self { first, last, before }) = passage else {
            return Self { first: now, last: (now, 0), before: (now, 0) };
        };
        if now == first {
            return Self { first, last, before };
        }
        let before = if now == last.0 { before } else { last };
        Self { first, last: (now, last.1 + 1), before }
    }

    /// Time per packet up to the last ACK but one: the receiver may hold back the last one until
    /// the next train comes. `None` if too few came.
    fn per_packet(&self) -> Option<(Span, u32)> {
        let (at, packets) = self.before;
        (packets > 0).then(|| (at.since(self.first) / u64::from(packets), packets))
    }
}

/// What trains beside each other told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bulk {
    /// For each number of others the logarithm of how many times likelier it is than that both
    /// have ways of their own.
    log_odds: [f64; 4],
}

impl Bulk {
    /// A train took its time alone and another one beside one of connection 1, with arrivals that
    /// are uncertain by `jitter`.
    pub(super) fn add(&mut self, alone: Passage, beside: Passage, jitter: Span, config: &MeetingConfig) {
        let (Some((alone, some)), Some((beside, others))) = (alone.per_packet(), beside.per_packet()) else { return };
        let packets = f64::from(some.min(others));
        let [alone, beside] = [alone, beside].map(|per_packet| per_packet.as_secs_f64() * packets);
        let width = jitter.as_secs_f64() * config.bulk_jitters + alone * config.bulk_width;
        if width <= 0.0 {
            return;
        }
        let density = |distance: f64| {
            let distance = distance / width;
            libm::exp(-0.5 * distance * distance).max(config.bulk_outlier)
        };
        let longer = beside - alone;
        let apart = density(longer.max(0.0));
        for (log_odds, others) in self.log_odds.iter_mut().zip(1_u32..) {
            let turn = alone / f64::from(others);
            // Nothing speaks against one link if it is longer by more.
            *log_odds += libm::log(density((turn - longer).max(0.0)) / apart);
        }
    }

    /// How many times likelier what was seen is if both meet, as a logarithm.
    pub(super) fn log_odds(&self, config: &MeetingConfig) -> f64 {
        let beliefs = self.log_odds.iter().zip(config.bulk_others);
        libm::log(beliefs.map(|(log_odds, belief)| belief * libm::exp(*log_odds)).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TrainProbeConfig;

    fn passage(micros: impl Iterator<Item = u64>) -> Passage {
        let at = |micros: u64| Time::ZERO + Span::from_micros(micros);
        micros.fold(None, |passage, micros| Some(Passage::add(passage, at(micros)))).unwrap()
    }

    /// Two trains of twenty packets, one of a packet per millisecond.
    fn after(beside: u64, jitter: u64, times: u32) -> f64 {
        let config = TrainProbeConfig::default().meeting;
        let mut bulk = Bulk::default();
        for _ in 0..times {
            let [alone, beside] = [1000, beside].map(|gap| passage((0..20).map(|place| place * gap)));
            bulk.add(alone, beside, Span::from_millis(jitter), &config);
        }
        bulk.log_odds(&config)
    }

    #[test]
    fn how_many_others_are_expected_is_a_constant() {
        // A train that took a quarter longer is what four others in turn make of it.
        let mut bulk = Bulk::default();
        let [alone, beside] = [1000, 1250].map(|gap| passage((0..20).map(|place| place * gap)));
        let config = TrainProbeConfig::default().meeting;
        bulk.add(alone, beside, Span::ZERO, &config);
        let odds = |bulk_others| bulk.log_odds(&MeetingConfig { bulk_others, ..config });
        let [one, usual, four] = [[1.0, 0.0, 0.0, 0.0], config.bulk_others, [0.0, 0.0, 0.0, 1.0]].map(odds);
        assert!(one < usual && usual < four, "{one} {usual} {four}");
    }

    /// ln((1 - 0.002) / 0.002).
    const ENOUGH: f64 = 6.212;

    #[test]
    fn the_last_ack_does_not_count_as_it_may_have_been_held_back() {
        let train = passage([0, 0, 1000, 2000, 3000, 9000].into_iter());
        assert_eq!(train.per_packet(), Some((Span::from_millis(1), 3)));
        // All of an ACK arrived with it.
        let merged = passage([0, 0, 4000, 4000, 8000, 8000, 30_000].into_iter());
        assert_eq!(merged.per_packet(), Some((Span::from_millis(2), 4)));
        assert_eq!(passage([0, 0, 1000].into_iter()).per_packet(), None);
        // The last one is for two.
        let two = passage([0, 1000, 2000, 3000, 3000].into_iter());
        assert_eq!(two.per_packet(), Some((Span::from_millis(1), 2)));
    }

    #[test]
    fn a_train_that_takes_twice_as_long_beside_another_met_it_and_one_that_does_not_has_its_own_way() {
        // Once is not enough, whatever the difference.
        assert!(after(2000, 0, 1) > 5.0 && after(2000, 0, 1) < ENOUGH);
        assert!(after(2000, 0, 2) > ENOUGH && after(2000, 2, 2) > ENOUGH);
        assert!(after(1000, 2, 1) < 0.0);
        assert!(after(1000, 2, 3) < -ENOUGH);
        // Nor has one that is faster beside another, however much.
        assert!(after(500, 0, 1) > -ENOUGH && after(500, 0, 2) < -ENOUGH);
    }

    #[test]
    fn beside_others_it_takes_longer_by_a_turn_and_more_trains_tell() {
        assert!(after(1500, 1, 1) > 0.0 && after(1500, 1, 2) > ENOUGH);
        assert!(after(1333, 1, 1) < ENOUGH && after(1333, 1, 3) > ENOUGH);
        // What others make of it on ways of their own is no turn.
        assert!(after(1100, 1, 3) < 0.0 && after(900, 1, 3) < -ENOUGH);
    }

    #[test]
    fn jitter_as_long_as_the_train_hides_it() {
        assert!(after(1000, 40, 1).abs() < 0.5 && after(2000, 40, 1).abs() < 1.0);
    }
}
