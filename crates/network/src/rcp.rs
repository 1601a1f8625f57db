//! A router of RCP (Dukkipati and McKeown, "Why flow-completion time is the right metric for
//! congestion control", 2006): one rate for all flows of a link, corrected every few milliseconds
//! so that the link is full and its queue empty. It knows nothing of single flows.

use std::fmt;

use flowstart_units::{Rate, Span, Time};

/// Constants of a router of RCP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RcpConfig {
    /// What the link carries; above 0.
    pub capacity: Rate,
    /// Share of the capacity that is free which the next round trip hands out; above 0, at most 1
    /// (authors' simulations: 0.4).
    pub alpha: f64,
    /// Share of the queue that is to be gone in the next round trip; above 0, at most 1 (authors'
    /// simulations: 0.4).
    pub beta: f64,
    /// Time between corrections, but at most a round trip; above 0 (authors' simulations: 10 ms).
    pub interval: Span,
    /// Rate at first, in percent of the capacity; 1 ..= 100 (authors' simulations: 5).
    pub initial_percent: u32,
    /// Round-trip time that is assumed until packets tell one; above 0 (authors' simulations: 200
    /// ms).
    pub assumed_rtt: Span,
}

/// The rate never falls below this many packets per round trip (authors' simulations).
const LEAST_PACKETS: f64 = 0.01;

/// Bits of a full packet, for [`LEAST_PACKETS`].
const PACKET_BITS: f64 = 12_000.0;

impl RcpConfig {
    /// The constants of the authors' simulations, for a link of `capacity`.
    #[must_use]
    pub fn new(capacity: Rate) -> Self {
        Self {
            capacity,
            alpha: 0.4,
            beta: 0.4,
            interval: Span::from_millis(10),
            initial_percent: 5,
            assumed_rtt: Span::from_millis(200),
        }
    }

    /// Checks that the router can be simulated.
    ///
    /// # Errors
    /// The first field that is out of range, and what would be right.
    pub fn validate(&self) -> Result<(), RcpError> {
        let wrong = |field, right| Err(RcpError { field, right });
        let is_share = |x: f64| x > 0.0 && x <= 1.0;
        if self.capacity.as_bps() == 0 || self.capacity.is_unlimited() {
            return wrong("capacity", "is a rate above 0");
        }
        if !is_share(self.alpha) {
            return wrong("alpha", "is above 0 and at most 1");
        }
        if !is_share(self.beta) {
            return wrong("beta", "is above 0 and at most 1");
        }
        if self.interval.is_zero() {
            return wrong("interval", "is above 0");
        }
        if !(1..=100).contains(&self.initial_percent) {
            return wrong("initial_percent", "is 1 to 100");
        }
        if self.assumed_rtt.is_zero() {
            return wrong("assumed_rtt", "is above 0");
        }
        Ok(())
    }
}

/// Why a router of RCP cannot be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RcpError {
    field: &'static str,
    right: &'static str,
}

impl RcpError {
    /// The field of [`RcpConfig`] that is out of range.
    #[must_use]
    pub fn field(&self) -> &'static str {
        self.field
    }
}

impl fmt::Display for RcpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.right)
    }
}

impl std::error::Error for RcpError {}

/// A router of RCP in operation. It is told of every packet that arrives, and asked for the rate
/// that a packet which leaves is to carry.
#[derive(Clone, Debug)]
pub struct Rcp {
    config: RcpConfig,
    /// Bits per second of the link, and those for each flow.
    capacity: f64,
    share: f64,
    /// Moving average of the round-trip times that packets tell, in seconds.
    rtt: f64,
    /// A packet has told one.
    rtt_known: bool,
    /// When the present interval began.
    begun: Time,
    /// How long it is.
    interval: Span,
    /// Bytes that arrived in it.
    arrived: u64,
    /// Sum of the round-trip times told in it, each times the bytes of its packet, and those bytes.
    rtts: f64,
    rtt_bytes: u64,
}

impl Rcp {
    /// A router that has seen nothing yet.
    #[must_use]
    pub fn new(config: &RcpConfig) -> Self {
        let capacity = config.capacity.as_bps() as f64;
        Self {
            config: *config,
            capacity,
            share: capacity * f64::from(config.initial_percent) / 100.0,
            rtt: config.assumed_rtt.as_secs_f64(),
            rtt_known: false,
            begun: Time::ZERO,
            interval: config.interval.min(config.assumed_rtt),
            arrived: 0,
            rtts: 0.0,
            rtt_bytes: 0,
        }
    }

    /// A packet of `bytes` bytes arrives, whose flow says that its round-trip time is `rtt`; before
    /// it, `queued` bytes are in the queue.
    pub fn arrived(&mut self, now: Time, bytes: u32, rtt: Option<Span>, queued: u64) {
        self.catch_up(now, queued);
        self.arrived = self.arrived.saturating_add(u64::from(bytes));
        if let Some(rtt) = rtt {
            self.rtts += rtt.as_secs_f64() * f64::from(bytes);
            self.rtt_bytes += u64::from(bytes);
        }
    }

    /// What the link has for each of its flows, with `queued` bytes in the queue.
    pub fn share(&mut self, now: Time, queued: u64) -> Rate {
        self.catch_up(now, queued);
        Rate::from_bps(self.share as u64)
    }

