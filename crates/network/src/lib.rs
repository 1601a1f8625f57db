//! What lies between two hosts: packets, queues, links and loss processes, free of any clock.
//!
//! A [`Queue`] takes a packet at a time and gives the next one at a time; it never asks what the
//! time is. The simulator calls it with virtual time, the emulator with the real clock; nothing in
//! here differs between the two. Whatever can be queued implements [`Frame`]: the simulator's
//! [`Packet`], the emulator's real frames.
//!
//! # A queue from outside
//!
//! Any [`Discipline`] can stand in a [`Queue`]. This one drops the oldest packet when it is full,
//! not the one that arrives:
//!
//! ```
//! use flowstart_network::packet::{Body, Datagram};
//! use flowstart_network::{
//!     Dequeue, Discipline, DropReason, Ecn, Fifo, Frame, Packet, Queue, Tally,
//! };
//! use flowstart_units::Time;
//!
//! struct DropOldest<P> {
//!     fifo: Fifo<P>,
//!     limit: u64,
//! }
//!
//! impl<P: Frame> Discipline<P> for DropOldest<P> {
//!     fn enqueue(&mut self, now: Time, packet: P, dropped: &mut dyn FnMut(P, DropReason)) {
//!         self.fifo.push(packet, now);
//!         if self.fifo.packets() > self.limit
//!             && let Some((oldest, _)) = self.fifo.pop()
//!         {
//!             dropped(oldest, DropReason::Full);
//!         }
//!     }
//!
//!     fn dequeue(&mut self, _now: Time, _dropped: &mut dyn FnMut(P, DropReason)) -> Dequeue<P> {
//!         self.fifo.take()
//!     }
//!
//!     fn tally(&self) -> Tally {
//!         self.fifo.tally(0)
//!     }
//! }
//!
//! let mut queue = Queue::external(Box::new(DropOldest { fifo: Fifo::new(), limit: 2 }));
//! for number in 0..3 {
//!     let body = Body::Datagram(Datagram { number, sent_at: Time::ZERO });
//!     let packet = Packet { flow: 0, bytes: 1500, ecn: Ecn::NotEct, body };
//!     queue.enqueue(Time::ZERO, packet, &mut |_, reason| assert_eq!(reason, DropReason::Full));
//! }
//! let Dequeue::Packet(oldest, _) = queue.dequeue(Time::ZERO, &mut |_, _| {}) else { panic!() };
//! assert!(matches!(oldest.body, Body::Datagram(Datagram { number: 1, .. })));
//! assert_eq!((queue.packets(), queue.stats().dropped), (1, 1));
//! ```

mod frame;
mod link;
mod loss;
mod medium;
pub mod packet;
pub mod queue;
mod rcp;

pub use frame::{Ecn, Frame, PureAck, TagWord};
pub use link::{
    Jitter, JitterConfig, LateArrivals, LinkConfig, LinkError, QuickStartHop, RateError, RateSchedule, RateStep,
    Sending, Standstills, Transmitter, Variation, parse_mahimahi,
};
pub use loss::{Loss, LossConfig, LossError};
pub use medium::{
    Detour, GrantsConfig, HandoverConfig, Medium, MediumConfig, MediumError, Passage, PolicerConfig, Served,
    ShaperConfig, SlotsConfig, Wifi, WifiConfig,
};
pub use packet::Packet;
pub use queue::configs::*;
pub use queue::{
    CodelArithmetic, Dequeue, Discipline, DropReason, Fifo, HostShares, Hosts, L4sClassifier, Limit, Order, Queue,
    QueueConfig, QueueError, QueueStats, RedAdaption, Tally, Threshold,
};
pub use rcp::{Rcp, RcpConfig, RcpError};
