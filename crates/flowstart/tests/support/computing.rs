//! Programs that are waited for by what they have done, not by the clock.

use std::process::Child;
use std::time::Duration;
#[cfg(target_os = "linux")]
use std::time::Instant;

/// Waits until a program heeds Ctrl-C and has computed for so many seconds more, however long it
/// has to wait for a processor; or until it has ended.
#[cfg(target_os = "linux")]
pub(crate) fn wait_until_computed(child: &Child, seconds: f64) {
    let of = |what: &str| std::fs::read_to_string(format!("/proc/{}/{what}", child.id())).expect("a child's");
    let ended = || of("stat").contains(") Z ");
    // The mask of signals that are caught, of which SIGINT is the second (proc(5)).
    let heeds = || {
        let status = of("status");
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 2 != 0)
    };
    // Hundredths of a second in user mode and in the kernel.
    let spent = || {
        let stat = of("stat");
        let numbers = stat.rsplit(')').next().expect("numbers").split_whitespace();
        numbers.skip(11).take(2).map(|ticks| ticks.parse::<f64>().expect("a number")).sum::<f64>() / 100.0
    };
    let began = Instant::now();
    let wait = |is_so: &dyn Fn() -> bool| {
        while !is_so() && !ended() {
            assert!(began.elapsed() < Duration::from_secs(200), "it does not compute");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    wait(&heeds);
    let before = spent();
    wait(&|| spent() >= before + seconds);
}

/// As much as can be done where systems say nothing of that.
#[cfg(not(target_os = "linux"))]
pub(crate) fn wait_until_computed(_child: &Child, seconds: f64) {
    std::thread::sleep(Duration::from_secs_f64(seconds + 1.0));
}
