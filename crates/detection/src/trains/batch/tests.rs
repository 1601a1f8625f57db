//! What becomes of losses.

use flowstart_units::{Span, Time};

use super::{Arrangement, Batch, Context, Flying, Next};
use crate::TrainProbeConfig;

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

/// A train of 300 packets of a millisecond, behind 10 earlier packets, the first of which was lost.
fn train() -> (Context, Batch) {
    let mut context = Context::new(&TrainProbeConfig::default(), 1);
    (context.began, context.service) = (Some(at(0)), Some(Span::from_millis(1)));
    context.sides[0].smallest = Some(Span::from_millis(10));
    context.sides[1].open = true;
    let packet = |number| Flying {
        number,
        sent: at(number),
        neighbour: 0,
        rtt: None,
        lost: number == 0,
        arrived: None,
        newest: Span::ZERO,
    };
    context.sides[0].flying.extend((0..310).map(packet));
    let batch = Batch::plan(&mut context, Arrangement::Spaced, 300, at(20), 10);
    (context, batch)
}

#[test]
fn what_was_lost_before_a_batch_is_no_loss_of_its_own() {
    let (mut context, batch) = train();
    assert_eq!((batch.lost(&context, 0), batch.lost_share(&context)), (0, 0.0));
    context.sides[0].flying[10].lost = true;
    assert_eq!((batch.lost(&context, 0), batch.lost_share(&context)), (1, 1.0 / 300.0));
}

/// Forty were queued: bursts of half as many again, and two, overflow that; so do those of as many
/// as the batch had, if it had fewer. Fewer that arrived than were queued are what a buffer holds.
#[test]
fn bursts_are_half_as_many_again_as_a_buffer_was_seen_to_hold() {
    for (length, arrived, bursts) in [(300, 100, 62), (50, 100, 50), (300, 30, 47)] {
        let (mut context, mut batch) = train();
        context.sides[0].flying[10].lost = true;
        (batch.losses, batch.length, batch.highest) = (true, length, Span::from_millis(40));
        (0..arrived).for_each(|number| _ = batch.arrivals.add(at(40 + number), 10 + number));
        let next = batch.next(&mut context, at(100));
        assert_eq!(next, Next::Batch { arrangement: Arrangement::Bursts, length: bursts }, "{length} {arrived}");
    }
}

/// An eighth of a round trip of ten milliseconds is the limit.
#[test]
fn where_packets_are_held_back_for_long_a_batch_that_has_arrived_is_over_without_what_follows() {
    let held_back_for = |micros: u64| {
        let mut context = Context::new(&TrainProbeConfig::default(), 1);
        (context.began, context.service) = (Some(at(0)), Some(Span::from_micros(50)));
        context.sides[0].smallest = Some(Span::from_millis(10));
        context.sides[0].reordering = Span::from_micros(micros);
        context.uneven = Span::from_millis(5);
        let batch = Batch::plan(&mut context, Arrangement::Spaced, 5, at(0), 0);
        let packets = batch.trains * batch.length;
        (context.sides[0].sent, context.sides[1].sent) = (packets.into(), batch.lone_ends);
        let arrive = |batch: &mut Batch, numbers: std::ops::Range<u32>| {
            numbers.for_each(|number| _ = batch.arrivals.add(at(20 + u64::from(number)), number.into()));
        };
        (context, batch, packets, arrive)
    };
    let (mut context, mut batch, packets, arrive) = held_back_for(1_250);
    arrive(&mut batch, 0..packets);
    context.sides[1].sent -= 1;
    assert!(!batch.has_arrived(&context), "a lone packet has not left");

    let (context, mut batch, packets, arrive) = held_back_for(1_249);
    assert!(batch.lone_ends > 0);
    arrive(&mut batch, 0..packets);
    assert!(!batch.has_arrived(&context), "others may have made delays vary");

    let (mut context, mut batch, packets, arrive) = held_back_for(1_250);
    arrive(&mut batch, 0..packets - 1);
    assert!(!batch.has_arrived(&context), "one is missing");
    arrive(&mut batch, packets - 1..packets);
    assert!(batch.has_arrived(&context));
    let lone = |number| Flying {
        number,
        sent: at(0),
        neighbour: 0,
        rtt: None,
        lost: false,
        arrived: None,
        newest: Span::ZERO,
    };
    context.sides[1].flying.push_back(lone(batch.lone_ends));
    assert!(batch.has_arrived(&context), "it only follows");
    context.sides[1].flying.push_front(lone(batch.lone_ends - 1));
    assert!(!batch.has_arrived(&context), "a lone packet is missing");
}

