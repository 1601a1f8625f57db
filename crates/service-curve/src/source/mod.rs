//! Small flow controls that give delays at millions of packets per second, as references and for
//! experiments without a network.

mod adaptive;
mod arrivals;
mod window;

pub use adaptive::{AdaptiveLoop, AdaptiveLoopConfig, Growth, Marking, Sent};
pub use arrivals::ConstantRate;
pub use window::WindowedLink;
