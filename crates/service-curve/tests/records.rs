//! Measurements from files.

use std::fmt::Write as _;

use flowstart_service_curve::{
    AdaptiveLoop, AdaptiveLoopConfig, ConstantRate, End, Error, Passed, Probability, ProbeConfig, ProbeVerdict, Record,
    RecordError, Undecided, estimate_records, probe_rate, read_csv, write_csv,
};
use flowstart_units::{Bytes, Rate, Span, Time};

fn config() -> ProbeConfig {
    ProbeConfig {
        samples: 50,
        epsilon: Probability::FIVE_PERCENT,
        warm_up: Span::from_secs(1),
        ..ProbeConfig::default()
    }
}

/// Send and receive times of two trains through the adaptive window loop, and delays of the second.
fn trains() -> (String, Vec<Span>) {
    let (mut text, mut last) = ("rate_bps,sent_ns,received_ns\n".to_owned(), Vec::new());
    for packets_per_second in [500_u64, 2_000] {
        let rate = Rate::from_bps(packets_per_second * 12_000);
        let times = ConstantRate::new(rate, config().packet);
        let flow = AdaptiveLoop::new(AdaptiveLoopConfig::default(), times.clone(), 7).unwrap();
        last.clear();
        for (sent, delay) in times.zip(flow.delays()).take(60_000) {
            writeln!(text, "{},{},{}", rate.as_bps(), sent.as_nanos(), (sent + delay).as_nanos()).unwrap();
            last.push(delay);
        }
    }
    (text, last)
}

#[test]
fn a_file_gives_the_same_estimate_as_the_delays_themselves() {
    let (text, delays) = trains();
    let found = estimate_records(read_csv(text.as_bytes()).unwrap(), None, &config()).unwrap();
    assert_eq!(found.probes.len(), 2);
    let direct = probe_rate(Rate::from_bps(24_000_000), delays, &config()).unwrap();
    assert_eq!((found.probes[1].verdict, &found.probes[1].samples), (direct.verdict, &direct.samples));
    assert_eq!(found.end, End::AllAccepted);
    assert_eq!(found.curve.origin(), Some(Span::from_millis(5)));
}

/// A server of 1 Mbit/s that is offered 1.2: whatever the size of messages, it was watched for 500
/// s at least, by the end of which the last has waited for 100 s, and served what it serves.
#[test]
fn the_size_of_messages_is_that_of_the_file() {
    for bytes in [100_u64, 1448, 1500, 9000] {
        let (rate, takes) = (Rate::from_bps(1_200_000), Rate::from_bps(1_000_000));
        let (gap, takes) = (rate.transmission_time(Bytes::new(bytes)), takes.transmission_time(Bytes::new(bytes)));
        let count = Span::from_secs(700).whole(gap);
        let rows = (0..count).map(|number| {
            let (sent, received) = (Time::ZERO + gap * number, Time::ZERO + takes * (number + 1));
            Ok(Record { rate: Some(rate), sent, received, passed: None })
        });
        let found = estimate_records(rows, None, &config()).unwrap();
        let [probe] = &found.probes[..] else { panic!("{found:?}") };
        assert_eq!(probe.verdict, ProbeVerdict::NonStationary, "{bytes} bytes");
        let watched = probe.measured.as_secs_f64();
        assert!((490.0..700.0).contains(&watched), "{bytes} bytes: {watched} s");
        let served = probe.served.as_ref().and_then(|served| served.rate()).expect("what it was served");
        assert!((served / 1e6 - 1.0).abs() < 1e-3, "{bytes} bytes: {served}");
    }
}

