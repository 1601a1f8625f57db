//! Processes that pick packets: to lose them or to mark them.

use std::fmt;

use flowstart_random::{Probability, Stream, stream};

/// Which packets are hit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields))]
pub enum LossConfig {
    /// None.
    #[default]
    None,
    /// Each independently with this probability, 0 ..= 1.
    Bernoulli {
        /// Probability.
        probability: f64,
    },
    /// Every `every`-th packet, at least 1; the first one hit is number `every`.
    Periodic {
        /// Period in packets.
        every: u64,
    },
    /// Two states, good and bad (Gilbert 1960, Elliott 1963), parameters in the order of netem's
    /// `loss gemodel`: p, r, 1-h, 1-k.
    GilbertElliott {
        /// p: probability to go from good to bad, per packet.
        to_bad: f64,
        /// r: probability to go from bad to good, per packet.
        to_good: f64,
        /// 1-h: probability to be hit in the bad state.
        hit_in_bad: f64,
        /// 1-k: probability to be hit in the good state.
        hit_in_good: f64,
    },
}

/// Why a process cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossError(String);

impl fmt::Display for LossError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LossError {}

impl LossConfig {
    /// True if nothing is ever hit.
    #[must_use]
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// True if the process draws random numbers.
    #[must_use]
    pub fn is_random(&self) -> bool {
        matches!(self, Self::Bernoulli { .. } | Self::GilbertElliott { .. })
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// A probability outside 0 ..= 1 or a period of 0.
    pub fn validate(&self) -> Result<(), LossError> {
        let probabilities: &[f64] = match self {
            Self::None => &[],
            Self::Periodic { every } if *every == 0 => {
                return Err(LossError("a period of 0 packets makes no sense; 1 hits every packet".to_owned()));
            }
            Self::Periodic { .. } => &[],
            Self::Bernoulli { probability } => &[*probability],
            Self::GilbertElliott { to_bad, to_good, hit_in_bad, hit_in_good } => {
                &[*to_bad, *to_good, *hit_in_bad, *hit_in_good]
            }
        };
        match probabilities.iter().find(|p| !(0.0..=1.0).contains(*p)) {
            Some(p) => Err(LossError(format!("{p} is not a probability; it lies between 0 and 1"))),
            None => Ok(()),
        }
    }
}

/// A process in operation.
#[derive(Clone, Debug)]
pub struct Loss {
    kind: Kind,
    random: Stream,
}

#[derive(Clone, Debug)]
enum Kind {
    None,
    Bernoulli(Probability),
    Periodic {
        every: u64,
        left: u64,
    },
    GilbertElliott {
        bad: bool,
        to_bad: Probability,
        to_good: Probability,
        hit_in_bad: Probability,
        hit_in_good: Probability,
    },
}

impl Loss {
    /// A process with its own random stream.
    #[must_use]
    pub fn new(config: &LossConfig, seed: u64) -> Self {
        let kind = match *config {
            LossConfig::None => Kind::None,
            LossConfig::Bernoulli { probability } => Kind::Bernoulli(Probability::new(probability)),
            LossConfig::Periodic { every } => Kind::Periodic { every: every.max(1), left: every.max(1) },
            LossConfig::GilbertElliott { to_bad, to_good, hit_in_bad, hit_in_good } => Kind::GilbertElliott {
                bad: false,
                to_bad: Probability::new(to_bad),
                to_good: Probability::new(to_good),
                hit_in_bad: Probability::new(hit_in_bad),
                hit_in_good: Probability::new(hit_in_good),
            },
        };
        Self { kind, random: stream(seed) }
    }

    /// True if the next packet is hit.
    #[inline(always)]
    pub fn hits(&mut self) -> bool {
        !matches!(self.kind, Kind::None) && self.draw()
    }

