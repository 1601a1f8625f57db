//! HyStart as Linux CUBIC has it (`hystart_update` in 6.1.192; Ha and Rhee, "Taming the elephants",
//! 2011).
//!
//! Two detectors end slow start before a loss does: the *ACK train* (ACKs in close succession for
//! longer than half the smallest RTT mean that the packets in flight fill the pipe) and the *delay
//! increase* (the RTT of a round rose by an eighth). What ns-3 calls HyStart is another algorithm.

use flowstart_control::InvalidConfig;
use flowstart_control::{
    Ack, AfterAck, Exit, ExitReason, FlowStart, LastRtt, NewMss, Restart, Window, stack_pacing_rate,
};
use flowstart_units::{Bytes, Rate, Span, Time};

use crate::StartConstants;

/// Constants of HyStart; the defaults are those of Linux 6.1.192 (`tcp_cubic.c`).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct HystartConfig {
    /// The ACK train ends slow start. Default true (`hystart_detect`, bit 1).
    pub train_detector: bool,
    /// An increase of delay ends slow start. Default true (`hystart_detect`, bit 2).
    pub delay_detector: bool,
    /// No detection below this window, in packets; default 16 (`hystart_low_window`).
    pub low_window: u32,
    /// ACKs at most this far apart belong to a train; default 2 ms (`hystart_ack_delta_us`).
    pub ack_delta: Span,
    /// Upper bound of what a train may last longer than the smallest RTT, for aggregation; default
    /// 1 ms (`hystart_ack_delay`).
    pub max_cushion: Span,
    /// Bytes the sender may release at once: the cushion is the time of `cushion_bursts` of them at
    /// the pacing rate; default 65 536 bytes (`GSO_MAX_SIZE`).
    pub gso_max: Bytes,
    /// How many such bursts; default 4 (`hystart_ack_delay`).
    pub cushion_bursts: u64,
    /// RTT samples of a round before its delay is judged; the next sample is the first to be
    /// judged. Default 8 (`HYSTART_MIN_SAMPLES`).
    pub min_samples: u32,
    /// The delay threshold is the smallest RTT divided by this; default 8, at least 1
    /// (`HYSTART_DELAY_THRESH`).
    pub delay_divisor: u64,
    /// Lower bound of the delay threshold; default 4 ms (`HYSTART_DELAY_MIN`).
    pub min_delay_threshold: Span,
    /// Upper bound of the delay threshold; default 16 ms (`HYSTART_DELAY_MAX`).
    pub max_delay_threshold: Span,
    /// Whether the socket counts as paced, which doubles the allowed length of a train. Default: as
    /// the controller's pacing says.
    pub paced: Option<bool>,
    /// What RTTs are measured in; default 0, exactly (Linux: microseconds). ns-3 has timestamps in
    /// milliseconds.
    pub rtt_tick: Span,
    /// The ACK that ends a round is judged in it. Default false, in the next one (Linux). ns-3
    /// begins the next round after it has judged the ACK.
    pub round_ends_late: bool,
}

impl Default for HystartConfig {
    fn default() -> Self {
        Self {
            train_detector: true,
            delay_detector: true,
            low_window: 16,
            ack_delta: Span::from_millis(2),
            max_cushion: Span::from_millis(1),
            gso_max: Bytes::new(65_536),
            cushion_bursts: 4,
            min_samples: 8,
            delay_divisor: 8,
            min_delay_threshold: Span::from_millis(4),
            max_delay_threshold: Span::from_millis(16),
            paced: None,
            rtt_tick: Span::ZERO,
            round_ends_late: false,
        }
    }
}

impl HystartConfig {
    /// HyStart as ns-3 has it (`TcpCubic`, 2026): a train must last for the whole smallest RTT, the
    /// RTT must rise to twice the smallest, RTTs are in milliseconds, and the ACK that ends a round
    /// belongs to it.
    #[must_use]
    pub fn ns3() -> Self {
        Self {
            max_cushion: Span::ZERO,
            delay_divisor: 1,
            max_delay_threshold: Span::from_secs(1),
            paced: Some(true),
            rtt_tick: Span::from_millis(1),
            round_ends_late: true,
            ..Self::default()
        }
    }

    /// An RTT that ends now, as the clock of timestamps has it.
    fn measured(&self, now: Time, rtt: Span) -> Span {
        let tick = self.rtt_tick.as_nanos();
        let count = |time: u64| time.checked_div(tick).map_or(time, |count| count * tick);
        let began = now.as_nanos().saturating_sub(rtt.as_nanos());
        Span::from_nanos(count(now.as_nanos()) - count(began))
    }

