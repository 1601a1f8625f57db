use super::*;

fn usual() -> FindingsConfig {
    FindingsConfig::default()
}

fn train(acked: &[Option<u64>]) -> Vec<Packet> {
    let packet = |(number, acked): (usize, &Option<u64>)| Packet {
        number: number as u64,
        at: Time::ZERO,
        bytes: 1480,
        part: Part::Train(0),
        acked: acked.map(|at| Time::ZERO + Span::from_micros(at)),
        direct: acked.is_some(),
    };
    acked.iter().enumerate().map(packet).collect()
}

#[test]
fn a_trains_rate_is_what_arrived_after_its_first_packet() {
    // 1480 bytes in 1.184 ms are 10 Mbit/s.
    let even = train(&[Some(5_000), Some(6_184), Some(7_368), Some(8_552)]);
    assert_eq!(rate(&even, 0), Some(10_000_000));
    assert_eq!(rate(&even, 2), Some(10_000_000));
    // A gap in the middle is of the train: what was lost took the bottleneck no time.
    assert_eq!(rate(&train(&[Some(5_000), None, Some(6_184), Some(7_368)]), 0), Some(10_000_000));
    // Two of one ACK: nobody knows when the first of them arrived.
    assert_eq!(rate(&train(&[Some(5_000), Some(5_000), Some(6_184), Some(7_368)]), 0), Some(10_000_000));
    assert_eq!(rate(&train(&[Some(5_000), Some(5_000)]), 0), None);
    assert_eq!(rate(&train(&[Some(5_000), None, None, Some(6_184)]), 0), None);
}

#[test]
fn a_bucket_is_seen_where_trains_slow_down_and_not_where_they_are_even() {
    let slows: Vec<Option<u64>> =
        (0..24u64).map(|n| Some(if n <= 10 { 100 * n } else { 1000 + 1000 * (n - 10) })).collect();
    let (after, bucket) = burst(&usual(), &[train(&slows), train(&slows)]).unwrap();
    assert_eq!(after, 10);
    // 11 packets, less a tenth for tokens that came meanwhile.
    assert!((14_000..=15_000).contains(&bucket.bytes), "{bucket:?}");
    assert_eq!(rate(&train(&slows), after), Some(11_840_000));
    let even: Vec<Option<u64>> = (0..24u64).map(|n| Some(100 * n + n % 3 * 20)).collect();
    assert_eq!(burst(&usual(), &[train(&even), train(&even)]), None);
    // One alone, or one of two.
    assert_eq!(burst(&usual(), &[train(&slows)]), None);
    assert_eq!(burst(&usual(), &[train(&slows), train(&even)]), None);
}

#[test]
fn what_waited_for_a_later_ack_says_nothing_of_when_it_arrived() {
    let mut late = train(&[Some(5_000), Some(6_184), Some(7_368), Some(8_552), Some(90_000)]);
    late[4].direct = false;
    assert_eq!(rate(&late, 0), Some(10_000_000));
    // Of one ACK the newest was there at once.
    let mut merged = train(&[Some(5_000), Some(7_368), Some(7_368), Some(8_552)]);
    merged[1].direct = false;
    assert_eq!(rate(&merged, 0), Some(10_000_000));
}

/// Eight packets from a time on, so many microseconds apart, the last so much later.
fn eight(from: u64, apart: u64, later: u64) -> Vec<Packet> {
    train(&(0..8).map(|n| Some(from + apart * n + if n == 7 { later } else { 0 })).collect::<Vec<_>>())
}

/// Rates of trains of which others would have been held up by a bucket, too, if one was.
#[test]
fn a_train_that_was_held_up_does_not_count_if_a_later_one_that_was_fast_asked_more_of_any_bucket() {
    let borne = |trains: &[Vec<Packet>]| {
        let seen: Vec<(Time, u64)> = trains.iter().flat_map(|train| arrivals(train)).collect();
        let mut rates: Vec<(u64, &Vec<Packet>)> =
            trains.iter().map(|train| (rate(train, skipped(&usual(), train, 0)).unwrap(), train)).collect();
        rates.sort_unstable_by_key(|(rate, _)| *rate);
        borne_out(&usual(), &rates, &seen)
    };
    // 1480 bytes in 0.1 ms; what is held up by 2 ms is four times slower.
    let held = eight(0, 100, 2_000);
    let group = |from: u64| [eight(from, 100, 0), eight(from + 800, 100, 0)];
    let later = [vec![held.clone()], group(50_000).to_vec(), group(100_000).to_vec()].concat();
    assert_eq!(borne(&later), [118_400_000; 4]);
    // Behind as many as before it, the bucket may have been empty.
    let last = eight(101_600, 100, 2_000);
    assert_eq!(borne(&[group(50_000).to_vec(), group(100_000).to_vec(), vec![last]].concat()), [0; 0]);
    // One in three is too many.
    assert_eq!(borne(&[vec![held], group(50_000).to_vec()].concat()), [0; 0]);
}

#[test]
fn losses_are_the_buffers_where_the_queue_is_longest() {
    let late = train(&[Some(1_000), Some(2_000), Some(3_000), Some(4_000), None, None, None]);
    let early = train(&[Some(1_000), None, None, None, Some(4_000)]);
    let (smallest, queue) = (Span::from_micros(900), Span::from_micros(3_100));
    assert!(overflowed(&usual(), &[late], smallest, queue));
    assert!(!overflowed(&usual(), &[early], smallest, queue));
}
