//! A small AF_XDP socket: one queue, copy mode, memory of its own. What is needed to measure, no
//! more.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Error;

/// Entries of each ring, a power of two; half of the memory's chunks are for receiving, half for
/// sending.
const ENTRIES: u32 = 2048;
/// Bytes per chunk.
const CHUNK: u64 = 2048;
/// Bytes that the program puts before a frame: the time.
const STAMP: u64 = 8;

/// Where the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Driver,
    Generic,
}

fn failed(what: &str) -> Error {
    Error::doing(what, io::Error::last_os_error())
}

/// Memory shared with the kernel.
struct Mapping {
    start: *mut u8,
    length: usize,
}

impl Mapping {
    /// Maps `length` bytes of `fd` from `offset` on, or fresh memory.
    fn new(fd: Option<(&OwnedFd, i64)>, length: usize) -> Result<Self, Error> {
        let (fd, offset, flags) = fd.map_or((-1, 0, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS), |(fd, offset)| {
            (fd.as_raw_fd(), offset, libc::MAP_SHARED)
        });
        // SAFETY: a new mapping at an address the kernel chooses; nothing else is touched.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                flags | libc::MAP_POPULATE,
                fd,
                offset,
            )
        };
        if start == libc::MAP_FAILED { Err(failed("map memory")) } else { Ok(Self { start: start.cast(), length }) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `new` mapped; nobody keeps a reference into it.
        unsafe {
            libc::munmap(self.start.cast(), self.length);
        }
    }
}

/// One of the four rings: entries of type `T` between a producer's and a consumer's counter.
struct Ring<T> {
    memory: Mapping,
    producer: usize,
    consumer: usize,
    entries: usize,
    of: std::marker::PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    fn new(fd: &OwnedFd, option: libc::c_int, page: i64, at: &libc::xdp_ring_offset) -> Result<Self, Error> {
        set(fd, option, &ENTRIES)?;
        let length = at.desc as usize + ENTRIES as usize * size_of::<T>();
        let memory = Mapping::new(Some((fd, page)), length)?;
        let (producer, consumer) = (at.producer as usize, at.consumer as usize);
        Ok(Self { memory, producer, consumer, entries: at.desc as usize, of: std::marker::PhantomData })
    }

    fn counter(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: the kernel said that an aligned 32-bit counter is here, within the mapping; both
        // sides change it atomically.
        unsafe { AtomicU32::from_ptr(self.memory.start.add(offset).cast()) }
    }

    fn place(&self, number: u32) -> *mut T {
        // SAFETY: the index is below the number of entries, which the mapping has room for.
        unsafe { self.memory.start.add(self.entries).cast::<T>().add((number % ENTRIES) as usize) }
    }

    /// Adds an entry; false if there is no room.
    fn push(&self, entry: T) -> bool {
        let producer = self.counter(self.producer).load(Ordering::Relaxed);
        if producer.wrapping_sub(self.counter(self.consumer).load(Ordering::Acquire)) == ENTRIES {
            return false;
        }
        // SAFETY: this entry is ours until the counter says otherwise.
        unsafe { self.place(producer).write(entry) };
        self.counter(self.producer).store(producer.wrapping_add(1), Ordering::Release);
        true
    }

    /// Takes an entry, if there is one.
    fn pop(&self) -> Option<T> {
        let consumer = self.counter(self.consumer).load(Ordering::Relaxed);
        if consumer == self.counter(self.producer).load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: the producer's counter says that this entry has been written.
        let entry = unsafe { self.place(consumer).read() };
        self.counter(self.consumer).store(consumer.wrapping_add(1), Ordering::Release);
        Some(entry)
    }
}

