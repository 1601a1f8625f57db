//! The static window: closed form, estimate and packets agree.

mod common;

use common::{close, numbers, vectors};
use flowstart_service_curve::{ConstantRate, Line, Probability, ServiceCurve, StaticWindow, WindowedLink};
use flowstart_units::{Bytes, Rate, Span};

fn window(bits: u64) -> StaticWindow {
    StaticWindow {
        capacity: Rate::from_mbps(10),
        latency: Span::from_millis(50),
        round_trip: Span::from_millis(100),
        window: Bytes::new(bits / 8),
    }
}

#[test]
fn the_closed_form_and_the_estimate_are_those_of_figure_4() {
    let all = vectors("static_window");
    let times = numbers(&all["t"]);
    for case in all["cases"].as_array().unwrap() {
        let control = window(case["w_bit"].as_f64().unwrap() as u64);
        close(control.long_term_rate(), case["longterm_bps"].as_f64().unwrap(), 1e-12);
        let rates = numbers(&case["rates"]);
        let line = |bps: &f64| {
            let rate = Rate::from_bps(*bps as u64);
            Line { rate, delay: control.constant_rate_delay(rate).unwrap() }
        };
        let lines: Vec<Line> = rates.iter().map(line).collect();
        for (line, expected) in lines.iter().zip(numbers(&case["d_r"])) {
            close(line.delay.as_secs_f64(), expected, 1e-12);
        }
        let curve = ServiceCurve::new(&lines, Probability::ZERO);
        let next = Rate::from_bps(curve.long_term_rate().as_bps() + 1);
        assert_eq!(control.constant_rate_delay(next), None);
        let (exact, estimate) = (numbers(&case["S"]), numbers(&case["S_est"]));
        for ((t, exact), estimate) in times.iter().zip(exact).zip(estimate) {
            let t = Span::from_secs_f64(*t);
            assert!((control.service(t) - exact).abs() < 1e-6, "S({t}) = {} not {exact}", control.service(t));
            assert!((curve.service(t) - estimate).abs() < 1e-6, "S({t}) = {} not {estimate}", curve.service(t));
            assert!((control.convex_service(t) - estimate).abs() < 1e-6);
        }
    }
}

#[test]
fn a_window_without_capacity_limit_is_a_staircase() {
    let all = &vectors("static_window")["fig5a_static"];
    let ms = Span::from_millis;
    // A packet is one byte here.
    let control =
        StaticWindow { capacity: Rate::UNLIMITED, latency: ms(5), round_trip: ms(10), window: Bytes::new(41) };
    assert_eq!(control.long_term_rate() / 8.0, all["longterm"].as_f64().unwrap());
    for (t, expected) in numbers(&all["t"]).into_iter().zip(numbers(&all["S"])) {
        let t = Span::from_secs_f64(t);
        let found = control.service(t) / 8.0;
        // S is continuous from the left: a step holds on (T + n R, T + (n+1) R]. The
        // vector was made with floating-point times, of which 35 ms lies just behind its step.
        if t == ms(35) {
            assert_eq!((found, expected), (123.0, 164.0));
        } else {
            assert_eq!(found, expected, "{t}");
        }
    }
}

#[test]
fn packets_of_1500_bytes_wait_for_their_transmission_and_overload_a_window_cut_to_whole_packets() {
    let all = vectors("static_window");
    for case in all["cases"].as_array().unwrap() {
        let control = window(case["w_bit"].as_f64().unwrap() as u64);
        for (bps, expected) in case["packet_level_max_delay"].as_object().unwrap() {
            let packet = Bytes::new(1_500);
            let arrivals = ConstantRate::new(Rate::from_bps(bps.parse().unwrap()), packet);
            let largest = WindowedLink::new(control, packet, arrivals).unwrap().take(4_000).max().unwrap();
            // Arrivals are rounded down to the nanosecond.
            assert!((largest.as_secs_f64() - expected.as_f64().unwrap()).abs() < 3e-9, "{bps}: {largest} {expected}");
        }
    }
}

#[test]
fn a_window_of_less_than_a_packet_is_refused() {
    let none = WindowedLink::new(window(8_000), Bytes::new(1_500), std::iter::empty());
    assert!(none.is_err());
    assert!(WindowedLink::new(window(8_000), Bytes::ZERO, std::iter::empty()).is_err());
}

#[test]
fn no_round_trip_leaves_the_link_alone() {
    let control = StaticWindow { round_trip: Span::ZERO, latency: Span::ZERO, ..window(8_000) };
    assert_eq!(control.service(Span::from_secs(1)), 1e7);
    assert_eq!(control.long_term_rate(), 1e7);
    let nothing = StaticWindow { capacity: Rate::UNLIMITED, ..control };
    assert_eq!((nothing.service(Span::ZERO), nothing.convex_service(Span::ZERO)), (0.0, 0.0));
}
