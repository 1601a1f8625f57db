//! From a scenario to the simulation of one run.

use flowstart_congestion::{AvoidanceConfig, ControllerConfig, StartConfig, joint_name, start_of};
use flowstart_network::{LinkConfig, LinkError, LossConfig, PolicerConfig};
use flowstart_random::{Purpose, below};
use flowstart_simulator::{
    Access, ArrivalConfig, FlowConfig, SessionConfig, SimulationConfig, Sizes, Spacing, Stop, TcpConfig, Traffic,
    UdpConfig, Workload,
};
use flowstart_transport::{EcnMode, Offload};
use flowstart_units::{Bytes, Rate, Span, Time};

use super::error::Problem;
use super::{
    ArrivalSpec, FlowSpec, LinkSpec, OffloadKind, PathSpec, Scenario, SizeSpec, SpacingSpec, UdpSpec, WebSpec,
};
use crate::suggest::nearest;

/// A scenario made into a simulation, and what its parts are called.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The simulation.
    pub simulation: SimulationConfig,
    /// What the flows of each group are; a flow's group is an index into this.
    pub groups: Vec<FlowLabel>,
    /// Names of the links.
    pub links: Vec<String>,
}

/// What a group of flows is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowLabel {
    /// Its name in the scenario, or its algorithm.
    pub name: String,
    /// "START+AVOIDANCE", or "udp".
    pub algorithm: String,
    /// Congestion control of the kernel that takes its place in real runs, if the scenario names
    /// one.
    pub kernel: Option<String>,
}

/// Most flows that a scenario may start by itself.
pub(super) const MOST_FLOWS: u64 = 1_000_000;

/// Links of the single-bottleneck form.
const BOTTLENECK: &str = "bottleneck";
const WAY_BACK: &str = "reverse";

impl Scenario {
    /// The simulation of one run.
    ///
    /// # Errors
    /// What does not fit together: unknown link names, algorithms, impossible values.
    pub(super) fn compile(&self, run: u64) -> Result<Compiled, Problem> {
        let mut compiler = Compiler::new(self, run)?;
        for (index, flow) in self.flow.iter().enumerate() {
            compiler.add_tcp(flow).map_err(|problem| problem.within(&format!("flow[{index}]")))?;
        }
        for (index, udp) in self.udp.iter().enumerate() {
            compiler.add_udp(udp).map_err(|problem| problem.within(&format!("udp[{index}]")))?;
        }
        for (index, arrivals) in self.arrivals.iter().enumerate() {
            compiler.add_arrivals(arrivals).map_err(|problem| problem.within(&format!("arrivals[{index}]")))?;
        }
        for (index, web) in self.web.iter().enumerate() {
            compiler.add_web(index, web).map_err(|problem| problem.within(&format!("web[{index}]")))?;
        }
        if compiler.flows.is_empty() && compiler.arrivals.is_empty() && self.web.is_empty() {
            return Err(Problem::at("flow", "nobody sends anything; add a [[flow]], [[udp]] or [[arrivals]]"));
        }
        if let Some(phases) = self.phases {
            compiler.move_starts(phases)?;
        }
        let end = Time::ZERO + self.duration;
        let simulation = SimulationConfig {
            links: compiler.links,
            flows: compiler.flows,
            arrivals: compiler.arrivals,
            sessions: compiler.sessions,
            stop: if self.stop_when_complete { Stop::WhenComplete(end) } else { Stop::At(end) },
            seed: self.seed,
            run,
        };
        simulation.validate().map_err(|error| Problem::at(error.place, error.message))?;
        Ok(Compiled { simulation, groups: compiler.groups, links: compiler.names })
    }

    /// The simulation of run number `run`, for a scenario that was read without errors.
    ///
    /// # Errors
    /// A sentence if the scenario was changed since into one that cannot be simulated.
    pub fn simulation(&self, run: u64) -> Result<Compiled, super::ScenarioError> {
        self.compile(run).map_err(|problem| problem.locate("scenario", ""))
    }
}

