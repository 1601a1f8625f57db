//! How fast a flow gets up to speed: M1, M2, M3 and M11.

use flowstart_units::{Bytes, Span};

use super::Reference;
use super::egress::{Cumulative, Egress};

/// Steps per RTT0 at which [`time_to`] and [`least_utilisation`] look.
const STEPS_PER_RTT: u64 = 32;

/// Intervals per RTT0 over which [`deficit`] averages the rate.
const INTERVALS_PER_RTT: u64 = 4;

/// How long the utilisation must stay above the level in [`time_to`], in RTT0.
const SUSTAINED_RTTS: u64 = 2;

/// How many intervals of RTT0/`per_rtt` the horizon has.
fn in_horizon(reference: &Reference, per_rtt: u64) -> u64 {
    reference.horizon.mul_ratio(per_rtt, reference.base_rtt.as_nanos().max(1)).as_nanos()
}

/// Bytes from which on something could have passed: less is no time to judge anybody by.
const SOMETHING: f64 = 1.0;

/// M1, utilisation: U(t) = (egress(t) − egress(t − RTT0)) / (C_f · RTT0), with egress(t < 0) = 0.
/// Of a capacity that changes the denominator is what C_f carries in that RTT0; 1 if that is
/// nothing.
#[must_use]
pub fn utilisation(egress: &Cumulative, reference: &Reference, t: Span) -> f64 {
    let possible = reference.possible_before(t);
    if reference.moments.is_some() && possible < SOMETHING {
        return 1.0;
    }
    egress.between(t - reference.base_rtt, t) / possible
}

/// M2, time to x: the smallest t with U(s) ≥ x for all s in [t, t + 2 RTT0], in RTT0; `None` if it
/// lies beyond the horizon (which counts as H where a number is needed). Looked for in steps of
/// RTT0/32. The recording must reach 2 RTT0 past the horizon.
///
/// U looks back over one RTT0, so a flow that sends at x·C_f from time t on reaches x one RTT0
/// later.
#[must_use]
pub fn time_to(x: f64, egress: &Cumulative, reference: &Reference) -> Option<f64> {
    let steps = in_horizon(reference, STEPS_PER_RTT);
    // Bins hold whole bytes: one byte less than the level reaches it.
    let level = |t: Span| x - 1.0 / reference.possible_before(t);
    let sustained = STEPS_PER_RTT * SUSTAINED_RTTS;
    let at = |step: u64| reference.base_rtt.mul_ratio(step, STEPS_PER_RTT);
    let mut since = 0;
    for step in 0..=steps.saturating_add(sustained) {
        if utilisation(egress, reference, at(step)) < level(at(step)) {
            since = step + 1;
        } else if step - since >= sustained {
            return Some(since as f64 / STEPS_PER_RTT as f64);
        }
        if since > steps {
            return None;
        }
    }
    None
}

/// M3, start-up deficit: L = (1/B_f) · ∫₀ᴴ max(0, C_f − e(t)) dt, where e is the egress rate
/// averaged over RTT0/4; in BDP. The primary score of speed: how much less than its fair share the
/// flow carried. Of a capacity that changes C_f is averaged over the same times, and B_f is of the
/// mean.
///
/// The same idea as quicly's comparison of starts by the integral of delivered bytes over time, but
/// measured against the ideal and at the bottleneck.
#[must_use]
pub fn deficit(egress: &Cumulative, reference: &Reference) -> f64 {
    let intervals = in_horizon(reference, INTERVALS_PER_RTT);
    let constant = reference.bdp() / INTERVALS_PER_RTT as f64;
    let fair = |from, to| reference.moments.as_ref().map_or(constant, |moments| moments.between(from, to));
    let at = |interval: u64| reference.base_rtt.mul_ratio(interval, INTERVALS_PER_RTT);
    let missing: f64 =
        (0..intervals).map(|i| (fair(at(i), at(i + 1)) - egress.between(at(i), at(i + 1))).max(0.0)).sum();
    missing / reference.bdp()
}

