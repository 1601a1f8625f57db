//! The contract between a transport and congestion control: what an algorithm is told, what it
//! answers, and how it is named and described.
//!
//! A [`FlowStart`] brings a flow up to speed and hands over to a [`CongestionAvoidance`]; both
//! share a [`Window`]. The transport's events are plain values ([`Sent`], [`Acked`], [`Ack`],
//! [`Signal`]). No algorithm is here; what several of them share is ([`Pacing`], [`random`],
//! [`smallest`]).

#![cfg_attr(not(any(test, feature = "std")), no_std)]

extern crate alloc;

mod avoidance;
mod event;
mod forward;
mod hystart;
mod isolation;
mod mss;
pub mod names;
mod own;
mod pacing;
pub mod random;
mod ranges;
mod registry;
mod rtt;
#[cfg(feature = "serde")]
pub mod serialize;
mod setup;
pub mod smallest;
mod start;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod window;

pub use avoidance::{CongestionAvoidance, IsolationAware, OwnAvoidance};
pub use event::{Ack, Acked, Answer, DeliveryRate, Departure, Moment, Next, Occasion, Repair, Sent, Signal};
pub use hystart::HystartConfig;
pub use isolation::{CrowdRule, Isolation};
pub use mss::NewMss;
pub use names::{InvalidConfig, UnknownName};
#[cfg(feature = "std")]
pub use own::OwnNames;
pub use own::{Own, OwnError};
pub use pacing::{Pacing, WindowRate, stack_pacing_rate};
pub use ranges::{Above, InRange, Ranged, Ranges, above};
pub use rtt::SmoothedRtt;
pub use setup::{Connection, Setup};
pub use start::{
    AfterAck, Afterwards, Exit, ExitReason, FlowStart, LastRtt, Lookout, OwnStart, Response, Restart, RouterClient,
};
pub use window::{INFINITE_SSTHRESH, Window};

/// For [`forward_avoidance`] and [`forward_start`].
#[doc(hidden)]
pub use flowstart_units as units;
