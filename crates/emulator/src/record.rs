//! What became of every packet, handed from the engines to whoever wants to know without holding
//! the engines up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flowstart_network::{DropReason, Ecn};
use flowstart_units::{Span, Time};

use crate::config::{HostId, LinkId};
use crate::wire::{self, ETHERNET, FlowKey};

/// Bytes of every packet that are kept for the record: IPv6 and TCP headers with all options.
pub(crate) const SNAP: usize = 100;

/// What became of a packet at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was sent: its transmission began and ended at these times.
    Sent {
        /// It left the queue.
        began: Time,
        /// Its last bit left the link.
        done: Time,
    },
    /// The queue dropped it.
    Dropped {
        /// When.
        at: Time,
        /// Why.
        reason: DropReason,
    },
    /// The link's loss process took it on arrival.
    Lost,
    /// Nothing until everything ended: it was in the queue, or, if it has
    /// [arrived](PacketRecord::arrived) later than that, on its way there.
    Stayed {
        /// When everything ended.
        at: Time,
    },
}

/// A packet at a link.
#[derive(Clone, Copy, Debug)]
pub struct PacketRecord<'a> {
    /// Which link.
    pub link: LinkId,
    /// When it arrived at the queue, or would have.
    pub arrived: Time,
    /// What became of it.
    pub fate: Fate,
    /// Length of the IP packet.
    pub bytes: u32,
    /// Its ECN codepoint when it left.
    pub ecn: Ecn,
    /// True if this link's queue or marking process set the mark.
    pub marked_here: bool,
    /// When the receiving host gets it, by the model; `None` unless this was the last link on its
    /// way.
    pub delivery: Option<Time>,
    /// Whose it is.
    pub flow: FlowKey,
    /// Headers as they arrived (Ethernet, IP, transport), at most 100 bytes.
    pub headers: &'a [u8],
}

/// The fields of a TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// The flags FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128.
    pub flags: u8,
    /// Bytes of the stream in it.
    pub payload: u32,
}

/// A packet that a host was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// Which host.
    pub host: HostId,
    /// When it should have it, by the model.
    pub due: Time,
    /// When it was about to be given to the host's kernel.
    pub at: Time,
    /// Its TCP header; `None` if it has none.
    pub tcp: Option<Tcp>,
}

impl Tcp {
    /// Those of a frame, or of its beginning with all headers; `bytes` is the length of the IP
    /// packet. `None` if it has no TCP header.
    pub(crate) fn read(frame: &[u8], bytes: u32) -> Option<Self> {
        let parsed = wire::parse(frame)?;
        if parsed.key.protocol != wire::TCP {
            return None;
        }
        let at = parsed.transport?;
        let header = usize::from(*frame.get(at + 12)? >> 4) * 4;
        Some(Self {
            sequence: wire::u32_at(frame, at + 4)?,
            acknowledgement: wire::u32_at(frame, at + 8)?,
            flags: *frame.get(at + 13)?,
            payload: bytes.saturating_sub((at + header - ETHERNET) as u32),
        })
    }
}

impl PacketRecord<'_> {
    /// The packet's TCP header; `None` if it has none.
    #[must_use]
    pub fn tcp(&self) -> Option<Tcp> {
        Tcp::read(self.headers, self.bytes)
    }

    /// The first bytes of a UDP datagram, as far as they are kept: 38 at least with IPv6; `None` if
    /// it is none.
    #[must_use]
    pub fn datagram(&self) -> Option<&[u8]> {
        if self.flow.protocol != wire::UDP {
            return None;
        }
        self.headers.get(wire::parse(self.headers)?.transport? + UDP_HEADER..)
    }

    /// How long it waited in the queue; `None` if it was not sent.
    #[must_use]
    pub fn waited(&self) -> Option<Span> {
        match self.fate {
            Fate::Sent { began, .. } => Some(began.since(self.arrived)),
            _ => None,
        }
    }

    /// True if the queue dropped it or the loss process took it.
    #[must_use]
    pub fn is_dropped(&self) -> bool {
        matches!(self.fate, Fate::Dropped { .. } | Fate::Lost)
    }

    /// When its fate was decided: transmission begun, dropped, lost, or everything over. Records of
    /// one link come in this order.
    #[must_use]
    pub fn time(&self) -> Time {
        match self.fate {
            Fate::Sent { began, .. } => began,
            Fate::Dropped { at, .. } | Fate::Stayed { at } => at,
            Fate::Lost => self.arrived,
        }
    }
}

/// A record without its headers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) link: u32,
    pub(crate) flow: u32,
    pub(crate) arrived: Time,
    pub(crate) fate: Fate,
    pub(crate) delivery: Time,
    pub(crate) bytes: u32,
    pub(crate) ecn: Ecn,
    pub(crate) marked_here: bool,
    pub(crate) snapped: u8,
}

/// Records on their way.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    entries: Vec<Entry>,
    headers: Vec<u8>,
    /// Flows seen for the first time; their numbers follow those of the batch before.
    flows: Vec<FlowKey>,
}

/// Length of a UDP header.
const UDP_HEADER: usize = 8;
/// Records per batch.
const BATCH: usize = 512;
/// Batches for which there is room without allocating: half a second at 500 Mbit/s.
const AHEAD: usize = 64;

/// Between an engine and whoever reads its records. The reader waits for the lock, the engine never
/// does: it has real-time priority, so a reader that lost its processor to it while it was at the
/// lock would not get on. (Channels make the sender wait for a receiver that is amid something,
/// with sched_yield, which does not help threads of lower priority: engines stood still for up to a
/// second.)
#[derive(Debug, Default)]
struct Between {
    batches: Mutex<Batches>,
    /// There will be no more.
    over: AtomicBool,
}

