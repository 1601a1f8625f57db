//! The published detector over two connections: [`ProbeFlow`]s and their [`Coordinator`] joined.

use flowstart_control::InRange as _;
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
    /// is that of the jitter. Constants out of range are moved to the nearest value in range.
    #[must_use]
    pub fn new(config: &DetectorConfig, header: u32, seed: u64) -> Self {
        let config = config.in_range();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Jitter;
    use crate::coordinator::FairQueuingVerdict;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn config() -> DetectorConfig {
        DetectorConfig { jitter: Jitter::None, interval_rtts: 1.0, ..DetectorConfig::default() }
    }

    /// A detector of packets of 1250 bytes: at 1 Mbit/s one every 10 ms.
    fn detector(config: &DetectorConfig) -> TwoFlows {
        TwoFlows::new(config, 50, 3)
    }

    /// A packet of a connection leaves when it may.
    fn send(detector: &mut TwoFlows, connection: usize, number: u64) -> Time {
        let Departure::At(now) = detector.departure(connection, at(0)) else { panic!() };
        let sent = Sent { now, number, seq: 0, bytes: 1200, in_flight: 1, retransmission: false };
        detector.on_sent(connection, &sent);
        now
    }

    fn ack(detector: &mut TwoFlows, connection: usize, number: u64, sent_at: Time, now: Time) {
        let rtt = Some(now.since(sent_at));
        detector.on_acked(connection, &Acked { now, number, bytes: 1200, sent_at, rtt, retransmitted: false });
    }

    #[test]
    fn constants_out_of_range_are_moved_to_the_nearest_in_range_and_the_others_stay() {
        let base = config();
        for (given, moved) in [
            (DetectorConfig { first_rate: Rate::ZERO, ..base }, Rate::from_bps(1000)),
            (DetectorConfig { first_rate: Rate::UNLIMITED, ..base }, Rate::from_mbps(10_000)),
        ] {
            assert!(given.validate().is_err());
            assert_eq!(detector(&given).config, DetectorConfig { first_rate: moved, ..base });
        }
        let given = DetectorConfig { threshold: f64::NAN, late_loss_factor: 2.0, ..base };
        assert_eq!(detector(&given).config, DetectorConfig { threshold: 1.0, late_loss_factor: 1.0, ..base });
    }

    #[test]
    fn the_second_connection_sends_twice_as_fast_and_there_is_no_third() {
        let mut detector = detector(&config());
        let first = [0, 1, 2].map(|number| send(&mut detector, 0, number));
        let second = [0, 1, 2].map(|number| send(&mut detector, 1, number));
        assert_eq!((first, second), ([at(0), at(10), at(20)], [at(0), at(5), at(10)]));
        assert_eq!(detector.departure(2, at(0)), Departure::Hold);
    }

    #[test]
    fn connections_do_not_jitter_in_step() {
        let mut detector = detector(&DetectorConfig { first_rate: Rate::from_mbps(1), ..DetectorConfig::default() });
        let gaps = |detector: &mut TwoFlows, connection| {
            let times = [0, 1, 2].map(|number| send(detector, connection, number));
            [
                times[1].since(times[0]).ratio(Span::from_millis(10)),
                times[2].since(times[1]).ratio(Span::from_millis(10)),
            ]
        };
        let (first, second) = (gaps(&mut detector, 0), gaps(&mut detector, 1));
        assert!(first.iter().zip(second).all(|(first, second)| (first - second * 2.0).abs() > 1e-3));
    }

    /// Sends packets of a connection and has those delivered that `arrives` names, after 30 ms
    /// each.
    fn interval(detector: &mut TwoFlows, connection: usize, from: u64, packets: u64, arrives: fn(u64) -> bool) {
        let times: Vec<Time> = (from..from + packets).map(|number| send(detector, connection, number)).collect();
        for (number, sent_at) in (from..).zip(times) {
            if arrives(number) {
                ack(detector, connection, number, sent_at, sent_at + Span::from_millis(30));
            }
        }
    }

    #[test]
    fn one_flow_alone_ends_with_the_rate_of_its_first_interval_with_losses() {
        let mut detector = detector(&DetectorConfig { single: true, ..config() });
        interval(&mut detector, 0, 0, 1, |_| true);
        // Every second packet is lost. The first loss does not count.
        interval(&mut detector, 0, 1, 12, |number| number % 2 == 0);
        assert!(detector.decision().is_none());
        // Four packets in three gaps of 10 ms, of which two arrive.
        interval(&mut detector, 0, 13, 5, |number| number % 2 == 0);
        let decision = *detector.decision().unwrap();
        assert_eq!((decision.isolation, decision.ratio, decision.confidence), (Isolation::Unknown, 0.0, None));
        assert_eq!(decision.rate.as_bps(), 666_666);
        assert_eq!(detector.coordinator.rates().0, Rate::from_mbps(1));
    }

    #[test]
    fn one_flow_alone_doubles_its_rate_without_losses() {
        let mut detector = detector(&DetectorConfig { single: true, ..config() });
        interval(&mut detector, 0, 0, 1, |_| true);
        interval(&mut detector, 0, 1, 8, |_| true);
        assert_eq!(detector.coordinator.rates().0, Rate::from_mbps(2));
        assert!(detector.decision().is_none());
    }

    #[test]
    fn after_the_time_to_give_up_the_answer_is_unknown_and_the_rate_what_got_through() {
        let mut detector = detector(&DetectorConfig { give_up: Span::from_millis(500), ..config() });
        let sent_at = send(&mut detector, 0, 0);
        detector.good = [Rate::from_mbps(3), Rate::from_mbps(4)];
        ack(&mut detector, 0, 0, sent_at, at(500));
        assert!(detector.decision().is_none());
        let sent_at = send(&mut detector, 0, 1);
        ack(&mut detector, 0, 1, sent_at, at(501));
        let decision = detector.decision().unwrap();
        assert_eq!((decision.isolation, decision.now), (Isolation::Unknown, at(501)));
        assert_eq!(decision.rate, Rate::from_mbps(7));
    }

    #[test]
    fn steps_set_rates_and_the_last_one_is_the_answer() {
        let mut detector = detector(&config());
        (0..2).for_each(|connection| _ = send(&mut detector, connection, 0));
        detector.take(at(5), Step::Measure(Rate::from_mbps(2), Rate::from_mbps(4)));
        let gaps = [0, 1].map(|connection| {
            let before = send(&mut detector, connection, 1);
            send(&mut detector, connection, 2).since(before)
        });
        assert_eq!(gaps, [Span::from_millis(5), Span::from_micros(2500)]);
        for (fair_queuing, isolation) in [(true, Isolation::Isolated), (false, Isolation::Shared)] {
            let rate = Rate::from_mbps(9);
            detector.take(at(7), Step::Done(FairQueuingVerdict { fair_queuing, ratio: 1.7, rate }));
            let decision = detector.decision().unwrap();
            assert_eq!((decision.now, decision.isolation, decision.ratio), (at(7), isolation, 1.7));
            assert_eq!((decision.rate, decision.confidence, decision.smallest), (rate, None, Span::MAX));
        }
    }
}
