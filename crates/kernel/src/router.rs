//! Quick-Start routers (RFC 4782 section 3.3) at the egress of this machine's devices: loaded,
//! listed, read and taken away. The program is bpf/fs_router.bpf.c; its decisions are those of
//! `flowstart-quick-start`.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher as _;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flowstart_quick_start::router::FlowsConfig;
use flowstart_units::{Rate, Span};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder};
use nix::time::{ClockId, clock_gettime};

use crate::device::{self, Device, Order, Side};
use crate::loader::{self, embedded};
use crate::lock::{self, Only};
use crate::logged::logged;
use crate::router_state::{MOST_SAMPLES, RouterState};
use crate::{Problem, bpffs, findings, hosts};

const LINK: &str = "link";
const PARAMETERS: &str = "parameters";
const STATE: &str = "state";
const PARAMETERS_SECTION: &str = ".rodata.parameters";
pub(crate) const STATE_MAP: &str = "fs_state";
pub(crate) const PROGRAM: &str = "fs_router_egress";
/// Our folders begin so; the device's number and its namespace follow.
const FOLDER: &str = "router-";
/// Longest interval for which the program's arithmetic is exact.
const LONGEST_INTERVAL: Span = Span::from_secs(2);
/// Most flows that it remembers (`FS_FLOWS` in bpf/flows.h).
const MOST_FLOWS: u32 = 1024;

/// How the load of the device is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterMeter {
    /// The mean of the last second; grants count for one to two seconds (Scharf and Strotbek).
    Mean,
    /// The largest of ten samples of 150 ms; grants count for 150 to 300 ms (RFC 4782 appendices C
    /// and D).
    Peak,
}

impl RouterMeter {
    /// Length of a sample, and how many count.
    #[must_use]
    pub fn samples(self) -> (Span, u32) {
        match self {
            Self::Mean => (Span::from_secs(1), 1),
            Self::Peak => (Span::from_millis(150), 10),
        }
    }
}

/// What a router is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouterSettings {
    /// Capacity of the link, in bits of IP packets per second.
    pub capacity: Rate,
    /// Share of it in percent that load and grants may reach together, 0 ..= 100.
    pub threshold_percent: u32,
    /// How the load is measured.
    pub meter: RouterMeter,
    /// Grants flow by flow, unused ones given back, sources with faults refused (the program's
    /// tables hold 1024 flows, which more are cut to); `None` for the sums of the last intervals'
    /// grants.
    pub flows: Option<FlowsConfig>,
    /// Requests per second that are looked at; others pass unchanged, which denies them.
    pub requests_per_second: u32,
    /// Requests looked at in a row, if there were fewer before.
    pub burst: u32,
    /// By how much this machine lowers the TTL of what it forwards: 1 for a router, 0 for a bridge.
    pub hops: u8,
}

impl RouterSettings {
    /// With the crate's defaults: the paper's meter, all of the capacity, 10,000 requests per
    /// second, 100 in a row.
    #[must_use]
    pub fn new(capacity: Rate) -> Self {
        Self {
            capacity,
            threshold_percent: 100,
            meter: RouterMeter::Mean,
            flows: None,
            requests_per_second: 10_000,
            burst: 100,
            hops: 1,
        }
    }

    /// What load and grants may reach together.
    #[must_use]
    pub fn limit(&self) -> Rate {
        self.capacity.mul_ratio(u64::from(self.threshold_percent.min(100)), 100)
    }

    /// The table as the program reads it (`fs_parameters` in bpf/fs_router.bpf.c).
    fn bytes(&self, origin: u64, link_header: u32, test: bool) -> Vec<u8> {
        let (interval, samples) = self.meter.samples();
        let gap = Span::from_secs(1) / u64::from(self.requests_per_second);
        let tolerance = gap * u64::from(self.burst.saturating_sub(1));
        let interval = interval.min(LONGEST_INTERVAL).as_nanos();
        let wide = [self.limit().as_bps(), interval, origin, gap.as_nanos(), tolerance.as_nanos()];
        let narrow = [samples.min(MOST_SAMPLES), u32::from(self.hops), link_header, u32::from(test)];
        let flows = self.flows.unwrap_or(FlowsConfig { flows: 0, ..FlowsConfig::default() });
        let most = flows.flows.min(MOST_FLOWS);
        let of_flows = [most, flows.faults, u32::from(flows.expect_reports), u32::from(flows.count_once)];
        // Nobody outside knows where the hash tables put what.
        let seed = RandomState::new().hash_one(origin);
        let last = [flows.unused_after.as_nanos(), flows.forgive_after.as_nanos(), seed];
        let narrow = narrow.iter().chain(&of_flows).flat_map(|word| word.to_ne_bytes());
        wide.iter()
            .flat_map(|word| word.to_ne_bytes())
            .chain(narrow)
            .chain(last.iter().flat_map(|word| word.to_ne_bytes()))
            .collect()
    }
}

