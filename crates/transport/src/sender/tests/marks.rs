//! Congestion marks: classic ECN, DCTCP, accurate ECN.

use flowstart_congestion::{AvoidanceConfig, Controller, ControllerConfig, StartConfig};
use flowstart_network::Ecn;
use flowstart_units::{Span, Time};

use super::pipe::{Pipe, no_handshake, steady};
use super::{Link, MSS, at, every_segment, ms};
use crate::{EcnMode, ReceiverConfig, SenderConfig, SenderState};

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
    // Packet 5 is marked: 4 alone with the old state, 5 at once with the new one, 6 (the change back) at once.
    assert_eq!(acks, [(2, false), (4, false), (5, false), (6, true), (7, false), (9, false), (10, false)]);
    assert!(pipe.acks.iter().all(|a| a.1.ecn == Ecn::Ect0));
    assert_eq!(pipe.sender.stats().packets_marked, 1);
    assert_eq!(pipe.sender.stats().mark_reductions, 1);
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
