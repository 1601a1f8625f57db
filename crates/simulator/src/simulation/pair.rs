//! Flows of two connections that carry one stream, for starts that look for fair queuing: a
//! detector directs both until it decides, then the first goes on, and the second is closed or
//! stays for the detector's looks at the queue.

use flowstart_congestion::Departure;
use flowstart_congestion::detection::PairDetector;
use flowstart_network::packet::Segment;
use flowstart_random::Purpose;
use flowstart_transport::{Joining, Striping};
use flowstart_units::{Bytes, Time};

use super::{Simulation, leave};
use crate::app::ENDLESS;
use crate::flow::Endpoints;
use crate::{FlowConfig, FlowId, Observer, Traffic, Workload};

/// Segments that a connection has ready to be sent: with fewer it would look as if the application
/// were the limit.
const READY_SEGMENTS: u64 = 2;
/// What the second connection has ready for a look: what it does not send would be missing from the
/// stream.
const READY_TO_LOOK: u64 = 1;

/// The second connection has no more than so many packets under way where they are the lone ones of
/// trains, and their repairs.
const LONE: u32 = 8;

/// Two connections of one stream.
#[derive(Debug)]
pub(crate) struct Pair {
    detector: PairDetector,
    /// The detector directs both.
    detecting: bool,
    /// When the answer was given that the first connection knows.
    told: Option<Time>,
    /// When its avoidance contradicted for the last time.
    revoked: Option<Time>,
    /// It was told that others keep a queue.
    crowded: bool,
    /// When the second connection's last packet is taken for lost; [`Time::NEVER`] before the
    /// stream's end.
    overdue: Time,
    /// The first has sent it, too.
    sent_twice: bool,
    striping: Striping,
    joining: Joining,
    /// The flow that both belong to.
    id: FlowId,
    /// Where the open connections are.
    slots: [Option<usize>; 2],
}

impl Pair {
    /// A segment of a connection reached the receiver. Returns where its bytes end in the stream,
    /// if it has any.
    pub(crate) fn arrived(&mut self, connection: u8, segment: &Segment) -> Option<u64> {
        let Self { striping, joining, .. } = self;
        let mut end = None;
        for range in striping.offsets(connection.into(), segment.seq, u64::from(segment.payload)) {
            end = end.max(Some(range.end));
            joining.arrived(range);
        }
        end
    }

    /// The flow that both connections belong to.
    pub(crate) fn id(&self) -> FlowId {
        self.id
    }
}

impl<O: Observer> Simulation<O> {
    /// If the flow's start needs a second connection, adds it; the first is in `slot`, and draws by
    /// this number.
    pub(crate) fn add_companion(&mut self, config: &FlowConfig, route: u32, (slot, number): (usize, u64)) {
        let Traffic::Tcp(tcp) = &config.traffic else { return };
        let Some(first) = self.flows[slot].as_ref().map(|flow| flow.id) else { return };
        let seed = Purpose::Controller.seed(self.seed, self.run, number);
        let header = u32::from(tcp.sender.header_bytes);
        let Some(detector) = tcp.controller.start.detector(tcp.sender.mss, header, seed) else { return };
        let pair = self.pairs.len() as u32;
        let mut slots = [Some(slot), None];
        let connections = tcp.controller.start.connections();
        if connections > 1 {
            let mut second = config.clone();
            if let Traffic::Tcp(tcp) = &mut second.traffic {
                // What it sends comes from the first one's application.
                tcp.workload = Workload::Replies(Bytes::ZERO);
            }
            // When it opens the detector knows.
            let (companion, _) = self.add_connection(&second, Time::NEVER, route, Some((first, number)));
            slots[1] = Some(companion);
            if let Some(flow) = &self.flows[companion] {
                self.ledger.entry(flow.id).companion_of = Some(first);
            }
        }
        for (connection, slot) in slots.iter().enumerate() {
            if let Some(flow) = slot.and_then(|slot| self.flows[slot].as_mut()) {
                flow.pair = Some((pair, connection as u8));
            }
        }
        let (striping, joining) = (Striping::new(connections), Joining::default());
        self.pairs.push(Pair {
            detector,
            detecting: true,
            told: None,
            revoked: None,
            crowded: false,
            overdue: Time::NEVER,
            sent_twice: false,
            striping,
            joining,
            id: first,
            slots,
        });
    }

