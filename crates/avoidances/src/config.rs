//! Which congestion avoidance, by name and with its constants.

use flowstart_control::names::{InvalidConfig, UnknownName, canonical};

use super::allegro::AllegroConfig;
use super::bbr::BbrConfig;
use super::bic::BicConfig;
use super::by_isolation::{DelayOrCubicConfig, VegasOrVivaceConfig};
use super::cubic::CubicConfig;
use super::dctcp::DctcpConfig;
use super::delay_target::DelayTargetConfig;
use super::scalable::ScalableConfig;
use super::vegas_like::VegasLikeConfig;
use super::vivace::VivaceConfig;

/// Which congestion avoidance, with its constants.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(tag = "name", rename_all = "snake_case"))]
pub enum AvoidanceConfig {
    /// NewReno (RFC 5681, RFC 6582).
    Reno,
    /// CUBIC (RFC 9438).
    Cubic(CubicConfig),
    /// DCTCP (RFC 8257).
    Dctcp(DctcpConfig),
    /// Scalable TCP (Kelly 2003).
    Scalable(ScalableConfig),
    /// BIC (Xu, Harfoush and Rhee 2004).
    Bic(BicConfig),
    /// PCC Vivace (Dong et al. 2018).
    Vivace(VivaceConfig),
    /// PCC Vivace with a utility of rate and loss alone (Bachl, Fabini and Zseby 2020).
    VivaceLoss(VivaceConfig),
    /// PCC Allegro (Dong et al. 2015).
    Allegro(AllegroConfig),
    /// The delay-based rule for queues of one's own (Bachl, Fabini and Zseby 2020).
    VegasLike(VegasLikeConfig),
    /// A queueing delay kept at a target, for queues of one's own.
    DelayTarget(DelayTargetConfig),
    /// The published pair for both answers of a detector of fair queuing (Bachl, Fabini and Zseby 2020).
    VegasOrVivace(VegasOrVivaceConfig),
    /// A delay target in a queue of one's own, CUBIC in any other.
    DelayOrCubic(DelayOrCubicConfig),
    /// BBR version 1 (Cardwell et al. 2016).
    Bbr(BbrConfig),
}

impl AvoidanceConfig {
    /// The names of all congestion avoidances, as [`from_name`](Self::from_name) reads and [`name`](Self::name) prints them.
    pub const NAMES: &[&str] = &[
        "reno",
        "cubic",
        "dctcp",
        "scalable",
        "bic",
        "vivace",
        "vivace_loss",
        "allegro",
        "vegas_like",
        "delay_target",
        "vegas_or_vivace",
        "delay_or_cubic",
        "bbr",
    ];

    /// The congestion avoidance of this name with its default constants. Case and hyphens do not matter.
    ///
    /// # Errors
    /// If no congestion avoidance has this name; the message suggests the nearest one.
    pub fn from_name(name: &str) -> Result<Self, UnknownName> {
        match canonical(name).as_str() {
            "reno" | "newreno" | "new_reno" => Ok(Self::Reno),
            "cubic" => Ok(Self::Cubic(CubicConfig::default())),
            "dctcp" => Ok(Self::Dctcp(DctcpConfig::default())),
            "scalable" | "scalable_tcp" | "stcp" => Ok(Self::Scalable(ScalableConfig::default())),
            "bic" | "bic_tcp" => Ok(Self::Bic(BicConfig::default())),
            "vivace" | "pcc_vivace" => Ok(Self::Vivace(VivaceConfig::default())),
            "vivace_loss" | "vivace_loss_only" => Ok(Self::VivaceLoss(VivaceConfig::default())),
            "allegro" | "pcc_allegro" | "pcc" => Ok(Self::Allegro(AllegroConfig::default())),
            "vegas_like" => Ok(Self::VegasLike(VegasLikeConfig::default())),
            "delay_target" => Ok(Self::DelayTarget(DelayTargetConfig::default())),
            "vegas_or_vivace" => Ok(Self::VegasOrVivace(VegasOrVivaceConfig::default())),
            "delay_or_cubic" => Ok(Self::DelayOrCubic(DelayOrCubicConfig::default())),
            "bbr" | "bbr_v1" | "bbr1" => Ok(Self::Bbr(BbrConfig::default())),
            _ => Err(UnknownName::new("congestion avoidance", name, Self::NAMES)),
        }
    }

    /// The name of this congestion avoidance.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic(_) => "cubic",
            Self::Dctcp(_) => "dctcp",
            Self::Scalable(_) => "scalable",
            Self::Bic(_) => "bic",
            Self::Vivace(_) => "vivace",
            Self::VivaceLoss(_) => "vivace_loss",
            Self::Allegro(_) => "allegro",
            Self::VegasLike(_) => "vegas_like",
            Self::DelayTarget(_) => "delay_target",
            Self::Bbr(_) => "bbr",
            Self::VegasOrVivace(_) => "vegas_or_vivace",
            Self::DelayOrCubic(_) => "delay_or_cubic",
        }
    }

    /// True if this algorithm asks the network for accurate congestion marks on every packet (RFC 8257 section 3), so that its flows should
    /// send ECN-capable packets.
    #[must_use]
    pub fn wants_ecn(&self) -> bool {
        matches!(self, Self::Dctcp(_))
    }

    /// Checks that every constant is in its range.
    ///
    /// # Errors
    /// Names the first field that is not, and what it must be.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        match self {
            Self::Reno => Ok(()),
            Self::Cubic(config) => config.validate(),
            Self::Dctcp(config) => config.validate(),
            Self::Scalable(config) => config.validate(),
            Self::Bic(config) => config.validate(),
            Self::Vivace(config) => config.validate(),
            Self::VivaceLoss(config) => config.validate(),
            Self::Allegro(config) => config.validate(),
            Self::VegasLike(config) => config.validate(),
            Self::DelayTarget(config) => config.validate(),
            Self::Bbr(config) => config.validate(),
            Self::VegasOrVivace(config) => config.validate(),
            Self::DelayOrCubic(config) => config.validate(),
        }
    }
}

#[cfg(feature = "serde")]
flowstart_control::named!(AvoidanceConfig, "congestion avoidance", "CongestionAvoidance", { Reno = "reno" }, {
    Cubic(CubicConfig) = "cubic",
    Dctcp(DctcpConfig) = "dctcp",
    Scalable(ScalableConfig) = "scalable",
    Bic(BicConfig) = "bic",
    Vivace(VivaceConfig) = "vivace",
    VivaceLoss(VivaceConfig) = "vivace_loss",
    Allegro(AllegroConfig) = "allegro",
    VegasLike(VegasLikeConfig) = "vegas_like",
    DelayTarget(DelayTargetConfig) = "delay_target",
    VegasOrVivace(VegasOrVivaceConfig) = "vegas_or_vivace",
    DelayOrCubic(DelayOrCubicConfig) = "delay_or_cubic",
    Bbr(BbrConfig) = "bbr"
});
