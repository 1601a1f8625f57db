//! What leaves, and when.

use flowstart_congestion::Departure;
use flowstart_units::{Span, Time};

use super::{Connection, Idle};
use crate::stack::Transmit;

impl Connection {
    /// When something is to be done without a packet coming in; [`Time::NEVER`] if nothing is.
    #[must_use]
    pub fn deadline(&self) -> Time {
        let stack = self.inner.poll_timeout().map_or(Time::NEVER, |at| self.clock.time(at));
        stack.min(self.wake.unwrap_or(Time::NEVER)).min(self.asks_at())
    }

    /// When the next packet may leave, if nothing but its time holds it back.
    #[must_use]
    pub fn departs(&self) -> Time {
        self.wake.unwrap_or(Time::NEVER)
    }

    /// The next datagram, if one may leave now. [`departed`](Self::departed) must follow.
    ///
    /// # Errors
    /// Why none leaves.
    pub(crate) fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Result<Transmit, Idle> {
        let instant = self.clock.instant(now);
        self.wake = None;
        if self.ledger.is_none() || self.speaks {
            self.gate.set(true);
            if let Some(transmit) = self.inner.poll_transmit(instant, buffer) {
                return self.leaves(now, transmit);
            }
            self.speaks = false;
            return Err(Idle::Exhausted);
        }
        if std::mem::take(&mut self.asking) {
            self.waiting = false;
            self.gate.set(true);
            let transmit = self.inner.poll_transmit(instant, buffer);
            self.gate.set(false);
            if let Some(transmit) = transmit {
                return self.leaves(now, transmit);
            }
        }
        if !self.waiting {
            self.gate.set(false);
            if let Some(transmit) = self.inner.poll_transmit(instant, buffer) {
                return self.leaves(now, transmit);
            }
            if !self.gate.held_back() {
                self.planned = [None; 2];
                return Err(self.exhausted());
            }
            self.waiting = true;
        }
        let planned = self.planned[0].take();
        let Some(ledger) = &mut self.ledger else { return Err(Idle::Held) };
        match ledger.departure(now, u64::MAX) {
            Departure::Now => {
                self.gate.set(true);
                let transmit = self.inner.poll_transmit(instant, buffer);
                self.gate.set(false);
                if let Some(transmit) = transmit {
                    self.planned[1] = planned;
                    return self.leaves(now, transmit);
                }
                self.waiting = false;
                Err(self.exhausted())
            }
            Departure::At(at) => {
                self.wake = Some(at);
                self.planned[0] = Some(at);
                ledger.end_burst(now, false);
                Err(Idle::Until(at))
            }
            Departure::Hold => {
                ledger.end_burst(now, false);
                Err(Idle::Held)
            }
        }
    }

    /// The application has no more to send, which is why nothing leaves now.
    pub fn ran_dry(&mut self, now: Time) {
        if let Some(ledger) = &mut self.ledger {
            ledger.end_burst(now, true);
        }
    }

    /// The datagram that was polled left at this time, which is what congestion control hears. How
    /// late that was, if nothing but its time of departure had held it back.
    pub fn departed(&mut self, at: Time) -> Option<Span> {
        let planned = self.planned[1].take().filter(|planned| *planned <= at);
        self.gate.take(&mut self.notes);
        match self.ledger.as_mut().filter(|_| !self.speaks) {
            Some(ledger) => self.notes.drain(..).for_each(|told| ledger.note(at, told)),
            None => self.notes.clear(),
        }
        planned.map(|planned| at.since(planned))
    }
}
