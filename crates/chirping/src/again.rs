//! Chirping again: when a flow whose start is over has reason to look for more capacity.
//!
//! A scalable control is marked every few round trips whatever its rate, so that a long silence
//! means that capacity has come free ("Rethinking TCP start-up", netdev 0x13, section 3). How long
//! is too long depends on the queue: one that marks by a step gives a single flow a burst of marks
//! per saw-tooth, whose period grows with the square root of the window. So the silences between
//! marks are measured, with mean and deviation as RFC 6298 measures round-trip times.

use flowstart_control::InvalidConfig;
use flowstart_control::{Ack, NewMss};

/// When chirps are sent again. What Paced Chirping's authors left open is from this project's own
/// measurements.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct ChirpingAgainConfig {
    /// Whether missing marks, idle times and timeouts bring chirps back; default true.
    pub enabled: bool,
    /// Fewest round trips without a mark that count as silence; default 4.
    pub min_quiet_rounds: u32,
    /// Silences that must be measured before they alone decide; default 8.
    pub min_silences: u32,
    /// Until then, at least: saw-tooth periods of a single flow at a step-marking queue, sqrt(cwnd
    /// / 2) round trips each (RFC 8257's window arithmetic), that count as silence; default 2.
    pub quiet_periods: f64,
    /// Silence is longer than the mean of the measured ones plus this many mean deviations, plus
    /// two rounds; default 4 (RFC 6298).
    pub quiet_deviations: f64,
    /// Weight of a new silence in their mean, above 0 up to 1; default 1/8 (RFC 6298 section 2.3).
    pub mean_gain: f64,
    /// Weight of a new silence in their mean deviation, above 0 up to 1; default 1/4 (RFC 6298
    /// section 2.3).
    pub deviation_gain: f64,
    /// Every vain attempt doubles the silence that brings the next one, at most so many times;
    /// default 6.
    pub max_backoff: u32,
    /// The capacity found counts as more if the window for it is larger by this factor, at least 1;
    /// default 1.1.
    pub gain: f64,
    /// After an idle time or a timeout the first chirp is centred on the gap known from before
    /// times this, at least 1; default 2.
    pub restart_gap: f64,
}

impl Default for ChirpingAgainConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            min_quiet_rounds: 4,
            min_silences: 8,
            quiet_periods: 2.0,
            quiet_deviations: 4.0,
            mean_gain: 1.0 / 8.0,
            deviation_gain: 1.0 / 4.0,
            max_backoff: 6,
            gain: 1.1,
            restart_gap: 2.0,
        }
    }
}

impl ChirpingAgainConfig {
    pub(super) fn validate(&self) -> Result<(), InvalidConfig> {
        let check = InvalidConfig::unless;
        let within = |x: f64, low: f64, high: f64| x >= low && x <= high;
        check(self.min_quiet_rounds >= 1, "min_quiet_rounds", "at least 1")?;
        check(within(self.quiet_periods, 1.0, 100.0), "quiet_periods", "between 1 and 100")?;
        check(within(self.quiet_deviations, 0.0, 100.0), "quiet_deviations", "between 0 and 100")?;
        check(self.mean_gain > 0.0 && self.mean_gain <= 1.0, "mean_gain", "above 0 and at most 1")?;
        check(self.deviation_gain > 0.0 && self.deviation_gain <= 1.0, "deviation_gain", "above 0 and at most 1")?;
        check(self.max_backoff <= 16, "max_backoff", "at most 16")?;
        check(within(self.gain, 1.0, 16.0), "gain", "between 1 and 16")?;
        check(within(self.restart_gap, 1.0, 16.0), "restart_gap", "between 1 and 16")
    }
}

/// What a flow knew when it begins to chirp again.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Time per packet in ns at the rate that was good.
    pub(super) gap: u64,
    /// Time per packet in ns at the rate to begin with.
    pub(super) load: u64,
    /// The window in packets that the flow fills now, to which it returns if there is no more to
    /// find; `None` if it does not send.
    pub(super) window: Option<u32>,
}

/// Listens for marks that do not come.
#[derive(Clone, Debug)]
pub(super) struct Quiet {
    config: ChirpingAgainConfig,
    /// The round ends when this byte is acknowledged.
    round_end: u64,
    marked: bool,
    limited: bool,
    /// Full rounds without a mark so far.
    rounds: u32,
    /// Window in packets at the latest marks that came after a silence: until it is well reached
    /// again, silence is normal however deep the reduction was.
    marked_at: u32,
    /// Marks came since the start, so that this path marks.
    heard: bool,
    /// Mean and mean deviation of the silences between marks, in rounds, and how many were
    /// measured.
    silence: Option<(f64, f64)>,
    measured: u32,
    vain: u32,
}

impl Quiet {
    pub(super) fn new(config: &ChirpingAgainConfig) -> Self {
        Self {
            config: config.clone(),
            round_end: 0,
            marked: false,
            limited: false,
            rounds: 0,
            marked_at: 0,
            heard: false,
            silence: None,
            measured: 0,
            vain: 0,
        }
    }

    /// Packets have another size.
    pub(super) fn on_mss(&mut self, mss: NewMss) {
        self.marked_at = mss.packets(self.marked_at);
    }

