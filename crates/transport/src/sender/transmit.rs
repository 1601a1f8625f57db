//! What leaves next.

use flowstart_congestion::{Departure, Moment, Next, Occasion, Sent};
use flowstart_network::packet::Segment;
use flowstart_network::{Ecn, TagWord};
use flowstart_quick_start::Carried;
use flowstart_units::Time;

use super::scoreboard::{Departing, Repair};
use super::timers::Timer;
use super::usage::Usage;
use super::{Opening, Order, Outgoing, Sender, SenderState, Urgent};
use crate::EcnMode;

/// Bytes of the Quick-Start option of IP (RFC 4782 section 3.1). The header of RCP is simulated as
/// an option of that size.
pub(super) const OPTION_BYTES: u16 = flowstart_quick_start::wire::IPV4_LENGTH as u16;

/// Why no new segment left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocked {
    /// Nothing to send, or not worth it yet (Nagle).
    Application,
    /// The receive window is shut.
    Window,
    /// The controller holds it back.
    Departure,
    /// The window has room, but not for a burst worth sending.
    Burst,
}

/// What is known of the next packet when it is not an ordinary one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Otherwise {
    /// Anything may be next.
    #[default]
    Anything,
    /// Nothing is: the window is full.
    Full,
    /// Nothing is: new data is, and pacing gave it a later time.
    Paced,
}

impl Sender {
    /// The next packet to send; call until `None` after every event.
    #[inline]
    pub fn transmit(&mut self, now: Time) -> Option<Outgoing> {
        match self.transmit_ordinary(now) {
            Ok(ordinary) => Some(ordinary),
            Err(known) => self.transmit_other(now, known),
        }
    }

    /// The next packet if it is new data and nothing else is to be thought of. If it is not, ask
    /// [`transmit_other`](Self::transmit_other), and say what is known from here.
    ///
    /// The two together are [`transmit`](Self::transmit), for callers that build their packet from
    /// what they get: this one is inlined and leaves its answer in registers. (Where the answers of
    /// both meet they meet in memory, and a copy of what was just written in small parts stalls.)
    #[inline(always)]
    pub fn transmit_ordinary(&mut self, now: Time) -> Result<Outgoing, Otherwise> {
        let ordinary = self.phase == Opening::Established
            && self.urgent == Urgent::None
            && self.order == Order::RepairsFirst
            && !self.board.may_await_repair();
        if !ordinary {
            return Err(Otherwise::Anything);
        }
        if self.board.in_flight() >= self.controller.cwnd() {
            return Err(Otherwise::Full);
        }
        match self.next_new(now, false) {
            Ok(payload) => Ok(self.send_new(now, payload, false)),
            // A start may answer otherwise when it is asked again.
            Err(Blocked::Departure) if !self.controller.start_is_in_charge() => Err(Otherwise::Paced),
            Err(_) => Err(Otherwise::Anything),
        }
    }

    /// The next packet if it is not an ordinary one, or `None` if nothing may leave now. `known` is
    /// what [`transmit_ordinary`](Self::transmit_ordinary) has just said.
    #[inline(never)]
    pub fn transmit_other(&mut self, now: Time, known: Otherwise) -> Option<Outgoing> {
        let blocked = match known {
            Otherwise::Paced => Some(Blocked::Departure),
            Otherwise::Full => None,
            Otherwise::Anything => {
                self.departure_at = Time::NEVER;
                return self.transmit_any(now);
            }
        };
        if blocked.is_none() {
            self.departure_at = Time::NEVER;
        }
        self.end_burst(now, blocked)
    }

    fn transmit_any(&mut self, now: Time) -> Option<Outgoing> {
        if self.phase < Opening::Established {
            return self.transmit_syn(now);
        }
        if self.urgent != Urgent::None
            && let Some(packet) = self.transmit_urgent(now)
        {
            return Some(packet);
        }
        if self.board.in_flight() < self.controller.cwnd() {
            if self.order == Order::RepairsFirst
                && let Some(repair) = self.board.next_repair()
            {
                let why = if self.urgent == Urgent::Timeout { Urgent::Timeout } else { Urgent::None };
                if let Some(packet) = self.transmit_repair(now, repair, why) {
                    self.urgent = Urgent::None;
                    return Some(packet);
                }
                return self.end_burst(now, None);
            }
            let next =
                if self.phase == Opening::Bursting { self.next_in_burst(now) } else { self.next_new(now, false) };
            return match next {
                Ok(payload) => Some(self.send_new(now, payload, self.burst.ends())),
                Err(blocked) => {
                    // F-RTO needs new data. If there is none, the timeout must be taken for real.
                    if self.order == Order::NewFirst
                        && !matches!(blocked, Blocked::Departure | Blocked::Burst)
                        && self.stats.next <= self.recovery.high_seq
                    {
                        self.recovery.f_rto = false;
                        self.order = Order::RepairsFirst;
                        return self.transmit_any(now);
                    }
                    self.end_burst(now, Some(blocked))
                }
            };
        }
        self.end_burst(now, None)
    }

