//! A world in operation: its hosts and the engines that run its links.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::eventfd::{EfdFlags, EventFd};

use flowstart_units::Time;

use crate::Error;
use crate::clock::{Clock, Priority};
use crate::config::WorldConfig;
use crate::engine::{Engine, LinkOutcome, Report};
use crate::fidelity::{Fidelity, Lateness};
use crate::host::Host;
use crate::names::end_processes_in;
use crate::namespace::NetNs;
use crate::netlink::{Netlink, index_of};
use crate::record::{self, PacketRecord, Reader};
use crate::setup::{HOST_INTERFACE, make_hosts, plan};

/// What happened in a world.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Time at the end.
    pub ended: Time,
    /// What each link did.
    pub links: Vec<LinkOutcome>,
    /// How faithful it was.
    pub fidelity: Fidelity,
    /// IP packets that hosts sent to each other, as the engines saw them.
    pub arrived: u64,
    /// Packets still in queues and delays at the end.
    pub stored: u64,
    /// Packets for addresses that no host has.
    pub astray: u64,
    /// Processes that were still running in the hosts and have been ended.
    pub ended_processes: usize,
}

/// A world in operation. Dropping it ends everything in it; [`World::finish`] does the same and says what happened.
#[derive(Debug)]
pub struct World {
    hosts: Vec<Host>,
    router: NetNs,
    clock: Clock,
    stop: Arc<AtomicBool>,
    wakers: Vec<Arc<EventFd>>,
    engines: Vec<JoinHandle<Report>>,
    records: Option<JoinHandle<()>>,
    links: usize,
    over: bool,
}

/// How long an engine's records are waited for before the next engine's are looked at.
const PATIENCE: Duration = Duration::from_millis(2);
/// How long the end of the engines is waited for.
const END_WITHIN: Duration = Duration::from_secs(5);

