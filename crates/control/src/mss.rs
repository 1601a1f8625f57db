//! What becomes of counts of packets when packets change their size.

use crate::INFINITE_SSTHRESH;

/// A full packet has another payload from now on, because the path carries larger packets than was
/// known, or no longer such large ones.
///
/// Windows stay what they are in bytes, as Linux has it when a probe of the MTU succeeds
/// (`tcp_mtup_probe_success`); what is counted in packets is counted anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewMss {
    before: u32,
    now: u32,
}

impl NewMss {
    /// From `before` to `now` bytes of payload, each at least 1.
    #[must_use]
    pub fn new(before: u32, now: u32) -> Self {
        Self { before: before.max(1), now: now.max(1) }
    }

    /// Payload of a full packet from now on, in bytes; never 0.
    #[must_use]
    pub fn bytes(self) -> u32 {
        self.now
    }

    /// This change, and another one after it.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self { before: self.before, now: next.now }
    }

    /// As many bytes in packets of the new size, to the nearest. What is no packet stays none, what
    /// is one or more does not become none, and no threshold stays no threshold.
    #[must_use]
    pub fn packets(self, packets: u32) -> u32 {
        if packets == 0 || packets >= INFINITE_SSTHRESH {
            return packets;
        }
        let (before, now) = (u64::from(self.before), u64::from(self.now));
        let scaled = (u64::from(packets) * before + now / 2) / now;
        u32::try_from(scaled).unwrap_or(u32::MAX).clamp(1, INFINITE_SSTHRESH - 1)
    }

    /// The time per packet at the same rate in bytes, in whatever unit.
    #[must_use]
    pub fn gap(self, per_packet: u64) -> u64 {
        let scaled = u128::from(per_packet) * u128::from(self.now) / u128::from(self.before);
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stay_and_packets_follow() {
        let larger = NewMss::new(1200, 1452);
        assert_eq!((larger.packets(10), larger.packets(121), larger.packets(1)), (8, 100, 1));
        let smaller = NewMss::new(1452, 1200);
        assert_eq!((smaller.packets(100), smaller.packets(0)), (121, 0));
        assert_eq!(larger.gap(1200), 1452);
        assert_eq!(larger.then(NewMss::new(1452, 9000)), NewMss::new(1200, 9000));
        assert_eq!(NewMss::new(0, 0).bytes(), 1);
    }

    #[test]
    fn no_threshold_stays_none_and_a_threshold_does_not_become_none() {
        let smaller = NewMss::new(9000, 1);
        assert_eq!(smaller.packets(INFINITE_SSTHRESH), INFINITE_SSTHRESH);
        assert_eq!(smaller.packets(INFINITE_SSTHRESH - 1), INFINITE_SSTHRESH - 1);
        assert_eq!(NewMss::new(1, u32::MAX).packets(7), 1);
    }
}
