//! A trial of a higher rate. Where the path's noise hides how long the queue is, the rate may stand
//! below what was delivered before, and no delay tells whether the path carries less now or the
//! noise is longer. What is delivered does: up to twice as much is sent for one round trip, and if
//! it arrives the delay was not the queue's.

use flowstart_units::Rate;

use super::config::DelayTargetConfig;

/// Where a trial is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// None is under way.
    Idle,
    /// Packets leave at the higher rate, the second; the first is that of before.
    Offered(Rate, Rate),
    /// They have left; ACKs of this round tell what became of them.
    Awaited(Rate, Rate),
}

/// Trials of a higher rate, and what became of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    step: Step,
    /// Rounds at a low rate without a trial.
    low: u32,
    /// Rounds in a row at a rate that is not low.
    high: u32,
    /// Times `trial_rounds` that it waits for the next one: a path that carries no more is left
    /// alone.
    patience: u32,
    /// Trials in a row of which what was sent was delivered, since the rate was not low.
    followed: u32,
}

impl Trial {
    pub(super) fn new() -> Self {
        Self { step: Step::Idle, low: 0, high: 0, patience: 1, followed: 0 }
    }

    /// Trials in a row whose packets were delivered as fast as they were sent.
    pub(super) fn followed(&self) -> u32 {
        self.followed
    }

    /// True while packets leave at the rate of a trial.
    pub(super) fn is_offered(&self) -> bool {
        matches!(self.step, Step::Offered(..))
    }

