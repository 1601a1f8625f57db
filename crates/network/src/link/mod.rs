//! Links: a queue, a transmitter, a propagation delay, and what goes wrong on the way.

mod jitter;
mod late;
mod rate;
mod standstills;
mod transmitter;

use std::fmt;

use flowstart_quick_start::router::AdmissionConfig;
use flowstart_units::{Rate, Span};

use crate::{LossConfig, MediumConfig, QueueConfig, RcpConfig};

pub use jitter::{Jitter, JitterConfig};
pub use late::LateArrivals;
pub use rate::{RateError, RateSchedule, RateStep, parse_mahimahi};
pub use standstills::{Standstills, Variation};
pub use transmitter::{Sending, Transmitter};

/// A link in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// How fast it sends.
    pub rate: RateSchedule,
    /// One-way propagation delay.
    pub delay: Span,
    /// Bytes added to every IP packet on the wire (14 for an Ethernet header, 2 for PPP), at most
    /// 65 535; the queue does not count them.
    pub overhead: u32,
    /// The queue in front of the transmitter. The packet in transmission is not in the queue.
    pub queue: QueueConfig,
    /// Packets lost on arrival, before the queue sees them.
    pub loss: LossConfig,
    /// ECN-capable packets marked on arrival, before the queue sees them.
    pub marking: LossConfig,
    /// Random extra delay after the transmission.
    pub jitter: Option<JitterConfig>,
    /// What arrives late behind it, and by how much; default nothing.
    pub late: LateArrivals,
    /// When nothing arrives behind it; default never.
    pub standstills: Standstills,
    /// What kind of link it is.
    pub medium: MediumConfig,
    /// What becomes of Quick-Start requests on the way to this link.
    pub quick_start: QuickStartHop,
    /// The router in front of this link knows RCP.
    pub rcp: Option<RcpConfig>,
}

/// What a hop does with Quick-Start requests (RFC 4782).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuickStartHop {
    /// A router that knows nothing of them lowers the TTL of IP only, so that the TTL difference
    /// denies.
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

/// The largest overhead: the length of the longest IP packet.
pub(crate) const MOST_OVERHEAD: u32 = u16::MAX as u32;

/// What is wrong with an overhead above [`MOST_OVERHEAD`].
pub(crate) fn too_much_overhead(overhead: u32) -> String {
    format!(
        "{overhead} bytes beside every packet are more than the longest packet has; an overhead is at most \
         {MOST_OVERHEAD} bytes, that of Ethernet is 14"
    )
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
            late: LateArrivals::default(),
            standstills: Standstills::default(),
            medium: MediumConfig::default(),
            quick_start: QuickStartHop::Unaware,
            rcp: None,
        }
    }

    /// Checks that the link can be simulated.
    ///
    /// # Errors
    /// The first field that is out of range, and what would be right.
    pub fn validate(&self) -> Result<(), LinkError> {
        let wrong = |field, message| LinkError { field, message };
        self.rate.validate().map_err(|error| wrong("rate", error.to_string()))?;
        self.loss.validate().map_err(|error| wrong("loss", error.to_string()))?;
        self.marking.validate().map_err(|error| wrong("marking", error.to_string()))?;
        if self.overhead > MOST_OVERHEAD {
            return Err(wrong("overhead", too_much_overhead(self.overhead)));
        }
        self.medium.validate(&self.rate).map_err(|error| wrong("medium", error.to_string()))?;
        if let Some(rcp) = &self.rcp {
            rcp.validate().map_err(|error| wrong("rcp", error.to_string()))?;
            if self.medium.wifi.is_some() {
                let message = "a router of RCP needs a link that carries the same at all times, which Wi-Fi is not";
                return Err(wrong("rcp", message.to_owned()));
            }
            if !matches!(self.quick_start, QuickStartHop::Unaware | QuickStartHop::Aware(_)) {
                let message = "a router in front of which packets are in a tunnel, or lose their options, has nobody \
                               to tell a rate";
                return Err(wrong("rcp", message.to_owned()));
            }
        }
        self.queue.validate().map_err(|error| wrong("queue", error.to_string()))
    }

    /// The rate of the transmitter: behind a shaper that of its line.
    #[must_use]
    pub fn wire_rate(&self) -> RateSchedule {
        match &self.medium.shaper {
            Some(shaper) => RateSchedule::Constant(shaper.line.unwrap_or(Rate::UNLIMITED)),
            None => self.rate.clone(),
        }
    }
}

/// Why a link cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkError {
    field: &'static str,
    message: String,
}

impl LinkError {
    /// The field of [`LinkConfig`] that is out of range.
    #[must_use]
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// What is wrong with it, without its name.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field == "rate" { f.write_str(&self.message) } else { write!(f, "{}: {}", self.field, self.message) }
    }
}

impl std::error::Error for LinkError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overhead_that_no_link_has_is_refused_with_what_would_be_right() {
        let rate = RateSchedule::Constant(Rate::from_mbps(10));
        let link = LinkConfig::new(rate, Span::ZERO, QueueConfig::drop_tail(10));
        let with = |overhead| LinkConfig { overhead, ..link.clone() }.validate();
        assert_eq!((with(14), with(65_535)), (Ok(()), Ok(())));
        for overhead in [65_536, u32::MAX] {
            let message = with(overhead).unwrap_err().to_string();
            assert!(message.contains(&overhead.to_string()) && message.contains("at most 65535"), "{message}");
            assert_eq!(with(overhead).unwrap_err().field(), "overhead");
        }
    }

    #[test]
    fn what_is_wrong_with_a_part_is_said_with_its_name() {
        let link = |rate| LinkConfig::new(RateSchedule::Constant(rate), Span::ZERO, QueueConfig::drop_tail(10));
        let good = link(Rate::from_mbps(10));
        assert_eq!(good.validate(), Ok(()));
        let dead = link(Rate::ZERO).validate().unwrap_err();
        assert_eq!((dead.field(), dead.to_string().starts_with("a link of rate 0")), ("rate", true));
        let never = LossConfig::Periodic { every: 0 };
        let says = |link: LinkConfig| link.validate().unwrap_err().to_string();
        assert!(says(LinkConfig { loss: never, ..good.clone() }).starts_with("loss: "));
        assert!(says(LinkConfig { marking: never, ..good.clone() }).starts_with("marking: "));
        assert!(says(LinkConfig { queue: QueueConfig::drop_tail(0), ..good.clone() }).starts_with("queue: "));
    }
}
