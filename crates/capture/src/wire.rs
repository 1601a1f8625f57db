//! The headers a packet would have on a real wire. Built with `etherparse`; the payload is all
//! zeros and not captured.

use etherparse::{IpEcn, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, UdpHeader};

use flowstart_network::packet::{Acknowledgement, Body, Segment};
use flowstart_network::{Ecn, Packet};
use flowstart_units::{Rate, Time};

/// Hops a packet may take; the usual initial value.
const TIME_TO_LIVE: u8 = 64;
/// Port of every receiver (iperf3's).
const RECEIVER_PORT: u16 = 5201;
/// Port of the sender of flow 0; later flows count up, wrapping within the ephemeral range.
const FIRST_SENDER_PORT: u16 = 32_768;
/// Addresses of senders are 10.1.x.y, of receivers 10.2.x.y, with x.y counting in steps of all
/// sender ports.
const SENDERS: [u8; 2] = [10, 1];
const RECEIVERS: [u8; 2] = [10, 2];
/// Sequence number of the SYN; the stream begins at the next one.
const INITIAL_SEQUENCE: u32 = 0;
/// The receive window is scaled by 2 to this power (RFC 7323, the largest allowed), so that large
/// windows fit.
const WINDOW_SCALE: u8 = 14;
/// Option of IP for experiments (RFC 4727 section 2).
const EXPERIMENT: u8 = 0x1e;
/// Option of TCP for experiments (RFC 6994), and what tells RCP's from others ("RP").
const TCP_EXPERIMENT: u8 = 253;
const RCP_IDENTIFIER: u16 = 0x5250;
/// Bytes of zeros for checksums: the longest payload of an IP packet.
static ZEROS: [u8; 65_535] = [0; 65_535];

/// The IP and transport headers of a packet. Sequence numbers are 32-bit truncations, time stamps
/// count microseconds since the start of the run.
#[must_use]
pub fn headers(packet: &Packet) -> Vec<u8> {
    let slot = packet.flow / u32::from(FIRST_SENDER_PORT);
    let host = (slot as u16).saturating_add(1).to_be_bytes();
    let sender = [SENDERS[0], SENDERS[1], host[0], host[1]];
    let receiver = [RECEIVERS[0], RECEIVERS[1], host[0], host[1]];
    let port = FIRST_SENDER_PORT + (packet.flow % u32::from(FIRST_SENDER_PORT)) as u16;
    let (source, destination, protocol) = match packet.body {
        Body::Segment(_) => (sender, receiver, IpNumber::TCP),
        Body::Ack(_) => (receiver, sender, IpNumber::TCP),
        Body::Datagram(_) => (sender, receiver, IpNumber::UDP),
    };
    let mut ip = Ipv4Header {
        total_len: packet.bytes,
        time_to_live: TIME_TO_LIVE,
        protocol,
        source,
        destination,
        ecn: match packet.ecn {
            Ecn::NotEct => IpEcn::ZERO,
            Ecn::Ect1 => IpEcn::ONE,
            Ecn::Ect0 => IpEcn::TWO,
            Ecn::Ce => IpEcn::THREE,
        },
        dont_fragment: true,
        ..Ipv4Header::default()
    };
    if let Body::Segment(segment) = packet.body
        && let Some(option) = segment.quick_start.option()
    {
        // Of other packets the TTL is not simulated.
        ip.time_to_live = segment.quick_start.ip_ttl();
        ip.options = option.to_ipv4().into();
    }
    if let Body::Segment(segment) = &packet.body
        && segment.quick_start.asks_for_share()
    {
        ip.options = rcp_header(segment).into();
    }
    ip.header_checksum = ip.calc_header_checksum();
    let mut bytes = ip.to_bytes().to_vec();
    let room = usize::from(packet.bytes).saturating_sub(bytes.len());
    match &packet.body {
        Body::Segment(segment) => bytes.extend(tcp(&ip, segment_header(segment, port), room)),
        Body::Ack(ack) => bytes.extend(tcp(&ip, ack_header(ack, port), room)),
        Body::Datagram(_) => {
            let payload = &ZEROS[..room.saturating_sub(UdpHeader::LEN)];
            // Fails only for payloads longer than an IP packet, which `room` excludes.
            if let Ok(udp) = UdpHeader::with_ipv4_checksum(port, RECEIVER_PORT, &ip, payload) {
                bytes.extend(udp.to_bytes());
            }
        }
    }
    // A packet shorter than its headers would need (a test's fancy) is cut like its payload.
    bytes.truncate(usize::from(packet.bytes).max(ip.header_len()));
    bytes
}