    /// A round trip at `rate` is over in which this was delivered and `lost` of it congested; the
    /// path was seen to deliver `peak`. The rate for the next one if a trial decides on it.
    pub(super) fn on_round(
        &mut self,
        config: &DelayTargetConfig,
        (rate, delivery, peak): (Rate, Rate, Rate),
        lost: f64,
    ) -> Option<Rate> {
        let is_low = rate < peak.mul_f64(config.trial_share);
        match self.step {
            Step::Idle if config.trial_rounds == 0 => None,
            Step::Idle if !is_low => {
                self.high += 1;
                self.low = 0;
                if self.high >= config.trial_rounds {
                    *self = Self::new();
                }
                None
            }
            Step::Idle => {
                (self.low, self.high) = (self.low + 1, 0);
                (self.low >= config.trial_rounds.saturating_mul(self.patience)).then(|| {
                    // What was never delivered is not to be found out.
                    let offered = rate.mul_f64(config.trial_factor).min(peak);
                    (self.low, self.step) = (0, Step::Offered(rate, offered));
                    offered
                })
            }
            Step::Offered(from, offered) => {
                self.step = Step::Awaited(from, offered);
                Some(from)
            }
            Step::Awaited(from, offered) => {
                self.step = Step::Idle;
                let least = Rate::from_bps(from.as_bps().midpoint(offered.as_bps()));
                if delivery >= least && lost <= config.loss_threshold {
                    self.followed += 1;
                    return Some(delivery.min(offered));
                }
                // The path carries no more: another flow may have come.
                (self.followed, self.patience) = (0, self.patience.saturating_mul(2).min(config.trial_patience));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEAK: Rate = Rate::from_mbps(60);

    /// A control that stands at 10 Mbit/s where 60 were delivered before, over a path that delivers
    /// no more than `carries`: the rates of so many rounds, and how many trials followed.
    fn rates(carries: Rate, rounds: u32) -> (Vec<u64>, u32) {
        rates_with(&DelayTargetConfig::default(), carries, rounds)
    }

    fn rates_with(config: &DelayTargetConfig, carries: Rate, rounds: u32) -> (Vec<u64>, u32) {
        let (mut trial, low) = (Trial::new(), Rate::from_mbps(10));
        // What is delivered in a round was sent in the one before.
        let (mut before, mut rate) = (low, low);
        let rates = (0..rounds).map(|_| {
            let delivery = before.min(carries);
            before = rate;
            rate = trial.on_round(config, (rate, delivery, PEAK), 0.0).unwrap_or(low);
            rate.as_bps() / 1_000_000
        });
        (rates.collect(), trial.followed())
    }

    #[test]
    fn after_eight_low_rounds_twice_the_rate_is_sent_for_one_and_it_counts_if_it_is_delivered() {
        let (sent, followed) = rates(Rate::from_mbps(15), 10);
        assert_eq!((sent, followed), (vec![10, 10, 10, 10, 10, 10, 10, 20, 10, 15], 1));
        let (sent, followed) = rates(PEAK, 10);
        assert_eq!((sent[9], followed), (20, 1));
    }

    #[test]
    fn a_path_that_carries_no_more_is_tried_less_and_less_often() {
        let trials = |trial_patience| {
            let config = DelayTargetConfig { trial_patience, ..DelayTargetConfig::default() };
            let (sent, followed) = rates_with(&config, Rate::from_mbps(14), 650);
            assert_eq!(followed, 0);
            (0..650).filter(|round| sent[*round] == 20).collect::<Vec<usize>>()
        };
        assert_eq!(trials(16), [7, 25, 59, 125, 255, 385, 515, 645]);
        assert_eq!(trials(2)[..4], [7, 25, 43, 61]);
    }

    #[test]
    fn a_rate_that_is_not_low_forgets_trials_and_losses_are_no_delivery() {
        let config = DelayTargetConfig::default();
        let mut trial = Trial::new();
        let low = Rate::from_mbps(10);
        let round = |trial: &mut Trial, delivery, lost| trial.on_round(&config, (low, delivery, PEAK), lost);
        let one = |trial: &mut Trial, lost| {
            while round(trial, low, 0.0).is_none() {}
            assert_eq!(round(trial, low, 0.0), Some(low));
            round(trial, Rate::from_mbps(20), lost)
        };
        assert_eq!((one(&mut trial, 0.03), trial.followed()), (None, 0));
        assert_eq!((one(&mut trial, 0.02), trial.followed()), (Some(Rate::from_mbps(20)), 1));
        // Once is luck; noise would bring it down again.
        let high = Rate::from_mbps(48);
        let followed = |trial: &mut Trial| {
            assert_eq!(trial.on_round(&config, (high, high, PEAK), 0.0), None);
            trial.followed()
        };
        assert_eq!([(); 9].map(|()| followed(&mut trial)), [1, 1, 1, 1, 1, 1, 1, 0, 0]);
    }

    #[test]
    fn rounds_that_are_not_low_count_only_in_a_row() {
        let config = DelayTargetConfig::default();
        let mut trial = Trial { followed: 1, ..Trial::new() };
        for (mbps, followed) in
            [(48, 1), (10, 1), (48, 1), (48, 1), (48, 1), (48, 1), (48, 1), (48, 1), (48, 1), (48, 0)]
        {
            let rate = Rate::from_mbps(mbps);
            trial.on_round(&config, (rate, rate, PEAK), 0.0);
            assert_eq!(trial.followed(), followed);
        }
    }

    /// A flow that stood at seven tenths was offered 1.4 times what the path carries.
    #[test]
    fn no_more_is_tried_than_was_delivered_before() {
        let config = DelayTargetConfig::default();
        let (mut trial, low) = (Trial::new(), Rate::from_mbps(42));
        let mut round = |delivery| trial.on_round(&config, (low, delivery, PEAK), 0.0);
        while round(low).is_none_or(|offered| offered != PEAK) {}
        assert_eq!(round(low), Some(low));
        assert_eq!(round(Rate::from_mbps(51)), Some(Rate::from_mbps(51)), "half of what is more");
        while round(low).is_none() {}
        assert_eq!((round(low), round(Rate::from_mbps(50))), (Some(low), None));
    }

    #[test]
    fn there_is_none_if_none_is_wanted() {
        let config = DelayTargetConfig { trial_rounds: 0, ..DelayTargetConfig::default() };
        let (mut trial, low) = (Trial::new(), Rate::from_mbps(1));
        assert!((0..100).all(|_| trial.on_round(&config, (low, low, PEAK), 0.0).is_none()));
    }
}
