//! Flows that act by themselves, and flows that are over.

use flowstart_network::packet::{Body, Datagram};
use flowstart_network::{Ecn, Packet};
use flowstart_units::Time;

use super::Simulation;
use crate::Observer;
use crate::flow::Endpoints;
use crate::slots::Slot;

impl<O: Observer> Simulation<O> {
    /// Brings a flow's timer forward if it wants to act earlier. A later wish is noticed when the
    /// old time comes.
    #[inline]
    pub(crate) fn set_timer(&mut self, slot: usize) {
        let Some(flow) = &self.flows[slot] else { return };
        let deadline = flow.deadline();
        if deadline < self.timers.time(slot) {
            self.bring_forward(slot, deadline);
        }
    }

    pub(super) fn bring_forward(&mut self, slot: usize, deadline: Time) {
        let deadline = if self.late_timers.is_empty() { deadline } else { self.late(slot, deadline) };
        // Never in the past: what is overdue acts now.
        self.timers.set(slot, deadline.max(self.now));
        self.network.schedule_slot(Slot::Timers, self.timers.first().0);
    }

    /// When the host of a flow notices that this time has come.
    #[cold]
    fn late(&self, slot: usize, deadline: Time) -> Time {
        let flow = self.flows[slot].as_ref().map(|flow| flow.id);
        let late = self.late_timers.iter().find(|(id, _)| Some(*id) == flow);
        late.map_or(deadline, |(_, late)| late.after(deadline))
    }

    /// The earliest timer has come.
    pub(super) fn fire(&mut self) {
        let now = self.now;
        let (_, slot) = self.timers.first();
        self.timers.set(slot, Time::NEVER);
        self.network.schedule_slot(Slot::Timers, self.timers.first().0);
        let Some(flow) = &mut self.flows[slot] else { return };
        if flow.deadline() > now {
            return self.set_timer(slot);
        }
        match &mut flow.endpoints {
            Endpoints::Tcp(tcp) => {
                let opens = !tcp.opened;
                if opens {
                    tcp.opened = true;
                    self.observer.started(now, flow.id);
                    tcp.sender.open(now);
                }
                let receiver_due = tcp.receiver.deadline() <= now;
                // The receiver is another host: its timer is no reason for the sender to send.
                let sender_due = opens || tcp.app.deadline.min(tcp.sender.deadline()) <= now;
                if tcp.app.deadline <= now {
                    tcp.app.advance();
                }
                if tcp.sender.deadline() <= now {
                    tcp.sender.on_timer(now);
                }
                if receiver_due {
                    tcp.receiver.on_timer(now);
                    self.answer(slot);
                }
                if sender_due {
                    self.pump(slot);
                } else {
                    self.set_timer(slot);
                }
            }
            Endpoints::Udp(udp) => {
                if udp.sent == 0 {
                    self.observer.started(now, flow.id);
                    self.ledger.entry(flow.id).first_data = now;
                }
                let packet = Packet {
                    flow: flow.id,
                    bytes: udp.packet,
                    ecn: if udp.ecn { Ecn::Ect0 } else { Ecn::NotEct },
                    body: Body::Datagram(Datagram { number: udp.sent, sent_at: now }),
                };
                udp.advance();
                self.data_packets += 1;
                let done = flow.access.transmit(now, packet.bytes);
                self.observer.sent(now, &packet);
                self.network.send(now, done, flow.route, &packet, &mut self.ledger, &mut self.observer);
                self.set_timer(slot);
            }
        }
    }

    /// A connection is over.
    pub(crate) fn retire(&mut self, slot: usize) {
        let Some(flow) = self.flows[slot].take() else { return };
        self.ledger.settle(&flow, true);
        self.free_slots.push(slot as u32);
        self.timers.set(slot, Time::NEVER);
        self.network.schedule_slot(Slot::Timers, self.timers.first().0);
    }
}
