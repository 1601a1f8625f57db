//! The simulator's packet: headers without the payload, small enough to copy (one cache line).

use flowstart_quick_start::wire::TcpResponse;
use flowstart_quick_start::{Carried, Nonce, RateCode};
use flowstart_units::{Rate, Time};

use crate::{Ecn, Frame, PureAck};

/// Most SACK blocks an ACK carries (three beside the timestamp option, RFC 2018 section 3).
pub const MAX_SACK_BLOCKS: usize = 3;

/// Which of them makes room for a Quick-Start response, or for the rate that routers tell (RCP).
const RESPONSE_PLACE: usize = MAX_SACK_BLOCKS - 1;

/// A range of received bytes above the cumulative acknowledgement, as offsets from it (RFC 2018
/// counts absolute 32-bit numbers; the offset form is smaller and cannot wrap).
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
    /// When the sender's stack handed it to the network; echoed by the ACK (timestamp option, RFC
    /// 7323).
    pub sent_at: Time,
    /// Bytes before `seq` that were not acknowledged when it left; says which ACK its timestamp
    /// echo came with (RFC 7323 section 4). At most `u32::MAX`, like any window.
    pub unacknowledged: u32,
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
    /// What it asks the routers for, as they have left it, or reports to them (Quick-Start, RFC
    /// 4782; RCP).
    pub quick_start: Carried,
}

impl Segment {
    /// All below this byte was acknowledged when it left.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.seq.saturating_sub(self.unacknowledged.into())
    }
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Next byte expected: all below arrived.
    pub ack: u64,
    /// `sent_at` of the segment that made the receiver send this ACK (for a delayed ACK: of the
    /// earliest unacknowledged one, RFC 7323 section 4).
    pub echo: Time,
    /// The receiver's running count of packets that arrived with CE (wraps), as accurate ECN
    /// reports it.
    pub ce_count: u32,
    /// Receive window in bytes, from `ack` on.
    pub window: u32,
    /// Selective acknowledgements, the most recent first; the first `sack_len` are valid. The third
    /// place is that of a Quick-Start response's nonce and TTL difference: beside timestamps, a
    /// response and three blocks would be more than TCP's 40 bytes of options.
    pub sack: [SackBlock; MAX_SACK_BLOCKS],
    /// How many of `sack` are valid.
    pub sack_len: u8,
    /// ECN-echo (RFC 3168 section 6.1.3; for DCTCP the mark of the last segment, RFC 8257 section
    /// 3.2).
    pub ece: bool,
    /// True if the segment that caused this ACK had arrived before (a D-SACK without its range, RFC
    /// 2883).
    pub duplicate: bool,
    /// Answers a SYN (SYN/ACK).
    pub syn: bool,
    /// The rate of a Quick-Start [`response`](Self::response); zero for none.
    pub granted_rate: RateCode,
    /// The third place of `sack` has the [`share`](Self::share) that routers tell (RCP).
    pub has_share: bool,
}

impl Acknowledgement {
    /// The rate that the routers have for this flow (RCP, Dukkipati and McKeown 2006), if they told
    /// the receiver.
    #[must_use]
    pub fn share(&self) -> Option<Rate> {
        let kbits = self.sack[RESPONSE_PLACE].start;
        self.has_share.then(|| Rate::from_bps(u64::from(kbits) * 1000))
    }

    /// Says what the routers have for this flow, in steps of 1 kbit/s; a third SACK block gives
    /// way.
    pub fn set_share(&mut self, share: Rate) {
        self.has_share = true;
        self.granted_rate = RateCode::ZERO;
        let kbits = u32::try_from(share.as_bps() / 1000).unwrap_or(u32::MAX);
        self.sack[RESPONSE_PLACE] = SackBlock { start: kbits, end: 0 };
        self.sack_len = self.sack_len.min(RESPONSE_PLACE as u8);
    }

    /// The Quick-Start response (RFC 4782 section 4.2), if there is one.
    #[must_use]
    pub fn response(&self) -> Option<TcpResponse> {
        let SackBlock { start, end } = self.sack[RESPONSE_PLACE];
        let response = TcpResponse { rate: self.granted_rate, ttl_difference: end as u8, nonce: Nonce::new(start) };
        (!self.granted_rate.is_zero()).then_some(response)
    }

