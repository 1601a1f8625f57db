//! What became of every packet, told to a congestion [`Controller`] as it wants to hear it.
//!
//! QUIC acknowledges packets, not bytes, and what is sent again is sent in new packets. The ledger
//! makes of that the events of `flowstart-congestion`: packets are counted from 0 in the order they
//! leave, and every packet is a piece of an imagined stream of all bytes sent, so that "the first
//! byte not acknowledged" is where the oldest packet begins whose fate is open. A packet is never
//! sent twice, hence no RTT is ever ambiguous.

mod counts;
mod reducing;
mod repairs;
mod settling;

use std::collections::VecDeque;

use flowstart_congestion::{Acked, Controller, Departure, INFINITE_SSTHRESH, NewMss, Next, Sent, SmoothedRtt};
use flowstart_transport::parts::{Flight, RateEstimator, WindowUsage};
use flowstart_units::{Span, Time};

use crate::gate::Told;
use crate::qlog::{Log, Metrics};
pub use counts::Counts;
pub(crate) use counts::ForGood;
use reducing::{Answered, Reduction};
use repairs::Repairs;

/// Bytes of IPv4 and UDP headers around a QUIC packet.
pub const HEADER_BYTES: u32 = 28;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    Delivered,
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    /// The stack's packet number.
    packet: u64,
    /// Transmission number.
    number: u64,
    seq: u64,
    /// The first byte of what it is to replace, if that was lost; its own otherwise.
    stands_for: u64,
    bytes: u32,
    fate: Fate,
    flight: Flight,
}

/// What was told since the controller heard of it last.
#[derive(Clone, Debug, Default)]
struct Batch {
    acked: Vec<Acked>,
    bytes: u64,
    newest: Option<(u64, Flight)>,
    lost: u32,
    /// First byte of the latest packet lost.
    lost_seq: Option<u64>,
    marked: bool,
    persistent: bool,
    spurious: bool,
}

/// The packets of one connection and its controller.
#[derive(Debug)]
pub struct Ledger {
    controller: Controller,
    records: VecDeque<Record>,
    mtu: u32,
    next: u64,
    in_flight: u32,
    /// Their bytes.
    in_flight_bytes: u64,
    rtt: SmoothedRtt,
    min_rtt: Span,
    latest: Span,
    /// The newest packet acknowledged left while the application was why rates are no higher.
    latest_limited: bool,
    /// When packets were delivered last, without what the other end waited.
    delivered_at: Time,
    counts: Counts,
    /// Those of earlier paths of the connection.
    earlier: Counts,
    /// On all paths.
    for_good: ForGood,
    rate: RateEstimator,
    usage: WindowUsage,
    reduction: Reduction,
    answered: Answered,
    repairs: Repairs,
    batch: Batch,
    /// Packets that a timer found lost since the controller heard of an ACK.
    unheard: u32,
    /// Until when the controller knows of the idle time: when a packet left last, or later.
    idle_since: Option<Time>,
    /// [`departure`](Self::departure) told of the idle time until then.
    idle_told: bool,
    sent_in_burst: bool,
    exhausted: bool,
    log: Option<Box<Log>>,
}

impl Ledger {
    /// A ledger of a connection whose full packets have `mtu` bytes and whose handshake took `rtt`
    /// ([`Span::ZERO`] if unknown).
    #[must_use]
    pub fn new(mut controller: Controller, mtu: u32, rtt: Span) -> Self {
        let mtu = mtu.max(1);
        controller.set_mss(mtu);
        Self {
            controller,
            records: VecDeque::new(),
            mtu,
            next: 0,
            in_flight: 0,
            in_flight_bytes: 0,
            rtt: SmoothedRtt::new(rtt),
            min_rtt: if rtt.is_zero() { Span::MAX } else { rtt },
            latest: rtt,
            latest_limited: false,
            delivered_at: Time::ZERO,
            counts: Counts::default(),
            earlier: Counts::default(),
            for_good: ForGood::default(),
            rate: RateEstimator::default(),
            usage: WindowUsage::default(),
            reduction: Reduction::default(),
            answered: Answered::default(),
            repairs: Repairs::default(),
            batch: Batch::default(),
            unheard: 0,
            idle_since: None,
            idle_told: false,
            sent_in_burst: false,
            exhausted: false,
            log: None,
        }
    }