    /// How much the RTT of a round may exceed the smallest one.
    fn delay_threshold(&self, delay_min: Span) -> Span {
        (delay_min / self.delay_divisor).min(self.max_delay_threshold).max(self.min_delay_threshold)
    }

    /// True if what ends slow start is limited to a smaller share of this RTT than usual. A burst
    /// that makes that much of a queue by itself may be a small part of what the path holds; where
    /// it is the usual share it is a good part.
    fn is_long(&self, rtt: Span) -> bool {
        rtt / self.delay_divisor > self.max_delay_threshold
    }

    /// What aggregation at the sender may add to a train; zero while no pacing rate is known
    /// (`hystart_ack_delay`).
    fn cushion(&self, rate: Option<Rate>) -> Span {
        let burst = Bytes::new(self.gso_max.get().saturating_mul(self.cushion_bursts));
        rate.map_or(Span::ZERO, |rate| rate.transmission_time(burst).min(self.max_cushion))
    }
}

impl StartConstants for HystartConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        InvalidConfig::unless(self.delay_divisor >= 1, "delay_divisor", "at least 1")?;
        InvalidConfig::unless(
            self.min_delay_threshold <= self.max_delay_threshold,
            "min_delay_threshold",
            "at most max_delay_threshold",
        )
    }
}

/// HyStart in operation. [`HystartConfig`] says where its rules come from.
#[derive(Clone, Copy, Debug)]
pub struct Hystart {
    config: HystartConfig,
    paced: bool,
    mss: u32,
    /// Time over which what is acknowledged now had been spread; zero usually.
    spread: Span,
    /// A detector fired. Only a timeout forgets that, as in Linux.
    found: bool,
    /// Smallest RTT seen; [`Span::MAX`] before the first sample.
    delay_min: Span,
    round_start: Time,
    last_ack: Time,
    /// The round ends when a byte beyond this one is acknowledged.
    round_end: u64,
    /// Smallest RTT of this round.
    round_rtt: Span,
    samples: u32,
    /// Inputs of the pacing rate as the stack computed it at the end of the previous ACK.
    prior_srtt: Span,
    prior_packets_out: u32,
    prior_next: u64,
}

impl Hystart {
    /// HyStart for a flow with segments of `mss` payload bytes, `paced` or not (unless the config
    /// says otherwise).
    #[must_use]
    pub fn new(config: &HystartConfig, paced: bool, mss: u32) -> Self {
        Self {
            config: *config,
            paced: config.paced.unwrap_or(paced),
            mss,
            spread: Span::ZERO,
            found: false,
            delay_min: Span::MAX,
            round_start: Time::ZERO,
            last_ack: Time::ZERO,
            round_end: 0,
            round_rtt: Span::MAX,
            samples: 0,
            prior_srtt: Span::ZERO,
            prior_packets_out: 0,
            prior_next: 0,
        }
    }

    fn begin_round(&mut self, now: Time, next: u64) {
        self.round_start = now;
        self.last_ack = now;
        self.round_end = next;
        self.round_rtt = Span::MAX;
        self.samples = 0;
    }

    /// The pacing rate the stack computed after the previous ACK, enforced or not.
    fn stack_rate(&self, window: &Window) -> Option<Rate> {
        stack_pacing_rate(self.mss, window, self.prior_packets_out, self.prior_srtt)
    }

    /// Half of `limit` unless the flow is paced.
    fn allowed(&self, limit: Span) -> Span {
        if self.paced { limit } else { limit / 2 }
    }

    /// Longest train that does not end slow start.
    pub(super) fn train_limit(&self, window: &Window) -> Span {
        self.allowed(self.delay_min + self.config.cushion(self.stack_rate(window))) + self.spread
    }

    /// True if a train of this length ends slow start. The cushion takes a division, so it is left
    /// out while it cannot matter.
    fn is_too_long(&self, train: Span, window: &Window) -> bool {
        train > self.allowed(self.delay_min) && train > self.train_limit(window)
    }

    /// The packets of the round trip before this start took over did not leave in a burst but over
    /// `spread`: their ACKs make a train that long whatever the path is, and so do packets that
    /// those let go, from then on.
    pub(super) fn has_been_spread(&mut self, spread: Span) {
        self.spread = spread;
    }

    /// Before this start took over the smallest RTT was this.
    pub(super) fn has_seen(&mut self, rtt: Span) {
        self.delay_min = self.delay_min.min(rtt);
    }

    /// There was a timeout before this start took over: RTTs from before it are forgotten.
    pub(super) fn has_timed_out(&mut self) {
        self.delay_min = Span::MAX;
    }

