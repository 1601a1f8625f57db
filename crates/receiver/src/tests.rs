//! When ACKs leave and what they say.

use flowstart_network::Ecn;
use flowstart_network::packet::Segment;
use flowstart_quick_start::wire::IpOption;
use flowstart_quick_start::{Carried, Nonce};
use flowstart_units::{Bytes, Span, Time};

use crate::testing::{MSS, segment};
use crate::{AckCounting, EcnMode, OutgoingAck, Receiver, ReceiverConfig};

fn receive(receiver: &mut Receiver, now: Time, index: u64) -> Vec<OutgoingAck> {
    receiver.on_segment(now, &segment(index, now), Ecn::NotEct);
    std::iter::from_fn(|| receiver.poll_ack()).collect()
}

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

#[test]
fn a_fresh_connection_gets_16_single_acks_then_every_second_and_a_lone_segment_waits_40_ms() {
    let mut receiver = Receiver::new(&ReceiverConfig::default());
    let acked: Vec<u64> = (0..20)
        .flat_map(|i| receive(&mut receiver, Time::from_nanos(i * 120_000), i))
        .map(|packet| packet.ack.ack / MSS)
        .collect();
    let expected: Vec<u64> = (1..=16).chain([18, 20]).collect();
    assert_eq!(acked, expected);
    let lone = Time::ZERO + ms(3);
    assert!(receive(&mut receiver, lone, 20).is_empty());
    assert_eq!(receiver.deadline(), lone + ms(40));
    receiver.on_timer(lone + ms(40));
    assert_eq!(receiver.poll_ack().unwrap().ack.ack, 21 * MSS);
    assert_eq!(receiver.deadline(), Time::NEVER);
}

/// Linux 6.6 and later: bursts of three are acknowledged by two and by one, as a capture of the
/// kernel shows; before that an odd one waited for the next burst.
#[test]
fn a_pushed_segment_is_acknowledged_as_soon_as_it_is_read_and_a_short_one_too() {
    let acked = |ack_pushed, auto_read, arrives: &dyn Fn(u64) -> (u32, bool)| {
        let config =
            ReceiverConfig { ack_pushed: Some(ack_pushed), auto_read, quick_acks: 0, ..ReceiverConfig::default() };
        let mut receiver = Receiver::new(&config);
        let mut next = 0;
        let mut acks = Vec::new();
        for index in 0..9 {
            let now = Time::ZERO + Span::from_micros(340 * index);
            let (payload, push) = arrives(index);
            let segment = Segment { seq: next, payload, push, ..segment(index, now) };
            next += u64::from(payload);
            receiver.on_segment(now, &segment, Ecn::NotEct);
            acks.extend(std::iter::from_fn(|| receiver.poll_ack()).map(|_| index + 1));
        }
        acks
    };
    let bursts = |index| (MSS as u32, index % 3 == 2);
    assert_eq!(acked(true, true, &bursts), [2, 3, 5, 6, 8, 9]);
    assert_eq!(acked(false, true, &bursts), [2, 4, 6, 8]);
    assert_eq!(acked(true, false, &bursts), [0; 0], "an application that does not read asks for nothing");
    let short = |index| (if index % 3 == 2 { 1_000 } else { MSS as u32 }, false);
    assert_eq!(acked(true, true, &short), [2, 3, 5, 6, 8, 9]);
}

#[test]
fn plain_delayed_acks_leave_for_every_second_segment_or_after_40_ms() {
    let mut receiver = Receiver::new(&ReceiverConfig::every_second_segment());
    let now = Time::ZERO + ms(1);
    assert!(receive(&mut receiver, now, 0).is_empty());
    assert_eq!(receiver.deadline(), now + ms(40));
    assert_eq!(receive(&mut receiver, now + ms(39), 1).len(), 1);
    assert_eq!(receiver.deadline(), Time::NEVER);
    assert!(receive(&mut receiver, now + ms(50), 2).is_empty());
    receiver.on_timer(now + ms(90));
    let ack = receiver.poll_ack().unwrap();
    assert_eq!(ack.ack.ack, 3 * MSS);
    assert_eq!(ack.bytes, 52);
}

#[test]
fn stretch_acks_leave_for_every_fourth_segment() {
    for ack_counting in [AckCounting::Bytes, AckCounting::Packets] {
        let config = ReceiverConfig { ack_every: 4, ack_counting, quick_acks: 0, ..ReceiverConfig::default() };
        let mut receiver = Receiver::new(&config);
        let acked: Vec<u64> = (0..12)
            .flat_map(|i| receive(&mut receiver, Time::from_nanos(i * 120_000), i))
            .map(|packet| packet.ack.ack / MSS)
            .collect();
        assert_eq!(acked, [4, 8, 12]);
    }
}

