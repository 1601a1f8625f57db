//! A delay-based control for flows that have a queue of their own: it steers its queueing delay to
//! a small target.
//!
//! It is this project's answer to the rule of [`VegasLike`](super::VegasLike), with the faults of
//! that mended:
//! - Its queueing delay is the smallest of a few packets: turns of other flows delay some of them,
//!   jitter too, a queue of its own all.
//! - Jitter is no queue: the RTT without a queue is that of the round with the least delay, jitter
//!   included, and the target is no less than RTTs differ within a round.
//! - Packets of a burst wait for each other, which is no queue either: where more is delivered as
//!   more is sent the path is not full, and the RTT of that round trip is one without a queue.
//! - Once per round trip, the rate is set to what is delivered, more or less in proportion to the
//!   distance from the target. What was sent in the last round trip and does not show in the delay
//!   yet is foreseen, so that large gains do not swing.
//! - A round trip lasts as long as its queue. Where that is twice the RTT without one, and a
//!   quarter of what is sent is delivered, the rate comes down to half of that at once, not at the
//!   end of the round: a token bucket that is spent lets a tenth pass from one packet to the next.
//! - A round with more than 2 % of losses or marks brings the rate down to what is delivered; one
//!   with none lets it grow. Losses below that are not congestion of a queue of one's own.
//! - The smallest RTT is forgotten after 10 s; every half of that time the queue is emptied for a
//!   round trip, to see it again. A flow that already sends as little as it may takes the RTT it
//!   has as the smallest: the queue cannot be its own.
//! - A path may become longer. A delay that stays while less and less is delivered is the path's
//!   and no queue (`longer`); one so long that it may be somebody else's only after a look has
//!   found that it is not.
//! - A timeout halves the rate. The round trip that it was in is not judged: what is delivered in a
//!   silence is no rate of the path. Nor is the next one, whose first samples reach back into it.
//! - The rate has a floor, and a ceiling at a multiple of what is delivered.
//! - A queue that does not go away although less and less is sent is not the flow's own. After some
//!   such round trips, or at the least rate, the control says so
//!   ([`IsolationAware::doubts_isolation`]), and [`ByIsolation`](super::ByIsolation) goes on with
//!   the other one from the rate before.
//! - Where RTTs differ by more than the longest target, or by more than the shortest and the rate
//!   has fallen (or never was what the start measured), the delay is the path's and not the
//!   queue's: the control gives up ([`IsolationAware::gives_up`]), and the other one goes on from
//!   the most that was delivered. It does so, too, where losses keep the rate down that no queue
//!   had announced (a medium that delays packets for longer than a queue manager wants), and where
//!   the rate stands far below that although twice as much was delivered whenever it was tried.
//! - A buffer may be shorter than the target. Where one overflows, the target is half of what it
//!   held. Where a round trip is shorter than the target, a full path shows little queue for
//!   several of them: there the rate goes by what is delivered as soon as that is less than what
//!   was sent.
//! - Up to 95 % of what the path was seen to carry the rate grows by a quarter per round trip.
//!   After eight round trips without queue or loss growth doubles with every further one: capacity
//!   that appears is used soon.

mod brake;
mod bursts;
mod config;
mod foreseen;
mod longer;
mod rounds;
mod trial;
mod watch;

use flowstart_control::smallest::Smallest;
use flowstart_control::{Ack, CongestionAvoidance, InRange as _, IsolationAware, NewMss, Repair, Signal, Window};
use flowstart_units::{Rate, Span, Time};

use super::intervals::PathView;
use brake::Brake;
use config::{MOST_ROUNDS, MOST_SAMPLES};
use foreseen::Foreseen;
use longer::Longer;
use trial::Trial;

pub use config::DelayTargetConfig;

