//! Ctrl-C: the first asks for an orderly end, the second ends at once.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use flowstart_parallel::Cancel;

/// Exit status after Ctrl-C: 128 and the number of SIGINT, as shells have it.
pub(crate) const STATUS: u8 = 130;

/// What comes sooner after the first is the same wish: `timeout` signals a program and then its
/// whole group, which the program is in.
const AGAIN: Duration = Duration::from_millis(200);

/// What the handler asks to stop: one handler for everything that a command runs.
static ASKED: OnceLock<Cancel> = OnceLock::new();

/// From now on Ctrl-C (and SIGTERM) asks what is returned to stop. Every call returns the same.
pub(crate) fn listen() -> Cancel {
    // Another program has its own way with Ctrl-C.
    if let Some(hooks) = crate::session::hooks() {
        return hooks.cancel;
    }
    ASKED.get_or_init(handle).clone()
}

/// Leaves SIGHUP to whoever started the program with it ignored, as `nohup` does: the handler of
/// Ctrl-C would take the place of that, and a closed terminal end the program. Blocked it stays
/// so in the programs that this one starts, too. Before there are other threads.
pub(crate) fn heed_nohup() {
    #[cfg(target_os = "linux")]
    if std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores_hangups(&status)) {
        use nix::sys::signal::{SigSet, Signal};
        let _ = SigSet::from(Signal::SIGHUP).thread_block();
    }
}

/// What proc(5) says of the signals that a process ignores: a hexadecimal number with a bit for
/// each, the lowest for SIGHUP.
#[cfg(target_os = "linux")]
fn ignores_hangups(status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// A file that becomes longer than the process may write (`ulimit -f`) is an error in a sentence,
/// with what was found before it, not the end of the program. Inherited as above.
pub(crate) fn survive_limits_of_files() {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::signal::SigSet::from(nix::sys::signal::Signal::SIGXFSZ).thread_block();
}

fn handle() -> Cancel {
    let cancel = Cancel::default();
    let asked = cancel.clone();
    let mut first = None;
    // Without a handler Ctrl-C ends the program at once, which loses results but nothing else.
    let _ = ctrlc::set_handler(move || {
        if asked.is_cancelled() && first.is_none_or(|first: Instant| first.elapsed() >= AGAIN) {
            #[cfg(target_os = "linux")]
            flowstart_emulator::remove_own_names();
            std::process::exit(i32::from(STATUS));
        }
        first.get_or_insert_with(Instant::now);
        asked.cancel();
    });
    cancel
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_bit_of_what_is_ignored_is_hangups() {
        let status = |mask: &str| format!("Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t{mask}\n");
        assert!(ignores_hangups(&status("0000000000001001")));
        assert!(!ignores_hangups(&status("0000000000001000")));
        assert!(!ignores_hangups(&status("nothing")) && !ignores_hangups(""));
    }
}
