//! What the constants of an avoidance say beside what they are.

use flowstart_control::{InvalidConfig, Own, OwnAvoidance};

use crate::AvoidanceConfig;

/// The constants of a congestion avoidance.
pub trait AvoidanceConstants {
    /// Checks that every constant is in its range.
    ///
    /// # Errors
    /// Names the first field that is not, and what it must be.
    fn validate(&self) -> Result<(), InvalidConfig> {
        Ok(())
    }

    /// True if this algorithm asks the network for accurate congestion marks on every packet (RFC
    /// 8257 section 3), so that its flows should send ECN-capable packets.
    fn wants_ecn(&self) -> bool {
        false
    }

    /// True if this algorithm draws random numbers from the seed of its connection, so that runs
    /// with it differ.
    fn draws(&self) -> bool {
        false
    }

    /// True if this algorithm has a start that belongs to it, so that its name alone means both.
    fn brings_start(&self) -> bool {
        false
    }

    /// How a flow with this avoidance spaces its packets once it is in charge, in a few words,
    /// where it sets a pacing rate of its own.
    fn spaces(&self) -> Option<&'static str> {
        None
    }

    /// These constants, whichever they are.
    fn constants(&self) -> &dyn AvoidanceConstants
    where
        Self: Sized,
    {
        self
    }
}

/// An avoidance without constants.
impl AvoidanceConstants for () {}

/// An avoidance from outside has its constants in itself.
impl AvoidanceConstants for Own<dyn OwnAvoidance> {
    fn wants_ecn(&self) -> bool {
        Own::wants_ecn(self)
    }

    fn draws(&self) -> bool {
        Own::draws(self)
    }
}

impl AvoidanceConfig {
    /// Checks that every constant is in its range.
    ///
    /// # Errors
    /// Names the first field that is not, and what it must be.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        self.constants().validate()
    }

    /// True if this algorithm asks the network for accurate congestion marks on every packet (RFC
    /// 8257 section 3), so that its flows should send ECN-capable packets.
    #[must_use]
    pub fn wants_ecn(&self) -> bool {
        self.constants().wants_ecn()
    }

    /// True if this algorithm draws random numbers from the seed of its connection, so that runs
    /// with it differ.
    #[must_use]
    pub fn draws(&self) -> bool {
        self.constants().draws()
    }

    /// How a flow with this avoidance spaces its packets once it is in charge, in a few words,
    /// where it sets a pacing rate of its own; `None` where others decide on that.
    #[must_use]
    pub fn spaces(&self) -> Option<&'static str> {
        self.constants().spaces()
    }

    /// True if this algorithm has a start that belongs to it, so that its name alone means both
    /// (BBR).
    #[must_use]
    pub fn brings_start(&self) -> bool {
        self.constants().brings_start()
    }
}
