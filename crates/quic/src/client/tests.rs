use super::*;
use crate::message::{NOT_UNDERSTOOD, UNWANTED};
use crate::message::{Paced, VERSION};
use crate::stack::ConnectionError;

fn client(tell: bool) -> Client {
    let request = Request {
        version: VERSION,
        session: 1,
        connections: 1,
        direction: Direction::Up,
        size: None,
        nanos: Some(1),
        streams: 1,
        start: "slow_start".to_owned(),
        avoidance: "cubic".to_owned(),
        file: None,
        look: false,
        paced: Some(Paced { message: 1000, gap: 5, tell }),
    };
    let config = crate::controller("slow_start", "cubic", 1452).unwrap();
    let to = "192.0.2.7:4433".parse().unwrap();
    let ends = (config, Sink::Check);
    Client::new(Clock::start(), Time::ZERO, &Limits::default(), to, None, request, ends).unwrap()
}

#[test]
fn a_server_that_does_not_know_the_word_for_telling_is_of_an_older_version() {
    let closed = |code: u32| {
        let reason = "the other end does not speak flowstart's protocol: unknown field `tell`".into();
        ConnectionError::ApplicationClosed { code: code.into(), reason }
    };
    let said = |tell, code| client(tell).lost(&closed(code)).to_string();
    assert!(said(true, NOT_UNDERSTOOD).contains("cannot tell when it reads"), "{}", said(true, NOT_UNDERSTOOD));
    for other in [said(false, NOT_UNDERSTOOD), said(true, 3)] {
        assert!(other.contains("ended the connection"), "{other}");
    }
}

#[test]
fn times_of_reading_that_cannot_be_are_refused() {
    let readings = |first, told, ages: &[u64]| Readings { first, told, ages: ages.to_vec(), waits: Vec::new() };
    for wrong in [
        readings(1, 9, &[]),
        // Nothing was written yet.
        readings(0, 9, &[5]),
        readings(0, 9, &[5, 6]),
        readings(0, 9, &[10]),
        readings(u64::MAX, 9, &[1]),
    ] {
        assert!(client(true).hear(Time::ZERO, wrong).unwrap_err().words().contains("make no sense"));
    }
    assert!(client(false).hear(Time::ZERO, readings(0, 9, &[5])).is_err());
    let mut client = client(true);
    client.hear(Time::ZERO, readings(0, 9, &[])).unwrap();
    assert_eq!(client.take_readings().len(), 1);
}

#[test]
fn whoever_needs_two_connections_where_one_is_allowed_is_told() {
    let many = ConnectionError::ApplicationClosed {
        code: UNWANTED.into(),
        reason: "1 at a time from one address are enough".into(),
    };
    let full = ConnectionError::ConnectionClosed("the server refused to accept a new connection".to_owned());
    let ends = ConnectionError::ApplicationClosed { code: UNWANTED.into(), reason: "the server ends".into() };
    let mut two = client(false);
    (two.request.look, two.request.connections) = (true, 2);
    let hint = "a look needs two at a time (`flowstart serve --peer-connections`, `--most-connections`)";
    for (reason, hints) in [(&many, true), (&full, true), (&ends, false)] {
        assert_eq!(two.lost(reason).words().ends_with(hint), hints, "{}", two.lost(reason));
        assert!(!client(false).lost(reason).words().contains("two"));
    }
}

#[test]
fn causes_are_told_apart() {
    let wrong = format!("{} than 00ff", crate::tls::WRONG_FINGERPRINT);
    let closed = |code: u32| ConnectionError::ApplicationClosed { code: code.into(), reason: "done".into() };
    for (reason, kind) in [
        (ConnectionError::ConnectionClosed("the server refused to accept".to_owned()), FailedKind::Refused),
        (ConnectionError::ConnectionClosed("no more".to_owned()), FailedKind::Closed),
        (ConnectionError::TransportError(wrong), FailedKind::WrongFingerprint),
        (ConnectionError::TransportError("a frame out of place".to_owned()), FailedKind::Protocol),
        (closed(NOT_UNDERSTOOD), FailedKind::Protocol),
        (closed(UNWANTED), FailedKind::Refused),
        (closed(0), FailedKind::Closed),
        (ConnectionError::Reset, FailedKind::Closed),
        (ConnectionError::TimedOut, FailedKind::TimedOut),
        (ConnectionError::Other("a cause of its own".to_owned()), FailedKind::Other),
    ] {
        assert_eq!(client(false).lost(&reason).kind(), kind, "{reason}");
    }
}

/// They would divide by nothing where a server says that such messages were read.
#[test]
fn a_paced_application_without_messages_or_without_time_between_them_is_refused() {
    for (message, gap) in [(0, 5), (511, 5), (512, 0)] {
        let paced = Some(Paced { message, gap, tell: true });
        let request = Request { paced, ..client(true).request };
        let ends = (crate::controller("slow_start", "cubic", 1452).unwrap(), Sink::Check);
        let to = "192.0.2.7:4433".parse().unwrap();
        let refused = Client::new(Clock::start(), Time::ZERO, &Limits::default(), to, None, request, ends).unwrap_err();
        assert!(refused.words().contains("messages of 512 bytes at least"), "{refused}");
    }
}

#[test]
fn limits_that_make_no_sense_are_refused_by_either_end() {
    let learning = crate::LearningConfig { standing: 1, ..crate::LearningConfig::default() };
    let limits = Limits { learning, ..Limits::default() };
    let (request, to) = (client(false).request, "192.0.2.7:4433".parse().unwrap());
    let ends = (crate::controller("slow_start", "cubic", 1452).unwrap(), Sink::Check);
    let refused = Client::new(Clock::start(), Time::ZERO, &limits, to, None, request, ends).unwrap_err();
    assert_eq!(refused.to_string(), "standing must be between 2 and `rounds`");
    let identity = crate::tls::Identity::generate().unwrap();
    let make = Box::new(|start: &str, avoidance: &str, mtu| crate::controller(start, avoidance, mtu));
    let service = crate::Service::default();
    let refused = crate::Server::new(Clock::start(), &limits, &identity, service, make, false).unwrap_err();
    assert!(refused.to_string().ends_with("standing must be between 2 and `rounds`"), "{refused}");
}
