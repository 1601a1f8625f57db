//! A world in operation: its hosts and the engines that run its links.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::eventfd::{EfdFlags, EventFd};

use flowstart_units::Time;

use crate::Error;
use crate::clock::{Clock, Priority};
use crate::config::{HostId, WorldConfig};
use crate::engine::{Engine, LinkOutcome, Plan, Report, message};
use crate::fidelity::{Fidelity, Lateness};
use crate::guard::Guard;
use crate::host::{HOST_INTERFACE, Host};
use crate::names::{FOLDER, WorldName, end_processes_in};
use crate::namespace::NetNs;
use crate::netlink::{Netlink, index_of};
use crate::record::{self, Given, PacketRecord, Read, Reader};
use crate::setup::{make_hosts, plan};

/// What happened in a world.
#[derive(Clone, Debug)]
pub struct WorldOutcome {
    /// When it ended: the time of [`World::end_at`], else when [`World::finish`] was called.
    pub ended: Time,
    /// What each link did.
    pub links: Vec<LinkOutcome>,
    /// How faithful it was.
    pub fidelity: Fidelity,
    /// Packets that hosts were given, in order of time; empty unless [`crate::Timing::tell_given`]
    /// is set.
    pub given: Vec<Given>,
    /// IP packets that hosts sent to each other, as the engines saw them.
    pub arrived: u64,
    /// IP bytes of those whose way leads through no link, so that nothing limited them.
    pub unlimited_bytes: u64,
    /// Packets still in queues and delays at the end.
    pub stored: u64,
    /// Packets for addresses that no host has.
    pub astray: u64,
    /// Processes that were still running in the hosts and have been ended.
    pub ended_processes: usize,
    /// Parts that ended by a fault of the program or did not end, each a sentence that says which;
    /// what they did until then is counted as far as it is known. Empty unless flowstart is wrong.
    pub faults: Vec<String>,
}

/// A world in operation. Dropping it ends everything in it; [`World::finish`] does the same and
/// says what happened.
#[derive(Debug)]
pub struct World {
    hosts: Vec<Host>,
    router: NetNs,
    clock: Clock,
    stop: Arc<AtomicBool>,
    /// When everything ends, in nanoseconds.
    end: Arc<AtomicU64>,
    engines: Vec<Running>,
    records: Option<JoinHandle<()>>,
    /// Records are no longer waited for.
    abandoned: Arc<AtomicBool>,
    failed: Arc<AtomicBool>,
    links: usize,
    over: bool,
    /// The last to go: until then there is something to clean up.
    _guard: Option<Guard>,
}

/// An engine that runs.
#[derive(Debug)]
struct Running {
    /// Whose packets it carries.
    part: String,
    waker: Arc<EventFd>,
    /// In a mutex only because worlds are shared between threads.
    report: Mutex<Receiver<Report>>,
    thread: JoinHandle<()>,
}

/// When records are looked for again after some have come, and after none have.
const SOON: Duration = Duration::from_millis(2);
const LATER: Duration = Duration::from_millis(10);
/// How long an engine's report is waited for. Every engine has this time for itself: on a busy
/// machine each waits for a processor.
const REPORT_WITHIN: Duration = Duration::from_secs(10);
/// How long its sockets' closing is waited for. Whatever takes longer ends with the process.
const CLOSED_WITHIN: Duration = Duration::from_secs(30);
/// Hosts that are named where there are many.
const NAMED: usize = 3;

