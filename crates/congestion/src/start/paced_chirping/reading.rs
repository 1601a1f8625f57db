//! What one chirp says, judged as a whole: where its delays begin to rise, and whether they are clear enough to say so.
//!
//! The published rule ([`analysis`](super::analysis)) decides packet by packet and takes every shape for an answer. This one fits the shape
//! that a queue gives: delays that fall while packets come slower than the path carries them, and rise from where they come faster. What
//! does not fit is noise, and a chirp with more noise than shape says nothing. Only packets whose RTT is their own count, so that delayed
//! and stretched ACKs make a reading coarser, not wrong. Where the delays rise, the path itself spaces the packets: their mean spacing at
//! the receiver is its gap, exact where the published label is up to one step early.

/// A packet whose RTT is known, with what left since the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Time since the point before, in ns.
    pub gaps: u64,
    /// Packets since the point before, this one included; at least 1.
    pub packets: u32,
    /// Queueing delay in ns, up to a constant.
    pub delay: u64,
}

impl Point {
    /// Mean gap since the point before.
    fn gap(&self) -> u64 {
        self.gaps / u64::from(self.packets.max(1))
    }
}

/// When a chirp says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadingRule {
    /// Fewest points.
    pub min_points: usize,
    /// A rise must be this many times the noise.
    pub contrast: u64,
}

/// What a chirp says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Nothing queued: the path carries at least a packet per this gap (ns), the smallest of the chirp.
    Clear(u64),
    /// Packets queued from some point on: the path carries a packet per this gap (ns).
    Knee(u64),
    /// Too few points or too much noise.
    Unclear,
}

impl Reading {
    /// The gap it gives in ns; [`u64::MAX`] if it is unclear.
    #[must_use]
    pub fn gap(&self) -> u64 {
        match self {
            Self::Clear(gap) | Self::Knee(gap) => *gap,
            Self::Unclear => u64::MAX,
        }
    }
}

/// Reads a chirp. The first point's gap is not used.
#[must_use]
pub fn read(points: &[Point], rule: ReadingRule) -> Reading {
    let [.., last] = points else { return Reading::Unclear };
    if points.len() < rule.min_points.max(2) {
        return Reading::Unclear;
    }
    // Noise of a knee at point k: what the delays rise up to k and fall after it.
    let mut noise: u64 = falls(points);
    let (mut knee, mut least) = (0, noise);
    for (k, pair) in (1..).zip(points.windows(2)) {
        let (before, after) = (pair[0].delay, pair[1].delay);
        noise = noise.saturating_add(after.saturating_sub(before)).saturating_sub(before.saturating_sub(after));
        // Where the delays are level the latest point is the last that did not queue.
        if noise <= least {
            (knee, least) = (k, noise);
        }
    }
    let rise = last.delay.saturating_sub(points[knee].delay);
    let fastest = last.gap();
    if rise == 0 || rise <= least {
        // Less noise than the time between two packets could not have hidden a queue.
        return if least <= fastest { Reading::Clear(fastest) } else { Reading::Unclear };
    }
    if rise < least.saturating_mul(rule.contrast) {
        return Reading::Unclear;
    }
    let (mut time, mut packets) = (rise, 0);
    for point in &points[knee + 1..] {
        time = time.saturating_add(point.gaps);
        packets += u64::from(point.packets);
    }
    let received = time / packets.max(1);
    // The first packet that queued came too fast, the last that did not did not.
    let floor = points[knee + 1].gap();
    let ceiling = if knee == 0 { u64::MAX } else { points[knee].gap().max(floor) };
    Reading::Knee(received.clamp(floor, ceiling))
}

/// By how much the delays fall in all.
fn falls(points: &[Point]) -> u64 {
    points.windows(2).fold(0, |sum, pair| sum.saturating_add(pair[0].delay.saturating_sub(pair[1].delay)))
}

#[cfg(test)]
mod tests {
    use super::super::geometry::{Geometry, RATIO_ONE};
    use super::*;
    use proptest::prelude::*;

    const RULE: ReadingRule = ReadingRule { min_points: 4, contrast: 2 };
    const AVERAGE: u64 = 200_000;

    /// A chirp of 16 around 200 µs over a FIFO with this service time (ns) and this much noise per packet, an ACK for every `every` packets.
    fn points(service: u64, noise: &[u64], every: u32) -> Vec<Point> {
        let chirp = Geometry::new(16, AVERAGE, 2 * RATIO_ONE);
        let mut queue = 0_u64;
        let (mut gaps, mut packets) = (0, 0);
        let mut points = Vec::new();
        for k in 0..16_u32 {
            let gap = if k == 0 { 0 } else { chirp.gap(k) };
            queue = if k == 0 { 0 } else { (queue + service).saturating_sub(gap) };
            gaps += gap;
            packets += 1;
            if (k + 1) % every == 0 {
                let noise = noise.get(k as usize).copied().unwrap_or(0);
                points.push(Point { gaps, packets, delay: 1_000_000 + queue + noise });
                (gaps, packets) = (0, 0);
            }
        }
        points
    }

    #[test]
    fn an_idle_path_is_read_exactly() {
        for service in [60_000, 120_000, 210_000, 390_000] {
            assert_eq!(read(&points(service, &[], 1), RULE), Reading::Knee(service));
        }
    }

    #[test]
    fn a_path_slower_than_the_whole_chirp_is_read_exactly_too() {
        assert_eq!(read(&points(2_400_000, &[], 1), RULE), Reading::Knee(2_400_000));
    }

    #[test]
    fn a_path_faster_than_the_whole_chirp_is_clear_at_its_smallest_gap() {
        assert_eq!(read(&points(10_000, &[], 1), RULE), Reading::Clear(50_000));
    }

    #[test]
    fn an_ack_for_every_second_or_fourth_packet_makes_the_reading_coarser_not_wrong() {
        for service in [120_000, 210_000, 2_400_000] {
            for every in [2, 4] {
                let Reading::Knee(gap) = read(&points(service, &[], every), RULE) else { panic!("{service} {every}") };
                assert!(gap.abs_diff(service) <= service / 4, "{service} every {every}: {gap}");
            }
        }
    }

    #[test]
    fn noise_larger_than_the_shape_says_nothing() {
        let noise: Vec<u64> = (0..16).map(|k| if k % 2 == 0 { 0 } else { 1_000_000 }).collect();
        assert_eq!(read(&points(150_000, &noise, 1), RULE), Reading::Unclear);
        assert_eq!(read(&points(10_000, &noise, 1), RULE), Reading::Unclear);
    }

    #[test]
    fn too_few_points_say_nothing() {
        assert_eq!(read(&points(210_000, &[], 8), RULE), Reading::Unclear);
        assert_eq!(read(&[], RULE), Reading::Unclear);
    }

    proptest! {
        #[test]
        fn any_service_within_the_chirp_is_read_exactly_without_noise(service in 51_000_u64..400_000) {
            let Reading::Knee(gap) = read(&points(service, &[], 1), RULE) else { panic!() };
            // One packet's residual: the queue of the first packet begins within its gap.
            prop_assert!(gap.abs_diff(service) <= 1, "{gap} {service}");
        }

        #[test]
        fn nothing_panics_or_overflows(parts in prop::collection::vec((any::<u64>(), any::<u32>(), any::<u64>()), 0..=64), min_points in 0_usize..70, contrast: u64) {
            let points: Vec<Point> = parts.into_iter().map(|(gaps, packets, delay)| Point { gaps, packets, delay }).collect();
            let _ = read(&points, ReadingRule { min_points, contrast });
        }
    }
}
