//! The receiving endpoint.

use flowstart_network::packet::{Acknowledgement, Body, Segment};
use flowstart_network::{Ecn, Packet};
use flowstart_quick_start::RateCode;
use flowstart_quick_start::wire::TcpResponse;
use flowstart_units::{Rate, Time};

use crate::ack_policy::{AckPolicy, Payload, Situation};
use crate::merging::{Arrivals, Merged};
use crate::reassembly::{Arrival, Reassembly};
use crate::window::{Taken, Window};
use crate::{EcnMode, ReceiverConfig};

/// A SACK option's bytes without its blocks, padded to words (RFC 2018 section 3).
const SACK_OPTION_BYTES: u16 = 4;
/// Bytes of one SACK block (RFC 2018 section 3).
const SACK_BLOCK_BYTES: u16 = 8;
/// Bytes of a Quick-Start response (RFC 4782 section 4.1).
const RESPONSE_BYTES: u16 = flowstart_quick_start::wire::TCP_LENGTH as u16;

/// An ACK ready to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingAck {
    /// Its contents.
    pub ack: Acknowledgement,
    /// ECN codepoint of the packet.
    pub ecn: Ecn,
    /// Length of the IP packet in bytes.
    pub bytes: u16,
}

/// What the next ACK says.
#[derive(Clone, Copy, Debug)]
struct Saying {
    next: u64,
    ece: bool,
    echo: Time,
    /// Answers a SYN.
    syn: bool,
    /// Tells all there is to tell.
    ordinary: bool,
}

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Data segments that arrived, duplicates included.
    pub packets: u64,
    /// Data segments that had arrived before.
    pub duplicates: u64,
    /// Data segments that arrived with CE.
    pub marked: u64,
    /// Data segments dropped because they lay outside the receive window.
    pub outside_window: u64,
    /// ACKs sent.
    pub acks: u64,
}

/// An ACK of the state before the last segment (RFC 8257 section 3.2).
#[derive(Clone, Copy, Debug)]
struct EarlyAck {
    next: u64,
    ece: bool,
}

/// The receiving endpoint of a connection.
#[derive(Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    stream: Reassembly,
    policy: AckPolicy,
    /// Next byte expected as of the last ACK.
    told: u64,
    pub(crate) window: Window,
    /// Timestamp to echo (RFC 7323 section 4.3).
    echo: Time,
    ce_count: u32,
    /// ECE is set on ACKs.
    ece: bool,
    /// A packet that could carry marks has arrived.
    ecn_seen: bool,
    /// The next ACK reports a duplicate.
    duplicate: bool,
    ack_now: bool,
    early: Option<EarlyAck>,
    /// A SYN/ACK, an early ACK or packets that are being looked at wait.
    first_words: bool,
    /// An ACK is held for aggregation until then.
    aggregated: Time,
    /// ACKs that wait to be merged.
    merged: u32,
    syn_ack: Option<Time>,
    syn_ack_sent: Option<Time>,
    /// Packets that the host has not looked at (receive offload).
    arrivals: Option<Box<Arrivals>>,
    /// When it will; [`Time::NEVER`] if there are none.
    looks: Time,
    /// Approved rate for the next ACK.
    granted: Option<TcpResponse>,
    /// What the routers have for this flow (RCP), as the last segment says; every ACK tells it.
    share: Option<Rate>,
    stats: ReceiverStats,
}

impl Receiver {
    /// A receiver that waits for a connection.
    #[must_use]
    pub fn new(config: &ReceiverConfig) -> Self {
        Self {
            config: config.clone(),
            stream: Reassembly::default(),
            policy: AckPolicy::new(config),
            told: 0,
            window: Window::new(config),
            echo: Time::ZERO,
            ce_count: 0,
            ece: false,
            ecn_seen: false,
            duplicate: false,
            ack_now: false,
            early: None,
            first_words: false,
            aggregated: Time::NEVER,
            merged: 0,
            syn_ack: None,
            syn_ack_sent: None,
            arrivals: config.offload.as_ref().map(|offload| Box::new(Arrivals::new(offload))),
            looks: Time::NEVER,
            granted: None,
            share: None,
            stats: ReceiverStats::default(),
        }
    }

