//! How much faster a transfer with Quick-Start is: the time from the request to the last byte over
//! one link without loss, in closed form.
//!
//! Slow start sends rounds of W, gW, g²W … packets back to back and waits for the first ACK of
//! each, until the link is full. Quick-Start sends its window paced in the first round and
//! continues like slow start. (Own derivation; the formula that Scharf and Strotbek refer to was
//! not available.)
//!
//! ```
//! use flowstart_quick_start::model::{Link, Start, Transfer};
//! use flowstart_units::{Bytes, Rate, Span};
//!
//! let (rate, rtt) = (Rate::from_mbps(10), Span::from_millis(200));
//! let link = Link { rate, rtt, packet: 1500, headers: 40 };
//! let transfer = Transfer::new(link, Start { initial_window: 3, growth: 2.0, threshold: None });
//! let gain = transfer.gain(Bytes::new(100_000), Rate::from_bps(5_120_000));
//! assert!((gain - 2.87).abs() < 0.01);
//! ```

use flowstart_units::{Bytes, Rate, Span};

/// The path of a transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Rate of the bottleneck, in bits of IP packets per second.
    pub rate: Rate,
    /// Round-trip time without queue and transmission.
    pub rtt: Span,
    /// Bytes of a full packet, headers included.
    pub packet: u32,
    /// Bytes of headers of IP and TCP in each packet.
    pub headers: u32,
}

/// How slow start goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Start {
    /// Initial window in packets.
    pub initial_window: u32,
    /// Growth per round: 2 if every packet is acknowledged, 1.5 with delayed ACKs.
    pub growth: f64,
    /// Threshold in packets from which on the window grows by one per round, if there is one.
    pub threshold: Option<u32>,
}

/// A kind of transfer, of which sizes can be asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    link: Link,
    start: Start,
}

/// Longest model time, in rounds, before a transfer counts as never ending (a link or growth of
/// zero).
const MOST_ROUNDS: u32 = 100_000_000;

impl Transfer {
    /// Transfers over `link` by `start`.
    #[must_use]
    pub fn new(link: Link, start: Start) -> Self {
        Self { link, start }
    }

    fn packets(&self, size: Bytes) -> f64 {
        let payload = self.link.packet.saturating_sub(self.link.headers).max(1);
        size.get().div_ceil(u64::from(payload)) as f64
    }

    fn packet_bits(&self) -> f64 {
        8.0 * f64::from(self.link.packet)
    }

    /// Transmission time of a packet in seconds.
    fn packet_time(&self) -> f64 {
        self.packet_bits() / self.link.rate.as_bps() as f64
    }

    fn grown(&self, window: f64) -> f64 {
        match self.start.threshold.map(f64::from) {
            Some(threshold) if window >= threshold => window + 1.0,
            Some(threshold) if window * self.start.growth > threshold => threshold,
            _ => window * self.start.growth,
        }
    }

    /// Seconds from the request to the last byte with slow start; infinite if that never comes.
    #[must_use]
    pub fn slow_start(&self, size: Bytes) -> f64 {
        let (rtt, packet_time) = (self.link.rtt.as_secs_f64(), self.packet_time());
        let (mut time, mut window) = (rtt, f64::from(self.start.initial_window));
        let mut left = self.packets(size);
        for _ in 0..MOST_ROUNDS {
            let sent = libm::floor(window);
            if left <= sent || sent * packet_time >= rtt + packet_time {
                return time + left * packet_time;
            }
            time += rtt + packet_time;
            left -= sent;
            window = self.grown(window);
        }
        f64::INFINITY
    }

    /// Seconds from the request to the last byte if the first round is sent at `granted`; as slow
    /// start if that is not more than the initial window.
    #[must_use]
    pub fn quick_start(&self, size: Bytes, granted: Rate) -> f64 {
        let (rtt, packet_time, bits) = (self.link.rtt.as_secs_f64(), self.packet_time(), self.packet_bits());
        let capacity = self.link.rate.as_bps() as f64;
        let first = libm::floor(granted.as_bps() as f64 * rtt / bits);
        if first <= f64::from(self.start.initial_window) {
            return self.slow_start(size);
        }
        let packets = self.packets(size);
        if packets <= first {
            let rate = (granted.as_bps() as f64).min(capacity);
            return rtt + (packets - 1.0) * bits / rate + packet_time;
        }
        let (mut time, mut left, mut window) = (2.0 * rtt, packets - first, first);
        for _ in 0..MOST_ROUNDS {
            window = match self.start.threshold {
                Some(threshold) if window >= f64::from(threshold) => window + 1.0,
                _ => window * self.start.growth,
            };
            let rate = capacity.min(window * bits / rtt);
            let sent = rate * rtt / bits;
            if left <= sent || rate >= capacity {
                return time + left * bits / rate;
            }
            time += rtt;
            left -= sent;
        }
        f64::INFINITY
    }

