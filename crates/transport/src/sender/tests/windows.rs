//! What limits the sender besides congestion, and what it knows of its rate.

use flowstart_congestion::avoidance::CubicConfig;
use flowstart_congestion::start::PacedChirpingConfig;
use flowstart_congestion::{AvoidanceConfig, Controller, ControllerConfig, Signal, StartConfig};
use flowstart_units::{Bytes, Time};

use super::pipe::{Pipe, no_handshake, reno, steady};
use super::{Link, MSS, at, every_segment, ms};
use crate::{Kernel, ReceiverConfig, Sender, SenderConfig};

#[test]
fn an_application_that_uses_half_the_path_gets_a_window_of_twice_its_use() {
    let mut pipe = Pipe::new(&no_handshake(), reno(10), &every_segment(), ms(50));
    // 20 packets per round trip of 100 ms: one every 5 ms, for 60 s.
    for tick in 0..12_000 {
        pipe.run_until(at(tick * 5));
        pipe.sender.write(pipe.now, MSS);
        pipe.pump();
    }
    assert!(pipe.sender.stats().in_flight <= 21);
    assert!(pipe.sender.controller().cwnd() <= 42, "{}", pipe.sender.controller().cwnd());
}

/// Whatever it was made with; its window stays what it is in bytes.
#[test]
fn the_controller_learns_the_payload_of_the_segments_that_leave() {
    for (mss, told, cwnd) in [(1448, 1448, 10), (1000, 1000, 14), (u32::MAX, 65_483, 2), (0, 1, 14_480)] {
        let mut sender = Sender::new(&SenderConfig { mss, ..no_handshake() }, reno(10));
        assert_eq!((sender.controller().mss(), sender.controller().cwnd()), (told, cwnd));
        sender.open(Time::ZERO);
        sender.write(Time::ZERO, 1_000_000);
        assert_eq!(sender.transmit(Time::ZERO).map(|packet| packet.segment.payload), Some(told));
    }
}

#[test]
fn a_window_grows_unused_only_if_told_to() {
    let cwnd = |grow_unused| {
        let config = SenderConfig { grow_unused, cwnd_validation: false, idle_restart: false, ..no_handshake() };
        let mut pipe = Pipe::new(&config, reno(10), &every_segment(), ms(50));
        for round in 0..40 {
            pipe.run_until(at(round * 100));
            pipe.sender.write(pipe.now, 2 * MSS);
            pipe.pump();
        }
        pipe.sender.controller().cwnd()
    };
    assert_eq!(cwnd(false), 10);
    assert!(cwnd(true) > 80, "{}", cwnd(true));
}

#[test]
fn after_ten_idle_seconds_bulk_data_starts_with_ten_packets() {
    let mut pipe = Pipe::new(&no_handshake(), reno(10), &every_segment(), ms(50));
    pipe.sender.write(Time::ZERO, 1_000 * MSS);
    pipe.run_until(at(3_000));
    assert!(pipe.sender.controller().cwnd() > 100);
    pipe.run_until(at(13_000));
    let before = pipe.sender.stats().packets_sent;
    pipe.sender.write(pipe.now, 1_000 * MSS);
    pipe.pump();
    assert_eq!(pipe.sender.stats().packets_sent - before, 10);
    // And without the rule with the old window.
    let config = SenderConfig { idle_restart: false, cwnd_validation: false, ..no_handshake() };
    let mut pipe = Pipe::new(&config, reno(10), &every_segment(), ms(50));
    pipe.sender.write(Time::ZERO, 200 * MSS);
    pipe.run_until(at(13_000));
    let cwnd = u64::from(pipe.sender.controller().cwnd());
    let before = pipe.sender.stats().packets_sent;
    pipe.sender.write(pipe.now, 1_000 * MSS);
    pipe.pump();
    assert_eq!(pipe.sender.stats().packets_sent - before, cwnd);
}

