//! Windows in and after recoveries, policers, samples that count.

use super::*;

/// Round trips of 100 ms in which 34 packets are delivered and ten are lost.
fn lossy(round: u64) -> Ack {
    Ack { lost: 1, total_lost: 10 * round, ..full(100 * round, 34 * round + 1, 34 * (round - 1) + 1) }
}

/// `bbr_lt_bw_sampling`: `lt_bw` is the bandwidth and the gain is one while `lt_use_bw`;
/// `bbr_undo_cwnd` resets it.
#[test]
fn behind_a_policer_the_bandwidth_is_the_throughput_and_nothing_looks_for_more() {
    let mut bbr = in_phase(0);
    for round in 1..=8 {
        assert!(!bbr.model.is_policed(), "round {round}");
        feed(&mut bbr, &lossy(round), 74);
    }
    let throughput = 34.0 * 1448.0 * 8.0 / 0.1;
    let rate = bbr.bandwidth().unwrap().as_bps() as f64;
    assert!((rate / throughput - 1.0).abs() < 1e-4, "{rate}");
    bbr.mode = BbrMode::ProbeBandwidth { phase: 0, since: at(800) };
    assert_eq!(bbr.gain(), 1.0);
    bbr.undo(74, &Window::new(74));
    assert_eq!((bbr.gain(), bbr.model.is_policed()), (1.25, false));
}

/// `bbr_set_state` on `TCP_CA_Loss`: `bbr_lt_bw_sampling` with a loss and the start of a round.
#[test]
fn a_timeout_ends_a_stretch_between_losses_as_a_lossy_round_trip_does() {
    let mut bbr = in_phase(0);
    for round in 1..=7 {
        feed(&mut bbr, &lossy(round), 74);
    }
    bbr.on_expiry(at(710), 80);
    assert!(bbr.model.is_policed());
}

/// `bbr_set_cwnd_to_recover_or_restore`: `next_rtt_delivered = delivered` when it begins.
#[test]
fn as_many_packets_leave_as_are_delivered_until_one_that_left_in_the_recovery_is() {
    let mut bbr = in_phase(3);
    feed(&mut bbr, &full(5, 50, 49), 74);
    let mut window = Window::new(74);
    bbr.reduce(at(10), Signal::Loss, &window);
    let repairing = |in_flight, ack: Ack| Ack { in_flight, repair: Repair::Losses, ..ack };
    bbr.grow(&repairing(50, full(10, 100, 40)), 1, &mut window);
    assert_eq!(window.cwnd, 51);
    bbr.grow(&repairing(70, full(20, 101, 99)), 1, &mut window);
    assert_eq!(window.cwnd, 71);
    bbr.grow(&repairing(73, full(50, 140, 100)), 1, &mut window);
    assert_eq!(window.cwnd, 72);
}

/// `bbr_set_state`: `prev_ca_state = TCP_CA_Loss`, so that an ACK after which nothing is repaired
/// restores the window.
#[test]
fn a_timeout_that_the_next_ack_shows_to_be_needless_gives_the_window_back() {
    let mut bbr = in_phase(3);
    let mut window = Window::new(60);
    bbr.reduce(at(10), Signal::Timeout, &window);
    bbr.on_expiry(at(10), 34);
    window.cwnd = 1;
    bbr.grow(&full(60, 140, 101), 1, &mut window);
    assert_eq!(window.cwnd, 61);
}

/// `bbr_set_cwnd`: "no packet fully ACKed; just apply caps".
#[test]
fn an_ack_that_delivers_nothing_leaves_the_window_as_it_is() {
    let mut bbr = in_phase(3);
    let mut window = Window::new(50);
    bbr.grow(&Ack { acked: 0, lost: 5, rate: None, ..full(10, 1, 0) }, 0, &mut window);
    assert_eq!(window.cwnd, 50);
}

/// `bbr_save_cwnd`: in a probe of the RTT the larger window is kept.
#[test]
fn a_loss_in_a_probe_of_the_rtt_does_not_forget_the_window_before_it() {
    let mut bbr = in_phase(3);
    let mut window = Window::new(74);
    bbr.grow(&Ack { rtt: Some(Span::from_millis(50)), ..full(10_001, 10_001, 9_961) }, 1, &mut window);
    assert_eq!((window.cwnd, bbr.saved_cwnd), (4, 74));
    bbr.reduce(at(10_010), Signal::Loss, &window);
    assert_eq!(bbr.saved_cwnd, 74);
}

/// `bbr_update_bw`: `!rs->is_app_limited || bw >= bbr_max_bw(sk)`.
#[test]
fn a_sample_that_the_application_limits_counts_if_it_is_no_smaller_than_the_bandwidth() {
    let mut bbr = bbr(1);
    let high = bbr.bandwidth();
    for n in 1..=12 {
        let ack = full(50 * n, 1 + n, n);
        feed(&mut bbr, &Ack { rate: ack.rate.map(|rate| DeliveryRate { app_limited: true, ..rate }), ..ack }, 74);
    }
    let ack = full(650, 14, 13);
    feed(&mut bbr, &Ack { rate: ack.rate.map(|rate| DeliveryRate { delivered: PACKETS / 2, ..rate }), ..ack }, 74);
    assert_eq!(bbr.bandwidth(), high);
}

/// `bbr_ack_aggregation_cwnd`: at most 100 ms of the bandwidth, 82 packets here.
#[test]
fn bunches_of_acks_make_the_window_larger_by_100_ms_of_the_bandwidth_at_most() {
    let mut bbr = in_phase(3);
    feed(&mut bbr, &Ack { acked: 200, ..full(200, 201, 1) }, 1_000);
    assert_eq!(bbr.model.aggregated(&bbr.config), 82);
}

/// `bbr_cwnd_event`: `ack_epoch_acked = 0`.
#[test]
fn an_idle_time_ends_an_epoch_of_acks() {
    let mut bbr = in_phase(3);
    feed(&mut bbr, &Ack { acked: 10, ..full(200, 11, 1) }, 74);
    bbr.on_idle(Span::from_micros(1), &mut Window::new(74));
    feed(&mut bbr, &full(201, 12, 11), 74);
    assert_eq!(bbr.model.aggregated(&bbr.config), 10);
}

#[test]
fn windows_in_packets_of_another_size_are_as_many_bytes() {
    let mut bbr = in_phase(3);
    (bbr.first_window, bbr.saved_cwnd) = (10, 74);
    bbr.on_mss(NewMss::new(MSS, MSS / 2));
    assert_eq!((bbr.first_window, bbr.saved_cwnd), (20, 148));
}
