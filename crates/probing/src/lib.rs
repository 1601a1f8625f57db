//! Constant-rate connections of the simulator, watched message by message.

mod passage;
mod train;

pub use passage::Part;
pub use passage::{Passage, PassageSample};
pub use train::{Deliveries, Train, TrainConfig};
