//! Registers the programs as congestion controls that outlive the process, and takes them away.

use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use libbpf_rs::{ErrorExt, MapCore, ObjectBuilder};

use crate::lock::{self, Lock, Only};
use crate::logged::logged;
use crate::problem::Problem;
use crate::registered::{EVENTS, LINK, Loaded, PARAMETERS, WATCHERS, available, is_available, loaded, not_there};
use crate::{Algorithm, Settings, bpffs, findings, groups, hosts};

/// The section of every program's parameters.
const PARAMETERS_SECTION: &str = ".rodata.parameters";
/// What is kept open for other processes: the map's name and the pin's.
const PINNED: [(&str, &str); 4] = [
    (PARAMETERS_SECTION, PARAMETERS),
    ("fs_events", EVENTS),
    (".bss.watchers", WATCHERS),
    (".bss.counts", hosts::COUNTS),
];
/// The parameter that decides whether connections ask for ECN, and the flag in `tcp_congestion_ops`
/// for it (Linux `TCP_CONG_NEEDS_ECN`).
const ECN: &str = "ecn";
/// The program at the root of control groups, its pin, and the parameters of which one has to be on
/// for it.
const ROOM: (&str, &str) = ("fs_make_room", "room");
const NEED_ROOM: [&str; 2] = ["after_idle", "in_middle"];
const NEEDS_ECN: u32 = 2;
/// The kernel releases an unpinned registration a little later.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long another process's loading or unloading is waited for.
const TURN: Duration = Duration::from_secs(60);

// The ELF parser wants the alignment of its widest field.
#[repr(C, align(8))]
pub(crate) struct Aligned<T: ?Sized>(pub(crate) T);

/// A compiled program.
macro_rules! embedded {
    ($name:literal) => {{
        static OBJECT: &$crate::loader::Aligned<[u8]> =
            &$crate::loader::Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o")));
        &OBJECT.0
    }};
}
pub(crate) use embedded;

/// The compiled program.
fn object(algorithm: Algorithm) -> &'static [u8] {
    match algorithm {
        Algorithm::PacedChirping => embedded!("fs_chirp"),
        Algorithm::Dctcp => embedded!("fs_dctcp"),
        Algorithm::QuickStart => embedded!("fs_quick_start"),
        Algorithm::Scalable => embedded!("fs_scalable"),
        Algorithm::SlowStartReno => embedded!("fs_slow_start_reno"),
    }
}

