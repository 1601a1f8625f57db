//! Constant-rate connections of the simulator, watched message by message.

mod passage;
mod train;

pub use passage::Part;
pub(crate) use passage::Passage;
pub(crate) use train::{Deliveries, Train, TrainConfig};
