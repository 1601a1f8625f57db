//! What a transfer teaches about its path (the observing phase of Careful Resume, RFC 9959).

use std::collections::VecDeque;

use flowstart_congestion::start::careful_resume::ResumePhase;
use flowstart_congestion::{Controller, InvalidConfig, Start};
use flowstart_units::{Span, Time};
use serde::{Deserialize, Serialize};

use crate::ledger::Ledger;

/// What a sender saw of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observed {
    /// Bytes of packets that arrived in one round trip, without headers of IP and UDP
    /// (`saved_cwnd`).
    pub bytes: u64,
    /// Smallest RTT in nanoseconds (`saved_rtt`).
    pub rtt: u64,
}

/// What a transfer taught about the path to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lesson {
    /// It left its start, took a jump back, or had a queue of its own that stood, so this is what
    /// the path carries; `None` if that is little.
    Path(Option<Observed>),
    /// It ended before: the path carries so much at least.
    AtLeast(Observed),
    /// It was too small to say anything.
    Nothing,
}

/// Constants of what a transfer teaches about its path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LearningConfig {
    /// The last round trips whose volumes count, 1 ..= 1000; default 16. (own choice: RFC 9959
    /// section 3.1 leaves open how a sender observes)
    pub rounds: usize,
    /// Initial windows that a path must have carried at least to be worth remembering, up to
    /// 1,000,000; default 4 (RFC 9959).
    pub least_windows: u32,
    /// Round trips in which a queue must have stood until what arrived in them counts as what the
    /// path carries, 2 ..= `rounds`; default 4. (own choice: a start that doubles has sixteen times
    /// as much after four)
    pub standing: usize,
    /// What arrived in the later half of those is at most so many times what arrived in the earlier
    /// half, at most in a round trip each, 1 ..= 1000; default 1.25. (what BBR calls a pipe that is
    /// not full yet grows more, draft-ietf-ccwg-bbr section 5.3.1.2)
    pub growth: f64,
}

impl Default for LearningConfig {
    fn default() -> Self {
        Self { rounds: 16, least_windows: 4, standing: 4, growth: 1.25 }
    }
}

impl LearningConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// Which field must be what.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let check = InvalidConfig::unless;
        check((1..=1000).contains(&self.rounds), "rounds", "between 1 and 1000")?;
        check(self.least_windows <= 1_000_000, "least_windows", "at most 1000000")?;
        check((2..=self.rounds).contains(&self.standing), "standing", "between 2 and `rounds`")?;
        check((1.0..=1000.0).contains(&self.growth), "growth", "between 1 and 1000")
    }
}

/// What arrives of one connection in each round trip.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds {
    config: LearningConfig,
    since: Option<(Time, u64)>,
    left_start: bool,
    /// The jump was taken back, or met a timeout.
    jump_failed: bool,
    volumes: VecDeque<u64>,
    /// Those of the last round trips, as long as a queue stood in each.
    queued: VecDeque<u64>,
    /// The largest volume of all, also of the round trips after the last data was given out.
    most: u64,
    rtt: Span,
}

/// True if what was known of the path led to a jump that it did not bear.
fn jump_failed(controller: &Controller) -> bool {
    let Start::CarefulResume(resume) = controller.start() else { return false };
    match resume.phase() {
        ResumePhase::SafeRetreat(_) => true,
        ResumePhase::Unvalidated { .. } | ResumePhase::Validating(_) => controller.start_exit().is_some(),
        ResumePhase::Reconnaissance | ResumePhase::Normal => false,
    }
}

impl Rounds {
    pub(crate) fn new(config: LearningConfig) -> Self {
        Self { config, ..Self::default() }
    }

