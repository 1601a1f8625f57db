//! The fair share of a link whose queue serves flows in turn.

use core::hash::BuildHasherDefault;
use std::collections::HashMap;

use flowstart_units::{Rate, Span, Time};

use super::flows::{FlowKey, Mixed};

/// Constants of a router that grants no flow more than its fair share (own proposal). A
/// fair-queuing scheduler in front of the link gives a flow no more anyway while others have
/// something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareConfig {
    /// A flow counts for this long after its last data packet or its grant; default 200 ms, one to
    /// two round trips of most paths.
    pub active_for: Span,
    /// Flows counted at most; default 4096. The share of a link with more is that of one with as
    /// many.
    pub flows: u32,
    /// Whether a flow is granted its share even if the link is full; default false: also no more
    /// than load and grants leave. With true, only the scheduler keeps flows to their shares, and
    /// the threshold holds no more.
    pub alone: bool,
}

impl Default for ShareConfig {
    fn default() -> Self {
        Self { active_for: Span::from_millis(200), flows: 4096, alone: false }
    }
}

/// The flows that count.
#[derive(Clone, Debug)]
pub(super) struct Share {
    config: ShareConfig,
    /// Until when each counts.
    until: HashMap<u64, Time, BuildHasherDefault<Mixed>>,
    /// When silent flows are forgotten next to make room.
    next_sweep: Time,
}

impl Share {
    pub(super) fn new(config: ShareConfig) -> Self {
        Self { config, until: HashMap::default(), next_sweep: Time::ZERO }
    }

    /// A flow sends data, or will.
    #[inline]
    pub(super) fn saw(&mut self, now: Time, key: &FlowKey) {
        let until = now + self.config.active_for;
        match self.until.get_mut(&key.flow) {
            Some(known) => *known = until,
            None => self.meet(now, key, until),
        }
    }

    #[cold]
    fn meet(&mut self, now: Time, key: &FlowKey, until: Time) {
        // Not with each packet of a flow that there is no room for: a flood of flows must not slow
        // the router down.
        if self.until.len() as u64 >= u64::from(self.config.flows) && now >= self.next_sweep {
            self.sweep(now);
            self.next_sweep = until;
        }
        if (self.until.len() as u64) < u64::from(self.config.flows) {
            self.until.insert(key.flow, until);
        }
    }

    fn sweep(&mut self, now: Time) {
        self.until.retain(|_, until| *until > now);
    }

    /// What this flow may be granted of `limit`, of which `free` is free: each has the same if this
    /// one is among them. Walks over all flows: the number of requests that are looked at is
    /// limited.
    pub(super) fn of(&mut self, now: Time, limit: Rate, free: Rate, key: &FlowKey) -> Rate {
        self.sweep(now);
        let others = self.until.len() - usize::from(self.until.contains_key(&key.flow));
        let share = limit.mul_ratio(1, others as u64 + 1);
        if self.config.alone { share } else { share.min(free) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_more_flows_than_are_counted_the_share_is_that_of_as_many_until_some_fall_silent() {
        let active_for = Span::from_millis(200);
        let mut share = Share::new(ShareConfig { active_for, flows: 2, alone: true });
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let key = |flow| FlowKey { flow, source: 0 };
        let of =
            |share: &mut Share, ms| share.of(at(ms), Rate::from_mbps(12), Rate::ZERO, &key(9)).as_bps() / 1_000_000;
        assert_eq!(of(&mut share, 0), 12);
        (0..100).for_each(|flow| share.saw(at(1), &key(flow)));
        assert_eq!(of(&mut share, 1), 4, "two and the one that asks");
        // The two that are counted fall silent; the others go on and take their places.
        (2..100).for_each(|flow| share.saw(at(300), &key(flow)));
        assert_eq!(of(&mut share, 300), 4);
        assert_eq!(of(&mut share, 499), 4);
        assert_eq!(of(&mut share, 500), 12);
    }
}