    /// An ACK in congestion avoidance. Returns true if the silence is too long.
    pub(super) fn on_ack(&mut self, ack: &Ack, cwnd: u32) -> bool {
        self.marked |= ack.marked > 0;
        self.limited |= ack.cwnd_limited;
        if ack.una < self.round_end || ack.acked == 0 {
            return false;
        }
        if self.marked {
            // Marks soon after marks belong to the same reduction.
            let soon = self.silence.is_some_and(|(mean, _)| f64::from(self.rounds) < mean / 2.0);
            self.marked_at = if soon { self.marked_at.max(cwnd) } else { cwnd };
            self.end_silence();
        } else if self.limited {
            // A flow that does not use its window is not marked for a reason of its own.
            self.rounds = self.rounds.saturating_add(1);
        }
        (self.round_end, self.marked, self.limited) = (ack.next, false, false);
        // A scalable control grows by a packet per round.
        let beyond = cwnd >= self.marked_at.saturating_add(self.config.min_quiet_rounds);
        self.heard && beyond && self.rounds > self.threshold(cwnd)
    }

    fn end_silence(&mut self) {
        // Marks in consecutive rounds are one burst.
        if self.heard && self.rounds > 0 {
            let rounds = f64::from(self.rounds);
            self.measured = self.measured.saturating_add(1);
            self.silence = Some(match self.silence {
                None => (rounds, rounds / 2.0),
                Some((mean, deviation)) => {
                    let error = rounds - mean;
                    (
                        mean + error * self.config.mean_gain,
                        deviation + (error.abs() - deviation) * self.config.deviation_gain,
                    )
                }
            });
        }
        (self.heard, self.rounds, self.vain) = (true, 0, 0);
    }

    /// Rounds without a mark that are normal.
    fn threshold(&self, cwnd: u32) -> u32 {
        let measured = self.silence.map_or(0.0, |(mean, deviation)| mean + self.config.quiet_deviations * deviation);
        let expected = self.config.quiet_periods * libm::sqrt(f64::from(cwnd) / 2.0);
        let normal = if self.measured < self.config.min_silences { measured.max(expected) } else { measured };
        let rounds = (normal + 2.0).max(f64::from(self.config.min_quiet_rounds));
        (rounds as u32).saturating_mul(1 << self.vain.min(self.config.max_backoff).min(16))
    }

    /// The chirps are over: the window they found, and the one before.
    pub(super) fn answered(&mut self, found: u32, before: u32) {
        let more = f64::from(found) > f64::from(before) * self.config.gain;
        self.rounds = 0;
        if more {
            // Another window has another period.
            (self.silence, self.measured, self.vain) = (None, 0, 0);
        } else {
            self.vain = self.vain.saturating_add(1);
        }
    }

    pub(super) fn config(&self) -> &ChirpingAgainConfig {
        &self.config
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_control::testing::ack;

    /// A round trip; true if the silence is too long with it.
    fn round(quiet: &mut Quiet, marked: bool, cwnd: u32) -> bool {
        let una = quiet.round_end;
        quiet.on_ack(&Ack { una, next: una + 1, marked: u32::from(marked), ..ack(1) }, cwnd)
    }

    /// The round trip of a silence in which it becomes too long, after silences of so many round
    /// trips.
    fn too_long_after(silences: &[u32]) -> u32 {
        let mut quiet = Quiet::new(&ChirpingAgainConfig { min_silences: 1, ..ChirpingAgainConfig::default() });
        round(&mut quiet, true, 10);
        for silence in silences {
            for _ in 0..*silence {
                round(&mut quiet, false, 10);
            }
            round(&mut quiet, true, 10);
        }
        // The window has well reached what it was at the last marks.
        (1..).find(|_| round(&mut quiet, false, 14)).expect("at some time it is")
    }

    /// RFC 6298 section 2: the first silence is the mean and half of it the deviation; of each that
    /// follows an eighth goes into the mean, and of its distance from that a quarter into the
    /// deviation. Too long is more than the mean, four deviations and two rounds.
    #[test]
    fn a_silence_is_too_long_by_mean_and_deviation_of_those_before() {
        // 10 and 5: 10 + 4 * 5 + 2 = 32.
        assert_eq!(too_long_after(&[10]), 33);
        // 11.25 and 5 + (10 - 5) / 4 = 6.25: 38.25.
        assert_eq!(too_long_after(&[10, 20]), 39);
        // 11.25 - 1.25 / 8 = 11.09 and 6.25 - (6.25 - 1.25) / 4 = 5: 33.09.
        assert_eq!(too_long_after(&[10, 20, 10]), 34);
    }

    #[test]
    fn silences_are_averaged_by_constants() {
        let after = |mean_gain, deviation_gain| {
            let config = ChirpingAgainConfig { mean_gain, deviation_gain, ..ChirpingAgainConfig::default() };
            assert_eq!(config.validate(), Ok(()));
            let mut quiet = Quiet { heard: true, rounds: 16, silence: Some((8.0, 4.0)), ..Quiet::new(&config) };
            quiet.end_silence();
            quiet.silence
        };
        assert_eq!(after(0.125, 0.25), Some((9.0, 5.0)));
        assert_eq!(after(0.5, 1.0), Some((12.0, 8.0)));
        for gain in [0.0, 1.1, f64::NAN] {
            let refused = |config: ChirpingAgainConfig| config.validate().err().map(|error| error.field);
            let default = ChirpingAgainConfig::default;
            assert_eq!(refused(ChirpingAgainConfig { mean_gain: gain, ..default() }), Some("mean_gain"));
            assert_eq!(refused(ChirpingAgainConfig { deviation_gain: gain, ..default() }), Some("deviation_gain"));
        }
    }
}
