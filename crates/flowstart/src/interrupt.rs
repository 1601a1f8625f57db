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
