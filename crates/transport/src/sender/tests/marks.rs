//! Congestion marks: classic ECN, DCTCP, accurate ECN.

use flowstart_congestion::{AvoidanceConfig, Controller, ControllerConfig, StartConfig};
use flowstart_network::Ecn;
use flowstart_network::packet::Acknowledgement;
use flowstart_units::{Span, Time};

use super::pipe::{Pipe, no_handshake, steady};
use super::{Link, MSS, at, every_segment, ms};
use crate::{EcnMode, Receiver, ReceiverConfig, Sender, SenderConfig, SenderState};

#[test]
fn classic_ecn_reduces_once_per_window_says_cwr_and_keeps_retransmissions_unmarkable() {
    let sender = SenderConfig { ecn: EcnMode::Classic, ..no_handshake() };
    let receiver = ReceiverConfig { ecn: EcnMode::Classic, ..every_segment() };
    let mut pipe =
        Pipe::new(&sender, steady(40), &receiver, ms(25)).on_data(|packet, delay| match packet.segment.number {
            // Marks within one window, and a loss far behind.
            50..=55 => vec![(delay, Ecn::Ce)],
            300 => Vec::new(),
            _ => vec![(delay, packet.ecn)],
        });
    pipe.transfer(600 * MSS);
    let stats = pipe.sender.stats();
    assert_eq!(stats.mark_reductions, 1);
    assert_eq!(stats.recoveries, 1);
    assert_eq!(stats.undone, 0);
    assert_eq!(pipe.sent.iter().filter(|p| p.segment.cwr).count(), 2);
    assert!(pipe.sent.iter().all(|p| (p.ecn == Ecn::Ect0) != p.segment.retransmission));
    // ECE stays on until CWR arrives, then goes off.
    let echoes = pipe.acks.iter().filter(|a| a.1.ack.ece).count();
    assert!((20..=60).contains(&echoes), "{echoes}");
    assert!(pipe.acks.iter().all(|a| a.1.ecn == Ecn::NotEct));
}

#[test]
fn dctcp_acknowledges_both_sides_of_every_change_of_marking() {
    let sender = SenderConfig { ecn: EcnMode::Dctcp, ..no_handshake() };
    let receiver = ReceiverConfig { ecn: EcnMode::Dctcp, quick_acks: 0, ..ReceiverConfig::default() };
    let mut pipe = Pipe::new(&sender, steady(10), &receiver, ms(25))
        .on_data(|packet, delay| vec![(delay, if packet.segment.number == 5 { Ecn::Ce } else { packet.ecn })]);
    pipe.sender.write(Time::ZERO, 10 * MSS);
    pipe.run_until(at(200));
    let acks: Vec<_> = pipe.acks.iter().map(|a| (a.1.ack.ack / MSS, a.1.ack.ece)).collect();
    // Packet 5 is marked: 4 alone with the old state, 5 at once with the new one, 6 (the change
    // back) at once.
    assert_eq!(acks, [(2, false), (4, false), (5, false), (6, true), (7, false), (9, false), (10, false)]);
    assert!(pipe.acks.iter().all(|a| a.1.ecn == Ecn::Ect0));
    assert_eq!(pipe.sender.stats().packets_marked, 1);
    assert_eq!(pipe.sender.stats().mark_reductions, 1);
}

#[test]
fn with_classic_ecn_the_first_new_data_after_a_timeout_carries_cwr() {
    let cwr = |ecn| {
        let sender = SenderConfig { ecn, ..no_handshake() };
        let receiver = ReceiverConfig { ecn, ..every_segment() };
        let mut pipe = Pipe::new(&sender, steady(4), &receiver, ms(25)).on_data(|packet, delay| {
            let outage = packet.segment.number >= 8 && packet.segment.sent_at < at(1_000);
            if outage { Vec::new() } else { vec![(delay, packet.ecn)] }
        });
        pipe.transfer(40 * MSS);
        assert!(pipe.sender.stats().timeouts > 0);
        let carrying = |packet: &&crate::sender::Outgoing| packet.segment.cwr;
        assert!(pipe.sent.iter().filter(carrying).all(|packet| !packet.segment.retransmission));
        pipe.sent.iter().filter(carrying).count()
    };
    assert_eq!([EcnMode::Off, EcnMode::Classic, EcnMode::Dctcp].map(cwr), [0, 1, 0]);
}

