//! Client and server over an imagined link in virtual time: the same every time, whatever the
//! machine does.

mod common;
#[path = "common/link.rs"]
mod link;

use std::cmp::Reverse;

use common::request;
use flowstart_quic::message::{Direction, Request};
use flowstart_quic::tls::Fingerprint;
use flowstart_quic::{Arrival, Lesson, Memory, News, Node as _, Observed, Service, Transferred};
use flowstart_units::{Rate, Span, Time};
use link::{Busy, Link, transfer, world};

/// Every start that has no second connection and needs nothing of routers.
const STARTS: [&str; 7] = ["slow_start", "hystart", "hystart++", "search", "suss", "paced_chirping", "rapid_start"];

#[test]
fn every_start_transfers_everything_intact_both_ways() {
    for start in STARTS {
        for direction in [Direction::Down, Direction::Up] {
            let outcome = transfer(&Link::default(), request(direction, 1_000_000, (start, "cubic")));
            assert!(outcome.received.intact && outcome.received.bytes == 1_000_000, "{start} {outcome:?}");
            // 1 MB at 20 Mbit/s takes 0.4 s.
            let seconds = outcome.report.nanos as f64 / 1e9;
            assert!((0.4..2.0).contains(&seconds), "{start}: {seconds}");
            assert!(outcome.report.min_rtt >= 20_000_000 && outcome.report.min_rtt < 22_000_000, "{start}");
        }
    }
}

#[test]
fn loss_and_reordering_leave_every_byte_as_it_was() {
    for (loss, jitter) in [(20, 0), (0, 5), (20, 5)] {
        let link = Link { loss, jitter: Span::from_millis(jitter), ..Link::default() };
        for contestant in
            [("slow_start", "cubic"), ("paced_chirping", "cubic"), ("fair_queuing_probe", "delay_or_cubic")]
        {
            let outcome = transfer(&link, request(Direction::Down, 500_000, contestant));
            assert!(outcome.received.intact && outcome.received.bytes == 500_000, "{contestant:?} {outcome:?}");
            assert!(loss == 0 || outcome.report.lost > 5, "{outcome:?}");
        }
    }
}

#[test]
fn every_packet_gets_an_ack_of_its_own() {
    let outcome = transfer(&Link::default(), request(Direction::Down, 300_000, ("slow_start", "reno")));
    let report = outcome.report;
    // All but those around the moment the request for it arrives.
    assert!(report.acks * 20 >= (report.packets - report.lost) * 19, "{report:?}");
}

#[test]
fn two_connections_carry_one_stream_and_tell_a_queue_of_ones_own_from_a_shared_one() {
    for (fair, answer) in [(true, "isolated"), (false, "shared")] {
        for direction in [Direction::Down, Direction::Up] {
            let link = Link { fair, ..Link::default() };
            let contestant = ("fair_queuing_probe", "delay_or_cubic");
            let outcome = transfer(&link, request(direction, 2_000_000, contestant));
            assert!(outcome.received.intact && outcome.received.bytes == 2_000_000);
            let queue = outcome.report.queue.unwrap();
            assert_eq!(queue.isolation, answer, "{direction:?} {queue:?}");
        }
    }
}

#[test]
fn looks_at_a_queue_of_ones_own_take_no_more_than_a_few_packets() {
    for (mbps, delay) in [(46, 8), (16, 30), (90, 10)] {
        for direction in [Direction::Down, Direction::Up] {
            let rate = Rate::from_mbps(mbps);
            let link = Link { rate, delay: Span::from_millis(delay), fair: true, buffer: 5000, ..Link::default() };
            let asked = request(direction, 0, ("fair_queuing_probe", "delay_or_cubic"));
            let asked = Request { size: None, nanos: Some(1_000_000_000), ..asked };
            let (outcome, carried) = world(&link, asked, None, Service::default()).run(Span::from_secs(30));
            let outcome = outcome.unwrap();
            let queue = outcome.report.queue.as_ref().unwrap();
            assert_eq!(queue.isolation, "isolated", "{mbps}");
            // What is still on the way then takes no second round trip.
            assert!(outcome.report.nanos < 1_000_000_000 + delay * 4_000_000 + 20_000_000, "{mbps}: {outcome:?}");
            let sent = carried.into_iter().max().unwrap();
            assert!(sent < outcome.received.bytes * 110 / 100, "{mbps}: {sent} of {}", outcome.received.bytes);
        }
    }
}

