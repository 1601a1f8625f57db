//! BIC (Xu, Harfoush and Rhee, "Binary increase congestion control for fast long-distance
//! networks", 2004) with the integer arithmetic of Linux `tcp_bic.c` (6.1.192).
//!
//! After a reduction the window searches for its old maximum: in large equal steps while it is far
//! away, in ever smaller ones close to it (binary search), and beyond it the same in reverse (max
//! probing). Linux's steps per packet acknowledged are those of a quarter of the distance, not half
//! of it.

use flowstart_control::{Ack, CongestionAvoidance, InRange, InvalidConfig, NewMss, Ranges, Signal, Window};
use flowstart_units::{Span, Time};

use super::reno::Counter;
use crate::AvoidanceConstants;

/// Beta is a share of the window in units of 1/1024 (`BICTCP_BETA_SCALE`).
const BETA_ONE: u64 = 1024;
/// The average of packets per ACK is kept in sixteenths and moves by a sixteenth of itself per ACK
/// (`ACK_RATIO_SHIFT`).
const RATIO_SHIFT: u32 = 4;

/// Constants of BIC; the defaults are those of Linux 6.1.192.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct BicConfig {
    /// Up to this window, in packets, the flow is Reno; default 14 (`low_window`).
    pub low_window: u32,
    /// Largest step of the search in packets per round trip; default 16 (`max_increment`). At least
    /// 1.
    pub max_increment: u32,
    /// What a reduction leaves of the window, above 0 and below 1, rounded to 1/1024; default 0.8,
    /// which is 819/1024 (`beta`).
    pub beta: f64,
    /// A step of the search is the distance to the old maximum divided by this; default 4
    /// (`BICTCP_B`). At least 1.
    pub search_divisor: u32,
    /// Next to the old maximum the window grows by one packet in this many packets over
    /// `search_divisor` windows; default 20 (`smooth_part`). At least 1.
    pub smooth_part: u32,
    /// A flow that is reduced before it reached its old maximum gives up some of it; default true
    /// (`fast_convergence`).
    pub fast_convergence: bool,
    /// While no maximum is known the window grows by at least one packet per this many; default 20,
    /// 5 % per round trip (Linux). At least 1.
    pub initial_packets_per_increase: u32,
    /// Growth is multiplied by the average number of packets per ACK, to make up for delayed ACKs;
    /// default true (`delayed_ack`). As Linux counts acknowledged packets anyway, this doubles the
    /// published growth.
    pub ack_ratio: bool,
    /// Packets per ACK that are assumed at first, in sixteenths; default 32, two packets
    /// (`bictcp_reset`). At least 1.
    pub initial_ack_ratio: u32,
    /// With an unchanged window the step is worked out at most this often; default 31.25 ms (Linux,
    /// HZ/32).
    pub update_interval: Span,
}

impl Default for BicConfig {
    fn default() -> Self {
        Self {
            low_window: 14,
            max_increment: 16,
            beta: 0.8,
            search_divisor: 4,
            smooth_part: 20,
            fast_convergence: true,
            initial_packets_per_increase: 20,
            ack_ratio: true,
            initial_ack_ratio: 32,
            update_interval: Span::from_micros(31_250),
        }
    }
}

impl AvoidanceConstants for BicConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        self.check()
    }
}

impl InRange for BicConfig {
    fn ranges(&mut self, ranges: &mut Ranges) {
        // What rounds to 1/1024 at least, and to less than 1.
        let one = BETA_ONE as f64;
        ranges.of("beta", &mut self.beta, 0.5 / one..1.0 - 0.5 / one, "above 0 and below 1");
        ranges.of("max_increment", &mut self.max_increment, 1.., "at least 1");
        ranges.of("search_divisor", &mut self.search_divisor, 1.., "at least 1");
        ranges.of("smooth_part", &mut self.smooth_part, 1.., "at least 1");
        let initial = &mut self.initial_packets_per_increase;
        ranges.of("initial_packets_per_increase", initial, 1.., "at least 1");
        ranges.of("initial_ack_ratio", &mut self.initial_ack_ratio, 1..=1 << 16, "between 1 and 65536");
    }
}

