//! Constants of the adaptive schedule.

use flowstart_units::Span;

use super::super::again::ChirpingAgainConfig;
use super::super::batches::ClockConfig;
use super::super::belief::BeliefConfig;
use super::super::reading::ReadingRule;
use super::saturation::SaturationConfig;
use super::trial::TrialConfig;
use flowstart_control::{HystartConfig, InvalidConfig};

/// The end of the ranges of `packets` and `spare_points`.
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
    /// rest of ten follows, and until the first chirp is read a packet leaves only when another has
    /// arrived: a path that holds the initial window and no more loses none. No more than
    /// `packets` if a chirp of the whole window took longer than a round trip.
    pub first_share: f64,
    /// The first chirp is centred on the handshake's RTT divided by this, at least 1; default 48
    /// (the authors' later code: 64, which fills 3.7 ms of queue at 20 Mbit/s and 20 ms).
    pub probe_divisor: u32,
    /// Shortest average gap of the first chirp, unless that would take longer than `first_spread`
    /// allows; default 200 µs (Paced Chirping).
    pub min_first_gap: Span,
    /// Share of a round trip over which that may spread the initial window, 0 ..= 1; default 1/5.
    /// (With 1, transfers over 0.5 to 4 ms took up to 1.5 times as long as with HyStart, which
    /// sends a window at once.)
    pub first_spread: f64,
    /// HyStart that takes over counts round trips from the first ACK of a flow on where the
    /// smallest RTT is below this, at most 1 s; default 8 ms, four of its longest times between two
    /// ACKs of a train: there no pause tells where a burst begins, and what chirps have spread made
    /// a train of a whole round trip. On long ways it does so, too. Below it no chirp of more than
    /// `packets` goes beyond slow start's window before one was read, since the RTT may be one
    /// packet's time, and a first chirp that noise hides ends chirping at once.
    pub short_way: Span,
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
    /// The same for a new flow where most of the noise is jitter, of more than `doubtful_jitter` of
    /// the likely gap, 0 ..= 100; default 32: where packets keep their order one that is late holds
    /// up all behind it, and a few gaps close together cannot tell that from a queue. (With 4
    /// chirps held the load for five round trips at what jitter of 3 to 6 % of the RTT showed: of
    /// 240 idle paths 67 took more than 1.15 of HyStart's time, so 5.)
    pub doubtful_rise: f64,
    /// Share of the likely gap beyond which the standard deviation of jitter leaves doubt, 0 ..=
    /// 100; default 0.4. (With 0.3 starts among datagrams had 0.13 of HyStart's delay instead of
    /// 0.06, without any 0.18.)
    pub doubtful_jitter: f64,
    /// But not on less than the likely gap times this, above 0 and at most 1; default 1/4.
    pub fastest_centre: f64,
    /// Centres are tried one after the other, each this share of the one before, 0.1 ..= 0.99;
    /// default 0.9.
    pub centre_step: f64,
    /// What a chirp's first gap is of the one that it is centred on, about, where the queue that it
    /// would make is worked out; 1 ..= 4, default 2, as `geometry`.
    pub slowest_gap: f64,
    /// The same as `slowest_gap`, of its last gap; 0 ..= 0.99, default 1/4.
    pub fastest_gap: f64,
    /// And they have more packets: this many standard deviations of the noise per gap, 0 ..= 100;
    /// default 8. Never more than half a round trip's, or 256.
    pub length: f64,
    /// Factor by which the load may grow per round trip if chirps show room for it, 1 ..= 16;
    /// default 8.
    pub growth: f64,
    /// Packets per round trip beyond which the load grows at most as slow start's unless noise
    /// leaves no doubt (`clear`), any number; default 64.
    pub growth_packets: u32,
    /// Packets per round trip beyond which the load grows at most as slow start's, whatever chirps
    /// have shown; any number, default 512: behind a token bucket they show the wire, and a round
    /// trip of packets leaves before that is known.
    pub leap_packets: u32,
    /// A transfer of no more packets than this is started by HyStart until packets are marked;
    /// default 70, what slow start sends in three round trips from a window of ten: chirps save
    /// none of them. (Marks end HyStart at the first: 100 kB beside DCTCP took three times as
    /// long.)
    pub short_transfer: u32,
    /// So is a flow whose window has grown to more than this many initial windows before it had
    /// more to send than that, at least 1; default 2.
    pub latest_start: u32,
    /// What HyStart's window has room for when it takes over leaves at this many windows per round
    /// trip, not at once, at least 1; default 4.
    pub catch_up: u32,
    /// Round trips without a chirp that could be read after which the path cannot be, at least 0;
    /// default 1. The first chirp has no such grace if its ACKs were too few.
    pub patience: f64,
    /// ACKs come together if they arrive closer than their packets left, and than chirps say that
    /// the path lets packets go, times this, 0 ..= 1; default 1/2. They count as one point, at the
    /// time of the last.
    pub together: f64,
    /// A chirp is cut where one change of delay is more than this share of all of them, 0 ..= 1;
    /// default 1/2.
    pub step_share: f64,
    /// And more than this many mean gaps of the chirp, at least 0; default 4.
    pub step_gaps: f64,
    /// A chirp contradicts those before it if it shows a larger gap than they hold for plausible,
    /// and all that they do is by this much less likely by itself, 0 ..= 100; default 8.
    pub surprise: f64,
    /// So many contradictions in a row mean that the path has changed: what was known is forgotten,
    /// at least 1; default 2.
    pub surprises: u32,
    /// Round trips in which chirps held the load back without being sure, on a path with jitter,
    /// after which they cannot be believed, at least 1; default 5. (With 3, jitter on idle paths
    /// made HyStart take over so early that it lost more than alone.)
    pub held_rounds: u32,
    /// The same on other paths while the load is at most `crowded_packets`, at least 1; default 3.
    /// (Beside CUBIC or BBR behind PIE and CoDel chirps held the load at a tenth of the share for
    /// ten round trips.)
    pub crowded_rounds: u32,
    /// Packets per round trip up to which that holds, any number; default 100: with more, jitter of
    /// 8 packets' time made 23 of 64 flows lose packets, 6 so.
    pub crowded_packets: u32,
    /// There chirps also hold the load back in a round trip in which it grew by less than this
    /// factor, at least 1; default 1.5.
    pub held_growth: f64,
    /// Packets per round trip up to which the load is at least that of slow start at every ACK, not
    /// only when a chirp is complete, unless chirps have shown less room; any number; default 64: a
    /// chirp takes a quarter of the round trip then.
    pub follow_packets: u32,
    /// It goes by the smoothed RTT, or by the RTT of an ACK if that one is more than this many
    /// times as long, as after a link was silent; at least 1, default 2. (By the RTT of every ACK,
    /// jitter of 5 % of the RTT made 11 of 64 flows lose packets, 6 so.)
    pub stale_rtt: f64,
    /// HyStart that takes over from chirps that were read, on a path with jitter, grows its window
    /// by a packet per this many delivered, at least 1; default 2: by half per round trip. Chirps
    /// have spread its packets, so that an ACK train cannot tell it when to leave.
    pub late_divisor: u32,
    /// There a rise of RTTs by an eighth of the smallest ends it, too, on a way below
    /// `short_way`, if it is more than this many standard deviations of the jitter, 0 ..= 1000;
    /// default 2: hardly ever are the `delay_samples` RTTs that are looked at all so late by
    /// chance. (HyStart's 4 ms are most of a buffer of one BDP: 8 flows over 500 to 900 Mbit/s
    /// and 5 to 6 ms with 120 to 300 us of jitter lost 864 to 1340 packets, so 254 to 744, and
    /// 10 MB took 1.08 to 1.14 of HyStart's time, so 1.01 to 1.06. On longer ways it cost beside
    /// greedy flows.)
    pub late_rise: f64,
    /// Gap of the rest of the initial window, in gaps of the first chirp, above 0; default 2. Never
    /// longer than the initial window spread over a round trip. If a chirp of all of it took
    /// longer, the rest leaves as what HyStart takes over does (`catch_up`).
    pub rest_gap: f64,
    /// Points that a chirp is to have beyond `min_points`, 0 ..= 64; default 2. Where ACKs come in
    /// batches chirps are as much longer.
    pub spare_points: u32,
    /// Where ACKs come by a clock, a chirp says something only if it has at least so many packets
    /// per tick, at least 1; default 4.
    pub per_tick: u32,
    /// Chirps are refuted by a round trip that delivered this many times the most that they hold
    /// for plausible, at least 1; default 1.1.
    pub refuted: f64,
    /// Fewest ACKs a chirp must have brought to be read; default 4.
    pub min_points: u32,
    /// Delays must rise by this many times their noise for a single chirp to show a knee; default
    /// 1.
    pub contrast: u32,
    /// A single chirp says nothing of the capacity if this share of a change of its gaps comes out
    /// at the other end, 0 ..= 1; default 0.6: others take more than half of the path.
    pub crowded: f64,
    /// A packet of a chirp may be the knee if that leaves at most this many times the least noise,
    /// at least 1; default 3. The last such packet is.
    pub level: u32,
    /// Or at most this share of what the delays differ by, 0 ..= 1; default 1/32: among packets
    /// that do not queue any may leave the least.
    pub level_share: f64,
    /// A gap is plausible if its log-likelihood is less than this below that of the likeliest,
    /// above 0; default 1 (84 % of the ranges it makes would hold the true gap if the noise were
    /// Gaussian and its variance known; among random datagrams fewer do).
    pub plausible: f64,
    /// The path is crowded, so that chirps cannot tell what is to be had, if others take three
    /// quarters of it or more (`belief.crowded_share`) by a hypothesis whose log-likelihood is this
    /// much above all others', at least 0; default 12: with 4 long jitter on an idle path looked
    /// like others.
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
    /// Round trips for which chirps must have agreed, at least 1: with 1 those of a single one,
    /// which is the default. (2 cost three times the delay among datagrams, and completion times
    /// were the same.)
    pub full_rounds: f64,
    /// The same where the noise is not less than `clear` of the gap, or packets were marked, at
    /// least 1; default 3. (A single round of jitter can look like a queue twice.)
    pub noisy_rounds: f64,
    /// Chirps in a row that must have agreed there, at least 1; default 6. (Three round trips of
    /// few packets have only two, with which four of 64 starts ended at a fiftieth of the
    /// capacity.)
    pub noisy_agreeing: u32,
    /// Share of the gap, of the load's or the path's, below which noise leaves no doubt, 0 ..= 1;
    /// default 1/4. (With 1/8 hosts' own noise made starts last two round trips longer: over QUIC
    /// 1 MB took 152 to 157 ms instead of 142 to 149.)
    pub clear: f64,
    /// Noise that is more than this share of the smallest RTT drowns chirps, 0 ..= 1; default 1/50:
    /// half a round trip of packets around the path's gap make a queue of a seventh of the round
    /// trip, which is then hardly more than what jitter does by itself.
    pub drowned: f64,
    /// The same on a short way (`short_way`) for a new flow, 0 ..= 1; default 1/100: chirps that
    /// doubt grow more slowly for longer than HyStart takes for all. (With 1/50 1 MB took up to 1.3
    /// of its time at 500 to 900 Mbit/s, 5 ms and 250 to 300 us of jitter; with 1/200 jitter of a
    /// fiftieth of the RTT cost four times the packets.)
    pub short_drowned: f64,
    /// The load has reached the capacity if it differs by at most this share; default 1/4.
    pub tolerance: f64,
    /// Fewest RTTs of a round whose smallest is compared with the connection's smallest while
    /// chirps are unclear or say that the load is all there is, at least 1; default 8 (HyStart).
    pub delay_samples: u32,
    /// Rise of that RTT that ends the start, as a share of the smallest RTT; default 1/8 (HyStart).
    pub delay_share: f64,
    /// The least such rise; default 2 ms.
    pub min_delay: Span,
    /// The largest such rise; default 16 ms (HyStart).
    pub max_delay: Span,
    /// Packets below which a window does not end the start by delays that have risen, or by a rate
    /// that stays behind, of a new flow without marks: HyStart goes on; any number, default 16
    /// (`hystart_low_window` of Linux).
    pub least_window: u32,
    /// While chirps are unclear: the load of the round before over what was delivered that counts
    /// as a plateau, at least 1; default 1.2.
    pub plateau: f64,
    /// Rounds of plateau in a row that end the start; default 3 (BBR's full-pipe test).
    pub plateau_rounds: u32,
    /// Losses that are not taken for congestion while the load is below half of what chirps have
    /// shown; default 3.
    pub pardoned_losses: u32,
    /// More than this share of the packets of two round trips, found missing by more ACKs than
    /// `pardoned_losses`, are lost neither at random nor by a silence: then what chirps have shown
    /// does not count; 0 ..= 1, default 0.1 (as for trains that look for fair queuing).
    pub loss_share: f64,
    /// Factor of the window after a loss that is taken for congestion, 0 ..= 1; default 0.7 (CUBIC,
    /// RFC 9438).
    pub loss_factor: f64,
    /// Round trips after which the path counts as one that cannot be read, at least 1; default 40.
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
    /// When ACKs come by a clock.
    pub clock: ClockConfig,
    /// When HyStart, having taken over, takes the path for full.
    pub saturation: SaturationConfig,
    /// When what was found turns out to be too much once the start is over.
    pub trial: TrialConfig,
    /// How chirps are set against hypotheses.
    pub belief: BeliefConfig,
    /// When chirps are sent again after the start.
    pub again: ChirpingAgainConfig,
    /// Constants of the HyStart that takes over where chirps cannot be read.
    pub hystart: HystartConfig,
}

