//! A Quick-Start router's program without a device, given packets one by one or by several threads
//! at once.

use std::io;
use std::mem;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, Object};

use crate::logged::logged;
use crate::router::{PROGRAM, STATE_MAP, opened};
use crate::{Problem, RouterSettings, RouterState};

/// Offset of `cb` in `struct __sk_buff`.
const CONTROL: usize = 48;
const CONTEXT: usize = 192;
const ETHERNET: usize = 14;

/// A router's program without a device: it is given packets, and the time, by `BPF_PROG_TEST_RUN`.
/// For tests, and to see what it costs.
#[derive(Debug)]
pub struct RouterBench {
    object: Object,
}

/// Another way to a [`RouterBench`]'s program, for a thread: what passes here is decided on with
/// what passes there, on another processor.
#[derive(Debug)]
pub struct RouterLane {
    program: OwnedFd,
}

/// What became of a packet in a [`RouterBench`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The packet as it leaves, from its header of IP on.
    pub packet: Vec<u8>,
    /// What was granted, as a rate code; `None` if nothing was decided.
    pub decided: Option<u8>,
}

/// Gives a packet of IP to a program so often, as it left it; what became of it, and how long each
/// time took.
fn pass(
    program: BorrowedFd<'_>,
    now: u64,
    random: u32,
    packet: &[u8],
    repeat: u32,
) -> Result<(Passed, Duration), Problem> {
    let kind: u16 = if packet.first().is_some_and(|first| first >> 4 == 6) { 0x86dd } else { 0x0800 };
    let mut frame = vec![0; ETHERNET - 2];
    frame.extend_from_slice(&kind.to_be_bytes());
    frame.extend_from_slice(packet);
    let mut context = [0_u8; CONTEXT];
    context[CONTROL..CONTROL + 8].copy_from_slice(&now.to_ne_bytes());
    context[CONTROL + 8..CONTROL + 12].copy_from_slice(&random.to_ne_bytes());
    let mut out = vec![0; frame.len() + 64];
    // SAFETY: all zeros are a valid value of this plain structure.
    let mut options: libbpf_sys::bpf_test_run_opts = unsafe { mem::zeroed() };
    options.sz = mem::size_of_val(&options) as _;
    options.ctx_in = context.as_ptr().cast();
    options.ctx_size_in = context.len() as _;
    options.data_in = frame.as_ptr().cast();
    options.data_size_in = frame.len() as _;
    options.data_out = out.as_mut_ptr().cast();
    options.data_size_out = out.len() as _;
    options.repeat = repeat as _;
    // SAFETY: options, context and packets live until the call has returned.
    let error = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
    if error < 0 {
        let why = io::Error::from_raw_os_error(-error);
        return Err(Problem::new(format!("the kernel did not run it: {why}"), ""));
    }
    out.truncate(options.data_size_out as usize);
    let packet = out.get(ETHERNET..).unwrap_or_default().to_vec();
    let decided = options.retval.checked_sub(1).and_then(|code| u8::try_from(code).ok());
    Ok((Passed { packet, decided }, Duration::from_nanos(options.duration.into())))
}

impl RouterBench {
    /// The program with these settings. With `test_clock` time comes with each packet, else it is
    /// the kernel's.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn new(settings: &RouterSettings, test_clock: bool) -> Result<Self, Problem> {
        let object = logged("the router", || opened(settings, ETHERNET as u32, test_clock))?;
        Ok(Self { object })
    }

    /// A packet of IP, whose TTL has been lowered, leaves `now` nanoseconds after the beginning;
    /// `random` is what makes nonces. With `repeat` above one it is given to the program so often,
    /// as it was left. Also how long that took for each.
    ///
    /// # Errors
    /// If the kernel does not run it.
    pub fn pass(&self, now: u64, random: u32, packet: &[u8], repeat: u32) -> Result<(Passed, Duration), Problem> {
        pass(self.program()?, now, random, packet, repeat)
    }

    /// The program for another thread.
    ///
    /// # Errors
    /// If this process has too many files open.
    pub fn lane(&self) -> Result<RouterLane, Problem> {
        let program = self.program()?.try_clone_to_owned();
        let program = program.map_err(|error| Problem::new(format!("the program cannot be shared ({error})"), ""))?;
        Ok(RouterLane { program })
    }

    fn program(&self) -> Result<BorrowedFd<'_>, Problem> {
        let program = self.object.progs().find(|program| program.name() == PROGRAM);
        let program = program.ok_or_else(|| Problem::new("the program is missing in its object", ""))?;
        let number = program.as_fd().as_raw_fd();
        // SAFETY: the object keeps its program open for as long as it is borrowed.
        Ok(unsafe { BorrowedFd::borrow_raw(number) })
    }

    /// The program, for the kernel.
    pub(crate) fn descriptor(&self) -> Result<i32, Problem> {
        Ok(self.program()?.as_raw_fd())
    }

    /// What it has seen and decided.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn state(&self) -> Result<RouterState, Problem> {
        let unreadable = || Problem::new("the router's state cannot be read", "");
        let map = self.object.maps().find(|map| map.name() == STATE_MAP).ok_or_else(unreadable)?;
        let bytes = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok().flatten().ok_or_else(unreadable)?;
        RouterState::read(&bytes).ok_or_else(unreadable)
    }
}

impl RouterLane {
    /// As [`RouterBench::pass`], once.
    ///
    /// # Errors
    /// If the kernel does not run it.
    pub fn pass(&self, now: u64, random: u32, packet: &[u8]) -> Result<Passed, Problem> {
        pass(self.program.as_fd(), now, random, packet, 1).map(|(passed, _)| passed)
    }
}