    /// True if this RTT is one that ends slow start.
    pub(super) fn is_late(&self, rtt: Span) -> bool {
        rtt > self.delay_min + self.config.delay_threshold(self.delay_min)
    }

    /// An ACK while others are in charge. On a long way round trips are counted from the first one
    /// on, as if this start were: a round begins with the ACK of the first packet of a burst. RTTs
    /// of those behind it are longer, by the queue of the burst itself, and by a turn on links that
    /// serve in turns: nine of them would end the start.
    pub(super) fn has_passed(&mut self, ack: &Ack) {
        if !self.config.is_long(ack.min_rtt) {
            return;
        }
        if ack.una > self.round_end {
            self.begin_round(ack.now, ack.next);
        }
        self.round_rtt = ack.rtt.map_or(self.round_rtt, |rtt| rtt.min(self.round_rtt));
    }

    /// What ends slow start was found by others.
    pub(super) fn has_found(&mut self) {
        self.found = true;
    }

    /// Takes in one RTT sample (`hystart_update`).
    fn update(&mut self, ack: &Ack, rtt: Span, window: &Window) -> Option<ExitReason> {
        let ends = ack.una > self.round_end;
        if self.config.round_ends_late {
            let verdict = self.judge(ack, rtt, window);
            if ends {
                self.begin_round(ack.now, ack.next);
            }
            return verdict;
        }
        if ends {
            self.begin_round(ack.now, ack.next);
        }
        self.judge(ack, rtt, window)
    }

    /// What the detectors say to one ACK of the round.
    #[inline]
    fn judge(&mut self, ack: &Ack, rtt: Span, window: &Window) -> Option<ExitReason> {
        if window.cwnd < self.config.low_window {
            return None;
        }
        if self.config.train_detector && ack.now.since(self.last_ack) <= self.config.ack_delta {
            // A longer gap leaves last_ack where it is, so that it ends train detection for the
            // rest of the round.
            self.last_ack = ack.now;
            if self.is_too_long(ack.now.since(self.round_start), window) {
                return Some(ExitReason::AckTrain);
            }
        }
        if self.config.delay_detector {
            self.round_rtt = self.round_rtt.min(rtt);
            if self.samples < self.config.min_samples {
                self.samples += 1;
            } else if self.round_rtt > self.delay_min + self.config.delay_threshold(self.delay_min) {
                return Some(ExitReason::DelayIncrease);
            }
        }
        None
    }
}

impl FlowStart for Hystart {
    #[inline]
    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> AfterAck {
        let mut verdict = AfterAck::Continue;
        if let Some(rtt) = ack.rtt {
            // Linux takes an RTT of zero as one microsecond.
            let rtt = if self.config.rtt_tick.is_zero() { rtt } else { self.config.measured(ack.now, rtt) };
            let rtt = if rtt.is_zero() { Span::from_micros(1) } else { rtt };
            self.delay_min = self.delay_min.min(rtt);
            if !self.found
                && window.in_slow_start()
                && let Some(reason) = self.update(ack, rtt, window)
            {
                self.found = true;
                verdict = AfterAck::Done(Exit { reason, cwnd: window.cwnd, ssthresh: window.cwnd, rate: None });
            }
        }
        self.prior_srtt = ack.srtt;
        self.prior_packets_out = ack.packets_out;
        self.prior_next = ack.next;
        verdict
    }

