//! What a recording makes of packets.

use flowstart_network::packet::{Body, Segment};
use flowstart_network::{DropReason, Ecn, Packet};
use flowstart_quick_start::Carried;
use flowstart_simulator::Observer;
use flowstart_units::{Span, Time};

use super::*;

const RTT: Span = Span::from_millis(32);

fn ms(n: u64) -> Time {
    Time::ZERO + Span::from_millis(n)
}

/// 1000 bytes of payload.
fn data(flow: FlowId, seq: u64, retransmission: bool) -> Packet {
    let segment = Segment {
        seq,
        number: 0,
        sent_at: Time::ZERO,
        unacknowledged: 0,
        payload: 1000,
        retransmission,
        push: false,
        fin: false,
        cwr: false,
        syn: false,
        quick_start: Carried::default(),
    };
    Packet { flow, bytes: 1052, ecn: Ecn::Ect0, body: Body::Segment(segment) }
}

/// Flow 1 is new, flow 0 was there before.
fn newcomers() -> Recording<Newcomers> {
    let link = LinkAsked { link: 0, overhead: 0 };
    Recording::new(Asked::newcomers(link, 1..2, ms(1000), RTT, RTT * 40, RTT * 12))
}

#[test]
fn the_clock_starts_when_data_of_a_new_flow_reaches_the_bottleneck() {
    let mut recording = newcomers();
    recording.arrived(ms(1000), 0, &data(0, 0, false), 0, 0);
    recording.arrived(ms(1001), 1, &data(1, 0, false), 0, 0);
    assert_eq!(recording.origin(), None);
    recording.sent(ms(1002), &data(1, 0, false));
    recording.arrived(ms(1003), 0, &data(1, 0, false), 0, 0);
    recording.arrived(ms(1009), 0, &data(1, 1000, false), 0, 0);
    assert_eq!(recording.origin(), Some(ms(1003)));
    // What left before that counts as sent at 0.
    assert_eq!(recording.flows()[1].sent.bytes()[0], 1052);
    assert_eq!(recording.flows()[1].payload_sent, 1000);
}

#[test]
fn waits_are_kept_from_ten_round_trips_before_the_newcomers_on() {
    let mut recording = newcomers();
    for arrived in [679, 680, 900] {
        recording.transmitted(ms(arrived + 1), 0, &data(0, 0, false), ms(arrived), ms(arrived + 2));
    }
    let waits: Vec<Time> = recording.waits().iter().map(|wait| wait.arrived).collect();
    assert_eq!(waits, [ms(680), ms(900)]);
    assert!(!recording.is_new(0) && recording.is_new(1));
}

#[test]
fn a_repaired_segment_is_carried_and_a_needless_copy_is_a_duplicate() {
    let mut recording = newcomers();
    recording.arrived(ms(1000), 0, &data(1, 0, false), 0, 0);
    recording.dropped(ms(1000), 0, &data(1, 0, false), Some(DropReason::Full));
    recording.transmitted(ms(1040), 0, &data(1, 0, true), ms(1040), ms(1040));
    recording.transmitted(ms(1050), 0, &data(1, 0, true), ms(1050), ms(1050));
    let flow = &recording.flows()[1];
    assert_eq!(flow.egress.bytes().iter().sum::<u64>(), 1052);
    assert_eq!((flow.duplicate_bytes, flow.dropped_in_start, flow.dropped_later), (1052, 1, 0));
}

#[test]
fn what_a_loss_process_takes_is_no_drop_of_the_queue() {
    let mut recording = newcomers();
    recording.arrived(ms(1000), 0, &data(1, 0, false), 0, 0);
    recording.dropped(ms(1001), 0, &data(1, 0, false), None);
    recording.dropped(ms(1001), 0, &data(1, 1000, false), Some(DropReason::Full));
    let drops = recording.bottleneck().map(|link| link.drops().by(RTT));
    assert_eq!((drops, recording.flows()[1].dropped()), (Some(1), 2));
}

#[test]
fn a_transfers_waits_are_those_of_its_packets_at_its_link() {
    let mut recording: Recording<TransferWaits> = Recording::new(Asked::waits(0, [1..2, 0..0]));
    for (link, flow, waited) in [(0, 0, 9), (0, 1, 3), (1, 1, 9), (0, 1, 2)] {
        recording.transmitted(ms(waited), link, &data(flow, 0, false), ms(0), ms(20));
        recording.sent(ms(0), &data(flow, 0, false));
    }
    let link = recording.bottleneck().unwrap();
    assert_eq!(
        (link.wait_quantile(0.0), link.wait_quantile(1.0)),
        (Some(Span::from_millis(2)), Some(Span::from_millis(3)))
    );
    assert!(recording.flows().is_empty(), "nobody asked about flows");
}

/// Three portions of packets of two flows, of whom one reads at once and the other, which lost its
/// first packet, only after a portion and a half; every seventh is dropped.
fn play(recording: &mut Recording<SamplesAndPackets>, mut after: impl FnMut(usize)) {
    let numbered = |flow, number: u64| {
        let mut packet = data(flow, number * 1000, false);
        if let Body::Segment(segment) = &mut packet.body {
            segment.number = number;
        }
        packet
    };
    let waits_until = PORTION * 3 / 2;
    for number in 0..PORTION * 3 {
        let (now, place) = (ms(number as u64), number as u64 / 2);
        let (flow, packet) = ((number % 2) as FlowId, numbered((number % 2) as FlowId, place));
        recording.written(now, flow, (place + 1) * 1000);
        recording.sent(now, &packet);
        if number % 7 == 1 {
            recording.dropped(now, 0, &packet, None);
        } else {
            recording.received(now, &packet);
            if flow == 0 || number >= waits_until {
                recording.delivered(now, flow, (place + 1) * 1000);
            }
        }
        after(number);
    }
}

#[test]
fn packets_are_handed_on_when_nothing_changes_any_more_and_are_the_same_then() {
    let asked = || Asked::tables(Span::ZERO, true);
    let rows = |portions: Vec<Vec<PacketRecord>>| {
        let all: Vec<String> = portions.into_iter().flatten().map(|row| format!("{row:?}")).collect();
        all
    };
    let mut kept = Recording::new(asked());
    play(&mut kept, |_| ());
    let kept = kept.into_packets().unwrap().into_portions();
    assert!(kept[..kept.len() - 1].iter().all(|portion| portion.len() == PORTION));
    let (to, from) = std::sync::mpsc::channel();
    let mut recording = Recording::new(asked());
    recording.hand_on_packets(to);
    let mut handed_on = Vec::new();
    play(&mut recording, |number| {
        handed_on.extend(from.try_iter());
        // The first packets of who does not read, and a portion is not over before the next.
        let expected = if number < PORTION * 2 { 0 } else { 2 };
        assert_eq!(handed_on.len(), expected, "{number}");
    });
    handed_on.extend(recording.into_packets().unwrap().into_portions());
    assert!(from.try_iter().next().is_none());
    assert!(rows(handed_on) == rows(kept));
}