/// The control in operation.
#[derive(Clone, Debug)]
pub struct DelayTarget {
    config: DelayTargetConfig,
    path: PathView,
    /// `None` before it has taken over.
    rate: Option<Rate>,
    /// The rate of the round before.
    before: Rate,
    smallest: Smallest,
    /// The smallest mean of `rtt` in a round.
    calm: Smallest,
    /// Sum of `rtt` over this round in seconds, and of how many.
    round_sum: f64,
    round_samples: u32,
    /// The smallest RTT of the last few packets.
    rtt: Span,
    /// Their RTTs in a ring, of which `delay_samples` places are used.
    latest: [Span; MOST_SAMPLES],
    next_sample: usize,
    /// Smallest and largest RTT of this round.
    round_least: Span,
    round_most: Span,
    /// The differences of both in the latest rounds, in a ring.
    ranges: [Span; MOST_ROUNDS],
    /// The same without what `rtt` rose or fell by from a round's begin to its end: a queue of its
    /// own that comes or goes.
    unrest: [Span; MOST_ROUNDS],
    began_at: Span,
    /// Its queue is taken for its own although nobody has looked.
    unasked: bool,
    next_range: usize,
    /// The RTT without a queue as packets of a burst have it that wait for each other: that of the
    /// last round in which more was delivered as more was sent.
    in_bursts: Span,
    /// What was delivered in the round before.
    delivered_before: Rate,
    /// A round ends when a packet sent after this many were delivered is acknowledged.
    round_end: u64,
    delivered_in_all: u64,
    /// When it began, and packets delivered since then; the rate of that in the round before.
    round_began: Time,
    arrived: u32,
    counted: Rate,
    /// Losses are being repaired.
    repairs: bool,
    delivered: u64,
    congested: u64,
    /// What was delivered when the path was full for the last time.
    known: Rate,
    /// Rounds without a queue, losses and marks.
    quiet: u32,
    /// The queue is to be emptied in this round.
    drain: bool,
    /// What the start measured.
    measured: Option<Rate>,
    /// The ACKs of this round are of packets from before it took over.
    settling: bool,
    /// Rounds whose deliveries are not judged: with a timeout in it, and the next one.
    silent: u32,
    /// Less was delivered than sent, or there was a queue.
    full: bool,
    /// The longest queueing delay of this round, in seconds.
    longest: f64,
    /// The shortest of these in rounds in which a buffer overflowed, in this half of a window and
    /// in the one before, in seconds: so much fits into the buffer.
    shallow: [f64; 2],
    /// Whether the rate may be brought down in this round before it is over.
    brake: Brake,
    /// Rounds with a queue that does not go away, and the rate before the first of them.
    foreign: u32,
    undoubted: Rate,
    longer: Longer,
    foreseen: Foreseen,
    /// The most that was delivered in this half of a window and in the one before, and when the
    /// half ends.
    peaks: [Rate; 2],
    peak_turns: Time,
    /// What the start said that the path carries, and until when that is expected.
    promised: (Rate, Time),
    /// Rounds on a noisy path at much less than that.
    starved: u32,
    /// Rounds for which it is remembered that packets were lost that no queue had announced.
    unannounced: u32,
    /// RTTs differ, by noise or by turns of others.
    uneven: bool,
    /// Whether more than the rate is delivered.
    trial: Trial,
}

