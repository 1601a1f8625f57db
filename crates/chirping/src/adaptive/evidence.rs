//! What chirps have shown: how much room there is, how sure that is, and how much noise there is.

use flowstart_control::Ack;

use super::super::belief::{Belief, Room};
use super::super::reading::{Point, Reading, read};
use super::super::schedule::packets_in;
use super::Adaptive;

impl Adaptive {
    /// The gap the path carries packets at, as far as the chirps have shown.
    pub(super) fn gap(&self) -> Option<u64> {
        self.room.filter(|room| !room.crowded).map(|room| if room.least == 0 { room.most } else { room.best })
    }

    /// The smallest gap that is plausible; zero if nothing is known.
    pub(super) fn least(&self) -> u64 {
        self.room.filter(|room| !room.crowded).map_or(0, |room| room.least)
    }

    /// True if the load has reached what chirps say is the most there may be.
    pub(super) fn is_bounded(&self) -> bool {
        self.least() > 0 && self.room.is_some_and(|room| self.load <= room.best)
    }

    /// True if chirps held the load back in the round trip that has just ended without being sure
    /// of the capacity.
    pub(super) fn holds(&self) -> bool {
        let grew_little = self.room.is_some() && self.watch.grew_less_than(self.config.held_growth, self.load);
        self.agreed == 0 && (self.is_bounded() || (grew_little && self.has_few_packets()))
    }

    /// Round trips of that kind after which chirps cannot be believed.
    pub(super) fn held_rounds(&self) -> u32 {
        let jittery = self.belief.as_ref().is_some_and(Belief::is_jittery);
        if jittery || !self.has_few_packets() { self.config.held_rounds } else { self.config.crowded_rounds }
    }

    fn has_few_packets(&self) -> bool {
        packets_in(self.min_rtt, self.load) <= self.config.crowded_packets
    }

    /// True if more was delivered than chirps say there may be: what they say is wrong.
    pub(super) fn is_refuted(&self) -> bool {
        let least = self.least() as f64;
        !self.is_running() && self.watch.delivered().is_some_and(|gap| (gap as f64) * self.config.refuted < least)
    }

    /// True if no chirp of half a round trip makes a queue that stands out from the noise.
    pub(super) fn is_drowned(&self) -> bool {
        let short = self.min_rtt < self.config.short_way && !self.is_running();
        let share = if short { self.config.short_drowned } else { self.config.drowned };
        self.all_noise() > share * self.min_rtt.as_nanos() as f64
    }

    /// Standard deviation in ns of what noise does from one packet to the next; zero if none is
    /// known.
    pub(super) fn noise(&self) -> f64 {
        self.belief.as_ref().map_or(0.0, Belief::noise)
    }

    /// The same of jitter, if that is most of what a new flow meets; zero else.
    pub(super) fn jitter(&self) -> f64 {
        let belief = self.belief.as_ref().filter(|belief| belief.is_jittery() && !self.is_running());
        belief.map_or(0.0, Belief::jitter)
    }

    /// The same with what ACKs that came together hid.
    pub(super) fn all_noise(&self) -> f64 {
        let noise = self.noise();
        libm::sqrt(noise * noise + self.hidden)
    }

    /// Points that a chirp is to have.
    pub(super) fn enough_points(&self) -> usize {
        self.rule.min_points + self.config.spare_points as usize
    }

    pub(super) fn agrees(&self, one: u64, other: u64) -> bool {
        one.abs_diff(other) as f64 <= one.min(other) as f64 * self.config.tolerance
    }

