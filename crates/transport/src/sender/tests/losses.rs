//! How losses are found and repaired.

use flowstart_network::packet::{Acknowledgement, MAX_SACK_BLOCKS, SackBlock};
use flowstart_quick_start::RateCode;
use flowstart_units::{Span, Time};

use super::pipe::{Pipe, no_handshake, steady};
use super::{Link, MSS, at, every_segment, ms};
use crate::{LossDetection, Receiver, Sender, SenderConfig, SenderState};

#[test]
fn the_third_sack_proves_the_loss_and_not_the_second() {
    let mut pipe = Pipe::new(&no_handshake(), steady(10), &every_segment(), ms(50)).losing(&[0]);
    pipe.sender.write(Time::ZERO, 10 * MSS);
    pipe.pump();
    // The ACKs of packets 1 and 2 arrive one after the other, at the same time; stop between them.
    for _ in 0..9 {
        pipe.step();
    }
    for sacks in 1..=3 {
        pipe.step();
        assert_eq!(pipe.sender.board.sacked(), sacks);
        assert_eq!(pipe.sender.stats().packets_lost, u64::from(sacks == 3));
        assert_eq!(pipe.sender.state(), if sacks == 3 { SenderState::Recovery } else { SenderState::Disorder });
    }
    assert_eq!(pipe.retransmissions().len(), 1);
    assert_eq!(pipe.retransmissions()[0].segment.seq, 0);
    pipe.sender.finish();
    pipe.complete(1000);
    assert_eq!(pipe.sender.stats().recoveries, 1);
    assert_eq!(pipe.sender.stats().timeouts, 0);
    assert_eq!(pipe.sender.controller().ssthresh(), 5);
}

/// Linux takes SACKs first: an ACK that advances and reports a hole sets the age by what it
/// acknowledges, the next report by what that reports. So a loss is found on the second report if
/// what was reported left as late after it as packets may be late, 10 ms here, else on the third.
/// So does the kernel (docs/fidelity.md).
#[test]
fn behind_an_ack_that_also_advances_the_second_report_begins_a_recovery_if_its_packets_left_late_enough() {
    let found_by = |gap: Span| {
        let mut sender = Sender::new(&no_handshake(), steady(10));
        sender.open(Time::ZERO);
        // A round trip of 40 ms is known.
        sender.write(Time::ZERO, MSS);
        assert!(sender.transmit(Time::ZERO).is_some());
        let mut ack = Acknowledgement {
            ack: MSS,
            echo: Time::ZERO,
            ce_count: 0,
            window: u32::MAX,
            sack: [SackBlock::default(); MAX_SACK_BLOCKS],
            sack_len: 0,
            ece: false,
            duplicate: false,
            syn: false,
            granted_rate: RateCode::ZERO,
            has_share: false,
        };
        sender.on_ack(at(40), &ack);
        // The first of two packets arrives, the second is lost; three follow later.
        let mut left = Vec::new();
        for (when, packets) in [(at(50), 2), (at(50) + gap, 3)] {
            sender.write(when, packets * MSS);
            left.extend(std::iter::from_fn(|| sender.transmit(when)));
        }
        ack.ack = 2 * MSS;
        (1..=3_u64).find(|reports| {
            let now = at(90) + gap + ms(*reports);
            ack.echo = left[1 + *reports as usize].segment.sent_at;
            ack.sack[0] = SackBlock { start: MSS as u32, end: ((1 + reports) * MSS) as u32 };
            ack.sack_len = 1;
            sender.on_ack(now, &ack);
            sender.stats().packets_lost > 0
        })
    };
    assert_eq!(found_by(ms(9)), Some(3));
    assert_eq!(found_by(ms(10)), Some(2));
}

