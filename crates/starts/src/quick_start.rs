//! Quick-Start (RFC 4782): asks the routers on the path for a rate with the first packet, sends at
//! what they grant for one round trip, and goes on with slow start from the window that was really
//! used. Without a grant it is slow start.
//!
//! The rules are those of [`flowstart_quick_start::Sender`]; this joins them to a flow.

use flowstart_control::InvalidConfig;
use flowstart_control::random::Random;
use flowstart_control::{
    Ack, Acked, AfterAck, Answer, Departure, Exit, ExitReason, FlowStart, Moment, NewMss, Next, Occasion, Response,
    RouterClient, Sent, Signal, Window,
};
use flowstart_quick_start::sender::{
    AckSeen, Allowance, Change, Departing, PacingConfig, Reaction, RequestPhase, Sender, SenderConfig, Trigger,
};
use flowstart_quick_start::wire::TcpResponse;
use flowstart_quick_start::{Carried, Nonce, RateCode};
use flowstart_units::{Bytes, Rate, Span, Time};

use check::GrantCheck;
pub use check::GrantCheckConfig;

use super::limited_slow_start::{LimitedSlowStart, LimitedSlowStartConfig};
use crate::StartConstants;

mod check;

/// Constants of Quick-Start; the defaults are those of RFC 4782.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct QuickStartConfig {
    /// The most that is asked for; default 1.31072 Gbit/s, the largest rate that can be written.
    /// (Scharf and Strotbek: 5.12 Mbit/s on a path of 10 Mbit/s.) At least 80 kbit/s.
    pub request: Rate,
    /// Whether less is asked for if the application has less to send in one RTT (section 4.1);
    /// default true. (Scharf and Strotbek always ask for the same.)
    pub as_needed: bool,
    /// RTT that the application's need is divided by if none is known; default 100 ms (section
    /// 4.1). Above 0.
    pub assumed_rtt: Span,
    /// Whether the packets of the phase are released by timers as in the paper's implementation for
    /// Linux 2.6.20 instead of one by one at the granted rate; default false.
    pub timers: bool,
    /// Period of the timers' clock; default 1 ms (the paper). Above 0.
    pub tick: Span,
    /// Packets that a timer releases at least; default 3 (the paper). At least 1.
    pub chunk: u32,
    /// Whether the threshold becomes the window at the end of the phase; default false. RFC 4782
    /// leaves it open; the paper measured that it costs seconds.
    pub adapt_threshold: bool,
    /// A grant is used if its window is more than this many percent of the present one; default 100
    /// (section 4.4). At least 100.
    pub least_window_percent: u32,
    /// Window in packets above which slow start after a grant is limited (`max_ssthresh` of RFC
    /// 3742); default 100, as RFC 4782 section 4.6 demands; 0 for standard slow start, as the paper
    /// shows it.
    pub max_ssthresh: u32,
    /// Whether a connection that sends again after an idle time asks again; default true.
    pub after_idle: bool,
    /// Whether a connection that was not idle asks again when the application, all of whose data
    /// had been sent, writes more than the window holds; default false (sections 4.1 and 4.8 allow
    /// requests in mid-connection, but advise against them after periods limited by the
    /// application).
    pub in_middle: bool,
    /// Whether nothing is asked for if all that waits fits into the window that needs no grant;
    /// default false (own variant).
    pub skip_small: bool,
    /// Whether the packets of the window that needs no grant leave at once, and only those beyond
    /// it paced; default false, as RFC 4782 section 4.4 paces all (own variant: a grant is never
    /// slower than none).
    pub at_once: bool,
    /// A grant that no data follows is forgotten after the RTT, at the latest after this; default 3
    /// s (own choice). Above 0.
    pub grant_lifetime: Span,
    /// Wrong TTL differences in a row after which the connection stops asking, so that a receiver
    /// cannot try one after the other (section 9.2); default 3 (own choice). At least 1.
    pub most_wrong_ttl: u32,
    /// Check by the delays of the first window whether the path has what was granted, and fall back
    /// to what it has; default none, as in RFC 4782 (own variant).
    pub check: Option<GrantCheckConfig>,
}

impl Default for QuickStartConfig {
    fn default() -> Self {
        let sender = SenderConfig::default();
        Self {
            request: RateCode::MAX.rate(),
            as_needed: true,
            assumed_rtt: sender.assumed_rtt,
            timers: false,
            tick: Span::from_millis(1),
            chunk: 3,
            adapt_threshold: sender.adapt_threshold,
            least_window_percent: sender.least_window_percent,
            max_ssthresh: LimitedSlowStartConfig::default().max_ssthresh,
            after_idle: true,
            in_middle: false,
            skip_small: false,
            at_once: false,
            grant_lifetime: sender.grant_lifetime,
            most_wrong_ttl: sender.most_wrong_ttl,
            check: None,
        }
    }
}

