//! Evidence for and against a queue of one's own, as the logarithm of a likelihood ratio.
//! Exponentials and logarithms are those of `libm`, so that answers are the same on every machine.

use crate::answer::Isolation;

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
    /// Fates of the packets before and behind lone ones in bursts, and of lone ones.
    flanks: Fates,
    lone: Fates,
    /// Of lone ones at the edge of what the buffer holds.
    edge: Fates,
}

/// Packets whose fate is known.
#[derive(Clone, Copy, Debug, Default)]
struct Fates {
    lost: u32,
    kept: u32,
}

impl Fates {
    fn add(&mut self, lost: bool) {
        if lost {
            self.lost = self.lost.saturating_add(1);
        } else {
            self.kept = self.kept.saturating_add(1);
        }
    }

    fn and(self, other: Self) -> Self {
        Self { lost: self.lost.saturating_add(other.lost), kept: self.kept.saturating_add(other.kept) }
    }

    /// Probability of this fate after those, if any share of lost packets was as likely as any
    /// other before (Laplace's rule of succession).
    fn next(self, lost: bool) -> f64 {
        let (lost_, kept) = (f64::from(self.lost) + 1.0, f64::from(self.kept) + 1.0);
        (if lost { lost_ } else { kept }) / (lost_ + kept)
    }
}

/// A normal density without its constant, which both models share up to their width.
fn density(value: f64, (mean, width): (f64, f64), noise: f64, least: f64) -> f64 {
    // Two delays with this much noise each.
    let width = libm::sqrt(width * width + 2.0 * noise * noise);
    let distance = (value - mean) / width;
    (libm::exp(-0.5 * distance * distance) / width).max(least)
}

impl Evidence {
    pub(super) fn new(config: EvidenceConfig) -> Self {
        Self {
            config,
            log_odds: 0.0,
            sum: 0.0,
            count: 0.0,
            flanks: Fates::default(),
            lone: Fates::default(),
            edge: Fates::default(),
        }
    }

    /// What was seen before counts only `share` as much, and no more than what leaves this
    /// probability of error.
    pub(super) fn fade(&mut self, share: f64, error: f64) {
        let most = libm::log((1.0 - error) / error);
        self.log_odds = (self.log_odds * share).clamp(-most, most);
        self.sum *= share;
        self.count *= share;
    }

    /// Something outside of the models speaks for a shared queue: as sure as this probability of
    /// error says.
    pub(super) fn contradict(&mut self, error: f64) {
        *self = Self { log_odds: -libm::log((1.0 - error) / error), ..Self::new(self.config) };
    }

    /// A lone packet's queueing delay over that of its neighbour; `noise` is the jitter over the
    /// latter.
    pub(super) fn ratio(&mut self, ratio: f64, noise: f64) {
        // Outside of its mean on the far side nothing speaks against a model.
        let c = &self.config;
        let (low, high) = (ratio.max(c.isolated_ratio), ratio.min(c.shared_ratio));
        let isolated = density(low, (c.isolated_ratio, c.isolated_width), noise, c.outlier);
        let shared = density(high, (c.shared_ratio, c.shared_width), noise, c.outlier);
        self.log_odds += libm::log(isolated / shared);
        self.sum += ratio;
        self.count += 1.0;
    }

    /// A lone packet was lost behind a train that had queued.
    pub(super) fn lone_lost(&mut self) {
        self.log_odds += libm::log(self.config.lone_lost_isolated / self.config.lone_lost_shared);
    }

    /// In a burst these were lost or not: the packet before a lone one, it, and the packet behind
    /// it.
    ///
    /// If the queue is shared all three are lost with the same unknown probability; if not, only
    /// the two are, and the lone one with a known one. Between two that got through nothing is
    /// learnt. If one of the two was lost the buffer ended there, maybe always at the same of the
    /// three: then the probability that the lone one is lost is another unknown one.
    pub(super) fn burst(&mut self, before: bool, lone: bool, behind: bool) {
        for lost in [before, behind] {
            self.log_odds += libm::log(self.flanks.next(lost) / self.flanks.and(self.lone).next(lost));
            self.flanks.add(lost);
        }
        let lost = self.config.lone_lost_isolated;
        let own = if lone { lost } else { 1.0 - lost };
        if before && behind {
            self.log_odds += libm::log(own / self.flanks.and(self.lone).next(lone));
            self.lone.add(lone);
        } else if before || behind {
            self.log_odds += libm::log(own / self.edge.next(lone));
            self.edge.add(lone);
        }
    }

