//! When an ACK leaves: quick, delayed and compressed ACKs as Linux has them (`__tcp_ack_snd_check`,
//! `tcp_event_data_recv`, `tcp_send_delayed_ack`), with RFC 5681 section 4.2 as the plain case.

use flowstart_units::{Span, Time};

use crate::{AckCounting, ReceiverConfig};

/// ACKs at once after the first mark, or when marks cannot be trusted (Linux `__tcp_ecn_check_ce`).
const QUICK_ACKS_ON_MARK: u32 = 2;
/// Out-of-order segments acknowledged at once before compression begins: the sender's duplicate ACK
/// threshold (`TCP_FASTRETRANS_THRESH`).
const IMMEDIATE_DUPLICATE_ACKS: u32 = 3;
/// Ranges that every ACK is sure to have room for, whatever its other options
/// (`TCP_SACK_BLOCKS_EXPECTED`).
const SACK_BLOCKS_EXPECTED: usize = 2;
/// ACKs sent at once at the start of a connection whose window holds less than two segments
/// (`tcp_incr_quickack`).
const LEAST_QUICK_ACKS: u32 = 2;

/// Longest delay of an ACK for a slow sender that does not push, before `ack_delay_max` applies (HZ
/// / 2 in `tcp_send_delayed_ack`).
const LONGEST_WAIT: Span = Span::from_millis(500);

/// How many ACKs are sent at once at the start of a connection: half the window in segments, at
/// most `most` (Linux `tcp_incr_quickack`).
#[must_use]
pub(crate) fn quick_ack_credit(window: u64, mss: u32, most: u32) -> u32 {
    let segments = window / (2 * u64::from(mss.max(1)));
    let credit = if segments == 0 { LEAST_QUICK_ACKS } else { u32::try_from(segments).unwrap_or(u32::MAX) };
    credit.min(most)
}

/// Decides when ACKs leave.
#[derive(Debug)]
pub(crate) struct AckPolicy {
    /// ACKs left that leave at once.
    quick: u32,
    /// Estimated time between segments, the delay of an ACK; zero before the first data.
    timeout: Span,
    last_data: Time,
    /// Largest segment seen (Linux `rcv_mss`).
    mss: u32,
    /// Round-trip time from the handshake.
    rtt: Option<Span>,
    /// Data (in order or not, new or not) waits for its ACK.
    scheduled: bool,
    /// A pushed short segment waits.
    pushed: bool,
    /// A pushed or a short segment waits: the application's read asks for its ACK.
    read_out: bool,
    /// Segments in order since the last ACK.
    segments: u32,
    delayed: Time,
    compressed: Time,
    duplicate_acks: u32,
    compressed_count: u32,
    compressed_next: u64,
}

/// What arrived in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload {
    /// Bytes of a segment, the first if there are several.
    pub(crate) size: u32,
    /// How many were merged; 1 for a segment of its own.
    pub(crate) count: u32,
    /// It was pushed.
    pub(crate) push: bool,
}

/// What the policy needs to know of the connection's state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation {
    /// Next byte expected.
    pub(crate) next: u64,
    /// Next byte expected as of the last ACK.
    pub(crate) told: u64,
    /// True if something lies behind a gap.
    pub(crate) gaps: bool,
    /// True if the window's right edge can move with this ACK.
    pub(crate) window_moves: bool,
}

impl AckPolicy {
    pub(crate) fn new(config: &ReceiverConfig) -> Self {
        Self {
            quick: 0,
            timeout: Span::ZERO,
            last_data: Time::ZERO,
            mss: config.initial_mss.max(1),
            rtt: None,
            scheduled: false,
            pushed: false,
            read_out: false,
            segments: 0,
            delayed: Time::NEVER,
            compressed: Time::NEVER,
            duplicate_acks: 0,
            compressed_count: 0,
            compressed_next: 0,
        }
    }

    /// The largest segment seen.
    pub(crate) fn mss(&self) -> u32 {
        self.mss
    }

    /// The handshake's round-trip time.
    pub(crate) fn set_rtt(&mut self, rtt: Span) {
        self.rtt = Some(rtt);
    }

    /// The receiver's own retransmission timeout, which bounds ACK delays.
    fn rto(&self, config: &ReceiverConfig) -> Span {
        match self.rtt {
            Some(rtt) => rtt + (rtt * 2).max(config.min_rto),
            None => config.initial_rto,
        }
    }

