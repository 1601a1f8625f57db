//! Rates that fade, as those of radio links do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use flowstart_network::{RateSchedule, RateStep};
use flowstart_random::SplitMix64;
use flowstart_units::{Rate, Span, Time};

use super::SpecError;

/// A rate that fades at random: its logarithm is normal, and moments are related the more the
/// closer they are (a Gauss-Markov process). It is drawn for a minute, which then repeats, and does
/// not depend on the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FadingSpec {
    /// Mean rate.
    pub mean: Rate,
    /// Standard deviation of the natural logarithm of the rate, 0 ..= 3; 0.7 is a factor of 2 up or
    /// down.
    pub spread: f64,
    /// After this time the correlation has fallen to 1/e.
    pub correlation: Span,
    /// The rate holds for so long; default 10 ms, at least 1 ms and at most 10 s.
    #[serde(default = "step")]
    pub step: Span,
}

fn step() -> Span {
    FadingSpec::USUAL_STEP
}

/// After this time the rate repeats.
const PERIOD: Span = Span::from_secs(60);

impl FadingSpec {
    /// How long the rate holds unless something else is said.
    pub(super) const USUAL_STEP: Span = Span::from_millis(10);

    /// The schedule of one minute.
    ///
    /// # Errors
    /// One sentence about the first value that is out of range.
    pub(super) fn schedule(&self, seed: u64) -> Result<RateSchedule, SpecError> {
        if self.mean.as_bps() == 0 || self.mean.is_unlimited() {
            return Err(SpecError::new("mean must be a rate above 0 such as \"50 Mbit/s\""));
        }
        if !(0.0..=3.0).contains(&self.spread) {
            return Err(SpecError::new("spread, the standard deviation of the logarithm, must be between 0 and 3"));
        }
        if !(Span::from_millis(1)..=Span::from_secs(10)).contains(&self.step) {
            return Err(SpecError::new("step must be between \"1 ms\" and \"10 s\""));
        }
        if self.correlation.is_zero() {
            return Err(SpecError::new("correlation must be above 0, for instance \"100 ms\""));
        }
        let mut random = SplitMix64::new(seed);
        let kept = libm::exp(-self.step.ratio(self.correlation));
        let fresh = libm::sqrt(1.0 - kept * kept);
        let mut state = random.normal();
        let count = PERIOD.whole(self.step).max(1);
        let mut factors = Vec::with_capacity(count as usize);
        for _ in 0..count {
            factors.push(libm::exp(self.spread * state));
            state = kept * state + fresh * random.normal();
        }
        // Of this minute, not only of all of them, the mean is as it was asked for.
        let mean = factors.iter().sum::<f64>() / count as f64;
        let steps = (0..).zip(&factors).map(|(number, factor)| RateStep {
            at: Time::ZERO + self.step * number,
            rate: Rate::from_bps((self.mean.as_bps() as f64 * factor / mean).max(1.0) as u64),
        });
        Ok(RateSchedule::Steps { steps: steps.collect(), period: Some(self.step * count) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fading_rate_has_its_mean_its_spread_and_its_correlation() {
        let mean = Rate::from_mbps(50);
        let correlation = Span::from_millis(100);
        let fading = FadingSpec { mean, spread: 0.5, correlation, step: Span::from_millis(10) };
        let (mut variances, mut products) = (0.0, 0.0);
        for seed in 0..20 {
            let schedule = fading.schedule(seed).unwrap();
            assert_eq!(schedule.validate(), Ok(()));
            let RateSchedule::Steps { steps, .. } = schedule else { panic!("steps") };
            assert_eq!(steps.len(), 6000);
            let rates: Vec<f64> = steps.iter().map(|step| step.rate.as_bps() as f64 / 5e7).collect();
            assert!((rates.iter().sum::<f64>() / 6000.0 - 1.0).abs() < 1e-6);
            let logs: Vec<f64> = rates.iter().map(|rate| rate.ln()).collect();
            let middle = logs.iter().sum::<f64>() / 6000.0;
            variances += logs.iter().map(|log| (log - middle).powi(2)).sum::<f64>() / 6000.0;
            products += logs.windows(11).map(|w| (w[0] - middle) * (w[10] - middle)).sum::<f64>() / 5990.0;
        }
        assert!(((variances / 20.0).sqrt() - 0.5).abs() < 0.02, "{variances}");
        assert!((products / variances - (-1.0_f64).exp()).abs() < 0.05, "{}", products / variances);
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        let ms = Span::from_millis;
        let right = FadingSpec { mean: Rate::from_mbps(5), spread: 0.5, correlation: ms(100), step: ms(10) };
        for wrong in [
            FadingSpec { mean: Rate::ZERO, ..right },
            FadingSpec { spread: f64::NAN, ..right },
            FadingSpec { correlation: Span::ZERO, ..right },
            FadingSpec { step: Span::ZERO, ..right },
        ] {
            assert!(wrong.schedule(1).is_err(), "{wrong:?}");
        }
        assert!(right.schedule(1).is_ok());
    }
}
