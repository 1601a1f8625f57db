//! The states of loss recovery: when the window is reduced, when the reduction ends, and when it
//! was needless (Linux `tcp_fastretrans_alert` and what it calls).

use flowstart_congestion::{ExitReason, Prior, Signal};
use flowstart_network::packet::Acknowledgement;
use flowstart_units::Time;

use super::delivery::Delivery;
use super::prr::Prr;
use super::timers::Timer;
use super::{Order, Sender, SenderState};
use crate::{EcnMode, LossDetection, Reduction};

/// What recovery remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recovery {
    pub(super) state: SenderState,
    /// The state ends when this byte (CWR: a byte beyond it) is acknowledged.
    pub(super) high_seq: u64,
    /// The window is walking to the threshold.
    pub(super) reducing: bool,
    /// A start did not obey the loss that began this recovery.
    pardoned: bool,
    pub(super) prr: Prr,
    /// F-RTO waits for evidence.
    pub(super) f_rto: bool,
    /// Timeouts without progress in between.
    pub(super) expiries: u32,
    /// What comes back if the reduction was needless.
    prior: Prior,
    /// First byte outstanding when the reduction began, as long as it may be undone.
    undo_from: Option<u64>,
    /// Retransmissions since then that the receiver has not called needless; `None` before the
    /// first one.
    unconfirmed: Option<u32>,
    /// When the first retransmission of the episode left.
    first_retransmission: Option<Time>,
}

impl Recovery {
    /// A segment was sent again.
    pub(super) fn on_retransmission(&mut self, now: Time) {
        self.first_retransmission.get_or_insert(now);
        self.unconfirmed = Some(self.unconfirmed.unwrap_or(0).saturating_add(1));
    }
}

/// What the state machine needs to know of an ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckFacts<'a> {
    pub(super) now: Time,
    pub(super) ack: &'a Acknowledgement,
    /// It moved the cumulative acknowledgement.
    pub(super) advanced: bool,
    /// It reports congestion marks.
    pub(super) marks: bool,
    pub(super) prior_una: u64,
    /// Packets outstanding and not selectively acknowledged before it.
    pub(super) prior_unsacked: u32,
    pub(super) delivery: &'a Delivery,
}

impl Sender {
    // --- before the controller hears of the ACK: ends, undoing, losses ---

    /// Ends states that are over, takes needless reductions back and finds losses. Returns false if
    /// nothing more may follow from this ACK.
    pub(super) fn settle(&mut self, event: &AckFacts<'_>) -> bool {
        if event.marks {
            self.recovery.prior.confirm();
        }
        let una = self.stats.una;
        match self.recovery.state {
            SenderState::Open => self.recovery.first_retransmission = None,
            // CWR must reach the receiver first, so something above must be acknowledged.
            SenderState::Cwr if una > self.recovery.high_seq => {
                self.end_reduction();
                self.recovery.state = SenderState::Open;
            }
            SenderState::Recovery if una >= self.recovery.high_seq => {
                if !self.end_recovery(event) {
                    return false;
                }
                self.end_reduction();
            }
            _ => {}
        }
        match self.recovery.state {
            SenderState::Recovery => {
                if event.advanced && self.undo_on_partial_ack(event) {
                    return false;
                }
                if self.undo_on_duplicates() {
                    self.keep_open();
                }
            }
            SenderState::Loss => self.settle_loss(event),
            SenderState::Open | SenderState::Disorder => {
                self.undo_on_duplicates();
            }
            SenderState::Cwr => {}
        }
        if self.config.loss_detection == LossDetection::NewReno {
            self.find_losses_without_sack(event.advanced);
        } else if self.board.newest().advanced {
            self.detect_losses(event.now);
        }
        true
    }

    /// Recovery is over: everything outstanding at its beginning is acknowledged. Returns false if
    /// the state stays.
    fn end_recovery(&mut self, event: &AckFacts<'_>) -> bool {
        if self.may_undo(event.ack) {
            self.undo(false);
        } else {
            self.reordering.on_recovery_end();
        }
        if self.config.loss_detection == LossDetection::NewReno {
            self.board.reset_duplicate_acks();
            if self.stats.una == self.recovery.high_seq && event.advanced {
                // Duplicates of the retransmissions would start another recovery: wait for
                // something new (RFC 6582 section 6).
                return false;
            }
        }
        self.recovery.state = SenderState::Open;
        true
    }

