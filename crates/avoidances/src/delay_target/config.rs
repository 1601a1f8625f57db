//! Constants of the delay target.

use flowstart_control::{InRange, InvalidConfig, Ranges, above};
use flowstart_units::Span;

use crate::AvoidanceConstants;

/// Most samples that [`DelayTargetConfig::delay_samples`] may ask for.
pub(super) const MOST_SAMPLES: usize = 16;
/// Most rounds that [`DelayTargetConfig::noise_rounds`] may ask for.
pub(super) const MOST_ROUNDS: usize = 16;

/// Constants of the control; all are this project's.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct DelayTargetConfig {
    /// Queueing delay to keep; default 0.5 ms.
    pub target: Span,
    /// The target is at least the transmission time of so many packets, at least 0; default 0.5.
    pub target_packets: f64,
    /// Where the buffer overflows before the target is reached, the target is this share of the
    /// longest queueing delay of that round trip, above 0 up to 1; default 0.5. Forgotten after
    /// `min_rtt_window`.
    pub buffer_share: f64,
    /// It has overflowed if more than this share of the packets of a round trip was lost or marked,
    /// 0 ..= 1; default 0.1. Fewer are lost at random, too.
    pub overflow: f64,
    /// The queueing delay is the smallest of so many latest packets, 1 ..= 16; default 4. Turns of
    /// others in fair queuing and jitter delay some packets, a queue of one's own delays all.
    pub delay_samples: u32,
    /// Share of the distance from the target that is made good per round trip, above 0 up to 1;
    /// default 0.5. The delay answers a round trip late: with 1 the rate swings.
    pub gain: f64,
    /// Growth per round trip without any queue, at least, 0 ..= 1; default 0.005.
    pub min_growth: f64,
    /// Growth per round trip at most, 0 ..= 1; default 0.25.
    pub max_growth: f64,
    /// Round trips without queue, losses or marks after which growth doubles with every further
    /// one; default 8.
    pub patience: u32,
    /// Without a queue the rate grows fast up to this share of what was delivered when the path was
    /// full for the last time, 0 ..= 1; default 0.95.
    pub known_share: f64,
    /// The target is at least so many times the difference between the largest and the smallest RTT
    /// of a round trip, at least 0; default 1: jitter hides shorter queues. More than one keeps the
    /// rate under more jitter, but its own queue's changes are jitter too, and the queue is longer.
    pub noise_ranges: f64,
    /// ... on average over so many latest round trips, 1 ..= 16; default 8.
    pub noise_rounds: u32,
    /// ... and up to this; default 5 ms (what the published rule tolerates).
    pub max_noise: Span,
    /// Packets of a burst wait for each other for so long at most; default 1 ms (Linux sends bursts
    /// of 1 ms at its rate, `sk_pacing_shift`), ...
    pub burst: Span,
    /// ... or for the time of so many packets at the rate of delivery, if that is longer, at least
    /// 0; default 1: Linux sends two at least, and the second waits for the first.
    pub burst_packets: f64,
    /// Delivery follows what is sent, so that there is no queue, if both differ by no more than
    /// this share and more is delivered than in the round before, 0 ..= 1; default 0.005.
    pub follow_share: f64,
    /// Share of packets lost or marked in a round trip that counts as congestion, 0 ..= 1; default
    /// 0.02.
    pub loss_threshold: f64,
    /// The smallest RTT is forgotten after this time; default 10 s. At least 1 ms.
    pub min_rtt_window: Span,
    /// Fewest packets per smoothed RTT, at least 1; default 2.
    pub min_packets: u32,
    /// The window is this many times what the rate sends in a smoothed RTT, 1 ..= 100; default 2:
    /// it never holds packets back while ACKs come.
    pub window_rtts: u32,
    /// The rate is at most this many times what is delivered, at least 1; default 2.
    pub ceiling: f64,
    /// A queue of so many times the RTT without one, and of `foreign_targets` targets, is answered
    /// at once, not at the end of the round trip, which lasts as long as the queue; default 2, at
    /// least 0, 0 for never. (With 0 flows on 400 random paths lost 60 000 packets more.)
    pub brake_rtts: f64,
    /// ... if so many times as much is sent as is delivered, at least 1; default 4. With 1 flows on
    /// LTE, whose rate fades, carried half.
    pub brake_excess: f64,
    /// ... with so many times what is delivered, above 0 up to 1; default 0.5.
    pub brake_factor: f64,
    /// What a timeout leaves of the rate, above 0 up to 1; default 0.5.
    pub timeout_factor: f64,
    /// Queueing delay in times of the target from which on the queue may be somebody else's, at
    /// least 1; default 6.
    pub foreign_targets: f64,
    /// Round trips in a row with such a queue after which it is somebody else's; default 12, 0 for
    /// never. One's own loses `gain` of what is above the target per round trip: even one of a
    /// second is gone after ten.
    pub foreign_rounds: u32,
    /// Round trips in a row on a noisy path (or with losses above `loss_threshold` that no queue
    /// announced, less than `noise_rounds` apart) at less than `give_up_share` of what was seen
    /// before, or in which RTTs differ by more than `max_noise` and `turn_packets`, after which
    /// another avoidance had better go on; default 8, 0 for never. Twice as many where nobody has
    /// looked whose queue it is: such a start may leave a long queue, and while that goes away RTTs
    /// of a round trip differ by much.
    pub give_up_rounds: u32,
    /// Of the most that was delivered in the last `min_rtt_window`, above 0 up to 1; default 0.8.
    pub give_up_share: f64,
    /// A path is noisy if RTTs of a round trip differ by this time and more, ...; default 1 ms.
    pub give_up_noise: Span,
    /// ... and by the time of so many packets at that rate, at least 0; default 5: so long are the
    /// turns of others.
    pub give_up_packets: f64,
    /// RTTs that differ by no more than the time of so many packets at that rate are no noise,
    /// however long that is, at least 0; default 2.5: others that are served two packets at a time
    /// take no longer.
    pub turn_packets: f64,
    /// After so many round trips in a row at less than `trial_share` of what was delivered before,
    /// with RTTs that differ by `give_up_noise`, `trial_factor` times as much is sent for one, to
    /// see whether it is delivered; default 8, 0 for never. Twice as many the next time if it is
    /// not. After so many in a row at more, what trials told is forgotten.
    pub trial_rounds: u32,
    /// They grow up to this many times as many, at least 1; default 16.
    pub trial_patience: u32,
    /// Of the most that was delivered in the last `min_rtt_window`, above 0 up to 1; default 0.8.
    /// With 0.35 nothing was tried for flows that stood at 0.4 of it.
    pub trial_share: f64,
    /// Rate of a trial in times of that before, above 1 up to 4, but no more than was delivered
    /// before; default 2. It counts as delivered if at least half of what it is more is.
    pub trial_factor: f64,
    /// Trials in a row that were delivered, and did not help, after which another avoidance had
    /// better go on; default 2, 0 for never.
    pub give_up_trials: u32,
    /// A delay above the target that stays for so many round trips without losses, while less and
    /// less is delivered, is that of a path that became longer; default 4, 0 for never.
    pub longer_rounds: u32,
    /// ... if in the last of them no more than this share of the most is delivered that was in one
    /// of them, above 0 and below 1; default 0.7. With a queue the capacity would be.
    pub longer_share: f64,
    /// It stays if the smallest RTTs of these round trips differ by no more than this share of it,
    /// 0 ..= 1; default 0.25.
    pub longer_spread: f64,
    /// After so many times in a row in which not half of the queueing delay came that what was sent
    /// above what was delivered let foresee, none is foreseen; default 2, 0 for never.
    pub vain_rounds: u32,
}

