//! Beginning and end of a connection.

use flowstart_units::Time;

use super::pipe::{Pipe, no_handshake, reno};
use super::{MSS, at, every_segment, ms};
use crate::{ReceiverConfig, SenderConfig};

#[test]
fn slow_start_doubles_every_round_trip_whatever_the_ack_policy() {
    for receiver in [every_segment(), ReceiverConfig::default(), ReceiverConfig::every_second_segment()] {
        let mut pipe = Pipe::new(&no_handshake(), reno(10), &receiver, ms(25));
        pipe.sender.write(Time::ZERO, u64::MAX);
        for (round, sent) in [10, 30, 70, 150, 310, 630, 1270].into_iter().enumerate() {
            pipe.run_until(at(50 * round as u64 + 1));
            assert_eq!(pipe.sender.stats().packets_sent, sent, "round {round}");
        }
    }
}

#[test]
fn a_handshake_gives_the_first_round_trip_sample() {
    let mut pipe = Pipe::new(&SenderConfig::default(), reno(10), &ReceiverConfig::default(), ms(30));
    pipe.pump();
    assert!(!pipe.sender.is_established());
    assert!(pipe.sent[0].segment.syn);
    assert_eq!(pipe.sent[0].bytes, 60);
    pipe.run_until(at(60));
    assert!(pipe.sender.is_established());
    assert_eq!(pipe.sender.stats().srtt, ms(60));
    assert_eq!(pipe.sender.stats().min_rtt, ms(60));
    assert_eq!(pipe.sender.rto(), ms(260));
    pipe.transfer(100_000);
}

#[test]
fn a_lost_syn_is_sent_again_after_1_s_and_3_s_and_two_losses_cost_the_initial_window() {
    let mut losses = 2;
    let mut pipe = Pipe::new(&SenderConfig::default(), reno(10), &ReceiverConfig::default(), ms(30)).on_data(
        move |packet, delay| {
            if packet.segment.syn && losses > 0 {
                losses -= 1;
                return Vec::new();
            }
            vec![(delay, packet.ecn)]
        },
    );
    pipe.run_until(at(3_060));
    let times: Vec<_> = pipe.sent.iter().map(|p| p.segment.sent_at).collect();
    assert_eq!(times, [at(0), at(1_000), at(3_000)]);
    assert_eq!(pipe.sender.controller().cwnd(), 1);
    assert_eq!(pipe.sender.stats().srtt, ms(60));
}

#[test]
fn a_syn_that_was_slow_and_not_lost_costs_no_window() {
    // Linux tcp_try_undo_spurious_syn: the answer echoes the first timestamp.
    for (delay, syns) in [(ms(300), 1), (ms(1_900), 3)] {
        let mut pipe = Pipe::new(&SenderConfig::default(), reno(10), &ReceiverConfig::default(), delay);
        pipe.run_until(at(0) + delay * 2 + ms(1));
        assert!(pipe.sender.is_established(), "{delay}");
        assert_eq!((pipe.sent.iter().filter(|p| p.segment.syn).count(), pipe.sender.controller().cwnd()), (syns, 10));
    }
}

#[test]
fn the_wait_for_the_answer_to_a_syn_doubles_up_to_the_largest_timeout() {
    let config = SenderConfig { max_rto: ms(10_000), ..SenderConfig::default() };
    let mut pipe = Pipe::new(&config, reno(10), &ReceiverConfig::default(), ms(30)).on_data(|_, _| Vec::new());
    pipe.run_until(at(36_000));
    let times: Vec<_> = pipe.sent.iter().map(|p| p.segment.sent_at).collect();
    assert_eq!(times, [0, 1_000, 3_000, 7_000, 15_000, 25_000, 35_000].map(at));
    assert_eq!(pipe.sender.stats().syn_retries, 6);
}

#[test]
fn the_last_segment_carries_fin_and_an_empty_transfer_is_complete_at_once() {
    let mut pipe = Pipe::new(&no_handshake(), reno(10), &every_segment(), ms(10));
    pipe.transfer(3 * MSS + 1);
    let fins: Vec<bool> = pipe.sent.iter().map(|p| p.segment.fin).collect();
    assert_eq!(fins, [false, false, false, true]);
    let mut pipe = Pipe::new(&SenderConfig::default(), reno(10), &every_segment(), ms(10));
    pipe.sender.finish();
    assert!(!pipe.sender.is_complete());
    pipe.complete(10);
}

#[test]
fn ten_thousand_idle_connections_fit_into_40_megabytes() {
    let endpoints = std::mem::size_of::<crate::Sender>() + std::mem::size_of::<crate::Receiver>();
    // The scoreboard's first 16 records come on top.
    assert!(endpoints + 16 * 48 < 4_096, "{endpoints}");
}
