//! This project's schedule. Like the authors' later design it separates what chirps probe from what
//! they load; unlike it, the load grows as fast as the chirps together have shown that there is
//! room ([`belief`](super::belief)), at most by a fixed factor per round trip, and a start ends as
//! soon as they leave little doubt about the capacity and the load may follow. The noisier the
//! path, the longer and faster are the chirps. Where they cannot tell (others fill the path, too
//! few ACKs) the load grows as slow start would, and the start ends as HyStart's or BBR's would:
//! when the round-trip time rises or the delivery rate stays behind.

mod config;

use flowstart_units::{Span, Time};

use super::again::{ChirpingAgainConfig, Known};
use super::belief::{Belief, Room};
use super::flight::Measured;
use super::geometry::{Geometry, RATIO_ONE, ratio_from_f64};
use super::reading::{Reading, ReadingRule, read};
use super::schedule::{Before, Plan, Pull, Schedule, exit, packets_in};
pub use config::AdaptiveChirpingConfig;
use flowstart_control::{Ack, Exit, ExitReason, NewMss, Next, Window};

/// Centres are tried one after the other, each this share of the one before.
const CENTRE_STEP: f64 = 0.9;
/// About the gaps of a chirp's first and last packets over the one it is centred on.
const SLOWEST_GAP: f64 = 2.0;
const FASTEST_GAP: f64 = 0.25;
/// Growth per round trip in slow start.
const DOUBLING: f64 = 2.0;

/// A round trip, for what chirps cannot tell.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Counted from 1.
    number: u32,
    /// The round ends when this byte is acknowledged.
    end: u64,
    /// Packets delivered in it, and how many of them were marked.
    acked: u32,
    marked: u32,
    /// When it began.
    began: Time,
    /// Load at its beginning and at that of the round before, in ns per packet; zero if there was
    /// none.
    load: u64,
    load_before: u64,
    /// Rounds in a row that delivered less than the load.
    plateau: u32,
}

const FIRST_ROUND: Round =
    Round { number: 1, end: 0, acked: 0, marked: 0, began: Time::ZERO, load: 0, load_before: 0, plateau: 0 };

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
    /// Chirps in a row that did not tell what is to be had.
    unclear: u32,
    round: Round,
    min_rtt: Span,
    losses: u32,
    /// Smallest of the latest RTTs, and how many they are.
    recent: (Span, u32),
    /// Number of the first chirp.
    first: u32,
    /// What was known before the first chirp, if the flow is not new.
    known: Option<Known>,
    /// Packets of chirps that left, and how many of them were late by more than a gap.
    left: (u32, u32),
}

