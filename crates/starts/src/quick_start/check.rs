//! Whether the path has the rate that its routers granted: the first window is a chirp, and its
//! delays tell.
//!
//! The packets of the phase leave with shrinking gaps until they have the granted rate, which is
//! the ceiling. If the path has less, their delays rise from some packet on and stay up: an
//! *excursion* (pathChirp, Ribeiro et al., PAM 2003). Where it begins says from which rate on the
//! path does not keep up, and how far its packets are spread when they arrive, how much of them it
//! carries; the lesser of the two is what was measured. Everything here is one step per packet;
//! nothing is kept.

use flowstart_control::Acked;
use flowstart_control::InvalidConfig;
use flowstart_units::{Bytes, Rate, Span, Time};

/// Constants of the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct GrantCheckConfig {
    /// Packets at the beginning whose gaps shrink from twice that of the granted rate down to it;
    /// default 16, a chirp of Paced Chirping. (own choice)
    pub ramp: u32,
    /// Packets that a rise of the delay must last to mean anything, that before the rise included;
    /// default 5 (pathChirp's L). At least 2.
    pub packets: u32,
    /// A rise lasts while the delay is above this share of its peak, in thousandths; default 625
    /// (pathChirp's 1/F, F = 1.6). At most 1000.
    pub survival_permille: u32,
    /// The path has what was granted if it has this many percent of it; default 90 (own choice). At
    /// most 100.
    pub enough_percent: u32,
}

impl Default for GrantCheckConfig {
    fn default() -> Self {
        Self { ramp: 16, packets: 5, survival_permille: 625, enough_percent: 90 }
    }
}

impl GrantCheckConfig {
    pub(crate) fn validate(&self) -> Result<(), InvalidConfig> {
        let check = InvalidConfig::unless;
        check(self.packets >= 2, "check.packets", "at least 2")?;
        check(self.survival_permille <= 1000, "check.survival_permille", "at most 1000")?;
        check(self.enough_percent <= 100, "check.enough_percent", "at most 100")
    }
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    sent: Time,
    rtt: Span,
}

/// Delays that rose and stayed up.
#[derive(Clone, Copy, Debug)]
struct Excursion {
    /// The last packet before the rise.
    start: Arrived,
    /// Gap before that packet when it left, if one left before it.
    gap: Option<Span>,
    peak: Span,
    last: Arrived,
    /// Packets in it, the start included.
    packets: u32,
}

/// The check of one grant.
#[derive(Clone, Copy, Debug)]
pub(super) struct GrantCheck {
    config: GrantCheckConfig,
    granted: Rate,
    /// Bytes of a packet on the wire.
    packet: u32,
    /// Transmission numbers of the phase: the first, and the one behind the last once that is
    /// known.
    first: u64,
    end: u64,
    last: Option<(Arrived, Option<Span>)>,
    excursion: Option<Excursion>,
}

impl GrantCheck {
    /// For a phase that begins with transmission number `first`.
    pub(super) fn new(config: GrantCheckConfig, granted: Rate, packet: u32, first: u64) -> Self {
        Self { config, granted, packet, first, end: u64::MAX, last: None, excursion: None }
    }

    /// The phase is over: `end` is the transmission number behind its last.
    pub(super) fn end(&mut self, end: u64) {
        self.end = end;
    }

    /// A packet arrived, of the phase or not.
    pub(super) fn on_acked(&mut self, acked: &Acked) {
        let Some(rtt) = acked.rtt.filter(|_| (self.first..self.end).contains(&acked.number)) else { return };
        let arrived = Arrived { sent: acked.sent_at, rtt };
        let gap = self.last.map(|(last, _)| arrived.sent.since(last.sent));
        self.excursion = match (self.excursion, self.last) {
            (Some(excursion), _) if self.survives(&excursion, &arrived) => Some(Excursion {
                peak: excursion.peak.max(rtt - excursion.start.rtt),
                last: arrived,
                packets: excursion.packets.saturating_add(1),
                ..excursion
            }),
            (_, Some((start, gap))) if start.rtt < rtt => {
                Some(Excursion { start, gap, peak: rtt - start.rtt, last: arrived, packets: 2 })
            }
            _ => None,
        };
        self.last = Some((arrived, gap));
    }

