//! Paced Chirping (Misund and Briscoe 2019): packets leave in chirps, trains whose gaps shrink, and
//! the delays of one chirp show the rate at which the path keeps up. The queue stays within a few
//! packets all the while.
//!
//! One machine sends chirps and collects their ACKs ([`Chirping`]); three schedules say when the
//! next chirp comes and when the pipe is full:
//!
//! - `paced_chirping`, [`Rounds`], the papers of 2019: rounds of more and more chirps per
//!   round-trip time.
//! - `two_gap_chirping`, [`TwoGap`], the authors' later code: a gap to probe with and a gap for the
//!   load, which approaches it.
//! - `adaptive_chirping`, [`Adaptive`], this project: the load may grow eightfold per round trip as
//!   far as all chirps together have shown that there is room.
//!
//! The sender is asked for the departure of every packet; when a chirp is used up, the schedule is
//! pulled for the next one. [`geometry`], [`analysis`], [`reading`] and [`belief`] are pure
//! arithmetic.

#![cfg_attr(not(any(test, feature = "std")), no_std)]

extern crate alloc;

mod adaptive;
mod again;
pub mod analysis;
mod batches;
pub mod belief;
mod config;
mod flight;
pub mod geometry;
pub mod reading;
mod rounds;
mod schedule;
mod two_gap;

use flowstart_control::{
    Ack, Acked, AfterAck, Afterwards, Departure, FlowStart, INFINITE_SSTHRESH, LastRtt, Lookout, NewMss, Next,
    Response, Restart, Sent, Signal, Window,
};
use flowstart_units::{Span, Time};

pub use adaptive::{Adaptive, AdaptiveChirpingConfig, SaturationConfig, TrialConfig};
use again::Quiet;
pub use again::{ChirpingAgainConfig, Known};
pub use batches::ClockConfig;
pub use belief::BeliefConfig;
pub use config::{AdaptationConfig, EndRule, PacedChirpingConfig};
pub use flight::Measured;
use flight::{Delivered, Flight};
pub use rounds::Rounds;
use schedule::Before;
pub use schedule::{Plan, Pull, Schedule};
pub use two_gap::{TwoGap, TwoGapChirpingConfig};

/// Paced Chirping as published.
pub type PacedChirping = Chirping<Rounds>;
/// Paced Chirping with a probe gap and a load gap.
pub type TwoGapChirping = Chirping<TwoGap>;
/// Paced Chirping as this project does it.
pub type AdaptiveChirping = Chirping<Adaptive>;

/// The chirp that is leaving, or the last that left.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    /// Counted from 0.
    number: u32,
    plan: Plan,
    sent: u32,
    /// Earliest departure of its next packet, and after its last one of the next chirp.
    at: Time,
    first: Time,
    last: Time,
}

impl Leaving {
    fn is_over(&self) -> bool {
        self.sent >= self.plan.geometry.packets
    }
}

/// What the chirps are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// The start of the flow, or its start after an idle time or a timeout.
    Start,
    /// After a timeout, while what was lost is sent again in standard slow start up to the
    /// threshold.
    Repair,
    /// Looking for more than this window in packets, which the flow filled before.
    More(u32),
}

/// Chirps in operation, by the rules of a schedule.
#[derive(Clone, Debug)]
pub struct Chirping<S> {
    schedule: S,
    purpose: Purpose,
    quiet: Option<Quiet>,
    leaving: Option<Leaving>,
    /// What left before the chirp that is planned or leaving.
    before: Option<Before>,
    /// Chirps planned so far: the number of the next one.
    chirps: u32,
    flight: Flight,
    in_flight: u32,
    /// This ACK completed a chirp.
    completed: bool,
    /// Packets outside of chirps that this ACK delivered.
    unpaced_acked: u32,
    /// The next packet was allowed to leave at its time: if it is late, the host is.
    promised: bool,
}

impl PacedChirping {
    /// The published schedule for a flow with segments of `mss` payload bytes.
    #[must_use]
    pub fn new(config: &PacedChirpingConfig, mss: u32) -> Self {
        Self::with_schedule(Rounds::new(config, mss))
    }

    /// The average gap now.
    #[must_use]
    pub fn average_gap(&self) -> Span {
        Span::from_nanos(self.schedule.gap)
    }

