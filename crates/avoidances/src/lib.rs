//! Congestion avoidance: what a flow does once it is up to speed. All that can be named, and the registry that names them.
//!
//! An avoidance is a [`CongestionAvoidance`]; [`Avoidance`] is any of them in operation, [`AvoidanceConfig`] which one, with its constants.

pub mod allegro;
mod avoidance;
pub mod bbr;
pub mod bic;
mod by_isolation;
mod config;
pub mod cubic;
pub mod dctcp;
pub mod delay_target;
mod intervals;
pub mod reno;
pub mod scalable;
mod trials;
pub mod vegas_like;
pub mod vivace;

pub use allegro::{Allegro, AllegroConfig};
pub use bbr::{Bbr, BbrConfig, BbrMode};
pub use bic::{Bic, BicConfig};
pub use by_isolation::{ByIsolation, DelayOrCubicConfig, VegasOrVivaceConfig};
pub use config::AvoidanceConfig;
pub use cubic::{Cubic, CubicConfig};
pub use dctcp::{Dctcp, DctcpConfig};
pub use delay_target::{DelayTarget, DelayTargetConfig};
pub use reno::Reno;
pub use scalable::{Scalable, ScalableConfig};
pub use vegas_like::{VegasLike, VegasLikeConfig};
pub use vivace::{Vivace, VivaceConfig};

pub use avoidance::Avoidance;
pub use flowstart_control::CongestionAvoidance;