    fn transmit_syn(&mut self, now: Time) -> Option<Outgoing> {
        if self.phase != Opening::SynDue {
            return None;
        }
        self.phase = Opening::SynSent;
        let retries = self.stats.syn_retries;
        if retries == 0 {
            self.first_syn_at = now;
        }
        // A SYN sent again carries no request: routers that drop packets with options must not keep
        // the connection from opening (RFC 4782 section 4.7.2).
        let quick_start = if retries == 0 { self.ask_for_rate(now, Moment::Opening) } else { Carried::NONE };
        let (option, wait) = if quick_start.is_none() {
            (0, self.syn_wait())
        } else {
            (OPTION_BYTES, self.syn_wait().max(self.config.request_timeout))
        };
        self.set_timer(Timer::Syn, now + wait);
        Some(Outgoing {
            segment: Segment {
                seq: 0,
                number: u64::from(retries),
                sent_at: now,
                unacknowledged: 0,
                payload: 0,
                retransmission: retries > 0,
                push: false,
                fin: false,
                cwr: false,
                syn: true,
                quick_start,
            },
            ecn: if self.config.ecn == EcnMode::Dctcp { Ecn::Ect0 } else { Ecn::NotEct },
            bytes: self.config.syn_bytes.saturating_add(option),
            tag: TagWord::Present,
        })
    }

    /// What the controller wants to ask the routers for now.
    #[cold]
    pub(super) fn ask_for_rate(&mut self, now: Time, moment: Moment) -> Carried {
        let occasion = Occasion {
            now,
            moment,
            rto: self.rtt.rto(),
            srtt: self.stats.srtt,
            packet: self.config.mss + u32::from(self.config.header_bytes),
            backlog: if self.written == u64::MAX { u64::MAX } else { self.written - self.stats.next },
            una: self.stats.una,
            next: self.stats.next,
            cwnd: self.controller.cwnd(),
            largest_window: self.controller.largest_window(),
        };
        self.controller.rate_request(&occasion)
    }

    /// A packet that a timer called for.
    #[cold]
    fn transmit_urgent(&mut self, now: Time) -> Option<Outgoing> {
        match self.urgent {
            // The window has room for exactly this one.
            Urgent::None | Urgent::Timeout => None,
            Urgent::TailProbe => {
                let blocked = match self.next_new(now, true) {
                    Ok(payload) => {
                        let packet = self.send_new(now, payload, false);
                        self.urgent = Urgent::None;
                        // No probe after a probe: the timeout comes next.
                        self.sent_in_burst = false;
                        self.on_probe_sent(now, false);
                        return Some(packet);
                    }
                    Err(blocked) => blocked,
                };
                if blocked == Blocked::Departure {
                    return None;
                }
                let Some(last) = self.board.last() else {
                    self.urgent = Urgent::None;
                    return None;
                };
                let packet = self.transmit_repair(now, last, Urgent::TailProbe)?;
                self.urgent = Urgent::None;
                self.on_probe_sent(now, true);
                Some(packet)
            }
            Urgent::Option => {
                if self.board.in_flight() >= self.controller.cwnd() || self.board.has_repairs() {
                    return None;
                }
                // The option takes its bytes from the payload.
                let room = self.config.mss.saturating_sub(u32::from(OPTION_BYTES)).max(1);
                let payload = self.next_new(now, false).ok()?.min(room);
                self.urgent = Urgent::None;
                let option = std::mem::take(&mut self.option);
                let mut packet = self.send_new(now, payload, false);
                if !option.asked().is_zero() {
                    self.answer_at = self.stats.next;
                    self.retransmitted_before = self.stats.packets_retransmitted;
                }
                packet.segment.quick_start = option;
                packet.bytes = packet.bytes.saturating_add(OPTION_BYTES);
                Some(packet)
            }
            Urgent::WindowProbe => {
                self.urgent = Urgent::None;
                if self.available() == 0 || self.board.packets_out() > 0 {
                    return None;
                }
                self.set_timer(Timer::Persist, now + self.persist_wait());
                let room = self.window_end.saturating_sub(self.stats.next).min(u64::from(self.config.mss));
                let payload = self.available().min(room) as u32;
                if payload > 0 {
                    return Some(self.send_new(now, payload, false));
                }
                Some(Outgoing {
                    segment: Segment {
                        seq: self.stats.next,
                        number: self.stats.packets_sent,
                        sent_at: now,
                        unacknowledged: self.unacknowledged_before(self.stats.next),
                        payload: 0,
                        retransmission: false,
                        push: false,
                        fin: false,
                        cwr: false,
                        syn: false,
                        quick_start: Carried::NONE,
                    },
                    ecn: Ecn::NotEct,
                    bytes: self.config.header_bytes,
                    tag: TagWord::Present,
                })
            }
        }
    }

