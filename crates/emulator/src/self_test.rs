//! How precise and how fast the emulator is on this machine: measured with datagrams whose arrival
//! the receiving host's kernel stamps, so that the engine's own clock readings have no part in it.

mod trials;

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};

use flowstart_network::{DropTailConfig, LinkConfig, QueueConfig, RateSchedule};
use flowstart_units::{Bytes, Rate, Span, Time};

use crate::clock::Clock;
use crate::fidelity::Lateness;
use crate::record::Fate;
use crate::{Error, Fidelity, Timing, World, WorldConfig};

pub use trials::{MEDIAN_BAR, Miss, P99_BAR, REPEATED, SUSTAINED, Trials, trials};

/// IPv4 and UDP headers.
const HEADERS: u32 = 28;
/// Smallest IP packet that carries a number.
const SMALLEST: u32 = 64;
/// The receiver's port; the discard service's.
const PORT: u16 = 9;
/// An emulator that is later than this with 1 % of the packets has fallen behind.
const KEPT_UP: Span = Span::from_millis(1);
/// One-way delay of the tested link.
const DELAY: Span = Span::from_millis(5);

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Capacity of the link.
    pub capacity: Rate,
    /// Length of the IP packets, 64 to 1500 bytes.
    pub packet: u32,
    /// How fast they are sent (IP bytes); more than the capacity fills the queue.
    pub offered: Rate,
    /// Buffer in packets.
    pub buffer: u64,
    /// How long.
    pub lasting: Span,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// What was tried.
    pub trial: Trial,
    /// Packets sent.
    pub sent: u64,
    /// Packets that arrived at the receiving program.
    pub received: u64,
    /// Packets that left the link and did not arrive there: lost by the emulator, or the program
    /// was kept from reading for so long that its socket's buffer was full. Nothing is known of
    /// them.
    pub unseen: u64,
    /// Packets that the queue dropped, as it should when more than the capacity is offered.
    pub dropped: u64,
    /// Between the first and the last departure, at the receiving host (IP bytes).
    pub rate: Rate,
    /// Difference between the arrival at the receiving host and the ideal link's departure: half of
    /// the packets had at most this.
    pub median: Span,
    /// 99 % had at most this.
    pub p99: Span,
    /// The largest.
    pub worst: Span,
    /// The longest wait in the queue.
    pub longest_wait: Span,
    /// What the engines said.
    pub fidelity: Fidelity,
}

impl Measured {
    /// True if the emulator kept up: nothing lost that the queue did not drop, every packet that
    /// left the link was seen, and 99 % at most 1 ms off.
    #[must_use]
    pub fn kept_up(&self) -> bool {
        self.p99 <= KEPT_UP && self.lost().is_empty()
    }

    /// What was lost that the queue did not drop, in words; empty if nothing was.
    fn lost(&self) -> Vec<String> {
        let packets = |count: u64, one: &str, many: &str| match count {
            0 => None,
            1 => Some(format!("1 packet {one}")),
            _ => Some(format!("{count} packets {many}")),
        };
        let elsewhere = "lost that the queue did not drop";
        let (one, many) = (format!("was {elsewhere}"), format!("were {elsewhere}"));
        let unseen = ["left the link and was not seen", "left the link and were not seen"];
        let mut lost: Vec<String> = packets(self.fidelity.unasked_drops, &one, &many).into_iter().collect();
        lost.extend(packets(self.unseen, unseen[0], unseen[1]));
        lost.extend((self.received == 0).then(|| "no packet arrived".to_owned()));
        lost.extend((self.fidelity.faults > 0).then(|| "a part of the emulator failed".to_owned()));
        lost
    }

    /// Packets per second at the receiving host.
    #[must_use]
    pub fn packets_per_second(&self) -> f64 {
        self.rate.as_bps() as f64 / 8.0 / f64::from(self.trial.packet)
    }
}

/// Does one trial.
///
/// # Errors
/// If no world can be made here.
pub fn try_out(trial: Trial) -> Result<Measured, Error> {
    try_out_with(trial, Timing::default())
}