impl QuickStartConfig {
    fn sender(&self, initial_window: u32) -> SenderConfig {
        let pacing = if self.timers {
            PacingConfig::Timers { tick: self.tick, chunk: self.chunk.max(1) }
        } else {
            PacingConfig::Departures
        };
        SenderConfig {
            pacing,
            initial_window,
            adapt_threshold: self.adapt_threshold,
            least_window_percent: self.least_window_percent,
            assumed_rtt: self.assumed_rtt,
            grant_lifetime: self.grant_lifetime,
            most_wrong_ttl: self.most_wrong_ttl,
            burst: if self.at_once { initial_window } else { 0 },
            ramp: self.check.map_or(0, |check| check.ramp),
            ..SenderConfig::default()
        }
    }
}

impl StartConstants for QuickStartConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        let check = InvalidConfig::unless;
        check(self.request >= RateCode::MIN.rate(), "request", "at least 80 kbit/s")?;
        check(!self.assumed_rtt.is_zero(), "assumed_rtt", "above 0")?;
        check(!self.tick.is_zero(), "tick", "above 0")?;
        check(self.chunk >= 1, "chunk", "at least 1")?;
        check(self.least_window_percent >= 100, "least_window_percent", "at least 100")?;
        check(self.max_ssthresh != 1, "max_ssthresh", "0 or at least 2")?;
        check(!self.grant_lifetime.is_zero(), "grant_lifetime", "above 0")?;
        check(self.most_wrong_ttl >= 1, "most_wrong_ttl", "at least 1")?;
        let alone = self.check.is_none() || !self.at_once && !self.timers;
        check(alone, "check", "with neither at_once nor timers: packets must leave in their own time")?;
        self.check.map_or(Ok(()), |check| check.validate())
    }

    fn sends(&self) -> Option<&'static str> {
        Some("paced at the granted rate for one round trip")
    }

    fn asks_routers(&self) -> bool {
        true
    }
}

/// TTL that packets leave with (Linux `net.ipv4.ip_default_ttl`).
const IP_TTL: u8 = 64;

/// Quick-Start in operation. [`QuickStartConfig`] says where its rules come from.
#[derive(Clone, Debug)]
pub struct QuickStart {
    config: QuickStartConfig,
    sender: Sender,
    limited: Option<LimitedSlowStart>,
    mss: u32,
    /// Bytes of a full packet on the wire, as of the last request.
    packet: u32,
    /// Window in packets before the grant.
    before: u32,
    /// The grant expired before anything was sent, and the window was not taken back yet.
    expired: bool,
    /// Next new byte of the stream.
    next: u64,
    /// First byte not acknowledged.
    una: u64,
    granted: Option<RateCode>,
    check: Option<GrantCheck>,
    /// Next transmission number.
    number: u64,
    /// Makes nonces and Quick-Start TTLs.
    random: Random,
}

impl QuickStart {
    /// Quick-Start for a flow with segments of `mss` payload bytes that begins with
    /// `initial_window` packets if nothing is granted. What protects its requests comes from
    /// `seed`.
    #[must_use]
    pub fn new(config: &QuickStartConfig, initial_window: u32, mss: u32, seed: u64) -> Self {
        let limit = LimitedSlowStartConfig { max_ssthresh: config.max_ssthresh };
        Self {
            config: *config,
            sender: Sender::new(config.sender(initial_window)),
            limited: (config.max_ssthresh > 0).then(|| LimitedSlowStart::new(&limit)),
            mss,
            packet: mss,
            before: initial_window,
            expired: false,
            next: 0,
            una: 0,
            granted: None,
            check: None,
            number: 0,
            random: Random::new(seed),
        }
    }

    /// What was granted last.
    #[must_use]
    pub fn granted(&self) -> Option<RateCode> {
        self.granted
    }

    /// Where it is.
    #[must_use]
    pub fn phase(&self) -> RequestPhase {
        self.sender.phase()
    }

    /// True while the grant, not the ACK clock, decides what may leave.
    fn is_in_phase(&self) -> bool {
        matches!(self.sender.phase(), RequestPhase::Granted | RequestPhase::Pacing)
    }

    /// Does something with the rules that may end a grant nobody used.
    fn watching_expiry<T>(&mut self, act: impl FnOnce(&mut Sender) -> T) -> T {
        let waiting = self.sender.phase() == RequestPhase::Granted;
        let result = act(&mut self.sender);
        self.expired |= waiting && self.sender.phase() == RequestPhase::Idle;
        result
    }

