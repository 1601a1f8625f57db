//! Quick-Start in the hosts of a world: where `flowstart kernel load quick_start` was done, their
//! packets carry requests, answers and reports.

use flowstart_emulator::World;

use super::Error;

/// What hosts carry as long as this exists.
#[derive(Debug, Default)]
pub(super) struct Carried {
    #[cfg(feature = "kernel")]
    #[expect(dead_code, reason = "held, not read")]
    hosts: Vec<flowstart_kernel::HostLinks>,
}

/// Lets the hosts of a world carry options, if the program is loaded.
#[cfg(feature = "kernel")]
pub(super) fn carry(world: &World) -> Result<Carried, Error> {
    use flowstart_emulator::traffic::congestion_controls;

    if !congestion_controls().iter().any(|name| name == super::controls::QUICK_START) {
        return Ok(Carried::default());
    }
    let carry = |host: &flowstart_emulator::Host| {
        host.run(|| flowstart_kernel::carry_host(host.interface()))?
            .map_err(|problem| Error::QuickStart(problem.to_string()))
    };
    Ok(Carried { hosts: world.hosts().iter().map(carry).collect::<Result<_, _>>()? })
}

/// Without support for programs there is nothing to carry them.
#[cfg(not(feature = "kernel"))]
pub(super) fn carry(_world: &World) -> Result<Carried, Error> {
    Ok(Carried::default())
}
