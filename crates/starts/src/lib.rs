//! Flow starts: from the first packet of a flow until they hand over to congestion avoidance. All that can be named, and the registry that names them.
//!
//! A start is a [`FlowStart`]; [`Start`] is any of them in operation, [`StartConfig`] which one, with its constants. Paced Chirping has a crate of its own,
//! [`paced_chirping`].

pub mod bbr_start;
pub mod careful_resume;
mod config;
pub mod directed;
mod first_recovery;
pub mod hystart;
pub mod hystart_plus_plus;
pub mod jump_start;
pub mod limited_slow_start;
pub mod quick_start;
pub mod rapid_start;
pub mod search;
pub mod slow_start;
mod spacing;
mod start;
pub mod suss;

pub use bbr_start::{BbrStart, BbrStartConfig};
pub use careful_resume::{CarefulResume, CarefulResumeConfig};
pub use config::StartConfig;
pub use directed::Directed;
pub use flowstart_chirping::{
    AdaptiveChirping, AdaptiveChirpingConfig, BeliefConfig, ChirpingAgainConfig, PacedChirping, PacedChirpingConfig,
    TwoGapChirping, TwoGapChirpingConfig,
};
pub use hystart::{Hystart, HystartConfig};
pub use hystart_plus_plus::{HystartPlusPlus, HystartPlusPlusConfig};
pub use jump_start::{JumpStart, JumpStartConfig};
pub use limited_slow_start::{LimitedSlowStart, LimitedSlowStartConfig};
pub use quick_start::{GrantCheckConfig, QuickStart, QuickStartConfig};
pub use rapid_start::{RapidStart, RapidStartConfig};
pub use search::{Search, SearchConfig};
pub use slow_start::SlowStart;
pub use suss::{Suss, SussConfig};

pub use flowstart_chirping as paced_chirping;
pub use flowstart_control::{Exit, ExitReason, FlowStart, LastRtt, Response, Restart, Verdict};
pub use start::Start;
