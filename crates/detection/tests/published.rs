//! The published detector of fair queuing over one bottleneck, alone on the link: the 125
//! configurations of the paper's section 5.3.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use flowstart_detection::{Coordinator, DetectorConfig, FairQueuingVerdict, Jitter, ProbeEvent, ProbeFlow, Step};
use flowstart_units::{Bytes, Rate, Span, Time};

const BYTES: u32 = 1500;
const RATES: [u64; 5] = [5, 16, 28, 39, 50];
const DELAYS: [u64; 5] = [10, 32, 56, 78, 100];
const BUFFERS: [usize; 5] = [1, 26, 50, 75, 100];

/// A packet: its flow, number and time of departure.
type Packet = (usize, u64, Time);

/// An Ethernet frame, the unit of sch_fq's credits.
const FRAME: i64 = 1514;

/// A queue of its own for each flow, as Linux's sch_fq: flows that were empty go before the others;
/// 10 frames of credit at first, 2 per turn.
#[derive(Default)]
struct Fair {
    queues: [VecDeque<Packet>; 2],
    credit: [i64; 2],
    attached: [bool; 2],
    emptied: [Time; 2],
    new: VecDeque<usize>,
    old: VecDeque<usize>,
}

impl Fair {
    fn push(&mut self, now: Time, packet: Packet) {
        let flow = packet.0;
        if !self.attached[flow] {
            self.attached[flow] = true;
            self.new.push_back(flow);
            if now.since(self.emptied[flow]) > Span::from_millis(40) {
                self.credit[flow] = self.credit[flow].max(2 * FRAME);
            }
        }
        self.queues[flow].push_back(packet);
    }

    fn pop(&mut self, now: Time) -> Option<Packet> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let flow = *list.front()?;
            if self.credit[flow] <= 0 {
                self.credit[flow] += 2 * FRAME;
                list.pop_front();
                self.old.push_back(flow);
            } else if let Some(packet) = self.queues[flow].pop_front() {
                self.credit[flow] -= i64::from(BYTES);
                self.emptied[flow] = now;
                return Some(packet);
            } else {
                list.pop_front();
                if is_new && !self.old.is_empty() {
                    self.old.push_back(flow);
                } else {
                    self.attached[flow] = false;
                    self.emptied[flow] = now;
                }
            }
        }
    }
}

enum Queue {
    Shared(VecDeque<Packet>),
    Fair(Fair),
}

impl Queue {
    fn new(fair: bool) -> Self {
        if fair {
            Self::Fair(Fair { credit: [10 * FRAME; 2], ..Fair::default() })
        } else {
            Self::Shared(VecDeque::new())
        }
    }

    fn push(&mut self, now: Time, packet: Packet, limit: usize) {
        match self {
            Self::Shared(queue) if queue.len() < limit => queue.push_back(packet),
            Self::Fair(fair) if fair.queues[packet.0].len() < limit => fair.push(now, packet),
            _ => {}
        }
    }

