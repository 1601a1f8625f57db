//! A client that has another address or port than before (RFC 9000 section 9).
//!
//! The stack sends it no more than three times what it sends, until it has answered a challenge
//! there (section 8.2), and tells nobody when it has. But when the stack sends more than that, it
//! has. Until then the connection remembers where its client was before, and from then on it is
//! another path: with another address nothing is known of it (section 9.4).

use std::net::SocketAddr;

/// Bytes that are sent for one that was received, at most (RFC 9000 section 8).
const AMPLIFICATION: u64 = 3;

/// A path whose client has not shown that it is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unproven {
    /// Where it was when it was known last.
    before: SocketAddr,
    received: u64,
    sent: u64,
}

impl Unproven {
    /// From a path of which all is known, or from another one.
    pub(crate) fn new(before: SocketAddr, earlier: Option<Self>) -> Self {
        Self { before: earlier.map_or(before, |earlier| earlier.before), received: 0, sent: 0 }
    }

    /// Where the client was when it was known last.
    pub(crate) fn before(&self) -> SocketAddr {
        self.before
    }

    /// A datagram of so many bytes was handled.
    pub(crate) fn received(&mut self, bytes: usize) {
        self.received = self.received.saturating_add(bytes as u64);
    }

    /// The stack sends so many bytes there. True if it would not, were the path not proven.
    pub(crate) fn proves(&mut self, bytes: usize) -> bool {
        let may = self.sent < self.received.saturating_mul(AMPLIFICATION);
        self.sent = self.sent.saturating_add(bytes as u64);
        !may
    }
}

/// What a change of address means.
pub(crate) fn is_another_path(before: SocketAddr, now: SocketAddr) -> bool {
    before.ip() != now.ip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_proven_by_more_than_three_times_what_arrived() {
        let [one, other, third] = ["10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"].map(|text| text.parse().unwrap());
        let mut path = Unproven::new(one, None);
        path.received(100);
        assert!(!path.proves(299));
        // The stack lets a whole packet go as long as one byte is allowed.
        assert!(!path.proves(1452));
        assert!(path.proves(1));
        path.received(10_000);
        assert!(!path.proves(1));
        let next = Unproven::new(other, Some(path));
        assert_eq!((next.before(), Unproven::new(third, None).before()), (one, third));
    }
}