/// A transfer by a server that remembers, and what it learnt from it.
fn remembered(link: &Link, size: u64, memory: &Memory, today: u64) -> (Transferred, Memory, Option<Lesson>) {
    let asked = request(Direction::Down, size, ("careful_resume", "cubic"));
    let mut world = world(link, asked, None, Service::default());
    world.server.remember(memory.clone(), Box::new(move || today));
    while !world.client.is_over(world.now) {
        world.step(Time::NEVER);
    }
    // Until the server knows that it is over.
    world.run_until(world.now + Span::from_secs(1));
    let learnt = world.server.take_news().into_iter().find_map(|news| match news {
        News::Learnt(_, lesson) => Some(lesson),
        _ => None,
    });
    let memory = world.server.changed_memory().map_or_else(|| memory.clone(), |memory| memory.clone());
    (world.client.outcome().unwrap(), memory, learnt)
}

#[test]
fn what_a_transfer_learnt_lets_the_next_one_jump() {
    let link = Link { rate: Rate::from_mbps(100), delay: Span::from_millis(50), buffer: 400, ..Link::default() };
    let (first, memory, learnt) = remembered(&link, 8_000_000, &Memory::default(), 100);
    assert_eq!(first.report.resumed, None);
    let Some(Lesson::Path(Some(Observed { bytes, rtt }))) = learnt else { panic!("{learnt:?}") };
    // 100 Mbit/s for a round trip of 100 ms and a packet, without the headers of IP and UDP.
    assert!(bytes.abs_diff(1_228_000) < 60_000, "{bytes}");
    assert!(rtt.abs_diff(100_118_000) < 100_000, "{rtt}");
    let (second, memory, _) = remembered(&link, 1_000_000, &memory, 200);
    assert_eq!(second.report.resumed, Some(Observed { bytes, rtt }));
    let (slow, _, _) = remembered(&link, 1_000_000, &Memory::default(), 200);
    // Slow start has 14, 28, 56, 112, 224 packets in its first round trips, of 700 that are needed;
    // the jump leaves in the second, and two more carry what is left.
    let [second, slow] = [second, slow].map(|transfer| transfer.report.nanos / 100_000_000);
    assert!(second <= 4 && slow >= second + 2, "{second} and {slow} round trips");
    // Far too much by now: the flow takes it back, and the memory is of the path as it is.
    let narrow = Link { rate: Rate::from_mbps(20), ..link };
    let (third, memory, learnt) = remembered(&narrow, 4_000_000, &memory, 300);
    assert!(third.report.resumed.is_some() && third.received.intact);
    let Some(Lesson::Path(Some(Observed { bytes, .. }))) = learnt else { panic!("{learnt:?}") };
    assert!(bytes.abs_diff(246_000) < 20_000, "{bytes}");
    let (late, _, _) = remembered(&narrow, 100_000, &memory, 301 + Memory::LIFETIME.as_nanos() / 1_000_000_000);
    assert_eq!(late.report.resumed, None, "too old");
}

