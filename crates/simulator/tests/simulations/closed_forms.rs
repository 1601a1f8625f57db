//! Simulations whose result can be calculated by hand.

use crate::common::{flow, link, simulation, tcp, tcp_flow, udp_flow};
use flowstart_network::packet::Body;
use flowstart_network::{LateArrivals, LossConfig, Packet};
use flowstart_simulator::{Observer, Simulation, Spacing, Stop, Traffic, UdpConfig, Workload};
use flowstart_transport::ReceiverConfig;
use flowstart_units::{Bytes, Rate, Span, Time};

/// Completion time of a transfer over an idle link with an unlimited buffer, from the first bit to
/// the last byte delivered.
fn completion(mbps: u64, rtt: Span, bytes: u64) -> Span {
    let flow = tcp_flow(Workload::Sized(Bytes::new(bytes)), rtt);
    let config =
        simulation(vec![link(mbps, rtt / 2, None)], vec![flow], Stop::WhenComplete(Time::ZERO + Span::from_secs(60)));
    let (outcome, ()) = Simulation::new(&config, ()).unwrap().run();
    outcome.flows[0].completed.unwrap().since(outcome.flows[0].first_data)
}

/// Slow start from ten packets, an ACK per packet, no exit, unlimited buffer.
#[test]
fn slow_start_transfers_complete_when_the_model_says() {
    for (mbps, rtt, bytes, millis) in
        [(100, 50, 14_480, 26.2), (100, 50, 100_000, 130.0), (100, 50, 1_000_000, 333.0), (50, 100, 5_000_000, 1329.0)]
    {
        let taken = completion(mbps, Span::from_millis(rtt), bytes).as_millis_f64();
        assert!((taken / millis - 1.0).abs() < 0.005, "{bytes} B at {mbps} Mbit/s, {rtt} ms: {taken} ms, not {millis}");
    }
}

#[test]
fn one_window_of_ten_packets_takes_half_an_rtt_and_ten_transmissions_to_the_nanosecond() {
    // 1500 B at 100 Mbit/s are 120 us.
    assert_eq!(completion(100, Span::from_millis(50), 14_480), Span::from_nanos(26_200_000));
}

#[test]
fn datagrams_at_120_percent_fill_the_buffer_and_then_lose_a_sixth() {
    let udp = UdpConfig {
        rate: Rate::from_mbps(12),
        packet: 1500,
        spacing: Spacing::Constant,
        lasting: Span::MAX,
        ecn: false,
    };
    let flow = udp_flow(udp, Span::from_millis(10));
    // Just before the datagram of second 20.
    let end = Time::from_nanos(19_999_999_999);
    let config = simulation(vec![link(10, Span::from_millis(5), Some(50))], vec![flow], Stop::At(end));
    let (outcome, ()) = Simulation::new(&config, ()).unwrap().run();
    let link = &outcome.links[0];
    assert_eq!(outcome.flows[0].packets_sent, 20_000);
    // The buffer of 50 packets is 60 ms at 10 Mbit/s; the newest packet waits for those and for the
    // rest of the one in transmission.
    assert!(link.max_sojourn > Span::from_millis(59) && link.max_sojourn <= Span::from_nanos(61_200_000));
    // All the time but the first few nanoseconds; the transmission that the end cuts off counts in
    // full.
    assert_eq!(link.busy.as_nanos() / 10_000_000, 2_000, "work conservation");
    let share = link.dropped as f64 / 20_000.0;
    assert!((share - 1.0 / 6.0).abs() < 0.005, "{share}");
}

