//! Constants of the adaptive schedule.

use flowstart_units::Span;

use super::super::again::ChirpingAgainConfig;
use super::super::belief::BeliefConfig;
use flowstart_control::InvalidConfig;

/// Most packets of a chirp on a path without noise.
const MAX_PACKETS: u32 = 64;

/// Constants of the adaptive schedule. Their source is this project's own measurements unless
/// another is named.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct AdaptiveChirpingConfig {
    /// Packets of every chirp but the first, which is of the initial window, 5 ..= 64; default 16
    /// (Paced Chirping).
    pub packets: u32,
    /// Share of the initial window that is the first chirp, above 0 and at most 1; default 0.8: a
    /// receiver that acknowledges every second or fourth packet acknowledges the last of eight. The
    /// rest of ten follows evenly in the rest of the round trip, and until the first chirp is read
    /// a packet leaves only when another has arrived: a path that holds the initial window and no
    /// more loses none.
    pub first_share: f64,
    /// The first chirp is centred on the handshake's RTT divided by this, at least 1; default 48
    /// (the authors' later code: 64, which fills 3.7 ms of queue at 20 Mbit/s and 20 ms).
    pub probe_divisor: u32,
    /// Shortest average gap of the first chirp, unless that would take longer than a round trip;
    /// default 200 µs (Paced Chirping).
    pub min_first_gap: Span,
    /// Longest average gap of the first chirp, and its gap without an RTT; default 1 ms (the
    /// authors' later code).
    pub max_first_gap: Span,
    /// First gap of a chirp divided by its average gap, 1 ..= 3; default 2 (Paced Chirping).
    pub geometry: f64,
    /// Without noise chirps are centred on the likely gap times this, 1 ..= 4: above 1 fewer
    /// packets queue behind the knee. Default 1.25.
    pub centre: f64,
    /// With noise they are centred on a smaller gap, so that the queue of a chirp, if the likely
    /// gap is the path's, would be at least this many standard deviations of the noise long, 0 ..=
    /// 100; default 4.
    pub rise: f64,
    /// But not on less than the likely gap times this, above 0 and at most 1; default 1/4.
    pub fastest_centre: f64,
    /// And they have more packets: this many standard deviations of the noise per gap, 0 ..= 100;
    /// default 8. Never more than half a round trip's, or 256.
    pub length: f64,
    /// Factor by which the load may grow per round trip if chirps show room for it, 1 ..= 16;
    /// default 8.
    pub growth: f64,
    /// The same while chirps are unclear, 1 ..= 4; default 1.5.
    pub blind_growth: f64,
    /// Packets per round trip up to which the load doubles while chirps are unclear, as in slow
    /// start; default 48.
    pub doubling_packets: u32,
    /// Fewest ACKs a chirp must have brought to be read; default 4.
    pub min_points: u32,
    /// Delays must rise by this many times their noise for a single chirp to show a knee; default
    /// 1.
    pub contrast: u32,
    /// A single chirp says nothing of the capacity if this share of a change of its gaps comes out
    /// at the other end, 0 ..= 1; default 0.6: others take more than half of the path.
    pub crowded: f64,
    /// A gap is plausible if its log-likelihood is less than this below that of the likeliest,
    /// above 0; default 1 (84 % of the ranges it makes would hold the true gap if the noise were
    /// Gaussian and its variance known; among random datagrams fewer do).
    pub plausible: f64,
    /// The path is crowded, so that chirps cannot tell what is to be had, if others take three
    /// quarters of it or more by a hypothesis whose log-likelihood is this much above all others',
    /// at least 0; default 4.
    pub crowded_margin: f64,
    /// The capacity is known when the largest gap that is not improbable is at most the smallest
    /// times this, at least 1; default 1.35 (three cells of the grid of hypotheses span 1.19).
    pub certain: f64,
    /// A gap is improbable if its log-likelihood is this far below that of the likeliest, above 0;
    /// default 2 (95 %, with the same reservation). To load too little for some chirps costs less
    /// than to end on an error.
    pub improbable: f64,
    /// Chirps that are remembered at least, 1 or more; default 16. On paths with more chirps per
    /// round trip, those of one round trip.
    pub memory: f64,
    /// Chirps that are remembered at most, at least `memory`; default 1000.
    pub most_memory: f64,
    /// The knee of a single chirp is taken as it is if the noise, of that chirp and of all, is less
    /// than its gap times this, 0 ..= 1; default 1/16.
    pub sharp: f64,
    /// Chirps in a row after which the capacity must have been known, at least 1; default 2.
    pub agreeing: u32,
    /// The load has reached the capacity if it differs by at most this share; default 1/4.
    pub tolerance: f64,
    /// RTTs in a row whose smallest is compared with the connection's smallest while chirps are
    /// unclear, at least 1; default 8 (HyStart).
    pub delay_samples: u32,
    /// Rise of that RTT that ends the start, as a share of the smallest RTT; default 1/8 (HyStart).
    pub delay_share: f64,
    /// The least such rise; default 2 ms.
    pub min_delay: Span,
    /// The largest such rise; default 16 ms (HyStart).
    pub max_delay: Span,
    /// While chirps are unclear: the load of the round before over what was delivered that counts
    /// as a plateau, at least 1; default 1.2.
    pub plateau: f64,
    /// Rounds of plateau in a row that end the start; default 1.
    pub plateau_rounds: u32,
    /// Losses that are not taken for congestion while the load is below half of what chirps have
    /// shown; default 3.
    pub pardoned_losses: u32,
    /// Factor of the window after a loss that is taken for congestion, 0 ..= 1; default 0.7 (CUBIC,
    /// RFC 9438).
    pub loss_factor: f64,
    /// Round trips after which the start ends in any case, at least 1; default 40.
    pub max_rounds: u32,
    /// A chirp in which two packets left further apart than this many planned gaps, because ACKs
    /// failed to come that let them go, says nothing, at least 1; default 2 (Paced Chirping).
    pub stall: f64,
    /// The same where the host was late, at least 1; default 8. Chirps are read by the gaps with
    /// which their packets did leave, so that one that waited does little harm.
    pub host_stall: f64,
    /// A host that sends more than this share of the packets later than planned by more than a gap
    /// cannot chirp: from then on they leave, and the start ends, as with HyStart; 0 ..= 1, default
    /// 1/16. Hosts that are busy with something else delay ACKs too, and what chirps say there is
    /// wrong.
    pub late_share: f64,
    /// Packets of chirps that must have left before that is judged, at least 1; default 24.
    pub late_after: u32,
    /// Share of a round's packets that must be marked to end the start, 0 ..= 1; default 1/2. A
    /// single mark says nothing: at a step-marking queue others' marks are normal.
    pub mark_share: f64,
    /// How chirps are set against hypotheses.
    pub belief: BeliefConfig,
    /// When chirps are sent again after the start.
    pub again: ChirpingAgainConfig,
}