    /// Something happened at the connection in `slot`: tells the detector, and lets both
    /// connections send what they may.
    #[cold]
    pub(crate) fn pump_pair(&mut self, number: u32, slot: usize) {
        let now = self.now;
        let mut confirmed = false;
        let pair = &mut self.pairs[number as usize];
        if let Some(flow) = &mut self.flows[slot]
            && let Endpoints::Tcp(tcp) = &mut flow.endpoints
            && let Some((_, connection)) = flow.pair
        {
            let connection = usize::from(connection);
            pair.striping.acknowledged(connection, tcp.sender.stats().una);
            if tcp.app.backlog > 0 {
                let written = std::mem::take(&mut tcp.app.backlog);
                pair.striping.write(written);
                if written != ENDLESS {
                    self.observer.written(now, pair.id, pair.striping.written());
                }
            }
            if let Some(directed) = tcp.sender.controller_mut().steering().directed() {
                let before = pair.detector.confirmed();
                directed.take_acked().for_each(|acked| pair.detector.on_acked(connection, &acked));
                confirmed = pair.detector.confirmed() > before;
            }
        }
        if confirmed
            && let Some(flow) = self.pairs[number as usize].slots[0].and_then(|slot| self.flows[slot].as_mut())
            && let Endpoints::Tcp(tcp) = &mut flow.endpoints
        {
            tcp.sender.controller_mut().steering().on_isolation_confirmed();
        }
        self.look_for_decision(number);
        self.open_companion(number);
        self.send_twice(number);
        for connection in [0, 1] {
            self.send_of_pair(number, connection);
        }
        let pair = &self.pairs[number as usize];
        if pair.detecting && pair.detector.decision().is_some() {
            // It was asked for a packet too late for another one.
            self.look_for_decision(number);
            self.send_of_pair(number, 0);
        }
        self.end_of_pair(number);
    }

    /// The second connection opens with the first or as soon as it is open.
    fn open_companion(&mut self, number: u32) {
        let [Some(first), Some(second)] = self.pairs[number as usize].slots else { return };
        let may_open = match self.flows[first].as_ref().map(|flow| &flow.endpoints) {
            Some(Endpoints::Tcp(tcp)) => {
                tcp.sender.is_established() || (tcp.opened && self.pairs[number as usize].detector.opens_both())
            }
            _ => false,
        };
        if let Some(flow) = &mut self.flows[second]
            && let Endpoints::Tcp(tcp) = &mut flow.endpoints
            && may_open
            && tcp.opens == Time::NEVER
        {
            tcp.opens = self.now;
            self.ledger.entry(flow.id).started = self.now;
            self.set_timer(second);
        }
    }

