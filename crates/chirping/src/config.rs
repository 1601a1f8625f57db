//! Constants of Paced Chirping.

use alloc::vec;
use alloc::vec::Vec;

use flowstart_control::InvalidConfig;
use flowstart_units::Span;

use super::analysis::ExcursionRule;
use super::flight::MAX_CHIRP;
use super::geometry::ratio_from_f64;

/// When the pipe counts as full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "snake_case")
)]
pub enum EndRule {
    /// When the packets in flight do, at the estimated rate; see `full`.
    #[default]
    InFlight,
    /// When the chirps planned in a round, each with its average gap behind it, take a smoothed
    /// round-trip time or longer: they follow each other without a pause (Misund and
    /// Briscoe, first paper; authors' first code, which looks at every ACK).
    RoundLength,
}

/// The first design's adaptation of gain and geometry to how much estimates scatter (Misund and
/// Briscoe, first paper, Figure 3; in the authors' first code it is present, but switched off). The
/// scatter is the average, with weight 1/2, of how far an estimate is from the average gap.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct AdaptationConfig {
    /// Estimates that scatter more than this are noisy; default 30 µs (authors' code).
    pub noisy_above: Span,
    /// Gain while they are noisy, 1 ..= 16; default 1.2 (authors' code).
    pub noisy_gain: f64,
    /// What a noisy estimate adds to the geometry; default 0.4 (authors' code).
    pub noisy_geometry: f64,
    /// Widest geometry that noise leads to, 1 ..= 3; default 2 (authors' code).
    pub widest: f64,
    /// What a quiet estimate adds to the gain; default 0.2 (authors' code).
    pub quiet_gain: f64,
    /// Largest gain, 1 ..= 16; default 3 (authors' code).
    pub largest_gain: f64,
    /// What a quiet estimate takes from the geometry; default 0.2 (authors' code).
    pub quiet_geometry: f64,
    /// Narrowest geometry that quiet leads to, 1 ..= 3; default 1.2 (authors' code).
    pub narrowest: f64,
}

impl Default for AdaptationConfig {
    fn default() -> Self {
        Self {
            noisy_above: Span::from_micros(30),
            noisy_gain: 1.2,
            noisy_geometry: 0.4,
            widest: 2.0,
            quiet_gain: 0.2,
            largest_gain: 3.0,
            quiet_geometry: 0.2,
            narrowest: 1.2,
        }
    }
}

impl AdaptationConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        let within = |x: f64, low: f64, high: f64| x >= low && x <= high;
        let check = InvalidConfig::unless;
        check(within(self.noisy_gain, 1.0, 16.0), "noisy_gain", "between 1 and 16")?;
        check(within(self.largest_gain, 1.0, 16.0), "largest_gain", "between 1 and 16")?;
        check(within(self.widest, 1.0, 3.0), "widest", "between 1 and 3")?;
        check(within(self.narrowest, 1.0, self.widest), "narrowest", "between 1 and widest")?;
        check(within(self.noisy_geometry, 0.0, 3.0), "noisy_geometry", "between 0 and 3")?;
        check(within(self.quiet_geometry, 0.0, 3.0), "quiet_geometry", "between 0 and 3")?;
        check(within(self.quiet_gain, 0.0, 16.0), "quiet_gain", "between 0 and 16")
    }
}