impl Default for AdaptiveChirpingConfig {
    fn default() -> Self {
        Self {
            packets: 16,
            first_share: 0.8,
            probe_divisor: 48,
            min_first_gap: Span::from_micros(200),
            max_first_gap: Span::from_millis(1),
            geometry: 2.0,
            centre: 1.25,
            rise: 4.0,
            fastest_centre: 0.25,
            length: 8.0,
            growth: 8.0,
            blind_growth: 1.5,
            doubling_packets: 48,
            min_points: 4,
            contrast: 1,
            crowded: 0.6,
            plausible: 1.0,
            crowded_margin: 4.0,
            certain: 1.35,
            improbable: 2.0,
            memory: 16.0,
            most_memory: 1000.0,
            sharp: 1.0 / 16.0,
            agreeing: 2,
            tolerance: 0.25,
            delay_samples: 8,
            delay_share: 0.125,
            min_delay: Span::from_millis(2),
            max_delay: Span::from_millis(16),
            plateau: 1.2,
            plateau_rounds: 1,
            pardoned_losses: 3,
            loss_factor: 0.7,
            max_rounds: 40,
            stall: 2.0,
            host_stall: 8.0,
            late_share: 1.0 / 16.0,
            late_after: 24,
            mark_share: 0.5,
            belief: BeliefConfig::default(),
            again: ChirpingAgainConfig::default(),
        }
    }
}

