//! SEARCH (draft-chung-ccwg-search-09): slow start ends when the bytes delivered stop following the
//! bytes sent a round trip earlier.
//!
//! Time is cut into bins of a fixed length; rings hold the bytes sent and delivered until the end
//! of each bin. A window is ten bins, 3.5 times the first RTT. What was delivered in the last
//! window is compared with what was sent in the window one RTT before: as long as the path has
//! room, they are equal; once a queue grows, delivery lags. Jitter of the RTT below a window
//! averages out.
//!
//! Where the text of the draft interpolates between bins forward, this goes back in time, as
//! implementers and authors of the draft have agreed to be meant.
//!
//! Two ways to leave: at the window found (no drain), or, with [`SearchConfig::drain`], by sending
//! only one packet for every sixteen delivered until no more is in flight than was delivered in the
//! last initial RTT (the empty path's bandwidth-delay product).

use alloc::vec;
use alloc::vec::Vec;

use flowstart_control::{
    Ack, AfterAck, Exit, ExitReason, FlowStart, InRange, InvalidConfig, NewMss, Ranges, Sent, Window,
};
use flowstart_units::{Span, Time};

use crate::StartConstants;

/// Parts of a bin that the look-back is interpolated in.
const FRACTION_ONE: u64 = 100;
const PERCENT: u64 = 100;

/// Constants of SEARCH; the defaults are those of draft-chung-ccwg-search-09.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct SearchConfig {
    /// Length of the window in percent of the first RTT; default 350 (`WINDOW_SIZE_FACTOR`). At
    /// least 1.
    pub window_percent: u64,
    /// Bins in a window, 1 ..= 1000; default 10 (`W`).
    pub bins: u32,
    /// Bins kept beyond a window, for RTTs that grow: the start is judged while an RTT is shorter
    /// than this many bins. 1 ..= 1000; default 15 (`EXTRA_BINS`).
    pub extra_bins: u32,
    /// Lag of delivery, in percent of what was sent, that ends slow start, 1 ..= 100; default 26
    /// (`THRESH`; drafts of 2024: 35 of another quantity).
    pub threshold_percent: u64,
    /// All is forgotten if more than this many bins pass without an ACK; default 10 (a window).
    pub max_missed_bins: u64,
    /// Whether the queue is drained before congestion avoidance; default false. The draft describes
    /// a drain to the bandwidth-delay product of the empty path, some implementations leave it out.
    pub drain: bool,
    /// While draining, one packet is sent for this many delivered; default 16 (the authors' Linux
    /// code). At least 2.
    pub drain_divisor: u64,
}

impl Default for SearchConfig {
    fn default() -> Self {
        Self {
            window_percent: 350,
            bins: 10,
            extra_bins: 15,
            threshold_percent: 26,
            max_missed_bins: 10,
            drain: false,
            drain_divisor: 16,
        }
    }
}

impl SearchConfig {
    fn bin(&self, initial_rtt: Span) -> Span {
        let bin = initial_rtt.mul_ratio(self.window_percent, PERCENT * u64::from(self.bins));
        bin.max(Span::from_nanos(1))
    }
}

impl StartConstants for SearchConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        self.check()
    }
}

impl InRange for SearchConfig {
    fn ranges(&mut self, ranges: &mut Ranges) {
        ranges.of("window_percent", &mut self.window_percent, 1.., "at least 1");
        ranges.of("bins", &mut self.bins, 1..=1000, "between 1 and 1000");
        ranges.of("extra_bins", &mut self.extra_bins, 1..=1000, "between 1 and 1000");
        ranges.of("threshold_percent", &mut self.threshold_percent, 1..=100, "between 1 and 100");
        ranges.of("drain_divisor", &mut self.drain_divisor, 2.., "at least 2");
    }
}

/// Running totals at the end of the last bins.
#[derive(Clone, Debug)]
struct Ring(Vec<u64>);

