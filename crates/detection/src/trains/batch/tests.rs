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
    let packet =
        |number| Flying { number, sent: at(number), neighbour: 0, rtt: None, lost: number == 0, arrived: None };
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
