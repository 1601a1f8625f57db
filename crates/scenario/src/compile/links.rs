//! The links of a scenario: a path's one or two, or those that are named.

use flowstart_network::{DrrConfig, LinkConfig, LinkError, LossConfig, PolicerConfig, QueueConfig};
use flowstart_random::Purpose;
use flowstart_simulator::{FlowConfig, Traffic};
use flowstart_units::Span;

use super::Compiler;
use crate::error::Problem;
use crate::path::{BOTTLENECK, WAY_BACK};
use crate::{Buffer, LinkSpec, PathSpec, QueueSpec, QuickStartSpec, RateSpec, WaySpec, name_of_way};

/// What is wrong with a link, at the key that is; `reverse` if the keys are those of a way back.
fn problem(error: &LinkError, reverse: bool) -> Problem {
    let key = match (error.field(), reverse) {
        ("loss", false) => "loss",
        ("loss", true) => "reverse_loss",
        ("marking", _) => "mark",
        ("queue", false) => "queue",
        ("queue", true) => "reverse_queue",
        ("medium", false) => "medium",
        ("medium", true) => "reverse_medium",
        ("overhead", _) => "overhead",
        ("rcp", _) => "rcp",
        (_, false) => "capacity",
        (_, true) => "reverse_capacity",
    };
    Problem::at(key, error.message())
}

/// What ways in parallel to a link take from it unless they say something else.
struct Beside<'a> {
    /// Its number.
    link: usize,
    capacity: &'a RateSpec,
    queue: QueueSpec,
    buffer: Buffer,
    /// The round-trip time that a buffer in BDP refers to.
    rtt: Option<Span>,
    quick_start: &'a QuickStartSpec,
    /// Bytes of the smallest packet that must find room.
    packet: u64,
}

impl<'a> Compiler<'a> {
    /// Bytes of a full packet on the wire, for buffers in BDP.
    pub(super) fn packet_bytes(&self, overhead: u32) -> u64 {
        let sender = self.scenario.flow.first().map(|flow| &flow.sender);
        let (mss, header) = sender.map_or((1448, 52), |sender| (sender.mss, sender.header_bytes));
        u64::from(mss) + u64::from(header) + u64::from(overhead)
    }

    /// Refuses a queue that not even one packet fits into.
    fn check_room(link: &LinkConfig, packet: u64, place: &str) -> Result<(), Problem> {
        let room = link.queue.largest_packet();
        if room >= packet {
            return Ok(());
        }
        Err(Problem::at(
            place,
            format!(
                "a queue that holds {room} B has no room for a packet of {packet} B, so nothing would get through; \
                 the smallest buffer is \"1 packet\""
            ),
        ))
    }

    /// Refuses a limit of one flow that all flows together never come to.
    fn check_flow_limit(link: &LinkConfig, place: &str) -> Result<(), Problem> {
        let QueueConfig::Drr(drr) = &link.queue else { return Ok(()) };
        let (own, usual) = (drr.flow_limit, DrrConfig::default().flow_limit);
        match drr.limit.packets.filter(|all| own > *all && own != usual) {
            None => Ok(()),
            Some(all) => Err(Problem::at(
                place,
                format!(
                    "a flow_limit of {own} packets would have no influence, since of all flows the queue holds {all} \
                     packets; give less to one flow, more to all, or leave it out"
                ),
            )),
        }
    }

