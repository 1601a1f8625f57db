use proptest::prelude::*;

use super::*;
use crate::AvoidanceConstants as _;
use flowstart_control::DeliveryRate;
use flowstart_control::testing::ack;

mod cycles;
mod start;
mod windows;

const MSS: u32 = 1448;
const RTT: Span = Span::from_millis(40);
/// Packets per 1000 s at 10 Mbit/s with 1514 bytes on the wire.
const PACKETS: u32 = 825_628;

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

/// An ACK at this time of a path that delivers 10 Mbit/s of frames of 1514 bytes.
fn full(ms: u64, delivered: u64, prior_delivered: u64) -> Ack {
    let rate =
        DeliveryRate { delivered: PACKETS, interval: Span::from_secs(1_000), prior_delivered, app_limited: false };
    Ack {
        now: at(ms),
        rtt: Some(RTT),
        srtt: RTT,
        min_rtt: RTT,
        delivered,
        una: delivered * u64::from(MSS),
        next: (delivered + 34) * u64::from(MSS),
        in_flight: 34,
        rate: Some(rate),
        ..ack(1)
    }
}

/// BBR that knows that path, in charge since `at(0)`.
fn bbr(seed: u64) -> Bbr {
    let mut bbr = Bbr::new(&BbrConfig::default(), MSS, seed);
    let window = Window::new(34);
    bbr.on_ack(&full(0, 1, 0), &window);
    assert_eq!(bbr.mode(), BbrMode::Waiting);
    bbr.on_takeover(at(0), &window, None);
    // The window does not grow with that ACK.
    bbr.learned = None;
    bbr
}

/// Takes an ACK in, with a window of so many packets.
fn feed(bbr: &mut Bbr, ack: &Ack, cwnd: u32) {
    let mut window = Window::new(cwnd);
    bbr.on_ack(ack, &window);
    bbr.grow(ack, ack.acked, &mut window);
}

fn in_phase(phase: u32) -> Bbr {
    let mut bbr = bbr(0);
    bbr.mode = BbrMode::ProbeBandwidth { phase, since: at(0) };
    bbr.set_pacing_rate(bbr.gain());
    bbr
}

fn phase(bbr: &Bbr) -> u32 {
    match bbr.mode() {
        BbrMode::ProbeBandwidth { phase, .. } => phase,
        other => panic!("{other:?}"),
    }
}

#[test]
fn constants_out_of_range_are_moved_to_the_nearest_in_range_and_the_others_stay() {
    let default = BbrConfig { plateau_rounds: 5, ..BbrConfig::default() };
    let given = BbrConfig { cycle_phases: 2, policer_stretch: 0, probe_gain: f64::INFINITY, ..default };
    assert_eq!(given.validate().map_err(|error| error.field), Err("probe_gain"));
    let moved = BbrConfig { cycle_phases: 3, policer_stretch: 1, probe_gain: 4.0, ..default };
    assert_eq!(Bbr::new(&given, MSS, 0).config, moved);
    let allowed = BbrConfig { startup_drain_gain: 0.001, margin: 0.999, policer_ratio: f64::INFINITY, ..default };
    assert_eq!(allowed.validate(), Ok(()));
    assert_eq!(Bbr::new(&allowed, MSS, 0).config, allowed);
}

#[test]
fn windows_and_rates_of_a_path_of_10_mbit_s_and_40_ms_are_those_of_linux() {
    let bbr = in_phase(3);
    assert_eq!([1.0, 1.25, 2.0].map(|gain| bbr.model.bdp(bbr.bandwidth(), gain).unwrap()), [34, 42, 67]);
    assert_eq!(bbr.with_bursts(67), 74);
    assert_eq!(in_phase(0).with_bursts(67), 76);
    for (phase, bytes_per_second) in [(0, 1_479_363.0), (1, 887_618.0), (2, 1_183_491.0)] {
        let rate = in_phase(phase).pacing_rate().unwrap().as_bps() as f64 / 8.0;
        assert!((rate / bytes_per_second - 1.0).abs() < 1e-4, "{rate}");
    }
}

#[test]
fn the_window_grows_to_twice_the_bdp_and_no_further() {
    let mut bbr = in_phase(3);
    let mut window = Window::new(70);
    for n in 1..20 {
        bbr.grow(&full(2 * n, n + 1, n), 1, &mut window);
    }
    assert_eq!(window.cwnd, 74);
}

