//! What losses and marks do to the window. Reductions walk to the threshold by proportional rate
//! reduction, as in `flowstart-transport`, which lends its parts.

use flowstart_congestion::{Prior, Repair, Signal};
use flowstart_transport::parts::Prr;
use flowstart_units::Time;

use super::{Batch, Ledger};

/// Window after nothing came through for long (RFC 9002 section 7.6.2, kMinimumWindow).
const MINIMUM_WINDOW: u32 = 2;

/// A reduction in progress.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reduction {
    /// It ends when nothing below this byte is open.
    pub(super) ends: u64,
    /// There is one.
    pub(super) active: bool,
    /// What is repaired meanwhile.
    pub(super) repair: Repair,
    /// The window walks to the threshold.
    pub(super) walking: bool,
    pub(super) prr: Prr,
    /// What comes back if it was needless.
    pub(super) prior: Prior,
}

/// What left before the latest reduction began was answered by it, however late losses and marks of
/// it are noticed (RFC 9002 section 7.3.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answered {
    /// The first byte after that.
    seq: u64,
    /// The same as the number of a packet.
    number: u64,
}

impl Ledger {
    /// Losses and marks call for at most one reduction per window.
    pub(super) fn react(&mut self, now: Time, batch: &Batch) {
        if batch.persistent {
            self.reduction = self.reduction(Repair::Timeout);
            let obeyed = self.controller.on_signal(now, Signal::Timeout).is_some();
            self.controller.on_expiry(now, self.counts.lost);
            if obeyed && !self.controller.controls_recovery() {
                self.controller.set_cwnd(MINIMUM_WINDOW);
            }
            return;
        }
        let active = self.reduction.active;
        let newest = batch.newest.map_or(0, |(number, _)| number);
        match batch.lost_seq {
            // As in Linux, another recovery follows at once if something is lost that left in this
            // one.
            _ if self.controller.controls_recovery() && self.repairs.any() => {
                if active && self.reduction.repair != Repair::Nothing {
                    return;
                }
                self.reduce(now, Signal::Loss, !batch.marked);
            }
            Some(last) if last >= self.answered.seq => self.reduce(now, Signal::Loss, !batch.marked),
            _ if batch.marked && !active && newest >= self.answered.number => self.reduce(now, Signal::Marks, false),
            _ => return,
        }
        // A timer that found the loss lets one packet go, as in Linux `tcp_rack_reo_timeout`. What
        // an ACK lets go is reckoned with in `grow`.
        if self.reduction.walking && batch.acked.is_empty() {
            self.walk(1, false);
        }
    }

    /// A reduction ends when nothing is open that had left when it began. A recovery that the
    /// control goes through in its own way lasts as long as TCP's: until all of that is delivered.
    pub(super) fn end_what_is_over(&mut self) {
        let over = match self.controller.controls_recovery() {
            true => self.repairs.over(),
            false => self.una() >= self.reduction.ends,
        };
        if self.reduction.active && over {
            self.end_reduction();
        }
    }

    /// One that begins now.
    fn reduction(&mut self, repair: Repair) -> Reduction {
        self.answered = Answered { seq: self.next, number: self.counts.sent };
        self.repairs.begin(self.in_flight, self.next);
        Reduction { ends: self.next, active: true, repair, ..Reduction::default() }
    }

    fn reduce(&mut self, now: Time, signal: Signal, may_return: bool) {
        let under_way = self.reduction.active && self.reduction.repair != Repair::Timeout;
        let mut prior = Prior::before(&self.controller, under_way);
        let obeyed = self.controller.on_signal(now, signal).is_some();
        let repair = if signal == Signal::Loss { Repair::Losses } else { Repair::Nothing };
        let mut reduction = self.reduction(repair);
        if obeyed {
            reduction.walking = self.controller.fell_from().is_none() && !self.controller.controls_recovery();
            reduction.prr = Prr::new(prior.reduced(&self.controller));
            if !may_return {
                prior.confirm();
            }
            reduction.prior = prior;
        }
        self.reduction = reduction;
    }

    pub(super) fn walk(&mut self, delivered: u32, safe: bool) {
        let send = self.reduction.prr.on_delivered(delivered, self.in_flight, self.controller.ssthresh(), safe);
        self.controller.set_cwnd(self.in_flight.saturating_add(send));
    }

    fn end_reduction(&mut self) {
        if std::mem::take(&mut self.reduction).walking {
            self.controller.end_recovery();
        }
    }

    /// All that was lost has arrived after all. A reduction that marks confirmed stays, and answers
    /// what left before it.
    pub(super) fn undo(&mut self) {
        self.repairs.forget();
        self.records.iter_mut().for_each(|record| record.stands_for = record.seq);
        let mut reduction = std::mem::take(&mut self.reduction);
        if reduction.prior.give_back(&mut self.controller) {
            self.answered = Answered::default();
        } else if reduction.walking {
            self.controller.end_recovery();
        }
    }
}
