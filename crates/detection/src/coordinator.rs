//! What the two flows of the published detector found, and at which rates they go on.

use flowstart_units::Rate;

use super::config::DetectorConfig;
use super::probe::Sample;

/// What the detector found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FairQueuingVerdict {
    /// True for fair queuing, false for a shared queue.
    pub fair_queuing: bool,
    /// The part of the first flow that arrived divided by that of the second; infinite if nothing
    /// of the second did.
    pub ratio: f64,
    /// What both flows together got through: the rate the first goes on with.
    pub rate: Rate,
}

/// What the flows do next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// The other flow's sample is awaited.
    Wait,
    /// Both flows open a new interval at these rates.
    Measure(Rate, Rate),
    /// Done; the first flow goes on alone.
    Done(FairQueuingVerdict),
}

/// Joins the samples of the two flows.
#[derive(Clone, Copy, Debug)]
pub struct Coordinator {
    threshold: f64,
    max_rate: Rate,
    rates: [Rate; 2],
    /// The freshest sample of each flow since the last pair; the inner `None` is that of a flow
    /// that lost for the first time.
    samples: [Option<Option<Sample>>; 2],
    lost: [bool; 2],
}

impl Coordinator {
    /// A coordinator of two flows that are about to send.
    #[must_use]
    pub fn new(config: &DetectorConfig) -> Self {
        let rate = config.first_rate.max(Rate::from_bps(1));
        Self {
            threshold: config.threshold,
            max_rate: config.max_rate,
            rates: [rate, rate.mul_ratio(2, 1)],
            samples: [None; 2],
            lost: [false; 2],
        }
    }

    /// The rates of the two flows now.
    #[must_use]
    pub fn rates(&self) -> (Rate, Rate) {
        (self.rates[0], self.rates[1])
    }

    /// A flow (0 or 1; others are ignored) completed an interval. A second one before the other
    /// flow's first replaces it.
    pub fn on_sample(&mut self, flow: usize, sample: Sample) -> Step {
        if let Some(lost) = self.lost.get_mut(flow) {
            *lost |= sample.lost > 0;
        }
        self.take(flow, Some(sample))
    }

    /// A flow lost packets for the first time and threw its interval away.
    pub fn on_first_loss(&mut self, flow: usize) -> Step {
        if let Some(lost) = self.lost.get_mut(flow) {
            *lost = true;
        }
        self.take(flow, None)
    }

    fn take(&mut self, flow: usize, sample: Option<Sample>) -> Step {
        if let Some(slot) = self.samples.get_mut(flow) {
            // A request to measure again does not replace a sample, but a sample replaces it.
            if slot.is_none() || sample.is_some() {
                *slot = Some(sample);
            }
        }
        let [Some(first), Some(second)] = self.samples else { return Step::Wait };
        self.samples = [None; 2];
        match (first, second) {
            (Some(first), Some(second)) => {
                if self.lost == [true; 2]
                    && first.lost > 0
                    && second.lost > 0
                    && let Some(verdict) = self.judge(&first, &second)
                {
                    return Step::Done(verdict);
                }
                // Nothing of either flow arrived: faster would not help.
                if first.arrived() == 0.0 && second.arrived() == 0.0 { self.keep() } else { self.double() }
            }
            _ => self.keep(),
        }
    }

    /// Both flows measure again at the same rates.
    pub(super) fn keep(&self) -> Step {
        Step::Measure(self.rates[0], self.rates[1])
    }

    /// Both flows measure at twice their rates, unless that is more than allowed.
    pub(super) fn double(&mut self) -> Step {
        if self.rates[0].as_bps().saturating_add(self.rates[1].as_bps()) <= self.max_rate.as_bps() / 2 {
            self.rates = self.rates.map(|rate| rate.mul_ratio(2, 1));
        }
        self.keep()
    }

