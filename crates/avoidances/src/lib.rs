//! Congestion avoidance: what a flow does once it is up to speed. This page is the registry of all.
//!
//! An avoidance is a [`CongestionAvoidance`]; [`Avoidance`] is any of them in operation,
//! [`AvoidanceConfig`] which one, with its constants.
//!
//! To add one: a file with its constants ([`AvoidanceConstants`]) and its state
//! ([`CongestionAvoidance`]), and an entry below.

#![cfg_attr(not(any(test, feature = "std")), no_std)]

extern crate alloc;

use alloc::boxed::Box;

mod constants;
mod intervals;
mod trials;

pub use constants::AvoidanceConstants;
pub use flowstart_control::CongestionAvoidance;

flowstart_control::registry! {
    kind "congestion avoidance", schema "CongestionAvoidance";
    /// Which congestion avoidance, with its constants.
    config AvoidanceConfig with AvoidanceConstants;
    /// An avoidance in operation.
    algorithm Avoidance is CongestionAvoidance, from outside flowstart_control::OwnAvoidance;
    dispatch $with_avoidance;

    /// NewReno (RFC 5681, RFC 6582).
    [pub mod reno::{Reno}]
    Reno => Reno {
        names: "reno" | "newreno" | "new_reno",
        about: "one packet more per round trip, half after a loss (RFC 5681, RFC 6582)",
        new: |_| Reno::default(),
    }

    /// CUBIC (RFC 9438).
    [pub mod cubic::{Cubic, CubicConfig}]
    Cubic(config: CubicConfig) => Cubic {
        names: "cubic",
        about: "a cubic function of the time since the last loss; Linux's default (RFC 9438)",
        new: |_| Cubic::new(config),
    }

    /// DCTCP (RFC 8257).
    [pub mod dctcp::{Dctcp, DctcpConfig}]
    Dctcp(config: DctcpConfig) => Dctcp {
        names: "dctcp",
        about: "reduces in proportion to the share of marked packets (RFC 8257)",
        new: |_| Dctcp::new(config),
    }

    /// Scalable TCP (Kelly 2003).
    [pub mod scalable::{Scalable, ScalableConfig}]
    Scalable(config: ScalableConfig) => Scalable {
        names: "scalable" | "scalable_tcp" | "stcp",
        about: "grows and shrinks in proportion to the window (Kelly 2003)",
        new: |_| Scalable::new(config),
    }

    /// BIC (Xu, Harfoush and Rhee 2004).
    [pub mod bic::{Bic, BicConfig}]
    Bic(config: BicConfig) => Bic {
        names: "bic" | "bic_tcp",
        about: "searches for its old maximum in halving steps, Linux's default before CUBIC (Xu et al. 2004)",
        new: |_| Bic::new(config),
    }

    /// PCC Vivace (Dong et al. 2018).
    [pub mod vivace::{Vivace, VivaceConfig}]
    Vivace(config: VivaceConfig) => Box<Vivace> {
        names: "vivace" | "pcc_vivace",
        about: "climbs a measured utility of rate, latency and loss (PCC Vivace, Dong et al. 2018)",
        new: |flow| Box::new(Vivace::new(config, flow.mss, flow.seed)),
    }

    /// PCC Vivace with a utility of rate and loss alone (Bachl, Fabini and Zseby 2020).
    VivaceLoss(config: VivaceConfig) => Box<Vivace> {
        names: "vivace_loss" | "vivace_loss_only",
        about: "climbs a measured utility of rate and loss (Vivace as in Bachl, Fabini and Zseby 2020)",
        new: |flow| Box::new(Vivace::loss_only(config, flow.mss, flow.seed)),
    }

    /// PCC Allegro (Dong et al. 2015).
    [pub mod allegro::{Allegro, AllegroConfig}]
    Allegro(config: AllegroConfig) => Box<Allegro> {
        names: "allegro" | "pcc_allegro" | "pcc",
        about: "steps towards the better of two rates it tries (PCC Allegro, Dong et al. 2015)",
        new: |flow| Box::new(Allegro::new(config, flow.mss, flow.seed)),
    }

    /// The delay-based rule for queues of one's own (Bachl, Fabini and Zseby 2020).
    [pub mod vegas_like::{VegasLike, VegasLikeConfig}]
    VegasLike(config: VegasLikeConfig) => Box<VegasLike> {
        names: "vegas_like",
        about: "1 % faster or 5 % slower by 5 ms of queue, for flows with a queue of their own (Bachl, Fabini and Zseby 2020)",
        new: |flow| Box::new(VegasLike::new(config, flow.mss)),
    }

    /// A queueing delay kept at a target, for queues of one's own; CUBIC where that cannot be.
    [pub mod delay_target::{DelayTarget, DelayTargetConfig}]
    DelayTarget(config: DelayTargetConfig) => Box<ByIsolation<DelayTarget, Cubic>> {
        names: "delay_target",
        about: "keeps its queueing delay at half a millisecond in a queue of its own; cubic where noise or others forbid it",
        new: |flow| Box::new(ByIsolation::assumed(
            DelayTarget::unasked(config, flow.mss),
            Cubic::new(&CubicConfig::default()),
        )),
    }

    /// The published pair for both answers of a detector of fair queuing (Bachl, Fabini and Zseby
    /// 2020).
    [mod by_isolation::{ByIsolation, DelayOrCubicConfig, VegasOrBbrConfig, VegasOrVivaceConfig}]
    VegasOrVivace(config: VegasOrVivaceConfig) => Box<ByIsolation<VegasLike, Vivace>> {
        names: "vegas_or_vivace",
        about: "vegas_like where fair queuing was detected, else vivace_loss (Bachl, Fabini and Zseby 2020)",
        new: |flow| Box::new(ByIsolation::new(
            VegasLike::new(&config.isolated, flow.mss),
            Vivace::loss_only(&config.shared, flow.mss, flow.seed),
        )),
    }

    /// The published rule in a queue of one's own, BBR in any other.
    VegasOrBbr(config: VegasOrBbrConfig) => Box<ByIsolation<VegasLike, Bbr>> {
        names: "vegas_or_bbr",
        about: "vegas_like where fair queuing was detected, else bbr (named by Bachl, Fabini and Zseby 2020)",
        new: |flow| Box::new(ByIsolation::new(
            VegasLike::new(&config.isolated, flow.mss),
            Bbr::new(&config.shared, flow.mss, flow.seed),
        )),
    }

    /// A delay target in a queue of one's own, CUBIC in any other.
    DelayOrCubic(config: DelayOrCubicConfig) => Box<ByIsolation<DelayTarget, Cubic>> {
        names: "delay_or_cubic",
        about: "delay_target where fair queuing was detected, else cubic",
        new: |flow| Box::new(ByIsolation::new(
            DelayTarget::new(&config.isolated, flow.mss),
            Cubic::new(&config.shared),
        )),
    }

    /// BBR version 1 (Cardwell et al. 2016).
    [pub mod bbr::{Bbr, BbrConfig, BbrMode}]
    Bbr(config: BbrConfig) => Box<Bbr> {
        names: "bbr" | "bbr_v1" | "bbr1",
        about: "paces at the bandwidth it measures, not answering losses (BBR v1 as in Linux, Cardwell et al. 2016); alone with its own start",
        new: |flow| Box::new(Bbr::new(config, flow.mss, flow.seed)),
    }

    /// BBR version 3 (draft-ietf-ccwg-bbr).
    [pub mod bbr3::{Bbr3, Bbr3Config, Bbr3Mode}]
    Bbr3(config: Bbr3Config) => Box<Bbr3> {
        names: "bbr3" | "bbr_v3",
        about: "BBR with bounds from losses, which it probes every few seconds (BBR v3, draft-ietf-ccwg-bbr-06); alone with its own start",
        new: |flow| Box::new(Bbr3::new(config, flow.mss, flow.seed)),
    }
}

mod dispatch;