    fn pop(&mut self, now: Time) -> Option<Packet> {
        match self {
            Self::Shared(queue) => queue.pop_front(),
            Self::Fair(fair) => fair.pop(now),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Leave(usize),
    Arrive(Packet),
    Transmitted(Packet),
    Acknowledged(Packet),
}

/// The verdict within ten seconds, and how many RTTs it took.
fn detect(
    config: &DetectorConfig,
    mbps: u64,
    ms: u64,
    buffer: usize,
    fair: bool,
    seed: u64,
) -> Option<(FairQueuingVerdict, f64)> {
    let half = Span::from_millis(ms) / 2;
    let service = Rate::from_mbps(mbps).transmission_time(Bytes::new(u64::from(BYTES)));
    let mut coordinator = Coordinator::new(config);
    let (first, second) = coordinator.rates();
    // The second connects a little later.
    let mut flows = [
        ProbeFlow::new(config, first, Time::ZERO, seed),
        ProbeFlow::new(config, second, Time::ZERO + Span::from_micros(300), seed ^ 0xffff),
    ];
    let mut queue = Queue::new(fair);
    let mut busy = false;
    let mut heap: BinaryHeap<Reverse<(Time, What)>> = BinaryHeap::new();
    for (i, flow) in flows.iter().enumerate() {
        heap.push(Reverse((flow.next_departure(), What::Leave(i))));
    }
    while let Some(Reverse((now, what))) = heap.pop() {
        if now > Time::ZERO + Span::from_secs(10) {
            break;
        }
        match what {
            What::Leave(i) => {
                let number = flows[i].on_sent(now, BYTES);
                heap.push(Reverse((now + half, What::Arrive((i, number, now)))));
                heap.push(Reverse((flows[i].next_departure(), What::Leave(i))));
            }
            What::Arrive(packet) => queue.push(now, packet, buffer),
            What::Transmitted(packet) => {
                busy = false;
                heap.push(Reverse((now + half, What::Acknowledged(packet))));
            }
            What::Acknowledged((i, number, sent_at)) => {
                let step = match flows[i].on_ack(now, number, sent_at) {
                    ProbeEvent::Nothing => Step::Wait,
                    ProbeEvent::FirstLoss => coordinator.on_first_loss(i),
                    ProbeEvent::Sample(sample) => coordinator.on_sample(i, sample),
                };
                match step {
                    Step::Wait => {}
                    Step::Measure(first, second) => {
                        flows[0].measure(first);
                        flows[1].measure(second);
                    }
                    Step::Done(verdict) => return Some((verdict, now.since(Time::ZERO).ratio(half * 2))),
                }
            }
        }
        if !busy && let Some(packet) = queue.pop(now) {
            busy = true;
            heap.push(Reverse((now + service, What::Transmitted(packet))));
        }
    }
    None
}

/// A configuration (Mbit/s, ms, buffer), and its verdict and how many RTTs that took.
type GridRun = ((u64, u64, usize), Option<(FairQueuingVerdict, f64)>);

/// Every configuration with its outcome.
fn grid(config: &DetectorConfig, fair: bool) -> Vec<GridRun> {
    let mut outcomes = Vec::new();
    for mbps in RATES {
        for ms in DELAYS {
            for buffer in BUFFERS {
                let seed = mbps * 131 + ms * 17 + buffer as u64;
                outcomes.push(((mbps, ms, buffer), detect(config, mbps, ms, buffer, fair, seed)));
            }
        }
    }
    outcomes
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// An independent model of the same detector has 125 of 125 shared queues right and 114 to 117 of
/// 125 fair ones, all wrong ones with a buffer of one packet; the median ratios are 0.87 to 0.89
/// and 1.99, the median time 20 RTTs. The paper has more than 99 % and 97 %.
#[test]
fn the_detector_is_right_about_all_queues_but_fair_ones_of_one_packet() {
    let config = DetectorConfig::default();
    let (shared, fair) = (grid(&config, false), grid(&config, true));
    let verdicts = |grid: &[GridRun]| grid.iter().filter_map(|(_, o)| *o).collect::<Vec<_>>();
    let ratio = |grid| median(verdicts(grid).iter().map(|(verdict, _)| verdict.ratio).collect());
    let wrong = |grid: &[GridRun], truth| {
        let is_wrong =
            |o: &Option<(FairQueuingVerdict, f64)>| o.is_none_or(|(verdict, _)| verdict.fair_queuing != truth);
        grid.iter().filter(|(_, o)| is_wrong(o)).map(|(at, _)| *at).collect::<Vec<_>>()
    };
    let (wrong_shared, wrong_fair) = (wrong(&shared, false), wrong(&fair, true));
    assert!(wrong_shared.len() <= 1, "{wrong_shared:?}");
    assert!(wrong_fair.len() <= 14, "{wrong_fair:?}");
    assert!(wrong_fair.iter().all(|(_, _, buffer)| *buffer == 1), "{wrong_fair:?}");
    assert!((ratio(&shared) - 0.88).abs() < 0.06);
    assert!((ratio(&fair) - 1.99).abs() < 0.04);
    let rounds = median(verdicts(&shared).iter().chain(&verdicts(&fair)).map(|(_, rounds)| *rounds).collect());
    assert!((rounds - 20.0).abs() < 2.0, "{rounds} RTTs");
}

/// Section 6 of the paper. The model has 24 of 125 runs without a verdict, since one flow gets
/// nothing through.
#[test]
fn without_jitter_the_flows_lock_in_phase_in_a_shared_queue() {
    let outcomes = grid(&DetectorConfig { jitter: Jitter::None, ..DetectorConfig::default() }, false);
    let undecided = outcomes.iter().filter(|(_, outcome)| outcome.is_none()).count();
    let ratios: Vec<f64> = outcomes.iter().filter_map(|(_, o)| o.map(|(verdict, _)| verdict.ratio)).collect();
    assert!((10..=50).contains(&undecided), "{undecided}");
    assert!(median(ratios) < 0.7);
}
