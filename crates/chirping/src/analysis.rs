//! From the queueing delays of a chirp's packets to the gap at which the path keeps up. Pure
//! functions over slices, integer nanoseconds.
//!
//! The delays show *excursions*: stretches in which they rise and do not fall back. Where an
//! excursion begins, packets came faster than the path could carry them. The rules are those of
//! pathChirp (Ribeiro et al., PAM 2003) as the authors of Paced Chirping changed them: an excursion
//! cannot begin at packet 0, a packet is labelled with the gap before it, and gaps (not rates) are
//! averaged with equal weight.

use super::geometry::RATIO_ONE;

/// When a rise of the delay counts as an excursion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExcursionRule {
    /// An excursion that ended before the chirp did needs this many packets, its start included;
    /// shorter ones are noise.
    pub min_packets: usize,
    /// An excursion lasts while the delay is above this share of its peak, in units of 1/1024.
    pub survival: u64,
}

impl ExcursionRule {
    /// The published rule: 5 packets, 0.625 of the peak (all generations of the authors' code;
    /// pathChirp calls 1/0.625 = 1.6 F).
    pub const PUBLISHED: Self = Self { min_packets: 5, survival: 640 };

    /// True if a delay `above` the excursion's start still belongs to an excursion of this `peak`.
    fn survives(&self, above: u64, peak: u64) -> bool {
        u128::from(above) > u128::from(peak) * u128::from(self.survival) / u128::from(RATIO_ONE)
    }
}

/// A stretch of a chirp in which the delay rose and stayed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excursion {
    /// The packet it began at.
    pub start: usize,
    /// Packets in it, the start included.
    pub packets: usize,
    /// True if the delay came down again within the chirp.
    pub terminated: bool,
}

/// The excursions among the `delays` (ns) of a chirp's packets, in order.
pub fn excursions(delays: &[u64], rule: ExcursionRule) -> impl Iterator<Item = Excursion> + '_ {
    let mut next = 1;
    core::iter::from_fn(move || {
        while next + 1 < delays.len() {
            let start = next;
            if delays[start] >= delays[start + 1] {
                next += 1;
                continue;
            }
            let mut peak = 0;
            let end = (start + 1..delays.len()).find(|&k| match delays[k].checked_sub(delays[start]) {
                Some(above) if rule.survives(above, peak) => {
                    peak = peak.max(above);
                    false
                }
                _ => true,
            });
            next = end.unwrap_or(delays.len());
            return Some(Excursion { start, packets: next - start, terminated: end.is_some() });
        }
        None
    })
}

/// The average gap (ns) at which the path keeps up, as this chirp shows it. `gaps[k]` is the time
/// from packet k-1 to packet k when they left (`gaps[0]` is not used), `delays[k]` the queueing
/// delay of packet k up to a constant. `None` for fewer than two packets or slices of different
/// length.
#[must_use]
pub fn estimate(gaps: &[u64], delays: &[u64], rule: ExcursionRule) -> Option<u64> {
    let packets = gaps.len();
    if packets < 2 || delays.len() != packets {
        return None;
    }
    // A sum and a count of labelled packets are enough.
    let (mut sum, mut labelled) = (0_u128, 0_usize);
    let rest = label(gaps, delays, rule, |k| {
        sum += u128::from(gaps[k]);
        labelled += 1;
    });
    sum += u128::from(rest) * (packets - 1 - labelled) as u128;
    u64::try_from(sum / (packets - 1) as u128).ok()
}

