//! Bursts into idle connections: a service curve that need not be convex.

use flowstart_service_curve::BurstCurve;
use flowstart_simulator::{FlowId, Observer, Simulation};
use flowstart_units::{Bytes, Rate, Span, Time};

use super::path::Prepared;
use super::{Benchmark, MESSAGE};
use flowstart_race::{Contestant, Purpose, RaceError};
use flowstart_scenario::{PacedSpec, Scenario, SpacingSpec};

/// The delays of the packets of bursts.
struct BurstWatch {
    flow: FlowId,
    /// When the first burst is handed over, how far apart they are, and how many packets each has.
    start: Time,
    gap: Span,
    packets: u64,
    /// Packets read so far.
    read: u64,
    delays: Vec<Vec<Span>>,
    /// When the last packet of the latest burst was read.
    served: Time,
    /// True if the burst being read found the connection idle.
    idle: bool,
}

impl Observer for BurstWatch {
    fn delivered(&mut self, now: Time, flow: FlowId, total: u64) {
        if flow != self.flow {
            return;
        }
        while total / MESSAGE > self.read {
            let written = self.start + self.gap * (self.read / self.packets);
            if self.read.is_multiple_of(self.packets) {
                self.idle = self.served <= written;
                if self.idle {
                    self.delays.push(Vec::new());
                }
            }
            if let (true, Some(burst)) = (self.idle, self.delays.last_mut()) {
                burst.push(now.since(written));
            }
            self.served = now;
            self.read += 1;
        }
    }
}

impl Benchmark {
    /// Size of a burst.
    fn burst(&self) -> Bytes {
        Bytes::new(MESSAGE.saturating_mul(u64::from(self.burst_packets)))
    }

    /// The rate of an application that writes a burst every [`Self::burst_gap`].
    fn burst_rate(&self) -> Rate {
        let seconds = self.burst_gap.as_secs_f64().max(f64::MIN_POSITIVE);
        Rate::from_bps(((self.burst().bits() as f64 / seconds) as u64).max(1))
    }

    /// The scenario in which a contestant is handed bursts.
    fn burst_scenario(&self, contestant: &Contestant) -> Scenario {
        let mut scenario = self.with_peers(contestant).scenario(contestant, Purpose::Start, 0);
        if let Some(flow) = scenario.flow.last_mut() {
            let (rate, message) = (self.burst_rate(), self.burst());
            flow.paced = Some(PacedSpec { rate, message, spacing: SpacingSpec::Constant, lasting: None });
            // The first burst opens the connection and is none of those that count; after the last
            // there is time to serve it.
            let gap = rate.transmission_time(message);
            scenario.duration = flow.start + gap * (u64::from(self.bursts) + 1);
        }
        scenario.title = format!("{contestant}, bursts");
        scenario
    }

    /// Hands bursts to one connection of a contestant. Returns their curve, if there were any that
    /// found the connection idle and were served, and the virtual time simulated.
    pub(super) fn handed_over(&self, contestant: &Contestant) -> Result<(Option<BurstCurve>, f64), RaceError> {
        let Prepared { simulation, flow, start } = self.prepare(contestant, &self.burst_scenario(contestant), 0)?;
        let watch = BurstWatch {
            flow,
            start,
            gap: self.burst_rate().transmission_time(self.burst()),
            packets: u64::from(self.burst_packets),
            read: 0,
            delays: Vec::new(),
            served: Time::ZERO,
            idle: false,
        };
        let simulation = Simulation::new(&simulation, watch).map_err(|error| RaceError::new(error.to_string()))?;
        let (outcome, watch) = simulation.run();
        let mut bursts = watch.delays;
        // The one that opened the connection, and one that the end cut off: what it lacks would
        // have come late.
        bursts.drain(..bursts.len().min(1));
        for burst in &mut bursts {
            burst.resize(self.burst_packets as usize, Span::MAX);
        }
        let curve = BurstCurve::new(Bytes::new(MESSAGE), &bursts, self.startup_epsilon).ok();
        Ok((curve, outcome.ended.since(Time::ZERO).as_secs_f64()))
    }
}