#[test]
fn accurate_ecn_counts_every_mark_even_if_acks_are_lost() {
    let sender = SenderConfig { ecn: EcnMode::Accurate, ect1: true, ..no_handshake() };
    let receiver = ReceiverConfig { ecn: EcnMode::Accurate, ..every_segment() };
    let mut pipe = Pipe::new(&sender, steady(20), &receiver, ms(25))
        .on_data(|packet, delay| {
            assert_eq!(packet.ecn, Ecn::Ect1);
            vec![(delay, if packet.segment.number % 7 == 0 { Ecn::Ce } else { packet.ecn })]
        })
        .on_ack(|packet, delay| if packet.ack.ack / MSS % 3 == 1 { Vec::new() } else { vec![delay] });
    pipe.transfer(300 * MSS);
    assert_eq!(pipe.sender.stats().packets_marked, pipe.sender.stats().packets_sent.div_ceil(7));
}

#[test]
fn cwr_ends_only_when_something_beyond_it_is_acknowledged() {
    let sender = SenderConfig { ecn: EcnMode::Dctcp, ..no_handshake() };
    let receiver = ReceiverConfig { ecn: EcnMode::Dctcp, ..every_segment() };
    let mut pipe = Pipe::new(&sender, steady(10), &receiver, ms(25))
        .on_data(|packet, delay| vec![(delay, if packet.segment.number == 0 { Ecn::Ce } else { packet.ecn })]);
    pipe.sender.write(Time::ZERO, 10 * MSS);
    pipe.run_until(at(500));
    assert_eq!(pipe.sender.stats().una, 10 * MSS);
    assert_eq!(pipe.sender.state(), SenderState::Cwr);
    pipe.sender.write(pipe.now, MSS);
    pipe.run_until(at(600));
    assert_eq!(pipe.sender.state(), SenderState::Open);
}

#[test]
fn dctcp_halves_the_reduced_window_again_when_a_loss_follows_marks_in_the_same_window() {
    let sender = SenderConfig { ecn: EcnMode::Dctcp, ..no_handshake() };
    let receiver = ReceiverConfig { ecn: EcnMode::Dctcp, ..every_segment() };
    let config = ControllerConfig {
        initial_window: 40,
        initial_ssthresh: Some(40),
        ..ControllerConfig::new(StartConfig::SlowStart, AvoidanceConfig::Reno)
    };
    let run = |mode: EcnMode| {
        let (sender, receiver) =
            (SenderConfig { ecn: mode, ..sender.clone() }, ReceiverConfig { ecn: mode, ..receiver.clone() });
        let mut pipe = Pipe::new(&sender, Controller::new(&config), &receiver, ms(25)).on_data({
            let mut link = Link::new(Span::from_micros(100));
            move |packet, delay| {
                let wait = link.wait(packet.segment.sent_at);
                match packet.segment.number {
                    2 => vec![(delay + wait, Ecn::Ce)],
                    20 => Vec::new(),
                    _ => vec![(delay + wait, packet.ecn)],
                }
            }
        });
        pipe.sender.write(Time::ZERO, u64::MAX);
        pipe.run_until(at(70));
        pipe.sender.controller().ssthresh()
    };
    // Reno's answer to marks halves 40 to 20; the loss comes when cwnd is on its way there.
    assert_eq!(run(EcnMode::Classic), 20);
    assert!((10..20).contains(&run(EcnMode::Dctcp)));
}

#[test]
fn accurate_ecn_counts_every_mark_once_even_if_acks_overtake_each_other() {
    let sender = SenderConfig { ecn: EcnMode::Accurate, ..no_handshake() };
    let receiver = ReceiverConfig { ecn: EcnMode::Accurate, ..every_segment() };
    let mut number = 0;
    let mut pipe = Pipe::new(&sender, steady(20), &receiver, ms(25))
        .on_data({
            let mut link = Link::new(ms(1));
            move |packet, delay| {
                let ecn = if packet.segment.number % 5 == 0 { Ecn::Ce } else { packet.ecn };
                vec![(delay + link.wait(packet.segment.sent_at), ecn)]
            }
        })
        // ACKs leave 1 ms apart; every fourth is overtaken by the two after it.
        .on_ack(move |_, delay| {
            number += 1;
            vec![delay + if number % 4 == 0 { Span::from_micros(2_500) } else { Span::ZERO }]
        });
    pipe.transfer(400 * MSS);
    let stats = pipe.sender.stats();
    assert_eq!(stats.packets_retransmitted, 0);
    assert_eq!(stats.packets_marked, 80);
}

