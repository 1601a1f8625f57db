//! The sender against a receiver over paths that behave and misbehave.

mod losses;
mod marks;
mod opening;
pub(super) mod pipe;
mod properties;
mod reductions;
mod requests;
mod windows;

use flowstart_units::{Span, Time};

use crate::ReceiverConfig;

const MSS: u64 = 1448;

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

fn at(n: u64) -> Time {
    Time::ZERO + ms(n)
}

fn every_segment() -> ReceiverConfig {
    ReceiverConfig::every_segment()
}

/// A link without a limit to its queue.
struct Link {
    per_packet: Span,
    free: Time,
}

impl Link {
    fn new(per_packet: Span) -> Self {
        Self { per_packet, free: Time::ZERO }
    }

    /// Queueing and transmission time of a packet that arrives now.
    fn wait(&mut self, now: Time) -> Span {
        self.free = self.free.max(now) + self.per_packet;
        self.free.since(now)
    }
}