    /// Once the detector has decided, or decided anew, the first connection is told. After the
    /// first answer the second is closed if the detector does not need it any more.
    fn look_for_decision(&mut self, number: u32) {
        let pair = &mut self.pairs[number as usize];
        let Some(decision) = pair.detector.decision().copied() else { return };
        if pair.told != Some(decision.now) {
            let is_first = pair.told.replace(decision.now).is_none();
            let entry = self.ledger.entry(pair.id);
            if is_first {
                entry.decision = Some(decision);
            } else {
                entry.revised = Some(decision);
            }
            if let Some(flow) = pair.slots[0].and_then(|slot| self.flows[slot].as_mut())
                && let Endpoints::Tcp(tcp) = &mut flow.endpoints
            {
                let (mss, packet) = (tcp.mss as u32, tcp.packet);
                let controller = tcp.sender.controller_mut();
                let mut steering = controller.steering();
                steering.on_decision(&decision, mss, packet);
                steering.overhear(pair.detector.watches());
                // What the second does afterwards is no start.
                let exit = controller.start_exit().copied();
                if let Some(second) = pair.slots[1].and_then(|slot| self.flows[slot].as_ref()) {
                    let entry = self.ledger.entry(second.id);
                    entry.start_exit = entry.start_exit.or(exit);
                }
            }
        }
        if let Some(rule) = pair.detector.crowd()
            && !std::mem::replace(&mut pair.crowded, true)
            && let Some(flow) = pair.slots[0].and_then(|slot| self.flows[slot].as_mut())
            && let Endpoints::Tcp(tcp) = &mut flow.endpoints
        {
            tcp.sender.controller_mut().steering().on_crowd(rule);
        }
        let is_first = std::mem::take(&mut pair.detecting);
        if is_first || !pair.detector.is_looking() {
            self.withdraw(number);
        }
        let pair = &mut self.pairs[number as usize];
        if is_first
            && !pair.detector.watches()
            && let Some(slot) = pair.slots[1].take()
        {
            self.retire(slot);
        }
    }

    /// What the second connection has not had acknowledged goes to the first.
    fn withdraw(&mut self, number: u32) {
        let pair = &mut self.pairs[number as usize];
        if let Some(Some(flow)) = pair.slots[1].map(|slot| &self.flows[slot])
            && let Endpoints::Tcp(tcp) = &flow.endpoints
        {
            pair.striping.close(1, tcp.sender.stats().una);
        }
    }

    /// At the end of the stream all of the first connection's data is there, and the second still
    /// waits for a few packets: nothing but timers would find out that they are lost, and that of a
    /// single packet allows for a delayed ACK (RFC 8985 section 7.2), 200 ms. So after a quarter of
    /// a round trip (the window for reordering of section 6.2) the first sends them, too.
    fn send_twice(&mut self, number: u32) {
        let now = self.now;
        if !self.has_ended(number) || !self.pairs[number as usize].striping.is_exhausted() {
            return;
        }
        let pair = &mut self.pairs[number as usize];
        let [Some(first), Some(second)] = pair.slots else { return };
        let stats = [first, second].map(|slot| match self.flows[slot].as_ref().map(|flow| &flow.endpoints) {
            Some(Endpoints::Tcp(tcp)) if tcp.opened => Some(tcp.sender.stats()),
            _ => None,
        });
        let [Some(of_first), Some(of_second)] = stats else { return };
        let waits = of_first.packets_out > 0 || of_first.unsent > 0;
        if pair.sent_twice || waits || !(1..=LONE).contains(&of_second.packets_out) {
            return;
        }
        if pair.overdue == Time::NEVER {
            pair.overdue = now + of_first.min_rtt / 4;
            if let Some(Endpoints::Tcp(tcp)) = self.flows[first].as_mut().map(|flow| &mut flow.endpoints) {
                tcp.app.wake_after_end(pair.overdue);
            }
        } else if now >= pair.overdue {
            pair.sent_twice = true;
            pair.striping.double(1, of_second.una);
        }
    }

