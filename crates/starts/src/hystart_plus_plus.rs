//! HyStart++ (RFC 9406): slow start that slows down when the RTT rises, and goes on if the rise was
//! a false alarm.

use flowstart_control::InvalidConfig;
use flowstart_control::{Ack, AfterAck, Exit, ExitReason, FlowStart, NewMss, Window};
use flowstart_units::Span;

use crate::StartConstants;

/// Constants of HyStart++; the defaults are those of RFC 9406 section 4.3.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct HystartPlusPlusConfig {
    /// Lower bound of the RTT threshold; default 4 ms (`MIN_RTT_THRESH`).
    pub min_rtt_threshold: Span,
    /// Upper bound of the RTT threshold; default 16 ms (`MAX_RTT_THRESH`).
    pub max_rtt_threshold: Span,
    /// The threshold is the last round's smallest RTT divided by this; default 8, at least 1
    /// (`MIN_RTT_DIVISOR`).
    pub rtt_divisor: u64,
    /// RTT samples of a round before it is judged; default 8 (`N_RTT_SAMPLE`).
    pub rtt_samples: u32,
    /// Conservative slow start grows by this factor less; default 4, at least 2
    /// (`CSS_GROWTH_DIVISOR`).
    pub css_growth_divisor: u32,
    /// Rounds of conservative slow start before congestion avoidance, the one it began in included;
    /// default 5 (`CSS_ROUNDS`).
    pub css_rounds: u32,
    /// Most packets one ACK may count for if the flow is not paced; default 8 (`L`). A paced flow
    /// has no limit.
    pub unpaced_limit: u32,
    /// Whether the flow counts as paced. Default: as the controller's pacing says.
    pub paced: Option<bool>,
}

impl Default for HystartPlusPlusConfig {
    fn default() -> Self {
        Self {
            min_rtt_threshold: Span::from_millis(4),
            max_rtt_threshold: Span::from_millis(16),
            rtt_divisor: 8,
            rtt_samples: 8,
            css_growth_divisor: 4,
            css_rounds: 5,
            unpaced_limit: 8,
            paced: None,
        }
    }
}

impl HystartPlusPlusConfig {
    /// How much the smallest RTT of a round may exceed that of the last round.
    fn threshold(&self, last: Span) -> Span {
        (last / self.rtt_divisor).min(self.max_rtt_threshold).max(self.min_rtt_threshold)
    }
}

impl StartConstants for HystartPlusPlusConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        InvalidConfig::unless(self.rtt_divisor >= 1, "rtt_divisor", "at least 1")?;
        InvalidConfig::unless(self.css_growth_divisor >= 2, "css_growth_divisor", "at least 2 (RFC 9406 section 4.3)")?;
        InvalidConfig::unless(self.css_rounds >= 1, "css_rounds", "at least 1")?;
        InvalidConfig::unless(self.unpaced_limit >= 1, "unpaced_limit", "at least 1")?;
        InvalidConfig::unless(
            self.min_rtt_threshold <= self.max_rtt_threshold,
            "min_rtt_threshold",
            "at most max_rtt_threshold",
        )
    }
}

/// Where HyStart++ is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStartPhase {
    /// Standard slow start.
    SlowStart,
    /// Conservative slow start: the RTT rose, the window grows slower.
    Conservative {
        /// Smallest RTT of the round in which the rise was seen; a smaller one later means a false
        /// alarm.
        baseline: Span,
        /// Rounds completed in this phase, the one it began in included.
        rounds: u32,
    },
}

/// HyStart++ in operation.
#[derive(Clone, Copy, Debug)]
pub struct HystartPlusPlus {
    config: HystartPlusPlusConfig,
    /// Most bytes one ACK may count for.
    limit: u64,
    mss: u64,
    phase: SlowStartPhase,
    last_round_min: Span,
    round_min: Span,
    samples: u32,
    /// The round ends when everything before this byte is acknowledged (RFC 9406: "when windowEnd
    /// is ACKed"). It begins as SND.NXT (section 4.2), before anything was sent: the first ACK is a
    /// round of its own.
    window_end: u64,
    /// Growth below a whole packet, in bytes times the growth divisor, so that conservative growth
    /// loses no fraction.
    fraction: u64,
}

impl HystartPlusPlus {
    /// HyStart++ for a flow with segments of `mss` payload bytes, `paced` or not (unless the config
    /// says otherwise).
    #[must_use]
    pub fn new(config: &HystartPlusPlusConfig, paced: bool, mss: u32) -> Self {
        let mss = u64::from(mss.max(1));
        let limit = if config.paced.unwrap_or(paced) { u64::MAX } else { u64::from(config.unpaced_limit.max(1)) * mss };
        Self {
            config: HystartPlusPlusConfig { css_growth_divisor: config.css_growth_divisor.max(1), ..*config },
            limit,
            mss,
            phase: SlowStartPhase::SlowStart,
            last_round_min: Span::MAX,
            round_min: Span::MAX,
            samples: 0,
            window_end: 0,
            fraction: 0,
        }
    }