impl DelayTarget {
    /// The control for a flow with segments of `mss` payload bytes. Constants out of range are
    /// moved to the nearest value in range.
    #[must_use]
    pub fn new(config: &DelayTargetConfig, mss: u32) -> Self {
        Self {
            config: config.in_range(),
            path: PathView::new(mss),
            rate: None,
            before: Rate::ZERO,
            smallest: Smallest::new(),
            calm: Smallest::new(),
            round_sum: 0.0,
            round_samples: 0,
            rtt: Span::ZERO,
            latest: [Span::MAX; MOST_SAMPLES],
            next_sample: 0,
            round_least: Span::MAX,
            round_most: Span::ZERO,
            ranges: [Span::ZERO; MOST_ROUNDS],
            unrest: [Span::ZERO; MOST_ROUNDS],
            began_at: Span::ZERO,
            unasked: false,
            next_range: 0,
            in_bursts: Span::ZERO,
            delivered_before: Rate::ZERO,
            round_end: 0,
            delivered_in_all: 0,
            round_began: Time::ZERO,
            arrived: 0,
            counted: Rate::ZERO,
            repairs: false,
            delivered: 0,
            congested: 0,
            known: Rate::ZERO,
            quiet: 0,
            drain: false,
            measured: None,
            settling: false,
            silent: 0,
            full: false,
            longest: 0.0,
            shallow: [f64::INFINITY; 2],
            brake: Brake::Off,
            foreign: 0,
            undoubted: Rate::ZERO,
            longer: Longer::NEW,
            foreseen: Foreseen::NEW,
            peaks: [Rate::ZERO; 2],
            peak_turns: Time::ZERO,
            promised: (Rate::ZERO, Time::ZERO),
            starved: 0,
            unannounced: 0,
            uneven: false,
            trial: Trial::new(),
        }
    }

    /// The same for a queue that is taken for the flow's own unasked.
    #[must_use]
    pub(crate) fn unasked(config: &DelayTargetConfig, mss: u32) -> Self {
        Self { unasked: true, ..Self::new(&config.unasked(), mss) }
    }

    /// The rate; `None` before it has taken over.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// The smallest RTT it knows; [`Span::MAX`] if none.
    #[must_use]
    pub fn min_rtt(&self) -> Span {
        self.smallest.get()
    }

    fn queueing(&self) -> Span {
        self.rtt.checked_sub(self.base()).unwrap_or(Span::ZERO)
    }

    /// What a round trip takes without a queue: that of the round with the least delay, noise
    /// included, but no more than the noise seen above the smallest RTT. Packets that leave in
    /// bursts wait for each other as well.
    fn base(&self) -> Span {
        let smallest = self.smallest.get();
        let above = |by: f64| smallest.checked_add(Span::from_secs_f64(by)).unwrap_or(Span::MAX);
        let bursts = self.in_bursts.min(above(self.longest_burst()));
        self.calm.get().min(above(self.noise())).max(bursts).max(smallest)
    }

    /// The least target on this path, in seconds.
    fn least_target(&self) -> f64 {
        self.noise() * self.config.noise_ranges
    }

    /// By how much RTTs of the latest rounds differed within a round, in seconds.
    fn noise(&self) -> f64 {
        let rounds = &self.ranges[..self.config.noise_rounds as usize];
        let most = self.config.max_noise.as_secs_f64();
        let sum: f64 = rounds.iter().map(|range| range.as_secs_f64().min(most)).sum();
        sum / rounds.len() as f64
    }

    fn take_over(&mut self, now: Time, first: Rate) {
        // Losses that ended the start are answered by beginning with what is delivered.
        (self.delivered, self.congested) = (0, 0);
        self.brake = if self.measured.is_some() { Brake::Off } else { Brake::Ready };
        let rate = match (self.measured.take(), self.path.delivery.filter(|_| !self.rtt.is_zero())) {
            // What is delivered tells nothing of a path that was measured by less than it carries.
            (Some(measured), _) => {
                self.known = measured;
                // Bursts may have been faster.
                self.peaks = [Rate::ZERO; 2];
                self.promised = (measured, now + self.config.min_rtt_window);
                (self.settling, self.round_end) = (true, self.delivered_in_all);
                // Next to nothing of it would be a pause without an end.
                let least = self.path.least_rate(self.config.min_packets).min(measured.mul_ratio(1, 2));
                measured.mul_f64(self.config.known_share).max(least)
            }
            (None, Some(delivery)) => self.next_rate(first, delivery, 0.0),
            (None, None) => first,
        };
        self.before = rate;
        self.rate = Some(rate);
    }
}

