//! A router that knows Quick-Start (RFC 4782 section 3.3): forwards packets of IPv4 and IPv6,
//! measures its output link, and decides on requests.

mod admission;
mod flows;
mod meter;
mod share;

pub use admission::{Admission, AdmissionConfig, MemoryConfig};
pub use flows::{FlowKey, FlowsConfig};
pub use meter::MeterConfig;
pub use share::ShareConfig;

use flowstart_units::{Span, Time};
use rand_core::Rng;

use crate::RateCode;
use crate::wire::{Function, Ipv4, Ipv6, Malformed, OptionMut};

/// How a request is denied; the receiver or the sender notices each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Denial {
    /// Rate, Quick-Start TTL and nonce become zero (RFC 4782 section 3.3: should).
    #[default]
    Zero,
    /// The option stays as it is: the TTL difference tells.
    Leave,
    /// The option is overwritten with no-operation options or padding.
    Remove,
}

/// Constants of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouterConfig {
    /// Admission of the output link.
    pub admission: AdmissionConfig,
    /// How requests are denied; default zeroing.
    pub denial: Denial,
    /// By how much the TTL falls; default 1.
    pub hops: u8,
    /// Requests per second that are looked at, so that floods of options cost little; others pass
    /// unchanged, which denies them. Default 10,000 (own choice).
    pub requests_per_second: u32,
    /// Requests looked at in a row, if there were fewer before; default 100 (own choice).
    pub burst: u32,
    /// Whether packets of one flow take several output links: nothing may be approved then (RFC
    /// 4782 section 3.3); default false.
    pub per_packet_multipath: bool,
}

impl RouterConfig {
    /// With this admission and defaults otherwise.
    #[must_use]
    pub fn new(admission: AdmissionConfig) -> Self {
        Self {
            admission,
            denial: Denial::Zero,
            hops: 1,
            requests_per_second: 10_000,
            burst: 100,
            per_packet_multipath: false,
        }
    }
}

/// Limits how many requests are looked at: the virtual scheduling algorithm (ITU-T I.371,
/// appendix).
#[derive(Clone, Copy, Debug)]
struct Limiter {
    gap: Span,
    tolerance: Span,
    expected: Time,
}

impl Limiter {
    fn new(per_second: u32, burst: u32) -> Self {
        let gap = Span::from_secs(1) / u64::from(per_second);
        Self { gap, tolerance: gap * u64::from(burst.saturating_sub(1)), expected: Time::ZERO }
    }

    fn allows(&mut self, now: Time) -> bool {
        let early = self.expected.since(now);
        let allowed = early <= self.tolerance && self.gap < Span::MAX;
        if allowed {
            self.expected = self.expected.max(now) + self.gap;
        }
        allowed
    }
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// It goes on.
    Forwarded,
    /// It goes on; its request was granted this much, zero for a denial.
    Decided(RateCode),
    /// Its TTL is used up.
    Expired,
    /// It is no packet of IPv4 or IPv6.
    Malformed,
}

/// Counts of what a router did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouterCounts {
    /// Requests approved, at any rate.
    pub approved: u64,
    /// Requests denied after they were looked at.
    pub denied: u64,
    /// Requests not looked at because there were too many.
    pub ignored: u64,
    /// Reports seen.
    pub reports: u64,
    /// Grants not used or, if that is expected, not reported, and reports of another rate than was
    /// granted or reported before; only a router that remembers [flows](MemoryConfig::Flows) can
    /// tell.
    pub faults: u64,
    /// Reports that belong to no request remembered, or whose nonce is not that of the request; the
    /// same routers can tell. They change nothing, so that nobody can return somebody else's grant,
    /// or bring faults upon a source, without having seen the request.
    pub strays: u64,
}

/// A router in operation; `R` makes the nonces it writes.
#[derive(Clone, Debug)]
pub struct Router<R> {
    admission: Admission,
    denial: Denial,
    hops: u8,
    multipath: bool,
    limiter: Limiter,
    /// What its admission did not count: requests that it was not asked about.
    counts: RouterCounts,
    random: R,
}

/// Lowers the TTL of a packet by `hops`, and nothing more: what every router does.
#[inline]
pub fn forward_plain(packet: &mut [u8], hops: u8) -> Forwarding {
    let ttl = match packet.first().map(|byte| byte >> 4) {
        Some(4) => Ipv4::new(packet).map(|mut packet| packet.lower_ttl(hops)),
        _ => Ipv6::new(packet).map(|mut packet| packet.lower_hop_limit(hops)),
    };
    match ttl {
        Ok(0) => Forwarding::Expired,
        Ok(_) => Forwarding::Forwarded,
        Err(_) => Forwarding::Malformed,
    }
}

impl<R: Rng> Router<R> {
    /// A router for one output link.
    #[must_use]
    pub fn new(config: &RouterConfig, random: R) -> Self {
        Self {
            admission: Admission::new(&config.admission),
            denial: config.denial,
            hops: config.hops.max(1),
            multipath: config.per_packet_multipath,
            limiter: Limiter::new(config.requests_per_second, config.burst),
            counts: RouterCounts::default(),
            random,
        }
    }

    /// Its admission.
    #[must_use]
    pub fn admission(&self) -> &Admission {
        &self.admission
    }

    /// What it did.
    #[must_use]
    pub fn counts(&self) -> RouterCounts {
        let decided = self.admission.counts();
        RouterCounts { denied: decided.denied + self.counts.denied, ignored: self.counts.ignored, ..decided }
    }

