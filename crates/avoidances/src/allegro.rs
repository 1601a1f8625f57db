//! PCC Allegro (Dong et al., "PCC: Re-architecting congestion control for consistent high
//! performance", NSDI 2015), for comparison with Vivace.
//!
//! Two pairs of monitor intervals decide whether a little more or a little less is better, by a
//! utility of what arrives that drops steeply above 5 % of loss. Then the rate goes in that
//! direction in growing steps until the utility falls. How much better a rate is does not matter
//! for the step. The start phase is left to flow starts.

use flowstart_control::random::Random;
use flowstart_control::{InRange, InvalidConfig, Ranges, above};
use flowstart_units::Rate;

use super::intervals::{IntervalOutcome, Length};
use super::trials::{Limits, Outcomes, Trials, TriesRates, try_rates};
use super::vivace::mibit;
use crate::AvoidanceConstants;

/// Constants of PCC Allegro; the defaults are those of NSDI 2015.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct AllegroConfig {
    /// Length of a monitor interval in smoothed RTTs, above 0 up to 100; default 1.95, the mean of
    /// the published 1.7 to 2.2.
    pub interval_rtts: f64,
    /// Fewest packets in a monitor interval, at least 2; default 10.
    pub interval_packets: u32,
    /// Step of probing and of moving as a share of the rate, above 0 up to 0.1; default 0.01.
    pub epsilon: f64,
    /// Probing widens by a step whenever it does not tell, up to this share, below 1; default 0.05.
    pub max_epsilon: f64,
    /// Share of lost packets at which the utility drops, 0 ..= 1; default 0.05.
    pub loss_threshold: f64,
    /// How steeply it drops; default 100.
    pub steepness: f64,
    /// What a timeout leaves of the rate, above 0 up to 1; default 0.5 (this crate's: the paper's
    /// has no timeouts).
    pub timeout_factor: f64,
    /// Fewest packets per smoothed RTT, at least 1; default 2 (the rate the paper's start begins
    /// with).
    pub min_packets: u32,
    /// The window is this many times what the rate sends in a smoothed RTT, 1 ..= 100; default 2:
    /// it never holds packets back while ACKs come.
    pub window_rtts: u32,
    /// Smallest window in packets, at least 1; default 4.
    pub min_window: u32,
    /// An interval is given up when this many smoothed RTTs have passed since its last packet left,
    /// 1 ..= 100; default 4 (this project's).
    pub give_up_rtts: u32,
    /// Packets that were sent later and must be delivered before one counts as lost, at least 1;
    /// default 3 (RFC 5681 section 3.2).
    pub reordering: u32,
}

impl Default for AllegroConfig {
    fn default() -> Self {
        Self {
            interval_rtts: 1.95,
            interval_packets: 10,
            epsilon: 0.01,
            max_epsilon: 0.05,
            loss_threshold: 0.05,
            steepness: 100.0,
            timeout_factor: 0.5,
            min_packets: 2,
            window_rtts: 2,
            min_window: 4,
            give_up_rtts: 4,
            reordering: 3,
        }
    }
}

impl AllegroConfig {
    fn limits(&self) -> Limits {
        let Self { window_rtts, min_window, give_up_rtts, reordering, .. } = *self;
        Limits { window_rtts, min_window, give_up_rtts, reordering }
    }

    /// Utility of a sending rate in Mibit/s at this loss.
    fn utility(&self, rate: f64, loss: f64) -> f64 {
        let sigmoid = 1.0 / (1.0 + libm::exp(self.steepness * (loss - self.loss_threshold)));
        rate * (1.0 - loss) * sigmoid - rate * loss
    }
}

impl AvoidanceConstants for AllegroConfig {
    fn draws(&self) -> bool {
        true
    }

    fn spaces(&self) -> Option<&'static str> {
        Some("paced at its own rate")
    }

    fn validate(&self) -> Result<(), InvalidConfig> {
        self.check()
    }
}