    /// Looks at a connection after an ACK. A round trip takes as long as the shortest so far: what
    /// a queue holds is not what the path carries. `over` if all data is given out: what arrives
    /// from then on is less than the path carries, but more than nothing where a jump failed.
    pub(crate) fn look(&mut self, now: Time, over: bool, ledger: &Ledger) {
        self.jump_failed |= jump_failed(ledger.controller());
        let delivered = ledger.counts().delivered;
        let left = ledger.controller().start_exit().is_some();
        self.rtt = ledger.min_rtt();
        if left && !over && !self.left_start {
            // The last round trip of a start that overshoots says more than those before.
            self.volumes.drain(..self.volumes.len().saturating_sub(1));
            self.left_start = true;
        }
        let Some((since, before)) = self.since else {
            self.since = Some((now, delivered));
            return;
        };
        let elapsed = now.since(since);
        if elapsed < self.rtt || self.rtt.is_zero() {
            return;
        }
        let arrived = (delivered - before).saturating_mul(u64::from(ledger.mtu()));
        let share = u128::from(arrived) * u128::from(self.rtt.as_nanos()) / u128::from(elapsed.as_nanos().max(1));
        let share = u64::try_from(share).unwrap_or(u64::MAX);
        self.most = self.most.max(share);
        // The newest packet waited as long as this took: so long the bottleneck had something to
        // send at every moment. Who had nothing to send met the queue of others.
        if ledger.latest_rtt() >= self.rtt + elapsed && !ledger.latest_was_app_limited() {
            push(&mut self.queued, share, self.config.rounds);
        } else if !over {
            self.queued.clear();
        }
        if !over {
            push(&mut self.volumes, share, self.config.rounds);
        }
        self.since = Some((now, delivered));
    }

    /// Its queue stood, and what arrived grew no more: in a deep buffer nothing else says that the
    /// path carries no more than that.
    fn is_full(&self) -> bool {
        let most = |volumes: &mut dyn Iterator<Item = &u64>| volumes.copied().max().unwrap_or(0);
        let half = self.queued.len() / 2;
        let (earlier, later) = (most(&mut self.queued.iter().take(half)), most(&mut self.queued.iter().skip(half)));
        self.queued.len() >= self.config.standing && later as f64 <= earlier as f64 * self.config.growth
    }

    /// What a transfer taught that began with an initial window of so many bytes: the median of the
    /// last round trips if it left its start, or its queue stood; or half of the last, for it may
    /// have been about to overshoot (RFC 9959). If a jump failed and little was left to send then,
    /// it is the most that arrived in a round trip: what was known before is wrong. Few
    /// initial windows are little.
    pub(crate) fn lesson(&self, initial_window: u64) -> Lesson {
        let worth = |bytes: &u64| *bytes >= initial_window.saturating_mul(u64::from(self.config.least_windows));
        let observed = |bytes| Observed { bytes, rtt: self.rtt.as_nanos() };
        if self.left_start {
            return Lesson::Path(median(&self.volumes).filter(worth).map(observed));
        }
        if self.is_full() {
            return Lesson::Path(median(&self.queued).filter(worth).map(observed));
        }
        if self.jump_failed {
            return Lesson::Path(Some(self.most).filter(worth).map(observed));
        }
        let half = self.volumes.back().map(|last| last / 2);
        half.filter(worth).map_or(Lesson::Nothing, |bytes| Lesson::AtLeast(observed(bytes)))
    }
}

/// Keeps a volume, of the last ones.
fn push(volumes: &mut VecDeque<u64>, volume: u64, most: usize) {
    if volumes.len() >= most {
        volumes.pop_front();
    }
    volumes.push_back(volume);
}

