//! What `fs_chirp` tells while it runs: chirps, what is read from them, and how starts end.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use flowstart_units::Span;
use libbpf_rs::{MapCore, MapFlags, MapHandle, RingBuffer, RingBufferBuilder};

use crate::Algorithm;
use crate::lock::{self, Lock, Only};
use crate::problem::Problem;
use crate::registered::{EVENTS, WATCHERS, loaded, not_there};

/// What a chirp said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Too few ACKs, or too much noise.
    Unclear,
    /// Nothing queued.
    Clear,
    /// Packets queued from some point on.
    Knee,
    /// They queued behind others' packets.
    Crowded,
    /// Nothing: a packet was lost.
    Void,
}

/// Why a start ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Chirps agreed on the capacity and the load reached it, or delivery no longer grew.
    PipeFull,
    /// The round-trip time rose.
    Delay,
    /// Packets were marked.
    Marks,
    /// A packet was lost.
    Loss,
    /// The retransmission timer expired.
    Timeout,
    /// It took too many round trips.
    Limit,
    /// Chirps showed room for the highest rate that the application allows (`SO_MAX_PACING_RATE`).
    RateLimit,
    /// Chirps could not be read, or not be believed: slow start goes on, with HyStart if it is
    /// CUBIC's.
    Unreadable,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A start, or a search for more, began.
    Begin,
    /// A chirp was acknowledged.
    Chirp {
        /// Counted from 0 over the connection.
        number: u32,
        /// Its packets.
        packets: u32,
        /// Sequence number of its first byte.
        begin: u32,
        /// Its first gap as it was asked for; zero if it left as a burst.
        first_gap: Span,
        /// By how much its gaps shrink from packet to packet.
        step: Span,
        /// ACKs that were read.
        points: u32,
        /// What it said.
        said: Said,
        /// The time per packet that it showed.
        gap: Option<Span>,
        /// By how much the delays miss the shape of a queue.
        noise: Span,
    },
    /// A start ended.
    End {
        /// Why.
        reason: Ended,
        /// The time per packet that was found.
        gap: Option<Span>,
    },
}

/// An event of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchEvent {
    /// Of the machine's monotonic clock.
    pub time: Span,
    /// Since the start began.
    pub since_begin: Span,
    /// The same for all events of a connection while it is open.
    pub connection: u64,
    /// The other end.
    pub remote: SocketAddr,
    /// The port at this end.
    pub local_port: u16,
    /// What happened.
    pub what: What,
    /// The gap that the next chirp is centred on; zero before the first chirp.
    pub probe: Span,
    /// The time per packet of the load; zero before the first chirp.
    pub load: Span,
    /// Packets in flight; at the end of a start the window.
    pub packets: u32,
    /// The smoothed round-trip time.
    pub srtt: Span,
    /// The smallest round-trip time.
    pub min_rtt: Span,
}

/// Reads `struct fs_event` (bpf/flow.h) field by field.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_ne_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_ne_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_ne_bytes)
    }

    fn nanos(&mut self) -> Option<Span> {
        self.u64().map(Span::from_nanos)
    }

    fn micros(&mut self) -> Option<Span> {
        self.u32().map(|micros| Span::from_micros(u64::from(micros)))
    }
}

/// `AF_INET`.
const IPV4: u16 = 2;

