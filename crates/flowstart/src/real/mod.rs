//! Real packets of real programs, over the simulator's links, on this machine.

mod emulate;
mod layout;
mod results;
mod self_test;
mod show;

use flowstart_emulator::{Error, Fidelity, FidelityLimit, Privilege, enter_user_namespace, privilege};

use crate::output::{Failure, note};

pub(crate) use emulate::emulate;

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

/// Fails if a run was not faithful enough.
fn judge(limit: &FidelityLimit, fidelity: &Fidelity) -> Result<(), Failure> {
    limit.broken_by(fidelity).map_or(Ok(()), |why| Err(Failure::Fidelity(why)))
}
