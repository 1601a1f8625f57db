//! Who takes places: connections that nobody completes, and those that were refused or closed.

use super::*;

#[test]
fn who_was_refused_is_not_listened_to_any_more() {
    let mut served = Served::new(Service::default());
    let (mut raw, control) = served.greeted("192.0.2.7:5000");
    let wrong = Message::Request(Request { version: 99, ..request(Direction::Down, Some(1)) }).encode();
    let mut sent = 0;
    for _ in 0..2000 {
        sent += raw.connection().write(control, &wrong.repeat(100));
        served.run(&mut raw, TICK);
    }
    assert!(sent >= 1 << 20, "{sent}");
    let news = served.server.take_news();
    assert!(matches!(news[..], [News::Refused(..)]), "{} news", news.len());
    assert!(sent <= 3 << 20, "{sent} bytes were taken");
}

#[test]
fn handshakes_that_are_not_completed_take_a_few_places_of_their_peer_and_no_others() {
    let mut served = Served::new(Service { per_peer: 4, ..Service::default() });
    let mut many: Vec<Raw> = (0..70).map(|port| served.client(&format!("192.0.2.7:{}", 5000 + port))).collect();
    for _ in 0..9 {
        for raw in &mut many {
            // The Retry, and nothing after it.
            raw.reads = raw.reads.min(1);
            served.run(raw, TICK);
        }
        let (mut good, _) = served.greeted("198.51.100.1:6000");
        good.connection().close(served.now, 0, "");
        served.run(&mut good, TICK);
    }
    let news = served.server.take_news();
    let refused = news.iter().filter(|news| matches!(news, News::Refused(..))).count();
    assert_eq!(refused, 2, "{news:?}");
    // They have the places for as long as a handshake may take.
    let mut one = many.pop().unwrap();
    for _ in 0..200 {
        served.run(&mut one, TICK);
        served.now += Span::from_millis(100);
    }
    let (mut good, _) = served.greeted("192.0.2.7:7000");
    served.run(&mut good, TICK);
    assert!(!good.connection().is_closed());
}

/// As long as the handshake is not over no streams are allowed, either.
#[test]
fn who_allows_no_streams_is_a_fault_and_ends_nothing() {
    let mut raw = Raw::new(Clock::start(), "192.0.2.7:5000", None);
    let now = Time::ZERO + TICK;
    raw.connect(now, address());
    let config = crate::controller("slow_start", "cubic", 1452).unwrap();
    let look = crate::LookConfig::default();
    let learning = crate::LearningConfig::default();
    let mut sending = Sending::new(Source::Test, &request(Direction::Down, Some(100_000)), config, look, learning);
    sending.begin(now, 0, raw.connection());
    assert_eq!(sending.fault(), Some("the other end allows no streams"));
    assert!(!sending.feed(now, 0, raw.connection(), false) && !sending.feed(now, 0, raw.connection(), true));
}

/// How long the stack answers what arrives of a closed connection its client says.
#[test]
fn connections_that_were_closed_take_no_places() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let mut served = Served::limited(Service::default(), &limits);
    for port in 5000..5100 {
        let (mut raw, _) = served.greeted(&format!("192.0.2.7:{port}"));
        raw.connection().close(served.now, 0, "");
        served.run(&mut raw, TICK);
    }
}

/// What comes back to whoever has sent this last.
type Comes<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;

/// How long a client tries to connect where this comes back at those milliseconds of each period of
/// so many, made of what it has sent last, and what it says then.
fn tries(look: bool, (at, period): (&[u64], u64), comes: Comes<'_>) -> (Span, String) {
    let began = Time::ZERO + TICK;
    let config = crate::controller("slow_start", "cubic", 1452).unwrap();
    let asked = Request { look, ..request(Direction::Down, Some(600)) };
    let ends = (config, Sink::Check);
    let mut client = Client::new(Clock::start(), began, &Limits::default(), address(), None, asked, ends).unwrap();
    let (mut now, mut buffer, mut last) = (began, Vec::new(), Vec::new());
    while !client.is_over(now) && now.since(began) < Span::from_secs(200) {
        if client.deadline() <= now {
            client.handle_timeout(now);
        }
        while let Some(outgoing) = client.poll_transmit(now, 0, &mut buffer) {
            client.departed(0, &outgoing, now);
            last.clone_from(&buffer);
        }
        if at.contains(&(now.since(began).as_nanos() / 1_000_000 % period)) {
            client.handle(now, 0, &Arrival { at: now, from: address(), ecn: None }, &comes(&last));
        }
        now += TICK;
    }
    (now.since(began), client.outcome().unwrap_err().to_string())
}

/// A datagram to whoever sent this one, with a long header of that first byte and version.
fn to_sender(sent: &[u8], first: u8, version: u32) -> Vec<u8> {
    let to = usize::from(sent[5]);
    let from = usize::from(sent[6 + to]);
    let name = &sent[7 + to..7 + to + from];
    let mut packet = vec![first];
    packet.extend_from_slice(&version.to_be_bytes());
    packet.push(name.len() as u8);
    packet.extend_from_slice(name);
    packet.extend_from_slice(&[8; 9]);
    // No token, 100 bytes.
    packet.extend_from_slice(&[0, 0x40, 100]);
    packet.resize(packet.len() + 100, 7);
    packet
}

/// What made an attempt go on was whatever arrived.
#[test]
fn garbage_does_not_keep_a_handshake_going() {
    for look in [false, true] {
        let strange: [Comes<'_>; 6] =
            [&|_| vec![0xff; 50], &|_| vec![0xc0; 1200], &|_| vec![0x40; 50], &|_| vec![7], &|_| Vec::new(), &|sent| {
                sent.to_vec()
            }];
        for comes in strange {
            let (took, said) = tries(look, (&[500], 1000), comes);
            assert!(took <= SILENCE + TICK, "{took:?} {said}");
            assert!(said.starts_with("what came back from 192.0.2.1:4433 within 3 s is no handshake"), "{said}");
        }
        // A server, or who sees its packets, may have the name in them, and send them so that no
        // attempt is over before the stack gives it up after 10 s.
        for (first, version) in [(0xc0, 1), (0xe0, 1), (0xf0, 1), (0xc0, 0)] {
            for times in [(&[500][..], 1000), (&[2500, 5000, 6900], 9900)] {
                let (took, said) = tries(look, times, &|sent| to_sender(sent, first, version));
                assert!(took <= Span::from_secs(50), "{took:?} {said}");
            }
        }
    }
}
