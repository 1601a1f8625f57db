//! Which packets count.

use flowstart_network::Packet;
use flowstart_network::packet::Body;

/// Payload bytes of a data packet or datagram; `None` for what carries none: ACKs and handshakes.
#[inline]
pub(crate) fn payload(packet: &Packet) -> Option<u32> {
    match &packet.body {
        Body::Segment(segment) => (segment.payload > 0).then_some(segment.payload),
        Body::Datagram(_) => Some(u32::from(packet.bytes)),
        Body::Ack(_) => None,
    }
}