    #[inline]
    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        window.slow_start(ack.acked)
    }

    /// Linux keeps HyStart armed until a detector fires, so that it watches every slow start before
    /// that, and a timeout arms it anew (`bictcp_state`). Unlike in Linux, RTTs of the congestion
    /// avoidance in between are not seen.
    fn on_restart(&mut self, now: Time, restart: Restart, _window: &Window, _last: LastRtt) -> bool {
        if restart == Restart::Timeout {
            self.found = false;
            self.spread = Span::ZERO;
            self.delay_min = Span::MAX;
            self.begin_round(now, self.prior_next);
        }
        !self.found
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.mss = mss.bytes();
        self.prior_packets_out = mss.packets(self.prior_packets_out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_control::testing::ack;

    const MSS: u32 = 1448;

    fn ms(n: u64) -> Span {
        Span::from_millis(n)
    }

    /// A start whose first round began at time zero with the given smallest RTT.
    fn started(config: HystartConfig, paced: bool, delay_min: Span) -> Hystart {
        let mut start = Hystart::new(&config, paced, MSS);
        start.delay_min = delay_min;
        start.prior_srtt = delay_min;
        start.begin_round(Time::ZERO, u64::MAX);
        start
    }

    fn sample(start: &mut Hystart, now: Time, rtt: Span, cwnd: u32) -> Option<ExitReason> {
        let mut window = Window::new(cwnd);
        let ack = Ack { now, rtt: Some(rtt), srtt: rtt, una: 1, next: u64::MAX, ..ack(1) };
        match start.on_ack(&ack, &mut window) {
            AfterAck::Continue => None,
            AfterAck::Done(exit) => {
                assert_eq!((exit.cwnd, exit.ssthresh), (cwnd, cwnd));
                Some(exit.reason)
            }
        }
    }

    #[test]
    fn the_delay_limit_is_an_eighth_above_the_smallest_rtt_within_4_and_16_ms() {
        let config = HystartConfig::default();
        let limits =
            [(5, 9_000), (20, 24_000), (32, 36_000), (50, 56_250), (100, 112_500), (128, 144_000), (200, 216_000)];
        for (min, limit) in limits {
            assert_eq!(ms(min) + config.delay_threshold(ms(min)), Span::from_micros(limit), "min {min} ms");
        }
    }

    #[test]
    fn the_train_limit_is_halved_unless_the_flow_is_paced() {
        let window = Window::new(20);
        let unpaced = started(HystartConfig::default(), false, ms(50));
        assert_eq!(unpaced.train_limit(&window), Span::from_micros(25_500));
        let paced = started(HystartConfig::default(), true, ms(50));
        assert_eq!(paced.train_limit(&window), Span::from_micros(51_000));
        // 5.8 GB/s
        assert_eq!(HystartConfig::default().cushion(Some(Rate::from_bps(46_400_000_000))).as_micros(), 45);
        assert_eq!(HystartConfig::default().cushion(None), Span::ZERO);
    }

    #[test]
    fn the_config_can_say_that_the_flow_counts_as_paced() {
        let config = HystartConfig { paced: Some(true), ..HystartConfig::default() };
        let start = started(config, false, ms(50));
        assert_eq!(start.train_limit(&Window::new(20)), Span::from_micros(51_000));
    }

    #[test]
    fn as_in_ns3_the_ack_after_a_round_of_19_ms_completes_a_train_of_a_round_trip_of_20() {
        // 160 ACKs 120 us apart, then the first of the next round, a round trip after the first.
        let ends_with = |config: HystartConfig| {
            let mut start = started(config, false, ms(20));
            start.round_end = 160;
            let rtt = Span::from_micros(20_130);
            let sample = |start: &mut Hystart, number: u64, at: Span| {
                let now = Time::ZERO + ms(100) + at;
                let ack = Ack { now, rtt: Some(rtt), srtt: rtt, una: number, next: 320, ..ack(1) };
                start.on_ack(&ack, &mut Window::new(160 + number as u32)) != AfterAck::Continue
            };
            start.begin_round(Time::ZERO + ms(100), 160);
            assert!(!(1..=160).any(|n| sample(&mut start, n, Span::from_micros(120) * (n - 1))));
            sample(&mut start, 161, rtt)
        };
        assert!(ends_with(HystartConfig::ns3()));
        assert!(!ends_with(HystartConfig { round_ends_late: false, ..HystartConfig::ns3() }));
        assert!(!ends_with(HystartConfig { ack_delta: Span::from_micros(900), ..HystartConfig::ns3() }));
    }

    #[test]
    fn rtts_are_as_coarse_as_the_clock_of_timestamps() {
        let config = HystartConfig { rtt_tick: ms(1), ..HystartConfig::default() };
        let at = |micros| Time::ZERO + Span::from_micros(micros);
        assert_eq!(config.measured(at(120_300), Span::from_micros(20_200)), ms(20));
        assert_eq!(config.measured(at(120_100), Span::from_micros(20_200)), ms(21));
        let exact = Span::from_micros(20_200);
        assert_eq!(HystartConfig::default().measured(at(120_100), exact), exact);
    }

    #[test]
    fn one_gap_ends_train_detection_for_the_round() {
        for (gap, exits) in [(Span::from_micros(1_000), true), (Span::from_micros(2_100), false)] {
            let mut start = started(HystartConfig::default(), false, ms(50));
            let mut now = Time::ZERO;
            let mut reason = None;
            while now < Time::ZERO + ms(48) && reason.is_none() {
                now += if now == Time::ZERO + ms(20) { gap } else { ms(1) };
                reason = sample(&mut start, now, ms(50), 20);
            }
            assert_eq!(reason, exits.then_some(ExitReason::AckTrain), "gap {} us", gap.as_micros());
            if exits {
                assert_eq!(now, Time::ZERO + ms(26), "first ACK beyond 25.5 ms");
            }
        }
    }

    #[test]
    fn the_ninth_sample_of_a_round_is_the_first_to_be_judged() {
        let mut start = started(HystartConfig::default(), false, ms(20));
        let far = Time::ZERO + ms(100);
        for _ in 0..8 {
            assert_eq!(sample(&mut start, far, ms(30), 20), None);
        }
        assert_eq!(sample(&mut start, far, ms(30), 20), Some(ExitReason::DelayIncrease));
    }

    #[test]
    fn one_sample_at_the_limit_keeps_the_round_quiet() {
        for quiet in 0..9 {
            let mut start = started(HystartConfig::default(), false, ms(20));
            for i in 0..40 {
                let rtt = if i == quiet { ms(24) } else { ms(30) };
                assert_eq!(sample(&mut start, Time::ZERO + ms(100), rtt, 20), None, "sample {i}, quiet {quiet}");
            }
        }
    }

    /// Packets leave in bursts of 30, the last 20 of which are later by 24 ms. Others are in charge
    /// for the first 15 ACKs: a round that begins with the 16th, or the one after it, judges nine
    /// of the late ones first. On a short way it ends the start, as 16 ms are an eighth of 128.
    #[test]
    fn rounds_of_a_long_way_are_those_that_began_under_others() {
        for (least, ends) in [(ms(600), None), (ms(129), None), (ms(127), Some(ExitReason::DelayIncrease))] {
            let mut start = Hystart::new(&HystartConfig::default(), false, MSS);
            start.has_seen(least);
            let mut window = Window::new(20);
            let end = (1..=120_u64).find_map(|una| {
                let (burst, place) = ((una - 1) / 30, (una - 1) % 30);
                let rtt = if place < 10 { least } else { least + ms(24) };
                let now = Time::ZERO + least * burst + ms(3) * place;
                let ack = Ack { now, rtt: Some(rtt), srtt: rtt, min_rtt: least, una, next: una + 29, ..ack(1) };
                if una <= 15 {
                    start.has_passed(&ack);
                    return None;
                }
                match start.on_ack(&ack, &mut window) {
                    AfterAck::Continue => None,
                    AfterAck::Done(exit) => Some(exit.reason),
                }
            });
            assert_eq!(end, ends, "{least}");
        }
    }

    #[test]
    fn nothing_is_detected_below_the_low_window_but_rounds_still_begin() {
        let mut start = Hystart::new(&HystartConfig::default(), false, MSS);
        let mut window = Window::new(15);
        for i in 1..100 {
            let now = Time::ZERO + ms(10 * i);
            let ack = Ack { now, rtt: Some(ms(10 * i)), srtt: ms(10), una: i * 100, next: i * 100 + 50, ..ack(1) };
            assert_eq!(start.on_ack(&ack, &mut window), AfterAck::Continue);
            assert_eq!(start.round_start, now);
        }
    }

    #[test]
    fn the_low_window_itself_is_watched() {
        // hystart_low_window is 16: cwnd >= 16 is watched.
        for (cwnd, found) in [(15, None), (16, Some(ExitReason::AckTrain))] {
            let mut start = started(HystartConfig::default(), false, ms(20));
            let mut reason = None;
            for i in 1..30 {
                reason = reason.or(sample(&mut start, Time::ZERO + ms(i), ms(20), cwnd));
            }
            assert_eq!(reason, found, "window {cwnd}");
        }
    }

    #[test]
    fn each_detector_can_be_switched_off() {
        let without_delay = HystartConfig { delay_detector: false, ..HystartConfig::default() };
        let mut start = started(without_delay, false, ms(20));
        assert!((0..50).all(|_| sample(&mut start, Time::ZERO + ms(100), ms(90), 20).is_none()));
        let without_train = HystartConfig { train_detector: false, ..HystartConfig::default() };
        let mut start = started(without_train, false, ms(20));
        assert!((1..200).all(|i| sample(&mut start, Time::ZERO + ms(i), ms(20), 20).is_none()));
    }

    #[test]
    fn after_a_detection_only_a_timeout_arms_it_again() {
        let mut start = started(HystartConfig::default(), false, ms(20));
        let last = LastRtt { srtt: ms(20), min_rtt: ms(20) };
        let restart = |start: &mut Hystart, why| start.on_restart(Time::ZERO, why, &Window::new(10), last);
        assert!(restart(&mut start, Restart::Idle), "nothing found yet");
        start.found = true;
        assert!(!restart(&mut start, Restart::Idle));
        assert!(!restart(&mut start, Restart::Undo));
        assert!(restart(&mut start, Restart::Timeout));
        assert_eq!(start.delay_min, Span::MAX);
    }
}
