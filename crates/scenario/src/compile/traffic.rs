//! Who sends: flows, datagrams, arrivals and web sessions.

use flowstart_congestion::{AvoidanceConfig, ControllerConfig, InvalidConfig, StartConfig, joint_name, start_of};
use flowstart_simulator::{ArrivalConfig, FlowConfig, Sizes, Spacing, TcpConfig, Traffic, UdpConfig, Workload};
use flowstart_transport::{EcnMode, Offload, ReceiveOffload, ReceiverConfig, SenderConfig};
use flowstart_units::{Bytes, Span, Time};

use super::{Compiler, FlowLabel, Kind, MOST_FLOWS};
use crate::error::Problem;
use crate::{ArrivalSpec, FlowSpec, OffloadKind, SizeSpec, SpacingSpec, UdpSpec, WebSpec};

/// What is wrong with traffic that lasts no time.
const NO_TIME: &str = "nothing is sent in no time; give it one above 0, or leave this out to send to the end";

impl Compiler<'_> {
    pub(super) fn add_tcp(&mut self, spec: &FlowSpec) -> Result<(), Problem> {
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
        controller.left_behind_rtts = spec.left_behind_rtts;
        controller.mss = spec.sender.mss;
        let (mut sender, mut receiver) = (spec.sender.clone(), spec.receiver.clone());
        if let Some(merged) = self.path.and_then(|path| path.merged_acks)
            && receiver.ack_aggregation.is_none()
        {
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
            receiver.ack_pushed.get_or_insert(true);
        }
        if let Some(kind) = spec.receive_offload {
            if receiver.offload.is_some() {
                return Err(Problem::at(
                    "receive_offload",
                    "`receiver.offload` says it already; leave one of them out",
                ));
            }
            receiver.offload = (kind == OffloadKind::Linux).then(ReceiveOffload::default);
        }
        if let Some(offload) = &receiver.offload {
            offload.validate().map_err(|error| Problem::at("receiver.offload", error.to_string()))?;
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
        ends(&sender, &receiver)?;
        if let Some(buffer) = receiver.receive_buffer.filter(|buffer| buffer.get() < u64::from(sender.mss)) {
            let message = format!(
                "a receive buffer of {buffer} has no room for one segment of {} B, so that the window would never let \
                 a full one through; give it room for one at least, or less to a segment (`sender.mss`)",
                sender.mss
            );
            return Err(Problem::at("receiver.receive_buffer", message));
        }
        let tcp = TcpConfig { controller, sender, receiver, workload };
        let mut flow = self.way(&spec.forward, &spec.reverse, spec.rtt, Traffic::Tcp(Box::new(tcp)))?;
        flow.place = self.place(&flow, "ways", &spec.ways, [spec.from.as_ref(), spec.to.as_ref()])?;
        let label = spec.name.as_ref().unwrap_or(&name).clone();
        self.groups.push(FlowLabel { name: label, algorithm: name, kernel: spec.kernel.clone() });
        Ok(flow)
    }

    pub(super) fn add_web(&mut self, table: usize, spec: &WebSpec) -> Result<(), Problem> {
        let flow = self.tcp(&spec.flow, Workload::Greedy).map_err(|problem| problem.within("flow"))?;
        let back: Span = flow.reverse.iter().map(|link| self.links[*link].delay).sum();
        let delay = flow.return_delay + back;
        let run = (self.scenario.seed, self.run, table, self.scenario.duration);
        self.sessions.extend(spec.sessions(&flow, delay, run)?);
        Ok(())
    }

    pub(super) fn add_udp(&mut self, table: usize, spec: &UdpSpec) -> Result<(), Problem> {
        if spec.lasting.is_some_and(Span::is_zero) {
            return Err(Problem::at("lasting", NO_TIME));
        }
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
        if let (None, Some(rtt)) = (self.path, spec.rtt) {
            // Nothing comes back: the way there is half of it, whatever the links have of that.
            let links: Span = flow.forward.iter().map(|link| self.links[*link].delay).sum();
            let Some(rest) = (rtt / 2).checked_sub(links) else {
                let message = format!("half of it is shorter than the delay of the links on the way, {links}");
                return Err(Problem::at("rtt", message));
            };
            (flow.access.delay, flow.return_delay) = (rest, rtt / 2);
        }
        flow.start = Time::ZERO + spec.start;
        flow.place = self.place(&flow, "way", spec.way.as_slice(), [spec.from.as_ref(), spec.to.as_ref()])?;
        flow.place.number = Some(Kind::Datagrams.number(table));
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
                Ok(load.mean_gap(&spec.sizes, spec.carried(&path.capacity, self.scenario.duration)))
            }
            _ => Err(Problem::at("mean_gap", "arrivals have either a mean_gap (\"20 ms\") or a load (\"50 %\")")),
        }
    }

    pub(super) fn add_arrivals(&mut self, table: usize, spec: &ArrivalSpec) -> Result<(), Problem> {
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
        flow.place.number = Some(Kind::Arrivals.number(table));
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
        (None, Some(paced), [], None) if paced.lasting.is_some_and(Span::is_zero) => {
            Err(Problem::at("paced.lasting", NO_TIME))
        }
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

/// Every key of both ends has a value that makes sense.
fn ends(sender: &SenderConfig, receiver: &ReceiverConfig) -> Result<(), Problem> {
    let of = |end: &'static str| {
        move |error: InvalidConfig| Problem::at(format!("{end}.{}", error.field), error.to_string())
    };
    sender.validate().map_err(of("sender"))?;
    receiver.validate().map_err(of("receiver"))
}

/// True if the algorithms of such a flow draw random numbers.
pub(crate) fn draws(spec: &FlowSpec) -> bool {
    algorithms(spec).is_ok_and(|(start, avoidance)| start.draws() || avoidance.draws())
}

pub(crate) fn algorithms(spec: &FlowSpec) -> Result<(StartConfig, AvoidanceConfig), Problem> {
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