/// Two of three are served, and of the third nothing is written: the others are never late for
/// more than a second, so the rate would be accepted.
#[test]
fn a_rate_of_whose_messages_too_many_are_missing_is_refused() {
    let rate = Rate::from_bps(1_200_000);
    let gap = rate.transmission_time(Bytes::new(1_500));
    let rows = |is_there: fn(u64) -> bool, late: fn(u64) -> u64| {
        let count = Span::from_secs(200).whole(gap);
        let row = move |number: u64| {
            let due = Time::ZERO + gap * number;
            let sent = due + Span::from_micros(late(number));
            Ok(Record {
                rate: Some(rate),
                sent,
                received: due + Span::from_micros(20_000 + number * 7919 % 997),
                passed: None,
            })
        };
        (0..count).filter(move |number| is_there(*number)).map(row)
    };
    let third = estimate_records(rows(|number| number % 3 > 0, |_| 0), None, &config()).unwrap_err();
    assert_eq!(third, RecordError::Missing(rate, 66));
    assert!(third.to_string().contains("has 66 % of the messages that a train of 1.2 Mbit/s has"), "{third}");
    let pause = |number: u64| !(8_000..12_000).contains(&number);
    assert_eq!(estimate_records(rows(pause, |_| 0), None, &config()).unwrap_err(), RecordError::Missing(rate, 80));
    // A few are nothing, nor are messages that are written early and late.
    for (is_there, late) in [
        ((|number| number % 50 > 0) as fn(u64) -> bool, (|_| 0) as fn(u64) -> u64),
        (|_| true, |number| number * 31 % 9_000),
    ] {
        let found = estimate_records(rows(is_there, late), None, &config()).unwrap();
        assert_eq!(found.accepted().len(), 1);
    }
}

/// Gaps as of a Poisson process, of a mean of 2.3168 ms.
fn at_random(seed: u64, count: u64) -> impl Iterator<Item = Record> {
    let mut random = flowstart_random::SplitMix64::for_part(seed, 0);
    let mut sent = Time::ZERO;
    (0..count).map(move |_| {
        sent += Span::from_secs_f64(-2.3168e-3 * (1.0 - random.unit()).ln());
        let received = sent + Span::from_micros(20_000 + random.below(997) as u64);
        Record { rate: Some(Rate::from_bps(5_000_000)), sent, received, passed: None }
    })
}

/// By the mean of a thousand random gaps three of fifty such trains had "92 %" of their messages.
#[test]
fn a_train_with_random_gaps_is_not_missing_anything_because_its_first_ones_were_short() {
    for seed in 0..300 {
        let found = estimate_records(at_random(seed, 30_000).map(Ok), None, &config());
        assert_eq!(found.map(|found| found.accepted().len()), Ok(1), "seed {seed}");
    }
    // Of which a third is missing at random, after a while or in the middle.
    for seed in 0..20 {
        let from = [2_000, 9_000][seed as usize % 2];
        let lost = |(number, _): &(u64, Record)| *number < from || number * 7919 % 3 > 0;
        let some = (0..).zip(at_random(seed, 30_000)).filter(lost).map(|(_, record)| Ok(record));
        let refused = estimate_records(some, None, &config()).map(drop).unwrap_err();
        assert!(matches!(refused, RecordError::Missing(_, 55..=80)), "{refused:?}");
    }
}

/// Two messages with every tick of a timer.
#[test]
fn messages_that_are_handed_over_in_pairs_are_all_there() {
    let row = |number: u64| {
        let sent = Time::ZERO + Span::from_millis(5) * (number / 2);
        let received = sent + Span::from_micros(20_000 + number * 7919 % 997);
        Ok(Record { rate: Some(Rate::from_mbps(5)), sent, received, passed: None })
    };
    let found = estimate_records((0..60_000).map(row), None, &config()).unwrap();
    assert_eq!(found.accepted().len(), 1, "{:?}", found.probes[0].verdict);
}