impl AdaptiveChirpingConfig {
    /// Checks that every constant is in its range.
    ///
    /// # Errors
    /// Names the first field that is not, and what it must be.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let check = InvalidConfig::unless;
        let within = |x: f64, low: f64, high: f64| x >= low && x <= high;
        check((5..=MAX_PACKETS).contains(&self.packets), "packets", "between 5 and 64")?;
        check(self.first_share > 0.0 && self.first_share <= 1.0, "first_share", "more than 0 and at most 1")?;
        check(self.probe_divisor >= 1, "probe_divisor", "at least 1")?;
        check(!self.min_first_gap.is_zero(), "min_first_gap", "longer than zero")?;
        check(self.min_first_gap <= self.max_first_gap, "min_first_gap", "at most max_first_gap")?;
        check(within(self.geometry, 1.0, 3.0), "geometry", "between 1 and 3")?;
        check(within(self.centre, 1.0, 4.0), "centre", "between 1 and 4")?;
        check(within(self.rise, 0.0, 100.0), "rise", "between 0 and 100")?;
        check(self.fastest_centre > 0.0 && self.fastest_centre <= 1.0, "fastest_centre", "more than 0 and at most 1")?;
        check(within(self.length, 0.0, 100.0), "length", "between 0 and 100")?;
        check(within(self.growth, 1.0, 16.0), "growth", "between 1 and 16")?;
        check(within(self.blind_growth, 1.0, 4.0), "blind_growth", "between 1 and 4")?;
        check(self.min_points >= 2, "min_points", "at least 2")?;
        check(within(self.crowded, 0.0, 1.0), "crowded", "between 0 and 1")?;
        check(self.plausible > 0.0, "plausible", "more than 0")?;
        check(self.crowded_margin >= 0.0, "crowded_margin", "at least 0")?;
        check(self.improbable > 0.0, "improbable", "more than 0")?;
        check(self.certain >= 1.0, "certain", "at least 1")?;
        check(within(self.memory, 1.0, 1e6), "memory", "between 1 and 1000000")?;
        check(within(self.most_memory, self.memory, 1e6), "most_memory", "between memory and 1000000")?;
        check(within(self.sharp, 0.0, 1.0), "sharp", "between 0 and 1")?;
        check(self.agreeing >= 1, "agreeing", "at least 1")?;
        check(within(self.tolerance, 0.0, 1.0), "tolerance", "between 0 and 1")?;
        check(self.delay_samples >= 1, "delay_samples", "at least 1")?;
        check(within(self.delay_share, 0.0, 1.0), "delay_share", "between 0 and 1")?;
        check(self.min_delay <= self.max_delay, "min_delay", "at most max_delay")?;
        check(self.plateau >= 1.0, "plateau", "at least 1")?;
        check(self.plateau_rounds >= 1, "plateau_rounds", "at least 1")?;
        check(within(self.loss_factor, 0.0, 1.0), "loss_factor", "between 0 and 1")?;
        check(self.max_rounds >= 1, "max_rounds", "at least 1")?;
        check(self.stall >= 1.0, "stall", "at least 1")?;
        check(self.host_stall >= 1.0, "host_stall", "at least 1")?;
        check(within(self.late_share, 0.0, 1.0), "late_share", "between 0 and 1")?;
        check(self.late_after >= 1, "late_after", "at least 1")?;
        check(within(self.mark_share, 0.0, 1.0), "mark_share", "between 0 and 1")?;
        self.belief.validate()?;
        self.again.validate()
    }
}
