//! Who shares the newcomers' ways, and what of them is left: what their measures are relative to.

use std::sync::Arc;

use flowstart_measure::measures::{Setting, Sharing};
use flowstart_measure::{Moments, Reference};
use flowstart_network::{PolicerConfig, RateSchedule};
use flowstart_random::{Purpose as Stream, SplitMix64};
use flowstart_scenario::RateSpec;
use flowstart_simulator::{FlowId, LinkId, SimulationConfig, Traffic};
use flowstart_units::{Rate, Span, Time};

use super::Race;
use super::others::{Sharer, Wants, share};

impl Race {
    /// How many ways there are in parallel.
    fn ways(&self) -> u32 {
        self.path.ways.len() as u32 + 1
    }

    /// The way that the first connection of a flow takes in this run, from 0: the one it says (from
    /// 1), or what the simulator draws.
    fn way(&self, says: Option<u32>, flow: FlowId, run: u64) -> u32 {
        match says {
            _ if self.path.ways.is_empty() => 0,
            Some(way) => way.saturating_sub(1),
            None => {
                let seed = Stream::Way.seed(self.seed, run, 0);
                (SplitMix64::nth(seed, u64::from(flow) << 1) % u64::from(self.ways())) as u32
            }
        }
    }

    /// The way of a newcomer in this run, from 0. The first goes over the first one, to which the
    /// measures of the queue refer; the others are spread like all connections.
    pub(crate) fn way_of_newcomer(&self, number: u32, run: u64) -> u32 {
        let says = (number == 0).then_some(1);
        self.way(says, self.others.tcp_flows().saturating_add(number), run)
    }

    /// From when to when newcomers may be watched.
    fn watched(&self) -> (Span, Span) {
        let from = self.effective_warm_up();
        (from, from + self.effective_phase() + self.horizon())
    }

    /// The capacity of a way, which is this race's or its own.
    pub(crate) fn capacity_of(&self, way: u32) -> &RateSpec {
        let own = (way as usize).checked_sub(1).and_then(|way| self.path.ways.get(way)?.capacity.as_ref());
        own.unwrap_or(&self.path.capacity)
    }

    /// The policer on a way.
    fn policer(&self, way: u32) -> Option<&PolicerConfig> {
        let own = (way as usize).checked_sub(1).and_then(|way| self.path.ways.get(way)?.medium.as_ref());
        own.unwrap_or(&self.path.medium).policer.as_ref()
    }

    /// What a way carries in the long run: the mean of its capacity, or less behind a policer.
    fn carried(&self, way: u32) -> Rate {
        let capacity = self.mean(self.capacity_of(way));
        self.policer(way).map_or(capacity, |policer| capacity.min(policer.rate))
    }

    /// Nobody sends faster than over the own link.
    fn sent(&self, rate: Rate) -> Rate {
        self.path.access.map_or(rate, |access| rate.min(access))
    }

    /// The flow number of one of the others: TCP flows stand before the newcomers, datagrams
    /// behind.
    fn number_of(&self, sharer: &Sharer) -> FlowId {
        match sharer.wants {
            Wants::Datagrams(_) => self.others.tcp_flows() + self.flows + sharer.number,
            Wants::Everything | Wants::Paced(_) => sharer.number,
        }
    }

    /// The others on a way that carries this much, in this run.
    fn sharers(&self, carried: Rate, way: u32, run: u64) -> Vec<Sharer> {
        let mut sharers = self.others.sharing(carried, self.watched());
        sharers.retain(|sharer| self.way(sharer.way, self.number_of(sharer), run) == way);
        sharers
    }

    /// The newcomers on a way in this run.
    fn newcomers_on(&self, way: u32, run: u64) -> Vec<u32> {
        (0..self.flows).filter(|number| self.way_of_newcomer(*number, run) == way).collect()
    }

    /// What each newcomer on a way has of so much in this run; never nothing, for what is relative
    /// to it.
    fn share_of(&self, carried: Rate, way: u32, run: u64) -> Rate {
        let newcomers = self.newcomers_on(way, run).len() as u64;
        share(carried, newcomers, &self.sharers(carried, way, run)).max(Rate::from_bps(1))
    }

    /// What part of the capacity of a way each newcomer on it has in this run.
    pub(crate) fn part_of(&self, way: u32, run: u64) -> f64 {
        let capacity = self.mean(self.capacity_of(way));
        self.share_of(capacity, way, run).as_bps() as f64 / capacity.as_bps().max(1) as f64
    }

    /// The fair share: of several ways what each would have if all were spread evenly.
    pub(crate) fn fair_share(&self) -> Rate {
        let one = self.carried(0);
        let of = |carried| self.others.share(carried, self.flows.into(), self.watched());
        if self.path.ways.is_empty() {
            return self.sent(of(one));
        }
        let all = (0..self.ways()).map(|way| self.carried(way).as_bps()).fold(0, u64::saturating_add);
        self.sent(of(Rate::from_bps(all)).min(one))
    }