impl Ring {
    fn new(bins: u32) -> Self {
        Self(vec![0; bins as usize])
    }

    fn slot(&self, bin: u64) -> usize {
        (bin % self.0.len() as u64) as usize
    }

    /// The total at the end of `bin`, which must be among the last.
    fn at(&self, bin: u64) -> u64 {
        self.0[self.slot(bin)]
    }

    /// Bytes from the end of bin `from` to the end of bin `to`.
    fn between(&self, from: u64, to: u64) -> u64 {
        self.at(to).saturating_sub(self.at(from))
    }

    /// Stores `total` for `bin`, which comes `passed` after the last one; the skipped ones had no
    /// news.
    fn store(&mut self, bin: u64, passed: u64, total: u64) {
        let before = self.at(bin.saturating_sub(passed));
        for skipped in 1..passed.min(self.0.len() as u64) {
            let slot = self.slot(bin - skipped);
            self.0[slot] = before;
        }
        let slot = self.slot(bin);
        self.0[slot] = total;
    }
}

/// The clock of the bins.
#[derive(Clone, Copy, Debug)]
struct Bins {
    initial_rtt: Span,
    length: Span,
    /// The bin that was completed last; 0 until a whole one is.
    current: u64,
    /// When the bin after it ends.
    end: Time,
}

/// Draining: sending less than is delivered.
#[derive(Clone, Copy, Debug)]
struct Drain {
    /// Window to arrive at, in packets.
    target: u32,
    /// Packets delivered that no packet was sent for yet.
    delivered: u64,
}

/// SEARCH in operation. [`SearchConfig`] says where its rules come from.
#[derive(Clone, Debug)]
pub struct Search {
    config: SearchConfig,
    mss: u64,
    initial_window: u32,
    sent_bytes: u64,
    acked_bytes: u64,
    sent: Ring,
    acked: Ring,
    bins: Option<Bins>,
    rtt: Span,
    last_lag: Option<u64>,
    drain: Option<Drain>,
}

impl Search {
    /// SEARCH for a flow with segments of `mss` payload bytes that began with `initial_window`
    /// packets.
    #[must_use]
    pub fn new(config: &SearchConfig, initial_window: u32, mss: u32) -> Self {
        let config = config.in_range();
        Self {
            mss: u64::from(mss.max(1)),
            initial_window: initial_window.max(1),
            sent_bytes: 0,
            acked_bytes: 0,
            sent: Ring::new(config.bins + 1 + config.extra_bins),
            acked: Ring::new(config.bins + 1),
            bins: None,
            rtt: Span::ZERO,
            last_lag: None,
            drain: None,
            config,
        }
    }

    /// How far delivery lagged behind sending, in percent, when it was judged last.
    #[must_use]
    pub fn last_lag(&self) -> Option<u64> {
        self.last_lag
    }

    /// Completes the bins that ended before `now`; true if there were any.
    fn turn_bins(&mut self, now: Time) -> bool {
        let Some(bins) = &mut self.bins else { return false };
        if now <= bins.end {
            return false;
        }
        let passed = now.since(bins.end).whole(bins.length).saturating_add(1);
        if passed > self.config.max_missed_bins {
            self.bins = None;
            return false;
        }
        bins.current = bins.current.saturating_add(passed);
        bins.end += bins.length * passed;
        self.sent.store(bins.current, passed, self.sent_bytes);
        self.acked.store(bins.current, passed, self.acked_bytes);
        true
    }

