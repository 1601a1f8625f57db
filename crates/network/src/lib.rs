//! What lies between two hosts: packets, queues, links and loss processes, free of any clock.
//!
//! A [`Queue`] takes a packet at a time and gives the next one at a time; it never asks what the time is. The simulator calls it
//! with virtual time, the emulator with the real clock; nothing in here differs between the two. Whatever can be queued implements
//! [`Frame`]: the simulator's [`Packet`], the emulator's real frames.

mod frame;
mod link;
mod loss;
pub mod packet;
pub mod queue;
mod random;

pub use frame::{Ecn, Frame, TagWord};
pub use link::{
    Jitter, JitterConfig, LinkConfig, LinkError, QuickStartHop, RateError, RateSchedule, RateStep, Transmitter,
    parse_mahimahi,
};
pub use loss::{Loss, LossConfig, LossError};
pub use packet::Packet;
pub use queue::{
    CodelArithmetic, CodelConfig, Dequeue, DropReason, DropTailConfig, DrrConfig, DualPi2Config, FairQueuingConfig,
    FqCodelConfig, L4sClassifier, PieConfig, Queue, QueueConfig, QueueError, QueueStats, RedAdaption, RedConfig,
    SchRedConfig, StepMarkConfig, Threshold,
};
