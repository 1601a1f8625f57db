//! Whether the memory of this machine is enough for a scenario, before it is run.

use std::path::{Path, PathBuf};

use flowstart_congestion::StartConfig;
use flowstart_simulator::{FlowConfig, SimulationConfig, TcpConfig, Traffic, Workload};
use flowstart_units::{Bytes, Rate, Span, Time};

use super::compile::MOST_FLOWS;
use super::error::Problem;
use super::path::{BOTTLENECK, WAY_BACK};
use super::web::MOST_USERS;
use super::{ArrivalSpec, FlowSpec, RateSpec, Scenario, ScenarioError, WaySpec, WebSpec};

/// A flow in a simulation with its endpoints, rounded up; measured with 100 000 flows of a byte.
const PER_FLOW: u64 = 5_500;
/// What is kept of a run besides rows: columns of tables with room for more; measured with 5000
/// runs of 1 s.
const PER_RUN: u64 = 14_000;
/// What is kept of a flow that is over, and its row in the tables.
const PER_ROW: u64 = 1_200;
/// A reply that a user will ask for.
const PER_REPLY: u64 = 32;
/// A row of the table of packets, while it is collected and as a table; measured with two million.
const PER_PACKET: u64 = 330;
/// A packet of what links hold, be it on its way or in a queue, with what its sender remembers of
/// it and of as many more that a start sends too many; measured with 17 million (100 Gbit/s and 1
/// s).
const PER_PACKET_UNDER_WAY: u64 = 220;
/// A row of the table of samples, with its text; measured with 400 000.
const PER_SAMPLE: u64 = 400;
/// Bins of samples in which a packet is seen: when it is sent, when it arrives, and when its ACK
/// does.
const SEEN: u64 = 3;
/// Mean pause between two pages (Pareto from 2 s with shape 1.4).
const PAUSE: Span = Span::from_secs(7);
/// Files of a page, on average.
const REPLIES_PER_PAGE: u64 = 6;
/// So much every machine has.
const NOT_WORTH_ASKING: u64 = 100_000_000;
/// What is taken to be free where nobody tells.
const UNKNOWN: u64 = 4 << 30;

/// What one part of a scenario takes, and where it stands.
struct Need {
    bytes: u64,
    key: &'static str,
    advice: &'static str,
}

fn times(a: u64, b: u64) -> u64 {
    a.saturating_mul(b)
}

impl Scenario {
    /// Refuses a scenario that needs more memory than is free on this machine.
    ///
    /// # Errors
    /// What takes the most, how much it is, what is free, and what to change.
    pub fn fits_memory(&self) -> Result<(), ScenarioError> {
        let fits = || {
            self.check_memory()?;
            self.check_flight(&self.compile(0)?.simulation)
        };
        fits().map_err(|problem: Problem| problem.locate("scenario", ""))
    }

    pub(super) fn check_memory(&self) -> Result<(), Problem> {
        self.check_memory_of(free, cores())
    }

    /// The same of packets that are on their way at once, of which only the simulation knows.
    pub(super) fn check_flight(&self, simulation: &SimulationConfig) -> Result<(), Problem> {
        self.check_flight_of(simulation, free, cores())
    }

    fn check_flight_of(
        &self,
        simulation: &SimulationConfig,
        free: impl FnOnce() -> u64,
        cores: u64,
    ) -> Result<(), Problem> {
        let at_once = self.runs.min(cores).max(1);
        let per_packet = times(PER_PACKET_UNDER_WAY, at_once);
        // What starts send without having heard of the path, beyond what would be there anyway.
        let there = self.under_way(simulation, |_| Rate::ZERO);
        let blind = self.under_way(simulation, first_rate).saturating_sub(there);
        let needs = [
            Need {
                bytes: times(there, per_packet),
                key: if self.path.is_some() { "path.capacity" } else { "link" },
                advice: "packets on their way take most of it: less capacity, a shorter round trip, a smaller buffer or a \
                         shorter duration would do",
            },
            Need {
                bytes: times(blind, per_packet),
                key: "flow",
                advice: "packets that a start sends before the first ACK take most of it: a lower first_rate or a shorter \
                         round trip would do",
            },
        ];
        fits(needs, free)
    }

