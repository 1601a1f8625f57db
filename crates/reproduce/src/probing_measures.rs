//! Measures by probing: each is one type with its parameters, its words and its function, and one
//! line of the registry in `measure.rs`.

use schemars::JsonSchema;
use serde::Deserialize;

use flowstart_measure::{Bound, Dimension, Measured, Statistic};
use flowstart_probing::Part;
use flowstart_service_curve::{End, Probability};
use flowstart_units::{Rate, Span};

use super::attained::Attained;

/// A measure by probing. The type that has it holds the parameters and describes them.
pub(super) trait ProbingMeasure {
    /// What its value is measured in.
    fn dimension(&self) -> Dimension;

    /// The probing rate it names.
    fn rate(&self) -> Option<Rate> {
        None
    }

    /// True if a film must be sent through a loop many times.
    fn replays(&self) -> bool {
        false
    }

    /// The value; `None` if there is nothing to measure, for instance at a rate above the
    /// attainable ones.
    fn value(&self, attained: &Attained) -> Option<Measured>;
}

/// By probing: the mean rate that an interval of this length has at least, payload.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttainableRate {
    /// Length of the interval.
    over: Span,
}

impl ProbingMeasure for AttainableRate {
    fn dimension(&self) -> Dimension {
        Dimension::Rate
    }

    fn value(&self, attained: &Attained) -> Option<Measured> {
        Some(Measured::exact(attained.estimate.curve.attainable_rate(self.over)))
    }
}

/// By probing: the largest rate that was accepted, payload; at least that if the next one was not
/// refused for being too high.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LongTermRate {}

impl ProbingMeasure for LongTermRate {
    fn dimension(&self) -> Dimension {
        Dimension::Rate
    }

    fn value(&self, attained: &Attained) -> Option<Measured> {
        let value = attained.estimate.curve.long_term_rate().as_bps() as f64;
        let bound = match attained.estimate.end {
            End::NonStationary(_) => Bound::Exact,
            End::AllAccepted | End::Undecided(_) => Bound::AtLeast,
        };
        Some(Measured { value, bound })
    }
}

/// By probing: the shortest interval that has anything guaranteed.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceOrigin {}

impl ProbingMeasure for ServiceOrigin {
    fn dimension(&self) -> Dimension {
        Dimension::Time
    }

    fn value(&self, attained: &Attained) -> Option<Measured> {
        Some(Measured::exact(attained.estimate.curve.origin()?.as_secs_f64()))
    }
}

/// By probing: the shortest interval that has this share of the long-term rate.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimeToShare {
    /// The share, 0 to below 1.
    share: f64,
}

impl ProbingMeasure for TimeToShare {
    fn dimension(&self) -> Dimension {
        Dimension::Time
    }

    fn value(&self, attained: &Attained) -> Option<Measured> {
        Some(Measured::exact(attained.estimate.curve.time_to_fraction(self.share)?.as_secs_f64()))
    }
}

/// By probing: delay of messages at one of the rates.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageDelay {
    /// The probing rate.
    rate: Rate,
    /// Which part of it; a loop has only the total.
    #[serde(default)]
    part: Part,
    /// Over all messages after the warm-up.
    statistic: Statistic,
}

impl ProbingMeasure for MessageDelay {
    fn dimension(&self) -> Dimension {
        Dimension::Time
    }

    fn rate(&self) -> Option<Rate> {
        Some(self.rate)
    }

    fn value(&self, attained: &Attained) -> Option<Measured> {
        let delays = attained.delays(self.rate, self.part)?;
        let value = match self.statistic {
            Statistic::Mean => delays.mean()?,
            Statistic::Quantile(p) => delays.upper_quantile(Probability::new(1.0 - p).ok()?)?.as_secs_f64(),
        };
        Some(Measured::exact(value))
    }
}

/// By probing: how much longer a delay is at a tenth of the probability, in the mean over the tail
/// between two percentiles: the less, the faster the tail decays.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayDecay {
    /// The probing rate.
    rate: Rate,
    /// Which part of the delay.
    #[serde(default)]
    part: Part,
    /// Divided by that of this part.
    than: Option<Part>,
    /// Where the tail begins, a percentile.
    from: Statistic,
    /// Where it ends, a larger one, below 100.
    until: Statistic,
}

