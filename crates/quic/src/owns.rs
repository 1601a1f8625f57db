//! Which of its addresses a host answers from.
//!
//! A socket that is bound to none of them (`0.0.0.0`) sends from that of the route. Who asked
//! another one would take no answer from there: it is answered from the one that it asked.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

/// Peers that are remembered; more forget all. Whoever is there still is seen again with his next
/// datagram.
const MOST: usize = 16_384;

/// To which address of this host the last datagram of each peer came.
#[derive(Debug, Default)]
pub(crate) struct Owns(HashMap<SocketAddr, IpAddr>);

impl Owns {
    /// A datagram of this peer came to this address.
    pub(crate) fn note(&mut self, peer: SocketAddr, own: IpAddr) {
        if self.0.get(&peer) == Some(&own) {
            return;
        }
        if self.0.len() >= MOST && !self.0.contains_key(&peer) {
            self.0.clear();
        }
        self.0.insert(peer, own);
    }

    /// From where this peer is to be answered, if that is known.
    pub(crate) fn of(&self, peer: SocketAddr) -> Option<IpAddr> {
        self.0.get(&peer).copied()
    }

    /// The host does not have this address any more.
    pub(crate) fn forget(&mut self, peer: SocketAddr) {
        self.0.remove(&peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 9], port))
    }

    #[test]
    fn the_address_that_was_asked_last_answers() {
        let [one, other] = [1, 2].map(|last| IpAddr::from([198, 51, 100, last]));
        let mut owns = Owns::default();
        assert_eq!(owns.of(peer(1)), None);
        owns.note(peer(1), one);
        owns.note(peer(2), other);
        assert_eq!([1, 2].map(|port| owns.of(peer(port))), [Some(one), Some(other)]);
        owns.note(peer(1), other);
        assert_eq!(owns.of(peer(1)), Some(other));
        owns.forget(peer(1));
        assert_eq!([1, 2].map(|port| owns.of(peer(port))), [None, Some(other)]);
    }

    #[test]
    fn who_says_to_be_many_is_forgotten_not_kept() {
        let own = IpAddr::from([198, 51, 100, 1]);
        let mut owns = Owns::default();
        for port in 0..=u16::MAX {
            owns.note(peer(port), own);
            assert!(owns.0.len() <= MOST);
        }
        assert_eq!(owns.of(peer(u16::MAX)), Some(own));
        // One that is there already forgets nobody.
        let before = owns.0.len();
        owns.note(peer(u16::MAX), IpAddr::from([198, 51, 100, 2]));
        assert_eq!(owns.0.len(), before);
    }
}