    /// Where it is now.
    #[must_use]
    pub fn phase(&self) -> SlowStartPhase {
        self.phase
    }

    /// Ends the round if everything sent before it began was acknowledged; true if that ends
    /// conservative slow start too.
    fn end_round(&mut self, ack: &Ack) -> bool {
        if ack.una < self.window_end {
            return false;
        }
        self.window_end = ack.next;
        self.last_round_min = self.round_min;
        self.round_min = Span::MAX;
        self.samples = 0;
        match &mut self.phase {
            SlowStartPhase::SlowStart => false,
            SlowStartPhase::Conservative { rounds, .. } => {
                *rounds += 1;
                *rounds >= self.config.css_rounds
            }
        }
    }

    fn judge(&mut self) {
        if self.samples < self.config.rtt_samples {
            return;
        }
        match self.phase {
            SlowStartPhase::SlowStart => {
                let comparable = self.last_round_min != Span::MAX && self.round_min != Span::MAX;
                if comparable && self.round_min >= self.last_round_min + self.config.threshold(self.last_round_min) {
                    self.phase = SlowStartPhase::Conservative { baseline: self.round_min, rounds: 0 };
                }
            }
            SlowStartPhase::Conservative { baseline, .. } => {
                if self.round_min < baseline {
                    self.phase = SlowStartPhase::SlowStart;
                }
            }
        }
    }
}

impl FlowStart for HystartPlusPlus {
    // RFC 9406 grows the window before it judges the round; here the judgement comes first, as
    // Linux orders an ACK. The phase changes one ACK earlier: less than one packet of window. The
    // ACK that ends a round still counts to it, as its packet was sent in it.
    #[inline]
    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> AfterAck {
        if let Some(rtt) = ack.rtt {
            self.round_min = self.round_min.min(rtt);
            self.samples = self.samples.saturating_add(1);
            self.judge();
        }
        if self.end_round(ack) {
            let cwnd = window.cwnd;
            return AfterAck::Done(Exit { reason: ExitReason::DelayIncrease, cwnd, ssthresh: cwnd, rate: None });
        }
        AfterAck::Continue
    }