    /// How many times longer slow start takes than Quick-Start.
    #[must_use]
    pub fn gain(&self, size: Bytes, granted: Rate) -> f64 {
        self.slow_start(size) / self.quick_start(size, granted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(initial_window: u32, growth: f64, threshold: Option<u32>, ms: u64) -> Transfer {
        let link = Link { rate: Rate::from_mbps(10), rtt: Span::from_millis(ms), packet: 1500, headers: 40 };
        Transfer::new(link, Start { initial_window, growth, threshold })
    }

    #[test]
    fn the_times_are_those_of_the_tabulated_model() {
        let mut rows = 0;
        for row in include_str!("../tests/model.csv").lines().skip(1) {
            let cells: Vec<f64> = row.split(',').map(|cell| cell.parse().unwrap_or(f64::NAN)).collect();
            let [w0, growth, granted, threshold, size, ms, slow, quick] = cells[..] else { panic!("{row}") };
            let transfer = transfer(w0 as u32, growth, (!threshold.is_nan()).then_some(threshold as u32), ms as u64);
            let (size, granted) = (Bytes::new(size as u64), Rate::from_bps(granted as u64));
            assert!((transfer.slow_start(size) - slow).abs() < 1e-6, "{row}: {}", transfer.slow_start(size));
            assert!(
                (transfer.quick_start(size, granted) - quick).abs() < 1e-6,
                "{row}: {}",
                transfer.quick_start(size, granted)
            );
            rows += 1;
        }
        assert_eq!(rows, 432);
    }

    #[test]
    fn small_and_huge_transfers_gain_nothing_and_those_between_do() {
        let transfer = transfer(3, 2.0, None, 200);
        let gain = |size| transfer.gain(Bytes::new(size), Rate::from_bps(5_120_000));
        assert!((0.98..=1.0).contains(&gain(3_000)));
        assert!(gain(100_000) > 2.8);
        assert!((1.0..1.001).contains(&gain(10_000_000_000)));
    }

    #[test]
    fn with_an_initial_window_of_ten_short_transfers_lose() {
        let gain = transfer(10, 2.0, None, 50).gain(Bytes::new(10_000), Rate::from_bps(5_120_000));
        assert!((gain - 0.89).abs() < 0.005, "{gain}");
    }

    #[test]
    fn only_grants_of_about_twice_the_initial_window_can_make_a_longer_transfer_slower() {
        let mut slower = Vec::new();
        for (w0, bps, ms) in [3, 10].into_iter().flat_map(|w0| {
            [1_280_000, 2_560_000, 5_120_000]
                .into_iter()
                .flat_map(move |bps| [10, 20, 50, 100, 200, 500].map(|ms| (w0, bps, ms)))
        }) {
            let window = bps * ms / 1000 / 12_000;
            let transfer = transfer(w0, 2.0, None, ms);
            for packets in (1..120).chain([200, 700]).filter(|packets| *packets > u64::from(w0)) {
                let gain = transfer.gain(Bytes::new(packets * 1460), Rate::from_bps(bps));
                if gain < 1.0 - 1e-9 {
                    assert!(window * 10 < u64::from(w0) * 22, "window {window} of {w0}");
                    assert!(window < packets && packets * 10 < window * 23, "{packets} of {window}");
                    slower.push(gain);
                }
            }
        }
        // A tabulation of the same formula that was written down before counts 10 cases down to
        // 0.93; evaluated anew, it has these 13 too.
        assert_eq!(slower.len(), 13);
        assert!(slower.iter().all(|gain| *gain > 0.903), "{slower:?}");
    }

    #[test]
    fn impossible_paths_take_for_ever_or_no_time_but_no_panic() {
        let link = Link { rate: Rate::ZERO, rtt: Span::ZERO, packet: 0, headers: 40 };
        let never = Transfer::new(link, Start { initial_window: 0, growth: 0.0, threshold: Some(0) });
        assert!(!never.slow_start(Bytes::new(1)).is_finite());
        let _ = never.quick_start(Bytes::new(1), Rate::UNLIMITED);
    }
}
