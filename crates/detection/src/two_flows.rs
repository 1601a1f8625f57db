//! The published detector over two connections: [`ProbeFlow`]s and their [`Coordinator`] joined.

use flowstart_units::{Rate, Span, Time};

use crate::{Acked, Departure, Sent};

use super::answer::{Decision, Isolation};
use super::config::DetectorConfig;
use super::coordinator::{Coordinator, Step};
use super::probe::{ProbeEvent, ProbeFlow};

/// The detector in operation.
#[derive(Clone, Debug)]
pub struct TwoFlows {
    config: DetectorConfig,
    header: u32,
    seed: u64,
    coordinator: Coordinator,
    /// `None` until the connection is open.
    flows: [Option<ProbeFlow>; 2],
    opened: Option<Time>,
    /// What got through of each flow in its last interval.
    good: [Rate; 2],
    decision: Option<Decision>,
}

impl TwoFlows {
    /// A detector over connections whose packets have `header` bytes beside their payload. `seed`
    /// is that of the jitter.
    #[must_use]
    pub fn new(config: &DetectorConfig, header: u32, seed: u64) -> Self {
        let config = if config.validate().is_ok() { *config } else { DetectorConfig::default() };
        Self {
            config,
            header,
            seed,
            coordinator: Coordinator::new(&config),
            flows: [None, None],
            opened: None,
            good: [Rate::ZERO; 2],
            decision: None,
        }
    }

    pub(super) fn departure(&mut self, connection: usize, now: Time) -> Departure {
        self.opened.get_or_insert(now);
        let (first, second) = self.coordinator.rates();
        let rate = if connection == 0 { first } else { second };
        let Some(slot) = self.flows.get_mut(connection) else { return Departure::Hold };
        // Seeds of the two differ, so that they do not jitter in step.
        let seed = self.seed ^ (connection as u64) << 32;
        let flow = slot.get_or_insert_with(|| ProbeFlow::new(&self.config, rate, now, seed));
        Departure::At(flow.next_departure())
    }

    pub(super) fn on_sent(&mut self, connection: usize, sent: &Sent) {
        if let Some(Some(flow)) = self.flows.get_mut(connection) {
            flow.on_sent(sent.now, sent.bytes.saturating_add(self.header));
        }
    }

    pub(super) fn on_acked(&mut self, connection: usize, acked: &Acked) {
        let Some(Some(flow)) = self.flows.get_mut(connection) else { return };
        if self.decision.is_some() {
            return;
        }
        let event = flow.on_ack(acked.now, acked.number, acked.sent_at);
        if let ProbeEvent::Sample(sample) = event {
            self.good[connection] = sample.good();
        }
        let step = if self.config.single {
            self.alone(acked.now, event)
        } else {
            match event {
                ProbeEvent::Nothing => Step::Wait,
                ProbeEvent::FirstLoss => self.coordinator.on_first_loss(connection),
                ProbeEvent::Sample(sample) => self.coordinator.on_sample(connection, sample),
            }
        };
        self.take(acked.now, step);
        let overdue = self.opened.is_some_and(|opened| acked.now.since(opened) > self.config.give_up);
        if overdue && self.decision.is_none() {
            let rate = Rate::from_bps(self.good[0].as_bps().saturating_add(self.good[1].as_bps()));
            self.decision = Some(Decision {
                now: acked.now,
                isolation: Isolation::Unknown,
                ratio: 0.0,
                rate,
                confidence: None,
                smallest: Span::MAX,
            });
        }
    }

    /// One flow alone only looks for its rate: that of the first interval with losses after the
    /// first loss.
    fn alone(&mut self, now: Time, event: ProbeEvent) -> Step {
        match event {
            ProbeEvent::Nothing => Step::Wait,
            ProbeEvent::FirstLoss => self.coordinator.keep(),
            ProbeEvent::Sample(sample) if sample.lost > 0 => {
                let (isolation, rate) = (Isolation::Unknown, sample.good());
                self.decision =
                    Some(Decision { now, isolation, ratio: 0.0, rate, confidence: None, smallest: Span::MAX });
                Step::Wait
            }
            ProbeEvent::Sample(_) => self.coordinator.double(),
        }
    }

    fn take(&mut self, now: Time, step: Step) {
        match step {
            Step::Wait => {}
            Step::Measure(first, second) => {
                for (flow, rate) in self.flows.iter_mut().zip([first, second]) {
                    if let Some(flow) = flow {
                        flow.measure(rate);
                    }
                }
            }
            Step::Done(verdict) => {
                let isolation = if verdict.fair_queuing { Isolation::Isolated } else { Isolation::Shared };
                self.decision = Some(Decision {
                    now,
                    isolation,
                    ratio: verdict.ratio,
                    rate: verdict.rate,
                    confidence: None,
                    smallest: Span::MAX,
                });
            }
        }
    }

    pub(super) fn decision(&self) -> Option<&Decision> {
        self.decision.as_ref()
    }
}
