use super::*;
use crate::message::{Direction, Paced};

fn server(service: Service) -> Server {
    let identity = Identity::generate().unwrap();
    let make = Box::new(|start: &str, avoidance: &str, mtu| crate::controller(start, avoidance, mtu));
    Server::new(Clock::start(), &Limits::default(), &identity, service, make, false).unwrap()
}

#[test]
fn connections_of_all_addresses_of_an_ipv6_network_count_together() {
    let mut server = server(Service { per_peer: 3, ..Service::default() });
    let mut number = 0;
    let mut refused = |address: &str| {
        number += 1;
        server.accept(Time::ZERO, number, SocketAddr::new(address.parse().unwrap(), 5000 + number as u16));
        server.unwanted.remove(&number).map(|unwanted| unwanted.why)
    };
    for last in 1..=3 {
        assert_eq!(refused(&format!("2001:db8::{last}")), None);
        assert_eq!(refused(&format!("192.0.2.{last}")), None);
    }
    let why = refused("2001:db8::4:5:6:7");
    assert_eq!(why.as_deref(), Some("3 at a time from the addresses of one /64 are enough"));
    assert_eq!(refused("2001:db8:0:1::1"), None);
    assert_eq!(refused("192.0.2.1"), None);
    assert_eq!(refused("::ffff:192.0.2.1"), None);
    assert_eq!(refused("192.0.2.1").as_deref(), Some("3 at a time from one address are enough"));
}

#[test]
fn a_client_does_not_move_to_where_its_peer_has_as_many_as_it_may_have() {
    let mut server = server(Service { per_peer: 2, ..Service::default() });
    let address = |text: &str| -> SocketAddr { text.parse().unwrap() };
    for (number, place) in ["192.0.2.1:1", "192.0.2.1:2", "198.51.100.1:1"].iter().enumerate() {
        server.accept(Time::ZERO, number, address(place));
    }
    let admits = |server: &Server, number, from| Server::admits(&server.service, &server.lines, number, address(from));
    assert!(!admits(&server, 2, "192.0.2.1:7"), "it would be the third there");
    assert!(admits(&server, 1, "192.0.2.1:7"), "it is there");
    assert!(admits(&server, 1, "198.51.100.1:7"));
    assert!(!admits(&server, 9, "198.51.100.1:7"), "there is no such connection");
    // Not known to be there: nobody else moves there, and who opens a connection may.
    server.lines.get_mut(&1).unwrap().seen = address("198.51.100.1:7");
    assert!(!admits(&server, 0, "198.51.100.1:8"));
    server.accept(Time::ZERO, 3, address("198.51.100.1:9"));
    assert!(server.unwanted.is_empty());
    // Known to be there, it counts there and not where it was.
    server.lines.get_mut(&1).unwrap().peer = address("198.51.100.1:7");
    server.accept(Time::ZERO, 4, address("198.51.100.1:10"));
    assert!(server.unwanted.contains_key(&4));
    server.accept(Time::ZERO, 5, address("192.0.2.1:3"));
    assert!(!server.unwanted.contains_key(&5));
}

/// Numbers of connections are given again: of the one before only its client was one too many.
#[test]
fn who_gets_the_number_of_one_that_was_too_many_is_not_refused_for_it() {
    let mut server = server(Service { per_peer: 1, ..Service::default() });
    let [one, other] = ["192.0.2.1:1", "192.0.2.1:2"].map(|text| text.parse::<SocketAddr>().unwrap());
    server.accept(Time::ZERO, 1, one);
    server.accept(Time::ZERO, 2, other);
    assert!(server.unwanted.contains_key(&2));
    server.accept(Time::ZERO, 2, "198.51.100.1:1".parse().unwrap());
    assert!(server.unwanted.is_empty() && server.lines.contains_key(&2));
}

/// A request of so many connections for session 7.
fn request(connections: u8) -> Request {
    Request { connections, ..crate::hostile::request(Direction::Down, Some(1000)) }
}

#[test]
fn a_paced_application_of_short_messages_or_without_time_between_them_is_refused() {
    let mut server = server(Service::default());
    server.accept(Time::ZERO, 1, "192.0.2.1:1".parse().unwrap());
    for (message, gap) in [(0, 5), (1, 5), (511, 5), (512, 0)] {
        let paced = Some(Paced { message, gap, tell: false });
        let why = server.open(Time::ZERO, 1, Request { paced, ..request(1) }).unwrap_err();
        assert!(why.contains("a paced application has messages of 512 bytes at least"), "{why}");
    }
}

/// Packets of several connections overtake each other: those that want to join may be there first.
#[test]
fn who_wants_to_join_a_session_that_has_all_its_connections_is_refused_and_nobody_else_is() {
    for (connections, members) in [(1, [Some(1), None]), (2, [Some(1), Some(2)])] {
        let mut server = server(Service { per_peer: 9, ..Service::default() });
        let address = |port| SocketAddr::from(([192, 0, 2, 1], port));
        (1..=3).for_each(|number| server.accept(Time::ZERO, number, address(number as u16)));
        for number in [3, 2] {
            let joins = server.message(Time::ZERO, number, Message::Join(7));
            assert_eq!(joins, Ok(()), "there is no such session yet");
        }
        assert_eq!(server.open(Time::ZERO, 1, request(connections)), Ok(()), "who asks has what it asked for");
        assert_eq!(server.sessions[&7].members, members);
        let deaf = |server: &Server| [1, 2, 3].map(|number| server.lines[&number].deaf);
        assert_eq!(deaf(&server), [false, connections == 1, true]);
        let refused = |server: &Server| server.news.iter().filter(|news| matches!(news, News::Refused(..))).count();
        assert_eq!(refused(&server), if connections == 1 { 2 } else { 1 });
        // Another one that comes later is refused once, and no other again.
        server.accept(Time::ZERO, 4, address(4));
        assert_eq!(server.message(Time::ZERO, 4, Message::Join(7)), Ok(()));
        assert!(server.lines[&4].deaf && server.lines[&1].session.is_some());
        assert_eq!(refused(&server), if connections == 1 { 3 } else { 2 });
    }
}