fn tcp(ip: &Ipv4Header, mut header: TcpHeader, room: usize) -> Vec<u8> {
    let payload = &ZEROS[..room.saturating_sub(header.header_len())];
    header.checksum = header.calc_checksum_ipv4(ip, payload).unwrap_or(0);
    header.to_bytes().to_vec()
}

fn micros(time: Time) -> u32 {
    (time.as_nanos() / 1_000) as u32
}

fn segment_header(segment: &Segment, port: u16) -> TcpHeader {
    let sequence = if segment.syn { INITIAL_SEQUENCE } else { sequence(segment.seq) };
    let mut header = TcpHeader::new(port, RECEIVER_PORT, sequence, u16::MAX);
    header.syn = segment.syn;
    header.ack = !segment.syn;
    header.acknowledgment_number = if segment.syn { 0 } else { INITIAL_SEQUENCE.wrapping_add(1) };
    header.psh = segment.push;
    header.fin = segment.fin;
    header.cwr = segment.cwr;
    set_options(&mut header, segment.syn, micros(segment.sent_at), 0, &[]);
    header
}

fn ack_header(ack: &Acknowledgement, port: u16) -> TcpHeader {
    let first = if ack.syn { INITIAL_SEQUENCE } else { INITIAL_SEQUENCE.wrapping_add(1) };
    let window = (ack.window >> WINDOW_SCALE).min(u32::from(u16::MAX)) as u16;
    let mut header = TcpHeader::new(RECEIVER_PORT, port, first, window);
    header.syn = ack.syn;
    header.ack = true;
    header.acknowledgment_number = sequence(ack.ack);
    header.ece = ack.ece;
    let blocks: Vec<(u32, u32)> = ack.sacked().map(|block| (sequence(block.start), sequence(block.end))).collect();
    set_options(&mut header, ack.syn, 0, micros(ack.echo), &blocks);
    if let Some(response) = ack.response() {
        let options = [header.options.as_slice(), &response.to_bytes()].concat();
        let fits = header.set_options_raw(&options);
        debug_assert!(fits.is_ok(), "beside at most two blocks");
    }
    if let Some(share) = ack.share() {
        let options = [header.options.as_slice(), &rcp_answer(share)].concat();
        let fits = header.set_options_raw(&options);
        debug_assert!(fits.is_ok(), "beside at most two blocks");
    }
    header
}

/// RCP's header has no number of its own: an option for experiments (RFC 4727), in which the
/// round-trip time in tenths of a millisecond and the rate in kbit/s follow; zero is not known.
fn rcp_header(segment: &Segment) -> [u8; 8] {
    let rtt = segment.quick_start.rtt().map_or(0, |rtt| (rtt.as_micros() / 100) as u16).to_be_bytes();
    let rate = segment.quick_start.share().map_or(0, |rate| (rate.as_bps() / 1000) as u32).to_be_bytes();
    [EXPERIMENT, 8, rtt[0], rtt[1], rate[0], rate[1], rate[2], rate[3]]
}

/// What the receiver tells the sender of it: an option of TCP for experiments (RFC 6994).
fn rcp_answer(share: Rate) -> [u8; 8] {
    let [id, identifier] = RCP_IDENTIFIER.to_be_bytes();
    let rate = ((share.as_bps() / 1000) as u32).to_be_bytes();
    [TCP_EXPERIMENT, 8, id, identifier, rate[0], rate[1], rate[2], rate[3]]
}

/// The 32-bit number of a byte of the stream.
fn sequence(byte: u64) -> u32 {
    INITIAL_SEQUENCE.wrapping_add(1).wrapping_add(byte as u32)
}