#[test]
fn gains_average_one_over_a_cycle_of_eight_round_trips() {
    let mut bbr = in_phase(0);
    let mut gains = vec![bbr.gain()];
    // Probing ends when its queue is there, draining when it is gone, the others after a round
    // trip.
    for ms in 1..2_000 {
        let before = phase(&bbr);
        feed(&mut bbr, &Ack { in_flight: 60, ..full(ms, 1 + ms, ms) }, 74);
        if phase(&bbr) != before {
            assert_eq!(phase(&bbr), (before + 1) % 8);
            gains.push(bbr.gain());
        }
        if gains.len() == 8 {
            assert_eq!(ms, 7 * 41);
            break;
        }
    }
    assert_eq!(gains, [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    assert!((gains.iter().sum::<f64>() - 8.0).abs() < 1e-12);
}

#[test]
fn probing_waits_for_its_queue_or_a_loss_and_draining_ends_with_it() {
    let mut probing = in_phase(0);
    feed(&mut probing, &full(100, 2, 1), 74);
    assert_eq!(phase(&probing), 0, "34 packets are not 1.25 BDP");
    feed(&mut probing, &Ack { lost: 1, ..full(101, 3, 2) }, 74);
    assert_eq!(phase(&probing), 1);
    feed(&mut probing, &Ack { in_flight: 60, ..full(102, 4, 3) }, 74);
    assert_eq!(phase(&probing), 1);
    feed(&mut probing, &Ack { in_flight: 30, ..full(103, 5, 4) }, 74);
    assert_eq!(phase(&probing), 2, "before a round trip is over");
}

#[test]
fn a_bandwidth_is_forgotten_when_it_is_older_than_ten_rounds() {
    let mut bbr = bbr(1);
    let high = bbr.bandwidth().unwrap();
    let half = |n: u64| {
        let ack = full(50 * n, 1 + n, n);
        Ack { rate: ack.rate.map(|rate| DeliveryRate { delivered: PACKETS / 2, ..rate }), ..ack }
    };
    for n in 1..=10 {
        feed(&mut bbr, &half(n), 74);
        assert_eq!(bbr.bandwidth(), Some(high), "round {n}");
    }
    feed(&mut bbr, &half(11), 74);
    assert!(bbr.bandwidth().unwrap() < high.mul_ratio(51, 100));
}

#[test]
fn an_application_that_sends_less_says_nothing_about_the_path() {
    let mut bbr = bbr(1);
    let high = bbr.bandwidth().unwrap();
    let mut sample = |delivered: u32| {
        let ack = full(1, 1, 0);
        let rate = ack.rate.map(|rate| DeliveryRate { delivered, app_limited: true, prior_delivered: 0, ..rate });
        feed(&mut bbr, &Ack { rate, ..ack }, 74);
        bbr.bandwidth().unwrap()
    };
    assert_eq!(sample(PACKETS / 4), high);
    assert!(sample(PACKETS * 2) > high, "unless more got through than ever");
}

#[test]
fn after_ten_seconds_without_the_smallest_rtt_the_window_is_four_for_200_ms_and_a_round() {
    let mut bbr = in_phase(3);
    let mut window = Window::new(74);
    let mut step = |ack: &Ack| {
        bbr.on_ack(ack, &window);
        bbr.grow(ack, 1, &mut window);
        (matches!(bbr.mode(), BbrMode::ProbeRtt { .. }), window.cwnd)
    };
    let queued = |ms: u64, in_flight: u32| Ack { rtt: Some(Span::from_millis(50)), in_flight, ..full(ms, ms, ms - 40) };
    assert_eq!(step(&queued(9_999, 60)), (false, 74));
    assert_eq!(step(&queued(10_001, 60)), (true, 4));
    // The 200 ms begin when no more than four are in flight.
    assert_eq!(step(&queued(10_040, 30)), (true, 4));
    assert_eq!(step(&queued(10_100, 4)), (true, 4));
    assert_eq!(step(&queued(10_300, 4)), (true, 4));
    assert_eq!(step(&queued(10_301, 4)), (false, 75), "as it was before, and one acknowledged");
    // Another ten seconds from its end on; the same RTT again is not a smaller one.
    assert_eq!([20_000, 20_301, 20_302].map(|ms| step(&queued(ms, 60)).0), [false, false, true]);
}

/// A flow with a window of 74 packets lost ten: in the second round of its recovery.
fn recovering() -> (Bbr, Window) {
    let mut bbr = in_phase(3);
    let mut window = Window::new(74);
    let threshold = bbr.reduce(at(10), Signal::Loss, &window);
    assert_eq!(threshold, 74, "nothing to walk down to");
    // In the first round as many leave as are delivered.
    let lossy = Ack { lost: 10, in_flight: 50, repair: Repair::Losses, ..full(10, 100, 60) };
    bbr.grow(&lossy, 2, &mut window);
    assert_eq!(window.cwnd, 51, "in flight and what was delivered");
    bbr.grow(&Ack { repair: Repair::Losses, ..full(60, 140, 101) }, 1, &mut window);
    assert_eq!(window.cwnd, 52, "it grows again");
    (bbr, window)
}

#[test]
fn losses_take_their_packets_from_the_window_and_it_is_restored_when_they_are_repaired() {
    let (mut bbr, mut window) = recovering();
    bbr.grow(&full(110, 180, 141), 1, &mut window);
    assert_eq!(window.cwnd, 74, "what it was");
}

/// `bbr_set_cwnd_to_recover_or_restore`: `prev_ca_state` is `TCP_CA_Recovery` before and after that
/// ACK.
#[test]
fn a_recovery_that_begins_with_the_ack_that_ended_another_one_is_not_a_new_one() {
    let (mut bbr, mut window) = recovering();
    // The transport ended the first and began the second: neither restored nor cut to what is in
    // flight, less what was lost.
    bbr.reduce(at(110), Signal::Loss, &window);
    bbr.grow(&Ack { lost: 5, in_flight: 20, repair: Repair::Losses, ..full(110, 180, 141) }, 1, &mut window);
    assert_eq!(window.cwnd, 52 - 5 + 1);
    bbr.grow(&full(160, 220, 181), 1, &mut window);
    assert_eq!(window.cwnd, 74, "the target");
}

/// `bbr_set_state`: the window grows from what the transport left, and comes back with the last
/// repair. After `TCP_CA_Loss` a recovery is a new one.
#[test]
fn after_a_timeout_there_is_no_conservation_until_losses_are_found_again() {
    let mut bbr = in_phase(3);
    let mut window = Window::new(74);
    bbr.reduce(at(10), Signal::Timeout, &window);
    bbr.on_expiry(at(10), 34);
    window.cwnd = 1;
    bbr.grow(&Ack { in_flight: 0, repair: Repair::Timeout, ..full(60, 140, 101) }, 1, &mut window);
    assert_eq!(window.cwnd, 4, "the smallest");
    bbr.grow(&Ack { acked: 3, in_flight: 9, repair: Repair::Timeout, ..full(70, 140, 102) }, 3, &mut window);
    assert_eq!(window.cwnd, 7);
    bbr.grow(&Ack { acked: 2, in_flight: 9, repair: Repair::Losses, ..full(80, 145, 103) }, 2, &mut window);
    assert_eq!(window.cwnd, 11, "as many as are delivered");
    bbr.grow(&full(160, 220, 181), 1, &mut window);
    assert_eq!(window.cwnd, 75, "what it was, and the packet acknowledged");
}

#[test]
fn marks_change_nothing() {
    let mut bbr = in_phase(3);
    let before = (bbr.mode(), bbr.pacing_rate());
    let mut window = Window::new(74);
    assert_eq!(bbr.reduce(at(1), Signal::Marks, &window), 74);
    bbr.grow(&Ack { marked: 1, ..full(40, 2, 0) }, 1, &mut window);
    assert_eq!((bbr.mode(), bbr.pacing_rate(), window.cwnd), (before.0, before.1, 74));
}

#[test]
fn after_idle_time_packets_leave_at_the_bandwidth_whatever_the_phase() {
    let mut bbr = in_phase(0);
    let cruising = in_phase(2).pacing_rate();
    bbr.on_idle(Span::from_secs(1), &mut Window::new(74));
    assert_eq!(bbr.pacing_rate(), cruising);
    feed(&mut bbr, &full(1, 2, 1), 74);
    assert!(bbr.pacing_rate() > cruising, "until something is delivered");
}

#[test]
fn acks_in_bunches_make_the_window_larger_by_their_excess() {
    let mut bbr = in_phase(3);
    for n in 1..50_u64 {
        // Every 20 ms the 16 or 17 packets of that time at once.
        feed(&mut bbr, &Ack { acked: 16, ..full(20 * n, 16 * n, 16 * (n - 1)) }, 74);
    }
    let extra = bbr.model.aggregated(&bbr.config);
    assert!((16..=34).contains(&extra), "{extra}");
}

proptest! {
    #[test]
    fn a_cycle_never_begins_with_draining(seed in any::<u64>()) {
        let bbr = bbr(seed);
        let first = phase(&bbr);
        prop_assert!(first != 1 && first < 8);
    }

    #[test]
    fn the_window_stays_between_one_packet_and_what_was_seen_whatever_comes(
        seed in any::<u64>(),
        steps in proptest::collection::vec((0_u64..500, 0_u32..50, 0_u32..50, 0_u32..200, 0_u8..4), 1..200),
    ) {
        let mut bbr = bbr(seed);
        let mut window = Window::new(10);
        let (mut now, mut delivered) = (0, 1);
        for (ms, acked, lost, in_flight, kind) in steps {
            now += ms;
            delivered += u64::from(acked);
            let ack = Ack { acked, lost, in_flight, ..full(now, delivered, delivered.saturating_sub(34)) };
            bbr.on_ack(&ack, &window);
            match kind {
                0 => { bbr.reduce(at(now), Signal::Loss, &window); }
                1 => {
                    bbr.reduce(at(now), Signal::Timeout, &window);
                    bbr.on_expiry(at(now), u64::from(lost));
                }
                2 => bbr.on_idle(Span::from_millis(ms), &mut window),
                _ => {}
            }
            let repair = [Repair::Losses, Repair::Timeout, Repair::Nothing, Repair::Nothing][usize::from(kind)];
            bbr.grow(&Ack { repair, ..ack }, acked, &mut window);
            // At most 250 in flight and delivered in recovery; the target with 100 ms of bunches is
            // 158.
            prop_assert!((1..=250).contains(&window.cwnd), "{}", window.cwnd);
        }
    }
}