/// As the ledgers over QUIC have it, by the same rule of the controller.
#[test]
fn who_controls_recovery_keeps_the_window_through_an_idle_time_and_others_begin_again() {
    for name in ["bbr3", "reno"] {
        let avoidance = AvoidanceConfig::from_name(name).unwrap();
        let mut controller = Controller::new(&ControllerConfig::new(StartConfig::SlowStart, avoidance));
        controller.on_signal(Time::ZERO, Signal::Loss);
        let mut pipe = Pipe::new(&no_handshake(), controller, &every_segment(), ms(50));
        pipe.sender.write(Time::ZERO, 2_000 * MSS);
        pipe.run_until(at(60_000));
        let controls = pipe.sender.controller().controls_recovery();
        assert_eq!(controls, name == "bbr3");
        let window = |pipe: &Pipe| (pipe.sender.controller().cwnd(), pipe.sender.controller().ssthresh());
        let before = window(&pipe);
        assert!(before.0 > 10, "{name}: {before:?}");
        pipe.sender.write(pipe.now, MSS);
        assert_eq!(window(&pipe) == before, controls, "{name}: {before:?} {:?}", window(&pipe));
    }
}

#[test]
fn the_receive_window_limits_what_is_outstanding_and_a_shut_one_is_probed() {
    let receiver = ReceiverConfig {
        receive_buffer: Some(Bytes::new(20_000)),
        auto_read: false,
        ..ReceiverConfig::every_segment()
    };
    let config = SenderConfig { peer_window: Some(Bytes::new(20_000)), ..no_handshake() };
    // The window update is lost, so only a probe can find out that the window opened.
    let mut pipe = Pipe::new(&config, reno(10), &receiver, ms(10)).on_ack(|packet, delay| {
        if packet.ack.window > 19_000 && packet.ack.ack > 10_000 { Vec::new() } else { vec![delay] }
    });
    pipe.sender.write(Time::ZERO, 100_000);
    pipe.run_until(at(2_000));
    // 13 full segments, and the rest of the window in a probe.
    assert_eq!(pipe.receiver.delivered(), 20_000);
    assert_eq!(pipe.receiver.stats().outside_window, 0);
    assert!(pipe.sender.deadline() < Time::NEVER);
    pipe.receiver.read(20_000);
    pipe.run_until(at(3_000));
    assert_eq!(pipe.receiver.delivered(), 20_000);
    let mut pipe = pipe.on_ack(|_, delay| vec![delay]);
    pipe.run_until(at(20_000));
    assert!(pipe.receiver.delivered() > 33_000);
    assert_eq!(pipe.receiver.stats().outside_window, 0);
}

#[test]
fn a_shut_window_is_probed_after_a_timeout_that_doubles() {
    let receiver = ReceiverConfig { receive_buffer: Some(Bytes::new(10 * MSS)), auto_read: false, ..every_segment() };
    let config = SenderConfig { peer_window: receiver.receive_buffer, ..no_handshake() };
    let mut pipe = Pipe::new(&config, reno(10), &receiver, ms(10));
    pipe.sender.write(Time::ZERO, 20 * MSS);
    pipe.run_until(at(3_000));
    // The receiver has no more room to tell of, so its ACK is a delayed one and comes after 60 ms;
    // the timeout is 60 + 200 ms.
    let probes: Vec<_> = pipe.sent[10..].iter().map(|p| (p.segment.payload, p.segment.sent_at)).collect();
    assert_eq!(probes, [(0, at(320)), (0, at(840)), (0, at(1_880))]);
    // Once the window opens the rest leaves at once, and the wait begins anew.
    pipe.receiver.read(10 * MSS);
    pipe.run_until(at(3_030));
    assert_eq!(pipe.receiver.delivered(), 20 * MSS);
}

