//! The receive window against Linux's arithmetic.

use flowstart_network::Ecn;
use flowstart_network::packet::Segment;
use flowstart_units::{Bytes, Span, Time};
use proptest::prelude::*;

use crate::testing::{self, MSS};
use crate::{OutgoingAck, ReceiveWindow, Receiver, ReceiverConfig, WindowRules};

fn segment(now: Time, index: u64, acknowledged: u64) -> Segment {
    let unacknowledged = (index * MSS).saturating_sub(acknowledged) as u32;
    Segment { unacknowledged, ..testing::segment(index, now) }
}

fn micros(us: u64) -> Time {
    Time::ZERO + Span::from_micros(us)
}

/// The segments of a slow start at 10 Mbit/s and 20 ms: which of them are acknowledged, and the
/// window told.
fn slow_start(window: ReceiveWindow, segments: u64) -> (Receiver, Vec<(u64, u64)>) {
    let config = ReceiverConfig { window: Some(window), ..ReceiverConfig::default() };
    let mut receiver = Receiver::new(&config);
    let syn = Segment { syn: true, payload: 0, ..segment(Time::ZERO, 0, 0) };
    receiver.on_segment(Time::ZERO, &syn, Ecn::NotEct);
    assert_eq!(receiver.poll_ack().map(|packet| packet.ack.window), Some(65_160));
    let mut acks: Vec<(Time, OutgoingAck)> = Vec::new();
    for index in 0..segments {
        let sent = if index < 10 { micros(10_000 + 1200 * index) } else { micros(31_200 + 1200 * (index - 10)) };
        let now = sent + Span::from_millis(11) + Span::from_micros(200);
        // Of what was told until the window let it leave.
        let una = if index < 10 { 0 } else { (index - 10) / 2 + 1 };
        let told = acks.iter().map(|(_, out)| out.ack.ack).take_while(|told| *told <= una * MSS).last().unwrap_or(0);
        receiver.on_segment(now, &segment(sent, index, told), Ecn::NotEct);
        acks.extend(std::iter::from_fn(|| receiver.poll_ack()).map(|out| (now, out)));
    }
    let told = acks.iter().map(|(_, out)| (out.ack.ack / MSS, out.ack.ack + u64::from(out.ack.window))).collect();
    (receiver, told)
}

/// Linux 6.18: 22 of the first segments are acknowledged alone, 16 by right and six because the
/// window grows with them, by 2 * 1448 each, from 65 160 to 160/256 of the buffer less one segment
/// of 2304 B. Windows are told in units of 1024 B. (A capture of the kernel at 10 Mbit/s shows the
/// same 22.)
#[test]
fn the_first_six_segments_widen_the_window_and_22_are_acknowledged_alone() {
    let (receiver, told) = slow_start(ReceiveWindow::default(), 40);
    let acked: Vec<u64> = told.iter().map(|(segment, _)| *segment).collect();
    let alone: Vec<u64> = (1..=22).chain([24, 26, 28, 30]).collect();
    assert_eq!(acked[..26], alone);
    let thresholds = [68_056_u64, 70_952, 73_848, 76_744, 79_640, 80_480, 80_480, 80_480];
    let edges: Vec<u64> = (1..).zip(thresholds).map(|(n, window)| n * MSS + window.next_multiple_of(1024)).collect();
    assert_eq!(told[..8].iter().map(|(_, edge)| *edge).collect::<Vec<_>>(), edges);
    // What was read in the second round trip enlarges the buffer, and segments widen the window
    // again.
    assert_eq!(acked[26..], (31..=40).filter(|n| *n != 31).collect::<Vec<_>>());
    assert!(receiver.window.tuning.is_some_and(|tuning| tuning.buffer() > 131_072));
}

/// Linux 6.1: half of the buffer is window from the beginning, less one segment, so that it does
/// not grow before the buffer does.
#[test]
fn with_the_rules_of_6_1_the_window_waits_for_the_buffer() {
    let (_, told) = slow_start(ReceiveWindow::of(WindowRules::Linux6_1), 24);
    let acked: Vec<u64> = told.iter().map(|(segment, _)| *segment).collect();
    assert_eq!(acked, (1..=16).chain([18, 20, 22, 24]).collect::<Vec<_>>());
    assert_eq!(told[0].1, MSS + 64_128);
    assert_eq!(told[9].1, 10 * MSS + 64_128);
}

