//! Paced Chirping as flow starts.

use flowstart_chirping::{AdaptiveChirpingConfig, Measured, PacedChirpingConfig, TwoGapChirpingConfig};
use flowstart_control::InvalidConfig;

use crate::{Start, StartConstants};

impl StartConstants for PacedChirpingConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        self.validate()
    }
}

impl StartConstants for TwoGapChirpingConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        self.validate()
    }
}

impl StartConstants for AdaptiveChirpingConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        self.validate()
    }
}

impl Start {
    /// The last chirp that was fit to be read, also after the start has ended; `None` before the
    /// first, and for starts that do not chirp.
    #[must_use]
    pub fn last_chirp(&self) -> Option<&Measured> {
        match self {
            Self::PacedChirping(start) => start.last_chirp(),
            Self::TwoGapChirping(start) => start.last_chirp(),
            Self::AdaptiveChirping(start) => start.chirping().last_chirp(),
            _ => None,
        }
    }
}
