//! The receive window: how far the sender may go, and what the application has read.

use flowstart_network::packet::Segment;
use flowstart_units::{Bytes, Time};

use crate::ack_policy::AckPolicy;
use crate::autotuning::{Arrived, Autotuning};
use crate::reassembly::{Arrival, Reassembly};
use crate::{ReceiveWindow, ReceiverConfig};

/// The window of a receiver.
#[derive(Debug)]
pub(crate) struct Window {
    /// Bytes the application took.
    read: u64,
    /// Right edge of the window as last told.
    right_edge: u64,
    /// Size of a fixed buffer.
    buffer: Option<Bytes>,
    /// The application reads at once.
    auto_read: bool,
    /// The window may limit the sender.
    limits: bool,
    /// The window never does, and the application reads at once.
    plain: bool,
    /// Sizes the window.
    pub(crate) tuning: Option<Box<Autotuning>>,
}

impl Window {
    pub(crate) fn new(config: &ReceiverConfig) -> Self {
        let first = config.window.as_ref().map(ReceiveWindow::first);
        let limits = config.receive_buffer.is_some() || config.window.is_some();
        Self {
            read: 0,
            right_edge: first.or(config.receive_buffer.map(Bytes::get)).unwrap_or(u64::MAX),
            buffer: config.receive_buffer,
            auto_read: config.auto_read,
            limits,
            plain: config.auto_read && !limits,
            tuning: config.window.as_ref().map(|window| Box::new(Autotuning::new(window, config.initial_mss))),
        }
    }

    /// The window as last told, counted from the next byte expected.
    #[inline]
    pub(crate) fn width(&self, next: u64) -> u64 {
        self.right_edge.saturating_sub(next)
    }

    /// A segment that ends there lies outside of what the sender was told.
    #[inline]
    pub(crate) fn excludes(&self, end: u64) -> bool {
        end > self.right_edge
    }

    /// ACKs of the window that is sized are timed.
    #[inline]
    pub(crate) fn tell_time(&mut self, now: Time) {
        if let Some(tuning) = &mut self.tuning {
            tuning.set_now(now);
        }
    }

    /// A new segment was taken in, before which `before` was the next byte expected and `told` the
    /// next byte of the last ACK. Returns whether the window's right edge can move.
    #[inline]
    pub(crate) fn on_data(&mut self, now: Time, at: Taken<'_>, policy: &mut AckPolicy) -> bool {
        if self.plain {
            self.read = at.stream.next();
            true
        } else {
            self.tune(now, at, policy)
        }
    }

    /// The application reads, and the window follows what arrives and what is read.
    #[cold]
    fn tune(&mut self, now: Time, at: Taken<'_>, policy: &mut AckPolicy) -> bool {
        let next = at.stream.next();
        if self.auto_read {
            self.read = next;
        }
        let Some(tuning) = &mut self.tuning else { return self.moves(&at, policy) };
        let span = at.stream.end() - next;
        // The application reads what is there after this segment was taken in.
        let read = if self.auto_read { at.before } else { self.read };
        let arrived = Arrived {
            acknowledged: at.segment.acknowledged(),
            payload: at.segment.payload,
            size: at.size,
            count: at.count,
            in_order: matches!(at.arrival, Arrival::InOrder { .. }),
            next,
            read,
            behind: at.stream.behind(),
            span,
        };
        if tuning.on_data(now, arrived) {
            policy.on_growth();
        }
        if self.auto_read && read < next {
            tuning.on_read(next, span, 0);
        }
        self.moves(&at, policy)
    }

    fn moves(&self, at: &Taken<'_>, policy: &AckPolicy) -> bool {
        let next = at.stream.next();
        self.read == next
            || self.selected_right_edge(at.stream, policy).saturating_sub(next)
                >= self.right_edge.saturating_sub(at.told)
    }

    /// The application takes `bytes` bytes, no more than arrived in order. Returns whether the
    /// sender must be told.
    pub(crate) fn read(&mut self, bytes: u64, stream: &Reassembly, policy: &AckPolicy) -> bool {
        let next = stream.next();
        let before = self.width(next);
        self.read = self.read.saturating_add(bytes).min(next);
        if !self.limits {
            return false;
        }
        let largest = match &mut self.tuning {
            Some(tuning) => {
                tuning.on_read(self.read, stream.end() - next, next - self.read);
                tuning.clamp()
            }
            None => self.buffer.map_or(u64::MAX, Bytes::get),
        };
        // A window update is worth an ACK if the window at least doubles (Linux
        // `tcp_cleanup_rbuf`), and always if it was shut.
        if before.saturating_mul(2) > largest {
            return false;
        }
        let after = self.selected_right_edge(stream, policy).saturating_sub(next);
        after > 0 && after >= before.saturating_mul(2)
    }

    /// The window that an ACK tells whose next byte expected is `next`. Its right edge moves.
    #[inline]
    pub(crate) fn tell(&mut self, next: u64, stream: &Reassembly, policy: &mut AckPolicy) -> u32 {
        if self.limits { self.tell_limited(next, stream, policy) } else { u32::MAX }
    }

    #[inline(never)]
    fn tell_limited(&mut self, next: u64, stream: &Reassembly, policy: &mut AckPolicy) -> u32 {
        self.right_edge = self.limited_right_edge(stream, policy);
        let (window, held) = (self.width(stream.next()), self.held(stream));
        if let Some(tuning) = &mut self.tuning {
            if tuning.is_low(held) {
                policy.on_shortage();
            }
            tuning.on_ack(next, window);
        }
        // u32::MAX itself means "unlimited".
        u32::try_from(window).unwrap_or(u32::MAX).min(u32::MAX - 1)
    }

    /// Where the window's right edge may move now. It never moves back.
    #[inline]
    fn selected_right_edge(&self, stream: &Reassembly, policy: &AckPolicy) -> u64 {
        if self.limits { self.limited_right_edge(stream, policy) } else { u64::MAX }
    }

    /// A fixed buffer's edge does not move by crumbs (RFC 9293 section 3.8.6.2.2); Linux's moves by
    /// the units in which a scaled window is told.
    #[inline(never)]
    fn limited_right_edge(&self, stream: &Reassembly, policy: &AckPolicy) -> u64 {
        let next = stream.next();
        if let Some(tuning) = &self.tuning {
            return next.saturating_add(tuning.select(self.held(stream), self.width(next)));
        }
        let buffer = self.buffer.map_or(u64::MAX, Bytes::get);
        let free = buffer.saturating_sub(next - self.read);
        let worthwhile = u64::from(policy.mss()).min(buffer / 2);
        let edge = next.saturating_add(free);
        if edge >= self.right_edge.saturating_add(worthwhile) { edge } else { self.right_edge }
    }

    /// Bytes in the receive buffer.
    fn held(&self, stream: &Reassembly) -> u64 {
        stream.next() - self.read + stream.behind()
    }
}

/// A segment that was taken in, and the stream with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken<'a> {
    pub(crate) segment: &'a Segment,
    /// How many were merged into it, and the size of one.
    pub(crate) count: u32,
    pub(crate) size: u32,
    pub(crate) arrival: Arrival,
    pub(crate) stream: &'a Reassembly,
    /// Next byte expected before it.
    pub(crate) before: u64,
    /// Next byte expected as of the last ACK.
    pub(crate) told: u64,
}
