//! This project's schedule. Like the authors' later design it separates what chirps probe from what
//! they load; unlike it, the load grows as fast as the chirps together have shown that there is
//! room ([`belief`](super::belief)), at most by a fixed factor per round trip, and a start ends as
//! soon as they leave little doubt about the capacity and the load may follow. The noisier the
//! path, the longer and faster are the chirps.
//!
//! A chirp that cannot be read is no evidence: the load grows as slow start's would all the same.
//! If the first one says nothing, or later ones for a round trip, the schedule gives up: another
//! start is to be in charge (HyStart, in the crate of starts). Where packets are marked it goes on
//! instead, until a whole round trip's RTTs have risen or the delivery stays behind for several.

mod config;
mod evidence;
mod load;
mod saturation;
mod trial;
mod watch;

use flowstart_units::{Span, Time};

use super::again::{ChirpingAgainConfig, Known};
use super::batches::{Batches, hidden, together, without_step};
use super::belief::{Belief, Room};
use super::flight::Measured;
use super::geometry::{Geometry, RATIO_ONE, ratio_from_f64};
use super::reading::ReadingRule;
use super::schedule::{Before, Plan, Pull, Schedule, exit, packets_in};
pub use config::AdaptiveChirpingConfig;
use flowstart_control::{Ack, Afterwards, Exit, ExitReason, NewMss, Next, Window};
pub use saturation::SaturationConfig;
pub use trial::TrialConfig;
use trial::{Trial, filling};
use watch::Watch;

/// Packets that a chirp can have.
const MOST_PACKETS: u32 = super::flight::MAX_CHIRP as u32;

/// The adaptive schedule in operation.
#[derive(Clone, Debug)]
pub struct Adaptive {
    config: AdaptiveChirpingConfig,
    rule: ReadingRule,
    mss: u32,
    /// Average gap of the next chirp in ns; zero before the first.
    probe: u64,
    /// Time per packet that holds the average rate.
    load: u64,
    /// Packets of the initial window.
    initial: u32,
    /// Number of what is sent of it after the first chirp, evenly: no chirp to be read.
    rest: Option<u32>,
    /// What the chirps say together; `None` before the first and after the start.
    belief: Option<Belief>,
    /// What is plausible by it; `None` until a chirp could be read.
    room: Option<Room>,
    /// Chirps in a row that left little doubt about the capacity.
    agreed: u32,
    /// When the first of those left.
    agreed_from: Time,
    /// Chirps in a row that contradict those before.
    contradicted: u32,
    /// Round trips in which chirps held the load back without being sure.
    held: u32,
    /// Chirps in a row that could not be read.
    unclear: u32,
    /// When the last chirp was complete that could be, or the first that had only too much noise.
    read_at: Option<Time>,
    /// A chirp that could not be is complete.
    vain: bool,
    /// It had points enough, but too much noise, or a queue that others fill.
    noisy: bool,
    batches: Batches,
    /// Mean square in ns² of what ACKs that come together hide.
    hidden: f64,
    /// Packets were marked: the avoidance knows how to share this path.
    marked: bool,
    /// The path cannot be read, or the host keeps no gaps: another start is to be in charge.
    gave_up: bool,
    /// It was jitter for which it could not.
    jittery: bool,
    /// Standard deviation of the noise by then.
    last_noise: Span,
    watch: Watch,
    min_rtt: Span,
    last_ack: Time,
    losses: u32,
    /// Packets that the receiver keeps back at most until it acknowledges them: one less than a
    /// single ACK has told of.
    kept_back: u32,
    /// Number of the first chirp.
    first: u32,
    /// What was known before the first chirp, if the flow is not new.
    known: Option<Known>,
    /// Packets of chirps that left, and how many of them were late by more than a gap.
    left: (u32, u32),
    /// Packets that were delivered before the first ACK that was seen.
    base: Option<u64>,
    /// Those delivered since.
    delivered: u64,
    /// The window that was handed over, while it is on trial.
    trial: Option<Trial>,
}

