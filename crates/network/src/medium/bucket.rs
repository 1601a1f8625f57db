//! Token buckets: to shape (Linux `tbf`) and to police (Linux `act_police`).

use flowstart_units::{Bytes, Rate, Span, Time};

/// Work per byte, in bits times nanoseconds per second, so that a rate in bit/s times nanoseconds
/// is exact.
const WORK_PER_BYTE: u128 = 8 * 1_000_000_000;

/// A shaper: packets leave as tokens allow, at the link's capacity in the long run. Anything may
/// queue in front of it. Linux calls it `tbf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct ShaperConfig {
    /// Depth of the bucket: so much may leave at once after an idle time; at least one packet with
    /// what the link adds to it, at least 1500 B. In `tbf`, `burst`.
    pub burst: Bytes,
    /// Most rate while tokens last (`peakrate`); default: none, a burst leaves at the line's rate.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub peak: Option<Rate>,
    /// Depth of the bucket of the peak rate, at least one packet; default 1600 B (`mtu`, which tc
    /// wants to be set).
    #[cfg_attr(feature = "serde", serde(default = "peak_burst"))]
    pub peak_burst: Bytes,
    /// Rate of the wire behind the shaper; default unlimited.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub line: Option<Rate>,
}

#[cfg(feature = "serde")]
fn peak_burst() -> Bytes {
    ShaperConfig::PEAK_BURST
}

impl ShaperConfig {
    pub(super) const PEAK_BURST: Bytes = Bytes::new(1600);

    /// A bucket of this depth, without a peak rate, on an unlimited line.
    #[must_use]
    pub fn new(burst: Bytes) -> Self {
        Self { burst, peak: None, peak_burst: Self::PEAK_BURST, line: None }
    }
}

/// A policer: packets for which there are no tokens are lost on arrival, before the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct PolicerConfig {
    /// Tokens per time.
    pub rate: Rate,
    /// Depth of the bucket, at least one packet with what the link adds to it, at least 1500 B.
    pub burst: Bytes,
}

/// A bucket of tokens, full at first. Arithmetic is exact: in the long run not a bit too much or
/// too little passes.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    rate: u128,
    depth: u128,
    /// What was there at `at`.
    tokens: u128,
    at: Time,
}

impl Bucket {
    fn new(rate: Rate, depth: Bytes) -> Self {
        let depth = u128::from(depth.get()) * WORK_PER_BYTE;
        Self { rate: u128::from(rate.as_bps()), depth, tokens: depth, at: Time::ZERO }
    }

    /// Tokens at `time`, which is not before the last packet's.
    fn tokens(&self, time: Time) -> u128 {
        let grown = self.rate.saturating_mul(u128::from(time.since(self.at).as_nanos()));
        self.depth.min(self.tokens.saturating_add(grown))
    }

    /// When there will be enough for a packet, `from` on. A packet larger than the bucket passes
    /// when it is full.
    fn when(&self, from: Time, bytes: u32) -> Time {
        let from = from.max(self.at);
        let wanted = (u128::from(bytes) * WORK_PER_BYTE).min(self.depth);
        let missing = wanted.saturating_sub(self.tokens(from));
        if missing == 0 {
            return from;
        }
        match missing.div_ceil(self.rate.max(1)).try_into() {
            Ok(nanos) if self.rate > 0 => from + Span::from_nanos(nanos),
            _ => Time::NEVER,
        }
    }

    /// A packet takes its tokens. One that is larger than the bucket owes what was not there: the
    /// bucket is empty until that has come.
    fn take(&mut self, time: Time, bytes: u32) {
        let cost = u128::from(bytes) * WORK_PER_BYTE;
        let tokens = self.tokens(time);
        let owed = cost.saturating_sub(tokens);
        (self.tokens, self.at) = (tokens.saturating_sub(cost), time);
        if owed > 0 {
            let nanos = owed.div_ceil(self.rate.max(1));
            self.tokens = nanos * self.rate.max(1) - owed;
            self.at = u64::try_from(nanos).map_or(Time::NEVER, |nanos| time + Span::from_nanos(nanos));
        }
    }
}

/// A shaper in operation.
#[derive(Clone, Debug)]
pub(super) struct Shaper {
    sustained: Bucket,
    peak: Option<Bucket>,
}

impl Shaper {
    pub(super) fn new(config: &ShaperConfig, rate: Rate) -> Self {
        let peak = config.peak.map(|peak| Bucket::new(peak, config.peak_burst));
        Self { sustained: Bucket::new(rate, config.burst), peak }
    }

    /// When a packet that is at the head of the queue at `now` may leave; its tokens are taken.
    pub(super) fn admit(&mut self, now: Time, bytes: u32) -> Time {
        let mut time = self.sustained.when(now, bytes);
        if let Some(peak) = &mut self.peak {
            time = peak.when(time, bytes);
            peak.take(time, bytes);
        }
        self.sustained.take(time, bytes);
        time
    }
}

/// A policer in operation.
#[derive(Clone, Debug)]
pub(super) struct Policer(Bucket);

impl Policer {
    pub(super) fn new(config: &PolicerConfig) -> Self {
        Self(Bucket::new(config.rate, config.burst))
    }

