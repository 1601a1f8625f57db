use flowstart_units::Time;

use super::*;
use flowstart_control::{CongestionAvoidance as _, Signal, Window};
use proptest::prelude::*;

fn vivace() -> Vivace {
    Vivace::loss_only(&VivaceConfig::default(), 1448, 7)
}

fn outcome(rate: Rate, loss: f64) -> IntervalOutcome {
    IntervalOutcome { rate, sent: rate, loss, rtt: None, gradient: 0.0 }
}

/// The outcomes of the planned probes if `loss` says what is lost at a rate in Mibit/s.
fn probes(vivace: &mut Vivace, loss: impl Fn(f64) -> f64) -> Outcomes {
    let (up, down) = (vivace.rate.mul_f64(1.05), vivace.rate.mul_f64(0.95));
    [up, down, up, down].map(|rate| Some(outcome(rate, loss(mibit(rate)))))
}

fn taken_over(mibit: f64) -> Vivace {
    let mut vivace = vivace();
    vivace.begin(from_mibit(mibit));
    vivace
}

#[test]
fn the_utility_of_the_paper_is_mild_up_to_three_percent_of_loss() {
    let config = VivaceConfig::default();
    let base = 10.0_f64.powf(0.9);
    assert!((config.utility(10.0, 0.03, 0.0) - (base - 0.3)).abs() < 1e-12);
    assert!((config.utility(10.0, 0.04, 0.0) - (base - 4.54)).abs() < 1e-12);
    assert!((config.utility(10.0, 0.0, 0.5) - base).abs() < 1e-12, "latency does not count");
}

#[test]
fn with_latency_a_growing_queue_costs_900_per_growth() {
    let vivace = Vivace::new(&VivaceConfig::default(), 1448, 0);
    let base = 10.0_f64.powf(0.9);
    assert!((vivace.config.utility(10.0, 0.0, 0.02) - (base - 180.0)).abs() < 1e-9);
    assert!((vivace.config.utility(10.0, 0.0, 0.009) - base).abs() < 1e-12, "noise");
}

#[test]
fn probes_that_agree_move_the_rate_and_probes_that_do_not_are_repeated() {
    let mut vivace = taken_over(50.0);
    let outcomes = probes(&mut vivace, |_| 0.0);
    vivace.decide(&outcomes);
    assert_eq!(vivace.phase(), VivacePhase::Moving);
    assert!(mibit(vivace.rate()) > 50.0);

    let mut vivace = taken_over(50.0);
    let mut outcomes = probes(&mut vivace, |_| 0.0);
    // In the second pair the higher rate loses a tenth.
    outcomes[2].as_mut().unwrap().loss = 0.1;
    vivace.decide(&outcomes);
    assert_eq!((vivace.phase(), vivace.rate()), (VivacePhase::Probing, from_mibit(50.0)));
}

#[test]
fn the_step_is_the_gradient_of_the_utility() {
    let mut vivace = taken_over(50.0);
    let outcomes = probes(&mut vivace, |_| 0.0);
    vivace.decide(&outcomes);
    let gradient = (52.5_f64.powf(0.9) - 47.5_f64.powf(0.9)) / 5.0;
    assert!((mibit(vivace.rate()) - 50.0 - gradient.max(0.5)).abs() < 1e-3);
}

#[test]
fn it_moves_on_while_the_utility_grows_and_returns_to_the_better_rate_when_it_falls() {
    let mut vivace = taken_over(50.0);
    let outcomes = probes(&mut vivace, |_| 0.0);
    vivace.decide(&outcomes);
    let mut rates = vec![vivace.rate()];
    for _ in 0..5 {
        let one = outcome(vivace.rate(), 0.0);
        vivace.decide(&[Some(one), None, None, None]);
        rates.push(vivace.rate());
    }
    assert!(rates.is_sorted());
    let steps: Vec<f64> = rates.windows(2).map(|pair| mibit(pair[1]) - mibit(pair[0])).collect();
    assert!(steps.is_sorted(), "confidence grows: {steps:?}");
    let lossy = outcome(vivace.rate(), 0.2);
    vivace.decide(&[Some(lossy), None, None, None]);
    assert_eq!((vivace.phase(), vivace.rate()), (VivacePhase::Probing, rates[4]), "the last rate that was better");
}

#[test]
fn a_timeout_halves_the_rate_and_the_smallest_rate_holds() {
    let mut vivace = taken_over(50.0);
    vivace.reduce(Time::ZERO, Signal::Timeout, &Window::new(10));
    assert_eq!(vivace.rate(), from_mibit(25.0));
    for _ in 0..10 {
        vivace.reduce(Time::ZERO, Signal::Timeout, &Window::new(10));
    }
    assert_eq!(vivace.rate(), from_mibit(2.0));
}

#[test]
fn a_loss_is_no_reason_to_slow_down_by_itself() {
    let mut vivace = taken_over(50.0);
    vivace.reduce(Time::ZERO, Signal::Loss, &Window::new(10));
    assert_eq!(vivace.rate(), from_mibit(50.0));
}

#[test]
fn before_it_takes_over_it_neither_paces_nor_decides() {
    let mut vivace = vivace();
    assert_eq!((vivace.phase(), vivace.pacing_rate()), (VivacePhase::Waiting, None));
    vivace.on_ack(&flowstart_control::testing::ack(1), &Window::new(10));
    assert_eq!(vivace.phase(), VivacePhase::Waiting);
}

#[test]
fn constants_out_of_range_are_refused_and_moved_to_the_nearest_in_range() {
    assert_eq!(VivaceConfig::default().validate(), Ok(()));
    let given = VivaceConfig { timeout_factor: 2.0, boundary: 0.1, ..VivaceConfig::default() };
    assert_eq!(given.validate().map_err(|error| error.field), Err("timeout_factor"));
    let moved = VivaceConfig { timeout_factor: 1.0, ..given };
    assert_eq!(Vivace::loss_only(&given, 0, 0).config, moved);
    // The published utility stays that, whatever another constant is.
    assert_eq!(Vivace::new(&given, 0, 0).config, VivaceConfig { latency_coefficient: Some(900.0), ..moved });
    for (given, moved) in [(None, 900.0), (Some(3.0), 3.0), (Some(-1.0), 0.0)] {
        let given = VivaceConfig { latency_coefficient: given, give_up_rtts: 0, ..VivaceConfig::default() };
        assert!(given.validate().is_err());
        let Vivace { config, .. } = Vivace::new(&given, 0, 0);
        assert_eq!((config.latency_coefficient, config.give_up_rtts), (Some(moved), 1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// On a link that loses what exceeds its capacity, the rate goes towards the capacity from
    /// either side.
    #[test]
    fn the_rate_goes_towards_the_capacity(start in 3.0..400.0_f64, capacity in 10.0..200.0_f64) {
        let mut vivace = taken_over(start);
        let loss = |rate: f64| (1.0 - capacity / rate).max(0.0);
        for _ in 0..600 {
            let outcomes = match vivace.phase() {
                VivacePhase::Probing => probes(&mut vivace, loss),
                _ => [Some(outcome(vivace.rate(), loss(mibit(vivace.rate())))), None, None, None],
            };
            vivace.decide(&outcomes);
        }
        let share = mibit(vivace.rate()) / capacity;
        prop_assert!((0.8..=1.3).contains(&share), "{share} of the capacity {capacity} from {start}");
    }
}
