//! What the kernel says of a connection (`TCP_INFO`).

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use flowstart_units::Span;

/// A threshold that has not been set yet (`TCP_INFINITE_SSTHRESH`).
const NO_THRESHOLD: u32 = 0x7fff_ffff;
/// Longest structure of any kernel known today, and some room.
const ROOM: usize = 512;

/// A part of `struct tcp_info` (linux/tcp.h). What an older kernel does not tell is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Packets sent and not acknowledged.
    pub unacked: u32,
    /// Smoothed round-trip time.
    pub rtt: Span,
    /// Smallest round-trip time.
    pub min_rtt: Span,
    /// Slow-start threshold in packets; `None` before the first.
    pub ssthresh: Option<u32>,
    /// Congestion window in packets.
    pub cwnd: u32,
    /// Packets sent again.
    pub total_retrans: u32,
    /// Pacing rate in bytes per second; `None` if the flow is not paced.
    pub pacing_rate: Option<u64>,
    /// Bytes acknowledged.
    pub bytes_acked: u64,
    /// Data packets sent, retransmissions included.
    pub data_segs_out: u32,
    /// Packets whose acknowledgement said that they arrived with CE.
    pub delivered_ce: u32,
    /// Retransmission timeouts (Linux 6.7 and later).
    pub timeouts: u32,
}

impl TcpInfo {
    /// Of this socket.
    ///
    /// # Errors
    /// If it is no TCP socket.
    pub fn of(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let mut bytes = [0_u8; ROOM];
        let mut length = ROOM as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into the buffer and says how many.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                bytes.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if result == 0 { Ok(Self::read(&bytes)) } else { Err(io::Error::last_os_error()) }
    }

    /// What `struct tcp_info` says that the kernel gave in another way.
    pub(crate) fn of_bytes(given: &[u8]) -> Self {
        let mut bytes = [0; ROOM];
        let length = given.len().min(ROOM);
        bytes[..length].copy_from_slice(&given[..length]);
        Self::read(&bytes)
    }

    /// Offsets are those of the structure, which only grows at its end.
    fn read(bytes: &[u8; ROOM]) -> Self {
        let small = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let large = |at: usize| bytes[at..].first_chunk().map_or(0, |chunk| u64::from_ne_bytes(*chunk));
        let micros = |n: u32| Span::from_micros(u64::from(n));
        let threshold = small(76);
        let pacing = large(104);
        Self {
            unacked: small(24),
            rtt: micros(small(68)),
            ssthresh: (threshold < NO_THRESHOLD).then_some(threshold),
            cwnd: small(80),
            total_retrans: small(100),
            pacing_rate: (pacing != u64::MAX && pacing != 0).then_some(pacing),
            bytes_acked: large(120),
            min_rtt: micros(small(148)),
            data_segs_out: small(156),
            delivered_ce: small(196),
            timeouts: u32::from(u16::from_ne_bytes([bytes[240], bytes[241]])),
        }
    }
}