    /// What the last chirp that was fit for analysis said, before smoothing.
    #[must_use]
    pub fn last_estimate(&self) -> Option<Span> {
        self.schedule.last_estimate.map(Span::from_nanos)
    }

    /// Chirps that were analysed or given up so far.
    #[must_use]
    pub fn chirps_analysed(&self) -> u32 {
        self.schedule.analysed
    }

    /// The round now, counted from 1.
    #[must_use]
    pub fn round(&self) -> u32 {
        self.schedule.round()
    }
}

impl TwoGapChirping {
    /// The schedule of two gaps for a flow with segments of `mss` payload bytes.
    #[must_use]
    pub fn new(config: &TwoGapChirpingConfig, mss: u32) -> Self {
        Self::with_schedule(TwoGap::new(config, mss))
    }
}

impl AdaptiveChirping {
    /// The adaptive schedule for a flow with segments of `mss` payload bytes.
    #[must_use]
    pub fn new(config: &AdaptiveChirpingConfig, mss: u32) -> Self {
        Self::with_schedule(Adaptive::new(config, mss))
    }
}

impl AdaptiveChirping {
    /// True once the path cannot be read, or the host keeps no gaps: the start is for others to
    /// finish.
    #[must_use]
    pub fn gave_up(&self) -> bool {
        self.schedule.gave_up()
    }

    /// True while what a timeout left is repaired.
    #[must_use]
    pub fn is_repairing(&self) -> bool {
        self.purpose == Purpose::Repair
    }

    /// Packets were marked before the first chirp: it is sent as soon as there is a window of
    /// packets for it, however short the transfer.
    pub fn has_been_marked(&mut self) {
        self.schedule.has_been_marked();
    }

    /// True before the first chirp, while there is too little to send for one: packets leave as the
    /// window lets them.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.purpose == Purpose::Start
            && self.leaving.is_none()
            && self.chirps == self.schedule.first()
            && !self.schedule.is_running()
    }
}

impl<S: Schedule> Chirping<S> {
    fn with_schedule(schedule: S) -> Self {
        Self {
            purpose: Purpose::Start,
            quiet: schedule.again().filter(|again| again.enabled).map(Quiet::new),
            schedule,
            leaving: None,
            before: None,
            chirps: 0,
            flight: Flight::new(),
            in_flight: 0,
            completed: false,
            unpaced_acked: 0,
            promised: false,
        }
    }

    /// The rules and what they know.
    #[must_use]
    pub fn schedule(&self) -> &S {
        &self.schedule
    }

    /// The last chirp that was fit to be read, also after the start has ended; `None` before the
    /// first.
    #[must_use]
    pub fn last_chirp(&self) -> Option<&Measured> {
        Some(self.flight.measured()).filter(|chirp| !chirp.gaps().is_empty())
    }

    /// Begins again if the schedule can.
    fn resume(&mut self, purpose: Purpose, known: Known) -> bool {
        if !self.schedule.resume(self.chirps, known) {
            return false;
        }
        self.purpose = purpose;
        (self.leaving, self.before, self.completed, self.unpaced_acked) = (None, None, false, 0);
        self.flight.clear();
        true
    }

    /// Begins again at the rate that was good, with the window of now. Returns false if it cannot,
    /// or nothing is known.
    fn resume_from(&mut self, window: &Window, srtt: Span, min_rtt: Span) -> bool {
        let Some(quiet) = self.quiet.as_ref().filter(|_| window.ssthresh < INFINITE_SSTHRESH && min_rtt != Span::MAX)
        else {
            return false;
        };
        let good = min_rtt.as_nanos() / u64::from(window.ssthresh.max(1));
        let gap = (good as f64 * quiet.config().restart_gap) as u64;
        let load = srtt.max(min_rtt).as_nanos() / u64::from(window.cwnd.max(1));
        self.resume(Purpose::Start, Known { gap: gap.max(1), load: load.max(1), window: None })
    }

    /// True if the next packet needs a plan, or may have a better one.
    fn needs_plan(&self) -> bool {
        self.leaving.as_ref().is_none_or(|leaving| leaving.is_over() || (S::PLANS_ANEW && leaving.sent == 0))
    }

    /// The chirp that left last, if the next one has not begun.
    fn last(&self) -> Option<Before> {
        let leaving = self.leaving.as_ref()?;
        let Leaving { first, last, at, plan, .. } = *leaving;
        Some(Before { first, last, packets: plan.geometry.packets, after: at })
    }

