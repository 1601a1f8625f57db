//! How much of the window is used (Linux `tcp_cwnd_validate`; RFC 7661 in spirit).

use flowstart_units::{Span, Time};

/// Whether the flow uses its window up, remembered for a window.
#[derive(Clone, Copy, Debug, Default)]
pub struct WindowUsage {
    /// The window was used up.
    pub limited: bool,
    /// Largest number of packets outstanding.
    pub max_packets_out: u32,
    /// The window ends when this byte is acknowledged.
    window_end: u64,
    /// Most packets outstanding since the window was last used up.
    used: u32,
    /// When the window was last used up or validated.
    stamp: Time,
}

/// The sender's situation at the end of a burst.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// First byte not cumulatively acknowledged.
    pub una: u64,
    /// Next new byte to be sent.
    pub next: u64,
    /// Packets sent and not cumulatively acknowledged.
    pub packets_out: u32,
    /// Congestion window in packets.
    pub cwnd: u32,
    /// The window is below the threshold.
    pub in_slow_start: bool,
    /// In flight reached the window.
    pub limited: bool,
    /// Having been used up is remembered for a window (not before Linux 3.14).
    pub remembered: bool,
}

impl WindowUsage {
    /// Takes in the end of a burst. The strongest sign of a window wins: once used up, it stays so
    /// until a window has passed. Returns `Some(used)` if the window was not used for `rto` and
    /// should shrink towards that many packets.
    #[inline]
    pub fn update(&mut self, now: Time, usage: &Usage, rto: Span) -> Option<u32> {
        if usage.una >= self.window_end || usage.limited || (!self.limited && usage.packets_out > self.max_packets_out)
        {
            self.limited = usage.limited;
            self.max_packets_out = usage.packets_out;
            self.window_end = usage.next;
        }
        let fed = if usage.remembered {
            self.limited || (usage.in_slow_start && usage.cwnd < self.max_packets_out.saturating_mul(2))
        } else {
            usage.packets_out >= usage.cwnd
        };
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
    pub fn restart(&mut self, now: Time) {
        self.used = 0;
        self.stamp = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTO: Span = Span::from_millis(300);

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// A flow in congestion avoidance with a window of 20 packets.
    fn usage(una: u64, next: u64, packets_out: u32) -> Usage {
        Usage { una, next, packets_out, cwnd: 20, in_slow_start: false, limited: packets_out >= 20, remembered: true }
    }

    #[test]
    fn a_window_that_was_used_up_counts_as_used_until_its_last_byte_is_acknowledged() {
        let mut window = WindowUsage::default();
        assert_eq!(window.update(at(0), &usage(0, 20, 20), RTO), None);
        assert!(window.limited);
        window.update(at(10), &usage(19, 25, 6), RTO);
        assert!(window.limited, "byte 19 is not acknowledged");
        window.update(at(20), &usage(20, 25, 5), RTO);
        assert!(!window.limited);
        assert_eq!(window.max_packets_out, 5);
        // More is the stronger sign, less is not.
        window.update(at(30), &usage(21, 30, 9), RTO);
        assert_eq!(window.max_packets_out, 9);
        window.update(at(40), &usage(22, 30, 8), RTO);
        assert_eq!(window.max_packets_out, 9);
    }

    #[test]
    fn after_a_timeout_without_use_the_window_shrinks_towards_the_most_that_was_outstanding() {
        let mut window = WindowUsage::default();
        window.restart(at(0));
        assert_eq!(window.update(at(100), &usage(0, 7, 7), RTO), None);
        assert_eq!(window.update(at(299), &usage(7, 10, 3), RTO), None);
        assert_eq!(window.update(at(300), &usage(10, 14, 4), RTO), Some(7));
        // Then anew.
        assert_eq!(window.update(at(599), &usage(14, 16, 2), RTO), None);
        assert_eq!(window.update(at(600), &usage(16, 17, 1), RTO), Some(2));
        // Using it up begins anew as well.
        assert_eq!(window.update(at(800), &usage(17, 40, 20), RTO), None);
        assert_eq!(window.update(at(1_099), &usage(40, 41, 1), RTO), None);
        assert_eq!(window.update(at(1_100), &usage(41, 42, 1), RTO), Some(1));
    }

    #[test]
    fn without_memory_only_a_window_that_is_full_now_counts_as_used() {
        let mut window = WindowUsage::default();
        let now = |packets_out, una, next| Usage { remembered: false, ..usage(una, next, packets_out) };
        assert_eq!(window.update(at(400), &now(20, 0, 20), RTO), None);
        assert_eq!(window.update(at(699), &now(19, 1, 20), RTO), None);
        assert_eq!(window.update(at(700), &now(18, 2, 20), RTO), Some(19));
    }

    #[test]
    fn in_slow_start_half_of_the_window_in_use_is_enough() {
        let half = |packets_out, in_slow_start| {
            let mut window = WindowUsage::default();
            window.update(at(500), &Usage { in_slow_start, ..usage(0, 30, packets_out) }, RTO)
        };
        assert_eq!([10, 11].map(|out| half(out, true)), [Some(10), None]);
        assert_eq!(half(11, false), Some(11));
    }
}
