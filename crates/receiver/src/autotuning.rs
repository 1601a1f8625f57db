//! The receive window as Linux sizes it: the buffer follows what the application reads in a round
//! trip (`tcp_rcv_space_adjust`), the window follows the buffer segment by segment
//! (`tcp_grow_window`), and what is offered fits into what is free (`__tcp_select_window`).

use std::collections::VecDeque;

use flowstart_units::Time;

use crate::receive_window::HALF;
use crate::{ReceiveWindow, WindowRules};

/// Shorter segments do not widen the window (`tcp_event_data_recv`).
const SHORT: u32 = 128;
/// Segments read in a first round trip that ask for no more buffer (`TCP_INIT_CWND`).
const FIRST_WINDOW: u64 = 10;
/// Smallest clamp of the window (`SOCK_MIN_RCVBUF` / 2).
const SMALLEST_CLAMP: u64 = 2304 / 2;
/// What Linux 6.1 takes for a segment's headers and descriptors (`MAX_TCP_HEADER`,
/// `SKB_TRUESIZE(0)`), and the steps in which it looks for the memory that holds a segment.
const HEADERS_6_1: u64 = 320;
const DESCRIPTORS_6_1: u64 = 576;
const STEP_6_1: u64 = 128;
/// Segments that Linux 6.1 adds to the window for small variations.
const CUSHION_6_1: u64 = 16;

/// Microseconds since the beginning.
fn micros(at: Time) -> u64 {
    at.as_nanos() / 1000
}

/// A timestamp option's clock (RFC 7323): milliseconds.
fn stamp(at: Time) -> u64 {
    at.as_nanos() / 1_000_000
}

/// A segment that arrived, and the state of the stream with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    /// What its sender had been told by then.
    pub(crate) acknowledged: u64,
    pub(crate) payload: u32,
    /// Payload of one of the segments merged into it, and how many there are.
    pub(crate) size: u32,
    pub(crate) count: u32,
    /// It continues the stream.
    pub(crate) in_order: bool,
    /// Next byte expected, this segment included.
    pub(crate) next: u64,
    /// Bytes the application has read so far.
    pub(crate) read: u64,
    /// Bytes that lie behind a gap.
    pub(crate) behind: u64,
    /// From the next byte expected to the last one that arrived.
    pub(crate) span: u64,
}

/// The buffer, the window in it, and what they are sized by. Bytes and microseconds.
#[derive(Debug)]
pub(crate) struct Autotuning {
    rules: WindowRules,
    most: u64,
    overhead: u64,
    announced: u64,
    scale: u32,
    /// Largest segment seen (`rcv_mss`).
    mss: u32,
    /// Receive buffer (`sk_rcvbuf`).
    buffer: u64,
    /// Share of the buffer that is window, in 256ths (`scaling_ratio`).
    share: u64,
    /// Most that may be offered (`window_clamp`).
    clamp: u64,
    /// Most that is offered now (`rcv_ssthresh`).
    threshold: u64,
    /// The window as offered last (`rcv_wnd`).
    offered: u64,
    /// Data has arrived.
    begun: bool,
    /// Read in the busiest round trip so far (`rcvq_space.space`).
    space: u64,
    /// A round trip of reading began with this byte then.
    space_from: u64,
    space_since: u64,
    /// Eight times the round-trip time; 0 if it is not known.
    rtt8: u64,
    /// A window's worth of data began then and ends with this byte.
    window_since: Option<u64>,
    window_until: u64,
    /// ACKs that may not have been answered: what they told, when, and whether another told the
    /// same.
    told: VecDeque<(u64, Time, bool)>,
    /// The last ACK whose answer was taken for a round trip, by its timestamp.
    last_stamp: Option<u64>,
    now: Time,
}

impl Autotuning {
    pub(crate) fn new(config: &ReceiveWindow, initial_mss: u32) -> Self {
        let (buffer, announced) = (config.buffer(), config.announced());
        let full = (buffer * HALF) >> 8;
        let mut clamp = full;
        if clamp > 2 * announced && clamp + announced > full {
            clamp = (2 * announced).max(full - announced);
        }
        let offered = config.first();
        Self {
            rules: config.rules,
            most: config.most(),
            overhead: config.overhead.get().min(65_536),
            announced,
            scale: config.scale(),
            mss: initial_mss.max(1),
            buffer,
            share: HALF,
            clamp,
            threshold: offered.min(clamp),
            offered,
            begun: false,
            space: offered.min(clamp).min(FIRST_WINDOW * announced).max(1),
            space_from: 0,
            space_since: 0,
            rtt8: 0,
            window_since: None,
            window_until: 0,
            told: VecDeque::new(),
            last_stamp: None,
            now: Time::ZERO,
        }
    }

