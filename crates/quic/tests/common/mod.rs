//! What tests over real and over imagined links have in common.

use flowstart_quic::message::{Direction, Request, VERSION};

/// A request for a transfer of this size; with two connections for a start that looks for queues of
/// its own.
pub(crate) fn request(direction: Direction, size: u64, contestant: (&str, &str)) -> Request {
    Request {
        version: VERSION,
        session: 7,
        connections: if contestant.0.ends_with("probe") { 2 } else { 1 },
        direction,
        size: Some(size),
        nanos: None,
        streams: 1,
        start: contestant.0.to_owned(),
        avoidance: contestant.1.to_owned(),
        file: None,
        look: false,
        paced: None,
    }
}
