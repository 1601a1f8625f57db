//! Paced Chirping as flow starts.

use flowstart_chirping::belief::Room;
use flowstart_chirping::{AdaptiveChirpingConfig, Measured, PacedChirpingConfig, TwoGapChirpingConfig};
use flowstart_control::InvalidConfig;

use crate::{Start, StartConstants};

/// Chirps have departures of their own.
const BY_CHIRPS: &str = "departures set by the chirps";

impl StartConstants for PacedChirpingConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        self.validate()
    }

    fn wants_every_ack(&self) -> bool {
        true
    }

    fn sends(&self) -> Option<&'static str> {
        Some(BY_CHIRPS)
    }

    fn chirps(&self) -> bool {
        true
    }
}

impl StartConstants for TwoGapChirpingConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        self.validate()
    }

    fn wants_every_ack(&self) -> bool {
        true
    }

    fn sends(&self) -> Option<&'static str> {
        Some(BY_CHIRPS)
    }

    fn chirps(&self) -> bool {
        true
    }
}

impl StartConstants for AdaptiveChirpingConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        self.validate()
    }

    fn sends(&self) -> Option<&'static str> {
        Some(BY_CHIRPS)
    }

    fn chirps(&self) -> bool {
        true
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

    /// What all chirps so far say together of the room on the path; `None` for starts that go by
    /// one chirp after the other.
    #[must_use]
    pub fn room(&self) -> Option<Room> {
        match self {
            Self::AdaptiveChirping(start) => start.chirping().schedule().room(),
            _ => None,
        }
    }
}
