//! Samples in bounded memory.

/// Samples in order, in bounded memory: when full, every second one is dropped, and from then on
/// only every second (fourth, …) one is kept. A systematic sample leaves means and quantiles in
/// place.
#[derive(Clone, Debug)]
pub struct Thinned<T> {
    kept: Vec<T>,
    limit: usize,
    /// Every `stride`-th sample is kept; a power of two.
    stride: u64,
    seen: u64,
}

impl<T> Thinned<T> {
    /// Room for `limit` samples (at least 2).
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { kept: Vec::new(), limit: limit.max(2), stride: 1, seen: 0 }
    }

    /// Takes a sample in.
    #[inline]
    pub fn push(&mut self, sample: T) {
        if self.is_due() {
            if self.kept.len() == self.limit {
                self.halve();
                if !self.is_due() {
                    self.seen += 1;
                    return;
                }
            }
            self.kept.push(sample);
        }
        self.seen += 1;
    }

    #[inline]
    fn is_due(&self) -> bool {
        self.seen & (self.stride - 1) == 0
    }

    #[cold]
    fn halve(&mut self) {
        let mut index = 0_usize;
        self.kept.retain(|_| {
            index += 1;
            index % 2 == 1
        });
        self.stride = self.stride.saturating_mul(2);
    }

    /// The samples kept.
    #[must_use]
    pub fn samples(&self) -> &[T] {
        &self.kept
    }

    /// One sample stands for this many.
    #[must_use]
    pub fn stride(&self) -> u64 {
        self.stride
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_every_stride_th_sample_from_the_first_on() {
        for count in [4, 5, 8, 9, 17, 100] {
            let mut thinned = Thinned::new(4);
            (0..count).for_each(|number| thinned.push(number));
            let expected: Vec<u64> = (0..count).step_by(thinned.stride() as usize).collect();
            assert_eq!(thinned.samples(), expected, "{count}");
            assert!(thinned.samples().len() <= 4, "{count}");
        }
    }
}