#[test]
fn a_rate_that_is_not_whole_does_not_take_those_beside_it_with_it() {
    let rate = |mbps: u64| Rate::from_bps(mbps * 1_000_000);
    let row = move |mbps: u64, number: u64| {
        let sent = Time::ZERO + rate(mbps).transmission_time(Bytes::new(1_500)) * number;
        let received = sent + Span::from_micros(20_000 + number * 7919 % 997);
        Ok(Record { rate: Some(rate(mbps)), sent, received, passed: None })
    };
    let train = |mbps: u64| (0..mbps * 10_000).map(move |number| (mbps, number));
    let whole = |(mbps, number): &(u64, u64)| *mbps != 2 || number % 3 > 0;
    let rows = train(1).chain(train(2)).chain(train(3)).filter(whole).map(|(mbps, number)| row(mbps, number));
    let found = estimate_records(rows, None, &config()).unwrap();
    let accepted: Vec<Rate> = found.accepted().iter().map(|probe| probe.rate).collect();
    assert_eq!(accepted, [rate(1), rate(3)]);
    assert_eq!(found.probes[1].verdict, ProbeVerdict::Undecided(Undecided::Missing { percent: 66 }));
}

#[test]
fn a_packet_is_received_only_when_all_before_it_are() {
    let mut text = "sent_s,received_s\n".to_owned();
    for n in 0..100 {
        // Every second packet overtakes the one before it.
        let delay = if n % 2 == 0 { 0.8 } else { 0.1 };
        writeln!(text, "{n}.0,{:.1}", f64::from(n) + delay).unwrap();
    }
    text.push_str("100,109\n101,102\n");
    let epsilon = Probability::new(0.1).unwrap();
    let config = ProbeConfig { samples: 10, epsilon, warm_up: Span::ZERO, ..ProbeConfig::default() };
    let rate = Some(Rate::from_bps(12_000));
    let found = estimate_records(read_csv(text.as_bytes()).unwrap(), rate, &config).unwrap();
    assert_eq!(found.probes.len(), 1);
    // The last two both come at 109.
    let all = "sent_s,received_s\n100,109\n101,102\n";
    let one = ProbeConfig { samples: 10, sampling_packets: 1, warm_up: Span::from_secs(1), ..config };
    let found = estimate_records(read_csv(all.as_bytes()).unwrap(), rate, &one).unwrap();
    assert_eq!(found.probes[0].samples, vec![Span::from_secs(8)]);
}

#[test]
fn files_that_cannot_be_are_refused_with_the_row() {
    let read = |text: &str, rate| {
        estimate_records(read_csv(text.as_bytes()).unwrap(), rate, &config()).map(|found| found.probes.len())
    };
    let rate = Some(Rate::from_mbps(1));
    assert_eq!(read("sent_s,received_s\n1,2\n", None), Err(RecordError::NoRate));
    assert_eq!(read("sent_s,received_s\n1,2\n1,0\n", rate), Err(RecordError::ReceivedBeforeSent(2)));
    assert_eq!(read("sent_s,received_s\n1,2\n0,2\n", rate), Err(RecordError::OutOfOrder(2)));
    // The sender's clock counts since the machine was started, the receiver's since 1970.
    let clocks = read("sent_s,received_s\n5000,5001\n5001,1700000000\n", rate).unwrap_err();
    let said = "row 2: received 19676 days after it was sent; both clocks must agree, and units, too";
    assert_eq!(clocks.to_string(), said);
    assert_eq!(read("sent_s,received_s\n1,86401\n", rate), Ok(1), "a day");
    let between = "sent_s,left_s,arrived_s,received_s\n1,2,3,4\n2,,,5\n";
    assert_eq!(read(between, rate), Ok(1));
    assert_eq!(read(&format!("{between}3,4,7,6\n"), rate), Err(RecordError::NotBetween(3)));
    assert_eq!(read(&format!("{between}3,2,5,6\n"), rate), Err(RecordError::NotBetween(3)));
    assert!(matches!(read("sent_s,received_s\n1,2\nx,2\n", rate), Err(RecordError::NotANumber(2, ..))));
    assert_eq!(read("sent_s,received_s,rate_bps\n1,2,0\n", rate), Err(RecordError::RateZero(1)));
    assert_eq!(read("sent_s,received_s\n", rate), Ok(0));
    assert_eq!(read("sent_s,received_s\n1,1\n1,1\n", rate), Ok(1), "no delay, and two at once");
    // A new train may begin before the end of the last.
    assert_eq!(read("sent_s,received_s,rate_bps\n5,6,1\n1,2,2\n", rate), Ok(2));
}