    /// What the controller is told about the packet that would leave next.
    #[inline(always)]
    pub(super) fn next_packet(&self, payload: u32, retransmission: bool) -> Next {
        let available = self.available();
        let mss = self.config.mss;
        let queued = match u32::try_from(available) {
            Ok(bytes) => u64::from(bytes.div_ceil(mss)),
            Err(_) if self.written == u64::MAX => u64::MAX,
            Err(_) => available.div_ceil(u64::from(mss)),
        };
        Next {
            number: self.stats.packets_sent,
            bytes: payload,
            wire_bytes: payload + u32::from(self.config.header_bytes),
            in_flight: self.board.in_flight(),
            packets_out: self.board.packets_out(),
            queued: queued.max(1),
            retransmission,
            srtt: self.stats.srtt,
            min_rtt: self.stats.min_rtt,
        }
    }

    /// Whether a packet may leave by the time that the controller gave it. One that a timer called
    /// for leaves even if the controller would hold it until something happens.
    #[inline(always)]
    pub(super) fn is_due(&mut self, now: Time, departure: Departure, urgent: bool) -> bool {
        match departure {
            Departure::Now => true,
            Departure::At(at) if at <= now => true,
            Departure::At(at) => {
                self.departure_at = at;
                false
            }
            Departure::Hold => urgent,
        }
    }

    /// Asks the controller.
    #[inline(always)]
    fn may_leave(&mut self, now: Time, payload: u32, retransmission: bool, urgent: bool) -> bool {
        if self.controller.window_decides() {
            return true;
        }
        let next = self.next_packet(payload, retransmission);
        let departure = self.controller.departure(now, &next);
        self.is_due(now, departure, urgent)
    }

    #[inline]
    fn departing(&self, now: Time) -> Departing {
        Departing {
            now,
            number: self.stats.packets_sent,
            first_sent_at: self.rate.first_sent_at,
            delivered_at: self.rate.delivered_at,
            delivered: self.stats.delivered,
            app_limited: self.rate.is_app_limited(),
        }
    }

    /// Payload of the next new segment, whenever it may leave.
    #[inline(always)]
    pub(super) fn new_payload(&self, probe: bool) -> Result<u32, Blocked> {
        let available = self.available();
        if available == 0 {
            return Err(Blocked::Application);
        }
        let payload = available.min(u64::from(self.config.mss)) as u32;
        if self.stats.next.saturating_add(u64::from(payload)) > self.window_end {
            return Err(Blocked::Window);
        }
        if self.config.nagle && payload < self.config.mss && !self.finished && !probe && self.board.packets_out() > 0 {
            return Err(Blocked::Application);
        }
        Ok(payload)
    }

    /// Payload of the next new segment if it may leave now.
    #[inline(always)]
    fn next_new(&mut self, now: Time, probe: bool) -> Result<u32, Blocked> {
        let payload = self.new_payload(probe)?;
        if !self.may_leave(now, payload, false, probe) {
            return Err(Blocked::Departure);
        }
        Ok(payload)
    }

    // Packets are built where the caller wants them: inlining the two saves copies of a cache line.
    #[inline(always)]
    fn send_new(&mut self, now: Time, payload: u32, push: bool) -> Outgoing {
        let seq = self.stats.next;
        let end = seq + u64::from(payload);
        let push = push || end == self.written;
        let before = self.board.packets_out();
        if before == 0 {
            self.begin_flight(now);
        }
        // The MSS fits 16 bits (checked when the sender was made).
        self.board.push(&self.departing(now), seq, payload as u16, push);
        self.stats.next = end;
        if before == 0 || self.timer == Timer::TailProbe {
            self.rearm_retransmission(now);
        }
        self.sent_in_burst = true;
        let cwr = std::mem::take(&mut self.cwr_due);
        self.leave(now, seq, payload, push, cwr, false)
    }

