//! What a server may say, and clients that go on regardless.

use super::*;

/// What a client says of a server that answers its request so.
fn answered(request: Request, answer: &[u8], data: &[u8]) -> Result<Received, String> {
    let clock = Clock::start();
    let mut raw = Raw::new(clock, "192.0.2.1:4433", Some(&Identity::generate().unwrap()));
    let mut now = Time::ZERO + TICK;
    let config = crate::controller("slow_start", "cubic", 1452).unwrap();
    let mut client =
        Client::new(clock, now, &Limits::default(), address(), None, request, (config, Sink::Check)).unwrap();
    let here = "192.0.2.7:5000".parse().unwrap();
    let mut said = false;
    for _ in 0..200 {
        exchange(now, &mut client, here, &mut raw);
        if let Some(connection) = raw.endpoint.connection(0) {
            while connection.poll().is_some() {}
            if let Some(control) = (!said).then(|| connection.accept(Dir::Bi)).flatten() {
                said = true;
                connection.write(control, answer);
                if let Some(stream) = (!data.is_empty()).then(|| connection.open(Dir::Uni)).flatten() {
                    connection.write(stream, data);
                }
            }
        }
        now += TICK;
        if client.is_over(now) {
            break;
        }
    }
    assert!(said && client.is_over(now), "it goes on after {}", String::from_utf8_lossy(answer));
    client.outcome().map(|outcome| outcome.received).map_err(|failed| failed.to_string())
}

fn framed(document: &[u8]) -> Vec<u8> {
    [&(document.len() as u32).to_be_bytes()[..], document].concat()
}

#[test]
fn a_client_ends_with_a_sentence_whatever_a_server_says() {
    let accepted = Message::Accepted(None);
    let received = |bytes| Message::Received(Received { bytes, nanos: 1, intact: true, first: 0 });
    let reports = |report: Report| Message::Report(Box::new(report));
    let look = |rates: &[u64], between| reports(Report { look: Some(looked(rates, between)), ..report(600) });
    let protocol = "does not speak flowstart's protocol";
    let (down, up) = (request(Direction::Down, Some(600)), request(Direction::Up, Some(600)));
    let file = Request { size: None, file: Some("a".to_owned()), ..down.clone() };
    for (request, answer, data, says) in [
        (&down, vec![0xff; 9], vec![], protocol),
        (&down, framed(b"hello"), vec![], protocol),
        (&down, framed(b"{\"\\u001b[2J\":1}"), vec![], protocol),
        (&up, framed(&[0; 100]), vec![], protocol),
        // What the other role says.
        (&down, all(&[accepted.clone(), received(600), reports(report(600))]), vec![], protocol),
        (&up, all(&[accepted.clone(), reports(report(600)), received(600)]), vec![], protocol),
        (&down, all(&[Message::Join(1)]), vec![], protocol),
        // More than was asked for, or than there is.
        (&down, accepted.encode(), piece(0, 601), "more than was asked for"),
        (&down, accepted.encode(), piece(1 << 20, 600), "more than was asked for"),
        (&file, all(&[Message::Accepted(Some(600))]), piece(0, 601), "more than was asked for"),
        // What does not fit together.
        (&down, all(&[accepted.clone(), reports(report(599))]), piece(0, 600), "599 bytes were sent, and 600 arrived"),
        (&up, all(&[accepted.clone(), received(601)]), vec![], "600 bytes were sent, and 601 arrived"),
        (&down, all(&[accepted.clone(), look(&[2, 1], None)]), vec![], "reports what cannot be"),
        (&down, all(&[accepted.clone(), look(&[1], Some([2, 1]))]), vec![], "reports what cannot be"),
    ] {
        let said = answered(request.clone(), &answer, &data).unwrap_err();
        assert!(said.contains(says), "{said}");
        assert!(!said.chars().any(char::is_control) && said.chars().count() < 600, "{said}");
    }
    let right = answered(down.clone(), &all(&[accepted.clone(), reports(report(600))]), &piece(0, 600));
    assert_eq!(right.map(|received| received.bytes), Ok(600));
    let right = answered(up, &all(&[accepted, received(600)]), &[]);
    assert_eq!(right.map(|received| received.bytes), Ok(600));
}

#[test]
fn words_of_a_report_are_shown_as_they_may_be() {
    let queue = Isolated { isolation: "\u{9b}2J".to_owned(), confidence: None, rate: 1, after: 1 };
    let words = Report { exit: Some("a\u{202e}b\r".to_owned()), queue: Some(queue), ..report(1) };
    let words = words.possible().unwrap();
    assert_eq!(words.exit.as_deref(), Some("a\u{fffd}b\u{fffd}"));
    assert_eq!(words.queue.unwrap().isolation, "\u{fffd}2J");
}
