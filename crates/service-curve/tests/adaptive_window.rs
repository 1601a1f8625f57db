//! The adaptive window loop: exact traces, delay quantiles and the attainable rate of Figure 5.

mod common;

use common::{close, numbers, vectors};
use flowstart_service_curve::stats::{SplitMix64, upper_quantile};
use flowstart_service_curve::{
    AdaptiveLoop, AdaptiveLoopConfig, ConstantRate, Growth, Line, Marking, Probability, Sent, ServiceCurve,
};
use flowstart_units::{Bytes, Rate, Span, Time};

const PACKET: Bytes = Bytes::new(1_500);
/// Bits of a packet.
const BITS: u64 = 12_000;

fn constant(packets_per_second: u64) -> ConstantRate {
    ConstantRate::new(Rate::from_bps(packets_per_second * BITS), PACKET)
}

fn check_trace(name: &str, packets: Vec<Sent>, field: &str, value: impl Fn(&Sent) -> u64) {
    let all = &vectors("adaptive_window")[name];
    let (at, windows) = (numbers(&all["i"]), numbers(&all["w"]));
    for ((index, expected), window) in at.into_iter().zip(all[field].as_array().unwrap()).zip(windows) {
        let packet = packets[index as usize];
        assert_eq!(value(&packet), expected.as_u64().unwrap(), "{name} {index}");
        close(packet.window, window, 1e-14);
    }
    if field == "delay_ns" {
        let sum: u64 = packets.iter().map(|packet| packet.delay.as_nanos()).sum();
        assert_eq!(sum, all["sum_delay_ns"].as_u64().unwrap());
        let largest = packets.iter().map(|packet| packet.delay.as_nanos()).max().unwrap();
        assert_eq!(largest, all["max_delay_ns"].as_u64().unwrap());
    }
}

#[test]
fn twenty_thousand_packets_are_the_published_ones_to_the_nanosecond() {
    let config = AdaptiveLoopConfig::default();
    let greedy = AdaptiveLoop::new(config, std::iter::repeat(Time::ZERO), 1).unwrap();
    check_trace("short_greedy_seed1_w0_10", greedy.take(20_000).collect(), "send_ns", |packet| packet.sent.as_nanos());
    for (growth, name) in
        [(Growth::Always, "short_cbr3000_seed1_w0_10"), (Growth::WhenLimited, "short_cbr3000_cwv_seed1_w0_10")]
    {
        let paced = AdaptiveLoop::new(AdaptiveLoopConfig { growth, ..config }, constant(3_000), 1).unwrap();
        check_trace(name, paced.take(20_000).collect(), "delay_ns", |packet| packet.delay.as_nanos());
    }
}

#[test]
fn marks_fall_on_the_published_acks() {
    let mut random = SplitMix64::new(1);
    let marked: Vec<f64> = (0..20_000).filter(|_| random.unit() < 0.001).map(f64::from).collect();
    assert_eq!(marked, numbers(&vectors("adaptive_window")["marks_seed1_p1e-3_first20000"]));
}

#[test]
fn delay_quantiles_of_millions_of_packets_are_the_published_ones() {
    let all = vectors("adaptive_window");
    for (growth, name) in [(Growth::Always, "no_cwv"), (Growth::WhenLimited, "cwv")] {
        let rates = numbers(&all[name]["rates"]);
        for rate in [1_000_u64, 2_000] {
            let index = rates.iter().position(|r| *r == rate as f64).unwrap();
            let config = AdaptiveLoopConfig { growth, initial_window: 40.0, ..AdaptiveLoopConfig::default() };
            let packets = AdaptiveLoop::new(config, constant(rate), 12_345 + rate).unwrap();
            let mut delays: Vec<Span> = packets.delays().skip(600_000).take(5_400_000).collect();
            let queued = delays.iter().filter(|delay| **delay > config.latency).count();
            close(queued as f64 / 5.4e6, numbers(&all[name]["P_delay_gt_T"])[index], 1e-12);
            for (epsilon, quantiles) in all[name]["quantile_s"].as_object().unwrap() {
                let p = Probability::new(epsilon.parse().unwrap()).unwrap();
                let found = upper_quantile(&mut delays, p).unwrap().as_secs_f64();
                assert!((found - numbers(quantiles)[index]).abs() < 1e-12, "{name} {rate} {epsilon}: {found}");
            }
        }
    }
}

/// The curve of the published quantiles at multiples of `step` packets per second.
fn published(mode: &str, epsilon: &str, step: u64) -> ServiceCurve {
    let all = &vectors("adaptive_window")[mode];
    let line = |(rate, delay): (f64, f64)| Line {
        rate: Rate::from_bps(rate as u64 * BITS),
        delay: Span::from_secs_f64(delay),
    };
    let rates = numbers(&all["rates"]).into_iter().zip(numbers(&all["quantile_s"][epsilon]));
    let lines: Vec<Line> = rates.filter(|(rate, _)| (*rate as u64).is_multiple_of(step)).map(line).collect();
    ServiceCurve::new(&lines, Probability::new(epsilon.parse().unwrap()).unwrap())
}

