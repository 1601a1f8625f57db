//! The stack counts in the system's instants, congestion control in nanoseconds since the start.

use std::time::{Duration, Instant};

use flowstart_units::{Span, Time};

/// Turns one into the other. The instants of a virtual run never meet the system's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// [`Time::ZERO`] is now.
    #[must_use]
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// What the system's clock says.
    #[must_use]
    pub fn now(&self) -> Time {
        self.time(Instant::now())
    }

    /// The time of an instant; [`Time::ZERO`] for one before the start.
    #[must_use]
    pub fn time(&self, instant: Instant) -> Time {
        let since = instant.saturating_duration_since(self.origin).as_nanos();
        Time::from_nanos(u64::try_from(since).unwrap_or(u64::MAX))
    }

    /// The instant of a time, at most a hundred years after the start.
    #[must_use]
    pub fn instant(&self, time: Time) -> Instant {
        let most = Span::from_secs(100 * 365 * 24 * 3600).as_nanos();
        self.origin + Duration::from_nanos(time.as_nanos().min(most))
    }
}
