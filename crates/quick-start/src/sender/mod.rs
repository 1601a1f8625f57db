//! The sender of requests: asks, checks the answer, paces the Quick-Start phase, ends it, and
//! reacts to congestion in it (RFC 4782 section 4).
//!
//! Sequence numbers are counts of the connection's octets (with 64 bits, so that they do not wrap);
//! windows are counted in packets.

mod config;
mod mtu;
mod pacing;

pub use config::{PacingConfig, SenderConfig};
pub use mtu::{PathMtu, SAFE_IPV4, SAFE_IPV6, Size};
pub use pacing::{Allowance, Pacer, Timers};

use flowstart_units::{Span, Time};
use rand_core::Rng;

use crate::wire::{IpOption, TcpResponse};
use crate::{Nonce, RateCode, ttl_difference};

/// Why a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The connection begins: on the SYN, the SYN/ACK, or the first data.
    Start,
    /// In the middle of the connection, on data.
    Middle,
    /// The connection sends again after nothing was in flight for `idle`, with the retransmission
    /// timeout `rto`.
    AfterIdle {
        /// How long.
        idle: Span,
        /// Retransmission timeout.
        rto: Span,
    },
}

/// Why no request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// This connection makes none any more.
    Off(OffReason),
    /// One is under way, or its phase is not over.
    Busy,
    /// The last one is less than an RTT ago.
    TooSoon,
    /// The idle time was shorter than a retransmission timeout.
    NotIdle,
    /// Nothing is asked for.
    Nothing,
}

/// Why a connection makes no requests any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffReason {
    /// The nonce of an answer was wrong: somebody claims rates that were not granted (RFC 4782
    /// section 4.4: never again).
    Nonce,
    /// A packet of a Quick-Start phase was lost or marked (RFC 4782 section 4.6: should not).
    Congestion,
    /// Several requests in a row came back with a wrong TTL difference: a router on the path does
    /// not know Quick-Start, or a receiver is guessing. Or a packet with a request was lost:
    /// something on the path may drop packets with options (own choice; RFC 4782 section 4.7.2 only
    /// wants it sent again without).
    Path,
}

/// A packet about to leave, for the decision which option it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departing {
    /// True for SYN, SYN/ACK and data: packets that are acknowledged.
    pub elicits_ack: bool,
    /// True if it was sent before: such a packet carries no request.
    pub retransmission: bool,
    /// Octet behind the last one of this packet: acknowledged when everything before it is.
    pub end: u64,
    /// TTL that IP puts on it, as the first router sees it.
    pub ip_ttl: u8,
}

/// What an ACK says and what the connection looked like before it.
#[derive(Clone, Copy, Debug)]
pub struct AckSeen {
    /// First octet not cumulatively acknowledged.
    pub una: u64,
    /// Octet behind the last one delivered, cumulatively or selectively.
    pub delivered_end: u64,
    /// Packets delivered by this ACK.
    pub delivered: u32,
    /// Response option on the ACK.
    pub response: Option<TcpResponse>,
    /// Measured RTT.
    pub rtt: Span,
    /// Window in packets as it would be without Quick-Start.
    pub cwnd: u32,
    /// Packets in flight before this ACK.
    pub in_flight: u32,
    /// Next new octet to be sent.
    pub next: u64,
}

/// Why a request came to nothing. In the order of the checks (RFC 4782 section 4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// The ACK of the packet carried no response.
    NoResponse,
    /// The answer was zero or more than was asked for.
    Rate,
    /// A router on the way did not take part.
    TtlDifference,
    /// The nonce does not fit the rate.
    Nonce,
}

/// What an ACK changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// The request came to nothing; windows are as ever.
    Denied(Denial),
    /// The grant is not larger than what the window allows anyway; it is not used.
    TooSmall(RateCode),
    /// Granted; the window may open to this many packets, paced.
    Granted(RateCode, u32),
    /// The phase is over. The window in packets to continue with, and the threshold if it is
    /// adapted.
    Ended {
        /// Window in packets.
        cwnd: u32,
        /// Threshold in packets, if it changes.
        ssthresh: Option<u32>,
    },
    /// All packets of the phase are delivered; another request may follow.
    Validated,
}

