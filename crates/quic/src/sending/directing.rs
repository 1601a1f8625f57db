//! When packets leave: what a detector or a look says to the controllers, and hears of them.

use flowstart_congestion::{Departure, StartConfig};
use flowstart_units::Time;

use super::Sending;
use super::report::isolated;
use crate::connection::Connection;
use crate::failed::{Failed, FailedKind};
use crate::ledger::HEADER_BYTES;
use crate::message::Isolated;

/// The start of a transfer that had a detector, after its address has changed.
const WITHOUT_DETECTOR: &str = "hystart++";

impl Sending {
    /// A connection has another path, of which nothing is known: it begins anew, and what was found
    /// of the old one is nothing worth here.
    pub(super) fn moved(&mut self, now: Time, number: usize) {
        if self.look.is_some() {
            let words = "the address of the other end changed during the look";
            self.fault = Some(Failed::new(FailedKind::Other, words));
            return;
        }
        self.moved = true;
        self.stale[number] = true;
        let mut start = self.config.start.name();
        if self.detector.take().is_some() {
            // It needs both paths from their beginning. The second connection repairs and ends.
            start = WITHOUT_DETECTOR;
            self.stale = [true; 2];
            self.told.get_or_insert(now);
            let after = now.since(self.began.unwrap_or_default()).as_nanos();
            self.isolated = Some(Isolated { isolation: "unknown".to_owned(), confidence: None, rate: 0, after });
        } else if self.resumed.is_none() {
            return;
        }
        // One that knows of no earlier transfer.
        if let Ok(start) = StartConfig::from_name(start) {
            self.config.start = start;
        }
    }

    /// Passes news between the detector and the connection's controller.
    pub(super) fn steer(&mut self, number: usize, connection: &mut Connection) {
        if let (Some(look), Some(ledger)) = (&mut self.look, connection.ledger_mut()) {
            if let Some(directed) = ledger.controller_mut().steering().directed() {
                directed.take_acked().for_each(|acked| look.on_acked(number, &acked));
            }
            if let (Some(decision), None) = (look.decision(), &self.isolated) {
                self.isolated = Some(isolated(decision, self.began.unwrap_or_default()));
            }
            return;
        }
        let Some(detector) = &mut self.detector else { return };
        let Some(ledger) = connection.ledger_mut() else { return };
        let mtu = ledger.mtu();
        if let Some(directed) = ledger.controller_mut().steering().directed() {
            let before = detector.confirmed();
            directed.take_acked().for_each(|acked| detector.on_acked(number, &acked));
            self.confirmed |= detector.confirmed() > before;
        }
        if number > 0 {
            return;
        }
        if let Some(decision) = detector.decision().copied()
            && self.told != Some(decision.now)
        {
            self.told = Some(decision.now);
            let mut steering = ledger.controller_mut().steering();
            steering.on_decision(&decision, mtu, mtu + HEADER_BYTES);
            steering.overhear(detector.watches());
            self.isolated = Some(isolated(&decision, self.began.unwrap_or_default()));
        }
        if let Some(rule) = detector.crowd()
            && !std::mem::replace(&mut self.crowded, true)
        {
            ledger.controller_mut().steering().on_crowd(rule);
        }
        if std::mem::take(&mut self.confirmed) {
            ledger.controller_mut().steering().on_isolation_confirmed();
        }
        if let Some(revoked) = ledger.controller().isolation_revoked()
            && self.revoked.replace(revoked) != Some(revoked)
        {
            detector.on_revoked(revoked);
        }
        if ledger.controller().gave_up_isolation() {
            detector.on_given_up();
        }
    }

    /// The detector says when the next packet leaves.
    pub(super) fn direct(&mut self, now: Time, over: bool, number: usize, connection: &mut Connection) {
        if let (Some(look), Some(ledger)) = (&mut self.look, connection.ledger_mut()) {
            let departure = look.departure(number, now);
            // Its time is over, or its data: the rest follows one by one all the same.
            let departure = match over && departure == Departure::Hold && !look.saves(number, now) {
                true => look.rest(now),
                false => departure,
            };
            return ledger.controller_mut().steering().direct(departure);
        }
        let Some(detector) = &mut self.detector else { return };
        let looking = self.told.is_some() && number == 1;
        if self.told.is_some() && !looking {
            return;
        }
        let Some(ledger) = connection.ledger_mut() else { return };
        let mut departure = detector.departure(number, now);
        // Repairs, and what a detector waits for that would not come after the last of the data.
        if over || (looking && departure == Departure::Hold) {
            departure = Departure::Now;
        }
        ledger.controller_mut().steering().direct(departure);
    }
}
