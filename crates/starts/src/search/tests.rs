use super::*;
use flowstart_control::testing::{ack, sent};
use proptest::prelude::*;

const BIN: Span = Span::from_millis(35);

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

fn search() -> Search {
    Search::new(&SearchConfig::default(), 10, 1000)
}

/// An ACK of `bytes`.
fn delivery(now: Time, bytes: u64, rtt: Span) -> Ack {
    Ack { now, acked_bytes: bytes, acked: (bytes / 1000) as u32, rtt: Some(rtt), ..ack(1) }
}

/// A flow whose clock began at 100 ms with an RTT of 100 ms.
fn started(config: &SearchConfig) -> (Search, Time) {
    let mut search = Search::new(config, 10, 1000);
    let start = Time::ZERO + ms(100);
    assert_eq!(search.on_ack(&delivery(start, 0, ms(100)), &mut Window::new(10)), AfterAck::Continue);
    (search, start)
}

/// Sends and delivers `bytes` in every bin, `sent[i]` and `delivered[i]`; the RTT is always the
/// same.
fn bins(search: &mut Search, start: Time, rtt: Span, sent_bytes: &[u64], delivered: &[u64]) -> Vec<AfterAck> {
    let mut window = Window::new(500);
    let mut verdicts = Vec::new();
    for (i, (sent_bytes, delivered)) in sent_bytes.iter().zip(delivered).enumerate() {
        let now = start + BIN * (i as u64 + 1) + Span::from_nanos(1);
        search.sent_bytes += sent_bytes;
        verdicts.push(search.on_ack(&delivery(now, *delivered, rtt), &mut window));
    }
    verdicts
}

#[test]
fn the_look_back_is_an_rtt_in_whole_bins_and_hundredths() {
    assert_eq!(SearchConfig::default().bin(ms(100)), BIN);
    assert_eq!(look_back(ms(100), BIN), (2, 85));
    assert_eq!(look_back(ms(200), BIN), (5, 71));
}

#[test]
fn delivery_that_follows_sending_does_not_lag() {
    let (mut search, start) = started(&SearchConfig::default());
    let verdicts = bins(&mut search, start, ms(100), &[1000; 40], &[1000; 40]);
    assert!(verdicts.iter().all(|verdict| *verdict == AfterAck::Continue));
    let current = search.bins.unwrap().current;
    assert_eq!(current, 40);
    assert_eq!(search.acked.between(30, 40), 10_000);
    assert_eq!(search.sent.between(current - 12, current - 2), 10_000);
    assert_eq!(search.last_lag(), Some(0));
}

#[test]
fn a_lag_of_26_percent_ends_slow_start() {
    assert_eq!(lag_percent(100_000, 74_001), Some(25));
    assert_eq!(lag_percent(100_000, 74_000), Some(26));
    assert_eq!(lag_percent(0, 5), None, "nothing was sent, nothing can be said");
    for (delivered, leaves) in [(7_401, false), (7_400, true)] {
        let (mut search, start) = started(&SearchConfig::default());
        let verdicts = bins(&mut search, start, ms(100), &[10_000; 30], &[delivered; 30]);
        let exit = Exit { reason: ExitReason::DeliveryLag, cwnd: 500, ssthresh: 500, rate: None };
        assert_eq!(verdicts.contains(&AfterAck::Done(exit)), leaves, "{delivered}");
    }
}

#[test]
fn a_bin_is_complete_after_its_end() {
    let (mut search, start) = started(&SearchConfig::default());
    search.on_ack(&delivery(start + BIN, 1000, ms(100)), &mut Window::new(10));
    assert_eq!(search.bins.unwrap().current, 0);
    search.on_ack(&delivery(start + BIN + Span::from_nanos(1), 1000, ms(100)), &mut Window::new(10));
    assert_eq!(search.bins.unwrap().current, 1);
    assert_eq!(search.bins.unwrap().end, start + BIN * 2);
}

#[test]
fn eleven_bins_without_an_ack_forget_everything_and_ten_do_not() {
    for (passed, kept) in [(10, true), (11, false)] {
        let (mut search, start) = started(&SearchConfig::default());
        bins(&mut search, start, ms(100), &[1000; 20], &[1000; 20]);
        let late = search.bins.unwrap().end + BIN * (passed - 1) + Span::from_nanos(1);
        search.on_ack(&delivery(late, 1000, ms(100)), &mut Window::new(10));
        assert_eq!(search.bins.map(|bins| bins.current), kept.then_some(20 + passed));
    }
}

#[test]
fn nothing_is_judged_before_a_window_and_a_look_back_have_passed() {
    let (mut search, start) = started(&SearchConfig::default());
    bins(&mut search, start, ms(100), &[1000; 12], &[0; 12]);
    assert_eq!(search.last_lag(), None, "bin 12 looks back to bin 10, whose interpolation needs a bin before bin 0");
    bins(&mut search, start + BIN * 12, ms(100), &[1000], &[0]);
    assert!(search.last_lag().is_some());
}

