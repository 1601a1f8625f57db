//! How a [`Tap`](crate::tap::Tap) gets between a stack and its keys: written once for both, whose
//! traits differ in how identifiers are passed and in whether keys know a path.

/// `tapped!(stack, identifier type, path: Type)`; the last is absent where keys know no path. What
/// makes sessions of a configuration is left to the stack's own file.
macro_rules! tapped {
    ($proto:ident, $cid:ty $(, $path:ident: $of:ty)?) => {
        use std::any::Any;

        use bytes::BytesMut;
        use $proto::crypto::{
            CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session,
        };
        use $proto::{ConnectError, TransportError, transport_parameters::TransportParameters};

        use crate::tap::Tap;

        /// Something of the stack's, with a tap.
        struct Tapped<T> {
            inner: T,
            tap: Tap,
        }

        impl Tapped<()> {
            /// A client's configuration with a tap in every session.
            fn client(
                tap: Tap,
                inner: Arc<dyn $proto::crypto::ClientConfig>,
            ) -> Arc<dyn $proto::crypto::ClientConfig> {
                Arc::new(Tapped { inner, tap })
            }
        }

        impl<T> Tapped<T> {
            fn key(&self, inner: Box<dyn PacketKey>) -> Box<dyn PacketKey> {
                Box::new(Tapped { inner, tap: self.tap.clone() })
            }

            fn session(&self, inner: Box<dyn Session>) -> Box<dyn Session> {
                Box::new(Tapped { inner, tap: self.tap.clone() })
            }
        }

        impl Session for Tapped<Box<dyn Session>> {
            fn initial_keys(&self, dst_cid: $cid, side: $proto::Side) -> Keys {
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
                let packet = KeyPair { local: self.key(packet.local), remote: packet.remote };
                Some(Keys { header, packet })
            }

            fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
                let KeyPair { local, remote } = self.inner.next_1rtt_keys()?;
                Some(KeyPair { local: self.key(local), remote })
            }

            fn is_valid_retry(&self, orig_dst_cid: $cid, header: &[u8], payload: &[u8]) -> bool {
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
            fn encrypt(&self, $($path: $of,)? packet: u64, buf: &mut [u8], header_len: usize) {
                let end = buf.len().saturating_sub(self.inner.tag_len());
                self.tap.packet(buf.get(header_len..end).unwrap_or_default());
                self.inner.encrypt($($path,)? packet, buf, header_len);
            }

            fn decrypt(
                &self,
                $($path: $of,)?
                packet: u64,
                header: &[u8],
                payload: &mut BytesMut,
            ) -> Result<(), CryptoError> {
                self.inner.decrypt($($path,)? packet, header, payload)
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
    };
}