    fn check_memory_of(&self, free: impl FnOnce() -> u64, cores: u64) -> Result<(), Problem> {
        let at_once = self.runs.min(cores).max(1);
        let flows = self.flow.iter().map(flows).fold(0, u64::saturating_add);
        let arrivals = self.arrivals.iter().map(|one| self.arrivals(one)).fold(0, u64::saturating_add);
        let waiting = self.arrivals.iter().map(|one| self.unfinished(one)).fold(0, u64::saturating_add);
        let replies = self.web.iter().map(|one| self.replies(one)).fold(0, u64::saturating_add);
        let rows = times(PER_ROW, self.runs);
        let needs = [
            Need {
                bytes: if self.runs > 1 { times(PER_RUN, self.runs) } else { 0 },
                key: "runs",
                advice: "fewer runs would do",
            },
            Need {
                bytes: times(flows, times(PER_FLOW, at_once).saturating_add(rows)),
                key: "flow",
                advice: "fewer flows (count) or fewer runs would do",
            },
            Need {
                bytes: times(arrivals, rows).saturating_add(times(waiting, times(PER_FLOW, at_once))),
                key: "arrivals",
                advice: "a larger mean_gap, a limit (most), a shorter duration or fewer runs would do",
            },
            Need {
                bytes: if self.output.packets { times(self.packets(), times(PER_PACKET, self.runs)) } else { 0 },
                key: "output.packets",
                advice: "a shorter duration, fewer runs or no table of packets would do",
            },
            Need {
                bytes: times(self.samples(), times(PER_SAMPLE, self.runs)),
                key: "output.sample",
                advice: "wider bins, a shorter duration or fewer runs would do",
            },
            Need {
                bytes: times(replies, times(PER_REPLY, at_once)),
                key: "web",
                advice: "fewer users or a shorter duration would do",
            },
        ];
        fits(needs, free)
    }

    /// Rows of the table of samples of one run, at most: bins in which something happened to a flow
    /// or at a link. Arrivals and users are not counted.
    fn samples(&self) -> u64 {
        let Some(bins) = self.duration.as_nanos().checked_div(self.output.sample.as_nanos()) else { return 0 };
        let flows = self.flow.iter().map(flows).fold(0, u64::saturating_add);
        let series = flows.saturating_add((self.udp.len() + self.link.len() + self.path.iter().len()) as u64);
        times(bins.saturating_add(1), series).min(times(self.packets(), SEEN))
    }

    /// Packets that links may hold at once, on their way or in their queues: no more than flows may
    /// have sent until then, and at least what the `first` rate of a connection gives until its
    /// first ACK. Links and queues without limits leave it to windows.
    fn under_way(&self, simulation: &SimulationConfig, first: impl Fn(&TcpConfig) -> Rate) -> u64 {
        let packet = simulation.flows.iter().map(packet_bytes).min().unwrap_or(1500).max(1);
        // By link: what is on its way for the longest of the round trips over it.
        let mut most = vec![0_u64; simulation.links.len()];
        let mut sent = 0_u64;
        for flow in &simulation.flows {
            let links = flow.forward.iter().chain(&flow.reverse).map(|link| simulation.links[*link].delay);
            let rtt = links.sum::<Span>() + flow.access.delay + flow.tail_delay + flow.return_delay;
            let rates = flow.forward.iter().map(|link| simulation.links[*link].rate.peak());
            let rate = rates.min().unwrap_or(Rate::UNLIMITED).min(flow.access.rate);
            let lasting = (Time::ZERO + self.duration).since(flow.start);
            let carried = |rate: Rate, time: Span| if rate.is_unlimited() { 0 } else { rate.bytes_in(time).get() };
            let (holds, sends) = match &flow.traffic {
                // What arrives at a link that is slower is dropped there.
                Traffic::Udp(udp) => {
                    let before = carried(udp.rate.min(flow.access.rate), flow.access.delay.min(udp.lasting));
                    (
                        carried(rate.min(udp.rate), rtt).saturating_add(before),
                        carried(udp.rate, lasting.min(udp.lasting)),
                    )
                }
                Traffic::Tcp(tcp) => {
                    let rate = rate.max(first(tcp));
                    let writes = match &tcp.workload {
                        Workload::Greedy | Workload::Replies(_) => u64::MAX,
                        Workload::Sized(size) => size.get(),
                        Workload::Paced { rate, lasting: until, .. } => carried(*rate, lasting.min(*until)),
                        Workload::Script(writes) => {
                            writes.iter().map(|(_, bytes)| bytes.get()).fold(0, u64::saturating_add)
                        }
                    };
                    // Short bursts leave although the buffer is full.
                    let written = tcp.sender.send_buffer.filter(|_| tcp.sender.offload.is_none());
                    let limits = [written, tcp.receiver.receive_buffer];
                    let window = limits.into_iter().flatten().map(Bytes::get).min().unwrap_or(u64::MAX);
                    // A window grows by what was acknowledged.
                    let grown =
                        carried(rate, lasting).saturating_add(times(tcp.controller.initial_window.into(), packet));
                    (carried(rate, rtt).min(window), writes.min(window).min(grown))
                }
            };
            sent = sent.saturating_add(sends);
            for link in &flow.forward {
                most[*link] = most[*link].max(holds);
            }
        }
        let holds = simulation.links.iter().zip(most).map(|(link, on_the_way)| {
            // What fills a queue without a limit is left to windows, too: few come so far.
            let waiting = Some(link.queue.most_bytes(packet)).filter(|most| *most < u64::MAX).unwrap_or(0);
            if on_the_way == 0 { 0 } else { on_the_way.saturating_add(waiting) }
        });
        holds.fold(0, u64::saturating_add).min(sent) / packet
    }

