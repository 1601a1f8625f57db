//! How far the window is reduced, and when that is taken back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flowstart_congestion::{
    Ack, AfterAck, Avoidance, AvoidanceConfig, Controller, ControllerConfig, Exit, ExitReason, FlowStart,
    INFINITE_SSTHRESH, Response, Signal, Start, StartConfig, Window,
};
use flowstart_network::packet::SackBlock;
use flowstart_units::{Span, Time};

use super::pipe::{Pipe, no_handshake, steady};
use super::{MSS, at, every_segment, ms};
use crate::{Receiver, Reduction, Sender, SenderConfig, SenderState};

#[test]
fn recovery_halves_the_flight_in_proportion_and_ends_at_the_threshold() {
    let mut pipe = Pipe::new(&no_handshake(), steady(100), &every_segment(), ms(50)).losing(&[0]);
    pipe.sender.write(Time::ZERO, u64::MAX);
    pipe.run_until(at(149));
    // One round later: 97 deliveries were answered by 49 or 50 packets.
    assert_eq!(pipe.sender.state(), SenderState::Recovery);
    assert_eq!(pipe.sender.controller().ssthresh(), 50);
    let sent = pipe.sender.stats().packets_sent - 100;
    assert!((49..=51).contains(&sent), "{sent}");
    pipe.run_until(at(210));
    assert_eq!(pipe.sender.state(), SenderState::Open);
    assert!((50..=51).contains(&pipe.sender.controller().cwnd()));
    assert!((50..=51).contains(&pipe.sender.stats().in_flight));
}

#[test]
fn with_half_the_window_lost_each_delivery_releases_one_packet() {
    let lost: Vec<u64> = (0..50).collect();
    let mut pipe = Pipe::new(&no_handshake(), steady(100), &every_segment(), ms(50)).losing(&lost);
    // Nothing new to send, or the first two SACKs would release a packet each before the loss is
    // found (limited transmit).
    pipe.sender.write(Time::ZERO, 100 * MSS);
    pipe.run_until(at(149));
    assert_eq!(pipe.sender.stats().packets_lost, 50);
    // 48 deliveries from the third SACK on, one packet each: 47 + 1 stay in flight (two SACKs came
    // before).
    assert_eq!(pipe.sender.stats().packets_sent, 148);
    assert_eq!(pipe.sender.stats().in_flight, 48);
    pipe.run_until(at(310));
    assert_eq!(pipe.sender.state(), SenderState::Open);
    assert!((50..=51).contains(&pipe.sender.controller().cwnd()));
}

#[test]
fn other_reductions_end_at_the_threshold_too() {
    for reduction in [Reduction::ProportionalRfc9937, Reduction::Immediate] {
        let config = SenderConfig { reduction, ..no_handshake() };
        let mut pipe = Pipe::new(&config, steady(100), &every_segment(), ms(50)).losing(&[0, 3, 17]);
        pipe.sender.write(Time::ZERO, u64::MAX);
        pipe.run_until(at(260));
        assert_eq!(pipe.sender.state(), SenderState::Open);
        assert!((50..=52).contains(&pipe.sender.controller().cwnd()), "{}", pipe.sender.controller().cwnd());
        assert_eq!(pipe.sender.stats().packets_retransmitted, 3);
    }
}

#[test]
fn a_timeout_leaves_one_packet_and_doubles() {
    // Everything is lost from packet 10 on, for 2 s.
    let mut pipe = Pipe::new(&no_handshake(), steady(10), &every_segment(), ms(50)).on_data(|packet, delay| {
        let outage = packet.segment.number >= 10 && packet.segment.sent_at < at(2_000);
        if outage { Vec::new() } else { vec![(delay, packet.ecn)] }
    });
    pipe.sender.write(Time::ZERO, 60 * MSS);
    pipe.sender.finish();
    pipe.run_until(at(1_900));
    let times: Vec<u64> = pipe.retransmissions().iter().map(|p| p.segment.sent_at.as_nanos() / 1_000_000).collect();
    // The last ACK comes at 100 ms; 2 * 100 + 2 ms later a new packet is the probe, the timeout
    // comes 300 ms after that, then doubles.
    assert_eq!(pipe.sender.stats().tail_loss_probes, 1);
    assert_eq!(times, [602, 1202]);
    assert_eq!(pipe.sender.stats().timeouts, 2);
    assert_eq!(pipe.sender.rto(), ms(1200));
    assert_eq!(pipe.sender.state(), SenderState::Loss);
    assert_eq!(pipe.sender.controller().ssthresh(), 5);
    assert_eq!(pipe.sender.controller().cwnd(), 1);
    pipe.complete(10_000);
    assert_eq!(pipe.receiver.delivered(), 60 * MSS);
}

