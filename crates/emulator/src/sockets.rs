//! What the kernel of a host says of all its TCP connections, whoever's they are (`sock_diag(7)`,
//! INET_DIAG_INFO).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_SOCK_DIAG};

use crate::traffic::TcpInfo;
use crate::wire::{FlowKey, TCP};
use crate::{Error, Host};

/// Message types of linux/netlink.h and linux/sock_diag.h.
const DONE: u16 = libc::NLMSG_DONE as u16;
const FAILED: u16 = libc::NLMSG_ERROR as u16;
const BY_FAMILY: u16 = 20;
/// Flags: a request whose answer is a list.
const LIST: u16 = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
/// Length of the header of messages.
const HEADER: usize = 16;
/// Length of `struct inet_diag_req_v2`.
const REQUEST: usize = 56;
/// Length of `struct inet_diag_msg`, before attributes.
const ANSWER: usize = 72;
/// The attribute that holds `struct tcp_info`, and the bit that asks for it.
const INFO: u16 = 2;
const ASK_FOR_INFO: u8 = 1 << (INFO - 1);
/// States of connections that carry data (include/net/tcp_states.h): established, the two in which
/// the other end has not closed, and close-wait.
const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8;

/// Asks a host's kernel about its TCP connections.
#[derive(Debug)]
pub struct TcpWatch {
    socket: Socket,
}

impl Host {
    /// For asking the kernel about the TCP connections of this host's programs, from any thread.
    ///
    /// # Errors
    /// If the kernel has no `sock_diag`, or the host cannot be entered.
    pub fn tcp_watch(&self) -> Result<TcpWatch, Error> {
        let opened = self.run(|| {
            let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(TcpWatch { socket })
        })?;
        opened.map_err(|error: std::io::Error| Error::doing("open sock_diag", error))
    }
}

impl TcpWatch {
    /// The connections there are, and what the kernel says of each. The source of a flow is this
    /// host.
    ///
    /// # Errors
    /// If the kernel does not answer; one without IPv6 has none of its connections.
    pub fn connections(&self) -> Result<Vec<(FlowKey, TcpInfo)>, Error> {
        let mut all = Vec::new();
        for family in [libc::AF_INET as u8, libc::AF_INET6 as u8] {
            let list = self.list(family, &mut all);
            list.map_err(|error| Error::doing("ask for connections", error))?;
        }
        Ok(all)
    }

    fn list(&self, family: u8, all: &mut Vec<(FlowKey, TcpInfo)>) -> std::io::Result<()> {
        let mut request = [0_u8; HEADER + REQUEST];
        request[..4].copy_from_slice(&((HEADER + REQUEST) as u32).to_ne_bytes());
        request[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        request[6..8].copy_from_slice(&LIST.to_ne_bytes());
        request[HEADER..HEADER + 3].copy_from_slice(&[family, TCP, ASK_FOR_INFO]);
        request[HEADER + 4..HEADER + 8].copy_from_slice(&STATES.to_ne_bytes());
        self.socket.send(&request, 0)?;
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            let mut rest = bytes.as_slice();
            while let Some((kind, message, after)) = split(rest, HEADER) {
                match kind {
                    DONE | FAILED => return Ok(()),
                    BY_FAMILY => all.extend(read(message)),
                    _ => {}
                }
                rest = after;
            }
        }
    }
}

/// The first of several pieces, each with its length (32 bits in messages, 16 in attributes) and
/// its type before it: type, contents, and the rest.
fn split(bytes: &[u8], header: usize) -> Option<(u16, &[u8], &[u8])> {
    let short = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let (length, kind) = if header == HEADER {
        (u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?) as usize, short(4)?)
    } else {
        (usize::from(short(0)?), short(2)?)
    };
    let contents = bytes.get(header..length)?;
    // Pieces begin at multiples of four bytes.
    Some((kind, contents, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// Reads an answer about one connection.
fn read(message: &[u8]) -> Option<(FlowKey, TcpInfo)> {
    let v6 = i32::from(*message.first()?) == libc::AF_INET6;
    let port = |at: usize| Some(u16::from_be_bytes(message.get(at..at + 2)?.try_into().ok()?));
    let address = |at: usize| -> Option<IpAddr> {
        if v6 {
            // Programs reach IPv4 addresses over sockets of IPv6, too.
            return Some(
                IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(message.get(at..at + 16)?).ok()?)).to_canonical(),
            );
        }
        Some(Ipv4Addr::from(<[u8; 4]>::try_from(message.get(at..at + 4)?).ok()?).into())
    };
    let key = FlowKey {
        source_port: port(4)?,
        destination_port: port(6)?,
        source: address(8)?,
        destination: address(24)?,
        protocol: TCP,
    };
    let mut rest = message.get(ANSWER..)?;
    while let Some((kind, contents, after)) = split(rest, 4) {
        if kind == INFO {
            return Some((key, TcpInfo::of_bytes(contents)));
        }
        rest = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An answer about a connection from 10.77.0.1:40000 to 10.77.0.2:80, or the same as addresses
    /// of IPv6, with a window of 33 packets.
    fn answer(v6: bool) -> Vec<u8> {
        let mut bytes = vec![0; ANSWER];
        bytes[0] = if v6 { libc::AF_INET6 } else { libc::AF_INET } as u8;
        bytes[4..8].copy_from_slice(&[0x9c, 0x40, 0, 80]);
        for (at, last) in [(8, 1), (24, 2)] {
            if v6 {
                bytes[at + 10..at + 16].copy_from_slice(&[0xff, 0xff, 10, 77, 0, last]);
            } else {
                bytes[at..at + 4].copy_from_slice(&[10, 77, 0, last]);
            }
        }
        // An attribute of another kind with padding, then the one that is wanted.
        bytes.extend([5_u16.to_ne_bytes(), 8_u16.to_ne_bytes()].concat());
        bytes.extend([7, 0, 0, 0]);
        bytes.extend([(4 + 232_u16).to_ne_bytes(), INFO.to_ne_bytes()].concat());
        let mut info = vec![0_u8; 232];
        info[80..84].copy_from_slice(&33_u32.to_ne_bytes());
        bytes.extend(info);
        bytes
    }

    #[test]
    fn an_answer_gives_addresses_ports_and_the_window() {
        for v6 in [false, true] {
            let (key, info) = read(&answer(v6)).unwrap();
            assert_eq!((key.source, key.source_port), (Ipv4Addr::new(10, 77, 0, 1).into(), 40_000));
            assert_eq!((key.destination, key.destination_port), (Ipv4Addr::new(10, 77, 0, 2).into(), 80));
            assert_eq!(info.cwnd, 33);
        }
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(cut in 0_usize..320, place in 0_usize..320, value: u8, v6: bool) {
            let mut bytes = answer(v6);
            if let Some(byte) = bytes.get_mut(place) {
                *byte = value;
            }
            bytes.truncate(cut);
            let _ = read(&bytes);
            let _ = split(&bytes, HEADER);
        }
    }
}
