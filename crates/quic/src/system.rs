//! System calls: datagrams with their ECN field, exact sleeping, real-time priority.

#[cfg(target_os = "linux")]
pub(crate) use linux::{Awake, be_punctual, heed_own, prepare, receive, send, wait};
#[cfg(not(target_os = "linux"))]
pub(crate) use other::{Awake, be_punctual, heed_own, prepare, receive, send, wait};

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::stack::EcnCodepoint;

/// A datagram that was read from a socket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Datagram {
    /// Its bytes.
    pub(crate) length: usize,
    pub(crate) from: SocketAddr,
    /// Which address of this host it came to; `None` if the system does not say, which it only does
    /// where [`heed_own`] asked it to.
    pub(crate) to: Option<IpAddr>,
    pub(crate) ecn: Option<EcnCodepoint>,
    /// How long ago the system took it in; zero if it does not say.
    pub(crate) waited: Duration,
}

/// What Linux calls what else an ICMP message may say of a datagram that was sent, and memory that
/// is short for a moment: EPROTO, ENONET, EMSGSIZE, ENOPROTOOPT, EOPNOTSUPP, ENETDOWN, ENOBUFS,
/// EHOSTDOWN; and ENOBUFS elsewhere.
const PASSING: [i32; 9] = [71, 64, 90, 92, 95, 100, 105, 112, 55];

