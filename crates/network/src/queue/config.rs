//! Which discipline, with its constants.

use std::fmt;

use super::{
    CodelConfig, DropTailConfig, DrrConfig, DualPi2Config, FairQueuingConfig, FqCodelConfig, PieConfig, RedConfig,
    SchRedConfig, StepMarkConfig,
};

/// Which discipline, with its constants.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "snake_case"))]
pub enum QueueConfig {
    /// A FIFO that drops arrivals when full.
    DropTail(DropTailConfig),
    /// A FIFO that marks above a threshold.
    StepMark(StepMarkConfig),
    /// A queue per flow, served in turns (Linux `sch_fq`).
    FairQueuing(FairQueuingConfig),
    /// A queue per flow, served by deficit round robin (Linux `sch_drr`).
    Drr(DrrConfig),
    /// A FIFO that drops from the head when packets wait too long (RFC 8289).
    Codel(CodelConfig),
    /// A queue per flow with CoDel in each (RFC 8290).
    FqCodel(FqCodelConfig),
    /// RED: drops or marks at random by the average length (Floyd and Jacobson 1993, gentle and adaptive variants).
    Red(RedConfig),
    /// RED in bytes and integers as Linux has it (`sch_red`).
    SchRed(SchRedConfig),
    /// PIE: drops or marks on arrival so that the delay meets a target (RFC 8033).
    Pie(PieConfig),
    /// Two coupled queues for L4S and classic traffic (RFC 9332).
    DualPi2(DualPi2Config),
}

impl QueueConfig {
    /// The names of all disciplines.
    pub const NAMES: [&'static str; 10] =
        ["drop_tail", "step_mark", "fair_queuing", "drr", "codel", "fq_codel", "red", "sch_red", "pie", "dual_pi2"];

    /// The discipline of this name with its default constants.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "drop_tail" => Self::DropTail(DropTailConfig::default()),
            "step_mark" => Self::StepMark(StepMarkConfig::default()),
            "fair_queuing" => Self::FairQueuing(FairQueuingConfig::default()),
            "drr" => Self::Drr(DrrConfig::default()),
            "codel" => Self::Codel(CodelConfig::default()),
            "fq_codel" => Self::FqCodel(FqCodelConfig::default()),
            "red" => Self::Red(RedConfig::default()),
            "sch_red" => Self::SchRed(SchRedConfig::default()),
            "pie" => Self::Pie(PieConfig::default()),
            "dual_pi2" => Self::DualPi2(DualPi2Config::default()),
            _ => return None,
        })
    }

    /// True if flows wait in queues of their own.
    #[must_use]
    pub fn isolates(&self) -> bool {
        matches!(self, Self::FairQueuing(_) | Self::Drr(_) | Self::FqCodel(_))
    }

    /// A FIFO of at most `packets` packets.
    #[must_use]
    pub const fn drop_tail(packets: u64) -> Self {
        Self::DropTail(DropTailConfig { packets: Some(packets), bytes: None })
    }

    /// The discipline's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::DropTail(_) => "drop_tail",
            Self::StepMark(_) => "step_mark",
            Self::FairQueuing(_) => "fair_queuing",
            Self::Drr(_) => "drr",
            Self::Codel(_) => "codel",
            Self::FqCodel(_) => "fq_codel",
            Self::Red(_) => "red",
            Self::SchRed(_) => "sch_red",
            Self::Pie(_) => "pie",
            Self::DualPi2(_) => "dual_pi2",
        }
    }

    /// True if the queue draws random numbers or hashes flows with its seed, so that runs with different seeds differ.
    #[must_use]
    pub const fn is_random(&self) -> bool {
        match self {
            Self::DropTail(_) | Self::StepMark(_) | Self::Drr(_) | Self::Codel(_) => false,
            Self::FairQueuing(config) => config.buckets > 0,
            Self::FqCodel(_) | Self::Red(_) | Self::SchRed(_) | Self::Pie(_) | Self::DualPi2(_) => true,
        }
    }

    /// Checks the constants.
    ///
    /// # Errors
    /// A buffer without room for a single packet, a quantum of zero, a constant out of its range.
    pub fn validate(&self) -> Result<(), QueueError> {
        match self {
            Self::DropTail(config) => config.validate(),
            Self::StepMark(config) => config.limit.validate(),
            Self::FairQueuing(config) => config.validate(),
            Self::Drr(config) => config.validate(),
            Self::Codel(config) => config.validate(),
            Self::FqCodel(config) => config.validate(),
            Self::Red(config) => config.validate(),
            Self::SchRed(config) => config.validate(),
            Self::Pie(config) => config.validate(),
            Self::DualPi2(config) => config.validate(),
        }
    }
}

/// Why a queue cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueError(pub(crate) String);

impl QueueError {
    /// Fails with `message` unless `right`.
    pub(super) fn unless(right: bool, message: &str) -> Result<(), Self> {
        if right { Ok(()) } else { Err(Self(message.to_owned())) }
    }
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for QueueError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_makes_a_valid_queue_of_that_name_and_no_other_does() {
        for name in QueueConfig::NAMES {
            let config = QueueConfig::from_name(name).unwrap();
            assert_eq!(config.name(), name);
            assert_eq!(config.validate(), Ok(()), "{name}");
        }
        assert_eq!(QueueConfig::from_name("droptail"), None);
    }
}
