//! CUBIC (RFC 9438) with the integer arithmetic of Linux `tcp_cubic.c` (6.1.192).
//!
//! The window follows W(t) = C (t - K)^3 + Wmax, with time in 1/1024 s and C in 1/1024. Where Linux
//! and the RFC differ, this is Linux: t is the time since the epoch began plus the *smallest* RTT,
//! the Reno-friendly window never changes its slope, and undoing a reduction restores the window
//! but neither Wmax nor the epoch. K is the exact integer cube root; Linux's table lookup with one
//! Newton step is up to 0.2 % off.

use flowstart_control::InvalidConfig;
use flowstart_control::{Ack, CongestionAvoidance, NewMss, Signal, Window};
use flowstart_units::{Span, Time};

use super::reno::Counter;
use crate::AvoidanceConstants;

/// Beta is a share of the window in units of 1/1024 (`BICTCP_BETA_SCALE`).
const BETA_ONE: u64 = 1024;
/// Time is counted in units of 1/1024 s: 10 bits (`BICTCP_HZ`).
const TIME_BITS: u32 = 10;
/// C is counted in units of 10/1024 packets per cubic second (`bic_scale`, `cube_rtt_scale`).
const C_UNIT: u64 = 10;
/// t^3 C has three times the bits of the time and those of C.
const CUBE_BITS: u32 = 4 * TIME_BITS;
/// Window growth per congestion window of a Reno flow with the same average is counted in eighths
/// (`beta_scale`).
const FRIENDLY_BITS: u32 = 3;
/// Packets per increase, in windows, on the plateau around Wmax.
const PLATEAU_WINDOWS: u64 = 100;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Constants of CUBIC; the defaults are those of RFC 9438 in the integers of Linux 6.1.192.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct CubicConfig {
    /// What a reduction leaves of the window, above 0 and below 1, rounded to 1/1024; default 0.7,
    /// which is 717/1024 (RFC 9438 section 4.6).
    pub beta: f64,
    /// C in packets per cubic second, above 0 and at most 100, rounded to 10/1024; default 0.4,
    /// which is 410/1024 (RFC 9438 section 5).
    pub c: f64,
    /// A flow that is reduced before it reached its old maximum gives up some of it; default true
    /// (RFC 9438 section 4.7).
    pub fast_convergence: bool,
    /// The window grows at least as fast as Reno's would; default true (RFC 9438 section 4.3).
    pub reno_friendly: bool,
    /// Before the first reduction the window grows by at least one packet per this many; default
    /// 20, 5 % per round trip (Linux).
    pub initial_packets_per_increase: u32,
    /// The window never grows by more than one packet per this many; default 2, half per round trip
    /// (RFC 9438 section 4.4).
    pub min_packets_per_increase: u32,
    /// With an unchanged window the curve is evaluated at most this often; default 31.25 ms (Linux,
    /// HZ/32).
    pub update_interval: Span,
    /// RTTs within this time after the epoch began do not count as smallest RTT; default 1 s (Linux
    /// `cubictcp_acked`).
    pub ignore_rtt: Span,
    /// Ticks per second that times are rounded to, as Linux does (250 or 1000). Default: an exact
    /// clock.
    pub hz: Option<u32>,
}

impl CubicConfig {
    /// Ticks per second of the clock of most distributions' kernels (`CONFIG_HZ`; some have 1000).
    pub const LINUX_HZ: u32 = 250;
}

impl Default for CubicConfig {
    fn default() -> Self {
        Self {
            beta: 0.7,
            c: 0.4,
            fast_convergence: true,
            reno_friendly: true,
            initial_packets_per_increase: 20,
            min_packets_per_increase: 2,
            update_interval: Span::from_micros(31_250),
            ignore_rtt: Span::from_secs(1),
            hz: None,
        }
    }
}

impl AvoidanceConstants for CubicConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        let check = InvalidConfig::unless;
        let in_steps = |x: f64, one: u64| libm::round(x * one as f64) as u64;
        check((1..BETA_ONE).contains(&in_steps(self.beta, BETA_ONE)), "beta", "above 0 and below 1")?;
        check(self.c <= 100.0 && in_steps(self.c, BETA_ONE / C_UNIT) >= 1, "c", "above 0 and at most 100")?;
        check(self.initial_packets_per_increase >= 1, "initial_packets_per_increase", "at least 1")?;
        check(self.min_packets_per_increase >= 1, "min_packets_per_increase", "at least 1")?;
        check(self.hz.is_none_or(|hz| (1..=1_000_000_000).contains(&hz)), "hz", "between 1 and 1000000000")
    }
}

/// The time between two reductions, in which the window follows one curve.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    /// Time until the plateau, in 1/1024 s.
    k: u64,
    /// Height of the plateau in packets.
    origin: u32,
    /// Window a Reno flow would have.
    reno_window: u32,
    /// Packets acknowledged that this window was not credited with yet.
    reno_acked: u64,
}