impl World {
    /// Makes a world and starts its engines. Nobody is told about packets.
    ///
    /// # Errors
    /// A configuration that makes no sense, or a machine that does not allow it.
    pub fn start(config: WorldConfig) -> Result<Self, Error> {
        Self::build(config, None::<fn(&PacketRecord<'_>)>)
    }

    /// Makes a world and starts its engines; `sink` is told what became of every packet at every link, on a thread of its own, soon after
    /// it happened (within about 50 ms). Records of one link come in order of [`PacketRecord::time`].
    ///
    /// # Errors
    /// A configuration that makes no sense, or a machine that does not allow it.
    pub fn start_with(
        config: WorldConfig,
        sink: impl FnMut(&PacketRecord<'_>) + Send + 'static,
    ) -> Result<Self, Error> {
        Self::build(config, Some(sink))
    }

    fn build(config: WorldConfig, sink: Option<impl FnMut(&PacketRecord<'_>) + Send + 'static>) -> Result<Self, Error> {
        config.validate()?;
        let router = NetNs::create()?;
        router.run(|| {
            // The router must not speak for itself. A kernel without IPv6 has nothing to switch off.
            let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        })?;
        let hosts = make_hosts(&config, &router)?;
        let engines = config.engines();
        let stop = Arc::new(AtomicBool::new(false));
        let (mut readers, mut plans, mut wakers) = (Vec::new(), Vec::new(), Vec::new());
        for group in &engines {
            let mut plan = router.run(|| plan(&config, &hosts, group))??;
            if sink.is_some() {
                let (recorder, reader) = record::way();
                plan.recorder = Some(recorder);
                readers.push(reader);
            }
            plans.push(plan);
            let waker = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
                .map_err(|error| Error::doing("make an eventfd", error))?;
            wakers.push(Arc::new(waker));
        }
        let clock = Clock::start(config.lead);
        let mut world = Self {
            hosts,
            router,
            clock,
            stop,
            wakers,
            engines: Vec::new(),
            records: None,
            links: config.links.len(),
            over: false,
        };
        for (plan, waker) in plans.into_iter().zip(world.wakers.clone()) {
            let engine = Engine::new(plan, clock);
            let stop = world.stop.clone();
            let thread = std::thread::Builder::new()
                .name("fs-engine".to_owned())
                .spawn(move || engine.run(&stop, &waker))
                .map_err(|error| Error::doing("start a thread", error))?;
            world.engines.push(thread);
        }
        if let Some(sink) = sink {
            let thread = std::thread::Builder::new()
                .name("fs-records".to_owned())
                .spawn(move || hand_on(readers, sink))
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

    /// True if an engine has ended by itself, which is a fault of the program; [`World::finish`] says more.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        !self.over && self.engines.iter().any(JoinHandle::is_finished)
    }

    /// Ends what runs in the hosts, stops the engines, and says what happened. All records have been handed on when it returns.
    ///
    /// # Errors
    /// If an engine ended by a fault of the program.
    pub fn finish(mut self) -> Result<Outcome, Error> {
        let ended = self.clock.now();
        let lost_outside = self.lost_outside();
        let reports = self.stop();
        let ended_processes = self.end_processes();
        if let Some(records) = self.records.take()
            && let Err(panic) = records.join()
        {
            std::panic::resume_unwind(panic);
        }
        let mut links = vec![LinkOutcome::default(); self.links];
        let mut lateness = Lateness::new();
        let mut fidelity = Fidelity { unasked_drops: lost_outside, real_time: true, ..Fidelity::default() };
        let (mut arrived, mut stored, mut astray) = (0, 0, 0);
        for report in reports {
            let report = report?;
            for (number, outcome) in report.links {
                links[number] = outcome;
            }
            lateness.add(&report.lateness);
            let counts = report.counts;
            fidelity.packets += counts.delivered;
            fidelity.unasked_drops += counts.refused + counts.no_room;
            fidelity.above_mtu += counts.above_mtu;
            fidelity.late_arrivals += counts.late_arrivals;
            fidelity.stalls += counts.stalls;
            fidelity.longest_stall = fidelity.longest_stall.max(counts.longest_stall);
            fidelity.real_time &= report.priority == Priority::RealTime;
            arrived += counts.arrived;
            stored += report.stored;
            astray += counts.astray;
        }
        fidelity.median = lateness.quantile(0.5);
        fidelity.p99 = lateness.quantile(0.99);
        fidelity.worst = lateness.worst();
        Ok(Outcome { ended, links, fidelity, arrived, stored, astray, ended_processes })
    }

    /// Packets that interfaces or the kernel's backlog dropped on the way between hosts and engines.
    fn lost_outside(&self) -> u64 {
        let router = || {
            let mut netlink = Netlink::open()?;
            self.hosts
                .iter()
                .map(|host| netlink.statistics(host.router_index).map(|stats| stats.rx_dropped + stats.tx_dropped))
                .sum::<Result<u64, Error>>()
        };
        let lost = self.router.run(router).and_then(|lost| lost).unwrap_or(0);
        let at_hosts = self.hosts.iter().map(|host| {
            let count = || {
                let stats = Netlink::open()?.statistics(index_of(HOST_INTERFACE)?)?;
                // What a host receives and does not want (for a closed port, say) is no loss of ours; its counters do not hold that.
                Ok(stats.rx_missed_errors + stats.tx_dropped)
            };
            host.run(count).and_then(|lost: Result<u64, Error>| lost).unwrap_or(0)
        });
        lost + at_hosts.sum::<u64>()
    }

    fn stop(&mut self) -> Vec<Result<Report, Error>> {
        self.over = true;
        self.stop.store(true, Ordering::Relaxed);
        for waker in &self.wakers {
            // A full counter wakes too.
            let _ = waker.write(1);
        }
        let began = Instant::now();
        self.engines
            .drain(..)
            .map(|engine| {
                while !engine.is_finished() && began.elapsed() < END_WITHIN {
                    std::thread::sleep(Duration::from_micros(200));
                }
                if !engine.is_finished() {
                    return Err(Error::Failed("an engine did not end".to_owned()));
                }
                engine.join().map_err(|_| Error::Failed("an engine ended by a fault of the program".to_owned()))
            })
            .collect()
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

/// Hands records of all engines on until all have ended.
fn hand_on(mut readers: Vec<Reader>, mut sink: impl FnMut(&PacketRecord<'_>)) {
    while !readers.is_empty() {
        readers.retain_mut(|reader| reader.read(PATIENCE, &mut sink));
    }
}