impl Adaptive {
    pub(super) fn new(config: &AdaptiveChirpingConfig, mss: u32) -> Self {
        Self {
            rule: ReadingRule {
                min_points: config.min_points as usize,
                contrast: u64::from(config.contrast),
                crowded: config.crowded,
            },
            mss: mss.max(1),
            probe: 0,
            load: 0,
            initial: 0,
            rest: None,
            belief: None,
            room: None,
            agreed: 0,
            unclear: 0,
            round: FIRST_ROUND,
            min_rtt: Span::MAX,
            losses: 0,
            recent: (Span::MAX, 0),
            first: 0,
            known: None,
            left: (0, 0),
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

    /// The first chirp spreads the initial window around a gap that the RTT suggests, and nothing
    /// follows before its first ACK is due.
    fn begin(&mut self, srtt: Span, packets: u32) {
        let config = &self.config;
        let gap = if srtt.is_zero() { config.max_first_gap } else { srtt / u64::from(config.probe_divisor.max(1)) };
        // It takes no longer than a round trip, however short that is.
        let spread = if srtt.is_zero() { config.min_first_gap } else { srtt / u64::from(packets.max(1)) };
        self.probe = gap.max(config.min_first_gap.min(spread)).min(config.max_first_gap).as_nanos().max(1);
        self.load = (srtt.as_nanos() / u64::from(packets.max(1))).max(self.probe);
    }

    /// The gap the path carries packets at, as far as the chirps have shown.
    fn gap(&self) -> Option<u64> {
        self.room.filter(|room| !room.crowded).map(|room| if room.least == 0 { room.most } else { room.best })
    }

    /// The load after a chirp that did not tell what is to be had: as slow start while few packets
    /// are in flight, then more slowly.
    fn grow_blindly(&mut self, chirp: &Measured) {
        self.unclear = self.unclear.saturating_add(1);
        (self.agreed, self.load) =
            (0, self.load.min(self.doubled(chirp).unwrap_or(Self::divided(chirp.load(), self.config.blind_growth))));
    }

    /// Twice the load of a chirp, while that is few packets per round trip.
    fn doubled(&self, chirp: &Measured) -> Option<u64> {
        let doubled = Self::divided(chirp.load(), DOUBLING);
        let few = u64::from(self.config.doubling_packets);
        (doubled.saturating_mul(few) >= chirp.min_rtt().as_nanos()).then_some(doubled)
    }

    fn agrees(&self, one: u64, other: u64) -> bool {
        one.abs_diff(other) as f64 <= one.min(other) as f64 * self.config.tolerance
    }

    fn divided(gap: u64, by: f64) -> u64 {
        u64::try_from(u128::from(gap) * u128::from(RATIO_ONE) / u128::from(ratio_from_f64(by).max(1)))
            .unwrap_or(u64::MAX)
            .max(1)
    }

    /// Takes in what a chirp says beside those before it.
    fn learn(&mut self, chirp: &Measured) -> Option<Room> {
        let packets = f64::from(self.config.packets);
        let per_round = self.min_rtt.as_nanos() as f64 / (self.load as f64 * packets);
        let remembered = per_round.min(self.config.most_memory).max(self.config.memory);
        let belief = self.belief.get_or_insert_with(|| Belief::new(self.config.belief));
        belief.take(chirp.points(), 1.0 - 1.0 / remembered);
        let mut room = belief.room(self.config.plausible, self.config.crowded_margin)?;
        // The hypotheses are cells of a grid. Where there is hardly any noise, the knee of a single
        // chirp is exact, unless one ACK tells of all packets that queued, and of some that did
        // not.
        let judged = read(chirp.points(), self.rule, 0);
        let queued = judged.knee.and_then(|knee| chirp.points().get(knee + 1..)).unwrap_or_default();
        if let (Reading::Knee(gap), Some(noise)) = (judged.reading, judged.noise)
            && (queued.len() > 1 || queued.iter().all(|point| point.packets == 1))
            && (noise as f64).max(belief.noise()) < gap as f64 * self.config.sharp
        {
            room = Room { least: gap, best: gap, most: gap, crowded: false };
        }
        Some(room)
    }

    /// True if the chirps leave little doubt about the capacity.
    fn is_certain(&self) -> bool {
        let room =
            self.belief.as_ref().and_then(|belief| belief.room(self.config.improbable, self.config.crowded_margin));
        room.is_some_and(|room| room.least > 0 && room.most as f64 <= room.least as f64 * self.config.certain)
    }

    /// Centre of the next chirp: with much noise it tries smaller gaps, so that they make a queue
    /// that can be seen.
    fn centre(&self, likely: u64, packets: usize) -> u64 {
        let noise = self.belief.as_ref().map_or(0.0, Belief::noise);
        let likely = likely as f64;
        // The gaps fall from twice to a quarter of the centre, evenly; those below the likely gap
        // make a queue, each what it is short of it.
        let queue = |centre: f64| {
            let (first, last) = (SLOWEST_GAP * centre, FASTEST_GAP * centre);
            let reach = f64::min(first, 1.0);
            packets as f64 * likely * (reach - last).max(0.0) / (first - last) * (1.0 - (reach + last) / 2.0)
        };
        let mut centre = self.config.centre;
        while centre > self.config.fastest_centre && queue(centre) < self.config.rise * noise {
            centre *= CENTRE_STEP;
        }
        ((likely * centre) as u64).max(1)
    }

    /// True while nothing is known of a path: before the first chirp is read, or cannot be read.
    fn is_unread(&self) -> bool {
        self.room.is_none() && self.unclear == 0 && !self.is_running()
    }

    /// Packets of the first chirp of a new flow.
    fn first_packets(&self) -> u32 {
        let share = libm::round(f64::from(self.initial) * self.config.first_share) as u32;
        share.max(self.config.min_points).min(self.initial)
    }

    /// True if the flow was filling a window when it began to chirp.
    fn is_running(&self) -> bool {
        self.known.is_some_and(|known| known.window.is_some())
    }

    /// The end: a window that this gap fills. A running flow goes on with the window it had if that
    /// is not more.
    fn exit(&self, reason: ExitReason, min_rtt: Span, gap: u64) -> Exit {
        let packets = packets_in(min_rtt, gap);
        match self.known.and_then(|known| known.window) {
            Some(window) if packets <= window => Exit { reason, cwnd: window, ssthresh: window, rate: None },
            _ => exit(reason, packets, gap, self.mss),
        }
    }

    /// Keeps account of rounds; returns true at the end of one.
    fn end_round(&mut self, ack: &Ack) -> bool {
        self.round.acked = self.round.acked.saturating_add(ack.acked);
        self.round.marked = self.round.marked.saturating_add(ack.marked);
        ack.una >= self.round.end && ack.acked > 0
    }

    fn begin_round(&mut self, ack: &Ack) {
        let number = self.round.number.saturating_add(1);
        self.round = Round {
            number,
            end: ack.next,
            acked: 0,
            marked: 0,
            began: ack.now,
            load: self.load,
            load_before: self.round.load,
            plateau: self.round.plateau,
        };
    }

    /// True if for some rounds less was delivered than was sent.
    fn is_plateau(&mut self, ack: &Ack) -> bool {
        let Round { acked, began, load_before, .. } = self.round;
        // Chirps are grains: few of them are no measure of a rate.
        let enough = acked >= 2 * self.config.packets && load_before > 0 && !ack.app_limited;
        let delivered = ack.now.since(began).as_nanos() / u64::from(acked.max(1));
        if enough && delivered as f64 > load_before as f64 * self.config.plateau {
            self.round.plateau += 1;
        } else {
            self.round.plateau = 0;
        }
        self.round.plateau >= self.config.plateau_rounds
    }

    /// True if the smallest of the last RTTs has risen.
    fn is_delayed(&mut self, ack: &Ack) -> bool {
        let delayed = self.has_risen(ack);
        self.recent = if delayed.is_some() { (Span::MAX, 0) } else { self.recent };
        delayed.unwrap_or(false)
    }

    /// The same for the first RTTs of every round, as HyStart has it: the last packets of a burst
    /// wait for those before them.
    fn begins_delayed(&mut self, ack: &Ack) -> bool {
        if self.end_round(ack) {
            self.begin_round(ack);
            self.recent = (Span::MAX, 0);
        }
        self.recent.1 < self.config.delay_samples && self.has_risen(ack).unwrap_or(false)
    }

    /// Whether so many RTTs have risen, once they are that many.
    fn has_risen(&mut self, ack: &Ack) -> Option<bool> {
        let config = &self.config;
        let rtt = ack.rtt?;
        self.recent = (self.recent.0.min(rtt), self.recent.1 + 1);
        if self.recent.1 < config.delay_samples {
            return None;
        }
        let smallest = self.recent.0;
        let share = Span::from_nanos((ack.min_rtt.as_nanos() as f64 * config.delay_share) as u64);
        Some(smallest > ack.min_rtt + share.max(config.min_delay).min(config.max_delay))
    }
}

impl Schedule for Adaptive {
    const PLANS_ANEW: bool = true;

    fn pull(&mut self, now: Time, number: u32, next: &Next, window: &Window, before: Option<&Before>) -> Pull {
        let queued = u32::try_from(next.queued).unwrap_or(u32::MAX);
        if number == self.first && !self.is_running() {
            let packets = window.cwnd.clamp(2, super::flight::MAX_CHIRP as u32);
            // A transfer that fits into the initial window is over before anything could be learnt
            // from it.
            if queued < packets {
                return Pull::Unchirped;
            }
            match self.known {
                Some(known) => (self.probe, self.load) = (known.gap, known.load.max(known.gap)),
                None => self.begin(next.srtt, packets),
            }
            (self.initial, self.rest) = (packets, None);
            let packets = if self.known.is_some() { packets } else { self.first_packets() };
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
            let rest = self.initial.saturating_sub(self.first_packets()).min(queued);
            if number == self.first.saturating_add(1) && rest > 0 && self.known.is_none() {
                self.rest = Some(number);
                let geometry = Geometry::new(rest, self.load, RATIO_ONE);
                return Pull::Chirp(Plan { geometry, guard: 0, at, load: self.load });
            }
            return if next.in_flight >= self.initial { Pull::Hold } else { Pull::Unchirped };
        }
        self.rest = self.rest.filter(|rest| *rest != number);
        let probe = self.probe.min(self.load).max(1);
        let noise = self.belief.as_ref().map_or(0.0, Belief::noise);
        let half = next.srtt.as_nanos() / self.load.max(1) / 2;
        let long = (self.config.length * noise / probe as f64).min(half as f64) as u32;
        let packets = self.config.packets.max(long).min(queued).clamp(1, super::flight::MAX_CHIRP as u32);
        let geometry = Geometry::new(packets, probe, ratio_from_f64(self.config.geometry));
        Pull::Chirp(Plan { geometry, guard: 0, at, load: self.load })
    }

    fn completed(&mut self, number: u32, measured: Option<&Measured>, _in_flight: u32) {
        if self.rest == Some(number) {
            return;
        }
        let Some(chirp) = measured else {
            // Nothing will come of the first chirp any more: others are to tell.
            self.unclear = self.unclear.max(u32::from(self.is_unread()));
            return;
        };
        if chirp.points().len() < self.rule.min_points {
            self.grow_blindly(chirp);
            return;
        }
        let first = self.room.is_none();
        self.room = self.learn(chirp).or(self.room);
        let Some(room) = self.room else { return };
        if room.crowded {
            self.grow_blindly(chirp);
            return;
        }
        self.unclear = 0;
        self.agreed = match self.is_certain() {
            // Sent with more load than there is room for: there is no more to find.
            true if chirp.load() <= room.best => self.config.agreeing,
            true => self.agreed.saturating_add(1),
            false => 0,
        };
        self.probe = self.centre(room.best, chirp.points().len().max(self.config.packets as usize));
        // A flow that fills its path already does not take more on the word of a single chirp.
        if self.is_running() && first {
            return;
        }
        // As far as there is room in any case, and no faster than the growth allows since this
        // chirp left.
        self.load = self.load.min(room.most.max(Self::divided(chirp.load(), self.config.growth)));
        if let Some(doubled) = self.doubled(chirp) {
            self.load = self.load.min(doubled.max(room.least));
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
        let (all, late) = self.left;
        all >= self.config.late_after && f64::from(late) > f64::from(all) * self.config.late_share
    }

    fn verdict(&mut self, ack: &Ack, completed: bool) -> Option<Exit> {
        self.min_rtt = ack.min_rtt;
        if self.gave_up() {
            self.belief = None;
            // A flow that fills its path goes on with the window it had.
            if self.is_running() {
                return Some(self.exit(ExitReason::Limit, ack.min_rtt, u64::MAX));
            }
            let gap = ack.srtt.as_nanos() / u64::from(ack.in_flight.max(1));
            return self.begins_delayed(ack).then(|| self.exit(ExitReason::DelayIncrease, ack.srtt, gap.max(1)));
        }
        let known = self.gap().filter(|_| self.agreed >= self.config.agreeing);
        if let Some(gap) = known
            && completed
            && ack.min_rtt != Span::MAX
            && (self.load <= gap || self.agrees(self.load, gap))
        {
            self.belief = None;
            return Some(self.exit(ExitReason::PipeFull, ack.min_rtt, gap));
        }
        let delayed = self.is_delayed(ack) && self.unclear > 0;
        let mut reason = delayed.then_some(ExitReason::DelayIncrease);
        if self.end_round(ack) {
            let full = self.is_plateau(ack) && self.unclear > 0;
            let marked = f64::from(self.round.marked) > f64::from(self.round.acked) * self.config.mark_share;
            let over = self.round.number >= self.config.max_rounds;
            reason = reason
                .or(marked.then_some(ExitReason::Marks))
                .or(full.then_some(ExitReason::PipeFull))
                .or(over.then_some(ExitReason::Limit));
            self.begin_round(ack);
        }
        let reason = reason?;
        self.belief = None;
        // No more than what was sent, and no more than what arrived.
        let delivered = ack
            .rate
            .filter(|rate| !rate.app_limited)
            .map_or(0, |rate| rate.interval.as_nanos() / u64::from(rate.delivered.max(1)));
        Some(self.exit(reason, ack.min_rtt, delivered.max(self.load).max(1)))
    }

    fn permission(&self, _number: u32, leaving: u32) -> u32 {
        leaving.saturating_add(2 * self.config.packets)
    }

    fn on_loss(&mut self, _now: Time, in_flight: u32) -> Option<(u32, u32)> {
        self.losses = self.losses.saturating_add(1);
        let shown = self.gap();
        if self.losses <= self.config.pardoned_losses && shown.is_some_and(|gap| gap.saturating_mul(2) <= self.load) {
            return None;
        }
        let pipe = shown.filter(|_| self.agreed > 0).map_or(0, |gap| packets_in(self.min_rtt, gap));
        // What is measured may be more than is in flight, but not by more than one round's growth.
        let most = (f64::from(in_flight) * self.config.growth).min(f64::from(u32::MAX)) as u32;
        // Before anything is known the initial window is what the loss is a loss of, as for CUBIC.
        let initial = if self.is_unread() { self.initial } else { 0 };
        let window = in_flight.max(pipe.min(most)).max(initial).max(2);
        Some((window, ((f64::from(window) * self.config.loss_factor) as u32).max(2)))
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
        (self.first, self.known) = (number, Some(known));
        (self.probe, self.load) = (known.gap, known.load);
        (self.belief, self.room) = (None, None);
        (self.agreed, self.unclear, self.losses, self.rest) = (0, 0, 0, None);
        self.left = (0, 0);
        (self.round, self.recent) = (FIRST_ROUND, (Span::MAX, 0));
        true
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.mss = mss.bytes();
        self.probe = mss.gap(self.probe);
        self.load = mss.gap(self.load);
        self.round.load = mss.gap(self.round.load);
        self.round.load_before = mss.gap(self.round.load_before);
        // What chirps of other packets said is about other gaps: the next one begins anew.
        (self.belief, self.room) = (None, None);
        if let Some(known) = &mut self.known {
            known.gap = mss.gap(known.gap);
            known.load = mss.gap(known.load);
            known.window = known.window.map(|window| mss.packets(window));
        }
    }
}