/// The key that a link's error is about; `capacity` is that of its rate.
fn place_of(error: &LinkError, capacity: &'static str) -> &'static str {
    match error.field() {
        "overhead" => "overhead",
        "medium" if capacity == "reverse_capacity" => "reverse_medium",
        "medium" => "medium",
        _ => capacity,
    }
}

struct Compiler<'a> {
    scenario: &'a Scenario,
    run: u64,
    path: Option<&'a PathSpec>,
    links: Vec<LinkConfig>,
    names: Vec<String>,
    flows: Vec<FlowConfig>,
    arrivals: Vec<ArrivalConfig>,
    sessions: Vec<SessionConfig>,
    groups: Vec<FlowLabel>,
}

impl<'a> Compiler<'a> {
    fn new(scenario: &'a Scenario, run: u64) -> Result<Self, Problem> {
        let mut compiler = Self {
            scenario,
            run,
            path: scenario.path.as_ref(),
            links: Vec::new(),
            names: Vec::new(),
            flows: Vec::new(),
            arrivals: Vec::new(),
            sessions: Vec::new(),
            groups: Vec::new(),
        };
        match (&scenario.path, scenario.link.as_slice()) {
            (Some(_), [_, ..]) => {
                return Err(Problem::at("link", "a scenario has either one [path] or several [[link]], not both"));
            }
            (None, []) => {
                return Err(Problem::at(
                    "path",
                    "there is no way; add a [path] with capacity and rtt, or [[link]] tables",
                ));
            }
            (Some(path), []) => compiler.add_path(path).map_err(|problem| problem.within("path"))?,
            (None, links) => {
                for (index, link) in links.iter().enumerate() {
                    compiler.add_link(link).map_err(|problem| problem.within(&format!("link[{index}]")))?;
                }
            }
        }
        Ok(compiler)
    }

