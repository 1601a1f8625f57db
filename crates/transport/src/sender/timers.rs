//! The sender's timer: one at a time, as in Linux. Which one is waited for is part of the rules, so
//! they must not run side by side.

use flowstart_quick_start::Carried;
use flowstart_units::{Span, Time};

use super::rtt::SHORTEST_RTO;
use super::{Opening, Probe, Sender, SenderState, Urgent};
use crate::LossDetection;

/// What the timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    None,
    /// The SYN was not answered.
    Syn,
    /// Retransmission timeout.
    Retransmission,
    /// Tail loss probe.
    TailProbe,
    /// Late packets become lost ones (RACK).
    Reordering,
    /// The receive window is shut and nothing is in flight.
    Persist,
}

impl Sender {
    #[inline]
    pub(super) fn set_timer(&mut self, timer: Timer, at: Time) {
        self.timer = timer;
        self.timer_at = at;
    }

    /// The time of [`deadline`](Self::deadline) has come. Ask for packets afterwards.
    pub fn on_timer(&mut self, now: Time) {
        if self.departure_at <= now {
            self.departure_at = Time::NEVER;
        }
        if self.timer_at > now {
            return;
        }
        self.order = super::Order::RepairsFirst;
        let timer = self.timer;
        self.set_timer(Timer::None, Time::NEVER);
        match timer {
            Timer::None => {}
            Timer::Syn => {
                self.stats.syn_retries = self.stats.syn_retries.saturating_add(1);
                self.phase = Opening::SynDue;
            }
            Timer::Retransmission => self.on_retransmission_timeout(now),
            Timer::TailProbe => self.on_probe_timeout(now),
            Timer::Reordering => self.on_reordering_timeout(now),
            Timer::Persist => {
                self.window_probes = self.window_probes.saturating_add(1);
                self.urgent = Urgent::WindowProbe;
            }
        }
        self.sync_flight();
    }

    /// How long the SYN's answer is waited for: doubled for each retry.
    pub(super) fn syn_wait(&self) -> Span {
        let doublings = self.stats.syn_retries.min(u64::BITS - 1);
        (self.config.syn_timeout * (1_u64 << doublings)).min(self.config.max_rto).max(SHORTEST_RTO)
    }

    /// How long a shut window is waited for: doubled for each probe (RFC 9293 section 3.8.6.1).
    pub(super) fn persist_wait(&self) -> Span {
        let doublings = self.window_probes.min(u64::BITS - 1);
        (self.rtt.rto() * (1_u64 << doublings)).min(self.config.max_rto)
    }

    /// Arms the retransmission timer (Linux `tcp_rearm_rto`): a full timeout, but counted from the
    /// oldest segment's leaving if another timer ran in the meantime.
    pub(super) fn rearm_retransmission(&mut self, now: Time) {
        let Some(head_sent_at) = self.board.head_sent_at() else {
            self.set_timer(Timer::None, Time::NEVER);
            return;
        };
        let rto = self.rtt.rto();
        let at = match self.timer {
            Timer::Reordering | Timer::TailProbe => (head_sent_at + rto).max(now),
            _ => now + rto,
        };
        self.set_timer(Timer::Retransmission, at);
    }

    /// After progress: a tail loss probe if the state allows one, else the retransmission timer
    /// (Linux `tcp_set_xmit_timer`).
    #[inline]
    pub(super) fn rearm_after_progress(&mut self, now: Time) {
        let rto_at = now + self.rtt.rto();
        if !self.schedule_probe(now, rto_at) {
            self.rearm_retransmission(now);
        }
    }

    /// After new data left: a tail loss probe, not later than the timeout of the oldest segment.
    #[inline]
    pub(super) fn rearm_after_sending(&mut self, now: Time) {
        let rto_at = self.board.head_sent_at().map_or(Time::NEVER, |sent| sent + self.rtt.rto());
        self.schedule_probe(now, rto_at);
    }

    /// Arms a tail loss probe (RFC 8985 section 7.2; Linux `tcp_schedule_loss_probe`): two round
    /// trips, plus the time a receiver may hold back the ACK of a lone packet.
    #[inline]
    fn schedule_probe(&mut self, now: Time, rto_at: Time) -> bool {
        if !self.config.tail_loss_probe
            || self.config.loss_detection != LossDetection::Rack
            || !matches!(self.recovery.state, SenderState::Open | SenderState::Cwr)
        {
            return false;
        }
        let packets = self.board.packets_out();
        if packets == 0 {
            return false;
        }
        let srtt = self.rtt.srtt();
        let wait = if srtt.is_zero() {
            self.config.initial_rto
        } else if packets == 1 {
            srtt * 2 + self.config.min_rto
        } else {
            srtt * 2 + self.config.timer_slack
        };
        let mut at = now + self.config.in_ticks(wait);
        if rto_at > now {
            at = at.min(rto_at);
        }
        self.set_timer(Timer::TailProbe, at);
        true
    }

    /// Nothing came back for two round trips: the next packet is a probe (Linux
    /// `tcp_send_loss_probe`).
    fn on_probe_timeout(&mut self, now: Time) {
        if self.probe.is_none() && self.board.packets_out() > 0 {
            self.urgent = Urgent::TailProbe;
            self.rearm_retransmission(now);
        } else {
            self.timer = Timer::TailProbe;
            self.rearm_retransmission(now);
        }
    }

    /// A probe left.
    pub(super) fn on_probe_sent(&mut self, now: Time, retransmission: bool) {
        self.stats.tail_loss_probes += 1;
        self.probe = Some(Probe { high_seq: self.stats.next, retransmission });
        self.set_timer(Timer::None, Time::NEVER);
        self.rearm_retransmission(now);
    }

    /// Late packets may be lost ones by now (Linux `tcp_rack_reo_timeout`).
    fn on_reordering_timeout(&mut self, now: Time) {
        let before = self.board.in_flight();
        let unsacked = self.board.packets_out() - self.board.sacked();
        let lost = self.board.total_lost();
        self.detect_losses(now);
        let found = u32::try_from(self.board.total_lost() - lost).unwrap_or(u32::MAX);
        self.found_late = self.found_late.saturating_add(found);
        if self.board.in_flight() != before && self.recovery.state != SenderState::Recovery {
            self.enter_recovery(now, false, unsacked);
            self.reduce_for_timer();
        }
        if self.timer == Timer::None {
            self.timer = Timer::Reordering;
            self.rearm_retransmission(now);
        }
    }

    fn on_retransmission_timeout(&mut self, now: Time) {
        if self.board.packets_out() == 0 {
            return;
        }
        self.stats.timeouts += 1;
        self.probe = None;
        // A request that has not left is of no use now.
        if !self.option.asked().is_zero() {
            self.option = Carried::NONE;
        }
        self.enter_loss(now);
        self.urgent = Urgent::Timeout;
        self.rtt.back_off(&self.config);
        self.set_timer(Timer::Retransmission, now + self.rtt.rto());
    }
}
