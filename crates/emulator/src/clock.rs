//! The monotonic clock, the kernel's packet stamps, sleeping and priorities.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use flowstart_units::{Span, Time};

fn nanos(clock: ClockId) -> u64 {
    // Fails only for clocks that do not exist; these always do.
    clock_gettime(clock).map_or(0, |now| Duration::from(now).as_nanos() as u64)
}

/// Processor time that the calling thread has used, in nanoseconds.
pub(crate) fn thread_time() -> u64 {
    nanos(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// Two clocks are read within this time unless the thread had to wait in between, in nanoseconds.
const AT_ONCE: u64 = 1_000;
/// How often they are read at most for the sake of that.
const READINGS: usize = 8;

/// How far the wall clock is ahead of the monotonic one. `read` reads the monotonic, the wall and
/// the monotonic clock again. The thread may lose the processor in between, which would move all
/// stamps by as long as that lasts; so the reading that took the shortest time counts.
#[inline]
fn apart(mut read: impl FnMut() -> [u64; 3]) -> u64 {
    let (mut shortest, mut apart) = (u64::MAX, 0);
    for _ in 0..READINGS {
        let [before, wall, after] = read();
        let took = after.saturating_sub(before);
        if took < shortest {
            (shortest, apart) = (took, wall.wrapping_sub(before + took / 2));
        }
        if took <= AT_ONCE {
            break;
        }
    }
    apart
}

/// How far the wall clock was ahead, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WallReading {
    offset: u64,
    at: Time,
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

    /// What has to be subtracted from a stamp of the wall clock (in nanoseconds) to get a time of
    /// this clock. Packets are stamped by the wall clock, which may be set while the world runs; so
    /// this is asked for again with every batch of packets.
    #[inline]
    pub(crate) fn wall_offset(&self) -> u64 {
        let apart = apart(|| {
            let before = nanos(ClockId::CLOCK_MONOTONIC);
            [before, nanos(ClockId::CLOCK_REALTIME), nanos(ClockId::CLOCK_MONOTONIC)]
        });
        apart.wrapping_add(self.origin)
    }

    /// The offset of the wall clock, and the time at which it was read: for a batch of packets.
    #[inline]
    pub(crate) fn read_wall(&self) -> WallReading {
        WallReading { offset: self.wall_offset(), at: self.now() }
    }

    /// The time of a packet's stamp; not later than now, whatever the clock says: if it was set
    /// back after the packet had been stamped, the packet would otherwise wait for that long.
    #[inline]
    pub(crate) fn of_stamp(&self, stamp: u64, reading: WallReading) -> Time {
        let time = Time::from_nanos(stamp.saturating_sub(reading.offset));
        if time > reading.at { time.min(self.now()) } else { time }
    }

    /// The time of a stamp of the wall clock.
    #[must_use]
    pub fn of_wall(&self, nanos: u64) -> Time {
        Time::from_nanos(nanos.saturating_sub(self.wall_offset()))
    }

    /// Sleeps until `time`; by the precision of the system's timers later.
    pub fn sleep_until(&self, time: Time) {
        let until = self.origin.saturating_add(time.as_nanos());
        let at =
            libc::timespec { tv_sec: (until / 1_000_000_000) as _, tv_nsec: (until % 1_000_000_000) as libc::c_long };
        // SAFETY: `at` is a valid timespec; the remaining time is not asked for. Interrupted sleeps
        // end early, which callers bear.
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

/// Priority among real-time threads: above the kernel's threaded interrupts (50) nothing of ours is
/// needed.
const REAL_TIME_PRIORITY: i32 = 40;
/// The best that threads without real-time priority can have.
const NICEST: i32 = -20;

/// Asks for real-time priority and exact timers for the calling thread.
pub(crate) fn be_punctual() -> Priority {
    real_time(REAL_TIME_PRIORITY)
}

/// What a thread of ours does that is no engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// It sends at given times: real-time priority below that of engines, or it would wait for
    /// whatever else runs.
    Sender,
    /// It reads what the kernel keeps for it with stamps, so it may be late; what it used of the
    /// processors' real-time share would be missing for engines ([`real_time_limit`]).
    Receiver,
}

/// Asks for what a built-in sender or receiver needs.
pub(crate) fn be_prompt(part: Part) {
    match part {
        Part::Sender => {
            real_time(REAL_TIME_PRIORITY / 4);
        }
        Part::Receiver => before_others(),
    }
}

fn real_time(priority: i32) -> Priority {
    exact_timers();
    // All that the kernel's structure has. The system call itself: musl's function does nothing.
    let parameters: libc::c_int = priority;
    // SAFETY: a plain system call on the calling thread with a valid structure; failure leaves
    // everything as it was.
    if unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const parameters) } == 0 {
        return Priority::RealTime;
    }
    before_others();
    Priority::Normal
}

fn exact_timers() {
    // SAFETY: a plain system call on the calling thread; failure leaves everything as it was.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0_u64, 0_u64, 0_u64);
    }
}

fn before_others() {
    // SAFETY: a plain system call on the calling thread; failure leaves everything as it was.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, NICEST);
    }
}

/// As the system calls want it.
pub(crate) fn timespec(span: Span) -> nix::sys::time::TimeSpec {
    nix::sys::time::TimeSpec::from_duration(Duration::from_nanos(span.as_nanos()))
}

/// The share of the processor that the system leaves to real-time threads before it stops them all
/// until the end of a period, and that period (sched(7)); `None` if there is no limit.
pub(crate) fn real_time_limit() -> Option<(f64, Span)> {
    let read = |name: &str| -> Option<i64> {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/sched_rt_{name}_us")).ok()?;
        text.trim().parse().ok()
    };
    let (runtime, period) = (read("runtime")?, read("period")?);
    let period = u64::try_from(period).ok().filter(|period| *period > 0)?;
    let runtime = u64::try_from(runtime).ok()?;
    Some((runtime as f64 / period as f64, Span::from_micros(period)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_loses_the_processor_between_two_clocks_still_knows_how_far_apart_they_are() {
        let mut monotonic = 1_000_000;
        // Away for 40 ms before, then after the wall clock was read; then not at all.
        let mut pauses = [(40_000_000, 0), (0, 40_000_000), (100, 100)].into_iter();
        let ahead = 5_000_000_000;
        let apart = apart(|| {
            let (first, second) = pauses.next().expect("a reading at once is enough");
            let before = monotonic;
            monotonic += first;
            let wall = monotonic + ahead;
            monotonic += second;
            [before, wall, monotonic]
        });
        assert_eq!(apart, ahead);
    }

    #[test]
    fn a_packet_that_was_stamped_before_the_wall_clock_was_set_back_arrives_now_and_not_in_an_hour() {
        let clock = Clock::start(Span::ZERO);
        let wall = || nanos(ClockId::CLOCK_REALTIME);
        let (stamp, reading) = (wall() + 3_600_000_000_000, clock.read_wall());
        let arrived = clock.of_stamp(stamp, reading);
        assert!(reading.at <= arrived && arrived <= clock.now(), "{arrived:?}");
        // What was stamped before the reading keeps its time.
        let reading = WallReading { offset: 1_000, at: Time::from_nanos(500) };
        assert_eq!(clock.of_stamp(1_200, reading), Time::from_nanos(200));
    }
}
