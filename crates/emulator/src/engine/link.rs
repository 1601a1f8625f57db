//! A link in operation. The rules are those of the simulator's network, on real frames.

use flowstart_network::{
    Dequeue, DropReason, Ecn, Frame as _, Hosts, LinkConfig, Loss, Medium, Passage, Queue, Sending, Served,
    Transmitter, Variation, Wifi,
};
use flowstart_random::Purpose;
use flowstart_units::{Bytes, Span, Time};

use super::frames::Handle;
use super::requests::Requests;
use crate::wire::{self, FlowKey};

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
pub(super) enum PacketEvent {
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
    /// The queue asks to which hosts flows belong.
    hosting: bool,
    transmitter: Transmitter,
    loss: Loss,
    marking: Loss,
    variation: Option<Variation>,
    medium: Option<Medium<Handle>>,
    overhead: u32,
    delay: Span,
    /// What becomes of Quick-Start options.
    pub(super) requests: Requests,
    /// When the transmitter is free again.
    free: Time,
    /// When it wants to be asked for the next packet; [`Time::NEVER`] if nothing waits.
    pub(super) wake: Time,
    outcome: LinkOutcome,
    /// What the medium has just served; empty but for its room.
    served: Vec<Served<Handle>>,
}

impl Link {
    /// A link whose random streams have the seeds that `seed` gives.
    pub(super) fn new(config: &LinkConfig, seed: impl Fn(Purpose) -> u64) -> Self {
        Self {
            hosting: config.queue.asks_for_hosts(),
            queue: Queue::new(&config.queue, seed(Purpose::Queue)),
            transmitter: Transmitter::new(&config.wire_rate()),
            loss: Loss::new(&config.loss, seed(Purpose::Loss)),
            marking: Loss::new(&config.marking, seed(Purpose::Marking)),
            variation: Variation::new(config, seed(Purpose::Jitter)),
            medium: Medium::new(config, seed(Purpose::Medium)),
            overhead: config.overhead,
            delay: config.delay,
            requests: Requests::new(&config.quick_start, seed(Purpose::Nonce)),
            free: Time::ZERO,
            wake: Time::NEVER,
            outcome: LinkOutcome::default(),
            served: Vec::new(),
        }
    }

    /// Packets of a flow with this number will come.
    pub(super) fn introduce(&mut self, flow: u32, key: &FlowKey) {
        if self.hosting {
            let [source, destination] = [key.source, key.destination].map(wire::number);
            self.queue.introduce(flow.into(), Hosts { source, destination });
        }
    }

    /// A packet arrives.
    pub(super) fn arrive(&mut self, now: Time, mut frame: Handle, events: &mut Vec<PacketEvent>) {
        frame.arrived = now;
        frame.marked_here = false;
        self.outcome.arrived += 1;
        let admitted = |medium: &mut Medium<Handle>| medium.admits(now, frame.bytes + self.overhead);
        if self.loss.hits() || !self.medium.as_mut().is_none_or(admitted) {
            self.outcome.lost += 1;
            events.push(PacketEvent::Lost(frame));
            return;
        }
        if self.marking.hits() {
            frame.set_ce();
        }
        let dropped = &mut self.outcome.dropped;
        self.queue.enqueue(now, frame, &mut |frame, reason| {
            *dropped += 1;
            events.push(PacketEvent::Dropped(frame, reason));
        });
        if self.wifi().is_some() {
            if self.wake == Time::NEVER {
                self.serve(now, events);
            }
        } else if self.free <= now {
            self.transmit(now, events);
        } else if self.wake == Time::NEVER {
            self.wake = self.free;
        }
    }

    /// A packet was lost before it arrived.
    pub(super) fn lose(&mut self, frame: Handle, events: &mut Vec<PacketEvent>) {
        self.outcome.arrived += 1;
        self.outcome.lost += 1;
        events.push(PacketEvent::Lost(frame));
    }

