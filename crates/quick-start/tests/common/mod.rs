//! Packets and paths for the tests.

#![allow(dead_code, reason = "not every test uses all of it")]

use flowstart_quick_start::RateCode;
use flowstart_quick_start::path::Hop;
use flowstart_quick_start::router::{AdmissionConfig, Router, RouterConfig};
use flowstart_quick_start::wire::{IpOption, Ipv4, checksum};
use flowstart_units::{Rate, Span, Time};
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;

pub(crate) fn code(n: u8) -> RateCode {
    RateCode::new(n).unwrap()
}

pub(crate) fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

pub(crate) fn random(seed: u64) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(seed)
}

/// A TCP packet of IPv4 from source port `flow`, with `payload` bytes behind 20 bytes of TCP.
pub(crate) fn plain(flow: u16, payload: u16) -> Vec<u8> {
    let total = 40 + payload;
    let mut packet = vec![0x45, 0];
    packet.extend(total.to_be_bytes());
    packet.extend([0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 10, 0, 1, 2, 10, 0, 2, 2]);
    packet.extend(flow.to_be_bytes());
    packet.extend([0, 80]);
    packet.resize(usize::from(total), 0);
    packet[32] = 0x50;
    let check = checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&check.to_be_bytes());
    packet
}

/// The same with an option.
pub(crate) fn with(option: IpOption, flow: u16, payload: u16) -> Vec<u8> {
    Ipv4::with_option(&plain(flow, payload), option).unwrap()
}

pub(crate) fn router(admission: AdmissionConfig) -> Router<Pcg64Mcg> {
    Router::new(&RouterConfig::new(admission), random(7))
}

/// A router of so much capacity that it approves everything.
pub(crate) fn generous() -> Hop<Pcg64Mcg> {
    Hop::Aware(Box::new(router(AdmissionConfig::paper(Rate::from_mbps(100_000)))))
}

/// Sends a packet over a path; false if it does not arrive.
pub(crate) fn travel(path: &mut [Hop<Pcg64Mcg>], now: Time, packet: &mut [u8]) -> bool {
    path.iter_mut().all(|hop| hop.pass(now, packet).is_some())
}

/// TTL and option of a packet that arrived.
pub(crate) fn arrived(packet: &mut [u8]) -> (u8, Option<IpOption>) {
    let view = Ipv4::new(packet).unwrap();
    assert_eq!(checksum(view.header()), 0);
    (view.ttl(), view.option().unwrap())
}