/// BIC in operation. [`BicConfig`] says where its rules come from.
#[derive(Clone, Copy, Debug)]
pub struct Bic {
    config: BicConfig,
    /// In 1/1024.
    beta: u64,
    /// Window before the last reduction (after fast convergence), 0 if there was none.
    w_max: u32,
    /// Sixteen times the average packets per ACK.
    ack_ratio: u32,
    /// A reduction began and the window has not grown since.
    reducing: bool,
    /// When and at which window the step was last worked out.
    updated: Option<(Time, u32)>,
    /// Packets acknowledged per packet of growth.
    packets_per_increase: u32,
    counter: Counter,
}

impl Bic {
    /// BIC with these constants. Out of range, they are moved to the nearest value in range.
    #[must_use]
    pub fn new(config: &BicConfig) -> Self {
        let config = config.in_range();
        Self {
            beta: libm::round(config.beta * BETA_ONE as f64) as u64,
            w_max: 0,
            ack_ratio: config.initial_ack_ratio,
            reducing: false,
            updated: None,
            packets_per_increase: 1,
            counter: Counter::default(),
            config,
        }
    }

    /// Window before the last reduction in packets (after fast convergence), 0 if there was none.
    #[must_use]
    pub fn w_max(&self) -> u32 {
        self.w_max
    }

    /// Packets to be acknowledged for one packet of growth, ACKs of one packet each
    /// (`bictcp_update` without `delayed_ack`).
    fn step(&self, cwnd: u32) -> u32 {
        let BicConfig { low_window, max_increment, search_divisor, smooth_part, .. } = self.config;
        if cwnd <= low_window {
            return cwnd;
        }
        let share = |packets: u32| cwnd / packets.max(1);
        let smooth = || times(cwnd, smooth_part) / search_divisor;
        let found = if let Some(below) = self.w_max.checked_sub(cwnd).filter(|below| *below > 0) {
            match below / search_divisor {
                far if far > max_increment => share(max_increment),
                0 | 1 => smooth(),
                near => share(near),
            }
        } else {
            let beyond = cwnd - self.w_max;
            if beyond < search_divisor {
                smooth()
            } else if beyond < times(max_increment, search_divisor - 1) {
                times(cwnd, search_divisor - 1) / beyond
            } else {
                share(max_increment)
            }
        };
        if self.w_max == 0 { found.min(self.config.initial_packets_per_increase) } else { found }
    }

    /// The same, sped up by the average number of packets per ACK.
    fn corrected_step(&self, cwnd: u32) -> u32 {
        let step = self.step(cwnd);
        if !self.config.ack_ratio || cwnd <= self.config.low_window {
            return step;
        }
        let scaled = (u64::from(step) << RATIO_SHIFT) / u64::from(self.ack_ratio.max(1));
        u32::try_from(scaled).unwrap_or(u32::MAX).max(1)
    }

    fn update(&mut self, now: Time, cwnd: u32) {
        if let Some((then, at)) = self.updated
            && at == cwnd
            && now.since(then) <= self.config.update_interval
        {
            return;
        }
        self.updated = Some((now, cwnd));
        self.packets_per_increase = self.corrected_step(cwnd);
    }
}

fn times(a: u32, b: u32) -> u32 {
    a.saturating_mul(b)
}

impl CongestionAvoidance for Bic {
    /// The average of packets per ACK, which rests during reductions (`bictcp_acked`). The
    /// truncated division keeps it at 31 sixteenths, from where it starts, when every packet has
    /// its own ACK.
    #[inline]
    fn on_ack(&mut self, ack: &Ack, _window: &Window) {
        if ack.advanced && !self.reducing {
            let decayed = self.ack_ratio - (self.ack_ratio >> RATIO_SHIFT);
            self.ack_ratio = decayed.saturating_add(ack.acked);
        }
    }

    #[inline]
    fn grow(&mut self, ack: &Ack, acked: u32, window: &mut Window) {
        self.reducing = false;
        self.update(ack.now, window.cwnd);
        self.counter.grow(window, self.packets_per_increase, acked);
    }

