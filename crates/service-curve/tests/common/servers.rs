//! Flow controls whose delays have a closed form, as iterators over the delays of a constant-rate
//! train.

use flowstart_service_curve::stats::SplitMix64;
use flowstart_service_curve::{AdaptiveLoop, AdaptiveLoopConfig, ConstantRate, Growth};
use flowstart_units::{Bytes, Rate, Span};

/// Bits of a packet.
const BITS: f64 = 12_000.0;
/// Bits of a packet that is nearly a fluid.
const FLUID: f64 = 1_000.0;

/// A flow control with a known capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Server {
    /// A link with latency: packets of the train wait for one another only.
    LatencyRate,
    /// The train's packets need exponential times: D/M/1.
    Exponential,
    /// The train's packets are as small as can be and find the work that others with Poisson
    /// arrivals and exponential times left: M/M/1.
    AmongExponential,
    /// The same with equal times: M/D/1.
    AmongEqual,
    /// A link that is on and off for 100 ms each. The capacity is the mean.
    OnOff,
    /// The same with exponential periods of one second in the mean: bounded in law, not in value.
    RandomOnOff,
    /// A window that is halved by one in a thousand packets, 4143 packets per second in the mean.
    Window,
}

/// Long-term rate of [`Server::Window`], packets per second.
const WINDOW_RATE: f64 = 4_152.7;
/// Latency of [`Server::LatencyRate`], seconds.
const LATENCY: f64 = 0.02;
/// Half a period of [`Server::OnOff`], seconds.
const HALF: f64 = 0.1;

impl Server {
    /// All of them.
    pub(crate) const ALL: [Self; 7] = [
        Self::LatencyRate,
        Self::Exponential,
        Self::AmongExponential,
        Self::AmongEqual,
        Self::OnOff,
        Self::RandomOnOff,
        Self::Window,
    ];

    /// The rate of a train that loads the server so much. The capacity is 10 Mbit/s, or that of the
    /// window.
    pub(crate) fn rate(self, load: f64) -> Rate {
        let capacity = if self == Self::Window { WINDOW_RATE * BITS } else { 1e7 };
        Rate::from_bps((capacity * load) as u64)
    }

    /// Bytes of the train's packets: those of [`Server::OnOff`] make nearly a fluid.
    pub(crate) fn packet(self) -> Bytes {
        Bytes::new((if self == Self::OnOff { FLUID } else { BITS }) as u64 / 8)
    }

    /// The (1 - `epsilon`)-quantile of the delay in seconds; `None` if there is no closed form.
    pub(crate) fn quantile(self, load: f64, epsilon: f64) -> Option<f64> {
        let service = BITS / 1e7;
        match self {
            Self::LatencyRate => Some(LATENCY + service),
            Self::Exponential => {
                // The root of s = exp(-(1 - s) / load), and sojourns of rate (1 - s) / service.
                let mut s = 0.5;
                for _ in 0..10_000 {
                    s = (-(1.0 - s) / load).exp();
                }
                Some(-epsilon.ln() * service / (1.0 - s))
            }
            Self::AmongExponential => Some((load / epsilon).ln().max(0.0) * service / (1.0 - load)),
            Self::AmongEqual => {
                // Erlang's formula for the waiting time of M/D/1.
                let within = |x: f64| {
                    let mut sum = 0.0;
                    let mut factorial = 1.0;
                    for k in 0..=((x / service) as i32) {
                        factorial *= f64::from(k.max(1));
                        let y = load * (f64::from(k) - x / service);
                        sum += y.powi(k) / factorial * (-y).exp();
                    }
                    (1.0 - load) * sum
                };
                let (mut low, mut high) = (0.0, 20.0 * service);
                for _ in 0..60 {
                    let middle = f64::midpoint(low, high);
                    if within(middle) < 1.0 - epsilon { low = middle } else { high = middle }
                }
                (within(high) >= 1.0 - epsilon - 1e-6).then_some(high)
            }
            Self::OnOff => {
                // A fluid of rate r waits 0.1 - u + u r / c at u after the link went off, c being
                // 20 Mbit/s when it is on; the quantile is at the share epsilon of the period.
                let share = load * 1e7 / 2e7;
                let u = epsilon * 2.0 * HALF;
                Some(HALF - u * (1.0 - share) + FLUID / 2e7)
            }
            Self::RandomOnOff | Self::Window => None,
        }
    }

    /// Delays of a train at this load.
    pub(crate) fn delays(self, load: f64, seed: u64) -> Box<dyn Iterator<Item = Span>> {
        let mut random = SplitMix64::for_part(seed, 77);
        let bits = self.packet().bits() as f64;
        let (gap, service) = (bits / (1e7 * load), bits / 1e7);
        match self {
            Self::LatencyRate => {
                let mut wait = 0.0_f64;
                Box::new(std::iter::from_fn(move || {
                    let delay = LATENCY + wait + service;
                    wait = (wait + service - gap).max(0.0);
                    Some(Span::from_secs_f64(delay))
                }))
            }
            Self::Exponential => {
                let mut wait = 0.0_f64;
                Box::new(std::iter::from_fn(move || {
                    let sojourn = wait + exponential(&mut random, service);
                    wait = (sojourn - gap).max(0.0);
                    Some(Span::from_secs_f64(sojourn))
                }))
            }
            Self::AmongExponential | Self::AmongEqual => {
                let equal = self == Self::AmongEqual;
                let (mut work, mut until_next) = (0.0_f64, 0.0);
                Box::new(std::iter::from_fn(move || {
                    let delay = work;
                    let mut left = gap;
                    while until_next <= left {
                        left -= until_next;
                        let brings = if equal { service } else { exponential(&mut random, service) };
                        work = (work - until_next).max(0.0) + brings;
                        until_next = exponential(&mut random, service / load);
                    }
                    until_next -= left;
                    work = (work - left).max(0.0);
                    Some(Span::from_secs_f64(delay))
                }))
            }
            Self::OnOff | Self::RandomOnOff => {
                let phase = random.unit() * 2.0 * HALF;
                let mut on = false;
                let drawn = self == Self::RandomOnOff;
                let mut period = move || if drawn { exponential(&mut random, 1.0) } else { HALF };
                let (mut now, mut switches) = (0.0_f64, phase);
                // When the link is free; it serves at 20 Mbit/s when it is on.
                let mut free = 0.0_f64;
                Box::new(std::iter::from_fn(move || {
                    let arrival = now;
                    now += gap;
                    free = free.max(arrival);
                    let mut left = service / 2.0;
                    loop {
                        while free >= switches {
                            on = !on;
                            switches += period();
                        }
                        if on && free + left <= switches {
                            free += left;
                            break;
                        }
                        if on {
                            left -= switches - free;
                        }
                        free = switches;
                    }
                    Some(Span::from_secs_f64(free - arrival))
                }))
            }
            Self::Window => {
                let config = AdaptiveLoopConfig { growth: Growth::Always, ..AdaptiveLoopConfig::default() };
                let packets = ConstantRate::new(self.rate(load), self.packet());
                Box::new(AdaptiveLoop::new(config, packets, seed).expect("a loop").delays())
            }
        }
    }
}

fn exponential(random: &mut SplitMix64, mean: f64) -> f64 {
    -(1.0 - random.unit()).ln() * mean
}
