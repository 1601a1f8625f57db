//! What the constants of a start say beside what they are.

use flowstart_control::{InvalidConfig, Own, OwnStart};
use flowstart_detection::PairDetector;

use crate::StartConfig;

/// The constants of a start.
pub trait StartConstants {
    /// Checks that every constant is in its range.
    ///
    /// # Errors
    /// Names the first field that is not, and what it must be.
    fn validate(&self) -> Result<(), InvalidConfig> {
        Ok(())
    }

    /// How many connections a flow with this start consists of at first: 2 for detectors of fair
    /// queuing.
    fn connections(&self) -> usize {
        1
    }

    /// True if what a flow with this start does depends on random numbers that are drawn from the
    /// seed of its connection, so that runs with it differ. What Quick-Start draws are secrets that
    /// nobody guesses.
    fn draws(&self) -> bool {
        false
    }

    /// True if a flow with this start may ask the routers on its path for a rate (Quick-Start, RFC
    /// 4782).
    fn asks_routers(&self) -> bool {
        false
    }

    /// The detector of fair queuing that directs the connections of such a flow; `None` if none
    /// does. `mss` is the payload of a full packet and `header` what any packet has beside it, in
    /// bytes.
    fn detector(&self, _mss: u32, _header: u32, _seed: u64) -> Option<PairDetector> {
        None
    }

    /// True if the receivers of those who designed this start acknowledge every segment at once.
    /// Races do so too where they run it as its authors did; otherwise they delay ACKs as Linux.
    fn wants_every_ack(&self) -> bool {
        false
    }

    /// Who decides when the packets of a flow with this start leave, in a few words, where that is
    /// the start itself.
    fn sends(&self) -> Option<&'static str> {
        None
    }

    /// True if the start sends chirps, whose last one that could be read
    /// [`Start::last_chirp`](crate::Start::last_chirp) gives.
    fn chirps(&self) -> bool {
        false
    }

    /// These constants, whichever they are.
    fn constants(&self) -> &dyn StartConstants
    where
        Self: Sized,
    {
        self
    }
}

/// A start without constants.
impl StartConstants for () {}

/// A start from outside has its constants in itself.
impl StartConstants for Own<dyn OwnStart> {
    fn draws(&self) -> bool {
        Own::draws(self)
    }
}

impl StartConfig {
    /// Checks that every constant is in its range.
    ///
    /// # Errors
    /// Names the first field that is not, and what it must be.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        self.constants().validate()
    }

    /// How many connections a flow with this start consists of at first: 2 for detectors of fair
    /// queuing.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.constants().connections()
    }

    /// True if what a flow with this start does depends on random numbers that are drawn from the
    /// seed of its connection, so that runs with it differ.
    #[must_use]
    pub fn draws(&self) -> bool {
        self.constants().draws()
    }

    /// True if a flow with this start may ask the routers on its path for a rate (Quick-Start, RFC
    /// 4782).
    #[must_use]
    pub fn asks_routers(&self) -> bool {
        self.constants().asks_routers()
    }

    /// The detector of fair queuing that directs the connections of such a flow; `None` if none
    /// does. `mss` is the payload of a full packet and `header` what any packet has beside it, in
    /// bytes.
    #[must_use]
    pub fn detector(&self, mss: u32, header: u32, seed: u64) -> Option<PairDetector> {
        self.constants().detector(mss, header, seed)
    }

    /// True if the receivers of those who designed this start acknowledge every segment at once.
    #[must_use]
    pub fn wants_every_ack(&self) -> bool {
        self.constants().wants_every_ack()
    }

    /// Who decides when the packets of a flow with this start leave, in a few words, where that is
    /// the start itself.
    #[must_use]
    pub fn sends(&self) -> Option<&'static str> {
        self.constants().sends()
    }

    /// True if the start sends chirps.
    #[must_use]
    pub fn chirps(&self) -> bool {
        self.constants().chirps()
    }
}