/// The next one would do the same damage again, and the one after it.
#[test]
fn a_jump_that_failed_is_learnt_from_however_soon_the_transfer_ends() {
    let link =
        |mbps, buffer| Link { rate: Rate::from_mbps(mbps), delay: Span::from_millis(30), buffer, ..Link::default() };
    let (_, memory, _) = remembered(&link(100, 500), 10_000_000, &Memory::default(), 100);
    for (mbps, buffer) in [(5, 26), (10, 20), (20, 104), (20, 30)] {
        for size in [200_000, 250_000, 300_000, 400_000, 700_000, 1_000_000] {
            let (failed, after, learnt) = remembered(&link(mbps, buffer), size, &memory, 200);
            let Some(Observed { bytes: known, .. }) = failed.report.resumed else { panic!("{:?}", failed.report) };
            let what = format!("{mbps} Mbit/s, {size} bytes, {} of {known} lost", failed.report.lost);
            if failed.report.lost == 0 {
                // All of it fitted into path and queue; if that stood for long it said more.
                assert!(matches!(learnt, None | Some(Lesson::Path(_))), "{what}: {learnt:?}");
                continue;
            }
            let Some(Lesson::Path(seen)) = learnt else { panic!("{what}: {learnt:?}") };
            // A round trip of the path, and a little for ACKs that arrive together.
            let most = mbps * 1_000_000 / 8 * 60 / 1000 * 110 / 100;
            assert!(seen.is_none_or(|seen| seen.bytes <= most), "{what}: {seen:?}");
            let (next, _, _) = remembered(&link(mbps, buffer), size, &after, 300);
            assert_eq!(next.report.resumed, seen, "{what}");
        }
    }
    // What fits takes nothing away, however little it is.
    for size in [1000, 30_000, 200_000, 300_000] {
        let (fitted, _, learnt) = remembered(&link(100, 500), size, &memory, 200);
        assert!(fitted.report.resumed.is_some() && fitted.report.lost == 0 && learnt.is_none(), "{size}: {learnt:?}");
    }
}

/// Nothing is lost there, so no jump is taken back and no start is left.
#[test]
fn a_deep_buffer_teaches_what_the_path_carries_by_its_queue() {
    let link =
        |mbps, buffer| Link { rate: Rate::from_mbps(mbps), delay: Span::from_millis(40), buffer, ..Link::default() };
    let (_, memory, _) = remembered(&link(50, 2000), 10_000_000, &Memory::default(), 100);
    for (mbps, size) in [(3, 200_000), (3, 2_000_000), (3, 4_000_000), (10, 500_000), (10, 2_000_000)] {
        // Four seconds of queue.
        let path = link(mbps, usize::try_from(mbps * 4_000_000 / 8 / 1500).unwrap());
        let (first, after, learnt) = remembered(&path, size, &memory, 200);
        assert!(first.report.resumed.is_some() && first.received.intact, "{:?}", first.report);
        let what = format!("{mbps} Mbit/s, {size} bytes: {learnt:?}");
        let Some(Lesson::Path(seen)) = learnt else { panic!("{what}") };
        // 80 ms and a packet, without headers; less than 58 kB are not worth remembering.
        let carries = mbps * 1_000_000 / 8 * 80 / 1000;
        match mbps {
            3 => assert_eq!(seen, None, "{what}"),
            _ => assert!(seen.is_some_and(|seen| seen.bytes.abs_diff(carries) < carries / 10), "{what}"),
        }
        let (next, _, _) = remembered(&path, size, &after, 300);
        assert_eq!(next.report.resumed, seen, "{what}");
    }
    // What the path bears takes nothing away.
    for size in [200_000, 500_000, 1_000_000] {
        let (fitted, _, learnt) = remembered(&link(50, 2000), size, &memory, 200);
        assert!(fitted.report.resumed.is_some() && learnt.is_none(), "{size}: {learnt:?}");
    }
}

