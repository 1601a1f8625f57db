//! Does the bottleneck isolate flows from each other? Two detectors:
//!
//! - that of Bachl, Fabini and Zseby, "Detecting Fair Queuing for Better Congestion Control"
//!   (2020), as published and implemented ([`ProbeFlow`], [`Coordinator`]; the flow start
//!   `two_flow_probe`);
//! - this project's, by short trains of one connection and lone packets of another ([`Trains`],
//!   [`TrainProbeConfig`]; the flow start `fair_queuing_probe`).
//!
//! # The published one
//!
//! Two flows send to the same place, the second twice as fast as the first, with jittered gaps. As
//! long as not both lose packets, both double their rates. When both have lost, each sends more
//! than its share: in a shared queue the same part of both arrives, in fair queuing the same
//! amount. So the ratio of the parts that arrive is near 1 or near 2, and more than 1.5 means fair
//! queuing.
//!
//! The two flows are two [`ProbeFlow`]s, which measure in monitor intervals and say when packets
//! leave; a [`Coordinator`] joins their [`Sample`]s. Neither knows sockets or clocks. A flow that
//! loses packets for the first time throws its interval away, so that packets which only fill the
//! queue do not count.
//!
//! Known faults of the method, which are kept: it needs hundreds of lost packets, a buffer of one
//! packet looks shared, and path reordering looks like loss. Where the implementation would be
//! stuck (nothing of either flow arrives), [`Coordinator`] measures again.

#![cfg_attr(not(any(test, feature = "std")), no_std)]

extern crate alloc;

mod answer;
mod config;
mod coordinator;
pub mod pair;
mod probe;
mod trains;
mod two_flows;

#[cfg(test)]
use flowstart_control::testing;
use flowstart_control::{Acked, CrowdRule, Departure, Sent, names, random, smallest};

pub use answer::{Decision, Isolation};
pub use config::{DetectorConfig, Jitter};
pub use coordinator::{Coordinator, FairQueuingVerdict, Step};
pub use pair::PairDetector;
pub use probe::{ProbeEvent, ProbeFlow, Sample};
pub use trains::{EvidenceConfig, MeetingConfig, PolicingConfig, TrainProbeConfig, Trains, WatchConfig};
pub use two_flows::TwoFlows;
