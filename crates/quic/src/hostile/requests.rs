//! What a client may ask for and send.

use super::*;

/// Nothing is due at a server whose client only gives a sign of life now and then.
#[test]
fn who_says_nothing_but_that_he_is_there_is_gone_when_his_time_is_over() {
    let mut served = Served::new(Service { most_time: Span::from_secs(30), ..Service::default() });
    let (mut raw, control) = served.greeted("192.0.2.7:5000");
    raw.connection().write(control, &Message::Request(request(Direction::Up, None)).encode());
    served.run(&mut raw, TICK);
    let began = served.now;
    assert!(matches!(served.server.take_news()[..], [News::Asked(..)]));
    while served.now.since(began) < Span::from_secs(45) {
        // A client's own keep-alive, every 3.3 s.
        served.run(&mut raw, TICK);
        served.now += Span::from_millis(200);
    }
    assert!(raw.connection().is_closed());
    assert!(matches!(served.server.take_news()[..], [News::BrokenOff(..)]));
}

#[test]
fn what_is_sent_behind_a_gap_counts_for_who_sent_it() {
    let mut served = Served::new(Service { peer_bytes: 100_000, ..Service::default() });
    let mut had = Vec::new();
    for port in 5000..5003 {
        let (mut raw, control) = served.greeted(&format!("192.0.2.7:{port}"));
        let asked = Request { session: port, ..request(Direction::Up, Some(60_000)) };
        raw.connection().write(control, &Message::Request(asked).encode());
        served.run(&mut raw, TICK);
        let stream = raw.connection().open(Dir::Uni).unwrap();
        for offset in [1000, 21_000] {
            raw.connection().write(stream, &piece(offset, 20_000));
            served.run(&mut raw, TICK);
        }
        raw.connection().close(served.now, 0, "");
        served.run(&mut raw, TICK);
        had.extend(served.server.take_news().into_iter().filter_map(|news| match news {
            News::Refused(_, why) => Some(why),
            _ => None,
        }));
    }
    assert!(matches!(&had[..], [why] if why.contains("of which 20 kB are left")), "{had:?}");
}

/// Whatever is asked for is refused or sent; arithmetic that overflows would end a test.
#[test]
fn no_request_is_too_strange() {
    let numbers = [None, Some(0), Some(1), Some(u64::MAX)];
    let pacing = |message, gap, tell| Some(Paced { message, gap, tell });
    let paced = [
        None,
        pacing(512, 1, false),
        pacing(512, 1, true),
        pacing(u64::MAX, 1, false),
        pacing(u64::MAX, u64::MAX, true),
        pacing(1000, 1 << 62, false),
    ];
    let most = u64::MAX;
    let (most_time, peer_time) = (Span::from_nanos(most), Span::from_nanos(most));
    let mut session = 0;
    for size in numbers {
        for nanos in numbers {
            for (paced, look) in paced.map(|paced| (paced, false)).into_iter().chain([(None, true)]) {
                for direction in [Direction::Down, Direction::Up] {
                    let service =
                        Service { most_bytes: most, peer_bytes: most, most_time, peer_time, ..Service::default() };
                    let mut served = Served::new(service);
                    let (mut raw, control) = served.greeted("192.0.2.7:5000");
                    session += 1;
                    let (start, avoidance) =
                        if look { ("fair_queuing_probe", "delay_or_cubic") } else { ("slow_start", "cubic") };
                    let asked = Request {
                        session,
                        nanos,
                        paced,
                        look,
                        connections: 1 + u8::from(look),
                        start: start.to_owned(),
                        avoidance: avoidance.to_owned(),
                        ..request(direction, size)
                    };
                    raw.connection().write(control, &Message::Request(asked).encode());
                    if look {
                        raw.connect(served.now, address());
                        served.run(&mut raw, TICK + TICK);
                        let second = raw.endpoint.connection(1).unwrap();
                        while second.poll().is_some() {}
                        let control = second.open(Dir::Bi).unwrap();
                        second.write(control, &Message::Join(session).encode());
                    }
                    served.run(&mut raw, Span::from_millis(3));
                    if let Some(stream) = raw.connection().open(Dir::Uni) {
                        raw.connection().write(stream, &piece(0, 600));
                    }
                    let strange = Report { nanos: most, max_rtt: most, lost: most, ..report(most) };
                    raw.connection().write(control, &Message::Report(Box::new(strange)).encode());
                    served.run(&mut raw, Span::from_millis(3));
                    served.now += Span::from_secs(4000);
                    served.run(&mut raw, TICK);
                }
            }
        }
    }
}

