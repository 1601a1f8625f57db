//! The stack's side of congestion control: a window that is either open or shut, and a notebook.
//!
//! A stack asks its controller for a window before every datagram and tells it of packets sent,
//! acknowledged and lost. This controller decides nothing. It answers "everything may leave" while
//! the gate is open and "nothing" while it is shut, shuts the gate with every packet, and notes
//! what it is told; the [`Connection`](crate::Connection) opens it at the moment one packet shall
//! leave. Nothing that is not subject to congestion control (ACKs, probes after a timeout) is held
//! back. How the stacks speak to it is in `stack`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What the stack told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// A packet that will be acknowledged left.
    Sent { number: u64, bytes: u32 },
    /// A packet was acknowledged.
    Acked { number: u64 },
    /// A packet is deemed lost.
    Lost { number: u64 },
    /// An ACK counted more congestion marks.
    Marked,
    /// Nothing came through for long (RFC 9002 section 7.6).
    Persistent,
    /// All packets deemed lost arrived after all.
    Spurious,
    /// A full datagram has so many bytes from now on.
    Mtu(u16),
    /// The other end has another port from now on. Of packets sent before only losses are told.
    Moved,
}

#[derive(Debug, Default)]
struct State {
    open: bool,
    blocked: bool,
    told: Vec<Told>,
    newest: Option<Newest>,
}

/// The newest packet acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Newest {
    number: u64,
    /// When it left, as the stack has it.
    pub(crate) sent: Instant,
    /// The smallest RTT that the stack had seen before.
    pub(crate) least: Duration,
}

/// The gate of one connection, shared by the stack and its driver.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate {
    state: Arc<Mutex<State>>,
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves plain values, which stay valid.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens it for one packet, or shuts it.
    pub(crate) fn set(&self, open: bool) {
        let mut state = self.state();
        state.open = open;
        state.blocked = false;
    }

    /// True if the stack had something to send and found the gate shut since it was set.
    pub(crate) fn held_back(&self) -> bool {
        self.state().blocked
    }

    /// Moves what was told since the last time to `notes`.
    pub(crate) fn take(&self, notes: &mut Vec<Told>) {
        notes.append(&mut self.state().told);
    }

    /// The newest packet acknowledged since the last time.
    pub(crate) fn newest(&self) -> Option<Newest> {
        self.state().newest.take()
    }

    /// The window in bytes: everything, or one byte, which is less than any packet and not the zero
    /// that stacks call nonsense.
    pub(crate) fn window(&self) -> u64 {
        if self.state().open { u64::MAX } else { 1 }
    }

    /// The stack has something to send, and the gate is shut.
    pub(crate) fn blocked(&self) {
        self.state().blocked = true;
    }

    /// The stack sends a packet, which shuts the gate.
    pub(crate) fn shut(&self) {
        self.state().open = false;
    }

    /// The stack sends a packet that will be acknowledged.
    pub(crate) fn sent(&self, number: u64, bytes: u32) {
        let mut state = self.state();
        state.open = false;
        state.told.push(Told::Sent { number, bytes });
    }

    /// A packet was acknowledged that the stack sent then, when the smallest RTT had been this.
    pub(crate) fn acked(&self, number: u64, sent: Instant, least: Duration) {
        let mut state = self.state();
        if state.newest.is_none_or(|newest| number > newest.number) {
            state.newest = Some(Newest { number, sent, least });
        }
        state.told.push(Told::Acked { number });
    }

    /// The stack says something else.
    pub(crate) fn tell(&self, told: Told) {
        self.state().told.push(told);
    }
}

/// Hands the stack the gate of the connection that it is about to make, or of another path of one.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    last: Mutex<(u64, Gate)>,
}

impl Gates {
    /// The gate of the connection or path made last, and how many there were.
    pub(crate) fn last(&self) -> (u64, Gate) {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A new gate, which is the last one from now on.
    pub(crate) fn make(&self) -> Gate {
        let gate = Gate::default();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = (last.0 + 1, gate.clone());
        gate
    }
}