/// CUBIC in operation. [`CubicConfig`] says where its rules come from.
#[derive(Clone, Copy, Debug)]
pub struct Cubic {
    config: CubicConfig,
    /// In 1/1024.
    beta: u64,
    /// In 1/1024 packets per cubic second.
    c: u64,
    /// Growth of a Reno flow with the same average, in eighths of a window of packets per packet.
    friendly: u64,
    /// Window before the last reduction, 0 if there was none.
    w_max: u32,
    epoch: Option<Epoch>,
    /// Smallest RTT; [`Span::MAX`] if unknown.
    delay_min: Span,
    /// When and at which window the curve was last evaluated.
    updated: Option<(Time, u32)>,
    /// Packets acknowledged per packet of growth.
    packets_per_increase: u64,
    counter: Counter,
}

impl Cubic {
    /// CUBIC with these constants. Out of range, they are moved to the nearest value in range.
    #[must_use]
    pub fn new(config: &CubicConfig) -> Self {
        let beta = (libm::round(config.beta * BETA_ONE as f64) as u64).clamp(1, BETA_ONE - 1);
        let steps = (libm::round(config.c * BETA_ONE as f64 / C_UNIT as f64) as u64).clamp(1, 100 * BETA_ONE / C_UNIT);
        Self {
            config: *config,
            beta,
            c: steps * C_UNIT,
            // 1/α in eighths, α = 3(1-β)/(1+β): 15/8 for β = 717/1024 in integers.
            friendly: (((BETA_ONE + beta) << FRIENDLY_BITS) / 3 / (BETA_ONE - beta)).max(1),
            w_max: 0,
            epoch: None,
            delay_min: Span::MAX,
            updated: None,
            packets_per_increase: 1,
            counter: Counter::default(),
        }
    }

    /// Window before the last reduction in packets (after fast convergence), 0 if there was none.
    #[must_use]
    pub fn w_max(&self) -> u32 {
        self.w_max
    }

    /// A connection as after `reduce` from `w_max` packets, for experiments that begin on the
    /// steady cycle.
    #[must_use]
    pub fn with_w_max(mut self, w_max: u32) -> Self {
        self.w_max = w_max;
        self
    }

    /// `now` as the clock shows it.
    fn clock(&self, now: Time) -> Time {
        match self.config.hz {
            None => now,
            Some(hz) => {
                let (hz, second) = (u128::from(hz.max(1)), u128::from(NANOS_PER_SECOND));
                let ticks = u128::from(now.as_nanos()) * hz / second;
                Time::from_nanos(u64::try_from(ticks * second / hz).unwrap_or(u64::MAX))
            }
        }
    }

    /// A span of time in 1/1024 s.
    fn units(span: Span) -> u64 {
        let (seconds, nanos) = (span.as_nanos() / NANOS_PER_SECOND, span.as_nanos() % NANOS_PER_SECOND);
        (seconds << TIME_BITS) + (nanos << TIME_BITS) / NANOS_PER_SECOND
    }

    /// Time in 1/1024 s in which the curve rises by `packets` to its plateau: the cube root of
    /// packets / C.
    fn time_to_plateau(&self, packets: u32) -> u64 {
        cube_root((1_u64 << CUBE_BITS) / self.c, packets)
    }

    /// The window in packets `t` (1/1024 s) after the epoch began.
    fn target(&self, epoch: &Epoch, t: u64) -> u32 {
        let distance = u128::from(t.abs_diff(epoch.k).min(u64::from(u32::MAX)));
        let delta = (u128::from(self.c) * distance * distance * distance) >> CUBE_BITS;
        let delta = u32::try_from(delta).unwrap_or(u32::MAX);
        if t < epoch.k { epoch.origin.saturating_sub(delta) } else { epoch.origin.saturating_add(delta) }
    }

    fn begin_epoch(&self, now: Time, cwnd: u32, acked: u32) -> Epoch {
        let (k, origin) =
            if self.w_max <= cwnd { (0, cwnd) } else { (self.time_to_plateau(self.w_max - cwnd), self.w_max) };
        Epoch { start: now, k, origin, reno_window: cwnd, reno_acked: u64::from(acked) }
    }

