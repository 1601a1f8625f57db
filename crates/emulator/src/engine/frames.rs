//! Frames in the engine: their bytes stay where they are, a small handle goes through queues and
//! delays.

use flowstart_network::{Ecn, Frame, PureAck};
use flowstart_units::Time;

/// A frame's handle, as it stands in queues.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handle {
    /// Its place in the pool.
    pub(super) place: u32,
    /// Length of the IP packet.
    pub(super) bytes: u32,
    /// Number of its flow in this engine.
    pub(super) flow: u32,
    /// Its route.
    pub(super) route: u16,
    /// Which link on the route it is at or comes to next.
    pub(super) step: u16,
    /// Its codepoint now; the bytes still have the one it came with.
    pub(super) ecn: Ecn,
    /// What it acknowledges, if some link of the engine asks for that.
    pub(super) ack: Option<PureAck>,
    /// True if the link it is at set the mark.
    pub(super) marked_here: bool,
    /// When it arrived at the link it is at.
    pub(super) arrived: Time,
}

impl Frame for Handle {
    #[inline]
    fn bytes(&self) -> u32 {
        self.bytes
    }

    #[inline]
    fn flow(&self) -> u64 {
        u64::from(self.flow)
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn pure_ack(&self) -> Option<PureAck> {
        self.ack
    }

    #[inline]
    fn set_ce(&mut self) -> bool {
        if !self.ecn.is_capable() {
            return false;
        }
        self.marked_here |= self.ecn != Ecn::Ce;
        self.ecn = Ecn::Ce;
        true
    }
}

/// The bytes of all frames in the engine.
#[derive(Debug)]
pub(super) struct Pool {
    bytes: Vec<u8>,
    lengths: Vec<u32>,
    /// The link that each frame waits at, and how it arrived there.
    waiting: Vec<Option<(u16, Handle)>>,
    free: Vec<u32>,
    room: usize,
    most: usize,
}

/// Frames there is room for at once, at the beginning.
const AT_FIRST: usize = 1024;
/// Bytes of frames that an engine holds at most: 100 ms at 20 Gbit/s.
const MOST_BYTES: usize = 256 << 20;

impl Pool {
    /// Room for frames of at most `room` bytes.
    pub(super) fn new(room: usize) -> Self {
        let (bytes, lengths, waiting, free) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut pool = Self { bytes, lengths, waiting, free, room, most: MOST_BYTES / room };
        pool.grow(AT_FIRST);
        pool
    }

    fn grow(&mut self, frames: usize) {
        let before = self.lengths.len();
        let after = frames.min(self.most);
        self.bytes.resize(after * self.room, 0);
        self.lengths.resize(after, 0);
        self.waiting.resize(after, None);
        self.free.reserve(after.saturating_sub(self.free.len()));
        self.free.extend((before as u32..after as u32).rev());
    }

    /// Takes a frame in; `None` if it is too long or there is no room any more.
    #[inline]
    pub(super) fn put(&mut self, frame: &[u8]) -> Option<u32> {
        if frame.len() > self.room {
            return None;
        }
        if self.free.is_empty() {
            // Doubling: in the long run nothing is allocated.
            self.grow(self.lengths.len() * 2);
        }
        let place = self.free.pop()?;
        let start = place as usize * self.room;
        self.bytes[start..start + frame.len()].copy_from_slice(frame);
        self.lengths[place as usize] = frame.len() as u32;
        Some(place)
    }

    /// A frame's bytes.
    #[inline]
    pub(super) fn get(&self, place: u32) -> &[u8] {
        let start = place as usize * self.room;
        &self.bytes[start..start + self.lengths[place as usize] as usize]
    }

    /// A frame's bytes, to change them.
    #[inline]
    pub(super) fn get_mut(&mut self, place: u32) -> &mut [u8] {
        let start = place as usize * self.room;
        &mut self.bytes[start..start + self.lengths[place as usize] as usize]
    }

    /// A frame arrives at a link.
    #[inline]
    pub(super) fn comes(&mut self, link: u16, handle: Handle) {
        self.waiting[handle.place as usize] = Some((link, handle));
    }

    /// A frame waits no longer.
    #[inline]
    pub(super) fn goes(&mut self, place: u32) {
        self.waiting[place as usize] = None;
    }

    /// The frames that wait, each with its link.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (u16, Handle)> {
        self.waiting.iter().copied().flatten()
    }

    /// Gives a frame's place back.
    #[inline]
    pub(super) fn release(&mut self, place: u32) {
        self.goes(place);
        self.free.push(place);
    }

    /// Frames stored.
    pub(super) fn stored(&self) -> u64 {
        (self.lengths.len() - self.free.len()) as u64
    }
}
