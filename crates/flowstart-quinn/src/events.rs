//! What a stack tells of its packets, as the events of `flowstart-congestion`: the same for every
//! stack. `docs/quic-events.md` explains it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flowstart_congestion::{
    Ack, Controller, ControllerConfig, DeliveryRate, INFINITE_SSTHRESH, NewMss, Next, Prior, Repair, Sent, Signal,
    SmoothedRtt, StartExit,
};
use flowstart_units::{Rate, Span, Time};

/// Smallest window in packets (RFC 9002 section 7.2).
const MINIMUM_WINDOW: u32 = 2;
/// Records of packets that are neither acknowledged nor said to be lost are kept for so many
/// retransmission timeouts.
const KEPT_TIMEOUTS: u64 = 8;

/// The stack's clock as time since the controller was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn new(now: Instant) -> Self {
        Self(now)
    }

    /// The first moment is one nanosecond. Zero is whatever was before, when no packet left that
    /// this controller knows of.
    pub(crate) fn time(self, at: Instant) -> Time {
        let since = at.checked_duration_since(self.0);
        since.map_or(Time::ZERO, |since| Time::ZERO + span(since) + Span::from_nanos(1))
    }
}

fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// What left at one moment: the stack knows packets by the time they left.
#[derive(Clone, Copy, Debug)]
struct Record {
    sent: Time,
    /// Where its bytes begin in the imagined stream of all that was sent.
    seq: u64,
    bytes: u64,
    /// Of which so many are not yet delivered or given up.
    open: u64,
    /// Packets delivered when it left, and when the last of them was.
    delivered: u64,
    delivered_at: Time,
    /// When the first packet of the sample of the rate that it ends left.
    first_sent: Time,
    app_limited: bool,
}

/// What was delivered since the controller heard of it last.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    bytes: u64,
    /// The newest of it.
    newest: Option<Record>,
    app_limited: bool,
}

/// One connection's controller, told by a stack.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    config: Arc<ControllerConfig>,
    controller: Controller,
    /// More was to be sent than the window had room for, or something was lost or marked: the start
    /// has begun.
    begun: bool,
    mtu: u32,
    initial_window: u32,
    records: VecDeque<Record>,
    /// Bytes sent so far, and the end of the newest that was delivered.
    next: u64,
    una: u64,
    /// Packets sent so far.
    number: u64,
    in_flight: u64,
    /// Packets delivered so far, and bytes that make no whole one yet.
    delivered: u64,
    part: u64,
    delivered_at: Time,
    first_sent: Time,
    app_limited: bool,
    rtt: SmoothedRtt,
    min_rtt: Span,
    /// Most packets in flight in this round and in the one before, and where this one ends.
    most: [u32; 2],
    round_end: u64,
    batch: Batch,
    /// What left until then belongs to a reduction.
    recovery: Option<Time>,
    /// What that repairs.
    repair: Repair,
    /// Packets that were lost so far.
    lost: u64,
    /// What comes back if it was needless.
    prior: Prior,
    last_sent: Option<Time>,
    rate: Option<Rate>,
}

impl Events {
    pub(crate) fn new(config: &ControllerConfig) -> Self {
        let mut events = Self {
            config: Arc::new(config.clone()),
            controller: Controller::new(config),
            begun: false,
            mtu: config.mss.max(1),
            initial_window: 0,
            records: VecDeque::new(),
            next: 0,
            una: 0,
            number: 0,
            in_flight: 0,
            delivered: 0,
            part: 0,
            delivered_at: Time::ZERO,
            first_sent: Time::ZERO,
            app_limited: false,
            rtt: SmoothedRtt::default(),
            min_rtt: Span::MAX,
            most: [0; 2],
            round_end: 0,
            batch: Batch::default(),
            recovery: None,
            repair: Repair::Nothing,
            lost: 0,
            prior: Prior::default(),
            last_sent: None,
            rate: None,
        };
        events.begin();
        events
    }

