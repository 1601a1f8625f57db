//! Sends, forwards, receives, and counts what it takes.

use std::fmt;
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use nix::time::{ClockId, clock_gettime};

use crate::Error;
use crate::ways::{ADDRESSES, Way, make};

/// The discard service's.
const PORT: u16 = 9;
/// Bytes of a datagram's payload: 1500 with the headers of IPv4 and UDP.
const PAYLOAD: usize = 1472;
/// Headers of IPv4 and UDP.
const HEADERS: usize = 28;
/// Packets under way where no distance is asked for: below the shortest queue of all ways (500,
/// TUN's).
const WINDOW: u64 = 256;

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) packets: u64,
    /// Distance in nanoseconds; `None` for as fast as they are taken.
    pub(crate) gap: Option<u64>,
}

impl Load {
    pub(crate) fn gap_text(&self) -> String {
        self.gap.map_or("none".to_owned(), |gap| format!("{} us", gap / 1000))
    }
}

/// What came of it: packets per second; packets lost; instructions and nanoseconds of processor
/// time per packet, of the forwarder and of all threads; nanoseconds until the arrival is known
/// (median, 99 %, 99.9 %), and until the packet is there (median, 99 %). Not a number is what this
/// machine does not count.
pub(crate) struct Measured([f64; 11]);

impl Measured {
    /// The median of each number.
    pub(crate) fn median(several: &[Self]) -> Self {
        Self(std::array::from_fn(|field| {
            let mut values: Vec<f64> = several.iter().map(|one| one.0[field]).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
        }))
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [rate, lost, times @ ..] = self.0;
        let [one, one_time, all, all_time, known @ .., there, late] = times.map(|n| n / 1e3);
        write!(f, "{rate:.0} | {lost:.0} | {one:.1} k, {one_time:.1} us | {all:.1} k, {all_time:.1} us | ")?;
        write!(f, "{:.1}, {:.1}, {:.1} us | {there:.1}, {late:.1} us", known[0], known[1], known[2])
    }
}

/// The value below which this share of ascending values lies.
fn quantile(sorted: &[u64], share: f64) -> f64 {
    let place = (sorted.len() as f64 * share) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).map_or(f64::NAN, |nanos| *nanos as f64)
}

fn nanos(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |now| Duration::from(now).as_nanos() as u64)
}

/// The monotonic clock.
pub(crate) fn monotonic() -> u64 {
    nanos(ClockId::CLOCK_MONOTONIC)
}

/// By how much the wall clock, of which the kernel's stamps are, is ahead of the monotonic one.
pub(crate) fn wall_offset() -> u64 {
    let monotonic = monotonic();
    nanos(ClockId::CLOCK_REALTIME).wrapping_sub(monotonic)
}

/// Counts instructions of this thread, or of this process and all threads it starts from now on.
fn counter(threads_too: bool) -> Option<OwnedFd> {
    /// `PERF_ATTR_SIZE_VER0` of linux/perf_event.h.
    const SIZE: usize = 64;
    /// Bit `inherit` of `struct perf_event_attr`.
    const INHERIT: u64 = 1 << 1;
    let mut attributes = [0_u8; SIZE];
    // type PERF_TYPE_HARDWARE = 0, size, config PERF_COUNT_HW_INSTRUCTIONS = 1, flags.
    attributes[4..8].copy_from_slice(&(SIZE as u32).to_ne_bytes());
    attributes[8..16].copy_from_slice(&1_u64.to_ne_bytes());
    attributes[40..48].copy_from_slice(&(if threads_too { INHERIT } else { 0 }).to_ne_bytes());
    // SAFETY: the kernel reads `SIZE` bytes, as they say; on success the descriptor is new and
    // owned by nobody else.
    unsafe {
        let fd = libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), 0, -1, -1, 0);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd as i32))
    }
}

fn count(counter: Option<&OwnedFd>) -> Option<u64> {
    let mut bytes = [0; 8];
    let read = nix::unistd::read(counter?, &mut bytes).ok()?;
    (read == bytes.len()).then(|| u64::from_ne_bytes(bytes))
}

fn prompt(priority: i32) {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: plain system calls on the calling thread with a valid structure; failure leaves
    // everything as it was.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0_u64, 0_u64, 0_u64);
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters);
    }
}

/// What sender, forwarder and receiver know of each other.
#[derive(Default)]
struct Shared {
    forwarded: AtomicU64,
    over: AtomicBool,
}

