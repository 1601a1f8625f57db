//! Round trips as ACKs show them: whether their RTT has risen, whether they deliver less than was
//! sent. It tells the end of a start where chirps do not.

use flowstart_control::{Ack, NewMss};
use flowstart_units::{Span, Time};

use super::config::AdaptiveChirpingConfig;

/// The round trip now, and what those before it left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    /// The round, counted from 1.
    number: u32,
    /// It ends when this byte is acknowledged.
    end: u64,
    /// Packets delivered in it.
    acked: u32,
    /// The same of the round before.
    arrived: u32,
    /// Packets found to be lost in it and in the round before, and ACKs that told of some.
    lost: [(u64, u32); 2],
    /// Those of the whole connection, when the last ACK came; `None` before the first.
    total_lost: Option<u64>,
    /// When it began.
    began: Time,
    /// Load at its beginning and at that of the round before, in ns per packet; zero if there was
    /// none.
    load: u64,
    load_before: u64,
    /// Rounds in a row that delivered less than the load.
    plateau: u32,
    /// Time per packet in ns at which the last round delivered, if it were enough to tell.
    delivered: Option<u64>,
    /// Smallest of the round's RTTs, and how many they are.
    rtts: (Span, u32),
    /// Whether the last round's had all risen.
    risen: bool,
}

impl Watch {
    pub(super) const NEW: Self = Self {
        number: 1,
        end: 0,
        acked: 0,
        arrived: 0,
        lost: [(0, 0); 2],
        total_lost: None,
        began: Time::ZERO,
        load: 0,
        load_before: 0,
        plateau: 0,
        delivered: None,
        rtts: (Span::MAX, 0),
        risen: false,
    };

    /// Round trips that are over.
    pub(super) fn rounds(&self) -> u32 {
        self.number - 1
    }

    /// Takes in an ACK while packets leave at `load` ns each. Returns true at the end of a round.
    pub(super) fn on_ack(&mut self, ack: &Ack, load: u64, config: &AdaptiveChirpingConfig) -> bool {
        self.acked = self.acked.saturating_add(ack.acked);
        // Timers find losses, too.
        let before = self.total_lost.replace(ack.total_lost);
        let lost = before.map_or(u64::from(ack.lost), |before| ack.total_lost.saturating_sub(before));
        self.lost[0].0 += lost;
        self.lost[0].1 += u32::from(lost > 0);
        if let Some(rtt) = ack.rtt {
            self.rtts = (self.rtts.0.min(rtt), self.rtts.1.saturating_add(1));
        }
        if ack.una < self.end || ack.acked == 0 {
            return false;
        }
        // Chirps are grains: few of them are no measure of a rate.
        let enough = self.acked >= config.packets.saturating_mul(2) && self.load_before > 0 && !ack.app_limited;
        let delivered = enough.then(|| (ack.now.since(self.began).as_nanos() / u64::from(self.acked)).max(1));
        let behind = delivered.is_some_and(|gap| gap as f64 > self.load_before as f64 * config.plateau);
        *self = Self {
            number: self.number.saturating_add(1),
            end: ack.next,
            acked: 0,
            arrived: self.acked,
            lost: [(0, 0), self.lost[0]],
            total_lost: self.total_lost,
            began: ack.now,
            load,
            load_before: self.load,
            plateau: if behind { self.plateau.saturating_add(1) } else { 0 },
            delivered,
            rtts: (Span::MAX, 0),
            risen: self.rtts.1 >= config.delay_samples && self.rtts.0 > ack.min_rtt + config.rise_of(ack.min_rtt),
        };
        true
    }

    /// True if the load grew by less than this factor in the round that has just ended.
    pub(super) fn grew_less_than(&self, factor: f64, load: u64) -> bool {
        self.load_before > 0 && load as f64 * factor > self.load_before as f64
    }

    /// Packets delivered in the last round trip that is over, or in this one if that is more by
    /// now.
    pub(super) fn arrived(&self) -> u32 {
        self.arrived.max(self.acked)
    }

    /// Packets found to be lost in this round trip.
    pub(super) fn lost(&self) -> u64 {
        self.lost[0].0
    }

    /// True if so many packets of this round trip and the one before were lost, and not all at
    /// once, that the path does not hold what was sent, whatever chirps say.
    pub(super) fn has_lost_many(&self, config: &AdaptiveChirpingConfig) -> bool {
        let [(lost, times), (lost_before, times_before)] = self.lost;
        let (lost, arrived) = (lost + lost_before, u64::from(self.acked) + u64::from(self.arrived));
        times + times_before > config.pardoned_losses && lost as f64 > (lost + arrived) as f64 * config.loss_share
    }

    /// Rounds in a row that delivered less than the load.
    pub(super) fn plateau(&self) -> u32 {
        self.plateau
    }

    /// Time per packet in ns at which the last round delivered; `None` if it were too few to tell.
    pub(super) fn delivered(&self) -> Option<u64> {
        self.delivered
    }

    /// True if the last round's RTTs had all risen.
    pub(super) fn has_risen(&self) -> bool {
        self.risen
    }

    pub(super) fn on_mss(&mut self, mss: NewMss) {
        self.load = mss.gap(self.load);
        self.load_before = mss.gap(self.load_before);
    }
}
