//! One transfer over an emulated path, and what the bottleneck saw of it.
#![allow(dead_code)]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use flowstart_emulator::{Fate, Fidelity, World, WorldConfig};
use flowstart_network::{DropTailConfig, LinkConfig, QueueConfig, RateSchedule, StepMarkConfig, Threshold};
use flowstart_units::{Bytes, Rate, Span, Time};
use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, connect, setsockopt, socket, sockopt};

/// What every measurement program returns.
pub(crate) type Tried<T> = Result<T, Box<dyn std::error::Error>>;

/// A path: rate of the bottleneck, base round-trip time, and where its queue marks, if it does. Its
/// buffer holds one BDP.
#[derive(Clone, Copy)]
pub(crate) struct Path {
    pub(crate) rate: Rate,
    pub(crate) rtt: Span,
    pub(crate) mark: Option<Span>,
}

/// An IP packet.
const PACKET: u64 = 1500;

impl Path {
    /// Most bytes on the way and in the buffer together are twice this.
    pub(crate) fn bdp(&self) -> u64 {
        self.rate.as_bps() / 8 * self.rtt.as_nanos() / 1_000_000_000
    }

    fn queue(&self) -> QueueConfig {
        let buffer = DropTailConfig { packets: Some((self.bdp() / PACKET).max(4)), bytes: None };
        match self.mark {
            None => QueueConfig::DropTail(buffer),
            Some(threshold) => QueueConfig::StepMark(StepMarkConfig {
                threshold: Threshold::Sojourn(threshold),
                limit: buffer,
                drop_not_ect: false,
            }),
        }
    }
}

/// A data packet at the bottleneck.
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) arrived: Time,
    pub(crate) waited: Option<Span>,
    pub(crate) sequence: u32,
    pub(crate) marked: bool,
}

/// What became of a transfer.
pub(crate) struct Transfer {
    /// From before the connection was asked for until the last byte was read.
    pub(crate) took: Duration,
    /// Data packets at the bottleneck, in order of arrival.
    pub(crate) packets: Vec<Seen>,
    /// How faithful the emulator was.
    pub(crate) fidelity: Fidelity,
}

impl Transfer {
    /// The longest wait in the queue.
    pub(crate) fn longest_wait(&self) -> Span {
        self.packets.iter().filter_map(|seen| seen.waited).max().unwrap_or_default()
    }
}

/// Sends `bytes` with a congestion control over a path of their own.
pub(crate) fn transfer(path: &Path, control: &str, bytes: u64) -> Tried<Transfer> {
    let half = path.rtt / 2;
    let mut config = WorldConfig::pair(LinkConfig::new(RateSchedule::Constant(path.rate), half, path.queue()), half);
    config.links[0].overhead = 0;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = seen.clone();
    let world = World::start_with(config, move |record| {
        let Some(tcp) = record.tcp().filter(|tcp| tcp.payload > 0) else { return };
        if let Fate::Stayed { .. } = record.fate {
            return;
        }
        noted.lock().unwrap_or_else(PoisonError::into_inner).push(Seen {
            arrived: record.arrived,
            waited: matches!(record.fate, Fate::Sent { .. }).then(|| record.waited()).flatten(),
            sequence: tcp.sequence,
            marked: record.marked_here,
        });
    })?;
    let server = world.hosts()[1].address();
    let listener = world.hosts()[1].run(|| TcpListener::bind((server, 0)))??;
    setsockopt(&listener, sockopt::TcpCongestion, &control.into())?;
    let to = listener.local_addr()?;
    let control = control.to_owned();
    let began = Instant::now();
    let divisor = Some(option::<String>("--divisor", "")?.concat()).filter(|divisor| !divisor.is_empty());
    let sender = world.hosts()[0].spawn(move || send(to, &control, bytes, divisor))?;
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let (mut received, mut buffer) = (0, vec![0; 1 << 18]);
    loop {
        match stream.read(&mut buffer)? {
            0 => break,
            part => received += part as u64,
        }
    }
    let took = began.elapsed();
    sender.join().map_err(|_| "the sender failed")???;
    let fidelity = world.finish()?.fidelity;
    if received != bytes {
        return Err(format!("{received} of {bytes} bytes arrived").into());
    }
    let packets = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Transfer { took, packets, fidelity })
}