/// What left counted: in a deep buffer that is twice what the path carries, and then nothing.
#[test]
fn an_upload_goes_on_as_fast_as_the_other_end_acknowledges_it() {
    for (loss, contestant) in
        [(0, ("slow_start", "reno")), (0, ("fair_queuing_probe", "delay_or_cubic")), (50, ("slow_start", "cubic"))]
    {
        let link =
            Link { rate: Rate::from_mbps(4), delay: Span::from_millis(20), buffer: 2000, loss, ..Link::default() };
        let asked = Request { size: None, nanos: Some(6_000_000_000), ..request(Direction::Up, 0, contestant) };
        let mut world = world(&link, asked, None, Service::default());
        for tenths in 5..60 {
            world.run_until(Time::ZERO + Span::from_millis(tenths * 100));
            // An ACK is 20 ms old; what arrived behind a gap was not read yet, but acknowledged.
            let (known, read) = (world.client.progress(), world.server.received());
            let what = format!("{contestant:?}, {tenths}: {known} of {read}");
            assert!(known + 20_000 + read / 50 >= read, "{what}");
            assert!(loss > 0 || known <= read + read / 50, "{what}");
            let carried = tenths * 100 * 500;
            assert!(known <= carried, "{what}");
            let report = world.client.so_far(world.now).report.unwrap();
            assert_eq!(report.bytes, known);
        }
    }
}

/// It says now and then what it has read, and that is acknowledged.
#[test]
fn who_only_receives_knows_an_rtt_with_the_queue_once_it_has_said_something() {
    let link = Link { buffer: 400, ..Link::default() };
    let asked = request(Direction::Down, 20_000_000, ("slow_start", "reno"));
    let mut world = world(&link, asked, None, Service::default());
    world.run_until(Time::ZERO + Span::from_millis(100));
    let rtt = world.client.last_rtt(world.now).unwrap();
    assert!(rtt < Span::from_millis(25), "that of the request: {rtt}");
    world.run_until(Time::ZERO + Span::from_secs(6));
    let rtt = world.client.last_rtt(world.now).unwrap();
    assert!(rtt > Span::from_millis(50) && rtt < Span::from_millis(300), "{rtt}");
    world.pipes[1].link.rate = Rate::from_mbps(1);
    world.run_until(Time::ZERO + Span::from_secs(10));
    assert_eq!(world.client.last_rtt(world.now), None, "little was read, and nothing said for long");
}

/// What waited in the queue was thrown away with all that had arrived.
#[test]
fn data_for_a_time_below_the_limit_is_waited_for_behind_any_queue() {
    // A FIFO of 15 s.
    let link = Link { rate: Rate::from_mbps(1), delay: Span::from_millis(20), buffer: 1250, ..Link::default() };
    let service = Service { most_time: Span::from_secs(30), ..Service::default() };
    for direction in [Direction::Up, Direction::Down] {
        let asked = request(direction, 0, ("slow_start", "reno"));
        let timed = Request { size: None, nanos: Some(28_000_000_000), ..asked.clone() };
        let world_of = |asked: &Request| world(&link, asked.clone(), None, service.clone());
        let outcome = world_of(&timed).run(Span::from_secs(120)).0.unwrap();
        let (report, received) = (outcome.report, outcome.received);
        assert!(received.intact && received.bytes == report.bytes, "{direction:?}: {report:?}");
        assert!(report.nanos > 40_000_000_000 && report.nanos < 70_000_000_000, "{direction:?}: {report:?}");
        // Of which nothing arrives any more but what has passed the queue by then.
        let mut silent = world_of(&timed);
        silent.run_until(Time::ZERO + Span::from_secs(31));
        silent.cut(true);
        silent.run_until(Time::ZERO + Span::from_secs(61));
        assert!(silent.server.take_news().iter().any(|news| matches!(news, News::BrokenOff(_))), "{direction:?}");
        // Bytes that reach the limit end there where the server sends, and take ten seconds more
        // where it cannot know that they end.
        let endless = world_of(&Request { size: Some(100_000_000), ..asked });
        let outcome = endless.run(Span::from_secs(120)).0;
        match direction {
            Direction::Down => assert!(outcome.unwrap().received.bytes > 3_000_000),
            Direction::Up => assert!(outcome.unwrap_err().to_string().contains("takes too long")),
        }
    }
}