    /// The links whose departures count in this run: the bottleneck and the ways of the newcomers.
    pub(crate) fn links_of_newcomers(&self, simulation: &SimulationConfig, run: u64) -> Vec<LinkId> {
        let ways = (0..self.flows).map(|number| link_of(simulation, self.way_of_newcomer(number, run)));
        let mut links: Vec<LinkId> = std::iter::once(0).chain(ways).collect();
        links.sort_unstable();
        links.dedup();
        links
    }

    /// What the measures of this run are relative to; `origin` is t = 0.
    pub(crate) fn setting(&self, simulation: &SimulationConfig, run: u64, origin: Time) -> Setting {
        let mut known: Vec<(u32, Reference)> = Vec::new();
        let mut own = Vec::new();
        for number in 0..self.flows {
            let way = self.way_of_newcomer(number, run);
            if !known.iter().any(|(of, _)| *of == way) {
                known.push((way, self.reference_on(simulation, way, run, origin)));
            }
            own.extend(known.iter().find(|(of, _)| *of == way).map(|(_, reference)| reference.clone()));
        }
        let others = self.others.tcp_flows();
        let passing = self.tcp_ways(run).filter(|(_, way)| *way == 0).map(|(number, _)| number as usize);
        let newcomers = self.newcomers_on(0, run);
        let companions = companions_of_others(simulation, others);
        let connections = |flow: FlowId| {
            let second = companions.iter().find(|(owner, _)| *owner == flow).map(|(_, second)| *second as usize);
            std::iter::once(flow as usize).chain(second).collect::<Vec<_>>()
        };
        let access = self.path.access.unwrap_or(Rate::UNLIMITED);
        let sharers = self.sharers(self.carried(0), 0, run);
        let sharing = sharers.iter().map(|sharer| {
            let wants = match sharer.wants {
                Wants::Everything => access,
                Wants::Paced(rate) => rate.min(access),
                Wants::Datagrams(rate) => rate,
            };
            (self.number_of(sharer), wants)
        });
        let sharing = sharing.chain(newcomers.iter().map(|number| (others + number, access)));
        let first = others + self.flows;
        let datagrams = (first..).zip(&self.others.udp).filter(|(number, udp)| self.way(udp.way, *number, run) == 0);
        Setting {
            reference: own.first().cloned().unwrap_or_else(|| self.reference()),
            own,
            capacity: self.carried(0),
            packet: self.packet(),
            service: self.service(),
            others: others as usize,
            newcomers: self.flows as usize,
            passing: passing.collect(),
            newcomers_passing: newcomers.len(),
            datagrams: datagrams.map(|(number, _)| number as usize).collect(),
            arriving: self.path.ways.is_empty().then_some(simulation.flows.len()),
            access,
            sharing: sharing.map(|(flow, wants)| Sharing { connections: connections(flow), wants }).collect(),
        }
    }

    /// The ways of the others' TCP flows in this run, by flow number.
    fn tcp_ways(&self, run: u64) -> impl Iterator<Item = (FlowId, u32)> + '_ {
        let says = self.others.flow.iter().flat_map(|flow| (0..flow.count).map(|_| flow.ways.first().copied()));
        (0..).zip(says).map(move |(number, says)| (number, self.way(says, number, run)))
    }

    /// What is fair on a way: of a capacity that changes, that of the moments from t = 0 at
    /// `origin` on.
    fn reference_on(&self, simulation: &SimulationConfig, way: u32, run: u64, origin: Time) -> Reference {
        let fair_share = self.sent(self.share_of(self.carried(way), way, run));
        let moments = self.moments(simulation, way, run, origin);
        Reference { horizon: self.horizon(), moments, ..Reference::new(fair_share, self.base_rtt()) }
    }

    /// A newcomer's share of the capacity of every moment, if that changes; `origin` is t = 0.
    fn moments(&self, simulation: &SimulationConfig, way: u32, run: u64, origin: Time) -> Option<Arc<Moments>> {
        let RateSchedule::Steps { steps, period } = &simulation.links.get(link_of(simulation, way))?.rate else {
            return None;
        };
        let part = self.part_of(way, run);
        let most = self.policer(way).map_or(Rate::UNLIMITED, |policer| policer.rate);
        let most = self.path.access.map_or(most, |access| most.min(access.mul_f64(1.0 / part)));
        let steps: Vec<(Time, Rate)> = steps.iter().map(|step| (step.at, step.rate.min(most))).collect();
        Moments::new(&steps, *period, part, origin).map(Arc::new)
    }
}

/// The link that a way from 0 is.
fn link_of(simulation: &SimulationConfig, way: u32) -> LinkId {
    simulation.ways.first().and_then(|links| links.get(way as usize)).copied().unwrap_or(0)
}

/// The second connections of the others' TCP flows, each with the flow it belongs to: they stand
/// behind all flows.
pub(crate) fn companions_of_others(simulation: &SimulationConfig, others: u32) -> Vec<(FlowId, FlowId)> {
    let two = simulation.flows.iter().take(others as usize).enumerate().filter(|(_, flow)| match &flow.traffic {
        Traffic::Tcp(tcp) => tcp.controller.start.connections() > 1,
        Traffic::Udp(_) => false,
    });
    two.map(|(flow, _)| flow as FlowId).zip(simulation.flows.len() as FlowId..).collect()
}