impl Adaptive {
    pub(super) fn new(config: &AdaptiveChirpingConfig, mss: u32) -> Self {
        Self {
            rule: config.reading(),
            mss: mss.max(1),
            probe: 0,
            load: 0,
            initial: 0,
            rest: None,
            belief: None,
            room: None,
            agreed: 0,
            agreed_from: Time::ZERO,
            contradicted: 0,
            held: 0,
            unclear: 0,
            read_at: None,
            vain: false,
            noisy: false,
            batches: Batches::new(config.clock),
            hidden: 0.0,
            marked: false,
            gave_up: false,
            jittery: false,
            last_noise: Span::ZERO,
            watch: Watch::NEW,
            min_rtt: Span::MAX,
            last_ack: Time::ZERO,
            losses: 0,
            kept_back: 0,
            first: 0,
            known: None,
            left: (0, 0),
            base: None,
            delivered: 0,
            trial: None,
            config: config.clone(),
        }
    }

    /// The gap the next chirp is centred on; zero before the first.
    #[must_use]
    pub fn probe_gap(&self) -> Span {
        Span::from_nanos(self.probe)
    }

    /// The gap that holds the average load; zero before the first chirp.
    #[must_use]
    pub fn load_gap(&self) -> Span {
        Span::from_nanos(self.load)
    }

    /// What the chirps so far have shown; `None` before the first that could be read.
    #[must_use]
    pub fn room(&self) -> Option<Room> {
        self.room
    }

    /// True if chirps were given up for jitter, not for what others do.
    #[must_use]
    pub fn is_jittery(&self) -> bool {
        self.jittery
    }

    /// Standard deviation of what noise did from one packet to the next when chirps were given up;
    /// zero before.
    #[must_use]
    pub fn last_noise(&self) -> Span {
        self.last_noise
    }

    /// Number of the first chirp since the flow began, or began again.
    pub(super) fn first(&self) -> u32 {
        self.first
    }

    /// True if the flow was filling a window when it began to chirp.
    pub(super) fn is_running(&self) -> bool {
        self.known.is_some_and(|known| known.window.is_some())
    }

    /// A new flow's packets were marked: they tell little of what is to be had, and HyStart, which
    /// leaves at the first one, does worse with them than chirps, however short the transfer.
    pub(super) fn has_been_marked(&mut self) {
        self.marked = true;
    }

    /// True while nothing is known of a path: before the first chirp is read, or cannot be read.
    fn is_unread(&self) -> bool {
        self.room.is_none() && self.unclear == 0 && !self.is_running()
    }

    /// Packets that a path holds which takes one per `gap`, and those that the receiver keeps back
    /// besides. One ACK may have told of all that had waited for a silent link.
    fn fits(&self, min_rtt: Span, gap: u64) -> (u32, u32) {
        let held = packets_in(min_rtt, gap);
        (held, self.kept_back.min(held))
    }

    /// The end, at this gap, with this window. A running flow goes on with the window it had if
    /// that is not less.
    fn exit(&self, reason: ExitReason, packets: u32, gap: u64) -> Exit {
        match self.known.and_then(|known| known.window) {
            Some(window) if packets <= window => Exit { reason, cwnd: window, ssthresh: window, rate: None },
            _ => exit(reason, packets, gap, self.mss),
        }
    }

    /// The path cannot be read. A flow that was running goes on as it was; the start of any other
    /// is for others to finish.
    fn give_up(&mut self) -> Option<Exit> {
        self.jittery = self.belief.as_ref().is_some_and(Belief::is_jittery);
        self.last_noise = Span::from_nanos(self.all_noise() as u64);
        (self.gave_up, self.belief) = (true, None);
        let running = self.is_running();
        running.then(|| self.exit(ExitReason::Limit, 0, u64::MAX))
    }

    /// True if nothing could be read for too long, when another chirp could not be. Until the first
    /// is read, only noise has that time, and on a short way it has none: HyStart ends in the first
    /// round trip there, and a start that doubles for another fills the buffer.
    fn has_no_patience(&mut self, ack: &Ack) -> bool {
        let patience = Span::from_nanos((ack.min_rtt.as_nanos() as f64 * self.config.patience) as u64);
        match self.read_at {
            Some(read_at) => ack.now.since(read_at) >= patience,
            None if self.noisy && self.min_rtt >= self.config.short_way => {
                self.read_at = Some(ack.now);
                false
            }
            None => true,
        }
    }

    /// True if the host keeps no gaps: what ACKs say is about it as much as about the path.
    #[must_use]
    pub fn is_host_late(&self) -> bool {
        let (all, late) = self.left;
        all >= self.config.late_after && f64::from(late) > f64::from(all) * self.config.late_share
    }
}

