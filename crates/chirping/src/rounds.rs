//! The published schedule: rounds of more and more chirps per round-trip time, until they follow
//! each other without a pause.
//!
//! | round | begins when | chirps × packets |
//! |---|---|---|
//! | 1 | at once | 2 × 5 |
//! | 2 | chirp 0 was analysed | 2 × 8 |
//! | 3 | the first ACK of round 2's first chirp | 2 × 16 |
//! | r > 3 | the first ACK of round r-1's first chirp | 4, 8, … × 16 |

use flowstart_units::{Span, Time};

use super::analysis::{ExcursionRule, estimate};
use super::config::{AdaptationConfig, EndRule, PacedChirpingConfig};
use super::flight::Measured;
use super::geometry::{self, Geometry, guard, ratio_from_f64, smooth};
use super::schedule::{Before, Plan, Pull, Schedule, exit, packets_in};
use flowstart_control::{Ack, Exit, ExitReason, NewMss, Next, Window};

/// Chirps may be planned this far ahead of the packets the window allows, so that the window never
/// limits a chirp.
const CHIRPS_AHEAD: u32 = 2;

/// The round in progress.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Counted from 1.
    number: u32,
    /// Number of its first chirp.
    first: u32,
    /// Chirps planned in it.
    planned: u32,
    /// Chirps of it that follow the chirp before without more than the average gap.
    saturated: u32,
    /// Chirps it may have, in units of 1/1024.
    quota: u64,
    /// Sum of its chirps planned so far, each with its average gap behind it, ns.
    length: u64,
}

impl Round {
    fn chirps(&self) -> u32 {
        u32::try_from(self.quota / geometry::RATIO_ONE).unwrap_or(u32::MAX).max(1)
    }
}

/// The published schedule in operation. [`PacedChirpingConfig`] says where its rules come from.
#[derive(Clone, Debug)]
pub struct Rounds {
    config: PacedChirpingConfig,
    rule: ExcursionRule,
    mss: u32,
    pub(super) gap: u64,
    gain: f64,
    geometry: f64,
    /// How far estimates are from the average gap, ns: an average with weight 1/2.
    scatter: u64,
    /// Chirps planned so far: the number of the next one.
    chirps: u32,
    round: Round,
    saturated_rounds: u32,
    /// Chirps up to this number (exclusive) were analysed or given up.
    pub(super) analysed: u32,
    pub(super) last_estimate: Option<u64>,
}

impl Rounds {
    pub(super) fn new(config: &PacedChirpingConfig, mss: u32) -> Self {
        Self {
            rule: config.excursion_rule(),
            mss: mss.max(1),
            gap: config.initial_gap.as_nanos().max(1),
            gain: config.gain,
            geometry: config.geometry,
            scatter: 0,
            chirps: 0,
            round: Round {
                number: 1,
                first: 0,
                planned: 0,
                saturated: 0,
                quota: ratio_from_f64(config.initial_chirps),
                length: 0,
            },
            saturated_rounds: 0,
            analysed: 0,
            last_estimate: None,
            config: config.clone(),
        }
    }

    pub(super) fn round(&self) -> u32 {
        self.round.number
    }

    /// The next round begins; it has more chirps if the one before used all of its own.
    fn begin_round(&mut self) {
        let used_up = self.round.planned >= self.round.chirps();
        let saturated = self.round.planned > 0 && self.round.saturated == self.round.planned;
        self.saturated_rounds = if saturated { self.saturated_rounds.saturating_add(1) } else { 0 };
        if used_up && self.chirps >= self.config.grow_after {
            let gain = u128::from(ratio_from_f64(self.gain));
            let grown = u128::from(self.round.quota) * gain / u128::from(geometry::RATIO_ONE);
            // Beyond any window, so that nothing overflows later.
            self.round.quota = u64::try_from(grown).unwrap_or(u64::MAX).min(u64::from(u32::MAX) * geometry::RATIO_ONE);
        }
        let number = self.round.number.saturating_add(1);
        self.round = Round { number, first: self.chirps, planned: 0, saturated: 0, length: 0, ..self.round };
    }

    /// Gain and geometry after an estimate that was so far from the average gap.
    fn adapt(&mut self, distance: u64) {
        let Some(rules) = &self.config.adaptation else { return };
        let AdaptationConfig { widest, narrowest, .. } = *rules;
        self.scatter = smooth(self.scatter, distance, geometry::RATIO_ONE / 2);
        if self.scatter > rules.noisy_above.as_nanos() {
            self.gain = rules.noisy_gain;
            self.geometry = (self.geometry + rules.noisy_geometry).min(widest);
        } else {
            self.gain = (self.gain + rules.quiet_gain).min(rules.largest_gain);
            self.geometry = (self.geometry - rules.quiet_geometry).max(narrowest);
        }
    }

