//! A small closed loop: one sender, one FIFO bottleneck, one ACK per packet. Just enough of a
//! transport to drive a controller: loss is found when a packet sent three later arrives, a
//! reduction takes effect at once, a silent path ends in a timeout.

#![allow(dead_code)]

use std::collections::{BTreeSet, VecDeque};

use flowstart_congestion::{Ack, Acked, Avoidance, Controller, DeliveryRate, Departure, Next, Repair, Sent, Signal};
use flowstart_units::{Bytes, Rate, Span, Time};

/// Payload and wire bytes of every packet.
pub(crate) const MSS: u32 = 1448;
pub(crate) const WIRE: u32 = 1500;
/// Packets sent later that must arrive before one counts as lost (RFC 5681 section 3.2).
const REORDERING: u64 = 3;
/// Retransmission timeout when nothing arrives any more.
const TIMEOUT: Span = Span::from_secs(1);

/// The path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) rate: Rate,
    /// Round-trip time without queueing and without the bottleneck's transmission time.
    pub(crate) base_rtt: Span,
    /// Packets that fit in the queue, the one being sent included.
    pub(crate) buffer: u64,
    /// Packets that wait longer than this are marked.
    pub(crate) mark_above: Span,
    /// Every so-manieth packet is lost, if not zero.
    pub(crate) lose_every: u64,
    /// Share of packets that are marked at random.
    pub(crate) mark_share: f64,
}

impl Path {
    pub(crate) fn new(mbps: u64, base_rtt: Span) -> Self {
        Self {
            rate: Rate::from_mbps(mbps),
            base_rtt,
            buffer: u64::MAX,
            mark_above: Span::MAX,
            lose_every: 0,
            mark_share: 0.0,
        }
    }

    pub(crate) fn service(&self) -> Span {
        self.rate.transmission_time(Bytes::new(u64::from(WIRE)))
    }

    /// Round-trip time of an empty path.
    pub(crate) fn rtt0(&self) -> Span {
        self.base_rtt + self.service()
    }
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    number: u64,
    seq: u64,
    sent_at: Time,
    /// When its ACK comes; [`Time::NEVER`] if it was dropped.
    acked_at: Time,
    marked: bool,
    retransmission: bool,
    /// Packets delivered when it left, and when the last of them was.
    delivered: u64,
    delivered_at: Time,
    /// When the first packet of the sample it ends left.
    first_sent_at: Time,
}

/// The loop.
#[derive(Clone)]
pub(crate) struct Loop {
    pub(crate) path: Path,
    pub(crate) controller: Controller,
    pub(crate) now: Time,
    /// Packets the application still has.
    pub(crate) data: u64,
    pub(crate) max_queue: Span,
    pub(crate) lost: u64,
    pub(crate) delivered: u64,
    pub(crate) timeouts: u64,
    /// The host's timers go off at multiples of this only.
    pub(crate) tick: Span,
    /// RTT of the last packet delivered.
    pub(crate) rtt: Span,
    link_free: Time,
    on_the_way: VecDeque<InFlight>,
    next_number: u64,
    next_seq: u64,
    to_repeat: VecDeque<u64>,
    /// Packets sent and not delivered.
    missing: BTreeSet<u64>,
    srtt: Span,
    min_rtt: Span,
    /// Until this packet (number) is answered, no further reduction and no growth.
    recover: Option<u64>,
    timer: Option<Time>,
    last_departure: Time,
    delivered_at: Time,
    first_sent_at: Time,
    /// The window was full when the flow last sent.
    limited: bool,
    random: u64,
}

