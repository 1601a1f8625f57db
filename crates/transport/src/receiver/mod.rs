//! The receiving endpoint.

use flowstart_network::Ecn;
use flowstart_network::packet::{Acknowledgement, MAX_SACK_BLOCKS, SackBlock, Segment};
use flowstart_units::Time;

use crate::ReceiverConfig;

/// An ACK ready to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingAck {
    /// Its contents.
    pub ack: Acknowledgement,
    /// ECN codepoint of the packet.
    pub ecn: Ecn,
    /// Length of the IP packet in bytes.
    pub bytes: u16,
}

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Data segments that arrived, duplicates included.
    pub packets: u64,
    /// Data segments that had arrived before.
    pub duplicates: u64,
    /// Data segments that arrived with CE.
    pub ce: u64,
    /// ACKs sent.
    pub acks: u64,
}

/// The receiving endpoint of a connection.
#[derive(Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    next: u64,
    ready: Option<OutgoingAck>,
    stats: ReceiverStats,
}

impl Receiver {
    /// A receiver that waits for a connection.
    #[must_use]
    pub fn new(config: &ReceiverConfig) -> Self {
        Self { config: config.clone(), next: 0, ready: None, stats: ReceiverStats::default() }
    }

    /// A segment arrived.
    pub fn on_segment(&mut self, _now: Time, segment: &Segment, _ecn: Ecn) {
        if segment.seq == self.next {
            self.next += u64::from(segment.payload);
        }
        self.stats.packets += 1;
        self.ready = Some(OutgoingAck {
            ack: Acknowledgement {
                ack: self.next,
                echo: segment.sent_at,
                ce_count: 0,
                window: u32::MAX,
                sack: [SackBlock::default(); MAX_SACK_BLOCKS],
                sack_len: 0,
                ece: false,
                duplicate: false,
                syn: segment.syn,
            },
            ecn: Ecn::NotEct,
            bytes: self.config.header_bytes,
        });
    }

    /// The time of [`deadline`](Self::deadline) has come.
    pub fn on_timer(&mut self, _now: Time) {}

    /// The next ACK to send; call until `None` after every event.
    pub fn poll_ack(&mut self) -> Option<OutgoingAck> {
        self.ready.take()
    }

    /// When [`on_timer`](Self::on_timer) must be called; [`Time::NEVER`] if nothing is waited for.
    #[must_use]
    pub fn deadline(&self) -> Time {
        Time::NEVER
    }

    /// Bytes of the stream that arrived in order.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.next
    }

    /// The application takes `bytes` bytes; only of interest without `auto_read`.
    pub fn read(&mut self, _bytes: u64) {}

    /// Counters.
    #[must_use]
    pub fn stats(&self) -> &ReceiverStats {
        &self.stats
    }
}
