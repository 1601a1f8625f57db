//! What goes wrong with a client's connections: in words, and what is tried anew.

use std::net::SocketAddr;

use flowstart_units::{Span, Time};

use super::{Client, Failed, FailedKind, Line};
use crate::data::Receiving;
use crate::message::{NOT_UNDERSTOOD, UNWANTED};
use crate::stack::ConnectionError;
use crate::tls;

/// What may be the reason where nothing comes back.
pub(crate) const PASSES: &str = ": is `flowstart serve` running there, and do UDP datagrams of 1200 bytes pass?";

/// What is said if nothing ever comes back, or nothing that makes sense.
pub(super) fn unreachable(to: SocketAddr, silence: Span, senseless: bool) -> String {
    let seconds = silence.as_secs_f64();
    match senseless {
        true => format!("what came back from {to} within {seconds} s is no handshake of QUIC{PASSES}"),
        false => format!("nothing came back from {to} within {seconds} s{PASSES}"),
    }
}

impl Client {
    /// What is said where connections are too many.
    fn takes_two(&self) -> &'static str {
        match (self.request.look, self.request.connections) {
            (true, _) => "; a look needs two at a time (`flowstart serve --peer-connections`, `--most-connections`)",
            (false, 2..) => {
                "; this start needs two at a time (`flowstart serve --peer-connections`, `--most-connections`)"
            }
            (false, _) => "",
        }
    }

    /// Why a connection is over, in words.
    pub(super) fn lost(&self, reason: &ConnectionError) -> Failed {
        let to = self.to;
        let (kind, words) = match reason {
            ConnectionError::ConnectionClosed(words) if words.contains("refused") => {
                let two = self.takes_two();
                (FailedKind::Refused, format!("{to} refuses the connection: it has as many as it takes{two}"))
            }
            ConnectionError::TransportError(text) if text.contains(tls::WRONG_FINGERPRINT) => {
                let seen = text.rsplit(' ').next().unwrap_or_default().trim_end_matches(['"', ')']).to_owned();
                let words = format!("{to} is not the server expected: the fingerprint of its certificate is {seen}");
                (FailedKind::WrongFingerprint, words)
            }
            ConnectionError::ApplicationClosed { code, .. } if *code == u64::from(NOT_UNDERSTOOD) => {
                // It knows all other words of a request.
                let asked = !self.accepted && self.request.paced.is_some_and(|paced| paced.tell);
                let words = match asked {
                    true => format!(
                        "{to} cannot tell when it reads what is sent to it: `flowstart serve` there is of an older \
                         version"
                    ),
                    false => format!("{to} ended the connection: {reason}"),
                };
                (FailedKind::Protocol, words)
            }
            ConnectionError::ApplicationClosed { code, reason } if *code == u64::from(UNWANTED) => {
                let reason = String::from_utf8_lossy(reason);
                let many = if reason.contains("at a time from") { self.takes_two() } else { "" };
                (FailedKind::Refused, format!("{to} refuses: {reason}{many}"))
            }
            ConnectionError::Reset => {
                let why = "`flowstart serve` there was started anew, or gave it up";
                (FailedKind::Closed, format!("{to} has reset the connection: {why}"))
            }
            ConnectionError::TimedOut if self.heard => (FailedKind::TimedOut, format!("{to} went silent")),
            ConnectionError::TimedOut => {
                (FailedKind::TimedOut, unreachable(to, self.attempts.silence(), self.senseless))
            }
            other => {
                let kind = match other {
                    ConnectionError::TransportError(_) => FailedKind::Protocol,
                    ConnectionError::Other(_) => FailedKind::Other,
                    _ => FailedKind::Closed,
                };
                (kind, format!("{to} ended the connection: {other}"))
            }
        };
        Failed::new(kind, words)
    }

    /// Connections whose handshake got stuck begin it anew.
    pub(super) fn try_anew(&mut self, now: Time) {
        while let Some(stuck) = self.attempts.stuck(now).filter(|_| self.heard && self.ended.is_none()) {
            let spoke = self.lines[stuck].control.is_some();
            let ready = self.endpoints[stuck].connection(0).is_some_and(|connection| connection.is_ready());
            // Data that came says that the server has had both connections.
            let goes_on =
                self.lines.iter().any(|line| line.begun) || self.receiving.as_ref().is_some_and(Receiving::has_begun);
            if ready || (spoke && goes_on) {
                self.attempts.leave(stuck);
                continue;
            }
            if spoke {
                // The server may have heard what was wanted, and have begun a session.
                self.request.session = self.request.session.wrapping_add(1);
                self.accepted = false;
            }
            for number in 0..self.lines.len() {
                // Whoever has named that session has to begin anew, too.
                if number != stuck && !(spoke && self.lines[number].control.is_some()) {
                    continue;
                }
                match self.attempts.next(now, number) {
                    Ok((endpoint, tap)) => {
                        self.endpoints[number] = endpoint;
                        self.lines[number] = Line::default();
                        self.taps.iter_mut().skip(number).zip(tap).for_each(|(old, new)| *old = new);
                    }
                    Err(failed) => self.end(now, Err(failed)),
                }
            }
        }
    }
}
