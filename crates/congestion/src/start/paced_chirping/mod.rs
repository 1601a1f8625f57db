//! Paced Chirping (Misund and Briscoe 2019): packets leave in chirps, trains whose gaps shrink, and the delays of one chirp show the rate
//! at which the path keeps up. Rounds send more and more chirps per round-trip time, until they follow each other without a pause and the
//! packets in flight fill the path. The queue stays within a few packets all the while.
//!
//! This is the published, round-based schedule. The sender is asked for the departure of every packet; when a chirp is used up, the next one
//! is planned with the average gap known then. [`geometry`] and [`analysis`] are pure arithmetic.
//!
//! | round | begins when | chirps × packets |
//! |---|---|---|
//! | 1 | at once | 2 × 5 |
//! | 2 | chirp 0 was analysed | 2 × 8 |
//! | 3 | the first ACK of round 2's first chirp | 2 × 16 |
//! | r > 3 | the first ACK of round r-1's first chirp | 4, 8, … × 16 |

pub mod analysis;
mod config;
mod flight;
pub mod geometry;

use flowstart_units::{Bytes, Rate, Span, Time};

use crate::{
    Ack, Acked, Departure, Exit, ExitReason, FlowStart, INFINITE_SSTHRESH, Next, Response, Sent, Signal, Verdict,
    Window,
};

use super::slow_start;
use analysis::{ExcursionRule, estimate};
pub use config::PacedChirpingConfig;
use flight::{Delivered, Flight};
use geometry::{Geometry, guard, ratio_from_f64, smooth};

/// Chirps may be planned this far ahead of the packets the window allows, so that the window never limits a chirp.
const CHIRPS_AHEAD: u32 = 2;

/// A chirp on its way out.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// The chirp's number, counted from 0.
    number: u32,
    geometry: Geometry,
    sent: u32,
    /// Pause after its last packet in ns.
    guard: u64,
    /// Earliest departure of its next packet.
    at: Time,
}

/// The state of the schedule.
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
}

impl Round {
    fn chirps(&self) -> u32 {
        u32::try_from(self.quota / geometry::RATIO_ONE).unwrap_or(u32::MAX).max(1)
    }
}

/// Paced Chirping in operation. [`PacedChirpingConfig`] says where its rules come from.
#[derive(Clone, Debug)]
pub struct PacedChirping {
    config: PacedChirpingConfig,
    rule: ExcursionRule,
    mss: u32,
    gap: u64,
    /// Chirps planned so far: the number of the next one.
    chirps: u32,
    round: Round,
    saturated_rounds: u32,
    /// The chirp that is leaving, or the last that left.
    plan: Option<Plan>,
    flight: Flight,
    /// Chirps up to this number (exclusive) were analysed or given up.
    analysed: u32,
    last_estimate: Option<u64>,
    in_flight: u32,
    /// This ACK completed a chirp: time to look whether the path is full.
    chirp_completed: bool,
    /// Packets outside of chirps that this ACK delivered.
    unpaced_acked: u32,
}

impl PacedChirping {
    /// Paced Chirping for a flow with segments of `mss` payload bytes.
    #[must_use]
    pub fn new(config: &PacedChirpingConfig, mss: u32) -> Self {
        Self {
            rule: config.excursion_rule(),
            mss: mss.max(1),
            gap: config.initial_gap.as_nanos().max(1),
            chirps: 0,
            round: Round {
                number: 1,
                first: 0,
                planned: 0,
                saturated: 0,
                quota: ratio_from_f64(config.initial_chirps),
            },
            saturated_rounds: 0,
            plan: None,
            flight: Flight::new(),
            analysed: 0,
            last_estimate: None,
            in_flight: 0,
            chirp_completed: false,
            unpaced_acked: 0,
            config: config.clone(),
        }
    }

    /// The average gap now.
    #[must_use]
    pub fn average_gap(&self) -> Span {
        Span::from_nanos(self.gap)
    }

    /// What the last chirp that was fit for analysis said, before smoothing.
    #[must_use]
    pub fn last_estimate(&self) -> Option<Span> {
        self.last_estimate.map(Span::from_nanos)
    }

    /// Chirps that were analysed or given up so far.
    #[must_use]
    pub fn chirps_analysed(&self) -> u32 {
        self.analysed
    }

    /// The round now, counted from 1.
    #[must_use]
    pub fn round(&self) -> u32 {
        self.round.number
    }

