//! How one rate is probed.

use flowstart_units::{Bytes, Rate, Span};

use super::GiveUp;
use crate::stats::{DfGlsConfig, Level, Sides, can_show};
use crate::{Error, Probability};

/// What follows if the test does not reject a unit root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnitRoot {
    /// The series is made longer and thinned further, as for dependent samples. The rate is too
    /// high only if the delays are seen to grow, so that less arrives than is offered; in the end
    /// it is undecided. The default: a few seconds of delays whose memory is seconds look like a
    /// random walk whatever the rate, and so does a series whose first sample is unusual.
    #[default]
    Evidence,
    /// The series is made longer, too, but if it still looks so in the end the rate is too high.
    Extend,
    /// The rate is too high at once, which is how the paper's procedure reads to the letter.
    Stop,
}

/// The paper's number of samples per rate.
pub const PAPER_SAMPLES: usize = 750;

/// How one rate is probed. Values that the paper does not give are marked as chosen here; all of
/// them belong into a report of results.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeConfig {
    /// Samples N that are kept; default 750 (paper).
    pub samples: usize,
    /// The probability epsilon' with which one rate's quantile may be exceeded; default 1 %
    /// (chosen: the paper's value is illegible in the copies used). It takes 1 / epsilon samples to
    /// show it; fewer are refused.
    pub epsilon: Probability,
    /// True if the flow control is known not to be random, so that the largest delay is never
    /// exceeded and epsilon may be 0; default false.
    pub deterministic: bool,
    /// Size of the probe's packets; default 1500 bytes (paper).
    pub packet: Bytes,
    /// How long a new train runs before the first sample; default 10 s (chosen: the paper waits
    /// "for steady state").
    pub warm_up: Span,
    /// How long it is watched at least before it is accepted, unless it ends before; default 60 s
    /// (chosen: a hundred samples 10 ms apart are there after a second, in which a loss of one
    /// packet in three hundred may not happen).
    pub least_time: Span,
    /// Mean time between sampled packets, in packets geometrically distributed; default 10 ms
    /// (chosen: the paper samples at random).
    pub sampling_gap: Span,
    /// The mean gap in packets is at least this; default 2 (chosen: with 1 every packet of a slow
    /// train is a sample, which is not at random, and in step with whatever is periodic).
    pub sampling_packets: u32,
    /// After an extension `thinning * growth` times N samples have been taken and each `thinning *
    /// growth`-th is kept. Default 2, which looks at the tests less often than larger steps and
    /// measures twice as long as needed at most (chosen: the multiple is illegible).
    pub growth: u64,
    /// Which of them are kept is drawn at random; otherwise the first sample is always one of them,
    /// and if it is unusual so is every test. Default true (chosen).
    pub random_phase: bool,
    /// With this thinning the procedure gives up; default 4096 (chosen).
    pub max_thinning: u64,
    /// Dependent samples are accepted if they are worth as many independent ones as
    /// [`Self::samples`] says, or, when the train ends, enough for both ends of a 95 % interval;
    /// default true (chosen: the paper waits for independence).
    pub dependent: bool,
    /// The test for stationarity.
    pub stationarity: DfGlsConfig,
    /// Its level; default 5 % (chosen).
    pub stationarity_level: Level,
    /// What follows if it fails; default [`OnUnitRoot::Evidence`].
    pub on_unit_root: OnUnitRoot,
    /// Into so many blocks the measurement is cut to see whether delays grow, by their medians;
    /// default 20 (chosen; 10 see less, since their rises are known less exactly). With
    /// [`OnUnitRoot::Evidence`] the rises from block to block are more than a
    /// random walk without drift would have at [`Self::growth_level`]; with [`OnUnitRoot::Extend`]
    /// every median is above the one before. Fewer than three: never.
    pub overload_blocks: usize,
    /// Delays that grow are evidence only if they have been measured for so long; default 600 s
    /// (chosen: a connection near its share recovers from losses for minutes, and meanwhile its
    /// delays grow, too). Then the rate is too high without further extensions.
    pub overload_after: Span,
    /// The level of the test for growth, one-sided; default 1 % (chosen: it is that of a random
    /// walk without drift, and delays that do not grow in the long run rise less often).
    pub growth_level: Probability,
    /// Delays that grow by less than this share of the time are no evidence: two clocks may drift
    /// apart so fast. Default 0.02 % (chosen: crystals err by 0.01 % at most), and a rate that is
    /// too high by less than that is not too high for anybody.
    pub drift: Probability,
    /// Nothing is accepted while that test would find growth at this level; default 5 % (chosen).
    pub steady_level: Probability,
    /// The level of the runs test; default 5 % (chosen).
    pub independence_level: Probability,
    /// Its sides; default two.
    pub sides: Sides,
    /// Delays that vary less than this are all equal; default 1 us.
    pub resolution: Span,
    /// Fewer of [`PAPER_SAMPLES`] samples than this above the median (or below) leave nothing to be
    /// tested, and of fewer samples the same share of them: default 10 of 750, 1.3 %, about as many
    /// as may lie beyond the quantile. (A fixed number would accept 150 samples untested of which 6
    /// % queue.) Of more samples it is this number, since more of them can be tested.
    pub min_class: usize,
    /// The first rate that is not accepted ends the curve; default false: only two that are too
    /// high do, and one below an accepted rate is undecided instead.
    pub first_ends: bool,
    /// Rates that the rest of their time will not decide are given up; default none, which watches
    /// every rate to the end of its train.
    pub give_up: Option<GiveUp>,
    /// Seed of the random choice of sampled packets; default 1.
    pub seed: u64,
}

