//! From a benchmark to scenarios.

use flowstart_network::JitterConfig;
use flowstart_simulator::{FlowId, SimulationConfig};
use flowstart_units::{Bytes, Rate, Span, Time};

use super::{Benchmark, MESSAGE};
use flowstart_race::{Background, Contestant, Purpose, Race, RaceError};
use flowstart_scenario::{FlowSpec, JitterSpec, PacedSpec, Scenario, SpacingSpec};

/// Round trips of the peers in per cent of the path's, one after the other: Table I of the paper,
/// whose nine cross flows have one-way delays of 8 to 12 ms around the probe's 10 ms. Equal round
/// trips would lose packets in step.
const PEER_RTT_PERCENT: [u64; 9] = [120, 110, 90, 110, 80, 100, 90, 80, 120];

/// A run of a scenario with a contestant's flow, which is the last of those that are there from the
/// beginning.
pub(super) struct Prepared {
    pub(super) simulation: SimulationConfig,
    /// The contestant's flow.
    pub(super) flow: FlowId,
    /// When it starts.
    pub(super) start: Time,
}

impl Benchmark {
    /// Makes a run of one of a contestant's scenarios, with the random numbers of that number.
    pub(super) fn prepare(
        &self,
        contestant: &Contestant,
        scenario: &Scenario,
        run: u64,
    ) -> Result<Prepared, RaceError> {
        let wrong = |error: &dyn std::fmt::Display| RaceError::new(format!("{contestant}: {error}"));
        let simulation = scenario.simulation(run).map_err(|error| wrong(&error))?.simulation;
        let start = Time::ZERO + scenario.flow.last().map_or(Span::ZERO, |flow| flow.start);
        Ok(Prepared { simulation, flow: self.with_peers(contestant).others.tcp_flows(), start })
    }

    /// The race of one contestant with its peers among the others. Unless the path has jitter of
    /// its own, every packet is delayed at random by up to the time that one packet takes at the
    /// bottleneck: without any randomness a full queue prefers flows by the phase of their round
    /// trips (Floyd and Jacobson, "On traffic phase effects in packet-switched gateways", 1992, who
    /// recommend this remedy).
    #[must_use]
    pub fn with_peers(&self, contestant: &Contestant) -> Race {
        let mut race = self.race.clone();
        race.contestants = vec![contestant.clone()];
        race.flows = 1;
        race.horizon = Some(self.startup.max(race.base_rtt()));
        if self.peers > 0 && race.path.jitter.is_none() {
            let spread = self.capacity().transmission_time(Bytes::new(u64::from(race.packet())));
            race.path.jitter = Some(JitterSpec(JitterConfig { spread, reorder: false }));
        }
        let kind = Background { count: 1, flow: Contestant { queue: None, ..contestant.clone() } };
        for peer in 0..self.peers {
            let before = race.others.tcp_flows();
            let percent = PEER_RTT_PERCENT[peer as usize % PEER_RTT_PERCENT.len()];
            let rtt = race.path.rtt.mul_ratio(percent, 100);
            race.others.flow.push(FlowSpec { rtt: Some(rtt), ..kind.spec(before) });
        }
        race
    }

    /// The scenario in which a contestant is probed at `rate`. The probe is the last of the TCP
    /// flows that are there from the beginning.
    #[must_use]
    pub fn scenario(&self, contestant: &Contestant, rate: Rate) -> Scenario {
        let race = self.with_peers(contestant);
        let mut scenario = race.scenario(contestant, Purpose::Start, 0);
        if let Some(probe) = scenario.flow.last_mut() {
            let message = Bytes::new(MESSAGE);
            probe.paced = Some(PacedSpec { rate, message, spacing: SpacingSpec::Constant, lasting: None });
            scenario.duration = probe.start + self.probe.warm_up + self.lasting;
        }
        scenario.title = format!("{contestant}, probed at {rate}");
        scenario
    }

    /// The scenario in which a congestion control of a kernel is probed at `rate`, and the number
    /// of the probe among its flows. Its peers have the same control. `like` is a contestant with
    /// whose settings of hosts (ECN) and queue it runs.
    #[must_use]
    pub fn real_scenario(&self, like: &Contestant, control: &str, rate: Rate) -> (Scenario, usize) {
        let mut scenario = self.scenario(like, rate);
        let (others, all) = (self.race.others.flow.len(), scenario.flow.len());
        for flow in scenario.flow.iter_mut().take(all).skip(others) {
            flow.kernel = Some(control.to_owned());
        }
        scenario.title = format!("{control} of the kernel, probed at {rate}");
        let probe = self.with_peers(like).others.tcp_flows() as usize;
        (scenario, probe)
    }

    /// The scenario in which a contestant is probed at `rate` in real time by another transport
    /// than the kernel's, and the number of the probe among its flows.
    #[must_use]
    pub fn own_scenario(&self, contestant: &Contestant, rate: Rate) -> (Scenario, usize) {
        (self.scenario(contestant, rate), self.with_peers(contestant).others.tcp_flows() as usize)
    }

    /// The scenario of new connection `number`.
    #[must_use]
    pub fn startup_scenario(&self, contestant: &Contestant, number: u64) -> Scenario {
        let mut scenario = self.with_peers(contestant).scenario(contestant, Purpose::Start, number);
        if let Some(flow) = scenario.flow.last() {
            scenario.duration = flow.start + self.startup;
        }
        scenario
    }
}