/// A start with a window of ten that no loss ends, but a timeout, or this time for this reason.
#[derive(Clone)]
struct Pardoning(Time, ExitReason);

impl FlowStart for Pardoning {
    fn on_ack(&mut self, ack: &Ack, _: &mut Window) -> AfterAck {
        if ack.now < self.0 {
            return AfterAck::Continue;
        }
        AfterAck::Done(Exit { reason: self.1, cwnd: 10, ssthresh: 10, rate: None })
    }

    fn grow(&mut self, _: &Ack, _: &mut Window) -> u32 {
        0
    }

    fn on_signal(&mut self, _: Time, signal: Signal, _: &mut Window) -> Response {
        if signal == Signal::Timeout { Response::Leave } else { Response::Ignore }
    }
}

fn pardoning(until: Time, reason: ExitReason) -> Controller {
    let config = ControllerConfig::new(StartConfig::SlowStart, AvoidanceConfig::Reno);
    Controller::join(Start::External(Box::new(Pardoning(until, reason))), Avoidance::new(&config), &config)
}

/// Packets 0 and 10 are lost, the second of them found missing a round trip later.
#[test]
fn losses_that_end_a_start_that_pardoned_those_before_are_answered_in_the_same_recovery() {
    let (loss, limit) = (ExitReason::Loss, ExitReason::Limit);
    for (until, reason, ssthresh, recoveries) in
        [(150, loss, 5, 2), (150, limit, 10, 1), (1_000, loss, INFINITE_SSTHRESH, 1)]
    {
        let mut pipe =
            Pipe::new(&no_handshake(), pardoning(at(until), reason), &every_segment(), ms(50)).losing(&[0, 10]);
        pipe.sender.write(Time::ZERO, u64::MAX);
        pipe.run_until(at(150));
        assert_eq!((pipe.sender.state(), pipe.sender.stats().packets_lost), (SenderState::Recovery, 1));
        pipe.run_until(at(250));
        assert_eq!((pipe.sender.state(), pipe.sender.stats().packets_lost), (SenderState::Recovery, 2));
        assert_eq!((pipe.sender.controller().ssthresh(), pipe.sender.stats().recoveries), (ssthresh, recoveries));
    }
}

/// Packet 0 is lost twice: the start pardons the first time and leaves for another reason than
/// losses. The avoidance answers the second, or a recovery that repairs in vain would never end.
#[test]
fn a_repair_lost_after_the_start_that_pardoned_is_answered_in_the_same_recovery() {
    for (until, ssthresh, recoveries) in [(150, 5, 2), (1_000, INFINITE_SSTHRESH, 1)] {
        let controller = pardoning(at(until), ExitReason::Isolation);
        let mut pipe = Pipe::new(&no_handshake(), controller, &every_segment(), ms(50)).on_data(|packet, delay| {
            let lost = packet.segment.seq == 0 && packet.segment.sent_at < at(150);
            if lost { Vec::new() } else { vec![(delay, packet.ecn)] }
        });
        pipe.sender.write(Time::ZERO, u64::MAX);
        pipe.run_until(at(150));
        assert_eq!((pipe.sender.state(), pipe.sender.stats().packets_lost), (SenderState::Recovery, 1));
        pipe.run_until(at(250));
        assert_eq!((pipe.sender.state(), pipe.sender.stats().packets_lost), (SenderState::Recovery, 2));
        assert_eq!((pipe.sender.controller().ssthresh(), pipe.sender.stats().recoveries), (ssthresh, recoveries));
    }
}