/// After an ACK of nothing but these blocks (in bytes above what is acknowledged), of 10 packets
/// outstanding of which 2 are acknowledged.
fn sacked_by(blocks: &[(u64, u64)]) -> u32 {
    let mut sender = Sender::new(&no_handshake(), steady(10));
    sender.open(Time::ZERO);
    sender.write(Time::ZERO, 12 * MSS);
    let mut receiver = Receiver::new(&every_segment());
    for packet in std::iter::from_fn(|| sender.transmit(Time::ZERO)).take(2) {
        receiver.on_segment(at(5), &packet.segment, packet.ecn);
    }
    let mut ack = std::iter::from_fn(|| receiver.poll_ack()).last().expect("an ACK").ack;
    while sender.transmit(Time::ZERO).is_some() {}
    sender.on_ack(at(10), &ack);
    while sender.transmit(at(10)).is_some() {}
    assert_eq!(sender.stats().packets_out, 10);
    for (slot, &(start, end)) in ack.sack.iter_mut().zip(blocks) {
        *slot = SackBlock { start: start as u32, end: end as u32 };
    }
    ack.sack_len = blocks.len() as u8;
    sender.on_ack(at(11), &ack);
    sender.board.sacked()
}

#[test]
fn a_sack_block_counts_up_to_the_last_byte_sent_and_not_beyond() {
    assert_eq!(sacked_by(&[(8 * MSS, 10 * MSS)]), 2, "up to the last byte");
    assert_eq!(sacked_by(&[(8 * MSS, 10 * MSS + 1)]), 0, "one byte was never sent");
    assert_eq!(sacked_by(&[(8 * MSS, 8 * MSS)]), 0, "empty");
    assert_eq!(sacked_by(&[(9 * MSS, 8 * MSS)]), 0, "backwards");
    assert_eq!(sacked_by(&[(10 * MSS, 11 * MSS), (5 * MSS, 6 * MSS), (2 * MSS, 3 * MSS)]), 2, "the others count");
    assert_eq!(sacked_by(&[(5 * MSS, 6 * MSS + 1), (2 * MSS + 1, 3 * MSS)]), 1, "whole segments only");
}

#[test]
fn two_swapped_neighbours_cause_no_retransmission() {
    let mut pipe = Pipe::new(&no_handshake(), steady(20), &every_segment(), ms(20)).on_data(|packet, delay| {
        let late = packet.segment.number % 10 == 3;
        vec![(
            delay + if late { Span::from_micros(30) } else { Span::from_micros(packet.segment.number % 10) },
            packet.ecn,
        )]
    });
    pipe.transfer(500 * MSS);
    assert!(pipe.retransmissions().is_empty());
    assert_eq!(pipe.sender.stats().recoveries, 0);
}

#[test]
fn reordering_by_three_packets_costs_at_most_one_needless_retransmission() {
    let mut pipe = Pipe::new(&no_handshake(), steady(40), &every_segment(), ms(20)).on_data({
        // A link of 10 packets per ms; every 100th packet arrives after the three behind it.
        let mut link = Link::new(Span::from_micros(100));
        move |packet, delay| {
            let late = packet.segment.number % 100 == 57;
            let wait = link.wait(packet.segment.sent_at);
            vec![(delay + wait + if late { Span::from_micros(350) } else { Span::ZERO }, packet.ecn)]
        }
    });
    pipe.transfer(2_000 * MSS);
    assert!(pipe.retransmissions().len() <= 1, "{}", pipe.retransmissions().len());
    assert_eq!(pipe.sender.stats().undone, pipe.sender.stats().recoveries);
}

/// Linux keeps timers in ticks, all of them; the kernel's reordering timer expired that late
/// (docs/fidelity.md).
#[test]
fn ticks_round_up_what_a_probe_and_a_late_packet_wait_for() {
    let config = SenderConfig { tick: ms(4), ..no_handshake() };
    // When the first packet is sent again of 20 of which these are lost; the last ACK comes at 100
    // ms.
    let sent_again = |lost: &[u64]| {
        let mut pipe = Pipe::new(&config, steady(10), &every_segment(), ms(25)).losing(lost);
        pipe.sender.write(Time::ZERO, 20 * MSS);
        pipe.sender.finish();
        pipe.complete(1000);
        pipe.retransmissions()[0].segment.sent_at.since(at(100))
    };
    // Two round trips of 50 ms and 2 ms are 102 ms, a quarter of one and 2 ms are 14.5 ms.
    assert_eq!(sent_again(&[18, 19]), ms(104));
    assert_eq!(sent_again(&[18]), ms(16));
}

