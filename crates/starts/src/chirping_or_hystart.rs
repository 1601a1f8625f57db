//! Adaptive chirping with HyStart behind it: a path that chirps cannot read is left to the start
//! that everybody uses, so that what cannot be read costs nothing.
//!
//! When HyStart takes over, its window is what it would have been without chirps: one more packet
//! for every packet delivered. It learns round-trip times from then on: single packets of a chirp
//! meet shorter ones than its flights do, and would make it leave at once on links that serve in
//! bunches. It is also in charge of transfers that are too short for a chirp.

use flowstart_chirping::{AdaptiveChirping, AdaptiveChirpingConfig};
use flowstart_control::{
    Ack, Acked, Departure, FlowStart, LastRtt, Lookout, Next, Response, Restart, Sent, Signal, Verdict, Window,
};
use flowstart_units::{Span, Time};

use crate::hystart::{Hystart, HystartConfig};

/// A flow that came so many initial windows far without a chirp goes on without.
const LATEST_WINDOWS: u32 = 2;
/// What the window has room for when HyStart takes over leaves at this many times the window per
/// round trip, not at once.
const CATCH_UP: u64 = 4;

/// Chirps until they cannot be read, then HyStart with Linux's constants.
#[derive(Clone, Debug)]
pub struct ChirpingOrHystart {
    chirping: AdaptiveChirping,
    hystart: Hystart,
    /// HyStart is in charge for good.
    gave_up: bool,
    initial: u32,
    /// Packets delivered before the flow began, or began again; `None` until its first ACK.
    base: Option<u64>,
    /// Packets whose delivery the window has been given already.
    credit: u32,
    /// Gap between packets until the window is full for the first time, and when the next may
    /// leave.
    catch_up: Option<(Span, Time)>,
}

impl ChirpingOrHystart {
    /// For a flow with segments of `mss` payload bytes, `paced` or not.
    #[must_use]
    pub fn new(config: &AdaptiveChirpingConfig, initial_window: u32, paced: bool, mss: u32) -> Self {
        Self {
            chirping: AdaptiveChirping::new(config, mss),
            hystart: Hystart::new(&HystartConfig::default(), paced, mss),
            gave_up: false,
            initial: initial_window.max(1),
            base: None,
            credit: 0,
            catch_up: None,
        }
    }

    /// The chirps.
    #[must_use]
    pub fn chirping(&self) -> &AdaptiveChirping {
        &self.chirping
    }

    /// True once HyStart is in charge for good.
    #[must_use]
    pub fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// HyStart takes over with the window it would have by now. What is missing of the initial
    /// window counts as delivered: chirps sent it later than HyStart would have.
    fn take_over(&mut self, ack: &Ack, base: u64, window: &mut Window) {
        let delivered = u32::try_from(ack.delivered.saturating_sub(base)).unwrap_or(u32::MAX);
        let missing = self.initial.saturating_sub(delivered);
        window.cwnd = self.initial.saturating_add(delivered.max(self.initial)).min(window.ssthresh);
        self.gave_up = true;
        self.credit = missing.saturating_add(ack.acked);
        self.catch_up = Some((ack.srtt / (u64::from(window.cwnd.max(1)) * CATCH_UP), ack.now));
    }
}

impl FlowStart for ChirpingOrHystart {
    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> Verdict {
        if self.gave_up {
            return self.hystart.on_ack(ack, window);
        }
        let base = *self.base.get_or_insert(ack.delivered.saturating_sub(u64::from(ack.acked)));
        if self.chirping.is_waiting() {
            self.gave_up = window.cwnd > self.initial.saturating_mul(LATEST_WINDOWS);
            return self.hystart.on_ack(ack, window);
        }
        let verdict = self.chirping.on_ack(ack, window);
        if verdict == Verdict::Continue && self.chirping.schedule().gave_up() {
            self.take_over(ack, base, window);
        }
        verdict
    }

    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        if self.gave_up {
            let given = self.credit.min(ack.acked);
            self.credit -= given;
            return window.slow_start(ack.acked - given);
        }
        if self.chirping.is_waiting() { self.hystart.grow(ack, window) } else { self.chirping.grow(ack, window) }
    }

    fn on_signal(&mut self, now: Time, signal: Signal, window: &mut Window) -> Response {
        if self.gave_up || self.chirping.is_waiting() {
            return self.hystart.on_signal(now, signal, window);
        }
        self.chirping.on_signal(now, signal, window)
    }

    fn on_sent(&mut self, sent: &Sent) {
        if !self.gave_up {
            self.chirping.on_sent(sent);
        } else if let Some((gap, at)) = &mut self.catch_up {
            *at = sent.now + *gap;
        }
    }

    fn wants_packets(&self) -> bool {
        !self.gave_up
    }

    fn on_acked(&mut self, acked: &Acked) {
        if !self.gave_up && !self.chirping.is_waiting() {
            self.chirping.on_acked(acked);
        }
    }

    fn departure(&mut self, now: Time, next: &Next, window: &Window) -> Option<Departure> {
        if !self.gave_up {
            let departure = self.chirping.departure(now, next, window);
            return departure.filter(|_| !self.chirping.is_waiting());
        }
        let (_, at) = self.catch_up?;
        if next.in_flight.saturating_add(1) >= window.cwnd {
            self.catch_up = None;
        }
        (at > now).then_some(Departure::At(at))
    }

    fn owns_window(&self) -> bool {
        !self.gave_up && !self.chirping.is_waiting()
    }

    fn on_restart(&mut self, now: Time, restart: Restart, window: &Window, last: LastRtt) -> bool {
        if self.gave_up {
            return self.hystart.on_restart(now, restart, window, last);
        }
        (self.base, self.catch_up) = (None, None);
        self.chirping.on_restart(now, restart, window, last)
    }

    fn lookout(&mut self) -> Option<&mut dyn Lookout> {
        if self.gave_up { None } else { self.chirping.lookout() }
    }
}
