//! Is a series stationary? The test of Elliott, Rothenberg and Stock ("Efficient tests for an
//! autoregressive unit root", Econometrica 64(4), 1996) in its DF-GLS form: Dickey and Fuller's
//! test after the mean has been removed as if the root were nearly 1.
//!
//! The null hypothesis is a unit root. A statistic *below* the critical value rejects it: the
//! series counts as stationary.

use super::cholesky::{Factor, dot};
use super::{Degenerate, Series, normal};

/// What is removed from the series before the test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trend {
    /// A constant. The right choice for delays.
    #[default]
    Constant,
    /// A constant and a straight line. Calls the delay of an overloaded path, which grows like a
    /// line, stationary.
    ConstantAndTime,
}

/// How many lagged differences enter the regression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LagChoice {
    /// This many.
    Fixed(usize),
    /// The number with the smallest Akaike criterion.
    Aic,
    /// The number with the smallest Bayes criterion. The default: long lags cost power, and thinned
    /// delays need none.
    #[default]
    Bic,
    /// The longest lag whose coefficient differs from zero at 10 % (two-sided, normal).
    TStatistic,
}

/// A significance level with tabulated critical values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// 1 %.
    One,
    /// 5 %.
    #[default]
    Five,
    /// 10 %.
    Ten,
}

/// How [`dfgls`] tests. The paper names neither the variant nor the lag rule; these are the choices
/// of this crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DfGlsConfig {
    /// What is removed before the test; default a constant.
    pub trend: Trend,
    /// How the number of lags is chosen; default Bayes criterion.
    pub lags: LagChoice,
    /// The largest number of lags that is considered; default ceil(12 (n/100)^(1/4)), 20 for n =
    /// 750 (Schwert 1989).
    pub max_lags: Option<usize>,
}

/// Critical values for the number of observations at hand (response surfaces as in the `arch`
/// package, version 8.0).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CriticalValues {
    /// At 1 %.
    pub one: f64,
    /// At 5 %.
    pub five: f64,
    /// At 10 %.
    pub ten: f64,
}

impl CriticalValues {
    /// The value at `level`.
    #[must_use]
    pub fn at(&self, level: Level) -> f64 {
        match level {
            Level::One => self.one,
            Level::Five => self.five,
            Level::Ten => self.ten,
        }
    }
}

/// What [`dfgls`] found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DfGls {
    /// The t-ratio of the coefficient of the lagged level; if the regression leaves no residual,
    /// infinite or (a straight line) zero; never NaN.
    pub statistic: f64,
    /// The approximate probability of a smaller statistic if there is a unit root.
    pub p_value: f64,
    /// Lagged differences in the regression.
    pub lags: usize,
    /// Observations of the regression: samples - 1 - lags.
    pub observations: usize,
    /// Critical values for so many observations.
    pub critical: CriticalValues,
}

impl DfGls {
    /// The unit root is rejected at `level`: the series counts as stationary.
    #[must_use]
    pub fn is_stationary(&self, level: Level) -> bool {
        self.statistic < self.critical.at(level)
    }
}

/// Fewer samples than this are not tested: the response surfaces of the critical values mean
/// nothing there.
pub const MIN_SAMPLES: usize = 10;

/// A coefficient that explains less than this fraction of a perfectly explained series is zero.
const ROUNDING: f64 = 1e-9;

/// What belongs to a trend: c of the local alternative 1 + c/n, coefficients of the critical values
/// in powers of 1/observations, and the approximate distribution.
struct Tables {
    c: f64,
    one: [f64; 4],
    five: [f64; 4],
    ten: [f64; 4],
    /// The normal argument as a polynomial of the statistic, up to and above `split`.
    low: [f64; 3],
    high: [f64; 4],
    split: f64,
    smallest: f64,
    largest: f64,
}

/// Elliott, Rothenberg and Stock give c; the response surfaces are those of the `arch` package
/// (NCSA licence), by simulation.
const CONSTANT: Tables = Tables {
    c: -7.0,
    one: [-2.567_817_93, -20.557_539_2, 182.727_674, -1_778.666_64],
    five: [-1.943_633_25, -21.727_274_6, 260.815_068, -2_269.149_16],
    ten: [-1.619_982_41, -23.273_470_8, 306.474_378, -2_574.835_57],
    low: [0.674_227_39, 1.254_758_26, 0.035_725_09],
    high: [0.506_124_97, 0.983_056_64, -0.056_485_25, 0.001_408_75],
    split: -0.479_507_609_171_467_4,
    smallest: -17.561_302_895_074_206,
    largest: 13.365_361_509_140_614,
};

