//! Taking an ACK in, in the order Linux does (`tcp_ack`): scoreboard, round-trip times, recovery,
//! congestion control, timers.

use flowstart_congestion::{Ack, Answer, DeliveryRate, Repair};
use flowstart_network::packet::{Acknowledgement, MAX_SACK_BLOCKS};
use flowstart_quick_start::Carried;
use flowstart_units::{Span, Time};

use super::delivery::Delivery;
use super::recovery::AckFacts;
use super::scoreboard::AckContext;
use super::timers::Timer;
use super::{Opening, Order, Sender, SenderState, Urgent};
use crate::{EcnMode, LossDetection};

/// The receive window that stands for "unlimited".
const UNLIMITED_WINDOW: u32 = u32::MAX;

/// What an ACK amounts to.
#[derive(Clone, Copy, Debug)]
struct Tally {
    packets: u32,
    bytes: u64,
    /// Round-trip time of the newest packet.
    rtt: Option<Span>,
    marked: u32,
    lost: u32,
    lost_meanwhile: u32,
}

impl Sender {
    /// An ACK arrived. Acknowledgements of what was never sent are ignored.
    pub fn on_ack(&mut self, now: Time, ack: &Acknowledgement) {
        if self.phase < Opening::Established {
            if ack.syn && matches!(self.phase, Opening::SynSent | Opening::SynDue) && self.stats.next == 0 {
                self.take_window(ack);
                self.ce_count = ack.ce_count;
                self.establish(now, ack.echo, now.checked_since(ack.echo));
                self.take_answer(now, ack, self.stats.syn_retries > 0);
            }
            return;
        }
        if ack.syn || ack.ack > self.stats.next {
            return;
        }
        self.order = Order::RepairsFirst;
        self.urgent = if self.option.is_none() { Urgent::None } else { Urgent::Option };
        self.take_window(ack);
        if self.is_ordinary(ack) {
            self.take_ordinary(now, ack);
        } else {
            self.take_any(now, ack);
        }
        self.sync_flight();
    }

    /// True for the usual ACK: it moves the cumulative acknowledgement, tells of nothing else, and
    /// all is well.
    #[inline]
    fn is_ordinary(&self, ack: &Acknowledgement) -> bool {
        #[cfg(test)]
        if self.no_short_cut {
            return false;
        }
        ack.ack > self.stats.una
            && ack.sack_len == 0
            && !ack.ece
            && !ack.duplicate
            && ack.ack < self.answer_at
            && self.board.is_plain()
            && self.recovery.state == SenderState::Open
            && self.probe.is_none()
            && self.config.ecn != EcnMode::Accurate
            && !self.controller.wants_packets()
            && !self.config.kernel.counts_acks()
    }

    /// What [`take_any`](Self::take_any) comes down to for an ordinary ACK. One that covers no
    /// segment to its end tells the controller nothing here, and there of no packets delivered:
    /// receivers acknowledge whole segments.
    fn take_ordinary(&mut self, now: Time, ack: &Acknowledgement) {
        self.stats.una = ack.ack;
        self.set_send_limit();
        self.recovery.expiries = 0;
        let Some(plain) = self.board.acknowledge_plain(now, ack.ack, self.stats.packets_sent, self.stats.delivered)
        else {
            return;
        };
        self.stats.delivered += u64::from(plain.packets);
        let rtt = now.since(plain.newest.sent_at);
        self.take_samples(now, now.since(plain.earliest), rtt);
        let rate = self.rate.sample(now, Some(&plain.newest), self.stats.delivered, self.stats.min_rtt);
        #[cfg(test)]
        {
            self.last_rate_sample = rate.or(self.last_rate_sample);
        }
        self.reordering.update(&self.config, plain.newest.prior_delivered, self.stats.delivered);
        let tally =
            Tally { packets: plain.packets, bytes: plain.bytes, rtt: Some(rtt), marked: 0, lost: 0, lost_meanwhile: 0 };
        let view = self.view(now, tally, true, rate);
        self.controller.on_ack(&view);
        self.rearm_after_progress(now);
        self.controller.grow(&view);
    }