    /// `None` if nothing arrived at all.
    fn judge(&self, first: &Sample, second: &Sample) -> Option<FairQueuingVerdict> {
        let (a, b) = (first.arrived(), second.arrived());
        if a == 0.0 && b == 0.0 {
            return None;
        }
        let ratio = a / b;
        let rate = Rate::from_bps(first.good().as_bps().saturating_add(second.good().as_bps()));
        Some(FairQueuingVerdict { fair_queuing: ratio > self.threshold, ratio, rate })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbps(n: u64) -> Rate {
        Rate::from_mbps(n)
    }

    fn sample(rate: Rate, packets: u32, lost: u32) -> Sample {
        Sample { rate, packets, lost }
    }

    fn coordinator() -> Coordinator {
        Coordinator::new(&DetectorConfig::default())
    }

    #[test]
    fn two_samples_without_loss_double_the_rates() {
        let mut c = coordinator();
        assert_eq!(c.on_sample(0, sample(mbps(1), 10, 0)), Step::Wait);
        assert_eq!(c.on_sample(1, sample(mbps(2), 20, 0)), Step::Measure(mbps(2), mbps(4)));
    }

    #[test]
    fn a_flow_that_loses_for_the_first_time_keeps_the_rates() {
        let mut c = coordinator();
        c.on_sample(0, sample(mbps(1), 10, 0));
        assert_eq!(c.on_first_loss(1), Step::Measure(mbps(1), mbps(2)));
        // Afterwards loss of one flow alone does not stop the doubling.
        c.on_sample(0, sample(mbps(1), 10, 0));
        assert_eq!(c.on_sample(1, sample(mbps(2), 20, 5)), Step::Measure(mbps(2), mbps(4)));
    }

    #[test]
    fn the_freshest_sample_counts() {
        let mut c = coordinator();
        c.on_first_loss(0);
        c.on_first_loss(1);
        c.on_sample(0, sample(mbps(1), 100, 90));
        c.on_sample(0, sample(mbps(1), 100, 10));
        let Step::Done(verdict) = c.on_sample(1, sample(mbps(2), 100, 10)) else { panic!() };
        assert!((verdict.ratio - 1.0).abs() < 1e-12);
    }

    /// The verdict on flows of which these parts (in percent) are lost.
    fn verdict(lost: [u32; 2]) -> Step {
        let mut c = coordinator();
        c.on_sample(0, sample(mbps(10), 100, lost[0]));
        c.on_sample(1, sample(mbps(20), 100, lost[1]))
    }

    #[test]
    fn equal_amounts_mean_fair_queuing_and_equal_parts_a_shared_queue() {
        // 8 of 10 and 8 of 20 Mbit/s.
        let Step::Done(isolated) = verdict([20, 60]) else { panic!() };
        assert!(isolated.fair_queuing && (isolated.ratio - 2.0).abs() < 1e-12);
        assert_eq!(isolated.rate, mbps(16));
        let Step::Done(shared) = verdict([40, 40]) else { panic!() };
        assert!(!shared.fair_queuing && (shared.ratio - 1.0).abs() < 1e-12);
        assert_eq!(shared.rate, mbps(18));
    }

    #[test]
    fn exactly_one_and_a_half_is_a_shared_queue() {
        let Step::Done(verdict) = verdict([25, 50]) else { panic!() };
        assert!(!verdict.fair_queuing);
    }

    #[test]
    fn a_flow_that_gets_nothing_through_decides_and_two_such_flows_measure_again() {
        let Step::Done(starved) = verdict([100, 50]) else { panic!() };
        assert!(!starved.fair_queuing && starved.ratio == 0.0);
        let Step::Done(other) = verdict([50, 100]) else { panic!() };
        assert!(other.fair_queuing && other.ratio.is_infinite());
        assert_eq!(verdict([100, 100]), Step::Measure(mbps(1), mbps(2)));
    }

    #[test]
    fn constants_out_of_range_are_refused() {
        assert_eq!(DetectorConfig::default().validate(), Ok(()));
        assert_eq!(DetectorConfig::paper().validate(), Ok(()));
        assert!(DetectorConfig { threshold: f64::NAN, ..DetectorConfig::default() }.validate().is_err());
    }

    #[test]
    fn only_when_both_have_lost_in_the_same_interval_they_are_compared() {
        for (first, second) in [(0, 20), (20, 0)] {
            let mut c = coordinator();
            c.on_sample(0, sample(mbps(1), 100, 20));
            c.on_sample(1, sample(mbps(2), 100, 20 - 20));
            c.on_sample(0, sample(mbps(2), 100, first));
            let step = c.on_sample(1, sample(mbps(4), 100, second));
            assert_eq!(step, Step::Measure(mbps(4), mbps(8)), "{first} {second}");
        }
    }

    #[test]
    fn a_request_to_measure_again_does_not_replace_a_sample() {
        let mut c = coordinator();
        c.on_sample(0, sample(mbps(1), 100, 10));
        assert_eq!(c.on_first_loss(0), Step::Wait);
        assert!(matches!(c.on_sample(1, sample(mbps(2), 100, 10)), Step::Done(_)));
    }

    #[test]
    fn both_rates_together_stay_within_the_allowed_rate() {
        // 3 Mbit/s twice doubled are 12.
        for (max_rate, rates) in [(mbps(12), (mbps(4), mbps(8))), (Rate::from_bps(11_999_999), (mbps(2), mbps(4)))] {
            let mut c = Coordinator::new(&DetectorConfig { max_rate, ..DetectorConfig::default() });
            assert_eq!(c.rates(), (mbps(1), mbps(2)));
            (0..3).for_each(|_| _ = c.double());
            assert_eq!(c.rates(), rates);
            assert_eq!(c.keep(), Step::Measure(rates.0, rates.1));
        }
    }
}
