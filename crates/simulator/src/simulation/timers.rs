//! Flows that act by themselves, and flows that are over.

use flowstart_network::packet::{Body, Datagram};
use flowstart_network::{Ecn, Packet};
use flowstart_units::Time;

use super::Simulation;
use crate::Observer;
use crate::flow::{Endpoints, Flow};
use crate::slots::Slot;

impl<O: Observer> Simulation<O> {
    /// Brings a flow's timer forward if it wants to act earlier. A later wish is noticed when the
    /// old time comes.
    #[inline]
    pub(crate) fn set_timer(&mut self, slot: usize) {
        let Some(flow) = &self.flows[slot] else { return };
        let deadline = flow.deadline();
        if deadline < self.timers.time(slot) {
            let noticed = if self.late_timers.is_empty() { deadline } else { self.noticed(flow) };
            if noticed < self.timers.time(slot) {
                self.bring_forward(slot, noticed);
            }
        }
    }

    pub(super) fn bring_forward(&mut self, slot: usize, deadline: Time) {
        // Never in the past: what is overdue acts now.
        self.timers.set(slot, deadline.max(self.now));
        self.network.schedule_slot(Slot::Timers, self.timers.first().0);
    }

    /// When the first host of a flow notices that it wants to act: the sender's timers may be late,
    /// the receiver is another host.
    #[cold]
    fn noticed(&self, flow: &Flow) -> Time {
        self.noticed_by_sender(flow).min(flow.receiver_deadline())
    }

    /// When the host that sends notices that its time has come.
    fn noticed_by_sender(&self, flow: &Flow) -> Time {
        let deadline = flow.sender_deadline();
        let late = self.late_timers.iter().find(|(id, _)| *id == flow.id);
        late.map_or(deadline, |(_, late)| late.after(deadline))
    }

    /// The earliest timer has come.
    pub(super) fn fire(&mut self) {
        let (_, slot) = self.timers.first();
        self.timers.set(slot, Time::NEVER);
        self.act(slot);
        // Usually it has brought its own time forward again, which has said when the first is.
        if self.timers.time(slot) == Time::NEVER {
            self.network.schedule_slot(Slot::Timers, self.timers.first().0);
        }
    }

    /// The time of a flow has come.
    #[inline(always)]
    fn act(&mut self, slot: usize) {
        let now = self.now;
        let Some(flow) = &self.flows[slot] else { return };
        let by_sender = if self.late_timers.is_empty() { flow.sender_deadline() } else { self.noticed_by_sender(flow) };
        let (sender_due, receiver_due) = (by_sender <= now, flow.receiver_deadline() <= now);
        if !sender_due && !receiver_due {
            return self.set_timer(slot);
        }
        let Some(flow) = &mut self.flows[slot] else { return };
        match &mut flow.endpoints {
            Endpoints::Tcp(tcp) => {
                let opens = !tcp.opened;
                if opens {
                    tcp.opened = true;
                    self.observer.started(now, flow.id);
                    tcp.sender.open(now);
                }
                // The receiver is another host: its timer is no reason for the sender to send.
                if sender_due && tcp.app.deadline <= now {
                    tcp.app.advance();
                }
                if sender_due && tcp.sender.deadline() <= now {
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