#[test]
fn marks_are_heard_and_keep_the_queue_short() {
    let link = Link { mark: 10, ..Link::default() };
    let outcome = transfer(&link, request(Direction::Down, 2_000_000, ("slow_start", "dctcp")));
    assert!(outcome.report.marked > 0 && outcome.report.lost == 0, "{:?}", outcome.report);
}

/// A look, and what both ends sent for it.
fn look(link: &Link, direction: Direction) -> (flowstart_quic::message::Report, [u64; 2]) {
    let asked = request(direction, 430_000, ("fair_queuing_probe", "delay_or_cubic"));
    let asked = Request { look: true, nanos: Some(2_000_000_000), ..asked };
    let (outcome, carried) = world(link, asked, None, Service::default()).run(Span::from_secs(30));
    (outcome.unwrap().report, carried)
}

#[test]
fn a_look_finds_capacity_delay_and_whose_queue_it_is_without_a_long_one() {
    for mbps in [2, 3, 10, 40, 200] {
        for (fair, direction) in [(true, Direction::Down), (false, Direction::Down), (false, Direction::Up)] {
            let what = format!("{mbps} Mbit/s, {direction:?}, fair {fair}");
            let link = Link { rate: Rate::from_mbps(mbps), fair, ..Link::default() };
            let (report, carried) = look(&link, direction);
            let looked = report.look.clone().unwrap();
            let median = looked.rates[looked.rates.len() / 2] as f64 / 1e6;
            assert!((median / mbps as f64 - 1.0).abs() < 0.01, "{what}: {median} {looked:?}");
            // A full packet has to be transmitted once, its ACK once.
            let full = 20e6 + f64::from(looked.packet) * 8e3 / mbps as f64;
            let over = looked.rtt as f64 - full;
            assert!((0.0..=1.0e6 / mbps as f64).contains(&over), "{what}: {over} {looked:?}");
            let queue = report.queue.as_ref().map(|queue| queue.isolation.as_str());
            assert_eq!(queue, Some(if fair { "isolated" } else { "shared" }), "{what}: {report:?}");
            assert!(looked.queue <= 50_000_000, "{what}: {looked:?}");
            assert!(
                looked.burst.is_none() && looked.lost == 0 && !looked.overflowed && looked.ecn,
                "{what}: {looked:?}"
            );
            assert!(carried.iter().sum::<u64>() < 500_000, "{what}: {carried:?}");
            assert!(report.nanos < 1_500_000_000, "{what}: {} ns", report.nanos);
        }
    }
}

/// Buckets of fewer packets than a train has; with more of them the trains are over before.
#[test]
fn a_look_finds_a_token_bucket_and_the_rate_behind_it_without_a_long_queue() {
    for (mbps, peak, bucket) in
        [(20, 100, 10_000), (20, 100, 20_000), (10, 50, 15_000), (5, 25, 10_000), (50, 200, 15_000), (20, 1000, 12_000)]
    {
        for direction in [Direction::Down, Direction::Up] {
            let what = format!("{mbps} of {peak} Mbit/s, {bucket} bytes, {direction:?}");
            let rates = [mbps, peak].map(Rate::from_mbps);
            let link = Link { rate: rates[0], bucket: Some((bucket, rates[1])), ..Link::default() };
            let looked = look(&link, direction).0.look.unwrap();
            let median = looked.behind.unwrap_or(looked.rates[looked.rates.len() / 2]);
            assert!(median.abs_diff(mbps * 1_000_000) < mbps * 20_000, "{what}: {looked:?}");
            let burst = looked.burst.clone().unwrap_or_else(|| panic!("{what}: {looked:?}"));
            assert!(burst.bytes.abs_diff(bucket) < bucket / 3, "{what}: {looked:?}");
            assert!(burst.peak.abs_diff(peak * 1_000_000) < peak * 250_000, "{what}: {looked:?}");
            assert!(looked.queue <= 50_000_000, "{what}: {looked:?}");
        }
    }
}

