//! What losses and marks do to the window. Reductions walk to the threshold by proportional rate
//! reduction, as in `flowstart-transport`, which lends its parts.

use flowstart_congestion::{Repair, Signal};
use flowstart_transport::parts::Prr;
use flowstart_units::Time;

use super::{Batch, Ledger};

/// Window after nothing came through for long (RFC 9002 section 7.6.2, kMinimumWindow).
const MINIMUM_WINDOW: u32 = 2;

/// A reduction in progress.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reduction {
    /// Losses below this byte belong to it.
    pub(super) until: u64,
    /// It ends when nothing below this byte is open.
    pub(super) ends: u64,
    /// There is one.
    pub(super) active: bool,
    /// What is repaired meanwhile.
    pub(super) repair: Repair,
    /// The window walks to the threshold.
    pub(super) walking: bool,
    pub(super) prr: Prr,
    /// Window and threshold before, if they may come back.
    pub(super) prior: Option<(u32, u32)>,
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
        let Reduction { active, until, .. } = self.reduction;
        let lasting = active && self.controller.controls_recovery();
        match batch.lost_seqs {
            Some((first, _)) if lasting => return self.prolong(first),
            Some((_, last)) if !active || last >= until => self.reduce(now, Signal::Loss, !batch.marked),
            _ if batch.marked && !active => self.reduce(now, Signal::Marks, false),
            _ => return,
        }
        // A timer that found the loss lets one packet go, as in Linux `tcp_rack_reo_timeout`. What
        // an ACK lets go is reckoned with in `grow`.
        if self.reduction.walking && batch.acked.is_empty() {
            self.walk(1, false);
        }
    }

    /// A loss in a recovery of a control that goes through recoveries in its own way. As TCP's they
    /// last until what was lost is delivered (RFC 6675 section 5): here, until nothing is open that
    /// had left when the last of these losses was noticed, for what replaces it leaves about then.
    /// What left in the recovery and is lost, too, belongs to none: the next one begins with the
    /// first loss after this one.
    fn prolong(&mut self, first: u64) {
        if first < self.reduction.until {
            self.reduction.ends = self.next;
        }
    }

    /// One that begins now.
    fn reduction(&self, repair: Repair) -> Reduction {
        Reduction { until: self.next, ends: self.next, active: true, repair, ..Reduction::default() }
    }

    fn reduce(&mut self, now: Time, signal: Signal, may_return: bool) {
        let cwnd = self.controller.cwnd();
        let worth = self.controller.ssthresh().max((cwnd >> 1) + (cwnd >> 2));
        let obeyed = self.controller.on_signal(now, signal).is_some();
        let repair = if signal == Signal::Loss { Repair::Losses } else { Repair::Nothing };
        let mut reduction = self.reduction(repair);
        if obeyed {
            let fell_from = self.controller.fell_from();
            let prior = fell_from.unwrap_or(self.controller.cwnd());
            reduction.prior = may_return.then_some((prior, worth));
            reduction.walking = fell_from.is_none() && !self.controller.controls_recovery();
            reduction.prr = Prr::new(prior);
        }
        self.reduction = reduction;
    }

    pub(super) fn walk(&mut self, delivered: u32, safe: bool) {
        let send = self.reduction.prr.on_delivered(delivered, self.in_flight, self.controller.ssthresh(), safe);
        self.controller.set_cwnd(self.in_flight.saturating_add(send));
    }

    pub(super) fn end_reduction(&mut self) {
        if std::mem::take(&mut self.reduction).walking {
            self.controller.end_recovery();
        }
    }

    pub(super) fn undo(&mut self) {
        let reduction = std::mem::take(&mut self.reduction);
        if let Some((cwnd, ssthresh)) = reduction.prior {
            self.controller.undo(cwnd, ssthresh);
        } else if reduction.walking {
            self.controller.end_recovery();
        }
    }
}
