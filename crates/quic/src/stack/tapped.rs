//! How [`Taps`](crate::tap::Taps) get between a stack and its keys: written once for both, whose
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

        use crate::tap::Taps;

        /// Something of the stack's, with a tap.
        struct Tapped<T> {
            inner: T,
            taps: Taps,
        }

        impl Tapped<()> {
            /// A client's configuration with these taps in every session.
            fn client(
                taps: Taps,
                inner: Arc<dyn $proto::crypto::ClientConfig>,
            ) -> Arc<dyn $proto::crypto::ClientConfig> {
                let Taps { leaving: None, arriving: None } = taps else { return Arc::new(Tapped { inner, taps }) };
                inner
            }
        }

        impl<T> Tapped<T> {
            fn key(&self, inner: Box<dyn PacketKey>, wanted: bool) -> Box<dyn PacketKey> {
                if wanted { Box::new(Tapped { inner, taps: self.taps.clone() }) } else { inner }
            }

            fn keys(&self, pair: KeyPair<Box<dyn PacketKey>>) -> KeyPair<Box<dyn PacketKey>> {
                KeyPair {
                    local: self.key(pair.local, self.taps.leaving.is_some()),
                    remote: self.key(pair.remote, self.taps.arriving.is_some()),
                }
            }

            fn session(&self, inner: Box<dyn Session>) -> Box<dyn Session> {
                Box::new(Tapped { inner, taps: self.taps.clone() })
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
                Some(Keys { header, packet: self.keys(packet) })
            }

            fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
                let pair = self.inner.next_1rtt_keys()?;
                Some(self.keys(pair))
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
                if let Some(tap) = &self.taps.leaving {
                    let end = buf.len().saturating_sub(self.inner.tag_len());
                    tap.packet(buf.get(header_len..end).unwrap_or_default());
                }
                self.inner.encrypt($($path,)? packet, buf, header_len);
            }

            fn decrypt(
                &self,
                $($path: $of,)?
                packet: u64,
                header: &[u8],
                payload: &mut BytesMut,
            ) -> Result<(), CryptoError> {
                self.inner.decrypt($($path,)? packet, header, payload)?;
                if let Some(tap) = &self.taps.arriving {
                    tap.packet(payload);
                }
                Ok(())
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
