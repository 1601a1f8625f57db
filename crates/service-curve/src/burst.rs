//! Service curves that need not be convex, from bursts after idle time.

use flowstart_units::{Bytes, Rate, Span};

use crate::stats::upper_rank;
use crate::{Error, Probability};

/// What a flow control serves of a burst: of independent bursts that were handed over at once to an
/// idle connection, all but a fraction epsilon had their first n packets served by the n-th of
/// these times, for every n by itself.
///
/// Constant-rate probes see only the largest convex curve below the service
/// ([`crate::ServiceCurve`]): of a window that serves in steps the steps are lost, and so is what a
/// connection may send at once. A burst with departures D(t) in an idle min-plus linear system *is*
/// the service curve, S(t) = D(t) up to the size of the burst. It holds for what begins with an
/// idle system; a flow control whose window decays in idle time, or grows with what it sends, is
/// not linear, and the curve is that of bursts only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BurstCurve {
    packet: Bytes,
    /// When the first n packets are served, n = 1, 2, …; never falls.
    served: Vec<Span>,
    bursts: usize,
}

impl BurstCurve {
    /// The curve from bursts of packets of this size: for every burst the delay of each of its
    /// packets since the burst was handed over, in order.
    ///
    /// # Errors
    /// [`Error::TooFew`] without bursts, [`Error::UnequalReplicas`] if one has not as many packets
    /// as the first, [`Error::InvalidConfig`] for empty packets.
    pub fn new(packet: Bytes, bursts: &[Vec<Span>], epsilon: Probability) -> Result<Self, Error> {
        if packet == Bytes::ZERO {
            return Err(Error::InvalidConfig("packet", "at least one byte"));
        }
        let (Some(first), Some(rank)) = (bursts.first(), upper_rank(bursts.len(), epsilon)) else {
            return Err(Error::TooFew(0, 1));
        };
        let count = first.len();
        if let Some((which, wrong)) = bursts.iter().enumerate().find(|(_, one)| one.len() != count) {
            return Err(Error::UnequalReplicas(which, wrong.len(), count));
        }
        let mut latest = Span::ZERO;
        let mut of_packet: Vec<Span> = Vec::with_capacity(bursts.len());
        let mut served = Vec::with_capacity(count);
        for packet in 0..count {
            of_packet.clear();
            of_packet.extend(bursts.iter().map(|burst| burst[packet]));
            of_packet.sort_unstable();
            // A packet is not served before those ahead of it.
            latest = latest.max(of_packet[rank - 1]);
            served.push(latest);
        }
        Ok(Self { packet, served, bursts: bursts.len() })
    }

    /// S(t), bits: the packets that are served by then; no more than the burst had.
    #[must_use]
    pub fn service(&self, t: Span) -> u64 {
        let packets = self.served.partition_point(|served| *served <= t) as u64;
        packets.saturating_mul(self.packet.bits())
    }

    /// S(t) / t.
    #[must_use]
    pub fn attainable_rate(&self, t: Span) -> Rate {
        if t.is_zero() {
            return Rate::ZERO;
        }
        Rate::from_bps((self.service(t) as f64 / t.as_secs_f64()) as u64)
    }

    /// The delay bound of so many bits handed over at once; `None` if the bursts were smaller.
    #[must_use]
    pub fn inverse(&self, bits: u64) -> Option<Span> {
        let packets = usize::try_from(bits.div_ceil(self.packet.bits())).unwrap_or(usize::MAX);
        match packets.checked_sub(1) {
            None => Some(Span::ZERO),
            Some(last) => self.served.get(last).copied(),
        }
    }

    /// The times at which one packet more is served, from the first on.
    #[must_use]
    pub fn steps(&self) -> &[Span] {
        &self.served
    }

    /// How many bursts the curve was made from.
    #[must_use]
    pub fn bursts(&self) -> usize {
        self.bursts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AdaptiveLoop, AdaptiveLoopConfig, Growth, StaticWindow, WindowedLink};
    use flowstart_units::Time;

    const PACKET: Bytes = Bytes::new(125);