impl Default for AdaptiveChirpingConfig {
    fn default() -> Self {
        Self {
            packets: 16,
            first_share: 0.8,
            probe_divisor: 48,
            min_first_gap: Span::from_micros(200),
            first_spread: 0.2,
            short_way: Span::from_millis(8),
            max_first_gap: Span::from_millis(1),
            geometry: 2.0,
            centre: 1.25,
            rise: 4.0,
            doubtful_rise: 32.0,
            doubtful_jitter: 0.4,
            fastest_centre: 0.25,
            centre_step: 0.9,
            slowest_gap: 2.0,
            fastest_gap: 0.25,
            length: 8.0,
            growth: 8.0,
            growth_packets: 64,
            leap_packets: 512,
            short_transfer: 70,
            latest_start: 2,
            catch_up: 4,
            patience: 1.0,
            together: 0.5,
            step_share: 0.5,
            step_gaps: 4.0,
            surprise: 8.0,
            surprises: 2,
            held_rounds: 5,
            crowded_rounds: 3,
            crowded_packets: 100,
            held_growth: 1.5,
            follow_packets: 64,
            stale_rtt: 2.0,
            late_divisor: 2,
            late_rise: 2.0,
            rest_gap: 2.0,
            spare_points: 2,
            per_tick: 4,
            refuted: 1.1,
            min_points: 4,
            contrast: 1,
            crowded: 0.6,
            level: 3,
            level_share: 1.0 / 32.0,
            plausible: 1.0,
            crowded_margin: 12.0,
            certain: 1.35,
            improbable: 2.0,
            memory: 16.0,
            most_memory: 1000.0,
            sharp: 1.0 / 16.0,
            agreeing: 2,
            full_rounds: 1.0,
            drowned: 0.02,
            short_drowned: 0.01,
            noisy_rounds: 3.0,
            noisy_agreeing: 6,
            clear: 0.25,
            tolerance: 0.25,
            delay_samples: 8,
            delay_share: 0.125,
            min_delay: Span::from_millis(2),
            max_delay: Span::from_millis(16),
            least_window: 16,
            plateau: 1.2,
            plateau_rounds: 3,
            pardoned_losses: 3,
            loss_share: 0.1,
            loss_factor: 0.7,
            max_rounds: 40,
            stall: 2.0,
            host_stall: 8.0,
            late_share: 1.0 / 16.0,
            late_after: 24,
            clock: ClockConfig::default(),
            saturation: SaturationConfig::default(),
            trial: TrialConfig::default(),
            belief: BeliefConfig::default(),
            again: ChirpingAgainConfig::default(),
            hystart: HystartConfig::default(),
        }
    }
}