#[test]
fn the_window_told_is_the_free_buffer_and_moves_by_segments() {
    let receiver = ReceiverConfig { receive_buffer: Some(Bytes::new(10 * MSS)), auto_read: false, ..every_segment() };
    let config = SenderConfig { peer_window: receiver.receive_buffer, ..no_handshake() };
    let mut pipe = Pipe::new(&config, reno(4), &receiver, ms(10));
    let told = |pipe: &Pipe| pipe.acks.last().map_or(0, |(_, packet)| u64::from(packet.ack.window));
    pipe.sender.write(Time::ZERO, 4 * MSS);
    pipe.run_until(at(50));
    assert_eq!(told(&pipe), 6 * MSS);
    // Less than a segment of room is not told (RFC 9293 section 3.8.6.2.2).
    pipe.receiver.read(MSS - 1);
    pipe.sender.write(pipe.now, MSS);
    pipe.run_until(at(200));
    assert_eq!(told(&pipe), 5 * MSS);
    pipe.receiver.read(1);
    pipe.sender.write(pipe.now, MSS);
    pipe.run_until(at(400));
    assert_eq!(told(&pipe), 5 * MSS, "one was taken, one came");
}

#[test]
fn samples_are_the_applications_while_it_leaves_the_window_open() {
    let limited = |bytes: u64| {
        let mut pipe = Pipe::new(&no_handshake(), steady(10), &every_segment(), ms(25));
        for round in 0..20 {
            pipe.run_until(at(round * 50));
            pipe.sender.write(pipe.now, bytes);
            pipe.pump();
        }
        pipe.run_until(at(1_100));
        pipe.sender.last_rate_sample.expect("a sample").app_limited
    };
    assert!(limited(3 * MSS));
    assert!(!limited(100 * MSS));
    // A window that is full is no sign of it, even if nothing waits when more is written.
    let mut pipe = Pipe::new(&no_handshake(), steady(10), &every_segment(), ms(25));
    for write in 0..2 {
        pipe.run_until(at(10 * write));
        pipe.sender.write(pipe.now, 10 * MSS);
        pipe.pump();
    }
    pipe.run_until(at(110));
    let sample = pipe.sender.last_rate_sample.expect("a sample");
    assert!(pipe.sender.stats().una == 20 * MSS && !sample.app_limited);
}

#[test]
fn the_send_buffer_limits_what_is_accepted_and_what_is_outstanding() {
    let config = SenderConfig { send_buffer: Some(Bytes::new(10 * MSS)), wake_divisor: 0, ..no_handshake() };
    let mut pipe = Pipe::new(&config, reno(50), &every_segment(), ms(10));
    assert_eq!(pipe.sender.write(Time::ZERO, 100_000), 10 * MSS);
    assert_eq!(pipe.sender.write(Time::ZERO, 100_000), 0);
    pipe.run_until(at(100));
    assert_eq!(pipe.sender.write(pipe.now, 5), 5);

    let mut pipe = Pipe::new(&config, reno(50), &every_segment(), ms(10));
    pipe.sender.write(Time::ZERO, u64::MAX);
    pipe.pump();
    assert_eq!(pipe.sender.stats().packets_out, 10);
    pipe.run_until(at(21));
    assert_eq!(pipe.sender.stats().packets_sent, 20);
}

#[test]
fn small_writes_leave_at_once_and_keep_their_boundaries_when_sent_again() {
    let mut pipe = Pipe::new(&no_handshake(), reno(10), &every_segment(), ms(10)).losing(&[1]);
    for size in [100, 200, 300, 400, 500] {
        pipe.sender.write(Time::ZERO, size);
        pipe.pump();
    }
    pipe.sender.finish();
    pipe.complete(100);
    let sizes: Vec<u32> = pipe.sent.iter().map(|p| p.segment.payload).collect();
    assert_eq!(sizes, [100, 200, 300, 400, 500, 200]);
    assert!(pipe.sent.iter().all(|p| p.segment.push));
    let nagle = SenderConfig { nagle: true, ..no_handshake() };
    let mut pipe = Pipe::new(&nagle, reno(10), &every_segment(), ms(10));
    for size in [100, 200, 300, 400, 500] {
        pipe.sender.write(Time::ZERO, size);
        pipe.pump();
    }
    pipe.run_until(at(25));
    let sizes: Vec<u32> = pipe.sent.iter().map(|p| p.segment.payload).collect();
    assert_eq!(sizes, [100, 1400]);
    // What fills a segment is not held back.
    for (bytes, packets) in [(MSS - 1, 2), (1, 3)] {
        pipe.sender.write(pipe.now, bytes);
        pipe.pump();
        assert_eq!(pipe.sent.len(), packets);
    }
    assert_eq!(u64::from(pipe.sent[2].segment.payload), MSS);
}