fn set_options(header: &mut TcpHeader, syn: bool, value: u32, echo: u32, sack: &[(u32, u32)]) {
    let stamp = TcpOptionElement::Timestamp(value, echo);
    // At most 40 bytes: each of these combinations fits.
    let fits = if syn {
        header.set_options(&[
            TcpOptionElement::MaximumSegmentSize(1460),
            TcpOptionElement::SelectiveAcknowledgementPermitted,
            stamp,
            TcpOptionElement::Noop,
            TcpOptionElement::WindowScale(WINDOW_SCALE),
        ])
    } else if let Some((first, rest)) = sack.split_first() {
        let mut others = [None; 3];
        for (other, block) in others.iter_mut().zip(rest) {
            *other = Some(*block);
        }
        header.set_options(&[
            TcpOptionElement::Noop,
            TcpOptionElement::Noop,
            stamp,
            TcpOptionElement::Noop,
            TcpOptionElement::Noop,
            TcpOptionElement::SelectiveAcknowledgement(*first, others),
        ])
    } else {
        header.set_options(&[TcpOptionElement::Noop, TcpOptionElement::Noop, stamp])
    };
    debug_assert!(fits.is_ok());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use flowstart_network::packet::{Datagram, SackBlock};
    use flowstart_quick_start::wire::{IpOption, TcpResponse};
    use flowstart_quick_start::{Carried, Nonce, RateCode};

    use super::*;

    fn any_body() -> impl Strategy<Value = Body> {
        let segment = (any::<u64>(), any::<u64>(), any::<[bool; 5]>()).prop_map(|(seq, at, flags)| {
            let [retransmission, push, fin, cwr, syn] = flags;
            let rate = RateCode::new(at as u8 & 0x1f).unwrap_or_default();
            let (ttl, nonce) = ((at >> 16) as u8, Nonce::new(at as u32));
            let option = if cwr { IpOption::Report { rate, nonce } } else { IpOption::Request { rate, ttl, nonce } };
            let quick_start = Carried::new(&option, (at >> 8) as u8);
            let sent_at = Time::from_nanos(at);
            Body::Segment(Segment {
                seq,
                number: seq,
                sent_at,
                unacknowledged: 0,
                payload: 1448,
                retransmission,
                push,
                fin,
                cwr,
                syn,
                quick_start,
            })
        });
        let ack = (any::<u64>(), any::<u64>(), any::<[u32; 6]>(), 0_u8..=3, any::<[bool; 3]>(), any::<u32>()).prop_map(
            |(ack, echo, ends, sack_len, [ece, duplicate, syn], window)| {
                let block = |n: usize| SackBlock { start: ends[2 * n], end: ends[2 * n + 1] };
                let mut ack = Acknowledgement {
                    ack: ack >> 1,
                    echo: Time::from_nanos(echo),
                    ce_count: 0,
                    window,
                    sack: [block(0), block(1), block(2)],
                    sack_len,
                    ece,
                    duplicate,
                    syn,
                    granted_rate: RateCode::ZERO,
                    has_share: false,
                };
                if let Some(rate) = RateCode::new(echo as u8 & 0x1f) {
                    let nonce = Nonce::new(ends[0]);
                    ack.set_response(&TcpResponse { rate, ttl_difference: ends[1] as u8, nonce });
                }
                Body::Ack(ack)
            },
        );
        let datagram = any::<u64>().prop_map(|number| Body::Datagram(Datagram { number, sent_at: Time::ZERO }));
        prop_oneof![segment, ack, datagram]
    }

    proptest! {
        /// Differential: what is built reads back with the parser's own checks, whatever the
        /// packet.
        #[test]
        fn headers_of_any_packet_parse_with_right_checksums(
            body in any_body(), flow: u32, bytes in 88_u16.., ecn in 0_u8..4,
        ) {
            let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(ecn)];
            let packet = Packet { flow, bytes, ecn, body };
            let mut whole = headers(&packet);
            whole.resize(usize::from(bytes), 0);
            let parsed = etherparse::PacketHeaders::from_ip_slice(&whole).unwrap();
            let Some(etherparse::NetHeaders::Ipv4(ip, _)) = parsed.net else { panic!() };
            prop_assert_eq!(ip.total_len, bytes);
            prop_assert_eq!(ip.ecn.value(), match ecn { Ecn::NotEct => 0, Ecn::Ect1 => 1, Ecn::Ect0 => 2, Ecn::Ce => 3 });
            match (body, parsed.transport) {
                (Body::Datagram(_), Some(etherparse::TransportHeader::Udp(udp))) => {
                    prop_assert_eq!(usize::from(udp.length), usize::from(bytes) - 20);
                }
                (Body::Segment(segment), Some(etherparse::TransportHeader::Tcp(tcp))) => {
                    prop_assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(&ip, parsed.payload.slice()).unwrap());
                    prop_assert_eq!((tcp.syn, tcp.fin, tcp.psh, tcp.cwr), (segment.syn, segment.fin, segment.push, segment.cwr));
                    if !segment.syn {
                        prop_assert_eq!(tcp.sequence_number, (segment.seq as u32).wrapping_add(1));
                    }
                }
                (Body::Ack(ack), Some(etherparse::TransportHeader::Tcp(tcp))) => {
                    prop_assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(&ip, parsed.payload.slice()).unwrap());
                    prop_assert_eq!((tcp.ece, tcp.acknowledgment_number), (ack.ece, (ack.ack as u32).wrapping_add(1)));
                    let blocks = tcp.options_iterator().filter_map(Result::ok).find_map(|option| match option {
                        TcpOptionElement::SelectiveAcknowledgement(_, others) => Some(1 + others.iter().flatten().count()),
                        _ => None,
                    });
                    prop_assert_eq!(blocks.unwrap_or(0), if ack.syn { 0 } else { usize::from(ack.sack_len) });
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}