impl Schedule for Adaptive {
    const PLANS_ANEW: bool = true;

    fn pull(&mut self, now: Time, number: u32, next: &Next, window: &Window, before: Option<&Before>) -> Pull {
        let queued = u32::try_from(next.queued).unwrap_or(u32::MAX);
        if number == self.first && !self.is_running() {
            let packets = window.cwnd.max(2);
            // A short transfer is over before what a chirp tells could be used.
            let short = queued <= self.config.short_transfer && !self.marked;
            if queued < packets || short {
                return Pull::Unchirped;
            }
            match self.known {
                Some(known) => (self.probe, self.load) = (known.gap, known.load.max(known.gap)),
                None => self.begin(next.srtt, packets),
            }
            (self.initial, self.rest) = (packets, None);
            let packets = if self.known.is_some() { packets.min(MOST_PACKETS) } else { self.first_packets() };
            let geometry = Geometry::new(packets, self.probe, ratio_from_f64(self.config.geometry));
            return Pull::Chirp(Plan { geometry, guard: 0, at: now, load: self.load });
        }
        let earliest = before.map_or(now, |before| {
            let share = Span::from_nanos(self.load.saturating_mul(u64::from(before.packets)));
            (before.first + share).max(before.last + Span::from_nanos(self.probe.min(self.load)))
        });
        let at = earliest.max(now);
        // Until the first chirp is read nobody knows whether the path holds more than the initial
        // window.
        if self.is_unread() {
            let rest = self.initial.saturating_sub(self.first_packets()).min(queued).min(MOST_PACKETS);
            if number == self.first.saturating_add(1) && rest > 0 && self.known.is_none() {
                self.rest = Some(number);
                let gap = self.load.min((self.probe as f64 * self.config.rest_gap) as u64);
                // A large window leaves as fast as what HyStart takes over.
                let parts = u64::from(rest) * u64::from(self.config.catch_up.max(1));
                let gap = if self.is_large() { gap.min(next.srtt.as_nanos() / parts).max(1) } else { gap };
                let soonest = before.map_or(now, |before| before.last + Span::from_nanos(gap)).max(now);
                let geometry = Geometry::new(rest, gap, RATIO_ONE);
                return Pull::Chirp(Plan { geometry, guard: 0, at: at.min(soonest), load: self.load });
            }
            return if next.in_flight >= self.initial { Pull::Hold } else { Pull::Unchirped };
        }
        self.rest = self.rest.filter(|rest| *rest != number);
        // No more than slow start's window on the word of a clock: a path may take longer for a
        // packet than its RTT lets one expect.
        if self.room.is_none() && !self.is_running() && u64::from(next.in_flight) >= self.slow_start() {
            return Pull::Hold;
        }
        // Once the capacity is known there is nothing to be won by chirps that are faster than they
        // must be to show it: the load waits for them.
        let probe = if self.least() > 0 { self.probe } else { self.probe.min(self.load) }.max(1);
        let noise = self.noise();
        let half = next.srtt.as_nanos() / self.load.max(1) / 2;
        let batched = self.batches.packets(probe, self.enough_points());
        let long = (self.config.length * noise / probe as f64).max(batched).min(half as f64) as u32;
        // A round trip that is full of queue has room for many gaps of a short way.
        let blind = self.room.is_none() && !self.is_running() && self.min_rtt < self.config.short_way;
        let allowed = self.slow_start().saturating_sub(u64::from(next.in_flight));
        let long = if blind { long.min(u32::try_from(allowed).unwrap_or(u32::MAX)) } else { long };
        let packets = self.config.packets.max(long).min(queued).clamp(1, MOST_PACKETS);
        let geometry = Geometry::new(packets, probe, ratio_from_f64(self.config.geometry));
        Pull::Chirp(Plan { geometry, guard: 0, at, load: self.load })
    }

