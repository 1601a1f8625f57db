//! A delay-based control for flows that have a queue of their own: it steers its queueing delay to a small target.
//!
//! It is this project's answer to the rule of [`VegasLike`](super::VegasLike), with the faults of that mended:
//! - Once per round trip, the rate is set to what is delivered, more or less in proportion to the distance from the target. What
//!   was sent in the last round trip and does not show in the delay yet is foreseen, so that large gains do not swing.
//! - A round with more than 2 % of losses or marks brings the rate down to what is delivered; one with none lets it grow. Losses below that
//!   are not congestion of a queue of one's own.
//! - The smallest RTT is forgotten after 10 s; every half of that time the queue is emptied for a round trip, to see it again. A flow that already
//!   sends as little as it may takes the RTT it has as the smallest: the queue cannot be its own.
//! - The rate has a floor, and a ceiling at a multiple of what is delivered.
//! - A queue that does not go away although less and less is sent is not the flow's own. After some such round trips, or at the least rate, the control
//!   says so ([`CongestionAvoidance::doubts_isolation`]), and [`ByIsolation`](super::ByIsolation) goes on with the other one from the rate before.
//! - Up to 95 % of what the path was seen to carry the rate grows by a quarter per round trip. After eight round trips without queue or loss growth doubles with every further one: capacity that appears is used soon.

use flowstart_units::{Rate, Span, Time};

use crate::names::InvalidConfig;
use crate::smallest::Smallest;
use crate::{Ack, CongestionAvoidance, Signal, Window};

use super::intervals::PathView;

/// The window is this many times what the rate sends in a smoothed RTT: it never holds packets back while ACKs come.
const WINDOW_RTTS: u32 = 2;

/// Constants of the control; all are this project's.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct DelayTargetConfig {
    /// Queueing delay to keep; default 1 ms.
    pub target: Span,
    /// The target is at least the transmission time of so many packets, at least 0; default 1.
    pub target_packets: f64,
    /// Share of the distance from the target that is made good per round trip, above 0 up to 1; default 0.5. The delay answers a round trip
    /// late: with 1 the rate swings.
    pub gain: f64,
    /// Growth per round trip without any queue, at least, 0 ..= 1; default 0.005.
    pub min_growth: f64,
    /// Growth per round trip at most, 0 ..= 1; default 0.25.
    pub max_growth: f64,
    /// Round trips without queue, losses or marks after which growth doubles with every further one; default 8.
    pub patience: u32,
    /// Without a queue the rate grows fast up to this share of what was delivered when the path was full for the last time, 0 ..= 1; default 0.95.
    pub known_share: f64,
    /// Share of packets lost or marked in a round trip that counts as congestion, 0 ..= 1; default 0.02.
    pub loss_threshold: f64,
    /// The smallest RTT is forgotten after this time; default 10 s. At least 1 ms.
    pub min_rtt_window: Span,
    /// Fewest packets per smoothed RTT, at least 1; default 2.
    pub min_packets: u32,
    /// The rate is at most this many times what is delivered, at least 1; default 2.
    pub ceiling: f64,
    /// What a timeout leaves of the rate, above 0 up to 1; default 0.5.
    pub timeout_factor: f64,
    /// Queueing delay in times of the target from which on the queue may be somebody else's, at least 1; default 3.
    pub foreign_targets: f64,
    /// Round trips in a row with such a queue after which it is somebody else's; default 12, 0 for never. One's own loses `gain` of what is above the
    /// target per round trip: even one of a second is gone after ten.
    pub foreign_rounds: u32,
}

impl Default for DelayTargetConfig {
    fn default() -> Self {
        Self {
            target: Span::from_millis(1),
            target_packets: 1.0,
            gain: 0.5,
            min_growth: 0.005,
            max_growth: 0.25,
            patience: 8,
            known_share: 0.95,
            loss_threshold: 0.02,
            min_rtt_window: Span::from_secs(10),
            min_packets: 2,
            ceiling: 2.0,
            timeout_factor: 0.5,
            foreign_targets: 3.0,
            foreign_rounds: 12,
        }
    }
}

