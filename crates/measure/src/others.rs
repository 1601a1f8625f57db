//! What a newcomer does to the flows that were there before: M8, M9 and M10.

use flowstart_units::{Span, Time};

use super::Reference;
use super::egress::Cumulative;
use super::speed::utilisation;
use super::wait::Wait;

/// How long the packets that are `wanted` waited that arrived within [0, H): for M8 those of the
/// newcomers or of the others.
#[must_use]
pub fn waits_of(samples: &[Wait], wanted: impl Fn(&Wait) -> bool, start: Time, horizon: Span) -> Vec<Span> {
    let inside = start..start + horizon;
    samples.iter().filter(|wait| wanted(wait) && inside.contains(&wait.arrived)).map(|wait| wait.waited).collect()
}

/// What max-min fairness leaves of `left` for those who want more than a share of it, once all
/// others have what they want, and how many they are.
fn unsatisfied(left: f64, wants: &[f64]) -> (f64, usize) {
    let mut sorted = wants.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut left = left.max(0.0);
    for (number, want) in sorted.iter().enumerate() {
        let all = sorted.len() - number;
        if *want >= left / all as f64 {
            return (left, all);
        }
        left -= want;
    }
    (left, 0)
}

/// The largest share that anybody has of `left` if it is shared max-min fairly among those who want
/// so much each (Bertsekas and Gallager, "Data Networks", section 6.5.2): those that want less have
/// what they want. Infinite if there is enough for all.
#[must_use]
pub fn max_min_share(left: f64, wants: &[f64]) -> f64 {
    match unsatisfied(left, wants) {
        (_, 0) => f64::INFINITY,
        (left, sharing) => left / sharing as f64,
    }
}

/// What some have together if `left` is shared max-min fairly among them, who want so much each,
/// and those `beside` them.
#[must_use]
pub fn max_min_part(left: f64, some: &[f64], beside: &[f64]) -> f64 {
    let all = [some, beside].concat();
    let (share, (left, sharing)) = (max_min_share(left, &all), unsatisfied(left, &all));
    let (satisfied, more): (Vec<f64>, Vec<f64>) = some.iter().partition(|want| **want < share);
    satisfied.iter().sum::<f64>() + left * more.len() as f64 / sharing.max(1) as f64
}

/// M9, harm to the throughput of others: h = max(0, (x_without − x_with − fair loss) / x_without),
/// fair loss = x_without − their max-min share beside the newcomer, never negative. Bytes (or
/// rates) of all other flows together over [0, H]; `fair` in the same measure
/// ([`max_min_part`]). `None` if the others carried nothing without the newcomer.
#[must_use]
pub fn harm(without: f64, with: f64, fair: f64) -> Option<f64> {
    if without <= 0.0 {
        return None;
    }
    let fair_loss = (without - fair).max(0.0);
    Some(((without - with - fair_loss) / without).max(0.0))
}

/// M9, harm relative to that of a reference newcomer (CUBIC with Linux's HyStart). `None` if the
/// reference does no harm.
#[must_use]
pub fn harm_ratio(harm: f64, reference: f64) -> Option<f64> {
    (reference > 0.0).then(|| harm / reference)
}

/// Bounds of the share that counts as converged, and for how many RTT0 it must be kept (M10).
const CONVERGED: std::ops::RangeInclusive<f64> = 0.8..=1.25;
const CONVERGED_RTTS: u64 = 10;
/// Steps per RTT0 at which [`convergence`] looks.
const STEPS_PER_RTT: u64 = 4;

/// M10, convergence: the first t from which the newcomer's utilisation (M1) stays in [0.8, 1.25] of
/// C_f for 10 RTT0, in RTT0; looked for in steps of RTT0/4 up to H − 10 RTT0. `None` if there is
/// none.
#[must_use]
pub fn convergence(egress: &Cumulative, reference: &Reference) -> Option<f64> {
    let steps = reference.horizon.mul_ratio(STEPS_PER_RTT, reference.base_rtt.as_nanos().max(1)).as_nanos();
    let kept = CONVERGED_RTTS * STEPS_PER_RTT;
    let mut since = 0;
    for step in 0..=steps {
        let share = utilisation(egress, reference, reference.base_rtt.mul_ratio(step, STEPS_PER_RTT));
        if !CONVERGED.contains(&share) {
            since = step + 1;
        } else if step - since >= kept {
            return Some(since as f64 / STEPS_PER_RTT as f64);
        }
    }
    None
}