#[test]
fn a_controller_is_told_of_all_that_waits_however_much() {
    let waiting = |bytes| {
        let mut pipe = Pipe::new(&no_handshake(), steady(10), &every_segment(), ms(25));
        pipe.sender.write(Time::ZERO, bytes);
        pipe.sender.next_packet(MSS as u32, false).queued
    };
    assert_eq!([1, MSS, MSS + 1].map(waiting), [1, 1, 2]);
    assert_eq!(waiting(10_000_000_000 * MSS - 1), 10_000_000_000);
    assert_eq!(waiting(u64::MAX), u64::MAX);
}

#[test]
fn waits_that_double_for_ever_end_at_the_largest_timeout() {
    let config = no_handshake();
    let mut pipe = Pipe::new(&config, steady(10), &every_segment(), ms(25));
    for doublings in [63, 64, 65, u32::MAX] {
        pipe.sender.window_probes = doublings;
        assert_eq!(pipe.sender.persist_wait(), config.max_rto, "{doublings}");
    }
    for retries in [63, 64, 65, u32::MAX] {
        pipe.sender.stats.syn_retries = retries;
        assert_eq!(pipe.sender.syn_wait(), config.max_rto, "{retries}");
    }
}

#[test]
fn a_rate_sample_of_a_paced_flow_is_its_rate() {
    // 10 packets in flight, 50 ms round trip, ACK-clocked: 10 packets per 50 ms.
    let mut pipe = Pipe::new(&no_handshake(), steady(10), &every_segment(), ms(25)).on_data({
        let mut link = Link::new(ms(5));
        move |packet, delay| vec![(link.wait(packet.segment.sent_at) + delay, packet.ecn)]
    });
    pipe.sender.write(Time::ZERO, u64::MAX);
    pipe.run_until(at(1_001));
    let sample = pipe.sender.last_rate_sample.expect("a sample");
    let per_second = f64::from(sample.delivered) / sample.interval.as_secs_f64();
    assert!((per_second - 200.0).abs() < 25.0, "{per_second}");
    assert!(!sample.app_limited);
}

