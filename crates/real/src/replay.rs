//! What happened in a run, played back to the observers that measure simulations, so that the
//! measures are the same.

use std::collections::{BTreeMap, HashMap};

use flowstart_congestion::StartExit;
use flowstart_emulator::Fate;
use flowstart_network::packet::{Body, Datagram, Segment};
use flowstart_network::{Ecn, Packet};
use flowstart_simulator::{FlowOutcome, LinkOutcome, Observer, Outcome};
use flowstart_units::{Bytes, Time};

use super::exit::seen_exit;
use super::perform::{Logged, Performed};
use super::seen::Ran;

/// Bytes of a full packet of QUIC that are no data: IPv4, UDP, a short header with its number, the
/// tag, and the header of a stream frame.
const QUIC_HEADERS: u32 = 28 + 24 + 8;

/// Something that happened, for the observer.
enum ReplayEvent<'a> {
    Arrived(&'a Logged),
    Decided(&'a Logged),
    Delivered(&'a Logged),
    /// The application has read this much of the stream, as it says itself.
    Read(u64),
}

/// A TCP stream as it is put together from its packets.
#[derive(Default)]
struct Stream {
    /// Sequence number of the first byte.
    first: u32,
    /// Offset after the highest byte sent.
    highest: u64,
    /// Bytes in order at the receiver.
    delivered: u64,
    /// Pieces beyond, by their beginnings.
    pieces: BTreeMap<u64, u64>,
    numbers: u64,
}

impl Stream {
    /// The offset of a sequence number: the one next to the highest byte sent.
    fn offset(&self, sequence: u32) -> u64 {
        let low = sequence.wrapping_sub(self.first);
        let ahead = low.wrapping_sub(self.highest as u32) as i32;
        self.highest.saturating_add_signed(i64::from(ahead))
    }

    /// The receiver gets a piece.
    fn receive(&mut self, from: u64, to: u64) {
        let end = self.pieces.entry(from).or_insert(to);
        *end = to.max(*end);
        while let Some(piece) = self.pieces.first_entry() {
            if *piece.key() > self.delivered {
                break;
            }
            self.delivered = self.delivered.max(piece.remove());
        }
    }
}

/// What the replay knows of a flow.
struct Player<'a> {
    flow: u32,
    outcome: FlowOutcome,
    stream: Stream,
    /// Its ends are ours, and packets before this time opened the connection.
    began: Option<Time>,
    windows: std::iter::Peekable<std::slice::Iter<'a, flowstart_emulator::traffic::Sample>>,
}

/// Shows an observer what happened, in order of time, and gives the outcome in the simulator's
/// terms.
pub(super) fn play_back(performed: &Performed, observer: &mut dyn Observer) -> Outcome {
    let mut players: Vec<Player<'_>> =
        performed.flows.iter().enumerate().map(|(number, ran)| player(performed, number, ran)).collect();
    let mut numbers: HashMap<_, usize> =
        performed.flows.iter().enumerate().filter_map(|(number, ran)| Some((ran.outcome.key?, number))).collect();
    // Second connections are numbered behind all flows, as the simulator does.
    for (number, ran) in performed.flows.iter().enumerate() {
        let Some(key) = ran.seen.as_ref().and_then(|seen| seen.companion) else { continue };
        numbers.insert(key, players.len());
        let outcome = FlowOutcome { companion_of: Some(number as u32), ..players[number].outcome.clone() };
        let (flow, began) = (players.len() as u32, players[number].began);
        players.push(Player { flow, outcome, stream: Stream::default(), began, windows: [].iter().peekable() });
    }
    for player in players.iter().filter(|player| player.began.is_some()) {
        observer.hides_repairs(player.flow);
    }
    let mut events: Vec<(Time, ReplayEvent<'_>, usize)> = Vec::new();
    for logged in &performed.log {
        let Some(flow) = numbers.get(&logged.key) else { continue };
        if players[*flow].began.is_some_and(|began| logged.arrived < began) {
            continue;
        }
        let decided = match logged.fate {
            Fate::Sent { began, .. } => Some(began),
            Fate::Dropped { at, .. } => Some(at),
            Fate::Lost => Some(logged.arrived),
            Fate::Stayed { .. } => None,
        };
        events.push((logged.arrived, ReplayEvent::Arrived(logged), *flow));
        events.extend(decided.map(|decided| (decided, ReplayEvent::Decided(logged), *flow)));
        if let Some(delivery) = logged.delivery {
            events.push((delivery, ReplayEvent::Delivered(logged), *flow));
        }
    }
    for (number, seen) in
        performed.flows.iter().enumerate().filter_map(|(number, ran)| Some((number, ran.seen.as_ref()?)))
    {
        events.extend(seen.reads.iter().map(|(at, total)| (*at, ReplayEvent::Read(*total), number)));
    }
    // Stable: what happens at the same time stays in the order of the records.
    events.sort_by_key(|(time, ..)| *time);
    let mut packets: HashMap<*const Logged, Packet> = HashMap::new();
    for (now, event, flow) in events {
        let player = &mut players[flow];
        player.show_windows(now, observer);
        match event {
            ReplayEvent::Arrived(logged) => {
                let Some(packet) = player.packet(logged) else { continue };
                observer.sent(now, &packet);
                observer.arrived(now, logged.link, &packet, 0, 0);
                packets.insert(std::ptr::from_ref(logged), packet);
            }
            ReplayEvent::Decided(logged) => {
                let Some(packet) = packets.get_mut(&std::ptr::from_ref(logged)) else { continue };
                packet.ecn = logged.ecn;
                match logged.fate {
                    Fate::Sent { done, .. } => observer.transmitted(now, logged.link, packet, logged.arrived, done),
                    Fate::Dropped { reason, .. } => {
                        player.outcome.count_drop(packet);
                        observer.dropped(now, logged.link, packet, Some(reason));
                    }
                    Fate::Lost => {
                        player.outcome.count_drop(packet);
                        observer.dropped(now, logged.link, packet, None);
                    }
                    // Nothing was decided.
                    Fate::Stayed { .. } => {}
                }
            }
            ReplayEvent::Delivered(logged) => {
                let Some(packet) = packets.remove(&std::ptr::from_ref(logged)) else { continue };
                observer.received(now, &packet);
                player.receive(now, &packet, observer);
            }
            ReplayEvent::Read(total) => player.read(now, total, observer),
        }
    }
    let links = performed.outcome.links.iter().map(|link| LinkOutcome {
        packets: link.packets,
        bytes: link.bytes,
        dropped: link.dropped,
        lost: link.lost,
        marked: link.marked,
        max_sojourn: link.max_sojourn,
        total_sojourn: link.total_sojourn,
        busy: link.busy,
        quick_start: Default::default(),
        stored: link.stored,
    });
    Outcome {
        ended: performed.outcome.ended,
        events: 0,
        data_packets: players.iter().map(|player| player.outcome.packets_sent).sum(),
        links: links.collect(),
        flows: players.into_iter().map(|player| player.outcome).collect(),
        sessions: performed.sessions.clone(),
    }
}

fn player<'a>(performed: &'a Performed, number: usize, ran: &'a Ran) -> Player<'a> {
    let flow = &ran.outcome;
    let info = flow.info.unwrap_or_default();
    let seen = seen_exit(performed, ran).filter(|_| ran.seen.is_none()).map(|exit| StartExit {
        now: exit.at,
        reason: exit.reason,
        cwnd: exit.cwnd,
        ssthresh: exit.ssthresh,
        in_flight: exit.in_flight,
        srtt: info.rtt,
        min_rtt: info.min_rtt,
    });
    let start_exit = ran.seen.as_ref().map_or(seen, |seen| seen.exit);
    let began = ran.seen.as_ref().map(|seen| seen.began.unwrap_or(Time::NEVER));
    let outcome = FlowOutcome {
        timeouts: u64::from(info.timeouts),
        start_exit,
        srtt: info.rtt,
        min_rtt: info.min_rtt,
        cwnd: info.cwnd,
        ..FlowOutcome::new(ran.group, flow.started.unwrap_or(Time::NEVER), ran.size)
    };
    Player { flow: number as u32, outcome, stream: Stream::default(), began, windows: flow.samples.iter().peekable() }
}

/// A segment of which only this is known.
fn segment(logged: &Logged, number: u64, seq: u64, payload: u32, retransmission: bool) -> Segment {
    Segment {
        seq,
        number,
        sent_at: logged.arrived,
        unacknowledged: 0,
        payload,
        retransmission,
        push: false,
        fin: false,
        cwr: false,
        syn: false,
        quick_start: Default::default(),
    }
}

impl Player<'_> {
    /// Windows that were seen up to now.
    fn show_windows(&mut self, now: Time, observer: &mut dyn Observer) {
        let exited = self.outcome.start_exit.map(|exit| exit.now);
        while let Some(sample) = self.windows.next_if(|sample| sample.at <= now) {
            let exited = exited.filter(|exit| *exit <= sample.at);
            observer.foreign_sender(sample.at, self.flow, sample.info.cwnd, exited);
        }
    }

    /// A packet that was sent, in the simulator's terms; `None` for those without payload.
    fn packet(&mut self, logged: &Logged) -> Option<Packet> {
        let stream = &mut self.stream;
        let body = match logged.tcp {
            Some((sequence, _, true)) => {
                stream.first = sequence.wrapping_add(1);
                return None;
            }
            Some((_, 0, false)) => return None,
            Some((sequence, payload, false)) => {
                let seq = stream.offset(sequence);
                let end = seq + u64::from(payload);
                let retransmission = end <= stream.highest;
                stream.highest = stream.highest.max(end);
                self.outcome.retransmitted += u64::from(retransmission);
                Body::Segment(segment(logged, stream.numbers, seq, payload, retransmission))
            }
            // Every packet of QUIC is a new one: how much of it repeats others nobody sees.
            None if self.began.is_some() => {
                let payload = logged.bytes.saturating_sub(QUIC_HEADERS).max(1);
                let seq = stream.highest;
                stream.highest += u64::from(payload);
                Body::Segment(segment(logged, stream.numbers, seq, payload, false))
            }
            None => Body::Datagram(Datagram { number: stream.numbers, sent_at: logged.arrived }),
        };
        self.stream.numbers += 1;
        self.outcome.packets_sent += 1;
        self.outcome.first_data = self.outcome.first_data.min(logged.arrived);
        let bytes = u16::try_from(logged.bytes).unwrap_or(u16::MAX);
        Some(Packet { flow: self.flow, bytes, ecn: Ecn::NotEct, body })
    }

    fn receive(&mut self, now: Time, packet: &Packet, observer: &mut dyn Observer) {
        self.outcome.marked += u64::from(packet.ecn == Ecn::Ce);
        match &packet.body {
            // What the application has read it says itself.
            Body::Segment(_) if self.began.is_some() => return,
            Body::Segment(segment) => self.stream.receive(segment.seq, segment.seq + u64::from(segment.payload)),
            _ => self.stream.delivered += u64::from(packet.bytes),
        }
        self.read(now, self.stream.delivered, observer);
    }

    /// The application has read this much.
    fn read(&mut self, now: Time, total: u64, observer: &mut dyn Observer) {
        let total = Bytes::new(total);
        if total > self.outcome.delivered {
            self.outcome.delivered = total;
            observer.delivered(now, self.flow, total.get());
            if self.outcome.size == Some(total) {
                self.outcome.completed = Some(now);
                observer.completed(now, self.flow);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_put_together_in_order_over_the_wrap_of_its_numbers() {
        let mut stream = Stream { first: u32::MAX - 999, ..Stream::default() };
        for (sequence, offset) in [(u32::MAX - 999, 0_u64), (0, 1000), (2000, 3000), (1000, 2000), (1000, 2000)] {
            assert_eq!(stream.offset(sequence), offset);
            stream.highest = stream.highest.max(offset + 1000);
            stream.receive(offset, offset + 1000);
            let whole = match offset {
                3000 => 2000,
                2000 => 4000,
                other => other + 1000,
            };
            assert_eq!(stream.delivered, whole);
        }
        assert!(stream.pieces.is_empty());
    }
}
