//! What a look may send, and what it has cost both ends so far.

use super::LookConfig;
use crate::judging::ACK;
use crate::ledger::Counts;

/// Bytes of a packet with a piece of data that are neither data nor headers of IP and UDP.
const FRAMING: u64 = 56;
/// What a look has cost, in bytes with all headers, both ways: handshakes, ACKs and repairs, too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spending {
    /// At most.
    pub(super) limit: u64,
    /// What this end has sent and received, of each connection.
    pub(super) carried: [u64; 2],
    /// What was counted of its packets.
    pub(super) counts: [Counts; 2],
    /// Bytes of data given out.
    pub(super) given: u64,
}

impl Spending {
    /// True if no more data may be given out, if this share of the limit may be spent.
    pub(super) fn is_spent(&self, share: f64, (packet, headers): (u32, u32), config: &LookConfig) -> bool {
        let (carried, limit) = (self.carried.iter().sum::<u64>() as f64, self.limit as f64);
        carried >= limit * config.sure && self.expected(packet, headers, config) >= limit * share
    }

    /// What will have been spent once all that was given out has arrived, at the most: data that
    /// waits, or was lost, and that of which as much will be lost as was, with an ACK for each
    /// packet. `packet` has so many bytes of `headers`.
    fn expected(&self, packet: u32, headers: u32, config: &LookConfig) -> f64 {
        let total = |count: fn(&Counts) -> u64| self.counts.iter().map(count).sum::<u64>() as f64;
        let (packet, headers) = (f64::from(packet), f64::from(headers));
        let (sent, lost) = (total(|counts| counts.sent), total(|counts| counts.lost));
        let delivered = total(|counts| counts.delivered);
        let flying = (sent - lost - delivered).max(0.0);
        let data = self.given as f64 / (packet - headers - FRAMING as f64).max(1.0);
        let waiting = (data + lost - sent).max(0.0);
        let known = lost + delivered + config.prior;
        let share = lost / known;
        // It may be more by chance.
        let share = (share + 2.0 * (share * (1.0 - share) / known).sqrt()).min(config.most_lost);
        let again = (waiting + flying * share) / (1.0 - share);
        let ack = f64::from(ACK) + headers;
        // ACKs that do not arrive were sent all the same.
        let to_come = again * (packet + ack) + flying * ack + share * delivered * ack;
        let carried = self.carried.iter().sum::<u64>() as f64;
        carried + to_come + config.reserve as f64 + share * share * config.lossy as f64
    }
}
