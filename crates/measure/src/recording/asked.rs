//! What a recording is asked for.

use std::ops::Range;

use flowstart_simulator::{FlowId, LinkId, SimulationConfig, Traffic};
use flowstart_units::{Span, Time};

use super::BIN_LIMIT;
use crate::delay::BEFORE_RTTS;

/// When t = 0 is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// When the first data bit of a new flow reaches a recorded link's queue.
    FirstData,
    /// At a known time: the start of the run, or for the paired run without the new flows.
    At(Time),
}

/// What is recorded of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flows {
    /// Nothing.
    Nothing,
    /// Congestion windows and smoothed RTTs.
    Windows,
    /// Congestion windows, bytes sent, carried and delivered, losses, marks.
    Everything,
}

/// A link that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkAsked {
    /// Its number.
    pub link: LinkId,
    /// Bytes that it adds to every IP packet.
    pub overhead: u32,
}

/// Which parts a recording has. What is not asked for costs nothing: it is left out when the
/// program is built.
pub trait Parts {
    /// What is recorded of flows.
    const FLOWS: Flows;
    /// Of every link what left it per flow, its longest waits and marks, in bins, and requests for
    /// rates. Drops include those by loss processes then.
    const LINK_SERIES: bool;
    /// Only waits of [`Asked::waits_of`], in the whole run.
    const ONLY_WAITS: bool;
    /// What happened in bins of [`Asked::bin`], of all flows and links, and to every packet if
    /// [`Asked::packets`] says so.
    const TABLES: bool = false;
}

/// For the measures of newcomers: everything of flows at a bottleneck.
#[derive(Clone, Copy, Debug)]
pub struct Newcomers;

impl Parts for Newcomers {
    const FLOWS: Flows = Flows::Everything;
    const LINK_SERIES: bool = false;
    const ONLY_WAITS: bool = false;
}

/// For the measures of a transfer: the waits of its packets.
#[derive(Clone, Copy, Debug)]
pub struct TransferWaits;

impl Parts for TransferWaits {
    const FLOWS: Flows = Flows::Nothing;
    const LINK_SERIES: bool = false;
    const ONLY_WAITS: bool = true;
}

/// For claims about a scenario: links and windows over time.
#[derive(Clone, Copy, Debug)]
pub struct LinksAndWindows;

impl Parts for LinksAndWindows {
    const FLOWS: Flows = Flows::Windows;
    const LINK_SERIES: bool = true;
    const ONLY_WAITS: bool = false;
}

/// For the tables of a scenario: samples in bins and packets.
#[derive(Clone, Copy, Debug)]
pub struct SamplesAndPackets;

impl Parts for SamplesAndPackets {
    const FLOWS: Flows = Flows::Nothing;
    const LINK_SERIES: bool = false;
    const ONLY_WAITS: bool = true;
    const TABLES: bool = true;
}

/// Of what, when and how finely a recording is made.
#[derive(Clone, Debug)]
pub struct Asked {
    /// These links.
    pub links: Vec<LinkAsked>,
    /// Waits of these flows, with [`Parts::ONLY_WAITS`].
    pub waits_of: [Range<FlowId>; 2],
    /// Waits of packets that arrived from this time on.
    pub waits_from: Time,
    /// Most waits kept per link, see [`Thinned`](crate::Thinned).
    pub wait_limit: usize,
    /// Flows of lower numbers have records (and series at links) of their own.
    pub flow_limit: usize,
    /// Numbers of the new flows; all others were there before.
    pub new_flows: Range<FlowId>,
    /// Numbers of their second connections, in the same order; what those do counts as done by the
    /// flow.
    pub companions: Range<FlowId>,
    /// When t = 0 is.
    pub origin: Origin,
    /// Width of bins.
    pub bin: Span,
    /// Every packet that is received, with [`Parts::TABLES`].
    pub packets: bool,
    /// How long after t = 0 packets are counted as lost, sent and delivered (H).
    pub horizon: Span,
    /// How long after t = 0 bins and waits are recorded; at least the horizon.
    pub record: Span,
}