impl Default for DelayTargetConfig {
    fn default() -> Self {
        Self {
            target: Span::from_micros(500),
            target_packets: 0.5,
            buffer_share: 0.5,
            overflow: 0.1,
            delay_samples: 4,
            gain: 0.5,
            min_growth: 0.005,
            max_growth: 0.25,
            patience: 8,
            known_share: 0.95,
            noise_ranges: 1.0,
            noise_rounds: 8,
            max_noise: Span::from_millis(5),
            burst: Span::from_millis(1),
            burst_packets: 1.0,
            follow_share: 0.005,
            loss_threshold: 0.02,
            min_rtt_window: Span::from_secs(10),
            min_packets: 2,
            window_rtts: 2,
            ceiling: 2.0,
            brake_rtts: 2.0,
            brake_excess: 4.0,
            brake_factor: 0.5,
            timeout_factor: 0.5,
            foreign_targets: 6.0,
            foreign_rounds: 12,
            give_up_rounds: 8,
            give_up_share: 0.8,
            give_up_noise: Span::from_millis(1),
            give_up_packets: 5.0,
            turn_packets: 2.5,
            trial_rounds: 8,
            trial_patience: 16,
            trial_share: 0.8,
            trial_factor: 2.0,
            give_up_trials: 2,
            longer_rounds: 4,
            longer_share: 0.7,
            longer_spread: 0.25,
            vain_rounds: 2,
        }
    }
}