    /// The chirp that is leaving, if one is.
    fn leaving(&self) -> Option<&Plan> {
        self.plan.as_ref().filter(|plan| plan.sent < plan.geometry.packets)
    }

    /// Plans the next chirp if the round allows one more and the application has enough data for it.
    fn plan_next(&mut self, now: Time, next: &Next) -> Pull {
        let packets = self.config.packets_of(self.chirps);
        if next.queued < u64::from(packets) {
            return Pull::TooLittleData;
        }
        if self.round.planned >= self.round.chirps() {
            if next.in_flight > 0 {
                return Pull::RoundUsedUp;
            }
            // No ACK is left that could begin the next round.
            self.begin_round();
        }
        let shape = Geometry::new(packets, self.gap, ratio_from_f64(self.config.geometry));
        let pause = guard(self.gap, shape.length(), next.srtt.as_nanos(), self.round.quota);
        let earliest = self.plan.as_ref().map_or(now, |before| before.at);
        self.round.planned += 1;
        self.round.saturated += u32::from(pause == self.gap);
        let number = self.chirps;
        self.chirps = self.chirps.saturating_add(1);
        self.plan = Some(Plan { number, geometry: shape, sent: 0, guard: pause, at: earliest.max(now) });
        Pull::Planned
    }

    /// The next round begins; it has more chirps if the one before used all of its own.
    fn begin_round(&mut self) {
        let used_up = self.round.planned >= self.round.chirps();
        let saturated = self.round.planned > 0 && self.round.saturated == self.round.planned;
        self.saturated_rounds = if saturated { self.saturated_rounds.saturating_add(1) } else { 0 };
        if used_up && self.chirps >= self.config.grow_after {
            let gain = u128::from(ratio_from_f64(self.config.gain));
            let grown = u128::from(self.round.quota) * gain / u128::from(geometry::RATIO_ONE);
            // Beyond any window, so that nothing overflows later.
            self.round.quota = u64::try_from(grown).unwrap_or(u64::MAX).min(u64::from(u32::MAX) * geometry::RATIO_ONE);
        }
        let number = self.round.number.saturating_add(1);
        self.round = Round { number, first: self.chirps, planned: 0, saturated: 0, ..self.round };
    }

    fn begins_round(&self, acked_chirp: u32) -> bool {
        // Round 2 waits for the analysis of chirp 0 (see analyse); later rounds begin with an ACK of the first chirp of the round before.
        self.round.number > 1 && acked_chirp >= self.round.first
    }

    fn analysed(&mut self, chirp: u32, estimate: Option<u64>) {
        self.analysed = chirp.saturating_add(1);
        self.chirp_completed = true;
        if let Some(raw) = estimate {
            let raw = raw.min(self.config.max_gap.as_nanos()).max(self.config.min_gap.as_nanos());
            self.last_estimate = Some(raw);
            self.gap = smooth(self.gap, raw, ratio_from_f64(self.config.smoothing)).max(1);
        }
        if self.round.number == 1 {
            self.begin_round();
        }
    }

    /// The window as a permission: what is in flight, what the round may still send, and a little more.
    fn permission(&self) -> u32 {
        let packets = self.config.packets_of(self.chirps);
        let leaving = self.leaving().map_or(0, |plan| plan.geometry.packets - plan.sent);
        let chirps = self.round.chirps().saturating_sub(self.round.planned).saturating_add(CHIRPS_AHEAD);
        self.in_flight.saturating_add(leaving).saturating_add(packets.saturating_mul(chirps)).min(INFINITE_SSTHRESH)
    }

    fn exit(&self, reason: ExitReason, ack: &Ack) -> Exit {
        let full = u32::try_from(ack.min_rtt.as_nanos() / self.gap).unwrap_or(INFINITE_SSTHRESH);
        let known = if ack.min_rtt == Span::MAX { 0 } else { full.min(INFINITE_SSTHRESH) };
        let cwnd = known.max(ack.packets_out).max(2);
        let gap = Span::from_nanos(self.gap).min(self.config.max_exit_gap);
        let rate = Rate::of(Bytes::new(u64::from(self.mss)), gap);
        Exit { reason, cwnd, ssthresh: cwnd, rate: Some(rate) }
    }

