//! What happens to packets between two hosts: none vanishes, none overtakes another, marks and
//! contents are right.

mod support;

use std::hash::{DefaultHasher, Hasher as _};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flowstart_emulator::{Capture, Fate, World};
use flowstart_network::{Ecn, JitterConfig, LossConfig, QueueConfig, StepMarkConfig, Threshold};
use flowstart_units::{Span, Time};

use support::{QUIET, has_received, link, pair, set_ecn, socket, turn};

/// What the test keeps of a record.
#[derive(Clone, Copy, Debug)]
struct Seen {
    arrived: Time,
    fate: Fate,
    ecn: Ecn,
    marked_here: bool,
    delivery: Option<Time>,
    number: u32,
}

fn addresses(world: &World, v6: bool) -> Option<[IpAddr; 2]> {
    let address = |n: usize| {
        let host = &world.hosts()[n];
        if v6 { host.address_v6() } else { Some(host.address()) }
    };
    Some([address(0)?, address(1)?])
}

/// Sends numbered datagrams as fast as possible and returns those that arrived in order of arrival,
/// with everything the link said. It waits until everything has arrived that the link sent; of what
/// the emulator itself loses nobody hears, so then until nothing has come for long.
fn blast(
    config: flowstart_emulator::WorldConfig,
    v6: bool,
    ecn: i32,
    count: u32,
) -> Option<(Vec<u32>, Vec<Seen>, flowstart_emulator::WorldOutcome)> {
    let told: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let sink = told.clone();
    let world = World::start_with(config, move |record| {
        let at = if record.flow.source.is_ipv6() { 14 + 40 + 8 } else { 14 + 20 + 8 };
        let number = record.headers.get(at..at + 4).map_or(0, |bytes| u32::from_be_bytes(bytes.try_into().unwrap()));
        let seen = Seen {
            arrived: record.arrived,
            fate: record.fate,
            ecn: record.ecn,
            marked_here: record.marked_here,
            delivery: record.delivery,
            number,
        };
        sink.lock().unwrap().push(seen);
    })
    .unwrap();
    let [client, server] = addresses(&world, v6)?;
    let receiver = socket(&world, 1, server, 7000);
    receiver.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
    let sender = socket(&world, 0, client, 7001);
    set_ecn(&sender, v6, ecn);
    let heard = told.clone();
    let reader = std::thread::spawn(move || {
        let (mut numbers, mut bytes) = (Vec::new(), [0; 2000]);
        let is_all = |arrived: usize| {
            let seen = heard.lock().unwrap();
            let sent = seen.iter().filter(|seen| matches!(seen.fate, Fate::Sent { .. })).count();
            seen.len() == count as usize && arrived == sent
        };
        let mut last = Instant::now();
        while !is_all(numbers.len()) && last.elapsed() < QUIET {
            let Ok((length, _)) = receiver.recv_from(&mut bytes) else { continue };
            last = Instant::now();
            assert_eq!(length, 1000);
            assert!(bytes[4..length].iter().all(|byte| *byte == 0x5a), "contents are as sent");
            numbers.push(u32::from_be_bytes(bytes[..4].try_into().unwrap()));
        }
        numbers
    });
    let mut payload = [0x5a; 1000];
    for number in 0..count {
        payload[..4].copy_from_slice(&number.to_be_bytes());
        sender.send_to(&payload, SocketAddr::new(server, 7000)).unwrap();
    }
    let numbers = reader.join().unwrap();
    let outcome = world.finish().unwrap();
    let seen = std::mem::take(&mut *told.lock().unwrap());
    Some((numbers, seen, outcome))
}

fn check_conservation(numbers: &[u32], seen: &[Seen], outcome: &flowstart_emulator::WorldOutcome, count: u32) {
    let link = &outcome.links[0];
    assert_eq!(outcome.fidelity.above_mtu, 0);
    assert_eq!(outcome.stored, 0);
    // Whatever the machine did, every packet is accounted for.
    assert_eq!(link.arrived, link.packets + link.dropped + link.lost);
    assert_eq!(link.arrived + outcome.fidelity.unasked_drops, u64::from(count), "{:?}", outcome.fidelity);
    assert_eq!(outcome.fidelity.packets, link.packets);
    assert_eq!(seen.len() as u64, link.arrived);
    let sent: Vec<u32> = seen.iter().filter(|s| matches!(s.fate, Fate::Sent { .. })).map(|s| s.number).collect();
    assert_eq!(numbers, sent, "what arrives is what the link sent, in its order");
    assert!(numbers.is_sorted(), "one queue does not reorder");
}

