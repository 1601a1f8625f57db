//! Evidence for and against a queue of one's own, as the logarithm of a likelihood ratio.

use crate::detection::Isolation;

use super::config::EvidenceConfig;

/// What was seen so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    config: EvidenceConfig,
    /// ln of how many times likelier it is with a queue of one's own than without.
    log_odds: f64,
    /// Sum of the ratios of delays.
    sum: f64,
    /// How many of them, faded as they are.
    count: f64,
}

/// A normal density without its constant, which both models share up to their width.
fn density(value: f64, (mean, width): (f64, f64), noise: f64, least: f64) -> f64 {
    // Two delays with this much noise each.
    let width = (width * width + 2.0 * noise * noise).sqrt();
    let distance = (value - mean) / width;
    ((-0.5 * distance * distance).exp() / width).max(least)
}

impl Evidence {
    pub(super) fn new(config: EvidenceConfig) -> Self {
        Self { config, log_odds: 0.0, sum: 0.0, count: 0.0 }
    }

    /// What was seen before counts only `share` as much, and no more than what leaves this probability of error.
    pub(super) fn fade(&mut self, share: f64, error: f64) {
        let most = ((1.0 - error) / error).ln();
        self.log_odds = (self.log_odds * share).clamp(-most, most);
        self.sum *= share;
        self.count *= share;
    }

    /// Something outside of the models speaks for a shared queue: as sure as this probability of error says.
    pub(super) fn contradict(&mut self, error: f64) {
        *self = Self { log_odds: -((1.0 - error) / error).ln(), ..Self::new(self.config) };
    }

    /// A lone packet's queueing delay over that of its neighbour; `noise` is the jitter over the latter.
    pub(super) fn ratio(&mut self, ratio: f64, noise: f64) {
        // Outside of its mean on the far side nothing speaks against a model.
        let c = &self.config;
        let (low, high) = (ratio.max(c.isolated_ratio), ratio.min(c.shared_ratio));
        let isolated = density(low, (c.isolated_ratio, c.isolated_width), noise, c.outlier);
        let shared = density(high, (c.shared_ratio, c.shared_width), noise, c.outlier);
        self.log_odds += (isolated / shared).ln();
        self.sum += ratio;
        self.count += 1.0;
    }

    /// A lone packet was lost behind a train that had queued.
    pub(super) fn lone_lost(&mut self) {
        self.log_odds += (self.config.lone_lost_isolated / self.config.lone_lost_shared).ln();
    }

    /// Packets lost, of how many, of a stream above the rate of the bottleneck and of a sparse one beside it.
    pub(super) fn contrast(&mut self, stream: (u32, u32), sparse: (u32, u32)) {
        let share = f64::from(stream.0) / f64::from(stream.1.max(1));
        if share <= 0.0 {
            return;
        }
        let shared = share.max(self.config.least_loss).min(self.config.most_loss);
        let own = self.config.sparse_lost.max(self.config.sparse_share * shared);
        if own >= shared {
            return;
        }
        let (lost, kept) = (f64::from(sparse.0), f64::from(sparse.1.saturating_sub(sparse.0)));
        self.log_odds += lost * (own / shared).ln() + kept * ((1.0 - own) / (1.0 - shared)).ln();
    }

    /// Probability that "isolated" would be wrong.
    pub(super) fn error_if_isolated(&self) -> f64 {
        1.0 / (1.0 + self.log_odds.exp())
    }

    /// Probability that this answer is right; of "unknown", that the likelier other one is.
    pub(super) fn confidence(&self, isolation: Isolation) -> f64 {
        let error = self.error_if_isolated();
        match isolation {
            Isolation::Isolated => 1.0 - error,
            Isolation::Shared => error,
            Isolation::Unknown => error.max(1.0 - error),
        }
    }

    /// Mean of the ratios; 0 without any.
    pub(super) fn mean_ratio(&self) -> f64 {
        if self.count > 0.0 { self.sum / self.count } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(ratios: &[f64], noise: f64) -> f64 {
        let mut evidence = Evidence::new(EvidenceConfig::default());
        ratios.iter().for_each(|ratio| evidence.ratio(*ratio, noise));
        evidence.error_if_isolated()
    }

    #[test]
    fn clear_ratios_convince_after_two_and_one_outlier_does_not() {
        assert!(after(&[0.2, 0.3], 0.0) < 1e-4);
        assert!(after(&[1.14, 1.2], 0.0) > 0.9999);
        assert!(after(&[0.2], 0.0) > 1e-4, "one alone");
        assert!(after(&[1.14, 1.14, 0.1], 0.0) > 0.5);
    }

    #[test]
    fn jitter_makes_every_ratio_count_less() {
        assert!(after(&[0.3], 0.5) > after(&[0.3], 0.0));
        assert!(after(&[1.1], 0.5) < after(&[1.1], 0.0));
        assert!((after(&[0.7], 5.0) - 0.5).abs() < 0.1);
    }

    #[test]
    fn what_has_faded_takes_clear_ratios_to_turn_over_and_not_more_after_a_long_time() {
        let until_isolated = |looks: u32| {
            let mut evidence = Evidence::new(EvidenceConfig::default());
            let mut look = |ratio| {
                evidence.fade(0.5_f64.powf(0.05), 1e-4);
                evidence.ratio(ratio, 0.0);
                evidence.error_if_isolated()
            };
            (0..looks).for_each(|_| assert!(look(1.12) > 0.5));
            (1..).find(|_| look(0.3) < 1e-4).unwrap()
        };
        assert_eq!(until_isolated(3), until_isolated(1000));
        assert!((3..=4).contains(&until_isolated(1000)));
    }

    #[test]
    fn a_contradiction_leaves_the_error_it_names_and_can_be_overcome() {
        let mut evidence = Evidence::new(EvidenceConfig::default());
        (0..5).for_each(|_| evidence.ratio(0.2, 0.0));
        evidence.contradict(0.01);
        assert!((evidence.confidence(Isolation::Shared) - 0.99).abs() < 1e-9 && evidence.mean_ratio() == 0.0);
        (0..3).for_each(|_| evidence.ratio(0.2, 0.0));
        assert!(evidence.error_if_isolated() < 1e-4);
    }

    #[test]
    fn a_sparse_stream_that_loses_nothing_beside_one_that_does_has_its_own_queue() {
        let contrast = |sparse: u32, times: u32| {
            let mut evidence = Evidence::new(EvidenceConfig::default());
            (0..times).for_each(|_| evidence.contrast((36, 96), (sparse, 12)));
            evidence.error_if_isolated()
        };
        assert!(contrast(0, 3) < 1e-4);
        assert!(contrast(4, 2) > 0.99);
        assert!((contrast(0, 0) - 0.5).abs() < 1e-12);
    }
}