    #[cfg(test)]
    pub(crate) fn seed(&self) -> u64 {
        self.config.seed
    }

    pub(crate) fn controller(&self) -> &Controller {
        &self.controller
    }

    pub(crate) fn start_exit(&self) -> Option<&StartExit> {
        self.controller.start_exit()
    }

    /// In bytes.
    pub(crate) fn window(&self) -> u64 {
        self.bytes(self.controller.cwnd().max(MINIMUM_WINDOW))
    }

    /// In bytes.
    pub(crate) fn initial_window(&self) -> u64 {
        self.bytes(self.initial_window)
    }

    /// In bytes; `None` before the first reduction.
    pub(crate) fn ssthresh(&self) -> Option<u64> {
        Some(self.controller.ssthresh())
            .filter(|packets| *packets < INFINITE_SSTHRESH)
            .map(|packets| self.bytes(packets))
    }

    /// The rate at which packets are to leave, if it is not the window alone that decides.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.rate
    }

    fn bytes(&self, packets: u32) -> u64 {
        u64::from(packets) * u64::from(self.mtu)
    }

    /// Packets that so many bytes are, the last one perhaps not full.
    fn packets(&self, bytes: u64) -> u32 {
        u32::try_from(bytes.div_ceil(u64::from(self.mtu))).unwrap_or(u32::MAX)
    }

    /// So many bytes left, in one packet or in several.
    pub(crate) fn on_sent(&mut self, now: Time, bytes: u64) {
        if bytes == 0 {
            return;
        }
        if self.in_flight == 0 && !self.begun {
            // The handshake, and what an application says before it has much to say, are no rounds
            // of a start.
            self.begin();
        }
        if self.in_flight == 0 {
            (self.first_sent, self.delivered_at) = (now, now);
            if let Some(last) = self.last_sent {
                let (idle, patience) = (now.since(last), self.rtt.patience());
                if idle > patience {
                    self.controller.restart_after_idle(now, idle, patience);
                } else {
                    self.controller.on_idle(idle);
                }
            }
        }
        // Of packets that only acknowledge nothing is ever told, and who only receives sends no
        // others.
        self.forget(now);
        match self.records.back_mut().filter(|record| record.sent >= now) {
            Some(record) => {
                record.bytes += bytes;
                record.open += bytes;
            }
            None => self.records.push_back(Record {
                sent: now,
                seq: self.next,
                bytes,
                open: bytes,
                delivered: self.delivered,
                delivered_at: self.delivered_at,
                first_sent: self.first_sent,
                app_limited: self.app_limited,
            }),
        }
        let mut left = bytes;
        while left > 0 {
            let packet = left.min(u64::from(self.mtu));
            left -= packet;
            self.in_flight = self.in_flight.saturating_add(packet);
            let in_flight = self.packets(self.in_flight);
            let bytes = u32::try_from(packet).unwrap_or(u32::MAX);
            let (number, seq) = (self.number, self.next);
            self.controller.on_sent(&Sent { now, number, seq, bytes, in_flight, retransmission: false });
            self.number += 1;
            self.next = self.next.saturating_add(packet);
        }
        self.most[0] = self.most[0].max(self.packets(self.in_flight));
        self.last_sent = Some(now);
        self.space(now);
    }

    /// A controller that has not heard of anything yet, for packets of now.
    fn begin(&mut self) {
        self.controller = Controller::new(&ControllerConfig { mss: self.mtu, ..(*self.config).clone() });
        self.initial_window = self.controller.cwnd().max(MINIMUM_WINDOW);
        self.round_end = self.next;
    }

    /// A packet that left at `sent` was delivered. [`on_end_acks`](Self::on_end_acks) follows.
    pub(crate) fn on_acked(&mut self, sent: Time, bytes: u64, app_limited: bool) {
        self.batch.bytes = self.batch.bytes.saturating_add(bytes);
        self.batch.app_limited = app_limited;
        let at = self.records.partition_point(|record| record.sent < sent);
        // One that is not known has left before the controller came, or is a probe of the MTU.
        let Some(record) = self.records.get_mut(at).filter(|record| record.sent == sent) else { return };
        record.open = record.open.saturating_sub(bytes);
        if self.batch.newest.is_none_or(|newest| newest.sent <= record.sent) {
            self.batch.newest = Some(*record);
        }
    }

    /// All packets of an ACK were told; so many bytes are still in flight.
    pub(crate) fn on_end_acks(&mut self, now: Time, in_flight: u64, app_limited: bool) {
        self.in_flight = in_flight;
        let batch = std::mem::take(&mut self.batch);
        if batch.bytes == 0 {
            return;
        }
        self.app_limited = batch.app_limited || app_limited;
        self.begun |= !self.app_limited;
        self.part += batch.bytes;
        let acked = u32::try_from(self.part / u64::from(self.mtu)).unwrap_or(u32::MAX);
        self.part %= u64::from(self.mtu);
        self.delivered += u64::from(acked);
        let before = self.una;
        let mut rtt = None;
        let mut rate = None;
        if let Some(newest) = batch.newest {
            self.una = self.una.max((newest.seq + newest.bytes).saturating_sub(newest.open));
            let sample = now.since(newest.sent).max(Span::from_nanos(1));
            rtt = Some(sample);
            self.sample(sample);
            rate = self.delivery_rate(now, &newest);
            (self.delivered_at, self.first_sent) = (now, newest.sent);
        }
        self.forget(now);
        let mut ack = Ack { acked, acked_bytes: batch.bytes, rtt, rate, ..self.ack(now, self.una > before) };
        if self.una >= self.round_end {
            self.round_end = self.next;
            self.most = [self.packets(self.in_flight), self.most[0]];
        }
        self.controller.on_ack(&ack);
        let recovering = match (self.recovery, batch.newest) {
            (Some(until), Some(newest)) => newest.sent <= until,
            (recovery, _) => recovery.is_some(),
        };
        if !recovering {
            self.recovery = None;
        }
        if self.controller.controls_recovery() || (acked > 0 && !recovering) {
            ack.repair = if recovering { self.repair } else { Repair::Nothing };
            self.controller.grow(&ack);
        }
        self.space(now);
    }

    /// The newest of the packets that were lost left at `sent`; together they have so many bytes.
    pub(crate) fn on_lost(&mut self, now: Time, sent: Time, bytes: u64, persistent: bool) {
        self.begun = true;
        self.in_flight = self.in_flight.saturating_sub(bytes);
        // Stacks give up all that is older than what they give up.
        while self.records.front().is_some_and(|record| record.sent < sent) {
            self.records.pop_front();
        }
        let lost = self.packets(bytes).max(1);
        self.lost += u64::from(lost);
        let ack = Ack { lost, ..self.ack(now, false) };
        self.controller.on_ack(&ack);
        if persistent {
            self.prior = Prior::default();
            (self.recovery, self.repair) = (Some(now), Repair::Timeout);
            let obeyed = self.controller.on_signal(now, Signal::Timeout).is_some();
            self.controller.on_expiry(now, self.lost);
            if obeyed && !self.controller.controls_recovery() {
                self.controller.set_cwnd(MINIMUM_WINDOW);
            }
        } else {
            self.reduce(now, sent, Signal::Loss);
        }
        self.space(now);
    }

    /// An ACK counts more marks than the one before; the newest packet it covers left at `sent`.
    pub(crate) fn on_marks(&mut self, now: Time, sent: Time) {
        self.begun = true;
        self.prior.confirm();
        self.reduce(now, sent, Signal::Marks);
        self.space(now);
    }

    /// All that was said to be lost has arrived after all.
    pub(crate) fn on_spurious(&mut self) {
        if self.prior.give_back(&mut self.controller) {
            self.recovery = None;
        }
    }

    /// Full packets have so many bytes from now on; windows stay what they are in bytes, and so
    /// does what was in flight and what an undone reduction gives back.
    pub(crate) fn on_mtu(&mut self, mtu: u16) {
        let mtu = u32::from(mtu).max(1);
        let change = NewMss::new(self.mtu, mtu);
        self.most = self.most.map(|packets| change.packets(packets));
        self.prior.on_mss(change);
        self.initial_window = self.packets_of(self.bytes(self.initial_window), mtu);
        self.mtu = mtu;
        self.controller.set_mss(mtu);
    }

    /// The nearest number of packets of this size, at least the smallest window.
    fn packets_of(&self, bytes: u64, mtu: u32) -> u32 {
        let nearest = (bytes + u64::from(mtu) / 2) / u64::from(mtu);
        u32::try_from(nearest).unwrap_or(u32::MAX).max(MINIMUM_WINDOW)
    }

    /// At most one reduction for what left before it.
    fn reduce(&mut self, now: Time, sent: Time, signal: Signal) {
        if self.recovery.is_some_and(|until| sent <= until) {
            return;
        }
        let under_way = self.recovery.is_some() && self.repair != Repair::Timeout;
        let mut prior = Prior::before(&self.controller, under_way);
        self.recovery = Some(now);
        self.repair = if signal == Signal::Loss { Repair::Losses } else { Repair::Nothing };
        self.prior = Prior::default();
        if self.controller.on_signal(now, signal).is_some() {
            if signal == Signal::Loss {
                prior.reduced(&self.controller);
                self.prior = prior;
            }
            if self.controller.fell_from().is_none() {
                self.controller.end_recovery();
            }
        }
    }

    /// An ACK that says nothing yet.
    fn ack(&self, now: Time, advanced: bool) -> Ack {
        Ack {
            now,
            acked: 0,
            acked_bytes: 0,
            marked: 0,
            lost: 0,
            lost_meanwhile: 0,
            rtt: None,
            srtt: self.rtt.smoothed(),
            min_rtt: self.min_rtt,
            una: self.una,
            next: self.next,
            advanced,
            in_flight: self.packets(self.in_flight),
            packets_out: self.packets(self.in_flight),
            cwnd_limited: !self.app_limited,
            max_packets_out: self.most[0].max(self.most[1]),
            app_limited: self.app_limited,
            delivered: self.delivered,
            rate: None,
            total_lost: self.lost,
            repair: Repair::Nothing,
        }
    }

    fn sample(&mut self, rtt: Span) {
        self.min_rtt = self.min_rtt.min(rtt);
        self.rtt.take(rtt);
    }

    /// draft-cheng-iccrg-delivery-rate-estimation.
    fn delivery_rate(&self, now: Time, newest: &Record) -> Option<DeliveryRate> {
        let interval = newest.sent.since(newest.first_sent).max(now.since(newest.delivered_at));
        (!interval.is_zero() && interval >= self.min_rtt).then(|| DeliveryRate {
            delivered: u32::try_from(self.delivered - newest.delivered).unwrap_or(u32::MAX),
            interval,
            prior_delivered: newest.delivered,
            app_limited: newest.app_limited,
        })
    }

    /// Records of what is settled, or will never be told of, are let go.
    fn forget(&mut self, now: Time) {
        let patience = self.rtt.patience() * KEPT_TIMEOUTS;
        while self.records.front().is_some_and(|record| record.open == 0 || now.since(record.sent) > patience) {
            self.records.pop_front();
        }
    }

    /// The rate follows from when the next packet may leave, which is asked as if there were one.
    fn space(&mut self, now: Time) {
        let next = Next {
            number: self.number,
            bytes: self.mtu,
            wire_bytes: self.mtu,
            in_flight: self.packets(self.in_flight),
            packets_out: self.packets(self.in_flight),
            queued: u64::MAX,
            retransmission: false,
            srtt: self.rtt.smoothed(),
            min_rtt: self.min_rtt,
        };
        let _ = self.controller.departure(now, &next);
        self.rate = self.controller.departure_rate();
    }
}

#[cfg(test)]
mod tests;
