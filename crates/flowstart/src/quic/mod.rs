//! `flowstart serve`, `flowstart fetch` and `flowstart path`: transfers over QUIC, and what a path
//! is like.

mod args;
#[cfg(feature = "quic")]
mod kept;
#[cfg(feature = "quic")]
mod lines;
mod listening;
#[cfg(feature = "quic")]
mod look;
#[cfg(feature = "quic")]
mod probe;
#[cfg(feature = "quic")]
mod target;
#[cfg(feature = "quic")]
mod transfer;

pub(crate) use args::{FetchArgs, PORT, PathArgs, ServeArgs, StackName};

#[cfg(not(feature = "quic"))]
use crate::output::Done;
use crate::output::Failure;

#[cfg(feature = "quic")]
pub(crate) use {
    look::{capacity_up, look},
    probe::{Application, Heard, probe},
    target::Target,
    transfer::{fetch, serve},
};

/// What is said where the program has no QUIC.
#[cfg(not(feature = "quic"))]
pub(crate) fn without() -> Failure {
    Failure::NotPossible(
        "this program was built without QUIC: build it with `cargo build --release --features quic`".to_owned(),
    )
}

#[cfg(not(feature = "quic"))]
fn missing() -> Done {
    Err(without())
}

/// Serves transfers.
#[cfg(not(feature = "quic"))]
pub(crate) fn serve(_args: &ServeArgs) -> Done {
    missing()
}

/// Transfers.
#[cfg(not(feature = "quic"))]
pub(crate) fn fetch(_args: &FetchArgs) -> Done {
    missing()
}

/// Looks at a path.
#[cfg(not(feature = "quic"))]
pub(crate) fn look(_args: &PathArgs) -> Done {
    missing()
}

/// A sentence about what is wrong.
#[cfg(feature = "quic")]
fn wrong(what: impl std::fmt::Display) -> Failure {
    Failure::Usage(what.to_string())
}
