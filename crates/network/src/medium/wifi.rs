//! Wi-Fi (IEEE 802.11n and later): packets leave in aggregates, when the station has won the
//! channel, and are handed on in order.

use std::collections::VecDeque;

use flowstart_random::{Probability, Stream, below, stream};
use flowstart_units::{Bytes, Rate, Span, Time};

use crate::{Dequeue, DropReason, Frame, Queue};

/// A Wi-Fi link. The station waits for the channel (DIFS, backoff, the turns of others), sends what
/// is queued as one aggregate (A-MPDU) up to three limits, and gets a block acknowledgement.
/// Frames that were damaged go again, first in the next turn; those behind them wait at the
/// receiver. The link's capacity is what such a link carries when full packets are always queued
/// (1500 B); the rate on the air follows from it.
///
/// Aggregates hold whole frames; the rate on the air is found as if the one that closes an
/// aggregate were half a frame on average. What full packets get is therefore within 2 % of the
/// capacity from 50 Mbit/s on, and within 9 % from 10 Mbit/s on. At 1 to 5 Mbit/s among others,
/// where one to five frames fill `airtime`, it may be up to 30 % less or more.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct WifiConfig {
    /// Most frames in an aggregate, 1 ..= 1024; default 64 (802.11n and ac; ax has 256).
    pub frames: u32,
    /// An aggregate gets no more frames once it has so many bytes; default 1 048 575 B (802.11ac;
    /// n has 65 535).
    pub bytes: Bytes,
    /// … or once it takes so long on the air; default 4 ms (the standard's most is 5.484 ms,
    /// access points often stay below).
    pub airtime: Span,
    /// Frames sent or waiting for one before them, at most; default 256. At least `frames`. One
    /// that is small for its errors and others makes the link carry less than its capacity: with 64
    /// `frames`, 0.1 `errors` and one other, 80 of 100 Mbit/s with 64 of them; with 0.5 and five
    /// others whose turns take 0.5 ms 256 carry 93, and 1024 all of it.
    pub window: u32,
    /// Share of the frames that arrive damaged, 0 and more, below 1; default 0.
    pub errors: f64,
    /// A frame is lost after so many attempts, 1 ..= 255; default 11 (Linux mac80211 and its
    /// drivers: 7 to 15).
    pub attempts: u32,
    /// Other stations (or this one's own other direction) that always want the channel too, at most
    /// 100; each contest is won by one of all with equal chances. Default 0.
    pub others: u32,
    /// How long each of their turns takes; default 2 ms.
    pub others_airtime: Span,
    /// Idle time before the backoff; default 34 us (DIFS at 5 GHz).
    pub difs: Span,
    /// Unit of the backoff; default 9 us.
    pub slot: Span,
    /// The backoff is uniform on 0 ..= this many units; default 15 (CWmin).
    pub contention_window: u32,
    /// Preamble and headers before an aggregate; default 40 us.
    pub preamble: Span,
    /// From the end of an aggregate to the end of its block acknowledgement; default 48 us (SIFS 16
    /// us and 32 us).
    pub block_ack: Span,
}

impl Default for WifiConfig {
    fn default() -> Self {
        Self {
            frames: 64,
            bytes: Bytes::new(1_048_575),
            airtime: Span::from_millis(4),
            window: 256,
            errors: 0.0,
            attempts: 11,
            others: 0,
            others_airtime: Span::from_millis(2),
            difs: Span::from_micros(34),
            slot: Span::from_micros(9),
            contention_window: 15,
            preamble: Span::from_micros(40),
            block_ack: Span::from_micros(48),
        }
    }
}

/// Bytes of the packets that the capacity is counted with.
const FULL_PACKET: f64 = 1500.0;
/// Most turns of others before one's own, so that no draw takes for ever.
const MOST_TURNS: u32 = 10_000;

impl WifiConfig {
    /// Mean time of a turn without the data on the air: the contest and its frame, and the others'
    /// turns.
    fn overhead(&self) -> f64 {
        let backoff = self.slot.as_secs_f64() * f64::from(self.contention_window) / 2.0;
        let contest = self.difs.as_secs_f64() + backoff;
        let own = contest + self.preamble.as_secs_f64() + self.block_ack.as_secs_f64();
        own + f64::from(self.others) * (contest + self.others_airtime.as_secs_f64())
    }

