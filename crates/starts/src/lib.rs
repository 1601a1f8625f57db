//! Flow starts: from the first packet of a flow until they hand over to congestion avoidance. This
//! page is the registry of all.
//!
//! A start is a [`FlowStart`]; [`Start`] is any of them in operation, [`StartConfig`] which one,
//! with its constants. Paced Chirping has a crate of its own, [`paced_chirping`].
//!
//! To add one: a file with its constants ([`StartConstants`]) and its state ([`FlowStart`]), and an
//! entry below.

#![cfg_attr(not(any(test, feature = "std")), no_std)]

extern crate alloc;

use alloc::boxed::Box;

mod chirping;
mod chirping_or_hystart;
mod constants;
mod first_recovery;
mod saturation;
mod spacing;

pub use chirping_or_hystart::ChirpingOrHystart;
pub use constants::StartConstants;
pub use flowstart_chirping as paced_chirping;
pub use flowstart_chirping::{
    AdaptationConfig, AdaptiveChirping, AdaptiveChirpingConfig, BeliefConfig, ChirpingAgainConfig, EndRule,
    PacedChirping, PacedChirpingConfig, TwoGapChirping, TwoGapChirpingConfig,
};
pub use flowstart_control::{AfterAck, Afterwards, Exit, ExitReason, FlowStart, LastRtt, Response, Restart};
use flowstart_detection::{DetectorConfig, TrainProbeConfig};

