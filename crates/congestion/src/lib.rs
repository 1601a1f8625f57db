//! Congestion control as plain state machines: a flow start and a congestion avoidance, joined by a
//! [`Controller`].
//!
//! No sockets, no clock, no allocation per packet. The transport tells the controller what happened
//! ([`Sent`], [`Acked`], [`Ack`], [`Signal`]) and asks two things: how many packets may be in
//! flight ([`Controller::cwnd`]) and when the next packet may leave at the earliest
//! ([`Controller::departure`]).
//!
//! # Units
//!
//! Windows and thresholds are counted in packets (segments of one MSS), as Linux does; fractions
//! live inside the algorithms. Events count both: packets in `acked`, `lost`, `in_flight`,
//! `delivered`; bytes of payload in `bytes`, `acked_bytes`, `seq`, `una`, `next`. Rates are of
//! payload, in bit/s; times are nanoseconds since whatever moment the transport calls zero. A
//! window of a QUIC stack, in bytes, is [`Controller::cwnd`] times [`Controller::mss`].
//!
//! The MSS may change ([`Controller::set_mss`]): windows then stay what they are in bytes.
//!
//! # In other programs
//!
//! [`Controller`], and every start and avoidance, is `Clone + Send + Sync`: a clone is a controller
//! in the same state that goes its own way. Without the feature `std` (on by default) this crate
//! needs `alloc` alone; what is missing then is the registration of algorithms by name.
//!
//! # Order of calls
//!
//! The order of calls for one ACK (as in Linux `tcp_ack`):
//! 1. [`Controller::on_acked`] for every newly delivered packet, if [`Controller::wants_packets`];
//! 2. [`Controller::on_ack`]: RTT samples, marks, rounds; a start may leave here, before the window
//!    grows;
//! 3. [`Controller::on_signal`] if the transport found a loss or marks that call for a reduction;
//! 4. [`Controller::grow`] if growth is allowed, or [`Controller::set_cwnd`] while proportional
//!    rate reduction is in charge.
//!
//! # Own algorithms
//!
//! Any [`FlowStart`] goes with any [`CongestionAvoidance`]. One from outside this crate is joined
//! with [`Start::External`] or [`Avoidance::External`], or has a name wherever names are read:
//! [`Own`], `StartConfig::register`. What it does not say, it leaves to defaults that fit the ACK
//! clock. A start that triples the window until half of the packets it sees are
//! marked:
//!
//! ```
//! use flowstart_congestion::{Ack, Exit, ExitReason, FlowStart, AfterAck, Window};
//! use flowstart_congestion::{Avoidance, AvoidanceConfig, Controller, ControllerConfig};
//! use flowstart_congestion::{Start, StartConfig};
//!
//! #[derive(Clone)]
//! struct Triple;
//!
//! impl FlowStart for Triple {
//!     fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> AfterAck {
//!         if ack.marked * 2 <= ack.acked {
//!             return AfterAck::Continue;
//!         }
//!         let cwnd = ack.in_flight.max(2);
//!         AfterAck::Done(Exit { reason: ExitReason::Marks, cwnd, ssthresh: cwnd, rate: None })
//!     }
//!
//!     fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
//!         let more = ack.acked.saturating_mul(2);
//!         window.cwnd = window.cwnd.saturating_add(more).min(window.ssthresh);
//!         0
//!     }
//! }
//!
//! let dctcp = AvoidanceConfig::from_name("dctcp")?;
//! let config = ControllerConfig::new(StartConfig::SlowStart, dctcp);
//! let start = Start::External(Box::new(Triple));
//! let controller = Controller::join(start, Avoidance::new(&config), &config);
//! assert!(controller.is_starting());
//! # Ok::<(), flowstart_congestion::UnknownName>(())
//! ```

#![cfg_attr(not(any(test, feature = "std")), no_std)]

extern crate alloc;

mod controller;

pub use controller::{Controller, ControllerConfig, Prior, StartExit, Steering, joint_name, start_of};
pub use flowstart_avoidances as avoidance;
pub use flowstart_avoidances::{Avoidance, AvoidanceConfig};
pub use flowstart_control::{
    Ack, Acked, AfterAck, Afterwards, Answer, CongestionAvoidance, Connection, CrowdRule, DeliveryRate, Departure,
    Exit, ExitReason, FlowStart, INFINITE_SSTHRESH, InvalidConfig, IsolationAware, LastRtt, Lookout, Moment, NewMss,
    Next, Occasion, Own, OwnAvoidance, OwnError, OwnStart, Pacing, Repair, Response, Restart, RouterClient, Sent,
    Setup, Signal, SmoothedRtt, UnknownName, Window, forward_avoidance, forward_start,
};
pub use flowstart_detection as detection;
pub use flowstart_starts as start;
pub use flowstart_starts::{Start, StartConfig};