impl WatchEvent {
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        let (time, since_begin, connection) = (fields.nanos()?, fields.nanos()?, fields.u64()?);
        let (gap, noise, probe, load) = (fields.u64()?, fields.nanos()?, fields.nanos()?, fields.nanos()?);
        let address: [u8; 16] = fields.take()?;
        let (family, local_port) = (fields.u16()?, fields.u16()?);
        // The kernel has it in network order.
        let remote_port = u16::from_be_bytes(fields.take()?);
        let [kind, what] = fields.take()?;
        let (number, packets, points) = (fields.u32()?, fields.u32()?, fields.u32()?);
        let (window, srtt, min_rtt) = (fields.u32()?, fields.micros()?, fields.micros()?);
        let begin = fields.u32()?;
        let mut gap_of = || fields.u32().map(|nanos| Span::from_nanos(u64::from(nanos)));
        let (first_gap, step) = (gap_of()?, gap_of()?);
        let gap = Some(gap).filter(|gap| (1..u64::MAX).contains(gap)).map(Span::from_nanos);
        let what = match kind {
            0 => What::Begin,
            1 => {
                let said = [Said::Unclear, Said::Clear, Said::Knee, Said::Crowded, Said::Void];
                What::Chirp {
                    number,
                    packets,
                    begin,
                    first_gap,
                    step,
                    points,
                    said: *said.get(usize::from(what))?,
                    gap,
                    noise,
                }
            }
            2 => {
                let reasons = [
                    Ended::PipeFull,
                    Ended::Delay,
                    Ended::Marks,
                    Ended::Loss,
                    Ended::Timeout,
                    Ended::Limit,
                    Ended::RateLimit,
                    Ended::Unreadable,
                ];
                What::End { reason: *reasons.get(usize::from(what))?, gap }
            }
            _ => return None,
        };
        let address = if family == IPV4 {
            IpAddr::V4(Ipv4Addr::new(address[0], address[1], address[2], address[3]))
        } else {
            IpAddr::V6(Ipv6Addr::from(address))
        };
        let remote = SocketAddr::new(address, remote_port);
        Some(Self {
            time,
            since_begin,
            connection,
            remote,
            local_port,
            what,
            probe,
            load,
            packets: window,
            srtt,
            min_rtt,
        })
    }
}

/// Listens to `fs_chirp` while it exists.
pub struct Watch<'a> {
    ring: RingBuffer<'a>,
    watchers: MapHandle,
    /// Every event is read once: two watchers would have a part each.
    _only: Lock,
}

impl<'a> Watch<'a> {
    /// Begins to listen; `heard` is called in [`Watch::poll`].
    ///
    /// # Errors
    /// If `paced_chirping` is not loaded, its events may not be read, or somebody else reads them.
    pub fn new(mut heard: impl FnMut(WatchEvent) + 'a) -> Result<Self, Problem> {
        let Some(loaded) = loaded().into_iter().find(|loaded| loaded.algorithm == Algorithm::PacedChirping) else {
            return Err(not_there(Algorithm::PacedChirping, "`flowstart kernel load paced_chirping` first"));
        };
        let only = lock::take(Only::Watcher, Duration::ZERO)?.map_err(|pid| {
            let cause = format!("process {pid} watches fs_chirp already, and events can be read by one only");
            Problem::new(cause, "end it first, or read what it prints")
        })?;
        let open = |name| {
            MapHandle::from_pinned_path(loaded.folder.join(name)).map_err(|error| {
                Problem::denied(format!("fs_chirp's events could not be opened: {error}"), "this needs root")
            })
        };
        let (events, watchers) = (open(EVENTS)?, open(WATCHERS)?);
        let failed =
            |error| Problem::denied(format!("fs_chirp's events could not be read: {error}"), "this needs root");
        let mut builder = RingBufferBuilder::new();
        let listens = Rc::new(Cell::new(false));
        let may_hear = listens.clone();
        builder
            .add(&events, move |bytes| {
                if let Some(event) = WatchEvent::read(bytes).filter(|_| may_hear.get()) {
                    heard(event);
                }
                0
            })
            .map_err(failed)?;
        let ring = builder.build().map_err(failed)?;
        let watch = Self { ring, watchers, _only: only };
        // What was left over when the last one ended is not what happens now.
        let _ = watch.ring.consume();
        listens.set(true);
        watch.tell(true);
        Ok(watch)
    }

    /// Waits for events, at most this long, and hands them on.
    ///
    /// # Errors
    /// If the kernel no longer gives any.
    pub fn poll(&self, patience: Duration) -> Result<(), Problem> {
        match self.ring.poll(patience) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::Interrupted => {
                Err(Problem::new(format!("fs_chirp's events could not be read: {error}"), ""))
            }
            _ => Ok(()),
        }
    }

    /// The program only tells if somebody watches. After a watcher that was killed it goes on
    /// telling, which costs a little time and nothing else, until the next one ends.
    fn tell(&self, whether: bool) {
        let key = 0_u32.to_ne_bytes();
        // Nobody is told if it fails: then there are no events.
        let _ = self.watchers.update(&key, &u32::from(whether).to_ne_bytes(), MapFlags::ANY);
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.tell(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_an_event_is_not_taken_for_one() {
        assert_eq!(WatchEvent::read(&[]), None);
        assert_eq!(WatchEvent::read(&[0; 100]), None);
        assert_eq!(WatchEvent::read(&[255; 200]), None);
    }
}
