//! Datagrams.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;

use nix::sys::socket::{setsockopt, sockopt};

use flowstart_units::{Bytes, Span};

use super::scene::{Scene, Shared, TIMEOUT, is_pause};
use super::{FlowConfig, Gaps, Traffic};
use crate::wire::{self, FlowKey};
use crate::{Error, Host};

/// IPv4 and UDP headers.
const HEADERS: u16 = 28;
/// Smallest payload: a number.
const SMALLEST: u16 = 8;
/// ECT(0) in the type-of-service field.
const ECT0: i32 = 2;

pub(super) fn bind(host: &Host, port: u16) -> Result<UdpSocket, Error> {
    let address = SocketAddr::new(host.address(), port);
    let bound = host.run(|| {
        let socket = UdpSocket::bind(address)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        Ok(socket)
    })?;
    bound.map_err(|error: std::io::Error| Error::doing(format_args!("bind {address}"), error))
}

/// Counts what arrives.
pub(super) fn receive(socket: &UdpSocket, scene: &Scene<'_>, shared: &Shared) {
    let mut bytes = vec![0; usize::from(u16::MAX)];
    while !scene.over() {
        match socket.recv(&mut bytes) {
            Ok(length) if !scene.is_past(scene.clock.now()) => {
                shared.delivered.fetch_add(length as u64 + u64::from(HEADERS), Ordering::Relaxed);
            }
            Ok(_) => return,
            Err(error) if is_pause(&error) => {}
            Err(error) => return shared.fail(error, scene),
        }
    }
}

/// Sends at the flow's rate. A sender that was held up sends what it owes at once.
pub(super) fn send(
    host: &Host,
    (address, port): (IpAddr, u16),
    flow: &FlowConfig,
    scene: &Scene<'_>,
    shared: &Shared,
    seed: u64,
) {
    let Traffic::Udp { rate, packet, poisson, lasting, ecn } = flow.traffic else { return };
    let socket = match bind(host, port) {
        Ok(socket) => socket,
        Err(error) => return shared.fail(error, scene),
    };
    if ecn && let Err(error) = setsockopt(&socket, sockopt::Ipv4Tos, &ECT0) {
        return shared.fail(error, scene);
    }
    let key = FlowKey {
        source: host.address(),
        destination: address,
        source_port: port,
        destination_port: port,
        protocol: wire::UDP,
    };
    let payload = vec![0; usize::from(packet.saturating_sub(HEADERS).max(SMALLEST))];
    let gap = rate.transmission_time(Bytes::new(payload.len() as u64 + u64::from(HEADERS)));
    let mut gaps = Gaps::new(gap, poisson, seed);
    let (mut next, end) = (flow.start, flow.start + lasting);
    shared.change(|outcome| outcome.key = Some(key));
    while next < end && scene.wait_until(next) {
        // What the kernel does not take is as good as lost on the way.
        let _ = socket.send_to(&payload, SocketAddr::new(address, port));
        shared.change(|outcome| {
            outcome.started.get_or_insert_with(|| scene.clock.now());
        });
        next += gaps.next().max(Span::from_nanos(1));
    }
}
