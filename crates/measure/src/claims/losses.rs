//! What is dropped, marked and repaired.

use schemars::JsonSchema;
use serde::Deserialize;

use flowstart_units::Span;

use super::item::{Asks, ScenarioMeasure};
use super::run::{ScenarioRun, sum_within, time_dimension};
use crate::egress::Egress;
use crate::quantity::{Bound, Dimension, Measured};

/// Drops within this many base RTTs are one episode: a loss is known after one and repaired after
/// two.
const EPISODE_RTTS: u64 = 2;

/// Data packets dropped at a link.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drops {
    /// Where.
    link: Option<String>,
    /// From this time on.
    from: Option<Span>,
    /// Up to this time.
    until: Option<Span>,
}

impl ScenarioMeasure for Drops {
    fn dimension(&self) -> Dimension {
        Dimension::Plain
    }

    fn asks(&self) -> Asks<'_> {
        Asks::default().link(self.link.as_ref()).window(self.from, self.until)
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        let (from, until) = run.window(self.from, self.until);
        Some(Measured::exact(sum_within(run.link(self.link.as_deref())?.drops(), from, until)))
    }
}

/// Data packets that left a link with a congestion mark.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Marks {
    /// Where.
    link: Option<String>,
    /// From this time on.
    from: Option<Span>,
    /// Up to this time.
    until: Option<Span>,
}

impl ScenarioMeasure for Marks {
    fn dimension(&self) -> Dimension {
        Dimension::Plain
    }

    fn asks(&self) -> Asks<'_> {
        Asks::default().link(self.link.as_ref()).window(self.from, self.until)
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        let (from, until) = run.window(self.from, self.until);
        Some(Measured::exact(sum_within(&run.link(self.link.as_deref())?.series()?.marks, from, until)))
    }
}

/// Mean time between two episodes of drops; drops within two base RTTs are one episode.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropInterval {
    /// Where.
    link: Option<String>,
    /// From this time on.
    from: Option<Span>,
    /// Up to this time.
    until: Option<Span>,
    /// Count in base RTTs instead of seconds.
    #[serde(default)]
    rtts: bool,
}

impl ScenarioMeasure for DropInterval {
    fn dimension(&self) -> Dimension {
        time_dimension(self.rtts)
    }

    fn asks(&self) -> Asks<'_> {
        Asks::default().link(self.link.as_ref()).window(self.from, self.until).rtt(true)
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        let (from, until) = run.window(self.from, self.until);
        let episodes = episodes(run.link(self.link.as_deref())?.drops(), from, until, run.rtt * EPISODE_RTTS);
        let (first, last) = (episodes.first()?, episodes.last()?);
        if episodes.len() < 2 {
            // One episode: the interval is at least what is left on either side.
            let side = (*first - from).max(until - *first).as_secs_f64();
            return Some(Measured { value: run.time(side, self.rtts), bound: Bound::AtLeast });
        }
        let mean = (*last - *first).as_secs_f64() / (episodes.len() - 1) as f64;
        Some(Measured::exact(run.time(mean, self.rtts)))
    }
}

/// Data packets of a flow dropped on the way that had left before its start ended or within two
/// smoothed round trips after that, those of its second connection included.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropsInStart {
    /// Whose.
    flow: Option<String>,
}

impl ScenarioMeasure for DropsInStart {
    fn dimension(&self) -> Dimension {
        Dimension::Plain
    }

    fn asks(&self) -> Asks<'_> {
        Asks::flow(self.flow.as_ref())
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        run.sum(self.flow.as_deref(), |flow| flow.dropped_in_start)
    }
}

/// Retransmissions in the whole run.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retransmissions {
    /// Whose.
    flow: Option<String>,
}

impl ScenarioMeasure for Retransmissions {
    fn dimension(&self) -> Dimension {
        Dimension::Plain
    }

    fn asks(&self) -> Asks<'_> {
        Asks::flow(self.flow.as_ref())
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        run.sum(self.flow.as_deref(), |flow| flow.retransmitted)
    }
}

/// Retransmission timeouts in the whole run.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timeouts {
    /// Whose.
    flow: Option<String>,
}

impl ScenarioMeasure for Timeouts {
    fn dimension(&self) -> Dimension {
        Dimension::Plain
    }

    fn asks(&self) -> Asks<'_> {
        Asks::flow(self.flow.as_ref())
    }

    fn value(&self, run: &ScenarioRun<'_>) -> Option<Measured> {
        run.sum(self.flow.as_deref(), |flow| flow.timeouts)
    }
}

/// When episodes of drops began.
fn episodes(drops: &Egress, from: Span, until: Span, apart: Span) -> Vec<Span> {
    let mut begins: Vec<Span> = Vec::new();
    let mut last: Option<Span> = None;
    for (index, count) in drops.bytes().iter().enumerate().filter(|(_, count)| **count > 0) {
        let at = drops.bin() * index as u64;
        if *count == 0 || at < from || at >= until {
            continue;
        }
        if last.is_none_or(|last| at - last > apart) {
            begins.push(at);
        }
        last = Some(at);
    }
    begins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_close_together_are_one_episode() {
        let mut drops = Egress::new(Span::from_millis(1), Span::from_secs(1), 1000);
        for at in [100, 110, 130, 500, 900, 905] {
            drops.add(Span::from_millis(at), 1);
        }
        let begins = episodes(&drops, Span::ZERO, Span::from_secs(1), Span::from_millis(40));
        assert_eq!(begins, [100, 500, 900].map(Span::from_millis));
    }
}
