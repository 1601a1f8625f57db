//! New data in bursts, as segmentation offload sends it (Linux `tcp_write_xmit`,
//! `tcp_tso_should_defer`).

use flowstart_units::{Span, Time};

use super::transmit::Blocked;
use super::{Sender, SenderState};
use crate::Offload;

/// A burst is held back only if the last packet left within this time, and if the next ACK is due
/// within it.
const RECENT: Span = Span::from_millis(1);

/// The burst that is leaving.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Burst {
    /// When it leaves.
    at: Time,
    /// Segments of it that have not left.
    left: u32,
    /// It has more than one segment.
    several: bool,
}

impl Burst {
    /// The segment that leaves next is the last of several: the kernel sets PSH on it, so that a
    /// receiver waits for no more (Linux `__tcp_transmit_skb`).
    pub(super) fn ends(self) -> bool {
        self.several && self.left == 0
    }
}

impl Sender {
    /// Payload of the next new segment if it may leave now, as part of a burst.
    #[inline(never)]
    pub(super) fn next_in_burst(&mut self, now: Time) -> Result<u32, Blocked> {
        self.refill();
        let payload = self.new_payload(false)?;
        if self.burst.left > 0 && self.burst.at == now {
            self.burst.left -= 1;
            return Ok(payload);
        }
        let next = self.next_packet(payload, false);
        let (departure, own) = self.controller.departure_by(now, &next);
        if !self.is_due(now, departure, false) {
            return Err(Blocked::Departure);
        }
        // A start that gives its packets times of their own sends them one by one.
        let segments = if own { 1 } else { self.burst_size(now)? };
        self.burst = Burst { at: now, left: segments - 1, several: segments > 1 };
        Ok(payload)
    }

    /// How many segments leave now, at least 1.
    fn burst_size(&self, now: Time) -> Result<u32, Blocked> {
        let Some(offload) = &self.config.offload else { return Ok(1) };
        let mss = u64::from(self.config.mss);
        let cwnd = self.controller.cwnd();
        let free = cwnd.saturating_sub(self.board.in_flight());
        let full = self.full_burst(offload);
        let available = self.available();
        let offered = self.window_end.saturating_sub(self.stats.next);
        let room = offered.min(u64::from(free) * mss);
        // No more than half of a window at once.
        let most = u64::from(full.min(free).min((cwnd / 2).max(1)));
        // A buffer that is shorter is filled up from the next one (`tcp_grow_skb`, Linux 6.10), and
        // what may leave as a whole does not wait.
        let buffer = offload.left_of_buffer(self.config.mss, self.stats.next).max(most * mss);
        let partly = available > mss && available > room && room < buffer;
        if partly && self.waits(now, full, room, offload.window_divisor) {
            let by_window = u64::from(free) * mss >= offered;
            return Err(if by_window { Blocked::Window } else { Blocked::Burst });
        }

        let segments = most.min(offered / mss).min(available.div_ceil(mss)).max(1);
        Ok(u32::try_from(segments).unwrap_or(u32::MAX))
    }

    /// Segments of a burst at the rate of this moment, if there is as much to send.
    pub(super) fn full_burst(&self, offload: &Offload) -> u32 {
        let rate = self.controller.assumed_rate(self.board.packets_out(), self.stats.srtt, self.config.mss);
        offload.segments(self.config.mss, rate, self.stats.min_rtt, self.controller.least_burst())
    }

    /// Whether a burst had better wait until the next ACK makes room for more.
    fn waits(&self, now: Time, full: u32, room: u64, divisor: u32) -> bool {
        let mss = u64::from(self.config.mss);
        let Some(head) = self.board.head_sent_at() else { return false };
        let window = u64::from(self.controller.cwnd()) * mss;
        let window = window.min(self.window_end.saturating_sub(self.stats.una));
        let worthwhile = window.checked_div(u64::from(divisor)).unwrap_or(0);
        let srtt = self.stats.srtt;
        self.recovery.state < SenderState::Recovery
            && self.last_sent.is_some_and(|last| now.since(last) <= RECENT)
            && room < u64::from(full) * mss
            && room < worthwhile
            // The next ACK is near.
            && (head + srtt).since(now) <= RECENT.min(srtt / 2)
    }
}

#[cfg(test)]
mod tests {
    use flowstart_congestion::{AvoidanceConfig, Controller, ControllerConfig, StartConfig};
    use flowstart_network::packet::Acknowledgement;
    use flowstart_units::Bytes;

    use super::super::tests::pipe::steady;
    use super::*;
    use crate::{Receiver, ReceiverConfig, SenderConfig};

    const MSS: u64 = 1448;
    const WINDOW: u32 = 30;

    fn micros(n: u64) -> Time {
        Time::ZERO + Span::from_micros(n)
    }

    /// As much in a burst as there may be, however slow the path.
    fn large() -> Offload {
        Offload { pacing_shift: 0, ..Offload::default() }
    }

