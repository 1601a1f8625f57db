//! What a look may send, and what it has cost both ends so far.

use crate::ledger::Counts;

/// Bytes of an IP packet that has nothing but an ACK, without the headers of IP and UDP.
const ACK: u64 = 34;
/// Bytes of a packet with a piece of data that are neither data nor headers of IP and UDP.
const FRAMING: u64 = 56;
/// As if so many had arrived besides: what the first few packets say is chance.
const FEW: f64 = 20.0;
/// This share may be spent whatever is lost: what came in another order counts as lost, too.
const SURE: f64 = 0.3;
/// No more of what is sent again is taken for lost again.
const MOST_LOST: f64 = 0.9;

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
    /// True if so much may be spent, once no more data is given out, that no more may be. `share`
    /// of the limit is meant.
    pub(super) fn is_spent(&self, share: f64, expected: f64) -> bool {
        let (carried, limit) = (self.carried.iter().sum::<u64>() as f64, self.limit as f64);
        carried >= limit * SURE && expected >= limit * share
    }

    /// What will have been spent once all that was given out has arrived, at the most: data that
    /// waits, or was lost, and that of which as much will be lost as was, with an ACK for each
    /// packet. `packet` has so many bytes of `headers`.
    pub(super) fn expected(&self, packet: u32, headers: u32, [reserve, lossy]: [u64; 2]) -> f64 {
        let total = |count: fn(&Counts) -> u64| self.counts.iter().map(count).sum::<u64>() as f64;
        let (packet, headers) = (f64::from(packet), f64::from(headers));
        let (sent, lost) = (total(|counts| counts.sent), total(|counts| counts.lost));
        let delivered = total(|counts| counts.delivered);
        let flying = (sent - lost - delivered).max(0.0);
        let data = self.given as f64 / (packet - headers - FRAMING as f64).max(1.0);
        let waiting = (data + lost - sent).max(0.0);
        let known = lost + delivered + FEW;
        let share = lost / known;
        // It may be more by chance.
        let share = (share + 2.0 * (share * (1.0 - share) / known).sqrt()).min(MOST_LOST);
        let again = (waiting + flying * share) / (1.0 - share);
        let ack = ACK as f64 + headers;
        // ACKs that do not arrive were sent all the same.
        let to_come = again * (packet + ack) + flying * ack + share * delivered * ack;
        let carried = self.carried.iter().sum::<u64>() as f64;
        carried + to_come + reserve as f64 + share * share * lossy as f64
    }
}
