//! PCC Vivace (Dong et al., NSDI 2018): the rate climbs the slope of a utility function that it
//! measures by trying.
//!
//! *Probing*: two pairs of monitor intervals, one of each pair slightly above the rate and one
//! slightly below, in random order. If both pairs agree on the direction, the gradient gives the
//! step. *Moving*: one interval after the other at the new rate; as long as the utility's gradient
//! keeps its sign, further steps follow, else the rate returns to the last one that was better and
//! probing begins anew.
//!
//! Two utilities. The published one is x^0.9 - 900 x dRTT/dt - 11.35 x L. The one without the term
//! for latency is what Bachl, Fabini and Zseby ("Detecting Fair Queuing for Better Congestion
//! Control", 2020) use where a queue is shared: x^0.9 - 11.35 x L, with a milder 1 x L up to 3 % of
//! loss. x is the sending rate measured in Mibit/s, L the share of packets lost. Step sizes are
//! those of their implementation.
//!
//! The state machine begins with the first interval after a start; there is no start phase of its
//! own.

mod step;

use flowstart_control::random::Random;
use flowstart_control::{InRange, InvalidConfig, Ranges, above};
use flowstart_units::Rate;

use super::intervals::{IntervalOutcome, Length};
use super::trials::{Limits, Outcomes, Trials, TriesRates, try_rates};
use crate::AvoidanceConstants;
use step::Step;

/// Bits in a Mibit, the unit of rates in utilities.
const MIBIT: f64 = 1_048_576.0;
/// Weight of latency in the published utility.
const LATENCY_COEFFICIENT: f64 = 900.0;

/// Constants of Vivace. Defaults: utility of NSDI 2018, control of Bachl et al. 2020.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct VivaceConfig {
    /// Length of a monitor interval in smoothed RTTs, above 0 up to 100; default 1.5 (Bachl et al.;
    /// NSDI 2018: 1).
    pub interval_rtts: f64,
    /// Share by which probing is above and below the rate, above 0 and below 1; default 0.05.
    pub epsilon: f64,
    /// Exponent of the rate in the utility, above 0 and below 1; default 0.9.
    pub exponent: f64,
    /// Weight of the share of lost packets times the rate; default 11.35, which tolerates about 5 %
    /// of random loss.
    pub loss_coefficient: f64,
    /// Up to this share of lost packets, 0 ..= 1, the weight is the smaller one; default 0.03
    /// (Bachl et al.).
    pub small_loss: f64,
    /// The smaller weight of loss; default 1 (Bachl et al.).
    pub small_loss_coefficient: f64,
    /// Weight of the growth of the RTT per time, times the rate; default 900 in `vivace` and none
    /// in `vivace_loss`.
    pub latency_coefficient: Option<f64>,
    /// Growth of the RTT per time that counts as noise; default 0.01.
    pub latency_noise: f64,
    /// Step in Mibit/s per unit of the utility's gradient; default 1.
    pub gradient_step: f64,
    /// Steps after a change of direction that count as uncertain, at most; default 2.
    pub max_swing: u32,
    /// Largest step as a share of the rate; default 0.05.
    pub boundary: f64,
    /// By how much that share grows with every step it cuts; default 0.06 (NSDI 2018: 0.1).
    pub boundary_increment: f64,
    /// Smallest step in Mibit/s; default 0.5.
    pub min_step: f64,
    /// Smallest rate in Mibit/s, above 0; default 2.
    pub min_rate: f64,
    /// What a timeout leaves of the rate, above 0 up to 1; default 0.5 (NSDI 2018).
    pub timeout_factor: f64,
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

impl Default for VivaceConfig {
    fn default() -> Self {
        Self {
            interval_rtts: 1.5,
            epsilon: 0.05,
            exponent: 0.9,
            loss_coefficient: 11.35,
            small_loss: 0.03,
            small_loss_coefficient: 1.0,
            latency_coefficient: None,
            latency_noise: 0.01,
            gradient_step: 1.0,
            max_swing: 2,
            boundary: 0.05,
            boundary_increment: 0.06,
            min_step: 0.5,
            min_rate: 2.0,
            timeout_factor: 0.5,
            window_rtts: 2,
            min_window: 4,
            give_up_rtts: 4,
            reordering: 3,
        }
    }
}

