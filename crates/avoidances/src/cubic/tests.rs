use super::*;
use flowstart_control::testing::ack;
use proptest::prelude::*;

fn cubic() -> Cubic {
    Cubic::new(&CubicConfig::default())
}

fn plain() -> CubicConfig {
    CubicConfig { fast_convergence: false, reno_friendly: false, ..CubicConfig::default() }
}

fn at_ms(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

/// One ACK of one packet at a time, with an RTT.
fn grow_at(cubic: &mut Cubic, now: Time, rtt: Span, window: &mut Window) {
    let ack = Ack { now, rtt: Some(rtt), ..ack(1) };
    cubic.on_ack(&ack, window);
    cubic.grow(&ack, 1, window);
}

#[test]
fn the_constants_become_linux_integers() {
    let cubic = cubic();
    assert_eq!((cubic.beta, cubic.c, cubic.friendly), (717, 410, 15));
    let exact = Cubic::new(&CubicConfig { beta: 717.0 / 1024.0, ..CubicConfig::default() });
    assert_eq!(exact.beta, 717);
}

#[test]
fn thresholds_after_a_reduction() {
    for (cwnd, ssthresh) in [(10, 7), (100, 70), (1000, 700), (10_000, 7001), (1, 2)] {
        assert_eq!(cubic().reduce(Time::ZERO, Signal::Loss, &Window::new(cwnd)), ssthresh);
    }
}

#[test]
fn the_time_to_the_plateau_is_the_cube_root() {
    // Linux: 2003, 4316, 9294, 20031, as its cube root is a table of 64 entries refined by hand
    // with one Newton step. The exact integer root is the same for the small windows and 0.06 and
    // 0.02 % larger for the others. Real numbers with C = 0.4 and β = 0.7: 1.9574, 4.2172, 9.0856,
    // 19.5722 s; those with Linux's C and β are the integers here.
    for (w_max, k, linux, exact) in [
        (10, 2003, 2003, 1.9574),
        (100, 4316, 4316, 4.2172),
        (1000, 9300, 9294, 9.0856),
        (10_000, 20_035, 20_031, 19.5722),
    ] {
        let mut cubic = cubic();
        let cwnd = cubic.reduce(Time::ZERO, Signal::Loss, &Window::new(w_max));
        let found = cubic.begin_epoch(Time::ZERO, cwnd, 0).k;
        assert_eq!(found, k);
        assert!((found as f64 / linux as f64 - 1.0).abs() < 0.002, "within the error Linux allows itself");
        assert!((found as f64 / 1024.0 / exact - 1.0).abs() < 0.001);
    }
}

#[test]
fn targets_on_the_curve_to_100_packets() {
    let mut cubic = cubic();
    let cwnd = cubic.reduce(Time::ZERO, Signal::Loss, &Window::new(100));
    let epoch = cubic.begin_epoch(Time::ZERO, cwnd, 0);
    let rtt = Span::from_millis(100);
    for (seconds, target, exact) in
        [(0, 73, 72.08), (1, 88, 87.88), (2, 97, 96.20), (3, 100, 99.44), (6, 102, 102.67), (8, 123, 123.42)]
    {
        assert_eq!(cubic.target(&epoch, Cubic::units(Span::from_secs(seconds) + rtt)), target, "after {seconds} s");
        assert!((f64::from(target) - exact).abs() < 1.0, "cut to whole packets towards the plateau");
    }
}

#[test]
fn fast_convergence_gives_up_some_of_the_maximum() {
    let mut cubic = cubic();
    cubic.reduce(Time::ZERO, Signal::Loss, &Window::new(100));
    assert_eq!(cubic.reduce(Time::ZERO, Signal::Loss, &Window::new(80)), 56);
    assert_eq!(cubic.w_max(), 68);
    let mut cubic = Cubic::new(&plain());
    cubic.reduce(Time::ZERO, Signal::Loss, &Window::new(100));
    cubic.reduce(Time::ZERO, Signal::Loss, &Window::new(80));
    assert_eq!(cubic.w_max(), 80);
}

#[test]
fn a_window_that_fell_to_its_old_maximum_alone_does_not_give_up_any_of_it() {
    // RFC 9438 section 4.7: only if cwnd < W_max.
    let mut cubic = cubic();
    for _ in 0..2 {
        cubic.reduce(Time::ZERO, Signal::Loss, &Window::new(100));
        assert_eq!(cubic.w_max(), 100);
    }
}

#[test]
fn on_the_plateau_a_packet_takes_a_hundred_windows_of_acks() {
    // bictcp_update: cnt = 100 * cwnd where the curve is not above the window.
    let mut cubic = Cubic::new(&plain()).with_w_max(700);
    cubic.update(at_ms(0), 700, 1);
    assert_eq!(cubic.packets_per_increase, 70_000);
}

#[test]
fn a_timeout_forgets_the_maximum_and_the_smallest_rtt() {
    let mut cubic = cubic();
    let mut window = Window::new(100);
    grow_at(&mut cubic, at_ms(10), Span::from_millis(10), &mut window);
    assert_eq!(cubic.reduce(at_ms(20), Signal::Timeout, &window), 70);
    cubic.on_expiry(at_ms(20), 100);
    assert_eq!((cubic.w_max(), cubic.delay_min), (0, Span::MAX));
    assert!(cubic.epoch.is_none());
}

#[test]
fn a_timer_that_expires_in_a_recovery_forgets_as_much() {
    // Linux cubictcp_state: whenever TCP_CA_Loss is entered.
    let mut cubic = cubic();
    let mut window = Window::new(100);
    grow_at(&mut cubic, at_ms(10), Span::from_millis(10), &mut window);
    cubic.reduce(at_ms(20), Signal::Loss, &window);
    assert!(cubic.w_max() >= 100);
    cubic.on_expiry(at_ms(400), 100);
    assert_eq!((cubic.w_max(), cubic.delay_min), (0, Span::MAX));
}

#[test]
fn with_packets_of_another_size_the_window_goes_on_to_the_maximum_that_it_had_in_bytes() {
    for mss in [724, 2896] {
        let mut cubic = Cubic::new(&plain()).with_w_max(100);
        let mut window = Window { cwnd: 70, ssthresh: 70 };
        grow_at(&mut cubic, at_ms(0), Span::from_millis(50), &mut window);
        let change = NewMss::new(1448, mss);
        cubic.on_mss(change);
        let (least, most) = (change.packets(70), change.packets(100));
        let mut window = Window { cwnd: least, ssthresh: least };
        let mut reached = None;
        for round in 0..400 {
            let now = at_ms(50 * (round + 1));
            for _ in 0..window.cwnd {
                grow_at(&mut cubic, now, Span::from_millis(50), &mut window);
            }
            reached = reached.or((window.cwnd >= most - (most - least) / 8).then_some(round));
        }
        // K = (distance / 0.4)^(1/3) s, and an eighth of the distance is left at half of that.
        let half = (f64::from(most - least) / 0.4).cbrt() * 20.0 / 2.0;
        let reached = f64::from(reached.expect("never") as u32);
        assert!((reached - half).abs() < 0.2 * half, "{mss}: {reached} round trips, {half:.0} by the curve");
    }
}

#[test]
fn undo_restores_the_window_and_nothing_else() {
    let mut cubic = cubic();
    cubic.reduce(Time::ZERO, Signal::Loss, &Window::new(100));
    assert_eq!(cubic.undo(100, &Window::new(70)), 100);
    assert_eq!(cubic.w_max(), 100);
}

#[test]
fn before_the_first_reduction_the_window_grows_between_5_and_50_percent_per_round() {
    let mut cubic = cubic();
    let mut window = Window { cwnd: 1000, ssthresh: 1000 };
    let rtt = Span::from_millis(20);
    let mut now = at_ms(20);
    for round in 0..40 {
        let before = window.cwnd;
        for _ in 0..before {
            now += rtt / u64::from(before);
            grow_at(&mut cubic, now, rtt, &mut window);
        }
        let growth = f64::from(window.cwnd - before) / f64::from(before);
        // The ACKs of a round count towards the window at its start, so growth within the round
        // adds a little.
        assert!((0.045..=0.5).contains(&growth), "round {round}: {growth}");
    }
}

#[test]
fn with_an_unchanged_window_the_curve_is_evaluated_32_times_a_second() {
    let mut cubic = Cubic::new(&CubicConfig { reno_friendly: false, ..CubicConfig::default() }).with_w_max(1000);
    let rtt = Span::from_millis(10);
    cubic.update(at_ms(0), 700, 1);
    let first = cubic.packets_per_increase;
    cubic.update(at_ms(31), 700, 1);
    assert_eq!((cubic.packets_per_increase, cubic.updated), (first, Some((at_ms(0), 700))));
    cubic.update(at_ms(32), 700, 1);
    assert_eq!(cubic.updated, Some((at_ms(32), 700)));
    cubic.update(at_ms(33), 701, 1);
    assert_eq!(cubic.updated, Some((at_ms(33), 701)), "another window, another look; RTT {rtt:?}");
}

#[test]
fn idle_time_does_not_count_on_the_curve() {
    let mut idle = cubic().with_w_max(1000);
    let mut busy = idle;
    idle.update(at_ms(0), 700, 1);
    busy.update(at_ms(0), 700, 1);
    idle.on_idle(Span::from_secs(5), &mut Window::new(10));
    idle.update(at_ms(5100), 700, 1);
    busy.update(at_ms(100), 700, 1);
    assert_eq!(idle.packets_per_increase, busy.packets_per_increase);
}

#[test]
fn rtts_in_the_first_second_of_an_epoch_do_not_count() {
    let mut cubic = cubic();
    let mut window = Window { cwnd: 100, ssthresh: 50 };
    grow_at(&mut cubic, at_ms(0), Span::from_millis(50), &mut window);
    grow_at(&mut cubic, at_ms(999), Span::from_millis(20), &mut window);
    assert_eq!(cubic.delay_min, Span::from_millis(50));
    grow_at(&mut cubic, at_ms(1000), Span::from_millis(30), &mut window);
    assert_eq!(cubic.delay_min, Span::from_millis(30));
}

#[test]
fn a_clock_with_ticks_rounds_down() {
    let ticking = Cubic::new(&CubicConfig { hz: Some(250), ..CubicConfig::default() });
    assert_eq!(ticking.clock(Time::ZERO + Span::from_micros(7_999)), at_ms(4));
    let late = Time::ZERO + Span::from_secs(3_000);
    assert_eq!(ticking.clock(late + Span::from_micros(3_999)), late);
    assert_eq!(cubic().clock(at_ms(7)), at_ms(7));
}

/// Mean window over the last of many cycles with one loss every `1 / p` packets.
fn periodic_loss(config: &CubicConfig, rtt: Span, packets_per_loss: u64, w_max: u32, cycles: u32) -> f64 {
    let mut cubic = Cubic::new(config).with_w_max(w_max);
    let mut window = Window { cwnd: w_max * 7 / 10, ssthresh: 2 };
    let (mut now, mut mean) = (at_ms(1000), 0.0);
    let start = now;
    let (mut since_loss, mut windows, mut rounds) = (0, 0_u64, 0_u64);
    let mut cycle = 0;
    while cycle < cycles {
        let sent = window.cwnd;
        for _ in 0..sent {
            now += rtt / u64::from(sent);
            grow_at(&mut cubic, now, rtt, &mut window);
            since_loss += 1;
            if since_loss == packets_per_loss {
                since_loss = 0;
                cycle += 1;
                window.cwnd = cubic.reduce(now, Signal::Loss, &window);
            }
        }
        windows += u64::from(sent);
        rounds += 1;
        mean = windows as f64 / rounds as f64;
    }
    assert!(now > start);
    mean
}

#[test]
fn periodic_loss_on_the_steady_cycle_gives_the_response_function() {
    // W = 1.054 (RTT/p)^(3/4) = 187.4 at 100 ms and one loss in 10 000, begun at the fixed point as
    // it is only neutrally stable. 2 %.
    let mean = periodic_loss(&plain(), Span::from_millis(100), 10_000, 203, 20);
    assert!((mean / 187.4 - 1.0).abs() < 0.02, "{mean}");
}

#[test]
fn at_short_rtts_the_window_is_that_of_reno() {
    // 0.98 sqrt(1.5/p) for periodic loss at 10 ms and one loss in 1000. 10 %.
    let mean = periodic_loss(&CubicConfig::default(), Span::from_millis(10), 1000, 46, 100);
    let reno = (1.5_f64 * 1000.0).sqrt();
    assert!((mean / reno / 0.98 - 1.0).abs() < 0.1, "{}", mean / reno);
}

#[test]
fn constants_out_of_range_are_refused_and_harmless() {
    for config in [
        CubicConfig { beta: f64::NAN, ..CubicConfig::default() },
        CubicConfig { beta: 1.0, ..CubicConfig::default() },
        CubicConfig { c: -1.0, ..CubicConfig::default() },
        CubicConfig { c: f64::INFINITY, ..CubicConfig::default() },
        CubicConfig { hz: Some(0), ..CubicConfig::default() },
    ] {
        assert!(config.validate().is_err(), "{config:?}");
        let mut cubic = Cubic::new(&config).with_w_max(100);
        grow_at(&mut cubic, at_ms(5), Span::ZERO, &mut Window::new(70));
    }
    assert_eq!(CubicConfig::default().validate(), Ok(()));
}

proptest! {
    #[test]
    fn the_cube_root_is_exact(scale in 1u64..1 << 40, factor: u32) {
        let root = u128::from(cube_root(scale, factor));
        let wide = u128::from(scale) * u128::from(factor);
        prop_assert!(root * root * root <= wide && (root + 1).pow(3) > wide);
    }

    #[test]
    fn the_curve_never_falls(w_max in 1u32..1_000_000, cwnd in 1u32..1_000_000, t in prop::collection::vec(0u64..1 << 30, 2)) {
        let cubic = cubic().with_w_max(w_max);
        let epoch = cubic.begin_epoch(Time::ZERO, cwnd, 0);
        let (early, late) = (t[0].min(t[1]), t[0].max(t[1]));
        prop_assert!(cubic.target(&epoch, early) <= cubic.target(&epoch, late));
    }
}