#[test]
fn the_loss_of_a_lone_packet_is_probed_after_250_ms_and_costs_one_reduction() {
    let mut pipe = Pipe::new(&no_handshake(), steady(20), &every_segment(), ms(25));
    pipe.sender.write(Time::ZERO, 400 * MSS);
    pipe.run_until(at(5_000));
    assert_eq!(pipe.sender.stats().srtt, ms(50));
    let sent = pipe.sender.stats().packets_sent;
    let mut pipe = pipe.losing(&[sent]);
    let start = pipe.now;
    pipe.sender.write(start, MSS);
    let cwnd = pipe.sender.controller().cwnd();
    pipe.run_until(start + ms(240));
    assert_eq!(pipe.sender.stats().tail_loss_probes, 0);
    pipe.run_until(start + ms(251));
    let probe = *pipe.sent.last().unwrap();
    assert!(probe.segment.retransmission);
    assert_eq!(probe.segment.sent_at, start + ms(250));
    // Linux `__tcp_retransmit_skb`: it takes the place of the packet whose fate it asks for.
    assert_eq!(pipe.sender.stats().in_flight, 1);
    // Something beyond the probe must be acknowledged for the loss to be sure.
    pipe.sender.write(pipe.now, MSS);
    pipe.run_until(start + ms(1_000));
    assert_eq!(pipe.sender.stats().timeouts, 0);
    assert_eq!(pipe.sender.controller().ssthresh(), (cwnd / 2).max(2));
    assert_eq!(pipe.sender.controller().cwnd(), (cwnd / 2).max(2));
    assert_eq!(pipe.sender.state(), SenderState::Open);
}

#[test]
fn the_loss_of_a_tail_of_several_is_probed_after_two_round_trips() {
    let mut pipe = Pipe::new(&no_handshake(), steady(10), &every_segment(), ms(25)).losing(&[18, 19]);
    pipe.sender.write(Time::ZERO, 20 * MSS);
    pipe.sender.finish();
    pipe.complete(1000);
    // Packets 18 and 19 leave at 50 ms, the last ACK comes at 100 ms.
    let probe = pipe.retransmissions()[0];
    assert_eq!(probe.segment.seq, 19 * MSS);
    assert_eq!(probe.segment.sent_at, at(100) + ms(102));
    assert_eq!(pipe.sender.stats().timeouts, 0);
}

/// The last of 20 packets is lost once. Returns how many tail loss probes and timeouts that costs.
fn lost_tail(config: &SenderConfig) -> (u64, u64) {
    let mut pipe = Pipe::new(config, steady(10), &every_segment(), ms(25)).losing(&[19]);
    pipe.transfer(20 * MSS);
    (pipe.sender.stats().tail_loss_probes, pipe.sender.stats().timeouts)
}

#[test]
fn a_lost_tail_waits_for_the_timeout_where_probes_are_off_or_losses_are_not_found_by_time() {
    assert_eq!(lost_tail(&no_handshake()), (1, 0));
    assert_eq!(lost_tail(&SenderConfig { tail_loss_probe: false, ..no_handshake() }), (0, 1));
    assert_eq!(lost_tail(&SenderConfig { loss_detection: LossDetection::NewReno, ..no_handshake() }), (0, 1));
}

/// RFC 8985 section 7.2: no probe is scheduled in recovery.
#[test]
fn a_lost_repair_at_the_end_waits_for_the_timeout_and_not_for_a_probe() {
    let mut losses = 2;
    let mut pipe = Pipe::new(&no_handshake(), steady(20), &every_segment(), ms(25)).on_data(move |packet, delay| {
        if packet.segment.seq == 0 && losses > 0 {
            losses -= 1;
            return Vec::new();
        }
        vec![(delay, packet.ecn)]
    });
    pipe.transfer(20 * MSS);
    let stats = pipe.sender.stats();
    assert_eq!((stats.recoveries, stats.tail_loss_probes, stats.timeouts), (1, 0, 1));
}

