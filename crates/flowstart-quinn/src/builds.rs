//! What a factory makes controllers from.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flowstart_congestion::ControllerConfig;

use crate::events::Events;

/// Step from one seed to the next: all 2^64 of them differ (the gamma of SplitMix64; Steele, Lea
/// and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A configuration, and how many controllers were made from it. Copies count together.
#[derive(Clone, Debug)]
pub(crate) struct Builds {
    config: ControllerConfig,
    made: Arc<AtomicU64>,
}

impl Builds {
    pub(crate) fn new(config: ControllerConfig) -> Self {
        Self { config, made: Arc::default() }
    }

    /// A controller for a path whose full packets have so many bytes. With the seed of those before
    /// it, it would draw what they draw, and connections that began together would do so in step.
    pub(crate) fn for_path(&self, mtu: u16) -> Events {
        let made = self.made.fetch_add(1, Ordering::Relaxed);
        let seed = self.config.seed.wrapping_add(made.wrapping_mul(SEED_STEP));
        Events::new(&ControllerConfig { mss: u32::from(mtu).max(1), seed, ..self.config.clone() })
    }
}

#[cfg(test)]
mod tests {
    use flowstart_congestion::{AvoidanceConfig, StartConfig};

    use super::*;

    #[test]
    fn every_controller_of_a_factory_has_a_seed_of_its_own_and_another_factory_the_same_ones() {
        let config = |seed| {
            let config = ControllerConfig::new(StartConfig::SlowStart, AvoidanceConfig::Reno);
            ControllerConfig { seed, ..config }
        };
        let seeds = |builds: &Builds| [0; 3].map(|_| builds.for_path(1200).seed());
        let builds = Builds::new(config(5));
        let first = seeds(&builds);
        assert_eq!(first[0], 5);
        assert!(first[1] != first[0] && first[2] != first[1] && first[2] != first[0], "{first:?}");
        assert_eq!(seeds(&Builds::new(config(5))), first);
        let copy = builds.clone();
        assert!(seeds(&copy).iter().all(|seed| !first.contains(seed)), "a copy goes on where it is");
        assert_ne!(seeds(&Builds::new(config(6))), first);
    }
}
