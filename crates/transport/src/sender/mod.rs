//! The sending endpoint.

mod stats;

use flowstart_congestion::Controller;
use flowstart_network::Ecn;
use flowstart_network::packet::{Acknowledgement, Segment};
use flowstart_units::Time;

use crate::SenderConfig;
pub use stats::SenderStats;

/// A data packet (or SYN) ready to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Its contents.
    pub segment: Segment,
    /// ECN codepoint of the packet.
    pub ecn: Ecn,
    /// Length of the IP packet in bytes.
    pub bytes: u16,
}

/// The state of loss recovery (Linux `icsk_ca_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SenderState {
    /// Nothing suspicious.
    #[default]
    Open,
    /// Data was delivered out of order or sent again; nothing is deemed lost.
    Disorder,
    /// Reducing after congestion marks.
    Cwr,
    /// Reducing and repairing after a loss.
    Recovery,
    /// Repairing after a timeout.
    Loss,
}

/// The sending endpoint of a connection.
#[derive(Debug)]
pub struct Sender {
    config: SenderConfig,
    controller: Controller,
    stats: SenderStats,
    opened: bool,
    finished: bool,
    written: u64,
}

impl Sender {
    /// A sender that has not begun yet.
    #[must_use]
    pub fn new(config: &SenderConfig, controller: Controller) -> Self {
        Self {
            config: config.clone(),
            controller,
            stats: SenderStats::default(),
            opened: false,
            finished: false,
            written: 0,
        }
    }

    /// Opens the connection: with a SYN, or at once if the configuration says so.
    pub fn open(&mut self, _now: Time) {
        self.opened = true;
    }

    /// The application writes `bytes` bytes (`u64::MAX`: an endless stream). Returns how many the send buffer took.
    pub fn write(&mut self, _now: Time, bytes: u64) -> u64 {
        self.written = self.written.saturating_add(bytes);
        bytes
    }

    /// The application will write no more.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// An ACK arrived.
    pub fn on_ack(&mut self, _now: Time, ack: &Acknowledgement) {
        self.stats.una = self.stats.una.max(ack.ack);
    }

    /// The time of [`deadline`](Self::deadline) has come.
    pub fn on_timer(&mut self, _now: Time) {}

    /// The next packet to send; call until `None` after every event.
    pub fn transmit(&mut self, _now: Time) -> Option<Outgoing> {
        let _ = self.config.mss;
        None
    }

    /// When [`on_timer`](Self::on_timer) must be called; [`Time::NEVER`] if nothing is waited for.
    #[must_use]
    pub fn deadline(&self) -> Time {
        Time::NEVER
    }

    /// True once the handshake is over.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.opened
    }

    /// True once everything was written, finished and acknowledged.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.finished && self.stats.una == self.written
    }

    /// The congestion controller.
    #[must_use]
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// The state of loss recovery.
    #[must_use]
    pub fn state(&self) -> SenderState {
        SenderState::Open
    }

    /// Counters and current values.
    #[must_use]
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }
}