    /// Takes in what a chirp says beside those before it.
    pub(super) fn learn(&mut self, points: &[Point]) -> Option<Room> {
        let packets = f64::from(self.config.packets);
        let per_round = self.min_rtt.as_nanos() as f64 / (self.load as f64 * packets);
        let remembered = per_round.min(self.config.most_memory).max(self.config.memory);
        let belief = self.belief.get_or_insert_with(|| Belief::new(self.config.belief));
        let alone = belief.take(points, 1.0 - 1.0 / remembered, self.config.plausible);
        // Only that there is less is worth haste: that there is more shows in time.
        let slower = self.room.is_some_and(|room| alone.gap > room.most as f64);
        if slower && alone.plausible < -self.config.surprise {
            self.contradicted += 1;
            if self.contradicted >= self.config.surprises {
                // The path is another one, or was never what they said.
                self.contradicted = 0;
                belief.forget();
                belief.take(points, 1.0, self.config.plausible);
            }
        } else {
            self.contradicted = 0;
        }
        let mut room = belief.room(self.config.plausible, self.config.crowded_margin)?;
        // The hypotheses are cells of a grid. Where there is hardly any noise, the knee of a single
        // chirp is exact, unless one ACK tells of all packets that queued, and of some that did
        // not.
        let judged = read(points, self.rule, 0);
        let queued = judged.knee.and_then(|knee| points.get(knee + 1..)).unwrap_or_default();
        if let (Reading::Knee(gap), Some(noise)) = (judged.reading, judged.noise)
            && (queued.len() > 1 || queued.iter().all(|point| point.packets == 1))
            && (noise as f64).max(belief.noise()) < gap as f64 * self.config.sharp
        {
            room = Room { least: gap, best: gap, most: gap, crowded: false };
        }
        Some(room)
    }

    /// True if the chirps leave little doubt about the capacity.
    pub(super) fn is_certain(&self) -> bool {
        let room =
            self.belief.as_ref().and_then(|belief| belief.room(self.config.improbable, self.config.crowded_margin));
        room.is_some_and(|room| room.least > 0 && room.most as f64 <= room.least as f64 * self.config.certain)
    }

    /// True if there is so little noise that it leaves no doubt.
    pub(super) fn is_clear(&self) -> bool {
        self.all_noise() < self.room.map_or(0, |room| room.best) as f64 * self.config.clear
    }

    /// True if chirps have agreed for some round trips, and where there is noise enough of them.
    pub(super) fn has_stayed(&self, ack: &Ack) -> bool {
        // The latest chirp left a round trip ago.
        let agreed = (ack.now.since(self.agreed_from) - ack.min_rtt).as_nanos() as f64;
        // Beside others who answer marks a new flow can have more than what is left of the path.
        let crowded = self.marked && !self.is_running();
        let (rounds, chirps) = match self.is_clear() && !crowded {
            true => (self.config.full_rounds, self.config.agreeing),
            false => (self.config.noisy_rounds, self.config.noisy_agreeing),
        };
        self.agreed >= chirps && agreed >= (rounds - 1.0) * ack.min_rtt.as_nanos() as f64
    }

    /// Window and threshold in packets to go on with after a loss, where chirps have shown this
    /// gap.
    pub(super) fn window_at_loss(&self, in_flight: u32, shown: Option<u64>) -> (u32, u32) {
        let pipe = shown.filter(|_| self.agreed > 0).map_or(0, |gap| packets_in(self.min_rtt, gap));
        // All that was in flight may be lost: what arrived in a round trip was not.
        let arrived = self.watch.arrived();
        // What is measured may be more than is in flight, but not by more than one round's growth.
        let most = (f64::from(in_flight.max(arrived)) * self.config.growth).min(f64::from(u32::MAX)) as u32;
        // Before the capacity is known the initial window is what the loss is a loss of at least,
        // as for CUBIC; where a silence took all, slow start's window, of which it was one, too.
        let unknown = self.is_unread() || (self.known.is_none() && pipe == 0);
        // Until the first chirp is read no more than that was sent, but every ACK had widened it.
        let widened = if self.is_unread() { self.delivered.min(u64::from(self.initial)) as u32 } else { 0 };
        let initial = if unknown { self.initial.saturating_add(widened) } else { 0 };
        let silenced = if unknown && in_flight == 0 { self.slow_start().min(self.watch.lost()) } else { 0 };
        let silenced = u32::try_from(silenced).unwrap_or(u32::MAX);
        let window = in_flight.max(pipe.min(most)).max(initial).max(arrived).max(silenced).max(2);
        (window, ((f64::from(window) * self.config.loss_factor) as u32).max(2))
    }
}