    fn survives(&self, excursion: &Excursion, arrived: &Arrived) -> bool {
        let least = excursion.peak.mul_ratio(u64::from(self.config.survival_permille), 1000);
        arrived.rtt > excursion.start.rtt + least
    }

    /// The rate that the path seems to have, if that is less than what was granted.
    pub(super) fn lacking(&self) -> Option<Rate> {
        let excursion = self.excursion.filter(|excursion| excursion.packets >= self.config.packets)?;
        let arrivals = excursion.last.sent.since(excursion.start.sent) + (excursion.last.rtt - excursion.start.rtt);
        let bytes = u64::from(self.packet).saturating_mul(u64::from(excursion.packets - 1));
        let carried = Rate::of(Bytes::new(bytes), arrivals);
        let kept_up = excursion.gap.map_or(Rate::UNLIMITED, |gap| Rate::of(Bytes::new(self.packet.into()), gap));
        let measured = carried.min(kept_up);
        let enough = self.granted.mul_ratio(u64::from(self.config.enough_percent), 100);
        (measured < enough).then_some(measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRANTED: Rate = Rate::from_mbps(12);

    /// A phase of 40 packets of 1500 bytes, at 12 Mbit/s with a ramp of 16, over a link that
    /// carries `mbps`; `jitter` in microseconds is added to the delay of packet k.
    fn checked(mbps: u64, jitter: impl Fn(u64) -> u64) -> GrantCheck {
        let mut check = GrantCheck::new(GrantCheckConfig::default(), GRANTED, 1500, 10);
        let service = Rate::from_mbps(mbps).transmission_time(Bytes::new(1500));
        let (mut sent, mut free) = (Time::ZERO, Time::ZERO);
        for k in 0..40 {
            free = free.max(sent) + service;
            let rtt = Span::from_millis(50) + free.since(sent) + Span::from_micros(jitter(k));
            let (number, now) = (10 + k, sent + rtt);
            check.on_acked(&Acked { now, number, bytes: 1448, sent_at: sent, rtt: Some(rtt), retransmitted: false });
            // 1 ms at the granted rate.
            sent += Span::from_micros(1000 + 1000 * 16_u64.saturating_sub(k) / 16);
        }
        check
    }

    #[test]
    fn a_path_that_has_the_rate_lacks_nothing() {
        assert_eq!(checked(12, |_| 0).lacking(), None);
        assert_eq!(checked(100, |k| k * 7919 % 300).lacking(), None, "noise");
    }

    #[test]
    fn a_path_that_has_less_is_measured() {
        // From 2 Mbit/s, the rate of the ramp's first gap is passed at once; then the spread tells.
        for mbps in [2, 4, 6, 8, 10] {
            let measured = checked(mbps, |_| 0).lacking().expect("lacks some").as_bps() as f64 / 1e6;
            let error = measured / mbps as f64 - 1.0;
            assert!((-0.12..0.01).contains(&error), "{measured} of {mbps}");
        }
    }

    #[test]
    fn delays_that_come_down_again_were_those_of_others() {
        assert_eq!(checked(100, |k| if (5..15).contains(&k) { (k - 4) * 900 } else { 0 }).lacking(), None);
        assert!(checked(100, |k| if k >= 5 { (k - 4) * 900 } else { 0 }).lacking().is_some());
    }

    #[test]
    fn packets_of_before_and_after_do_not_count() {
        let mut check = GrantCheck::new(GrantCheckConfig::default(), GRANTED, 1500, 0);
        check.end(3);
        for number in 0..100 {
            let sent_at = Time::ZERO + Span::from_millis(number);
            let rtt = Some(Span::from_millis(50 + 10 * number));
            check.on_acked(&Acked { now: sent_at, number, bytes: 1448, sent_at, rtt, retransmitted: false });
        }
        assert_eq!(check.lacking(), None, "three packets are too few");
    }
}
