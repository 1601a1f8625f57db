//! What the engine reads in a frame, and the one thing it writes: the ECN mark.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use flowstart_network::{Ecn, PureAck};
use flowstart_random::mix;

/// Length of an Ethernet header.
pub(crate) const ETHERNET: usize = 14;
/// Shortest IP headers.
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;
/// IP protocol numbers.
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
/// Next-header number of IPv6's hop-by-hop options.
const HOP_BY_HOP: u8 = 0;

/// What makes packets belong together: addresses, ports and protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowKey {
    /// Who sends.
    pub source: IpAddr,
    /// Who receives.
    pub destination: IpAddr,
    /// The sender's port; 0 if the protocol has none.
    pub source_port: u16,
    /// The receiver's port; 0 if the protocol has none.
    pub destination_port: u16,
    /// IP protocol number: 6 for TCP, 17 for UDP.
    pub protocol: u8,
}

impl FlowKey {
    /// A number that connections are spread with.
    pub(crate) fn hash(&self, seed: u64) -> u64 {
        let ports = u64::from(self.source_port) << 16 | u64::from(self.destination_port);
        [number(self.source), number(self.destination), ports, u64::from(self.protocol)]
            .iter()
            .fold(mix(seed), |hash, part| mix(hash ^ part))
    }
}

/// A number for a host's address: two hosts have different ones, for all that happens by chance.
pub(crate) fn number(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            mix(bits as u64 ^ mix((bits >> 64) as u64))
        }
    }
}

/// An IP packet in an Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parsed {
    /// Whose it is.
    pub(crate) key: FlowKey,
    /// Length of the IP packet.
    pub(crate) bytes: u32,
    /// ECN codepoint.
    pub(crate) ecn: Ecn,
    /// Where the transport header begins in the frame; `None` in later fragments.
    pub(crate) transport: Option<usize>,
}

fn u16_at(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?))
}

/// A 32-bit number in network order.
pub(crate) fn u32_at(frame: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(frame.get(at..at + 4)?.try_into().ok()?))
}

