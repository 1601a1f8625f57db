//! The transfers of an arrival process: known beforehand, for they do not depend on what becomes of
//! earlier ones.

use flowstart_random::{Purpose, Stream};
use flowstart_units::{Bytes, Span, Time};

use crate::draw::{gap, size};
use crate::{ArrivalConfig, SimulationConfig, Sizes, Spacing};

/// Start times and sizes of an arrival process, ascending; endless unless the process has an end.
#[derive(Clone, Debug)]
pub struct Transfers {
    spacing: Spacing,
    mean_gap: Span,
    sizes: Sizes,
    until: Time,
    left: u64,
    next: Time,
    gap_stream: Stream,
    size_stream: Stream,
}

impl Transfers {
    /// Those of a process that is number `index` in a run.
    pub(crate) fn new(config: &ArrivalConfig, (seed, run): (u64, u64), index: usize) -> Self {
        let random = |purpose: Purpose| purpose.stream(seed, run, index as u64);
        let mut gap_stream = random(Purpose::Arrivals);
        // The first arrival is one gap after the start, as in a process that has been running.
        let next = config.flow.start + gap(config.spacing, config.mean_gap, &mut gap_stream);
        Self {
            spacing: config.spacing,
            mean_gap: config.mean_gap,
            sizes: config.sizes.clone(),
            until: config.until,
            left: config.count,
            next,
            gap_stream,
            size_stream: random(Purpose::Sizes),
        }
    }
}

impl Iterator for Transfers {
    type Item = (Time, Bytes);

    fn next(&mut self) -> Option<(Time, Bytes)> {
        if self.left == 0 || self.next > self.until {
            return None;
        }
        self.left -= 1;
        let now = self.next;
        let gap = gap(self.spacing, self.mean_gap, &mut self.gap_stream);
        self.next = now + gap.max(Span::from_nanos(1));
        Some((now, size(&self.sizes, &mut self.size_stream)))
    }
}

impl SimulationConfig {
    /// The transfers that arrival process number `index` starts in this run.
    ///
    /// # Panics
    /// If there is no such process.
    #[must_use]
    pub fn transfers(&self, index: usize) -> Transfers {
        Transfers::new(&self.arrivals[index], (self.seed, self.run), index)
    }
}

#[cfg(test)]
mod tests {
    use flowstart_congestion::{AvoidanceConfig, ControllerConfig, StartConfig};
    use flowstart_network::{LinkConfig, QueueConfig, RateSchedule};
    use flowstart_transport::{ReceiverConfig, SenderConfig};
    use flowstart_units::Rate;

    use super::*;
    use crate::{Access, FlowConfig, Reply, SessionConfig, Simulation, Stop, TcpConfig, Traffic, Workload};

    fn flow() -> FlowConfig {
        let tcp = TcpConfig {
            controller: ControllerConfig::new(StartConfig::SlowStart, AvoidanceConfig::Reno),
            sender: SenderConfig::default(),
            receiver: ReceiverConfig::default(),
            workload: Workload::Greedy,
        };
        FlowConfig {
            forward: vec![0],
            reverse: Vec::new(),
            access: Access { rate: Rate::UNLIMITED, delay: Span::ZERO },
            tail_delay: Span::ZERO,
            return_delay: Span::from_millis(5),
            start: Time::ZERO,
            traffic: Traffic::Tcp(Box::new(tcp)),
            group: 0,
            place: Default::default(),
        }
    }

    fn config() -> SimulationConfig {
        let rate = RateSchedule::Constant(Rate::from_mbps(50));
        SimulationConfig {
            links: vec![LinkConfig::new(rate, Span::from_millis(5), QueueConfig::DropTail(Default::default()))],
            ways: vec![],
            flows: Vec::new(),
            arrivals: Vec::new(),
            sessions: Vec::new(),
            stop: Stop::WhenComplete(Time::ZERO + Span::from_secs(60)),
            seed: 7,
            run: 3,
        }
    }

    #[test]
    fn the_transfers_of_a_process_are_those_that_the_simulation_starts() {
        let mut config = config();
        config.arrivals.push(ArrivalConfig {
            flow: flow(),
            mean_gap: Span::from_millis(20),
            spacing: Spacing::Poisson,
            sizes: Sizes::TruncatedPareto { shape: 0.5, min: Bytes::new(1_000), max: Bytes::new(100_000) },
            until: Time::ZERO + Span::from_secs(2),
            count: 70,
        });
        let foretold: Vec<(Time, Bytes)> = config.transfers(0).collect();
        let (outcome, ()) = Simulation::new(&config, ()).unwrap().run();
        let started: Vec<(Time, Bytes)> = outcome.flows.iter().map(|flow| (flow.started, flow.size.unwrap())).collect();
        assert_eq!(foretold, started);
        assert_eq!(foretold.len(), 70, "the mean gap leaves time for all");
        assert!(outcome.flows.iter().all(|flow| flow.completed.is_some()));
    }

    #[test]
    fn pages_follow_from_the_times_at_which_replies_were_complete() {
        let mut config = config();
        let reply =
            |think, bytes, ends_page| Reply { think: Span::from_millis(think), bytes: Bytes::new(bytes), ends_page };
        config.sessions.push(SessionConfig {
            flow: flow(),
            request_delay: Span::from_millis(5),
            persistent: false,
            replies: vec![reply(10, 9_000, false), reply(0, 500, true), reply(300, 70_000, true), reply(1, 1, false)],
        });
        let (outcome, ()) = Simulation::new(&config, ()).unwrap().run();
        let done = outcome.flows.iter().map(|flow| flow.completed.unwrap());
        assert_eq!(config.sessions[0].pages(done), outcome.sessions[0].pages);
        assert_eq!(outcome.sessions[0].pages.len(), 2);
    }
}