    /// Arrivals to be expected.
    fn arrivals(&self, spec: &ArrivalSpec) -> u64 {
        let gap = spec.mean_gap.or_else(|| {
            let capacity = spec.carried(&self.path.as_ref()?.capacity, self.duration);
            Some(spec.load?.mean_gap(&spec.sizes, capacity))
        });
        // Without either it is refused elsewhere.
        let gap = gap.unwrap_or(Span::MAX);
        let time = spec.until.unwrap_or(Span::MAX).min(self.duration);
        let expected = time.as_nanos() / gap.as_nanos().max(1);
        expected.min(spec.most.unwrap_or(u64::MAX))
    }

    /// Arrivals that are not over at the end, since more is offered than the path carries.
    fn unfinished(&self, spec: &ArrivalSpec) -> u64 {
        let Some(path) = &self.path else { return 0 };
        let offered = match (spec.mean_gap, spec.load) {
            (Some(gap), _) => spec.sizes.mean_bytes() * 8.0 / gap.as_secs_f64().max(1e-9),
            (None, Some(load)) => {
                let gap = load.mean_gap(&spec.sizes, spec.carried(&path.capacity, self.duration));
                spec.sizes.mean_bytes() * 8.0 / gap.as_secs_f64().max(1e-9)
            }
            (None, None) => return 0,
        };
        let carried = path.capacity.mean(Span::ZERO, self.duration).as_bps() as f64;
        let rest = (1.0 - carried / offered.max(1.0)).max(0.0);
        (self.arrivals(spec) as f64 * rest) as u64
    }

    /// The rate that is sure to pass over these links, the slowest one's, and which that is. Of
    /// ways in parallel the fastest one counts; `None` is the path.
    fn slowest(&self, forward: &[String]) -> (Rate, Option<usize>) {
        let sure = |rate: &RateSpec| match rate {
            RateSpec::Constant(rate) => *rate,
            RateSpec::Steps(steps, None) => steps.iter().map(|step| step.rate).min().unwrap_or(Rate::ZERO),
            // What repeats keeps its mean.
            RateSpec::Steps(_, Some(_)) | RateSpec::Fading(_) | RateSpec::Trace(_) => rate.mean(Span::ZERO, Span::ZERO),
        };
        let fastest = |capacity: &RateSpec, ways: &[WaySpec]| {
            let ways = ways.iter().filter_map(|way| way.capacity.as_ref());
            ways.chain([capacity]).map(sure).max().unwrap_or(Rate::UNLIMITED)
        };
        let crosses = |link: &str| forward.iter().any(|name| name == link);
        let path = self.path.iter().filter(|_| forward.is_empty() || crosses(BOTTLENECK) || crosses(WAY_BACK));
        let path = path.map(|path| {
            let back = crosses(WAY_BACK);
            let rate = match &path.reverse_capacity {
                Some(reverse) if back => sure(reverse),
                None if back => Rate::UNLIMITED,
                _ => fastest(&path.capacity, &path.ways),
            };
            (rate.min(path.access.unwrap_or(Rate::UNLIMITED)), None)
        });
        let named = self.link.iter().enumerate().filter(|(_, link)| crosses(&link.name));
        let links = named.map(|(number, link)| (fastest(&link.capacity, &link.ways), Some(number)));
        path.chain(links).min_by_key(|(rate, _)| *rate).unwrap_or((Rate::UNLIMITED, None))
    }

    /// Data packets to be expected: what flows have to send, or what the slowest link on their way
    /// carries if they have no end. Arrivals, users and lists are not counted, nor what a link
    /// whose rate changes for good carries beyond its lowest rate.
    fn packets(&self) -> u64 {
        let carried = |rate: Rate, time: Span| rate.bytes_in(time).get();
        let mut packets = 0_u64;
        // What has no end shares the link that is the slowest for it.
        let mut greedy = vec![0_u64; self.link.len() + 1];
        for flow in &self.flow {
            let (rate, slowest) = self.slowest(&flow.forward);
            let payload = u64::from(flow.sender.mss).max(1);
            let time = self.duration - flow.start;
            // More than the slowest link carries does not arrive.
            let bytes = match (flow.size, &flow.paced) {
                (Some(size), _) => size.get().min(carried(rate, time)),
                (None, Some(paced)) => carried(paced.rate.min(rate), time),
                (None, None) if !flow.writes.is_empty() => flow.writes.iter().map(|write| write.bytes.get()).sum(),
                // Unlimited links leave it to windows.
                (None, None) if flow.list.is_none() && !rate.is_unlimited() => {
                    let most = &mut greedy[slowest.map_or(0, |link| link + 1)];
                    *most = (*most).max(carried(rate, time) / payload);
                    0
                }
                (None, None) => 0,
            };
            packets = packets.saturating_add(times(bytes.div_ceil(payload), flow.count.into()));
        }
        for udp in &self.udp {
            let (rate, _) = self.slowest(&udp.forward);
            let time = udp.lasting.unwrap_or(Span::MAX).min(self.duration - udp.start);
            packets = packets.saturating_add(carried(udp.rate.min(rate), time) / udp.packet.get().max(1));
        }
        greedy.into_iter().fold(packets, u64::saturating_add)
    }