impl Loop {
    /// A flow with `data` packets to send, which has an RTT sample from its handshake.
    pub(crate) fn new(path: Path, controller: Controller, data: u64) -> Self {
        Self {
            path,
            controller,
            now: Time::ZERO,
            data,
            max_queue: Span::ZERO,
            lost: 0,
            delivered: 0,
            timeouts: 0,
            tick: Span::from_nanos(1),
            rtt: path.rtt0(),
            link_free: Time::ZERO,
            on_the_way: VecDeque::new(),
            next_number: 0,
            next_seq: 0,
            to_repeat: VecDeque::new(),
            missing: BTreeSet::new(),
            srtt: path.rtt0(),
            min_rtt: path.rtt0(),
            recover: None,
            timer: None,
            last_departure: Time::ZERO,
            delivered_at: Time::ZERO,
            first_sent_at: Time::ZERO,
            limited: false,
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Runs until `until`, or until all data is delivered; `observe` sees the loop after every
    /// event.
    pub(crate) fn run(&mut self, until: Time, mut observe: impl FnMut(&Self)) {
        self.send();
        while let Some(at) = self.next_event()
            && at <= until
        {
            assert!(at >= self.now, "time goes on");
            self.now = at;
            if self.next_ack() == Some(at) {
                self.receive();
            } else if self.timer != Some(at) {
                self.time_out();
            }
            self.send();
            self.check();
            observe(self);
        }
    }

    /// The application says nothing for this long while nothing is in flight; then the flow learns
    /// of it as from Linux's timers.
    pub(crate) fn pause(&mut self, idle: Span) {
        assert_eq!(self.in_flight(), 0, "everything was delivered");
        self.now += idle;
        self.controller.restart_after_idle(self.now, idle, TIMEOUT);
    }

    fn next_ack(&self) -> Option<Time> {
        self.on_the_way.iter().map(|packet| packet.acked_at).find(|at| *at != Time::NEVER)
    }

    fn next_event(&self) -> Option<Time> {
        match (self.next_ack(), self.timer) {
            (None, None) if !self.on_the_way.is_empty() => Some(self.last_departure.max(self.now) + TIMEOUT),
            (None, timer) => timer,
            (ack, None) => ack,
            (Some(ack), Some(timer)) => Some(ack.min(timer)),
        }
    }

    fn in_flight(&self) -> u32 {
        self.on_the_way.len() as u32
    }

    fn packets_out(&self) -> u32 {
        self.missing.first().map_or(0, |una| (self.next_seq - una) as u32)
    }

    fn send(&mut self) {
        self.timer = None;
        while self.in_flight() < self.controller.cwnd() {
            let retransmission = !self.to_repeat.is_empty();
            if !retransmission && self.data == 0 {
                return;
            }
            let next = Next {
                number: self.next_number,
                bytes: MSS,
                wire_bytes: WIRE,
                in_flight: self.in_flight(),
                packets_out: self.packets_out(),
                queued: self.data,
                retransmission,
                srtt: self.srtt,
                min_rtt: self.min_rtt,
            };
            let departure = self.controller.departure(self.now, &next);
            assert_eq!(departure, self.controller.departure(self.now, &next), "asking twice changes nothing");
            match departure {
                Departure::Now => self.transmit(retransmission),
                Departure::At(at) => {
                    assert!(at > self.now, "a departure in the past");
                    let tick = self.tick.as_nanos();
                    self.timer = Some(Time::from_nanos(at.as_nanos().div_ceil(tick) * tick));
                    return;
                }
                Departure::Hold => {
                    assert!(self.in_flight() > 0, "held with nothing in flight that could end it");
                    return;
                }
            }
        }
    }

    fn transmit(&mut self, retransmission: bool) {
        let seq = if retransmission {
            self.to_repeat.pop_front().unwrap()
        } else {
            self.data -= u64::from(self.data != u64::MAX);
            self.next_seq += 1;
            self.missing.insert(self.next_seq - 1);
            self.next_seq - 1
        };
        let number = self.next_number;
        self.next_number += 1;
        self.last_departure = self.now;
        let waiting = self.link_free.since(self.now);
        let queued = waiting.as_nanos().div_ceil(self.path.service().as_nanos());
        let unlucky = self.path.lose_every > 0 && (number + 1).is_multiple_of(self.path.lose_every);
        let acked_at = if queued >= self.path.buffer || unlucky {
            Time::NEVER
        } else {
            self.max_queue = self.max_queue.max(waiting);
            self.link_free = self.link_free.max(self.now) + self.path.service();
            self.link_free + self.path.base_rtt
        };
        let marked = waiting > self.path.mark_above || self.draw() < self.path.mark_share;
        if self.on_the_way.is_empty() {
            (self.delivered_at, self.first_sent_at) = (self.now, self.now);
        }
        let (delivered, delivered_at, first_sent_at) = (self.delivered, self.delivered_at, self.first_sent_at);
        let sent_at = self.now;
        self.on_the_way.push_back(InFlight {
            number,
            seq,
            sent_at,
            acked_at,
            marked,
            retransmission,
            delivered,
            delivered_at,
            first_sent_at,
        });
        let (now, in_flight) = (self.now, self.in_flight());
        self.limited = in_flight >= self.controller.cwnd();
        let seq = seq * u64::from(MSS);
        self.controller.on_sent(&Sent { now, number, seq, bytes: MSS, in_flight, retransmission });
    }

    /// A number in 0 .. 1 (xorshift64*, Vigna 2016).
    fn draw(&mut self) -> f64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The ACK of the oldest packet that was not dropped.
    fn receive(&mut self) {
        let index = self.on_the_way.iter().position(|packet| packet.acked_at != Time::NEVER).unwrap();
        let packet = self.on_the_way.remove(index).unwrap();
        self.delivered += 1;
        self.missing.remove(&packet.seq);
        self.rtt = self.now.since(packet.sent_at);
        let rtt = (!packet.retransmission).then_some(self.rtt);
        if let Some(rtt) = rtt {
            self.srtt = self.srtt - self.srtt / 8 + rtt / 8;
            self.min_rtt = self.min_rtt.min(rtt);
        }
        if self.controller.wants_packets() {
            self.controller.on_acked(&Acked {
                now: self.now,
                number: packet.number,
                bytes: MSS,
                sent_at: packet.sent_at,
                rtt,
                retransmitted: packet.retransmission,
            });
        }
        let mut lost = 0;
        while self.on_the_way.front().is_some_and(|old| old.number + REORDERING <= packet.number) {
            lost += 1;
            self.to_repeat.push_back(self.on_the_way.pop_front().unwrap().seq);
        }
        self.lost += lost;
        if self.recover.is_some_and(|recover| packet.number > recover) {
            self.recover = None;
        }
        // The rate is that of draft-cheng-iccrg-delivery-rate-estimation.
        let interval = packet.sent_at.since(packet.first_sent_at).max(self.now.since(packet.delivered_at));
        let rate = DeliveryRate {
            delivered: (self.delivered - packet.delivered) as u32,
            interval,
            prior_delivered: packet.delivered,
            app_limited: self.data == 0,
        };
        (self.delivered_at, self.first_sent_at) = (self.now, packet.sent_at);
        let rate = (interval >= self.min_rtt).then_some(rate);
        let ack = Ack { rate, ..self.ack(rtt, lost, packet.marked) };
        self.controller.on_ack(&ack);
        let signal = if lost > 0 { Some(Signal::Loss) } else { packet.marked.then_some(Signal::Marks) };
        if let Some(signal) = signal
            && self.recover.is_none()
            && let Some(ssthresh) = self.controller.on_signal(self.now, signal)
        {
            assert!(ssthresh >= 2);
            self.controller.set_cwnd(ssthresh);
            self.recover = Some(self.next_number - 1);
        }
        // BBR goes by every ACK; what PCC sets from its rate stands for a round trip here.
        let by_every_ack = matches!(self.controller.avoidance(), Avoidance::Bbr(_) | Avoidance::Bbr3(_));
        if self.recover.is_none() || (by_every_ack && self.controller.controls_recovery()) {
            let repair = if self.recover.is_some() { Repair::Losses } else { Repair::Nothing };
            self.controller.grow(&Ack { repair, ..ack });
        }
    }

    fn ack(&self, rtt: Option<Span>, lost: u64, marked: bool) -> Ack {
        let una = self.missing.first().copied().unwrap_or(self.next_seq);
        Ack {
            now: self.now,
            acked: 1,
            acked_bytes: u64::from(MSS),
            marked: u32::from(marked),
            lost: lost as u32,
            lost_meanwhile: 0,
            rtt,
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            una: una * u64::from(MSS),
            next: self.next_seq * u64::from(MSS),
            advanced: true,
            in_flight: self.in_flight(),
            packets_out: self.packets_out(),
            // Slow start may grow windows that are only half used.
            cwnd_limited: self.limited || self.controller.cwnd() < self.controller.ssthresh(),
            max_packets_out: self.packets_out(),
            app_limited: self.data == 0,
            delivered: self.delivered,
            rate: None,
            total_lost: self.lost,
            repair: Repair::Nothing,
        }
    }

    fn time_out(&mut self) {
        self.timeouts += 1;
        self.lost += self.on_the_way.len() as u64;
        self.to_repeat.extend(self.on_the_way.drain(..).map(|packet| packet.seq));
        assert!(self.controller.on_signal(self.now, Signal::Timeout).is_some(), "a timeout is always obeyed");
        self.controller.set_cwnd(1);
        self.recover = None;
    }

    fn check(&self) {
        assert!(self.controller.cwnd() >= 1);
        assert!(self.controller.ssthresh() >= 2);
        assert_eq!(self.controller.is_starting(), self.controller.start_exit().is_none());
    }
}

/// An ACK that says nothing in particular.
pub(crate) fn any_ack() -> Ack {
    flowstart_control::testing::ack(1)
}