/// Bins per RTT0 of a recording of newcomers.
const BINS_PER_RTT: u64 = 32;
/// Most waits kept of newcomers and others (6 MB), and of a transfer (1.5 MB).
const WAIT_LIMIT: usize = 1 << 18;
const TRANSFER_WAIT_LIMIT: usize = 1 << 16;

/// Most waits kept per link of a scenario (24 MB).
const SCENARIO_WAIT_LIMIT: usize = 1 << 20;
/// Bins per round-trip time of a scenario, if they are not too many.
const SCENARIO_BINS_PER_RTT: u64 = 16;
/// Flows of a scenario with series of their own; those beyond, and all that arrive at random, share
/// one.
const MOST_SERIES: usize = 64;

impl Asked {
    /// For the measures of newcomers at a bottleneck: from t = 0, for `horizon` and `extra` more,
    /// relative to RTT0; waits from 10 RTT0 before `not_before` on, which is not later than t = 0.
    #[must_use]
    pub fn newcomers(
        link: LinkAsked,
        new_flows: Range<FlowId>,
        not_before: Time,
        base_rtt: Span,
        horizon: Span,
        extra: Span,
    ) -> Self {
        Self {
            links: vec![link],
            waits_of: [0..0, 0..0],
            waits_from: not_before - base_rtt * BEFORE_RTTS,
            wait_limit: WAIT_LIMIT,
            flow_limit: 1100,
            new_flows,
            companions: 0..0,
            origin: Origin::FirstData,
            bin: base_rtt / BINS_PER_RTT,
            packets: false,
            horizon,
            record: horizon + extra,
        }
    }

    /// Only the waits of some flows at a link, in the whole run.
    #[must_use]
    pub fn waits(link: LinkId, flows: [Range<FlowId>; 2]) -> Self {
        Self {
            links: vec![LinkAsked { link, overhead: 0 }],
            waits_of: flows,
            waits_from: Time::ZERO,
            wait_limit: TRANSFER_WAIT_LIMIT,
            flow_limit: 0,
            new_flows: 0..0,
            companions: 0..0,
            origin: Origin::At(Time::ZERO),
            bin: Span::from_secs(1),
            packets: false,
            horizon: Span::ZERO,
            record: Span::ZERO,
        }
    }

    /// For the tables of a scenario: samples in bins of this width, none if it is zero, and every
    /// packet that is received.
    #[must_use]
    pub fn tables(bin: Span, packets: bool) -> Self {
        Self {
            links: Vec::new(),
            waits_of: [0..0, 0..0],
            waits_from: Time::ZERO,
            wait_limit: 0,
            flow_limit: 0,
            new_flows: 0..0,
            companions: 0..0,
            origin: Origin::At(Time::ZERO),
            bin,
            packets,
            horizon: Span::ZERO,
            record: Span::ZERO,
        }
    }

    /// For claims about a scenario: these `links` in absolute time until `end`; `rtt` is the
    /// shortest time of interest.
    #[must_use]
    pub fn scenario(simulation: &SimulationConfig, links: &[LinkId], rtt: Span, end: Span) -> Self {
        let companions = simulation.flows.iter().filter(|flow| match &flow.traffic {
            Traffic::Tcp(tcp) => tcp.controller.start.connections() > 1,
            Traffic::Udp(_) => false,
        });
        let asked = simulation.links.iter().enumerate().filter(|(number, _)| links.contains(number));
        Self {
            links: asked.map(|(link, config)| LinkAsked { link, overhead: config.overhead }).collect(),
            waits_of: [0..0, 0..0],
            waits_from: Time::ZERO,
            wait_limit: SCENARIO_WAIT_LIMIT,
            flow_limit: (simulation.flows.len() + companions.count()).min(MOST_SERIES),
            new_flows: 0..0,
            companions: 0..0,
            origin: Origin::At(Time::ZERO),
            bin: (rtt / SCENARIO_BINS_PER_RTT).max(end / BIN_LIMIT as u64).max(Span::from_micros(1)),
            packets: false,
            horizon: end,
            record: end,
        }
    }
}
