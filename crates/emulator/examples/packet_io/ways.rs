//! The ways, and two hosts joined by each.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use crate::Error;
use crate::ethtool;
use crate::measure::{monotonic, wall_offset};
use crate::namespace::NetNs;
use crate::netlink::{Mac, Netlink, index_of};
use crate::ring::{Exit, FRAMES, Ring};
use crate::xdp::{Mode, XdpSocket};

/// Addresses of sender and receiver.
pub(crate) const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)];
const MTU: u32 = 1500;
const ETHERNET: usize = 14;
/// Frames taken at a time, as in the emulator.
const AT_ONCE: usize = 64;

/// A way to take packets from a host and give them to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The emulator's: TPACKET_V2 ring in, `send` out.
    Packet,
    /// AF_XDP in copy mode, program in the driver of veth.
    XdpDriver,
    /// AF_XDP in copy mode, program after the driver (generic XDP).
    XdpGeneric,
    /// A TUN device in each host.
    Tun,
}

impl Way {
    pub(crate) const ALL: [Self; 4] = [Self::Packet, Self::XdpDriver, Self::XdpGeneric, Self::Tun];
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Packet => "AF_PACKET ring",
            Self::XdpDriver => "AF_XDP copy, driver",
            Self::XdpGeneric => "AF_XDP copy, generic",
            Self::Tun => "TUN",
        })
    }
}

/// Two hosts. The forwarder's ends are in the [`Forwarder`] that was made with them.
pub(crate) struct Hosts {
    pub(crate) sender: NetNs,
    pub(crate) receiver: NetNs,
    _router: NetNs,
}

/// Takes from one host and gives to the other.
pub(crate) enum Forwarder {
    Packet { ring: Box<Ring>, exit: Exit, macs: [Mac; 2] },
    Xdp { from: Box<XdpSocket>, to: Box<XdpSocket>, macs: [Mac; 2] },
    Tun { from: File, to: File, bytes: Box<[u8]> },
}

impl Forwarder {
    /// For waiting until something is there.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Packet { ring, .. } => ring.fd(),
            Self::Xdp { from, .. } => from.fd(),
            Self::Tun { from, .. } => from.as_fd(),
        }
    }

    /// Forwards what is there, at most [`AT_ONCE`] packets. `tell` gets the IP packet and when it
    /// arrived, as far as this way knows.
    pub(crate) fn forward(&mut self, mut tell: impl FnMut(&[u8], u64)) -> usize {
        let mut forwarded = 0;
        match self {
            Self::Packet { ring, exit, macs } => {
                let mut copy = [0; 2048];
                while forwarded < AT_ONCE {
                    let taken = ring.receive(|frame| {
                        copy[..frame.bytes.len()].copy_from_slice(frame.bytes);
                        (frame.bytes.len(), frame.stamp)
                    });
                    let Some((length, stamp)) = taken else { break };
                    tell(&copy[ETHERNET..length], stamp.wrapping_sub(wall_offset()));
                    address(&mut copy, macs);
                    exit.send(&copy[..length]);
                    forwarded += 1;
                }
            }
            Self::Xdp { from, to, macs } => {
                let mut copy = [0; 2048];
                while forwarded < AT_ONCE {
                    let Some((length, stamp)) = from.receive(&mut copy) else { break };
                    tell(&copy[ETHERNET..length], stamp);
                    address(&mut copy, macs);
                    to.send(&copy[..length]);
                    forwarded += 1;
                }
                if forwarded > 0 {
                    // One system call for all of them: the best case.
                    to.kick();
                }
            }
            Self::Tun { from, to, bytes } => {
                while forwarded < AT_ONCE {
                    match from.read(bytes) {
                        Ok(length) => {
                            tell(&bytes[..length], monotonic());
                            let _ = to.write(&bytes[..length]);
                            forwarded += 1;
                        }
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        Err(_) => break,
                    }
                }
            }
        }
        forwarded
    }
}

fn address(frame: &mut [u8], [router, host]: &[Mac; 2]) {
    frame[..6].copy_from_slice(host);
    frame[6..12].copy_from_slice(router);
}

/// Makes two hosts joined in this way.
pub(crate) fn make(way: Way) -> Result<(Hosts, Forwarder), Error> {
    let hosts = Hosts { sender: NetNs::create()?, receiver: NetNs::create()?, _router: NetNs::create()? };
    let sides = [(&hosts.sender, ADDRESSES[0]), (&hosts.receiver, ADDRESSES[1])];
    if way == Way::Tun {
        let mut files = Vec::new();
        for (namespace, address) in sides {
            let file = namespace.run(tun)??;
            namespace.run(|| set_up(address))??;
            files.push(file);
        }
        let [from, to] = <[File; 2]>::try_from(files).map_err(|_| Error::Failed("two devices".to_owned()))?;
        return Ok((hosts, Forwarder::Tun { from, to, bytes: vec![0; 65_536].into() }));
    }
    let mac = |n: u8| [2, 0xf5, 0, 0, 0, n];
    for (number, (namespace, address)) in (0_u8..).zip(sides) {
        let name = format!("fs-{number}");
        hosts._router.run(|| -> Result<(), Error> {
            let mut netlink = Netlink::open()?;
            netlink.add_veth((&name, mac(2 * number)), ("fs-0", mac(2 * number + 1)), namespace.fd(), MTU)?;
            ethtool::no_offloads(&name)?;
            netlink.up(index_of(&name)?, true)
        })??;
        namespace.run(|| set_up(address))??;
    }
    let macs = [mac(2), mac(3)];
    let forwarder = hosts._router.run(|| -> Result<Forwarder, Error> {
        let (from, to) = (index_of("fs-0")?, index_of("fs-1")?);
        let mode = match way {
            Way::Packet => {
                let ring = Box::new(Ring::open(from, MTU as usize + ETHERNET, FRAMES)?);
                return Ok(Forwarder::Packet { ring, exit: Exit::open(to)?, macs });
            }
            Way::XdpGeneric => Mode::Generic,
            _ => Mode::Driver,
        };
        let (from, to) = (XdpSocket::receiving(from, mode)?, XdpSocket::sending(to)?);
        Ok(Forwarder::Xdp { from: Box::new(from), to: Box::new(to), macs })
    })??;
    Ok((hosts, forwarder))
}

/// The one interface of a host: all is sent there.
fn set_up(address: Ipv4Addr) -> Result<(), Error> {
    let _ = std::fs::write("/proc/sys/net/ipv6/conf/fs-0/disable_ipv6", "1");
    let mut netlink = Netlink::open()?;
    let index = index_of("fs-0")?;
    ethtool::no_offloads("fs-0")?;
    netlink.up(index, true)?;
    netlink.add_address(index, address.into())?;
    netlink.add_default_route(index, address.into(), None)
}

/// A TUN device `fs-0` in the calling thread's namespace, for IP packets without further headers.
fn tun() -> Result<File, Error> {
    let wrong = |error: &dyn fmt::Display| Error::doing("make a TUN device", error);
    let mut open = OpenOptions::new();
    let file = open.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    let file = file.open("/dev/net/tun").map_err(|error| wrong(&error))?;
    // SAFETY: all-zero bytes are a valid ifreq (integers, arrays and a null pointer).
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"fs-0") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes the structure, which lives until after the call.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if result < 0 { Err(wrong(&std::io::Error::last_os_error())) } else { Ok(file) }
}