/// Linux `tcp_clean_rtx_queue`: the timers start anew with a selective ACK of a packet that left
/// before the oldest one was sent again, and not with one of a later packet.
#[test]
fn selective_acks_put_the_timeout_off_only_for_what_left_before_the_repair() {
    // The packets of a burst arrive 5 ms apart; the first one is lost, and its repairs too.
    let mut pipe = Pipe::new(&no_handshake(), steady(20), &every_segment(), ms(50)).on_data(|packet, delay| {
        let spread = packet.segment.number.min(20) * 5;
        if packet.segment.seq == 0 { Vec::new() } else { vec![(delay + ms(spread), packet.ecn)] }
    });
    pipe.sender.write(Time::ZERO, u64::MAX);
    // The third selective ACK comes after 115 ms, that of the last of the burst after 195 ms.
    pipe.run_until(at(114));
    assert!(pipe.retransmissions().is_empty());
    pipe.run_until(at(195));
    assert_eq!(pipe.retransmissions()[0].segment.sent_at, at(115));
    assert_eq!(pipe.sender.deadline(), at(195) + pipe.sender.rto());
    let due = pipe.sender.deadline();
    // Those of what left later put nothing off.
    pipe.run_until(at(290));
    assert!(pipe.sender.stats().packets_sent > 25 && pipe.acks.last().unwrap().0 > at(215));
    assert_eq!(pipe.sender.deadline(), due);
}

#[test]
fn a_probe_that_answers_a_lost_ack_is_no_sign_of_loss() {
    // All 20 packets arrive, but the ACKs of the last five are lost: the probe arrives twice.
    let silent = |ack: u64| ack > 15 * MSS && ack <= 20 * MSS;
    let mut pipe = Pipe::new(&no_handshake(), steady(20), &every_segment(), ms(50)).on_ack(move |packet, delay| {
        if silent(packet.ack.ack) && !packet.ack.duplicate { Vec::new() } else { vec![delay] }
    });
    pipe.sender.write(Time::ZERO, 20 * MSS);
    pipe.run_until(at(450));
    let stats = *pipe.sender.stats();
    assert_eq!((stats.tail_loss_probes, stats.packets_retransmitted, stats.una), (1, 1, 20 * MSS));
    pipe.sender.write(at(450), 20 * MSS);
    pipe.run_until(at(700));
    assert_eq!(pipe.sender.stats().una, 40 * MSS);
    assert!(pipe.sender.controller().cwnd() >= 20, "{}", pipe.sender.controller().cwnd());
}

#[test]
fn a_lost_retransmission_is_found_a_round_trip_later_without_a_timeout() {
    // Packet 5 and its retransmission (the 8 packets after it are sent by then) are lost.
    let mut first = true;
    let mut pipe = Pipe::new(&no_handshake(), steady(20), &every_segment(), ms(25)).on_data(move |packet, delay| {
        if packet.segment.number == 5 {
            return Vec::new();
        }
        if packet.segment.retransmission && std::mem::take(&mut first) {
            return Vec::new();
        }
        vec![(delay, packet.ecn)]
    });
    pipe.transfer(200 * MSS);
    let repairs = pipe.retransmissions();
    assert_eq!(repairs.len(), 2);
    assert_eq!(repairs[0].segment.seq, repairs[1].segment.seq);
    assert_eq!(repairs[1].segment.sent_at.since(repairs[0].segment.sent_at), ms(50));
    assert_eq!(pipe.sender.stats().timeouts, 0);
    assert_eq!(pipe.sender.stats().packets_lost, 2);
}