    /// The next ACKs leave at once: half a window of them, at most `most`.
    fn grant_quick_acks(&mut self, window: u64, most: u32) {
        self.quick = self.quick.max(quick_ack_credit(window, self.mss, most));
    }

    /// The window grew with this segment: it is acknowledged at once (Linux `tcp_grow_window`).
    pub(crate) fn on_growth(&mut self) {
        self.quick |= 1;
    }

    /// Little memory is free: no more ACKs at once.
    pub(crate) fn on_shortage(&mut self) {
        self.quick = 0;
    }

    /// Something odd arrived (a duplicate, data outside the window): the sender should hear of
    /// everything for a while.
    pub(crate) fn on_trouble(&mut self, config: &ReceiverConfig, window: u64) {
        self.grant_quick_acks(window, config.quick_acks);
        self.timeout = config.ack_delay;
        self.scheduled = true;
    }

    /// New data arrived behind a gap and joined the range that changed `depth` ranges ago. Returns
    /// true if an ACK must leave at once: a range must have been told before others push it out of
    /// the ACK (Linux `tcp_sack_new_ofo_skb`).
    pub(crate) fn on_out_of_order(&mut self, depth: usize) -> bool {
        self.scheduled = true;
        self.compressed != Time::NEVER && depth >= SACK_BLOCKS_EXPECTED
    }

    /// The first mark, or an unmarkable packet after markable ones.
    pub(crate) fn on_mark_change(&mut self, config: &ReceiverConfig, window: u64) {
        self.grant_quick_acks(window, QUICK_ACKS_ON_MARK.min(config.quick_acks));
        self.timeout = config.ack_delay;
    }

    /// Data arrived in order.
    #[inline(always)]
    pub(crate) fn on_data(&mut self, now: Time, config: &ReceiverConfig, payload: Payload, window: u64) {
        let Payload { size, count, push } = payload;
        self.scheduled = true;
        self.segments = self.segments.saturating_add(count);
        self.pushed = push && size < self.mss;
        self.read_out |= push || size < self.mss;
        self.mss = self.mss.max(size);
        let delay = config.ack_delay;
        if self.timeout.is_zero() {
            self.grant_quick_acks(window, config.quick_acks);
            self.timeout = delay;
        } else if config.adaptive_delay {
            let gap = now.since(self.last_data);
            if gap <= delay / 2 {
                self.timeout = self.timeout / 2 + delay / 2;
            } else {
                let rto = self.rto(config);
                if gap < self.timeout {
                    self.timeout = (self.timeout / 2 + gap).min(rto);
                } else if gap > rto {
                    self.grant_quick_acks(window, config.quick_acks);
                }
            }
        }
        self.last_data = now;
    }

    /// Decides after a segment. Returns true if an ACK must leave at once.
    #[inline]
    pub(crate) fn decide(&mut self, now: Time, config: &ReceiverConfig, at: Situation) -> bool {
        let due = match config.ack_counting {
            AckCounting::Bytes => {
                let bytes = at.next - at.told;
                bytes > u64::from(config.ack_every.saturating_sub(1)) * u64::from(self.mss)
            }
            AckCounting::Packets => self.segments >= config.ack_every,
        };
        if (due && at.window_moves) || self.quick > 0 {
            return true;
        }
        if at.gaps {
            return self.decide_with_gaps(now, config, at);
        }
        if config.ack_pushed == Some(true) && self.read_out && config.auto_read {
            return true;
        }
        self.delay(now, config)
    }

    /// Starts or keeps the delay timer. Returns true if it is so close that the ACK may as well
    /// leave now.
    fn delay(&mut self, now: Time, config: &ReceiverConfig) -> bool {
        if !config.adaptive_delay {
            self.delayed = self.delayed.min(now + config.ack_delay.min(config.ack_delay_max));
            return false;
        }
        let mut wait = self.timeout;
        if wait > config.ack_delay {
            // A slow sender: half a second, less if it pushes, and no longer than a round trip.
            let mut most = if self.pushed { config.ack_delay_max } else { LONGEST_WAIT };
            if let Some(rtt) = self.rtt {
                most = most.min(rtt.max(config.ack_delay));
            }
            wait = wait.min(most);
        }
        wait = wait.min(config.ack_delay_max);
        if self.delayed != Time::NEVER && self.delayed <= now + wait / 4 {
            return true;
        }
        self.delayed = self.delayed.min(now + wait);
        false
    }