    /// The transmitter is free: begins the next transmission, if any.
    pub(super) fn transmit(&mut self, now: Time, events: &mut Vec<PacketEvent>) {
        if self.wifi().is_some() {
            return self.serve(now, events);
        }
        let dropped = &mut self.outcome.dropped;
        let next = self.queue.dequeue(now, &mut |frame, reason| {
            *dropped += 1;
            events.push(PacketEvent::Dropped(frame, reason));
        });
        match next {
            Dequeue::Packet(frame, arrived) => {
                let bytes = frame.bytes + self.overhead;
                let Passage { begun, busy, done, there } = match &mut self.medium {
                    Some(medium) => medium.pass(&mut self.transmitter, now, arrived, bytes),
                    None => {
                        let Sending { begun, busy, done } = self.transmitter.send(now, bytes);
                        Passage { begun, busy, done, there: Some(done) }
                    }
                };
                // An outage is no sending.
                self.outcome.busy += if there.is_some() { busy } else { Span::ZERO };
                self.free = done;
                self.wake = if self.queue.waits_for_link() { done } else { Time::NEVER };
                self.left(frame, begun.since(arrived), done, there, events);
            }
            Dequeue::Empty => self.wake = Time::NEVER,
            Dequeue::NotBefore(time) => self.wake = time.max(now + Span::from_nanos(1)),
        }
    }

    fn wifi(&self) -> Option<&Wifi<Handle>> {
        self.medium.as_ref()?.wifi.as_ref()
    }

    /// Lets a medium that serves the queue itself do so.
    fn serve(&mut self, now: Time, events: &mut Vec<PacketEvent>) {
        let Some(mut wifi) = self.medium.as_mut().and_then(|medium| medium.wifi.take()) else { return };
        let busy = wifi.busy();
        let mut served = std::mem::take(&mut self.served);
        self.wake = wifi.serve(now, &mut self.queue, self.overhead, &mut |what| served.push(what));
        self.outcome.busy += wifi.busy() - busy;
        if let Some(medium) = &mut self.medium {
            medium.wifi = Some(wifi);
        }
        for what in served.drain(..) {
            match what {
                Served::Sent { packet, arrived, begun, done } => {
                    let there = self.medium.as_ref().map_or(Some(done), |medium| medium.beyond(done));
                    self.left(packet, begun.since(arrived), done, there, events);
                }
                Served::Dropped(frame, reason) => {
                    self.outcome.dropped += 1;
                    events.push(PacketEvent::Dropped(frame, reason));
                }
                Served::Lost(frame) => {
                    self.outcome.lost += 1;
                    events.push(PacketEvent::Lost(frame));
                }
            }
        }
        self.served = served;
    }

    /// A packet that waited for `sojourn` leaves, or is lost on its way.
    fn left(&mut self, frame: Handle, sojourn: Span, done: Time, there: Option<Time>, events: &mut Vec<PacketEvent>) {
        let Some(there) = there else {
            self.outcome.lost += 1;
            return events.push(PacketEvent::Lost(frame));
        };
        let outcome = &mut self.outcome;
        outcome.packets += 1;
        outcome.bytes += Bytes::new(u64::from(frame.bytes + self.overhead));
        outcome.marked += u64::from(frame.ecn == Ecn::Ce);
        outcome.max_sojourn = outcome.max_sojourn.max(sojourn);
        outcome.total_sojourn += sojourn;
        let arrival = there + self.delay;
        let arrival = self.variation.as_mut().map_or(arrival, |variation| variation.delay(arrival));
        events.push(PacketEvent::Sent { frame, done, arrival });
    }

    /// What it did so far.
    pub(super) fn outcome(&self) -> LinkOutcome {
        let held = self.wifi().map_or(0, Wifi::stored);
        LinkOutcome { stored: self.queue.packets() + held, ..self.outcome.clone() }
    }
}

#[cfg(test)]
mod tests {
    use flowstart_network::packet::Body;
    use flowstart_network::{
        Detour, GrantsConfig, HandoverConfig, JitterConfig, LossConfig, MediumConfig, Packet, PolicerConfig,
        QueueConfig, RateSchedule, RedConfig, SchRedConfig, ShaperConfig, SlotsConfig, WifiConfig,
    };
    use flowstart_simulator::{
        Access, FlowConfig, LinkId, Observer, Place, Simulation, SimulationConfig, Spacing, Stop, Traffic, UdpConfig,
    };
    use flowstart_units::Rate;

    use super::*;

    /// When datagrams came to the link, and when they were received.
    #[derive(Default)]
    struct Watch {
        arrived: Vec<Time>,
        received: Vec<(u64, Time)>,
    }

    impl Observer for Watch {
        fn arrived(&mut self, now: Time, _link: LinkId, _packet: &Packet, _packets: u64, _bytes: u64) {
            self.arrived.push(now);
        }