    /// Replies that users may ask for.
    fn replies(&self, spec: &WebSpec) -> u64 {
        let pages = self.duration.as_nanos() / PAUSE.as_nanos();
        // More are refused as such.
        let users = if spec.users > MOST_USERS { 0 } else { spec.users };
        times(u64::from(users), times(pages, REPLIES_PER_PAGE))
    }
}

/// Refuses what is not free; the largest of the needs is named.
fn fits<const N: usize>(needs: [Need; N], free: impl FnOnce() -> u64) -> Result<(), Problem> {
    let all = needs.iter().fold(0, |sum: u64, need| sum.saturating_add(need.bytes));
    if all <= NOT_WORTH_ASKING {
        return Ok(());
    }
    let free = free();
    // The rest is for what is not counted here.
    let limit = free / 4 * 3;
    match needs.into_iter().max_by_key(|need| need.bytes) {
        Some(Need { key, advice, .. }) if all > limit => Err(Problem::at(
            key,
            format!("needs about {} of memory, and this machine has {} free; {advice}", size(all), size(free)),
        )),
        _ => Ok(()),
    }
}

fn cores() -> u64 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64)
}

/// Bytes of a full packet of such a flow.
fn packet_bytes(flow: &FlowConfig) -> u64 {
    match &flow.traffic {
        Traffic::Tcp(tcp) => u64::from(tcp.sender.mss) + u64::from(tcp.sender.header_bytes),
        Traffic::Udp(udp) => udp.packet.into(),
    }
}

/// At what rate this flow begins to send, whatever the path carries; zero where ACKs lead it.
fn first_rate(tcp: &TcpConfig) -> Rate {
    match &tcp.controller.start {
        // The second connection is twice as fast as the first.
        StartConfig::TwoFlowProbe(detector) => detector.first_rate.mul_ratio(if detector.single { 1 } else { 3 }, 1),
        _ => Rate::ZERO,
    }
}

/// Connections of this kind.
fn flows(spec: &FlowSpec) -> u64 {
    let pair = spec.flow_start.as_ref().is_some_and(|start| start.connections() > 1);
    let count = if u64::from(spec.count) > MOST_FLOWS { 0 } else { spec.count };
    times(u64::from(count), 1 + u64::from(pair))
}

/// Bytes of memory that this process may still take: what is free, at most what its limits leave.
fn free() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let of_machine = kib(&read("/proc/meminfo"), "MemAvailable:").unwrap_or(UNKNOWN);
    let used = kib(&read("/proc/self/status"), "VmSize:").unwrap_or(0);
    let of_process = address_space(&read("/proc/self/limits")).map(|most| most.saturating_sub(used));
    let of_group = group(&read("/proc/self/cgroup")).and_then(|group| {
        // The limit of a container may be set at any of the groups that its processes are in.
        group
            .ancestors()
            .filter_map(|group| left(&read_in(group, "memory.max"), &read_in(group, "memory.current")))
            .min()
    });
    [of_process, of_group].into_iter().flatten().fold(of_machine, u64::min)
}

fn read_in(folder: &Path, file: &str) -> String {
    std::fs::read_to_string(folder.join(file)).unwrap_or_default()
}

/// What a line of `/proc` that begins so says in kB, in bytes.
fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(times(line.split_whitespace().next()?.parse().ok()?, 1024))
}

/// The limit of the address space in `/proc/self/limits` in bytes, if there is one.
fn address_space(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Folder of the control group (version 2) that `/proc/self/cgroup` names.
fn group(text: &str) -> Option<PathBuf> {
    let name = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new("/sys/fs/cgroup").join(name))
}

/// What a group's limit leaves; `None` without a limit.
fn left(most: &str, current: &str) -> Option<u64> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    Some(number(most)?.saturating_sub(number(current).unwrap_or(0)))
}

/// A size for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..10_000_000_000 => format!("{} MB", bytes.div_ceil(1_000_000)),
        _ => format!("{} GB", bytes.div_ceil(1_000_000_000)),
    }
}

#[cfg(test)]
mod tests;
