//! Whether the path was away for a while: what waited for it to come back met no queue.

use flowstart_units::{Span, Time};

use super::bucket::Way;
use super::{FindingsConfig, Look, Packet};

/// A time in which nothing passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outage {
    begins: Time,
    ends: Time,
}

impl Outage {
    pub(super) fn lasts(&self) -> Span {
        self.ends.since(self.begins)
    }
}

impl Look {
    /// Every time in which the path was away, as far as can be told.
    pub(super) fn outages(&self) -> Vec<Outage> {
        outages(&self.config.findings, &self.ways, self.smallest, self.service)
    }

    /// True if a packet that arrived then, after so long, waited for the path to come back.
    pub(super) fn waited(&self, outages: &[Outage], arrived: Time, rtt: Span) -> bool {
        let due = Time::from_nanos((arrived + self.smallest).as_nanos().saturating_sub(rtt.as_nanos()));
        outages.iter().any(|outage| due < outage.ends && arrived >= outage.ends)
    }
}

/// Of packets in the order in which they left those that were lost one after the other, for longer
/// than a buffer is full behind a train: from the first to the last of each such run.
pub(super) fn lost(config: &FindingsConfig, packets: &[Packet]) -> Vec<[Time; 2]> {
    let runs = packets.chunk_by(|one, other| one.acked.is_none() == other.acked.is_none());
    let lost = runs
        .filter(|run| run[0].acked.is_none() && run.len() as f64 >= config.away_packets)
        .map(|run| [run[0].at, run[run.len() - 1].at]);
    lost.filter(|[first, last]| last.since(*first) >= config.away).collect()
}

/// A queue grows by what others send, and the packets before wait, too; whoever sends while a path
/// is away waits at once.
fn outages(config: &FindingsConfig, ways: &[Way], fastest: Span, service: Span) -> Vec<Outage> {
    let due = |way: &Way| way.0 + fastest;
    let waited = |way: &Way| way.1.since(due(way)).as_nanos() as f64;
    let mut sent = ways.to_vec();
    sent.sort_unstable();
    let mut arrivals: Vec<Time> = ways.iter().map(|way| way.1).collect();
    arrivals.sort_unstable();
    arrivals.dedup();
    let least = config.away.max(service.mul_f64(config.away_packets));
    let silence = |two: &[Time]| -> Option<Outage> {
        let [before, ends] = *two else { return None };
        let waits = |way: &&Way| way.1 >= ends && due(way) < ends;
        let first = sent.iter().position(|way| waits(&way))?;
        let begins = before.max(due(&sent[first]));
        // An ACK that was lost is made up for by one that tells of all.
        let (earliest, latest) =
            sent.iter().filter(waits).fold((Time::NEVER, ends), |(one, other), way| (one.min(way.1), other.max(way.1)));
        let after = first.checked_sub(1).map(|last| &sent[last]).filter(|last| last.1 <= begins)?;
        let grew = waited(&sent[first]) - waited(after);
        let meanwhile = sent[first].0.since(after.0).as_nanos() as f64;
        (ends.since(begins) >= least && latest > earliest && grew > config.sudden * meanwhile)
            .then_some(Outage { begins, ends })
    };
    arrivals.windows(2).filter_map(silence).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Part;
    use super::*;

    /// Packets that leave and arrive after so many milliseconds.
    fn ways(ways: &[(u64, u64)]) -> Vec<Way> {
        let at = |millis: u64| Time::ZERO + Span::from_millis(millis);
        ways.iter().map(|(left, arrived)| (at(*left), at(*arrived), 1480)).collect()
    }

    fn lasts(seen: &[(u64, u64)]) -> Vec<u64> {
        let usual = FindingsConfig::default();
        let found = outages(&usual, &ways(seen), Span::from_millis(20), Span::from_millis(2));
        found.iter().map(|outage| outage.lasts().as_nanos() / 1_000_000).collect()
    }

    #[test]
    fn what_is_lost_for_long_is_lost_by_the_path_and_the_end_of_a_train_is_not() {
        let packet = |(left, arrived): (u64, bool)| {
            let (at, _, bytes) = ways(&[(left, 0)])[0];
            Packet {
                number: left,
                at,
                bytes: bytes as u32,
                part: Part::Before,
                acked: arrived.then_some(at),
                direct: true,
            }
        };
        let lost = |packets: &[(u64, bool)]| {
            let packets: Vec<Packet> = packets.iter().copied().map(packet).collect();
            lost(&FindingsConfig::default(), &packets).len()
        };
        assert_eq!(lost(&[(0, true), (1, false), (2, false), (3, false), (150, false), (400, true)]), 1);
        assert_eq!(lost(&[(0, true), (1, false), (150, false), (400, true)]), 0);
        assert_eq!(lost(&[(0, true), (1, false), (2, false), (3, false), (4, false), (150, true), (400, true)]), 0);
    }

    #[test]
    fn what_waits_at_once_waits_for_the_path_and_what_grows_is_a_queue() {
        // Two pass, the next two are there when the path is again.
        assert_eq!(lasts(&[(0, 20), (2, 22), (10, 500), (12, 502)]), [470]);
        // Others fill a queue while nothing is sent, or between two packets.
        assert_eq!(lasts(&[(0, 20), (2, 22), (400, 900), (402, 902)]), [0; 0]);
        assert_eq!(lasts(&[(0, 20), (100, 180), (200, 340), (300, 500), (302, 502)]), [0; 0]);
        // A lost ACK, of which a later one tells.
        assert_eq!(lasts(&[(0, 20), (2, 22), (10, 500), (12, 500)]), [0; 0]);
        // Short, or of a packet that takes as long itself.
        assert_eq!(lasts(&[(0, 20), (2, 22), (10, 90), (12, 92)]), [0; 0]);
        let slow = ways(&[(0, 140), (0, 260), (10, 380), (12, 500)]);
        assert_eq!(outages(&FindingsConfig::default(), &slow, Span::from_millis(140), Span::from_millis(120)), []);
    }
}
