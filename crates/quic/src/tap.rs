//! A look into packets before they are encrypted, and after they were decrypted. The stack says
//! when packets leave, not what is in them; but it asks the keys to encrypt each, and so they are
//! told which bytes of which streams it carries. Nothing that is sent changes. How that gets in
//! between is in `stack`.

use std::ops::{Range, RangeInclusive};
use std::sync::{Arc, Mutex, PoisonError};

use crate::frames::{acknowledged, streams};

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

/// The packets of which acknowledgements tell that arrive at an endpoint; its copies are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acknowledged {
    ranges: Arc<Mutex<Vec<RangeInclusive<u64>>>>,
}

impl Acknowledged {
    /// What was told since the last time.
    pub(crate) fn take(&self) -> Vec<RangeInclusive<u64>> {
        std::mem::take(&mut *self.ranges.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A packet with these frames has been decrypted.
    pub(crate) fn packet(&self, payload: &[u8]) {
        let mut ranges = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        acknowledged(payload, &mut |range| ranges.push(range));
    }
}

/// Looks into packets that leave and that arrive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taps {
    pub(crate) leaving: Option<Tap>,
    pub(crate) arriving: Option<Acknowledged>,
}
