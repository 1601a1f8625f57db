//! A look into packets before they are encrypted. The stack says when packets leave, not what is in
//! them; but it asks the keys to encrypt each, and so they are told which bytes of which streams it
//! carries. Nothing that is sent changes.

use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use noq_proto::crypto::{ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys};
use noq_proto::crypto::{PacketKey, Session};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, PathId, Side, TransportError};

use crate::frames::streams;

/// Bytes of a stream in a packet.
pub(crate) type Carried = (u64, Range<u64>);

/// What packets of one connection carry; its copies are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tap {
    carried: Arc<Mutex<Vec<Carried>>>,
}

impl Tap {
    /// The streams and their bytes in packets that were encrypted since the last time.
    pub(crate) fn take(&self) -> Vec<Carried> {
        std::mem::take(&mut *self.carried.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn packet(&self, payload: &[u8]) {
        let mut carried = self.carried.lock().unwrap_or_else(PoisonError::into_inner);
        streams(payload, &mut |stream, range| carried.push((stream, range)));
    }

    /// A client's configuration with this tap in every session.
    pub(crate) fn client(&self, inner: Arc<dyn ClientConfig>) -> Arc<dyn ClientConfig> {
        Arc::new(Tapped { inner, tap: self.clone() })
    }

    fn key(&self, inner: Box<dyn PacketKey>) -> Box<dyn PacketKey> {
        Box::new(Tapped { inner, tap: self.clone() })
    }
}

/// Something of the stack's, with a tap.
struct Tapped<T> {
    inner: T,
    tap: Tap,
}

impl ClientConfig for Tapped<Arc<dyn ClientConfig>> {
    fn start_session(
        &self,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let inner = self.inner.start_session(version, server_name, params)?;
        Ok(Box::new(Tapped { inner, tap: self.tap.clone() }))
    }
}

impl Session for Tapped<Box<dyn Session>> {
    fn initial_keys(&self, dst_cid: ConnectionId, side: Side) -> Keys {
        self.inner.initial_keys(dst_cid, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.inner.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(buf)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        // Those of the handshake, then those of data.
        let Keys { header, packet } = self.inner.write_handshake(buf)?;
        let packet = KeyPair { local: self.tap.key(packet.local), remote: packet.remote };
        Some(Keys { header, packet })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let KeyPair { local, remote } = self.inner.next_1rtt_keys()?;
        Some(KeyPair { local: self.tap.key(local), remote })
    }

    fn is_valid_retry(&self, orig_dst_cid: ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}

impl PacketKey for Tapped<Box<dyn PacketKey>> {
    fn encrypt(&self, path_id: PathId, packet: u64, buf: &mut [u8], header_len: usize) {
        let end = buf.len().saturating_sub(self.inner.tag_len());
        self.tap.packet(buf.get(header_len..end).unwrap_or_default());
        self.inner.encrypt(path_id, packet, buf, header_len);
    }

    fn decrypt(&self, path_id: PathId, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        self.inner.decrypt(path_id, packet, header, payload)
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}