    fn reduce(&mut self, _now: Time, _signal: Signal, window: &Window) -> u32 {
        let cwnd = window.cwnd;
        self.counter.reset();
        self.reducing = true;
        let keep = |share: u64, one: u64| u32::try_from(u64::from(cwnd) * share / one).unwrap_or(u32::MAX);
        self.w_max = if cwnd < self.w_max && self.config.fast_convergence {
            keep(BETA_ONE + self.beta, 2 * BETA_ONE)
        } else {
            cwnd
        };
        let reduced = if cwnd <= self.config.low_window { cwnd / 2 } else { keep(self.beta, BETA_ONE) };
        reduced.max(2)
    }

    /// Nothing is known any more, also if the timer expired in a recovery (`bictcp_state`).
    fn on_expiry(&mut self, _now: Time, _total_lost: u64) {
        *self = Self::new(&self.config);
    }

    #[inline(always)]
    fn paces(&self) -> bool {
        false
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.w_max = mss.packets(self.w_max);
        self.updated = None;
        self.counter.on_mss(mss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_control::testing::ack;
    use proptest::prelude::*;

    fn bic() -> Bic {
        Bic::new(&BicConfig::default())
    }

    /// BIC whose growth is as published: packets counted, no further correction.
    fn published() -> Bic {
        Bic::new(&BicConfig { ack_ratio: false, ..BicConfig::default() })
    }

    /// One round trip of an ACK per packet.
    fn round(bic: &mut Bic, now: Time, window: &mut Window) {
        for _ in 0..window.cwnd {
            let ack = Ack { now, ..ack(1) };
            bic.on_ack(&ack, window);
            bic.grow(&ack, 1, window);
        }
    }

    fn at_ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn the_search_slows_down_towards_the_maximum_and_speeds_up_beyond_it() {
        let bic = Bic { w_max: 200, ack_ratio: 16, ..bic() };
        for (cwnd, step) in [(12, 12), (120, 7), (160, 16), (190, 95), (197, 985), (201, 1005), (220, 33), (260, 16)] {
            assert_eq!(bic.corrected_step(cwnd), step, "window {cwnd}");
        }
    }

    #[test]
    fn a_reduction_leaves_four_fifths_and_half_of_a_small_window() {
        for (cwnd, ssthresh) in [(200, 159), (1000, 799), (15, 11), (14, 7), (3, 2), (1, 2)] {
            assert_eq!(bic().reduce(Time::ZERO, Signal::Loss, &Window::new(cwnd)), ssthresh, "window {cwnd}");
        }
    }

    #[test]
    fn fast_convergence_gives_up_some_of_the_maximum() {
        let mut flow = bic();
        flow.reduce(Time::ZERO, Signal::Loss, &Window::new(200));
        flow.reduce(Time::ZERO, Signal::Loss, &Window::new(180));
        assert_eq!(flow.w_max(), 161, "180 * (1024 + 819) / 2048");
        flow.reduce(Time::ZERO, Signal::Loss, &Window::new(161));
        assert_eq!(flow.w_max(), 161, "the old maximum itself was reached: nobody else needs room");
        let mut stubborn = Bic::new(&BicConfig { fast_convergence: false, ..BicConfig::default() });
        stubborn.reduce(Time::ZERO, Signal::Loss, &Window::new(200));
        stubborn.reduce(Time::ZERO, Signal::Loss, &Window::new(180));
        assert_eq!(stubborn.w_max(), 180);
    }

    #[test]
    fn a_timeout_forgets_the_maximum() {
        let mut bic = bic();
        bic.reduce(Time::ZERO, Signal::Loss, &Window::new(200));
        assert_eq!(bic.reduce(Time::ZERO, Signal::Timeout, &Window::new(160)), 127);
        bic.on_expiry(Time::ZERO, 0);
        assert_eq!((bic.w_max(), bic.ack_ratio), (0, 32));
    }

    #[test]
    fn without_a_maximum_the_window_grows_by_at_least_a_twentieth() {
        assert_eq!(published().step(16), 3, "much more than a twentieth of a small window");
        assert_eq!(published().step(160), 10);
        assert_eq!(published().step(10_000), 20);
        assert_eq!(published().step(10), 10, "Reno");
    }

    #[test]
    fn the_average_of_packets_per_ack_keeps_growth_doubled_with_and_without_delayed_acks() {
        for (acked, settles) in [(1, 31), (2, 32), (4, 64)] {
            let mut bic = bic();
            for _ in 0..1000 {
                bic.on_ack(&ack(acked), &Window::new(100));
            }
            assert_eq!(bic.ack_ratio, settles, "ACKs of {acked}");
        }
    }

    #[test]
    fn the_average_rests_during_a_reduction() {
        let mut bic = bic();
        bic.reduce(Time::ZERO, Signal::Loss, &Window::new(100));
        bic.on_ack(&ack(50), &Window::new(100));
        assert_eq!(bic.ack_ratio, 32);
        bic.grow(&ack(1), 1, &mut Window { cwnd: 80, ssthresh: 80 });
        bic.on_ack(&ack(50), &Window::new(100));
        assert_eq!(bic.ack_ratio, 80);
    }

    #[test]
    fn the_window_approaches_the_maximum_ever_more_slowly_and_leaves_it_ever_faster() {
        let mut bic = published();
        let mut window = Window::new(1000);
        window.cwnd = bic.reduce(Time::ZERO, Signal::Loss, &window);
        window.ssthresh = window.cwnd;
        let mut windows = vec![window.cwnd];
        for i in 0..130 {
            round(&mut bic, at_ms(100 * i), &mut window);
            windows.push(window.cwnd);
        }
        let steps: Vec<u32> = windows.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let peak = windows.iter().position(|cwnd| *cwnd >= 1000).unwrap();
        assert!(steps[..9].iter().all(|step| (15..=17).contains(step)), "far below, 16 packets per round: {steps:?}");
        assert!(steps[9..peak - 1].windows(2).all(|pair| pair[1] <= pair[0] + 1), "concave: {steps:?}");
        assert!(steps[peak..].windows(2).all(|pair| pair[1] + 1 >= pair[0]), "convex: {steps:?}");
        assert!((15..=17).contains(steps.last().unwrap()), "far beyond, 16 packets per round again: {steps:?}");
    }

    #[test]
    fn two_flows_that_lose_together_become_equal() {
        let mut flows =
            [(published(), Window { cwnd: 900, ssthresh: 2 }), (published(), Window { cwnd: 100, ssthresh: 2 })];
        for i in 0..3000 {
            for (bic, window) in &mut flows {
                round(bic, at_ms(100 * i), window);
            }
            if flows[0].1.cwnd + flows[1].1.cwnd > 1000 {
                for (bic, window) in &mut flows {
                    window.cwnd = bic.reduce(at_ms(100 * i), Signal::Loss, window);
                }
            }
        }
        let (a, b) = (f64::from(flows[0].1.cwnd), f64::from(flows[1].1.cwnd));
        assert!((0.9..1.1).contains(&(a / b)), "{a} and {b}");
    }

    #[test]
    fn constants_out_of_range_are_refused_and_harmless() {
        let default = BicConfig::default();
        assert_eq!(default.validate(), Ok(()));
        // Both ends are as good as what they are rounded to.
        for (beta, rounded) in [(0.0, 1), (0.5 / 1024.0, 1), (1023.49 / 1024.0, 1023), (1.0, 1023)] {
            assert_eq!(Bic::new(&BicConfig { beta, ..default }).beta, rounded, "{beta}");
        }
        for config in [
            BicConfig { beta: f64::NAN, ..default },
            BicConfig { beta: 1.0, ..default },
            BicConfig { max_increment: 0, ..default },
            BicConfig { search_divisor: 0, ..default },
            BicConfig { smooth_part: 0, ..default },
            BicConfig { initial_packets_per_increase: 0, ..default },
            BicConfig { initial_ack_ratio: 0, ..default },
        ] {
            assert!(config.validate().is_err(), "{config:?}");
            round(&mut Bic::new(&config), Time::ZERO, &mut Window { cwnd: 70, ssthresh: 2 });
        }
    }

    proptest! {
        #[test]
        fn a_round_never_adds_more_than_twice_the_largest_step_to_a_large_window(w_max in 0u32..100_000, cwnd in 200u32..10_000) {
            let mut bic = Bic { w_max, ..bic() };
            let mut window = Window { cwnd, ssthresh: 2 };
            round(&mut bic, at_ms(0), &mut window);
            // Twice because of the packets per ACK; 5 % while nothing is known.
            let most = if w_max == 0 { cwnd / 8 } else { 2 * 16 + 4 };
            prop_assert!(window.cwnd - cwnd <= most, "{}", window.cwnd - cwnd);
        }
    }
}
