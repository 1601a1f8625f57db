//! Packets for routers, and the two routers that they are for.

use std::cell::Cell;
use std::convert::Infallible;
use std::rc::Rc;

use flowstart_kernel::{RouterBench, RouterMeter, RouterSettings};
use flowstart_quick_start::Router;
use flowstart_quick_start::router::{AdmissionConfig, MemoryConfig, RouterConfig};
use flowstart_quick_start::wire::{IpOption, Ipv4, checksum, hop_by_hop};
use rand_core::TryRng;

/// Says the number that it was told last.
#[derive(Clone)]
pub(crate) struct Told(Rc<Cell<u32>>);

impl TryRng for Told {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0.get())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from(self.0.get()))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.fill(0);
        Ok(())
    }
}

/// The program and the crate's router with the same settings, and what makes the crate's nonces.
pub(crate) fn both(settings: &RouterSettings) -> (RouterBench, Router<Told>, Rc<Cell<u32>>) {
    let admission = match settings.meter {
        RouterMeter::Mean => AdmissionConfig::paper(settings.capacity),
        RouterMeter::Peak => AdmissionConfig::rfc(settings.capacity),
    };
    let memory = settings.flows.map_or(MemoryConfig::Sums, MemoryConfig::Flows);
    let admission = AdmissionConfig { memory, ..admission };
    let config = RouterConfig {
        requests_per_second: settings.requests_per_second,
        burst: settings.burst,
        hops: settings.hops,
        ..RouterConfig::new(AdmissionConfig { threshold_percent: settings.threshold_percent, ..admission })
    };
    let told = Rc::new(Cell::new(0));
    let bench = match RouterBench::new(settings, true) {
        Ok(bench) => bench,
        Err(problem) => panic!("{problem}\n{}", problem.log),
    };
    (bench, Router::new(&config, Told(told.clone())), told)
}

/// A packet of TCP over IPv4 with this option, and some no-operation options in front of it.
pub(crate) fn ipv4(option: Option<IpOption>, payload: usize, pads: usize) -> Vec<u8> {
    let total = (40 + payload) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(total.to_be_bytes());
    packet.extend([0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 10, 0, 1, 2, 10, 0, 2, 2]);
    packet.resize(usize::from(total), 0);
    packet[32] = 0x50;
    let check = checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&check.to_be_bytes());
    let Some(option) = option else { return packet };
    packet = Ipv4::with_option(&packet, option).unwrap();
    if pads > 0 {
        // Four bytes more of options: as many of them in front as asked for.
        let front = pads.min(4);
        for place in 0..4 {
            packet.insert(if place < front { 20 } else { 28 + front }, 1);
        }
        packet[0] += 1;
        packet[10..12].fill(0);
        let check = checksum(&packet[..32]);
        packet[10..12].copy_from_slice(&check.to_be_bytes());
    }
    packet
}

/// The same over IPv6.
pub(crate) fn ipv6(option: Option<IpOption>, payload: usize) -> Vec<u8> {
    let extension = option.map(|option| hop_by_hop(6, option)).map_or(Vec::new(), |bytes| bytes.to_vec());
    let length = (20 + payload + extension.len()) as u16;
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([if extension.is_empty() { 6 } else { 0 }, 64]);
    packet.extend([1; 32]);
    packet.extend(extension);
    packet.resize(40 + usize::from(length), 0);
    packet
}
