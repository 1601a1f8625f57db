//! What the news of a burst come to.

use flowstart_congestion::{Ack, Repair};
use flowstart_transport::parts::Usage;
use flowstart_units::{Span, Time};

use super::{Batch, Fate, Ledger};

impl Ledger {
    /// Nothing more leaves now. `exhausted` if that is so because the application has no more.
    pub fn end_burst(&mut self, now: Time, exhausted: bool) {
        self.exhausted = exhausted;
        if exhausted {
            self.repairs.write_off();
        }
        let cwnd = self.controller.cwnd();
        let limited = self.in_flight >= cwnd;
        let sent = std::mem::take(&mut self.sent_in_burst);
        if sent || (limited && !exhausted) {
            let usage = Usage {
                una: self.una(),
                next: self.next,
                packets_out: self.packets_out(),
                cwnd,
                in_slow_start: cwnd < self.controller.ssthresh(),
                limited,
                remembered: true,
            };
            if let Some(used) = self.usage.update(now, &usage, self.rtt.patience())
                && !self.reduction.active
                && !self.controller.controls_recovery()
            {
                self.controller.validate_window(used);
            }
        }
        if exhausted && !limited {
            self.rate.mark_app_limited(self.counts.delivered, self.in_flight);
        }
    }

    /// Tells the controller of the ACKs and losses noted since the last time, in the order of Linux
    /// `tcp_ack`. The other end `waited` before it acknowledged, which is no part of an RTT, and
    /// packets count as delivered that much before.
    pub fn settle(&mut self, now: Time, waited: Span) {
        let mut batch = std::mem::take(&mut self.batch);
        if batch.acked.is_empty() && batch.lost == 0 && !batch.marked && !batch.persistent && !batch.spurious {
            self.batch = batch;
            return;
        }
        let before = self.una();
        while self.records.front().is_some_and(|record| record.fate != Fate::Open) {
            self.records.pop_front();
        }
        let advanced = self.una() > before;
        let packets = u32::try_from(batch.acked.len()).unwrap_or(u32::MAX);
        let rtt = batch.newest.map(|(_, flight)| (now.since(flight.sent_at) - waited).max(Span::from_nanos(1)));
        if let Some((_, flight)) = &batch.newest {
            self.latest_limited = flight.app_limited;
        }
        if packets > 0 {
            self.delivered_at = self.delivered_at.max(now - waited);
        }
        self.counts.delivered += u64::from(packets);
        self.counts.delivered_bytes += batch.bytes;
        if let Some(rtt) = rtt {
            self.sample(rtt);
            self.counts.acks += 1;
        }
        let mut rate = None;
        if packets > 0 {
            let newest = batch.newest.as_ref().map(|(_, flight)| flight);
            rate = self.rate.sample(self.delivered_at, newest, self.counts.delivered, self.min_rtt);
        }
        let marked = if batch.marked { packets } else { 0 };
        self.counts.marked += u64::from(marked);
        if batch.marked {
            self.reduction.prior.confirm();
        }
        self.end_what_is_over();
        if batch.spurious {
            self.undo();
        }
        let mut view = Ack {
            now,
            acked: packets,
            acked_bytes: batch.bytes,
            marked,
            // QUIC's stacks find by timers what TCP finds by ACKs: all of it is this ACK's.
            lost: self.unheard.saturating_add(batch.lost),
            lost_meanwhile: 0,
            rtt,
            srtt: self.rtt.smoothed(),
            min_rtt: self.min_rtt,
            una: self.una(),
            next: self.next,
            advanced,
            in_flight: self.in_flight,
            packets_out: self.packets_out(),
            cwnd_limited: self.usage.limited,
            max_packets_out: self.usage.max_packets_out,
            app_limited: self.exhausted,
            delivered: self.counts.delivered,
            rate,
            total_lost: self.counts.lost,
            repair: Repair::Nothing,
        };
        if self.controller.wants_packets() {
            batch.acked.sort_unstable_by_key(|acked| acked.number);
            for acked in &mut batch.acked {
                (acked.now, acked.rtt) = (self.delivered_at, rtt);
                self.controller.on_acked(acked);
            }
        }
        if packets > 0 {
            self.controller.on_ack(&view);
        }
        self.react(now, &batch);
        if packets > 0 {
            view.repair = self.reduction.repair;
            self.grow(&view, batch.lost);
        }
        self.unheard = if packets > 0 { 0 } else { view.newly_lost() };
        if self.log.is_some() {
            self.log_metrics(now);
        }
        batch.acked.clear();
        self.batch = Batch { acked: batch.acked, ..Batch::default() };
    }

    fn sample(&mut self, rtt: Span) {
        self.latest = rtt;
        self.min_rtt = self.min_rtt.min(rtt);
        self.rtt.take(rtt);
    }

    /// `lost` packets were found lost by this ACK alone.
    pub(super) fn grow(&mut self, view: &Ack, lost: u32) {
        if self.controller.controls_recovery() {
            self.controller.grow(view);
        } else if self.reduction.walking {
            self.walk(view.acked, view.advanced && lost == 0);
        } else {
            self.controller.grow(view);
        }
    }
}
