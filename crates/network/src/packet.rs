//! The simulator's packet: headers without the payload, small enough to copy (one cache line).

use flowstart_quick_start::RateCode;
use flowstart_units::Time;

use crate::{Ecn, Frame};

/// Most SACK blocks an ACK carries (three beside the timestamp option, RFC 2018 section 3).
pub const MAX_SACK_BLOCKS: usize = 3;

/// A range of received bytes above the cumulative acknowledgement, as offsets from it (RFC 2018 counts absolute 32-bit numbers; the
/// offset form is smaller and cannot wrap).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// Offset of the first byte from the cumulative acknowledgement.
    pub start: u32,
    /// Offset of the byte after the last one.
    pub end: u32,
}

/// A data segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First byte of the stream in it, counted from 0.
    pub seq: u64,
    /// Transmission number: counts every transmission of the flow from 0, retransmissions included.
    pub number: u64,
    /// When the sender's stack handed it to the network; echoed by the ACK (timestamp option, RFC 7323).
    pub sent_at: Time,
    /// Payload bytes.
    pub payload: u32,
    /// True if this is not the first transmission of `seq`.
    pub retransmission: bool,
    /// True on the last segment of a write (PSH), which ends the receiver's waiting.
    pub push: bool,
    /// True on the last segment of the stream (FIN).
    pub fin: bool,
    /// Congestion window reduced (RFC 3168 section 6.1.2).
    pub cwr: bool,
    /// Opens the connection (SYN); carries no payload.
    pub syn: bool,
    /// Asks the routers for this rate (Quick-Start, RFC 4782), or what they left of it; zero asks for nothing. Nonce and TTL are not simulated: here
    /// nobody cheats, and the simulator knows which routers look.
    pub rate_request: RateCode,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Next byte expected: all below arrived.
    pub ack: u64,
    /// `sent_at` of the segment that made the receiver send this ACK (for a delayed ACK: of the earliest unacknowledged one, RFC 7323
    /// section 4).
    pub echo: Time,
    /// The receiver's running count of packets that arrived with CE (wraps), as accurate ECN reports it.
    pub ce_count: u32,
    /// Receive window in bytes, from `ack` on.
    pub window: u32,
    /// Selective acknowledgements, the most recent first; the first `sack_len` are valid.
    pub sack: [SackBlock; MAX_SACK_BLOCKS],
    /// How many of `sack` are valid.
    pub sack_len: u8,
    /// ECN-echo (RFC 3168 section 6.1.3; for DCTCP the mark of the last segment, RFC 8257 section 3.2).
    pub ece: bool,
    /// True if the segment that caused this ACK had arrived before (a D-SACK without its range, RFC 2883).
    pub duplicate: bool,
    /// Answers a SYN (SYN/ACK).
    pub syn: bool,
    /// The rate the routers approved (the Quick-Start response of RFC 4782); zero for none.
    pub granted_rate: RateCode,
}

impl Acknowledgement {
    /// The valid SACK blocks as absolute byte ranges.
    pub fn sacked(&self) -> impl Iterator<Item = std::ops::Range<u64>> + '_ {
        let ack = self.ack;
        self.sack[..usize::from(self.sack_len).min(MAX_SACK_BLOCKS)]
            .iter()
            .map(move |block| ack + u64::from(block.start)..ack + u64::from(block.end))
    }
}

/// A packet of a stream without acknowledgements (UDP).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Counts from 0.
    pub number: u64,
    /// When the application sent it.
    pub sent_at: Time,
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// TCP data.
    Segment(Segment),
    /// A TCP acknowledgement without data.
    Ack(Acknowledgement),
    /// UDP.
    Datagram(Datagram),
}

/// A packet on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Index of its flow in the simulation.
    pub flow: u32,
    /// Length of the IP packet in bytes (at most 65 535, as the IP header has it).
    pub bytes: u16,
    /// ECN codepoint.
    pub ecn: Ecn,
    /// What it is.
    pub body: Body,
}

impl Frame for Packet {
    #[inline]
    fn bytes(&self) -> u32 {
        u32::from(self.bytes)
    }

    #[inline]
    fn flow(&self) -> u64 {
        u64::from(self.flow)
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        self.ecn
    }

    #[inline]
    fn set_ce(&mut self) -> bool {
        if self.ecn.is_capable() {
            self.ecn = Ecn::Ce;
            true
        } else {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_one_cache_line() {
        assert_eq!(std::mem::size_of::<Packet>(), 64);
    }
}
