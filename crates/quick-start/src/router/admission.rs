//! How much a router still has to give.

use alloc::boxed::Box;

use flowstart_units::{Rate, Span, Time};

use super::RouterCounts;
use super::flows::{FlowKey, FlowTable, FlowsConfig, Request};
use super::meter::{Meter, MeterConfig};
use super::share::{Share, ShareConfig};
use crate::{Nonce, RateCode};

/// Which grants a router remembers while their data is not in the measured load yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryConfig {
    /// The sum of the grants of the present and the last interval, without regard to flows (Target
    /// algorithm; RFC 4782 appendix D, Scharf and Strotbek). A grant is remembered for one to two
    /// intervals.
    Sums,
    /// Every grant by itself (Extreme Quick-Start, RFC 4782 section 3.3).
    Flows(FlowsConfig),
}

/// Constants of the admission of one output link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionConfig {
    /// Capacity of the link, in bits of IP packets per second.
    pub capacity: Rate,
    /// Share of the capacity in percent that load and grants may reach together, 0 ..= 100;
    /// default 100.
    pub threshold_percent: u32,
    /// How the load is measured; its interval is that of the memory too.
    pub meter: MeterConfig,
    /// How grants are remembered.
    pub memory: MemoryConfig,
    /// Whether no flow is granted more than its fair share; default none: whoever asks first may
    /// get everything (RFC 4782).
    pub share: Option<ShareConfig>,
}

impl AdmissionConfig {
    /// As Scharf and Strotbek: the mean of 1 s, grants remembered for up to 2 s.
    #[must_use]
    pub fn paper(capacity: Rate) -> Self {
        let meter = MeterConfig::Mean { interval: Span::from_secs(1) };
        Self { capacity, threshold_percent: 100, meter, memory: MemoryConfig::Sums, share: None }
    }

    /// As RFC 4782 appendices C and D: the peak of ten samples of 150 ms, grants remembered for up
    /// to 300 ms.
    #[must_use]
    pub fn rfc(capacity: Rate) -> Self {
        let meter = MeterConfig::Peak { sample: Span::from_millis(150), samples: 10 };
        Self { capacity, threshold_percent: 100, meter, memory: MemoryConfig::Sums, share: None }
    }

    /// Extreme Quick-Start with the paper's meter: grants by flow, unused ones given back.
    #[must_use]
    pub fn extreme(capacity: Rate) -> Self {
        Self { memory: MemoryConfig::Flows(FlowsConfig::default()), ..Self::paper(capacity) }
    }

    /// A fair-queuing router with the paper's meter: min(target, fair share) for each flow, every
    /// grant counted once.
    #[must_use]
    pub fn fair(capacity: Rate) -> Self {
        Self { share: Some(ShareConfig::default()), ..Self::extreme(capacity) }
    }
}

/// The last two intervals' grants.
#[derive(Clone, Copy, Debug, Default)]
struct Sums([Rate; 2]);

fn plus(a: Rate, b: Rate) -> Rate {
    Rate::from_bps(a.as_bps().saturating_add(b.as_bps()))
}

#[derive(Clone, Debug)]
enum Memory {
    Sums(Sums),
    Flows(Box<FlowTable>),
}

/// Admission in operation: the Target algorithm (RFC 4782 appendix D).
#[derive(Clone, Debug)]
pub struct Admission {
    limit: Rate,
    meter: Meter,
    memory: Memory,
    share: Option<Box<Share>>,
    counts: RouterCounts,
}

impl Admission {
    /// For one output link.
    #[must_use]
    pub fn new(config: &AdmissionConfig) -> Self {
        let memory = match config.memory {
            MemoryConfig::Sums => Memory::Sums(Sums::default()),
            MemoryConfig::Flows(flows) => Memory::Flows(Box::new(FlowTable::new(flows, config.meter.interval()))),
        };
        let limit = config.capacity.mul_ratio(u64::from(config.threshold_percent.min(100)), 100);
        let share = config.share.map(|share| Box::new(Share::new(share)));
        Self { limit, meter: Meter::new(config.meter), memory, share, counts: RouterCounts::default() }
    }