    /// Gives a connection data and lets it send what it may.
    fn send_of_pair(&mut self, number: u32, connection: usize) {
        let now = self.now;
        let ended = self.has_ended(number);
        let pair = &mut self.pairs[number as usize];
        let Some(slot) = pair.slots[connection] else { return };
        let Some(flow) = &mut self.flows[slot] else { return };
        let Endpoints::Tcp(tcp) = &mut flow.endpoints else { return };
        if !tcp.opened {
            return;
        }
        loop {
            let looking = !pair.detecting && connection == 1;
            let ready = match looking {
                true if pair.detector.departure(1, now) == Departure::Hold => 0,
                true => READY_TO_LOOK,
                false => READY_SEGMENTS,
            };
            while tcp.written.saturating_sub(tcp.sender.stats().next) < ready * tcp.mss {
                let given = pair.striping.give(connection, tcp.mss.min(tcp.sender.room()));
                if given == 0 {
                    break;
                }
                tcp.sender.write(now, given);
                tcp.written += given;
            }
            if (pair.detecting || looking) && tcp.sender.is_established() {
                // What a detector waits for would not come after the last of the data.
                let last = ended && pair.striping.is_exhausted();
                let departure = if last { Departure::Now } else { pair.detector.departure(connection, now) };
                tcp.sender.controller_mut().steering().direct(departure);
            }
            let Some(out) = tcp.sender.transmit(now) else { break };
            self.data_packets += u64::from(out.segment.payload > 0);
            let network = (&mut self.network, &mut self.ledger, &mut self.observer);
            leave(now, flow.id, flow.route, &mut flow.access, out, network);
            let directed = tcp.sender.controller_mut().steering().directed();
            if let Some(sent) = directed.and_then(|directed| directed.take_sent()) {
                pair.detector.on_sent(connection, &sent);
            }
        }
        if pair.detecting && connection == 0 && pair.striping.is_exhausted() && tcp.sender.stats().unsent == 0 {
            pair.detector.on_exhausted(now);
        }
        self.observer.sender(now, flow.id, &tcp.sender);
        if let Some(exit) = tcp.sender.controller().start_exit() {
            let entry = self.ledger.entry(flow.id);
            if entry.start_exit.is_none() {
                entry.start_exit = Some(*exit);
            }
        }
        if let Some(revoked) = tcp.sender.controller().isolation_revoked()
            && pair.revoked.replace(revoked) != Some(revoked)
        {
            self.ledger.entry(flow.id).isolation_revoked = Some(revoked);
            pair.detector.on_revoked(revoked);
        }
        if tcp.sender.controller().gave_up_isolation() {
            pair.detector.on_given_up();
        }
        self.set_timer(slot);
    }

    /// True if the application of the stream will write no more.
    fn has_ended(&self, number: u32) -> bool {
        let first = self.pairs[number as usize].slots[0].and_then(|slot| self.flows[slot].as_ref());
        matches!(first.map(|flow| &flow.endpoints), Some(Endpoints::Tcp(tcp)) if tcp.app.ended && tcp.app.backlog == 0)
    }

    /// Ends connections that have no more to do: the second as soon as all is given out, the first
    /// when the second is gone, as it may have to send what the second could not.
    fn end_of_pair(&mut self, number: u32) {
        if !(self.has_ended(number) && self.pairs[number as usize].striping.is_exhausted()) {
            return;
        }
        for connection in [1, 0] {
            let Some(slot) = self.pairs[number as usize].slots[connection] else { continue };
            let Some(Endpoints::Tcp(tcp)) = self.flows[slot].as_mut().map(|flow| &mut flow.endpoints) else { continue };
            tcp.sender.finish();
            if !tcp.sender.is_complete() {
                return;
            }
            self.pairs[number as usize].slots[connection] = None;
            self.retire(slot);
        }
    }

    /// Lets the receiving application read what both connections brought.
    pub(crate) fn deliver_pair(&mut self, number: u32) {
        let now = self.now;
        let pair = &self.pairs[number as usize];
        let delivered = pair.joining.delivered();
        let Some(slot) = pair.slots[0] else { return };
        let Some(Endpoints::Tcp(tcp)) = self.flows[slot].as_mut().map(|flow| &mut flow.endpoints) else { return };
        if delivered <= tcp.delivered {
            return;
        }
        tcp.delivered = delivered;
        let done = delivered >= tcp.awaited;
        self.observer.delivered(now, pair.id, delivered);
        if done {
            self.complete(slot);
        }
    }
}
