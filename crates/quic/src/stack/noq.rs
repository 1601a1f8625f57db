//! `noq-proto`: it tells its controller the number of every packet that is sent, acknowledged or
//! deemed lost, and when packets deemed lost arrive after all.

use std::num::NonZeroUsize;

use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use noq_proto::{FourTuple, PathId, RttEstimator};

use crate::gate::{Gate, Told};
use crate::tap::Acknowledged;

adapter!(noq_proto, Noq, ConnectionId);
tapped!(noq_proto, ConnectionId, path_id: PathId);

type Factory = Gates;

fn factory(gates: &Arc<Gates>) -> Arc<Factory> {
    Arc::clone(gates)
}

fn endpoint(config: EndpointConfig, server: Option<Arc<noq_proto::ServerConfig>>) -> noq_proto::Endpoint {
    noq_proto::Endpoint::new(Arc::new(config), server, true)
}

fn identify(config: &mut EndpointConfig, make: impl Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static) {
    config.cid_generator(Arc::new(make));
}

/// It says all that there is to know of ACKs.
fn arriving(_factory: &Factory) -> Option<Acknowledged> {
    None
}

fn watched(crypto: QuicServerConfig, _factory: &Factory) -> Arc<dyn noq_proto::crypto::ServerConfig> {
    Arc::new(crypto)
}

fn take_in(
    endpoint: &mut noq_proto::Endpoint,
    now: Instant,
    from: SocketAddr,
    ecn: Option<noq_proto::EcnCodepoint>,
    data: Datagram,
    answer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, FourTuple::from_remote(from), ecn, data, answer)
}

/// The stack's connection.
pub(super) struct Connection {
    inner: noq_proto::Connection,
}

impl Connection {
    fn new(inner: noq_proto::Connection, _factory: &Factory, _now: Instant) -> Self {
        Self { inner }
    }

    fn changed(&mut self) {}

    fn timeout(&self) -> Option<Instant> {
        self.inner.poll_timeout()
    }

    fn one_datagram(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<noq_proto::Transmit> {
        self.inner.poll_transmit(now, NonZeroUsize::MIN, buffer)
    }

    fn confirms(event: &noq_proto::Event) -> bool {
        matches!(event, noq_proto::Event::HandshakeConfirmed)
    }

    fn is_newly_confirmed(&mut self) -> bool {
        false
    }

    fn smoothed(&self) -> Duration {
        self.inner.rtt(PathId::ZERO).unwrap_or_default()
    }

    fn place(&self) -> Option<SocketAddr> {
        self.inner.network_path(PathId::ZERO).ok().map(|path| path.remote())
    }
}

impl noq_proto::crypto::ClientConfig for Tapped<Arc<dyn noq_proto::crypto::ClientConfig>> {
    fn start_session(
        &self,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(self.session(self.inner.start_session(version, server_name, params)?))
    }
}

impl Controller for Gate {
    fn on_packet_sent(&mut self, _now: Instant, bytes: u16, pn: u64) {
        self.sent(pn, u32::from(bytes));
    }

    fn on_cwnd_limited(&mut self) {
        self.blocked();
    }

    fn on_ack(&mut self, _now: Instant, sent: Instant, _bytes: u64, pn: u64, _limited: bool, rtt: &RttEstimator) {
        self.acked(pn, sent, rtt.min());
    }

    fn on_congestion_event(
        &mut self,
        _now: Instant,
        _sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        if is_ecn {
            self.tell(Told::Marked);
        } else if is_persistent_congestion {
            self.tell(Told::Persistent);
        }
    }

    fn on_packet_lost(&mut self, _lost_bytes: u16, pn: u64, _now: Instant) {
        self.tell(Told::Lost { number: pn });
    }

    fn on_spurious_congestion_event(&mut self) {
        self.tell(Told::Spurious);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.tell(Told::Mtu(new_mtu));
    }

    fn window(&self) -> u64 {
        Gate::window(self)
    }

    fn metrics(&self) -> ControllerMetrics {
        // The stack's own pacer steps aside for windows above 2^32 and without a rate.
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = u64::MAX;
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        // The stack duplicates a controller for a path that differs in its port alone (RFC 9000
        // section 9.4), and for nothing else.
        self.tell(Told::Moved);
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        u64::MAX
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl ControllerFactory for Gates {
    fn build(self: Arc<Self>, _now: Instant, _current_mtu: u16) -> Box<dyn Controller> {
        Box::new(self.make())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_lets_one_packet_pass_and_notes_it() {
        let gate = Gate::default();
        let mut stack: Box<dyn Controller> = Box::new(gate.clone());
        assert_eq!(stack.window(), 1);
        gate.set(true);
        assert_eq!(stack.window(), u64::MAX);
        stack.on_packet_sent(Instant::now(), 1452, 7);
        assert_eq!(stack.window(), 1, "shut again");
        assert!(!gate.held_back());
        stack.on_cwnd_limited();
        assert!(gate.held_back());
        let mut notes = Vec::new();
        gate.take(&mut notes);
        assert_eq!(notes, [Told::Sent { number: 7, bytes: 1452 }]);
        // Whoever is duplicated says so, and writes into the same notebook.
        stack.clone_box().on_packet_lost(1452, 7, Instant::now());
        gate.take(&mut notes);
        assert_eq!(notes[1..], [Told::Moved, Told::Lost { number: 7 }]);
    }
}
