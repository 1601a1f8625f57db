//! The controller: one start and one avoidance, whichever is in charge.

mod charge;
mod config;
mod idle;
mod pacer;
mod prior;
mod steering;
mod unhurried;

use flowstart_avoidances::Avoidance;
use flowstart_control::{
    Ack, Acked, AfterAck, Afterwards, Answer, CongestionAvoidance, Connection, Departure, Exit, ExitReason, FlowStart,
    Isolation, NewMss, Next, Occasion, Response, Restart, Sent, Signal, Window, stack_pacing_rate,
};
use flowstart_quick_start::Carried;
use flowstart_starts::{Directed, Start};
use flowstart_units::{Rate, Span, Time};

pub use config::{ControllerConfig, joint_name, start_of};
use pacer::Pacer;
pub use prior::Prior;
pub use steering::Steering;
use unhurried::Unhurried;

/// How and when a start ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartExit {
    /// When.
    pub now: Time,
    /// Why.
    pub reason: ExitReason,
    /// Congestion window in packets when the start ended, before the reduction a loss or a mark
    /// brings.
    pub cwnd: u32,
    /// Threshold in packets that the start or the reduction set.
    pub ssthresh: u32,
    /// Packets in flight.
    pub in_flight: u32,
    /// Smoothed RTT; zero if unknown.
    pub srtt: Span,
    /// Smallest RTT; [`Span::MAX`] if unknown.
    pub min_rtt: Span,
}

/// What the controller remembers of the last ACK for the record of the start's exit.
#[derive(Clone, Copy, Debug)]
struct LastSeen {
    now: Time,
    in_flight: u32,
    srtt: Span,
    min_rtt: Span,
    delivered: u64,
}

/// One start and one avoidance joined: routes every event to whichever is in charge.
#[derive(Clone, Debug)]
pub struct Controller {
    window: Window,
    /// True while the start decides: until it hands over, and later whenever it is armed again.
    in_charge: bool,
    /// True if the start watches the avoidance for a reason to be in charge again.
    watched: bool,
    /// What the start handed over may yet turn out to be wrong.
    open: bool,
    /// The timeout whose expiry is to come was answered by a reduction.
    timed_out: bool,
    /// How the start ended for the first time.
    exit: Option<StartExit>,
    pacer: Pacer,
    last: LastSeen,
    initial_window: u32,
    mss: u32,
    /// Round trips that a rate which the start left behind holds at most.
    left_behind_rtts: u32,
    /// The avoidance hears of every packet.
    tells_packets: bool,
    /// The avoidance sets the window in recovery.
    own_recovery: bool,
    /// The avoidance is in a start of its own, which has not ended.
    own_start: bool,
    /// When a verdict of isolation was taken back for the last time.
    revoked: Option<Time>,
    /// The avoidance goes on as in a queue that is shared, whatever it is told.
    gave_up: bool,
    /// Window before the last reduction if that reduction was made at once.
    fell_from: Option<u32>,
    /// Largest window since the last reduction, but for the present one; `None` before the first.
    largest: Option<u32>,
    /// A directed start goes on to hear of packets while it is not in charge.
    overhears: bool,
    /// Slow start goes on beside others that keep a queue.
    unhurried: Option<Unhurried>,
    start: Start,
    avoidance: Avoidance,
}

impl Controller {
    /// A controller for a new connection.
    #[must_use]
    pub fn new(config: &ControllerConfig) -> Self {
        Self::join(Start::new(config), Avoidance::new(config), config)
    }