impl Default for ProbeConfig {
    fn default() -> Self {
        Self {
            samples: PAPER_SAMPLES,
            epsilon: Probability::ONE_PERCENT,
            deterministic: false,
            packet: Bytes::new(1_500),
            warm_up: Span::from_secs(10),
            least_time: Span::from_secs(60),
            sampling_gap: Span::from_millis(10),
            sampling_packets: 2,
            growth: 2,
            random_phase: true,
            max_thinning: 4_096,
            dependent: true,
            stationarity: DfGlsConfig::default(),
            stationarity_level: Level::Five,
            on_unit_root: OnUnitRoot::default(),
            overload_blocks: 20,
            overload_after: Span::from_secs(600),
            growth_level: Probability::ONE_PERCENT,
            drift: Probability::DRIFT,
            steady_level: Probability::FIVE_PERCENT,
            independence_level: Probability::FIVE_PERCENT,
            sides: Sides::Two,
            resolution: Span::from_micros(1),
            min_class: 10,
            first_ends: false,
            give_up: None,
            seed: 1,
        }
    }
}

impl ProbeConfig {
    /// The paper's procedure, as far as it can be read: samples are thinned until they are
    /// independent, the first among them is kept, no time is asked for, and the first rate that is
    /// not accepted ends the curve. A train that looks like a random walk to its end is too high.
    #[must_use]
    pub fn paper() -> Self {
        Self {
            least_time: Span::ZERO,
            sampling_packets: 1,
            random_phase: false,
            dependent: false,
            steady_level: Probability::ZERO,
            overload_blocks: 10,
            growth_level: Probability::ONE_PERMILLE,
            on_unit_root: OnUnitRoot::Extend,
            first_ends: true,
            ..Self::default()
        }
    }

    /// Checks the configuration.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] naming the field; [`Error::NotShown`] if epsilon is 0 or 1, or so
    /// small that [`Self::samples`] cannot show it. Thinning takes more, but keeps so many, and the
    /// quantile is one of those that are kept.
    pub fn validate(&self) -> Result<(), Error> {
        let rules = [
            (self.samples >= crate::stats::MIN_SAMPLES, "samples", "at least 10"),
            (self.packet.get() > 0, "packet", "at least one byte"),
            (self.growth >= 2, "growth", "at least 2"),
            (self.max_thinning >= 1, "max_thinning", "at least 1"),
            (self.sampling_packets >= 1, "sampling_packets", "at least 1"),
            (self.give_up.is_none_or(|give_up| give_up.makes_sense()), "give_up", "numbers that are not negative"),
        ];
        if let Some((_, field, must)) = rules.into_iter().find(|(holds, ..)| !holds) {
            return Err(Error::InvalidConfig(field, must));
        }
        let largest = self.deterministic && self.epsilon == Probability::ZERO;
        if largest || can_show(self.samples, self.epsilon) {
            Ok(())
        } else {
            Err(Error::NotShown(self.epsilon, self.samples))
        }
    }

    /// The smallest class that is tested: [`Self::min_class`] for the number of samples at hand.
    /// One sample off all others has nothing to be dependent on, so it is two at least.
    pub(super) fn smallest_class(&self) -> usize {
        /// Two can be neighbours.
        const PAIR: usize = 2;
        let share = self.min_class.saturating_mul(self.samples).div_ceil(PAPER_SAMPLES);
        share.clamp(PAIR.min(self.min_class), self.min_class)
    }

    /// Packets per second of a probe at `rate`.
    pub(super) fn packets_per_second(&self, rate: Rate) -> f64 {
        rate.as_bps() as f64 / self.packet.bits() as f64
    }
}