    #[inline]
    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        if !window.in_slow_start() {
            return ack.acked;
        }
        let divisor = u64::from(self.config.css_growth_divisor);
        let bytes = ack.acked_bytes.min(self.limit);
        let weight = if self.phase == SlowStartPhase::SlowStart { divisor } else { 1 };
        self.fraction = self.fraction.saturating_add(bytes.saturating_mul(weight));
        let packet = self.mss * divisor;
        let packets = self.fraction / packet;
        self.fraction -= packets * packet;
        let room = window.ssthresh - window.cwnd;
        window.cwnd += u32::try_from(packets).unwrap_or(u32::MAX).min(room);
        0
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.mss = u64::from(mss.bytes());
        if self.limit != u64::MAX {
            self.limit = u64::from(self.config.unpaced_limit.max(1)) * self.mss;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_control::testing::ack;

    const MSS: u32 = 1448;

    fn start(paced: bool) -> HystartPlusPlus {
        HystartPlusPlus::new(&HystartPlusPlusConfig::default(), paced, MSS)
    }

    fn conservative(paced: bool) -> HystartPlusPlus {
        let phase = SlowStartPhase::Conservative { baseline: Span::from_millis(50), rounds: 0 };
        HystartPlusPlus { phase, ..start(paced) }
    }

    fn covering(packets: u32) -> Ack {
        Ack { acked_bytes: u64::from(packets * MSS), ..ack(packets) }
    }

    /// Feeds a round of `samples` samples of `rtt` (in 0.1 ms) and an ACK without one that ends it
    /// with this verdict.
    fn round(start: &mut HystartPlusPlus, rtt: u64, samples: u64, verdict: AfterAck) -> Vec<SlowStartPhase> {
        let mut window = Window::new(77);
        let phases = (0..samples)
            .map(|_| {
                let ack = Ack { rtt: Some(Span::from_micros(rtt * 100)), una: start.window_end - 1, ..ack(1) };
                assert_eq!(start.on_ack(&ack, &mut window), AfterAck::Continue);
                start.phase
            })
            .collect();
        let end = Ack { una: start.window_end, next: start.window_end + 1000, ..ack(1) };
        assert_eq!(start.on_ack(&end, &mut window), verdict);
        phases
    }

    #[test]
    fn the_rtt_must_rise_by_an_eighth_within_4_and_16_ms() {
        let config = HystartPlusPlusConfig::default();
        let entries =
            [(10, 14_000), (20, 24_000), (32, 36_000), (40, 45_000), (100, 112_500), (128, 144_000), (200, 216_000)];
        for (last, entry) in entries {
            let last = Span::from_millis(last);
            assert_eq!(last + config.threshold(last), Span::from_micros(entry));
        }
    }

    #[test]
    fn conservative_growth_keeps_fractions_of_a_packet() {
        let mut start = conservative(true);
        let mut window = Window::new(100);
        let mut after = Vec::new();
        for _ in 0..5 {
            for _ in 0..window.cwnd {
                start.grow(&covering(1), &mut window);
            }
            let quarters = start.fraction * 4 / (4 * u64::from(MSS));
            after.push(f64::from(window.cwnd) + quarters as f64 / 4.0);
        }
        assert_eq!(after, [125.0, 156.25, 195.25, 244.0, 305.0]);
    }

    #[test]
    fn an_unpaced_flow_counts_at_most_eight_packets_per_ack() {
        for (mut start, grown) in
            [(start(false), 8), (conservative(false), 2), (start(true), 20), (conservative(true), 5)]
        {
            let mut window = Window::new(100);
            start.grow(&covering(20), &mut window);
            assert_eq!(window.cwnd, 100 + grown);
        }
    }

    #[test]
    fn the_eighth_sample_decides_and_a_smaller_rtt_later_resumes_slow_start() {
        let mut start = HystartPlusPlus { window_end: 1000, ..start(true) };
        for _ in 0..2 {
            let phases = round(&mut start, 400, 8, AfterAck::Continue);
            assert!(phases.iter().all(|phase| *phase == SlowStartPhase::SlowStart));
        }
        let phases = round(&mut start, 460, 8, AfterAck::Continue);
        assert!(phases[..7].iter().all(|phase| *phase == SlowStartPhase::SlowStart));
        assert_eq!(phases[7], SlowStartPhase::Conservative { baseline: Span::from_millis(46), rounds: 0 });
        let phases = round(&mut start, 459, 8, AfterAck::Continue);
        assert!(phases[..7].iter().all(|phase| matches!(phase, SlowStartPhase::Conservative { rounds: 1, .. })));
        assert_eq!(phases[7], SlowStartPhase::SlowStart);
    }

    #[test]
    fn a_rise_by_exactly_the_threshold_is_one() {
        // RFC 9406 section 4.2: currentRoundMinRTT >= lastRoundMinRTT + RttThresh, here 40 + 5 ms.
        for (rtt, rises) in [(449, false), (450, true)] {
            let mut start = HystartPlusPlus { window_end: 1000, ..start(true) };
            round(&mut start, 400, 8, AfterAck::Continue);
            let phases = round(&mut start, rtt, 8, AfterAck::Continue);
            assert_eq!(phases[7] != SlowStartPhase::SlowStart, rises, "{rtt}");
        }
    }

    #[test]
    fn a_smallest_rtt_equal_to_the_baseline_is_no_false_alarm() {
        // RFC 9406 section 4.2: slow start resumes if currentRoundMinRTT < cssBaselineMinRtt.
        let mut start = HystartPlusPlus { window_end: 1000, ..start(true) };
        round(&mut start, 400, 8, AfterAck::Continue);
        round(&mut start, 450, 8, AfterAck::Continue);
        let phases = round(&mut start, 450, 8, AfterAck::Continue);
        assert!(matches!(phases[7], SlowStartPhase::Conservative { .. }));
    }

    #[test]
    fn the_first_ack_of_the_connection_ends_the_round_in_which_nothing_had_been_sent() {
        // RFC 9406 section 4.2: windowEnd is SND.NXT at the beginning, so that the first byte's ACK
        // ends the first round; its RTT is the one the rest of the initial window is compared with.
        let mut start = start(true);
        let mut window = Window::new(10);
        let rtt = Span::from_millis(40);
        start.on_ack(&Ack { rtt: Some(rtt), una: 1448, next: 14_480, ..ack(1) }, &mut window);
        assert_eq!((start.window_end, start.last_round_min, start.samples), (14_480, rtt, 0));
    }

    #[test]
    fn the_fifth_round_of_conservative_slow_start_ends_it_with_the_window_as_threshold() {
        let mut start = HystartPlusPlus { window_end: 1000, ..start(true) };
        round(&mut start, 400, 8, AfterAck::Continue);
        // The round in which the rise is seen is the first of the five.
        round(&mut start, 500, 8, AfterAck::Continue);
        for _ in 0..3 {
            round(&mut start, 600, 8, AfterAck::Continue);
        }
        let exit = Exit { reason: ExitReason::DelayIncrease, cwnd: 77, ssthresh: 77, rate: None };
        round(&mut start, 600, 8, AfterAck::Done(exit));
    }

    #[test]
    fn fewer_than_eight_samples_in_a_round_decide_nothing() {
        let mut start = HystartPlusPlus { window_end: 1000, ..start(true) };
        for i in 1..20 {
            let phases = round(&mut start, 400 * i, 7, AfterAck::Continue);
            assert!(phases.iter().all(|phase| *phase == SlowStartPhase::SlowStart));
        }
    }
}
