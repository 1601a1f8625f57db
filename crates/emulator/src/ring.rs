//! Packets in and out of an interface: AF_PACKET, received through a ring shared with the kernel
//! (TPACKET_V2).
//!
//! Why this way: the kernel stamps every packet of the ring when it is handed over, so the queue
//! knows when a packet arrived even if the engine was late to look; a TUN device has no such stamp,
//! and AF_XDP needs a program that makes one (the example `packet_io` measures all three). V2 shows
//! every packet at once; V3 hands over blocks, at the earliest after a millisecond.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Error;

/// Status word of a frame: whose it is.
const KERNEL: u32 = 0;
const USER: u32 = 1;
/// Bytes of the kernel's header before a frame, generously: `TPACKET2_HDRLEN` and alignment.
const HEADER_ROOM: usize = 128;
/// Frames per ring: 50 ms of 1500-byte packets at 500 Mbit/s; an engine is not away that long.
pub(crate) const FRAMES: usize = 2048;
/// Frames per ring where there are many.
pub(crate) const FEWER_FRAMES: usize = 256;
/// PACKET_IGNORE_OUTGOING of linux/if_packet.h: not to be shown what is sent through the interface.
const IGNORE_OUTGOING: libc::c_int = 23;

fn option<T>(fd: &OwnedFd, name: libc::c_int, value: &T) -> io::Result<()> {
    option_of(fd, libc::SOL_PACKET, name, value)
}

fn option_of<T>(fd: &OwnedFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of `value`, a plain C structure or integer in every
    // call here.
    let result = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A packet socket on an interface of the calling thread's namespace; `protocol` 0 receives
/// nothing.
fn bound(index: u32, protocol: u16, prepare: impl FnOnce(&OwnedFd) -> io::Result<()>) -> io::Result<OwnedFd> {
    // SAFETY: a plain system call; on success the descriptor is new and owned by nobody else.
    let fd = unsafe {
        let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    prepare(&fd)?;
    // SAFETY: all-zero bytes are a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index as i32;
    // SAFETY: the kernel reads the whole structure, which lives until after the call.
    let result = unsafe {
        libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as libc::socklen_t)
    };
    if result == 0 { Ok(fd) } else { Err(io::Error::last_os_error()) }
}

/// The receiving side of an interface.
#[derive(Debug)]
pub(crate) struct Ring {
    fd: OwnedFd,
    memory: *mut u8,
    length: usize,
    frame: usize,
    frames: usize,
    next: usize,
}

// SAFETY: the memory belongs to this value alone (and the kernel, with which the status words
// arbitrate); nothing is bound to a thread.
unsafe impl Send for Ring {}

/// A frame in the ring.
pub(crate) struct Received<'a> {
    /// What is there of it.
    pub(crate) bytes: &'a [u8],
    /// How long it was on the interface; longer than `bytes` if it did not fit.
    pub(crate) length: usize,
    /// The kernel's stamp: nanoseconds of the wall clock.
    pub(crate) stamp: u64,
}

