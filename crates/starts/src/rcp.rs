//! The sender of RCP (Dukkipati and McKeown, "Why flow-completion time is the right metric for
//! congestion control", 2006): every packet asks the routers what they have for each of their
//! flows, and the flow sends at the smallest answer, from its first packet to its last.
//!
//! It has no window of its own and needs no congestion avoidance: the routers see to it that queues
//! empty, and losses are repaired without slowing down. While no answer comes, as on a path with a
//! router that does not know RCP, this is slow start, and what it ends with is the avoidance's.

use flowstart_control::{
    Ack, AfterAck, Answer, Departure, Exit, ExitReason, FlowStart, InvalidConfig, Moment, NewMss, Next, Occasion,
    Response, RouterClient, Sent, Signal, Window,
};
use flowstart_quick_start::Carried;
use flowstart_units::{Bytes, Rate, Span, Time};

use crate::StartConstants;

/// Constants of the sender of RCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct RcpStartConfig {
    /// Most packets in flight, in percent of what the answered rate holds in a round trip: so that
    /// a flow whose ACKs stay away stops; default 200 (own; the paper has no window). At least 100.
    pub window_percent: u32,
    /// An answer that is older than this many round trips holds for no more than the initial
    /// window; default 2 (own). At least 1.
    pub stale_after: u32,
}

impl Default for RcpStartConfig {
    fn default() -> Self {
        Self { window_percent: 200, stale_after: 2 }
    }
}

impl StartConstants for RcpStartConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        InvalidConfig::unless(self.window_percent >= 100, "window_percent", "at least 100")?;
        InvalidConfig::unless(self.stale_after >= 1, "stale_after", "at least 1")
    }

    fn sends(&self) -> Option<&'static str> {
        Some("paced at what the routers have for each flow")
    }

    fn asks_routers(&self) -> bool {
        true
    }
}

/// What the routers said.
#[derive(Clone, Copy, Debug)]
struct Told {
    rate: Rate,
    at: Time,
    rtt: Span,
}

/// The sender of RCP in operation. [`RcpStartConfig`] says where its rules come from.
#[derive(Clone, Copy, Debug)]
pub struct RcpStart {
    config: RcpStartConfig,
    initial_window: u32,
    mss: u32,
    /// What any packet has beside its payload, in bytes.
    headers: u32,
    told: Option<Told>,
    /// The routers have answered, and do no longer.
    fell_silent: bool,
    /// Earliest departure of the next packet.
    next: Time,
}

impl RcpStart {
    /// RCP for a flow with segments of `mss` payload bytes that begins with `initial_window`
    /// packets if no router answers.
    #[must_use]
    pub fn new(config: &RcpStartConfig, initial_window: u32, mss: u32) -> Self {
        Self {
            config: *config,
            initial_window: initial_window.max(1),
            mss: mss.max(1),
            headers: 0,
            told: None,
            fell_silent: false,
            next: Time::ZERO,
        }
    }

    /// The rate that the routers have for this flow, as of the last ACK.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.told.map(|told| told.rate)
    }

    /// Packets that a rate holds in a round trip, times `percent`.
    fn packets(&self, rate: Rate, rtt: Span, percent: u32) -> u32 {
        let bytes = rate.bytes_in(rtt).get().saturating_mul(u64::from(percent)) / 100;
        u32::try_from(bytes / u64::from(self.mss.saturating_add(self.headers))).unwrap_or(u32::MAX).max(2)
    }
}

impl FlowStart for RcpStart {
    fn router_client(&mut self) -> Option<&mut dyn RouterClient> {
        Some(self)
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> AfterAck {
        if !core::mem::take(&mut self.fell_silent) {
            return AfterAck::Continue;
        }
        // What the last answer kept in flight is what the path has carried.
        let cwnd = ack.in_flight.saturating_add(ack.acked).clamp(2, window.cwnd.max(2));
        AfterAck::Done(Exit { reason: ExitReason::Limit, cwnd, ssthresh: cwnd, rate: None })
    }

    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        if self.told.is_some() { 0 } else { window.slow_start(ack.acked) }
    }

    fn on_signal(&mut self, _now: Time, signal: Signal, _window: &mut Window) -> Response {
        match signal {
            Signal::Loss | Signal::Marks if self.told.is_some() => Response::Ignore,
            _ => {
                self.told = None;
                Response::Leave
            }
        }
    }

    fn on_sent(&mut self, sent: &Sent) {
        if let Some(told) = self.told {
            let bytes = u64::from(sent.bytes) + u64::from(self.headers);
            self.next = self.next.max(sent.now) + told.rate.transmission_time(Bytes::new(bytes));
        }
    }

    fn departure(&mut self, now: Time, next: &Next, _window: &Window) -> Option<Departure> {
        let told = self.told?;
        self.headers = next.wire_bytes.saturating_sub(next.bytes);
        let stale = now.since(told.at) > told.rtt * u64::from(self.config.stale_after);
        if stale && next.in_flight >= self.initial_window {
            return Some(Departure::Hold);
        }
        Some(if self.next <= now { Departure::Now } else { Departure::At(self.next) })
    }

    fn departure_rate(&self) -> Option<Rate> {
        self.rate()
    }

    fn owns_window(&self) -> bool {
        self.told.is_some()
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.mss = mss.bytes();
        self.initial_window = mss.packets(self.initial_window);
    }
}

impl RouterClient for RcpStart {
    fn rate_request(&mut self, occasion: &Occasion) -> Carried {
        if occasion.moment == Moment::Opening { Carried::asking_for_share(None) } else { Carried::NONE }
    }