#[test]
fn the_buffer_holds_what_the_next_round_trip_may_bring() {
    let enlarged = |rules, before, copied, span| {
        let mut tuning = super::Autotuning::new(&ReceiveWindow::of(rules), 536);
        tuning.take_share(1448);
        tuning.space = before;
        tuning.enlarge(copied, span);
        (tuning.buffer, tuning.clamp)
    };
    // 2 * 60 000 and twice its growth by 44 072 / 15 928; 256/160 of that.
    let window = 120_000 + 2 * (120_000 * 44_072 / 15_928);
    let buffer = window * 256 / 160;
    assert_eq!(enlarged(WindowRules::Linux6_18, 15_928, 60_000, 0), (buffer, buffer * 160 / 256));
    // What lies behind a gap, where nothing more is read than before.
    assert_eq!(enlarged(WindowRules::Linux6_18, 100_000, 100_000, 40_000).0, 240_000 * 256 / 160);
    // 2 * 27 512, 16 segments, twice the growth: 132 segments of 3008 B; half of it is window.
    assert_eq!(enlarged(WindowRules::Linux6_1, 15_928, 27_512, 0), (132 * 3008, 132 * 3008 / 2));
    // Never less than before, never more than the most.
    assert_eq!(enlarged(WindowRules::Linux6_18, 20_000, 20_000, 0).0, 131_072);
    assert_eq!(enlarged(WindowRules::Linux6_18, 20_000, 1 << 40, 0).0, 32 << 20);
}

#[test]
fn round_trips_are_smoothed_and_those_of_a_window_only_bound_them() {
    let rtt = |rules, samples: &[(u64, bool)]| {
        let mut tuning = super::Autotuning::new(&ReceiveWindow::of(rules), 536);
        for (sample, bound) in samples {
            tuning.take_rtt(*sample, *bound, false);
        }
        tuning.rtt8
    };
    let samples = [(20_000, false), (28_000, false), (60_000, true)];
    assert_eq!(rtt(WindowRules::Linux6_1, &samples), 168_000);
    assert_eq!(rtt(WindowRules::Linux6_18, &samples), 168_000);
    // A shorter one counts at once, in 6.1 only if a window took it.
    let shorter = [(20_000, false), (12_000, false)];
    assert_eq!(rtt(WindowRules::Linux6_1, &shorter), 152_000);
    assert_eq!(rtt(WindowRules::Linux6_18, &shorter), 96_000);
    assert_eq!(rtt(WindowRules::Linux6_1, &[(20_000, false), (12_000, true)]), 96_000);
}

fn tuning(initial: u64, max: u64, rules: WindowRules) -> super::Autotuning {
    let window = ReceiveWindow {
        initial: Bytes::new(initial),
        max: Some(Bytes::new(max)),
        overhead: Bytes::ZERO,
        ..ReceiveWindow::of(rules)
    };
    super::Autotuning::new(&window, MSS as u32)
}

/// `tcp_init_buffer_space`: one segment of the window is left to the application, as long as two
/// remain.
#[test]
fn the_first_window_leaves_a_segment_to_the_application() {
    let clamp = |window: u64| tuning(2 * window, 2 * window, WindowRules::Linux6_18).clamp;
    assert_eq!(clamp(10 * MSS), 9 * MSS);
    assert_eq!([3 * MSS, 2 * MSS + 500, 2 * MSS, MSS + 500].map(clamp), [2 * MSS, 2 * MSS, 2 * MSS, MSS + 500]);
}

#[test]
fn a_round_trip_that_read_no_more_than_the_busiest_one_enlarges_nothing() {
    let buffer = |read| {
        let mut tuning = tuning(131_072, 4 << 20, WindowRules::Linux6_18);
        (tuning.space, tuning.rtt8) = (100_000, 8_000);
        tuning.set_now(micros(1_000));
        tuning.on_read(read, 0, 0);
        tuning.buffer
    };
    assert_eq!(buffer(100_000), 131_072);
    assert!(buffer(100_001) > 131_072);
}

