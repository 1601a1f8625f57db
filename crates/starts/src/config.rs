//! Which flow start, by name and with its constants.

use flowstart_chirping::{AdaptiveChirpingConfig, PacedChirpingConfig, TwoGapChirpingConfig};
use flowstart_control::names::{InvalidConfig, UnknownName, canonical};
use flowstart_detection::{DetectorConfig, PairDetector, TrainProbeConfig, Trains, TwoFlows};

use super::bbr_start::BbrStartConfig;
use super::careful_resume::CarefulResumeConfig;
use super::hystart::HystartConfig;
use super::hystart_plus_plus::HystartPlusPlusConfig;
use super::jump_start::JumpStartConfig;
use super::limited_slow_start::LimitedSlowStartConfig;
use super::quick_start::QuickStartConfig;
use super::rapid_start::RapidStartConfig;
use super::search::SearchConfig;
use super::suss::SussConfig;

/// Which flow start, with its constants.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(tag = "name", rename_all = "snake_case"))]
pub enum StartConfig {
    /// Standard slow start (RFC 5681).
    SlowStart,
    /// HyStart as in Linux CUBIC.
    Hystart(HystartConfig),
    /// HyStart++ (RFC 9406).
    HystartPlusPlus(HystartPlusPlusConfig),
    /// Paced Chirping, the published round-based schedule.
    PacedChirping(PacedChirpingConfig),
    /// Paced Chirping with a probe gap and a load gap, the authors' later design.
    TwoGapChirping(TwoGapChirpingConfig),
    /// Paced Chirping as this project does it.
    AdaptiveChirping(Box<AdaptiveChirpingConfig>),
    /// SEARCH (draft-chung-ccwg-search).
    Search(SearchConfig),
    /// Limited slow start (RFC 3742).
    LimitedSlowStart(LimitedSlowStartConfig),
    /// BBR's start-up and drain (draft-ietf-ccwg-bbr).
    BbrStart(BbrStartConfig),
    /// Rapid Start (draft-kazuho-ccwg-rapid-start).
    RapidStart(RapidStartConfig),
    /// Jump Start (Liu, Allman, Jin and Wang 2007).
    JumpStart(JumpStartConfig),
    /// Careful Resume (RFC 9959).
    CarefulResume(CarefulResumeConfig),
    /// Quick-Start (RFC 4782).
    QuickStart(QuickStartConfig),
    /// SUSS (Arghavani et al. 2024).
    Suss(SussConfig),
    /// Two connections that look for fair queuing (Bachl, Fabini and Zseby 2020).
    TwoFlowProbe(DetectorConfig),
    /// Two connections that look for fair queuing by short trains of packets, as this project does it.
    FairQueuingProbe(TrainProbeConfig),
}

impl StartConfig {
    /// The names of all flow starts, as [`from_name`](Self::from_name) reads and [`name`](Self::name) prints them.
    pub const NAMES: &[&str] = &[
        "slow_start",
        "hystart",
        "hystart_plus_plus",
        "paced_chirping",
        "two_gap_chirping",
        "adaptive_chirping",
        "search",
        "limited_slow_start",
        "bbr_start",
        "rapid_start",
        "jump_start",
        "careful_resume",
        "quick_start",
        "suss",
        "two_flow_probe",
        "fair_queuing_probe",
    ];

    /// The flow start of this name with its default constants. Case, hyphens and "++" do not matter.
    ///
    /// # Errors
    /// If no flow start has this name; the message suggests the nearest one.
    pub fn from_name(name: &str) -> Result<Self, UnknownName> {
        match canonical(name).as_str() {
            "slow_start" | "slowstart" | "standard" => Ok(Self::SlowStart),
            "hystart" | "hybrid_slow_start" => Ok(Self::Hystart(HystartConfig::default())),
            "hystart_plus_plus" | "hystart_plusplus" | "hystartpp" | "hystart_pp" => {
                Ok(Self::HystartPlusPlus(HystartPlusPlusConfig::default()))
            }
            "paced_chirping" | "pacedchirping" | "paced_chirp" | "chirping" => {
                Ok(Self::PacedChirping(PacedChirpingConfig::default()))
            }
            "search" => Ok(Self::Search(SearchConfig::default())),
            "two_gap_chirping" | "two_gap" => Ok(Self::TwoGapChirping(TwoGapChirpingConfig::default())),
            "adaptive_chirping" | "adaptive_chirp" => Ok(Self::AdaptiveChirping(Box::default())),
            "limited_slow_start" | "limitedslowstart" => Ok(Self::LimitedSlowStart(LimitedSlowStartConfig::default())),
            "bbr_start" | "bbr_startup" => Ok(Self::BbrStart(BbrStartConfig::default())),
            "rapid_start" => Ok(Self::RapidStart(RapidStartConfig::default())),
            "jump_start" | "jumpstart" => Ok(Self::JumpStart(JumpStartConfig::default())),
            "careful_resume" => Ok(Self::CarefulResume(CarefulResumeConfig::default())),
            "quick_start" | "quickstart" => Ok(Self::QuickStart(QuickStartConfig::default())),
            "suss" => Ok(Self::Suss(SussConfig::default())),
            "two_flow_probe" => Ok(Self::TwoFlowProbe(DetectorConfig::default())),
            "fair_queuing_probe" | "fq_probe" => Ok(Self::FairQueuingProbe(TrainProbeConfig::default())),
            _ => Err(UnknownName::new("flow start", name, Self::NAMES)),
        }
    }

