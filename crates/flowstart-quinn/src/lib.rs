//! The algorithms of flowstart in the QUIC stacks of others, as their congestion controllers: in
//! [quinn](https://docs.rs/quinn) (feature `quinn`, on by default) and noq (feature `noq`).
//!
//! ```
//! # #[cfg(feature = "quinn")] {
//! use std::sync::Arc;
//!
//! use flowstart_quinn::{QuinnFactory, contestant};
//!
//! let factory = QuinnFactory::new(contestant("hystart++", "cubic")?)?;
//! let mut transport = quinn_proto::TransportConfig::default();
//! transport.congestion_controller_factory(Arc::new(factory));
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What runs where
//!
//! These stacks ask a controller for a window in bytes; noq takes a pacing rate too, quinn paces at
//! 1.25 windows per round trip by itself. What needs more is refused with a sentence that says why
//! ([`Refused`]):
//!
//! - both: the starts slow_start, built_in, hystart, hystart_plus_plus, search,
//!   limited_slow_start, careful_resume, and the avoidances reno, cubic, bic, scalable;
//! - noq: the starts suss, rapid_start and bbr_start too, and the avoidance delay_target.
//!
//! Chirps, trains of packets, requests to routers and detectors of fair queuing want every packet
//! to leave at a time of its own, or more than the stack tells; `flowstart-quic` runs them, by
//! driving the stack from outside.
//!
//! # What is different here
//!
//! - What a stack lets leave in a burst is its affair: both allow 10 packets or more at once.
//! - Careful Resume paces its jump over a round trip. In noq it does so at its own rate, in quinn
//!   at the stack's, 1.25 windows per round trip.
//! - SUSS needs windows to leave unpaced but for the packets it adds; [`contestant`] asks for that
//!   ([`Pacing::Off`]), and noq then lets packets leave as the window opens.
//! - Reductions take effect at once (RFC 9002), not by proportional rate reduction.
//! - A window that an application did not use does not grow, but does not shrink either.
//! - Losses are told after the ACK that showed them, as an ACK of nothing.
//!
//! How events of a QUIC stack become those of `flowstart-congestion` stands, step by step, in the
//! repository's `docs/quic-events.md`.

#[cfg_attr(not(feature = "noq"), allow(dead_code, reason = "noq alone takes a rate and undoes reductions"))]
#[cfg(any(feature = "quinn", feature = "noq"))]
mod builds;
#[cfg(any(feature = "quinn", feature = "noq"))]
mod events;
#[cfg(feature = "noq")]
mod noq;
#[cfg(feature = "quinn")]
mod quinn;
#[cfg_attr(
    not(any(feature = "quinn", feature = "noq")),
    allow(dead_code, reason = "without a stack there is nothing to check")
)]
mod refused;

pub use flowstart_congestion as congestion;
#[cfg(feature = "noq")]
pub use noq::{NoqController, NoqFactory};
#[cfg(feature = "quinn")]
pub use quinn::{QuinnController, QuinnFactory};
pub use refused::{Reason, Refused, Stack};

use flowstart_congestion::{AvoidanceConfig, ControllerConfig, Pacing, StartConfig, UnknownName};

/// A start and an avoidance by their names, with their default constants: what the factories of
/// both stacks are made of. The initial window is 10 packets, which are paced unless the start
/// needs them not to be (SUSS).
///
/// # Errors
/// If nothing has one of the names; the message suggests the nearest.
pub fn contestant(start: &str, avoidance: &str) -> Result<ControllerConfig, UnknownName> {
    let config = ControllerConfig::new(StartConfig::from_name(start)?, AvoidanceConfig::from_name(avoidance)?);
    let pacing = if matches!(config.start, StartConfig::Suss(_)) { Pacing::Off } else { Pacing::LINUX };
    Ok(ControllerConfig { pacing, ..config })
}

#[doc = include_str!("../../../docs/quic-events.md")]
#[cfg(all(doctest, feature = "quinn"))]
struct EventsPage;