const LINE: Tables = Tables {
    c: -13.5,
    one: [-3.406_891_34, -21.699_712_42, 27.262_959_39, -816.844_047_72],
    five: [-2.846_771_78, -19.691_093_64, 84.766_413_6, -799.407_224_01],
    ten: [-2.558_907_07, -19.426_219_91, 116.537_597_52, -840.313_428_47],
    low: [2.387_676_85, 1.574_547_37, 0.057_544_39],
    high: [2.605_614_21, 1.678_502_24, 0.037_359_9, -0.010_179_36],
    split: -2.196_040_436_540_13,
    smallest: -13.681_153_542_634_465,
    largest: 8.737_433_837_283_56,
};

fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

impl Tables {
    fn critical(&self, observations: usize) -> CriticalValues {
        let x = 1.0 / observations as f64;
        CriticalValues { one: polynomial(&self.one, x), five: polynomial(&self.five, x), ten: polynomial(&self.ten, x) }
    }

    fn p_value(&self, statistic: f64) -> f64 {
        if statistic > self.largest {
            1.0
        } else if statistic < self.smallest {
            0.0
        } else if statistic <= self.split {
            normal::cumulative(polynomial(&self.low, statistic))
        } else {
            normal::cumulative(polynomial(&self.high, statistic))
        }
    }
}

/// Tests `series` for a unit root.
///
/// # Errors
/// [`Degenerate`]: fewer than [`MIN_SAMPLES`] values or too few for the lags, all values equal, or
///                 lags that depend on one another.
pub fn dfgls(series: &Series, config: &DfGlsConfig) -> Result<DfGls, Degenerate> {
    let y = series.values();
    let n = y.len();
    let fixed = if let LagChoice::Fixed(lags) = config.lags { lags } else { 0 };
    let need = fixed.saturating_mul(2).saturating_add(3).max(MIN_SAMPLES);
    if n < need {
        return Err(Degenerate::TooFew(n, need));
    }
    if y.iter().all(|x| *x == y[0]) {
        return Err(Degenerate::Constant);
    }
    let tables = match config.trend {
        Trend::Constant => &CONSTANT,
        Trend::ConstantAndTime => &LINE,
    };
    let lags = match config.lags {
        LagChoice::Fixed(lags) => lags,
        choice => select_lags(&detrend(y, config.trend, 0.0), config, choice),
    };
    let level = detrend(y, config.trend, 1.0 + tables.c / n as f64);
    let differences: Vec<f64> = level.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let regression = Regression::new(&level, &differences, lags);
    let factor = Factor::new(&regression.columns, regression.y);
    if factor.rank() == 0 {
        return Err(Degenerate::Constant);
    }
    if factor.rank() <= lags {
        return Err(Degenerate::Singular(lags));
    }
    let coefficients = factor.coefficients();
    let observations = regression.y.len();
    let residual = regression.residual(&coefficients);
    let freedom = (observations - lags - 1) as f64;
    let error = (residual / freedom * factor.first_inverse_diagonal()).sqrt();
    // What rounding leaves of a perfect fit is no residual.
    let perfect = residual <= f64::EPSILON * f64::EPSILON * dot(regression.y, regression.y) * observations as f64;
    let pull = coefficients[0].abs() * dot(regression.columns[0], regression.columns[0]).sqrt();
    let statistic = match coefficients[0] / error {
        // A line without noise: the lags explain all of it, and what is left for the level is
        // rounding.
        _ if perfect && pull <= dot(regression.y, regression.y).sqrt() * ROUNDING => 0.0,
        _ if perfect => f64::INFINITY.copysign(coefficients[0]),
        t if t.is_nan() => return Err(Degenerate::Singular(lags)),
        t => t,
    };
    Ok(DfGls {
        statistic,
        p_value: tables.p_value(statistic),
        lags,
        observations,
        critical: tables.critical(observations),
    })
}

/// The series without its trend, which is estimated by least squares after x_t - `root` x_{t-1};
/// `root` 0 is ordinary least squares.
fn detrend(y: &[f64], trend: Trend, root: f64) -> Vec<f64> {
    let quasi = |x: &dyn Fn(usize) -> f64| -> Vec<f64> {
        (0..y.len()).map(|t| if t == 0 { x(0) } else { x(t) - root * x(t - 1) }).collect()
    };
    let time = |t: usize| (t + 1) as f64;
    let (ones, target) = (quasi(&|_| 1.0), quasi(&|t| y[t]));
    let line = match trend {
        Trend::Constant => None,
        Trend::ConstantAndTime => Some(quasi(&time)),
    };
    let columns: Vec<&[f64]> = std::iter::once(&ones[..]).chain(line.as_deref()).collect();
    let coefficients = Factor::new(&columns, &target).coefficients();
    let constant = coefficients.first().copied().unwrap_or(0.0);
    let slope = coefficients.get(1).copied().unwrap_or(0.0);
    y.iter().enumerate().map(|(t, value)| value - constant - slope * time(t)).collect()
}