/// Does one trial with engines that keep time in another way than by default.
///
/// # Errors
/// If no world can be made here.
pub fn try_out_with(trial: Trial, timing: Timing) -> Result<Measured, Error> {
    let packet = trial.packet.clamp(SMALLEST, 1500);
    let queue = QueueConfig::DropTail(DropTailConfig { packets: Some(trial.buffer), bytes: None });
    let link = LinkConfig::new(RateSchedule::Constant(trial.capacity), DELAY, queue);
    let ideal: Arc<Mutex<Vec<Time>>> = Arc::default();
    let told = ideal.clone();
    let config = WorldConfig { timing, ..WorldConfig::pair(link, DELAY) };
    let world = World::start_with(config, move |record| {
        // Ethernet, IPv4 and UDP headers come first.
        let number = record.headers.get(42..50).and_then(|bytes| Some(u64::from_be_bytes(bytes.try_into().ok()?)));
        if let (Some(number), Fate::Sent { .. }, Some(delivery)) = (number, record.fate, record.delivery) {
            let mut ideal = told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let number = usize::try_from(number).unwrap_or(usize::MAX);
            if number >= ideal.len() && number < MOST {
                ideal.resize(number + 1, Time::NEVER);
            }
            if let Some(place) = ideal.get_mut(number) {
                *place = delivery;
            }
        }
    })?;
    let (client, server) = (&world.hosts()[0], &world.hosts()[1]);
    let to = SocketAddr::new(server.address(), PORT);
    let socket = |address| move || UdpSocket::bind(address).map_err(|error| Error::doing("open a socket", error));
    let receiver = server.run(socket(to))??;
    let sender = client.run(socket(SocketAddr::new(client.address(), PORT)))??;
    let clock = world.clock();
    let over = Arc::new(AtomicBool::new(false));
    let (sent, arrivals) = std::thread::scope(|scope| -> Result<_, Error> {
        let (tell, ready) = std::sync::mpsc::channel();
        let (receiver, stop) = (&receiver, &*over);
        let reader = scope.spawn(move || {
            crate::clock::be_prompt(crate::clock::Part::Receiver);
            prepare(receiver, to, clock)?;
            let _ = tell.send(());
            receive(receiver, clock, stop)
        });
        let sender = &sender;
        let sender = scope.spawn(move || {
            // Without a receiver there is nothing to send.
            if ready.recv_timeout(READY_WITHIN).is_err() {
                return 0;
            }
            crate::clock::be_prompt(crate::clock::Part::Sender);
            send(sender, to, &trial, packet, clock)
        });
        let sent = sender.join().map_err(|_| Error::Failed("the sender failed".to_owned()))?;
        // What is in the queue still has to come.
        let rest = trial.capacity.transmission_time(Bytes::new(trial.buffer * u64::from(packet))) + DELAY;
        std::thread::sleep(Duration::from_nanos(rest.as_nanos()) + Duration::from_millis(100));
        over.store(true, Ordering::Relaxed);
        Ok((sent, reader.join().map_err(|_| Error::Failed("the receiver failed".to_owned()))??))
    })?;
    let outcome = world.finish()?;
    let ideal = ideal.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut errors = Lateness::new();
    let (mut first, mut last) = (Time::NEVER, Time::ZERO);
    for (number, at) in &arrivals {
        let due = usize::try_from(*number).ok().and_then(|number| ideal.get(number)).copied().unwrap_or(Time::NEVER);
        if due < Time::NEVER {
            errors.record(at.since(due).max(due.since(*at)));
            (first, last) = (first.min(*at), last.max(*at));
        }
    }
    let bytes = arrivals.len().saturating_sub(1) as u64 * u64::from(packet);
    Ok(Measured {
        trial,
        sent,
        received: arrivals.len() as u64,
        unseen: outcome.links[0].packets.saturating_sub(arrivals.len() as u64),
        dropped: outcome.links[0].dropped,
        rate: if last > first { Rate::of(Bytes::new(bytes), last.since(first)) } else { Rate::ZERO },
        median: errors.quantile(0.5),
        p99: errors.quantile(0.99),
        worst: errors.worst(),
        longest_wait: outcome.links[0].max_sojourn,
        fidelity: outcome.fidelity,
    })
}

/// Most packets of a trial.
const MOST: usize = 20_000_000;
/// A sender that is late sends at most this many packets at once to catch up.
const BURST: u64 = 16;