/// Other work on this machine must not take the processor away from a sender that holds its socket:
/// nothing could leave meanwhile.
fn hurry() {
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: a system call on this thread with a valid structure; if it is refused, everything is
    // as before.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &priority) };
}

fn open(to: SocketAddr, control: &str) -> std::io::Result<TcpStream> {
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::empty(), None)?;
    setsockopt(&socket, sockopt::TcpCongestion, &control.into())?;
    connect(socket.as_raw_fd(), &SockaddrStorage::from(to))?;
    Ok(TcpStream::from(socket))
}

fn send(to: SocketAddr, control: &str, bytes: u64, divisor: Option<String>) -> std::io::Result<()> {
    hurry();
    if let Some(divisor) = divisor {
        // Of this host alone: the directory shows the namespace of the thread that opens it.
        std::fs::write("/proc/sys/net/ipv4/tcp_tso_win_divisor", divisor)?;
    }
    let mut stream = open(to, control)?;
    let buffer = vec![0x5a; 1 << 18];
    let mut left = bytes;
    while left > 0 {
        let part = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        stream.write_all(&buffer[..part])?;
        left -= part as u64;
    }
    stream.shutdown(Shutdown::Write)
}

/// Sends without end with a congestion control, paced at no more than this many bytes per second,
/// until it is told to stop.
pub(crate) fn pour(to: SocketAddr, control: &str, bytes_per_second: u64, stop: &AtomicBool) -> std::io::Result<()> {
    hurry();
    let mut stream = open(to, control)?;
    // SAFETY: the pointer and the length are those of a local integer, which the call reads.
    let refused = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const bytes_per_second).cast(),
            size_of::<u64>() as libc::socklen_t,
        )
    };
    if refused != 0 {
        return Err(std::io::Error::last_os_error());
    }
    let buffer = vec![0x5a; 1 << 16];
    while !stop.load(Ordering::Relaxed) {
        stream.write_all(&buffer)?;
    }
    stream.shutdown(Shutdown::Both)
}

/// Reads until the other end closes, and counts.
pub(crate) fn drain(mut stream: TcpStream, bytes: &AtomicU64) -> std::io::Result<()> {
    let mut buffer = vec![0; 1 << 18];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            part => bytes.fetch_add(part as u64, Ordering::Relaxed),
        };
    }
}

/// Refuses what the program does not know; `flags` stand alone, `options` have a value behind them.
pub(crate) fn only(options: &[&str], flags: &[&str]) -> Tried<()> {
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if flags.contains(&argument.as_str()) {
            continue;
        }
        let value = options.contains(&argument.as_str()).then(|| arguments.next()).flatten();
        if value.is_none() {
            let known =
                options.iter().map(|option| format!("{option} VALUES")).chain(flags.iter().map(|&flag| flag.into()));
            return Err(format!("{argument}: known are {}", known.collect::<Vec<_>>().join(", ")).into());
        }
    }
    Ok(())
}

/// The values of an option such as `--rate 20Mbit/s,100Mbit/s`, or these.
pub(crate) fn option<T: std::str::FromStr>(name: &str, default: &str) -> Tried<Vec<T>>
where
    T::Err: std::fmt::Display,
{
    let arguments: Vec<String> = std::env::args().collect();
    let given = arguments.iter().position(|argument| argument == name).and_then(|place| arguments.get(place + 1));
    let text = given.map_or(default, String::as_str);
    text.split(',').map(|part| part.parse().map_err(|error| format!("{name} {part}: {error}").into())).collect()
}

/// Sizes as they are usually written.
pub(crate) fn sizes(default: &str) -> Tried<Vec<Bytes>> {
    option("--size", default)
}