#[test]
fn aggregation_merges_the_acks_of_a_while_into_one() {
    let config = ReceiverConfig { ack_aggregation: Some(ms(1)), ..ReceiverConfig::every_segment() };
    let mut receiver = Receiver::new(&config);
    let mut now = Time::ZERO;
    for i in 0..5 {
        assert!(receive(&mut receiver, now, i).is_empty());
        now += Span::from_micros(100);
    }
    assert_eq!(receiver.deadline(), Time::ZERO + ms(1));
    receiver.on_timer(Time::ZERO + ms(1));
    assert_eq!(receiver.poll_ack().unwrap().ack.ack, 5 * MSS);
    assert!(receiver.poll_ack().is_none());
    assert_eq!(receiver.deadline(), Time::NEVER);
}

#[test]
fn an_ack_is_for_so_many_merged_ones_at_most() {
    let (ack_aggregation, ack_aggregation_most) = (Some(ms(1)), Some(4));
    let config = ReceiverConfig { ack_aggregation, ack_aggregation_most, ..ReceiverConfig::every_segment() };
    let mut receiver = Receiver::new(&config);
    let acked: Vec<u64> =
        (0..10).flat_map(|i| receive(&mut receiver, Time::ZERO, i)).map(|packet| packet.ack.ack / MSS).collect();
    assert_eq!(acked, [4, 8]);
    receiver.on_timer(Time::ZERO + ms(1));
    assert_eq!(receiver.poll_ack().unwrap().ack.ack, 10 * MSS);
}

#[test]
fn out_of_order_segments_are_told_at_once_with_their_ranges_newest_first() {
    let mut receiver = Receiver::new(&ReceiverConfig::every_second_segment());
    let now = Time::ZERO;
    receive(&mut receiver, now, 0);
    let mut sizes = Vec::new();
    for index in [2, 4, 6, 8] {
        let acks = receive(&mut receiver, now, index);
        assert_eq!(acks.len(), 1);
        assert_eq!(acks[0].ack.ack, MSS);
        assert_eq!(acks[0].ack.sacked().next(), Some(index * MSS..(index + 1) * MSS));
        sizes.push(acks[0].bytes);
    }
    // 52 plus 4 + 8 per block, at most three.
    assert_eq!(sizes, [64, 72, 80, 80]);
    // The first hole filled: more holes, so at once as well.
    let acks = receive(&mut receiver, now, 1);
    assert_eq!(acks[0].ack.ack, 3 * MSS);
}

#[test]
fn filling_the_last_hole_is_told_at_once() {
    let mut receiver = Receiver::new(&ReceiverConfig::every_second_segment());
    receive(&mut receiver, Time::ZERO, 1);
    let acks = receive(&mut receiver, Time::ZERO, 0);
    assert_eq!(acks.len(), 1);
    assert_eq!(acks[0].ack.ack, 2 * MSS);
    assert_eq!(acks[0].ack.sack_len, 0);
}

#[test]
fn a_duplicate_is_reported_once_and_acknowledged_at_once() {
    let mut receiver = Receiver::new(&ReceiverConfig::every_second_segment());
    receive(&mut receiver, Time::ZERO, 0);
    receive(&mut receiver, Time::ZERO, 1);
    let acks = receive(&mut receiver, Time::ZERO, 0);
    assert!(acks[0].ack.duplicate);
    receive(&mut receiver, Time::ZERO, 2);
    assert!(!receive(&mut receiver, Time::ZERO, 3)[0].ack.duplicate);
    assert_eq!(receiver.stats().duplicates, 1);
}

#[test]
fn after_three_acks_out_of_order_ones_are_compressed_for_5_percent_of_the_rtt() {
    let config = ReceiverConfig { quick_acks: 0, ..ReceiverConfig::default() };
    let mut receiver = Receiver::new(&config);
    // A handshake of 10 ms: 5 % are 0.5 ms.
    receiver.on_segment(Time::ZERO, &Segment { syn: true, payload: 0, ..segment(0, Time::ZERO) }, Ecn::NotEct);
    assert!(receiver.poll_ack().unwrap().ack.syn);
    let now = Time::ZERO + ms(10);
    receive(&mut receiver, now, 0);
    let acks: Vec<usize> = (2..10).map(|i| receive(&mut receiver, now, i).len()).collect();
    assert_eq!(acks, [1, 1, 1, 0, 0, 0, 0, 0]);
    assert_eq!(receiver.deadline(), now + Span::from_micros(500));
    receiver.on_timer(now + Span::from_micros(500));
    assert_eq!(receiver.poll_ack().unwrap().ack.sacked().next(), Some(2 * MSS..10 * MSS));
}

#[test]
fn compression_never_hides_a_range_that_was_not_told() {
    let config = ReceiverConfig { quick_acks: 0, ..ReceiverConfig::default() };
    let mut receiver = Receiver::new(&config);
    receiver.on_segment(Time::ZERO, &Segment { syn: true, payload: 0, ..segment(0, Time::ZERO) }, Ecn::NotEct);
    assert!(receiver.poll_ack().is_some());
    let now = Time::ZERO + ms(10);
    receive(&mut receiver, now, 0);
    let mut told = std::collections::HashSet::new();
    for index in (2..100).step_by(2) {
        for ack in receive(&mut receiver, now, index) {
            told.extend(ack.ack.sacked().map(|range| range.start / MSS));
        }
    }
    receiver.on_timer(now + ms(1));
    told.extend(
        receiver.poll_ack().iter().flat_map(|ack| ack.ack.sacked().map(|range| range.start / MSS).collect::<Vec<_>>()),
    );
    assert_eq!(told, (2..100).step_by(2).collect());
}