/// What a loss or a mark in the phase leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reaction {
    /// Window in packets.
    pub cwnd: u32,
    /// Threshold in packets, at most.
    pub ssthresh: u32,
}

/// A request under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    rate: RateCode,
    nonce: Nonce,
    ttl_difference: u8,
    end: u64,
    at_start: bool,
}

impl Request {
    /// Checks what came back with the ACK of the request, in the order of RFC 4782 section 4.4.
    fn check(&self, response: Option<&TcpResponse>) -> Result<RateCode, Denial> {
        let response = response.ok_or(Denial::NoResponse)?;
        if response.rate.is_zero() || response.rate > self.rate {
            return Err(Denial::Rate);
        }
        if response.ttl_difference != self.ttl_difference {
            return Err(Denial::TtlDifference);
        }
        if !response.nonce.agrees_with(self.nonce, response.rate) {
            return Err(Denial::Nonce);
        }
        Ok(response.rate)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grant {
    rate: RateCode,
    window: u32,
    rtt: Span,
    /// Window in packets without Quick-Start.
    before: u32,
    at_start: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Off(OffReason),
    Idle,
    Wanted { rate: RateCode, at_start: bool },
    Requested(Request),
    Granted { grant: Grant, expires: Time },
    Pacing { grant: Grant, pacer: Pacer, first: u64 },
    Ended { grant: Grant, end: u64, delivered: u32 },
}

/// Where a sender is, for inspection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestPhase {
    /// No requests any more.
    Off(OffReason),
    /// Nothing under way.
    Idle,
    /// The next packet that is acknowledged will carry a request.
    Wanted,
    /// The request is on its way.
    Requested,
    /// Granted, but no data has been sent since.
    Granted,
    /// Data is being sent at the granted rate.
    Pacing,
    /// The phase is over, its last packets are not delivered yet.
    Ended,
}

/// A Quick-Start sender.
#[derive(Clone, Debug)]
pub struct Sender {
    config: SenderConfig,
    state: State,
    /// When the last request left: no other follows within an RTT.
    last_request: Option<Time>,
    report: Option<IpOption>,
    /// Wrong TTL differences in a row.
    wrong_ttl: u32,
}

impl Sender {
    /// A sender without requests.
    #[must_use]
    pub fn new(config: SenderConfig) -> Self {
        Self { config, state: State::Idle, last_request: None, report: None, wrong_ttl: 0 }
    }

    /// Where it is.
    #[must_use]
    pub fn phase(&self) -> RequestPhase {
        match self.state {
            State::Off(reason) => RequestPhase::Off(reason),
            State::Idle => RequestPhase::Idle,
            State::Wanted { .. } => RequestPhase::Wanted,
            State::Requested(_) => RequestPhase::Requested,
            State::Granted { .. } => RequestPhase::Granted,
            State::Pacing { .. } => RequestPhase::Pacing,
            State::Ended { .. } => RequestPhase::Ended,
        }
    }

    /// From now on a full packet has `bytes` bytes, headers of IP and TCP included.
    pub fn set_packet(&mut self, bytes: u32) {
        self.config.packet = bytes;
    }

    /// Its constants.
    #[must_use]
    pub fn config(&self) -> &SenderConfig {
        &self.config
    }

    /// Retransmission timeout of the packet that opens the connection, if it carries a request:
    /// routers that drop packets with options shall not be taken for a dead path, nor a slow one
    /// for a loss (RFC 4782 section 4.7.2).
    #[must_use]
    pub fn opening_timeout(&self) -> Option<Span> {
        matches!(self.state, State::Requested(Request { at_start: true, .. })).then_some(self.config.syn_timeout)
    }

