//! Controls that try rates: a monitor interval at each planned rate, then a decision from what
//! became of their packets. Vivace, Allegro and the delay-based rule differ in the decision alone.

use flowstart_control::Ranges;
use flowstart_control::random::Random;
use flowstart_units::{Rate, Time};

use super::intervals::{IntervalOutcome, Length, MAX_PLANNED, Monitor, PathView};

/// What became of the intervals of a plan, in their order.
pub(super) type Outcomes = [Option<IntervalOutcome>; MAX_PLANNED];

/// What keeps a control that tries rates from waiting for ever; each has its own configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The window is this many times what the rate sends in a smoothed RTT.
    pub(super) window_rtts: u32,
    /// Smallest window in packets.
    pub(super) min_window: u32,
    /// An interval is given up when this many smoothed RTTs have passed since its last packet left.
    pub(super) give_up_rtts: u32,
    /// Later transmissions that must be delivered before a packet counts as lost.
    pub(super) reordering: u32,
}

impl Limits {
    /// Their ranges, in the configuration that has them.
    pub(super) fn ranges(
        ranges: &mut Ranges,
        window_rtts: &mut u32,
        min_window: &mut u32,
        give_up_rtts: &mut u32,
        reordering: &mut u32,
    ) {
        ranges.of("window_rtts", window_rtts, 1..=100, "between 1 and 100");
        ranges.of("min_window", min_window, 1.., "at least 1");
        ranges.of("give_up_rtts", give_up_rtts, 1..=100, "between 1 and 100");
        ranges.of("reordering", reordering, 1.., "at least 1");
    }
}

/// The path and the intervals under way.
#[derive(Clone, Debug)]
pub(super) struct Trials {
    pub(super) path: PathView,
    pub(super) monitor: Monitor,
    limits: Limits,
}

impl Trials {
    /// For a flow with segments of `mss` payload bytes.
    pub(super) fn new(mss: u32, limits: Limits) -> Self {
        Self { path: PathView::new(mss), monitor: Monitor::new(limits.reordering), limits }
    }

    /// The window in packets at this rate. It never holds packets back while ACKs come.
    pub(super) fn window(&self, rate: Rate) -> u32 {
        self.path.window(rate, self.limits.window_rtts, self.limits.min_window)
    }

    /// Packets that this rate sends in a smoothed RTT.
    pub(super) fn flight(&self, rate: Rate) -> u32 {
        self.path.window(rate, 1, self.limits.min_window)
    }

    /// What became of all intervals that were planned, once it is known.
    pub(super) fn outcomes(&mut self, now: Time, length: Length) -> Option<Outcomes> {
        let give_up = self.path.srtt * u64::from(self.limits.give_up_rtts);
        self.monitor.outcomes(now, length, give_up).map(|(outcomes, _)| outcomes)
    }

    /// One interval at this rate comes next.
    pub(super) fn move_to(&mut self, rate: Rate) {
        self.monitor.plan(&[rate]);
    }

    /// Two pairs of intervals come next, each with one above this rate and one below by the share
    /// `epsilon`, in random order.
    pub(super) fn probe_around(&mut self, rate: Rate, epsilon: f64, random: &mut Random) {
        let (up, down) = (rate.mul_f64(1.0 + epsilon), rate.mul_f64(1.0 - epsilon));
        let mut plan = [up, down, up, down];
        for pair in plan.chunks_mut(2) {
            if random.coin() {
                pair.swap(0, 1);
            }
        }
        self.monitor.plan(&plan);
    }
}

/// What a control that tries rates decides.
pub(super) trait TriesRates {
    fn trials(&self) -> &Trials;

    fn trials_mut(&mut self) -> &mut Trials;

    /// How long an interval lasts now.
    fn interval(&self) -> Length;

    /// The rate around which it tries; `None` before it has taken over.
    fn base_rate(&self) -> Option<Rate>;

    /// Begins, or begins anew, at this rate.
    fn begin(&mut self, rate: Rate);

    /// What became of all intervals that were planned; plans the next.
    fn decide(&mut self, outcomes: &Outcomes);

    /// What a timeout leaves of the rate; `None` if timeouts do not count.
    fn timeout_factor(&self) -> Option<f64>;
}

