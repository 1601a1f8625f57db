//! Real packets of real programs, over the simulator's links, on this machine.

mod compare;
mod controls;
mod emulate;
mod layout;
mod perform;
mod plan;
mod programs;
mod results;
mod run;
mod self_test;
mod show;
mod stage;
mod watch;

use flowstart_emulator::{Error, Fidelity, FidelityLimit, Privilege, enter_user_namespace, privilege};

use flowstart_units::Span;

use crate::output::{Failure, note};

pub(crate) use compare::race;
pub(crate) use emulate::emulate;
pub(crate) use layout::MOST_PAIRS;
pub(crate) use run::run;

/// Makes sure that worlds can be made; must be called before threads are started.
fn become_able() -> Result<(), Failure> {
    match privilege().map_err(|error| failure(&error))? {
        Privilege::Full => Ok(()),
        Privilege::UserNamespace => {
            enter_user_namespace().map_err(|error| failure(&error))?;
            note("not root: in a user namespace, without real-time priority");
            Ok(())
        }
    }
}

fn failure(error: &Error) -> Failure {
    match error {
        Error::NotPossible(message) => Failure::NotPossible(message.clone()),
        other => Failure::usage(other),
    }
}

/// What runs must keep to: 99 % of the packets at most this late, nothing lost that no link dropped.
fn fidelity_limit(p99: Option<Span>) -> FidelityLimit {
    let default = FidelityLimit::default();
    FidelityLimit { p99: p99.unwrap_or(default.p99), ..default }
}

/// Fails if a run was not faithful enough.
fn judge(limit: &FidelityLimit, fidelity: &Fidelity) -> Result<(), Failure> {
    limit.broken_by(fidelity).map_or(Ok(()), |why| Err(Failure::Fidelity(why)))
}