    /// The next packet that is acknowledged shall ask for `rate`; `rtt` is the smoothed RTT, if
    /// known.
    ///
    /// # Errors
    /// If RFC 4782 section 4.1 does not allow a request now.
    pub fn request(&mut self, now: Time, trigger: Trigger, rate: RateCode, rtt: Option<Span>) -> Result<(), Refused> {
        match self.state {
            State::Off(reason) => return Err(Refused::Off(reason)),
            State::Idle | State::Wanted { .. } => {}
            _ => return Err(Refused::Busy),
        }
        if let Trigger::AfterIdle { idle, rto } = trigger
            && idle < rto
        {
            return Err(Refused::NotIdle);
        }
        let apart = rtt.unwrap_or(self.config.assumed_rtt);
        if self.last_request.is_some_and(|last| now.since(last) < apart) {
            return Err(Refused::TooSoon);
        }
        if rate.is_zero() {
            return Err(Refused::Nothing);
        }
        self.state = State::Wanted { rate, at_start: trigger == Trigger::Start };
        Ok(())
    }

    /// The option for a packet about to leave: a report that is due, or a request that is wanted.
    /// The packet holds eight bytes less of data then.
    pub fn attach(&mut self, now: Time, packet: &Departing, random: &mut impl Rng) -> Option<IpOption> {
        // The report is due before, or on, the first data of the phase.
        if let Some(report) = self.take_report() {
            return Some(report);
        }
        self.attach_request(now, packet, || (Nonce::random(random), random.next_u32() as u8))
    }

    /// The report that is due, if one is; it leaves with the next packet of any kind.
    pub fn take_report(&mut self) -> Option<IpOption> {
        self.report.take()
    }

    /// The request for a packet about to leave, if one is wanted, with the nonce and the
    /// Quick-Start TTL that `secrets` gives.
    pub fn attach_request(
        &mut self,
        now: Time,
        packet: &Departing,
        secrets: impl FnOnce() -> (Nonce, u8),
    ) -> Option<IpOption> {
        let State::Wanted { rate, at_start } = self.state else { return None };
        if !packet.elicits_ack || packet.retransmission {
            return None;
        }
        let (nonce, ttl) = secrets();
        let ttl_difference = ttl_difference(packet.ip_ttl, ttl);
        self.state = State::Requested(Request { rate, nonce, ttl_difference, end: packet.end, at_start });
        self.last_request = Some(now);
        Some(IpOption::Request { rate, ttl, nonce })
    }

    /// An ACK came.
    pub fn on_ack(&mut self, now: Time, ack: &AckSeen) -> Change {
        match self.state {
            State::Requested(request) if ack.una >= request.end => self.on_answer(now, &request, ack),
            State::Granted { expires, .. } if now >= expires => {
                self.state = State::Idle;
                Change::None
            }
            State::Pacing { grant, first, .. } if ack.delivered_end > first => {
                // What has been used of the window stays; the rest was not tested by anything.
                let used = ack.in_flight.min(grant.window);
                let cwnd = used.max(grant.before);
                self.state = State::Ended { grant, end: ack.next, delivered: ack.delivered };
                self.validated(ack);
                Change::Ended { cwnd, ssthresh: self.config.adapt_threshold.then_some(cwnd.max(2)) }
            }
            State::Ended { ref mut delivered, .. } => {
                *delivered = delivered.saturating_add(ack.delivered);
                if self.validated(ack) { Change::Validated } else { Change::None }
            }
            _ => Change::None,
        }
    }

    fn validated(&mut self, ack: &AckSeen) -> bool {
        let State::Ended { end, .. } = self.state else { return false };
        if ack.una >= end {
            self.state = State::Idle;
        }
        ack.una >= end
    }

