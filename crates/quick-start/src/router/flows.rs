//! Extreme Quick-Start (RFC 4782 section 3.3): grants are remembered flow by flow, unused ones are given back, and sources that ask for more than
//! they use are refused for a while. The RFC describes it in prose only; the rules here are own choices within that prose.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use flowstart_units::{Bytes, Rate, Span, Time};

use crate::RateCode;

/// Constants of Extreme Quick-Start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowsConfig {
    /// Grants remembered at most; while the table is full, requests are denied. Default 1024.
    pub flows: u32,
    /// A grant that no data follows is given back after this; default 1 s (longer than most round trips).
    pub unused_after: Span,
    /// A grant that is used is forgotten this long after its first data. Default 2 s: a whole interval of the paper's meter lies between, so that the load
    /// contains all of it by then.
    pub forget_after: Span,
    /// Faults (grant not used, not reported if that is expected, or a report of more than was granted) after which a source is refused; default 3.
    pub faults: u32,
    /// Whether a grant that is used but not reported is a fault; default true.
    pub expect_reports: bool,
    /// A source's faults are forgotten after this without another one; default 60 s.
    pub forgive_after: Span,
    /// Whether a grant counts only as far as its flow is not in the measured load yet; default true. The Target algorithm counts it twice for up
    /// to two intervals.
    pub count_once: bool,
}

impl Default for FlowsConfig {
    fn default() -> Self {
        Self {
            flows: 1024,
            unused_after: Span::from_secs(1),
            forget_after: Span::from_secs(2),
            faults: 3,
            expect_reports: true,
            forgive_after: Span::from_secs(60),
            count_once: true,
        }
    }
}

/// A flow and its source, as well-mixed hashes or numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowKey {
    /// The flow in the direction of the request.
    pub flow: u64,
    /// The host that sends it.
    pub source: u64,
}

/// Keys are mixed already, or are small numbers of a simulation: one multiplication is enough.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, n: u64) {
        // 2^64 divided by the golden ratio (Knuth's multiplicative hashing).
        self.0 = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

type Map<T> = HashMap<u64, T, BuildHasherDefault<Mixed>>;

#[derive(Clone, Copy, Debug)]
struct Entry {
    source: u64,
    rate: RateCode,
    /// What of it is not in the measured load.
    counted: Rate,
    /// When it is dropped.
    until: Time,
    used: bool,
    reported: bool,
    /// Bytes forwarded in the present interval.
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Faults {
    count: u32,
    last: Time,
}

#[derive(Clone, Debug)]
pub(super) struct FlowTable {
    config: FlowsConfig,
    interval: Span,
    entries: Map<Entry>,
    sources: Map<Faults>,
    granted: u64,
    /// Faults of all sources so far.
    faults: u64,
    /// No entry ends before.
    next_end: Time,
}

impl FlowTable {
    pub(super) fn new(config: FlowsConfig, interval: Span) -> Self {
        Self {
            config,
            interval,
            entries: Map::default(),
            sources: Map::default(),
            granted: 0,
            faults: 0,
            next_end: Time::NEVER,
        }
    }

    pub(super) fn granted(&self) -> Rate {
        Rate::from_bps(self.granted)
    }

    pub(super) fn faults(&self) -> u64 {
        self.faults
    }

    fn is_full(&self) -> bool {
        self.entries.len() as u64 >= u64::from(self.config.flows)
    }

    fn fault(&mut self, now: Time, source: u64) {
        self.faults += 1;
        // Bounded like the grants: when there are too many sources, the faults of all are forgotten rather than memory used up.
        if self.sources.len() as u64 >= 4 * u64::from(self.config.flows.max(1)) {
            self.sources.clear();
        }
        let faults = self.sources.entry(source).or_insert(Faults { count: 0, last: now });
        if now.since(faults.last) >= self.config.forgive_after {
            faults.count = 0;
        }
        *faults = Faults { count: faults.count.saturating_add(1), last: now };
    }

    fn is_refused(&self, now: Time, source: u64) -> bool {
        self.sources.get(&source).is_some_and(|faults| {
            faults.count >= self.config.faults && now.since(faults.last) < self.config.forgive_after
        })
    }

    /// Drops the grants whose time is over.
    fn sweep(&mut self, now: Time) {
        if now < self.next_end {
            return;
        }
        let expects = self.config.expect_reports;
        let mut faulty = Vec::new();
        let (mut granted, mut next_end) = (0_u64, Time::NEVER);
        self.entries.retain(|_, entry| {
            if now >= entry.until {
                if !entry.used || expects && !entry.reported {
                    faulty.push((entry.until, entry.source));
                }
                return false;
            }
            granted = granted.saturating_add(entry.counted.as_bps());
            next_end = next_end.min(entry.until);
            true
        });
        (self.granted, self.next_end) = (granted, next_end);
        faulty.sort_unstable();
        for (at, source) in faulty {
            self.fault(at, source);
        }
    }

    /// `passed` intervals ended: what flows sent in the last of them is in the load now.
    pub(super) fn turn(&mut self, now: Time, passed: u64) {
        let mut granted = 0_u64;
        for entry in self.entries.values_mut() {
            let bytes = if passed == 1 { entry.bytes } else { 0 };
            entry.bytes = 0;
            if self.config.count_once {
                let metered = Rate::of(Bytes::new(bytes), self.interval);
                entry.counted = Rate::from_bps(entry.rate.rate().as_bps().saturating_sub(metered.as_bps()));
            }
            granted = granted.saturating_add(entry.counted.as_bps());
        }
        self.granted = granted;
        self.sweep(now);
    }

    #[inline]
    pub(super) fn forwarded(&mut self, now: Time, key: &FlowKey, bytes: u32, data: bool) {
        if self.entries.is_empty() {
            return;
        }
        if let Some(entry) = self.entries.get_mut(&key.flow) {
            entry.bytes = entry.bytes.saturating_add(u64::from(bytes));
            if data && !entry.used {
                entry.used = true;
                entry.until = now + self.config.forget_after;
            }
        }
    }

    /// Whether a request of this flow is looked at.
    pub(super) fn accepts(&mut self, now: Time, key: &FlowKey) -> bool {
        self.sweep(now);
        // One grant at a time.
        !self.entries.contains_key(&key.flow) && !self.is_full() && !self.is_refused(now, key.source)
    }

    pub(super) fn remember(&mut self, now: Time, key: &FlowKey, rate: RateCode) {
        let until = now + self.config.unused_after;
        let counted = rate.rate();
        self.granted = self.granted.saturating_add(counted.as_bps());
        self.next_end = self.next_end.min(until);
        let entry = Entry { source: key.source, rate, counted, until, used: false, reported: false, bytes: 0 };
        self.entries.insert(key.flow, entry);
    }

    pub(super) fn reported(&mut self, now: Time, rate: RateCode, key: &FlowKey) {
        self.sweep(now);
        let Some(entry) = self.entries.get_mut(&key.flow) else {
            // After a denial a report of zero is due.
            if !rate.is_zero() {
                self.fault(now, key.source);
            }
            return;
        };
        let again = std::mem::replace(&mut entry.reported, true);
        if rate > entry.rate || again && rate != entry.rate {
            return self.fault(now, key.source);
        }
        let back = entry.rate.rate().as_bps() - rate.rate().as_bps();
        let before = entry.counted.as_bps();
        entry.rate = rate;
        entry.counted = Rate::from_bps(before.saturating_sub(back));
        self.granted -= before - entry.counted.as_bps();
        if rate.is_zero() {
            self.entries.remove(&key.flow);
        }
    }
}