    /// True if no delay was compared.
    pub(super) fn is_of_losses(&self) -> bool {
        self.count == 0.0
    }

    /// Probability that "isolated" would be wrong.
    pub(super) fn error_if_isolated(&self) -> f64 {
        1.0 / (1.0 + libm::exp(self.log_odds))
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
    use crate::random::Random;

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
    fn six_lone_packets_between_lost_ones_that_all_arrive_have_their_own_queue_and_two_that_are_lost_have_not() {
        let bursts = |lone: bool, times: u32| {
            let mut evidence = Evidence::new(EvidenceConfig::default());
            (0..times).for_each(|_| evidence.burst(true, lone, true));
            evidence.error_if_isolated()
        };
        assert!(bursts(false, 5) > 1e-4 && bursts(false, 6) < 1e-4);
        assert!(bursts(true, 1) < 0.99 && bursts(true, 2) > 0.99);
    }

    #[test]
    fn at_the_edge_of_a_buffer_lone_packets_that_are_lost_tell_and_those_that_always_get_through_do_not() {
        let edge = |lone: bool, times: u32| {
            let mut evidence = Evidence::new(EvidenceConfig::default());
            (0..times).for_each(|_| evidence.burst(false, lone, true));
            evidence.error_if_isolated()
        };
        assert!(edge(true, 2) > 0.99);
        assert!((1..100).all(|times| edge(false, times) > 0.1));
    }

    /// A queue that drops at random, like RED's, whatever the probability.
    #[test]
    fn a_shared_queue_that_drops_at_random_is_hardly_ever_taken_for_ones_own() {
        for percent in [1, 5, 20, 35, 50, 65, 80, 95] {
            let mut random = Random::new(percent);
            let runs = 20_000;
            let mut isolated = 0;
            for _ in 0..runs {
                let mut evidence = Evidence::new(EvidenceConfig::default());
                let mut drop = || random.unit() * 100.0 < percent as f64;
                isolated += u32::from((0..18).any(|_| {
                    evidence.burst(drop(), drop(), drop());
                    evidence.error_if_isolated() <= 1e-4
                }));
            }
            assert!(isolated <= 20, "{percent} %: {isolated} of {runs}");
        }
    }

    fn close(value: f64, expected: f64) -> bool {
        (value - expected).abs() < 1e-9
    }

    /// Odds as in 3 to 1 for a queue of one's own.
    fn odds(evidence: &Evidence) -> f64 {
        let error = evidence.error_if_isolated();
        (1.0 - error) / error
    }

    /// Normal densities by hand: exp(-d2/2)/w with d the distance in widths w, and 0.001 at least.
    #[test]
    fn the_odds_of_a_ratio_are_those_of_two_normal_densities() {
        for (ratio, noise, expected) in [
            // 1/0.2 over 0.001, as 0.77/0.15 widths away nothing is left; below the mean the same.
            (0.35, 0.0, 5000.0),
            (0.2, 0.0, 5000.0),
            // 0.001 over 1/0.15.
            (1.2, 0.0, 0.000_15),
            // exp(-2.25^2/2)/0.2 over exp(-(0.32/0.15)^2/2)/0.15.
            (0.8, 0.0, 0.580_783_911),
            (1.0, 0.0, 0.005_253_125),
            // Widths are sqrt(0.2^2 + 2 * 0.1^2) and sqrt(0.15^2 + 2 * 0.1^2): two delays, each
            // with noise.
            (0.8, 0.1, 0.519_330_727),
            (0.35, 0.1, 900.431_303),
            (0.6, 0.3, 1.622_819_448),
        ] {
            let mut evidence = Evidence::new(EvidenceConfig::default());
            evidence.ratio(ratio, noise);
            let odds = odds(&evidence);
            assert!((odds / expected - 1.0).abs() < 1e-6, "{ratio} {noise}: {odds}");
            assert!(close(evidence.mean_ratio(), ratio));
        }
    }

    #[test]
    fn independent_evidence_multiplies_the_odds() {
        let mut evidence = Evidence::new(EvidenceConfig::default());
        assert!(close(odds(&evidence), 1.0) && evidence.mean_ratio() == 0.0);
        evidence.lone_lost();
        // 0.05 to 0.5.
        assert!(close(odds(&evidence), 0.1));
        evidence.ratio(0.3, 0.0);
        evidence.ratio(1.2, 0.0);
        assert!(close(odds(&evidence), 0.1 * 5000.0 * 0.000_15));
        assert!(close(evidence.mean_ratio(), 0.75));
    }

    #[test]
    fn confidence_is_that_of_the_answer_or_of_the_likelier_one() {
        let mut evidence = Evidence::new(EvidenceConfig::default());
        evidence.lone_lost();
        let confidence = [Isolation::Isolated, Isolation::Shared, Isolation::Unknown].map(|of| evidence.confidence(of));
        assert!(confidence.into_iter().zip([1.0 / 11.0, 10.0 / 11.0, 10.0 / 11.0]).all(|(a, b)| close(a, b)));
        evidence.ratio(0.3, 0.0);
        assert!(close(evidence.confidence(Isolation::Unknown), 500.0 / 501.0));
    }

    #[test]
    fn fading_takes_the_root_of_the_odds_and_limits_them() {
        let mut evidence = Evidence::new(EvidenceConfig::default());
        evidence.ratio(0.2, 0.0);
        evidence.fade(0.5, 1e-4);
        assert!(close(odds(&evidence) / 5000_f64.sqrt(), 1.0));
        // The mean stays; a new ratio counts twice as much as the faded one.
        assert!(close(evidence.mean_ratio(), 0.2));
        evidence.ratio(0.35, 0.0);
        assert!(close(evidence.mean_ratio(), 0.3));
        evidence.fade(1.0, 0.01);
        assert!(close(odds(&evidence), 99.0));
        (0..5).for_each(|_| evidence.ratio(1.2, 0.0));
        evidence.fade(1.0, 0.01);
        assert!(close(odds(&evidence), 1.0 / 99.0));
    }

    /// By Laplace's rule: after l lost and k kept packets the next one is lost with (l+1)/(l+k+2).
    #[test]
    fn the_odds_of_bursts_follow_the_rule_of_succession() {
        let after = |bursts: &[[bool; 3]]| {
            let mut evidence = Evidence::new(EvidenceConfig::default());
            bursts.iter().for_each(|[before, lone, behind]| evidence.burst(*before, *lone, *behind));
            odds(&evidence)
        };
        // Shared, two were lost, so that a third is kept with 1/4; a queue of its own keeps it with
        // 0.95.
        let kept = [true, false, true];
        assert!(close(after(&[kept]), 0.95 * 4.0));
        // Packets before and behind: 3/4 and 4/5 with two and three lost, but 3/5 and 4/6 if the
        // lone one counts among them. The lone one: four of five were lost.
        assert!(close(after(&[kept, kept]), 3.8 * (0.75 / 0.6) * (0.8 * 1.5) * 0.95 * 3.5));
        // Lost with 3/4 or with 0.05.
        assert!(close(after(&[[true; 3]]), 0.05 / 0.75));
        // At the edge: lost with one half, then with 2/3.
        let edge = [false, true, true];
        assert!(close(after(&[edge]), 0.1) && close(after(&[edge, edge]), 0.1 * 0.075));
        assert!(close(after(&[[true, false, false]]), 1.9));
        // Nothing is learnt between two that got through.
        assert!(close(after(&[[false, true, false]]), 1.0) && close(after(&[[false; 3]]), 1.0));
    }
}