impl DelayTargetConfig {
    /// The constants for a queue that is taken for one's own unasked.
    pub(crate) fn unasked(self) -> Self {
        Self { give_up_rounds: self.give_up_rounds.saturating_mul(2), ..self }
    }
}

impl AvoidanceConstants for DelayTargetConfig {
    fn spaces(&self) -> Option<&'static str> {
        Some("paced at its own rate")
    }

    fn validate(&self) -> Result<(), InvalidConfig> {
        self.check()
    }
}

impl InRange for DelayTargetConfig {
    fn ranges(&mut self, ranges: &mut Ranges) {
        let (share, part) = (0.0..=1.0, above(0.0).up_to(1.0));
        ranges.of("target_packets", &mut self.target_packets, 0.0.., "at least 0");
        ranges.of("buffer_share", &mut self.buffer_share, part, "above 0 and at most 1");
        ranges.of("overflow", &mut self.overflow, share.clone(), "between 0 and 1");
        ranges.of("delay_samples", &mut self.delay_samples, 1..=MOST_SAMPLES as u32, "between 1 and 16");
        ranges.of("gain", &mut self.gain, part, "above 0 and at most 1");
        ranges.of("min_growth", &mut self.min_growth, share.clone(), "between 0 and 1");
        ranges.of("max_growth", &mut self.max_growth, share.clone(), "between 0 and 1");
        ranges.of("max_growth", &mut self.max_growth, self.min_growth.., "at least min_growth");
        ranges.of("known_share", &mut self.known_share, share.clone(), "between 0 and 1");
        ranges.of("noise_ranges", &mut self.noise_ranges, 0.0.., "at least 0");
        ranges.of("noise_rounds", &mut self.noise_rounds, 1..=MOST_ROUNDS as u32, "between 1 and 16");
        ranges.of("burst_packets", &mut self.burst_packets, 0.0.., "at least 0");
        ranges.of("follow_share", &mut self.follow_share, share.clone(), "between 0 and 1");
        ranges.of("loss_threshold", &mut self.loss_threshold, share.clone(), "between 0 and 1");
        ranges.of("min_rtt_window", &mut self.min_rtt_window, Span::from_millis(1).., "at least 1 ms");
        ranges.of("min_packets", &mut self.min_packets, 1.., "at least 1");
        ranges.of("window_rtts", &mut self.window_rtts, 1..=100, "between 1 and 100");
        ranges.of("ceiling", &mut self.ceiling, 1.0.., "at least 1");
        ranges.of("foreign_targets", &mut self.foreign_targets, 1.0.., "at least 1");
        ranges.of("brake_rtts", &mut self.brake_rtts, 0.0.., "at least 0");
        ranges.of("brake_excess", &mut self.brake_excess, 1.0.., "at least 1");
        ranges.of("brake_factor", &mut self.brake_factor, part, "above 0 and at most 1");
        ranges.of("give_up_share", &mut self.give_up_share, part, "above 0 and at most 1");
        ranges.of("give_up_packets", &mut self.give_up_packets, 0.0.., "at least 0");
        ranges.of("turn_packets", &mut self.turn_packets, 0.0.., "at least 0");
        ranges.of("trial_patience", &mut self.trial_patience, 1.., "at least 1");
        ranges.of("trial_share", &mut self.trial_share, part, "above 0 and at most 1");
        ranges.of("trial_factor", &mut self.trial_factor, above(1.0).up_to(4.0), "above 1 and at most 4");
        ranges.of("longer_share", &mut self.longer_share, above(0.0).below(1.0), "above 0 and below 1");
        ranges.of("longer_spread", &mut self.longer_spread, share, "between 0 and 1");
        ranges.of("timeout_factor", &mut self.timeout_factor, part, "above 0 and at most 1");
    }
}
