//! `quinn-proto`: it tells its controller less than the driver has to know. What is missing is
//! worked out here.
//!
//! - **Which packet was acknowledged**: of each it is told when it was sent. No two packets of a
//!   connection are sent at one instant here, so that says which it was.
//! - **Which packets were lost**: the stack tells when the latest of them was sent. It deems lost
//!   what was sent so long before something that was acknowledged, by count or by time (RFC 9002
//!   section 6.1). Both hold for all earlier packets as well, so all that were sent until then and
//!   not acknowledged are lost, and no others.
//! - **Whether a packet will be acknowledged**: its count of frames says what it carried.
//! - **Whether anything waits behind the shut gate**: the stack asks for the window only then.
//! - **That the handshake is confirmed**: its count of frames says that the word of it came.
//! - **That packets deemed lost arrived after all**: it tells nobody, so ACKs are read as they are
//!   decrypted. As in `noq-proto`: all that were deemed lost in the last two probe timeouts did.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use quinn_proto::congestion::{Controller, ControllerFactory};
use quinn_proto::crypto::UnsupportedVersion;
use quinn_proto::{FrameStats, RttEstimator};

use crate::gate::{Gate, Told};
use crate::tap::Acknowledged;

adapter!(quinn_proto, Quinn, &ConnectionId);
tapped!(quinn_proto, &ConnectionId);

fn factory(gates: &Arc<Gates>) -> Arc<Factory> {
    Arc::new(Factory { gates: Arc::clone(gates), desk: Desk::default(), acknowledged: Acknowledged::default() })
}

fn endpoint(config: EndpointConfig, server: Option<Arc<quinn_proto::ServerConfig>>) -> quinn_proto::Endpoint {
    quinn_proto::Endpoint::new(Arc::new(config), server, true, None)
}

fn identify(config: &mut EndpointConfig, make: impl Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static) {
    config.cid_generator(make);
}

fn arriving(factory: &Factory) -> Option<Acknowledged> {
    Some(factory.acknowledged.clone())
}

fn watched(crypto: QuicServerConfig, factory: &Factory) -> Arc<dyn quinn_proto::crypto::ServerConfig> {
    let inner: Arc<dyn quinn_proto::crypto::ServerConfig> = Arc::new(crypto);
    Arc::new(Tapped { inner, taps: Taps { leaving: None, arriving: arriving(factory) } })
}

fn take_in(
    endpoint: &mut quinn_proto::Endpoint,
    now: Instant,
    from: SocketAddr,
    ecn: Option<quinn_proto::EcnCodepoint>,
    data: Datagram,
    answer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, super::place(from), None, ecn, data, answer)
}

/// The stack's connection.
pub(super) struct Connection {
    inner: quinn_proto::Connection,
    desk: Desk,
    /// What ACKs that arrive say, and whom that concerns: the controller of the last packet sent.
    acknowledged: Acknowledged,
    notes: Option<Notes>,
    /// When the last packet was sent: the next one is sent later.
    last: Instant,
    /// The stack's next timer.
    timeout: Option<Instant>,
    confirmed: bool,
    /// Frames sent that call for an acknowledgement.
    calling: u64,
}

impl Connection {
    fn new(inner: quinn_proto::Connection, factory: &Factory, now: Instant) -> Self {
        let mut made = Self {
            inner,
            desk: Arc::clone(&factory.desk),
            acknowledged: factory.acknowledged.clone(),
            notes: None,
            last: now,
            timeout: None,
            confirmed: false,
            calling: 0,
        };
        made.changed();
        made
    }

    fn changed(&mut self) {
        match &self.notes {
            Some(notes) => notes.hear(),
            None => drop(self.acknowledged.take()),
        }
        self.timeout = self.inner.poll_timeout();
    }

    fn timeout(&self) -> Option<Instant> {
        self.timeout
    }

