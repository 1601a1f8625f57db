//! What is written down of every flow, running or over.

use flowstart_congestion::StartExit;
use flowstart_network::{Packet, packet::Body};
use flowstart_units::{Bytes, Span, Time};

use crate::flow::{Endpoints, Flow};
use crate::{FlowId, FlowOutcome};

/// A slot number that no running flow has.
pub(crate) const NO_SLOT: u32 = u32::MAX;

/// Outcomes by flow number, and where the running flows are.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: Vec<FlowOutcome>,
    slots: Vec<u32>,
}

impl Ledger {
    /// Opens an entry; its number is the count of entries before.
    pub(crate) fn open(&mut self, slot: u32, group: u32, started: Time, size: Option<Bytes>) -> FlowId {
        let id = self.entries.len() as FlowId;
        self.slots.push(slot);
        self.entries.push(FlowOutcome {
            group,
            started,
            first_data: Time::NEVER,
            completed: None,
            size,
            delivered: Bytes::ZERO,
            packets_sent: 0,
            retransmitted: 0,
            dropped: 0,
            dropped_in_start: 0,
            marked: 0,
            timeouts: 0,
            recoveries: 0,
            start_exit: None,
            srtt: Span::ZERO,
            min_rtt: Span::MAX,
            cwnd: 0,
            decision: None,
            revised: None,
            isolation_revoked: None,
            companion_of: None,
        });
        id
    }

    /// The slot of a running flow.
    #[inline]
    pub(crate) fn slot(&self, flow: FlowId) -> Option<usize> {
        match self.slots[flow as usize] {
            NO_SLOT => None,
            slot => Some(slot as usize),
        }
    }

    /// The entry of a flow.
    #[inline]
    pub(crate) fn entry(&mut self, flow: FlowId) -> &mut FlowOutcome {
        &mut self.entries[flow as usize]
    }

    /// A link dropped this packet. Only data counts.
    pub(crate) fn dropped(&mut self, packet: &Packet) {
        let entry = &mut self.entries[packet.flow as usize];
        match &packet.body {
            Body::Ack(_) => {}
            Body::Datagram(_) => entry.dropped += 1,
            Body::Segment(segment) => {
                entry.dropped += 1;
                let in_start = entry.start_exit.is_none_or(|exit: StartExit| segment.sent_at <= exit.now);
                entry.dropped_in_start += u64::from(in_start);
            }
        }
    }

    /// Takes over what the endpoints know, and with `over` closes the entry.
    pub(crate) fn settle(&mut self, flow: &Flow, over: bool) {
        let entry = &mut self.entries[flow.id as usize];
        match &flow.endpoints {
            Endpoints::Tcp(tcp) => {
                let stats = tcp.sender.stats();
                let controller = tcp.sender.controller();
                entry.delivered = Bytes::new(tcp.delivered);
                entry.packets_sent = stats.packets_sent;
                entry.retransmitted = stats.packets_retransmitted;
                entry.timeouts = stats.timeouts;
                entry.recoveries = stats.recoveries;
                entry.start_exit = controller.start_exit().copied();
                entry.srtt = stats.srtt;
                entry.min_rtt = stats.min_rtt;
                entry.cwnd = controller.cwnd();
            }
            Endpoints::Udp(udp) => {
                entry.delivered = udp.received;
                entry.packets_sent = udp.sent;
            }
        }
        if over {
            self.slots[flow.id as usize] = NO_SLOT;
        }
    }

    /// All entries.
    pub(crate) fn into_outcomes(self) -> Vec<FlowOutcome> {
        self.entries
    }
}