/// Labels the packets of a chirp from packet 1 on: calls `labelled` for each whose label is its own
/// gap, in order, and returns the label of all others in ns. The estimate is the mean of all
/// labels. Slices as for [`estimate`]; 0 for what that refuses.
pub fn label(gaps: &[u64], delays: &[u64], rule: ExcursionRule, mut labelled: impl FnMut(usize)) -> u64 {
    let packets = gaps.len();
    if packets < 2 || delays.len() != packets {
        return 0;
    }
    // Without congestion at the end, the smallest gap was not too small.
    let mut rest = gaps[packets - 1];
    for excursion in excursions(delays, rule) {
        let end = excursion.start + excursion.packets;
        if !excursion.terminated {
            rest = gaps[excursion.start];
        } else if excursion.packets >= rule.min_packets {
            (excursion.start..end).filter(|&k| delays[k] < delays[k + 1]).for_each(&mut labelled);
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::super::geometry::Geometry;
    use super::*;
    use proptest::prelude::*;

    const RULE: ExcursionRule = ExcursionRule::PUBLISHED;

    /// Gaps in ns of a chirp around 200 µs with geometry 2, entry 0 unused.
    fn gaps(packets: usize) -> Vec<u64> {
        let chirp = Geometry::new(packets as u32, 200_000, 2 * RATIO_ONE);
        (0..packets as u32).map(|k| if k == 0 { 0 } else { chirp.gap(k) }).collect()
    }

    fn nanos(micros: &[u64]) -> Vec<u64> {
        micros.iter().map(|us| us * 1000).collect()
    }

    /// Delays in µs: zeros, then the rest.
    fn delays<const N: usize>(zeros: usize, rest: [u64; N]) -> Vec<u64> {
        let mut all = vec![0; zeros];
        all.extend(rest);
        nanos(&all)
    }

    fn found(delays: &[u64]) -> Vec<(usize, usize, bool)> {
        excursions(delays, RULE).map(|e| (e.start, e.packets, e.terminated)).collect()
    }

    /// Checks estimate (ns) and excursions (start, length, terminated) of one vector.
    fn check(delays: &[u64], expected: u64, excursions: &[(usize, usize, bool)]) {
        assert_eq!(found(delays), excursions);
        assert_eq!(estimate(&gaps(delays.len()), delays, RULE), Some(expected));
    }

    /// Delays in ns of a chirp around 200 µs at a FIFO that needs `service` µs per packet.
    fn fifo(packets: usize, service: u64) -> Vec<u64> {
        let step = |q: &mut u64, gap: &u64| {
            Some({
                *q = (*q + service * 1000).saturating_sub(*gap);
                *q
            })
        };
        std::iter::once(0).chain(gaps(packets)[1..].iter().scan(0, step)).collect()
    }

    const KNEE: [u64; 7] = [10, 45, 105, 190, 300, 435, 595];

    #[test]
    fn a_clean_knee_is_found_one_step_early() {
        let q = delays(9, KNEE);
        assert_eq!(q, fifo(16, 210));
        check(&q, 225_000, &[(8, 8, false)]);
    }

    #[test]
    fn a_clean_knee_near_the_end() {
        let q = delays(13, [20, 65, 135]);
        assert_eq!(q, fifo(16, 120));
        check(&q, 125_000, &[(12, 4, false)]);
    }

    #[test]
    fn noise_and_an_excursion_that_returns() {
        let q = delays(0, [0, 0, 5, 60, 90, 80, 70, 65, 20, 0, 5, 0, 30, 90, 180, 300]);
        check(&q, 195_000, &[(1, 7, true), (9, 2, true), (11, 5, false)]);
    }

    #[test]
    fn without_congestion_the_smallest_gap_is_the_estimate() {
        check(&[0; 16], 50_000, &[]);
    }

    #[test]
    fn congestion_throughout_gives_the_largest_gap() {
        let q = delays(0, [0, 100, 225, 375, 550, 750, 975, 1225, 1500, 1800, 2125, 2475, 2850, 3250, 3675, 4125]);
        assert_eq!(q, fifo(16, 500));
        check(&q, 400_000, &[(1, 15, false)]);
    }

    #[test]
    fn short_spikes_are_noise() {
        let q = delays(0, [0, 0, 30, 10, 0, 40, 15, 0, 0, 10, 45, 105, 190, 300, 435, 595]);
        check(&q, 225_000, &[(1, 2, true), (4, 2, true), (8, 8, false)]);
    }

    #[test]
    fn an_excursion_that_returns_counts_from_five_packets_on() {
        check(&delays(0, [0, 0, 0, 10, 20, 30, 40, 5, 0, 0, 0, 0, 0, 0, 0, 0]), 126_666, &[(2, 5, true)]);
        check(&delays(0, [0, 0, 0, 10, 20, 30, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0]), 50_000, &[(2, 4, true)]);
    }

    #[test]
    fn one_delayed_packet_at_the_end_moves_the_estimate() {
        check(&delays(15, [7]), 75_000, &[(14, 2, false)]);
    }

    #[test]
    fn a_rise_between_the_first_two_packets_is_not_seen() {
        let mut q = nanos(&[3; 16]);
        q[0] = 0;
        check(&q, 50_000, &[]);
    }

    #[test]
    fn short_chirps() {
        check(&delays(3, [60, 200]), 320_000, &[(2, 3, false)]);
        check(&delays(5, [10, 70, 180]), 250_000, &[(4, 4, false)]);
    }

    #[test]
    fn delayed_acks_that_share_the_newest_rtt_err_on_the_safe_side() {
        check(&delays(8, [10, 10, 105, 105, 300, 300, 595, 595]), 250_000, &[(7, 9, false)]);
    }

    #[test]
    fn each_packets_own_rtt_under_delayed_acks_would_be_far_too_optimistic() {
        let q = nanos(&[400, 0, 350, 0, 300, 0, 250, 0, 210, 10, 255, 105, 400, 300, 645, 595]);
        let found = found(&q);
        assert_eq!(found.last(), Some(&(11, 5, false)));
        assert_eq!(found.iter().filter(|(_, packets, ended)| *ended && *packets < 5).count(), 5);
        assert_eq!(estimate(&gaps(16), &q, RULE), Some(150_000));
    }

    #[test]
    fn too_few_packets_give_no_estimate() {
        assert_eq!(estimate(&[], &[], RULE), None);
        assert_eq!(estimate(&[0], &[0], RULE), None);
        assert_eq!(estimate(&[0, 1], &[0], RULE), None);
    }

    proptest! {
        #[test]
        fn the_estimate_lies_between_the_smallest_and_the_largest_gap(q in prop::collection::vec(0u64..10_000_000, 2..=64)) {
            let gaps = gaps(q.len());
            let estimate = estimate(&gaps, &q, RULE).unwrap();
            prop_assert!(estimate >= gaps[q.len() - 1] && estimate <= gaps[1]);
        }

        #[test]
        fn a_constant_added_to_all_delays_changes_nothing(q in prop::collection::vec(0u64..10_000_000, 2..=64), offset in 0u64..1 << 40) {
            let moved: Vec<u64> = q.iter().map(|q| q + offset).collect();
            let gaps = gaps(q.len());
            prop_assert_eq!(estimate(&gaps, &q, RULE), estimate(&gaps, &moved, RULE));
        }

        #[test]
        fn excursions_are_disjoint_in_order_and_only_the_last_is_unterminated(q in prop::collection::vec(0u64..1000, 0..=64)) {
            let found: Vec<Excursion> = excursions(&q, RULE).collect();
            for pair in found.windows(2) {
                prop_assert!(pair[0].terminated && pair[0].start + pair[0].packets <= pair[1].start);
            }
            for e in &found {
                prop_assert!(e.start >= 1 && e.packets >= 2 && e.start + e.packets <= q.len());
                prop_assert!(q[e.start] < q[e.start + 1]);
            }
        }

        #[test]
        fn a_fifo_slower_than_the_first_gap_is_estimated_within_one_step(service in 51u64..390) {
            let estimate = estimate(&gaps(16), &fifo(16, service), RULE).unwrap() / 1000;
            // One step (25 µs) early at the most, as the packet is labelled with the gap before it.
            prop_assert!(estimate + 1 >= service && estimate <= service + 50, "service {} estimate {}", service, estimate);
        }

        #[test]
        fn nothing_panics_or_overflows(pairs in prop::collection::vec((any::<u64>(), any::<u64>()), 0..=64), min_packets in 0usize..20, survival: u64) {
            let (gaps, q): (Vec<u64>, Vec<u64>) = pairs.into_iter().unzip();
            let rule = ExcursionRule { min_packets, survival };
            prop_assert_eq!(estimate(&gaps, &q, rule).is_some(), q.len() >= 2);
        }
    }
}