    /// The window as a permission: what is in flight, what the schedule may still send, and a
    /// little more.
    fn permission(&self) -> u32 {
        let left = self.leaving.as_ref().map_or(0, |leaving| leaving.plan.geometry.packets - leaving.sent);
        self.in_flight.saturating_add(self.schedule.permission(self.chirps, left)).min(INFINITE_SSTHRESH)
    }
}

impl<S: Schedule> FlowStart for Chirping<S> {
    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> AfterAck {
        self.in_flight = ack.in_flight;
        if self.purpose == Purpose::Repair {
            return AfterAck::Continue;
        }
        let completed = core::mem::take(&mut self.completed);
        if let Some(exit) = self.schedule.verdict(ack, completed) {
            self.flight.clear();
            if let (Purpose::More(before), Some(quiet)) = (self.purpose, &mut self.quiet) {
                quiet.answered(exit.cwnd, before);
            }
            return AfterAck::Done(exit);
        }
        if self.schedule.gave_up() {
            // Once: what was permitted beyond is not used.
            if self.leaving.take().is_some() {
                window.cwnd = ack.in_flight.saturating_add(ack.acked).clamp(2, INFINITE_SSTHRESH);
            }
            return AfterAck::Continue;
        }
        window.cwnd = window.cwnd.max(self.permission());
        AfterAck::Continue
    }

    fn on_ack_after(&mut self, ack: &Ack, window: &Window) -> Afterwards {
        self.schedule.on_ack_after(ack, window.cwnd)
    }

    fn on_signal_after(&mut self, signal: Signal, window: &Window) -> Option<u32> {
        (signal == Signal::Loss).then(|| self.schedule.on_loss_after(window.cwnd)).flatten()
    }

