//! Constants of Paced Chirping.

use flowstart_control::InvalidConfig;
use flowstart_units::Span;

use super::analysis::ExcursionRule;
use super::flight::MAX_CHIRP;
use super::geometry::ratio_from_f64;

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
    /// Packets of the first chirps; the last entry holds for all later ones. Each 2 ..= 64; default
    /// 5, 5, 8, 8, 16 (authors' code).
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
        check(self.packets.iter().all(|n| sizes.contains(n)), "packets", "a list of numbers from 2 to 64")?;
        check(!self.initial_gap.is_zero(), "initial_gap", "longer than zero")?;
        check(within(self.geometry, 1.0, 3.0), "geometry", "between 1 and 3")?;
        check(within(self.initial_chirps, 1.0, 1e6), "initial_chirps", "between 1 and 1000000")?;
        check(within(self.gain, 1.0, 16.0), "gain", "between 1 and 16")?;
        check(within(self.smoothing, 0.0, 1.0), "smoothing", "between 0 and 1")?;
        check(within(self.excursion_survival, 0.0, 1.0), "excursion_survival", "between 0 and 1")?;
        check(!self.min_gap.is_zero(), "min_gap", "longer than zero")?;
        check(self.min_gap <= self.max_gap, "min_gap", "at most max_gap")?;
        check(within(self.stall, 1.0, 1e6), "stall", "between 1 and 1000000")?;
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
