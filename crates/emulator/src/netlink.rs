//! Interfaces, addresses and routes, over rtnetlink. Every function acts on the network namespace
//! of the calling thread.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd as _, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage, AddressScope};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, Stats64,
};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use crate::Error;

/// Largest MTU of a pair's interface.
const LARGEST_MTU: u32 = 65_535;

/// An Ethernet address.
pub(crate) type Mac = [u8; 6];

/// A connection to rtnetlink of the namespace in which it was opened.
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// Opens one in the calling thread's namespace.
    pub(crate) fn open() -> Result<Self, Error> {
        let opened = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(socket)
        };
        let socket = opened().map_err(|error: std::io::Error| Error::doing("open rtnetlink", error))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Sends a request and returns what the kernel answers, nothing for a plain acknowledgement.
    fn request(
        &mut self,
        doing: &str,
        flags: u16,
        message: RouteNetlinkMessage,
    ) -> Result<Option<RouteNetlinkMessage>, Error> {
        let failed = |error: &dyn std::fmt::Display| Error::doing(doing, error);
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map_err(|error| failed(&error))?;
        let (answer, _) = self.socket.recv_from_full().map_err(|error| failed(&error))?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer).map_err(|error| failed(&error))?;
        match answer.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => match error.to_io() {
                error if error.raw_os_error() == Some(libc::EPERM) => Err(Error::NotPossible(format!(
                    "cannot {doing}: it needs the capability NET_ADMIN, which this container or user does not have"
                ))),
                error if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                    Err(Error::NotPossible(format!("cannot {doing}: this kernel has no veth interfaces")))
                }
                error => Err(failed(&error)),
            },
            NetlinkPayload::InnerMessage(inner) => Ok(Some(inner)),
            _ => Ok(None),
        }
    }

    fn change(&mut self, doing: &str, flags: u16, message: RouteNetlinkMessage) -> Result<(), Error> {
        self.request(doing, NLM_F_ACK | flags, message).map(|_| ())
    }

    /// Makes a pair of interfaces: one here, its peer in another namespace. Both are down. The one
    /// here takes whatever is sent to it, so that what is above the MTU can be counted.
    pub(crate) fn add_veth(
        &mut self,
        here: (&str, Mac),
        there: (&str, Mac),
        namespace: BorrowedFd<'_>,
        mtu: u32,
    ) -> Result<(), Error> {
        let mut peer = LinkMessage::default();
        peer.attributes = end(there, mtu);
        peer.attributes.push(LinkAttribute::NetNsFd(namespace.as_raw_fd()));
        let mut message = LinkMessage::default();
        message.attributes = end(here, LARGEST_MTU);
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        self.change("make a veth pair", NLM_F_CREATE | NLM_F_EXCL, RouteNetlinkMessage::NewLink(message))
    }

    /// Switches an interface on; with `silent` it asks nobody for addresses (no ARP, no neighbour
    /// discovery).
    pub(crate) fn up(&mut self, index: u32, silent: bool) -> Result<(), Error> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        if silent {
            message.header.flags |= LinkFlags::Noarp;
            message.header.change_mask |= LinkFlags::Noarp;
        }
        self.change("switch an interface on", 0, RouteNetlinkMessage::SetLink(message))
    }

    /// Gives an interface an address that only it has, without a subnet.
    pub(crate) fn add_address(&mut self, index: u32, address: IpAddr) -> Result<(), Error> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = bits(address);
        message.header.scope = AddressScope::Universe;
        message.header.index = index;
        message.attributes.push(AddressAttribute::Address(address));
        if address.is_ipv4() {
            message.attributes.push(AddressAttribute::Local(address));
        }
        self.change("give an address", NLM_F_CREATE | NLM_F_EXCL, RouteNetlinkMessage::NewAddress(message))
    }

    /// Everything goes out of this interface, and comes from `source`. Its TCP connections begin
    /// with `initial_window` packets, if it says so.
    pub(crate) fn add_default_route(
        &mut self,
        index: u32,
        source: IpAddr,
        initial_window: Option<u32>,
    ) -> Result<(), Error> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(source);
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Boot;
        message.header.scope = if source.is_ipv4() { RouteScope::Link } else { RouteScope::Universe };
        message.header.kind = RouteType::Unicast;
        message.attributes.push(RouteAttribute::Oif(index));
        if let Some(packets) = initial_window {
            message.attributes.push(RouteAttribute::Metrics(vec![RouteMetric::InitCwnd(packets)]));
        }
        if let IpAddr::V4(address) = source {
            message.attributes.push(RouteAttribute::PrefSource(address.into()));
        }
        self.change("add a route", NLM_F_CREATE, RouteNetlinkMessage::NewRoute(message))
    }

    /// The counters of an interface.
    pub(crate) fn statistics(&mut self, index: u32) -> Result<Stats64, Error> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        let answer = self.request("read an interface's counters", 0, RouteNetlinkMessage::GetLink(message))?;
        if let Some(RouteNetlinkMessage::NewLink(link)) = answer {
            for attribute in link.attributes {
                if let LinkAttribute::Stats64(stats) = attribute {
                    return Ok(stats);
                }
            }
        }
        Err(Error::Failed("an interface has no counters".to_owned()))
    }
}

/// One end of a pair.
fn end((name, mac): (&str, Mac), mtu: u32) -> Vec<LinkAttribute> {
    vec![LinkAttribute::IfName(name.to_owned()), LinkAttribute::Address(mac.to_vec()), LinkAttribute::Mtu(mtu)]
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

fn bits(address: IpAddr) -> u8 {
    (if address.is_ipv4() { Ipv4Addr::BITS } else { std::net::Ipv6Addr::BITS }) as u8
}

/// The number of an interface by its name.
pub(crate) fn index_of(name: &str) -> Result<u32, Error> {
    nix::net::if_::if_nametoindex(name).map_err(|error| {
        let what = format_args!("find the interface {name}");
        // The C library asks a socket, and says of one that it cannot have what it says of a name
        // that there is not.
        match std::os::unix::net::UnixDatagram::unbound() {
            Ok(_) => Error::doing(what, error),
            Err(no_socket) => Error::doing(what, no_socket),
        }
    })
}
