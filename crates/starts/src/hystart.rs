//! HyStart as Linux CUBIC has it (`hystart_update` in 6.1.192; Ha and Rhee, "Taming the elephants",
//! 2011).
//!
//! Two detectors end slow start before a loss does: the *ACK train* (ACKs in close succession for
//! longer than half the smallest RTT mean that the packets in flight fill the pipe) and the *delay
//! increase* (the RTT of a round rose by an eighth). What ns-3 calls HyStart is another algorithm.

use flowstart_control::InvalidConfig;
use flowstart_control::{
    Ack, AfterAck, Exit, ExitReason, FlowStart, LastRtt, NewMss, Restart, Window, stack_pacing_rate,
};
use flowstart_units::{Bytes, Rate, Span, Time};

use crate::StartConstants;

pub use flowstart_control::HystartConfig;

/// What the constants come to.
trait Rules {
    /// An RTT that ends now, as the clock of timestamps has it.
    fn measured(&self, now: Time, rtt: Span) -> Span;

    /// How much the RTT of a round may exceed the smallest one.
    fn delay_threshold(&self, delay_min: Span) -> Span;

    /// True if what ends slow start is limited to a smaller share of this RTT than usual. A burst
    /// that makes that much of a queue by itself may be a small part of what the path holds; where
    /// it is the usual share it is a good part.
    fn is_long(&self, rtt: Span) -> bool;

    /// What aggregation at the sender may add to a train; zero while no pacing rate is known
    /// (`hystart_ack_delay`).
    fn cushion(&self, rate: Option<Rate>) -> Span;
}

impl Rules for HystartConfig {
    fn measured(&self, now: Time, rtt: Span) -> Span {
        let tick = self.rtt_tick.as_nanos();
        let count = |time: u64| time.checked_div(tick).map_or(time, |count| count * tick);
        let began = now.as_nanos().saturating_sub(rtt.as_nanos());
        Span::from_nanos(count(now.as_nanos()) - count(began))
    }

    fn delay_threshold(&self, delay_min: Span) -> Span {
        (delay_min / self.delay_divisor).min(self.max_delay_threshold).max(self.min_delay_threshold)
    }

    fn is_long(&self, rtt: Span) -> bool {
        rtt / self.delay_divisor > self.max_delay_threshold
    }

    fn cushion(&self, rate: Option<Rate>) -> Span {
        let burst = Bytes::new(self.gso_max.get().saturating_mul(self.cushion_bursts));
        rate.map_or(Span::ZERO, |rate| rate.transmission_time(burst).min(self.max_cushion))
    }
}

impl StartConstants for HystartConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        self.validate()
    }
}

/// HyStart in operation. [`HystartConfig`] says where its rules come from.
#[derive(Clone, Copy, Debug)]
pub struct Hystart {
    config: HystartConfig,
    paced: bool,
    mss: u32,
    /// Time over which what is acknowledged now had been spread; zero usually.
    spread: Span,
    /// A train no longer than this may be that of packets that did not leave in a burst; zero
    /// usually.
    short_train: Span,
    /// When the last ACK came, while rounds do not begin with a burst.
    mid_burst: Option<Time>,
    /// Below this RTT a pause does not tell where a burst begins; zero usually.
    short_way: Span,
    /// A detector fired. Only a timeout forgets that, as in Linux.
    found: bool,
    /// Smallest RTT seen; [`Span::MAX`] before the first sample.
    delay_min: Span,
    round_start: Time,
    last_ack: Time,
    /// The round ends when a byte beyond this one is acknowledged.
    round_end: u64,
    /// Smallest RTT of this round.
    round_rtt: Span,
    samples: u32,
    /// Inputs of the pacing rate as the stack computed it at the end of the previous ACK.
    prior_srtt: Span,
    prior_packets_out: u32,
    prior_next: u64,
}

impl Hystart {
    /// HyStart for a flow with segments of `mss` payload bytes, `paced` or not (unless the config
    /// says otherwise).
    #[must_use]
    pub fn new(config: &HystartConfig, paced: bool, mss: u32) -> Self {
        Self {
            config: *config,
            paced: config.paced.unwrap_or(paced),
            mss,
            spread: Span::ZERO,
            short_train: Span::ZERO,
            mid_burst: None,
            short_way: Span::ZERO,
            found: false,
            delay_min: Span::MAX,
            round_start: Time::ZERO,
            last_ack: Time::ZERO,
            round_end: 0,
            round_rtt: Span::MAX,
            samples: 0,
            prior_srtt: Span::ZERO,
            prior_packets_out: 0,
            prior_next: 0,
        }
    }