    /// Bytes of a full packet on the wire, for buffers in BDP.
    fn packet_bytes(&self, overhead: u32) -> u64 {
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

    /// Bytes of the smallest of the senders' full packets, and of their acknowledgements.
    fn smallest_packets(&self) -> (u64, u64) {
        let scenario = self.scenario;
        let senders = scenario.flow.iter().chain(scenario.arrivals.iter().map(|arrivals| &arrivals.flow));
        let senders = senders.chain(scenario.web.iter().map(|web| &web.flow)).map(|flow| &flow.sender);
        let datagrams = scenario.udp.iter().map(|udp| udp.packet.get());
        let full = senders.clone().map(|sender| u64::from(sender.mss) + u64::from(sender.header_bytes));
        let acks = senders.map(|sender| u64::from(sender.header_bytes));
        (full.chain(datagrams).min().unwrap_or(1), acks.min().unwrap_or(1))
    }

    fn add_path(&mut self, path: &PathSpec) -> Result<(), Problem> {
        if path.rtt.is_zero() {
            return Err(Problem::at("rtt", "a path has a round-trip time above 0, for instance \"20 ms\""));
        }
        let delay = path.delay.unwrap_or(path.rtt / 2);
        if delay > path.rtt {
            return Err(Problem::at("delay", format!("is longer than the whole round trip of {}", path.rtt)));
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
        link.validate().map_err(|error| Problem::at(place_of(&error, "capacity"), error.to_string()))?;
        let (packet, ack) = self.smallest_packets();
        Self::check_room(&link, packet, if link.queue == path.queue.0 { "queue" } else { "buffer" })?;
        Self::check_policer(&link, packet, "medium")?;
        self.links.push(link);
        self.names.push(BOTTLENECK.to_owned());
        if let Some(capacity) = &path.reverse_capacity {
            let rate = capacity.schedule(self.fading()).map_err(|error| Problem::at("reverse_capacity", error))?;
            path.reverse_queue.check_buffer("reverse_buffer", path.reverse_buffer)?;
            let buffer = path.reverse_buffer.unwrap_or(PathSpec::USUAL_BUFFER);
            let limits = buffer.limits(capacity.nominal(), path.rtt, self.packet_bytes(path.overhead));
            let queue = path.reverse_queue.with_buffer(limits.0, limits.1);
            let mut link = LinkConfig::new(rate, Span::ZERO, queue);
            link.overhead = path.overhead;
            link.loss = path.reverse_loss.0;
            link.jitter = path.reverse_jitter.map(|jitter| jitter.0);
            link.medium = path.reverse_medium.clone();
            link.validate().map_err(|error| Problem::at(place_of(&error, "reverse_capacity"), error.to_string()))?;
            Self::check_room(&link, ack, "reverse_buffer")?;
            self.links.push(link);
            self.names.push(WAY_BACK.to_owned());
        } else {
            let needs = [
                ("reverse_buffer", path.reverse_buffer.is_some_and(|size| size != PathSpec::USUAL_BUFFER), "wait at"),
                ("reverse_loss", path.reverse_loss.0 != LossConfig::None, "lose on"),
                ("reverse_queue", path.reverse_queue != super::QueueSpec::default(), "queue at"),
                ("reverse_jitter", path.reverse_jitter.is_some(), "be late on"),
                ("reverse_medium", !path.reverse_medium.is_plain(), "be of a kind"),
            ];
            if let Some((key, _, what)) = needs.into_iter().find(|(_, set, _)| *set) {
                return Err(Problem::at(key, format!("needs a reverse_capacity, so that there is a link to {what}")));
            }
        }
        Ok(())
    }

    fn add_link(&mut self, spec: &LinkSpec) -> Result<(), Problem> {
        if self.names.contains(&spec.name) {
            return Err(Problem::at("name", format!("there are two links \"{}\"", spec.name)));
        }
        let rate = spec.capacity.schedule(self.fading()).map_err(|error| Problem::at("capacity", error))?;
        spec.queue.check_buffer("buffer", spec.buffer)?;
        let buffer = spec.buffer.unwrap_or(LinkSpec::USUAL_BUFFER);
        let rtt = match (buffer, spec.rtt) {
            (super::Buffer::Bdp(_), None) => {
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
        link.validate().map_err(|error| Problem::at(place_of(&error, "capacity"), error.to_string()))?;
        // A link may be on the way back only.
        let (_, ack) = self.smallest_packets();
        Self::check_room(&link, ack, if link.queue == spec.queue.0 { "queue" } else { "buffer" })?;
        self.links.push(link);
        self.names.push(spec.name.clone());
        Ok(())
    }

    /// Flows but the first start later, by a random part of this.
    fn move_starts(&mut self, phases: Span) -> Result<(), Problem> {
        if self.flows.len() < 2 {
            return Err(Problem::at("phases", "there is no second flow whose start could be moved"));
        }
        for (number, flow) in self.flows.iter_mut().enumerate().skip(1) {
            let mut random = Purpose::Phase.stream(self.scenario.seed, self.run, number as u64);
            flow.start += Span::from_nanos(below(&mut random, phases.as_nanos()));
        }
        Ok(())
    }

    /// The seeds of the next link's router.
    fn router(&self) -> (u64, u64, usize) {
        (self.scenario.seed, self.run, self.links.len())
    }

    /// The seed with which the next link's rate fades.
    fn fading(&self) -> u64 {
        Purpose::Fading.seed(self.scenario.seed, self.run, self.links.len() as u64)
    }

    fn find(&self, key: &str, names: &[String]) -> Result<Vec<usize>, Problem> {
        names
            .iter()
            .enumerate()
            .map(|(position, name)| {
                self.names.iter().position(|known| known == name).ok_or_else(|| {
                    let meant = nearest(name, self.names.iter().map(String::as_str))
                        .map(|meant| format!("; did you mean \"{meant}\"?"))
                        .unwrap_or_default();
                    let known = self.names.join(", ");
                    Problem::at(
                        format!("{key}[{position}]"),
                        format!("there is no link \"{name}\"; there are {known}{meant}"),
                    )
                })
            })
            .collect()
    }

    /// The way of a flow: links and the delays beside them.
    fn way(
        &self,
        forward: &[String],
        reverse: &[String],
        rtt: Option<Span>,
        traffic: Traffic,
    ) -> Result<FlowConfig, Problem> {
        let mut flow = FlowConfig {
            forward: self.find("forward", forward)?,
            reverse: self.find("reverse", reverse)?,
            access: Access { rate: Rate::UNLIMITED, delay: Span::ZERO },
            tail_delay: Span::ZERO,
            return_delay: Span::ZERO,
            start: Time::ZERO,
            traffic,
            group: self.groups.len() as u32,
        };
        if let Some(path) = self.path {
            let rtt = rtt.unwrap_or(path.rtt);
            if flow.forward.is_empty() {
                flow.forward = vec![0];
            }
            if flow.reverse.is_empty() && self.names.len() > 1 {
                flow.reverse = vec![1];
            }
            let delay = self.links[0].delay;
            let Some(rest) = rtt.checked_sub(delay) else {
                return Err(Problem::at("rtt", format!("is shorter than the delay of the bottleneck, {delay}")));
            };
            // Half of the way there lies before the bottleneck unless the bottleneck covers it.
            flow.access.delay = (rtt / 2) - delay;
            flow.return_delay = rest - flow.access.delay;
            if let Some(rate) = path.access {
                flow.access.rate = rate;
            }
        } else {
            if flow.forward.is_empty() {
                return Err(Problem::at("forward", "with [[link]] tables a flow names the links on its way"));
            }
            let propagation: Span = flow.forward.iter().chain(&flow.reverse).map(|link| self.links[*link].delay).sum();
            if let Some(rtt) = rtt {
                let Some(rest) = rtt.checked_sub(propagation) else {
                    return Err(Problem::at(
                        "rtt",
                        format!("is shorter than the delay of the links on the way, {propagation}"),
                    ));
                };
                flow.access.delay = rest / 2;
                flow.return_delay = rest - flow.access.delay;
            }
        }
        Ok(flow)
    }

    fn add_tcp(&mut self, spec: &FlowSpec) -> Result<(), Problem> {
        if u64::from(spec.count) + self.flows.len() as u64 > MOST_FLOWS {
            return Err(Problem::at("count", format!("a scenario starts at most {MOST_FLOWS} flows")));
        }
        let workload = workload(spec)?;
        let flow = self.tcp(spec, workload)?;
        for number in 0..spec.count {
            let start = Time::ZERO + spec.start + spec.every * u64::from(number);
            self.flows.push(FlowConfig { start, ..flow.clone() });
        }
        Ok(())
    }

    /// A TCP flow and its group.
    fn tcp(&mut self, spec: &FlowSpec, workload: Workload) -> Result<FlowConfig, Problem> {
        let (start, avoidance) = algorithms(spec)?;
        let name = joint_name(&start, &avoidance);
        if !(1..=65_000).contains(&spec.sender.mss) {
            return Err(Problem::at("sender.mss", "a segment carries 1 to 65000 bytes"));
        }
        if spec.initial_window == 0 || spec.initial_window > 1_000_000 {
            return Err(Problem::at("initial_window", "an initial window is 1 to 1000000 packets"));
        }
        let ecn = spec.ecn.unwrap_or(if avoidance.wants_ecn() { EcnMode::Dctcp } else { EcnMode::Off });
        let mut controller = ControllerConfig::new(start, avoidance);
        if spec.initial_ssthresh.is_some_and(|threshold| threshold < 2) {
            return Err(Problem::at("initial_ssthresh", "a threshold is at least 2 packets"));
        }
        controller.initial_window = spec.initial_window;
        controller.initial_ssthresh = spec.initial_ssthresh;
        controller.pacing = spec.pacing;
        controller.mss = spec.sender.mss;
        let (mut sender, mut receiver) = (spec.sender.clone(), spec.receiver.clone());
        if let Some(merged) = self.path.and_then(|path| path.merged_acks)
            && receiver.ack_aggregation.is_none()
        {
            if merged.most == Some(0) {
                return Err(Problem::at(
                    "path.merged_acks.most",
                    "at least one ACK is merged; leave it out for any number",
                ));
            }
            (receiver.ack_aggregation, receiver.ack_aggregation_most) = (Some(merged.within), merged.most);
        }
        if let Some(kind) = spec.offload {
            if sender.offload.is_some() {
                return Err(Problem::at("offload", "`sender.offload` says it already; leave one of them out"));
            }
            sender.offload = (kind == OffloadKind::Linux).then(Offload::default);
        }
        if let Some(offload) = &sender.offload {
            offload.validate().map_err(|error| Problem::at("sender.offload", error.to_string()))?;
        }
        if let Some(kind) = spec.receive_window {
            if receiver.window.is_some() {
                return Err(Problem::at("receive_window", "`receiver.window` says it already; leave one of them out"));
            }
            receiver.window = kind.window();
        }
        if let Some(window) = &mut receiver.window {
            window.validate().map_err(|error| Problem::at("receiver.window", error.to_string()))?;
            if receiver.receive_buffer.is_some() {
                return Err(Problem::at(
                    "receiver.receive_buffer",
                    "a receive window that grows has a buffer of its own (`receiver.window.max`); leave one of them out",
                ));
            }
            window.mss.get_or_insert(sender.mss);
            if !sender.handshake {
                sender.peer_window.get_or_insert(Bytes::new(window.first()));
            }
        }
        if spec.ecn.is_some() || ecn != EcnMode::Off {
            sender.ecn = ecn;
            receiver.ecn = ecn;
        }
        let tcp = TcpConfig { controller, sender, receiver, workload };
        let flow = self.way(&spec.forward, &spec.reverse, spec.rtt, Traffic::Tcp(Box::new(tcp)))?;
        let label = spec.name.as_ref().or(spec.kernel.as_ref()).unwrap_or(&name).clone();
        self.groups.push(FlowLabel { name: label, algorithm: name, kernel: spec.kernel.clone() });
        Ok(flow)
    }

    fn add_web(&mut self, table: usize, spec: &WebSpec) -> Result<(), Problem> {
        let flow = self.tcp(&spec.flow, Workload::Greedy).map_err(|problem| problem.within("flow"))?;
        let back: Span = flow.reverse.iter().map(|link| self.links[*link].delay).sum();
        let delay = flow.return_delay + back;
        let run = (self.scenario.seed, self.run, table, self.scenario.duration);
        self.sessions.extend(spec.sessions(&flow, delay, run)?);
        Ok(())
    }

    fn add_udp(&mut self, spec: &UdpSpec) -> Result<(), Problem> {
        let packet =
            u16::try_from(spec.packet.get()).map_err(|_| Problem::at("packet", "an IP packet has at most 65535 B"))?;
        let udp = UdpConfig {
            rate: spec.rate,
            packet,
            spacing: spacing(spec.spacing),
            lasting: spec.lasting.unwrap_or(Span::MAX),
            ecn: spec.ecn,
        };
        let mut flow = self.way(&spec.forward, &[], spec.rtt, Traffic::Udp(udp))?;
        flow.start = Time::ZERO + spec.start;
        let name = spec.name.clone().unwrap_or_else(|| "udp".to_owned());
        self.groups.push(FlowLabel { name, algorithm: "udp".to_owned(), kernel: None });
        self.flows.push(flow);
        Ok(())
    }

    fn mean_gap(&self, spec: &ArrivalSpec) -> Result<Span, Problem> {
        match (spec.mean_gap, spec.load) {
            (Some(gap), None) => Ok(gap),
            (None, Some(load)) => {
                let path = self.path.ok_or_else(|| {
                    Problem::at("load", "is a share of the path's capacity; with [[link]] tables give the mean_gap")
                })?;
                let capacity = path.capacity.nominal();
                Ok(load.mean_gap(&spec.sizes, capacity))
            }
            _ => Err(Problem::at("mean_gap", "arrivals have either a mean_gap (\"20 ms\") or a load (\"50 %\")")),
        }
    }

    fn add_arrivals(&mut self, spec: &ArrivalSpec) -> Result<(), Problem> {
        let one = &spec.flow;
        let own = one.size.is_some() || one.paced.is_some() || !one.writes.is_empty() || one.list.is_some();
        if own || one.count != 1 || !one.every.is_zero() {
            return Err(Problem::at(
                "flow",
                "what arrives and when is said by sizes and mean_gap or load, not by size, paced, writes, list, count \
                 or every",
            ));
        }
        let mut flow = self
            .tcp(&spec.flow, Workload::Sized(flowstart_units::Bytes::new(1)))
            .map_err(|problem| problem.within("flow"))?;
        flow.start = Time::ZERO + spec.flow.start;
        let sizes = match spec.sizes {
            SizeSpec::Fixed { size } => Sizes::Fixed(size),
            SizeSpec::Pareto { shape, scale, min, max } => Sizes::Pareto { shape, scale, min, max },
            SizeSpec::TruncatedPareto { shape, min, max } => Sizes::TruncatedPareto { shape, min, max },
            SizeSpec::LogNormal { median, sigma, min, max } => Sizes::LogNormal { median, sigma, min, max },
        };
        self.arrivals.push(ArrivalConfig {
            flow,
            mean_gap: self.mean_gap(spec)?,
            spacing: spacing(spec.spacing),
            sizes,
            until: spec.until.map_or(Time::NEVER, |until| Time::ZERO + until),
            count: spec.most.unwrap_or(u64::MAX),
        });
        Ok(())
    }
}

fn spacing(spec: SpacingSpec) -> Spacing {
    match spec {
        SpacingSpec::Constant => Spacing::Constant,
        SpacingSpec::Poisson => Spacing::Poisson,
    }
}

fn workload(spec: &FlowSpec) -> Result<Workload, Problem> {
    match (&spec.size, &spec.paced, spec.writes.as_slice(), &spec.list) {
        (None, None, [], None) => Ok(Workload::Greedy),
        (Some(size), None, [], None) if size.get() == 0 => Err(Problem::at("size", "a transfer has at least 1 byte")),
        (Some(size), None, [], None) => Ok(Workload::Sized(*size)),
        (None, Some(paced), [], None) => Ok(Workload::Paced {
            rate: paced.rate,
            message: paced.message,
            spacing: spacing(paced.spacing),
            lasting: paced.lasting.unwrap_or(Span::MAX),
        }),
        (None, None, writes, None) => {
            Ok(Workload::Script(writes.iter().map(|write| (write.after, write.bytes)).collect()))
        }
        (_, _, _, Some(list)) => Err(Problem::at("list", format!("the flow list \"{list}\" has not been read"))),
        _ => Err(Problem::at("size", "a flow has one of size, paced and writes, or none of them to be greedy")),
    }
}

pub(super) fn algorithms(spec: &FlowSpec) -> Result<(StartConfig, AvoidanceConfig), Problem> {
    let text = spec.algorithm.as_deref().unwrap_or("hystart+cubic");
    // "hystart++" ends in plus signs of its own: the last single one separates.
    let parts = if text.contains("++") { text.rsplit_once('+') } else { text.split_once('+') };
    let (start, avoidance) = parts.map_or((None, text), |(start, avoidance)| (Some(start), avoidance));
    let wrong = |error: &dyn std::fmt::Display| Problem::at("algorithm", error.to_string());
    let avoidance = match &spec.avoidance {
        Some(avoidance) => Ok(avoidance.clone()),
        None => AvoidanceConfig::from_name(avoidance.trim()).map_err(|error| wrong(&error)),
    };
    let start = match (&spec.flow_start, start, &avoidance) {
        (Some(start), _, _) => start.clone(),
        // A control that starts by itself does so unless another start is named, which the default
        // is not.
        (None, _, Ok(avoidance)) if spec.algorithm.is_none() && avoidance.brings_start() => start_of(avoidance),
        (None, Some(start), _) => StartConfig::from_name(start.trim()).map_err(|error| wrong(&error))?,
        (None, None, Ok(avoidance)) => start_of(avoidance),
        (None, None, Err(_)) => StartConfig::SlowStart,
    };
    let avoidance = avoidance?;
    start.validate().map_err(|error| Problem::at("flow_start", error.to_string()))?;
    avoidance.validate().map_err(|error| Problem::at("avoidance", error.to_string()))?;
    Ok((start, avoidance))
}