/// Jain's fairness index (Jain, Chiu and Hawe 1984): (Σx)² / (n Σx²), from 1/n (one has all) to 1
/// (all have the same). `None` if nobody has anything.
#[must_use]
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use flowstart_units::Rate;

    use super::*;
    use crate::Egress;

    #[test]
    fn a_newcomer_that_takes_its_fair_share_does_no_harm() {
        assert_eq!(harm(100.0, 50.0, 50.0), Some(0.0));
        assert_eq!(harm(100.0, 75.0, 75.0), Some(0.0));
        assert_eq!(harm(100.0, 80.0, 50.0), Some(0.0));
    }

    #[test]
    fn harm_is_the_loss_beyond_the_fair_one() {
        assert!((harm(100.0, 20.0, 50.0).unwrap() - 0.3).abs() < 1e-12);
        // Others that use less than their fair share lose nothing fairly.
        assert!((harm(30.0, 15.0, 50.0).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(harm(0.0, 0.0, 50.0), None);
        assert_eq!(harm_ratio(0.3, 0.15), Some(2.0));
        assert_eq!(harm_ratio(0.3, 0.0), None);
    }

    #[test]
    fn who_wants_less_than_a_share_has_it_and_the_rest_is_shared() {
        const GREEDY: f64 = f64::INFINITY;
        for (left, some, beside, share, part) in [
            (20.0, vec![GREEDY], vec![GREEDY], 10.0, 10.0),
            (20.0, vec![GREEDY; 3], vec![GREEDY], 5.0, 15.0),
            // 2, 9 and 9.
            (20.0, vec![GREEDY, 2.0], vec![GREEDY], 9.0, 11.0),
            (20.0, vec![GREEDY], vec![2.0, GREEDY], 9.0, 9.0),
            // Who is over wants nothing.
            (20.0, vec![GREEDY, 0.0, 0.0], vec![GREEDY], 10.0, 10.0),
            // Exactly a share, and more than one.
            (20.0, vec![10.0], vec![GREEDY], 10.0, 10.0),
            (20.0, vec![15.0], vec![GREEDY], 10.0, 10.0),
            // Enough for all, nothing for anybody, and nobody.
            (20.0, vec![2.0, 3.0], vec![4.0], GREEDY, 5.0),
            (0.0, vec![GREEDY], vec![GREEDY], 0.0, 0.0),
            (-3.0, vec![GREEDY], vec![GREEDY], 0.0, 0.0),
            (20.0, vec![], vec![GREEDY], 20.0, 0.0),
            (20.0, vec![], vec![], GREEDY, 0.0),
        ] {
            assert_eq!(max_min_share(left, &[some.clone(), beside.clone()].concat()), share, "{some:?} {beside:?}");
            assert_eq!(max_min_part(left, &some, &beside), part, "{left} {some:?} {beside:?}");
        }
    }

    #[test]
    fn waits_are_those_of_the_wanted_packets_within_the_horizon() {
        let sample = |at, waited, flow| Wait {
            arrived: Time::from_nanos(at),
            waited: Span::from_nanos(waited),
            flow,
            transmission: 0,
        };
        let samples = [sample(9, 1, 0), sample(10, 2, 0), sample(15, 9_999, 1), sample(19, 3, 0), sample(20, 4, 0)];
        let waits = waits_of(&samples, |wait| wait.flow == 0, Time::from_nanos(10), Span::from_nanos(10));
        assert_eq!(waits, [2, 3].map(Span::from_nanos));
    }

    #[test]
    fn convergence_is_when_the_fair_share_is_kept_for_ten_round_trips() {
        let rtt = Span::from_millis(20);
        let reference = Reference::new(Rate::from_mbps(48), rtt);
        let mut egress = Egress::new(rtt / 32, rtt * 42, 1 << 16);
        for round in 0..42_u64 {
            // Fair from round 2 to 8, too much in round 9, fair from 10 on.
            let bytes = match round {
                0 | 1 => 20_000,
                9 => 200_000,
                _ => 120_000,
            };
            egress.spread(rtt * round, rtt * (round + 1), bytes);
        }
        let t = convergence(&egress.cumulative(), &reference).unwrap();
        assert!((10.5..=11.0).contains(&t), "{t}");
    }

    #[test]
    fn jains_index_of_equal_shares_is_one_and_of_a_monopoly_one_over_n() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[0.0]), None);
    }
}