    /// An answer came: checks it, and opens the window if it is a grant.
    pub(super) fn hear(&mut self, answer: &Answer, window: &mut Window) -> Change {
        self.next = answer.next;
        self.una = answer.una;
        if answer.lost {
            self.sender.on_request_lost();
        }
        let seen = self.seen(answer.una, answer.response, answer.rtt, window);
        let change = self.sender.on_ack(answer.now, &seen);
        if let Change::Granted(rate, cwnd) = change {
            self.granted = Some(rate);
            (self.before, self.expired) = (window.cwnd, false);
            window.cwnd = cwnd;
            self.check = self.config.check.map(|check| GrantCheck::new(check, rate.rate(), self.packet, self.number));
        }
        change
    }

    /// The path has `rate`, not what was granted: the start is over, with the window that this rate
    /// fills.
    fn fall_back(&self, rate: Rate, ack: &Ack, window: &Window) -> AfterAck {
        let bytes = rate.bytes_in(ack.min_rtt).get();
        let packets = u32::try_from(bytes / u64::from(self.packet.max(1))).unwrap_or(u32::MAX);
        let cwnd = packets.max(self.before).min(window.cwnd);
        AfterAck::Done(Exit { reason: ExitReason::PipeFull, cwnd, ssthresh: cwnd.max(2), rate: None })
    }

    /// An ACK as the rules want to see it.
    fn seen(&self, una: u64, response: Option<TcpResponse>, rtt: Span, window: &Window) -> AckSeen {
        AckSeen {
            una,
            delivered_end: una,
            delivered: 0,
            response,
            rtt,
            cwnd: window.cwnd,
            in_flight: 0,
            next: self.next,
        }
    }
}

impl FlowStart for QuickStart {
    fn router_client(&mut self) -> Option<&mut dyn RouterClient> {
        Some(self)
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> AfterAck {
        // What was delivered beyond a hole, the receiver told selectively.
        let beyond = ack.acked > 0 && ack.una == self.una;
        self.una = ack.una;
        self.next = ack.next;
        let before = ack.in_flight.saturating_add(ack.acked).saturating_add(ack.lost);
        let seen = AckSeen {
            delivered: ack.acked,
            delivered_end: ack.una.saturating_add(u64::from(beyond)),
            in_flight: before,
            ..self.seen(ack.una, None, ack.srtt, window)
        };
        let change = self.watching_expiry(|sender| sender.on_ack(ack.now, &seen));
        if core::mem::take(&mut self.expired) {
            window.cwnd = self.before;
        }
        if let Change::Ended { cwnd, ssthresh } = change {
            window.cwnd = cwnd;
            window.ssthresh = ssthresh.unwrap_or(window.ssthresh);
            if let Some(check) = &mut self.check {
                check.end(self.number);
            }
        }
        // All packets of the phase have arrived.
        if self.check.is_some() && matches!(self.sender.phase(), RequestPhase::Idle | RequestPhase::Off(_)) {
            let lacking = self.check.take().and_then(|check| check.lacking());
            return lacking.map_or(AfterAck::Continue, |rate| self.fall_back(rate, ack, window));
        }
        AfterAck::Continue
    }

    fn wants_packets(&self) -> bool {
        self.config.check.is_some()
    }

    fn on_acked(&mut self, acked: &Acked) {
        if let Some(check) = &mut self.check {
            check.on_acked(acked);
        }
    }

    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        // What was granted seems not to be there: no more until that is certain.
        if self.is_in_phase() || self.check.is_some_and(|check| check.lacking().is_some()) {
            return 0;
        }
        match &mut self.limited {
            Some(limited) if self.granted.is_some() => limited.grow(ack, window),
            _ => window.slow_start(ack.acked),
        }
    }

    fn on_signal(&mut self, _now: Time, signal: Signal, window: &mut Window) -> Response {
        let reaction = match signal {
            Signal::Timeout => self.sender.on_timeout(self.una),
            Signal::Loss | Signal::Marks => self.sender.on_congestion(self.una),
        };
        match (reaction, signal) {
            // The window is that of a timeout anyway.
            (Some(reaction), Signal::Timeout) => Response::LeaveAt(reaction.ssthresh),
            (Some(Reaction { cwnd, ssthresh }), _) => Response::FallTo { cwnd, ssthresh },
            (None, _) => {
                window.cwnd = self.sender.give_up().unwrap_or(window.cwnd);
                Response::Leave
            }
        }
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.number = sent.number.saturating_add(1);
        if !sent.retransmission {
            self.next = sent.seq.saturating_add(u64::from(sent.bytes));
            let headers = self.packet.saturating_sub(self.mss);
            self.sender.on_sent(sent.now, sent.bytes.saturating_add(headers));
        }
    }