/// RFC 6582 section 6: duplicates of the repairs are no new losses, so recovery lasts until more
/// than it began with is acknowledged.
#[test]
fn newreno_stays_in_recovery_until_more_is_acknowledged_than_was_sent_when_it_began() {
    let config = SenderConfig { loss_detection: LossDetection::NewReno, ..no_handshake() };
    let mut pipe = Pipe::new(&config, steady(10), &every_segment(), ms(50)).losing(&[2]);
    pipe.sender.write(Time::ZERO, 10 * MSS);
    pipe.run_until(at(400));
    assert_eq!((pipe.sender.stats().una, pipe.sender.state()), (10 * MSS, SenderState::Recovery));
    pipe.sender.write(pipe.now, MSS);
    pipe.run_until(at(600));
    assert_eq!((pipe.sender.stats().una, pipe.sender.state()), (11 * MSS, SenderState::Open));
    // What was sent later ends it at once.
    let mut pipe = Pipe::new(&config, steady(10), &every_segment(), ms(50)).losing(&[2]);
    pipe.sender.write(Time::ZERO, 100 * MSS);
    pipe.run_until(at(400));
    assert_eq!((pipe.sender.stats().recoveries, pipe.sender.state()), (1, SenderState::Open));
    assert!(pipe.sender.stats().una > 20 * MSS);
}

#[test]
fn without_sack_only_acks_of_the_oldest_byte_outstanding_are_duplicates() {
    let config = SenderConfig { loss_detection: LossDetection::NewReno, ..no_handshake() };
    let mut sender = Sender::new(&config, steady(10));
    sender.open(Time::ZERO);
    sender.write(Time::ZERO, 12 * MSS);
    let mut receiver = Receiver::new(&every_segment());
    let mut acks = Vec::new();
    for packet in std::iter::from_fn(|| sender.transmit(Time::ZERO)).take(3) {
        receiver.on_segment(at(5), &packet.segment, packet.ecn);
        acks.extend(std::iter::from_fn(|| receiver.poll_ack()).map(|out| out.ack));
    }
    while sender.transmit(Time::ZERO).is_some() {}
    sender.on_ack(at(10), &acks[2]);
    for overtaken in [0, 1, 0, 1] {
        sender.on_ack(at(11), &acks[overtaken]);
    }
    assert_eq!((sender.board.sacked(), sender.state()), (0, SenderState::Open));
    sender.on_ack(at(12), &acks[2]);
    assert_eq!(sender.board.sacked(), 1);
}

/// RFC 5682 section 2, and Linux `tcp_enter_loss`: a timeout is doubted where nothing was being
/// repaired, or if it is the second in a row.
#[test]
fn a_timeout_in_recovery_is_not_doubted_unless_it_is_the_second() {
    let doubted = |repairs_lost: u32| {
        let mut losses = 1 + repairs_lost;
        let mut pipe =
            Pipe::new(&no_handshake(), steady(20), &every_segment(), ms(25)).on_data(move |packet, delay| {
                if packet.segment.seq == 0 && losses > 0 {
                    losses -= 1;
                    return Vec::new();
                }
                vec![(delay, packet.ecn)]
            });
        pipe.sender.write(Time::ZERO, 20 * MSS);
        let mut doubted = Vec::new();
        while pipe.sender.stats().una == 0 && pipe.step() {
            if doubted.len() < pipe.sender.stats().timeouts as usize {
                doubted.push(pipe.sender.recovery.f_rto);
            }
        }
        doubted
    };
    assert_eq!(doubted(1), [false]);
    assert_eq!(doubted(2), [false, true]);
}

#[test]
fn newreno_without_sack_repairs_one_hole_per_round_trip() {
    let config = SenderConfig { loss_detection: LossDetection::NewReno, ..no_handshake() };
    let mut pipe = Pipe::new(&config, steady(20), &every_segment(), ms(50)).losing(&[2, 5, 9]);
    pipe.transfer(100 * MSS);
    let repairs: Vec<_> = pipe
        .retransmissions()
        .iter()
        .map(|p| (p.segment.seq / MSS, p.segment.sent_at.as_nanos() / 1_000_000))
        .collect();
    assert_eq!(repairs, [(2, 100), (5, 200), (9, 300)]);
    assert_eq!(pipe.sender.stats().timeouts, 0);
    assert_eq!(pipe.sender.stats().recoveries, 1);
}
