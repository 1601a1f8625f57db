//! Rapid Start (draft-kazuho-ccwg-rapid-start-02): the window triples every round trip as long as
//! no queue shows, and the first recovery takes back exactly what did not get through.
//!
//! Packets are paced from the first: the initial window over one round trip, later flights at two
//! or three times the window per round trip, so that a round's packets are spread while the window
//! grows. At the first loss or mark the window is cut a little (the silence), then by a share of
//! every packet delivered and of every packet lost, so that at the end of the recovery it is beta
//! times what got through.
//!
//! The draft triples while the RTT's floor is below the smaller of two bounds, quicly (which it
//! comes from) below the larger; [`RapidStartConfig::larger_bound`] chooses, the default is the
//! draft's.

use flowstart_control::{
    Ack, AfterAck, Departure, Exit, ExitReason, FlowStart, NewMss, Next, Response, Sent, Signal, Window,
};
use flowstart_control::{InRange, InvalidConfig, Ranges, above};
use flowstart_units::{Bytes, Rate, Span, Time};

use super::first_recovery::{FirstRecovery, Told};
use super::spacing::Spacing;
use crate::StartConstants;

/// Slots that the RTT's floor over the last round trip is kept in (quicly).
const SLOTS: usize = 4;

/// Constants of Rapid Start; the defaults are those of draft-kazuho-ccwg-rapid-start-02, with the
/// beta of CUBIC.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct RapidStartConfig {
    /// Packets added per packet delivered while no queue shows, 1 ..= 16; default 2, so that the
    /// window triples.
    pub growth: u32,
    /// First bound of the RTT's floor: the smallest RTT plus this; default 4 ms.
    pub delay_bound: Span,
    /// Second bound: the smallest RTT times this, 1 ..= 10; default 1.1 (quicly: 35/32).
    pub delay_ratio: f64,
    /// Whether the larger of the two bounds counts (quicly) or the smaller (draft, default).
    pub larger_bound: bool,
    /// Below this smallest RTT the window only doubles; default 0 (quicly: 4 ms).
    pub min_rtt: Span,
    /// Share of what got through that the window keeps after the first recovery, above 0 and below
    /// 1; default 0.7 (RFC 9438).
    pub beta: f64,
    /// K: share of the reduction that is taken per packet delivered, 0 ..= 1; default 2/3 (quicly:
    /// 11/18).
    pub recovery_share: f64,
}

impl Default for RapidStartConfig {
    fn default() -> Self {
        Self {
            growth: 2,
            delay_bound: Span::from_millis(4),
            delay_ratio: 1.1,
            larger_bound: false,
            min_rtt: Span::ZERO,
            beta: 0.7,
            recovery_share: 2.0 / 3.0,
        }
    }
}

impl RapidStartConfig {
    /// The constants of quicly.
    #[must_use]
    pub fn quicly() -> Self {
        Self {
            delay_ratio: 35.0 / 32.0,
            larger_bound: true,
            min_rtt: Span::from_millis(4),
            recovery_share: 11.0 / 18.0,
            ..Self::default()
        }
    }

    /// RTT up to which there is no queue.
    fn bound(&self, min_rtt: Span) -> Span {
        let (sum, product) = (min_rtt + self.delay_bound, min_rtt.mul_f64(self.delay_ratio));
        if self.larger_bound { sum.max(product) } else { sum.min(product) }
    }
}

impl StartConstants for RapidStartConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        self.check()
    }
}

impl InRange for RapidStartConfig {
    fn ranges(&mut self, ranges: &mut Ranges) {
        ranges.of("growth", &mut self.growth, 1..=16, "between 1 and 16");
        ranges.of("delay_ratio", &mut self.delay_ratio, 1.0..=10.0, "between 1 and 10");
        ranges.of("beta", &mut self.beta, above(0.0).below(1.0), "above 0 and below 1");
        ranges.of("recovery_share", &mut self.recovery_share, 0.0..=1.0, "between 0 and 1");
    }
}

