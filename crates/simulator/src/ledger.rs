//! What is written down of every flow, running or over.

use flowstart_network::Packet;
use flowstart_units::{Bytes, Time};

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
        self.entries.push(FlowOutcome::new(group, started, size));
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
        self.entries[packet.flow as usize].count_drop(packet);
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
