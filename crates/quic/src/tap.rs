//! A look into packets before they are encrypted. The stack says when packets leave, not what is in
//! them; but it asks the keys to encrypt each, and so they are told which bytes of which streams it
//! carries. Nothing that is sent changes. How it gets in between is in `stack`.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::frames::streams;

/// Bytes of a stream in a packet.
pub(crate) type Carried = (u64, Range<u64>);

/// What packets of one connection carry; its copies are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tap {
    carried: Arc<Mutex<Vec<Carried>>>,
}

impl Tap {
    /// The streams and their bytes in packets that were encrypted since the last time.
    pub(crate) fn take(&self) -> Vec<Carried> {
        std::mem::take(&mut *self.carried.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A packet with these frames is about to be encrypted.
    pub(crate) fn packet(&self, payload: &[u8]) {
        let mut carried = self.carried.lock().unwrap_or_else(PoisonError::into_inner);
        streams(payload, &mut |stream, range| carried.push((stream, range)));
    }
}
