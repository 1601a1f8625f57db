//! What a Quick-Start router's program costs per packet, as the kernel measures it
//! (`BPF_PROG_TEST_RUN`): an empty program, packets without options, which are metered only, and
//! requests, all of which are granted. The medians and quartiles of runs of a million packets,
//! taken in turn; a mix of both kinds of packets is worked out from the two.
//!
//! `cargo run --release -p flowstart-kernel --features ebpf --example router_cost -- 15`

use std::ffi::CStr;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use flowstart_kernel::{RouterBench, RouterSettings};
use flowstart_quick_start::wire::{IpOption, Ipv4, checksum};
use flowstart_quick_start::{Nonce, RateCode};
use flowstart_units::Rate;

/// Packets of a run.
const PACKETS: u32 = 1_000_000;
/// As in figure 6 of Scharf and Strotbek.
const BYTES: u16 = 50;

fn plain() -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend(BYTES.to_be_bytes());
    packet.extend([0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 10, 0, 1, 2, 10, 0, 2, 2]);
    packet.resize(usize::from(BYTES), 0);
    packet[32] = 0x50;
    let check = checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&check.to_be_bytes());
    packet
}

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
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: the kernel just gave this descriptor to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// What it takes for each packet, in nanoseconds.
fn cost_of(program: &OwnedFd, packet: &[u8]) -> io::Result<f64> {
    // SAFETY: all zeros are a valid value of this plain structure.
    let mut options: libbpf_sys::bpf_test_run_opts = unsafe { mem::zeroed() };
    options.sz = mem::size_of_val(&options) as _;
    options.data_in = packet.as_ptr().cast();
    options.data_size_in = packet.len() as _;
    options.repeat = PACKETS as _;
    // SAFETY: options and packet live until the call has returned.
    let error = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
    if error < 0 { Err(io::Error::from_raw_os_error(-error)) } else { Ok(f64::from(options.duration)) }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runs: usize = std::env::args().nth(1).map_or(Ok(15), |text| text.parse())?;
    // So much capacity that everything is granted; every request is looked at.
    let settings = |capacity| RouterSettings {
        requests_per_second: u32::MAX,
        burst: u32::MAX,
        hops: 1,
        ..RouterSettings::new(Rate::from_bps(capacity))
    };
    let option = IpOption::Request { rate: RateCode::MIN, ttl: 9, nonce: Nonce::new(1) };
    let request = Ipv4::with_option(&plain(), option).ok_or("no room")?;
    let mut generous = RouterBench::new(&settings(1 << 62), false)?;
    let mut results = vec![Vec::new(); 2];
    let (nothing, mut nothings) = (empty()?, Vec::new());
    let frame = [vec![0; 12], vec![8, 0], plain()].concat();
    for _ in 0..runs {
        nothings.push(cost_of(&nothing, &frame)?);
        for (packet, result) in [plain(), request.clone()].iter().zip(&mut results) {
            let (_, each) = generous.pass(0, 0, packet, PACKETS)?;
            result.push(each.as_nanos() as f64);
        }
    }
    let state = generous.state()?;
    println!("{runs} runs of {PACKETS} packets of {BYTES} bytes each; {} requests granted\n", state.approved);
    println!("| packets | ns per packet, median (quartiles) |\n|---|---|");
    for result in results.iter_mut().chain([&mut nothings]) {
        result.sort_unstable_by(f64::total_cmp);
    }
    let at = |result: &[f64], share: usize| result[(result.len() - 1) * share / 4];
    println!("| an empty program | {:.0} ({:.0}–{:.0}) |", at(&nothings, 2), at(&nothings, 1), at(&nothings, 3));
    for (name, requests) in [("without requests", 0.0), ("1 % requests", 0.01), ("all requests", 1.0)] {
        let mixed = |share| at(&results[0], share) * (1.0 - requests) + at(&results[1], share) * requests;
        println!("| {name} | {:.0} ({:.0}–{:.0}) |", mixed(2), mixed(1), mixed(3));
    }
    Ok(())
}