    /// Linux `tcp_process_loss`.
    fn settle_loss(&mut self, event: &AckFacts<'_>) {
        let recovered = self.stats.una >= self.recovery.high_seq;
        if event.advanced && self.may_undo(event.ack) {
            return self.undo_loss();
        }
        if self.recovery.f_rto {
            if event.delivery.original_below_high {
                return self.undo_loss();
            }
            if self.stats.next > self.recovery.high_seq {
                // New data was sent after the timeout: out-of-order arrivals now mean that the loss
                // was real.
                if event.delivery.sacked > 0 || !event.advanced {
                    self.recovery.f_rto = false;
                }
            } else if event.advanced && !recovered {
                self.recovery.high_seq = self.stats.next;
                self.order = Order::NewFirst;
                return;
            }
        }
        if recovered {
            if self.may_undo(event.ack) {
                self.undo(false);
            } else {
                self.reordering.on_recovery_end();
            }
            if self.config.loss_detection == LossDetection::NewReno {
                self.board.reset_duplicate_acks();
            }
            self.recovery.state = SenderState::Open;
        }
    }

    fn undo_loss(&mut self) {
        self.undo(true);
        self.recovery.expiries = 0;
        self.recovery.state = SenderState::Open;
    }

    /// Three duplicate ACKs, or a partial one in recovery, and the oldest segment is lost (RFC 6582
    /// section 3.2).
    fn find_losses_without_sack(&mut self, advanced: bool) {
        let state = self.recovery.state;
        let certain = (state < SenderState::Recovery && self.board.sacked() >= self.config.reordering)
            || (state == SenderState::Recovery && advanced);
        if certain {
            self.board.lose_first();
            self.stats.packets_lost = self.board.total_lost();
        }
    }

    /// Asks RACK which packets are lost and waits for those that are only late.
    pub(super) fn detect_losses(&mut self, now: Time) {
        let window = self.reordering.window(
            &self.config,
            self.recovery.state,
            self.board.sacked(),
            self.rtt.min(),
            self.rtt.srtt(),
        );
        let losses = self.board.detect(now, window);
        self.stats.packets_lost = self.board.total_lost();
        if let Some(wait) = losses.wait {
            let wait = self.config.in_ticks(wait + self.config.timer_slack).min(self.rtt.rto());
            self.set_timer(Timer::Reordering, now + wait);
        }
    }

    // --- after the controller heard of the ACK: reductions ---

    /// The start that pardoned the first losses of this recovery has left. The avoidance answers
    /// what follows: the `lost` packets if the start left for them, and repairs that were lost,
    /// without which the recovery would be over.
    fn gave_up_pardon(&self, lost: u32, lost_again: bool) -> bool {
        let over = self.recovery.pardoned && !self.controller.start_is_in_charge();
        let for_losses = || self.controller.start_exit().is_some_and(|exit| exit.reason == ExitReason::Loss);
        over && ((lost_again && !self.controller.controls_recovery()) || (lost > 0 && for_losses()))
    }

    /// Begins what this ACK calls for, which told of `lost` packets.
    pub(super) fn react(&mut self, event: &AckFacts<'_>, lost: u32) {
        let lost_again = self.board.take_lost_retransmission();
        match self.recovery.state {
            SenderState::Recovery if self.gave_up_pardon(lost, lost_again) => {}
            SenderState::Recovery => return,
            SenderState::Loss if !lost_again => return,
            _ => {}
        }
        if self.board.lost() > 0 {
            self.enter_recovery(event.now, event.marks, event.prior_unsacked);
            return;
        }
        if self.recovery.state == SenderState::Loss {
            return;
        }
        if !self.board.any_retransmission() {
            self.recovery.first_retransmission = None;
        }
        if event.marks {
            self.enter_cwr(event.now);
        }
        if self.recovery.state != SenderState::Cwr {
            self.keep_open();
        }
    }

    /// Open, or Disorder if something is out of the ordinary (Linux `tcp_try_keep_open`).
    pub(super) fn keep_open(&mut self) {
        let odd = self.board.sacked() + self.board.lost() > 0 || self.board.any_retransmission();
        let state = if odd { SenderState::Disorder } else { SenderState::Open };
        if self.recovery.state != state {
            self.recovery.state = state;
            self.recovery.high_seq = self.stats.next;
        }
    }

    /// What a reduction that begins now will have to give back.
    fn prior(&self) -> Prior {
        let reducing = matches!(self.recovery.state, SenderState::Cwr | SenderState::Recovery);
        Prior::before(&self.controller, reducing)
    }