/// Nothing was reduced when the recovery began. The next timeout has its own answer, as ever.
#[test]
fn a_timeout_in_a_recovery_that_reduced_nothing_is_a_signal() {
    // The first packet is lost, and so is all that leaves once that is known.
    let mut pipe = Pipe::new(&no_handshake(), pardoning(Time::NEVER, ExitReason::Limit), &every_segment(), ms(50))
        .on_data(|packet, delay| {
            let lost = packet.segment.number == 0 || packet.segment.sent_at >= at(100);
            if lost { Vec::new() } else { vec![(delay, packet.ecn)] }
        });
    pipe.sender.write(Time::ZERO, u64::MAX);
    pipe.run_until(at(200));
    assert_eq!((pipe.sender.state(), pipe.sender.stats().recoveries), (SenderState::Recovery, 1));
    assert!(pipe.sender.controller().start_exit().is_none());
    pipe.run_until(at(2_000));
    assert_eq!(pipe.sender.stats().timeouts, 2);
    let exit = pipe.sender.controller().start_exit().map(|exit| (exit.reason, exit.cwnd, exit.ssthresh));
    assert_eq!(exit, Some((ExitReason::Timeout, 10, 5)));
    assert_eq!(pipe.sender.controller().ssthresh(), 5, "the second timeout is no other");
}

#[test]
fn the_timer_is_set_for_the_doubled_timeout_before_the_repair_has_left() {
    let mut pipe = Pipe::new(&no_handshake(), steady(10), &every_segment(), ms(50))
        .on_data(|packet, delay| if packet.segment.number >= 10 { Vec::new() } else { vec![(delay, packet.ecn)] });
    pipe.sender.write(Time::ZERO, 60 * MSS);
    pipe.run_until(at(601));
    let (now, rto) = (pipe.sender.deadline(), pipe.sender.rto());
    pipe.sender.on_timer(now);
    assert_eq!((now, pipe.sender.rto()), (at(602), rto * 2));
    assert_eq!(pipe.sender.deadline(), now + rto * 2);
}

/// The original of a packet that was sent again arrives before its repair; this long after it left.
fn late(undo: bool) -> Pipe {
    let config = SenderConfig { undo, f_rto: false, ..no_handshake() };
    let mut pipe = Pipe::new(&config, steady(20), &every_segment(), ms(25)).on_data(|packet, delay| {
        let late = packet.segment.number == 0;
        vec![(if late { ms(65) } else { delay }, packet.ecn)]
    });
    pipe.sender.write(Time::ZERO, 20 * MSS);
    pipe
}

/// RFC 3522: the timestamp that the ACK echoes is older than the repair, so that it was needless.
/// No duplicate report is waited for.
#[test]
fn a_late_original_undoes_the_reduction_by_its_timestamp_alone() {
    let mut pipe = late(true);
    pipe.run_until(at(60));
    assert_eq!((pipe.sender.stats().recoveries, pipe.sender.controller().ssthresh()), (1, 10));
    // The original arrives at 65 ms; the repair, at 75 ms, would be reported twice 25 ms later.
    pipe.run_until(at(91));
    assert_eq!((pipe.sender.stats().undone, pipe.sender.stats().spurious_retransmissions), (1, 0));
    assert!(pipe.sender.controller().cwnd() >= 20 && pipe.sender.controller().ssthresh() >= 20);
    let mut pipe = late(false);
    pipe.run_until(at(300));
    assert_eq!((pipe.sender.stats().undone, pipe.sender.stats().spurious_retransmissions), (0, 1));
    assert!(pipe.sender.controller().cwnd() < 20);
}

/// A sender in recovery that has sent the oldest of ten packets again, and perhaps the last one as
/// a probe. Five are acknowledged, and so many repairs are reported to have arrived twice.
fn reported(outstanding_probe: bool, reports: u32) -> Sender {
    let mut sender = Sender::new(&SenderConfig { f_rto: false, ..no_handshake() }, steady(10));
    sender.open(Time::ZERO);
    sender.write(Time::ZERO, 10 * MSS);
    let sent: Vec<_> = std::iter::from_fn(|| sender.transmit(Time::ZERO)).collect();
    let mut receiver = Receiver::new(&every_segment());
    receiver.on_segment(at(5), &sent[0].segment, sent[0].ecn);
    let mut ack = receiver.poll_ack().unwrap().ack;
    let mut told = |sender: &mut Sender, now, una: u64, sacked: Option<(u64, u64)>, duplicate| {
        (ack.ack, ack.echo, ack.duplicate) = (una * MSS, at(now), duplicate);
        ack.sack_len = u8::from(sacked.is_some());
        if let Some((start, end)) = sacked {
            ack.sack[0] = SackBlock { start: ((start - una) * MSS) as u32, end: ((end - una) * MSS) as u32 };
        }
        sender.on_ack(at(now), &ack);
    };
    if outstanding_probe {
        let due = sender.deadline();
        sender.on_timer(due);
        assert_eq!(sender.transmit(due).map(|packet| packet.segment.seq), Some(9 * MSS));
    }
    told(&mut sender, 2_000, 0, Some((1, 4)), false);
    assert_eq!(sender.state(), SenderState::Recovery);
    // Before anything was sent again nothing can have arrived twice.
    told(&mut sender, 2_000, 0, Some((1, 5)), false);
    assert_eq!((sender.state(), sender.stats().undone), (SenderState::Recovery, 0));
    assert_eq!(sender.transmit(at(2_000)).map(|packet| packet.segment.seq), Some(0));
    for _ in 1..reports {
        told(&mut sender, 2_010, 0, Some((1, 5)), true);
    }
    told(&mut sender, 2_020, 5, None, reports > 0);
    sender
}

