//! Asking the routers for a rate (Quick-Start).

use flowstart_congestion::start::QuickStartConfig;
use flowstart_congestion::{AvoidanceConfig, Controller, ControllerConfig, StartConfig};
use flowstart_network::Ecn;
use flowstart_network::packet::Segment;
use flowstart_quick_start::wire::IpOption;
use flowstart_quick_start::{Carried, RateCode};
use flowstart_units::{Span, Time};

use super::pipe::{Pipe, no_handshake};
use super::{MSS, at, every_segment, ms};
use crate::{EcnMode, Receiver, ReceiverConfig, SenderConfig};

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
    assert_eq!([0, 1].map(|syn| pipe.sent[syn].segment.retransmission), [false, true]);
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

/// A connection that has sent 20 packets and, while it asks in mid-connection for what 1 MB needs,
/// does `fate` to the packet that asks.
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

/// How many requests leave in mid-connection if the application writes this, with a window of 30
/// packets open.
fn requests_for(writes: &[u64]) -> usize {
    let quick = QuickStartConfig { in_middle: true, ..QuickStartConfig::default() };
    let controller = ControllerConfig::new(StartConfig::QuickStart(quick), AvoidanceConfig::Reno);
    let mut pipe = Pipe::new(&no_handshake(), Controller::new(&controller), &every_segment(), ms(50));
    pipe.sender.write(Time::ZERO, 20 * MSS);
    pipe.run_until(at(350));
    for bytes in writes {
        pipe.sender.write(pipe.now, *bytes);
        pipe.pump();
    }
    pipe.run_until(at(500));
    options(&pipe).iter().filter(|(_, option)| matches!(option, IpOption::Request { .. })).count()
}

#[test]
fn a_rate_is_asked_for_only_if_the_window_is_too_small_and_one_at_a_time() {
    assert_eq!(requests_for(&[30 * MSS]), 0);
    assert_eq!(requests_for(&[30 * MSS + 1]), 1);
    assert_eq!(requests_for(&[700 * MSS]), 1);
    assert_eq!(requests_for(&[5 * MSS, 700 * MSS]), 1);
    assert_eq!(requests_for(&[700 * MSS, 700 * MSS]), 1, "the answer to the first is not there");
    assert_eq!(requests_for(&[30 * MSS, 700 * MSS]), 0, "no room is left to ask in");
    // The beginning is no middle: there the SYN asks, or nobody.
    let quick = QuickStartConfig { in_middle: true, ..QuickStartConfig::default() };
    let controller = ControllerConfig::new(StartConfig::QuickStart(quick), AvoidanceConfig::Reno);
    let mut pipe = Pipe::new(&no_handshake(), Controller::new(&controller), &every_segment(), ms(50));
    pipe.sender.write(Time::ZERO, 700 * MSS);
    pipe.pump();
    assert_eq!((pipe.sent.len(), options(&pipe).len()), (10, 0));
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
fn every_packet_of_rcp_asks_and_tells_the_round_trip_time_and_silence_of_the_routers_is_slow_start() {
    let controller =
        Controller::new(&ControllerConfig::new(StartConfig::Rcp(Default::default()), AvoidanceConfig::Reno));
    let mut pipe = Pipe::new(&SenderConfig::default(), controller, &every_segment(), ms(30)).losing(&[3]);
    pipe.sender.write(Time::ZERO, 50 * MSS);
    pipe.sender.finish();
    pipe.run_until(at(2_000));
    assert!(pipe.sender.is_complete() && !pipe.retransmissions().is_empty());
    assert!(pipe.sent.iter().all(|packet| packet.segment.quick_start.asks_for_share()), "retransmissions too");
    assert_eq!(pipe.sent[0].segment.quick_start.rtt(), None);
    let first = &pipe.sent[1];
    assert_eq!((first.segment.payload, first.bytes, first.segment.quick_start.rtt()), (1440, 1500, Some(ms(60))));
    // Nobody lowered what was asked for: that is no answer.
    assert!(pipe.acks.iter().all(|(_, out)| out.ack.share().is_none()));
    let windows = pipe.sent.iter().filter(|packet| packet.segment.sent_at == at(60)).count();
    assert_eq!(windows, 10, "the initial window at once");
}

#[test]
fn the_rate_that_routers_tell_is_on_every_ack_until_they_fall_silent() {
    let segment = |number: u64, share: Option<u64>| {
        let mut quick_start = Carried::asking_for_share(Some(ms(60)));
        share.into_iter().for_each(|mbps| quick_start.pass_sharing(flowstart_units::Rate::from_mbps(mbps)));
        let mut pipe = Pipe::new(&no_handshake(), asking(), &every_segment(), ms(30));
        pipe.sender.write(Time::ZERO, 10 * MSS);
        pipe.pump();
        Segment { quick_start, ..pipe.sent[number as usize].segment }
    };
    let mut receiver = Receiver::new(&every_segment());
    let mut told = |number, share| {
        receiver.on_segment(at(number), &segment(number, share), Ecn::NotEct);
        let acks: Vec<_> = std::iter::from_fn(|| receiver.poll_ack()).map(|out| (out.ack.share(), out.bytes)).collect();
        acks
    };
    let mbps = |mbps| Some(flowstart_units::Rate::from_mbps(mbps));
    assert_eq!(told(0, Some(10)), [(mbps(10), 60)]);
    assert_eq!(told(1, Some(5)), [(mbps(5), 60)]);
    assert_eq!(told(2, None), [(None, 52)]);
}
