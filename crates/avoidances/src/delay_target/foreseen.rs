//! A queue that is foreseen may not come.
//!
//! What was sent above what is delivered will be a queue a round trip later. Of a few packets in
//! bursts, or where the rate has just changed, less may seem to be delivered than is; a rate that
//! shrinks for queues that never come would shrink for ever.

use super::config::DelayTargetConfig;

/// What was foreseen, and how often it did not come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Foreseen {
    /// The delay that is to be there at the end of this round trip, in seconds.
    delay: f64,
    /// Times in a row that such a delay did not come.
    in_vain: u32,
}

impl Foreseen {
    pub(super) const NEW: Self = Self { delay: 0.0, in_vain: 0 };

    /// Takes in that `queueing` seconds of delay are there at the end of a round trip and that
    /// `next` are foreseen for the end of the following one; true if that is not to be believed.
    /// What is much below the `target` in seconds would not be seen.
    pub(super) fn on_round(&mut self, config: &DelayTargetConfig, queueing: f64, next: f64, target: f64) -> bool {
        let foreseen = core::mem::replace(&mut self.delay, next);
        if foreseen > target / 2.0 {
            self.in_vain = if queueing < foreseen / 2.0 { self.in_vain.saturating_add(1) } else { 0 };
        }
        config.vain_rounds > 0 && self.in_vain >= config.vain_rounds
    }

    /// The next round trip is not the one for which a delay was foreseen: in a pause or a silence a
    /// queue empties.
    pub(super) fn skip(&mut self) {
        self.delay = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether each of these is believed in, of round trips with this delay in ms at a target of
    /// 4 ms, and this that is foreseen for the next.
    fn doubted(config: &DelayTargetConfig, rounds: &[(f64, f64)]) -> Vec<bool> {
        let mut foreseen = Foreseen::NEW;
        rounds.iter().map(|&(ms, next)| foreseen.on_round(config, ms / 1e3, next / 1e3, 4.0 / 1e3)).collect()
    }

    #[test]
    fn what_did_not_come_twice_is_not_believed_again_until_half_of_it_comes() {
        let config = DelayTargetConfig::default();
        assert_eq!(doubted(&config, &[(0.0, 3.0), (0.0, 3.0), (0.0, 3.0), (1.4, 3.0)]), [false, false, true, true]);
        assert_eq!(doubted(&config, &[(0.0, 3.0), (0.0, 3.0), (0.0, 3.0), (1.6, 3.0)]), [false, false, true, false]);
        assert_eq!(doubted(&config, &[(0.0, 3.0), (0.0, 3.0), (1.6, 3.0), (0.0, 3.0)]), [false; 4], "not in a row");
        assert_eq!(doubted(&config, &[(0.0, 1.9); 9]), [false; 9], "too little to be seen");
    }

    /// The rate of a flow went up and down between two values: what was foreseen after it had gone
    /// up did not come, and after it had come down nothing was.
    #[test]
    fn round_trips_in_which_nothing_is_foreseen_change_nothing() {
        let config = DelayTargetConfig::default();
        let up_and_down = [(0.0, 3.0), (0.0, 0.0), (0.0, 3.0), (0.0, -1.0), (0.0, 3.0), (5.0, 0.0), (0.0, 3.0)];
        assert_eq!(doubted(&config, &up_and_down), [false, false, false, true, true, false, false]);
    }

    #[test]
    fn what_was_foreseen_before_a_pause_did_neither_come_nor_not_come() {
        let config = DelayTargetConfig::default();
        let doubted = |pauses: [bool; 4]| {
            let mut foreseen = Foreseen::NEW;
            pauses.map(|pause| {
                if pause {
                    foreseen.skip();
                }
                foreseen.on_round(&config, 0.0, 0.003, 0.004)
            })
        };
        assert_eq!(doubted([false, true, true, true]), [false; 4]);
        assert_eq!(doubted([false, false, true, false]), [false, false, false, true], "what was before it counts");
    }

    #[test]
    fn zero_rounds_are_never() {
        let config = DelayTargetConfig { vain_rounds: 0, ..DelayTargetConfig::default() };
        assert_eq!(doubted(&config, &[(0.0, 3.0); 9]), [false; 9]);
    }
}
