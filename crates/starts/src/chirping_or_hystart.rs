//! Adaptive chirping with HyStart behind it: a path that chirps cannot read is left to the start
//! that everybody uses, so that what cannot be read costs nothing.
//!
//! When HyStart takes over from chirps that said nothing, its window is what it would have been
//! without them: one more packet for every packet delivered, at most twice what is in flight. From
//! chirps that were read, but drowned in jitter, it takes over with what is in flight and grows
//! more slowly. On long and short ways its rounds are those that it would have had from the first
//! ACK on; on others, if it takes over in the first burst of ACKs, from the next burst on. It is
//! also in charge of transfers that are too short for chirps to gain anything.

use flowstart_chirping::{AdaptiveChirping, AdaptiveChirpingConfig};
use flowstart_control::{
    Ack, Acked, AfterAck, Afterwards, Departure, Exit, ExitReason, FlowStart, INFINITE_SSTHRESH, LastRtt, Lookout,
    NewMss, Next, Response, Restart, Sent, Signal, Window,
};
use flowstart_units::{Span, Time};

use crate::hystart::Hystart;
use crate::saturation::Saturation;

/// Chirps until they cannot be read, then HyStart.
#[derive(Clone, Debug)]
pub struct ChirpingOrHystart {
    chirping: AdaptiveChirping,
    hystart: Hystart,
    /// HyStart is in charge for good.
    gave_up: bool,
    /// Chirps ended with a loss, which may turn out to have been none.
    lost: bool,
    initial: u32,
    latest_start: u32,
    catch_up: u32,
    /// Packets delivered before the flow began, or began again, and when its first ACK came; `None`
    /// until then.
    base: Option<(u64, Time)>,
    /// When the last ACK came since then, and the longest time from one to the next; endless once
    /// one told of a packet that came before earlier ones.
    apart: (Time, Span),
    /// Packets whose delivery the window has been given already.
    credit: u32,
    /// Gap between packets until the window is full for the first time, and when the next may
    /// leave.
    pace: Option<(Span, Time)>,
    /// The packet that fills it is leaving.
    filled: bool,
    /// The smallest of the RTTs since the last that were compared with the smallest of all, and how
    /// many they are, if HyStart took over from chirps that were read.
    recent: Option<(Span, u32)>,
    samples: u32,
    /// By how many standard deviations of the jitter they may be later than the smallest of all.
    late_rise: f64,
    /// Window that a rate that was measured cuts to at least.
    least_window: u32,
    /// Packets delivered that the window has not grown for yet, and for how many of them it grows
    /// by one, in that case.
    ungrown: u32,
    divisor: u32,
    /// Largest RTT before a chirp was read, for ACKs up to this byte.
    slowest: (Span, u64),
    /// What is watched beside HyStart's rules; `None` where times tell of the host.
    saturation: Option<Saturation>,
}

