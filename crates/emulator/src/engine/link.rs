//! A link in operation. The rules are those of the simulator's network, on real frames.

use flowstart_network::{Dequeue, DropReason, Ecn, Frame as _, Jitter, LinkConfig, Loss, Queue, Transmitter};
use flowstart_random::Purpose;
use flowstart_units::{Bytes, Span, Time};

use super::frames::Handle;
use super::requests::Requests;

/// What a link did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkOutcome {
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets whose transmission began.
    pub packets: u64,
    /// Their bytes on the wire, link overhead included.
    pub bytes: Bytes,
    /// Packets dropped by the queue.
    pub dropped: u64,
    /// Packets lost by the link's loss process.
    pub lost: u64,
    /// Packets that left the queue with CE.
    pub marked: u64,
    /// Longest time a packet waited until its transmission began.
    pub max_sojourn: Span,
    /// Sum of those times over all packets, for the mean.
    pub total_sojourn: Span,
    /// Time the transmitter was busy.
    pub busy: Span,
    /// Packets still stored at the end.
    pub stored: u64,
}

/// What happened to a packet.
pub(super) enum Event {
    /// Its transmission began.
    Sent {
        frame: Handle,
        done: Time,
        /// When it has reached the other end.
        arrival: Time,
    },
    Dropped(Handle, DropReason),
    Lost(Handle),
}

/// A link in operation.
#[derive(Debug)]
pub(super) struct Link {
    queue: Queue<Handle>,
    transmitter: Transmitter,
    loss: Loss,
    marking: Loss,
    jitter: Option<Jitter>,
    overhead: u32,
    delay: Span,
    /// What becomes of Quick-Start options.
    pub(super) requests: Requests,
    /// When the transmitter is free again.
    free: Time,
    /// When it wants to be asked for the next packet; [`Time::NEVER`] if nothing waits.
    pub(super) wake: Time,
    outcome: LinkOutcome,
}

impl Link {
    pub(super) fn new(config: &LinkConfig, base: u64) -> Self {
        Self {
            queue: Queue::new(&config.queue, Purpose::Queue.seed_in_real_time(base)),
            transmitter: Transmitter::new(&config.rate),
            loss: Loss::new(&config.loss, Purpose::Loss.seed_in_real_time(base)),
            marking: Loss::new(&config.marking, Purpose::Marking.seed_in_real_time(base)),
            jitter: config.jitter.as_ref().map(|jitter| Jitter::new(jitter, Purpose::Jitter.seed_in_real_time(base))),
            overhead: config.overhead,
            delay: config.delay,
            requests: Requests::new(&config.quick_start, base),
            free: Time::ZERO,
            wake: Time::NEVER,
            outcome: LinkOutcome::default(),
        }
    }

    /// A packet arrives.
    pub(super) fn arrive(&mut self, now: Time, mut frame: Handle, events: &mut Vec<Event>) {
        frame.arrived = now;
        frame.marked_here = false;
        self.outcome.arrived += 1;
        if self.loss.hits() {
            self.outcome.lost += 1;
            events.push(Event::Lost(frame));
            return;
        }
        if self.marking.hits() {
            frame.set_ce();
        }
        let dropped = &mut self.outcome.dropped;
        self.queue.enqueue(now, frame, &mut |frame, reason| {
            *dropped += 1;
            events.push(Event::Dropped(frame, reason));
        });
        if self.free <= now {
            self.transmit(now, events);
        } else if self.wake == Time::NEVER {
            self.wake = self.free;
        }
    }

    /// A packet was lost before it arrived.
    pub(super) fn lose(&mut self, frame: Handle, events: &mut Vec<Event>) {
        self.outcome.arrived += 1;
        self.outcome.lost += 1;
        events.push(Event::Lost(frame));
    }

    /// The transmitter is free: begins the next transmission, if any.
    pub(super) fn transmit(&mut self, now: Time, events: &mut Vec<Event>) {
        let dropped = &mut self.outcome.dropped;
        let next = self.queue.dequeue(now, &mut |frame, reason| {
            *dropped += 1;
            events.push(Event::Dropped(frame, reason));
        });
        match next {
            Dequeue::Packet(frame, arrived) => {
                let bytes = frame.bytes + self.overhead;
                let done = self.transmitter.transmit(now, bytes);
                let sojourn = now.since(arrived);
                let outcome = &mut self.outcome;
                outcome.packets += 1;
                outcome.bytes += Bytes::new(u64::from(bytes));
                outcome.marked += u64::from(frame.ecn == Ecn::Ce);
                outcome.max_sojourn = outcome.max_sojourn.max(sojourn);
                outcome.total_sojourn += sojourn;
                outcome.busy += done.since(now);
                self.free = done;
                self.wake = if self.queue.packets() > 0 { done } else { Time::NEVER };
                let arrival = done + self.delay;
                let arrival = self.jitter.as_mut().map_or(arrival, |jitter| jitter.delay(arrival));
                events.push(Event::Sent { frame, done, arrival });
            }
            Dequeue::Empty => self.wake = Time::NEVER,
            Dequeue::NotBefore(time) => self.wake = time.max(now + Span::from_nanos(1)),
        }
    }

    /// What it did so far.
    pub(super) fn outcome(&self) -> LinkOutcome {
        LinkOutcome { stored: self.queue.packets(), ..self.outcome.clone() }
    }
}
