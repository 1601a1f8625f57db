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

use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{hkdf, hmac};

/// Random bytes of an identifier, and bytes that say that this server made it: what is no packet
/// of a client is not answered.
const RANDOM: usize = 5;
const MARK: usize = 3;

/// The keys of one server.
#[derive(Clone)]
pub(crate) struct ServerKeys {
    pub(crate) resets: hmac::Key,
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

    /// What makes identifiers with them.
    pub(crate) fn identifiers(&self) -> Identifiers {
        Identifiers(self.identifiers.clone())
    }
}

/// Makes identifiers, and knows those that were made with the same key.
#[derive(Clone)]
pub(crate) struct Identifiers(hmac::Key);

impl Identifiers {
    /// Bytes of an identifier.
    pub(crate) const LENGTH: usize = RANDOM + MARK;

    fn mark(&self, random: &[u8]) -> [u8; MARK] {
        let mut mark = [0; MARK];
        mark.copy_from_slice(&hmac::sign(&self.0, random).as_ref()[..MARK]);
        mark
    }

    /// A new identifier.
    pub(crate) fn generate(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        let (random, mark) = bytes.split_at_mut(RANDOM);
        // A system without random numbers has no TLS either, and no connection gets so far.
        let _ = SystemRandom::new().fill(random);
        mark.copy_from_slice(&self.mark(random));
        bytes
    }

    /// Whether an identifier was made with the key.
    pub(crate) fn made(&self, identifier: &[u8]) -> bool {
        identifier.len() == Self::LENGTH && identifier[RANDOM..] == self.mark(&identifier[..RANDOM])
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
        let keys = |secret: &[u8]| ServerKeys::derive(secret, "").unwrap().identifiers();
        let identifiers: Vec<_> = (0..1000).map(|_| keys(b"a").generate()).collect();
        assert!(identifiers.iter().all(|each| keys(b"a").made(each)));
        assert!(identifiers.iter().filter(|each| keys(b"b").made(*each)).count() < 2);
        let mut other = identifiers[0];
        other[7] ^= 1;
        assert!(!keys(b"a").made(&other));
        assert!(!keys(b"a").made(&identifiers[0][..7]));
        let different: std::collections::HashSet<_> = identifiers.iter().collect();
        assert_eq!(different.len(), 1000);
    }
}