    /// A segment arrived.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, ecn: Ecn) {
        if (segment.syn | !segment.quick_start.is_none() | self.share.is_some() | self.arrivals.is_some())
            && self.on_special(now, segment, ecn)
        {
            return;
        }
        self.take(now, segment, ecn, (1, segment.payload));
    }

    /// A SYN, a segment with an option, or any with receive offload. Returns true if there is no
    /// more to do about it.
    #[cold]
    fn on_special(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> bool {
        if segment.syn {
            self.granted = segment.quick_start.answer();
            self.share = segment.quick_start.share();
            self.window.tell_time(now);
            self.first_words = true;
            self.syn_ack = Some(segment.sent_at);
            self.syn_ack_sent = Some(now);
            return true;
        }
        let Some(arrivals) = &mut self.arrivals else {
            self.take_option(segment);
            return false;
        };
        let enough = arrivals.push(now, segment, ecn);
        self.looks = arrivals.due();
        if enough {
            self.look(now);
        }
        true
    }

    /// A rate that routers approved is told at once, on the ACK of that segment (RFC 4782 section
    /// 4.2).
    fn take_option(&mut self, segment: &Segment) {
        if !segment.quick_start.is_none() | self.share.is_some() {
            self.granted = segment.quick_start.answer();
            self.share = segment.quick_start.share();
            self.ack_now |= segment.quick_start.option().is_some();
        }
    }

    /// The host looks at what arrived: each merged packet is taken in when the ACKs before it have
    /// left.
    fn look(&mut self, now: Time) {
        self.looks = Time::NEVER;
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.look(now);
            self.first_words = true;
        }
    }

    #[inline(never)]
    fn take_merged(&mut self, now: Time, merged: &Merged) {
        self.take_option(&merged.segment);
        self.take(now, &merged.segment, merged.ecn, (merged.count, merged.size));
    }

    /// A segment, or several merged, are taken in: so many, the first of so much payload.
    #[inline(always)]
    fn take(&mut self, now: Time, segment: &Segment, ecn: Ecn, (count, size): (u32, u32)) {
        if segment.payload == 0 {
            // A window probe.
            self.window.tell_time(now);
            self.want_ack(now);
            return;
        }
        self.stats.packets += u64::from(count);
        self.stats.marked += if ecn == Ecn::Ce { u64::from(count) } else { 0 };
        if let Some(sent) = self.syn_ack_sent.take() {
            self.policy.set_rtt(now.since(sent));
        }
        // Only segments that continue what was last told may be echoed, so that a delayed ACK's RTT
        // includes its delay and an out-of-order segment does not hide it (RFC 7323 section 4.3).
        if segment.seq <= self.told && segment.sent_at >= self.echo {
            self.echo = segment.sent_at;
        }
        self.on_codepoint(ecn, segment.cwr, count);
        let end = segment.seq.saturating_add(u64::from(segment.payload));
        let before = self.stream.next();
        if self.window.excludes(end) {
            self.stats.outside_window += u64::from(count);
            self.window.tell_time(now);
            self.policy.on_trouble(&self.config, self.width());
            self.want_ack(now);
            return;
        }
        let arrival = self.stream.insert(segment.seq, end);
        if arrival == Arrival::Duplicate {
            self.stats.duplicates += u64::from(count);
            self.duplicate = true;
            self.window.tell_time(now);
            self.policy.on_trouble(&self.config, self.width());
            self.want_ack(now);
            return;
        }
        let mut at_once = self.on_mark(ecn, before);
        if at_once {
            // The early ACK told of everything before this segment.
            if segment.seq <= self.told {
                self.echo = segment.sent_at;
            }
        }
        match arrival {
            Arrival::InOrder { filled } => {
                self.policy.on_data(now, &self.config, Payload { size, count, push: segment.push }, self.width());
                at_once |= filled;
            }
            Arrival::OutOfOrder { depth } => at_once |= self.policy.on_out_of_order(depth),
            Arrival::Duplicate => {}
        }
        let taken = Taken { segment, count, size, arrival, stream: &self.stream, before, told: self.told };
        let window_moves = self.window.on_data(now, taken, &mut self.policy);
        at_once |= self.ack_now;
        let situation =
            Situation { next: self.stream.next(), told: self.told, gaps: self.stream.has_gaps(), window_moves };
        if at_once || self.policy.decide(now, &self.config, situation) {
            self.want_ack(now);
        }
    }

    /// The count of marks and the end of an echo (RFC 3168 section 6.1.3).
    #[inline]
    fn on_codepoint(&mut self, ecn: Ecn, cwr: bool, count: u32) {
        if self.config.ecn == EcnMode::Off {
            return;
        }
        if ecn == Ecn::Ce {
            self.ce_count = self.ce_count.wrapping_add(count);
        }
        if cwr && self.config.ecn == EcnMode::Classic {
            self.ece = false;
            // The sender's window may be a single packet now.
            self.ack_now = true;
        }
    }

    /// A new segment's mark. Returns true if an ACK must leave at once.
    #[inline]
    fn on_mark(&mut self, ecn: Ecn, before: u64) -> bool {
        match self.config.ecn {
            EcnMode::Off | EcnMode::Accurate => false,
            EcnMode::Dctcp => {
                let marked = ecn == Ecn::Ce;
                if marked == self.ece {
                    return false;
                }
                if self.policy.is_delaying() && before > self.told {
                    self.early = Some(EarlyAck { next: before, ece: self.ece });
                    self.first_words = true;
                    self.told = before;
                }
                self.ece = marked;
                true
            }
            EcnMode::Classic => {
                match ecn {
                    Ecn::Ce => {
                        if !self.ece {
                            self.policy.on_mark_change(&self.config, self.width());
                        }
                        self.ece = true;
                        self.ecn_seen = true;
                    }
                    Ecn::NotEct if self.ecn_seen => self.policy.on_mark_change(&self.config, self.width()),
                    Ecn::NotEct => {}
                    Ecn::Ect0 | Ecn::Ect1 => self.ecn_seen = true,
                }
                false
            }
        }
    }

    /// An ACK leaves now, or with the next aggregate.
    #[inline]
    fn want_ack(&mut self, now: Time) {
        match self.config.ack_aggregation {
            None => self.ack_now = true,
            Some(hold) => {
                self.merged = self.merged.saturating_add(1);
                self.ack_now = self.config.ack_aggregation_most.is_some_and(|most| self.merged >= most);
                self.aggregated = self.aggregated.min(now + hold);
            }
        }
    }

    /// The time of [`deadline`](Self::deadline) has come.
    pub fn on_timer(&mut self, now: Time) {
        if self.looks <= now {
            self.look(now);
        }
        self.window.tell_time(now);
        if self.aggregated <= now {
            self.ack_now = true;
        } else if self.policy.on_timer(now, &self.config) {
            self.want_ack(now);
        }
    }

    /// Hands `send` the packets of all ACKs to send, of this flow; to be called after every event.
    // Each is built in one place and handed over by reference: a copy of what was just written in
    // small parts stalls.
    #[inline(always)]
    pub fn acknowledge(&mut self, flow: u32, mut send: impl FnMut(&Packet)) {
        loop {
            if self.first_words {
                let Some(packet) = self.next_packet(flow) else { return };
                send(&packet);
                continue;
            }
            if !self.ack_now {
                return;
            }
            self.say_all();
            let (next, ece, echo) = (self.stream.next(), self.ece, self.echo);
            let packet = self.build(flow, next, ece, echo, false);
            self.said_all(next);
            send(&packet);
        }
    }

    /// The state is about to be told.
    #[inline(always)]
    fn say_all(&mut self) {
        self.ack_now = false;
        self.merged = 0;
        self.aggregated = Time::NEVER;
    }

    /// The state up to this byte was told.
    #[inline(always)]
    fn said_all(&mut self, next: u64) {
        self.told = next;
        self.duplicate = false;
        self.policy.on_ack_sent(&self.config);
    }

    /// The next ACK to send, for who does not want packets; call until `None` after every event.
    pub fn poll_ack(&mut self) -> Option<OutgoingAck> {
        let Packet { bytes, ecn, body: Body::Ack(ack), .. } = self.next_packet(0)? else { return None };
        Some(OutgoingAck { ack, ecn, bytes })
    }

    /// The next ACK, whatever it is. Where nothing goes before an ordinary one,
    /// [`acknowledge`](Self::acknowledge) knows that and is faster.
    #[cold]
    #[inline(never)]
    fn next_packet(&mut self, flow: u32) -> Option<Packet> {
        let saying = if self.first_words { self.first_words() } else { self.ordinary_words() };
        let Saying { next, ece, echo, syn, ordinary } = saying?;
        let packet = self.build(flow, next, ece, echo, syn);
        if ordinary {
            self.said_all(next);
        }
        Some(packet)
    }

    /// The state now, if it must be told.
    fn ordinary_words(&mut self) -> Option<Saying> {
        if !self.ack_now {
            return None;
        }
        self.say_all();
        Some(Saying { next: self.stream.next(), ece: self.ece, echo: self.echo, syn: false, ordinary: true })
    }

    /// What goes before an ordinary ACK: the answer to a SYN, and the ACK of the state before the
    /// last segment.
    fn first_words(&mut self) -> Option<Saying> {
        if let Some(echo) = self.syn_ack.take() {
            return Some(Saying { next: self.stream.next(), ece: false, echo, syn: true, ordinary: false });
        }
        loop {
            self.first_words = self.arrivals.as_ref().is_some_and(|arrivals| arrivals.is_looked_at());
            if let Some(early) = self.early.take() {
                return Some(Saying { next: early.next, ece: early.ece, echo: self.echo, syn: false, ordinary: false });
            }
            let words = self.ordinary_words();
            if words.is_some() {
                return words;
            }
            let (now, merged) = self.arrivals.as_mut().and_then(|arrivals| arrivals.next())?;
            self.take_merged(now, &merged);
        }
    }

    #[inline(always)]
    fn build(&mut self, flow: u32, next: u64, ece: bool, echo: Time, syn: bool) -> Packet {
        self.stats.acks += u64::from(!syn);
        let window = self.window.tell(next, &self.stream, &mut self.policy);
        let (sack, sack_len) = if syn { Default::default() } else { self.stream.blocks(next) };
        let blocks = u16::from(sack_len);
        let option = if blocks == 0 { 0 } else { SACK_OPTION_BYTES + SACK_BLOCK_BYTES * blocks };
        let ordinary = self.config.header_bytes.saturating_add(option);
        let mut packet = Packet {
            flow,
            bytes: if syn { self.config.syn_bytes } else { ordinary },
            ecn: if self.config.ecn == EcnMode::Dctcp && !syn { Ecn::Ect0 } else { Ecn::NotEct },
            body: Body::Ack(Acknowledgement {
                ack: next,
                echo,
                ce_count: self.ce_count,
                window,
                sack,
                sack_len,
                ece: ece && self.config.ecn != EcnMode::Accurate,
                duplicate: self.duplicate && !syn,
                syn,
                granted_rate: RateCode::ZERO,
                has_share: false,
            }),
        };
        if self.share.is_some() || self.granted.is_some() {
            self.respond(&mut packet);
        }
        packet
    }

    /// Tells what routers answered.
    #[cold]
    #[inline(never)]
    fn respond(&mut self, packet: &mut Packet) {
        let Body::Ack(ack) = &mut packet.body else { return };
        let before = ack.sack_len;
        if let Some(share) = self.share {
            ack.set_share(share);
        }
        if let Some(granted) = self.granted.take() {
            ack.set_response(&granted);
        }
        // A block may have given way.
        let length =
            |blocks: u8| if blocks == 0 { 0 } else { SACK_OPTION_BYTES + SACK_BLOCK_BYTES * u16::from(blocks) };
        let changed = if ack.syn { 0 } else { length(before) - length(ack.sack_len) };
        packet.bytes = (packet.bytes - changed).saturating_add(RESPONSE_BYTES);
    }

    /// When [`on_timer`](Self::on_timer) must be called; [`Time::NEVER`] if nothing is waited for.
    #[must_use]
    #[inline]
    pub fn deadline(&self) -> Time {
        let ack = if self.aggregated == Time::NEVER { self.policy.deadline() } else { self.aggregated };
        ack.min(self.looks)
    }

    /// Bytes of the stream that arrived in order.
    #[must_use]
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.stream.next()
    }

    /// The application takes `bytes` bytes (no more than arrived in order); only of interest
    /// without `auto_read`.
    pub fn read(&mut self, bytes: u64) {
        self.ack_now |= self.window.read(bytes, &self.stream, &self.policy);
    }

    /// The window as last told, counted from the next byte expected.
    #[inline]
    fn width(&self) -> u64 {
        self.window.width(self.stream.next())
    }

    /// Counters.
    #[must_use]
    pub fn stats(&self) -> &ReceiverStats {
        &self.stats
    }
}
