//! What is kept of the path of a rate that is finished, so that it is judged again with it.

use serde::{Deserialize, Serialize};

use flowstart_emulator::Fidelity;
use flowstart_units::Span;

use super::probe::Probed;
use super::stamps::StampCheck;

/// How faithful the path of a rate was. Times are nanoseconds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeptPath {
    packets: u64,
    late_median: u64,
    late_p99: u64,
    late_worst: u64,
    stalls: u64,
    longest_stall: u64,
    unasked_drops: u64,
    above_mtu: u64,
    late_arrivals: u64,
    real_time: bool,
    /// Parts of the emulator that failed, each with its reason.
    faults: Vec<String>,
    stamps: Option<KeptStamps>,
}

/// How the stamps of a probe's socket agreed with when packets were seen.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptStamps {
    messages: u64,
    stamped: u64,
    refused: Option<String>,
    apart: Vec<u64>,
    queued: Vec<u64>,
}

impl KeptPath {
    pub(super) fn of(probed: &Probed) -> Self {
        let fidelity = &probed.fidelity;
        let nanos = |spans: &[Span]| spans.iter().map(|span| span.as_nanos()).collect();
        Self {
            packets: fidelity.packets,
            late_median: fidelity.median.as_nanos(),
            late_p99: fidelity.p99.as_nanos(),
            late_worst: fidelity.worst.as_nanos(),
            stalls: fidelity.stalls,
            longest_stall: fidelity.longest_stall.as_nanos(),
            unasked_drops: fidelity.unasked_drops,
            above_mtu: fidelity.above_mtu,
            late_arrivals: fidelity.late_arrivals,
            real_time: fidelity.real_time,
            faults: probed.faults.clone(),
            stamps: probed.stamps.as_ref().map(|stamps| KeptStamps {
                messages: stamps.messages,
                stamped: stamps.stamped,
                refused: stamps.refused.clone(),
                apart: nanos(&stamps.apart),
                queued: nanos(&stamps.queued),
            }),
        }
    }

    /// Again as it was: how faithful it was, what failed, and how stamps agreed.
    pub(super) fn again(self) -> (Fidelity, Vec<String>, Option<StampCheck>) {
        let spans = |nanos: Vec<u64>| nanos.into_iter().map(Span::from_nanos).collect();
        let fidelity = Fidelity {
            packets: self.packets,
            median: Span::from_nanos(self.late_median),
            p99: Span::from_nanos(self.late_p99),
            worst: Span::from_nanos(self.late_worst),
            stalls: self.stalls,
            longest_stall: Span::from_nanos(self.longest_stall),
            unasked_drops: self.unasked_drops,
            above_mtu: self.above_mtu,
            late_arrivals: self.late_arrivals,
            real_time: self.real_time,
            faults: self.faults.len() as u32,
        };
        let stamps = self.stamps.map(|stamps| StampCheck {
            messages: stamps.messages,
            stamped: stamps.stamped,
            refused: stamps.refused,
            apart: spans(stamps.apart),
            queued: spans(stamps.queued),
        });
        (fidelity, self.faults, stamps)
    }
}

#[cfg(test)]
mod tests {
    use flowstart_units::Time;

    use super::*;

    #[test]
    fn what_was_kept_of_a_path_comes_back_as_it_was() {
        let fidelity = Fidelity {
            packets: 9,
            median: Span::from_nanos(1),
            p99: Span::from_nanos(2),
            worst: Span::from_nanos(3),
            stalls: 4,
            longest_stall: Span::from_nanos(5),
            unasked_drops: 6,
            above_mtu: 7,
            late_arrivals: 8,
            real_time: true,
            faults: 1,
        };
        let stamps = StampCheck {
            messages: 3,
            stamped: 2,
            refused: Some("EPERM".to_owned()),
            apart: vec![Span::from_nanos(4), Span::from_nanos(1)],
            queued: vec![Span::from_nanos(6)],
        };
        let faults = vec!["it stood still".to_owned()];
        let probed = Probed {
            start: Time::ZERO,
            passed: Vec::new(),
            stamps: Some(stamps.clone()),
            fidelity,
            faults: faults.clone(),
        };
        let text = serde_json::to_string(&KeptPath::of(&probed)).unwrap();
        let again: KeptPath = serde_json::from_str(&text).unwrap();
        assert_eq!(again.again(), (fidelity, faults, Some(stamps)));
    }
}