    fn one_datagram(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<quinn_proto::Transmit> {
        let now = now.max(self.last + Duration::from_nanos(1));
        let transmit = self.inner.poll_transmit(now, 1, buffer)?;
        self.last = now;
        let calling = calling(&self.inner.stats().frame_tx);
        let calls = std::mem::replace(&mut self.calling, calling) != calling;
        let left = self.desk.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Those with a long header are of the handshake, which has numbers of its own.
        let of_data = buffer.first().is_some_and(|first| first & 0x80 == 0);
        if let Some(left) = left.filter(|_| calls && of_data) {
            left.notes.sent(left.at, left.number, left.bytes);
            self.notes = Some(left.notes);
        }
        Some(transmit)
    }

    fn confirms(_event: &quinn_proto::Event) -> bool {
        false
    }

    /// A server knows as soon as the handshake is complete, a client is told.
    fn is_newly_confirmed(&mut self) -> bool {
        if self.confirmed || self.inner.is_handshaking() || self.inner.is_closed() {
            return false;
        }
        self.confirmed = self.inner.side().is_server() || self.inner.stats().frame_rx.handshake_done > 0;
        self.confirmed
    }

    fn smoothed(&self) -> Duration {
        self.inner.rtt()
    }

    fn place(&self) -> Option<SocketAddr> {
        Some(super::place(self.inner.remote_address()))
    }
}

/// How many of these frames call for an acknowledgement: all but ACK and CONNECTION_CLOSE (RFC 9002
/// section 2).
fn calling(frames: &FrameStats) -> u64 {
    [
        u64::from(frames.handshake_done),
        frames.ack_frequency,
        frames.crypto,
        frames.data_blocked,
        frames.datagram,
        frames.immediate_ack,
        frames.max_data,
        frames.max_stream_data,
        frames.max_streams_bidi,
        frames.max_streams_uni,
        frames.new_connection_id,
        frames.new_token,
        frames.path_challenge,
        frames.path_response,
        frames.ping,
        frames.reset_stream,
        frames.retire_connection_id,
        frames.stream_data_blocked,
        frames.streams_blocked_bidi,
        frames.streams_blocked_uni,
        frames.stop_sending,
        frames.stream,
    ]
    .iter()
    .fold(0, |sum: u64, count| sum.wrapping_add(*count))
}

/// Packets whose fate is open, by when the stack sent them: their numbers and bytes.
#[derive(Debug, Default)]
struct Open {
    packets: BTreeMap<Instant, (u64, u32)>,
    bytes: u64,
    /// Packets deemed lost not long ago, and when they were sent.
    lost: BTreeMap<u64, Instant>,
    /// Smoothed RTT and its variation, as the stack has them.
    rtt: [Duration; 2],
}

impl Open {
    fn take(&mut self, sent: Instant) -> Option<u64> {
        let (number, bytes) = self.packets.remove(&sent)?;
        self.bytes -= u64::from(bytes);
        Some(number)
    }

    /// The stack's smoothed RTT. It does not tell the variation, but that follows from all of these
    /// (RFC 9002 section 5.3).
    fn smoothed(&mut self, now: Duration) {
        let [before, variation] = self.rtt;
        if before.is_zero() {
            self.rtt = [now, now / 2];
        } else if now != before {
            let sample = (now * 8).saturating_sub(before * 7);
            self.rtt = [now, (variation * 3 + before.abs_diff(sample)) / 4];
        }
    }

    /// What was sent more than two probe timeouts ago will not arrive any more.
    fn forget(&mut self, now: Instant) {
        let [smoothed, variation] = self.rtt;
        let most = 2 * (smoothed + (variation * 4).max(Duration::from_millis(1)));
        self.lost.retain(|_, sent| now.saturating_duration_since(*sent) <= most);
    }
}

/// A packet that the stack has just made, until it is known what it carries.
#[derive(Debug)]
struct Left {
    notes: Notes,
    at: Instant,
    number: u64,
    bytes: u32,
}

type Desk = Arc<Mutex<Option<Left>>>;

/// The stack's controller: a gate, and what is needed to tell it which packets are meant. Its
/// copies are one.
#[derive(Clone, Debug)]
struct Notes {
    gate: Gate,
    open: Arc<Mutex<Open>>,
    desk: Desk,
    acknowledged: Acknowledged,
}

impl Notes {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sent(&self, at: Instant, number: u64, bytes: u32) {
        let mut open = self.open();
        open.packets.insert(at, (number, bytes));
        open.bytes += u64::from(bytes);
        self.gate.sent(number, bytes);
    }

