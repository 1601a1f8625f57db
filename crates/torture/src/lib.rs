//! Random scenarios against invariants.
//!
//! [`scenario_of`] makes a valid scenario from a seed, [`judge`] simulates it and checks what must
//! hold whatever is simulated, and [`shrink`] drops parts of a scenario that fails for as long as
//! it still fails. The program of this crate does that by the thousand; the test `random_scenarios`
//! does some hundreds.
//!
//! What is checked, packet by packet ([`Checker`]) and at the end:
//!
//! - Packets are conserved on every link and for every flow: sent = received + dropped + stored or
//!   on their way.
//! - Queues that promise an order keep it, and a packet leaves as it came, marks and Quick-Start
//!   options apart.
//! - No link idles while packets wait, and none transmits two at once; what a transmission takes
//!   follows from the rate.
//! - Time never goes back; nothing is sent beyond the window; nothing leaves before the time its
//!   start gave it.
//! - A stream arrives whole, in order and once; what a transfer reports is what was seen.
//! - The same scenario gives the same bytes: in slices, with one thread and two, and read back from
//!   its effective parameters.

#![forbid(unsafe_code)]

mod chance;
mod checker;
mod flows;
mod generate;
mod judge;
mod links;
mod paths;
mod shrink;
mod tables;
mod vary;

pub use checker::{Checker, Enough};
pub use generate::scenario_of;
pub use judge::{Judgement, Limits, Passed, judge};
pub use shrink::shrink;