    fn decide_with_gaps(&mut self, now: Time, config: &ReceiverConfig, at: Situation) -> bool {
        let share = self.rtt.unwrap_or(Span::ZERO).mul_ratio(u64::from(config.compressed_sack_rtt_percent), 100);
        let wait = share.min(config.compressed_sack_delay);
        if wait.is_zero() || self.compressed_count >= config.compressed_sack_count {
            return true;
        }
        if self.compressed_next != at.next {
            self.compressed_next = at.next;
            self.duplicate_acks = 0;
        }
        if self.duplicate_acks < IMMEDIATE_DUPLICATE_ACKS {
            self.duplicate_acks += 1;
            return true;
        }
        self.compressed_count += 1;
        self.compressed = self.compressed.min(now + wait);
        false
    }

    /// When a held-back ACK is due.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        self.delayed.min(self.compressed)
    }

    /// Returns true if a held-back ACK must leave.
    pub(crate) fn on_timer(&mut self, now: Time, config: &ReceiverConfig) -> bool {
        if self.delayed <= now && config.adaptive_delay {
            self.timeout = (self.timeout * 2).min(self.rto(config));
        }
        self.deadline() <= now
    }

    /// An ACK that tells everything received has left.
    #[inline]
    pub(crate) fn on_ack_sent(&mut self, config: &ReceiverConfig) {
        if self.scheduled && self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.timeout = config.ack_delay;
            }
        }
        self.scheduled = false;
        self.pushed = false;
        self.read_out = false;
        self.segments = 0;
        self.delayed = Time::NEVER;
        self.compressed = Time::NEVER;
        self.compressed_count = 0;
    }

    /// True if in-order data waits for its ACK.
    #[inline]
    pub(crate) fn is_delaying(&self) -> bool {
        self.delayed != Time::NEVER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Span {
        Span::from_millis(n)
    }

    fn at(n: u64) -> Time {
        Time::ZERO + ms(n)
    }

    fn segment(size: u32, push: bool) -> Payload {
        Payload { size, count: 1, push }
    }

    fn slow() -> ReceiverConfig {
        ReceiverConfig { quick_acks: 0, ack_delay_max: Span::from_secs(1), ..ReceiverConfig::default() }
    }

    /// A policy that has seen a segment and waits 160 ms for more.
    fn patient(config: &ReceiverConfig, rtt: Option<Span>, push: bool) -> AckPolicy {
        let mut policy = AckPolicy::new(config);
        if let Some(rtt) = rtt {
            policy.set_rtt(rtt);
        }
        policy.on_data(at(0), config, segment(100, push), u64::MAX);
        policy.timeout = ms(160);
        policy
    }

    #[test]
    fn a_long_delay_is_no_longer_than_a_round_trip_and_half_a_second_unless_the_sender_pushes() {
        let wait = |rtt, push, timeout| {
            let config = slow();
            let mut policy = patient(&config, rtt, push);
            policy.timeout = ms(timeout);
            assert!(!policy.delay(at(0), &config));
            policy.deadline().since(at(0))
        };
        assert_eq!(wait(None, false, 160), ms(160));
        assert_eq!(wait(None, false, 700), ms(500));
        assert_eq!(wait(None, true, 700), ms(700));
        assert_eq!(wait(None, true, 1_700), ms(1_000));
        assert_eq!(wait(Some(ms(90)), false, 160), ms(90));
        assert_eq!(wait(Some(ms(10)), false, 160), ms(40), "but the configured delay");
        assert_eq!(wait(Some(ms(10)), false, 40), ms(40));
    }

    #[test]
    fn only_a_short_segment_that_is_pushed_tells_of_a_sender_that_waits() {
        let pushed = |payload, push| {
            let config = slow();
            let mut policy = patient(&config, None, false);
            policy.on_data(at(1), &config, segment(1_448, false), u64::MAX);
            policy.on_data(at(2), &config, segment(payload, push), u64::MAX);
            policy.pushed
        };
        assert_eq!(
            [(1_447, true), (1_448, true), (1_447, false)].map(|(n, push)| pushed(n, push)),
            [true, false, false]
        );
    }

    #[test]
    fn an_ack_that_is_due_within_a_quarter_of_its_delay_leaves_at_once() {
        let config = slow();
        for (now, at_once) in [(119, false), (120, true)] {
            let mut policy = patient(&config, None, false);
            assert!(!policy.delay(at(0), &config));
            assert_eq!(policy.delay(at(now), &config), at_once, "{now} ms of 160");
            assert_eq!(policy.deadline(), at(160), "it is never put off");
        }
    }

    #[test]
    fn the_delay_is_the_mean_of_itself_and_the_gap_between_segments() {
        let after = |gap| {
            let config = slow();
            let mut policy = patient(&config, Some(ms(30)), false);
            policy.on_data(at(gap), &config, segment(100, false), u64::MAX);
            policy.timeout
        };
        assert_eq!(after(20), ms(100), "with the configured delay of 40 ms for gaps of up to half of it");
        assert_eq!(after(21), ms(101));
        assert_eq!(after(159), ms(230), "at most the timeout of 30 + 200 ms");
        assert_eq!(after(160), ms(160));
        assert_eq!(after(300), ms(160));
    }

    #[test]
    fn a_sender_that_was_silent_for_a_timeout_gets_quick_acks_again() {
        let quick = |gap| {
            let config = ReceiverConfig { quick_acks: 16, ..slow() };
            let mut policy = patient(&config, Some(ms(30)), false);
            policy.quick = 0;
            policy.on_data(at(gap), &config, segment(100, false), u64::MAX);
            policy.quick
        };
        assert_eq!([230, 231].map(quick), [0, 16]);
    }

    #[test]
    fn an_ack_is_due_when_more_than_one_full_segment_waits() {
        let config = slow();
        for (waiting, due) in [(1_448, false), (1_449, true)] {
            let mut policy = AckPolicy::new(&config);
            policy.on_data(at(0), &config, segment(1_448, false), u64::MAX);
            let situation = Situation { next: 10_000 + waiting, told: 10_000, gaps: false, window_moves: true };
            assert_eq!(policy.decide(at(0), &config, situation), due, "{waiting}");
            let stuck = Situation { window_moves: false, ..situation };
            assert!(!AckPolicy::new(&config).decide(at(0), &config, stuck), "no window, no hurry");
        }
    }

    #[test]
    fn at_most_the_configured_number_of_acks_is_compressed_into_one() {
        let config = ReceiverConfig { compressed_sack_count: 2, ..slow() };
        let mut policy = patient(&config, Some(ms(10)), false);
        let gaps = Situation { next: 5_000, told: 5_000, gaps: true, window_moves: true };
        let mut decide = |next| policy.decide(at(1), &config, Situation { next, ..gaps });
        assert_eq!([(); 6].map(|()| decide(5_000)), [true, true, true, false, false, true]);
        assert_eq!(policy.deadline(), at(1) + Span::from_micros(500));
        policy.on_ack_sent(&config);
        assert_eq!(policy.deadline(), Time::NEVER);
        // Something was acknowledged: the next three count anew.
        let further = Situation { next: 6_000, told: 6_000, ..gaps };
        let told = [(); 6].map(|()| policy.decide(at(2), &config, further));
        assert_eq!(told, [true, true, true, false, false, true]);
    }

    #[test]
    fn after_a_change_of_marks_two_acks_leave_at_once_or_as_many_as_there_may_be() {
        for (most, expected) in [(16, [true, true, false]), (1, [true, false, false])] {
            let config = ReceiverConfig { quick_acks: most, ..slow() };
            let mut policy = patient(&config, None, false);
            policy.quick = 0;
            policy.on_mark_change(&config, u64::MAX);
            assert_eq!(policy.timeout, config.ack_delay);
            let at_once = [1, 2, 3].map(|n| {
                policy.on_data(at(n), &config, segment(100, false), u64::MAX);
                let waiting = Situation { next: 100 * n, told: 100 * (n - 1), gaps: false, window_moves: true };
                let leaves = policy.decide(at(n), &config, waiting);
                policy.on_ack_sent(&config);
                leaves
            });
            assert_eq!(at_once, expected);
        }
    }

    #[test]
    fn quick_acks_are_half_the_window_in_segments_between_2_and_16() {
        assert_eq!(quick_ack_credit(65_535, 536, 16), 16);
        assert_eq!(quick_ack_credit(14_600, 1460, 16), 5);
        assert_eq!(quick_ack_credit(2_000, 1460, 16), 2);
        assert_eq!(quick_ack_credit(65_535, 536, 0), 0);
    }
}
