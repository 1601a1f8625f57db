//! An omniscient start, the bound for all others: it knows the rate that is its own at every
//! moment and the token buckets on its way, and sends what passes from the first packet on.
//!
//! It is no algorithm that anybody could run. In races it knows the path: the capacity of every
//! moment, shared with the flows that are there, policers and shapers. Without such knowledge it is
//! slow start.

use alloc::vec::Vec;

use flowstart_control::InvalidConfig;
use flowstart_control::{Ack, AfterAck, Departure, FlowStart, Next, Response, Sent, Signal, Window};
use flowstart_units::{Bytes, Rate, Span, Time};

use crate::StartConstants;

/// From a time on, a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields)
)]
pub struct OracleStep {
    /// Since the start of the run, or of the repetition.
    pub at: Span,
    /// From then on; 0 for nothing.
    pub rate: Rate,
}

/// A token bucket on the way, full at first.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields)
)]
pub struct OracleBucket {
    /// Tokens per time, above 0.
    pub rate: Rate,
    /// Most tokens: so much may leave at once, above 0. A larger packet passes when it is full.
    pub depth: Bytes,
}

/// What an omniscient start knows.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct OracleConfig {
    /// Its rate over time, in order, the first step at 0; none (the default): in races what the
    /// path has, elsewhere it knows nothing and is slow start.
    pub steps: Vec<OracleStep>,
    /// After this time the steps begin again; default never.
    pub period: Option<Span>,
    /// Token buckets that all packets must pass besides; default none, in races those of policers
    /// and shapers.
    pub buckets: Vec<OracleBucket>,
    /// Most packets in flight, at least 1; default 1000, in races what the path has room for.
    pub window: u32,
    /// Bytes beside the payload that rates and buckets count; default 52 (IPv4, TCP, timestamps).
    pub overhead: u32,
}

impl Default for OracleConfig {
    fn default() -> Self {
        Self { steps: Vec::new(), period: None, buckets: Vec::new(), window: 1000, overhead: 52 }
    }
}

impl StartConstants for OracleConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        InvalidConfig::unless(self.window >= 1, "window", "at least 1")?;
        InvalidConfig::unless(self.overhead <= 65_535, "overhead", "at most 65535 bytes")?;
        let ordered = self.steps.first().is_none_or(|step| step.at.is_zero())
            && self.steps.is_sorted_by(|a, b| a.at < b.at)
            && self.period.is_none_or(|period| self.steps.last().is_none_or(|step| step.at < period));
        InvalidConfig::unless(ordered, "steps", "in order of time, the first at 0, all before the period")?;
        let flow = self.buckets.iter().all(|bucket| bucket.rate.as_bps() > 0 && bucket.depth > Bytes::ZERO);
        InvalidConfig::unless(flow, "buckets", "of a rate and a depth above 0")?;
        let moves = self.steps.is_empty()
            || match self.period {
                Some(_) => self.steps.iter().any(|step| step.rate.as_bps() > 0),
                None => self.steps.last().is_some_and(|step| step.rate.as_bps() > 0),
            };
        InvalidConfig::unless(moves, "steps", "above 0 sooner or later")
    }
}

/// Repetitions in which a packet may leave; afterwards it is given up as never.
const MOST_REPETITIONS: u32 = 1000;

/// A token bucket in operation. Times are rounded so that it never sends too much.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    rate: Rate,
    /// How long an empty one takes to be full.
    depth: Span,
    /// When it will be full again if nothing leaves.
    full: Time,
}

impl Bucket {
    fn new(config: OracleBucket) -> Self {
        let depth = u64::try_from(work(config.depth.get()) / u128::from(config.rate.as_bps().max(1)));
        Self { rate: config.rate, depth: Span::from_nanos(depth.unwrap_or(u64::MAX)), full: Time::ZERO }
    }

    /// How long the tokens for so many bytes take.
    fn time(&self, bytes: u32) -> Span {
        let nanos = work(bytes.into()).div_ceil(u128::from(self.rate.as_bps().max(1)));
        Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// When there will be enough for so many bytes.
    fn ready(&self, bytes: u32) -> Time {
        let there = self.full + self.time(bytes).min(self.depth);
        Time::from_nanos(there.as_nanos().saturating_sub(self.depth.as_nanos()))
    }

    fn take(&mut self, now: Time, bytes: u32) {
        self.full = self.full.max(now) + self.time(bytes);
    }
}

/// Bytes in bits times nanoseconds per second, so that a rate in bit/s times nanoseconds is exact.
fn work(bytes: u64) -> u128 {
    u128::from(bytes) * 8 * 1_000_000_000
}

/// An omniscient start in operation.
#[derive(Clone, Debug)]
pub struct Oracle {
    steps: Vec<OracleStep>,
    period: Option<Span>,
    buckets: Vec<Bucket>,
    window: u32,
    overhead: u32,
    /// When the next packet may leave.
    next: Time,
    in_flight: u32,
}

impl Oracle {
    /// One that knows this.
    #[must_use]
    pub fn new(config: &OracleConfig) -> Self {
        Self {
            steps: config.steps.clone(),
            period: config.period.filter(|period| !period.is_zero()),
            buckets: config.buckets.iter().copied().map(Bucket::new).collect(),
            window: config.window.max(1),
            overhead: config.overhead,
            next: Time::ZERO,
            in_flight: 0,
        }
    }

    /// True if it knows a rate.
    fn knows(&self) -> bool {
        !self.steps.is_empty()
    }

