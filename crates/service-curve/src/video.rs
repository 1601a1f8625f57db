//! Frames of a synthetic video, for delay bounds of an application that matters.

use flowstart_units::{Bytes, Rate, Span, Time};

use crate::stats::SplitMix64;
use crate::{Arrivals, Error};

/// A generator of frame sizes: scenes of heavy-tailed length (hence long-range dependence), groups
/// of pictures that resemble the one before, and frames of three types.
///
/// size = scale · ratio(type) · exp(scene + group + sigma(type) · e), scaled to the mean rate. The
/// defaults give statistics inside those of the Arizona State University video trace library for
/// H.264 films (frame sizes: coefficient of variation 1.1, peak 18 times the mean; groups: 0.52 and
/// 5.2). The group of pictures is IBBPBBPBBPBB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VideoConfig {
    /// Frames per second; default 24.
    pub frames_per_second: u64,
    /// Mean rate; default 4 Mbit/s, as the film of the paper.
    pub mean: Rate,
    /// Mean size of I, P and B frames in proportion; default 4.0, 1.3, 0.6.
    pub ratio: [f64; 3],
    /// Standard deviation of the logarithm of I, P and B frames; default 0.15, 0.30, 0.35.
    pub sigma: [f64; 3],
    /// Standard deviation of the logarithm of a scene's level; default 0.45.
    pub scene_sigma: f64,
    /// Shortest scene; default 2 s.
    pub scene_min: Span,
    /// Longest scene; default 60 s.
    pub scene_max: Span,
    /// Shape of the Pareto distribution of scene lengths; default 1.5 (infinite variance without
    /// the longest scene).
    pub scene_shape: f64,
    /// Correlation of successive groups' levels, 0 .. 1; default 0.7.
    pub group_correlation: f64,
    /// Standard deviation of the logarithm of a group's level; default 0.15.
    pub group_sigma: f64,
    /// Correlation of successive frames, 0 .. 1; default 0.5.
    pub frame_correlation: f64,
}

impl Default for VideoConfig {
    fn default() -> Self {
        Self {
            frames_per_second: 24,
            mean: Rate::from_mbps(4),
            ratio: [4.0, 1.3, 0.6],
            sigma: [0.15, 0.30, 0.35],
            scene_sigma: 0.45,
            scene_min: Span::from_secs(2),
            scene_max: Span::from_secs(60),
            scene_shape: 1.5,
            group_correlation: 0.7,
            group_sigma: 0.15,
            frame_correlation: 0.5,
        }
    }
}

/// I, P and B frames of a group of pictures, as indices into ratios.
const GROUP: [usize; 12] = [0, 2, 2, 1, 2, 2, 1, 2, 2, 1, 2, 2];

/// Sizes of the frames of one video.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Video {
    frames: Vec<Bytes>,
    frames_per_second: u64,
}

impl Video {
    /// A video of so many frames. The same seed gives the same video everywhere.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] if there are no frames per second, a correlation is not in 0 .. 1
    /// or another number is negative or not finite.
    pub fn generate(config: &VideoConfig, frames: usize, seed: u64) -> Result<Self, Error> {
        config.validate()?;
        let per_second = config.frames_per_second as f64;
        let (mut normals, mut lengths) = (SplitMix64::new(seed), SplitMix64::new(seed.wrapping_add(1)));
        let (mut left, mut scene, mut group, mut noise) = (0.0, 0.0, 0.0, 0.0);
        let fresh = |correlation: f64| (1.0 - correlation * correlation).sqrt();
        let mut sizes = Vec::with_capacity(frames);
        for frame in 0..frames {
            if left <= 0.0 {
                let pareto = libm::pow(1.0 - lengths.unit(), -1.0 / config.scene_shape);
                let longest = per_second * config.scene_max.as_secs_f64();
                left = longest.min(per_second * config.scene_min.as_secs_f64() * pareto);
                scene = config.scene_sigma * normals.normal();
            }
            left -= 1.0;
            if frame % GROUP.len() == 0 {
                let step = config.group_sigma * fresh(config.group_correlation) * normals.normal();
                group = config.group_correlation * group + step;
            }
            let kind = GROUP[frame % GROUP.len()];
            noise = config.frame_correlation * noise + fresh(config.frame_correlation) * normals.normal();
            sizes.push(config.ratio[kind] * libm::exp(scene + group + config.sigma[kind] * noise));
        }
        let mean = sizes.iter().sum::<f64>() / frames.max(1) as f64;
        let scale = config.mean.as_bps() as f64 / 8.0 / per_second / mean;
        let bytes = |size: f64| Bytes::new(((size * scale).round_ties_even() as u64).max(1));
        Ok(Self { frames: sizes.into_iter().map(bytes).collect(), frames_per_second: config.frames_per_second })
    }

    /// A film with frames of these sizes.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] without frames, with frames without data only, or without frames
    /// per second.
    pub fn new(frames: Vec<Bytes>, frames_per_second: u64) -> Result<Self, Error> {
        if frames_per_second == 0 {
            return Err(Error::InvalidConfig("frames_per_second", "at least 1"));
        }
        if frames.iter().all(|size| *size == Bytes::ZERO) {
            return Err(Error::InvalidConfig("frames", "at least one that is not empty"));
        }
        Ok(Self { frames, frames_per_second })
    }

    /// Frames per second.
    #[must_use]
    pub fn frames_per_second(&self) -> u64 {
        self.frames_per_second
    }

    /// The mean rate from the first frame to a frame's time after the last; at least 1 bit/s.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        let bits: u64 = self.frames.iter().map(|size| size.bits()).fold(0, u64::saturating_add);
        let seconds = self.frames.len().max(1) as f64 / self.frames_per_second as f64;
        Rate::from_bps(((bits as f64 / seconds) as u64).max(1))
    }

    /// The sizes of the frames.
    #[must_use]
    pub fn frames(&self) -> &[Bytes] {
        &self.frames
    }

    /// When frame `index` is handed to the flow control.
    #[must_use]
    pub fn time(&self, index: usize) -> Time {
        Time::ZERO + Span::from_secs(1).mul_ratio(index as u64, self.frames_per_second)
    }

    /// The frames as arrivals, each at once (harder than spread over the time to the next).
    #[must_use]
    pub fn arrivals(&self) -> Arrivals {
        let frames = self.frames.iter().enumerate().map(|(index, size)| (self.time(index), *size));
        // Times grow with the index.
        Arrivals::new(frames).unwrap_or_default()
    }
}

impl VideoConfig {
    fn validate(&self) -> Result<(), Error> {
        if self.frames_per_second == 0 {
            return Err(Error::InvalidConfig("frames_per_second", "at least 1"));
        }
        let correlations = [self.group_correlation, self.frame_correlation];
        if correlations.iter().any(|c| !(0.0..1.0).contains(c)) {
            return Err(Error::InvalidConfig("correlations", "at least 0, below 1"));
        }
        let positive = [self.scene_shape].into_iter().chain(self.ratio);
        if positive.into_iter().any(|x| !(x > 0.0 && x.is_finite())) {
            return Err(Error::InvalidConfig("ratio and scene_shape", "above zero and finite"));
        }
        let others = [self.scene_sigma, self.group_sigma].into_iter().chain(self.sigma);
        if others.into_iter().any(|x| !(0.0..10.0).contains(&x)) {
            return Err(Error::InvalidConfig("standard deviations of logarithms", "at least 0, below 10"));
        }
        Ok(())
    }
}
