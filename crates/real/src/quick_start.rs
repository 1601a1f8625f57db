//! Quick-Start in the hosts of a world: where `flowstart kernel load quick_start` was done, their
//! packets carry requests, answers and reports.

use flowstart_emulator::World;
use flowstart_emulator::traffic::{FlowConfig, SessionConfig, Traffic};

use super::Error;
use super::controls::QUICK_START;

/// What hosts carry as long as this exists.
#[derive(Debug, Default)]
pub(super) struct Carried {
    #[cfg(feature = "kernel")]
    #[expect(dead_code, reason = "held, not read")]
    hosts: Vec<flowstart_kernel::HostLinks>,
}

/// True if something of this plan is of Quick-Start: it would be another algorithm if its hosts did
/// not carry options.
pub(super) fn is_used(flows: &[FlowConfig], sessions: &[SessionConfig]) -> bool {
    let of_flows = flows.iter().map(|flow| match &flow.traffic {
        Traffic::Tcp { congestion, .. } => congestion.as_deref(),
        Traffic::Udp { .. } => None,
    });
    let of_sessions = sessions.iter().map(|session| session.congestion.as_deref());
    of_flows.chain(of_sessions).flatten().any(|name| name == QUICK_START)
}

/// Lets the hosts of a world carry options, if the program is loaded. Somebody else may have loaded
/// it, where this user may not look: unless Quick-Start is used, `otherwise` hears of it, and
/// nothing is carried.
#[cfg(feature = "kernel")]
pub(super) fn carry(world: &World, is_used: bool, otherwise: &dyn Fn(&str)) -> Result<Carried, Error> {
    if !flowstart_emulator::traffic::congestion_controls().iter().any(|name| name == QUICK_START) {
        return Ok(Carried::default());
    }
    let mut hosts = Vec::new();
    for host in world.hosts() {
        match host.run(|| flowstart_kernel::carry_host(host.interface()))? {
            Ok(links) => hosts.push(links),
            Err(problem) if problem.is_denied && !is_used => {
                otherwise(&format!("packets carry nothing of Quick-Start: {problem}"));
                return Ok(Carried::default());
            }
            Err(problem) => return Err(Error::QuickStart(problem.to_string())),
        }
    }
    Ok(Carried { hosts })
}

/// Without support for programs there is nothing to carry them.
#[cfg(not(feature = "kernel"))]
pub(super) fn carry(_world: &World, _is_used: bool, _otherwise: &dyn Fn(&str)) -> Result<Carried, Error> {
    Ok(Carried::default())
}
