//! Evidence for and against a queue of one's own, as the logarithm of a likelihood ratio.

/// Ratios of delays in a shared queue: the lone packet waits a little longer than its neighbour.
const SHARED: (f64, f64) = (1.12, 0.15);
/// Ratios of delays with fair queuing: it waits for the packet in transmission and at most a turn of the other flow.
const ISOLATED: (f64, f64) = (0.35, 0.2);
/// Nothing is less likely than this by either model: what neither foresees must not decide alone.
const OUTLIER: f64 = 1e-3;
/// Share of lone packets lost behind a full train: in a shared queue, and in one of their own.
const LONE_LOST: (f64, f64) = (0.5, 0.05);
/// Share of a sparse stream's packets lost in a queue of its own, at least, and as a share of the other stream's.
const SPARSE_LOST: (f64, f64) = (0.05, 0.25);

/// What was seen so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evidence {
    /// ln of how many times likelier it is with a queue of one's own than without.
    log_odds: f64,
    sum: f64,
    count: u32,
}

/// A normal density without its constant, which both models share up to their width.
fn density(value: f64, (mean, width): (f64, f64), noise: f64) -> f64 {
    // Two delays with this much noise each.
    let width = (width * width + 2.0 * noise * noise).sqrt();
    let distance = (value - mean) / width;
    ((-0.5 * distance * distance).exp() / width).max(OUTLIER)
}

impl Evidence {
    /// A lone packet's queueing delay over that of its neighbour; `noise` is the jitter over the latter.
    pub(super) fn ratio(&mut self, ratio: f64, noise: f64) {
        // Outside of its mean on the far side nothing speaks against a model.
        let (low, high) = (ratio.max(ISOLATED.0), ratio.min(SHARED.0));
        self.log_odds += (density(low, ISOLATED, noise) / density(high, SHARED, noise)).ln();
        self.sum += ratio;
        self.count += 1;
    }

    /// A lone packet was lost behind a train that had queued.
    pub(super) fn lone_lost(&mut self) {
        self.log_odds += (LONE_LOST.1 / LONE_LOST.0).ln();
    }

    /// Packets lost, of how many, of a stream above the rate of the bottleneck and of a sparse one beside it.
    pub(super) fn contrast(&mut self, stream: (u32, u32), sparse: (u32, u32)) {
        let share = f64::from(stream.0) / f64::from(stream.1.max(1));
        if share <= 0.0 {
            return;
        }
        let shared = share.clamp(0.01, 0.9);
        let own = SPARSE_LOST.0.max(SPARSE_LOST.1 * shared);
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

    /// Mean of the ratios; 0 without any.
    pub(super) fn mean_ratio(&self) -> f64 {
        self.sum / f64::from(self.count.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(ratios: &[f64], noise: f64) -> f64 {
        let mut evidence = Evidence::default();
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
    fn a_sparse_stream_that_loses_nothing_beside_one_that_does_has_its_own_queue() {
        let contrast = |sparse: u32, times: u32| {
            let mut evidence = Evidence::default();
            (0..times).for_each(|_| evidence.contrast((36, 96), (sparse, 12)));
            evidence.error_if_isolated()
        };
        assert!(contrast(0, 3) < 1e-4);
        assert!(contrast(4, 2) > 0.99);
        assert!((contrast(0, 0) - 0.5).abs() < 1e-12);
    }
}