/// Two probes whose rows stand in the order of time: each row would be a train of its own, and
/// sixteen thousand took gigabytes.
#[test]
fn rates_that_take_turns_in_a_file_are_refused() {
    let row = |number: u64, turns: u64| Record {
        rate: Some(Rate::from_mbps(1 + number / turns % 2)),
        sent: Time::from_nanos(number * 1_000_000),
        received: Time::from_nanos(number * 1_000_000 + 5_000_000),
        passed: None,
    };
    let read = |count: u64, turns: u64| {
        estimate_records((0..count).map(|number| Ok(row(number, turns))), None, &config())
            .map(|found| found.probes.len())
    };
    assert_eq!(read(2_000, 2), Ok(1_000));
    let refused = read(u64::MAX, 2).unwrap_err();
    assert_eq!(refused, RecordError::TooManyTrains(2_001));
    assert!(refused.to_string().ends_with("all rows of a rate must stand together"), "{refused}");
}

/// Whose delays grow by nothing but that: the rate would be too high.
#[test]
fn a_train_whose_messages_were_all_sent_at_one_time_is_refused() {
    let rate = Rate::from_mbps(1);
    let row = |number: u64| Record {
        rate: Some(rate),
        sent: Time::ZERO,
        received: Time::from_nanos(number * 12_000_000),
        passed: None,
    };
    let refused = estimate_records((0..100_000).map(|number| Ok(row(number))), None, &config()).unwrap_err();
    assert_eq!(refused, RecordError::AtOnce(rate));
}

#[test]
fn records_are_written_as_they_are_read_with_the_ends_of_the_network_or_without() {
    let at = |ms: u64| Time::ZERO + Span::from_millis(ms);
    let whole = Record {
        rate: Some(Rate::from_mbps(2)),
        sent: at(1),
        received: at(9),
        passed: Some(Passed { left: at(2), arrived: at(7) }),
    };
    // Nobody saw when this one left.
    let partly = Record { sent: at(3), received: at(12), passed: None, ..whole };
    let text = |ends| {
        let mut text = Vec::new();
        write_csv(&mut text, [whole, partly], ends).unwrap();
        String::from_utf8(text).unwrap()
    };
    assert_eq!(text(false), "rate_bps,sent_ns,received_ns\n2000000,1000000,9000000\n2000000,3000000,12000000\n");
    let lines = "2000000,1000000,2000000,7000000,9000000\n2000000,3000000,,,12000000\n";
    assert_eq!(text(true), format!("rate_bps,sent_ns,left_ns,arrived_ns,received_ns\n{lines}"));
}

#[test]
fn every_constant_of_a_probe_has_a_smallest_value() {
    let changed = |change: fn(&mut ProbeConfig)| {
        let mut config = config();
        change(&mut config);
        config.validate()
    };
    assert_eq!(changed(|config| config.packet = Bytes::new(1)), Ok(()));
    assert_eq!(changed(|config| config.growth = 2), Ok(()));
    assert_eq!(changed(|config| config.max_thinning = 1), Ok(()));
    assert_eq!(changed(|config| config.sampling_packets = 1), Ok(()));
    let field = |change| match changed(change) {
        Err(Error::InvalidConfig(field, _)) => field,
        other => panic!("{other:?}"),
    };
    assert_eq!(field(|config| config.packet = Bytes::ZERO), "packet");
    assert_eq!(field(|config| config.samples = 9), "samples");
    assert_eq!(field(|config| config.growth = 1), "growth");
    assert_eq!(field(|config| config.max_thinning = 0), "max_thinning");
    assert_eq!(field(|config| config.sampling_packets = 0), "sampling_packets");
}
