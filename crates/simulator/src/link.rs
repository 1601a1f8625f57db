//! A link in operation, and what only some links have.

use flowstart_network::packet::Body;
use flowstart_network::{
    Frame, LinkConfig, Loss, Medium, Packet, Queue, QuickStartHop, Rcp, Transmitter, Variation, Wifi,
};
use flowstart_quick_start::router::RouterCounts;
use flowstart_random::Purpose;
use flowstart_units::{Bytes, Span, Time};

use crate::LinkOutcome;
use crate::requests::Requests;
use crate::route::Hop;

/// A link in operation.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) queue: Queue<Packet>,
    pub(crate) transmitter: Transmitter,
    pub(crate) loss: Loss,
    pub(crate) marking: Loss,
    /// What only some links have; one question per packet for all of it.
    pub(crate) extras: Option<Box<Extras>>,
    pub(crate) overhead: u32,
    /// Something stands before the queue: a middlebox that drops packets with options, a policer,
    /// or a router that counts what arrives.
    pub(crate) guarded: bool,
    /// When the transmitter is free again; [`Time::NEVER`] if the medium serves the queue itself.
    pub(crate) free: Time,
    /// `2 * route + direction` to lane.
    pub(crate) hops: Vec<Hop>,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) dropped: u64,
    pub(crate) lost: u64,
    pub(crate) marked: u64,
    pub(crate) max_sojourn: Span,
    pub(crate) total_sojourn: Span,
    pub(crate) busy: Span,
}

impl Link {
    /// Builds a link; `of` is what its random numbers come from: seed, run, and which link it is.
    pub(crate) fn new(config: &LinkConfig, of: (u64, u64, u64), hops: Vec<Hop>, asks: bool) -> Self {
        let (seed, run, index) = of;
        let seed_for = |purpose: Purpose| purpose.seed(seed, run, index);
        let serves_itself = config.medium.wifi.is_some();
        Self {
            queue: Queue::new(&config.queue, seed_for(Purpose::Queue)),
            transmitter: Transmitter::new(&config.wire_rate()),
            loss: Loss::new(&config.loss, seed_for(Purpose::Loss)),
            marking: Loss::new(&config.marking, seed_for(Purpose::Marking)),
            extras: Extras::new(
                config,
                [seed_for(Purpose::Jitter), seed_for(Purpose::Medium)],
                asks.then(|| {
                    let nonces = || Purpose::Nonce.stream(seed, run, index);
                    Requests::new(&config.quick_start, nonces)
                }),
            ),
            overhead: config.overhead,
            guarded: config.quick_start == QuickStartHop::DropsOptions
                || config.medium.policer.is_some()
                || (asks && config.rcp.is_some()),
            free: if serves_itself { Time::NEVER } else { Time::ZERO },
            hops,
            packets: 0,
            bytes: 0,
            dropped: 0,
            lost: 0,
            marked: 0,
            max_sojourn: Span::ZERO,
            total_sojourn: Span::ZERO,
            busy: Span::ZERO,
        }
    }

    fn requests(&self) -> Option<&Requests> {
        self.extras.as_ref()?.requests.as_ref()
    }

    fn wifi(&self) -> Option<&Wifi<Packet>> {
        self.extras.as_ref()?.medium.as_ref()?.wifi.as_ref()
    }

    /// Packets in the queue and in the medium.
    pub(crate) fn stored(&self) -> u64 {
        self.queue.packets() + self.wifi().map_or(0, Wifi::stored)
    }

    /// False if what stands before the queue lets a packet not pass.
    #[inline(never)]
    pub(crate) fn admits(&mut self, now: Time, packet: &Packet) -> bool {
        let bytes = packet.bytes() + self.overhead;
        let queued = self.queue.bytes();
        let Some(extras) = &mut self.extras else { return true };
        if let Some(rcp) = &mut extras.rcp {
            let rtt = if let Body::Segment(segment) = &packet.body { segment.quick_start.rtt() } else { None };
            rcp.arrived(now, bytes, rtt, queued);
        }
        let dropped = extras.drops_options && carries_option(packet);
        !dropped && extras.medium.as_mut().is_none_or(|medium| medium.admits(now, bytes))
    }

    /// What it did.
    pub(crate) fn outcome(&self) -> LinkOutcome {
        LinkOutcome {
            packets: self.packets,
            bytes: Bytes::new(self.bytes),
            dropped: self.dropped,
            lost: self.lost,
            marked: self.marked,
            max_sojourn: self.max_sojourn,
            total_sojourn: self.total_sojourn,
            busy: self.busy,
            quick_start: self.requests().map_or_else(RouterCounts::default, Requests::counts),
            stored: self.stored(),
        }
    }
}

/// What only some links have.
#[derive(Debug)]
pub(crate) struct Extras {
    pub(crate) medium: Option<Medium<Packet>>,
    pub(crate) variation: Option<Variation>,
    /// A middlebox drops packets with options.
    pub(crate) drops_options: bool,
    /// What becomes of Quick-Start options, if anybody sends any.
    pub(crate) requests: Option<Requests>,
    /// The router tells its rate, if anybody asks for it.
    pub(crate) rcp: Option<Box<Rcp>>,
}

impl Extras {
    /// A packet leaves a queue that still has `queued` bytes: what it asks for is decided on.
    #[inline(never)]
    pub(crate) fn look(&mut self, now: Time, packet: &mut Packet, queued: u64) {
        if let Some(requests) = &mut self.requests {
            if let Some(rcp) = &mut self.rcp
                && let Body::Segment(segment) = &mut packet.body
                && segment.quick_start.asks_for_share()
            {
                segment.quick_start.pass_sharing(rcp.share(now, queued));
                // What looks at Quick-Start alone counts it, and would say that it knows no shares.
                let mut copy = *packet;
                return requests.look(now, &mut copy);
            }
            requests.look(now, packet);
        }
    }

    fn new(config: &LinkConfig, [jitter, medium]: [u64; 2], requests: Option<Requests>) -> Option<Box<Self>> {
        let variation = Variation::new(config, jitter);
        let medium = Medium::new(config, medium);
        let drops_options = config.quick_start == QuickStartHop::DropsOptions;
        // Where there are outages, every packet is asked how long it waits and is sent.
        let outages = config.wire_rate().has_outages();
        let needed = variation.is_some() || medium.is_some() || requests.is_some() || drops_options || outages;
        let rcp = config.rcp.as_ref().filter(|_| requests.is_some()).map(|rcp| Box::new(Rcp::new(rcp)));
        needed.then(|| Box::new(Self { medium, variation, drops_options, requests, rcp }))
    }
}

/// True if a packet carries a Quick-Start option of IP.
fn carries_option(packet: &Packet) -> bool {
    matches!(&packet.body, Body::Segment(segment) if !segment.quick_start.is_none())
}
