//! A link of the crate `network` in virtual time, and others who use it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use flowstart_network::{Dequeue, Ecn, Frame, Jitter, LinkConfig, Loss, Medium, Passage, Queue, Served, Transmitter};
use flowstart_quic::EcnCodepoint;
use flowstart_random::{Stream, below, stream, unit};
use flowstart_units::{Bytes, Rate, Span, Time};

use super::Packet;

/// Who else sends over a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Others {
    Nobody,
    /// Bursts of ten packets on average at twice the link's rate, at random times; the share of the
    /// link that they take.
    Bursts(f64),
    /// A flow with so many packets on the way at all times, whatever happens to them.
    Greedy(u32),
}

/// What stands in a queue: a packet of the look, or of others.
#[derive(Clone, Debug)]
struct Handle {
    bytes: u32,
    flow: u64,
    ecn: Ecn,
    packet: Option<Box<Packet>>,
}

impl Frame for Handle {
    fn bytes(&self) -> u32 {
        self.bytes
    }

    fn flow(&self) -> u64 {
        self.flow
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ce(&mut self) -> bool {
        let capable = self.ecn.is_capable();
        if capable {
            self.ecn = Ecn::Ce;
        }
        capable
    }
}

/// The flow of others.
const OTHER: u64 = 99;

/// A link in operation.
pub(crate) struct Described {
    queue: Queue<Handle>,
    transmitter: Transmitter,
    loss: Loss,
    jitter: Option<Jitter>,
    medium: Option<Medium<Handle>>,
    delay: Span,
    rate: Rate,
    rtt: Span,
    free: Time,
    wake: Time,
    left: VecDeque<(Time, Packet)>,
    others: Others,
    random: Stream,
    /// When packets of others arrive.
    coming: BinaryHeap<Reverse<Time>>,
    /// When the last burst of those that are known begins.
    planned: Time,
    /// The longest time that a packet of the look waited.
    pub(crate) longest: Span,
    /// What each of them waited, and when it left.
    pub(crate) waits: Vec<(Time, Span)>,
    pub(crate) dropped: u64,
}

impl Described {
    pub(crate) fn new(config: &LinkConfig, others: Others, rtt: Span, seed: u64) -> Self {
        assert_eq!(config.validate(), Ok(()), "{config:?}");
        let coming = match others {
            Others::Greedy(count) => {
                (0..count).map(|n| Reverse(Time::ZERO + rtt * u64::from(n) / u64::from(count))).collect()
            }
            Others::Nobody | Others::Bursts(_) => BinaryHeap::new(),
        };
        Self {
            queue: Queue::new(&config.queue, seed),
            transmitter: Transmitter::new(&config.wire_rate()),
            loss: Loss::new(&config.loss, seed + 1),
            jitter: config.jitter.as_ref().map(|jitter| Jitter::new(jitter, seed + 2)),
            medium: Medium::new(config, seed + 3),
            delay: config.delay,
            rate: config.rate.peak(),
            rtt,
            free: Time::ZERO,
            wake: Time::NEVER,
            left: VecDeque::new(),
            others,
            random: stream(seed + 4),
            coming,
            planned: Time::ZERO,
            longest: Span::ZERO,
            waits: Vec::new(),
            dropped: 0,
        }
    }

    /// Plans the bursts of others until after a time.
    fn plan(&mut self, until: Time) {
        let Others::Bursts(load) = self.others else { return };
        while self.planned <= until {
            let packet = self.rate.transmission_time(Bytes::new(1500));
            let wait = 2.0 * unit(&mut self.random) / load * 10.0;
            self.planned += packet.mul_f64(wait);
            let count = 1 + below(&mut self.random, 19);
            self.coming.extend((0..count).map(|n| Reverse(self.planned + packet * n / 2)));
        }
    }

    /// When something happens next.
    pub(crate) fn wake(&self) -> Time {
        let other = self.coming.peek().map_or(Time::NEVER, |Reverse(at)| *at);
        if self.left.is_empty() { self.wake.min(other) } else { Time::ZERO }
    }

    pub(crate) fn arrive(&mut self, now: Time, packet: Packet) {
        self.advance(now);
        let ecn = match packet.ecn {
            None => Ecn::NotEct,
            Some(EcnCodepoint::Ect0) => Ecn::Ect0,
            Some(EcnCodepoint::Ect1) => Ecn::Ect1,
            Some(EcnCodepoint::Ce) => Ecn::Ce,
        };
        let bytes = packet.data.len() as u32 + 28;
        self.take(now, Handle { bytes, flow: packet.flow as u64, ecn, packet: Some(Box::new(packet)) });
    }