#[test]
fn a_look_builds_no_long_queue_where_a_packet_takes_long() {
    for kbps in [250, 500, 1000, 1500] {
        let link = Link { rate: Rate::from_bps(kbps * 1000), ..Link::default() };
        let (report, _) = look(&link, Direction::Down);
        let looked = report.look.clone().unwrap();
        // A pair, behind what is left of the packet that leads it.
        let pair = u64::from(looked.packet) * 8_000_000 / kbps;
        assert!(looked.queue <= (pair * 12 / 10).max(50_000_000), "{kbps}: {looked:?}");
        let median = looked.rates[looked.rates.len() / 2];
        assert!(median.abs_diff(kbps * 1000) < kbps * 20, "{kbps}: {looked:?}");
        assert_eq!(report.queue.is_none(), kbps <= 1000, "{kbps}: {:?}", report.queue);
    }
}

#[test]
fn a_look_finds_a_short_buffer_and_ends_where_packets_get_lost() {
    let short = Link { buffer: 8, ..Link::default() };
    let looked = look(&short, Direction::Down).0.look.unwrap();
    // Eight packets of 1480 bytes at 20 Mbit/s.
    assert!(looked.overflowed && looked.queue.abs_diff(4_736_000) < 700_000, "{looked:?}");
    for (loss, jitter) in [(20, 0), (20, 2), (5, 1)] {
        let link = Link { loss, jitter: Span::from_millis(jitter), ..Link::default() };
        let (report, carried) = look(&link, Direction::Down);
        let looked = report.look.clone().unwrap();
        assert!(!looked.overflowed && looked.lost > 0, "{looked:?}");
        assert!(carried.iter().sum::<u64>() < 600_000, "{carried:?}");
    }
}

#[test]
fn another_fingerprint_is_refused_with_a_sentence_that_names_it() {
    let pinned = Some(Fingerprint::of(b"another"));
    let asked = request(Direction::Down, 1000, ("slow_start", "cubic"));
    let (outcome, _) = world(&Link::default(), asked, pinned, Service::default()).run(Span::from_secs(10));
    let said = outcome.unwrap_err().to_string();
    assert!(said.contains("not the server expected"), "{said}");
}

#[test]
fn what_the_server_does_not_allow_it_says() {
    let small = Service { most_bytes: 1000, ..Service::default() };
    let file = Request { file: Some("x".into()), ..request(Direction::Down, 10, ("slow_start", "cubic")) };
    for (service, asked, word) in [
        (small, request(Direction::Down, 1001, ("slow_start", "cubic")), "at most 1000 bytes"),
        (Service::default(), file, "no files are served here"),
        (Service::default(), Request { version: 9, ..request(Direction::Up, 1, ("slow_start", "cubic")) }, "version"),
        (Service::default(), Request { version: 3, ..request(Direction::Up, 1, ("slow_start", "cubic")) }, "version"),
    ] {
        let (outcome, _) = world(&Link::default(), asked, None, service).run(Span::from_secs(10));
        let said = outcome.unwrap_err().to_string();
        assert!(said.contains("refuses") && said.contains(word), "{said}");
    }
}

#[test]
fn data_for_a_time_ends_where_the_server_takes_or_gives_no_more() {
    for direction in [Direction::Up, Direction::Down] {
        for nanos in [Some(4_000_000_000), None] {
            let small = Service { most_bytes: 1_000_000, ..Service::default() };
            let asked = Request { size: None, nanos, ..request(direction, 0, ("slow_start", "cubic")) };
            let (outcome, _) = world(&Link::default(), asked, None, small).run(Span::from_secs(10));
            let received = outcome.unwrap().received;
            assert!(received.bytes == 1_000_000 && received.intact, "{direction:?}: {received:?}");
        }
    }
}