    /// Full packets in an aggregate when their queue never ends: it is closed by the frame with
    /// which it reaches a limit.
    fn aggregate(&self, air: f64) -> f64 {
        let by_time = (self.airtime.as_secs_f64() / (FULL_PACKET * 8.0 / air)).max(0.5) + 0.5;
        let by_bytes = (self.bytes.get() as f64 / FULL_PACKET).ceil().max(1.0);
        f64::from(self.frames).min(by_bytes).min(by_time)
    }

    /// What a rate on the air carries, in bit/s.
    fn carries(&self, air: f64) -> f64 {
        let frames = self.aggregate(air);
        let bits = frames * FULL_PACKET * 8.0;
        bits * (1.0 - self.errors) / (self.overhead() + bits / air)
    }

    /// The rate on the air with which the link carries `capacity`; `None` if none does.
    #[must_use]
    pub fn air_rate(&self, capacity: Rate) -> Option<Rate> {
        const MOST: f64 = 1e12;
        let wanted = capacity.as_bps() as f64;
        if self.carries(MOST) < wanted {
            return None;
        }
        let (mut low, mut high) = (wanted, MOST);
        for _ in 0..80 {
            let middle = (low + high) / 2.0;
            if self.carries(middle) < wanted { low = middle } else { high = middle }
        }
        Some(Rate::from_bps(high as u64))
    }

    /// The most that any rate on the air carries.
    pub(super) fn most(&self) -> Rate {
        Rate::from_bps(self.carries(1e12) as u64)
    }

    /// Checks the ranges; the message says what would be right.
    pub(super) fn validate(&self) -> Result<(), &'static str> {
        match self {
            Self { frames: 0 | 1025.., .. } => Err("wifi: frames must be between 1 and 1024; the usual 64"),
            Self { window: 0 | 8193.., .. } => Err("wifi: window must be between 1 and 8192; the usual 256"),
            Self { window, frames, .. } if window < frames => {
                Err("wifi: window must not be smaller than frames; the usual are 256 and 64")
            }
            Self { attempts: 0 | 256.., .. } => Err("wifi: attempts must be between 1 and 255; the usual 11"),
            Self { others: 101.., .. } => Err("wifi: others must be at most 100"),
            Self { errors, .. } if !(0.0..1.0).contains(errors) => {
                Err("wifi: errors is a share of the frames, at least 0 and below 1, such as 0.05")
            }
            Self { airtime, .. } if airtime.is_zero() => Err("wifi: airtime must be above 0; the usual \"4 ms\""),
            Self { bytes, .. } if bytes.get() == 0 => Err("wifi: bytes must be above 0; the usual \"1048575 B\""),
            Self { contention_window: 65_536.., .. } => Err("wifi: contention_window must be at most 65535"),
            _ => Ok(()),
        }
    }
}

/// What becomes of a packet that the link took from its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served<P> {
    /// It arrived at the link at `arrived`, was first sent at `begun`, and is through at `done`.
    Sent {
        /// The packet.
        packet: P,
        /// When it arrived at the link.
        arrived: Time,
        /// When the first turn began in which it was sent.
        begun: Time,
        /// When it is handed on.
        done: Time,
    },
    /// The queue dropped it.
    Dropped(P, DropReason),
    /// It was damaged too often.
    Lost(P),
}

/// A frame that was sent and is not handed on yet.
#[derive(Debug)]
struct Held<P> {
    packet: P,
    arrived: Time,
    begun: Time,
    attempts: u32,
    received: bool,
}

/// A Wi-Fi link in operation.
#[derive(Debug)]
pub struct Wifi<P> {
    config: WifiConfig,
    air: Rate,
    damage: Probability,
    random: Stream,
    held: VecDeque<Held<P>>,
    /// When the next turn begins, if one has been contested for.
    turn: Option<Time>,
    /// When the last turn ends.
    free: Time,
    /// Time in turns of one's own.
    busy: Span,
}

impl<P: Frame> Wifi<P> {
    pub(super) fn new(config: &WifiConfig, capacity: Rate, seed: u64) -> Self {
        Self {
            config: *config,
            air: config.air_rate(capacity).unwrap_or(capacity),
            damage: Probability::new(config.errors),
            random: stream(seed),
            held: VecDeque::with_capacity(config.window as usize),
            turn: None,
            free: Time::ZERO,
            busy: Span::ZERO,
        }
    }

    /// Packets that were sent and are not handed on yet.
    #[must_use]
    pub fn stored(&self) -> u64 {
        self.held.len() as u64
    }

    /// Time in turns of one's own so far.
    #[must_use]
    pub fn busy(&self) -> Span {
        self.busy
    }

