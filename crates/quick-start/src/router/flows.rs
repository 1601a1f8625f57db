//! Extreme Quick-Start (RFC 4782 section 3.3): grants are remembered flow by flow, unused ones are
//! given back, and sources that ask for more than they use are refused for a while. The RFC
//! describes it in prose only; the rules here are own choices within that prose.

use alloc::vec::Vec;

use core::hash::{BuildHasherDefault, Hasher};
use std::collections::HashMap;

use flowstart_units::{Bytes, Rate, Span, Time};

use crate::{Nonce, RateCode};

/// Constants of Extreme Quick-Start.
///
/// A grant that is used is forgotten at the end of the first interval of the meter that has its
/// data from beginning to end, one to two intervals after the first data: all of it is in the load
/// then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowsConfig {
    /// Grants remembered at most, and denials; default 1024. While there are as many grants,
    /// requests are denied; with more denials, reports of their flows go unchecked.
    pub flows: u32,
    /// A grant that no data follows is given back after this, and a denial is forgotten; default 1
    /// s (longer than most round trips).
    pub unused_after: Span,
    /// Faults (grant not used, not reported if that is expected, or a report of more than was
    /// granted) after which a source is refused; default 3.
    pub faults: u32,
    /// Whether a grant that is used but not reported is a fault; default true.
    pub expect_reports: bool,
    /// A source's faults are forgotten after this without another one; default 60 s.
    pub forgive_after: Span,
    /// Whether a grant counts only as far as its flow is not in the measured load yet; default
    /// true. The Target algorithm counts it twice for up to two intervals.
    pub count_once: bool,
}

impl Default for FlowsConfig {
    fn default() -> Self {
        Self {
            flows: 1024,
            unused_after: Span::from_secs(1),
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

/// A request as it came here, to know its report by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) rate: RateCode,
    pub(super) nonce: Nonce,
}

impl Request {
    /// Whether a report with this nonce, which is the one that was sent, can belong to the request:
    /// whatever routers before took away, the bits of the rate that came here are those that were
    /// sent (RFC 4782 sections 3.1 and 3.4). Who did not see the request guesses right once in
    /// 4^rate.
    fn is_of(&self, sent: Nonce) -> bool {
        self.nonce.agrees_with(sent, self.rate)
    }
}

/// What has been seen of a grant's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Data {
    None,
    /// The first of it, in the present interval.
    Begun,
    /// It began before the present interval.
    Flowing,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    source: u64,
    request: Request,
    rate: RateCode,
    /// What of it is not in the measured load.
    counted: Rate,
    /// When it is dropped if there is no data by then.
    until: Time,
    data: Data,
    reported: bool,
    /// Bytes forwarded in the present interval.
    bytes: u64,
}

impl Entry {
    fn is_over(&self, now: Time) -> bool {
        now >= self.until
    }
}

/// A request that was denied here.
#[derive(Clone, Copy, Debug)]
struct Denied {
    request: Request,
    until: Time,
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
    denied: Map<Denied>,
    sources: Map<Faults>,
    granted: u64,
    /// Faults of all sources so far.
    faults: u64,
    /// Reports so far that belong to no request.
    strays: u64,
    /// No entry ends before.
    next_end: Time,
    /// When denials that are over are dropped next.
    next_forgotten: Time,
}

impl FlowTable {
    pub(super) fn new(config: FlowsConfig, interval: Span) -> Self {
        Self {
            config,
            interval,
            entries: Map::default(),
            denied: Map::default(),
            sources: Map::default(),
            granted: 0,
            faults: 0,
            strays: 0,
            next_end: Time::NEVER,
            next_forgotten: Time::ZERO,
        }
    }

    pub(super) fn granted(&self) -> Rate {
        Rate::from_bps(self.granted)
    }

    pub(super) fn faults(&self) -> u64 {
        self.faults
    }

    pub(super) fn strays(&self) -> u64 {
        self.strays
    }

    fn has_room(&self, taken: usize) -> bool {
        (taken as u64) < u64::from(self.config.flows)
    }

    fn fault(&mut self, now: Time, source: u64) {
        self.faults += 1;
        // Bounded like the grants: when there are too many sources, the faults of all are forgotten
        // rather than memory used up.
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
            if entry.is_over(now) {
                if entry.data == Data::None || expects && !entry.reported {
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
            match entry.data {
                Data::None => {}
                Data::Begun if passed == 1 => entry.data = Data::Flowing,
                Data::Begun | Data::Flowing => (entry.until, self.next_end) = (now, now),
            }
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
    pub(super) fn forwarded(&mut self, key: &FlowKey, bytes: u32, data: bool) {
        if self.entries.is_empty() {
            return;
        }
        if let Some(entry) = self.entries.get_mut(&key.flow) {
            entry.bytes = entry.bytes.saturating_add(u64::from(bytes));
            if data && entry.data == Data::None {
                (entry.data, entry.until) = (Data::Begun, Time::NEVER);
            }
        }
    }

    /// Whether a request of this flow is looked at.
    pub(super) fn accepts(&mut self, now: Time, key: &FlowKey) -> bool {
        self.sweep(now);
        // One grant at a time.
        !self.entries.contains_key(&key.flow) && self.has_room(self.entries.len()) && !self.is_refused(now, key.source)
    }

    /// A request was granted `rate`; zero if it was denied.
    pub(super) fn remember(&mut self, now: Time, key: &FlowKey, request: Request, rate: RateCode) {
        let until = now + self.config.unused_after;
        if rate.is_zero() {
            // Not at each denial: a flood of requests must not cost more than that each of them is
            // looked at.
            if now >= self.next_forgotten {
                self.denied.retain(|_, denied| now < denied.until);
                self.next_forgotten = until;
            }
            if self.has_room(self.denied.len()) {
                self.denied.insert(key.flow, Denied { request, until });
            }
            return;
        }
        let counted = rate.rate();
        self.granted = self.granted.saturating_add(counted.as_bps());
        self.next_end = self.next_end.min(until);
        let source = key.source;
        let entry = Entry { source, request, rate, counted, until, data: Data::None, reported: false, bytes: 0 };
        self.entries.insert(key.flow, entry);
        self.denied.remove(&key.flow);
    }

    /// A report of `rate` with `nonce`, that of the request as it was sent.
    pub(super) fn reported(&mut self, now: Time, rate: RateCode, nonce: Nonce, key: &FlowKey) {
        self.sweep(now);
        match self.entries.get_mut(&key.flow).filter(|entry| entry.request.is_of(nonce)) {
            Some(entry) => {
                let again = core::mem::replace(&mut entry.reported, true);
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
            None => {
                let denied = self.denied.get(&key.flow);
                if denied.is_none_or(|denied| now >= denied.until || !denied.request.is_of(nonce)) {
                    // Whoever sent it did not see the request: neither does it count against the
                    // source, nor does it give anything back.
                    self.strays += 1;
                } else if !rate.is_zero() {
                    // After a denial a report of zero is due.
                    self.fault(now, key.source);
                }
            }
        }
    }
}