#[test]
fn every_packet_arrives_in_order_or_is_counted_where_it_was_dropped() {
    let Some(_turn) = turn() else { return };
    for v6 in [false, true] {
        let mut config = pair(link(50, Span::from_millis(5), 100));
        config.links[0].loss = LossConfig::Periodic { every: 10 };
        let Some((numbers, seen, outcome)) = blast(config, v6, 0, 600) else { continue };
        check_conservation(&numbers, &seen, &outcome, 600);
        assert_eq!(outcome.links[0].lost, outcome.links[0].arrived / 10);
        // A burst of 600 does not fit into 100 places unless the sender was slower than the link.
        let lasted = seen.iter().map(|s| s.arrived).max().unwrap().since(seen[0].arrived);
        assert!(outcome.links[0].dropped > 0 || lasted > Span::from_millis(60));
    }
}

#[test]
fn every_queue_carries_real_packets_and_accounts_for_each() {
    let Some(_turn) = turn() else { return };
    for name in QueueConfig::NAMES {
        let mut config = pair(link(50, Span::from_millis(2), 100));
        config.links[0].queue = QueueConfig::from_name(name).unwrap();
        // Capable of marks, with random losses and marks beside the queue's.
        config.links[0].loss = LossConfig::Bernoulli { probability: 0.02 };
        // A packet marked on arrival belongs to the queue for L4S of the two, and overtakes others
        // (RFC 9331, section 5.1).
        let marks = name != "dual_pi2";
        config.links[0].marking = if marks { LossConfig::Periodic { every: 7 } } else { LossConfig::None };
        let Some((numbers, seen, outcome)) = blast(config, false, 2, 300) else { return };
        check_conservation(&numbers, &seen, &outcome, 300);
        let (arrived, link) = (seen.iter().filter(|s| s.fate != Fate::Lost).count(), &outcome.links[0]);
        assert!(link.packets > 0 && arrived as u64 + link.lost == link.arrived, "{name}");
        assert!(!marks || seen.iter().filter(|s| s.marked_here).count() >= arrived / 7, "{name}: every seventh");
    }
}

#[test]
fn jitter_delays_within_its_spread_and_keeps_the_order() {
    let Some(_turn) = turn() else { return };
    let spread = Span::from_millis(3);
    let mut config = pair(link(20, Span::from_millis(5), 1000));
    config.links[0].jitter = Some(JitterConfig { spread, reorder: false });
    let Some((numbers, seen, outcome)) = blast(config, false, 0, 200) else { return };
    check_conservation(&numbers, &seen, &outcome, 200);
    let mut extra = Vec::new();
    let mut last = Time::ZERO;
    for packet in &seen {
        let (Fate::Sent { done, .. }, Some(delivery)) = (packet.fate, packet.delivery) else { panic!("{packet:?}") };
        let least = done + Span::from_millis(5);
        assert!(delivery >= least && delivery <= least + spread && delivery >= last, "{packet:?}");
        extra.push(delivery.since(least));
        last = delivery;
    }
    let (least, most) = (extra.iter().min().unwrap(), extra.iter().max().unwrap());
    assert!(*most > *least + spread / 2, "200 draws spread out");
}

#[test]
fn the_way_back_has_limits_of_its_own() {
    let Some(_turn) = turn() else { return };
    let mut config = pair(link(1000, Span::from_millis(1), 1000));
    config.links.push(link(8, Span::from_millis(4), 5));
    config.routes[1].links = vec![1];
    config.routes[1].after = Span::ZERO;
    // What is sent from the second host is seen by the second link only.
    config.routes.swap(0, 1);
    for route in &mut config.routes {
        (route.from, route.to) = (route.to, route.from);
    }
    let Some((numbers, seen, outcome)) = blast(config, false, 0, 100) else { return };
    let [first, back] = &outcome.links[..] else { panic!("two links") };
    assert_eq!((first.arrived, back.arrived), (0, 100));
    assert_eq!(back.packets + back.dropped, 100);
    assert_eq!(numbers.len() as u64, back.packets);
    for packet in &seen {
        if let Fate::Sent { began, done } = packet.fate {
            assert_eq!(done.since(began), Span::from_micros(1028), "8224 bits at 8 Mbit/s");
        }
    }
}

