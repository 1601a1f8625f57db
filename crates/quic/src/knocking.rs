//! Which of several addresses of a host answers.
//!
//! Each is sent the first packet of a handshake, one after another and beside those before it, and
//! the first that answers is taken (in the spirit of RFC 8305). Who it is the
//! handshake says that follows. A server answers such a packet with a Retry and keeps nothing of
//! it, so those that nobody follows up take no places.

use std::fmt::Write as _;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use flowstart_units::{Span, Time};

use crate::client::{PASSES, is_to, source};
use crate::clock::Clock;
use crate::endpoint::{Endpoint, Limits, SILENCE};
use crate::failed::{Failed, FailedKind};
use crate::stack::Stack;
use crate::system;
use crate::tls;

/// How long an address is tried alone, unless it says that nobody is there (RFC 8305 section 5).
const ALONE: Span = Span::from_millis(250);

/// Addresses that are tried at most. (own choice)
const MOST: usize = 6;

/// Longest sleep between two looks at the clock.
const NAP: Duration = Duration::from_millis(10);

/// An address that is tried.
struct Tried {
    to: SocketAddr,
    began: Time,
    endpoint: Endpoint,
    /// What the connection is called by whoever answers.
    name: Vec<u8>,
    /// What the system says: nobody is there.
    refused: Option<&'static str>,
}

impl Tried {
    /// Nothing is to be expected of it any more.
    fn is_over(&self, now: Time) -> bool {
        self.refused.is_some() || now.since(self.began) >= SILENCE
    }