    /// True if a packet passes; then its tokens are taken.
    pub(super) fn passes(&mut self, now: Time, bytes: u32) -> bool {
        let passes = self.0.tokens(now) >= u128::from(bytes) * WORK_PER_BYTE;
        if passes {
            self.0.take(now, bytes);
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shaper(peak: Option<Rate>) -> Shaper {
        Shaper::new(&ShaperConfig { peak, ..ShaperConfig::new(Bytes::new(3_000)) }, Rate::from_mbps(8))
    }

    #[test]
    fn a_full_bucket_lets_its_depth_out_at_once_and_then_a_packet_per_its_time() {
        let mut shaper = shaper(None);
        // 8 Mbit/s: a byte per microsecond.
        let left: Vec<u64> = (0..4).map(|_| shaper.admit(Time::ZERO, 1_500).as_nanos() / 1_000).collect();
        assert_eq!(left, [0, 0, 1_500, 3_000]);
    }

    #[test]
    fn a_peak_rate_spreads_the_burst() {
        // 16 Mbit/s with a bucket of 1600 B: 1500 B at once, the next when 1500 B are there.
        let mut shaper = shaper(Some(Rate::from_mbps(16)));
        let mut now = Time::ZERO;
        let left: Vec<u64> = (0..4)
            .map(|_| {
                now = shaper.admit(now, 1_500);
                now.as_nanos() / 1_000
            })
            .collect();
        assert_eq!(left, [0, 700, 1_500, 3_000]);
    }

    #[test]
    fn a_policer_lets_pass_what_has_tokens_and_takes_none_for_what_does_not_pass() {
        let mut policer = Policer::new(&PolicerConfig { rate: Rate::from_mbps(8), burst: Bytes::new(2_000) });
        let at = |micros: u64| Time::from_nanos(micros * 1_000);
        let passed: Vec<bool> = [0, 0, 999, 1_000, 1_000].map(|time| policer.passes(at(time), 1_500)).to_vec();
        assert_eq!(passed, [true, false, false, true, false]);
    }

    /// Packets larger than the buckets pass when these are full, and owe what was not there.
    #[test]
    fn packets_larger_than_the_bucket_leave_at_the_rate_in_the_long_run() {
        // 8 Mbit/s: a byte per microsecond, 3000 B deep; a peak of 16 Mbit/s, 1600 B deep.
        let left = |peak| {
            let (mut shaper, mut now) = (shaper(peak), Time::ZERO);
            let times = (0..4).map(|_| {
                now = shaper.admit(now, 9_000);
                now.as_nanos() / 1_000
            });
            times.collect::<Vec<u64>>()
        };
        assert_eq!(left(None), [0, 9_000, 18_000, 27_000]);
        assert_eq!(left(Some(Rate::from_mbps(16))), [0, 9_000, 18_000, 27_000]);
        // The bucket of the rate holds two, that of the peak less than one.
        let (mut shaper, mut now) = (shaper(Some(Rate::from_mbps(80))), Time::ZERO);
        let small = (0..4).map(|_| {
            now = shaper.admit(now, 1_000);
            now.as_nanos() / 1_000
        });
        assert_eq!(small.collect::<Vec<u64>>(), [0, 40, 140, 1_000]);
    }

    proptest::proptest! {
        /// The closed form of a token bucket: over any interval no more than depth + rate * time.
        #[test]
        fn no_interval_carries_more_than_the_burst_and_the_rate(
            mbps in 1_u64..10_000,
            burst in 1_500_u64..100_000,
            peak in proptest::option::of(1_u64..20_000),
            packets in proptest::collection::vec((40_u32..=1_500, 0_u64..2_000_000), 1..200),
        ) {
            let rate = Rate::from_mbps(mbps);
            let config = ShaperConfig { peak: peak.map(Rate::from_mbps), ..ShaperConfig::new(Bytes::new(burst)) };
            let mut shaper = Shaper::new(&config, rate);
            let (mut arrival, mut free) = (Time::ZERO, Time::ZERO);
            let mut left: Vec<(Time, u64)> = Vec::new();
            for (bytes, gap) in packets {
                arrival += Span::from_nanos(gap);
                free = shaper.admit(free.max(arrival), bytes);
                left.push((free, u64::from(bytes)));
            }
            let within = |rate: u64, depth: u64, time: u64, sent: u64| {
                u128::from(sent) * WORK_PER_BYTE <= u128::from(depth) * WORK_PER_BYTE + u128::from(rate) * u128::from(time)
            };
            for first in 0..left.len() {
                let mut sent = 0;
                for (time, bytes) in &left[first..] {
                    sent += bytes;
                    let elapsed = time.since(left[first].0).as_nanos();
                    proptest::prop_assert!(within(rate.as_bps(), burst, elapsed, sent));
                    if let Some(peak) = peak {
                        proptest::prop_assert!(within(peak * 1_000_000, 1_600, elapsed, sent));
                    }
                }
            }
        }

        /// A backlog is worked off at exactly the rate, to the nanosecond per packet.
        #[test]
        fn in_the_long_run_the_rate_is_exact(bps in 1_000_000_u64..10_000_000_000, packets in 3_u64..500) {
            let mut shaper = Shaper::new(&ShaperConfig::new(Bytes::new(1_500)), Rate::from_bps(bps));
            let mut now = Time::ZERO;
            for _ in 0..packets {
                now = shaper.admit(now, 1_500);
            }
            let expected = (u128::from(packets - 1) * 1_500 * WORK_PER_BYTE).div_ceil(u128::from(bps));
            // A packet leaves in a whole nanosecond; the bucket has no room for the rest of it.
            let late = u128::from(now.as_nanos()) - expected;
            proptest::prop_assert!(late <= u128::from(packets), "{late} ns");
        }
    }
}