    /// Any ACK.
    #[inline(never)]
    fn take_any(&mut self, now: Time, ack: &Acknowledgement) {
        let prior_una = self.stats.una;
        let prior_unsacked = self.board.packets_out() - self.board.sacked();
        let in_flight_before = self.board.in_flight();
        let advanced = ack.ack > prior_una;
        let mut delivery = Delivery::new();
        self.take_delivery(now, ack, advanced, &mut delivery);

        self.stats.delivered += u64::from(delivery.packets);
        if ack.duplicate {
            self.on_duplicate_report();
        }
        if delivery.reordered_from != u64::MAX {
            let highest = self.board.highest_sacked().max(ack.ack);
            self.reordering.on_reordered(&self.config, delivery.reordered_from, highest);
        }
        let samples = delivery.samples(now, ack.echo);
        if let (Some(smoothed), Some(latest)) = (samples.smoothed, samples.latest) {
            self.take_samples(now, smoothed, latest);
        }
        let mut rate = None;
        if delivery.packets > 0 {
            let newest = (delivery.newest_after != 0).then_some(&delivery.newest);
            rate = self.rate.sample(now, newest, self.stats.delivered, self.stats.min_rtt);
        }
        #[cfg(test)]
        {
            self.last_rate_sample = rate.or(self.last_rate_sample);
        }
        if delivery.newest_after != 0 {
            self.reordering.update(&self.config, delivery.newest.prior_delivered, self.stats.delivered);
        }
        let (marked, marks) = self.take_marks(ack, delivery.packets);

        let event = AckFacts { now, ack, advanced, marks, prior_una, prior_unsacked, delivery: &delivery };
        let timer_before = (self.timer, self.timer_at);
        let lost_before = self.board.total_lost();
        let ordinary = self.recovery.state == SenderState::Open
            && advanced
            && delivery.sacked == 0
            && !marks
            && !ack.duplicate
            && self.board.is_plain();
        let settled = ordinary || self.settle(&event);
        let lost = u32::try_from(self.board.total_lost() - lost_before).unwrap_or(u32::MAX);

        let lost_meanwhile = std::mem::take(&mut self.found_late);
        let tally = Tally {
            packets: delivery.packets,
            bytes: delivery.bytes,
            rtt: samples.latest,
            marked,
            lost,
            lost_meanwhile,
        };
        let mut view = self.view(now, tally, advanced, rate);
        self.tell_packets(now, &delivery);
        if ack.ack >= self.answer_at {
            self.take_answer(now, ack, self.stats.packets_retransmitted > self.retransmitted_before);
        }
        self.controller.on_ack(&view);
        if self.probe.is_some() {
            self.on_probe_answer(&event);
        }
        if settled && !ordinary {
            self.react(&event, lost);
        }

        let late_packets = self.timer == Timer::Reordering && (self.timer, self.timer_at) != timer_before;
        if !late_packets && self.is_progress(now, &delivery) {
            self.rearm_after_progress(now);
        }
        if self.controller.controls_recovery() {
            view.repair = match self.recovery.state {
                SenderState::Recovery => Repair::Losses,
                SenderState::Loss => Repair::Timeout,
                SenderState::Open | SenderState::Disorder | SenderState::Cwr => Repair::Nothing,
            };
            self.controller.grow(&view);
        } else if self.recovery.reducing {
            self.walk(delivery.packets, advanced && lost == 0);
        } else if self.may_grow(advanced, &delivery) {
            if self.config.kernel.counts_acks() {
                self.as_it_was(&mut view, in_flight_before);
            }
            self.controller.grow(&view);
        }
    }

    /// The ACK as a kernel of its time saw it.
    #[cold]
    fn as_it_was(&self, view: &mut Ack, in_flight: u32) {
        let starting = self.controller.cwnd() < self.controller.ssthresh();
        if starting || !self.controller.counts_packets() {
            view.acked = view.acked.min(1);
        }
        let kernel = self.config.kernel;
        if let Some(may_grow) = kernel.may_grow(self.controller.cwnd(), in_flight, self.config.mss) {
            view.cwnd_limited = may_grow || self.config.grow_unused;
            view.max_packets_out = 0;
        }
    }

    /// Tells the controller what came back of what it asked the routers for; it may have to report
    /// that to them. After congestion that was noticed since, the answer is as good as none. `lost`
    /// if the packet that asked may have been.
    #[cold]
    fn take_answer(&mut self, now: Time, ack: &Acknowledgement, lost: bool) {
        if self.header.is_none() {
            self.answer_at = u64::MAX;
        } else {
            self.header = Carried::asking_for_share(Some(self.stats.srtt).filter(|srtt| !srtt.is_zero()));
        }
        let congested = self.recovery.state > SenderState::Disorder;
        let answer = Answer {
            now,
            response: if congested { None } else { ack.response() },
            share: ack.share(),
            lost,
            rtt: self.stats.latest_rtt,
            una: self.stats.una,
            next: self.stats.next,
        };
        self.option = self.controller.on_answer(&answer);
        if !self.option.is_none() {
            self.urgent = Urgent::Option;
        }
    }

    /// The ACK as the controller sees it.
    #[inline(always)]
    fn view(&self, now: Time, tally: Tally, advanced: bool, rate: Option<DeliveryRate>) -> Ack {
        Ack {
            now,
            acked: tally.packets,
            acked_bytes: tally.bytes,
            marked: tally.marked,
            lost: tally.lost,
            lost_meanwhile: tally.lost_meanwhile,
            rtt: tally.rtt,
            srtt: self.stats.srtt,
            min_rtt: self.stats.min_rtt,
            una: self.stats.una,
            next: self.stats.next,
            advanced,
            in_flight: self.board.in_flight(),
            packets_out: self.board.packets_out(),
            cwnd_limited: self.usage.limited || self.config.grow_unused,
            max_packets_out: self.usage.max_packets_out,
            app_limited: self.available() == 0,
            delivered: self.stats.delivered,
            rate,
            total_lost: self.board.total_lost(),
            repair: Repair::Nothing,
        }
    }