    /// Refuses a policer whose bucket never has enough tokens for one packet.
    fn check_policer(link: &LinkConfig, packet: u64, place: &str) -> Result<(), Problem> {
        let packet = packet + u64::from(link.overhead);
        match link.medium.policer {
            Some(PolicerConfig { burst, .. }) if burst.get() < packet => Err(Problem::at(
                place,
                format!(
                    "a policer with a burst of {burst} lets no packet of {packet} B pass, overhead included, so nothing \
                     would get through; the smallest burst here is \"{packet} B\""
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Refuses a shaper whose buckets have no room for a packet that somebody sends over it: Linux
    /// drops that one, which here would pass.
    pub(super) fn check_shapers(&self) -> Result<(), Problem> {
        for (place, link) in self.links.iter().enumerate() {
            let Some(shaper) = &link.medium.shaper else { continue };
            let way_to = |hop: &usize| self.ways.iter().any(|group| group[0] == *hop && group.contains(&place));
            let crosses = |path: &[usize]| path.iter().any(|hop| *hop == place || way_to(hop));
            let packet = |flow: &FlowConfig| {
                let (there, back) = match &flow.traffic {
                    Traffic::Tcp(tcp) => {
                        let full = tcp.sender.mss.saturating_add(tcp.sender.header_bytes.into());
                        (u64::from(full), u64::from(tcp.receiver.header_bytes))
                    }
                    Traffic::Udp(udp) => (u64::from(udp.packet), 0),
                };
                crosses(&flow.forward).then_some(there).max(crosses(&flow.reverse).then_some(back))
            };
            let flows = self.flows.iter().chain(self.arrivals.iter().map(|arrivals| &arrivals.flow));
            let flows = flows.chain(self.sessions.iter().map(|session| &session.flow));
            let Some(packet) = flows.filter_map(packet).max().map(|packet| packet + u64::from(link.overhead)) else {
                continue;
            };
            let peak_burst = shaper.peak.map(|_| ("peak_burst", shaper.peak_burst));
            let buckets = [Some(("burst", shaper.burst)), peak_burst];
            if let Some((key, depth)) = buckets.into_iter().flatten().find(|(_, depth)| depth.get() < packet) {
                let message = format!(
                    "a shaper with a {key} of {depth} never has tokens for a packet of {packet} B, overhead included; \
                     the smallest {key} here is \"{packet} B\""
                );
                return Err(Problem::at(self.medium_of(place), message));
            }
        }
        Ok(())
    }

    /// The key that says what kind of link one is.
    fn medium_of(&self, place: usize) -> String {
        let group = self.ways.iter().find(|group| group[1..].contains(&place));
        let way = group.and_then(|group| Some((group[0], group.iter().position(|link| *link == place)?)));
        let first = way.map_or(place, |(first, _)| first);
        let table = match self.path {
            Some(_) => "path".to_owned(),
            None => {
                let link = self.scenario.link.iter().position(|link| link.name == self.names[first]);
                format!("link[{}]", link.unwrap_or(0))
            }
        };
        match way {
            Some((_, number)) => format!("{table}.ways[{}].medium", number - 1),
            None if self.names[place] == WAY_BACK && self.path.is_some() => format!("{table}.reverse_medium"),
            None => format!("{table}.medium"),
        }
    }

    /// Bytes of the smallest of the senders' full packets, and of their acknowledgements.
    pub(super) fn smallest_packets(&self) -> (u64, u64) {
        let scenario = self.scenario;
        let senders = scenario.flow.iter().chain(scenario.arrivals.iter().map(|arrivals| &arrivals.flow));
        let senders = senders.chain(scenario.web.iter().map(|web| &web.flow)).map(|flow| &flow.sender);
        let datagrams = scenario.udp.iter().map(|udp| udp.packet.get());
        let full = senders.clone().map(|sender| u64::from(sender.mss) + u64::from(sender.header_bytes));
        let acks = senders.map(|sender| u64::from(sender.header_bytes));
        (full.chain(datagrams).min().unwrap_or(1), acks.min().unwrap_or(1))
    }

    pub(super) fn add_path(&mut self, path: &PathSpec) -> Result<(), Problem> {
        if path.rtt.is_zero() {
            return Err(Problem::at("rtt", "a path has a round-trip time above 0, for instance \"20 ms\""));
        }
        let delay = path.delay.unwrap_or(path.rtt / 2);
        if delay > path.rtt {
            return Err(Problem::at("delay", format!("is longer than the whole round trip of {}", path.rtt)));
        }
        if path.merged_acks.is_some_and(|merged| merged.most == Some(0)) {
            let message = "at least one ACK is merged; leave it out for any number";
            return Err(Problem::at("merged_acks.most", message));
        }
        let rate = path.capacity.schedule(self.fading()).map_err(|error| Problem::at("capacity", error))?;
        path.queue.check_buffer("buffer", path.buffer)?;
        let buffer = path.buffer.unwrap_or(PathSpec::USUAL_BUFFER);
        let limits = buffer.limits(path.capacity.nominal(), path.rtt, self.packet_bytes(path.overhead));
        let mut link = LinkConfig::new(rate, delay, path.queue.with_buffer(limits.0, limits.1));
        link.overhead = path.overhead;
        link.loss = path.loss.0;
        link.marking = path.mark.0;
        link.jitter = path.jitter.map(|jitter| jitter.0);
        link.medium = path.medium.clone();
        link.quick_start = path.quick_start.hop(link.rate.peak(), self.router())?;
        link.rcp = path.rcp.map(|rcp| rcp.config(link.rate.peak()));
        link.validate().map_err(|error| problem(&error, false))?;
        let (packet, ack) = self.smallest_packets();
        Self::check_room(&link, packet, if link.queue == path.queue.0 { "queue" } else { "buffer" })?;
        Self::check_flow_limit(&link, "queue")?;
        Self::check_policer(&link, packet, "medium")?;
        self.links.push(link);
        self.names.push(BOTTLENECK.to_owned());
        let beside = Beside {
            link: 0,
            capacity: &path.capacity,
            queue: path.queue,
            buffer,
            rtt: Some(path.rtt),
            quick_start: &path.quick_start,
            packet,
        };
        self.add_way_back(path, ack)?;
        self.add_ways(&beside, &path.ways)
    }

    /// Adds the links in parallel to one.
    fn add_ways(&mut self, beside: &Beside<'_>, ways: &[WaySpec]) -> Result<(), Problem> {
        let mut group = vec![beside.link];
        for (place, way) in ways.iter().enumerate() {
            let within = |problem: Problem| problem.within(&format!("ways[{place}]"));
            group.push(self.links.len());
            self.add_way(beside, place, way).map_err(within)?;
        }
        if group.len() > 1 {
            self.ways.push(group);
        }
        Ok(())
    }

    fn add_way(&mut self, beside: &Beside<'_>, place: usize, way: &WaySpec) -> Result<(), Problem> {
        let name = name_of_way(&self.names[beside.link], place);
        if self.names.contains(&name) {
            return Err(Problem::at("name", format!("there are two links \"{name}\"")));
        }
        let capacity = way.capacity.as_ref().unwrap_or(beside.capacity);
        let rate = capacity.schedule(self.fading()).map_err(|error| Problem::at("capacity", error))?;
        let queue = way.queue.unwrap_or(beside.queue);
        queue.check_buffer("buffer", way.buffer)?;
        let buffer = way.buffer.unwrap_or(beside.buffer);
        let rtt = match (buffer, beside.rtt) {
            (Buffer::Bdp(_), None) => {
                return Err(Problem::at("buffer", "a buffer in BDP needs the rtt of the link it is in parallel to"));
            }
            (_, rtt) => rtt.unwrap_or(Span::ZERO),
        };
        let first = self.links[beside.link].clone();
        let limits = buffer.limits(capacity.nominal(), rtt, self.packet_bytes(first.overhead));
        let mut link = LinkConfig::new(rate, way.delay.unwrap_or(first.delay), queue.with_buffer(limits.0, limits.1));
        link.overhead = first.overhead;
        link.loss = way.loss.map_or(first.loss, |loss| loss.0);
        link.marking = way.mark.map_or(first.marking, |mark| mark.0);
        link.jitter = way.jitter.map(|jitter| jitter.0).or(first.jitter);
        link.medium = way.medium.clone().unwrap_or(first.medium);
        link.quick_start = beside.quick_start.hop(link.rate.peak(), self.router())?;
        link.validate().map_err(|error| problem(&error, false))?;
        Self::check_room(&link, beside.packet, if link.queue == queue.0 { "queue" } else { "buffer" })?;
        Self::check_flow_limit(&link, "queue")?;
        Self::check_policer(&link, beside.packet, "medium")?;
        self.links.push(link);
        self.names.push(name);
        Ok(())
    }

    /// The way back of a path, if its capacity is limited; `ack` is the smallest packet on it.
    fn add_way_back(&mut self, path: &PathSpec, ack: u64) -> Result<(), Problem> {
        if let Some(capacity) = &path.reverse_capacity {
            let rate = capacity.schedule(self.fading()).map_err(|error| Problem::at("reverse_capacity", error))?;
            path.reverse_queue.check_buffer("reverse_buffer", path.reverse_buffer)?;
            let buffer = path.reverse_buffer.unwrap_or(PathSpec::USUAL_BUFFER);
            let limits = buffer.limits_back(capacity.nominal(), path.rtt, self.packet_bytes(path.overhead));
            let queue = path.reverse_queue.with_buffer(limits.0, limits.1);
            let mut link = LinkConfig::new(rate, Span::ZERO, queue);
            link.overhead = path.overhead;
            link.loss = path.reverse_loss.0;
            link.jitter = path.reverse_jitter.map(|jitter| jitter.0);
            link.medium = path.reverse_medium.clone();
            link.validate().map_err(|error| problem(&error, true))?;
            Self::check_room(&link, ack, "reverse_buffer")?;
            Self::check_flow_limit(&link, "reverse_queue")?;
            self.links.push(link);
            self.names.push(WAY_BACK.to_owned());
        } else {
            let needs = [
                ("reverse_buffer", path.reverse_buffer.is_some_and(|size| size != PathSpec::USUAL_BUFFER), "wait at"),
                ("reverse_loss", path.reverse_loss.0 != LossConfig::None, "lose on"),
                ("reverse_queue", path.reverse_queue != QueueSpec::default(), "queue at"),
                ("reverse_jitter", path.reverse_jitter.is_some(), "be late on"),
                ("reverse_medium", !path.reverse_medium.is_plain(), "be of a kind"),
            ];
            if let Some((key, _, what)) = needs.into_iter().find(|(_, set, _)| *set) {
                return Err(Problem::at(key, format!("needs a reverse_capacity, so that there is a link to {what}")));
            }
        }
        Ok(())
    }

    pub(super) fn add_link(&mut self, spec: &LinkSpec) -> Result<(), Problem> {
        if self.names.contains(&spec.name) {
            return Err(Problem::at("name", format!("there are two links \"{}\"", spec.name)));
        }
        let rate = spec.capacity.schedule(self.fading()).map_err(|error| Problem::at("capacity", error))?;
        spec.queue.check_buffer("buffer", spec.buffer)?;
        let buffer = spec.buffer.unwrap_or(LinkSpec::USUAL_BUFFER);
        let rtt = match (buffer, spec.rtt) {
            (Buffer::Bdp(_), None) => {
                return Err(Problem::at("buffer", "a buffer in BDP needs the rtt it refers to: rtt = \"20 ms\""));
            }
            (_, rtt) => rtt.unwrap_or(Span::ZERO),
        };
        let limits = buffer.limits(spec.capacity.nominal(), rtt, self.packet_bytes(spec.overhead));
        let mut link = LinkConfig::new(rate, spec.delay, spec.queue.with_buffer(limits.0, limits.1));
        link.overhead = spec.overhead;
        link.loss = spec.loss.0;
        link.marking = spec.mark.0;
        link.jitter = spec.jitter.map(|jitter| jitter.0);
        link.medium = spec.medium.clone();
        link.quick_start = spec.quick_start.hop(link.rate.peak(), self.router())?;
        link.rcp = spec.rcp.map(|rcp| rcp.config(link.rate.peak()));
        link.validate().map_err(|error| problem(&error, false))?;
        // A link may be on the way back only.
        let (_, ack) = self.smallest_packets();
        Self::check_room(&link, ack, if link.queue == spec.queue.0 { "queue" } else { "buffer" })?;
        Self::check_flow_limit(&link, "queue")?;
        self.links.push(link);
        self.names.push(spec.name.clone());
        let beside = Beside {
            link: self.links.len() - 1,
            capacity: &spec.capacity,
            queue: spec.queue,
            buffer,
            rtt: spec.rtt,
            quick_start: &spec.quick_start,
            packet: ack,
        };
        self.add_ways(&beside, &spec.ways)
    }

    /// The seeds of the next link's router.
    fn router(&self) -> (u64, u64, usize) {
        (self.scenario.seed, self.run, self.links.len())
    }

    /// The seed with which the next link's rate fades.
    fn fading(&self) -> u64 {
        Purpose::Fading.seed(self.scenario.seed, self.run, self.links.len() as u64)
    }
}