    /// The same for a start that may take over from others, who do not send in bursts. Where the
    /// smallest RTT is below `short_way` it counts round trips before ([`Self::has_passed`]).
    pub(super) fn behind_others(self, short_way: Span) -> Self {
        Self { short_way, ..self }
    }

    /// True if round trips are counted before it takes over.
    fn counts_before(&self, min_rtt: Span) -> bool {
        self.config.is_long(min_rtt) || min_rtt < self.short_way
    }

    fn begin_round(&mut self, now: Time, next: u64) {
        self.round_start = now;
        self.last_ack = now;
        self.round_end = next;
        self.round_rtt = Span::MAX;
        self.samples = 0;
    }

    /// The pacing rate the stack computed after the previous ACK, enforced or not.
    fn stack_rate(&self, window: &Window) -> Option<Rate> {
        stack_pacing_rate(self.mss, window, self.prior_packets_out, self.prior_srtt)
    }

    /// Half of `limit` unless the flow is paced.
    fn allowed(&self, limit: Span) -> Span {
        if self.paced { limit } else { limit / 2 }
    }

    /// Longest train that does not end slow start.
    pub(super) fn train_limit(&self, window: &Window) -> Span {
        (self.path_limit(window) + self.spread).max(self.short_train)
    }

    /// The same for a train that is as long as the path makes it.
    fn path_limit(&self, window: &Window) -> Span {
        self.allowed(self.delay_min + self.config.cushion(self.stack_rate(window)))
    }

    /// True if others have seen a train, as long as the path makes it, that ends slow start. Where
    /// this start took over in the middle of a burst its own rounds begin there: they have the end
    /// of one burst, a pause, and the next one, whose train does not count behind a pause.
    pub(super) fn is_path_train(&self, train: Span, window: &Window) -> bool {
        let armed = self.config.train_detector && window.cwnd >= self.config.low_window;
        armed && train > self.allowed(self.delay_min) && train > self.path_limit(window)
    }

    /// True if a train of this length ends slow start. The cushion takes a division, so it is left
    /// out while it cannot matter.
    fn is_too_long(&self, train: Span, window: &Window) -> bool {
        train > self.allowed(self.delay_min) && train > self.train_limit(window)
    }

    /// The packets of the round trip before this start took over did not leave in a burst but over
    /// `spread`: their ACKs make a train that long whatever the path is, and so do packets that
    /// those let go, from then on.
    pub(super) fn has_been_spread(&mut self, spread: Span) {
        self.spread = spread;
    }

    /// This start takes over in the middle of the first burst of ACKs, the last of them at `now`,
    /// whose packets did not leave in a burst but over `spread`. Bursts that those let go come out
    /// over that time or over what the path needs for them, whichever is longer, so that a train
    /// that is longer than both is the path's. The times `apart` from one ACK to the next may add
    /// one at either end. Rounds begin with the next burst, as they would have.
    ///
    /// Where those ACKs came too far apart for a train a pause does not tell where a burst begins.
    /// On a long way, and on a short one, rounds have been counted before ([`Self::has_passed`]).
    pub(super) fn has_taken_over(&mut self, now: Time, spread: Span, apart: Span) {
        if apart > self.config.ack_delta {
            self.has_been_spread(spread);
            return;
        }
        self.short_train = spread + apart * 2;
        self.mid_burst = Some(now).filter(|_| !self.counts_before(self.delay_min));
    }

    /// True if rounds do not begin with a burst yet and this ACK is the first of one.
    fn begins_burst(&mut self, now: Time) -> bool {
        let Some(before) = self.mid_burst else { return false };
        let begins = now.since(before) > self.config.ack_delta;
        self.mid_burst = Some(now).filter(|_| !begins);
        begins
    }

    /// Before this start took over the smallest RTT was this.
    pub(super) fn has_seen(&mut self, rtt: Span) {
        self.delay_min = self.delay_min.min(rtt);
    }

    /// There was a timeout before this start took over: RTTs from before it are forgotten.
    pub(super) fn has_timed_out(&mut self) {
        self.delay_min = Span::MAX;
    }

    /// True if this RTT is one that ends slow start.
    pub(super) fn is_late(&self, rtt: Span) -> bool {
        rtt > self.delay_min + self.config.delay_threshold(self.delay_min)
    }