    /// The window may grow on ACKs that advance; once the path was seen to reorder, on any that
    /// deliver (Linux `tcp_may_raise_cwnd`).
    #[inline]
    fn may_grow(&self, advanced: bool, delivery: &Delivery) -> bool {
        if self.reordering.is_beyond(&self.config) { delivery.packets > 0 } else { advanced && delivery.cumulative > 0 }
    }

    /// True if the timers start anew: data was cumulatively acknowledged, or one that left before
    /// the oldest one's last transmission was selectively (Linux `tcp_clean_rtx_queue`). Later
    /// packets do not count, or the timeout would recede for ever.
    #[inline]
    fn is_progress(&self, now: Time, delivery: &Delivery) -> bool {
        delivery.cumulative > 0
            || match (delivery.sack_rtt(now), self.board.head_sent_at()) {
                (Some(rtt), Some(head)) => rtt > now.since(head),
                _ => false,
            }
    }

    /// Marks the scoreboard and collects what was delivered; its packets go to `self.acked` if the
    /// controller wants them.
    #[inline]
    fn take_delivery(&mut self, now: Time, ack: &Acknowledgement, advanced: bool, delivery: &mut Delivery) {
        let context = AckContext {
            now,
            sent: self.stats.packets_sent,
            delivered: self.stats.delivered,
            min_rtt: self.stats.min_rtt,
            echo: ack.echo,
            collect: self.controller.wants_packets(),
            high_seq: self.recovery.high_seq,
            highest_sacked: self.board.highest_sacked(),
        };
        if advanced {
            self.stats.una = ack.ack;
            self.set_send_limit();
            self.recovery.expiries = 0;
            self.board.acknowledge(ack.ack, &context, delivery, &mut self.acked);
        }
        match self.config.loss_detection {
            LossDetection::Rack => {
                if ack.sack_len > 0 {
                    self.take_sacks(ack, &context, delivery);
                }
            }
            LossDetection::NewReno => {
                if advanced {
                    delivery.packets = self.board.uncount_duplicate_acks(delivery.cumulative);
                } else if self.board.packets_out() > 0 && ack.ack == self.stats.una {
                    delivery.packets = self.board.count_duplicate_ack();
                }
            }
        }
    }

    /// Ascending, so that a range told later than a higher one does not look like reordering.
    fn take_sacks(&mut self, ack: &Acknowledgement, context: &AckContext, delivery: &mut Delivery) {
        let mut blocks = [(0, 0); MAX_SACK_BLOCKS];
        let mut count = 0;
        for block in ack.sacked() {
            let start = block.start.max(self.stats.una);
            if start < block.end && block.end <= self.stats.next {
                blocks[count] = (start, block.end);
                count += 1;
            }
        }
        let blocks = &mut blocks[..count];
        blocks.sort_unstable();
        for &mut (start, end) in blocks {
            self.board.sack(start, end, context, delivery, &mut self.acked);
        }
    }

    /// Tells the controller of every delivered packet, in the order they were sent.
    #[inline]
    fn tell_packets(&mut self, now: Time, delivery: &Delivery) {
        if self.acked.is_empty() {
            return;
        }
        if !self.acked.is_sorted_by_key(|packet| packet.number) {
            self.acked.sort_unstable_by_key(|packet| packet.number);
        }
        let rtt = (!delivery.newest_retransmitted).then(|| now.since(delivery.newest.sent_at).max(Span::from_nanos(1)));
        for packet in &mut self.acked {
            packet.rtt = rtt;
            self.controller.on_acked(packet);
        }
        self.acked.clear();
    }

    /// How many of the delivered packets met a mark, and whether the ACK reports any.
    #[inline]
    fn take_marks(&mut self, ack: &Acknowledgement, packets: u32) -> (u32, bool) {
        let marked = match self.config.ecn {
            EcnMode::Off => return (0, false),
            EcnMode::Classic | EcnMode::Dctcp => {
                if !ack.ece {
                    return (0, false);
                }
                packets
            }
            EcnMode::Accurate => {
                let new = ack.ce_count.wrapping_sub(self.ce_count);
                // A count that runs back belongs to an ACK that was overtaken.
                if new >= u32::MAX / 2 {
                    return (0, false);
                }
                self.ce_count = ack.ce_count;
                let pending = self.marks_pending.saturating_add(new);
                let marked = pending.min(packets);
                self.marks_pending = pending - marked;
                self.stats.packets_marked += u64::from(marked);
                return (marked, new > 0);
            }
        };
        self.stats.packets_marked += u64::from(marked);
        (marked, true)
    }

    /// The receive window's right edge never moves back (RFC 9293 section 3.8.6.2).
    #[inline]
    fn take_window(&mut self, ack: &Acknowledgement) {
        let edge =
            if ack.window == UNLIMITED_WINDOW { u64::MAX } else { ack.ack.saturating_add(u64::from(ack.window)) };
        if !self.window_known {
            self.window_known = true;
            self.window_end = edge;
        } else if edge > self.window_end {
            self.window_end = edge;
        } else {
            return;
        }
        if self.timer == Timer::Persist && self.window_end > self.stats.next {
            self.window_probes = 0;
            self.set_timer(Timer::None, Time::NEVER);
        }
    }
}
