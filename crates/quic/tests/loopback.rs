//! Client and server over real sockets of this machine. What is asserted does not depend on how
//! long anything takes.

mod common;

use std::net::{SocketAddr, UdpSocket};

use common::request;
use flowstart_quic::message::{Direction, Request};
use flowstart_quic::tls::{Fingerprint, Identity};
use flowstart_quic::{
    Client, Clock, Failed, Limits, Node as _, Server, Service, Sink, Sockets, Transferred, controller,
};
use flowstart_units::Span;

/// A server for one transfer in a thread of its own; where it listens, and who it is.
fn serve() -> (SocketAddr, Fingerprint) {
    serve_at(UdpSocket::bind("127.0.0.1:0").unwrap())
}

fn serve_at(socket: UdpSocket) -> (SocketAddr, Fingerprint) {
    let identity = Identity::generate().unwrap();
    let fingerprint = identity.fingerprint();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let clock = Clock::start();
        let make = Box::new(|start: &str, avoidance: &str, mtu| controller(start, avoidance, mtu));
        let mut server = Server::new(clock, &Limits::default(), &identity, Service::default(), make, true).unwrap();
        let mut sockets = Sockets::new(vec![socket], clock).unwrap();
        // A test that fails leaves nobody behind.
        let end = clock.now() + Span::from_secs(60);
        sockets.run(&mut server, &mut |_, now| now < end).unwrap();
    });
    (address, fingerprint)
}

fn fetch(
    to: SocketAddr,
    pinned: Option<Fingerprint>,
    direction: Direction,
    size: u64,
    contestant: (&str, &str),
) -> Result<Transferred, Failed> {
    let clock = Clock::start();
    let request = Request { streams: 2, ..request(direction, size, contestant) };
    let limits = Limits::default();
    let config = controller(contestant.0, contestant.1, limits.mtu).unwrap();
    let mut client = Client::new(clock, clock.now(), &limits, to, pinned, request, (config, Sink::Check))?;
    let sockets = (0..client.sockets())
        .map(|_| {
            let socket = UdpSocket::bind(if to.is_ipv6() { "[::1]:0" } else { "127.0.0.1:0" }).unwrap();
            socket.connect(to).unwrap();
            socket
        })
        .collect();
    let mut sockets = Sockets::new(sockets, clock).unwrap();
    sockets.run(&mut client, &mut |_, _| true).unwrap();
    client.outcome()
}

#[test]
fn every_byte_arrives_over_real_sockets_in_both_directions() {
    for direction in [Direction::Down, Direction::Up] {
        for contestant in
            [("hystart++", "cubic"), ("paced_chirping", "cubic"), ("fair_queuing_probe", "delay_or_cubic")]
        {
            let (address, fingerprint) = serve();
            let outcome = fetch(address, Some(fingerprint), direction, 3_000_000, contestant).unwrap();
            assert!(outcome.received.intact && outcome.received.bytes == 3_000_000, "{contestant:?} {outcome:?}");
            assert_eq!(outcome.fingerprint, Some(fingerprint));
            let seconds = outcome.report.nanos as f64 / 1e9;
            let mbps = 24.0 / seconds;
            println!("{direction:?} {contestant:?}: {mbps:.0} Mbit/s, {:?}", outcome.report);
        }
    }
}

#[test]
fn another_server_than_expected_is_not_talked_to() {
    let (address, _) = serve();
    let other = Some(Fingerprint::of(b"another"));
    let said = fetch(address, other, Direction::Down, 1000, ("slow_start", "cubic")).unwrap_err().to_string();
    assert!(said.contains("not the server expected"), "{said}");
}

#[test]
fn where_nobody_listens_the_system_says_so_at_once() {
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let said = fetch(free, None, Direction::Down, 1000, ("slow_start", "cubic")).unwrap_err().to_string();
    assert!(said.contains("nobody listens"), "{said}");
}

/// Stands between a client with one socket and a server, as a router does that translates
/// addresses: after every 150 packets of the client it sends them on from the next of these places,
/// and what comes to one of before is lost. Where it listens; it ends with the test.
fn router(server: SocketAddr, near: &str, places: Vec<UdpSocket>) -> SocketAddr {
    let near = UdpSocket::bind(near).unwrap();
    let address = near.local_addr().unwrap();
    near.set_nonblocking(true).unwrap();
    for place in &places {
        place.set_nonblocking(true).unwrap();
    }
    std::thread::spawn(move || {
        let (mut packet, mut client, mut sent) = (vec![0; 2000], None, 0);
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while std::time::Instant::now() < end {
            let mut idle = true;
            while let Ok((length, from)) = near.recv_from(&mut packet) {
                client = Some(from);
                let place = &places[(sent / 150).min(places.len() - 1)];
                let _ = place.send_to(&packet[..length], server);
                sent += 1;
                idle = false;
            }
            let place = &places[(sent / 150).min(places.len() - 1)];
            while let (Ok((length, _)), Some(client)) = (place.recv_from(&mut packet), client) {
                let _ = near.send_to(&packet[..length], client);
                idle = false;
            }
            if idle {
                std::thread::sleep(std::time::Duration::from_micros(100));
            }
        }
    });
    address
}

#[test]
fn a_client_keeps_its_transfer_whatever_a_router_calls_it() {
    let bound = |address: &str| UdpSocket::bind(address);
    let listening: [(&str, &str, &[&str]); 4] = [
        ("127.0.0.1:0", "127.0.0.1:0", &["127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"]),
        ("127.0.0.1:0", "127.0.0.1:0", &["127.0.0.1:0", "127.0.0.2:0", "127.0.0.3:0"]),
        ("[::1]:0", "[::1]:0", &["[::1]:0", "[::1]:0", "[::1]:0"]),
        // A server of both families, whose IPv4 clients have mapped addresses.
        ("[::]:0", "127.0.0.1:0", &["127.0.0.1:0", "127.0.0.2:0", "127.0.0.1:0"]),
    ];
    for (server, near, places) in listening {
        for direction in [Direction::Down, Direction::Up] {
            for contestant in [("slow_start", "cubic"), ("bbr_start", "bbr")] {
                // Not every machine has IPv6, or all of 127.0.0.0/8.
                let (Ok(socket), Ok(places)) =
                    (bound(server), places.iter().map(|place| bound(place)).collect::<Result<Vec<_>, _>>())
                else {
                    continue;
                };
                let (mut address, fingerprint) = serve_at(socket);
                if address.ip().is_unspecified() {
                    address.set_ip([127, 0, 0, 1].into());
                }
                let to = router(address, near, places);
                let outcome = fetch(to, Some(fingerprint), direction, 3_000_000, contestant);
                let outcome = outcome.unwrap_or_else(|error| panic!("{server} {direction:?} {contestant:?}: {error}"));
                assert!(outcome.received.intact && outcome.received.bytes == 3_000_000, "{contestant:?} {outcome:?}");
            }
        }
    }
}
