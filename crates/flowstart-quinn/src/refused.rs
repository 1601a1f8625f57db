//! What cannot run in a stack, and why.

use std::fmt;

use flowstart_congestion::{
    Avoidance, AvoidanceConfig, CongestionAvoidance as _, ControllerConfig, FlowStart as _, InvalidConfig, Start,
    StartConfig,
};

/// A QUIC stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// quinn-proto, which takes a window.
    Quinn,
    /// noq-proto, which takes a window and a rate.
    Noq,
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Quinn => "quinn",
            Self::Noq => "noq",
        })
    }
}

/// Why an algorithm does not run in a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It sets the time at which each packet leaves.
    Times,
    /// It needs two connections.
    TwoConnections,
    /// It asks the routers on the path.
    Routers,
    /// It must know how much the application has to send.
    Backlog,
    /// It knows the capacity of a simulated path.
    Omniscient,
    /// It sends at a rate of its own.
    Rate,
    /// It goes by how long a window's ACKs take where packets are not paced.
    Trains,
    /// It needs to know how many packets were marked.
    Marks,
    /// It judges each packet by when it left and whether it arrived.
    EveryPacket,
    /// Nobody has made what it needs.
    Unmade,
}

impl Reason {
    fn sentence(self) -> &'static str {
        match self {
            Self::Times => "it sets the time at which each packet leaves, and the stack asks for no times",
            Self::TwoConnections => "it needs two connections of which one tells about the other",
            Self::Routers => "it asks the routers on the path in an option of IP, which the stack does not send",
            Self::Backlog => "it must know how much the application has to send, which the stack does not tell",
            Self::Omniscient => "it knows the capacity of a simulated path and is no algorithm",
            Self::Rate => "it sends at a rate of its own, and the stack paces by the window alone",
            Self::Trains => "it goes by how short the train of a window's ACKs is, which the stack's pacing stretches",
            Self::Marks => "it must know how many packets were marked, and the stack tells only that some were",
            Self::EveryPacket => "it judges intervals of packets one by one, and the stack does not tell of each",
            Self::Unmade => "what it needs of the stack is not made here; noq has a BBR of its own",
        }
    }
}

/// A start or an avoidance that a stack cannot carry, or constants out of range.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// The start.
    Start {
        /// Its name.
        name: &'static str,
        /// Where it was to run.
        stack: Stack,
        /// Why not.
        reason: Reason,
    },
    /// The avoidance.
    Avoidance {
        /// Its name.
        name: &'static str,
        /// Where it was to run.
        stack: Stack,
        /// Why not.
        reason: Reason,
    },
    /// A constant is out of range.
    Invalid(InvalidConfig),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start { name, stack, reason } => {
                write!(f, "the flow start {name} cannot run in {stack}: {}", reason.sentence())
            }
            Self::Avoidance { name, stack, reason } => {
                write!(f, "the congestion avoidance {name} cannot run in {stack}: {}", reason.sentence())
            }
            Self::Invalid(invalid) => invalid.fmt(f),
        }
    }
}

impl std::error::Error for Refused {}

/// Why `start` does not run in a stack that takes a window and, if `rate`, a rate.
fn against_start(start: &StartConfig, rate: bool) -> Option<Reason> {
    match start {
        StartConfig::SlowStart
        | StartConfig::BuiltIn
        | StartConfig::Hystart(_)
        | StartConfig::HystartPlusPlus(_)
        | StartConfig::Search(_)
        | StartConfig::LimitedSlowStart(_) => None,
        StartConfig::Suss(_) => (!rate).then_some(Reason::Trains),
        StartConfig::CarefulResume(_) => start.asks_routers().then_some(Reason::Routers),
        StartConfig::RapidStart(_) | StartConfig::BbrStart(_) => (!rate).then_some(Reason::Rate),
        StartConfig::JumpStart(_) => Some(Reason::Backlog),
        StartConfig::PacedChirping(_) | StartConfig::TwoGapChirping(_) | StartConfig::AdaptiveChirping(_) => {
            Some(Reason::Times)
        }
        StartConfig::QuickStart(_) | StartConfig::Rcp(_) => Some(Reason::Routers),
        StartConfig::Oracle(_) => Some(Reason::Omniscient),
        StartConfig::TwoFlowProbe(_) | StartConfig::FairQueuingProbe(_) => Some(Reason::TwoConnections),
        StartConfig::Own(_) => None,
    }
}

/// The same for an avoidance.
fn against_avoidance(avoidance: &AvoidanceConfig, rate: bool) -> Option<Reason> {
    match avoidance {
        AvoidanceConfig::Reno
        | AvoidanceConfig::Cubic(_)
        | AvoidanceConfig::Bic(_)
        | AvoidanceConfig::Scalable(_)
        | AvoidanceConfig::Own(_) => None,
        AvoidanceConfig::DelayTarget(_) => (!rate).then_some(Reason::Rate),
        AvoidanceConfig::Dctcp(_) => Some(Reason::Marks),
        AvoidanceConfig::Vivace(_)
        | AvoidanceConfig::VivaceLoss(_)
        | AvoidanceConfig::Allegro(_)
        | AvoidanceConfig::VegasLike(_) => Some(Reason::EveryPacket),
        AvoidanceConfig::VegasOrVivace(_) | AvoidanceConfig::VegasOrBbr(_) | AvoidanceConfig::DelayOrCubic(_) => {
            Some(Reason::TwoConnections)
        }
        AvoidanceConfig::Bbr(_) | AvoidanceConfig::Bbr3(_) => Some(if rate { Reason::Unmade } else { Reason::Rate }),
    }
}

/// Refuses what `stack` cannot carry.
pub(crate) fn check(config: &ControllerConfig, stack: Stack) -> Result<(), Refused> {
    config.validate().map_err(Refused::Invalid)?;
    let rate = stack == Stack::Noq;
    let wants_packets = || Start::new(config).wants_packets().then_some(Reason::EveryPacket);
    if let Some(reason) = against_start(&config.start, rate).or_else(wants_packets) {
        return Err(Refused::Start { name: config.start.name(), stack, reason });
    }
    let avoidance = Avoidance::new(config);
    let own = || {
        let refused = avoidance.wants_packets().then_some(Reason::EveryPacket);
        refused.or_else(|| (!rate && avoidance.pacing_rate().is_some()).then_some(Reason::Rate))
    };
    if let Some(reason) = against_avoidance(&config.avoidance, rate).or_else(own) {
        return Err(Refused::Avoidance { name: config.avoidance.name(), stack, reason });
    }
    Ok(())
}