    /// True if the packets in flight fill the path at the estimated rate.
    fn is_full(&self, ack: &Ack) -> bool {
        let share = u128::from(ratio_from_f64(self.config.full));
        let goal = u128::from(ack.min_rtt.as_nanos()) * share;
        let have = u128::from(ack.in_flight) * u128::from(self.gap) * u128::from(geometry::RATIO_ONE);
        self.analysed > self.config.full_from_chirp && ack.min_rtt != Span::MAX && have >= goal
    }
}

/// What came of the wish for another chirp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pull {
    Planned,
    RoundUsedUp,
    TooLittleData,
}

impl FlowStart for PacedChirping {
    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> Verdict {
        self.in_flight = ack.in_flight;
        let full = std::mem::take(&mut self.chirp_completed) && self.is_full(ack);
        let hopeless =
            self.saturated_rounds >= self.config.saturated_rounds.max(1) || self.round.number > self.config.max_rounds;
        if full || hopeless {
            self.flight = Flight::new();
            return Verdict::Done(self.exit(if full { ExitReason::PipeFull } else { ExitReason::Limit }, ack));
        }
        window.cwnd = window.cwnd.max(self.permission());
        Verdict::Continue
    }

    /// Packets outside of chirps grow the window as slow start would; chirps take what they need in `on_ack`.
    fn grow(&mut self, _ack: &Ack, window: &mut Window) -> u32 {
        slow_start::grow(window, std::mem::take(&mut self.unpaced_acked));
        0
    }

    fn on_signal(&mut self, _now: Time, signal: Signal, window: &mut Window) -> Response {
        // Marks are left to the avoidance's statistics: at the start nobody knows what marks mean at this bottleneck (paper 1).
        if signal == Signal::Marks {
            return Response::Ignore;
        }
        self.flight = Flight::new();
        // The window was only a permission. What is reduced is what is in flight.
        window.cwnd = self.in_flight.max(2);
        Response::LeaveAt((self.in_flight / 2).max(2))
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.in_flight = sent.in_flight;
        let Some(plan) = self.plan.as_mut().filter(|plan| plan.sent < plan.geometry.packets) else { return };
        if sent.retransmission {
            if plan.sent > 0 {
                self.flight.cut_short();
                plan.sent = plan.geometry.packets;
            }
            return;
        }
        let late = sent.now.since(plan.at).as_nanos();
        if plan.sent == 0 {
            self.flight.begin(plan.number, plan.geometry.packets, sent.number);
        } else if late as f64 > plan.geometry.gap(plan.sent) as f64 * (self.config.stall - 1.0) {
            self.flight.void();
        }
        self.flight.sent(sent.now);
        plan.sent += 1;
        let pause = if plan.sent < plan.geometry.packets { plan.geometry.gap(plan.sent) } else { plan.guard };
        // A late packet gets back at most half a gap, as in the stack's pacing.
        let credit = if plan.sent > 1 { late.min(pause / 2) } else { 0 };
        plan.at = sent.now + Span::from_nanos(pause - credit);
    }

    fn wants_packets(&self) -> bool {
        true
    }

    fn on_acked(&mut self, acked: &Acked) {
        let rtt = acked.rtt.filter(|_| !acked.retransmitted);
        let chirp = match self.flight.acked(acked.number, rtt) {
            Delivered::Other => {
                self.unpaced_acked = self.unpaced_acked.saturating_add(1);
                return;
            }
            Delivered::Member(chirp) => chirp,
            Delivered::Completed { chirp, valid } => {
                let measured = self.flight.measured();
                let found = if valid { estimate(measured.gaps(), measured.delays(), self.rule) } else { None };
                self.analysed(chirp, found);
                chirp
            }
        };
        if self.begins_round(chirp) {
            self.begin_round();
        }
    }

    fn departure(&mut self, now: Time, next: &Next, _window: &Window) -> Option<Departure> {
        if next.retransmission {
            return Some(Departure::Now);
        }
        if self.leaving().is_none() {
            match self.plan_next(now, next) {
                Pull::Planned => {}
                Pull::RoundUsedUp => return Some(Departure::Hold),
                Pull::TooLittleData => return Some(Departure::Now),
            }
        }
        let at = self.plan.as_ref().map_or(now, |plan| plan.at);
        Some(if at <= now { Departure::Now } else { Departure::At(at) })
    }

    fn owns_window(&self) -> bool {
        true
    }
}