/// L_dup, beside M3: bytes that left the bottleneck a second time, in BDP.
#[must_use]
pub fn duplicates(bytes: Bytes, reference: &Reference) -> f64 {
    bytes.get() as f64 / reference.bdp()
}

/// The smallest utilisation of any RTT0 that lies within two times, looked for in steps of RTT0/32
/// (for M6: undershoot U_min over the 10 RTT0 after the exit, so that what was or was not sent
/// before the exit does not count). `None` if `to` lies past the recording.
#[must_use]
pub fn least_utilisation(egress: &Egress, reference: &Reference, from: Span, to: Span) -> Option<f64> {
    let from = from + reference.base_rtt;
    if to > egress.end() || to < from {
        return None;
    }
    let step = reference.base_rtt / STEPS_PER_RTT;
    let total = egress.cumulative();
    (0..=(to - from).whole(step)).map(|i| utilisation(&total, reference, from + step * i)).min_by(f64::total_cmp)
}

/// M11, overhead: bytes sent over bytes delivered, minus 1. `None` if nothing was delivered.
#[must_use]
pub fn overhead(sent: Bytes, delivered: Bytes) -> Option<f64> {
    (delivered > Bytes::ZERO).then(|| sent.get() as f64 / delivered.get() as f64 - 1.0)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use flowstart_units::{Rate, Time};

    use super::*;
    use crate::Moments;

    const PACKET: u64 = 1500;
    const RTT: Span = Span::from_millis(20);

    /// B_f = 160 packets.
    fn reference(horizon_rtts: u64) -> Reference {
        Reference { horizon: RTT * horizon_rtts, ..Reference::new(Rate::from_mbps(96), RTT) }
    }

    /// One window per round trip, each spread evenly over it; the last one repeats.
    fn fluid(windows: &[u64], reference: &Reference) -> Egress {
        let mut egress = Egress::new(RTT / 32, reference.horizon + RTT * 3, 1 << 20);
        for (round, window) in (0..reference.horizon_rtts() as u64 + 3)
            .zip(windows.iter().copied().chain(std::iter::repeat(windows[windows.len() - 1])))
        {
            egress.spread(RTT * round, RTT * (round + 1), window * PACKET);
        }
        egress
    }

    fn check(windows: &[u64], horizon_rtts: u64, deficit_bdp: f64, full_after: f64) {
        let reference = reference(horizon_rtts);
        let egress = fluid(windows, &reference).cumulative();
        let measured = deficit(&egress, &reference);
        assert!((measured - deficit_bdp).abs() < 0.006, "L = {measured}, expected {deficit_bdp}");
        // The vectors count round trips until the window is the BDP. M1 looks back over one round
        // trip, so that M2 with x = 1 says one more.
        assert_eq!(time_to(1.0, &egress, &reference), Some(full_after + 1.0));
    }

    /// A fluid: vectors worked out by hand, B_f = 160 packets, one window per round trip.
    #[test]
    fn fluid_starts_have_the_deficits_and_times_that_arithmetic_gives() {
        check(&[10, 20, 40, 80, 160], 40, 3.06, 4.0);
        check(&[10, 30, 90, 160], 40, 2.19, 3.0);
        check(&[10, 40, 160], 40, 1.69, 2.0);
        check(&[10, 20, 40, 80, 130, 160], 40, 3.25, 5.0);
        let early: Vec<u64> = [10, 20].into_iter().chain(40..=160).collect();
        check(&early, 130, 47.19, 122.0);
    }

    #[test]
    fn a_flow_that_is_too_slow_for_the_whole_horizon_has_no_time_to_x() {
        let reference = reference(40);
        let early: Vec<u64> = [10, 20].into_iter().chain(40..=160).collect();
        let egress = fluid(&early, &reference).cumulative();
        assert_eq!(time_to(0.9, &egress, &reference), None);
        assert!(time_to(0.3, &egress, &reference).is_some());
        // Rounds 0..40 carry 10, 20, 40, 41, ... 77 packets.
        let expected: u64 = 150 + 140 + (40..78).map(|window| 160 - window).sum::<u64>();
        assert!((deficit(&egress, &reference) - expected as f64 / 160.0).abs() < 1e-3);
    }

    #[test]
    fn a_dip_within_two_round_trips_starts_the_wait_again() {
        let reference = reference(40);
        let egress = fluid(&[160, 160, 100, 160], &reference).cumulative();
        // U falls to 100/160 at t = 3 and is back at 0.9 when 0.625 (1 - f) + f = 0.9, f = 0.733:
        // at 3.75 in steps of 1/32.
        assert_eq!(time_to(0.9, &egress, &reference), Some(3.75));
    }

    #[test]
    fn sending_more_than_the_fair_share_does_not_make_up_for_sending_less() {
        let reference = reference(40);
        assert!((deficit(&fluid(&[80, 240, 160], &reference).cumulative(), &reference) - 0.5).abs() < 1e-9);
    }

    /// 48, nothing, and 144 Mbit/s, in turns of 100, 50 and 50 ms: 60 Mbit/s in the mean.
    fn changing(origin: Time) -> Reference {
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let steps = [(at(0), Rate::from_mbps(48)), (at(100), Rate::ZERO), (at(150), Rate::from_mbps(144))];
        let moments = Moments::new(&steps, Some(Span::from_millis(200)), 1.0, origin);
        Reference { moments: moments.map(Arc::new), ..Reference::new(Rate::from_mbps(60), RTT) }
    }

    /// Who takes what there is from a moment on.
    fn following(reference: &Reference, from: Span, share: f64) -> Cumulative {
        let mut egress = Egress::new(RTT / 32, reference.horizon + RTT * 3, 1 << 20);
        let moments = reference.moments.clone().unwrap();
        let mut carried = 0.0;
        for ms in 0..900 {
            let (begin, end) = (Span::from_millis(ms), Span::from_millis(ms + 1));
            carried += if begin < from { 0.0 } else { moments.between(begin, end) * share };
            egress.spread(begin, end, carried as u64);
            carried -= carried.floor();
        }
        egress.cumulative()
    }

    #[test]
    fn who_takes_what_there_is_at_every_moment_misses_nothing_and_is_there_at_once() {
        for origin in [0, 70, 130, 333] {
            let reference = changing(Time::ZERO + Span::from_millis(origin));
            let all = following(&reference, Span::ZERO, 1.0);
            let missing = deficit(&all, &reference);
            assert!(missing < 0.01, "{origin}: {missing}");
            // U looks back over one RTT0, unless nothing could pass in it.
            assert!(time_to(0.9, &all, &reference).unwrap() <= 1.0, "{origin}");
            let half = following(&reference, Span::ZERO, 0.5);
            let possible = reference.moments.as_ref().unwrap().between(Span::ZERO, reference.horizon);
            assert!((deficit(&half, &reference) - 0.5 * possible / reference.bdp()).abs() < 0.01, "{origin}");
            assert!(time_to(0.4, &half, &reference).is_some() && time_to(0.6, &half, &reference).is_none());
        }
        // Who comes when the link is silent has lost nothing by then.
        let reference = changing(Time::ZERO + Span::from_millis(100));
        let late = following(&reference, Span::from_millis(50), 1.0);
        assert!(deficit(&late, &reference) < 0.01);
        // Against the mean he would have missed much.
        let mean = Reference { moments: None, ..reference };
        assert!(deficit(&late, &mean) > 5.0, "{}", deficit(&late, &mean));
    }

    #[test]
    fn undershoot_is_the_least_utilisation_after_the_exit() {
        let reference = reference(40);
        let egress = fluid(&[40, 160, 80, 160], &reference);
        let least = least_utilisation(&egress, &reference, RTT, RTT * 11).unwrap();
        assert!((least - 0.5).abs() < 1e-9, "the 40 of the round trip before do not count: {least}");
        assert_eq!(least_utilisation(&egress, &reference, RTT, RTT * 44), None);
    }

    #[test]
    fn overhead_of_one_retransmission_in_ten_is_a_tenth() {
        assert!((overhead(Bytes::new(1100), Bytes::new(1000)).unwrap() - 0.1).abs() < 1e-12);
        assert_eq!(overhead(Bytes::new(1), Bytes::ZERO), None);
    }
}