/// A [`TriesRates`] as a congestion avoidance.
macro_rules! try_rates {
    ($control:ty) => {
        const _: () = {
            use flowstart_control::{Ack, Acked, CongestionAvoidance, NewMss, Sent, Signal, Window};
            use flowstart_units::{Rate, Time};
            use $crate::trials::TriesRates;

            impl CongestionAvoidance for $control {
                fn wants_packets(&self) -> bool {
                    true
                }

                fn on_sent(&mut self, sent: &Sent) {
                    let length = self.interval();
                    self.trials_mut().monitor.on_sent(sent, length);
                }

                fn on_acked(&mut self, acked: &Acked) {
                    self.trials_mut().monitor.on_acked(acked);
                }

                fn on_ack(&mut self, ack: &Ack, _window: &Window) {
                    self.trials_mut().path.on_ack(ack);
                    if self.base_rate().is_none() {
                        return;
                    }
                    let length = self.interval();
                    if let Some(outcomes) = self.trials_mut().outcomes(ack.now, length) {
                        self.decide(&outcomes);
                    }
                }

                fn grow(&mut self, _ack: &Ack, acked: u32, window: &mut Window) {
                    if acked > 0
                        && let Some(rate) = self.pacing_rate()
                    {
                        window.cwnd = self.trials().window(rate);
                    }
                }

                fn on_mss(&mut self, mss: NewMss) {
                    self.trials_mut().path.on_mss(mss);
                }

                fn reduce(&mut self, _now: Time, signal: Signal, window: &Window) -> u32 {
                    match (self.base_rate(), self.timeout_factor()) {
                        (None, _) => self.begin(self.trials().path.delivered_rate(window)),
                        (Some(rate), Some(factor)) if signal == Signal::Timeout => self.begin(rate.mul_f64(factor)),
                        // Losses are judged with their interval.
                        _ => {}
                    }
                    self.trials().flight(self.base_rate().unwrap_or(Rate::ZERO))
                }

                fn on_takeover(&mut self, _now: Time, window: &Window, _rate: Option<Rate>) {
                    self.begin(self.trials().path.window_rate(window));
                }

                fn pacing_rate(&self) -> Option<Rate> {
                    self.base_rate().map(|rate| self.trials().monitor.rate(rate))
                }

                fn controls_recovery(&self) -> bool {
                    true
                }
            }
        };
    };
}
pub(super) use try_rates;

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_control::testing::sent;
    use flowstart_units::{Span, Time};

    const LIMITS: Limits = Limits { window_rtts: 2, min_window: 4, give_up_rtts: 4, reordering: 3 };

    #[test]
    fn the_window_holds_so_many_round_trips_and_what_nothing_comes_back_of_is_given_up_after_as_many() {
        let (srtt, mss) = (Span::from_millis(20), 1000);
        for (limits, window, given_up) in
            [(LIMITS, 50, 80), (Limits { window_rtts: 5, give_up_rtts: 3, ..LIMITS }, 125, 60)]
        {
            let mut trials = Trials::new(mss, limits);
            trials.path.srtt = srtt;
            // 25 packets of 1000 bytes in 20 ms.
            let rate = Rate::from_mbps(10);
            assert_eq!([trials.window(rate), trials.flight(rate)], [window, 25]);
            assert_eq!(trials.window(Rate::ZERO), 4);
            trials.move_to(rate);
            let length = Length::of(Span::from_millis(3));
            for number in 0..5 {
                trials.monitor.on_sent(&sent(Time::ZERO + Span::from_millis(number), number), length);
            }
            // The last of the interval left after 3 ms.
            let known = |ms| trials.clone().outcomes(Time::ZERO + Span::from_millis(ms), length).is_some();
            assert_eq!([3 + given_up, 4 + given_up].map(known), [false, true]);
        }
    }

    #[test]
    fn both_pairs_of_probes_are_around_the_rate_and_their_order_is_random() {
        let rate = Rate::from_mbps(100);
        let mut random = Random::new(1);
        let mut orders = std::collections::BTreeSet::new();
        for _ in 0..64 {
            let mut trials = Trials::new(1448, LIMITS);
            trials.probe_around(rate, 0.05, &mut random);
            let mut plan = Vec::new();
            for number in 0..8 {
                let now = Time::ZERO + flowstart_units::Span::from_millis(10 * number);
                trials.monitor.on_sent(
                    &flowstart_control::testing::sent(now, number),
                    Length::of(flowstart_units::Span::from_millis(1)),
                );
                if number % 2 == 0 {
                    plan.push(trials.monitor.rate(rate).as_bps() / 1_000_000);
                }
            }
            for pair in plan.chunks(2) {
                assert_eq!(pair.iter().sum::<u64>(), 200, "{plan:?}");
            }
            orders.insert(plan);
        }
        assert_eq!(orders.len(), 4);
    }
}
