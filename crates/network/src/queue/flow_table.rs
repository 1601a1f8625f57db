//! From a packet's flow to the place where its queue is kept.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use flowstart_random::mix;

/// Hashes the one integer that a key is. Keys are flow numbers or buckets, not chosen by an
/// adversary.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mixer(u64);

impl Hasher for Mixer {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, n: u64) {
        self.0 = mix(self.0 ^ n);
    }
}

/// Key of a flow to index of its queue.
pub(super) type FlowTable = HashMap<u64, u32, BuildHasherDefault<Mixer>>;

/// The key of a flow: its number, or one of `buckets` (if that is not 0) by a hash of it and the
/// seed, so that two flows may share a queue.
#[inline]
pub(super) fn key(flow: u64, seed: u64, buckets: u32) -> u64 {
    if buckets == 0 { flow } else { mix(flow ^ seed) % u64::from(buckets) }
}