    /// The connection has another path: nothing is known of it, and what is in flight is lost.
    pub(crate) fn renew(&mut self, now: Time, controller: Controller) {
        self.give_up(now);
        let renewed = Self::new(controller, self.mtu, Span::ZERO);
        *self = Self { earlier: self.counts(), for_good: self.for_good, log: self.log.take(), ..renewed };
        self.log_metrics(now);
    }

    /// Writes all that happens into a log.
    pub(crate) fn keep(&mut self, now: Time, log: Log) {
        self.log = Some(Box::new(log));
        self.log_metrics(now);
    }

    fn log_metrics(&mut self, now: Time) {
        let mtu = u64::from(self.mtu);
        let ssthresh = self.controller.ssthresh();
        let metrics = Metrics {
            min_rtt: self.min_rtt,
            srtt: self.rtt.smoothed(),
            latest: self.latest,
            rttvar: self.rtt.variation(),
            cwnd: u64::from(self.controller.cwnd()) * mtu,
            ssthresh: (ssthresh != INFINITE_SSTHRESH).then_some(u64::from(ssthresh) * mtu),
            pacing_rate: self.controller.pacing_rate().map(|rate| rate.as_bps()),
            in_flight: self.in_flight_bytes,
        };
        if let Some(log) = &mut self.log {
            log.metrics(now, metrics);
        }
    }

    /// The controller.
    #[must_use]
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// The controller, for detectors that steer it.
    pub fn controller_mut(&mut self) -> &mut Controller {
        &mut self.controller
    }