impl Ring {
    /// Receives what comes in through interface `index` of the calling thread's namespace, frames
    /// up to `longest` bytes. `frames`, how many the ring has, is a power of two, at least 256.
    pub(crate) fn open(index: u32, longest: usize, frames: usize) -> Result<Self, Error> {
        let frame = (longest + HEADER_ROOM).next_power_of_two();
        let length = frame * frames;
        // A block must be a multiple of a page; frames never straddle blocks.
        let block = frame.max(1 << 16);
        let refused = |error: io::Error| match error.raw_os_error() {
            Some(libc::EPERM | libc::EAFNOSUPPORT) => {
                Error::NotPossible(format!("packet sockets are not possible here ({error}): they need CAP_NET_RAW"))
            }
            _ => Error::doing("open a packet ring", error),
        };
        let fd = bound(index, libc::ETH_P_ALL as u16, |fd| {
            option(fd, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as libc::c_int))?;
            option(fd, IGNORE_OUTGOING, &1_i32)?;
            // Without a socket that asks for it the kernel stamps a packet only when it puts it
            // into the ring, which may be later than the hand-over if the processor is busy.
            option_of(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1_i32)?;
            let request = libc::tpacket_req {
                tp_block_size: block as u32,
                tp_block_nr: (length / block) as u32,
                tp_frame_size: frame as u32,
                tp_frame_nr: frames as u32,
            };
            option(fd, libc::PACKET_RX_RING, &request)
        })
        .map_err(refused)?;
        // Nothing can fail between this and the value that unmaps it. SAFETY: maps the ring that
        // was just set up, of exactly this length, at an address the kernel chooses.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(refused(io::Error::last_os_error()));
        }
        Ok(Self { fd, memory: memory.cast(), length, frame, frames, next: 0 })
    }

    /// For waiting until a frame is there.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Hands the next frame to `take`, if there is one, and gives its place back to the kernel.
    #[inline]
    pub(crate) fn receive<T>(&mut self, take: impl FnOnce(Received<'_>) -> T) -> Option<T> {
        let place = self.next * self.frame;
        // SAFETY: `place` is the beginning of a frame within the mapping, aligned to its size; the
        // status word stands first in `tpacket2_hdr` and is shared with the kernel, hence atomic.
        let status = unsafe { AtomicU32::from_ptr(self.memory.add(place).cast()) };
        if status.load(Ordering::Acquire) & USER == 0 {
            return None;
        }
        // SAFETY: the status word said that the frame is ours until we write it; the kernel has
        // filled in the header.
        let header = unsafe { self.memory.add(place).cast::<libc::tpacket2_hdr>().read() };
        let start = usize::from(header.tp_mac).min(self.frame);
        let length = (header.tp_snaplen as usize).min(self.frame - start);
        // SAFETY: `start + length` is at most one frame, which lies within the mapping and is ours
        // until the status is written below; `take` cannot keep the slice.
        let bytes = unsafe { std::slice::from_raw_parts(self.memory.add(place + start), length) };
        let stamp = u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec);
        let taken = take(Received { bytes, length: header.tp_len as usize, stamp });
        status.store(KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.frames;
        Some(taken)
    }

    /// Frames that found the ring full since the last question.
    pub(crate) fn dropped(&self) -> u64 {
        let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into the structure.
        let result = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut length,
            )
        };
        if result == 0 { u64::from(statistics.tp_drops) } else { 0 }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `open` mapped; no slice into it can be alive, for `receive`
        // lends none out.
        unsafe {
            libc::munmap(self.memory.cast(), self.length);
        }
    }
}

/// The sending side of an interface.
#[derive(Debug)]
pub(crate) struct Exit {
    fd: OwnedFd,
}

impl Exit {
    /// Sends through interface `index` of the calling thread's namespace, past its queueing
    /// discipline.
    pub(crate) fn open(index: u32) -> Result<Self, Error> {
        let fd = bound(index, 0, |fd| option(fd, libc::PACKET_QDISC_BYPASS, &1_i32))
            .map_err(|error| Error::doing("open a packet socket", error))?;
        Ok(Self { fd })
    }

    /// Sends a frame. False if the kernel did not take it.
    #[inline]
    pub(crate) fn send(&self, frame: &[u8]) -> bool {
        // SAFETY: the kernel reads `frame.len()` bytes.
        let sent = unsafe { libc::send(self.fd.as_raw_fd(), frame.as_ptr().cast(), frame.len(), libc::MSG_DONTWAIT) };
        sent == frame.len() as isize
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// Rings of packet sockets of so many bytes that this process has mapped.
    fn mapped(length: usize) -> usize {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let rings = maps.lines().filter(|line| line.contains("socket:"));
        let bytes = rings.filter_map(|line| {
            let (from, to) = line.split_whitespace().next()?.split_once('-')?;
            Some(usize::from_str_radix(to, 16).ok()? - usize::from_str_radix(from, 16).ok()?)
        });
        bytes.filter(|bytes| *bytes == length).count()
    }

    #[test]
    fn a_ring_at_an_interface_that_is_not_there_leaves_no_memory_mapped() {
        // Frames of 256 bytes, which no world of other tests has.
        let length = 256 * FEWER_FRAMES;
        for _ in 0..3 {
            match Ring::open(i32::MAX as u32, 100, FEWER_FRAMES) {
                Err(Error::NotPossible(why)) => {
                    let _ = writeln!(std::io::stderr(), "skipped: {why}");
                    return;
                }
                other => assert!(matches!(other, Err(Error::Failed(_))), "{other:?}"),
            }
        }
        assert_eq!(mapped(length), 0);
        // The interface of the machine itself: what is mapped is seen, until it is let go.
        let ring = Ring::open(1, 100, FEWER_FRAMES).unwrap();
        assert_eq!(mapped(length), 1);
        drop(ring);
        assert_eq!(mapped(length), 0);
    }
}