/// RFC 3708: a reduction whose repairs have all arrived twice was needless, even if the recovery
/// has not ended.
#[test]
fn a_reduction_is_taken_back_once_every_repair_was_reported_twice() {
    for (probe, reports, undone) in [(false, 0, 0), (false, 1, 1), (true, 1, 0), (true, 2, 1)] {
        let sender = reported(probe, reports);
        assert_eq!(sender.stats().undone, undone, "{probe} {reports}");
        let state = if undone == 0 { SenderState::Recovery } else { SenderState::Open };
        assert_eq!(sender.state(), state, "{probe} {reports}");
    }
}

/// A delay spike without a loss.
fn spike(config: SenderConfig) -> (Pipe, u32) {
    let mut pipe = Pipe::new(&config, steady(20), &every_segment(), ms(25)).on_data(|packet, delay| {
        let left = packet.segment.sent_at;
        // What leaves between 300 and 900 ms is held until 1 s.
        let held = if left > at(300) && left < at(900) { at(1_000).since(left) } else { Span::ZERO };
        vec![(delay + held, packet.ecn)]
    });
    pipe.sender.write(Time::ZERO, u64::MAX);
    pipe.run_until(at(290));
    let cwnd = pipe.sender.controller().cwnd();
    pipe.run_until(at(1_400));
    (pipe, cwnd)
}

#[test]
fn a_delay_spike_costs_a_probe_and_one_retransmission_and_the_window_is_restored() {
    let (pipe, cwnd) = spike(no_handshake());
    assert_eq!(pipe.sender.stats().timeouts, 1);
    assert!(pipe.sender.stats().packets_retransmitted <= 2, "{:?}", pipe.sender.stats());
    assert_eq!(pipe.sender.stats().undone, 1);
    assert!(pipe.sender.controller().cwnd() >= cwnd);
    assert_eq!(pipe.sender.state(), SenderState::Open);
    assert!(pipe.sender.controller().ssthresh() >= cwnd * 3 / 4);
}

#[test]
fn a_reduction_that_is_taken_back_leaves_three_quarters_of_the_window_as_threshold() {
    // Congestion avoidance for 6 s, so that three quarters of the window are more than the
    // threshold.
    let mut pipe = Pipe::new(&no_handshake(), steady(8), &every_segment(), ms(25)).on_data(|packet, delay| {
        let left = packet.segment.sent_at;
        let held = if left > at(6_000) && left < at(6_600) { at(6_700).since(left) } else { Span::ZERO };
        vec![(delay + held, packet.ecn)]
    });
    pipe.sender.write(Time::ZERO, u64::MAX);
    pipe.run_until(at(6_150));
    let cwnd = pipe.sender.controller().cwnd();
    assert!(cwnd > 60);
    pipe.run_until(at(6_800));
    assert_eq!((pipe.sender.stats().timeouts, pipe.sender.stats().undone), (1, 1));
    assert_eq!(pipe.sender.controller().ssthresh(), (cwnd >> 1) + (cwnd >> 2));
}

#[test]
fn f_rto_finds_the_spike_out_even_without_timestamps() {
    let (pipe, cwnd) = spike(SenderConfig { undo: false, ..no_handshake() });
    assert_eq!(pipe.sender.stats().undone, 1);
    assert!(pipe.sender.controller().cwnd() >= cwnd);
}