    /// A controller from a start and an avoidance that need not come from this crate
    /// ([`Start::External`], [`Avoidance::External`]).
    #[must_use]
    pub fn join(mut start: Start, mut avoidance: Avoidance, config: &ControllerConfig) -> Self {
        let Connection { initial_window, mss, .. } = config.connection();
        let mut window = Window::new(start.initial_window().unwrap_or(initial_window).max(1));
        if let Some(ssthresh) = config.initial_ssthresh {
            window.ssthresh = ssthresh.max(2);
        }
        let asked = start.leaves_to_avoidance() && avoidance.controls_recovery();
        let own_start = asked && avoidance.begin_flow(&window);
        Self {
            window,
            in_charge: !own_start,
            watched: start.lookout().is_some() && avoidance.is_scalable(),
            open: false,
            timed_out: false,
            exit: None,
            pacer: Pacer::new(config.pacing, mss),
            last: LastSeen { now: Time::ZERO, in_flight: 0, srtt: Span::ZERO, min_rtt: Span::MAX, delivered: 0 },
            initial_window,
            mss,
            left_behind_rtts: config.left_behind_rtts,
            tells_packets: avoidance.wants_packets(),
            own_recovery: avoidance.controls_recovery(),
            own_start,
            revoked: None,
            gave_up: false,
            fell_from: None,
            largest: None,
            overhears: false,
            unhurried: None,
            start,
            avoidance,
        }
    }

    /// Congestion window in packets; at least 1, also if an algorithm from outside leaves none.
    #[must_use]
    #[inline]
    pub fn cwnd(&self) -> u32 {
        self.window.cwnd.max(1)
    }

    /// Slow-start threshold in packets.
    #[must_use]
    #[inline]
    pub fn ssthresh(&self) -> u32 {
        self.window.ssthresh
    }

    /// True if the avoidance is to be told of packets also by a transport that does as a kernel
    /// that counts ACKs ([`CongestionAvoidance::counts_packets`]).
    #[must_use]
    #[inline]
    pub fn counts_packets(&self) -> bool {
        self.avoidance.counts_packets()
    }

    /// True until the start has ended for the first time. (After a timeout a start may be in charge
    /// again, as Linux does with HyStart; that does not count here.)
    #[must_use]
    #[inline]
    pub fn is_starting(&self) -> bool {
        self.exit.is_none()
    }

    /// True while the start decides: until it hands over, and later whenever it is in charge again.
    #[must_use]
    #[inline]
    pub fn start_is_in_charge(&self) -> bool {
        self.in_charge
    }

    /// How the start ended, once it has.
    #[must_use]
    #[inline]
    pub fn start_exit(&self) -> Option<&StartExit> {
        self.exit.as_ref()
    }

    /// The start's state, for inspection.
    #[must_use]
    pub fn start(&self) -> &Start {
        &self.start
    }

    /// The avoidance's state, for inspection.
    #[must_use]
    pub fn avoidance(&self) -> &Avoidance {
        &self.avoidance
    }