fn set<T>(fd: &OwnedFd, option: libc::c_int, value: &T) -> Result<(), Error> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of `value`, a plain C structure or integer in every
    // call here.
    let result =
        unsafe { libc::setsockopt(fd.as_raw_fd(), libc::SOL_XDP, option, std::ptr::from_ref(value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(failed("prepare an AF_XDP socket")) }
}

/// The socket.
pub(crate) struct XdpSocket {
    fd: OwnedFd,
    chunks: Mapping,
    fill: Ring<u64>,
    completed: Ring<u64>,
    received: Ring<libc::xdp_desc>,
    sent: Ring<libc::xdp_desc>,
    free: Vec<u64>,
    /// Program and map, while it receives.
    _attached: Option<[OwnedFd; 3]>,
}

// SAFETY: all memory belongs to this value alone (and the kernel, with which the counters
// arbitrate); nothing is bound to a thread.
unsafe impl Send for XdpSocket {}

impl XdpSocket {
    /// Receives what comes in through an interface of the calling thread's namespace.
    pub(crate) fn receiving(index: u32, mode: Mode) -> Result<Self, Error> {
        let mut socket = Self::sending(index)?;
        for chunk in 0..u64::from(ENTRIES) {
            socket.fill.push(chunk * CHUNK);
        }
        socket._attached = Some(attach(index, mode, &socket.fd)?);
        Ok(socket)
    }

    /// Sends through an interface of the calling thread's namespace.
    pub(crate) fn sending(index: u32) -> Result<Self, Error> {
        // SAFETY: a plain system call; on success the descriptor is new and owned by nobody else.
        let fd = unsafe {
            let fd = libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
            if fd < 0 {
                return Err(failed("open an AF_XDP socket"));
            }
            OwnedFd::from_raw_fd(fd)
        };
        let length = 2 * u64::from(ENTRIES) * CHUNK;
        let chunks = Mapping::new(None, length as usize)?;
        // SAFETY: all-zero bytes are a valid xdp_umem_reg (integers).
        let mut memory: libc::xdp_umem_reg = unsafe { std::mem::zeroed() };
        (memory.addr, memory.len, memory.chunk_size) = (chunks.start as u64, length, CHUNK as u32);
        set(&fd, libc::XDP_UMEM_REG, &memory)?;
        // SAFETY: all-zero bytes are a valid xdp_mmap_offsets (integers).
        let mut at: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
        let mut size = size_of::<libc::xdp_mmap_offsets>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `size` bytes into the structure.
        let result = unsafe {
            let place = (&raw mut at).cast();
            libc::getsockopt(fd.as_raw_fd(), libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, place, &raw mut size)
        };
        if result != 0 {
            return Err(failed("ask for the rings of an AF_XDP socket"));
        }
        let fill = Ring::new(&fd, libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_PGOFF_FILL_RING as i64, &at.fr)?;
        let completed =
            Ring::new(&fd, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64, &at.cr)?;
        let received = Ring::new(&fd, libc::XDP_RX_RING, libc::XDP_PGOFF_RX_RING, &at.rx)?;
        let sent = Ring::new(&fd, libc::XDP_TX_RING, libc::XDP_PGOFF_TX_RING, &at.tx)?;
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: libc::XDP_COPY,
            sxdp_ifindex: index,
            sxdp_queue_id: 0,
            sxdp_shared_umem_fd: 0,
        };
        // SAFETY: the kernel reads the whole structure, which lives until after the call.
        let result = unsafe {
            let length = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
            libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length)
        };
        if result != 0 {
            return Err(failed("bind an AF_XDP socket"));
        }
        let free = (u64::from(ENTRIES)..2 * u64::from(ENTRIES)).map(|chunk| chunk * CHUNK).collect();
        Ok(Self { fd, chunks, fill, completed, received, sent, free, _attached: None })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Copies the next frame out. Its length, and when the program saw it on the monotonic clock.
    pub(crate) fn receive(&mut self, frame: &mut [u8; 2048]) -> Option<(usize, u64)> {
        let entry = self.received.pop()?;
        let length = (entry.len as usize).min(frame.len());
        // SAFETY: the kernel says where in our memory the frame is; before it is headroom, of which
        // the program has used 8 bytes.
        let stamp = unsafe {
            let start = self.chunks.start.add(entry.addr as usize);
            std::ptr::copy_nonoverlapping(start, frame.as_mut_ptr(), length);
            start.sub(STAMP as usize).cast::<u64>().read_unaligned()
        };
        self.fill.push(entry.addr / CHUNK * CHUNK);
        Some((length, stamp))
    }

    /// Puts a frame into the ring; [`XdpSocket::kick`] sends what is there. Nothing if there is no
    /// room.
    pub(crate) fn send(&mut self, frame: &[u8]) {
        while let Some(chunk) = self.completed.pop() {
            self.free.push(chunk);
        }
        if let Some(chunk) = self.free.pop() {
            // SAFETY: the chunk is ours until it is in the ring, and frames are shorter than
            // chunks.
            unsafe {
                let start = self.chunks.start.add(chunk as usize);
                std::ptr::copy_nonoverlapping(frame.as_ptr(), start, frame.len().min(CHUNK as usize));
            }
            self.sent.push(libc::xdp_desc { addr: chunk, len: frame.len() as u32, options: 0 });
        }
    }

    /// Lets the kernel send what is in the ring.
    pub(crate) fn kick(&self) {
        // Copy mode sends a few frames (32) per call, and says that there are more.
        for _ in 0..4 {
            // SAFETY: sends nothing of ours but what the ring has.
            let result = unsafe {
                libc::sendto(self.fd.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0)
            };
            if result >= 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EAGAIN) {
                return;
            }
        }
    }
}