    /// Lag of delivery in percent of what was sent an RTT earlier; `None` if it cannot be told.
    fn lag(&self, bins: &Bins) -> Option<u64> {
        let (back, fraction) = look_back(self.rtt, bins.length);
        let window = u64::from(self.config.bins);
        if back >= u64::from(self.config.extra_bins) {
            return None;
        }
        let then = bins.current.checked_sub(back).filter(|then| *then > window)?;
        let delivered = self.acked.between(bins.current - window, bins.current);
        let sent = |bin: u64| u128::from(self.sent.between(bin - window, bin));
        let share = u128::from(fraction);
        let one = u128::from(FRACTION_ONE);
        let sent = ((one - share) * sent(then) + share * sent(then - 1)) / one;
        lag_percent(u64::try_from(sent).unwrap_or(u64::MAX), delivered)
    }

    /// What was delivered in the last initial RTT, in packets, rounded up to whole bins.
    fn empty_path(&self, bins: &Bins) -> u32 {
        let back = bins.initial_rtt.as_nanos().div_ceil(bins.length.as_nanos());
        let back = back.min(u64::from(self.config.bins)).min(bins.current);
        let bytes = self.acked.between(bins.current - back, bins.current);
        u32::try_from(bytes / self.mss).unwrap_or(u32::MAX).max(self.initial_window)
    }
}

/// How many bins an RTT spans: whole ones and hundredths.
fn look_back(rtt: Span, bin: Span) -> (u64, u64) {
    let (rtt, bin) = (rtt.as_nanos(), bin.as_nanos().max(1));
    let rest = u128::from(rtt % bin) * u128::from(FRACTION_ONE) / u128::from(bin);
    (rtt / bin, u64::try_from(rest).unwrap_or(FRACTION_ONE))
}

fn lag_percent(sent: u64, delivered: u64) -> Option<u64> {
    let lag = u128::from(PERCENT) * u128::from(sent.saturating_sub(delivered));
    lag.checked_div(u128::from(sent)).map(|percent| u64::try_from(percent).unwrap_or(PERCENT))
}

fn leave(window: &Window) -> AfterAck {
    AfterAck::Done(Exit { reason: ExitReason::DeliveryLag, cwnd: window.cwnd, ssthresh: window.cwnd, rate: None })
}

impl FlowStart for Search {
    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> AfterAck {
        self.acked_bytes = self.acked_bytes.saturating_add(ack.acked_bytes);
        self.rtt = ack.rtt.unwrap_or(self.rtt);
        if let Some(drain) = &mut self.drain {
            drain.delivered += u64::from(ack.acked);
            let allowed = u32::try_from(drain.delivered / self.config.drain_divisor).unwrap_or(u32::MAX);
            drain.delivered %= self.config.drain_divisor;
            window.cwnd = ack.in_flight.saturating_add(allowed).clamp(drain.target, window.cwnd.max(drain.target));
            return if window.cwnd == drain.target { leave(window) } else { AfterAck::Continue };
        }
        if self.bins.is_none() {
            if let Some(initial_rtt) = ack.rtt {
                let length = self.config.bin(initial_rtt);
                self.sent.store(0, 0, self.sent_bytes);
                self.acked.store(0, 0, self.acked_bytes);
                self.bins = Some(Bins { initial_rtt, length, current: 0, end: ack.now + length });
            }
            return AfterAck::Continue;
        }
        if self.turn_bins(ack.now)
            && let Some(bins) = self.bins
            && let Some(lag) = self.lag(&bins)
        {
            self.last_lag = Some(lag);
            if lag >= self.config.threshold_percent {
                if !self.config.drain {
                    return leave(window);
                }
                self.drain = Some(Drain { target: self.empty_path(&bins).min(window.cwnd), delivered: 0 });
            }
        }
        AfterAck::Continue
    }

    #[inline]
    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        if self.drain.is_some() { 0 } else { window.slow_start(ack.acked) }
    }

    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        self.sent_bytes = self.sent_bytes.saturating_add(u64::from(sent.bytes));
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.mss = u64::from(mss.bytes());
        self.initial_window = mss.packets(self.initial_window);
        if let Some(drain) = &mut self.drain {
            drain.target = mss.packets(drain.target);
        }
    }
}

#[cfg(test)]
mod tests;
