//! The rules of recovery, one by one.

use flowstart_congestion::start::QuickStartConfig;
use flowstart_congestion::{AvoidanceConfig, Controller, ControllerConfig, StartConfig};
use flowstart_network::Ecn;
use flowstart_network::packet::Segment;
use flowstart_quick_start::wire::IpOption;
use flowstart_quick_start::{Carried, RateCode};
use flowstart_units::{Bytes, Span, Time};

use super::pipe::{Pipe, no_handshake, reno, steady};
use crate::{EcnMode, LossDetection, Receiver, ReceiverConfig, Reduction, SenderConfig, SenderState};

const MSS: u64 = 1448;

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

fn at(n: u64) -> Time {
    Time::ZERO + ms(n)
}

fn every_segment() -> ReceiverConfig {
    ReceiverConfig::every_segment()
}

/// A link without a limit to its queue.
struct Link {
    per_packet: Span,
    free: Time,
}

impl Link {
    fn new(per_packet: Span) -> Self {
        Self { per_packet, free: Time::ZERO }
    }

    /// Queueing and transmission time of a packet that arrives now.
    fn wait(&mut self, now: Time) -> Span {
        self.free = self.free.max(now) + self.per_packet;
        self.free.since(now)
    }
}

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

/// A sender that asks the routers for a rate; nobody on the path objects.
fn asking() -> Controller {
    let start = StartConfig::QuickStart(QuickStartConfig::default());
    Controller::new(&ControllerConfig::new(start, AvoidanceConfig::Reno))
}

#[test]
fn a_syn_with_a_request_that_is_lost_goes_out_plain_after_3_s_and_nothing_else_carries_an_option() {
    let mut lost = false;
    let mut pipe =
        Pipe::new(&SenderConfig::default(), asking(), &every_segment(), ms(30)).on_data(move |packet, delay| {
            let lose = packet.segment.syn && !std::mem::replace(&mut lost, true);
            if lose { Vec::new() } else { vec![(delay, packet.ecn)] }
        });
    pipe.sender.write(Time::ZERO, 100 * MSS);
    pipe.run_until(at(3_100));
    let options: Vec<_> = pipe.sent.iter().map(|packet| packet.segment.quick_start.option()).collect();
    assert!(matches!(options[0], Some(IpOption::Request { .. })), "{:?}", options[0]);
    assert_eq!(pipe.sent[1].segment.sent_at, at(3_000));
    assert!(options[1..].iter().all(Option::is_none), "what dropped the request would drop the report too");
    assert_eq!(pipe.sent.iter().skip(2).filter(|packet| packet.segment.sent_at == at(3_060)).count(), 10);
}

#[test]
fn a_denial_is_reported_with_the_first_data_whose_payload_makes_room_for_the_option() {
    let mut pipe = Pipe::new(&SenderConfig::default(), asking(), &every_segment(), ms(30));
    pipe.sender.write(Time::ZERO, 100 * MSS);
    pipe.pump();
    let Some(IpOption::Request { nonce, .. }) = pipe.sent[0].segment.quick_start.option() else { panic!() };
    let mut receiver = Receiver::new(&every_segment());
    // Somebody took the option away.
    let stripped = Segment { quick_start: Carried::NONE, ..pipe.sent[0].segment };
    receiver.on_segment(at(30), &stripped, Ecn::NotEct);
    pipe.sender.on_ack(at(60), &receiver.poll_ack().unwrap().ack);
    pipe.now = at(60);
    pipe.pump();
    let options: Vec<_> = pipe.sent.iter().map(|packet| packet.segment.quick_start.option()).collect();
    assert_eq!(options[1], Some(IpOption::Report { rate: RateCode::ZERO, nonce }));
    assert!(options[2..].iter().all(Option::is_none), "reported once");
    assert_eq!((pipe.sent[1].segment.payload, pipe.sent[1].bytes, pipe.sent[2].bytes), (1440, 1500, 1500));
}

/// A connection that has sent 20 packets and, while it asks in mid-connection for what 1 MB needs, does `fate` to the packet that asks.
fn asking_in_middle(fate: fn(Span, Ecn) -> Vec<(Span, Ecn)>) -> Pipe {
    let quick = QuickStartConfig { in_middle: true, ..QuickStartConfig::default() };
    let controller = ControllerConfig::new(StartConfig::QuickStart(quick), AvoidanceConfig::Reno);
    let config = SenderConfig { ecn: EcnMode::Classic, ..no_handshake() };
    let receiver = ReceiverConfig { ecn: EcnMode::Classic, ..every_segment() };
    let mut pipe = Pipe::new(&config, Controller::new(&controller), &receiver, ms(50)).on_data(move |packet, delay| {
        let asks = !packet.segment.quick_start.asked().is_zero();
        if asks { fate(delay, packet.ecn) } else { vec![(delay, packet.ecn)] }
    });
    pipe.sender.write(Time::ZERO, 20 * MSS);
    pipe.run_until(at(350));
    assert_eq!((pipe.sent.len(), pipe.sender.controller().cwnd()), (20, 30));
    pipe.sender.write(pipe.now, 700 * MSS);
    pipe.run_until(at(1_000));
    pipe
}