    /// Packets outside of chirps grow the window as slow start would; chirps take what they need in
    /// `on_ack`.
    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        if self.purpose == Purpose::Repair {
            return window.slow_start(ack.acked);
        }
        let unpaced = core::mem::take(&mut self.unpaced_acked);
        window.slow_start(if self.schedule.gave_up() { ack.acked } else { unpaced });
        0
    }

    fn on_signal(&mut self, now: Time, signal: Signal, window: &mut Window) -> Response {
        if self.purpose == Purpose::Repair {
            return Response::Leave;
        }
        // Marks are left to the avoidance's statistics: at the start nobody knows what marks mean
        // at this bottleneck (Misund and Briscoe 2019).
        if signal == Signal::Marks {
            let (Purpose::More(before), Some(quiet)) = (self.purpose, &mut self.quiet) else { return Response::Ignore };
            // Here it is known: there is no more than what the chirps have shown so far.
            let shown = self.schedule.shown().clamp(before, self.in_flight.max(before));
            quiet.answered(shown, before);
            self.flight.clear();
            window.cwnd = shown;
            return Response::Leave;
        }
        let Some((cwnd, ssthresh)) = self.schedule.on_loss(now, self.in_flight).or_else(|| {
            // After a timeout nothing that was measured counts any more.
            (signal == Signal::Timeout).then(|| (self.in_flight.max(2), (self.in_flight / 2).max(2)))
        }) else {
            return Response::Ignore;
        };
        self.flight.clear();
        window.cwnd = cwnd;
        Response::LeaveAt(ssthresh)
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.in_flight = sent.in_flight;
        if self.purpose == Purpose::Repair {
            return;
        }
        let promised = core::mem::take(&mut self.promised);
        let stall = self.schedule.stall(promised);
        let Some(leaving) = self.leaving.as_mut().filter(|leaving| !leaving.is_over()) else { return };
        let geometry = leaving.plan.geometry;
        if sent.retransmission {
            if leaving.sent > 0 {
                self.flight.cut_short();
                leaving.sent = geometry.packets;
            }
            return;
        }
        let late = sent.now.since(leaving.at).as_nanos();
        if leaving.sent == 0 {
            self.flight.begin(leaving.number, geometry.packets, sent.number, leaving.plan.load);
            self.chirps = leaving.number.saturating_add(1);
            leaving.first = sent.now;
        } else {
            self.schedule.left(if promised { late } else { 0 }, geometry.gap(leaving.sent));
        }
        if leaving.sent > 0 && late as f64 > geometry.gap(leaving.sent) as f64 * (stall - 1.0) {
            self.flight.void();
        }
        self.flight.sent(sent.now);
        leaving.sent += 1;
        leaving.last = sent.now;
        let pause = if leaving.sent < geometry.packets { geometry.gap(leaving.sent) } else { leaving.plan.guard };
        // A late packet gets back at most half a gap, as in the stack's pacing.
        let credit = if leaving.sent > 1 { late.min(pause / 2) } else { 0 };
        leaving.at = sent.now + Span::from_nanos(pause - credit);
    }

    fn wants_packets(&self) -> bool {
        true
    }

    fn on_acked(&mut self, acked: &Acked) {
        let rtt = acked.rtt.filter(|_| !acked.retransmitted);
        let number = match self.flight.acked(acked.now, acked.number, rtt) {
            Delivered::Other => {
                self.unpaced_acked = self.unpaced_acked.saturating_add(1);
                return;
            }
            Delivered::Member(number) => number,
            Delivered::Completed { chirp, valid } => {
                self.completed = true;
                let measured = valid.then(|| self.flight.measured());
                self.schedule.completed(chirp, measured, self.in_flight);
                chirp
            }
        };
        self.schedule.acked(number);
    }

    fn departure(&mut self, now: Time, next: &Next, window: &Window) -> Option<Departure> {
        if self.purpose == Purpose::Repair {
            // Chirps begin again once nothing is missing any more.
            let repaired = !next.retransmission && next.packets_out == next.in_flight;
            if !(repaired && self.resume_from(window, next.srtt, next.min_rtt)) {
                return None;
            }
        }
        if next.retransmission || self.schedule.gave_up() {
            return Some(Departure::Now);
        }
        if self.needs_plan() {
            let number = self.chirps;
            // A plan that is replaced was not begun, so what left before it still is what left
            // last.
            let before = match &self.leaving {
                Some(leaving) if leaving.sent > 0 => self.last(),
                _ => self.before,
            };
            self.before = before;
            self.leaving = None;
            match self.schedule.pull(now, number, next, window, before.as_ref()) {
                Pull::Chirp(plan) => {
                    let (first, last) = (plan.at, plan.at);
                    self.leaving = Some(Leaving { number, plan, sent: 0, at: plan.at, first, last });
                }
                Pull::Hold => return Some(Departure::Hold),
                Pull::Unchirped => return Some(Departure::Now),
            }
        }
        let at = self.leaving.as_ref().map_or(now, |leaving| leaving.at);
        if at <= now {
            return Some(Departure::Now);
        }
        self.promised = true;
        Some(Departure::At(at))
    }

    /// Also while a timeout is repaired: the window waits at the threshold until nothing is
    /// missing, and chirps follow.
    fn owns_window(&self) -> bool {
        true
    }

    fn on_restart(&mut self, _now: Time, restart: Restart, window: &Window, last: LastRtt) -> bool {
        if self.quiet.is_none() {
            return false;
        }
        match restart {
            Restart::Timeout => {
                self.purpose = Purpose::Repair;
                true
            }
            Restart::Idle => self.resume_from(window, last.srtt, last.min_rtt),
            Restart::Undo => false,
        }
    }

    fn lookout(&mut self) -> Option<&mut dyn Lookout> {
        self.quiet.is_some().then_some(self as &mut dyn Lookout)
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.schedule.on_mss(mss);
        self.flight.on_mss(mss);
        if let Some(leaving) = &mut self.leaving {
            leaving.plan.load = mss.gap(leaving.plan.load);
        }
        if let Some(quiet) = &mut self.quiet {
            quiet.on_mss(mss);
        }
        if let Purpose::More(before) = &mut self.purpose {
            *before = mss.packets(*before);
        }
    }
}

impl<S: Schedule> Lookout for Chirping<S> {
    fn look(&mut self, ack: &Ack, window: &Window) -> bool {
        let Some(quiet) = &mut self.quiet else { return false };
        if !quiet.on_ack(ack, window.cwnd) || ack.srtt.is_zero() {
            return false;
        }
        let gap = (ack.srtt.as_nanos() / u64::from(window.cwnd.max(1))).max(1);
        self.in_flight = ack.in_flight;
        self.resume(Purpose::More(window.cwnd), Known { gap, load: gap, window: Some(window.cwnd) })
    }
}