/// Sends numbered datagrams at the offered rate. Returns how many.
fn send(socket: &UdpSocket, to: SocketAddr, trial: &Trial, packet: u32, clock: Clock) -> u64 {
    let gap = trial.offered.transmission_time(Bytes::new(u64::from(packet)));
    let mut payload = vec![0; (packet - HEADERS) as usize];
    let (start, mut number) = (clock.now() + Span::from_millis(5), 0_u64);
    let mut next = start;
    while next < start + trial.lasting && number < MOST as u64 {
        let now = clock.now();
        if next > now {
            // A coarse sleep is good enough: the ideal link is fed with the times at which packets
            // really come.
            clock.sleep_until(next);
        }
        // What was missed while another thread ran is not made up for.
        next = next.max(now - gap * BURST);
        payload[..8].copy_from_slice(&number.to_be_bytes());
        number += u64::from(socket.send_to(&payload, to).is_ok());
        next += gap;
    }
    number
}

/// How long the receiver may take to prepare itself.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// How long a datagram is left lying when it is tried whether arrivals are stamped.
const LEFT_LYING: Span = Span::from_millis(2);
/// Bytes of the receiving socket's buffer, beyond the system's limit if that is allowed: a trial's
/// packets, for this program may have to wait for a processor. What overflows counts as unseen.
const BUFFER: usize = 512 << 20;

/// Prepares the receiving socket. The kernel begins to stamp arriving packets some time after the
/// first socket asks for it (a thread of its own does that, and may have to wait for a processor);
/// until then it stamps a packet when it is read. So this waits until a packet that was left lying
/// has a stamp from before it was read.
fn prepare(socket: &UdpSocket, own: SocketAddr, clock: Clock) -> Result<(), Error> {
    let wrong = |error: nix::Error| Error::doing("prepare a socket", error);
    setsockopt(socket, sockopt::ReceiveTimestampns, &true).map_err(wrong)?;
    if setsockopt(socket, sockopt::RcvBufForce, &BUFFER).is_err() {
        let _ = setsockopt(socket, sockopt::RcvBuf, &BUFFER);
    }
    let failed = |error: std::io::Error| Error::doing("prepare a socket", error);
    socket.set_read_timeout(Some(Duration::from_millis(20))).map_err(failed)?;
    let until = clock.now() + Span::from_nanos(READY_WITHIN.as_nanos() as u64);
    while clock.now() < until {
        socket.send_to(&[], own).map_err(failed)?;
        clock.sleep_until(clock.now() + LEFT_LYING);
        let looked = clock.now();
        if let Ok((_, Some(stamp))) = read(socket)
            && clock.of_wall(stamp) < looked
        {
            return Ok(());
        }
    }
    Err(Error::Failed("the kernel does not stamp packets when they arrive".to_owned()))
}

/// The next datagram's number and the kernel's stamp of its arrival.
fn read(socket: &UdpSocket) -> nix::Result<(Option<u64>, Option<u64>)> {
    let (mut bytes, mut control) = ([0_u8; 2048], nix::cmsg_space!(nix::sys::time::TimeSpec));
    let mut parts = [std::io::IoSliceMut::new(&mut bytes)];
    let message = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty())?;
    let stamp = message.cmsgs()?.find_map(|one| match one {
        ControlMessageOwned::ScmTimestampns(stamp) => Some(Duration::from(stamp).as_nanos() as u64),
        _ => None,
    });
    let length = message.bytes;
    let number = bytes[..length.min(bytes.len())].first_chunk();
    Ok((number.map(|number| u64::from_be_bytes(*number)), stamp))
}

/// Takes datagrams until it is over: their numbers and when they arrived.
fn receive(socket: &UdpSocket, clock: Clock, over: &AtomicBool) -> Result<Vec<(u64, Time)>, Error> {
    let mut arrivals = Vec::with_capacity(1 << 16);
    loop {
        match read(socket) {
            Ok((Some(number), Some(stamp))) => arrivals.push((number, clock.of_wall(stamp))),
            Ok(_) => {}
            Err(_) if over.load(Ordering::Relaxed) => return Ok(arrivals),
            Err(_) => {}
        }
    }
}
