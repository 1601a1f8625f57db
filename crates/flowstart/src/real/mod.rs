//! Real packets of real programs, over the simulator's links, on this machine: arguments, and what
//! is shown.

mod compare;
mod emulate;
mod fidelity;
mod records;
mod scenarios;
mod self_test;
mod testbed;

use flowstart_emulator::{Fidelity, FidelityLimit, Privilege, enter_user_namespace, privilege};
use flowstart_units::Span;

use crate::output::{Failure, note};

pub(crate) use compare::{race, transport};
pub(crate) use emulate::emulate;
pub(crate) use fidelity::fidelity;
pub(crate) use scenarios::run;
pub(crate) use testbed::testbed;

/// Makes sure that worlds can be made; must be called before threads are started.
pub(crate) fn become_able() -> Result<(), Failure> {
    match privilege().map_err(|error| Failure::from(&error))? {
        Privilege::Full => Ok(()),
        Privilege::UserNamespace => {
            enter_user_namespace().map_err(|error| Failure::from(&error))?;
            note("not root: in a user namespace, without real-time priority");
            Ok(())
        }
    }
}

impl From<&flowstart_emulator::Error> for Failure {
    fn from(error: &flowstart_emulator::Error) -> Self {
        match error {
            flowstart_emulator::Error::NotPossible(message) => Self::NotPossible(message.clone()),
            other => Self::usage(other),
        }
    }
}

impl From<flowstart_real::Error> for Failure {
    fn from(error: flowstart_real::Error) -> Self {
        use flowstart_real::Error;
        if let Some(status) = error.shell_status() {
            note(&format!("error: {error}"));
            return Self::Status(status);
        }
        match &error {
            Error::Cancelled => Self::Interrupted,
            Error::ServerNotReady(..) => Self::Usage(format!("{error}; --ready-within gives it more time")),
            _ if error.is_of_machine() => Self::NotPossible(error.to_string()),
            _ => Self::usage(error),
        }
    }
}

/// What runs must keep to: 99 % of the packets at most this late, nothing lost that no link
/// dropped.
pub(crate) fn fidelity_limit(p99: Option<Span>) -> FidelityLimit {
    let default = FidelityLimit::default();
    FidelityLimit { p99: p99.unwrap_or(default.p99), ..default }
}

/// Fails if a run was not faithful enough.
pub(crate) fn judge(limit: &FidelityLimit, fidelity: &Fidelity) -> Result<(), Failure> {
    limit.broken_by(fidelity).map_or(Ok(()), |why| Err(Failure::Fidelity(why)))
}

/// Fails if any run was not faithful enough; the least punctual is named.
pub(crate) fn judge_all(limit: &FidelityLimit, fidelities: &[Fidelity]) -> Result<(), Failure> {
    let mut list: Vec<&Fidelity> = fidelities.iter().collect();
    list.sort_by_key(|fidelity| std::cmp::Reverse(fidelity.p99));
    list.into_iter().try_for_each(|fidelity| judge(limit, fidelity))
}