impl InRange for AllegroConfig {
    fn ranges(&mut self, ranges: &mut Ranges) {
        ranges.of("interval_rtts", &mut self.interval_rtts, above(0.0).up_to(100.0), "above 0 and at most 100");
        ranges.of("interval_packets", &mut self.interval_packets, 2.., "at least 2");
        ranges.of("epsilon", &mut self.epsilon, above(0.0).up_to(0.1), "above 0 and at most 0.1");
        ranges.of("max_epsilon", &mut self.max_epsilon, self.epsilon..1.0, "at least epsilon and below 1");
        ranges.of("loss_threshold", &mut self.loss_threshold, 0.0..=1.0, "between 0 and 1");
        ranges.of("steepness", &mut self.steepness, 0.0.., "at least 0");
        ranges.of("timeout_factor", &mut self.timeout_factor, above(0.0).up_to(1.0), "above 0 and at most 1");
        ranges.of("min_packets", &mut self.min_packets, 1.., "at least 1");
        let give_up = &mut self.give_up_rtts;
        Limits::ranges(ranges, &mut self.window_rtts, &mut self.min_window, give_up, &mut self.reordering);
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Search {
    Waiting,
    /// Tries rates this share above and below.
    Deciding(f64),
    /// The n-th step in one direction, 1 or -1, and the utility and rate of the one before.
    Moving {
        steps: f64,
        direction: f64,
        utility: f64,
        before: Rate,
    },
}

/// PCC Allegro in operation. [`AllegroConfig`] says where its rules come from.
#[derive(Clone, Debug)]
pub struct Allegro {
    config: AllegroConfig,
    trials: Trials,
    random: Random,
    phase: Search,
    rate: Rate,
}

impl Allegro {
    /// Allegro for a flow with segments of `mss` payload bytes. `seed` sets the order of probes.
    /// Constants out of range are moved to the nearest value in range.
    #[must_use]
    pub fn new(config: &AllegroConfig, mss: u32, seed: u64) -> Self {
        let config = config.in_range();
        Self {
            trials: Trials::new(mss, config.limits()),
            config,
            random: Random::new(seed),
            phase: Search::Waiting,
            rate: Rate::ZERO,
        }
    }

    /// The rate around which it decides or at which it moves.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.rate
    }

    fn set_rate(&mut self, rate: Rate) {
        self.rate = rate.max(self.trials.path.least_rate(self.config.min_packets));
    }

    fn probe(&mut self, epsilon: f64) {
        self.phase = Search::Deciding(epsilon);
        self.trials.probe_around(self.rate, epsilon, &mut self.random);
    }

    fn utility(&self, outcome: &IntervalOutcome) -> f64 {
        self.config.utility(mibit(outcome.sent), outcome.loss)
    }

    fn step(&mut self, direction: f64, steps: f64, utility: f64) {
        let before = self.rate;
        self.phase = Search::Moving { steps, direction, utility, before };
        self.set_rate(before.mul_f64((1.0 + steps * self.config.epsilon * direction).max(0.5)));
        self.trials.move_to(self.rate);
    }
}

try_rates!(Allegro);

impl TriesRates for Allegro {
    fn trials(&self) -> &Trials {
        &self.trials
    }

    fn trials_mut(&mut self) -> &mut Trials {
        &mut self.trials
    }

    fn interval(&self) -> Length {
        let span = self.trials.path.srtt.mul_f64(self.config.interval_rtts);
        Length { span, packets: self.config.interval_packets }
    }

    fn base_rate(&self) -> Option<Rate> {
        (self.phase != Search::Waiting).then_some(self.rate)
    }

    fn begin(&mut self, rate: Rate) {
        self.set_rate(rate);
        self.probe(self.config.epsilon);
    }

    fn decide(&mut self, outcomes: &Outcomes) {
        match (self.phase, outcomes) {
            (Search::Deciding(epsilon), &[Some(a), Some(b), Some(c), Some(d)]) => {
                let better =
                    |x: IntervalOutcome, y: IntervalOutcome| if self.utility(&x) >= self.utility(&y) { x } else { y };
                let (first, second) = (better(a, b), better(c, d));
                let (up, again) = (first.rate > self.rate, second.rate > self.rate);
                if up == again {
                    let utility = self.utility(&first).max(self.utility(&second));
                    self.set_rate(first.rate);
                    self.step(if up { 1.0 } else { -1.0 }, 1.0, utility);
                } else {
                    self.probe((epsilon + self.config.epsilon).min(self.config.max_epsilon));
                }
            }
            (Search::Moving { steps, direction, utility, before }, &[Some(outcome), ..]) => {
                let now = self.utility(&outcome);
                if now > utility {
                    self.step(direction, steps + 1.0, now);
                } else {
                    self.set_rate(before);
                    self.probe(self.config.epsilon);
                }
            }
            _ => {}
        }
    }