#[test]
fn departures_are_those_of_the_model_to_the_nanosecond() {
    let Some(_turn) = turn() else { return };
    let Some((_, seen, _)) = blast(pair(link(100, Span::from_millis(5), 1000)), false, 0, 200) else { return };
    // 1028 bytes at 100 Mbit/s.
    let service = Span::from_nanos(1028 * 80);
    let mut free = Time::ZERO;
    for packet in &seen {
        let Fate::Sent { began, done } = packet.fate else { panic!("nothing is dropped") };
        assert_eq!((began, done), (packet.arrived.max(free), packet.arrived.max(free) + service));
        free = done;
    }
}

#[test]
fn packets_that_hosts_are_given_are_told_if_that_is_wanted() {
    let Some(_turn) = turn() else { return };
    let mut config = pair(link(100, Span::from_millis(5), 1000));
    let Some((_, _, outcome)) = blast(config.clone(), false, 0, 100) else { return };
    assert_eq!(outcome.given, [], "nobody asked");
    config.timing.tell_given = true;
    let Some((_, seen, outcome)) = blast(config, false, 0, 100) else { return };
    assert!(outcome.given.iter().all(|given| given.host == 1 && given.tcp.is_none()), "the sender gets nothing");
    let due: Vec<_> = seen.iter().map(|packet| packet.delivery.expect("the only link")).collect();
    assert_eq!(outcome.given.iter().map(|given| given.due).collect::<Vec<_>>(), due);
    let late = outcome.given.iter().map(|given| given.at.checked_since(given.due).expect("none is early"));
    assert_eq!(late.max(), Some(outcome.fidelity.worst));
}

#[test]
fn packets_are_marked_where_the_queue_says_so_and_only_if_they_are_capable() {
    let Some(_turn) = turn() else { return };
    let queue = StepMarkConfig { threshold: Threshold::Sojourn(Span::from_millis(1)), ..StepMarkConfig::default() };
    for (v6, ecn) in [(false, 2), (false, 1), (false, 0), (true, 2)] {
        let mut config = pair(link(20, Span::from_millis(5), 1000));
        config.links[0].queue = QueueConfig::StepMark(queue);
        let Some((numbers, seen, outcome)) = blast(config, v6, ecn, 100) else { continue };
        check_conservation(&numbers, &seen, &outcome, 100);
        for packet in &seen {
            let Fate::Sent { began, .. } = packet.fate else { panic!("nothing is dropped") };
            let late = began.since(packet.arrived) > Span::from_millis(1);
            assert_eq!(packet.marked_here, late && ecn != 0, "{packet:?}");
            assert_eq!(packet.ecn == Ecn::Ce, packet.marked_here);
        }
        assert_eq!(outcome.links[0].marked, seen.iter().filter(|s| s.marked_here).count() as u64);
    }
}

#[test]
fn a_transfer_over_a_lossy_link_arrives_whole() {
    let Some(_turn) = turn() else { return };
    for v6 in [false, true] {
        let mut config = pair(link(100, Span::from_millis(2), 50));
        config.links[0].loss = LossConfig::Periodic { every: 50 };
        let world = World::start(config).unwrap();
        let Some([_, server]) = addresses(&world, v6) else { continue };
        let listener = world.hosts()[1].run(|| TcpListener::bind((server, 5201))).unwrap().unwrap();
        let receiver = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut hasher, mut all) = (DefaultHasher::new(), Vec::new());
            stream.read_to_end(&mut all).unwrap();
            hasher.write(&all);
            (all.len(), hasher.finish())
        });
        let sent: Vec<u8> = (0..2_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let mut stream = world.hosts()[0].run(|| TcpStream::connect((server, 5201))).unwrap().unwrap();
        stream.write_all(&sent).unwrap();
        drop(stream);
        let (length, hash) = receiver.join().unwrap();
        let mut hasher = DefaultHasher::new();
        hasher.write(&sent);
        assert_eq!((length, hash), (sent.len(), hasher.finish()));
        let outcome = world.finish().unwrap();
        assert!(outcome.links[0].lost > 20 && outcome.fidelity.above_mtu == 0);
    }
}

