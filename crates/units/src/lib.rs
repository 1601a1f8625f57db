//! Time, rates and sizes as integers, with the field's units for reading and printing.
//!
//! Every quantity of flowstart is one of four newtypes over `u64`: [`Time`] (nanoseconds since the
//! start of a run), [`Span`] (a length of time in nanoseconds), [`Rate`] (bits per second) and
//! [`Bytes`]. Floats never hold time. All operators saturate: a time past the end of the range is
//! the end of the range, a span below zero is zero. Where overflow must be noticed there is a
//! `checked_…` method.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod bytes;
mod number;
mod parse;
mod print;
mod rate;
mod ratio;
#[cfg(feature = "serde")]
mod serialize;
mod time;

pub use bytes::Bytes;
pub use number::Number;
pub use parse::{ParseUnitError, parse_fraction, parse_time_limit};
pub use rate::Rate;
pub use time::{Span, Time};
