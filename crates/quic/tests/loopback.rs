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
    let identity = Identity::generate().unwrap();
    let fingerprint = identity.fingerprint();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
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
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
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