/// Measures one way.
pub(crate) fn measure(way: Way, load: Load) -> Result<Measured, Error> {
    let instructions = counter(true);
    let processor = nanos(ClockId::CLOCK_PROCESS_CPUTIME_ID);
    let (hosts, mut forwarder) = make(way)?;
    let socket = |address| move || UdpSocket::bind((address, PORT));
    let bound = |result: std::io::Result<UdpSocket>| result.map_err(|error| Error::doing("open a socket", error));
    let sending = bound(hosts.sender.run(socket(ADDRESSES[0]))?)?;
    let receiving = bound(hosts.receiver.run(socket(ADDRESSES[1]))?)?;
    let shared = Shared::default();
    let (known, arrivals, effort) = std::thread::scope(|scope| {
        let forwarding = scope.spawn(|| {
            prompt(40);
            let instructions = counter(false);
            let processor = nanos(ClockId::CLOCK_THREAD_CPUTIME_ID);
            let mut known = vec![u64::MAX; load.packets as usize];
            while !shared.over.load(Ordering::Relaxed) {
                let forwarded = forwarder.forward(|packet, at| {
                    if let Some((number, sent)) = packet.get(HEADERS..).and_then(read)
                        && let Some(place) = known.get_mut(number as usize)
                    {
                        *place = at.saturating_sub(sent);
                    }
                });
                if forwarded > 0 {
                    shared.forwarded.fetch_add(forwarded as u64, Ordering::Relaxed);
                } else {
                    let mut fds = [PollFd::new(forwarder.fd(), PollFlags::POLLIN)];
                    let _ = poll(&mut fds, PollTimeout::from(20_u8));
                }
            }
            let processor = nanos(ClockId::CLOCK_THREAD_CPUTIME_ID) - processor;
            (known, count(instructions.as_ref()), processor)
        });
        let reading = scope.spawn(|| receive(&receiving, load.packets as usize, &shared));
        let sender = scope.spawn(|| send(&sending, load, &shared));
        let _ = sender.join();
        // What is under way still has to come.
        std::thread::sleep(Duration::from_millis(100));
        shared.over.store(true, Ordering::Relaxed);
        let (known, instructions, processor) = forwarding.join().expect("the forwarder does not panic");
        let arrivals = reading.join().expect("the receiver does not panic");
        (known, arrivals, (instructions, processor))
    });
    let forwarded = shared.forwarded.load(Ordering::Relaxed).max(1) as f64;
    let per_packet = |n: u64| n as f64 / forwarded;
    let mut through: Vec<u64> = arrivals.iter().map(|(sent, at)| at.saturating_sub(*sent)).collect();
    let last = arrivals.iter().map(|(_, at)| *at).max().unwrap_or(0);
    let first = arrivals.iter().map(|(_, at)| *at).min().unwrap_or(0);
    let lost = load.packets.saturating_sub(arrivals.len() as u64);
    let mut known: Vec<u64> = known.into_iter().filter(|delay| *delay < u64::MAX).collect();
    known.sort_unstable();
    through.sort_unstable();
    let all = count(instructions.as_ref());
    let processor = nanos(ClockId::CLOCK_PROCESS_CPUTIME_ID) - processor;
    let counted = |instructions: Option<u64>| instructions.map_or(f64::NAN, per_packet);
    Ok(Measured([
        arrivals.len() as f64 / (last.saturating_sub(first).max(1) as f64 / 1e9),
        lost as f64,
        counted(effort.0),
        per_packet(effort.1),
        counted(all),
        per_packet(processor),
        quantile(&known, 0.5),
        quantile(&known, 0.99),
        quantile(&known, 0.999),
        quantile(&through, 0.5),
        quantile(&through, 0.99),
    ]))
}

/// Number and time of sending in a payload.
fn read(payload: &[u8]) -> Option<(u64, u64)> {
    let number = payload.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))?;
    let sent = payload.get(8..)?.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))?;
    Some((number, sent))
}

fn send(socket: &UdpSocket, load: Load, shared: &Shared) {
    if load.gap.is_some() {
        prompt(10);
    }
    let mut payload = [0; PAYLOAD];
    let begin = monotonic() + 5_000_000;
    let mut number = 0;
    while number < load.packets {
        match load.gap {
            Some(gap) => {
                let at = begin + number * gap;
                let at = libc::timespec {
                    tv_sec: (at / 1_000_000_000) as libc::time_t,
                    tv_nsec: (at % 1_000_000_000) as libc::c_long,
                };
                // SAFETY: `at` is a valid timespec; the remaining time is not asked for.
                unsafe {
                    libc::clock_nanosleep(
                        libc::CLOCK_MONOTONIC,
                        libc::TIMER_ABSTIME,
                        &raw const at,
                        std::ptr::null_mut(),
                    );
                }
            }
            None => {
                // What was lost will not be forwarded: after a while the window is open all the
                // same.
                let mut patience = 1000;
                while number.saturating_sub(shared.forwarded.load(Ordering::Relaxed)) >= WINDOW && patience > 0 {
                    std::thread::sleep(Duration::from_micros(20));
                    patience -= 1;
                }
            }
        }
        payload[..8].copy_from_slice(&number.to_be_bytes());
        payload[8..16].copy_from_slice(&monotonic().to_be_bytes());
        let _ = socket.send_to(&payload, (ADDRESSES[1], PORT));
        number += 1;
    }
}

/// When datagrams were sent, and when the receiving host's kernel had them.
fn receive(socket: &UdpSocket, expected: usize, shared: &Shared) -> Vec<(u64, u64)> {
    let _ = setsockopt(socket, sockopt::ReceiveTimestampns, &true);
    // Room for all, so that it does not matter when this thread runs.
    let _ = setsockopt(socket, sockopt::RcvBufForce, &(256 << 20));
    let _ = socket.set_read_timeout(Some(Duration::from_millis(20)));
    let mut arrivals = Vec::with_capacity(expected);
    let (mut bytes, mut control) = ([0_u8; 2048], nix::cmsg_space!(nix::sys::time::TimeSpec));
    loop {
        let mut parts = [std::io::IoSliceMut::new(&mut bytes)];
        let message = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty());
        let stamp = message.ok().and_then(|message| {
            message.cmsgs().ok()?.find_map(|one| match one {
                ControlMessageOwned::ScmTimestampns(stamp) => Some(Duration::from(stamp).as_nanos() as u64),
                _ => None,
            })
        });
        match (stamp, read(&bytes)) {
            (Some(stamp), Some((_, sent))) => arrivals.push((sent, stamp.wrapping_sub(wall_offset()))),
            _ if shared.over.load(Ordering::Relaxed) => return arrivals,
            _ => {}
        }
    }
}