#[test]
fn a_delayed_ack_echoes_the_earliest_segment_and_an_out_of_order_one_hides_nothing() {
    let mut receiver = Receiver::new(&ReceiverConfig::every_second_segment());
    let t = |n| Time::ZERO + ms(n);
    receive(&mut receiver, t(10), 0);
    assert_eq!(receive(&mut receiver, t(20), 1)[0].ack.echo, t(10));
    // Segment 2 is missing: what arrives behind the hole echoes the last one in order (RFC 7323
    // section 4.3, case B).
    assert_eq!(receive(&mut receiver, t(30), 3)[0].ack.echo, t(10));
    assert_eq!(receive(&mut receiver, t(40), 2)[0].ack.echo, t(40));
}

#[test]
fn classic_ecn_echoes_until_cwr() {
    let config = ReceiverConfig { ecn: EcnMode::Classic, ..ReceiverConfig::every_segment() };
    let mut receiver = Receiver::new(&config);
    let mut send = |index, ecn, cwr| {
        let data = Segment { cwr, ..segment(index, Time::ZERO) };
        receiver.on_segment(Time::ZERO, &data, ecn);
        receiver.poll_ack().unwrap().ack.ece
    };
    assert!(!send(0, Ecn::Ect0, false));
    assert!(send(1, Ecn::Ce, false));
    assert!(send(2, Ecn::Ect0, false));
    assert!(!send(3, Ecn::Ect0, true));
    // CWR on a marked segment: the mark is newer.
    assert!(send(4, Ecn::Ce, true));
}

#[test]
fn what_lies_beyond_the_window_is_not_taken_but_acknowledged_at_once() {
    let config =
        ReceiverConfig { receive_buffer: Some(Bytes::new(3 * MSS)), auto_read: false, ..ReceiverConfig::default() };
    let mut receiver = Receiver::new(&config);
    receive(&mut receiver, Time::ZERO, 0);
    // Segment 2 ends where the window ends, segment 3 begins there.
    assert_eq!(receive(&mut receiver, Time::ZERO, 3).len(), 1);
    assert_eq!((receiver.stats().outside_window, receiver.stats().packets), (1, 2));
    receive(&mut receiver, Time::ZERO, 2);
    receive(&mut receiver, Time::ZERO, 1);
    assert_eq!((receiver.delivered(), receiver.stats().outside_window), (3 * MSS, 1));
    // The application reads, and the window opens by as much.
    receiver.read(2 * MSS);
    assert_eq!(receiver.poll_ack().map(|packet| u64::from(packet.ack.window)), Some(2 * MSS));
    receive(&mut receiver, Time::ZERO, 3);
    assert_eq!(receiver.delivered(), 4 * MSS);
    // More than there is cannot be read.
    receiver.read(100 * MSS);
    assert_eq!(receiver.poll_ack().map(|packet| u64::from(packet.ack.window)), Some(3 * MSS));
}

#[test]
fn the_delay_follows_slow_segments_up_to_the_cap() {
    let mut receiver = Receiver::new(&ReceiverConfig { quick_acks: 0, ..ReceiverConfig::default() });
    let mut now = Time::ZERO;
    let mut waits = Vec::new();
    for index in 0..6 {
        assert!(receive(&mut receiver, now, index).is_empty());
        let due = receiver.deadline();
        waits.push(due.since(now).as_nanos() / 1_000_000);
        receiver.on_timer(due);
        assert!(receiver.poll_ack().is_some());
        now += ms(300);
    }
    // Each expiry doubles the delay; 200 ms is the most.
    assert_eq!(waits, [40, 80, 160, 200, 200, 200]);
}

#[test]
fn a_syn_is_answered_at_once_whether_it_asks_routers_for_a_rate_or_not() {
    for asks in [false, true] {
        let mut receiver = Receiver::new(&ReceiverConfig::every_second_segment());
        let rate = flowstart_quick_start::RateCode::MAX;
        let request = IpOption::Request { rate, ttl: 64, nonce: Nonce::new(1) };
        let quick_start = if asks { Carried::new(&request, 64) } else { Carried::NONE };
        let syn = Segment { syn: true, payload: 0, quick_start, ..segment(0, Time::ZERO) };
        receiver.on_segment(Time::ZERO + ms(5), &syn, Ecn::NotEct);
        let answer = receiver.poll_ack().unwrap();
        assert!(answer.ack.syn);
        assert_eq!(answer.ack.response().is_some(), asks);
        assert_eq!((receiver.poll_ack(), receiver.stats().packets), (None, 0));
    }
}