    fn completed(&mut self, number: u32, measured: Option<&Measured>, _in_flight: u32) {
        if self.gave_up {
            return;
        }
        if self.rest == Some(number) {
            // It overtook the first chirp, of which nothing will come any more.
            if self.is_unread() {
                self.unread(self.load);
            }
            return;
        }
        let Some(chirp) = measured else {
            // Nothing will come of the first chirp any more.
            if self.is_unread() {
                self.noisy = false;
                self.unread(self.load);
            }
            return;
        };
        let points = together(chirp.points(), self.config.together, self.gap());
        // What was repaired after a timeout is a burst that holds the first chirps up just so.
        if self.known.is_none() {
            let (hidden, weight) = (hidden(chirp.points(), &points), self.config.belief.noise_weight);
            self.hidden += (hidden - self.hidden) * if self.hidden == 0.0 { 1.0 } else { weight };
        }
        let least = self.rule.min_points;
        let smooth = without_step(&points, self.config.step_share, self.config.step_gaps);
        self.batches.tell_spacing(smooth, self.rule);
        let telling = self.batches.take(chirp, &points, self.enough_points(), least, self.config.per_tick);
        let points = smooth;
        self.noisy = points.len() >= least && telling;
        if !self.noisy {
            return self.unread(chirp.load());
        }
        let first = self.room.is_none();
        self.room = self.learn(points).or(self.room);
        let Some(room) = self.room.filter(|room| !room.crowded) else { return self.unread(chirp.load()) };
        if self.is_drowned() {
            self.room = None;
            return self.unread(chirp.load());
        }
        (self.unclear, self.read_at) = (0, Some(self.last_ack));
        let certain = self.is_certain();
        if certain && self.agreed == 0 {
            self.agreed_from = chirp.sent_at();
        }
        self.agreed = match certain {
            // Sent with more load than there is room for: there is no more to find.
            true if chirp.load() <= room.best => self.config.agreeing.max(self.agreed + 1),
            true => self.agreed.saturating_add(1),
            false => 0,
        };
        let noise = self.noise();
        let packets = points.len().max(self.config.packets as usize);
        self.probe = self.config.centre_of(room.best, packets, noise, self.jitter());
        // A flow that fills its path already does not take more on the word of a single chirp.
        if self.is_running() && first {
            return;
        }
        // As far as there is room in any case, and no faster than the growth allows since this
        // chirp left.
        self.load = self.load.min(room.most.max(Self::divided(chirp.load(), self.growth(chirp.load()))));
        if !self.is_running() {
            self.keep_up(chirp.load());
        }
        if room.least > self.load {
            self.load = room.best;
        }
    }

    fn left(&mut self, late: u64, gap: u64) {
        let (all, late_ones) = &mut self.left;
        *all = all.saturating_add(1);
        *late_ones = late_ones.saturating_add(u32::from(late > gap));
    }

    fn gave_up(&self) -> bool {
        self.gave_up
    }

    fn verdict(&mut self, ack: &Ack, completed: bool) -> Option<Exit> {
        (self.min_rtt, self.last_ack) = (ack.min_rtt, ack.now);
        self.marked |= ack.marked > 0;
        if self.gave_up {
            return None;
        }
        self.follow(ack);
        self.kept_back = self.kept_back.max(ack.acked.saturating_sub(1));
        let vain = core::mem::take(&mut self.vain) && !self.marked && self.has_no_patience(ack);
        if vain || self.is_host_late() {
            return self.give_up();
        }
        let known = self.gap().filter(|_| self.agreed >= self.config.agreeing);
        if let Some(gap) = known
            && completed
            && ack.min_rtt != Span::MAX
            && (self.load <= gap || self.agrees(self.load, gap))
            && self.has_stayed(ack)
        {
            let (held, kept_back) = self.fits(ack.min_rtt, gap);
            let packets = filling(held, kept_back);
            self.trial = (self.is_clear() && self.known.is_none())
                .then(|| Trial::new(&self.config.trial, &self.config.saturation, gap, kept_back, ack));
            self.belief = None;
            return Some(self.exit(ExitReason::PipeFull, packets, gap));
        }
        let blind = self.unclear > 0 || self.is_bounded();
        let mut reason = None;
        let round_ends = self.watch.on_ack(ack, self.load, &self.config);
        if self.losses > 0 && self.watch.has_lost_many(&self.config) {
            // Losses that were pardoned were the first of many: the avoidance is told of those.
            let (cwnd, _) = self.window_at_loss(ack.in_flight, None);
            self.belief = None;
            return Some(Exit { reason: ExitReason::Loss, cwnd, ssthresh: cwnd, rate: None });
        }
        if round_ends {
            self.held = self.held.saturating_add(u32::from(self.holds()));
            let unsure = !self.marked && self.held >= self.held_rounds();
            if self.is_refuted() || unsure {
                return self.give_up();
            }
            let full = self.watch.plateau() >= self.config.plateau_rounds && blind;
            if full && !self.marked && !self.watch.has_risen() {
                // Less arrives than chirps were to send, but nothing queues and nothing is marked:
                // it is their word that is wrong, not the path that is full.
                return self.give_up();
            }
            let unread = self.unclear > 0 && !self.is_bounded() && self.known.is_none();
            if unread && self.watch.has_risen() && !self.marked {
                // A queue, or a single late packet that held all others up: HyStart knows when the
                // window is too small to tell.
                return self.give_up();
            }
            let risen = (self.watch.has_risen() && blind).then_some(ExitReason::DelayIncrease);
            reason = risen.or(full.then_some(ExitReason::RatePlateau));
            if self.watch.rounds() >= self.config.max_rounds && reason.is_none() {
                return self.give_up();
            }
        }
        let reason = reason?;
        // No more than what was sent, and no more than what arrived.
        let delivered = ack.rate.filter(|rate| !rate.app_limited).map_or(0, |rate| rate.gap().as_nanos());
        let gap = delivered.max(self.load).max(1);
        let packets = packets_in(ack.min_rtt, gap);
        if !self.marked && !self.is_running() && packets < self.config.least_window {
            // So few packets may all have waited for the same reason, such as a link that was
            // silent.
            return self.give_up();
        }
        self.belief = None;
        Some(self.exit(reason, packets, gap))
    }

