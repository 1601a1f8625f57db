//! What one chirp says by itself, judged as a whole: where its delays begin to rise, and whether
//! they are clear enough to say so.
//!
//! The published rule ([`analysis`](super::analysis)) decides packet by packet and takes every
//! shape for an answer. This one fits the shape that a queue gives: delays that fall while packets
//! come slower than the path carries them, and rise from where they come faster. What does not fit
//! is noise, and a chirp with more noise than shape says nothing. Only packets whose RTT is their
//! own count, so that delayed and stretched ACKs make a reading coarser, not wrong. Where the
//! delays rise, the path itself spaces the packets: their mean spacing at the receiver is its gap,
//! exact where the published label is up to one step early.

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

/// When a chirp says something, and what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadingRule {
    /// Fewest points.
    pub min_points: usize,
    /// A rise must be this many times the noise.
    pub contrast: u64,
    /// The path is crowded if packets that queue come out this much closer together per unit of
    /// time they went in closer, 0 ..= 1.
    pub crowded: f64,
    /// Points with at most this many times the least noise may be the knee.
    pub level: u64,
    /// Or with this share of what the delays differ by, 0 ..= 1.
    pub level_share: f64,
}

/// What a chirp says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Nothing queued: the path carries at least a packet per this gap (ns), the smallest of the
    /// chirp.
    Clear(u64),
    /// Packets queued from some point on: the path carries a packet per this gap (ns).
    Knee(u64),
    /// Packets queued, but behind others' packets more than behind each other: how much of the path
    /// there is to be had, only trying can tell.
    Crowded,
    /// Too few points or too much noise.
    Unclear,
}

impl Reading {
    /// The gap it gives in ns; [`u64::MAX`] if it gives none.
    #[must_use]
    pub fn gap(&self) -> u64 {
        match self {
            Self::Clear(gap) | Self::Knee(gap) => *gap,
            Self::Crowded | Self::Unclear => u64::MAX,
        }
    }
}

/// A reading, and how noisy the delays were in ns: what they rise before the knee and fall behind
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// What the chirp says.
    pub reading: Reading,
    /// The last point before the delays rise, as an index; `None` if the reading is not a knee or a
    /// crowded path.
    pub knee: Option<usize>,
    /// By how much the delays miss the shape of a queue, in ns; `None` if there are too few to
    /// tell.
    pub noise: Option<u64>,
}

/// What too few points say.
const NOTHING: Judged = Judged { reading: Reading::Unclear, knee: None, noise: None };

/// Reads a chirp, if earlier ones had this noise in ns (0 to judge it by itself). The first point's
/// gap is not used.
#[must_use]
pub fn read(points: &[Point], rule: ReadingRule, noise_before: u64) -> Judged {
    let [.., last] = points else { return NOTHING };
    if points.len() < rule.min_points.max(2) {
        return NOTHING;
    }
    let (knee, noise, level) = best_knee(points, rule);
    let judged = |reading| {
        let queued = matches!(reading, Reading::Knee(_) | Reading::Crowded);
        Judged { reading, knee: queued.then_some(knee), noise: Some(noise) }
    };
    let rise = last.delay.saturating_sub(points[knee].delay);
    let fastest = last.gap();
    if rise == 0 || rise <= noise {
        // Less noise than the time between two packets could not have hidden a queue.
        return judged(if noise <= fastest { Reading::Clear(fastest) } else { Reading::Unclear });
    }
    if rise < noise.max(noise_before).saturating_mul(rule.contrast) {
        return judged(Reading::Unclear);
    }
    let queued = &points[knee + 1..];
    let (mut time, mut packets) = (rise, 0);
    for point in queued {
        time = time.saturating_add(point.gaps);
        packets += u64::from(point.packets);
    }
    if crowding(points[knee].delay, queued).is_some_and(|slope| slope > rule.crowded) {
        return judged(Reading::Crowded);
    }
    let received = time / packets.max(1);
    // The first packet that queued came too fast, the last that did not did not, or by no more than
    // may be noise.
    let floor = queued.first().map_or(0, Point::gap);
    let ceiling = if knee == 0 { u64::MAX } else { points[knee].gap().max(floor).saturating_add(level) };
    judged(Reading::Knee(received.clamp(floor, ceiling)))
}