        fn received(&mut self, now: Time, packet: &Packet) {
            let Body::Datagram(datagram) = packet.body else { panic!("only datagrams are sent") };
            self.received.push((datagram.number, now));
        }
    }

    /// What came, and how long the link was sending.
    fn simulated(link: &LinkConfig) -> (Watch, Span) {
        let udp = UdpConfig {
            rate: Rate::from_mbps(14),
            packet: 1500,
            spacing: Spacing::Constant,
            lasting: Span::from_millis(400),
            ecn: false,
        };
        let flow = FlowConfig {
            forward: vec![0],
            reverse: vec![],
            access: Access { rate: Rate::UNLIMITED, delay: Span::ZERO },
            tail_delay: Span::ZERO,
            return_delay: Span::ZERO,
            start: Time::ZERO,
            traffic: Traffic::Udp(udp),
            group: 0,
            place: Place::default(),
        };
        let config = SimulationConfig {
            links: vec![link.clone()],
            ways: vec![],
            flows: vec![flow],
            arrivals: vec![],
            sessions: vec![],
            stop: Stop::At(Time::from_nanos(2_000_000_000)),
            seed: 3,
            run: 2,
        };
        let (outcome, watch) = Simulation::new(&config, Watch::default()).unwrap().run();
        (watch, outcome.links[0].busy)
    }

    /// The same arrivals at a link of the emulator, in virtual time.
    fn emulated(link: &LinkConfig, arrived: &[Time]) -> (Vec<(u64, Time)>, Span) {
        let mut link = Link::new(link, |purpose| purpose.seed(3, 2, 0));
        let (mut events, mut received) = (Vec::new(), Vec::new());
        for (number, time) in arrived.iter().map(Some).chain([None]).enumerate() {
            while link.wake != Time::NEVER && time.is_none_or(|time| link.wake <= *time) {
                let now = link.wake;
                link.transmit(now, &mut events);
            }
            if let Some(time) = time {
                link.arrive(*time, frame(number as u32, *time), &mut events);
            }
            received.extend(events.drain(..).filter_map(|event| match event {
                PacketEvent::Sent { frame, arrival, .. } => Some((u64::from(frame.place), arrival)),
                PacketEvent::Dropped(..) | PacketEvent::Lost(_) => None,
            }));
        }
        received.sort_by_key(|(number, time)| (*time, *number));
        (received, link.outcome.busy)
    }

    fn frame(place: u32, arrived: Time) -> Handle {
        let ecn = Ecn::NotEct;
        Handle { place, bytes: 1500, flow: 0, route: 0, step: 0, ecn, ack: None, marked_here: false, arrived }
    }

    /// Differential: every kind of link, here and in the simulator, to the nanosecond. What is
    /// random draws the same numbers.
    #[test]
    fn links_of_every_kind_do_what_those_of_the_simulator_do() {
        let plain = MediumConfig::default();
        let ms = Span::from_millis;
        let shaper = ShaperConfig {
            peak: Some(Rate::from_mbps(13)),
            line: Some(Rate::from_mbps(100)),
            ..ShaperConfig::new(Bytes::new(20_000))
        };
        let handover = HandoverConfig { every: ms(70), spread: ms(20), outage: ms(15) };
        let slots = SlotsConfig { errors: 0.3, again_after: ms(8), ..SlotsConfig::new(ms(4)) };
        let wifi = WifiConfig { errors: 0.2, others: 1, ..WifiConfig::default() };
        let media = [
            plain.clone(),
            MediumConfig { handover: Some(handover), ..plain.clone() },
            MediumConfig { slots: Some(slots), ..plain.clone() },
            MediumConfig { wifi: Some(wifi), ..plain.clone() },
            MediumConfig { shaper: Some(shaper), ..plain.clone() },
            MediumConfig {
                policer: Some(PolicerConfig { rate: Rate::from_mbps(10), burst: Bytes::new(9_000) }),
                ..plain.clone()
            },
            MediumConfig { wifi: Some(WifiConfig { contention_window: 0, ..WifiConfig::default() }), ..plain.clone() },
            MediumConfig { grants: Some(GrantsConfig { every: ms(2), delay: ms(5) }), ..plain.clone() },
            MediumConfig { slots: Some(SlotsConfig::new(ms(4))), ..plain.clone() },
            MediumConfig {
                detours: vec![Detour { at: ms(100), extra: ms(9) }, Detour { at: ms(200), extra: ms(0) }],
                ..plain.clone()
            },
        ];
        let rate = RateSchedule::Constant(Rate::from_mbps(12));
        let steady = LinkConfig::new(rate, ms(10), QueueConfig::drop_tail(20));
        let mut links: Vec<LinkConfig> =
            media.into_iter().map(|medium| LinkConfig { medium, ..steady.clone() }).collect();
        let jitter = |reorder| Some(JitterConfig { spread: ms(9), reorder });
        let bursts = LossConfig::GilbertElliott { to_bad: 0.02, to_good: 0.2, hit_in_good: 0.001, hit_in_bad: 0.7 };
        links.push(LinkConfig { jitter: jitter(false), ..steady.clone() });
        links.push(LinkConfig { jitter: jitter(true), ..steady.clone() });
        links.push(LinkConfig { loss: LossConfig::Bernoulli { probability: 0.1 }, ..steady.clone() });
        links.push(LinkConfig { loss: bursts, ..steady.clone() });
        links.push(LinkConfig { queue: QueueConfig::Red(RedConfig::default()), ..steady.clone() });
        for link in links {
            assert_eq!(link.validate(), Ok(()));
            let (Watch { arrived, received }, busy) = simulated(&link);
            assert!(received.len() > 250, "{link:?}: {}", received.len());
            assert_eq!(emulated(&link, &arrived), (received, busy), "{link:?}");
        }
    }

