//! What became of every packet, handed from the engines to whoever wants to know without holding the engines up.

use std::sync::mpsc::{Receiver, Sender, channel};

use flowstart_network::{DropReason, Ecn};
use flowstart_units::{Span, Time};

use crate::config::LinkId;
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
}

/// A packet at a link.
#[derive(Clone, Copy, Debug)]
pub struct PacketRecord<'a> {
    /// Which link.
    pub link: LinkId,
    /// When it arrived at the queue.
    pub arrived: Time,
    /// What became of it.
    pub fate: Fate,
    /// Length of the IP packet.
    pub bytes: u32,
    /// Its ECN codepoint when it left.
    pub ecn: Ecn,
    /// True if this link's queue or marking process set the mark.
    pub marked_here: bool,
    /// When the receiving host gets it, by the model; `None` unless this was the last link on its way.
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

impl PacketRecord<'_> {
    /// The packet's TCP header; `None` if it has none.
    #[must_use]
    pub fn tcp(&self) -> Option<Tcp> {
        if self.flow.protocol != wire::TCP {
            return None;
        }
        let at = wire::parse(self.headers)?.transport?;
        let header = usize::from(*self.headers.get(at + 12)? >> 4) * 4;
        Some(Tcp {
            sequence: wire::u32_at(self.headers, at + 4)?,
            acknowledgement: wire::u32_at(self.headers, at + 8)?,
            flags: *self.headers.get(at + 13)?,
            payload: self.bytes.saturating_sub((at + header - ETHERNET) as u32),
        })
    }

    /// How long it waited in the queue; `None` if it was not sent.
    #[must_use]
    pub fn waited(&self) -> Option<Span> {
        match self.fate {
            Fate::Sent { began, .. } => Some(began.since(self.arrived)),
            _ => None,
        }
    }

    /// When its fate was decided: transmission begun, dropped, or lost. Records of one link come in this order.
    #[must_use]
    pub fn time(&self) -> Time {
        match self.fate {
            Fate::Sent { began, .. } => began,
            Fate::Dropped { at, .. } => at,
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

/// Records per batch.
const BATCH: usize = 512;

/// The engine's end.
#[derive(Debug)]
pub(crate) struct Recorder {
    batch: Batch,
    out: Sender<Batch>,
    back: Receiver<Batch>,
}

/// The other end.
#[derive(Debug)]
pub(crate) struct Reader {
    input: Receiver<Batch>,
    back: Sender<Batch>,
    flows: Vec<FlowKey>,
}

/// A way for records.
pub(crate) fn way() -> (Recorder, Reader) {
    let (out, input) = channel();
    let (back, returned) = channel();
    (Recorder { batch: Batch::default(), out, back: returned }, Reader { input, back, flows: Vec::new() })
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

    /// Sends what there is. Batches come back empty, so that in the long run nothing is allocated.
    pub(crate) fn flush(&mut self) {
        if self.batch.entries.is_empty() && self.batch.flows.is_empty() {
            return;
        }
        let next = self.back.try_recv().unwrap_or_default();
        // If nobody listens any more the records are not wanted.
        let _ = self.out.send(std::mem::replace(&mut self.batch, next));
    }
}

impl Reader {
    /// Hands on all records that are there or come within `patience`; false when the engine has ended.
    pub(crate) fn read(&mut self, patience: std::time::Duration, mut sink: impl FnMut(&PacketRecord<'_>)) -> bool {
        let mut patience = patience;
        loop {
            let mut batch = match self.input.recv_timeout(patience) {
                Ok(batch) => batch,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => return true,
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return false,
            };
            patience = std::time::Duration::ZERO;
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
            // If the engine has ended the batch is not needed any more.
            let _ = self.back.send(batch);
        }
    }
}