    /// How many packets must be acknowledged for the next packet of window (`bictcp_update`).
    #[inline]
    fn update(&mut self, now: Time, cwnd: u32, acked: u32) {
        if let Some(epoch) = &mut self.epoch {
            epoch.reno_acked += u64::from(acked);
        }
        let now = self.clock(now);
        if let Some((then, at)) = self.updated
            && at == cwnd
            && now.since(then) <= self.config.update_interval
        {
            return;
        }
        let same_tick = self.epoch.is_some() && self.updated.is_some_and(|(then, _)| then == now);
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin_epoch(now, cwnd, acked));
        if !same_tick {
            self.updated = Some((now, cwnd));
            self.packets_per_increase = self.evaluate(&epoch, now, cwnd);
        }
        if self.config.reno_friendly {
            self.packets_per_increase = befriend(&mut epoch, self.friendly, self.packets_per_increase, cwnd);
        }
        self.packets_per_increase = self.packets_per_increase.max(u64::from(self.config.min_packets_per_increase));
        self.epoch = Some(epoch);
    }

    fn evaluate(&self, epoch: &Epoch, now: Time, cwnd: u32) -> u64 {
        let delay_min = if self.delay_min == Span::MAX { Span::ZERO } else { self.delay_min };
        let target = self.target(epoch, Self::units(now.since(epoch.start) + delay_min));
        let curve = if target > cwnd { u64::from(cwnd / (target - cwnd)) } else { PLATEAU_WINDOWS * u64::from(cwnd) };
        // Without a maximum to aim at, the plateau would last very long.
        if self.w_max == 0 { curve.min(u64::from(self.config.initial_packets_per_increase)) } else { curve }
    }
}

/// Credits the Reno window and returns what is left of `curve` packets per increase if that window
/// is larger.
fn befriend(epoch: &mut Epoch, friendly: u64, curve: u64, cwnd: u32) -> u64 {
    let per_increase = ((u64::from(cwnd) * friendly) >> FRIENDLY_BITS).max(1);
    // Linux subtracts in a loop while more than one increase is left, so that exactly one is kept.
    let increases = epoch.reno_acked.saturating_sub(1) / per_increase;
    epoch.reno_acked -= increases * per_increase;
    epoch.reno_window = epoch.reno_window.saturating_add(u32::try_from(increases).unwrap_or(u32::MAX));
    match epoch.reno_window.checked_sub(cwnd) {
        Some(ahead) if ahead > 0 => curve.min(u64::from(cwnd / ahead)),
        _ => curve,
    }
}

/// The largest integer whose cube is at most `scale * factor`, exact on every machine: a float
/// gives the start, integers decide.
fn cube_root(scale: u64, factor: u32) -> u64 {
    let wide = u128::from(scale) * u128::from(factor);
    let cube = |x: u64| u128::from(x) * u128::from(x) * u128::from(x);
    let mut root = libm::cbrt(wide as f64) as u64;
    while cube(root) > wide {
        root -= 1;
    }
    while cube(root + 1) <= wide {
        root += 1;
    }
    root
}

impl CongestionAvoidance for Cubic {
    #[inline]
    fn on_ack(&mut self, ack: &Ack, _window: &Window) {
        let Some(rtt) = ack.rtt else { return };
        // Just after a reduction RTTs still show the queue that led to it.
        let settling = self.epoch.is_some_and(|epoch| self.clock(ack.now).since(epoch.start) < self.config.ignore_rtt);
        if !settling {
            self.delay_min = self.delay_min.min(rtt.max(Span::from_nanos(1)));
        }
    }

    #[inline]
    fn grow(&mut self, ack: &Ack, acked: u32, window: &mut Window) {
        self.update(ack.now, window.cwnd, acked);
        let w = u32::try_from(self.packets_per_increase).unwrap_or(u32::MAX);
        self.counter.grow(window, w, acked);
    }

    fn reduce(&mut self, _now: Time, _signal: Signal, window: &Window) -> u32 {
        let cwnd = window.cwnd;
        self.counter.reset();
        self.epoch = None;
        let keep = |share: u64, one: u64| u32::try_from(u64::from(cwnd) * share / one).unwrap_or(u32::MAX);
        self.w_max = if cwnd < self.w_max && self.config.fast_convergence {
            keep(BETA_ONE + self.beta, 2 * BETA_ONE)
        } else {
            cwnd
        };
        keep(self.beta, BETA_ONE).max(2)
    }

    /// Nothing is known any more, also if the timer expired in a recovery (`cubictcp_state`).
    fn on_expiry(&mut self, _now: Time, _total_lost: u64) {
        *self = Self::new(&self.config);
    }

    /// The curve stands still while the flow is idle (`cubictcp_cwnd_event`).
    fn on_idle(&mut self, idle: Span, _window: &mut Window) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start += idle;
        }
    }

    #[inline(always)]
    fn paces(&self) -> bool {
        false
    }

    fn counts_packets(&self) -> bool {
        true
    }

    fn on_mss(&mut self, mss: NewMss) {
        // Linux keeps its counts of packets; then the curve would be another one in bytes. Its
        // slope is in packets, so that the way to its top takes another time: a new curve leads
        // there from the window as it is.
        self.w_max = mss.packets(self.w_max);
        self.epoch = None;
        self.updated = None;
        self.counter.on_mss(mss);
    }
}

#[cfg(test)]
mod tests;