#[test]
fn kernels_of_before_count_acks_and_look_at_the_window_before_the_ack() {
    let receiver = ReceiverConfig { ack_every: 2, quick_acks: 0, initial_mss: 1448, ..ReceiverConfig::default() };
    let cwnd_after_a_round_trip = |kernel| {
        let config = SenderConfig { kernel, ..no_handshake() };
        let mut pipe = Pipe::new(&config, reno(10), &receiver, ms(50));
        pipe.sender.write(Time::ZERO, 1_000 * MSS);
        pipe.run_until(at(149));
        pipe.sender.controller().cwnd()
    };
    assert_eq!(cwnd_after_a_round_trip(Kernel::Linux6), 20);
    assert_eq!(cwnd_after_a_round_trip(Kernel::Linux3_5), 15);
    assert_eq!(cwnd_after_a_round_trip(Kernel::Linux2_6_20), 15);
    // In slow start CUBIC counts them, too, although it evens them out later.
    let config = SenderConfig { kernel: Kernel::Linux3_5, ..no_handshake() };
    let cubic = ControllerConfig::new(StartConfig::SlowStart, AvoidanceConfig::Cubic(CubicConfig::default()));
    let mut pipe = Pipe::new(&config, Controller::new(&cubic), &receiver, ms(50));
    pipe.sender.write(Time::ZERO, 1_000 * MSS);
    pipe.run_until(at(149));
    assert_eq!(pipe.sender.controller().cwnd(), 15);
    // In congestion avoidance it goes by packets, also where it is one of a pair.
    let [alone, of_a_pair] = ["cubic", "delay_or_cubic"].map(|name| {
        let avoidance = AvoidanceConfig::from_name(name).unwrap();
        let controller = ControllerConfig::new(StartConfig::SlowStart, avoidance);
        let controller = ControllerConfig { initial_ssthresh: Some(10), ..controller };
        let mut pipe = Pipe::new(&config, Controller::new(&controller), &receiver, ms(50));
        pipe.sender.write(Time::ZERO, u64::MAX);
        pipe.run_until(at(3_000));
        pipe.sender.controller().cwnd()
    });
    assert!(alone > 20 && alone == of_a_pair, "{alone} and {of_a_pair}");
    // Window, in flight before the ACK, and whether 2.6.20 and 3.5 let it grow.
    for (cwnd, in_flight, first, second) in [
        (30, 30, true, true),
        (30, 21, true, true),
        (30, 20, false, false),
        // Three unused packets are a third of nine; 3.5 overlooks them.
        (9, 6, false, true),
        (100, 97, true, true),
        // Less than a third, but more than a burst of 64 KiB.
        (300, 220, true, false),
    ] {
        assert_eq!(Kernel::Linux2_6_20.may_grow(cwnd, in_flight, 1448), Some(first), "{cwnd} {in_flight}");
        assert_eq!(Kernel::Linux3_5.may_grow(cwnd, in_flight, 1448), Some(second), "{cwnd} {in_flight}");
    }
    assert_eq!(Kernel::Linux6.may_grow(30, 0, 1448), None);
}

/// At half of its window an application is limited by itself for Linux 6.x and 2.6.20; with more
/// than two thirds in use the window of 2.6.20 and 3.5 goes on growing, where it would rest in 6.x.
#[test]
fn with_three_quarters_in_use_only_windows_of_before_grow() {
    let cwnd = |kernel, packets| {
        let config = SenderConfig { kernel, cwnd_validation: false, idle_restart: false, ..no_handshake() };
        let mut pipe = Pipe::new(&config, steady(20), &every_segment(), ms(50));
        for round in 0..40 {
            pipe.run_until(at(round * 100));
            pipe.sender.write(pipe.now, packets * MSS);
            pipe.pump();
        }
        pipe.sender.controller().cwnd()
    };
    assert_eq!((cwnd(Kernel::Linux6, 15), cwnd(Kernel::Linux3_5, 10)), (20, 20));
    assert!(cwnd(Kernel::Linux3_5, 15) > 20);
    assert!(cwnd(Kernel::Linux2_6_20, 15) > 20);
}

/// A start that reads queueing delays off single packets must hear of every one, and finds the
/// capacity within a few round trips.
#[test]
fn a_chirping_start_hears_of_every_packet() {
    let chirping = StartConfig::PacedChirping(PacedChirpingConfig::default());
    let controller = Controller::new(&ControllerConfig::new(chirping, AvoidanceConfig::Reno));
    let mut pipe = Pipe::new(&no_handshake(), controller, &every_segment(), ms(25)).on_data({
        let mut link = Link::new(ms(1));
        move |packet, delay| vec![(link.wait(packet.segment.sent_at) + delay, packet.ecn)]
    });
    pipe.sender.write(Time::ZERO, u64::MAX);
    pipe.run_until(at(2_000));
    let exit = pipe.sender.controller().start_exit().expect("it has found the capacity");
    assert!((25..=100).contains(&exit.cwnd), "{exit:?}, where 50 fill the path");
}