#[test]
fn packets_above_the_mtu_are_counted_once_and_as_that() {
    let Some(_turn) = turn() else { return };
    for (changed, bytes, above, lost) in [(0, 8000, 10, 0), (1, 1400, 0, 10)] {
        let world = World::start(pair(link(100, Span::from_millis(1), 50))).unwrap();
        let [client, server] = addresses(&world, false).unwrap();
        // The sender's interface lets longer packets through, or the receiver's no longer these.
        let mtu = if above > 0 { "9000" } else { "1300" };
        let mut ip = world.hosts()[changed].command("ip");
        if !ip.args(["link", "set", "fs-0", "mtu", mtu]).status().unwrap().success() {
            return;
        }
        let (receiver, sender) = (socket(&world, 1, server, 7000), socket(&world, 0, client, 7001));
        for _ in 0..10 {
            sender.send_to(&vec![0; bytes], SocketAddr::new(server, 7000)).unwrap();
        }
        // One that is short enough does not overtake them.
        sender.send_to(b"last", SocketAddr::new(server, 7000)).unwrap();
        has_received(&receiver, 1);
        let fidelity = world.finish().unwrap().fidelity;
        assert_eq!((fidelity.above_mtu, fidelity.unasked_drops), (above, lost), "{fidelity}");
    }
}

#[test]
fn programs_find_hosts_by_name_and_are_ended_with_the_world() {
    let Some(_turn) = turn() else { return };
    let world = World::start(pair(link(100, Span::from_millis(1), 50))).unwrap();
    let output = world.hosts()[0].command("cat").arg("/etc/hosts").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("10.77.0.2 server") && text.contains("10.77.0.1 client"), "{text}");
    let mut forgotten = world.hosts()[1].command("sleep").arg("1000").spawn().unwrap();
    let outcome = world.finish().unwrap();
    assert_eq!(outcome.ended_processes, 1);
    assert!(!forgotten.wait().unwrap().success());
}

#[test]
fn a_capture_reads_back_with_an_independent_parser_marks_and_drops_included() {
    use pcap_file::pcapng::{Block, PcapNgReader};

    let Some(_turn) = turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("link.pcapng");
    let mut config = pair(link(20, Span::from_millis(5), 1000));
    config.links[0].queue = QueueConfig::StepMark(StepMarkConfig::default());
    config.links[0].loss = LossConfig::Periodic { every: 10 };
    let capture = Arc::new(Mutex::new(Some(Capture::new("bottleneck", &path).unwrap())));
    let sink = capture.clone();
    let world = World::start_with(config, move |record| sink.lock().unwrap().as_mut().unwrap().add(record)).unwrap();
    let [client, server] = addresses(&world, false).unwrap();
    let receiver = socket(&world, 1, server, 7000);
    let sender = socket(&world, 0, client, 7001);
    set_ecn(&sender, false, 2);
    for _ in 0..100 {
        sender.send_to(&[1; 1000], SocketAddr::new(server, 7000)).unwrap();
    }
    // Each tenth is lost.
    has_received(&receiver, 90);
    let outcome = world.finish().unwrap();
    assert!(!path.exists(), "the file appears only when it is complete");
    let written = capture.lock().unwrap().take().unwrap().finish().unwrap();
    let mut reader = PcapNgReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    let (mut last, mut sent, mut lost, mut marked) = (Duration::ZERO, 0, 0, 0);
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
        assert!(packet.timestamp >= last);
        last = packet.timestamp;
        let mut whole = packet.data.to_vec();
        whole.resize(packet.original_len as usize, 0);
        let headers = etherparse::PacketHeaders::from_ethernet_slice(&whole).unwrap();
        let Some(etherparse::NetHeaders::Ipv4(ip, _)) = headers.net else { panic!() };
        assert_eq!((ip.header_checksum, ip.total_len), (ip.calc_header_checksum(), 1028));
        if packet.interface_id == 0 {
            sent += 1
        } else {
            lost += 1
        }
        marked += u64::from(ip.ecn.value() == 3);
    }
    let link = &outcome.links[0];
    assert_eq!((sent, lost, marked), (link.packets, link.lost + link.dropped, link.marked));
    assert_eq!(sent + lost, written);
}
