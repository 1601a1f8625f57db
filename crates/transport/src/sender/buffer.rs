//! The send buffer: what it takes of a writer, and when a writer who found it full goes on (Linux
//! `sk_stream_write_space`, `tcp_sendmsg`).

use flowstart_units::Bytes;

use super::Sender;

/// Who writes into a send buffer that has an end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Writer {
    /// It found the buffer full and waits until enough of it is free.
    waits: bool,
    /// It has been let in at this moment, and writes as long as it may.
    writes: bool,
}

impl Sender {
    /// Bytes that the send buffer takes now.
    #[must_use]
    pub fn room(&self) -> u64 {
        if self.finished {
            return 0;
        }
        let Some(buffer) = self.config.send_buffer.map(Bytes::get) else { return u64::MAX - self.written };
        let held = self.written.saturating_sub(self.stats.una);
        if self.writer.waits && !self.lets_in(buffer, held) {
            return self.refilled().saturating_sub(self.written);
        }
        buffer.saturating_sub(held)
    }

    /// Whether a writer who waits is woken when the buffer holds this much.
    fn lets_in(&self, buffer: u64, held: u64) -> bool {
        match u128::from(self.config.wake_divisor) {
            0 => held < buffer,
            divisor => u128::from(held) * divisor <= u128::from(buffer) * (divisor - 1),
        }
    }

    /// A writer was `refused` some bytes, and others were `taken`.
    pub(super) fn note_writer(&mut self, refused: bool, taken: bool) {
        self.writer = Writer { waits: refused, writes: refused && taken };
    }

    /// Must follow every change of what was written and of what is acknowledged.
    #[inline]
    pub(super) fn set_send_limit(&mut self) {
        match self.config.send_buffer {
            Some(buffer) if self.written == u64::MAX => self.wake_greedy(buffer.get()),
            _ => self.send_limit = self.written,
        }
    }

    /// An endless stream fills the buffer whenever its writer is woken.
    fn wake_greedy(&mut self, buffer: u64) {
        if self.lets_in(buffer, self.send_limit.saturating_sub(self.stats.una)) {
            self.send_limit = self.stats.una.saturating_add(buffer);
            self.writer.writes = true;
        }
    }

    /// Up to which byte of the stream a writer at work writes although the buffer is full. Linux
    /// asks for memory only where a new buffer of segments begins; one of which a burst took a part
    /// is filled up again. So a writer goes on as long as bursts leave at once and are shorter.
    fn refilled(&self) -> u64 {
        let Some(offload) = self.config.offload.as_ref().filter(|_| self.writer.writes) else { return 0 };
        let largest = offload.buffer(self.config.mss);
        let burst = u64::from(self.full_burst(offload)) * u64::from(self.config.mss);
        if burst < largest { self.stats.next.saturating_add(largest) } else { 0 }
    }

    /// An endless stream goes on into buffers that bursts took parts of.
    pub(super) fn refill(&mut self) {
        if self.writer.writes && self.written == u64::MAX {
            self.send_limit = self.send_limit.max(self.refilled());
        }
    }

    /// What waits has to wait for something else than its writer, who waits, too.
    pub(super) fn stop_writing(&mut self) {
        self.writer.writes = false;
    }
}

#[cfg(test)]
mod tests {
    use flowstart_units::{Span, Time};

    use super::super::tests::pipe::steady;
    use super::*;
    use crate::{Offload, SenderConfig};

    const MSS: u64 = 1448;

    /// A connection of 20 ms with a window of so many packets and a buffer of so many.
    fn opened(window: u32, buffer: u64, wake_divisor: u32, offload: Option<Offload>) -> Sender {
        let config = SenderConfig {
            handshake: false,
            handshake_rtt: Some(Span::from_millis(20)),
            send_buffer: Some(Bytes::new(buffer * MSS)),
            wake_divisor,
            offload,
            ..SenderConfig::default()
        };
        let mut sender = Sender::new(&config, steady(window));
        sender.open(Time::ZERO);
        sender
    }

    fn acknowledge(sender: &mut Sender, packets: u64) {
        sender.stats.una = packets * MSS;
        sender.set_send_limit();
    }

    /// Linux `sk_stream_write_space`: what is free must be half of what is queued.
    #[test]
    fn a_writer_who_found_the_buffer_full_goes_on_when_a_third_of_it_is_free() {
        for (divisor, rooms) in [(3, [0, 0, 3, 4, 5]), (0, [1, 2, 3, 4, 5]), (2, [0, 0, 0, 0, 5])] {
            let mut sender = opened(100, 9, divisor, None);
            assert_eq!(sender.write(Time::ZERO, 100 * MSS), 9 * MSS);
            for (acked, room) in (1..).zip(rooms) {
                acknowledge(&mut sender, acked);
                assert_eq!(sender.room(), room * MSS, "{acked} acknowledged, a share of 1 / {divisor}");
            }
        }
        let mut sender = opened(100, 9, 3, None);
        sender.write(Time::ZERO, 8 * MSS);
        assert_eq!(sender.room(), MSS, "nobody was refused");
        sender.write(Time::ZERO, 2 * MSS);
        assert!(sender.writer.writes);
        sender.stop_writing();
        assert_eq!((sender.write(Time::ZERO, MSS), sender.writer.writes), (0, false), "who cannot does not");
        // What an endless stream may send.
        let mut sender = opened(100, 9, 3, None);
        sender.write(Time::ZERO, u64::MAX);
        for (acked, limit) in [(0, 9), (1, 9), (2, 9), (3, 12), (4, 12), (5, 12), (6, 15)] {
            acknowledge(&mut sender, acked);
            assert_eq!(sender.send_limit, limit * MSS, "{acked} acknowledged");
        }
    }

    /// All that leaves at once, and of it what the buffer does not hold.
    fn at_once(window: u32, pacing_shift: u32, bytes: u64) -> u64 {
        let mut sender = opened(window, 90, 3, Some(Offload { pacing_shift, ..Offload::default() }));
        let mut left = bytes - sender.write(Time::ZERO, bytes);
        loop {
            while sender.transmit(Time::ZERO).is_some() {}
            if bytes == u64::MAX || left == 0 || sender.room() == 0 {
                return sender.stats.next.div_ceil(MSS);
            }
            left -= sender.write(Time::ZERO, left);
        }
    }

    #[test]
    fn what_leaves_in_bursts_that_are_shorter_than_a_buffer_is_not_stopped_by_a_full_one() {
        for bytes in [u64::MAX, 1_000 * MSS] {
            // 200 packets in 20 ms are 14 MB/s, of which 1 / 2^10 s are 9 segments.
            assert_eq!(at_once(200, 10, bytes), 200, "as far as the window goes");
            assert_eq!(at_once(200, 0, bytes), 90, "bursts of 64 KiB");
        }
        assert_eq!(at_once(60, 10, u64::MAX), 60);
    }

    #[test]
    fn who_waits_for_the_window_writes_no_more() {
        let mut sender = opened(200, 90, 3, Some(Offload::default()));
        sender.write(Time::ZERO, u64::MAX);
        while sender.transmit(Time::ZERO).is_some() {}
        assert!(!sender.writer.writes);
        let limit = sender.send_limit;
        acknowledge(&mut sender, 139);
        assert_eq!(sender.send_limit, limit, "more than two thirds of 90 packets are there");
        acknowledge(&mut sender, limit / MSS - 60);
        assert_eq!(sender.send_limit, limit + 30 * MSS);
    }
}