/// The last point before the delays rise, and the noise around it: what the delays rise up to there
/// and fall behind it. And the noise by which a later point may be the knee.
fn best_knee(points: &[Point], rule: ReadingRule) -> (usize, u64, u64) {
    let noises = || {
        let mut noise: u64 = falls(points);
        let later = points.windows(2).map(move |pair| {
            let (before, after) = (pair[0].delay, pair[1].delay);
            noise = noise.saturating_add(after.saturating_sub(before)).saturating_sub(before.saturating_sub(after));
            noise
        });
        core::iter::once(falls(points)).chain(later)
    };
    let least = noises().min().unwrap_or(0);
    // Where the delays are level the latest point is the last that did not queue, and among noise
    // any of them may have the least. One too late costs a packet that queued; one too early takes
    // gaps of packets that did not for the path's.
    let (low, high) = points.iter().fold((u64::MAX, 0), |(low, high), it| (low.min(it.delay), high.max(it.delay)));
    let share = (high.saturating_sub(low) as f64 * rule.level_share) as u64;
    let level = least.saturating_mul(rule.level).max(share);
    let knee = (0..).zip(noises()).filter(|(_, noise)| *noise <= level).last();
    (knee.map_or(0, |(k, _)| k), least, level)
}

/// How much of a change of the gaps comes out at the other end, by linear regression over the
/// packets that queued: 0 if they queue behind each other alone, as the path itself spaces them
/// then; `1 - capacity left / capacity` if others' packets come in between at a steady rate (each
/// packet's delay grows by its service time less what drains in its gap). `None` if there is too
/// little to tell.
fn crowding(first_delay: u64, queued: &[Point]) -> Option<f64> {
    const FEWEST: usize = 3;
    if queued.len() < FEWEST {
        return None;
    }
    let (mut n, mut sum_in, mut sum_out, mut sum_in_in, mut sum_in_out) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let mut delay = first_delay;
    for point in queued {
        let packets = f64::from(point.packets.max(1));
        let gap_in = point.gaps as f64 / packets;
        let gap_out = (point.gaps as f64 + point.delay as f64 - delay as f64) / packets;
        delay = point.delay;
        n += packets;
        sum_in += gap_in * packets;
        sum_out += gap_out * packets;
        sum_in_in += gap_in * gap_in * packets;
        sum_in_out += gap_in * gap_out * packets;
    }
    let spread = n * sum_in_in - sum_in * sum_in;
    (spread > 0.0).then(|| (n * sum_in_out - sum_in * sum_out) / spread)
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

    const RULE: ReadingRule =
        ReadingRule { min_points: 4, contrast: 2, crowded: 0.5, level: 3, level_share: 1.0 / 32.0 };
    const AVERAGE: u64 = 200_000;

    fn read(points: &[Point]) -> Reading {
        super::read(points, RULE, 0).reading
    }

    /// A chirp of 16 around 200 µs over a FIFO with this service time (ns) and this much noise per
    /// packet, an ACK for every `every` packets.
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
            assert_eq!(read(&points(service, &[], 1)), Reading::Knee(service));
        }
    }

    #[test]
    fn the_knee_is_the_last_packet_that_did_not_queue() {
        // Gaps of 400 µs, 25 µs less from packet to packet: the ninth is the first below 224 µs.
        assert_eq!(super::read(&points(224_000, &[], 1), RULE, 0).knee, Some(8));
        assert_eq!(super::read(&points(10_000, &[], 1), RULE, 0).knee, None);
    }

    #[test]
    fn a_path_slower_than_the_whole_chirp_is_read_exactly_too() {
        assert_eq!(read(&points(2_400_000, &[], 1)), Reading::Knee(2_400_000));
    }

    #[test]
    fn a_path_faster_than_the_whole_chirp_is_clear_at_its_smallest_gap() {
        assert_eq!(read(&points(10_000, &[], 1)), Reading::Clear(50_000));
    }

    #[test]
    fn an_ack_for_every_second_or_fourth_packet_makes_the_reading_coarser_not_wrong() {
        for service in [120_000, 210_000, 2_400_000] {
            for every in [2, 4] {
                let Reading::Knee(gap) = read(&points(service, &[], every)) else { panic!("{service} {every}") };
                assert!(gap.abs_diff(service) <= service / 4, "{service} every {every}: {gap}");
            }
        }
    }

    #[test]
    fn noise_larger_than_the_shape_says_nothing() {
        let noise: Vec<u64> = (0..16).map(|k| if k % 2 == 0 { 0 } else { 1_000_000 }).collect();
        assert_eq!(read(&points(150_000, &noise, 1)), Reading::Unclear);
        assert_eq!(read(&points(10_000, &noise, 1)), Reading::Unclear);
    }

    #[test]
    fn a_shape_that_the_noise_of_other_chirps_could_have_made_says_nothing() {
        let points = points(150_000, &[], 1);
        let rise = points[15].delay - points.iter().map(|point| point.delay).min().unwrap();
        assert_eq!(super::read(&points, RULE, rise / 3).reading, Reading::Knee(150_000));
        assert_eq!(super::read(&points, RULE, rise).reading, Reading::Unclear);
    }

    /// A greedy flow holds a queue that never empties: a packet's delay grows by its service time,
    /// whatever its gap.
    #[test]
    fn a_path_that_a_greedy_flow_fills_is_crowded_and_one_with_a_fifth_of_other_traffic_is_not() {
        let chirp = Geometry::new(16, AVERAGE, 2 * RATIO_ONE);
        let crossed = |service: f64, others: f64| -> Vec<Point> {
            let mut queue = 5e6;
            (0..16_u32)
                .map(|k| {
                    let gap = if k == 0 { 0 } else { chirp.gap(k) };
                    queue = f64::max(0.0, queue - gap as f64 * (1.0 - others)) + service;
                    Point { gaps: gap, packets: 1, delay: queue as u64 }
                })
                .collect()
        };
        assert_eq!(read(&crossed(24_000.0, 1.0)), Reading::Crowded);
        assert_eq!(read(&crossed(100_000.0, 0.8)), Reading::Crowded);
        assert!(matches!(read(&crossed(150_000.0, 0.2)), Reading::Knee(_)));
    }

    #[test]
    fn too_few_points_say_nothing() {
        assert_eq!(read(&points(210_000, &[], 8)), Reading::Unclear);
        assert_eq!(read(&[]), Reading::Unclear);
    }

    /// Less than a microsecond of noise among packets that do not queue made seven of ten readings
    /// wrong by more than a sixteenth, up to four times too large: any of these packets may have
    /// had the least noise around it.
    #[test]
    fn a_little_noise_moves_a_reading_little() {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for amplitude in [300, 3_000] {
            let mut wrong = 0;
            for _ in 0..1000 {
                let service = 100_000 + random(290_000);
                let noise: Vec<u64> = (0..16).map(|_| random(amplitude)).collect();
                let gap = read(&points(service, &noise, 1)).gap();
                wrong += u32::from(gap.abs_diff(service) > service / 16);
            }
            assert!(wrong <= 2, "{wrong} of 1000 with {amplitude} ns");
        }
    }

    proptest! {
        #[test]
        fn any_service_within_the_chirp_is_read_exactly_without_noise(service in 51_000_u64..400_000) {
            let Reading::Knee(gap) = read(&points(service, &[], 1)) else { panic!() };
            // One packet's residual: the queue of the first packet begins within its gap.
            prop_assert!(gap.abs_diff(service) <= 1, "{gap} {service}");
        }

        #[test]
        fn nothing_panics_or_overflows(parts in prop::collection::vec((any::<u64>(), any::<u32>(), any::<u64>()), 0..=64), min_points in 0_usize..70, contrast: u64) {
            let points: Vec<Point> = parts.into_iter().map(|(gaps, packets, delay)| Point { gaps, packets, delay }).collect();
            let _ = super::read(&points, ReadingRule { min_points, contrast, ..RULE }, contrast);
        }
    }
}