    fn on_answer(&mut self, now: Time, request: &Request, ack: &AckSeen) -> Change {
        let answer = request.check(ack.response.as_ref());
        let reported = answer.unwrap_or(RateCode::ZERO);
        self.report = Some(IpOption::Report { rate: reported, nonce: request.nonce });
        self.wrong_ttl = if answer == Err(Denial::TtlDifference) { self.wrong_ttl.saturating_add(1) } else { 0 };
        self.state = match answer {
            Err(Denial::Nonce) => State::Off(OffReason::Nonce),
            Err(Denial::TtlDifference) if self.wrong_ttl >= self.config.most_wrong_ttl => State::Off(OffReason::Path),
            _ => State::Idle,
        };
        let rate = match answer {
            Ok(rate) => rate,
            Err(denial) => return Change::Denied(denial),
        };
        let window = rate.window(ack.rtt, self.config.packet);
        let least = u64::from(ack.cwnd).saturating_mul(u64::from(self.config.least_window_percent.max(100)));
        if u64::from(window) * 100 <= least {
            return Change::TooSmall(rate);
        }
        let grant = Grant { rate, window, rtt: ack.rtt, before: ack.cwnd, at_start: request.at_start };
        self.state = State::Granted { grant, expires: now + ack.rtt.min(self.config.grant_lifetime) };
        Change::Granted(rate, window)
    }

    /// Whether another new packet may leave as far as Quick-Start is concerned; `None` outside of
    /// the phase, where the window decides. `next` is the first octet of that packet: the phase
    /// begins with it.
    pub fn allowance(&mut self, now: Time, in_flight: u32, next: u64) -> Option<Allowance> {
        if let State::Granted { grant, expires } = self.state {
            if now >= expires {
                self.state = State::Idle;
                return None;
            }
            let pacer = Pacer::new(self.config.pacing, now, grant.window, in_flight, grant.rate.rate(), grant.rtt)
                .with_burst(self.config.burst)
                .with_ramp(self.config.ramp);
            self.state = State::Pacing { grant, pacer, first: next };
        }
        match &self.state {
            State::Pacing { pacer, .. } => Some(pacer.allowance(now, in_flight)),
            _ => None,
        }
    }

    /// A packet of `bytes` on the wire left.
    pub fn on_sent(&mut self, now: Time, bytes: u32) {
        if let State::Pacing { pacer, .. } = &mut self.state {
            pacer.on_sent(now, bytes);
        }
    }

    /// A packet was lost or marked; `first` is its first octet. A reaction if it belongs to a
    /// Quick-Start phase, which is over then: at the beginning of a connection back to the initial
    /// window, with a threshold of half of what was delivered; later to half of the phase's window
    /// or the window without Quick-Start, whichever is less (RFC 4782 section 4.6). If there is
    /// none, [`give_up`](Self::give_up) may be due.
    pub fn on_congestion(&mut self, first: u64) -> Option<Reaction> {
        let (grant, delivered) = match self.state {
            State::Pacing { grant, first: begin, .. } if first >= begin => (grant, 0),
            State::Ended { grant, end, delivered } if first < end => (grant, delivered),
            _ => return None,
        };
        self.state = State::Off(OffReason::Congestion);
        Some(if grant.at_start {
            Reaction { cwnd: self.config.initial_window.max(1), ssthresh: (delivered / 2).max(2) }
        } else {
            let cwnd = (grant.window / 2).min(grant.before).max(1);
            Reaction { cwnd, ssthresh: cwnd.max(2) }
        })
    }

    /// Something sent before the phase was lost or marked, so the path is congested without it: the
    /// grant is not used any more. The window in packets without Quick-Start, for the usual
    /// reduction; `None` if there is no grant in use. Other requests may follow.
    pub fn give_up(&mut self) -> Option<u32> {
        let (State::Granted { grant, .. } | State::Pacing { grant, .. }) = self.state else { return None };
        self.state = State::Idle;
        Some(grant.before)
    }

    /// The packet with the request was lost, if one is under way: it goes out again without one,
    /// and no other packet of this connection carries an option, not even a report. Whatever
    /// routers granted, they forget.
    pub fn on_request_lost(&mut self) {
        if matches!(self.state, State::Requested(_)) {
            self.state = State::Off(OffReason::Path);
        }
    }

    /// The retransmission timer expired; `una` is the first octet not acknowledged. A request under
    /// way [is lost](Self::on_request_lost). In a phase the same as a loss.
    pub fn on_timeout(&mut self, una: u64) -> Option<Reaction> {
        self.on_request_lost();
        self.on_congestion(una)
    }
}