    /// The clock; must be told before an ACK is.
    pub(crate) fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// The window that this much memory gives.
    fn window_from(&self, memory: u64) -> u64 {
        (memory * self.share) >> 8
    }

    /// Memory of that many bytes of full segments.
    fn memory_of(&self, bytes: u64) -> u64 {
        bytes + bytes.div_ceil(self.announced) * self.overhead
    }

    /// The window that is free beside `held` bytes (`tcp_space`).
    fn free(&self, held: u64) -> u64 {
        self.window_from(self.buffer.saturating_sub(self.memory_of(held)))
    }

    /// New data arrived. Returns true if the window grows with it, so that it is acknowledged at
    /// once.
    pub(crate) fn on_data(&mut self, now: Time, at: Arrived) -> bool {
        self.now = now;
        self.take_echo(at);
        if !self.begun {
            self.begun = true;
            self.space_since = micros(now);
        }
        let held = at.next.saturating_sub(at.read) + at.behind;
        if !at.in_order {
            if self.rules == WindowRules::Linux6_18 {
                self.enlarge(self.space, at.span);
            }
            return self.grow(at, held);
        }
        if at.size > self.mss {
            self.mss = at.size;
            self.take_share(at.size);
        }
        self.take_window_time(at.next);
        at.payload >= SHORT && self.grow(at, held)
    }

    /// The application has read up to `read` (`tcp_rcv_space_adjust`).
    pub(crate) fn on_read(&mut self, read: u64, span: u64, queued: u64) {
        let now = micros(self.now);
        if self.rtt8 == 0 || now.saturating_sub(self.space_since) < self.rtt8 >> 3 {
            return;
        }
        let mut copied = read.saturating_sub(self.space_from);
        if self.rules == WindowRules::Linux6_18 {
            copied = copied.saturating_sub(queued);
        }
        if copied > self.space {
            self.enlarge(copied, span);
        }
        self.space_from = read;
        self.space_since = now;
    }

    /// `copied` bytes were read in a round trip: the buffer holds what the next may bring, and the
    /// `span` that waits for a gap to close.
    fn enlarge(&mut self, copied: u64, span: u64) {
        let before = std::mem::replace(&mut self.space, copied);
        let cushion = if self.rules == WindowRules::Linux6_1 { CUSHION_6_1 * self.announced } else { 0 };
        let window = copied.saturating_mul(2).saturating_add(cushion);
        let growth = u128::from(window) * u128::from(copied - before) / u128::from(before.max(1));
        let growth = u64::try_from(growth).unwrap_or(u64::MAX);
        let window = window.saturating_add(growth.saturating_mul(2));
        let memory = match self.rules {
            WindowRules::Linux6_1 => (window / self.announced).saturating_mul(self.segment_memory_6_1()),
            WindowRules::Linux6_18 => {
                u64::try_from((u128::from(window.saturating_add(span)) << 8) / u128::from(self.share))
                    .unwrap_or(u64::MAX)
            }
        };
        let memory = memory.min(self.most);
        if memory > self.buffer {
            self.buffer = memory;
            self.clamp = self.window_from(memory);
        }
    }

    /// What Linux 6.1 reckons for a full segment: so much that its window holds the payload.
    fn segment_memory_6_1(&self) -> u64 {
        let mut memory = (self.announced + HEADERS_6_1).next_multiple_of(64) + DESCRIPTORS_6_1;
        if (memory * HALF) >> 8 < self.announced {
            let missing = 2 * self.announced - memory;
            memory += missing.next_multiple_of(STEP_6_1);
        }
        memory
    }

    /// The segment size has become known, and with it the share of memory that is payload
    /// (`tcp_measure_rcv_mss`).
    fn take_share(&mut self, payload: u32) {
        if self.rules == WindowRules::Linux6_1 {
            return;
        }
        let payload = u64::from(payload);
        let share = ((payload << 8) / (payload + self.overhead)).clamp(1, 255);
        if share == std::mem::replace(&mut self.share, share) {
            return;
        }
        let clamp = self.window_from(self.buffer).max(SMALLEST_CLAMP);
        if clamp < self.clamp {
            self.threshold = self.threshold.min(clamp);
        } else if clamp > self.clamp {
            self.threshold = self.threshold.max(self.offered.min(clamp));
        }
        self.clamp = clamp;
        self.space = self.space.min(clamp);
    }