    /// Linux's `sch_red` begins to be idle when it is asked and has nothing.
    #[test]
    fn a_queue_that_heeds_that_it_is_empty_is_asked_once_more_after_its_last_packet() {
        let rate = RateSchedule::Constant(Rate::from_mbps(12));
        for (queue, again) in [
            (QueueConfig::drop_tail(20), Time::NEVER),
            (QueueConfig::SchRed(SchRedConfig::default()), Time::ZERO + Span::from_millis(1)),
        ] {
            let config = LinkConfig::new(rate.clone(), Span::ZERO, queue);
            let (mut link, mut events) = (Link::new(&config, |purpose| purpose.seed(3, 2, 0)), Vec::new());
            link.arrive(Time::ZERO, frame(0, Time::ZERO), &mut events);
            assert_eq!(link.wake, again);
            if again != Time::NEVER {
                link.transmit(again, &mut events);
                assert_eq!((link.wake, events.len()), (Time::NEVER, 1));
            }
        }
    }

    /// One connection of a host and three of another, by their addresses.
    #[test]
    fn hosts_of_fairness_per_host_are_addresses() {
        let queue = QueueConfig::HostFairness(flowstart_network::HostFairnessConfig::default());
        let rate = RateSchedule::Constant(Rate::from_mbps(12));
        let mut link = Link::new(&LinkConfig::new(rate, Span::ZERO, queue), |purpose| purpose.seed(1, 0, 0));
        let key = |host: u8, port: u16| FlowKey {
            source: std::net::Ipv4Addr::new(10, 0, 0, host).into(),
            destination: std::net::Ipv4Addr::new(10, 0, 1, port as u8).into(),
            source_port: port,
            destination_port: 80,
            protocol: 6,
        };
        let (mut events, mut sent) = (Vec::new(), [0; 4]);
        for (flow, (host, port)) in [(1, 1), (2, 2), (2, 3), (2, 4)].into_iter().enumerate() {
            link.introduce(flow as u32, &key(host, port));
        }
        for round in 0..40_u64 {
            for flow in 0..4 {
                let frame = Handle {
                    place: 0,
                    bytes: 1500,
                    flow,
                    route: 0,
                    step: 0,
                    ecn: Ecn::NotEct,
                    ack: None,
                    marked_here: false,
                    arrived: Time::ZERO,
                };
                link.arrive(Time::from_nanos(round), frame, &mut events);
            }
        }
        while link.wake != Time::NEVER && sent.iter().sum::<u32>() < 60 {
            link.transmit(link.wake, &mut events);
            for event in events.drain(..) {
                if let PacketEvent::Sent { frame, .. } = event {
                    sent[frame.flow as usize] += 1;
                }
            }
        }
        assert!((28..=32).contains(&sent[0]) && sent[1..].iter().all(|sent| (9..=11).contains(sent)), "{sent:?}");
    }
}