    fn timeout_factor(&self) -> Option<f64> {
        Some(self.config.timeout_factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(rate: Rate, capacity: f64) -> Option<IntervalOutcome> {
        let loss = (1.0 - capacity * 1e6 / rate.as_bps() as f64).max(0.0);
        Some(IntervalOutcome { rate, sent: rate, loss, rtt: None, gradient: 0.0 })
    }

    fn taken_over(mbps: u64) -> Allegro {
        let mut allegro = Allegro::new(&AllegroConfig::default(), 1448, 7);
        allegro.begin(Rate::from_mbps(mbps));
        allegro
    }

    /// One decision or step on a link of `capacity` Mbit/s.
    fn turn(allegro: &mut Allegro, capacity: f64) {
        let outcomes = match allegro.phase {
            Search::Deciding(epsilon) => {
                let (up, down) = (allegro.rate.mul_f64(1.0 + epsilon), allegro.rate.mul_f64(1.0 - epsilon));
                [up, down, up, down].map(|rate| outcome(rate, capacity))
            }
            _ => [outcome(allegro.rate, capacity), None, None, None],
        };
        allegro.decide(&outcomes);
    }

    #[test]
    fn it_begins_at_the_rate_it_is_given_and_says_so() {
        assert_eq!(taken_over(10).rate(), Rate::from_mbps(10));
        assert_eq!(Allegro::new(&AllegroConfig::default(), 1448, 7).rate(), Rate::ZERO, "nothing is known yet");
    }

    #[test]
    fn the_utility_drops_steeply_at_five_percent_of_loss() {
        let config = AllegroConfig::default();
        assert!((config.utility(10.0, 0.0) - 10.0 / (1.0 + (-5.0_f64).exp())).abs() < 1e-12);
        assert!((config.utility(10.0, 0.05) - (9.5 * 0.5 - 0.5)).abs() < 1e-12);
        assert!(config.utility(10.0, 0.1) < 0.0);
    }

    #[test]
    fn steps_grow_by_a_percent_each_as_long_as_the_utility_does() {
        let mut allegro = taken_over(10);
        let mut factors = Vec::new();
        for _ in 0..5 {
            let before = allegro.rate.as_bps() as f64;
            turn(&mut allegro, 1000.0);
            factors.push((allegro.rate.as_bps() as f64 / before * 1e4).round() / 1e4);
        }
        // The decision itself goes to the better of the rates tried and takes the first step from
        // there.
        assert_eq!(factors, [1.0201, 1.02, 1.03, 1.04, 1.05]);
    }

    #[test]
    fn when_the_utility_falls_it_returns_and_decides_anew() {
        let mut allegro = taken_over(10);
        for _ in 0..5 {
            turn(&mut allegro, 1000.0);
        }
        let Search::Moving { before, .. } = allegro.phase else { panic!() };
        let worse = outcome(allegro.rate, allegro.rate.as_mbps_f64() * 0.8);
        allegro.decide(&[worse, None, None, None]);
        assert_eq!((allegro.phase, allegro.rate), (Search::Deciding(0.01), before));
    }

    #[test]
    fn probing_widens_up_to_five_percent_while_it_does_not_tell() {
        let mut allegro = taken_over(10);
        let mut widths = Vec::new();
        for _ in 0..6 {
            let Search::Deciding(epsilon) = allegro.phase else { panic!() };
            widths.push((epsilon * 100.0).round());
            let (up, down) = (allegro.rate.mul_f64(1.0 + epsilon), allegro.rate.mul_f64(1.0 - epsilon));
            let lossy = |rate: Rate| outcome(rate, rate.as_mbps_f64() * 0.8);
            allegro.decide(&[outcome(up, 1000.0), outcome(down, 1000.0), lossy(up), outcome(down, 1000.0)]);
        }
        assert_eq!(widths, [1.0, 2.0, 3.0, 4.0, 5.0, 5.0]);
    }

    #[test]
    fn it_finds_the_capacity_of_a_link_and_stays_near_five_percent_of_loss() {
        for (from, capacity) in [(5, 50.0), (100, 50.0), (49, 50.0)] {
            let mut allegro = taken_over(from);
            for _ in 0..400 {
                turn(&mut allegro, capacity);
            }
            let share = allegro.rate.as_mbps_f64() / capacity;
            assert!((0.9..1.15).contains(&share), "{share} from {from}");
        }
    }

    #[test]
    fn constants_out_of_range_are_refused_and_moved_to_the_nearest_in_range() {
        assert_eq!(AllegroConfig::default().validate(), Ok(()));
        let given = AllegroConfig { epsilon: 2.0, steepness: 50.0, ..AllegroConfig::default() };
        assert_eq!(given.validate().map_err(|error| error.field), Err("epsilon"));
        let moved = AllegroConfig { epsilon: 0.1, max_epsilon: 0.1, ..given };
        assert_eq!(Allegro::new(&given, 0, 0).config, moved);
        let given = AllegroConfig { window_rtts: 0, ..AllegroConfig::default() };
        assert_eq!(Allegro::new(&given, 0, 0).config, AllegroConfig { window_rtts: 1, ..given });
    }
}