impl DelayTargetConfig {
    pub(super) fn validate(&self) -> Result<(), InvalidConfig> {
        let check = InvalidConfig::unless;
        let share = 0.0..=1.0;
        check(self.target_packets >= 0.0 && self.target_packets.is_finite(), "target_packets", "at least 0")?;
        check(self.gain > 0.0 && self.gain <= 1.0, "gain", "above 0 and at most 1")?;
        check(share.contains(&self.min_growth), "min_growth", "between 0 and 1")?;
        check(share.contains(&self.max_growth), "max_growth", "between 0 and 1")?;
        check(self.max_growth >= self.min_growth, "max_growth", "at least min_growth")?;
        check(share.contains(&self.known_share), "known_share", "between 0 and 1")?;
        check(share.contains(&self.loss_threshold), "loss_threshold", "between 0 and 1")?;
        check(self.min_rtt_window >= Span::from_millis(1), "min_rtt_window", "at least 1 ms")?;
        check(self.min_packets >= 1, "min_packets", "at least 1")?;
        check(self.ceiling >= 1.0 && self.ceiling.is_finite(), "ceiling", "at least 1")?;
        check(self.foreign_targets >= 1.0 && self.foreign_targets.is_finite(), "foreign_targets", "at least 1")?;
        check(self.timeout_factor > 0.0 && self.timeout_factor <= 1.0, "timeout_factor", "above 0 and at most 1")
    }
}

/// The control in operation.
#[derive(Clone, Debug)]
pub struct DelayTarget {
    config: DelayTargetConfig,
    path: PathView,
    /// `None` before it has taken over.
    rate: Option<Rate>,
    /// The rate of the round before.
    before: Rate,
    smallest: Smallest,
    /// RTT over the last few packets.
    rtt: Span,
    /// A round ends when a packet sent after this many were delivered is acknowledged.
    round_end: u64,
    delivered_in_all: u64,
    delivered: u64,
    congested: u64,
    /// What was delivered when the path was full for the last time.
    known: Rate,
    /// Rounds without a queue, losses and marks.
    quiet: u32,
    /// The queue is to be emptied in this round.
    drain: bool,
    /// What the start measured.
    measured: Option<Rate>,
    /// The ACKs of this round are of packets from before it took over.
    settling: bool,
    /// Rounds with a queue that does not go away, and the rate before the first of them.
    foreign: u32,
    undoubted: Rate,
}

impl DelayTarget {
    /// The control for a flow with segments of `mss` payload bytes.
    #[must_use]
    pub fn new(config: &DelayTargetConfig, mss: u32) -> Self {
        Self {
            config: if config.validate().is_ok() { *config } else { DelayTargetConfig::default() },
            path: PathView::new(mss),
            rate: None,
            before: Rate::ZERO,
            smallest: Smallest::new(),
            rtt: Span::ZERO,
            round_end: 0,
            delivered_in_all: 0,
            delivered: 0,
            congested: 0,
            known: Rate::ZERO,
            quiet: 0,
            drain: false,
            measured: None,
            settling: false,
            foreign: 0,
            undoubted: Rate::ZERO,
        }
    }

    /// The rate; `None` before it has taken over.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// The smallest RTT it knows; [`Span::MAX`] if none.
    #[must_use]
    pub fn min_rtt(&self) -> Span {
        self.smallest.get()
    }

    fn queueing(&self) -> Span {
        Span::from_nanos(self.rtt.as_nanos().saturating_sub(self.smallest.get().as_nanos()))
    }

    fn take_sample(&mut self, now: Time, rtt: Span) {
        let half = self.config.min_rtt_window / 2;
        self.drain |= self.smallest.add(now, rtt, half);
        self.rtt = if self.rtt.is_zero() { rtt } else { self.rtt - self.rtt / 4 + rtt / 4 };
    }