impl VivaceConfig {
    fn limits(&self) -> Limits {
        let Self { window_rtts, min_window, give_up_rtts, reordering, .. } = *self;
        Limits { window_rtts, min_window, give_up_rtts, reordering }
    }

    /// Utility of a sending rate in Mibit/s at this loss and growth of the RTT.
    fn utility(&self, rate: f64, loss: f64, gradient: f64) -> f64 {
        let weight = if loss > self.small_loss { self.loss_coefficient } else { self.small_loss_coefficient };
        let latency = self.latency_coefficient.unwrap_or(0.0);
        let gradient = if gradient.abs() < self.latency_noise { 0.0 } else { gradient };
        libm::pow(rate, self.exponent) - latency * rate * gradient - weight * rate * loss
    }
}

impl AvoidanceConstants for VivaceConfig {
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

impl InRange for VivaceConfig {
    fn ranges(&mut self, ranges: &mut Ranges) {
        ranges.of("interval_rtts", &mut self.interval_rtts, above(0.0).up_to(100.0), "above 0 and at most 100");
        ranges.of("epsilon", &mut self.epsilon, above(0.0).below(1.0), "above 0 and below 1");
        ranges.of("exponent", &mut self.exponent, above(0.0).below(1.0), "above 0 and below 1");
        ranges.of("small_loss", &mut self.small_loss, 0.0..=1.0, "between 0 and 1");
        ranges.of("loss_coefficient", &mut self.loss_coefficient, 0.0.., "at least 0");
        ranges.of("small_loss_coefficient", &mut self.small_loss_coefficient, 0.0.., "at least 0");
        if let Some(latency) = &mut self.latency_coefficient {
            ranges.of("latency_coefficient", latency, 0.0.., "at least 0");
        }
        ranges.of("latency_noise", &mut self.latency_noise, 0.0.., "at least 0");
        ranges.of("gradient_step", &mut self.gradient_step, 0.0.., "at least 0");
        ranges.of("boundary", &mut self.boundary, 0.0.., "at least 0");
        ranges.of("boundary_increment", &mut self.boundary_increment, 0.0.., "at least 0");
        ranges.of("min_step", &mut self.min_step, 0.0.., "at least 0");
        ranges.of("min_rate", &mut self.min_rate, above(0.0), "above 0");
        ranges.of("timeout_factor", &mut self.timeout_factor, above(0.0).up_to(1.0), "above 0 and at most 1");
        let give_up = &mut self.give_up_rtts;
        Limits::ranges(ranges, &mut self.window_rtts, &mut self.min_window, give_up, &mut self.reordering);
    }
}

/// A rate that was tried and what it was worth.
#[derive(Clone, Copy, Debug)]
struct Tried {
    rate: Rate,
    sent: f64,
    utility: f64,
}

/// What Vivace does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VivacePhase {
    /// Nothing yet: a start is in charge.
    Waiting,
    /// Tries rates above and below its own.
    Probing,
    /// Goes on in the direction it found.
    Moving,
}

/// PCC Vivace in operation. [`VivaceConfig`] says where its rules come from.
#[derive(Clone, Debug)]
pub struct Vivace {
    config: VivaceConfig,
    trials: Trials,
    random: Random,
    phase: VivacePhase,
    rate: Rate,
    step: Step,
    /// The better of the last rates, to which gradients refer while moving.
    reference: Option<Tried>,
}

impl Vivace {
    /// Vivace with the utility of NSDI 2018 for a flow with segments of `mss` payload bytes. `seed`
    /// sets the order of probes. Constants out of range are moved to the nearest value in range.
    #[must_use]
    pub fn new(config: &VivaceConfig, mss: u32, seed: u64) -> Self {
        let latency_coefficient = config.latency_coefficient.or(Some(LATENCY_COEFFICIENT));
        Self::loss_only(&VivaceConfig { latency_coefficient, ..*config }, mss, seed)
    }

    /// Vivace with a utility of rate and loss (Bachl, Fabini and Zseby 2020); of the growth of the
    /// RTT too if the constants give that a weight, which by default they do not. Constants out of
    /// range are moved to the nearest value in range.
    #[must_use]
    pub fn loss_only(config: &VivaceConfig, mss: u32, seed: u64) -> Self {
        let config = config.in_range();
        Self {
            trials: Trials::new(mss, config.limits()),
            config,
            random: Random::new(seed),
            phase: VivacePhase::Waiting,
            rate: Rate::ZERO,
            step: Step::default(),
            reference: None,
        }
    }