    /// The window grows by two segments per segment, as far as the buffer holds them
    /// (`tcp_grow_window`).
    fn grow(&mut self, at: Arrived, held: u64) -> bool {
        let room = self.clamp.min(self.free(held)).saturating_sub(self.threshold);
        if room == 0 {
            return false;
        }
        let payload = u64::from(at.payload);
        let memory = payload + self.overhead * u64::from(at.count);
        let more = if self.window_from(memory) <= payload {
            2 * self.announced
        } else if self.worthwhile(memory, payload) {
            2 * u64::from(self.mss)
        } else {
            return false;
        };
        self.threshold += more.max(2 * payload).min(room);
        true
    }

    /// Whether segments that waste memory may still widen the window: the smaller it is, the more
    /// they may waste (`__tcp_grow_window`).
    fn worthwhile(&self, memory: u64, payload: u64) -> bool {
        let (mut memory, mut window) = (self.window_from(memory) >> 1, self.window_from(self.most) >> 1);
        while self.threshold <= window {
            if memory <= payload {
                return true;
            }
            memory >>= 1;
            window >>= 1;
        }
        false
    }

    /// The round trip that a segment's timestamp echo tells (`tcp_rcv_rtt_measure_ts`).
    fn take_echo(&mut self, at: Arrived) {
        while self.told.get(1).is_some_and(|(told, ..)| *told <= at.acknowledged) {
            self.told.pop_front();
        }
        let Some(&(told, sent, again)) = self.told.front() else { return };
        if told != at.acknowledged || again || at.payload < self.mss || self.last_stamp == Some(stamp(sent)) {
            return;
        }
        self.last_stamp = Some(stamp(sent));
        let sample = stamp(self.now).saturating_sub(stamp(sent)).max(1) * 1000;
        let queued = at.read < at.next - if at.in_order { u64::from(at.payload) } else { 0 };
        self.take_rtt(sample, false, queued);
    }

    /// The time that a window's worth of data took (`tcp_rcv_rtt_measure`).
    fn take_window_time(&mut self, next: u64) {
        let now = micros(self.now);
        if let Some(since) = self.window_since {
            if next < self.window_until {
                return;
            }
            self.take_rtt(now.saturating_sub(since).max(1), true, false);
        }
        self.window_since = Some(now);
        self.window_until = next.saturating_add(self.offered);
    }

    /// Takes a sample in; that of a window (`bound`) is only an upper bound (`tcp_rcv_rtt_update`).
    fn take_rtt(&mut self, sample: u64, bound: bool, queued: bool) {
        let (old, new) = (self.rtt8, sample.saturating_mul(8));
        let smoothed = old - (old >> 3) + sample;
        self.rtt8 = match self.rules {
            _ if old == 0 => new,
            WindowRules::Linux6_1 if bound => old.min(new),
            WindowRules::Linux6_1 => smoothed,
            WindowRules::Linux6_18 if new < old => new,
            WindowRules::Linux6_18 if bound || queued => old,
            WindowRules::Linux6_18 => smoothed,
        };
    }

    /// True if so little is free that the sender need not hear of every segment.
    pub(crate) fn is_low(&self, held: u64) -> bool {
        self.begun && self.free(held) < self.clamp.min(self.window_from(self.buffer)) >> 1
    }

    /// The window that may be offered beside `held` bytes, where `current` is what is left of the
    /// last offer, which is never taken back (`tcp_select_window`).
    pub(crate) fn select(&self, held: u64, current: u64) -> u64 {
        if !self.begun {
            return current;
        }
        let full = self.window_from(self.buffer);
        let mss = u64::from(self.mss).min(full.min(self.clamp));
        let unit = 1 << self.scale;
        let mut free = self.free(held);
        if self.is_low(held) {
            free -= free % unit;
            if free < full >> 4 || free < mss {
                free = 0;
            }
        }
        let free = free.min(self.threshold);
        let window = if self.scale > 0 {
            free.next_multiple_of(unit)
        } else if self.offered + mss <= free || self.offered > free {
            free - free % mss.max(1)
        } else {
            self.offered
        };
        if window < current { current.next_multiple_of(unit) } else { window }
    }

    /// An ACK left that told `next` and offers `window`.
    pub(crate) fn on_ack(&mut self, next: u64, window: u64) {
        self.offered = window;
        match self.told.back_mut() {
            Some((told, _, again)) if *told == next => *again = true,
            Some((told, ..)) if *told > next => {}
            _ => self.told.push_back((next, self.now, false)),
        }
    }

    /// Most that may ever be offered of the buffer as it is.
    pub(crate) fn clamp(&self) -> u64 {
        self.clamp
    }

    /// The receive buffer, bytes.
    #[cfg(test)]
    pub(crate) fn buffer(&self) -> u64 {
        self.buffer
    }
}

#[cfg(test)]
mod tests;