    /// Linux `tcp_init_undo`: a probe that left again may arrive twice, too.
    fn arm_undo(&mut self) {
        self.recovery.undo_from = Some(self.stats.una);
        let probe = self.probe.is_some_and(|probe| probe.retransmission);
        let retransmitted = self.board.retransmitted() + u32::from(probe);
        self.recovery.unconfirmed = (retransmitted > 0).then_some(retransmitted);
    }

    /// The walk to the threshold begins, unless the window was reduced at once. `unsacked` is RFC
    /// 9937's RecoverFS in packets.
    fn begin_reduction(&mut self, unsacked: u32) {
        let fell_from = self.controller.fell_from();
        let prior_cwnd = self.recovery.prior.reduced(&self.controller);
        self.recovery.high_seq = self.stats.next;
        self.probe = None;
        self.recovery.reducing = fell_from.is_none() && !self.controller.controls_recovery();
        self.recovery.prr = Prr::new(match self.config.reduction {
            Reduction::ProportionalRfc9937 => unsacked,
            Reduction::Proportional | Reduction::Immediate => prior_cwnd,
        });
        if self.config.reduction == Reduction::Immediate && fell_from.is_none() {
            self.controller.end_recovery();
        }
        self.cwr_due = self.config.ecn == EcnMode::Classic;
    }

    /// The window is the threshold, unless the reduction was taken back.
    fn end_reduction(&mut self) {
        if self.recovery.reducing {
            self.recovery.reducing = false;
            self.controller.end_recovery();
        }
    }

    /// Linux `tcp_enter_recovery`.
    pub(super) fn enter_recovery(&mut self, now: Time, marks: bool, unsacked: u32) {
        let walking = self.recovery.state == SenderState::Cwr;
        let prior = self.prior();
        (self.recovery.prior, self.recovery.pardoned) = (Prior::default(), false);
        self.arm_undo();
        self.stats.recoveries += 1;
        if walking {
            // The window is shrinking already. DCTCP nevertheless answers the loss (Linux
            // dctcp_react_to_loss).
            if self.config.ecn == EcnMode::Dctcp {
                self.controller.on_signal(now, Signal::Loss);
            }
        } else if self.controller.on_signal(now, Signal::Loss).is_some() {
            if !marks {
                self.recovery.prior = prior;
            }
            self.begin_reduction(unsacked);
        } else {
            // The start does not obey: repair without reducing.
            self.recovery.reducing = false;
            self.recovery.pardoned = true;
            self.recovery.high_seq = self.stats.next;
            self.probe = None;
        }
        self.recovery.state = SenderState::Recovery;
    }

    /// A recovery begun by a timer, not by an ACK, lets the first retransmission go (Linux
    /// `tcp_rack_reo_timeout`).
    pub(super) fn reduce_for_timer(&mut self) {
        self.walk(1, false);
    }

    /// Proportional rate reduction for `delivered` packets.
    pub(super) fn walk(&mut self, delivered: u32, safe: bool) {
        if !self.recovery.reducing || self.config.reduction == Reduction::Immediate || delivered == 0 {
            return;
        }
        let in_flight = self.board.in_flight();
        let send = self.recovery.prr.on_delivered(delivered, in_flight, self.controller.ssthresh(), safe);
        self.controller.set_cwnd(in_flight.saturating_add(send));
    }

    /// Linux `tcp_enter_cwr`.
    fn enter_cwr(&mut self, now: Time) {
        self.recovery.prior.confirm();
        if self.recovery.state >= SenderState::Cwr || self.marks_ignored_until.is_some_and(|end| self.stats.una <= end)
        {
            return;
        }
        let unsacked = self.board.packets_out() - self.board.sacked();
        if self.controller.on_signal(now, Signal::Marks).is_none() {
            self.marks_ignored_until = Some(self.stats.next);
            return;
        }
        self.marks_ignored_until = None;
        self.recovery.undo_from = None;
        self.begin_reduction(unsacked);
        self.recovery.state = SenderState::Cwr;
        self.stats.mark_reductions += 1;
    }

