//! The monotonic clock, the kernel's packet stamps, sleeping and priorities.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use flowstart_units::{Span, Time};

fn nanos(clock: ClockId) -> u64 {
    // Fails only for clocks that do not exist; these two always do.
    clock_gettime(clock).map_or(0, |now| Duration::from(now).as_nanos() as u64)
}

/// Time since the start of a world, on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    origin: u64,
}

impl Clock {
    /// A clock that begins after `lead`; until then it stands at zero.
    #[must_use]
    pub fn start(lead: Span) -> Self {
        Self { origin: nanos(ClockId::CLOCK_MONOTONIC).saturating_add(lead.as_nanos()) }
    }

    /// The time now.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Time {
        Time::from_nanos(nanos(ClockId::CLOCK_MONOTONIC).saturating_sub(self.origin))
    }

    /// What has to be subtracted from a stamp of the wall clock (in nanoseconds) to get a time of this clock. Packets are stamped by the
    /// wall clock, which may be set while the world runs; so this is asked for again with every batch of packets.
    #[inline]
    pub(crate) fn wall_offset(&self) -> u64 {
        let monotonic = nanos(ClockId::CLOCK_MONOTONIC);
        nanos(ClockId::CLOCK_REALTIME).wrapping_sub(monotonic.wrapping_sub(self.origin))
    }

    /// The time of a stamp of the wall clock.
    #[must_use]
    pub fn of_wall(&self, nanos: u64) -> Time {
        Time::from_nanos(nanos.saturating_sub(self.wall_offset()))
    }

    /// Sleeps until `time`; by the precision of the system's timers later.
    pub fn sleep_until(&self, time: Time) {
        let until = self.origin.saturating_add(time.as_nanos());
        let at = libc::timespec {
            tv_sec: (until / 1_000_000_000) as libc::time_t,
            tv_nsec: (until % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: `at` is a valid timespec; the remaining time is not asked for. Interrupted sleeps end early, which callers bear.
        unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const at, std::ptr::null_mut());
        }
    }
}

/// What the scheduler gave to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Priority {
    /// Real time (SCHED_FIFO): nothing else on its core runs before it.
    RealTime,
    /// As any other thread: it waits for others when the cores are busy.
    Normal,
}

/// Priority among real-time threads: above the kernel's threaded interrupts (50) nothing of ours is needed.
const REAL_TIME_PRIORITY: i32 = 40;

/// Asks for real-time priority and exact timers for the calling thread.
pub(crate) fn be_punctual() -> Priority {
    real_time(REAL_TIME_PRIORITY)
}

/// Asks for real-time priority below that of engines: for built-in senders and receivers, which otherwise wait for whatever else runs.
pub(crate) fn be_prompt() {
    real_time(REAL_TIME_PRIORITY / 4);
}

fn real_time(priority: i32) -> Priority {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: plain system calls on the calling thread with a valid structure; failure leaves everything as it was.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0_u64, 0_u64, 0_u64);
        if libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) == 0 {
            return Priority::RealTime;
        }
        libc::setpriority(libc::PRIO_PROCESS, 0, -20);
    }
    Priority::Normal
}

/// As the system calls want it.
pub(crate) fn timespec(span: Span) -> nix::sys::time::TimeSpec {
    nix::sys::time::TimeSpec::from_duration(Duration::from_nanos(span.as_nanos()))
}