    fn take(&mut self, now: Time, handle: Handle) {
        let ours = u64::from(handle.packet.is_some());
        if self.loss.hits() || !self.medium.as_mut().is_none_or(|medium| medium.admits(now, handle.bytes)) {
            self.dropped += ours;
            return self.again(now, ours == 0);
        }
        let mut lost = Vec::new();
        self.queue.enqueue(now, handle, &mut |handle, _| lost.push(handle));
        self.gone(now, lost);
        if self.medium.as_ref().is_some_and(|medium| medium.wifi.is_some()) {
            if self.wake == Time::NEVER {
                self.serve(now);
            }
        } else if self.free <= now {
            self.transmit(now);
        } else if self.wake == Time::NEVER {
            self.wake = self.free;
        }
    }

    fn gone(&mut self, now: Time, lost: Vec<Handle>) {
        for handle in lost {
            self.dropped += u64::from(handle.packet.is_some());
            self.again(now, handle.packet.is_none());
        }
    }

    /// A greedy flow sends its next packet a round trip later.
    fn again(&mut self, now: Time, other: bool) {
        if other && matches!(self.others, Others::Greedy(_)) {
            self.coming.push(Reverse(now + self.rtt));
        }
    }

    fn serve(&mut self, now: Time) {
        let Some(mut wifi) = self.medium.as_mut().and_then(|medium| medium.wifi.take()) else { return };
        let mut served = Vec::new();
        self.wake = wifi.serve(now, &mut self.queue, 0, &mut |what| served.push(what));
        if let Some(medium) = &mut self.medium {
            medium.wifi = Some(wifi);
        }
        for what in served {
            match what {
                Served::Sent { packet, arrived, begun, done } => {
                    let there = self.medium.as_ref().map_or(Some(done), |medium| medium.beyond(done));
                    self.leaves(packet, begun.since(arrived), done, there);
                }
                Served::Dropped(handle, _) | Served::Lost(handle) => self.gone(now, vec![handle]),
            }
        }
    }

    fn transmit(&mut self, now: Time) {
        let mut lost = Vec::new();
        let next = self.queue.dequeue(now, &mut |handle, _| lost.push(handle));
        self.gone(now, lost);
        match next {
            Dequeue::Packet(handle, arrived) => {
                let (done, there) = match &mut self.medium {
                    Some(medium) => {
                        let Passage { done, there, .. } =
                            medium.pass(&mut self.transmitter, now, arrived, handle.bytes);
                        (done, there)
                    }
                    None => {
                        let done = self.transmitter.transmit(now, handle.bytes);
                        (done, Some(done))
                    }
                };
                self.free = done;
                self.wake = if self.queue.packets() > 0 { done } else { Time::NEVER };
                self.leaves(handle, now.since(arrived), done, there);
            }
            Dequeue::Empty => self.wake = Time::NEVER,
            Dequeue::NotBefore(time) => self.wake = time.max(now + Span::from_nanos(1)),
        }
    }

    fn leaves(&mut self, handle: Handle, waited: Span, done: Time, there: Option<Time>) {
        let Some(packet) = handle.packet else { return self.again(done, true) };
        let Some(there) = there else {
            self.dropped += 1;
            return;
        };
        self.longest = self.longest.max(waited);
        self.waits.push((done, waited));
        let at = there + self.delay;
        let at = self.jitter.as_mut().map_or(at, |jitter| jitter.delay(at));
        let ecn = match handle.ecn {
            Ecn::NotEct => None,
            Ecn::Ect0 => Some(EcnCodepoint::Ect0),
            Ecn::Ect1 => Some(EcnCodepoint::Ect1),
            Ecn::Ce => Some(EcnCodepoint::Ce),
        };
        self.left.push_back((at, Packet { ecn, ..*packet }));
    }

    fn advance(&mut self, now: Time) {
        self.plan(now);
        loop {
            let other = self.coming.peek().map_or(Time::NEVER, |Reverse(at)| *at);
            if other <= now && other <= self.wake {
                self.coming.pop();
                self.take(other, Handle { bytes: 1500, flow: OTHER, ecn: Ecn::NotEct, packet: None });
            } else if self.wake <= now {
                match self.medium.as_ref().is_some_and(|medium| medium.wifi.is_some()) {
                    true => self.serve(self.wake),
                    false => self.transmit(self.wake),
                }
            } else {
                return;
            }
        }
    }

    /// The next packet that left, and when it is at the other end.
    pub(crate) fn leave(&mut self, now: Time) -> Option<(Time, Packet)> {
        self.advance(now);
        self.left.pop_front()
    }
}