/// The smallest RTT of about the last round trip.
#[derive(Clone, Copy, Debug)]
struct Floor {
    slots: [Span; SLOTS],
    current: usize,
    turns: Time,
}

impl Floor {
    fn new() -> Self {
        Self { slots: [Span::MAX; SLOTS], current: 0, turns: Time::ZERO }
    }

    fn add(&mut self, now: Time, rtt: Span, min_rtt: Span) -> Span {
        if now >= self.turns {
            self.current = (self.current + 1) % SLOTS;
            self.slots[self.current] = Span::MAX;
            self.turns = now + min_rtt / SLOTS as u64;
        }
        self.slots[self.current] = self.slots[self.current].min(rtt);
        self.slots.iter().copied().min().unwrap_or(rtt)
    }
}

/// Rapid Start in operation. [`RapidStartConfig`] says where its rules come from.
#[derive(Clone, Debug)]
pub struct RapidStart {
    config: RapidStartConfig,
    initial_window: u32,
    mss: u64,
    spacing: Spacing,
    rate: Option<Rate>,
    floor: Floor,
    /// Packets added per packet delivered now.
    growth: u32,
    told: Told,
    recovery: Option<FirstRecovery>,
    reason: ExitReason,
    /// Window before the first recovery.
    before: u32,
}

impl RapidStart {
    /// Rapid Start for a flow with segments of `mss` payload bytes that begins with
    /// `initial_window` packets.
    #[must_use]
    pub fn new(config: &RapidStartConfig, initial_window: u32, mss: u32) -> Self {
        let config = config.in_range();
        Self {
            initial_window: initial_window.max(1),
            mss: u64::from(mss.max(1)),
            spacing: Spacing::new(),
            rate: None,
            floor: Floor::new(),
            growth: config.growth,
            told: Told::default(),
            recovery: None,
            reason: ExitReason::Loss,
            before: 0,
            config,
        }
    }

    /// True while it grows by more than standard slow start.
    #[must_use]
    pub fn is_rapid(&self) -> bool {
        self.recovery.is_none() && self.growth > 1
    }

    /// Window during the first recovery.
    fn recovering_window(&self, recovery: &FirstRecovery) -> u32 {
        let RapidStartConfig { beta, recovery_share, .. } = self.config;
        let per_delivered = recovery_share * (1.0 - beta);
        let silence = beta + per_delivered;
        let (delivered, lost) = recovery.fates(u64::from(self.before));
        let before = f64::from(self.before);
        let window = before * silence - per_delivered * delivered as f64 - silence * lost as f64;
        libm::round(window.max(before * beta / 3.0)).max(2.0) as u32
    }
}

impl FlowStart for RapidStart {
    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> AfterAck {
        self.told = Told::by(ack);
        if let Some(mut recovery) = self.recovery {
            let over = recovery.on_ack(ack);
            self.recovery = Some(recovery);
            // Once over, nothing outstanding at its beginning is left to count.
            window.cwnd = self.recovering_window(&recovery).min(window.cwnd);
            if over {
                return AfterAck::Done(Exit {
                    reason: self.reason,
                    cwnd: window.cwnd,
                    ssthresh: window.cwnd,
                    rate: None,
                });
            }
            return AfterAck::Continue;
        }
        if let Some(rtt) = ack.rtt
            && ack.min_rtt >= self.config.min_rtt
        {
            let floor = self.floor.add(ack.now, rtt, ack.min_rtt);
            self.growth = if floor <= self.config.bound(ack.min_rtt) { self.config.growth } else { 1 };
        } else if ack.min_rtt < self.config.min_rtt {
            self.growth = 1;
        }
        AfterAck::Continue
    }