impl AdaptiveChirpingConfig {
    /// When a single chirp says something, and what.
    #[must_use]
    pub fn reading(&self) -> ReadingRule {
        ReadingRule {
            min_points: self.min_points as usize,
            contrast: u64::from(self.contrast),
            crowded: self.crowded,
            level: u64::from(self.level),
            level_share: self.level_share,
        }
    }

    /// The rise of an RTT that says that a queue stands.
    pub(super) fn rise_of(&self, min_rtt: Span) -> Span {
        let share = Span::from_nanos((min_rtt.as_nanos() as f64 * self.delay_share) as u64);
        share.max(self.min_delay).min(self.max_delay)
    }

    /// Centre of the next chirp: with much noise it tries smaller gaps, so that they make a queue
    /// that can be seen, and that jitter cannot make, if that is what most of it is (else zero).
    pub(super) fn centre_of(&self, likely: u64, packets: usize, noise: f64, jitter: f64) -> u64 {
        let likely = likely as f64;
        // The gaps fall evenly; those below the likely gap
        // make a queue, each what it is short of it.
        let queue = |centre: f64| {
            let (first, last) = (self.slowest_gap * centre, self.fastest_gap * centre);
            let reach = f64::min(first, 1.0);
            packets as f64 * likely * (reach - last).max(0.0) / (first - last) * (1.0 - (reach + last) / 2.0)
        };
        let rise = if jitter > likely * self.doubtful_jitter { self.doubtful_rise } else { self.rise };
        let mut centre = self.centre;
        while centre > self.fastest_centre && queue(centre) < rise * noise {
            centre *= self.centre_step;
        }
        ((likely * centre) as u64).max(1)
    }

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
        check(within(self.first_spread, 0.0, 1.0), "first_spread", "between 0 and 1")?;
        check(self.short_way <= Span::from_secs(1), "short_way", "at most 1 s")?;
        check(within(self.geometry, 1.0, 3.0), "geometry", "between 1 and 3")?;
        check(within(self.centre, 1.0, 4.0), "centre", "between 1 and 4")?;
        check(within(self.rise, 0.0, 100.0), "rise", "between 0 and 100")?;
        check(within(self.doubtful_rise, 0.0, 100.0), "doubtful_rise", "between 0 and 100")?;
        check(within(self.doubtful_jitter, 0.0, 100.0), "doubtful_jitter", "between 0 and 100")?;
        check(self.fastest_centre > 0.0 && self.fastest_centre <= 1.0, "fastest_centre", "more than 0 and at most 1")?;
        check(within(self.centre_step, 0.1, 0.99), "centre_step", "between 0.1 and 0.99")?;
        check(within(self.slowest_gap, 1.0, 4.0), "slowest_gap", "between 1 and 4")?;
        check(within(self.fastest_gap, 0.0, 0.99), "fastest_gap", "between 0 and 0.99")?;
        check(within(self.length, 0.0, 100.0), "length", "between 0 and 100")?;
        check(within(self.growth, 1.0, 16.0), "growth", "between 1 and 16")?;
        check(self.latest_start >= 1, "latest_start", "at least 1")?;
        check(self.catch_up >= 1, "catch_up", "at least 1")?;
        check(self.per_tick >= 1, "per_tick", "at least 1")?;
        check(self.refuted >= 1.0, "refuted", "at least 1")?;
        check(within(self.patience, 0.0, 1000.0), "patience", "between 0 and 1000")?;
        check(within(self.together, 0.0, 1.0), "together", "between 0 and 1")?;
        check(within(self.step_share, 0.0, 1.0), "step_share", "between 0 and 1")?;
        check(self.step_gaps >= 0.0, "step_gaps", "at least 0")?;
        check(within(self.surprise, 0.0, 100.0), "surprise", "between 0 and 100")?;
        check(self.surprises >= 1, "surprises", "at least 1")?;
        check(self.held_rounds >= 1, "held_rounds", "at least 1")?;
        check(self.crowded_rounds >= 1, "crowded_rounds", "at least 1")?;
        check(within(self.held_growth, 1.0, 16.0), "held_growth", "between 1 and 16")?;
        check(self.stale_rtt >= 1.0, "stale_rtt", "at least 1")?;
        check(self.late_divisor >= 1, "late_divisor", "at least 1")?;
        check(within(self.late_rise, 0.0, 1000.0), "late_rise", "between 0 and 1000")?;
        check(within(self.noisy_rounds, 1.0, 1000.0), "noisy_rounds", "between 1 and 1000")?;
        check(self.noisy_agreeing >= 1, "noisy_agreeing", "at least 1")?;
        check(within(self.drowned, 0.0, 1.0), "drowned", "between 0 and 1")?;
        check(within(self.short_drowned, 0.0, 1.0), "short_drowned", "between 0 and 1")?;
        check(within(self.clear, 0.0, 1.0), "clear", "between 0 and 1")?;
        check(self.rest_gap > 0.0 && self.rest_gap.is_finite(), "rest_gap", "more than 0")?;
        check(within(self.full_rounds, 1.0, 1000.0), "full_rounds", "between 1 and 1000")?;
        check(self.min_points >= 2, "min_points", "at least 2")?;
        check(self.spare_points <= MAX_PACKETS, "spare_points", "at most 64")?;
        check(within(self.crowded, 0.0, 1.0), "crowded", "between 0 and 1")?;
        check(self.level >= 1, "level", "at least 1")?;
        check(within(self.level_share, 0.0, 1.0), "level_share", "between 0 and 1")?;
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
        check(within(self.loss_share, 0.0, 1.0), "loss_share", "between 0 and 1")?;
        check(within(self.loss_factor, 0.0, 1.0), "loss_factor", "between 0 and 1")?;
        check(self.max_rounds >= 1, "max_rounds", "at least 1")?;
        check(self.stall >= 1.0, "stall", "at least 1")?;
        check(self.host_stall >= 1.0, "host_stall", "at least 1")?;
        check(within(self.late_share, 0.0, 1.0), "late_share", "between 0 and 1")?;
        check(self.late_after >= 1, "late_after", "at least 1")?;
        self.clock.validate()?;
        self.saturation.validate()?;
        self.trial.validate()?;
        self.belief.validate()?;
        self.again.validate()?;
        self.hystart.validate()
    }
}
