//! Where a race is run.

use super::Carrier;

/// Where a race is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum World {
    /// In the simulator.
    #[default]
    Simulated,
    /// On this machine's kernel.
    Kernel,
    /// Over this project's QUIC.
    Quic {
        /// The stack that it drives, by name.
        stack: String,
    },
}

impl World {
    /// True outside the simulator, where no run is like another.
    #[must_use]
    pub fn is_real(&self) -> bool {
        *self != Self::Simulated
    }

    /// The QUIC stack by name, if it is run over one.
    #[must_use]
    pub fn stack(&self) -> Option<&str> {
        match self {
            Self::Simulated | Self::Kernel => None,
            Self::Quic { stack } => Some(stack),
        }
    }

    /// Who carries the contestants in the place of the simulator.
    #[must_use]
    pub fn carrier(&self) -> Option<Carrier> {
        match self {
            Self::Simulated => None,
            Self::Kernel => Some(Carrier::Kernel),
            Self::Quic { .. } => Some(Carrier::EmulatedQuic),
        }
    }
}