/// A sender of 10 packets that hears the receiver's count of marks ACK by ACK, beginning with
/// `before` in the SYN/ACK: packets counted as marked, and reductions, after every ACK.
fn told_of_marks(before: u32, acks: &[(u64, u32)]) -> Vec<(u64, u64)> {
    let config = SenderConfig { ecn: EcnMode::Accurate, ..SenderConfig::default() };
    let mut sender = Sender::new(&config, steady(10));
    let mut receiver = Receiver::new(&every_segment());
    sender.open(Time::ZERO);
    sender.write(Time::ZERO, 10 * MSS);
    let syn = sender.transmit(Time::ZERO).expect("a SYN");
    receiver.on_segment(at(10), &syn.segment, syn.ecn);
    let answer = receiver.poll_ack().expect("a SYN/ACK").ack;
    sender.on_ack(at(20), &Acknowledgement { ce_count: before, ..answer });
    while sender.transmit(at(20)).is_some() {}
    let mut found = Vec::new();
    for &(packets, ce_count) in acks {
        let told = Acknowledgement { ack: packets * MSS, echo: at(20), ce_count, syn: false, ..answer };
        sender.on_ack(at(40), &told);
        found.push((sender.stats().packets_marked, sender.stats().mark_reductions));
    }
    found
}

#[test]
fn an_overtaken_ack_neither_adds_marks_nor_takes_them_back() {
    // The ACK of 1 packet comes after that of 3, with an older count.
    assert_eq!(told_of_marks(0, &[(3, 2), (1, 1), (4, 3), (5, 3)]), [(2, 1), (2, 1), (3, 1), (3, 1)]);
    // Without a new mark it is no reason to reduce.
    assert_eq!(told_of_marks(7, &[(3, 7), (1, 6), (4, 7)]), [(0, 0), (0, 0), (0, 0)]);
}

#[test]
fn the_count_of_marks_begins_anywhere_and_wraps() {
    assert_eq!(told_of_marks(u32::MAX - 1, &[(2, u32::MAX), (5, 1)]), [(1, 1), (3, 1)]);
}

#[test]
fn marks_told_before_their_packets_count_with_the_packets_that_follow() {
    // RFC 9768 section 3.2: the count is of packets that arrived; their ACKs may still be under
    // way.
    assert_eq!(told_of_marks(0, &[(1, 3), (2, 3), (9, 3)]), [(1, 1), (2, 1), (3, 1)]);
}

/// Marks confirm a reduction, whatever becomes of the loss that began it (Linux
/// `tcp_fastretrans_alert`).
#[test]
fn a_mark_in_a_recovery_keeps_the_window_reduced_although_the_loss_was_spurious() {
    let run = |marked: Option<u64>| {
        let sender = SenderConfig { ecn: EcnMode::Accurate, ..no_handshake() };
        let receiver = ReceiverConfig { ecn: EcnMode::Accurate, ..every_segment() };
        let mut pipe = Pipe::new(&sender, steady(20), &receiver, ms(25)).on_data(move |packet, delay| {
            let (number, late) = (packet.segment.number, packet.segment.number == 0);
            // What fills the hole arrives after all; a mark before that, in the recovery.
            vec![(if late { ms(65) } else { delay }, if Some(number) == marked { Ecn::Ce } else { packet.ecn })]
        });
        pipe.sender.write(Time::ZERO, 30 * MSS);
        pipe.run_until(at(60));
        assert_eq!((pipe.sender.state(), pipe.sender.controller().ssthresh()), (SenderState::Recovery, 10));
        pipe.run_until(at(200));
        let stats = pipe.sender.stats();
        assert_eq!((stats.recoveries, stats.mark_reductions), (1, 0));
        (stats.undone, pipe.sender.controller().cwnd() >= 20, pipe.sender.controller().ssthresh() >= 15)
    };
    assert_eq!(run(None), (1, true, true));
    assert_eq!(run(Some(10)), (0, false, false));
}