    /// The rate packets are paced at now, if they are paced at a rate.
    #[must_use]
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.pacer.rate()
    }

    /// True if [`on_acked`](Self::on_acked) must be called for every delivered packet.
    #[must_use]
    #[inline]
    pub fn wants_packets(&self) -> bool {
        if self.in_charge { self.overhears || self.start.wants_packets() } else { self.tells_packets || self.overhears }
    }

    /// True if the avoidance sets the window itself in recovery, so that the transport must not.
    #[must_use]
    #[inline]
    pub fn controls_recovery(&self) -> bool {
        !self.in_charge && self.own_recovery
    }

    /// A packet left.
    #[inline]
    pub fn on_sent(&mut self, sent: &Sent) {
        if self.in_charge || self.overhears {
            self.start.on_sent(sent);
        }
        if !self.in_charge && self.tells_packets {
            self.avoidance.on_sent(sent);
        }
        self.pacer.on_sent(sent);
    }

    /// A packet was delivered; only needed while [`wants_packets`](Self::wants_packets).
    pub fn on_acked(&mut self, acked: &Acked) {
        if self.in_charge || self.overhears {
            self.start.on_acked(acked);
        }
        if !self.in_charge && self.tells_packets {
            self.avoidance.on_acked(acked);
        }
    }

    /// An ACK came and the scoreboard took it in; nothing has grown or shrunk yet.
    #[inline]
    pub fn on_ack(&mut self, ack: &Ack) {
        self.last = LastSeen {
            now: ack.now,
            in_flight: ack.in_flight,
            srtt: ack.srtt,
            min_rtt: ack.min_rtt,
            delivered: ack.delivered,
        };
        self.avoidance.on_ack(ack, &self.window);
        if self.own_recovery
            && !self.in_charge
            && self.avoidance.isolation_aware().is_some_and(|aware| aware.doubts_isolation())
        {
            self.tell_isolation(ack.now, Isolation::Shared);
            self.revoked = Some(ack.now);
        }
        if self.in_charge {
            if let AfterAck::Done(exit) = self.start.on_ack(ack, &mut self.window) {
                self.hand_over(ack.now, exit);
            }
            return;
        }
        if self.open {
            match self.start.on_ack_after(ack, &self.window) {
                Afterwards::Open => {}
                Afterwards::Settled => self.open = false,
                Afterwards::Corrected(exit) => self.hand_over(ack.now, exit),
            }
        }
        if self.watched
            && let Some(lookout) = self.start.lookout()
        {
            self.in_charge = lookout.look(ack, &self.window);
        }
    }

    /// A loss, marks or a timeout that the transport would answer with a reduction. Returns the
    /// threshold in packets to walk to, or `None` if the flow start does not obey this signal.
    pub fn on_signal(&mut self, now: Time, signal: Signal) -> Option<u32> {
        let (mut threshold, mut fall) = (None, None);
        if self.open {
            threshold = self.start.on_signal_after(signal, &self.window);
            self.open = threshold.is_some();
        }
        if self.in_charge {
            match self.start.on_signal(now, signal, &mut self.window) {
                Response::Ignore => return None,
                Response::Leave => {}
                Response::LeaveAt(ssthresh) => threshold = Some(ssthresh.max(2)),
                Response::FallTo { cwnd, ssthresh } => (fall, threshold) = (Some(cwnd.max(1)), Some(ssthresh.max(2))),
            }
        }
        self.unhurried = None;
        let before = self.window.cwnd;
        let reduced = self.avoidance.reduce(now, signal, &self.window);
        let ssthresh = threshold.unwrap_or(reduced).max(2);
        self.window.ssthresh = ssthresh;
        self.fell_from = fall.map(|cwnd| core::mem::replace(&mut self.window.cwnd, cwnd));
        self.largest = Some(0);
        let reason = match signal {
            Signal::Loss => ExitReason::Loss,
            Signal::Marks => ExitReason::Marks,
            Signal::Timeout => ExitReason::Timeout,
        };
        if !self.own_start {
            self.record_exit(now, reason, before, ssthresh);
        }
        self.timed_out = signal == Signal::Timeout;
        self.in_charge = self.timed_out && !self.own_recovery && self.take_charge(now, Restart::Timeout);
        Some(ssthresh)
    }

    /// The retransmission timer expired: after [`Signal::Timeout`](Self::on_signal) if that called
    /// for a reduction, and also if one was under way. Slow start follows either way, and the start
    /// may be in charge of it (Linux `tcp_enter_loss` enters `TCP_CA_Loss` each time).
    /// `total_lost` packets were declared lost so far, those of this timeout included.
    pub fn on_expiry(&mut self, now: Time, total_lost: u64) {
        self.avoidance.on_expiry(now, total_lost);
        let asked = core::mem::take(&mut self.timed_out);
        if !asked && !self.in_charge && !self.own_recovery {
            self.in_charge = self.take_charge(now, Restart::Timeout);
        }
    }

    /// The window in packets before the last reduction, if that set the window at once: then the
    /// transport does not walk to the threshold, and the window may grow from where it is.
    #[must_use]
    pub fn fell_from(&self) -> Option<u32> {
        self.fell_from
    }

    /// The largest window in packets since congestion reduced it last; `None` if that never
    /// happened.
    #[must_use]
    pub fn largest_window(&self) -> Option<u32> {
        self.largest.map(|largest| largest.max(self.window.cwnd))
    }

    /// The window is about to shrink for another reason than congestion.
    fn remember_window(&mut self) {
        self.largest = self.largest_window();
    }

    /// The window may grow for this ACK (the transport is not reducing, and the ACK advanced or
    /// this is slow start after a timeout).
    #[inline]
    pub fn grow(&mut self, ack: &Ack) {
        // Linux tcp_is_cwnd_limited: in slow start a window up to twice of what was used may grow,
        // later only a used one.
        let limited = ack.cwnd_limited
            || (self.window.in_slow_start() && self.window.cwnd < ack.max_packets_out.saturating_mul(2));
        let own = self.controls_recovery();
        if !limited && !own {
            return;
        }
        let left = if self.in_charge {
            let left = self.start.grow(ack, &mut self.window);
            if !self.window.in_slow_start() && !self.start.owns_window() {
                let Window { cwnd, ssthresh } = self.window;
                self.hand_over(ack.now, Exit { reason: ExitReason::Threshold, cwnd, ssthresh, rate: None });
            }
            left
        } else if self.window.in_slow_start() && !self.own_recovery {
            let acked =
                self.unhurried.as_mut().map_or(ack.acked, |unhurried| unhurried.of(ack.acked, self.window.cwnd));
            let left = self.window.slow_start(acked);
            if !self.window.in_slow_start() {
                // What follows, after an idle time for instance, is that of everybody.
                self.unhurried = None;
            }
            left
        } else {
            ack.acked
        };
        let before = self.window.cwnd;
        if own {
            self.avoidance.on_booked(self.pacer.next());
        }
        if (left > 0 || own) && !self.in_charge {
            self.avoidance.grow(ack, left, &mut self.window);
            if own {
                self.follow_avoidance();
                if !self.own_recovery {
                    self.gave_up = true;
                    self.release_start(Directed::go_on);
                }
            }
        }
        if self.own_start {
            self.watch_own_start(ack.now, before);
        }
    }

    /// True if the window alone decides when packets leave: [`departure`](Self::departure) would
    /// say [`Departure::Now`] and change nothing, so it need not be asked. False where that is not
    /// known at a glance.
    #[must_use]
    #[inline(always)]
    pub fn window_decides(&self) -> bool {
        !self.in_charge && self.pacer.is_off() && !self.avoidance.paces()
    }

    /// When the next packet may leave. The transport has checked the window already.
    #[inline]
    pub fn departure(&mut self, now: Time, next: &Next) -> Departure {
        if self.in_charge
            && let Some(departure) = self.start.departure(now, next, &self.window)
        {
            self.pacer.stand_aside();
            return departure;
        }
        self.pacer.departure(now, next, &self.window, self.avoidance_rate())
    }

    /// The rate of the avoidance, if it has one.
    #[inline]
    fn avoidance_rate(&self) -> Option<Rate> {
        self.avoidance.pacing_rate().filter(|rate| *rate > Rate::ZERO)
    }

    /// As [`departure`](Self::departure), and whether the start gave the packet a time of its own.
    pub fn departure_by(&mut self, now: Time, next: &Next) -> (Departure, bool) {
        if self.in_charge
            && let Some(departure) = self.start.departure(now, next, &self.window)
        {
            self.pacer.stand_aside();
            return (departure, true);
        }
        (self.pacer.departure(now, next, &self.window, self.avoidance_rate()), false)
    }

    /// The rate at which packets are to leave one after the other, as of the last question for a
    /// [`departure`](Self::departure): for transports that can be told a rate but no times. `None`
    /// if the window alone decides.
    #[must_use]
    #[inline]
    pub fn departure_rate(&self) -> Option<Rate> {
        let start = if self.in_charge { self.start.departure_rate() } else { None };
        start.or_else(|| self.pacer.rate())
    }

    /// Segments that a burst has at least, if the avoidance says so.
    #[must_use]
    pub fn least_burst(&self) -> Option<u32> {
        self.avoidance.least_burst()
    }

    /// The rate packets are paced at, or what Linux would pace them at by the window
    /// ([`stack_pacing_rate`]); `None` before the first round-trip time.
    #[must_use]
    pub fn assumed_rate(&self, packets_out: u32, srtt: Span, mss: u32) -> Option<Rate> {
        self.pacing_rate().or_else(|| stack_pacing_rate(mss, &self.window, packets_out, srtt))
    }

    /// What a detector of fair queuing does with this connection.
    pub fn steering(&mut self) -> Steering<'_> {
        Steering { controller: self }
    }

    /// When the avoidance took back for the last time that the flow has a queue of its own, if it
    /// has.
    #[must_use]
    pub fn isolation_revoked(&self) -> Option<Time> {
        self.revoked
    }

    /// True if the avoidance gave up what only a queue of its own allows, although the queue is
    /// that ([`IsolationAware::gives_up`](flowstart_control::IsolationAware::gives_up)).
    #[must_use]
    pub fn gave_up_isolation(&self) -> bool {
        self.gave_up
    }

    /// Payload bytes of a full packet.
    #[must_use]
    #[inline]
    pub fn mss(&self) -> u32 {
        self.mss
    }

    /// A full packet has `mss` bytes of payload from now on: another MTU was found, or the path
    /// changed. Window and threshold stay what they are in bytes, at least 2 packets, and so does
    /// what start and avoidance remember; the record of the start's exit keeps the packets of its
    /// time. Until all packets of the old size have been delivered, what is worked out from counts
    /// of packets (rates of delivery) is off by up to the ratio of the sizes.
    pub fn set_mss(&mut self, mss: u32) {
        let change = NewMss::new(self.mss, mss);
        if change.bytes() == self.mss {
            return;
        }
        self.mss = change.bytes();
        self.pacer.on_mss(self.mss);
        let least = self.window.cwnd.min(2);
        self.window.cwnd = change.packets(self.window.cwnd).max(least);
        self.window.ssthresh = change.packets(self.window.ssthresh).max(2);
        self.initial_window = change.packets(self.initial_window).max(2);
        self.last.in_flight = change.packets(self.last.in_flight);
        self.fell_from = self.fell_from.map(|packets| change.packets(packets));
        self.largest = self.largest.map(|packets| change.packets(packets));
        self.start.on_mss(change);
        self.avoidance.on_mss(change);
    }

    /// Sets the window while the transport reduces it (PRR) or after a timeout.
    pub fn set_cwnd(&mut self, cwnd: u32) {
        self.window.cwnd = cwnd.max(1);
    }

    /// The reduction is complete: the window is the threshold.
    pub fn end_recovery(&mut self) {
        if !self.controls_recovery() {
            self.window.cwnd = self.window.ssthresh.max(1);
        }
    }

    /// The last reduction was spurious: restores window and threshold (Linux
    /// `tcp_undo_cwnd_reduction`). [`Prior`] knows which.
    pub fn undo(&mut self, prior_cwnd: u32, prior_ssthresh: u32) {
        self.window.cwnd = self.avoidance.undo(prior_cwnd, &self.window).max(1);
        self.remember_window();
        self.window.ssthresh = self.window.ssthresh.max(prior_ssthresh);
        self.restart(self.last.now, Restart::Undo);
    }

    /// What to ask the routers on the path for with the next packet, if anything. To be asked at
    /// every [`Moment`](crate::Moment), after [`restart_after_idle`](Self::restart_after_idle) if
    /// that is one.
    pub fn rate_request(&mut self, occasion: &Occasion) -> Carried {
        self.start.router_client().map_or(Carried::NONE, |client| client.rate_request(occasion))
    }

    /// What was asked for is answered. Returns what the next new data reports to the routers, if
    /// anything.
    pub fn on_answer(&mut self, answer: &Answer) -> Carried {
        let Some(client) = self.start.router_client() else { return Carried::NONE };
        if client.on_answer(answer, &mut self.window) {
            self.in_charge = true;
        }
        client.take_report()
    }

    /// True if every packet asks the routers what they have for this flow (RCP), so that
    /// [`on_answer`](Self::on_answer) is to be called for every ACK.
    #[must_use]
    pub fn asks_for_shares(&mut self) -> bool {
        self.start.router_client().is_some_and(|client| client.asks_for_shares())
    }
}

#[cfg(test)]
mod tests;