impl DelayDecay {
    /// Seconds per factor of ten.
    fn of(&self, attained: &Attained, part: Part) -> Option<f64> {
        let (Statistic::Quantile(from), Statistic::Quantile(until)) = (self.from, self.until) else { return None };
        let delays = attained.delays(self.rate, part)?;
        let at = |p: f64| Some(delays.upper_quantile(Probability::new(1.0 - p).ok()?)?.as_secs_f64());
        let decades = libm::log10((1.0 - from) / (1.0 - until));
        (decades.is_finite() && decades > 0.0).then_some((at(until)? - at(from)?) / decades)
    }
}

impl ProbingMeasure for DelayDecay {
    fn dimension(&self) -> Dimension {
        if self.than.is_some() { Dimension::Plain } else { Dimension::Time }
    }

    fn rate(&self) -> Option<Rate> {
        Some(self.rate)
    }

    fn value(&self, attained: &Attained) -> Option<Measured> {
        let own = self.of(attained, self.part)?;
        let Some(than) = self.than else { return Some(Measured::exact(own)) };
        let other = self.of(attained, than)?;
        (other > 0.0).then(|| Measured::exact(own / other))
    }
}

/// By probing: the share of messages whose delay is longer than this.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayShare {
    /// The probing rate.
    rate: Rate,
    /// Which part of the delay.
    #[serde(default)]
    part: Part,
    /// Longer than this.
    above: Span,
}

impl ProbingMeasure for DelayShare {
    fn dimension(&self) -> Dimension {
        Dimension::Share
    }

    fn rate(&self) -> Option<Rate> {
        Some(self.rate)
    }

    fn value(&self, attained: &Attained) -> Option<Measured> {
        Some(Measured::exact(attained.delays(self.rate, self.part)?.fraction_above(self.above).get()))
    }
}

/// By probing: autocorrelation of the congestion window.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowCorrelation {
    /// The probing rate.
    rate: Rate,
    /// The lag.
    lag: Span,
}

impl ProbingMeasure for WindowCorrelation {
    fn dimension(&self) -> Dimension {
        Dimension::Plain
    }

    fn rate(&self) -> Option<Rate> {
        Some(self.rate)
    }

    fn value(&self, attained: &Attained) -> Option<Measured> {
        Some(Measured::exact(attained.correlation(self.rate, self.lag)?.last()?[1]))
    }
}

/// By probing: the lag at which the autocorrelation of the congestion window is largest.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CorrelationPeak {
    /// The probing rate.
    rate: Rate,
    /// Lags from here.
    from: Span,
    /// Up to here.
    until: Span,
}

impl ProbingMeasure for CorrelationPeak {
    fn dimension(&self) -> Dimension {
        Dimension::Time
    }

    fn rate(&self) -> Option<Rate> {
        Some(self.rate)
    }

    fn value(&self, attained: &Attained) -> Option<Measured> {
        let all = attained.correlation(self.rate, self.until)?;
        let after = all.iter().filter(|point| point[0] >= self.from.as_secs_f64());
        Some(Measured::exact(after.max_by(|a, b| a[1].total_cmp(&b[1]))?[0]))
    }
}

/// By probing a loop: the share of a film's packets that exceeded their delay bound more often than
/// the curve promises, over many replays.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilmViolations {}

impl ProbingMeasure for FilmViolations {
    fn dimension(&self) -> Dimension {
        Dimension::Share
    }

    fn replays(&self) -> bool {
        true
    }

    fn value(&self, attained: &Attained) -> Option<Measured> {
        Some(Measured::exact(attained.replay.as_ref()?.violated().get()))
    }
}

/// By probing a loop: the mean delay bound of a film's packets over the mean of what they met with
/// the probability that the curve promises.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilmLooseness {}

impl ProbingMeasure for FilmLooseness {
    fn dimension(&self) -> Dimension {
        Dimension::Plain
    }

    fn replays(&self) -> bool {
        true
    }

    fn value(&self, attained: &Attained) -> Option<Measured> {
        Some(Measured::exact(attained.replay.as_ref()?.looseness()))
    }
}

/// By probing: the delay that frames of a synthetic film exceed at most with the curve's
/// probability.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilmBound {
    /// Over the frames.
    statistic: Statistic,
}

impl ProbingMeasure for FilmBound {
    fn dimension(&self) -> Dimension {
        Dimension::Time
    }

    fn value(&self, attained: &Attained) -> Option<Measured> {
        self.statistic.of(&mut attained.film_bounds()?).map(Measured::exact)
    }
}