    /// The rate for the next round trip, after one at `rate`. `foreseen` is the delay of what has been sent and does not show yet.
    fn next_rate(&mut self, rate: Rate, delivery: Rate, foreseen: f64) -> Rate {
        let loss = self.congested as f64 / (self.congested + self.delivered).max(1) as f64;
        let rtt = self.rtt.as_secs_f64().max(1e-9);
        let queueing = self.queueing().as_secs_f64();
        let target = self.target_at(delivery);
        self.watch_queue(rate);
        let least = self.path.least_rate(self.config.min_packets);
        if loss > self.config.loss_threshold || queueing > target / 2.0 {
            self.known = delivery;
        }
        if loss > self.config.loss_threshold {
            self.quiet = 0;
            return rate.min(delivery).max(least);
        }
        let aim = if std::mem::take(&mut self.drain) { 0.0 } else { target };
        let expected = (queueing + foreseen).max(0.0);
        let is_quiet = expected < target / 2.0 && self.congested == 0;
        self.quiet = if is_quiet { self.quiet.saturating_add(1) } else { 0 };
        let mut change = self.config.gain * (aim - expected) / rtt;
        if change > 0.0 {
            let boost = 2.0_f64.powi(self.quiet.saturating_sub(self.config.patience).min(16) as i32);
            change = (change.max(self.config.min_growth) * boost).min(self.config.max_growth);
            // Up to what the path is known to carry there is no need to feel one's way.
            if is_quiet {
                let room = self.known.as_bps() as f64 * self.config.known_share / rate.as_bps().max(1) as f64 - 1.0;
                change = change.max(room.min(self.config.max_growth));
            }
        }
        // With a queue, what is delivered is the capacity; without, it is what was sent.
        let base = if queueing > target / 2.0 { delivery } else { rate };
        let next = base.mul_f64((1.0 + change).max(0.0)).min(delivery.mul_f64(self.config.ceiling)).max(least);
        if next <= least && queueing > self.config.target.as_secs_f64() {
            self.smallest.reset(self.rtt);
            self.foreign = self.foreign.max(self.config.foreign_rounds);
        }
        next
    }

    /// Counts round trips in which the queue is long although it was to be emptied, from one on at `rate`.
    fn watch_queue(&mut self, rate: Rate) {
        // Whoever starves has a long time per packet, and must not take a long queue for a short one.
        let own = if self.foreign == 0 { rate } else { self.undoubted };
        if self.queueing().as_secs_f64() < self.target_at(own) * self.config.foreign_targets {
            self.foreign = 0;
        } else {
            self.undoubted = own;
            self.foreign += 1;
        }
    }

    /// The target in seconds for a flow of this rate.
    fn target_at(&self, rate: Rate) -> f64 {
        let second = Span::from_secs(1);
        let packet = self.path.rate_of(1, second).as_bps() as f64 / rate.as_bps().max(1) as f64;
        self.config.target.as_secs_f64().max(packet * self.config.target_packets)
    }

    fn on_round(&mut self) {
        if std::mem::take(&mut self.settling) {
            return;
        }
        if let (Some(rate), Some(delivery)) = (self.rate, self.path.delivery) {
            // What is delivered now was sent at the rate of the round before. If all of it arrives and there is no queue, the path is not full.
            let full = delivery < self.before.mul_f64(1.0 - self.config.loss_threshold)
                || self.queueing() > self.config.target / 2;
            let excess = rate.as_bps() as f64 / delivery.as_bps().max(1) as f64 - 1.0;
            let foreseen = if full { excess.clamp(-1.0, 1.0) * self.rtt.as_secs_f64() } else { 0.0 };
            self.before = rate;
            self.rate = Some(self.next_rate(rate, delivery, foreseen));
        }
        (self.delivered, self.congested) = (0, 0);
    }

    fn take_over(&mut self, first: Rate) {
        // Losses that ended the start are answered by beginning with what is delivered.
        (self.delivered, self.congested) = (0, 0);
        let rate = match (self.measured.take(), self.path.delivery.filter(|_| !self.rtt.is_zero())) {
            // What is delivered tells nothing of a path that was measured by less than it carries.
            (Some(measured), _) => {
                self.known = measured;
                (self.settling, self.round_end) = (true, self.delivered_in_all);
                measured.mul_f64(self.config.known_share)
            }
            (None, Some(delivery)) => self.next_rate(first, delivery, 0.0),
            (None, None) => first,
        };
        self.before = rate;
        self.rate = Some(rate);
    }
}