impl World {
    /// Makes a world and starts its engines. Nobody is told about packets.
    ///
    /// # Errors
    /// A configuration that makes no sense, or a machine that does not allow it.
    pub fn start(config: WorldConfig) -> Result<Self, Error> {
        Self::build(config, None::<fn(&PacketRecord<'_>)>, |_| {})
    }

    /// Makes a world and starts its engines; `sink` is told what became of every packet at every
    /// link, on a thread of its own, soon after it happened (within about 50 ms). Records of one
    /// link come in order of [`PacketRecord::time`].
    ///
    /// # Errors
    /// A configuration that makes no sense, or a machine that does not allow it.
    pub fn start_with(
        config: WorldConfig,
        sink: impl FnMut(&PacketRecord<'_>) + Send + 'static,
    ) -> Result<Self, Error> {
        Self::build(config, Some(sink), |_| {})
    }

    /// `change` sees every engine's plan, the first first.
    fn build(
        config: WorldConfig,
        sink: Option<impl FnMut(&PacketRecord<'_>) + Send + 'static>,
        mut change: impl FnMut(&mut Plan),
    ) -> Result<Self, Error> {
        config.validate()?;
        let name = WorldName::next();
        let mut guard = Guard::start(&name, FOLDER);
        let mut watch = |namespace: &NetNs| {
            if let Some(guard) = &mut guard {
                guard.watch(namespace.inode());
            }
        };
        let router = NetNs::create()?;
        watch(&router);
        router.run(|| {
            // The router must not speak for itself. A kernel without IPv6 has nothing to switch
            // off.
            let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        })?;
        let hosts = make_hosts(&config, &router, &name, watch)?;
        let engines = config.engines();
        let stop = Arc::new(AtomicBool::new(false));
        let end = Arc::new(AtomicU64::new(Time::NEVER.as_nanos()));
        let (mut readers, mut plans) = (Vec::new(), Vec::new());
        for group in &engines {
            let mut plan = router.run(|| plan(&config, &hosts, group))??;
            if sink.is_some() {
                let (recorder, reader) = record::way();
                plan.recorder = Some(recorder);
                readers.push(reader);
            }
            plan.engines = engines.len();
            plan.end = end.clone();
            change(&mut plan);
            let waker = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
                .map_err(|error| Error::doing("make an eventfd", error))?;
            plans.push((part(&config, group), plan, Arc::new(waker)));
        }
        let clock = Clock::start(config.lead);
        let mut world = Self {
            hosts,
            router,
            clock,
            stop,
            end,
            engines: Vec::new(),
            records: None,
            abandoned: Arc::default(),
            failed: Arc::default(),
            links: config.links.len(),
            over: false,
            _guard: guard,
        };
        for (part, plan, waker) in plans {
            let engine = Engine::new(plan, clock);
            let (stop, awake, failed) = (world.stop.clone(), waker.clone(), world.failed.clone());
            let (tell, report) = channel();
            let work = move || {
                engine.run(&stop, &awake, |report| {
                    if report.fault.is_some() {
                        failed.store(true, Ordering::Relaxed);
                    }
                    // Nobody wants the report of a world that was dropped.
                    let _ = tell.send(report);
                });
            };
            let thread = std::thread::Builder::new()
                .name("fs-engine".to_owned())
                .spawn(work)
                .map_err(|error| Error::doing("start a thread", error))?;
            world.engines.push(Running { part, waker, report: Mutex::new(report), thread });
        }
        if let Some(sink) = sink {
            let thread = std::thread::Builder::new()
                .name("fs-records".to_owned())
                .spawn({
                    let abandoned = world.abandoned.clone();
                    move || hand_on(readers, sink, &abandoned)
                })
                .map_err(|error| Error::doing("start a thread", error))?;
            world.records = Some(thread);
        }
        Ok(world)
    }

    /// The hosts, in the order of the configuration.
    #[must_use]
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The world's clock, for stamps to compare with records.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Lets everything on the way stand still from this time on: nothing passes a link or reaches a
    /// host any more, and sums and records end with it. What is in queues then is recorded as
    /// [`Fate::Stayed`]. A time that is over counts only from about now on.
    ///
    /// [`Fate::Stayed`]: crate::Fate::Stayed
    pub fn end_at(&self, time: Time) {
        self.end.store(time.as_nanos(), Ordering::Relaxed);
    }

    /// True if an engine has ended by itself, which is a fault of the program; [`World::finish`]
    /// says more.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        !self.over
            && (self.failed.load(Ordering::Relaxed) || self.engines.iter().any(|engine| engine.thread.is_finished()))
    }

    /// Ends what runs in the hosts, stops the engines, and says what happened. All records have
    /// been handed on when it returns. What an engine that failed did is part of it as far as it is
    /// known, and [`WorldOutcome::faults`] names it.
    ///
    /// # Errors
    /// None at present.
    pub fn finish(mut self) -> Result<WorldOutcome, Error> {
        let ended = self.clock.now().min(Time::from_nanos(self.end.load(Ordering::Relaxed)));
        let (lost_to_engines, lost_to_hosts) = self.lost_outside();
        let (reports, mut faults) = self.stop();
        let ended_processes = self.end_processes();
        if let Some(records) = self.records.take()
            && let Err(panic) = records.join()
        {
            let said = message(&*panic);
            faults.push(format!("what was to be recorded is not complete: its thread ended by a fault ({said})"));
        }
        let mut links = vec![LinkOutcome::default(); self.links];
        let mut lateness = Lateness::new();
        let mut given = Vec::new();
        let mut fidelity = Fidelity { unasked_drops: lost_to_engines, real_time: true, ..Fidelity::default() };
        let (mut arrived, mut unlimited_bytes, mut stored, mut astray, mut refused) = (0, 0, 0, 0, 0);
        for report in reports {
            for (number, outcome) in report.links {
                links[number] = outcome;
            }
            lateness.add(&report.lateness);
            given.extend(report.given);
            let counts = report.counts;
            fidelity.packets += counts.delivered;
            fidelity.unasked_drops += counts.no_room;
            refused += counts.refused;
            fidelity.above_mtu += counts.above_mtu;
            fidelity.late_arrivals += counts.late_arrivals;
            fidelity.stalls += counts.stalls;
            fidelity.longest_stall = fidelity.longest_stall.max(counts.longest_stall);
            fidelity.real_time &= report.priority == Priority::RealTime;
            arrived += counts.arrived;
            unlimited_bytes += counts.unlimited_bytes;
            stored += report.stored;
            astray += counts.astray;
        }
        // Kernels from 6.8 tell whoever sends of what the interface drops.
        fidelity.unasked_drops += lost_to_hosts.max(refused);
        fidelity.median = lateness.quantile(0.5);
        fidelity.p99 = lateness.quantile(0.99);
        fidelity.worst = lateness.worst();
        fidelity.faults = faults.len() as u32;
        given.sort_by_key(|given| given.at);
        Ok(WorldOutcome {
            ended,
            links,
            fidelity,
            given,
            arrived,
            unlimited_bytes,
            stored,
            astray,
            ended_processes,
            faults,
        })
    }

    /// Packets that the kernel dropped on the way from hosts to engines, and from engines to hosts.
    /// Both ends of a pair of interfaces count the same drop; the one that sends counts every one.
    fn lost_outside(&self) -> (u64, u64) {
        let router = || {
            let mut netlink = Netlink::open()?;
            let dropped = |host: &Host| netlink.statistics(host.router_index).map(|stats| stats.tx_dropped);
            self.hosts.iter().map(dropped).sum::<Result<u64, Error>>()
        };
        let to_hosts = self.router.run(router).and_then(|lost| lost).unwrap_or(0);
        let at_hosts = self.hosts.iter().map(|host| {
            let count = || {
                let stats = Netlink::open()?.statistics(index_of(HOST_INTERFACE)?)?;
                // What a host receives and does not want (for a closed port, say) is no loss of
                // ours; its counters do not hold that.
                Ok(stats.rx_missed_errors + stats.tx_dropped)
            };
            host.run(count).and_then(|lost: Result<u64, Error>| lost).unwrap_or(0)
        });
        (at_hosts.sum::<u64>(), to_hosts)
    }

    /// Stops the engines. Their reports, and a sentence about every engine that failed.
    fn stop(&mut self) -> (Vec<Report>, Vec<String>) {
        self.over = true;
        self.stop.store(true, Ordering::Relaxed);
        for engine in &self.engines {
            // A full counter wakes too.
            let _ = engine.waker.write(1);
        }
        let (mut reports, mut faults, mut closing) = (Vec::new(), Vec::new(), Vec::new());
        for Running { part, report, thread, .. } in self.engines.drain(..) {
            let report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
            match report.recv_timeout(REPORT_WITHIN) {
                Ok(report) => {
                    let fault = report.fault.as_ref();
                    faults.extend(fault.map(|said| format!("the engine of {part} ended by a fault: {said}")));
                    reports.push(report);
                    closing.push(thread);
                }
                Err(RecvTimeoutError::Timeout) => {
                    let seconds = REPORT_WITHIN.as_secs();
                    faults.push(format!("the engine of {part} did not end within {seconds} s"));
                    self.abandoned.store(true, Ordering::Relaxed);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    faults.push(format!("the engine of {part} ended without a report"));
                }
            }
        }
        let began = Instant::now();
        while closing.iter().any(|thread| !thread.is_finished()) && began.elapsed() < CLOSED_WITHIN {
            std::thread::sleep(Duration::from_micros(200));
        }
        (reports, faults)
    }

    fn end_processes(&self) -> usize {
        let inodes: Vec<u64> = self
            .hosts
            .iter()
            .map(|host| host.namespace.inode())
            .chain([self.router.inode()])
            .filter(|n| *n != 0)
            .collect();
        end_processes_in(&inodes)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !self.over {
            self.stop();
            self.end_processes();
        }
        if let Some(records) = self.records.take() {
            // A panic of the sink has been reported by the thread itself.
            let _ = records.join();
        }
    }
}

/// Hands records of all engines on until all have ended, or are given up.
fn hand_on(mut readers: Vec<Reader>, mut sink: impl FnMut(&PacketRecord<'_>), abandoned: &AtomicBool) {
    while !readers.is_empty() {
        let last = abandoned.load(Ordering::Relaxed);
        let mut some = false;
        readers.retain_mut(|reader| {
            let read = reader.read(&mut sink);
            some |= read == Read::Some;
            read != Read::Over && !last
        });
        // Engines do not wake this thread, which would take them time.
        if !readers.is_empty() {
            std::thread::sleep(if some { SOON } else { LATER });
        }
    }
}

/// Which hosts' packets an engine carries, in words.
fn part(config: &WorldConfig, group: &[HostId]) -> String {
    let names: Vec<&str> = group.iter().take(NAMED).map(|host| config.hosts[*host].name.as_str()).collect();
    let more = group.len().saturating_sub(names.len());
    let names = names.join(", ");
    if more > 0 { format!("{names} and {more} more") } else { names }
}

#[cfg(test)]
mod tests;