const fn codepoint(bits: u8) -> Ecn {
    match bits & 3 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

/// Reads a frame. `None` for what is no IP packet for one host: ARP, broadcasts and multicasts of
/// the interface's own housekeeping, damaged headers.
pub(crate) fn parse(frame: &[u8]) -> Option<Parsed> {
    match u16_at(frame, 12)? {
        TYPE_IPV4 => ipv4(frame),
        TYPE_IPV6 => ipv6(frame),
        _ => None,
    }
}

/// Whose an Ethernet frame is, the length of its IP packet and its ECN codepoint, as the engine
/// reads them. `None` for what it passes over.
#[must_use]
pub fn read_frame(frame: &[u8]) -> Option<(FlowKey, u32, Ecn)> {
    parse(frame).map(|parsed| (parsed.key, parsed.bytes, parsed.ecn))
}

/// Sets congestion experienced in a frame that [`read_frame`] reads, as the engine does.
pub fn mark_frame(frame: &mut [u8]) {
    set_ce(frame);
}

/// What a packet acknowledges, if it is a TCP acknowledgement without data, for ACK filters.
pub(crate) fn pure_ack(frame: &[u8], parsed: &Parsed) -> Option<PureAck> {
    /// No operation.
    const NOP: u8 = 1;
    /// The timestamps that every packet has (RFC 7323).
    const TIMESTAMPS: u8 = 8;
    const SYN_FIN_RST: u8 = 0x07;
    const ACK: u8 = 0x10;
    if parsed.key.protocol != TCP {
        return None;
    }
    let header = frame.get(parsed.transport?..)?;
    let (&offset, &flags) = (header.get(12)?, header.get(13)?);
    let length = usize::from(offset >> 4) * 4;
    let end = (ETHERNET + parsed.bytes as usize).checked_sub(parsed.transport?)?;
    if length != end || flags & SYN_FIN_RST != 0 || flags & ACK == 0 {
        return None;
    }
    let mut options = header.get(20..length)?;
    let mut plain = true;
    while let Some((&kind, rest)) = options.split_first() {
        if kind == 0 {
            break;
        }
        let skipped = if kind == NOP { 1 } else { usize::from(*rest.first()?).max(2) };
        plain &= kind == NOP || kind == TIMESTAMPS;
        options = options.get(skipped..).unwrap_or_default();
    }
    // The reserved bits beside the data offset have the third flag of accurate ECN.
    Some(PureAck { ack: u32_at(header, 8)?, flags: (flags & 0xf8) | (offset & 0x0f) & 0x07, plain })
}

fn ipv4(frame: &[u8]) -> Option<Parsed> {
    let header = frame.get(ETHERNET..ETHERNET + IPV4_HEADER)?;
    let length = usize::from(header[0] & 0x0f) * 4;
    if header[0] >> 4 != 4 || length < IPV4_HEADER {
        return None;
    }
    let bytes = u16_at(header, 2)?;
    let address = |at: usize| Some(Ipv4Addr::from(u32_at(header, at)?));
    let (source, destination) = (address(12)?, address(16)?);
    if destination.is_multicast() || destination.is_broadcast() || usize::from(bytes) < length {
        return None;
    }
    let later_fragment = u16_at(header, 6)? & 0x1fff != 0;
    let transport = (!later_fragment).then_some(ETHERNET + length);
    Some(parsed(frame, (source.into(), destination.into()), header[9], u32::from(bytes), header[1], transport))
}

fn ipv6(frame: &[u8]) -> Option<Parsed> {
    let header = frame.get(ETHERNET..ETHERNET + IPV6_HEADER)?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let address = |at: usize| Some(Ipv6Addr::from(<[u8; 16]>::try_from(header.get(at..at + 16)?).ok()?));
    let (source, destination) = (address(8)?, address(24)?);
    if destination.is_multicast() {
        return None;
    }
    let bytes = u32::from(u16_at(header, 4)?) + IPV6_HEADER as u32;
    // A hop-by-hop header, as Quick-Start's, is looked behind. Packets with other extension headers
    // belong to the flow of their addresses and that header's number: no ports are read.
    let plain = (header[6], ETHERNET + IPV6_HEADER);
    let (protocol, transport) = match (header[6], frame.get(ETHERNET + IPV6_HEADER..ETHERNET + IPV6_HEADER + 2)) {
        (HOP_BY_HOP, Some([next, length])) => (*next, plain.1 + 8 * (usize::from(*length) + 1)),
        _ => plain,
    };
    Some(parsed(frame, (source.into(), destination.into()), protocol, bytes, header[1] >> 4, Some(transport)))
}

fn parsed(
    frame: &[u8],
    (source, destination): (IpAddr, IpAddr),
    protocol: u8,
    bytes: u32,
    traffic_class: u8,
    transport: Option<usize>,
) -> Parsed {
    let ports = transport
        .filter(|_| matches!(protocol, TCP | UDP))
        .and_then(|at| Some((u16_at(frame, at)?, u16_at(frame, at + 2)?)));
    let (source_port, destination_port) = ports.unwrap_or_default();
    Parsed {
        key: FlowKey { source, destination, source_port, destination_port, protocol },
        bytes,
        ecn: codepoint(traffic_class),
        transport,
    }
}

/// Sets congestion experienced in a frame that [`parse`] has read, and corrects the IPv4 checksum
/// (RFC 1624, equation 3: HC' = ~(~HC + ~m + m')). IPv6 has no header checksum, and transport
/// checksums do not cover the field.
pub(crate) fn set_ce(frame: &mut [u8]) {
    match u16_at(frame, 12) {
        Some(TYPE_IPV4) => {
            let (Some(before), Some(sum)) = (u16_at(frame, ETHERNET), u16_at(frame, ETHERNET + 10)) else { return };
            let after = before | 3;
            let folded = u32::from(!sum) + u32::from(!before) + u32::from(after);
            let folded = (folded & 0xffff) + (folded >> 16);
            let sum = !((folded & 0xffff) + (folded >> 16)) as u16;
            frame[ETHERNET..ETHERNET + 2].copy_from_slice(&after.to_be_bytes());
            frame[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&sum.to_be_bytes());
        }
        Some(TYPE_IPV6) => {
            if let Some(byte) = frame.get_mut(ETHERNET + 1) {
                *byte |= 0x30;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use etherparse::{IpEcn, NetHeaders, PacketBuilder, PacketHeaders};
    use proptest::prelude::*;

    use super::*;

    /// A frame as another implementation builds it.
    fn frame(v6: bool, ecn: u8, tcp: bool, payload: usize, id: u16, dscp: u8) -> Vec<u8> {
        let start = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let ecn = IpEcn::try_new(ecn).unwrap();
        let builder = if v6 {
            let mut header = etherparse::Ipv6Header {
                hop_limit: 64,
                source: [0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1],
                destination: [0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2],
                ..Default::default()
            };
            header.set_dscp(etherparse::IpDscp::try_new(dscp).unwrap());
            header.set_ecn(ecn);
            start.ip(etherparse::IpHeaders::Ipv6(header, Default::default()))
        } else {
            let header = etherparse::Ipv4Header {
                ecn,
                dscp: etherparse::IpDscp::try_new(dscp).unwrap(),
                identification: id,
                time_to_live: 64,
                source: [10, 77, 0, 1],
                destination: [10, 77, 0, 2],
                ..Default::default()
            };
            start.ip(etherparse::IpHeaders::Ipv4(header, Default::default()))
        };
        let payload = vec![7; payload];
        let mut bytes = Vec::new();
        if tcp {
            builder.tcp(40_000, 5_201, 17, 1_000).write(&mut bytes, &payload).unwrap();
        } else {
            builder.udp(40_000, 5_201).write(&mut bytes, &payload).unwrap();
        }
        bytes
    }

    #[test]
    fn a_pure_ack_is_known_by_its_flags_its_length_and_its_options() {
        use etherparse::TcpOptionElement::{Noop, SelectiveAcknowledgement, Timestamp};
        let build = |options: &[etherparse::TcpOptionElement], payload: usize, fin: bool| {
            let mut builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
                .ipv4([10, 77, 0, 1], [10, 77, 0, 2], 64)
                .tcp(40_000, 5_201, 17, 1_000)
                .ack(0xfedc_ba98);
            if fin {
                builder = builder.fin();
            }
            let mut bytes = Vec::new();
            builder.options(options).unwrap().write(&mut bytes, &vec![0; payload]).unwrap();
            pure_ack(&bytes, &parse(&bytes).unwrap())
        };
        let usual = build(&[Noop, Noop, Timestamp(1, 2)], 0, false).unwrap();
        assert_eq!((usual.ack, usual.plain), (0xfedc_ba98, true));
        assert!(build(&[], 0, false).unwrap().plain);
        assert!(!build(&[SelectiveAcknowledgement((1, 2), [None; 3])], 0, false).unwrap().plain);
        assert_eq!(build(&[], 1, false), None);
        assert_eq!(build(&[], 0, true), None);
    }

    proptest! {
        /// Differential: against another implementation's builder and parser.
        #[test]
        fn a_marked_packet_is_the_same_packet_with_ce_and_right_checksums(
            v6: bool, ecn in 0_u8..4, tcp: bool, payload in 0_usize..1400, id: u16, dscp in 0_u8..64,
        ) {
            let mut bytes = frame(v6, ecn, tcp, payload, id, dscp);
            let read = parse(&bytes).unwrap();
            prop_assert_eq!(read.bytes as usize, bytes.len() - ETHERNET);
            prop_assert_eq!(read.ecn, codepoint(ecn));
            prop_assert_eq!((read.key.source_port, read.key.destination_port), (40_000, 5_201));
            prop_assert_eq!(read.key.protocol, if tcp { TCP } else { UDP });
            let original = bytes.clone();
            set_ce(&mut bytes);
            prop_assert_eq!(parse(&bytes).unwrap(), Parsed { ecn: Ecn::Ce, ..read });
            let headers = PacketHeaders::from_ethernet_slice(&bytes).unwrap();
            let (Some(NetHeaders::Ipv4(..) | NetHeaders::Ipv6(..)), Some(_)) = (&headers.net, &headers.transport) else {
                panic!("not read")
            };
            match headers.net.unwrap() {
                NetHeaders::Ipv4(ip, _) => {
                    prop_assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                    prop_assert_eq!((ip.ecn.value(), ip.dscp.value()), (3, dscp));
                }
                NetHeaders::Ipv6(ip, _) => prop_assert_eq!((ip.ecn().value(), ip.dscp().value()), (3, dscp)),
                NetHeaders::Arp(_) => panic!("not ARP"),
            }
            let rest = if v6 { ETHERNET + 2 } else { ETHERNET + 12 };
            prop_assert_eq!(&bytes[rest..], &original[rest..]);
        }

        #[test]
        fn no_bytes_make_it_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), ipv6: bool) {
            if let Some(slot) = bytes.get_mut(12..14) {
                slot.copy_from_slice(&if ipv6 { TYPE_IPV6 } else { TYPE_IPV4 }.to_be_bytes());
            }
            if parse(&bytes).is_some() {
                set_ce(&mut bytes);
            }
        }
    }
}