    /// How long it takes to win the channel.
    fn contest(&mut self) -> Span {
        let config = self.config;
        let mut wait = Span::ZERO;
        for _ in 0..MOST_TURNS {
            let backoff = below(&mut self.random, u64::from(config.contention_window) + 1);
            wait += config.difs + config.slot * backoff;
            if below(&mut self.random, u64::from(config.others) + 1) == 0 {
                break;
            }
            wait += config.others_airtime;
        }
        wait
    }

    /// To be called when a packet has arrived at the sleeping link, and at the times that it
    /// answers. Says when it wants to be called next; [`Time::NEVER`] if it sleeps.
    pub fn serve(
        &mut self,
        now: Time,
        queue: &mut Queue<P>,
        overhead: u32,
        served: &mut impl FnMut(Served<P>),
    ) -> Time {
        match self.turn {
            Some(turn) if turn > now => return turn,
            Some(_) => {}
            None if self.held.is_empty() && queue.packets() == 0 => return Self::sleep(now, queue, served),
            None => {
                let turn = self.free.max(now) + self.contest();
                self.turn = Some(turn);
                return turn;
            }
        }
        self.turn = None;
        let later = self.send(now, queue, overhead, served);
        if self.held.is_empty() && queue.packets() == 0 {
            return Self::sleep(now, queue, served);
        }
        let turn = later.unwrap_or(self.free.max(now)) + self.contest();
        self.turn = Some(turn);
        turn
    }

    /// The empty queue is asked for a packet once more, as by other links: RED counts idle time
    /// from when it has none.
    fn sleep(now: Time, queue: &mut Queue<P>, served: &mut impl FnMut(Served<P>)) -> Time {
        let found = queue.dequeue(now, &mut |packet, reason| served(Served::Dropped(packet, reason)));
        debug_assert!(!matches!(found, Dequeue::Packet(..)), "an empty queue has no packet");
        Time::NEVER
    }

