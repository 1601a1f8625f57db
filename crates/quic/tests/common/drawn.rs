//! Paths drawn at random, of every kind that a look may meet.

use std::fmt;

use flowstart_network::{
    FqCodelConfig, GrantsConfig, JitterConfig, LinkConfig, LossConfig, MediumConfig, PolicerConfig, QueueConfig,
    RateSchedule, ShaperConfig, SlotsConfig, WifiConfig,
};
use flowstart_random::SplitMix64;
use flowstart_units::{Bytes, Rate, Span};

use super::link::described::{Described, Others};

/// What is special about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Smooth,
    Slots,
    Wifi,
    Bucket,
    Policer,
    Reordering,
    Jitter,
    Losses,
    SlowBack,
    Grants,
    Stalls,
    Bursts,
    Greedy,
}

/// All kinds, each as likely as any other.
pub(crate) const KINDS: [Kind; 13] = [
    Kind::Smooth,
    Kind::Slots,
    Kind::Wifi,
    Kind::Bucket,
    Kind::Policer,
    Kind::Reordering,
    Kind::Jitter,
    Kind::Losses,
    Kind::SlowBack,
    Kind::Grants,
    Kind::Stalls,
    Kind::Bursts,
    Kind::Greedy,
];

/// A path: its links down and up, who else is there, and what is true of it.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    pub(crate) kind: Kind,
    pub(crate) links: [LinkConfig; 2],
    others: Others,
    rtt: Span,
    /// Capacity in Mbit/s, down and up.
    pub(crate) capacity: [f64; 2],
    /// Bytes of a bucket in front of it.
    pub(crate) bucket: Option<u64>,
    /// Every connection has a queue of its own.
    pub(crate) own: bool,
    /// Time between stalls of both hosts; zero if there are none.
    pub(crate) stalls: Span,
    words: String,
    seed: u64,
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

/// Between two numbers, as likely in each of their decades.
fn between(random: &mut SplitMix64, least: f64, most: f64) -> f64 {
    least * libm::pow(most / least, random.unit())
}

fn span(milliseconds: f64) -> Span {
    Span::from_nanos((milliseconds * 1e6) as u64)
}

