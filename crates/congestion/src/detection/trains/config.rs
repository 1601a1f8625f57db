//! Constants of the detector by trains.

use flowstart_units::Span;

use crate::names::InvalidConfig;

/// Constants of the detector. All are this project's own.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct TrainProbeConfig {
    /// Packets of the first train, which leave at once, 4 ..= 64; default 8, which with one in transmission fits a buffer of eight.
    pub train: u32,
    /// If hardly anything of the first train arrives, twice as many packets follow; each gap between them is this share of the one before, above 0 and
    /// below 1; default 0.6, from an eighth of a round trip down to a 17 000th.
    pub chirp_shrink: f64,
    /// Packets of the other trains at first, 4 ..= 1000; default 10.
    pub shortest_train: u32,
    /// These leave at so many times the rate that the first train told, above 1; default 2.5: ten packets then queue six. Not all at once, so
    /// that they do not queue where the path is wider before its bottleneck.
    pub train_load: f64,
    /// Packets of the longest train, if jitter hides the delay of shorter ones; default 106, of which 64 queue.
    pub longest_train: u32,
    /// Packets spread in time between the first train and the others, so that a new flow's credit is used up (sch_fq: ten frames), 1 ..= 1000;
    /// default 4.
    pub spread: u32,
    /// Trains sent before answers are awaited, at least 1; default 3.
    pub batch: u32,
    /// Trains are this many times the time apart that the bottleneck takes for one, at least 1; default 2.
    pub apart: f64,
    /// Least delay of the train's last packet in packet times for its ratio to count, at least 1; default 3.
    pub least_queue: f64,
    /// ... and in times of the jitter; a train that does not reach it is followed by longer ones; default 4.
    pub least_jitters: f64,
    /// Probability of error at which "isolated" is said, above 0 and below 0.5; default 0.0001: who takes a shared queue for his own starves in it.
    pub isolated_error: f64,
    /// Probability of error at which "shared" is said; default 0.01: who takes his own queue for a shared one only waits longer.
    pub shared_error: f64,
    /// Batches of trains without an answer until it is unknown, at least 1; default 6.
    pub most_batches: u32,
    /// Time to wait for the connection of the lone packets until the answer is unknown; default 3 s, of which a lost SYN takes 1 (RFC 6298).
    pub open_wait: Span,
    /// Load of the stream whose losses are compared, in times of the bottleneck's rate, above 1; default 1.5.
    pub overload: f64,
    /// If less than this share of the stream is lost, the next one is twice as fast; above 0 and below 1; default 0.1.
    pub least_contrast: f64,
    /// If more than this share is lost, the next one is slower: what arrived is taken for the bottleneck's rate; above `least_contrast` and below 1;
    /// default 0.6.
    pub most_contrast: f64,
    /// Packets of that stream; default 96.
    pub contrast_packets: u32,
    /// Packets of the sparse stream beside it; default 12.
    pub contrast_lone: u32,
}

impl Default for TrainProbeConfig {
    fn default() -> Self {
        Self {
            train: 8,
            chirp_shrink: 0.6,
            shortest_train: 10,
            train_load: 2.5,
            longest_train: 106,
            spread: 4,
            batch: 3,
            apart: 2.0,
            least_queue: 3.0,
            least_jitters: 4.0,
            isolated_error: 1e-4,
            shared_error: 0.01,
            most_batches: 6,
            open_wait: Span::from_secs(3),
            overload: 1.5,
            least_contrast: 0.1,
            most_contrast: 0.6,
            contrast_packets: 96,
            contrast_lone: 12,
        }
    }
}

impl TrainProbeConfig {
    /// Checks that every constant is in its range.
    ///
    /// # Errors
    /// Names the first field that is not, and what it must be.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let check = InvalidConfig::unless;
        let error = |p: f64| p > 0.0 && p < 0.5;
        check((4..=64).contains(&self.train), "train", "between 4 and 64 packets")?;
        check((4..=1000).contains(&self.shortest_train), "shortest_train", "between 4 and 1000 packets")?;
        check(self.train_load > 1.0 && self.train_load <= 100.0, "train_load", "above 1 and at most 100")?;
        let longest = self.shortest_train..=1000;
        check(longest.contains(&self.longest_train), "longest_train", "at least shortest_train, at most 1000")?;
        check((1..=1000).contains(&self.spread), "spread", "between 1 and 1000")?;
        check((1..=100).contains(&self.batch), "batch", "between 1 and 100")?;
        check(self.apart >= 1.0 && self.apart <= 100.0, "apart", "between 1 and 100")?;
        check(self.least_queue >= 1.0 && self.least_queue.is_finite(), "least_queue", "at least 1")?;
        check(self.least_jitters >= 0.0 && self.least_jitters.is_finite(), "least_jitters", "at least 0")?;
        check(error(self.isolated_error), "isolated_error", "above 0 and below 0.5")?;
        check(error(self.shared_error), "shared_error", "above 0 and below 0.5")?;
        check((1..=1000).contains(&self.most_batches), "most_batches", "between 1 and 1000")?;
        check(self.overload > 1.0 && self.overload <= 100.0, "overload", "above 1 and at most 100")?;
        let share = |p: f64| p > 0.0 && p < 1.0;
        check(share(self.chirp_shrink), "chirp_shrink", "above 0 and below 1")?;
        check(share(self.least_contrast), "least_contrast", "above 0 and below 1")?;
        let most = self.most_contrast > self.least_contrast && self.most_contrast < 1.0;
        check(most, "most_contrast", "above least_contrast and below 1")?;
        check((1..=10_000).contains(&self.contrast_packets), "contrast_packets", "between 1 and 10 000")?;
        check((1..=10_000).contains(&self.contrast_lone), "contrast_lone", "between 1 and 10 000")
    }
}
