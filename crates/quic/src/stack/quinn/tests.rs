use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use flowstart_random::SplitMix64;

use super::super::Connection as _;
use super::super::Endpoint as _;
use super::*;
use crate::tls;

const MS: Duration = Duration::from_millis(1);

fn notes() -> Notes {
    factory(&Arc::default()).make()
}

/// The stack sends a packet of data then.
fn send(notes: &mut Notes, at: Instant, number: u64) {
    notes.on_sent(at, 1452, number);
    let left = notes.desk.lock().unwrap().take().unwrap();
    left.notes.sent(left.at, left.number, left.bytes);
}

fn told(gate: &Gate) -> Vec<Told> {
    let mut all = Vec::new();
    gate.take(&mut all);
    all
}

/// Settings of an end whose random numbers come from `seed`.
fn settings(seed: u8) -> Settings {
    Settings {
        mtu: 1452,
        receive_window: 1 << 20,
        idle: MS * 10_000,
        keep_alive: MS * 3_000,
        resets: MS,
        place: String::new(),
        seed: Some([seed; 32]),
    }
}

#[test]
fn the_gate_lets_one_packet_pass_and_only_who_finds_it_shut_is_held_back() {
    let (mut notes, now) = (notes(), Instant::now());
    let gate = notes.gate.clone();
    gate.set(true);
    assert_eq!(Controller::window(&notes), u64::MAX);
    assert!(!gate.held_back());
    // An ACK shuts it too, but nobody is told of it.
    notes.on_sent(now, 42, 3);
    assert!(!gate.held_back() && told(&gate).is_empty());
    assert_eq!(Controller::window(&notes), 1);
    assert!(gate.held_back());
    send(&mut notes, now, 4);
    assert_eq!(told(&gate), [Told::Sent { number: 4, bytes: 1452 }]);
}

#[test]
fn lost_is_what_was_sent_until_the_latest_that_is_and_was_not_acknowledged() {
    let (mut notes, began) = (notes(), Instant::now());
    let at = |number: u64| began + MS * number as u32;
    (10..20).for_each(|number| send(&mut notes, at(number), number));
    told(&notes.gate);
    // The first is not known: it was sent before, or is no data.
    [3, 11, 17].into_iter().for_each(|number| notes.acked(at(number), MS));
    notes.on_congestion_event(at(40), at(14), false, 4 * 1452);
    notes.on_congestion_event(at(40), at(17), false, 0);
    notes.on_congestion_event(at(50), at(15), true, 1452);
    let lost = |number| Told::Lost { number };
    let acked = [11, 17].map(|number| Told::Acked { number });
    let rest = [lost(10), lost(12), lost(13), lost(14), Told::Marked, lost(15), Told::Persistent];
    assert_eq!(told(&notes.gate), [&acked[..], &rest].concat());
}

/// RFC 9000 section 9.4: what was sent to another port is no business of the path any more. Before
/// the client has shown that it is at the new one, the stack says nothing of acknowledgements.
#[test]
fn what_is_no_longer_in_flight_without_a_word_was_acknowledged() {
    let (mut notes, began) = (notes(), Instant::now());
    send(&mut notes, began, 1);
    // The stack has a copy for the other port.
    let _ = notes.clone_box();
    (2..6).for_each(|number| send(&mut notes, began + MS * number as u32, number));
    assert_eq!(told(&notes.gate)[1], Told::Moved);
    notes.acked(began, MS);
    notes.on_end_acks(began + MS * 20, 4 * 1452, false, None);
    assert!(told(&notes.gate).is_empty(), "all is as it should be");
    notes.on_end_acks(began + MS * 20, 2 * 1452, false, None);
    assert_eq!(told(&notes.gate), [2, 3].map(|number| Told::Acked { number }));
}