    /// When so many bytes that begin at `from` are through.
    fn through(&self, from: Time, bytes: u32) -> Time {
        let since = from.since(Time::ZERO).as_nanos();
        let (mut origin, mut phase) = match self.period.map(Span::as_nanos) {
            Some(period) => (since - since % period, since % period),
            None => (0, since),
        };
        let mut work = work(bytes.into());
        for _ in 0..MOST_REPETITIONS {
            for (number, step) in self.steps.iter().enumerate() {
                let next = self.steps.get(number + 1).map(|next| next.at).or(self.period);
                let end = next.map_or(u64::MAX, Span::as_nanos);
                if end <= phase {
                    continue;
                }
                let rate = u128::from(step.rate.as_bps());
                let possible = rate.saturating_mul(u128::from(end - phase));
                if possible >= work && rate > 0 {
                    let nanos = u64::try_from(work.div_ceil(rate)).unwrap_or(u64::MAX);
                    return Time::from_nanos(origin.saturating_add(phase).saturating_add(nanos));
                }
                work = work.saturating_sub(possible);
                phase = end;
            }
            let Some(period) = self.period else { break };
            (origin, phase) = (origin.saturating_add(period.as_nanos()), 0);
        }
        from + Span::from_secs(1)
    }
}

impl FlowStart for Oracle {
    fn initial_window(&self) -> Option<u32> {
        self.knows().then_some(self.window)
    }

    fn on_ack(&mut self, ack: &Ack, _window: &mut Window) -> AfterAck {
        self.in_flight = ack.in_flight;
        AfterAck::Continue
    }

    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        if self.knows() { 0 } else { window.slow_start(ack.acked) }
    }

    fn on_signal(&mut self, _now: Time, signal: Signal, window: &mut Window) -> Response {
        if self.knows() {
            if signal != Signal::Timeout {
                // It sends what is its own; what is lost or marked all the same tells it nothing.
                return Response::Ignore;
            }
            // What was in flight is what the path held.
            window.cwnd = window.cwnd.min(self.in_flight.max(2));
        }
        Response::Leave
    }

    fn on_sent(&mut self, sent: &Sent) {
        if self.knows() {
            let bytes = sent.bytes.saturating_add(self.overhead);
            self.next = self.through(self.next.max(sent.now), bytes);
            self.buckets.iter_mut().for_each(|bucket| bucket.take(sent.now, bytes));
        }
    }

    fn departure(&mut self, now: Time, next: &Next, _window: &Window) -> Option<Departure> {
        let bytes = next.bytes.saturating_add(self.overhead);
        let time = self.buckets.iter().map(|bucket| bucket.ready(bytes)).fold(self.next, Time::max);
        self.knows().then(|| if time <= now { Departure::Now } else { Departure::At(time) })
    }

    fn owns_window(&self) -> bool {
        self.knows()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_control::testing::{next, sent};

    fn step(millis: u64, mbps: u64) -> OracleStep {
        OracleStep { at: Span::from_millis(millis), rate: Rate::from_mbps(mbps) }
    }

    #[test]
    fn packets_leave_at_the_rate_of_the_moment() {
        // 1500 B: 1 ms at 12 Mbit/s, half of that at twice the rate, nothing in an outage.
        let steps = vec![step(0, 12), step(3, 0), step(5, 24)];
        let mut start = Oracle::new(&OracleConfig { steps, ..OracleConfig::default() });
        let (mut now, mut left) = (Time::ZERO, Vec::new());
        for number in 0..6 {
            if let Some(Departure::At(time)) = start.departure(now, &next(number), &Window::new(1000)) {
                now = time;
            }
            left.push(now.as_nanos() / 100_000);
            start.on_sent(&Sent { bytes: 1448, ..sent(now, number) });
        }
        assert_eq!(left, [0, 10, 20, 30, 55, 60]);
    }

    #[test]
    fn what_has_tokens_leaves_at_the_rate_of_the_link_and_the_rest_at_that_of_the_bucket() {
        // 1500 B: 0.5 ms on the link, 1.5 ms of the bucket's tokens, two of which are there.
        let buckets = vec![OracleBucket { rate: Rate::from_mbps(8), depth: Bytes::new(3_000) }];
        let config = OracleConfig { steps: vec![step(0, 24)], buckets, ..OracleConfig::default() };
        assert_eq!(config.validate(), Ok(()));
        let mut start = Oracle::new(&config);
        let (mut now, mut left) = (Time::ZERO, Vec::new());
        for number in 0..5 {
            let next = Next { bytes: 1448, ..next(number) };
            if let Some(Departure::At(time)) = start.departure(now, &next, &Window::new(1000)) {
                now = time;
            }
            left.push(now.as_nanos() / 100_000);
            start.on_sent(&Sent { bytes: 1448, ..sent(now, number) });
        }
        assert_eq!(left, [0, 5, 15, 30, 45]);
        let empty = OracleBucket { rate: Rate::from_mbps(8), depth: Bytes::ZERO };
        assert!(OracleConfig { buckets: vec![empty], ..config }.validate().is_err());
    }

    #[test]
    fn steps_repeat_after_their_period() {
        let config = OracleConfig {
            steps: vec![step(0, 12), step(1, 0)],
            period: Some(Span::from_millis(10)),
            ..OracleConfig::default()
        };
        assert_eq!(config.validate(), Ok(()));
        let start = Oracle::new(&config);
        let at = |tenths: u64| Time::from_nanos(tenths * 100_000);
        assert_eq!(start.through(at(0), 1500), at(10));
        assert_eq!(start.through(at(205), 1500), at(305));
        assert_eq!(start.through(at(50), 3000), at(210));
    }

    #[test]
    fn what_never_sends_is_refused() {
        let config = |steps| OracleConfig { steps, ..OracleConfig::default() };
        assert!(config(vec![step(0, 0)]).validate().is_err());
        assert!(config(vec![step(1, 5)]).validate().is_err());
        assert!(OracleConfig { window: 0, ..OracleConfig::default() }.validate().is_err());
    }
}