    /// Corrects the rate for every interval that is over.
    fn catch_up(&mut self, now: Time, queued: u64) {
        while now.since(self.begun) >= self.interval {
            self.begun += self.interval;
            self.correct(queued);
            // An idle link hands out all it has, and goes on to do so.
            if self.share >= self.capacity && queued == 0 && self.arrived == 0 {
                let whole = now.since(self.begun).as_nanos() / self.interval.as_nanos();
                self.begun += self.interval * whole;
            }
        }
    }

    /// The end of an interval: R <- R (1 + T/d (alpha (C - y) - beta q/d) / C), where the number of
    /// flows is taken to be C / R.
    fn correct(&mut self, queued: u64) {
        let interval = self.interval.as_secs_f64();
        if self.rtt_bytes > 0 {
            let mean = self.rtts / self.rtt_bytes as f64;
            let weight = if self.rtt_known { (interval / self.rtt).min(1.0) } else { 1.0 };
            self.rtt += weight * (mean - self.rtt);
            self.rtt_known = true;
        }
        let load = self.arrived as f64 * 8.0 / interval;
        let RcpConfig { alpha, beta, .. } = self.config;
        let spare = alpha * (self.capacity - load) - beta * (queued as f64 * 8.0 / self.rtt);
        let share = self.share * (1.0 + interval / self.rtt * spare / self.capacity);
        let least = LEAST_PACKETS * PACKET_BITS / self.rtt;
        self.share = share.min(self.capacity).max(least.min(self.capacity));
        self.interval = self.config.interval.min(Span::from_secs_f64(self.rtt)).max(Span::from_nanos(1));
        (self.arrived, self.rtts, self.rtt_bytes) = (0, 0.0, 0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CAPACITY: Rate = Rate::from_mbps(10);
    const RTT: Span = Span::from_millis(100);

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// The share after `ms` milliseconds, in each of which `bytes` bytes arrive and `queued` wait.
    fn after(ms: u64, bytes: u32, queued: u64) -> f64 {
        let mut router = Rcp::new(&RcpConfig::new(CAPACITY));
        for now in 0..ms {
            router.arrived(at(now), bytes, Some(RTT), queued);
        }
        router.share(at(ms), queued).as_mbps_f64()
    }

    #[test]
    fn one_correction_is_that_of_the_formula() {
        // 5 of 10 Mbit/s arrive, and 10 kB wait; the first correction knows a round-trip time of
        // 100 ms: 0.5 (1 + 0.1 (0.4 (10 - 5) - 0.4 * 0.8) / 10).
        let expected = 0.5 * (1.0 + 0.1 * (0.4 * 5.0 - 0.4 * 0.8) / 10.0);
        assert!((after(10, 625, 10_000) - expected).abs() < 1e-6, "{}", after(10, 625, 10_000));
    }

    #[test]
    fn an_idle_link_has_all_of_it_for_the_next_flow_however_long_ago_it_was_busy() {
        let mut router = Rcp::new(&RcpConfig::new(CAPACITY));
        assert_eq!(router.share(at(9), 0), Rate::from_bps(500_000));
        for seconds in [60, 100_000_000] {
            assert_eq!(router.share(Time::ZERO + Span::from_secs(seconds), 0), CAPACITY);
        }
    }

    #[test]
    fn a_full_link_without_a_queue_keeps_its_rate_and_a_queue_lowers_it() {
        assert!((after(1000, 1250, 0) - 0.5).abs() < 1e-9, "{}", after(1000, 1250, 0));
        assert!(after(1000, 1250, 20_000) < 0.4);
        assert!(after(1000, 1000, 0) > 0.6);
    }

    #[test]
    fn constants_out_of_range_are_named() {
        let good = RcpConfig::new(CAPACITY);
        assert_eq!(good.validate(), Ok(()));
        let wrong = [
            ("capacity", RcpConfig { capacity: Rate::ZERO, ..good }),
            ("alpha", RcpConfig { alpha: 0.0, ..good }),
            ("alpha", RcpConfig { alpha: f64::NAN, ..good }),
            ("beta", RcpConfig { beta: 1.1, ..good }),
            ("interval", RcpConfig { interval: Span::ZERO, ..good }),
            ("initial_percent", RcpConfig { initial_percent: 0, ..good }),
            ("assumed_rtt", RcpConfig { assumed_rtt: Span::ZERO, ..good }),
        ];
        for (field, config) in wrong {
            assert_eq!(config.validate().unwrap_err().field(), field);
        }
    }

    proptest! {
        #[test]
        fn the_rate_is_never_more_than_the_capacity_nor_nothing_whatever_arrives(
            packets in prop::collection::vec((0_u64..50_000_000, any::<u16>(), any::<u32>(), any::<u32>()), 1..200),
        ) {
            let mut router = Rcp::new(&RcpConfig::new(CAPACITY));
            let mut now = Time::ZERO;
            for (wait, bytes, queued, rtt) in packets {
                now += Span::from_nanos(wait);
                let rtt = (rtt % 3 > 0).then(|| Span::from_nanos(u64::from(rtt)));
                router.arrived(now, u32::from(bytes), rtt, queued.into());
                let share = router.share(now, queued.into());
                prop_assert!(share > Rate::ZERO && share <= CAPACITY, "{share}");
            }
        }
    }
}