/// A router that is loaded.
#[derive(Clone, Debug)]
pub struct LoadedRouter {
    /// Name of its device; `None` if that is in a network namespace that nobody named.
    pub device: Option<String>,
    /// What `ip netns` calls the network namespace of its device, if it is not this one.
    pub netns: Option<String>,
    /// Number of its device in its network namespace.
    pub index: u32,
    /// Inode of that namespace.
    pub namespace: u64,
    folder: PathBuf,
}

impl LoadedRouter {
    /// What it has seen and decided until now.
    ///
    /// # Errors
    /// If this user may not read it, or it was taken away.
    pub fn state(&self) -> Result<RouterState, Problem> {
        let (parameters, state) = (self.memory(PARAMETERS)?, self.memory(STATE)?);
        RouterState::read(&state)
            .map(|read| read.at(clock(), &state, &parameters))
            .ok_or_else(|| Problem::new("the router's state has another form", ""))
    }

    /// The program's memory that is pinned under this name.
    fn memory(&self, name: &str) -> Result<Vec<u8>, Problem> {
        let map = MapHandle::from_pinned_path(self.folder.join(name)).map_err(|error| self.unreadable(&error))?;
        let bytes = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).map_err(|error| self.unreadable(&error))?;
        Ok(bytes.unwrap_or_default())
    }

    /// What load and grants may reach together.
    ///
    /// # Errors
    /// As [`state`](Self::state).
    pub fn limit(&self) -> Result<Rate, Problem> {
        let bytes = self.memory(PARAMETERS)?;
        let first = bytes.first_chunk();
        Ok(Rate::from_bps(first.map_or(0, |word| u64::from_ne_bytes(*word))))
    }

    /// False once it was unloaded, or its device went away.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        let link = self.folder.join(LINK);
        fs::symlink_metadata(&link).is_ok() && hosts::is_attached(&link)
    }

    fn unreadable(&self, error: &libbpf_rs::Error) -> Problem {
        if fs::symlink_metadata(&self.folder).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Problem::new("the router is gone", "it was unloaded, or its device went away");
        }
        Problem::denied(format!("the router at {} cannot be read ({error})", self.folder.display()), "this needs root")
    }

    /// Takes it away; packets pass as if it had never been there.
    ///
    /// # Errors
    /// If this user may not.
    pub fn unload(self) -> Result<(), Problem> {
        let _turn = loader::turn()?;
        fs::remove_file(self.folder.join(LINK)).map_err(|error| {
            Problem::denied(format!("{} could not be removed: {error}", self.folder.display()), "this needs root")
        })?;
        loader::remove(&self.folder);
        if let Some(parent) = self.folder.parent() {
            bpffs::clean(parent);
        }
        Ok(())
    }
}

/// Nanoseconds of the clock that programs read.
fn clock() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_or(0, |time| time.tv_sec().unsigned_abs() * 1_000_000_000 + time.tv_nsec().unsigned_abs())
}

pub(crate) fn opened(settings: &RouterSettings, link_header: u32, test: bool) -> libbpf_rs::Result<Object> {
    let mut open = ObjectBuilder::default().open_memory(embedded!("fs_router"))?;
    for mut map in open.maps_mut() {
        if map.name() == PARAMETERS_SECTION {
            map.set_initial_value(&settings.bytes(if test { 0 } else { clock() }, link_header, test))?;
        }
    }
    open.load()
}

