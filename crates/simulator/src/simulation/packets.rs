//! Packets at the endpoints of their flows.

use flowstart_network::packet::Body;
use flowstart_network::{Ecn, Packet};
use flowstart_quick_start::Carried;
use flowstart_transport::Outgoing;
use flowstart_units::{Bytes, Time};

use super::Simulation;
use crate::flow::{AccessLink, Endpoints, Tcp};
use crate::ledger::Ledger;
use crate::network::Network;
use crate::{FlowId, Observer};

impl<O: Observer> Simulation<O> {
    /// A packet reaches its endpoint.
    #[inline]
    pub(super) fn receive(&mut self, packet: &Packet) {
        let now = self.now;
        self.observer.received(now, packet);
        // Also of a flow that is over: a packet that was sent twice may come after the end.
        if packet.ecn == Ecn::Ce {
            self.ledger.entry(packet.flow).count_mark(packet);
        }
        let Some(slot) = self.ledger.slot(packet.flow) else { return };
        let Some(flow) = &mut self.flows[slot] else { return };
        match (&packet.body, &mut flow.endpoints) {
            (Body::Segment(segment), Endpoints::Tcp(tcp)) => {
                tcp.receiver.on_segment(now, segment, packet.ecn);
                if let Some((pair, connection)) = flow.pair {
                    let pair = &mut self.pairs[pair as usize];
                    if let Some(end) = pair.arrived(connection, segment) {
                        self.observer.placed(packet, pair.id(), end);
                    }
                }
                self.answer(slot);
            }
            (Body::Ack(ack), Endpoints::Tcp(tcp)) => {
                tcp.sender.on_ack(now, ack);
                self.pump(slot);
            }
            (Body::Datagram(_), Endpoints::Udp(udp)) => {
                udp.received += Bytes::new(u64::from(packet.bytes));
            }
            _ => {}
        }
    }

    /// Lets a receiver send its ACKs and its application read.
    #[inline(always)]
    pub(super) fn answer(&mut self, slot: usize) {
        let now = self.now;
        let Some(flow) = &mut self.flows[slot] else { return };
        let Endpoints::Tcp(tcp) = &mut flow.endpoints else { return };
        tcp.receiver.acknowledge(flow.id, |packet| {
            self.observer.sent(now, packet);
            self.network.send(now, now, flow.route, packet, &mut self.ledger, &mut self.observer);
        });
        // Nothing else of the flow changes here.
        let deadline = tcp.receiver.deadline();
        if let Some((pair, _)) = flow.pair {
            self.deliver_pair(pair);
        } else if tcp.receiver.delivered() > tcp.delivered {
            let delivered = tcp.receiver.delivered();
            tcp.delivered = delivered;
            self.observer.delivered(now, flow.id, delivered);
            if delivered >= tcp.awaited {
                self.complete(slot);
            }
        }
        if deadline < self.timers.time(slot) {
            self.bring_forward(slot, deadline);
        }
    }

    /// Lets the application write and the sender send all it may, and retires a connection that is
    /// done.
    #[inline]
    pub(super) fn pump(&mut self, slot: usize) {
        let now = self.now;
        let Some(flow) = &mut self.flows[slot] else { return };
        if let Some((pair, _)) = flow.pair {
            return self.pump_pair(pair, slot);
        }
        let Endpoints::Tcp(tcp) = &mut flow.endpoints else { return };
        if tcp.app.backlog > 0 {
            write(now, flow.id, tcp, &mut self.observer);
        }
        let flood = self.data_packets.saturating_add(self.most_at_once);
        let mut known = loop {
            let out = match tcp.sender.transmit_ordinary(now) {
                Ok(out) => out,
                Err(known) => break known,
            };
            leave(
                now,
                flow.id,
                flow.route,
                &mut flow.access,
                out,
                (&mut self.network, &mut self.ledger, &mut self.observer),
            );
            self.data_packets += 1;
            if self.data_packets >= flood {
                self.flooded = true;
                return;
            }
        };
        loop {
            let Some(mut out) = tcp.sender.transmit_other(now, std::mem::take(&mut known)) else {
                if tcp.app.backlog == 0 || !writes_on(now, flow.id, tcp, &mut self.observer) {
                    break;
                }
                continue;
            };
            if !self.network.looks_at_requests() {
                out.segment.quick_start = Carried::NONE;
            }
            self.data_packets += u64::from(out.segment.payload > 0);
            leave(
                now,
                flow.id,
                flow.route,
                &mut flow.access,
                out,
                (&mut self.network, &mut self.ledger, &mut self.observer),
            );
            if self.data_packets >= flood {
                self.flooded = true;
                return;
            }
        }
        self.observer.sender(now, flow.id, &tcp.sender);
        // Kept current for the count of drops before and after the exit.
        if let Some(exit) = tcp.sender.controller().start_exit() {
            let entry = self.ledger.entry(flow.id);
            if entry.start_exit.is_none() {
                entry.start_exit = Some(*exit);
            }
        }
        if tcp.sender.is_complete() {
            return self.retire(slot);
        }
        self.set_timer(slot);
    }
}

/// A packet leaves its sender through the access link.
#[inline(always)]
pub(crate) fn leave<O: Observer>(
    now: Time,
    flow: FlowId,
    route: u32,
    access: &mut AccessLink,
    out: Outgoing,
    (network, ledger, observer): (&mut Network, &mut Ledger, &mut O),
) {
    let packet = Packet { flow, bytes: out.bytes, ecn: out.ecn, body: Body::Segment(out.segment) };
    if out.segment.payload > 0 && (out.segment.number == 0 || out.segment.seq == 0) {
        let entry = ledger.entry(flow);
        entry.first_data = entry.first_data.min(now);
    }
    let done = access.transmit(now, out.bytes);
    observer.sent(now, &packet);
    network.send(now, done, route, &packet, ledger, observer);
}

/// True if a writer who waited for room could write on.
#[cold]
fn writes_on(now: Time, flow: u32, tcp: &mut Tcp, observer: &mut impl Observer) -> bool {
    let has_room = tcp.sender.room() > 0;
    if has_room {
        write(now, flow, tcp, observer);
    }
    has_room
}

/// Moves what the application has due into the socket, as far as the socket takes it.
fn write(now: Time, flow: u32, tcp: &mut Tcp, observer: &mut impl Observer) {
    let accepted = tcp.sender.write(now, tcp.app.backlog);
    if tcp.app.backlog == crate::app::ENDLESS {
        tcp.app.backlog = 0;
        return;
    }
    tcp.app.backlog -= accepted.min(tcp.app.backlog);
    tcp.written += accepted;
    if accepted > 0 {
        observer.written(now, flow, tcp.written);
    }
    if tcp.app.backlog == 0 && tcp.app.ended {
        tcp.sender.finish();
    }
}