/// RFC 5682 section 2.1 step 3: a duplicate ACK after new data says that the loss was real; an
/// original that comes later no longer changes that.
#[test]
fn f_rto_ends_with_the_first_ack_out_of_order_behind_new_data() {
    let config = SenderConfig { undo: false, ..no_handshake() };
    let mut pipe = Pipe::new(&config, steady(20), &every_segment(), ms(25)).on_data(|packet, delay| {
        let left = packet.segment.sent_at;
        match packet.segment.number {
            // Held until two new packets behind the timeout have been told of.
            19 => vec![(at(512).since(left), packet.ecn)],
            number if number >= 5 && left < at(300) => Vec::new(),
            _ => vec![(delay, packet.ecn)],
        }
    });
    pipe.sender.write(Time::ZERO, u64::MAX);
    pipe.run_until(at(560));
    let stats = pipe.sender.stats();
    assert_eq!((stats.timeouts, stats.undone), (1, 0), "{stats:?}");
    assert_eq!(pipe.sender.state(), SenderState::Loss);
    assert!(pipe.sender.controller().cwnd() < 20);
}

#[test]
fn without_f_rto_and_undo_a_spike_costs_the_window() {
    let (pipe, cwnd) = spike(SenderConfig { undo: false, f_rto: false, ..no_handshake() });
    assert_eq!(pipe.sender.stats().undone, 0);
    assert!(pipe.sender.controller().cwnd() < cwnd);
    assert!(pipe.sender.stats().packets_retransmitted > 2);
}

#[test]
fn d_sacks_for_all_retransmissions_undo_the_reduction() {
    // Two packets are so late that they are sent again; timestamps would tell, so the ACK that
    // fills the hole is lost.
    let mut pipe = Pipe::new(&no_handshake(), steady(40), &every_segment(), ms(25)).on_data(|packet, delay| {
        let late = matches!(packet.segment.number, 60 | 61);
        vec![(delay + if late { ms(40) } else { Span::ZERO }, packet.ecn)]
    });
    pipe.sender.write(Time::ZERO, 400 * MSS);
    pipe.sender.finish();
    pipe.complete(100_000);
    assert_eq!(pipe.sender.stats().recoveries, 1);
    assert_eq!(pipe.sender.stats().undone, 1);
    assert_eq!(pipe.sender.stats().spurious_retransmissions, 2);
    assert!(pipe.sender.controller().cwnd() >= 40);
}

/// A start that adds up the losses that it is told of.
#[derive(Clone, Debug)]
struct Counting(Arc<AtomicU64>);

impl FlowStart for Counting {
    fn on_ack(&mut self, ack: &Ack, _: &mut Window) -> AfterAck {
        self.0.fetch_add(u64::from(ack.newly_lost()), Ordering::Relaxed);
        AfterAck::Continue
    }

    fn grow(&mut self, _: &Ack, _: &mut Window) -> u32 {
        0
    }

    fn on_signal(&mut self, _: Time, _: Signal, _: &mut Window) -> Response {
        Response::Ignore
    }
}

/// Of three packets the first is lost: two SACKs are no proof, and a timer finds it.
#[test]
fn losses_found_by_a_timer_are_told_with_the_next_ack_and_once() {
    for lost in [vec![0], (0..10).step_by(2).collect::<Vec<u64>>()] {
        let heard = Arc::new(AtomicU64::new(0));
        let config = ControllerConfig::new(StartConfig::SlowStart, AvoidanceConfig::Reno);
        let start = Start::External(Box::new(Counting(Arc::clone(&heard))));
        let controller = Controller::join(start, Avoidance::new(&config), &config);
        let written = if lost.len() == 1 { 3 } else { 10 };
        // One of the packets that are written later, which SACKs find.
        let later = written + lost.len() as u64 + 2;
        let mut pipe = Pipe::new(&no_handshake(), controller, &every_segment(), ms(50))
            .losing(&[lost.as_slice(), &[later]].concat());
        pipe.sender.write(Time::ZERO, written * MSS);
        pipe.run_until(at(1_000));
        assert_eq!((pipe.sender.stats().timeouts, pipe.sender.stats().una), (0, pipe.sender.stats().next));
        let losses = pipe.sender.stats().packets_lost;
        assert_eq!((heard.load(Ordering::Relaxed), losses), (losses, lost.len() as u64));
        pipe.sender.write(at(1_000), 10 * MSS);
        pipe.run_until(at(2_000));
        let losses = pipe.sender.stats().packets_lost;
        assert_eq!((heard.load(Ordering::Relaxed), losses), (losses, lost.len() as u64 + 1));
    }
}