fn median(volumes: &VecDeque<u64>) -> Option<u64> {
    let mut sorted: Vec<u64> = volumes.iter().copied().collect();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: Observed = Observed { bytes: 0, rtt: 40_000_000 };

    fn path(observed: Observed) -> Lesson {
        Lesson::Path(Some(observed))
    }

    #[test]
    fn the_median_of_what_arrived_after_the_start_is_worth_remembering_from_four_initial_windows_on() {
        let rounds = |left_start, volumes: &[u64]| Rounds {
            left_start,
            volumes: volumes.iter().copied().collect(),
            rtt: Span::from_millis(40),
            ..Rounds::default()
        };
        let seen = |bytes| Observed { bytes, ..SEEN };
        assert_eq!(rounds(true, &[90_000, 10_000, 50_000]).lesson(12_500), path(seen(50_000)));
        assert_eq!(rounds(true, &[90_000, 10_000, 50_000]).lesson(12_501), Lesson::Path(None));
        assert_eq!(rounds(false, &[10_000, 120_000]).lesson(15_000), Lesson::AtLeast(seen(60_000)));
        assert_eq!(rounds(false, &[10_000, 120_000]).lesson(15_001), Lesson::Nothing);
        assert_eq!(rounds(false, &[]).lesson(0), Lesson::Nothing);
        let failed = |left_start, most| Rounds { jump_failed: true, most, ..rounds(left_start, &[300_000, 80_000]) };
        assert_eq!(failed(false, 60_000).lesson(15_000), path(seen(60_000)), "whatever half of the last is");
        assert_eq!(failed(false, 59_999).lesson(15_000), Lesson::Path(None));
        assert_eq!(failed(true, 300_000).lesson(15_000), path(seen(300_000)), "enough was seen behind it");
    }

    #[test]
    fn what_arrives_while_a_queue_stands_and_grows_no_more_is_what_the_path_carries() {
        let queued = |volumes: &[u64]| Rounds {
            queued: volumes.iter().copied().collect(),
            volumes: [240_000].into(),
            rtt: Span::from_millis(40),
            ..Rounds::default()
        };
        let seen = |bytes| Observed { bytes, ..SEEN };
        let full = [80_000, 80_000, 100_000, 90_000];
        assert_eq!(queued(&full).lesson(15_000), path(seen(90_000)));
        assert_eq!(queued(&full).lesson(25_000), Lesson::Path(None));
        let jump_failed = Rounds { jump_failed: true, most: 240_000, ..queued(&full) };
        assert_eq!(jump_failed.lesson(15_000), path(seen(90_000)), "more than the most that came at once");
        for other in [&full[..3], &[80_000, 80_000, 100_001, 90_000], &[]] {
            assert_eq!(queued(other).lesson(15_000), Lesson::AtLeast(seen(120_000)), "{other:?}");
        }
    }

    /// Three round trips of 80, 80 and 110 kB in which a queue stood.
    #[test]
    fn how_long_a_queue_must_stand_and_how_much_may_be_more_then_is_configured() {
        let lesson = |config: LearningConfig| {
            assert_eq!(config.validate(), Ok(()));
            let mut rounds = Rounds { rtt: Span::from_millis(40), ..Rounds::new(config) };
            [80_000, 80_000, 110_000].into_iter().for_each(|volume| push(&mut rounds.queued, volume, config.rounds));
            rounds.volumes.push_back(240_000);
            rounds.lesson(15_000)
        };
        let (usual, at_least) = (LearningConfig::default(), Lesson::AtLeast(Observed { bytes: 120_000, ..SEEN }));
        let known = path(Observed { bytes: 80_000, ..SEEN });
        assert_eq!(lesson(usual), at_least);
        assert_eq!(lesson(LearningConfig { standing: 3, ..usual }), at_least, "it grows by more than a quarter");
        assert_eq!(lesson(LearningConfig { standing: 3, growth: 1.375, ..usual }), known);
        let windows = LearningConfig { standing: 3, growth: 1.5, least_windows: 6, ..usual };
        assert_eq!(lesson(windows), Lesson::Path(None), "less than 90 kB");
        // Of the last two the first is half.
        assert_eq!(
            lesson(LearningConfig { standing: 2, rounds: 2, growth: 1.375, ..usual }),
            path(Observed { bytes: 110_000, ..SEEN })
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_would() {
        let usual = LearningConfig::default();
        for (config, said) in [
            (LearningConfig { rounds: 0, ..usual }, "rounds must be between 1 and 1000"),
            (LearningConfig { least_windows: 1_000_001, ..usual }, "least_windows must be at most 1000000"),
            (LearningConfig { standing: 1, ..usual }, "standing must be between 2 and `rounds`"),
            (LearningConfig { standing: 17, ..usual }, "standing must be between 2 and `rounds`"),
            (LearningConfig { growth: 0.99, ..usual }, "growth must be between 1 and 1000"),
            (LearningConfig { growth: f64::NAN, ..usual }, "growth must be between 1 and 1000"),
        ] {
            assert_eq!(config.validate().unwrap_err().to_string(), said);
        }
    }
}