/// A server whose stack is alive, and that says this first, and the same every five seconds.
fn drips(request: Request, first: &[u8], drop: &[u8]) -> (Span, String) {
    let clock = Clock::start();
    let mut raw = Raw::new(clock, "192.0.2.1:4433", Some(&Identity::generate().unwrap()));
    let began = Time::ZERO + TICK;
    let mut now = began;
    let config = crate::controller("slow_start", "cubic", 1452).unwrap();
    let ends = (config, Sink::Check);
    let mut client = Client::new(clock, now, &Limits::default(), address(), None, request, ends).unwrap();
    let here = "192.0.2.7:5000".parse().unwrap();
    let (mut control, mut stream, mut last) = (None, None, now);
    while !client.is_over(now) {
        exchange(now, &mut client, here, &mut raw);
        if let Some(connection) = raw.endpoint.connection(0) {
            while connection.poll().is_some() {}
            if control.is_none() {
                control = connection.accept(Dir::Bi);
                control.map(|control| connection.write(control, first));
            } else if now.since(last) >= Span::from_secs(5) {
                last = now;
                stream = stream.or_else(|| connection.open(Dir::Uni));
                stream.map(|stream| connection.write(stream, drop));
            }
            exchange(now, &mut client, here, &mut raw);
        }
        now += Span::from_millis(100);
        assert!(now.since(began) < Span::from_secs(1000), "it goes on");
    }
    (now.since(began), client.outcome().unwrap_err().to_string())
}

#[test]
fn a_transfer_that_goes_no_further_is_over_after_a_minute() {
    let accepted = Message::Accepted(None).encode();
    for direction in [Direction::Down, Direction::Up] {
        for first in [&[][..], &accepted] {
            let (took, said) = drips(request(direction, Some(100_000_000)), first, &[]);
            assert!(said.contains("for 60 s the transfer has gone no further"), "{said}");
            assert!(took >= Span::from_secs(60) && took < Span::from_secs(70), "{took}: {said}");
        }
    }
    // Something new now and then, for much longer than the time that was asked for.
    let timed = Request { nanos: Some(5_000_000_000), ..request(Direction::Down, None) };
    let (took, said) = drips(timed, &accepted, &piece(0, 512));
    assert!(said.contains("goes on with the transfer long after its time"), "{said}");
    assert!(took < Span::from_secs(131), "{took}: {said}");
}

/// The stack keeps what follows a packet that is not acknowledged for as long as its stream lasts.
#[test]
fn no_stream_carries_so_much_that_all_of_it_could_not_be_kept() {
    let mut served = Served::new(Service::default());
    let (mut raw, control) = served.greeted("192.0.2.7:5000");
    let size = 100_000_000;
    let began = served.now;
    raw.connection().write(control, &Message::Request(request(Direction::Down, Some(size))).encode());
    let (mut streams, mut carried) = (Vec::new(), std::collections::HashMap::new());
    for _ in 0..60_000 {
        served.run(&mut raw, TICK);
        let connection = raw.connection();
        while connection.poll().is_some() {}
        streams.extend(std::iter::from_fn(|| connection.accept(Dir::Uni)));
        streams.retain(|stream| {
            let over = connection.read(*stream, &mut |bytes| *carried.entry(*stream).or_insert(0) += bytes.len());
            !over
        });
        if served.server.take_news().iter().any(|news| matches!(news, News::Complete(..))) {
            break;
        }
    }
    let whole: usize = carried.values().sum();
    assert!(whole as u64 > size, "{whole}");
    assert!(served.now.since(began) < Span::from_secs(20), "{}", served.now.since(began));
    assert!(carried.values().all(|bytes| *bytes < (2 << 20) + (64 << 10)), "{carried:?}");
}

/// Bytes that a client whose request is this could send, of which nobody reads any.
fn unread(asked: Option<Request>) -> usize {
    let mut served = Served::new(Service::default());
    let (mut raw, control) = served.greeted("192.0.2.7:5000");
    if let Some(asked) = asked {
        raw.connection().write(control, &Message::Request(asked).encode());
        served.run(&mut raw, TICK);
    }
    let mut sent = 0;
    for _ in 0..40 {
        let Some(stream) = raw.connection().open(Dir::Uni) else { break };
        // No piece is so long: nothing of it is read.
        sent += raw.connection().write(stream, &vec![0xff; 1 << 20]);
        served.run(&mut raw, TICK);
    }
    sent
}

#[test]
fn who_has_not_asked_to_send_can_send_little() {
    let most = crate::stack::UNASKED as usize;
    for asked in [None, Some(request(Direction::Down, Some(1)))] {
        let sent = unread(asked);
        assert!(sent > 0 && sent <= most, "{sent}");
    }
    assert!(unread(Some(request(Direction::Up, None))) > 5 * most);
}