/// All that were deemed lost, that is; and of what was sent long ago nobody waits for an ACK.
#[test]
fn a_reduction_is_taken_back_when_an_ack_tells_of_what_was_deemed_lost() {
    let (mut notes, began) = (notes(), Instant::now());
    notes.open().smoothed(MS * 20);
    let at = |number: u64| began + MS * number as u32;
    (10..20).for_each(|number| send(&mut notes, at(number), number));
    notes.on_congestion_event(at(40), at(11), false, 2 * 1452);
    told(&notes.gate);
    let ack = |least: u8, most: u8| [2, most, 0, 0, most - least];
    notes.acknowledged.packet(&ack(11, 14));
    notes.hear();
    assert!(told(&notes.gate).is_empty(), "one did not arrive");
    notes.acknowledged.packet(&ack(9, 10));
    notes.on_end_acks(at(41), u64::MAX, false, None);
    assert_eq!(told(&notes.gate), [Told::Spurious]);
    notes.acknowledged.packet(&ack(9, 19));
    notes.hear();
    assert!(told(&notes.gate).is_empty(), "once");
    // Two timeouts are twice the RTT and four times its variation.
    notes.on_congestion_event(at(50), at(13), false, 2 * 1452);
    notes.on_end_acks(at(13) + MS * 121, u64::MAX, false, None);
    told(&notes.gate);
    notes.acknowledged.packet(&ack(9, 19));
    notes.hear();
    assert!(told(&notes.gate).is_empty(), "too late");
}

/// Packets of which something was told, and what is open.
#[derive(Default)]
struct Counted {
    open: HashMap<u64, u32>,
    lost: u64,
    lost_bytes: u64,
}

impl Counted {
    fn hear(&mut self, gate: &Gate) {
        for what in told(gate) {
            match what {
                Told::Sent { number, bytes } => assert_eq!(self.open.insert(number, bytes), None),
                Told::Acked { number } => assert!(self.open.remove(&number).is_some(), "{number}"),
                Told::Lost { number } => {
                    self.lost += 1;
                    self.lost_bytes += u64::from(self.open.remove(&number).unwrap());
                }
                _ => {}
            }
        }
    }
}

/// A server sends half a megabyte over a path that loses one packet in eight and lets others
/// overtake, and meanwhile acknowledges what its client says. What is told of each packet is told
/// once, of all but ACKs, and adds up to what the stack counts.
#[test]
fn what_is_told_lost_is_what_the_stack_counts_as_lost() {
    const SIZE: usize = 500_000;
    const AT_ONCE: usize = 50_000;
    let (began, identity) = (Instant::now(), Identity::generate().unwrap());
    let gates: [Arc<Gates>; 2] = Default::default();
    let mut client = Endpoint::new(settings(1), None, &gates[0]).unwrap();
    let mut server = Endpoint::new(settings(2), Some(&identity), &gates[1]).unwrap();
    let [from, to] = ["10.0.0.1:5001", "10.0.0.2:4433"].map(|text| text.parse().unwrap());
    let (_, mut here) = client.connect(began, tls::client(None, None).unwrap(), to).unwrap();
    gates[0].last().1.set(true);
    let mut there: Option<Connection> = None;
    let mut counted = Counted::default();
    let (mut now, mut random, mut sent, mut read) = (began, SplitMix64::new(7), 0_u64, 0);
    let mut flying = BinaryHeap::new();
    let (mut streams, mut written, mut stream) = (Vec::new(), 0, None);
    while read < SIZE {
        let mut buffer = Vec::new();
        if random.below(2) == 0 {
            here.ping();
        }
        gates[0].last().1.set(true);
        while let Some(transmit) = here.poll_transmit(now, &mut buffer) {
            assert_eq!(transmit.size, buffer.len());
            sent += 1;
            flying.push(Reverse((now + MS * 10, sent, true, std::mem::take(&mut buffer))));
        }
        while let Some(there) = &mut there {
            gates[1].last().1.set(counted.open.len() < 40);
            if there.poll_transmit(now, &mut buffer).is_none() {
                break;
            }
            counted.hear(&gates[1].last().1);
            sent += 1;
            let lost = sent > 20 && random.below(8) == 0;
            let at = now + MS * 10 + MS * random.below(8) as u32;
            let data = std::mem::take(&mut buffer);
            if !lost {
                flying.push(Reverse((at, sent, false, data)));
            }
        }
        let timers = [here.poll_timeout(), there.as_ref().and_then(|there| there.poll_timeout())];
        let arrives = flying.peek().map(|Reverse((at, ..))| *at);
        now = timers.into_iter().flatten().chain(arrives).min().unwrap().max(now);
        assert!(now < began + MS * 60_000, "{read}");
        while flying.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            let Some(Reverse((_, _, to_server, data))) = flying.pop() else { break };
            let (end, from) = if to_server { (&mut server, from) } else { (&mut client, to) };
            match end.handle(now, from, None, &data, &mut Vec::new()) {
                Some(Handled::For(_, event)) if to_server => there.as_mut().unwrap().handle_event(event),
                Some(Handled::For(_, event)) => here.handle_event(event),
                Some(Handled::New { .. }) => {
                    let incoming = server.incoming.take().unwrap();
                    let made = server.inner.accept(incoming, now, &mut Vec::new(), None);
                    let (_, inner) = made.map_err(|error| error.cause).unwrap();
                    there = Some(Connection::new(inner, &server.factory, now));
                }
                Some(Handled::Answer(_)) | None => {}
            }
        }
        here.handle_timeout(now);
        while here.poll().is_some() {}
        while let Some(event) = here.poll_endpoint_events() {
            client.handle_event(0, event).into_iter().for_each(|event| here.handle_event(event));
        }
        if let Some(there) = &mut there {
            there.handle_timeout(now);
            while let Some(event) = there.poll_endpoint_events() {
                server.handle_event(0, event).into_iter().for_each(|event| there.handle_event(event));
            }
            while let Some(event) = there.poll() {
                if event == Event::Confirmed {
                    stream = there.open(Dir::Uni);
                }
            }
            counted.hear(&gates[1].last().1);
            if let Some(stream) = stream.filter(|_| counted.open.is_empty() && written < SIZE) {
                written += there.write(stream, &[7; AT_ONCE]);
            }
        }
        streams.extend(here.accept(Dir::Uni));
        for stream in &streams {
            here.read(*stream, &mut |bytes| read += bytes.len());
        }
    }
    let stats = there.unwrap().inner.stats().path;
    assert!(counted.lost > 30, "{}", counted.lost);
    assert_eq!(counted.lost_bytes, stats.lost_bytes);
    // The stack counts the ACKs that it never hears of as well.
    assert!(counted.lost < stats.lost_packets, "{stats:?}");
}

