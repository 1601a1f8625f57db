//! Independent random streams, one per purpose.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// What a random stream is for. Each purpose of each part has a stream of its own, so that adding a part leaves the draws of the others alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Purpose {
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
}

/// Mixes 64 bits (the finalizer of SplitMix64, Steele, Lea and Flood 2014).
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The odd constant that SplitMix64 steps by: 2^64 divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The seed of the stream of part number `index` for `purpose`, in run `run` of `seed`.
pub(crate) fn seed_of(seed: u64, run: u64, purpose: Purpose, index: u64) -> u64 {
    [run, purpose as u64, index]
        .iter()
        .fold(mix(seed.wrapping_add(STEP)), |state, part| mix(state.wrapping_add(STEP) ^ mix(part.wrapping_add(STEP))))
}

/// The stream itself.
pub(crate) fn stream(seed: u64, run: u64, purpose: Purpose, index: u64) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(seed_of(seed, run, purpose, index))
}

/// A number in (0, 1], with 53 random bits.
pub(crate) fn unit(random: &mut Pcg64Mcg) -> f64 {
    ((random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_seed_run_purpose_and_index() {
        let base = seed_of(1, 0, Purpose::Loss, 0);
        for other in [
            seed_of(2, 0, Purpose::Loss, 0),
            seed_of(1, 1, Purpose::Loss, 0),
            seed_of(1, 0, Purpose::Queue, 0),
            seed_of(1, 0, Purpose::Loss, 1),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn a_stream_is_the_same_on_every_machine_and_version() {
        let mut random = stream(1, 0, Purpose::Sizes, 0);
        let first: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        assert_eq!(first, FIRST_OF_STREAM_1_0_SIZES_0);
    }

    /// Written down when the streams were defined; results of old versions depend on it.
    const FIRST_OF_STREAM_1_0_SIZES_0: [u64; 3] =
        [12_248_107_369_573_288_200, 14_068_792_743_010_252_717, 5_473_759_835_232_855_128];
}
