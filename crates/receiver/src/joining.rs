//! One stream that arrives on several connections.

use std::ops::Range;

use crate::reassembly::Reassembly;

/// Puts a common stream together from what arrives on its connections.
#[derive(Debug, Default)]
pub struct Joining {
    reassembly: Reassembly,
}

impl Joining {
    /// These bytes of the common stream arrived.
    pub fn arrived(&mut self, range: Range<u64>) {
        self.reassembly.insert(range.start, range.end);
    }

    /// Bytes of the common stream that have arrived without a gap.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.reassembly.next()
    }
}