    /// A packet leaves with nothing outstanding.
    #[cold]
    fn begin_flight(&mut self, now: Time) {
        self.rate.begin_flight(now);
        // Linux CA_EVENT_TX_START.
        if !std::mem::take(&mut self.idle_told)
            && let Some(last) = self.last_sent
        {
            self.controller.on_idle(now.since(last));
        }
    }

    #[inline(never)]
    fn transmit_repair(&mut self, now: Time, repair: Repair, why: Urgent) -> Option<Outgoing> {
        let probe = why == Urgent::TailProbe;
        if !self.may_leave(now, repair.payload, true, probe || why == Urgent::Timeout) {
            return None;
        }
        self.board.resend(&self.departing(now), repair.id, probe);
        self.stats.packets_retransmitted += 1;
        self.stats.bytes_retransmitted += u64::from(repair.payload);
        if !probe {
            self.recovery.on_retransmission(now);
        }
        if self.board.is_first(repair.id) && self.timer != Timer::Reordering {
            self.set_timer(Timer::Retransmission, now + self.rtt.rto());
        }
        Some(self.leave(now, repair.seq, repair.payload, repair.push, false, true))
    }

    /// Everything both kinds of segments have in common.
    #[inline(always)]
    fn leave(&mut self, now: Time, seq: u64, payload: u32, push: bool, cwr: bool, retransmission: bool) -> Outgoing {
        let number = self.stats.packets_sent;
        self.stats.packets_sent += 1;
        self.stats.bytes_sent += u64::from(payload);
        self.last_sent = Some(now);
        if self.recovery.reducing {
            self.recovery.prr.on_sent();
        }
        self.sync_flight();
        self.controller.on_sent(&Sent {
            now,
            number,
            seq,
            bytes: payload,
            in_flight: self.stats.in_flight,
            retransmission,
        });
        let end = seq + u64::from(payload);
        let ect = if self.config.ect1 { Ecn::Ect1 } else { Ecn::Ect0 };
        Outgoing {
            segment: Segment {
                seq,
                number,
                sent_at: now,
                unacknowledged: self.unacknowledged_before(seq),
                payload,
                retransmission,
                push,
                fin: self.finished && end == self.written,
                cwr,
                syn: false,
                quick_start: self.header,
            },
            ecn: match self.config.ecn {
                EcnMode::Off => Ecn::NotEct,
                // RFC 3168 section 6.1.5: retransmissions must not be ECN-capable.
                EcnMode::Classic if retransmission => Ecn::NotEct,
                EcnMode::Classic | EcnMode::Dctcp | EcnMode::Accurate => ect,
            },
            // Header and MSS together fit 16 bits (checked when the sender was made).
            bytes: (u32::from(self.config.header_bytes) + payload) as u16,
            tag: TagWord::Present,
        }
    }

    /// Bytes before `seq` that are not acknowledged, for the segment that begins there.
    #[inline]
    fn unacknowledged_before(&self, seq: u64) -> u32 {
        u32::try_from(seq.saturating_sub(self.stats.una)).unwrap_or(u32::MAX)
    }

    /// Nothing more leaves now: judge how the window was used and set the timers.
    #[inline]
    fn end_burst(&mut self, now: Time, blocked: Option<Blocked>) -> Option<Outgoing> {
        self.sync_unsent();
        if blocked != Some(Blocked::Application) {
            self.stop_writing();
        }
        let cwnd = self.controller.cwnd();
        let limited = self.board.in_flight() >= cwnd || blocked == Some(Blocked::Burst);
        let sent = std::mem::take(&mut self.sent_in_burst);
        if sent || (limited && self.available() > 0) {
            let usage = Usage {
                una: self.stats.una,
                next: self.stats.next,
                packets_out: self.board.packets_out(),
                cwnd,
                in_slow_start: cwnd < self.controller.ssthresh(),
                limited,
                remembered: !self.config.kernel.counts_acks(),
            };
            if let Some(used) = self.usage.update(now, &usage, self.rtt.rto())
                && self.config.cwnd_validation
                && self.recovery.state == SenderState::Open
                && !self.controller.controls_recovery()
            {
                self.controller.validate_window(used);
            }
        }
        match blocked {
            Some(Blocked::Application) => self.note_app_limited(),
            Some(Blocked::Window) if self.board.packets_out() == 0 && self.timer == Timer::None => {
                self.set_timer(Timer::Persist, now + self.persist_wait());
            }
            _ => {}
        }
        if sent {
            self.rearm_after_sending(now);
        }
        None
    }
}