/// Places and kinds of the options that left.
fn options(pipe: &Pipe) -> Vec<(usize, IpOption)> {
    let options = pipe.sent.iter().map(|packet| packet.segment.quick_start.option());
    options.enumerate().filter_map(|(place, option)| Some((place, option?))).collect()
}

#[test]
fn a_request_in_mid_connection_leaves_with_the_first_new_data_and_its_report_with_the_first_of_the_phase() {
    let pipe = asking_in_middle(|delay, ecn| vec![(delay, ecn)]);
    let options = options(&pipe);
    let [(20, IpOption::Request { rate, nonce, .. }), (50, report)] = options[..] else { panic!("{options:?}") };
    // 700 packets of 1500 bytes in 100 ms.
    assert_eq!(rate.get(), 12);
    assert_eq!(report, IpOption::Report { rate, nonce });
    assert_eq!((pipe.sent[20].segment.payload, pipe.sent[20].bytes), (1440, 1500));
    let sent_at = |place: usize| pipe.sent[place].segment.sent_at;
    assert_eq!((sent_at(20), sent_at(49), sent_at(50)), (at(350), at(350), at(450)), "the old window, then the grant");
    assert!(
        sent_at(51) > sent_at(50) && sent_at(600) < at(500),
        "paced, but much faster than 30 packets per round trip"
    );
}

#[test]
fn a_request_in_mid_connection_that_is_lost_is_repaired_without_it_and_no_other_option_follows() {
    let pipe = asking_in_middle(|_, _| Vec::new());
    assert_eq!(options(&pipe).len(), 1);
    assert!(pipe.retransmissions().iter().all(|packet| packet.segment.quick_start.is_none()));
    assert_eq!(pipe.sender.stats().recoveries, 1);
}

#[test]
fn a_mark_of_the_packet_that_asks_gives_its_grant_up() {
    let pipe = asking_in_middle(|delay, _| vec![(delay, Ecn::Ce)]);
    assert_eq!(pipe.sender.stats().mark_reductions, 1);
    assert_eq!(pipe.sender.controller().start_exit().unwrap().ssthresh, 15, "half of the window without Quick-Start");
    let first = pipe.sent.iter().filter(|packet| packet.segment.sent_at < at(550)).count();
    assert!(first <= 20 + 30 + 30, "{first}: no window of hundreds");
}

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

/// Integration matrix, row 17.
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

/// Integration matrix, row 15.
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

/// Integration matrix, row 18, on the whole sender.
#[test]
fn with_half_the_window_lost_each_delivery_releases_one_packet() {
    let lost: Vec<u64> = (0..50).collect();
    let mut pipe = Pipe::new(&no_handshake(), steady(100), &every_segment(), ms(50)).losing(&lost);
    // Nothing new to send, or the first two SACKs would release a packet each before the loss is found (limited transmit).
    pipe.sender.write(Time::ZERO, 100 * MSS);
    pipe.run_until(at(149));
    assert_eq!(pipe.sender.stats().packets_lost, 50);
    // 48 deliveries from the third SACK on, one packet each: 47 + 1 stay in flight (two SACKs came before).
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
    // The last ACK comes at 100 ms; 2 * 100 + 2 ms later a new packet is the probe, the timeout comes 300 ms after that, then doubles.
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
fn f_rto_finds_the_spike_out_even_without_timestamps() {
    let (pipe, cwnd) = spike(SenderConfig { undo: false, ..no_handshake() });
    assert_eq!(pipe.sender.stats().undone, 1);
    assert!(pipe.sender.controller().cwnd() >= cwnd);
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
    // Two packets are so late that they are sent again; timestamps would tell, so the ACK that fills the hole is lost.
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

/// Integration matrix, row 19.
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
fn the_send_buffer_limits_what_is_accepted_and_what_is_outstanding() {
    let config = SenderConfig { send_buffer: Some(Bytes::new(10 * MSS)), ..no_handshake() };
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
fn ten_thousand_idle_connections_fit_into_40_megabytes() {
    let endpoints = std::mem::size_of::<crate::Sender>() + std::mem::size_of::<crate::Receiver>();
    // The scoreboard's first 16 records come on top.
    assert!(endpoints + 16 * 48 < 4_096, "{endpoints}");
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