#[derive(Debug, Default)]
struct Batches {
    /// In their order.
    full: Vec<Batch>,
    /// They come back, so that in the long run nothing is allocated.
    empty: Vec<Batch>,
}

impl Between {
    fn lock(&self) -> MutexGuard<'_, Batches> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The engine's end.
#[derive(Debug)]
pub(crate) struct Recorder {
    batch: Batch,
    between: Arc<Between>,
}

/// The other end.
#[derive(Debug)]
pub(crate) struct Reader {
    between: Arc<Between>,
    flows: Vec<FlowKey>,
    taken: Vec<Batch>,
}

/// A way for records.
pub(crate) fn way() -> (Recorder, Reader) {
    let between = Arc::new(Between::default());
    let batches = Batches { full: Vec::with_capacity(AHEAD), empty: Vec::with_capacity(AHEAD) };
    *between.lock() = batches;
    let taken = Vec::with_capacity(AHEAD);
    (Recorder { batch: Batch::default(), between: between.clone() }, Reader { between, flows: Vec::new(), taken })
}

impl Recorder {
    /// A new flow has its first packet.
    pub(crate) fn flow(&mut self, key: FlowKey) {
        self.batch.flows.push(key);
    }

    /// Notes a packet's fate.
    #[inline]
    pub(crate) fn record(&mut self, mut entry: Entry, frame: &[u8]) {
        let snap = &frame[..frame.len().min(SNAP)];
        entry.snapped = snap.len() as u8;
        self.batch.entries.push(entry);
        self.batch.headers.extend_from_slice(snap);
        if self.batch.entries.len() >= BATCH {
            self.flush();
        }
    }

    /// Hands on what there is. If the reader is just taking something it stays here until the next
    /// time.
    pub(crate) fn flush(&mut self) {
        if let Ok(mut batches) = self.between.batches.try_lock() {
            let next = batches.empty.pop().unwrap_or_default();
            hand_over(&self.between, &mut batches, std::mem::replace(&mut self.batch, next));
        }
    }
}

/// If nobody listens any more the records are not wanted.
fn hand_over(between: &Arc<Between>, batches: &mut Batches, batch: Batch) {
    if Arc::strong_count(between) > 1 && !(batch.entries.is_empty() && batch.flows.is_empty()) {
        batches.full.push(batch);
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // The engine has ended: now it may wait.
        hand_over(&self.between, &mut self.between.lock(), std::mem::take(&mut self.batch));
        self.between.over.store(true, Ordering::Release);
    }
}

/// What a look at an engine's records found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// Some.
    Some,
    /// None at present.
    None,
    /// All have been handed on, and there will be no more.
    Over,
}

impl Reader {
    /// Hands on all records that are there.
    pub(crate) fn read(&mut self, mut sink: impl FnMut(&PacketRecord<'_>)) -> Read {
        // Asked before: what comes until then is seen below.
        let over = self.between.over.load(Ordering::Acquire);
        {
            let mut batches = self.between.lock();
            batches.empty.append(&mut self.taken);
            std::mem::swap(&mut batches.full, &mut self.taken);
        }
        let found = !self.taken.is_empty();
        for batch in &mut self.taken {
            self.flows.append(&mut batch.flows);
            let mut rest = batch.headers.as_slice();
            for entry in &batch.entries {
                let (headers, others) = rest.split_at(usize::from(entry.snapped).min(rest.len()));
                rest = others;
                let Some(flow) = self.flows.get(entry.flow as usize) else { continue };
                sink(&PacketRecord {
                    link: entry.link as LinkId,
                    arrived: entry.arrived,
                    fate: entry.fate,
                    bytes: entry.bytes,
                    ecn: entry.ecn,
                    marked_here: entry.marked_here,
                    delivery: (entry.delivery < Time::NEVER).then_some(entry.delivery),
                    flow: *flow,
                    headers,
                });
            }
            batch.entries.clear();
            batch.headers.clear();
        }
        match (over, found) {
            (true, _) => Read::Over,
            (false, true) => Read::Some,
            (false, false) => Read::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u64) -> Entry {
        Entry {
            link: 0,
            flow: 0,
            arrived: Time::from_nanos(number),
            fate: Fate::Lost,
            delivery: Time::NEVER,
            bytes: 100,
            ecn: Ecn::NotEct,
            marked_here: false,
            snapped: 0,
        }
    }

    #[test]
    fn an_engine_does_not_wait_for_a_reader_that_is_amid_something_and_nothing_is_lost() {
        let (mut recorder, mut reader) = way();
        let address = std::net::Ipv4Addr::LOCALHOST.into();
        let (source, destination) = (address, address);
        recorder.flow(FlowKey { source, destination, source_port: 1, destination_port: 2, protocol: wire::UDP });
        let between = reader.between.clone();
        let amid = between.lock();
        let last = 10 * BATCH as u64;
        for number in 0..last {
            // Would stand still here if it waited.
            recorder.record(entry(number), &number.to_be_bytes());
        }
        drop(amid);
        recorder.record(entry(last), &last.to_be_bytes());
        let mut seen = Vec::new();
        assert_eq!(reader.read(|record| seen.push(record.arrived.as_nanos())), Read::Some);
        assert_eq!(reader.read(|_| panic!("they come once")), Read::None);
        recorder.record(entry(last + 1), &(last + 1).to_be_bytes());
        drop(recorder);
        let mut heads = Vec::new();
        let over = reader.read(|record| {
            seen.push(record.arrived.as_nanos());
            heads.push(record.headers.to_vec());
        });
        assert_eq!((over, heads), (Read::Over, vec![(last + 1).to_be_bytes().to_vec()]));
        assert!(seen.into_iter().eq(0..=last + 1), "all of them, in their order");
    }
}