    /// Counts so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.earlier.and(&self.counts)
    }

    /// Smoothed RTT; zero before the first.
    #[must_use]
    pub fn srtt(&self) -> Span {
        self.rtt.smoothed()
    }

    /// Latest RTT; zero before the first.
    #[must_use]
    pub fn latest_rtt(&self) -> Span {
        self.latest
    }

    /// What was sent and the stack does not send again.
    pub(crate) fn sent_for_good(&self) -> ForGood {
        self.for_good
    }

    /// Smallest RTT; [`Span::MAX`] before the first.
    #[must_use]
    pub fn min_rtt(&self) -> Span {
        self.min_rtt
    }

    /// True while the application is why rates are no higher.
    #[must_use]
    pub fn is_app_limited(&self) -> bool {
        self.rate.is_app_limited()
    }

    /// True if that was so when the newest packet left that was acknowledged.
    #[must_use]
    pub(crate) fn latest_was_app_limited(&self) -> bool {
        self.latest_limited
    }

    /// Packets in flight.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Bytes of a full packet without the headers of IP and UDP.
    #[must_use]
    pub fn mtu(&self) -> u32 {
        self.mtu
    }

    /// When the next packet may leave, if anything waits. `queued` is how many packets wait.
    pub fn departure(&mut self, now: Time, queued: u64) -> Departure {
        if self.in_flight == 0
            && let Some(since) = self.idle_since
            && now.since(since) > self.rtt.patience()
        {
            let idle = now.since(since);
            self.controller.restart_after_idle(now, idle, self.rtt.patience());
            (self.idle_since, self.idle_told) = (Some(now), true);
        }
        if self.in_flight >= self.controller.cwnd() {
            return Departure::Hold;
        }
        let next = Next {
            number: self.counts.sent,
            bytes: self.mtu,
            wire_bytes: self.mtu.saturating_add(HEADER_BYTES),
            in_flight: self.in_flight,
            packets_out: self.packets_out(),
            queued: queued.max(1),
            retransmission: false,
            srtt: self.rtt.smoothed(),
            min_rtt: self.min_rtt,
        };
        match self.controller.departure(now, &next) {
            Departure::At(at) if at <= now => Departure::Now,
            other => other,
        }
    }

    fn packets_out(&self) -> u32 {
        u32::try_from(self.records.len()).unwrap_or(u32::MAX)
    }

    fn una(&self) -> u64 {
        self.records.front().map_or(self.next, |record| record.seq)
    }

    /// Takes a note of the stack. What it says of ACKs and losses counts once
    /// [`settle`](Self::settle) is called.
    pub(crate) fn note(&mut self, now: Time, told: Told) {
        match told {
            Told::Sent { number, bytes } => self.sent(now, number, bytes),
            Told::Acked { number } => self.acked(now, number),
            Told::Lost { number } => self.lost(now, number),
            Told::Marked => self.batch.marked = true,
            Told::Persistent => self.batch.persistent = true,
            Told::Spurious => self.batch.spurious = true,
            Told::Mtu(bytes) => self.resize(u32::from(bytes).max(1)),
            Told::Moved => self.give_up(now),
        }
    }

    /// Full packets have so many bytes from now on; windows stay what they are in bytes.
    fn resize(&mut self, mtu: u32) {
        self.reduction.prior.on_mss(NewMss::new(self.mtu, mtu));
        self.mtu = mtu;
        self.controller.set_mss(mtu);
    }

    fn sent(&mut self, now: Time, packet: u64, bytes: u32) {
        if self.in_flight == 0 {
            self.rate.begin_flight(now);
            // What `departure` told is not told again.
            let told = std::mem::take(&mut self.idle_told);
            if let Some(since) = self.idle_since.filter(|since| !(told && *since == now)) {
                self.controller.on_idle(now.since(since));
            }
        }
        let number = self.counts.sent;
        let flight = Flight {
            sent_at: now,
            send_elapsed: Some(now.since(self.rate.first_sent_at)),
            delivered_elapsed: Some(now.since(self.rate.delivered_at)),
            prior_delivered: self.counts.delivered,
            app_limited: self.rate.is_app_limited(),
        };
        let seq = self.next;
        let stands_for = self.repairs.on_sent(seq);
        self.records.push_back(Record { packet, number, seq, stands_for, bytes, fate: Fate::Open, flight });
        self.next = self.next.saturating_add(u64::from(bytes));
        self.counts.sent += 1;
        self.counts.bytes += u64::from(bytes);
        self.for_good.packets += 1;
        self.for_good.bytes += u64::from(bytes);
        self.in_flight += 1;
        self.in_flight_bytes += u64::from(bytes);
        self.idle_since = Some(now);
        self.sent_in_burst = true;
        if self.reduction.walking {
            self.reduction.prr.on_sent();
        }
        let in_flight = self.in_flight;
        self.controller.on_sent(&Sent { now, number, seq, bytes, in_flight, retransmission: false });
        if let Some(log) = &mut self.log {
            log.sent(now, packet, bytes);
            self.log_metrics(now);
        }
    }

    /// The record of a packet whose fate is open.
    fn open(&mut self, packet: u64) -> Option<&mut Record> {
        let at = self.records.partition_point(|record| record.packet < packet);
        self.records.get_mut(at).filter(|record| record.packet == packet && record.fate != Fate::Delivered)
    }

    fn acked(&mut self, now: Time, packet: u64) {
        let Some(record) = self.open(packet) else { return };
        if record.fate != Fate::Open {
            return;
        }
        record.fate = Fate::Delivered;
        let Record { number, seq, stands_for, bytes, flight, .. } = *record;
        self.repairs.on_delivered(seq, stands_for);
        self.in_flight -= 1;
        self.in_flight_bytes -= u64::from(bytes);
        self.batch.bytes += u64::from(bytes);
        if self.batch.newest.is_none_or(|(newest, _)| number > newest) {
            self.batch.newest = Some((number, flight));
        }
        self.batch.acked.push(Acked { now, number, bytes, sent_at: flight.sent_at, rtt: None, retransmitted: false });
        if let Some(log) = &mut self.log {
            log.acked(now, packet);
        }
    }

    fn lost(&mut self, now: Time, packet: u64) {
        let Some(record) = self.open(packet) else { return };
        if record.fate != Fate::Open {
            return;
        }
        record.fate = Fate::Lost;
        let Record { seq, stands_for, bytes, .. } = *record;
        self.repairs.on_lost(seq, stands_for);
        self.for_good.packets -= 1;
        self.for_good.bytes -= u64::from(bytes);
        self.in_flight -= 1;
        self.in_flight_bytes -= u64::from(bytes);
        self.counts.lost += 1;
        self.batch.lost += 1;
        self.batch.lost_seq = self.batch.lost_seq.max(Some(seq));
        if let Some(log) = &mut self.log {
            log.lost(now, packet);
        }
    }

    /// What is in flight goes where nobody is any more, or its ACKs will not be told: it counts as
    /// lost.
    fn give_up(&mut self, now: Time) {
        let open = self.records.iter().filter(|record| record.fate == Fate::Open);
        let packets: Vec<u64> = open.map(|record| record.packet).collect();
        let for_good = self.for_good;
        for packet in packets {
            self.lost(now, packet);
        }
        self.for_good = for_good;
    }
}

#[cfg(test)]
mod tests;