/// `tcp_rcv_rtt_measure_ts`, with a clock of milliseconds: which echoes tell a round trip.
#[test]
fn a_round_trip_is_told_by_the_first_full_segment_that_answers_an_ack_sent_once() {
    let rtt = |acks: &[(u64, u64)], answers: &[(u64, u32)]| {
        let mut tuning = tuning(131_072, 4 << 20, WindowRules::Linux6_18);
        for &(ms, next) in acks {
            tuning.set_now(micros(1_000 * ms));
            tuning.on_ack(next, 65_160);
        }
        for (ms, &(acknowledged, payload)) in (30..).step_by(10).zip(answers) {
            tuning.set_now(micros(1_000 * ms));
            let next = acknowledged + u64::from(payload);
            let (size, count) = (payload, 1);
            let at = super::Arrived {
                acknowledged,
                payload,
                size,
                count,
                in_order: true,
                next,
                read: next,
                behind: 0,
                span: 0,
            };
            tuning.take_echo(at);
        }
        tuning.rtt8 / 8
    };
    let full = MSS as u32;
    assert_eq!(rtt(&[(10, 5_000)], &[(5_000, full)]), 20_000);
    assert_eq!(rtt(&[(10, 5_000), (12, 6_000)], &[(6_000, full)]), 18_000);
    assert_eq!(rtt(&[(10, 5_000)], &[(5_000, full), (5_000, full)]), 20_000, "the second waited for the first");
    assert_eq!(rtt(&[(10, 5_000), (12, 5_000)], &[(5_000, full)]), 0, "which of the two is not known");
    assert_eq!(rtt(&[(10, 5_000)], &[(5_000, full - 1)]), 0, "a short segment may have waited");
    assert_eq!(rtt(&[(10, 5_000)], &[(4_000, full)]), 0, "its sender had not heard of the ACK");
}

#[test]
fn a_windows_worth_of_data_takes_a_round_trip_to_its_last_byte() {
    let mut tuning = tuning(131_072, 4 << 20, WindowRules::Linux6_18);
    tuning.offered = 10_000;
    for (us, next, rtt) in [(1_000, 0, 0), (6_000, 9_999, 0), (9_000, 10_000, 8_000), (20_000, 19_999, 8_000)] {
        tuning.set_now(micros(us));
        tuning.take_window_time(next);
        assert_eq!(tuning.rtt8 / 8, rtt, "{next}");
    }
    tuning.set_now(micros(13_000));
    tuning.take_window_time(20_000);
    assert_eq!(tuning.rtt8 / 8, 4_000, "the next one began with the last byte of the one before");
}

/// `__tcp_select_window`, with a buffer of which half is window.
#[test]
fn a_window_in_a_buffer_that_is_nearly_full_is_shut_below_a_sixteenth_or_a_segment() {
    let select = |buffer: u64, free: u64, current| {
        let mut tuning = tuning(buffer, buffer, WindowRules::Linux6_18);
        (tuning.begun, tuning.threshold) = (true, u64::MAX);
        let held = (buffer / 2 - free) * 2;
        (tuning.is_low(held), tuning.select(held, current))
    };
    // Half a MiB of window in units of 128 B; a sixteenth are 32 KiB.
    assert_eq!(select(1 << 20, 300_000, 0), (false, 300_032), "rounded up");
    assert_eq!(select(1 << 20, 200_000, 0), (true, 199_936), "rounded down if it is low");
    assert_eq!(select(1 << 20, 32_768, 0), (true, 32_768));
    assert_eq!(select(1 << 20, 32_767, 0), (true, 0));
    assert_eq!(select(1 << 20, 32_767, 5_000), (true, 5_120), "what was offered stays");
    // 16 KiB of window: a sixteenth is 1024 B, less than a segment of 1448 B.
    assert_eq!(select(1 << 15, 2_100, 0), (true, 2_048));
    assert_eq!(select(1 << 15, 1_500, 0), (true, 0), "1408 B in units of 128 B hold no segment");
}

#[test]
fn before_data_arrives_nothing_is_low_and_the_first_offer_stands() {
    let tuning = tuning(131_072, 131_072, WindowRules::Linux6_18);
    assert_eq!((tuning.is_low(131_072), tuning.select(131_072, 65_160)), (false, 65_160));
}

/// Without scaling the window moves by segments.
#[test]
fn a_window_that_is_not_scaled_moves_when_a_whole_segment_more_is_free_or_less_than_was_offered() {
    let select = |offered, free: u64| {
        let mut tuning = tuning(131_072, 131_072, WindowRules::Linux6_18);
        (tuning.begun, tuning.threshold, tuning.scale) = (true, u64::MAX, 0);
        tuning.offered = offered;
        tuning.select((65_536 - free) * 2, 0)
    };
    assert_eq!(select(20 * MSS, 21 * MSS - 1), 20 * MSS);
    assert_eq!(select(20 * MSS, 21 * MSS), 21 * MSS);
    assert_eq!(select(20 * MSS, 22 * MSS + 500), 22 * MSS, "by whole segments");
    assert_eq!(select(20 * MSS, 20 * MSS), 20 * MSS);
    assert_eq!(select(20 * MSS, 20 * MSS - 1), 19 * MSS);
    let odd = 20 * MSS + 700;
    assert_eq!([odd, 21 * MSS, odd + MSS - 1].map(|free| select(odd, free)), [odd; 3]);
    assert_eq!([odd - 1, odd + MSS].map(|free| select(odd, free)), [20 * MSS, 21 * MSS]);
}