    /// The same where jitter of RTTs is known: then an eighth of the RTT of a short way ends slow
    /// start, too, if it is more than `jitter`. The usual 4 ms are half of that RTT or more.
    pub(super) fn is_late_beyond(&self, rtt: Span, jitter: Span) -> bool {
        let mut threshold = self.config.delay_threshold(self.delay_min);
        if self.delay_min < self.short_way {
            threshold = threshold.min((self.delay_min / self.config.delay_divisor).max(jitter));
        }
        rtt > self.delay_min + threshold
    }

    /// An ACK while others are in charge. On a long way round trips are counted from the first one
    /// on, as if this start were: a round begins with the ACK of the first packet of a burst. RTTs
    /// of those behind it are longer, by the queue of the burst itself, and by a turn on links that
    /// serve in turns: nine of them would end the start. On a short way no pause between bursts is
    /// long enough to end a train: of rounds that begin in the middle of a burst it lasts for all.
    pub(super) fn has_passed(&mut self, ack: &Ack) {
        if !self.counts_before(ack.min_rtt) {
            return;
        }
        if ack.una > self.round_end {
            self.begin_round(ack.now, ack.next);
        }
        self.round_rtt = ack.rtt.map_or(self.round_rtt, |rtt| rtt.min(self.round_rtt));
    }

    /// It looks again, whatever it found before, from the next ACK on.
    pub(super) fn looks_again(&mut self) {
        (self.found, self.round_end) = (false, 0);
    }

    /// What ends slow start was found by others.
    pub(super) fn has_found(&mut self) {
        self.found = true;
    }

    /// Takes in one RTT sample (`hystart_update`).
    fn update(&mut self, ack: &Ack, rtt: Span, window: &Window) -> Option<ExitReason> {
        let ends = self.begins_burst(ack.now) || ack.una > self.round_end;
        if self.config.round_ends_late {
            let verdict = self.judge(ack, rtt, window);
            if ends {
                self.begin_round(ack.now, ack.next);
            }
            return verdict;
        }
        if ends {
            self.begin_round(ack.now, ack.next);
        }
        self.judge(ack, rtt, window)
    }

    /// What the detectors say to one ACK of the round.
    #[inline]
    fn judge(&mut self, ack: &Ack, rtt: Span, window: &Window) -> Option<ExitReason> {
        if window.cwnd < self.config.low_window {
            return None;
        }
        if self.config.train_detector && ack.now.since(self.last_ack) <= self.config.ack_delta {
            // A longer gap leaves last_ack where it is, so that it ends train detection for the
            // rest of the round.
            self.last_ack = ack.now;
            if self.is_too_long(ack.now.since(self.round_start), window) {
                return Some(ExitReason::AckTrain);
            }
        }
        if self.config.delay_detector {
            self.round_rtt = self.round_rtt.min(rtt);
            if self.samples < self.config.min_samples {
                self.samples += 1;
            } else if self.round_rtt > self.delay_min + self.config.delay_threshold(self.delay_min) {
                return Some(ExitReason::DelayIncrease);
            }
        }
        None
    }
}

impl FlowStart for Hystart {
    #[inline]
    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> AfterAck {
        let mut verdict = AfterAck::Continue;
        if let Some(rtt) = ack.rtt {
            // Linux takes an RTT of zero as one microsecond.
            let rtt = if self.config.rtt_tick.is_zero() { rtt } else { self.config.measured(ack.now, rtt) };
            let rtt = if rtt.is_zero() { Span::from_micros(1) } else { rtt };
            self.delay_min = self.delay_min.min(rtt);
            if !self.found
                && window.in_slow_start()
                && let Some(reason) = self.update(ack, rtt, window)
            {
                self.found = true;
                verdict = AfterAck::Done(Exit { reason, cwnd: window.cwnd, ssthresh: window.cwnd, rate: None });
            }
        }
        self.prior_srtt = ack.srtt;
        self.prior_packets_out = ack.packets_out;
        self.prior_next = ack.next;
        verdict
    }

    #[inline]
    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        window.slow_start(ack.acked)
    }

    /// Linux keeps HyStart armed until a detector fires, so that it watches every slow start before
    /// that, and a timeout arms it anew (`bictcp_state`). Unlike in Linux, RTTs of the congestion
    /// avoidance in between are not seen.
    fn on_restart(&mut self, now: Time, restart: Restart, _window: &Window, _last: LastRtt) -> bool {
        if restart == Restart::Timeout {
            self.found = false;
            (self.spread, self.short_train, self.mid_burst) = (Span::ZERO, Span::ZERO, None);
            self.delay_min = Span::MAX;
            self.begin_round(now, self.prior_next);
        }
        !self.found
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.mss = mss.bytes();
        self.prior_packets_out = mss.packets(self.prior_packets_out);
    }
}

#[cfg(test)]
mod tests;
