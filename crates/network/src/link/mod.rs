//! Links: a queue, a transmitter, a propagation delay, and what goes wrong on the way.

mod jitter;
mod rate;
mod transmitter;

use std::fmt;

use flowstart_quick_start::router::AdmissionConfig;
use flowstart_units::Span;

use crate::{LossConfig, QueueConfig};

pub use jitter::{Jitter, JitterConfig};
pub use rate::{RateError, RateSchedule, RateStep, parse_mahimahi};
pub use transmitter::Transmitter;

/// A link in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// How fast it sends.
    pub rate: RateSchedule,
    /// One-way propagation delay.
    pub delay: Span,
    /// Bytes added to every IP packet on the wire (14 for an Ethernet header, 2 for PPP); the queue does not count them.
    pub overhead: u32,
    /// The queue in front of the transmitter. The packet in transmission is not in the queue.
    pub queue: QueueConfig,
    /// Packets lost on arrival, before the queue sees them.
    pub loss: LossConfig,
    /// ECN-capable packets marked on arrival, before the queue sees them.
    pub marking: LossConfig,
    /// Random extra delay after the transmission.
    pub jitter: Option<JitterConfig>,
    /// What becomes of Quick-Start requests on the way to this link.
    pub quick_start: QuickStartHop,
}

/// What a hop does with Quick-Start requests (RFC 4782).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuickStartHop {
    /// A router that knows nothing of them lowers the TTL of IP only, so that the TTL difference denies.
    #[default]
    Unaware,
    /// A router that knows them decides by this admission.
    Aware(AdmissionConfig),
    /// A tunnel that hides the TTL: requests pass as if they had been approved (section 6).
    Tunnel,
    /// A tunnel whose entry knows that, and denies.
    AwareTunnel,
    /// A middlebox that drops packets with a Quick-Start option on arrival (section 4.7.2).
    DropsOptions,
    /// A middlebox that takes Quick-Start options away.
    StripsOptions,
}

impl LinkConfig {
    /// A link of constant `rate` with this delay and queue, and nothing going wrong.
    #[must_use]
    pub fn new(rate: RateSchedule, delay: Span, queue: QueueConfig) -> Self {
        Self {
            rate,
            delay,
            overhead: 0,
            queue,
            loss: LossConfig::None,
            marking: LossConfig::None,
            jitter: None,
            quick_start: QuickStartHop::Unaware,
        }
    }

    /// Checks that the link can be simulated.
    ///
    /// # Errors
    /// The first field that is out of range, and what would be right.
    pub fn validate(&self) -> Result<(), LinkError> {
        self.rate.validate().map_err(|error| LinkError(error.to_string()))?;
        self.loss.validate().map_err(|error| LinkError(format!("loss: {error}")))?;
        self.marking.validate().map_err(|error| LinkError(format!("marking: {error}")))?;
        self.queue.validate().map_err(|error| LinkError(format!("queue: {error}")))
    }
}

/// Why a link cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkError(String);

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LinkError {}