/// `__tcp_grow_window`: a segment's memory may be worth so many times its payload as the window
/// fits into the half of the largest one.
#[test]
fn segments_that_waste_memory_widen_a_small_window_only() {
    let mut tuning = super::Autotuning::new(&ReceiveWindow::of(WindowRules::Linux6_18), 536);
    // Half of the most is window, half of it once more: 8 MiB. Half of 1024 B of memory is 512 B of
    // window, half of which is 256 B.
    assert_eq!(tuning.most, 32 << 20);
    let widest = |payload: u64| 8 * (1 << 20) * payload / 256;
    for payload in [256, 128, 64, 32] {
        for (threshold, worthwhile) in [(widest(payload), true), (widest(payload) + 1, false)] {
            tuning.threshold = threshold;
            assert_eq!(tuning.worthwhile(1024, payload), worthwhile, "{payload} B at {threshold}");
        }
    }
}

/// A reader that does not read gets no more than the buffer holds, and is asked again once it does.
#[test]
fn a_window_that_nobody_reads_shuts_and_opens_again() {
    let window = ReceiveWindow { initial: Bytes::new(65_536), max: Some(Bytes::new(65_536)), ..Default::default() };
    let config = ReceiverConfig { window: Some(window), auto_read: false, ..ReceiverConfig::default() };
    let mut receiver = Receiver::new(&config);
    let (mut index, mut edge) = (0, 32_768 / MSS * MSS);
    while (index + 1) * MSS <= edge {
        let now = micros(10_000 + 60_000 * index);
        receiver.on_segment(now, &segment(now, index, index * MSS), Ecn::NotEct);
        while let Some(out) = receiver.poll_ack() {
            edge = out.ack.ack + u64::from(out.ack.window);
        }
        receiver.on_timer(now + Span::from_millis(50));
        while let Some(out) = receiver.poll_ack() {
            edge = out.ack.ack + u64::from(out.ack.window);
        }
        index += 1;
    }
    // 65 536 B hold 28 segments of 2304 B.
    assert!((24..=28).contains(&index), "{index} segments");
    receiver.read(index * MSS);
    let update = receiver.poll_ack().unwrap().ack;
    assert!(update.ack + u64::from(update.window) >= edge + 24 * MSS, "{update:?}");
}

proptest! {
    /// Whatever arrives and whenever it is read: the right edge never moves back, the window is
    /// never more than the largest buffer gives, and the same happens twice.
    #[test]
    fn the_right_edge_never_moves_back_and_the_buffer_bounds_the_window(
        old in any::<bool>(),
        auto_read in any::<bool>(),
        (initial, max) in (2048_u64..300_000, 2048_u64..4_000_000),
        overhead in 0_u64..9000,
        steps in proptest::collection::vec((0_u64..6, 1_u32..3000, 0_u64..30_000, 0_u64..20_000), 1..300),
    ) {
        let rules = if old { WindowRules::Linux6_1 } else { WindowRules::Linux6_18 };
        let window = ReceiveWindow {
            rules,
            initial: Bytes::new(initial),
            max: Some(Bytes::new(max)),
            overhead: Bytes::new(overhead),
            mss: None,
        };
        let most = window.most();
        let config = ReceiverConfig { window: Some(window), auto_read, ..ReceiverConfig::default() };
        let mut receiver = Receiver::new(&config);
        let (mut now, mut edge, mut read, mut told) = (Time::ZERO, 0, 0, 0);
        for (skip, payload, wait, reads) in steps {
            now += Span::from_micros(wait);
            let seq = receiver.delivered() + if skip > 3 { (skip - 3) * 1500 } else { 0 };
            let data = Segment { seq, payload, ..segment(now, 0, told) };
            receiver.on_segment(now, &data, Ecn::NotEct);
            if receiver.deadline() <= now {
                receiver.on_timer(now);
            }
            if !auto_read {
                receiver.read(reads);
                read = (read + reads).min(receiver.delivered());
            } else {
                read = receiver.delivered();
            }
            while let Some(out) = receiver.poll_ack() {
                let end = out.ack.ack + u64::from(out.ack.window);
                prop_assert!(end >= edge, "{end} after {edge}");
                prop_assert!(end - read <= most + (1 << 14), "{} of {most}", end - read);
                edge = end;
                told = out.ack.ack;
            }
            let tuning = receiver.window.tuning.as_deref().unwrap();
            prop_assert!(tuning.buffer() <= most);
            prop_assert!(tuning.threshold <= tuning.clamp.max(65_535));
        }
    }
}