impl ChirpingOrHystart {
    /// For a flow with segments of `mss` payload bytes, `paced` or not.
    #[must_use]
    pub fn new(config: &AdaptiveChirpingConfig, initial_window: u32, paced: bool, mss: u32) -> Self {
        Self {
            chirping: AdaptiveChirping::new(config, mss),
            hystart: Hystart::new(&config.hystart, paced, mss).behind_others(config.short_way),
            gave_up: false,
            lost: false,
            initial: initial_window.max(1),
            latest_start: config.latest_start,
            catch_up: config.catch_up,
            base: None,
            apart: (Time::ZERO, Span::ZERO),
            credit: 0,
            pace: None,
            filled: false,
            recent: None,
            ungrown: 0,
            divisor: config.late_divisor.max(1),
            samples: config.delay_samples.max(1),
            late_rise: config.late_rise,
            least_window: config.least_window,
            slowest: (Span::ZERO, 0),
            saturation: Some(Saturation::new(&config.saturation)),
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

    /// True while HyStart is in charge.
    fn is_usual(&self) -> bool {
        self.gave_up || self.chirping.is_waiting()
    }

    /// The gap at which this window leaves several times in such a round trip.
    fn catching_up(&self, rtt: Span, window: &Window) -> Span {
        rtt / (u64::from(window.cwnd.max(1)) * u64::from(self.catch_up.max(1)))
    }

    /// HyStart takes over with the window it would have by now, or this one if that is more, at
    /// most twice what is in flight. What is missing of the initial window counts as delivered:
    /// chirps sent it later than HyStart would have.
    fn take_over(&mut self, ack: &Ack, (base, first): (u64, Time), least: u32, window: &mut Window) {
        let delivered = u32::try_from(ack.delivered.saturating_sub(base)).unwrap_or(u32::MAX);
        let grown = self.initial.saturating_add(delivered.max(self.initial)).max(least);
        let doubled = ack.in_flight.saturating_add(ack.acked).max(self.initial).saturating_mul(2);
        window.cwnd = grown.min(doubled).min(window.ssthresh);
        self.gave_up = true;
        self.credit = self.initial.saturating_sub(delivered).saturating_add(ack.acked);
        // Of a link that was silent while the flow began the smoothed RTT tells for long.
        let rtt = ack.rtt.map_or(ack.srtt, |rtt| rtt.min(ack.srtt));
        let gap = self.catching_up(rtt, window);
        self.pace = Some((gap, ack.now));
        // Every ACK so far let a packet go, and the window has room for these.
        let missing = u64::from(window.cwnd.saturating_sub(ack.in_flight));
        let spread = ack.now.since(first) + gap * missing;
        // Its own ACKs may all have waited behind what chirps have queued.
        self.hystart.has_seen(ack.min_rtt.max(self.slowest.0));
        self.hystart.has_taken_over(ack.now, spread.min(ack.srtt), self.apart.1);
        let chirps = self.chirping.schedule();
        if chirps.is_host_late() {
            self.saturation = None;
        }
        let room = chirps.room().filter(|room| !room.crowded && room.least > 0);
        if let (Some(saturation), Some(room)) = (&mut self.saturation, room) {
            saturation.suggest(room.best);
        }
        // Single packets of a chirp meet shorter RTTs than bursts do, on links that serve in
        // bunches.
        self.slowest.1 = ack.next;
    }

    /// HyStart takes over from chirps that were read but left doubt: with the window of now, which
    /// spreads its packets over the round trip. An ACK train says nothing then, but RTTs tell of a
    /// queue as it grows, not only at the beginning of a round.
    fn take_over_late(&mut self, ack: &Ack, window: &mut Window) {
        window.cwnd = ack.in_flight.saturating_add(ack.acked).max(self.initial).min(window.ssthresh);
        self.gave_up = true;
        self.hystart.has_been_spread(ack.srtt);
        self.hystart.has_seen(ack.min_rtt.max(self.slowest.0));
        self.recent = Some((Span::MAX, 0));
    }

    /// True if all of the last RTTs have risen by what ends HyStart.
    fn has_risen(&mut self, ack: &Ack) -> bool {
        let (Some((least, count)), Some(rtt)) = (&mut self.recent, ack.rtt) else { return false };
        (*least, *count) = ((*least).min(rtt), *count + 1);
        if *count < self.samples {
            return false;
        }
        let least = *least;
        self.recent = Some((Span::MAX, 0));
        let jitter = self.chirping.schedule().last_noise().as_nanos() as f64 * self.late_rise;
        self.hystart.is_late_beyond(least, Span::from_nanos(jitter as u64))
    }

    /// An ACK as HyStart is to see it.
    fn as_of_bursts(&self, ack: &Ack) -> Ack {
        let (slowest, until) = self.slowest;
        let rtt = if ack.una <= until { ack.rtt.map(|rtt| rtt.max(slowest)) } else { ack.rtt };
        Ack { rtt, ..*ack }
    }
}

impl FlowStart for ChirpingOrHystart {
    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> AfterAck {
        if self.gave_up {
            if let (Some((gap, at)), Some(rtt)) = (self.pace, ack.rtt) {
                // All of a window may have waited for a link that was silent. And it grows: where
                // packets leave in bursts and ACKs are merged, what leaves at the gap of its
                // beginning may never fill it.
                let less = gap.checked_sub(self.catching_up(rtt, window)).unwrap_or(Span::ZERO);
                self.pace = Some((gap - less, at - less));
            }
            if let Some(saturation) = &mut self.saturation {
                saturation.on_ack(ack, |rtt| self.hystart.is_late(rtt));
            }
            let after = self.hystart.on_ack(&self.as_of_bursts(ack), window);
            let goes_on = after == AfterAck::Continue && window.in_slow_start();
            let saturation = self.saturation.as_ref().filter(|_| goes_on);
            if saturation.is_some_and(|path| path.is_full(window.cwnd, ack.min_rtt)) {
                self.recent = None;
                self.hystart.has_found();
                let cwnd = window.cwnd;
                return AfterAck::Done(Exit { reason: ExitReason::RatePlateau, cwnd, ssthresh: cwnd, rate: None });
            }
            // Where chirps were given up for jitter a train may be the jitter's.
            if !self.chirping.schedule().is_jittery()
                && saturation.is_some_and(|path| self.hystart.is_path_train(path.train(), window))
            {
                self.recent = None;
                self.hystart.has_found();
                let cwnd = window.cwnd;
                return AfterAck::Done(Exit { reason: ExitReason::AckTrain, cwnd, ssthresh: cwnd, rate: None });
            }
            if goes_on && self.has_risen(ack) {
                self.recent = None;
                self.hystart.has_found();
                let delivered = ack.rate.filter(|rate| !rate.app_limited).map_or(u32::MAX, |rate| {
                    u32::try_from(ack.min_rtt.as_nanos() / rate.gap().as_nanos().max(1)).unwrap_or(u32::MAX)
                });
                // Of a few packets that waited for a link that was silent a rate says nothing.
                let cwnd = window.cwnd.min(delivered.max(self.least_window)).max(2);
                return AfterAck::Done(Exit { reason: ExitReason::DelayIncrease, cwnd, ssthresh: cwnd, rate: None });
            }
            return after;
        }
        if self.chirping.schedule().room().is_none() {
            self.slowest.0 = self.slowest.0.max(ack.rtt.unwrap_or(Span::ZERO));
        }
        let (before, longest) = self.base.map_or((ack.now, Span::ZERO), |_| self.apart);
        // Where packets overtake one another a pause does not tell where a burst begins.
        let apart = if ack.advanced { ack.now.since(before) } else { Span::MAX };
        self.apart = (ack.now, longest.max(apart));
        let base = *self.base.get_or_insert((ack.delivered.saturating_sub(u64::from(ack.acked)), ack.now));
        if self.chirping.is_repairing() && window.ssthresh == INFINITE_SSTHRESH {
            // The timeout was taken back: a link that was silent cannot be read, and nothing would
            // end this start.
            self.take_over(ack, base, window.cwnd, window);
            self.hystart.has_timed_out();
            return AfterAck::Continue;
        }
        if self.chirping.is_waiting() {
            self.gave_up = window.cwnd > self.initial.saturating_mul(self.latest_start);
            return self.hystart.on_ack(ack, window);
        }
        self.hystart.has_passed(ack);
        let after = self.chirping.on_ack(ack, window);
        if after == AfterAck::Continue && self.chirping.gave_up() {
            if self.chirping.schedule().room().is_some() && self.chirping.schedule().is_jittery() {
                self.take_over_late(ack, window);
            } else {
                self.take_over(ack, base, 0, window);
            }
        }
        after
    }

    fn on_ack_after(&mut self, ack: &Ack, window: &Window) -> Afterwards {
        if self.gave_up { Afterwards::Settled } else { self.chirping.on_ack_after(ack, window) }
    }

    fn on_signal_after(&mut self, signal: Signal, window: &Window) -> Option<u32> {
        if self.gave_up { None } else { self.chirping.on_signal_after(signal, window) }
    }

    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        if self.gave_up {
            let (given, divisor) = match self.recent {
                Some(_) => (0, self.divisor),
                None => {
                    let path = self.saturation.as_ref();
                    (self.credit.min(ack.acked), path.map_or(1, |path| path.divisor(window.cwnd, ack.min_rtt)))
                }
            };
            self.credit -= given;
            let delivered = self.ungrown.saturating_add(ack.acked - given);
            self.ungrown = delivered % divisor;
            return window.slow_start(delivered / divisor);
        }
        if self.chirping.is_waiting() { self.hystart.grow(ack, window) } else { self.chirping.grow(ack, window) }
    }

    fn on_signal(&mut self, now: Time, signal: Signal, window: &mut Window) -> Response {
        if signal == Signal::Marks && !self.gave_up && self.chirping.is_waiting() {
            // As while chirps are sent: nobody knows yet what marks mean at this bottleneck.
            self.chirping.has_been_marked();
            return Response::Ignore;
        }
        if self.is_usual() {
            return self.hystart.on_signal(now, signal, window);
        }
        let response = self.chirping.on_signal(now, signal, window);
        self.lost = signal == Signal::Loss && response != Response::Ignore;
        response
    }

    fn on_sent(&mut self, sent: &Sent) {
        if !self.gave_up {
            self.chirping.on_sent(sent);
        } else if let Some((gap, at)) = &mut self.pace {
            // A host that is late makes up for it.
            *at += *gap;
            self.slowest.1 = self.slowest.1.max(sent.seq.saturating_add(u64::from(sent.bytes)));
            if self.filled {
                self.pace = None;
            }
        }
    }

    fn wants_packets(&self) -> bool {
        !self.gave_up
    }

    fn on_acked(&mut self, acked: &Acked) {
        if !self.is_usual() {
            self.chirping.on_acked(acked);
        }
    }

    fn departure(&mut self, now: Time, next: &Next, window: &Window) -> Option<Departure> {
        if !self.gave_up {
            let departure = self.chirping.departure(now, next, window);
            return departure.filter(|_| !self.chirping.is_waiting());
        }
        let (_, at) = self.pace?;
        if next.in_flight.saturating_add(1) >= window.cwnd {
            self.filled = true;
            return None;
        }
        (at > now).then_some(Departure::At(at))
    }

    fn owns_window(&self) -> bool {
        !self.is_usual()
    }

    fn on_restart(&mut self, now: Time, restart: Restart, window: &Window, last: LastRtt) -> bool {
        // What leaves from now on was not spread by chirps.
        (self.base, self.pace, self.recent) = (None, None, None);
        if let Some(saturation) = &mut self.saturation {
            saturation.forget();
        }
        if self.gave_up {
            return self.hystart.on_restart(now, restart, window, last);
        }
        if core::mem::take(&mut self.lost) && restart == Restart::Undo {
            // A path that changes the order of packets cannot be read.
            self.gave_up = true;
            self.hystart.has_been_spread(last.srtt);
            return self.hystart.on_restart(now, restart, window, last);
        }
        self.chirping.on_restart(now, restart, window, last)
    }

    fn lookout(&mut self) -> Option<&mut dyn Lookout> {
        if self.gave_up { None } else { self.chirping.lookout() }
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.hystart.on_mss(mss);
        if let Some(saturation) = &mut self.saturation {
            saturation.on_mss(mss);
        }
        self.chirping.on_mss(mss);
    }
}

#[cfg(test)]
mod tests;