/// It lasted up to twice as long: what a stream was given once leaves.
#[test]
fn data_for_a_time_ends_soon_after_it_where_the_path_is_slow() {
    for (kbps, buffer) in [(64, 2), (300, 10), (2000, 30)] {
        let link = Link { rate: Rate::from_bps(kbps * 1000), delay: Span::from_millis(25), buffer, ..Link::default() };
        for direction in [Direction::Up, Direction::Down] {
            for (seconds, start) in [(2, "slow_start"), (5, "hystart")] {
                let asked = request(direction, 0, (start, "cubic"));
                let asked = Request { size: None, nanos: Some(seconds * 1_000_000_000), ..asked };
                let (outcome, _) = world(&link, asked, None, Service::default()).run(Span::from_secs(30));
                let received = outcome.unwrap().received;
                let took = received.nanos as f64 / 1e9;
                // Three packets are ready to leave, one is being sent, and some wait at the path.
                // (Where more wait, more is lost of the window, and has to be sent again.)
                let packets = (6 + buffer) as f64 * 1500.0 * 8.0 / (kbps as f64 * 1e3);
                let what = format!("{kbps} kbit/s, {direction:?}, {seconds} s: {took} s");
                assert!(took < seconds as f64 + packets + 0.2, "{what}");
                assert!(received.bytes as f64 * 8.0 / took > kbps as f64 * 1e3 * 0.75, "{what}: {received:?}");
            }
        }
    }
}

#[test]
fn a_server_that_is_not_there_is_given_up_after_three_seconds() {
    let link = Link { loss: 1, ..Link::default() };
    let asked = request(Direction::Down, 1000, ("slow_start", "cubic"));
    let mut world = world(&link, asked, None, Service::default());
    while !world.client.is_over(world.now) {
        world.flush();
        world.now = world.client.deadline().max(world.now + Span::from_nanos(1));
        world.client.handle_timeout(world.now);
        assert!(world.now < Time::ZERO + Span::from_secs(4));
    }
    let said = world.client.outcome().unwrap_err().to_string();
    assert!(said.contains("nothing came back") && said.contains("3 s"), "{said}");
}

#[test]
fn an_end_that_falls_silent_in_the_middle_is_given_up_by_the_other() {
    for direction in [Direction::Down, Direction::Up] {
        let asked = request(direction, 100_000_000, ("slow_start", "cubic"));
        let mut world = world(&Link::default(), asked, None, Service::default());
        let cut = Time::ZERO + Span::from_millis(500);
        world.run_until(cut);
        assert_eq!(format!("{:?}", world.server), "Server(1 sessions)");
        world.pipes.iter_mut().for_each(|pipe| pipe.link.loss = 1);
        world.run_until(cut + Span::from_secs(25));
        assert!(world.client.is_over(world.now));
        // What it has of its peer is gone too, so that others may connect from there.
        assert_eq!(format!("{:?}", world.server), "Server(0 sessions)");
        let said = world.client.outcome().unwrap_err().to_string();
        assert!(said.contains("went silent"), "{said}");
    }
}

#[test]
fn every_second_packet_of_a_large_window_may_be_lost() {
    let link = Link { rate: Rate::from_mbps(2000), buffer: 50_000, ..Link::default() };
    let asked = request(Direction::Down, 32_000_000, ("slow_start", "cubic"));
    let mut world = world(&link, asked, None, Service::default());
    // By then slow start has thousands of packets in flight.
    world.run_until(Time::ZERO + Span::from_millis(265));
    world.pipes[1].link.loss = 2;
    world.run_until(Time::ZERO + Span::from_millis(290));
    world.pipes[1].link.loss = 0;
    let (outcome, _) = world.run(Span::from_secs(60));
    assert!(outcome.as_ref().is_ok_and(|outcome| outcome.report.lost > 2_000), "{outcome:?}");
    let outcome = outcome.unwrap();
    assert!(outcome.received.intact && outcome.received.bytes == 32_000_000, "{outcome:?}");
}

