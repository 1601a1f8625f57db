//! What a Quick-Start router's program costs, as the kernel's statistics of programs say
//! (`BPF_ENABLE_STATS`), beside a program that does nothing.

use std::ffi::CStr;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use crate::{Problem, RouterBench, RouterSettings};

/// Time of a packet in a program, ns, in each run; a run has packets of all kinds in turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouterCost {
    /// A program that does nothing: what calling and measuring takes.
    pub empty: Vec<f64>,
    /// Packets without options, which are metered only.
    pub metering: Vec<f64>,
    /// One in a hundred is a request that is granted.
    pub one_percent: Vec<f64>,
    /// All are requests that are granted.
    pub requests: Vec<f64>,
}

/// Packets of a kind in a row; between two of them comes another kind.
const ROW: u32 = 99;

/// A program that does nothing, in the kernel: r0 = 0, exit.
fn empty() -> io::Result<OwnedFd> {
    const NAME: &CStr = c"fs_empty";
    static INSTRUCTIONS: [[u8; 8]; 2] = [[0xb7, 0, 0, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
    // SAFETY: names and instructions are constants, and there are no options.
    let fd = unsafe {
        libbpf_sys::bpf_prog_load(
            libbpf_sys::BPF_PROG_TYPE_SCHED_CLS,
            NAME.as_ptr(),
            c"Dual MIT/GPL".as_ptr(),
            INSTRUCTIONS.as_ptr().cast(),
            INSTRUCTIONS.len() as _,
            std::ptr::null_mut(),
        )
    };
    owned(fd)
}

fn owned(fd: i32) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: the kernel just gave this descriptor to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Gives a program so many packets, one after the other.
fn run(program: i32, frame: &[u8], packets: u32) -> io::Result<()> {
    // SAFETY: all zeros are a valid value of this plain structure.
    let mut options: libbpf_sys::bpf_test_run_opts = unsafe { mem::zeroed() };
    options.sz = mem::size_of_val(&options) as _;
    options.data_in = frame.as_ptr().cast();
    options.data_size_in = frame.len() as _;
    options.repeat = packets as _;
    // SAFETY: options and packet live until the call has returned.
    let error = unsafe { libbpf_sys::bpf_prog_test_run_opts(program, &raw mut options) };
    if error < 0 { Err(io::Error::from_raw_os_error(-error)) } else { Ok(()) }
}

/// Time in a program and packets so far, as the kernel counts.
fn spent(program: i32) -> io::Result<(u64, u64)> {
    // SAFETY: all zeros are a valid value of this plain structure.
    let mut info: libbpf_sys::bpf_prog_info = unsafe { mem::zeroed() };
    let mut length = mem::size_of_val(&info) as u32;
    // SAFETY: the pointer and the length are those of the structure, which the kernel fills.
    let error = unsafe { libbpf_sys::bpf_obj_get_info_by_fd(program, (&raw mut info).cast(), &raw mut length) };
    if error < 0 { Err(io::Error::from_raw_os_error(-error)) } else { Ok((info.run_time_ns, info.run_cnt)) }
}

/// Measures so many runs of about `packets` packets of each kind: `plain` and `request` are packets
/// of IP. All requests must be granted at the rate they ask for.
///
/// # Errors
/// If this user may not, or the kernel refuses.
pub fn router_cost(
    settings: &RouterSettings,
    plain: &[u8],
    request: &[u8],
    runs: u32,
    packets: u32,
) -> Result<RouterCost, Problem> {
    let bench = RouterBench::new(settings, false)?;
    let failed =
        |error: io::Error| Problem::denied(format!("programs cannot be measured ({error})"), "this needs root");
    // SAFETY: the call has no pointers.
    let statistics = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    let _statistics = owned(statistics).map_err(failed)?;
    let nothing = empty().map_err(failed)?;
    let frame = |packet: &[u8]| [&[0; 12][..], &[8, 0], packet].concat();
    let (plain, request) = (frame(plain), frame(request));
    let router = bench.descriptor()?;
    // Mean of one course of packets of two kinds, so many of each at a time.
    let course = |program: i32, kinds: &[(&[u8], u32)]| -> io::Result<f64> {
        let (time, count) = spent(program)?;
        let each: u32 = kinds.iter().map(|(_, number)| number).sum();
        for _ in 0..packets.div_ceil(each) {
            kinds.iter().try_for_each(|(frame, number)| run(program, frame, *number))?;
        }
        let (later, more) = spent(program)?;
        Ok((later - time) as f64 / (more - count).max(1) as f64)
    };
    let mut cost = RouterCost::default();
    for _ in 0..runs {
        // As many calls of the kernel for each, and so as many cold beginnings.
        cost.empty.push(course(nothing.as_raw_fd(), &[(&plain, ROW), (&plain, 1)]).map_err(failed)?);
        cost.metering.push(course(router, &[(&plain, ROW), (&plain, 1)]).map_err(failed)?);
        cost.one_percent.push(course(router, &[(&plain, ROW), (&request, 1)]).map_err(failed)?);
        cost.requests.push(course(router, &[(&request, ROW), (&request, 1)]).map_err(failed)?);
    }
    Ok(cost)
}