/// True when the kernel has let go of a registration, which it does a little later.
fn is_released(algorithm: Algorithm) -> bool {
    let began = Instant::now();
    while is_available(algorithm) {
        if began.elapsed() > PATIENCE {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

/// This process alone loads and unloads while it has this.
pub(crate) fn turn() -> Result<Lock, Problem> {
    lock::take(Only::Changes, TURN)?.map_err(|pid| {
        Problem::new(format!("another flowstart (process {pid}) has been loading or unloading for long"), "try again")
    })
}

/// Registers an algorithm with these settings under its kernel name. It stays registered when the
/// process ends.
///
/// # Errors
/// If it is registered already, a capability is missing, or the kernel refuses the program; the log
/// says why.
pub fn load(settings: &Settings) -> Result<Loaded, Problem> {
    let algorithm = settings.algorithm();
    let name = algorithm.kernel_name();
    let capabilities = findings::capabilities();
    if !capabilities.good {
        return Err(Problem::denied(format!("capabilities are {}", capabilities.found), capabilities.remedy));
    }
    let types = findings::types();
    if !types.good {
        return Err(Problem::denied("this kernel does not say what its types are (BTF)", types.remedy));
    }
    let _turn = turn()?;
    bpffs::check_lasting()?;
    let parent = bpffs::make_folder().map_err(|error| {
        Problem::denied(format!("no BPF file system could be mounted or written to ({error})"), "this needs root")
    })?;
    let folder = parent.join(name);
    // The link is pinned last. A folder without it is what a process left that was killed while it
    // loaded: nobody else can be at it now.
    let is_half = fs::symlink_metadata(&folder).is_ok() && fs::symlink_metadata(folder.join(LINK)).is_err();
    if is_half {
        remove(&folder);
    }
    if is_available(algorithm) && !(is_half && is_released(algorithm)) {
        let ours = loaded().iter().any(|loaded| loaded.algorithm == algorithm);
        let remedy = if ours {
            format!("`flowstart kernel unload {algorithm}` first")
        } else {
            "another program registered it".to_owned()
        };
        bpffs::clean(&parent);
        return Err(Problem::new(format!("the kernel has a congestion control {name} already"), remedy));
    }
    // From here on the folder is this process's own.
    let result = fs::create_dir(&folder)
        .map_err(|error| Problem::denied(format!("{} could not be made: {error}", folder.display()), "this needs root"))
        .and_then(|()| {
            let registered = register(settings, &folder);
            if registered.is_err() {
                remove(&folder);
            }
            registered
        });
    if result.is_err() {
        bpffs::clean(&parent);
    }
    result.map(|()| Loaded { algorithm, settings: Some(settings.clone()), folder })
}

fn register(settings: &Settings, folder: &Path) -> Result<(), Problem> {
    let needs_room = NEED_ROOM.iter().any(|name| settings.value(name) == Some(1));
    let root = if needs_room { Some(groups::root()?) } else { None };
    logged(settings.algorithm().kernel_name(), || attach(settings, folder, root.as_ref()))
}

fn attach(settings: &Settings, folder: &Path, root: Option<&File>) -> libbpf_rs::Result<()> {
    let algorithm = settings.algorithm();
    let mut open = ObjectBuilder::default().open_memory(object(algorithm))?;
    for mut map in open.maps_mut() {
        if map.name() == PARAMETERS_SECTION {
            map.set_initial_value(&settings.bytes())?;
        }
        if map.map_type() == libbpf_rs::MapType::StructOps
            && settings.value(ECN) == Some(0)
            && let Some(flags) = map.initial_value_mut().and_then(|ops| flags_of(ops, algorithm))
        {
            let without = u32::from_ne_bytes(*flags) & !NEEDS_ECN;
            *flags = without.to_ne_bytes();
        }
    }
    for mut program in open.progs_mut() {
        if program.name() == ROOM.0 {
            program.set_autoload(root.is_some());
        }
    }
    let mut object = open.load()?;
    for mut map in object.maps_mut() {
        if let Some((_, pin)) = PINNED.iter().find(|(name, _)| map.name() == *name) {
            map.pin(folder.join(pin))?;
        }
    }
    for mut program in object.progs_mut() {
        if let Some(pin) = program.name().to_str().and_then(hosts::pin_of) {
            program.pin(folder.join(pin))?;
        }
        if let Some(root) = root.filter(|_| program.name() == ROOM.0) {
            let mut link = program.attach_cgroup(root.as_raw_fd()).context("nothing may be attached to its groups")?;
            link.pin(folder.join(ROOM.1))?;
        }
    }
    for mut map in object.maps_mut() {
        if map.map_type() == libbpf_rs::MapType::StructOps {
            let mut link = map.attach_struct_ops()?;
            link.pin(folder.join(LINK)).context("the registration could not be pinned")?;
        }
    }
    Ok(())
}

/// The flags in the program's `struct tcp_congestion_ops` (bpf/kernel.h): they follow the 16 bytes
/// of the name.
fn flags_of(ops: &mut [u8], algorithm: Algorithm) -> Option<&mut [u8; 4]> {
    const NAME_BYTES: usize = 16;
    let mut name = [0; NAME_BYTES];
    name[..algorithm.kernel_name().len()].copy_from_slice(algorithm.kernel_name().as_bytes());
    let place = ops.windows(NAME_BYTES).position(|window| window == name)?;
    ops.get_mut(place + NAME_BYTES..)?.first_chunk_mut()
}

/// Takes an algorithm away. Connections that use it keep it until they end; new ones cannot choose
/// it.
///
/// # Errors
/// If it is not registered by us, is the system's default, or cannot be removed.
pub fn unload(algorithm: Algorithm) -> Result<(), Problem> {
    let name = algorithm.kernel_name();
    let find = || loaded().into_iter().find(|loaded| loaded.algorithm == algorithm);
    let missing = || not_there(algorithm, "`flowstart kernel list` says what is");
    // Whoever may not see it need not wait for anything.
    find().ok_or_else(missing)?;
    let _turn = turn()?;
    let loaded = find().ok_or_else(missing)?;
    let default = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap_or_default();
    if default.trim() == name {
        let other = available().into_iter().find(|other| other != name).unwrap_or_else(|| "reno".to_owned());
        return Err(Problem::new(
            format!("{name} is the system's default congestion control"),
            format!("`sysctl net.ipv4.tcp_congestion_control={other}` first"),
        ));
    }
    // Only those may who made it: else a part of it could go and the rest stay.
    if let Err(error) = fs::remove_file(loaded.folder.join(LINK)) {
        let cause = format!("{} could not be removed: {error}", loaded.folder.join(LINK).display());
        return Err(Problem::denied(cause, "this needs root"));
    }
    remove(&loaded.folder);
    if let Some(parent) = loaded.folder.parent() {
        bpffs::clean(parent);
    }
    if !is_released(algorithm) {
        return Err(Problem::new(
            format!("{name} is still registered"),
            "a program may hold it open: see `bpftool link`",
        ));
    }
    Ok(())
}

/// Takes away a folder with everything pinned in it.
pub(crate) fn remove(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let _ = fs::remove_file(entry.path());
    }
    let _ = fs::remove_dir(folder);
}
