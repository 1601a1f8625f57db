use std::collections::VecDeque;

use flowstart_congestion::{AvoidanceConfig, ControllerConfig, StartConfig};

use super::*;
use crate::endpoint::{Arrival, Doors, Endpoint, Limits};
use crate::tls::{self, Identity};

/// From one end to the other.
const DELAY: Span = Span::from_millis(10);
/// Streams with data, and bytes written to each: a piece.
const STREAMS: usize = 32;
const EACH: usize = 32 << 10;
/// Packets that carry a piece, at most.
const OF_A_PIECE: usize = EACH / 1400 + 1;
/// What is said while data is sent.
const WORD: &[u8] = b"a word that cannot wait";

/// A client and a server that are `DELAY` apart, over a link of any rate.
struct Ends {
    now: Time,
    client: Endpoint,
    server: Endpoint,
    /// Datagrams on the way: when they arrive, whether at the server, and their number.
    flying: VecDeque<(Time, bool, usize, Vec<u8>)>,
    /// Datagrams that the server sent since this was set to zero, and the number of its last one
    /// that arrived.
    sent: usize,
    arrived: usize,
    /// Which of them is lost; 0 for none.
    loses: usize,
}

impl Ends {
    /// Two ends whose handshake is complete.
    fn new() -> Self {
        let clock = Clock::start();
        let limits = |seed| Limits { seed: Some([seed; 32]), ..Limits::default() };
        let identity = Identity::generate().unwrap();
        let mut client = Endpoint::new(clock, &limits(1), None).unwrap();
        client.connect(Time::ZERO, tls::client(None, None).unwrap(), Self::address(true)).unwrap();
        let server = Endpoint::new(clock, &limits(2), Some(&identity)).unwrap();
        let (now, flying) = (Time::ZERO, VecDeque::new());
        let mut ends = Self { now, client, server, flying, sent: 0, arrived: 0, loses: 0 };
        while !(ends.at_client().is_ready() && ends.server.connection(0).is_some_and(|it| it.is_ready())) {
            ends.step();
        }
        ends
    }

    fn at_client(&mut self) -> &mut Connection {
        self.client.connection(0).unwrap()
    }

    fn at_server(&mut self) -> &mut Connection {
        self.server.connection(0).unwrap()
    }

    fn address(server: bool) -> SocketAddr {
        if server { "10.0.0.2:4433" } else { "10.0.0.1:5001" }.parse().unwrap()
    }

    /// Sends all that may leave, and goes on to what happens next.
    fn step(&mut self) {
        let (now, mut buffer) = (self.now, Vec::new());
        for server in [false, true] {
            let end = if server { &mut self.server } else { &mut self.client };
            while let Some(outgoing) = end.poll_transmit(now, &mut buffer, &mut |_, _, _| false) {
                if let Some(connection) = outgoing.connection.and_then(|number| end.connection(number)) {
                    connection.departed(now);
                }
                self.sent += usize::from(server);
                if !server || self.sent != self.loses {
                    self.flying.push_back((now + DELAY, !server, self.sent, buffer.clone()));
                }
            }
        }
        let arrives = self.flying.front().map_or(Time::NEVER, |(at, ..)| *at);
        let next = arrives.min(self.client.deadline()).min(self.server.deadline());
        assert!(next < now + Span::from_secs(5), "nothing happens any more");
        self.now = next.max(now + Span::from_nanos(1));
        if arrives <= self.now
            && let Some((at, to_server, number, data)) = self.flying.pop_front()
        {
            let arrival = Arrival { at, from: Self::address(!to_server), ecn: None };
            if to_server {
                self.server.handle(
                    self.now,
                    &arrival,
                    &data,
                    &mut Doors { moves: &mut |_| true, enters: &mut || true },
                );
            } else {
                self.arrived = number;
                self.client.handle(
                    self.now,
                    &arrival,
                    &data,
                    &mut Doors { moves: &mut |_| true, enters: &mut || true },
                );
            }
        }
        for end in [&mut self.client, &mut self.server] {
            end.handle_timeout(self.now);
            while end.connection(0).and_then(Connection::poll).is_some() {}
        }
    }

    /// The server has a megabyte to send over streams of one direction. When its window has grown
    /// to a few dozen packets, it says something on the control stream. Of the packets that leave
    /// from then on, the number of the one with which the client has read it; and how many had left
    /// when the server noticed a loss, if one of them is lost.
    fn answered_with(mut self, loses: usize) -> (usize, usize) {
        let control = self.at_client().open(Dir::Bi).unwrap();
        self.at_client().write(control, b"?");
        let answer = loop {
            self.step();
            if let Some(stream) = self.at_server().accept(Dir::Bi) {
                break stream;
            }
        };
        let mut config = ControllerConfig::new(StartConfig::SlowStart, AvoidanceConfig::from_name("reno").unwrap());
        config.initial_window = 10;
        let now = self.now;
        self.at_server().begin(now, Controller::new(&config), "");
        for _ in 0..STREAMS {
            let stream = self.at_server().open(Dir::Uni).unwrap();
            assert_eq!(self.at_server().write(stream, &[7; EACH]), EACH);
        }
        while self.at_server().ledger().unwrap().counts().delivered < 30 {
            self.step();
        }
        assert_eq!(self.at_server().write(answer, WORD), WORD.len());
        (self.sent, self.arrived, self.loses) = (0, 0, loses);
        let (mut heard, mut noticed) = (Vec::new(), 0);
        while heard != WORD {
            self.step();
            if noticed == 0 && self.at_server().ledger().unwrap().counts().lost > 0 {
                noticed = self.sent;
            }
            self.at_client().read(control, &mut |bytes| heard.extend_from_slice(&bytes));
            assert!(self.sent < 700, "all else has left");
        }
        (self.arrived, noticed)
    }
}

/// The stacks end a connection with more than 1024 gaps in a stream; 16 streams fill the window of
/// the connection.
#[test]
fn a_stream_takes_two_mebibytes_that_are_not_read_and_sixteen_take_all() {
    let mut ends = Ends::new();
    let control = ends.at_client().open(Dir::Bi).unwrap();
    ends.at_client().write(control, b"?");
    while ends.at_server().accept(Dir::Bi).is_none() {
        ends.step();
    }
    let much = vec![7; 3 << 20];
    for _ in 0..16 {
        let stream = ends.at_server().open(Dir::Uni).unwrap();
        assert_eq!(ends.at_server().write(stream, &much), 2 << 20);
    }
    let stream = ends.at_server().open(Dir::Uni).unwrap();
    assert_eq!(ends.at_server().write(stream, &much), 0);
}

/// Of the 770 packets that wait, those go before that end the piece that is on its way.
#[test]
fn what_is_said_on_a_busy_connection_leaves_after_the_piece_that_is_being_sent() {
    let (first, _) = Ends::new().answered_with(0);
    assert!(first <= OF_A_PIECE, "packet {first}");
    // ... and so again if that was lost, once it is known.
    let (again, noticed) = Ends::new().answered_with(first);
    assert!((noticed + 1..=noticed + OF_A_PIECE).contains(&again), "packet {again}, noticed after {noticed}");
}