#[test]
fn a_link_that_loses_every_tenth_datagram_delivers_nine_tenths() {
    let udp = UdpConfig {
        rate: Rate::from_mbps(1),
        packet: 1000,
        spacing: Spacing::Constant,
        lasting: Span::from_secs(1),
        ecn: false,
    };
    let mut lossy = link(10, Span::from_millis(5), None);
    lossy.loss = LossConfig::Periodic { every: 10 };
    let config =
        simulation(vec![lossy], vec![udp_flow(udp, Span::from_millis(10))], Stop::At(Time::ZERO + Span::from_secs(2)));
    let (outcome, ()) = Simulation::new(&config, ()).unwrap().run();
    assert_eq!(outcome.flows[0].packets_sent, 125);
    assert_eq!(outcome.links[0].lost, 12);
    assert_eq!(outcome.flows[0].delivered, Bytes::new(113_000));
}

#[test]
fn what_a_host_does_by_itself_waits_for_its_timers_and_what_follows_is_in_time() {
    #[derive(Default)]
    struct Sent(Vec<u64>);
    impl Observer for Sent {
        fn sent(&mut self, now: Time, _: &Packet) {
            self.0.push(now.as_nanos() / 1_000);
        }
    }
    let us = |us| Time::ZERO + Span::from_micros(us);
    // A datagram in a millisecond.
    let udp = UdpConfig {
        rate: Rate::from_mbps(8),
        packet: 1000,
        spacing: Spacing::Constant,
        lasting: Span::from_millis(6),
        ecn: false,
    };
    let rtt = Span::from_millis(10);
    let config = simulation(vec![link(100, rtt / 2, None)], vec![udp_flow(udp, rtt)], Stop::At(us(20_000)));
    let sent = |late: LateArrivals, flow| {
        let simulation = Simulation::new(&config, Sent::default()).unwrap().with_late_timers(flow, late);
        simulation.run().1.0
    };
    let late = || LateArrivals::new(vec![(us(1_500), Span::from_micros(70)), (us(3_500), Span::from_micros(1_200))]);
    assert_eq!(sent(late(), 0), [0, 1_000, 2_070, 3_070, 5_200, 6_200]);
    assert_eq!(sent(LateArrivals::default(), 0), [0, 1_000, 2_000, 3_000, 4_000, 5_000]);
    assert_eq!(sent(late(), 1), [0, 1_000, 2_000, 3_000, 4_000, 5_000], "timers of another host");
}

/// A delayed ACK is due 1 ms after the sender's application writes again, whose timers are late by
/// then: the receiver is another host.
#[test]
fn late_timers_of_the_sender_do_not_make_the_receiver_late() {
    /// When data and ACKs left, in microseconds.
    #[derive(Default)]
    struct Sent([Vec<u64>; 2]);
    impl Observer for Sent {
        fn sent(&mut self, now: Time, packet: &Packet) {
            self.0[usize::from(matches!(packet.body, Body::Ack(_)))].push(now.as_nanos() / 1_000);
        }
    }
    let ms = Span::from_millis;
    let writes = [0, 44, 60].map(|at| (ms(at), Bytes::new(1000)));
    let mut tcp = tcp(Workload::Script(writes.to_vec()), ms(10));
    tcp.receiver =
        ReceiverConfig { ack_every: 2, ack_delay: ms(40), adaptive_delay: false, quick_acks: 0, ..tcp.receiver };
    let flows = vec![flow(Traffic::Tcp(Box::new(tcp)), ms(10))];
    let config = simulation(vec![link(100, ms(5), None)], flows, Stop::At(Time::ZERO + ms(80)));
    let sent = |late: LateArrivals| {
        let simulation = Simulation::new(&config, Sent::default()).unwrap().with_late_timers(0, late);
        simulation.run().1.0
    };
    let [data, acks] = sent(LateArrivals::default());
    assert_eq!((data, acks[0]), (vec![0, 44_000, 60_000], 45_084));
    // From before the second write on, and from just after it.
    for (from, second) in [(ms(40), 54_000), (Span::from_micros(44_500), 44_000)] {
        let [data, acks] = sent(LateArrivals::new(vec![(Time::ZERO + from, ms(10))]));
        assert_eq!((data, acks[0]), (vec![0, second, 70_000], 45_084), "only writes are late");
    }
}
