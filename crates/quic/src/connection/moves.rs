//! A connection whose other end moves.

use std::net::SocketAddr;

use flowstart_congestion::Controller;
use flowstart_units::{Span, Time};

use super::{Connection, Idle, Quickest};
use crate::gate::{Gates, Told};
use crate::judging::header_bytes;
use crate::moving::{Unproven, Verdict, is_another_path};
use crate::stack::{Transmit, place};

/// The port of a [detour](Connection::detour), from which nothing comes (RFC 768).
const NOBODY: u16 = 0;
/// Round trips, and time besides, until one is taken: with a variation of half an RTT (RFC 9002
/// section 5.3) three PTOs are nine, and three times the longest delay of an ACK.
const DETOUR_RTTS: u64 = 10;
const DETOUR_LEAST: Span = Span::from_millis(100);

impl Connection {
    /// The other end may be somewhere else now, with another gate on the way there.
    pub(super) fn look_where(&mut self, now: Time, gates: &Gates, made: u64) {
        let Some(remote) = self.inner.remote() else { return };
        let before = std::mem::replace(&mut self.remote, remote);
        if before == self.remote {
            return;
        }
        self.unproven = Some(Unproven::new(before, self.unproven.take()));
        self.detour = Some(now + self.detours_after());
        let (count, gate) = gates.last();
        if count != made {
            gate.set(self.ledger.is_none());
            self.gate = gate;
            // The stack knows no RTT either: one of nothing is to be had again, once it sends.
            self.quickest = Quickest::Before;
            let mtu = self.inner.mtu();
            if let Some(ledger) = &mut self.ledger {
                ledger.note(now, Told::Moved);
                ledger.note(now, Told::Mtu(mtu));
                ledger.settle(now, Span::ZERO);
            }
        }
        self.waiting = false;
    }

    /// Longer than the stack goes on challenging a client that has moved: three times its PTO.
    fn detours_after(&self) -> Span {
        self.handshake_rtt() * DETOUR_RTTS + DETOUR_LEAST
    }

    /// Where a datagram that arrives from there is to seem to come from, if from somewhere else.
    ///
    /// The stack challenges a client that has moved for a few round trips. If no answer comes, for
    /// the network went meanwhile, it never does so again as long as the client stays, and sends it
    /// three times what it sends at most for ever: a transfer to the client stands still. When one
    /// datagram comes from a place where nobody is, the client is back with its next one, and is
    /// challenged. The stack then knows a place that was not proven either, to which it goes back
    /// when the next challenges are over, so that the client is back once more.
    pub(crate) fn detour(&mut self, now: Time, from: SocketAddr) -> Option<SocketAddr> {
        let due = self.unproven.is_some() && place(from) == self.remote && self.detour.is_some_and(|at| at <= now);
        due.then(|| {
            self.detour = Some(now + self.detours_after());
            SocketAddr::new(self.remote.ip(), NOBODY)
        })
    }

    /// A datagram of so many bytes was sent or received.
    pub(super) fn carries(&mut self, bytes: usize) {
        self.carried += bytes as u64 + u64::from(header_bytes(self.remote.ip()));
    }

    /// Bytes that it has sent and received so far, with headers of IP and UDP.
    pub(crate) fn carried(&self) -> u64 {
        self.carried
    }

    /// The stack sends something. If it does so only because the other end has shown that it is
    /// there, that is known now. If it is too much for who has not, it is lost here.
    pub(super) fn leaves(&mut self, now: Time, transmit: Transmit) -> Result<Transmit, Idle> {
        if transmit.to.port() == NOBODY {
            return Err(Idle::Held);
        }
        self.carries(transmit.size);
        // Where it seemed to be before the stack asks, too, without any limit.
        if self.server && transmit.to != self.remote {
            return if self.credit.pays(transmit.size as u64) { Ok(transmit) } else { Err(Idle::Held) };
        }
        let Some(unproven) = &mut self.unproven else { return Ok(transmit) };
        match unproven.sends(transmit.size, &mut self.credit) {
            Verdict::Leaves => {}
            Verdict::TooMuch => return Err(Idle::Held),
            Verdict::Proves => {
                self.renewal |= is_another_path(unproven.before(), self.remote);
                self.unproven = None;
                if matches!(self.quickest, Quickest::Before) && self.ledger.is_some() {
                    self.quickest = Quickest::Since(now);
                }
            }
        }
        Ok(transmit)
    }

    /// Nothing is sent: because there is nothing, or because the stack sends no data before the
    /// other end has shown that it is there. More would only wait here then.
    pub(super) fn exhausted(&self) -> Idle {
        if self.unproven.is_some() { Idle::Held } else { Idle::Exhausted }
    }

    /// Where the other end is, and where it was last known to be.
    pub(crate) fn whereabouts(&self) -> (SocketAddr, SocketAddr) {
        (self.remote, self.unproven.map_or(self.remote, |unproven| unproven.before()))
    }

    /// True, once, if the other end has been found to have another address: its controller knows
    /// another path.
    pub(crate) fn take_renewal(&mut self) -> bool {
        std::mem::take(&mut self.renewal)
    }

    /// All further packets are those of a controller that knows nothing (RFC 9000 section 9.4).
    pub(crate) fn renew(&mut self, now: Time, controller: Controller) {
        if let Some(ledger) = &mut self.ledger {
            ledger.renew(now, controller);
        }
        self.waiting = false;
    }

    /// Whether datagrams from there are read: a server's address does not change. Where a client
    /// has another one than before somebody else decides.
    pub(crate) fn may_come_from(&self, from: SocketAddr, admit: &mut dyn FnMut() -> bool) -> bool {
        place(from) == self.remote || (self.server && admit())
    }
}
