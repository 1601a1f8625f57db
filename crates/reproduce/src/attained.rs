//! From the probes of all rates of a variant to the values of measures.

use flowstart_random::mix;
use flowstart_service_curve::stats::{DelayHistogram, Series, autocorrelation};
use flowstart_service_curve::{Estimate, ProbeVerdict, Video, VideoConfig};
use flowstart_units::{Rate, Span, Time};

use super::error::ReproduceError;
use super::probing::{Probed, Probing};
use super::replay::Replay;
use flowstart_probing::{Part, Passage};

/// What was found out by probing.
pub(super) struct Attained {
    pub(super) probing: Probing,
    /// With all probes by rate, the first that was refused included.
    pub(super) estimate: Estimate,
    /// Where the delays of each of them arose.
    passages: Vec<Option<Passage>>,
    /// Data packets of all simulations that count.
    pub(super) data_packets: u64,
    /// Virtual time of them.
    pub(super) seconds: f64,
    /// What the film met in a loop, if anybody asks.
    pub(super) replay: Option<Replay>,
}

/// Frames of the film and its seed: ten minutes at 24 frames per second, whose statistics are known
/// (see [`Video`]).
const FILM_FRAMES: usize = 14_400;
const FILM_SEED: u64 = 7;

/// True if the rate was accepted.
pub(super) fn is_accepted(probed: &Probed) -> bool {
    matches!(probed.probe.verdict, ProbeVerdict::Accepted(_))
}

impl Attained {
    /// From the probes of a variant, in any order; those above the first that was refused do not
    /// count (whether they were made depends on the order of work), except for distributions at the
    /// rates that are `named`.
    ///
    /// # Errors
    /// What is wrong with the description.
    pub(super) fn new(
        probing: &Probing,
        mut probed: Vec<Probed>,
        named: &[Rate],
        full: bool,
    ) -> Result<Self, ReproduceError> {
        probed.sort_by_key(|one| one.probe.rate);
        let last = probed.iter().find(|one| !is_accepted(one)).map_or(Rate::UNLIMITED, |one| one.probe.rate);
        probed.retain(|one| one.probe.rate <= last || named.contains(&one.probe.rate));
        let config = probing
            .procedure(probing.spec.packet, full, 0)
            .map_err(|problem| problem.locate("probe", "").to_string())?;
        let data_packets = probed.iter().map(|one| one.data_packets).sum();
        let seconds = probed.iter().map(|one| one.seconds).sum();
        let (probes, passages) = probed.into_iter().map(|one| (one.probe, one.passage)).unzip();
        Ok(Self {
            probing: probing.clone(),
            estimate: Estimate::new(probes, &config),
            passages,
            data_packets,
            seconds,
            replay: None,
        })
    }

    /// Sends the film through the loop, for the measures that ask for it.
    ///
    /// # Errors
    /// What is wrong with the loop.
    pub(super) fn replay(&mut self, full: bool, run: u64) -> Result<(), ReproduceError> {
        let spec = &self.probing.spec;
        if let Some(through) = &spec.through {
            let runs = if full { spec.replays } else { spec.quick_replays };
            // Not the marks that the curve was measured with.
            let seed = mix(self.probing.loop_seed(run));
            let replay = Replay::new(through, spec.packet, spec.film, &self.estimate.curve, (runs, seed));
            self.replay = replay.map_err(|problem| problem.locate("probe", "").to_string())?;
        }
        Ok(())
    }

    /// The place of a rate among those that were probed.
    fn place(&self, rate: Rate) -> Option<usize> {
        self.estimate.probes.iter().position(|probe| probe.rate == rate)
    }

    /// Where the delays at a rate arose; not of a loop.
    pub(super) fn passage(&self, rate: Rate) -> Option<&Passage> {
        self.passages.get(self.place(rate)?)?.as_ref()
    }

    /// The delays at a rate, or of a part of them. A loop has no parts.
    pub(super) fn delays(&self, rate: Rate, part: Part) -> Option<&DelayHistogram> {
        match (self.passage(rate), part) {
            (Some(passage), part) => passage.part(part),
            (None, Part::Total) => Some(&self.estimate.probes.get(self.place(rate)?)?.delays),
            (None, _) => None,
        }
    }

    /// The autocorrelation of the congestion window at a rate, at lags up to `until`, as (lag in
    /// seconds, value).
    pub(super) fn correlation(&self, rate: Rate, until: Span) -> Option<Vec<[f64; 2]>> {
        let passage = self.passage(rate)?;
        let lags = usize::try_from(until.whole(passage.every)).unwrap_or(usize::MAX);
        if passage.windows.len() <= lags {
            return None;
        }
        let values = autocorrelation(&Series::new(passage.windows.clone()).ok()?, lags);
        let every = passage.every.as_secs_f64();
        Some(values.into_iter().enumerate().map(|(lag, value)| [lag as f64 * every, value]).collect())
    }

    /// The film.
    fn film(&self) -> Option<Video> {
        let config = VideoConfig { mean: self.probing.spec.film, ..VideoConfig::default() };
        Video::generate(&config, FILM_FRAMES, FILM_SEED).ok()
    }

    /// When each of the film's frames is handed over, in seconds.
    pub(super) fn film_times(&self) -> Vec<f64> {
        let film = self.film();
        let times = film.iter().flat_map(|film| (0..film.frames().len()).map(|frame| film.time(frame)));
        times.map(|time| time.as_secs_f64()).collect()
    }

    /// The delay bounds of the film's frames; `None` if its mean rate is not attained in the long
    /// run, where there are none.
    pub(super) fn film_bounds(&self) -> Option<Vec<f64>> {
        if self.probing.spec.film >= self.estimate.curve.long_term_rate() {
            return None;
        }
        let bounds = self.estimate.curve.delay_bounds(&self.film()?.arrivals());
        Some(bounds.into_iter().map(|bound| bound.as_secs_f64()).collect())
    }

    /// Of each packet of the film that was sent through the loop: when it was handed over, its
    /// delay bound, and the delay that it exceeded with the curve's probability; in seconds.
    pub(super) fn replayed(&self) -> Vec<[f64; 3]> {
        let of = |replay: &Replay| {
            let packets = replay.times.iter().zip(&replay.bounds).zip(&replay.quantiles);
            let seconds = packets.map(|((time, bound), met)| [time.since(Time::ZERO), *bound, *met]);
            seconds.map(|spans| spans.map(Span::as_secs_f64)).collect()
        };
        self.replay.as_ref().map(of).unwrap_or_default()
    }
}