    fn on_ack_after(&mut self, ack: &Ack, cwnd: u32) -> Afterwards {
        self.trial.as_mut().map_or(Afterwards::Settled, |trial| trial.on_ack(ack, cwnd, self.mss))
    }

    fn on_loss_after(&mut self, cwnd: u32) -> Option<u32> {
        self.trial.as_mut().and_then(|trial| trial.on_loss(cwnd))
    }

    fn permission(&self, _number: u32, leaving: u32) -> u32 {
        leaving.saturating_add(self.config.packets.saturating_mul(2))
    }

    fn on_loss(&mut self, _now: Time, in_flight: u32) -> Option<(u32, u32)> {
        self.losses = self.losses.saturating_add(1);
        let shown = self.gap().filter(|_| !self.watch.has_lost_many(&self.config));
        if self.losses <= self.config.pardoned_losses && shown.is_some_and(|gap| gap.saturating_mul(2) <= self.load) {
            return None;
        }
        Some(self.window_at_loss(in_flight, shown))
    }

    fn stall(&self, host: bool) -> f64 {
        if host { self.config.host_stall } else { self.config.stall }
    }

    fn again(&self) -> Option<&ChirpingAgainConfig> {
        Some(&self.config.again)
    }

    fn shown(&self) -> u32 {
        self.gap().map_or(0, |gap| packets_in(self.min_rtt, gap))
    }

    fn resume(&mut self, number: u32, known: Known) -> bool {
        if self.gave_up {
            return false;
        }
        (self.first, self.known) = (number, Some(known));
        (self.probe, self.load) = (known.gap, known.load);
        (self.belief, self.room, self.hidden) = (None, None, 0.0);
        (self.agreed, self.unclear, self.losses, self.rest) = (0, 0, 0, None);
        self.left = (0, 0);
        (self.watch, self.read_at, self.vain, self.noisy) = (Watch::NEW, None, false, false);
        (self.contradicted, self.held) = (0, 0);
        true
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.mss = mss.bytes();
        self.probe = mss.gap(self.probe);
        self.load = mss.gap(self.load);
        self.watch.on_mss(mss);
        if let Some(trial) = &mut self.trial {
            trial.on_mss(mss);
        }
        // What chirps of other packets said is about other gaps: the next one begins anew. Until
        // it is read a new flow goes on at the same rate in bytes: one of which nothing is known
        // would wait until no more is in flight than its initial window.
        (self.belief, self.hidden, self.agreed, self.contradicted) = (None, 0.0, 0, 0);
        self.room = self.room.filter(|_| !self.is_running()).map(|room| Room {
            least: mss.gap(room.least),
            best: mss.gap(room.best),
            most: mss.gap(room.most),
            ..room
        });
        if let Some(known) = &mut self.known {
            known.gap = mss.gap(known.gap);
            known.load = mss.gap(known.load);
            known.window = known.window.map(|window| mss.packets(window));
        }
    }
}

#[cfg(test)]
mod tests;