    /// The retransmission timer expired (Linux `tcp_enter_loss`).
    pub(super) fn enter_loss(&mut self, now: Time) {
        let state = self.recovery.state;
        if self.config.loss_detection == LossDetection::NewReno {
            self.board.reset_duplicate_acks();
        }
        self.board.lose_on_timeout(now);
        if state <= SenderState::Disorder {
            self.reordering.on_timeout(&self.config, self.board.sacked());
        }
        self.board.take_lost_retransmission();
        self.stats.packets_lost = self.board.total_lost();
        // Nothing was reduced in a recovery that a start has pardoned.
        let fresh_window = state <= SenderState::Disorder
            || (state == SenderState::Recovery && self.recovery.pardoned)
            || self.stats.una >= self.recovery.high_seq
            || (state == SenderState::Loss && self.recovery.expiries == 0);
        let mut obeyed = true;
        if fresh_window {
            let mut prior = self.prior();
            obeyed = self.controller.on_signal(now, Signal::Timeout).is_some();
            prior.reduced(&self.controller);
            // What did not change need not be restored: a window may be a permission without end.
            self.recovery.prior = if obeyed { prior } else { Prior::default() };
            self.arm_undo();
        }
        self.controller.on_expiry(now, self.stats.packets_lost);
        if obeyed {
            self.controller.set_cwnd(self.board.in_flight().saturating_add(1));
        }
        self.recovery.reducing = false;
        self.recovery.f_rto = self.config.f_rto && (state < SenderState::Recovery || self.recovery.expiries > 0);
        self.recovery.expiries = self.recovery.expiries.saturating_add(1);
        self.recovery.state = SenderState::Loss;
        self.recovery.high_seq = self.stats.next;
        self.cwr_due = self.config.ecn == EcnMode::Classic;
    }

    /// The end of a tail loss probe (RFC 8985 section 7.4; Linux `tcp_process_tlp_ack`).
    pub(super) fn on_probe_answer(&mut self, event: &AckFacts<'_>) {
        let Some(probe) = self.probe else { return };
        let ack = event.ack.ack;
        if ack < probe.high_seq {
            return;
        }
        if !probe.retransmission || event.ack.duplicate {
            self.probe = None;
        } else if ack > probe.high_seq {
            // More than the probe was acknowledged and nothing arrived twice: the probe repaired a
            // loss.
            self.probe = None;
            if self.controller.on_signal(event.now, Signal::Loss).is_some() {
                self.begin_reduction(event.prior_unsacked);
                self.end_reduction();
                self.recovery.state = SenderState::Cwr;
                self.keep_open();
            }
        } else if !event.advanced && event.delivery.sacked == 0 {
            self.probe = None;
        }
    }

    // --- undoing ---

    /// The receiver got a segment twice.
    pub(super) fn on_duplicate_report(&mut self) {
        self.stats.spurious_retransmissions += 1;
        self.reordering.on_duplicate();
        if self.recovery.undo_from.is_some()
            && let Some(count) = &mut self.recovery.unconfirmed
        {
            *count = count.saturating_sub(1);
        }
    }

    /// Timestamps: what the ACK answers left before the first retransmission (Eifel, RFC 3522), or
    /// nothing was sent again.
    fn answers_original(&self, ack: &Acknowledgement) -> bool {
        self.recovery.first_retransmission.is_none_or(|first| ack.echo < first)
    }

    fn may_undo(&self, ack: &Acknowledgement) -> bool {
        self.config.undo
            && self.recovery.undo_from.is_some()
            && (self.recovery.unconfirmed == Some(0) || self.answers_original(ack))
    }

    /// All retransmissions were needless, as the receiver says.
    fn undo_on_duplicates(&mut self) -> bool {
        let needless = self.config.undo && self.recovery.undo_from.is_some() && self.recovery.unconfirmed == Some(0);
        if needless {
            self.undo(false);
        }
        needless
    }

    /// A partial ACK that answers an original: the hole was filled by a late packet (Linux
    /// `tcp_try_undo_partial`). Returns true if nothing more may be deemed lost or repaired for
    /// now.
    fn undo_on_partial_ack(&mut self, event: &AckFacts<'_>) -> bool {
        if !self.config.undo || self.recovery.undo_from.is_none() || !self.answers_original(event.ack) {
            return false;
        }
        let highest = self.board.highest_sacked().max(self.stats.una);
        self.reordering.on_reordered(&self.config, event.prior_una, highest);
        if self.board.retransmitted() > 0 {
            self.order = Order::NewOnly;
            return true;
        }
        if !self.board.any_retransmission() {
            self.recovery.first_retransmission = None;
        }
        self.undo(true);
        self.keep_open();
        false
    }

    /// Linux `tcp_undo_cwnd_reduction`.
    fn undo(&mut self, unmark: bool) {
        if unmark {
            self.board.unmark_lost();
        }
        if self.recovery.prior.give_back(&mut self.controller) {
            self.stats.undone += 1;
            self.cwr_due = false;
        }
        self.recovery.reducing = false;
        self.recovery.undo_from = None;
        self.board.reexamine();
    }
}
