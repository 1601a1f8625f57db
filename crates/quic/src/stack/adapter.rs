//! What both stacks have in common, which is most: written once, in terms of what differs.

/// `adapter!(stack, Variant, identifier type)`: the `Endpoint` of a stack, and what its
/// `Connection` does, whose events are this variant of `ForConnection`. The stack's own file has
/// `Connection`, `Factory` (of controllers), `Tapped`, and the functions called here that are
/// defined nowhere here.
macro_rules! adapter {
    ($proto:ident, $variant:ident, $cid:ty) => {
        use std::fmt;
        use std::net::SocketAddr;
        use std::sync::Arc;
        use std::time::{Duration, Instant};

        use bytes::{Bytes, BytesMut as Datagram};
        use $proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
        use $proto::{
            AckFrequencyConfig, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent, EndpointConfig,
            IdleTimeout, InvalidCid, ReadError, StreamEvent, TransportConfig, VarInt,
        };

        use super::{
            ConnectionError, Dir, EcnCodepoint, Event, ForConnection, ForEndpoint, Handled, Made, STREAM_WINDOW,
            Settings, StreamId, Transmit, UNASKED,
        };
        use crate::failed;
        use crate::gate::Gates;
        use crate::resets::Identifiers;
        use crate::tls::{ClientHandshake, Identity, NAME};

        impl From<$proto::EcnCodepoint> for EcnCodepoint {
            fn from(ecn: $proto::EcnCodepoint) -> Self {
                match ecn {
                    $proto::EcnCodepoint::Ect0 => Self::Ect0,
                    $proto::EcnCodepoint::Ect1 => Self::Ect1,
                    $proto::EcnCodepoint::Ce => Self::Ce,
                }
            }
        }

        impl From<EcnCodepoint> for $proto::EcnCodepoint {
            fn from(ecn: EcnCodepoint) -> Self {
                match ecn {
                    EcnCodepoint::Ect0 => Self::Ect0,
                    EcnCodepoint::Ect1 => Self::Ect1,
                    EcnCodepoint::Ce => Self::Ce,
                }
            }
        }

        impl From<Dir> for $proto::Dir {
            fn from(dir: Dir) -> Self {
                match dir {
                    Dir::Bi => Self::Bi,
                    Dir::Uni => Self::Uni,
                }
            }
        }

        impl From<StreamId> for $proto::StreamId {
            fn from(stream: StreamId) -> Self {
                let number = u64::from(stream);
                let side = if number & 1 == 0 { $proto::Side::Client } else { $proto::Side::Server };
                Self::new(side, stream.dir().into(), number >> 2)
            }
        }

        impl From<$proto::StreamId> for StreamId {
            fn from(stream: $proto::StreamId) -> Self {
                u64::from(stream).into()
            }
        }

        impl From<$proto::ConnectionError> for ConnectionError {
            fn from(error: $proto::ConnectionError) -> Self {
                let words = error.to_string();
                match error {
                    $proto::ConnectionError::ConnectionClosed(_) => Self::ConnectionClosed(words),
                    $proto::ConnectionError::TransportError(_) => Self::TransportError(words),
                    $proto::ConnectionError::ApplicationClosed(close) => {
                        Self::ApplicationClosed { code: close.error_code.into(), reason: close.reason }
                    }
                    $proto::ConnectionError::Reset => Self::Reset,
                    $proto::ConnectionError::TimedOut => Self::TimedOut,
                    _ => Self::Other(words),
                }
            }
        }

        /// Time for which a client may use the token of a Retry at least: the stack's own.
        const TOKENS: Duration = Duration::from_secs(15);

        fn outgoing(transmit: &$proto::Transmit) -> Transmit {
            Transmit { to: transmit.destination, ecn: transmit.ecn.map(Into::into), size: transmit.size }
        }

        impl ConnectionIdGenerator for Identifiers {
            fn generate_cid(&mut self) -> ConnectionId {
                ConnectionId::new(&self.generate())
            }

            fn validate(&self, identifier: $cid) -> Result<(), InvalidCid> {
                self.made(&identifier).then_some(()).ok_or(InvalidCid)
            }

            fn cid_len(&self) -> usize {
                Self::LENGTH
            }

            fn cid_lifetime(&self) -> Option<Duration> {
                None
            }
        }

        fn transport(settings: &Settings, factory: &Arc<Factory>) -> TransportConfig {
            let mut transport = TransportConfig::default();
            let mut acks = AckFrequencyConfig::default();
            // Every packet is acknowledged at once.
            acks.ack_eliciting_threshold(VarInt::from_u32(0));
            acks.reordering_threshold(VarInt::from_u32(1));
            transport
                .ack_frequency_config(Some(acks))
                .congestion_controller_factory(Arc::clone(factory) as _)
                .enable_segmentation_offload(false)
                .initial_mtu(settings.mtu.max(1200))
                .stream_receive_window(VarInt::from_u32(settings.receive_window.min(STREAM_WINDOW)))
                .receive_window(VarInt::from_u32(settings.receive_window))
                .send_window(1 << 30)
                // What is lost is sent again piece by piece, not a packet of each stream in turn.
                .send_fairness(false)
                .max_concurrent_bidi_streams(VarInt::from_u32(1))
                .max_concurrent_uni_streams(VarInt::from_u32(256))
                .datagram_receive_buffer_size(None)
                .max_idle_timeout(IdleTimeout::try_from(settings.idle).ok());
            transport
        }

        /// The stack's endpoint.
        pub(super) struct Endpoint {
            inner: $proto::Endpoint,
            factory: Arc<Factory>,
            settings: Settings,
            /// Who wants a connection, until it is known whether it gets one.
            incoming: Option<$proto::Incoming>,
        }

        impl fmt::Debug for Endpoint {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "Endpoint({} connections)", self.inner.open_connections())
            }
        }

        impl Endpoint {
            pub(super) fn new(
                settings: Settings,
                identity: Option<&Identity>,
                gates: &Arc<Gates>,
            ) -> Result<Self, rustls::Error> {
                let factory = factory(gates);
                let mut config = EndpointConfig::default();
                config.rng_seed(settings.seed).min_reset_interval(settings.resets);
                // Where large packets do not pass in one direction they do not in the other: it
                // binds the other end, too.
                let largest = config.get_max_udp_payload_size().min(u64::from(settings.mtu.max(1200)));
                config
                    .max_udp_payload_size(u16::try_from(largest).unwrap_or(1200))
                    .map_err(|error| rustls::Error::General(error.to_string()))?;
                let server = match identity {
                    Some(identity) => {
                        let keys = identity.keys(&settings.place)?;
                        let identifiers = keys.identifiers();
                        config.reset_key(Arc::new(keys.resets));
                        identify(&mut config, move || Box::new(identifiers.clone()));
                        let crypto = QuicServerConfig::try_from(identity.server()?)
                            .map_err(|error| rustls::Error::General(error.to_string()))?;
                        let mut server = $proto::ServerConfig::with_crypto(watched(crypto, &factory));
                        let mut transport = transport(&settings, &factory);
                        transport.receive_window(VarInt::from_u32(settings.receive_window.min(UNASKED)));
                        server.transport_config(Arc::new(transport));
                        // Who is waited for so long may use what he was told as late.
                        server.retry_token_lifetime(settings.idle.max(TOKENS));
                        // To where whoever drives it admits clients.
                        server.migration(true);
                        Some(Arc::new(server))
                    }
                    None => None,
                };
                Ok(Self { inner: endpoint(config, server), factory, settings, incoming: None })
            }

            fn made(&self, handle: ConnectionHandle, inner: $proto::Connection, now: Instant) -> Made {
                (handle.0, Box::new(Connection::new(inner, &self.factory, now)))
            }
        }

        impl super::Endpoint for Endpoint {
            fn connect(
                &mut self,
                now: Instant,
                handshake: ClientHandshake,
                to: SocketAddr,
            ) -> Result<Made, failed::ConnectError> {
                let ClientHandshake { config, tap } = handshake;
                let crypto = QuicClientConfig::try_from(config).map_err(failed::ConnectError::new)?;
                let crypto: Arc<dyn $proto::crypto::ClientConfig> = Arc::new(crypto);
                let taps = Taps { leaving: tap, arriving: arriving(&self.factory) };
                let mut client = $proto::ClientConfig::new(Tapped::client(taps, crypto));
                let mut transport = transport(&self.settings, &self.factory);
                // Of two connections one may have nothing to say for long, and so may an
                // application that is paced. One end is enough to keep both from being taken for
                // dead.
                transport.keep_alive_interval(Some(self.settings.keep_alive));
                client.transport_config(Arc::new(transport));
                let made = self.inner.connect(now, client, to, NAME).map_err(failed::ConnectError::new)?;
                Ok(self.made(made.0, made.1, now))
            }

            fn handle(
                &mut self,
                now: Instant,
                from: SocketAddr,
                ecn: Option<EcnCodepoint>,
                data: &[u8],
                answer: &mut Vec<u8>,
            ) -> Option<Handled> {
                let event = take_in(&mut self.inner, now, from, ecn.map(Into::into), Datagram::from(data), answer)?;
                Some(match event {
                    DatagramEvent::ConnectionEvent(handle, event) => {
                        Handled::For(handle.0, ForConnection::$variant(event))
                    }
                    DatagramEvent::NewConnection(incoming) => {
                        let proven = incoming.remote_address_validated() || !incoming.may_retry();
                        self.incoming = Some(incoming);
                        Handled::New { proven }
                    }
                    DatagramEvent::Response(transmit) => Handled::Answer(outgoing(&transmit)),
                })
            }

            fn open_connections(&self) -> usize {
                self.inner.open_connections()
            }

            fn refuse(&mut self, answer: &mut Vec<u8>) -> Option<Transmit> {
                Some(outgoing(&self.inner.refuse(self.incoming.take()?, answer)))
            }

            fn retry(&mut self, answer: &mut Vec<u8>) -> Option<Transmit> {
                self.inner.retry(self.incoming.take()?, answer).ok().as_ref().map(outgoing)
            }

            fn accept(&mut self, now: Instant, answer: &mut Vec<u8>) -> Result<Made, Option<Transmit>> {
                let incoming = self.incoming.take().ok_or(None)?;
                match self.inner.accept(incoming, now, answer, None) {
                    Ok((handle, connection)) => Ok(self.made(handle, connection, now)),
                    Err(error) => Err(error.response.as_ref().map(outgoing)),
                }
            }

            fn forget(&mut self, number: usize) {
                let _ = self.inner.handle_event(ConnectionHandle(number), $proto::EndpointEvent::drained());
            }

            fn handle_event(&mut self, number: usize, event: ForEndpoint) -> Option<ForConnection> {
                let ForEndpoint::$variant(event) = event else { return None };
                self.inner.handle_event(ConnectionHandle(number), event).map(ForConnection::$variant)
            }
        }

        impl fmt::Debug for Connection {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "Connection({:?})", super::Connection::remote(self))
            }
        }

        impl super::Connection for Connection {
            fn handle_event(&mut self, event: ForConnection) {
                if let ForConnection::$variant(event) = event {
                    self.inner.handle_event(event);
                    self.changed();
                }
            }

            fn poll_endpoint_events(&mut self) -> Option<ForEndpoint> {
                self.inner.poll_endpoint_events().map(ForEndpoint::$variant)
            }

            fn handle_timeout(&mut self, now: Instant) {
                self.inner.handle_timeout(now);
                self.changed();
            }

            fn poll_timeout(&self) -> Option<Instant> {
                self.timeout()
            }

            fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
                let transmit = self.one_datagram(now, buffer);
                self.changed();
                transmit.as_ref().map(outgoing)
            }

            fn poll(&mut self) -> Option<Event> {
                while let Some(event) = self.inner.poll() {
                    return Some(match event {
                        $proto::Event::Connected => Event::Connected,
                        $proto::Event::ConnectionLost { reason } => Event::Lost(reason.into()),
                        $proto::Event::Stream(StreamEvent::Opened { .. } | StreamEvent::Readable { .. }) => {
                            Event::Readable
                        }
                        $proto::Event::Stream(StreamEvent::Finished { id }) => Event::Finished(id.into()),
                        other if Self::confirms(&other) => Event::Confirmed,
                        _ => continue,
                    });
                }
                self.is_newly_confirmed().then_some(Event::Confirmed)
            }

            fn open(&mut self, dir: Dir) -> Option<StreamId> {
                self.inner.streams().open(dir.into()).map(Into::into)
            }

            fn accept(&mut self, dir: Dir) -> Option<StreamId> {
                self.inner.streams().accept(dir.into()).map(Into::into)
            }

            fn prefer(&mut self, stream: StreamId) {
                let _ = self.inner.send_stream(stream.into()).set_priority(1);
            }

            fn write(&mut self, stream: StreamId, data: &[u8]) -> usize {
                self.inner.send_stream(stream.into()).write(data).unwrap_or(0)
            }

            fn finish(&mut self, stream: StreamId) {
                let _ = self.inner.send_stream(stream.into()).finish();
            }

            fn abandon(&mut self, stream: StreamId) {
                let _ = self.inner.send_stream(stream.into()).reset(0u32.into());
            }

            fn read(&mut self, stream: StreamId, take: &mut dyn FnMut(Bytes)) -> (bool, bool) {
                let mut receive = self.inner.recv_stream(stream.into());
                let Ok(mut chunks) = receive.read(true) else { return (true, false) };
                let over = loop {
                    match chunks.next(usize::MAX) {
                        Ok(Some(chunk)) => take(chunk.bytes),
                        Ok(None) | Err(ReadError::Reset(_)) => break true,
                        Err(ReadError::Blocked) => break false,
                    }
                };
                (over, chunks.finalize().should_transmit())
            }

            fn widen(&mut self, window: u32) {
                self.inner.set_receive_window(VarInt::from_u32(window));
                self.changed();
            }

            fn ping(&mut self) {
                self.inner.ping();
            }

            fn close(&mut self, now: Instant, code: u32, reason: Bytes) {
                self.inner.close(now, VarInt::from_u32(code), reason);
                self.changed();
            }

            fn is_closed(&self) -> bool {
                self.inner.is_closed()
            }

            fn is_drained(&self) -> bool {
                self.inner.is_drained()
            }

            fn rtt(&self) -> Duration {
                self.smoothed()
            }

            fn mtu(&self) -> u16 {
                self.inner.current_mtu()
            }

            fn remote(&self) -> Option<SocketAddr> {
                self.place()
            }

            fn challenges(&mut self) -> u64 {
                self.inner.stats().frame_rx.path_challenge
            }

            fn peer_identity(&self) -> Option<Box<dyn Any>> {
                self.inner.crypto_session().peer_identity()
            }
        }
    };
}
