//! What the tests of this crate share.

use flowstart_network::packet::Segment;
use flowstart_quick_start::Carried;
use flowstart_units::Time;

/// Bytes of a full segment's payload.
pub(crate) const MSS: u64 = 1448;

/// The full segment with this number, counted from 0, which left at this time; nothing before it is
/// unacknowledged.
pub(crate) fn segment(index: u64, sent_at: Time) -> Segment {
    Segment {
        seq: index * MSS,
        number: index,
        sent_at,
        unacknowledged: 0,
        payload: MSS as u32,
        retransmission: false,
        push: false,
        fin: false,
        cwr: false,
        syn: false,
        quick_start: Carried::NONE,
    }
}