impl Drawn {
    /// The path of a number within a draw.
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        let mut random = SplitMix64::for_part(seed, number);
        let random = &mut random;
        let kind = KINDS[random.below(KINDS.len())];
        let mut mbps = between(random, 1.0, 1000.0);
        let rtt = between(random, 2.0, 250.0);
        let bdps = between(random, 0.25, 4.0);
        let queue = random.below(10);
        let (one, two) = (random.unit(), random.unit());
        let of = |draw: f64, least: f64, most: f64| least * libm::pow(most / least, draw);
        let mut medium = MediumConfig::default();
        let mut back_medium = None;
        let (mut jitter, mut loss, mut others, mut stalls) = (None, LossConfig::None, Others::Nobody, Span::ZERO);
        let (mut bucket, mut wire, mut back) = (None, None, None);
        let special = match kind {
            Kind::Smooth => String::new(),
            Kind::Slots => {
                let every = [0.5, 1.0, 2.5, 5.0, 10.0, 20.0][(one * 6.0) as usize];
                let errors = if two < 0.5 { 0.0 } else { 0.1 };
                let again_after = Span::from_millis(8);
                medium.slots = Some(SlotsConfig { errors, again_after, ..SlotsConfig::new(span(every)) });
                format!("slots of {every} ms, errors {errors}")
            }
            Kind::Wifi => {
                mbps = mbps.min(300.0);
                let (others, errors) = ((one * 4.0) as u32, if two < 0.5 { 0.0 } else { 0.1 });
                let wifi = |others| MediumConfig {
                    wifi: Some(WifiConfig { others, errors, ..WifiConfig::default() }),
                    ..MediumConfig::default()
                };
                let rate = RateSchedule::Constant(Rate::from_bps((mbps * 1e6) as u64));
                let fits = |others: &u32| wifi(*others).validate(&rate).is_ok();
                let others = (0..=others).rev().find(fits).unwrap_or(0);
                medium = wifi(others);
                format!("Wi-Fi, {others} others, errors {errors}")
            }
            Kind::Bucket | Kind::Policer => {
                let bytes = of(one, 32_000.0, 1_000_000.0) as u64;
                bucket = Some(bytes);
                let faster = (mbps * of(two, 2.0, 20.0)).min(10_000.0);
                wire = Some(faster);
                let rate = Rate::from_bps((mbps * 1e6) as u64);
                if kind == Kind::Bucket {
                    let line = Some(Rate::from_bps((faster * 1e6) as u64));
                    medium.shaper = Some(ShaperConfig { line, ..ShaperConfig::new(Bytes::new(bytes)) });
                } else {
                    medium.policer = Some(PolicerConfig { rate, burst: Bytes::new(bytes) });
                }
                format!("{} kB, wire {faster:.0} Mbit/s", bytes / 1000)
            }
            Kind::Reordering => {
                let spread = of(one, 0.1, 5.0);
                jitter = Some(JitterConfig { spread: span(spread), reorder: true });
                format!("reordering by {spread:.2} ms")
            }
            Kind::Jitter => {
                let spread = of(one, 0.1, 10.0);
                jitter = Some(JitterConfig { spread: span(spread), reorder: false });
                format!("jitter of {spread:.2} ms")
            }
            Kind::Losses => {
                let probability = of(one, 0.005, 0.1);
                loss = LossConfig::Bernoulli { probability };
                format!("losses {:.1} %", probability * 100.0)
            }
            Kind::SlowBack => {
                let slower = (mbps / of(one, 10.0, 500.0)).max(0.064);
                back = Some(slower);
                format!("back {slower:.3} Mbit/s")
            }
            Kind::Grants => {
                let (every, delay) = (of(one, 0.5, 4.0), of(two, 2.0, 8.0));
                back_medium = Some(MediumConfig {
                    grants: Some(GrantsConfig { every: span(every), delay: span(delay) }),
                    ..MediumConfig::default()
                });
                format!("back grants each {every:.1} ms, {delay:.1} ms later")
            }
            Kind::Stalls => {
                stalls = span(of(one, 2.0, 50.0));
                format!("hosts stand still each {:.0} ms", stalls.as_secs_f64() * 1e3)
            }
            Kind::Bursts => {
                let load = of(one, 0.1, 0.6);
                others = Others::Bursts(load);
                format!("others {load:.2}")
            }
            Kind::Greedy => {
                let more = of(one, 0.3, 1.0);
                let packets = |bdps: f64| mbps * 1e3 * rtt / 12_000.0 * bdps;
                others = Others::Greedy((packets(1.0) + packets(bdps).max(8.0) * more).max(2.0) as u32);
                format!("greedy, {more:.2} of the buffer: {others:?}")
            }
        };
        let link = |mbps: f64, medium: MediumConfig| {
            // Wire or not, the buffer is of what the path carries.
            let carried = if medium.policer.is_some() { wire.unwrap_or(mbps) } else { mbps };
            let packets = ((mbps * 1e3 * rtt / 12_000.0 * bdps) as u64).max(2);
            let queue = match queue {
                0..=5 => QueueConfig::drop_tail(packets),
                6..=7 => QueueConfig::FqCodel(FqCodelConfig::default()),
                _ => QueueConfig::FairQueuing(flowstart_network::FairQueuingConfig::default()),
            };
            let rate = RateSchedule::Constant(Rate::from_bps((carried * 1e6) as u64));
            LinkConfig { jitter, loss, medium, ..LinkConfig::new(rate, span(rtt / 2.0), queue) }
        };
        let up = back_medium.unwrap_or_else(|| medium.clone());
        let links = [link(mbps, medium), link(back.unwrap_or(mbps), up)];
        let words = format!("{mbps:.2} Mbit/s, {rtt:.1} ms, {bdps:.2} BDP, queue {queue}, {kind:?} {special}");
        let own = queue > 5;
        Self {
            kind,
            links,
            others,
            rtt: span(rtt),
            capacity: [mbps, back.unwrap_or(mbps)],
            bucket,
            own,
            stalls,
            words,
            seed: seed.wrapping_mul(1000).wrapping_add(number).wrapping_mul(16),
        }
    }

    /// A path of links down and up, over which nobody else sends.
    pub(crate) fn of(links: [LinkConfig; 2], seed: u64) -> Self {
        Self {
            kind: Kind::Smooth,
            others: Others::Nobody,
            rtt: Span::ZERO,
            capacity: [0, 1].map(|way: usize| links[way].rate.peak().as_bps() as f64 / 1e6),
            bucket: None,
            own: false,
            stalls: Span::ZERO,
            words: String::new(),
            seed,
            links,
        }
    }

    /// Its links in operation: up, down. Others go one way, that of data.
    pub(crate) fn pipes(&self, down: bool) -> [Described; 2] {
        let link = |way: usize, data: bool| {
            let others = if data { self.others } else { Others::Nobody };
            Described::new(&self.links[way], others, self.rtt, self.seed.wrapping_add(8 * way as u64))
        };
        [link(1, !down), link(0, down)]
    }
}