    fn on_answer(&mut self, answer: &Answer, window: &mut Window) -> bool {
        let Some(rate) = answer.share else {
            self.fell_silent = self.told.take().is_some();
            return false;
        };
        self.told = Some(Told { rate, at: answer.now, rtt: answer.rtt });
        // A packet that waits for a slower rate than this one need not.
        let packet = Bytes::new(u64::from(self.mss) + u64::from(self.headers));
        self.next = self.next.min(answer.now + rate.transmission_time(packet));
        window.cwnd = self.packets(rate, answer.rtt, self.config.window_percent);
        true
    }

    fn take_report(&mut self) -> Carried {
        Carried::NONE
    }

    fn asks_for_shares(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_control::testing::{ack, next, sent};

    const RTT: Span = Span::from_millis(100);
    const MSS: u32 = 1440;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    fn told(ms: u64, mbps: u64) -> Answer {
        let share = (mbps > 0).then(|| Rate::from_mbps(mbps));
        Answer { now: at(ms), response: None, share, lost: false, rtt: RTT, una: 0, next: 0 }
    }

    fn start() -> (RcpStart, Window) {
        (RcpStart::new(&RcpStartConfig::default(), 10, MSS), Window::new(10))
    }

    #[test]
    fn packets_leave_at_the_rate_of_the_last_answer() {
        let (mut start, mut window) = start();
        assert!(start.on_answer(&told(100, 10), &mut window), "in charge");
        // 125 kB in a round trip, twice.
        assert_eq!(window.cwnd, 250_000 / MSS);
        let wire = Next { wire_bytes: MSS + 60, bytes: MSS, ..next(0) };
        assert_eq!(start.departure(at(100), &wire, &window), Some(Departure::Now));
        start.on_sent(&Sent { bytes: MSS, ..sent(at(100), 0) });
        let at_ten = at(100) + Span::from_micros(1200);
        assert_eq!(start.departure(at(100), &wire, &window), Some(Departure::At(at_ten)), "1500 bytes at 10 Mbit/s");
        // A tenth of it: the packet that is due leaves when it was due.
        start.on_answer(&told(101, 1), &mut window);
        assert_eq!(start.departure(at(101), &wire, &window), Some(Departure::At(at_ten)));
        start.on_sent(&Sent { bytes: MSS, ..sent(at_ten, 1) });
        let Some(Departure::At(slow)) = start.departure(at_ten, &wire, &window) else { panic!() };
        assert_eq!(slow, at_ten + Span::from_millis(12));
        // A hundred times as much: nothing waits for the slow rate.
        start.on_answer(&told(103, 100), &mut window);
        assert_eq!(start.departure(at(103), &wire, &window), Some(Departure::At(at(103) + Span::from_micros(120))));
        assert_eq!(start.rate(), Some(Rate::from_mbps(100)));
    }

    #[test]
    fn losses_do_not_slow_it_and_a_timeout_does_until_the_next_answer() {
        let (mut start, mut window) = start();
        start.on_answer(&told(100, 10), &mut window);
        for signal in [Signal::Loss, Signal::Marks] {
            assert_eq!(start.on_signal(at(200), signal, &mut window), Response::Ignore);
        }
        assert_eq!(start.on_signal(at(200), Signal::Timeout, &mut window), Response::Leave);
        assert!(!start.owns_window() && start.departure(at(200), &next(1), &window).is_none());
        assert!(start.on_answer(&told(300, 10), &mut window) && start.owns_window());
    }

    #[test]
    fn without_an_answer_it_is_slow_start_and_leaves_at_a_loss() {
        let (mut start, mut window) = start();
        assert!(!start.on_answer(&told(100, 0), &mut window));
        assert!(matches!(start.on_ack(&ack(10), &mut window), AfterAck::Continue));
        assert_eq!((start.grow(&ack(10), &mut window), window.cwnd), (0, 20));
        assert!(start.departure(at(100), &next(0), &window).is_none() && !start.owns_window());
        assert_eq!(start.on_signal(at(200), Signal::Loss, &mut window), Response::Leave);
    }

    #[test]
    fn when_the_routers_fall_silent_the_avoidance_goes_on_with_what_was_in_flight() {
        let (mut start, mut window) = start();
        start.on_answer(&told(100, 10), &mut window);
        assert!(!start.on_answer(&told(200, 0), &mut window));
        let AfterAck::Done(exit) = start.on_ack(&Ack { in_flight: 83, ..ack(2) }, &mut window) else { panic!() };
        assert_eq!((exit.cwnd, exit.ssthresh, exit.reason), (85, 85, ExitReason::Limit));
    }

    #[test]
    fn an_answer_of_long_ago_holds_for_the_initial_window() {
        let (mut start, mut window) = start();
        start.on_answer(&told(100, 10), &mut window);
        let of = |start: &mut RcpStart, ms, number| {
            let next = Next { in_flight: number, ..next(u64::from(number)) };
            start.departure(at(ms), &next, &Window::new(100))
        };
        assert_eq!(of(&mut start, 300, 50), Some(Departure::Now));
        assert_eq!(of(&mut start, 301, 50), Some(Departure::Hold));
        assert_eq!(of(&mut start, 5000, 9), Some(Departure::Now));
    }

    #[test]
    fn constants_out_of_range_are_refused() {
        let percent = RcpStartConfig { window_percent: 99, ..RcpStartConfig::default() };
        let stale = RcpStartConfig { stale_after: 0, ..RcpStartConfig::default() };
        assert!(percent.validate().is_err() && stale.validate().is_err());
        assert!(RcpStartConfig::default().validate().is_ok());
    }
}