#[test]
fn before_a_client_has_shown_its_address_it_gets_less_than_it_sent() {
    let asked = request(Direction::Down, 1_000_000, ("slow_start", "cubic"));
    let mut world = world(&Link::default(), asked, None, Service::default());
    // The client falls silent after its first flight.
    world.flush();
    let first = world.carried[0];
    while let Some(Reverse((at, number))) = world.flying.pop() {
        let (_, packet) = world.packets.remove(&number).unwrap();
        if packet.to.is_none() {
            let arrival = Arrival { at, from: world.ports[0], ecn: packet.ecn };
            world.server.handle(at, 0, &arrival, &packet.data);
        }
    }
    let mut buffer = Vec::new();
    let mut sent = 0;
    while world.server.poll_transmit(world.now, 0, &mut buffer).is_some() {
        sent += buffer.len() as u64;
    }
    assert!(sent > 0 && sent < first, "{sent} of {first}");
}

/// Mean time of 20 transfers of 1 MB, in ms, from a host to another that are both busy with
/// something else every so often.
fn between_busy_hosts(link: &Link, start: &str, every: Span) -> f64 {
    let one = |seed: u64| {
        let asked = request(Direction::Down, 1_000_000, (start, "cubic"));
        let mut world = world(link, asked, None, Service::default());
        world.hosts = [1_u64, 2].map(|host| Busy::new(every, true, seed * 7919 + host));
        world.run(Span::from_secs(60)).0.unwrap().report.nanos as f64 / 1e6
    };
    (0..20).map(one).sum::<f64>() / 20.0
}

#[test]
fn hosts_that_keep_no_gaps_do_not_make_chirping_slower_than_the_default() {
    // 150 Mbit/s and a round trip of 26 ms, which the buffer holds.
    let link = Link { rate: Rate::from_mbps(150), delay: Span::from_millis(13), buffer: 325, ..Link::default() };
    for (every, most) in [(25_000, 0.95), (2_000, 1.05), (200, 1.05)] {
        let [chirping, default] =
            ["adaptive_chirping", "hystart"].map(|start| between_busy_hosts(&link, start, Span::from_micros(every)));
        assert!(chirping <= default * most, "stalls every {every} us: {chirping} and {default} ms");
    }
}

#[test]
fn a_server_that_ends_takes_nobody_new_and_says_why() {
    let asked = request(Direction::Down, 1_000_000, ("slow_start", "cubic"));
    let mut world = world(&Link::default(), asked, None, Service::default());
    world.server.stop(Time::ZERO, "the server ends");
    let (outcome, _) = world.run(Span::from_secs(30));
    let why = outcome.unwrap_err().to_string();
    assert!(why.ends_with("refuses: the server ends"), "{why}");
}

#[test]
fn a_server_says_that_a_transfer_broke_off_and_of_no_other() {
    for broken in [true, false] {
        let asked = request(Direction::Down, 1_000_000, ("fair_queuing_probe", "delay_or_cubic"));
        let mut world = world(&Link::default(), asked, None, Service::default());
        if broken {
            world.run_until(Time::ZERO + Span::from_millis(300));
            world.client.stop(world.now, "interrupted");
        }
        while !world.client.is_over(world.now) {
            world.step(Time::NEVER);
        }
        world.run_until(world.now + Span::from_secs(1));
        let news = world.server.take_news();
        let broke_off = news.iter().filter(|news| matches!(news, News::BrokenOff(_))).count();
        assert_eq!(broke_off, usize::from(broken), "{news:?}");
    }
}

#[test]
fn what_a_server_says_moves_no_cursor_here() {
    let asked = request(Direction::Down, 1_000_000, ("slow_start", "cubic"));
    let mut world = world(&Link::default(), asked, None, Service::default());
    world.server.stop(Time::ZERO, "no\u{1b}[2J\nerror: nothing");
    let (outcome, _) = world.run(Span::from_secs(30));
    let why = outcome.unwrap_err().to_string();
    assert!(why.ends_with("refuses: no\u{fffd}[2J\u{fffd}error: nothing"), "{why}");
}
