//! Completion times: M7.

use flowstart_units::{Bytes, Rate, Span};

/// Bytes that a transfer of `size` payload bytes puts on the wire without loss: `mss` payload bytes
/// per packet, `overhead` bytes of headers (and link framing) for each.
#[must_use]
pub fn wire_bytes(size: Bytes, mss: u32, overhead: u32) -> Bytes {
    let packets = size.get().div_ceil(u64::from(mss.max(1)));
    size + Bytes::new(packets.saturating_mul(u64::from(overhead)))
}

/// The ideal of M7: RTT0/2 + z_wire / C, as if the transfer began at full rate. RTT0 includes the
/// serialization of one packet, z_wire the headers; `capacity` is the link's rate.
#[must_use]
pub fn ideal_completion(wire: Bytes, capacity: Rate, base_rtt: Span) -> Span {
    base_rtt / 2 + capacity.transmission_time(wire)
}

/// M7, completion slowdown: S(z) = completion time / ideal. Completion time runs from the first bit
/// sent to the last byte delivered in order.
#[must_use]
pub fn slowdown(completion: Span, ideal: Span) -> f64 {
    completion.ratio(ideal)
}

/// The geometric mean, as M7 takes it over sizes; `None` without values or with one that is not
/// positive.
#[must_use]
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|v| *v <= 0.0 || !v.is_finite()) {
        return None;
    }
    Some(libm::exp(values.iter().map(|v| libm::log(*v)).sum::<f64>() / values.len() as f64))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Completion time of `packets` packets of 1500 bytes when every ACK brings `growth` packets,
    /// sent at once as they come: first-in first-out, no limit to the queue, nothing lost,
    /// propagation `rtt` in all.
    fn completion(packets: u64, growth: u64, capacity: Rate, rtt: Span) -> Span {
        let service = capacity.transmission_time(Bytes::new(1500));
        let mut acks = VecDeque::new();
        let (mut sent, mut free) = (0, Span::ZERO);
        let mut send = |now: Span, count: u64, acks: &mut VecDeque<Span>| {
            for _ in 0..count.min(packets - sent) {
                sent += 1;
                free = free.max(now) + service;
                acks.push_back(free + rtt);
            }
            free
        };
        let mut last = send(Span::ZERO, 10, &mut acks);
        while let Some(ack) = acks.pop_front() {
            last = last.max(send(ack, growth, &mut acks));
        }
        last + rtt / 2
    }

    /// Vectors worked out by hand: an ACK per packet, unpaced, unlimited buffer, no exit.
    #[test]
    fn unlimited_exponential_starts_have_the_completion_times_and_slowdowns_that_arithmetic_gives() {
        // Bytes, Mbit/s, ms, ideal in ms; then for each growth per ACK: completion in ms, slowdown.
        type Case = (u64, u64, u64, f64, &'static [(u64, f64, f64)]);
        let cases: [Case; 4] = [
            (14_480, 100, 50, 26.2, &[(2, 26.2, 1.00)]),
            (100_000, 100, 50, 33.4, &[(2, 130.0, 3.89), (3, 128.8, 3.86), (4, 127.6, 3.82)]),
            (1_000_000, 100, 50, 107.9, &[(2, 333.0, 3.09), (3, 260.4, 2.41), (4, 233.1, 2.16)]),
            (5_000_000, 50, 100, 879.0, &[(2, 1329.0, 1.51), (3, 1184.0, 1.35), (4, 1129.0, 1.28)]),
        ];
        for (size, mbps, rtt_ms, ideal_ms, starts) in cases {
            let (capacity, rtt) = (Rate::from_mbps(mbps), Span::from_millis(rtt_ms));
            let packet = capacity.transmission_time(Bytes::new(1500));
            let wire = wire_bytes(Bytes::new(size), 1448, 52);
            let ideal = ideal_completion(wire, capacity, rtt + packet);
            // The vectors are rounded to 0.1 ms (1 ms for the last) and count whole packets.
            let rounding = if ideal_ms > 500.0 { 0.6 } else { 0.15 };
            assert!((ideal.as_millis_f64() - ideal_ms).abs() < rounding, "{size}: ideal {ideal}");
            for (growth, time_ms, ratio) in starts {
                let time = completion(size.div_ceil(1448), *growth, capacity, rtt);
                assert!((time.as_millis_f64() - time_ms).abs() < rounding, "{size} at {growth}x: {time}");
                assert!((slowdown(time, ideal) - ratio).abs() < 0.01, "{size} at {growth}x: {}", slowdown(time, ideal));
            }
        }
    }

    #[test]
    fn headers_count_for_every_packet() {
        assert_eq!(wire_bytes(Bytes::new(1448), 1448, 54), Bytes::new(1502));
        assert_eq!(wire_bytes(Bytes::new(1449), 1448, 54), Bytes::new(1557));
        assert_eq!(wire_bytes(Bytes::ZERO, 1448, 54), Bytes::ZERO);
    }

    #[test]
    fn the_geometric_mean_of_a_half_and_two_is_one() {
        assert!((geometric_mean(&[0.5, 2.0]).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[0.0]), None);
    }
}