/// Constants of Paced Chirping. The defaults are the published round-based schedule: paper 1 is
/// Misund and Briscoe, "Rapid flow start with very low queuing delay" (IEEE GI 2019), paper 2 is
/// "Rethinking TCP start-up" (netdev 0x13, 2019), the rest comes from the authors' public kernel
/// modules.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct PacedChirpingConfig {
    /// Packets of the first chirps; the last entry holds for all later ones. Each 2 ..= 256;
    /// default 5, 5, 8, 8, 16 (authors' code).
    pub packets: Vec<u32>,
    /// Average gap of the first chirp; default 200 µs, about 60 Mbit/s with packets of 1500 bytes
    /// (authors' code).
    pub initial_gap: Span,
    /// First gap of a chirp divided by its average gap, 1 ..= 3; default 2 (paper 1, "geometry").
    pub geometry: f64,
    /// Chirps in the first rounds; default 2 (paper 2, M).
    pub initial_chirps: f64,
    /// Factor by which the number of chirps grows from round to round, 1 ..= 16; default 2 (papers
    /// 1 and 2, "gain").
    pub gain: f64,
    /// Chirps that must have been planned before their number per round grows; default 6, the first
    /// three rounds (authors' code).
    pub grow_after: u32,
    /// Weight of a new estimate in the average gap, 0 ..= 1; default 1/2 (authors' code).
    pub smoothing: f64,
    /// Packets an excursion of the delay needs to count if it ends within the chirp; default 5
    /// (authors' code, L).
    pub excursion_packets: u32,
    /// Share of its peak above which an excursion lives on, 0 ..= 1; default 0.625 (authors' code).
    pub excursion_survival: f64,
    /// Estimates are raised to this gap; default 30 µs, about 400 Mbit/s with packets of 1500 bytes
    /// (authors' code).
    pub min_gap: Span,
    /// Estimates are lowered to this gap; default 10 ms, about 1.2 Mbit/s (authors' code).
    pub max_gap: Span,
    /// A chirp in which two packets left further apart than this many planned gaps says nothing, at
    /// least 1; default 2 (the authors' code compares with the gap before, which is a little
    /// longer).
    pub stall: f64,
    /// How gain and geometry adapt to the scatter of estimates; default not at all, as in the
    /// authors' later code.
    pub adaptation: Option<AdaptationConfig>,
    /// When the pipe counts as full; default "in_flight".
    pub ends: EndRule,
    /// The start ends when, at the completion of a chirp, the packets in flight reach this share of
    /// the smallest RTT divided by the average gap, 0 < share <= 1; default 0.85. The authors add
    /// up the length of chirps instead, which never ends on some paths; chirps back to back send at
    /// 0.895 of the estimated rate, so a share above that would not end either.
    pub full: f64,
    /// The first chirp, counted from 0, after whose analysis the start may end; default 4: only
    /// chirps of full length count.
    pub full_from_chirp: u32,
    /// Slowest pace after the start, as a gap; default 5 ms (authors' code).
    pub max_exit_gap: Span,
    /// Rounds of chirps back to back after which the start ends even if the packets in flight did
    /// not reach their goal; default 3. One such round fills the pipe, so this bound only matters
    /// if estimates fail.
    pub saturated_rounds: u32,
    /// Rounds after which the start ends in any case; default 32: a window that doubled so often
    /// has no bound left.
    pub max_rounds: u32,
}

impl Default for PacedChirpingConfig {
    fn default() -> Self {
        Self {
            packets: vec![5, 5, 8, 8, 16],
            initial_gap: Span::from_micros(200),
            geometry: 2.0,
            initial_chirps: 2.0,
            gain: 2.0,
            grow_after: 6,
            smoothing: 0.5,
            excursion_packets: 5,
            excursion_survival: 0.625,
            min_gap: Span::from_micros(30),
            max_gap: Span::from_millis(10),
            stall: 2.0,
            adaptation: None,
            ends: EndRule::InFlight,
            full: 0.85,
            full_from_chirp: 4,
            max_exit_gap: Span::from_millis(5),
            saturated_rounds: 3,
            max_rounds: 32,
        }
    }
}

impl PacedChirpingConfig {
    /// Checks that every constant is in its range.
    ///
    /// # Errors
    /// Names the first field that is not, and what it must be.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let within = |x: f64, low: f64, high: f64| x >= low && x <= high;
        let sizes = 2..=MAX_CHIRP as u32;
        let check = InvalidConfig::unless;
        check(!self.packets.is_empty(), "packets", "a list of at least one number")?;
        check(self.packets.iter().all(|n| sizes.contains(n)), "packets", "a list of numbers from 2 to 256")?;
        check(!self.initial_gap.is_zero(), "initial_gap", "longer than zero")?;
        check(within(self.geometry, 1.0, 3.0), "geometry", "between 1 and 3")?;
        check(within(self.initial_chirps, 1.0, 1e6), "initial_chirps", "between 1 and 1000000")?;
        check(within(self.gain, 1.0, 16.0), "gain", "between 1 and 16")?;
        check(within(self.smoothing, 0.0, 1.0), "smoothing", "between 0 and 1")?;
        check(within(self.excursion_survival, 0.0, 1.0), "excursion_survival", "between 0 and 1")?;
        check(!self.min_gap.is_zero(), "min_gap", "longer than zero")?;
        check(self.min_gap <= self.max_gap, "min_gap", "at most max_gap")?;
        check(within(self.stall, 1.0, 1e6), "stall", "between 1 and 1000000")?;
        self.adaptation.as_ref().map_or(Ok(()), AdaptationConfig::validate)?;
        check(self.full > 0.0 && self.full <= 1.0, "full", "above 0 and at most 1")?;
        check(!self.max_exit_gap.is_zero(), "max_exit_gap", "longer than zero")?;
        check(self.saturated_rounds >= 1, "saturated_rounds", "at least 1")?;
        check(self.max_rounds >= 1, "max_rounds", "at least 1")
    }

    /// Packets of chirp `number`, counted from 0.
    pub(super) fn packets_of(&self, number: u32) -> u32 {
        let given = self.packets.get(number as usize).or(self.packets.last()).copied();
        given.unwrap_or(2).clamp(2, MAX_CHIRP as u32)
    }

    pub(super) fn excursion_rule(&self) -> ExcursionRule {
        ExcursionRule {
            min_packets: self.excursion_packets as usize,
            survival: ratio_from_f64(self.excursion_survival),
        }
    }
}