    fn departure(&mut self, now: Time, next: &Next, _window: &Window) -> Option<Departure> {
        if next.retransmission {
            return None;
        }
        let first = self.next;
        let allowance = self.watching_expiry(|sender| sender.allowance(now, next.in_flight, first));
        if self.expired && next.in_flight >= self.before {
            return Some(Departure::Hold);
        }
        match allowance? {
            Allowance::Now => Some(Departure::Now),
            Allowance::At(time) => Some(Departure::At(time)),
            Allowance::Closed => Some(Departure::Hold),
        }
    }

    fn owns_window(&self) -> bool {
        self.is_in_phase()
    }

    fn on_mss(&mut self, mss: NewMss) {
        let headers = self.packet.saturating_sub(self.mss);
        self.mss = mss.bytes();
        self.packet = self.mss.saturating_add(headers);
        self.before = mss.packets(self.before);
    }
}

impl RouterClient for QuickStart {
    fn rate_request(&mut self, occasion: &Occasion) -> Carried {
        let trigger = match occasion.moment {
            Moment::Opening => Trigger::Start,
            Moment::AfterIdle(idle) if self.config.after_idle => Trigger::AfterIdle { idle, rto: occasion.rto },
            Moment::Middle if self.config.in_middle => Trigger::Middle,
            Moment::AfterIdle(_) | Moment::Middle => return Carried::NONE,
        };
        // What an earlier request or phase led to may not have been heard while another was in
        // charge.
        let nobody = Window::new(u32::MAX);
        let heard = self.seen(occasion.una, None, occasion.srtt, &nobody);
        self.watching_expiry(|sender| sender.on_ack(occasion.now, &heard));
        self.sender.set_packet(occasion.packet);
        let rtt = (!occasion.srtt.is_zero()).then_some(occasion.srtt);
        let most = RateCode::floor(self.config.request);
        let packets = occasion.backlog.div_ceil(u64::from(self.mss.max(1)));
        if self.config.skip_small && packets <= u64::from(self.sender.config().initial_window) {
            return Carried::NONE;
        }
        let needed = if self.config.as_needed || packets == 0 { packets } else { u64::MAX };
        let bytes = Bytes::new(needed.saturating_mul(u64::from(occasion.packet)));
        let wish = self.sender.config().wish(bytes, rtt, occasion.largest_window).min(most);
        // What could not be granted enough of is not worth the routers' while.
        if trigger == Trigger::Middle && wish.window(occasion.srtt, occasion.packet) <= occasion.cwnd {
            return Carried::NONE;
        }
        if self.sender.request(occasion.now, trigger, wish, rtt).is_err() {
            return Carried::NONE;
        }
        self.packet = occasion.packet;
        self.next = occasion.next;
        // A SYN has no byte of the stream; with data, the ACK of its first byte is the answer.
        let end = if trigger == Trigger::Start { 0 } else { occasion.next.saturating_add(1) };
        let packet = Departing { elicits_ack: true, retransmission: false, end, ip_ttl: IP_TTL };
        let random = self.random.next();
        // The nonce takes the low bits.
        let secrets = || (Nonce::new(random as u32), (random >> 56) as u8);
        let option = self.sender.attach_request(occasion.now, &packet, secrets);
        option.map_or(Carried::NONE, |option| Carried::new(&option, IP_TTL))
    }

    fn on_answer(&mut self, answer: &Answer, window: &mut Window) -> bool {
        matches!(self.hear(answer, window), Change::Granted(..))
    }

    fn take_report(&mut self) -> Carried {
        self.sender.take_report().map_or(Carried::NONE, |report| Carried::new(&report, IP_TTL))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_a_grant_waits_and_how_many_wrong_ttls_end_asking_are_constants() {
        let default = QuickStartConfig::default();
        let grant_lifetime = Span::from_millis(700);
        let sender = QuickStartConfig { grant_lifetime, most_wrong_ttl: 7, ..default }.sender(10);
        assert_eq!((sender.grant_lifetime, sender.most_wrong_ttl), (grant_lifetime, 7));
        let sender = default.sender(10);
        assert_eq!((sender.grant_lifetime, sender.most_wrong_ttl), (Span::from_secs(3), 3));
        let refused = |config: QuickStartConfig| config.validate().err().map(|error| error.field);
        let never = QuickStartConfig { grant_lifetime: Span::ZERO, ..default };
        assert_eq!(refused(never), Some("grant_lifetime"));
        assert_eq!(refused(QuickStartConfig { most_wrong_ttl: 0, ..default }), Some("most_wrong_ttl"));
    }
}
