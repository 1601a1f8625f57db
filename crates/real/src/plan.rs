//! From a compiled scenario to what the built-in senders do: flows, the transfers of arrival
//! processes, users and their requests.

use flowstart_emulator::traffic::{
    FlowConfig as RealFlow, MOST_CONNECTIONS, SessionConfig as RealSession, Traffic as RealTraffic,
    Workload as RealWorkload,
};
use flowstart_scenario::Compiled;
use flowstart_simulator::{FlowConfig, Spacing, TcpConfig, Traffic, Workload};
use flowstart_units::{Bytes, Time};

use super::controls::control;
use super::layout::Layout;
use super::{Error, Transport};

/// What is known of a planned flow beside what its sender needs.
pub(super) struct About {
    /// Its group in the scenario.
    pub(super) group: u32,
    /// Bytes of a sized transfer.
    pub(super) size: Option<Bytes>,
}

/// What happens in a run.
pub(super) struct Plan {
    /// The scenario's flows, then the transfers of arrival processes.
    pub(super) flows: Vec<RealFlow>,
    /// About each flow.
    pub(super) about: Vec<About>,
    /// The users.
    pub(super) sessions: Vec<RealSession>,
}

impl Plan {
    /// What happens before `until`. The transfers of arrival processes are those of the simulator's
    /// run with this seed, at the same times.
    pub(super) fn new(compiled: &Compiled, layout: &Layout, until: Time, transport: Transport) -> Result<Self, Error> {
        let simulation = &compiled.simulation;
        let mut plan = Self { flows: Vec::new(), about: Vec::new(), sessions: Vec::new() };
        let mut ways = layout.ways.iter().copied();
        for (flow, way) in simulation.flows.iter().zip(&mut ways) {
            let traffic = match &flow.traffic {
                Traffic::Tcp(tcp) => {
                    let workload = workload(tcp)?;
                    RealTraffic::Tcp { congestion: control_of(compiled, flow, transport)?, workload }
                }
                Traffic::Udp(udp) => RealTraffic::Udp {
                    rate: udp.rate,
                    packet: udp.packet,
                    poisson: udp.spacing == Spacing::Poisson,
                    lasting: udp.lasting,
                    ecn: udp.ecn,
                },
            };
            plan.add(flow, way, flow.start, traffic)?;
        }
        for (index, way) in (0..simulation.arrivals.len()).zip(&mut ways) {
            let flow = &simulation.arrivals[index].flow;
            let congestion = control_of(compiled, flow, transport)?;
            for (start, size) in simulation.transfers(index).take_while(|(start, _)| *start < until) {
                let (congestion, workload) = (congestion.clone(), RealWorkload::Sized(size));
                plan.add(flow, way, start, RealTraffic::Tcp { congestion, workload })?;
            }
        }
        for (session, (server, user)) in simulation.sessions.iter().zip(ways) {
            plan.sessions.push(RealSession {
                server,
                user,
                start: session.flow.start,
                congestion: control_of(compiled, &session.flow, transport)?,
                persistent: session.persistent,
                replies: session.replies.iter().map(|reply| (reply.think, reply.bytes)).collect(),
            });
        }
        Ok(plan)
    }

    fn add(
        &mut self,
        flow: &FlowConfig,
        (from, to): (usize, usize),
        start: Time,
        traffic: RealTraffic,
    ) -> Result<(), Error> {
        if self.flows.len() == MOST_CONNECTIONS {
            return Err(Error::TooManyTransfers);
        }
        self.about.push(About { group: flow.group, size: traffic.size() });
        self.flows.push(RealFlow { from, to, start, traffic });
        Ok(())
    }
}

/// The kernel's congestion control of a flow, if the kernel carries it.
fn control_of(compiled: &Compiled, flow: &FlowConfig, transport: Transport) -> Result<Option<String>, Error> {
    if transport != Transport::Kernel {
        return Ok(None);
    }
    let label = &compiled.groups[flow.group as usize];
    control(&label.algorithm, label.kernel.as_deref()).map(Some)
}

fn workload(tcp: &TcpConfig) -> Result<RealWorkload, Error> {
    Ok(match &tcp.workload {
        Workload::Greedy => RealWorkload::Greedy,
        Workload::Sized(size) => RealWorkload::Sized(*size),
        Workload::Paced { rate, message, spacing, lasting } => RealWorkload::Paced {
            rate: *rate,
            message: *message,
            poisson: *spacing == Spacing::Poisson,
            lasting: *lasting,
        },
        Workload::Script(writes) => RealWorkload::Script(writes.clone()),
        Workload::Replies(_) => return Err(Error::RepliesWithoutUser),
    })
}
