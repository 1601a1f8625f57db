//! What the benchmarks of the router forward: packets with 10 bytes of payload, 50 bytes in IPv4 as
//! in figure 6 of Scharf and Strotbek.

use std::hint::black_box;

use flowstart_quick_start::router::{AdmissionConfig, MeterConfig, Router, RouterConfig, forward_plain};
use flowstart_quick_start::wire::{IpOption, Ipv4, checksum, hop_by_hop};
use flowstart_quick_start::{Nonce, RateCode};
use flowstart_units::{Bytes, Rate, Span, Time};
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;

/// Packets of a batch.
pub(crate) const BATCH: usize = 10_000;
/// Room for the longest packet of a batch: 86 bytes in IPv6.
const LONGEST: usize = 96;
/// Between two packets.
const GAP: Span = Span::from_nanos(100);
/// What [`Work::Lowering`] has beside the load: less than is asked for.
const FREE: Rate = Rate::from_mbps(1_200);
const PAYLOAD: u16 = 10;
const TCP: u8 = 6;

/// What is done with each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// It is copied, and that is all: a packet's TTL would be used up otherwise, so that this much
    /// is part of all other numbers.
    Copy,
    /// Its TTL is lowered.
    Plain,
    /// A router that sums its grants: the first requests of each millisecond are granted, the
    /// others denied by zeroing.
    Sums,
    /// The same with an interval per packet, and so much capacity beside the load that every
    /// request is granted at a lower rate than asked for: bits of the nonce change each time.
    Lowering,
    /// A router that remembers flows.
    Extreme,
    /// A router that counts flows too: there are more in a batch than it counts.
    Fair,
}

/// One kind of packets in one kind of router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    work: Work,
    /// Every so many packets there is a request; 0 for none.
    every: usize,
    pub(crate) six: bool,
}

/// All cases: IPv4, then IPv6.
pub(crate) fn all() -> Vec<Case> {
    let cases = [
        ("copy", Work::Copy, 0),
        ("plain", Work::Plain, 0),
        ("metered", Work::Sums, 0),
        ("1_percent", Work::Sums, 100),
        ("100_percent", Work::Sums, 1),
        ("100_percent_lowered", Work::Lowering, 1),
        ("metered_extreme", Work::Extreme, 0),
        ("1_percent_extreme", Work::Extreme, 100),
        ("100_percent_extreme", Work::Extreme, 1),
        ("metered_fair", Work::Fair, 0),
        ("1_percent_fair", Work::Fair, 100),
    ];
    let of = |six| cases.map(|(name, work, every)| Case { name, work, every, six });
    [of(false), of(true)].concat()
}

fn tcp(flow: u16) -> Vec<u8> {
    let mut segment = flow.to_be_bytes().to_vec();
    segment.resize(usize::from(20 + PAYLOAD), 0);
    segment[12] = 0x50;
    segment
}

fn ipv4(flow: u16, option: Option<IpOption>) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 40 + PAYLOAD as u8, 0x12, 0x34, 0x40, 0, 64, TCP, 0, 0, 10, 0, 1, 2, 10, 0, 2, 2];
    let check = checksum(&packet);
    packet[10..12].copy_from_slice(&check.to_be_bytes());
    packet.extend(tcp(flow));
    option.and_then(|option| Ipv4::with_option(&packet, option)).unwrap_or(packet)
}

fn ipv6(flow: u16, option: Option<IpOption>) -> Vec<u8> {
    let extension = option.map_or(Vec::new(), |option| hop_by_hop(TCP, option).to_vec());
    let next = if extension.is_empty() { TCP } else { 0 };
    let mut packet = vec![0x60, 0, 0, 0, 0, (20 + PAYLOAD) as u8 + extension.len() as u8, next, 64];
    packet.extend([[1; 16], [2; 16]].concat());
    packet.extend(extension);
    packet.extend(tcp(flow));
    packet
}

type Buffer = ([u8; LONGEST], usize);

/// A case, ready to run.
pub(crate) struct Bench {
    work: Work,
    batch: Vec<Buffer>,
    router: Router<Pcg64Mcg>,
    now: Time,
}

impl Bench {
    pub(crate) fn new(case: &Case) -> Self {
        let request = IpOption::Request { rate: RateCode::MAX, ttl: 91, nonce: Nonce::new(0x2aaa_aaaa) };
        let batch = (0..BATCH).map(|n| {
            let option = (case.every > 0 && n % case.every == 0).then_some(request);
            let packet = if case.six { ipv6(n as u16, option) } else { ipv4(n as u16, option) };
            let mut buffer = [0; LONGEST];
            buffer[..packet.len()].copy_from_slice(&packet);
            (buffer, packet.len())
        });
        let batch = batch.collect::<Vec<Buffer>>();
        let ten = Rate::from_mbps(10_000);
        let mean = |interval| MeterConfig::Mean { interval };
        let millisecond = mean(Span::from_millis(1));
        let admission = match case.work {
            Work::Extreme => AdmissionConfig { meter: millisecond, ..AdmissionConfig::extreme(ten) },
            Work::Fair => AdmissionConfig { meter: millisecond, ..AdmissionConfig::fair(ten) },
            Work::Lowering => {
                let load = Rate::of(Bytes::new(batch[0].1 as u64), GAP);
                let capacity = Rate::from_bps(load.as_bps() + FREE.as_bps());
                AdmissionConfig { meter: mean(GAP), ..AdmissionConfig::paper(capacity) }
            }
            Work::Copy | Work::Plain | Work::Sums => {
                AdmissionConfig { meter: millisecond, ..AdmissionConfig::paper(ten) }
            }
        };
        let config =
            RouterConfig { requests_per_second: 1_000_000_000, burst: 1_000_000, ..RouterConfig::new(admission) };
        let router = Router::new(&config, Pcg64Mcg::seed_from_u64(1));
        let mut bench = Self { work: case.work, batch, router, now: Time::ZERO };
        if case.work == Work::Lowering {
            // Before the load is measured the first gets too much.
            bench.run();
            let denied = bench.router.counts().denied;
            bench.run();
            assert_eq!(bench.router.counts().denied, denied, "every request is granted");
        }
        bench
    }

    /// Forwards the batch once.
    #[inline(never)]
    pub(crate) fn run(&mut self) {
        match self.work {
            Work::Copy => self.each(|_, _, packet| {
                black_box(packet);
            }),
            Work::Plain => self.each(|_, _, packet| {
                black_box(forward_plain(packet, 1));
            }),
            Work::Sums | Work::Lowering | Work::Extreme | Work::Fair => self.each(|router, now, packet| {
                black_box(router.forward(now, packet));
            }),
        }
    }

    #[inline]
    fn each(&mut self, mut forward: impl FnMut(&mut Router<Pcg64Mcg>, Time, &mut [u8])) {
        for (template, length) in &self.batch {
            self.now += GAP;
            let mut packet = *template;
            forward(&mut self.router, self.now, black_box(&mut packet[..*length]));
        }
    }
}
