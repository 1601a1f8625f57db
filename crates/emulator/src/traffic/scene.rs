//! What the threads of a run share: the time, whether all is over, and the connections the kernel
//! is asked about.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flowstart_units::{Span, Time};

use super::{FlowOutcome, RunConfig, Sample, TcpInfo};
use crate::Error;
use crate::clock::Clock;

/// How often sleeping threads look whether everything is over.
pub(super) const LOOK: Span = Span::from_millis(20);
/// The same as a timeout of sockets.
pub(super) const TIMEOUT: Duration = Duration::from_millis(20);

/// True if nothing failed: a call came back before there was anything to do, so that the caller can
/// look whether all is over.
pub(super) fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the threads of a connection share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) outcome: Mutex<FlowOutcome>,
    pub(super) delivered: AtomicU64,
}

impl Shared {
    pub(super) fn change(&self, change: impl FnOnce(&mut FlowOutcome)) {
        change(&mut lock(&self.outcome));
    }

    /// Something failed, and everything ends: without this flow the others are not what was asked
    /// for. At the end connections are not closed in order, which is no failure.
    pub(super) fn fail(&self, error: impl std::fmt::Display, scene: &Scene<'_>) {
        if scene.over() {
            return;
        }
        self.change(|outcome| {
            outcome.error.get_or_insert_with(|| error.to_string());
        });
        scene.end();
    }

    pub(super) fn outcome(&self) -> FlowOutcome {
        FlowOutcome { delivered: self.delivered.load(Ordering::Relaxed), ..lock(&self.outcome).clone() }
    }
}

/// A connection that the kernel is asked about.
struct Live {
    shared: Arc<Shared>,
    socket: OwnedFd,
}

/// What all threads look at.
pub(super) struct Scene<'a> {
    pub(super) clock: Clock,
    over: AtomicBool,
    /// Sized transfers and sessions that are not complete.
    incomplete: AtomicUsize,
    pub(super) config: RunConfig,
    cancelled: &'a (dyn Fn() -> bool + Sync),
    /// Hears of every read of a TCP flow's receiver: flow, time, bytes in all.
    pub(super) read: &'a (dyn Fn(usize, Time, u64) + Sync),
    live: Mutex<Vec<Live>>,
    /// The first reason why something could not be started.
    failure: Mutex<Option<Error>>,
}

impl<'a> Scene<'a> {
    /// Of `incomplete` sized transfers and sessions.
    pub(super) fn new(
        clock: Clock,
        config: RunConfig,
        incomplete: usize,
        cancelled: &'a (dyn Fn() -> bool + Sync),
        read: &'a (dyn Fn(usize, Time, u64) + Sync),
    ) -> Self {
        Self {
            clock,
            over: AtomicBool::new(false),
            incomplete: AtomicUsize::new(incomplete),
            config,
            cancelled,
            read,
            live: Mutex::default(),
            failure: Mutex::default(),
        }
    }

    /// Everything ends.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Everything ends because something could not be started.
    pub(super) fn fail(&self, error: Error) {
        lock(&self.failure).get_or_insert(error);
        self.end();
    }

    /// The first reason why something could not be started.
    pub(super) fn failure(&self) -> Option<Error> {
        lock(&self.failure).take()
    }

    pub(super) fn over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// True if what happens now is after the end.
    pub(super) fn is_past(&self, now: Time) -> bool {
        now >= self.config.until || self.over()
    }

    /// A sized transfer or a session is complete.
    pub(super) fn completed(&self) {
        self.incomplete.fetch_sub(1, Ordering::Relaxed);
    }

    /// Sleeps until `time`; false if everything ends before. The clock stands at zero before it
    /// begins to run, which is not "at zero" yet: packets of then would be held up in the emulator
    /// until it is, and hosts would measure that as their round-trip time.
    pub(super) fn wait_until(&self, time: Time) -> bool {
        self.clock.sleep_until(Time::ZERO);
        loop {
            let now = self.clock.now();
            if self.over() || now >= self.config.until {
                return false;
            }
            if now >= time {
                return true;
            }
            self.clock.sleep_until(time.min(now + LOOK));
        }
    }

    /// From now on the kernel is asked about this connection.
    pub(super) fn watch(&self, shared: &Arc<Shared>, socket: OwnedFd) {
        lock(&self.live).push(Live { shared: shared.clone(), socket });
    }

    /// The last word about a connection; from now on the kernel is not asked any more.
    pub(super) fn settle(&self, shared: &Arc<Shared>) {
        let mut live = lock(&self.live);
        if let Some(place) = live.iter().position(|one| Arc::ptr_eq(&one.shared, shared)) {
            let info = TcpInfo::of(live.swap_remove(place).socket.as_fd()).ok();
            shared.change(|outcome| outcome.info = info.or(outcome.info));
        }
    }

    /// Asks the kernel about connections until everything is over.
    pub(super) fn observe(&self) {
        let config = &self.config;
        let step = if config.sample.is_zero() { LOOK } else { config.sample };
        let mut next = Time::ZERO + step;
        let mut due = true;
        while self.clock.now() < config.until && !self.over() && !(self.cancelled)() {
            if config.stop_when_complete && self.incomplete.load(Ordering::Relaxed) == 0 {
                return;
            }
            if due && !config.sample.is_zero() {
                for live in &*lock(&self.live) {
                    let Ok(info) = TcpInfo::of(live.socket.as_fd()) else { continue };
                    let delivered = live.shared.delivered.load(Ordering::Relaxed);
                    live.shared.change(|outcome| {
                        outcome.samples.push(Sample { at: self.clock.now(), info, delivered });
                    });
                }
            }
            if due {
                next = (next + step).max(self.clock.now());
            }
            // However long the step is, the end is not to wait for it.
            self.clock.sleep_until(next.min(config.until).min(self.clock.now() + LOOK));
            due = self.clock.now() >= next;
        }
    }
}