/// Packets of the handshake have numbers of their own, from 0 on as those of data: what is told of
/// them would be taken for data.
#[test]
fn nothing_is_told_of_what_has_a_long_header() {
    let (began, identity) = (Instant::now(), Identity::generate().unwrap());
    let gates: [Arc<Gates>; 2] = Default::default();
    let mut client = Endpoint::new(settings(1), None, &gates[0]).unwrap();
    let mut server = Endpoint::new(settings(2), Some(&identity), &gates[1]).unwrap();
    let [from, to] = ["10.0.0.1:5001", "10.0.0.2:4433"].map(|text| text.parse().unwrap());
    let (_, mut here) = client.connect(began, tls::client(None, None).unwrap(), to).unwrap();
    let mut there: Option<Connection> = None;
    // Datagrams of either end with long headers, and packets of data that were told.
    let (mut long, mut data) = ([0; 2], [0; 2]);
    for round in 0..10 {
        let now = began + MS * 10 * round;
        let mut flying: Vec<(bool, Vec<u8>)> = Vec::new();
        if round > 5 {
            here.ping();
        }
        let ends: [Option<&mut dyn super::super::Connection>; 2] =
            [Some(here.as_mut()), there.as_mut().map(|there| there as &mut dyn super::super::Connection)];
        for (end, connection) in ends.into_iter().enumerate() {
            let Some(connection) = connection else { continue };
            let (gate, mut buffer): (Gate, Vec<u8>) = (gates[end].last().1, Vec::new());
            gate.set(true);
            while connection.poll_transmit(now, &mut buffer).is_some() {
                let sent = told(&gate).iter().filter(|what| matches!(what, Told::Sent { .. })).count();
                let is_long = buffer[0] & 0x80 != 0;
                assert!(!is_long || sent == 0, "{round}: {end}");
                long[end] += usize::from(is_long);
                data[end] += sent;
                gate.set(true);
                flying.push((end == 0, std::mem::take(&mut buffer)));
            }
        }
        let now = now + MS * 5;
        for (to_server, bytes) in flying {
            let (end, from) = if to_server { (&mut server, from) } else { (&mut client, to) };
            match end.handle(now, from, None, &bytes, &mut Vec::new()) {
                Some(Handled::For(_, event)) if to_server => there.as_mut().unwrap().handle_event(event),
                Some(Handled::For(_, event)) => here.handle_event(event),
                Some(Handled::New { .. }) => {
                    let incoming = server.incoming.take().unwrap();
                    let made = server.inner.accept(incoming, now, &mut Vec::new(), None);
                    let (_, inner) = made.map_err(|error| error.cause).unwrap();
                    there = Some(Connection::new(inner, &server.factory, now));
                }
                Some(Handled::Answer(_)) | None => {}
            }
        }
    }
    assert!(long.iter().all(|count| *count > 0) && data.iter().all(|count| *count > 0), "{long:?} {data:?}");
}