    /// Begins a handshake, over a socket that hears nobody else.
    fn begin(clock: Clock, now: Time, to: SocketAddr, stack: Stack) -> Result<(Self, UdpSocket), Failed> {
        let failed = |error: &dyn std::fmt::Display| {
            Failed::new(FailedKind::Unreachable, format!("cannot connect to {to}: {error}"))
        };
        let limits = Limits { stack, ..Limits::default() };
        let mut endpoint = Endpoint::new(clock, &limits, None).map_err(|error| failed(&error))?;
        // Nothing that is said here says who answers.
        let config = tls::client(None, None).map_err(|error| failed(&error))?;
        endpoint.connect(now, config, to).map_err(|error| failed(&error))?;
        let any = if to.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
        let socket = UdpSocket::bind(any).and_then(|socket| {
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        let socket = socket.map_err(|error| failed(&error))?;
        let refused = socket.connect(to).is_err().then_some("this machine has no way there");
        Ok((Self { to, began: now, endpoint, name: Vec::new(), refused }, socket))
    }

    /// Sends what is due.
    fn send(&mut self, now: Time, socket: &UdpSocket) {
        if self.endpoint.deadline() <= now {
            self.endpoint.handle_timeout(now);
        }
        let mut buffer = Vec::new();
        while let Some(outgoing) = self.endpoint.poll_transmit(now, &mut buffer, &mut |_, _, _| false) {
            if let Some(name) = source(&buffer) {
                self.name = name.to_vec();
            }
            if let Err(error) = socket.send(&buffer) {
                self.hear_of(&error);
            }
            if let Some(connection) = outgoing.connection.and_then(|number| self.endpoint.connection(number)) {
                connection.departed(now);
            }
        }
    }

    /// The system says that something went wrong. What cannot be sent is as good as lost.
    fn hear_of(&mut self, error: &io::Error) {
        if error.kind() == io::ErrorKind::ConnectionRefused {
            self.refused = Some("nobody listens");
        }
    }
}

/// The first of these addresses of a host that answers. Beside one that says nothing the next is
/// tried after a quarter of a second, beside one where nobody is at once, and each for
/// [`SILENCE`].
///
/// # Errors
/// If none answers: what became of each.
pub fn first_to_answer(host: &str, addresses: &[SocketAddr], stack: Stack) -> Result<SocketAddr, Failed> {
    let clock = Clock::start();
    let mut rest = addresses.iter().take(MOST);
    let (mut tried, mut sockets): (Vec<Tried>, Vec<UdpSocket>) = Default::default();
    let (mut next, mut packet) = (clock.now(), [0; 2048]);
    loop {
        let now = clock.now();
        if next <= now
            && let Some(to) = rest.next()
        {
            let (address, socket) = Tried::begin(clock, now, *to, stack)?;
            next = if address.refused.is_some() { now } else { now + ALONE };
            tried.push(address);
            sockets.push(socket);
        }
        for (address, socket) in tried.iter_mut().zip(&sockets) {
            if address.is_over(now) {
                continue;
            }
            address.send(now, socket);
            match socket.recv(&mut packet) {
                Ok(length) if is_to(&packet[..length], &address.name) => return Ok(address.to),
                // Something else is there, and may say this again.
                Ok(_) => {}
                Err(error) => address.hear_of(&error),
            }
            if address.refused.is_some() {
                next = now;
            }
        }
        if tried.iter().all(|address| address.is_over(now)) && rest.len() == 0 {
            let nowhere = tried.iter().all(|address| address.refused.is_some());
            let kind = if nowhere { FailedKind::Unreachable } else { FailedKind::TimedOut };
            return Err(Failed::new(kind, silent(host, &tried, addresses.len())));
        }
        system::wait(&sockets, NAP);
    }
}

/// What is said where no address answers.
fn silent(host: &str, tried: &[Tried], all: usize) -> String {
    let mut text = format!("none of the addresses of {host} answers:");
    for (number, address) in tried.iter().enumerate() {
        let comma = if number > 0 { "," } else { "" };
        let why = address
            .refused
            .map_or_else(|| format!("no answer within {} s", SILENCE.as_secs_f64()), |why| why.to_owned());
        let _ = write!(text, "{comma} {} ({why})", address.to);
    }
    if all > tried.len() {
        let _ = write!(text, ", and {} more were not tried", all - tried.len());
    }
    text + PASSES
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn bound(at: &str) -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind(at).unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    }

    /// Answers the first packet that comes with what this makes of it; how long that was.
    fn answering(server: UdpSocket, answer: fn(&[u8]) -> Vec<u8>) -> std::thread::JoinHandle<usize> {
        std::thread::spawn(move || {
            let mut packet = [0; 2048];
            let (length, from) = server.recv_from(&mut packet).unwrap();
            server.send_to(&answer(&packet[..length]), from).unwrap();
            length
        })
    }

    /// The beginning of a packet with a long header to whoever sent this one.
    fn to_sender(packet: &[u8]) -> Vec<u8> {
        let name = source(packet).unwrap();
        [&[0xc0, 0, 0, 0, 1, name.len() as u8][..], name, &[0; 20]].concat()
    }

    /// A port where nobody listens.
    fn closed() -> SocketAddr {
        bound("127.0.0.1:0").1
    }

    #[test]
    fn who_answers_first_is_taken_whether_those_before_are_silent_or_not_there() {
        let (_deaf, silent) = bound("127.0.0.1:0");
        for dead in [vec![silent], vec![closed()], vec![closed(), silent, closed()]] {
            let (server, there) = bound("127.0.0.1:0");
            let answering = answering(server, to_sender);
            let addresses = [&dead[..], &[there]].concat();
            assert_eq!(first_to_answer("lab", &addresses, Stack::Noq), Ok(there), "{dead:?}");
            assert!(answering.join().unwrap() >= 1200, "the first packet of a handshake");
        }
    }

    #[test]
    fn who_speaks_something_else_is_not_taken() {
        let (other, first) = bound("127.0.0.1:0");
        let (server, there) = bound("127.0.0.1:0");
        let both = [answering(other, |_| b"what do you mean?".to_vec()), answering(server, to_sender)];
        assert_eq!(first_to_answer("lab", &[first, there], Stack::Noq), Ok(there));
        both.into_iter().for_each(|one| assert!(one.join().unwrap() >= 1200));
    }

    #[test]
    fn one_that_answers_at_once_is_not_left_for_the_next() {
        let (server, there) = bound("127.0.0.1:0");
        let (other, second) = bound("127.0.0.1:0");
        other.set_nonblocking(true).unwrap();
        let answering = answering(server, to_sender);
        assert_eq!(first_to_answer("lab", &[there, second], Stack::Quinn), Ok(there));
        answering.join().unwrap();
    }

    #[test]
    fn where_none_answers_each_is_named_once_each_had_its_time() {
        let (_deaf, silent) = bound("127.0.0.1:0");
        let closed = closed();
        let began = Instant::now();
        let said = first_to_answer("lab", &[closed, silent], Stack::Noq).unwrap_err().to_string();
        let expected =
            format!("none of the addresses of lab answers: {closed} (nobody listens), {silent} (no answer within 3 s)");
        assert!(said.starts_with(&expected) && said.ends_with("pass?"), "{said}");
        assert!(began.elapsed() >= Duration::from_secs(3), "{:?}", began.elapsed());
        let all = [closed; 8];
        let said = first_to_answer("lab", &all, Stack::Noq).unwrap_err().to_string();
        assert!(said.contains("and 2 more were not tried"), "{said}");
    }
}