/// Loads a router at the egress of a device, in this network namespace or the one named as `ip
/// netns` knows it. It stays when the process ends. A `capacity` of zero stands for what the device
/// says.
///
/// # Errors
/// If there is no such device, one of ours is there already, this user may not, or the kernel
/// refuses.
pub fn load_router(name: &str, namespace: Option<&str>, settings: &RouterSettings) -> Result<LoadedRouter, Problem> {
    let capabilities = findings::capabilities();
    if !capabilities.good {
        return Err(Problem::denied(format!("capabilities are {}", capabilities.found), "run it as root"));
    }
    if let Some(name) = device::executed_in() {
        return Err(Problem::new(
            format!("what is loaded in `ip netns exec {name}` ends with it"),
            format!("leave that out, and say --netns {name}"),
        ));
    }
    let found = device::within(namespace, || Device::find(name))?;
    let mut settings = *settings;
    if settings.capacity == Rate::ZERO {
        let megabits = found.megabits.ok_or_else(|| {
            Problem::new(
                format!("{name} does not say how fast it is"),
                "say it with --capacity, as in --capacity 1Gbit/s",
            )
        })?;
        settings.capacity = Rate::from_mbps(megabits);
    }
    let _turn = loader::turn()?;
    let parent = bpffs::make_folder().map_err(|error| {
        Problem::denied(format!("no BPF file system could be mounted or written to ({error})"), "this needs root")
    })?;
    let folder = parent.join(format!("{FOLDER}{}-{}", found.index, found.namespace));
    if fs::symlink_metadata(folder.join(LINK)).is_ok() {
        // A device that went away leaves a link to nothing behind; its number may be another's now.
        if hosts::is_attached(&folder.join(LINK)) {
            return Err(Problem::new(
                format!("there is a router at {name} already"),
                format!("`flowstart router unload --dev {name}{}` first", there(namespace)),
            ));
        }
    }
    loader::remove(&folder);
    let result = fs::create_dir(&folder)
        .map_err(|error| Problem::denied(format!("{} could not be made: {error}", folder.display()), "this needs root"))
        .and_then(|()| attach(&settings, &found, namespace, &folder));
    if let Err(problem) = result {
        loader::remove(&folder);
        bpffs::clean(&parent);
        return Err(problem);
    }
    let netns = namespace.map(str::to_owned);
    Ok(LoadedRouter { device: Some(name.to_owned()), netns, index: found.index, namespace: found.namespace, folder })
}

/// The option that says where a device is.
fn there(namespace: Option<&str>) -> String {
    namespace.map_or_else(String::new, |name| format!(" --netns {name}"))
}

fn attach(settings: &RouterSettings, device: &Device, namespace: Option<&str>, folder: &Path) -> Result<(), Problem> {
    let object = logged("the router", || opened(settings, device.link_header, false))?;
    for map in object.maps() {
        let pin = match map.name().to_str() {
            Some(PARAMETERS_SECTION) => PARAMETERS,
            Some(STATE_MAP) => STATE,
            _ => continue,
        };
        device::pin(map.as_fd(), &folder.join(pin))?;
    }
    let program = object.progs().find(|program| program.name() == PROGRAM);
    let program = program.ok_or_else(|| Problem::new("the program is missing in its object", ""))?;
    let fd = program.as_fd();
    let link = device::within(namespace, || device::attach(fd, device, Side::Egress, Order::Last))?;
    device::pin(link.as_fd(), &folder.join(LINK))
}

/// Routers that are loaded, by us, at devices that still exist; as far as this user may see them.
///
/// # Errors
/// If there is a BPF file system that this user may not look into.
pub fn routers() -> Result<Vec<LoadedRouter>, Problem> {
    if let Some(hidden) = bpffs::hidden() {
        return Err(Problem::denied(format!("{} may not be looked into", hidden.display()), "this needs root"));
    }
    let here = device::namespace();
    let (mut found, mut is_gone) = (Vec::new(), false);
    for folder in bpffs::folders().iter().filter_map(|parent| fs::read_dir(parent).ok()).flatten().flatten() {
        let name = folder.file_name();
        let Some((index, namespace)) =
            name.to_str().and_then(|name| name.strip_prefix(FOLDER)).and_then(|name| name.split_once('-'))
        else {
            continue;
        };
        let (Ok(index), Ok(namespace)) = (index.parse(), namespace.parse()) else { continue };
        let folder = folder.path();
        if hosts::is_attached(&folder.join(LINK)) {
            let netns = if namespace == here { None } else { device::namespace_name(namespace) };
            let device = match &netns {
                Some(name) => device::within(Some(name), || Ok(device::name_of(index))).ok().flatten(),
                None if namespace == here => device::name_of(index),
                None => None,
            };
            found.push(LoadedRouter { device, netns, index, namespace, folder });
        } else {
            // Its device is gone, and so is all it could say.
            loader::remove(&folder);
            is_gone = true;
        }
    }
    // What it was kept in goes with the last of ours, unless somebody is loading into it now.
    if is_gone && let Ok(Ok(_turn)) = lock::take(Only::Changes, Duration::ZERO) {
        bpffs::folders().iter().for_each(|parent| bpffs::clean(parent));
    }
    found.sort_by_key(|router| (router.namespace, router.index));
    Ok(found)
}

/// The router at this device.
///
/// # Errors
/// If there is no such device, or no router of ours at it.
pub fn router_at(name: &str, namespace: Option<&str>) -> Result<LoadedRouter, Problem> {
    let device = device::within(namespace, || Device::find(name))?;
    let at = |router: &LoadedRouter| (router.index, router.namespace) == (device.index, device.namespace);
    let router = routers()?.into_iter().find(at);
    router.map(|router| LoadedRouter { device: Some(name.to_owned()), ..router }).ok_or_else(|| {
        Problem::new(format!("there is no router at {name}"), "`flowstart router list` says where there are")
    })
}