/// Seen behind a way back that bunches ACKs: the same forty packets were sent ten times, and slow
/// start was far ahead by then.
#[test]
fn more_of_the_same_does_not_follow_where_only_a_long_train_can_answer() {
    let next = |service: u64, sent: u64| {
        let mut context = Context::new(&TrainProbeConfig::default(), 1);
        (context.began, context.service) = (Some(at(0)), Some(Span::from_micros(service)));
        context.sides[0].smallest = Some(Span::from_millis(10));
        context.sides[1].open = true;
        let mut batch = Batch::plan(&mut context, Arrangement::AtOnce, 10, at(20), 8);
        context.sides[0].sent = sent;
        (8..38).for_each(|number| _ = batch.arrivals.add(at(30 + number), number));
        (batch.weighed, batch.highest) = (true, Span::from_millis(1));
        batch.next(&mut context, at(80))
    };
    let sustained = |length| Next::Batch { arrangement: Arrangement::Sustained, length };
    // Two for each of thirty and two that followed, or what slow start has sent by now.
    assert_eq!(next(199, 40), sustained(64));
    assert_eq!(next(199, 65), sustained(66), "even");
    assert_eq!(next(200, 40), Next::Batch { arrangement: Arrangement::Spaced, length: 10 });
}

/// Seen with ACKs for four packets over short slots: two lone packets waited for the next two, and
/// their ACK had the RTT of those, which met no queue.
#[test]
fn a_lone_packet_whose_ack_is_that_of_one_that_left_later_tells_nothing() {
    for (newest, tells) in [(0, true), (1_000, true), (1_001, false)] {
        let (mut context, mut batch) = train();
        let packet = |rtt, newest| Flying {
            number: 7,
            sent: at(7),
            neighbour: 7,
            rtt: Some(Span::from_millis(rtt)),
            lost: false,
            arrived: Some(at(7 + rtt)),
            newest: Span::from_micros(newest),
        };
        context.sides[0].flying[7] = packet(20, 0);
        batch.weigh_delay(&mut context, packet(20, 0), packet(11, 0), Some(packet(11, newest)));
        assert_eq!(context.evidence.error_if_isolated() < 0.5, tells, "{newest}");
        assert_eq!(batch.weighed, tells);
    }
}

/// Seen over QUIC with 10 % of packets lost: a sender stood still for 25 ms, five pairs of lone
/// packets left at once, and each waited behind the ones before it in a queue of its own.
#[test]
fn lone_packets_that_left_at_once_with_others_tell_nothing() {
    for (micros, tells) in [(0, false), (99, false), (100, true)] {
        let (mut context, mut batch) = train();
        let lone = |number: u64, micros: u64, rtt| Flying {
            number,
            sent: at(7) + Span::from_micros(micros),
            neighbour: 7,
            rtt: Some(Span::from_millis(rtt)),
            lost: false,
            arrived: Some(at(7 + rtt)),
            newest: Span::ZERO,
        };
        context.sides[0].smallest = Some(Span::from_millis(10));
        context.service = Some(Span::from_millis(1));
        let neighbour = Flying { sent: at(7) + Span::from_micros(micros), ..lone(7, 0, 20) };
        context.sides[0].flying[7] = neighbour;
        // A packet takes a millisecond.
        context.lone_left = Some(at(7));
        let pair = [lone(2, micros, 20), lone(3, micros, 21)];
        batch.weigh_delay(&mut context, neighbour, pair[0], Some(pair[1]));
        assert_eq!(context.evidence.error_if_isolated() > 0.5, tells, "{micros}");
    }
}

#[test]
fn of_lone_packets_that_left_at_once_the_first_ones_tell() {
    let (mut context, mut batch) = train();
    let packet = |number, rtt| Flying {
        number,
        sent: at(7),
        neighbour: 7,
        rtt: Some(Span::from_millis(rtt)),
        lost: false,
        arrived: Some(at(7 + rtt)),
        newest: Span::ZERO,
    };
    context.sides[0].flying[7] = packet(7, 20);
    context.sides[1].flying.extend([packet(0, 11), packet(1, 12), packet(2, 21), packet(3, 22)]);
    batch.weigh(&mut context);
    // A tenth of the neighbour's delay of ten milliseconds.
    assert_eq!((context.sides[1].flying.len(), context.evidence.mean_ratio()), (0, 0.1));
}
