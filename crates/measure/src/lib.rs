//! Measures of a flow start: what was recorded, and pure functions from that to numbers.
//!
//! | measure | function | what it says |
//! |---|---|---|
//! | M1 | [`utilisation`] | share of the fair rate used over the last round trip |
//! | M2 | [`time_to`] | round trips until that share stays above a level |
//! | M3 | [`deficit`], [`duplicates`] | data not carried although there was room, in BDP |
//! | M4 | [`overshoot`] | queue the newcomer adds, as peak and as area |
//! | M5 | [`Losses`] | packets lost, own and others', before and after the exit |
//! | M6 | [`Exit`] | how far from the BDP the start ended, and why |
//! | M7 | [`ideal_completion`], [`slowdown`] | completion time over the best one possible |
//! | M8 | [`waits_of`], [`busy_time`] | delay added to other flows, by paired runs |
//! | M9 | [`harm`] | throughput taken from other flows beyond the fair loss, by paired runs |
//! | M10 | [`convergence`], [`jain`] | time until a newcomer keeps its fair share |
//! | M11 | [`overhead`] | bytes sent over bytes delivered |
//! | M12 | [`Estimate`] | spread over runs |
//!
//! The numbers M1 … M12 and their formulas are this project's; where the literature has a
//! definition of its own (RFC 5166, the IETF ICCRG discussion of 2007 on evaluating start-up by
//! per-flow transfer time, data-centre papers' completion-time slowdown) the function cites it.
//! Where an implementation already reports the same quantity, its name stands in the documentation:
//! neqo's `slow_start_exit_reason`, `slow_start_exit_detection_cwnd`,
//! `slow_start_exit_bytes_in_flight`, and quicly's comparison of starts by the integral of
//! delivered bytes.
//!
//! Conventions, the same in every function:
//!
//! - t = 0 when the first data bit of the (first) new flow reaches the bottleneck's queue.
//! - egress(t): bytes of the flow that have left the bottleneck by t, each byte of the stream
//!   counted the first time it leaves, on the wire (IP packet and the link's overhead per packet).
//!   A packet leaves bit by bit over its transmission time.
//! - C_f, [`Reference::fair_share`]: the max-min fair share of the flow. RTT0,
//!   [`Reference::base_rtt`]: two-way propagation and the serialization of one packet. B_f = C_f *
//!   RTT0. H, [`Reference::horizon`]: 40 RTT0 unless stated.
//! - Of a capacity that changes C_f is the share of each moment ([`Reference::moments`]): what left
//!   is compared with what could have left in the same time. B_f as a unit is of the mean.
//! - q(t): how long a packet arriving at t waits until its transmission begins, in seconds.
//!
//! A flow that gets nothing for five round trips and then its share: it was idle for five BDPs.
//!
//! ```
//! use flowstart_measure::{Egress, Reference, deficit, jain, time_to, utilisation};
//! use flowstart_units::{Rate, Span};
//!
//! let (share, rtt) = (Rate::from_mbps(8), Span::from_millis(100));
//! let reference = Reference::new(share, rtt);
//! let mut egress = Egress::new(Span::from_millis(1), reference.horizon + rtt * 10, 10_000);
//! // 1000 bytes take 1 ms at 8 Mbit/s.
//! for ms in 500..5_000 {
//!     egress.add(Span::from_millis(ms), 1_000);
//! }
//! let egress = egress.cumulative();
//! assert_eq!(deficit(&egress, &reference), 5.0);
//! assert_eq!(utilisation(&egress, &reference, Span::from_millis(550)), 0.5);
//! assert_eq!(time_to(0.5, &egress, &reference), Some(5.5));
//! assert_eq!(jain(&[1.0, 1.0, 1.0, 0.0]), Some(0.75));
//! ```

mod changes;
pub mod claims;
mod delay;
mod egress;
mod exit;
pub mod measures;
mod moments;
mod others;
mod quantity;
mod recording;
mod speed;
mod spread;
mod statistic;
mod thinned;
mod transfer;
mod wait;

pub use delay::{DelaySummary, Overshoot, busy_time, mean_wait, overshoot, quantile};
pub use egress::{Cumulative, Egress, Reference};
pub use exit::{Exit, ExitJudgement, Losses};
pub use moments::Moments;
pub use others::{convergence, harm, harm_ratio, jain, max_min_part, max_min_share, waits_of};
pub use quantity::{Bound, Dimension, Measured, ReadError};
pub use recording::{
    Asked, Fate, FlowRecord, FlowSample, Flows, LinkAsked, LinkRecord, LinkSample, LinkSeries, LinksAndWindows,
    Newcomers, Origin, PORTION, PacketRecord, Packets, Parts, Recording, Samples, SamplesAndPackets, SenderState,
    TransferWaits,
};
pub use speed::{deficit, duplicates, least_utilisation, overhead, time_to, utilisation};
pub use spread::{Estimate, bootstrap_median};
pub use statistic::Statistic;
pub use thinned::Thinned;
pub use transfer::{geometric_mean, ideal_completion, slowdown, wire_bytes};
pub use wait::Wait;
