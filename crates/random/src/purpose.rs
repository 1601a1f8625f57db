//! What there are random streams for, and where their seeds come from.

use crate::splitmix::{FIRST, GAMMA, mix};
use crate::{Stream, stream};

/// What a random stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// A link's queue: flow hash and random decisions.
    Queue = 1,
    /// A link's loss process.
    Loss = 2,
    /// A link's marking process.
    Marking = 3,
    /// A link's jitter.
    Jitter = 4,
    /// The spacing of a flow's messages or datagrams.
    Spacing = 5,
    /// The arrival times of an arrival process.
    Arrivals = 6,
    /// The sizes of an arrival process.
    Sizes = 7,
    /// A controller's own randomness.
    Controller = 8,
    /// The nonces that a router writes (Quick-Start).
    Nonce = 9,
    /// What is unsteady about a link's medium: contention, radio errors, handovers.
    Medium = 10,
    /// How a link's rate fades.
    Fading = 11,
    /// How much later a flow starts in another repetition of a run without randomness.
    Phase = 12,
    /// Which of several ways connections take.
    Way = 13,
    /// When the newcomers of a race come.
    Newcomers = 0x7068_6173_6521,
    /// Which routers know Quick-Start.
    Aware = 0x7175_6963_6b73,
    /// The pages of a server (part 0) and what each user asks for.
    Users = 0x7765_6273,
}

impl Purpose {
    /// The seed of the stream of part number `index` in run `run` of `seed`.
    ///
    /// Three purposes are older than the common rule and are mixed as they were when results that
    /// depend on them were published.
    #[must_use]
    pub fn seed(self, seed: u64, run: u64, index: u64) -> u64 {
        let own = self as u64;
        let multiplied = |state: u64, part: u64| state.wrapping_mul(GAMMA) ^ part.wrapping_mul(FIRST);
        match self {
            Self::Newcomers => multiplied(seed, run) ^ own,
            Self::Aware => multiplied(multiplied(seed ^ own, run), index),
            Self::Users => [seed, run, index].iter().fold(own, |state, part| {
                let mixed = (state ^ part).wrapping_mul(GAMMA);
                mixed ^ (mixed >> 29)
            }),
            _ => [run, own, index].iter().fold(mix(seed.wrapping_add(GAMMA)), |state, part| {
                mix(state.wrapping_add(GAMMA) ^ mix(part.wrapping_add(GAMMA)))
            }),
        }
    }

    /// The stream of part number `index` in run `run` of `seed`.
    #[must_use]
    pub fn stream(self, seed: u64, run: u64, index: u64) -> Stream {
        stream(self.seed(seed, run, index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn streams_differ_by_seed_run_purpose_and_index() {
        let purposes = [
            Purpose::Queue,
            Purpose::Loss,
            Purpose::Marking,
            Purpose::Jitter,
            Purpose::Spacing,
            Purpose::Arrivals,
            Purpose::Sizes,
            Purpose::Controller,
            Purpose::Nonce,
            Purpose::Medium,
            Purpose::Fading,
            Purpose::Phase,
            Purpose::Way,
            Purpose::Newcomers,
            Purpose::Aware,
            Purpose::Users,
        ];
        let mut seen = std::collections::HashSet::new();
        for purpose in purposes {
            for (seed, run) in [(1, 0), (2, 0), (1, 1)] {
                for index in 0..3 {
                    let fresh = seen.insert(purpose.seed(seed, run, index));
                    // There is one moment per run.
                    assert!(fresh || (purpose == Purpose::Newcomers && index > 0), "{purpose:?}");
                }
            }
        }
    }

    /// Written down when the streams were defined; results of old versions depend on it.
    #[test]
    fn a_stream_is_the_same_on_every_machine_and_version() {
        let mut random = Purpose::Sizes.stream(1, 0, 0);
        let first: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        let expected = [12_248_107_369_573_288_200, 14_068_792_743_010_252_717, 5_473_759_835_232_855_128];
        assert_eq!(first, expected);
    }

    /// Computed from the formulas as they stood beside their uses before they came together here.
    #[test]
    fn seeds_are_what_they_have_always_been() {
        let vectors = [
            (Purpose::Queue, [1, 0, 0], 6_776_379_681_208_318_838),
            (Purpose::Sizes, [1, 0, 0], 824_479_651_181_550_507),
            (Purpose::Controller, [7, 3, 41], 4_042_120_742_169_577_357),
            (Purpose::Newcomers, [1, 0, 0], 11_400_591_775_471_573_300),
            (Purpose::Newcomers, [1, 1, 0], 2_409_230_895_075_425_421),
            (Purpose::Newcomers, [7, 3, 0], 7_893_950_591_969_570_969),
            (Purpose::Aware, [1, 0, 0], 15_922_127_991_828_858_722),
            (Purpose::Aware, [1, 1, 2], 14_839_605_822_553_832_685),
            (Purpose::Aware, [7, 3, 1], 1_451_646_450_001_490_658),
            (Purpose::Users, [1, 0, 0], 16_766_840_934_699_929_853),
            (Purpose::Users, [1, 1, 2], 15_668_424_782_598_812_713),
            (Purpose::Users, [7, 3, 1], 3_431_846_532_827_696_865),
        ];
        for (purpose, [seed, run, index], expected) in vectors {
            assert_eq!(purpose.seed(seed, run, index), expected, "{purpose:?} {seed} {run} {index}");
        }
    }
}
