//! Switching offloads off. An interface that leaves segmentation or checksums to hardware hands
//! over packets that no wire would carry: longer than the MTU, with checksums unfinished.

use std::os::fd::AsRawFd as _;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::Error;

/// `struct ethtool_value` of linux/ethtool.h.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Commands of linux/ethtool.h that set one offload, in an order that the kernel accepts: what
/// builds on checksums first.
const OFFLOADS: [(&str, u32); 5] = [
    ("generic receive offload", 0x0000_002c),
    ("TCP segmentation offload", 0x0000_001f),
    ("generic segmentation offload", 0x0000_0024),
    ("transmit checksums", 0x0000_0017),
    ("receive checksums", 0x0000_0015),
];

/// Switches all offloads of an interface in the calling thread's namespace off.
pub(crate) fn no_offloads(interface: &str) -> Result<(), Error> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
        .map_err(|error| Error::doing("open a socket", error))?;
    for (name, command) in OFFLOADS {
        let mut value = EthtoolValue { command, data: 0 };
        // SAFETY: all-zero bytes are a valid ifreq (integers, arrays and a null pointer).
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // The name always fits: the last byte stays 0.
        for (to, from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(interface.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        // SAFETY: SIOCETHTOOL reads the name and reads and writes the structure behind ifru_data;
        // both live until after the call.
        let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as libc::Ioctl, &raw mut request) };
        if result < 0 {
            let error = nix::errno::Errno::last();
            // What an interface does not know it does not do either; what is fixed and on shows as
            // packets above the MTU.
            if error != nix::errno::Errno::EOPNOTSUPP {
                return Err(Error::doing(format_args!("switch off {name} of {interface}"), error));
            }
        }
    }
    Ok(())
}