/// True for errors that mean no more than that a datagram is lost. Whoever knows two ports can send
/// ICMP messages that say so.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock
            | io::ErrorKind::Interrupted
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::PermissionDenied
    ) || error.raw_os_error().is_some_and(|code| PASSING.contains(&code))
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{File, OpenOptions};
    use std::io::{self, Write as _};
    use std::mem::{size_of, zeroed};
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
    use std::os::fd::AsRawFd as _;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use crate::stack::EcnCodepoint;

    use super::Datagram;

    /// Below the emulator's engines (40), above everything ordinary.
    const PRIORITY: i32 = 30;
    /// Whoever only receives comes before whoever watches the clock until the next departure.
    const PRIORITY_OF_RECEIVERS: i32 = 35;
    /// Bytes of control messages that come with a datagram.
    const CONTROL: usize = 128;
    /// A datagram that seems to have waited longer did not: the time of day was set meanwhile.
    const LONGEST_WAIT: Duration = Duration::from_secs(1);

    #[repr(align(8))]
    struct Control([u8; CONTROL]);

    fn set(socket: &UdpSocket, level: i32, option: i32, value: i32) {
        let length = size_of::<i32>() as libc::socklen_t;
        // SAFETY: the descriptor is open, and the value outlives the call. Options that the system
        // does not have are done without.
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length) };
    }

    /// Asks for buffers, ECN fields, times of arrival, and packets that are never fragmented.
    pub(crate) fn prepare(socket: &UdpSocket, buffer: usize) {
        let buffer = i32::try_from(buffer).unwrap_or(i32::MAX);
        set(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, buffer);
        // Beyond what the system allows everybody, if that is permitted.
        set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, buffer);
        set(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, buffer);
        if socket.local_addr().is_ok_and(|address| address.is_ipv6()) {
            set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1);
            set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE);
        }
        set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1);
        set(socket, libc::IPPROTO_IP, libc::IP_RECVTOS, 1);
        set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE);
    }

    /// Asks for the address of this host to which each datagram came.
    pub(crate) fn heed_own(socket: &UdpSocket) {
        if socket.local_addr().is_ok_and(|address| address.is_ipv6()) {
            set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1);
        } else {
            set(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1);
        }
    }

    /// Exact timers and real-time priority for the calling thread; true if it got the latter.
    pub(crate) fn be_punctual(receiver: bool) -> bool {
        let priority = if receiver { PRIORITY_OF_RECEIVERS } else { PRIORITY };
        // SAFETY: both calls take plain values and concern the calling thread only.
        unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0);
            let parameters = libc::sched_param { sched_priority: priority };
            libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) == 0
        }
    }

    /// Keeps the cores of the machine awake, if that is permitted: waking one for a timer or a
    /// datagram takes tens of microseconds (`/dev/cpu_dma_latency`, the kernel's
    /// Documentation/power/pm_qos_interface.rst). It counts as long as the file is open.
    #[derive(Debug)]
    pub(crate) struct Awake(#[expect(dead_code, reason = "it is there to be open")] Option<File>);

    impl Awake {
        pub(crate) fn keep() -> Self {
            let open = || {
                let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency")?;
                // Microseconds that waking may take.
                file.write_all(&0_i32.to_ne_bytes())?;
                io::Result::Ok(file)
            };
            Self(open().ok())
        }
    }

    fn address(storage: &libc::sockaddr_storage) -> io::Result<SocketAddr> {
        match i32::from(storage.ss_family) {
            libc::AF_INET => {
                // SAFETY: the family says which type the storage, which is large enough, holds.
                let v4 = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in>() };
                let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
                Ok(SocketAddr::new(IpAddr::V4(ip), u16::from_be(v4.sin_port)))
            }
            libc::AF_INET6 => {
                // SAFETY: as above.
                let v6 = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in6>() };
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                Ok(SocketAddrV6::new(ip, u16::from_be(v6.sin6_port), 0, v6.sin6_scope_id).into())
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// How long ago it was when the kernel's clock, the time of day, said this.
    fn ago(stamp: libc::timespec) -> Duration {
        let (Ok(seconds), Ok(nanos)) = (u64::try_from(stamp.tv_sec), u32::try_from(stamp.tv_nsec)) else {
            return Duration::ZERO;
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let waited = now.saturating_sub(Duration::new(seconds, nanos % 1_000_000_000));
        if waited > LONGEST_WAIT { Duration::ZERO } else { waited }
    }

    /// The next datagram.
    pub(crate) fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Datagram> {
        let mut control = Control([0; CONTROL]);
        // SAFETY: all-zero is a valid value of these plain structures.
        let (mut from, mut message): (libc::sockaddr_storage, libc::msghdr) = unsafe { (zeroed(), zeroed()) };
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        message.msg_name = (&raw mut from).cast();
        message.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = CONTROL as _;
        // SAFETY: the message points to buffers that outlive the call, with their lengths.
        let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
        if length < 0 {
            return Err(io::Error::last_os_error());
        }
        let (mut ecn, mut waited, mut to) = (None, Duration::ZERO, None);
        // SAFETY: the kernel filled the control buffer, and the macros stay within its length.
        unsafe {
            let mut next = libc::CMSG_FIRSTHDR(&raw const message);
            while !next.is_null() {
                match ((*next).cmsg_level, (*next).cmsg_type) {
                    (libc::IPPROTO_IP, libc::IP_TOS) => ecn = EcnCodepoint::from_bits(*libc::CMSG_DATA(next)),
                    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                        let class: libc::c_int = std::ptr::read_unaligned(libc::CMSG_DATA(next).cast());
                        ecn = EcnCodepoint::from_bits(class as u8);
                    }
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                        waited = ago(std::ptr::read_unaligned(libc::CMSG_DATA(next).cast()));
                    }
                    (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                        let info: libc::in_pktinfo = std::ptr::read_unaligned(libc::CMSG_DATA(next).cast());
                        to = Some(IpAddr::V4(u32::from_be(info.ipi_spec_dst.s_addr).into()));
                    }
                    (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                        let info: libc::in6_pktinfo = std::ptr::read_unaligned(libc::CMSG_DATA(next).cast());
                        to = Some(IpAddr::V6(info.ipi6_addr.s6_addr.into()));
                    }
                    _ => {}
                }
                next = libc::CMSG_NXTHDR(&raw const message, next);
            }
        }
        Ok(Datagram { length: length as usize, from: address(&from)?, to, ecn, waited })
    }

    /// Control messages of a datagram that is sent, one after the other.
    struct Messages {
        control: Control,
        length: usize,
    }

    impl Messages {
        fn add<T: Copy>(&mut self, level: i32, kind: i32, value: T) {
            // SAFETY: CMSG_SPACE and CMSG_LEN only compute. The buffer is aligned for headers, each
            // takes a multiple of that, and what follows the header is within the buffer, as the
            // assertion says.
            unsafe {
                let space = libc::CMSG_SPACE(size_of::<T>() as u32) as usize;
                assert!(self.length + space <= CONTROL, "control messages are short and few");
                let header = self.control.0.as_mut_ptr().add(self.length).cast::<libc::cmsghdr>();
                (*header).cmsg_level = level;
                (*header).cmsg_type = kind;
                (*header).cmsg_len = libc::CMSG_LEN(size_of::<T>() as u32) as _;
                std::ptr::write_unaligned(libc::CMSG_DATA(header).cast(), value);
                self.length += space;
            }
        }

        /// The datagram is to leave from this address, which is of the socket's family.
        fn leave_from(&mut self, own: IpAddr) {
            match own {
                IpAddr::V4(own) => {
                    // SAFETY: all-zero is a valid value: any interface.
                    let mut info: libc::in_pktinfo = unsafe { zeroed() };
                    info.ipi_spec_dst.s_addr = u32::from(own).to_be();
                    self.add(libc::IPPROTO_IP, libc::IP_PKTINFO, info);
                }
                IpAddr::V6(own) => {
                    // SAFETY: as above.
                    let mut info: libc::in6_pktinfo = unsafe { zeroed() };
                    info.ipi6_addr.s6_addr = own.octets();
                    self.add(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
                }
            }
        }
    }

    /// Sends a datagram with an ECN field, from this address of the host if one is said.
    pub(crate) fn send(
        socket: &UdpSocket,
        own: Option<IpAddr>,
        to: SocketAddr,
        ecn: Option<EcnCodepoint>,
        data: &[u8],
    ) -> io::Result<()> {
        // SAFETY: all-zero is a valid value of these plain structures.
        let (mut storage, mut message): (libc::sockaddr_storage, libc::msghdr) = unsafe { (zeroed(), zeroed()) };
        let (level, option, length) = match to {
            SocketAddr::V4(v4) => {
                // SAFETY: the storage is large enough and aligned for every kind of address.
                let address = unsafe { &mut *(&raw mut storage).cast::<libc::sockaddr_in>() };
                address.sin_family = libc::AF_INET as libc::sa_family_t;
                address.sin_port = v4.port().to_be();
                address.sin_addr.s_addr = u32::from(*v4.ip()).to_be();
                (libc::IPPROTO_IP, libc::IP_TOS, size_of::<libc::sockaddr_in>())
            }
            SocketAddr::V6(v6) => {
                // SAFETY: as above.
                let address = unsafe { &mut *(&raw mut storage).cast::<libc::sockaddr_in6>() };
                address.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                address.sin6_port = v6.port().to_be();
                address.sin6_addr.s6_addr = v6.ip().octets();
                address.sin6_scope_id = v6.scope_id();
                // What leaves over IPv4 has the ECN field of that.
                let (level, option) = match v6.ip().to_ipv4_mapped() {
                    Some(_) => (libc::IPPROTO_IP, libc::IP_TOS),
                    None => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
                };
                (level, option, size_of::<libc::sockaddr_in6>())
            }
        };
        let mut messages = Messages { control: Control([0; CONTROL]), length: 0 };
        messages.add(level, option, ecn.map_or(0, |ecn| ecn as libc::c_int));
        if let Some(own) = own {
            messages.leave_from(own);
        }
        let mut part = libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: data.len() };
        message.msg_name = (&raw mut storage).cast();
        message.msg_namelen = length as libc::socklen_t;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = messages.control.0.as_mut_ptr().cast();
        message.msg_controllen = messages.length as _;
        // SAFETY: the message points to buffers that outlive the call; the data is only read.
        let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Sleeps until a datagram is there or the time is over; true if one is.
    pub(crate) fn wait(sockets: &[UdpSocket], time: Duration) -> bool {
        let mut polled: Vec<libc::pollfd> = sockets
            .iter()
            .map(|socket| libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 })
            .collect();
        let time = libc::timespec {
            tv_sec: time.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(time.subsec_nanos() as i32),
        };
        // SAFETY: the array has the length given, and both outlive the call.
        let ready = unsafe {
            libc::ppoll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, &raw const time, std::ptr::null())
        };
        ready > 0
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::io;
    use std::net::{IpAddr, SocketAddr, UdpSocket};
    use std::time::Duration;

    use crate::stack::EcnCodepoint;

    use super::Datagram;

    #[derive(Debug)]
    pub(crate) struct Awake;

    impl Awake {
        pub(crate) fn keep() -> Self {
            Self
        }
    }

    pub(crate) fn prepare(_socket: &UdpSocket, _buffer: usize) {}

    pub(crate) fn heed_own(_socket: &UdpSocket) {}

    pub(crate) fn be_punctual(_receiver: bool) -> bool {
        false
    }

    pub(crate) fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Datagram> {
        let (length, from) = socket.recv_from(buffer)?;
        Ok(Datagram { length, from, to: None, ecn: None, waited: Duration::ZERO })
    }

    pub(crate) fn send(
        socket: &UdpSocket,
        _own: Option<IpAddr>,
        to: SocketAddr,
        _ecn: Option<EcnCodepoint>,
        data: &[u8],
    ) -> io::Result<()> {
        socket.send_to(data, to).map(|_| ())
    }

    pub(crate) fn wait(_sockets: &[UdpSocket], time: Duration) -> bool {
        std::thread::sleep(time.min(Duration::from_micros(200)));
        true
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// `icmp_err_convert` of the kernel (net/ipv4/icmp.c), and that of a parameter problem.
    #[test]
    fn no_icmp_message_ends_anything() {
        let all = [
            libc::ENETUNREACH,
            libc::EHOSTUNREACH,
            libc::ENOPROTOOPT,
            libc::EMSGSIZE,
            libc::EOPNOTSUPP,
            libc::EHOSTDOWN,
            libc::ENONET,
            libc::EPROTO,
            libc::EACCES,
        ];
        for code in all {
            assert!(is_passing(&io::Error::from_raw_os_error(code)), "{code}");
        }
        // Another way of hearing of it.
        let refused = io::Error::from_raw_os_error(libc::ECONNREFUSED);
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        assert!(!is_passing(&io::Error::from_raw_os_error(libc::EBADF)));
    }
}
