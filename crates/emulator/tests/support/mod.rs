//! What the tests share.
#![allow(dead_code)]

use std::fs::File;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;
use std::time::Duration;

use flowstart_emulator::{Privilege, World, WorldConfig, privilege};
use flowstart_network::{DropTailConfig, LinkConfig, QueueConfig, RateSchedule};
use flowstart_units::{Rate, Span};

/// Keeps tests that run in real time apart, also those of other test programs: they would take each
/// other's processor.
pub(crate) struct Turn(#[expect(dead_code, reason = "held, not read")] nix::fcntl::Flock<File>);

/// Waits for this test's turn; `None`, and one line about it, where worlds cannot be made.
pub(crate) fn turn() -> Option<Turn> {
    match privilege() {
        Ok(Privilege::Full) => {}
        Ok(Privilege::UserNamespace) => {
            skipped("threads cannot enter a user namespace; run the tests as root");
            return None;
        }
        Err(error) => {
            skipped(&error.to_string());
            return None;
        }
    }
    let file = File::create(std::env::temp_dir().join("flowstart-emulator-tests.lock")).unwrap();
    Some(Turn(nix::fcntl::Flock::lock(file, nix::fcntl::FlockArg::LockExclusive).unwrap()))
}

/// Past the test harness, which hides what successful tests print.
pub(crate) fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// A link with a buffer in packets.
pub(crate) fn link(mbps: u64, delay: Span, packets: u64) -> LinkConfig {
    let queue = QueueConfig::DropTail(DropTailConfig { packets: Some(packets), bytes: None });
    LinkConfig::new(RateSchedule::Constant(Rate::from_mbps(mbps)), delay, queue)
}

/// A socket in a host, with room for everything that a test sends: what a machine without time for
/// the reading thread lets overflow there, no link dropped.
pub(crate) fn socket(world: &World, host: usize, address: IpAddr, port: u16) -> UdpSocket {
    let socket = world.hosts()[host].run(|| UdpSocket::bind(SocketAddr::new(address, port))).unwrap().unwrap();
    nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::RcvBufForce, &(16 << 20)).unwrap();
    socket
}

/// Longer than any machine stands still: who hears nothing for so long will hear nothing.
pub(crate) const QUIET: Duration = Duration::from_secs(20);

/// Waits until so many datagrams have arrived.
pub(crate) fn has_received(receiver: &UdpSocket, count: usize) {
    receiver.set_read_timeout(Some(QUIET)).unwrap();
    let mut number = 0;
    while number < count {
        match receiver.recv(&mut [0; 2000]) {
            Ok(_) => number += 1,
            // Whoever was stopped and goes on.
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => panic!("{number} of {count} have arrived: {error}"),
        }
    }
}

/// Sets the ECN field of what a socket sends.
pub(crate) fn set_ecn(socket: &UdpSocket, v6: bool, codepoint: i32) {
    if v6 {
        nix::sys::socket::setsockopt(&socket.as_fd(), nix::sys::socket::sockopt::Ipv6TClass, &codepoint).unwrap();
    } else {
        nix::sys::socket::setsockopt(&socket.as_fd(), nix::sys::socket::sockopt::Ipv4Tos, &codepoint).unwrap();
    }
}

/// Two hosts, 10 ms apart.
pub(crate) fn pair(link: LinkConfig) -> WorldConfig {
    WorldConfig::pair(link, Span::from_millis(5))
}