flowstart_control::registry! {
    kind "flow start", schema "FlowStart";
    /// Which flow start, with its constants.
    config StartConfig with StartConstants;
    /// A start in operation. The larger ones are boxed, as they are gone after the start.
    algorithm Start is FlowStart, from outside flowstart_control::OwnStart;
    dispatch $with_start;

    /// Standard slow start (RFC 5681).
    [pub mod slow_start::{SlowStart}]
    SlowStart => SlowStart {
        names: "slow_start" | "slowstart" | "standard",
        about: "doubles the window every round trip until loss, mark or threshold (RFC 5681)",
        new: |_| SlowStart,
    }

    /// What the avoidance brings.
    [pub mod built_in::{BuiltIn}]
    BuiltIn => BuiltIn {
        names: "built_in",
        about: "the start that belongs to the avoidance (BBR's STARTUP and DRAIN); slow start if it brings none",
        new: |_| BuiltIn,
    }

    /// HyStart as in Linux CUBIC.
    [pub mod hystart::{Hystart, HystartConfig}]
    Hystart(config: HystartConfig) => Hystart {
        names: "hystart" | "hybrid_slow_start",
        about: "slow start that leaves on long ACK trains or rising delay, as in Linux CUBIC (Ha and Rhee 2008)",
        new: |flow| Hystart::new(config, flow.paced, flow.mss),
    }

    /// HyStart++ (RFC 9406).
    [pub mod hystart_plus_plus::{HystartPlusPlus, HystartPlusPlusConfig}]
    HystartPlusPlus(config: HystartPlusPlusConfig) => HystartPlusPlus {
        names: "hystart_plus_plus" | "hystart_plusplus" | "hystartpp" | "hystart_pp",
        about: "slow start that slows down when the delay rises, then leaves (RFC 9406)",
        new: |flow| HystartPlusPlus::new(config, flow.paced, flow.mss),
    }

    /// Paced Chirping, the published round-based schedule.
    PacedChirping(config: PacedChirpingConfig) => Box<PacedChirping> {
        names: "paced_chirping" | "pacedchirping" | "paced_chirp" | "chirping",
        about: "sends trains of packets with shrinking gaps and reads the capacity off their delays (Misund and Briscoe 2019)",
        new: |flow| Box::new(PacedChirping::new(config, flow.mss)),
    }

    /// Paced Chirping with a probe gap and a load gap, the authors' later design.
    TwoGapChirping(config: TwoGapChirpingConfig) => Box<TwoGapChirping> {
        names: "two_gap_chirping" | "two_gap",
        about: "chirps that probe with one gap and load with another, which approaches it (the later code of the same authors)",
        new: |flow| Box::new(TwoGapChirping::new(config, flow.mss)),
    }

    /// Paced Chirping as this project does it.
    AdaptiveChirping(config: Box<AdaptiveChirpingConfig>) => Box<ChirpingOrHystart> {
        names: "adaptive_chirping" | "adaptive_chirp",
        about: "chirps whose load grows as fast as they show that there is room, and HyStart where they cannot be read",
        new: |flow| Box::new(ChirpingOrHystart::new(config, flow.initial_window, flow.paced, flow.mss)),
    }

    /// SEARCH (draft-chung-ccwg-search).
    [pub mod search::{Search, SearchConfig}]
    Search(config: SearchConfig) => Box<Search> {
        names: "search",
        about: "slow start that leaves when delivery falls behind what was sent an RTT before (draft-chung-ccwg-search)",
        new: |flow| Box::new(Search::new(config, flow.initial_window, flow.mss)),
    }

    /// Limited slow start (RFC 3742).
    [pub mod limited_slow_start::{LimitedSlowStart, LimitedSlowStartConfig}]
    LimitedSlowStart(config: LimitedSlowStartConfig) => LimitedSlowStart {
        names: "limited_slow_start" | "limitedslowstart",
        about: "slow start up to 100 packets, then 50 packets more per round trip (RFC 3742)",
        new: |_| LimitedSlowStart::new(config),
    }

    /// BBR's start-up and drain (draft-ietf-ccwg-bbr).
    [pub mod bbr_start::{BbrStart, BbrStartConfig}]
    BbrStart(config: BbrStartConfig) => Box<BbrStart> {
        names: "bbr_start" | "bbr_startup",
        about: "paces at 2.77 times the delivery rate until that no longer grows, then drains its queue (BBR's STARTUP and DRAIN)",
        new: |flow| Box::new(BbrStart::new(config, flow.initial_window, flow.mss)),
    }

    /// Rapid Start (draft-kazuho-ccwg-rapid-start).
    [pub mod rapid_start::{RapidStart, RapidStartConfig}]
    RapidStart(config: RapidStartConfig) => Box<RapidStart> {
        names: "rapid_start",
        about: "triples the window while no queue shows; after losses keeps 0.7 of what got through (draft-kazuho-ccwg-rapid-start)",
        new: |flow| Box::new(RapidStart::new(config, flow.initial_window, flow.mss)),
    }

    /// Jump Start (Liu, Allman, Jin and Wang 2007).
    [pub mod jump_start::{JumpStart, JumpStartConfig}]
    JumpStart(config: JumpStartConfig) => JumpStart {
        names: "jump_start" | "jumpstart",
        about: "sends all that waits evenly over the first round trip, at most 1 MiB (Liu et al. 2007)",
        new: |flow| JumpStart::new(config, flow.initial_window, flow.mss),
    }

    /// Careful Resume (RFC 9959).
    [pub mod careful_resume::{CarefulResume, CarefulResumeConfig}]
    CarefulResume(config: CarefulResumeConfig) => Box<CarefulResume> {
        names: "careful_resume",
        about: "slow start that jumps to half of what an earlier flow reached, and retreats if that was too much (RFC 9959)",
        new: |flow| Box::new(CarefulResume::new(config, flow.initial_window, flow.mss, flow.seed)),
    }

    /// Quick-Start (RFC 4782).
    [pub mod quick_start::{GrantCheckConfig, QuickStart, QuickStartConfig}]
    QuickStart(config: QuickStartConfig) => Box<QuickStart> {
        names: "quick_start" | "quickstart",
        about: "asks the routers for a rate with the first packet and sends at what they grant for one round trip (RFC 4782)",
        new: |flow| Box::new(QuickStart::new(config, flow.initial_window, flow.mss, flow.seed)),
    }

    /// The sender of RCP (Dukkipati and McKeown 2006).
    [pub mod rcp::{RcpStart, RcpStartConfig}]
    Rcp(config: RcpStartConfig) => RcpStart {
        names: "rcp" | "rate_control_protocol",
        about: "sends at what the routers have for each flow, which every packet asks them; never ends (RCP, Dukkipati and McKeown 2006)",
        new: |flow| RcpStart::new(config, flow.initial_window, flow.mss),
    }

    /// SUSS (Arghavani et al. 2024).
    [pub mod suss::{Suss, SussConfig}]
    Suss(config: SussConfig) => Box<Suss> {
        names: "suss",
        about: "HyStart that quadruples the window in its first rounds where ACK trains are short (Arghavani et al. 2024)",
        new: |flow| Box::new(Suss::new(config, flow.initial_window, flow.paced, flow.mss)),
    }

    /// An omniscient start, the bound.
    [pub mod oracle::{Oracle, OracleConfig}]
    Oracle(config: Box<OracleConfig>) => Box<Oracle> {
        names: "oracle",
        about: "knows the capacity of every moment and sends at it: no algorithm, but the bound for all of them",
        new: |_| Box::new(Oracle::new(config)),
    }

    /// Two connections that look for fair queuing (Bachl, Fabini and Zseby 2020).
    [pub mod directed::{Directed}]
    TwoFlowProbe(config: DetectorConfig) => Box<Directed> {
        names: "two_flow_probe",
        about: "two connections at 1:2 double until both lose, which tells fair queuing from a shared queue (Bachl, Fabini and Zseby 2020)",
        new: |flow| Box::new(Directed::new(config.into(), flow.paced, flow.mss)),
    }

    /// Two connections that look for fair queuing by short trains of packets, as this project does
    /// it.
    FairQueuingProbe(config: TrainProbeConfig) => Box<Directed> {
        names: "fair_queuing_probe" | "fq_probe",
        about: "short trains of packets with a lone packet of a second connection behind each, whose delay tells fair queuing from a shared queue",
        new: |flow| Box::new(Directed::new(config.into(), flow.paced, flow.mss)),
    }
}

mod dispatch;