    /// One turn. Says from when on there may be something to send if there was nothing now.
    fn send(
        &mut self,
        now: Time,
        queue: &mut Queue<P>,
        overhead: u32,
        served: &mut impl FnMut(Served<P>),
    ) -> Option<Time> {
        let config = self.config;
        let (mut frames, mut bytes) = (0_u32, 0_u64);
        let mut later = None;
        let full = |air: Rate, frames: u32, bytes: u64| {
            frames >= config.frames
                || bytes >= config.bytes.get()
                || air.transmission_time(Bytes::new(bytes)) >= config.airtime
        };
        for held in self.held.iter_mut().filter(|held| !held.received) {
            if full(self.air, frames, bytes) {
                break;
            }
            frames += 1;
            bytes += u64::from(held.packet.bytes() + overhead);
            held.attempts += 1;
            held.received = !self.damage.draw(&mut self.random);
        }
        while self.held.len() < config.window as usize && !full(self.air, frames, bytes) {
            match queue.dequeue(now, &mut |packet, reason| served(Served::Dropped(packet, reason))) {
                Dequeue::Packet(packet, arrived) => {
                    frames += 1;
                    bytes += u64::from(packet.bytes() + overhead);
                    let received = !self.damage.draw(&mut self.random);
                    self.held.push_back(Held { packet, arrived, begun: now, attempts: 1, received });
                }
                Dequeue::Empty => break,
                Dequeue::NotBefore(time) => {
                    later = Some(time.max(now + Span::from_nanos(1)));
                    break;
                }
            }
        }
        if frames == 0 {
            return later;
        }
        let end = now + config.preamble + self.air.transmission_time(Bytes::new(bytes)) + config.block_ack;
        self.busy += end.since(now);
        self.free = end;
        while self.held.front().is_some_and(|head| head.received || head.attempts >= config.attempts) {
            let Some(Held { packet, arrived, begun, received, .. }) = self.held.pop_front() else { break };
            served(if received { Served::Sent { packet, arrived, begun, done: end } } else { Served::Lost(packet) });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::packet::{Body, Datagram};
    use crate::{Discipline, Ecn, Packet, QueueConfig, Tally};

    /// Says that it stores a packet, and never gives it.
    struct Miser;

    impl Discipline<Packet> for Miser {
        fn enqueue(&mut self, _now: Time, _packet: Packet, _dropped: &mut dyn FnMut(Packet, DropReason)) {}

        fn dequeue(&mut self, _now: Time, _dropped: &mut dyn FnMut(Packet, DropReason)) -> Dequeue<Packet> {
            Dequeue::Empty
        }

        fn tally(&self) -> Tally {
            Tally { packets: 1, ..Tally::default() }
        }
    }

    fn packet(number: u64, bytes: u16) -> Packet {
        let body = Body::Datagram(Datagram { number, sent_at: Time::ZERO });
        Packet { flow: 0, bytes, ecn: Ecn::NotEct, body }
    }

    fn number(packet: &Packet) -> u64 {
        let Body::Datagram(datagram) = packet.body else { panic!("a datagram") };
        datagram.number
    }

    /// Sends a backlog of full packets; numbers in the order of their arrival, with the times, and
    /// the lost ones.
    fn backlog(config: &WifiConfig, mbps: u64, packets: u64, seed: u64) -> (Vec<(u64, Time)>, Vec<u64>) {
        let mut wifi = Wifi::new(config, Rate::from_mbps(mbps), seed);
        let mut queue = Queue::new(&QueueConfig::drop_tail(packets), 1);
        for number in 0..packets {
            queue.enqueue(Time::ZERO, packet(number, 1500), &mut |_, _| panic!("there is room"));
        }
        let (mut sent, mut lost) = (Vec::new(), Vec::new());
        let mut now = Time::ZERO;
        while now != Time::NEVER {
            let stored = wifi.stored() + queue.packets();
            let before = sent.len() + lost.len();
            let next = wifi.serve(now, &mut queue, 0, &mut |served| match served {
                Served::Sent { packet, begun, done, .. } => {
                    assert!(begun <= now && done > now);
                    sent.push((number(&packet), done));
                }
                Served::Lost(packet) => lost.push(number(&packet)),
                Served::Dropped(..) => panic!("nothing is dropped"),
            });
            assert_eq!(stored, wifi.stored() + queue.packets() + (sent.len() + lost.len() - before) as u64);
            assert!(next > now);
            now = next;
        }
        (sent, lost)
    }

    #[test]
    fn a_backlog_passes_at_the_capacity_whatever_the_link_is_like() {
        let usual = WifiConfig::default();
        let cases = [
            (usual, 100),
            (usual, 600),
            (WifiConfig { errors: 0.1, ..usual }, 100),
            (WifiConfig { others: 3, ..usual }, 30),
            (WifiConfig { others: 1, errors: 0.05, frames: 32, ..usual }, 60),
            (WifiConfig { bytes: Bytes::new(65_535), ..usual }, 200),
            (WifiConfig { frames: 1, window: 1, ..usual }, 20),
        ];
        for (config, mbps) in cases {
            let packets = 60_000;
            let (sent, lost) = backlog(&config, mbps, packets, 5);
            assert_eq!(sent.len() as u64 + lost.len() as u64, packets);
            let took = sent[sent.len() - 1].1.as_secs_f64();
            let rate = sent.len() as f64 * 12_000.0 / took / 1e6;
            assert!((rate / mbps as f64 - 1.0).abs() < 0.04, "{config:?}: {rate} of {mbps} Mbit/s");
        }
    }

    #[test]
    fn frames_are_handed_on_in_order_and_lost_only_after_their_attempts() {
        let config = WifiConfig { errors: 0.3, ..WifiConfig::default() };
        let (sent, lost) = backlog(&config, 50, 20_000, 3);
        assert!(sent.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
        // 0.3^11 is 2e-6.
        assert!(lost.len() <= 2, "{lost:?}");
        let config = WifiConfig { errors: 0.3, attempts: 2, ..WifiConfig::default() };
        let (_, lost) = backlog(&config, 50, 20_000, 3);
        assert!((lost.len() as f64 / 20_000.0 - 0.09).abs() < 0.01, "{}", lost.len());
    }

    #[test]
    fn what_waits_leaves_together_up_to_the_limit() {
        let (sent, _) = backlog(&WifiConfig { frames: 10, ..WifiConfig::default() }, 50, 100, 1);
        let mut bunches: Vec<usize> = sent.chunk_by(|a, b| a.1 == b.1).map(<[_]>::len).collect();
        bunches.dedup();
        assert_eq!(bunches, [10]);
    }

    #[test]
    fn a_lone_packet_waits_for_the_channel_its_airtime_and_the_block_acknowledgement() {
        let config = WifiConfig { contention_window: 0, ..WifiConfig::default() };
        let (sent, _) = backlog(&config, 100, 1, 1);
        let air = config.air_rate(Rate::from_mbps(100)).unwrap().transmission_time(Bytes::new(1500));
        assert_eq!(sent[0].1, Time::ZERO + Span::from_micros(34 + 40 + 48) + air);
    }

    #[test]
    fn a_capacity_that_the_aggregates_cannot_carry_has_no_rate_on_the_air() {
        let config = WifiConfig { frames: 4, others: 5, ..WifiConfig::default() };
        assert_eq!(config.air_rate(Rate::from_mbps(100)), None);
        assert!(config.most() < Rate::from_mbps(5) && config.air_rate(Rate::from_mbps(2)).is_some());
    }

    #[test]
    fn the_ends_of_every_range_are_allowed_and_what_lies_beyond_is_not() {
        let usual = WifiConfig::default();
        let right = [
            WifiConfig { frames: 1, window: 1, ..usual },
            WifiConfig { frames: 1024, window: 1024, ..usual },
            WifiConfig { window: 8192, ..usual },
            WifiConfig { attempts: 255, others: 100, contention_window: 65_535, ..usual },
            WifiConfig { errors: 0.0, bytes: Bytes::new(1), airtime: Span::from_nanos(1), ..usual },
        ];
        for config in right {
            assert_eq!(config.validate(), Ok(()), "{config:?}");
        }
        let wrong = [
            (WifiConfig { frames: 0, ..usual }, "frames must be between"),
            (WifiConfig { frames: 1025, window: 8192, ..usual }, "frames must be between"),
            (WifiConfig { window: 0, ..usual }, "window must be between"),
            (WifiConfig { window: 8193, ..usual }, "window must be between"),
            (WifiConfig { frames: 64, window: 63, ..usual }, "not be smaller than frames"),
            (WifiConfig { attempts: 0, ..usual }, "attempts"),
            (WifiConfig { attempts: 256, ..usual }, "attempts"),
            (WifiConfig { others: 101, ..usual }, "others"),
            (WifiConfig { errors: 1.0, ..usual }, "errors"),
            (WifiConfig { errors: -0.1, ..usual }, "errors"),
            (WifiConfig { airtime: Span::ZERO, ..usual }, "airtime"),
            (WifiConfig { bytes: Bytes::ZERO, ..usual }, "bytes"),
            (WifiConfig { contention_window: 65_536, ..usual }, "contention_window"),
        ];
        for (config, what) in wrong {
            assert!(config.validate().unwrap_err().contains(what), "{config:?}");
        }
    }

    #[test]
    fn a_queue_that_gives_nothing_is_asked_again_later_and_not_in_the_past() {
        let mut wifi = Wifi::new(&WifiConfig::default(), Rate::from_mbps(100), 1);
        let mut queue = Queue::external(Box::new(Miser));
        let mut now = Time::ZERO + Span::from_secs(1);
        queue.enqueue(now, packet(0, 1500), &mut |_, _| ());
        for _ in 0..5 {
            let next = wifi.serve(now, &mut queue, 0, &mut |served| panic!("{served:?}"));
            assert!(next > now, "{next:?}");
            now = next;
        }
    }
    /// RED of Linux counts idle time from the dequeue that finds nothing.
    #[test]
    fn a_queue_without_packets_is_asked_for_one_before_the_link_sleeps() {
        let asked = Arc::new(AtomicU32::new(0));
        struct Asked(Arc<AtomicU32>, u64);
        impl Discipline<Packet> for Asked {
            fn enqueue(&mut self, _now: Time, _packet: Packet, _dropped: &mut dyn FnMut(Packet, DropReason)) {
                self.1 += 1;
            }

            fn dequeue(&mut self, now: Time, _dropped: &mut dyn FnMut(Packet, DropReason)) -> Dequeue<Packet> {
                if self.1 == 0 {
                    self.0.fetch_add(1, Ordering::Relaxed);
                    return Dequeue::Empty;
                }
                self.1 -= 1;
                Dequeue::Packet(packet(0, 1500), now)
            }

            fn tally(&self) -> Tally {
                Tally { packets: self.1, ..Tally::default() }
            }
        }
        let mut wifi = Wifi::new(&WifiConfig { frames: 2, ..WifiConfig::default() }, Rate::from_mbps(50), 1);
        let mut queue = Queue::external(Box::new(Asked(Arc::clone(&asked), 0)));
        // A packet that was dropped on arrival.
        assert_eq!(wifi.serve(Time::ZERO, &mut queue, 0, &mut |_| ()), Time::NEVER);
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        // As many as one turn carries.
        (0..2).for_each(|number| queue.enqueue(Time::ZERO, packet(number, 1500), &mut |_, _| ()));
        let mut now = Time::ZERO;
        while now != Time::NEVER {
            now = wifi.serve(now, &mut queue, 0, &mut |_| ());
        }
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }
}