    /// True if the chirps of the round take a round-trip time.
    fn is_back_to_back(&self, ack: &Ack) -> bool {
        !ack.srtt.is_zero() && self.round.length >= ack.srtt.as_nanos()
    }

    /// True if the packets in flight fill the path at the estimated rate.
    fn is_full(&self, ack: &Ack) -> bool {
        let share = u128::from(ratio_from_f64(self.config.full));
        let goal = u128::from(ack.min_rtt.as_nanos()) * share;
        let have = u128::from(ack.in_flight) * u128::from(self.gap) * u128::from(geometry::RATIO_ONE);
        self.analysed > self.config.full_from_chirp && ack.min_rtt != Span::MAX && have >= goal
    }
}

impl Schedule for Rounds {
    // The authors' pacer asks for the next chirp when the one before is used up, one guard interval
    // before it leaves.
    const PLANS_ANEW: bool = false;

    fn pull(&mut self, now: Time, number: u32, next: &Next, _window: &Window, before: Option<&Before>) -> Pull {
        let packets = self.config.packets_of(number);
        if next.queued < u64::from(packets) {
            return Pull::Unchirped;
        }
        if self.round.planned >= self.round.chirps() {
            if next.in_flight > 0 {
                return Pull::Hold;
            }
            // No ACK is left that could begin the next round.
            self.begin_round();
        }
        let shape = Geometry::new(packets, self.gap, ratio_from_f64(self.geometry));
        let pause = guard(self.gap, shape.length(), next.srtt.as_nanos(), self.round.quota);
        self.round.planned += 1;
        self.round.saturated += u32::from(pause == self.gap);
        self.round.length = self.round.length.saturating_add(shape.length()).saturating_add(self.gap);
        self.chirps = number.saturating_add(1);
        let at = before.map_or(now, |before| before.after.max(now));
        Pull::Chirp(Plan { geometry: shape, guard: pause, at, load: self.gap })
    }

    fn completed(&mut self, number: u32, measured: Option<&Measured>, _in_flight: u32) {
        self.analysed = number.saturating_add(1);
        if let Some(raw) = measured.and_then(|chirp| estimate(chirp.gaps(), chirp.delays(), self.rule)) {
            let raw = raw.min(self.config.max_gap.as_nanos()).max(self.config.min_gap.as_nanos());
            self.last_estimate = Some(raw);
            self.adapt(raw.abs_diff(self.gap));
            self.gap = smooth(self.gap, raw, ratio_from_f64(self.config.smoothing)).max(1);
        }
        if self.round.number == 1 {
            self.begin_round();
        }
    }

    /// Round 2 waits for the analysis of chirp 0; later rounds begin with an ACK of the first chirp
    /// of the round before.
    fn acked(&mut self, number: u32) {
        if self.round.number > 1 && number >= self.round.first {
            self.begin_round();
        }
    }

    fn verdict(&mut self, ack: &Ack, completed: bool) -> Option<Exit> {
        let full = match self.config.ends {
            EndRule::InFlight => completed && self.is_full(ack),
            EndRule::RoundLength => self.is_back_to_back(ack),
        };
        let hopeless =
            self.saturated_rounds >= self.config.saturated_rounds.max(1) || self.round.number > self.config.max_rounds;
        let reason = if full { ExitReason::PipeFull } else { ExitReason::Limit };
        let gap = self.gap.min(self.config.max_exit_gap.as_nanos());
        let cwnd = packets_in(ack.min_rtt, self.gap).max(ack.packets_out);
        (full || hopeless).then(|| exit(reason, cwnd, gap, self.mss))
    }

    fn permission(&self, _number: u32, leaving: u32) -> u32 {
        let chirps = self.round.chirps().saturating_sub(self.round.planned).saturating_add(CHIRPS_AHEAD);
        leaving.saturating_add(self.config.packets_of(self.chirps).saturating_mul(chirps))
    }

    fn on_loss(&mut self, _now: Time, in_flight: u32) -> Option<(u32, u32)> {
        // The window was only a permission. What is reduced is what is in flight.
        Some((in_flight.max(2), (in_flight / 2).max(2)))
    }

    fn stall(&self, _host: bool) -> f64 {
        self.config.stall
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.mss = mss.bytes();
        self.gap = mss.gap(self.gap);
        self.scatter = mss.gap(self.scatter);
        self.last_estimate = self.last_estimate.map(|gap| mss.gap(gap));
    }
}