    /// What load and grants may reach together.
    #[must_use]
    pub fn limit(&self) -> Rate {
        self.limit
    }

    /// The load measured last, as of the last call with a time.
    #[must_use]
    pub fn load(&self) -> Rate {
        self.meter.load()
    }

    /// The sum of the grants remembered, as of the last call with a time.
    #[must_use]
    pub fn granted(&self) -> Rate {
        match &self.memory {
            Memory::Sums(Sums([now, last])) => plus(*now, *last),
            Memory::Flows(flows) => flows.granted(),
        }
    }

    /// What it decided and heard so far.
    #[must_use]
    pub fn counts(&self) -> RouterCounts {
        let (faults, strays) = match &self.memory {
            Memory::Sums(_) => (0, 0),
            Memory::Flows(flows) => (flows.faults(), flows.strays()),
        };
        RouterCounts { faults, strays, ..self.counts }
    }

    /// True if packets must be told apart by flow ([`forwarded_of`](Self::forwarded_of)).
    #[must_use]
    #[inline]
    pub fn wants_flows(&self) -> bool {
        matches!(self.memory, Memory::Flows(_)) || self.share.is_some()
    }

    #[inline]
    fn turn(&mut self, now: Time) {
        let passed = self.meter.turn(now);
        if passed > 0 {
            match &mut self.memory {
                Memory::Sums(Sums([current, last])) => {
                    *last = if passed == 1 { *current } else { Rate::ZERO };
                    *current = Rate::ZERO;
                }
                Memory::Flows(flows) => flows.turn(now, passed),
            }
        }
    }

    /// A packet of `bytes` (of IP) leaves on the link.
    #[inline]
    pub fn forwarded(&mut self, now: Time, bytes: u32) {
        self.turn(now);
        self.meter.count(bytes);
    }

    /// The same for a packet of a known flow; `data` if it has payload.
    #[inline]
    pub fn forwarded_of(&mut self, now: Time, bytes: u32, key: &FlowKey, data: bool) {
        self.forwarded(now, bytes);
        if let Memory::Flows(flows) = &mut self.memory {
            flows.forwarded(key, bytes, data);
        }
        if let Some(share) = self.share.as_mut().filter(|_| data) {
            share.saw(now, key);
        }
    }

    /// Decides on a request and remembers what is granted; zero is a denial. `nonce`, as it came
    /// here, and `key` matter only where [flows](Self::wants_flows) are told apart.
    pub fn admit(&mut self, now: Time, wanted: RateCode, nonce: Nonce, key: &FlowKey) -> RateCode {
        self.turn(now);
        let granted = self.decide(now, wanted, key);
        if granted.is_zero() {
            self.counts.denied += 1;
        } else {
            self.counts.approved += 1;
        }
        match &mut self.memory {
            Memory::Sums(Sums([current, _])) => *current = plus(*current, granted.rate()),
            Memory::Flows(flows) => flows.remember(now, key, Request { rate: wanted, nonce }, granted),
        }
        granted
    }

    fn decide(&mut self, now: Time, wanted: RateCode, key: &FlowKey) -> RateCode {
        if let Memory::Flows(flows) = &mut self.memory
            && !flows.accepts(now, key)
        {
            return RateCode::ZERO;
        }
        let used = plus(self.load(), self.granted());
        let free = Rate::from_bps(self.limit.as_bps().saturating_sub(used.as_bps()));
        let most = self.share.as_mut().map_or(free, |share| share.of(now, self.limit, free, key));
        let granted = RateCode::floor(most).min(wanted);
        if let Some(share) = self.share.as_mut().filter(|_| !granted.is_zero()) {
            share.saw(now, key);
        }
        granted
    }

    /// A report of approved rate passes, with the nonce of the request as it was sent. With
    /// [`MemoryConfig::Flows`], what others on the path did not grant is given back, a report of
    /// more than was granted counts against its source, and one whose nonce is of no request
    /// changes nothing.
    pub fn reported(&mut self, now: Time, rate: RateCode, nonce: Nonce, key: &FlowKey) {
        self.turn(now);
        self.counts.reports += 1;
        if let Memory::Flows(flows) = &mut self.memory {
            flows.reported(now, rate, nonce, key);
        }
    }
}