    /// Delays of a burst of `count` packets through a static window of `window` bytes at 10 Mbit/s,
    /// 50 ms and 50 ms back.
    fn through_window(window: u64, count: usize) -> Vec<Span> {
        let ms = Span::from_millis;
        let (capacity, window) = (Rate::from_mbps(10), Bytes::new(window));
        let config = StaticWindow { capacity, latency: ms(50), round_trip: ms(100), window };
        WindowedLink::new(config, PACKET, std::iter::repeat_n(Time::ZERO, count)).unwrap().collect()
    }

    #[test]
    fn the_steps_of_a_static_window_that_a_convex_estimate_loses_are_seen() {
        let burst = through_window(62_500, 2_000);
        let curve = BurstCurve::new(PACKET, &[burst], Probability::ZERO).unwrap();
        let ms = Span::from_millis;
        let fluid = StaticWindow {
            capacity: Rate::from_mbps(10),
            latency: ms(50),
            round_trip: ms(100),
            window: Bytes::new(62_500),
        };
        // 500 packets of 0.1 ms, then nothing until the first ACK is back, which a packet's
        // transmission delays by 0.1 ms each round.
        for t in [49, 51, 75, 99, 120, 149, 160, 199, 240, 300, 340] {
            let (ours, exact) = (curve.service(ms(t)) as f64, fluid.service(ms(t)));
            assert!((ours - exact).abs() <= 4_000.0, "{t} ms: {ours} against {exact}");
        }
        assert_eq!(curve.service(ms(120)), 500_000, "flat: one window");
        assert!(curve.service(ms(99)) as f64 > 1.5 * 5e6 * 0.049, "more than the convex curve has");
    }

    #[test]
    fn of_random_windows_all_but_epsilon_of_the_bursts_are_served_in_time() {
        let burst = |seed: u64| -> Vec<Span> {
            let config = AdaptiveLoopConfig { growth: Growth::Always, ..AdaptiveLoopConfig::default() };
            AdaptiveLoop::new(config, std::iter::repeat_n(Time::ZERO, 500), seed).unwrap().delays().collect()
        };
        let bursts: Vec<Vec<Span>> = (1..=100).map(burst).collect();
        let curve = BurstCurve::new(PACKET, &bursts, Probability::FIVE_PERCENT).unwrap();
        for packet in [1, 10, 100, 500] {
            let bound = curve.inverse(PACKET.bits() * packet).unwrap();
            let late = bursts.iter().filter(|burst| burst[packet as usize - 1] > bound).count();
            assert!(late <= 5, "packet {packet}: {late} of 100");
        }
        // The initial window of ten leaves at once.
        assert_eq!(curve.inverse(10 * PACKET.bits()), Some(Span::from_millis(5)));
        assert_eq!(curve.bursts(), 100);
        assert!(curve.steps().is_sorted());
    }

    #[test]
    fn nothing_is_served_of_nothing_and_more_than_the_burst_is_not_known() {
        let curve = BurstCurve::new(PACKET, &[through_window(62_500, 3)], Probability::ZERO).unwrap();
        assert_eq!(curve.inverse(0), Some(Span::ZERO));
        assert_eq!(curve.inverse(3 * PACKET.bits()), Some(Span::from_micros(50_300)));
        assert_eq!(curve.inverse(3 * PACKET.bits() + 1), None);
        assert_eq!(curve.attainable_rate(Span::ZERO), Rate::ZERO);
        assert_eq!(curve.attainable_rate(Span::from_secs(1)).as_bps(), 3_000);
    }

    #[test]
    fn unequal_or_absent_bursts_are_refused() {
        let new = |packet: Bytes, bursts: &[Vec<Span>]| BurstCurve::new(packet, bursts, Probability::ZERO);
        assert_eq!(new(PACKET, &[]), Err(Error::TooFew(0, 1)));
        assert_eq!(new(PACKET, &[vec![Span::ZERO], vec![]]), Err(Error::UnequalReplicas(1, 0, 1)));
        assert!(matches!(new(Bytes::ZERO, &[vec![]]), Err(Error::InvalidConfig(..))));
    }
}
