//! Quick-Start for TCP (RFC 4782): a sender asks the routers on the path for a rate, and each of
//! them may lower it or refuse.
//!
//! No sockets, no clock: bytes and times are arguments. The pieces, in the order a request meets
//! them:
//!
//! - [`RateCode`], [`Nonce`] and the *TTL difference* ([`ttl_difference`]) are what a request
//!   consists of;
//! - [`wire`] reads and writes the IPv4 and IPv6 options and the TCP option, and never panics,
//!   whatever the bytes are.
//! - [`Sender`] asks, checks the answer, paces what was granted and reacts to congestion;
//!   [`Receiver`] answers.
//! - [`Router`] forwards packets and decides on requests by its [`Admission`]; [`path`] has the
//!   hops that do not;
//! - [`model`] says how much faster a transfer becomes.
//!
//! # A request passes a router
//!
//! ```
//! use flowstart_quick_start::{Nonce, RateCode, ttl_difference, wire::IpOption};
//!
//! // 5.12 Mbit/s asked for, by a packet that leaves with TTL 64.
//! let asked = RateCode::floor(flowstart_units::Rate::from_bps(5_120_000));
//! let request = IpOption::Request { rate: asked, ttl: 91, nonce: Nonce::new(0x2aaa_aaaa) };
//! assert_eq!(request.to_ipv4(), [0x19, 8, 0x07, 0x5b, 0xaa, 0xaa, 0xaa, 0xa8]);
//! assert_eq!(ttl_difference(64, 91), 229);
//!
//! // A router allows half of that: the nonce shows the receiver and the sender that nobody raised
//! // it again.
//! let allowed = RateCode::new(6).unwrap();
//! let nonce = Nonce::new(0x2aaa_aaaa).lowered(asked, allowed, 0x1000);
//! assert!(nonce.agrees_with(Nonce::new(0x2aaa_aaaa), allowed));
//! assert!(!nonce.agrees_with(Nonce::new(0x2aaa_aaaa), asked));
//! ```

#![cfg_attr(not(any(test, feature = "std")), no_std)]

extern crate alloc;

mod carried;
pub mod model;
mod nonce;
#[cfg(feature = "std")]
pub mod path;
mod rate;
pub mod receiver;
#[cfg(feature = "std")]
pub mod router;
pub mod sender;
pub mod wire;

pub use carried::Carried;
pub use nonce::{Nonce, ttl_difference};
pub use rate::RateCode;
pub use receiver::Receiver;
#[cfg(feature = "std")]
pub use router::{Admission, Router};
pub use sender::{Sender, SenderConfig};
