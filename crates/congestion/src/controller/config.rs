//! What a controller is made of.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use flowstart_avoidances::AvoidanceConfig;
use flowstart_control::{Connection, InvalidConfig, Pacing, Setup};
use flowstart_starts::StartConfig;

/// As scenario files have them.
const INITIAL_WINDOWS: core::ops::RangeInclusive<u32> = 1..=1_000_000;

/// Everything a controller is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerConfig {
    /// The flow start.
    pub start: StartConfig,
    /// The congestion avoidance.
    pub avoidance: AvoidanceConfig,
    /// Threshold in packets the connection begins with, at least 2, if one is known from before
    /// (Linux's `ssthresh` route metric); default none.
    pub initial_ssthresh: Option<u32>,
    /// Initial window in packets, 1 ..= 1000000; default 10 (RFC 6928 section 2).
    pub initial_window: u32,
    /// Whether and how packets are spaced when neither start nor avoidance say so themselves.
    pub pacing: Pacing,
    /// Maximum segment size in payload bytes, for algorithms that count bytes or set rates.
    pub mss: u32,
    /// A rate that a start left behind holds for so many smoothed RTTs at most, any number; default
    /// 2: one to fill the window, one for what the estimate of the rate was too low (this
    /// project's).
    pub left_behind_rtts: u32,
    /// Seed of the algorithm's own randomness (none of the deterministic algorithms uses it).
    pub seed: u64,
}

impl ControllerConfig {
    /// The default of `left_behind_rtts`.
    pub const LEFT_BEHIND_RTTS: u32 = 2;

    /// A start and an avoidance with initial window 10, MSS 1448, no pacing and seed 0.
    #[must_use]
    pub fn new(start: StartConfig, avoidance: AvoidanceConfig) -> Self {
        Self {
            start,
            avoidance,
            initial_ssthresh: None,
            initial_window: 10,
            pacing: Pacing::Off,
            mss: 1448,
            left_behind_rtts: Self::LEFT_BEHIND_RTTS,
            seed: 0,
        }
    }

    /// Checks that every value is in its range. A controller made from values out of range works,
    /// with the nearest value in range.
    ///
    /// # Errors
    /// Names the first field that is not, and what it must be.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let window = INITIAL_WINDOWS.contains(&self.initial_window);
        InvalidConfig::unless(window, "initial_window", "between 1 and 1000000")?;
        InvalidConfig::unless(self.initial_ssthresh.is_none_or(|s| s >= 2), "initial_ssthresh", "at least 2")?;
        InvalidConfig::unless(self.mss >= 1, "mss", "at least 1 byte")?;
        self.pacing.validate()?;
        self.start.validate()?;
        self.avoidance.validate()
    }

    /// Window, segment size and seed, in their ranges.
    pub(super) fn connection(&self) -> Connection {
        let initial_window = self.initial_window.clamp(*INITIAL_WINDOWS.start(), *INITIAL_WINDOWS.end());
        Connection { initial_window, mss: self.mss.max(1), paced: self.pacing != Pacing::Off, seed: self.seed }
    }
}

/// What a start and an avoidance are called together: `START+AVOIDANCE`, or the avoidance's name
/// alone if the start is the one that belongs to it.
#[must_use]
pub fn joint_name(start: &StartConfig, avoidance: &AvoidanceConfig) -> String {
    if *start == StartConfig::BuiltIn && avoidance.brings_start() {
        return avoidance.name().to_owned();
    }
    format!("{}+{}", start.name(), avoidance.name())
}

/// The start of a flow of which only the avoidance is named: the one that belongs to it, else
/// standard slow start.
#[must_use]
pub fn start_of(avoidance: &AvoidanceConfig) -> StartConfig {
    if avoidance.brings_start() { StartConfig::BuiltIn } else { StartConfig::SlowStart }
}

impl<'a> From<&'a ControllerConfig> for Setup<'a, StartConfig> {
    fn from(config: &'a ControllerConfig) -> Self {
        Self { config: &config.start, connection: config.connection() }
    }
}

impl<'a> From<&'a ControllerConfig> for Setup<'a, AvoidanceConfig> {
    fn from(config: &'a ControllerConfig) -> Self {
        Self { config: &config.avoidance, connection: config.connection() }
    }
}
