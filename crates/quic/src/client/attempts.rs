//! Attempts to connect: one whose handshake goes no further is given up for another.
//!
//! A client follows one Retry of its server and no other (RFC 9000 section 17.2.5.2). If the server
//! is started anew after that, it knows neither the client nor what its token is worth, and answers
//! each packet with another Retry; the stack would go on asking for a minute. Before the handshake
//! is over no stateless reset helps either: the client knows no token.

use flowstart_units::{Span, Time};

use crate::clock::Clock;
use crate::endpoint::{Endpoint, Limits};
use crate::failed::{Failed, FailedKind};
use crate::tap::Tap;
use crate::tls::{self, Fingerprint};

/// How each connection is made.
#[derive(Debug)]
pub(super) struct Attempts {
    clock: Clock,
    limits: Limits,
    to: std::net::SocketAddr,
    pinned: Option<Fingerprint>,
    /// The newest attempt of each connection.
    newest: Vec<Attempt>,
    /// What each connection and those before it are called by their server.
    names: Vec<Vec<Vec<u8>>>,
}

#[derive(Clone, Copy, Debug)]
struct Attempt {
    /// Those before it.
    before: u8,
    /// When it began, or something new arrived.
    since: Time,
    /// A Retry has arrived.
    asked: bool,
    /// The system said that nobody listens, and nothing has arrived since.
    refused: bool,
    /// It has succeeded, or cannot be followed by another.
    over: bool,
}

impl Attempt {
    fn new(now: Time) -> Self {
        Self { before: 0, since: now, asked: false, refused: false, over: false }
    }
}

impl Attempts {
    pub(super) fn new(clock: Clock, limits: &Limits, to: std::net::SocketAddr, pinned: Option<Fingerprint>) -> Self {
        Self { clock, limits: limits.clone(), to, pinned, newest: Vec::new(), names: Vec::new() }
    }

    /// Another connection, and the look into its packets if there is one.
    pub(super) fn first(&mut self, now: Time) -> Result<(Endpoint, Option<Tap>), Failed> {
        self.newest.push(Attempt::new(now));
        self.names.push(Vec::new());
        self.connect(now, self.newest.len() - 1)
    }

    fn connect(&self, now: Time, number: usize) -> Result<(Endpoint, Option<Tap>), Failed> {
        let failed = |error: &dyn std::fmt::Display| {
            Failed::new(FailedKind::Unreachable, format!("cannot connect to {}: {error}", self.to))
        };
        let mut limits = self.limits.clone();
        if let Some(seed) = &mut limits.seed {
            seed[0] ^= number as u8 + 1;
            seed[1] ^= self.newest[number].before;
        }
        let mut endpoint = Endpoint::new(self.clock, &limits, None).map_err(|error| failed(&error))?;
        let tap = limits.departures.then(Tap::default);
        let config = tls::client(self.pinned, tap.as_ref()).map_err(|error| failed(&error))?;
        endpoint.connect(now, config, self.to).map_err(|error| failed(&error))?;
        Ok((endpoint, tap))
    }

    /// A datagram of a handshake leaves.
    pub(super) fn leaves(&mut self, number: usize, data: &[u8]) {
        let Some((attempt, names)) = self.newest.get(number).zip(self.names.get_mut(number)) else { return };
        let name = source(data).filter(|_| !attempt.over);
        if let Some(name) = name.filter(|name| !names.iter().any(|known| known == name)) {
            names.push(name.to_vec());
        }
    }

    /// A datagram is there to be read; true if it is for a connection, or for an attempt before it:
    /// before a slow link answers come late. What has no name of either keeps no attempt going.
    pub(super) fn heard(&mut self, now: Time, number: usize, data: &[u8]) -> bool {
        let Some((attempt, names)) = self.newest.get_mut(number).zip(self.names.get(number)) else { return false };
        // A handshake that is over has other names, too.
        let named = attempt.over || names.iter().any(|name| is_to(data, name));
        if !named {
            return false;
        }
        attempt.refused = false;
        // A long header, and the type of a Retry (RFC 9000 section 17.2.5).
        let retry = data.first().is_some_and(|byte| byte & 0xb0 == 0xb0);
        if !retry || !std::mem::replace(&mut attempt.asked, true) {
            attempt.since = now;
        }
        true
    }

    /// The system says that nobody listens any more. The server may be on its way back: only the
    /// last attempt's end says so.
    pub(super) fn refused(&mut self) {
        self.newest.iter_mut().for_each(|attempt| attempt.refused = true);
    }

    /// No other attempt is wanted of a connection.
    pub(super) fn leave(&mut self, number: usize) {
        self.newest[number].over = true;
    }

    /// How long nothing new may arrive.
    pub(super) fn silence(&self) -> Span {
        self.limits.silence
    }

    /// When the next attempt is over, if nothing new arrives before.
    pub(super) fn deadline(&self) -> Time {
        let trying = self.newest.iter().filter(|attempt| !attempt.over);
        trying.map(|attempt| attempt.since + self.silence()).min().unwrap_or(Time::NEVER)
    }

    /// A connection whose attempt got stuck.
    pub(super) fn stuck(&self, now: Time) -> Option<usize> {
        self.newest.iter().position(|attempt| !attempt.over && attempt.since + self.silence() <= now)
    }

    /// Tries a connection anew.
    pub(super) fn next(&mut self, now: Time, number: usize) -> Result<(Endpoint, Option<Tap>), Failed> {
        let before = self.newest[number].before + 1;
        if before >= self.limits.attempts {
            let (to, seconds) = (self.to, self.silence().as_secs_f64());
            let each = format!("{before} attempts got stuck, each for {seconds} s");
            return Err(match self.newest[number].refused {
                true => Failed::new(
                    FailedKind::Unreachable,
                    format!("{to} answered, but nobody listens there any more: {each}"),
                ),
                false => {
                    Failed::new(FailedKind::TimedOut, format!("{to} answers, but no connection comes about: {each}"))
                }
            });
        }
        self.newest[number] = Attempt { before, ..Attempt::new(now) };
        self.connect(now, number)
    }
}

/// Who sends a datagram that begins with a long header (RFC 9000 section 17.2).
pub(crate) fn source(data: &[u8]) -> Option<&[u8]> {
    let rest = data.get(5..).filter(|_| data[0] & 0x80 != 0)?;
    let (to, rest) = rest.split_first()?;
    let (length, rest) = rest.get(usize::from(*to)..)?.split_first()?;
    rest.get(..usize::from(*length)).filter(|name| !name.is_empty())
}

/// Whether a datagram is for the connection of that name.
pub(crate) fn is_to(data: &[u8], name: &[u8]) -> bool {
    match data.first() {
        Some(byte) if byte & 0x80 != 0 => {
            data.get(5).is_some_and(|length| usize::from(*length) == name.len())
                && data.get(6..).is_some_and(|rest| rest.starts_with(name))
        }
        _ => data.get(1..).is_some_and(|rest| rest.starts_with(name)),
    }
}