#[test]
fn attainable_rates_follow_from_the_quantiles_as_published() {
    let all = vectors("adaptive_window");
    let times = numbers(&all["t"]);
    for mode in ["no_cwv", "cwv"] {
        for (name, case) in all[mode]["rate_fn"].as_object().unwrap() {
            let (epsilon, step) = name.strip_prefix("eps'=").unwrap().split_once(",dr=").unwrap();
            let curve = published(mode, epsilon, step.parse().unwrap());
            close(curve.epsilon().get(), case["eps_union"].as_f64().unwrap().min(1.0), 1e-12);
            for (t, expected) in times.iter().zip(numbers(&case["S_over_t"])) {
                let found = curve.attainable_rate(Span::from_secs_f64(*t)) / BITS as f64;
                assert!((found - expected).abs() < 1e-6, "{mode} {name} at {t} s: {found} {expected}");
            }
        }
    }
}

#[test]
fn the_adaptive_window_needs_three_decades_more_time_than_the_static_one() {
    // Figure 5a: the static window of 41 packets has nine tenths of its rate after 50 ms.
    let adaptive = published("no_cwv", "0.01", 100).time_to_fraction(0.9).unwrap();
    assert!(adaptive > Span::from_millis(50) * 500, "{adaptive}");
}

#[test]
fn the_greedy_rate_is_that_of_the_square_root_formula() {
    // c = 1.31 for independent marks (Ott, Kemperman and Mathis 1996); 4152.7 +- 3.6 packets per
    // second over 5e8 packets, runs of 2e7 scatter from 4122 to 4182.
    let config = AdaptiveLoopConfig { initial_window: 40.0, ..AdaptiveLoopConfig::default() };
    let rate = |marking| {
        let config = AdaptiveLoopConfig { marking, ..config };
        let mut greedy = AdaptiveLoop::new(config, std::iter::repeat(Time::ZERO), 1).unwrap();
        let first = greedy.nth(1_000_000).unwrap().sent;
        let last = greedy.nth(2_999_999 - 1).unwrap().sent;
        2_999_999.0 / last.since(first).as_secs_f64()
    };
    close(rate(Marking::Periodic(1_000)), numbers_of("greedy_rate_periodic"), 1e-9);
    close(rate(config.marking), 4_152.7, 0.03);
}

fn numbers_of(field: &str) -> f64 {
    vectors("adaptive_window")[field].as_f64().unwrap()
}

#[test]
fn the_probability_of_queueing_is_that_of_figure_10_with_and_without_window_validation() {
    let all = vectors("fig10_stack_probability");
    for row in all["rows"].as_array().unwrap() {
        let (utilisation, loss) = (row["util"].as_f64().unwrap(), row["loss"].as_str().unwrap());
        if !(0.51..0.75).contains(&utilisation) || utilisation == 0.6 {
            continue;
        }
        let marking = match loss {
            "bernoulli" => Marking::Bernoulli(Probability::new(all["p_bernoulli"].as_f64().unwrap()).unwrap()),
            _ => Marking::Periodic((1.0 / all["p_periodic"].as_f64().unwrap()).round() as u64),
        };
        let config = AdaptiveLoopConfig {
            latency: Span::from_millis(10),
            round_trip: Span::from_millis(20),
            marking,
            growth: if row["cwv"] == 1 { Growth::WhenLimited } else { Growth::Always },
            initial_window: 16.0,
            decrease: 0.5,
        };
        let rate = Rate::from_bps((utilisation * 9.4e6).round() as u64);
        let packets = AdaptiveLoop::new(config, ConstantRate::new(rate, PACKET), 77).unwrap();
        let mut delays: Vec<Span> = packets.delays().take(6_000_000).skip(500_000).collect();
        let queued = delays.iter().filter(|delay| **delay > config.latency).count();
        // The vector's rates and times are floating-point numbers: a nanosecond here and there.
        close(queued as f64 / 5.5e6, row["P_queue"].as_f64().unwrap(), 1e-5);
        for (field, p) in [("q_0.9", 0.1), ("q_0.99", 0.01), ("q_0.999", 0.001)] {
            let found = upper_quantile(&mut delays, Probability::new(p).unwrap()).unwrap().as_secs_f64();
            assert!((found - row[field].as_f64().unwrap()).abs() < 2e-7, "{row}: {found}");
        }
    }
}

#[test]
fn impossible_loops_are_refused() {
    let config = AdaptiveLoopConfig::default();
    let refused = |config| AdaptiveLoop::new(config, std::iter::empty(), 1).is_err();
    assert!(refused(AdaptiveLoopConfig { initial_window: 0.5, ..config }));
    assert!(refused(AdaptiveLoopConfig { initial_window: f64::NAN, ..config }));
    assert!(refused(AdaptiveLoopConfig { decrease: 0.0, ..config }));
}
