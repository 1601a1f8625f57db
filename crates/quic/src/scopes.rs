//! Link-local addresses of IPv6, and on which link they are.
//!
//! A stack checks that who answers a Retry is who was asked, by address and port: its token has no
//! room for the zone (RFC 4007 section 6), so that with one nobody would be who he was. It gets
//! addresses without, and what it sends gets the zone back in which its address was last seen.

use std::collections::HashMap;
use std::net::{Ipv6Addr, SocketAddr};

/// Addresses that are remembered; more forget all. Whoever is there still is seen again with his
/// next datagram.
const MOST: usize = 1024;

/// In which zone each address was seen last.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    zones: HashMap<Ipv6Addr, u32>,
}

/// An address without the zone, if it is a link-local one.
pub(crate) fn bare(mut address: SocketAddr) -> SocketAddr {
    if let SocketAddr::V6(six) = &mut address
        && six.ip().is_unicast_link_local()
    {
        six.set_scope_id(0);
    }
    address
}

impl Scopes {
    /// The address without its zone, which is remembered.
    pub(crate) fn leave(&mut self, address: SocketAddr) -> SocketAddr {
        if let SocketAddr::V6(six) = address
            && six.ip().is_unicast_link_local()
            && six.scope_id() != 0
        {
            if self.zones.len() >= MOST && !self.zones.contains_key(six.ip()) {
                self.zones.clear();
            }
            self.zones.insert(*six.ip(), six.scope_id());
        }
        bare(address)
    }

    /// The address with the zone in which it was seen last, if it was.
    pub(crate) fn enter(&self, mut address: SocketAddr) -> SocketAddr {
        if let SocketAddr::V6(six) = &mut address
            && let Some(zone) = self.zones.get(six.ip())
        {
            six.set_scope_id(*zone);
        }
        address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_local_address_gets_its_zone_back_and_no_other_has_one() {
        let mut scopes = Scopes::default();
        let there: SocketAddr = "[fe80::1%3]:5000".parse().unwrap();
        let bare = scopes.leave(there);
        assert_eq!((bare, scopes.enter(bare)), ("[fe80::1]:5000".parse().unwrap(), there));
        // It was seen elsewhere.
        scopes.leave("[fe80::1%4]:5000".parse().unwrap());
        assert_eq!(scopes.enter(bare), "[fe80::1%4]:5000".parse().unwrap());
        for other in ["192.0.2.1:1", "[2001:db8::1]:1", "[fe80::2]:1"] {
            let other: SocketAddr = other.parse().unwrap();
            assert_eq!((scopes.leave(other), scopes.enter(other)), (other, other));
        }
        // Many do not take more and more room.
        for number in 0..5000_u16 {
            scopes.leave(format!("[fe80::2:{number:x}%3]:1").parse().unwrap());
        }
        assert!(scopes.zones.len() <= MOST);
    }
}