    /// Says what the routers approved; a third SACK block gives way.
    pub fn set_response(&mut self, response: &TcpResponse) {
        self.granted_rate = response.rate;
        self.sack[RESPONSE_PLACE] = SackBlock { start: response.nonce.get(), end: response.ttl_difference.into() };
        self.sack_len = self.sack_len.min(RESPONSE_PLACE as u8);
    }

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

    fn pure_ack(&self) -> Option<PureAck> {
        let Body::Ack(ack) = &self.body else { return None };
        let told = ack.has_share || !ack.granted_rate.is_zero();
        let plain = ack.sack_len == 0 && !ack.duplicate && !ack.syn && !told;
        Some(PureAck { ack: ack.ack as u32, flags: u8::from(ack.ece) | u8::from(ack.syn) << 1, plain })
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

    const ACK: Acknowledgement = Acknowledgement {
        ack: 10,
        echo: Time::ZERO,
        ce_count: 0,
        window: 0,
        sack: [SackBlock { start: 1, end: 2 }; MAX_SACK_BLOCKS],
        sack_len: 3,
        ece: false,
        duplicate: false,
        syn: false,
        granted_rate: RateCode::ZERO,
        has_share: false,
    };

    #[test]
    fn blocks_are_offsets_from_the_acknowledgement_and_only_valid_ones_count() {
        let sack = [(100, 250), (400, u32::MAX), (0, 1)].map(|(start, end)| SackBlock { start, end });
        let sacked = |sack_len| -> Vec<_> { Acknowledgement { ack: 7_000, sack, sack_len, ..ACK }.sacked().collect() };
        let all = [7_100..7_250, 7_400..4_294_974_295, 7_000..7_001];
        for len in 0..=3 {
            assert_eq!(sacked(len), all[..usize::from(len)]);
        }
        assert_eq!(sacked(200), all);
    }

    #[test]
    fn a_packet_is_a_frame_of_its_length_flow_and_codepoint() {
        let body = Body::Datagram(Datagram { number: 0, sent_at: Time::ZERO });
        for (ecn, marked, capable) in [
            (Ecn::NotEct, Ecn::NotEct, false),
            (Ecn::Ect0, Ecn::Ce, true),
            (Ecn::Ect1, Ecn::Ce, true),
            (Ecn::Ce, Ecn::Ce, true),
        ] {
            let mut packet = Packet { flow: 3, bytes: 1234, ecn, body };
            assert_eq!((packet.bytes(), packet.flow(), packet.ecn()), (1234, 3, ecn));
            assert_eq!((packet.set_ce(), packet.ecn(), ecn.is_capable()), (capable, marked, capable));
        }
    }

    #[test]
    fn a_response_takes_the_place_of_the_third_block() {
        let mut ack = ACK;
        assert_eq!((ack.response(), ack.sacked().count()), (None, 3));
        let response = TcpResponse { rate: RateCode::MAX, ttl_difference: 229, nonce: Nonce::new(0x2aaa_aaaa) };
        ack.set_response(&response);
        assert_eq!((ack.response(), ack.sacked().count()), (Some(response), 2));
    }

    #[test]
    fn a_share_takes_the_place_of_the_third_block_too() {
        let mut ack = ACK;
        assert_eq!(ack.share(), None);
        ack.set_share(Rate::from_bps(5_120_999));
        assert_eq!((ack.share(), ack.response(), ack.sacked().count()), (Some(Rate::from_bps(5_120_000)), None, 2));
        let packet =
            Packet { flow: 0, bytes: 60, ecn: Ecn::NotEct, body: Body::Ack(Acknowledgement { sack_len: 0, ..ack }) };
        assert!(!packet.pure_ack().unwrap().plain, "no filter drops what routers told");
    }

    #[test]
    fn a_packet_is_one_cache_line() {
        assert_eq!(std::mem::size_of::<Packet>(), 64);
    }
}