impl CongestionAvoidance for DelayTarget {
    fn on_ack(&mut self, ack: &Ack, _window: &Window) {
        self.path.on_ack(ack);
        if let Some(rtt) = ack.rtt {
            self.take_sample(ack.now, rtt);
        }
        self.delivered_in_all = ack.delivered;
        self.delivered = self.delivered.saturating_add(u64::from(ack.acked.saturating_sub(ack.marked)));
        self.congested = self.congested.saturating_add(u64::from(ack.lost)).saturating_add(u64::from(ack.marked));
        if let Some(sample) = ack.rate
            && sample.prior_delivered >= self.round_end
        {
            self.round_end = ack.delivered;
            // Of a flow that did not use its rate nothing can be learnt.
            if sample.app_limited {
                (self.delivered, self.congested) = (0, 0);
            } else {
                self.on_round();
            }
        }
    }

    fn grow(&mut self, _ack: &Ack, _acked: u32, window: &mut Window) {
        if let Some(rate) = self.rate {
            window.cwnd = self.path.window(rate, WINDOW_RTTS, self.config.min_packets.max(2));
        }
    }

    fn reduce(&mut self, _now: Time, signal: Signal, window: &Window) -> u32 {
        match self.rate {
            None => self.take_over(self.path.delivered_rate(window)),
            Some(rate) if signal == Signal::Timeout => {
                let least = self.path.least_rate(self.config.min_packets);
                self.rate = Some(rate.mul_f64(self.config.timeout_factor).max(least));
            }
            // Losses and marks are judged by the round.
            Some(_) => {}
        }
        // Whoever takes over because the queue is somebody else's goes on from before that starved this flow.
        let rate = self.rate.unwrap_or(Rate::ZERO);
        self.path.window(if self.foreign > 0 { rate.max(self.undoubted) } else { rate }, 1, 2)
    }

    fn on_takeover(&mut self, _now: Time, window: &Window) {
        self.take_over(self.path.window_rate(window));
    }

    fn on_measured_rate(&mut self, rate: Rate) {
        self.measured = Some(rate);
    }

    fn on_isolation_confirmed(&mut self) {
        self.foreign = 0;
    }

    fn on_smallest_rtt(&mut self, rtt: Span) {
        self.smallest.lower(rtt);
    }

    fn on_dismissal(&mut self) {
        (self.rate, self.foreign) = (None, 0);
    }

    fn doubts_isolation(&self) -> bool {
        self.config.foreign_rounds > 0 && self.foreign >= self.config.foreign_rounds
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }

    fn controls_recovery(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::from_mbps(100);

    fn ms(n: u64) -> Span {
        Span::from_millis(n)
    }

    /// A control at 100 Mbit/s over a path of 50 ms with this much queue.
    fn control(queue: Span) -> DelayTarget {
        let mut control = DelayTarget::new(&DelayTargetConfig::default(), 1448);
        control.smallest.reset(ms(50));
        control.rtt = ms(50) + queue;
        control.path.srtt = control.rtt;
        control.delivered = 400;
        control
    }

    fn factor(control: &mut DelayTarget) -> f64 {
        control.next_rate(RATE, RATE, 0.0).as_bps() as f64 / RATE.as_bps() as f64
    }

    #[test]
    fn the_rate_follows_the_distance_from_the_target() {
        assert!((factor(&mut control(ms(1))) - 1.0).abs() < 1e-6, "at the target");
        assert!((factor(&mut control(ms(11))) - (1.0 - 0.5 * 10.0 / 61.0)).abs() < 1e-6);
        assert!((factor(&mut control(Span::ZERO)) - (1.0 + 0.5 / 50.0)).abs() < 1e-6);
    }

    #[test]
    fn what_was_sent_too_much_is_foreseen() {
        let mut control = control(ms(1));
        let next = control.next_rate(RATE, RATE, 0.004);
        assert!((next.as_bps() as f64 / RATE.as_bps() as f64 - (1.0 - 0.5 * 4.0 / 51.0)).abs() < 1e-6);
    }

    #[test]
    fn growth_doubles_after_eight_quiet_rounds_up_to_a_quarter() {
        let mut control = control(Span::ZERO);
        let growth: Vec<f64> = (0..15).map(|_| (factor(&mut control) - 1.0) * 100.0).collect();
        assert!(growth[..8].iter().all(|g| (g - 1.0).abs() < 1e-4), "{growth:?}");
        for (growth, expected) in growth[8..].iter().zip([2.0, 4.0, 8.0, 16.0, 25.0, 25.0, 25.0]) {
            assert!((growth - expected).abs() < 1e-4);
        }
    }

    #[test]
    fn more_than_two_percent_of_losses_bring_the_rate_down_to_what_is_delivered() {
        for (congested, delivery) in [(9, 80), (8, 100)] {
            let mut control = control(Span::ZERO);
            control.congested = congested;
            let next = control.next_rate(RATE, Rate::from_mbps(80), 0.0);
            assert_eq!(next.as_bps() >= RATE.as_bps(), delivery == 100, "{congested} of {}", 400 + congested);
        }
    }

    #[test]
    fn the_rate_stays_between_its_floor_and_twice_what_is_delivered() {
        let mut low = control(ms(100_000));
        let rates: Vec<Rate> =
            (0..60).scan(RATE, |rate, _| Some(std::mem::replace(rate, low.next_rate(*rate, *rate, 0.0)))).collect();
        assert_eq!(rates.into_iter().min(), Some(low.path.least_rate(2)));
        let mut high = control(Span::ZERO);
        assert_eq!(high.next_rate(RATE, Rate::from_mbps(10), 0.0), Rate::from_mbps(20));
    }

    #[test]
    fn a_queue_that_stays_for_twelve_rounds_is_somebody_elses_and_the_rate_before_it_is_remembered() {
        let mut control = control(ms(30));
        control.rate = Some(RATE);
        let mut rate = RATE;
        for round in 0..12 {
            assert!(!control.doubts_isolation(), "after {round}");
            rate = control.next_rate(rate, rate, 0.0);
        }
        assert!(control.doubts_isolation() && rate < RATE.mul_ratio(1, 2));
        control.rate = Some(rate);
        let packets = control.reduce(Time::ZERO, Signal::Loss, &Window::new(10));
        assert_eq!(packets, control.path.window(RATE, 1, 2));
    }

    #[test]
    fn a_queue_that_goes_away_in_between_is_the_flows_own() {
        let mut control = control(ms(30));
        for round in 0..40 {
            control.rtt = ms(50) + if round % 10 == 9 { ms(2) } else { ms(30) };
            control.next_rate(RATE, RATE, 0.0);
            assert!(!control.doubts_isolation());
        }
    }

    #[test]
    fn a_measured_rate_is_taken_over_but_for_five_percent_and_the_round_before_it_is_not_judged() {
        let mut control = control(Span::ZERO);
        control.path.delivery = Some(Rate::from_mbps(5));
        control.on_measured_rate(RATE);
        control.on_takeover(Time::ZERO, &Window::new(10));
        assert_eq!(control.rate(), Some(Rate::from_mbps(95)));
        control.on_round();
        assert_eq!(control.rate(), Some(Rate::from_mbps(95)));
    }

    #[test]
    fn at_the_floor_the_rtt_is_taken_for_the_path() {
        let mut control = control(ms(100));
        let least = control.path.least_rate(2);
        control.next_rate(least, least, 0.0);
        assert_eq!(control.min_rtt(), ms(150));
        assert!(control.doubts_isolation());
    }

    #[test]
    fn the_smallest_rtt_is_forgotten_after_its_window_and_drained_for_in_between() {
        let mut control = DelayTarget::new(&DelayTargetConfig::default(), 1448);
        control.take_sample(Time::ZERO + ms(1), ms(20));
        control.drain = false;
        control.take_sample(Time::ZERO + ms(3000), ms(30));
        assert!(!control.drain);
        control.take_sample(Time::ZERO + ms(5002), ms(30));
        assert!(control.drain, "half of the window is over");
        assert_eq!(control.min_rtt(), ms(20));
        control.take_sample(Time::ZERO + ms(10_003), ms(30));
        assert_eq!(control.min_rtt(), ms(30));
    }

    #[test]
    fn constants_out_of_range_are_refused_and_replaced() {
        assert_eq!(DelayTargetConfig::default().validate(), Ok(()));
        let config = DelayTargetConfig { gain: f64::NAN, ..DelayTargetConfig::default() };
        assert!(config.validate().is_err());
        assert_eq!(DelayTarget::new(&config, 0).config, DelayTargetConfig::default());
    }
}