    /// Forwards a packet of IP that leaves at `now`: lowers its TTL, counts its bytes, and looks at
    /// a Quick-Start option.
    #[inline]
    pub fn forward(&mut self, now: Time, packet: &mut [u8]) -> Forwarding {
        let key = if self.admission.wants_flows() { flow_of(packet) } else { None };
        match packet.first().map(|byte| byte >> 4) {
            Some(4) => {
                let Ok(mut packet) = Ipv4::new(packet) else { return Forwarding::Malformed };
                if packet.lower_ttl(self.hops) == 0 {
                    return Forwarding::Expired;
                }
                self.count(now, u32::from(packet.total_length()), key);
                if !packet.has_options() {
                    return Forwarding::Forwarded;
                }
                let key = key.map(|(key, _)| key).unwrap_or_default();
                let decided = packet.change_option(|option| self.look(now, option, &key));
                self.conclude(decided, || packet.remove_option())
            }
            _ => {
                let Ok(mut packet) = Ipv6::new(packet) else { return Forwarding::Malformed };
                if packet.lower_hop_limit(self.hops) == 0 {
                    return Forwarding::Expired;
                }
                self.count(now, packet.total_length(), key);
                if !packet.has_options() {
                    return Forwarding::Forwarded;
                }
                let key = key.map(|(key, _)| key).unwrap_or_default();
                let decided = packet.change_option(|option| self.look(now, option, &key));
                self.conclude(decided, || packet.remove_option())
            }
        }
    }

    #[inline]
    fn count(&mut self, now: Time, bytes: u32, key: Option<(FlowKey, bool)>) {
        match key {
            Some((key, data)) => self.admission.forwarded_of(now, bytes, &key, data),
            None => self.admission.forwarded(now, bytes),
        }
    }

    /// A Quick-Start option passes; what was decided if it is a request that was looked at.
    fn look(&mut self, now: Time, mut option: OptionMut<'_>, key: &FlowKey) -> Option<RateCode> {
        let rate = option.rate();
        match option.function() {
            Function::Request if rate.is_zero() => None,
            Function::Request => {
                if !self.limiter.allows(now) {
                    self.counts.ignored += 1;
                    return None;
                }
                let granted = if self.multipath {
                    self.counts.denied += 1;
                    RateCode::ZERO
                } else {
                    self.admission.admit(now, rate, option.nonce(), key)
                };
                if granted.is_zero() {
                    if self.denial == Denial::Zero {
                        option.zero();
                    }
                } else {
                    let random = if granted < rate { self.random.next_u32() } else { 0 };
                    option.approve(granted, self.hops, random);
                }
                Some(granted)
            }
            Function::Report => {
                self.admission.reported(now, rate, option.nonce(), key);
                None
            }
            Function::Unassigned(_) => None,
        }
    }

    fn conclude(
        &self,
        decided: Result<Option<Option<RateCode>>, Malformed>,
        remove: impl FnOnce() -> Result<bool, Malformed>,
    ) -> Forwarding {
        // A header with impossible options is none of this router's business; it forwards it.
        let Ok(Some(Some(granted))) = decided else { return Forwarding::Forwarded };
        if granted.is_zero() && self.denial == Denial::Remove {
            // It was there a moment ago.
            let _ = remove();
        }
        Forwarding::Decided(granted)
    }
}

/// Protocol numbers.
const TCP: u8 = 6;
const HOP_BY_HOP: u8 = 0;

/// Bits of the field of flags and offset of IPv4 that are the offset (RFC 791 section 3.1).
const FRAGMENT_OFFSET: u64 = 0x1fff;

/// The flow of a packet, and whether it carries payload; `None` for what is neither IPv4 nor IPv6
/// or is cut off. Of TCP's ports only the first fragment of IPv4 knows (RFC 791 section 3.2); the
/// others count as a flow without.
#[inline]
fn flow_of(packet: &[u8]) -> Option<(FlowKey, bool)> {
    let (source, both, protocol, header, total, is_first) = match packet.first()? >> 4 {
        4 => {
            let fixed: &[u8; 20] = packet.first_chunk()?;
            let source = number(&fixed[12..16]);
            let both = mixed(source, number(&fixed[16..20]));
            let is_first = number(&fixed[6..8]) & FRAGMENT_OFFSET == 0;
            (source, both, fixed[9], u64::from(fixed[0] & 0x0f) * 4, number(&fixed[2..4]), is_first)
        }
        6 => {
            let fixed: &[u8; 40] = packet.first_chunk()?;
            let source = mixed(number(&fixed[8..16]), number(&fixed[16..24]));
            let both = mixed(mixed(source, number(&fixed[24..32])), number(&fixed[32..40]));
            let (next, header) = match fixed[6] {
                HOP_BY_HOP => (*packet.get(40)?, 48 + 8 * u64::from(*packet.get(41)?)),
                next => (next, 40),
            };
            (source, both, next, header, number(&fixed[4..6]) + 40, true)
        }
        _ => return None,
    };
    let (ports, end) = if protocol == TCP && is_first {
        let tcp: &[u8; 13] = packet.get(header as usize..)?.first_chunk()?;
        (number(&tcp[..4]), header + u64::from(tcp[12] >> 4) * 4)
    } else {
        (0, header)
    };
    let flow = mixed(both, u64::from(protocol) << 32 | ports);
    Some((FlowKey { flow, source }, total > end))
}

/// Up to eight bytes in network byte order.
#[inline]
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// In the manner of FNV-1a, over words of eight bytes; the low bits of a product know only the low
/// bits of its factors, so they change places.
#[inline]
fn mixed(state: u64, word: u64) -> u64 {
    (state ^ word).wrapping_add(0xcbf2_9ce4_8422_2325).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29)
}