    /// Hears which packets the ACKs tell of that arrived since the last time.
    fn hear(&self) {
        let ranges = self.acknowledged.take();
        let mut open = self.open();
        if open.lost.is_empty() {
            return;
        }
        open.lost.retain(|number, _| !ranges.iter().any(|range| range.contains(number)));
        if open.lost.is_empty() {
            self.gate.tell(Told::Spurious);
        }
    }

    /// What was sent then was acknowledged, when the smallest RTT had been this.
    fn acked(&self, sent: Instant, least: Duration) {
        if let Some(number) = self.open().take(sent) {
            self.gate.acked(number, sent, least);
        }
    }
}

impl Controller for Notes {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.gate.shut();
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let left = Left { notes: self.clone(), at: now, number: last_packet_number, bytes };
        *self.desk.lock().unwrap_or_else(PoisonError::into_inner) = Some(left);
    }

    fn on_ack(&mut self, _now: Instant, sent: Instant, _bytes: u64, _limited: bool, rtt: &RttEstimator) {
        self.open().smoothed(rtt.get());
        self.acked(sent, rtt.min());
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, _limited: bool, _largest: Option<u64>) {
        self.hear();
        self.open().forget(now);
        // Of what is acknowledged before a client that moved has shown that it is there the stack
        // says nothing. But it has less in flight then.
        let mut open = self.open();
        while open.bytes > in_flight {
            let Some(oldest) = open.packets.keys().next().copied() else { break };
            if let Some(number) = open.take(oldest) {
                self.gate.tell(Told::Acked { number });
            }
        }
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent_congestion: bool, lost_bytes: u64) {
        if lost_bytes == 0 {
            return self.gate.tell(Told::Marked);
        }
        let mut open = self.open();
        open.forget(now);
        while let Some(oldest) = open.packets.keys().next().copied().filter(|oldest| *oldest <= sent) {
            if let Some(number) = open.take(oldest) {
                open.lost.insert(number, oldest);
                self.gate.tell(Told::Lost { number });
            }
        }
        if is_persistent_congestion {
            self.gate.tell(Told::Persistent);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.gate.tell(Told::Mtu(new_mtu));
    }

    fn window(&self) -> u64 {
        let window = self.gate.window();
        if window < u64::MAX {
            // It asks only if it has something to send.
            self.gate.blocked();
        }
        window
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        // Another port of the same address (RFC 9000 section 9.4): what was sent to the one before
        // is no part of what the stack has in flight from now on.
        *self.open() = Open::default();
        self.gate.tell(Told::Moved);
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        u64::MAX
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Makes controllers for the connections of an endpoint.
struct Factory {
    gates: Arc<Gates>,
    desk: Desk,
    acknowledged: Acknowledged,
}

impl Factory {
    fn make(&self) -> Notes {
        Notes {
            gate: self.gates.make(),
            open: Arc::default(),
            desk: Arc::clone(&self.desk),
            acknowledged: self.acknowledged.clone(),
        }
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, _now: Instant, _current_mtu: u16) -> Box<dyn Controller> {
        Box::new(self.make())
    }
}

impl quinn_proto::crypto::ClientConfig for Tapped<Arc<dyn quinn_proto::crypto::ClientConfig>> {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(self.session(Arc::clone(&self.inner).start_session(version, server_name, params)?))
    }
}

impl quinn_proto::crypto::ServerConfig for Tapped<Arc<dyn quinn_proto::crypto::ServerConfig>> {
    fn initial_keys(&self, version: u32, dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.inner.initial_keys(version, dst_cid)
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(self: Arc<Self>, version: u32, params: &TransportParameters) -> Box<dyn Session> {
        self.session(Arc::clone(&self.inner).start_session(version, params))
    }
}

#[cfg(test)]
mod tests;
