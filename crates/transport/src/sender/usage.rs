//! How much of the window is used (Linux `tcp_cwnd_validate`; RFC 7661 in spirit).

use flowstart_units::{Span, Time};

/// Whether the flow uses its window up, remembered for a window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowUsage {
    /// The window was used up.
    pub(super) limited: bool,
    /// Largest number of packets outstanding.
    pub(super) max_packets_out: u32,
    /// The window ends when this byte is acknowledged.
    window_end: u64,
    /// Most packets outstanding since the window was last used up.
    used: u32,
    /// When the window was last used up or validated.
    stamp: Time,
}

/// The sender's situation at the end of a burst.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    pub(super) una: u64,
    pub(super) next: u64,
    pub(super) packets_out: u32,
    pub(super) cwnd: u32,
    pub(super) in_slow_start: bool,
    /// In flight reached the window.
    pub(super) limited: bool,
}

impl WindowUsage {
    /// Takes in the end of a burst. The strongest sign of a window wins: once used up, it stays so until a window has passed. Returns
    /// `Some(used)` if the window was not used for `rto` and should shrink towards that many packets.
    #[inline]
    pub(super) fn update(&mut self, now: Time, usage: &Usage, rto: Span) -> Option<u32> {
        if usage.una >= self.window_end || usage.limited || (!self.limited && usage.packets_out > self.max_packets_out)
        {
            self.limited = usage.limited;
            self.max_packets_out = usage.packets_out;
            self.window_end = usage.next;
        }
        let fed = self.limited || (usage.in_slow_start && usage.cwnd < self.max_packets_out.saturating_mul(2));
        if fed {
            self.restart(now);
            return None;
        }
        self.used = self.used.max(usage.packets_out);
        if now.since(self.stamp) < rto {
            return None;
        }
        let used = self.used;
        self.restart(now);
        Some(used)
    }

    /// The window is measured anew.
    #[inline]
    pub(super) fn restart(&mut self, now: Time) {
        self.used = 0;
        self.stamp = now;
    }
}