    fn opened(offload: Offload, window: u32, rtt: Span, bytes: u64) -> Sender {
        let config = SenderConfig {
            handshake: false,
            handshake_rtt: Some(rtt),
            offload: Some(offload),
            ..SenderConfig::default()
        };
        let mut sender = Sender::new(&config, steady(window));
        sender.open(Time::ZERO);
        sender.write(Time::ZERO, bytes);
        sender
    }

    fn segments(window: u32, bytes: u64) -> u32 {
        opened(large(), window, Span::from_millis(20), bytes).burst_size(Time::ZERO).unwrap()
    }

    #[test]
    fn a_burst_is_half_a_window_at_most_and_what_there_is_to_send() {
        assert_eq!([1, 2, 3, 10, 11].map(|window| segments(window, 1_000 * MSS)), [1, 1, 1, 5, 5]);
        assert_eq!(segments(200, 1_000 * MSS), 45, "64 KiB");
        assert_eq!([1, MSS, MSS + 1, 3 * MSS, 3 * MSS + 1].map(|bytes| segments(10, bytes)), [1, 1, 2, 3, 4]);
        let mut sender = opened(large(), 10, Span::from_millis(20), 1_000 * MSS);
        for (offered, expected) in [(3 * MSS, 3), (4 * MSS - 1, 3), (5 * MSS, 5), (6 * MSS, 5)] {
            sender.window_end = offered;
            assert_eq!(sender.burst_size(Time::ZERO), Ok(expected), "{offered} B of receive window");
        }
        let mut single = opened(large(), 10, Span::from_millis(20), 1_000 * MSS);
        single.config.offload = None;
        assert_eq!(single.burst_size(Time::ZERO), Ok(1));
    }

    /// Linux `tcp_tso_segs` with `bbr_min_tso_segs`: 1.2 Mbit/s is the limit, and BBR begins with
    /// 2.89 windows per round trip, less a hundredth.
    #[test]
    fn bbr_sends_its_packets_one_by_one_where_it_is_slow() {
        let full = |rtt| {
            let config = SenderConfig {
                handshake: false,
                handshake_rtt: Some(Span::from_millis(rtt)),
                offload: Some(Offload::default()),
                ..SenderConfig::default()
            };
            let start = StartConfig::from_name("built_in").unwrap();
            let bbr = ControllerConfig::new(start, AvoidanceConfig::from_name("bbr").unwrap());
            let mut sender = Sender::new(&config, Controller::new(&bbr));
            sender.open(Time::ZERO);
            sender.write(Time::ZERO, 1_000 * MSS);
            let now = Time::ZERO + Span::from_millis(rtt);
            let mut receiver = Receiver::new(&ReceiverConfig::every_segment());
            let packet = sender.transmit(Time::ZERO).unwrap();
            receiver.on_segment(now, &packet.segment, packet.ecn);
            sender.on_ack(now, &receiver.poll_ack().unwrap().ack);
            sender.burst_size(now).unwrap()
        };
        // 10 * 1448 * 8 * 2.89 * 0.99 bit per round trip: 1.10 and 1.23 Mbit/s.
        assert_eq!([300, 270].map(full), [1, 2]);
    }

    #[test]
    fn the_rest_of_a_burst_leaves_without_asking_again() {
        let mut sender = opened(large(), 10, Span::from_millis(20), 1_000 * MSS);
        let left: Vec<u32> = std::iter::from_fn(|| sender.transmit(Time::ZERO).map(|_| sender.burst.left)).collect();
        // Two of five; the second is no smaller for what of the window the first has taken.
        assert_eq!(left, [4, 3, 2, 1, 0, 4, 3, 2, 1, 0]);
    }

    /// Linux `__tcp_transmit_skb`: PSH on whatever has more than one segment.
    #[test]
    fn the_last_segment_of_several_is_pushed_and_one_alone_is_not() {
        let mut sender = opened(large(), 10, Span::from_millis(20), 1_000 * MSS);
        let pushed = |sender: &mut Sender, now| -> Vec<bool> {
            std::iter::from_fn(|| sender.transmit(now)).map(|packet| packet.segment.push).collect()
        };
        let burst = [false, false, false, false, true];
        assert_eq!(pushed(&mut sender, Time::ZERO), [burst, burst].concat());
        let mut single = opened(Offload { largest: Bytes::new(1), ..large() }, 10, Span::from_millis(20), 1_000 * MSS);
        assert_eq!(pushed(&mut single, Time::ZERO), [false; 10]);
    }

    /// Five of thirty packets are acknowledged after a round trip; the others left later by
    /// `apart`, and the last five this long before the ACK.
    struct Waiting {
        offload: Offload,
        rtt: u64,
        apart: u64,
        last: u64,
        bytes: u64,
    }