    #[inline]
    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        if self.recovery.is_some() {
            return 0;
        }
        let left = window.slow_start(ack.acked.saturating_mul(self.growth));
        left / self.growth.max(1)
    }

    fn on_signal(&mut self, now: Time, signal: Signal, window: &mut Window) -> Response {
        match signal {
            Signal::Timeout => return Response::Leave,
            _ if self.recovery.is_some() => {}
            Signal::Loss | Signal::Marks => {
                self.reason = if signal == Signal::Loss { ExitReason::Loss } else { ExitReason::Marks };
                self.before = window.cwnd;
                let recovery = FirstRecovery::new(now, &self.told);
                self.recovery = Some(recovery);
                window.cwnd = self.recovering_window(&recovery).min(window.cwnd);
            }
        }
        Response::Ignore
    }

    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        if let Some(rate) = self.rate {
            self.spacing.book(sent, rate);
        }
    }

    fn departure(&mut self, now: Time, next: &Next, window: &Window) -> Option<Departure> {
        if self.recovery.is_some() || next.srtt.is_zero() {
            self.rate = None;
            return Some(Departure::Now);
        }
        let times = if next.number < u64::from(self.initial_window) { 1 } else { u64::from(self.growth) + 1 };
        let bytes = u64::from(window.cwnd).saturating_mul(self.mss).saturating_mul(times);
        self.rate = Some(Rate::of(Bytes::new(bytes), next.srtt));
        Some(self.spacing.departure(now))
    }

    fn departure_rate(&self) -> Option<Rate> {
        self.rate
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.mss = u64::from(mss.bytes());
        self.initial_window = mss.packets(self.initial_window);
        self.before = mss.packets(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_control::testing::{ack, next, sent};
    use proptest::prelude::*;

    fn ms(n: u64) -> Span {
        Span::from_millis(n)
    }

    fn start(config: RapidStartConfig) -> RapidStart {
        RapidStart::new(&config, 10, 1448)
    }

    /// The window at the end of the first recovery, whose repairs arrive.
    fn recovered(config: RapidStartConfig, signal: Signal, before: u32, delivered: u32, lost: u32) -> u32 {
        let (mut start, mut window) = (start(config), Window::new(before));
        let first = Ack { lost, next: 1000, ..ack(1) };
        start.on_ack(&first, &mut window);
        assert_eq!(start.on_signal(Time::ZERO, signal, &mut window), Response::Ignore);
        let last = Ack { una: 1000, next: 2000, ..ack(delivered - 1 + lost) };
        let AfterAck::Done(exit) = start.on_ack(&last, &mut window) else { panic!("the recovery is over") };
        assert_eq!((exit.cwnd, exit.ssthresh), (window.cwnd, window.cwnd));
        window.cwnd
    }

    #[test]
    fn the_first_recovery_leaves_beta_times_what_got_through() {
        for config in [RapidStartConfig::default(), RapidStartConfig::quicly()] {
            assert_eq!(recovered(config, Signal::Loss, 300, 100, 200), 70);
            assert_eq!(recovered(config, Signal::Marks, 100, 100, 0), 70);
            // Repairs were lost, too: more losses than packets were outstanding leave a third of
            // beta.
            assert_eq!(recovered(config, Signal::Loss, 100, 20, 300), 23);
        }
    }

    #[test]
    fn losses_that_a_timer_found_count_and_those_before_the_recovery_do_not() {
        let (mut start, mut window) = (start(RapidStartConfig::default()), Window::new(100));
        let earlier = Ack { next: 1000, lost: 3, ..ack(5) };
        start.on_ack(&earlier, &mut window);
        // Nothing came; a packet was late.
        start.on_signal(Time::ZERO + ms(9), Signal::Loss, &mut window);
        let last = Ack { una: 1000, next: 2000, lost_meanwhile: 40, lost: 10, ..ack(100) };
        start.on_ack(&last, &mut window);
        assert_eq!(window.cwnd, 35);
    }

    #[test]
    fn without_a_queue_the_window_triples() {
        let (mut start, mut window) = (start(RapidStartConfig::default()), Window::new(10));
        for expected in [30, 90, 270, 810] {
            for _ in 0..window.cwnd {
                let ack = Ack { rtt: Some(ms(50)), min_rtt: ms(50), ..ack(1) };
                start.on_ack(&ack, &mut window);
                start.grow(&ack, &mut window);
            }
            assert_eq!(window.cwnd, expected);
        }
    }

    #[test]
    fn the_bounds_of_the_draft_and_of_quicly() {
        let bound = |config: RapidStartConfig, rtt| config.bound(ms(rtt)).as_millis_f64();
        for (rtt, draft, quicly) in [(10, 11.0, 14.0), (20, 22.0, 24.0), (40, 44.0, 44.0), (100, 104.0, 109.375)] {
            assert!((bound(RapidStartConfig::default(), rtt) - draft).abs() < 1e-6);
            assert!((bound(RapidStartConfig::quicly(), rtt) - quicly).abs() < 1e-6);
        }
    }

    #[test]
    fn tripling_fills_417_packets_in_four_rounds_and_from_20_in_three() {
        let rounds = |growth: u32, initial: u32| {
            let mut window = initial;
            (0..).take_while(|_| (window < 417, window *= growth + 1).0).count()
        };
        assert_eq!([rounds(1, 10), rounds(2, 10), rounds(2, 20)], [6, 4, 3]);
    }

    #[test]
    fn a_queue_makes_it_double_until_the_floor_of_a_round_trip_is_low_again() {
        let (mut start, mut window) = (start(RapidStartConfig::default()), Window::new(10));
        let mut now = Time::ZERO;
        let mut step = |start: &mut RapidStart, rtt: u64| {
            now += ms(10);
            start.on_ack(&Ack { now, rtt: Some(ms(rtt)), min_rtt: ms(50), ..ack(1) }, &mut window);
            start.is_rapid()
        };
        assert!(step(&mut start, 50));
        let rapid: Vec<bool> = (0..8).map(|_| step(&mut start, 60)).collect();
        assert!(rapid[0] && !rapid[7], "old samples count for a round trip: {rapid:?}");
        assert!(step(&mut start, 54), "below 50 + 4 ms and 1.1 * 50 ms");
    }

    #[test]
    fn the_initial_window_leaves_evenly_over_a_round_trip() {
        let (mut start, window) = (start(RapidStartConfig::default()), Window::new(10));
        let mut at = Time::ZERO;
        for number in 0..10 {
            let next = Next { srtt: ms(50), ..next(number) };
            let expected = if at == Time::ZERO { Departure::Now } else { Departure::At(at) };
            assert_eq!(start.departure(Time::ZERO, &next, &window), Some(expected));
            start.on_sent(&sent(at, number));
            at += ms(5);
        }
    }

    #[test]
    fn a_timeout_is_left_to_the_avoidance() {
        let (mut start, mut window) = (start(RapidStartConfig::default()), Window::new(10));
        assert_eq!(start.on_signal(Time::ZERO, Signal::Timeout, &mut window), Response::Leave);
    }

    #[test]
    fn constants_out_of_range_are_refused_and_harmless() {
        assert_eq!(RapidStartConfig::default().validate(), Ok(()));
        assert_eq!(RapidStartConfig::quicly().validate(), Ok(()));
        let config = RapidStartConfig {
            beta: f64::NAN,
            delay_ratio: -1.0,
            growth: 0,
            recovery_share: 7.0,
            ..RapidStartConfig::default()
        };
        assert_eq!(config.validate().map_err(|error| error.field), Err("growth"));
        let used = config.in_range();
        assert_eq!((used.growth, used.delay_ratio, used.recovery_share), (1, 1.0, 1.0));
        assert_eq!(RapidStartConfig { beta: 0.7, ..used }.validate(), Ok(()), "{used:?}");
        assert!(recovered(config, Signal::Loss, 300, 100, 200) >= 2);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn in_recovery_the_window_only_shrinks_and_ends_at_beta_of_what_got_through(
            before in 20u32..10_000,
            lost_share in 0.0..0.6,
        ) {
            let lost = (f64::from(before) * lost_share) as u32 + 1;
            let delivered = before - lost;
            let window = recovered(RapidStartConfig::default(), Signal::Loss, before, delivered, lost);
            let floor = f64::from(before) * 0.7 / 3.0;
            let expected = (0.7 * f64::from(delivered)).max(floor).max(2.0);
            prop_assert!((f64::from(window) - expected).abs() <= 1.0, "{window} against {expected}");
        }
    }
}
