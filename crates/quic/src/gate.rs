//! The stack's side of congestion control: a window that is either open or shut, and a notebook.
//!
//! The stack (`noq-proto`) asks its controller for a window before every datagram and tells it of
//! every packet sent, acknowledged and lost. This controller decides nothing. It answers
//! "everything may leave" while the gate is open and "nothing" while it is shut, shuts the gate
//! with every packet, and notes what it is told; the [`Connection`](crate::Connection) opens it at
//! the moment one packet shall leave. Nothing that is not subject to congestion control (ACKs,
//! probes after a timeout) is held back.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

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

    fn tell(&self, told: Told) {
        self.state().told.push(told);
    }
}

impl Controller for Gate {
    fn on_packet_sent(&mut self, _now: Instant, bytes: u16, pn: u64) {
        let mut state = self.state();
        state.open = false;
        state.told.push(Told::Sent { number: pn, bytes: u32::from(bytes) });
    }

    fn on_cwnd_limited(&mut self) {
        self.state().blocked = true;
    }

    fn on_ack(&mut self, _now: Instant, sent: Instant, _bytes: u64, pn: u64, _limited: bool, rtt: &RttEstimator) {
        let mut state = self.state();
        if state.newest.is_none_or(|newest| pn > newest.number) {
            state.newest = Some(Newest { number: pn, sent, least: rtt.min() });
        }
        state.told.push(Told::Acked { number: pn });
    }

    fn on_congestion_event(
        &mut self,
        _now: Instant,
        _sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        if is_ecn {
            self.tell(Told::Marked);
        } else if is_persistent_congestion {
            self.tell(Told::Persistent);
        }
    }

    fn on_packet_lost(&mut self, _lost_bytes: u16, pn: u64, _now: Instant) {
        self.tell(Told::Lost { number: pn });
    }

    fn on_spurious_congestion_event(&mut self) {
        self.tell(Told::Spurious);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.tell(Told::Mtu(new_mtu));
    }

    fn window(&self) -> u64 {
        // One byte: less than any packet, and not the zero that the stack calls nonsense.
        if self.state().open { u64::MAX } else { 1 }
    }

    fn metrics(&self) -> ControllerMetrics {
        // The stack's own pacer steps aside for windows above 2^32 and without a rate.
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = u64::MAX;
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        // The stack duplicates a controller for a path that differs in its port alone (RFC 9000
        // section 9.4), and for nothing else.
        self.tell(Told::Moved);
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        u64::MAX
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
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
}

impl ControllerFactory for Gates {
    fn build(self: Arc<Self>, _now: Instant, _current_mtu: u16) -> Box<dyn Controller> {
        let gate = Gate::default();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = (last.0 + 1, gate.clone());
        Box::new(gate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_lets_one_packet_pass_and_notes_it() {
        let gate = Gate::default();
        let mut stack: Box<dyn Controller> = Box::new(gate.clone());
        assert_eq!(stack.window(), 1);
        gate.set(true);
        assert_eq!(stack.window(), u64::MAX);
        stack.on_packet_sent(Instant::now(), 1452, 7);
        assert_eq!(stack.window(), 1, "shut again");
        assert!(!gate.held_back());
        stack.on_cwnd_limited();
        assert!(gate.held_back());
        let mut notes = Vec::new();
        gate.take(&mut notes);
        assert_eq!(notes, [Told::Sent { number: 7, bytes: 1452 }]);
        // Whoever is duplicated says so, and writes into the same notebook.
        stack.clone_box().on_packet_lost(1452, 7, Instant::now());
        gate.take(&mut notes);
        assert_eq!(notes[1..], [Told::Moved, Told::Lost { number: 7 }]);
    }
}