    /// The name of this flow start.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::SlowStart => "slow_start",
            Self::Hystart(_) => "hystart",
            Self::HystartPlusPlus(_) => "hystart_plus_plus",
            Self::PacedChirping(_) => "paced_chirping",
            Self::TwoGapChirping(_) => "two_gap_chirping",
            Self::AdaptiveChirping(_) => "adaptive_chirping",
            Self::Search(_) => "search",
            Self::LimitedSlowStart(_) => "limited_slow_start",
            Self::BbrStart(_) => "bbr_start",
            Self::RapidStart(_) => "rapid_start",
            Self::JumpStart(_) => "jump_start",
            Self::CarefulResume(_) => "careful_resume",
            Self::QuickStart(_) => "quick_start",
            Self::Suss(_) => "suss",
            Self::TwoFlowProbe(_) => "two_flow_probe",
            Self::FairQueuingProbe(_) => "fair_queuing_probe",
        }
    }

    /// How many connections a flow with this start consists of at first: 2 for detectors of fair queuing.
    #[must_use]
    pub fn connections(&self) -> usize {
        match self {
            Self::TwoFlowProbe(config) if !config.single => 2,
            Self::FairQueuingProbe(_) => 2,
            _ => 1,
        }
    }

    /// True if a flow with this start may ask the routers on its path for a rate (Quick-Start, RFC 4782).
    #[must_use]
    pub fn asks_routers(&self) -> bool {
        match self {
            Self::QuickStart(_) => true,
            Self::CarefulResume(config) => config.request.is_some(),
            _ => false,
        }
    }

    /// The detector of fair queuing that directs the connections of such a flow; `None` if none does. `mss` is the payload of a full packet and `header` what
    /// any packet has beside it, in bytes.
    #[must_use]
    pub fn detector(&self, mss: u32, header: u32, seed: u64) -> Option<PairDetector> {
        match self {
            Self::TwoFlowProbe(config) => Some(PairDetector::TwoFlows(Box::new(TwoFlows::new(config, header, seed)))),
            Self::FairQueuingProbe(config) => {
                Some(PairDetector::Trains(Box::new(Trains::new(config, mss.saturating_add(header), seed))))
            }
            _ => None,
        }
    }

    /// Checks that every constant is in its range.
    ///
    /// # Errors
    /// Names the first field that is not, and what it must be.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        match self {
            Self::SlowStart => Ok(()),
            Self::Hystart(config) => config.validate(),
            Self::HystartPlusPlus(config) => config.validate(),
            Self::PacedChirping(config) => config.validate(),
            Self::TwoGapChirping(config) => config.validate(),
            Self::AdaptiveChirping(config) => config.validate(),
            Self::Search(config) => config.validate(),
            Self::LimitedSlowStart(config) => config.validate(),
            Self::BbrStart(config) => config.validate(),
            Self::RapidStart(config) => config.validate(),
            Self::JumpStart(config) => config.validate(),
            Self::CarefulResume(config) => config.validate(),
            Self::QuickStart(config) => config.validate(),
            Self::Suss(config) => config.validate(),
            Self::TwoFlowProbe(config) => config.validate(),
            Self::FairQueuingProbe(config) => config.validate(),
        }
    }
}

#[cfg(feature = "serde")]
flowstart_control::named!(StartConfig, "flow start", "FlowStart", { SlowStart = "slow_start" }, {
    Hystart(HystartConfig) = "hystart",
    HystartPlusPlus(HystartPlusPlusConfig) = "hystart_plus_plus",
    PacedChirping(PacedChirpingConfig) = "paced_chirping",
    TwoGapChirping(TwoGapChirpingConfig) = "two_gap_chirping",
    AdaptiveChirping(Box<AdaptiveChirpingConfig>) = "adaptive_chirping",
    Search(SearchConfig) = "search",
    LimitedSlowStart(LimitedSlowStartConfig) = "limited_slow_start",
    BbrStart(BbrStartConfig) = "bbr_start",
    RapidStart(RapidStartConfig) = "rapid_start",
    JumpStart(JumpStartConfig) = "jump_start",
    CarefulResume(CarefulResumeConfig) = "careful_resume",
    QuickStart(QuickStartConfig) = "quick_start",
    Suss(SussConfig) = "suss",
    TwoFlowProbe(DetectorConfig) = "two_flow_probe",
    FairQueuingProbe(TrainProbeConfig) = "fair_queuing_probe"
});
