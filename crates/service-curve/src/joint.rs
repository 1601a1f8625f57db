//! One violation probability for all rates together, without the union bound.

use flowstart_units::{Rate, Span};

use crate::stats::{upper_quantile, upper_rank};
use crate::{Error, Line, Probability, ServiceCurve};

/// A service curve calibrated on replicas in which all rates met the same random service.
#[derive(Clone, Debug, PartialEq)]
pub struct Joint {
    /// The curve; its [`epsilon`](ServiceCurve::epsilon) is the fraction of replicas in which any
    /// rate exceeded its quantile.
    pub curve: ServiceCurve,
    /// The probability epsilon' that each rate by itself may use.
    pub per_rate: Probability,
    /// How much more that is than the union bound allows, epsilon / number of rates: between 1
    /// (nothing gained) and the number of rates (all rates violated together or not at all).
    pub tightness: f64,
}

/// Finds the largest epsilon', the same for all rates, with which at most a fraction `epsilon` of
/// the replicas violates the quantile of *any* rate. `delays`: for every replica the delay of a
/// steady-state probe at each of the `rates`, under the same loss or marking (the same seed).
/// Delays of one path at different rates depend strongly on one another, so that the union bound
/// wastes most of epsilon.
///
/// Calibrated in the sample: it needs many more than rates / `epsilon` replicas to mean something.
///
/// # Errors
/// [`Error::TooFew`] without replicas, [`Error::UnequalReplicas`] if one does not have a delay for
/// every rate.
pub fn calibrate_jointly(rates: &[Rate], delays: &[Vec<Span>], epsilon: Probability) -> Result<Joint, Error> {
    let count = delays.len();
    let Some(largest) = upper_rank(count, Probability::ZERO) else { return Err(Error::TooFew(0, 1)) };
    if let Some((which, wrong)) = delays.iter().enumerate().find(|(_, one)| one.len() != rates.len()) {
        return Err(Error::UnequalReplicas(which, wrong.len(), rates.len()));
    }
    let columns: Vec<Vec<Span>> = (0..rates.len())
        .map(|rate| {
            let mut column: Vec<Span> = delays.iter().map(|replica| replica[rate]).collect();
            column.sort_unstable();
            column
        })
        .collect();
    let violated = |rank: usize| {
        let any = |replica: &&Vec<Span>| replica.iter().zip(&columns).any(|(delay, column)| *delay > column[rank - 1]);
        Probability::of(delays.iter().filter(any).count(), count)
    };
    // The smallest rank that is good enough; the largest always is. No rate may fail more often
    // than all together, even if delays are so alike that none of them is above any other.
    let (mut low, mut high) = (upper_rank(count, epsilon).unwrap_or(largest), largest);
    while low < high {
        let middle = low.midpoint(high);
        if violated(middle) <= epsilon { high = middle } else { low = middle + 1 }
    }
    let per_rate = Probability::of(count - high, count);
    let line = |(rate, column): (&Rate, &Vec<Span>)| {
        Some(Line { rate: *rate, delay: upper_quantile(&mut column.clone(), per_rate)? })
    };
    let lines: Vec<Line> = rates.iter().zip(&columns).filter_map(line).collect();
    let union = epsilon.divided_by(rates.len()).get();
    Ok(Joint {
        curve: ServiceCurve::new(&lines, per_rate).with_epsilon(violated(high)),
        per_rate,
        tightness: if union > 0.0 { per_rate.get() / union } else { 1.0 },
    })
}
