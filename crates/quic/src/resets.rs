//! What ends connections of a server that does not know them any more (RFC 9000 section 10.3).
//!
//! A server that is killed and started anew has forgotten its clients. It may tell them with a
//! token that belongs to the connection identifier of their packets, if it can work the token out
//! again: from a key that it has from its identity, which is kept. Nobody else knows the key.
//!
//! - Tokens and identifiers have keys of their own, so nothing that is seen of one says anything of
//!   the other.
//! - Both keys are those of one identity at one place. Otherwise a server elsewhere, which does not
//!   know the connection, would give the token to anybody who repeats a packet there (section
//!   21.11).
//! - An identifier that was reset must not be given again (section 10.3.2). Of the 2^40 that there
//!   are a server that tells a thousand tokens a second, which is the most it does, tells one half
//!   in 17 years.

use std::sync::Arc;
use std::time::Duration;

use noq_proto::{ConnectionId, ConnectionIdGenerator, EndpointConfig, InvalidCid};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{hkdf, hmac};

/// Random bytes of an identifier, and bytes that say that this server made it: what is no packet
/// of a client is not answered.
const RANDOM: usize = 5;
const MARK: usize = 3;

/// The keys of one server.
#[derive(Clone)]
pub(crate) struct ServerKeys {
    resets: hmac::Key,
    identifiers: hmac::Key,
}

impl ServerKeys {
    /// Those of a server with this secret at this place.
    pub(crate) fn derive(secret: &[u8], place: &str) -> Option<Self> {
        let secret = hkdf::Salt::new(hkdf::HKDF_SHA256, b"flowstart serve").extract(secret);
        let key = |purpose: &'static [u8]| {
            let mut bytes = [0; 32];
            let parts = [purpose, b"\0", place.as_bytes()];
            secret.expand(&parts, hkdf::HKDF_SHA256).ok()?.fill(&mut bytes).ok()?;
            Some(hmac::Key::new(hmac::HMAC_SHA256, &bytes))
        };
        Some(Self { resets: key(b"stateless reset")?, identifiers: key(b"connection identifier")? })
    }

    /// An endpoint has them.
    pub(crate) fn hand_to(self, config: &mut EndpointConfig) {
        let Self { resets, identifiers } = self;
        config.reset_key(Arc::new(resets));
        config.cid_generator(Arc::new(move || Box::new(Identifiers(identifiers.clone()))));
    }
}

/// Makes identifiers, and knows those that were made with the same key.
struct Identifiers(hmac::Key);

impl Identifiers {
    fn mark(&self, random: &[u8]) -> [u8; MARK] {
        let mut mark = [0; MARK];
        mark.copy_from_slice(&hmac::sign(&self.0, random).as_ref()[..MARK]);
        mark
    }
}

impl ConnectionIdGenerator for Identifiers {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut bytes = [0; RANDOM + MARK];
        let (random, mark) = bytes.split_at_mut(RANDOM);
        // A system without random numbers has no TLS either, and no connection gets so far.
        let _ = SystemRandom::new().fill(random);
        mark.copy_from_slice(&self.mark(random));
        ConnectionId::new(&bytes)
    }

    fn validate(&self, identifier: ConnectionId) -> Result<(), InvalidCid> {
        let ours = identifier.len() == RANDOM + MARK && identifier[RANDOM..] == self.mark(&identifier[..RANDOM]);
        ours.then_some(()).ok_or(InvalidCid)
    }

    fn cid_len(&self) -> usize {
        RANDOM + MARK
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(secret: &[u8], place: &str) -> Vec<u8> {
        hmac::sign(&ServerKeys::derive(secret, place).unwrap().resets, b"12345678").as_ref().to_vec()
    }

    #[test]
    fn tokens_are_those_of_one_secret_at_one_place() {
        assert_eq!(tokens(b"a", "b"), tokens(b"a", "b"));
        for (secret, place) in [(&b"b"[..], "b"), (b"a", "c"), (b"a", ""), (b"ab", "")] {
            assert_ne!(tokens(secret, place), tokens(b"a", "b"), "{place}");
        }
        let keys = ServerKeys::derive(b"a", "b").unwrap();
        assert_ne!(hmac::sign(&keys.resets, b"1").as_ref(), hmac::sign(&keys.identifiers, b"1").as_ref());
    }

    #[test]
    fn identifiers_are_known_after_a_new_start_and_to_nobody_else() {
        let made = |secret: &[u8]| Identifiers(ServerKeys::derive(secret, "").unwrap().identifiers);
        let identifiers: Vec<_> = (0..1000).map(|_| made(b"a").generate_cid()).collect();
        assert!(identifiers.iter().all(|each| made(b"a").validate(*each).is_ok()));
        assert!(identifiers.iter().filter(|each| made(b"b").validate(**each).is_ok()).count() < 2);
        let mut other = identifiers[0].to_vec();
        other[7] ^= 1;
        assert!(made(b"a").validate(ConnectionId::new(&other)).is_err());
        assert!(made(b"a").validate(ConnectionId::new(&identifiers[0][..7])).is_err());
        let different: std::collections::HashSet<_> = identifiers.iter().map(|each| each.to_vec()).collect();
        assert_eq!(different.len(), 1000);
    }
}