#[test]
fn an_rtt_of_fifteen_bins_cannot_be_looked_back_over() {
    for (rtt, judged) in [(BIN * 15 - Span::from_nanos(1), true), (BIN * 15, false)] {
        let (mut search, start) = started(&SearchConfig::default());
        bins(&mut search, start, rtt, &[1000; 40], &[1000; 40]);
        assert_eq!(search.last_lag().is_some(), judged);
    }
}

#[test]
fn a_bin_without_acks_has_the_total_of_the_one_before() {
    let (mut search, start) = started(&SearchConfig::default());
    bins(&mut search, start, ms(100), &[1000; 5], &[1000; 5]);
    search.on_ack(&delivery(start + BIN * 9 + Span::from_nanos(1), 4000, ms(100)), &mut Window::new(10));
    let totals: Vec<u64> = (5..=9).map(|bin| search.acked.at(bin)).collect();
    assert_eq!(totals, [5000, 5000, 5000, 5000, 9000]);
}

#[test]
fn draining_sends_one_packet_for_sixteen_delivered_until_the_target_is_in_flight() {
    let config = SearchConfig { drain: true, ..SearchConfig::default() };
    let (mut search, start) = started(&config);
    let verdicts = bins(&mut search, start, ms(100), &[20_000; 13], &[10_000; 13]);
    assert!(verdicts.iter().all(|verdict| *verdict == AfterAck::Continue));
    // Three bins of 10 packets are one RTT.
    assert_eq!(search.drain.map(|drain| drain.target), Some(30));
    let mut window = Window::new(500);
    let mut in_flight: u32 = 500;
    let now = start + BIN * 14;
    let mut delivered = 0;
    let exit = loop {
        delivered += 1;
        in_flight -= 1;
        let ack = Ack { now, in_flight, ..ack(1) };
        let verdict = search.on_ack(&ack, &mut window);
        assert_eq!(search.grow(&ack, &mut window), 0, "no growth");
        in_flight = in_flight.max(window.cwnd);
        if let AfterAck::Done(exit) = verdict {
            break exit;
        }
    };
    assert_eq!(exit, Exit { reason: ExitReason::DeliveryLag, cwnd: 30, ssthresh: 30, rate: None });
    assert!((delivered as u32).abs_diff(470 * 16 / 15) <= 2, "{delivered} delivered for 470 less in flight");
}

#[test]
fn the_target_of_the_drain_is_never_below_the_initial_window() {
    let mut search = search();
    search.initial_window = 10;
    let bins = Bins { initial_rtt: ms(100), length: BIN, current: 0, end: Time::ZERO };
    assert_eq!(search.empty_path(&bins), 10);
}

#[test]
fn constants_out_of_range_are_refused_and_harmless() {
    let default = SearchConfig::default();
    assert_eq!(default.validate(), Ok(()));
    for config in [
        SearchConfig { window_percent: 0, ..default },
        SearchConfig { bins: 0, ..default },
        SearchConfig { extra_bins: 0, ..default },
        SearchConfig { threshold_percent: 0, ..default },
        SearchConfig { threshold_percent: 101, ..default },
        SearchConfig { drain_divisor: 1, ..default },
    ] {
        assert!(config.validate().is_err(), "{config:?}");
        assert_eq!(config.in_range().validate(), Ok(()), "{config:?}");
        let (mut search, start) = started(&config);
        bins(&mut search, start, ms(100), &[1000; 40], &[500; 40]);
    }
}

proptest! {
    #[test]
    fn totals_of_the_last_bins_are_those_a_full_history_has(steps in prop::collection::vec((1u64..400, 0u64..3, 0u64..3), 1..200)) {
        let config = SearchConfig { threshold_percent: 100, ..SearchConfig::default() };
        let (mut search, mut now) = started(&config);
        let mut history: Vec<(Time, u64, u64)> = Vec::new();
        let mut number = 0;
        for (wait, packets, acked) in steps {
            now += ms(wait);
            for _ in 0..packets {
                search.on_sent(&sent(now, number));
                number += 1;
            }
            let begun = search.bins;
            search.on_ack(&delivery(now, acked * 1448, ms(100)), &mut Window::new(10));
            match (begun, search.bins) {
                (Some(_), Some(bins)) => {
                    history.push((now, search.sent_bytes, search.acked_bytes));
                    // The total of a bin is that of the ACK that completed it: the last one at or
                    // before the ACK after its end.
                    if bins.current > begun.unwrap().current {
                        prop_assert_eq!(search.acked.at(bins.current), search.acked_bytes);
                        prop_assert_eq!(search.sent.at(bins.current), search.sent_bytes);
                        for back in 1..bins.current.min(10) {
                            prop_assert!(search.acked.at(bins.current - back) <= search.acked.at(bins.current - back + 1));
                        }
                    }
                    prop_assert!(now <= bins.end && bins.end <= now + bins.length);
                }
                _ => history.clear(),
            }
        }
    }
}