    /// Kept out of line: most links lose nothing.
    #[inline(never)]
    fn draw(&mut self) -> bool {
        let random = &mut self.random;
        match &mut self.kind {
            Kind::None => false,
            Kind::Bernoulli(threshold) => threshold.draw(random),
            Kind::Periodic { every, left } => {
                *left -= 1;
                let hit = *left == 0;
                if hit {
                    *left = *every;
                }
                hit
            }
            Kind::GilbertElliott { bad, to_bad, to_good, hit_in_bad, hit_in_good } => {
                // The packet is judged by the state it finds; the change of state drawn before it
                // holds from the next packet on (netem's order of draws).
                let (change, hit) = if *bad { (to_good, hit_in_bad) } else { (to_bad, hit_in_good) };
                *bad ^= change.draw(random);
                hit.draw(random)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(config: LossConfig, packets: u32) -> f64 {
        let mut loss = Loss::new(&config, 7);
        f64::from((0..packets).map(|_| u32::from(loss.hits())).sum::<u32>()) / f64::from(packets)
    }

    #[test]
    fn bernoulli_hits_its_share_and_is_exact_at_both_ends() {
        assert!((share(LossConfig::Bernoulli { probability: 0.01 }, 1_000_000) - 0.01).abs() < 5e-4);
        assert!(share(LossConfig::Bernoulli { probability: 0.0 }, 10_000) == 0.0);
        assert!((share(LossConfig::Bernoulli { probability: 1.0 }, 10_000) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn periodic_hits_every_nth_packet() {
        let mut loss = Loss::new(&LossConfig::Periodic { every: 3 }, 0);
        let hits: Vec<bool> = (0..7).map(|_| loss.hits()).collect();
        assert_eq!(hits, [false, false, true, false, false, true, false]);
    }

    #[test]
    fn gilbert_elliott_spends_p_over_p_plus_r_in_the_bad_state() {
        let config = LossConfig::GilbertElliott { to_bad: 0.01, to_good: 0.09, hit_in_bad: 1.0, hit_in_good: 0.0 };
        assert!((share(config, 1_000_000) - 0.1).abs() < 5e-3);
    }

    #[test]
    fn bursts_of_gilbert_elliott_last_one_over_r_packets_on_average() {
        let config = LossConfig::GilbertElliott { to_bad: 0.01, to_good: 0.25, hit_in_bad: 1.0, hit_in_good: 0.0 };
        let mut loss = Loss::new(&config, 3);
        let hits: Vec<bool> = (0..1_000_000).map(|_| loss.hits()).collect();
        let bursts = hits.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let lost = hits.iter().filter(|hit| **hit).count();
        let mean = lost as f64 / bursts as f64;
        assert!((mean - 4.0).abs() < 0.1, "{mean}");
    }

    #[test]
    fn the_first_packet_is_judged_in_the_good_state() {
        let config = LossConfig::GilbertElliott { to_bad: 1.0, to_good: 1.0, hit_in_bad: 1.0, hit_in_good: 0.0 };
        let mut loss = Loss::new(&config, 3);
        let hits: Vec<bool> = (0..4).map(|_| loss.hits()).collect();
        assert_eq!(hits, [false, true, false, true]);
    }

    /// Written down when the processes were defined; results of old versions depend on it.
    #[test]
    fn the_same_seed_hits_the_same_packets_in_every_version() {
        let mut loss = Loss::new(&LossConfig::Bernoulli { probability: 0.1 }, 1);
        let hits: Vec<usize> = (0..60).filter(|_| loss.hits()).collect();
        assert_eq!(hits, FIRST_HITS_OF_SEED_1);
    }

    const FIRST_HITS_OF_SEED_1: [usize; 9] = [10, 11, 12, 26, 29, 43, 47, 53, 55];

    #[test]
    fn what_is_no_probability_is_refused() {
        assert!(LossConfig::Bernoulli { probability: 1.5 }.validate().is_err());
        assert!(LossConfig::Bernoulli { probability: f64::NAN }.validate().is_err());
        assert!(LossConfig::Periodic { every: 0 }.validate().is_err());
    }
}
