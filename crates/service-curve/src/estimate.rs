//! From probes of several rates to a service curve.

use flowstart_units::Rate;

use crate::{Line, Probability, ProbeConfig, RateProbe, ServiceCurve, Verdict};

/// Why the estimate ends where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All probed rates were accepted: the long-term rate may be higher than the curve's.
    AllAccepted,
    /// This rate is too high. The curve's long-term rate is the largest below it.
    NonStationary(Rate),
    /// At this rate the measurement does not decide. The curve is right but may end too low.
    Undecided(Rate),
}

/// A service curve with all that it was made from.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// Every probe, by rate, also those that do not count.
    pub probes: Vec<RateProbe>,
    /// The curve of the accepted rates below the first that was not.
    pub curve: ServiceCurve,
    /// What came after them.
    pub end: End,
    /// The violation probability of each rate.
    pub epsilon: Probability,
}

impl Estimate {
    /// Joins probes of different rates. As in the paper the first rate that is not accepted ends
    /// the estimate: what lies above it does not count, even if it was probed.
    #[must_use]
    pub fn new(mut probes: Vec<RateProbe>, config: &ProbeConfig) -> Self {
        probes.sort_by_key(|probe| probe.rate);
        let accepted = probes.iter().take_while(|probe| matches!(probe.verdict, Verdict::Accepted(_))).count();
        let end = match probes.get(accepted) {
            None => End::AllAccepted,
            Some(probe) if probe.verdict == Verdict::NonStationary => End::NonStationary(probe.rate),
            Some(probe) => End::Undecided(probe.rate),
        };
        let curve = ServiceCurve::new(&lines(&probes[..accepted], config.epsilon), config.epsilon);
        Self { probes, curve, end, epsilon: config.epsilon }
    }

    /// The probes that the curve is made of.
    #[must_use]
    pub fn accepted(&self) -> &[RateProbe] {
        let count = match self.end {
            End::AllAccepted => self.probes.len(),
            End::NonStationary(rate) | End::Undecided(rate) => self.probes.partition_point(|probe| probe.rate < rate),
        };
        &self.probes[..count]
    }

    /// Probes the rates `step`, 2 `step`, … up to `last` one after the other until one of them is
    /// not accepted.
    ///
    /// # Errors
    /// The first error of `probe`.
    pub fn measure<E>(
        step: Rate,
        last: Rate,
        config: &ProbeConfig,
        mut probe: impl FnMut(Rate) -> Result<RateProbe, E>,
    ) -> Result<Self, E> {
        let mut probes = Vec::new();
        for rate in rates(step, last) {
            let one = probe(rate)?;
            let accepted = matches!(one.verdict, Verdict::Accepted(_));
            probes.push(one);
            if !accepted {
                break;
            }
        }
        Ok(Self::new(probes, config))
    }
}

fn lines(probes: &[RateProbe], epsilon: Probability) -> Vec<Line> {
    probes.iter().filter_map(|probe| probe.line(epsilon)).collect()
}

/// The rates `step`, 2 `step`, … up to `last`; none if `step` is zero.
fn rates(step: Rate, last: Rate) -> impl Iterator<Item = Rate> {
    let count = last.as_bps().checked_div(step.as_bps()).unwrap_or(0);
    (1..=count).map(move |n| Rate::from_bps(step.as_bps() * n))
}