    /// What it does now.
    #[must_use]
    pub fn phase(&self) -> VivacePhase {
        self.phase
    }

    /// The rate around which it probes or at which it moves.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.rate
    }

    fn probe(&mut self) {
        self.phase = VivacePhase::Probing;
        self.reference = None;
        self.trials.probe_around(self.rate, self.config.epsilon, &mut self.random);
    }

    fn tried(&self, outcome: &IntervalOutcome) -> Tried {
        let sent = mibit(outcome.sent);
        Tried { rate: outcome.rate, sent, utility: self.config.utility(sent, outcome.loss, outcome.gradient) }
    }

    fn take_probes(&mut self, outcomes: &Outcomes) {
        let &[Some(a), Some(b), Some(c), Some(d)] = outcomes else { return self.probe() };
        let [first, second] = [(a, b), (c, d)].map(|(x, y)| (self.tried(&x), self.tried(&y)));
        let better = |(x, y): &(Tried, Tried)| if x.utility >= y.utility { *x } else { *y };
        let votes = [better(&first), better(&second)].map(|tried| tried.rate > self.rate);
        if votes[0] != votes[1] {
            return self.probe();
        }
        let gradient = slope(&first.0, &first.1, votes[0]);
        let change = self.step.change(gradient, mibit(self.rate), &self.config);
        self.move_by(change, better(&second));
    }

    fn take_move(&mut self, outcome: &IntervalOutcome) {
        let Some(reference) = self.reference else { return self.probe() };
        let tried = self.tried(outcome);
        let gradient = slope(&tried, &reference, true);
        if !self.step.agrees(gradient) {
            self.rate = reference.rate;
            // The direction is open again, and the step begins from nothing.
            self.step.change(gradient, mibit(self.rate), &self.config);
            return self.probe();
        }
        let change = self.step.change(gradient, mibit(self.rate), &self.config);
        self.move_by(change, tried);
    }

    fn move_by(&mut self, change: f64, reference: Tried) {
        self.phase = VivacePhase::Moving;
        self.reference = Some(reference);
        self.rate = from_mibit(mibit(self.rate) + change);
        self.trials.move_to(self.rate);
    }
}

/// Utility per rate between two that were tried; of the sign `up` if they cannot be told apart.
fn slope(a: &Tried, b: &Tried, up: bool) -> f64 {
    let run = a.sent - b.sent;
    let slope = (a.utility - b.utility) / run;
    match (run.abs() > f64::EPSILON && slope.is_finite(), up) {
        (true, _) => slope,
        (false, true) => f64::MIN_POSITIVE,
        (false, false) => -f64::MIN_POSITIVE,
    }
}

pub(super) fn mibit(rate: Rate) -> f64 {
    rate.as_bps() as f64 / MIBIT
}

pub(super) fn from_mibit(rate: f64) -> Rate {
    Rate::from_bps(libm::round(rate * MIBIT) as u64)
}

try_rates!(Vivace);

impl TriesRates for Vivace {
    fn trials(&self) -> &Trials {
        &self.trials
    }

    fn trials_mut(&mut self) -> &mut Trials {
        &mut self.trials
    }

    fn interval(&self) -> Length {
        Length::of(self.trials.path.srtt.mul_f64(self.config.interval_rtts))
    }

    fn base_rate(&self) -> Option<Rate> {
        (self.phase != VivacePhase::Waiting).then_some(self.rate)
    }

    fn begin(&mut self, rate: Rate) {
        self.rate = rate.max(from_mibit(self.config.min_rate));
        self.step = Step::default();
        self.probe();
    }

    fn decide(&mut self, outcomes: &Outcomes) {
        match self.phase {
            VivacePhase::Waiting => {}
            VivacePhase::Probing => self.take_probes(outcomes),
            VivacePhase::Moving => {
                if let Some(outcome) = &outcomes[0] {
                    self.take_move(outcome);
                }
            }
        }
    }

    fn timeout_factor(&self) -> Option<f64> {
        Some(self.config.timeout_factor)
    }
}

#[cfg(test)]
mod tests;
