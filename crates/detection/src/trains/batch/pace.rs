//! When the packets of a long train leave, and what follows trains.

use core::ops::Range;

use flowstart_units::{Span, Time};

use crate::trains::config::TrainProbeConfig;
use crate::trains::side::Side;

/// The pace of a long train.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// So many of its first packets make a queue ...
    pub(super) build: u32,
    /// ... as they leave at these intervals, ...
    pub(super) gap: Span,
    /// ... and the others at these.
    pub(super) steady: Span,
}

impl Pace {
    /// True if lone packets leave behind this one: the last that makes the queue, and every few
    /// behind it.
    pub(super) fn has_lone(&self, config: &TrainProbeConfig, place: u32) -> bool {
        (place + 1).checked_sub(self.build).is_some_and(|behind| behind.is_multiple_of(config.proof_lone))
    }

    /// Plans packets of these places from the time `at` on, with lone packets. Returns when the
    /// next one would leave.
    pub(super) fn plan(
        &self,
        [trains, lone]: [&mut Side; 2],
        config: &TrainProbeConfig,
        mut at: Time,
        places: Range<u32>,
    ) -> Time {
        for place in places {
            trains.plan.push_back((at, 1));
            if self.has_lone(config, place) {
                lone.plan.push_back((at, config.lone));
            }
            at += if place + 1 < self.build { self.gap } else { self.steady };
        }
        at
    }
}

/// Plans what follows the trains that are planned, from the time `at` on; the first one `later` by
/// as much as they are apart. Returns the number of the first packet of connection 1 that only
/// follows.
pub(super) fn follow(
    [trains, lone]: [&mut Side; 2],
    config: &TrainProbeConfig,
    at: Time,
    apart: Span,
    patience: Span,
    later: bool,
) -> u64 {
    let nth = (0..config.followers).map(|nth| nth + u32::from(later));
    trains.plan.extend(nth.map(|nth| (at + apart * u64::from(nth), 1)));
    let ends = lone.sent + lone.plan.iter().map(|(_, count)| u64::from(*count)).sum::<u64>();
    lone.plan.push_back((at + patience, config.lone));
    ends
}