/// One instruction of the kernel's virtual machine.
const fn instruction(code: u8, to: u8, from: u8, offset: i16, value: i32) -> [u8; 8] {
    let (offset, value) = (offset.to_ne_bytes(), value.to_ne_bytes());
    [code, to | from << 4, offset[0], offset[1], value[0], value[1], value[2], value[3]]
}

/// A command of `bpf(2)`; the descriptor it returns, if it does.
fn bpf(command: libc::c_int, attributes: &[u8], what: &str) -> Result<Option<OwnedFd>, Error> {
    // SAFETY: the kernel reads `attributes`, and what the addresses in it point to, which callers
    // keep alive.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), attributes.len()) };
    match result {
        ..0 => Err(failed(what)),
        0 => Ok(None),
        // SAFETY: the descriptor is new and owned by nobody else.
        fd => Ok(Some(unsafe { OwnedFd::from_raw_fd(fd as i32) })),
    }
}

/// Gives every frame that comes in through the interface to the socket, with the time
/// (CLOCK_MONOTONIC) before it.
fn attach(index: u32, mode: Mode, socket: &OwnedFd) -> Result<[OwnedFd; 3], Error> {
    // Commands, types and flags of linux/bpf.h and linux/if_link.h.
    const MAP_CREATE: i32 = 0;
    const MAP_UPDATE: i32 = 2;
    const PROGRAM_LOAD: i32 = 5;
    const LINK_CREATE: i32 = 28;
    const XSKMAP: u32 = 17;
    const PROGRAM_XDP: u32 = 6;
    const ATTACH_XDP: u32 = 37;
    let nothing = || Error::Failed("the kernel gave no descriptor".to_owned());
    let words = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_ne_bytes()).collect() };
    let map = bpf(MAP_CREATE, &words(&[XSKMAP, 4, 4, 1, 0]), "make a map")?.ok_or_else(nothing)?;
    let (key, value) = (0_u32, socket.as_raw_fd());
    let mut update = words(&[map.as_raw_fd() as u32, 0]);
    for address in [&raw const key as u64, &raw const value as u64, 0] {
        update.extend(address.to_ne_bytes());
    }
    bpf(MAP_UPDATE, &update, "put a socket into a map")?;
    let program = [
        instruction(0xbf, 6, 1, 0, 0),               // r6 = context
        instruction(0xb7, 2, 0, 0, -(STAMP as i32)), // r2 = -8
        instruction(0x85, 0, 0, 0, 54),              // bpf_xdp_adjust_meta
        instruction(0x55, 0, 0, 12, 0),              // if r0 != 0 goto the end: the frame goes its usual way
        instruction(0x85, 0, 0, 0, 5),               // bpf_ktime_get_ns
        instruction(0x61, 1, 6, 8, 0),               // r1 = data_meta
        instruction(0x61, 2, 6, 0, 0),               // r2 = data
        instruction(0xbf, 3, 1, 0, 0),               // r3 = r1
        instruction(0x07, 3, 0, 0, STAMP as i32),    // r3 += 8
        instruction(0x2d, 3, 2, 6, 0),               // if r3 > r2 goto the end
        instruction(0x7b, 1, 0, 0, 0),               // *r1 = r0
        instruction(0x61, 2, 6, 16, 0),              // r2 = rx_queue_index
        instruction(0x18, 1, 1, 0, map.as_raw_fd()), // r1 = map, in two
        [0; 8],
        instruction(0xb7, 3, 0, 0, 2),  // r3 = XDP_PASS
        instruction(0x05, 0, 0, 2, 0),  // goto the redirect
        instruction(0xb7, 0, 0, 0, 2),  // the end: r0 = XDP_PASS
        instruction(0x95, 0, 0, 0, 0),  // exit
        instruction(0x85, 0, 0, 0, 51), // bpf_redirect_map
        instruction(0x95, 0, 0, 0, 0),  // exit
    ];
    let licence = c"Dual MIT/GPL";
    let mut load = words(&[PROGRAM_XDP, program.len() as u32]);
    for address in [program.as_ptr() as u64, licence.as_ptr() as u64] {
        load.extend(address.to_ne_bytes());
    }
    // No log; the rest is zero too.
    load.resize(72, 0);
    let program = bpf(PROGRAM_LOAD, &load, "load an XDP program")?.ok_or_else(nothing)?;
    let flags = if mode == Mode::Generic { 1 << 1 } else { 1 << 2 };
    let link = words(&[program.as_raw_fd() as u32, index, ATTACH_XDP, flags]);
    let link = bpf(LINK_CREATE, &link, "attach an XDP program")?.ok_or_else(nothing)?;
    Ok([map, program, link])
}