    impl Default for Waiting {
        fn default() -> Self {
            Self { offload: large(), rtt: 20_000, apart: 900, last: 500, bytes: 1_000 * MSS }
        }
    }

    impl Waiting {
        fn sender(&self) -> Sender {
            let at_once = Offload { window_divisor: 0, ..large() };
            let mut sender = opened(at_once, WINDOW, Span::from_micros(self.rtt), self.bytes);
            let mut receiver = Receiver::new(&ReceiverConfig::every_segment());
            let mut ack: Option<Acknowledgement> = None;
            for (sent, count) in [(0, 5), (self.apart, 20), (self.rtt - self.last, 5)] {
                for _ in 0..count {
                    let packet = sender.transmit(micros(sent)).unwrap();
                    if sent == 0 {
                        receiver.on_segment(micros(self.rtt / 2), &packet.segment, packet.ecn);
                        ack = receiver.poll_ack().map(|out| out.ack).or(ack);
                    }
                }
            }
            sender.on_ack(micros(self.rtt), &ack.unwrap());
            assert_eq!((sender.board.in_flight(), sender.controller.cwnd()), (25, WINDOW));
            sender.config.offload = Some(self.offload.clone());
            sender
        }

        fn burst(&self) -> Result<u32, Blocked> {
            self.sender().burst_size(micros(self.rtt))
        }
    }

    /// Linux `tcp_tso_should_defer`: five may leave now, more with the next ACK, which is near.
    #[test]
    fn a_burst_waits_for_an_ack_that_is_near_if_there_is_more_to_send() {
        assert_eq!(Waiting::default().burst(), Err(Blocked::Burst));
        let with = |bytes| Waiting { bytes: 30 * MSS + bytes, ..Waiting::default() }.burst();
        assert_eq!([1, MSS, 5 * MSS].map(with), [Ok(1), Ok(1), Ok(5)], "all that there is");
        assert_eq!(with(5 * MSS + 1), Err(Blocked::Burst));
    }

    #[test]
    fn a_burst_does_not_wait_for_what_is_far() {
        let apart = |apart| Waiting { apart, ..Waiting::default() }.burst();
        assert_eq!([1_000, 1_001].map(apart), [Err(Blocked::Burst), Ok(5)], "the next ACK, 1 ms at most");
        let short = |apart| Waiting { rtt: 1_000, apart, last: 100, ..Waiting::default() }.burst();
        assert_eq!([500, 501].map(short), [Err(Blocked::Burst), Ok(5)], "or half a round trip");
        let last = |last| Waiting { last, ..Waiting::default() }.burst();
        assert_eq!([1_000, 1_001].map(last), [Err(Blocked::Burst), Ok(5)], "the last packet, 1 ms at most");
    }

    /// Linux `tcp_tso_should_defer`: what is not the end of the queue goes if all of it may, and
    /// `tcp_grow_skb` made it as long as what may leave.
    #[test]
    fn a_burst_that_reaches_the_end_of_a_buffer_does_not_wait() {
        // Thirty segments left. Buffers of so many begin with the stream.
        let buffers = |segments| Offload { largest: Bytes::new(segments * MSS + 400), ..large() };
        let of = |segments| Waiting { offload: buffers(segments), ..Waiting::default() }.burst();
        assert_eq!([31, 35].map(of), [Ok(5), Ok(5)], "one segment to the end, or five");
        assert_eq!([30, 36, 45].map(of), [Err(Blocked::Burst); 3], "thirty to the end, or six, or fifteen");
        let mut sender = Waiting { offload: buffers(31), ..Waiting::default() }.sender();
        sender.window_end = sender.stats.next + 4 * MSS;
        assert_eq!(sender.burst_size(micros(20_000)), Err(Blocked::Window), "the receiver offers four of five");
    }

    #[test]
    fn a_burst_that_is_full_or_a_share_of_the_window_does_not_wait() {
        // Three packets of 1448 B and the headroom for headers.
        let largest = |segments| Offload { largest: Bytes::new(segments * MSS + 400), ..large() };
        let of = |offload| Waiting { offload, ..Waiting::default() }.burst();
        assert_eq!([5, 6].map(|full| of(largest(full))), [Ok(5), Err(Blocked::Burst)]);
        let divided = |window_divisor| of(Offload { window_divisor, ..large() });
        assert_eq!([0, 6, 5].map(divided), [Ok(5), Ok(5), Err(Blocked::Burst)]);
        let mut sender = Waiting::default().sender();
        let now = micros(20_000);
        sender.window_end = sender.stats.next + 5 * MSS;
        assert_eq!(sender.burst_size(now), Err(Blocked::Window), "the receiver's is no larger");
        sender.window_end += 1;
        assert_eq!(sender.burst_size(now), Err(Blocked::Burst));
        sender.recovery.state = SenderState::Recovery;
        assert_eq!(sender.burst_size(now), Ok(5), "repairs do not wait");
    }
}
