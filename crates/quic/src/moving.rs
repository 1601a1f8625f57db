//! A client that has another address or port than before (RFC 9000 section 9).
//!
//! The stack sends it no more than three times what it sends, until it has answered a challenge
//! there (section 8.2), and tells nobody when it has. But when the stack sends more than that, it
//! has. Until then the connection remembers where its client was before, and from then on it is
//! another path: with another address nothing is known of it (section 9.4).
//!
//! As long as one byte is allowed the stack sends a whole datagram, though, 1200 bytes for an ACK
//! of 42: whoever changes a forged address with every packet would have 28 times as much sent to
//! others as he sends. So what is beyond three times must have been received before, anywhere, and
//! nothing of that counts twice ([`Credit`]).

use std::net::SocketAddr;

/// Bytes that are sent for one that was received, at most (RFC 9000 section 8).
const AMPLIFICATION: u64 = 3;

/// Bytes that a connection may have saved up, at most: eight challenges, for a router may change
/// addresses several times, and who has sent much may not have that much sent elsewhere at once.
const MOST_CREDIT: u64 = 8 * 1200;

/// What may be sent beyond what a path itself allows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Credit(u64);

impl Credit {
    /// A datagram of so many bytes was received, from wherever.
    pub(crate) fn received(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(AMPLIFICATION * bytes as u64).min(MOST_CREDIT);
    }

    /// So many bytes leave for a path that is not proven; false if they must not.
    pub(crate) fn pays(&mut self, bytes: u64) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

/// What becomes of a datagram that the stack sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It leaves, and the stack would not send it if the path were not proven.
    Proves,
    Leaves,
    /// It is lost here.
    TooMuch,
}

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

    /// The stack sends so many bytes there.
    pub(crate) fn sends(&mut self, bytes: usize, credit: &mut Credit) -> Verdict {
        let most = self.received.saturating_mul(AMPLIFICATION);
        let stack_may = self.sent < most;
        self.sent = self.sent.saturating_add(bytes as u64);
        match stack_may {
            false => Verdict::Proves,
            // What the path allows is of what was received as well.
            true if credit.pays(bytes as u64) || self.sent <= most => Verdict::Leaves,
            true => Verdict::TooMuch,
        }
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
        let mut credit = Credit(1452);
        path.received(100);
        assert_eq!(path.sends(299, &mut Credit(0)), Verdict::Leaves);
        // The stack lets a whole packet go as long as one byte is allowed.
        assert_eq!(path.sends(1452, &mut credit), Verdict::Leaves);
        assert_eq!(path.sends(1, &mut credit), Verdict::Proves);
        path.received(10_000);
        assert_eq!(path.sends(1, &mut credit), Verdict::Leaves);
        let next = Unproven::new(other, Some(path));
        assert_eq!((next.before(), Unproven::new(third, None).before()), (one, third));
    }

    #[test]
    fn who_changes_a_forged_address_with_every_packet_gets_three_times_what_he_sends_there() {
        let [one, other] = ["10.0.0.1:1", "10.0.0.2:1"].map(|text| text.parse().unwrap());
        let mut credit = Credit::default();
        credit.received(1 << 30);
        let (mut received, mut sent) = (0, 0);
        for _ in 0..10_000 {
            let mut path = Unproven::new(one, Some(Unproven::new(other, None)));
            path.received(42);
            credit.received(42);
            received += 42;
            if path.sends(1200, &mut credit) != Verdict::TooMuch {
                sent += 1200;
            }
        }
        assert!((3 * received..=3 * received + MOST_CREDIT + 1200).contains(&sent), "{sent} {received}");
    }
}