impl CongestionAvoidance for DelayTarget {
    fn on_ack(&mut self, ack: &Ack, _window: &Window) {
        self.path.on_ack(ack);
        if let Some(rtt) = ack.rtt {
            self.take_sample(ack.now, rtt);
        }
        self.delivered_in_all = ack.delivered;
        self.arrived = self.arrived.saturating_add(ack.acked);
        self.delivered = self.delivered.saturating_add(u64::from(ack.acked.saturating_sub(ack.marked)));
        self.congested =
            self.congested.saturating_add(u64::from(ack.newly_lost())).saturating_add(u64::from(ack.marked));
        if let Some(sample) = ack.rate
            && sample.prior_delivered >= self.round_end
        {
            self.round_end = ack.delivered;
            // Of a flow that did not use its rate nothing can be learnt.
            if sample.app_limited {
                (self.delivered, self.congested) = (0, 0);
                (self.arrived, self.round_began) = (0, ack.now);
                (self.round_least, self.round_most) = (Span::MAX, Span::ZERO);
                (self.round_sum, self.round_samples) = (0.0, 0);
                self.began_at = self.rtt;
                self.foreseen.skip();
                if self.brake == Brake::Used {
                    self.brake = Brake::Ready;
                }
            } else {
                self.on_round(ack.now);
            }
        } else {
            self.brake();
        }
    }

    fn grow(&mut self, ack: &Ack, acked: u32, window: &mut Window) {
        self.repairs = ack.repair != Repair::Nothing;
        if acked > 0
            && let Some(rate) = self.rate
        {
            window.cwnd = self.path.window(rate, self.config.window_rtts, self.config.min_packets.max(2));
        }
    }

    fn reduce(&mut self, now: Time, signal: Signal, window: &Window) -> u32 {
        match self.rate {
            None => self.take_over(now, self.path.delivered_rate(window)),
            Some(rate) if signal == Signal::Timeout => {
                let least = self.path.least_rate(self.config.min_packets);
                self.rate = Some(rate.mul_f64(self.config.timeout_factor).max(least));
                // What is delivered in a round with a silence is no rate of the path. Nor is that
                // of the next one, whose first samples reach back to what was sent in the silence.
                (self.silent, self.round_end) = (2, self.delivered_in_all);
                self.brake = Brake::Off;
            }
            // Losses and marks are judged by the round.
            Some(_) => {}
        }
        // Whoever takes over because the queue is somebody else's goes on from before that starved
        // this flow.
        let rate = self.rate.unwrap_or(Rate::ZERO);
        let rate = if self.foreign > 0 { rate.max(self.undoubted) } else { rate };
        self.path.window(if self.gives_up() { self.peak() } else { rate }, 1, 2)
    }

    fn on_takeover(&mut self, now: Time, window: &Window, rate: Option<Rate>) {
        if rate.is_some() {
            self.measured = rate;
        }
        self.take_over(now, self.path.window_rate(window));
    }

    fn isolation_aware(&mut self) -> Option<&mut dyn IsolationAware> {
        Some(self)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }

    fn controls_recovery(&self) -> bool {
        true
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.path.on_mss(mss);
    }
}

impl IsolationAware for DelayTarget {
    fn on_isolation_confirmed(&mut self) {
        self.foreign = 0;
        self.take_for_longer();
    }

    fn on_smallest_rtt(&mut self, rtt: Span) {
        self.smallest.lower(rtt);
    }

    fn on_dismissal(&mut self) {
        (self.rate, self.foreign, self.starved, self.unannounced) = (None, 0, 0, 0);
        (self.in_bursts, self.delivered_before, self.longer) = (Span::ZERO, Rate::ZERO, Longer::NEW);
        (self.foreseen, self.trial) = (Foreseen::NEW, Trial::new());
    }

    fn gives_up(&self) -> bool {
        let reached = |count: u32, most: u32| most > 0 && count >= most;
        reached(self.starved, self.config.give_up_rounds) || reached(self.trial.followed(), self.config.give_up_trials)
    }

    fn doubts_isolation(&self) -> bool {
        self.config.foreign_rounds > 0 && self.foreign >= self.config.foreign_rounds
    }
}

#[cfg(test)]
mod tests;
