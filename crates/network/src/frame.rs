//! What a queue needs to know of a packet.

/// The ECN field of the IP header (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// 00: the sender does not understand marks.
    #[default]
    NotEct,
    /// 01: ECN-capable, scalable control (RFC 9331).
    Ect1,
    /// 10: ECN-capable.
    Ect0,
    /// 11: congestion experienced.
    Ce,
}

impl Ecn {
    /// True unless the codepoint is Not-ECT.
    #[must_use]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// A word that says nothing. In a struct it is where `Option` of that struct keeps its tag.
/// Otherwise the tag hides in one of the packet's bytes, and the compiler copies packets in pieces
/// around that byte, which overlap and make the processor wait for its own stores (measured: an
/// eighth of a simulation's time).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u64)]
pub enum TagWord {
    /// Its only value.
    #[default]
    Present,
}

/// What an ACK filter looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PureAck {
    /// The lower 32 bits of the next byte expected.
    pub ack: u32,
    /// Its flags, in any coding: of two ACKs with different flags neither says all of the other.
    pub flags: u8,
    /// It says no more than that: no SACK blocks, no options that only it carries.
    pub plain: bool,
}

/// Anything that can stand in a queue.
pub trait Frame {
    /// Length in bytes as the queue counts it (for TCP/IP traffic the IP packet; a link may add its
    /// own overhead).
    fn bytes(&self) -> u32;

    /// Which flow it belongs to; the same for all packets of a flow, for fair queuing.
    fn flow(&self) -> u64;

    /// Its ECN codepoint.
    fn ecn(&self) -> Ecn;

    /// What it acknowledges, if it is a TCP acknowledgement without data.
    fn pure_ack(&self) -> Option<PureAck> {
        None
    }

    /// Sets congestion experienced. Returns false, and changes nothing, if the packet is not
    /// ECN-capable; true on a packet that already carried the mark (which therefore counts as
    /// marked, as in Linux `INET_ECN_set_ce`).
    fn set_ce(&mut self) -> bool;
}