/// Differences regressed on the lagged level and lagged differences, without a constant.
struct Regression<'a> {
    /// The lagged level, then the differences 1, 2, … lags ago.
    columns: Vec<&'a [f64]>,
    y: &'a [f64],
}

impl<'a> Regression<'a> {
    fn new(level: &'a [f64], differences: &'a [f64], lags: usize) -> Self {
        let count = differences.len() - lags;
        let mut columns = vec![&level[lags..lags + count]];
        columns.extend((1..=lags).map(|lag| &differences[lags - lag..lags - lag + count]));
        Self { columns, y: &differences[lags..] }
    }

    fn residual(&self, coefficients: &[f64]) -> f64 {
        let mut rest = self.y.to_vec();
        for (column, coefficient) in self.columns.iter().zip(coefficients) {
            for (value, x) in rest.iter_mut().zip(*column) {
                *value -= coefficient * x;
            }
        }
        dot(&rest, &rest)
    }
}

/// Chooses the number of lags on the series detrended by ordinary least squares (Perron and Qu, "A
/// simple modification to improve the finite sample properties of Ng and Perron's unit root tests",
/// 2007), all candidates on the same observations.
fn select_lags(level: &[f64], config: &DfGlsConfig, choice: LagChoice) -> usize {
    let n = level.len();
    let rule = libm::ceil(12.0 * libm::pow(n as f64 / 100.0, 0.25)) as usize;
    let max = config.max_lags.unwrap_or(rule).min((n / 2).saturating_sub(2));
    let differences: Vec<f64> = level.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let regression = Regression::new(level, &differences, max);
    let factor = Factor::new(&regression.columns, regression.y);
    let residuals = factor.residuals();
    let observations = regression.y.len() as f64;
    // The two-sided 10 % point of the normal distribution.
    const SIGNIFICANT: f64 = 1.644_853_626_951_472_2;
    let penalty = match choice {
        LagChoice::TStatistic => {
            let significant = |&lag: &usize| {
                let sigma = (residuals[lag] / observations).sqrt();
                factor.projected()[lag].abs() >= SIGNIFICANT * sigma
            };
            return (1..residuals.len()).rev().find(significant).unwrap_or(0);
        }
        LagChoice::Bic => libm::log(observations),
        LagChoice::Aic | LagChoice::Fixed(_) => 2.0,
    };
    let mut best = (f64::INFINITY, 0);
    for (lag, residual) in residuals.iter().enumerate() {
        let criterion = observations * libm::log(residual / observations) + penalty * lag as f64;
        if criterion < best.0 {
            best = (criterion, lag);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::SplitMix64;

    fn test(values: Vec<f64>) -> Result<DfGls, Degenerate> {
        dfgls(&Series::new(values).unwrap(), &DfGlsConfig::default())
    }

    #[test]
    fn critical_values_for_750_samples_are_those_of_the_literature() {
        let critical = CONSTANT.critical(750);
        for (value, expected) in [(critical.one, -2.595), (critical.five, -1.972), (critical.ten, -1.650)] {
            assert!((value - expected).abs() < 5e-4, "{value}");
        }
    }

    #[test]
    fn independent_values_are_stationary_and_a_queue_that_grows_is_not() {
        let mut random = SplitMix64::new(4);
        let noise: Vec<f64> = (0..750).map(|_| random.unit()).collect();
        assert!(test(noise.clone()).unwrap().is_stationary(Level::One));
        let growing = noise.iter().enumerate().map(|(t, e)| t as f64 + 10.0 * e).collect();
        let growing = test(growing).unwrap();
        assert!(!growing.is_stationary(Level::Ten), "{growing:?}");
        assert!(growing.statistic > 0.0);
    }

    #[test]
    fn degenerate_series_have_defined_answers() {
        assert_eq!(test(vec![]), Err(Degenerate::TooFew(0, MIN_SAMPLES)));
        assert_eq!(test(vec![1.0; 9]), Err(Degenerate::TooFew(9, MIN_SAMPLES)));
        assert_eq!(test(vec![0.005; 750]), Err(Degenerate::Constant));
        // A straight line without noise: not stationary.
        let line = test((0..750).map(f64::from).collect()).unwrap();
        assert!(!line.is_stationary(Level::Ten), "{line:?}");
        let lags = DfGlsConfig { lags: LagChoice::Fixed(usize::MAX), ..DfGlsConfig::default() };
        assert!(matches!(dfgls(&Series::new(vec![1.0; 50]).unwrap(), &lags), Err(Degenerate::TooFew(50, _))));
    }
}
