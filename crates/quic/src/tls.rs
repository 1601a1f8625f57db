//! Who the server is: a certificate of its own, and a client that knows its fingerprint.

use std::fmt;
use std::sync::Arc;

use rustls::DigitallySignedStruct;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};

use crate::resets::ServerKeys;
use crate::tap::Tap;

/// The name in certificates, which says nothing: the fingerprint does.
pub(crate) const NAME: &str = "flowstart";
/// The protocol's name in the handshake.
const PROTOCOL: &[u8] = b"flowstart/1";

/// SHA-256 of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Of a certificate in DER.
    #[must_use]
    pub fn of(certificate: &[u8]) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A text that is no [`Fingerprint`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseFingerprintError {
    text: String,
}

impl fmt::Display for ParseFingerprintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a fingerprint: 64 hexadecimal digits, as `flowstart serve` prints", self.text)
    }
}

impl std::error::Error for ParseFingerprintError {}

impl std::str::FromStr for Fingerprint {
    type Err = ParseFingerprintError;

    fn from_str(text: &str) -> Result<Self, ParseFingerprintError> {
        let wrong = || ParseFingerprintError { text: text.to_owned() };
        let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b':').collect();
        if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Why there is no new [`Identity`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityError {
    message: String,
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for IdentityError {}

/// A server's certificate and key.
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.fingerprint())
    }
}

impl Identity {
    /// A new one, which signs itself.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub fn generate() -> Result<Self, IdentityError> {
        let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()])
            .map_err(|error| IdentityError { message: error.to_string() })?;
        Ok(Self { certificate: made.cert.der().clone(), key: made.signing_key.serialize_der() })
    }

    /// What clients pin.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.certificate)
    }

    /// The identity as bytes for a file that nobody else may read.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let length = u32::try_from(self.certificate.len()).unwrap_or(u32::MAX);
        [&length.to_be_bytes()[..], &self.certificate, &self.key].concat()
    }

    /// What [`to_bytes`](Self::to_bytes) made; `None` if it is something else.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (certificate, key) = rest.split_at_checked(length)?;
        let identity = Self { certificate: CertificateDer::from(certificate.to_vec()), key: key.to_vec() };
        identity.server().is_ok().then_some(identity)
    }

    /// The keys of a server that has this identity, and listens at this place.
    pub(crate) fn keys(&self, place: &str) -> Result<ServerKeys, rustls::Error> {
        ServerKeys::derive(&self.key, place).ok_or_else(|| rustls::Error::General("no key can be derived".to_owned()))
    }

    /// What its server says in handshakes.
    pub(crate) fn server(&self) -> Result<rustls::ServerConfig, rustls::Error> {
        let key = PrivatePkcs8KeyDer::from(self.key.clone());
        let mut config = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key.into())?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(config)
    }
}

/// What a client says in handshakes, and whether somebody looks into what it sends.
#[derive(Clone, Debug)]
pub struct ClientHandshake {
    pub(crate) config: rustls::ClientConfig,
    pub(crate) tap: Option<Tap>,
}

/// A client that accepts the certificate with this fingerprint, or any if there is none; with a
/// look into what it sends, if that is wanted.
///
/// # Errors
/// If the cryptography is not available, which does not happen.
pub(crate) fn client(pinned: Option<Fingerprint>, tap: Option<&Tap>) -> Result<ClientHandshake, rustls::Error> {
    let provider = provider();
    let verifier = Arc::new(Pinned { fingerprint: pinned, provider: Arc::clone(&provider) });
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(ClientHandshake { config, tap: tap.cloned() })
}

/// Compares the fingerprint, and has the handshake's signature checked with the certificate's key.
#[derive(Debug)]
struct Pinned {
    fingerprint: Option<Fingerprint>,
    provider: Arc<CryptoProvider>,
}

/// What the handshake fails with if the fingerprint is another one.
pub(crate) const WRONG_FINGERPRINT: &str = "the certificate has another fingerprint";

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.fingerprint {
            Some(pinned) if pinned != Fingerprint::of(end_entity) => {
                Err(rustls::Error::General(format!("{WRONG_FINGERPRINT}: {}", Fingerprint::of(end_entity))))
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("QUIC has TLS 1.3".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(
            message,
            cert,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_as_it_is_printed() {
        let fingerprint = Fingerprint::of(b"abc");
        // FIPS 180-2, appendix B.1.
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(fingerprint.to_string(), digest);
        assert_eq!(digest.parse(), Ok(fingerprint));
        assert!(digest[1..].parse::<Fingerprint>().is_err());
        assert!("zz".repeat(32).parse::<Fingerprint>().is_err());
    }

    #[test]
    fn an_identity_survives_a_file_and_rubbish_is_none() {
        let identity = Identity::generate().unwrap();
        let bytes = identity.to_bytes();
        assert_eq!(Identity::from_bytes(&bytes).map(|read| read.fingerprint()), Some(identity.fingerprint()));
        for wrong in [&bytes[..3], &bytes[..40], b"", &[0xff; 64]] {
            assert!(Identity::from_bytes(wrong).is_none());
        }
    }
}
